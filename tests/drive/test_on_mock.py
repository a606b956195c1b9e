"""The driver, the mock and the machine code together: kernels run, copies arrive, faults are told. On a card, the
same."""
from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strength import examples, seed
from tinyhw.core.errors import DeviceError, Error, InvalidArgument, OutOfMemory, WaitTimeout
from tinyhw.drive import base
from tinyhw.drive.amd import device as driver
from tinyhw.drive.amd.batch import Batch, BatchedLaunch
from tinyhw.drive.amd.commands import CopyCommands
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.drive.base import Allocation
from tinyhw.drive.queue import CommandStream
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort

OBJECTS = Path(__file__).parent.parent / "wire/objects"
LINKED = ("gfx1100_v4.co", "gfx1100_v5.co", "gfx1100_v6.co", "gfx1100_v5.o")
WILD = """
define amdgpu_kernel void @wild(ptr addrspace(1) %at, i32 %value) #0 {
  store volatile i32 %value, ptr addrspace(1) %at
  ret void
}
define amdgpu_kernel void @peek(ptr addrspace(1) %out, ptr addrspace(1) %at) #0 {
  %v = load volatile i32, ptr addrspace(1) %at
  store volatile i32 %v, ptr addrspace(1) %out
  ret void
}
define amdgpu_kernel void @endless(ptr addrspace(1) %out) #0 {
entry:
  br label %loop
loop:
  %v = load volatile i32, ptr addrspace(1) %out
  %c = icmp eq i32 %v, 12345
  br i1 %c, label %done, label %loop
done:
  ret void
}
attributes #0 = { nounwind "amdgpu-no-implicitarg-ptr" }
"""


@pytest.fixture
def gpu() -> AMDRuntime: return AMDRuntime(MockPort(Machine("gfx1100")), timeout_s=20)


def upload(gpu: AMDRuntime, data: np.ndarray[Any, Any]) -> Allocation:
  a = gpu.alloc(data.nbytes)
  gpu.copyin(a, memoryview(np.ascontiguousarray(data)).cast("B"))
  return a


def download(gpu: AMDRuntime, a: Allocation, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
  out = np.empty_like(like)
  gpu.copyout(memoryview(out).cast("B"), a)
  return out


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(10))
@given(st.integers(1, 3_000_000))
def test_copies_arrive(gpu: AMDRuntime, size: int) -> None:
  data = np.frombuffer(os.urandom(size), np.uint8)
  a, b = upload(gpu, data), gpu.alloc(size)
  gpu.copy(b, a, size)
  assert np.array_equal(download(gpu, b, data), data)
  gpu.free(a)
  gpu.free(b)


@pytest.mark.parametrize("name", LINKED)
def test_kernels_of_clang_run(gpu: AMDRuntime, name: str) -> None:
  binary = (OBJECTS / name).read_bytes()
  rng = np.random.default_rng(seed(1))
  a, b = rng.standard_normal(1000, np.float32), rng.standard_normal(1000, np.float32)
  at, bt, out = upload(gpu, a), upload(gpu, b), upload(gpu, np.zeros(1024, np.float32))
  gpu.load(binary, "add")([at, bt, out], [1000], (16, 1, 1), (64, 1, 1))
  got = download(gpu, out, np.zeros(1024, np.float32))
  assert np.array_equal(got[:1000], a + b) and not got[1000:].any()
  data = rng.integers(0, 1 << 32, 256, np.uint32)
  rows = upload(gpu, data)
  gpu.load(binary, "reverse")([rows], [], (1, 1, 1), (256, 1, 1))
  assert np.array_equal(download(gpu, rows, data), data[::-1]), "LDS and a barrier"
  small = rng.integers(0, 1 << 32, 64, np.uint32)
  rows = upload(gpu, small)
  gpu.load(binary, "spill")([rows], [64], (1, 1, 1), (1, 1, 1))
  assert np.array_equal(download(gpu, rows, small), small[np.arange(64) * 7 & 63]), "scratch"
  sizes = upload(gpu, np.zeros(2, np.uint32))
  gpu.load(binary, "sizes")([sizes], [], (5, 1, 1), (32, 1, 1))
  assert download(gpu, sizes, np.zeros(2, np.uint32)).tolist() == [32, 160], "the dispatch packet or hidden arguments"
  count = gpu.load(binary, "count")
  for _ in range(3): count([], [1, 10], (1, 1, 1), (1, 1, 1))
  base = count.image.address + count.image.code.symbols["counters"]
  counters = np.empty(4, np.uint32)
  gpu.copyout(memoryview(counters).cast("B"), Allocation(base, 16))
  assert counters.tolist() == [1, 32, 3, 4], "global variables"


