"""NVML, as C programs call it, and NVIDIA's own package for Python (nvidia-ml-py) where it is installed."""
from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import command
from tests.mock.cuda.client import SAXPY, Client, u64
from tinyhw.autogen import cuda, nvml
from tinyhw.mock.cuda.handlers import MANAGEMENT, tells
from tinyhw.mock.cuda.library.library import management
from tinyhw.mock.cuda.library.shared import library
from tinyhw.mock.cuda.nvml.library import NAMES, SONAME, words

OK, INVALID, SMALL = nvml.NVML_SUCCESS, nvml.NVML_ERROR_INVALID_ARGUMENT, nvml.NVML_ERROR_INSUFFICIENT_SIZE
UNSUPPORTED, NOT_FOUND = nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_NOT_FOUND
MISMATCH, UNINITIALIZED = nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvml.NVML_ERROR_UNINITIALIZED
CARDS = "sm_90,sm_86,sm_120"
UUID = "GPU-74696e79-6877-206d-6f63-6b0806000001"


class Nvml:
  """The library under the name that programs look for, initialized."""

  def __init__(self, client: Client) -> None:
    self.client, self.cards = client, management().cards
    self.library = ctypes.CDLL(SONAME)
    assert self.library.nvmlInit_v2() == OK

  def code(self, name: str, *arguments: Any) -> int:
    wide = (ctypes.c_uint64(a) if isinstance(a, int) and a > 0x7FFF_FFFF else a for a in arguments)
    return int(getattr(self.library, name)(*wide))

  def told(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint32) -> Any:
    """What a function stores behind its arguments."""
    out = kind.from_buffer_copy(b"\xee" * ctypes.sizeof(kind))
    assert self.code(name, *arguments, ctypes.byref(out)) == OK
    return out if isinstance(out, ctypes.Structure) else out.value

  def text(self, name: str, *arguments: Any) -> str:
    room = ctypes.create_string_buffer(b"\xee" * 96, 96)
    assert self.code(name, *arguments, room, 96) == OK
    size = len(room.value) + 1
    short = ctypes.create_string_buffer(b"\xee" * 96, 96)
    assert self.code(name, *arguments, short, size - 1) == SMALL and set(short.raw) == {0xEE}
    assert self.code(name, *arguments, short, size) == OK and short.raw[size:] == b"\xee" * (96 - size)
    return room.value.decode()

  def device(self, index: int) -> Any:
    return self.told("nvmlDeviceGetHandleByIndex_v2", index, kind=ctypes.c_uint64)


@pytest.fixture
def n() -> Iterator[Nvml]:
  client = Client(CARDS)
  made = Nvml(client)
  yield made
  made.cards.count = 0
  client.machine.close()


def test_counts_of_initializations(n: Nvml) -> None:
  count = ctypes.c_uint32()
  assert n.code("nvmlInit") == n.code("nvmlInitWithFlags", nvml.NVML_INIT_FLAG_NO_ATTACH) == OK
  assert n.code("nvmlInitWithFlags", 64) == INVALID
  for _ in range(3):
    assert n.code("nvmlDeviceGetCount_v2", ctypes.byref(count)) == OK and count.value == 3
    assert n.code("nvmlShutdown") == OK
  for name, kinds in nvml.FUNCTIONS.items():  # each, whatever it is given
    if name.startswith("nvmlInit") or name == nvml.TEXT: continue
    assert n.code(name, *[0] * len(kinds)) == UNINITIALIZED, name
  assert n.code("nvmlInit_v2") == OK and n.told("nvmlDeviceGetCount") == 3


def test_every_function_refuses_nothings_and_is_there(n: Nvml) -> None:
  """No pointer and no handle that is none is followed."""
  for name, kinds in nvml.FUNCTIONS.items():
    if name.startswith(("nvmlInit", "nvmlShutdown")) or name == nvml.TEXT: continue
    served = name in tells()
    for value in (0, 8, 0x7FFF_FFFF_F000, (1 << 64) - 1):
      code = n.code(name, *[value] * len(kinds))
      told = {INVALID} if name in nvml.ON_DEVICE else {INVALID, SMALL, NOT_FOUND} if served else {UNSUPPORTED}
      assert code in told, (name, value)
    if name not in nvml.ON_DEVICE: continue
    for value in (0, 1, (1 << 64) - 1):
      code = n.code(name, n.device(0), *[value] * (len(kinds) - 1))
      assert code in ({INVALID, SMALL} if served else {UNSUPPORTED}), (name, value)
  assert {f.__module__ for f in tells().values()} == {m.__name__ for m in MANAGEMENT}


