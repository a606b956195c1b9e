"""Small programs over the NV driver that together use what it does: each returns what it found wrong, a line each.

As `tests/drive/programs.py`, of which this is the counterpart: wrong values, what the driver raises, and what the
machine has found doubtful when all have run are evidence.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import pytest

from tests.drive.programs import Array, same
from tinyhw.core.errors import Error
from tinyhw.devices.assemble import Assembler
from tinyhw.drive.base import Allocation, Launch
from tinyhw.drive.nv import channel
from tinyhw.drive.nv import device as driver
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort

THREADS: Final = 32
PTX: Final = b"""
.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 4 .b8 more[];
.visible .entry add(.param .u64 out, .param .u64 a, .param .u64 b) {
  .reg .b64 %l<8>; .reg .b32 %r<5>;
  ld.param.u64 %l1, [out]; ld.param.u64 %l2, [a]; ld.param.u64 %l3, [b];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.wide.u32 %l4, %r1, 4;
  add.u64 %l1, %l1, %l4; add.u64 %l2, %l2, %l4; add.u64 %l3, %l3, %l4;
  ld.global.u32 %r2, [%l2]; ld.global.u32 %r3, [%l3]; add.u32 %r2, %r2, %r3; st.global.u32 [%l1], %r2;
  ret;
}
.visible .entry box(.param .u64 out) {
  .reg .b64 %l<4>; .reg .b32 %r<8>;
  ld.param.u64 %l1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
  mad.lo.u32 %r3, %r3, %r5, %r2; mad.lo.u32 %r3, %r3, %r4, %r1;
  mul.wide.u32 %l2, %r3, 4; add.u64 %l1, %l1, %l2; mov.u32 %r6, %nctaid.y; mul.lo.u32 %r3, %r3, %r6;
  st.global.u32 [%l1], %r3;
  ret;
}
.visible .entry turned(.param .u64 out) {
  .reg .b64 %l<4>; .reg .b32 %r<8>; .shared .align 4 .b8 own[128];
  ld.param.u64 %l1, [out];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, own; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1;
  mov.u32 %r4, more; add.u32 %r4, %r4, %r2; st.shared.u32 [%r4], %r1; bar.sync 0;
  sub.u32 %r5, 124, %r2; mov.u32 %r6, own; add.u32 %r6, %r6, %r5; ld.shared.u32 %r6, [%r6];
  ld.shared.u32 %r7, [%r4]; add.u32 %r6, %r6, %r7;
  cvt.u64.u32 %l2, %r2; add.u64 %l1, %l1, %l2; st.global.u32 [%l1], %r6;
  ret;
}
.visible .entry frame(.param .u64 out) {
  .reg .b64 %l<4>; .reg .b32 %r<6>; .local .align 4 .b8 own[64];
  ld.param.u64 %l1, [out];
  mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 15; shl.b32 %r2, %r2, 2; mov.u32 %r3, own; add.u32 %r3, %r3, %r2;
  st.local.u32 [%r3], %r1; ld.local.u32 %r4, [%r3];
  mul.wide.u32 %l2, %r1, 4; add.u64 %l1, %l1, %l2; st.global.u32 [%l1], %r4;
  ret;
}
"""


CLUSTERS: Final = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry around(.param .u64 out) {
  .reg .b64 %l<4>; .reg .b32 %r<8>; .shared .align 4 .b8 own[4];
  ld.param.u64 %l1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, own; st.shared.u32 [%r2], %r1;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  mov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 1; mapa.shared::cluster.u32 %r4, %r2, %r3;
  ld.shared::cluster.u32 %r4, [%r4]; mov.u32 %r5, %nclusterid.x; mov.u32 %r6, %cluster_nctaid.x;
  mad.lo.u32 %r4, %r5, 100, %r4; mad.lo.u32 %r4, %r6, 1000, %r4;
  mul.wide.u32 %l2, %r1, 4; add.u64 %l1, %l1, %l2; st.global.u32 [%l1], %r4;
  barrier.cluster.arrive; barrier.cluster.wait;
  ret;
}
"""


