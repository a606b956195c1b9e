"""A kernel as LLVM IR: bound steps run once over values that are code."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError, Error, Unsupported
from tinyhw.emulator.jit.ptx import layout
from tinyhw.emulator.jit.ptx.shapes import Block, Info, Plan
from tinyhw.emulator.jit.values import BOOL, Emitter, LLVMOps, Untranslatable, Value, convert, type_of
from tinyhw.emulator.ptx import bind, operands
from tinyhw.emulator.ptx.meanings.convert import MODES
from tinyhw.emulator.ptx.program import Code
from tinyhw.emulator.ptx.scope import Line, Place, Register
from tinyhw.emulator.values.ops import DTYPES, F32, U32, U64
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.isa.ptx.model import Float, Int, Name

NAN: Final = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}
# Arithmetic that asks of a NaN only whether it is one, and whose own NaN is the chip's.
_ANY_NAN: Final = frozenset({"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin",
                             "cos", "min", "max", "setp", "set", "tanh"})
_LOOSE: Final = frozenset({"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"})
_MOVES: Final = frozenset({"mov", "selp"})
RESUMES: Final = (layout.BARRIER, layout.YIELD)
Reader = Callable[[Any], Any]


class Refused(Exception):
  """A kernel that is better left to the reference as a whole; says for what instruction."""


class JitCode(Code):
  """A function's code, bound for values that are LLVM's."""

  def constant(self, value: Any) -> Reader:
    dtype = np.dtype(value.dtype)
    bits = int(value) if dtype.kind == "b" else int(value.view(f"u{dtype.itemsize}"))
    return lambda group: group.e.const(dtype, bits)

  def special(self, name: str, dtype: Any) -> Reader: return lambda group: group.special(name, dtype)

  def based(self, line: Line, name: str, address: Any) -> Reader:
    found = line.scope.find(name)
    if isinstance(found, Place) and found.space == "param" and not self.on_stack(found):
      return lambda group: convert(group.context(layout.PARAMS_AT) + int(address), address.dtype)
    if isinstance(found, Place) and found.space in {"global", "const"}:
      offset = int(address) - self.program.base
      return lambda group: convert(group.context(layout.MODULE) + offset, address.dtype)
    return self.constant(address)


class LaneOps(LLVMOps):
  """Operations for one kernel; a NaN need not be the chip's where nobody sees its bits."""

  def __init__(self, e: Emitter, lanes: Lanes) -> None:
    super().__init__(e)
    self._lanes = lanes

  def canonical(self, x: Value, type_: str) -> Value: return x if self._lanes.loose else self.chip(x, type_)

  def chip(self, x: Value, type_: str) -> Value:
    """The value with NaN as the chip makes it."""
    return self.where(x != x, self.from_bits(type_, NAN[type_]), x)


  def rounded(self, x: Value, type_: str, mode: str) -> Value:
    """A number as a float type, rounded toward zero, down or up."""
    if x.dtype.kind != "f" and x.dtype.itemsize < 8: x = self.to(x, "f64")
    near = self.to(x, type_)
    if x.dtype.kind == "f":
      if x.dtype.itemsize <= near.dtype.itemsize: return near
      back = convert(near, x.dtype)
      finite = self.abs(x) < float("inf")
      above, below = finite & (x > back), finite & (x < back)
    else:
      back = self.to_int(near, ("i" if x.dtype.kind == "i" else "u") + "64")
      most = float("inf") if type_ == "f16" else 2.0 ** (63 if x.dtype.kind == "i" else 64)
      over, under = near >= most, near == -float("inf")
      above, below = under | ~over & (x > back), over | (x < back)
    raw, zero = self._raw(near), near == 0
    one, top = self.bits_const(near, 1), self.bits_const(near, near.top)
    up = self.where(zero, one, self.where(near > 0, raw + 1, raw - 1))
    down = self.where(zero, top | one, self.where(near > 0, raw - 1, raw + 1))
    if mode == "rp": above, below = above, above & ~above
    elif mode == "rm": above, below = below & ~below, below
    else: above, below = above & (near < 0), below & (near > 0)
    return self.where(above, up, self.where(below, down, raw)).view(near.dtype)

  def directed(self, opcode: str, mode: int, *values: Value) -> Value:
    """A sum, product or both of f32, rounded another way than to nearest even, by way of f64."""
    if values[0].dtype != F32 or opcode not in {"add", "sub", "mul", "fma", "mad"}:
      raise Untranslatable(f"directed rounding of {opcode}")
    a, b, *c = (self.to(v, "f64") for v in values)
    one = self.const("f64", 1)
    if opcode == "sub": b = self.neg(b)
    if opcode == "mul": wide = a * b
    else: wide = self.fma_f16_of_f32(a, *((b, c[0]) if c else (one, b)))
    r = self.rounded(wide, "f32", next(name for name, n in MODES.items() if n == mode))
    if opcode == "mul" or mode != MODES["rm"]: return r
    opposite = self.signbit(a) ^ self.signbit(b) ^ self.signbit(c[0]) if c else self.signbit(a) ^ self.signbit(b)
    return self.where((wide == 0) & opposite, self.from_bits("f32", 0x80000000), r)

  def bits_const(self, x: Value, bits: int) -> Value:
    """Bits of the width of a float."""
    return self.e.const(DTYPES[f"u{x.dtype.itemsize * 8}"], bits)


