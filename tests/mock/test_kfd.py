"""The kernel driver's refusals: what Linux answers, the mock answers, with the same errno."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Iterator

import pytest

from tests.mock.client import CACHED_GTT, FLAGS, GTT, READ_ONLY, USERPTR, VRAM, Client
from tinyhw.autogen import kfd
from tinyhw.core.errors import InvalidArgument, PageFault, Unsupported
from tinyhw.core.port import Port
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.port.end()


def test_the_port_is_a_port() -> None:
  assert isinstance(MockPort(Machine()), Port)


def test_version_is_the_generated_one(client: Client) -> None:
  version = client.call("GET_VERSION")
  assert (version.major_version, version.minor_version) == (kfd.KFD_IOCTL_MAJOR_VERSION, kfd.KFD_IOCTL_MINOR_VERSION)


def test_numbers_out_of_range_are_enotty_and_bad_files_ebadf(client: Client) -> None:
  for request in (0xC008_4B00, 0xC008_4B27, 0xC008_4BFF):
    with pytest.raises(OSError) as refused:
      client.port.ioctl(client.fd, request, kfd.kfd_ioctl_get_version_args())
    assert refused.value.errno == errno.ENOTTY
  with pytest.raises(OSError) as refused:
    client.port.ioctl(987, kfd.AMDKFD_IOC_GET_VERSION, kfd.kfd_ioctl_get_version_args())
  assert refused.value.errno == errno.EBADF
  assert any(e.kind == "refused" for e in client.machine.trace)


def test_a_shorter_struct_is_extended_and_a_missing_one_is_efault(client: Client) -> None:
  """kfd_ioctl copies as many bytes as the request names, and zeros behind them."""
  half = (ctypes.c_uint8 * 4)()
  client.port.ioctl(client.fd, 0x8004_4B01, half)
  assert bytes(half) == kfd.KFD_IOCTL_MAJOR_VERSION.to_bytes(4, "little")
  with pytest.raises(OSError) as refused:
    client.port.ioctl(client.fd, kfd.AMDKFD_IOC_GET_VERSION, half)
  assert refused.value.errno == errno.EFAULT


def test_every_ioctl_of_the_uapi_is_answered(client: Client) -> None:
  """No call ends in a Python error: each works or has an errno."""
  for request, call in kfd.IOCTLS.items():
    assert call.struct is not None
    try:
      client.port.ioctl(client.fd, request, call.struct())
    except OSError as refused:
      assert refused.errno


def test_what_has_no_support_is_refused_as_in_a_kernel_without_it(client: Client) -> None:
  assert client.errno("SVM") == errno.EPERM
  assert client.errno("DBG_REGISTER_DEPRECATED") == errno.EPERM
  assert client.errno("CRIU_OP") == errno.EACCES
  assert client.errno("SMI_EVENTS", gpuid=client.gpu_ids[0]) == errno.EOPNOTSUPP
  assert any("SMI_EVENTS" in line for line in client.machine.report())


def test_a_forked_child_gets_ebadf(client: Client) -> None:
  child = os.fork()
  if not child:
    try:
      client.call("GET_VERSION")
    except OSError as refused:
      os._exit(refused.errno or 1)
    os._exit(0)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == errno.EBADF


# ---- address spaces and settings


def test_memory_needs_an_address_space_first() -> None:
  client = Client(acquire=False)
  gpu = client.gpu_ids[0]
  assert client.errno("ALLOC_MEMORY_OF_GPU", va_addr=1 << 20, size=4096, gpu_id=gpu, flags=VRAM | FLAGS) == errno.ENODEV
  assert client.errno("SET_SCRATCH_BACKING_VA", va_addr=1 << 20, gpu_id=gpu) == errno.ENODEV
  assert client.errno("SET_TRAP_HANDLER", gpu_id=gpu) == errno.ESRCH
  assert client.errno("SET_MEMORY_POLICY", gpu_id=gpu) == errno.ESRCH
  assert client.errno("CREATE_QUEUE", gpu_id=gpu) == errno.ESRCH


def test_acquire_vm() -> None:
  client = Client(Machine("gfx1100,gfx1100"), acquire=False)
  first, second = client.gpu_ids
  assert client.errno("ACQUIRE_VM", drm_fd=9999, gpu_id=first) == errno.EINVAL
  assert client.errno("ACQUIRE_VM", drm_fd=client.render[0], gpu_id=1) == errno.EINVAL
  assert client.errno("ACQUIRE_VM", drm_fd=client.fd, gpu_id=first) == errno.EINVAL
  assert client.errno("ACQUIRE_VM", drm_fd=client.render[0], gpu_id=first) == 0
  assert client.errno("ACQUIRE_VM", drm_fd=client.render[0], gpu_id=first) == 0  # the same file again is fine
  other = client.port.open("/dev/dri/renderD128")
  assert client.errno("ACQUIRE_VM", drm_fd=other, gpu_id=first) == errno.EBUSY
  assert client.errno("ACQUIRE_VM", drm_fd=client.render[0], gpu_id=second) == errno.EINVAL


def test_apertures(client: Client) -> None:
  assert client.call("GET_PROCESS_APERTURES_NEW").num_of_nodes == 1
  assert client.errno("GET_PROCESS_APERTURES_NEW", num_of_nodes=5) == errno.EINVAL
  assert client.errno("GET_PROCESS_APERTURES_NEW", num_of_nodes=1) == errno.EFAULT
  room = (kfd.kfd_process_device_apertures * 1)()
  client.call("GET_PROCESS_APERTURES_NEW", num_of_nodes=1, kfd_process_device_apertures_ptr=ctypes.addressof(room))
  assert room[0].gpu_id == client.gpu_ids[0] and room[0].lds_base >> 32 and room[0].gpuvm_limit == (1 << 47) - 1
  assert client.call("GET_PROCESS_APERTURES").process_apertures[0].gpu_id == client.gpu_ids[0]


def test_settings(client: Client) -> None:
  gpu = client.gpu_ids[0]
  assert client.errno("SET_MEMORY_POLICY", gpu_id=gpu, default_policy=2) == errno.EINVAL
  assert client.errno("SET_MEMORY_POLICY", gpu_id=gpu) == 0
  assert client.call("SET_XNACK_MODE", xnack_enabled=-1).xnack_enabled == 0
  assert client.errno("SET_XNACK_MODE", xnack_enabled=1) == errno.EPERM
  assert client.errno("SET_XNACK_MODE", xnack_enabled=0) == 0
  assert client.errno("RUNTIME_ENABLE", mode_mask=kfd.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK) == 0
  assert client.errno("RUNTIME_ENABLE", mode_mask=kfd.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK) == errno.EBUSY
  client.queue()
  assert client.errno("SET_XNACK_MODE", xnack_enabled=0) == errno.EBUSY
  assert any("SET_MEMORY_POLICY" in line for line in client.machine.report())


def test_clocks_only_grow(client: Client) -> None:
  one, two = (client.call("GET_CLOCK_COUNTERS", gpu_id=client.gpu_ids[0]) for _ in range(2))
  assert two.gpu_clock_counter >= one.gpu_clock_counter and two.system_clock_counter > one.system_clock_counter
  assert client.call("GET_CLOCK_COUNTERS", gpu_id=0).gpu_clock_counter == 0


# ---- memory


def test_allocations_are_zero_shared_and_counted(client: Client) -> None:
  before = client.call("AVAILABLE_MEMORY", gpu_id=client.gpu_ids[0]).available
  memory = client.alloc(8 << 20, VRAM)
  assert client.call("AVAILABLE_MEMORY", gpu_id=client.gpu_ids[0]).available == before - (8 << 20)
  space = client.machine.kfd.processes[os.getpid()].devices[client.gpu_ids[0]].bind()
  memory.u32[5] = 77
  assert space.load(memory.address + 20, 4) == 77
  space.store(memory.address + 24, 4, 88)
  assert memory.u32[6] == 88
  client.unmap(memory.handle, [0])
  client.call("FREE_MEMORY_OF_GPU", handle=memory.handle)
  assert client.call("AVAILABLE_MEMORY", gpu_id=client.gpu_ids[0]).available == before
  assert client.alloc(8 << 20, VRAM).u32[5] == 0  # wiped on release


@pytest.mark.parametrize(
  ("values", "code"),
  [
    ({"size": 0}, errno.EINVAL),
    ({"gpu_id": 1}, errno.EINVAL),
    ({"flags": FLAGS}, errno.EINVAL),
    ({"flags": USERPTR | FLAGS}, errno.EINVAL),
    ({"flags": USERPTR | FLAGS, "mmap_offset": 0x1000}, errno.EFAULT),
    ({"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL}, errno.EINVAL),
    ({"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP, "size": 8192}, errno.EINVAL),
    ({"size": 1 << 40}, errno.ENOMEM),
    ({"size": 1 << 40, "flags": GTT | FLAGS}, errno.ENOMEM),
    ({"size": 1, "flags": GTT | FLAGS | kfd.KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM}, errno.EINVAL),
  ],
)
def test_refused_allocations(client: Client, values: dict[str, int], code: int) -> None:
  good = {"va_addr": 1 << 30, "size": 4096, "gpu_id": client.gpu_ids[0], "flags": VRAM | FLAGS}
  assert client.errno("ALLOC_MEMORY_OF_GPU", **(good | values)) == code


def test_memory_ends_at_the_cards_size() -> None:
  client = Client(Machine(vram=64 << 20))
  client.alloc(32 << 20, VRAM)
  assert (
    client.errno("ALLOC_MEMORY_OF_GPU", va_addr=1 << 40, size=32 << 20, gpu_id=client.gpu_ids[0], flags=VRAM | FLAGS)
    == errno.ENOMEM
  )


def test_refused_mappings(client: Client) -> None:
  def allocated(address: int, size: int = 8192) -> int:

    return int(
      client.call(
        "ALLOC_MEMORY_OF_GPU", va_addr=address, size=size, gpu_id=client.gpu_ids[0], flags=VRAM | FLAGS
      ).handle
    )

  def mapped(handle: int, **values: int) -> int:
    ids = (ctypes.c_uint32 * 1)(client.gpu_ids[0])
    good = {"handle": handle, "device_ids_array_ptr": ctypes.addressof(ids), "n_devices": 1}
    return client.errno("MAP_MEMORY_TO_GPU", **(good | values))

  handle = allocated(1 << 30)
  assert mapped(handle, n_devices=0) == errno.EINVAL
  assert mapped(handle, n_success=2) == errno.EINVAL
  assert mapped(handle, device_ids_array_ptr=16) == errno.EFAULT
  assert mapped(handle + 7) == errno.ENOMEM
  assert mapped(5) == errno.EINVAL  # no such GPU in the handle
  wrong = (ctypes.c_uint32 * 1)(3)
  assert mapped(handle, device_ids_array_ptr=ctypes.addressof(wrong)) == errno.EINVAL
  assert mapped(handle) == 0 and mapped(handle) == 0  # again is fine
  assert mapped(allocated((1 << 30) + 4096)) == errno.EINVAL  # overlap
  assert mapped(allocated(0)) == errno.EINVAL
  assert mapped(allocated((1 << 31) + 8)) == errno.EINVAL
  assert mapped(allocated(1 << 48)) == errno.EINVAL
  assert client.errno("FREE_MEMORY_OF_GPU", handle=handle) == errno.EBUSY
  client.unmap(handle, [0])
  with pytest.raises(OSError) as refused:
    client.unmap(handle, [0])
  assert refused.value.errno == errno.EINVAL
  assert client.errno("FREE_MEMORY_OF_GPU", handle=handle) == 0
  assert client.errno("FREE_MEMORY_OF_GPU", handle=handle) == errno.EINVAL


def test_n_success_counts_the_gpus_done() -> None:
  client = Client(Machine("gfx1100,gfx1100"))
  memory = client.alloc(4096, GTT, map_to=[0])
  ids = (ctypes.c_uint32 * 3)(client.gpu_ids[0], client.gpu_ids[1], 1)
  argument = kfd.kfd_ioctl_map_memory_to_gpu_args(
    handle=memory.handle, device_ids_array_ptr=ctypes.addressof(ids), n_devices=3
  )
  with pytest.raises(OSError):
    client.port.ioctl(client.fd, kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU, argument)
  assert argument.n_success == 2


def test_user_pointers_share_this_processs_memory(client: Client) -> None:
  at = client.port.mmap(-1, 8192)
  a = client.call(
    "ALLOC_MEMORY_OF_GPU", va_addr=at, size=8192, gpu_id=client.gpu_ids[0], flags=USERPTR | FLAGS, mmap_offset=at
  )
  client.map(a.handle, [0])
  space = client.machine.kfd.processes[os.getpid()].devices[client.gpu_ids[0]].bind()
  space.store(at + 4, 4, 1234)
  assert client.port.memory(at, 8192).cast("I")[1] == 1234


def test_user_memory_that_is_unmapped_is_out_of_reach(client: Client) -> None:
  at = client.port.mmap(-1, 8192)
  flags = USERPTR | FLAGS
  a = client.call("ALLOC_MEMORY_OF_GPU", va_addr=at, size=8192, gpu_id=client.gpu_ids[0], flags=flags, mmap_offset=at)
  client.map(a.handle, [0])
  space = client.machine.kfd.processes[os.getpid()].devices[client.gpu_ids[0]].bind()
  assert space.load(at, 4) == 0
  client.port.munmap(at, 4096)
  with pytest.raises(PageFault):
    space.load(at, 4)
  client.unmap(a.handle, [0])
  client.call("FREE_MEMORY_OF_GPU", handle=a.handle)


def test_a_dmabuf_shares_memory_and_keeps_it_alive() -> None:
  client = Client(Machine("gfx1100,gfx1100"))
  free = client.machine.gpus[0].vram_allocator.free_bytes
  memory = client.alloc(8192, VRAM)
  fd = client.call("EXPORT_DMABUF", handle=memory.handle).dmabuf_fd
  info = client.call("GET_DMABUF_INFO", dmabuf_fd=fd)
  assert (info.size, info.gpu_id) == (8192, client.gpu_ids[0]) and info.flags & VRAM
  at = client.port.reserve(8192)
  other = client.call("IMPORT_DMABUF", va_addr=at, gpu_id=client.gpu_ids[1], dmabuf_fd=fd).handle
  client.map(other, [1])
  seen = client.port.memory(client.port.mmap(fd, 8192), 8192).cast("I")
  memory.u32[3] = 99
  space = client.machine.kfd.processes[os.getpid()].devices[client.gpu_ids[1]].bind()
  assert space.load(at + 12, 4) == seen[3] == 99
  client.unmap(memory.handle, [0])
  client.call("FREE_MEMORY_OF_GPU", handle=memory.handle)
  assert space.load(at + 12, 4) == 99  # two more hold it
  client.port.close(fd)
  client.unmap(other, [1])
  assert client.machine.gpus[0].vram_allocator.free_bytes == free - 8192
  client.call("FREE_MEMORY_OF_GPU", handle=other)
  assert client.machine.gpus[0].vram_allocator.free_bytes == free
  client.port.end()


@pytest.mark.parametrize("kind", [VRAM, CACHED_GTT])
@pytest.mark.parametrize("public", [0, kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC])
def test_what_a_dmabuf_says_of_its_memory(client: Client, kind: int, public: int) -> None:
  """kfd_ioctl_get_dmabuf_info: VRAM or CACHED_GTT, and whether the host sees it; nothing of the other flags."""
  flags = kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE & 0xFFFFFFFF | public
  at = client.port.reserve(8192)
  a = client.call("ALLOC_MEMORY_OF_GPU", va_addr=at, size=8192, gpu_id=client.gpu_ids[0], flags=kind | flags)
  fd = client.call("EXPORT_DMABUF", handle=a.handle).dmabuf_fd
  info = client.call("GET_DMABUF_INFO", dmabuf_fd=fd)
  assert info.flags == kind | public and info.size == 8192 and info.metadata_size == 0


def test_refused_dmabufs(client: Client) -> None:
  gpu = client.gpu_ids[0]
  assert client.errno("EXPORT_DMABUF", handle=gpu << 32 | 77) == errno.EINVAL
  assert client.errno("EXPORT_DMABUF", handle=77) == errno.EINVAL
  assert client.errno("GET_DMABUF_INFO", dmabuf_fd=4242) == errno.EBADF
  assert client.errno("IMPORT_DMABUF", gpu_id=gpu, dmabuf_fd=client.fd) == errno.EINVAL
  at = client.port.mmap(-1, 4096)
  flags = USERPTR | FLAGS
  a = client.call("ALLOC_MEMORY_OF_GPU", va_addr=at, size=4096, gpu_id=gpu, flags=flags, mmap_offset=at)
  assert client.errno("EXPORT_DMABUF", handle=a.handle) == errno.EPERM


def test_refused_mmaps(client: Client) -> None:
  memory = client.call("ALLOC_MEMORY_OF_GPU", va_addr=1 << 30, size=4096, gpu_id=client.gpu_ids[0], flags=VRAM | FLAGS)
  gpu = client.gpu_ids[0]
  other = client.port.open("/dev/dri/renderD128")
  for fd, length, offset, code in (
    (client.render[0], 8192, memory.mmap_offset, errno.EINVAL),
    (client.render[0], 4096, 0, errno.EINVAL),
    (client.render[0], 4096, memory.mmap_offset + 1, errno.EINVAL),
    (other, 4096, memory.mmap_offset, errno.EACCES),
    (client.fd, 4096, 3 << 62 | gpu << 46, errno.EINVAL),
    (client.fd, 8192, 3 << 62 | 1 << 46, errno.ENODEV),
    (client.fd, 4096, 2 << 62, errno.EINVAL),
    (client.fd, 8192, gpu << 46, errno.EINVAL),
    (client.fd, 4096, 1 << 62 | gpu << 46, errno.EFAULT),
    (4242, 4096, 0, errno.EBADF),
  ):
    with pytest.raises(OSError) as refused:
      client.port.mmap(fd, length, offset)
    assert refused.value.errno == code, (length, hex(offset))
  assert client.port.mmap(client.fd, 4096, gpu << 46)


def test_memory_of_the_client_is_checked(client: Client) -> None:
  memory = client.alloc(8192)
  with pytest.raises(InvalidArgument):
    client.port.memory(memory.address, 1 << 20)
  client.port.munmap(memory.address, 4096)
  with pytest.raises(InvalidArgument):
    client.port.memory(memory.address, 8192)
  client.port.memory(memory.address + 4096, 4096)
  with pytest.raises(InvalidArgument):
    client.port.doorbell(memory.address + 4096, 1)


# ---- queues


def test_gpus_have_no_more_of_the_systems_memory_than_there_is() -> None:
  """Memory of the client counts as that of the driver does, and no more when it is freed."""
  client, size = Client(Machine(system_memory=1 << 20)), 1 << 18
  pages = mmap.mmap(-1, 4 * size)
  start = ctypes.addressof(ctypes.c_char.from_buffer(pages))

  def more(user: bool) -> int:
    """The handle, or 0 where there is too little."""
    kind = {"flags": USERPTR | FLAGS, "mmap_offset": start} if user else {"flags": GTT | FLAGS}
    values = {"va_addr": client.port.reserve(size), "size": size, "gpu_id": client.gpu_ids[0]} | kind
    try:
      return int(client.call("ALLOC_MEMORY_OF_GPU", **values).handle)
    except OSError as refused:
      assert refused.errno == errno.ENOMEM
      return 0
  for order in ((True, True, True, True), (True, False, True, False), (False, False, True, True)):
    held = [more(user) for user in order]
    assert all(held) and not more(True)
    for handle in held:
      client.call("FREE_MEMORY_OF_GPU", handle=handle)
  client.port.end()


def test_a_good_queue_gets_a_doorbell(client: Client) -> None:
  first, copy, second = client.queue(), client.queue(copy=True), client.queue()
  assert [first.queue_id, copy.queue_id, second.queue_id] == [0, 1, 2]
  base = client.doorbells[0]
  assert [q.doorbell - base for q in (first, second)] == [0, 8]
  assert copy.doorbell - base in {0x100 * 8, 0x10A * 8, 0x300 * 8, 0x30A * 8, 0x101 * 8}


@pytest.mark.parametrize(
  ("values", "code"),
  [
    ({"queue_percentage": 101}, errno.EINVAL),
    ({"queue_priority": 16}, errno.EINVAL),
    ({"ring_size": 4097}, errno.EINVAL),
    ({"ring_base_address": 1 << 60}, errno.EFAULT),
    ({"read_pointer_address": 1 << 60}, errno.EFAULT),
    ({"queue_type": 9}, 524),
    ({"gpu_id": 2}, errno.EINVAL),
    ({"ring_base_address": 0x1000}, errno.EINVAL),
    ({"ring_size": 8192}, errno.EINVAL),
    ({"write_pointer_address": 0x5000}, errno.EINVAL),
    ({"eop_buffer_size": 16}, errno.EINVAL),
    ({"eop_buffer_size": 8192}, errno.EINVAL),
    ({"ctl_stack_size": 4096}, errno.EINVAL),
    ({"ctx_save_restore_size": 4096}, errno.EINVAL),
    ({"ctx_save_restore_address": 0}, errno.EINVAL),
    ({"queue_type": kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI}, errno.ENOMEM),
    ({"queue_type": kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID, "sdma_engine_id": 2}, errno.EINVAL),
  ],
)
def test_refused_queues(client: Client, values: dict[str, int], code: int) -> None:
  good, *_ = client.queue_arguments()
  assert client.errno("CREATE_QUEUE", **(good | values)) == code
  assert client.errno("CREATE_QUEUE", **good) == 0


def test_buffers_of_a_queue_stay(client: Client) -> None:
  queue = client.queue()
  with pytest.raises(OSError) as refused:
    client.unmap(queue.ring.handle, [0])
  assert refused.value.errno == errno.EBUSY
  assert client.errno("DESTROY_QUEUE", queue_id=queue.queue_id) == 0
  assert client.errno("DESTROY_QUEUE", queue_id=queue.queue_id) == errno.EINVAL
  client.unmap(queue.ring.handle, [0])


def test_copy_queues_run_out(client: Client) -> None:
  for _ in range(12):
    client.queue(copy=True)
  arguments, *_ = client.queue_arguments(copy=True)
  assert client.errno("CREATE_QUEUE", **arguments) == errno.ENOMEM
  client.call("DESTROY_QUEUE", queue_id=3)
  assert client.errno("CREATE_QUEUE", **arguments) == 0


def test_update_and_masks(client: Client) -> None:
  queue = client.queue()
  good = {
    "queue_id": queue.queue_id,
    "ring_base_address": queue.ring.address,
    "ring_size": 4096,
    "queue_percentage": 100,
    "queue_priority": 1,
  }
  assert client.errno("UPDATE_QUEUE", **(good | {"queue_id": 55})) == errno.EFAULT
  assert client.errno("UPDATE_QUEUE", **(good | {"ring_base_address": 0x7000})) == errno.EFAULT
  assert client.errno("UPDATE_QUEUE", **(good | {"queue_percentage": 0})) == 0 and queue.state == "inactive"
  assert client.errno("UPDATE_QUEUE", **good) == 0 and queue.state == "ready"
  mask = (ctypes.c_uint32 * 1)(0b0110)
  call = {"queue_id": queue.queue_id, "num_cu_mask": 32, "cu_mask_ptr": ctypes.addressof(mask)}
  assert client.errno("SET_CU_MASK", **call) == errno.EINVAL  # units come in pairs
  mask[0] = 0b1100
  assert client.errno("SET_CU_MASK", **call) == 0
  assert client.errno("SET_CU_MASK", **(call | {"num_cu_mask": 31})) == errno.EINVAL
  assert client.errno("GET_QUEUE_WAVE_STATE", queue_id=queue.queue_id) == errno.EINVAL


def test_read_only_memory_is_read_only_for_the_gpu(client: Client) -> None:
  memory = client.alloc(4096, VRAM, flags=READ_ONLY)
  space = client.machine.kfd.processes[os.getpid()].devices[client.gpu_ids[0]].bind()
  with pytest.raises(Exception, match="no permission"):
    space.store(memory.address, 4, 1)


def test_machines_know_their_cards() -> None:
  assert len(Machine("1").gpus) == 1 and len(Machine(["gfx1100", "gfx1100"]).gpus) == 2
  with pytest.raises(Unsupported, match="gfx900"):
    Machine("gfx900")
  with pytest.raises(InvalidArgument):
    Machine("")