def test_objects_of_llvmlite_run(gpu: AMDRuntime, add_object: bytes, asks_object: bytes) -> None:
  a = np.arange(128, dtype=np.float32)
  at, out = upload(gpu, a), gpu.alloc(512)
  seconds = gpu.load(add_object, "add")([out, at, at], [], (2, 1, 1), (64, 1, 1), wait=True)
  assert np.array_equal(download(gpu, out, a), a + a) and seconds is not None and 0 < seconds < 1
  gpu.load(add_object, "fill")([out], [-5, 7, 2.5, 200], (1, 1, 1), (64, 1, 1))
  assert np.array_equal(download(gpu, out, np.zeros(64, np.int32)), -5 + 7 * np.arange(64) + 2 + 200)
  gpu.load(asks_object, "asks")([out], [], (3, 1, 1), (4, 2, 1))
  got = download(gpu, out, np.zeros(5, np.uint32)).tolist()
  assert got == [4 | 2 << 16, 12, 3, gpu.gpu.lds_base >> 32, gpu.timeline.last]
  for name in ("shared", "private"):
    program = gpu.load(asks_object, name)
    program([out], [], (1, 1, 1), (64, 1, 1))
    assert download(gpu, out, np.zeros(64, np.uint32)).tolist() == list(range(64))


def test_rings_wrap_and_arguments_are_not_overwritten(monkeypatch: pytest.MonkeyPatch, add_object: bytes) -> None:
  monkeypatch.setattr(driver, "_RING_BYTES", 1024)
  monkeypatch.setattr(driver, "_KERNARG_BYTES", 8192)
  gpu = AMDRuntime(MockPort(Machine("gfx1100")), timeout_s=20)
  fill, out = gpu.load(add_object, "fill"), gpu.alloc(64 * 4 * 60)
  assert out.address is not None
  for i in range(60):
    fill.launch(struct.pack("<QihxxdB", out.address + 256 * i, i, 1, 0.0, 0), (1, 1, 1), (64, 1, 1))
    if i % 7 == 0: gpu.copyin(gpu.alloc(4), memoryview(bytes(4)))
  want = np.arange(60)[:, None] + np.arange(64)[None]
  assert np.array_equal(download(gpu, out, np.zeros((60, 64), np.int32)), want)
  assert gpu.compute.ring.at > 4 * gpu.compute.ring.size


def test_a_page_fault_tells_address_access_and_the_process_lives(gpu: AMDRuntime, compile_ir: Any) -> None:
  binary = compile_ir(WILD)
  out = upload(gpu, np.zeros(4, np.uint32))
  assert out.address is not None
  wild, peek = gpu.load(binary, "wild"), gpu.load(binary, "peek")
  wild([], [out.address, 7], (1, 1, 1), (1, 1, 1))
  gpu.synchronize()
  wild([], [out.address + 4096 + 8, 7], (1, 1, 1), (1, 1, 1))
  wanted = f"page fault: write of 4 bytes at {out.address + 4104:#x}"  # the event tells the page, the log the address
  with pytest.raises(DeviceError, match=wanted) as error: gpu.synchronize()
  text = str(error.value)
  assert "in kernel wild at wild+0x" in text
  assert "8 bytes past the end of the 4,096 byte buffer" in text and "new process" in text.splitlines()[0]
  with pytest.raises(DeviceError, match="page fault"): wild([], [out.address, 1], (1, 1, 1), (1, 1, 1))
  fresh = AMDRuntime(MockPort(Machine("gfx1100")), timeout_s=20)
  again = upload(fresh, np.zeros(4, np.uint32))
  fresh.load(binary, "peek")([again, again], [], (1, 1, 1), (1, 1, 1))
  fresh.synchronize()
  with pytest.raises(DeviceError, match="page fault: read of [0-9]+ bytes at 0x") as error:
    fresh.load(binary, "peek")([again], [8], (1, 1, 1), (1, 1, 1), wait=True)
  assert peek.name == "peek"


def test_an_endless_loop_meets_the_watchdog(compile_ir: Any) -> None:
  gpu = AMDRuntime(MockPort(Machine("gfx1100", watchdog=20_000)), timeout_s=20)
  out = upload(gpu, np.zeros(4, np.uint32))
  gpu.load(compile_ir(WILD), "endless")([out], [], (1, 1, 1), (1, 1, 1))
  with pytest.raises(DeviceError, match="hang") as error: gpu.synchronize()
  assert "in kernel endless at endless+0x" in str(error.value)


