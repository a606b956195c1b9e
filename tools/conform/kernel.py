"""Kernels that judge themselves: many cases in one code object.

A wave finds its row in a table by its workgroup's number, loads the registers that its case starts from, and jumps to
the case's code: the instruction, with MODE around it. All come back to one place, where the registers are compared with
those that are baked in. A wave whose registers are all as wanted writes PASS; another one writes which of them is the
first that is not, and all of them. `harness` has the code.

Registers' contents are rows of a pool of dwords, one for each lane, that cases share.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.codes import AGPR0, EXEC_LO, M0, VCC_LO
from tinyhw.tools.conform import flow
from tinyhw.tools.conform.cases import Baked
from tinyhw.tools.conform.harness import (
  CODE_AT,
  DATA_AT,
  MEMORIES_AT,
  MODE_BITS,
  Layout,
  Move,
  head,
  line,
  sixteens,
  stub,
  tail,
)
from tinyhw.tools.conform.image import KernelShape, code_object
from tinyhw.tools.witness.cases import PLAIN
from tinyhw.tools.witness.state import MEMORY

Array = Any
ENTRY: Final = 16  # bytes of a wave's row in the table
LIMIT: Final = 1024  # waves of a kernel
MEMORY_LIMIT: Final = 192  # waves of a kernel whose cases have memory
CODE_LIMIT: Final = 90_000  # bytes of cases' code, so that all reach the end
NEAR: Final = 1 << 15  # an address of the case's memory is at most so far from it
_SIZES: Final = (8, 16, 32, 64, 128, 240)


def layout_of(b: Baked) -> Layout:
  """The least layout that a case fits."""
  high = b.vgprs - AGPR0 if b.vgprs > AGPR0 else 0
  low = b.vgprs if not high else b.low_vgprs
  v = next(k for k in _SIZES if low <= k)
  accumulators = next((k for k in _SIZES if high <= k), 240) if high else 0
  plain = Layout(b.case.lanes, v + accumulators, sixteens(max(16, b.sgprs)), accumulators=accumulators)
  if not b.memory and not b.lds: return plain
  return Layout(plain.lanes, plain.vgprs, plain.sgprs, b.case.waves, len(b.memory), len(b.lds), b.scratch,
                plain.accumulators)


# ---- addresses

def moves(b: Baked, wave: int, after: bool) -> tuple[Move, ...]:
  """Which registers of a wave hold addresses of the case's memory, before it or after."""
  lanes, out = b.case.lanes, []
  v = (b.v if after else b.start_v)[:, wave * lanes:(wave + 1) * lanes].astype(np.uint64)
  s = (b.s if after else b.start_s)[:, wave].astype(np.uint64)
  seen = set[int]()
  for name, o in b.case.instruction.operands.items():
    if o.kind == "s" and o.dwords >= 2 and o.value < 105 and o.value not in seen:
      value = int(s[o.value]) | int(s[o.value + 1]) << 32
      seen.add(o.value)
      if abs((value & (1 << 48) - 1) - MEMORY) < NEAR: out.append(Move(o.value, 0, "descriptor" if "rsrc" in name
                                                                       or o.dwords >= 4 else "address"))
      elif "rsrc" in name and abs((value & (1 << 40) - 1) - (MEMORY >> 8)) < NEAR >> 8: out.append(
        Move(o.value, 0, "picture"))
    if o.kind == "v" and o.dwords >= 2 and "addr" in name and o.value + 1 < len(v):
      address = v[o.value] | v[o.value + 1] << np.uint64(32)
      near = np.abs((address - np.uint64(MEMORY)).astype(np.int64)) < NEAR
      bits = sum(1 << int(k) for k in np.flatnonzero(near))
      if bits: out.append(Move(o.value, bits))
  return tuple(out)


def code_of(b: Baked, wave: int, x: Layout) -> bytes:
  """The code of a wave's case."""
  isa = b.case.row.isa
  if b.flow: return flow.stub(b)
  if not x.waves: return stub(isa, b.case.code, b.case.mode)
  return stub(isa, b.case.code, b.case.mode, moves(b, wave, False), moves(b, wave, True), x.vgprs, x.lanes == 64)


