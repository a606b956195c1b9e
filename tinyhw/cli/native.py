"""A native program (ELF, x86-64) run in this process: what `tinyhw run` does with programs of nvcc.

The system's linker loads it as a library: so its needs for libcuda.so.1 and libcudart.so.13 are met by those of this
process. Executables that may lie anywhere (PIE) are libraries but for a flag, which a copy in memory goes without.
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from tinyhw.core.called import Plain
from tinyhw.core.errors import InvalidArgument
from tinyhw.wire.elf import MAGIC, Elf

_PT_DYNAMIC, _DT_NEEDED, _DT_FLAGS_1, _DF_1_PIE = 2, 1, 0x6FFFFFFB, 0x08000000
_SHT_SYMTAB, _SHT_RELA, _SHT_DYNAMIC, _SHT_DYNSYM = 2, 4, 6, 11
_R_COPY: Final = 5  # R_X86_64_COPY: a library's variable that lies in the executable
_SYMBOL, _SHNDX = 24, 6  # bytes of Elf64_Sym; where the section is told, behind which its value lies
_STREAMS: Final = "_ZNSt8ios_base4InitC1Ev"  # std::ios_base::Init's constructor makes cout and the like
_PARSER: Final = frozenset({"optarg", "optind", "opterr", "optopt"})
_REGISTERS: Final = "__cudaRegisterFatBinary"  # of the runtime; nvcc's objects call it
_PYTHON: Final = "Py_BytesMain"  # a Python interpreter's main calls it
_kept: Final[list[Any]] = []


def is_native(path: str) -> bool:
  """Whether a file is an ELF."""
  with open(path, "rb") as file: return file.read(4) == MAGIC


def _flags(data: bytearray) -> tuple[int, int]:
  """Where DT_FLAGS_1 lies in the file, or 0, and its value."""
  start, = struct.unpack_from("<Q", data, 32)
  width, count = struct.unpack_from("<HH", data, 54)
  for i in range(count):
    kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", data, start + width * i)
    if kind != _PT_DYNAMIC: continue
    for at in range(offset, offset + size, 16):
      tag, value = struct.unpack_from("<QQ", data, at)
      if tag == _DT_FLAGS_1: return at + 8, value
  return 0, 0


def _copies(path: str, data: bytearray, elf: Elf) -> None:
  """Have the variables of libraries that an executable keeps copies of (cout, stderr) come from those libraries.

  The linker fills them for the executable that a process begins with alone, of one that is loaded as a library it
  finds its own empty copy. So the copies lose their names in the table, and the libraries are initialized before.
  Raises InvalidArgument for getopt's variables, which would be copies that getopt does not change.
  """
  tables = {i: t for i, t in enumerate(elf.sections)}
  found: set[str] = set()
  for section in elf.sections:
    if section.type != _SHT_RELA or tables[section.link].type != _SHT_DYNSYM: continue
    for at in range(section.offset, section.offset + section.size, 24):
      info, = struct.unpack_from("<Q", data, at + 8)
      if info & 0xFFFF_FFFF != _R_COPY: continue
      symbols = tables[section.link]
      found.add(elf.symbols(symbols)[info >> 32].name)
      struct.pack_into("<HQ", data, symbols.offset + _SYMBOL * (info >> 32) + _SHNDX, 0, 0)
  if refused := sorted(found & _PARSER):
    raise InvalidArgument(f"{path}: {refused[0]} lies in the executable", where="run",
                          hint="getopt changes the C library's own: compile with -fPIC -shared")
  if not found: return
  for section in elf.sections:
    if section.type != _SHT_DYNAMIC: continue
    names = elf.contents(tables[section.link])
    for at in range(section.offset, section.offset + section.size, 16):
      tag, value = struct.unpack_from("<QQ", data, at)
      if tag != _DT_NEEDED: continue
      with contextlib.suppress(OSError):
        library = ctypes.CDLL(names[value:names.index(0, value)].decode())
        _kept.append(library)
        with contextlib.suppress(AttributeError): getattr(library, _STREAMS)(ctypes.create_string_buffer(8))


def run(path: str, arguments: Sequence[str], at_exit: Callable[[], None]) -> NoReturn:
  """Run the program's main and end the process as the program does; before that, `at_exit` is called.

  What a program has the C library do at its end calls the runtime once more, so this is done while Python still runs.

  Raises InvalidArgument for a file that cannot be loaded, or has no main.
  """
  data = bytearray(Path(path).read_bytes())
  elf = Elf(bytes(data))
  defined = {s.name: s for t in elf.sections if t.type in (_SHT_SYMTAB, _SHT_DYNSYM) for s in elf.symbols(t) if s.value}
  if _PYTHON in {s.name for t in elf.sections if t.type == _SHT_DYNSYM for s in elf.symbols(t)}:
    raise InvalidArgument(f"{path}: is Python, which runs here already", where="run",
                          hint="name its program alone: tinyhw run program.py; packages are those beside tinyhw")
  main = defined.get("main")
  if _REGISTERS in defined:
    raise InvalidArgument(f"{path}: NVIDIA's runtime is linked into it", where="run",
                          hint="it asks the driver to prove that it is NVIDIA's; link with -cudart shared")
  if main is None: raise InvalidArgument(f"{path}: there is no main", hint="programs are not stripped")
  if int.from_bytes(data[16:18], "little") != 3:  # ET_DYN
    raise InvalidArgument(f"{path}: a program for one address", hint="compile with -fPIC -shared, or -pie")
  for name in ("libcuda.so.1", "libcudart.so.13"): ctypes.CDLL(name, ctypes.RTLD_GLOBAL)  # for those that name neither
  _copies(path, data, elf)
  at, flags = _flags(data)
  if flags & _DF_1_PIE: struct.pack_into("<Q", data, at, flags & ~_DF_1_PIE)
  file = os.memfd_create(os.path.basename(path), os.MFD_CLOEXEC)
  os.write(file, data)
  try: library = ctypes.CDLL(f"/proc/self/fd/{file}")
  except OSError as error: raise InvalidArgument(f"{path}: {error}") from None
  finally: os.close(file)
  def last(status: int, _: int) -> None:
    at_exit()
    atexit._run_exitfuncs()
  hook = Plain(last, ctypes.c_int, ctypes.c_void_p, failed=0)  # behind what the program has registered
  aborted = Plain(lambda number: at_exit(), ctypes.c_int, failed=0)  # abort ends the process when this returns
  words = [w.encode() for w in (path, *arguments)]
  argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
  _kept.extend((library, hook, aborted, argv))
  ctypes.CDLL(None).on_exit(ctypes.c_void_p(hook.address), None)
  ctypes.CDLL(None).signal(signal.SIGABRT, ctypes.c_void_p(aborted.address))
  if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # no Python runs while the program does
    signal.signal(signal.SIGINT, signal.SIG_DFL)
  try: entry = ctypes.cast(library.main, ctypes.c_void_p).value
  except AttributeError:  # it is in the table for debuggers alone
    entry = _base(library) + main.value
  function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(entry or 0)
  status = int(function(len(words), ctypes.addressof(argv)))
  ctypes.CDLL(None).exit(status)
  raise AssertionError("exit came back")


class _LinkMap(ctypes.Structure):
  """The start of struct link_map (link.h)."""
  _fields_ = (("address", ctypes.c_uint64),)


def _base(library: ctypes.CDLL) -> int:
  """Where a library was loaded: dlopen's handle is its link map."""
  return int(_LinkMap.from_address(library._handle).address)
