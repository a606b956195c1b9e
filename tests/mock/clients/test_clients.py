"""Clients in other processes by the kernel driver's calls: memory, queues, events, signals, ends."""
from __future__ import annotations

from tests.mock.clients.running import script

CLIENT = """
import ctypes, os, signal, sys, time
from tests.mock.client import FLAGS, GTT, USERPTR, VRAM, Client
from tinyhw.autogen import kfd, sdma_v6 as s6
from tinyhw.core.mapped import map_memory
from tinyhw.drive.linux import LinuxPort
from tinyhw.mock.amd.machine import Machine
def opened(): return Client(Machine(sys.argv[1] if len(sys.argv) > 1 else "gfx1100"), wrap=lambda port: LinuxPort())
def until(done):
  end = time.monotonic() + 20
  while not done() and time.monotonic() < end: time.sleep(0.001)
  print("done" if done() else "never")
def copy(source, target, size): return s6.SDMA_PKT_COPY_LINEAR(count=size - 1, src_addr=source, dst_addr=target)
"""


def test_memory_is_shared_and_a_copy_engine_works() -> None:
  assert script(CLIENT + """
client = opened()
near, far = client.alloc(8192), client.alloc(8192, VRAM)
queue = client.queue(copy=True)
near.u64[:8] = memoryview(bytes(range(64))).cast("Q")
queue.submit(copy(near.address, far.address, 4096), s6.SDMA_PKT_FENCE(addr=near.address + 4096, data=7))
until(lambda: near.u32[1024] == 7)
print(bytes(far.view[:64]) == bytes(range(64)))
until(lambda: queue.read_pointer > 0)   # it is written back after the fence
""") == ["done", "True", "done"]


def test_gpus_have_a_copy_of_user_memory() -> None:
  assert script(CLIENT + """
client = opened()
at = map_memory(-1, 8192)
words = (ctypes.c_uint32 * 2048).from_address(at)
a = client.call("ALLOC_MEMORY_OF_GPU", va_addr=at, size=8192, gpu_id=client.gpu_ids[0], flags=USERPTR | FLAGS,
                mmap_offset=at)
client.map(a.handle, [0])
far, queue = client.alloc(8192, VRAM), client.queue(copy=True)
words[0], words[1] = 5, 6
queue.submit(copy(at, far.address, 8), copy(far.address, at + 16, 8), s6.SDMA_PKT_FENCE(addr=at + 4096, data=7))
until(lambda: words[1024] == 7)
print(list(words[:8]))
words[0] = 9                      # a later submission sees later stores
queue.submit(copy(at, at + 64, 4), s6.SDMA_PKT_FENCE(addr=at + 4096, data=8))
until(lambda: words[1024] == 8)
print(words[16], client.errno("ALLOC_MEMORY_OF_GPU", va_addr=at, size=8192, gpu_id=client.gpu_ids[0],
                              flags=USERPTR | FLAGS, mmap_offset=0x1000))
""") == ["done", "[5, 6, 0, 0, 5, 6, 0, 0]", "done", "9 14"]


def test_events_are_waited_for_as_with_a_kernel() -> None:
  """A signal ends a wait with EINTR, or has it go on where its handler wants that; a bad pointer is EFAULT."""
  assert script(CLIENT + """
import fcntl, threading
client = opened()
event = client.event().event_id
data = kfd.kfd_event_data(event_id=event)
def wait(ms, least=0.0):  # what it gives; whether it has taken so long at least, and less than it might
  began = time.monotonic()
  args = kfd.kfd_ioctl_wait_events_args(events_ptr=ctypes.addressof(data), num_events=1, timeout=ms)
  try: what = fcntl.ioctl(client.fd, kfd.AMDKFD_IOC_WAIT_EVENTS, args) or args.wait_result
  except OSError as error: what = error.strerror
  took = time.monotonic() - began
  return what, took >= least and (took < ms / 1000 or what == 1)
print(wait(200, 0.19), wait(0)[0])
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.2)
print(wait(60000, 0.19))
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.2)
print(wait(500, 0.49))
threading.Timer(0.2, lambda: client.call("SET_EVENT", event_id=event)).start()
print(wait(60000, 0.19))
print(client.errno("WAIT_EVENTS", events_ptr=16, num_events=1))
if not os.fork():
  print(client.errno("SET_EVENT", event_id=event), opened().call("GET_VERSION").major_version, flush=True)
  os._exit(0)
os.wait()
""") == ["(1, True) 1", "('Interrupted system call', True)", "(1, True)", "(0, True)", "14", "9 1"]


def test_what_a_killed_process_had_is_free_again() -> None:
  assert script(CLIENT + """
client = opened()
def used(): return int(open("/sys/class/drm/card0/device/mem_info_vram_used").read())
before, (read, write) = used(), os.pipe()
child = os.fork()
if not child:
  other = opened()
  memory = other.alloc(1 << 20, VRAM)
  os.write(write, b"x")
  signal.pause()
os.read(read, 1)
print(used() - before)
os.kill(child, signal.SIGKILL)
until(lambda: used() == before)
program = "from tests.mock.clients.test_clients import CLIENT; exec(CLIENT); print(opened().alloc(4096).size)"
client.alloc(1 << 20, VRAM)
os.execv(sys.executable, [sys.executable, "-c", program + "; print(used())".replace("used()",
  'open("/sys/class/drm/card0/device/mem_info_vram_used").read().strip()')])
""") == ["1048576", "done", "4096", "0"]


def test_a_dmabuf_is_exported_and_imported() -> None:
  assert script(CLIENT + """
import mmap
client = opened()
memory = client.alloc(8192, VRAM)
fd = client.call("EXPORT_DMABUF", handle=memory.handle, flags=os.O_CLOEXEC).dmabuf_fd
print(os.lseek(fd, 0, os.SEEK_END), client.call("GET_DMABUF_INFO", dmabuf_fd=fd).size)
try: mmap.mmap(fd, 4096)
except OSError as error: print(error.strerror)
at = client.port.reserve(8192)
print(client.call("IMPORT_DMABUF", va_addr=at, gpu_id=client.gpu_ids[0], dmabuf_fd=fd).handle != memory.handle)
""") == ["8192 8192", "Permission denied", "True"]


def test_the_driver_of_tinyhw_is_a_client_too() -> None:
  assert script("from tinyhw import Tensor; print((Tensor([1, 2, 3]) + 1).tolist())", "gfx1201", DEV="AMD") == [
    "[2, 3, 4]"]
