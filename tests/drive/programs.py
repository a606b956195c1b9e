"""Small programs over the AMD driver that together use what it does: each returns what it found wrong, a line each.

A program gets two runtimes on a machine of two cards. Wrong values are told as evidence and never raised; what the
driver raises is evidence too, and so is what the machine has found doubtful when all have run.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

from tests.drive.conftest import ADD, ASKS, compile_ir
from tinyhw.core.errors import Error
from tinyhw.drive.amd import device as driver
from tinyhw.drive.amd.batch import Batch, BatchedLaunch
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.drive.amd.kfd import Domain
from tinyhw.drive.base import Allocation
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort

Array = np.ndarray[Any, Any]
LANES: Final = 64
RING_BYTES: Final = 16384     # small rings wrap soon
KERNARG_BYTES: Final = 5120   # fewer launches than fit the ring
BOUNCE_BYTES: Final = 16384
MORE = """
define amdgpu_kernel void @count(ptr addrspace(1) %out) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %old = atomicrmw add ptr addrspace(1) %out, i32 %l syncscope("agent") monotonic
  ret void
}
define amdgpu_kernel void @box(ptr addrspace(1) %out) #0 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %y = call i32 @llvm.amdgcn.workitem.id.y()
  %g = call i32 @llvm.amdgcn.workgroup.id.y()
  %row = mul i32 %y, 8
  %a = add i32 %row, %x
  %base = mul i32 %g, 32
  %i = add i32 %base, %a
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %v = mul i32 %i, 3
  store i32 %v, ptr addrspace(1) %p
  ret void
}
define amdgpu_kernel void @wide(ptr addrspace(1) %out, ptr addrspace(1) %in) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr <32 x i32>, ptr addrspace(1) %in, i32 %l
  %v = load volatile <32 x i32>, ptr addrspace(1) %p
  %w = load volatile <32 x i32>, ptr addrspace(1) %p
  %s = add <32 x i32> %v, %w
  %o = getelementptr <32 x i32>, ptr addrspace(1) %out, i32 %l
  store volatile <32 x i32> %s, ptr addrspace(1) %o
  ret void
}
define amdgpu_kernel void @waits(ptr addrspace(1) %flag, ptr addrspace(1) %out) #0 {
entry:
  br label %loop
loop:
  %v = load atomic i32, ptr addrspace(1) %flag monotonic, align 4
  %c = icmp eq i32 %v, 1000
  br i1 %c, label %done, label %loop
done:
  store i32 77, ptr addrspace(1) %out
  ret void
}
define amdgpu_kernel void @large(ptr addrspace(1) %out) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %m = alloca [256 x i32], addrspace(5)
  %at = and i32 %l, 63
  %p = getelementptr [256 x i32], ptr addrspace(5) %m, i32 0, i32 %at
  %base = mul i32 %g, 64
  %i = add i32 %base, %l
  store volatile i32 %i, ptr addrspace(5) %p
  %v = load volatile i32, ptr addrspace(5) %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %v, ptr addrspace(1) %o
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workgroup.id.y()
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="true" }
"""


@cache
def objects(cpu: str) -> tuple[bytes, bytes, bytes]:
  """Code objects with the kernels of `ADD`, `ASKS` and `MORE`."""
  return compile_ir(ADD, cpu), compile_ir(ASKS, cpu), compile_ir(MORE, cpu)


def upload(gpu: AMDRuntime, data: Array) -> Allocation:
  a = gpu.alloc(data.nbytes)
  gpu.copyin(a, memoryview(np.ascontiguousarray(data)).cast("B"))
  return a


def download(gpu: AMDRuntime, a: Allocation, like: Array) -> Array:
  out = np.empty_like(like)
  gpu.copyout(memoryview(out).cast("B"), a)
  return out


Program = Callable[[AMDRuntime, AMDRuntime], Iterator[str]]
PROGRAMS: Final[list[Program]] = []


def program(f: Program) -> Program:
  PROGRAMS.append(f)
  return f


def same(got: Array, wanted: Array, what: str) -> Iterator[str]:
  if not np.array_equal(got, wanted):
    at = int(np.argmax(np.ravel(got != wanted)))
    yield f"{what}: element {at} is {np.ravel(got)[at]}, expected {np.ravel(wanted)[at]}"


@program
def launches(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Two kernels in turns, on both cards, whose registers differ; grids of several workgroups."""
  for g in (gpu, peer):
    add, fill = (g.load(objects(g.target)[0], name) for name in ("add", "fill"))
    box = g.load(objects(g.target)[2], "box")
    a, b = np.arange(4 * LANES, dtype=np.float32), np.full(4 * LANES, 0.5, np.float32)
    at, bt = upload(g, a), upload(g, b)
    out, ints, boxed = (upload(g, d) for d in (np.zeros_like(a), np.zeros(LANES, np.int32), np.zeros(96, np.int32)))
    for step in range(3):
      add([out, at, bt], [], (4, 1, 1), (LANES, 1, 1))
      fill([ints], [step, 3, 0.0, 1], (1, 1, 1), (LANES, 1, 1))
      fill([ints], [step, 2, 0.0, 1], (1, 1, 1), (LANES, 1, 1))
    box([boxed], [], (1, 3, 1), (8, 4, 1))
    yield from same(download(g, out, a), a + b, "a + b")
    yield from same(download(g, ints, np.zeros(LANES, np.int32)), np.arange(LANES, dtype=np.int32) * 2 + 3, "fill")
    yield from same(download(g, boxed, np.zeros(96, np.int32)), np.arange(96, dtype=np.int32) * 3, "a block of 8 x 4")


