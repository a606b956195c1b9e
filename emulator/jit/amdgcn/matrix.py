"""RDNA3's matrix instructions as LLVM IR: fragments are made numbers once, a function for each kind of product sums.

The sums are those of `emulator.amdgcn.matrix`, in the order of k: of f32 that start with C, of f64 to which C is added,
or of i32, where no sum of products can overflow. A product of two narrow floats is exact in f64, so that a fused
multiply-add rounds as the reference's addition does.
What an instruction's A or B is as numbers serves all instructions of a block that have the same registers; C and D are
read and written where the wave's registers lie.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.amdgcn.gfx11.matrix import SHAPES
from tinyhw.emulator.amdgcn.matrix import half_constant
from tinyhw.emulator.jit.amdgcn.state import Registers
from tinyhw.emulator.jit.native import host
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value, convert, narrow_to_odd
from tinyhw.emulator.values.ops import DTYPES, F16, F32, F64, U16, U32
from tinyhw.isa.amdgcn import Instruction, Operand

# Memory of a function that has matrix instructions: C and D where they are no registers. Bytes.
_C: Final = 0
_D: Final = 1024
SIZE: Final = 3072
FRAGMENTS: Final = 12  # fragments of a block that are kept as numbers
_FRAGMENT: Final = 2048  # bytes of one
# Rows and columns of the result at a time, by the host's level: their sums stay in its registers.
_BLOCKS: Final = {"x86-64-v4": {"double": (8, 16), "float": (8, 16)}}
_BLOCK: Final = {"double": (4, 8), "float": (4, 16), "i32": (4, 16)}


@dataclass(frozen=True)
class Numbers:
  """What a fragment's raw dwords are: kind and bits of an element, and whether it has a sign. `pairs` is the order of
  the elements of A of f16, [k / 2][16 rows][k % 2], in which they come; all others are in the order [k][16]. `sum` is
  the type that they become."""
  kind: str
  bits: int
  signed: bool
  pairs: bool
  sum: str


@dataclass(frozen=True)
class Product:
  """A 16x16x16 product of floats or of integers, and what is made of the sums. `pairs`: see `Numbers`, of A."""
  sum: str  # float, double or i32
  pairs: bool
  result: str  # f32, i32, sat (i32 that saturates) or f64 (the bare sums)

  @property
  def name(self) -> str: return f"matrix_{self.sum}_{self.pairs:d}_{self.result}"


def _unpack(e: Emitter, p: Numbers, words: list[Value], to: str) -> None:
  """Registers of a fragment, of whose lanes the first 16 count, to elements in memory."""
  size, per = 8 if p.sum == "double" else 4, 32 // p.bits
  wide = f"<16 x {p.sum}>"

  def half(x: str, t: str) -> str:
    order = ", ".join(f"i32 {k}" for k in range(16))
    return e.op(f"shufflevector <{e.lanes} x {t}> {x}, <{e.lanes} x {t}> poison, <16 x i32> <{order}>")

  def element(x: Value, k: int) -> str:
    if p.kind == "int":
      top = e.op(f"shl <16 x i32> {half(x.in_lanes(), 'i32')}, splat (i32 {32 - p.bits * (k + 1)})")
      return e.op(f"{'ashr' if p.signed else 'lshr'} <16 x i32> {top}, splat (i32 {32 - p.bits})")
    if p.kind == "bf16":
      near = e.op(f"bitcast <16 x i32> {half((x & 0xFFFF0000 if k else x << 16).in_lanes(), 'i32')} to <16 x float>")
      return near if p.sum == "float" else e.op(f"fpext <16 x float> {near} to {wide}")
    raw = half(convert(x >> 16 if k else x, U16).in_lanes(), "i16")  # of all lanes: so LLVM sees how the word was made
    return e.op(f"fpext <16 x half> {e.op(f'bitcast <16 x i16> {raw} to <16 x half>')} to {wide}")

  for n, x in enumerate(words):
    if p.pairs:
      raw = e.op(f"bitcast <16 x i32> {half(x.in_lanes(), 'i32')} to <32 x half>")
      at = e.op(f"getelementptr {p.sum}, ptr {to}, i64 {32 * n}")
      e.do(f"store <32 x {p.sum}> {e.op(f'fpext <32 x half> {raw} to <32 x {p.sum}>')}, ptr {at}, align 64")
      continue
    for k in range(per):
      text, at = element(x, k), e.op(f"getelementptr i8, ptr {to}, i64 {(n * per + k) * 16 * size}")
      e.do(f"store {wide} {text}, ptr {at}, align 64")


def _sums(p: Product, rows: int, columns: int) -> Iterator[str]:
  """The sums of rows x columns elements, whose first ones are at %a.first and %b.first: names %s{row}.15."""
  t = p.sum
  vector = f"<{columns} x {t}>"
  for r in range(rows if t == "float" else 0): yield from _old(t, vector, r)
  for k in range(16):
    yield f"%y{k}.at = getelementptr {t}, ptr %b.first, i64 {16 * k}"
    yield f"%y{k} = load {vector}, ptr %y{k}.at, align 32"
    for r in range(rows):
      x, before = f"%x{r}.{k}", f"%s{r}.{k - 1}" if k else f"%c{r}" if t == "float" else "zeroinitializer"
      yield f"{x}.at = getelementptr {t}, ptr %a.first, i64 {k // 2 * 32 + 2 * r + k % 2 if p.pairs else 16 * k + r}"
      yield f"{x}.one = load {t}, ptr {x}.at"
      yield f"{x}.in = insertelement {vector} poison, {t} {x}.one, i64 0"
      yield f"{x} = shufflevector {vector} {x}.in, {vector} poison, <{columns} x i32> zeroinitializer"
      if t == "i32":
        yield f"%p{r}.{k} = mul {vector} {x}, %y{k}"
        yield f"%s{r}.{k} = add {vector} %p{r}.{k}, {before}"
      else:
        yield f"%s{r}.{k} = call {vector} {_fma(t, columns)}({vector} {x}, {vector} %y{k}, {vector} {before})"


def _fma(t: str, columns: int) -> str: return f"@llvm.fma.v{columns}f{64 if t == 'double' else 32}"


def _old(t: str, vector: str, r: int) -> Iterator[str]:
  """Row r of C, from element %at on."""
  yield f"%at{r} = add i64 %at, {16 * r}"
  yield f"%c{r}.at = getelementptr {t}, ptr %c, i64 %at{r}"
  yield f"%c{r} = load {vector}, ptr %c{r}.at, align 32"


def _finish(p: Product, rows: int, columns: int) -> Iterator[str]:
  """C is added where the sums have not begun with it, and the rows are stored."""
  t = {"f32": "float", "f64": "double"}.get(p.result, "i32")
  vector = f"<{columns} x {t}>"
  for r in range(rows):
    total = f"%s{r}.15"
    if p.result == "f64": yield f"%at{r} = add i64 %at, {16 * r}"
    elif t == "i32":
      yield from _old(t, vector, r)
      if p.result == "i32": yield f"%d{r} = add {vector} {total}, %c{r}"
      else: yield f"%d{r} = call {vector} @llvm.sadd.sat.v{columns}i32({vector} {total}, {vector} %c{r})"
    yield f"%d{r}.at = getelementptr {t}, ptr %d, i64 %at{r}"
    yield f"store {vector} {f'%d{r}' if t == 'i32' else total}, ptr %d{r}.at, align 32"


def _product(p: Product, rows: int, columns: int) -> str:
  """The text of the function of a kind of product: fragments of A and B, C and D as [16][16]. D may be C."""
  each = 2 if p.pairs else 1
  loop = ["%n = phi i64 [ 0, %0 ], [ %next, %loop ]", f"%row.n = udiv i64 %n, {16 // columns}",
          f"%column.n = urem i64 %n, {16 // columns}", f"%row = mul i64 %row.n, {rows}",
          f"%column = mul i64 %column.n, {columns}", f"%a.n = mul i64 %row, {each}",
          f"%a.first = getelementptr {p.sum}, ptr %a, i64 %a.n",
          f"%b.first = getelementptr {p.sum}, ptr %b, i64 %column", "%before = mul i64 %row, 16",
          "%at = add i64 %before, %column", *_sums(p, rows, columns), *_finish(p, rows, columns),
          "%next = add i64 %n, 1", f"%more = icmp ult i64 %next, {256 // (rows * columns)}",
          "br i1 %more, label %loop, label %done"]
  return (f"define private void @{p.name}(ptr noalias %a, ptr noalias %b, ptr %c, ptr %d) noinline #0 {{\n"
          "  br label %loop\nloop:\n  " + "\n  ".join(loop) + "\ndone:\n  ret void\n}")


def _declare(e: Emitter, p: Product) -> None:
  """Have the function of a product in the module."""
  rows, columns = (_BLOCKS.get(host().cpu, {}).get(p.sum) or _BLOCK[p.sum])
  vector = f"<{columns} x {p.sum}>"
  if p.sum == "i32": name, operands = f"@llvm.sadd.sat.v{columns}i32", 2
  else: name, operands = _fma(p.sum, columns), 3
  e.declared.setdefault(name[1:], f"declare {vector} {name}({', '.join([vector] * operands)})")
  e.declared.setdefault(p.name, _product(p, rows, columns))


def _pointer(e: Emitter, at: int) -> str:
  e.stack["matrix"] = f"alloca [{SIZE} x i8], align 64"
  return e.op(f"getelementptr i8, ptr %matrix, i64 {at}")


def _numbers(r: Registers, first: int, count: int, mask: int, p: Numbers) -> str:
  """The elements of A or B, in registers from `first` on, as numbers in memory. `mask` has the sign bits to turn over.
  """
  e = r.e
  words = [r.vector(first + k, U32) for k in range(count)]
  key = (p, mask, *(w.text for w in words))
  known = r.fragments.pop(key, None)
  if known is None:
    used = set(r.fragments.values())
    known = (next(name for k in range(FRAGMENTS) if (name := f"%fragment{k}") not in used) if len(used) < FRAGMENTS
             else r.fragments.pop(next(iter(r.fragments))))  # the one that was not wanted for longest
    e.stack[known[1:]] = f"alloca [{_FRAGMENT} x i8], align 64"
    _unpack(e, p, [x ^ mask for x in words] if mask else words, known)
  r.fragments[key] = known
  return known


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
  ints, narrow = source == "int", result in {"f16", "bf16"}
  apart = c.kind == "v" and (c.value == d.value or abs(c.value - d.value) >= rows)
  stays = apart and not narrow and not (neg_lo | neg_hi) >> 2 & 1 and c.value + rows <= r.vgprs  # C is where it is
  old = [] if stays else _accumulator(r, c, result, rows, i)
  last = [r.vector(d.value + k, U32) for k in range(rows)] if narrow else []
  kind = "f64" if narrow else result if not ints else "sat" if i.get("clamp") else "i32"
  p = Product("i32" if ints else "double" if narrow else "float", source == "f16", kind)
  made = []
  for k, o in enumerate((a, b)):
    mask = 0 if ints else (neg_lo >> k & 1) << 15 | (neg_hi >> k & 1) << 31
    made.append(_numbers(r, o.value, count, mask,
                         Numbers(source, bits, bool(neg_lo >> k & 1) if ints else True, p.pairs and k == 0, p.sum)))
  if stays: c_at = r.settled(c.value, rows)
  else:
    c_at = _pointer(e, _C)
    for k, x in enumerate([] if narrow else old):
      e.do(f"store {e.type(x.dtype, True)} {x.in_lanes()}, ptr {_pointer(e, _C + 4 * r.lanes * k)}, align 64")
  d_at = _pointer(e, _D) if narrow else r.overwritten(d.value, rows)
  _declare(e, p)
  e.do(f"call void @{p.name}(ptr {made[0]}, ptr {made[1]}, ptr {c_at}, ptr {d_at})")
  half = i.get("op_sel") >> 2 & 1
  for k in range(rows if narrow else 0):
    text = e.op(f"load {e.type(F64, True)}, ptr {_pointer(e, _D + 8 * r.lanes * k)}, align 64")
    raw = narrowed(r, Value(e, text, F64, True) + old[k], result)
    r.set_vector(d.value + k, last[k] & (0xFFFF if half else 0xFFFF0000) | (raw << 16 if half else raw),
                 everywhere=True)
