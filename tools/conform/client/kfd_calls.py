"""Cases of the calls of /dev/kfd: the right call, each flag that clients use, and the errno of each wrong argument.

Which errno is told by Linux 6.12 as it is public; beside the kfd_ioctl_* of each call in amdkfd/kfd_chardev.c:

| call | who decides |
|---|---|
| before ACQUIRE_VM | kfd_bind_process_to_device: ENODEV, of which settings and CREATE_QUEUE make ESRCH |
| ALLOC_MEMORY_OF_GPU | amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu, amdgpu_amdkfd_reserve_mem_limit, init_user_pages |
| FREE_MEMORY_OF_GPU | amdgpu_amdkfd_gpuvm_free_memory_of_gpu |
| GET_DMABUF_INFO, IMPORT_DMABUF | amdgpu_amdkfd_get_dmabuf_info, dma_buf_get |
| CREATE_EVENT | kfd_kmap_event_page, kfd_event_create |
| SET_EVENT, RESET_EVENT, DESTROY_EVENT | kfd_set_event, kfd_reset_event, kfd_event_destroy |
| WAIT_EVENTS | kfd_wait_on_events, init_event_waiter |
| CREATE_QUEUE | set_queue_properties_from_user, kfd_queue_acquire_buffers, kfd_queue_buffer_get |
| DESTROY_QUEUE, UPDATE_QUEUE, SET_CU_MASK | pqm_destroy_queue, pqm_update_queue_properties, pqm_update_mqd |
| GET_QUEUE_WAVE_STATE | pqm_get_wave_state, get_wave_state of the queue manager |
| SET_XNACK_MODE, RUNTIME_ENABLE | kfd_process_xnack_mode, runtime_enable |

Some cases are a process's first calls: they are asked in one of their
own beside the room's.
"""
from __future__ import annotations

import ctypes
import errno
import mmap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tinyhw.arch import Arch
from tinyhw.autogen import kfd
from tinyhw.bringup.amd.bench import COMPUTE, COPY, GTT, PAGE, VRAM, AmdBench, BenchQueue
from tinyhw.core.errors import DriverError
from tinyhw.drive.amd.topology import save_area
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.amd import QUIET_S, AmdRoom
from tinyhw.tools.conform.client.question import Area, Heard, Question

UNIT: Final = "kfd"
ENOTSUPP: Final = 524  # of the kernel, which has no name in user space
NOBODY: Final = 0x7FFF_1234  # the id of no GPU, queue, buffer or event
KERNEL: Final = 1 << 63  # no address of a process, with page tables of four levels and of five (access_ok)
_WRITABLE: Final = kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE & 0xFFFF_FFFF
_DOORBELLS: Final = 8192  # bytes of a process on a GPU: two pages (kfd_doorbell_process_slice)
Fields = Mapping[str, Any]
Play = Callable[[AmdRoom, Heard], None]
_CASES: list[tuple[str, str, Play, bool]] = []  # call, form, how it is asked, whether its room ends with it
_REFUSALS: list[tuple[str, str, Callable[[AmdRoom], Fields], int]] = []


def case(name: str, form: str = "plain", *, alone: bool = False) -> Callable[[Play], Play]:
  """Declare a case. `alone`: it takes the queues of its process away."""
  def declare(play: Play) -> Play:
    _CASES.append((name, form, play, alone))
    return play
  return declare


def refuses(name: str, rows: Mapping[str, tuple[int, Fields]], base: Callable[[AmdRoom], Fields] | None = None) -> None:
  """Declare calls that are refused: the errno, and how the arguments differ from right ones. A field may be a function
  of the room."""
  for form, (code, fields) in rows.items():
    def made(room: AmdRoom, fields: Fields = fields) -> Fields:
      given = {**(base(room) if base is not None else {}), **fields}
      return {k: v(room) if callable(v) else v for k, v in given.items()}
    _REFUSALS.append((name, form, made, code))


def questions(arch: Arch) -> Iterator[Question]:
  """All cases; they hang on the generation only in what their queues execute."""
  for name, form, play, alone in _CASES:
    if form.startswith("gfx9") and arch.pm4 != "gfx9" or form.startswith("gfx10-") and arch.pm4 == "gfx9": continue
    text = " ".join((play.__doc__ or "").split())
    yield Question(f"{arch.name}/ioctl/{name}/{form}", UNIT, name, form, "Linux 6.12", play, (text,), alone)
  for name, form, made, code in _REFUSALS:
    def refused(room: AmdRoom, heard: Heard, name: str = name, code: int = code,
                made: Callable[[AmdRoom], Fields] = made) -> None:
      heard.same("errno", said(asked(room.bench, name, **made(room))), said(code))
    yield Question(f"{arch.name}/ioctl/{name}/refuses-{form}", UNIT, name, f"refuses-{form}", "Linux 6.12", refused,
                   (f"{name} with a wrong argument ({form}): {said(code)}",))


# ---- calls

def said(code: int) -> str:
  """An errno by its name."""
  return "success" if not code else "ENOTSUPP" if code == ENOTSUPP else errno.errorcode.get(code, str(code))


def made(name: str, **fields: Any) -> tuple[int, Any]:
  """(request, argument) of a call."""
  request = getattr(kfd, f"AMDKFD_IOC_{name}")
  struct = kfd.IOCTLS[request].struct
  assert struct is not None
  return request, struct(**fields)


def call(b: AmdBench, name: str, **fields: Any) -> Any:
  """A call that must succeed: its argument. Raises DriverError."""
  request, argument = made(name, **fields)
  return b.call(name, request, argument)


def asked(b: AmdBench, name: str, **fields: Any) -> int:
  """The errno of a call; 0 where it succeeds."""
  try: call(b, name, **fields)
  except DriverError as error: return error.errno
  return 0


