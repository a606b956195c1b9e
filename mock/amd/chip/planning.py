"""Packets of a compute queue that come again: decoded and checked once, recognized by their words.

Three things are remembered, each with more of a submission at once: single packets by their words or by their shape
(`_steps`, `_shapes`), whole submissions as plans (`plans.py`), and plans that are one call of native code with all
their dispatches (`onecall.py`). Each does what the one before it would do, and leaves it all else.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.arch import arch
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.core.kept import Kept
from tinyhw.core.layout import Packet
from tinyhw.core.table import Handlers
from tinyhw.mock.amd.chip.compute import Shader, dispatch_again, run_dispatch
from tinyhw.mock.amd.chip.dispatching import Dispatching
from tinyhw.mock.amd.chip.onecall import OneCall, call_for
from tinyhw.mock.amd.chip.plans import (
  Await,
  Dispatch,
  Harmless,
  Nothing,
  Part,
  Plan,
  Quick,
  Registers,
  Release,
  Size,
  UserData,
  nothing,
  planned,
)
from tinyhw.mock.amd.chip.queue import Frame, Properties, State
from tinyhw.mock.amd.chip.registers import USER_DATA, USER_DATA_COUNT, registers_of
from tinyhw.wire import pm4 as wire

if TYPE_CHECKING:
  from tinyhw.emulator.engines.amdgcn import Repeated
  from tinyhw.mock.amd.driver.process import KfdProcess, ProcessDevice

_DATA: Final = pm4.RELEASE_MEM_data_sel
_INT: Final = pm4.RELEASE_MEM_int_sel
_WHOLE: Final = int(_DATA.send_64_bit_data)
_SILENT: Final = int(_INT.none), int(_INT.send_data_and_write_confirm)
_SET_SH_REG: Final = pm4.SET_SH_REG.OP << 8
_RELEASE_MEM: Final = pm4.RELEASE_MEM.OP << 8
_WAIT_REG_MEM: Final = pm4.WAIT_REG_MEM.OP << 8
_RELEASE_WORDS, _WAIT_WORDS = pm4.RELEASE_MEM.DWORDS + 1, pm4.WAIT_REG_MEM.DWORDS + 1
_AT_LEAST: Final = pm4.WAIT_REG_MEM_function.greater_than_or_equal_reference_value
_LONE_NOP: Final = wire.NOP_HEADER_ONLY << 16 | pm4.NOP.OP << 8  # the one packet whose count is not a length

ACQUIRED: Final = "PM4 packet", "ACQUIRE_MEM", "no caches are modelled"
# Words that are a packet's shape.
_DECIDING: Final = {_SET_SH_REG: (0, 1), _RELEASE_MEM: (0, 1, 2, 3, 4, 7), _WAIT_REG_MEM: (0, 1, 2, 3, 5, 6)}
PLANNED_WORDS: Final = 512  # of a submission that is remembered as a whole
FORMS: Final = 64  # of submissions of one length
PLANS: Final = 256  # submissions of one length and form
SOON: Final = 4  # times that a plan is followed before it is made one call
PACKETS: Final = 16384  # decoded, that a queue keeps
CALLS: Final = 256  # the same
DISPATCHES: Final = 256


Places = tuple[int, ...]  # of words
Deciding = Callable[[list[int]], Any]  # gives the words at such places
Handler = Callable[[Any, Any], None]
Step = tuple[Handler, Any, int]  # what runs, its argument, dwords
Shaped = tuple[Quick, Part | None]


class Planning(Dispatching):
  """A queue of PM4 packets: what it remembers of them, and what dispatches go by."""

  packets_table: ClassVar[Handlers[type[Packet]]]

  def __init__(
    self, process: KfdProcess, device: ProcessDevice, queue_id: int, properties: Properties, doorbell: int
  ) -> None:
    super().__init__(process, device, queue_id, properties, doorbell)
    self.known, self.processor = registers_of(self.gpu.card.name), arch(self.gpu.card.name)
    self.cores = self.share(self.gpu.card.xccs)
    # Whether end-of-pipe events find room: "calculation only if EOP is used" (kfd_mqd_manager_v9.c), and ROCr 6.1 gives
    # a GPU of several XCCs no buffer.
    self.ends_pipes = bool(properties.eop_address) or self.processor.pm4 == "gfx9"
    # How many parts of the chip have the wave slots that COMPUTE_TMPRING_SIZE.WAVES counts.
    self.scratch_engines = self.gpu.card.shader_engines if self.processor.scratch_by_engine else self.cores
    self.registers: dict[int, int] = dict(self.known.initial)  # all but COMPUTE_USER_DATA_0 to 15
    # those, where native code finds them; every queue begins with zeros, and keeps them
    self.user_data: ctypes.Array[Any] = (ctypes.c_uint32 * USER_DATA_COUNT)()
    self.programs: Kept[tuple[int | None, ...], Shader] = Kept(DISPATCHES)
    self.repeated: Kept[tuple[Shader, Size], Repeated] = Kept(DISPATCHES)
    self.settings_version = 0  # grows with every write of a register that is not user data
    self._steps: Kept[tuple[int, ...], Step] = Kept(PACKETS)
    self._shapes: Kept[tuple[int, ...], Shaped] = Kept(PACKETS)
    self._plans: Kept[int, Kept[Places, tuple[Deciding, Kept[Any, Plan]]]] = Kept(PLANNED_WORDS)  # by length
    self._calls: Kept[tuple[Plan, Shader | None], OneCall] = Kept(CALLS)
    self.latest: OneCall | None = None  # `expected` is what followed that the last time

  def share(self, cores: int) -> int:
    """How many of the card's graphics cores (XCCs) execute its dispatches: of a PM4 queue one (kfd_mqd_manager_v9.c,
    pm4_target_xcc_in_xcp)."""
    return 1

  @abstractmethod
  def _decode(self, frame: Frame, key: tuple[int, ...], shape: tuple[int, ...] | None) -> Step:
    """Decode one packet, check what can be checked once, and remember it."""

  @abstractmethod
  def _release(self, p: pm4.RELEASE_MEM, data: int) -> None:
    """The packet with its data, which a packet of the same shape may give anew."""

  @abstractmethod
  def _wait(self, p: Any, width: int, reference: int) -> None:
    """A wait for memory or a register, with the reference that it has or that a packet of the same shape gives anew."""

  # ---- submissions that are one call

  def reconfigure(self, properties: Properties) -> None:
    self._calls.clear()
    self.latest = self.expected = None
    super().reconfigure(properties)

  def _program_now(self) -> Shader | None:
    """The program of the last dispatch, where the next one would have the same registers."""
    last = self.program
    return last[1] if last is not None and last[0][1:] == (self.space.version, self.settings_version) else None

  def _followed(self, frame: Frame) -> None:
    """A plan was followed to its end: where it is one call, that one comes after the one before it."""
    plan = frame.plan
    assert plan is not None
    if plan.parts is None or not frame.whole or plan.needs and frame.before is None:
      return
    key = plan, frame.before
    call = self._calls.standing(key)
    if call is None:
      plan.followed += 1
      if plan.followed % SOON:
        return
      call = call_for(self, plan, frame.before)
      if call is None:
        return
      self._calls.keep(key, call)
    if self.latest is not None:
      self.latest.then = call
    self.latest, self.expected = call, call.then

  def settings_of(self, program: Shader) -> dict[int, int | None] | None:
    """The registers that made a program of this queue; None of one that is not kept any more."""
    key = next((key for key, made in self.programs.items() if made is program), None)
    return None if key is None else dict(zip(self.known.settings, key[2:], strict=True))

  def go_on_from(self, at: int, end: int) -> None:
    """A call has executed what comes before the packet in [at, end), which is in execution."""
    self._told.clear()  # several doorbells may have told of it
    self._fetch()
    frame = self.frames[-1]
    frame.at, frame.whole = end, False
    self.last = frame, at

  def dispatched(self, dispatch: Dispatch) -> None:
    """Execute a dispatch, or go on with it."""
    run_dispatch(self, dispatch.size, dispatch.initiator)

  # ---- decoding

  def _step(self) -> None:
    frame = self.frames[-1]
    words, at = frame.words, frame.at
    self.last = frame, at
    if self.beside is not None:
      self._speak()
    if frame.plan is not None and (known := frame.plan.steps.get(at)) is not None:
      self._next(frame, at, known[1])
      known[0](words, at)
      return
    header = words[at]
    end = at + (header >> 16 & 0x3FFF) + 2 if header >= wire.TYPE_3 else at + 1
    if end > len(words):
      if header & 0x3FFF_FF00 == _LONE_NOP:
        end = at + 1
      else:
        return self._truncated(end - at)
    shape = self._shape(header, words, at, end)
    quick = self._shapes.get(shape) if shape is not None else None
    step: Step | None = None
    if quick is None:
      key = tuple(words[at:end])
      step = self._steps.get(key)
      if step is None:
        step = self._decode(frame, key, shape)
      end = at + step[2]
    self._next(frame, at, end)
    if frame.learning is not None:
      self._plan(frame, at, end, quick, step)
    if quick is not None:
      quick[0](words, at)
    elif step is not None:
      step[0](self, step[1])

  def _follow(self, frame: Frame, packets: int) -> int:
    machine = self.machine
    if frame.plan is None or self.beside is not None or machine.trace.enabled:
      self._step()
      return packets - 1
    words, ways = frame.words, frame.plan.ways
    end = len(words)
    while True:
      way = ways.get(frame.at)
      if way is None or way[1] > packets:  # a packet has changed what follows it, or there is no time for all of them
        self._step()
        return packets - 1
      before, count, run, at, frame.at = way
      packets -= count
      self.packets += count
      machine.clock.advance(count * machine.packet_ns)
      for quick, place in before:
        quick(words, place)
      self.last = frame, at
      blocked = run(words, at)
      if frame.at == end:
        self._followed(frame)
        return packets
      if blocked or not packets:
        return packets

  def _next(self, frame: Frame, at: int, end: int) -> None:
    """The packet in [at, end) of a frame begins."""
    frame.at = end
    self.packets += 1
    machine = self.machine
    machine.clock.advance(machine.packet_ns)
    if machine.trace.enabled:
      machine.trace.add(self.name, "packet", self._text(frame.words[at:end]), address=frame.address + at * 4)

  def _frame(self, words: list[int], address: int) -> Frame:
    known = self._plans.get(len(words))
    if known is not None:
      for decides, plans in known.values():
        plan = plans.get(decides(words))
        if plan is not None:
          return Frame(words, address, 0, plan, None, self._program_now() if plan.needs else None)
    return Frame(words, address, 0, None, [] if 1 < len(words) <= PLANNED_WORDS else None)

  def _plan(self, frame: Frame, at: int, end: int, quick: Shaped | None, step: Step | None) -> None:
    """Note a packet of a submission. A whole one is recognized when it comes again: all its words are the same, but for
    those that packets of known shapes take as data."""
    learning = frame.learning
    assert learning is not None
    if quick is not None:
      opcode = frame.words[at] & 0xFF00
      learning.append((at, end, quick[0], tuple(at + k for k in _DECIDING[opcode]), quick[1]))
    elif step is not None:
      handler, argument, _ = step
      learning.append((at, end, self._quickly(handler, argument), tuple(range(at, end)),
                       self._part(handler, argument)))
    if end != len(frame.words):
      return
    frame.learning = None
    if sum(row[1] - row[0] for row in learning) != end:
      return  # some were skipped, or came twice
    places = tuple(k for row in learning for k in row[3])
    forms = self._plans.made(end, lambda: Kept(FORMS))
    decides, plans = forms.made(places, lambda: (itemgetter(*places), Kept(PLANS)))
    plans.keep(decides(frame.words), planned(learning, frame.words, self.known.settings))

  def _quickly(self, handler: Handler, argument: Any) -> Quick:
    """What executes a packet that has been executed once, as it did then."""
    part = self._part(handler, argument)
    if isinstance(argument, pm4.DISPATCH_DIRECT):
      size = argument.dim_x, argument.dim_y, argument.dim_z
      return partial(dispatch_again, self, size, argument.dispatch_initiator)
    if isinstance(part, Nothing):
      return nothing if part.counted is None else Harmless(
        partial(self._counted_again, self.machine.ignored.counts, part.counted))

    def run(words: list[int], at: int) -> bool:
      handler(self, argument)
      return True

    return run

  @staticmethod
  def _shape(header: int, words: list[int], at: int, end: int) -> tuple[int, ...] | None:
    """What two packets share that differ in their data only: the value of a RELEASE_MEM, the user data of a
    SET_SH_REG, the reference of a WAIT_REG_MEM.

    Nearly every submission has new ones; a packet of a known shape needs no second decoding.
    """
    opcode = header & 0xFF00
    if opcode == _SET_SH_REG and end - at > 1:
      return header, words[at + 1]
    if opcode == _RELEASE_MEM and end - at == _RELEASE_WORDS:
      return header, words[at + 1], words[at + 2], words[at + 3], words[at + 4], words[at + 7]
    if opcode == _WAIT_REG_MEM and end - at == _WAIT_WORDS:
      return header, words[at + 1], words[at + 2], words[at + 3], words[at + 5], words[at + 6]
    return None

  def _part(self, handler: Handler, argument: Any) -> Part | None:
    """What a packet does, where that is so simple that it can be part of one call."""
    if self.beside is not None or self.device.chip is not None:
      return None
    if isinstance(argument, pm4.DISPATCH_DIRECT):
      return Dispatch((argument.dim_x, argument.dim_y, argument.dim_z), argument.dispatch_initiator)
    if getattr(argument, "OP", -1) == pm4.ACQUIRE_MEM.OP:
      return Nothing(ACQUIRED)
    if handler is Planning.ignore:
      return Nothing(argument)
    if isinstance(argument, pm4.NOP) or getattr(argument, "OP", -1) == pm4.EVENT_WRITE.OP and (
      argument.event_type != pm4.VGT_EVENT_TYPE.CS_PARTIAL_FLUSH
      or argument.event_index == pm4.EVENT_WRITE_event_index.cs_partial_flush
    ):
      return Nothing()
    if handler is self.packets_table.get(pm4.SET_SH_REG) and not any(
        0 <= offset - USER_DATA < USER_DATA_COUNT for offset, _, _ in argument):
      return Registers(argument)
    return None

  def _learn(self, shape: tuple[int, ...], packet: Packet) -> None:
    """Remember how packets of this shape run."""
    made: Any = packet
    if made.OP == pm4.RELEASE_MEM.OP:
      self._shapes.keep(shape, self._released_again(made))
    elif made.OP == pm4.WAIT_REG_MEM.OP:
      if made.mem_space and made.operation == pm4.WAIT_REG_MEM_operation.wait_reg_mem:
        self._shapes.keep(shape, self._waits_again(made))
    elif made.OP == pm4.SET_SH_REG.OP:
      first, count = pm4.SET_SH_REG_START + made.reg_offset, len(made.payload)
      if USER_DATA <= first and first + count <= USER_DATA + USER_DATA_COUNT:
        first -= USER_DATA
        quick = Harmless(partial(self._user_data_again, self.user_data, first, count))
        self._shapes.keep(shape, (quick, UserData(first, count) if self.beside is None else None))

  def ignore(self, what: tuple[str, str, str]) -> None:
    """A packet that has no effect here."""
    self.machine.ignored.note(*what)

  @staticmethod
  def _counted_again(counts: Counter[tuple[str, str, str]], what: tuple[str, str, str], words: list[int],
                     at: int) -> None:
    """A packet that has none, and is counted."""
    counts[what] += 1

  @staticmethod
  def _user_data_again(user_data: ctypes.Array[Any], first: int, count: int, words: list[int], at: int) -> None:
    """A SET_SH_REG of user data."""
    user_data[first : first + count] = words[at + 2 : at + 2 + count]

  def _waits_again(self, p: pm4.WAIT_REG_MEM) -> Shaped:
    """A WAIT_REG_MEM of memory with a reference of its own."""

    def run(words: list[int], at: int) -> bool:
      self._wait(p, 4, words[at + 4])
      return self.state is State.BLOCKED

    simple = p.function == _AT_LEAST and not p.mem_poll_addr & 3 and self.beside is None and self.device.chip is None
    return run, Await(p.mem_poll_addr, p.mask) if simple else None

  def _released_again(self, p: pm4.RELEASE_MEM) -> Shaped:
    """A RELEASE_MEM with data of its own."""
    plain = p.data_sel == _WHOLE and p.int_sel in _SILENT and p.dst_sel <= 1 and not p.address & 7
    if not plain or self.beside is not None or self.device.chip is not None or not self.ends_pipes or (
        self.machine.draws is not None):

      def run(words: list[int], at: int) -> bool:
        self._release(p, words[at + 5] | words[at + 6] << 32)
        return True

      return run, None
    store, address = self.space.store, p.address
    return (lambda words, at: store(address, 8, words[at + 5] | words[at + 6] << 32)), Release(address)

