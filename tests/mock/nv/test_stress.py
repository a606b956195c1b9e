"""The device NV on the mock: orders that the seed draws, threads, forks, faults and resets one after the other."""
from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import tinyhw
from tests.strength import examples, seeds
from tinyhw import Device, Tensor
from tinyhw.core.errors import DeviceError, Error, MachineFault, PageFault

BAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry outside(.param .u64 p) {
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1+1073741824], 1;
  ret;
}
.visible .entry stops(.param .u64 p) {
  trap;
}
.visible .entry loops(.param .u64 p) {
again:
  bra again;
}
.visible .entry parts(.param .u64 p) {
  .reg .pred %p<2>; .reg .b32 %r<2>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bra end;
  bar.sync 0;
end:
  bar.sync 1;
  ret;
}
"""
WHAT = {"outside": (PageFault, "write of 4 bytes", 7), "stops": (MachineFault, "Xid 13", 11),
        "loops": (MachineFault, "an endless loop", 15), "parts": (MachineFault, "barrier 0 never completes", 22)}


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
  """The process's devices are on a mock machine with these cards."""
  with Device.aside():
    monkeypatch.setenv("MOCKGPU", request.param)
    yield request.param
  with suppress(Error): Device.get("NV")


def program(rng: random.Random, device: str) -> tuple[Tensor, np.ndarray]:
  """A few operations on one device, and what they give."""
  made = np.array([rng.randint(-9, 9) for _ in range(24)], np.int32).reshape(4, 6)
  t, n = Tensor(made, device=device), made.astype(np.int64)
  for _ in range(rng.randint(2, 5)):
    which = rng.randrange(5)
    if which == 0: t, n = t + 3, n + 3
    elif which == 1: t, n = (t * 2).realize(), n * 2
    elif which == 2: t, n = t.maximum(1), np.maximum(n, 1)
    elif which == 3: t, n = (t + t.sum(axis=0, keepdim=True)).realize(), n + n.sum(axis=0, keepdims=True)
    else: t, n = t.flip(1), n[:, ::-1]
  return t, n


@pytest.mark.parametrize("cards", ["sm_90,sm_90"], indirect=True)
@pytest.mark.parametrize("seed", seeds(range(4)))
def test_no_order_changes_a_value(cards: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Launches and copies run beside what is behind them; so the driver must wait where it has to."""
  monkeypatch.setenv("MOCKGPU_SEED", str(seed))
  rng = random.Random(seed)
  for _ in range(examples(4)):
    t, n = program(rng, rng.choice(["NV", "NV:1"]))
    if rng.random() < 0.5: t = t.to(rng.choice(["NV", "NV:1"]))
    assert (t.numpy() == n).all()
  assert not [line for line in Device.report() if "doubt" in line or "Xid" in line]


@pytest.mark.parametrize("cards", ["sm_90,sm_86"], indirect=True)
def test_threads_share_the_machine(cards: str) -> None:
  wrong: list[object] = []

  def work(number: int) -> None:
    rng = random.Random(number)
    try:
      for _ in range(3):
        t, n = program(rng, "NV:1" if number % 2 else "NV")
        if not (t.numpy() == n).all(): wrong.append(number)
    except BaseException as error: wrong.append(error)
  threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
  for thread in threads: thread.start()
  for thread in threads: thread.join()
  assert not wrong


@pytest.mark.parametrize("cards", ["sm_90"], indirect=True)
def test_a_fork_opens_the_device_anew(cards: str) -> None:
  kept = (Tensor([1, 2], device="NV") + 1).realize()
  pid = os.fork()
  if not pid:
    code = 1
    try:
      with suppress(DeviceError):
        kept.tolist()
        code = 2
      Device.close()
      if (Tensor([5], device="NV") + 1).tolist() == [6] and code == 1: code = 0
    finally: os._exit(code)
  assert os.waitpid(pid, 0)[1] == 0
  assert (kept + 1).tolist() == [3, 4]


@pytest.mark.parametrize("cards", ["sm_90,sm_90", "sm_120,sm_89"], indirect=True)
def test_faults_and_resets(cards: str, tmp_path: Path) -> None:
  """Each fault says where it is, ends its device alone, and a reset goes on."""
  file = tmp_path / "bad.ptx"
  file.write_text(BAD)
  other = (Tensor([7, 8], device="NV:1") + 1).realize()
  for name, (kind, words, line) in WHAT.items():
    lost = (Tensor([1, 2], device="NV") + 1).realize()
    with pytest.raises(kind, match=words) as caught:
      tinyhw.launch(file, name, 1, 64, [np.zeros(4, np.uint32)], device="NV")
    assert f"PTX:{line}" in str(caught.value) and f"kernel {name}" in str(caught.value)
    with pytest.raises(DeviceError): (lost + 1).tolist()
    assert (other + 1).tolist() == [9, 10]
    Device.reset("NV")
    assert (Tensor([1, 2], device="NV") + 1).tolist() == [2, 3]
  assert sum("(13)" in line or "(31)" in line or "(43)" in line for line in Device.report()) == 4
