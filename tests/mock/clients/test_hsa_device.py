"""DEV=HSA as a client in another process: ROCm's own runtime between this project's programs and mock cards."""
from __future__ import annotations

import sys
from pathlib import Path

from tests.mock.clients.rocm import Rocm
from tests.mock.clients.running import run

HEAD = """
import faulthandler, os, threading
faulthandler.dump_traceback_later(60, exit=True)
import numpy as np
from tinyhw import Device, Tensor, TinyJit, Variable, launch, nn
from tinyhw.core.errors import Error
from tinyhw.drive.base import Allocation
def refused(what):
  try: return f"gave {what()!r}"
  except Error as error: return f"{type(error).__name__} {error}"
"""

STORIES = HEAD + """
rng, runtime = np.random.default_rng(1), Device["HSA"].runtime
a, b = rng.standard_normal((33, 20)).astype(np.float32), rng.standard_normal((20, 17)).astype(np.float32)
x, w = Tensor(a), Tensor(b, requires_grad=True)
assert x.device == "HSA" and "gfx1100" in runtime.describe() and runtime.siblings() == 2
np.testing.assert_allclose((x @ w).numpy(), a @ b, rtol=1e-5, atol=1e-5)
((x @ w).relu().sum()).backward()
np.testing.assert_allclose(w.grad.numpy(), a.T @ ((a @ b) > 0), rtol=1e-5, atol=1e-5)
f = TinyJit(lambda t, s: ((t * 2 + 1).realize() + s).realize())
pushed, push_all = [], runtime.queue.push_all
runtime.queue.push_all = lambda packets: (pushed.append(len(packets)), push_all(packets))
for i in range(5):
  t, s = Tensor(np.full((4, 4), i, np.float32)).realize(), Tensor(np.full((4, 4), 10 * i, np.float32)).realize()
  assert f(t, s).numpy().tolist() == [[12.0 * i + 1] * 4] * 4
assert pushed and pushed[-1] == 2, pushed  # both kernels by one ring of the doorbell
n, g = Variable("n", 1, 40), TinyJit(lambda t: (t + 1).realize())
for i in (3, 5, 40, 7):
  t = Tensor.arange(40).reshape(40, 1)[:n.bind(i)].contiguous().realize()
  assert g(t).numpy()[i - 1] == i
big = np.arange(3 << 20, dtype=np.float32)  # 12 MiB: through both parts of the bounce buffer
np.testing.assert_array_equal((Tensor(big) + 1).numpy(), big + 1)
y = Tensor([1.0, 2.0, 3.0], device="HSA:1")
assert (y + 1).to("HSA").tolist() == [2, 3, 4] and (y.to("HSA") * 2).to("HSA:1").tolist() == [2, 4, 6]
kernel = open(os.environ["KERNELS"], "rb").read()
took = runtime.load(kernel, "add")
out, p, q = (runtime.alloc(4096) for _ in range(3))
runtime.copyin(p, memoryview(np.arange(1024, dtype=np.float32)))
runtime.copyin(q, memoryview(np.full(1024, 0.5, np.float32)))
assert took([p, q, out], (1024,), (16, 1, 1), (64, 1, 1), wait=True) > 0 and runtime.began() > 0
for _ in range(5000): took([p, q, out], (64,), (1, 1, 1), (64, 1, 1))  # more than the ring has packets
got = np.zeros(1024, np.float32)
runtime.copyout(memoryview(got), out)
assert (got == np.arange(1024) + 0.5).all()
errors = []
def work(k):
  try:
    for i in range(4):
      z = Tensor(np.full(50, k, np.float32), device=("HSA", "HSA:1")[k % 2])
      assert (z * 3 + i).tolist() == [3.0 * k + i] * 50
  except BaseException as error: errors.append(error)
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert not errors, errors
print(refused(lambda: runtime.alloc(1 << 50)))
print(refused(lambda: Device["HSA:2"]))
print(refused(lambda: launch(kernel, "nope", 1, 1, [])))
print(refused(lambda: took([p, q, out], (64,), (1, 1, 1), (2000, 1, 1))))
if not os.fork():
  print(refused((x + 3).tolist), flush=True)
  os._exit(0)
os.wait()
held = x + 1
held.realize()
Device.close()
assert "was lost" in refused(held.tolist) and (Tensor([1, 2]) + 1).tolist() == [2, 3]
print("end")
"""

FAULT = HEAD + """
runtime, other = Device["HSA"].runtime, (Tensor([1.0], device="HSA:1") + 1).realize()
program = runtime.load(open(os.environ["KERNELS"], "rb").read(), "add")
a = runtime.alloc(4096)
never = runtime.system.signal(1)  # what is queued behind it does not end: it is taken off the device
with runtime.lock:
  runtime.queue.barrier(never, 0)
  runtime.queued()
runtime.copyin(a, memoryview(bytes(64)))
with runtime.limited(0.3): assert refused(runtime.synchronize).startswith("WaitTimeout HSA: no progress after 0.3 s")
runtime.reset()
runtime.copyin(a, memoryview(np.full(1024, 2, np.float32)))
program([a, a, a], (1024,), (16, 1, 1), (64, 1, 1))
found = np.zeros(1024, np.float32)
runtime.copyout(memoryview(found), a)
assert (found == 4).all()
program([a, a, Allocation(0x123456789000, 4096)], (64,), (1, 1, 1), (64, 1, 1))
for what in (runtime.synchronize, lambda: (Tensor([1]) + 1).tolist(), lambda: Device.reset("HSA")):
  text = refused(what)
  assert text.startswith("PageFault HSA: GPU page fault: ") and "at 0x123456789000" in text, text
  assert "go on in a new process" in text, text
print((other + 1).tolist())
"""


def client(rocm: Rocm, kernels: str, story: str, folder: Path, **more: str) -> str:
  (folder / "story.py").write_text(story)
  done = run(*rocm.words(Path(sys.executable)), str(folder / "story.py"), cards="gfx1100,gfx1100", DEV="HSA",
             KERNELS=kernels, LD_LIBRARY_PATH="/usr/local/lib", **more)
  assert not done.returncode, done.stdout + done.stderr
  return done.stdout


def test_tensors_jits_peers_threads_and_forks(rocm: Rocm, kernels: str, tmp_path: Path) -> None:
  lines = client(rocm, kernels, STORIES, tmp_path).splitlines()
  wanted = ("OutOfMemory HSA: ", "DeviceError HSA:2: ROCm's runtime has no GPU 2; there are 2", "no kernel 'nope'",
            "block (2000, 1, 1) has 2000 threads", "ROCm's runtime does not pass through fork", "end")
  assert len(lines) == len(wanted)
  for line, text in zip(lines, wanted): assert text in line, lines


def test_waits_that_do_not_end_and_a_page_fault_that_costs_the_card(rocm: Rocm, kernels: str, tmp_path: Path) -> None:
  assert client(rocm, kernels, FAULT, tmp_path) == "[3.0]\n"
