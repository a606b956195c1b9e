"""What cards are, as NVIDIA publishes it, and small things that engines and files tell."""
from __future__ import annotations

from typing import Any

import pytest

from tests.mock.nv.bench import COMPUTE, COPY, FAR, Bench, launch_qmd, semaphore
from tests.mock.nv.client import REQUESTS, Client
from tests.mock.nv.test_compute import CLUSTER, Compute
from tests.mock.nv.test_copy import PITCH, TRANSFER, addresses, ce, filled
from tests.mock.nv.test_rm import refused
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_status as status
from tinyhw.mock.memory import Refused
from tinyhw.mock.nv.card import CARDS
from tinyhw.mock.nv.chip.channel import State
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import methods

# Of NVIDIA's architecture white papers and data sheets: SMs, GPCs and the TPCs of a whole one, GiB of memory (of the
# H200's 141 GB RM tells 140.4), the boost clock in MHz, GB/s, bits of the bus, KiB of level 2; of the PCI ID
# repository: the device.
PUBLISHED = {
  "sm_80": (108, 7, 8, 80, 1410, 2039, 5120, 40960, 0x20B2), "sm_86": (82, 7, 6, 24, 1695, 936, 384, 6144, 0x2204),
  "sm_89": (128, 11, 6, 24, 2520, 1008, 384, 73728, 0x2684),
  "sm_90": (132, 8, 9, 140, 1980, 4917, 6144, 61440, 0x2335),
  "sm_100": (148, 8, 10, 180, 1965, 7672, 7680, 129536, 0x2901),
  "sm_120": (170, 12, 8, 32, 2407, 1792, 512, 98304, 0x2B85)}


@pytest.mark.parametrize("name", CARDS)
def test_cards_have_what_is_published(name: str) -> None:
  c = CARDS[name]
  assert (c.sms, c.gpcs, c.tpcs_a_gpc, c.vram_size >> 30, c.clock_mhz, c.bandwidth, c.bus_bits,
          c.l2_size >> 10, c.device_id) == PUBLISHED[name]
  assert c.sms <= 2 * c.gpcs * c.tpcs_a_gpc and c.vram_size % (1 << 16) == 0 == c.l2_size % 1024
  assert abs(c.memory_khz * 2000 * c.bus_bits / 8 / 1e9 - c.bandwidth) < 1


def test_a_dead_channel_says_when() -> None:
  """In two words of its notifier; and a channel counts what it was sent."""
  b = Bench()
  c = b.channel()
  b.machine.clock.advance(5 << 32)
  before = b.gpu.timer()
  b.send(c, 0, host.WFI(), host.SET_REFERENCE(COUNT=7))
  assert c.snapshot()["packets"] == 2
  b.send(c, 0, host.SEMAPHORED(OPERATION=3))
  told = b.told(c)
  words = [getattr(told, name) for name, *_ in type(told)._fields_[:2]]
  assert c.state is State.DEAD and before < words[0] | words[1] << 32 <= b.gpu.timer()


def test_components_that_stay_are_not_read_where_nothing_may_be_written() -> None:
  b = Bench()
  c = b.channel("copy")
  b.send(c, COPY, *addresses(filled(b, 64), FAR), ce.LINE_LENGTH_IN(VALUE=4),
         ce.SET_REMAP_COMPONENTS(COMPONENT_SIZE=0, NUM_SRC_COMPONENTS=0, NUM_DST_COMPONENTS=0, DST_X=6),
         ce.LAUNCH_DMA(DATA_TRANSFER_TYPE=TRANSFER.NON_PIPELINED, REMAP_ENABLE=1, **PITCH))
  assert c.state is State.DEAD and "write" in str(c.error)


