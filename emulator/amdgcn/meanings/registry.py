"""The table of meanings: vendor mnemonic -> signature and pure function."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tinyhw.core.table import Handlers
from tinyhw.isa.amdgcn import MEMBERS

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True)
class Meaning:
  """What an instruction computes.

  A signature reads `results(sources)`. Types: u16 i16 f16 u32 i32 f32 u64 i64 f64 in registers; `mask` a bool for each
  lane, from an SGPR operand or VCC; `vcc` the same, always VCC; `scc` one bool for each wave; `exec` a result for EXEC.
  A source with `d:` is the old destination, one with `i:` a field of the instruction (0 where its form has none) and
  one with `mode:` a field of MODE, both u32 constants.
  A signature that begins with `pk ` works on both halves of its registers, or on two registers of f32.
  `exact` is False where the hardware's result is only given to some ULP and this one is computed in f64 and rounded.
  """
  mnemonic: str
  results: tuple[str, ...]
  sources: tuple[str, ...]
  function: Function
  packed: bool = False
  exact: bool = True


class Meanings:
  """A registry; registering a mnemonic twice is refused."""

  def __init__(self) -> None:
    self._tables: dict[str, Handlers[str]] = {}
    self._meanings: dict[tuple[str, str], Meaning] = {}

  def __call__(self, mnemonics: str, signature: str, *, exact: bool = True,
               isa: str = "") -> Callable[[F], F]:
    """Decorator: the function is the meaning of these mnemonics (separated by spaces).

    With `isa`, the name of an instruction table ("gfx12"), only there, and before a meaning that counts everywhere.
    """
    packed = signature.startswith("pk ")
    m = re.fullmatch(r"(.*)\((.*)\)", signature.removeprefix("pk "))
    assert m, signature
    results = tuple(t.strip() for t in m[1].split(",") if t.strip())
    sources = tuple(t.strip() for t in m[2].split(",") if t.strip())

    def register(function: F) -> F:
      table = self._tables.setdefault(isa, Handlers(f"{isa} instruction".strip()))
      for name in mnemonics.split():
        table.handles(name)(function)
        self._meanings[isa, name] = Meaning(name, results, sources, function, packed, exact)
      return function
    return register

  def get(self, mnemonic: str, isa: str = "") -> Meaning | None:
    """The meaning of a mnemonic of the instruction table `isa`: of a later member of a generation ("gfx950") its own,
    else the generation's; without one, what counts everywhere."""
    own = self._meanings.get((isa, mnemonic))
    if own is None and isa in MEMBERS: own = self._meanings.get((MEMBERS[isa], mnemonic))
    return own or self._meanings.get(("", mnemonic))

  def __iter__(self) -> Any: return iter(self._meanings.values())

  def __len__(self) -> int: return len(self._meanings)


MEANINGS: Final = Meanings()