def test_a_wait_that_nobody_ends(gpu: AMDRuntime) -> None:
  gpu.timeout_s = 0.2
  signal = gpu.new_signal()
  gpu.wait_for(signal, 5)
  with pytest.raises(WaitTimeout) as error: gpu.synchronize()
  e = error.value
  assert (e.packet, e.address, e.wanted, e.seen) == (
    "WAIT_REG_MEM",
    signal.address,
    5,
    0,
  ) and "compute queue" in e.queue
  signal.value = 5
  gpu.timeout_s = 20
  gpu.synchronize()
  gpu.timeout_s = 0.2
  gpu.wait_for(signal, 6)
  with pytest.raises(WaitTimeout): gpu.synchronize()
  gpu.reset()
  assert download(gpu, upload(gpu, np.arange(4)), np.arange(4)).tolist() == [0, 1, 2, 3]


def test_a_copy_outside_memory_is_a_page_fault(gpu: AMDRuntime) -> None:
  a, b = gpu.alloc(100), gpu.alloc(100)
  assert a.address is not None and b.address is not None
  gpu.copy(Allocation(a.address + 8192, 100, a.handle), b, 100)
  wanted = f"page fault: write of 100 bytes at {a.address + 8192:#x}.*, in copy;"
  with pytest.raises(DeviceError, match=wanted): gpu.synchronize()
  with pytest.raises(DeviceError, match="page fault"): gpu.alloc(1)
  with pytest.raises(DeviceError, match="lost the GPU.*new process"): AMDRuntime(gpu.port)
  with pytest.raises(DeviceError, match="(?s)does not run again.*new process"): gpu.reset()


def test_more_memory_than_the_card_has() -> None:
  gpu = AMDRuntime(MockPort(Machine("gfx1100", vram=1 << 28)), timeout_s=20)
  with pytest.raises(OutOfMemory) as error: gpu.alloc(1 << 30)
  assert error.value.asked == 1 << 30 and 0 < error.value.free < 1 << 28
  held = [gpu.alloc(16 << 20) for _ in range(8)]
  for a in held: gpu.free(a)
  assert gpu.alloc(160 << 20).size == 160 << 20, "freed memory that is kept for reuse is given up first"


def test_submissions_that_come_again_do_what_they_did(add_object: bytes) -> None:
  """A traced machine decodes and checks each packet, and runs each dispatch in turns; one that is not follows plans."""
  seen = []
  for tracing in (False, True):
    machine = Machine("gfx1100", tracing=tracing, engine="jit")
    g = AMDRuntime(MockPort(machine), timeout_s=20)
    add, fill, rng = g.load(add_object, "add"), g.load(add_object, "fill"), np.random.default_rng(1)
    a, b = upload(g, np.arange(64, dtype=np.float32)), upload(g, np.ones(64, np.float32))
    values = []
    for k in range(40):
      if rng.integers(3): add([a, a, b], [], (1, 1, 1), (64, 1, 1))
      else: fill([b], [1, float(k), 1.0, 1], (1, 1, 1), (64, 1, 1))
      if rng.integers(4): values.append(download(g, a, np.zeros(64, np.float32)).sum())
    queue = next(q for q in machine.queues if q.ENGINE == "PM4")
    seen.append((values, machine.executed, queue.packets, queue.read, machine.ignored.lines(), machine.findings))
    assert seen[0] == seen[-1] and len(values) > 20


def test_peers_copy_and_machines_are_apart() -> None:
  port = MockPort(Machine("gfx1100,gfx1100"))
  first, second = AMDRuntime(port, timeout_s=20), AMDRuntime(port, 1, timeout_s=20)
  data = np.frombuffer(os.urandom(100_000), np.uint8)
  a, b = upload(first, data), second.alloc(100_000)
  second.copy(b, a, 100_000)
  first.copyin(a, memoryview(bytes(100_000)))
  assert np.array_equal(download(second, b, data), data)
  assert not download(first, a, data).any()
  other = AMDRuntime(MockPort(Machine("gfx1100")), timeout_s=20)
  assert not other.is_peer(first) and first.is_peer(second)
  with pytest.raises(DeviceError): AMDRuntime(port, 2)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("last", ["kernel", "copy"])
