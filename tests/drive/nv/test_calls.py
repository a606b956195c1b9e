"""What the NV driver asks of RM and UVM, call by call and field by field, and what it writes into pushbuffers and QMDs:
decoded again by `wire` alone."""
from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drive.nv.calls import RecordingPort
from tinyhw.arch.nv import nv_arch
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_control as control
from tinyhw.autogen import nv_uvm
from tinyhw.core.errors import DeviceError, DriverError, EncodeError, Unsupported
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.drive.nv.program import patches, resident, shared_config, store
from tinyhw.drive.nv.rm import LOCAL_WINDOW, SHARED_WINDOW, Rm, arch_of
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import cubin, gpfifo, methods, qmd, rm, uvm
from tinyhw.wire.cubin import CubinEntry, Parameter

OPENING = """
open /dev/nvidiactl
NV_ESC_CHECK_VERSION_STR
NV_ESC_CARD_INFO
NV01_ROOT_CLIENT
open /dev/nvidia-uvm
UVM_INITIALIZE
open /dev/nvidia-uvm
UVM_MM_INITIALIZE
open /dev/nvidia0
NV_ESC_REGISTER_FD
NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2
NV01_DEVICE_0
NV20_SUBDEVICE_0
NV2080_CTRL_CMD_GPU_GET_GID_INFO
NV2080_CTRL_CMD_GPU_GET_NAME_STRING
NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2
NV2080_CTRL_CMD_GPU_GET_ENGINES_V2
NV2080_CTRL_CMD_GR_GET_INFO
NV2080_CTRL_CMD_FB_GET_INFO_V2
FERMI_VASPACE_A
UVM_REGISTER_GPU
UVM_REGISTER_GPU_VASPACE
HOPPER_USERMODE_A
open /dev/nvidia0
NV_ESC_REGISTER_FD
NV_ESC_RM_MAP_MEMORY
""".split("\n")[1:-1]
SYSTEM = ["NV01_MEMORY_SYSTEM", "UVM_CREATE_EXTERNAL_RANGE", "UVM_MAP_EXTERNAL_ALLOCATION", "open /dev/nvidiactl",
          "NV_ESC_RM_MAP_MEMORY"]
VIDEO = ["NV01_MEMORY_LOCAL_USER", *SYSTEM[1:3], "open /dev/nvidia0", "NV_ESC_REGISTER_FD", "NV_ESC_RM_MAP_MEMORY"]
HIDDEN = [s for s in SYSTEM if not s.startswith("UVM")]
CHANNEL = [*VIDEO * 3, *HIDDEN, "KEPLER_CHANNEL_GROUP_A"]
SCHEDULED = ["UVM_REGISTER_CHANNEL", "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE", "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN"]


@pytest.fixture
def machine() -> Iterator[NvMachine]:
  made = NvMachine("sm_90", vram=1 << 30, system_memory=1 << 30)
  yield made
  made.close()


@pytest.fixture
def port(machine: NvMachine) -> RecordingPort: return RecordingPort(machine)


@pytest.fixture
def runtime(port: RecordingPort) -> Iterator[NVRuntime]:
  made = NVRuntime(port, timeout_s=5)
  yield made
  made.close()


def test_a_device_opens_call_by_call(port: RecordingPort, runtime: NVRuntime) -> None:
  names = port.names()
  at = len(OPENING)
  assert names[:at] == OPENING
  assert names[at:at + 16] == SYSTEM + VIDEO + SYSTEM  # signals, arguments, bounce buffer
  compute = [*CHANNEL, "FERMI_CONTEXT_SHARE_A", "HOPPER_CHANNEL_GPFIFO_A", "HOPPER_COMPUTE_A", *SCHEDULED]
  caps = ["NV2080_CTRL_CMD_CE_GET_CAPS_V2"] * 5 + ["NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK"] * 3  # two are graphics'
  copy = [*CHANNEL, "HOPPER_CHANNEL_GPFIFO_A", "HOPPER_DMA_COPY_A", *SCHEDULED]
  assert names[at + 16:] == compute + caps + copy
  assert not [n for n in names if "PERF" in n or "BOOST" in n or "CLK" in n]


def row(port: RecordingPort, name: str, number: int = 0) -> tuple[Any, Any]:
  """(argument, what its pointer leads to) of a call of this name."""
  return [(argument, inner) for n, argument, inner in port.calls if n == name][number]


