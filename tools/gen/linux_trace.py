"""What tracing a program's system calls on Linux takes: ptrace, seccomp's filters, numbers of calls (x86-64)."""
from __future__ import annotations

from tinyhw.tools.gen import ctypes_types, gcc
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.nvrm import chosen
from tinyhw.tools.gen.sources import Origin, Sources, head

LINUX = Origin("Linux user-space headers (Debian linux-libc-dev)", "6.1.187-1",
               "GPL-2.0 WITH Linux-syscall-note; names and numbers only")
PTRACE = "linux/ptrace.h"
FILTER = "linux/filter.h"
HEADERS = (PTRACE, "linux/seccomp.h", FILTER, "linux/bpf_common.h", "linux/audit.h", "linux/prctl.h", "linux/wait.h",
           "x86_64-linux-gnu/asm/unistd_64.h")
STRUCTS = ("ptrace_syscall_info", "seccomp_data", "sock_filter", "sock_fprog")
NAMES = (
  "PTRACE_TRACEME", "PTRACE_CONT", "PTRACE_SYSCALL", "PTRACE_SETOPTIONS", "PTRACE_GETEVENTMSG",
  "PTRACE_GET_SYSCALL_INFO", "PTRACE_SYSCALL_INFO_ENTRY", "PTRACE_SYSCALL_INFO_EXIT", "PTRACE_SYSCALL_INFO_SECCOMP",
  "PTRACE_O_TRACESYSGOOD", "PTRACE_O_TRACEFORK", "PTRACE_O_TRACEVFORK", "PTRACE_O_TRACECLONE", "PTRACE_O_TRACEEXEC",
  "PTRACE_O_TRACESECCOMP", "PTRACE_O_TRACEEXIT", "PTRACE_O_EXITKILL", "PTRACE_EVENT_FORK", "PTRACE_EVENT_VFORK",
  "PTRACE_EVENT_CLONE", "PTRACE_EVENT_EXEC", "PTRACE_EVENT_EXIT", "PTRACE_EVENT_SECCOMP", "SECCOMP_MODE_FILTER",
  "SECCOMP_RET_TRACE", "SECCOMP_RET_ALLOW", "BPF_LD", "BPF_W", "BPF_ABS", "BPF_JMP", "BPF_JEQ", "BPF_K", "BPF_RET",
  "AUDIT_ARCH_X86_64", "PR_SET_NO_NEW_PRIVS", "PR_SET_SECCOMP", "__WALL", "__NR_open", "__NR_openat", "__NR_close",
  "__NR_ioctl", "__NR_mmap", "__NR_munmap", "__NR_execve", "__NR_execveat")


def generate(sources: Sources) -> str:
  files = [sources.find(n) for n in HEADERS]
  values = gcc.macro_values(NAMES, "".join(f"#include <{n.removeprefix('x86_64-linux-gnu/')}>\n" for n in HEADERS), [])
  text = "\n".join(f.text for f in files)
  types = ctypes_types.collect(ctypes_types.read([f.path for f in files[:3]], []), text)
  return "\n".join([
    head("System calls of another program, as ptrace and seccomp show them on x86-64 Linux.",
         [(LINUX, f) for f in files],
         "tinyhw gen linux_trace", ["Numbers of calls are x86-64's."]),
    "import ctypes",
    "",
    "from tinyhw.core.layout import Struct, Union",
    "",
    *(f"{n.removeprefix('__')} = {values[n] & 0xFFFFFFFF:#x}" for n in NAMES),
    "",
    *ctypes_types.Writer(chosen(types, STRUCTS, PTRACE)).text(),
    "",
  ])


FAMILY = Family("linux_trace", "linux_trace", "ptrace, seccomp and numbers of system calls", HEADERS, generate)
