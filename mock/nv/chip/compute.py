"""The compute engine (AMPERE_COMPUTE_A to BLACKWELL_COMPUTE_B): state, inline data, report semaphores, launches.

Methods and fields are those of the class headers. What a QMD says is checked and run in `launch.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.core.errors import DecodeError, Error, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.memory import Access
from tinyhw.core.table import Handlers
from tinyhw.mock.nv.chip import faults, semaphores
from tinyhw.mock.nv.chip.engine import Engine
from tinyhw.mock.nv.chip.jobs import Job, at_once
from tinyhw.mock.nv.chip.launch import QmdLaunch
from tinyhw.mock.nv.chip.plan import STATE, Plan, changing
from tinyhw.wire import qmd

if TYPE_CHECKING:
  from tinyhw.mock.nv.chip.channel import Channel

PLANS: Final = 256  # that a channel keeps


class ComputeEngine(Engine):
  """See the module."""

  KIND: ClassVar[str] = "compute"
  table: ClassVar[Handlers[str]] = Handlers("compute method")
  handles = table.handles
  state_names: ClassVar[frozenset[str]] = frozenset({
    "LINE_LENGTH_IN", "LINE_COUNT", "OFFSET_OUT_UPPER", "OFFSET_OUT", "PITCH_OUT", "SET_DST_BLOCK_SIZE",
    "SET_DST_WIDTH", "SET_DST_HEIGHT", "SET_DST_DEPTH", "SET_DST_LAYER", "SET_DST_ORIGIN_BYTES_X",
    "SET_DST_ORIGIN_SAMPLES_Y",
    "SET_I2M_SEMAPHORE_A", "SET_I2M_SEMAPHORE_B", "SET_I2M_SEMAPHORE_C", "SET_SHADER_SHARED_MEMORY_WINDOW_A",
    "SET_SHADER_SHARED_MEMORY_WINDOW_B", "SET_SHADER_LOCAL_MEMORY_A",
    "SET_SHADER_LOCAL_MEMORY_B", "SET_SHADER_LOCAL_MEMORY_WINDOW_A", "SET_SHADER_LOCAL_MEMORY_WINDOW_B",
    "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A",
    "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B", "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C",
    "SET_REPORT_SEMAPHORE_A", "SET_REPORT_SEMAPHORE_B", "SET_REPORT_SEMAPHORE_C",
    "SET_REPORT_SEMAPHORE_PAYLOAD_LOWER", "SET_REPORT_SEMAPHORE_PAYLOAD_UPPER", "SET_REPORT_SEMAPHORE_ADDRESS_LOWER",
    "SET_REPORT_SEMAPHORE_ADDRESS_UPPER", "SEND_PCAS_A", "SET_INLINE_QMD_ADDRESS_A", "SET_INLINE_QMD_ADDRESS_B",
    "SET_SPA_VERSION", "SET_QMD_VERSION", "SET_COMPUTE_CLASS_VERSION", "SET_TEX_HEADER_POOL_A",
    "SET_TEX_HEADER_POOL_B", "SET_TEX_HEADER_POOL_C", "SET_TEX_SAMPLER_POOL_A", "SET_TEX_SAMPLER_POOL_B",
    "SET_TEX_SAMPLER_POOL_C", "SET_BINDLESS_TEXTURE", "SET_RENDER_ENABLE_A", "SET_RENDER_ENABLE_B",
    "SET_RENDER_ENABLE_C", "SET_RENDER_ENABLE_OVERRIDE"})

  table.ignores("INVALIDATE_SKED_CACHES",
                "INVALIDATE_TEXTURE_HEADER_CACHE", "INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI",
                "INVALIDATE_TEXTURE_DATA_CACHE", "INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI", "INVALIDATE_SAMPLER_CACHE",
                "INVALIDATE_SAMPLER_CACHE_NO_WFI", "SET_SKED_CACHE_CONTROL",
                "SET_SHADER_CACHE_CONTROL", "INVALIDATE_SAMPLER_CACHE_BY_TAG", "INVALIDATE_SAMPLER_CACHE_BY_TAG_NO_WFI",
                "INVALIDATE_TEXTURE_DATA_CACHE_BY_TAG", "INVALIDATE_TEXTURE_DATA_CACHE_BY_TAG_NO_WFI",
                "INVALIDATE_TEXTURE_HEADER_CACHE_BY_TAG", "INVALIDATE_TEXTURE_HEADER_CACHE_BY_TAG_NO_WFI",
                why="no caches are modelled")
  table.ignores("SET_TRAP_HANDLER_A", "SET_TRAP_HANDLER_B", "SET_SHADER_EXCEPTIONS", "SET_SM_TIMEOUT_INTERVAL",
                why="a fault ends the launch, whatever handler or mask is set")
  table.ignores("SET_CWD_SLOT_COUNT", "SET_SCG_CONTROL", "SCG_HYSTERESIS_CONTROL", why="blocks are placed as they come")
  table.ignores("PM_TRIGGER", "PM_TRIGGER_WFI", "PERFMON_TRANSFER", "SET_INSTRUMENTATION_METHOD_HEADER",
                "SET_INSTRUMENTATION_METHOD_DATA", why="no performance monitors are modelled")
  table.ignores("SET_SCG_COMPUTE_SCHEDULING_PARAMETERS", "SET_SM_SCG_CONTROL", "THROTTLE_SM",
                "ACTIVATE_PERF_SETTINGS_FOR_COMPUTE_CONTEXT", why="the mock has no other work to share SMs with")

  def __init__(self, channel: Channel, class_id: int) -> None:
    super().__init__(channel, class_id)
    self._left = 0  # bytes of inline data that are still to come
    self._inline = bytearray()
    self._inline_launch: Any = None
    self._qmd: dict[int, int] = {}
    versions = qmd.versions(class_id).values()
    self._smallest, self._largest = (pick(v.DWORDS for v in versions) for pick in (min, max))
    self._versions = tuple((v, changing(v).others) for v in versions)
    self._plans: Kept[tuple[type[Any], int], Plan] = Kept(PLANS)
    self._actions = {int(a): a.name for a in getattr(self.module, "SEND_SIGNALING_PCAS2_B_PCAS_ACTION", ())}

  def refuse(self, message: str) -> Error:
    return faults.compute_class(message)

  def invalid(self, message: str) -> Error:
    return faults.compute("ILLEGAL_VALUE", message)

  @handles("NO_OPERATION", "PIPE_NOP")
  def nop(self, p: Any, copy: int) -> None:
    pass

  @handles("WAIT_FOR_IDLE")
  def wait_for_idle(self, p: Any, copy: int) -> None:
    self.channel.wait_for_idle()

  @handles("INVALIDATE_SHADER_CACHES", "INVALIDATE_SHADER_CACHES_NO_WFI")
  def invalidate(self, p: Any, copy: int) -> None:
    """Only findings count on it: memory is strong."""
    self.channel.caches.invalidate(bool(p.CONSTANT), bool(getattr(p, "GLOBAL_DATA", 0) or getattr(p, "DATA", 0)))

  @handles("CHECK_COMPUTE_CLASS_VERSION", "CHECK_QMD_VERSION")
  def check_version(self, p: Any, copy: int) -> None:
    """Against what SET_ of the same name has said."""
    set_ = self.state.get(type(p).__name__.replace("CHECK", "SET"))
    if set_ is not None and (p.CURRENT < set_.OLDEST_SUPPORTED or set_.CURRENT < p.OLDEST_SUPPORTED):
      raise self.invalid(f"{type(p).__name__} {p.CURRENT:#x} against {set_.CURRENT:#x}")

  # ---- inline data to memory

  @handles("LAUNCH_DMA")
  def launch_dma(self, p: Any, copy: int) -> None:
    """Begin to take inline data: LINE_LENGTH_IN bytes a line, LINE_COUNT lines."""
    m = self.module
    if p.DST_MEMORY_LAYOUT != m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH:
      raise Unsupported("compute field", "LAUNCH_DMA.DST_MEMORY_LAYOUT = BLOCKLINEAR", where=self.channel.name)
    if p.REDUCTION_ENABLE:
      raise Unsupported("compute field", "LAUNCH_DMA.REDUCTION_ENABLE", where=self.channel.name)
    if self._left > 0:
      raise self.invalid(f"LAUNCH_DMA while {self._left} bytes of inline data are missing")
    self.sent("OFFSET_OUT_UPPER")
    self.sent("OFFSET_OUT")
    length, lines = int(self.sent("LINE_LENGTH_IN").VALUE), int(self.sent("LINE_COUNT").VALUE)
    if lines > 1:
      self.sent("PITCH_OUT")
    self._left = length * lines
    self._inline.clear()
    self._inline_launch = p
    if not self._left:
      self._inline_done()

  @handles("LOAD_INLINE_DATA")
  def inline_data(self, p: Any, copy: int) -> None:
    """Four bytes of it; a line's end needs no whole word only at the end of all."""
    if self._inline_launch is None:
      raise self.invalid("LOAD_INLINE_DATA without LAUNCH_DMA")
    self._inline += p.V.to_bytes(4, "little")[: self._left]
    self._left -= min(4, self._left)
    if not self._left:
      self._inline_done()

  def _inline_done(self) -> None:
    p, self._inline_launch = self._inline_launch, None
    m, space = self.module, self.space
    target = self.field("OFFSET_OUT_UPPER", "VALUE") << 32 | self.field("OFFSET_OUT", "VALUE")
    length, lines = self.field("LINE_LENGTH_IN", "VALUE"), self.field("LINE_COUNT", "VALUE")
    pitch, data = self.field("PITCH_OUT", "VALUE"), bytes(self._inline)
    for line in range(lines):
      space.prove(target + line * pitch, length, Access.WRITE)
    for line in range(lines):
      space.write(target + line * pitch, data[line * length : (line + 1) * length])
    if p.COMPLETION_TYPE == m.LAUNCH_DMA_COMPLETION_TYPE.RELEASE_SEMAPHORE:
      address = self.field("SET_I2M_SEMAPHORE_A", "OFFSET_UPPER") << 32 | int(
        self.sent("SET_I2M_SEMAPHORE_B").OFFSET_LOWER)
      timed = p.SEMAPHORE_STRUCT_SIZE == m.LAUNCH_DMA_SEMAPHORE_STRUCT_SIZE.FOUR_WORDS
      self._aligned(address, False, timed)
      semaphores.write(self.space, address, int(self.sent("SET_I2M_SEMAPHORE_C").PAYLOAD), "", wide=False,
                       time_ns=self.channel.gpu.timer() if timed else None)
    if p.INTERRUPT_TYPE:
      self.channel.interrupt("LAUNCH_DMA.INTERRUPT_TYPE")

  # ---- semaphores

  def _aligned(self, address: int, wide: bool, timed: bool) -> None:
    align = semaphores.alignment(wide, timed)
    if address % align:
      raise self.invalid(f"a semaphore of {align} bytes at {address:#x}")

  def _operate(self, p: Any, address: int, payload: int, names: str, four: bool) -> None:
    """A report semaphore in the order of the engine's work: after what was begun before it."""
    m = self.module
    operation = getattr(m, f"{names}_OPERATION")(p.OPERATION).name
    wide = bool(getattr(p, "PAYLOAD_SIZE64", 0))
    if operation == "ACQUIRE":
      raise Unsupported("compute field", f"{names}.OPERATION = ACQUIRE", where=self.channel.name)
    if operation == "REPORT_ONLY":
      raise Unsupported("compute field", f"{names}.OPERATION = REPORT_ONLY", where=self.channel.name)
    if operation == "TRAP":
      return self.channel.interrupt(f"{names}.OPERATION = TRAP")
    self._aligned(address, wide, four)
    reduction = ""
    if p.REDUCTION_ENABLE:
      reduction = getattr(m, f"{names}_REDUCTION_OP")(p.REDUCTION_OP).name.removeprefix("RED_")

    def do() -> None:
      semaphores.write(self.space, address, payload, reduction, wide=wide, signed=bool(p.REDUCTION_FORMAT),
                       time_ns=self.channel.gpu.timer() if four and not reduction else None)
      if p.AWAKEN_ENABLE:
        self.channel.interrupt(f"{names}.AWAKEN_ENABLE")

    self.channel.begin(Job(names, at_once(do), by=self.channel.by))

  @handles("SET_REPORT_SEMAPHORE_D")
  def report_semaphore_d(self, p: Any, copy: int) -> None:
    address = int(self.sent("SET_REPORT_SEMAPHORE_A").OFFSET_UPPER) << 32 | int(
      self.sent("SET_REPORT_SEMAPHORE_B").OFFSET_LOWER)
    four = p.STRUCTURE_SIZE == self.module.SET_REPORT_SEMAPHORE_D_STRUCTURE_SIZE.FOUR_WORDS
    self._operate(p, address, int(self.sent("SET_REPORT_SEMAPHORE_C").PAYLOAD), "SET_REPORT_SEMAPHORE_D", four)

  @handles("REPORT_SEMAPHORE_EXECUTE")
  def report_semaphore_execute(self, p: Any, copy: int) -> None:
    address = int(self.sent("SET_REPORT_SEMAPHORE_ADDRESS_UPPER").UPPER) << 32 | int(
      self.sent("SET_REPORT_SEMAPHORE_ADDRESS_LOWER").LOWER)
    payload = int(self.sent("SET_REPORT_SEMAPHORE_PAYLOAD_LOWER").PAYLOAD_LOWER)
    if p.PAYLOAD_SIZE64:
      payload |= int(self.sent("SET_REPORT_SEMAPHORE_PAYLOAD_UPPER").PAYLOAD_UPPER) << 32
    sizes = self.module.REPORT_SEMAPHORE_EXECUTE_STRUCTURE_SIZE
    self._operate(p, address, payload, "REPORT_SEMAPHORE_EXECUTE", p.STRUCTURE_SIZE == sizes.SEMAPHORE_FOUR_WORDS)

  # ---- launches

  @handles("LOAD_INLINE_QMD_DATA")
  def inline_qmd(self, p: Any, copy: int) -> None:
    """A dword of a QMD. With the last one it goes to its address and is scheduled."""
    place = self.sent("SET_INLINE_QMD_ADDRESS_A")
    size = 96 if getattr(place, "INLINE_SIZE", 0) else 64
    if copy >= size:
      raise self.invalid(f"LOAD_INLINE_QMD_DATA[{copy}] of a QMD of {size} dwords")
    self._qmd[copy] = p.V
    if copy != size - 1:
      return
    words, self._qmd = self._qmd, {}
    if missing := [i for i in range(size) if i not in words]:
      raise self.invalid(f"LOAD_INLINE_QMD_DATA: dwords {missing[:8]} were never sent")
    low = self.sent("SET_INLINE_QMD_ADDRESS_B")
    address = (int(place.QMD_ADDRESS_SHIFTED8_UPPER) << 32 | int(low.QMD_ADDRESS_SHIFTED8_LOWER)) << 8
    self.space.write(address, b"".join(words[i].to_bytes(4, "little") for i in range(size)))
    self._schedule(address, True)

  @handles("SEND_SIGNALING_PCAS_B")
  def send_signaling(self, p: Any, copy: int) -> None:
    address = int(self.sent("SEND_PCAS_A").QMD_ADDRESS_SHIFTED8) << 8
    if p.INVALIDATE:
      self.channel.caches.forget(address)
    if p.SCHEDULE:
      self._schedule(address, bool(p.INVALIDATE))

  @handles("SEND_SIGNALING_PCAS2_B")
  def send_signaling_2(self, p: Any, copy: int) -> None:
    action = self._actions[p.PCAS_ACTION]
    address = int(self.sent("SEND_PCAS_A").QMD_ADDRESS_SHIFTED8) << 8
    if action in ("SCHEDULE", "INVALIDATE_COPY_SCHEDULE", "PREFETCH_SCHEDULE",
                       "INVALIDATE_PREFETCH_COPY_SCHEDULE"):
      self._schedule(address, action.startswith("INVALIDATE"))
    elif action == "INVALIDATE":
      self.channel.caches.forget(address)
    elif action not in ("NOP", "PREFETCH"):
      raise Unsupported("compute field", f"SEND_SIGNALING_PCAS2_B.PCAS_ACTION = {action}",
                        where=self.channel.name)

  def launch_at(self, address: int, fresh: bool) -> QmdLaunch:
    """The QMD at an address, checked; `fresh`: what the scheduler held of it was invalidated."""
    space = self.space
    mapping = space.find(address)
    if mapping is None or address + 4 * self._smallest > mapping.end or not mapping.access & Access.READ:
      space.prove(address, 4 * self._smallest, Access.READ)
      mapping = space.find(address)
    assert mapping is not None
    raw = space.read(address, min(4 * self._largest, mapping.end - address))
    value = int.from_bytes(raw, "little")
    for declaration, others in self._versions:
      plan = self._plans.standing((declaration, value & others))
      if plan is not None:
        self.channel.caches.scheduled(address, raw[: 4 * declaration.DWORDS], fresh)
        return QmdLaunch(plan, value, address)
    plan = self._planned(raw, address)
    self._plans.keep((plan.version, value & plan.changing.others), plan)
    self.channel.caches.scheduled(address, raw[: 4 * plan.version.DWORDS], fresh)
    return QmdLaunch(plan, value, address)

  def _planned(self, raw: bytes, address: int) -> Plan:
    """What a QMD says, checked."""
    for name in ("SET_RENDER_ENABLE_C", "SET_RENDER_ENABLE_OVERRIDE"):
      mode, enum = self.state.get(name), getattr(self.module, f"{name}_MODE", None)
      usual = ("TRUE", "USE_RENDER_ENABLE", "ALWAYS_RENDER")
      if mode is not None and enum is not None and enum(mode.MODE).name not in usual:
        raise Unsupported("compute field", f"{name}.MODE = {enum(mode.MODE).name}", where=self.channel.name)
    try:
      found = qmd.decode(self.class_id, memoryview(raw).cast("I").tolist())
    except DecodeError as error:
      raise self.invalid(f"the QMD at {address:#x}: {error}") from None
    version = qmd.version_of(type(found))
    if version not in self.channel.gpu.card.qmd_versions:
      raise self.invalid(f"the QMD at {address:#x} is of version {version[0]}.{version[1]}, and the chip executes "
                         "nothing of it")
    return Plan(self, found, address)

  def changed(self, name: str) -> None:
    if name in STATE:
      self._plans.clear()

  def _schedule(self, address: int, fresh: bool) -> None:
    self.channel.begin(self.launch_at(address, fresh).job(self.channel.by))
