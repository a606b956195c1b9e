"""Instructions that look at textures and surfaces: tex, tld4, suld, sust, sured.

Operand a is a .texref or .surfref variable, whose 8 bytes hold a handle, a register with the address of one, or a
register with a handle: `texture` says what that is. Every element is read and written as any other memory is.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tinyhw.core.errors import DecodeError, InvalidArgument, MachineFault
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.addresses import guarded
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line, Place
from tinyhw.emulator.ptx.operands import Holder
from tinyhw.emulator.ptx.texture import objects, sampling
from tinyhw.emulator.ptx.texture.objects import FORMATS, Header, Sampler
from tinyhw.emulator.ptx.texture.sampling import Look, Sizes, face
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.ops import B, Operations
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Address, Name, Operand, Pair, Vector

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

Read = operands.Reader
_RAW: Final[dict[int, np.dtype[Any]]] = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}
_AXES: Final = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3, "2dms": 2, "a2dms": 2}


# ---- handles

def operand(code: Code, line: Line, operand: Operand) -> Read:
  """Reader of operand a: the address of an opaque variable, or a handle."""
  if isinstance(operand, Address): operand = operand.base
  if isinstance(operand, Name):
    found = line.scope.find(operand.text)
    if isinstance(found, Place) and found.variable.type not in {"texref", "samplerref", "surfref"}:
      raise DecodeError(f"{operand.text} is no texture, sampler or surface", where=where(line))
  return operands.reader(code, line, operand, "u64")


def header_of(group: Warps, value: int) -> Header:
  """What a handle, or the variable at an address, stands for."""
  first = int.from_bytes(group.space.read(value, 8), "little")
  at = value if first == objects.MAGIC else first
  if not at:
    raise MachineFault(f"no texture or surface is bound to the variable at {value:#x}", address=value,
                       lane=spaces.lane_of(group))
  found = objects.decoded(bytes(group.space.read(at, objects.SIZE)))
  if found is None: raise MachineFault(f"no texture or surface is at {at:#x}", address=at, lane=spaces.lane_of(group))
  return found


def alike(group: Warps, values: Sequence[Value]) -> Iterator[list[int]]:
  """For each combination of values that threads have: them, with `group.mask` of those threads."""
  mask = group.mask
  if all(v.ndim == 0 or v.size == 1 for v in values):
    yield [int(v.reshape(-1)[0]) if v.ndim else int(v) for v in values]
    return
  full, left = [operands.full(group, v) for v in values], group.lanes.copy()
  try:
    while left.any():
      first = tuple(np.argwhere(left)[0])
      same = left.copy()
      for v in full: same &= v == v[first]
      group.mask = None if same.all() else same
      yield [int(v[first]) for v in full]
      left &= ~same
  finally: group.mask = mask


# ---- textures

class _Fetch:
  """An instruction's operands, bound: coordinates, sampler, gradients, offsets, what depths are compared with."""

  def __init__(self, code: Code, line: Line, form: Form, result: int) -> None:
    i, m = line.instruction, form.modifiers
    at = i.operands[result]
    if not isinstance(at, Address) or not at.more or at.offset: raise operands.not_taken(line)
    self.geometry = next(g for g in _AXES if g in m)
    self.axes, self.kind = _AXES[self.geometry], "f32" if i.opcode == "tld4" else form.types[-1]
    self.array, self.samples = self.geometry.startswith("a"), self.geometry.endswith("ms")
    self.cube = "cube" in self.geometry
    self.where = at.base
    self.texture = operand(code, line, at.base)
    self.samplers = [*at.more[:len(at.more) - 1]][:1]
    self.sampler = operand(code, line, at.more[0]) if len(at.more) == 2 else None
    c = [*operands.elements(line, at.more[-1])]
    if len(c) < self.array + self.samples: raise operands.not_taken(line)
    # the sample of an array's is told twice in the manual: its example, and ptxas, have the index first
    lead = [operands.reader(code, line, c.pop(0), "u32") for _ in range(self.array + self.samples)]
    self.layer, self.sample = lead[0] if self.array else None, lead[-1] if self.samples else None
    self.coordinates = self._vector(code, line, Vector(tuple(c)), self.kind)
    rest = [*i.operands[result + 1:]]
    self.level = operands.reader(code, line, rest.pop(0), self.kind) if "level" in m else None
    self.ways = [self._vector(code, line, rest.pop(0), "f32") for _ in range(2 * ("grad" in m))]
    self.offsets, self.compare = list[Read](), None
    if rest and isinstance(rest[0], Vector):
      if self.cube: raise operands.not_taken(line)
      self.offsets = self._vector(code, line, rest.pop(0), "s32")
    if rest:
      if self.axes == 3 and not self.cube or self.samples: raise operands.not_taken(line)
      self.compare = operands.reader(code, line, rest.pop(0), "f32")
    if rest: raise operands.not_taken(line)

  def _vector(self, code: Code, line: Line, operand: Operand, type_: str) -> list[Read]:
    """Readers of a vector; elements that a geometry has not are ignored."""
    given = operands.elements(line, operand)
    if not self.axes <= len(given) <= 4: raise operands.not_taken(line)
    return [operands.reader(code, line, o, type_) for o in given[:self.axes]]

  def look(self, group: Warps, component: int | None) -> list[Value]:
    """The four components of what each thread fetches, f64 or i64; of tld4 the one of four elements."""
    out: list[Value] | None = None
    for values in alike(group, self.handles(group)):
      h = header_of(group, values[0])
      if not self.fits(h):
        raise MachineFault(f"a texture that is not .{self.geometry} is fetched from as one", lane=spaces.lane_of(group))

      def read(at: Value, h: Header = h) -> list[Value]:
        addresses = operands.full(group, sampling.whole(group.o, at) + np.uint64(h.address))
        return _words(spaces.load(group, "global", addresses, h.element), h)
      found = self.fetched(group, h, sampler_of(group, values[1:]), sampling.Known(h), read, component)
      found = [operands.full(group, x) for x in found]
      lanes = group.lanes
      out = found if out is None else [np.where(lanes, n, o) for n, o in zip(found, out)]
    assert out is not None
    return out

  def handles(self, group: Holder[B]) -> list[B]:
    """What threads look at: a texture, and a sampler where it is named."""
    return [self.texture(group), *([self.sampler(group)] if self.sampler is not None else [])]

  def fits(self, h: Header) -> bool:
    """Whether a texture is of the geometry that the instruction names."""
    return h.cube == self.cube and bool(h.samples) == self.samples and (h.size[2] > 0) == (self.geometry == "3d")

  def fetched(self, group: Holder[B], h: Header, sampler: Sampler | None, sizes: Sizes[B], read: sampling.Read[B],
              component: int | None) -> list[B]:
    """The same of threads that look at one texture, in operations on values."""
    o = group.o
    look = Look(o, h, sampler or h.sampler, sizes, read, self.kind == "s32")
    c = [f(group) for f in self.coordinates]
    ways = [[f(group) for f in w] for w in self.ways]
    layer: B | None = None

    def least(f: Read, name: str) -> B:
      x, last = o.to(f(group), "f64"), sizes.number(name) - 1.0
      return o.where(x < last, x, last)
    if self.layer is not None: layer = least(self.layer, "layers")
    if self.compare is not None: look.compare = o.to(self.compare(group), "f64")
    if self.cube:
      side, c, ways = face(o, c, ways)
      layer, look.normalized = side if layer is None else layer * 6.0 + side, True
    if self.sample is not None:
      sample = least(self.sample, "samples")
      layer = sample if layer is None else layer * sizes.number("samples") + sample
    offsets: list[B | None] = [o.to(f(group), "f64") for f in self.offsets]
    if not offsets: offsets = [None] * len(c)
    if component is not None: return look.footprint(c, layer, offsets, component)
    lod = None if self.level is None else self.level(group)
    if ways: lod = look.detail(*ways)
    return look.fetch(c, layer, lod, offsets)


