"""Bad input and faults through `tinyhw.launch`: one clear error each; the process and the device go on."""
from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import tinyhw
from tinyhw import Device
from tinyhw.core.errors import (
  DecodeError,
  DeviceError,
  Error,
  InvalidArgument,
  OutOfMemory,
  PageFault,
  Unsupported,
)
from tinyhw.kernels.arguments import Parameter, pack_value
from tinyhw.wire.codeobject import Argument
from tinyhw.wire.ctype import named

Build = Callable[..., bytes]

POKE = """
define amdgpu_kernel void @poke(ptr addrspace(1) %p, i64 %offset) #0 {
  %q = getelementptr i8, ptr addrspace(1) %p, i64 %offset
  store i32 7, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @peek(ptr addrspace(1) %p, i64 %offset) #0 {
  %q = getelementptr i8, ptr addrspace(1) %p, i64 %offset
  %v = load volatile i32, ptr addrspace(1) %q
  store i32 %v, ptr addrspace(1) %p
  ret void
}
"""
SPIN = """
define amdgpu_kernel void @spin(ptr addrspace(1) %p) #0 {
  br label %loop
loop:
  %v = load volatile i32, ptr addrspace(1) %p
  %go = icmp eq i32 %v, 12345
  br i1 %go, label %done, label %loop
done:
  ret void
}
define amdgpu_kernel void @count(ptr addrspace(1) %p) #0 {
  br label %loop
loop:
  %i = phi i32 [0, %0], [%next, %loop]
  %next = add i32 %i, 1
  store volatile i32 %next, ptr addrspace(1) %p
  br label %loop
}
"""


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  monkeypatch.setenv("MOCKGPU", "1")
  yield
  Device.close()


def works(build: Build, add_source: str) -> None:
  """The device runs a good kernel: what a fault must not prevent."""
  a = np.arange(128, dtype=np.float32)
  out, again = tinyhw.launch(build(add_source), "add", (2,), (64,), [np.zeros_like(a), a, 0.5])
  assert (out == a + 0.5).all() and (again == a).all()


def goes_on(build: Build, add_source: str, report: str) -> None:
  """The process lives after a fault: the report says how to go on, and that works."""
  with pytest.raises(DeviceError): works(build, add_source)
  assert "go on with tinyhw.Device['AMD'].reset()" in report
  Device["AMD"].reset()
  works(build, add_source)


@pytest.mark.parametrize("version", [400, 500, 600])
@pytest.mark.parametrize("opt", [0, 2])
def test_code_object_versions(code_object: Build, add_source: str, version: int, opt: int) -> None:
  a = np.arange(128, dtype=np.float32)
  binary = code_object(add_source, version=version, opt=opt)
  out, _ = tinyhw.launch(binary, "add", (2,), (64,), [np.zeros_like(a), a, np.float32(3)])
  assert (out == a + 3).all()


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.int64, np.complex64, np.dtype("i4,f4")])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (2, 3)])
def test_buffers_of_any_type_and_shape_come_back(code_object: Build, dtype: np.dtype[Any],
                                                 shape: tuple[int, ...]) -> None:
  rng = np.random.default_rng(0)
  array = np.frombuffer(rng.bytes(8 * max(1, int(np.prod(shape)))), dtype)[:int(np.prod(shape))].reshape(shape)
  unused = """define amdgpu_kernel void @nothing(ptr addrspace(1) %p) #0 { ret void }"""
  (back,) = tinyhw.launch(code_object(unused), "nothing", (1,), (1,), [array])
  assert back.dtype == array.dtype and back.shape == array.shape and back.tobytes() == array.tobytes()


def test_raw_addresses_and_shapes(code_object: Build, add_source: str) -> None:
  a = np.arange(128, dtype=np.float32).reshape(2, 64)[:, ::-1]
  runtime = Device["AMD"].runtime
  memory = runtime.alloc(512)
  (back,) = tinyhw.launch(code_object(add_source), "add", (2,), (64,), [memory.address, a, 1.0])
  out = np.empty(128, np.float32)
  runtime.copyout(memoryview(out).cast("B"), memory)
  assert (back == a).all() and back.shape == (2, 64) and (out == a.reshape(-1) + 1).all()


@pytest.mark.parametrize(("binary", "message"), [
  (b"", "ELF"), (b"not an ELF at all, whatever it is", "ELF"), (b"\x7fELF", "ELF"), (b"\x7fELF" + bytes(60), "ELF")])
def test_not_an_elf(binary: bytes, message: str) -> None:
  with pytest.raises(DecodeError, match=message): tinyhw.launch(binary, "add", (1,), (1,), [])


