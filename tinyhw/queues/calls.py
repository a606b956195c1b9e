"""The kernel driver's calls as text: structs by name and field, refusals by their errno."""
from __future__ import annotations

import ctypes
import errno
import os
from typing import Any

from tinyhw.queues.capture import Step
from tinyhw.queues.cuda import text as cuda
from tinyhw.queues.events import CLOCK, Call, Close, Ioctl, Mmap, Munmap, Note, Open, Waited
from tinyhw.queues.world import World
from tinyhw.wire import kfd, rm, uvm


def text(step: Step) -> str:
  """One line; empty for an event that is none of a driver's."""
  event = step.event
  match event:
    case Open(): return f"open({event.path!r}) = {event.fd}{_failed(event.errno)}"
    case Close(): return f"close({event.fd})"
    case Mmap():
      return f"mmap(fd={event.fd}, {event.length:#x} bytes, offset={event.offset:#x}) = {event.address:#x}" \
             f"{_failed(event.errno)}"
    case Munmap(): return f"munmap({event.address:#x}, {event.length:#x})"
    case Ioctl(): return _ioctl(event, step.world)
    case Waited(): return f"waited {event.ns / 1e6:.3f} ms ({CLOCK.value}): {'done' if event.met else 'in vain'}"
    case Call(): return cuda.text(event)
    case Note(): return f"{event.kind}: {event.text}"
  return ""


def _failed(number: int) -> str:
  return f" {errno.errorcode.get(number, number)} ({os.strerror(number)})" if number else ""


def declared(vendor: str, path: str) -> Any:
  """Whose calls those of a file are: what has them by their numbers."""
  return uvm if "uvm" in path else rm if vendor == "nv" else kfd


def _ioctl(event: Ioctl, world: World | None) -> str:
  module = declared(event.vendor, world.files.get(event.fd, "") if world is not None else "")
  found = module.find(event.request)
  argument: Any = None
  if found is not None and found.struct is not None and len(event.after) == ctypes.sizeof(found.struct):
    argument = found.struct.from_buffer_copy(event.after)
  inner: Any = None
  if module is rm and argument is not None:
    struct = rm.parameters(argument)
    if struct is not None and len(event.inner_after) == ctypes.sizeof(struct):
      inner = struct.from_buffer_copy(event.inner_after)
  told: str = (rm.text(event.request, argument, event.result, inner) if module is rm else
               module.text(event.request, argument, event.result))
  return told + _failed(event.errno)
