"""The registry of witnesses: mnemonic -> what it computes for one lane, or what it does to a whole wave."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.tools.witness.softfloat import FORMATS, Format

Function = Callable[..., Any]


@dataclass(frozen=True)
class Mode:
  """MODE as meanings read it (RDNA3 ISA manual, section 3.4.2)."""
  value: int

  def rounding(self, f: Format) -> int: return self.value >> (0 if f.name == "f32" else 2) & 3

  def flushes_in(self, f: Format) -> bool: return not self.value >> (4 if f.name == "f32" else 6) & 1

  def flushes_out(self, f: Format) -> bool: return not self.value >> (5 if f.name == "f32" else 7) & 1

  @property
  def dx10(self) -> bool: return bool(self.value >> 8 & 1)

  @property
  def ieee(self) -> bool: return bool(self.value >> 9 & 1)


@dataclass(frozen=True)
class Witness:
  """What one lane of an instruction computes.

  `sources` and `results` are types: u, i (signed), b (bits) or f and a width; `m32` bits that neg and abs may change;
  `mask` a bit of a lane mask, `vcc` the same of VCC, `scc`, `exec`; `d:T` the old destination. Integers come as
  Python's with their sign, floats as patterns. Integer results may leave their type: they wrap, or saturate with
  clamp. A function with `mode` takes the Mode first; it may return a list of allowed results. `ulp` and `absolute`: how
  far a float result may be off. `rounds`: MODE's rounding and denormal bits count. `packed`: for both halves. `clamps`:
  the clamp bit means something.
  """
  mnemonic: str
  sources: tuple[str, ...]
  results: tuple[str, ...]
  function: Function
  kind: str
  mode: bool = False
  ulp: float = 0
  absolute: float = 0.0
  rounds: bool = False
  packed: bool = False
  clamps: bool = True


@dataclass(frozen=True)
class WaveWitness:
  """What an instruction does to the state of all waves: `function(state, instruction)`.

  `forms` cases of each encoding: `fields(encoder, k)` sets the fields of the k-th, `prepare(state, instruction, rng)`
  what it reads. `lanes` are the wave sizes in turn.
  """
  mnemonic: str
  function: Function
  kind: str
  prepare: Callable[..., Any] | None = None
  fields: Callable[..., Any] | None = None
  forms: int = 4
  lanes: tuple[int, ...] = ()
  waves: int = 2

  def forms_of(self, row: Any) -> int:
    """How many cases an encoding gets."""
    return self.forms


class Witnesses:
  """Witnesses by mnemonic; `isa` names the instruction table that a row is only for."""

  def __init__(self) -> None: self._rows: dict[tuple[str, str], Witness | WaveWitness] = {}

  def lane(self, mnemonics: str, signature: str, function: Function, kind: str = "Python integers", *, isa: str = "",
           **options: Any) -> None:
    """Register a function of one lane: signature "f32 f32 -> f32"."""
    packed = signature.startswith("pk ")
    before, _, after = signature.removeprefix("pk ").partition("->")
    for name in mnemonics.split():
      row = Witness(name, tuple(before.split()), tuple(after.split()), function, kind, packed=packed, **options)
      self._add(isa, row)

  def wave(self, mnemonics: str, kind: str = "Python integers", *, isa: str = "",
           **options: Any) -> Callable[[Function], Function]:
    """Decorator: the function changes the state of all waves as these instructions do."""
    def register(function: Function) -> Function:
      for name in mnemonics.split(): self._add(isa, WaveWitness(name, function, kind, **options))
      return function
    return register

  def _add(self, isa: str, row: Witness | WaveWitness) -> None:
    for generation in isa.split() or [""]:
      if (generation, row.mnemonic) in self._rows: raise InvalidArgument(f"a second witness of {row.mnemonic}")
      self._rows[generation, row.mnemonic] = row

  def get(self, mnemonic: str, isa: str) -> Witness | WaveWitness | None:
    """The witness of an instruction of a table ("gfx11")."""
    return self._rows.get((isa, mnemonic)) or self._rows.get(("", mnemonic))

  def names(self) -> Iterator[tuple[str, str]]:
    """(table or "", mnemonic) of every row."""
    return iter(self._rows)


WITNESSES: Final = Witnesses()
EXACT: Final = "exact rational arithmetic, rounded once"
MPMATH: Final = "mpmath"


@cache
def width_of(type_: str) -> int:
  """Bits of a type."""
  return 32 if type_ == "v2f16" else int(type_.removeprefix("d:").lstrip("uibfm"))


@cache
def format_of(type_: str) -> Format | None:
  """The float format of a type, None for an integer."""
  return FORMATS.get(type_.removeprefix("d:"))