class Registers:
  """What bound steps see as `group.v`."""

  def __init__(self, lanes: Lanes) -> None: self._lanes = lanes

  def __getitem__(self, n: int) -> Value: return self._lanes.read(n)

  def __setitem__(self, n: int, value: Value) -> None: self._lanes.write(n, value)


@dataclass
class Exit:
  """A place where a strand leaves compiled code: status, PC, the register and offset of what it keeps, and of the
  masks of blocks where threads wait; `left` says whether others may have ended."""
  status: int
  pc: int
  registers: list[tuple[int, int]]
  masks: list[tuple[int, int]]
  carry: int
  size: int
  left: bool


class Lanes:
  """The group that bound steps run on: it emits the code of one kernel."""

  base = 0
  mask = None

  def __init__(self, plan: Plan) -> None:
    self.plan, self.code = plan, plan.code
    self.width = plan.width
    self.e = Emitter(plan.width)
    self.o: Any = LaneOps(self.e, self)
    self.v = Registers(self)
    self.types = [operands.dtype_of(t) for t in plan.code.flat.types]
    self.loose = False  # the result of this instruction need not have the chip's NaN
    self.tolerant = False  # this instruction takes any NaN
    self.stepped = False  # it works on bases
    self.current: dict[int, Value] = {}
    self.bases: dict[int, Value] = {}
    self.dirty: set[int] = set()
    self.exits: list[Exit] = []
    self.tail: list[str] = []  # code of exits
    self.block: Block = plan.blocks[0]
    self.used: set[int] = set()
    self.sites = 0
    self._kept: frozenset[int] = frozenset()
    self._carry: Value | None = None
    self.uses_carry = any(f is not None and ("cc" in f.modifiers or f.row.opcode in {"addc", "subc", "madc"})
                          for f in plan.forms)
    self.full = plan.threads % plan.width == 0
    self._loose = _loose_registers(plan)
    self._active: Value | None = None
    self.mask_type = f"i{plan.width}"

  # ---- small pieces

  def shape(self, n: int) -> Any:
    found = self.plan.shapes[n]
    return self.plan.uniform() if found is None else found

  def slot(self, n: int) -> str:
    """LLVM's type of a register's variable."""
    t = type_of(self.types[n])
    return t if self.shape(n).steps is not None else f"<{self.width} x {t}>"

  def context(self, at: int, dtype: Any = U64) -> Value:
    """A word of the context."""
    text = f"%context.{at}" if dtype == U64 else self.e.op(f"trunc i64 %context.{at} to i32")
    return Value(self.e, text, dtype, False)

  def pointer(self, base: str, at: int) -> str: return self.e.op(f"getelementptr i8, ptr {base}, i64 {at}")

  def bits(self, mask: Value) -> str:
    """A mask as an integer."""
    if mask.bits is not None: return str(-1 if mask.bits else 0)
    if not mask.wide: return self.e.op(f"select i1 {mask.text}, {self.mask_type} -1, {self.mask_type} 0")
    return self.e.op(f"bitcast {mask.type} {mask.text} to {self.mask_type}")

  def as_mask(self, bits: str) -> Value:
    text = self.e.op(f"bitcast {self.mask_type} {bits} to <{self.width} x i1>")
    return Value(self.e, text, BOOL, True)

  @property
  def everyone(self) -> bool:
    """Whether all threads of the strand are surely here."""
    return self.full and not self.block.waiting and not self.block.left

  @property
  def active_bits(self) -> str: return "-1" if self.everyone else self.e.op(f"load {self.mask_type}, ptr %active")

  @property
  def active(self) -> Value:
    """The threads that are here."""
    if self._active is None:
      self._active = Value(self.e, "splat (i1 true)", BOOL, True) if self.everyone else self.as_mask(self.active_bits)
    return self._active

  # ---- registers

  def base_of(self, n: int) -> Value:
    """A register's base, or its uniform value."""
    known = self.bases.get(n)
    if known is None:
      text = self.e.op(f"load {type_of(self.types[n])}, ptr %r{n}")
      known = Value(self.e, text, self.types[n], False)
      self.used.add(n)
      if not self.e.side: self.bases[n] = known
    return known

  def read(self, n: int) -> Value:
    """A register's value, as the instruction wants it."""
    shape = self.shape(n)
    if shape.uniform or self.stepped and shape.stepped: value = self.base_of(n)
    else:
      known = self.current.get(n)
      if known is None:
        if shape.stepped: known = self.materialized(self.base_of(n), shape.steps)
        else:
          self.used.add(n)
          known = Value(self.e, self.e.op(f"load {self.slot(n)}, ptr %r{n}"), self.types[n], True)
        if not self.e.side: self.current[n] = known
      value = known
    kind = self._loose.get(n)
    if kind is None or self.tolerant: return value
    return self.o.chip(value.view(DTYPES[kind]), kind).view(value.dtype)  # type: ignore[no-any-return]

  def materialized(self, base: Value, steps: tuple[int, ...]) -> Value:
    bits = base.dtype.itemsize * 8
    return base + self.e.vector(base.dtype, [s & (1 << bits) - 1 for s in steps])

  def write(self, n: int, value: Value) -> None:
    """Give a register a value, for the threads that are here."""
    own, shape = self.types[n], self.shape(n)
    if value.dtype != own: value = value.view(own)
    self.used.add(n)
    self.dirty.add(n)
    if shape.steps is not None:
      if value.wide: raise AssertionError(f"register {n} is no vector")
      self.bases[n] = value
      self.current.pop(n, None)
      return
    if self.stepped: value = self.materialized(value, self._steps)
    if not value.wide: value = Value(self.e, value.in_lanes(), own, True)
    if n in self._kept:
      old = self.current.get(n)
      if old is None: old = Value(self.e, self.e.op(f"load {self.slot(n)}, ptr %r{n}"), own, True)
      value = self.o.where(self.active, value, old)
    self.current[n] = value

  _steps: tuple[int, ...] = ()

  @property
  def carry(self) -> Value:
    if self._carry is None:
      self._carry = Value(self.e, self.e.op(f"load <{self.width} x i1>, ptr %carry"), BOOL, True)
    return self._carry

  @carry.setter
  def carry(self, value: Value) -> None:
    value = Value(self.e, value.in_lanes(), BOOL, True)
    if self.block.waiting: value = self.o.where(self.active, value, self.carry)
    self._carry = value

  # ---- special registers

  def special(self, name: str, dtype: Any) -> Value:
    """A special register in the width of an instruction."""
    base, _, part = name.partition(".")
    axis = "xyz".index(part) if part in {"x", "y", "z"} and part else 0
    o, e, plan = self.o, self.e, self.plan
    if base == "%tid": value = self._tid(axis)
    elif base == "%ntid": value = o.const("u32", plan.block[axis])
    elif base in {"%ctaid", "%clusterid"}: value = Value(e, f"%ctaid.{axis}", U32, False)
    elif base in {"%nctaid", "%nclusterid"}: value = Value(e, f"%nctaid.{axis}", U32, False)
    elif base == "%cluster_ctaid" or name == "%cluster_ctarank": value = o.const("u32", 0)
    elif base == "%cluster_nctaid" or name == "%cluster_nctarank": value = o.const("u32", 1)
    elif name == "%is_explicit_cluster": value = e.const(BOOL, 0)
    elif name == "%laneid": value = self._in_strand(self._first() & 31, plan.special(name).steps)
    elif name == "%warpid": value = self._first() >> 5
    elif name == "%nwarpid": value = o.const("u32", -(-plan.threads // 32))
    elif base.startswith("%lanemask"): value = self._lane_mask(base)
    elif name == "%gridid": value = o.const("u64", 1)
    elif name == "%nsmid": value = o.const("u32", 132)
    elif name == "%dynamic_smem_size": value = self.context(layout.DYNAMIC, U32)
    elif name in {"%total_smem_size", "%aggr_smem_size"}: value = self.context(layout.SHARED_SIZE, U32)
    else: raise Untranslatable(name)
    if value.dtype.kind == "b": return value if dtype.kind == "b" else convert(value, np.dtype(f"u{dtype.itemsize}"))
    return convert(value, np.dtype(f"u{dtype.itemsize}")).view(dtype)

  def _first(self) -> Value:
    """The index in the block of the strand's first thread."""
    return Value(self.e, "%first", U32, False)

  def _in_strand(self, base: Value, steps: tuple[int, ...] | None) -> Value:
    assert steps is not None
    if self.stepped or not any(steps): return base
    return self.materialized(base, steps)

  def _quotient(self, what: str, x: Value, n: int) -> Value:
    if n == 1: return x if what == "udiv" else self.o.const("u32", 0)
    t = x.type
    return x.like(self.e.op(f"{what} {t} {x.text}, {self.e.const(U32, n).at(x.wide)}"))

  def _tid(self, axis: int) -> Value:
    plan = self.plan
    if plan.block[axis] == 1: return self.o.const("u32", 0)  # type: ignore[no-any-return]
    shape, below = plan.tid(axis), 1
    for k in range(axis): below *= plan.block[k]
    x = self._first() if shape.steps is not None else self.materialized(self._first(), tuple(range(self.width)))
    x = self._quotient("udiv", x, below)
    if below * plan.block[axis] < plan.threads: x = self._quotient("urem", x, plan.block[axis])
    return x if shape.steps is None else self._in_strand(x, shape.steps)

  def _lane_mask(self, name: str) -> Value:
    o = self.o
    lane = self.materialized(self._first() & 31, tuple(range(self.width)))
    bit, ones = o.const("u32", 1) << lane, o.const("u32", 0xFFFFFFFF)
    kind = name.removeprefix("%lanemask_")
    if kind == "eq": return bit  # type: ignore[no-any-return]
    if kind == "lt": return bit - 1  # type: ignore[no-any-return]
    if kind == "le": return bit | bit - 1  # type: ignore[no-any-return]
    if kind == "gt": return ~(bit | bit - 1)  # type: ignore[no-any-return]
    if kind == "ge": return ones ^ (bit - 1)  # type: ignore[no-any-return]
    raise Untranslatable(name)

  # ---- leaving compiled code

  def exit(self, status: int, pc: int, live: frozenset[int], flushed: bool = False, at: Block | None = None,
           masks: bool = True) -> str:
    """A label to branch to that leaves compiled code at a PC, where registers `live` are wanted. With `flushed` all
    are in their variables."""
    number, b = len(self.exits), at or self.block
    keep = sorted((live | (self.plan.kept(b) if masks else frozenset())) & self._assigned)
    label, offset = f"exit.{number}", layout.HEADER
    lines = [f"{label}:"]
    rows: list[tuple[int, int]] = []
    waits: list[tuple[int, int]] = []

    def put(t: str, text: str, at: int) -> None:
      self.places.add(at)
      lines.append(f"  store {t} {text}, ptr %keep.{at}, align 4")
    for n in keep:
      t = self.slot(n)
      known = None if flushed else (self.bases if self.shape(n).steps is not None else self.current).get(n)
      if known is None or n not in self.dirty:
        lines.append(f"  %x{number}.r{n} = load {t}, ptr %r{n}")
        text = f"%x{number}.r{n}"
      else: text = known.at(self.shape(n).steps is None)
      size = self._size(n)
      if self.types[n] == BOOL and self.shape(n).steps is None:
        lines.append(f"  %x{number}.b{n} = bitcast {t} {text} to {self.mask_type}")
        t, text = self.mask_type, f"%x{number}.b{n}"
      put(t, text, offset)
      rows.append((n, offset))
      offset += size
    for q in sorted(b.waiting) if masks else ():
      lines.append(f"  %x{number}.m{q} = load {self.mask_type}, ptr %waiting.{q}")
      put(self.mask_type, f"%x{number}.m{q}", offset)
      waits.append((q, offset))
      offset += 8
    carry = 0
    if self.uses_carry:
      carry = offset
      source = self._carry.text if self._carry is not None and not flushed else f"%x{number}.c"
      if source == f"%x{number}.c": lines.append(f"  {source} = load <{self.width} x i1>, ptr %carry")
      lines.append(f"  %x{number}.cb = bitcast <{self.width} x i1> {source} to {self.mask_type}")
      put(self.mask_type, f"%x{number}.cb", offset)
      offset += 8
    lines.append(f"  br label %leave.{status}")
    self.tail += lines
    self.exits.append(Exit(status, pc, rows, waits, carry, offset, b.left))
    self._leaves.append((status, label, number))
    return label

  def _size(self, n: int) -> int:
    """Bytes of a register in a state."""
    return 8 if self.shape(n).steps is not None or self.types[n] == BOOL else self.types[n].itemsize * self.width

  def deopt(self) -> str:
    """A label to branch to where the reference has to execute this instruction."""
    return self.exit(layout.LEAVE, self.pc, self._lived[self.index])

  def _touched_sets(self, k: int) -> tuple[set[int], set[int]]:
    known = self._sets.get(k)
    if known is None:
      reads, writes = self.plan.touched[k]
      known = self._sets[k] = _members(reads), _members(writes)
    return known

  # ---- the function

  def text(self) -> str:
    """The module. Raises Refused."""
    plan = self.plan
    self._sets: dict[int, tuple[set[int], set[int]]] = {}
    self._leaves: list[tuple[int, str, int]] = []
    self.live_out = [frozenset().union(*(plan.blocks[t].live for t in b.successors)) if b.successors else frozenset()
                     for b in plan.blocks]
    self._assigned = frozenset(n for of in plan.written for n in of) | (plan.blocks[0].live if plan.blocks
                                                                        else frozenset())
    self._lived = self._live_before()
    self._resumable: list[tuple[int, Block]] = []
    self._again = 0
    self.places: set[int] = set()  # offsets in the state that exits store at
    for b in plan.blocks: self._emit(b)
    from tinyhw.emulator.jit.ptx.module import module
    return module(self)

  def _live_before(self) -> list[frozenset[int]]:
    """The registers that may be read from each instruction on."""
    out: list[frozenset[int]] = [frozenset()] * len(self.plan.lines)
    for b in self.plan.blocks:
      live = self.live_out[b.number]
      for k in range(b.end - 1, b.start - 1, -1):
        reads, writes = self._touched_sets(k)
        live = (live - writes) | reads
        out[k] = live
    return out

  def _emit(self, b: Block) -> None:
    """A block of the kernel."""
    e, plan = self.e, self.plan
    self.block, self._kept = b, plan.kept(b)
    self.current, self.bases, self.dirty, self._carry, self._active = {}, {}, set(), None, None
    e.forget()
    e.start(f"block.{b.number}")
    e.do(f"%left.{b.number} = load i64, ptr %left")
    e.do(f"%left.{b.number}.n = sub i64 %left.{b.number}, {b.end - b.start}")
    e.do(f"store i64 %left.{b.number}.n, ptr %left")
    last = b.end - 1
    stops = self.code.stops[last]
    for k in range(b.start, b.end - stops):
      self._at(k)
      self._step(k)
    if stops:
      self._at(last)
      from tinyhw.emulator.jit.ptx import control
      control.end(self, last)
    else:
      self.flush()
      self.go(self.successor(b.end))

  def successor(self, index: int) -> Block | None:
    """The block that begins with an instruction; None behind the last one."""
    return self.plan.block_of(index) if index < len(self.plan.lines) else None

  def _at(self, k: int) -> None:
    self.index, self.pc = k, self.code.pc(k)
    self._prepare(k)

  def _prepare(self, k: int) -> None:
    """How this instruction reads and writes."""
    form, info = self.plan.forms[k], self.plan.infos[k]
    self.stepped, self._steps = info.stepped, info.shape.steps or () if info.shape is not None else ()
    self.loose = self.tolerant = False
    if form is None or not form.types: return
    floats = form.type in {"f16", "f32"}
    destinations = self.plan.written[k]
    loose = bool(destinations) and all(n in self._loose for n in destinations)
    self.loose = loose and floats
    self.tolerant = floats and form.row.opcode in _ANY_NAN or loose and form.row.opcode in _MOVES
    if form.row.opcode == "cvt" and form.type in {"f16", "f32"} and "relu" not in form.modifiers: self.tolerant = True

  def _step(self, k: int) -> None:
    """An instruction that ends no block."""
    from tinyhw.emulator.jit.ptx import access, warp
    line, form, info = self.plan.lines[k], self.plan.forms[k], self.plan.infos[k]
    i = line.instruction
    if form is None: return self.unsupported(i.name)
    try:
      special = access.EMITTERS.get(i.opcode) or warp.EMITTERS.get(i.opcode)
      if special is not None: return special(self, line, form, info)
      if i.opcode in bind.BINDERS.keys() - _SHARED_BINDERS - bind.PURE: return self.unsupported(i.name)
      if i.opcode == "isspacep" and not any(m.partition("::")[0] in _WINDOWED for m in i.modifiers):
        return self.unsupported(i.name)
      step = bind.step(self.code, line)
      if step is None: return None
      for at, type_ in info.checks: self._check(line, form, info, at, type_)
      step(self)
    except (Untranslatable, Unsupported) as why:
      return self.unsupported(f"{i.name} ({why})" if isinstance(why, Untranslatable) else i.name)
    except DecodeError: raise
    except Error: return self.unsupported(i.name)

  def unsupported(self, name: str) -> None:
    """An instruction that has no compiled form."""
    raise Refused(name)

  def _check(self, line: Line, form: Any, info: Info, at: int, type_: str) -> None:
    """Leave where steps from a base pass the end of the narrower type that is widened."""
    e, o = self.e, self.o
    operand = line.instruction.operands[1 + at]
    shape = self.plan.operand(line, operand, type_)
    assert shape is not None and shape.steps is not None
    base: Value = operands.reader(self.code, line, operand, type_)(self)  # type: ignore[arg-type]
    bits = base.dtype.itemsize * 8
    wide = convert(base, DTYPES["i64"])
    low, high = min(shape.steps), max(shape.steps)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)
    good = o.const("bool", 1)
    if bits == 64: return
    if low < 0: good = good & (wide >= least - low)
    if high > 0: good = good & (wide <= most - high)
    fine = e.new_label("exact")
    e.do(f"br i1 {good.text}, label %{fine}, label %{self.deopt()}, !prof !1")
    e.start(fine)

  # ---- control

  def flush(self) -> None:
    """Bring what this block has computed into the registers' variables."""
    wanted = self.live_out[self.block.number] | self._kept
    for n in sorted(self.dirty & wanted):
      if self.shape(n).steps is not None: self.e.do(f"store {self.slot(n)} {self.bases[n].text}, ptr %r{n}")
      else: self.e.do(f"store {self.slot(n)} {self.current[n].in_lanes()}, ptr %r{n}")
    if self._carry is not None: self.e.do(f"store <{self.width} x i1> {self._carry.text}, ptr %carry")

  def go(self, target: Block | None, active: str | None = None) -> None:
    """All threads that are here go on at a block. Registers are flushed."""
    e, b = self.e, self.block
    if target is None: return self.done()
    before = [q for q in b.waiting if q < target.number]
    if not before:
      if target.number in b.waiting:
        here = e.op(f"load {self.mask_type}, ptr %active")
        there = e.op(f"load {self.mask_type}, ptr %waiting.{target.number}")
        e.do(f"store {self.mask_type} {e.op(f'or {self.mask_type} {here}, {there}')}, ptr %active")
        e.do(f"store {self.mask_type} 0, ptr %waiting.{target.number}")
      e.do(f"br label %{self.entry(target)}")
      return
    here = e.op(f"load {self.mask_type}, ptr %active")
    self.send(target, here)
    self.dispatch({*b.waiting, target.number})

  def send(self, target: Block, bits: str) -> None:
    """Threads come to a block, which waits for its turn."""
    e = self.e
    there = e.op(f"load {self.mask_type}, ptr %waiting.{target.number}")
    e.do(f"store {self.mask_type} {e.op(f'or {self.mask_type} {there}, {bits}')}, ptr %waiting.{target.number}")

  def dispatch(self, candidates: set[int]) -> None:
    """Go on at the lowest of these blocks where threads are; where there is none, the strand has ended."""
    e = self.e
    for q in sorted(candidates):
      there = e.op(f"load {self.mask_type}, ptr %waiting.{q}")
      some = e.op(f"icmp ne {self.mask_type} {there}, 0")
      enter, following = e.new_label("enter"), e.new_label("other")
      e.do(f"br i1 {some}, label %{enter}, label %{following}")
      e.start(enter)
      e.do(f"store {self.mask_type} {there}, ptr %active")
      e.do(f"store {self.mask_type} 0, ptr %waiting.{q}")
      e.do(f"br label %{self.entry(self.plan.blocks[q])}")
      e.start(following)
    e.do("br label %ended")

  def done(self) -> None:
    """All threads that are here have ended."""
    e = self.e
    alive = e.op(f"load {self.mask_type}, ptr %alive")
    here = e.op(f"load {self.mask_type}, ptr %active")
    gone = e.op(f"xor {self.mask_type} {here}, -1")
    e.do(f"store {self.mask_type} {e.op(f'and {self.mask_type} {alive}, {gone}')}, ptr %alive")
    self.dispatch(set(self.block.waiting))

  def entry(self, target: Block) -> str:
    """The label at which control comes to a block: back at a loop it may have to let others run."""
    if target.number > self.block.number: return f"block.{target.number}"
    self._again += 1
    n, label = self._again, f"again.{self._again}"
    away = self.resumable(layout.YIELD, target.pc, target.live, target)
    self.tail += [f"{label}:", f"  %spent.{n}.l = load i64, ptr %left", f"  %spent.{n} = icmp slt i64 %spent.{n}.l, 0",
                  f"  br i1 %spent.{n}, label %{away}, label %block.{target.number}, !prof !2"]
    return label

  def resumable(self, status: int, pc: int, live: frozenset[int], target: Block) -> str:
    """As `exit`, of a strand that goes on at a block. Registers are flushed."""
    label = self.exit(status, pc, live, flushed=True, at=target if status == layout.YIELD else None)
    self._resumable.append((len(self.exits) - 1, target))
    return label


_SHARED_BINDERS: Final = frozenset({"mov", "cvta", "setp", "set", "cvt", "lop3", "prefetch", "prefetchu", "membar",
                                    "fence", "discard", "applypriority", "pmevent", "griddepcontrol", "setmaxnreg",
                                    "createpolicy", "isspacep"})
_WINDOWED: Final = frozenset({"shared", "local"})


def _members(bits: int) -> set[int]:
  """The places of an integer's bits."""
  out = set()
  while bits:
    low = bits & -bits
    out.add(low.bit_length() - 1)
    bits ^= low
  return out


def _loose_registers(plan: Plan) -> dict[int, str]:
  """The registers that arithmetic of one type of floats alone writes, so that any NaN in them stands for the chip's."""
  sizes = {4: "f32", 2: "f16"}
  out = {n: sizes[SIZES[t]] for n, t in enumerate(plan.code.flat.types) if SIZES[t] in sizes}
  definitions: dict[int, list[int]] = {}
  for k in range(len(plan.lines)):
    for n in plan.written[k]: definitions.setdefault(n, []).append(k)
  changed = True
  while changed:
    changed = False
    for n in [*out]:
      if not definitions.get(n) or not all(_is_loose(plan, k, out, out[n]) for k in definitions[n]):
        del out[n]
        changed = True
  return out


def _is_loose(plan: Plan, k: int, loose: dict[int, str], type_: str) -> bool:
  line, form = plan.lines[k], plan.forms[k]
  assert form is not None
  op, m = form.row.opcode, form.modifiers
  if op not in _MOVES: return op in _LOOSE and form.type == type_ and "relu" not in m
  if form.type not in {type_, f"b{8 * SIZES[type_]}"}: return False
  for o in line.instruction.operands[1:2 if op == "mov" else 3]:
    if isinstance(o, Float):
      if o.width != 32 or (o.bits & 0x7FFFFFFF) > 0x7F800000: return False
    elif isinstance(o, Name):
      found = line.scope.find(o.text)
      if not isinstance(found, Register) or loose.get(found.number) != type_: return False
    elif not isinstance(o, Int) or (o.value & 0x7FFFFFFF) > (0x7F800000 if type_ == "f32" else 0x7C00): return False
  return True


__all__ = ["Exit", "JitCode", "Lanes", "Refused"]