def _words(raw: Value, h: Header) -> list[Value]:
  """The words of an element's components."""
  size = h.element // h.channels
  if h.element == 16: return [raw[..., k] for k in range(4)]
  return [(raw >> raw.dtype.type(8 * size * k)).astype(_RAW[size]) for k in range(h.channels)]


def sampler_of(group: Warps, values: Sequence[int]) -> Sampler | None:
  """The sampler at the address that is given, if one is."""
  if not values: return None
  bits = int.from_bytes(group.space.read(values[0], 8), "little")
  try: return Sampler.of(bits)
  except InvalidArgument:
    raise MachineFault(f"no sampler is at {values[0]:#x}", address=values[0], lane=spaces.lane_of(group)) from None


class Result(Protocol):
  """Takes the components of what was fetched."""
  def __call__(self, group: Holder[B], parts: list[B], /) -> None: ...


def _results(code: Code, line: Line, operand: Operand, type_: str, count: int) \
    -> Result:
  """Writer of what was fetched, and of whether it is in memory, which it always is."""
  first, second = (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)
  given = operands.elements(line, first)
  if len(given) != count: raise DecodeError(f"{line.instruction.name} has {count} results", where=where(line))
  raw = "b16" if type_ == "f16" else "b32"
  writes = [operands.writer(code, line, o, raw) for o in given]
  there = None if second is None else operands.writer(code, line, second, "pred")

  def write(group: Holder[B], parts: list[B]) -> None:
    o = group.o
    bits = [_bits(o, p, type_) for p in parts]
    if type_ == "f16x2":
      low, high = ([o.to(b, "u32") for b in bits[k::2]] for k in (0, 1))
      bits = [x | y << 16 for x, y in zip(low, high)]
    for put, x in zip(writes, bits): put(group, x)
    if there is not None: there(group, o.const("bool", 1))
  return write


