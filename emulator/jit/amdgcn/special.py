"""Instructions that the reference binds by name, as LLVM IR: dot products of small integers, sums of differences, moves
by register numbers in M0."""
from __future__ import annotations

from tinyhw.emulator.amdgcn import bind, dpp, relative
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.gfx9 import bind as bind_gfx9
from tinyhw.emulator.amdgcn.gfx12 import bind as bind_gfx12
from tinyhw.emulator.amdgcn.meanings import integer
from tinyhw.emulator.jit.amdgcn import alu
from tinyhw.emulator.jit.amdgcn.alu import read, write
from tinyhw.emulator.jit.amdgcn.state import Registers
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.values.ops import I32, I64, U32
from tinyhw.isa.amdgcn import Instruction, Operand
from tinyhw.isa.amdgcn.codes import AGPR0, M0, VCC_LO


def _dot(r: Registers, i: Instruction, mode: int) -> None:
  """v_dot4_i32_iu8, v_dot8_i32_iu4: neg_lo says which source is signed."""
  bits = 8 if i.mnemonic == "v_dot4_i32_iu8" else 4
  signed, clamp = i.get("neg_lo"), i.get("clamp")
  a, b, c = (read(r, i.operands[n], "u32") for n in ("src0", "src1", "src2"))

  def element(x: Value, k: int, is_signed: int) -> Value:
    top = x << 32 - bits * (k + 1)
    return top.view(I32) >> 32 - bits if is_signed else (top >> 32 - bits).view(I32)

  total: Value | None = None  # no sum of products overflows
  for k in range(32 // bits):
    product = element(a, k, signed & 1) * element(b, k, signed >> 1 & 1)
    total = product if total is None else total + product
  assert total is not None
  if not clamp: return write(r, i.operands["vdst"], c.view(I32) + total)
  wide = r.o.clip(convert(c.view(I32), I64) + convert(total, I64), -(1 << 31), (1 << 31) - 1)
  write(r, i.operands["vdst"], convert(wide, I32))


def _quad_sad(r: Registers, i: Instruction, mode: int) -> None:
  """v_qsad_pk_u16_u8, v_mqsad_pk_u16_u8, v_mqsad_u32_u8: source 0 has 8 bytes, the accumulators 16 or 32 bits."""
  one = integer.msad_u8 if "mqsad" in i.mnemonic else integer.sad_u8
  x, y = read(r, i.operands["src0"], "u64"), read(r, i.operands["src1"], "u32")
  n, c, o = i.operands["vdst"].value, i.operands["src2"], r.o
  parts = [convert(x >> 8 * k, U32) for k in range(4)]
  if i.mnemonic == "v_mqsad_u32_u8":
    old = [r.vector(c.value + k, U32) if c.kind == "v" else r.e.const(U32, 0) for k in range(4)]
    words = [one(o, parts[k], y, old[k]) for k in range(4)]
  else:
    packed = read(r, c, "u64")
    low = [convert(packed >> 16 * k, U32) & 0xFFFF for k in range(4)]
    halves = [one(o, parts[k], y, low[k]) & 0xFFFF for k in range(4)]
    words = [halves[0] | halves[1] << 16, halves[2] | halves[3] << 16]
  if n + len(words) > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
  for k, w in enumerate(words): r.set_vector(n + k, w)


def _pk_mov(r: Registers, i: Instruction, mode: int) -> None:
  """v_pk_mov_b32: the low register from source 0, the high one from source 1; op_sel says from which dword."""
  first, op_sel = i.operands["vdst"].value, i.get("op_sel")
  if first + 1 >= r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
  words = [read(r, bind.dword(i.operands[f"src{k}"], op_sel >> k & 1), "u32") for k in (0, 1)]
  for k, w in enumerate(words): r.set_vector(first + k, w)


def _permlane_var(r: Registers, i: Instruction, mode: int) -> None:
  """v_permlane16_var, v_permlanex16_var: each lane names the lane of its row, or of the row's partner, in source 1."""
  other = 16 if "permlanex16" in i.mnemonic else 0
  row = r.e.vector(U32, [lane & ~15 ^ other for lane in range(r.lanes)])
  alu.fetch(r, i, read(r, i.operands["src0"], "u32"), (read(r, i.operands["src1"], "u32") & 15) + row)


# ---- registers by M0

def _numbers(r: Registers, halves: bool) -> tuple[Value, Value]:
  """What M0 adds to the numbers of source and destination."""
  m0 = r.scalar(M0)
  return (m0 & 0x3FF, m0 >> 16 & 0x3FF) if halves else (m0, m0)


def _movrel(r: Registers, i: Instruction, mode: int) -> None:
  """v_movrels_b32, v_movreld_b32, v_movrelsd_b32, v_movrelsd_2_b32."""
  source, destination = i.operands["src0"], i.operands["vdst"]
  from_m0, to_m0 = "movrels" in i.mnemonic and source.kind == "v", "movreld" in i.mnemonic or "movrelsd" in i.mnemonic
  if i.variant.endswith(dpp.VARIANTS) or destination.value >= r.vgprs: raise Untranslatable(i.mnemonic)
  first, second = _numbers(r, i.mnemonic == "v_movrelsd_2_b32")
  at, to = first + source.value, second + destination.value
  if from_m0: r.unless((at >= r.vgprs) | (first >= r.vgprs))
  if to_m0: r.unless((to >= r.vgprs) | (second >= r.vgprs))
  value = r.indexed(at) if from_m0 else read(r, source, "u32")
  if to_m0: r.set_indexed(to, Value(r.e, value.in_lanes(), U32, True))
  else: write(r, destination, value)


def _swap_relative(r: Registers, i: Instruction, mode: int) -> None:
  """v_swaprel_b32: two registers change places."""
  first, second = _numbers(r, True)
  a, b = first + i.operands["src0"].value, second + i.operands["vdst"].value
  r.unless((a >= r.vgprs) | (b >= r.vgprs))
  x, y = r.indexed(a), r.indexed(b)
  r.set_indexed(b, x)
  r.set_indexed(a, y)


def _scalar_move_relative(r: Registers, i: Instruction, mode: int) -> None:
  """s_movrels, s_movreld of one or two registers, s_movrelsd_2."""
  source, n = i.operands["src0"], i.operands["sdst"].value
  dwords = 2 if i.mnemonic.endswith("b64") else 1
  halves = i.mnemonic == "s_movrelsd_2_b32"
  by_source, by_destination = "movrels" in i.mnemonic, "movreld" in i.mnemonic or halves
  if n + dwords > VCC_LO + 2: raise Untranslatable(i.mnemonic)
  first, second = _numbers(r, halves)
  if by_source: r.unless((first > VCC_LO) | (first + source.value + dwords > VCC_LO))
  if by_destination: r.unless((second > VCC_LO) | (second + n + dwords > VCC_LO + 2))
  if by_source: words = [r.scalar_indexed(first + source.value + k) for k in range(dwords)]
  elif dwords == 1: words = [read(r, source, "u32")]
  else:
    wide = read(r, source, "u64")
    words = [convert(wide, U32), convert(wide >> 32, U32)]
  if by_destination:
    for k, w in enumerate(words): r.set_scalar_indexed(second + n + k, w)
  elif dwords == 1: r.set_scalar(n, words[0])
  else: r.set_scalar64(n, r.o.pack(words[0], words[1]))


# ---- gfx9: registers relative to M0 while MODE says so (CDNA3 ISA manual, section 6.6)

def _index(r: Registers, index: Value) -> None: r.set_scalar(M0, r.scalar(M0) & 0xFFFFFF00 | index & 0xFF)
def _operands(r: Registers, bits: int) -> None: r.set_scalar(M0, r.scalar(M0) & 0xFFFF0FFF | (bits & 15) << 12)


def index_on(r: Registers, i: Instruction) -> None:
  """s_set_gpr_idx_on, but for MODE."""
  _index(r, read(r, i.operands["src0"], "u32"))
  _operands(r, i.operands["src1"].value)


def _set_index(r: Registers, i: Instruction, mode: int) -> None:
  """s_set_gpr_idx_idx, s_set_gpr_idx_mode."""
  if i.mnemonic == "s_set_gpr_idx_mode": _operands(r, i.fields["simm16"])
  else: _index(r, read(r, i.operands["src0"], "u32"))


def relative_move(r: Registers, i: Instruction) -> bool:
  """v_mov_b32 by register numbers relative to M0, which compilers index arrays with; False for another instruction.

  What would pass the last register, or the last of its kind, is left to the reference.
  """
  if i.mnemonic != "v_mov_b32" or i.variant != "e32": return False
  m0, source, destination = r.scalar(M0), i.operands["src0"], i.operands["vdst"]

  def place(o: Operand, bit: int) -> Value:
    n = r.o.where((m0 >> bit & 1) != 0, m0 & 0xFF, r.e.const(U32, 0)) + o.value
    r.unless(n >= (min(AGPR0, r.vgprs) if o.value < AGPR0 else r.vgprs))
    return n
  to = place(destination, bind_gfx9.INDEXED["vdst"])
  if source.kind == "v": value = r.indexed(place(source, bind_gfx9.INDEXED["src0"]))
  else: value = read(r, source, "u32")
  r.set_indexed(to, Value(r.e, value.in_lanes(), U32, True))
  return True


_SET_INDEX = binds.get("s_set_gpr_idx_idx", "gfx9")
assert _SET_INDEX is not None
alu.SPECIAL.update({
  _SET_INDEX: _set_index,
  bind.dot_iu: _dot, bind.quad_sad: _quad_sad, bind_gfx9.pk_mov: _pk_mov,
  bind_gfx12.permlane_var: _permlane_var, relative.movrel: _movrel,
  relative.swap_relative: _swap_relative, relative.scalar_move_relative: _scalar_move_relative,
})
