"""Device files that a test serves, and programs that submit by them: `python -m tests.queues.standin OUT VENDOR`.

Files in a folder stand for device files. The kernel refuses a driver's calls of them; this stand-in has watched the
call and answers as the driver would (results in the struct, 0 as the result), and mappings are the files' own pages.
Programs (`python -m tests.queues.standin run FOLDER VENDOR`) make KFD's or RM's calls, and write rings.
"""
from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tinyhw.autogen import hsa, kfd, nv_rm, nv_rm_alloc, nv_rm_control, nv_uvm
from tinyhw.autogen import nv_c8b5 as dma
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.core.ioctl import split
from tinyhw.drive import traced
from tinyhw.drive.traced import SystemCall
from tinyhw.queues.events import Ioctl
from tinyhw.toolbox.sniff import Sniffer, watch
from tinyhw.wire import gpfifo, methods, rm
from tinyhw.wire import kfd as kfd_calls
from tinyhw.wire import pm4 as wire

SIZE: Final = 4096
BELLS: Final = 60 * SIZE  # where the doorbells are in KFD's file
RUNG: Final = 12  # submissions, as fast as they can be
ROUND: Final = 0.05  # seconds in which rings are looked at, many times
_POKEUSER, _RAX = 6, 80  # PTRACE_POKEUSER (linux/ptrace.h); of user_regs_struct (asm/ptrace.h)


def write(value: int, address: int) -> list[int]:
  """Words of a packet that stores a dword."""
  return list(wire.encode(pm4.WRITE_DATA(dst_sel=5, wr_confirm=1, dst_mem_addr=address, payload=(value,))))


# ---- the stand-in

class Served(Sniffer):
  """Answers the calls that it watches."""
  numbers = itertools.count(1)

  def returned(self, call: SystemCall, kept: Any, value: int) -> None:
    _, event = kept
    if isinstance(event, Ioctl) and value == -25:  # ENOTTY: no file's own
      value = 0
      traced._LIBC.ptrace(_POKEUSER, call.thread, ctypes.c_void_p(_RAX), ctypes.c_void_p(0))
      self._answer(call, event)
    super().returned(call, kept, value)

  def _answer(self, call: SystemCall, event: Ioctl) -> None:
    found = kfd_calls.find(event.request) or rm.find(event.request)
    if found is None or found.struct is None: return
    a: Any = found.struct.from_buffer_copy(event.before)
    if event.request == kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU:
      a.handle = next(self.numbers)
      a.mmap_offset = a.handle * SIZE
    elif event.request == kfd.AMDKFD_IOC_CREATE_QUEUE:
      a.queue_id = next(self.numbers)
      a.doorbell_offset = BELLS + 8 * a.queue_id
    elif isinstance(a, nv_rm.NVOS54_PARAMETERS):
      token = nv_rm_control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS(workSubmitToken=next(self.numbers))
      _poke(call, a.params, bytes(token))
    _poke(call, call.arguments[2], bytes(a)[:split(call.arguments[1]).size or ctypes.sizeof(a)])


def _poke(call: SystemCall, address: int, data: bytes) -> None:
  with open(f"/proc/{call.process}/mem", "r+b", buffering=0) as memory:
    memory.seek(address)
    memory.write(data)


# ---- programs

class Client:
  """What a program calls."""

  def __init__(self, folder: Path) -> None:
    self._libc = ctypes.CDLL(None, use_errno=True)
    self.folder, self.kept = folder, list[Any]()

  def ioctl(self, fd: int, request: int, argument: Any) -> Any:
    if self._libc.ioctl(fd, ctypes.c_ulong(request), ctypes.byref(argument)):
      raise OSError(ctypes.get_errno(), "the stand-in has not answered")
    return argument

  def open(self, name: str) -> int: return os.open(self.folder / name, os.O_RDWR)

  def show(self, fd: int, offset: int = 0, size: int = SIZE) -> memoryview:
    """The file's pages."""
    made = mmap.mmap(fd, size, offset=offset)
    self.kept.append(made)
    return memoryview(made)


