"""gfx1201 as a card: tensors by its own packets and registers, its matrix units, faults, two cards, what is refused."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import command
from tests.drive.conftest import compile_ir
from tinyhw import Device, Tensor, dtypes
from tinyhw.core.errors import PageFault, Unsupported
from tinyhw.devices import disassembly
from tinyhw.drive.amd import report
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.mock.amd.card import GFX1201
from tinyhw.mock.amd.driver import topology
from tinyhw.wire import pm4

FIRST = """
import threading
from tinyhw.arch import arch
from tinyhw.drive.amd.commands import ComputeCommands
assert ComputeCommands(arch("gfx1201")).memory_barrier().signal(0x1000, "value").words
from tinyhw.drive.amd import report
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
together, wrong = threading.Barrier(8), []
def opened():
  machine = Machine("gfx1201")
  together.wait()
  try: AMDRuntime(MockPort(machine)).close()
  except Exception as error: wrong.append(repr(error))
threads = [threading.Thread(target=opened) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong)
"""
RNG = np.random.default_rng(12)


@pytest.fixture(autouse=True)
def cards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """Two of them."""
  monkeypatch.setenv("MOCKGPU", "gfx1201,gfx1201")
  Device.close()
  yield
  Device.close()


def test_tensors_are_what_numpy_says() -> None:
  a, b = RNG.random((48, 40), np.float32), RNG.random((40, 56), np.float32)
  found = ((Tensor(a, device="AMD") @ Tensor(b, device="AMD")).relu().sum(axis=1)).numpy()
  np.testing.assert_allclose(found, (a @ b).sum(axis=1), rtol=1e-5)
  x = Tensor(np.arange(1000, dtype=np.int32), device="AMD:1")
  assert (x * 3 - 1).sum().item() == int((np.arange(1000) * 3 - 1).sum())
  assert (x.to("AMD")[::7] + 1).tolist() == list(range(1, 1001, 7))


def test_products_of_halves_are_its_matrix_units() -> None:
  a, b = RNG.standard_normal((64, 64)).astype(np.float16), RNG.standard_normal((64, 64)).astype(np.float16)
  runtime: Any = Device["AMD"].runtime
  product = Tensor(a, device="AMD").matmul(Tensor(b, device="AMD"), dtype=dtypes.float32).numpy()
  np.testing.assert_allclose(product, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
  texts = [shown.text for image in runtime._images for shown in disassembly.code_object(image)]
  assert any("v_wmma_f32_16x16x16_f16" in text for text in texts)


def test_its_packets_are_its_generations(tmp_path: Path) -> None:
  """A fence's hint is `temporal`, and DISPATCH_INITIATOR's bits are gfx12's."""
  runtime = Device["AMD"].runtime
  assert isinstance(runtime, AMDRuntime) and runtime.arch.pm4 == "gfx12"
  words = runtime.compute_marker().words
  text = pm4.text(words, of=pm4.table("gfx12"))
  assert "RELEASE_MEM(" in text and "temporal=lu" in text and "cache_policy" not in text
  assert report.pm4_lines(runtime.arch.pm4, words) == text.splitlines()  # what a hang's report shows
  (tmp_path / "words.bin").write_bytes(bytes(words))
  done = command.tinyhw("decode", "words.bin", "--kind", "pm4", "--arch", "gfx1201", cwd=tmp_path)
  assert done.returncode == 0 and "temporal=lu" in done.stdout, done.stderr
  done = command.tinyhw("decode", "words.bin", "--kind", "pm4", "--arch", "gfx1152", cwd=tmp_path)
  assert done.returncode == 1 and "unsupported PM4 packets of gfx1152" in done.stderr, done.stderr


def test_a_fault_names_address_and_access() -> None:
  code = compile_ir("""
define amdgpu_kernel void @stray(ptr addrspace(1) %out) #0 {
  %p = getelementptr i32, ptr addrspace(1) %out, i64 268435456
  store i32 7, ptr addrspace(1) %p
  ret void
}""", "gfx1201")
  runtime = Device["AMD"].runtime
  assert isinstance(runtime, AMDRuntime)
  memory = runtime.alloc(4096)
  runtime.load(code, "stray")([memory], [], (1, 1, 1), (32, 1, 1))
  with pytest.raises(PageFault, match="write of 4 bytes"): runtime.synchronize()


def test_what_kfd_tells_of_gfx12() -> None:
  """Linux 6.12 kfd_topology.c: precise ALU operations, and firmware that a debugger can work with."""
  assert topology.capability(GFX1201) & 0x4000_0000
  assert Device["AMD"].runtime.describe().startswith("gfx1201, 64 CUs, 16,384 MiB")


def test_weak_memory_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU_MEMORY", "weak")
  with pytest.raises(Unsupported, match="gfx1201"): Tensor([1], device="AMD").tolist()


def test_a_capture_has_the_words_of_its_generation(tmp_path: Path) -> None:
  """KFD's topology is in it: a fence's hint is gfx12's, registers have gfx12's fields, and it replays."""
  (tmp_path / "add.py").write_text("from tinyhw import Tensor; print((Tensor([1, 2, 3]) + 1).tolist())")
  def said(*words: str) -> str:
    done = command.tinyhw(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout
  said("record", "-o", "run.thq", "--mockgpu", "gfx1201", "--", "add.py")
  text = said("decode", "run.thq")
  assert "temporal=lu" in text and "cache_policy=bypass" not in text and "COMPUTE_PGM_RSRC3 = 0x00000010" in text
  assert '"temporal": "lu"' in said("decode", "run.thq", "--json")
  assert "all as captured" in said("replay", "run.thq")
  said("lint", "run.thq")  # no findings


def test_a_capture_of_two_generations_replays_on_such_a_machine(tmp_path: Path) -> None:
  """The second card is used first: GPUs are told by their place in the topology, not by the order of their use."""
  (tmp_path / "two.py").write_text(
    "from tinyhw import Tensor\nprint((Tensor([1, 2, 3], device='AMD:1').to('AMD') + 1).tolist())\n")
  for words in (("record", "-o", "two.thq", "--mockgpu", "gfx1100,gfx1201", "--", "two.py"), ("replay", "two.thq")):
    done = command.tinyhw(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
  assert "all as captured" in done.stdout


def test_a_driver_without_a_mock_speaks_gfx12() -> None:
  """In a process where nobody has decoded a packet of it, as on a card; and threads may open the first ones at once."""
  done = command.python(FIRST)
  assert done.returncode == 0 and done.stdout == "[]\n", done.stdout + done.stderr
