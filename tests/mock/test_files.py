"""Topology, render nodes and the machine as a whole."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import threading

import pytest

from tests.mock.client import Client
from tinyhw.autogen import amdgpu_drm as drm
from tinyhw.autogen import kfd, kfd_sysfs
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.mock.amd.card import GFX1100
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort

ROOT = "/sys/devices/virtual/kfd/kfd/topology"


def properties(port: MockPort, path: str) -> dict[str, int]:
  rows = (line.split() for line in port.read(path).decode().splitlines())
  return {name: int(value) for name, value in rows}


def test_the_topology_has_the_kernels_property_names_in_their_order() -> None:
  port = MockPort(Machine("gfx1100,gfx1100"))
  assert port.listdir(f"{ROOT}/nodes") == ["0", "1", "2"]
  node = properties(port, f"{ROOT}/nodes/1/properties")
  assert list(node) == [name for name, _ in kfd_sysfs.NODE_PROPERTIES]
  assert list(properties(port, f"{ROOT}/nodes/1/mem_banks/0/properties")) == [
    name for name, _ in kfd_sysfs.MEM_PROPERTIES
  ]
  assert list(properties(port, f"{ROOT}/nodes/1/io_links/0/properties")) == [
    name for name, _ in kfd_sysfs.IO_LINK_PROPERTIES
  ]
  cache = port.read(f"{ROOT}/nodes/1/caches/0/properties").decode().split()[::2]
  assert cache == [name for name, _ in kfd_sysfs.CACHE_PROPERTIES]
  assert node["gfx_target_version"] == 110000 and node["simd_count"] == 2 * GFX1100.compute_units == 192


def test_counts_agree_with_the_folders() -> None:
  port = MockPort(Machine("gfx1100,gfx1100"))
  for node in port.listdir(f"{ROOT}/nodes"):
    found = properties(port, f"{ROOT}/nodes/{node}/properties")
    for folder in ("mem_banks", "caches", "io_links", "p2p_links"):
      assert found[f"{folder}_count"] == len(port.listdir(f"{ROOT}/nodes/{node}/{folder}")), (node, folder)
    identity = int(port.read(f"{ROOT}/nodes/{node}/gpu_id"))
    assert bool(identity) == bool(found["simd_count"])


def test_ids_are_distinct_and_stable() -> None:
  ids = [g.gpu_id for g in Machine("gfx1100,gfx1100,gfx1100").gpus]
  assert len(set(ids)) == 3 and ids == [g.gpu_id for g in Machine("gfx1100,gfx1100,gfx1100").gpus]


def test_paths_that_are_not_there() -> None:
  port = MockPort(Machine())
  for path, code in ((f"{ROOT}/nodes/7/properties", errno.ENOENT), (f"{ROOT}/nodes", errno.EISDIR)):
    with pytest.raises(OSError) as refused:
      port.read(path)
    assert refused.value.errno == code
  with pytest.raises(NotADirectoryError):
    port.listdir(f"{ROOT}/generation_id")
  for path in ("/dev/nvidiactl", "/dev/dri/renderD129", "/etc/passwd"):
    with pytest.raises(FileNotFoundError):
      port.open(path)
  assert port.read("/sys/class/kfd/kfd/topology/generation_id") == port.read(f"{ROOT}/generation_id")


def test_the_render_node_tells_the_chip() -> None:
  client = Client()

  def info(query: int, size: int = 512) -> bytes:
    room = (ctypes.c_uint8 * size)()
    request = drm.drm_amdgpu_info(return_pointer=ctypes.addressof(room), return_size=size, query=query)
    client.port.ioctl(client.render[0], drm.DRM_IOCTL_AMDGPU_INFO, request)
    return bytes(room)

  device = drm.drm_amdgpu_info_device.from_buffer_copy(info(drm.AMDGPU_INFO_DEV_INFO))
  assert device.gpu_counter_freq == 100_000 and device.family == drm.AMDGPU_FAMILY_GC_11_0_0
  memory = drm.drm_amdgpu_memory_info.from_buffer_copy(info(drm.AMDGPU_INFO_MEMORY))
  assert memory.vram.total_heap_size == client.machine.gpus[0].vram.size
  assert info(drm.AMDGPU_INFO_ACCEL_WORKING, 4) == b"\1\0\0\0"
  with pytest.raises(OSError) as refused:
    info(0x4242)
  assert refused.value.errno == errno.EINVAL
  with pytest.raises(OSError) as refused:
    client.port.ioctl(client.render[0], drm.DRM_IOCTL_AMDGPU_CS, drm.drm_amdgpu_cs())
  assert refused.value.errno == errno.EOPNOTSUPP and "AMDGPU_CS" in str(client.machine.report())


def test_one_thread_waits_for_another() -> None:
  """A wait without end is not called hopeless while another thread of the client can end it."""
  client = Client()
  event = client.event()
  client.machine.note_thread()
  ready, results = threading.Event(), []

  def waiter() -> None:
    client.machine.note_thread()
    ready.set()
    results.append(client.wait_events([event.event_id], timeout=0xFFFF_FFFF)[0])

  thread = threading.Thread(target=waiter)
  thread.start()
  ready.wait()
  client.call("SET_EVENT", event_id=event.event_id)
  thread.join(10)
  assert results == [kfd.KFD_IOC_WAIT_RESULT_COMPLETE]


def test_a_closed_file_is_gone_and_nothing_leaks() -> None:
  def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))

  def use() -> None:
    client = Client()
    client.queue().submit(p4.NOP(payload=()))
    client.run()
    client.port.close(client.fd)
    with pytest.raises(OSError):
      client.call("GET_VERSION")
    client.machine.close()

  use()
  gc.collect()
  before = descriptors()
  for _ in range(5):
    use()
  gc.collect()
  assert descriptors() <= before
