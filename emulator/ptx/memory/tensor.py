"""Copies of boxes of tensors that a tensor map describes (cp.async.bulk.tensor), and changes of such maps."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need, nothing, unknown
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.addresses import address, guarded
from tinyhw.emulator.ptx.memory.copies import combined, ends, multicast, reduction, told
from tinyhw.emulator.ptx.memory.mbarrier import signal
from tinyhw.emulator.ptx.memory.ranges import Thread, threads
from tinyhw.emulator.ptx.memory.tensormap import ALIGN, ATOMS, SIZE, SWIZZLES, UNIT, UNITS, TensorMap
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.operands import Reader
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.ops import Ops
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Address, Operand

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

FOUR: Final = frozenset({"tile::gather4", "tile::scatter4"})
OTHERS: Final = frozenset({*FOUR, "cta_group::2"})  # what compiled code has no routine for
ROWS: Final = 4  # that are gathered
COLUMNS: Final = frozenset({"im2col", "im2col_no_offs"})
LINE: Final = 128  # of a box in shared memory
_PIECE: Final = 16  # bytes that swizzles leave together
NAN: Final = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}


class Box:
  """A box of a tensor at coordinates: which of its elements are inside, and where they lie."""

  def __init__(self, m: TensorMap, at: list[int], steps: bool = True) -> None:
    inside, offsets = np.ones((), bool), np.zeros((), np.int64)
    tile = m.tile if steps else m.box[:m.rank]
    for k in range(m.rank):
      c = np.int64(at[k]) + np.arange(tile[k], dtype=np.int64) * (m.walk[k] if steps else 1)
      shape = (-1,) + (1,) * k  # the innermost dimension is the last axis
      inside = inside & ((c >= 0) & (c < m.extents[k])).reshape(shape)
      offsets = offsets + (c * (m.strides[k - 1] if k else m.size)).reshape(shape)
    self.inside: Value = inside.reshape(-1)
    self.addresses: Value = (offsets.reshape(-1)[self.inside] + np.int64(m.address)).astype(np.uint64)
    self.bytes = self.inside.size * m.size


class Rows(Box):
  """Four rows of a tensor of two dimensions, one behind the other: a box of one row at each of four places."""

  def __init__(self, m: TensorMap, at: list[int], loads: bool) -> None:
    boxes = [Box(m, [at[0], row], loads) for row in at[1:]]
    self.inside = np.concatenate([b.inside for b in boxes])
    self.addresses = np.concatenate([b.addresses for b in boxes])
    self.bytes = sum(b.bytes for b in boxes)


class Column(Box):
  """The channels of some pixels, one after the other in places where a filter may lie, and at `offsets` from there: a
  row of places, then the next row, then the next image."""

  def __init__(self, m: TensorMap, at: list[int], offsets: Sequence[int]) -> None:
    channels = at[0] + np.arange(m.box[0], dtype=np.int64)
    window, steps = m.window, m.walk[1:-1]
    place = [*at[1:]]
    pixels = np.zeros((m.box[1], len(place)), np.int64)
    for pixel in range(m.box[1]):
      pixels[pixel] = place
      for k, ((first, last), step) in enumerate(zip(window, steps)):
        place[k] += step
        if place[k] <= last: break
        place[k] = first
      else: place[-1] += 1
    pixels[:, :-1] += np.array(offsets, np.int64)
    inside: Value = np.logical_and.reduce((pixels >= 0) & (pixels < np.array(m.extents[1:])), axis=1)
    there = (channels >= 0) & (channels < m.extents[0])
    self.inside = (inside[:, None] & there).reshape(-1)
    found = (pixels * np.array(m.strides[:m.rank - 1], np.int64)).sum(axis=1)[:, None] + channels * m.size
    self.addresses = (found.reshape(-1)[self.inside] + np.int64(m.address)).astype(np.uint64)
    self.bytes = self.inside.size * m.size


def places(m: TensorMap, offset: int, size: int) -> Value:
  """Where the pieces of 16 bytes of a box lie in shared memory: they are exchanged by bits of their address."""
  at = np.arange(offset, offset + size, _PIECE, dtype=np.int64)
  width = SWIZZLES[m.swizzle]
  if m.atomicity:
    mask, together = ATOMS[m.atomicity]
    return at ^ (at >> 7 & mask) * together
  return at if not width else at ^ (at >> 7 & width // 16 - 1) << 4


def copy(code: Code, line: Line, form: Form) -> Step:
  """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor, of tiles and of columns of pixels (im2col)."""
  i, m = line.instruction, form.modifiers
  if "prefetch" in m: return nothing
  rank = next(int(x[0]) for x in m if x in {"1d", "2d", "3d", "4d", "5d"})
  target, _ = ends(line)
  loads = target == "shared"
  boxes, plain = (1, 0) if loads else (0, 1)
  four = bool(m & FOUR)
  maps, coordinates = _tensor(code, line, i.operands[boxes], 1 + ROWS if four else rank)
  shared = address(code, line, i.operands[plain], "shared")
  barrier = address(code, line, i.operands[2], "shared") if loads else None
  column = bool(m & COLUMNS)
  rest = [*i.operands[3:]] if loads else []
  moves = [*operands.elements(line, rest.pop(0))] if "im2col" in m else []
  if len(moves) != (rank - 2 if "im2col" in m else 0):
    raise DecodeError(f"{i.name} takes {rank - 2} offsets, not {len(moves)}", where=where(line))
  offsets = [operands.reader(code, line, o, "u16") for o in moves]
  mask = operands.reader(code, line, rest[0], "u16") if "multicast::cluster" in m else None
  operation = reduction(m)

  def run(group: Warps) -> None:
    given = [None if r is None else operands.full(group, r(group)) for r in (maps, shared, barrier, mask)]
    places = [operands.full(group, r(group)) for r in coordinates]
    moved = [operands.full(group, r(group)) for r in offsets]
    for t in threads(group):
      k = t.row, t.lane
      map_at, here, at, named = (None if x is None else int(x[k]) for x in given)
      assert map_at is not None and here is not None
      found = _map(t, map_at, rank, line)
      if bool(found.im2col) != column:
        kind = "columns (im2col)" if found.im2col else "tiles"
        raise t.fault(f"a tensor map of {kind}, and a copy of others", map_at)
      if not loads and not column and set(found.walk) != {1}:
        raise Unsupported("PTX instruction", i.name, where=where(line), hint="of a tensor map with steps of elements")
      c = [int(p[k]) for p in places]
      if found.type in UNITS:
        if c[0] % UNIT: raise t.fault(f"a box of {found.type} at {c[0]}, no multiple of {UNIT} elements", map_at)
        found, c[0] = found.units, c[0] // UNIT
      if four and found.box[1] != 1:
        raise t.fault(f"a tensor map with boxes of {found.box[1]} rows, for four rows at places of their own", map_at)
      if four: box: Box = Rows(found, c, loads)
      elif column: box = _column(t, found, c, [int(p[k]) for p in moved] or [0] * (rank - 2))
      else: box = Box(found, c, loads)
      if loads:
        assert at is not None
        _load(t, found, box, here, at, None if named is None else multicast(t, named), "cta_group::2" in m)
      else: _store(t, found, box, here, operation)
  return guarded(line, run)


def parts(line: Line, o: Operand, rank: int) -> tuple[Address, tuple[Operand, ...]]:
  """The address of a map, generic, and coordinates: `[map, {x, y}]`."""
  if not isinstance(o, Address) or len(o.more) != 1:
    raise DecodeError(f"{line.instruction.name} takes a tensor map with coordinates", where=where(line))
  found = operands.elements(line, o.more[0])
  if len(found) != rank:
    raise DecodeError(f"{line.instruction.name} takes {rank} coordinates, not {len(found)}", where=where(line))
  return Address(o.base, o.offset), found


def _tensor(code: Code, line: Line, o: Operand, rank: int) -> tuple[Reader, list[Reader]]:
  """Readers of the address of a map, and of coordinates."""
  at, found = parts(line, o, rank)
  return address(code, line, at, spaces.GENERIC), [operands.reader(code, line, p, "s32") for p in found]


def _map(t: Thread, at: int, rank: int, line: Line) -> TensorMap:
  if at % ALIGN: raise t.fault(f"a tensor map at {at:#x}, no multiple of {ALIGN}", at)
  found = TensorMap.decode(t.read(spaces.GENERIC, at, SIZE).tobytes())
  try: found.check()
  except InvalidArgument as why: raise t.fault(str(why).removeprefix("tensor map: "), at) from None
  except Unsupported as why:
    raise Unsupported("PTX instruction", line.instruction.name, where=where(line), hint=str(why)) from None
  if found.rank != rank: raise t.fault(f"a tensor map of {found.rank} dimensions, and {rank} coordinates", at)
  return found


def _column(t: Thread, m: TensorMap, c: list[int], offsets: list[int]) -> Column:
  for k, (place, (first, last)) in enumerate(zip(c[1:-1], m.window), 1):
    if not first <= place <= last:
      raise t.fault(f"a filter at {place} in dimension {k}, where it may be at {first} to {last}", None)
  most = {3: 1 << 16, 4: 1 << 8, 5: 1 << 5}[m.rank]
  if any(o >= most for o in offsets): raise t.fault(f"offsets {offsets} of im2col: less than {most} each", None)
  return Column(m, c, offsets)


def _load(t: Thread, m: TensorMap, box: Box, here: int, barrier: int, blocks: list[int] | None, pair: bool) -> None:
  slot, offset = _aligned(t, here)
  t.how = "mbarrier"
  if m.type in UNITS: return _placed(t, m, (slot, offset), _narrow(t, m, box), box.bytes, barrier, blocks, pair)
  data = np.full(box.inside.size, NAN[m.size] if m.fill else 0, np.dtype(f"u{m.size}"))
  if box.addresses.size: data[box.inside] = t.gather(box.addresses, m.size)
  if m.type.startswith("tf32"): data = _rounded(data)
  if m.type.endswith("ftz"): data = np.where(data & 0x7F800000, data, data & np.uint32(0x80000000))
  _placed(t, m, (slot, offset), np.ascontiguousarray(data).view(np.uint8), box.bytes, barrier, blocks, pair)


def _narrow(t: Thread, m: TensorMap, box: Box) -> Value:
  """Units of narrow elements as bytes, padded by zeros: what is there on the chip is open."""
  out = np.zeros((box.inside.size, m.padded), np.uint8)
  words = box.addresses[:, None] + np.arange(0, m.size, 4, dtype=np.uint64)
  if words.size: out[box.inside, :m.size] = np.ascontiguousarray(t.gather(words.reshape(-1), 4)).view(
    np.uint8).reshape(-1, m.size)
  return out.reshape(-1)


def _placed(t: Thread, m: TensorMap, here: tuple[int, int], data: Value, count: int, barrier: int,
            blocks: list[int] | None, pair: bool) -> None:
  """Put a box's bytes into shared memory, and tell mbarriers of so many: of narrow elements padding does not count
  (CUTLASS waits for no more)."""
  slot, offset = here
  at, raw = places(m, offset, data.size), data.reshape(-1, _PIECE)
  for block in [slot] if blocks is None else blocks:
    t.show("lds", "store", at, _PIECE, block, data=raw)
    t.span(block, 0, int(at.max()) + _PIECE, "write").reshape(-1, _PIECE)[at // _PIECE] = raw
  t.cohort.changes.count += 1
  if pair: _told_of_pairs(t, barrier, count, [slot] if blocks is None else blocks)
  else: told(t, barrier, "shared", count, blocks)


def _told_of_pairs(t: Thread, barrier: int, count: int, blocks: list[int]) -> None:
  """Have an mbarrier know in one block of each pair: all even ones, or all odd ones, by where the mbarrier is."""
  given, offset = t.shared("shared", barrier)
  for block in blocks: signal(t.group, t.row, t.lane, block & ~1 | given & 1, offset, count)


def _rounded(words: Value) -> Value:
  """f32 as tf32, to nearest even: which rounding it is nobody tells. Numbers that are tf32 stay, and so do NaNs."""
  special = words & np.uint32(0x7F800000) == 0x7F800000
  near = words + np.uint32(0xFFF) + (words >> np.uint32(13) & np.uint32(1))
  return np.where(special, words, near & np.uint32(0xFFFFE000))


def _store(t: Thread, m: TensorMap, box: Box, here: int, operation: str) -> None:
  if m.type in UNITS and m.padded > m.size or operation and m.type in UNITS:
    raise Unsupported("tensor map of", m.type, hint="in a copy to global memory")
  slot, offset = _aligned(t, here)
  at = places(m, offset, box.bytes)
  t.how = "bulk_group"
  t.show("lds", "load", at, _PIECE, slot)
  raw = t.span(slot, 0, int(at.max()) + _PIECE, "read").reshape(-1, _PIECE)[at // _PIECE]
  data = raw.reshape(-1).view(np.dtype(f"u{m.size}"))[box.inside]
  if not data.size: return
  if operation:
    t.combines = True
    type_ = m.type.partition(".")[0]
    dtype = operands.dtype_of(type_)
    old = np.ascontiguousarray(t.gather(box.addresses, m.size)).view(dtype)
    data = np.ascontiguousarray(combined(Ops, operation, type_, old, data.view(dtype))).view(data.dtype)
  t.scatter(box.addresses, data)


def _aligned(t: Thread, at: int) -> tuple[int, int]:
  slot, offset = t.shared("shared", at)
  if offset % LINE: raise t.fault(f"a box at {at:#x} of shared memory, no multiple of {LINE}", at)
  return slot, offset


@binds("tensormap")
def tensormap(code: Code, line: Line, form: Form) -> Step:
  """tensormap.replace of a field, and tensormap.cp_fenceproxy, which copies a map."""
  i, m = line.instruction, form.modifiers
  if "cp_fenceproxy" in m:
    need(line, 3)
    size = operands.immediate(line, i.operands[2], "u32")
    if size is None or int(size) != SIZE: raise DecodeError(f"{i.name} copies {SIZE} bytes", where=where(line))
    to, of = address(code, line, i.operands[0], "global"), address(code, line, i.operands[1], "shared")

    def copied(group: Warps) -> None:  # by the warp together: once
      for t in _firsts(group):
        k = t.row, t.lane
        t.write("global", int(operands.full(group, to(group))[k]),
                t.read("shared", int(operands.full(group, of(group))[k]), SIZE))
    return guarded(line, copied)
  field, space = i.modifiers[2], spaces.space_of(m)
  rest = [*i.operands]
  at = address(code, line, rest.pop(0), space)
  ordinal = operands.immediate(line, rest.pop(0), "u32") if len(rest) > 1 else np.uint32(0)
  if ordinal is None: raise unknown(line)
  value = operands.reader(code, line, rest[0], form.type)

  def run(group: Warps) -> None:
    ats, values = operands.full(group, at(group)), operands.full(group, value(group))
    for t in threads(group):
      k = t.row, t.lane
      a = int(ats[k])
      if a % ALIGN: raise t.fault(f"a tensor map at {a:#x}, no multiple of {ALIGN}", a)
      try: new = TensorMap.decode(t.read(space, a, SIZE).tobytes()).replaced(field, int(ordinal), int(values[k]))
      except InvalidArgument as why: raise t.fault(str(why), a) from None
      t.write(space, a, np.frombuffer(new.encode(), np.uint8))
  return guarded(line, run)


def _firsts(group: Warps) -> list[Thread]:
  """The first thread of each warp."""
  return [Thread(group, row, int(group.lanes[row].argmax())) for row in range(group.size) if group.lanes[row].any()]