def test_each_card_wakes_a_waiter_that_sleeps(add_object: bytes, first: int, last: str) -> None:
  """A wait of more than 2 ms goes to sleep until the card writes into the event page and interrupts."""
  port = MockPort(Machine("gfx1100,gfx1100"))
  cards = {i: AMDRuntime(port, i, timeout_s=20) for i in (first, 1 - first)}
  for card in cards.values():
    a = upload(card, np.ones(1 << 16, np.float32))  # more than the host copies itself
    if last == "kernel": card.load(add_object, "add")([a, a, a], [], (1, 1, 1), (64, 1, 1))
    began = port.now_ns()
    card.sleep(1.0)
    assert card.timeline.done(card.timeline.last) and port.now_ns() - began < 500_000_000
  assert not port.machine.findings


def test_a_fork_is_told_and_the_parent_goes_on(gpu: AMDRuntime) -> None:
  read, write = os.pipe()
  child = os.fork()
  if not child:
    try: gpu.synchronize(); gpu.copyin(gpu.alloc(4), memoryview(bytes(4)))
    except DeviceError as e: os.write(write, str(e).encode())
    finally: os._exit(0)
  os.waitpid(child, 0)
  assert b"used by its fork" in os.read(read, 1000)
  os.close(read)
  os.close(write)
  assert download(gpu, upload(gpu, np.arange(4)), np.arange(4)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("queue", "words", "name"), [
  ("compute", [0xC000FE00, 0], "DRAW_MULTI_PREAMBLE"),
  ("compute", [0x00001234], "type-0"), ("copier", [0x000000EE], "0xee"),
])
def test_a_packet_that_nobody_knows_is_named(gpu: AMDRuntime, queue: str, words: list[int], name: str) -> None:
  stream = CommandStream("broken")
  stream.words += words
  stream.mark_words("timeline", *_spare(stream))
  with pytest.raises(Error, match=rf"(?s){name}.*"):
    gpu.submit(getattr(gpu, queue), stream.bind())
    gpu.synchronize()


def _spare(stream: CommandStream) -> tuple[int, int]:
  """Two words behind the packets, which the queue never reaches."""
  stream.words += [0, 0]
  return len(stream.words) - 2, len(stream.words) - 1


def test_host_memory_can_be_registered(gpu: AMDRuntime, add_object: bytes) -> None:
  at = gpu.port.mmap(-1, 8192)
  host = gpu.kfd.register_host(gpu.gpu, at, 8192)
  gpu.load(add_object, "fill")([], [at + 4096, 3, 1, 0.0, 0], (1, 1, 1), (64, 1, 1))
  gpu.synchronize()
  assert np.array_equal(np.frombuffer(gpu.port.memory(at + 4096, 256), np.int32), 3 + np.arange(64))
  gpu.kfd.free(host)
  with pytest.raises(InvalidArgument, match="whole pages"): gpu.kfd.register_host(gpu.gpu, at + 1, 4096)


def test_batches_run(gpu: AMDRuntime, add_object: bytes) -> None:
  fill, add = gpu.load(add_object, "fill"), gpu.load(add_object, "add")
  a, b = gpu.alloc(256), gpu.alloc(256)
  assert a.address is not None and b.address is not None
  batch = Batch(gpu, [
    BatchedLaunch(fill, struct.pack("<QihxxdB", a.address, 0x3F800000, 0, 0.0, 0), (1, 1, 1), (64, 1, 1)),
    BatchedLaunch(add, struct.pack("<QQQ", b.address, a.address, b.address), (1, 1, 1), (64, 1, 1)),
    BatchedLaunch(add, struct.pack("<QQQ", b.address, a.address, b.address), (1, 1, 1), (64, 1, 1))])
  gpu.copyin(b, memoryview(bytes(256)))
  for _ in range(3): batch.submit()
  assert download(gpu, b, np.zeros(64, np.float32)).tolist() == [6.0] * 64
  batch.set_argument(0, 8, struct.pack("<i", 0x40000000))
  batch.submit()
  assert download(gpu, b, np.zeros(64, np.float32)).tolist() == [10.0] * 64
  batch.close()


def test_a_runner_is_the_launches_one_by_one(gpu: AMDRuntime, add_object: bytes, asks_object: bytes) -> None:
  """Also for kernels that ask for the dispatch packet, hidden arguments and the id of their launch."""
  asks, fill = gpu.load(asks_object, "asks"), gpu.load(add_object, "fill")
  memory = [gpu.alloc(256) for _ in range(3)]
  shapes = ((3, 1, 1), (4, 2, 1)), ((5, 6, 7), (8, 1, 1))
  run = gpu.runner([base.Launch(asks, (k,), *shape) for k, shape in enumerate(shapes)]
                   + [base.Launch(fill, (2,), (1, 1, 1), (64, 1, 1))])
  for by in (3, 9):
    before = gpu.timeline.last
    run(memory, [[], [], [by, 1, 2.0, 0]])  # type: ignore[list-item]
    assert gpu.timeline.last == before + 1
    found = [download(gpu, a, np.zeros(5, np.uint32)).tolist() for a in memory]
    assert found[2] == [by + 2 + k for k in range(5)]
    for k, (grid, block) in enumerate(shapes):
      assert found[k][4] == before + 1
      asks([memory[k]], [], grid, block)
      assert found[k][:4] == download(gpu, memory[k], np.zeros(4, np.uint32)).tolist()
      assert found[k][:3] == [block[0] | block[1] << 16, grid[0] * block[0], grid[0]]


