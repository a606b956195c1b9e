"""The capture of what this process submits, if there is one: ports are wrapped where they are made.
`RECORD=run.thq` asks for one, and `recorded.recording`.
"""
from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.ending import Step, at_end
from tinyhw.core.errors import DecodeError, MissingFile, PageFault

if TYPE_CHECKING:
  from tinyhw.mock.cuda.machine import CudaMachine
  from tinyhw.queues.record import Code, Recorder

VENDORS: Final = {"AMD": "amd", "NV": "nv"}  # of the kinds of devices whose drivers have a port


class Recording:
  """The capture of this process, if there is one. `wrap` is called by the registry for each port that it makes."""

  def __init__(self) -> None:
    self.recorder: Recorder | None = None
    self._wanted: str | None = None
    self._pid = os.getpid()

  def wrap(self, kind: str, port: Any, machine: Any, runtimes: Callable[[], list[Any]]) -> Any:
    """The port, or one that records."""
    path = self._wanted or os.environ.get("RECORD", "")
    if not path or kind not in VENDORS: return port
    if self.recorder is None or self._pid != os.getpid(): self._begin(path, runtimes)
    assert self.recorder is not None
    if machine is None: return self.recorder.port(port, VENDORS[kind])
    return self.recorder.port(port, VENDORS[kind], machine.look, machine.still)

  def watch(self, machine: CudaMachine) -> None:
    """Have what a program asks of a CUDA mock recorded, where that is wanted."""
    path = self._wanted or os.environ.get("RECORD", "")
    if not path: return
    from tinyhw.emulator.ptx.launch.footprint import Footprint
    from tinyhw.mock.memory import Refused
    from tinyhw.queues.cuda.record import CudaRecorder  # as below
    if self.recorder is None or self._pid != os.getpid(): self._begin(path, list, cuda=True)
    assert self.recorder is not None
    def read(address: int, size: int) -> bytes | None:
      try: return machine.user.read(address, size)
      except Refused: return None
    def view(address: int, size: int) -> memoryview | None:
      try: return machine.space.view(address, size).data
      except PageFault: return None
    machine.watch = CudaRecorder(self.recorder, read, view, Footprint)

  def _begin(self, path: str, runtimes: Callable[[], list[Any]], **more: Any) -> None:
    from tinyhw.queues.record import Recorder  # the tools of queues load where somebody records
    def codes(vendor: str) -> Iterator[list[Code]]:
      for runtime in runtimes():
        if vendor == VENDORS.get(runtime.name.partition(":")[0]): yield runtime.codes()
    self._pid = os.getpid()
    run = os.environ.get("TINYHW_RECORD_RUN", "")
    head = {"program": sys.argv, "pid": self._pid, "run": run, "mockgpu": os.environ.get("MOCKGPU", ""), **more}
    self.recorder = Recorder(own_path(path, run), head, codes=codes)
    at_end(Step.FILES, self.end)

  def end(self) -> None:
    """Close the capture, if there is one."""
    if self.recorder is not None: self.recorder.close()
    self.recorder, self._wanted = None, None

  def note(self, kind: str, text: str) -> None:
    """Put a line into the capture, if there is one."""
    if self.recorder is not None: self.recorder.note(kind, text)

  def begin(self, path: str | os.PathLike[str]) -> None:
    """A new capture for the devices that open from now on, in place of the one before."""
    self.end()
    self._wanted = os.fspath(path)

  @contextmanager
  def aside(self, path: str | os.PathLike[str]) -> Iterator[None]:
    """A block with a capture of its own; the one before goes on behind it."""
    before = self.recorder, self._wanted
    self.recorder, self._wanted = None, os.fspath(path)
    try: yield
    finally:
      self.end()
      self.recorder, self._wanted = before


def own_path(path: str, run: str) -> str:
  """Where a process records: the path, or beside it, with its number in the name, where another process does or has
  done so in the same run."""
  other = Path(path)
  beside = str(other.with_name(f"{other.stem}.{os.getpid()}{other.suffix}"))
  if not other.is_file() or not other.stat().st_size: return path
  with other.open("rb") as file:
    try: fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError: return beside
  if not run: return path
  from tinyhw.queues.container import Reader  # as above
  try: reader = Reader(other)
  except (DecodeError, MissingFile): return path
  same = reader.head.get("run") == run
  reader.close()
  return beside if same else path


RECORDING: Final = Recording()
