"""From registers to a dispatch: what DISPATCH_DIRECT makes of a queue's COMPUTE_* registers, checked as the chip's
limits demand.

Field meanings: registers as generated; units from LLVM's AMDGPUUsage ("Kernel Descriptor",
COMPUTE_PGM_RSRC1 to 3 of GFX11) and AMD's PAL (COMPUTE_TMPRING_SIZE.WAVESIZE counts 64 dwords on GFX11). The waves run
in the ISA emulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.core.errors import MachineFault, PageFault, Unsupported
from tinyhw.core.lazy import cached_property
from tinyhw.core.memory import Access
from tinyhw.mock.amd.chip.registers import USER_DATA_COUNT, name_of

if TYPE_CHECKING:
  from tinyhw.emulator.amdgcn import DispatchStats
  from tinyhw.mock.amd.card import Card
  from tinyhw.mock.amd.chip.planning import Planning

CYCLES_PER_INSTRUCTION: Final = 4  # of a wave, when others hide nothing
MAX_THREADS: Final = 1024

_X, _Y, _Z = gc.COMPUTE_NUM_THREAD_X.OFFSET, gc.COMPUTE_NUM_THREAD_Y.OFFSET, gc.COMPUTE_NUM_THREAD_Z.OFFSET
_LO, _HI = gc.COMPUTE_PGM_LO.OFFSET, gc.COMPUTE_PGM_HI.OFFSET
_R1, _R2 = gc.COMPUTE_PGM_RSRC1.OFFSET, gc.COMPUTE_PGM_RSRC2.OFFSET
_SCRATCH_LO, _SCRATCH_HI = gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO.OFFSET, gc.COMPUTE_DISPATCH_SCRATCH_BASE_HI.OFFSET
_TMPRING: Final = gc.COMPUTE_TMPRING_SIZE.OFFSET
_STARTS: Final = (gc.COMPUTE_START_X.OFFSET, gc.COMPUTE_START_Y.OFFSET, gc.COMPUTE_START_Z.OFFSET)


@dataclass(frozen=True, eq=False)
class Shader:
  """What a dispatch runs, apart from its grid and user data. Sizes in bytes; `scratch_waves` bounds the waves in
  flight. A queue makes one for equal registers and mappings; two that it has made are never the same."""

  entry: int
  block: tuple[int, int, int]
  rsrc1: int
  rsrc2: int
  rsrc3: int
  wave32: bool
  user_sgprs: int
  lds_size: int
  scratch_base: int
  scratch_size: int
  scratch_waves: int
  force_start: bool
  thread_dimensions: bool

  @cached_property
  def plain(self) -> bool:
    """Whether a dispatch's size counts workgroups, from the first one on."""
    return self.force_start and not self.thread_dimensions


