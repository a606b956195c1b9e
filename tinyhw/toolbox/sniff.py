"""Captures of programs that use no driver of tinyhw: their calls of the kernel driver, as `drive.traced` shows them,
and what they put into rings, as a look at their memory shows it (`queues.rings`).

    sniff(Path("run.thq"), ["python", "train.py"])

Each process that opens a device file has a capture: the first that does `run.thq`, others `run.PID.thq`. Its calls are
in it with their structs, before and behind, and what their pointers lead to; and mappings of device files. Every event
is on file before the call returns to its program. Rings are looked at behind each store to a doorbell, as far as the
processor can watch these (`drive.traced`), around each call, at intervals, and before a program ends: a submission is
what lies between two looks at a write pointer.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tinyhw.autogen import linux_trace as linux
from tinyhw.core.ioctl import split
from tinyhw.drive import traced
from tinyhw.drive.traced import ProcessMemory, SystemCall
from tinyhw.queues.calls import declared
from tinyhw.queues.events import Close, Event, Ioctl, Mmap, Munmap, Open
from tinyhw.queues.record import Recorder
from tinyhw.queues.rings import Rings
from tinyhw.queues.world import World
from tinyhw.wire import kfd

DEVICES: Final = {"/dev/kfd": "amd", "/dev/dri/": "amd", "/dev/nvidia": "nv"}
"""What the names of device files begin with, and whose they are."""
CALLS: Final = (linux.NR_open, linux.NR_openat, linux.NR_close, linux.NR_ioctl, linux.NR_mmap, linux.NR_munmap,
                linux.NR_execve, linux.NR_execveat)
EVERY_S: Final = 0.002  # between two looks at rings
_ERRORS: Final = 4095  # the least results are errors (Linux, include/linux/err.h)


class Sniffer:
  """Writes down what `traced.run` shows; `paths` are the captures. `cards` are mock ones, if any."""

  def __init__(self, path: Path, program: Sequence[str], devices: Mapping[str, str] = DEVICES,
               cards: str = "") -> None:
    self._path, self._program, self._devices, self._cards = path, list(program), devices, cards
    self._vendors = tuple(sorted(set(devices.values())))
    self._recorders: dict[int, Recorder] = {}
    self._mapped: dict[int, dict[int, tuple[str, int]]] = {}  # of each process: address -> (vendor, bytes)
    self._rings: dict[int, tuple[Rings, ProcessMemory]] = {}  # of processes that have queues
    self._places: dict[int, tuple[tuple[tuple[int, ...], ...], list[traced.Place]]] = {}  # that are watched
    self._blind: set[int] = set()  # processes whose stores nobody shows
    self._many: set[int] = set()  # processes with more doorbells than can be watched
    self.paths: list[Path] = []
    self.calls = 0

  @property
  def submissions(self) -> int:
    """How many were found in rings."""
    return sum(recorder.submissions for recorder in self._recorders.values())

  def entered(self, call: SystemCall) -> Any:
    self._look(call.process)
    a = call.arguments
    if call.number in (linux.NR_execve, linux.NR_execveat): return None
    if call.number in (linux.NR_open, linux.NR_openat):
      at = call.number == linux.NR_openat
      name = call.text(a[at])
      vendor = self._whose(name or "")
      return None if name is None or not vendor else (vendor, Open(path=name, flags=a[at + 1] & 0xFFFFFFFF))
    if call.number in (linux.NR_mmap, linux.NR_munmap) and call.process in self._rings:
      self._rings[call.process][1].moved()
    if call.number == linux.NR_munmap:
      row = self._mapped.get(call.process, {}).get(a[0])
      return None if row is None else (row[0], Munmap(address=a[0], length=a[1]))
    fd = _signed(a[4] if call.number == linux.NR_mmap else a[0])
    name = call.path(fd)
    vendor = self._whose(name)
    if not vendor: return None
    self._there(call, vendor, fd, name)
    if call.number == linux.NR_close: return vendor, Close(fd=fd)
    if call.number == linux.NR_mmap:
      return vendor, Mmap(fd=fd, length=a[1], offset=a[5], protection=a[2] & 0xFFFFFFFF)
    given = a[1] & 0xFFFFFFFF
    request = kfd.known(given) if vendor == "amd" else given
    before, inner = self._argument(call, vendor, name, request)
    return vendor, Ioctl(fd=fd, request=request, before=before, after=b"", inner_before=inner)

  def returned(self, call: SystemCall, kept: Any, value: int) -> None:
    vendor, event = kept
    failed = -value if -_ERRORS <= value < 0 else 0
    if isinstance(event, Open): event.fd, event.errno = -1 if failed else value, failed
    elif isinstance(event, Mmap):
      event.address, event.errno = 0 if failed else value, failed
      if not failed: self._mapped.setdefault(call.process, {})[value] = vendor, event.length
    elif isinstance(event, Ioctl):
      event.result, event.errno = -1 if failed else value, failed
      name = self._recorder(call.process).world(vendor).files.get(event.fd, "")
      event.after, event.inner_after = self._argument(call, vendor, name, event.request)
    elif failed: return  # what was not taken down is still there
    elif isinstance(event, Munmap): self._mapped[call.process].pop(event.address, None)
    self._tell(call, vendor, event)
    self._look(call.process)

  def moved(self) -> None:
    """Programs may have mapped what no call has told of."""
    for _, memory in self._rings.values(): memory.moved()

  def passed(self) -> None:
    for process in list(self._rings): self._look(process)

  def ending(self, process: int) -> None: self._look(process, True)

  def places(self, process: int) -> Sequence[traced.Place]:
    row, recorder = self._rings.get(process), self._recorders.get(process)
    if row is None or recorder is None or process in self._blind: return ()
    worlds = {vendor: recorder.world(vendor) for vendor in self._vendors}
    version = tuple((len(w.queues), sum(q.closed for q in w.queues), self.calls) for w in worlds.values())
    known = self._places.get(process)
    if known is not None and known[0] == version: return known[1]
    found = [(vendor, *bell) for vendor, world in worlds.items() for bell in world.bells()]
    if len(found) > traced.PLACES:
      if process not in self._many:
        recorder.note("recorder", f"there are more than {traced.PLACES} doorbells: the first are watched, others are "
                                  "not seen")
      self._many.add(process)
    seen = found[:traced.PLACES]
    for vendor in self._vendors: row[0].watches(vendor, [at for who, at, _ in seen if who == vendor])
    self._places[process] = version, [(at, size) for _, at, size in seen]
    return self._places[process][1]

  def stored(self, process: int, address: int) -> None:
    row, recorder = self._rings.get(process), self._recorders.get(process)
    if row is None or recorder is None: return
    for vendor in self._vendors:
      if any(at == address for at, _ in recorder.world(vendor).bells()): row[0].rung(vendor, address)

  def blind(self, process: int, why: str) -> None:
    if process in self._blind: return
    self._blind.add(process)
    self._recorder(process).note("recorder", f"this system lets nobody watch stores ({why}): doorbells are not seen")
    for vendor in self._vendors: self._rings[process][0].watches(vendor, [])

  def became(self, process: int) -> None:
    row = self._rings.pop(process, None)
    self._places.pop(process, None)
    if row is None: return
    row[0].end(self._vendors)
    row[1].close()

  def close(self) -> None:
    """The programs have ended."""
    for process in list(self._rings): self.became(process)
    for recorder in self._recorders.values(): recorder.close()

  def _look(self, process: int, last: bool = False) -> None:
    """Take down what a process has submitted; rings are there from the first queue on."""
    row, recorder = self._rings.get(process), self._recorders.get(process)
    if row is None:
      if recorder is None or not any(recorder.world(v).queues for v in self._vendors): return
      try: memory = ProcessMemory(process)
      except OSError: return  # it has ended
      row = self._rings[process] = Rings(recorder, process, memory), memory
    row[0].look(self._vendors, last)

  def _whose(self, name: str) -> str:
    return next((vendor for start, vendor in self._devices.items() if name.startswith(start)), "")

  def _there(self, call: SystemCall, vendor: str, fd: int, name: str) -> None:
    """A descriptor is used; one that came with fork or exec, or by another way, is told of now."""
    files = self._recorder(call.process).world(vendor).files
    if files.get(fd) != name: self._tell(call, vendor, Open(path=name, flags=0, fd=fd))

  def _argument(self, call: SystemCall, vendor: str, name: str, request: int) -> tuple[bytes, bytes]:
    """The struct that a call of ioctl has now, and what it leads to."""
    address = call.arguments[2]
    found = declared(vendor, name).find(request)
    struct: Any = None if found is None else found.struct
    given = split(call.arguments[1] & 0xFFFFFFFF).size
    size = ctypes.sizeof(struct) if struct is not None else given
    # What a program's own header has not of a struct is zeros for the kernel. NVIDIA's requests tell no size.
    data = call.read(address, min(size, given or size)) if size and address else None
    if data is None: return b"", b""
    data = data.ljust(size, b"\0")
    if struct is None: return data, b""
    world: World = self._recorder(call.process).world(vendor)
    where, length = world.led(struct.from_buffer_copy(data))
    return data, (call.read(where, length) or b"") if length else b""

  def _recorder(self, process: int) -> Recorder:
    found = self._recorders.get(process)
    if found is None:
      path = self._path if not self.paths else self._path.with_name(f"{self._path.stem}.{process}{self._path.suffix}")
      head = {"program": self._program, "pid": process, "mockgpu": self._cards, "sniffed": True}
      found = self._recorders[process] = Recorder(path, head)
      self.paths.append(path)
    return found

  def _tell(self, call: SystemCall, vendor: str, event: Event) -> None:
    recorder = self._recorder(call.process)
    recorder.world(vendor)  # there is one from its first call on
    recorder.tell(vendor, event, call.thread)
    recorder.flush()
    self.calls += 1


def sniff(path: Path, words: Sequence[str], devices: Mapping[str, str] = DEVICES,
          every_s: float = EVERY_S) -> tuple[int, Sniffer]:
  """Run a program and record its calls of device files and what it puts into rings; its exit status, and what was
  recorded. Raises as `traced.run`."""
  path.unlink(missing_ok=True)
  return watch(Sniffer(path, words, devices), words, every_s)


def watch(sniffer: Sniffer, words: Sequence[str], every_s: float = EVERY_S) -> tuple[int, Sniffer]:
  """Run a program that a sniffer watches, to its end."""
  try: return traced.run(words, os.environ, CALLS, sniffer, every_s), sniffer
  finally: sniffer.close()


def _signed(value: int) -> int: return value - (1 << 32) if (value := value & 0xFFFFFFFF) >> 31 else value
