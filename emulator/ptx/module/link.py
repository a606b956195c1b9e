"""A module made ready to load: variables laid out, initial values as bytes, functions flattened."""
from __future__ import annotations

import copy
import struct
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.core.lazy import cached_property
from tinyhw.core.locks import lock
from tinyhw.core.memory import PAGE
from tinyhw.core.nearest import offered
from tinyhw.emulator.ptx.module import kept, legacy, targets
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Flat, Place, Scope, align_of, flatten, size_of
from tinyhw.emulator.ptx.special import SYSTEM
from tinyhw.emulator.ptx.texture.objects import Sampler
from tinyhw.isa.ptx import forms, parse
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.isa.ptx.model import (
  Float,
  Function,
  Initializer,
  Instruction,
  Int,
  Member,
  Module,
  Name,
  Sum,
  Variable,
  leaves,
)

IMAGE_LIMIT: Final = 1 << 30
MODULES: Final = 64  # that are kept in memory
_DIRECTIVES: Final = ("maxntid", "reqntid", "reqnctapercluster")  # of a launch
_FLOATS: Final = {4: "<f", 8: "<d", 2: "<e"}
_PARSED: Final = frozenset({"module", "flats", "shared", "scope"})  # what a module that was kept has not
_LOCK: Final = lock()


