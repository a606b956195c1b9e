"""Data movement: mov, ld, st, atom, red, cvta, isspacep, and what changes nothing here (caches, fences)."""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need, nothing, unknown
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.memory import combine, copies, spaces
from tinyhw.emulator.ptx.memory.addresses import WINDOWS, address, guarded, real_space
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line, Place
from tinyhw.emulator.values.ops import U64, Ops
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Name, Operand, Vector

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

_RAW: Final[dict[int, Any]] = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}


# ---- registers

@binds("mov")
def mov(code: Code, line: Line, form: Form) -> Step:
  """Moves; with a vector on one side, packs and unpacks."""
  i, t = line.instruction, form.type
  need(line, 2)
  to, source = i.operands
  if t == "b128": return _mov128(code, line, to, source)
  if isinstance(to, Vector) and isinstance(source, Vector): raise unknown(line)
  if isinstance(to, Vector): return _unpack(code, line, to, source, t)
  if isinstance(source, Vector): return _pack(code, line, to, source, t)
  return partial(_moved, operands.writer(code, line, to, t), operands.reader(code, line, source, t))


# Steps that kernels have most are of two objects with what they are called with; a closure would be of ten.
def _moved(write: Any, read: Any, group: Warps) -> None: write(group, read(group))


def _loaded(write: Any, read: Any, space: str, width: int, dtype: Any, group: Warps) -> None:
  found = spaces.load(group, space, read(group), width)
  write(group, found if found.dtype is dtype else found.view(dtype))


def _part(line: Line, vector: Vector, t: str) -> int:
  """Bits of an element of a vector that is a value of a type. Raises DecodeError where there is no such type."""
  size, count = SIZES[t] * 8, len(vector.elements)
  if not count or size % count or f"b{size // count}" not in SIZES: raise operands.not_taken(line)
  return size // count


def _unpack(code: Code, line: Line, to: Vector, source: Operand, t: str) -> Step:
  size, part = SIZES[t] * 8, _part(line, to, t)
  read = operands.reader(code, line, source, t)
  writes = [operands.writer(code, line, e, f"b{part}") for e in to.elements]
  raw, small = np.dtype(f"u{size // 8}"), np.dtype(f"u{part // 8}")

  def run(group: Warps) -> None:
    x = read(group).view(raw)
    for k, write in enumerate(writes): write(group, (x >> raw.type(part * k) if k else x).astype(small))
  return run


def _pack(code: Code, line: Line, to: Operand, source: Vector, t: str) -> Step:
  size, part = SIZES[t] * 8, _part(line, source, t)
  reads = [operands.reader(code, line, e, f"b{part}") for e in source.elements]
  write = operands.writer(code, line, to, t)
  raw = np.dtype(f"u{size // 8}")

  def run(group: Warps) -> None:
    out = raw.type(0)
    for k, read in enumerate(reads): out = out | read(group).astype(raw) << raw.type(part * k)
    write(group, out)
  return run


def _mov128(code: Code, line: Line, to: Operand, source: Operand) -> Step:
  """Between registers of b128, which are two of b64 each, and pairs of b64."""
  writes = [operands.writer(code, line, o, "b64") for o in operands.halves(to)]
  reads = [operands.reader(code, line, o, "b64") for o in operands.halves(source)]

  def run(group: Warps) -> None:
    low, high = reads[0](group), reads[1](group)
    writes[0](group, low)
    writes[1](group, high)
  return run


# ---- loads and stores

def _split(raw: Value, width: int, dtype: Any, count: int) -> list[Value]:
  """The elements of loaded vectors."""
  if width <= 8:
    if count == 1: return [raw.view(dtype)]
    bits, small = np.uint64(8 * dtype.itemsize), np.dtype(f"u{dtype.itemsize}")
    t = raw.dtype.type
    return [(raw >> t(int(bits) * k) if k else raw).astype(small).view(dtype) for k in range(count)]
  whole = np.ascontiguousarray(raw).view(dtype)
  return [np.ascontiguousarray(whole[..., k]) if whole.ndim > 1 else whole[k] for k in range(count)]


