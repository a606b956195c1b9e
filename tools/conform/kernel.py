"""Kernels that judge themselves: many cases in one code object, a wave of a workgroup of its own for each.

A wave finds its row in a table by its workgroup's number, loads the registers that its case starts from, and jumps to
the case's code: the instruction, with MODE around it. All come back to one place, where the registers are compared with
those that are baked in. A wave whose registers are all as wanted writes PASS; another one writes which of them is the
first that is not, and all of them.

The instruction owns v0 to v[V-1] and s0 to s79. The kernel's own registers lie behind them, so that nothing is saved
and restored around it. Registers' contents are rows of a pool of dwords, one for each lane, that cases share.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.isa.amdgcn import Table, table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, VCC_LO
from tinyhw.isa.amdgcn.program import program
from tinyhw.tools.conform.cases import Baked
from tinyhw.tools.conform.image import KernelShape, code_object
from tinyhw.tools.witness.cases import PLAIN

Array = Any
PASS: Final = 1
FAILED: Final = 0x8000_0000  # with the number of the row that is the first to differ
SPECIALS: Final = ("SCC", "MODE", "EXEC_LO", "EXEC_HI", "VCC_LO", "VCC_HI", "M0")
ENTRY: Final = 16  # bytes of a wave's row in the table
MODE_BITS: Final = {"gfx11": 0x3FF, "gfx12": 0xFF, "gfx9": 0xF80003FF}  # those that cases set and compare
_PLACE: Final = 0x7ABCDEF1  # a literal that stands for a distance until it is known


@dataclass(frozen=True)
class Layout:
  """What one kernel has room for: lanes of a wave, vector registers of a case, scalar registers in sixteens."""
  lanes: int
  vgprs: int
  sgprs: int

  @property
  def groups(self) -> int:
    """How many vector registers the scalar ones fill, a lane each."""
    return -(-self.sgprs // self.lanes)

  @property
  def rows(self) -> int:
    """Rows that are compared: vector registers, scalar ones in lanes, special ones."""
    return self.vgprs + self.groups + 1

  @property
  def record(self) -> int:
    """Dwords of a wave's record: rows before, rows wanted, masks, then the scalar and special registers before."""
    return _sixteens(self.vgprs) + _sixteens(self.rows) + _sixteens(self.groups + 1) + self.sgprs + 16