def upload(gpu: NVRuntime, data: Array) -> Allocation:
  a = gpu.alloc(data.nbytes)
  gpu.copyin(a, memoryview(np.ascontiguousarray(data)).cast("B"))
  return a


def download(gpu: NVRuntime, a: Allocation, like: Array) -> Array:
  out = np.empty_like(like)
  gpu.copyout(memoryview(out).cast("B"), a)
  return out


def row(value: int, count: int = THREADS) -> Array: return np.full(count, value, np.uint32)


ONE: Final = (1, 1, 1)
BLOCK: Final = (THREADS, 1, 1)
Program = Callable[[NVRuntime, NVRuntime], Iterator[str]]
PROGRAMS: Final[list[Program]] = []


def program(f: Program) -> Program:
  PROGRAMS.append(f)
  return f


@program
def launches(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Kernels in turns, on both cards; grids and blocks of several shapes."""
  for g in (gpu, peer):
    add, box = g.load(PTX, "add"), g.load(PTX, "box")
    a = np.arange(4 * THREADS, dtype=np.uint32)
    at, out, boxed = upload(g, a), upload(g, np.zeros_like(a)), upload(g, np.zeros(96, np.uint32))
    half = upload(g, np.zeros_like(a))
    for blocks, to in ((2, half), (4, out)): add([to, at, at], [], (blocks, 1, 1), BLOCK)
    box([boxed], [], (1, 3, 1), (8, 4, 1))
    yield from same(download(g, out, a), a * 2, "a + a")
    yield from same(download(g, half, a), np.where(a < 2 * THREADS, a * 2, 0), "a half of that")
    yield from same(download(g, boxed, np.zeros(96, np.uint32)), np.arange(96, dtype=np.uint32) * 3, "blocks of 8 x 4")


@program
def chain(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Each launch reads what the one before it wrote; pushbuffer and argument memory go round."""
  marker, add = gpu.compute_marker(), gpu.load(PTX, "add")
  one, *rows = (upload(gpu, row(v)) for v in (1, 0, 0, 0))
  for i in range(90):
    if i in (40, 85):
      for _ in range(340): gpu.submit(gpu.compute, marker)
    add([rows[(i + 1) % 3], rows[i % 3], one], [], ONE, BLOCK)
  yield from same(download(gpu, rows[0], row(0)), row(90), "90 additions")


@program
def copies(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Host to device and back, also longer than the bounce buffer, and not past the end."""
  for size in (1, 4096, 5 * BOUNCE_BYTES + 7):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    a, b = upload(gpu, data), upload(gpu, np.zeros(size + 8, np.uint8))
    gpu.copy(b, a, size)
    got = download(gpu, b, np.zeros(size + 8, np.uint8))
    yield from same(got, np.concatenate([data, np.zeros(8, np.uint8)]), f"a copy of {size} bytes")


@program
def lines(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Lines at two pitches, and bytes that travel in the pushbuffer."""
  source = np.arange(96, dtype=np.uint8)
  a, b = upload(gpu, source), upload(gpu, np.zeros(128, np.uint8))
  gpu.copy_lines(b, a, length=5, lines=6, to_pitch=20, from_pitch=10)
  wanted = np.zeros(128, np.uint8)
  for n in range(6): wanted[20 * n:20 * n + 5] = source[10 * n:10 * n + 5]
  yield from same(download(gpu, b, wanted), wanted, "six lines")
  gpu.write_inline(b, b"seven b", 3)
  wanted[3:10] = np.frombuffer(b"seven b", np.uint8)
  yield from same(download(gpu, b, wanted), wanted, "inline data")


@program
def copies_and_kernels(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Channels in turns: what a kernel wrote is copied, what was copied is read by a kernel."""
  add = gpu.load(PTX, "add")
  a, b, c = (upload(gpu, row(v)) for v in (1, 0, 0))
  for step in range(6):
    add([b, a, a], [], ONE, BLOCK)
    gpu.copy(c, b, 4 * THREADS)
    gpu.copy(a, c, 4 * THREADS)
    if step == 3: gpu.copyin(a, memoryview(row(5)).cast("B"))
  yield from same(download(gpu, a, row(0)), row(20), "kernels and copies")


@program
def peers(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Copies between two cards, each after a kernel of the other."""
  adds = {g: g.load(PTX, "add") for g in (gpu, peer)}
  a, b = upload(gpu, row(1)), peer.alloc(4 * THREADS)
  for _ in range(3):
    for source, target, x, y in ((gpu, peer, a, b), (peer, gpu, b, a)):
      target.copy(y, x, 4 * THREADS)
      adds[target]([y, y, y], [], ONE, BLOCK)
      source.copyin(x, memoryview(row(0)).cast("B"))
  yield from same(download(gpu, a, row(0)), row(64), "between cards")


@program
def shared(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Shared memory, declared and dynamic; local memory."""
  out, wanted = upload(gpu, row(0)), np.full(THREADS, THREADS - 1, np.uint32)
  assert out.address is not None
  turned = gpu.load(PTX, "turned")
  turned.launch(struct.pack("<Q", out.address), ONE, BLOCK, dynamic_lds=4 * THREADS)
  yield from same(download(gpu, out, wanted), wanted, "shared memory")
  gpu.load(PTX, "frame")([out], [], ONE, BLOCK)
  wanted = np.arange(THREADS, dtype=np.uint32)
  yield from same(download(gpu, out, wanted), wanted, "local memory")


@program
def clusters(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Blocks that read each other's shared memory, two and two."""
  out, wanted = upload(gpu, row(0, 6)), np.array([2301, 2300, 2303, 2302, 2305, 2304], np.uint32)
  assert out.address is not None
  gpu.load(CLUSTERS, "around").launch(struct.pack("<Q", out.address), (6, 1, 1), ONE, cluster=(2, 1, 1))
  yield from same(download(gpu, out, wanted), wanted, "blocks of a cluster")


@program
def signals(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Work that waits for the host; a launch that is timed."""
  add, a = gpu.load(PTX, "add"), upload(gpu, row(1))
  signal = gpu.new_signal()
  gpu.wait_for(signal, 3)
  add([a, a, a], [], ONE, BLOCK)
  gpu.port.wait(lambda: False, 0.0)
  if gpu.timeline.done(gpu.timeline.last): yield "work ran before the signal that it waits for"
  signal.value = 4  # whoever waits for 3 goes on
  yield from same(download(gpu, a, row(0)), row(2), "after a signal")
  seconds = add([a, a, a], [], ONE, BLOCK, wait=True)
  if not seconds or not 0 < seconds < 1: yield f"a launch took {seconds} s"
  for n in range(3, 9):
    add([a, a, a], [], ONE, BLOCK)
    gpu.submit(gpu.compute, gpu.compute_marker())
    yield from same(download(gpu, a, row(0)), row(1 << n), "after a marker")


@program
def sleeps(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Waits that sleep until the card interrupts, behind a kernel and behind a copy."""
  add, a, b = gpu.load(PTX, "add"), upload(gpu, row(1)), upload(gpu, row(0))
  signal = gpu.new_signal()
  for n, copies in enumerate((False, True), 1):
    gpu.synchronize()
    gpu.wait_for(signal, n)
    add([a, a, a], [], ONE, BLOCK)
    if copies: gpu.copy(b, a, 4 * THREADS)
    if gpu.asleep(0.0): yield "an interrupt came before the work that it stands behind"
    signal.value = n
    if not gpu.asleep(0.5): yield "no interrupt came"
    if not gpu.timeline.done(gpu.timeline.last): yield "an interrupt came before the end of the work"
  yield from same(download(gpu, b, row(0)), row(4), "after a sleep")


@program
def batches(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Launches of one submission, each of which reads what the one before it wrote."""
  add = gpu.load(PTX, "add")
  a, b, one = upload(gpu, row(0)), upload(gpu, row(0)), upload(gpu, row(1))
  pair = [Launch(add, (1, 0, 2), ONE, BLOCK), Launch(add, (0, 1, 2), ONE, BLOCK)]
  run = gpu.runner(pair)
  for _ in range(2):
    add([a, a, one], [], ONE, BLOCK)
    for _ in range(3): run([a, b, one], [(), ()])
  yield from same(download(gpu, a, row(0)), row(14), "replays")


@program
def user_pages(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Pages of the process: a kernel writes them, the copy engine reads them."""
  add, one, out = gpu.load(PTX, "add"), upload(gpu, row(1)), upload(gpu, row(0))
  at = gpu.port.mmap(-1, 8192)
  data = np.frombuffer(gpu.port.memory(at, 8192), np.uint32)
  data[:] = np.arange(2048)
  pages = gpu.register_host(at, 8192)
  add([pages, pages, one], [], ONE, BLOCK)
  gpu.copy(out, pages, 4 * THREADS)
  yield from same(download(gpu, out, row(0)), np.arange(1, THREADS + 1, dtype=np.uint32), "a copy out of user pages")
  yield from same(data[:THREADS].copy(), np.arange(1, THREADS + 1, dtype=np.uint32), "user pages")
  add([pages, pages, one], [], ONE, BLOCK)
  gpu.unregister_host(pages)
  yield from same(data[:THREADS].copy(), np.arange(2, THREADS + 2, dtype=np.uint32), "user pages at their end")
  gpu.port.munmap(at, 8192)


@program
def frees(gpu: NVRuntime, peer: NVRuntime) -> Iterator[str]:
  """Memory that goes while queued work still uses it."""
  add, one = gpu.load(PTX, "add"), upload(gpu, row(1))
  a = gpu.alloc(1 << 16)
  gpu.copyin(a, memoryview(row(1)).cast("B"))
  add([a, a, one], [], ONE, BLOCK)
  gpu.free(a)
  gpu._free.clear()
  gpu.synchronize()
  yield from ()


PUSH_BYTES: Final = 1 << 13   # small rings go round soon
ENTRIES: Final = 512
KERNARG_BYTES: Final = 1 << 14
BOUNCE_BYTES: Final = 8192


def all_of(machine: NvMachine) -> list[str]:
  """Run the programs on a machine of two cards until one has evidence; then, or at the end, what the machine found."""
  port = NvPort(machine)
  evidence: list[str] = []
  runtimes: list[NVRuntime] = []
  try:
    for index in range(2):
      runtimes.append(NVRuntime(port, index, timeout_s=1))
      runtimes[-1].assemble = Assembler(runtimes[-1].arch, False)
    for run in PROGRAMS:
      evidence += run(*runtimes)
      if evidence: break
  except (Error, OSError, ValueError, IndexError, KeyError, StopIteration, AssertionError) as error:
    evidence.append(f"{type(error).__name__}: {error}")
  for runtime in runtimes:
    if evidence and runtime.lost is None: runtime.timeout_s = 0.05
    runtime.close()
  evidence += machine.findings
  machine.close()
  return evidence


@contextmanager
def small() -> Iterator[None]:
  """Rings and buffers so small that the programs go round them several times; all by the reference."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(channel, "PUSH_BYTES", PUSH_BYTES)
    patch.setattr(channel, "ENTRIES", ENTRIES)
    patch.setattr(driver, "_KERNARG_BYTES", KERNARG_BYTES)
    patch.setattr(driver, "_BOUNCE_BYTES", BOUNCE_BYTES)
    yield