@pytest.mark.parametrize("blocks", [1, 16])
def test_the_largest_cluster(blocks: int) -> None:
  b = Compute()
  c, data = b.channel(), b.take(256)
  b.pcas(c, launch_qmd(b, b.load(CLUSTER, "k"), version=(4, 0), grid=(16 // blocks, 1, 1), block=(1, 1, 1),
                       bank=b.bank(data), QMD_TYPE=3, GPC_CGA_WIDTH=blocks, GPC_CGA_HEIGHT=1, GPC_CGA_DEPTH=1))
  b.run()
  assert [b.space.load(data + 4 * i, 4) for i in range(16)] == [16 * blocks + i % blocks for i in range(16)]


def test_files_that_are_waited_for() -> None:
  c = Client()
  for name, tells in (("/dev/nvidiactl", True), ("/dev/nvidia0", True), ("/dev/nvidia-uvm", False)):
    fd = c.port.open(name)
    if tells: assert not c.port.poll(fd, 0.0)
    else:
      with pytest.raises(Refused): c.port.poll(fd, 0.0)


# ---- calls of RM that drivers seldom make

def call(c: Client, argument: Any, fd: int | None = None) -> Any:
  c.port.ioctl(c.ctl if fd is None else fd, REQUESTS[type(argument)], argument)
  return argument


def test_what_a_file_is_told() -> None:
  c = Client()
  assert call(c, rm.nv_ioctl_sys_params_t(memblock_size=9)).memblock_size == 0
  told = call(c, rm.nv_ioctl_wait_open_complete_t(rc=9, adapterStatus=9), c.gpu_fd)
  assert (told.rc, told.adapterStatus) == (0, status.NV_OK)


def test_a_channel_is_idle_or_not() -> None:
  c = Client()
  w, free = c.channel(), c.channel()
  memory, view = c.both(4096)
  def idle(channel: int) -> None: c.call(rm.NVOS30_PARAMETERS(hClient=c.root, hDevice=c.device, hChannel=channel))
  idle(free.handle)
  w.send(0, *semaphore(memory, 5), host.SEM_EXECUTE(OPERATION=host.SEM_EXECUTE_OPERATION.ACQUIRE))
  refused(status.NV_ERR_TIMEOUT, idle, w.handle)
  idle(free.handle)
  view[0] = 5
  c.port.wait(lambda: False, 0.0)
  idle(w.handle)


def test_the_older_way_to_memory() -> None:
  """System memory by NV_ESC_RM_ALLOC_MEMORY, and what it refuses."""
  c = Client()
  def made(limit: int = 8191, parent: int | None = None, kind: int = alloc.NV01_MEMORY_SYSTEM) -> Any:
    p = rm.nv_ioctl_nvos02_parameters_with_fd(fd=-1)
    p.params = rm.NVOS02_PARAMETERS(hRoot=c.root, hObjectParent=c.device if parent is None else parent, hClass=kind,
                                    limit=limit)
    return c.call(p, c.gpu_fd).params
  free = c.machine.system_allocator.free_bytes
  told = made(5000)
  assert told.limit == 8191 and c.machine.system_allocator.free_bytes == free - 8192
  c.free(told.hObjectNew)
  assert c.machine.system_allocator.free_bytes == free
  refused(status.NV_ERR_INVALID_OBJECT_PARENT, made, parent=c.subdevice)
  refused(status.NV_ERR_NOT_SUPPORTED, made, kind=alloc.NV01_MEMORY_LOCAL_USER)


def test_a_devices_own_address_space() -> None:
  """The same for each object that asks for it; of another device another one."""
  c = Client(NvMachine("sm_90,sm_90", vram=64 << 20, system_memory=64 << 20))
  own = alloc.NV_VASPACE_ALLOCATION_PARAMETERS(index=alloc.NV_VASPACE_ALLOCATION_INDEX_GPU_DEVICE)
  spaces = [c.alloc(c.device, 0, alloc.FERMI_VASPACE_A, own) for _ in range(2)]
  objects = c.machine.rm.clients[c.root].objects
  assert objects[spaces[0]].data is objects[spaces[1]].data is not objects[c.va].data
  own.index = 5
  refused(status.NV_ERR_NOT_SUPPORTED, c.alloc, c.device, 0, alloc.FERMI_VASPACE_A, own)
  refused(status.NV_ERR_INVALID_DEVICE, c.alloc, c.root, 0, alloc.NV01_DEVICE_0,
          alloc.NV0080_ALLOC_PARAMETERS(deviceId=2))
  refused(status.NV_ERR_INVALID_ARGUMENT, c.alloc, c.device, 0, alloc.NV20_SUBDEVICE_0,
          alloc.NV2080_ALLOC_PARAMETERS(subDeviceId=1))


@pytest.mark.parametrize("lines", [1, 2])
def test_lines_of_inline_data_have_a_pitch(lines: int) -> None:
  b = Bench()
  c, at = b.channel(), b.take(64)
  m = methods.declared(b.gpu.card.compute_class)
  b.send(c, COMPUTE, m.OFFSET_OUT_UPPER(VALUE=at >> 32), m.OFFSET_OUT(VALUE=at & 0xFFFF_FFFF),
         m.LINE_LENGTH_IN(VALUE=4), m.LINE_COUNT(VALUE=lines),
         m.LAUNCH_DMA(DST_MEMORY_LAYOUT=m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH))
  assert (c.state is State.DEAD) == (lines > 1) and (lines == 1 or "PITCH_OUT" in str(c.error))
