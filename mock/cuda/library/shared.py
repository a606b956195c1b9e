"""A shared library (ELF, x86-64) whose functions jump through a table, which whoever loads it fills.

So a program that loads the library, by its path or by the name that it goes under once it is loaded (DT_SONAME), calls
functions of this process through the system's own linker, as it would a vendor's library.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Sequence
from typing import Any, Final

from tinyhw.core.called import Called, Plain
from tinyhw.core.errors import Unsupported

TABLE: Final = "tinyhw_table"
PAGE: Final = 4096
_STUB: Final = 8  # bytes: jmp *offset(%rip), padded
_EHDR, _PHDR, _SHDR = 64, 56, 64
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_DT = {"NULL": 0, "HASH": 4, "STRTAB": 5, "SYMTAB": 6, "STRSZ": 10, "SYMENT": 11, "INIT": 12, "SONAME": 14,
       "VERSYM": 0x6FFFFFF0, "VERDEF": 0x6FFFFFFC, "VERDEFNUM": 0x6FFFFFFD}
_VERDEF: Final = struct.Struct("<4H3I2I")  # of Elf64_Verdef and the one Elf64_Verdaux behind it
_FUNCTION, _OBJECT = 0x12, 0x11  # STB_GLOBAL with STT_FUNC, STT_OBJECT
_TEXT, _DATA, _DYNSYM, _DYNSTR = 1, 2, 3, 4  # sections


def _hash(name: bytes) -> int:
  """The System V ABI's hash of a symbol's name."""
  h = 0
  for c in name:
    h = (h << 4) + c
    h ^= (h & 0xF000_0000) >> 24
    h &= 0x0FFF_FFFF
  return h


def _aligned(at: int, unit: int) -> int:
  return -(-at // unit) * unit


def _sections(rows: Sequence[tuple[str, int, int, int, int, int, int, int]], at: int) -> tuple[bytes, int, int]:
  """The table of sections, which linkers read, and its names behind it; where the table is and how many they are.

  A row is a name, type, flags, place, size, the section it is linked to, its information and its entries' size.
  """
  names = bytearray(b"\0")
  headers = [bytes(_SHDR)]
  for name, kind, flags, place, size, link, info, entry in (*rows, (".shstrtab", 3, 0, 0, 0, 0, 0, 0)):
    here = len(names)
    names += name.encode() + b"\0"
    if name == ".shstrtab": place, size = at, len(names)
    address = place if flags else 0
    headers.append(struct.pack("<2I4Q2I2Q", here, kind, flags, address, place, size, link, info, 1, entry))
  table_at = _aligned(at + len(names), 8)
  return bytes(names).ljust(table_at - at, b"\0") + b"".join(headers), table_at, len(headers)


def library(soname: str, names: Sequence[str], version: str | None = None, start: bytes = b"") -> bytes:
  """The file: each name is a function that jumps to the address in its place of the table; `version` is what binaries
  that were linked with the vendor's library call its symbols' version; `start` is code that is called when it
  is loaded, with argc, argv and the environment (glibc)."""
  strings, offsets = bytearray(b"\0"), {}
  for name in dict.fromkeys((soname, TABLE, *names, *((version,) if version else ()))):
    offsets[name] = len(strings)
    strings += name.encode() + b"\0"
  count = len(names) + 2  # the first symbol is none
  chains, buckets = [0] * count, [0] * max(1, count // 2)
  for i, name in enumerate((TABLE, *names), 1):
    at = _hash(name.encode()) % len(buckets)
    chains[i], buckets[at] = buckets[at], i
  hashes = struct.pack(f"<2I{len(buckets)}I{count}I", len(buckets), count, *buckets, *chains)
  symbols_at = _aligned(_EHDR + 5 * _PHDR, 16)
  strings_at = symbols_at + 24 * count
  hash_at = _aligned(strings_at + len(strings), 16)
  versions, definitions = b"", b""
  if version is not None:  # the first definition is the file's own
    versions = struct.pack(f"<{count}H", 0, *[2] * (count - 1))
    for i, (name, more) in enumerate(((soname, _VERDEF.size), (version, 0)), 1):
      definitions += _VERDEF.pack(1, int(i == 1), i, 1, _hash(name.encode()), 20, more, offsets[name], 0)
  versions_at = _aligned(hash_at + len(hashes), 16)
  definitions_at = _aligned(versions_at + len(versions), 16)
  read_only = definitions_at + len(definitions)
  text_at = _aligned(read_only, PAGE)
  start_at = text_at + _STUB * len(names)
  dynamic_at = _aligned(start_at + len(start), PAGE)
  dynamic = [("SONAME", offsets[soname]), ("HASH", hash_at), ("STRTAB", strings_at), ("SYMTAB", symbols_at),
             ("STRSZ", len(strings)), ("SYMENT", 24),
             *((("VERSYM", versions_at), ("VERDEF", definitions_at), ("VERDEFNUM", 2)) if version else ()),
             *((("INIT", start_at),) if start else ()), ("NULL", 0)]
  table_at = _aligned(dynamic_at + 16 * len(dynamic), 16)
  end = table_at + 8 * len(names)
  symbols = bytearray(24)
  symbols += struct.pack("<IBBHQQ", offsets[TABLE], _OBJECT, 0, _DATA, table_at, 8 * len(names))
  text = bytearray()
  for i, name in enumerate(names):
    here = text_at + _STUB * i
    symbols += struct.pack("<IBBHQQ", offsets[name], _FUNCTION, 0, _TEXT, here, _STUB)
    text += b"\xff\x25" + struct.pack("<i", table_at + 8 * i - here - 6) + b"\xcc\xcc"
  text = text.ljust(start_at - text_at, b"\xcc") + start
  segments = [(_PT_LOAD, 4, 0, read_only), (_PT_LOAD, 5, text_at, len(text)),
              (_PT_LOAD, 6, dynamic_at, end - dynamic_at), (_PT_DYNAMIC, 6, dynamic_at, 16 * len(dynamic)),
              (_PT_GNU_STACK, 6, 0, 0)]
  # name, type, flags (written 1, allocated 2, executed 4), place, size, link, information, size of an entry
  rows = [(".text", 1, 6, text_at, len(text), 0, 0, 0), (".data", 1, 3, table_at, 8 * len(names), 0, 0, 0),
          (".dynsym", 11, 2, symbols_at, len(symbols), _DYNSTR, 1, 24),
          (".dynstr", 3, 2, strings_at, len(strings), 0, 0, 0), (".hash", 5, 2, hash_at, len(hashes), _DYNSYM, 0, 4),
          (".dynamic", 6, 3, dynamic_at, 16 * len(dynamic), _DYNSTR, 0, 16)]
  if version is not None:
    rows += [(".gnu.version", 0x6FFFFFFF, 2, versions_at, len(versions), _DYNSYM, 0, 2),
             (".gnu.version_d", 0x6FFFFFFD, 2, definitions_at, len(definitions), _DYNSTR, 2, 0)]
  sections, sections_at, count = _sections(rows, end)
  out = bytearray(end)
  out[:16] = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
  struct.pack_into("<HHIQQQIHHHHHH", out, 16, 3, 62, 1, 0, _EHDR, sections_at, 0, _EHDR, _PHDR, len(segments), _SHDR,
                   count, count - 1)
  for i, (kind, flags, at, size) in enumerate(segments):
    struct.pack_into("<IIQQQQQQ", out, _EHDR + _PHDR * i, kind, flags, at, at, at, size, size,
                     PAGE if kind == _PT_LOAD else 16)
  for at, data in ((symbols_at, symbols), (strings_at, strings), (hash_at, hashes), (versions_at, versions),
                   (definitions_at, definitions), (text_at, text)):
    out[at : at + len(data)] = data
  for i, (tag, value) in enumerate(dynamic):
    struct.pack_into("<QQ", out, dynamic_at + 16 * i, _DT[tag], value)
  return bytes(out) + sections


_forever: Final[list[Any]] = []  # a library is never unloaded, so what it jumps to stays


class Loaded:
  """A library in this process, for as long as that lives. `fill` says what its functions are. The linker knows one
  library by a name, so each is loaded once."""

  def __init__(self, soname: str, names: Sequence[str], version: str | None = None) -> None:
    if platform.machine() != "x86_64":
      raise Unsupported("a stand-in for a library on", platform.machine(), where="mock")
    self.names = {name: i for i, name in enumerate(names)}
    self._fd = os.memfd_create(soname, os.MFD_CLOEXEC)
    os.write(self._fd, library(soname, names, version))
    self.path = f"/proc/self/fd/{self._fd}"
    self.library = ctypes.CDLL(self.path)
    self._table = (ctypes.c_uint64 * len(names)).in_dll(self.library, TABLE)
    _forever.append(self)

  def fill(self, name: str, function: Called | Plain) -> None:
    """Have calls of `name` go to a function."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(function))  # also while Python takes its modules down
    self._table[self.names[name]] = function.address

  def hand_on(self, name: str, address: int) -> None:
    """Have calls of `name` go to a function of another library, without Python."""
    self._table[self.names[name]] = address

  def address(self, name: str) -> int:
    """Where a function of the library is."""
    return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0
