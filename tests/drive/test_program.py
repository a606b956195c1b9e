"""Launches as the queue and the argument segment see them, without running a kernel; code objects are made by
llvmlite."""
from __future__ import annotations

import ctypes
import dataclasses
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.autogen import amdhsa, hsa
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as p
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.drive.amd.batch import Batch, BatchedLaunch
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.drive.amd.program import ArgumentLayout, LaunchShape, user_sgprs
from tinyhw.wire import codeobject, pm4

PROPERTIES = {
  "dispatch_packet": amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR,
  "queue": amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_QUEUE_PTR,
  "kernarg": amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR,
  "timeline": amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_ID,
  "private": amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_SIZE,
}


def changed(kernel: codeobject.Kernel, **descriptor: int) -> codeobject.Kernel:
  """The kernel with other values in its descriptor."""
  copy = amdhsa.kernel_descriptor_t.from_buffer_copy(kernel.descriptor)
  for name, value in descriptor.items(): setattr(copy, name, value)
  return dataclasses.replace(kernel, descriptor=copy)


def written(machine: Any) -> dict[int, int]:
  """SH registers as the packets so far leave them."""
  return {offset: value for packet in machine.packets for offset, value in pm4.registers(packet)}


def dispatches(machine: Any) -> list[p.DISPATCH_DIRECT]:
  return [q for q in machine.packets if isinstance(q, p.DISPATCH_DIRECT)]


@given(st.sets(st.sampled_from(sorted(PROPERTIES))), st.integers(0, (1 << 48) - 1), st.integers(0, 1 << 20))
def test_user_sgprs_stand_in_the_order_of_the_properties(
  add_object: bytes, asked: set[str], queue: int, private: int
) -> None:
  kernel = changed(codeobject.load(add_object).kernels["add"], kernel_code_properties=sum(PROPERTIES[a] for a in asked),
                   private_segment_fixed_size=private)
  got = user_sgprs(kernel, "gfx1100", queue)
  index, want = 0, {}
  # AMDGPUUsage, "SGPR Register Set Up Order"
  for name in ("dispatch_packet", "queue", "kernarg", "timeline", "private"):
    if name in asked:
      want[name] = index
      index += 1 if name == "private" else 2
  assert got.pairs == {want[n]: n for n in ("dispatch_packet", "kernarg", "timeline") if n in asked}
  assert len(got.values) == index
  if "queue" in asked: assert got.values[want["queue"]] | got.values[want["queue"] + 1] << 32 == queue
  if "private" in asked: assert got.values[want["private"]] == private


def test_what_gfx11_does_not_have_is_refused_by_name(add_object: bytes) -> None:
  kernel = codeobject.load(add_object).kernels["add"]
  for name in ("ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER", "ENABLE_SGPR_FLAT_SCRATCH_INIT"):
    with pytest.raises(Unsupported, match=name):
      user_sgprs(changed(kernel, kernel_code_properties=getattr(amdhsa, f"KERNEL_CODE_PROPERTY_{name}")), "gfx1100", 0)
  with pytest.raises(Unsupported, match="kernarg preload"): user_sgprs(changed(kernel, kernarg_preload=3), "gfx1100", 0)
  with pytest.raises(InvalidArgument, match="2 user SGPRs, its descriptor has 1"):
    user_sgprs(changed(kernel, compute_pgm_rsrc2=1 << 1), "gfx1100", 0)


