"""Captures of CUDA's calls on the mock: what is in them, and the order that streams, events and graphs make."""
from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda.client import Client, u32, u64
from tinyhw.autogen import cuda
from tinyhw.devices.captured import Recording
from tinyhw.mock.cuda.streams.picture import take
from tinyhw.queues import calls, listing, summary
from tinyhw.queues.capture import Capture
from tinyhw.queues.cuda import record
from tinyhw.queues.cuda.stream import KINDS
from tinyhw.queues.diff import compare
from tinyhw.queues.doctor import examine
from tinyhw.queues.events import Work
from tinyhw.queues.lint import lint
from tinyhw.queues.timeline import timeline

BYTES = 1024
KERNELS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 data, .param .u32 first) {
  .reg .u64 %rd<3>; .reg .u32 %r<3>;
  ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [first]; mov.u32 %r2, %tid.x; add.u32 %r1, %r1, %r2;
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, %r1; st.global.u32 [%rd1], %r1; ret; }
.visible .entry count(.param .u64 data) {
  .reg .u64 %rd; .reg .u32 %r; ld.param.u64 %rd, [data]; atom.global.add.u32 %r, [%rd], 1; ret; }
.visible .entry flag(.param .u64 data) {
  .reg .u64 %rd; .reg .u32 %r; ld.param.u64 %rd, [data]; ld.volatile.global.u32 %r, [%rd];
  st.volatile.global.u32 [%rd], %r; ret; }
