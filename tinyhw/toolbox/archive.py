"""Archives of HIP Record & Replay on a mock card: what was recorded on a card replays here without one.

    for done in Archived(Path("run.hrr"), "gfx1100").run(): print(done)

Memory, copies, fills and kernels are made again in the order of the calls, on one queue; code objects and what the host
copied are the archive's. Where the program had copied memory back, the archive has what it got: that is compared.
"""
from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError, Error, InvalidArgument
from tinyhw.devices.mocked import mock_machine, mock_options
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.drive.base import Allocation
from tinyhw.queues.foreign import hrr
from tinyhw.queues.foreign.hrr_calls import ArchiveCall, ArchivedLaunch, calls
from tinyhw.wire import codeobject
from tinyhw.wire.codeobject.identity import unbundled

_POINTER: Final = 8  # bytes


@dataclass(frozen=True)
class Checked:
  """Memory that the program had copied back: the call, and how it is here. `differing` are bytes; `error` is the
  greatest relative error of what differs, read as floats of 32 bits."""
  call: int
  name: str
  size: int
  differing: int = 0
  error: float = 0.0

  def __str__(self) -> str:
    how = f"{self.differing} bytes differ" if self.differing else "as recorded"
    more = f", as floats of 32 bits by {self.error:.3g} at most" if self.differing and np.isfinite(self.error) else ""
    return f"call {self.call}, {self.name} of {self.size} bytes: {how}{more}"