@binds("ld", "ldu")
def ld(code: Code, line: Line, form: Form) -> Step:
  """Loads of one to eight elements."""
  i, t = line.instruction, form.type
  need(line, 2 + ("L2::cache_hint" in form.modifiers))
  space = spaces.space_of(form.modifiers)
  read = address(code, line, i.operands[1], space)
  space = real_space(code, line, i.operands[1], space)
  destinations = operands.elements(line, i.operands[0])
  count = next((int(m[1]) for m in form.modifiers if m in {"v2", "v4", "v8"}), 1)
  if len(destinations) != count: raise DecodeError(f"{i.name} has {len(destinations)} destinations", where=where(line))
  if t == "b128":
    if count > 1: raise DecodeError(f"{i.name}: no vector has elements of b128", where=where(line))
    t, destinations, count = "b64", operands.halves(destinations[0]), 2
  writes = [operands.writer(code, line, d, t) for d in destinations]
  dtype = operands.dtype_of(t)
  width = dtype.itemsize * count

  if count == 1: return guarded(line, partial(_loaded, writes[0], read, space, width, dtype))

  def run(group: Warps) -> None:
    at = read(group)
    if width <= 16: values = _split(spaces.load(group, space, at, width), width, dtype, count)
    else:
      spaces.check_alignment(group, np.asarray(at), width, "read")
      values = [v for k in (0, 16) for v in _split(spaces.load(group, space, at + at.dtype.type(k), 16), 16, dtype,
                                                   count // 2)]
    for write, value in zip(writes, values): write(group, value)
  return guarded(line, run)


@binds("st")
def st(code: Code, line: Line, form: Form) -> Step:
  """Stores of one to eight elements."""
  if "bulk" in form.modifiers: return copies.cleared(code, line, form)
  i, t = line.instruction, form.type
  if "async" in form.modifiers and "release" not in form.modifiers: return copies.remote(code, line, form)
  need(line, 2 + ("L2::cache_hint" in form.modifiers))
  space = spaces.space_of(form.modifiers)
  read = address(code, line, i.operands[0], space)
  space = real_space(code, line, i.operands[0], space)
  sources = operands.elements(line, i.operands[1])
  count = next((int(m[1]) for m in form.modifiers if m in {"v2", "v4", "v8"}), 1)
  if len(sources) != count: raise DecodeError(f"{i.name} has {len(sources)} sources", where=where(line))
  if t == "b128":
    if count > 1: raise DecodeError(f"{i.name}: no vector has elements of b128", where=where(line))
    t, sources, count = "b64", operands.halves(sources[0]), 2
  reads = [operands.reader(code, line, s, t) for s in sources]
  size = SIZES[t]
  raw = _RAW[size]

  def run(group: Warps) -> None:
    at = read(group)
    if count == 1: return spaces.store(group, space, at, reads[0](group).view(raw), size)
    values = [operands.full(group, r(group).view(raw)) for r in reads]
    spaces.check_alignment(group, np.asarray(at), size * count, "write")
    for k in range(0, count, max(1, 16 // size)):
      part = values[k:k + 16 // size]
      together = np.ascontiguousarray(np.stack(part, axis=-1))
      width = size * len(part)
      data = together.view(np.uint32) if width > 8 else together.view(_RAW[width])[..., 0]
      spaces.store(group, space, at + at.dtype.type(k * size) if k else at, data, width)
  return guarded(line, run)


# ---- atomics

_OPERATIONS: Final = {"and": "and", "or": "or", "xor": "xor", "exch": "swap", "cas": "cmpswap", "inc": "inc",
                      "dec": "dec"}


def operation(form: Form) -> str:
  """The name that `amdgcn.memory.atomics` has for an atomic."""
  m, t = form.modifiers, form.type
  for name, other in _OPERATIONS.items():
    if name in m: return other
  if "add" in m:
    return {"f32": "fadd", "f64": "fadd", "f16x2": "pk_add_f16", "bf16x2": "pk_add_bf16"}.get(t, "add")
  return f"{t[0]}{'min' if 'min' in m else 'max'}"


@binds("atom", "red")
def atom(code: Code, line: Line, form: Form) -> Step:
  """Atomic operations; threads act one after the other, the lowest first."""
  i, t = line.instruction, form.type
  if "async" in form.modifiers: return copies.remote(code, line, form)
  wanted = i.opcode == "atom"
  rest = [*i.operands]
  destination = rest.pop(0) if wanted else None
  space = spaces.space_of(form.modifiers)
  read = address(code, line, rest.pop(0), space)
  if t == "b128": return _wide(code, line, form, read, destination, rest)
  if form.modifiers & {"v2", "v4", "v8"} or t in combine.HALVES and form.modifiers & {"min", "max"}:
    return _vector(code, line, form, read, destination, rest[0])
  values = [operands.reader(code, line, o, t) for o in rest]
  size, raw = SIZES[t], _RAW[SIZES[t]]
  sink = isinstance(destination, Name) and destination.text == "_"
  write = None if destination is None or sink else operands.writer(code, line, destination, t)
  cas = "cas" in form.modifiers
  if len(values) != 1 + cas: raise DecodeError(f"{i.name} takes {1 + cas} values", where=where(line))
  result = operands.dtype_of(t)
  if size == 2: return guarded(line, _small(form, space, read, values, write))
  what = operation(form)

  def run(group: Warps) -> None:
    at, data = read(group), values[-1](group).view(raw)
    compare = values[0](group).view(raw) if cas else None
    old = spaces.atomic(group, space, at, size, what, data, compare, write is not None)
    if write is not None and old is not None: write(group, old.view(result))
  return guarded(line, run)


def _vector(code: Code, line: Line, form: Form, read: Any, destination: Operand | None, source: Operand) -> Step:
  """An atomic on each element of a vector; on floats of 16 bits thread by thread."""
  t = form.type
  size = SIZES[t]
  reads = [operands.reader(code, line, o, t) for o in operands.elements(line, source)]
  targets = operands.elements(line, destination) if destination is not None else ()
  writes = [operands.writer(code, line, o, t) for o in targets]
  if writes and len(writes) != len(reads):
    raise DecodeError(f"{line.instruction.name} has {len(reads)} results", where=where(line))
  space, dtype = spaces.space_of(form.modifiers), operands.dtype_of(t)
  apart = t in combine.HALVES
  what = "" if apart else operation(form)
  name = combine.operation(form.modifiers)

  def run(group: Warps) -> None:
    at = read(group)
    spaces.check_alignment(group, np.asarray(at), size * len(reads), "atomic")
    for k, value in enumerate(reads):
      place, data = at + at.dtype.type(k * size), value(group).view(_RAW[size])
      old = (combine.serial(group, space, place, t, name, data) if apart else
             spaces.atomic(group, space, place, size, what, data, None, bool(writes)))
      if writes and old is not None: writes[k](group, old.view(dtype))
  return guarded(line, run)


def _wide(code: Code, line: Line, form: Form, read: Any, destination: Operand | None, rest: list[Operand]) -> Step:
  """Exchanges of 16 bytes."""
  i, cas = line.instruction, "cas" in form.modifiers
  if destination is None or len(rest) != 1 + cas:
    raise DecodeError(f"{i.name} takes {1 + cas} values", where=where(line))
  sink = isinstance(destination, Name) and destination.text == "_"
  writes = [] if sink else [operands.writer(code, line, o, "b64") for o in operands.halves(destination)]
  values = [[operands.reader(code, line, o, "b64") for o in operands.halves(v)] for v in rest]
  space = spaces.space_of(form.modifiers)

  def run(group: Warps) -> None:
    given = [np.stack([operands.full(group, r(group)) for r in pair], axis=-1).view(np.uint32) for pair in values]

    def modify(old: Value, at: tuple[int, int]) -> Value:
      if cas and (old != given[0][at]).any(): return old
      return given[-1][at]
    old = np.ascontiguousarray(spaces.serial(group, space, read(group), 16, modify)).view(np.uint64)
    for k, write in enumerate(writes): write(group, np.ascontiguousarray(old[..., k]))
  return guarded(line, run)


def _small(form: Form, space: str, read: Any, values: list[Any], write: Any) -> Step:
  """Atomics of 16 bits: compare and swap of bits, sums of f16 and bf16."""
  t = form.type

  def run(group: Warps) -> None:
    given = [operands.full(group, v(group).view(np.uint16)) for v in values]

    def modify(old: Value, at: tuple[int, int]) -> Value:
      if "cas" in form.modifiers: return given[1][at] if old == given[0][at] else old
      return combine.combined(Ops, t, "add", old, given[0][at])
    old = spaces.serial(group, space, read(group), 2, modify)
    if write is not None: write(group, old.view(operands.dtype_of(t)))
  return run


# ---- addresses

@binds("cvta")
def cvta(code: Code, line: Line, form: Form) -> Step:
  """Between generic addresses and those of a state space."""
  i, t = line.instruction, form.type
  need(line, 2)
  space = spaces.space_of(form.modifiers)
  base = np.uint64(WINDOWS.get(space, 0))
  read, write = operands.reader(code, line, i.operands[1], t), operands.writer(code, line, i.operands[0], t)
  if "to" in form.modifiers: return lambda group: write(group, read(group) - base)
  return lambda group: write(group, read(group) + base)


@binds("isspacep")
def isspacep(code: Code, line: Line, form: Form) -> Step:
  """Whether a generic address is in a state space."""
  i = line.instruction
  need(line, 2)
  space = spaces.space_of(form.modifiers)
  r = operands.register(line, i.operands[1])
  if r is not None and SIZES[r.type] == 4:
    raise DecodeError("an address of 32 bits in generic space, where they have 64", where=where(line))
  read, write = operands.reader(code, line, i.operands[1], "u64"), operands.writer(code, line, i.operands[0], "pred")
  held = [(base, np.uint64(size)) for base, size in _held(code, space)]

  def run(group: Warps) -> None:
    x = read(group)
    inside = x != x
    for base, size in held: inside = inside | (x - base(group) < size)
    write(group, ~inside & (x < np.uint64(spaces.SHARED_WINDOW)) if space == "global" else inside)
  return run


def _held(code: Code, space: str) -> list[tuple[operands.Reader, int]]:
  """Where a state space lies, and how much of it; what is not global memory below the windows for that."""
  if space in WINDOWS: return [(code.constant(U64.type(WINDOWS[space])), spaces.WINDOW)]
  linked = code.program.linked
  if space == "param":
    return [(code.within(space, 0), max((sum(p) for p in linked.kernel(code.program.entry_name).params), default=0))]
  places = [(linked.scope.names.get(name), offset) for name, offset in linked.offsets.items()]
  return [(code.within("const", offset), p.size) for p, offset in places if isinstance(p, Place) and p.space == "const"]


@binds("prefetch", "prefetchu", "membar", "fence", "discard", "applypriority", "pmevent", "setmaxnreg")
def ignored(code: Code, line: Line, form: Form) -> Step | None:
  """What has no effect where there are no caches, and threads see memory in the order of their stores."""
  return nothing


@binds("createpolicy")
def createpolicy(code: Code, line: Line, form: Form) -> Step:
  """A cache policy: of no effect here."""
  write, policy = operands.writer(code, line, line.instruction.operands[0], "b64"), code.constant(U64.type(0))
  return lambda group: write(group, policy(group))


# ---- the stack

@binds("stacksave", "stackrestore", "alloca")
def stack(code: Code, line: Line, form: Form) -> Step:
  """The end of the thread's stack: it grows upward here."""
  i = line.instruction
  frame = code.flat.frame

  def top(group: Warps) -> Value: return U64.type(group.base + frame) if group.top is None else group.top
  if i.opcode == "stackrestore":
    saved = operands.reader(code, line, i.operands[0], form.type)
    def restore(group: Warps) -> None: group.top = saved(group).astype(np.uint64)
    return restore
  write = operands.writer(code, line, i.operands[0], form.type)
  raw = np.dtype(f"u{SIZES[form.type]}")
  if i.opcode == "stacksave": return lambda group: write(group, top(group).astype(raw))
  size = operands.reader(code, line, i.operands[1], form.type)
  align = operands.immediate(line, i.operands[2], "u64") if len(i.operands) > 2 else np.uint64(8)
  mask = np.uint64(max(int(align if align is not None else 8), 8) - 1)

  def allocate(group: Warps) -> None:
    start = (top(group) + mask) & ~mask
    group.top = start + size(group).astype(np.uint64)
    spaces.reserve(group, int(np.max(group.top)))
    write(group, start.astype(raw))
  return guarded(line, allocate)