"""


class Program(Client):
  """A client with a buffer, streams that do not wait for the default one, and the kernels."""

  def __init__(self, path: Path) -> None:
    super().__init__("sm_90", context=False)
    self.recording = Recording()
    self.recording.begin(path)
    self.recording.watch(self.machine)
    self.call("cuInit", 0)
    self.call("cuCtxSetCurrent", u64(self.handle("cuDevicePrimaryCtxRetain", 0)))
    self.a, self.b = (self.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING) for _ in "ab")
    self.data = self.alloc(BYTES)
    self.put(self.data, np.ones(BYTES, np.uint8))
    self.event = self.handle("cuEventCreate", cuda.CU_EVENT_DISABLE_TIMING)
    module = self.handle("cuModuleLoadData", KERNELS.encode() + b"\0")
    self.kernels = {n: self.handle("cuModuleGetFunction", u64(module), n.encode()) for n in ("twice", "count", "flag")}

  def twice(self, stream: int, first: int = 0) -> None:
    assert self.launch(self.kernels["twice"], 1, 128, [u64(self.data), u32(first)], stream) == 0

  def one(self, name: str, stream: int) -> None:
    assert self.launch(self.kernels[name], 1, 32, [u64(self.data)], stream) == 0

  def behind(self, stream: int, other: int) -> None:
    """Have a stream wait for another one."""
    self.call("cuEventRecord", u64(self.event), u64(other))
    self.call("cuStreamWaitEvent", u64(stream), u64(self.event), 0)

  def graph(self, capture: Callable[[], None], times: int = 1) -> None:
    """Launch what is captured from stream a."""
    self.call("cuStreamBeginCapture_v2", u64(self.a), 0)
    capture()
    made = ctypes.c_uint64()
    self.call("cuStreamEndCapture", u64(self.a), ctypes.byref(made))
    ready = self.handle("cuGraphInstantiateWithFlags", made, u64(0))
    for _ in range(times): self.call("cuGraphLaunch", u64(ready), u64(self.a))


@contextmanager
def recorded(path: Path) -> Iterator[Program]:
  program = Program(path)
  try:
    yield program
    program.code("cuCtxSynchronize")  # which a kernel fails whose memory is gone
  finally:
    program.recording.end()
    program.machine.close()


def test_a_recorder_of_cuda_stays_as_large_as_it_was(tmp_path: Path) -> None:
  """Work that the host has waited for is forgotten, and memory that is gone, however much there was."""
  with recorded(tmp_path / "run.thq") as p:
    watch: Any = p.machine.watch
    def rounds(count: int) -> tuple[int, ...]:
      for _ in range(count):
        lent = p.alloc(BYTES)
        for stream in (p.a, p.b):
          p.twice(stream)
          p.call("cuMemsetD32Async", u64(lent), u32(1), u64(8), u64(stream))
          p.behind(p.b, p.a)
        p.graph(lambda: p.twice(p.a), 2)
        p.call("cuCtxSynchronize")
        p.call("cuMemFree_v2", u64(lent))
      return (sum(len(lane.tasks) for lane in watch._all.values()), len(watch._users), len(watch._known),
              sum(map(len, watch._known.values())), len(watch._gone), len(watch._all), len(watch._host))
    before, queued = rounds(3), p.recording.recorder.submissions
    assert rounds(30) == before and p.recording.recorder.submissions > queued + 200
  capture = Capture(tmp_path / "run.thq")
  assert sum(isinstance(step.event, Work) for step in capture) > 250


def test_a_recorder_of_cuda_keeps_no_more_where_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """The older work of a program that only queues is forgotten when it has ended. A race behind that is found, and
  order is no race."""
  monkeypatch.setattr(record, "KEPT", 24)
  for name, waits in (("waits.thq", True), ("races.thq", False)):
    with recorded(tmp_path / name) as p:
      watch: Any = p.machine.watch
      for n in range(120):
        p.call("cuMemsetD32Async", u64(p.data), u32(n), u64(8), u64(p.a))
        p.twice(p.a)
        if n % 8 == 0: p.machine.run(lambda: False, 0.01)  # the card goes on, the host does not look
      if waits: p.behind(p.b, p.a)
      p.twice(p.b)
      assert sum(len(lane.tasks) for lane in watch._all.values()) <= 60
      assert max(len(v) for users in watch._users.values() for v in users.values()) <= 24
    found = lint(Capture(tmp_path / name))
    assert {f.rule.name for f in found} == (set() if waits else {"race"})


def _branches(p: Program, joined: bool) -> None:
  """A graph of two kernels, in branches or one behind the other."""
  def capture() -> None:
    if not joined: p.behind(p.b, p.a)
    p.twice(p.a)
    if joined: p.behind(p.b, p.a)
    p.twice(p.b)
    p.behind(p.a, p.b)
  p.graph(capture, 2)


def _freed(p: Program, waits: bool) -> None:
  p.twice(p.a)
  if waits: p.behind(p.b, p.a)
  p.call("cuMemFreeAsync", u64(p.data), u64(p.b))


def _after_the_host(p: Program) -> None:
  p.twice(p.a)
  p.call("cuStreamSynchronize", u64(p.a))
  p.twice(p.b)


def _blocking(p: Program, flags: int) -> None:
  """The legacy default stream between kernels of a stream that blocks with it, or does not."""
  stream = p.handle("cuStreamCreate", flags)
  p.twice(stream)
  p.twice(0)
  p.twice(stream)


def _copied(p: Program, waits: bool) -> None:
  other = p.alloc(BYTES)
  p.twice(p.a)
  if waits: p.behind(p.b, p.a)
  p.call("cuMemcpyDtoDAsync_v2", u64(other), u64(p.data), u64(BYTES), u64(p.b))


def _by_value(p: Program, writes: Callable[[int], None], waits: bool = True) -> None:
  """A kernel of each stream, the second behind a value in memory that is written behind the first."""
  flag = p.alloc(64)
  p.call("cuMemsetD32_v2", u64(flag), 0, u64(16))
  p.call("cuCtxSynchronize")
  p.twice(p.a)
  writes(flag)
  if waits: p.call("cuStreamWaitValue32_v2", u64(p.b), u64(flag), 1, cuda.CU_STREAM_WAIT_VALUE_EQ)
  p.twice(p.b)


def _written(p: Program) -> Callable[[int], None]:
  return lambda flag: p.call("cuStreamWriteValue32_v2", u64(p.a), u64(flag), 1, 0)


def _both(p: Program, what: Callable[[int], None], second: Callable[[int], None] | None = None) -> None:
  what(p.a)
  (second or what)(p.b)


PROGRAMS: dict[str, tuple[Callable[[Program], None], bool]] = {  # what is done, and whether it is a race
  "two streams": (lambda p: _both(p, p.twice), True),
  "an event between them": (lambda p: (p.twice(p.a), p.behind(p.b, p.a), p.twice(p.b))[0], False),
  "the event of another time": (lambda p: (p.behind(p.b, p.a), p.twice(p.a), p.twice(p.b))[0], True),
  "each its half": (lambda p: _both(p, p.twice, lambda s: p.twice(s, 128)), False),
  "halves that overlap": (lambda p: _both(p, p.twice, lambda s: p.twice(s, 127)), True),
  "one stream": (lambda p: (p.twice(p.a), p.twice(p.a))[0], False),
  "the host waits": (_after_the_host, False),
  "the default stream": (lambda p: _blocking(p, 0), False),
  "a stream beside the default one": (lambda p: _blocking(p, cuda.CU_STREAM_NON_BLOCKING), True),
  "branches of a graph": (lambda p: _branches(p, False), True),
  "a graph in order": (lambda p: _branches(p, True), False),
  "a copy": (lambda p: _copied(p, False), True),
  "a copy behind an event": (lambda p: _copied(p, True), False),
  "memory that goes": (lambda p: _freed(p, False), True),
  "memory that goes behind an event": (lambda p: _freed(p, True), False),
  "a value between them": (lambda p: _by_value(p, _written(p)), False),
  "a value that nobody waits for": (lambda p: _by_value(p, _written(p), False), True),
  "a value that a fill leaves": (lambda p: _by_value(p, lambda flag: p.call(
    "cuMemsetD32Async", u64(flag), 1, u64(16), u64(p.a))), False),
  "atomics": (lambda p: _both(p, lambda s: p.one("count", s)), False),
  "an atomic and a store": (lambda p: _both(p, lambda s: p.one("count", s), p.twice), True),
  "kernels that may meet": (lambda p: _both(p, lambda s: p.one("flag", s)), False)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_race_is_found_where_nothing_orders(name: str, tmp_path: Path) -> None:
  do, races = PROGRAMS[name]
  with recorded(tmp_path / "run.thq") as program: do(program)
  found = lint(Capture(tmp_path / "run.thq"), advice=True)
  assert {f.rule.name for f in found} == ({"race"} if races else set()), "\n".join(map(str, found))
  for finding in found: assert len({p.queue for p in finding.places}) == 2, str(finding)


def test_calls_and_work_have_their_declared_names(tmp_path: Path) -> None:
  with recorded(tmp_path / "run.thq") as p:
    p.twice(p.a, 5)
    assert p.code("cuMemFree_v2", u64(p.data + 1)) == cuda.CUDA_ERROR_INVALID_VALUE
    box = cuda.CUDA_MEMCPY2D_v2(srcMemoryType=2, srcDevice=p.data, srcPitch=64, dstMemoryType=2, WidthInBytes=16,
                                dstDevice=p.data + 512, dstPitch=64, Height=3)
    p.call("cuMemcpy2DAsync_v2", ctypes.byref(box), u64(p.a))
  capture = Capture(tmp_path / "run.thq")
  told, packets, known = list[str](), list[str](), list[str]()
  for step in capture:
    told.append(calls.text(step))
    if step.follow is None: continue
    names = listing.Names(capture, "cuda", step.world)
    for item in step.follow.items:
      packets.append(listing.packet_text(item))
      known += listing.known(names, item, None)
  assert f"cuMemAlloc_v2(dptr={told_pointer(told)} -> {p.data:#x}, bytesize=0x400) = CUDA_SUCCESS" in told
  assert f"cuMemFree_v2(dptr={p.data + 1:#x}) = CUDA_ERROR_INVALID_VALUE" in told
  copy = next(t for t in told if t.startswith("cuMemcpy2DAsync_v2"))
  assert "WidthInBytes=16" in copy.replace("0x10", "16") and f"srcDevice={p.data:#x}" in copy
  assert any(t.startswith("cuModuleGetFunction(") and "name='twice'" in t for t in told)
  launch = f"function=twice, grid=1,1,1, block=128,1,1, data={p.data:#x}, first=0x5, call=cuLaunchKernel"
  assert f"KERNEL({launch})" in packets
  assert any(t.startswith(f"MEMCPY(dst={p.data + 512:#x}, src={p.data:#x}, bytes=0x30, rows=0x3") for t in packets)
  assert "data: DEVICE buffer 0" in {k.split(" [")[0] for k in known if k.startswith("data")} | set(known)
  counts = summary.of_capture(Capture(tmp_path / "run.thq", following=False))
  assert counts.packets == Counter(p.partition("(")[0] for p in packets) and counts.kernels == {"kernel twice": 1}
  drawn = timeline(capture)
  assert {"twice"} <= {s.name for s in drawn.spans if s.kind == "launch"}


def told_pointer(told: list[str]) -> str:
  """The pointer that cuMemAlloc_v2 was given."""
  return next(t for t in told if t.startswith("cuMemAlloc_v2")).partition("dptr=")[2].partition(" ")[0]


def test_two_runs_are_the_same_stream(tmp_path: Path) -> None:
  def run(name: str, first: int) -> Capture:
    with recorded(tmp_path / name) as p:
      p.twice(p.a, first)
      p.behind(p.b, p.a)
      p.twice(p.b)
    return Capture(tmp_path / name)
  one, two, other = run("a.thq", 0), run("b.thq", 0), run("c.thq", 9)
  assert not list(compare(one, two))
  assert [c.fields() for c in compare(one, other)] == [[("first", "0x0", "0x9")]]


def test_work_is_on_file_before_it_runs(tmp_path: Path) -> None:
  with recorded(tmp_path / "run.thq") as p:
    p.twice(p.a)
    works = [s.event for s in Capture(tmp_path / "run.thq") if isinstance(s.event, Work)]
    assert [KINDS[w.node].__name__ for w in works] == ["MEMCPY", "KERNEL"] and works[1].pieces


def test_a_wait_for_a_value_that_nobody_writes_is_told(tmp_path: Path) -> None:
  """And where it is written by who waits for this one, that is."""
  for other, said in ((0, "nothing that was submitted writes there"), (1, "writes only behind it")):
    path = tmp_path / f"{other}.thq"
    with recorded(path) as p:
      flag = p.alloc(64)
      p.call("cuMemsetD32_v2", u64(flag), 0, u64(16))
      p.call("cuCtxSynchronize")
      p.call("cuStreamWaitValue64_v2", u64(p.b), u64(flag), u64(1 << 40), cuda.CU_STREAM_WAIT_VALUE_GEQ)
      if other: p.call("cuStreamWriteValue64_v2", u64(p.b), u64(flag), u64(1 << 40), 0)
      assert p.code("cuStreamSynchronize", u64(p.b)) == cuda.CUDA_ERROR_LAUNCH_TIMEOUT
      edge, = take(p.machine).edges
      assert f"waits for {flag:#x}" in edge.why and "to be >= 0x10000000000" in edge.why
    report = examine(Capture(path))
    text = "\n".join(report.lines())
    assert said in text and report.ill and "stream0 writes" not in text, text
    words = [listing.packet_text(i) for s in Capture(path) if s.follow is not None for i in s.follow.items]
    assert any(w.startswith(f"BATCH_MEM_OP(address={flag:#x}, bytes=0x8, value=0x10000000000, wait=circular >=")
               for w in words), words