def _bits(o: Operations[B], x: B, type_: str) -> B:
  """A component as the instruction gives it: floats as bits of f32 or f16, integers as they are."""
  half = type_ in {"f16", "f16x2"}
  if x.dtype.kind != "f": return o.to(x, "u16" if half else "u32")
  if half: return o.bits(o.to(x, "f16"), "u16")
  single = o.to(x, "f32")
  raw = o.bits(single, "u32")
  return o.where(single == single, raw, raw | 0x400000)  # also where nothing was computed


def unmasked(line: Line, run: Step) -> Step:
  """A step in which writes have the guard of the instruction, and accesses are of the threads whose guard is true."""
  guard = operands.predicate(line)
  if guard is None: return run

  def step(group: Warps) -> None:
    if (np.broadcast_to(guard(group), (group.size, LANES)) & group.lanes).any(): run(group)
  return step


class Fetch:
  """A tex or tld4: what it looks at, and where that goes."""

  def __init__(self, code: Code, line: Line, form: Form) -> None:
    i, type_ = line.instruction, form.types[0]
    self.bound = _Fetch(code, line, form, 1)
    self.component = "rgba".index(next(c for c in "rgba" if c in form.modifiers)) if i.opcode == "tld4" else None
    self.write = _results(code, line, i.operands[0], type_, 2 if type_ == "f16x2" else 4)


@binds("tex", "tld4")
def fetch(code: Code, line: Line, form: Form) -> Step:
  """Looks a texture up."""
  one = Fetch(code, line, form)
  found: list[Value] = []
  look = guarded(line, lambda group: found.extend(one.bound.look(group, one.component)))

  def run(group: Warps) -> None:
    found.clear()
    with np.errstate(over="ignore", invalid="ignore"):
      look(group)
      one.write(group, [*found])
  return unmasked(line, run)


# ---- surfaces

