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
    linux/stat.h sha256 f0b7af4cd95d6839857c8e3c972eeb939ef198add1e8c89f74119a69fb55382b
    linux/fcntl.h sha256 1cb09f0ece59b8e86af7371d8ce752a4918e3ae8aed9482599fa8b4c1ca48977
    x86_64-linux-gnu/asm/ioctl.h sha256 9c6ca9e365296a6b66747cbebdcf76972b8cce7aab91e55bf4ab1f3581df9c2a
    x86_64-linux-gnu/asm/stat.h sha256 5cca0ba1e1a55cfa1e853e326eaf4a69f48c1d0caf2d3724ee41917fff042ca6
    x86_64-linux-gnu/asm/debugreg.h sha256 09579441db3dfc7bc856f25950cbf95d455f11285bc620cb95520c29b302f3d6
  GNU C library's headers (Debian libc6-dev) 2.36-9+deb12u14, licence LGPL-2.1-or-later; names and numbers only
    x86_64-linux-gnu/sys/user.h sha256 80e165cb2d9a7af66602ba7c3864f37e204fb92de529f9f7e4819b23d502e44c
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
NR_stat = 0x4
NR_lstat = 0x6
NR_fstat = 0x5
NR_newfstatat = 0x106
NR_statx = 0x14c
NR_access = 0x15
NR_faccessat = 0x10d
NR_faccessat2 = 0x1b7
NR_readlink = 0x59
NR_readlinkat = 0x10b
NR_getxattr = 0xbf
NR_lgetxattr = 0xc0
NR_listxattr = 0xc2
NR_llistxattr = 0xc3
NR_openat2 = 0x1b5
NR_seccomp = 0x13d
NR_process_vm_readv = 0x136
NR_process_vm_writev = 0x137
BPF_ALU = 0x4
BPF_AND = 0x50
SECCOMP_SET_MODE_FILTER = 0x1
SECCOMP_GET_NOTIF_SIZES = 0x3
SECCOMP_FILTER_FLAG_NEW_LISTENER = 0x8
SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 0x20
SECCOMP_RET_USER_NOTIF = 0x7fc00000
SECCOMP_USER_NOTIF_FLAG_CONTINUE = 0x1
SECCOMP_IOCTL_NOTIF_RECV = 0xc0502100
SECCOMP_IOCTL_NOTIF_SEND = 0xc0182101
SECCOMP_IOCTL_NOTIF_ID_VALID = 0x40082102
SECCOMP_IOCTL_NOTIF_ADDFD = 0x40182103
SECCOMP_ADDFD_FLAG_SEND = 0x2
PR_SET_PDEATHSIG = 0x1
PR_SET_CHILD_SUBREAPER = 0x24
PR_SET_TIMERSLACK = 0x1d
AT_FDCWD = 0xffffff9c
AT_EMPTY_PATH = 0x1000
AT_SYMLINK_NOFOLLOW = 0x100
AT_EACCESS = 0x200
_IOC_TYPEMASK = 0xff
_IOC_TYPESHIFT = 0x8
PTRACE_PEEKUSER = 0x3
PTRACE_POKEUSER = 0x6
DR_STATUS = 0x6
DR_CONTROL = 0x7
DR_TRAP0 = 0x1
DR_CONTROL_SHIFT = 0x10
DR_CONTROL_SIZE = 0x4
DR_ENABLE_SIZE = 0x2
DR_LOCAL_ENABLE_SHIFT = 0x0
DR_RW_WRITE = 0x1
DR_LEN_4 = 0xc
DR_LEN_8 = 0x8
USER_DEBUGREG = 0x350
USER_DEBUGREGS = 0x8


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


class seccomp_notif_sizes(Struct):
  """6 bytes."""
  seccomp_notif: int
  seccomp_notif_resp: int
  seccomp_data: int
  _fields_ = [
    ("seccomp_notif", ctypes.c_uint16),
    ("seccomp_notif_resp", ctypes.c_uint16),
    ("seccomp_data", ctypes.c_uint16),
  ]


