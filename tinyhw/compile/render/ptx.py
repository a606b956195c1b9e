"""NVIDIA GPUs: a kernel as PTX text, written from the linear program alone.

Lanes have registers of their own: PTX computes with single values, and vectors are what loads and stores take. An
INDEX is an address where the program has it, so the program's order keeps addresses out of loops; a gate is a
predicate of the access. Accumulators are registers that change. The memory that a kernel does not write is read
through `ld.global.nc`.

It writes an instruction a lane, by the tables of `ptxlanes`. PTX has two makers: `nvptx` has LLVM
make it of the IR that the host and the AMD GPUs are held to. The emulator, which imports neither,
runs both, and tests hold them against each other. This one is the default: it takes half the time
to compile, and the emulator is no slower with it.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tinyhw.compile.render import wgmma
from tinyhw.compile.render.base import alignment, block_size, given
from tinyhw.compile.render.nvidia import Assembler, NVIDIARenderer
from tinyhw.compile.render.ptxlanes import FORMS, REGISTERS, Lanes, PTXLine, group
from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp

MATRIX: Final = {                                 # units of `compile.units`
  "mma.m16n8k16.row.col.f32.f32": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
  "mma.m16n8k16.row.col.bf16":    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
  "mma.m16n8k32.row.col.s8":      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
  "mma.m16n8k32.row.col.e4m3":    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"}
# The first version of PTX that has a target (PTX ISA, 11.1.2), and the one with `mma` of floats of 8 bits.
VERSIONS: Final = {80: "7.0", 86: "7.1", 87: "7.4", 89: "7.8", 90: "8.0", 100: "8.6", 103: "8.8", 110: "9.0",
                   120: "8.7", 121: "8.8"}
BYTES_OF_MMA: Final = "8.4"


class PTXRenderer(NVIDIARenderer):
  """For one compute capability (`sm_80`)."""
  kind = "ptx"

  def __init__(self, capability: str = "sm_80", assembler: Assembler | None = None) -> None:
    super().__init__(capability, assembler)
    self.warpgroups = capability in ("sm_90", "sm_90a")

  def source(self, name: str, uops: Sequence[UOp]) -> str:
    self.check(name, uops)
    return PTXWriter(self, name, uops).module()

  def compile(self, source: str, name: str) -> bytes: return self.loadable(source.encode())

  def assembly(self, source: str, name: str) -> str:
    """The text closest to machine code: the source."""
    return source


class PTXWriter(Lanes):
  """Writes one program."""

  def __init__(self, renderer: PTXRenderer, name: str, uops: Sequence[UOp]) -> None:
    super().__init__(renderer.target, name)
    self.renderer, self.uops = renderer, tuple(uops)
    self.names: dict[UOp, list[str]] = {}         # the lanes of each value
    self.pointers: dict[UOp, str] = {}
    self.at: dict[UOp, tuple[str, int]] = {}      # of each INDEX: address, bytes behind it
    self.loops: list[int] = []                    # the numbers of those that are open
    self.labels = 0
    self.uses: dict[UOp, list[int]] = {}
    self.written: set[UOp] = set()
    self.given = given(self.uops)
    for i, u in enumerate(self.uops):
      for s in u.src: self.uses.setdefault(s, []).append(i)
      if u.op is Ops.STORE: self.written.add(u.src[0].src[0])
    indexed = {u.src[1]: None for u in self.uops if u.op is Ops.INDEX and split(u)[0] is not u.src[1]}
    self.folded = {u for u in indexed if all(self.uops[k].op is Ops.INDEX for k in self.uses[u])}

  def module(self) -> str:
    """The whole text."""
    pointers = {u.arg: u for u in self.uops if u.op is Ops.DEFINE_GLOBAL}
    variables = [u for u in self.uops if u.op is Ops.DEFINE_VAR]
    parameters = [f".param .u64 .ptr .global .align 16 data{i}" for i in range(max(pointers, default=-1) + 1)]
    parameters += [f".param .u32 value{i}" for i in range(len(variables))]
    for i, u in sorted(pointers.items()): self.pointers[u] = self.parameter(dtypes.uint64, f"data{i}", described(u))
    for i, u in enumerate(variables): self.names[u] = [self.parameter(dtypes.int32, f"value{i}", u.arg.name)]
    for i, u in enumerate(self.uops): self.one(i, u)
    shared = [f"  .shared .align 16 .b8 {u.arg}[{u.dtype.size * u.dtype.base.itemsize}];" for u in self.uops
              if u.op is Ops.DEFINE_LOCAL and isinstance(u.dtype, PtrDType) and u not in self.given]
    registers = [f"  .reg .{REGISTERS[k]} %{k}<{n + 1}>;" for k, n in self.counts.items() if n]
    body = [line.text() for line in (*self.first, *self.lines, PTXLine(0, "ret"))]
    return "\n".join([*self.head(), f".visible .entry {self.name}(", ",\n".join(f"  {p}" for p in parameters), ")",
                      f".reqntid {', '.join(map(str, block_size(self.uops)))}", "{", *shared, *registers, *body,
                      "}", ""])

  def head(self) -> list[str]:
    """The lines before the kernel."""
    number = int(re.sub(r"(?a)\D", "", self.renderer.capability))
    version = VERSIONS[max(n for n in VERSIONS if n <= number)]
    if any(u.op is Ops.WMMA and "e4m3" in u.arg for u in self.uops): version = max(version, BYTES_OF_MMA)
    target = self.renderer.capability
    if self.given and not target.endswith("a"): target += "a"  # what later GPUs do not have
    return [f".version {version}", f".target {target}", ".address_size 64", "",
            *(f".extern .shared .align 16 .b8 {u.arg}[];" for u in self.given)]

  def parameter(self, dtype: DType, name: str, note: str) -> str:
    """The value of a parameter."""
    return self.begins(dtype, f"ld.param.{FORMS[dtype].number}", f"[{name}]", note=note)

  def lanes(self, u: UOp) -> list[str]:
    """The operands that stand for a UOp."""
    return [self.constant(u.arg, u.dtype)] if u.op is Ops.CONST else self.names[u]

  # *** UOps ***

  def one(self, i: int, u: UOp) -> None:
    """The instructions of the UOp at place `i`."""
    op = u.op
    if op in (Ops.CONST, Ops.DEFINE_VAR, Ops.DEFINE_GLOBAL, Ops.SINK) or u in self.folded: return
    if op is Ops.DEFINE_LOCAL: self.pointers[u] = self.begins(dtypes.uint32, "mov.u32", u.arg, note=described(u))
    elif op is Ops.INDEX: self.at[u] = self.place(u)
    elif op is Ops.RANGE: self.open_loop(u)
    elif op is Ops.ENDRANGE: self.close_loop(u.src[0])
    elif op is Ops.DEFINE_ACC: self.set_up(u)
    elif op is Ops.ASSIGN: self.assign(i, u)
    elif op is Ops.STORE: self.store(u)
    elif op is Ops.BARRIER: self.line("bar.sync", "0")
    else: self.names[u] = self.unchanging(i, u, self.value(u))

  def value(self, u: UOp) -> list[str]:
    """The lanes of what has some."""
    op = u.op
    if op is Ops.SPECIAL: return [self.special(u)]
    if op is Ops.LOAD: return self.load(u)
    if op is Ops.VECTORIZE: return [self.lanes(s)[0] for s in u.src]
    if op is Ops.GEP: return [self.lanes(u.src[0])[k] for k in u.arg]
    if op is Ops.WMMA: return self.matrix(u)
    if op is Ops.WGMMA:
      a, b, memory, item = u.src
      return wgmma.product(self, u, self.at[a], self.at[b], self.pointers[memory], self.lanes(item)[0])
    source, target = u.src[0].dtype.scalar if u.src else dtypes.void, u.dtype.scalar
    if op is Ops.CAST: return [self.cast(x, source, target) for x in self.lanes(u.src[0])]
    if op is Ops.BITCAST: return [self.bitcast(x, source, target) for x in self.lanes(u.src[0])]
    if op in GroupOp.ALU: return [self.alu(u, list(x)) for x in zip(*map(self.lanes, u.src))]
    raise Unsupported("uop", op.name, arch=self.target, where=f"kernel {self.name}")

  def special(self, u: UOp) -> str:
    """The number of the block or thread, one way."""
    if u.arg.size == 1: return "0"
    register, axis = ("%ctaid" if u.arg.name[0] == "g" else "%tid"), "xyz"[int(u.arg.name[-1])]
    return self.new(dtypes.int32, "mov.u32", f"{register}.{axis}", note=f"{u.arg.name} of {u.arg.size}")

  def matrix(self, u: UOp) -> list[str]:
    """WMMA: factors are words of 32 bits."""
    factors = []
    for s in u.src[:2]:
      lanes, each = self.lanes(s), 32 // s.dtype.scalar.bits
      factors.append([self.packed(lanes[i:i + each], s.dtype.scalar) for i in range(0, len(lanes), each)])
    kind = u.dtype.scalar
    found = [self.register(kind) for _ in range(u.dtype.count)]
    addends = [self.held(x, kind) for x in self.lanes(u.src[2])]
    self.line(MATRIX[u.arg], *map(group, factors), group(addends), result=group(found))
    return found

  # *** loops and accumulators ***

  def open_loop(self, u: UOp) -> None:
    """A loop, which is gone around where its end may be 0."""
    self.labels += 1
    number, end = self.labels, self.lanes(u.src[0])[0]
    if u.src[0].vmin < 1:
      runs = self.new(dtypes.bool, "setp.gt.s32", end, "0")
      self.line("bra", f"$after{number}", guard=f"!{runs}")
    counter = self.new(dtypes.int32, "mov.b32", "0", note=f"axis {u.arg.axis}, {u.arg.kind.value}, {end} times")
    self.names[u] = [counter]
    self.lines.append(PTXLine(0, f"$loop{number}:"))
    self.loops.append(number)
    self.scopes.append({})
    self.depth += 1

  def close_loop(self, loop: UOp) -> None:
    """The end of the innermost loop."""
    number, counter = self.loops.pop(), self.names[loop][0]
    self.line("add.s32", counter, "1", result=counter)
    again = self.new(dtypes.bool, "setp.lt.s32", counter, self.lanes(loop.src[0])[0])
    self.line("bra", f"$loop{number}", guard=again)
    self.depth -= 1
    self.scopes.pop()
    if loop.src[0].vmin < 1: self.lines.append(PTXLine(0, f"$after{number}:"))

  def set_up(self, u: UOp) -> None:
    """DEFINE_ACC: registers with its first value."""
    kind = u.dtype.scalar
    self.names[u] = [self.register(kind) for _ in range(u.dtype.count)]
    for register, x in zip(self.names[u], self.lanes(u.src[0])):
      self.accumulators[register] = u
      self.line(f"mov.{FORMS[kind].move}", x, result=register)

  def assign(self, i: int, u: UOp) -> None:
    """ASSIGN. An instruction whose result is for it alone gives it the registers at once."""
    accumulator, value = u.src
    registers, lanes = self.names[accumulator], self.lanes(value)
    last = self.lines[-1]
    if self.uses[value] == [i] and last.result == group(lanes) and value.op in _COMPUTED:
      last.result = group(registers)
      self.unused(lanes)
    else:
      for register, x in zip(registers, lanes):
        if register != x: self.line(f"mov.{FORMS[u.dtype.scalar].move}", x, result=register)
    self.names[u] = registers

  def unchanging(self, i: int, u: UOp, lanes: list[str]) -> list[str]:
    """Copies of those lanes that are accumulators' registers and change while the value is in use."""
    found = []
    for x in lanes:
      owner = self.accumulators.get(x)
      if owner is not None and any(i < k < max(self.uses.get(u, [i])) for k in self.uses[owner]
                                   if self.uops[k].op is Ops.ASSIGN):
        x = self.new(u.dtype.scalar, f"mov.{FORMS[u.dtype.scalar].move}", x)
      found.append(x)
    return found

  # *** memory ***

  def place(self, index: UOp) -> tuple[str, int]:
    """The address of an INDEX, and bytes behind it that are known."""
    pointer, i = index.src[:2]
    if i.dtype.count > 1:
      raise Unsupported("uop", "INDEX of many places", arch=self.target, where=f"kernel {self.name}")
    assert isinstance(pointer.dtype, PtrDType)
    base, (rest, offset) = self.pointers[pointer], split(index)
    if rest is None: return base, offset
    if (known := self.known((pointer, rest))) is not None: return known, offset
    wide = pointer.dtype.space is AddressSpace.GLOBAL
    found = self.new(dtypes.uint64 if wide else dtypes.uint32, "mad.wide.s32" if wide else "mad.lo.s32",
                     self.lanes(rest)[0], str(pointer.dtype.base.itemsize), base)
    self.scopes[-1][pointer, rest] = found
    return found, offset

  def pieces(self, index: UOp, dtype: DType) -> Iterator[tuple[slice, str]]:
    """An access in parts that are aligned, the longest first: lanes, and where they are."""
    relied, size = alignment(index, dtype), dtype.scalar.itemsize
    base, offset = self.at[index]
    first = 0
    while first < dtype.count:
      count = next(n for n in (16, 8, 4, 2, 1) if n == 1 or n <= dtype.count - first and n * size <= relied)
      at = offset + first * size
      yield slice(first, first + count), f"[{base}{f'+{at}' if at else ''}]"
      first += count

  def load(self, u: UOp) -> list[str]:
    """LOAD. Where its gate is False, the registers keep the value for that."""
    index, kind = u.src[0], in_memory(u.dtype.scalar)
    other = next((s for s in u.src[1:] if s.op is not Ops.BARRIER), None)
    gate = "" if other is None else self.lanes(index.src[2])[0]
    kept = [] if other is None else [self.cast(x, u.dtype.scalar, kind) for x in self.lanes(other)]
    pointer = index.src[0]
    shared = isinstance(pointer.dtype, PtrDType) and pointer.dtype.space is AddressSpace.LOCAL
    space = "shared" if shared else "global" if pointer in self.written else "global.nc"
    found: list[str] = []
    for part, address in self.pieces(index, u.dtype):
      count, before = part.stop - part.start, kept[part]
      words = count > 4
      each, word = 4 // kind.itemsize, dtypes.uint32 if words else kind
      if words and before: before = [self.packed(before[i:i + each], kind) for i in range(0, count, each)]
      registers = [self.register(word) for _ in range(count // each if words else count)]
      for register, x in zip(registers, before): self.line(f"mov.{FORMS[word].move}", x, result=register)
      self.line(f"ld.{space}{vector(registers)}.{FORMS[word].memory}", address, result=group(registers), guard=gate)
      found += [x for r in registers for x in self.unpacked(r, kind)] if words else registers
    return [self.cast(x, kind, u.dtype.scalar) for x in found]

  def store(self, u: UOp) -> None:
    """STORE, under its gate."""
    index, value = u.src[:2]
    kind = in_memory(value.dtype.scalar)
    lanes = [self.cast(x, value.dtype.scalar, kind) for x in self.lanes(value)]
    gate = self.lanes(index.src[2])[0] if len(index.src) > 2 else ""
    pointer = index.src[0].dtype
    space = "shared" if isinstance(pointer, PtrDType) and pointer.space is AddressSpace.LOCAL else "global"
    for part, address in self.pieces(index, value.dtype):
      registers, word, each = lanes[part], kind, 4 // kind.itemsize
      if len(registers) > 4:
        registers = [self.packed(registers[i:i + each], kind) for i in range(0, len(registers), each)]
        word = dtypes.uint32
      self.line(f"st.{space}{vector(registers)}.{FORMS[word].memory}", address, group(registers), guard=gate)


_COMPUTED: Final = GroupOp.ALU | {Ops.WMMA}


def split(index: UOp) -> tuple[UOp | None, int]:
  """The number of an INDEX, but for the constant that is added to it; the bytes that this comes to."""
  i, size = index.src[1], index.dtype.base.itemsize if isinstance(index.dtype, PtrDType) else 0
  rest, count = (None, i) if i.op is Ops.CONST else i.src if i.op is Ops.ADD else (i, None)
  if count is None or count.op is not Ops.CONST or not -2**31 <= count.arg * size < 2**31: return i, 0
  return rest, int(count.arg) * size


def in_memory(dtype: DType) -> DType:
  """The type in memory: a bool is a byte there."""
  return dtypes.uint8 if dtype.is_bool else dtype


def vector(registers: Sequence[str]) -> str:
  """What an access says of how many it moves."""
  return f".v{len(registers)}" if len(registers) > 1 else ""


def described(u: UOp) -> str:
  """What a pointer points to."""
  assert isinstance(u.dtype, PtrDType)
  return f"{u.dtype.size} x {u.dtype.base.name}"
