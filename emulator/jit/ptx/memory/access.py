"""Loads and stores as LLVM IR: one check for what lies together, else thread by thread.

Each access to global memory is a *site* with a cached mapping. What it does not serve goes to `@slow`, which looks
each thread's address up; what that cannot serve either is the reference's: it raises the fault.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory import clocks, remote, watched
from tinyhw.emulator.jit.ptx.module import layout, stack
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Info, Shape
from tinyhw.emulator.jit.values import BOOL, Untranslatable, Value, convert, gather
from tinyhw.emulator.jit.vectors import interleaved, scatter
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import addresses, spaces
from tinyhw.emulator.ptx.module.scope import Line, Place
from tinyhw.emulator.values.ops import I32, I64, U32, U64
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Address, Name, Operand

Emit = Callable[[Lanes, Line, Form, Info], None]
GLOBAL, SHARED, LOCAL, GENERIC = range(4)
MODES: Final = {"global": GLOBAL, "shared": SHARED, "local": LOCAL, spaces.GENERIC: GENERIC}


@dataclass
class Site:
  """One access: where its addresses are, `width` bytes of each thread as `count` elements of `size`."""
  mode: int
  base: Value  # u64: of all threads, or the one that steps are added to
  steps: tuple[int, ...] | None  # None: a vector of addresses
  size: int
  count: int
  access: int
  mask: Value | None  # the threads that access; None for all
  stack: int | None = None  # where in the stack of each thread, where that is known and there
  compared: bool = False  # memory is read for what a store of these bytes changes
  remote: bool = False  # it may be another block's shared memory

  @property
  def width(self) -> int: return self.size * self.count

  @property
  def shared(self) -> bool: return self.mode == SHARED

  @property
  def own(self) -> bool:
    """Whether each thread accesses its own stack."""
    return self.mode == LOCAL or self.stack is not None

  @property
  def anywhere(self) -> bool:
    """Whether the addresses are generic."""
    return self.mode == GENERIC

  @property
  def outside(self) -> Site:
    """A generic one that is in global memory."""
    return replace(self, mode=GLOBAL)

  @property
  def inside(self) -> Site:
    """A generic one that is in shared memory."""
    return replace(self, mode=SHARED, base=self.base - spaces.SHARED_WINDOW, remote=True)

  @property
  def one(self) -> bool:
    """Whether all threads access one place."""
    return self.steps is not None and not any(self.steps)

  @property
  def block(self) -> bool:
    """Whether they access places that lie side by side, in order."""
    return self.steps == tuple((self.steps or (0,))[0] + k * self.width for k in range(len(self.steps or ())))


class Accessor:
  """Emits one access of a kernel."""

  def __init__(self, g: Lanes, site: Site) -> None:
    self.g, self.e, self.site, self.w = g, g.e, site, g.width
    self.far = g.plan.clustered  # addresses may be another block's, which is looked up

  # ---- pieces

  def _load(self, pointer: str, at: int = 0) -> Value:
    where = self.g.pointer(pointer, at) if at else pointer
    return Value(self.e, self.e.op(f"load i64, ptr {where}"), U64, False)

  def _row(self) -> None:
    """The site's row, or of shared memory what stands for one."""
    g, s = self.g, self.site
    self.row = ""
    self.host = g.o.const("u64", 0)
    if s.mode == SHARED:
      self.host = Value(self.e, "%shared", U64, False)
    elif s.mode == LOCAL:
      stacks = self.e.vector(U64, range(g.width)) * g.context(layout.LOCAL_SIZE)
      self.host = stacks + Value(self.e, "%local", U64, False)
    else:
      number = g.sites
      g.sites += 1
      self.row = g.pointer("%sites", number * layout.ROW)

  def _multiples(self, span: int) -> Value:
    """How many multiples of the width a site that begins there may start at."""
    g, s = self.g, self.site
    if s.mode not in {SHARED, LOCAL}: return self._load(self.row, 8)
    total = g.context(layout.SHARED_SIZE if s.mode == SHARED else layout.LOCAL_SIZE)
    enough = total >= span
    count = (total - span >> _log2(s.width)) + 1
    return g.o.where(enough, count, g.o.const("u64", 0))

  def _rotated(self, x: Value) -> Value:
    """Distances with what is not aligned in the upper bits."""
    k = _log2(self.site.width)
    if not k: return x
    t, name = x.type, f"llvm.fshr.v{self.w}i64" if x.wide else "llvm.fshr.i64"
    amount = f"splat (i64 {k})" if x.wide else str(k)
    return x.like(self.e.call(t, name, (t, x.text), (t, x.text), (t, amount)))

  def _branch(self, good: str, yes: str, no: str) -> None:
    self.e.do(f"br i1 {good}, label %{yes}, label %{no}, !prof !1")

  # ---- the access

  def run(self, fast: Callable[[Value], list[Value]], slow: Callable[[], list[Value]]) -> list[Value]:
    """Emit the check and both ways; the results of whichever was taken.

    `fast` gets the host address: that of the lowest of steps, or one for each thread. `slow` has what `@slow` read.
    """
    g, e, s = self.g, self.e, self.site
    self._row()
    done, quick, miss = e.new_label("done"), e.new_label("quick"), e.new_label("miss")
    first, good, span = self._checked()
    away = g.deopt()
    self._branch(good.text, quick, miss)
    before, e.side = e.side, True
    e.start(miss)
    found: list[Value] = []
    label = ""
    if s.mode == GLOBAL and s.one and s.mask is None and s.width <= 16:
      known = e.op(f"call i1 @find(ptr %context, ptr {self.row}, i64 {first.text}, i64 {span}, i64 {_log2(s.width)}, "
                   f"i64 {s.access})")
      self._branch(known, quick, away)
    elif not self.row and (s.mask is None or s.steps is None) and not (self.far and s.mode == SHARED):
      e.do(f"br label %{away}")
    else:
      self._helped(away, span)
      found, label = slow(), e.label
      e.do(f"br label %{done}")
    e.start(quick)
    host = self._load(self.row, 16) if self.row else self.host
    results = fast(first + host)
    last = e.label
    e.do(f"br label %{done}")
    e.start(done)
    e.side = before
    if not label: return results
    return [Value(e, e.op(f"phi {a.type} [ {a.text}, %{last} ], [ {b.text}, %{label} ]"), a.dtype, a.wide)
            for a, b in zip(results, found)]

  def _checked(self) -> tuple[Value, Value, int]:
    """(the address that is checked, whether the site serves all, the bytes from there on)."""
    g, e, s = self.g, self.e, self.site
    start = self._load(self.row) if self.row else None
    if s.steps is None:
      inside = self._rotated(s.base if start is None else s.base - start) < self._multiples(s.width)
      if s.width > 16: inside = e.const(BOOL, 0)
      if not inside.wide: inside = Value(e, inside.in_lanes(), BOOL, True)
      bad = ~inside if s.mask is None else s.mask & ~inside
      good = e.op(f"icmp eq {g.mask_type} {g.bits(bad)}, 0")
      return s.base, Value(e, good, BOOL, False), s.width
    low = min(s.steps)
    span = max(s.steps) - low + s.width
    first = s.base + low if low else s.base
    if s.width > 16 or any(step - low & s.width - 1 for step in s.steps):
      return first, e.const(BOOL, 0), span  # a thread's address is misaligned, or the mapping's start may be
    return first, self._rotated(first if start is None else first - start) < self._multiples(span), span

  def _helped(self, away: str, span: int) -> None:
    """Have `@slow` make the access thread by thread; leave where it cannot."""
    g, e, s = self.g, self.e, self.site
    addresses = s.base if s.steps is None else g.materialized(s.base, s.steps)
    e.do(f"store <{self.w} x i64> {addresses.in_lanes()}, ptr {g.pointer('%context', layout.ADDRESSES)}, align 8")
    if s.access == Access.WRITE and not s.compared: self.put()
    if self.row and span != s.width:  # what the row is to hold from the checked address on
      e.do(f"store i64 {span}, ptr {g.pointer(self.row, layout.SPAN)}")
    mask = g.bits(s.mask) if s.mask is not None else "-1"
    row = self.row or "null"
    reads = str(s.compared or s.access == Access.READ).lower()
    ok = e.op(f"call i1 @slow(ptr %context, ptr %state, ptr {row}, i32 {mask}, i64 {s.size}, i64 {s.count}, "
              f"i64 {s.access}, i64 {s.mode}, i1 {reads})")
    served = e.new_label("served")
    self._branch(ok, served, away)
    e.start(served)

  put: Callable[[], None] = staticmethod(lambda: None)

  def data(self, k: int) -> str:
    """Where `@slow` has the elements k of the threads."""
    return self.g.pointer("%context", layout.DATA + k * self.site.size * self.w)


