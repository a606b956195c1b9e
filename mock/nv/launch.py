"""A launch: what a QMD says, checked as the chip's scheduler (SKED) checks it, and run on the PTX emulator.

Names of checks are those of `pri_sked.ref` of GA100 (NV_PGRAPH_PRI_SKED_HWW_ESR_SKEDCHECK*). When all blocks have
ended, memory is released to whom it concerns, semaphores are written, and a dependent QMD begins.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import InvalidArgument, MachineFault, Unsupported
from tinyhw.core.memory import Access
from tinyhw.core.patience import ticker
from tinyhw.mock.nv import faults, semaphores
from tinyhw.mock.nv.image import Image
from tinyhw.mock.nv.jobs import Job, Turns
from tinyhw.wire import qmd as wire

if TYPE_CHECKING:
  from tinyhw.mock.nv.channel import Channel
  from tinyhw.mock.nv.compute import ComputeEngine

THREADS: Final = 1024  # of a block
REGISTERS: Final = 65536  # of an SM, in units of 32 bits
REGISTER_LIMIT: Final = 255
BANK_LIMIT: Final = 65536  # bytes of a constant bank
SHARED_GRANULE: Final = 256
BANKS: Final = 8
RELEASES: Final = 3
DEPENDENTS: Final = 2
CYCLES_PER_INSTRUCTION: Final = 4
_OPERATIONS: Final = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")  # RELEASE_REDUCTION_OP, RED_*


class Launch:
  """See the module. `qmd` is one of the class's declarations, read from `address`."""

  def __init__(self, engine: ComputeEngine, qmd: Any, address: int) -> None:
    self.engine, self.qmd, self.address = engine, qmd, address
    self.channel: Channel = engine.channel
    self.machine, self.space = self.channel.machine, self.channel.space
    self.version = type(qmd)
    self._check_kind()
    self.grid = self._dimensions("GRID_WIDTH", "GRID_HEIGHT", "GRID_DEPTH")
    self.block = self._dimensions(*(f"CTA_THREAD_DIMENSION{n}" for n in range(3)))
    self._check_sizes()
    self.program_address = self._get("PROGRAM_ADDRESS")
    self.banks = self._constants()
    self.image: Image = self.channel.images.at(self.program_address)
    self._check_program()

  @property
  def name(self) -> str:
    return self.image.name

  def _get(self, name: str, index: int | None = None) -> int:
    return wire.read(self.qmd, name, index)

  def maybe(self, name: str, index: int | None = None) -> int:
    """A value, 0 where the version has no such field."""
    return wire.read(self.qmd, name, index) if wire.has(self.version, name, index) else 0

  def _dimensions(self, *names: str) -> tuple[int, int, int]:
    x, y, z = (self._get(n) for n in names)
    return x, y, z

  # ---- checks

  def _sked(self, check: str, text: str) -> MachineFault:
    return faults.compute(f"SKEDCHECK{check}", f"{text} (QMD at {self.address:#x})")

  def _unsupported(self, field: str) -> Unsupported:
    return Unsupported("QMD field", f"{self.version.__name__}.{field}", where=self.channel.name)

  def _check_kind(self) -> None:
    version = self.engine.channel.gpu.card.qmd_versions
    if wire.version_of(self.version) not in version:
      shown = ", ".join(f"{major}.{minor}" for major, minor in version)
      raise faults.compute("ILLEGAL_QMD_VERSION", f"{self.version.__name__}, and the chip takes {shown} "
                           f"(QMD at {self.address:#x})")
    kind = self.maybe("QMD_TYPE")
    if self.maybe("IS_QUEUE") or wire.has(self.version, "QMD_TYPE") and kind == 0:
      raise self._unsupported("QMD_TYPE of a queue")
    if wire.has(self.version, "QMD_TYPE") and kind == 1:
      raise self._unsupported("QMD_TYPE = GRID_NULL")
    for axis in ("WIDTH", "HEIGHT", "DEPTH"):
      for cluster in ("GPC_CGA", "GPU_CGA"):
        if self.maybe(f"{cluster}_{axis}") > 1:
          raise self._unsupported(f"{cluster}_{axis}")
    for field in ("ARRIVE_AT_LATCH_VALID", "WAIT_ON_LATCH_VALID", "DEPENDENCE_COUNTER", "CIRCULAR_QUEUE_SIZE"):
      if self.maybe(field):
        raise self._unsupported(field)

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
    if any(local):
      self._check_local(sum(local))
    self._check_windows()

  def _check_local(self, size: int) -> None:
    """A thread's local memory lies in what SET_SHADER_LOCAL_MEMORY gave: enough for a warp on each SM."""
    engine, names = self.engine, ("SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A", "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B")
    if any(n not in engine.state for n in names):
      raise self._sked("05_LOCAL_MEMORY_TOTAL_SIZE", f"{size} bytes of local memory a thread, and none was given")
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
    """(address, size) of the constant banks that are valid."""
    banks = {}
    for i in range(BANKS):
      if not self._get("CONSTANT_BUFFER_VALID", i):
        continue
      address, size = self._get("CONSTANT_BUFFER_ADDR", i), self._get("CONSTANT_BUFFER_SIZE", i)
      if not 0 < size <= BANK_LIMIT:
        raise self._sked("23_CONSTANT_BUFFER_SIZE", f"constant bank {i} of {size:,} bytes")
      if address % 64:
        raise self.engine.invalid(f"constant bank {i} at {address:#x}, which is no multiple of 64")
      self.space.prove(address, size, Access.READ)
      banks[i] = address, size
    return banks

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
    threads = self.block[0] * self.block[1] * self.block[2]
    if kernel.required is not None and kernel.required != self.block or 0 < kernel.limit < threads:
      raise faults.compute("ILLEGAL_LAUNCH", f"{image.name} with blocks of {self.block}; it was made for "
                           f"{kernel.required or kernel.limit}")
    self._check_bank0()

  def _check_bank0(self) -> None:
    """What programs read of the launch itself: the driver writes it into constant bank 0, and nobody checks."""
    bank0 = self.channel.gpu.card.arch.bank0
    if 0 not in self.banks or self.banks[0][1] < max(bank0.ntid, bank0.nctaid) + 12:
      return
    address = self.banks[0][0]
    for name, register, offset, wanted in (("blockDim", "%ntid", bank0.ntid, self.block),
                                           ("gridDim", "%nctaid", bank0.nctaid, self.grid)):
      if register not in self.image.ptx:
        continue
      found = tuple(self.space.load(address + offset + 4 * i, 4) for i in range(3))
      if found != wanted:
        self.machine.doubt(f"{self.channel.name}: constant bank 0 of {self.name} says {name} {found}, and its QMD "
                           f"{wanted}: machine code reads the bank")

  @property
  def reserved(self) -> int:
    """Bytes of a block's shared memory that the system keeps."""
    return self.channel.gpu.card.arch.shared_reserved

  # ---- the run

  def job(self) -> Job:
    """It, as the engine's work."""
    return Job(f"the launch of {self.name}", self.turns(), beside=True, dispatch=True, explain=self.explain)

  def turns(self) -> Turns:
    """Run the blocks, then tell who waits."""
    yield from self._threads()
    self._release()
    for index in range(DEPENDENTS):
      if self.maybe("DEPENDENT_QMD_ENABLE", index):
        self._dependent(index)

  def _threads(self) -> Turns:
    from tinyhw.emulator.ptx import launch as emulator
    from tinyhw.emulator.simt import Stats
    channel, machine, image = self.channel, self.machine, self.image
    channel.caches.begins(self)
    by = channel.queued_by()
    terms = machine.agreed.get(by or 0)
    channel.terms = terms
    observer = machine.observer if terms is None or terms.observer is None else terms.observer
    if machine.engine not in emulator.ENGINES:
      raise Unsupported("engine for PTX", machine.engine, where=channel.name,
                        hint=f"EMU has {', '.join(emulator.ENGINES)}")
    printed: list[str] = []
    kernel = image.kernel
    params = self.banks[0][0] + kernel.params if 0 in self.banks else 0
    if machine.trace.enabled:
      machine.trace.add(channel.name, "dispatch", image.name, grid=self.grid, block=self.block)
    dispatch = emulator.Dispatch(
      image.program, self.grid, self.block, params, kernel.params_size,
      self._get("SHARED_MEMORY_SIZE") - self.reserved - image.program.shared_size,
      ticker(terms, by in (None, threading.main_thread().ident)), printed, arch=channel.gpu.card.arch)
    stats = Stats()
    try:
      yield from emulator.start(emulator.Grid(self.space, dispatch, machine.watchdog, stats, observer), machine.engine)
    except InvalidArgument as refused:
      raise faults.compute("ILLEGAL_LAUNCH", str(refused)) from None
    except MachineFault as fault:
      self.explain(fault)
      raise
    finally:
      sys.stdout.write("".join(printed))
    machine.executed += stats.instructions
    turns = -(-max(stats.waves, 1) // (4 * channel.gpu.card.sms))
    machine.clock.advance(stats.instructions // max(stats.waves, 1) * turns * CYCLES_PER_INSTRUCTION * 1000
                          // channel.gpu.card.clock_mhz)

  def explain(self, fault: MachineFault) -> None:
    """Say which line of the PTX a fault is at, once."""
    if fault.work is not None:
      return
    fault.work, fault.kernel = f"kernel {self.image.name}", self.image.name
    text = self.image.ptx.splitlines()
    at = None
    if fault.pc is not None:
      line = self.image.program.place(fault.pc)[1]
      at = None if line is None else line.instruction.at
    self.image.program.explain(fault, self.grid, self.block, text)
    self.channel.fault_pc = self.image.text_address if at is None else self.image.place_of(*at)

  def _release(self) -> None:
    """The semaphores that the QMD names, after all memory that the threads wrote."""
    sizes = {0: True, 1: False, 2: False}  # RELEASE_STRUCTURE_SIZE: four words have a timestamp, one and two have not
    for i in range(RELEASES):
      if not self.maybe("RELEASE_ENABLE", i):
        continue
      address, payload = self._get("RELEASE_SEMAPHORE_ADDR", i), self._get("RELEASE_SEMAPHORE_PAYLOAD", i)
      size = self._get("RELEASE_STRUCTURE_SIZE", i)
      wide, timed = bool(self.maybe("RELEASE_PAYLOAD64B", i)) or size == 2, sizes[size]
      align = 16 if timed else 8 if wide else 4
      if address % align:
        raise self.engine.invalid(f"a semaphore of {align} bytes at {address:#x}")
      if self._get("RELEASE_REDUCTION_ENABLE", i):
        semaphores.reduce(self.space, address, payload, _OPERATIONS[self._get("RELEASE_REDUCTION_OP", i)], wide=wide,
                          signed=bool(self._get("RELEASE_REDUCTION_FORMAT", i) & 1))
      else:
        semaphores.release(self.space, address, payload, wide=wide,
                           time_ns=self.channel.gpu.timer() if timed else None)
      if self.maybe("RELEASE_TRAP_TYPE", i):
        self.channel.interrupt("QMD RELEASE")

  def _dependent(self, index: int) -> None:
    actions = {0: "QMD_INCREMENT_PUT", 1: "QMD_SCHEDULE", 3: "QMD_INVALIDATE_COPY_SCHEDULE",
               4: "QMD_DECREMENT_DEPENDENCE"}
    action = self._get("DEPENDENT_QMD_ACTION", index)
    if actions.get(action) not in ("QMD_SCHEDULE", "QMD_INVALIDATE_COPY_SCHEDULE"):
      raise self._unsupported(f"DEPENDENT_QMD{index}_ACTION = {actions.get(action, action)}")
    launch = self.engine.launch_at(self._get("DEPENDENT_QMD_POINTER", index) << 8)
    self.channel.begin(launch.job())
