"""The devices of this process: memory, copies, launches, and what they refuse. PYTHON's programs are a stand-in's."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tinyhw.core.errors import DeviceError, InvalidArgument, OutOfMemory
from tinyhw.drive.base import Runtime
from tinyhw.drive.cpu import ALIGNMENT, HostRuntime
from tinyhw.drive.python import PythonRuntime

Calls = list[tuple[Any, ...]]


def python(calls: Calls) -> PythonRuntime:
  """A device whose programs add their value to each byte of their buffers."""
  def emulator(binary: bytes, name: str) -> Any:
    def execute(arrays: Sequence[Any], values: Sequence[int | float], grid: Any, block: Any) -> None:
      calls.append((binary, name, list(values), grid, block))
      for a in arrays: a += values[0]
    return execute
  return PythonRuntime(emulator)


DEVICES = {"LLVM": HostRuntime, "PYTHON": lambda: python([])}


@pytest.mark.parametrize("name", DEVICES)
def test_memory_and_copies(name: str) -> None:
  gpu: Runtime = DEVICES[name]()
  assert gpu.name == name and gpu.describe()
  a, b, back = gpu.alloc(100), gpu.alloc(60), bytearray(60)
  data = np.arange(25, dtype=np.int32)
  gpu.copyin(a, memoryview(data))
  gpu.copy(b, a, 40)
  gpu.copyout(memoryview(back).cast("I"), b)
  assert back[:40] == data.tobytes()[:40] and not any(back[40:]), "new memory is zeros"
  gpu.copyin(a, memoryview(b"ab"))
  gpu.copyout(memoryview(back)[:4], a)
  assert back[:4] == b"ab" + data.tobytes()[2:4]
  gpu.synchronize()


@pytest.mark.parametrize("name", DEVICES)
def test_what_they_refuse(name: str) -> None:
  gpu: Runtime = DEVICES[name]()
  for size in (0, -1):
    with pytest.raises(InvalidArgument, match=f"{name}: cannot allocate {size} bytes"): gpu.alloc(size)
  assert gpu.alloc(1).size == 1
  with pytest.raises(OutOfMemory, match=name): gpu.alloc(1 << 62)
  a, b = gpu.alloc(10), gpu.alloc(20)
  for copy in (lambda: gpu.copyin(a, memoryview(bytes(11))), lambda: gpu.copyout(memoryview(bytearray(11)), a),
               lambda: gpu.copy(a, b, 11), lambda: gpu.copy(b, a, 11)):
    with pytest.raises(InvalidArgument, match="a copy of 11 bytes, but the allocation has 10"): copy()
  gpu.free(a)
  for copy in (lambda: gpu.copyin(a, memoryview(b"x")), lambda: gpu.copyout(memoryview(bytearray(1)), a),
               lambda: gpu.copy(b, a, 1)):
    with pytest.raises(InvalidArgument, match="the allocation was freed"): copy()


def test_a_program_of_the_emulator_gets_memory_and_values() -> None:
  calls: Calls = []
  gpu = python(calls)
  a = gpu.alloc(4)
  program = gpu.load(b"binary", "plus")
  assert program([a], [3], (2, 1, 1), (4, 1, 1)) is None
  seconds = program([a], [1, 2.5], (1, 1, 1), (1, 1, 1), wait=True)
  assert calls == [(b"binary", "plus", [3], (2, 1, 1), (4, 1, 1)), (b"binary", "plus", [1, 2.5], (1, 1, 1), (1, 1, 1))]
  assert isinstance(seconds, float) and seconds >= 0 and a.handle.tolist() == [4, 4, 4, 4]
  gpu.free(a)
  with pytest.raises(InvalidArgument, match="plus: the allocation was freed"): program([a], [1], (1, 1, 1), (1, 1, 1))


SOURCE = """
define void @plus(ptr %out, ptr %in, i32 %n) {
  %x = load i32, ptr %in
  %y = add i32 %x, %n
  store i32 %y, ptr %out
  ret void
}
"""


def test_a_program_of_this_processor() -> None:
  import llvmlite.binding as llvm
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
  binary = machine.emit_object(llvm.parse_assembly(SOURCE))
  gpu = HostRuntime()
  out, given, back = gpu.alloc(4), gpu.alloc(4), bytearray(4)
  assert out.address is not None and out.address % ALIGNMENT == 0
  gpu.copyin(given, memoryview((30).to_bytes(4, "little")))
  for program in (gpu.load(binary, "plus"), gpu.load(binary, "plus")):  # a name may come again
    for value, wait in ((12, False), (-1, True)):
      seconds = program([out, given], [value], (1, 1, 1), (1, 1, 1), wait)
      assert (seconds is None) != wait and (seconds or 0) >= 0
      gpu.copyout(memoryview(back), out)
      assert int.from_bytes(back, "little") == 30 + value
  for grid, block in (((2, 1, 1), (1, 1, 1)), ((1, 1, 1), (1, 2, 1))):
    with pytest.raises(InvalidArgument, match="a host kernel has one thread"): program([out, given], [1], grid, block)
  with pytest.raises(DeviceError, match="kernel 'minus' does not load"): gpu.load(binary, "minus")
  gpu.free(given)
  with pytest.raises(InvalidArgument, match="a buffer was freed"): program([out, given], [1], (1, 1, 1), (1, 1, 1))


@pytest.mark.parametrize("size", [64, 8 << 20])
def test_what_a_forked_child_writes_is_its_own(size: int) -> None:
  runtime = HostRuntime()
  memory = runtime.alloc(size)
  runtime.copyin(memory, memoryview(bytes(size)))
  child = os.fork()
  if not child:
    runtime.copyin(memory, memoryview(b"\xff" * size))
    os._exit(int(bytes(memory.memory(size, "LLVM")) != b"\xff" * size))
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
  assert bytes(memory.memory(size, "LLVM")) == bytes(size)