def gpu(room: AmdRoom) -> int: return room.bench.node.gpu_id


def handle(room: AmdRoom) -> int:
  """A mapped buffer's."""
  return room.spare.handle


# ---- what is there

@case("GET_VERSION")
def version(room: AmdRoom, heard: Heard) -> None:
  """The major version is that of the header; a minor one says what there is more."""
  got = call(room.bench, "GET_VERSION")
  heard.same("major_version", got.major_version, kfd.KFD_IOCTL_MAJOR_VERSION)
  heard.holds("minor_version", 0 <= got.minor_version < 1000, str(got.minor_version), "a small number")


@case("GET_CLOCK_COUNTERS")
def clock_counters(room: AmdRoom, heard: Heard) -> None:
  """All three clocks go forward; the system's counts nanoseconds."""
  first, second = (call(room.bench, "GET_CLOCK_COUNTERS", gpu_id=gpu(room)) for _ in range(2))
  for name in ("gpu_clock_counter", "cpu_clock_counter", "system_clock_counter"):
    a, b = getattr(first, name), getattr(second, name)
    heard.holds(name, 0 < a <= b, f"{a:#x}, then {b:#x}", "a clock that goes forward")
  heard.same("system_clock_freq", first.system_clock_freq, 1_000_000_000)


@case("GET_CLOCK_COUNTERS", "no-gpu")
def clock_of_none(room: AmdRoom, heard: Heard) -> None:
  """An id of no GPU is no error: its clock is 0."""
  got = call(room.bench, "GET_CLOCK_COUNTERS", gpu_id=NOBODY)
  heard.same("gpu_clock_counter", got.gpu_clock_counter, 0)
  heard.holds("system_clock_counter", got.system_clock_counter > 0, "0", "the system's clock")


def _apertures(room: AmdRoom, heard: Heard, rows: Any, count: int) -> None:
  own = [r for r in rows[:count] if r.gpu_id == gpu(room)]
  heard.same("rows of this GPU", len(own), 1)
  for name in ("lds", "scratch", "gpuvm"):
    base, limit = getattr(own[0], f"{name}_base"), getattr(own[0], f"{name}_limit")
    heard.holds(f"{name} aperture", base < limit, f"{base:#x} to {limit:#x}", "a base below a limit")
  heard.holds("apertures of LDS and scratch", own[0].lds_limit < own[0].scratch_base or
              own[0].scratch_limit < own[0].lds_base, "overlap", "are apart")


@case("GET_PROCESS_APERTURES")
def apertures(room: AmdRoom, heard: Heard) -> None:
  """Each GPU has a row of apertures that are none of the others'."""
  got = call(room.bench, "GET_PROCESS_APERTURES")
  _apertures(room, heard, got.process_apertures, got.num_of_nodes)


@case("GET_PROCESS_APERTURES_NEW")
def apertures_new(room: AmdRoom, heard: Heard) -> None:
  """Without a buffer the call counts GPUs; with one it fills a row each."""
  b = room.bench
  count = call(b, "GET_PROCESS_APERTURES_NEW").num_of_nodes
  heard.same("num_of_nodes", count, len(b.nodes))
  rows = (kfd.kfd_process_device_apertures * count)()
  got = call(b, "GET_PROCESS_APERTURES_NEW", kfd_process_device_apertures_ptr=ctypes.addressof(rows),
             num_of_nodes=count)
  heard.same("num_of_nodes, filled", got.num_of_nodes, count)
  _apertures(room, heard, rows, count)


@case("GET_TILE_CONFIG")
def tile_config(room: AmdRoom, heard: Heard) -> None:
  """It answers (HIP asserts that it does), and fills no more than there is room for."""
  tiles, macros = (ctypes.c_uint32 * 32)(*[7] * 32), (ctypes.c_uint32 * 16)(*[7] * 16)
  got = call(room.bench, "GET_TILE_CONFIG", gpu_id=gpu(room), tile_config_ptr=ctypes.addressof(tiles),
             macro_tile_config_ptr=ctypes.addressof(macros), num_tile_configs=3, num_macro_tile_configs=2)
  heard.holds("num_tile_configs", got.num_tile_configs <= 3, str(got.num_tile_configs), "at most 3")
  heard.holds("num_macro_tile_configs", got.num_macro_tile_configs <= 2, str(got.num_macro_tile_configs), "at most 2")
  heard.same("behind them", tiles[3] << 8 | macros[2], 0x707)


# ---- a process's address space and settings

def first_acquire(b: AmdBench) -> list[str]:
  """The first calls of a process: what answers before ACQUIRE_VM, and what it takes."""
  ids = dict(gpu_id=b.node.gpu_id)
  out = [said(asked(b, "SET_MEMORY_POLICY", **ids)), said(asked(b, "SET_TRAP_HANDLER", **ids)),
         said(asked(b, "ALLOC_MEMORY_OF_GPU", **ids, size=PAGE, va_addr=1 << 20, flags=_WRITABLE | GTT & 0xFFFF_FFFF))]
  out += [said(asked(b, "ACQUIRE_VM", **ids, drm_fd=b.fd)), said(asked(b, "ACQUIRE_VM", gpu_id=NOBODY, drm_fd=b.drm)),
          said(asked(b, "ACQUIRE_VM", **ids, drm_fd=1 << 20)), said(asked(b, "ACQUIRE_VM", **ids, drm_fd=b.drm)),
          said(asked(b, "ACQUIRE_VM", **ids, drm_fd=b.drm))]
  second = b.port.open(b.node.render_node)
  out.append(said(asked(b, "ACQUIRE_VM", **ids, drm_fd=second)))
  b.port.close(second)
  return out