class _Spot:
  """Where an instruction goes in a surface: `find(group, width)` gives the threads that do, and their addresses."""

  def __init__(self, code: Code, line: Line, form: Form, at: Operand, width: int) -> None:
    m = form.modifiers
    if not isinstance(at, Address) or len(at.more) != 1 or at.offset:
      raise operands.not_taken(line)
    self.geometry = next(g for g in ("1d", "2d", "3d", "a1d", "a2d") if g in m)
    self.where = at.base
    self.surface = operand(code, line, at.base)
    c = [operands.reader(code, line, o, "s32") for o in operands.elements(line, at.more[0])]
    self.layer = c.pop(0) if self.geometry[0] == "a" else None
    self.coordinates, self.width = c[:_AXES[self.geometry]], width
    if len(self.coordinates) != _AXES[self.geometry]:
      raise DecodeError(f"{line.instruction.name} has too few coordinates", where=where(line))
    self.clamp = next((x for x in ("trap", "clamp", "zero") if x in m), "trap")
    self.samples = "p" in m

  def each(self, group: Warps) -> Iterator[tuple[Header, Value, Value]]:
    """(surface, addresses, lanes that are outside and do nothing), with `group.mask` of the threads of that surface."""
    for values in alike(group, [self.surface(group)]):
      h = header_of(group, values[0])
      if not self.fits(h):
        raise MachineFault(f"a surface that is not .{self.geometry} is used as one", lane=spaces.lane_of(group))
      place, outside = self.place(group, h, sampling.Known(h))
      at = operands.full(group, sampling.whole(group.o, place) + np.uint64(h.address))
      outside = operands.full(group, outside)
      if self.clamp == "trap" and (outside & group.lanes).any():
        raise spaces.fault(group, outside, at, f"an access outside of a surface of {h.extent(0)} elements, near")
      yield h, at, outside if self.clamp == "zero" else np.zeros((group.size, LANES), bool)

  def fits(self, h: Header) -> bool:
    """Whether a surface is of the geometry that the instruction names."""
    return not h.cube and not h.samples and (h.size[2] > 0) == (self.geometry == "3d")

  def place(self, group: Holder[B], h: Header, sizes: Sizes[B]) -> tuple[B, B]:
    """(bytes behind the surface's begin as f64, whether it is outside of it), in operations on values."""
    o = group.o
    width = float(h.element if self.samples else self.width)
    at: B | None = None
    outside: B | None = None

    def add(x: B, last: B) -> B:
      nonlocal outside
      far = (x < 0.0) | (x > last)
      outside = far if outside is None else outside | far
      return sampling.limited(o, x, 0.0, o.where(last > 0.0, last, 0.0))
    x, *others = [o.to(read(group), "f64") for read in self.coordinates]
    if self.samples: x = x * width
    x = add(x, sizes.extent(0, None) * float(h.element) - width)
    if self.layer is not None: at = add(o.to(o.bits(self.layer(group), "u32"), "f64"), sizes.number("layers") - 1.0)
    for axis in (2, 1):
      if at is not None and h.size[axis]: at = at * sizes.extent(axis, None)
      if len(others) < axis: continue
      y = add(others[axis - 1], sizes.extent(axis, None) - 1.0)
      at = y if at is None else at + y
    assert outside is not None
    return x if at is None else at * sizes.row(None) + x, outside


def _inside(group: Warps, outside: Value, act: Callable[[], object]) -> None:
  """Act for the threads that are inside."""
  mask, lanes = group.mask, group.lanes & ~outside
  if not lanes.any(): return
  group.mask = None if lanes.all() else lanes
  try: act()
  finally: group.mask = mask


class SurfaceAccess:
  """A suld or sust: where it goes, and the elements that it loads or stores there."""

  def __init__(self, code: Code, line: Line, form: Form) -> None:
    i = line.instruction
    self.loads, self.size = i.opcode == "suld", SIZES[form.type]
    count = next((int(m[1]) for m in ("v2", "v4") if m in form.modifiers), 1)
    elements = operands.elements(line, i.operands[not self.loads])
    if len(elements) != count:
      text = "has {} results" if self.loads else "takes {} values"
      raise DecodeError(f"{i.name} {text.format(count)}", where=where(line))
    self.count, self.formatted = count, "p" in form.modifiers
    self.spot = _Spot(code, line, form, i.operands[self.loads], self.size * count)
    self.writes = [operands.writer(code, line, x, form.type) for x in elements if self.loads]
    self.reads = [operands.reader(code, line, x, form.type) for x in elements if not self.loads]

  def parts(self, group: Holder[B], h: Header) -> list[B]:
    """What is stored at a place, unsigned."""
    values = [r(group) for r in self.reads]
    if not self.formatted: return [v.view(_RAW[self.size]) for v in values]
    parts = [_element(group.o, h, v) for v in values[:h.channels]]
    # what the source has not is unpredictable: here 0
    return parts + [group.o.const(f"u{8 * FORMATS[h.kind]}", 0)] * (h.channels - len(parts))


