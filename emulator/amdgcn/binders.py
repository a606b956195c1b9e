"""The tables of instructions that no meaning's signature binds: those with a step of their own, and ends of blocks.

    @binds("v_readlane_b32")
    def readlane(i: Instruction, pc: int, mode: int) -> Step: ...

    @ends("s_alloc_vgpr", isa="gfx12")
    def allocate(i: Instruction, pc: int) -> Ender: ...

`all_tables` imports whatever registers here.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from tinyhw.core.errors import LayoutError, Unsupported
from tinyhw.emulator.simt import Group, Next, Step
from tinyhw.isa.amdgcn import MEMBERS, Instruction

F = TypeVar("F", bound=Callable[..., object])
Binder = Callable[[Instruction, int, int], Step]  # an instruction, its PC, MODE
Ender = Callable[[Group], Next]  # where a group goes on
EndBinder = Callable[[Instruction, int], Ender]


class Binders(Generic[F]):
  """Mnemonics to binders; with `isa`, of one instruction table alone, and before those of all."""

  def __init__(self, what: str) -> None:
    self.what = what
    self._rows: dict[tuple[str, str], F] = {}

  def __call__(self, *mnemonics: str, isa: str = "") -> Callable[[F], F]:
    """Decorator: the function binds these. Raises LayoutError for one that is taken."""
    def register(function: F) -> F:
      for mnemonic in mnemonics:
        if (isa, mnemonic) in self._rows: raise LayoutError(f"{self.what} of {mnemonic} is registered twice", where=isa)
        self._rows[isa, mnemonic] = function
      return function
    return register

  def get(self, mnemonic: str, isa: str) -> F | None:
    """The binder of a mnemonic in an instruction table: a later member's own, else its generation's, else of all."""
    own = self._rows.get((isa, mnemonic))
    if own is None and isa in MEMBERS: own = self._rows.get((MEMBERS[isa], mnemonic))
    return own or self._rows.get(("", mnemonic))


binds: Final[Binders[Binder]] = Binders("the step")
ends: Final[Binders[EndBinder]] = Binders("the end")

# Whether MODE makes an instruction something else, and how that is bound, from the binder of what it is otherwise; by
# instruction table.
Altered = Callable[[Instruction, int, int, Callable[[Instruction, int, int], Step | None]], Step | None]
ALTERED_OF: Final[dict[str, tuple[Callable[[Instruction, int], bool], Altered]]] = {}


def altered(i: Instruction, mode: int) -> Altered | None:
  """How an instruction is bound that MODE makes something else; None where it does not."""
  found = ALTERED_OF.get(i.isa)
  return found[1] if found is not None and found[0](i, mode) else None


def unsupported(i: Instruction, pc: int, why: str = "") -> Unsupported:
  """The error for an instruction without meaning, with its bytes and PC."""
  what = f" ({why})" if why else ""
  return Unsupported("instruction", i.mnemonic + what, where=f"PC {pc:#x}, bytes {i.data.hex()}")
