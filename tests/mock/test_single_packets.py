"""Single packets and calls of the machine, case by case: atomics, copies, waits, refusals, what it says of itself."""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mock.client import FLAGS, GTT, VRAM, Client
from tests.mock.test_aql import SIGNAL, AqlClient
from tests.mock.test_queues import release, wait, write
from tests.mock.test_waves import settings
from tinyhw.autogen import amdgpu_drm as drm
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import hsa, kfd, kfd_sysfs
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.mock.amd.chip.atomics import OPERATIONS, atomic
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
from tinyhw.mock.memory import reserve_memory, unmap_memory
from tinyhw.wire import pm4

ROOT = "/sys/devices/virtual/kfd/kfd/topology"


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.port.end()


# ---- atomics


def signed(value: int, bits: int) -> int:
  return int.from_bytes(value.to_bytes(bits // 8, "little"), "little", signed=True)


def wanted(name: str, old: int, source: int, compare: int, bits: int) -> int:
  """What an operation stores, by the ISA manual's text of its name."""
  if name in ("SMIN", "SMAX"):
    pick = min if name == "SMIN" else max
    return pick(old, source, key=lambda v: signed(v, bits))
  if name == "INC":
    return 0 if old >= source else old + 1
  if name == "DEC":
    return source if old == 0 or old > source else old - 1
  return {
    "SWAP": source,
    "CMPSWAP": source if old == compare else old,
    "ADD": (old + source) % (1 << bits),
    "SUB": (old - source) % (1 << bits),
    "UMIN": min(old, source),
    "UMAX": max(old, source),
    "AND": old & source,
    "OR": old | source,
    "XOR": old ^ source,
  }[name]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: OPERATIONS[op][0])
def test_an_atomic_operation(operation: int) -> None:
  title, width, returns, _ = OPERATIONS[operation]
  bits, (name, *rest) = 8 * width, title.removeprefix("TC_OP_ATOMIC_").split("_")
  assert rest[-1] == str(bits) and returns == ("RTN" in rest)
  space = AddressSpace()
  space.map(0x1000, 0x1000, Region("atomics", 0x1000))
  values = (0, 1, 2, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1)
  for old in values:
    for source in values:
      for compare in (old, old ^ 1):
        space.write(0x1000, bytes(32))
        space.store(0x1008, width, old)
        assert atomic(space, operation, 0x1008, source | 1 << 70, compare | 1 << 70) == (old, width, returns)
        assert space.load(0x1008, width) == wanted(name, old, source, compare, bits), (old, source, compare)
        assert not any(space.read(0x1008 + width, 8)) and not any(space.read(0x1000, 8))
  with pytest.raises(DecodeError, match=f"not a multiple of {width}"):
    atomic(space, operation, 0x1008 + width // 2, 0, 0)


def test_atomics_that_are_none() -> None:
  with pytest.raises(DecodeError, match="atomic operation 0x1ff does not exist"):
    atomic(AddressSpace(), 0x1FF, 0, 0, 0)
  name = next(op for op in p4.TC_OP if op.value not in OPERATIONS)
  with pytest.raises(Unsupported, match=name.name):
    atomic(AddressSpace(), name.value, 0, 0, 0)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_an_atomic_that_loops_waits_for_its_value(client: Client, copy: bool, wide: bool) -> None:
  """A compare-and-swap that repeats until memory holds the value to compare with, in the operation's width."""
  queue, memory = client.queue(copy=copy), client.alloc(4096)
  op = p4.TC_OP.TC_OP_ATOMIC_CMPSWAP_RTN_64 if wide else p4.TC_OP.TC_OP_ATOMIC_CMPSWAP_RTN_32
  memory.u64[0] = 5 if wide else 0xAA_0000_0005
  after: Any = s6.SDMA_PKT_FENCE(addr=memory.address + 64, data=1) if copy else write(memory.address + 64, 1)
  if copy:
    queue.submit(s6.SDMA_PKT_ATOMIC(loop=1, atomic_op=op, addr=memory.address, src_data=9, cmp_data=7), after)
  else:
    loop = p4.ATOMIC_MEM_command.loop_until_compare_satisfied
    queue.submit(p4.ATOMIC_MEM(atomic=op, command=loop, addr=memory.address, src_data=9, cmp_data=7), after)
  client.run()
  assert queue.state == "blocked" and memory.u32[16] == 0
  found = f"waits for [{memory.address:#x}] == 0x7, found 0x5"
  assert any(found in line for line in client.machine.report()), client.machine.report()
  memory.u32[0] = 7
  client.run()
  assert queue.state == "ready" and memory.u32[16] == 1 and memory.u32[0] == 9
  assert memory.u32[1] == (0 if wide else 0xAA)


# ---- the command processor


def copy_data(source: int, target: int, **values: int) -> p4.COPY_DATA:
  return p4.COPY_DATA(src_sel=source, dst_sel=target, **values)


def test_copies_have_the_width_that_they_ask_for(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  at, source, target = memory.address, p4.COPY_DATA_src_sel, p4.COPY_DATA_dst_sel
  memory.u64[0] = 0x1122_3344_5566_7788
  for k in range(1, 12):
    memory.u64[k] = 0xEEEE_EEEE_EEEE_EEEE
  queue.submit(
    copy_data(source.immediate_data, target.tc_l2, src_addr=0xAB_0000_0063, dst_addr=at + 8),
    copy_data(source.immediate_data, target.tc_l2, count_sel=1, src_addr=0xAB_0000_0063, dst_addr=at + 16),
    copy_data(source.tc_l2, target.tc_l2, src_addr=at, dst_addr=at + 24),
    pm4.set_sh_reg(gc.COMPUTE_USER_DATA_0, 5, 6, 7),
    copy_data(source.mem_mapped_register, target.tc_l2, src_addr=gc.COMPUTE_USER_DATA_1.OFFSET, dst_addr=at + 32),
    copy_data(source.mem_mapped_register, target.tc_l2, count_sel=1, src_addr=gc.COMPUTE_USER_DATA_1.OFFSET,
              dst_addr=at + 40),
    p4.ATOMIC_MEM(atomic=p4.TC_OP.TC_OP_ATOMIC_ADD_RTN_64, addr=at, src_data=1, cmp_data=0),
    copy_data(source.atomic_return_data, target.tc_l2, count_sel=1, src_addr=0, dst_addr=at + 48),
    copy_data(source.tc_l2, target.mem_mapped_register, src_addr=at + 8, dst_addr=gc.COMPUTE_USER_DATA_2.OFFSET),
    copy_data(source.mem_mapped_register, target.tc_l2, src_addr=gc.COMPUTE_USER_DATA_2.OFFSET, dst_addr=at + 56),
  )  # fmt: skip
  client.run()
  assert queue.state == "ready", client.machine.report()
  upper = 0xEEEE_EEEE << 32
  assert memory.u64[1:8].tolist() == [
    upper | 0x63,
    0xAB_0000_0063,
    upper | 0x5566_7788,
    upper | 6,
    7 << 32 | 6,
    0x1122_3344_5566_7788,
    upper | 0x63,
  ]
  assert memory.u64[0] == 0x1122_3344_5566_7789 and memory.u64[8] == 0xEEEE_EEEE_EEEE_EEEE


def test_a_trace_says_where_each_packet_lay() -> None:
  client = Client(Machine())
  client.machine.trace.enabled = True
  queue, memory = client.queue(), client.alloc(4096)
  packets = [write(memory.address, 1), p4.NOP(payload=(1, 2)), release(memory.address + 8, 3)]
  queue.submit(*packets)
  client.run()
  seen = [e.fields["address"] for e in client.machine.trace if e.kind == "packet"]
  sizes = [len(pm4.encode(p)) for p in packets]
  assert seen == [queue.ring.address + 4 * sum(sizes[:k]) for k in range(3)]
  client.port.end()


def test_the_state_of_a_queue_as_plain_values(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  queue.submit(p4.NOP(payload=(1,)), wait(memory.address, 3))
  client.run()
  found = client.machine.kfd.processes[client.port.pid()].queues[queue.queue_id].snapshot()
  assert {"state", "read", "write", "packets", "wait", "error"} <= set(found)
  assert (found["state"], found["packets"], found["error"]) == ("blocked", 2, None)
  assert found["write"] == queue.at and ">= 0x3" in found["wait"]


@pytest.mark.parametrize(
  ("threads", "block", "groups"),
  [((64, 1, 1), (32, 1, 1), (2, 1, 1)), ((8, 12, 10), (4, 3, 2), (2, 4, 5)), ((4, 3, 2), (4, 3, 2), (1, 1, 1))],
)
def test_a_dispatch_may_count_threads(
  threads: tuple[int, int, int], block: tuple[int, int, int], groups: tuple[int, int, int]
) -> None:
  """COMPUTE_DISPATCH_INITIATOR.USE_THREAD_DIMENSIONS: the three numbers are threads, not workgroups."""
  client = Client(Machine())
  ran: list[Any] = []
  client.machine.execute = lambda queue, program, size, user: ran.append((size, program))  # type: ignore[method-assign]  # a recorder
  queue, code = client.queue(), client.alloc(4096, VRAM)
  packets = settings(code.address, initiator=0x8005 | 1 << 5)[:-2]
  packets.append(pm4.set_sh_reg(gc.COMPUTE_NUM_THREAD_X, *block))
  queue.submit(
    *packets,
    p4.DISPATCH_DIRECT(dim_x=threads[0], dim_y=threads[1], dim_z=threads[2], dispatch_initiator=0x8005 | 1 << 5),
  )
  client.run()
  assert gc.COMPUTE_DISPATCH_INITIATOR(USE_THREAD_DIMENSIONS=1).value() == 1 << 5
  assert [size for size, _ in ran] == [groups] and ran[0][1].block == block and queue.state == "ready"
  for axis in range(3):
    partial = [n + (k == axis) * (block[k] > 1) for k, n in enumerate(threads)]
    if partial == list(threads):
      continue
    queue.submit(
      p4.DISPATCH_DIRECT(dim_x=partial[0], dim_y=partial[1], dim_z=partial[2], dispatch_initiator=0x8005 | 1 << 5)
    )
    with pytest.raises(Unsupported, match="partial workgroups"):
      client.run()
    break
  client.port.end()


# ---- the copy engine


@pytest.mark.parametrize(
  ("packet", "fields"),
  [
    (
      lambda **v: s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=v.pop("at"), dst_addr=v.pop("to"), **v),
      ("encrypt", "tmz", "backwards", "dst_sw", "src_sw"),
    ),
    (
      lambda **v: s6.SDMA_PKT_COPY_LINEAR_SUBWIN(src_addr=v.pop("at"), dst_addr=v.pop("to"), src_slice_pitch=0,
                                                 dst_slice_pitch=0, **v),
      ("tmz", "dst_sw", "src_sw"),
    ),
    (
      lambda **v: s6.SDMA_PKT_WRITE_UNTILED(dst_addr=v.pop("at") + 0 * v.pop("to"), count=0, payload=(1,), **v),
      ("encrypt", "tmz", "sw"),
    ),
    (
      lambda **v: s6.SDMA_PKT_CONSTANT_FILL(
        fillsize=2, dst_addr=v.pop("at") + 0 * v.pop("to"), src_data=0, count=3, **v
      ),
      ("sw",),
    ),
    (
      lambda **v: s6.SDMA_PKT_ATOMIC(
        atomic_op=p4.TC_OP.TC_OP_ATOMIC_ADD_RTN_64, addr=v.pop("at") + 0 * v.pop("to"), src_data=1, cmp_data=0, **v
      ),
      ("tmz",),
    ),
  ],
)
def test_fields_that_ask_for_what_is_not_modelled(packet: Any, fields: tuple[str, ...]) -> None:
  for field in ("", *fields):
    client = Client()
    queue, memory = client.queue(copy=True), client.alloc(4096)
    values = {"at": memory.address, "to": memory.address + 64}
    if not field:
      queue.submit(packet(**values))
      client.run()
      assert queue.state == "ready"
    else:
      made = packet(**values)
      if not any(f.name == field for f in made.FIELDS):
        continue
      queue.submit(packet(**values, **{field: 1}))
      with pytest.raises(Unsupported, match=rf"{type(made).__name__}\.{field} = 1"):
        client.run()
    client.port.end()


def window(client: Client, at: int, to: int, **fields: int) -> Any:
  return s6.SDMA_PKT_COPY_LINEAR_SUBWIN(**({
    "elementsize": 2, "src_addr": at, "dst_addr": to, "src_pitch": 15, "src_slice_pitch": 255, "dst_pitch": 1023,
    "dst_slice_pitch": 1023, "rect_x": 3, "rect_y": 3} | fields))


def test_a_window_that_ends_in_no_memory_stores_nothing(client: Client) -> None:
  """Its fourth line would be behind the buffer."""
  queue, memory, target = client.queue(copy=True), client.alloc(4096), client.alloc(3 * 4096)
  for i in range(64): memory.u32[i] = 7
  queue.submit(window(client, memory.address, target.address))
  client.run()
  assert queue.state == "faulted" and not any(target.u32)


def test_a_window_of_elements_that_there_are_not(client: Client) -> None:
  queue, memory = client.queue(copy=True), client.alloc(4096)
  queue.submit(window(client, memory.address, memory.address, elementsize=5))
  client.run()
  assert queue.state == "hung"
  assert any("SDMA_PKT_COPY_LINEAR_SUBWIN.elementsize 5" in line for line in client.machine.report())


@pytest.mark.parametrize(("fields", "told"), [
  ({}, False), ({"src_pitch": 14}, False), ({"elementsize": 0, "src_pitch": 14}, True),
  ({"elementsize": 0, "src_pitch": 14, "rect_y": 0}, False), ({"src_addr": 2}, True), ({"dst_addr": 1}, True)])
def test_windows_whose_bases_or_lines_are_no_whole_dwords_are_told(fields: dict[str, int], told: bool) -> None:
  """As drivers keep it (radv_sdma_check_pitches)."""
  client = Client()
  queue, memory, target = client.queue(copy=True), client.alloc(4096), client.alloc(5 * 4096)
  at, to = (b.address + fields.get(name, 0) for b, name in ((memory, "src_addr"), (target, "dst_addr")))
  rest = {k: v for k, v in fields.items() if not k.endswith("addr")}
  queue.submit(window(client, at, to, **rest))
  client.run()
  assert any("COPY_LINEAR_SUBWIN" in line for line in client.machine.report()) == told
  client.port.end()


@pytest.mark.parametrize(("mask", "text"), [(0xFFFF_FFFF, ">= 0x3"), (0xFF, ">= 0x3 under mask 0xff")])
def test_a_masked_poll_says_its_mask(client: Client, mask: int, text: str) -> None:
  queue, memory = client.queue(copy=True), client.alloc(4096)
  memory.u32[0] = 0x100 if mask == 0xFF else 0
  queue.submit(s6.SDMA_PKT_POLL_REGMEM(func=5, mem_poll=1, addr=memory.address, value=3, mask=mask, retry_count=0xFFF))
  client.run()
  (line,) = [line for line in client.machine.report() if "waits for" in line]
  assert f"[{memory.address:#x}] {text}" in line and ("mask" in line) == (mask == 0xFF)
  memory.u32[0] = 0x103
  client.run()
  assert queue.state == "ready"


# ---- AQL


@pytest.mark.parametrize(
  ("condition", "holds"),
  [
    (hsa.HSA_SIGNAL_CONDITION_EQ, (0, 0, 1, 0)),
    (hsa.HSA_SIGNAL_CONDITION_NE, (1, 1, 0, 1)),
    (hsa.HSA_SIGNAL_CONDITION_LT, (1, 1, 0, 0)),
    (hsa.HSA_SIGNAL_CONDITION_GTE, (0, 0, 1, 1)),
  ],
)
def test_a_barrier_compares_signed_values(condition: int, holds: tuple[int, ...]) -> None:
  client = Client(Machine())
  for value, passes in zip((-(1 << 63), -3, 5, (1 << 63) - 1), holds):
    q = AqlClient(client)
    header = hsa.hsa_amd_vendor_packet_header_t(
      header=hsa.HSA_PACKET_TYPE_VENDOR_SPECIFIC, AmdFormat=hsa.HSA_AMD_PACKET_TYPE_BARRIER_VALUE
    )
    packet = hsa.hsa_amd_barrier_value_packet_t(header=header, value=5, mask=-1, cond=condition)
    packet.signal.handle, packet.completion_signal.handle = q.signal(0, value), q.signal(1)
    q.put(packet)
    client.run()
    assert q.queue.state.value == ("ready" if passes else "blocked"), value
    assert q.value(1) == (0 if passes else 1) and struct.unpack_from("<q", q.signals.view, SIGNAL * 0 + 8)[0] == value
  client.port.end()


# ---- the render node


class Version(ctypes.Structure):
  """drm_version of the kernel's drm.h."""

  _fields_ = (
    *((n, ctypes.c_int) for n in ("major", "minor", "patch")),
    ("name_len", ctypes.c_size_t),
    ("name", ctypes.c_void_p),
    ("date_len", ctypes.c_size_t),
    ("date", ctypes.c_void_p),
    ("desc_len", ctypes.c_size_t),
    ("desc", ctypes.c_void_p),
  )


def test_the_render_node_is_amdgpus(client: Client) -> None:
  """DRM_IOCTL_VERSION: the lengths first, then as much of the text as there is room for."""
  request = 3 << 30 | ctypes.sizeof(Version) << 16 | ord("d") << 8
  version = Version()
  client.port.ioctl(client.render[0], request, version)
  assert version.major == 3 and version.name_len == len("amdgpu")
  room = (ctypes.create_string_buffer(b"." * 15, 16), ctypes.create_string_buffer(b"." * 31, 32))
  version.name, version.name_len = ctypes.addressof(room[0]), 3
  version.desc, version.desc_len = ctypes.addressof(room[1]), 31
  client.port.ioctl(client.render[0], request, version)
  assert room[0].value == b"amd" + b"." * 12 and version.name_len == 6
  assert room[1].value == b"AMD GPU" + b"." * 24 and version.desc_len == 7
  for wrong, argument, code in (
    (request & ~0xFF00 | ord("x") << 8, version, errno.ENOTTY),
    (request, None, errno.EFAULT),
    (request | 0x3F, version, errno.EINVAL),
  ):
    with pytest.raises(OSError) as refused:
      client.port.ioctl(client.render[0], wrong, argument)
    assert refused.value.errno == code


def info(client: Client, query: int, size: int = 512) -> bytes:
  room = (ctypes.c_uint8 * size)()
  request = drm.drm_amdgpu_info(return_pointer=ctypes.addressof(room), return_size=size, query=query)
  client.port.ioctl(client.render[0], drm.DRM_IOCTL_AMDGPU_INFO, request)
  return bytes(room)


def test_memory_in_use_is_counted(client: Client) -> None:
  def number(query: int) -> int:
    return int.from_bytes(info(client, query, 8), "little")

  def used() -> tuple[int, int, int, int]:
    answer = drm.drm_amdgpu_memory_info.from_buffer_copy(info(client, drm.AMDGPU_INFO_MEMORY))
    assert answer.vram.heap_usage == answer.cpu_accessible_vram.heap_usage
    return (
      number(drm.AMDGPU_INFO_VRAM_USAGE),
      number(drm.AMDGPU_INFO_GTT_USAGE),
      answer.vram.heap_usage,
      answer.gtt.heap_usage,
    )

  before = used()
  client.alloc(8192, VRAM)
  client.alloc(4096, GTT)
  vram, gtt, *rest = (now - then for now, then in zip(used(), before))
  assert (vram, gtt) == (8192, 4096) and rest == [vram, gtt]
  answer = drm.drm_amdgpu_memory_info.from_buffer_copy(info(client, drm.AMDGPU_INFO_MEMORY))
  gpu = client.machine.gpus[0]
  assert answer.vram.total_heap_size == answer.vram.usable_heap_size == gpu.vram.size
  assert answer.gtt.total_heap_size == client.machine.system.size
  sizes = drm.drm_amdgpu_info_vram_gtt.from_buffer_copy(info(client, drm.AMDGPU_INFO_VRAM_GTT))
  assert (sizes.vram_size, sizes.vram_cpu_accessible_size, sizes.gtt_size) == (
    gpu.vram.size,
    gpu.vram.size,
    client.machine.system.size,
  )


def test_the_chip_as_the_render_node_tells_it(client: Client) -> None:
  """Against what sysfs says of the same chip."""
  device = drm.drm_amdgpu_info_device.from_buffer_copy(info(client, drm.AMDGPU_INFO_DEV_INFO))
  rows = client.port.read(f"{ROOT}/nodes/1/properties").decode().split()
  node = {name: int(value) for name, value in zip(rows[::2], rows[1::2])}
  assert device.cu_active_number == node["simd_count"] // node["simd_per_cu"] and device.device_id == node["device_id"]
  assert device.num_shader_engines == node["array_count"] // node["simd_arrays_per_engine"]
  assert device.num_shader_arrays_per_engine == node["simd_arrays_per_engine"]
  assert device.num_cu_per_sh == node["cu_per_simd_array"] and device.wave_front_size == node["wave_front_size"]
  units = sum(bin(x).count("1") for row in device.cu_bitmap for x in row)  # the structure has room for four engines
  assert units == 4 * node["simd_arrays_per_engine"] * device.num_cu_per_sh
  assert device.max_engine_clock == node["max_engine_clk_fcompute"] * 1000
  assert (device.virtual_address_max, device.virtual_address_alignment) == (0x8000_0000_0000, 4096)
  assert (device.pcie_gen, device.pcie_num_lanes, device.gart_page_size) == (4, 16, 4096)


# ---- KFD


def test_tile_configuration(client: Client) -> None:
  """kfd_ioctl_get_tile_config: GB_ADDR_CONFIG of the chip (Navi 31: 0x545), no banks and ranks; zeros for GC 11."""
  room = (ctypes.c_uint32 * 64)(*([7] * 64))
  answer = client.call(
    "GET_TILE_CONFIG",
    gpu_id=client.gpu_ids[0],
    num_tile_configs=40,
    num_macro_tile_configs=2,
    tile_config_ptr=ctypes.addressof(room),
    macro_tile_config_ptr=ctypes.addressof(room) + 4 * 40,
  )
  assert (answer.gb_addr_config, answer.num_banks, answer.num_ranks) == (0x545, 0, 0)
  assert (answer.num_tile_configs, answer.num_macro_tile_configs) == (32, 2)
  assert list(room) == [0] * 32 + [7] * 8 + [0] * 2 + [7] * 22
  assert client.errno("GET_TILE_CONFIG", gpu_id=1) == errno.EINVAL


@pytest.mark.parametrize(
  ("address", "code"),
  [
    ((1 << 48) - 4096, 0),
    ((1 << 48) - 8192, 0),
    (1 << 48, errno.EINVAL),
    (0, errno.EINVAL),
    (4096 + 2048, errno.EINVAL),
  ],
)
def test_where_a_buffer_may_lie(client: Client, address: int, code: int) -> None:
  """Four levels of page tables hold 36 bits of pages; address 0 and parts of pages are refused."""
  a = client.call("ALLOC_MEMORY_OF_GPU", va_addr=address, size=4096, gpu_id=client.gpu_ids[0], flags=VRAM | FLAGS)
  ids = (ctypes.c_uint32 * 1)(client.gpu_ids[0])
  assert (
    client.errno("MAP_MEMORY_TO_GPU", handle=a.handle, device_ids_array_ptr=ctypes.addressof(ids), n_devices=1) == code
  )


def test_a_ring_of_nothing_stops_a_queue(client: Client) -> None:
  """kfd_ioctl_update_queue: without an address or a size no ring is looked up, and the queue is not active."""
  queue, memory = client.queue(), client.alloc(4096)
  setting = {"queue_id": queue.queue_id, "queue_percentage": 100, "queue_priority": 7}
  for ring in ({"ring_base_address": 0, "ring_size": 4096}, {"ring_base_address": queue.ring.address, "ring_size": 0}):
    client.call("UPDATE_QUEUE", **setting, ring_base_address=queue.ring.address, ring_size=4096)
    if ring["ring_size"]:
      client.call("UPDATE_QUEUE", **setting, **ring)
      queue.submit(write(memory.address, 1))
      client.run()
      assert memory.u32[0] == 0
      client.call("UPDATE_QUEUE", **setting, ring_base_address=queue.ring.address, ring_size=4096)
      client.run()
      assert memory.u32[0] == 1
  assert client.errno("UPDATE_QUEUE", **setting, ring_base_address=1 << 30, ring_size=4096) == errno.EFAULT
  assert client.errno("UPDATE_QUEUE", **(setting | {"queue_id": 99}), ring_base_address=0) == errno.EFAULT


def test_a_percentage_has_eight_bits(client: Client) -> None:
  arguments, *_ = client.queue_arguments()
  for percentage, kept in ((0x64, 0x64), (0x132, 0x32)):
    arguments, *_ = client.queue_arguments()
    code = client.errno("CREATE_QUEUE", **(arguments | {"queue_percentage": percentage}))
    if code:
      continue
    queue = client.machine.queues[-1]
    assert queue.properties.percentage == kept


def test_copy_queues_of_a_chosen_engine(client: Client) -> None:
  """KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID takes that engine's queues only; the other kind any that is free."""
  card = client.machine.gpus[0].card
  kind = {"queue_type": kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID}
  for engine in (1, 1, 0):
    arguments, *_ = client.queue_arguments(copy=True)
    client.call("CREATE_QUEUE", **(arguments | kind | {"sdma_engine_id": engine}))
    assert client.machine.queues[-1].properties.engine == engine
  places = [(q.properties.engine, q.properties.engine_queue) for q in client.machine.queues]
  assert len(set(places)) == 3
  arguments, *_ = client.queue_arguments(copy=True)
  assert client.errno("CREATE_QUEUE", **(arguments | kind | {"sdma_engine_id": card.sdma_engines})) == errno.EINVAL
  for _ in range(card.sdma_queues_per_engine - card.sdma_queues_reserved - 2):
    arguments, *_ = client.queue_arguments(copy=True)
    client.call("CREATE_QUEUE", **(arguments | kind | {"sdma_engine_id": 1}))
  arguments, *_ = client.queue_arguments(copy=True)
  assert client.errno("CREATE_QUEUE", **(arguments | kind | {"sdma_engine_id": 1})) == errno.ENOMEM
  client.call("CREATE_QUEUE", **arguments)  # the other engine has room
  assert client.machine.queues[-1].properties.engine == 0


def test_doorbells_may_be_a_buffer(client: Client) -> None:
  """ALLOC_MEM_FLAGS_DOORBELL gives the process's doorbells as a buffer; a store through its mapping rings."""
  queue, memory = client.queue(), client.alloc(4096)
  size = client.machine.gpus[0].card.doorbell_slice
  flags = kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE & 0xFFFFFFFF
  a = client.call(
    "ALLOC_MEMORY_OF_GPU", va_addr=client.port.reserve(size), size=size, gpu_id=client.gpu_ids[0], flags=flags
  )
  at = client.port.mmap(client.render[0], size, a.mmap_offset)
  queue.push(pm4.stream([write(memory.address, 7)]), ring=False)
  queue.write.u64[0] = queue.at
  client.port.doorbell(at + queue.doorbell - client.doorbells[0], queue.at)
  client.run()
  assert memory.u32[0] == 7
  assert (
    client.errno("ALLOC_MEMORY_OF_GPU", va_addr=1 << 40, size=size * 2, gpu_id=client.gpu_ids[0], flags=flags)
    == errno.EINVAL
  )


# ---- sysfs and addresses


def test_what_a_node_says_it_can_do() -> None:
  """kfd_topology_set_capabilities of GC 11: doorbells of type 2, four watch points, and the debugger's abilities."""
  port = MockPort(Machine())
  rows = port.read(f"{ROOT}/nodes/1/properties").decode().split()
  node = {name: int(value) for name, value in zip(rows[::2], rows[1::2])}
  s, bits = kfd_sysfs, node["capability"]
  assert (bits & s.HSA_CAP_DOORBELL_TYPE_TOTALBITS_MASK) >> s.HSA_CAP_DOORBELL_TYPE_TOTALBITS_SHIFT == 2
  assert (bits & s.HSA_CAP_WATCH_POINTS_TOTALBITS_MASK) >> s.HSA_CAP_WATCH_POINTS_TOTALBITS_SHIFT == 2
  assert bits & s.HSA_CAP_WATCH_POINTS_SUPPORTED and bits & s.HSA_CAP_TRAP_DEBUG_SUPPORT
  debug = node["debug_prop"]
  assert (debug & s.HSA_DBG_WATCH_ADDR_MASK_LO_BIT_MASK) >> s.HSA_DBG_WATCH_ADDR_MASK_LO_BIT_SHIFT == 7
  assert (debug & s.HSA_DBG_WATCH_ADDR_MASK_HI_BIT_MASK) >> s.HSA_DBG_WATCH_ADDR_MASK_HI_BIT_SHIFT == 29


def test_links_say_how_far_things_are() -> None:
  """kfd_crat.c: 20 from a card to its CPU, twice that through it to another card; PCIe, and the flags that it is on."""
  port = MockPort(Machine("gfx1100,gfx1100"))

  def link(path: str) -> dict[str, int]:
    rows = port.read(f"{ROOT}/nodes/{path}/properties").decode().split()
    return {name: int(value) for name, value in zip(rows[::2], rows[1::2])}

  for path, ends, weight in (
    ("0/io_links/0", (0, 1), 20), ("0/io_links/1", (0, 2), 20), ("1/io_links/0", (1, 0), 20),
    ("2/io_links/0", (2, 0), 20), ("1/p2p_links/0", (1, 2), 40), ("2/p2p_links/0", (2, 1), 40),
  ):  # fmt: skip
    row = link(path)
    assert (row["node_from"], row["node_to"], row["weight"], row["type"]) == (*ends, weight, 2), path
    assert row["flags"] == kfd_sysfs.HSA_IOLINK_FLAGS_ENABLED and row["min_bandwidth"] < row["max_bandwidth"]
    assert row["min_latency"] == row["max_latency"] == row["version_major"] == row["recommended_transfer_size"] == 0


@pytest.mark.parametrize("align", [4096, 1 << 16, 2 << 20])
def test_reserved_addresses_are_no_more_than_asked_for(align: int) -> None:
  def mapped() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096

  reserve_memory(4096, align)
  before, kept = mapped(), [reserve_memory(5000, align) for _ in range(64)]
  assert all(at % align == 0 for at in kept) and mapped() - before <= 64 * 8192 + (8 << 20)
  for at in kept:
    unmap_memory(at, 8192)
