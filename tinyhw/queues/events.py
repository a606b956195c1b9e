"""What a capture says: one class an event. A row of the file is [tag, when, thread, vendor, fields ...] in this order.

An event's class is its declaration: `row` and `from_row` go by its fields. A later format may put fields behind those
that are here; rows of an older one leave them out, and they have their defaults.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, ClassVar, Final, Self

from tinyhw.core.errors import DecodeError
from tinyhw.core.trace import Whose

Chunks = list[list[Any]]
"""Contents by place: rows of [allocation, first byte, bytes, hash]."""
Pieces = list[list[Any]]
"""Words that a submission leads to: rows of [GPU address, bytes]."""
Words = list[list[int]]
"""Values of signals as the host sees them: rows of [GPU address, bytes, value]."""
Pairs = list[list[int]]
"""Rows of two numbers: of memory [GPU address, bytes], of work [queue, which of its]."""
Orders = list[list[int]]
"""Values that a stream writes or waits for: rows of [GPU address, bytes, value, how: -1 it writes, else one of
CU_STREAM_WAIT_VALUE_*]."""
Names = list[list[Any]]
"""Rows of [name, number, number]: kernels with their entries and argument bytes, parameters with offsets and bytes."""


CLOCK: Final = Whose.HOST
"""Whose clock the times of a capture are of: the recorder reads it, whatever the cards are."""


@dataclass(slots=True, kw_only=True)
class Event:
  """`at_ns` is on the recorder's clock (`CLOCK`), `thread` counts the process's threads in the order of their first
  event, `vendor` is "amd", "nv", "cuda", or empty for what belongs to none."""
  TAG: ClassVar[str] = ""
  at_ns: int = 0
  thread: int = 0
  vendor: str = ""

  def row(self) -> list[Any]:
    """As the file has it."""
    return [self.TAG, *_VALUES[type(self)](self)]

  @classmethod
  def from_row(cls, values: list[Any]) -> Self:
    """From what is behind the tag. Raises DecodeError for too few values, or too many."""
    made: Self | None = _MAKERS[cls](values)
    if made is not None: return made
    names, types, count = _NAMES[cls], _TYPES[cls], len(values)
    if not _LEAST[cls] <= count <= len(names):
      raise DecodeError(f"{count} values, {len(names)} are declared", where=f"event {cls.TAG}")
    if tuple(map(type, values)) != types[:count]: raise cls._misfit(values)
    for at, kind in _LISTS[cls]:
      if at < count and values[at] and not _fits(values[at], kind): raise cls._misfit(values)
    return cls(**dict(zip(names, values)))

  @classmethod
  def _misfit(cls, values: list[Any]) -> DecodeError:
    """Name the first value that is not of its field's type."""
    name, value, kind = next((n, v, k) for (n, k), v in zip(_NAMES[cls].items(), values) if not _fits(v, k))
    return DecodeError(f"{value!r:.40} is no {kind}", where=f"event {cls.TAG}.{name}")


@dataclass(slots=True, kw_only=True)
class Open(Event):
  """A device file was opened; `errno` where it was not."""
  TAG: ClassVar[str] = "open"
  path: str
  flags: int
  fd: int = -1
  errno: int = 0


@dataclass(slots=True, kw_only=True)
class File(Event):
  """What a file says of the machine: of those that a driver has read, the ones that tell what its GPUs are."""
  TAG: ClassVar[str] = "file"
  path: str
  content: bytes


@dataclass(slots=True, kw_only=True)
class Close(Event):
  """A device file was closed."""
  TAG: ClassVar[str] = "close"
  fd: int


@dataclass(slots=True, kw_only=True)
class Ioctl(Event):
  """A call: its argument before and after, and what its pointers lead to (`inner`), before and after."""
  TAG: ClassVar[str] = "ioctl"
  fd: int
  request: int
  before: bytes
  after: bytes
  inner_before: bytes = b""
  inner_after: bytes = b""
  result: int = 0
  errno: int = 0


@dataclass(slots=True, kw_only=True)
class Mmap(Event):
  """A mapping; `address` is where it is."""
  TAG: ClassVar[str] = "mmap"
  fd: int
  length: int
  offset: int
  protection: int
  address: int = 0
  errno: int = 0