def duration(stats: DispatchStats, card: Card) -> int:
  """Nanoseconds of a dispatch on the machine's clock: the instructions of all waves shared out among the card's SIMDs,
  and no less than those of one wave."""
  waves = stats.waves or 1
  turns = -(-waves // card.simds)
  return stats.instructions // waves * turns * CYCLES_PER_INSTRUCTION * 1000 // card.engine_clock


def program_of(queue: Planning, initiator: int) -> Shader | None:
  """Check the registers for one dispatch. None when the initiator starts nothing."""
  registers, gc, known, r3_at = queue.registers, queue.known.declared, queue.processor, queue.known.rsrc3
  start = gc.COMPUTE_DISPATCH_INITIATOR.decode(initiator)
  if not start.COMPUTE_SHADER_EN:
    queue.machine.doubt(f"{queue.name}: DISPATCH with COMPUTE_DISPATCH_INITIATOR.COMPUTE_SHADER_EN 0 starts nothing")
    return None
  for name in ("ORDERED_APPEND_ENBL", "TUNNEL_ENABLE", "RESTORE", "AMP_SHADER_EN", "PARTIAL_TG_EN"):
    if getattr(start, name, 0):  # gfx9 has three of them
      raise Unsupported("dispatch", f"COMPUTE_DISPATCH_INITIATOR.{name}", where=queue.name)
  for offset in (_LO, _X, _Y, _Z, _R1, _R2):
    if offset not in registers:
      raise _refusal(queue, f"{name_of(offset)} was never written on this queue")
  r1, r2, r3 = (
    gc.COMPUTE_PGM_RSRC1.decode(registers[_R1]),
    gc.COMPUTE_PGM_RSRC2.decode(registers[_R2]),
    gc.COMPUTE_PGM_RSRC3.decode(registers.get(r3_at, 0)),
  )
  wave32 = known.wave32 and bool(start.CS_W32_EN)
  vgprs = (r1.VGPRS + 1) * known.vgpr_unit[32 if wave32 else 64]
  if vgprs > known.vgprs:
    raise _refusal(queue, f"COMPUTE_PGM_RSRC1.VGPRS asks for {vgprs} VGPRs, a wave has {known.vgprs}")
  if wave32 and r3.SHARED_VGPR_CNT:
    raise _refusal(queue, "COMPUTE_PGM_RSRC3.SHARED_VGPR_CNT is for wave64 only")
  if r2.USER_SGPR > USER_DATA_COUNT:
    raise _refusal(queue, f"COMPUTE_PGM_RSRC2.USER_SGPR {r2.USER_SGPR}, there are {USER_DATA_COUNT}")
  if r2.TIDIG_COMP_CNT > 2:
    raise _refusal(queue, f"COMPUTE_PGM_RSRC2.TIDIG_COMP_CNT {r2.TIDIG_COMP_CNT}")
  lds = r2.LDS_SIZE * known.lds_granule
  if lds > queue.gpu.card.lds_kib << 10:
    raise _refusal(queue, f"COMPUTE_PGM_RSRC2.LDS_SIZE asks for {lds:,} bytes, there are {queue.gpu.card.lds_kib} KiB")
  block = (_threads(queue, _X), _threads(queue, _Y), _threads(queue, _Z))
  if block[0] * block[1] * block[2] > MAX_THREADS:
    raise _refusal(queue, f"a workgroup of {block[0]} x {block[1]} x {block[2]} threads, {MAX_THREADS} at most")
  ring = gc.COMPUTE_TMPRING_SIZE.decode(registers.get(_TMPRING, 0))
  scratch = ring.WAVESIZE * known.scratch_granule if r2.SCRATCH_EN else 0
  if r2.SCRATCH_EN and (not scratch or not ring.WAVES):
    raise _refusal(queue, "scratch is enabled and COMPUTE_TMPRING_SIZE is empty")
  base = (registers.get(_SCRATCH_HI, 0) << 32 | registers.get(_SCRATCH_LO, 0)) << 8
  slots = ring.WAVES * queue.scratch_engines
  if scratch:
    _check_scratch(queue, base, scratch * slots)
  if not start.FORCE_START_AT_000 and not any(registers.get(s, 0) for s in _STARTS):
    queue.machine.doubt(
      f"{queue.name}: DISPATCH with FORCE_START_AT_000 0: the first workgroup is the one in COMPUTE_START_X/Y/Z, which "
      "is 0,0,0 only as long as nobody writes another there"
    )
  entry = (registers.get(_HI, 0) << 32 | registers[_LO]) << 8
  try:
    queue.space.prove(entry, 4, Access.EXECUTE)
  except PageFault as fault:
    raise PageFault(fault.address or entry, "execute", 4, reason=fault.reason, pc=entry) from None
  return Shader(
    entry,
    block,
    registers[_R1],
    registers[_R2],
    registers.get(r3_at, 0),
    wave32,
    r2.USER_SGPR,
    lds,
    base,
    scratch,
    slots,
    bool(start.FORCE_START_AT_000),
    bool(start.USE_THREAD_DIMENSIONS),
  )


def _check_scratch(queue: Planning, base: int, size: int) -> None:
  """Any wave may get any slot, so that the whole ring has to be there; a wave in a slot that is not faults."""
  try:
    queue.space.prove(base, size, Access.WRITE)
  except PageFault as fault:
    parts = "shader engines" if queue.processor.scratch_by_engine else "XCCs"
    queue.machine.doubt(
      f"{queue.name}: DISPATCH with scratch of {size:,} bytes at {base:#x} (COMPUTE_TMPRING_SIZE.WAVES x WAVESIZE of "
      f"{queue.scratch_engines} {parts}), of which {fault.address or base:#x} is not mapped for writing"
    )


def _refusal(queue: Planning, text: str) -> MachineFault:
  return MachineFault(f"DISPATCH: {text}", hint=f"{queue.name} hangs on a chip")


def _threads(queue: Planning, offset: int) -> int:
  known: Any = queue.known.known[offset][0].decode(queue.registers[offset])
  full: int = known.NUM_THREAD_FULL
  for field, value in known.items():
    if value and field.name.startswith("INTERLEAVE_BITS"):
      raise Unsupported("dispatch", f"{name_of(offset)}.{field.name} = {value}", where=queue.name)
  if not full:
    raise _refusal(queue, f"{name_of(offset)}.NUM_THREAD_FULL is 0")
  return full


def _program(queue: Planning, initiator: int) -> Shader | None:
  """What the registers ask for, checked once for equal registers."""
  settings = (initiator, queue.space.version, *map(queue.registers.get, queue.known.settings))
  known = queue.programs.get(settings)
  if known is None:
    known = program_of(queue, initiator)
    if known is None:
      return None
    queue.programs.keep(settings, known)
  return known


def dispatch_again(queue: Planning, size: tuple[int, int, int], initiator: int, words: list[int],
                   at: int) -> bool:
  """Run a dispatch of a planned submission: to its end at once, where it is one that was run before and compiled code
  needs no help with it; else, and what is left of it then, as `run_dispatch` does."""
  last = queue.program
  if last is not None and last[0] == (initiator, queue.space.version, queue.settings_version):
    program = last[1]
    known = queue.repeated.get((program, size))
    if known is not None and program.plain and (
        queue.machine.repeat(queue, known, tuple(queue.user_data[:program.user_sgprs]))):
      return False
  run_dispatch(queue, size, initiator)
  return True


def run_dispatch(queue: Planning, size: tuple[int, int, int], initiator: int) -> None:
  """Run a dispatch of `size` workgroups (or threads, as the initiator says) to its end."""
  registers, last = queue.registers, queue.program
  versions = initiator, queue.space.version, queue.settings_version
  if last is None or last[0] != versions:
    found = _program(queue, initiator)
    if found is None:
      return
    last = queue.program = versions, found
  known = last[1]
  if known.thread_dimensions:
    if any(n % b for n, b in zip(size, known.block)):
      raise Unsupported("dispatch", "partial workgroups (USE_THREAD_DIMENSIONS)", where=queue.name)
    size = (size[0] // known.block[0], size[1] // known.block[1], size[2] // known.block[2])
  if not known.force_start and any(registers.get(s, 0) for s in _STARTS):
    raise Unsupported("dispatch", "COMPUTE_START_X/Y/Z without FORCE_START_AT_000", where=queue.name)
  if not (size[0] and size[1] and size[2]):
    return
  queue.machine.execute(queue, known, size, tuple(queue.user_data[:known.user_sgprs]))
