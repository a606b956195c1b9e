"""RDNA3's matrix instructions as LLVM IR: operands go through memory to a function for each kind of product.

The sums are those of `emulator.amdgcn.matrix`: f64 (or i32, where no sum of products can overflow), in the order of k.
A product of two narrow floats is exact in f64, so that a fused multiply-add rounds as the reference's addition does.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.amdgcn.gfx11.matrix import SHAPES
from tinyhw.emulator.amdgcn.matrix import half_constant
from tinyhw.emulator.amdgcn.values import DTYPES, F16, F32, F64, U16, U32
from tinyhw.emulator.jit.state import Registers
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value, convert, narrow_to_odd
from tinyhw.isa.amdgcn import Instruction, Operand

# The function's memory: raw dwords of A, B (16 lanes each) and C, then the result. Bytes.
_A: Final = 0
_B: Final = 512
_C: Final = 1024
_D: Final = 2048
SIZE: Final = 4096
BLOCK: Final = 4  # rows of the result at a time: their sums stay in the host's registers


@dataclass(frozen=True)
class Product:
  """A 16x16x16 product: elements of A and B (kind, bits, signs), and what is made of the sums."""
  kind: str
  bits: int
  signed: tuple[bool, bool]
  result: str  # f32, i32, sat (i32 that saturates) or f64 (the bare sums)

  @property
  def name(self) -> str: return f"matrix_{self.kind}{self.bits}_{self.signed[0]:d}{self.signed[1]:d}_{self.result}"

  @property
  def sum(self) -> str: return "i32" if self.kind == "int" else "double"


def _unpack(p: Product, matrix: int) -> Iterator[str]:
  """Raw dwords to elements [k][16 lanes] in the type of the sums."""
  name, per = "ab"[matrix], 32 // p.bits
  size = 4 if p.sum == "i32" else 8
  for r in range(16 // per):
    word = f"%{name}.w{r}"
    yield f"{word}.at = getelementptr i8, ptr %m, i64 {(_A, _B)[matrix] + 64 * r}"
    yield f"{word} = load <16 x i32>, ptr {word}.at, align 64"
    for k in range(per):
      x = f"%{name}.{r * per + k}"
      if p.kind == "int":
        yield f"{x}.top = shl <16 x i32> {word}, splat (i32 {32 - p.bits * (k + 1)})"
        yield f"{x} = {'ashr' if p.signed[matrix] else 'lshr'} <16 x i32> {x}.top, splat (i32 {32 - p.bits})"
      elif p.kind == "bf16":
        yield (f"{x}.raw = " + (f"and <16 x i32> {word}, splat (i32 -65536)" if k else
                                f"shl <16 x i32> {word}, splat (i32 16)"))
        yield f"{x}.f = bitcast <16 x i32> {x}.raw to <16 x float>"
        yield f"{x} = fpext <16 x float> {x}.f to <16 x double>"
      else:
        if k: yield f"{x}.down = lshr <16 x i32> {word}, splat (i32 16)"
        yield f"{x}.raw = trunc <16 x i32> {f'{x}.down' if k else word} to <16 x i16>"
        yield f"{x}.f = bitcast <16 x i16> {x}.raw to <16 x half>"
        yield f"{x} = fpext <16 x half> {x}.f to <16 x double>"
      yield f"{x}.to = getelementptr i8, ptr %{name}, i64 {(r * per + k) * 16 * size}"
      yield f"store <16 x {p.sum}> {x}, ptr {x}.to, align 64"


def _sums(p: Product) -> Iterator[str]:
  """The sums of BLOCK rows, from row %first on: names %s{row}.15."""
  t = p.sum
  vector = f"<16 x {t}>"
  for k in range(16):
    yield f"%row{k} = getelementptr [16 x {t}], ptr %b, i64 {k}"
    yield f"%y{k} = load {vector}, ptr %row{k}, align 64"
    for r in range(BLOCK):
      x, before = f"%x{r}.{k}", f"%s{r}.{k - 1}" if k else "zeroinitializer"
      yield f"{x}.at = getelementptr [16 x {t}], ptr %a.first, i64 {k}, i64 {r}"
      yield f"{x}.one = load {t}, ptr {x}.at"
      yield f"{x}.in = insertelement {vector} poison, {t} {x}.one, i64 0"
      yield f"{x} = shufflevector {vector} {x}.in, {vector} poison, <16 x i32> zeroinitializer"
      if t == "i32":
        yield f"%p{r}.{k} = mul {vector} {x}, %y{k}"
        yield f"%s{r}.{k} = add {vector} %p{r}.{k}, {before}"
      else: yield f"%s{r}.{k} = call {vector} @llvm.fma.v16f64({vector} {x}, {vector} %y{k}, {vector} {before})"


def _finish(p: Product) -> Iterator[str]:
  """C is added and the rows are stored."""
  width = 8 if p.result == "f64" else 4
  for r in range(BLOCK):
    total = f"%s{r}.15"
    yield f"%n{r} = add i64 %first, {r}"
    yield f"%at{r} = mul i64 %n{r}, {16 * width}"
    yield f"%to{r} = getelementptr i8, ptr %m, i64 %at{r}"
    if p.result != "f64":
      yield f"%c{r}.at = getelementptr i8, ptr %to{r}, i64 {_C}"
      t = "float" if p.result == "f32" else "i32"
      yield f"%c{r} = load <16 x {t}>, ptr %c{r}.at, align 64"
    if p.result == "f32":
      yield f"%wide{r} = fpext <16 x float> %c{r} to <16 x double>"
      yield f"%all{r} = fadd <16 x double> {total}, %wide{r}"
      yield f"%d{r} = fptrunc <16 x double> %all{r} to <16 x float>"
    elif p.result == "i32": yield f"%d{r} = add <16 x i32> {total}, %c{r}"
    elif p.result == "sat":
      yield f"%d{r} = call <16 x i32> @llvm.sadd.sat.v16i32(<16 x i32> {total}, <16 x i32> %c{r})"
    t = {"f32": "float", "f64": "double"}.get(p.result, "i32")
    yield f"%d{r}.at = getelementptr i8, ptr %to{r}, i64 {_D}"
    yield f"store <16 x {t}> {total if p.result == 'f64' else f'%d{r}'}, ptr %d{r}.at, align 64"


def _define(p: Product) -> str:
  """The text of the function of a kind of product."""
  t = p.sum
  lines = [*_unpack(p, 0), *_unpack(p, 1), "br label %loop"]
  loop = ["%first = phi i64 [ 0, %0 ], [ %next, %loop ]", f"%a.first = getelementptr {t}, ptr %a, i64 %first",
          *_sums(p), *_finish(p), f"%next = add i64 %first, {BLOCK}", "%more = icmp ult i64 %next, 16",
          "br i1 %more, label %loop, label %done"]
  body = "\n  ".join([f"%a = alloca [256 x {t}], align 64", f"%b = alloca [256 x {t}], align 64", *lines])
  return (f"define private void @{p.name}(ptr noalias %m) noinline #0 {{\n  {body}\nloop:\n  " + "\n  ".join(loop) +
          "\ndone:\n  ret void\n}")


_INTRINSICS: Final = {
  "double": ("llvm.fma.v16f64", "declare <16 x double> @llvm.fma.v16f64(<16 x double>, <16 x double>, <16 x double>)"),
  "i32": ("llvm.sadd.sat.v16i32", "declare <16 x i32> @llvm.sadd.sat.v16i32(<16 x i32>, <16 x i32>)")}


def _pointer(e: Emitter, at: int) -> str: return e.op(f"getelementptr i8, ptr %matrix, i64 {at}")


def _put(r: Registers, first: int, count: int, at: int, mask: int) -> None:
  """Registers of A or B to memory: their first 16 lanes; `mask` has the sign bits to turn over."""
  e = r.e
  order = ", ".join(f"i32 {k}" for k in range(16))
  for k in range(count):
    x = r.vector(first + k, U32)
    if mask: x = x ^ mask
    t = x.type
    text = e.op(f"shufflevector {t} {x.in_lanes()}, {t} poison, <16 x i32> <{order}>")
    e.do(f"store <16 x i32> {text}, ptr {_pointer(e, at + 64 * k)}, align 64")


def constant_of(r: Registers, o: Operand, kind: str) -> Value:
  """C as an inline constant: f16 and bf16 as f64, others as they are."""
  dtype = F64 if kind in {"f16", "bf16"} else DTYPES[kind]
  value = half_constant(o, kind) if dtype == F64 else constant(o, kind)
  return r.e.const(dtype, int(value.view(DTYPES[f"u{dtype.itemsize * 8}"])))


def _accumulator(r: Registers, o: Operand, result: str, rows: int, i: Instruction) -> list[Value]:
  """C of each register: f32 and i32 as dwords, 16-bit types as f64."""
  negative, absolute = i.get("neg_lo") >> 2 & 1, i.get("neg_hi") >> 2 & 1
  half = i.get("op_sel") >> 2 & 1
  if o.kind != "v": values = [constant_of(r, o, result)] * rows
  elif result in {"f32", "i32"}: values = [r.vector(o.value + k, DTYPES[result]) for k in range(rows)]
  elif result == "f16": values = [convert(r.vector16(o.value + k, half, F16), F64) for k in range(rows)]
  else:
    words = [r.vector(o.value + k, U32) for k in range(rows)]
    values = [convert((w & 0xFFFF0000 if half else w << 16).view(F32), F64) for w in words]
  if result == "i32": return values
  if absolute: values = [r.o.abs(v) for v in values]
  return [-v for v in values] if negative else values


def narrowed(r: Registers, total: Value, kind: str) -> Value:
  """f64 rounded once to f16 or bf16, as u32."""
  if kind == "f16": return convert(convert(total, F16).view(U16), U32)
  odd = narrow_to_odd(total).view(U32)
  return r.o.where(r.o.isnan(total), r.e.const(U32, 0x7FC0), odd + 0x7FFF + (odd >> 16 & 1) >> 16)


def wmma(r: Registers, i: Instruction, mode: int) -> None:
  """v_wmma_* of 16x16x16: D's registers in order are the rows of the result in order."""
  e = r.e
  bits, source, result = SHAPES[i.mnemonic]
  a, b, c, d = (i.operands[n] for n in ("src0", "src1", "src2", "vdst"))
  neg_lo, neg_hi = i.get("neg_lo"), i.get("neg_hi")
  rows, count = 256 // r.lanes, bits // 2
  if a.kind != "v" or b.kind != "v" or c.kind == "s" or d.value + rows > r.vgprs: raise Untranslatable(i.mnemonic)
  old = _accumulator(r, c, result, rows, i)
  last = [r.vector(d.value + k, U32) for k in range(rows)] if result in {"f16", "bf16"} else []
  ints = source == "int"
  kind = "f64" if last else result if not ints else "sat" if i.get("clamp") else "i32"
  p = Product(source, bits, (bool(neg_lo & 1), bool(neg_lo >> 1 & 1)) if ints else (True, True), kind)
  for k, (o, at) in enumerate(((a, _A), (b, _B))):
    mask = 0 if ints else (neg_lo >> k & 1) << 15 | (neg_hi >> k & 1) << 31
    _put(r, o.value, count, at, mask)
  if not last:
    for k, x in enumerate(old):
      e.do(f"store {e.type(x.dtype, True)} {x.in_lanes()}, ptr {_pointer(e, _C + 4 * r.lanes * k)}, align 64")
  e.stack["matrix"] = f"alloca [{SIZE} x i8], align 64"
  name, declaration = _INTRINSICS[p.sum]
  e.declared.setdefault(name, declaration)
  e.declared.setdefault(p.name, _define(p))
  e.do(f"call void @{p.name}(ptr %matrix)")
  half = i.get("op_sel") >> 2 & 1
  for k in range(rows):
    t = F64 if last else DTYPES[result]
    text = e.op(f"load {e.type(t, True)}, ptr {_pointer(e, _D + t.itemsize * r.lanes * k)}, align 64")
    value = Value(e, text, t, True)
    if last:
      total = value + old[k]
      raw = narrowed(r, total, result)
      value = last[k] & (0xFFFF if half else 0xFFFF0000) | (raw << 16 if half else raw)
    r.set_vector(d.value + k, value, everywhere=True)
