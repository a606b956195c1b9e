"""An AQL queue of a room: a ring of 64-byte packets with its amd_queue_t, signals, and a kernel object of machine code.

Structures are those of the HSA headers; what a kernel finds in its registers follows AMDGPUUsage ("Initial Kernel
Execution State").
"""
from __future__ import annotations

import ctypes
import struct
from typing import Any, Final

from tinyhw.autogen import amdhsa, hsa, kfd
from tinyhw.bringup.amd.bench import PAGE, VRAM, AmdBench, BenchMemory
from tinyhw.bringup.amd.programs import assembled, own_wave
from tinyhw.bringup.rung import Broken
from tinyhw.core.layout import Struct
from tinyhw.drive.amd.commands import register
from tinyhw.drive.amd.topology import save_area
from tinyhw.wire import aql

SLOTS: Final = 64
SIGNALS: Final = 32  # that a queue's page of signals has
SIGNAL: Final = ctypes.sizeof(hsa.amd_signal_t)
FORMAT_PM4_IB: Final = 1  # ROCr 6.1, core/inc/amd_gpu_pm4.h: AMD_AQL_FORMAT_PM4_IB
_EOP: Final = 4096
_CODE: Final = 256   # where code begins behind its descriptor
_BEHIND: Final = 512  # bytes behind it that fetches may touch
_VGPRS, _SGPRS, _FLOATS, _USERS = 32, 48, 0xC0, 4


def offset(kind: type[Struct], field: str) -> int:
  """Bytes from the start of a structure to a field."""
  return int(getattr(kind, field).offset)


