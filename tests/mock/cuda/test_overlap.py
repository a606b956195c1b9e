"""Programmatic dependents that begin before the launch before them has ended, as the seed has it."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
import pytest

from tests.mock.cuda.client import Client, u32, u64
from tests.mock.cuda.test_programmatic import BEGUN, EARLY, attribute, change
from tinyhw.autogen import cuda
from tinyhw.emulator.engines import beside
from tinyhw.emulator.observe import Observer
from tinyhw.mock.cuda.streams import launches

BLOCKS, THREADS = 3, 64
N: Final = BLOCKS * THREADS
SEEDS: Final = range(20)
HEAD: Final = """.version 8.0
.target sm_90
.address_size 64
"""


def kernel(name: str, say: str, wait: str, more: str = "") -> str:
  """x[i] = x[i ^ 1] * 3 + value, where a thread reads what another thread of the launch before has written."""
  return f""".visible .entry {name}(.param .u64 at, .param .u64 to, .param .u32 value) {{
  .reg .u64 %rd<4>; .reg .u32 %r<9>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [at]; ld.param.u64 %rd2, [to]; ld.param.u32 %r1, [value];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  {say}
  {wait}
  xor.b32 %r6, %r5, 1; mul.wide.u32 %rd3, %r6, 4; add.u64 %rd1, %rd1, %rd3; ld.global.u32 %r7, [%rd1];
  mad.lo.u32 %r7, %r7, 3, %r1; {more}
  mul.wide.u32 %rd3, %r5, 4; add.u64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], %r7; ret; }}