def test_what_the_calls_say(port: RecordingPort, runtime: NVRuntime) -> None:
  _, device = row(port, "NV01_DEVICE_0")
  assert device.deviceId == 0 and device.hClientShare == runtime.rm.root
  _, space = row(port, "FERMI_VASPACE_A")
  assert space.flags == (alloc.NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING
                         | alloc.NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED)
  _, memory = row(port, "NV01_MEMORY_SYSTEM")
  assert rm.bits(memory.attr, alloc.NVOS32_ATTR_LOCATION) == alloc.NVOS32_ATTR_LOCATION_PCI
  assert rm.bits(memory.attr, alloc.NVOS32_ATTR_COHERENCY) == alloc.NVOS32_ATTR_COHERENCY_WRITE_BACK
  assert memory.size == 4096 and memory.owner == runtime.rm.root
  _, group = row(port, "KEPLER_CHANNEL_GROUP_A")
  assert group.engineType == alloc.NV2080_ENGINE_TYPE_GRAPHICS and group.hVASpace == runtime.gpu.va_space
  _, other = row(port, "KEPLER_CHANNEL_GROUP_A", 1)
  assert other.engineType == alloc.NV2080_ENGINE_TYPE_COPY4  # which has most of the physical ones
  argument, channel = row(port, "HOPPER_CHANNEL_GPFIFO_A")
  assert argument.hObjectParent != argument.hRoot and channel.hContextShare and not channel.hVASpace
  assert channel.gpFifoEntries == 4096 and channel.gpFifoOffset < 1 << 40 and channel.hObjectError
  assert channel.hUserdMemory[0] and not any(channel.hUserdMemory[1:])
  _, copier = row(port, "HOPPER_DMA_COPY_A")
  assert (copier.version, copier.engineType) == (1, alloc.NV2080_ENGINE_TYPE_COPY4)
  _, usermode = row(port, "HOPPER_USERMODE_A")
  assert usermode.bBar1Mapping == 1 and usermode.bPriv == 0
  mapped, _ = row(port, "UVM_MAP_EXTERNAL_ALLOCATION")
  assert mapped.gpuAttributesCount == 1 and bytes(mapped.perGpuAttributes[0].gpuUuid.uuid) == runtime.gpu.uuid
  assert mapped.perGpuAttributes[0].gpuMappingType == nv_uvm.UvmGpuMappingTypeReadWriteAtomic
  _, schedule = row(port, "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE")
  assert schedule.bEnable == 1


def test_memory_of_a_channel_is_no_more_than_it_needs(port: RecordingPort, runtime: NVRuntime) -> None:
  """Entries, pushbuffer and USERD in video memory, and a page of the system for what RM says of errors."""
  system, video = ([p.size for name, _, p in port.calls if name == kind]
                   for kind in ("NV01_MEMORY_SYSTEM", "NV01_MEMORY_LOCAL_USER"))
  assert len(system) == 2 + 2 and system[2:] == [4096, 4096]
  assert len(video) == 1 + 2 * 3 and video[1:4] == video[4:] == [64 << 10, 1 << 20, 64 << 10] and gpfifo.SIZE == 8


def test_a_device_that_does_not_open_leaves_nothing(port: RecordingPort, monkeypatch: pytest.MonkeyPatch) -> None:
  opened = NVRuntime(port, timeout_s=5)
  opened.close()
  rm, real = Rm.of(port), RecordingPort.ioctl
  assert not rm.buffers
  for step in ("UVM_MAP_EXTERNAL_ALLOCATION", "HOPPER_COMPUTE_A", "UVM_REGISTER_CHANNEL", "HOPPER_DMA_COPY_A"):
    def ioctl(self: RecordingPort, fd: int, request: int, argument: Any, step: str = step) -> int:
      if self._named(request, argument)[0] == step: raise OSError(5, "Input/output error")
      return real(self, fd, request, argument)
    with monkeypatch.context() as patch:
      patch.setattr(RecordingPort, "ioctl", ioctl)
      with pytest.raises(DriverError, match="Input/output error"): NVRuntime(port, timeout_s=5)
    assert not rm.buffers, step
  again = NVRuntime(port, timeout_s=5)
  again.free(again.alloc(100))
  again.close()


def test_video_memory_in_pages_of_its_size(port: RecordingPort, runtime: NVRuntime) -> None:
  since = len(port.calls)
  small, large = runtime.alloc(100), runtime.alloc(5 << 20)
  assert port.names(since) == ["NV01_MEMORY_LOCAL_USER", *SYSTEM[1:3]] * 2  # the host does not see it
  for at, size, page, huge in ((0, 64 << 10, alloc.NVOS32_ATTR_PAGE_SIZE_BIG, 0),
                               (1, 6 << 20, alloc.NVOS32_ATTR_PAGE_SIZE_HUGE, alloc.NVOS32_ATTR2_PAGE_SIZE_HUGE_2MB)):
    _, p = row(port, "NV01_MEMORY_LOCAL_USER", at + 7)
    assert p.size == size and rm.bits(p.attr, alloc.NVOS32_ATTR_PAGE_SIZE) == page
    assert rm.bits(p.attr2, alloc.NVOS32_ATTR2_PAGE_SIZE_HUGE) == huge
    assert rm.bits(p.attr, alloc.NVOS32_ATTR_LOCATION) == alloc.NVOS32_ATTR_LOCATION_VIDMEM
  assert large.address is not None and large.address % (2 << 20) == 0 and small.address
  runtime.free(small)
  assert runtime.alloc(60).address and len(port.calls) == since + 6  # the freed one


