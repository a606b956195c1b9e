"""What of Triton's backend needs no Triton: which GPU is asked for, arguments, launches on arrays where they lie."""
from __future__ import annotations

import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.corpus.corpus import entries, objects
from tinyhw.core.errors import InvalidArgument, PageFault, Unsupported
from tinyhw.devices.registry import emulated
from tinyhw.triton import array
from tinyhw.triton.arguments import flattened, memory_of, packed, scalar
from tinyhw.triton.launch import Memory, copied, launch
from tinyhw.triton.target import triton_target


@pytest.mark.parametrize("variables, wanted", [
  ({}, None), ({"TINYHW_TRITON": "0", "MOCKGPU": "1"}, None), ({"TINYHW_TRITON": "gfx942"}, ("EMU", "gfx942")),
  ({"MOCKGPU": "gfx1100"}, ("AMD", "gfx1100")), ({"TINYHW_TRITON": "1"}, ("EMU", "gfx1100")),
  ({"TINYHW_TRITON": "gfx1201", "MOCKGPU": "gfx1100"}, ("EMU", "gfx1201")),
  ({"MOCKGPU": "sm_90"}, None), ({"MOCKGPU": "sm_90,gfx1100"}, ("AMD", "gfx1100")),
  ({"TINYHW_TRITON": "AMD:1"}, ("AMD:1", ""))])
def test_which_gpu_is_asked_for(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: Any) -> None:
  for name in ("TINYHW_TRITON", "MOCKGPU"): monkeypatch.delenv(name, raising=False)
  for name, value in variables.items(): monkeypatch.setenv(name, value)
  assert triton_target() == wanted


def test_an_unknown_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("TINYHW_TRITON", "gfx000")
  with pytest.raises(InvalidArgument, match="gfx000"): triton_target()
  monkeypatch.setenv("TINYHW_TRITON", "LLVM")
  with pytest.raises(Unsupported, match="LLVM"): triton_target()


@pytest.mark.parametrize("kind, value, data", [
  ("i32", -1, b"\xff" * 4), ("u8", 200, b"\xc8"), ("i1", True, b"\1"),
  ("i64", 1 << 40, (1 << 40).to_bytes(8, "little")),
  ("fp32", 1.5, struct.pack("<f", 1.5)), ("fp16", 0.5, struct.pack("<e", 0.5)), ("fp64", 0.1, struct.pack("<d", 0.1)),
  ("bf16", 1.0, b"\x80\x3f"), ("fp32", 1e300, struct.pack("<f", float("inf")))])
def test_scalars(kind: str, value: Any, data: bytes) -> None: assert scalar(kind, value, "here") == data


def test_what_does_not_fit_is_refused() -> None:
  with pytest.raises(InvalidArgument, match="here: 4294967296 does not fit i32"): scalar("i32", 1 << 32, "here")
  with pytest.raises(Unsupported, match="nvTmaDesc"): scalar("nvTmaDesc", 1, "here")
  with pytest.raises(Unsupported, match="tinyhw.triton.array"): memory_of(object(), "here")


def test_tuples_are_flattened_and_constants_left_out() -> None:
  rows = list(flattened("t", ("i32", "constexpr", ("fp32",)), (1, 2, (3.0,))))
  assert rows == [("t[0]", "i32", 1), ("t[2][0]", "fp32", 3.0)]


def test_a_view_brings_its_base() -> None:
  base = np.zeros(100, np.float32)
  start, end, writable = memory_of(array(base)[10:20:3], "x")
  assert (start, end, writable) == (base.ctypes.data, base.ctypes.data + 400, True)
  assert array(base).data_ptr() == base.ctypes.data and array(base)[3:].ptr_range() == 388


def add_program(target: str) -> tuple[Any, Any]:
  entry = next(e for e in entries() if e.language == "Triton" and e.target == target and e.case == "add")
  runtime = emulated()
  return runtime, runtime.load_kernel(objects()[entry.file], entry.kernel)


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201", "gfx942"])
def test_a_launch_works_on_the_arrays_themselves(target: str) -> None:
  runtime, program = add_program(target)
  block = (4 * program.kernel.wavefront_size, 1, 1)
  store = np.arange(600, dtype=np.float32)
  x, y, out = (array(store)[k:k + 200] for k in (0, 200, 400))
  rows = [("x", "*fp32", x), ("y", "*fp32", y), ("out", "*fp32", out), ("n", "i32", 200)]
  launch(runtime, program, (2, 1, 1), block, 0, rows)
  assert (store[400:] == store[:200] + store[200:400]).all() and not runtime.space.used.keys() & {x.data_ptr()}
  # a store past the end of an array, by its name
  rows[2] = ("out", "*fp32", array(np.zeros(100, np.float32)))
  with pytest.raises(PageFault, match=r"out \(400 bytes\)"): launch(runtime, program, (2, 1, 1), block, 0, rows)
  runtime.close()


def test_a_device_with_memory_of_its_own_gets_one_copy_of_shared_memory() -> None:
  runtime, program = add_program("gfx1100")
  store = np.arange(300, dtype=np.float32)
  x, y = array(store)[1:101], array(store)[150:250]
  rows = [("x", "*fp32", x), ("y", "*fp32", y), ("out", "*fp32", y), ("n", "i32", 100)]
  memory = Memory("add", rows)
  assert len(memory.spans) == 1 and memory.spans[0].name == "x, y, out"
  expected = store.copy()
  expected[150:250] += store[1:101]
  with copied(runtime, memory.spans) as places:
    (span, at), = places
    assert at % 64 == span.start % 64
    payload = packed(program.kernel, rows, lambda address, value, name: address - span.start + at)
    program.launch(payload, (1, 1, 1), (128, 1, 1))
  assert (store == expected).all()
  runtime.close()


def test_nothing_of_triton_or_torch_is_imported() -> None:
  text = "import sys, tinyhw.triton, tinyhw.triton.launch; print('torch' in sys.modules, 'triton' in sys.modules)"
  done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
  assert done.stdout.split() == ["False", "False"]
