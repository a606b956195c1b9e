"""v_wmma_* and v_swmmac_* of gfx1201, assembled by LLVM, against NumPy with the manual's layout tables.

The tables are those of the RDNA4 ISA manual, section 7.12.2, in its notation: which bits of an element's place make up
the lane, the register and the position in it, highest bit first. AMD's matrix instruction calculator has the same.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import Gpu, compile_gpu
from tests.strength import seed
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

GPU = "gfx1201"
BITS = {"f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "iu8": 8, "iu4": 4, "f32": 32, "i32": 32}
# (bits, k) -> waves of 32, waves of 64: "lane's upper bits | register | position"; below is the row or the column
PLACES = {
  (16, 16): ("k2|k3 k1|k0", "k3 k2|k1|k0"), (16, 32): ("k3|k4 k2 k1|k0", "k4 k3|k2 k1|k0"),
  (8, 16): ("k3|k2|k1 k0", "k2 k3||k1 k0"), (8, 32): ("k4|k3 k2|k1 k0", "k3 k4|k2|k1 k0"),
  (4, 16): ("k3||k2 k1 k0", "k3||k2 k1 k0"), (4, 32): ("k4|k3|k2 k1 k0", "k3 k4||k2 k1 k0"),
  (4, 64): ("k5|k4 k3|k2 k1 k0", "k4 k5|k3|k2 k1 k0"),
}
# Of a sparse A: "lane's upper bits | number of the four bits in the index register", by columns of the expanded matrix
INDEX = {(16, 32): ("k3|k4 k2", "k4 k3|k2"), (8, 32): ("k4|k3 k2", "k3 k4|k2"), (4, 32): ("k4|k3 k2", "k4|k3 k2"),
         (4, 64): ("k5|k4 k3 k2", "k4 k5|k3 k2")}
RESULT = {32: ("r3|r2 r1 r0|", "r2 r3|r1 r0|"), 16: ("r3|r2 r1|r0", "r2 r3|r1|r0")}


def _number(bits: str, value: int) -> int:
  out = 0
  for name in bits.split(): out = out << 1 | value >> int(name[1:]) & 1
  return out


def place(places: Any, lanes: int, position: int, line: int) -> tuple[int, int, int]:
  """(lane, register, position) of an element."""
  lane, register, start = places[lanes == 64].split("|")
  return _number(lane, position) << 4 | line, _number(register, position), _number(start, position)


def pack(places: Any, bits: int, lanes: int, raw: np.ndarray) -> np.ndarray:
  """Raw elements [position, line] in registers [lanes, registers]."""
  out = np.zeros((lanes, 8), np.uint32)
  top = 0
  for (position, line), value in np.ndenumerate(raw):
    lane, register, start = place(places, lanes, position, line)
    out[lane, register] |= np.uint32(int(value) << start * bits)
    top = max(top, register)
  return out[:, :top + 1]


def unpack(places: Any, bits: int, lanes: int, words: np.ndarray, positions: int) -> np.ndarray:
  out = np.zeros((positions, 16), np.uint32)
  for position, line in np.ndindex(positions, 16):
    lane, register, start = place(places, lanes, position, line)
    out[position, line] = int(words[lane, register]) >> start * bits & (1 << bits) - 1
  return out


# ---- numbers of each type: raw patterns and their exact values

def small(fraction: int, bias: int, raw: int, ieee: bool) -> float:
  sign, magnitude = -1.0 if raw & 0x80 else 1.0, raw & 0x7F
  exponent, mantissa = magnitude >> fraction, magnitude & (1 << fraction) - 1
  if ieee and exponent == 31: return sign * float("inf") if not mantissa else float("nan")
  if not ieee and magnitude == 0x7F: return float("nan")
  if not exponent: return sign * mantissa * 2.0 ** (1 - bias - fraction)
  return sign * (1 + mantissa / (1 << fraction)) * 2.0 ** (exponent - bias)


SMALL = {"fp8": np.array([small(3, 7, c, False) for c in range(256)]),
         "bf8": np.array([small(2, 15, c, True) for c in range(256)])}


def values(kind: str, raw: np.ndarray, signed: bool = False) -> np.ndarray:
  if kind == "f16": return raw.astype(np.uint16).view(np.float16).astype(np.float64)
  if kind == "bf16": return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
  if kind in SMALL: return SMALL[kind][raw]
  bits = BITS[kind]
  wide = raw.astype(np.int64)
  return np.where(signed & (wide >> bits - 1 == 1), wide - (1 << bits), wide)


def draw(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
  """Raw patterns of numbers near 1 (or any integers)."""
  if kind == "f16": return rng.standard_normal(shape).astype(np.float16).view(np.uint16).astype(np.uint32)
  if kind in {"bf16", "f32"}:
    raw = rng.standard_normal(shape).astype(np.float32).view(np.uint32)
    return raw >> 16 if kind == "bf16" else raw
  if kind in SMALL:
    codes = np.flatnonzero((np.abs(SMALL[kind]) < 8) & np.isfinite(SMALL[kind]))
    return rng.choice(codes, shape).astype(np.uint32)
  if kind == "i32": return rng.integers(-1000, 1000, shape).astype(np.int32).view(np.uint32)
  return rng.integers(0, 1 << BITS[kind], shape).astype(np.uint32)


def rounded(kind: str, exact: Fraction) -> int:
  """Pattern of the nearest number, ties to even."""
  if kind == "i32": return int(exact) & 0xFFFFFFFF
  x = float(exact)
  if kind == "f32":
    near = np.float32(x)
    if Fraction(x) != exact:  # f64 has rounded it already
      around = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
      near = min(around, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))
    return int(near.view(np.uint32))
  if kind == "f16": return int(np.float16(x).view(np.uint16))
  low = int(np.float32(x).view(np.uint32)) >> 16  # bf16: the nearest of three neighbours
  def value(raw: int) -> Fraction: return Fraction(float(np.uint32(raw << 16).view(np.float32)))
  return min((low - 1, low, low + 1), key=lambda raw: (abs(value(raw) - exact), raw & 1))


@dataclass(frozen=True)
class Shape:
  name: str
  a: str
  b: str
  result: str
  k: int
  sparse: bool

  @property
  def mnemonic(self) -> str:
    return f"v_{'swmmac' if self.sparse else 'wmma'}_{self.result}_16x16x{self.k}_{self.name}"


SHAPES = [Shape(n, a, b, r, k << s, bool(s)) for s in (0, 1) for r, k, n, a, b in (
  ("f32", 16, "f16", "f16", "f16"), ("f32", 16, "bf16", "bf16", "bf16"), ("f16", 16, "f16", "f16", "f16"),
  ("bf16", 16, "bf16", "bf16", "bf16"), ("i32", 16, "iu8", "iu8", "iu8"), ("i32", 16, "iu4", "iu4", "iu4"),
  ("i32", 32, "iu4", "iu4", "iu4"), *(("f32", 16, f"{a}_{b}", a, b) for a in SMALL for b in SMALL))]


def typed(kind: str, registers: int) -> str:
  """IR type of registers that hold elements of a kind, as the intrinsics have them."""
  element, per = {"f16": ("half", 2), "bf16": ("i16", 2), "f32": ("float", 1)}.get(kind, ("i32", 1))
  return f"<{registers * per} x {element}>" if registers * per > 1 else element


def mangled(kind: str) -> str:
  """The name of a type in an overloaded intrinsic's name."""
  count, _, element = kind.strip("<>").rpartition(" x ")
  name = {"half": "f16", "float": "f32"}.get(element, element)
  return f"v{count}{name}" if count else name


