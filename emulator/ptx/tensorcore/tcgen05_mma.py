"""tcgen05.mma: products whose sum, and sometimes left operand, lie in tensor memory (PTX ISA, section 9.7.16.10).

Sums of floats are made as those of wgmma: products are exact in f64, added one after the other, then to what is there,
and rounded once. Where rows and columns of the sum lie in tensor memory, where scale factors do, and where the bits of
narrow elements are in a byte, the manual shows in figures alone: here it is as CUTLASS's and Triton's kernels have it.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, unknown
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.memory.addresses import address, guarded
from tinyhw.emulator.ptx.memory.ranges import Thread, threads
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore import tcgen05_sparse, tmem
from tinyhw.emulator.ptx.tensorcore.cta_group import blocks, missing, pair_of
from tinyhw.emulator.ptx.tensorcore.descriptors import (
  OPERANDS,
  SUMS,
  ColumnMask,
  InstructionDescriptor,
  ScaledDescriptor,
)
from tinyhw.emulator.ptx.tensorcore.matrix import BITS, decoded, numbers, unit_for, unpacked
from tinyhw.emulator.ptx.tensorcore.shared_matrix import CHUNK, ULTRA, Chunks
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.small_floats import E2M1, E2M3, E3M2, FP8
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Address, Operand, Vector

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

DEPTH: Final = 32  # bytes of a row of an operand
WORDS: Final = DEPTH // 4  # columns of a left operand in tensor memory
LONG: Final = 96  # K of elements of four bits, on sm_103
_NARROW: Final = {"e2m3": E2M3, "e3m2": E3M2, "e2m1": E2M1}


TABLES: Final = {name: numbers(t) for name, t in _NARROW.items()}
# Scale factors by their code: powers of two, whose last code is NaN, and numbers of e4m3 without a sign.
SCALES: Final = {"ue8m0": np.array([*(2.0 ** (c - 127) for c in range(255)), np.nan]),
                 "ue4m3": numbers(FP8)[np.arange(256) & 0x7F]}


@dataclass(frozen=True)
class MmaShape:
  """What a descriptor says of a product: M rows of both blocks, N columns, K elements, their types."""
  m: int
  n: int
  k: int
  a: str
  b: str
  d: str
  signs: tuple[int, int]
  turned: tuple[bool, bool]
  dense: bool = True  # elements of fewer than 8 bits lie side by side
  saturates: bool = False
  scales: tuple[str, int, int, int] | None = None  # their type, how many a row has, first bytes of A's and B's
  sparse: bool = False
  selector: int = 0  # of the columns that metadata lie in

  @property
  def stored(self) -> int:
    """Elements that a row of A has in memory."""
    return self.k // 2 if self.sparse else self.k

  @property
  def words(self) -> int:
    """Columns of tensor memory that a row of A has."""
    return WORDS * self.k // 64 if self.k == LONG else WORDS


@dataclass(frozen=True)
class AccumulatorPart:
  """Lanes that hold rows of a sum, for some of its columns."""
  lanes: Value
  rows: Value
  first: int
  columns: int


def halved(shape: MmaShape, pair: int, weights: bool) -> bool:
  """Whether a product uses half of the lanes (layouts C and F): its matrices begin at lane 0 or 16."""
  return shape.m // pair == 64 and not weights and (pair == 1 or shape.sparse)


def parts(m: int, n: int, pair: int, weights: bool, lane: int, sparse: bool = False) -> list[AccumulatorPart] | None:
  """Where a block's rows of the sum lie (layouts A to G); None where there is no such shape."""
  rows = m // pair
  every = np.arange(rows)
  if rows == 128: return [AccumulatorPart(every, every, 0, n)]
  if rows == 64 and (pair == 2 and not sparse or weights):
    return [AccumulatorPart(64 * h + every, every, h * n // 2, n // 2) for h in (0, 1)]
  if rows == 64: return [AccumulatorPart(every // 16 * 32 + every % 16 + (lane & 16), every, 0, n)]
  if rows == 32 and weights: return [AccumulatorPart(32 * q + every, every, q * n // 4, n // 4) for q in range(4)]
  return None


def described(t: Thread, kind: str, word: int, pair: int, weights: bool, wanted: int, sparse: bool) -> MmaShape:
  """What an instruction descriptor says; `wanted` is how many scale factors a row has. Raises MachineFault for one that
  says what there is not."""
  def fault(text: str) -> Exception: return t.fault(f"an instruction descriptor ({word:#010x}) with {text}")
  scaled = kind.startswith("mx")
  try: d: Any = (ScaledDescriptor if scaled else InstructionDescriptor).decode(word)
  except DecodeError: raise fault("bits that have no meaning") from None
  types = OPERANDS[kind]
  for code in (d.a, d.b):
    if code not in types: raise fault(f"elements of type {code} for {kind}")
  if d.sparse != sparse:
    raise fault("no sparse matrix, for an instruction that has one" if sparse else
                "a sparse matrix, for an instruction that is not")
  a, b = types[d.a], types[d.b]
  m, n = (d.m * 128 if scaled else d.m * 16), d.n * 8
  dense = kind in {"mxf4", "mxf4nvf4"}
  signs, turned = (1 - 2 * d.negate_a, 1 - 2 * d.negate_b), (bool(d.turn_a), bool(d.turn_b))
  if scaled:
    sums, scales = "f32", _scales(d, kind, wanted, bool(d.k))
    if scales is None: raise fault(f"scale factors of type {d.scale} for {kind} with {wanted} of a row")
    if d.k and (sparse or not kind.startswith("mxf4") or t.cohort.program.linked.sm != ULTRA):
      raise fault("K of 96, which sm_103 has for dense mxf4 and mxf4nvf4")
  else:
    if d.d not in SUMS[kind]: raise fault(f"sums of type {d.d} for {kind}")
    sums, scales = SUMS[kind][d.d], None
    if d.selector and not (sparse and kind in tcgen05_sparse.WIDE): raise fault(f"{d.selector} in bits 0 and 1")
    if d.selector > 1: raise Unsupported("sparsity selector", f"{d.selector} of tcgen05.mma.sp", where="PTX")
  if kind == "i8" and -1 in signs or kind.startswith("mxf4") and True in turned:
    raise fault(f"a matrix that is {'negated' if kind == 'i8' else 'transposed'}, for {kind}")
  step = 16 if pair == 2 or kind == "i8" and n > 32 else 8
  if kind == "i8" and pair == 2: step = 32
  good = n in {64, 128, *(() if sparse else (256,))} if weights else 8 <= n <= 256 and n % step == 0
  none = {64, 128 if (sparse or scaled and d.k) and pair == 2 else 64} if scaled else set()
  if not good or m not in ({32, 64, 128} if weights else {64 * pair, 128 * pair} - none):
    raise fault(f"{m} rows and {n} columns, for {kind} of {pair} block{'s' * (pair == 2)}")
  depth = (64 if dense else 8 * DEPTH // max(BITS[a], 8)) << sparse
  if scaled and d.k: depth = LONG
  saturates = bool(not scaled and d.saturate)
  return MmaShape(m, n, depth, a, b, sums, signs, turned, dense, saturates, scales, sparse,
                  0 if scaled else d.selector)


def _scales(d: Any, kind: str, wanted: int, long: bool) -> tuple[str, int, int, int] | None:
  t = "ue8m0" if d.scale else "ue4m3"
  if t == "ue4m3" and (kind, wanted) != ("mxf4nvf4", 4): return None
  step = wanted // 2 if long else wanted  # what the first byte is a multiple of
  if d.a_id % step or d.b_id % step: return None
  return t, wanted * 3 // 2 if long else wanted, d.a_id, d.b_id


# ---- operands

def elements(raw: Value, t: str, dense: bool, shared: bool) -> Value:
  """The elements of chunks of 16 bytes [.., 16] as [.., n], f64 or int64. Those of fewer than 8 bits lie `dense`, or a
  chunk has 16: in `shared` memory side by side, in tensor memory in a byte each."""
  if t in TABLES:
    bits = _NARROW[t].bits
    if dense: return TABLES[t][np.stack([raw & 15, raw >> 4], axis=-1).reshape(*raw.shape[:-1], 32)]
    if shared: return TABLES[t][unpacked(raw, bits)]
    return TABLES[t][raw >> 2 & 15 if bits == 4 else raw & 63]
  words = np.ascontiguousarray(raw).view(np.uint32)
  found = decoded(words, t)
  return found.reshape(*found.shape[:-2], -1)


def of_shared(source: Chunks, block: int, rows: int, shape: MmaShape, which: int) -> Value:
  """Rows of an operand in a block's shared memory [rows, k]; `which` is 0 for A, 1 for B."""
  t, depth = (shape.a, shape.b)[which], (shape.stored, shape.k)[which]
  n = 32 if shape.dense else 8 * CHUNK // BITS.get(t, 8)  # elements of a chunk
  if not shape.turned[which]:
    return elements(source.rows(block, rows, depth // n), t, shape.dense, True).reshape(rows, depth)
  found = elements(source.columns(block, -(-rows // n), depth), t, shape.dense, True)
  return found.transpose(0, 2, 1).reshape(-1, depth)[:rows]


def of_tensor(cells: Value, column: int, lanes: Value, shape: MmaShape) -> Value:
  """Rows of A in tensor memory [lanes, elements that are stored]."""
  raw = np.ascontiguousarray(cells[lanes, column:column + shape.words]).view(np.uint8).reshape(len(lanes), -1, CHUNK)
  return elements(raw, shape.a, shape.dense, False).reshape(len(lanes), shape.stored)


def factors(cells: Value, column: int, rows: int, first: int, scales: tuple[str, int, int, int], k: int) -> Value:
  """Scale factors of rows [rows, k]: four columns have those of 128 rows, each lane of 32 those of four rows. What is
  behind the four bytes of a word lies `_further` columns on."""
  t, count, *_ = scales
  r, at = np.arange(rows)[:, None], first + np.arange(count)
  words = cells[r % tmem.UNIT, column + r // tmem.UNIT + at // 4 * _further(rows)]
  codes = words >> (8 * (at % 4)).astype(np.uint32) & np.uint32(0xFF)
  return np.repeat(SCALES[t][codes], k // count, axis=1)


def _further(rows: int) -> int: return 4 if rows <= tmem.LANES else 8


# ---- the product

def columns_of(t: Thread, word: int, shape: MmaShape) -> tuple[int, Value]:
  """(first column of B, which of its columns are zero) of a descriptor of .ws. Raises MachineFault for one that means
  nothing."""
  def fault(text: str) -> Exception: return t.fault(f"a mask of columns ({word:#018x}) with {text}")
  try: d = ColumnMask.decode((word & 0xFFFFFFFF, word >> 32))
  except DecodeError: raise fault("bits that have no meaning") from None
  most = 16 if shape.m == 32 else 32
  if d.shift > most: raise fault(f"a shift of {d.shift} columns, for {shape.m} rows that have {most} at most")
  return d.shift, np.array(d.zero(shape.m, shape.n))


def total(x: Value, y: Value, c: Value) -> Value:
  """x [m, k] times y [n, k] plus c: products one after the other, as `matrix.product` makes them."""
  if x.dtype.kind != "f": return x @ y.T + c
  out, one = np.zeros(c.shape), np.empty(c.shape)
  for k in range(x.shape[1]):
    np.multiply(x[:, k, None], y[None, :, k], out=one)
    out += one
  return out + c


def sums_of(words: Value, t: str) -> Value:
  """What is there already, as f64 or int64."""
  if t == "s32": return words.view(np.int32).astype(np.int64)
  if t == "f16": return words.astype(np.uint16).view(np.float16).astype(np.float64)
  return words.view(np.float32).astype(np.float64)


def words_of(values: Value, t: str, saturates: bool) -> Value:
  """Sums as they lie in tensor memory."""
  if t == "s32":
    if saturates: values = np.clip(values, -1 << 31, (1 << 31) - 1)
    return values.astype(np.int32).view(np.uint32)
  if t == "f16": return values.astype(np.float16).view(np.uint16).astype(np.uint32)
  return values.astype(np.float32).view(np.uint32)


class Product:
  """A tcgen05.mma with its operands."""

  def __init__(self, code: Code, line: Line, form: Form) -> None:
    i, m = line.instruction, form.modifiers
    self.code, self.line, self.pair = code, line, pair_of(form)
    self.kind = next(x for x in m if x.startswith("kind::")).removeprefix("kind::")
    self.weights, self.sparse, self.shifted = "ws" in m, "sp" in m, "ashift" in m
    rest = [*i.operands]
    self.d = address(code, line, rest.pop(0), tmem.SPACE)
    self.in_tensor = isinstance(rest[0], Address)
    if self.shifted and not self.in_tensor: raise unknown(line)
    self.a = self._source(rest.pop(0))
    self.b = operands.reader(code, line, rest.pop(0), "b64")
    self.metadata = address(code, line, rest.pop(0), tmem.SPACE) if self.sparse else None
    self.descriptor = operands.reader(code, line, rest.pop(0), "b32")
    self.scales, self.count = list[operands.Reader](), 0
    if "block_scale" in m:
      self.scales = [address(code, line, rest.pop(0), tmem.SPACE) for _ in "ab"]
      self.count = _count(m, self.kind)
    off = rest.pop(0) if isinstance(rest[0], Vector) else None
    self.off = [] if off is None else [operands.reader(code, line, o, "b32") for o in operands.elements(line, off)]
    if self.off and (len(self.off) != 4 * self.pair or self.weights): raise unknown(line)
    if not rest: raise operands.not_taken(line)
    self.adds = operands.reader(code, line, rest.pop(0), "pred")
    self.shift, self.mask = 0, None
    if rest and self.weights: self.mask = operands.reader(code, line, rest.pop(0), "b64")
    elif rest:
      given = operands.immediate(line, rest.pop(0), "u32")
      if given is None or not 0 <= int(given) < 16 or self.kind not in {"f16", "tf32"}: raise unknown(line)
      self.shift = int(given)
    if rest: raise unknown(line)

  def _source(self, o: Operand) -> operands.Reader:
    if self.in_tensor: return address(self.code, self.line, o, tmem.SPACE)
    return operands.reader(self.code, self.line, o, "b64")

  def run(self, group: Warps) -> None:
    """The product for each thread that executes it."""
    d, a, b, word, adds = (operands.full(group, r(group)) for r in (self.d, self.a, self.b, self.descriptor, self.adds))
    scales = [operands.full(group, r(group)) for r in self.scales]
    off = [operands.full(group, r(group)) for r in self.off]
    mask = None if self.mask is None else operands.full(group, self.mask(group))
    metadata = None if self.metadata is None else operands.full(group, self.metadata(group))
    for t in threads(group):
      k = t.row, t.lane
      shape = described(t, self.kind, int(word[k]), self.pair, self.weights, self.count, self.sparse)
      if self.shifted and shape.m < 128: raise t.fault(f"{shape.m} rows that are shifted down (.ashift)")
      if unit_for(self.code, group, self.line, shape.a) is not None:
        raise Unsupported("sums as the chip's", f"of {self.line.instruction.name}: nobody has measured them")
      self._one(t, shape, int(d[k]), int(a[k]), int(b[k]), bool(adds[k]), [int(s[k]) for s in scales],
                [int(x[k]) for x in off], None if metadata is None else int(metadata[k]),
                None if mask is None else columns_of(t, int(mask[k]), shape))
    group.cohort.changes.count += 1

  def _one(self, t: Thread, shape: MmaShape, d: int, a: int, b: int, adds: bool, scales: list[int],
           off: list[int], metadata: int | None, mask: tuple[int, Value] | None) -> None:
    lane, column = d >> 16, d & 0xFFFF
    found = parts(shape.m, shape.n, self.pair, self.weights, lane, shape.sparse)
    assert found is not None
    half = halved(shape, self.pair, self.weights)
    for at in (d, *([a] if self.in_tensor else []), *([] if metadata is None else [metadata])):
      if at >> 16 not in ({0, 16} if half else {0}):
        raise t.fault(f"a matrix of {shape.m} rows at lane {at >> 16} of tensor memory", at)
    if metadata is not None:
      if metadata & 1: raise t.fault(f"metadata in an odd column ({metadata & 0xFFFF}) of tensor memory", metadata)
      if metadata >> 16 != lane: raise t.fault(f"metadata at lane {metadata >> 16}, of a sum at lane {lane}", metadata)
      metadata = (metadata & 0xFFFF) + shape.selector
    if self.in_tensor and shape.turned[0]: raise t.fault("a transposed matrix in tensor memory", a)
    pair = blocks(t, self.pair)
    left = None if self.in_tensor else Chunks(t, a)
    right = Chunks(t, b)
    first, zero = (0, None) if mask is None else mask
    y = np.concatenate([of_shared(right, block, first + shape.n // self.pair, shape, 1)[first:]
                        for block in pair]) * shape.signs[1]
    if zero is not None: y[zero] = 0
    store = tmem.of(t.cohort)
    for number, block in enumerate(pair):
      cells = store.cells(block)
      for at, count, what in [(column, found[0].columns, "a sum in"), *self._places(shape, a, scales, metadata)]:
        missing(t, block, at & 0xFFFF, count, what)
      rows = shape.m // self.pair
      x = None if left is None else of_shared(left, block, rows, shape, 0)
      by = None
      if shape.scales is not None:
        _, _, a_byte, b_byte = shape.scales
        by = factors(cells, scales[0] & 0xFFFF, rows, a_byte, shape.scales, shape.k)
        z = y * factors(cells, scales[1] & 0xFFFF, shape.n, b_byte, shape.scales, shape.k)
      else: z = y
      for at, count, _ in self._places(shape, a, scales, metadata):
        tmem.show(t, block, np.arange(tmem.LANES)[:, None], (at & 0xFFFF) + np.arange(count), "load", "tcgen05")
      for part in found:
        columns = np.arange(column, column + part.columns)
        if adds: tmem.show(t, block, part.lanes[:, None], columns, "load", "tcgen05")
        tmem.show(t, block, part.lanes[:, None], columns, "store", "tcgen05")
        mine = of_tensor(cells, a & 0xFFFF, part.lanes, shape) if x is None else x[part.rows]
        if metadata is not None: mine = self._spread(t, cells, part, metadata, mine)
        if self.shifted: mine = mine[np.maximum(part.rows - 1, 0)]
        mine = mine * shape.signs[0]
        if by is not None: mine = mine * by[part.rows]
        self._added(cells, part, shape, mine, z[part.first:part.first + part.columns], column, adds,
                    off[4 * number:4 * number + 4])

  def _spread(self, t: Thread, cells: Value, part: AccumulatorPart, column: int, stored: Value) -> Value:
    """Rows of a sparse matrix with their zeros. Metadata of nothing but zeros, which CUTLASS's have, may be any."""
    found = tcgen05_sparse.codes(cells, part.lanes, column, self.kind)
    bad = tcgen05_sparse.meaningless(found, self.kind) & stored.reshape(*found.shape, -1).any(axis=2)
    if bad.any():
      row, chunk = np.argwhere(bad)[0].tolist()
      raise t.fault(f"metadata {int(found[row, chunk]):#06b} of chunk {chunk} of row {int(part.rows[row])}: that has "
                    "no meaning")
    return tcgen05_sparse.expanded(stored, found, self.kind)

  def _places(self, shape: MmaShape, a: int, scales: list[int], metadata: int | None) -> list[tuple[int, int, str]]:
    """(first column, columns, what) of what is read in tensor memory."""
    out = [(a, shape.words, "a matrix in")] if self.in_tensor else []
    if metadata is not None: out.append((metadata, tcgen05_sparse.words(self.kind), "metadata in"))
    if shape.scales is None: return out
    for at, rows, first in zip(scales, (shape.m // self.pair, shape.n), shape.scales[2:]):
      words = (first + shape.scales[1] - 1) // 4  # of a row, but the first one
      out.append((at, -(-rows // 32) + words * _further(rows), "scale factors in"))
    return out

  def _added(self, cells: Value, part: AccumulatorPart, shape: MmaShape, x: Value, y: Value, column: int, adds: bool,
             off: list[int]) -> None:
    lanes = part.lanes[:, None]
    columns = np.arange(column, column + part.columns)[None, :]
    wide = np.int64 if shape.d == "s32" else np.float64
    c = sums_of(cells[lanes, columns], shape.d) if adds else np.zeros((len(lanes), part.columns), wide)
    if self.shift: c = c * 0.5 ** self.shift
    with np.errstate(all="ignore"): words = words_of(total(x, y, c), shape.d, shape.saturates)
    if off:
      kept = np.array([off[n >> 5] >> (n & 31) & 1 for n in part.lanes.tolist()], bool)
      lanes, words = lanes[~kept], words[~kept]
    cells[lanes, columns] = words


def _count(m: frozenset[str], kind: str) -> int:
  """How many scale factors a row has."""
  for name, count in (("scale_vec::1X", 1), ("scale_vec::2X", 2), ("scale_vec::4X", 4), ("block16", 4)):
    if name in m: return count
  return 1 if kind == "mxf8f6f4" else 2


def bound(code: Code, line: Line, form: Form) -> Step:
  """The step of a tcgen05.mma."""
  return guarded(line, Product(code, line, form).run)
