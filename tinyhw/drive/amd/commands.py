"""The commands of AMD's queues as packets: PM4 for compute queues (the MEC), SDMA for copy queues.

Each verb appends packets to a CommandStream. Values that change between submissions are named instead of given.
"""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, TypeVar

from tinyhw.arch import Arch
from tinyhw.autogen.pm4_gfx11 import Pm4
from tinyhw.autogen.sdma_v6 import SDMA_PKT_NOP, Sdma
from tinyhw.core.errors import LayoutError
from tinyhw.core.layout import Register
from tinyhw.drive.queue import CommandStream, Low, Slot
from tinyhw.wire import pm4, sdma

_ALL = (1 << 32) - 1
_PACKET_HEADER = 1  # dwords of a PM4 type-3 header
_POLL_INTERVAL = 4  # PM4: units of 16 clocks between two looks at memory
_SDMA_POLL_INTERVAL, _SDMA_RETRIES = 4, 0xFFF  # 0xFFF: for ever (the kernel driver's sdma_v6_0.c uses it so)
_SDMA_GREATER_OR_EQUAL = 5  # SDMA_PKT_POLL_REGMEM.func counts like WAIT_REG_MEM's: the kernel's 3 is "=="
# What fences write back, as the kernel driver's own do (gfx_v11_0_ring_emit_fence, gfx_v12_0_ring_emit_fence,
# gfx_v9_4_3_ring_emit_fence), and how their value goes past the caches: the field of RELEASE_MEM, and its word. gfx9's
# bits stand in the packet itself, and its L2 has no word of that kind.
_FENCES: Final[dict[str, tuple[dict[str, int], tuple[str, str]]]] = {
  "gfx11": ({"GLM_WB": 1, "GLM_INV": 1, "GL2_WB": 1, "SEQ": 1}, ("cache_policy", "bypass")),
  "gfx12": ({"GL2_WB": 1, "SEQ": 1}, ("temporal", "lu")),
  "gfx9": ({"tcl1_action_ena": 1, "tc_action_ena": 1, "tc_wb_action_ena": 1, "tc_md_action_ena": 1},
           ("cache_policy", "lru"))}
# What an acquire of everything forgets (gfx_v9_4_3_emit_mem_sync).
_COHERENT: Final = {"SH_ICACHE_ACTION_ENA": 1, "SH_KCACHE_ACTION_ENA": 1, "TC_ACTION_ENA": 1, "TCL1_ACTION_ENA": 1,
                    "TC_WB_ACTION_ENA": 1}
_MTYPE_UC = 3       # SDMA_PKT_FENCE.mtype: uncached, as the kernel's sdma_v6_0_ring_emit_fence writes its fences


R = TypeVar("R", bound=Register)


def register(cls: type[R], **fields: int) -> R:
  """A register by the fields that matter; the others are 0."""
  return cls(**fields)


