"""Machine code of AMD's as lines of LLVM's text: of a range of bytes, of a code object."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyhw.arch import generation
from tinyhw.core.errors import DecodeError
from tinyhw.isa.amdgcn import Instruction, table
from tinyhw.wire.codeobject import load

UNKNOWN = "<unknown>"


@dataclass(frozen=True)
class Shown:
  """One instruction of a listing: its address, its bytes in hex, its text.

  `ignored` names the bits, as a mask in hex, that the chip ignores and that `tinyhw asm` would set otherwise.
  """
  symbol: str
  address: int
  bytes: str
  text: str
  ignored: str = ""


def one(code: bytes, isa: str) -> Shown:
  """The bytes of exactly one instruction, or <unknown>."""
  try: found = table(isa).decode(code)
  except DecodeError: return Shown("", 0, code.hex(), UNKNOWN)
  if found.size != len(code): return Shown("", 0, code.hex(), UNKNOWN)
  return Shown("", 0, code.hex(), str(found), mark(found))


def mark(instruction: Instruction) -> str:
  """The mask of ignored bits that are not as `tinyhw asm` sets them: "" for nearly all instructions."""
  return f"{instruction.spare:#x}" if instruction.spare else ""


def comment(shown: Shown) -> str:
  """The text, with its mark where it has one."""
  return f"{shown.text}  // ignored bits {shown.ignored}" if shown.ignored else shown.text


def listing(code: bytes, isa: str, address: int, symbols: dict[int, str]) -> Iterator[Shown]:
  """All instructions of a range; a dword that is none is shown as <unknown>."""
  at, symbol = 0, ""
  while at < len(code):
    symbol = symbols.get(address + at, symbol)
    ends = min((a for a in symbols if a > address + at), default=address + len(code)) - address
    try:
      found = table(isa).decode(code[:ends], at, where=address + at)
      size, text, ignored = found.size, str(found), mark(found)
    except DecodeError: size, text, ignored = min(4, ends - at), UNKNOWN, ""
    yield Shown(symbol, address + at, code[at:at + size].hex(), text, ignored)
    at += size


def code_object(data: bytes) -> list[Shown]:
  """The kernels and functions of a code object, by address."""
  loaded = load(data)
  isa = generation(loaded.arch).table
  names = {loaded.kernels[k].entry_offset: loaded.kernels[k].name.removesuffix(".kd") for k in loaded.kernels}
  out: list[Shown] = []
  for segment in loaded.segments:
    if not segment.executable: continue
    end = segment.offset + segment.size
    inside = {a: n for n, a in loaded.symbols.items() if segment.offset <= a < end} | names
    out += listing(loaded.image[segment.offset:end], isa, segment.offset, inside)
  return out
