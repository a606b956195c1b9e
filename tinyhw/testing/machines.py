"""Mock machines for tests: which one a test gets, what it leaves behind, and how the next test gets a good one."""
from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final

import tinyhw
from tinyhw.core.errors import DeviceError, Error, InvalidArgument
from tinyhw.devices.registry import Device, OpenDevice
from tinyhw.emulator.engines.amdgcn import ENGINES
from tinyhw.testing import SET_DEV

PACKAGE: Final = str(Path(tinyhw.__file__).parent) + os.sep
SHOWN: Final = 20  # lines of a machine's record that a failure shows
DEFAULT_CARD: Final = "gfx1100"


class TensorElsewhere(UserWarning):
  """A test asks for a card that has no tensors, and a tensor of it is on another device."""


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
    names = [part.strip() for card in cards for part in str(card).split(",")]
    names = [DEFAULT_CARD if name == "1" else name for name in names]
    for name in names:
      if not vendor(name) and name not in DECODED:
        raise InvalidArgument(f"no card is called {name!r}", where="mockgpu",
                              hint=f"the mock has {_mocks()}, the emulator {', '.join(DECODED)}")
    known = cls.__dataclass_fields__.keys() - {"cards"}
    if unknown := sorted(options.keys() - known):
      raise InvalidArgument(f"there is no option {', '.join(unknown)}", where="mockgpu",
                            hint=f"there are {', '.join(sorted(known))}")
    if isinstance(check := options.get("check"), str): checker(check)
    for option, choices in (("memory", ("strong", "weak")), ("engine", ENGINES)):
      if (value := options.get(option)) is not None and value not in choices:
        raise InvalidArgument(f"{option}={value!r}", where="mockgpu", hint=f"it is one of {', '.join(choices)}")
    seed, timeout = options.get("seed"), options.get("timeout")
    if seed is not None and not (isinstance(seed, Integral) and int(seed) >= 0):
      raise InvalidArgument(f"seed={seed!r} is no count", where="mockgpu")
    if timeout is not None and not (isinstance(timeout, Real) and 0 < float(timeout) < float("inf")):
      raise InvalidArgument(f"timeout={timeout!r} is no positive number of seconds", where="mockgpu")
    return cls(tuple(names) or (DEFAULT_CARD,), **options)

  @property
  def device(self) -> str | None:
    """The device of the first card, where the mock has all; None: they are the emulator's (EMU), which runs ready
    code."""
    return vendor(self.cards[0]) if all(map(vendor, self.cards)) else None

  @property
  def devices(self) -> tuple[str, ...]:
    """The devices of the cards: ("AMD", "AMD:1"), each vendor's counted by themselves."""
    kinds = [vendor(card) or "AMD" for card in self.cards for _ in range(gpus(card))]
    return tuple(f"{k}:{n}" if (n := kinds[:i].count(k)) else k for i, k in enumerate(kinds))

  def environment(self) -> dict[str, str]:
    """The variables that say so, for this process and those that a test starts."""
    given: dict[str, Any] = {"MOCKGPU": ",".join(self.cards), "MOCKGPU_MEMORY": self.memory, "MOCKGPU_SEED": self.seed,
                             "EMU": self.engine, "TINYHW_TIMEOUT_S": self.timeout}
    return {name: str(value) for name, value in given.items() if value is not None}


def mock_cards() -> dict[str, tuple[str, ...]]:
  """The cards that the mock has, by the kind of their device."""
  from tinyhw.mock.amd.card import NAMES
  from tinyhw.mock.nv.card import CARDS as NVIDIA
  return {"AMD": NAMES, "NV": tuple(NVIDIA)}


def _mocks() -> str: return ", ".join(name for cards in mock_cards().values() for name in cards)


def vendor(card: str) -> str | None:
  """The kind of a card's device; None where the mock has no such card."""
  return next((kind for kind, cards in mock_cards().items() if card in cards), None)


def gpus(card: str) -> int:
  """How many GPUs a card is: an MI300 in a mode (gfx942:cpx) may be several."""
  from tinyhw.mock.amd.card import PARTITIONED
  return len(PARTITIONED.get(card, (card,)))


def checker(kinds: str) -> None:
  """Raises InvalidArgument for names that are no checks."""
  from tinyhw.emulator.check.checker import checker as parse
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
  device = {} if device_chosen else {"DEV": wanted.device, SET_DEV: wanted.device}
  check = Device.check
  if wanted.check: Device.check = "report" if wanted.check is True else f"report,{wanted.check}"
  try:
    with variables(wanted.environment() | device): yield
  finally: Device.check = check


@contextmanager
def warned(wanted: Wanted) -> Iterator[None]:
  """A block that warns, once, of a tensor that is to be on a card which only the emulator has, and is on LLVM."""
  def heard() -> None:
    if Device.chosen is not None: return
    Device.notes_default = None
    cards = ", ".join(card for card in wanted.cards if not vendor(card))
    path, _, line = users_line().rpartition(":")
    text = (f"mockgpu: this tensor is on {Device.DEFAULT}, not on {cards}, which the emulator alone has: it runs ready "
            "code objects (tinyhw.launch) and no tensors. device='LLVM', or DEV, says where a tensor is to be; cards "
            f"with tensors are {_mocks()}")
    warnings.warn_explicit(text, TensorElsewhere, path, int(line))
  before = Device.notes_default
  Device.notes_default = None if wanted.device else heard
  try: yield
  finally: Device.notes_default = before


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
  kinds = {"AMD", "EMU", *Device.machines}
  return [d for d in Device.opened if d.name.partition(":")[0] in kinds]


def in_use() -> set[Any]:
  """The allocations of emulated devices that somebody holds."""
  return {a for d in emulated() for a in list(d.held)}


@dataclass
class Trial:
  """One test on a machine: what was there before it, so that what it leaves behind is its own."""
  before: set[Any] = field(default_factory=in_use)
  lent: set[Any] = field(default_factory=set)  # what fixtures of a wider scope allocated meanwhile: not the test's

  def __post_init__(self) -> None:
    self._machines = Device.machines
    self._record = self._lines()
    if (watch := Device.checker()) is not None: watch.forget()

  def _lines(self) -> list[str]:
    out = []
    for machine in Device.machines.values():
      log = [line.partition(";")[2].strip() for line in machine.kernel_log]
      told = [f for f in machine.findings if not any(f.split(": ", 2)[-1] in line for line in log)]  # stopped queues
      out += [*(f"mock: {line}" for line in told), *(f"kernel log: {line}" for line in log)]
    return out

  def record(self) -> str:
    """What the machine noted during the test."""
    same = all(Device.machines.get(kind) is machine for kind, machine in self._machines.items())
    old = self._record if same else []
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
