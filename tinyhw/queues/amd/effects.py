"""What AMD's packets do; see `queues.effects`. PM4 as PAL's headers declare it, SDMA as Linux's, AQL as HSA says."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tinyhw.autogen import hsa
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.queues.effects import ALL_CACHES, Caches, Clock, Does, Effect

_FUNCTIONS: Final = ("always", "<", "<=", "==", "!=", ">=", ">")  # of WAIT_REG_MEM, and of SDMA's polls alike
_DATA_BYTES: Final = {pm4.RELEASE_MEM_data_sel.send_32_bit_low: 4, pm4.RELEASE_MEM_data_sel.send_64_bit_data: 8,
                      pm4.RELEASE_MEM_data_sel.send_gpu_clock_counter: 8,
                      pm4.RELEASE_MEM_data_sel.send_system_clock_counter: 8,
                      pm4.RELEASE_MEM_data_sel.atomic_add32bit_low: 4}
_CLOCKS: Final = {pm4.RELEASE_MEM_data_sel.send_gpu_clock_counter,
                  pm4.RELEASE_MEM_data_sel.send_system_clock_counter}
_MEMORY: Final = {pm4.WRITE_DATA_dst_sel.tc_l2, pm4.WRITE_DATA_dst_sel.memory}
_COPY_MEMORY: Final = {pm4.COPY_DATA_src_sel.tc_l2, pm4.COPY_DATA_src_sel.tc_l2_obsolete}
_COPY_TO_MEMORY: Final = {pm4.COPY_DATA_dst_sel.tc_l2, pm4.COPY_DATA_dst_sel.tc_l2_obsolete}
_COPY_CLOCKS: Final = {pm4.COPY_DATA_src_sel.gpu_clock_count, pm4.COPY_DATA_src_sel.system_clock_count}
_DMA_MEMORY: Final = {0, 3}   # DMA_DATA's src_sel and dst_sel: an address, in memory or in L2
_DMA_DATA: Final = 2          # src_sel: the dword of the packet
_SIGNAL_VALUE: Final = 8      # bytes to amd_signal_t.value, of what a signal's handle names (amd_hsa_signal.h)
_IDLE_EVENTS: Final = {"CS_PARTIAL_FLUSH"}
_COHER: Final = 8             # ACQUIRE_MEM's coher_size and coher_base count 256 bytes (PAL's packet headers)
_LINES: Final = 1024          # of a window that are told one by one
_SYSTEM: Final = hsa.HSA_FENCE_SCOPE_SYSTEM

Effects = Iterator[Effect]


def effects(packet: Any) -> list[Effect]:
  """What a packet of PM4, SDMA or AQL does; nothing for one that only sets registers."""
  found = _TABLE.get(type(packet)) or _NAMED.get(type(packet).__name__)
  return [] if found is None else list(found(packet))


def _wait_reg_mem(p: Any) -> Effects:
  if p.mem_space != pm4.WAIT_REG_MEM_mem_space.memory_space: return
  if p.operation == pm4.WAIT_REG_MEM_operation.wr_wait_wr_reg: return
  size = 8 if isinstance(p, pm4.WAIT_REG_MEM64) else 4
  yield Effect(Does.WAIT, p.mem_poll_addr & ~(size - 1), size, p.reference, _function(p.function), p.mask)


def _function(number: int) -> str: return _FUNCTIONS[number] if number < len(_FUNCTIONS) else "always"


def _release_mem(p: Any) -> Effects:
  if hasattr(p, "tc_wb_action_ena"): back = p.tc_wb_action_ena
  else: back = _gcr_bits(pm4.RELEASE_MEM_GCR_CNTL, p.gcr_cntl).GL2_WB
  yield Effect(Does.RELEASE, value=Caches.SHARED if back else 0, clock=Clock.BEHIND)
  if (size := _DATA_BYTES.get(p.data_sel)) and p.address:
    kind = Does.STAMP if p.data_sel in _CLOCKS else Does.SIGNAL
    compare = "+" if p.data_sel == pm4.RELEASE_MEM_data_sel.atomic_add32bit_low else ""
    yield Effect(kind, p.address, size, p.data & (1 << 8 * size) - 1, compare, clock=Clock.BEHIND)
  if p.int_sel: yield Effect(Does.INTERRUPT, value=p.int_ctxid, clock=Clock.BEHIND)


def _write_data(p: Any) -> Effects:
  if p.dst_sel not in _MEMORY or not p.payload: return
  count = 1 if p.addr_incr else len(p.payload)
  address, size = p.dst_mem_addr & ~3, 4 * count
  if size > 8:
    yield Effect(Does.WRITE, address, size)
    return
  value = sum(w << 32 * i for i, w in enumerate(p.payload[:count]))
  yield Effect(Does.SIGNAL, address, size, value)


def _copy_data(p: Any) -> Effects:
  size = 8 if p.count_sel else 4
  if p.src_sel in _COPY_MEMORY: yield Effect(Does.READ, p.src_addr & ~(size - 1), size)
  if p.dst_sel in _COPY_TO_MEMORY:
    address = p.dst_addr & ~(size - 1)
    if p.src_sel == pm4.COPY_DATA_src_sel.immediate_data: yield Effect(Does.SIGNAL, address, size, p.src_addr)
    else: yield Effect(Does.STAMP if p.src_sel in _COPY_CLOCKS else Does.WRITE, address, size)


def _dma_data(p: Any) -> Effects:
  if p.src_sel in _DMA_MEMORY:
    yield Effect(Does.READ, p.src_addr_lo_or_data | p.src_addr_hi << 32, p.byte_count)
  if p.dst_sel in _DMA_MEMORY: yield Effect(Does.WRITE, p.dst_addr, p.byte_count)


def _atomic_mem(p: Any) -> Effects: yield Effect(Does.ATOMIC, p.addr, 8, p.src_data)


def _acquire_mem(p: Any) -> Effects:
  if hasattr(p, "coher_cntl"):
    whole = p.coher_size == next(f for f in p.FIELDS if f.name == "coher_size").limit
    address, size = (0, 0) if whole else (p.coher_base << _COHER, p.coher_size << _COHER)
    yield Effect(Does.ACQUIRE, address, size, _coherent(p.coher_cntl))
    return
  gcr = _gcr_bits(pm4.ACQUIRE_MEM_GCR_CNTL, p.gcr_cntl)
  caches = _invalidated(gcr)
  ranged = gcr.GL1_RANGE or gcr.GL2_RANGE
  address, size = (p.coher_base << _COHER, p.coher_size << _COHER) if ranged else (0, 0)
  yield Effect(Does.ACQUIRE, address, size, caches)


def _gcr_bits(register: Any, value: int) -> Any: return register.decode(value & sum(f.mask for f in register.FIELDS))


def _invalidated(gcr: Any) -> int:
  """What GCR's bits make forget what it holds."""
  return int((Caches.DATA if gcr.GLV_INV and gcr.GL1_INV else 0) | (Caches.SCALAR if gcr.GLK_INV else 0)
             | (Caches.CODE if gcr.GLI_INV else 0) | (Caches.SHARED if gcr.GL2_INV else 0))


