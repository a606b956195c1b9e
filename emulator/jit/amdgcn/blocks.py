"""Matrix instructions whose elements lie as tables say (MFMA, SMFMAC of CDNA3; WMMA, SWMMAC of RDNA4) as LLVM IR.

One function for each shape and its modifiers, with loops: elements of A and B are gathered into the type of the sums
(f64, f32 or i32) in the order [block, k, row or column], the sums are those of the reference in the order of k, and
results go where a table says. A `BlockProduct` holds the tables, made by the very functions that the reference uses.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tinyhw.emulator.jit.values import Emitter
from tinyhw.emulator.values.ops import Array

# The function's memory: raw dwords of A, B, the indices and C, each register after the other, then D. Bytes.
A: Final = 0
B: Final = 4096
INDEX: Final = 8192
C: Final = 8448
D: Final = C + 64 * 256
SIZE: Final = D + 64 * 512
ROWS: Final = 4  # rows of the result at a time
STEP: Final = 16  # elements that are gathered at a time


@dataclass
class Source:
  """A or B: kind and bits of an element, and the lane and item of each in order. `negative` has the ones to negate."""
  kind: str
  bits: int
  lane: Array
  item: Array
  signed: bool = True
  flush: bool = False
  negative: Array | None = None
  values: list[int] = field(default_factory=list)  # f32 bits of each pattern of a small float


@dataclass
class BlockProduct:
  """A product: D[block] = C[block] + A[block] * B[block], and where its elements lie.

  `out` is the element of [block, row, column] that each item of each lane holds [item, lane]. Sparse: `chosen` has, for
  each element of A, the first k that it can stand for and the bits of INDEX's lanes that say which (lane, shift).
  """
  name: str
  lanes: int
  blocks: int
  rows: int
  columns: int
  depth: int  # how many k are summed; of B there are twice as many where A is sparse
  a: Source
  b: Source
  result: str  # f32, i32, sat, f64 (sums without C), or sums that start with C: fused (of f64), fused32
  out: Array
  chosen: tuple[Array, Array, Array] | None = None
  pairs: bool = False  # of two indices, some say that nothing is stored
  flush: bool = False  # denormals of C and D, of result f32, are zeros

  @property
  def sum(self) -> str: return "i32" if self.a.kind == "int" else "float" if self.result == "fused32" else "double"

  @property
  def begins(self) -> bool: return self.result.startswith("fused")  # the sums, with C

  @property
  def depth_b(self) -> int: return self.depth * (2 if self.chosen is not None else 1)


class _Function:
  def __init__(self, e: Emitter, p: BlockProduct) -> None:
    self.e, self.p = e, p
    self.t, self.size = p.sum, 8 if p.sum == "double" else 4

  def table(self, name: str, values: Array | Sequence[int], bits: int = 32) -> str:
    """A constant array; its name."""
    at = f"@{self.p.name}_{name}"
    elements = ", ".join(f"i{bits} {int(x)}" for x in np.asarray(values).reshape(-1))
    self.e.constants.append(f"{at} = private constant [{np.asarray(values).size} x i{bits}] [{elements}], align 64")
    return at

  def loop(self, count: int, step: int, body: Callable[[str], None]) -> None:
    """Count from 0; the body is given the counter as i64."""
    e = self.e
    before, head, after = e.label, e.new_label("loop"), e.new_label("done")
    n = f"%{head}.n"
    e.do(f"br label %{head}")
    e.start(head)
    latch = e.new_label("latch")
    e.do(f"{n} = phi i64 [ 0, %{before} ], [ {n}.next, %{latch} ]")
    body(n)
    e.do(f"br label %{latch}")
    e.start(latch)
    e.do(f"{n}.next = add i64 {n}, {step}")
    e.do(f"br i1 {e.op(f'icmp ult i64 {n}.next, {count}')}, label %{head}, label %{after}")
    e.start(after)

  # ---- elements

  def _gathered(self, base: str, offsets: str) -> str:
    """Dwords at byte offsets, a vector of STEP."""
    e = self.e
    at = e.op(f"getelementptr i8, ptr {base}, <{STEP} x i32> {offsets}")
    return e.call(f"<{STEP} x i32>", f"llvm.masked.gather.v{STEP}i32.v{STEP}p0", (f"<{STEP} x ptr>", f"align 4 {at}"),
                  (f"<{STEP} x i1>", "splat (i1 true)"), (f"<{STEP} x i32>", "poison"))

  def _row(self, table: str, n: str, bits: int = 32) -> str:
    at = self.e.op(f"getelementptr i{bits}, ptr {table}, i64 {n}")
    return self.e.op(f"load <{STEP} x i{bits}>, ptr {at}, align 4")

  def unpack(self, name: str, s: Source, base: int, to: str) -> None:
    """Raw registers to elements in the type of the sums."""
    e, bit = self.e, s.item.reshape(-1) * s.bits
    offsets = self.table(f"{name}_at", base + bit // 32 * 4 * self.p.lanes + s.lane.reshape(-1) * 4)
    shifts = self.table(f"{name}_shift", bit % 32) if s.bits < 32 else ""
    wide = 8 * self.size
    signs = ""
    if s.negative is not None: signs = self.table(f"{name}_sign", np.where(s.negative, -(1 << wide - 1), 0), wide)
    small = self.table(f"{name}_values", s.values) if s.values else ""

    def some(n: str) -> None:
      at = self._row(offsets, n)
      raw = self._gathered("%m", at)
      if s.bits == 64:
        high = self._gathered("%m", e.op(f"add <{STEP} x i32> {at}, splat (i32 {4 * self.p.lanes})"))
        low64, high64 = (e.op(f"zext <{STEP} x i32> {x} to <{STEP} x i64>") for x in (raw, high))
        both = e.op(f"or <{STEP} x i64> {low64}, {e.op(f'shl <{STEP} x i64> {high64}, splat (i64 32)')}")
        x = e.op(f"bitcast <{STEP} x i64> {both} to <{STEP} x double>")
      else:
        if shifts: raw = e.op(f"lshr <{STEP} x i32> {raw}, {self._row(shifts, n)}")
        x = self._number(s, raw, small)
      if signs:
        bits = e.op(f"bitcast <{STEP} x {self.t}> {x} to <{STEP} x i{wide}>")
        turned = e.op(f"xor <{STEP} x i{wide}> {bits}, {self._row(signs, n, wide)}")
        x = e.op(f"bitcast <{STEP} x i{wide}> {turned} to <{STEP} x {self.t}>")
      e.do(f"store <{STEP} x {self.t}> {x}, ptr {e.op(f'getelementptr {self.t}, ptr {to}, i64 {n}')}, align 64")
    self.loop(bit.size, STEP, some)

  def _number(self, s: Source, raw: str, small: str) -> str:
    """A vector of raw elements, their bits lowest, as numbers."""
    e, v = self.e, f"<{STEP} x i32>"
    if s.kind == "int":
      top = e.op(f"shl {v} {raw}, splat (i32 {32 - s.bits})")
      return e.op(f"{'ashr' if s.signed else 'lshr'} {v} {top}, splat (i32 {32 - s.bits})")
    if s.kind == "f16":
      if s.flush: raw = self._flushed(e.op(f"and {v} {raw}, splat (i32 {0xFFFF})"), 0x7C00, 0x8000)
      narrow = e.op(f"trunc {v} {raw} to <{STEP} x i16>")
      half = e.op(f"bitcast <{STEP} x i16> {narrow} to <{STEP} x half>")
      return e.op(f"fpext <{STEP} x half> {half} to <{STEP} x {self.t}>")
    if small:
      masked = e.op(f"and {v} {raw}, splat (i32 {(1 << s.bits) - 1})")
      raw = self._gathered(small, e.op(f"shl {v} {masked}, splat (i32 2)"))
    elif s.kind == "bf16":
      raw = e.op(f"shl {v} {raw}, splat (i32 16)")
      if s.flush: raw = self._flushed(raw)
    elif s.kind == "xf32":  # significands of 10 bits, to nearest even
      odd = e.op(f"and {v} {e.op(f'lshr {v} {raw}, splat (i32 13)')}, splat (i32 1)")
      up = e.op(f"add {v} {e.op(f'add {v} {raw}, splat (i32 4095)')}, {odd}")
      kept = e.op(f"and {v} {up}, splat (i32 {-0x2000})")
      exponent = e.op(f"and {v} {raw}, splat (i32 {0x7F800000})")
      raw = self._either(e.op(f"icmp eq {v} {exponent}, splat (i32 {0x7F800000})"), raw, kept)
    elif s.flush: raw = self._flushed(raw)
    single = e.op(f"bitcast {v} {raw} to <{STEP} x float>")
    return single if self.t == "float" else e.op(f"fpext <{STEP} x float> {single} to <{STEP} x double>")

  def _flushed(self, raw: str, exponent: int = 0x7F800000, sign: int = -0x80000000) -> str:
    """A vector of floats' bits, denormals as zeros of their sign."""
    e, v = self.e, f"<{STEP} x i32>"
    zero = e.op(f"icmp eq {v} {e.op(f'and {v} {raw}, splat (i32 {exponent})')}, zeroinitializer")
    return self._either(zero, e.op(f"and {v} {raw}, splat (i32 {sign})"), raw)

  def _single(self, x: str) -> str:
    """A vector of f32, denormals as zeros where the product has none."""
    e = self.e
    if not self.p.flush: return x
    raw = self._flushed(e.op(f"bitcast <{STEP} x float> {x} to <{STEP} x i32>"))
    return e.op(f"bitcast <{STEP} x i32> {raw} to <{STEP} x float>")

  def _either(self, condition: str, a: str, b: str) -> str:
    return self.e.op(f"select <{STEP} x i1> {condition}, <{STEP} x i32> {a}, <{STEP} x i32> {b}")

  # ---- the indices of sparse matrices

  def choose(self) -> None:
    """Which row of B each element of A meets, to %k; depth_b, a row of zeros, where nothing is stored."""
    e, p = self.e, self.p
    assert p.chosen is not None
    first, lane, shift = p.chosen
    places = self.table("index_at", INDEX + lane * 4)
    shifts, base = self.table("index_shift", shift), self.table("index_base", first)

    def index(at: str) -> str:
      down = e.op(f"lshr <{STEP} x i32> {self._gathered('%m', self._row(places, at))}, {self._row(shifts, at)}")
      return e.op(f"and <{STEP} x i32> {down}, splat (i32 3)")

    def some(n: str) -> None:
      x = index(n)
      k = e.op(f"add <{STEP} x i32> {x}, {self._row(base, n)}")
      if p.pairs:  # element n / 16 is a k; the two of a pair are an even and the odd k after it
        odd = e.op(f"icmp ne i64 {e.op(f'and i64 {n}, 16')}, 0")
        partner = index(e.op(f"xor i64 {n}, 16"))
        v = f"<{STEP} x i32>"
        good_first = e.op(f"icmp ult {v} {x}, splat (i32 3)")
        same = e.op(f"icmp eq {v} {x}, {partner}")
        below = e.op(f"icmp ult {v} {partner}, splat (i32 3)")
        double = e.op(f"and <{STEP} x i1> {same}, {below}")
        some_ = e.op(f"icmp ne {v} {x}, zeroinitializer")
        good_second = e.op(f"and <{STEP} x i1> {some_}, {e.op(f'xor <{STEP} x i1> {double}, splat (i1 true)')}")
        good = e.op(f"select i1 {odd}, <{STEP} x i1> {good_second}, <{STEP} x i1> {good_first}")
        k = self._either(good, k, f"splat (i32 {p.depth_b})")
      e.do(f"store <{STEP} x i32> {k}, ptr {e.op(f'getelementptr i32, ptr %k, i64 {n}')}, align 64")
    self.loop(p.depth * p.rows, STEP, some)

  # ---- sums

  def sums(self) -> None:
    """[block, row, column] to %r, ROWS rows at a time."""
    e, p, t = self.e, self.p, self.t
    vector = f"<{p.columns} x {t}>"

    def rows(g: str) -> None:
      first = e.op(f"mul i64 {g}, {ROWS}")  # of all blocks' rows
      block, row = e.op(f"udiv i64 {first}, {p.rows}"), e.op(f"urem i64 {first}, {p.rows}")
      x_first = e.op(f"add i64 {e.op(f'mul i64 {block}, {p.depth * p.rows}')}, {row}")
      y_first = e.op(f"mul i64 {block}, {p.depth_b * p.columns}")
      places = []
      for r in range(ROWS):
        index = e.op(f"mul i64 {e.op(f'add i64 {first}, {r}')}, {p.columns}")
        places.append(e.op(f"getelementptr {t}, ptr %r, i64 {index}"))
      start = [e.op(f"load {vector}, ptr {place}, align 16") if p.begins else "zeroinitializer"
               for place in places]
      before, head, after = e.label, e.new_label("sum"), e.new_label("summed")
      k = f"%{head}.k"
      e.do(f"br label %{head}")
      e.start(head)
      e.do(f"{k} = phi i64 [ 0, %{before} ], [ {k}.next, %{head} ]")
      sums = [f"%{head}.s{r}" for r in range(ROWS)]
      for r, s in enumerate(sums): e.do(f"{s} = phi {vector} [ {start[r]}, %{before} ], [ {s}.next, %{head} ]")
      x_at = e.op(f"add i64 {x_first}, {e.op(f'mul i64 {k}, {p.rows}')}")
      y = "" if p.chosen is not None else self._columns(e.op(f"add i64 {y_first}, {e.op(f'mul i64 {k}, {p.columns}')}"))
      for r, s in enumerate(sums):
        n = e.op(f"add i64 {x_at}, {r}")
        x = e.op(f"load {t}, ptr {e.op(f'getelementptr {t}, ptr %a, i64 {n}')}")
        if p.chosen is not None:
          which = e.op(f"load i32, ptr {e.op(f'getelementptr i32, ptr %k, i64 {n}')}")
          wide = e.op(f"zext i32 {which} to i64")
          y = self._columns(e.op(f"mul i64 {wide}, {p.columns}"))
          if p.pairs:
            kept = e.op(f"icmp ult i32 {which}, {p.depth_b}")
            x = e.op(f"select i1 {kept}, {t} {x}, {t} {'0' if t == 'i32' else '0.0'}")
        one = e.op(f"insertelement {vector} poison, {t} {x}, i64 0")
        xs = e.op(f"shufflevector {vector} {one}, {vector} poison, <{p.columns} x i32> zeroinitializer")
        if t == "i32": e.do(f"{s}.next = add {vector} {e.op(f'mul {vector} {xs}, {y}')}, {s}")
        else:
          total = e.call(vector, f"llvm.fma.v{p.columns}f{8 * self.size}", (vector, xs), (vector, y), (vector, s))
          e.do(f"{s}.next = bitcast {vector} {total} to {vector}")
      e.do(f"{k}.next = add i64 {k}, 1")
      e.do(f"br i1 {e.op(f'icmp ult i64 {k}.next, {p.depth}')}, label %{head}, label %{after}")
      e.start(after)
      for s, place in zip(sums, places): e.do(f"store {vector} {s}.next, ptr {place}, align 16")
    self.loop(p.blocks * p.rows // ROWS, 1, rows)

  def _columns(self, index: str) -> str:
    e, t = self.e, self.t
    return e.op(f"load <{self.p.columns} x {t}>, ptr {e.op(f'getelementptr {t}, ptr %b, i64 {index}')}, align 16")

  # ---- results

  def begin(self) -> None:
    """C to %r, where the sums begin with it."""
    e, t, bits, out = self.e, self.t, 8 * self.size, self.p.out.reshape(-1)
    order = self.table("begin", np.argsort(out) * self.size)

    def some(n: str) -> None:
      for half in (0, 8):
        at = e.op(f"add i64 {n}, {half}")
        offsets = e.op(f"load <8 x i32>, ptr {e.op(f'getelementptr i32, ptr {order}, i64 {at}')}, align 4")
        pointers = e.op(f"getelementptr i8, ptr {e.op(f'getelementptr i8, ptr %m, i64 {C}')}, <8 x i32> {offsets}")
        x = e.call(f"<8 x {t}>", f"llvm.masked.gather.v8f{bits}.v8p0", ("<8 x ptr>", f"align {self.size} {pointers}"),
                   ("<8 x i1>", "splat (i1 true)"), (f"<8 x {t}>", "poison"))
        e.do(f"store <8 x {t}> {x}, ptr {e.op(f'getelementptr {t}, ptr %r, i64 {at}')}, align {8 * self.size}")
    self.loop(out.size, STEP, some)

  def finish(self) -> None:
    """Items of each lane to D, with C where that is still to be added."""
    e, p, t = self.e, self.p, self.t
    table = self.table("out", p.out.reshape(-1) * self.size)
    name = {"i32": "i32", "float": "f32", "double": "f64"}[t]

    def some(n: str) -> None:
      at = e.op(f"getelementptr i8, ptr %r, <{STEP} x i32> {self._row(table, n)}")
      x = e.call(f"<{STEP} x {t}>", f"llvm.masked.gather.v{STEP}{name}.v{STEP}p0",
                 (f"<{STEP} x ptr>", f"align 4 {at}"), (f"<{STEP} x i1>", "splat (i1 true)"),
                 (f"<{STEP} x {t}>", "poison"))
      kind = {"f32": "float", "fused32": "float", "f64": "double", "fused": "double"}.get(p.result, "i32")
      if not p.begins and p.result != "f64":
        place = e.op(f"getelementptr {kind}, ptr {e.op(f'getelementptr i8, ptr %m, i64 {C}')}, i64 {n}")
        c = e.op(f"load <{STEP} x {kind}>, ptr {place}, align 64")
        if p.result == "f32":
          wide = e.op(f"fpext <{STEP} x float> {self._single(c)} to <{STEP} x double>")
          total = e.op(f"fadd <{STEP} x double> {x}, {wide}")
          x = self._single(e.op(f"fptrunc <{STEP} x double> {total} to <{STEP} x float>"))
        elif p.result == "sat":
          v = f"<{STEP} x i32>"
          x = e.call(v, f"llvm.sadd.sat.v{STEP}i32", (v, x), (v, c))
        else: x = e.op(f"add <{STEP} x i32> {x}, {c}")
      to = e.op(f"getelementptr {kind}, ptr {e.op(f'getelementptr i8, ptr %m, i64 {D}')}, i64 {n}")
      e.do(f"store <{STEP} x {kind}> {x}, ptr {to}, align 64")
    self.loop(p.out.size, STEP, some)

  def body(self) -> Iterator[str]:
    e, p = self.e, self.p
    e.label = "entry"
    if p.begins: self.begin()
    self.unpack("a", p.a, A, "%a")
    self.unpack("b", p.b, B, "%b")
    if p.chosen is not None: self.choose()
    if p.pairs:
      zero = e.op(f"getelementptr {self.t}, ptr %b, i64 {p.depth_b * p.columns}")
      e.do(f"store <{p.columns} x {self.t}> zeroinitializer, ptr {zero}, align 16")
    self.sums()
    self.finish()
    e.do("ret void")
    yield f"define private void @{p.name}(ptr noalias %m) noinline #0 {{\nentry:"
    for name, count, t in (("a", p.a.lane.size, self.t), ("b", p.b.lane.size + p.columns, self.t),
                           ("r", p.blocks * p.rows * p.columns, self.t), ("k", p.depth * p.rows, "i32")):
      yield f"  %{name} = alloca [{count} x {t}], align 64"
    yield from e.lines
    yield "}"


def define(e: Emitter, p: BlockProduct) -> None:
  """Add the function of a plan, `void @name(memory)`, once."""
  if p.name in e.declared: return
  inner = Emitter(e.lanes)
  inner.declared, inner.constants = e.declared, e.constants
  text = "\n".join(_Function(inner, p).body())
  e.declared[p.name] = text