class Archived:
  """One process's archive. `left_out` counts calls that were not made again, by name; `notes` are lines about what
  the archive does not have."""

  def __init__(self, folder: Path, card: str = "") -> None:
    self._folder = folder
    self._files = {p.stem: p for part in ("code_objects", "blobs") for p in (folder / part).rglob("*") if p.is_file()}
    self.card = card or self._target()
    self.left_out: Counter[str] = Counter()
    self.notes: dict[str, None] = {}
    self.launches = 0
    self._memory: dict[int, tuple[int, Allocation]] = {}  # of the program's addresses: bytes, and where it is here
    self._starts: list[int] = []  # these, in order

  def run(self) -> Iterator[Checked]:
    """Go through the calls; each look of the program's at its results is given. Raises DecodeError for an archive
    that is not understood, DeviceError where a kernel fails."""
    machine, port = mock_machine("AMD", (self.card,), **mock_options())
    runtime = AMDRuntime(port)
    try:
      for call in calls(self._folder):
        if call.kind == "malloc": self._made(runtime, call)
        elif call.kind == "free": self._gone(runtime, call)
        elif call.kind == "fill": self._filled(runtime, call)
        elif call.kind == "copy":
          if (checked := self._copied(runtime, call)) is not None: yield checked
        elif call.launch is not None: self._launched(runtime, call, call.launch)
        elif call.kind == "other": self.left_out[call.name] += 1
    finally:
      runtime.close()
      machine.close()

  # ---- files

  def _target(self) -> str:
    """The processor of the code objects. Raises InvalidArgument where they do not say it."""
    found = {code.arch for path in self._files.values() if (code := _code(path.read_bytes(), None)) is not None}
    if len(found) != 1:
      raise InvalidArgument(f"its code is for {', '.join(sorted(found)) or 'no processor that is known'}",
                            where=str(self._folder), hint="name the mock card: --mockgpu gfx1100")
    return str(found.pop())

  def _content(self, low: int, high: int) -> bytes | None:
    """What has a hash; None where it is not there."""
    found = self._files.get(f"{high:016x}{low:016x}") or self._files.get(f"{low:016x}{high:016x}")
    return None if found is None else found.read_bytes()

  def _object(self, launch: ArchivedLaunch) -> bytes:
    """The code of a kernel: of its object's hash, else the one that has a kernel of this name. Raises DecodeError."""
    given = self._content(*launch.object) if any(launch.object) else None
    for data in ([given] if given is not None else [p.read_bytes() for p in self._files.values()]):
      code = _code(data, self.card)
      if code is not None and launch.kernel in code.kernels: return bytes(code.file)
    raise DecodeError(f"no code object for {self.card} has kernel {launch.kernel}", where=str(self._folder))

  # ---- memory

  def _made(self, runtime: AMDRuntime, call: ArchiveCall) -> None:
    if not call.to or not call.size: return
    if call.host: self.notes[f"{call.name}: what the host stores there without a call is not in an archive"] = None
    made = runtime.alloc(call.size)
    runtime.copyin(made, memoryview(bytes(call.size)))
    self._memory[call.to] = call.size, made
    insort(self._starts, call.to)

  def _gone(self, runtime: AMDRuntime, call: ArchiveCall) -> None:
    if call.to not in self._memory: return
    runtime.free(self._memory.pop(call.to)[1])
    self._starts.remove(call.to)

  def _at(self, address: int, size: int) -> Allocation | None:
    """Where bytes of the program's memory lie here; None for what is none of a card's."""
    i = bisect_right(self._starts, address) - 1
    if i < 0: return None
    start = self._starts[i]
    whole, made = self._memory[start]
    if address + size > start + whole or address >= start + max(whole, 1): return None
    return Allocation((made.address or 0) + address - start, size, made.handle)

  def _filled(self, runtime: AMDRuntime, call: ArchiveCall) -> None:
    here = self._at(call.to, call.size)
    if here is None: return self._unknown(call, call.to)
    value = (call.value & (1 << 8 * call.unit) - 1).to_bytes(call.unit, "little")
    runtime.copyin(here, memoryview(value * (call.size // call.unit)))

  def _copied(self, runtime: AMDRuntime, call: ArchiveCall) -> Checked | None:
    """A copy to, from or on the card; what is copied back is compared."""
    to, come = (self._at(address, call.size) for address in (call.to, call.come))
    content = self._content(*call.hash) if any(call.hash) else None
    if to is not None and come is not None: runtime.copy(to, come, call.size)
    elif to is not None:
      if content is None: self.notes[f"{call.name}: its content is not in the archive"] = None
      else: runtime.copyin(to, memoryview(content[:call.size]))
    elif come is not None and content is not None:
      out = bytearray(call.size)
      runtime.copyout(memoryview(out), come)
      return _checked(call, bytes(out), content)
    elif come is not None: self.notes[f"{call.name}: what it gave is not in the archive, nothing is compared"] = None
    return None

  def _unknown(self, call: ArchiveCall, address: int) -> None:
    self.notes[f"call {call.number}, {call.name}: {address:#x} is in no memory that the calls before have made"] = None
    self.left_out[call.name] += 1

  # ---- kernels

  def _launched(self, runtime: AMDRuntime, call: ArchiveCall, launch: ArchivedLaunch) -> None:
    program = runtime.load_kernel(self._object(launch), launch.kernel)
    places = program.layout.explicit
    if len(places) != len(launch.arguments):
      raise DecodeError(f"a launch of {launch.kernel} has {len(launch.arguments)} arguments, its object says "
                        f"{len(places)}", where=str(self._folder))
    payload = bytearray(max((p.offset + p.size for p in places), default=0))
    for place, argument in zip(places, launch.arguments):
      data = bytearray(argument.data)
      for at in argument.pointers:
        old = int.from_bytes(data[at:at + _POINTER], "little")
        here = self._at(old, 0)
        if here is None and old and len(argument.data) <= _POINTER: return self._unknown(call, old)
        if here is not None: data[at:at + _POINTER] = (here.address or 0).to_bytes(_POINTER, "little")
      payload[place.offset:place.offset + len(data)] = data
    program.launch(bytes(payload), launch.grid, launch.block, dynamic_lds=launch.shared)
    runtime.synchronize()
    self.launches += 1


def archives(folder: Path) -> list[Path]:
  """The folders of a capture's processes. Raises DecodeError for one of a form that is not read."""
  found = hrr.read(folder)
  for archive in found:
    if archive.version != hrr.FORMAT:
      raise DecodeError(f"has records of format {archive.version}, those of {hrr.FORMAT} are read",
                        where=str(archive.path))
  return [archive.path for archive in found]


def _code(data: bytes, target: str | None) -> Any:
  """A code object, or that of a bundle for a processor; None for what is none."""
  try: return codeobject.load(unbundled(data, target))
  except Error: return None


def _checked(call: ArchiveCall, here: bytes, there: bytes) -> Checked:
  a, b = (np.frombuffer(x[:min(len(here), len(there))], np.uint8) for x in (here, there))
  differing = int(np.count_nonzero(a != b)) + abs(len(here) - len(there))
  if not differing: return Checked(call.number, call.name, call.size)
  x, y = (v[:len(v) & ~3].view(np.float32).astype(np.float64) for v in (a, b))
  with np.errstate(all="ignore"): errors = np.where(x != y, np.abs(x - y) / np.abs(y), 0)
  return Checked(call.number, call.name, call.size, differing, float(np.max(errors, initial=0)))
