"""What stands behind the driver API: cards with their memory, contexts, and the record.

All cards share one address space (unified addressing). Turns, clock and lock are those of `mock.running`; streams are
what takes turns.
"""

from __future__ import annotations

import itertools
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import Error, Interrupted, MachineFault, PageFault, WatchdogExpired
from tinyhw.core.memory import AddressSpace, Allocator, Backing, Region
from tinyhw.core.printf import FIFO
from tinyhw.core.timeout import Agreed
from tinyhw.mock.cuda.broken import strike
from tinyhw.mock.cuda.calls import Failed, invalid
from tinyhw.mock.cuda.streams.parameters import Parameters
from tinyhw.mock.cuda.streams.picture import Picture, take
from tinyhw.mock.cuda.watching import Pieces, Watch
from tinyhw.mock.draws import Draws
from tinyhw.mock.injected import Fault, Injected
from tinyhw.mock.memory import UserMemory
from tinyhw.mock.nv.card import Card, cards_named
from tinyhw.mock.running import WATCHDOG, Running

if TYPE_CHECKING:
  from tinyhw.emulator.observe import Observer
  from tinyhw.mock.cuda.graphs.works import Reserved
  from tinyhw.mock.cuda.memory.interprocess import Opened
  from tinyhw.mock.cuda.memory.managed import Hints
  from tinyhw.mock.cuda.memory.pools import Pool
  from tinyhw.mock.cuda.memory.virtual import Addresses
  from tinyhw.mock.cuda.streams.streams import Stream

FIRST_ADDRESS: Final = 0x7_0000_0000
ADDRESSES: Final = 1 << 46
FIRST_HANDLE: Final = 0x5500_0000
LOGS: Final = 100  # lines that are kept
FREED: Final = 1024  # pieces of memory that were given back, which are remembered
LIMITS: Final = {cuda.CU_LIMIT_STACK_SIZE: 1024, cuda.CU_LIMIT_PRINTF_FIFO_SIZE: FIFO,
                 cuda.CU_LIMIT_MALLOC_HEAP_SIZE: 8 << 20,
                 cuda.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT: 2048}  # of a context, as it is made


@dataclass(eq=False)
class Piece:
  """Allocated memory: `kind` is one of CU_MEMORYTYPE_*; `host` says whether the client may touch it by its address."""

  address: int
  size: int
  kind: int
  gpu: Gpu | None
  context: Context | None
  backing: Backing
  offset: int = 0
  managed: bool = False
  mapped: bool = False  # by cuMemMap, and unmapped alone
  opaque: bool = False  # an array's, or what a texture object stands for
  hints: Hints | None = None  # what a program has said of managed memory
  pool: Pool | None = None
  reserved: Reserved | None = None  # the graph's addresses that it has
  opened: Opened | None = None  # memory of another process, by a handle
  flags: int | None = None  # of pinned memory that the driver allocated
  ends: str = "cuMemFree"  # the call that gives it back; none for what goes with an array, a texture or a module

  @property
  def device(self) -> int:
    """The card that it is of; of the host's memory, the one that was current."""
    if self.gpu is not None: return self.gpu.index
    assert self.context is not None
    return self.context.gpu.index

  @property
  def host(self) -> bool:
    return self.kind == cuda.CU_MEMORYTYPE_HOST or self.managed


@dataclass(frozen=True)
class Freed:
  """Memory that was given back: by which function and thread, in which call of the client's."""

  address: int
  size: int
  name: str
  by: str
  call: int


class Gpu:
  """One card: video memory."""

  def __init__(self, machine: CudaMachine, card: Card, index: int, vram: int) -> None:
    self.machine, self.card, self.index = machine, card, index
    self.vram = Region(f"CUDA{index}.vram", vram)
    self.allocator = Allocator(0, vram, name=f"CUDA{index} video memory")
    self.primary: Context | None = None
    self.retained = 0
    self.primary_flags = 0
    self.default_pool: Pool | None = None
    self.pool: Pool | None = None  # which a program has chosen in its place
    self.graph_bytes = self.graph_most = 0  # of graphs' own memory: now, and the most that there were
    self.kernels_ns = self.copies_ns = 0  # of the machine's clock: in kernels; in copies and fills
    self.looked = (0, 0, 0)  # the clock and these two, when NVML was asked last