@binds("suld")
def suld(code: Code, line: Line, form: Form) -> Step:
  """Loads bytes of a surface."""
  one = SurfaceAccess(code, line, form)
  size, count = one.size, one.count

  def run(group: Warps) -> None:
    out = [np.zeros((group.size, LANES), _RAW[size]) for _ in range(count)]

    def load() -> None:
      for _, at, outside in one.spot.each(group):
        def take(at: Value = at) -> None:
          spaces.check_alignment(group, at, size * count, "read")
          for k in range(count):
            found = spaces.load(group, "global", at + np.uint64(k * size), size)
            out[k] = np.where(group.lanes, found, out[k])
        _inside(group, outside, take)
    guarded(line, lambda _: load())(group)
    for write, x in zip(one.writes, out): write(group, x)
  return unmasked(line, run)


@binds("sust")
def sust(code: Code, line: Line, form: Form) -> Step:
  """Stores bytes in a surface, or an element's components."""
  one = SurfaceAccess(code, line, form)

  def run(group: Warps) -> None:
    for h, at, outside in one.spot.each(group):
      def put(h: Header = h, at: Value = at) -> None:
        with np.errstate(over="ignore", invalid="ignore"): parts = one.parts(group, h)
        width = FORMATS[h.kind] if one.formatted else one.size
        spaces.check_alignment(group, at, width * len(parts), "write")
        for k, x in enumerate(parts):
          spaces.store(group, "global", at + np.uint64(k * width), operands.full(group, x), width)
      _inside(group, outside, put)
  return guarded(line, run)


def _element(o: Operations[B], h: Header, word: B) -> B:
  """A component of 32 bits in the surface's format."""
  bits = 8 * FORMATS[h.kind]
  if h.kind[0] == "f": return o.bits(o.to(o.bits(word, "f32"), f"f{bits}"), f"u{bits}")
  signed = h.kind[0] == "s"
  low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
  if h.unit:
    x = o.to(o.bits(word, "f32"), "f64")
    x = sampling.limited(o, o.where(x == x, x, 0.0), -1.0 if signed else 0.0, 1.0)
    return o.to(o.to_int(o.rint(x * float(high)), "i32"), f"u{bits}")
  if signed: return o.to(o.clip(o.bits(word, "i32"), low, high), f"u{bits}")
  return o.to(o.min(word, o.const("u32", high)), f"u{bits}")


class Reduction:
  """A sured: where it goes, and what is combined there."""
  loads, count = False, 1

  def __init__(self, code: Code, line: Line, form: Form) -> None:
    i, self.type = line.instruction, form.type
    self.size = SIZES[self.type]
    self.spot = _Spot(code, line, form, i.operands[0], self.size)
    self.read = operands.reader(code, line, i.operands[1], f"b{8 * self.size}")
    self.formatted = self.spot.samples
    self._name = next(x for x in ("add", "min", "max", "and", "or") if x in form.modifiers)

  def fits(self, h: Header) -> bool:
    """Whether a surface has elements of this size, where whole ones are combined."""
    return not self.formatted or h.element == self.size

  def operation(self, h: Header) -> str:
    """The name of what atomics do; integers of .b32 have the sign of the surface's."""
    signed = h.kind[0] == "s" if self.type[0] == "b" else self.type[0] == "s"
    return self._name if self._name in {"and", "or", "add"} else f"{'s' if signed else 'u'}{self._name}"


@binds("sured")
def sured(code: Code, line: Line, form: Form) -> Step:
  """Reductions on a surface: atomics whose old values nobody wants."""
  one = Reduction(code, line, form)

  def run(group: Warps) -> None:
    data = one.read(group)
    for h, at, outside in one.spot.each(group):
      if not one.fits(h):
        raise MachineFault(f"a reduction of {one.size} bytes on a surface with elements of {h.element}",
                           lane=spaces.lane_of(group))
      _inside(group, outside, lambda at=at, h=h: spaces.atomic(  # type: ignore[misc]
        group, "global", at, one.size, one.operation(h), data, None, False))
  return guarded(line, run)
