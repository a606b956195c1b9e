"""Vectors in C, as clang and gcc know them (`vector_size`): a program whose values have lanes, a statement a value.

Most arithmetic is that of the compilers on whole vectors. What they have no operation for (halves, functions, division
of integers, accesses here and there) is a loop over the lanes with the scalar text in it, which both unroll. A vector
of bools is a mask: integers of the width of what was compared, all of whose bits are the lane's answer.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tinyhw.compile.render.cfamily import BOOL, F16, SIGNS, UNSIGNED, CFamilyRenderer, CWriter, Language
from tinyhw.compile.render.llvm import LOGICAL, lane
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp, VariableArg

SIGNED = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}
MASKS = {Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^"}
# Functions of a lane that clang has for whole vectors.
WHOLE = {Ops.MULACC: "__builtin_elementwise_fma", Ops.SQRT: "__builtin_elementwise_sqrt",
         Ops.TRUNC: "__builtin_elementwise_trunc"}
SHUFFLE = "__builtin_shufflevector"
MASKED = frozenset({"__builtin_ia32_maskloadps256", "__builtin_ia32_maskloadpd256", "__builtin_ia32_maskstoreps256",
                    "__builtin_ia32_maskstorepd256"})
PIECES = {32: ("ps", dtypes.float32), 64: ("pd", dtypes.float64)}     # lanes that AVX moves under a mask


class LanesWriter(CWriter):
  """Writes one program, vectors as values."""

  # *** types ***

  def register(self, dtype: DType) -> str:
    """The type of a value in a register."""
    if dtype.count == 1: return self.language.word(dtype)
    scalar = dtypes.uint16 if dtype.scalar is F16 else dtype.scalar
    name = f"{scalar.name}x{dtype.count}"
    self.types[f"typedef {self.language.word(scalar)} {name} __attribute__((vector_size({dtype.itemsize})));"] = None
    return name

  def memory(self, dtype: DType) -> str:
    """The type of neighbours in memory, which begin anywhere."""
    scalar = dtypes.uint8 if dtype.is_bool else dtype.scalar
    name, size = f"memory_{scalar.name}x{dtype.count}", scalar.itemsize
    attributes = f"vector_size({size * dtype.count}), aligned({size}), may_alias"
    self.types[f"typedef {self.language.stored(scalar)} {name} __attribute__(({attributes}));"] = None
    return name

  # *** values ***

  def __init__(self, target: CFamilyRenderer, name: str, uops: Sequence[UOp], language: Language,
               functions: frozenset[str]) -> None:
    super().__init__(target, name, uops, language)
    self.masks: dict[UOp, int] = {}       # the widths of masks
    self.functions_of_vectors = functions

  def made_now(self, word: str, value: str, changes: bool = False) -> str:
    """Names a vector."""
    self.parts += 1
    self.line(self.language.declare(word, f"w{self.parts}", value, changes))
    return f"w{self.parts}"

  def mask(self, u: UOp, bits: int) -> str:
    """A vector of bools as a mask of lanes of that width."""
    if self.masks[u] == bits: return self.names[u]
    return f"__builtin_convertvector({self.names[u]}, {self.register(SIGNED[bits].vec(u.dtype.count))})"

  def set_mask(self, u: UOp, value: str, bits: int) -> None:
    """Names a mask."""
    word = self.register(SIGNED[bits].vec(u.dtype.count))
    self.masks[u], self.names[u] = bits, self.made_now(word, f"({word})({value})")

  def set(self, u: UOp, value: str) -> None:
    """Names a vector that is no mask."""
    self.names[u] = self.made_now(self.register(u.dtype), value)

  def lane_of(self, u: UOp, at: str) -> str:
    """A lane of a vector as a scalar, or a scalar."""
    if u.dtype.count == 1: return self.value(u)
    if (one := lane(u)) is not u: return self.value(one)
    return f"({self.names[u]}[{at}] != 0)" if u.dtype.is_bool else f"{self.names[u]}[{at}]"

  def scalar(self, u: UOp, at: str) -> UOp:
    """A node that stands for a lane."""
    if u.dtype.count == 1: return u
    if (one := lane(u)) is not u: return one
    kind, text = u.dtype.scalar, self.lane_of(u, at)
    low, high = (int(kind.min), int(kind.max)) if kind.is_int else (0, 1)
    stand_in = UOp(Ops.DEFINE_VAR, kind, (), VariableArg(text, low, high))
    self.names[stand_in] = text
    return stand_in

  def everywhere(self, gate: UOp) -> str:
    """Whether all lanes of a gate are True."""
    if (one := lane(gate)) is not gate: return self.value(one)
    size, bits = gate.dtype.count * self.masks[gate] // 8, self.masks[gate]
    if size > 8: bits = 64
    vector = f"(({self.register(SIGNED[bits].vec(size * 8 // bits))}){self.names[gate]})"
    return f"({' & '.join(f'{vector}[{i}]' for i in range(size * 8 // bits))}) == -1"

  def each(self, u: UOp, made: Callable[[str], str], usual: str = "", whole: str = "") -> None:
    """A vector of what a loop over the lanes gives; `whole` where the `usual` holds."""
    count, kind = u.dtype.count, u.dtype
    if kind.is_bool:
      self.masks[u] = 32
      kind = dtypes.int32.vec(count)
    self.parts += 1
    name, i = f"w{self.parts}", f"i{self.parts}"
    self.names[u] = name
    self.line(f"{self.register(kind)} {name};")
    if whole: self.line(f"if ({usual}) {name} = {whole}; else")
    self.line(f"for (int {i} = 0; {i} < {count}; {i}++) {{")
    self.depth += 1
    value = made(i)
    self.line(f"{name}[{i}] = {f'-(int)({value})' if u.dtype.is_bool else value};")
    self.depth -= 1
    self.line("}")

  # *** UOps ***

  def one(self, u: UOp) -> None:
    op, wide = u.op, u.dtype.count > 1 if not isinstance(u.dtype, PtrDType) else False
    if op is Ops.STORE and (u.src[1].dtype.count > 1 or any(s.dtype.count > 1 for s in u.src[0].src[1:])):
      self.store_lanes(u)
    elif op is Ops.GEP and u.src[0].dtype.count > 1: self.lanes_of(u)
    elif not wide or op is Ops.INDEX: super().one(u)
    elif op is Ops.VECTORIZE: self.vectorize(u)
    elif op is Ops.LOAD: self.load_lanes(u)
    elif op is Ops.DEFINE_ACC: self.accumulator(u)
    elif op is Ops.ASSIGN: self.assign(u)
    elif op is Ops.CAST: self.cast_lanes(u)
    elif op is Ops.BITCAST: self.bitcast_lanes(u)
    elif op in GroupOp.ALU: self.alu_lanes(u)
    else: super().one(u)

  def vectorize(self, u: UOp) -> None:
    """VECTORIZE."""
    x = [self.value(s) for s in u.src]
    if u.dtype.is_bool:
      self.set_mask(u, f"({self.register(dtypes.int32.vec(len(x)))}){{{', '.join(f'-(int)({v})' for v in x)}}}", 32)
    else: self.set(u, f"({self.register(u.dtype)}){{{', '.join(x)}}}")

  def lanes_of(self, u: UOp) -> None:
    """GEP of a vector."""
    source = u.src[0]
    if u.dtype.count == 1:
      self.new(u, self.lane_of(source, str(u.arg[0])))
      return
    kind, name = SIGNED[self.masks[source]].vec(u.dtype.count) if u.dtype.is_bool else u.dtype, self.names[source]
    if SHUFFLE in self.functions_of_vectors: value = f"{SHUFFLE}({name}, {name}, {', '.join(map(str, u.arg))})"
    else: value = f"({self.register(kind)}){{{', '.join(f'{name}[{i}]' for i in u.arg)}}}"
    if u.dtype.is_bool: self.set_mask(u, value, self.masks[source])
    else: self.set(u, value)

  def accumulator(self, u: UOp) -> None:
    """DEFINE_ACC of a vector."""
    if u.dtype.is_bool:
      self.masks[u] = 32
      self.names[u] = self.made_now(self.register(dtypes.int32.vec(u.dtype.count)), self.mask(u.src[0], 32), True)
    else: self.names[u] = self.made_now(self.register(u.dtype), self.names[u.src[0]], True)

  def assign(self, u: UOp) -> None:
    """ASSIGN of a vector."""
    register, value = u.src
    self.names[u] = self.names[register]
    if u.dtype.is_bool: self.masks[u] = self.masks[register]
    text = self.mask(value, self.masks[register]) if u.dtype.is_bool else self.names[value]
    self.line(f"{self.names[u]} = {text};")

  # *** memory ***

  def load_lanes(self, u: UOp) -> None:
    """LOAD of a vector: of neighbours at once, else a lane at a time."""
    index = u.src[0]
    gate = index.src[2] if len(index.src) > 2 else None
    other = next((s for s in u.src[1:] if s.op is not Ops.BARRIER), None)
    found = self.neighbours(index, u.dtype) if index.src[1].dtype.count == 1 else ""
    if found and gate is not None and gate.dtype.count > 1 and other is not None and self.masked(u.dtype):
      self.load_masked(u, index, gate, other)
      return
    if not found or gate is not None and gate.dtype.count > 1:
      whole = f"({self.register(u.dtype)}){found}" if found and gate is not None and not u.dtype.is_bool else ""
      usual = self.everywhere(gate) if whole and gate is not None else ""
      self.each(u, lambda i: self.one_lane(u, index, gate, other, i), usual, whole)
      return
    if u.dtype.is_bool: found = f"({found} != 0)"
    if gate is None or other is None:
      if u.dtype.is_bool: self.set_mask(u, found, 8)
      else: self.set(u, found)
      return
    kind = SIGNED[8].vec(u.dtype.count) if u.dtype.is_bool else u.dtype
    word, rest = self.register(kind), self.mask(other, 8) if u.dtype.is_bool else self.names[other]
    if u.dtype.is_bool: self.masks[u] = 8
    self.parts += 1
    self.names[u] = name = f"w{self.parts}"
    self.line(f"{word} {name};")
    self.line(f"if ({self.value(gate)}) {name} = ({word}){found}; else {name} = {rest};")

  def masked(self, dtype: DType) -> bool:
    """Whether the processor moves some lanes of such a vector."""
    return (MASKED <= self.functions_of_vectors and dtype.scalar.bits in PIECES and not dtype.is_bool
            and dtype.itemsize >= 32)

  def pieces(self, gate: UOp, dtype: DType) -> list[tuple[int, str, str, str]]:
    """(first lane, suffix of the function, type of a piece, its mask) of a vector's pieces of 32 bytes."""
    bits = dtype.scalar.bits
    count, letter, kind = 256 // bits, *PIECES[bits]
    whole = self.made_now(self.register(SIGNED[bits].vec(dtype.count)), self.mask(gate, bits))
    piece, word = self.memory(SIGNED[bits].vec(count)), self.memory(kind.vec(count))
    register = self.register(SIGNED[bits].vec(count))
    return [(first, letter, word, f"({register})((const {piece}*)&{whole})[{first // count}]")
            for first in range(0, dtype.count, count)]

  def load_masked(self, u: UOp, index: UOp, gate: UOp, other: UOp) -> None:
    """LOAD of neighbours, some of which are not there."""
    name = self.made_now(self.register(u.dtype), self.names[other], True)
    at = f"{self.names[index.src[0]]} + {self.value(index.src[1])}"
    for first, letter, word, mask in self.pieces(gate, u.dtype):
      self.line(f"(({word}*)&{name})[{first * u.dtype.scalar.bits // 256}] = "
                f"__builtin_ia32_maskload{letter}256((const void*)({at} + {first}), {mask});")
    self.set(u, self.chosen(self.mask(gate, u.dtype.scalar.bits), name, self.names[other], u.dtype))

  def one_lane(self, u: UOp, index: UOp, gate: UOp | None, other: UOp | None, i: str) -> str:
    """A lane of a LOAD."""
    found = self.loaded(u.dtype.scalar, self.place_of(index, i))
    if gate is None or other is None: return found
    return self.language.choose(self.lane_of(gate, i), found, self.lane_of(other, i))

  def place_of(self, index: UOp, i: str) -> str:
    """The element of a lane."""
    at = index.src[1]
    if at.dtype.count > 1: return self.language.element(self.names[index.src[0]], self.lane_of(at, i))
    return self.language.element(self.names[index.src[0]], f"{self.value(at)} + {i}")

  def neighbours(self, index: UOp, dtype: DType) -> str:
    """Consecutive elements as a vector in memory."""
    pointer = index.src[0]
    const = "" if pointer in self.written or pointer.op is Ops.DEFINE_LOCAL else "const "
    return f"*({const}{self.memory(dtype)}*)({self.names[pointer]} + {self.value(index.src[1])})"

  def store_lanes(self, u: UOp) -> None:
    """STORE of a vector."""
    index, value = u.src[:2]
    gate = index.src[2] if len(index.src) > 2 else None
    count = max(s.dtype.count for s in (value, *index.src[1:]))
    if index.src[1].dtype.count > 1 or gate is not None and gate.dtype.count > 1:
      if gate is not None and gate.dtype.count > 1 and index.src[1].dtype.count == 1 and self.masked(value.dtype):
        at = f"{self.names[index.src[0]]} + {self.value(index.src[1])}"
        for first, letter, word, mask in self.pieces(gate, value.dtype):
          part = f"((const {word}*)&{self.names[value]})[{first * value.dtype.scalar.bits // 256}]"
          register = self.register(PIECES[value.dtype.scalar.bits][1].vec(256 // value.dtype.scalar.bits))
          self.line(f"__builtin_ia32_maskstore{letter}256((void*)({at} + {first}), {mask}, ({register}){part});")
        return
      self.parts += 1
      i = f"i{self.parts}"
      if gate is not None and index.src[1].dtype.count == 1 and not value.dtype.is_bool:
        self.line(f"if ({self.everywhere(gate)}) {self.neighbours(index, value.dtype)} = "
                  f"({self.memory(value.dtype)}){self.names[value]}; else")
      self.line(f"for (int {i} = 0; {i} < {count}; {i}++)")
      text = f"{self.place_of(index, i)} = {self.kept(value.dtype.scalar, self.lane_of(value, i))};"
      self.line(f"  if ({self.lane_of(gate, i)}) {text}" if gate is not None else f"  {text}")
      return
    stored = self.names[value]
    if value.dtype.is_bool: stored = f"-{self.mask(value, 8)}"
    text = f"{self.neighbours(index, value.dtype)} = ({self.memory(value.dtype)}){stored};"
    self.line(f"if ({self.value(gate)}) {text}" if gate is not None else text)

  # *** conversions ***

  def converted(self, x: str, target: DType) -> str:
    """A vector converted as C does."""
    return f"__builtin_convertvector({x}, {self.register(target)})"

  def cast_lanes(self, u: UOp) -> None:
    """CAST of a vector."""
    x, source, target = u.src[0], u.src[0].dtype, u.dtype
    if source is target:
      self.names[u] = self.names[x]
      if target.is_bool: self.masks[u] = self.masks[x]
    elif F16 in (source.scalar, target.scalar) or source.is_float and target.is_int:
      self.each(u, lambda i: self.cast(self.named(source.scalar, self.lane_of(x, i)), source.scalar, target.scalar))
    elif target.is_bool: self.set_mask(u, f"{self.names[x]} != 0", source.scalar.bits)
    elif source.is_bool:
      bits = target.scalar.bits
      whole = f"-{self.mask(x, bits)}"
      self.set(u, self.converted(whole, target) if target.is_float else f"({self.register(target)})({whole})")
    else: self.set(u, self.converted(self.names[x], target))

  def bitcast_lanes(self, u: UOp) -> None:
    """BITCAST of a vector. A bool is a byte in memory."""
    x, word = u.src[0], self.register(u.dtype) if not u.dtype.is_bool else ""
    if x.dtype.is_bool and u.dtype.is_bool: self.set_mask(u, self.names[x], self.masks[x])
    elif x.dtype.is_bool: self.set(u, f"({word})(-{self.mask(x, 8)})")
    elif u.dtype.is_bool: self.set_mask(u, f"{self.names[x]} != 0", 8)
    else: self.set(u, f"({word}){self.names[x]}")

  # *** arithmetic ***

  def alu_lanes(self, u: UOp) -> None:
    """An arithmetic operation on all lanes."""
    operand = u.src[1].dtype if u.op is Ops.WHERE else u.src[0].dtype
    if operand.is_bool: self.bool_lanes(u)
    elif u.op is Ops.WHERE: self.set(u, self.picked(u.src[0], self.names[u.src[1]], self.names[u.src[2]], u.dtype))
    elif operand.scalar is F16: self.loop(u)
    elif u.op in GroupOp.COMPARE:
      self.set_mask(u, f"{self.names[u.src[0]]} {SIGNS[u.op]} {self.names[u.src[1]]}", operand.scalar.bits)
    elif operand.is_float: self.float_lanes(u, [self.names[s] for s in u.src])
    else: self.int_lanes(u, [self.names[s] for s in u.src])

  def picked(self, condition: UOp, a: str, b: str, dtype: DType) -> str:
    """a's lanes where the condition holds, else b's."""
    if (one := lane(condition)) is not condition: return self.language.choose(self.value(one), a, b)
    return self.chosen(self.mask(condition, dtype.scalar.bits), a, b, dtype)

  def chosen(self, mask: str, a: str, b: str, dtype: DType) -> str:
    """The same, by a mask of the lanes' width."""
    bits = self.register(SIGNED[dtype.scalar.bits].vec(dtype.count))
    return f"({self.register(dtype)})(({mask} & ({bits}){a}) | (~{mask} & ({bits}){b}))"

  def loop(self, u: UOp) -> None:
    """An operation a lane at a time."""
    def one(i: str) -> str:
      return self.alu(UOp(u.op, u.dtype.scalar, tuple(self.scalar(s, i) for s in u.src), u.arg))
    self.each(u, one)

  def bool_lanes(self, u: UOp) -> None:
    """Arithmetic of bools."""
    bits = next((self.masks[s] for s in u.src if lane(s) is s), 32)
    x = [self.mask(s, bits) for s in u.src]
    op = u.op
    if op is Ops.WHERE: value = f"({x[0]} & {x[1]}) | (~{x[0]} & {x[2]})"
    elif op is Ops.MULACC: value = f"({x[0]} & {x[1]}) | {x[2]}"
    elif op is Ops.CMPNE: value = f"{x[0]} ^ {x[1]}"
    elif op is Ops.CMPEQ: value = f"~({x[0]} ^ {x[1]})"
    elif op is Ops.CMPLT: value = f"~{x[0]} & {x[1]}"
    elif op is Ops.NEG: value = x[0]
    elif op in LOGICAL: value = f"{x[0]} {({'or': '|', 'and': '&', 'xor': '^'})[LOGICAL[op]]} {x[1]}"
    else: raise self.unsupported(op, BOOL)
    self.set_mask(u, value, bits)

  def float_lanes(self, u: UOp, x: Sequence[str]) -> None:
    """Arithmetic of floats that gives floats."""
    op, dtype = u.op, u.dtype
    if op in (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV): self.set(u, f"{x[0]} {SIGNS[op]} {x[1]}")
    elif op is Ops.NEG: self.set(u, f"-{x[0]}")
    elif op is Ops.RECIP: self.set(u, f"{self.language.literal(1.0, dtype.scalar)} / {x[0]}")
    elif op is Ops.MAX: self.maximum_lanes(u, x)
    elif WHOLE.get(op) in self.functions_of_vectors: self.set(u, f"{WHOLE[op]}({', '.join(x)})")
    else: self.loop(u)

  def maximum_lanes(self, u: UOp, x: Sequence[str]) -> None:
    """NaN where either is; of two zeros +0.0 unless both are -0.0."""
    (a, b), dtype, second = x, u.dtype, lane(u.src[1])
    bits = self.register(SIGNED[dtype.scalar.bits].vec(dtype.count))
    if second.op is Ops.CONST and second.arg == second.arg:
      than = "<" if second.arg == 0 and math.copysign(1.0, second.arg) < 0 else "<="
      self.set(u, self.chosen(f"({bits})({a} {than} {b})", b, a, dtype))
      return
    # Where none is greater they are equal, so that their common bits are the greater zero, or one is NaN, and the sum.
    word = self.register(dtype)
    same = self.made_now(bits, f"({bits})({a} == {b})")
    rest = self.made_now(word, self.chosen(same, f"({word})(({bits}){a} & ({bits}){b})", f"({a} + {b})", dtype))
    more = self.made_now(bits, f"({bits})({a} > {b})")
    less = self.made_now(bits, f"({bits})({b} > {a})")
    first = self.made_now(word, self.chosen(less, b, rest, dtype))
    self.set(u, self.chosen(more, a, first, dtype))

  def int_lanes(self, u: UOp, x: Sequence[str]) -> None:
    """Arithmetic of integers that gives integers."""
    op, dtype = u.op, u.dtype
    word, plain = self.register(dtype), self.register(UNSIGNED[dtype.scalar.bits].vec(dtype.count))
    wrapped = [f"({plain}){v}" for v in x]
    if op in (Ops.ADD, Ops.SUB, Ops.MUL): self.set(u, f"({word})({wrapped[0]} {SIGNS[op]} {wrapped[1]})")
    elif op in MASKS: self.set(u, f"{x[0]} {MASKS[op]} {x[1]}")
    elif op is Ops.NEG: self.set(u, f"({word})(-{wrapped[0]})")
    elif op is Ops.MULACC: self.set(u, f"({word})({wrapped[0]} * {wrapped[1]} + {wrapped[2]})")
    elif op is Ops.MAX: self.set(u, self.chosen(f"({x[0]} > {x[1]})", x[0], x[1], dtype))
    elif op in (Ops.SHL, Ops.SHR) and (count := lane(u.src[1])).op is Ops.CONST:
      by = int(count.arg) % dtype.scalar.bits
      self.set(u, f"({word})({wrapped[0]} << {by})" if op is Ops.SHL else f"{x[0]} >> {by}")
    else: self.loop(u)


