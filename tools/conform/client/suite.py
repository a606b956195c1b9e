"""The cases of a generation's packets, methods and ioctls, and the device that they are asked of."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from tinyhw.arch import ARCHES
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.cli.benches import another, bench, load
from tinyhw.devices.mocked import mock_machine, mock_options
from tinyhw.devices.registry import mock_cards, system_way
from tinyhw.tools.conform.client.asking import apart
from tinyhw.tools.conform.client.question import Question
from tinyhw.tools.conform.judge import Result
from tinyhw.tools.conform.patterns import fits

KINDS: Final = ("packet", "method", "ioctl", "control")  # the second part of identifiers
LARGEST: Final = 8 << 20


@cache
def questions(arch: str) -> tuple[Question, ...]:
  """All cases of a generation; none where there are no packets or classes of it."""
  return tuple(_amd(arch) if arch in ARCHES else _nv(arch) if arch in NV_ARCHES else ())


def _amd(arch: str) -> Iterator[Question]:
  from tinyhw.tools.conform.client import aql, kfd_calls, pm4, sdma  # with the packets of its vendor
  for module in (pm4, sdma, aql, kfd_calls): yield from module.questions(ARCHES[arch])


def _nv(arch: str) -> Iterator[Question]:
  from tinyhw.tools.conform.client import nv_compute, nv_copy, nv_host, rm_calls  # with the classes of its vendor
  for module in (nv_host, nv_copy, nv_compute, rm_calls): yield from module.questions(NV_ARCHES[arch])


def chosen(arch: str, only: Sequence[str] = ()) -> list[Question]:
  """Those that fit a pattern."""
  if only and not any(map(_may_fit, only)): return []
  return [q for q in questions(arch) if fits(q.id, only)]


def alone(only: Sequence[str]) -> bool:
  """Whether no case of an instruction can fit: their identifiers have no capitals, and no kind among their parts."""
  return bool(only) and all(p != p.lower() or set(p.split("/")) & {*KINDS} for p in only)


def _may_fit(pattern: str) -> bool:
  """Whether a pattern can be of these: their names are in capitals, or they are asked for by kind."""
  return bool(set(pattern) & set("*?[")) or pattern != pattern.lower() or any(k in pattern for k in KINDS)


def room(vendor: str, index: int) -> Any:
  """A room in the process that calls it, on a card of the system or on a mock machine of its own."""
  cards = mock_cards(vendor)
  made: Any
  if cards is None: made = bench(vendor, system_way(vendor).to, index, LARGEST, None, {}, mocked=False)
  else:
    machine, port = mock_machine(vendor, cards, **mock_options())
    made = bench(vendor, port, index, LARGEST, lambda: another(vendor, machine, index), {}, mocked=True)
  if vendor == "NV":
    from tinyhw.tools.conform.client.nv import NvRoom  # with the classes of its vendor
    return NvRoom(made)
  from tinyhw.tools.conform.client.amd import AmdRoom  # with the packets of its vendor
  return AmdRoom(made)


def run(asked: Sequence[Question], device: str, progress: Callable[[int, int], None] = lambda n, of: None,
        ) -> list[Result]:
  """The results of cases on a device (AMD, NV:1), in order."""
  if not asked: return []
  vendor, _, index = device.partition(":")
  load(vendor)
  out = []
  for found in apart(asked, lambda: room(vendor, int(index or 0))):
    out.append(found)
    progress(len(out), len(asked))
  return out


def generation(device: str) -> str:
  """The generation of a device that has queues; nothing of another one."""
  if not has_queues(device): return ""
  from tinyhw.devices.registry import Device
  runtime: Any = Device[device].runtime
  return str(runtime.arch.name)


def has_queues(device: str) -> bool:
  """Whether a device is a kernel driver's: others have no packets to ask."""
  return device.partition(":")[0] in {"AMD", "NV"}


def rows(asked: Sequence[Question], whole: bool) -> list[tuple[str, str, str, str]]:
  """What cases are of, for the coverage: (name, source, unit, why none can be asked); of the whole suite, also what
  known clients use and none asks."""
  out = list(dict.fromkeys((q.mnemonic, q.source, q.unit, "") for q in asked))
  if whole and asked and asked[0].id.startswith("sm_"):
    from tinyhw.tools.conform.client.unasked import NV
    out += [(name, "recordings", "control" if name.startswith("NV") else "method", why) for name, why in NV.items()]
  return out