def test_words_of_results(n: Nvml) -> None:
  """Also before the library is initialized, as NVIDIA's package asks."""
  n.code("nvmlShutdown")
  n.library.nvmlErrorString.restype = ctypes.c_char_p
  for code in nvml.RESULTS: assert n.library.nvmlErrorString(code).decode() == words(code)
  assert [words(c) for c in (0, 2, 13, 999, 12345)] == [
    "Success", "Invalid Argument", "Function Not Found", "Unknown Error", "Unknown Error"]
  assert n.library.nvmlErrorString(-5) == n.library.nvmlErrorString(12345) == b"Unknown Error"


def test_what_cards_are(n: Nvml) -> None:
  assert n.told("nvmlSystemGetCudaDriverVersion_v2") == n.told("nvmlSystemGetCudaDriverVersion") == cuda.CUDA_VERSION
  driver = n.text("nvmlSystemGetDriverVersion")
  assert driver.split(".")[0] == "580" and n.text("nvmlSystemGetNVMLVersion") == f"13.{driver}"
  driver_name, ordinal = ctypes.create_string_buffer(64), ctypes.c_int()
  for i, (arch, brand) in enumerate((("HOPPER", "NVIDIA"), ("AMPERE", "GEFORCE"), ("BLACKWELL", "GEFORCE"))):
    device = n.device(i)
    n.client.call("cuDeviceGetName", driver_name, 64, i)
    assert n.text("nvmlDeviceGetName", device) == driver_name.value.decode()
    assert n.told("nvmlDeviceGetIndex", device) == n.told("nvmlDeviceGetMinorNumber", device) == i
    assert n.told("nvmlDeviceGetArchitecture", device) == getattr(nvml, f"NVML_DEVICE_ARCH_{arch}")
    assert n.told("nvmlDeviceGetBrand", device) == getattr(nvml, f"NVML_BRAND_{brand}")
    major, minor = ctypes.c_int(), ctypes.c_int()
    assert n.code("nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major), ctypes.byref(minor)) == OK
    assert (major.value, minor.value) == n.client.machine.gpus[i].card.capability
    clock = n.told("nvmlDeviceGetMaxClockInfo", device, nvml.NVML_CLOCK_SM)
    n.client.call("cuDeviceGetAttribute", ctypes.byref(ordinal), cuda.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, i)
    assert clock * 1000 == ordinal.value
    n.client.call("cuDeviceGetAttribute", ctypes.byref(ordinal), cuda.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, i)
    assert n.told("nvmlDeviceGetMemoryBusWidth", device) == ordinal.value
    n.client.call("cuDeviceGetAttribute", ctypes.byref(ordinal), cuda.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, i)
    assert n.told("nvmlDeviceGetClockInfo", device, nvml.NVML_CLOCK_MEM) == ordinal.value // 1000
    out = ctypes.c_uint32()
    assert n.code("nvmlDeviceGetClockInfo", device, nvml.NVML_CLOCK_VIDEO, ctypes.byref(out)) == UNSUPPORTED
    assert n.code("nvmlDeviceGetClockInfo", device, 9, ctypes.byref(out)) == INVALID
  assert [n.told("nvmlDeviceGetP2PStatus", n.device(0), u64(n.device(1)), which) for which in range(5)] == [
    0, 0, nvml.NVML_P2P_STATUS_NOT_SUPPORTED, 0, 0]
  assert n.told("nvmlDeviceOnSameBoard", n.device(1), u64(n.device(1))) == 1
  assert n.told("nvmlDeviceOnSameBoard", n.device(1), u64(n.device(2))) == 0


def test_ways_to_a_device(n: Nvml) -> None:
  out = ctypes.c_uint64()
  assert n.text("nvmlDeviceGetUUID", n.device(1)) == UUID
  whole = (ctypes.c_ubyte * 16)()
  n.client.call("cuDeviceGetUuid_v2", whole, 1)
  assert bytes(whole).hex() == UUID[4:].replace("-", "")
  for text in (UUID, UUID[:4] + UUID[4:].upper()):
    assert n.told("nvmlDeviceGetHandleByUUID", text.encode(), kind=ctypes.c_uint64) == n.device(1)
  for text, code in ((UUID[:-1] + "9", NOT_FOUND), (UUID[4:], INVALID), ("", INVALID), ("x" * 500, INVALID)):
    assert n.code("nvmlDeviceGetHandleByUUID", text.encode(), ctypes.byref(out)) == code
  asked = nvml.nvmlUUID_t(version=nvml.nvmlUUID_v1, type=2)
  ctypes.memmove(asked.value.bytes, whole, 16)
  assert n.told("nvmlDeviceGetHandleByUUIDV", ctypes.byref(asked), kind=ctypes.c_uint64) == n.device(1)
  asked.type, asked.value.str = 1, UUID.encode()
  assert n.told("nvmlDeviceGetHandleByUUIDV", ctypes.byref(asked), kind=ctypes.c_uint64) == n.device(1)
  asked.type = 3
  assert n.code("nvmlDeviceGetHandleByUUIDV", ctypes.byref(asked), ctypes.byref(out)) == INVALID
  asked.version += 1
  assert n.code("nvmlDeviceGetHandleByUUIDV", ctypes.byref(asked), ctypes.byref(out)) == MISMATCH
  for text in ("0000:02:00.0", "00000000:02:00.0", "02:00.0", "0:2:0"):
    assert n.told("nvmlDeviceGetHandleByPciBusId_v2", text.encode(), kind=ctypes.c_uint64) == n.device(1)
  for text, code in (("0000:09:00.0", NOT_FOUND), ("0001:02:00.0", NOT_FOUND), ("here", INVALID)):
    assert n.code("nvmlDeviceGetHandleByPciBusId_v2", text.encode(), ctypes.byref(out)) == code
  assert n.code("nvmlDeviceGetHandleByIndex_v2", 3, ctypes.byref(out)) == INVALID
  assert n.code("nvmlDeviceGetHandleByIndex_v2", -1, ctypes.byref(out)) == INVALID


def test_places_on_the_bus_in_all_versions(n: Nvml) -> None:
  """Each symbol stores as many bytes as the struct had then."""
  card, device = n.client.machine.gpus[1].card, n.device(1)
  whole = n.told("nvmlDeviceGetPciInfo_v3", device, kind=nvml.nvmlPciInfo_t)
  assert (whole.busIdLegacy, whole.busId) == (b"0000:02:00.0", b"00000000:02:00.0")
  assert (whole.domain, whole.bus, whole.device, whole.pciDeviceId) == (0, 2, 0, card.pci_id)
  assert card.pci_id & 0xFFFF == 0x10DE
  for name, size in (("nvmlDeviceGetPciInfo", 32), ("nvmlDeviceGetPciInfo_v2", 36)):
    room = ctypes.create_string_buffer(b"\xee" * 68, 68)
    assert n.code(name, device, room) == OK and room.raw == bytes(whole)[:size] + b"\xee" * (68 - size)
  more = nvml.nvmlPciInfoExt_t(version=nvml.nvmlPciInfoExt_v1)
  assert n.code("nvmlDeviceGetPciInfoExt", device, ctypes.byref(more)) == OK
  assert (more.bus, more.pciDeviceId, more.busId, more.baseClass) == (2, card.pci_id, b"00000000:02:00.0", 3)
  more.version = 2
  assert n.code("nvmlDeviceGetPciInfoExt", device, ctypes.byref(more)) == MISMATCH


def test_memory_and_processes_follow_what_is_allocated(n: Nvml) -> None:
  c, free, total = n.client, ctypes.c_size_t(), ctypes.c_size_t()

  def seen(index: int) -> tuple[int, int]:
    first = n.told("nvmlDeviceGetMemoryInfo", n.device(index), kind=nvml.nvmlMemory_t)
    second = nvml.nvmlMemory_v2_t(version=nvml.nvmlMemory_v2)
    assert n.code("nvmlDeviceGetMemoryInfo_v2", n.device(index), ctypes.byref(second)) == OK
    assert (first.total, first.free, first.used) == (second.total, second.free, second.used)
    assert first.total == first.free + first.used and second.reserved == 0
    return first.used, first.total
  before = seen(0)[0]
  at = c.handle("cuMemAlloc_v2", ctypes.c_size_t(3 << 20))
  c.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
  assert seen(0) == (total.value - free.value, total.value) and seen(0)[0] - before == 3 << 20
  assert seen(1)[0] == 0
  wrong = nvml.nvmlMemory_v2_t(version=2)
  assert n.code("nvmlDeviceGetMemoryInfo_v2", n.device(0), ctypes.byref(wrong)) == MISMATCH

  count = ctypes.c_uint32(0)
  for name, form in (("", "<I4xQ"), ("_v2", "<I4xQ2I"), ("_v3", "<I4xQ2I")):
    function = f"nvmlDeviceGetComputeRunningProcesses{name}"
    count.value = 0
    assert n.code(function, n.device(0), ctypes.byref(count), None) == SMALL and count.value == 1
    room = ctypes.create_string_buffer(b"\xee" * 64, 64)
    count.value = 2
    assert n.code(function, n.device(0), ctypes.byref(count), room) == OK and count.value == 1
    size = struct.calcsize(form)
    row = struct.unpack(form, room.raw[:size])
    assert row[:2] == (os.getpid(), seen(0)[0]) and set(row[2:]) <= {0xFFFF_FFFF} and room.raw[size] == 0xEE
    count.value = 2
    assert n.code(function, n.device(1), ctypes.byref(count), room) == OK and count.value == 0
    count.value = 2
    assert n.code(function.replace("Compute", "Graphics"), n.device(0), ctypes.byref(count), room) == OK
    assert count.value == 0
  c.call("cuMemFree_v2", u64(at))
  assert seen(0)[0] == before


def test_utilization_is_of_the_time_between_two_questions(n: Nvml) -> None:
  c = n.client

  def rates(index: int) -> tuple[int, int]:
    found = n.told("nvmlDeviceGetUtilizationRates", n.device(index), kind=nvml.nvmlUtilization_t)
    return found.gpu, found.memory
  rates(0), rates(1)
  assert rates(0) == rates(1) == (0, 0)
  at = c.handle("cuMemAlloc_v2", ctypes.c_size_t(1 << 16))
  c.call("cuMemsetD32_v2", u64(at), 0, ctypes.c_size_t(1 << 14))
  c.call("cuCtxSynchronize")
  kernels, copies = rates(0)
  assert kernels == 0 and 80 <= copies <= 100 and rates(1) == (0, 0)
  module = c.handle("cuModuleLoadData", SAXPY.encode() + b"\0")
  saxpy = c.handle("cuModuleGetFunction", u64(module), b"saxpy")
  values = u64(at), u64(at), ctypes.c_float(2), ctypes.c_uint32(1 << 14)
  table = (ctypes.c_void_p * 4)(*(ctypes.addressof(v) for v in values))
  for _ in range(3): c.call("cuLaunchKernel", u64(saxpy), 64, 1, 1, 256, 1, 1, 0, None, table, None)
  c.call("cuCtxSynchronize")
  kernels, copies = rates(0)
  assert 80 <= kernels <= 100 and copies == 0 and rates(0) == (0, 0) == rates(1)


def test_names_of_processes(n: Nvml) -> None:
  with open(f"/proc/{os.getpid()}/cmdline", "rb") as file: word = file.read().split(b"\0")[0]
  room = ctypes.create_string_buffer(b"\xee" * 999, 999)
  assert n.code("nvmlSystemGetProcessName", os.getpid(), room, 999) == OK and room.value == word
  assert n.code("nvmlSystemGetProcessName", os.getpid(), room, 4) == OK and room.value == word[:3]
  assert n.code("nvmlSystemGetProcessName", os.getpid(), room, 0) == INVALID
  assert n.code("nvmlSystemGetProcessName", (1 << 31) - 7, room, 99) == NOT_FOUND


def test_what_is_not_served_is_reported(n: Nvml) -> None:
  out = ctypes.c_uint32()
  assert n.code("nvmlDeviceGetPowerUsage", n.device(0), ctypes.byref(out)) == UNSUPPORTED
  assert "nvmlDeviceGetPowerUsage: is not modelled" in n.client.machine.report()
  assert n.code("nvmlDeviceGetName", n.device(0), None, 5) == INVALID
  assert len(n.client.machine.report()) == 1  # a wrong argument is told by its result
  with pytest.raises(AttributeError): _ = n.library.nvmlDeviceGetNothing


def test_children_of_fork_go_on_to_ask(n: Nvml) -> None:
  """Also where the parent has initialized CUDA, whose functions answer an error there."""
  at = n.client.handle("cuMemAlloc_v2", ctypes.c_size_t(5 << 20))
  used = n.told("nvmlDeviceGetMemoryInfo", n.device(0), kind=nvml.nvmlMemory_t).used
  child = os.fork()
  if not child:
    code = 1
    try:
      same = n.told("nvmlDeviceGetMemoryInfo", n.device(0), kind=nvml.nvmlMemory_t).used == used
      refused = n.client.code("cuMemFree_v2", u64(at)) == cuda.CUDA_ERROR_NOT_INITIALIZED
      code = 0 if same and refused and n.text("nvmlDeviceGetName", n.device(0)) == "NVIDIA H200" else 2
    finally: os._exit(code)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_many_threads_ask_at_once(n: Nvml) -> None:
  wrong = list[str]()

  def ask(index: int) -> None:
    for _ in range(50):
      if (found := n.text("nvmlDeviceGetUUID", n.device(index)))[-2:] != f"{index:02}": wrong.append(found)
  threads = [threading.Thread(target=ask, args=(i % 3,)) for i in range(6)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert not wrong


NATIVE = """
#include <stdio.h>
#include <stdlib.h>
extern int nvmlInit_v2(void), nvmlShutdown(void), nvmlDeviceGetHandleByIndex_v2(unsigned, void **);
extern int nvmlDeviceGetName(void *, char *, unsigned);
extern const char *nvmlErrorString(int);
static void last(void) { printf("%d %s\\n", nvmlShutdown(), nvmlErrorString(2)); fflush(stdout); }
int main(int count, char **words) {
  char name[96];
  void *device;
  atexit(last);
  if (nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(1, &device)) return 3;
  if (nvmlDeviceGetName(device, name, sizeof name)) return 4;
  puts(name);
  fflush(stdout);
  return count > 1 ? system(words[1]) != 0 : 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_native_programs_and_their_children(tmp_path: Path) -> None:
  """A program that is linked with the library, and another one that it starts."""
  (tmp_path / "p.c").write_text(NATIVE)
  (tmp_path / "libnvidia-ml.so.1").write_bytes(library(SONAME, NAMES))
  made = subprocess.run(["cc", "-fPIE", "-pie", "p.c", "-o", "p", "-L.", "-l:libnvidia-ml.so.1"], cwd=tmp_path,
                        capture_output=True, text=True)
  assert made.returncode == 0, made.stderr
  (tmp_path / "libnvidia-ml.so.1").unlink()
  done = command.tinyhw("run", "--mockgpu", "sm_90,sm_86", "./p", "./p", cwd=tmp_path, env=dict(os.environ))
  lines = ["NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3090", "0 Invalid Argument", "0 Invalid Argument"]
  assert (done.returncode, done.stdout.splitlines()) == (0, lines), done.stderr


def test_nvidias_own_package(n: Nvml) -> None:
  """Its functions, structs and exceptions are those of the vendor, and so are its numbers."""
  pynvml: Any = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
  for name in dir(pynvml):
    ours, theirs = getattr(nvml, name, None), getattr(pynvml, name)
    if name.startswith("NVML_") and isinstance(ours, int) and isinstance(theirs, int): assert ours == theirs, name
  assert (pynvml.nvmlMemory_v2, ctypes.sizeof(pynvml.c_nvmlMemory_v2_t)) == (nvml.nvmlMemory_v2, 40)
  n.code("nvmlShutdown")
  with pytest.raises(pynvml.NVMLError) as error: pynvml.nvmlDeviceGetCount()
  assert error.value.value == UNINITIALIZED
  pynvml.nvmlInit()
  with pytest.raises(pynvml.NVMLError) as error: pynvml._nvmlGetFunctionPointer("nvmlDeviceGetNothing")
  assert error.value.value == nvml.NVML_ERROR_FUNCTION_NOT_FOUND
  device = pynvml.nvmlDeviceGetHandleByUUID(UUID)
  assert pynvml.nvmlDeviceGetIndex(device) == 1
  assert pynvml.nvmlDeviceGetPciInfo(device).busId.strip("0") == ":02:00."
  assert pynvml.nvmlDeviceGetMemoryInfo(device, pynvml.nvmlMemory_v2).total == n.client.machine.gpus[1].vram.size
  mine, = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
  assert mine.pid == os.getpid()
  for name, more in (("Temperature", (0,)), ("PowerUsage", ())):
    with pytest.raises(pynvml.NVMLError) as error: getattr(pynvml, f"nvmlDeviceGet{name}")(device, *more)
    assert error.value.value == UNSUPPORTED and str(error.value) == "Not Supported"
  with pytest.raises(pynvml.NVMLError) as error: pynvml.nvmlDeviceGetHandleByIndex(7)
  assert error.value.value == INVALID and str(error.value) == "Invalid Argument"
  pynvml.nvmlShutdown()