def test_truncated_elf(code_object: Build, add_source: str) -> None:
  whole = code_object(add_source)
  args = [np.zeros(64, np.float32)] * 2 + [1.0]
  for size in range(16, len(whole), len(whole) // 23):
    with pytest.raises(Error): tinyhw.launch(whole[:size], "add", (1,), (64,), args)


def test_an_elf_for_another_gpu_names_both(code_object: Build, add_source: str) -> None:
  with pytest.raises(Error, match=r"gfx90a.*gfx1100|gfx1100.*gfx90a"):
    tinyhw.launch(code_object(add_source, cpu="gfx90a"), "add", (1,), (64,), [np.zeros(64, np.float32)] * 2 + [1.0])


def test_no_such_kernel_lists_those_there(code_object: Build) -> None:
  with pytest.raises(InvalidArgument, match=r"nothing.*peek.*poke|nothing.*poke.*peek"):
    tinyhw.launch(code_object(POKE), "nothing", (1,), (1,), [])


@pytest.mark.parametrize(("args", "message"), [
  ([], "0 arguments given, the kernel takes 3"),
  ([np.zeros(64, np.float32)] * 2, "2 arguments given, the kernel takes 3"),
  ([np.zeros(64, np.float32)] * 4, "4 arguments given, the kernel takes 3"),
  ([1.5, np.zeros(64, np.float32), 1.0], "float given for a pointer"),
  ([np.zeros(64, np.float32)] * 3, "an array of float32 given for float32 .as its code uses it."),
  ([np.zeros(64, np.float32)] * 2 + [np.float64(1)], "8 bytes given for a value of 4 bytes"),
  ([np.zeros(64, np.float32)] * 2 + ["1"], "str given for a value of 4 bytes"),
  ([-1, np.zeros(64, np.float32), 1.0], "no 64-bit address"),
])
def test_wrong_arguments(code_object: Build, add_source: str, args: list[object], message: str) -> None:
  with pytest.raises(InvalidArgument, match=message): tinyhw.launch(code_object(add_source), "add", (1,), (64,), args)
  works(code_object, add_source)


@pytest.mark.parametrize(("grid", "block", "message"), [
  ((1,), (257,), "256"), ((1,), (16, 16, 2), "256"), ((1,), (2048,), "1024|256"), ((0,), (64,), "positive"),
  ((1,), (0,), "positive"), ((1, 1, 1, 1), (64,), "positive"), ((1.5,), (64,), "positive"), ((-1,), (64,), "positive")])
def test_wrong_launch_dimensions(code_object: Build, add_source: str, grid: tuple[int, ...], block: tuple[int, ...],
                                 message: str) -> None:
  with pytest.raises(InvalidArgument, match=message):
    tinyhw.launch(code_object(add_source), "add", grid, block, [np.zeros(64, np.float32)] * 2 + [1.0])


@pytest.mark.parametrize(("offset", "size", "message"), [(0, 80_000, "LDS|local memory|group segment"),
                                                        (4, 1 << 30, "scratch|private")])
def test_memory_beyond_the_limits(code_object: Build, add_source: str, offset: int, size: int, message: str) -> None:
  """LLVM refuses to make such kernels, so the descriptor of a good one is changed.

  It begins with group_segment_fixed_size (LDS) and private_segment_fixed_size (scratch).
  """
  binary = bytearray(code_object(add_source))
  elf = ELFFile(io.BytesIO(bytes(binary)))
  (symbol,) = elf.get_section_by_name(".symtab").get_symbol_by_name("add.kd")
  at = elf.get_section(symbol["st_shndx"])["sh_offset"] + symbol["st_value"] + offset
  assert binary[at:at + 4] == bytes(4)
  binary[at:at + 4] = size.to_bytes(4, "little")
  with pytest.raises((InvalidArgument, OutOfMemory), match=message):
    tinyhw.launch(bytes(binary), "add", (1,), (64,), [np.zeros(64, np.float32)] * 2 + [1.0])
  works(code_object, add_source)


@pytest.mark.parametrize(("kernel", "access"), [("poke", "write"), ("peek", "read")])
def test_an_access_outside_the_buffers_is_a_page_fault(code_object: Build, add_source: str, kernel: str,
                                                       access: str) -> None:
  with pytest.raises(DeviceError) as caught:
    tinyhw.launch(code_object(POKE), kernel, (1,), (1,), [np.zeros(16, np.int32), 1 << 40])
  text = str(caught.value)
  assert access in text and "0x" in text and "page fault" in text.lower()
  assert "PC" in text and "global_" in text, f"the report names the instruction: {text}"
  goes_on(code_object, add_source, text)


@pytest.mark.parametrize(("kernel", "block", "message"), [
  ("spin", 1, "a deadlock: 2 waves wait for 4 bytes at 0x[0-9a-f]* .they hold 0x0., and nobody is left"),
  ("spin", 256, "a deadlock: 16 waves wait for 4 bytes at 0x[0-9a-f]* .they hold 0x0., and nobody is left"),
  ("count", 64, r"ran more than 20,000 instructions.*MOCKGPU_WATCHDOG")])
def test_an_endless_loop_meets_the_watchdog(code_object: Build, add_source: str, monkeypatch: pytest.MonkeyPatch,
                                            kernel: str, block: int, message: str) -> None:
  if kernel == "count": monkeypatch.setenv("MOCKGPU_WATCHDOG", "20000")
  with pytest.raises(DeviceError, match=message) as caught:
    tinyhw.launch(code_object(SPIN), kernel, (2,), (block,), [np.zeros(16, np.int32)])
  assert "at PC 0x" in str(caught.value)
  goes_on(code_object, add_source, str(caught.value))


def test_wrong_options_of_the_mock_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU_WATCHDOG", "many")
  with pytest.raises(InvalidArgument, match="MOCKGPU_WATCHDOG: 'many' is no count"): Device["AMD"].runtime.describe()
  monkeypatch.delenv("MOCKGPU_WATCHDOG")
  for variable, value, message in (("EMU", "fast", "EMU: no engine is called 'fast'.*auto, ref, jit, both"),
                                   ("TINYHW_THREADS", "0", "TINYHW_THREADS: '0' is no number of threads")):
    with monkeypatch.context() as patch, pytest.raises(InvalidArgument, match=message):
      patch.setenv(variable, value)
      Device["AMD"].runtime.describe()
  monkeypatch.setenv("MOCKGPU", "voodoo2")
  with pytest.raises(Error, match="voodoo2"): Device["AMD"].runtime.describe()


def test_allocation_beyond_the_cards_memory() -> None:
  with pytest.raises(OutOfMemory, match="asked.*free"): Device["AMD"].runtime.alloc(1 << 44)


def test_launch_on_a_device_without_code_objects(code_object: Build, add_source: str) -> None:
  with pytest.raises(Unsupported, match="LLVM"):
    tinyhw.launch(code_object(add_source), "add", (1,), (64,), [], device="LLVM")


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
  clean = {k: v for k, v in os.environ.items() if k not in ("DEV", "MOCKGPU")}
  return subprocess.run([sys.executable, "-c", code], env=clean | env, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(os.path.exists("/dev/kfd"), reason="this machine has a card")
def test_amd_without_card_and_mock_says_both_ways_on() -> None:
  done = run("from tinyhw import Tensor; print((Tensor([1, 2, 3]) + 1).tolist())", DEV="AMD")
  assert done.returncode != 0 and "/dev/kfd" in done.stderr and "MOCKGPU=1" in done.stderr


def test_a_fork_after_opening_the_device_is_named() -> None:
  code = """
import os, sys
from tinyhw import Tensor
from tinyhw.core.errors import Error
t = (Tensor([1, 2, 3]) + 1).realize()
child = os.fork()
if not child:
  try: (t + 1).tolist(); os._exit(3)
  except Error as error: os.write(1, str(error).encode()); os._exit(0)
_, status = os.waitpid(child, 0)
assert t.tolist() == [2, 3, 4]
sys.exit(os.waitstatus_to_exitcode(status))
"""
  done = run(code, DEV="AMD", MOCKGPU="1")
  assert done.returncode == 0, done.stderr
  assert "fork" in done.stdout


def test_a_fault_says_where_in_the_code_and_next_to_what(code_object: Build) -> None:
  """Symbol and offset, the workgroup, the buffer that the address lies behind; on the mock and on the emulator."""
  binary, arguments = code_object(POKE), [np.zeros(16, np.int32), 1 << 20]
  with pytest.raises(DeviceError, match=r"in kernel poke at poke\+0x[0-9a-f]+;"):
    tinyhw.launch(binary, "poke", (1,), (1,), [arguments[0], 1 << 40])
  wanted = (r"1,048,512 bytes past the end of p \(64 bytes\), in kernel poke at poke\+0x[0-9a-f]+\n(.*\n)*"
            r"  wave 0, lane 0, workgroup 0,0,0")
  with pytest.raises(PageFault, match=wanted): tinyhw.launch(binary, "poke", (2, 2), (1,), arguments, device="EMU")
  with pytest.raises(PageFault, match=wanted): tinyhw.report(binary, "poke", (2, 2), (1,), arguments)


def test_a_grid_beyond_32_bits_of_work_items_is_refused(code_object: Build, add_source: str) -> None:
  for grid in ((1 << 26,), (1, 1 << 32), (99999999999,)):
    with pytest.raises(InvalidArgument, match="4,294,967,295"):
      tinyhw.launch(code_object(add_source), "add", grid, (64,), [np.zeros(64, np.float32)] * 2 + [1.0], device="EMU")


@pytest.mark.parametrize(("value", "size", "kind", "message"), [
  (2.5, 4, "int", "2.5 .float. given for int"), (np.int32(2), 4, "float", "2 .int32. given for float"),
  (1, 16, "float4", "1 .int. given for float4; give its elements"), (1.5, 8, "float2", "1.5 .float. given for float2"),
  (1, 24, None, "nothing says what type the parameter's 24 bytes have; give bytes or a NumPy record")])
def test_a_value_of_another_kind_is_refused(value: Any, size: int, kind: str | None, message: str) -> None:
  """A code object of OpenCL names its parameters' types: no bits are read as what they are not."""
  with pytest.raises(InvalidArgument, match=message):
    pack_value(value, Parameter(Argument("x", "by_value", 0, size), "kernel, argument 0",
                                None if kind is None else named(kind), lambda: None))
