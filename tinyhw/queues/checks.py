"""What a launch says against what its kernel's object says: registers, LDS, scratch, sizes, arguments."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tinyhw.autogen import amdhsa
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.queues.arguments import Facts
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.happens import Use, arguments_at
from tinyhw.queues.world import Launch
from tinyhw.wire import qmd

LDS_GRANULE: Final = 512     # bytes that RSRC2's LDS_SIZE counts (128 dwords; LLVM's AMDGPUUsage, compute_pgm_rsrc2)
WAVE_UNIT: Final = 256       # bytes that TMPRING_SIZE's WAVESIZE counts on gfx11 (64 dwords; Linux gfx_v11_0.c)
OLD_WAVE_UNIT: Final = 1024  # and before gfx11 (256 dwords; LLVM's AMDGPUUsage)
_RSRC3, _RSRC1, _RSRC2, _PROPERTIES = 11, 12, 13, 14  # dwords of AMD's kernel descriptor
_SAME1: Final = ("FLOAT_MODE", "WGP_MODE", "MEM_ORDERED")
_SAME2: Final = ("USER_SGPR", "TGID_X_EN", "TGID_Y_EN", "TGID_Z_EN", "TG_SIZE_EN")


def contradictions(launch: Launch, facts: Facts) -> Iterator[tuple[str, str]]:
  """(rule, what) for each thing that the launch says otherwise than the object."""
  if facts.block is not None and all(facts.block) and launch.block != facts.block:
    yield "object", f"the block is {launch.block}, and the kernel was made for {facts.block}"
  threads = launch.block[0] * launch.block[1] * launch.block[2]
  if facts.limit and threads > facts.limit:
    yield "object", f"a block has {threads} threads, and the kernel was made for {facts.limit}"
  if "qmd" in launch.state: yield from _qmd(launch.state["qmd"], facts)
  elif "registers" in launch.state and facts.words: yield from _registers(launch, facts)


def _registers(launch: Launch, facts: Facts) -> Iterator[tuple[str, str]]:
  values: dict[int, int] = launch.state["registers"]
  def read(register: Any, value: int | None = None) -> Any:
    found = values.get(register.OFFSET, 0) if value is None else value
    return register.decode(found & _bits(register))
  one, two = read(gc.COMPUTE_PGM_RSRC1), read(gc.COMPUTE_PGM_RSRC2)
  wanted1, wanted2 = read(gc.COMPUTE_PGM_RSRC1, facts.words[_RSRC1]), read(gc.COMPUTE_PGM_RSRC2, facts.words[_RSRC2])
  if one.VGPRS < wanted1.VGPRS:
    yield "object", f"COMPUTE_PGM_RSRC1.VGPRS is {one.VGPRS}, the kernel's descriptor says {wanted1.VGPRS}"
  for register, got, want, names in (("RSRC1", one, wanted1, _SAME1), ("RSRC2", two, wanted2, _SAME2)):
    for name in names:
      if getattr(got, name) != getattr(want, name):
        yield "object", (f"COMPUTE_PGM_{register}.{name} is {getattr(got, name):#x}, the kernel's descriptor says "
                         f"{getattr(want, name):#x}")
  if two.TIDIG_COMP_CNT < wanted2.TIDIG_COMP_CNT:
    yield "object", (f"COMPUTE_PGM_RSRC2.TIDIG_COMP_CNT is {two.TIDIG_COMP_CNT}, the kernel's descriptor says "
                     f"{wanted2.TIDIG_COMP_CNT}")
  packet = launch.item.packet
  if isinstance(packet, pm4.DISPATCH_DIRECT | pm4.DISPATCH_INDIRECT):
    wave32 = bool(int(packet.dispatch_initiator) & gc.COMPUTE_DISPATCH_INITIATOR(CS_W32_EN=1).value())
    wants = bool(facts.words[_PROPERTIES] & 0xFFFF & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32)
    if wave32 != wants:
      yield "object", f"waves have {32 if wave32 else 64} lanes, the kernel was compiled for {32 if wants else 64}"
  if two.LDS_SIZE * LDS_GRANULE < facts.shared:
    yield "lds", f"{two.LDS_SIZE * LDS_GRANULE} bytes of LDS, the kernel needs {facts.shared}"
  if facts.scratch:
    lanes = 32 if facts.words[_PROPERTIES] & 0xFFFF & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32 else 64
    size = _scratch(launch.item.class_id, values)
    if not two.SCRATCH_EN: yield "scratch", "COMPUTE_PGM_RSRC2.SCRATCH_EN is 0, and the kernel uses scratch"
    elif size < facts.scratch * lanes:
      yield "scratch", f"{size} bytes of scratch a wave, the kernel needs {facts.scratch * lanes}"


def _scratch(generation: int, values: dict[int, int]) -> int:
  """Bytes of a wave, as the ring's register says. It is at one place in all generations, and gfx9's has other bits."""
  if generation == 9:
    from tinyhw.autogen.gc_9_4_3 import COMPUTE_TMPRING_SIZE  # gfx9's registers load with its first launch
    old = COMPUTE_TMPRING_SIZE.decode(values.get(COMPUTE_TMPRING_SIZE.OFFSET, 0) & _bits(COMPUTE_TMPRING_SIZE))
    return int(old.WAVESIZE) * OLD_WAVE_UNIT
  ring = gc.COMPUTE_TMPRING_SIZE.decode(values.get(gc.COMPUTE_TMPRING_SIZE.OFFSET, 0) & _bits(gc.COMPUTE_TMPRING_SIZE))
  return int(ring.WAVESIZE) * WAVE_UNIT


def _bits(register: Any) -> int: return sum(f.mask for f in register.FIELDS)


def _qmd(made: Any, facts: Facts) -> Iterator[tuple[str, str]]:
  def read(name: str, index: int | None = None) -> int | None:
    return qmd.read(made, name, index) if qmd.has(type(made), name, index) else None
  registers, barriers = read("REGISTER_COUNT"), read("SHARED_MEMORY_SIZE")
  if registers is not None and registers < facts.registers:
    yield "object", f"REGISTER_COUNT is {registers}, the kernel uses {facts.registers}"
  if barriers is not None and barriers < facts.shared:
    yield "lds", f"SHARED_MEMORY_SIZE is {barriers} bytes, the kernel needs {facts.shared}"
  local = [v for n in ("SHADER_LOCAL_MEMORY_LOW_SIZE", "SHADER_LOCAL_MEMORY_HIGH_SIZE") if (v := read(n)) is not None]
  if local and sum(local) < facts.scratch:
    yield "scratch", f"{sum(local)} bytes of local memory a thread, the kernel needs {facts.scratch}"
  size = read("CONSTANT_BUFFER_SIZE", 0)
  if read("CONSTANT_BUFFER_VALID", 0) == 0:
    yield "object", "CONSTANT_BUFFER_VALID of bank 0 is 0, and the arguments lie there"
  elif size is not None and size < facts.first + facts.arguments:
    yield "object", f"constant bank 0 has {size} bytes, the kernel's arguments end at {facts.first + facts.arguments}"


def arguments(capture: Capture, step: Step, launch: Launch, facts: Facts) -> Iterator[str]:
  """What is wrong with arguments of a launch that its kernel uses as addresses."""
  if facts.pointers is None or facts.accesses is None or step.world is None: return
  at, size = arguments_at(capture, step.event.vendor, launch)
  raw = capture.memories[step.event.vendor].read(step.world, at, size) if at and size else None
  if raw is None: return
  for n, offset in enumerate(facts.pointers):
    mine = [a for a in facts.accesses if a.offsets == {offset}]
    if not mine or len(raw) < facts.first + offset + 8: continue
    value = int.from_bytes(raw[facts.first + offset:facts.first + offset + 8], "little")
    how = Use.WRITE if any(a.writes for a in mine) else Use.READ
    if step.world.find(value) is not None: continue
    was = step.world.was(value)
    if was is not None:
      yield f"argument {n}, which {facts.name} {how.value}, is {value:#x} in {was}, given back at event {was.freed_at}"
    else:
      yield f"argument {n}, which {facts.name} {how.value}, is {value:#x}: no memory of this process"
