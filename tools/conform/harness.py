"""The code around the cases of a kernel: what finds a wave's record and loads its registers, what compares them after.

The instruction owns v0 to v[V-1] and s0 to s79 (s63 where it has memory). The kernel's own registers lie behind them,
so that nothing is saved and restored around it:

    s[80:81] what the kernel writes    s[82:83] data    s[84:85] a record, and other places    s86 the wave's number
    s87 where the wave went on, then the verdict    s[88:91] the wave's row of the table
    s92 to s98 SCC, MODE, EXEC, VCC, M0    s[100:101] code
    s[64:65] the case's memory    s[66:67] how far it is from where the state has it    s68 wave of the case
    s69 case    s[70:71] a place    s[72:73] where the next wave begins

A case with memory has a workgroup for all of its waves, one after the other, as the witness has them.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.isa.amdgcn.program import program
from tinyhw.tools.witness.cases import PLAIN
from tinyhw.tools.witness.state import MEMORY, MEMORY_SIZE

PASS: Final = 1
FAILED: Final = 0x8000_0000  # with the number of the row that is the first to differ
SPECIALS: Final = ("SCC", "MODE", "EXEC_LO", "EXEC_HI", "VCC_LO", "VCC_HI", "M0", "FLOW")
MODE_BITS: Final = {"gfx11": 0x3FF, "gfx12": 0xFF, "gfx9": 0xF80003FF}  # those that cases set and compare
# Literals that stand for a distance until it is known: to the data, to the cases' code, to the cases' memories.
DATA_AT, CODE_AT, MEMORIES_AT = 0x7ABCDEF1, 0x7ABCDEF2, 0x7ABCDEF3
M32: Final = 0xFFFFFFFF


@dataclass(frozen=True)
class Layout:
  """What one kernel has room for: lanes of a wave, vector registers of a case, scalar registers in sixteens.

  With memory: `waves` of a case, bytes of `memory`, of `lds`, and whether lanes have `scratch`, which holds the memory.
  `accumulators`: accumulation registers, which are behind the vector registers' rows.
  """
  lanes: int
  vgprs: int
  sgprs: int
  waves: int = 0
  memory: int = 0
  lds: int = 0
  scratch: bool = False
  accumulators: int = 0

  @property
  def groups(self) -> int:
    """How many vector registers the scalar ones fill, a lane each."""
    return -(-self.sgprs // self.lanes)

  @property
  def rows(self) -> int:
    """Rows that are compared: vector registers, scalar ones in lanes, special ones."""
    return self.vgprs + self.groups + 1

  @property
  def wanted_at(self) -> int:
    """Where a record has the rows that are wanted, in dwords."""
    return sixteens(self.vgprs)

  @property
  def masks_at(self) -> int: return self.wanted_at + sixteens(self.rows)

  @property
  def start_at(self) -> int:
    """Where it has the scalar registers before the case, and behind them the special ones."""
    return self.masks_at + sixteens(self.groups + 1)

  @property
  def record(self) -> int:
    """Dwords of a wave's record: rows before, rows wanted, masks, then the scalar and special registers before."""
    return self.start_at + self.sgprs + 16

  @property
  def registers(self) -> int:
    """Vector registers of the kernel."""
    return -(-(self.vgprs + 5 + self.groups) // 2) * 2 + (8 if self.waves else 0)

  @property
  def scratch_bytes(self) -> int:
    """Scratch of a lane."""
    return MEMORY_SIZE // self.waves // self.lanes if self.scratch else 0


def sixteens(n: int) -> int: return -(-n // 16) * 16


class Words:
  """A generation's spellings of what kernels here need."""

  def __init__(self, isa: str) -> None:
    old, new = isa == "gfx9", isa == "gfx12"
    self.isa = isa

    def sized(name: str, n: int) -> str:
      """A load or store of so many dwords."""
      return f"{name}_b{32 * n}" if not old else f"{name}_dwordx{n}" if n > 1 else f"{name}_dword"
    self.scalar = {n: sized("s_load", n) for n in (1, 2, 4, 8, 16)}
    self.load, self.store = sized("global_load", 1), sized("global_store", 1)
    self.load4, self.store4 = sized("global_load", 4), sized("global_store", 4)
    self.spill, self.fill = sized("scratch_store", 1), sized("scratch_load", 1)
    self.ds_load4, self.ds_store4 = ("ds_read_b128", "ds_write_b128") if old else ("ds_load_b128", "ds_store_b128")
    self.add = "v_add_u32_e32" if old else "v_add_nc_u32_e32"
    self.sadd, self.saddc = ("s_add_co_u32", "s_add_co_ci_u32") if new else ("s_add_u32", "s_addc_u32")
    self.ssub, self.ssubc = ("s_sub_co_u32", "s_sub_co_ci_u32") if new else ("s_sub_u32", "s_subb_u32")
    self.scalars = "s_wait_kmcnt 0x0" if new else "s_waitcnt lgkmcnt(0)"
    self.loads = "s_wait_loadcnt 0x0" if new else "s_waitcnt vmcnt(0)"
    self.everything = (["s_wait_loadcnt 0x0", "s_wait_storecnt 0x0", "s_wait_dscnt 0x0", "s_wait_kmcnt 0x0",
                        "s_wait_expcnt 0x0", "s_wait_samplecnt 0x0"] if new
                       else ["s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)"]
                       + ([] if old else ["s_waitcnt_vscnt null, 0x0"]))
    self.group = "ttmp9" if new else "s2"
    carry = "vcc" if old else "vcc_lo"
    self.zero = carry  # the encoding is one for both sizes of waves
    add, addc = ("v_add_co_u32_e32", "v_addc_co_u32_e32") if old else ("v_add_co_u32", "v_add_co_ci_u32_e32")
    sub, subc = ("v_sub_co_u32_e32", "v_subb_co_u32_e32") if old else ("v_sub_co_u32", "v_sub_co_ci_u32_e32")
    self.moved = {True: (f"{add} {{0}}, {carry}, {{0}}, {{1}}", f"{addc} {{0}}, {carry}, {{0}}, {{1}}, {carry}"),
                  False: (f"{sub} {{0}}, {carry}, {{0}}, {{1}}", f"{subc} {{0}}, {carry}, {{0}}, {{1}}, {carry}")}

  def pair(self, first: int, low: str, high: str = "0", base: int | None = None) -> list[str]:
    """A 64-bit sum into an SGPR pair, from itself or from another pair."""
    base = first if base is None else base
    return [f"{self.sadd} s{first}, s{base}, {low}", f"{self.saddc} s{first + 1}, s{base + 1}, {high}"]

  def loaded(self, first: int, dwords: int, base: str, offset: int | str) -> str:
    """A scalar load."""
    last = f"s{first}" if dwords == 1 else f"s[{first}:{first + dwords - 1}]"
    return f"{self.scalar[dwords]} {last}, {base}, {offset if isinstance(offset, str) else f'{offset:#x}'}"


@cache
def head(isa: str, x: Layout) -> bytes:
  """What runs before a case: finds the wave's record, loads registers, jumps."""
  w, v = Words(isa), x.vgprs
  lane, at = f"v{v}", f"v{v + 1}"
  out = [f"s_mov_b32 s86, {w.group}", "s_mov_b32 s87, 0", w.loaded(80, 2, "s[0:1]", 0), "s_getpc_b64 s[82:83]"]
  out += w.pair(74 if x.waves else 100, f"{CODE_AT:#x}", base=82) + w.pair(82, f"{DATA_AT:#x}")
  out.append(f"v_lshlrev_b32_e32 {lane}, 2, v0")
  if x.waves: out += [*_memories(w, x), "s_mov_b32 s87, 0"]
  out += ["s_lshl_b32 s99, s86, 4", w.loaded(88, 4, "s[82:83]", "s99"), w.scalars]
  out += w.pair(84, "s89", base=82)                     # the wave's record
  if x.scratch:                                         # each wave's is its part of the memory
    part = x.memory // x.waves
    out += [f"s_mul_i32 s99, s68, {part:#x}", *w.pair(70, "s91", base=82), *w.pair(70, "s99")]
    for k in range(x.scratch_bytes // 4):
      out += [f"{w.load} {at}, {lane}, s[70:71] offset:{k * 4 * x.lanes % 4096}", w.loads,
              f"{w.spill} off, {at}, off offset:{4 * k}"]
      if (k + 1) * 4 * x.lanes % 4096 == 0: out += w.pair(70, "0x1000")
    out += w.everything
  for first in range(0, v, 16):
    out += [w.loaded(0, 16, "s[84:85]", 4 * first), w.scalars]
    for k in range(first, min(v, first + 16)):
      real = v - x.accumulators
      register = f"v{k}" if k < real else at
      out += [f"{w.add} {at}, s{k - first}, {lane}", f"{w.load} {register}, {at}, s[82:83]"]
      if k >= real: out += [w.loads, f"v_accvgpr_write_b32 a{k - real}, {at}"]
  for first in range(0, x.sgprs, 16): out.append(w.loaded(first, 16, "s[84:85]", 4 * (x.start_at + first)))
  out += [w.loaded(92, 8, "s[84:85]", 4 * (x.start_at + x.sgprs)), w.loads, w.scalars]
  out += w.pair(100, "s88", base=74 if x.waves else None)
  if x.waves: out += [f"v_mov_b32_e32 {at}, s66", f"v_mov_b32_e32 v{v + 2}, s67"]
  else: out += _specials()
  return _assembled(isa, "\n".join([*out, "s_setpc_b64 s[100:101]"]))


def _specials() -> list[str]:
  """The special registers as they are before a case; nothing behind it changes SCC."""
  return ["s_mov_b32 vcc_lo, s96", "s_mov_b32 vcc_hi, s97", "s_mov_b32 m0, s98", "s_cmp_lg_u32 s92, 0",
          "s_mov_b64 exec, s[94:95]"]


def _memories(w: Words, x: Layout) -> list[str]:
  """Fill the case's memory and LDS; what follows is done for each wave of the case."""
  v = x.vgprs
  stride, wide = x.memory + x.lds, f"v{v + 1}"
  out = ["s_mov_b32 s69, s86", f"s_mul_i32 s86, s69, {x.waves}", "s_mov_b32 s68, 0", "s_lshl_b32 s99, s86, 4",
         w.loaded(88, 4, "s[82:83]", "s99"), f"v_lshlrev_b32_e32 {wide}, 2, v{v}", w.scalars,
         f"s_mul_i32 s99, s69, {stride:#x}", *w.pair(64, f"{MEMORIES_AT:#x}", base=80), *w.pair(64, "s99"),
         f"{w.ssub} s66, s64, {MEMORY & M32:#x}", f"{w.ssubc} s67, s65, {MEMORY >> 32:#x}", *w.pair(70, "s91", base=82)]
  size = 16 * x.lanes
  if x.memory:
    out += w.pair(84, "0", base=64)
    for k in range(x.memory // size):
      out += [f"{w.load4} v[0:3], {wide}, s[70:71] offset:{k * size % 4096}", w.loads,
              f"{w.store4} {wide}, v[0:3], s[84:85] offset:{k * size % 4096}"]
      if (k + 1) * size % 4096 == 0: out += w.pair(70, "0x1000") + w.pair(84, "0x1000")
    out += w.pair(70, f"{x.memory:#x}")  # past what is wanted
  for k in range(x.lds // size):
    out += [f"{w.load4} v[0:3], {wide}, s[70:71] offset:{k * size}", w.loads,
            f"{w.ds_store4} {wide}, v[0:3] offset:{k * size}"]
  return [*out, *w.everything, "s_dcache_inv", "s_getpc_b64 s[72:73]"]


# ---- a case

@dataclass(frozen=True)
class Move:
  """An address in registers of a wave: of the scalar pair, or, with lanes, of the vector pair that begins at `first`.

  `kind`: "address", "descriptor" (48 bits of a pair) or "picture" (an address without its low 8 bits, 40 bits wide).
  """
  first: int
  lanes: int = 0
  kind: str = "address"


@cache
def stub(isa: str, code: bytes, mode: int, before: tuple[Move, ...] | None = None, after: tuple[Move, ...] = (),
         vgprs: int = 0, wide: bool = False) -> bytes:
  """A case's code; the branch to what compares is its last dword. With `before` it has memory: these addresses are
  moved to where that is, and those of `after` back."""
  plain = PLAIN[isa]
  out, w = list[str](), Words(isa)
  if before is not None:
    for m in before: out += _moved(w, m, True, vgprs, wide)
    out += _specials()
  for low, bits in _fields(isa, mode ^ plain):
    out.append(f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, {low}, {bits}), {mode >> low & (1 << bits) - 1:#x}")
  out.append("s_nop 7")
  begin = _lines(isa, out)
  end = ["s_nop 7", *(w.everything if before is not None else ()), "s_cselect_b32 s92, 1, 0",
         "s_getreg_b32 s93, hwreg(HW_REG_MODE)"]
  for low, bits in _fields(isa, MODE_BITS[isa] if _sets_mode(isa, code) else mode ^ plain):
    end.append(f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, {low}, {bits}), {plain >> low & (1 << bits) - 1:#x}")
  if before is not None:
    end += _saved()
    for m in after: end += _moved(w, m, False, vgprs, wide)
  return begin + code + _lines(isa, [*end, "s_branch 0"])


def _moved(w: Words, m: Move, there: bool, vgprs: int, wide: bool) -> list[str]:
  """Move an address in registers to the case's memory, or back."""
  r = m.first
  if m.lanes:
    out = [f"s_mov_b32 exec_lo, {m.lanes & M32:#x}", *([f"s_mov_b32 exec_hi, {m.lanes >> 32:#x}"] if wide else [])]
    low, high = w.moved[there]
    return [*out, low.format(f"v{r}", f"v{vgprs + 1}"), high.format(f"v{r + 1}", f"v{vgprs + 2}"),
            "s_mov_b64 exec, -1"]
  add, carry = (w.sadd, w.saddc) if there else (w.ssub, w.ssubc)
  if m.kind == "address": return [f"{add} s{r}, s{r}, s66", f"{carry} s{r + 1}, s{r + 1}, s67"]
  keep = 0xFFFF0000 if m.kind == "descriptor" else 0xFFFFFF00
  out = [f"s_and_b32 s99, s{r + 1}, {keep:#x}"]
  if m.kind == "picture": out += ["s_lshr_b64 s[70:71], s[66:67], 8"]
  low, high = ("s66", "s67") if m.kind == "descriptor" else ("s70", "s71")
  return [*out, f"{add} s{r}, s{r}, {low}", f"{carry} s{r + 1}, s{r + 1}, {high}",
          f"s_and_b32 s{r + 1}, s{r + 1}, {~keep & M32:#x}", f"s_or_b32 s{r + 1}, s{r + 1}, s99"]


def _saved() -> list[str]:
  return ["s_mov_b64 s[94:95], exec", "s_mov_b64 exec, -1", "s_mov_b32 s96, vcc_lo", "s_mov_b32 s97, vcc_hi",
          "s_mov_b32 s98, m0"]


def _sets_mode(isa: str, code: bytes) -> bool:
  name = table(isa).decode(code).mnemonic
  return name.startswith(("s_setreg", "s_round_mode", "s_denorm_mode", "s_set_gpr_idx", "s_setvskip"))


def _fields(isa: str, bits: int) -> list[tuple[int, int]]:
  """(first, count) of the parts of MODE that have these bits: what all generations have, and what gfx9 has above."""
  low = (0, 10) if isa != "gfx12" else (0, 8)
  return [part for part in (low, (27, 5)) if bits >> part[0] & (1 << part[1]) - 1]


# ---- after it

@cache
def tail(isa: str, x: Layout) -> bytes:
  """What runs after a case: saves what it left, compares, and writes what is wrong."""
  w, v = Words(isa), x.vgprs
  lane, at, bad, first = f"v{v}", f"v{v + 1}", f"v{v + 2}", v + 3
  real = v - x.accumulators
  out = [*([] if x.waves else _saved()), f"v_mov_b32_e32 {bad}, 0"]
  out += [f"v_mov_b32_e32 v{first + k}, 0" for k in range(x.groups + 1)]
  out += [f"v_writelane_b32 v{first + k // x.lanes}, s{k}, {k % x.lanes}" for k in range(x.sgprs)]
  out += [f"v_writelane_b32 v{first + x.groups}, s{92 + k}, {k}" for k in range(len(SPECIALS) - 1)]
  out.append(f"v_writelane_b32 v{first + x.groups}, s87, {len(SPECIALS) - 1}")
  mask = f"v{first + x.groups + 1}"

  def register(row: int, into: str) -> tuple[list[str], str]:
    """What reads a row's register, and where it then is."""
    if row >= v: return [], f"v{first + row - v}"
    return ([], f"v{row}") if row < real else ([f"v_accvgpr_read_b32 {into}, a{row - real}"], into)

  def each(body: Callable[[int], list[str]]) -> list[str]:
    lines = w.pair(84, "s89", base=82) + [w.loaded(16, 16, "s[84:85]", 4 * x.masks_at)]
    for row in range(x.rows):
      if row % 16 == 0: lines += [w.loaded(0, 16, "s[84:85]", 4 * (x.wanted_at + row)), w.scalars]
      lines += [f"{w.add} {at}, s{row % 16}, {lane}", f"{w.load} {at}, {at}, s[82:83]"]
      if row >= v: lines += [f"{w.add} {mask}, s{16 + row - v}, {lane}", f"{w.load} {mask}, {mask}, s[82:83]"]
      read, where = register(row, mask)
      lines += [w.loads, *read, f"v_xor_b32_e32 {at}, {at}, {where}"]
      if row >= v: lines.append(f"v_and_b32_e32 {at}, {at}, {mask}")
      lines += body(row)
    return lines
  out += each(lambda row: [f"v_or_b32_e32 {bad}, {bad}, {at}"])
  if x.waves: out += _memories_compared(w, x)
  out += [f"v_cmp_ne_u32_e32 {w.zero}, 0, {bad}", "s_lshl_b32 s99, s86, 2", f"v_mov_b32_e32 {at}, s99",
          "s_cbranch_vccnz failed", f"s_mov_b32 s87, {PASS}", "s_branch told", "failed:"]

  def found(row: int) -> list[str]:
    return [f"s_movk_i32 s87, {row:#x}", f"v_cmp_ne_u32_e32 {w.zero}, 0, {at}", "s_cbranch_vccnz dump"]
  out += [*each(found), f"s_movk_i32 s87, {x.rows:#x}", "dump:", f"s_or_b32 s87, s87, {FAILED:#x}",
          *w.pair(84, "s90", base=80)]
  size = 4 * x.lanes
  for row in range(x.rows):
    if row and row % 8 == 0: out += w.pair(84, f"{8 * size:#x}")
    read, where = register(row, mask)
    out += [*read, f"{w.store} {lane}, {where}, s[84:85] offset:{row % 8 * size}"]
  out += [f"v_mov_b32_e32 {at}, s99", "told:", "s_mov_b64 exec, 1", f"v_mov_b32_e32 {bad}, s87",
          f"{w.store} {at}, {bad}, s[80:81]"]
  if x.waves:
    out += ["s_mov_b64 exec, -1", f"{w.sadd} s86, s86, 1", f"{w.sadd} s68, s68, 1", f"s_cmp_eq_u32 s68, {x.waves}",
            "s_cbranch_scc1 over", *w.everything, "s_setpc_b64 s[72:73]", "over:"]
  return _assembled(isa, "\n".join([*out, "s_endpgm"]))


def _memories_compared(w: Words, x: Layout) -> list[str]:
  """Compare memory and LDS behind the last wave, with scratch where that holds the memory; LDS is written out too."""
  v, size = x.vgprs, 16 * x.lanes
  lane, wide, bad = f"v{v}", f"v{v + 1}", f"v{v + 2}"
  first = x.registers - 8
  one, two = ([f"v{first + 4 * half + k}" for k in range(4)] for half in (0, 1))
  a, b = f"v[{first}:{first + 3}]", f"v[{first + 4}:{first + 7}]"
  out = []
  if x.scratch:
    out += [f"s_mul_i32 s99, s68, {x.memory // x.waves:#x}", *w.pair(70, "s99", base=64)]
    for k in range(x.scratch_bytes // 4):
      out += [f"{w.fill} {one[0]}, off, off offset:{4 * k}", w.loads,
              f"{w.store} {lane}, {one[0]}, s[70:71] offset:{k * 4 * x.lanes % 4096}"]
      if (k + 1) * 4 * x.lanes % 4096 == 0: out += w.pair(70, "0x1000")
    out += w.everything
  out += [f"{w.sadd} s99, s68, 1", f"s_cmp_lg_u32 s99, {x.waves}", "s_cbranch_scc1 compared",
          f"v_lshlrev_b32_e32 {wide}, 2, {lane}", *w.pair(70, "0", base=64), *w.pair(84, "s91", base=82)]
  different = [f"v_xor_b32_e32 {p}, {p}, {q}" for p, q in zip(one, two)]
  different += [f"v_or_b32_e32 {bad}, {bad}, {p}" for p in one]
  if x.memory:
    out += w.pair(84, f"{x.memory:#x}")
    for k in range(x.memory // size):
      out += [f"{w.load4} {a}, {wide}, s[70:71] offset:{k * size % 4096}",
              f"{w.load4} {b}, {wide}, s[84:85] offset:{k * size % 4096}", w.loads, *different]
      if (k + 1) * size % 4096 == 0: out += w.pair(70, "0x1000") + w.pair(84, "0x1000")
  if x.lds:
    out += w.pair(84, f"{x.lds:#x}")
    for k in range(x.lds // size):
      out += [f"{w.ds_load4} {a}, {wide} offset:{k * size}", f"{w.load4} {b}, {wide}, s[84:85] offset:{k * size}",
              *w.everything, f"{w.store4} {wide}, {a}, s[70:71] offset:{k * size}", *different]
  return [*out, "compared:"]


def _assembled(isa: str, text: str) -> bytes:
  return b"".join(i.code for i in program(text, table(isa), "a kernel of the conformance suite"))


@cache
def line(isa: str, text: str) -> bytes:
  """One instruction."""
  return assemble(text, table(isa))


def _lines(isa: str, texts: list[str]) -> bytes: return b"".join(line(isa, t) for t in texts)
