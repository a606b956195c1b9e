"""Text that acts for the threads of a warp one after the other, the lowest first."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tinyhw.emulator.jit.values import Emitter


@dataclass(frozen=True)
class Turn:
  """One thread's: its lane, the bits of those that are left, it among them, and the label behind all turns."""
  lane: str
  left: str
  over: str


@contextmanager
def turns(e: Emitter, bits: str) -> Iterator[Turn]:
  """The text of a turn for each thread of a mask of 32 bits. What it computes is not at hand behind it."""
  turn, act, then, over = (e.new_label(x) for x in ("turn", "act", "then", "over"))
  before, side, e.side = e.label, e.side, True
  e.do(f"br label %{turn}")
  e.start(turn)
  left = e.op(f"phi i32 [ {bits}, %{before} ], [ %{then}.rest, %{then} ]")
  e.do(f"br i1 {e.op(f'icmp eq i32 {left}, 0')}, label %{over}, label %{act}")
  e.start(act)
  e.declared["llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1)"
  yield Turn(e.op(f"call i32 @llvm.cttz.i32(i32 {left}, i1 true)"), left, over)
  e.do(f"br label %{then}")
  e.start(then)
  e.lines.append(f"  %{then}.less = sub i32 {left}, 1")
  e.lines.append(f"  %{then}.rest = and i32 {left}, %{then}.less")
  e.do(f"br label %{turn}")
  e.start(over)
  e.side = side


__all__ = ["Turn", "turns"]
