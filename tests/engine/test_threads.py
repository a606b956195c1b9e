"""Everything public is safe under threads. Stories run in processes of their own, with which what gets stuck ends.

Python changes threads every microsecond in them, so that what can come between two steps does.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.devices.test_closed import run_apart
from tests.strength import examples
from tinyhw import Device
from tinyhw.core.errors import DeviceError
from tinyhw.core.locks import FairLock
from tinyhw.function import random
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.uop import UOp

STRESS = """
from tinyhw.tools.fuzz.threads import Plan, run
plan = Plan({devices}, {threads}, {rounds}, {seed!r}, {close}, {faults!r})
wrong = run(plan)
if wrong:
  print(*wrong[:3], sep=chr(10), flush=True)
  os._exit(1)
assert plan.done == {threads} * {rounds}
"""


@pytest.mark.parametrize("devices, threads, close, faults", [
  (["AMD"], 8, False, ""),
  (["AMD", "AMD:1", "LLVM", "PYTHON"], 8, False, ""),
  (["AMD", "AMD:1", "LLVM"], 6, True, ""),
  (["AMD"], 6, False, "AMD:1"),
  (["NV", "LLVM"], 6, False, "NV:1"),
  (["CUDA", "LLVM"], 6, True, ""),
])
def test_threads_do_all_at_once(devices: list[str], threads: int, close: bool, faults: str) -> None:
  cards = "gfx1100,gfx1100" if devices[0] == "AMD" else "sm_90,sm_90"
  run_apart(STRESS.format(devices=devices, threads=threads, rounds=examples(5), seed="test", close=close,
                          faults=faults), devices[0], fresh=len(devices) > 3 or devices[0] == "CUDA", MOCKGPU=cards)


HEAD = """
import faulthandler, sys, threading, time, traceback
import tinyhw
from tinyhw.core.errors import WaitTimeout
from tinyhw.tools.fuzz.threads import PTX, binary
sys.setswitchinterval(1e-6)
def together(*works, times=1):
  '''Run functions in threads that begin at once; the first error ends the story.'''
  start, errors = threading.Barrier(len(works)), []
  def run(work):
    start.wait()
    try:
      for _ in range(times): work()
    except BaseException: errors.append(traceback.format_exc())
  threads = [threading.Thread(target=run, args=(w,), daemon=True) for w in works]
  for t in threads: t.start()
  for t in threads: t.join(60)
  if errors or any(t.is_alive() for t in threads):
    print(*errors, [sys._current_frames().get(t.ident) for t in threads if t.is_alive()], flush=True)
    os._exit(1)
def mix(n=64, k=3, **how):
  data = [np.zeros(n, np.int32), np.arange(n, dtype=np.int32), np.int32(k)]
  out, _ = tinyhw.launch(binary(NAME), "mix", 1, n, data, NAME, **how)
  assert out.tolist() == [i * k + i for i in range(n)], out
"""

JITS = HEAD + """
shared = Tensor([1.0, 2.0], device=NAME).realize()
weights = [Tensor([float(i)], device=NAME, requires_grad=True) for i in range(4)]
one = TinyJit(lambda t: t * shared + 1)
@TinyJit
def step(p, x):
  loss = (p * x).sum()
  loss.backward()
  p.assign(p.detach() - p.grad)
  p.grad = None
  return loss
steps = [TinyJit(step.function) for _ in weights]
def trains(i):
  p, wanted = weights[i], float(i)
  for n in range(5):
    x = Tensor([1.0, 1.0], device=NAME)
    got = steps[i](p, x).item()
    assert got == 2 * wanted, (i, n, got, wanted)
    wanted -= 2
    assert p.item() == wanted and p.grad is None
def replays():
  for n in range(6):
    assert one(Tensor([float(n), 2.0], device=NAME)).tolist() == [n + 1, 5]
def leaves():                  # gradients and assignments beside the recordings of others are nobody else's
  p = Tensor([3.0], device=NAME, requires_grad=True)
  for n in range(5):
    (p * 2).sum().backward()
    assert p.grad.item() == 2 * (n + 1)
    shared.assign(shared * 1)
together(*(lambda i=i: trains(i) for i in range(4)), replays, replays, leaves)
assert shared.tolist() == [1, 2]
"""


@pytest.mark.parametrize("device", ["AMD", "LLVM"])
def test_recordings_belong_to_threads(device: str) -> None: run_apart(JITS, device)


MODES = HEAD + """
from tinyhw import Variable
def grads():
  p = Tensor([1.0], device=NAME, requires_grad=True)
  for _ in range(50): assert (p * 2).requires_grad and not Tensor.training
