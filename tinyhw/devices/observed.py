"""What programs want to see of emulated devices, and how long they wait: checks, observers, terms of a thread."""
from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from tinyhw.core.timeout import HELD, Agreed, Terms

if TYPE_CHECKING:
  from tinyhw.core.source import Spot
  from tinyhw.emulator.check.checker import Checker
  from tinyhw.emulator.check.report import Report
  from tinyhw.emulator.observe import Observer


class Observed(ABC):
  """The registry of devices (`tinyhw.devices.registry.Devices`), as far as it is asked what runs on them."""

  def __init__(self) -> None:
    self.agreed: Agreed = {}  # what threads want of their dispatches on emulated devices
    self.check = ""  # checks asked for by a program, in the words of EMU_CHECK, which they replace
    self._checker: Checker | None = None

  @property
  @abstractmethod
  def machine(self) -> Any:
    """The mock machine, or None."""

  @abstractmethod
  def runtimes(self) -> Iterable[Any]:
    """Those of the devices in use."""

  @abstractmethod
  def runtime(self, name: str) -> Any:
    """That of a device."""

  @abstractmethod
  def ready(self) -> None:
    """Have a mock machine, where one is asked for."""

  @abstractmethod
  def synchronize(self) -> None:
    """Wait for every device in use."""

  def findings(self) -> Report:
    """What the checks (EMU_CHECK, or `check`) have found on emulated devices since these were opened."""
    from tinyhw.emulator.check.report import Report
    return Report() if self._checker is None else self._checker.report

  def checker(self) -> Checker | None:
    """The observer that checks emulated dispatches, or None where nobody asked for it; one until `close`."""
    text = self.check or os.environ.get("EMU_CHECK", "")
    if self._checker is None and text not in ("", "0"):
      from tinyhw.emulator.check.checker import checker
      self._checker = checker(text)
      if self._checker is not None: self._checker.spot, self._checker.used = self.spot, self.used
    return self._checker

  def spot(self, pc: int) -> Spot | None:
    """The source line of an instruction of the code that is loaded on the devices in use, where it is known."""
    for runtime in self.runtimes():
      for address, code in getattr(runtime, "loaded", list)():
        if not address <= pc < address + len(code.image): continue
        found: Spot | None = code.source.spot(pc - address)
        return found
    return None

  def used(self) -> dict[int, tuple[int, str]]:
    """(bytes, name) of what was allocated on the devices in use, by address; the name "" of what has none."""
    found: dict[int, tuple[int, str]] = {}
    for runtime in self.runtimes(): found |= getattr(runtime, "used", {})
    return found

  @contextmanager
  def agreeing(self) -> Iterator[Terms]:
    """What this thread wants of its dispatches on emulated devices inside the block, to be filled in."""
    me = threading.get_ident()
    if (terms := self.agreed.get(me)) is not None:
      yield terms
      return
    terms = self.agreed[me] = Terms()
    try: yield terms
    finally: del self.agreed[me]

  @contextmanager
  def observing(self, observer: Observer) -> Iterator[None]:
    """Show an observer all that this thread runs on emulated devices inside the block; they use the reference
    interpreter for it.

    Checks that were asked for rest meanwhile: an emulated dispatch has one observer.
    """
    self.ready()
    self.synchronize()
    with self.agreeing() as terms:
      before, terms.observer = terms.observer, observer
      try:
        yield
        self.synchronize()
      finally: terms.observer = before

  @contextmanager
  def limited(self, name: str, seconds: float | None) -> Iterator[Terms]:
    """Inside the block, what this thread runs on a device may take these seconds of the host's time.

    Emulated devices take off what takes longer, and say so in the terms; waits for others end in WaitTimeout.
    """
    runtime: Any = self.runtime(name)
    # A signal takes the launch off a mock GPU, which a card cannot do: there it ends the wait at once.
    held = HELD if self.machine is not None and name.startswith("AMD") else nullcontext()
    with self.agreeing() as terms, held:
      terms.outside, terms.interrupted = {}, None
      if seconds is None:
        yield terms
        return
      before, terms.seconds = terms.seconds, seconds
      try:
        if not hasattr(runtime, "limited"): yield terms
        else:
          with runtime.limited(seconds): yield terms
      finally: terms.seconds = before