def address_of(view: memoryview) -> int: return ctypes.addressof(ctypes.c_char.from_buffer(view))


class Amd(Client):
  """Memory that KFD gives has its addresses from 0x10000000 on, and lies elsewhere in the program."""

  def __init__(self, folder: Path) -> None:
    super().__init__(folder)
    self.fd, self.node, self._next = self.open("kfd"), self.open("dri_card"), 0x10000000
    self.ioctl(self.fd, kfd.AMDKFD_IOC_ACQUIRE_VM, kfd.kfd_ioctl_acquire_vm_args(drm_fd=self.node, gpu_id=7))

  def buffer(self, shown: bool = True) -> tuple[int, memoryview]:
    at, self._next = self._next, self._next + SIZE
    a = self.ioctl(self.fd, kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, kfd.kfd_ioctl_alloc_memory_of_gpu_args(
      va_addr=at, size=SIZE, gpu_id=7, flags=kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT))
    return at, self.show(self.node, a.mmap_offset) if shown else memoryview(bytearray(SIZE))

  def queue(self, kind: int = kfd.KFD_IOC_QUEUE_TYPE_COMPUTE, shown: bool = True, shorter: int = 0,
            ) -> tuple[memoryview, memoryview]:
    """A ring and its pointers: the read pointer's 8 bytes, then the write pointer's. The struct of an older header is
    `shorter` by so many bytes."""
    (ring, words), (pointers, values) = self.buffer(), self.buffer(shown)
    self.made = self.ioctl(self.fd, kfd.AMDKFD_IOC_CREATE_QUEUE - (shorter << 16), kfd.kfd_ioctl_create_queue_args(
      ring_base_address=ring, ring_size=SIZE, gpu_id=7, queue_type=kind, read_pointer_address=pointers,
      write_pointer_address=pointers + 8))
    return words.cast("I"), values.cast("Q")


def gone_round(amd: Amd) -> None:
  """A ring is written round, and a little more, between two looks; then a packet that can be seen."""
  (ring, pointers), (target, _) = amd.queue(), amd.buffer()
  pointers[1] = len(ring) + 8
  time.sleep(ROUND)
  for n, word in enumerate(words := write(9, target)): ring[8 + n] = word
  pointers[1] += len(words)
  time.sleep(ROUND)


