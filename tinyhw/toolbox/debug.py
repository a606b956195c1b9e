"""Debuggers of queues on mock GPUs: `debug_queues("run.thq")`, and the way from a launch's packet into its waves.

    with debug_queues("run.thq") as session:
      session.add("kernel r_*")
      print(session.run(), session.place.row.item.packet)
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import DeviceError, Error, InvalidArgument
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.ptx.launch.grid import Dispatch as PtxDispatch
from tinyhw.kernels.debug import Captured, kept
from tinyhw.queues.capture import Capture
from tinyhw.queues.debug import Machines, Session
from tinyhw.toolbox.replay import cards_of, machine_for
from tinyhw.wire import codeobject

if TYPE_CHECKING:
  from tinyhw.core.memory import AddressSpace


def new_session(path: str | os.PathLike[str], mockgpu: str | None = None) -> Session:
  """A session that stands at the beginning of a capture; `mockgpu` as in MOCKGPU, else the capture's own cards."""
  def machines(capture: Capture) -> Machines:
    if not cards_of(capture, mockgpu):
      raise DeviceError("the capture is a real card's, and a card cannot be stepped", where=os.fspath(path),
                        hint="name mock cards of its generation: --mockgpu gfx1100")
    ports, looks, made = machine_for(capture, mockgpu)
    return Machines(ports, looks, dict(zip(looks, made, strict=True)))
  return Session(lambda: Capture(path), machines)


@contextmanager
def debug_queues(path: str | os.PathLike[str], mockgpu: str | None = None) -> Iterator[Session]:
  """A session for a block."""
  session = new_session(path, mockgpu)
  try: yield session
  finally: session.close()


class _Keeper(Observer):
  """Keeps the first dispatch that begins, and has the run stand there."""

  def __init__(self, session: Session) -> None:
    self.session = session
    self.found: Captured | None = None

  def dispatch(self, space: AddressSpace, arch: Any, d: Any) -> None:
    if self.found is not None: return
    found = None if isinstance(d, PtxDispatch) else _kernel(self.session.capture, d.entry_pc)
    self.found = kept(space, arch, d, found)
    self.session.interrupt()


def _kernel(capture: Capture, entry: int) -> Any:
  """(code object, its address, kernel) of an entry point among the programs of a capture; None for an unknown one."""
  for program in capture.programs:
    image = capture.reader.blob(program.image) if program.kind == "amdgcn" else None
    if image is None or not program.address <= entry < program.address + program.size: continue
    try: code = codeobject.load(image)
    except Error: continue  # code of which nothing is known is debugged by its addresses
    for kernel in code.kernels.values():
      if program.address + kernel.start_offset == entry: return code, program.address, kernel
  return None


def launch_at(session: Session, path: str | os.PathLike[str], mockgpu: str | None = None) -> Captured:
  """The launch of the packet at which a session stands, before its first instruction. The session stays where it is:
  the packet is executed on another machine. Raises InvalidArgument where no packet launches a kernel."""
  place = session.place
  if place is None or place.row is None or not place.row.launches or place.standing.busy:
    raise InvalidArgument("no packet that launches a kernel is next", where="wave",
                          hint="break kernel *, then continue")
  with debug_queues(path, mockgpu) as other:
    other.go_to(session.moment)
    keeper = _Keeper(other)
    other.on.machines[place.vendor].observer = keeper
    while keeper.found is None and other.moment.submission == session.moment.submission and not other.ended:
      other.step()
    if keeper.found is None: raise InvalidArgument("its kernel does not begin", where="wave")
    return keeper.found
