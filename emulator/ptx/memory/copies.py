"""Asynchronous copies, all made at once: cp.async, cp.async.bulk, cp.reduce.async.bulk, st.async, red.async.

What waits for them by a group has nothing to wait for; an mbarrier is told of the bytes when they have come.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, need, unknown
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.meanings import convert
from tinyhw.emulator.ptx.memory import mbarrier
from tinyhw.emulator.ptx.memory import spaces as memory
from tinyhw.emulator.ptx.memory.addresses import address, guarded
from tinyhw.emulator.ptx.memory.ranges import Thread, threads
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.ops import B, Operations, Ops
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Operand

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

_CLEARED: Final = 1 << 24  # bytes that st.bulk clears at the most


def reduction(modifiers: frozenset[str]) -> str:
  """What an instruction combines elements by; "" for one that copies them."""
  if not modifiers & {"reduce", "red"}: return ""
  return next((x for x in ("add", "min", "max", "inc", "dec", "and", "or", "xor") if x in modifiers), "")


def small(code: Code, line: Line, form: Form) -> Step:
  """cp.async of 4, 8 or 16 bytes; where fewer are read, or the source is ignored, zeros follow."""
  i = line.instruction
  size = operands.immediate(line, i.operands[2], "u32") if len(i.operands) > 2 else None
  width = 0 if size is None else int(size)
  if width not in {4, 8, 16} or "cg" in form.modifiers and width != 16:
    raise DecodeError(f"{i.name} copies 4, 8 or 16 bytes", where=where(line))
  to, source = address(code, line, i.operands[0], "shared"), address(code, line, i.operands[1], "global")
  limited = len(i.operands) - ("L2::cache_hint" in form.modifiers) > 3
  limit = _limit(code, line, i.operands[3], width) if limited else None

  def copied(group: Warps) -> None:
    if limit is None:
      return memory.store(group, "shared", to(group), memory.load(group, "global", source(group), width), width)
    given = operands.full(group, limit(group))
    shape = (group.size, LANES, 4) if width == 16 else (group.size, LANES)
    out: Value = np.zeros(shape, np.uint32 if width == 16 else np.dtype(f"u{width}"))
    raw = out.view(np.uint8).reshape(group.size, LANES, width)
    mask, lanes = group.mask, group.lanes
    try:
      for n in np.unique(given[lanes]).tolist():
        here = lanes & (given == n)
        group.mask = here
        at = source(group)
        if n >= width:
          found = memory.load(group, "global", at, width)
          raw[here] = np.broadcast_to(np.ascontiguousarray(found), shape)[here].view(np.uint8).reshape(-1, width)
        else:
          for k in range(n):
            byte = memory.load(group, "global", at + at.dtype.type(k), 1)
            raw[..., k][here] = np.broadcast_to(byte, (group.size, LANES))[here]
    finally: group.mask = mask
    memory.store(group, "shared", to(group), out, width)
  return guarded(line, copied)


def _limit(code: Code, line: Line, operand: Operand, width: int) -> Callable[[Warps], Value]:
  """How many bytes are read: a number, or none where a predicate says to ignore the source."""
  r = operands.register(line, operand)
  if r is None or r.type != "pred": return operands.reader(code, line, operand, "u32")
  ignore = operands.reader(code, line, operand, "pred")
  return lambda group: np.where(ignore(group), np.uint32(0), np.uint32(width))


# ---- in bulk

def ends(line: Line) -> tuple[str, str]:
  """The state spaces that a bulk copy writes and reads, in the order of its modifiers."""
  found = [memory.space_of(frozenset({m})) for m in line.instruction.modifiers
           if m.partition("::")[0] in {"shared", "global"}]
  return found[0], found[1]


def told(thread: Thread, at: int, space: str, count: int, blocks: list[int] | None) -> None:
  """Have the mbarrier at an address know of bytes; of a multicast, those at its place in the other blocks."""
  slot, offset = thread.shared(space, at)
  for block in [slot] if blocks is None else blocks:
    mbarrier.signal(thread.group, thread.row, thread.lane, block, offset, count)


def multicast(thread: Thread, mask: int) -> list[int]:
  """The blocks of the cluster that a mask names."""
  if not mask: raise thread.fault("a copy to no block of the cluster")
  return [thread.block(k) for k in range(16) if mask >> k & 1]


def bulk(code: Code, line: Line, form: Form) -> Step:
  """cp.async.bulk and cp.reduce.async.bulk of bytes that lie together."""
  i, m = line.instruction, form.modifiers
  if "cp_mask" in m: raise unknown(line)
  target, source = ends(line)
  to, of = address(code, line, i.operands[0], target), address(code, line, i.operands[1], source)
  size = operands.reader(code, line, i.operands[2], "u32")
  barrier = address(code, line, i.operands[3], "shared") if "bulk_group" not in m else None
  mask = operands.reader(code, line, i.operands[4], "u16") if "multicast::cluster" in m else None
  operation = reduction(m)

  def run(group: Warps) -> None:
    given = [None if r is None else operands.full(group, r(group)) for r in (to, of, size, barrier, mask)]
    for t in threads(group):
      k = t.row, t.lane
      a, b, n, at, named = (None if x is None else int(x[k]) for x in given)
      assert a is not None and b is not None and n is not None
      if n % 16 or a % 16 or b % 16:
        raise t.fault(f"a bulk copy of {n} bytes from {b:#x} to {a:#x}: size and addresses are multiples of 16")
      t.how = "bulk_group" if at is None else "mbarrier"
      data = t.read(source, b, n)
      blocks = None if named is None else multicast(t, named)
      if operation:
        t.combines = True
        raw = operands.dtype_of(form.type)
        old = t.read(target, a, n).view(raw)
        data = np.ascontiguousarray(combined(Ops, operation, form.type, old, data.view(raw))).view(np.uint8)
      if blocks is None: t.write(target, a, data)
      else:
        _, offset = t.shared(target, a)
        for block in blocks:
          t.show("lds", "store", offset, n, block)
          t.span(block, offset, n, "write")[:] = data
        group.cohort.changes.count += 1
      if at is not None: told(t, at, "shared", n, blocks)
  return guarded(line, run)


def cleared(code: Code, line: Line, form: Form) -> Step:
  """st.bulk: zeros in shared memory."""
  i = line.instruction
  need(line, 3)
  space = memory.space_of(form.modifiers)
  to, value = address(code, line, i.operands[0], space), operands.immediate(line, i.operands[2], "u64")
  if value is None or int(value): raise DecodeError(f"{i.name} stores 0", where=where(line))
  r = operands.register(line, i.operands[1])
  size = operands.reader(code, line, i.operands[1], "u32" if r is not None and SIZES[r.type] == 4 else "u64")

  def run(group: Warps) -> None:
    ats, sizes = operands.full(group, to(group)), operands.full(group, size(group))
    for t in threads(group):
      at, n = int(ats[t.row, t.lane]), int(sizes[t.row, t.lane])
      if n % 8 or n > _CLEARED: raise t.fault(f"{i.name} of {n:,} bytes: a multiple of 8, {_CLEARED:,} at most", at)
      if t.near(space, at) != "shared": raise t.fault(f"{i.name} outside of shared memory: {at:#x}", at)
      if n: t.write(space, at, np.zeros(n, np.uint8))
  return guarded(line, run)


def combined(o: Operations[B], operation: str, t: str, old: B, new: B) -> B:
  """Elements of a type, reduced."""
  if operation in {"and", "or", "xor"}:
    raw = operands.unsigned(old.dtype.itemsize)
    a, b = old.view(raw), new.view(raw)
    return (a & b if operation == "and" else a | b if operation == "or" else a ^ b).view(old.dtype)
  if operation == "inc": return o.where(old >= new, old & 0, old + 1)
  if operation == "dec": return o.where((old == 0) | (old > new), new, old - 1)
  if t == "bf16":
    x, y = convert.f32_of_bf16(o, old), convert.f32_of_bf16(o, new)
    return convert.bf16_of(o, x + y if operation == "add" else _least(o, operation, x, y))
  if operation != "add": return _least(o, operation, old, new)
  if t != "f32": return old + new
  return o.flush(o.flush(old) + o.flush(new))  # the manual: subnormals count as zero of their sign


def _least(o: Operations[B], operation: str, a: B, b: B) -> B:
  if a.dtype.kind == "f": return o.fmin(a, b) if operation == "min" else o.fmax(a, b)
  return o.min(a, b) if operation == "min" else o.max(a, b)


def remote(code: Code, line: Line, form: Form) -> Step:
  """st.async and red.async: a store to, or a reduction of, shared memory of a block of the cluster, whose mbarrier is
  told of the bytes."""
  i, m, t = line.instruction, form.modifiers, form.type
  space = memory.space_of(m)
  to = address(code, line, i.operands[0], space)
  reads = [operands.reader(code, line, o, t) for o in operands.elements(line, i.operands[1])]
  barrier = address(code, line, i.operands[2], space)
  size, dtype = SIZES[t], operands.dtype_of(t)
  operation = reduction(m | {i.opcode})

  def run(group: Warps) -> None:
    ats = operands.full(group, to(group))
    barriers = operands.full(group, barrier(group))
    values = [operands.full(group, r(group)) for r in reads]
    width = size * len(values)
    for thread in threads(group):
      k = thread.row, thread.lane
      at = int(ats[k])
      if at % width: raise thread.fault(f"misaligned {i.name} of {width} bytes at {at:#x}", at)
      data = np.array([v[k] for v in values], dtype)
      thread.how, thread.combines = "mbarrier", bool(operation)
      if operation: data = np.array(combined(Ops, operation, t, thread.read(space, at, width).view(dtype), data), dtype)
      thread.write(space, at, data.view(np.uint8))
      if thread.shared(space, at)[0] != thread.shared(space, int(barriers[k]))[0]:
        raise thread.fault(f"{i.name}: the mbarrier is in another block's shared memory than the value", at)
      told(thread, int(barriers[k]), space, width, None)
  return guarded(line, run)