def _aligned(at: int, align: int) -> int: return -(-at // align) * align


@dataclass(frozen=True)
class EntryPoint:
  """What a launch asks of a kernel: `params` are (offset, bytes), `shared` the bytes that it declares, `frame` those of
  a thread's variables; `stack` also those of all that it calls, None where nobody knows; `system`: it or what it
  calls asks where the shared memory is that the system keeps; what directives of these names say."""
  params: tuple[tuple[int, int], ...]
  shared: int
  frame: int
  stack: int | None
  system: bool
  maxntid: tuple[int, ...] | None
  reqntid: tuple[int, ...] | None
  reqnctapercluster: tuple[int, ...] | None

  def row(self) -> dict[str, Any]: return asdict(self)

  @classmethod
  def of(cls, row: dict[str, Any]) -> EntryPoint:
    """The inverse of `row`, also when that has been JSON."""
    def numbers(x: list[int] | None) -> tuple[int, ...] | None: return None if x is None else tuple(x)
    return cls(tuple((at, size) for at, size in row["params"]), row["shared"], row["frame"], row["stack"],
               row["system"], *(numbers(row[name]) for name in _DIRECTIVES))


@dataclass
class Linked:
  """A module whose global and constant variables lie at `offsets` in an image of `size` bytes.

  Shared variables begin at 0 in the order of their declaration; what is declared without a size (extern) begins where
  they end: the dynamic shared memory. `fixups` are (offset, bytes, name, addend, shift) of addresses in the image.
  `text` is what it was made from, if that was one; `kernels` are those that were asked for, `notes` what others have
  found out, as JSON has it: both are kept with compiled code (`kept`).
  """
  module: Module
  offsets: dict[str, int] = field(default_factory=dict)
  size: int = 0
  flats: dict[str, Flat] = field(default_factory=dict)
  shared: dict[str, Place] = field(default_factory=dict)
  scope: Scope = field(default_factory=Scope)
  image: bytearray = field(default_factory=bytearray)
  fixups: list[tuple[int, int, str, int]] = field(default_factory=list)
  _reachable: dict[str, list[str]] = field(default_factory=dict, repr=False)
  _names: dict[str, set[str]] = field(default_factory=dict, repr=False)
  text: bytes = field(default=b"", repr=False)
  kernels: dict[str, EntryPoint] = field(default_factory=dict, repr=False)
  notes: dict[str, Any] = field(default_factory=dict, repr=False)
  origin: Linked | None = field(default=None, repr=False)  # what it is with its variables where the text has them
  _kept: tuple[int, int] = (0, 0)

  @cached_property
  def names(self) -> tuple[str, ...]:
    """The kernels' names."""
    return tuple(self.module.entries)

  @cached_property
  def opaque(self) -> tuple[str, ...]:
    """The names of the module's textures and surfaces."""
    return tuple(v.name for v in self.module.items if isinstance(v, Variable) and v.name in self.offsets
                 and (v.type in {"texref", "surfref"} or v.space == "tex"))

  @cached_property
  def lines(self) -> dict[str, int]:
    """How many instructions each function with a body has."""
    return {name: len(flat.lines) for name, flat in self.flats.items()}

  @cached_property
  def version(self) -> tuple[int, int]: return self.module.version

  @cached_property
  def target(self) -> tuple[str, ...]: return self.module.target

  @cached_property
  def sm(self) -> int: return self.module.sm

  def kernel(self, name: str) -> EntryPoint:
    """What a launch asks of a kernel. Raises InvalidArgument, listing the kernels there are."""
    known = self.kernels.get(name)
    if known is None:
      entry = self.entry(name)
      flat = self.flats[name]
      stack = self._deep(name, {})
      known = EntryPoint(tuple((p.offset, p.size) for p in flat.params), self.shared_of(name)[1], flat.frame, stack,
                         self._asks(name), *(entry.directive(d) for d in _DIRECTIVES))
      self.kernels[name] = known
    return known

  def _asks(self, name: str) -> bool:
    """Whether a function or what it calls asks where the shared memory is that the system keeps."""
    return any(isinstance(o, Name) and o.text in SYSTEM for function in self.reachable(name)
               for line in self.flats[function].lines for operand in line.instruction.operands[1:]
               for o in leaves(operand))

  def _deep(self, name: str, known: dict[str, int | None]) -> int | None:
    """Bytes of a thread's stack in a function and all that it calls; None where it calls itself or through a register,
    or takes more while it runs. `known` are functions that have been looked at."""
    if name in known: return known[name]
    known[name] = None  # for one that calls itself
    flat, below = self.flats[name], 0
    for line in flat.lines:
      i = line.instruction
      if i.opcode == "alloca": return None
      if i.opcode != "call": continue
      target = next((o for o in i.operands if isinstance(o, Name)), None)
      if target is None or line.scope.find(target.text) is not None: return None
      if target.text not in self.flats: continue
      deep = self._deep(target.text, known)
      if deep is None: return None
      below = max(below, deep)
    known[name] = flat.frame if not below else _aligned(flat.frame, 16) + below
    return known[name]

  def moved(self, offsets: dict[str, int]) -> Linked:
    """It with its variables at other places."""
    other = copy.copy(self)
    other.offsets, other.origin = offsets, self.origin or self
    return other

  def entry(self, name: str) -> Function:
    """A kernel. Raises InvalidArgument, listing the kernels there are."""
    if name not in self.names:
      raise InvalidArgument(f"no kernel {name!r}", where="PTX", hint=offered(name, self.names, "it has"))
    return self.module.entries[name]

  def bytes_of(self, name: str) -> int:
    """The size of a global or constant variable of the module."""
    return next(size_of(v) for v in self.module.items if isinstance(v, Variable) and v.name == name)

  def bytes_at(self, base: int, functions: dict[str, int]) -> bytes:
    """The image for an address; `functions` are the addresses of functions."""
    image = bytearray(self.image)
    for offset, size, name, addend in self.fixups:
      address = functions[name] if name in functions else base + self.offsets[name]
      value = address + addend
      image[offset:offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(image)

  def reachable(self, entry: str) -> list[str]:
    """The functions that a kernel may call, itself the first; all of the module where it calls through a register."""
    known = self._reachable.get(entry)
    if known is None: known = self._reachable[entry] = self._reach(entry)
    return known

  def _reach(self, entry: str) -> list[str]:
    out, work = [entry], [entry] if len(self.flats) > 1 else []
    while work:
      function = work.pop()
      if not self._named(function) & self.flats.keys(): continue
      for line in self.flats[function].lines:
        for name in _mentioned(line.instruction):
          if name in self.flats and name not in out and line.scope.find(name) is None:
            out.append(name)
            work.append(name)
    return out

  def shared_of(self, entry: str) -> tuple[dict[int, int], int, int]:
    """(address of each shared variable by its identity, bytes of the declared ones, their alignment) of a kernel."""
    places = [p for p in self.shared.values() if size_of(p.variable)]
    places += [p for name in self.reachable(entry) for p in self.flats[name].shared if p.size]
    used = self._used(entry) if self.shared else set()
    at, found, align = 0, {}, 16
    for p in places:
      if p.variable.name in self.shared and p.variable.name not in used: continue
      at = _aligned(at, align_of(p.variable))
      found[id(p)] = at
      at += p.size
      align = max(align, align_of(p.variable))
    dynamic = [p for p in self.shared.values() if not size_of(p.variable)]
    dynamic += [p for name in self.reachable(entry) for p in self.flats[name].shared if not p.size]
    start = _aligned(at, max([16, *(align_of(p.variable) for p in dynamic)])) if dynamic else at
    for p in dynamic: found[id(p)] = start
    return found, start, align

  def _used(self, entry: str) -> set[str]:
    return {name for f in self.reachable(entry) for name in self._named(f)}

  def _named(self, function: str) -> set[str]:
    """Every name in a function's operands."""
    known = self._names.get(function)
    if known is None:
      known = self._names[function] = {n for line in self.flats[function].lines for n in _mentioned(line.instruction)}
    return known


def _mentioned(i: Instruction) -> set[str]:
  """Every name in an instruction's operands."""
  found = [leaf for o in i.operands for leaf in leaves(o)]
  return {o.text if isinstance(o, Name) else o.name for o in found if isinstance(o, (Name, Sum))}


def _checked(flat: Flat, module: Module, seen: set[tuple[str, int]]) -> None:
  """Raises DecodeError for an instruction that there is not, or not for the module's target: ptxas refuses it.

  Forms that the table does not have are left to launches: ptxas accepts some that no manual names. `seen` are names,
  with how many operands, that were looked at.
  """
  for line in flat.lines:
    i = line.instruction
    key = name, count = i.name, len(i.operands)
    if key in seen: continue
    seen.add(key)
    form = forms.find(name, count)
    if form is None:
      if not forms.known(i.opcode): raise DecodeError(f"{name}: no instruction has this name", where=where(line))
      continue
    for what in targets.missing(form, module): raise DecodeError(f"{name} needs {what}", where=where(line))


def link(module: Module) -> Linked:
  """Lay a module out. Raises DecodeError for what contradicts itself."""
  if module.address_size == 32:
    raise DecodeError("PTX with .address_size 32: GPUs from sm_75 on have addresses of 64 bits", where="PTX")
  targets.check(module)
  module = legacy.today(module)
  linked, seen = Linked(module), set[tuple[str, int]]()
  for item in module.items:
    if isinstance(item, Variable): _place(linked, item)
  for name, function in module.functions.items():
    if function.body is None: continue
    flat = linked.flats[name] = flatten(function, linked.scope)
    _checked(flat, module, seen)
    for place in flat.statics: _static(linked, place.variable, f"{name}::{place.variable.name}#{id(place)}")
  linked.image = bytearray(linked.size)
  for item in module.items:
    if isinstance(item, Variable) and item.initializer is not None and item.name in linked.offsets:
      _initial(linked, item, linked.offsets[item.name])
  for name, flat in linked.flats.items():
    for place in flat.statics:
      if place.variable.initializer is not None:
        _initial(linked, place.variable, linked.offsets[f"{name}::{place.variable.name}#{id(place)}"])
  return linked


class Known(Linked):
  """A module as it was kept (`kept`); its text is parsed where somebody asks for what only that tells."""

  def __init__(self, text: bytes, row: dict[str, Any], image: bytes) -> None:
    self.text, self.image = text, bytearray(image)
    self.names, self.lines = tuple(row["names"]), row["lines"]
    self.version, self.target, self.sm = (row["version"][0], row["version"][1]), tuple(row["target"]), row["sm"]
    self.offsets, self.size = row["offsets"], len(image)
    self.fixups = [(offset, size, name, addend) for offset, size, name, addend in row["fixups"]]
    self.kernels = {name: EntryPoint.of(found) for name, found in row["kernels"].items()}
    self.notes = row["notes"]
    self._reachable, self._names = {}, {}
    self._kept = len(self.kernels), len(self.notes)
    self._full: list[Linked] = []  # copies share it: a place is known by its identity

  def __getattr__(self, name: str) -> Any:
    if name not in _PARSED: raise AttributeError(name)
    with _LOCK:
      if not self._full: self._full.append(link(parse(self.text)))
    return getattr(self._full[0], name)


def link_text(text: bytes) -> Linked:
  """The module of a text, also one that another process has compiled. Raises DecodeError for what is no PTX."""
  return _linked(text.rstrip(b"\0"))


@lru_cache(maxsize=MODULES)
def _linked(text: bytes) -> Linked:
  found = kept.known(text)
  if found is not None:
    try: return Known(text, *found)
    except (KeyError, TypeError, ValueError, IndexError): pass  # a file of another kind
  linked = link(parse(text))
  linked.text = text
  return linked


def _place(linked: Linked, v: Variable) -> None:
  where = f"PTX line {v.at[0]}, column {v.at[1]}"
  if v.space == "tex": v = replace(v, space="global", type="texref")  # the form of PTX 1.4: a .texref
  if v.name in linked.scope.names: return  # declared before, defined now
  place = Place(v)
  if v.space == "shared": linked.shared[v.name] = place
  elif v.space in {"global", "const"}: _static(linked, v, v.name)
  else: raise DecodeError(f".{v.space} {v.name} outside of a function", where=where)
  linked.scope.names[v.name] = place


def _static(linked: Linked, v: Variable, key: str) -> None:
  size = size_of(v)
  if not size and isinstance(v.initializer, tuple): size = len(v.initializer) * SIZES[v.type] * v.vector
  align = max(align_of(v), 16)
  if align > PAGE: raise Unsupported("PTX alignment", f".align {align} of {v.name}, beyond pages of {PAGE:,} bytes",
                                     where=f"PTX line {v.at[0]}")
  at = _aligned(linked.size, align)
  linked.offsets[key], linked.size = at, at + max(size, 1)
  if linked.size > IMAGE_LIMIT:
    raise DecodeError(f"variables of more than {IMAGE_LIMIT:,} bytes", where=f"PTX line {v.at[0]}")


def _opaque(linked: Linked, v: Variable, at: int) -> None:
  """A sampler's members. Those of a texture or surface are what it is bound to: a module cannot say them."""
  if v.type != "samplerref": raise Unsupported("PTX initializer of", f".{v.type} {v.name}", where=f"PTX line {v.at[0]}")
  members = v.initializer if isinstance(v.initializer, tuple) else (v.initializer,)
  try: sampler = Sampler.named({m.name: m.value for m in members if isinstance(m, Member)})
  except InvalidArgument as why: raise DecodeError(f"{v.name}: {why}", where=f"PTX line {v.at[0]}") from None
  linked.image[at:at + 8] = sampler.bits.to_bytes(8, "little")


def _initial(linked: Linked, v: Variable, at: int) -> None:
  """Write a variable's initial value; what is left out is 0."""
  size = SIZES[v.type]
  if v.type in {"texref", "samplerref", "surfref"}: return _opaque(linked, v, at)

  def put(value: Initializer, at: int, dims: tuple[int, ...]) -> None:
    if isinstance(value, tuple):
      step = size
      for n in dims[1:]: step *= n or 1
      if len(dims) <= 1 and v.vector > 1 and value and isinstance(value[0], tuple): step = size * v.vector
      for k, part in enumerate(value): put(part, at + k * step, dims[1:])
      return
    if at + size > len(linked.image): raise DecodeError(f"{v.name} has too many values", where=f"PTX line {v.at[0]}")
    if isinstance(value, Int): linked.image[at:at + size] = (value.value & (1 << 8 * size) - 1).to_bytes(size, "little")
    elif isinstance(value, Float):
      number = struct.unpack(_FLOATS[value.width // 8], value.bits.to_bytes(value.width // 8, "little"))[0]
      bits = value.bits.to_bytes(size, "little") if value.width == 8 * size else struct.pack(_FLOATS[size], number)
      linked.image[at:at + size] = bits
    elif isinstance(value, Member): raise DecodeError(f"{v.name} has no members", where=f"PTX line {v.at[0]}")
    else:
      mask = value.function.partition(" ")[0]
      if mask not in {"", "generic"}: raise Unsupported("PTX initializer", mask, where=f"PTX line {v.at[0]}")
      if value.name not in linked.offsets and value.name not in linked.module.functions:
        raise DecodeError(f"{value.name} is not declared", where=f"PTX line {v.at[0]}")
      linked.fixups.append((at, size, value.name, value.offset))
  dims = v.dims + ((v.vector,) if v.vector > 1 else ())
  assert v.initializer is not None
  put(v.initializer, at, dims)