def test_explicit_arguments_lie_where_the_metadata_says(port: Any, machine: Any, add_object: bytes) -> None:
  gpu = AMDRuntime(port)
  fill, out = gpu.load(add_object, "fill"), gpu.alloc(256)
  fill([out], [-5, 7, 2.5, 200], (1, 1, 1), (64, 1, 1))
  registers = written(machine)
  kernarg = registers[gc.COMPUTE_USER_DATA_0.OFFSET] | registers[gc.COMPUTE_USER_DATA_1.OFFSET] << 32
  assert struct.unpack("<QihxxdB", ctypes.string_at(kernarg, 25)) == (out.address, -5, 7, 2.5, 200)
  fill.launch(struct.pack("<QihxxdB", 16, 1, 2, 3.0, 4), (2, 3, 4), (8, 4, 2))
  registers = written(machine)
  kernarg = registers[gc.COMPUTE_USER_DATA_0.OFFSET] | registers[gc.COMPUTE_USER_DATA_1.OFFSET] << 32
  assert struct.unpack("<QihxxdB", ctypes.string_at(kernarg, 25)) == (16, 1, 2, 3.0, 4)
  last = dispatches(machine)[-1]
  assert (last.dim_x, last.dim_y, last.dim_z) == (2, 3, 4)
  threads = [gc.COMPUTE_NUM_THREAD_X.decode(registers[r.OFFSET]).NUM_THREAD_FULL
             for r in (gc.COMPUTE_NUM_THREAD_X, gc.COMPUTE_NUM_THREAD_Y, gc.COMPUTE_NUM_THREAD_Z)]
  assert threads == [8, 4, 2]


def test_a_launch_programs_the_chip_as_the_descriptor_asks(port: Any, machine: Any, asks_object: bytes) -> None:
  gpu = AMDRuntime(port)
  shared = gpu.load(asks_object, "shared")
  shared([gpu.alloc(4096)], [], (1, 1, 1), (1024, 1, 1))
  registers, d = written(machine), shared.kernel.descriptor
  entry = registers[gc.COMPUTE_PGM_LO.OFFSET] << 8 | registers[gc.COMPUTE_PGM_HI.OFFSET] << 40
  assert entry == shared.image.address + shared.kernel.descriptor_offset + d.kernel_code_entry_byte_offset
  first = gc.COMPUTE_PGM_RSRC1.decode(registers[gc.COMPUTE_PGM_RSRC1.OFFSET])
  assert first.PRIV == 1, "waves of a PM4 queue that start unprivileged cannot be saved on GC 11.0"
  first.PRIV = 0
  assert (
    first.value() == d.compute_pgm_rsrc1
    and registers[gc.COMPUTE_PGM_RSRC3.OFFSET] == d.compute_pgm_rsrc3
  )
  rsrc2 = gc.COMPUTE_PGM_RSRC2.decode(registers[gc.COMPUTE_PGM_RSRC2.OFFSET])
  assert rsrc2.LDS_SIZE * 128 * 4 == 4096 and rsrc2.value() & ~(0x1FF << 15) == d.compute_pgm_rsrc2
  initiator = gc.COMPUTE_DISPATCH_INITIATOR.decode(dispatches(machine)[-1].dispatch_initiator)
  assert (initiator.COMPUTE_SHADER_EN, initiator.CS_W32_EN, initiator.FORCE_START_AT_000) == (1, 1, 1)
  assert ctypes.string_at(entry, 64) == shared.image.code.link(shared.image.address)[shared.kernel.entry_offset:][:64]
  private = gpu.load(asks_object, "private")
  private([gpu.alloc(4096)], [], (1, 1, 1), (64, 1, 1))
  registers = written(machine)
  ring = gc.COMPUTE_TMPRING_SIZE.decode(registers[gc.COMPUTE_TMPRING_SIZE.OFFSET])
  assert ring.WAVESIZE * 256 >= 260 * 32 and ring.WAVES > 0
  base = (
    registers[gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO.OFFSET] << 8
    | registers[gc.COMPUTE_DISPATCH_SCRATCH_BASE_HI.OFFSET] << 40
  )
  held = next(b for b in gpu.live_buffers() if b.address == base)
  assert held.size >= ring.WAVES * 6 * ring.WAVESIZE * 256