def test_other_grids_are_of_one_replay_alone(gpu: AMDRuntime, add_object: bytes) -> None:
  add, x = gpu.load(add_object, "add"), np.arange(256, dtype=np.float32)
  a, b, c = gpu.alloc(1024), gpu.alloc(1024), gpu.alloc(1024)
  for memory in (a, b): gpu.copyin(memory, memoryview(x).cast("B"))
  run = gpu.runner([base.Launch(add, (2, 0, 1), (1, 1, 1), (64, 1, 1))] * 2)
  for groups in (None, 4, None, 3, 2, None):
    gpu.copyin(c, memoryview(bytes(1024)))
    run([a, b, c], None, None if groups is None else [(groups, 1, 1), (1, 1, 1)])
    assert download(gpu, c, x).tolist() == [2 * k if k < 64 * (groups or 1) else 0 for k in range(256)]
  other = AMDRuntime(MockPort(Machine("gfx1100")), timeout_s=20)
  with pytest.raises(InvalidArgument, match="a program of another device"): other.runner(run.launches)
  other.close()


def test_queues_stay_in_order_where_the_timeline_wraps_32_bits(gpu: AMDRuntime, add_object: bytes) -> None:
  gpu.timeline.last = gpu.timeline.signal.value = (1 << 32) - 5
  add, a, b = gpu.load(add_object, "add"), gpu.alloc(256), gpu.alloc(256)
  gpu.copyin(a, memoryview(np.ones(64, np.float32)).cast("B"))
  for _ in range(5):
    add([b, a, a], [], (1, 1, 1), (64, 1, 1))
    gpu.copy(a, b, 256)
  assert download(gpu, a, np.zeros(64, np.float32)).tolist() == [32.0] * 64 and gpu.timeline.last > 1 << 32


def test_closing_the_devices_ends_a_mock_machine_and_the_next_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
  from tinyhw import Tensor, launch
  from tinyhw.devices import buffer
  from tinyhw.devices.registry import Devices
  from tinyhw.engine import realize, run
  monkeypatch.setenv("MOCKGPU", "1")
  devices = Devices()
  for module in (buffer, realize, run): monkeypatch.setattr(module, "Device", devices, raising=False)
  monkeypatch.setattr("tinyhw.kernels.launch.Device", devices)
  binary = (OBJECTS / "gfx1100_v5.co").read_bytes()
  data = np.arange(256, dtype=np.uint32)
  assert (Tensor([1, 2, 3], device="AMD") + 1).tolist() == [2, 3, 4]
  wanted = r"page fault: read of 4 bytes at .*Device\['AMD'\].reset\(\)(?s:.*), PC 0x.*: global_load_b32"
  with pytest.raises(DeviceError, match=wanted):
    launch(binary, "reverse", (1,), (256,), [1 << 40])
  with pytest.raises(DeviceError, match="page fault"): launch(binary, "reverse", (1,), (256,), [data])
  devices.close()
  assert (Tensor([1, 2, 3], device="AMD") + 1).tolist() == [2, 3, 4]
  assert np.array_equal(launch(binary, "reverse", (1,), (256,), [data])[0], data[::-1])
  devices.close()


def test_copies_can_be_timed_on_the_gpu_clock(gpu: AMDRuntime) -> None:
  a, b, signal = gpu.alloc(1 << 20), gpu.alloc(1 << 20), gpu.timeline.signal
  c = CopyCommands(gpu.arch, "timed copy").memory_barrier().timestamp(signal.start_address)
  c.copy("to", "from", "count").timestamp(signal.stop_address).signal(signal.address, "timeline")
  assert a.address is not None and b.address is not None
  stream = c.bind(**{"to": b.address, "from": a.address, "count": (1 << 20) - 1})
  gpu.wait(gpu.submit(gpu.copier, stream))
  assert 0 < gpu.elapsed() < 1 and signal.words[1] > 0