@dataclass(slots=True, kw_only=True)
class Munmap(Event):
  """Addresses were given back."""
  TAG: ClassVar[str] = "munmap"
  address: int
  length: int


@dataclass(slots=True, kw_only=True)
class Program(Event):
  """Code that lies in GPU memory: `image` is the hash of the object, `kernels` rows of [name, entry, kernarg bytes]."""
  TAG: ClassVar[str] = "program"
  address: int
  size: int
  name: str
  kind: str
  image: bytes
  kernels: Names = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Doorbell(Event):
  """A store to a doorbell, with what it submits: entries of the ring from `first` to `last` (the ring's own units),
  the words behind them, and the memory that they lead to, as the host left it. `signals` are the values that the host
  saw before it rang; `pointers` are the ring's read and write pointer as memory has them, where it does."""
  TAG: ClassVar[str] = "doorbell"
  address: int
  value: int
  nbytes: int
  queue: int = -1
  first: int = 0
  last: int = 0
  ring: Pieces = field(default_factory=list)
  pieces: Pieces = field(default_factory=list)
  memory: Chunks = field(default_factory=list)
  touched: list[int] = field(default_factory=list)
  signals: Words = field(default_factory=list)
  pointers: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Seen(Event):
  """Contents that the device has left behind, when the program had waited for it. They need not be stored."""
  TAG: ClassVar[str] = "seen"
  memory: Chunks
  signals: Words = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Waited(Event):
  """The program waited: whether what it waited for came."""
  TAG: ClassVar[str] = "waited"
  met: bool
  ns: int


# ---- CUDA's driver and runtime, called by a program

@dataclass(slots=True, kw_only=True)
class Call(Event):
  """A function of libcuda or libcudart was called. `arguments` are in the order of its declaration, a struct by value
  its first 8 bytes; `inner` is what pointers lead to (by which argument), where the declaration says how much: behind
  the call what it gives, before it what is const. `depth` counts the calls of the program that it is within: the
  runtime's call the driver's, which come first."""
  TAG: ClassVar[str] = "call"
  symbol: str
  arguments: list[int]
  result: int
  depth: int = 0
  inner: Pieces = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Buffer(Event):
  """Memory of a CUDA program came, or it is `gone`."""
  TAG: ClassVar[str] = "buffer"
  address: int
  size: int
  kind: str
  gpu: int
  gone: bool = False


@dataclass(slots=True, kw_only=True)
class Stream(Event):
  """A stream was used first, or a branch of a graph that was launched into it. `queue` is its number."""
  TAG: ClassVar[str] = "stream"
  queue: int
  name: str
  gpu: int
  handle: int


@dataclass(slots=True, kw_only=True)
class Function(Event):
  """The parameters of a kernel, by its entry: their names, offsets and bytes."""
  TAG: ClassVar[str] = "function"
  entry: int
  parameters: Names


@dataclass(slots=True, kw_only=True)
class Work(Doorbell):
  """A call has put work into a stream: entry `last` of its `queue`, which counts to `value` at `address` when it is
  done. `node` is one of CU_GRAPH_NODE_TYPE_*, `call` who queued it. It comes after what is in the queue before it, and
  after the work that `after` names. `reads` and `writes` are all of its accesses but a kernel's, whose parameters are
  its one piece, as they lie in memory; `handle` is an event's."""
  TAG: ClassVar[str] = "work"
  node: int
  what: str
  call: str
  after: Pairs = field(default_factory=list)
  reads: Pairs = field(default_factory=list)
  writes: Pairs = field(default_factory=list)
  entry: int = 0
  grid: list[int] = field(default_factory=list)
  block: list[int] = field(default_factory=list)
  shared: int = 0
  handle: int = 0
  orders: Orders = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Ran(Event):
  """Work has ended: entry `value` of its queue. `memory` are contents that it has changed, stored where the host has
  made them. `accesses` are rows of [GPU address, bytes, how: 1 it was read, 2 written, 3 both by atomics alone], where
  all of them are known. They come in an order in which the work may run."""
  TAG: ClassVar[str] = "ran"
  queue: int
  value: int
  memory: Chunks = field(default_factory=list)
  accesses: Words = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Note(Event):
  """A line of somebody: `kind` says of whom ("fault", "log", "test", "end", "recorder")."""
  TAG: ClassVar[str] = "note"
  kind: str
  text: str