class ComputeCommands(CommandStream):
  """Commands of a generation's PM4 compute queue."""

  def __init__(self, arch: Arch, label: str = "") -> None:
    super().__init__(label)
    self._p, self._gc, self._generation = arch.packets, arch.gc, arch.pm4

  def _put(self, packet: Pm4, **slots: Slot) -> ComputeCommands:
    self.emit(pm4.encode(packet), packet, slots, _PACKET_HEADER)
    return self

  def wait(self, address: str, value: str) -> ComputeCommands:
    """Stall until the low dword at the named address is at least the named value."""
    p = self._p
    return self._put(
      p.WAIT_REG_MEM(
        function=p.WAIT_REG_MEM_function.greater_than_or_equal_reference_value,
        mem_space=p.WAIT_REG_MEM_mem_space.memory_space,
        operation=p.WAIT_REG_MEM_operation.wait_reg_mem,
        mem_poll_addr=0,
        reference=0,
        mask=_ALL,
        poll_interval=_POLL_INTERVAL,
      ),
      mem_poll_addr=address,
      reference=Low(value),
    )

  def memory_barrier(self) -> ComputeCommands:
    """Wait for the kernels before, then forget what the caches hold: later commands see what any engine or the host
    wrote."""
    p = self._p
    self._put(
      p.EVENT_WRITE(
        event_type=p.VGT_EVENT_TYPE.CS_PARTIAL_FLUSH, event_index=p.EVENT_WRITE_event_index.cs_partial_flush
      )
    )
    whole = {f.name: f.limit for f in p.ACQUIRE_MEM.FIELDS}
    caches: dict[str, int]
    if "gcr_cntl" in whole:
      caches = {"gcr_cntl": register(
        p.ACQUIRE_MEM_GCR_CNTL,
        GLI_INV=1, GLK_INV=1, GLV_INV=1, GL1_INV=1, GLM_INV=1, GLM_WB=1, GL2_INV=1, GL2_WB=1
      ).value()}
    else: caches = {"coher_cntl": register(self._gc.CP_COHER_CNTL, **_COHERENT).value()}
    return self._put(
      p.ACQUIRE_MEM(coher_size=whole["coher_size"], coher_base=0, poll_interval=_POLL_INTERVAL, **caches)
    )

  def registers(self, *values: Register) -> ComputeCommands:
    """Write SH registers that follow each other, in one packet."""
    first = values[0].OFFSET
    for i, register in enumerate(values):
      if register.OFFSET != first + i:
        raise LayoutError(f"is not register {i} after {type(values[0]).__name__}", where=type(register).__name__)
    return self._set_sh(first, [register.value() for register in values])

  def _set_sh(self, offset: int, values: Sequence[int]) -> ComputeCommands:
    return self._put(self._p.SET_SH_REG(reg_offset=offset - self._p.SET_SH_REG_START, payload=tuple(values)))

  def user_data(self, values: Sequence[int], pairs: dict[int, str]) -> ComputeCommands:
    """The user SGPRs. `pairs`: index of the first of two registers -> name of the 64-bit value that they take."""
    self._set_sh(self._gc.COMPUTE_USER_DATA_0.OFFSET, values)
    base = len(self.words) - len(values)
    for index, name in pairs.items(): self.mark_words(name, base + index, base + index + 1)
    return self

  def dispatch(self, initiator: Register, suffix: str = "") -> ComputeCommands:
    """Start a grid of grid_x * grid_y * grid_z workgroups (named values; the names end in `suffix`)."""
    return self._put(self._p.DISPATCH_DIRECT(dim_x=0, dim_y=0, dim_z=0, dispatch_initiator=initiator.value()),
                     dim_x=f"grid_x{suffix}", dim_y=f"grid_y{suffix}", dim_z=f"grid_z{suffix}")

  def indirect_buffer(self, address: int, count: int) -> ComputeCommands:
    """Execute `count` dwords of packets at a GPU address, then go on here."""
    return self._put(self._p.INDIRECT_BUFFER(ib_base=address, ib_size=count, valid=1))

  def _release(
    self, data_sel: int, address: int, data: int = 0, *, named: str | None = None,
    flush: bool = True, interrupt: int | None = None
  ) -> ComputeCommands:
    p = self._p
    written_back, (hint, word) = _FENCES[self._generation]
    caches = {hint: getattr(p, f"RELEASE_MEM_{hint}")[word]}
    if not flush: written_back = {}
    if self._generation == "gfx9": caches |= written_back
    else: caches["gcr_cntl"] = register(p.RELEASE_MEM_GCR_CNTL, **written_back).value()
    event = p.VGT_EVENT_TYPE.CACHE_FLUSH_AND_INV_TS_EVENT if flush else p.VGT_EVENT_TYPE.BOTTOM_OF_PIPE_TS
    select = p.RELEASE_MEM_int_sel
    packet = p.RELEASE_MEM(
      event_type=event, event_index=p.RELEASE_MEM_event_index.end_of_pipe, **caches,
      dst_sel=p.RELEASE_MEM_dst_sel.memory_controller,
      data_sel=data_sel, address=address, data=data, int_ctxid=interrupt or 0,
      int_sel=select.none if interrupt is None else select.send_interrupt_after_write_confirm)
    return self._put(packet, data=named) if named is not None else self._put(packet)

  def signal(self, address: int, value: str) -> ComputeCommands:
    """After all work before it: write back the caches, then write the named 64-bit value to memory."""
    return self._release(self._p.RELEASE_MEM_data_sel.send_64_bit_data, address, named=value)

  def timestamp(self, address: int) -> ComputeCommands:
    """After all work before it: write the GPU's clock to memory."""
    return self._release(self._p.RELEASE_MEM_data_sel.send_gpu_clock_counter, address, flush=False)

  def interrupt(self, mailbox: int, event_id: int, context: int) -> ComputeCommands:
    """After all work before it: write the event's id into its mailbox and interrupt the host."""
    return self._release(self._p.RELEASE_MEM_data_sel.send_64_bit_data, mailbox, event_id, interrupt=context)