class AqlRing:
  """See the module."""

  def __init__(self, bench: AmdBench) -> None:
    self.bench, self.index = bench, 0
    self.ring, self.state, self.signals = bench.take(PAGE, executable=True), bench.take(PAGE), bench.take(PAGE)
    for memory in (self.state, self.signals): memory.fill(0)
    for slot in range(SLOTS): self.ring.words[16 * slot] = hsa.HSA_PACKET_TYPE_INVALID
    struct.pack_into("<I", self.state.bytes, offset(hsa.amd_queue_t, "queue_properties"),
                     hsa.AMD_QUEUE_PROPERTIES_IS_PTR64 | hsa.AMD_QUEUE_PROPERTIES_ENABLE_PROFILING)
    area = save_area(bench.node)
    eop, save = bench.take(_EOP, VRAM, host=False), bench.take(area.total, VRAM, host=False)
    args = bench.call("CREATE_QUEUE", kfd.AMDKFD_IOC_CREATE_QUEUE, kfd.kfd_ioctl_create_queue_args(
      ring_base_address=self.ring.address, ring_size=PAGE, gpu_id=bench.node.gpu_id, queue_priority=7,
      queue_percentage=kfd.KFD_MAX_QUEUE_PERCENTAGE, queue_type=kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
      read_pointer_address=self.state.address + offset(hsa.amd_queue_t, "read_dispatch_id"),
      write_pointer_address=self.state.address + offset(hsa.amd_queue_t, "write_dispatch_id"),
      eop_buffer_address=eop.address, eop_buffer_size=_EOP, ctx_save_restore_address=save.address,
      ctx_save_restore_size=area.save_restore, ctl_stack_size=area.control_stack))
    self.doorbell = bench.doorbell(int(args.doorbell_offset))

  @property
  def read(self) -> int:
    """read_dispatch_id."""
    return int(self.state.longs[offset(hsa.amd_queue_t, "read_dispatch_id") // 8])

  @property
  def idle(self) -> bool: return self.read == self.index

  def signal(self, number: int, value: int, mailbox: int = 0, event: int = 0) -> int:
    """The handle of a signal with this value, and an event where it has one."""
    at = number * SIGNAL
    self.signals.bytes[at:at + SIGNAL] = bytes(SIGNAL)
    struct.pack_into("<qqQI", self.signals.bytes, at, hsa.AMD_SIGNAL_KIND_USER, value, mailbox, event)
    return self.signals.address + at

  def value(self, number: int) -> int:
    return int(struct.unpack_from("<q", self.signals.bytes, number * SIGNAL + 8)[0])

  def set(self, number: int, value: int) -> None: struct.pack_into("<q", self.signals.bytes, number * SIGNAL + 8, value)

  def times(self, number: int) -> tuple[int, int]:
    """start_ts and end_ts of a signal."""
    found: tuple[int, int] = struct.unpack_from("<QQ", self.signals.bytes,
                                                number * SIGNAL + offset(hsa.amd_signal_t, "start_ts"))
    return found

  def put(self, *packets: Struct | bytes, kind: int | None = None) -> None:
    """Write packets and ring the doorbell; the header of each last, and of type `kind` where that is given."""
    for packet in packets:
      raw, at = bytes(packet), self.index % SLOTS * aql.PACKET_BYTES
      self.ring.bytes[at + 4:at + aql.PACKET_BYTES] = raw[4:]
      first = int.from_bytes(raw[:4], "little")
      self.ring.words[at // 4] = first if kind is None else first & ~0xFF | kind
      self.index += 1
    self.state.longs[offset(hsa.amd_queue_t, "write_dispatch_id") // 8] = self.index
    self.bench.port.doorbell(self.doorbell, self.index - 1)

  def header(self, index: int) -> int:
    """The first 16 bits of a packet's slot."""
    return int(self.ring.words[index % SLOTS * 16] & 0xFFFF)

  def finish(self) -> None:
    """Wait until all packets have been taken. Raises Broken."""
    if not self.bench.wait(lambda: self.idle):
      raise Broken(f"the queue stands at packet {self.read} of {self.index}{self.bench.why_stopped()}", "it goes on")


class KernelObject:
  """Code with its descriptor: s[0:1] is the dispatch packet, s[2:3] the kernel's arguments."""

  def __init__(self, b: AmdBench, text: str) -> None:
    code, gc, arch, wave = assembled(b, text), b.arch.gc, b.arch, own_wave(b)
    self.memory: BenchMemory = b.take(_CODE + len(code) + _BEHIND, executable=True)
    sgprs = 2 * (_SGPRS // arch.sgpr_granule - 1) if arch.simd_sgprs else 0
    names = {f.name for f in gc.COMPUTE_PGM_RSRC1.FIELDS}
    ordered: dict[str, int] = {"MEM_ORDERED": 1} if "MEM_ORDERED" in names else {}
    rsrc3: dict[str, int] = ({"ACCUM_OFFSET": _VGPRS // 4 - 1}
                             if "ACCUM_OFFSET" in {f.name for f in gc.COMPUTE_PGM_RSRC3.FIELDS} else {})
    made: Any = amdhsa.kernel_descriptor_t(
      kernel_code_entry_byte_offset=_CODE,
      compute_pgm_rsrc1=register(gc.COMPUTE_PGM_RSRC1, VGPRS=_VGPRS // arch.vgpr_unit[wave] - 1, SGPRS=sgprs,
                                 FLOAT_MODE=_FLOATS, **ordered).value(),
      compute_pgm_rsrc2=register(gc.COMPUTE_PGM_RSRC2, USER_SGPR=_USERS, TGID_X_EN=1, TGID_Y_EN=1, TGID_Z_EN=1,
                                 TIDIG_COMP_CNT=2).value(),
      compute_pgm_rsrc3=register(gc.COMPUTE_PGM_RSRC3, **rsrc3).value(),
      kernel_code_properties=(amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR
                              | amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR
                              | (amdhsa.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32 if wave == 32 else 0)))
    self.memory.fill(0)
    self.memory.bytes[:64] = bytes(made)
    self.memory.bytes[_CODE:_CODE + len(code)] = code
    self.address = self.memory.address
