"""Groups of products of a warpgroup as LLVM IR: they are done when all of its warps have made theirs."""
from __future__ import annotations

from tinyhw.emulator.jit.ptx.memory import watched
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Block
from tinyhw.emulator.jit.ptx.routine import defined
from tinyhw.emulator.jit.values import Untranslatable
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore.wgmma import WARPS


def commit(g: Lanes) -> None:
  """wgmma.commit_group."""
  e = g.e
  for base, at, t in (("%state", layout.COMMITTED, "i32"), ("%context", layout.CHANGES, "i64")):
    place = g.pointer(base, at)
    e.do(f"store {t} {e.op(f'add {t} ' + e.op(f'load {t}, ptr {place}') + ', 1')}, ptr {place}")
  watched.products(g, None)


def committed() -> str:
  """Whether the other warps of a strand's warpgroup have committed so many groups as it has, but for %left."""
  return f"""
define private i1 @committed(ptr %context, ptr %state, i32 %left) noinline {{
  %strands.at = getelementptr i8, ptr %context, i64 {layout.STRANDS}
  %strands = load i64, ptr %strands.at
  %stride.at = getelementptr i8, ptr %context, i64 {layout.STRIDE}
  %stride = load i64, ptr %stride.at
  %own.at = getelementptr i8, ptr %state, i64 {layout.STRAND}
  %own.n = load i32, ptr %own.at
  %own = zext i32 %own.n to i64
  %first = and i64 %own, {-WARPS}
  %count.at = getelementptr i8, ptr %state, i64 {layout.COMMITTED}
  %count = load i32, ptr %count.at
  %wanted = sub i32 %count, %left
  br label %look
look:
  %k = phi i64 [ %first, %0 ], [ %k.next, %more ]
  %away = sub i64 %k, %own
  %offset = mul i64 %away, %stride
  %other = getelementptr i8, ptr %state, i64 %offset
  %status = load i32, ptr %other
  %ended = icmp eq i32 %status, {layout.END}
  %theirs.at = getelementptr i8, ptr %other, i64 {layout.COMMITTED}
  %theirs = load i32, ptr %theirs.at
  %enough = icmp sge i32 %theirs, %wanted
  %good = or i1 %ended, %enough
  br i1 %good, label %more, label %late
more:
  %k.next = add i64 %k, 1
  %in.group = and i64 %k.next, {WARPS - 1}
  %last = icmp eq i64 %in.group, 0
  %beyond = icmp uge i64 %k.next, %strands
  %over = or i1 %last, %beyond
  br i1 %over, label %done, label %look
done:
  ret i1 true
late:
  ret i1 false
}}
"""


def wait(g: Lanes, line: Line, after: Block | None) -> None:
  """wgmma.wait_group, where all threads of the warp are: strands that have to wait look again when others have run."""
  e = g.e
  left = operands.immediate(line, line.instruction.operands[0], "u32")
  if after is None or left is None: raise Untranslatable("at the end")
  g.flush()
  look, passed = e.new_label("look"), e.new_label("done")
  label = g.exit(layout.POLL, g.pc, g.lived[g.index] | after.live, flushed=True)
  g.resume(after, look)
  e.do(f"br label %{look}")
  e.start(look)
  defined(e, committed())
  good = e.op(f"call i1 @committed(ptr %context, ptr %state, i32 {int(left)})")
  e.do(f"br i1 {good}, label %{passed}, label %{label}")
  e.start(passed)
  watched.products(g, int(left))
  watched.synced(g)
  g.go(after)