class CopyCommands(CommandStream):
  """Commands of an SDMA queue."""

  def __init__(self, arch: Arch, label: str = "") -> None:
    super().__init__(label)
    self._p, self.packets = arch.packets, arch.copies
    self._uncached = {"mtype": _MTYPE_UC} if arch.sdma == "v6" else {}  # v4's fences have no such field

  def _put(self, packet: Sdma, **slots: Slot) -> CopyCommands:
    self.emit(sdma.encode(packet), packet, slots)
    return self

  def wait(self, address: str, value: str) -> CopyCommands:
    """Stall until the low dword at the named address is at least the named value."""
    return self._put(
      self.packets.SDMA_PKT_POLL_REGMEM(
        func=_SDMA_GREATER_OR_EQUAL,
        mem_poll=1,
        addr=0,
        value=0,
        mask=_ALL,
        interval=_SDMA_POLL_INTERVAL,
        retry_count=_SDMA_RETRIES,
      ),
      addr=address,
      value=Low(value),
    )

  def memory_barrier(self) -> CopyCommands:
    """Write back and forget what the caches hold, over all addresses. v4 reaches memory past them, and has no packet
    for that."""
    if not hasattr(self.packets, "SDMA_PKT_GCR_REQ"): return self
    caches = register(
      self._p.ACQUIRE_MEM_GCR_CNTL, GLI_INV=1, GLK_INV=1, GLV_INV=1, GL1_INV=1, GLM_INV=1, GL2_INV=1, GL2_WB=1
    ).value()
    return self._put(self.packets.SDMA_PKT_GCR_REQ(base_va=0, gcr_control=caches, limit_va=0, vmid=0))

  def copy(self, destination: str, source: str, count: str) -> CopyCommands:
    """Copy the named number of bytes. The packet stores the count less one: give `count` = bytes - 1."""
    packet = self.packets.SDMA_PKT_COPY_LINEAR(count=0, src_addr=0, dst_addr=0)
    return self._put(packet, dst_addr=destination, src_addr=source, count=count)

  def signal(self, address: int, value: str) -> CopyCommands:
    """After all work before it: write the low dword of the named value to memory (the high one changes only at an
    epoch's start)."""
    return self._put(self.packets.SDMA_PKT_FENCE(**self._uncached, addr=address, data=0), data=Low(value))

  def fence(self, address: int, data: int) -> CopyCommands:
    """After all work before it: write a dword to memory."""
    return self._put(self.packets.SDMA_PKT_FENCE(**self._uncached, addr=address, data=data))

  def timestamp(self, address: int) -> CopyCommands:
    """After all work before it: write the GPU's clock to memory."""
    return self._put(self.packets.SDMA_PKT_TIMESTAMP_GET_GLOBAL(write_addr=address))

  def interrupt(self, mailbox: int, event_id: int, context: int) -> CopyCommands:
    """After all work before it: write the event's id into its mailbox and interrupt the host."""
    self.fence(mailbox, event_id & _ALL).fence(mailbox + 4, event_id >> 32)
    return self._put(self.packets.SDMA_PKT_TRAP(int_context=context))


def sdma_padding(count: int) -> array[int]:
  """`count` dwords of SDMA no-operations."""
  return array("I", sdma.encode(SDMA_PKT_NOP(payload=())) * count)