def none():
  p = Tensor([1.0], device=NAME, requires_grad=True)
  for _ in range(50):
    with Tensor.no_grad(), Tensor.train(): assert not (p * 2).requires_grad and Tensor.training
    assert (p * 2).requires_grad
together(grads, none, none)
n = Variable("n", 1, 100).bind(50)
x = Tensor([1, 2, 3], device=NAME).realize()
def bound(first):
  mine = Variable("n", 1, 100).bind(first)
  f = TinyJit(lambda t: t * mine)
  for i in range(first + 1, first + 7):
    before = x * mine
    mine.bind(i)
    assert before.tolist() == [i - 1, 2 * i - 2, 3 * i - 3]
    assert (x * mine).tolist() == [i, 2 * i, 3 * i] == f(x).tolist()
waiting = x * n
together(*(lambda k=k: bound(10 * k) for k in range(1, 5)))
assert waiting.tolist() == [50, 100, 150] == (x * n).tolist()
p = Tensor([1.0], device=NAME, requires_grad=True)
together(*(lambda: (p * 2).sum().backward() for _ in range(8)), times=4)
assert p.grad.item() == 64
keys = [[] for _ in range(8)]
from tinyhw.function import random
together(*(lambda k=k: keys[k].append(random.generator.next()) for k in range(8)), times=200)
assert len({key for k in keys for key in k}) == 1600
"""


def test_modes_variables_gradients_and_random_numbers() -> None: run_apart(MODES, "LLVM")


LAUNCHES = HEAD + """
words = [np.zeros(64, np.int32)]
if NAME == "NV":
  endless = "again: st.global.u32 [%d1], %r1; add.u32 %r1, %r1, 1; bra again;"
  count, words = PTX.replace("mix", "count").replace("ret;", endless), [*words, *words, np.int32(1)]
else:
  from tests.kernels.test_timeout import COUNT
  from tests.conftest import build
  count = build(COUNT)
mix()
def plain():
  for _ in range(6): mix()
def reported():
  for n in (32, 64):
    data = [np.zeros(n, np.int32), np.arange(n, dtype=np.int32), np.int32(3)]
    found = tinyhw.launch(binary(NAME), "mix", 1, n, data, NAME, report=True).report
    assert found.kernel == "mix" and found.waves == n // 32, found
def checked():
  for _ in range(2): mix(check=True)
def late():
  for _ in range(2):
    try: tinyhw.launch(count, "count", 1, 64, words, NAME, timeout=0.05)
    except WaitTimeout as error: assert "taken off the device" in str(error), error
    else: raise SystemExit("it ended")
def tensors():
  if NAME == "EMU": return plain()
  for i in range(6): assert (Tensor([i, 2], device=NAME) + 1).tolist() == [i + 1, 3]
together(plain, reported, checked, late, tensors)
"""


@pytest.mark.parametrize("device, cards", [("AMD", "gfx1100"), ("EMU", "gfx1100"), ("NV", "sm_90")])
def test_each_launch_has_its_own_terms(device: str, cards: str) -> None:
  run_apart(LAUNCHES, device, MOCKGPU=cards, MOCKGPU_WATCHDOG="1000000000000000")


WAITS = HEAD + """
import tinyhw.drive.amd.device as driver
driver._RING_BYTES = 1024
gpu = Device[NAME].runtime
signal = gpu.new_signal()
gpu.wait_for(signal, 1)
a = gpu.alloc(64)
def fills():                            # until the ring is full: then it waits, and holds up nobody
  for _ in range(40): gpu.submit(gpu.compute, gpu.compute_marker())
def frees():
  while gpu.compute.ring.has_room(40): time.sleep(0.001)
  with gpu.lock: pass
  assert gpu.alloc(64).address != a.address
  signal.value = 1
together(fills, frees)
gpu.synchronize()
signal.value = 0
gpu.wait_for(signal, 1)
def waits():
  try: gpu.synchronize()
  except DeviceError as error: assert "closed" in str(error), error
  else: raise SystemExit("it ended")
def closes():
  time.sleep(0.05)
  Device[NAME].close()