@dataclass(eq=False)
class Context:
  """A context. `error` is what a launch has left: each call fails with it until the context is gone."""

  machine: CudaMachine
  gpu: Gpu
  flags: int = 0
  handle: int = 0
  error: int = 0
  alive: bool = True
  streams: list[Stream] = field(default_factory=list)
  peers: set[Gpu] = field(default_factory=set)
  limits: dict[int, int] = field(default_factory=LIMITS.copy)  # by CU_LIMIT_*
  heap: Piece | None = None  # of malloc in kernels
  attached: int = 1  # how often cuCtxDetach is called until it goes

  def check(self) -> None:
    """Raises Failed with the error that a launch has left."""
    if error := self.error or self.machine.lost.get(self.gpu.index, 0):
      raise Failed(error)  # the log has told why


class CudaMachine(Running):
  """See the module. `cards` is "sm_90,sm_90" or a sequence of names; the rest is as for `mock.amd.machine.Machine`."""

  def __init__(self, cards: str | Sequence[str] = "sm_90", *, seed: int = 0, vram: int | None = None,
               watchdog: int = WATCHDOG, engine: str = "auto", observer: Observer | None = None,
               agreed: Agreed | None = None, draws: Draws | None = None, injected: Injected | None = None) -> None:
    super().__init__(seed=seed, tracing=False, clock=None, watchdog=watchdog, engine=engine, observer=observer,
                     agreed=agreed, draws=draws, injected=injected)
    self.ready = self.closed = False
    self._process = os.getpid()
    self.calls = 0  # that clients have made
    self.space = AddressSpace("CUDA")
    self.addresses = Allocator(FIRST_ADDRESS, ADDRESSES, name="addresses of CUDA")
    self.user = UserMemory()
    self.parameters = Parameters(self.space, self.addresses)
    self.gpus = [Gpu(self, card, i, vram if vram is not None else card.vram_size)
                 for i, card in enumerate(cards_named(cards))]
    self.watch: Watch | None = None
    self.pieces = Pieces(self)
    self.streams: list[Stream] = []
    self.runners = self.streams
    self.handles: dict[int, Any] = {}
    self.reserved: dict[int, Reserved] = {}  # addresses of graphs' own memory
    self.virtual: dict[int, Addresses] = {}  # what cuMemAddressReserve gave out
    self._captures = itertools.count(1)
    self._numbers = itertools.count(FIRST_HANDLE, 16)
    self._local = threading.local()
    self.interprocess = False  # whether other processes may change memory or events
    self.on_host = 0  # functions of the host that have not returned yet
    self.logs: list[str] = []  # of the driver
    self.refused: list[str] = []  # of those what a program did wrong, or what failed of it
    self.calling = ""  # the function that the client has called last
    self.freed: deque[Freed] = deque(maxlen=FREED)
    self.lost: dict[int, int] = {}  # what calls answer of cards that are gone, by index
    self.picture: Picture | None = None  # of the last time that nobody got on
    self.texts: dict[str, Any] = {}  # what cuGetErrorString and others give out for good
    self.when_stopped: Callable[[int], None] | None = None
    self.when_closed: Callable[[CudaMachine], None] = lambda machine: None
    self.address_of: Callable[[str], int] = lambda symbol: 0  # a symbol of the library

  def other_threads(self) -> bool: return self.on_host > 0 or self.interprocess or super().other_threads()

  # ---- going on by itself

  def go_on_after(self, silence_s: float) -> None:
    """Have a thread do what is queued when the client has made no call for so long. A program may wait in its own way
    for a host function, or for memory that a kernel writes."""
    threading.Thread(target=self._go_on, args=(silence_s,), name="tinyhw mock CUDA", daemon=True).start()

  def _go_on(self, silence_s: float) -> None:
    while not self.closed:
      calls = self.calls
      time.sleep(silence_s)
      if self.calls == calls and not self._attended(0): self.run(self._silent, 0.0)

  def _attended(self, others: int) -> bool:
    """Whether a client that waits runs the queues itself, beside so many `others`, and no function of the host is in
    its way."""
    return self.inside > others and not self.on_host

  def _silent(self) -> bool:
    """Whether nothing is queued any more, or others see to it."""
    return self.closed or self._attended(1) or not any(stream.queue for stream in self.streams)

  # ---- the client's memory

  def out(self, pointer: int, form: str, *values: Any) -> None:
    """Store results where the client wants them."""
    self.give(pointer, struct.pack("<" + form, *values))

  def give(self, pointer: int, result: bytes) -> None:
    """Store the bytes of a result."""
    if not pointer:
      raise invalid("a pointer for a result is null")
    self.user.write(pointer, result)

  def get(self, pointer: int, form: str) -> tuple[Any, ...]:
    """Read what the client points to."""
    if not pointer:
      raise invalid("a pointer is null")
    try: size = struct.calcsize("<" + form)
    except struct.error: raise invalid(f"{form}: more than there are addresses") from None
    return struct.unpack("<" + form, self.user.read(pointer, size))

  def text(self, pointer: int, most: int = 1 << 26) -> bytes:
    """A string of the client."""
    if not pointer:
      raise invalid("a string is null")
    found, at = bytearray(), pointer
    while len(found) < most:
      part = self.user.read(at, min(4096 - at % 4096, most - len(found)))  # to the end of a page that is there
      if (end := part.find(b"\0")) >= 0:
        return bytes(found + part[:end])
      found += part
      at += len(part)
    raise invalid("a string without an end")

  def name(self, pointer: int) -> str:
    """A string of the client that names something; bytes that are no UTF-8 stay apart, as in names of files."""
    return os.fsdecode(self.text(pointer))

  # ---- handles

  def new(self, thing: Any) -> int:
    """A handle for a new object."""
    handle = next(self._numbers)
    self.handles[handle] = thing
    return handle

  def find(self, handle: int, kind: type, code: int = cuda.CUDA_ERROR_INVALID_HANDLE) -> Any:
    """The object of a handle."""
    found = self.handles.get(handle)
    if not isinstance(found, kind):
      raise Failed(code, f"{handle:#x} is no {kind.__name__.lower()}")
    return found

  def counted(self) -> int:
    """A number for a new capture."""
    return next(self._captures)

  def exchange_capture_mode(self, mode: int) -> int:
    """Note a capture mode of the calling thread; the one that it had."""
    found = int(getattr(self._local, "capture_mode", cuda.CU_STREAM_CAPTURE_MODE_GLOBAL))
    self._local.capture_mode = mode
    return found

  # ---- contexts

  @property
  def stack(self) -> list[Context]:
    """The contexts of the calling thread, the current one last."""
    found: list[Context] | None = getattr(self._local, "stack", None)
    if found is None:
      found = self._local.stack = []
    return found

  def context(self) -> Context:
    """The current context of the calling thread."""
    stack = self.stack
    if not stack:
      raise Failed(cuda.CUDA_ERROR_INVALID_CONTEXT, "no context is current to the thread")
    if not stack[-1].alive:
      raise Failed(cuda.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context was destroyed")
    return stack[-1]

  def working(self) -> Context:
    """The current context, which has not failed."""
    context = self.context()
    context.check()
    return context

  @contextmanager
  def own_default(self) -> Iterator[None]:
    """Within it the calling thread's stream 0 is its own default one: functions whose names end in _ptsz and _ptds."""
    before = self.has_own_default
    self._local.own = True
    try: yield
    finally: self._local.own = before

  @property
  def has_own_default(self) -> bool:
    """Whether that is so now."""
    return bool(getattr(self._local, "own", False))

  def of_thread(self, context: Context) -> Stream | None:
    """The calling thread's default stream of a context."""
    found: Stream | None = getattr(self._local, "streams", {}).get(context)
    return found

  def keep_for_thread(self, context: Context, stream: Stream) -> Stream:
    """Note the calling thread's default stream."""
    if not hasattr(self._local, "streams"):
      self._local.streams = {}
    self._local.streams[context] = stream
    return stream

  def gpu(self, ordinal: int) -> Gpu:
    """A card by its number."""
    if not 0 <= ordinal < len(self.gpus):
      raise Failed(cuda.CUDA_ERROR_INVALID_DEVICE, f"no device {ordinal}")
    return self.gpus[ordinal]

  # ---- the record

  def trace_call(self, symbol: str, arguments: tuple[Any, ...]) -> None:
    """Note a call."""
    self.calls += 1
    self.calling = symbol
    if self.trace.enabled:
      self.trace.add("CUDA", "call", f"{symbol}({', '.join(map(str, arguments))})")

  def log(self, symbol: str, result: str, why: str, known: bool = False) -> None:
    """Add a line to the driver's log, and to what went wrong, unless that is `known` from elsewhere or no mistake."""
    line = f"[CUDA][E] {symbol}: {result}: {why}"
    for lines in (self.logs,) if known else (self.logs, self.refused):
      lines.append(line)
      del lines[:-LOGS]

  def told(self, symbol: str, code: int, why: str, question: bool = False) -> None:
    """Note why a call failed: the log that cuLogsDumpToMemory shows."""
    if why: self.log(symbol, cuda.RESULTS[code], why, question or code == cuda.CUDA_ERROR_NOT_SUPPORTED)
    if code == cuda.CUDA_ERROR_NOT_SUPPORTED:
      self.doubt(f"{symbol}: {why}")

  def taken_off(self, stream: Stream, why: Interrupted) -> None:
    """A launch was ended from outside."""
    self.stops += 1
    self.doubt(f"{stream.name}: {why}")
    if stream.terms is not None:
      stream.terms.interrupted = why
    elif self.when_stopped is not None:
      self.when_stopped(stream.context.gpu.index)

  def context_failed(self, stream: Stream, code: int, error: Error) -> None:
    """A launch did what the chip refuses: its context is lost."""
    context = stream.context
    if isinstance(error, PageFault | WatchdogExpired): self.pictured(stream, error)
    context.error = context.error or code
    for other in context.streams:
      other.drop()
    self.failures += 1
    self.log(stream.name, cuda.RESULTS[code], str(error))
    fields = {k: v for k in ("instruction", "address", "access", "lane", "wave", "line")
              if (v := getattr(error, k, None)) is not None}
    self.trace.add(stream.name, "fault", f"{type(error).__name__}: {error}", **fields)
    with self.lock:
      self.changed.notify_all()

  def pictured(self, stream: Stream | None = None, error: MachineFault | None = None) -> None:
    """Keep who waits for whom, for who asks why nobody gets on."""
    with self.lock: self.picture = take(self, stream, error)

  def piece_at(self, address: int) -> Piece | None:
    """The allocation that an address is in."""
    found = self.pieces.at(address)
    return None if found is None or found.opaque else found

  def gone(self, piece: Piece, name: str) -> None:
    """Remember memory that is given back."""
    thread = threading.current_thread().name
    self.freed.append(Freed(piece.address, piece.size, name, f"{self.calling} of thread {thread}", self.calls))

  def strike(self, runner: Stream, fault: Fault) -> None:
    """Have a fault that is declared happen."""
    with self.lock: strike(runner, fault)

  def was(self, address: int) -> list[str]:
    """The memory that was last at an address, and who gave it back, the latest first."""
    return [f"{address:#x} was in {f.name}, {f.size:,} bytes at {f.address:#x}, [{address - f.address:#x}], given back "
            f"by {f.by} in call {f.call} of {self.calls}"
            for f in reversed(self.freed) if f.address <= address < f.address + f.size][:2]

  def report(self) -> list[str]:
    """What was doubtful or refused; a line each."""
    return self.noted()

  def snapshot(self) -> dict[str, Any]:
    """The state of all streams as plain values, for `diff`."""
    return {"queues": {s.name: s.snapshot() for s in self.streams}, "clock": self.clock.now_ns()}

  def close(self) -> None:
    """The process ends: all memory goes. In a child of fork nothing does: it is its parent's."""
    self.closed = True
    self.when_closed(self)
    if os.getpid() != self._process: return
    with self.lock:
      for stream in self.streams:
        stream.drop()
      self.streams.clear()
      self.handles.clear()
      for gpu in self.gpus:
        gpu.vram.close()
      self.user.close()


