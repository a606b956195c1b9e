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
           "x86_64-linux-gnu/asm/unistd_64.h", "linux/stat.h", "linux/fcntl.h", "x86_64-linux-gnu/asm/ioctl.h",
           "x86_64-linux-gnu/asm/stat.h", "x86_64-linux-gnu/asm/debugreg.h")
USER = "x86_64-linux-gnu/sys/user.h"
GLIBC = Origin("GNU C library's headers (Debian libc6-dev)", "2.36-9+deb12u14",
               "LGPL-2.1-or-later; names and numbers only")
STRUCTS = ("ptrace_syscall_info", "seccomp_data", "sock_filter", "sock_fprog", "seccomp_notif", "seccomp_notif_resp",
           "seccomp_notif_sizes", "seccomp_notif_addfd", "statx", "stat")
NAMES = (
  "PTRACE_TRACEME", "PTRACE_CONT", "PTRACE_SYSCALL", "PTRACE_SETOPTIONS", "PTRACE_GETEVENTMSG",
  "PTRACE_GET_SYSCALL_INFO", "PTRACE_SYSCALL_INFO_ENTRY", "PTRACE_SYSCALL_INFO_EXIT", "PTRACE_SYSCALL_INFO_SECCOMP",
  "PTRACE_O_TRACESYSGOOD", "PTRACE_O_TRACEFORK", "PTRACE_O_TRACEVFORK", "PTRACE_O_TRACECLONE", "PTRACE_O_TRACEEXEC",
  "PTRACE_O_TRACESECCOMP", "PTRACE_O_TRACEEXIT", "PTRACE_O_EXITKILL", "PTRACE_EVENT_FORK", "PTRACE_EVENT_VFORK",
  "PTRACE_EVENT_CLONE", "PTRACE_EVENT_EXEC", "PTRACE_EVENT_EXIT", "PTRACE_EVENT_SECCOMP", "SECCOMP_MODE_FILTER",
  "SECCOMP_RET_TRACE", "SECCOMP_RET_ALLOW", "BPF_LD", "BPF_W", "BPF_ABS", "BPF_JMP", "BPF_JEQ", "BPF_K", "BPF_RET",
  "AUDIT_ARCH_X86_64", "PR_SET_NO_NEW_PRIVS", "PR_SET_SECCOMP", "__WALL", "__NR_open", "__NR_openat", "__NR_close",
  "__NR_ioctl", "__NR_mmap", "__NR_munmap", "__NR_execve", "__NR_execveat", "__NR_stat", "__NR_lstat", "__NR_fstat",
  "__NR_newfstatat", "__NR_statx", "__NR_access", "__NR_faccessat", "__NR_faccessat2", "__NR_readlink",
  "__NR_readlinkat", "__NR_getxattr", "__NR_lgetxattr", "__NR_listxattr", "__NR_llistxattr", "__NR_openat2",
  "__NR_seccomp", "__NR_process_vm_readv", "__NR_process_vm_writev", "BPF_ALU",
  "BPF_AND", "SECCOMP_SET_MODE_FILTER", "SECCOMP_GET_NOTIF_SIZES", "SECCOMP_FILTER_FLAG_NEW_LISTENER",
  "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", "SECCOMP_RET_USER_NOTIF", "SECCOMP_USER_NOTIF_FLAG_CONTINUE",
  "SECCOMP_IOCTL_NOTIF_RECV", "SECCOMP_IOCTL_NOTIF_SEND", "SECCOMP_IOCTL_NOTIF_ID_VALID", "SECCOMP_IOCTL_NOTIF_ADDFD",
  "SECCOMP_ADDFD_FLAG_SEND", "PR_SET_PDEATHSIG", "PR_SET_CHILD_SUBREAPER", "PR_SET_TIMERSLACK", "AT_FDCWD",
  "AT_EMPTY_PATH", "AT_SYMLINK_NOFOLLOW", "AT_EACCESS", "_IOC_TYPEMASK", "_IOC_TYPESHIFT", "PTRACE_PEEKUSER",
  "PTRACE_POKEUSER", "DR_STATUS", "DR_CONTROL", "DR_TRAP0", "DR_CONTROL_SHIFT", "DR_CONTROL_SIZE", "DR_ENABLE_SIZE",
  "DR_LOCAL_ENABLE_SHIFT", "DR_RW_WRITE", "DR_LEN_4", "DR_LEN_8", "USER_DEBUGREG", "USER_DEBUGREGS")
OFFSETS = """#include <stddef.h>
#define USER_DEBUGREG offsetof(struct user, u_debugreg)
#define USER_DEBUGREGS (sizeof(((struct user *)0)->u_debugreg) / sizeof(((struct user *)0)->u_debugreg[0]))
#define PTRACE_PEEKUSER PTRACE_PEEKUSR
#define PTRACE_POKEUSER PTRACE_POKEUSR
"""


def generate(sources: Sources) -> str:
  files = [sources.find(n) for n in HEADERS]
  values = gcc.macro_values(NAMES, "".join(
    f"#include <{n.removeprefix('x86_64-linux-gnu/')}>\n" for n in (*HEADERS, USER)) + OFFSETS, [])
  text = "\n".join(f.text for f in files)
  types = ctypes_types.collect(ctypes_types.read([f.path for f in files[:3] + files[8:9] + files[11:]], []), text)
  return "\n".join([
    head("System calls of another program, as ptrace and seccomp show them on x86-64 Linux.",
         [*((LINUX, f) for f in files), (GLIBC, sources.find(USER))],
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


FAMILY = Family("linux_trace", "linux_trace", "ptrace, seccomp and numbers of system calls", (*HEADERS, USER),
                generate)