class seccomp_notif(Struct):
  """80 bytes."""
  id: int
  pid: int
  flags: int
  data: seccomp_data
  _fields_ = [
    ("id", ctypes.c_uint64),
    ("pid", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("data", seccomp_data),
  ]


class seccomp_notif_resp(Struct):
  """24 bytes."""
  id: int
  val: int
  error: int
  flags: int
  _fields_ = [
    ("id", ctypes.c_uint64),
    ("val", ctypes.c_int64),
    ("error", ctypes.c_int32),
    ("flags", ctypes.c_uint32),
  ]


class seccomp_notif_addfd(Struct):
  """24 bytes."""
  id: int
  flags: int
  srcfd: int
  newfd: int
  newfd_flags: int
  _fields_ = [
    ("id", ctypes.c_uint64),
    ("flags", ctypes.c_uint32),
    ("srcfd", ctypes.c_uint32),
    ("newfd", ctypes.c_uint32),
    ("newfd_flags", ctypes.c_uint32),
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


class statx_timestamp(Struct):
  """16 bytes."""
  tv_sec: int
  tv_nsec: int
  __reserved: int
  _fields_ = [
    ("tv_sec", ctypes.c_int64),
    ("tv_nsec", ctypes.c_uint32),
    ("__reserved", ctypes.c_int32),
  ]


class statx(Struct):
  """256 bytes."""
  stx_mask: int
  stx_blksize: int
  stx_attributes: int
  stx_nlink: int
  stx_uid: int
  stx_gid: int
  stx_mode: int
  __spare0: ctypes.Array[ctypes.c_uint16]
  stx_ino: int
  stx_size: int
  stx_blocks: int
  stx_attributes_mask: int
  stx_atime: statx_timestamp
  stx_btime: statx_timestamp
  stx_ctime: statx_timestamp
  stx_mtime: statx_timestamp
  stx_rdev_major: int
  stx_rdev_minor: int
  stx_dev_major: int
  stx_dev_minor: int
  stx_mnt_id: int
  stx_dio_mem_align: int
  stx_dio_offset_align: int
  __spare3: ctypes.Array[ctypes.c_uint64]
  _fields_ = [
    ("stx_mask", ctypes.c_uint32),
    ("stx_blksize", ctypes.c_uint32),
    ("stx_attributes", ctypes.c_uint64),
    ("stx_nlink", ctypes.c_uint32),
    ("stx_uid", ctypes.c_uint32),
    ("stx_gid", ctypes.c_uint32),
    ("stx_mode", ctypes.c_uint16),
    ("__spare0", ctypes.c_uint16 * 1),
    ("stx_ino", ctypes.c_uint64),
    ("stx_size", ctypes.c_uint64),
    ("stx_blocks", ctypes.c_uint64),
    ("stx_attributes_mask", ctypes.c_uint64),
    ("stx_atime", statx_timestamp),
    ("stx_btime", statx_timestamp),
    ("stx_ctime", statx_timestamp),
    ("stx_mtime", statx_timestamp),
    ("stx_rdev_major", ctypes.c_uint32),
    ("stx_rdev_minor", ctypes.c_uint32),
    ("stx_dev_major", ctypes.c_uint32),
    ("stx_dev_minor", ctypes.c_uint32),
    ("stx_mnt_id", ctypes.c_uint64),
    ("stx_dio_mem_align", ctypes.c_uint32),
    ("stx_dio_offset_align", ctypes.c_uint32),
    ("__spare3", ctypes.c_uint64 * 12),
  ]


class stat(Struct):
  """144 bytes."""
  st_dev: int
  st_ino: int
  st_nlink: int
  st_mode: int
  st_uid: int
  st_gid: int
  __pad0: int
  st_rdev: int
  st_size: int
  st_blksize: int
  st_blocks: int
  st_atime: int
  st_atime_nsec: int
  st_mtime: int
  st_mtime_nsec: int
  st_ctime: int
  st_ctime_nsec: int
  __unused: ctypes.Array[ctypes.c_int64]
  _fields_ = [
    ("st_dev", ctypes.c_uint64),
    ("st_ino", ctypes.c_uint64),
    ("st_nlink", ctypes.c_uint64),
    ("st_mode", ctypes.c_uint32),
    ("st_uid", ctypes.c_uint32),
    ("st_gid", ctypes.c_uint32),
    ("__pad0", ctypes.c_uint32),
    ("st_rdev", ctypes.c_uint64),
    ("st_size", ctypes.c_int64),
    ("st_blksize", ctypes.c_int64),
    ("st_blocks", ctypes.c_int64),
    ("st_atime", ctypes.c_uint64),
    ("st_atime_nsec", ctypes.c_uint64),
    ("st_mtime", ctypes.c_uint64),
    ("st_mtime_nsec", ctypes.c_uint64),
    ("st_ctime", ctypes.c_uint64),
    ("st_ctime_nsec", ctypes.c_uint64),
    ("__unused", ctypes.c_int64 * 3),
  ]