def near(g: Lanes, site: Site) -> Accessor:
  """An access that has only the fast way."""
  found = Accessor(g, site)
  found.far = False
  return found


def _log2(n: int) -> int: return n.bit_length() - 1


def site_of(g: Lanes, line: Line, form: Form, operand: Operand, size: int, count: int, access: int) -> Site:
  """The access of an instruction to the address of an operand."""
  space = spaces.space_of(form.modifiers)
  real = addresses.real_space(g.code, line, operand, space)
  shape = g.plan.operand(line, operand, "u64") or g.plan.uniform()
  if isinstance(operand, Address) and isinstance(operand.base, Name):
    found = line.scope.find(operand.base.text)
    if isinstance(found, Place) and space == spaces.GENERIC and g.code.on_stack(found):
      raise Untranslatable("at a generic address of the stack")
  stepped = g.stepped
  g.stepped = shape.stepped
  try: base = addresses.address(g.code, line, operand, space)(g)
  finally: g.stepped = stepped
  narrow = base.dtype.itemsize == 4
  if narrow and shape.stepped and _wraps(shape):  # the steps count modulo 2**32
    base = g.materialized(base, tuple(shape.steps or ()))
    shape = Shape(None)
  # the base of steps may be before the first byte where the threads that count are not: then it is a negative number
  if narrow and shape.stepped: base = convert(base.view(I32), I64).view(U64)
  else: base = convert(base.view(U32) if narrow else base.view(U64), U64)
  steps = shape.steps if not base.wide else None
  mode = MODES[real]
  known = base.bits if mode == LOCAL and base.bits is not None and stack.holds(g, base.bits, size * count) else None
  if mode == LOCAL: base, steps = _on_stacks(g, base, steps)
  guard = operands.predicate(line)
  mask = None if g.everyone else g.active
  if guard is not None:
    p = guard(g)
    mask = p if mask is None else mask & p
    if not mask.wide: mask = Value(g.e, mask.in_lanes(), BOOL, True)
  return Site(mode, base, steps, size, count, access, mask, known, remote="shared::cluster" in form.modifiers)