def test_hidden_arguments_and_the_dispatch_packet_describe_the_launch(
  port: Any, machine: Any, asks_object: bytes
) -> None:
  gpu = AMDRuntime(port)
  asks = gpu.load(asks_object, "asks")
  assert "hidden_hostcall_buffer" in asks.layout.unserved and gpu.unserved["asks"] == asks.layout.unserved
  asks([gpu.alloc(64)], [], (5, 6, 7), (8, 4, 2))
  data = [machine_value(machine, i) for i in range(8)]
  packet_at, queue_at, kernarg, dispatch_id = (data[i] | data[i + 1] << 32 for i in (0, 2, 4, 6))
  packet = hsa.hsa_kernel_dispatch_packet_t.from_address(packet_at)
  assert (packet.grid_size_x, packet.grid_size_y, packet.grid_size_z) == (40, 24, 14)
  assert (packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z) == (8, 4, 2)
  assert packet.kernarg_address == kernarg and packet.setup == 3
  assert packet.kernel_object == asks.image.address + asks.kernel.descriptor_offset
  assert hsa.amd_queue_t.from_address(queue_at).group_segment_aperture_base_hi == 1 << 16
  assert dispatch_id == gpu.timeline.last
  hidden = {a.kind: int.from_bytes(ctypes.string_at(kernarg + a.offset, a.size), "little") for a in asks.kernel.hidden}
  assert [hidden[f"hidden_block_count_{x}"] for x in "xyz"] == [5, 6, 7]
  assert [hidden[f"hidden_group_size_{x}"] for x in "xyz"] == [8, 4, 2]
  assert hidden["hidden_grid_dims"] == 3 and hidden["hidden_queue_ptr"] == queue_at
  assert not any(v for k, v in hidden.items() if k in asks.layout.unserved or "remainder" in k or "global_offset" in k)


def machine_value(machine: Any, index: int) -> int: return written(machine)[gc.COMPUTE_USER_DATA_0.OFFSET + index]


def test_a_repeated_launch_writes_only_what_changes(port: Any, machine: Any, add_object: bytes) -> None:
  gpu = AMDRuntime(port)
  add, fill = gpu.load(add_object, "add"), gpu.load(add_object, "fill")
  buffers = [gpu.alloc(256) for _ in range(3)]
  counts, states = [], []
  for program, count in ((add, 1), (add, 2), (fill, 1), (add, 3), (add, 3)):
    machine.packets.clear()
    if program is add: add(buffers, [], (count, 1, 1), (64, 1, 1))
    else: fill(buffers[:1], [1, 2, 3.0, 4], (1, 1, 1), (64, 1, 1))
    counts.append(len([q for q in machine.packets if isinstance(q, p.SET_SH_REG)]))
    states.append(dispatches(machine)[-1].dim_x)
  assert counts[1] == counts[4] == 1 and counts[0] == counts[2] == counts[3] > 5 and states == [1, 2, 1, 3, 3]
  gpu.reset()
  machine.packets.clear()
  add(buffers, [], (3, 1, 1), (64, 1, 1))
  assert len([q for q in machine.packets if isinstance(q, p.SET_SH_REG)]) == counts[0], "a new queue has no registers"


def test_a_growing_scratch_reaches_programs_made_before(port: Any, machine: Any, asks_object: bytes) -> None:
  gpu = AMDRuntime(port)
  private = gpu.load(asks_object, "private")
  out = gpu.alloc(4096)
  private([out], [], (1, 1, 1), (64, 1, 1))
  before = written(machine)[gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO.OFFSET]
  gpu.require_scratch(1 << 16, "a larger kernel")
  private([out], [], (1, 1, 1), (64, 1, 1))
  after = written(machine)[gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO.OFFSET]
  assert before != after and any(
    b.address == after << 8 | written(machine)[gc.COMPUTE_DISPATCH_SCRATCH_BASE_HI.OFFSET] << 40
    for b in gpu.live_buffers()
  )


def test_a_growing_scratch_leaves_the_rest_of_a_launch_as_it_was(port: Any, machine: Any, asks_object: bytes) -> None:
  """What was prepared before is prepared anew for the same shared memory, and timed or not."""
  gpu, wave_bytes = AMDRuntime(port), 1 << 10
  shared, out = gpu.load(asks_object, "shared"), gpu.alloc(4096)
  for dynamic, wait in ((0, False), (0, True), (8192, False), (8192, True)):
    counts = []
    for _ in range(2):
      machine.packets.clear()
      seconds = shared.launch(struct.pack("<Q", out.address), (1, 1, 1), (64, 1, 1), dynamic_lds=dynamic, wait=wait)
      rsrc2 = gc.COMPUTE_PGM_RSRC2.decode(written(machine)[gc.COMPUTE_PGM_RSRC2.OFFSET])
      assert rsrc2.LDS_SIZE * 512 == 4096 + dynamic and (seconds is not None) == wait
      counts.append(len([q for q in machine.packets if isinstance(q, p.RELEASE_MEM)]))
      wave_bytes += 1 << 10
      gpu.require_scratch(wave_bytes, "a larger kernel")
    assert counts[0] == counts[1] == (3 if wait else 1)