def test_words_of_a_launch(port: RecordingPort, runtime: NVRuntime) -> None:
  """The submission read back from the pushbuffer, the QMD from the argument ring: each field is what was asked for."""
  arch = nv_arch("sm_90")
  parameters = (Parameter(0, 8), Parameter(8, 4))
  ptx = (".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 n) {"
         " .reg .b64 %a; .reg .b32 %n; ld.param.u64 %a, [out]; ld.param.u32 %n, [n]; st.global.u32 [%a], %n; ret; }")
  raw = cubin.write(ptx.encode(), 90, arch.bank0.params, [CubinEntry("k", parameters, 256, 128)], None, 1024)
  program, out = runtime.load(raw, "k"), runtime.alloc(4)
  rung = len(port.rung)
  program([out], [77], (3, 2, 1), (64, 1, 1))
  ring: Any = runtime.compute.ring
  assert [(nbytes, value) for _, value, nbytes in port.rung[rung:]] == [(4, ring._token)]
  lines = runtime.last_submission()
  assert [next(w for w in line.split() if "." in w).partition("(")[0] for line in lines] == [
    "AMPERE_CHANNEL_GPFIFO_A.WFI", "HOPPER_COMPUTE_A.SEND_PCAS_A", "HOPPER_COMPUTE_A.SEND_SIGNALING_PCAS2_B"]
  words = runtime.compute.words_of(runtime.compute.history[-1])
  _, idle = methods.decode(words)
  send, _ = methods.decode(words[idle:])
  assert isinstance(send, methods.Send)
  at = (send.data[0] << 8) - runtime.kernargs.address
  made = qmd.decode(arch.compute_class, memoryview(runtime.kernargs.memory[at:at + 384]).cast("I").tolist())
  bank = at + runtime.kernargs.address + program.bank_at
  wanted = {"GRID_WIDTH": 3, "GRID_HEIGHT": 2, "GRID_DEPTH": 1, "CTA_THREAD_DIMENSION0": 64, "CTA_THREAD_DIMENSION1": 1,
            "PROGRAM_ADDRESS": program.image.address + program.code.text, "REGISTER_COUNT": 32,
            "SHARED_MEMORY_SIZE": 1280, "SASS_VERSION": 0x90, "QMD_TYPE": 2, "QMD_MAJOR_VERSION": 4,
            "QMD_MINOR_VERSION": 0}
  released = {"RELEASE_ENABLE": 1, "RELEASE_PAYLOAD64B": 1, "RELEASE_SEMAPHORE_ADDR": runtime.timeline.signal.address,
              "RELEASE_SEMAPHORE_PAYLOAD": runtime.timeline.last, "CONSTANT_BUFFER_PREFETCH": 1}
  assert {n: qmd.read(made, n, 0) for n in released} == released
  assert {n: qmd.read(made, n) for n in wanted} == wanted
  assert qmd.read(made, "CONSTANT_BUFFER_ADDR", 0) == bank and qmd.read(made, "CONSTANT_BUFFER_VALID", 0) == 1
  constants = bytes(runtime.kernargs.memory[at + program.bank_at:at + program.bank_at + program.bank_bytes])
  assert struct.unpack_from("<IIIIII", constants) == (64, 1, 1, 3, 2, 1)
  assert struct.unpack_from("<QQ", constants, 0x18) == (SHARED_WINDOW, LOCAL_WINDOW)
  assert struct.unpack_from("<QI", constants, arch.bank0.params) == (out.address, 77)
  entry = gpfifo.decode(int(ring._entries[ring._entry - 1]))
  assert isinstance(entry, gpfifo.Segment) and entry.dwords == len(words)


@pytest.mark.parametrize("name", ["sm_80", "sm_90", "sm_120"])
def test_patches_write_what_the_declaration_writes(name: str) -> None:
  arch = nv_arch(name)
  for version, declaration in qmd.versions(arch.compute_class).items():
    for field, index, value in (("GRID_WIDTH", None, 0x12345), ("GRID_HEIGHT", None, 77),
                                ("CONSTANT_BUFFER_ADDR", 0, 0x123456789_0C0),
                                ("PROGRAM_ADDRESS", None, 0x7F12345680)):
      whole = qmd.new(arch.compute_class, version)
      words = array("I", whole.encode())
      store(words, patches(declaration, field, index), value)
      qmd.write(whole, field, value, index)
      assert words.tolist() == whole.encode(), (version, field)