def launch(ir: str, inputs: list[np.ndarray], out: np.ndarray, lanes: int, code: str = "") -> np.ndarray:
  """Run kernel k with pointers to the inputs and the result; `code`, in assembler, replaces the kernel's own."""
  gpu = Gpu(cpu=GPU)
  kernel = gpu.load(compile_gpu(ir, cpu=GPU, features="+wavefrontsize64" if lanes == 64 else ""))["k"]
  o = gpu.put(out)
  if code:
    kernel.rsrc1 |= 7  # 64 registers
    gpu.space.write(kernel.entry, b"".join(assemble(line, table("gfx12")) for line in code.splitlines()))
  gpu.launch(kernel, (1, 1, 1), (lanes, 1, 1), [*map(gpu.put, inputs), o])
  return gpu.get(o, np.uint32, out.size).reshape(out.shape)


def by_intrinsic(shape: Shape, signs: tuple[bool, bool], a: np.ndarray, b: np.ndarray, c: np.ndarray, lanes: int,
                 index: np.ndarray | None = None, index_bits: int = 0, key: int = 0) -> np.ndarray:
  """D of registers [lanes, registers]; of a sparse product, the index set `key` of `index_bits` bits of a register."""
  ta, tb, tc = typed(shape.a, a.shape[1]), typed(shape.b, b.shape[1]), typed(shape.result, c.shape[1])
  name = shape.name.replace("_", ".")
  family = "swmmac" if shape.sparse else "wmma"
  overloads, arguments = [tc, ta], [(ta, "%x0"), (tb, "%x1"), (tc, "%x2")]
  if shape.a.startswith("iu"):
    one, two = (("i1", str(int(sign))) for sign in signs)
    arguments = [one, arguments[0], two, *arguments[1:]]
  prologue = ""
  if index is not None:
    overloads += [tb, f"i{index_bits}"]
    arguments.append((f"i{index_bits}", "%w"))
    prologue = "  %w = add i32 %x3, 0\n" if index_bits == 32 else \
      f"  %s = lshr i32 %x3, {key * index_bits}\n  %w = trunc i32 %s to i{index_bits}\n"
  if shape.a.startswith("iu") or shape.result in {"f16", "bf16"} and not shape.sparse: arguments.append(("i1", "0"))
  function = f"@llvm.amdgcn.{family}.{shape.result}.16x16x{shape.k}.{name}." + ".".join(map(mangled, overloads))
  kinds = [ta, tb, tc, *(["i32"] if index is not None else [])]
  parameters = ", ".join(f"ptr addrspace(1) %a{n}" for n in range(len(kinds)))
  loads = "\n".join(f"  %p{n} = getelementptr {t}, ptr addrspace(1) %a{n}, i32 %i\n"
                    f"  %x{n} = load {t}, ptr addrspace(1) %p{n}, align 4" for n, t in enumerate(kinds))
  ir = f"""
define amdgpu_kernel void @k({parameters}, ptr addrspace(1) %o) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
{loads}
{prologue}  %d = call {tc} {function}({", ".join(f"{t} {v}" for t, v in arguments)})
  %po = getelementptr {tc}, ptr addrspace(1) %o, i32 %i
  store {tc} %d, ptr addrspace(1) %po, align 4
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="{lanes},{lanes}" }}
declare i32 @llvm.amdgcn.workitem.id.x()
declare {tc} {function}({", ".join(t + (" immarg" if t == "i1" else "") for t, _ in arguments)})"""
  return launch(ir, [a, b, c, *([index] if index is not None else [])], c, lanes)