@case("ACQUIRE_VM", "first")
def acquire_first(room: AmdRoom, heard: Heard) -> None:
  """Before it: ESRCH of settings, ENODEV of memory. Of no render node, GPU or file: EINVAL. Then it succeeds, again
  too, and another file is EBUSY."""
  found = room.bench.beside().call(first_acquire)
  wanted = ["ESRCH", "ESRCH", "ENODEV", "EINVAL", "EINVAL", "EINVAL", "success", "success", "EBUSY"]
  for i, (a, b) in enumerate(zip(found, wanted, strict=True)): heard.same(f"call {i}", a, b)


def first_xnack(b: AmdBench) -> list[Any]:
  """SET_XNACK_MODE of a process without queues."""
  out: list[Any] = [call(b, "SET_XNACK_MODE", xnack_enabled=-1).xnack_enabled]
  return [*out, said(asked(b, "SET_XNACK_MODE", xnack_enabled=0)), call(b, "SET_XNACK_MODE",
                                                                        xnack_enabled=-1).xnack_enabled]


@case("SET_XNACK_MODE")
def xnack(room: AmdRoom, heard: Heard) -> None:
  """-1 asks; 0 is taken of a process that has no queues."""
  before, code, after = room.bench.beside().call(first_xnack)
  heard.holds("xnack_enabled", before in {0, 1}, str(before), "0 or 1")
  heard.same("setting it to 0", code, "success")
  heard.same("xnack_enabled behind that", after, 0)


def first_xnack_on(b: AmdBench) -> int:
  """The errno of asking for retried faults."""
  return asked(b, "SET_XNACK_MODE", xnack_enabled=1)


@case("SET_XNACK_MODE", "gfx10-on")
def xnack_on(room: AmdRoom, heard: Heard) -> None:
  """GPUs from GC 10 on cannot retry page faults: EPERM."""
  heard.same("errno", said(room.bench.beside().call(first_xnack_on)), "EPERM")


@case("SET_XNACK_MODE", "with-queues")
def xnack_with_queues(room: AmdRoom, heard: Heard) -> None:
  """EBUSY of a process with queues."""
  _ = room.bench.compute
  heard.same("errno", said(asked(room.bench, "SET_XNACK_MODE", xnack_enabled=0)), "EBUSY")


def first_runtime(b: AmdBench) -> list[str]:
  """RUNTIME_ENABLE twice, and off."""
  on = kfd.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK
  return [said(asked(b, "RUNTIME_ENABLE", mode_mask=mode)) for mode in (on, on, 0, on)]


@case("RUNTIME_ENABLE")
def runtime(room: AmdRoom, heard: Heard) -> None:
  """A runtime is enabled once, EBUSY the second time, and again when it was disabled."""
  found = room.bench.beside().call(first_runtime)
  for i, (a, b) in enumerate(zip(found, ["success", "EBUSY", "success", "success"], strict=True)):
    heard.same(f"call {i}", a, b)


@case("SET_MEMORY_POLICY")
def memory_policy(room: AmdRoom, heard: Heard) -> None:
  """Both policies are taken, with an aperture of the alternate one or none."""
  for default in (kfd.KFD_IOC_CACHE_POLICY_COHERENT, kfd.KFD_IOC_CACHE_POLICY_NONCOHERENT):
    heard.same(f"default_policy {default}", said(asked(room.bench, "SET_MEMORY_POLICY", gpu_id=gpu(room),
                                                       default_policy=default, alternate_policy=default)), "success")


refuses("SET_MEMORY_POLICY", {
  "no-gpu": (errno.EINVAL, {"gpu_id": NOBODY}), "default-policy": (errno.EINVAL, {"default_policy": 2}),
  "alternate-policy": (errno.EINVAL, {"alternate_policy": 7})}, lambda room: {"gpu_id": gpu(room)})


@case("SET_SCRATCH_BACKING_VA")
def scratch_backing(room: AmdRoom, heard: Heard) -> None:
  """An address is taken."""
  heard.same("errno", said(asked(room.bench, "SET_SCRATCH_BACKING_VA", gpu_id=gpu(room), va_addr=1 << 40)), "success")


refuses("SET_SCRATCH_BACKING_VA", {"no-gpu": (errno.EINVAL, {"gpu_id": NOBODY})})


@case("SET_TRAP_HANDLER")
def trap_handler(room: AmdRoom, heard: Heard) -> None:
  """Addresses of a handler and of its memory are taken."""
  memory = room.take(0, Area(bytes(PAGE)))
  heard.same("errno", said(asked(room.bench, "SET_TRAP_HANDLER", gpu_id=gpu(room), tba_addr=memory.address,
                                 tma_addr=memory.address + 2048)), "success")
  heard.same("and none again", said(asked(room.bench, "SET_TRAP_HANDLER", gpu_id=gpu(room))), "success")


refuses("SET_TRAP_HANDLER", {"no-gpu": (errno.EINVAL, {"gpu_id": NOBODY})})
refuses("GET_TILE_CONFIG", {"no-gpu": (errno.EINVAL, {"gpu_id": NOBODY})})


# ---- memory

@case("AVAILABLE_MEMORY")
def available(room: AmdRoom, heard: Heard) -> None:
  """Video memory that is taken is not available, and is again when it was freed."""
  b, size = room.bench, 32 << 20
  before = b.available()
  taken = b.take(size, VRAM, host=False)
  during = b.available()
  b.free(taken)
  heard.holds("available, less 32 MiB", size - (4 << 20) <= before - during <= size + (8 << 20),
              f"{before:#x}, then {during:#x}", "32 MiB fewer")
  heard.same("available behind it", b.available(), before)


refuses("AVAILABLE_MEMORY", {"no-gpu": (errno.EINVAL, {"gpu_id": NOBODY})})