def _coherent(bits: int) -> int:
  """What gfx9's bits make forget what it holds (CP_COHER_CNTL)."""
  from tinyhw.autogen.gc_9_4_3 import CP_COHER_CNTL  # gfx9's registers load with its first packet
  asked = CP_COHER_CNTL.decode(bits)
  return int((Caches.DATA if asked.TCL1_ACTION_ENA else 0) | (Caches.SCALAR if asked.SH_KCACHE_ACTION_ENA else 0)
             | (Caches.CODE if asked.SH_ICACHE_ACTION_ENA else 0) | (Caches.SHARED if asked.TC_ACTION_ENA else 0))


def _event_write(p: Any) -> Effects:
  names = pm4.VGT_EVENT_TYPE._value2member_map_
  if p.event_type in names and pm4.VGT_EVENT_TYPE(p.event_type).name in _IDLE_EVENTS: yield Effect(Does.IDLE)


def _dispatch(p: Any) -> Effects: yield Effect(Does.LAUNCH)


def _dispatch_indirect(p: Any) -> Effects:
  yield Effect(Does.READ, p.addr, 12)
  yield Effect(Does.LAUNCH)


def _indirect(p: Any) -> Effects: yield Effect(Does.CALL, p.ib_base, p.ib_size * 4)


def _timestamp(p: Any) -> Effects:
  if p.enable_bottom: yield Effect(Does.STAMP, p.pipe_bot_addr, 8, clock=Clock.BEHIND)
  if p.enable_top: yield Effect(Does.STAMP, p.pipe_top_addr, 8)


