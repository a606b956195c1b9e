"""Clusters as LLVM IR: the barrier of a cluster, addresses of other blocks' shared memory."""
from __future__ import annotations

from tinyhw.emulator.jit.ptx.memory import access, watched
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Block, Info
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import U32
from tinyhw.isa.ptx.forms import SIZES, Form


def barrier(g: Lanes, line: Line, after: Block | None) -> None:
  """barrier.cluster.arrive and .wait, by all threads of a warp; the runner ends the phase."""
  e, m = g.e, g.mask_type
  if after is None: raise Untranslatable("at the end")
  g.phases = True
  away = g.deopt()
  arrives = "arrive" in line.instruction.modifiers

  def word(at: int) -> str: return e.op(f"load i32, ptr {g.pointer('%state', at)}")
  good = e.op(f"icmp eq i32 {word(layout.ARRIVED)}, 0") if arrives else e.op(f"icmp sge i32 {word(layout.TICKET)}, 0")
  if g.block.waiting:
    alone = e.op(f"icmp eq {m} {e.op(f'load {m}, ptr %alive')}, {e.op(f'load {m}, ptr %active')}")
    good = e.op(f"and i1 {good}, {alone}")
  fine = e.new_label("together")
  e.do(f"br i1 {good}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)
  if arrives:
    if "relaxed" not in line.instruction.modifiers: watched.arrives(g)
    e.do(f"store i32 1, ptr {g.pointer('%state', layout.ARRIVED)}")
    e.do(f"store i32 {word(layout.PHASE)}, ptr {g.pointer('%state', layout.TICKET)}")
    g.flush()
    return g.go(after)
  over = e.op(f"icmp slt i32 {word(layout.TICKET)}, {word(layout.PHASE)}")
  label = g.exit(layout.CLUSTER_BARRIER, g.pc, g.lived[g.index] | after.live)
  g.resume(after)
  passed = e.new_label("passed")
  e.do(f"br i1 {over}, label %{passed}, label %{label}")
  e.start(passed)
  watched.passes(g)
  g.flush()
  g.go(after)
  return None


def _inside(g: Lanes, at: Value, good: Value) -> None:
  """Leave where threads do not have what is good."""
  e = g.e
  if good.wide: text = e.op(f"icmp eq {g.mask_type} {g.bits(~good & g.active)}, 0")
  else: text = good.text
  fine = e.new_label("inside")
  e.do(f"br i1 {text}, label %{fine}, label %{g.deopt()}, !prof !1")
  e.start(fine)


def _in_shared(g: Lanes, form: Form, at: Value) -> None:
  if spaces.space_of(form.modifiers) == spaces.GENERIC:
    _inside(g, at, at - spaces.SHARED_WINDOW < spaces.WINDOW)


@access.emits("mapa")
def mapa(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """The address in another block of what lies at an address here."""
  i, t = line.instruction, form.type
  if i.predicate is not None: raise Untranslatable("under a predicate")
  at = operands.reader(g.code, line, i.operands[1], t)(g)
  rank = operands.reader(g.code, line, i.operands[2], "u32")(g)
  size = Value(g.e, "%cluster_nctarank" if g.plan.clustered else "1", U32, False)
  _inside(g, at, rank < size)
  _in_shared(g, form, at)
  keep = ~(0xFF << spaces.RANK) & (1 << 8 * SIZES[t]) - 1
  value = at & keep  # the block's own, which needs no rank where it is alone
  if g.plan.clustered:
    value = g.o.where(size == 1, value, value | convert(rank + 1, at.dtype) << spaces.RANK)
  operands.writer(g.code, line, i.operands[0], t)(g, value)


@access.emits("getctarank")
def getctarank(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """The rank of the block that an address of shared::cluster is in."""
  i, t = line.instruction, form.type
  if i.predicate is not None: raise Untranslatable("under a predicate")
  at = operands.reader(g.code, line, i.operands[1], t)(g)
  _in_shared(g, form, at)
  field = convert(at >> spaces.RANK, U32) & 0xFF
  own = Value(g.e, "%cluster_ctarank" if g.plan.clustered else "0", U32, False)
  rank = g.o.where(field == 0, own, field - 1)
  operands.writer(g.code, line, i.operands[0], "u32")(g, rank)
