"""Copies by cp.async that are under way, in watched code, as LLVM IR: who may touch where they write.

Beside each cell of shared memory lies a second one, of the copy that wrote there last: its warp's number in the block
and 1, and the number of its group, from 1 (NUMBER bits). A store takes it away. A warp counts the groups that it has
committed, and knows up to which one it has waited. At a barrier it tells that to the block, in one of two rows, by
turns: those who still run before the barrier read the other one. So a copy is over for its own warp once that has
waited, for others once a barrier came behind the wait.

All warps' words are taken together: a copy of another warp is over where its group's number is no larger than the
smallest one that a warp with copies under way has told. That may suspect warps that commit unlike numbers of groups.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tinyhw.emulator.jit.ptx.module import layout

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.memory.watched import Cells
  from tinyhw.emulator.jit.ptx.module.emit import Lanes

NUMBER: Final = 26
_GROUP: Final = (1 << NUMBER) - 1
_ROW: Final = 4 * layout.WARPS  # bytes of the words that the warps of a block have told
_VECTOR: Final = f"<{layout.WARPS} x i32>"
_REDUCE: Final = f"llvm.vector.reduce.umin.v{layout.WARPS}i32"


def entered(g: Lanes) -> list[str]:
  """The text at a strand's entry, behind its epoch's: the largest group that is over for other warps."""
  g.e.declared[_REDUCE] = f"declare i32 @{_REDUCE}({_VECTOR})"
  return ["  %told.odd = and i32 %epoch, 1", f"  %told.offset = mul i32 %told.odd, {_ROW}",
          "  %told.now = getelementptr i8, ptr %told, i32 %told.offset",
          f"  %told.words = load {_VECTOR}, ptr %told.now, align 4",
          f"  %over = call i32 @{_REDUCE}({_VECTOR} %told.words)",
          "  %warp = add i32 %strand, 1", f"  %warp.bits = shl i32 %warp, {NUMBER}"]


def begun() -> list[str]:
  """The text where a block begins: no copy is known, no warp has one under way."""
  return ["  %copies.p = inttoptr i64 %copies to ptr",
          "  call void @llvm.memset.p0.i64(ptr %copies.p, i8 0, i64 %cells.size, i1 false)",
          f"  call void @llvm.memset.p0.i64(ptr %told, i8 -1, i64 {2 * _ROW}, i1 false)"]


def found() -> list[str]:
  """The text in front of that: where the words and the second cells are."""
  return [f"  %told = getelementptr i8, ptr %context, i64 {layout.TOLD}",
          f"  %copies.at = getelementptr i8, ptr %context, i64 {layout.COPIES}",
          "  %copies = load i64, ptr %copies.at"]


def met(g: Lanes, following: str) -> None:
  """A strand comes to a barrier, behind which the epoch `following` is: it tells what it has waited for."""
  e = g.e
  issued, waited = _word(g, layout.ISSUED), _word(g, layout.WAITED)
  some = e.op(f"icmp ugt i32 {issued}, {waited}")
  word = e.op(f"select i1 {some}, i32 {waited}, i32 -1")
  row = e.op(f"mul i32 {e.op(f'and i32 {following}, 1')}, {layout.WARPS}")
  at = e.op(f"getelementptr i32, ptr %told, i32 {e.op(f'add i32 {row}, %strand')}")
  e.do(f"store i32 {word}, ptr {at}")


def late(cells: Cells, copies: str) -> str:
  """Where a copy may be under way, by second cells."""
  waited = cells.splat(_word(cells.g, layout.WAITED))
  mine = cells.op("icmp eq", cells.op("lshr", copies, cells.every(NUMBER)), cells.splat("%warp"))
  over = cells.select(mine, waited, cells.splat("%over"))
  return cells.op("icmp ugt", cells.op("and", copies, cells.every(_GROUP)), over)


def issued(cells: Cells) -> str:
  """A copy begins: what the second cells of its bytes are then."""
  g, e = cells.g, cells.g.e
  group = e.op(f"add i32 {_word(g, layout.GROUPS)}, 1")
  e.do(f"store i32 {group}, ptr {g.pointer('%state', layout.ISSUED)}")
  return cells.splat(e.op(f"or i32 {group}, %warp.bits"))


def commit(g: Lanes) -> None:
  """cp.async.commit_group."""
  _committed(g)


def wait(g: Lanes, left: int | None) -> None:
  """cp.async.wait_group for all but the latest `left` groups; None: cp.async.wait_all, which commits too."""
  e = g.e
  if left is None: done = _committed(g)
  else:
    e.declared["llvm.usub.sat.i32"] = "declare i32 @llvm.usub.sat.i32(i32, i32)"
    done = e.op(f"call i32 @llvm.usub.sat.i32(i32 {_word(g, layout.GROUPS)}, i32 {left})")
  e.declared["llvm.umax.i32"] = "declare i32 @llvm.umax.i32(i32, i32)"
  latest = e.op(f"call i32 @llvm.umax.i32(i32 {_word(g, layout.WAITED)}, i32 {done})")
  e.do(f"store i32 {latest}, ptr {g.pointer('%state', layout.WAITED)}")


def _committed(g: Lanes) -> str:
  """The number of the group that ends here."""
  group = g.e.op(f"add i32 {_word(g, layout.GROUPS)}, 1")
  g.e.do(f"store i32 {group}, ptr {g.pointer('%state', layout.GROUPS)}")
  return group


def together(g: Lanes) -> None:
  """Groups are counted a warp: leave where threads of it are elsewhere."""
  if not g.block.waiting: return
  e, m = g.e, g.mask_type
  away, fine = g.deopt(), e.new_label("together")
  alone = e.op(f"icmp eq {m} {e.op(f'load {m}, ptr %alive')}, {g.active_bits}")
  e.do(f"br i1 {alone}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)


def _word(g: Lanes, at: int) -> str: return g.e.op(f"load i32, ptr {g.pointer('%state', at)}")
