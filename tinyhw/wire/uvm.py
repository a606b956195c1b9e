"""UVM's calls as text: request numbers of /dev/nvidia-uvm by name, arguments by field. Processors go by their UUID."""

from __future__ import annotations

from typing import Any

from tinyhw.autogen import nv_uvm
from tinyhw.core.ioctl import Ioctl
from tinyhw.wire.rm import status_name


def find(number: int) -> Ioctl | None:
  """The call of this number; None when UVM has none."""
  return nv_uvm.IOCTLS.get(number)


def name(number: int) -> str:
  """The vendor's name, or the number of a call that has none."""
  call = find(number)
  return f"UVM call {number:#x}" if call is None else call.name


def uuid_text(raw: bytes) -> str:
  """`GPU-5fd4f087-86f3-7a43-b711-4771313afc50`, of the 16 bytes."""
  h = raw.hex()
  return f"GPU-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def text(number: int, argument: Any = None, result: int | None = None) -> str:
  """One line: the call, its argument's fields as they are now, its status where that is no success, and the result."""
  shown = argument.text() if hasattr(argument, "text") else "" if argument is None else repr(argument)
  status = getattr(argument, "rmStatus", 0)
  told = f" [{status_name(status)}]" if status else ""
  return f"{name(number)}({shown}){told}" + ("" if result is None else f" = {result}")
