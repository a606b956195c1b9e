"""What a launch finds set: the registers or methods that its queue's packets have written, and the kernel's code.

    for step in capture:
      before = states.step(step)                  # one entry a launch, in order
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import Unsupported
from tinyhw.queues.amd.text import declared
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.world import Launch
from tinyhw.wire import methods, pm4

_FILLER: Final = "s_code_end"
CodeOf = Callable[[bytes, str], dict[str, list[str]]]
"""(code object, its kind) -> lines of each kernel's code."""


def register_lines(launch: Launch) -> list[str]:
  """AMD's registers at a launch, by their offsets."""
  table = declared(launch.item.class_id)
  return [pm4.register_text(at, value, table) for at, value in sorted(launch.state.get("registers", {}).items())]


@dataclass
class Methods:
  """Methods as a channel's headers have set them: (class, byte address) -> value."""
  values: dict[tuple[int, int], int] = field(default_factory=dict)

  def send(self, sent: methods.Send, class_id: int) -> None:
    """A header's methods."""
    for method, value in sent.writes(): self.values[0 if method < methods.HOST_END else class_id, method] = value

  def lines(self) -> list[str]:
    """Each with its class, name and fields."""
    return [_method(class_id, method, value) for (class_id, method), value in sorted(self.values.items())]


def _method(class_id: int, method: int, value: int) -> str:
  if not class_id: return methods.method_text(host, method, value)
  try: return methods.method_text(methods.declared(class_id), method, value)
  except Unsupported: return f"method {method:#06x} of an unknown class = {value:#x}"


class States:
  """Goes through a capture's submissions and knows what each launch finds set."""

  def __init__(self) -> None: self._channels: dict[tuple[str, int], Methods] = {}

  def step(self, step: Step) -> dict[int, list[str]]:
    """Lines of each launch of a submission, by the identity of its item. Each submission must be shown, in order."""
    assert step.follow is not None and step.queue is not None
    channel = self._channels.setdefault((step.event.vendor, step.queue.key), Methods())
    launches = {id(l.item): l for l in step.follow.launches}
    found: dict[int, list[str]] = {}
    for item in step.follow.items:
      if isinstance(item.packet, methods.Send): channel.send(item.packet, item.class_id)
      launch = launches.get(id(item))
      if launch is not None: found[id(item)] = register_lines(launch) or channel.lines()
    return found


class KernelCode:
  """The code of kernels, each code object taken apart once."""

  def __init__(self, capture: Capture, code_of: CodeOf) -> None:
    self._capture, self._code_of = capture, code_of
    self._objects: dict[bytes, dict[str, list[str]]] = {}
    self._shown: dict[tuple[str, int], str] = {}

  def lines(self, vendor: str, launch: Launch) -> list[str]:
    """The kernel's code where it is shown the first time; behind that its name."""
    kernel = self._capture.kernels.get((vendor, launch.entry))
    if kernel is None: return [f"code at {launch.entry:#x}, of which the capture has no object"]
    if (vendor, launch.entry) in self._shown: return [f"code of {kernel.name}: as above"]
    self._shown[vendor, launch.entry] = kernel.name
    for program in reversed(self._capture.programs):
      if program.vendor != vendor or not any(entry == launch.entry for _, entry, _ in program.kernels): continue
      if program.image not in self._objects:
        image = self._capture.reader.blob(program.image)
        self._objects[program.image] = {} if image is None else self._code_of(image, program.kind)
      if found := self._objects[program.image].get(kernel.name): return [f"code of {kernel.name}:", *_ended(found)]
    return [f"code of {kernel.name}: not in the capture, or of a kind that is not shown"]


def _ended(lines: list[str]) -> list[str]:
  """Code without the filler behind its end, which is counted."""
  end = len(lines)
  while end and lines[end - 1].endswith(_FILLER): end -= 1
  return lines[:end] + ([f"and {len(lines) - end} times {_FILLER}"] if end < len(lines) else [])
