"""KFD and DRM calls as text: request numbers by name, arguments by field."""

from __future__ import annotations

from functools import cache
from typing import Any

from tinyhw.autogen import kfd
from tinyhw.core.ioctl import Ioctl, split


def find(request: int) -> Ioctl | None:
  """The call that a request number names, of /dev/kfd or of a DRM node; None when neither header has it."""
  if (call := kfd.IOCTLS.get(request)) is not None:
    return call
  from tinyhw.autogen import amdgpu_drm  # only few programs look at DRM nodes

  return amdgpu_drm.IOCTLS.get(request)


def known(request: int) -> int:
  """The header's own request for a call whose program has another header: the kernel goes by group and number, and the
  size of the struct may differ (kfd_ioctl and drm_ioctl in Linux). Itself where neither header has the call."""
  if request in kfd.IOCTLS:
    return request
  parts = split(request)
  return _by_number().get((parts.group, parts.number), request)


@cache
def _by_number() -> dict[tuple[int, int], int]:
  from tinyhw.autogen import amdgpu_drm  # as above

  requests = (*amdgpu_drm.IOCTLS, *kfd.IOCTLS)
  return {(split(request).group, split(request).number): request for request in requests}


def name(request: int) -> str:
  """The vendor's name, or the parts of a number that has none."""
  if (call := find(request)) is not None:
    return call.name
  parts = split(request)
  kind = ("_IO", "_IOW", "_IOR", "_IOWR")[parts.direction]
  return f"{kind}({chr(parts.group)!r}, {parts.number:#04x}, {parts.size} bytes)"


def text(request: int, argument: Any = None, result: int | None = None) -> str:
  """One line: the call, its argument's fields as they are now, and the result."""
  shown = argument.text() if hasattr(argument, "text") else "" if argument is None else repr(argument)
  return f"{name(request)}({shown})" + ("" if result is None else f" = {result}")