_KINDS: Final = {"VRAM": kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM, "GTT": kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT}
_FLAGS: Final = {
  "": (), "EXECUTABLE": ("EXECUTABLE",), "PUBLIC": ("PUBLIC",), "NO_SUBSTITUTE": ("NO_SUBSTITUTE",),
  "COHERENT": ("COHERENT",), "UNCACHED": ("UNCACHED",), "COHERENT-UNCACHED": ("COHERENT", "UNCACHED"),
  "EXT_COHERENT": ("EXT_COHERENT",), "CONTIGUOUS": ("CONTIGUOUS",)}


def _allocated(room: AmdRoom, heard: Heard, flags: int) -> None:
  """A buffer with these flags: the copy engine writes and reads it, and what comes back is the same."""
  b, size = room.bench, 3 * PAGE
  address = b.reserve(size)
  token, _ = b.allocate(size, flags | _WRITABLE, address)
  b.map(token)
  data, back = room.take(0, Area(models.noise(41, size))), room.take(1, Area(bytes(size)))
  room.copy(address, data.address, size)
  room.copy(back.address, address, size)
  heard.memory("memory", room.load(back, size), models.noise(41, size))
  b.unmap(token)
  heard.same("FREE_MEMORY_OF_GPU", said(asked(b, "FREE_MEMORY_OF_GPU", handle=token)), "success")


for _kind, _bit in _KINDS.items():
  for _word, _names in _FLAGS.items():
    if _kind == "GTT" and _word in {"PUBLIC", "CONTIGUOUS"}: continue
    _flags = _bit | sum(getattr(kfd, f"KFD_IOC_ALLOC_MEM_FLAGS_{n}") for n in _names)

    @case("ALLOC_MEMORY_OF_GPU", f"{_kind}-{_word}" if _word else _kind)
    def allocated(room: AmdRoom, heard: Heard, flags: int = _flags) -> None:
      """The copy engine writes and reads a buffer with these flags; what comes back is the same."""
      _allocated(room, heard, flags)


@case("ALLOC_MEMORY_OF_GPU", "host-sees")
def host_sees(room: AmdRoom, heard: Heard) -> None:
  """mmap of the render node at mmap_offset is the buffer's memory, for both sides."""
  b = room.bench
  memory = b.take(2 * PAGE)
  source = room.take(0, Area(models.noise(42, 2 * PAGE)))
  memory.fill(0)
  room.copy(memory.address + 5, source.address, PAGE)
  heard.memory("memory", bytes(memory.bytes), bytes(5) + models.noise(42, 2 * PAGE)[:PAGE] + bytes(PAGE - 5))
  b.free(memory)


@case("ALLOC_MEMORY_OF_GPU", "AQL_QUEUE_MEM")
def twice(room: AmdRoom, heard: Heard) -> None:
  """The buffer has half of the size, and is mapped twice, one behind the other."""
  b, size = room.bench, 4 * PAGE
  address = b.reserve(size)
  token, _ = b.allocate(size, kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT | kfd.KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM | _WRITABLE,
                        address)
  b.map(token)
  data, back = room.take(0, Area(models.noise(43, size))), room.take(1, Area(bytes(size)))
  room.copy(address + PAGE, data.address, 2 * PAGE)  # over the end of the first half
  room.copy(back.address, address, size)
  half = bytearray(2 * PAGE)
  half[PAGE:], half[:PAGE] = models.noise(43, size)[:PAGE], models.noise(43, size)[PAGE:2 * PAGE]
  heard.memory("memory", room.load(back, size), bytes(half) * 2)
  b.unmap(token)
  call(b, "FREE_MEMORY_OF_GPU", handle=token)


@case("ALLOC_MEMORY_OF_GPU", "USERPTR")
def user_pointer(room: AmdRoom, heard: Heard) -> None:
  """Memory of the process is read and written by the GPU at an address of its own."""
  b, size = room.bench, 2 * PAGE
  own = mmap.mmap(-1, size)
  view = (ctypes.c_char * size).from_buffer(own)
  own[:] = models.noise(44, size)
  address = b.reserve(size)
  token, _ = b.allocate(size, kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | _WRITABLE, address, ctypes.addressof(view))
  b.map(token)
  back, data = room.take(0, Area(bytes(size))), room.take(1, Area(models.noise(45, PAGE)))
  room.copy(back.address, address, size)
  heard.memory("what the GPU read", room.load(back, size), models.noise(44, size))
  room.copy(address + 8, data.address, PAGE)
  wanted = models.written(models.noise(44, size), 8, models.noise(45, PAGE))
  heard.memory("what the process reads", bytes(own[:]), wanted)
  b.unmap(token)
  call(b, "FREE_MEMORY_OF_GPU", handle=token)
  del view
  own.close()


@case("ALLOC_MEMORY_OF_GPU", "MMIO_REMAP")
def mmio(room: AmdRoom, heard: Heard) -> None:
  """The page of remapped registers is allocated, mapped and freed."""
  b = room.bench
  address = b.reserve(PAGE)
  token, _ = b.allocate(PAGE, kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | _WRITABLE, address)
  b.map(token)
  b.unmap(token)
  heard.same("FREE_MEMORY_OF_GPU", said(asked(b, "FREE_MEMORY_OF_GPU", handle=token)), "success")


