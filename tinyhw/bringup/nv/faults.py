"""Faults: each ends its channel with the right number (Xid) and address; the process, and others, go on.

A channel that dies takes its group along and nothing else. So each rung opens channels of its own, and uses others
afterwards; a fault of a kernel has a process of its own, whose driver is opened anew.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_rm_alloc, nv_rm_control, nv_rm_status, nv_uvm
from tinyhw.bringup.bench import check, same
from tinyhw.bringup.nv.bench import PAGE, Channel, NvBench
from tinyhw.bringup.nv.ladder import NV
from tinyhw.bringup.nv.programs import kernel, stored
from tinyhw.bringup.nv.queue import release
from tinyhw.bringup.rung import Absent, Broken
from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.drive.nv.commands import HostCommands
from tinyhw.drive.nv.rm import Gpu

_LOOK: Final = "robust channel recovery (RC), the error notifier, and the kernel's log for Xid lines"
FAR: Final = 0x6FFF_0000_0000  # an address of no memory
NEAR: Final = 0xF0_0000_0000   # one of 40 bits


def runs(b: NvBench) -> int:
  """A channel of one's own writes a semaphore; what it wrote."""
  page, channel = b.take(PAGE), b.compute_channel("another channel")
  longs = page.bytes().cast("Q")
  longs[0] = 0
  b.finish(channel, release(b.commands(), page.address, 77), _LOOK)
  found = int(longs[0])
  longs.release()
  b.drop(channel)
  b.free(page)
  return found


def lives(b: NvBench) -> str:
  """This process, and another one, have the GPU."""
  same(runs(b), 77, "what another channel of this process writes afterwards", "the group alone dies")
  try: other = b.beside()
  except Absent: return "another channel runs on"
  same(other.call(runs), 77, "what a channel of another process writes afterwards", _LOOK)
  other.end()
  return "another channel and another process run on"


def died(b: NvBench, channel: Channel, submit: Callable[[], object], xid: int) -> str:
  """A submission ends its channel, which is told by a number; then others run."""
  submit()
  notifier = channel.notifier
  if not b.wait(lambda: notifier.status != 0):
    raise Broken(f"the notifier tells of nothing; {channel.queue.ring.pointers()}", f"Xid {xid}", _LOOK)
  same(int(notifier.info32), xid, "the number that the notifier tells of", _LOOK)
  b.rm.kernel_log()
  return f"Xid {xid}"


def _fault_info(b: NvBench, channel: Channel) -> int:
  """The address of the channel's last fault of the MMU, as RM keeps it."""
  p = b.ask(channel.handle, nv_rm_control.NV906F_CTRL_CMD_GET_MMU_FAULT_INFO,
            nv_rm_control.NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS())
  return int(p.addrHi) << 32 | int(p.addrLo)


def _submitting(b: NvBench, channel: Channel, commands: HostCommands) -> Callable[[], object]:
  return lambda: channel.queue.submit(commands.bind(), b.next_value(), timeout_s=b.left)


@NV.rung("faults.method", needs=("queue.second",), seconds=15,
         why="A method that there is not ends the channel, and no other.")
def method(b: NvBench) -> str:
  channel = b.compute_channel("a channel to lose")
  said = died(b, channel, _submitting(b, channel, b.commands().send(host.ILLEGAL(HANDLE=1))),
              nv_rm_status.ROBUST_CHANNEL_PBDMA_ERROR)
  b.drop(channel)
  return f"{said}; {lives(b)}"


@NV.rung("faults.semaphore", needs=("faults.method",), seconds=15,
         why="The host engine's own stores go through the page tables: the page of a fault is told.")
def semaphore(b: NvBench) -> str:
  channel = b.compute_channel("a channel to lose")
  said = died(b, channel, _submitting(b, channel, release(b.commands(), NEAR, 1)),
              nv_rm_status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT)
  same(_fault_info(b, channel) & -PAGE, NEAR, "the page that RM keeps of the fault",
         "NV906F_CTRL_CMD_GET_MMU_FAULT_INFO")
  b.drop(channel)
  return f"{said} at {NEAR:#x}; {lives(b)}"


@NV.rung("faults.copy", needs=("faults.method", "copies.four"), seconds=15,
         why="And those of the copy engine, on another runlist.")
def copy(b: NvBench) -> str:
  page, gpu = b.take(PAGE), b.gpu
  first, last = nv_rm_alloc.NV2080_ENGINE_TYPE_COPY0, nv_rm_alloc.NV2080_ENGINE_TYPE_COPY19
  engines = [e for e in gpu.engines if first <= e <= last]
  own = [e for e in engines if not b.rm.is_graphics_copy(gpu, e)]
  channel = b.channel("a copy channel to lose", (own or engines)[0], b.arch.copy_class, 4)
  said = died(b, channel, _submitting(b, channel, b.copies().begin().copy(page.address, NEAR, 64)),
              nv_rm_status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT)
  same(_fault_info(b, channel) & -PAGE, NEAR, "the page that RM keeps of the fault",
         "NV906F_CTRL_CMD_GET_MMU_FAULT_INFO")
  b.drop(channel)
  b.free(page)
  return f"{said} at {NEAR:#x}; {lives(b)}"