def by_text(text: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
  """An instruction with modifiers that no intrinsic has: A, B, C and D in its text stand for their registers."""
  ir = """
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %o) {
  store i32 0, ptr addrspace(1) %o
  ret void
}"""
  first = {"A": (8, a), "B": (16, b), "C": (24, c), "D": (40, c)}
  lines = ["s_load_b256 s[8:15], s[0:1], 0x0"]
  for n, letter in enumerate("ABC"):
    register, x = first[letter]
    lines.append(f"v_mul_u32_u24_e32 v1, {4 * x.shape[1]}, v0")
    lines += [f"global_load_b32 v{register + k}, v1, s[{8 + 2 * n}:{9 + 2 * n}] offset:{4 * k}"
              for k in range(x.shape[1])]
  lines.append(re.sub(r"\b[ABCD]\b", lambda m: f"v[{first[m[0]][0]}:{first[m[0]][0] + first[m[0]][1].shape[1] - 1}]",
                      text))
  lines += [f"global_store_b32 v1, v{40 + k}, s[14:15] offset:{4 * k}" for k in range(c.shape[1])]
  return launch(ir, [a, b, c], c, 32, "\n".join([*lines, "s_endpgm"]))


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.mnemonic)
def test_product(shape: Shape, lanes: int) -> None:
  rng = np.random.default_rng([lanes, SHAPES.index(shape)])
  columns = shape.k // 2 if shape.sparse else shape.k
  a = draw(shape.a, rng, (columns, 16))  # [k, row]
  b, c = draw(shape.b, rng, (shape.k, 16)), draw(shape.result, rng, (16, 16))
  sign_a, sign_b = (bool(rng.integers(2)) for _ in "ab")
  signs = (sign_a, sign_b) if shape.a.startswith("iu") else (False, False)
  where = PLACES[BITS[shape.a], columns], PLACES[BITS[shape.b], shape.k], RESULT[BITS[shape.result]]
  index, first, bits, key = None, np.zeros(0), 0, 0
  if shape.sparse:  # of four columns two are stored
    pairs = np.array([(x, y) for x in range(4) for y in range(x + 1, 4)])
    first = pairs[rng.integers(0, 6, (shape.k // 4, 16))]  # [fours, row, 2]
    numbers = INDEX[BITS[shape.a], shape.k]
    sets = 8 // (1 << len(numbers[lanes == 64].split("|")[1].split()))
    key = int(rng.integers(sets))
    index = rng.integers(0, 1 << 32, (lanes, 1), dtype=np.uint32)
    for four, row in np.ndindex(shape.k // 4, 16):
      lane, number, _ = place([t + "|" for t in numbers], lanes, four * 4, row)
      at = 4 * number + key * (32 // sets)
      index[lane, 0] &= np.uint32(~(15 << at) & 0xFFFFFFFF)
      index[lane, 0] |= np.uint32(int(first[four, row, 0] | first[four, row, 1] << 2) << at)
    bits = 32 // sets
  ra, rb = pack(where[0], BITS[shape.a], lanes, a), pack(where[1], BITS[shape.b], lanes, b)
  got = by_intrinsic(shape, signs, ra, rb, pack(where[2], BITS[shape.result], lanes, c), lanes, index, bits, key)
  got = unpack(where[2], BITS[shape.result], lanes, got, 16)

  x, y = values(shape.a, a, signs[0]), values(shape.b, b, signs[1])
  z = c.view(np.int32).astype(np.int64) if shape.result == "i32" else (
    c.view(np.float32).astype(np.float64) if shape.result == "f32" else values(shape.result, c))
  for row, column in np.ndindex(16, 16):
    total = Fraction(z[row, column].item())
    for k in range(columns):
      at = k if not shape.sparse else k // 2 * 4 + int(first[k // 2, row, k % 2])
      total += Fraction(x[k, row].item()) * Fraction(y[at, column].item())
      if shape.result == "f32":  # a fused multiply-add
        total = Fraction(np.uint32(rounded("f32", total)).view(np.float32).item())
    assert got[row, column] == rounded(shape.result, total), (row, column)


def test_modifiers_of_float_matrices() -> None:
  """neg_lo and neg_hi negate the even and the odd elements of A and B; for C they are negation and absolute value."""
  rng = np.random.default_rng(seed(5))
  a, b, c = (draw(t, rng, (16, 16)) for t in ("f16", "f16", "f32"))
  ra, rb = pack(PLACES[16, 16], 16, 32, a), pack(PLACES[16, 16], 16, 32, b)
  rc = pack(RESULT[32], 32, 32, c)
  got = by_text("v_wmma_f32_16x16x16_f16 D, A, B, C neg_lo:[1,0,1] neg_hi:[0,1,1]", ra, rb, rc)
  x, y, z = values("f16", a), values("f16", b), c.view(np.float32).astype(np.float64)
  x[0::2] *= -1
  y[1::2] *= -1
  want = -np.abs(z).astype(np.float32)
  for k in range(16): want += (x[k, :, None] * y[k]).astype(np.float32)  # a product of halves is exact
  assert np.array_equal(unpack(RESULT[32], 32, 32, got, 16).view(np.float32), want)


def test_constants_and_saturation() -> None:
  rng = np.random.default_rng(seed(6))
  a, b = (draw("iu8", rng, (16, 16)) for _ in "ab")
  ra, rb = pack(PLACES[8, 16], 8, 32, a), pack(PLACES[8, 16], 8, 32, b)
  c = np.zeros((32, 8), np.uint32)
  got = by_text("v_wmma_i32_16x16x16_iu8 D, A, B, -7", ra, rb, c)
  want = a.astype(np.int64).T @ b.astype(np.int64)
  assert np.array_equal(unpack(RESULT[32], 32, 32, got, 16).view(np.int32), want - 7)
  top = np.full((32, 8), 0x7FFFFF00, np.uint32)
  got = by_text("v_wmma_i32_16x16x16_iu8 D, A, B, C clamp", ra, rb, top)
  assert np.array_equal(unpack(RESULT[32], 32, 32, got, 16), np.minimum(want + 0x7FFFFF00, 0x7FFFFFFF))
  half = np.zeros((32, 4), np.uint32)
  ones = np.full((32, 4), 0x3F803F80, np.uint32)
  got = by_text("v_wmma_bf16_16x16x16_bf16 D, A, B, 2.0", ones, ones, half)
  assert (got == 0x41904190).all()  # 16 + 2


def test_a_tie_of_bf16_is_rounded_once() -> None:
  """1 + 2**-8 + 2**-30 lies above the middle of two bf16, which f32 cannot tell."""
  a, b, c = (np.zeros((16, 16)) for _ in "abc")
  a[0], b[0], a[1], b[1], c[:] = 1, 2.0 ** -8, 2.0 ** -15, 2.0 ** -15, 1
  ra, rb, rc = (x.astype(np.float32).view(np.uint32) >> 16 for x in (a, b, c))
  got = by_text("v_wmma_bf16_16x16x16_bf16 D, A, B, C", pack(PLACES[16, 16], 16, 32, ra),
            pack(PLACES[16, 16], 16, 32, rb), pack(RESULT[16], 16, 32, rc))
  assert (unpack(RESULT[16], 16, 32, got, 16) == 0x3F81).all()


def test_intrinsic_of_a_wave() -> None:
  """The compiler's own idea of the registers: eight elements a lane, whatever their order in k, for A and for B."""
  ir = """
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %o) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <8 x half>, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr <8 x half>, ptr addrspace(1) %b, i32 %i
  %po = getelementptr <8 x float>, ptr addrspace(1) %o, i32 %i
  %x = load <8 x half>, ptr addrspace(1) %pa
  %y = load <8 x half>, ptr addrspace(1) %pb
  %d = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16(<8 x half> %x, <8 x half> %y,
    <8 x float> zeroinitializer)
  store <8 x float> %d, ptr addrspace(1) %po
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16(<8 x half>, <8 x half>, <8 x float>)"""
  rng = np.random.default_rng(seed(7))
  a, b = (rng.integers(-4, 5, (16, 16)).astype(np.float16) for _ in "ab")
  gpu = Gpu(cpu=GPU)
  kernel = gpu.load(compile_gpu(ir, cpu=GPU))["k"]
  o = gpu.put(np.zeros(256, np.float32))
  def halves(x: np.ndarray) -> np.ndarray: return np.ascontiguousarray(x.reshape(16, 2, 8).swapaxes(0, 1))
  gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [gpu.put(halves(a)), gpu.put(halves(np.ascontiguousarray(b.T))), o])
  got = gpu.get(o, np.float32, 256).reshape(2, 16, 8).swapaxes(1, 2).reshape(16, 16)
  assert np.array_equal(got, a.astype(np.float32) @ b.astype(np.float32))
