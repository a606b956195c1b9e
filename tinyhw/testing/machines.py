"""Mock machines for tests: which one a test gets, what it leaves behind, and how the next test gets a good one."""
from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import tinyhw
from tinyhw.core.errors import DeviceError, Error, InvalidArgument
from tinyhw.device import Device, OpenDevice

PACKAGE: Final = str(Path(tinyhw.__file__).parent) + os.sep
SHOWN: Final = 20  # lines of a machine's record that a failure shows
DEFAULT_CARD: Final = "gfx1100"


@dataclass(frozen=True)
class Wanted:
  """What a test asks for: the machine's cards, and how strict and in which order it works. None is what the process
  has."""
  cards: tuple[str, ...] = (DEFAULT_CARD,)
  check: bool | str = False  # as EMU_CHECK: True for all checks, or names of checks
  memory: str | None = None  # MOCKGPU_MEMORY
  seed: int | None = None  # MOCKGPU_SEED
  engine: str | None = None  # EMU
  timeout: float | None = None  # seconds that a wait for the GPU, or one dispatch, may take

  @classmethod
  def named(cls, cards: Iterable[Any], **options: Any) -> Wanted:
    """Checked: raises InvalidArgument for what is no card or no option."""
    from tinyhw.arch import DECODED
    from tinyhw.mock.amd.card import CARDS
    names = [part.strip() for card in cards for part in str(card).split(",")]
    names = [DEFAULT_CARD if name == "1" else name for name in names]
    for name in names:
      if name not in CARDS and name not in DECODED:
        raise InvalidArgument(f"no card is called {name!r}", where="mockgpu",
                              hint=f"the mock has {', '.join(CARDS)}, the emulator {', '.join(DECODED)}")
    known = cls.__dataclass_fields__.keys() - {"cards"}
    if unknown := sorted(options.keys() - known):
      raise InvalidArgument(f"there is no option {', '.join(unknown)}", where="mockgpu",
                            hint=f"there are {', '.join(sorted(known))}")
    if isinstance(check := options.get("check"), str): checker(check)
    return cls(tuple(names) or (DEFAULT_CARD,), **options)

  @property
  def tensors(self) -> bool:
    """Whether the mock has these cards; otherwise they are the emulator's (device EMU), which runs ready code."""
    from tinyhw.mock.amd.card import CARDS
    return all(card in CARDS for card in self.cards)

  def environment(self) -> dict[str, str]:
    """The variables that say so, for this process and those that a test starts."""
    given: dict[str, Any] = {"MOCKGPU": ",".join(self.cards), "MOCKGPU_MEMORY": self.memory, "MOCKGPU_SEED": self.seed,
                             "EMU": self.engine, "TINYHW_TIMEOUT_S": self.timeout}
    return {name: str(value) for name, value in given.items() if value is not None}


def checker(kinds: str) -> None:
  """Raises InvalidArgument for names that are no checks."""
  from tinyhw.emulator.check import checker as parse
  parse(f"report,{kinds}")


@contextmanager
def variables(values: Mapping[str, str | None]) -> Iterator[None]:
  """Environment variables for a while; None: not set."""
  def put(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
      if value is None: os.environ.pop(name, None)
      else: os.environ[name] = value
  before = {name: os.environ.get(name) for name in values}
  put(values)
  try: yield
  finally: put(before)


@contextmanager
def asked(wanted: Wanted, device_chosen: bool) -> Iterator[None]:
  """A block in which machines are made as wanted. `device_chosen`: the user has set DEV, which then stays."""
  device = {} if device_chosen else {"DEV": "AMD" if wanted.tensors else None}
  check = Device.check
  if wanted.check: Device.check = "report" if wanted.check is True else f"report,{wanted.check}"
  try:
    with variables(wanted.environment() | device): yield
  finally: Device.check = check


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
  """A block in which a dispatch of this thread may take these seconds of the host's time."""
  with Device.agreeing() as terms:
    if seconds is not None: terms.seconds = seconds
    yield


def users_line() -> str:
  """FILE:LINE of the code outside tinyhw that called."""
  frame = sys._getframe(1)
  while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE): frame = frame.f_back
  return f"{os.path.relpath(frame.f_code.co_filename)}:{frame.f_lineno}"


def emulated() -> list[OpenDevice]:
  """The devices in use that are a mock machine's cards or the emulator."""
  return [d for d in Device.opened if d.name.startswith(("AMD", "EMU"))]


def in_use() -> set[Any]:
  """The allocations of emulated devices that somebody holds."""
  return {a for d in emulated() for a in list(d.held)}


@dataclass
class Trial:
  """One test on a machine: what was there before it, so that what it leaves behind is its own."""
  before: set[Any] = field(default_factory=in_use)
  lent: set[Any] = field(default_factory=set)  # what fixtures of a wider scope allocated meanwhile: not the test's

  def __post_init__(self) -> None:
    self._machine = Device.machine
    self._record = self._lines()
    if (watch := Device.checker()) is not None: watch.forget()

  def _lines(self) -> list[str]:
    machine = Device.machine
    if machine is None: return []
    log = [line.partition(";")[2].strip() for line in machine.kernel_log]
    told = [f for f in machine.findings if not any(f.split(": ", 2)[-1] in line for line in log)]  # stopped queues
    return [*(f"mock: {line}" for line in told), *(f"kernel log: {line}" for line in log)]

  def record(self) -> str:
    """What the machine noted during the test."""
    old = self._record if Device.machine is self._machine else []
    new = [line for line in self._lines() if line not in old]
    return "\n".join([*new[:SHOWN], *([f"and {len(new) - SHOWN} more"] if len(new) > SHOWN else [])])

  def failures(self) -> str:
    """Waits for all that the test queued; what failed of it, and what the checks found. Empty where all is well."""
    out = []
    for device in emulated():
      if getattr(device.runtime, "lost", None) is not None: continue  # the test was told
      try: device.synchronize()
      except Error as error: out.append(f"what the test left in the queues failed: {error}")
    found = Device.findings()
    if len(found):
      count = f"{len(found)} hazard{'s' if len(found) > 1 else ''}"
      out.append(f"the checks found {count} (a chip need not forgive them):\n{found}")
    return "\n".join(out)

  def leaks(self, *holders: dict[str, Any]) -> str:
    """What memory of the GPU the test has taken and still holds. Empty where all is back.

    `holders`: what pytest keeps of the test, and nobody uses any more.
    """
    if not in_use() - self.before - self.lent: return ""
    for holder in holders: holder.clear()
    gc.collect()
    left = in_use() - self.before - self.lent
    if not left: return ""
    places: dict[str, list[int]] = {}
    for device in emulated():
      for allocation, place in list(device.held.items()):
        if allocation in left: places.setdefault(f"{device.name}, allocated at {place}", []).append(allocation.size)
    lines = [f"{sum(sizes):,} bytes in {len(sizes)} allocation{'s' if len(sizes) > 1 else ''} on {place}"
             for place, sizes in places.items()]
    return "the test still holds GPU memory after its end: " + "; ".join(lines[:SHOWN])

  def mend(self) -> None:
    """Give back what was lost: each card that faulted or hangs is reset, the others keep what they hold."""
    for device in emulated():
      lost: DeviceError | None = getattr(device.runtime, "lost", None)
      if lost is None:
        try: device.synchronize()
        except Error: pass
        else: continue
      Device.reset(device.name)