def _sixteens(n: int) -> int: return -(-n // 16) * 16


def layout_of(b: Baked) -> Layout:
  """The least layout that a case fits."""
  v = next(k for k in (8, 16, 32, 64, 128, 240) if b.vgprs <= k)
  return Layout(b.case.lanes, v, _sixteens(max(16, b.sgprs)))


# ---- text

class _Words:
  """A generation's spellings of what kernels here need."""

  def __init__(self, isa: str) -> None:
    old = isa == "gfx9"
    self.isa = isa
    self.scalar = {1: "s_load_dword", 2: "s_load_dwordx2", 4: "s_load_dwordx4", 8: "s_load_dwordx8",
                   16: "s_load_dwordx16"} if old else {n: f"s_load_b{32 * n}" for n in (1, 2, 4, 8, 16)}
    self.load, self.store = (("global_load_dword", "global_store_dword") if old
                             else ("global_load_b32", "global_store_b32"))
    self.add = "v_add_u32_e32" if old else "v_add_nc_u32_e32"
    self.sadd, self.saddc = (("s_add_co_u32", "s_add_co_ci_u32") if isa == "gfx12" else ("s_add_u32", "s_addc_u32"))
    self.scalars = "s_wait_kmcnt 0x0" if isa == "gfx12" else "s_waitcnt lgkmcnt(0)"
    self.loads = "s_wait_loadcnt 0x0" if isa == "gfx12" else "s_waitcnt vmcnt(0)"
    self.group = "s_mov_b32 s86, ttmp9" if isa == "gfx12" else "s_mov_b32 s86, s2"

  def pair(self, first: int, low: str, high: str = "0", base: int | None = None) -> list[str]:
    """A 64-bit sum into an SGPR pair, from itself or from another pair."""
    base = first if base is None else base
    return [f"{self.sadd} s{first}, s{base}, {low}", f"{self.saddc} s{first + 1}, s{base + 1}, {high}"]


def _load(w: _Words, first: int, dwords: int, base: str, offset: int) -> str:
  last = f"s{first}" if dwords == 1 else f"s[{first}:{first + dwords - 1}]"
  return f"{w.scalar[dwords]} {last}, {base}, {offset:#x}"


@cache
def head(isa: str, x: Layout) -> bytes:
  """What runs before a case: finds the wave's record, loads registers, jumps."""
  w, v = _Words(isa), x.vgprs
  lane, at = f"v{v}", f"v{v + 1}"
  out = [w.group, _load(w, 80, 2, "s[0:1]", 0), "s_getpc_b64 s[82:83]"]  # the next instruction's address
  out += w.pair(100, f"{_PLACE + 1:#x}", base=82)       # where the cases' code begins
  out += w.pair(82, f"{_PLACE:#x}")                     # where the data begins
  out += ["s_lshl_b32 s99, s86, 4", "s_load_dwordx4 s[88:91], s[82:83], s99" if w.isa == "gfx9" else
          "s_load_b128 s[88:91], s[82:83], s99", f"v_lshlrev_b32_e32 {lane}, 2, v0", w.scalars]
  out += w.pair(84, "s89", base=82)                     # the wave's record
  for first in range(0, v, 16):
    out += [_load(w, 0, 16, "s[84:85]", 4 * first), w.scalars]
    for k in range(first, min(v, first + 16)):
      out += [f"{w.add} {at}, s{k - first}, {lane}", f"{w.load} v{k}, {at}, s[82:83]"]
  start = 4 * (x.record - x.sgprs - 16)
  for first in range(0, x.sgprs, 16): out.append(_load(w, first, 16, "s[84:85]", start + 4 * first))
  out += [_load(w, 92, 8, "s[84:85]", start + 4 * x.sgprs), w.loads, w.scalars, "s_mov_b32 vcc_lo, s96",
          "s_mov_b32 vcc_hi, s97", "s_mov_b32 m0, s98", *w.pair(100, "s88"),
          "s_cmp_lg_u32 s92, 0", "s_mov_b64 exec, s[94:95]", "s_setpc_b64 s[100:101]"]
  return _assembled(isa, "\n".join(out))


@cache
def stub(isa: str, code: bytes, mode: int) -> bytes:
  """A case's code; the branch to what compares is its last dword."""
  plain = PLAIN[isa]
  out, back = b"", b""
  if mode != plain:
    for low, bits in _fields(isa, mode ^ plain):
      out += _line(isa, f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, {low}, {bits}), {mode >> low & (1 << bits) - 1:#x}")
  for low, bits in _fields(isa, MODE_BITS[isa] if _sets_mode(isa, code) else mode ^ plain):
    back += _line(isa, f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, {low}, {bits}), {plain >> low & (1 << bits) - 1:#x}")
  saved = _line(isa, "s_cselect_b32 s92, 1, 0") + _line(isa, "s_getreg_b32 s93, hwreg(HW_REG_MODE)")
  gap = _line(isa, "s_nop 7")
  return out + gap + code + gap + saved + back + _line(isa, "s_branch 0")


def _sets_mode(isa: str, code: bytes) -> bool:
  name = table(isa).decode(code).mnemonic
  return name.startswith(("s_setreg", "s_round_mode", "s_denorm_mode", "s_set_gpr_idx", "s_setvskip"))


def _fields(isa: str, bits: int) -> list[tuple[int, int]]:
  """(first, count) of the parts of MODE that have these bits: what all generations have, and what gfx9 has above."""
  low = (0, 10) if isa != "gfx12" else (0, 8)
  return [part for part in (low, (27, 5)) if bits >> part[0] & (1 << part[1]) - 1]


@cache
def tail(isa: str, x: Layout) -> bytes:
  """What runs after a case: saves what it left, compares, and writes what is wrong."""
  w, v = _Words(isa), x.vgprs
  lane, at, bad, first = f"v{v}", f"v{v + 1}", f"v{v + 2}", v + 3
  out = ["s_mov_b64 s[94:95], exec", "s_mov_b64 exec, -1", "s_mov_b32 s96, vcc_lo", "s_mov_b32 s97, vcc_hi",
         "s_mov_b32 s98, m0", f"v_mov_b32_e32 {bad}, 0"]
  out += [f"v_mov_b32_e32 v{first + k}, 0" for k in range(x.groups + 1)]
  out += [f"v_writelane_b32 v{first + k // x.lanes}, s{k}, {k % x.lanes}" for k in range(x.sgprs)]
  out += [f"v_writelane_b32 v{first + x.groups}, s{92 + k}, {k}" for k in range(len(SPECIALS))]
  wanted = 4 * _sixteens(v)
  masks = wanted + 4 * _sixteens(x.rows)

  def loaded(row: int, masked: int) -> list[str]:
    """A wanted row, or a mask, into `at`; the rows' places are in s0 to s15, those of masks in s16 to s31."""
    place = 16 + masked if masked >= 0 else row % 16
    return [f"{w.add} {at}, s{place}, {lane}", f"{w.load} {at}, {at}, s[82:83]", w.loads]

  def each(body: Any) -> list[str]:
    lines = [_load(w, 16, 16, "s[84:85]", masks)]
    for row in range(x.rows):
      if row % 16 == 0: lines += [_load(w, 0, 16, "s[84:85]", wanted + 4 * row), w.scalars]
      lines += loaded(row, -1)
      register = f"v{row}" if row < v else f"v{first + row - v}"
      lines.append(f"v_xor_b32_e32 {at}, {at}, {register}")
      if row >= v:
        mask = f"v{first + x.groups + 1}"
        lines += [f"{w.add} {mask}, s{16 + row - v}, {lane}", f"{w.load} {mask}, {mask}, s[82:83]", w.loads,
                  f"v_and_b32_e32 {at}, {at}, {mask}"]
      lines += body(row)
    return lines
  out += each(lambda row: [f"v_or_b32_e32 {bad}, {bad}, {at}"])
  zero = "vcc" if isa == "gfx9" else "vcc_lo"  # the encoding is one
  out += [f"v_cmp_ne_u32_e32 {zero}, 0, {bad}", "s_lshl_b32 s99, s86, 2", f"v_mov_b32_e32 {at}, s99",
          "s_cbranch_vccnz failed", f"s_mov_b32 s87, {PASS}", "s_branch told", "failed:"]

  def found(row: int) -> list[str]:
    return [f"s_movk_i32 s87, {row:#x}", f"v_cmp_ne_u32_e32 {zero}, 0, {at}", "s_cbranch_vccnz dump"]
  out += each(found)
  out += ["dump:", f"s_or_b32 s87, s87, {FAILED:#x}", *w.pair(84, "s90", base=80)]
  size = 4 * x.lanes
  for row in range(x.rows):
    if row and row % 8 == 0: out += w.pair(84, f"{8 * size:#x}")
    register = f"v{row}" if row < v else f"v{first + row - v}"
    out.append(f"{w.store} {lane}, {register}, s[84:85] offset:{row % 8 * size}")
  out += [f"v_mov_b32_e32 {at}, s99", "told:", "s_mov_b64 exec, 1", f"v_mov_b32_e32 {bad}, s87",
          f"{w.store} {at}, {bad}, s[80:81]", "s_endpgm"]
  return _assembled(isa, "\n".join(out))


def _assembled(isa: str, text: str) -> bytes:
  return b"".join(i.code for i in program(text, table(isa), "a kernel of the conformance suite"))


@cache
def _line(isa: str, text: str) -> bytes: return assemble(text, table(isa))


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
  size: int  # bytes of the memory that the kernel writes

  def found_at(self, slot: int) -> int:
    """Where a wave writes its registers."""
    return _status(len(self.waves)) + slot * self.layout.rows * self.layout.lanes * 4


def _status(count: int) -> int: return -(-4 * count // 256) * 256


def special_rows(b: Baked, wave: int, lanes: int) -> tuple[list[int], list[int]]:
  """(values, masks) of the special registers after a case."""
  s, isa = b.s, b.case.row.isa
  values = [int(b.scc[wave]), b.mode & MODE_BITS[isa], *(int(s[EXEC_LO + k][wave]) for k in (0, 1)),
            *(int(s[VCC_LO + k][wave]) for k in (0, 1)), int(s[M0][wave])]
  full = 0xFFFFFFFF
  return values, [full, MODE_BITS[isa], full, full if lanes == 64 else 0, full, full, full]


def scalar_mask(b: Baked, sgprs: int) -> Array:
  """Bits of s0 and on that count."""
  return np.full(sgprs, 0xFFFFFFFF, np.uint32)


def pack(arch: Arch, layout: Layout, cases: Sequence[Baked]) -> Packed:
  """One code object of cases that fit a layout."""
  waves = [(b, w) for b in cases for w in range(b.case.waves)]
  x, lanes = layout, layout.lanes
  begin, end = head(arch.isa, x), tail(arch.isa, x)
  stubs, where = bytearray(), dict[bytes, int]()
  for b in cases:
    code = stub(arch.isa, b.case.code, b.case.mode)
    if code not in where:
      where[code] = len(stubs)
      stubs += code[:-4] + b"\0\0\0\0"
  branch = int.from_bytes(_line(arch.isa, "s_branch 0"), "little")
  for code, at in where.items():
    last = at + len(code) - 4
    distance = (len(stubs) - last - 4) // 4
    assert distance < 0x8000, "the kernel is too long for its branches"
    stubs[last:last + 4] = (branch | distance).to_bytes(4, "little")
  text = begin + bytes(stubs) + end
  data_at = -(-len(text) // 256) * 256
  pool, rows = Pool(), np.zeros((len(waves), x.record), np.uint32)
  sections = [0, _sixteens(x.vgprs), _sixteens(x.vgprs) + _sixteens(x.rows)]
  start = x.record - x.sgprs - 16
  blank = bytes(4 * lanes)
  for slot, (b, w) in enumerate(waves):
    part = slice(w * lanes, (w + 1) * lanes)
    for k in range(x.vgprs):
      known = k < b.vgprs
      rows[slot, k] = pool.put(b.start_v[k, part].tobytes() if known else blank)
      rows[slot, sections[1] + k] = pool.put(b.v[k, part].tobytes() if known else blank)
    wanted = np.zeros(x.groups * lanes, np.uint32)
    masks = wanted.copy()
    wanted[:x.sgprs], masks[:x.sgprs] = b.s[:x.sgprs, w], scalar_mask(b, x.sgprs)
    special, special_masks = special_rows(b, w, lanes)
    for k in range(x.groups):
      rows[slot, sections[1] + x.vgprs + k] = pool.put(wanted[k * lanes:(k + 1) * lanes].tobytes())
      rows[slot, sections[2] + k] = pool.put(masks[k * lanes:(k + 1) * lanes].tobytes())
    for column, values in ((sections[1] + x.vgprs, special), (sections[2], special_masks)):
      row = np.zeros(lanes, np.uint32)
      row[:len(values)] = values
      rows[slot, column + x.groups] = pool.put(row.tobytes())
    before = b.prepared.start
    rows[slot, start:start + x.sgprs] = b.start_s[:x.sgprs, w]
    rows[slot, start + x.sgprs:start + x.sgprs + 8] = [
      before.scc[w], 0, *(before.s[EXEC_LO + k][w] for k in (0, 1)), *(before.s[VCC_LO + k][w] for k in (0, 1)),
      before.s[M0][w], 0]
  return _object(arch, x, waves, text, len(begin), data_at, pool, rows)


def _object(arch: Arch, x: Layout, waves: list[tuple[Baked, int]], text: bytes, stubs_at: int, data_at: int, pool: Pool,
            rows: Array) -> Packed:
  """Put code, table, records and pool together; all places in the data count from its start."""
  table_size = -(-ENTRY * len(waves) // 64) * 64
  records = table_size
  pooled = records + rows.nbytes
  rows[:, :x.record - x.sgprs - 16] += np.uint32(pooled)
  entries = np.zeros((len(waves), 4), np.uint32)
  offsets = _offsets(arch, waves)
  found = _status(len(waves))
  for slot in range(len(waves)):
    entries[slot] = offsets[slot], records + slot * x.record * 4, found + slot * x.rows * x.lanes * 4, 0
  code = bytearray(text)
  pc = _after_getpc(arch, text)
  for literal, target in ((_PLACE + 1, stubs_at), (_PLACE, data_at)):
    at = text.index(literal.to_bytes(4, "little"))
    code[at:at + 4] = (target - pc).to_bytes(4, "little")
  data = entries.tobytes().ljust(table_size, b"\0") + rows.tobytes() + bytes(pool.data)
  shape = KernelShape(x.lanes, x.vgprs + 3 + x.groups + 2, mode=PLAIN[arch.isa])
  binary = code_object(arch, shape, bytes(code).ljust(data_at, b"\0") + data)
  return Packed(arch, x, binary, waves, found + len(waves) * x.rows * x.lanes * 4)


def _offsets(arch: Arch, waves: list[tuple[Baked, int]]) -> list[int]:
  """Where each wave's case has its code, from the first one's."""
  where, at, out = dict[bytes, int](), 0, []
  for b, _ in waves:
    code = stub(arch.isa, b.case.code, b.case.mode)
    if code not in where:
      where[code] = at
      at += len(code)
    out.append(where[code])
  return out


def _after_getpc(arch: Arch, text: bytes) -> int:
  """Where the instruction behind s_getpc is."""
  isa: Table = table(arch.isa)
  at = 0
  while True:
    i = isa.decode(text[at:at + 16])
    at += i.size
    if i.mnemonic == "s_getpc_b64": return at


LIMIT: Final = 1024  # waves of a kernel
CODE_LIMIT: Final = 90_000  # bytes of cases' code, so that all reach the end


def packs(arch: Arch, cases: Sequence[Baked]) -> list[Packed]:
  """Code objects of all these cases, by layout, in order."""
  by: dict[Layout, list[Baked]] = {}
  for b in cases: by.setdefault(layout_of(b), []).append(b)
  out = []
  for layout, some in sorted(by.items(), key=lambda x: (x[0].lanes, x[0].vgprs, x[0].sgprs)):
    chunk, waves, size = list[Baked](), 0, 0
    for b in some:
      code = len(stub(arch.isa, b.case.code, b.case.mode))
      if chunk and (waves + b.case.waves > LIMIT or size + code > CODE_LIMIT):
        out.append(pack(arch, layout, chunk))
        chunk, waves, size = [], 0, 0
      chunk.append(b)
      waves, size = waves + b.case.waves, size + code
    if chunk: out.append(pack(arch, layout, chunk))
  return out
