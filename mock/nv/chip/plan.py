"""What the QMDs of one kernel and its sizes say, checked as the chip's scheduler (SKED) checks it.

Names of checks are those of `pri_sked.ref` of GA100 (NV_PGRAPH_PRI_SKED_HWW_ESR_SKEDCHECK*). QMDs that differ only in
what CHANGING names have one plan; that part is the launch's own (`launch.py`), and so is what memory holds.

The mock checks these things once. It checks each time what memory holds: the program, bank 0, the
mappings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import MachineFault, Unsupported
from tinyhw.core.memory import Access
from tinyhw.mock.nv.chip import faults, semaphores
from tinyhw.mock.nv.chip.image import Image
from tinyhw.mock.nv.chip.qmdfields import why_ignored
from tinyhw.wire import qmd as wire

if TYPE_CHECKING:
  from tinyhw.emulator.engines.ptx_repeat import Repeated
  from tinyhw.mock.nv.chip.channel import Channel
  from tinyhw.mock.nv.chip.compute import ComputeEngine

THREADS: Final = 1024  # of a block
REGISTERS: Final = 65536  # of an SM, in units of 32 bits
REGISTER_LIMIT: Final = 255
BANK_LIMIT: Final = 65536  # bytes of a constant bank
BANKS: Final = 8
RELEASES: Final = 3
LOCAL_TOP: Final = 1 << 24  # where a thread's local memory ends
CLUSTER: Final = 16  # blocks of a cluster (CUDA C++ Programming Guide: 8 on every card, 16 on H100)
_GRID_CTA: Final = 2  # QMD_TYPE
_GRID_GPC_CGA: Final = 3
_AXES: Final = ("WIDTH", "HEIGHT", "DEPTH")
DEPENDENTS: Final = 2
_CHANGING: Final = (("CONSTANT_BUFFER_ADDR", 1), ("RELEASE_SEMAPHORE_ADDR", RELEASES),
                    ("RELEASE_SEMAPHORE_PAYLOAD", RELEASES), ("DEPENDENT_QMD_POINTER", DEPENDENTS))
_OFF: Final = ((("CONSTANT_BUFFER_ADDR", "CONSTANT_BUFFER_SIZE", "CONSTANT_BUFFER_INVALIDATE"), BANKS),
               (("RELEASE_STRUCTURE_SIZE", "RELEASE_PAYLOAD64B", "RELEASE_REDUCTION_ENABLE", "RELEASE_REDUCTION_OP",
                 "RELEASE_REDUCTION_FORMAT", "RELEASE_TRAP_TYPE"), RELEASES), (("DEPENDENT_QMD_ACTION",), DEPENDENTS))
_OPERATIONS: Final = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")  # RELEASE_REDUCTION_OP, RED_*
# State of the engine that a plan counts on: who sends one of these has all plans made anew.
STATE: Final = frozenset({"SET_SHADER_LOCAL_MEMORY_A", "SET_SHADER_LOCAL_MEMORY_B",
                          "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A", "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B",
                          "SET_SHADER_SHARED_MEMORY_WINDOW_A", "SET_SHADER_SHARED_MEMORY_WINDOW_B",
                          "SET_SHADER_LOCAL_MEMORY_WINDOW_A", "SET_SHADER_LOCAL_MEMORY_WINDOW_B",
                          "SET_RENDER_ENABLE_C", "SET_RENDER_ENABLE_OVERRIDE"})


@dataclass(frozen=True)
class Changing:
  """Where a version has what differs from launch to launch: a mask of all other bits, and (place in the QMD, mask,
  place in the value) of the pieces of each value."""

  others: int
  pieces: dict[tuple[str, int], tuple[tuple[int, int, int], ...]]

  def read(self, value: int, name: str, index: int) -> int:
    """A whole value out of a QMD's bits."""
    found = 0
    for lo, mask, at in self.pieces[name, index]: found |= (value >> lo & mask) << at
    return found


_CHANGES: dict[type[Any], Changing] = {}  # a memo


