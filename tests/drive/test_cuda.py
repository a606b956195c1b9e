"""The CUDA device on the mock's libcuda: tensors, graphs of a TinyJit, peers, faults, threads, forks."""

from __future__ import annotations

import pytest

from tests.devices.test_closed import run_apart

CARDS = {"MOCKGPU": "sm_90,sm_80", "DEV": "CUDA"}

VALUES = """
from tinyhw import nn
rng = np.random.default_rng(1)
a, b = rng.standard_normal((33, 20)).astype(np.float32), rng.standard_normal((20, 17)).astype(np.float32)
x, y = Tensor(a), Tensor(b)
assert x.device == "CUDA"
np.testing.assert_allclose((x @ y).numpy(), a @ b, rtol=1e-5, atol=1e-5)
np.testing.assert_allclose(x.softmax(1).numpy().sum(1), 1, rtol=1e-6)
assert Tensor([1, 2, 3]).cumsum(0).tolist() == [1, 3, 6] and (Tensor([5, -7]) // 2).tolist() == [2, -4]
assert (Tensor.arange(1000, device="CUDA") + 0.5).sum().item() == 500000
w = Tensor(b, requires_grad=True)
((x @ w).relu().sum()).backward()
np.testing.assert_allclose(w.grad.numpy(), a.T @ ((a @ b) > 0), rtol=1e-5, atol=1e-5)
"""

GRAPHS = """
calls = []
from tinyhw.drive.cuda import Library
real = Library.call
def call(self, name, *arguments):
  calls.append(name)
  return real(self, name, *arguments)
runtime = Device["CUDA"].runtime
runtime.library.call = runtime.call = lambda name, *arguments: call(runtime.library, name, *arguments)
f = TinyJit(lambda t, s: ((t * 2 + 1).realize() + s).realize())
for i in range(6):
  calls.clear()
  t, s = Tensor(np.full((4, 4), i, np.float32)).realize(), Tensor(np.full((4, 4), 10 * i, np.float32)).realize()
  assert f(t, s).numpy().tolist() == [[12.0 * i + 1] * 4] * 4
assert "cuGraphLaunch" in calls and "cuLaunchKernel" not in calls, calls
"""

PEERS = """
x = Tensor([1.0, 2.0, 3.0], device="CUDA:1")
assert (x + 1).to("CUDA").tolist() == [2, 3, 4] and (x.to("CUDA") * 2).to("CUDA:1").tolist() == [2, 4, 6]
assert x.to("LLVM").tolist() == [1, 2, 3]
assert Device["CUDA"].runtime.siblings() == 2 and Device["CUDA:1"].runtime.processor == "sm_80"
print(refused(lambda: Device["CUDA:2"]))
"""

FAULTS = """
BAD = b'''.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) { .reg .u64 %rd; .reg .u32 %r;
 ld.param.u64 %rd, [p]; mov.u32 %r, 7;
 st.global.u32 [%rd+4096], %r; ret; }'''
other, lost_ = Tensor([4.0], device="CUDA:1").realize(), Tensor([5.0], device="CUDA").realize()
runtime = Device["CUDA"].runtime
program = runtime.load(BAD, "k")
program([runtime.alloc(64)], (), (1, 1, 1), (1, 1, 1))
text = refused(runtime.synchronize)
assert "CUDA_ERROR_ILLEGAL_ADDRESS" in text and "Device['CUDA'].reset()" in text.splitlines()[0], text
assert "PTX:6: st.global.u32 [%rd+4096], %r; ret; }" in text, text
assert "CUDA_ERROR_ILLEGAL_ADDRESS" in refused(lambda: (Tensor([1]) + 2).tolist())
assert (other + 1).tolist() == [5]
Device["CUDA"].reset()
assert (Tensor([1]) + 2).tolist() == [3]
assert "was lost when the device was reset" in refused(lost_.tolist)
print(refused(lambda: Device["CUDA"].runtime.load(b".version 8.0 nonsense", "k")))
print(refused(lambda: Device["CUDA"].runtime.load(BAD, "j")))
"""

CLOSED = """
from collections import Counter
from tinyhw.drive.cuda import Library
calls, real = Counter(), Library.function
def function(self, name):
  calls[name] += 1
  return real(self, name)
Library.function = function
f = TinyJit(lambda t: (t * 2).realize() + 1)
for k in range(4): assert f(Tensor([k, 2.0])).tolist() == [2 * k + 1, 5]
held = Tensor([1.0]).realize()
Device.close()
PAIRS = {"cuMemAlloc_v2": "cuMemFree_v2", "cuModuleLoadDataEx": "cuModuleUnload", "cuGraphCreate": "cuGraphDestroy",
         "cuGraphInstantiateWithFlags": "cuGraphExecDestroy", "cuStreamCreate": "cuStreamDestroy_v2",
         "cuDevicePrimaryCtxRetain": "cuDevicePrimaryCtxRelease_v2"}
for made, given in PAIRS.items():
  assert calls[made] == calls[given] > 0, (made, calls)
"""

THREADS = """
import threading
errors = []
def work(n):
  try:
    for i in range(6):
      x = Tensor(np.full(50, n, np.float32), device=f"CUDA:{n % 2}" if n % 2 else "CUDA")
      assert (x * 3 + i).tolist() == [3.0 * n + i] * 50
  except BaseException as error: errors.append(error)
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
for t in threads: t.start()
for t in threads: t.join()
assert not errors, errors
"""

FORKED = """
x = (Tensor([1.0]) + 1).realize()
pid = os.fork()
if not pid:
  status = 1
  try:
    text = refused(x.tolist)
    assert "fork" in text or "closed" in text, text
    Device.close()
    assert (Tensor([1.0]) + 2).tolist() == [3.0]
    status = 0
  finally: os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert x.tolist() == [2.0]
Device.close()
assert (Tensor([1.0]) + 5).tolist() == [6.0]
"""


@pytest.mark.parametrize("story", ["VALUES", "GRAPHS", "CLOSED", "THREADS", "FORKED"])
def test_cuda_on_the_mock(story: str) -> None: run_apart(globals()[story], "CUDA", **CARDS)


def test_two_cards_are_peers() -> None:
  assert "no CUDA device 2; there are 2" in run_apart(PEERS, "CUDA", **CARDS)


def test_a_fault_costs_one_device() -> None:
  text, name = run_apart(FAULTS, "CUDA", **CARDS).strip().split("\nCUDA: ")
  assert "kernel 'k' does not load: " in text and "line 1" in text and "nonsense" in text
  assert "kernel 'j' does not load: " in name and "CUDA_ERROR_NOT_FOUND" in name


def test_without_a_driver() -> None:
  try:
    import ctypes
    ctypes.CDLL("libcuda.so.1")
  except OSError:
    said = run_apart("print(refused(lambda: Device['CUDA']))", "CUDA", MOCKGPU="", DEV="LLVM")
    assert "there is no CUDA driver (libcuda.so.1)" in said and "MOCKGPU=sm_90" in said
  else: pytest.skip("this machine has libcuda, or this process its stand-in")