def test_a_waited_launch_gives_the_time_on_the_gpu_clock(port: Any, machine: Any, add_object: bytes) -> None:
  gpu = AMDRuntime(port)
  seconds = gpu.load(add_object, "add")([gpu.alloc(256) for _ in range(3)], [], (1, 1, 1), (64, 1, 1), wait=True)
  ticks = gpu.timeline.signal.ticks
  assert seconds == ticks / 100e6 and ticks > 0 and ticks % 10 == 0


def test_wrong_launches_are_refused_before_anything_is_queued(
  port: Any, machine: Any, add_object: bytes, asks_object: bytes
) -> None:
  gpu = AMDRuntime(port)
  add, shared = gpu.load(add_object, "add"), gpu.load(asks_object, "shared")
  a = gpu.alloc(256)
  gpu.synchronize()
  before = gpu.timeline.last
  wrong: list[tuple[Any, str]] = [
    (lambda: add([a, a], [], (1, 1, 1), (64, 1, 1)), "takes 3 arguments.*got 2 buffers and 0 values"),
    (lambda: add([a, a], [1.5], (1, 1, 1), (64, 1, 1)), "'b' is a pointer, got 1.5"),
    (lambda: add([a, a, a], [], (1, 1, 1), (257, 1, 1)), "257 threads, the kernel was compiled for at most 256"),
    (lambda: shared([a], [], (1, 1, 1), (1025, 1, 1)), "from 1 to 1024"),
    (lambda: shared([a], [], (1, 1, 1), (64, 32, 1)), "2048 threads, gfx1100 runs at most 1024"),
    (lambda: add([a, a, a], [], (0, 1, 1), (64, 1, 1)), r"grid \(0, 1, 1\)"),
    (lambda: add([a, a, a], [], (0, 0, 0), (64, 1, 1)), r"grid \(0, 0, 0\)"),
    (lambda: add([a, a, a], [], (1, 1, 1), (0, 1, 1)), r"block \(0, 1, 1\)"),
    (lambda: add([a, a, a], [], (1 << 32, 1, 1), (1, 1, 1)), "grid"),
    (lambda: add.launch(bytes(25), (1, 1, 1), (1, 1, 1)), "25 bytes of arguments, the kernel takes 24"),
    (lambda: shared.launch(bytes(8), (1, 1, 1), (1, 1, 1), dynamic_lds=1 << 16), "69,632 bytes of LDS.*65,536"),
    (lambda: gpu.load(add_object, "fill")([a], [1, 1 << 20, 1.0, 1], (1, 1, 1), (1, 1, 1)), "does not fit"),
    (lambda: gpu.load(add_object, "fill")([a, a], [1, 1.0, 1], (1, 1, 1), (1, 1, 1)), "'value' is passed by value"),
  ]
  for launch, message in wrong:
    with pytest.raises(InvalidArgument, match=message): launch()
  assert gpu.timeline.last == before and not dispatches(machine)
  with pytest.raises(InvalidArgument, match="no kernel 'mul'.*add, fill"): gpu.load(add_object, "mul")
  with pytest.raises(DecodeError): gpu.load(b"not an ELF", "add")


def test_code_for_another_gpu_names_both(port: Any, compile_ir: Any) -> None:
  binary = compile_ir("define amdgpu_kernel void @k() { ret void }", "gfx906")
  with pytest.raises(InvalidArgument, match="gfx906.*gfx1100"): AMDRuntime(port).load(binary, "k")