def _wraps(shape: Shape) -> bool:
  return min(shape.steps or (0,)) < 0


def _on_stacks(g: Lanes, base: Value, steps: tuple[int, ...] | None) -> tuple[Value, None]:
  """Addresses of the stack are one a thread."""
  base = g.materialized(base, steps) if steps is not None and any(steps) else Value(g.e, base.in_lanes(), U64, True)
  return base, None


# ---- loads

def load(g: Lanes, site: Site, there: Value | None = None) -> list[Value]:
  """The elements of each thread, unsigned. `there` are those that load, where the site does not say so."""
  values = _load(g, site)
  speaks = not site.own and watched.speaking(g)
  if speaks: watched.speaks(g, site if there is None else replace(site, mask=there))
  watched.touched(g, site, clocks.SEEN if speaks else clocks.LOAD, there)
  return values


def unseen(g: Lanes, site: Site) -> list[Value]:
  """As `load`, of what somebody else notes in watched code."""
  return _load(g, site)


def _load(g: Lanes, site: Site) -> list[Value]:
  if site.stack is not None: return [stack.get(g, site.stack + k * site.size, site.size) for k in range(site.count)]
  e, w, a = g.e, g.width, Accessor(g, site)
  t = f"i{8 * site.size}"
  dtype = operands._RAW[site.size]

  def element(k: int, pointer: str) -> str: return g.pointer(pointer, k * site.size) if k else pointer

  def fast(host: Value) -> list[Value]:
    if site.one:
      pointer = e.op(f"inttoptr i64 {host.text} to ptr")
      return [Value(e, e.op(f"load {t}, ptr {element(k, pointer)}, align {site.size}"), dtype, False)
              for k in range(site.count)]
    if site.block:
      pointer = e.op(f"inttoptr i64 {host.text} to ptr")
      n = w * site.count
      whole = e.op(f"load <{n} x {t}>, ptr {pointer}, align {site.size}")
      if site.count == 1: return [Value(e, whole, dtype, True)]
      return [Value(e, e.op(f"shufflevector <{n} x {t}> {whole}, <{n} x {t}> poison, <{w} x i32> <"
                            + ", ".join(f"i32 {lane * site.count + k}" for lane in range(w)) + ">"), dtype, True)
              for k in range(site.count)]
    if site.steps is not None:
      low = min(site.steps)
      return _apart(g, e.op(f"inttoptr i64 {host.text} to ptr"), [s - low for s in site.steps], site, dtype)
    mask = "splat (i1 true)" if site.mask is None else site.mask.in_lanes()
    out = []
    for k in range(site.count):
      at = host + k * site.size if k else host
      pointers = e.op(f"inttoptr <{w} x i64> {at.text} to <{w} x ptr>")
      out.append(Value(e, gather(e, t, pointers, mask), dtype, True))
    return out

  def slow() -> list[Value]:
    out = []
    for k in range(site.count):
      if site.one: out.append(Value(e, e.op(f"load {t}, ptr {a.data(k)}"), dtype, False))
      else: out.append(Value(e, e.op(f"load <{w} x {t}>, ptr {a.data(k)}, align {site.size}"), dtype, True))
    return out
  return a.run(fast, slow)


