"""What a process may not have is told by name: addresses, files, host memory, absurd sizes."""
from __future__ import annotations

from tests.devices.test_closed import run_apart

CLOSES = """
def count(): return len(os.listdir("/proc/self/fd"))
def cycle():
  assert (Tensor([1.0], device="AMD") + 1).tolist() == [2]
  kept.append(Device["AMD"].runtime)     # whoever keeps something of a machine keeps no file of it
  Device.close()
kept = []
gc.disable()
cycle()
before = count()
for _ in range(20): cycle()
assert count() == before, (before, count())
from tinyhw.mock.amd.machine import Machine
for _ in range(50): Machine("gfx1100,gfx1100").close()
assert count() == before, (before, count())
"""


def test_a_closed_machine_keeps_no_files() -> None: run_apart(CLOSES)


LIMITS = """
import resource, sys, tinyhw
from tinyhw.core.errors import Error, OutOfMemory
def limited(which, n): resource.setrlimit(which, (n, resource.getrlimit(which)[1]))
files, space = (resource.getrlimit(w)[0] for w in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS))
def used():
  gc.collect()                           # what goes later would leave more addresses than are counted
  return int(open("/proc/self/statm").read().split()[0]) * 4096
def one(): return (Tensor([1.0], device="AMD") + 1).tolist()

assert one() == [2]                      # Python has opened all modules now
Device.close()
limited(resource.RLIMIT_AS, used() + (1 << 30))
assert "AMD: this process cannot have the mock machine's memory: Cannot allocate" in refused(one, by=DeviceError)
limited(resource.RLIMIT_AS, space)
told = set()
for spare in range(0, 30):               # whichever file is one too many
  limited(resource.RLIMIT_NOFILE, max(map(int, os.listdir("/proc/self/fd"))) + spare)
  try: one()
  except Error as error: told.add(str(error).partition(";")[0])
  else: break
  finally: limited(resource.RLIMIT_NOFILE, files)
  Device.close()
else: raise SystemExit("never enough files")
assert any("mock machine's memory: Too many open files" in t for t in told), told
assert any("cannot open /dev/kfd: Too many open files" in t for t in told), told

assert one() == [2]
x = Tensor.ones(1 << 24, device="AMD").contiguous().realize()
limited(resource.RLIMIT_AS, used() + (48 << 20))
assert "addresses of this process" in refused(Tensor.ones(1 << 26, device="AMD").contiguous().realize, by=OutOfMemory)
# The allocator of Python without the GIL has addresses in reserve: enough for a value of this size.
reads = (x.numpy, x.data, x.tolist) if getattr(sys, "_is_gil_enabled", lambda: True)() else (x.numpy,)
for read in reads: assert "host memory of a value" in refused(read, by=OutOfMemory)
limited(resource.RLIMIT_AS, space)
assert x.numpy().sum() == 1 << 24 and one() == [2]

gpu = Device["AMD"].runtime
for nbytes in (1 << 40, 1 << 47, 1 << 62, 1 << 63, 1 << 70): refused(gpu.alloc, nbytes, by=OutOfMemory)
for size in (1 << 40, 1 << 62, (1 << 63) - 4096, 1 << 70):
  for at in (0x7000_0000_0000, gpu.port.mmap(-1, 4096)): refused(gpu.kfd.register_host, gpu.gpu, at, size)
at = gpu.port.reserve(1 << 37)
refused(gpu.kfd.register_host, gpu.gpu, at, 1 << 37)
at = gpu.port.mmap(-1, 1 << 37)            # more than the kernel lets GPUs have of the system's memory
why = refused(gpu.kfd.register_host, gpu.gpu, at, 1 << 37, by=DeviceError)
assert "no 137,438,953,472 bytes of system memory" in why, why
assert one() == [2]
"""


def test_limits_have_names() -> None: run_apart(LIMITS)