def test_shared_memory_of_an_sm() -> None:
  arch = nv_arch("sm_90")
  assert [shared_config(arch, n) for n in (0, 8192, 8193, 100 << 10, 228 << 10)] == [3, 3, 5, 26, 58]
  assert [shared_config(arch, 50 << 10, n) for n in (1, 2, 4, 5, 32)] == [17, 26, 58, 58, 58]  # it has room for four


# What CUDA's driver puts into QMDs on an H200 (580.159.04): threads, registers, bytes of a block, MIN_SM_CONFIG.
@pytest.mark.parametrize(("threads", "registers", "nbytes", "config"), [(576, 16, 0x1100, 5), (33, 16, 0x400, 9)])
def test_shared_memory_of_all_blocks_that_an_sm_has(threads: int, registers: int, nbytes: int, config: int) -> None:
  arch = nv_arch("sm_90")
  assert shared_config(arch, nbytes, resident(arch, threads, registers)) == config


@pytest.mark.parametrize(("name", "threads", "registers", "blocks"), [
  ("sm_80", 1024, 16, 2), ("sm_80", 32, 16, 32), ("sm_86", 32, 16, 16), ("sm_86", 1024, 16, 1), ("sm_89", 32, 32, 24),
  ("sm_90", 128, 196, 2), ("sm_90", 256, 128, 2), ("sm_90", 1024, 64, 1), ("sm_90", 96, 255, 2), ("sm_90", 1, 0, 32)])
def test_blocks_of_an_sm(name: str, threads: int, registers: int, blocks: int) -> None:
  """As CUDA's occupancy calculator counts them."""
  assert resident(nv_arch(name), threads, registers) == blocks


def test_refusals_have_words(machine: NvMachine, port: RecordingPort) -> None:
  with pytest.raises(DeviceError, match="no GPU 1: this machine has 1"): NVRuntime(port, 1)
  found = Rm.of(port)
  with pytest.raises(DeviceError, match=r"NV_ESC_RM_ALLOC of AMPERE_COMPUTE_A failed: NV_ERR_INVALID_OBJECT_PARENT"):
    found.alloc(found.root, alloc.AMPERE_COMPUTE_A)
  with pytest.raises(DeviceError, match="UVM_FREE failed: NV_ERR_"):
    found.uvm(nv_uvm.UVM_FREE, nv_uvm.UVM_FREE_PARAMS(base=0x1000))
  with pytest.raises(Unsupported, match="this driver runs sm_80"): arch_of(0x705, "GeForce RTX 2080")
  assert arch_of(0x806, "").name == "sm_86" and arch_of(0xC00, "").name == "sm_120"
  assert arch_of(0xA04, "").name == "sm_120" and arch_of(0xA00, "").name == "sm_100"
  with pytest.raises(EncodeError, match="does not fit 2 bits"): rm.flags(NVOS32_ATTR_LOCATION=4)
  with pytest.raises(EncodeError, match="no such range"): rm.flags(NVOS32_NOTHING=1)


def test_another_driver_is_refused(machine: NvMachine, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(machine.rm, "version", "535.230.02")
  with pytest.raises(Unsupported, match=r"driver.*535\.230\.02"): NVRuntime(RecordingPort(machine))


def test_calls_as_text(port: RecordingPort, runtime: NVRuntime) -> None:
  argument, inner = row(port, "NV2080_CTRL_CMD_GPU_GET_GID_INFO")
  line = rm.text(rm.request(type(argument)), argument, 0, inner)
  assert line.startswith("NV_ESC_RM_CONTROL NV2080_CTRL_CMD_GPU_GET_GID_INFO(NVOS54_PARAMETERS(hClient=0x")
  assert "NV2080_CTRL_GPU_GET_GID_INFO_PARAMS(index=0, flags=2" in line and line.endswith(" = 0")
  argument.status = 0x1F
  assert "[NV_ERR_INVALID_ARGUMENT]" in rm.text(rm.request(type(argument)), argument)
  mapped, _ = row(port, "UVM_CREATE_EXTERNAL_RANGE")
  assert uvm.text(nv_uvm.UVM_CREATE_EXTERNAL_RANGE, mapped).startswith("UVM_CREATE_EXTERNAL_RANGE(UVM_CREATE_EXTERNAL")
  assert rm.name(0xC00846FE) == "_IOWR('F', 0xfe, 8 bytes)" and uvm.name(999) == "UVM call 0x3e7"
  assert uvm.uuid_text(bytes(range(16))) == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
  assert rm.class_name(0xCBC0) == "HOPPER_COMPUTE_A" and rm.class_name(0x1234) == "0x1234"
  assert rm.error_name(31) == "ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT" and rm.status_name(0) == "NV_OK"
  assert control.CONTROLS[control.NV2080_CTRL_CMD_GR_GET_INFO].name == "NV2080_CTRL_CMD_GR_GET_INFO"
