"""What no run of a kernel can do wrong with registers of wgmma, by all of its paths: the rules of `waits`."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tinyhw.emulator.check.ptx.effects import Effects
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.module.scope import Line

WRITES, READS, DIRTY = range(3)
_OLDEST: Final = 16  # groups, that a wait may leave

# of a register what products do to it, or others did since the last fence: how many groups have been committed since
State = dict[tuple[int, int], int]


def unready(lines: Sequence[Line], does: dict[int, Effects], following: Callable[[int], Iterable[int]]) -> str:
  """A register of wgmma that may be touched before its product is done, or is written with no fence, in words; ""."""
  products = frozenset(r for d in does.values() if _product(d) for r in (*d.results, *d.pieces))
  if not products: return ""
  known: dict[int, State] = {0: {}}
  todo = [0]
  while todo:
    k = todo.pop()
    after = _after(known[k], does[k], lines[k], products)
    for t in following(k):
      if t not in does: continue
      before = known.get(t)
      now = after if before is None else {key: min(before.get(key, _OLDEST), after.get(key, _OLDEST))
                                          for key in before.keys() | after.keys()}
      if now == before: continue
      known[t] = now
      todo.append(t)
  return next((f"a register of {lines[k].instruction.name} is ready" for k, state in known.items()
               if _early(state, does[k])), "")


def _product(d: Effects) -> bool: return d.opcode == "wgmma" and "mma_async" in d.modifiers


def _early(state: State, d: Effects) -> bool:
  """Whether an instruction touches what is under way, or a product what had no fence; groups under a guard."""
  if d.opcode == "wgmma" and d.guard is not None: return True
  if _product(d): return any((r, READS) in state or (r, DIRTY) in state for r in d.results) or any(
    (r, kind) in state for r in d.pieces for kind in (WRITES, DIRTY))
  return any((r, WRITES) in state for r in (*d.addresses, *d.read, *d.results)) or any(
    (r, READS) in state for r in d.results)


def _after(state: State, d: Effects, line: Line, products: frozenset[int]) -> State:
  m = d.modifiers
  if d.opcode != "wgmma":
    dirty = {(r, DIRTY): 0 for r in d.results if r in products}
    return {**state, **dirty} if dirty else state
  if "fence" in m: return {key: age for key, age in state.items() if key[1] != DIRTY}
  if "commit_group" in m: return {key: min(age + 1, _OLDEST) if key[1] != DIRTY else age for key, age in state.items()}
  if "wait_group" in m:
    left = int(operands.immediate(line, line.instruction.operands[0], "u32") or 0)
    return {key: age for key, age in state.items() if key[1] == DIRTY or age <= left}
  return {**state, **{(r, WRITES): 0 for r in d.results}, **{(r, READS): 0 for r in d.pieces}}
