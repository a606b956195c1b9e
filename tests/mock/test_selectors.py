"""Each selector of a packet works or is refused by its name; what sysfs holds; calls at the ends of their ranges."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.mock.client import FLAGS, GTT, USERPTR, VRAM, Client
from tests.mock.test_aql import AqlClient, barrier
from tests.mock.test_queues import MEMORY, release, wait, write
from tests.mock.test_single_packets import copy_data
from tests.mock.test_waves import settings
from tinyhw.autogen import amdhsa, hsa, kfd
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.core.errors import Unsupported
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
from tinyhw.mock.memory import UserMemory
from tinyhw.wire import pm4

SYSFS = Path(__file__).parent / "sysfs_gfx1100_2.txt"
SOURCE, TARGET = p4.COPY_DATA_src_sel, p4.COPY_DATA_dst_sel


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.port.end()


def outcome(packet: Any, copy: bool = False) -> str:
  """What becomes of a packet on a queue of its own: "ready", "hung", ... or the name of what is not modelled."""
  client = Client()
  queue = client.queue(copy=copy)
  memory = client.alloc(8192)
  queue.submit(packet(memory.address))
  try:
    client.run()
  except Unsupported as error:
    return str(error)
  finally:
    state = queue.state
  report = " ".join(client.machine.report())
  client.port.end()
  return state if state != "hung" else f"hung: {report}"


def test_what_copy_data_reads_and_writes() -> None:
  works = {
    SOURCE.mem_mapped_register,
    SOURCE.tc_l2,
    SOURCE.tc_l2_obsolete,
    SOURCE.immediate_data,
    SOURCE.gpu_clock_count,
    SOURCE.atomic_return_data,
  }
  for source in SOURCE:
    found = outcome(
      lambda at, s=source: copy_data(
        s, TARGET.tc_l2, dst_addr=at + 64, src_addr=gc.GRBM_STATUS.OFFSET if s == SOURCE.mem_mapped_register else at
      )
    )
    if source in works:
      assert found == "ready", source.name
    else:
      assert f"COPY_DATA.src_sel = {source.value}" in found
  for target in TARGET:
    if target == TARGET.mem_mapped_register:
      continue
    found = outcome(lambda at, t=target: copy_data(SOURCE.immediate_data, t, src_addr=1, dst_addr=at))
    if target in (TARGET.tc_l2, TARGET.tc_l2_obsolete):
      assert found == "ready"
    else:
      assert f"COPY_DATA.dst_sel = {target.value}" in found
  for wide in (0, 1):
    for at in (2, 4):
      found = outcome(
        lambda a, w=wide, at=at: copy_data(SOURCE.tc_l2, TARGET.tc_l2, src_addr=a, dst_addr=a + at, count_sel=w)
      )
      assert found.startswith("hung" if at % (8 if wide else 4) else "ready")


def test_the_clock_and_the_idle_chip_are_registers(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  for k, register in enumerate(
    (gc.RLC_GPU_CLOCK_COUNT_LSB, gc.RLC_GPU_CLOCK_COUNT_MSB, gc.GRBM_STATUS, gc.GRBM_STATUS2)
  ):
    queue.submit(
      copy_data(SOURCE.mem_mapped_register, TARGET.tc_l2, src_addr=register.OFFSET, dst_addr=memory.address + 4 * k)
    )
  memory.u32[2] = memory.u32[3] = 7
  client.run()
  assert queue.state == "ready" and 0 < memory.u64[0] <= client.machine.gpus[0].counter() and memory.u64[1] == 0
  assert "read on" in outcome(
    lambda at: copy_data(SOURCE.mem_mapped_register, TARGET.tc_l2, src_addr=0x2FFF, dst_addr=at)
  )


def test_what_write_data_writes(client: Client) -> None:
  selectors = p4.WRITE_DATA_dst_sel
  for target in selectors:
    if target == selectors.mem_mapped_register:
      continue
    found = outcome(lambda at, t=target: p4.WRITE_DATA(dst_sel=t, dst_mem_addr=at, payload=(1,)))
    if target in (selectors.tc_l2, selectors.memory):
      assert found == "ready"
    else:
      assert f"WRITE_DATA.dst_sel = {target.value}" in found
  assert outcome(lambda at: p4.WRITE_DATA(dst_sel=selectors.memory, dst_mem_addr=at, payload=(1,))) == "ready"
  queue, memory = client.queue(), client.alloc(4096)
  first = gc.COMPUTE_USER_DATA_0.OFFSET
  queue.submit(
    p4.WRITE_DATA(dst_sel=selectors.memory, addr_incr=1, dst_mem_addr=memory.address, payload=(5, 6, 7)),
    p4.WRITE_DATA(dst_sel=selectors.mem_mapped_register, dst_mem_addr=first, payload=(11, 12, 13)),
    p4.WRITE_DATA(dst_sel=selectors.mem_mapped_register, addr_incr=1, dst_mem_addr=first + 4, payload=(21, 22)),
    *(
      copy_data(SOURCE.mem_mapped_register, TARGET.tc_l2, src_addr=first + k, dst_addr=memory.address + 64 + 4 * k)
      for k in (0, 1, 2, 4)
    ),
  )
  memory.u32[1] = 0xFFFFFFFF
  client.run()
  assert queue.state == "ready" and memory.u32[:4].tolist() == [7, 0xFFFFFFFF, 0, 0]
  assert memory.u32[16:21].tolist() == [11, 12, 13, 0, 22]


def test_what_dma_data_moves(client: Client) -> None:
  source, target = p4.DMA_DATA_src_sel, p4.DMA_DATA_dst_sel
  queue, memory = client.queue(), client.alloc(4096)
  at = memory.address
  memory.view[:5] = b"hello"
  moved = {"dst_sel": target.dst_addr_using_l2, "dst_addr": at + 101, "byte_count": 5}
  queue.submit(
    p4.DMA_DATA(src_sel=source.src_addr_using_l2, src_addr_lo_or_data=at & 0xFFFFFFFF, src_addr_hi=at >> 32, **moved)
  )
  client.run()
  assert queue.state == "ready" and bytes(memory.view[100:107]) == b"\0hello\0" and at >> 32

  def asked(**values: int) -> str:
    return outcome(
      lambda a: p4.DMA_DATA(
        **(
          {
            "src_sel": source.data,
            "dst_sel": target.dst_addr_using_l2,
            "src_addr_lo_or_data": 3,
            "src_addr_hi": 0,
            "dst_addr": a + 8,
            "byte_count": 8,
          }
          | values
        )
      )
    )

  assert asked() == asked(dst_sel=target.dst_addr_using_das) == "ready"
  assert "DMA_DATA.dst_sel" in asked(das=1)
  for name in ("saic", "daic"):
    assert "DMA_DATA without address increment" in asked(**{name: 1})
  for value in {t.value for t in target} - {target.dst_addr_using_das, target.dst_addr_using_l2}:
    assert f"DMA_DATA.dst_sel = {value}" in asked(dst_sel=value)
  for value in {t.value for t in source} - {source.data, source.src_addr_using_sas, source.src_addr_using_l2}:
    assert f"DMA_DATA.src_sel = {value}" in asked(src_sel=value)
  assert asked(byte_count=6).startswith("hung") and asked(byte_count=0) == "ready"


def test_what_release_mem_writes(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  select, interrupts = p4.RELEASE_MEM_data_sel, p4.RELEASE_MEM_int_sel
  memory.u64[0] = 0x7_0000_0005
  for k in range(1, 6):
    memory.u64[k] = 0xEE_0000_00EE
  at = memory.address
  queue.submit(
    release(at, 0x1_FFFF_FFFE, select.atomic_add32bit_low),
    release(at + 8, 0x1_2345_6789, select.send_32_bit_low),
    release(at + 16, 0x1_2345_6789),
    release(at + 24, 9, select.none),
    release(at + 32, 9, interrupt=interrupts.send_interrupt_only),
  )
  client.run()
  assert queue.state == "ready", client.machine.report()
  assert memory.u64[1:5].tolist() == [0xEE_2345_6789, 0x1_2345_6789, 0xEE_0000_00EE, 0xEE_0000_00EE]
  assert memory.u64[0] == 0x7_0000_0003  # 5 - 2, in 32 bits
  for value in range(8):
    found = outcome(lambda a, v=value: release(a, 1, v))
    assert found == "ready" or f"RELEASE_MEM.data_sel = {value}" in found
  assert outcome(lambda a: release(a + 4, 1)).startswith("hung") and outcome(lambda a: release(a + 4, 1, 1)) == "ready"
  assert "RELEASE_MEM.dst_sel = 2" in outcome(
    lambda a: p4.RELEASE_MEM(
      event_type=p4.VGT_EVENT_TYPE.CACHE_FLUSH_AND_INV_TS_EVENT,
      event_index=5,
      data_sel=1,
      address=a,
      data=0,
      int_ctxid=0,
      dst_sel=2,
    )
  )


PLAIN = {
  "RELEASE_MEM": (
    lambda at, **v: p4.RELEASE_MEM(event_type=20, event_index=5, data_sel=1, address=at, data=0, int_ctxid=0, **v),
    ("wait_sync", "pq_exe_status", "mes_intr_pipe", "mes_action_id"),
  ),
  "WAIT_REG_MEM": (
    lambda at, **v: p4.WAIT_REG_MEM(function=3, mem_space=MEMORY, mem_poll_addr=at, reference=0, mask=1, **v),
    ("mes_intr_pipe", "mes_action", "optimize_ace_offload_mode"),
  ),
  "COPY_DATA": (lambda at, **v: p4.COPY_DATA(src_sel=5, dst_sel=2, src_addr=1, dst_addr=at, **v), ("pq_exe_status",)),
  "INDIRECT_BUFFER": (
    lambda at, **v: p4.INDIRECT_BUFFER(ib_base=at, ib_size=0, valid=1, **v),
    ("offload_polling", "vmid"),
  ),
  "EVENT_WRITE": (
    lambda at, **v: p4.EVENT_WRITE(event_type=7, event_index=4, **v),
    ("offload_enable", "samp_plst_cntr_mode"),
  ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_fields_that_user_queues_leave_zero(name: str) -> None:
  make, fields = PLAIN[name]
  assert outcome(lambda at: make(at)) == "ready"
  for field in fields:
    assert f"{name}.{field} = 1" in outcome(lambda at, f=field: make(at, **{f: 1}))


@pytest.mark.parametrize(
  ("wide", "mask", "text"),
  [
    (False, 0xFFFF_FFFF, ">= 0x5"),
    (False, 0xFF, ">= 0x5 under mask 0xff"),
    (True, (1 << 64) - 1, ">= 0x5"),
    (True, 0xFFFF_FFFF, ">= 0x5 under mask 0xffffffff"),
  ],
)
def test_a_wait_says_what_it_wants(client: Client, wide: bool, mask: int, text: str) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  kind: Any = p4.WAIT_REG_MEM64 if wide else p4.WAIT_REG_MEM
  memory.u64[0] = 0 if mask >> 32 else 1 << 40 | 0x300
  queue.submit(kind(function=5, mem_space=MEMORY, mem_poll_addr=memory.address, reference=5, mask=mask))
  memory.u32[0] = 0
  client.run()
  (line,) = [x for x in client.machine.report() if "waits for" in x]
  assert f"{kind.__name__} waits for [{memory.address:#x}] {text}" in line and ("mask" in line) == ("mask" in text)
  memory.u32[0] = 0x105
  client.run()
  assert queue.state == "ready"
  assert outcome(lambda at: kind(function=7, mem_space=MEMORY, mem_poll_addr=at, reference=5, mask=1)).startswith(
    "hung"
  )
  assert outcome(lambda at: kind(function=3, mem_space=MEMORY, mem_poll_addr=at + 2, reference=0, mask=1)).startswith(
    "hung"
  )


def test_a_wait_may_write_a_register_first(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  first, second = gc.COMPUTE_USER_DATA_0.OFFSET, gc.COMPUTE_USER_DATA_1.OFFSET
  both = p4.WAIT_REG_MEM_operation.wr_wait_wr_reg
  queue.submit(
    pm4.set_sh_reg(gc.COMPUTE_USER_DATA_1, 0x55),
    p4.WAIT_REG_MEM(function=3, operation=both, mem_poll_addr=first | second << 32, reference=0x55, mask=0xFF),
    copy_data(SOURCE.mem_mapped_register, TARGET.tc_l2, src_addr=first, dst_addr=memory.address),
  )
  client.run()
  assert queue.state == "ready" and memory.u32[0] == 0x55


@pytest.mark.parametrize(
  "packet",
  [
    lambda at: p4.SET_SH_REG(reg_offset=0x3FF, payload=(1, 2)),
    lambda at: p4.SET_SH_REG(reg_offset=0, payload=()),
    lambda at: p4.INDIRECT_BUFFER(ib_base=at, ib_size=4),
    lambda at: p4.DISPATCH_INDIRECT(addr=at + 2, dispatch_initiator=1),
  ],
)
def test_packets_that_hang_a_queue(packet: Any) -> None:
  assert outcome(packet).startswith("hung")


def test_a_dispatch_whose_size_is_in_memory() -> None:
  client, ran = Client(Machine()), []
  client.machine.execute = lambda queue, program, size, user: ran.append(size)  # type: ignore[method-assign]  # a recorder
  queue, code, memory = client.queue(), client.alloc(4096, VRAM), client.alloc(4096)
  memory.u32[1], memory.u32[2], memory.u32[3] = 2, 3, 4
  queue.submit(*settings(code.address)[:-1], p4.DISPATCH_INDIRECT(addr=memory.address + 4, dispatch_initiator=0x8005))
  memory.u32[8] = 1
  queue.submit(p4.DISPATCH_INDIRECT(addr=memory.address + 32, dispatch_initiator=0x8005))  # 1 x 0 x 0: nothing runs
  client.run()
  assert ran == [(2, 3, 4)] and queue.state == "ready"
  client.port.end()


# ---- the copy engine


def test_a_fill_goes_on_across_memory_that_lies_apart(client: Client) -> None:
  """The pattern's bytes go on where the first mapping ends amid a dword."""
  queue = client.queue(copy=True)
  at = client.port.reserve(8192)
  parts = [client.alloc(4096, address=at), client.alloc(4096, address=at + 4096)]
  queue.submit(
    s6.SDMA_PKT_CONSTANT_FILL(fillsize=2, dst_addr=at + 4088, src_data=0x04030201, count=15),
    s6.SDMA_PKT_CONSTANT_FILL(fillsize=0, dst_addr=at + 3001, src_data=0xAB, count=2),
  )
  client.run()
  assert queue.state == "ready" and bytes(parts[0].view[4084:]) == bytes(4) + b"\1\2\3\4" * 2
  assert bytes(parts[1].view[:12]) == b"\1\2\3\4" * 2 + bytes(4)
  assert bytes(parts[0].view[3000:3005]) == b"\0\xab\xab\xab\0"
  assert "fillsize = 1" in outcome(
    lambda a: s6.SDMA_PKT_CONSTANT_FILL(fillsize=1, dst_addr=a, src_data=0, count=3), copy=True
  )
  for wrong in (
    lambda a: s6.SDMA_PKT_FENCE(addr=a + 2, data=1),
    lambda a: s6.SDMA_PKT_COND_EXE(addr=a + 1, reference=0),
    lambda a: s6.SDMA_PKT_WRITE_UNTILED(dst_addr=a + 1, count=0, payload=(1,)),
    lambda a: s6.SDMA_PKT_CONSTANT_FILL(fillsize=2, dst_addr=a + 1, src_data=0, count=3),
  ):
    try:
      made = wrong(0)
    except Exception:
      continue
    if made.encode()[1] & 3:
      assert outcome(wrong, copy=True).startswith("hung")


