"""RM's calls as text, and its flags: what goes to /dev/nvidiactl, with objects by class and commands by name.

A word of flags is made of ranges of bits that the headers name; `flags` puts values at their places.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, cast

from tinyhw.autogen import nv_rm, nv_rm_alloc, nv_rm_control, nv_rm_status
from tinyhw.core.errors import EncodeError
from tinyhw.core.ioctl import Ioctl, split
from tinyhw.core.layout import Struct

_REQUESTS: Mapping[type[Any] | None, int] = {call.struct: number for number, call in nv_rm.IOCTLS.items()}
_CLASSES: dict[int, str] = {}


def request(struct: type[Any]) -> int:
  """The request number of the call that takes this struct."""
  return _REQUESTS[struct]


def flags(**values: int) -> int:
  """The word that has these values in the ranges of those names: `flags(NVOS32_ATTR_LOCATION=1)`.

  A name may be of `nv_rm` or of `nv_rm_alloc`. Raises EncodeError for a value that does not fit its range.
  """
  word = 0
  for name, value in values.items():
    place = getattr(nv_rm_alloc, name, None) or getattr(nv_rm, name, None)
    if place is None:
      raise EncodeError("no such range of bits", where=name)
    high, low = place
    if not 0 <= value < 1 << high - low + 1:
      raise EncodeError(f"{value:#x} does not fit {high - low + 1} bits", where=name)
    word |= value << low
  return word


def bits(word: int, place: tuple[int, int]) -> int:
  """The value in a range of bits (hi, lo) of a word."""
  high, low = place
  return word >> low & (1 << high - low + 1) - 1


def find(number: int) -> Ioctl | None:
  """The call that a request number names; None when it is none of RM's."""
  return nv_rm.IOCTLS.get(number)


def name(number: int) -> str:
  """The vendor's name, or the parts of a number that has none."""
  if (call := find(number)) is not None:
    return call.name
  parts = split(number)
  return f"_IOWR({chr(parts.group)!r}, {parts.number:#04x}, {parts.size} bytes)"


def class_name(number: int) -> str:
  """`HOPPER_COMPUTE_A`, or the number of a class that has no name here."""
  if not _CLASSES:
    from tinyhw.autogen.nv_rm_chips import RESOURCES  # only few programs print classes

    _CLASSES.update({n: r.name for n, r in RESOURCES.items()})
  return _CLASSES.get(number, f"{number:#06x}")


def command_name(command: int) -> str:
  """`NV2080_CTRL_CMD_GR_GET_INFO`, or the number of a command that has no name here."""
  call = nv_rm_control.CONTROLS.get(command)
  return f"{command:#010x}" if call is None else call.name


def status_name(status: int) -> str:
  """`NV_ERR_INVALID_CLASS`, or the number."""
  row = nv_rm_status.STATUS.get(status)
  return f"status {status:#x}" if row is None else row[0]


def status_text(status: int) -> str:
  """RM's own words for a status code."""
  row = nv_rm_status.STATUS.get(status)
  return f"an unknown status {status:#x}" if row is None else row[1]


def error_name(xid: int) -> str:
  """What ends a channel, by its number in the kernel's log (Xid)."""
  return nv_rm_status.ERRORS.get(xid, f"Xid {xid}")


def parameters(argument: Any) -> type[Struct] | None:
  """The struct that a call's pointer leads to: parameters of a control command or of an allocation."""
  if isinstance(argument, nv_rm.NVOS54_PARAMETERS):
    call = nv_rm_control.CONTROLS.get(argument.cmd)
    return None if call is None else cast("type[Struct] | None", call.struct)
  if isinstance(argument, nv_rm.NVOS21_PARAMETERS | nv_rm.NVOS64_PARAMETERS):
    return nv_rm_alloc.PARAMETERS.get(argument.hClass)
  return None


def text(number: int, argument: Any = None, result: int | None = None, inner: Any = None) -> str:
  """One line: the call, its argument's fields as they are now, what its pointer leads to (`inner`), and the result.

  A call that RM refuses returns 0; its status is in the argument and is shown by name.
  """
  shown = argument.text() if hasattr(argument, "text") else "" if argument is None else repr(argument)
  called = name(number)
  if isinstance(argument, nv_rm.NVOS54_PARAMETERS):
    called += f" {command_name(argument.cmd)}"
  elif isinstance(argument, nv_rm.NVOS21_PARAMETERS | nv_rm.NVOS64_PARAMETERS):
    called += f" {class_name(argument.hClass)}"
  more = f" {inner.text()}" if hasattr(inner, "text") else ""
  status = getattr(argument, "status", 0)
  told = f" [{status_name(status)}]" if status else ""
  return f"{called}({shown}){more}{told}" + ("" if result is None else f" = {result}")


def copy_of(struct: Any) -> Any:
  """A struct's bytes in a struct of its own: an argument as it was before the call."""
  return type(struct).from_buffer_copy(bytes(memoryview(struct).cast("B")) if ctypes.sizeof(struct) else b"")