@program
def chain(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Each launch reads what the one before it wrote; rings and argument memory go round several times."""
  marker = gpu.compute_marker()
  for _ in range(560): gpu.submit(gpu.compute, marker)
  add = gpu.load(objects(gpu.target)[0], "add")
  one, *rows = (upload(gpu, np.full(LANES, v, np.float32)) for v in (1, 0, 0, 0))
  for i in range(150): add([rows[(i + 1) % 3], rows[i % 3], one], [], (1, 1, 1), (LANES, 1, 1))
  yield from same(download(gpu, rows[0], np.zeros(LANES, np.float32)), np.full(LANES, 150, np.float32), "150 additions")


@program
def copies(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Host to device and back, also longer than the bounce buffer, to the last byte of a buffer and not past it."""
  for size in (1, 4096, BOUNCE_BYTES + 4096, 5 * BOUNCE_BYTES + 7):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    a, b = upload(gpu, data), upload(gpu, np.zeros(size + 8, np.uint8))
    gpu.copy(b, a, size)
    got = download(gpu, b, np.zeros(size + 8, np.uint8))
    yield from same(got, np.concatenate([data, np.zeros(8, np.uint8)]), f"a copy of {size} bytes")


@program
def copies_and_kernels(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Queues in turns: what a kernel wrote is copied, what was copied is read by a kernel."""
  add = gpu.load(objects(gpu.target)[0], "add")
  a, b, c = (upload(gpu, np.full(LANES, v, np.float32)) for v in (1, 0, 0))
  for step in range(6):
    add([b, a, a], [], (1, 1, 1), (LANES, 1, 1))
    gpu.copy(c, b, 4 * LANES)
    gpu.copy(a, c, 4 * LANES)
    if step == 3: gpu.copyin(a, memoryview(np.full(LANES, 5, np.float32)).cast("B"))
  yield from same(download(gpu, a, np.zeros(LANES, np.float32)), np.full(LANES, 20, np.float32), "kernels and copies")


@program
def peers(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Copies between two cards, each after a kernel of the other."""
  adds = {g: g.load(objects(g.target)[0], "add") for g in (gpu, peer)}
  a, b = upload(gpu, np.ones(LANES, np.float32)), peer.alloc(4 * LANES)
  for _ in range(3):
    for source, target, x, y in ((gpu, peer, a, b), (peer, gpu, b, a)):
      target.copy(y, x, 4 * LANES)
      adds[target]([y, y, y], [], (1, 1, 1), (LANES, 1, 1))
      source.copyin(x, memoryview(np.zeros(LANES, np.float32)).cast("B"))
  yield from same(download(gpu, a, np.zeros(LANES, np.float32)), np.full(LANES, 64, np.float32), "between cards")


@program
def scratch(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Private memory: a little, then more, in more workgroups than the card has shader engines."""
  out = upload(gpu, np.zeros(16 * LANES, np.uint32))
  small = gpu.load(objects(gpu.target)[1], "private")
  for name in ("private", "large", "private"):
    groups = 8 if name == "large" else 1
    run = small if name == "private" else gpu.load(objects(gpu.target)[2], name)
    for _ in range(20): run([out], [], (groups, 1, 1), (LANES, 1, 1))
    wanted = np.arange(groups * LANES, dtype=np.uint32)
    yield from same(download(gpu, out, wanted), wanted, f"scratch of {name}")


@program
def local(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """LDS, to the end of it."""
  out, wanted = upload(gpu, np.zeros(1024, np.uint32)), np.arange(1024, dtype=np.uint32)
  gpu.load(objects(gpu.target)[1], "shared")([out], [], (1, 1, 1), (1024, 1, 1))
  yield from same(download(gpu, out, wanted), wanted, "1,024 words of LDS")


@program
def registers(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """A kernel that uses many vector registers."""
  data = np.arange(LANES * 32, dtype=np.uint32)
  source, out = upload(gpu, data), upload(gpu, np.zeros_like(data))
  gpu.load(objects(gpu.target)[2], "wide")([out, source], [], (1, 1, 1), (LANES, 1, 1))
  yield from same(download(gpu, out, data), data * 2, "64 registers a lane")


@program
def atomics(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  out = upload(gpu, np.zeros(1, np.uint32))
  count = gpu.load(objects(gpu.target)[2], "count")
  for _ in range(2): count([out], [], (5, 1, 1), (LANES, 1, 1))
  got = download(gpu, out, np.zeros(1, np.uint32))
  yield from same(got, np.array([10 * LANES * (LANES - 1) // 2], np.uint32), "atomic additions")


@program
def asking(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """A kernel that asks for its dispatch packet, its queue, its number and hidden arguments."""
  out = upload(gpu, np.zeros(5, np.uint32))
  gpu.load(objects(gpu.target)[1], "asks")([out], [], (3, 1, 1), (4, 2, 1))
  number = gpu.timeline.last
  wanted = np.array([4 | 2 << 16, 12, 3, gpu.gpu.lds_base >> 32, number], np.uint32)
  yield from same(download(gpu, out, wanted), wanted, "what a kernel asks for")


@program
def signals(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Work that waits for the host."""
  add, a = gpu.load(objects(gpu.target)[0], "add"), upload(gpu, np.ones(LANES, np.float32))
  signal = gpu.new_signal()
  gpu.wait_for(signal, 3)
  add([a, a, a], [], (1, 1, 1), (LANES, 1, 1))
  gpu.port.wait(lambda: False, 0.0)
  if gpu.timeline.done(gpu.timeline.last): yield "work ran before the signal that it waits for"
  signal.value = 3
  yield from same(download(gpu, a, np.zeros(LANES, np.float32)), np.full(LANES, 2, np.float32), "after a signal")


@program
def long(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """A kernel that runs until the host lets it go, long enough to be taken off the card and put back."""
  out, flag = upload(gpu, np.zeros(1, np.uint32)), gpu.kfd.alloc(gpu.gpu, 4096, Domain.GTT)
  gpu.load(objects(gpu.target)[2], "waits").launch(struct.pack("<QQ", flag.address, out.address), (1, 1, 1), (1, 1, 1))
  words = flag.bytes().cast("I")
  for step in range(60):
    words[0] = step
    gpu.port.wait(lambda: False, 0.0)
  words[0] = 1000
  yield from same(download(gpu, out, np.zeros(1, np.uint32)), np.array([77], np.uint32), "a kernel that waits")
  del words
  gpu.kfd.free(flag)


@program
def sleeps(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """A wait that goes to sleep is woken by the card that it waits for, on each card and behind each queue."""
  for g in (gpu, peer):
    add, a = g.load(objects(g.target)[0], "add"), upload(g, np.ones(LANES, np.float32))
    for last in ("kernel", "copy"):
      if last == "kernel": add([a, a, a], [], (1, 1, 1), (LANES, 1, 1))
      else: g.copyin(a, memoryview(np.ones(LANES, np.float32)).cast("B"))
      before = g.port.now_ns()
      g.sleep(1.0)
      if g.port.now_ns() - before > 900_000_000: yield f"{g.name}: a sleep behind a {last} is not woken"
    g.synchronize()


@program
def by_host(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """The host stores and reads itself, before, behind and beside kernels and copies of other engines."""
  for g in (gpu, peer): g.host_writes, g.host_reads = 4096, 1024
  add, fill = gpu.load(objects(gpu.target)[0], "add"), gpu.load(objects(gpu.target)[0], "fill")
  a, out, there = gpu.alloc(4 * LANES), gpu.alloc(4 * LANES), peer.alloc(4 * LANES)
  for round_ in range(8):
    before, value = np.full(LANES, 10 * round_ + 1, np.float32), np.full(LANES, 10 * round_ + 2, np.float32)
    gpu.copyin(a, memoryview(before).cast("B"))
    add([out, a, a], [], (1, 1, 1), (LANES, 1, 1))
    if round_ % 2: gpu.synchronize()
    gpu.copyin(a, memoryview(value).cast("B"))  # while the kernel may still read it
    yield from same(download(gpu, out, value), before + before, "a sum before the host's store")
    if round_ % 3 == 0: gpu.host_reads = 0  # by the copy engine
    yield from same(download(gpu, a, value), value, "what the host has stored")
    gpu.host_reads = 1024
    peer.copy(there, a, 4 * LANES)
    yield from same(download(peer, there, value), value, "the host's store, at a peer")
    fill([out], [1, 1.0, 1.0, 1], (1, 1, 1), (LANES, 1, 1))
    add([out, a, a], [], (1, 1, 1), (LANES, 1, 1))
    yield from same(download(gpu, out, value), value + value, "a sum behind the host's store")
  for g in (gpu, peer): g.host_writes = g.host_reads = 0


@program
def batches(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Launches in an indirect buffer, between launches in the ring."""
  fill, add = gpu.load(objects(gpu.target)[0], "fill"), gpu.load(objects(gpu.target)[0], "add")
  a, b = gpu.alloc(4 * LANES), upload(gpu, np.zeros(LANES, np.float32))
  assert a.address is not None and b.address is not None
  adding = BatchedLaunch(add, struct.pack("<QQQ", b.address, a.address, b.address), (1, 1, 1), (LANES, 1, 1))
  first = BatchedLaunch(fill, struct.pack("<QihxxdB", a.address, 0x3F800000, 0, 0.0, 0), (1, 1, 1), (LANES, 1, 1))
  batch = Batch(gpu, [adding, first, adding, adding, first])
  gpu.copyin(a, memoryview(bytes(4 * LANES)))
  for _ in range(2):
    add([b, a, b], [], (1, 1, 1), (LANES, 1, 1))
    batch.submit()
  add([b, a, b], [], (1, 1, 1), (LANES, 1, 1))
  yield from same(download(gpu, b, np.zeros(LANES, np.float32)), np.full(LANES, 7, np.float32), "two replays")
  batch.close()


@program
def resets(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """New queues go on where the old ones stopped."""
  add, a = gpu.load(objects(gpu.target)[0], "add"), upload(gpu, np.ones(LANES, np.float32))
  add([a, a, a], [], (1, 1, 1), (LANES, 1, 1))
  gpu.synchronize()
  gpu.reset()
  add([a, a, a], [], (1, 1, 1), (LANES, 1, 1))
  yield from same(download(gpu, a, np.zeros(LANES, np.float32)), np.full(LANES, 4, np.float32), "after a reset")


@program
def frees(gpu: AMDRuntime, peer: AMDRuntime) -> Iterator[str]:
  """Memory that goes while queued work still uses it."""
  add, one = gpu.load(objects(gpu.target)[0], "add"), upload(gpu, np.ones(LANES, np.float32))
  a = gpu.alloc(1 << 16)
  gpu.copyin(a, memoryview(np.ones(LANES, np.float32)).cast("B"))
  add([a, a, one], [], (1, 1, 1), (LANES, 1, 1))
  gpu.free(a)
  gpu._free.clear()
  gpu.synchronize()
  yield from ()


PROGRAMS.sort(key=lambda run: run.__name__ in {"chain", "copies", "scratch", "long", "sleeps"})  # the long ones last


def all_of(machine: Machine) -> list[str]:
  """Run the programs on a machine of two cards until one has evidence; then, or at the end, what the machine found."""
  port = MockPort(machine)
  evidence: list[str] = []
  try:
    gpu, peer = AMDRuntime(port, 0, timeout_s=1), AMDRuntime(port, 1, timeout_s=1)
    for run in PROGRAMS:
      evidence += run(gpu, peer)
      if evidence: break
    if not evidence:
      for g in (gpu, peer): g.close()
  except (Error, OSError, ValueError, IndexError, KeyError) as error:
    evidence.append(f"{type(error).__name__}: {error}")
  evidence += machine.findings
  port.end()
  machine.close()
  return evidence


@contextmanager
def small() -> Iterator[None]:
  """Rings and buffers so small that the programs fill them several times."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(driver, "_RING_BYTES", RING_BYTES)
    patch.setattr(driver, "_KERNARG_BYTES", KERNARG_BYTES)
    patch.setattr(driver, "_BOUNCE_BYTES", BOUNCE_BYTES)
    patch.setattr(driver, "_HOST_WRITES", 0)  # but where a program says so, all copies are the copy engine's
    patch.setattr(driver, "_HOST_READS", 0)
    yield