# ---- AQL


def test_user_registers_are_in_the_abis_order() -> None:
  """AMDGPUUsage, "SGPR Register Set Up Order", for each combination of what a kernel may ask for."""
  client = Client(Machine())
  q, seen = AqlClient(client), []
  client.machine.execute = lambda queue, program, size, user: seen.append((program, size, user))  # type: ignore[method-assign]  # a recorder
  d = amdhsa
  parts = (
    ("PRIVATE_SEGMENT_BUFFER", 4),
    ("DISPATCH_PTR", 2),
    ("QUEUE_PTR", 2),
    ("KERNARG_SEGMENT_PTR", 2),
    ("DISPATCH_ID", 2),
    ("FLAT_SCRATCH_INIT", 2),
    ("PRIVATE_SEGMENT_SIZE", 1),
  )
  at = q.store - q.image.address
  original = d.kernel_descriptor_t.from_buffer_copy(q.image.view[at : at + 64])
  for chosen in (0b0001000, 0b1111111, 0b1010101, 0b0101010, 0b0000001, 0b1000110):
    flags, want = 0, []
    slot = q.index
    for k, (name, count) in enumerate(parts):
      if not chosen >> k & 1:
        continue
      flags |= getattr(d, f"KERNEL_CODE_PROPERTY_ENABLE_SGPR_{name}")
      value = {
        "DISPATCH_PTR": q.ring.address + 64 * slot,
        "QUEUE_PTR": q.state.address,
        "DISPATCH_ID": slot,
        "KERNARG_SEGMENT_PTR": q.arguments.address,
      }.get(name, 0)
      want += [value & 0xFFFFFFFF, value >> 32, 0, 0][:count]
    changed = d.kernel_descriptor_t.from_buffer_copy(original)
    changed.kernel_code_properties = flags | d.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32
    rsrc2 = gc.COMPUTE_PGM_RSRC2.decode(changed.compute_pgm_rsrc2)
    rsrc2.USER_SGPR = len(want)
    changed.compute_pgm_rsrc2 = rsrc2.value()
    q.image.view[at : at + 64] = bytes(changed)
    packet = q.launch(3, 0)
    packet.group_segment_size = 1000
    q.put(packet)
    client.run()
    program, size, user = seen[-1]
    assert list(user) == want and size == (3, 1, 1) and len(seen) == slot + 1
    assert program.block == (32, 1, 1) and program.lds_size >= 1000 and program.wave32
  client.port.end()