# ---- data

@dataclass
class Pool:
  """Rows of dwords, each kept once."""
  data: bytearray = field(default_factory=bytearray)
  where: dict[bytes, int] = field(default_factory=dict)

  def put(self, row: bytes) -> int:
    """Where a row is."""
    found = self.where.get(row)
    if found is None:
      found = self.where[row] = len(self.data)
      self.data += row
    return found


@dataclass(eq=False)
class Packed:
  """A code object, the waves that it asks about as (case, wave), and where each writes what it found."""
  arch: Arch
  layout: Layout
  binary: bytes
  waves: list[tuple[Baked, int]]
  memories_at: int
  size: int  # bytes of the memory that the kernel writes

  @property
  def grid(self) -> int:
    """Workgroups."""
    return len(self.waves) // max(1, self.layout.waves)

  def found_at(self, slot: int) -> int:
    """Where a wave writes its registers."""
    return _status(len(self.waves)) + slot * self.layout.rows * self.layout.lanes * 4

  def memory_at(self, slot: int) -> int:
    """Where a wave's case has its memory, and its LDS behind it."""
    x = self.layout
    return self.memories_at + slot // max(1, x.waves) * (x.memory + x.lds)


def _status(count: int) -> int: return -(-4 * count // 256) * 256


def special_rows(b: Baked, wave: int, lanes: int) -> tuple[list[int], list[int]]:
  """(values, masks) of the special registers after a case."""
  s, isa = b.s, b.case.row.isa
  values = [int(b.scc[wave]), b.mode & MODE_BITS[isa], *(int(s[EXEC_LO + k][wave]) for k in (0, 1)),
            *(int(s[VCC_LO + k][wave]) for k in (0, 1)), int(s[M0][wave]), b.flow[wave] if b.flow else 0]
  full = 0xFFFFFFFF
  return values, [full, MODE_BITS[isa], full, full if lanes == 64 else 0, full, full, full, full]


def numbers(x: Layout) -> list[int]:
  """The number that the register of each row has in a state: accumulation registers come behind the others."""
  real = x.vgprs - x.accumulators
  return [k if k < real else AGPR0 + k - real for k in range(x.vgprs)]


def pack(arch: Arch, layout: Layout, cases: Sequence[Baked]) -> Packed:
  """One code object of cases that fit a layout."""
  waves = [(b, w) for b in cases for w in range(b.case.waves)]
  x, lanes = layout, layout.lanes
  stubs, where, offsets = bytearray(), dict[bytes, int](), list[int]()
  for b, w in waves:
    code = code_of(b, w, x)
    if code not in where:
      where[code] = len(stubs)
      stubs += code
    offsets.append(where[code])
  branch = int.from_bytes(line(arch.isa, "s_branch 0"), "little")
  for code, at in where.items():
    last = at + len(code) - 4
    distance = (len(stubs) - last - 4) // 4
    assert distance < 0x8000, "the kernel is too long for its branches"
    stubs[last:last + 4] = (branch | distance).to_bytes(4, "little")
  pool, rows = Pool(), np.zeros((len(waves), x.record), np.uint32)
  blank = bytes(4 * lanes)
  registers = numbers(x)
  for slot, (b, w) in enumerate(waves):
    part = slice(w * lanes, (w + 1) * lanes)
    for k, register in enumerate(registers):
      known = register < b.vgprs
      rows[slot, k] = pool.put(b.start_v[register, part].tobytes() if known else blank)
      rows[slot, x.wanted_at + k] = pool.put(b.v[register, part].tobytes() if known else blank)
    wanted = np.zeros(x.groups * lanes, np.uint32)
    masks = wanted.copy()
    wanted[:x.sgprs], masks[:x.sgprs] = b.s[:x.sgprs, w], 0xFFFFFFFF
    for k in range(x.groups):
      rows[slot, x.wanted_at + x.vgprs + k] = pool.put(wanted[k * lanes:(k + 1) * lanes].tobytes())
      rows[slot, x.masks_at + k] = pool.put(masks[k * lanes:(k + 1) * lanes].tobytes())
    for column, values in zip((x.wanted_at + x.vgprs, x.masks_at), special_rows(b, w, lanes)):
      row = np.zeros(lanes, np.uint32)
      row[:len(values)] = values
      rows[slot, column + x.groups] = pool.put(row.tobytes())
    before = b.prepared.start
    rows[slot, x.start_at:x.start_at + x.sgprs] = b.start_s[:x.sgprs, w]
    rows[slot, x.start_at + x.sgprs:x.start_at + x.sgprs + 8] = [
      before.scc[w], 0, *(before.s[EXEC_LO + k][w] for k in (0, 1)), *(before.s[VCC_LO + k][w] for k in (0, 1)),
      before.s[M0][w], 0]
  return _object(arch, x, waves, bytes(stubs), offsets, pool, rows)


def _object(arch: Arch, x: Layout, waves: list[tuple[Baked, int]], stubs: bytes, offsets: list[int], pool: Pool,
            rows: Array) -> Packed:
  """Put code, table, records, pool and memories together; all places in the data count from its start."""
  begin, end = head(arch.isa, x), tail(arch.isa, x)
  text = bytearray(begin + stubs + end)
  data_at = -(-len(text) // 256) * 256
  table_size = -(-ENTRY * len(waves) // 64) * 64
  records = table_size
  pooled = records + rows.nbytes
  blobs, blob_at = bytearray(), -(-(pooled + len(pool.data)) // 256) * 256
  rows[:, :x.start_at] += np.uint32(pooled)
  found = _status(len(waves))
  memories = -(-(found + len(waves) * x.rows * x.lanes * 4) // 4096) * 4096
  entries = np.zeros((len(waves), 4), np.uint32)
  for slot, (b, w) in enumerate(waves):
    if x.waves and not w:
      blob = blob_at + len(blobs)
      for start, wanted in ((b.prepared.start.memory, b.memory), (b.prepared.start.lds, b.lds)):
        blobs += bytes(start) + wanted
    entries[slot] = (offsets[slot], records + slot * x.record * 4, found + slot * x.rows * x.lanes * 4,
                     blob if x.waves else 0)
  pc = _after_getpc(arch, begin)
  for literal, distance in ((CODE_AT, len(begin) - pc), (DATA_AT, data_at - pc), (MEMORIES_AT, memories)):
    at = begin.find(literal.to_bytes(4, "little"))
    if at >= 0: text[at:at + 4] = distance.to_bytes(4, "little")
  data = (entries.tobytes().ljust(table_size, b"\0") + rows.tobytes() + bytes(pool.data)).ljust(blob_at, b"\0") + blobs
  shape = KernelShape(x.lanes, x.registers, x.accumulators, x.lds, x.scratch_bytes, PLAIN[arch.isa])
  binary = code_object(arch, shape, bytes(text).ljust(data_at, b"\0") + data)
  groups = len(waves) // max(1, x.waves)
  return Packed(arch, x, binary, waves, memories, memories + groups * (x.memory + x.lds))


def _after_getpc(arch: Arch, text: bytes) -> int:
  """Where the instruction behind the first s_getpc is."""
  isa, at = table(arch.isa), 0
  while True:
    i = isa.decode(text[at:at + 16])
    at += i.size
    if i.mnemonic == "s_getpc_b64": return at


def packs(arch: Arch, cases: Sequence[Baked]) -> list[Packed]:
  """Code objects of all these cases, by layout, in order."""
  by: dict[Layout, list[Baked]] = {}
  for b in cases: by.setdefault(layout_of(b), []).append(b)
  out = []
  for layout, some in sorted(by.items(), key=lambda x: repr(x[0])):
    limit = MEMORY_LIMIT if layout.waves else LIMIT
    chunk, waves, size = list[Baked](), 0, 0
    for b in some:
      own = range(b.case.waves if layout.waves else 1)  # waves without memory have one code
      code = sum(len(code_of(b, w, layout)) for w in own)
      if chunk and (waves + b.case.waves > limit or size + code > CODE_LIMIT):
        out.append(pack(arch, layout, chunk))
        chunk, waves, size = [], 0, 0
      chunk.append(b)
      waves, size = waves + b.case.waves, size + code
    if chunk: out.append(pack(arch, layout, chunk))
  return out