_ROWS: dict[str, tuple[type, ...]] = {"Chunks": (int, int, int, bytes), "Pieces": (int, bytes),
                                     "Words": (int, int, int), "Pairs": (int, int), "Orders": (int, int, int, int),
                                     "Names": (str, int, int)}
_INT: Final = {int}
_PLAIN: dict[str, type] = {"int": int, "str": str, "bytes": bytes, "bool": bool}


def _fits(value: object, kind: str) -> bool:
  """Whether a value of a file is of the declared type. Numbers are what 64 bits hold, with or without a sign."""
  if kind in _PLAIN: return type(value) is _PLAIN[kind]
  if not isinstance(value, list): return False
  if kind == "list[int]": return set(map(type, value)) <= _INT
  types = _ROWS[kind]
  for row in value:
    if type(row) is not list or tuple(map(type, row)) != types: return False
  return True


KINDS: dict[str, type[Event]] = {
  cls.TAG: cls for cls in (Open, File, Close, Ioctl, Mmap, Munmap, Program, Doorbell, Seen, Waited, Note, Call,
                               Buffer, Stream, Function, Work, Ran)}
_NAMES: dict[type[Event], dict[str, str]] = {cls: {f.name: str(f.type) for f in fields(cls)} for cls in KINDS.values()}
_VALUES: dict[type[Event], Callable[[Any], tuple[Any, ...]]] = {
  cls: attrgetter(*names) for cls, names in _NAMES.items()}
_LEAST: dict[type[Event], int] = {  # values that a row must have: those behind have their defaults
  cls: max((n for n, f in enumerate(fields(cls), 1) if f.default is MISSING and f.default_factory is MISSING),
           default=0) for cls in KINDS.values()}



def _maker(cls: type[Event]) -> Callable[[list[Any]], Any]:
  """Makes an event of the values of all fields, where each is of its field's type; else None. Written out, for captures
  have many."""
  kinds = _NAMES[cls]
  lines = ["def made(values):", f"  if len(values) != {len(kinds)}: return None",
           f"  {', '.join(kinds)}{',' * (len(kinds) == 1)} = values"]
  wrong = " or ".join(f"type({n}) is not {k if k in _PLAIN else 'list'}" for n, k in kinds.items())
  lines.append(f"  if {wrong}: return None")
  for name, kind in kinds.items():
    if kind in _PLAIN: continue
    lines.append(f"  for row in {name}:")
    if kind == "list[int]": lines.append("    if type(row) is not int: return None")
    else:
      types = _ROWS[kind]
      odd = " or ".join(f"type(row[{n}]) is not {t.__name__}" for n, t in enumerate(types))
      lines.append(f"    if type(row) is not list or len(row) != {len(types)} or {odd}: return None")
  lines += ["  event = new(cls)", *(f"  event.{n} = {n}" for n in kinds), "  return event"]
  space: dict[str, Any] = {"cls": cls, "new": object.__new__}
  exec(compile("\n".join(lines), f"<event {cls.TAG}>", "exec"), space)
  found: Callable[[list[Any]], Any] = space["made"]
  return found


_MAKERS: dict[type[Event], Callable[[list[Any]], Any]] = {cls: _maker(cls) for cls in KINDS.values()}
_TYPES: dict[type[Event], tuple[type, ...]] = {
  cls: tuple(_PLAIN.get(kind, list) for kind in names.values()) for cls, names in _NAMES.items()}
_LISTS: dict[type[Event], tuple[tuple[int, str], ...]] = {  # where lists are, whose rows want a look
  cls: tuple((at, kind) for at, kind in enumerate(names.values()) if kind not in _PLAIN)
  for cls, names in _NAMES.items()}


def parsed(rows: Iterator[list[Any]]) -> Iterator[Event]:
  """Events of rows. Raises DecodeError for one of a kind that is not known."""
  for row in rows:
    cls = KINDS.get(tag) if isinstance(tag := row[0], str) else None
    if cls is None: raise DecodeError(f"an event of kind {tag!r} is not known", where="capture")
    yield cls.from_row(row[1:])
