"""System calls of another program, as ptrace and seccomp show them on x86-64 Linux.

Generated; do not edit. Source:
  Linux user-space headers (Debian linux-libc-dev) 6.1.187-1, licence GPL-2.0 WITH Linux-syscall-note; names and numbers only
    linux/ptrace.h sha256 e5352070bb1cc2846a1d7caaa6080b3ce5b41c07b6ea46698250b274751b4f29
    linux/seccomp.h sha256 583817bb06f32a661f11b2e665d9b5fe966689587f81ab8173206a99f06b9366
    linux/filter.h sha256 aeb1560f02eff26dfea4ad4596d77c05d2bad3eab87cf3dd5aaf6b64ad2f5053
    linux/bpf_common.h sha256 7475540d7fb41f7da5987d78532403d47ee493aba277694df6fa9025b9a767aa
    linux/audit.h sha256 38cdb340bb7e832826759cd1cc5e50b9a2a446d190c06acbd5de99ad1bcd9601
    linux/prctl.h sha256 fa548afed1d7593f53aedd2ba1a849caedef7856167d1d1da0f8d93487a32698
    linux/wait.h sha256 0a4960db70b3e42826b84d134e787a5d79e716e77cc6016a818ed2625e3240a5
    x86_64-linux-gnu/asm/unistd_64.h sha256 73cca9493303afdcdd6d0fa098ae925ecb3d0f2e531a3248b7c83dcac8ea4abb
Generator: tinyhw gen linux_trace

Numbers of calls are x86-64's.
"""
from __future__ import annotations

import ctypes

from tinyhw.core.layout import Struct, Union

PTRACE_TRACEME = 0x0
PTRACE_CONT = 0x7
PTRACE_SYSCALL = 0x18
PTRACE_SETOPTIONS = 0x4200
PTRACE_GETEVENTMSG = 0x4201
PTRACE_GET_SYSCALL_INFO = 0x420e
PTRACE_SYSCALL_INFO_ENTRY = 0x1
PTRACE_SYSCALL_INFO_EXIT = 0x2
PTRACE_SYSCALL_INFO_SECCOMP = 0x3
PTRACE_O_TRACESYSGOOD = 0x1
PTRACE_O_TRACEFORK = 0x2
PTRACE_O_TRACEVFORK = 0x4
PTRACE_O_TRACECLONE = 0x8
PTRACE_O_TRACEEXEC = 0x10
PTRACE_O_TRACESECCOMP = 0x80
PTRACE_O_TRACEEXIT = 0x40
PTRACE_O_EXITKILL = 0x100000
PTRACE_EVENT_FORK = 0x1
PTRACE_EVENT_VFORK = 0x2
PTRACE_EVENT_CLONE = 0x3
PTRACE_EVENT_EXEC = 0x4
PTRACE_EVENT_EXIT = 0x6
PTRACE_EVENT_SECCOMP = 0x7
SECCOMP_MODE_FILTER = 0x2
SECCOMP_RET_TRACE = 0x7ff00000
SECCOMP_RET_ALLOW = 0x7fff0000
BPF_LD = 0x0
BPF_W = 0x0
BPF_ABS = 0x20
BPF_JMP = 0x5
BPF_JEQ = 0x10
BPF_K = 0x0
BPF_RET = 0x6
AUDIT_ARCH_X86_64 = 0xc000003e
PR_SET_NO_NEW_PRIVS = 0x26
PR_SET_SECCOMP = 0x16
WALL = 0x40000000
NR_open = 0x2
NR_openat = 0x101
NR_close = 0x3
NR_ioctl = 0x10
NR_mmap = 0x9
NR_munmap = 0xb
NR_execve = 0x3b
NR_execveat = 0x142


class ptrace_syscall_info_0_entry(Struct):
  """56 bytes."""
  nr: int
  args: ctypes.Array[ctypes.c_uint64]
  _fields_ = [
    ("nr", ctypes.c_uint64),
    ("args", ctypes.c_uint64 * 6),
  ]


class ptrace_syscall_info_0_exit(Struct):
  """16 bytes."""
  rval: int
  is_error: int
  _fields_ = [
    ("rval", ctypes.c_int64),
    ("is_error", ctypes.c_uint8),
  ]


class ptrace_syscall_info_0_seccomp(Struct):
  """64 bytes."""
  nr: int
  args: ctypes.Array[ctypes.c_uint64]
  ret_data: int
  _fields_ = [
    ("nr", ctypes.c_uint64),
    ("args", ctypes.c_uint64 * 6),
    ("ret_data", ctypes.c_uint32),
  ]


class ptrace_syscall_info_0(Union):
  """64 bytes."""
  entry: ptrace_syscall_info_0_entry
  exit: ptrace_syscall_info_0_exit
  seccomp: ptrace_syscall_info_0_seccomp
  _fields_ = [
    ("entry", ptrace_syscall_info_0_entry),
    ("exit", ptrace_syscall_info_0_exit),
    ("seccomp", ptrace_syscall_info_0_seccomp),
  ]


class ptrace_syscall_info(Struct):
  """88 bytes."""
  op: int
  pad: ctypes.Array[ctypes.c_uint8]
  arch: int
  instruction_pointer: int
  stack_pointer: int
  entry: ptrace_syscall_info_0_entry
  exit: ptrace_syscall_info_0_exit
  seccomp: ptrace_syscall_info_0_seccomp
  _anonymous_ = ('_0',)
  _fields_ = [
    ("op", ctypes.c_uint8),
    ("pad", ctypes.c_uint8 * 3),
    ("arch", ctypes.c_uint32),
    ("instruction_pointer", ctypes.c_uint64),
    ("stack_pointer", ctypes.c_uint64),
    ("_0", ptrace_syscall_info_0),
  ]


class seccomp_data(Struct):
  """64 bytes."""
  nr: int
  arch: int
  instruction_pointer: int
  args: ctypes.Array[ctypes.c_uint64]
  _fields_ = [
    ("nr", ctypes.c_int32),
    ("arch", ctypes.c_uint32),
    ("instruction_pointer", ctypes.c_uint64),
    ("args", ctypes.c_uint64 * 6),
  ]


class sock_filter(Struct):
  """8 bytes."""
  code: int
  jt: int
  jf: int
  k: int
  _fields_ = [
    ("code", ctypes.c_uint16),
    ("jt", ctypes.c_uint8),
    ("jf", ctypes.c_uint8),
    ("k", ctypes.c_uint32),
  ]


class sock_fprog(Struct):
  """16 bytes."""
  len: int
  filter: int
  _fields_ = [
    ("len", ctypes.c_uint16),
    ("filter", ctypes.c_uint64),
  ]

