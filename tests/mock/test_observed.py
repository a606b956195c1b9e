"""Who looks on sees dispatches one by one, though they run turn about: on two cards, under any order of turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pytest

import tinyhw
from tests.emulator.checking import code_of
from tests.mock.client import VRAM, Client
from tests.mock.cuda import client as cuda_client
from tests.mock.cuda.client import u32, u64
from tests.mock.nv.bench import COPY, launch_qmd, release
from tests.mock.nv.test_compute import HEAD, Compute
from tests.mock.nv.test_copy import linear
from tests.mock.test_waves import settings
from tests.strength import THOROUGH, seeds
from tinyhw import Device, Tensor, nn
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.core.errors import HazardFound
from tinyhw.core.memory import Access
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.observe import Observer, Several
from tinyhw.kernels.debug import _Capturer
from tinyhw.kernels.report import Reporter
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import methods, pm4

SEEDS: Final = seeds(range(10))
# s[0:1]: a page of words. Waits until word s2 is s4, then copies word 2 to word s3 + 2 and says so in word s3.
ANSWER: Final = """
  s_lshl_b32 s2, s2, 2
  s_lshl_b32 s3, s3, 2
  v_mov_b32 v1, s2
  v_mov_b32 v3, s3
  v_mov_b32 v4, 0
again:
  global_load_b32 v2, v1, s[0:1] glc dlc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s7, v2
  s_cmp_lg_u32 s7, s4
  s_cbranch_scc1 again
  global_load_b32 v5, v4, s[0:1] offset:8 glc dlc
  s_waitcnt vmcnt(0)
  global_store_b32 v3, v5, s[0:1] offset:8
  s_waitcnt_vscnt null, 0x0
  v_mov_b32 v2, s4
  global_store_b32 v3, v2, s[0:1]
  s_endpgm"""
PTX_ANSWER: Final = HEAD.replace("80", "90") + """
.visible .entry answer(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<9>; .reg .b64 %rd<6>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
  and.b32 %r2, %r1, 255; shr.u32 %r3, %r1, 8; mul.wide.u32 %rd2, %r2, 4; mul.wide.u32 %rd3, %r3, 4;
  add.u64 %rd2, %rd1, %rd2; add.u64 %rd3, %rd1, %rd3;
again: ld.volatile.global.u32 %r4, [%rd2]; setp.ne.u32 %p1, %r4, 5; @%p1 bra again;
  ld.volatile.global.u32 %r5, [%rd1+8]; st.global.u32 [%rd3+8], %r5; membar.sys;
  st.volatile.global.u32 [%rd3], %r4; ret; }