def _apart(g: Lanes, pointer: str, steps: Sequence[int], site: Site, dtype: Any) -> list[Value]:
  """Elements at known distances from a pointer: each place is read once, or a piece of memory that holds them all."""
  e, w, t = g.e, g.width, f"i{8 * site.size}"
  places = sorted({(s, k) for s in steps for k in range(site.count)})
  texts = {(s, k): e.op(f"load {t}, ptr {g.pointer(pointer, s + k * site.size)}, align {site.size}") for s, k in places}
  out = []
  for k in range(site.count):
    vector = "poison"
    for lane, s in enumerate(steps):
      vector = e.op(f"insertelement <{w} x {t}> {vector}, {t} {texts[s, k]}, i32 {lane}")
    out.append(Value(e, vector, dtype, True))
  return out


def store(g: Lanes, site: Site, values: Sequence[Value], kind: str = clocks.STORE) -> None:
  """Store the elements of each thread; the highest thread wins at one address. `kind`: what watched code calls it."""
  if site.stack is not None:
    for k, v in enumerate(values): stack.put(g, site.stack + k * site.size, v, site.mask)
    return watched.touched(g, site, clocks.STORE)
  e, w, a = g.e, g.width, Accessor(g, site)
  t = f"i{8 * site.size}"
  raw = [v.view(operands._RAW[site.size]) for v in values]
  wide = [v.in_lanes() for v in raw]

  def put() -> None:
    for k, text in enumerate(wide):
      e.do(f"store <{w} x {t}> {text}, ptr {a.data(k)}, align {site.size}")
  a.put = put
  mask = "splat (i1 true)" if site.mask is None else site.mask.in_lanes()

  def fast(host: Value) -> list[Value]:
    if site.one:
      pointer = e.op(f"inttoptr i64 {host.text} to ptr")
      for k, v in enumerate(raw):
        text = v.text if not v.wide else e.op(f"extractelement <{w} x {t}> {v.text}, i32 {_highest(g, site)}")
        e.do(f"store {t} {text}, ptr {g.pointer(pointer, k * site.size) if k else pointer}, align {site.size}")
      return []
    if site.block:
      pointer = e.op(f"inttoptr i64 {host.text} to ptr")
      n = w * site.count
      data, bits = interleaved(e, wide, t), mask
      if site.mask is not None and site.count > 1:
        each = ", ".join(f"i32 {k // site.count}" for k in range(n))
        bits = e.op(f"shufflevector <{w} x i1> {mask}, <{w} x i1> poison, <{n} x i32> <{each}>")
      if site.mask is None: e.do(f"store <{n} x {t}> {data}, ptr {pointer}, align {site.size}")
      else:
        name = f"llvm.masked.store.v{n}{t}.p0"
        e.declared[name] = f"declare void @{name}(<{n} x {t}>, ptr, <{n} x i1>)"
        e.do(f"call void @{name}(<{n} x {t}> {data}, ptr align {site.size} {pointer}, <{n} x i1> {bits})")
      return []
    at = host
    if site.steps is not None:
      low = min(site.steps)
      at = host + e.vector(U64, [s - low for s in site.steps])
    for k in range(site.count):
      where = at + k * site.size if k else at
      pointers = e.op(f"inttoptr <{w} x i64> {where.text} to <{w} x ptr>")
      scatter(e, t, w, wide[k], pointers, mask, site.size)
    return []

  def act() -> None:
    seen = g.watch is not None and kind == clocks.STORE and not site.own and not (site.one and any(
      v.wide for v in raw))
    changes = _unlike(g, site, raw) if seen else None
    told = "0" if kind != clocks.TOLD else g.bits(functools.reduce(operator.or_, _unlike(g, site, raw)))
    a.run(fast, list)
    if kind == clocks.TOLD: watched.speaks(g, site, told)
    lost = _unlike(g, site, raw) if seen and not site.one and not site.block else None
    watched.touched(g, site, kind, None, None if changes is None else watched.Stored(changes, lost))
  if site.one and site.mask is not None:  # nobody may be there
    some, skip = e.new_label("some"), e.new_label("skip")
    e.do(f"br i1 {e.op(f'icmp ne {g.mask_type} {g.bits(site.mask)}, 0')}, label %{some}, label %{skip}")
    e.start(some)
    before, e.side = e.side, True
    act()
    e.do(f"br label %{skip}")
    e.start(skip)
    e.side = before
    return
  act()