@pytest.mark.parametrize(
  ("change", "text"),
  [
    ({"setup": 0}, "0 dimensions"),
    ({"setup": 1, "workgroup_size_y": 2, "grid_size_y": 2}, "with 1 dimensions"),
    ({"setup": 2, "grid_size_z": 2}, "with 2 dimensions"),
    ({"workgroup_size_x": 0}, r"workgroups of \(0, 1, 1\)"),
  ],
)
def test_dispatches_that_the_packet_processor_refuses(change: dict[str, int], text: str) -> None:
  client = Client(Machine())
  q = AqlClient(client)
  packet = q.launch(1, 0)
  for name, value in change.items():
    setattr(packet, name, value)
  q.put(packet)
  client.run()
  assert q.queue.state.value == "hung"
  import re

  assert re.search(text, str(client.machine.report())), client.machine.report()
  client.port.end()


def test_a_doorbell_beyond_the_ring_hangs_the_queue() -> None:
  for index, state in ((63, "ready"), (64, "hung")):
    client = Client(Machine())
    q = AqlClient(client)
    client.port.doorbell(q.doorbell, index)
    client.run()
    assert q.queue.state.value == state
    if state == "hung":
      assert "with read index 0x0 and 64 slots" in str(client.machine.report())
    client.port.end()