"""
# Word 2 is written behind the host's back: a copy engine brings it, and says so in word 0. Card 1 waits for that and
# answers in words 4 and 6, card 0 for its answer, in words 5 and 7.
WANTED: Final = [5, 0, 77, 0, 5, 5, 77, 77]


def amd(observer: Observer, seed: int) -> list[int]:
  client = Client(Machine("gfx1100,gfx1100", seed=seed, observer=observer))
  memory, source = (client.alloc(4096, map_to=[0, 1]) for _ in range(2))
  memory.u32[:8], source.u32[0] = memoryview(np.zeros(8, np.uint32)), 77
  at, machine_code = memory.address, code_of(ANSWER, "gfx11")
  for gpu, (waits, answers) in enumerate(((4, 5), (0, 4))):
    code, queue = client.alloc(4096, VRAM, gpu), client.queue(gpu)
    code.view[:len(machine_code)] = machine_code
    *registers, dispatch = settings(code.address, user=5)
    users = pm4.set_sh_reg(gc.COMPUTE_USER_DATA_0, at & 0xFFFF_FFFF, at >> 32, waits, answers, 5)
    queue.submit(*registers, users, dispatch)
  copy = client.queue(copy=True)
  copy.submit(s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=source.address, dst_addr=at + 8),
              s6.SDMA_PKT_FENCE(addr=at, data=5))
  client.run()
  words: list[int] = memory.u32[:8].tolist()
  assert client.machine.report() == []
  client.port.end()
  client.machine.close()
  return words


def nv(observer: Observer, seed: int) -> list[int]:
  machine = NvMachine("sm_90,sm_90", vram=1 << 22, system_memory=1 << 22, seed=seed, observer=observer)
  cards, at = [Compute(machine=machine, gpu=gpu) for gpu in range(2)], 0x30_0000_0000
  for card in cards: card.space.map(at, 4096, machine.system, 0, Access.ALL)
  for k in range(8): cards[0].space.store(at + 4 * k, 4, 0)
  source, copy = cards[0].take(256), cards[0].channel("copy")
  cards[0].space.store(source, 4, 77)
  for card, (waits, answers) in zip(cards, ((4, 5), (0, 4))):
    card.pcas(card.channel(), launch_qmd(card, card.load(PTX_ANSWER, "answer"), block=(1, 1, 1),
                                         bank=card.bank(at, waits | answers << 8)))
  cards[0].submit(copy, methods.send(COPY, *linear(source, at + 8, 4)))
  cards[0].submit(copy, methods.send(0, *release(at, 5)))
  machine.run(lambda: False, 0.0)
  words = [cards[0].space.load(at + 4 * k, 4) for k in range(8)]
  assert all(c.standing() is None and not c.error for c in machine.channels)
  machine.close()
  return words


def cuda(observer: Observer, seed: int) -> list[int]:
  c = cuda_client.Client("sm_90,sm_90", seed=seed)
  c.machine.observer = observer
  at = c.handle("cuMemAllocManaged", 4096, 1)
  c.call("cuMemsetD32_v2", u64(at), 0, 8)
  contexts = [c.context, c.handle("cuDevicePrimaryCtxRetain", 1)]
  for context, (waits, answers) in zip(contexts, ((4, 5), (0, 4))):
    c.call("cuCtxSetCurrent", u64(context))
    stream, function = c.handle("cuStreamCreate", 1), c.function(PTX_ANSWER, "answer")
    assert not c.launch(function, 1, 1, [u64(at), u32(waits | answers << 8)], stream)
  for place, value in ((at + 8, 77), (at, 5)): c.call("cuMemsetD32Async", u64(place), value, 1, u64(stream_of(c)))
  for context in contexts:
    c.call("cuCtxSetCurrent", u64(context))
    c.call("cuCtxSynchronize")
  words: list[int] = c.get(at, np.zeros(8, np.uint32)).tolist()
  c.machine.close()
  return words


def stream_of(c: cuda_client.Client) -> int:
  """A new stream, which waits for no other."""
  if not hasattr(c, "own"): c.own = c.handle("cuStreamCreate", 1)  # type: ignore[attr-defined]
  return int(c.own)  # type: ignore[attr-defined]


MACHINES: Final[dict[str, Callable[[Observer, int], list[int]]]] = {"AMD": amd, "NV": nv, "CUDA": cuda}


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("what", ["check", "report", "debug"])
def test_kernels_of_two_cards_that_wait_for_each_other(what: str, kind: str) -> None:
  """Each is seen as if it were alone: nothing is found in a right program, and each report and each capture is of one
  dispatch."""
  executed = set()
  for seed in SEEDS:
    seen: list[Any] = []
    checks = Checker(fails=True)
    observer = {"check": checks, "report": Reporter(seen, True), "debug": _Capturer(seen, "*", 9)}[what]
    assert MACHINES[kind](observer, seed) == WANTED, seed
    assert not len(checks.report) and len(seen) == (0 if what == "check" else 2), seed
    if what == "report": executed |= {tuple(line.address for line in report.instructions) for report in seen}
  assert len({len(lines) for lines in executed}) <= 1  # every instruction of each, whoever had which turn


class Log(Observer):
  """What an observer of several is told: each dispatch has a number."""

  def __init__(self) -> None:
    self.rows: list[tuple[int, str]] = []

  def dispatch(self, space: Any, arch: Any, d: Any) -> Observer:
    return _One(self, len({number for number, _ in self.rows}))


class _One(Observer):
  def __init__(self, log: Log, number: int) -> None:
    self.log, self.number = log, number
    log.rows.append((number, "begins"))

  def before(self, group: Any, pc: int, instruction: Any) -> None: self.log.rows.append((self.number, "goes on"))

  def end(self, stats: Any) -> None: self.log.rows.append((self.number, "ends"))


@pytest.mark.parametrize("kind", MACHINES)
def test_each_dispatch_has_an_observer_of_its_own(kind: str) -> None:
  """Under some seed they run turn about, and what each is shown is its own; so it is where several look on."""
  mixed = 0
  for seed in range(12):
    logs = Log(), Log()
    assert MACHINES[kind](Several([logs[0], Several([Observer(), logs[1]])]), seed) == WANTED
    rows = logs[0].rows
    assert rows == logs[1].rows
    for number in (0, 1):
      own = [text for n, text in rows if n == number]
      assert own[0] == "begins" and own[-1] == "ends" and set(own[1:-1]) == {"goes on"}
    numbers = [n for n, _ in rows]
    mixed += sum(a != b for a, b in zip(numbers, numbers[1:])) > 2
  assert mixed


def test_a_finding_is_of_the_dispatch_that_has_it() -> None:
  """Two dispatches turn about, of which one reads a register that nobody has written: that one alone fails."""
  from tinyhw.emulator.engines.amdgcn import start
  checks, wrong = Checker(fails=True), ANSWER.replace("v_mov_b32 v4, 0", "")
  for order in ((0, 1), (1, 0)):
    checks.forget()
    client = Client()
    memory = client.alloc(4096)
    memory.u32[:16] = memoryview(np.zeros(16, np.uint32))
    runs = []
    for text in (ANSWER, wrong):
      runs.append(_alone(client, text, memory.address, checks, start))
    failed = []
    alive = [*order]
    while alive:
      for k in [*alive]:
        try: next(runs[k])
        except StopIteration: alive.remove(k)
        except HazardFound as found:
          alive.remove(k)
          failed.append((k, len(found.findings)))
      memory.u32[0] = 5
    assert [k for k, _ in failed] == [1] and len(checks.report) and not len(checks.untold)
    client.port.end()


def _alone(client: Client, text: str, at: int, observer: Observer, start: Any) -> Iterator[Any]:
  """The turns of a dispatch that waits for word 0."""
  from tinyhw.arch import arch
  from tinyhw.emulator.amdgcn import Dispatch
  code, machine_code = client.alloc(4096, VRAM), code_of(text, "gfx11")
  code.view[:len(machine_code)] = machine_code
  space = client.machine.kfd.processes[client.port.pid()].devices[client.gpu_ids[0]].bind()
  d = Dispatch(entry_pc=code.address, grid=(1, 1, 1), block=(32, 1, 1), rsrc1=0, rsrc2=5 << 1, wave32=True,
               user_data=(at & 0xFFFF_FFFF, at >> 32, 0, 4, 5))
  running: Iterator[Any] = start(space, arch("gfx1100"), d, observer=observer)
  return running


# ---- programs

@contextmanager
def looked_at(what: str) -> Iterator[None]:
  """As --check, --report and --debug do it."""
  if what == "check":
    before, Device.check = Device.check, "1"
    try: yield
    finally: Device.check = before
  else:
    with tinyhw.reports() if what == "report" else tinyhw.captures(): yield


def step(device: str) -> Any:
  """A step of Adam of a sharded convolution: kernels on both cards, and copies between them."""
  both = device, f"{device}:1"
  weight = Tensor(np.array([[[[0.5, -0.25]]]], np.float32)).shard(both)
  weight.requires_grad = True
  optimizer = nn.optim.Adam([weight], lr=0.01)
  x = Tensor(np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2) / 8).shard(both, 0)
  x.conv2d(weight).relu().sum().backward()
  optimizer.step()
  return weight.numpy()


@pytest.mark.parametrize(("device", "cards"), [("AMD", "gfx1100,gfx1100"), ("NV", "sm_90,sm_90"),
                                               ("CUDA", "sm_90,sm_90")])
@pytest.mark.parametrize("what", ["check", "report", "debug"])
def test_a_step_of_training_on_two_cards(what: str, device: str, cards: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", cards)
  results = []
  for seed in SEEDS if THOROUGH else SEEDS[:3]:
    monkeypatch.setenv("MOCKGPU_SEED", str(seed))
    try:
      with looked_at(what): results.append(step(device))
    finally: Device.close()
  assert all(np.array_equal(results[0], result) for result in results) and np.isfinite(results[0]).all()