def _cond_exec(p: Any) -> Effects: yield Effect(Does.READ, p.addr, 4)


# ---- SDMA

def _copy_linear(p: Any) -> Effects:
  yield Effect(Does.READ, p.src_addr, p.count + 1)
  yield Effect(Does.WRITE, p.dst_addr, p.count + 1)


def _copy_window(p: Any) -> Effects:
  """Lines of a box of elements (radv_sdma_emit_copy_linear_sub_window): one range a line; where they are very many, one
  from the first byte to the last."""
  unit = 1 << p.elementsize
  for does, side in ((Does.READ, "src"), (Does.WRITE, "dst")):
    def of(name: str, side: str = side) -> int: return int(getattr(p, f"{side}_{name}"))
    pitch, slices = of("pitch") + 1, of("slice_pitch") + 1
    first = of("addr") + (of("x") + of("y") * pitch + of("z") * slices) * unit
    if (p.rect_z + 1) * (p.rect_y + 1) > _LINES:
      yield Effect(does, first, (p.rect_z * slices + p.rect_y * pitch + p.rect_x + 1) * unit)
      continue
    for z in range(p.rect_z + 1):
      for y in range(p.rect_y + 1): yield Effect(does, first + (z * slices + y * pitch) * unit, (p.rect_x + 1) * unit)


def _copy_broadcast(p: Any) -> Effects:
  yield Effect(Does.READ, p.src_addr, p.count + 1)
  yield Effect(Does.WRITE, p.dst1_addr, p.count + 1)
  yield Effect(Does.WRITE, p.dst2_addr, p.count + 1)


def _write_untiled(p: Any) -> Effects: yield Effect(Does.WRITE, p.dst_addr, 4 * len(p.payload))


def _constant_fill(p: Any) -> Effects:
  yield Effect(Does.WRITE, p.dst_addr, (p.count >> 2) + 1 << 2 if p.fillsize == 2 else p.count + 1)


def _fence(p: Any) -> Effects: yield Effect(Does.SIGNAL, p.addr, 4, p.data, clock=Clock.BEHIND)


def _poll(p: Any) -> Effects:
  if p.mem_poll and not p.hdp_flush: yield Effect(Does.WAIT, p.addr, 4, p.value, _function(p.func), p.mask)


def _sdma_atomic(p: Any) -> Effects: yield Effect(Does.ATOMIC, p.addr, 8, p.src_data)


def _gcr(p: Any) -> Effects:
  c = p.gcr_control
  yield Effect(Does.RELEASE, value=Caches.SHARED if c & sdma.SDMA_GCR_GL2_WB else 0)
  caches = ((Caches.SHARED if c & sdma.SDMA_GCR_GL2_INV else 0) | (Caches.SCALAR if c & sdma.SDMA_GCR_GLK_INV else 0)
            | (Caches.DATA if c & sdma.SDMA_GCR_GLV_INV and c & sdma.SDMA_GCR_GL1_INV else 0))
  yield Effect(Does.ACQUIRE, value=int(caches))


def _trap(p: Any) -> Effects: yield Effect(Does.INTERRUPT, value=p.int_context)


def _time(p: Any) -> Effects: yield Effect(Does.STAMP, p.write_addr, 8)


def _sdma_cond(p: Any) -> Effects: yield Effect(Does.READ, p.addr, 4)