start = time.monotonic()
together(waits, waits, closes)
assert time.monotonic() - start < 20    # not the 30 s that a wait may take
assert (Tensor([1], device=NAME) + 1).tolist() == [2]
"""


def test_waits_hold_up_nobody_and_end_with_the_device() -> None: run_apart(WAITS)


@pytest.mark.parametrize(("device", "cards"), [("AMD", "gfx1100"), ("NV", "sm_90")])
def test_a_wait_that_comes_amid_a_close_is_told(device: str, cards: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Its work is dropped, and the timeline stands at its end, as for those who wait already."""
  monkeypatch.setenv("MOCKGPU", cards)
  Device.close()
  gpu: Any = Device[device].runtime
  signal, told, take_down = gpu.new_signal(), [], gpu.take_down
  gpu.wait_for(signal, 1)

  def amid() -> None:
    for late in (gpu.synchronize, lambda: gpu.wait(gpu.timeline.last)):
      with pytest.raises(DeviceError, match="closed"): late()
      told.append(late)
    take_down()
  monkeypatch.setattr(gpu, "take_down", amid)
  with pytest.warns(RuntimeWarning, match="closed before its work was done"): Device.close()
  assert len(told) == 2


FORKS = HEAD + """
stop = threading.Event()
def busy():
  while not stop.is_set():
    assert (Tensor([1, 2], device="AMD") + 1).tolist() == [2, 3] and (Tensor([1, 2]) * 3).tolist() == [3, 6]
threads = [threading.Thread(target=busy, daemon=True) for _ in range(3)]
for t in threads: t.start()
for n in range(4):
  pid = os.fork()
  if not pid:
    status = 1
    faulthandler.dump_traceback_later(50)        # says where it hangs
    try:
      assert (Tensor([1, 2]) * 3).tolist() == [3, 6]
      Device.close()
      if n % 2: assert (Tensor([1, 2], device="AMD") + 1).tolist() == [2, 3]
      status = 0
    except BaseException: traceback.print_exc()
    finally: os._exit(status)
  end = time.monotonic() + 60
  while not (done := os.waitpid(pid, os.WNOHANG))[0]:
    if time.monotonic() > end:
      print("a child is stuck", n, flush=True)
      os.kill(pid, 9)
      os._exit(1)
    time.sleep(0.02)
  assert os.waitstatus_to_exitcode(done[1]) == 0
stop.set()
for t in threads: t.join()
"""


def test_a_fork_amid_threads() -> None: run_apart(FORKS, DEV="PYTHON")


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
  """What the work of each thread gives; they begin at once."""
  start, results = threading.Barrier(count), [None] * count

  def run(i: int) -> None:
    start.wait()
    results[i] = work(i)

  before = sys.getswitchinterval()
  sys.setswitchinterval(1e-6)
  try:
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads: t.start()
    for t in threads: t.join()
  finally: sys.setswitchinterval(before)
  return results


def test_equal_nodes_are_one_node() -> None:
  def build(_: int) -> list[UOp]:
    return [UOp.const(dtypes.int32, 123_456_000 + n) + UOp.const(dtypes.int32, n) for n in range(examples(300))]
  first, *others = in_threads(8, build)
  assert all(a is b for nodes in others for a, b in zip(first, nodes, strict=True))


def test_draws_are_counted() -> None:
  before = random.generator.draws
  in_threads(8, lambda _: [random.generator.next() for _ in range(200)])
  assert random.generator.draws == before + 1600


def test_a_fair_lock_lets_others_in() -> None:
  lock, order = FairLock(), list[int]()

  def work(i: int) -> None:
    for _ in range(20):
      with lock, lock:
        order.append(i)
        while lock.wanted and len(set(order)) < 4: lock.give_way()
  in_threads(4, work)
  assert len(order) == 80 and lock.wanted == 0
  assert lock.acquire(blocking=False)
  lock.release()


IMPORTS = HEAD + """
import importlib
def slow():
  sys.path.insert(0, {folder!r})
  import slow_to_import
thread = threading.Thread(target=slow)
thread.start()
while not hasattr(sys, "importing"): time.sleep(0.001)
pid = os.fork()
if not pid:
  faulthandler.dump_traceback_later(30, exit=True)
  os._exit(0 if importlib.import_module("slow_to_import").done else 1)
thread.join()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""


def test_a_fork_waits_for_imports(tmp_path: Path) -> None:
  tmp_path.joinpath("slow_to_import.py").write_text(
    "import sys, time\nsys.importing = True\ntime.sleep(0.3)\ndone = True\n")
  run_apart(IMPORTS.format(folder=str(tmp_path)))