def half_written(amd: Amd) -> None:
  """AQL packets: a place is taken before its words are there; and one that the engine has taken the header of."""
  ring, pointers = amd.queue(kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
  for at in range(0, len(ring), 16): ring[at] = hsa.HSA_PACKET_TYPE_INVALID
  pointers[1] = 2
  ring[0] = hsa.HSA_PACKET_TYPE_BARRIER_AND
  time.sleep(ROUND)
  ring[16] = hsa.HSA_PACKET_TYPE_BARRIER_OR
  time.sleep(ROUND)
  ring[32] = hsa.HSA_PACKET_TYPE_INVALID
  pointers[0] = pointers[1] = 3
  time.sleep(ROUND)


def unseen(amd: Amd) -> None:
  """A queue whose write pointer nobody has mapped."""
  _, pointers = amd.queue(shown=False)
  pointers[1] = 8


def looked_at(amd: Amd) -> None:
  """Rings are looked at while the program calls nothing, behind an indirect buffer that its own memory is, and when it
  ends."""
  (ring, pointers), (target, _), own = amd.queue(shorter=8), amd.buffer(), memoryview(mmap.mmap(-1, SIZE))
  inner, first = write(1, target), list[int]()
  own[:4 * len(inner)] = b"".join(w.to_bytes(4, "little") for w in inner)
  first = list(wire.encode(pm4.INDIRECT_BUFFER(ib_base=address_of(own), ib_size=len(inner), valid=1)))
  for value, words in enumerate((first, write(2, target), write(3, target))):
    if value: time.sleep(ROUND)
    at = pointers[1]
    for n, word in enumerate(words): ring[at + n] = word
    pointers[1] = at + len(words)
  os._exit(0)


def queues(folder: Path) -> None:
  """All of these, a queue each."""
  amd = Amd(folder)
  for part in (gone_round, half_written, unseen, looked_at): part(amd)


def rung(folder: Path) -> None:
  """Submissions as fast as they can be, each with its doorbell, from two threads, of which one is older than the queue;
  and one whose doorbell never rings. More queues than doorbells can be watched come last."""
  begin, turns = threading.Event(), [threading.Semaphore(n == 0) for n in range(2)]
  def rings(which: int) -> None:
    begin.wait()
    for n in range(which, RUNG, 2):
      turns[which].acquire()
      put(n)
      ctypes.c_uint64.from_address(bell).value = pointers[1]
      turns[1 - which].release()
  def put(value: int) -> None:
    words, at = write(value, target), pointers[1]
    for n, word in enumerate(words): ring[at + n] = word
    pointers[1] = at + len(words)
  older = threading.Thread(target=rings, args=(1,))
  older.start()
  amd = Amd(folder)
  (ring, pointers), (target, _), made = amd.queue(), amd.buffer(), amd.made
  bell = address_of(amd.show(amd.fd, BELLS)) + made.doorbell_offset - BELLS
  time.sleep(ROUND)  # the older thread has been seen to
  begin.set()
  rings(0)
  older.join()
  put(RUNG)
  time.sleep(ROUND)
  for _ in range(4): amd.queue()
  os._exit(0)


def nv_rung(folder: Path) -> None:
  """The same of a channel: all doorbells are one, its value says whose it is."""
  nv = Nv(folder)
  (ring, userd), (_, push, words) = nv.channel(64), nv.buffer()
  nv.alloc(90, 2, nv_rm_alloc.HOPPER_USERMODE_A)
  shown = nv_rm.nv_ioctl_nvos33_parameters_with_fd(fd=(file := nv.open("nvidiactl")))
  shown.params.hMemory, shown.params.length = 90, SIZE
  nv.ioctl(nv.fd, rm.request(nv_rm.nv_ioctl_nvos33_parameters_with_fd), shown)
  bell = address_of(nv.show(file, BELLS)) + nv_rm_alloc.NVC361_NOTIFY_CHANNEL_PENDING
  made = methods.send(4, dma.LINE_LENGTH_IN(VALUE=0x100))
  words.cast("I")[:len(made)] = memoryview(b"".join(w.to_bytes(4, "little") for w in made)).cast("I")
  for n in range(RUNG):
    ring[n] = gpfifo.Segment(push, len(made)).encode()
    userd.GPPut = n + 1
    ctypes.c_uint32.from_address(bell).value = 7
  os._exit(0)


class Nv(Client):
  """Memory of RM: handles are the caller's, the GPU's addresses from 0x20000000 on."""

  def __init__(self, folder: Path) -> None:
    super().__init__(folder)
    self.fd, self.uvm, self._next = self.open("nvidiactl"), self.open("nvidia_uvm"), 10
    self.alloc(1, 0, nv_rm_alloc.NV01_ROOT_CLIENT)
    self.alloc(2, 1, nv_rm_alloc.NV01_DEVICE_0, nv_rm_alloc.NV0080_ALLOC_PARAMETERS())

  def alloc(self, handle: int, parent: int, class_id: int, given: Any = None) -> int:
    self.ioctl(self.fd, rm.request(nv_rm.NVOS64_PARAMETERS), nv_rm.NVOS64_PARAMETERS(
      hRoot=1, hObjectParent=parent, hObjectNew=handle, hClass=class_id,
      pAllocParms=ctypes.addressof(given) if given is not None else 0))
    return handle

  def buffer(self) -> tuple[int, int, memoryview]:
    handle, self._next = self._next, self._next + 1
    self.alloc(handle, 2, nv_rm_alloc.NV01_MEMORY_SYSTEM, nv_rm_alloc.NV_MEMORY_ALLOCATION_PARAMS(size=SIZE))
    address = 0x20000000 + handle * SIZE
    self.ioctl(self.uvm, nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION, nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS(
      base=address, length=SIZE, hClient=1, hMemory=handle))
    file = self.open("nvidiactl")
    shown = nv_rm.nv_ioctl_nvos33_parameters_with_fd(fd=file)
    shown.params.hMemory, shown.params.length = handle, SIZE
    self.ioctl(self.fd, rm.request(nv_rm.nv_ioctl_nvos33_parameters_with_fd), shown)
    return handle, address, self.show(file, handle * SIZE)

  def channel(self, entries: int) -> tuple[memoryview, Any]:
    """A ring of 64-bit entries, and what has GP_PUT."""
    (_, ring, words), (page, _, userd) = self.buffer(), self.buffer()
    params = nv_rm_alloc.NV_CHANNEL_ALLOC_PARAMS(gpFifoOffset=ring, gpFifoEntries=entries)
    params.hUserdMemory[0] = page
    self.alloc(3, 2, nv_rm_alloc.HOPPER_CHANNEL_GPFIFO_A, params)
    self.alloc(4, 3, nv_rm_alloc.HOPPER_DMA_COPY_A, nv_rm_alloc.NVB0B5_ALLOCATION_PARAMETERS())
    token = nv_rm_control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS()
    self.ioctl(self.fd, rm.request(nv_rm.NVOS54_PARAMETERS), nv_rm.NVOS54_PARAMETERS(
      hClient=1, hObject=3, cmd=nv_rm_control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN,
      params=ctypes.addressof(token), paramsSize=ctypes.sizeof(token)))
    return words.cast("Q"), gpfifo.Userd.from_buffer(userd)


def pushed(folder: Path) -> None:
  """Pieces of a pushbuffer, one at a time; then a whole round of the ring between two looks."""
  nv = Nv(folder)
  entries = 8
  (ring, userd), (_, push, words) = nv.channel(entries), nv.buffer()
  for n in range(3):
    made = methods.send(4, dma.LINE_LENGTH_IN(VALUE=0x100 + n))
    words.cast("I")[16 * n:16 * n + len(made)] = memoryview(b"".join(w.to_bytes(4, "little") for w in made)).cast("I")
    ring[n] = gpfifo.Segment(push + 64 * n, len(made)).encode()
    userd.GPPut = n + 1
    time.sleep(ROUND)
  for n in range(3, 3 + entries): ring[n % entries] = gpfifo.Segment(push + 64 * (n % 2), 1).encode()
  time.sleep(ROUND)


PROGRAMS: Final[dict[str, Callable[[Path], None]]] = {"amd": queues, "nv": pushed, "amd_rung": rung, "nv_rung": nv_rung}


def main() -> None:
  """The stand-in, or a program where the first word is `run`."""
  if sys.argv[1] == "run": return PROGRAMS[sys.argv[3]](Path(sys.argv[2]))
  out, part = Path(sys.argv[1]), sys.argv[2]
  folder = out.parent
  for name in ("kfd", "dri_card", "nvidiactl", "nvidia_uvm"): (folder / name).write_bytes(bytes(64 * SIZE))
  words = [sys.executable, "-m", "tests.queues.standin", "run", str(folder), part]
  devices = {f"{folder}/{name}": vendor for name, vendor in (("kfd", "amd"), ("dri_", "amd"), ("nvidia", "nv"))}
  code, found = watch(Served(out, words, devices), words)
  print(found.submissions)
  sys.exit(code)


if __name__ == "__main__": main()