# ---- AQL

def _aql_header(p: Any) -> tuple[bool, int, int]:
  """(barrier bit, acquire scope, release scope)."""
  h = int(p.header)
  scopes = (1 << hsa.HSA_PACKET_HEADER_WIDTH_SCACQUIRE_FENCE_SCOPE) - 1
  return (bool(h >> hsa.HSA_PACKET_HEADER_BARRIER & 1), h >> hsa.HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & scopes,
          h >> hsa.HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE & scopes)


def _aql(p: Any, *inner: Effect) -> Effects:
  barrier, acquire, release = _aql_header(p)
  if barrier: yield Effect(Does.IDLE)
  if acquire: yield Effect(Does.ACQUIRE, value=int(ALL_CACHES if acquire == _SYSTEM else ALL_CACHES & ~Caches.SHARED))
  yield from inner
  if release: yield Effect(Does.RELEASE, value=Caches.SHARED if release == _SYSTEM else 0, clock=Clock.BEHIND)
  handle = int(p.completion_signal.handle)
  if handle: yield Effect(Does.SIGNAL, handle + _SIGNAL_VALUE, 8, 1, "-", clock=Clock.BEHIND)


def _aql_dispatch(p: Any) -> Effects: return _aql(p, Effect(Does.LAUNCH))


def _aql_barrier_and(p: Any) -> Effects:
  return _aql(p, *(Effect(Does.WAIT, int(s.handle) + _SIGNAL_VALUE, 8, 0, "==") for s in p.dep_signal if s.handle))


def _aql_agent(p: Any) -> Effects: return _aql(p)


_TABLE: Final[dict[type, Callable[[Any], Effects]]] = {
  pm4.WAIT_REG_MEM: _wait_reg_mem, pm4.WAIT_REG_MEM64: _wait_reg_mem, pm4.RELEASE_MEM: _release_mem,
  pm4.WRITE_DATA: _write_data, pm4.COPY_DATA: _copy_data, pm4.DMA_DATA: _dma_data, pm4.ATOMIC_MEM: _atomic_mem,
  pm4.ACQUIRE_MEM: _acquire_mem, pm4.EVENT_WRITE: _event_write, pm4.DISPATCH_DIRECT: _dispatch,
  pm4.DISPATCH_INDIRECT: _dispatch_indirect, pm4.INDIRECT_BUFFER: _indirect, pm4.TIMESTAMP: _timestamp,
  pm4.COND_EXEC: _cond_exec,
  sdma.SDMA_PKT_COPY_LINEAR: _copy_linear, sdma.SDMA_PKT_COPY_BROADCAST_LINEAR: _copy_broadcast,
  sdma.SDMA_PKT_COPY_LINEAR_SUBWIN: _copy_window,
  sdma.SDMA_PKT_WRITE_UNTILED: _write_untiled, sdma.SDMA_PKT_CONSTANT_FILL: _constant_fill,
  sdma.SDMA_PKT_FENCE: _fence, sdma.SDMA_PKT_POLL_REGMEM: _poll, sdma.SDMA_PKT_ATOMIC: _sdma_atomic,
  sdma.SDMA_PKT_GCR_REQ: _gcr, sdma.SDMA_PKT_GCR_USER: _gcr, sdma.SDMA_PKT_TRAP: _trap,
  sdma.SDMA_PKT_TIMESTAMP_GET: _time, sdma.SDMA_PKT_TIMESTAMP_GET_GLOBAL: _time, sdma.SDMA_PKT_COND_EXE: _sdma_cond,
  sdma.SDMA_PKT_INDIRECT: _indirect,
  hsa.hsa_kernel_dispatch_packet_t: _aql_dispatch, hsa.hsa_barrier_and_packet_t: _aql_barrier_and,
  hsa.hsa_barrier_or_packet_t: _aql_barrier_and, hsa.hsa_agent_dispatch_packet_t: _aql_agent}
# gfx9's packets by the names of those that do the same.
_NAMED: Final = {cls.__name__: does for cls, does in _TABLE.items()}
