"""A copy engine (AMPERE_DMA_COPY_A to BLACKWELL_DMA_COPY_B): lines between pitch layouts, components, semaphores.

Methods and fields are those of the class headers. A launch takes the state as it is then; the copy itself goes on
beside the host engine. Names of errors are those of `dev_pbdma.ref` of GA100 (NV_PPBDMA_INTR_1_HCE_*).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tinyhw.core.errors import Error, Unsupported
from tinyhw.core.memory import Access
from tinyhw.core.table import Handlers
from tinyhw.mock.memory import spans
from tinyhw.mock.nv.chip import faults, semaphores
from tinyhw.mock.nv.chip.engine import Engine
from tinyhw.mock.nv.chip.jobs import Job, Turns
from tinyhw.mock.running import LATE, MOST_PIECES, PIECES

if TYPE_CHECKING:
  from tinyhw.mock.nv.chip.channel import Channel

BYTES_PER_NS: Final = 25  # what a copy costs on the machine's clock: a PCIe 4.0 x16 link
_LINES_A_TURN: Final = 4096
_AXES: Final = "XYZW"


class CopyEngine(Engine):
  """See the module. `number` is that of the engine, for errors."""

  KIND: ClassVar[str] = "copy"
  table: ClassVar[Handlers[str]] = Handlers("copy method")
  handles = table.handles
  state_names: ClassVar[frozenset[str]] = frozenset({
    "SET_SEMAPHORE_A", "SET_SEMAPHORE_B", "SET_SEMAPHORE_PAYLOAD", "SET_SEMAPHORE_PAYLOAD_UPPER", "SET_RENDER_ENABLE_A",
    "SET_RENDER_ENABLE_B", "SET_RENDER_ENABLE_C", "SET_SRC_PHYS_MODE", "SET_DST_PHYS_MODE", "OFFSET_IN_UPPER",
    "OFFSET_IN_LOWER", "OFFSET_OUT_UPPER", "OFFSET_OUT_LOWER", "PITCH_IN", "PITCH_OUT", "LINE_LENGTH_IN", "LINE_COUNT",
    "SET_REMAP_CONST_A", "SET_REMAP_CONST_B", "SET_REMAP_COMPONENTS", "SET_DST_BLOCK_SIZE", "SET_DST_WIDTH",
    "SET_DST_HEIGHT", "SET_DST_DEPTH", "SET_DST_LAYER", "SET_DST_ORIGIN", "SET_SRC_BLOCK_SIZE", "SET_SRC_WIDTH",
    "SET_SRC_HEIGHT", "SET_SRC_DEPTH", "SET_SRC_LAYER", "SET_SRC_ORIGIN", "SRC_ORIGIN_X", "SRC_ORIGIN_Y",
    "DST_ORIGIN_X", "DST_ORIGIN_Y"})

  def __init__(self, channel: Channel, class_id: int, number: int = 0) -> None:
    super().__init__(channel, class_id)
    self.number = number

  def refuse(self, message: str) -> Error:
    return faults.host("HCE_ILLEGAL_MTHD", message)

  def invalid(self, message: str) -> Error:
    return faults.copy(self.number, f"CE{self.number}", message)

  @handles("NOP")
  def nop(self, p: Any, copy: int) -> None:
    pass

  table.ignores("PM_TRIGGER", "PM_TRIGGER_END", why="no performance monitors are modelled")
  table.ignores("SET_MONITORED_FENCE_TYPE", "SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_UPPER",
                "SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_LOWER", why="only conditional interrupts use it: refused")

  # ---- launches

  @handles("LAUNCH_DMA")
  def launch(self, p: Any, copy: int) -> None:
    """Take the state as it is and begin."""
    m = self.module
    for name in ("SRC_TYPE", "DST_TYPE"):
      if getattr(p, name):
        raise faults.host("HCE_PRIV", f"LAUNCH_DMA.{name} = PHYSICAL on a channel that is not privileged")
    for name in ("MEMORY_SCRUB_ENABLE", "VPRMODE", "COPY_TYPE"):
      if value := getattr(p, name, 0):
        raise Unsupported("copy field", f"LAUNCH_DMA.{name} = {value}", where=self.channel.name)
    mode = self.state.get("SET_RENDER_ENABLE_C")
    if mode is not None and mode.MODE != m.SET_RENDER_ENABLE_C_MODE.TRUE:
      raise Unsupported("copy field", f"SET_RENDER_ENABLE_C.MODE = {mode.MODE}", where=self.channel.name)
    moves = None
    if p.DATA_TRANSFER_TYPE != m.LAUNCH_DMA_DATA_TRANSFER_TYPE.NONE:
      moves = self._moves(p)
      self.channel.caches.copied(bool(p.FLUSH_ENABLE))
    release = self._release(p)
    beside = p.DATA_TRANSFER_TYPE == m.LAUNCH_DMA_DATA_TRANSFER_TYPE.PIPELINED

    def turns() -> Turns:
      if moves is not None:
        yield from moves
      if release is not None:
        draws = self.machine.draws
        if moves is not None and draws is not None and draws.number(self.channel.name, LATE, 2): yield None
        release()

    self.channel.begin(Job("LAUNCH_DMA", turns(), beside, self.channel.by))
    if p.INTERRUPT_TYPE != m.LAUNCH_DMA_INTERRUPT_TYPE.NONE:
      self.channel.interrupt("LAUNCH_DMA.INTERRUPT_TYPE")

  def _moves(self, p: Any) -> Turns:
    m = self.module
    for name in ("SRC_MEMORY_LAYOUT", "DST_MEMORY_LAYOUT"):
      if getattr(p, name) != m.LAUNCH_DMA_SRC_MEMORY_LAYOUT.PITCH:
        raise Unsupported("copy field", f"LAUNCH_DMA.{name} = BLOCKLINEAR", where=self.channel.name)
    source = self._address("OFFSET_IN_UPPER", "OFFSET_IN_LOWER")
    target = self._address("OFFSET_OUT_UPPER", "OFFSET_OUT_LOWER")
    length = int(self.sent("LINE_LENGTH_IN").VALUE)
    lines = int(self.sent("LINE_COUNT").VALUE) if p.MULTI_LINE_ENABLE else 1
    pitches = (int(self.sent("PITCH_IN").VALUE), int(self.sent("PITCH_OUT").VALUE)) if lines > 1 else (0, 0)
    remap = self._remap() if p.REMAP_ENABLE else None
    return self._lines(source, target, length, lines, pitches, remap)

  def _address(self, upper: str, lower: str) -> int:
    high, low = self.sent(upper), self.sent(lower)
    return int(high.UPPER) << 32 | int(low.VALUE if hasattr(low, "VALUE") else low.LOWER)

  def _lines(self, source: int, target: int, length: int, lines: int, pitches: tuple[int, int],
             remap: Remap | None) -> Turns:
    for line in range(lines):
      a, b = source + line * pitches[0], target + line * pitches[1]
      if remap is None:
        yield from self._pieces(a, b, length)
      elif length:
        remap.run(self, a, b, length)
      if line % _LINES_A_TURN == _LINES_A_TURN - 1:
        yield None
    self.machine.clock.advance(length * lines // BYTES_PER_NS)

  def _pieces(self, source: int, target: int, size: int) -> Turns:
    """A line, by a schedule in parts between which others come."""
    if not size: return
    draws, step = self.machine.draws, size
    if draws is not None and size > 1 and not source - size < target < source + size:
      step = -(-size // (1 + draws.number(self.channel.name, PIECES, MOST_PIECES)))
    if step < size:
      spans(self.space, source, size)
      spans(self.space, target, size, Access.WRITE)
    for at in range(0, size, step):
      if at: yield None
      self._copy(source + at, target + at, min(step, size - at))

  def _copy(self, source: int, target: int, size: int) -> None:
    """Across mappings; nothing is stored when a part of it faults."""
    space = self.space
    read, write = spans(space, source, size), spans(space, target, size, Access.WRITE)
    if len(read) == len(write) == 1:
      write[0][:] = read[0]
      return
    data, at = np.concatenate(read), 0
    for view in write:
      view[:] = data[at : at + len(view)]
      at += len(view)

  def _remap(self) -> Remap:
    p = self.sent("SET_REMAP_COMPONENTS")
    names = self.module.SET_REMAP_COMPONENTS_DST_X
    picks = [names(getattr(p, f"DST_{axis}")).name for axis in _AXES[: p.NUM_DST_COMPONENTS + 1]]
    count, size = int(p.NUM_SRC_COMPONENTS) + 1, int(p.COMPONENT_SIZE) + 1
    for pick in picks:
      if pick.startswith("SRC_") and _AXES.index(pick[-1]) >= count:
        raise self.invalid(f"SET_REMAP_COMPONENTS takes {pick} of {count} source components")
    constants = {name: int(self.sent(f"SET_REMAP_{name}").V) for name in picks if name.startswith("CONST")}
    return Remap(picks, count, size, constants)

  # ---- semaphores

  def _release(self, p: Any) -> Any:
    m = self.module
    kind = p.SEMAPHORE_TYPE
    types = m.LAUNCH_DMA_SEMAPHORE_TYPE
    if kind == types.NONE:
      return None
    timed = kind == types.RELEASE_FOUR_WORD_SEMAPHORE
    if not timed and kind != types.RELEASE_ONE_WORD_SEMAPHORE:
      raise Unsupported("copy field", f"LAUNCH_DMA.SEMAPHORE_TYPE = {kind}", where=self.channel.name)
    high, low = self.sent("SET_SEMAPHORE_A"), self.sent("SET_SEMAPHORE_B")
    address = int(high.UPPER) << 32 | int(low.LOWER)
    wide = bool(getattr(p, "SEMAPHORE_PAYLOAD_SIZE", 0))
    payload = int(self.sent("SET_SEMAPHORE_PAYLOAD").PAYLOAD)
    if wide:
      payload |= self.field("SET_SEMAPHORE_PAYLOAD_UPPER", "PAYLOAD") << 32
    align = semaphores.alignment(wide, timed)
    if address % align:
      raise self.invalid(f"a semaphore of {align} bytes at {address:#x}")
    if not p.FLUSH_ENABLE and p.DATA_TRANSFER_TYPE != m.LAUNCH_DMA_DATA_TRANSFER_TYPE.NONE:
      self.machine.doubt(f"{self.channel.name}: LAUNCH_DMA releases a semaphore with FLUSH_ENABLE 0: who sees it need "
                         "not see what was copied")
    name = m.LAUNCH_DMA_SEMAPHORE_REDUCTION(p.SEMAPHORE_REDUCTION).name if p.SEMAPHORE_REDUCTION_ENABLE else ""
    if name and name not in semaphores.REDUCTIONS:
      raise Unsupported("copy field", f"LAUNCH_DMA.SEMAPHORE_REDUCTION = {name}", where=self.channel.name)
    return lambda: semaphores.write(self.space, address, payload, name, wide=wide,
                                    signed=not p.SEMAPHORE_REDUCTION_SIGN,
                                    time_ns=self.channel.gpu.timer() if timed else None)


class Remap:
  """Elements of `count` components of `size` bytes, from which new ones are made: `picks` says what each takes."""

  def __init__(self, picks: list[str], count: int, size: int, constants: dict[str, int]) -> None:
    self.picks, self.count, self.size, self.constants = picks, count, size, constants

  def run(self, engine: CopyEngine, source: int, target: int, elements: int) -> None:
    """Make `elements` of them."""
    space, size = engine.space, self.size
    out = elements * len(self.picks) * size
    if any(pick.startswith("SRC") for pick in self.picks):
      raw = np.frombuffer(space.read(source, elements * self.count * size), np.uint8)
      given = raw.reshape(elements, self.count, size)
    space.prove(target, out, Access.WRITE)
    made = np.frombuffer(space.read(target, out), np.uint8).copy() if "NO_WRITE" in self.picks else np.zeros(
      out, np.uint8)
    made = made.reshape(elements, len(self.picks), size)
    for i, pick in enumerate(self.picks):
      if pick.startswith("SRC"):
        made[:, i] = given[:, _AXES.index(pick[-1])]
      elif pick.startswith("CONST"):
        made[:, i] = np.frombuffer(struct.pack("<I", self.constants[pick])[:size], np.uint8)
    space.write(target, made.tobytes())
