"""gfx1151 as a card: an APU of RDNA3.5, whose video memory is the system's."""
from __future__ import annotations

import errno
from collections.abc import Iterator

import numpy as np
import pytest

from tests.mock.client import VRAM, Client
from tinyhw import Device, Tensor
from tinyhw.autogen import amdgpu_drm as drm
from tinyhw.autogen import kfd
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.mock.amd.card import GFX1100, GFX1103, GFX1150, GFX1151
from tinyhw.mock.amd.driver import drm as node
from tinyhw.mock.amd.machine import Machine

SYSTEM = 1 << 30


@pytest.fixture
def client() -> Iterator[Client]:
  machine = Machine("gfx1151,gfx1100", system_memory=SYSTEM)
  yield Client(machine)
  machine.close()


def info(machine: Machine, index: int = 0) -> drm.drm_amdgpu_info_device:
  return drm.drm_amdgpu_info_device.from_buffer_copy(node.device(machine.gpus[index], None))


def test_its_code_has_scalar_floats(monkeypatch: pytest.MonkeyPatch) -> None:
  """What gfx1100 lacks (RDNA3.5 ISA manual): it runs by its own instruction table."""
  monkeypatch.setenv("MOCKGPU", "gfx1151")
  Device.close()
  try:
    x = np.arange(7, dtype=np.float32)
    assert (Tensor(x, device="AMD") * 2 + 1).tolist() == (x * 2 + 1).tolist()
    runtime = Device["AMD"].runtime
    assert isinstance(runtime, AMDRuntime) and runtime.arch.table == "gfx1150" and runtime.arch.registers == "gc_11_5_0"
    assert runtime.describe().startswith("gfx1151, 40 CUs, 65,536 MiB")
  finally: Device.close()


def test_kfd_tells_the_systems_memory_and_drm_its_own(client: Client) -> None:
  """Linux 6.12 amdgpu_amdkfd_get_local_mem_info and amdgpu_kms.c."""
  machine = client.machine
  bank = machine.files.read("/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties").decode()
  assert f"size_in_bytes {SYSTEM}\n" in bank and "heap_type 1\n" in bank
  own = machine.files.read("/sys/class/drm/renderD128/device/mem_info_vram_total")
  assert own == b"%d\n" % (512 << 20)
  assert info(machine).ids_flags & drm.AMDGPU_IDS_FLAGS_FUSION and not info(machine, 1).ids_flags
  assert machine.gpus[0].gpu_id != Machine("gfx1151", system_memory=2 * SYSTEM).gpus[0].gpu_id


def test_video_memory_is_the_systems(client: Client) -> None:
  """alloc_memory_of_gpu puts it into AMDGPU_GEM_DOMAIN_GTT, and counts it twice: as the system's and as the APU's. What
  a dma-buf keeps alive stays counted."""
  machine = client.machine
  free, apu = machine.system_allocator.free_bytes, client.gpu_ids[0]
  def available() -> int: return int(client.call("AVAILABLE_MEMORY", gpu_id=apu).available)
  before = available()
  memory = client.alloc(8 << 20, VRAM)
  memory.view[:4] = b"apu!"
  assert machine.system_allocator.free_bytes == free - (8 << 20)
  assert machine.gpus[0].vram_allocator.free_bytes == GFX1151.vram_size
  assert available() == before - (8 << 20)
  assert client.errno("ALLOC_MEMORY_OF_GPU", va_addr=1 << 40, size=SYSTEM - (8 << 20), gpu_id=apu,
                      flags=VRAM) == errno.ENOMEM
  fd = client.call("EXPORT_DMABUF", handle=memory.handle).dmabuf_fd
  told = client.call("GET_DMABUF_INFO", dmabuf_fd=fd)
  assert told.size == 8 << 20 and told.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT
  client.unmap(memory.handle, [0])
  client.call("FREE_MEMORY_OF_GPU", handle=memory.handle)
  assert available() == before - (8 << 20)
  client.port.close(fd)
  assert available() == before and machine.system_allocator.free_bytes == free


def test_families_and_revisions() -> None:
  """amdgpu_discovery.c and soc21.c."""
  machine = Machine("gfx1100,gfx1101,gfx1103,gfx1150,gfx1151,gfx942")
  told = [(i.family, i.external_rev) for i in (info(machine, n) for n in range(6))]
  assert told == [(drm.AMDGPU_FAMILY_GC_11_0_0, 1), (drm.AMDGPU_FAMILY_GC_11_0_0, 0x20),
                  (drm.AMDGPU_FAMILY_GC_11_0_1, 1), (drm.AMDGPU_FAMILY_GC_11_5_0, 1),
                  (drm.AMDGPU_FAMILY_GC_11_5_0, 0xC1), (drm.AMDGPU_FAMILY_AI, 0x47)]
  assert [c.apu for c in (GFX1100, GFX1103, GFX1150, GFX1151)] == [False, True, True, True]
  assert info(machine, 2).mall_size == 0 and info(machine, 4).mall_size == 32 << 20