def test_an_unknown_hidden_argument_is_named(add_object: bytes) -> None:
  kernel = codeobject.load(add_object).kernels["add"]
  with pytest.raises(Unsupported, match="hidden_from_the_future"):
    ArgumentLayout(dataclasses.replace(kernel, hidden=(codeobject.Argument("", "hidden_from_the_future", 24, 8),)))


@given(st.tuples(*[st.integers(1, 1000)] * 3), st.tuples(*[st.integers(1, 8)] * 3))
def test_dimensions_count_up_to_the_last_that_is_more_than_one(
  grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
  threads = [g * b for g, b in zip(grid, block)]
  assert LaunchShape(grid, block, 0, 0, 0, 0).dimensions == max((i + 1 for i in range(3) if threads[i] > 1), default=1)


def test_the_last_submission_is_readable(port: Any, add_object: bytes) -> None:
  gpu = AMDRuntime(port)
  gpu.load(add_object, "add")([gpu.alloc(256) for _ in range(3)], [], (1, 1, 1), (64, 1, 1))
  text = "\n".join(gpu.last_submission())
  assert all(
    name in text for name in ("ACQUIRE_MEM(", "SET_SH_REG(", "COMPUTE_PGM_LO", "DISPATCH_DIRECT(", "RELEASE_MEM(")
  )


def test_a_batch_is_one_packet_in_the_ring_and_can_be_patched(
  port: Any, machine: Any, add_object: bytes, asks_object: bytes
) -> None:
  gpu = AMDRuntime(port)
  fill, asks = gpu.load(add_object, "fill"), gpu.load(asks_object, "asks")
  arguments = struct.pack("<QihxxdB", 16, 1, 2, 3.0, 4)
  batch = Batch(gpu, [BatchedLaunch(fill, arguments, (1, 1, 1), (8, 1, 1)),
                      BatchedLaunch(asks, bytes(8), (4, 5, 6), (2, 1, 1))])
  seen = []
  for change in (None, None, "argument", "grid", "scratch"):
    if change == "argument": batch.set_argument(0, 8, struct.pack("<i", -9))
    if change == "grid": batch.set_grid(1, (7, 1, 1))
    if change == "scratch": gpu.require_scratch(4096, "a kernel")
    machine.packets.clear()
    value = batch.submit()
    gpu.synchronize()
    assert gpu.timeline.last == value and len([q for q in machine.packets if isinstance(q, p.INDIRECT_BUFFER)]) == 1
    assert written(machine)[gc.COMPUTE_USER_DATA_0.OFFSET + 6] == value & 0xFFFFFFFF, "the dispatch id that asks wants"
    first = next(pm4.registers(q) for q in machine.packets if pm4.registers(q)[:1] and
                 pm4.registers(q)[0][0] == gc.COMPUTE_USER_DATA_0.OFFSET)
    kernarg = first[0][1] | first[1][1] << 32
    seen.append(
      (struct.unpack("<i", ctypes.string_at(kernarg + 8, 4))[0], [(d.dim_x, d.dim_y) for d in dispatches(machine)])
    )
  assert seen == [(1, [(1, 1), (4, 5)])] * 2 + [(-9, [(1, 1), (4, 5)])] + [(-9, [(1, 1), (7, 1)])] * 2
  with pytest.raises(InvalidArgument, match="outside"): batch.set_argument(0, 24, bytes(8))
  with pytest.raises(InvalidArgument, match="grid"): batch.set_grid(0, (0, 1, 1))
  with pytest.raises(InvalidArgument, match="no launches"): Batch(gpu, [])
  batch.close()
  batch.close()


def test_a_value_may_change_its_sign_and_kind_from_launch_to_launch(port: Any, machine: Any, add_object: bytes) -> None:
  gpu = AMDRuntime(port)
  fill, out = gpu.load(add_object, "fill"), gpu.alloc(256)
  for value, code in ((5, "i"), (-5, "i"), (0xFFFFFFFF, "I"), (1.5, "f")):
    fill([out], [value, 1, 1.0, 1], (1, 1, 1), (64, 1, 1))
    kernarg = machine_value(machine, 0) | machine_value(machine, 1) << 32
    assert struct.unpack(f"<{code}", ctypes.string_at(kernarg + 8, 4)) == (value,)