def _right(room: AmdRoom) -> Fields:
  return {"gpu_id": gpu(room), "size": PAGE, "va_addr": 1 << 21, "flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT | _WRITABLE}


refuses("ALLOC_MEMORY_OF_GPU", {
  "no-bytes": (errno.EINVAL, {"size": 0}), "no-gpu": (errno.EINVAL, {"gpu_id": NOBODY}),
  "no-kind": (errno.EINVAL, {"flags": _WRITABLE}),
  "doorbells-of-a-page": (errno.EINVAL, {"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | _WRITABLE}),
  "remap-of-two-pages": (errno.EINVAL, {"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | _WRITABLE, "size": 2 * PAGE}),
  "more-than-there-is": (errno.ENOMEM, {"flags": VRAM | _WRITABLE,
                                        "size": lambda room: room.bench.node.vram_bytes * 2}),
  "user-pointer-0": (errno.EINVAL, {"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | _WRITABLE}),
  "user-memory-that-is-not-there": (errno.EFAULT, {"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | _WRITABLE,
                                                   "mmap_offset": lambda room: room.nowhere})}, _right)
refuses("FREE_MEMORY_OF_GPU", {
  "no-handle": (errno.EINVAL, {"handle": lambda room: gpu(room) << 32 | NOBODY}),
  "no-gpu": (errno.EINVAL, {"handle": NOBODY << 32}), "mapped": (errno.EBUSY, {"handle": handle}),
  "the-event-page": (errno.EPERM, {"handle": lambda room: room.events_page})})


def _map(name: str) -> None:
  """What both directions of mapping refuse."""
  refuses(name, {
    "no-devices": (errno.EINVAL, {"n_devices": 0}), "too-many-done": (errno.EINVAL, {"n_success": 2}),
    "no-handle": (errno.ENOMEM, {"handle": lambda room: gpu(room) << 32 | NOBODY}),
    "no-gpu-in-the-handle": (errno.EINVAL, {"handle": NOBODY << 32 | 1}),
    "no-gpu": (errno.EINVAL, {"device_ids_array_ptr": lambda room: room.ids(NOBODY)}),
    "no-array": (errno.EFAULT, {"device_ids_array_ptr": lambda room: room.nowhere})},
    lambda room: {"handle": handle(room), "device_ids_array_ptr": room.ids(gpu(room)), "n_devices": 1})


_map("MAP_MEMORY_TO_GPU")
_map("UNMAP_MEMORY_FROM_GPU")


@case("MAP_MEMORY_TO_GPU")
def mapped(room: AmdRoom, heard: Heard) -> None:
  """n_success counts; a second time changes nothing, n_success that is full asks for nothing."""
  b = room.bench
  token, _ = b.allocate(PAGE, GTT | _WRITABLE, b.reserve(PAGE))
  one = {"handle": token, "device_ids_array_ptr": room.ids(gpu(room)), "n_devices": 1}
  for word, given, wanted in (("first", 0, 1), ("again", 0, 1), ("done", 1, 1)):
    heard.same(f"n_success, {word}", call(b, "MAP_MEMORY_TO_GPU", **one, n_success=given).n_success, wanted)
  heard.same("n_success of UNMAP", call(b, "UNMAP_MEMORY_FROM_GPU", **one).n_success, 1)
  call(b, "FREE_MEMORY_OF_GPU", handle=token)


@case("MAP_MEMORY_TO_GPU", "partly")
def mapped_partly(room: AmdRoom, heard: Heard) -> None:
  """Of two ids, the second of no GPU: EINVAL, and n_success says that the first one is mapped."""
  b = room.bench
  token, _ = b.allocate(PAGE, GTT | _WRITABLE, b.reserve(PAGE))
  request, argument = made("MAP_MEMORY_TO_GPU", handle=token, device_ids_array_ptr=room.ids(gpu(room), NOBODY),
                           n_devices=2)
  code = 0
  try: b.call("MAP_MEMORY_TO_GPU", request, argument)
  except DriverError as error: code = error.errno
  heard.same("errno", said(code), "EINVAL")
  heard.same("n_success", argument.n_success, 1)
  b.unmap(token)
  call(b, "FREE_MEMORY_OF_GPU", handle=token)


@case("UNMAP_MEMORY_FROM_GPU", "ends-access", alone=True)
def unmapped(room: AmdRoom, heard: Heard) -> None:
  """Behind it a copy to the address is a page fault: the memory event has the address, not present, by a write."""
  b = room.bench
  page = b.take(PAGE)
  address = page.address
  b.unmap(page.handle)
  _faults(room, heard, address, present=False)


@case("ALLOC_MEMORY_OF_GPU", "read-only", alone=True)
def read_only(room: AmdRoom, heard: Heard) -> None:
  """A buffer without WRITABLE is read, and a write to it is a page fault that says ReadOnly."""
  b = room.bench
  page = b.take(PAGE, writable=False)
  page.fill(0x5A)
  back = room.take(0, Area(bytes(PAGE)))
  room.copy(back.address, page.address, PAGE)
  heard.memory("what is read", room.load(back, PAGE), b"\x5a" * PAGE)
  _faults(room, heard, page.address, present=True)


def _faults(room: AmdRoom, heard: Heard, address: int, present: bool) -> None:
  """A write to an address faults: the memory event says where, and of which kind."""
  b = room.bench
  events, _ = b.watched
  b.copier.write(b.sdma().fence(address + 16, 1))
  rows = b.wait_events([events], 3000)
  heard.holds("the memory event", rows is not None, "is not set", "is set")
  assert rows is not None
  data = rows[0].memory_exception_data
  heard.same("gpu_id", int(data.gpu_id == b.node.gpu_id), 1)
  heard.same("the page", int(data.va == address & -PAGE), 1)
  heard.same("NotPresent", int(data.failure.NotPresent), int(not present))
  heard.same("ReadOnly", int(data.failure.ReadOnly), 1)


# ---- dma-bufs

@case("EXPORT_DMABUF")
@case("GET_DMABUF_INFO")
@case("IMPORT_DMABUF")
def dmabuf(room: AmdRoom, heard: Heard) -> None:
  """A buffer goes out as a file, which tells its size, GPU and kind, and comes in at another address: the same
  memory."""
  b = room.bench
  for word, flags in (("video", VRAM), ("system", GTT)):
    memory = b.take(2 * PAGE, flags, host=False)
    fd = call(b, "EXPORT_DMABUF", handle=memory.handle).dmabuf_fd
    got = call(b, "GET_DMABUF_INFO", dmabuf_fd=fd)
    heard.same(f"{word}: size", got.size, 2 * PAGE)
    # System memory of a GPU in partitions is of any of them (amdgpu_bo_create): the first GPU is told.
    owner = b.nodes[0].gpu_id if word == "system" and b.node.target in {"gfx942", "gfx950"} else gpu(room)
    heard.same(f"{word}: gpu_id", int(got.gpu_id == owner), 1)
    kinds = kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM | kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT
    told = GTT if b.shared else flags  # video memory of an APU is the system's
    heard.same(f"{word}: flags", got.flags & kinds, told & kinds)
    address = b.reserve(2 * PAGE)
    token = call(b, "IMPORT_DMABUF", dmabuf_fd=fd, gpu_id=gpu(room), va_addr=address).handle
    b.map(token)
    room.store(memory, 0, models.noise(46, 2 * PAGE))
    back = room.take(0, Area(bytes(2 * PAGE)))
    room.copy(back.address, address, 2 * PAGE)
    heard.memory(f"{word}: memory", room.load(back, 2 * PAGE), models.noise(46, 2 * PAGE))
    b.unmap(token)
    call(b, "FREE_MEMORY_OF_GPU", handle=token)
    b.free(memory)
    b.port.close(fd)


refuses("EXPORT_DMABUF", {"no-handle": (errno.EINVAL, {"handle": lambda room: gpu(room) << 32 | NOBODY}),
                          "no-gpu": (errno.EINVAL, {"handle": NOBODY << 32})})
for _name in ("GET_DMABUF_INFO", "IMPORT_DMABUF"):
  refuses(_name, {"no-file": (errno.EBADF, {"dmabuf_fd": 1 << 20}),
                  "no-dma-buf": (errno.EINVAL, {"dmabuf_fd": lambda room: room.bench.fd})},
          lambda room: {"gpu_id": gpu(room)})
refuses("IMPORT_DMABUF", {"no-gpu": (errno.EINVAL, {"gpu_id": NOBODY, "dmabuf_fd": lambda room: room.bench.fd})})


# ---- events

def _event(b: AmdBench, auto: int, kind: int = kfd.KFD_IOC_EVENT_SIGNAL) -> int:
  _ = b.event()  # the event page
  return int(call(b, "CREATE_EVENT", event_type=kind, auto_reset=auto).event_id)


def _waited(b: AmdBench, ids: list[int], every: int = 0, timeout: int = 2, age: int = 0) -> tuple[str, list[Any]]:
  """(what WAIT_EVENTS says, its rows)."""
  rows = (kfd.kfd_event_data * len(ids))()
  for row, event in zip(rows, ids, strict=True):
    row.event_id = event
    row.signal_event_data.last_event_age = age
  got = call(b, "WAIT_EVENTS", events_ptr=ctypes.addressof(rows), num_events=len(ids), wait_for_all=every,
             timeout=timeout)
  words = {kfd.KFD_IOC_WAIT_RESULT_COMPLETE: "complete", kfd.KFD_IOC_WAIT_RESULT_TIMEOUT: "timeout"}
  return words.get(got.wait_result, "fail"), list(rows)


@case("CREATE_EVENT")
def create_event(room: AmdRoom, heard: Heard) -> None:
  """Events of signals have a slot each, which is their id; those of exceptions have none in the page."""
  b = room.bench
  _ = b.event()
  made = [call(b, "CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1) for _ in range(3)]
  heard.same("different ids", len({e.event_id for e in made}), 3)
  for e in made:
    heard.same("event_slot_index", int(e.event_slot_index == e.event_id < kfd.KFD_SIGNAL_EVENT_LIMIT), 1)
    heard.same("event_trigger_data", int(e.event_trigger_data == e.event_id), 1)
  for kind in (kfd.KFD_IOC_EVENT_MEMORY, kfd.KFD_IOC_EVENT_HW_EXCEPTION):
    event = _event(b, 0, kind)
    heard.same("an exception's id", int(event >= kfd.KFD_SIGNAL_EVENT_LIMIT), 1)
    heard.same("it waits", _waited(b, [event])[0], "timeout")


@case("SET_EVENT", "auto-reset")
@case("WAIT_EVENTS", "auto-reset")
def auto_reset(room: AmdRoom, heard: Heard) -> None:
  """An event that resets itself ends one wait."""
  b = room.bench
  event = _event(b, 1)
  heard.same("new", _waited(b, [event])[0], "timeout")
  call(b, "SET_EVENT", event_id=event)
  heard.same("set", _waited(b, [event])[0], "complete")
  heard.same("again", _waited(b, [event])[0], "timeout")


@case("RESET_EVENT", "manual-reset")
@case("WAIT_EVENTS", "manual-reset")
def manual_reset(room: AmdRoom, heard: Heard) -> None:
  """An event that does not reset itself stays set until RESET_EVENT."""
  b = room.bench
  event = _event(b, 0)
  call(b, "SET_EVENT", event_id=event)
  for word in ("set", "again"): heard.same(word, _waited(b, [event])[0], "complete")
  call(b, "RESET_EVENT", event_id=event)
  heard.same("reset", _waited(b, [event])[0], "timeout")


@case("WAIT_EVENTS", "any")
@case("WAIT_EVENTS", "all")
def wait_several(room: AmdRoom, heard: Heard) -> None:
  """Any of several ends a wait for any; all have to be set for all."""
  b = room.bench
  ids = [_event(b, 0) for _ in range(3)]
  call(b, "SET_EVENT", event_id=ids[1])
  heard.same("any", _waited(b, ids)[0], "complete")
  heard.same("all of which one is set", _waited(b, ids, every=1)[0], "timeout")
  for event in ids: call(b, "SET_EVENT", event_id=event)
  heard.same("all", _waited(b, ids, every=1)[0], "complete")


@case("WAIT_EVENTS", "no-time")
def wait_no_time(room: AmdRoom, heard: Heard) -> None:
  """A timeout of 0 only looks."""
  b = room.bench
  event = _event(b, 0)
  heard.same("not set", _waited(b, [event], timeout=0)[0], "timeout")
  call(b, "SET_EVENT", event_id=event)
  heard.same("set", _waited(b, [event], timeout=0)[0], "complete")


@case("WAIT_EVENTS", "age")
def wait_age(room: AmdRoom, heard: Heard) -> None:
  """last_event_age of an event that was set since ends the wait, and comes back as it is now."""
  b = room.bench
  event = _event(b, 1)
  call(b, "SET_EVENT", event_id=event)
  word, rows = _waited(b, [event], age=1)
  heard.same("set since", word, "complete")
  now = int(rows[0].signal_event_data.last_event_age)
  heard.holds("last_event_age", now > 1, str(now), "more than 1")
  heard.same("of that age", _waited(b, [event], age=now)[0], "timeout")


@case("DESTROY_EVENT")
def destroy_event(room: AmdRoom, heard: Heard) -> None:
  """What is gone cannot be set or waited for; its id is free again."""
  b = room.bench
  event = _event(b, 0)
  call(b, "DESTROY_EVENT", event_id=event)
  for name in ("SET_EVENT", "RESET_EVENT", "DESTROY_EVENT"):
    heard.same(name, said(asked(b, name, event_id=event)), "EINVAL")


for _name in ("SET_EVENT", "RESET_EVENT", "DESTROY_EVENT"):
  refuses(_name, {"no-event": (errno.EINVAL, {"event_id": NOBODY})})
for _name in ("SET_EVENT", "RESET_EVENT"):
  refuses(_name, {"an-exception": (errno.EINVAL, {"event_id": lambda room: room.bench.watched[0]})})
refuses("CREATE_EVENT", {
  "a-second-page": (errno.EINVAL, {"event_page_offset": handle, "event_type": kfd.KFD_IOC_EVENT_SIGNAL})},
  lambda room: {"auto_reset": int(bool(room.events_page))})
refuses("WAIT_EVENTS", {
  "no-event": (errno.EINVAL, {"events_ptr": lambda room: room.event_row(NOBODY)}),
  "no-rows": (errno.EFAULT, {"events_ptr": lambda room: room.nowhere})}, lambda room: {"num_events": 1, "timeout": 0})


# ---- queues

def queue_fields(room: AmdRoom, kind: int) -> dict[str, Any]:
  """Arguments of a right CREATE_QUEUE."""
  b, ring, pointers = room.bench, room.queue_memory("ring", 4 * PAGE), room.queue_memory("pointers", PAGE)
  out: dict[str, Any] = {
    "ring_base_address": ring.address, "ring_size": 4 * PAGE, "gpu_id": gpu(room), "queue_type": kind,
    "write_pointer_address": pointers.address, "read_pointer_address": room.queue_memory("read", PAGE).address,
    "queue_percentage": 100, "queue_priority": 7}
  if kind != COPY:
    area = save_area(b.node)
    out |= {"eop_buffer_address": room.queue_memory("eop", PAGE).address, "eop_buffer_size": PAGE,
            "ctx_save_restore_address": room.queue_memory("save", area.total).address,
            "ctx_save_restore_size": area.save_restore, "ctl_stack_size": area.control_stack}
  return out


_WRONG_QUEUES: Final[dict[str, tuple[int, Fields]]] = {
  "101-percent": (errno.EINVAL, {"queue_percentage": 101}), "priority-16": (errno.EINVAL, {"queue_priority": 16}),
  "ring-of-3-pages": (errno.EINVAL, {"ring_size": 3 * PAGE}),
  "ring-nowhere": (errno.EFAULT, {"ring_base_address": KERNEL}),
  "read-pointer-nowhere": (errno.EFAULT, {"read_pointer_address": KERNEL}),
  "write-pointer-nowhere": (errno.EFAULT, {"write_pointer_address": KERNEL}),
  "no-gpu": (errno.EINVAL, {"gpu_id": NOBODY}), "no-type": (ENOTSUPP, {"queue_type": 99}),
  "ring-of-another-size": (errno.EINVAL, {"ring_size": 8 * PAGE}),
  "ring-of-no-buffer": (errno.EINVAL, {"ring_base_address": lambda room: room.nowhere}),
  "write-pointer-of-no-buffer": (errno.EINVAL, {"write_pointer_address": lambda room: room.nowhere}),
  "read-pointer-of-no-buffer": (errno.EINVAL, {"read_pointer_address": lambda room: room.nowhere})}

for _word, _number in (("compute", COMPUTE), ("copy", COPY), ("aql", kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)):
  @case("CREATE_QUEUE", _word)
  @case("DESTROY_QUEUE", _word)
  def create_queue(room: AmdRoom, heard: Heard, kind: int = _number) -> None:
    """Two queues have ids and doorbells of their own, and are gone when they were destroyed."""
    b = room.bench
    made = [call(b, "CREATE_QUEUE", **queue_fields(room, kind)) for _ in range(2)]
    heard.same("different ids", int(made[0].queue_id != made[1].queue_id), 1)
    heard.same("different doorbells", int(made[0].doorbell_offset != made[1].doorbell_offset), 1)
    for queue in made:
      heard.same("DESTROY_QUEUE", said(asked(b, "DESTROY_QUEUE", queue_id=queue.queue_id)), "success")
      heard.same("again", said(asked(b, "DESTROY_QUEUE", queue_id=queue.queue_id)), "EINVAL")

  for _priority in (0, 15):
    @case("CREATE_QUEUE", f"{_word}-priority-{_priority}")
    def create_priority(room: AmdRoom, heard: Heard, kind: int = _number, priority: int = _priority) -> None:
      """The least and the most urgent queue are taken."""
      fields = queue_fields(room, kind) | {"queue_priority": priority}
      made = call(room.bench, "CREATE_QUEUE", **fields)
      heard.same("DESTROY_QUEUE", said(asked(room.bench, "DESTROY_QUEUE", queue_id=made.queue_id)), "success")

  refuses("CREATE_QUEUE", {f"{_word}-{_form}": _row for _form, _row in _WRONG_QUEUES.items()},
          lambda room, kind=_number: queue_fields(room, kind))  # type: ignore[misc]
refuses("CREATE_QUEUE", {
  "eop-nowhere": (errno.EFAULT, {"eop_buffer_address": KERNEL}),
  "save-area-nowhere": (errno.EFAULT, {"ctx_save_restore_address": KERNEL}),
  "eop-too-small": (errno.EINVAL, {"eop_buffer_size": 8}),
  "another-control-stack": (errno.EINVAL, {"ctl_stack_size": PAGE}),
  "save-area-too-small": (errno.EINVAL, {"ctx_save_restore_size": PAGE})}, lambda room: queue_fields(room, COMPUTE))
refuses("DESTROY_QUEUE", {"no-queue": (errno.EINVAL, {"queue_id": NOBODY})})
refuses("UPDATE_QUEUE", {
  "no-queue": (errno.EFAULT, {"queue_id": NOBODY}), "101-percent": (errno.EINVAL, {"queue_percentage": 101}),
  "priority-16": (errno.EINVAL, {"queue_priority": 16}), "ring-of-3-pages": (errno.EINVAL, {"ring_size": 3 * PAGE})},
  lambda room: {"queue_id": room.bench.compute.queue_id, "queue_percentage": 100, "queue_priority": 7})


@case("UPDATE_QUEUE", "stops")
def update_queue(room: AmdRoom, heard: Heard) -> None:
  """At 0 percent a queue stands; at 100 it goes on with what came meanwhile."""
  b = room.bench
  queue, page = BenchQueue(b, COPY), room.take(0, Area(bytes(PAGE)))
  fields = {"queue_id": queue.queue_id, "ring_base_address": queue.ring_memory.address,
            "ring_size": queue.ring_memory.size, "queue_priority": 7}
  for percent, first, wanted in ((0, 1, 0), (100, 0, 1)):
    heard.same(f"at {percent} percent", said(asked(b, "UPDATE_QUEUE", **fields, queue_percentage=percent)), "success")
    if first: queue.write(b.sdma().fence(page.address, 1))
    b.wait(lambda: bool(page.words[0]), QUIET_S if not wanted else None)
    heard.same(f"memory at {percent} percent", int(page.words[0]), wanted)
  queue.close()


@case("SET_CU_MASK")
def cu_mask(room: AmdRoom, heard: Heard) -> None:
  """Half of the units of a queue, and all of them again; what it executes is the same."""
  queue = BenchQueue(room.bench, COMPUTE)
  for mask in (0x00FF_00FF, 0xFFFF_FFFF):
    words = (ctypes.c_uint32 * 1)(mask)
    heard.same(f"{mask:#x}", said(asked(room.bench, "SET_CU_MASK", queue_id=queue.queue_id, num_cu_mask=32,
                                        cu_mask_ptr=ctypes.addressof(words))), "success")
  page = room.take(0, Area(bytes(PAGE)))
  queue.finish(room.bench.pm4(), "the queue")
  heard.same("memory", int(page.words[0]), 0)
  queue.close()


refuses("SET_CU_MASK", {
  "33-units": (errno.EINVAL, {"num_cu_mask": 33}), "no-units": (errno.EINVAL, {"num_cu_mask": 0}),
  "no-queue": (errno.EFAULT, {"queue_id": NOBODY}),
  "no-mask": (errno.EFAULT, {"cu_mask_ptr": lambda room: room.nowhere})},
  lambda room: {"queue_id": room.bench.compute.queue_id, "num_cu_mask": 32, "cu_mask_ptr": room.ids(0xFFFF_FFFF)})


@case("SET_CU_MASK", "gfx10-half-a-pair")
def cu_pairs(room: AmdRoom, heard: Heard) -> None:
  """From GC 10 on units are enabled in pairs: EINVAL of half a one."""
  code = asked(room.bench, "SET_CU_MASK", queue_id=room.bench.compute.queue_id, num_cu_mask=32,
               cu_mask_ptr=room.ids(0b0111))
  heard.same("errno", said(code), "EINVAL")


refuses("GET_QUEUE_WAVE_STATE", {"no-queue": (errno.EFAULT, {"queue_id": NOBODY})})


@case("GET_QUEUE_WAVE_STATE", "active")
def wave_state(room: AmdRoom, heard: Heard) -> None:
  """A queue that is not stopped has none: EINVAL."""
  code = asked(room.bench, "GET_QUEUE_WAVE_STATE", queue_id=room.bench.compute.queue_id)
  heard.same("errno", said(code), "EINVAL")


@case("no-call", "number")
def no_call(room: AmdRoom, heard: Heard) -> None:
  """A number behind the last call is ENOTTY."""
  b, code = room.bench, 0
  request = kfd.AMDKFD_IOC_DBG_TRAP & ~0xFF | 0x7F
  try: b.call("of number 0x7f", request, kfd.kfd_ioctl_dbg_trap_args())
  except DriverError as error: code = error.errno
  heard.same("errno", said(code), "ENOTTY")