def _read_only(b: NvBench, gpu: Gpu) -> tuple[Any, int]:
  """Memory that is mapped a second time, for reading only; and where."""
  page = b.take(PAGE)
  base = b.rm.reserve(2 << 20)
  b.rm.uvm(nv_uvm.UVM_CREATE_EXTERNAL_RANGE, nv_uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=base, length=PAGE))
  p = nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS(base=base, length=PAGE, gpuAttributesCount=1, rmCtrlFd=b.rm.fd,
                                                hClient=b.rm.root, hMemory=page.handle)
  p.perGpuAttributes[0].gpuUuid = gpu.identity()
  p.perGpuAttributes[0].gpuMappingType = nv_uvm.UvmGpuMappingTypeReadOnly
  b.rm.uvm(nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION, p)
  return page, base


@NV.rung("faults.readonly", needs=("faults.semaphore",), seconds=15,
         why="Pages that the GPU may not write are not written, and it is told.")
def readonly(b: NvBench) -> str:
  page, base = _read_only(b, b.gpu)
  longs = page.bytes().cast("Q")
  longs[0] = 0x1111
  channel = b.compute_channel("a channel to lose")
  said = died(b, channel, _submitting(b, channel, release(b.commands(), base, 1)),
              nv_rm_status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT)
  same(longs[0], 0x1111, "the word in the page that is read-only", "UvmGpuMappingTypeReadOnly")
  b.drop(channel)
  return f"{said}; {lives(b)}"


def _kernel_faults(b: NvBench, name: str, access: str) -> str:
  runtime = b.runtime
  far = runtime.alloc(PAGE)
  far.address = FAR
  kernel(b, name)([far], [1, 0], (1, 1, 1), (1, 1, 1))
  try: runtime.synchronize()
  except MachineFault as error: told = error
  else: raise Broken("nobody tells of it", "a page fault", _LOOK)
  if not isinstance(told, PageFault): raise Broken(f"it is told as {told.headline()}", "a page fault", _LOOK)
  same((told.address or 0) & -PAGE, FAR, "the page that it is told of", "NV906F_CTRL_CMD_GET_MMU_FAULT_INFO")
  said = told.access
  check(said == access, f"it is told as a {said}", f"a {access}", "the fault's type in the kernel's log (ACCESS_TYPE)")
  check(told.kernel == name, f"it is told of kernel {told.kernel}", name, "the order of submissions and the timeline")
  others = lives(b)
  runtime.close()
  del b.__dict__["runtime"]
  same(stored(b, "store", 1, block=(1, 1, 1), numbers=(77, 0))[0], 77, "what a kernel stores on a new device",
       "what of the dead channels is still held")
  return f"a {said} at {told.address:#x} in kernel {told.kernel}; {others}, and a new device in this one"


@NV.rung("faults.write", needs=("waves.store",), seconds=20, alone=True,
         why="A store of a kernel where no memory is: told with address, kind and kernel.")
def write(b: NvBench) -> str: return _kernel_faults(b, "store", "write")


@NV.rung("faults.read", needs=("waves.store", "shapes.behind"), seconds=20, alone=True,
         why="And a load: the kind of access tells a lost pointer from a lost buffer.")
def read(b: NvBench) -> str: return _kernel_faults(b, "reads", "read")


@NV.rung("faults.spins", needs=("waves.branches", "queue.second"), seconds=20,
         why="A kernel that polls memory lets other channels run, and ends when the host stores.")
def spins(b: NvBench) -> str:
  runtime = b.runtime
  address = b.port.mmap(-1, PAGE)
  view = b.port.memory(address, PAGE)
  words = view.cast("I")
  pages = runtime.register_host(address, PAGE)
  kernel(b, "spins")([pages], [0, 0], (1, 1, 1), (1, 1, 1))
  if not b.wait(lambda: bool(words[2])): raise Broken("the kernel does not begin", "it stores a word", _LOOK)
  page = b.take(PAGE)
  page.bytes()[:4] = b"\x4d\0\0\0"
  b.finish(b.copier, b.copies().copy(page.address + 64, page.address, 4), "runlists: one engine holds another")
  same(page.bytes()[64], 77, "what the copy engine copies meanwhile", _LOOK)
  same(words[1], 0, "the word behind the loop, before the host's store", "the kernel's branch")
  words[0] = 9
  runtime.synchronize()
  same(words[1], 9, "the word behind the loop", "volatile loads of the system's memory")
  runtime.unregister_host(pages)
  for held in (words, view): held.release()
  b.port.munmap(address, PAGE)
  b.free(page)
  return "a copy ran meanwhile; the page was the host's own"

