"""Work of CUDA's streams as packets: a class for each kind of graph node, which streams hold too, and what one does.

    KERNEL(function=saxpy, grid=4,1,1, block=256,1,1, x=0x700000000, y=0x700001000, a=0x40000000, n=0x400)

A stream is a queue whose packets are done one after the other. Each counts up the stream's timeline, as a semaphore
would; what comes behind work of another stream waits for that one's.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import DecodeError
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.events import Work
from tinyhw.queues.world import Item, Launch

TIMELINES: Final = 1 << 60  # where streams' timelines are, in the place of addresses: no memory is there
PROGRAMS: Final = 1 << 61   # and kernels
ARGUMENTS: Final = 1 << 62  # and the parameters of the launch that is looked at
STEP: Final = 1 << 12
WAITS: Final = ("circular >=", "==", "&", "nor")  # CU_STREAM_WAIT_VALUE_GEQ, EQ, AND, NOR
_PREFIX: Final = "CU_GRAPH_NODE_TYPE_"


def timeline(queue: int) -> int:
  """The address of a queue's timeline."""
  return TIMELINES + STEP * queue


@dataclass(frozen=True)
class StreamWork:
  """A piece of work; its class is its kind. `fields` are what it says, those named in `addresses` are of memory."""
  NODE: ClassVar[int] = -1
  fields: dict[str, Any] = field(default_factory=dict)
  addresses: tuple[str, ...] = ()

  def items(self) -> Iterator[tuple[str, Any]]:
    """(name, value), each."""
    return iter(self.fields.items())

  def to_dict(self) -> dict[str, Any]:
    """As plain values."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in self.fields.items()}

  def __str__(self) -> str:
    return f"{type(self).__name__}({', '.join(f'{k}={show(v)}' for k, v in self.fields.items())})"


def show(value: Any) -> str:
  """A field's value."""
  return hex(value) if isinstance(value, int) else ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


KINDS: Final[dict[int, type[StreamWork]]] = {
  value: type(name.removeprefix(_PREFIX), (StreamWork,), {"NODE": value, "__doc__": name})
  for name, value in vars(cuda).items() if name.startswith(_PREFIX)}


def kind_of(event: Work) -> type[StreamWork]:
  """The class of work. Raises DecodeError."""
  if event.node not in KINDS: raise DecodeError(f"work of kind {event.node} is not known", where="capture")
  return KINDS[event.node]


@dataclass(slots=True)
class CudaFollow:
  """One piece of work, as an engine's packet (`world.Follow`)."""
  items: list[Item] = field(default_factory=list)
  launches: list[Launch] = field(default_factory=list)
  roots: list[tuple[int, int]] = field(default_factory=list)
  pieces: list[tuple[int, bytes]] = field(default_factory=list)


def effects(event: Work, known: Any) -> list[Effect]:
  """What work does to the timelines and, as far as `known` (a world) has it, to memory."""
  found = [Effect(Does.WAIT, timeline(queue), 8, value, ">=") for queue, value in event.after if queue != event.queue]
  found += [Effect(Does.WAIT, at, size, value, WAITS[how]) for at, size, value, how in event.orders if how >= 0]
  if event.entry: found.append(Effect(Does.LAUNCH))
  for does, rows in ((Does.READ, event.reads), (Does.WRITE, event.writes)):
    found += [Effect(does, address, size) for address, size in rows if known.names(address)]
  found += [Effect(Does.SIGNAL, at, size, value) for at, size, value, how in event.orders if how < 0]
  return [*found, Effect(Does.SIGNAL, event.address, 8, event.value)]


def packet(event: Work, kernel: str, parameters: list[list[Any]], found: Any) -> StreamWork:
  """Work with its fields by name; `found` says whether a value is an address of memory."""
  fields: dict[str, Any] = {}
  addresses: list[str] = []
  arguments = bytes(event.pieces[0][1]) if event.pieces else b""
  def address(name: str, value: int) -> None:
    fields[name] = value
    addresses.append(name)
  if event.entry:
    fields |= {"function": kernel or hex(event.entry), "grid": tuple(event.grid), "block": tuple(event.block)}
    if event.shared: fields["sharedMemBytes"] = event.shared
    for name, offset, size in parameters:
      if size <= 8: value: Any = int.from_bytes(arguments[offset:offset + size], "little")
      else: value = arguments[offset:offset + size].hex()
      if size == 8 and found(value): address(name, value)
      else: fields[name] = value
  else:
    if event.writes: address("dst", event.writes[0][0])
    if event.reads: address("src", event.reads[0][0])
    rows = event.writes or event.reads
    if rows: fields["bytes"] = sum(size for _, size in rows)
    if len(rows) > 1: fields["rows"] = len(rows)
    if event.handle: fields["event"] = event.handle
    for at, size, value, how in event.orders:
      address("address", at)
      fields |= {"bytes": size, "value": value, **({"wait": WAITS[how]} if how >= 0 else {})}
    if not fields: fields["what"] = event.what
  fields["call"] = event.call
  return kind_of(event)(fields, tuple(addresses))