def changing(declaration: type[Any]) -> Changing:
  """Of a version."""
  if (known := _CHANGES.get(declaration)) is not None: return known
  others: int = (1 << 32 * declaration.DWORDS) - 1
  pieces: dict[tuple[str, int], tuple[tuple[int, int, int], ...]] = {}
  for name, count in _CHANGING:
    for i in range(count):
      if not wire.has(declaration, name, i): continue
      found = wire.pieces(declaration, name, i)
      pieces[name, i] = tuple((f.lo, (1 << width) - 1, at) for f, at, width in found)
      for f, _, width in found: others &= ~((1 << width) - 1 << f.lo)
  return _CHANGES.setdefault(declaration, Changing(others, pieces))


@dataclass(frozen=True)
class Release:
  """A semaphore that a QMD writes at its end: which of them, how wide, with a timestamp or a reduction."""

  index: int
  wide: bool
  timed: bool
  reduction: str
  signed: bool
  interrupts: bool

  @property
  def align(self) -> int:
    """What its address is a multiple of."""
    return semaphores.alignment(self.wide, self.timed)


class Plan:
  """See the module. `qmd` is one of the class's declarations, read from `address`."""

  def __init__(self, engine: ComputeEngine, qmd: Any, address: int) -> None:
    self.engine, self.qmd, self.address = engine, qmd, address
    self.channel: Channel = engine.channel
    self.machine, self.space = self.channel.machine, self.channel.space
    self.version = type(qmd)
    self._looked: set[str] = set()  # fields whose values the launch goes by
    self._check_kind()
    self.grid = self._grid()
    self.block = self._dimensions(*(f"CTA_THREAD_DIMENSION{n}" for n in range(3)))
    self._check_sizes()
    self.program_address = self._get("PROGRAM_ADDRESS")
    self.banks = self._constants()
    self.image: Image = self.channel.images.at(self.program_address)
    self._check_program()
    self.bank0 = self._watched()
    self.releases = tuple(self._release(i) for i in range(RELEASES) if self.maybe("RELEASE_ENABLE", i))
    self.dependents = tuple((i, self._dependent(i)) for i in range(DEPENDENTS) if self.maybe("DEPENDENT_QMD_ENABLE", i))
    self.changing = changing(self.version)
    self.forgets_constants = bool(self.maybe("INVALIDATE_SHADER_CONSTANT_CACHE"))
    self.forgets_data = bool(self.maybe("INVALIDATE_SHADER_DATA_CACHE"))
    self.fresh = {i: bool(self.maybe("CONSTANT_BUFFER_INVALIDATE", i)) for i in self.banks}
    self.barrier = bool(self.maybe("CWD_MEMBAR_TYPE"))
    self._check_rest()
    self.repeated = self._repeated()
    self._mappings = self.space.version

  @property
  def name(self) -> str:
    return self.image.name

  def _get(self, name: str, index: int | None = None) -> int:
    self._looked.update(f.name for f, _, _ in wire.pieces(self.version, name, index))
    return wire.read(self.qmd, name, index)

  def maybe(self, name: str, index: int | None = None) -> int:
    """A value, 0 where the version has no such field."""
    return self._get(name, index) if wire.has(self.version, name, index) else 0

  def _dimensions(self, *names: str) -> tuple[int, int, int]:
    x, y, z = (self._get(n) for n in names)
    return x, y, z

  # ---- checks

  def _sked(self, check: str, text: str) -> MachineFault:
    return faults.compute(f"SKEDCHECK{check}", f"{text} (QMD at {self.address:#x})")

  def _unsupported(self, field: str) -> Unsupported:
    return Unsupported("QMD field", f"{self.version.__name__}.{field}", where=self.channel.name)

  def _check_kind(self) -> None:
    kind = self.maybe("QMD_TYPE")
    if self.maybe("IS_QUEUE") or wire.has(self.version, "QMD_TYPE") and kind == 0:
      raise self._unsupported("QMD_TYPE of a queue")
    if wire.has(self.version, "QMD_TYPE") and kind == 1:
      raise self._unsupported("QMD_TYPE = GRID_NULL")
    self.cluster = self._clusters(kind)
    for field in ("ARRIVE_AT_LATCH_VALID", "WAIT_ON_LATCH_VALID", "DEPENDENCE_COUNTER", "CIRCULAR_QUEUE_SIZE"):
      if self.maybe(field):
        raise self._unsupported(field)

  def _check_rest(self) -> None:
    """Fields that nothing here asks for are 0, or have no effect."""
    for name in ("QMD_MAJOR_VERSION", "QMD_MINOR_VERSION"): self._get(name)
    for name, index in self.changing.pieces: self._get(name, index)
    for names, count in _OFF:  # of banks that are not valid, and what is not enabled, the rest does not count
      for name in names:
        for index in range(count): self.maybe(name, index)
    for field, value in self.qmd.items():
      if not value or field.name in self._looked: continue
      if (why := why_ignored(field.name)) is None: raise self._unsupported(field.name)
      self.machine.ignored.note("QMD field", field.name, why)

  def _clusters(self, kind: int) -> tuple[int, int, int] | None:
    """The blocks of a cluster each way; None where the QMD is a grid of blocks."""
    sizes = {level: tuple(self.maybe(f"{level}_{axis}") for axis in _AXES) for level in ("GPC_CGA", "GPU_CGA")}
    if kind not in (0, _GRID_CTA, _GRID_GPC_CGA):
      raise self._unsupported(f"QMD_TYPE = {kind}")
    for level, size in sizes.items():
      if max(size) > 1 and (level == "GPU_CGA" or kind != _GRID_GPC_CGA):
        raise self._unsupported(f"{level}_WIDTH and so on = {size} with QMD_TYPE = {kind}")
    for more in ("LARGE_GPC_CGA_WIDTH_MINUS_ONE", "LARGE_GPC_CGA_HEIGHT_MINUS_ONE"):
      if self.maybe(more): raise self._unsupported(more)
    if kind != _GRID_GPC_CGA: return None
    x, y, z = sizes["GPC_CGA"]
    if not 0 < x * y * z <= CLUSTER:
      raise self.engine.invalid(f"a cluster of {(x, y, z)} blocks: they have 1 to {CLUSTER}")
    return x, y, z

  def _grid(self) -> tuple[int, int, int]:
    """The blocks each way: of clusters the QMD tells how many."""
    (a, b, c), (x, y, z) = self._dimensions("GRID_WIDTH", "GRID_HEIGHT", "GRID_DEPTH"), self.cluster or (1, 1, 1)
    return a * x, b * y, c * z

  def _check_sizes(self) -> None:
    x, y, z = self.block
    if not x * y * z:
      raise self._sked("16_CTA_THREAD_DIMENSION_ZERO", f"a block of {self.block}")
    if x * y * z > THREADS:
      raise self._sked("11_TOTAL_THREADS", f"a block of {self.block}, {THREADS} threads at most")
    if not all(self.grid):
      raise self._unsupported(f"GRID of {self.grid} blocks")
    registers = self._get("REGISTER_COUNT")
    if not 0 < registers <= REGISTER_LIMIT:
      raise self._sked("06_REGISTER_COUNT", f"{registers} registers a thread, 1 to {REGISTER_LIMIT}")
    a_warp = -(-registers // 8) * 8 * 32
    if -(-x * y * z // 32) * a_warp > REGISTERS:
      raise self._sked("19_CTA_REGISTER_CONSUMPTION", f"{registers} registers for {x * y * z} threads")
    shared, limit = self._get("SHARED_MEMORY_SIZE"), self.channel.gpu.card.shared_limit
    if shared % 128 or shared > limit:
      raise self._sked("14_SHARED_MEMORY_SIZE", f"{shared:,} bytes of shared memory, {limit:,} at most")
    local = self._get("SHADER_LOCAL_MEMORY_LOW_SIZE"), self._get("SHADER_LOCAL_MEMORY_HIGH_SIZE")
    for size, check in zip(local, ("02_LOCAL_MEMORY_LOW_SIZE", "03_LOCAL_MEMORY_HIGH_SIZE"), strict=True):
      if size % 16:
        raise self._sked(check, f"{size} bytes of local memory a thread")
    self.local = sum(local)
    if self.local:
      self._check_local(self.local)
    self._check_windows()

  def check_stack(self, top: int) -> None:
    """What the kernel has on its stack, which begins at `top`, lies in the local memory that the QMD gives."""
    frame = self.image.kernel.local
    if top - frame < LOCAL_TOP - self.local:
      raise faults.compute("OOR_LOCAL", f"a frame of {frame} bytes below {top:#x}; the QMD gives {self.local} bytes of "
                           f"local memory, which end at {LOCAL_TOP:#x}")

  def _check_local(self, size: int) -> None:
    """A thread's local memory lies in what SET_SHADER_LOCAL_MEMORY gave: enough for a warp on each SM."""
    engine, names = self.engine, ("SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A", "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B")
    total = engine.field(names[0], "SIZE_UPPER") << 32 | engine.field(names[1], "SIZE_LOWER")
    if size * 32 > total:
      raise self._sked("05_LOCAL_MEMORY_TOTAL_SIZE", f"{size} bytes of local memory a thread, {total:,} bytes a TPC")
    base = engine.field("SET_SHADER_LOCAL_MEMORY_A", "ADDRESS_UPPER") << 32 | engine.field(
      "SET_SHADER_LOCAL_MEMORY_B", "ADDRESS_LOWER")
    self.space.prove(base, size * 32, Access.WRITE)

  def _check_windows(self) -> None:
    """Shared and local memory have windows of 4 GiB in the address space."""
    engine = self.engine
    shared, local = "SET_SHADER_SHARED_MEMORY_WINDOW_", "SET_SHADER_LOCAL_MEMORY_WINDOW_"
    if not all(f"{window}{part}" in engine.state for window in (shared, local) for part in "AB"):
      self.machine.doubt(f"{self.channel.name}: a launch before the windows of shared and local memory were set")
      return
    a, b = (engine.field(f"{w}A", "BASE_ADDRESS_UPPER") << 32 | engine.field(f"{w}B", "BASE_ADDRESS")
            for w in (shared, local))
    if abs(a - b) < 1 << 32:
      raise self._sked("17_MEMORY_WINDOW_OVERLAP", f"shared memory's window at {a:#x}, local memory's at {b:#x}")

  def _constants(self) -> dict[int, tuple[int, int]]:
    """(address, size) of the constant banks that are valid; the address of bank 0 is that of the first launch."""
    banks = {}
    for i in range(BANKS):
      if not self._get("CONSTANT_BUFFER_VALID", i):
        continue
      address, size = self._get("CONSTANT_BUFFER_ADDR", i), self._get("CONSTANT_BUFFER_SIZE", i)
      if not 0 < size <= BANK_LIMIT:
        raise self._sked("23_CONSTANT_BUFFER_SIZE", f"constant bank {i} of {size:,} bytes")
      if i:
        self.check_bank(i, address)
      banks[i] = address, size
    return banks

  def check_bank(self, index: int, address: int) -> None:
    """Raises unless a constant bank may be there."""
    if address % 64:
      raise self.engine.invalid(f"constant bank {index} at {address:#x}, which is no multiple of 64")

  def _check_program(self) -> None:
    image = self.image
    if self.program_address != image.text_address:
      raise faults.compute("ILLEGAL_INSTRUCTION_PC", f"PROGRAM_ADDRESS {self.program_address:#x} is amid {image.name}, "
                           f"which begins at {image.text_address:#x}")
    if self.program_address % 128:
      raise self._sked("13_PROGRAM_OFFSET", f"a program at {self.program_address:#x}")
    kernel = image.kernel
    if kernel.params_size:
      if 0 not in self.banks:
        raise faults.compute("OOR_CONSTANT", f"{image.name} has parameters, and constant bank 0 is not valid")
      need = kernel.params + kernel.params_size
      if self.banks[0][1] < need:
        raise faults.compute("OOR_CONSTANT", f"{image.name} reads {need} bytes of constant bank 0, which has "
                             f"{self.banks[0][1]}")
    static, given = self.reserved + image.program.shared_size, self._get("SHARED_MEMORY_SIZE")
    if static > given:
      raise faults.compute("OOR_SHARED", f"{image.name} needs {static} bytes of shared memory, with what the system "
                           f"keeps; the QMD gives {given}")

  def _watched(self) -> tuple[tuple[str, int, tuple[int, int, int]], ...]:
    """What the program reads of the launch itself (name, offset in constant bank 0, what the QMD says): the driver
    writes it there, and nobody checks."""
    layout = self.channel.gpu.card.arch.bank0
    if 0 not in self.banks or self.banks[0][1] < max(layout.ntid, layout.nctaid) + 12: return ()
    rows = (("blockDim", "%ntid", layout.ntid, self.block), ("gridDim", "%nctaid", layout.nctaid, self.grid))
    found = [(name, at, wanted) for name, register, at, wanted in rows if register in self.image.ptx]
    if (told := layout.clusters) is not None:
      x, y, z = self.cluster or (1, 1, 1)
      for start in (told.at - n * told.apart for n in range(told.copies)):
        if "%cluster_n" in self.image.ptx: found.append(("clusterDim", start + told.nctaid, (x, y, z)))
        if "%nclusterid" in self.image.ptx:
          a, b, c = (g // n for g, n in zip(self.grid, (x, y, z)))
          found.append(("gridDim in clusters", start + told.nclusterid, (a, b, c)))
    return tuple(found)

  def _release(self, i: int) -> Release:
    sizes = {0: True, 1: False, 2: False}  # RELEASE_STRUCTURE_SIZE: four words have a timestamp, one and two have not
    size = self._get("RELEASE_STRUCTURE_SIZE", i)
    reduction = _OPERATIONS[self._get("RELEASE_REDUCTION_OP", i)] if self._get("RELEASE_REDUCTION_ENABLE", i) else ""
    return Release(i, bool(self.maybe("RELEASE_PAYLOAD64B", i)) or size == 2, sizes[size], reduction,
                   bool(self._get("RELEASE_REDUCTION_FORMAT", i) & 1), bool(self.maybe("RELEASE_TRAP_TYPE", i)))

  def _dependent(self, index: int) -> bool:
    """Whether what the scheduler holds of a dependent QMD is invalidated before it is scheduled."""
    actions = {0: "QMD_INCREMENT_PUT", 1: "QMD_SCHEDULE", 3: "QMD_INVALIDATE_COPY_SCHEDULE",
               4: "QMD_DECREMENT_DEPENDENCE"}
    action = self._get("DEPENDENT_QMD_ACTION", index)
    if actions.get(action) not in ("QMD_SCHEDULE", "QMD_INVALIDATE_COPY_SCHEDULE"):
      raise self._unsupported(f"DEPENDENT_QMD{index}_ACTION = {actions.get(action, action)}")
    return actions[action] == "QMD_INVALIDATE_COPY_SCHEDULE"

  def _repeated(self) -> Repeated:
    from tinyhw.emulator.engines.ptx_repeat import Repeated
    from tinyhw.emulator.ptx.launch.explain import required_cluster
    from tinyhw.emulator.ptx.launch.grid import Dispatch
    program = self.image.program
    alone = (1, 1, 1) if required_cluster(program) is not None else None  # the QMD decides, whatever the kernel says
    dispatch = Dispatch(program, self.grid, self.block, params_size=self.image.kernel.params_size,
                        dynamic_shared=self._get("SHARED_MEMORY_SIZE") - self.reserved - program.shared_size,
                        cluster=self.cluster or alone, arch=self.channel.gpu.card.arch)
    return Repeated(self.space, dispatch, watchdog=self.machine.watchdog, engine=self.machine.engine)

  def stands(self) -> bool:
    """Whether the program in memory is the one that this was made for. Raises PageFault for memory that is gone."""
    if self.space.version != self._mappings:
      self._prove()
      self._mappings = self.space.version
    return self.channel.images.at(self.program_address) is self.image

  def _prove(self) -> None:
    """Raises PageFault unless the memory that the QMD names is there; bank 0's is the launch's to ask for."""
    for i, (address, size) in self.banks.items():
      if i: self.space.prove(address, size, Access.READ)
    if self.local: self._check_local(self.local)

  @property
  def reserved(self) -> int:
    """Bytes of a block's shared memory that the system keeps."""
    return self.channel.gpu.card.arch.shared_reserved