def test_a_completion_touches_its_own_words_only() -> None:
  client = Client(Machine())
  q = AqlClient(client)
  page = client.alloc(kfd.KFD_SIGNAL_EVENT_LIMIT * 8)
  event = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1, event_page_offset=page.handle)
  for k in range(4096):
    page.u64[k] = (1 << 64) - 1
  handle, base = q.signal(1, 5), hsa.amd_signal_t
  size = ctypes.sizeof(base)
  at = size + base.event_mailbox_ptr.offset
  q.signals.view[at : at + 8] = (page.address + 8 * event.event_id).to_bytes(8, "little")
  at = size + base.event_id.offset
  q.signals.view[at : at + 4] = event.event_id.to_bytes(4, "little")
  q.put(barrier(done=handle))
  client.run()
  assert q.value(1) == 4 and q.queue.read == 1 and q.queue.packets == 1
  assert client.wait_events([event.event_id])[0] == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  around = [page.u64[event.event_id + k] for k in (-1, 1)]
  assert around == [(1 << 64) - 1] * 2
  client.port.end()


# ---- events


def test_event_ids_and_their_ends(client: Client) -> None:
  """Slots come first and are few until the page is mapped; other events count from half of the range."""
  first = client.event()
  assert first.event_id == 1 and first.event_slot_index == 1 and first.event_page_offset == 2 << 62
  others = [client.event(kfd.KFD_IOC_EVENT_MEMORY).event_id for _ in range(3)]
  assert others == [0x4000_0000, 0x4000_0001, 0x4000_0002]
  client.call("DESTROY_EVENT", event_id=others[1])
  assert client.event(kfd.KFD_IOC_EVENT_HW_EXCEPTION).event_id == others[1]
  for event_id in others:
    assert (
      client.errno("RESET_EVENT", event_id=event_id) == client.errno("SET_EVENT", event_id=event_id) == errno.EINVAL
    )
  ids = [first.event_id]
  while (code := client.errno("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL)) == 0:
    ids.append(len(ids) + 1)
  assert code == errno.ENOSPC and len(ids) == 255
  client.call("DESTROY_EVENT", event_id=7)
  assert (
    client.event().event_id == 7 and client.errno("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL) == errno.ENOSPC
  )


def test_an_event_page_is_large_enough_and_set_once(client: Client) -> None:
  small, page = client.alloc(4096 * 8 - 4096), client.alloc(4096 * 8)
  create = {"event_type": kfd.KFD_IOC_EVENT_SIGNAL}
  assert client.errno("CREATE_EVENT", **create, event_page_offset=small.handle) == errno.EINVAL
  assert client.errno("CREATE_EVENT", **create, event_page_offset=page.handle) == 0
  assert client.errno("CREATE_EVENT", **create, event_page_offset=page.handle) == errno.EINVAL
  client.unmap(page.handle, [0])
  assert client.errno("FREE_MEMORY_OF_GPU", handle=page.handle) == errno.EPERM, "it stays until the process ends"
  client.unmap(small.handle, [0])
  assert client.errno("FREE_MEMORY_OF_GPU", handle=small.handle) == 0


# ---- memory


def test_handles_and_memory_come_again(client: Client) -> None:
  gpu = client.gpu_ids[0]

  def free() -> int:
    return int(client.call("AVAILABLE_MEMORY", gpu_id=gpu).available)

  before = free()
  made = [
    client.call("ALLOC_MEMORY_OF_GPU", va_addr=(k + 1) << 21, size=2 << 20, gpu_id=gpu, flags=VRAM | FLAGS)
    for k in range(3)
  ]
  assert [m.handle for m in made] == [gpu << 32 | k for k in range(3)] and len({m.mmap_offset for m in made}) == 3
  assert before - free() >= 3 * (2 << 20)
  client.call("FREE_MEMORY_OF_GPU", handle=made[1].handle)
  again = client.call("ALLOC_MEMORY_OF_GPU", va_addr=2 << 21, size=2 << 20, gpu_id=gpu, flags=VRAM | FLAGS)
  assert (again.handle, again.mmap_offset) == (made[1].handle, made[1].mmap_offset)
  for m in (made[0], again, made[2]):
    client.call("FREE_MEMORY_OF_GPU", handle=m.handle)
  assert free() == before


def test_user_memory_has_to_be_there() -> None:
  """get_user_pages: each page readable, and writable where that is asked for."""
  pages, user = mmap.mmap(-1, 4 * 4096), UserMemory()
  at = ctypes.addressof(ctypes.c_char.from_buffer(pages))
  libc = ctypes.CDLL(None, use_errno=True)
  assert libc.mprotect(ctypes.c_void_p(at + 4096), 4096, mmap.PROT_READ) == 0
  assert libc.mprotect(ctypes.c_void_p(at + 3 * 4096), 4096, 0) == 0
  for start, size, readable, writable in (
    (0, 4096, True, True),
    (100, 10, True, True),
    (0, 4097, True, False),
    (4096, 4096, True, False),
    (2 * 4096, 4096, True, True),
    (2 * 4096, 4097, False, False),
    (0, 4 * 4096, False, False),
  ):
    assert user.mapped(at + start, size) == readable and user.mapped(at + start, size, True) == writable, (start, size)
  assert not user.mapped(4096, 4096) and not user.mapped((1 << 47) - 4096, 4096)
  assert libc.mprotect(ctypes.c_void_p(at), 4 * 4096, mmap.PROT_READ | mmap.PROT_WRITE) == 0


def test_bytes_of_the_client_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
  """Places in any order and of any size give what reading each of them gives, or the refusal of the one that is bad."""
  user, data = UserMemory(), np.random.default_rng(0).integers(0, 256, 4096, np.uint8)
  base, rng = data.ctypes.data, np.random.default_rng(1)
  for most in (1024, 3):  # also in several calls
    monkeypatch.setattr("tinyhw.mock.memory._PIECES", most)
    for count in (0, 1, 2, 7, 40):
      starts, sizes = rng.integers(0, 2000, count), rng.integers(0, 99, count)
      places = [(base + int(at), int(size)) for at, size in zip(starts, sizes)]
      assert user.gather(places) == b"".join(user.read(*place) for place in places)
    with pytest.raises(OSError, match="8 bytes at 0x10 cannot be read"):
      user.gather([(base, 4), (base + 8, 8), (16, 8), (base, 1)])
  user.close()


def test_a_dmabuf_is_mapped_as_far_as_it_goes(client: Client) -> None:
  memory = client.alloc(8192, GTT)
  fd = client.call("EXPORT_DMABUF", handle=memory.handle).dmabuf_fd
  memory.u32[1024] = 77
  assert client.port.memory(client.port.mmap(fd, 4096, 4096), 4096).cast("I")[0] == 77
  for length, offset in ((8193, 0), (8192, 4096), (4096, 8192)):
    with pytest.raises(OSError) as refused:
      client.port.mmap(fd, length, offset)
    assert refused.value.errno == errno.EINVAL


def test_a_refusal_is_traced_with_its_errno(client: Client) -> None:
  client.machine.trace.enabled = True
  assert client.errno("DESTROY_EVENT", event_id=999) == errno.EINVAL
  found = [e for e in client.machine.trace if e.kind == "refused"]
  assert found and found[-1].fields["errno"] == "EINVAL" and "no event 0x3e7" in str(found[-1])


def test_a_hang_takes_the_gpu_from_all_its_queues() -> None:
  client = Client(Machine("gfx1100,gfx1100"))
  bad, good, copy, other = client.queue(), client.queue(), client.queue(copy=True), client.queue(1)
  watch = client.event(kfd.KFD_IOC_EVENT_HW_EXCEPTION)
  bad.submit(p4.INDIRECT_BUFFER(ib_base=bad.ring.address, ib_size=4))
  client.run()
  assert [q.state for q in (bad, good, copy, other)] == ["hung", "evicted", "evicted", "ready"]
  result, rows = client.wait_events([watch.event_id])
  data = rows[0].hw_exception_data
  assert result == kfd.KFD_IOC_WAIT_RESULT_COMPLETE and data.memory_lost == 1 and data.gpu_id == client.gpu_ids[0]
  assert data.reset_cause == kfd.KFD_HW_EXCEPTION_GPU_HANG and data.reset_type == kfd.KFD_HW_EXCEPTION_WHOLE_GPU_RESET
  devices = client.machine.kfd.processes[os.getpid()].devices
  assert [devices[g].evicted for g in client.gpu_ids] == [1, 0]
  client.port.end()


def test_a_truncated_packet_goes_on_where_it_was(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  words = pm4.stream([write(memory.address + 4 * k, k + 1) for k in range(3)])
  for cut in (3, len(words) // 3 + 1, len(words)):
    queue.push(words[queue.at : cut])
    client.run()
  assert memory.u32[:3].tolist() == [1, 2, 3] and queue.read_pointer == queue.at == len(words)
  copy = client.queue(copy=True)
  fence = [4 | 0 << 8, *(memory.address + 64).to_bytes(8, "little")]
  from tinyhw.wire import sdma

  parts = sdma.stream(
    [s6.SDMA_PKT_FENCE(addr=memory.address + 64, data=5), s6.SDMA_PKT_FENCE(addr=memory.address + 68, data=6)]
  )
  for cut in (2, 5, len(parts)):
    copy.push(parts[copy.at : cut])
    client.run()
  assert memory.u32[16:18].tolist() == [5, 6] and copy.read_pointer == copy.at and len(fence) == 9


# ---- sysfs


def test_the_files_of_two_cards() -> None:
  """The whole tree, as it was when it was held against the kernel's sources. TRANSCRIPTS=write writes it anew."""
  files = MockPort(Machine("gfx1100,gfx1100")).machine.files
  text = "".join(f"== {name}\n{files._files[name]().decode()}" for name in sorted(files._files))
  if os.environ.get("TRANSCRIPTS") == "write":
    SYSFS.write_text(text)
  assert text == SYSFS.read_text()


def test_user_pointers(client: Client) -> None:
  pages = mmap.mmap(-1, 2 * 4096)
  at = ctypes.addressof(ctypes.c_char.from_buffer(pages))
  alloc = {"va_addr": 1 << 30, "size": 4096, "gpu_id": client.gpu_ids[0]}
  assert client.errno("ALLOC_MEMORY_OF_GPU", **alloc, flags=USERPTR | FLAGS, mmap_offset=0) == errno.EINVAL
  assert client.errno("ALLOC_MEMORY_OF_GPU", **alloc, flags=USERPTR | FLAGS, mmap_offset=4096) == errno.EFAULT
  a = client.call("ALLOC_MEMORY_OF_GPU", **alloc, flags=USERPTR | FLAGS, mmap_offset=at)
  client.map(a.handle, [0])
  space = client.machine.kfd.processes[os.getpid()].devices[client.gpu_ids[0]].bind()
  space.store(1 << 30, 4, 0xAABBCCDD)
  assert pages[:4] == b"\xdd\xcc\xbb\xaa"
  for flags in (FLAGS, 0):
    assert client.errno("ALLOC_MEMORY_OF_GPU", **alloc, flags=flags) == errno.EINVAL
  assert client.errno("ALLOC_MEMORY_OF_GPU", **(alloc | {"size": 0}), flags=VRAM | FLAGS) == errno.EINVAL
  assert client.errno("MAP_MEMORY_TO_GPU", handle=a.handle, n_devices=0) == errno.EINVAL
  assert client.errno("MAP_MEMORY_TO_GPU", handle=a.handle, n_devices=1, n_success=2) == errno.EINVAL
  assert client.errno("FREE_MEMORY_OF_GPU", handle=a.handle) == errno.EBUSY


def test_a_queue_that_waits_and_one_that_reads_nothing(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  queue.submit(wait(memory.address, 1))
  client.run()
  assert queue.state == "blocked"
  client.call("DESTROY_QUEUE", queue_id=queue.queue_id)
  assert any("destroyed" in line for line in client.machine.report())
  assert client.errno("DESTROY_QUEUE", queue_id=queue.queue_id) == errno.EINVAL