def _unlike(g: Lanes, site: Site, elements: Sequence[Value]) -> list[Value]:
  """Where memory holds something else than these elements, by element."""
  there = _load(g, replace(site, compared=True))
  return [old != new for old, new in zip(there, elements)]


def _highest(g: Lanes, site: Site) -> str:
  """The number of the highest thread that is there."""
  if site.mask is None: return "31"
  m, e = g.mask_type, g.e
  e.declared[f"llvm.ctlz.{m}"] = f"declare {m} @llvm.ctlz.{m}({m}, i1)"
  zeros = e.op(f"call {m} @llvm.ctlz.{m}({m} {g.bits(site.mask)}, i1 false)")
  return e.op(f"and i32 {e.op(f'sub i32 31, {zeros}')}, 31")


# ---- instructions

EMITTERS: Final[dict[str, Emit]] = {}


def emits(*opcodes: str) -> Callable[[Emit], Emit]:
  """Decorator: the function emits these opcodes."""
  def register(function: Emit) -> Emit:
    for opcode in opcodes: EMITTERS[opcode] = function
    return function
  return register


def _count(form: Form) -> int: return next((int(m[1]) for m in form.modifiers if m in {"v2", "v4", "v8"}), 1)


@emits("ld", "ldu")
def ld(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """Loads of one to eight elements."""
  i, t, e = line.instruction, form.type, g.e
  destinations, count = operands.elements(line, i.operands[0]), _count(form)
  if t == "b128": t, destinations, count = "b64", operands.halves(i.operands[0]), 2
  size = SIZES[t]
  dtype = operands.dtype_of(t)
  writes = [operands.writer(g.code, line, d, t) for d in destinations]
  offset = _parameter(g, line, form, i.operands[1], size * count)
  if offset is not None:
    for k, write in enumerate(writes):
      raw = e.op(f"load i{8 * size}, ptr {g.pointer('%params', offset + k * size)}, align 1")
      write(g, Value(e, raw, operands._RAW[size], False).view(dtype))
    return
  site = site_of(g, line, form, i.operands[1], size, count, Access.READ)
  if line.instruction.predicate is None and site.one: site.mask = None
  if site.mask is not None and site.one:  # nobody may be there
    values = _if_any(g, site)
  else: values = load(g, site)
  for write, value in zip(writes, values): write(g, value.view(dtype))


def _if_any(g: Lanes, site: Site) -> list[Value]:
  """A load of one value for the threads that are there, if any."""
  e, m = g.e, g.mask_type
  assert site.mask is not None
  bits = g.bits(site.mask)
  before, some, skip = e.new_label("before"), e.new_label("some"), e.new_label("skip")
  e.do(f"br label %{before}")
  e.start(before)
  e.do(f"br i1 {e.op(f'icmp ne {m} {bits}, 0')}, label %{some}, label %{skip}")
  e.start(some)
  there, site.mask = site.mask, None
  before_side, e.side = e.side, True
  values = load(g, site, there)
  e.side = before_side
  last = e.label
  e.do(f"br label %{skip}")
  e.start(skip)
  return [v.like(e.op(f"phi {v.type} [ {v.text}, %{last} ], [ 0, %{before} ]")) for v in values]


def _parameter(g: Lanes, line: Line, form: Form, operand: Operand, width: int) -> int | None:
  """The offset of one of the kernel's parameters that is loaded; None for another address."""
  if "param" not in {m.partition("::")[0] for m in form.modifiers} or not isinstance(operand, Address): return None
  found = line.scope.find(operand.base.text) if isinstance(operand.base, Name) else None
  if not isinstance(found, Place) or g.code.on_stack(found): return None
  offset = found.offset + operand.offset
  last = g.code.flat.params[-1]
  return offset if 0 <= offset and offset + width <= last.offset + last.size and not offset % width else None


@emits("st")
def st(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """Stores of one to eight elements."""
  if "bulk" in form.modifiers: raise Untranslatable("in bulk")
  i, t = line.instruction, form.type
  if "async" in form.modifiers and "release" not in form.modifiers:
    return remote.sent(g, line, form)
  sources, count = operands.elements(line, i.operands[1]), _count(form)
  if t == "b128": t, sources, count = "b64", operands.halves(i.operands[1]), 2
  values = [operands.reader(g.code, line, s, t)(g) for s in sources]
  site = site_of(g, line, form, i.operands[0], SIZES[t], count, Access.WRITE)
  store(g, site, values, clocks.TOLD if not site.own and watched.speaking(g) else clocks.STORE)