"""


SAY, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"
SOME: Final = "setp.ge.u32 %p1, %r4, 32; @%p1 " + SAY  # the block's second warp alone
TEXT: Final = HEAD + "".join((
  kernel("waits", SAY, WAIT), kernel("forgets", SAY, ""), kernel("silent", "", ""), kernel("late", "", WAIT),
  kernel("some", SOME, WAIT), kernel("one", f"setp.eq.u32 %p1, %r2, 1; @%p1 {SAY}", WAIT),
  kernel("faulty", SAY, WAIT, "mov.u64 %rd2, 64;"),
  kernel("polls", SAY, "again: ld.volatile.global.u32 %r8, [%rd2]; setp.eq.u32 %p2, %r8, 0; @%p2 bra again;")))


class Room:
  """A client with the kernels and memory: what is launched reads a part of it and writes the next."""

  def __init__(self, seed: int, engine: str = "") -> None:
    self.c = c = Client(seed=seed)
    if engine: c.machine.engine = engine
    self.module = c.handle("cuModuleLoadData", TEXT.encode() + b"\0")
    self.start = np.arange(N, dtype=np.uint32)
    self.at = c.alloc(4 * N * 8)
    c.call("cuMemsetD8_v2", u64(self.at), ctypes.c_uint8(0xEE), ctypes.c_size_t(4 * N * 8))
    c.call("cuMemcpyHtoD_v2", u64(self.at), self.start.ctypes, ctypes.c_size_t(4 * N))
    self.stream = c.handle("cuStreamCreate", 1)

  def function(self, name: str) -> int: return self.c.handle("cuModuleGetFunction", u64(self.module), name.encode())

  def launch(self, name: str, k: int, early: bool = True) -> int:
    """Part k to part k + 1."""
    given = u64(self.at + 4 * N * k), u64(self.at + 4 * N * (k + 1)), u32(k)
    places = (ctypes.c_void_p * 3)(*map(ctypes.addressof, given))
    array = (cuda.CUlaunchAttribute * 1)(attribute("PROGRAMMATIC_STREAM_SERIALIZATION",
                                                   programmaticStreamSerializationAllowed=int(early)))
    config = cuda.CUlaunchConfig(gridDimX=BLOCKS, gridDimY=1, gridDimZ=1, blockDimX=THREADS, blockDimY=1, blockDimZ=1,
                                 attrs=ctypes.addressof(array), numAttrs=1, hStream=self.stream)
    return self.c.code("cuLaunchKernelEx", ctypes.byref(config), u64(self.function(name)), places, None)

  def chain(self, names: Iterable[str]) -> None:
    for k, name in enumerate(names): assert self.launch(name, k, k > 0) == 0

  def right(self, length: int) -> bool:
    """Whether the last of so many launches left what they leave one after the other."""
    self.c.call("cuCtxSynchronize")
    expected = self.start
    for k in range(length): expected = expected[np.arange(N) ^ 1] * np.uint32(3) + np.uint32(k)
    found = self.c.get(self.at + 4 * N * length, np.zeros(N, np.uint32))
    return bool((found == expected).all())


def outcomes(names: Iterable[str], engine: str = "",
             queue: Callable[[Room, list[str]], None] | None = None) -> list[bool]:
  """Whether launches one behind the other give what they should, by seed."""
  out, names = [], list(names)
  for seed in SEEDS:
    room = Room(seed, engine)
    if queue is None: room.chain(names)
    else: queue(room, names)
    out.append(room.right(len(names)))
    room.c.machine.close()
  return out


@pytest.mark.parametrize("engine", ["ref", "jit", "auto"])
def test_who_waits_is_right_and_who_forgets_is_found(engine: str) -> None:
  assert all(outcomes(["waits", "waits"], engine))
  wrong = outcomes(["waits", "forgets"], engine)
  assert not all(wrong) and any(wrong)  # the seed decides


def test_chains_of_three() -> None:
  """No launch begins before all but the one before it have ended, so the wait of the third covers the first."""
  assert all(outcomes(["waits", "waits", "waits"]))
  assert not all(outcomes(["waits", "waits", "forgets"]))
  assert not all(outcomes(["waits", "forgets", "waits"]))


def test_who_does_not_say_so_is_waited_for() -> None:
  """A launch that never allows it, or of which one block alone does; threads of one warp allow it for a block."""
  assert all(outcomes(["silent", "forgets"])) and all(outcomes(["late", "forgets"]))
  assert all(outcomes(["one", "forgets"]))
  assert not all(outcomes(["some", "forgets"]))
  assert all(outcomes(["some", "waits"]))


def test_a_launch_that_did_not_ask_for_it_waits() -> None:
  def plain(room: Room, names: list[str]) -> None:
    for k, name in enumerate(names): assert room.launch(name, k, False) == 0
  assert all(outcomes(["waits", "forgets"], queue=plain))

  def behind_a_fill(room: Room, names: list[str]) -> None:
    assert room.launch(names[0], 0) == 0
    room.c.call("cuMemsetD8Async", u64(room.at + 4 * N * 7), ctypes.c_uint8(1), ctypes.c_size_t(1), u64(room.stream))
    assert room.launch(names[1], 1) == 0
  assert all(outcomes(["waits", "forgets"], queue=behind_a_fill))


def test_both_engines_at_once_see_launches_one_after_the_other() -> None:
  assert all(outcomes(["waits", "forgets"], "both"))


def test_graphs_with_programmatic_edges() -> None:
  def graph(*edges: cuda.CUgraphEdgeData, idle: bool = False) -> Callable[[Room, list[str]], None]:
    """Nodes one behind the other; `idle`: with a disabled one before the last."""
    def queue(room: Room, names: list[str]) -> None:
      if idle: names = [*names[:-1], "silent", names[-1]]
      c, made = room.c, room.c.handle("cuGraphCreate", 0)
      nodes = []
      for k, name in enumerate(names):
        if idle and k: k = {"silent": 6}.get(name, k - 1)
        given = u64(room.at + 4 * N * k), u64(room.at + 4 * N * (k + 1)), u32(k)
        places = (ctypes.c_void_p * 3)(*map(ctypes.addressof, given))
        p = cuda.CUDA_KERNEL_NODE_PARAMS_v2(func=room.function(name), gridDimX=BLOCKS, gridDimY=1, gridDimZ=1,
                                            blockDimX=THREADS, blockDimY=1, blockDimZ=1,
                                            kernelParams=ctypes.addressof(places))
        nodes.append(c.handle("cuGraphAddKernelNode_v2", u64(made), None, ctypes.c_size_t(0), ctypes.byref(p)))
      assert change(c, "Add", made, nodes[:-1], nodes[1:], *edges) == 0
      ready = c.handle("cuGraphInstantiateWithFlags", u64(made), u64(0))
      if idle: c.call("cuGraphNodeSetEnabled", u64(ready), u64(nodes[-2]), 0)
      c.call("cuGraphLaunch", u64(ready), u64(room.stream))
    return queue
  plain = cuda.CUgraphEdgeData()
  assert all(outcomes(["waits", "waits", "waits"], queue=graph(EARLY, EARLY)))
  assert not all(outcomes(["waits", "waits", "forgets"], queue=graph(EARLY, EARLY)))
  assert all(outcomes(["waits", "waits", "forgets"], queue=graph(EARLY, plain)))
  assert all(outcomes(["waits", "forgets"], queue=graph(plain, EARLY, idle=True)))
  assert not all(outcomes(["waits", "forgets"], queue=graph(BEGUN)))


def test_an_event_behind_both_comes_when_both_have_ended() -> None:
  """Though the second, which does not wait, may end first."""
  for seed in SEEDS:
    room = Room(seed)
    room.chain(["waits", "forgets"])
    event = room.c.handle("cuEventCreate", 0)
    room.c.call("cuEventRecord", u64(event), u64(room.stream))
    room.c.call("cuEventSynchronize", u64(event))
    assert room.c.code("cuStreamQuery", u64(room.stream)) == 0 and room.right(1)
    room.c.machine.close()


def test_one_that_waits_for_memory_keeps_others_waiting() -> None:
  """The first polls, the second waits for the first: nobody spins meanwhile, and another stream ends it."""
  for seed in range(6):
    room = Room(seed)
    c, flag = room.c, room.at + 4 * N * 7
    c.call("cuMemsetD8_v2", u64(flag), ctypes.c_uint8(0), ctypes.c_size_t(4))
    c.call("cuCtxSynchronize")
    assert room.launch("polls", 6) == 0 and room.launch("waits", 6) == 0
    for _ in range(50): assert c.code("cuStreamQuery", u64(room.stream)) == cuda.CUDA_ERROR_NOT_READY
    assert c.machine.idle()
    c.call("cuMemsetD8Async", u64(flag), ctypes.c_uint8(1), ctypes.c_size_t(1), u64(c.handle("cuStreamCreate", 1)))
    c.call("cuStreamSynchronize", u64(room.stream))
    c.machine.close()
  room = Room(0)
  c = room.c
  c.call("cuMemsetD8_v2", u64(room.at + 4 * N * 7), ctypes.c_uint8(0), ctypes.c_size_t(4))
  c.call("cuCtxSynchronize")
  assert room.launch("polls", 6) == 0 and room.launch("waits", 6) == 0
  assert c.code("cuCtxSynchronize") == cuda.CUDA_ERROR_LAUNCH_TIMEOUT and "deadlock" in c.machine.logs[0]
  c.machine.close()


@pytest.mark.parametrize("engine", ["ref", "auto"])
def test_long_launches_go_on_in_compiled_code(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(beside, "ENOUGH", 300.0)
  assert all(outcomes(["waits", "waits", "waits"], engine))
  assert not all(outcomes(["waits", "forgets"], engine))


def test_kernels_that_cost_much_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
  """Each shape may cost the reference so much, in compiled code's place; then its launches do not overlap any more."""
  monkeypatch.setattr(launches, "LONG", 1_500.0)

  def wrong(engine: str) -> list[int]:
    room, found = Room(1, engine), []
    for k in range(40):
      room.c.call("cuMemsetD8_v2", u64(room.at + 4 * N), ctypes.c_uint8(0xEE), ctypes.c_size_t(4 * N))
      room.c.call("cuCtxSynchronize")
      room.chain(["waits", "forgets"])
      if not room.right(2): found.append(k)
    room.c.machine.close()
    return found
  few, many = wrong("auto"), wrong("ref")
  assert few and many and max(few) < 30 < max(many)


def test_who_looks_on_sees_one_at_a_time() -> None:
  for seed in SEEDS:
    room = Room(seed)
    room.c.machine.observer = Observer()
    room.chain(["waits", "forgets"])
    assert room.right(2)
    room.c.machine.close()


@pytest.mark.parametrize("names", [("faulty", "waits"), ("waits", "faulty"), ("waits", "faulty", "waits")])
def test_faults_of_either_end_both(names: tuple[str, ...]) -> None:
  for seed in range(6):
    room = Room(seed)
    room.chain(names)
    assert room.c.code("cuCtxSynchronize") == cuda.CUDA_ERROR_ILLEGAL_ADDRESS
    assert room.launch("waits", 0) == cuda.CUDA_ERROR_ILLEGAL_ADDRESS
    assert "kernel faulty" in room.c.machine.logs[0]
    assert not any(what == "parameters" for _, what in room.c.machine.space.used.values())  # both were given back
    room.c.machine.close()
