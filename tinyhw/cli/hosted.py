"""`tinyhw run` on mock AMD GPUs: the program is a process of its own, whose calls on devices come here by seccomp."""
from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from tinyhw.core.errors import DeviceError, InvalidArgument, Unsupported
from tinyhw.mock.clients.filter import NAMES, need_linux, program
from tinyhw.mock.clients.spawn import start

CLIENTS: Final = {  # what programs find in their environment where they have not said it themselves
  # Rings, signals and arguments lie in memory of the driver's, which is shared, in place of the process's own.
  "HSA_USERPTR_FOR_PAGED_MEM": "0",
}
HOSTS: Final = frozenset({"MOCKGPU", "MOCKGPU_FAULTS", "MOCKGPU_MEMORY", "MOCKGPU_SEED", "MOCKGPU_WATCHDOG"})
"""What the environment says of the cards, which are the host's: a program of tinyhw's makes none of its own."""
_QUICK: Final = "/dev/shm"  # for some hundreds of small files


def is_amd(cards: str) -> bool:
  """Whether cards are AMD's. Raises InvalidArgument where some are and others are not."""
  found = {card.strip().startswith("gfx") for card in cards.split(",") if card.strip()}
  if len(found) > 1:
    raise InvalidArgument(f"cards of two vendors: {cards}", where="--mockgpu", hint="a program has those of one")
  return found == {True}


def words_of(name: str, arguments: Sequence[str], module: bool) -> list[str]:
  """The command: a program that can be run as it is, a module of Python's, or a file for Python."""
  if module: return [sys.executable, "-m", name, *arguments]
  if name.endswith(".py") and os.path.isfile(name) and not os.access(name, os.X_OK):
    return [sys.executable, name, *arguments]
  return [name, *arguments]


def run(cards: str, words: Sequence[str], check: str | None, record: str | None = None) -> int:
  """Run a program on mock cards, tell what was found, and return its exit status; `record` is a capture's file."""
  from tinyhw.devices.mocked import mock_options
  from tinyhw.mock.amd.hosted.device import AmdDevice
  from tinyhw.mock.amd.hosted.machine import HostedMachine
  from tinyhw.mock.clients.host import Host
  need_linux("run")
  watching = None
  if check is not None:
    from tinyhw.emulator.check.checker import checker
    watching = checker(",".join(["report", *filter(None, [check])]))
  options = mock_options(watching)
  if "draws" in options: raise Unsupported("run", "a schedule with programs in other processes", where="AMD")
  if "injected" in options: options["injected"].refuse("an AMD card of a program in another process")
  try: machine = HostedMachine(tuple(c.strip() for c in cards.split(",") if c.strip()), **options)
  except (OSError, MemoryError) as e:
    raise DeviceError(f"this process cannot have the mock machine's memory: {getattr(e, 'strerror', None) or e}",
                      where="AMD", hint="see ulimit -v and ulimit -n") from None
  folder = tempfile.mkdtemp(prefix="tinyhw-", dir=_QUICK if os.access(_QUICK, os.W_OK) else None)
  device = AmdDevice(machine, folder)
  environment = {name: value for name, value in os.environ.items() if name not in HOSTS}
  started = start(words, {**CLIENTS, **environment}, program(NAMES, device.types), folder)
  before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
  try:
    witness = None
    if record is not None:
      from tinyhw.cli.witnessed import Witnessed  # the tools of queues load where somebody records
      witness = Witnessed(Path(record), words, cards)
      device.rung = witness.rung
    host = Host(device, started, words[0], witness)
    device.listener = host.listener
    try: status = host.run()
    finally:
      host.close()
      if witness is not None: witness.close()
  finally:
    for number, handler in before.items(): signal.signal(number, handler)
    shutil.rmtree(folder, ignore_errors=True)  # a guard that was killed has not
  say = _sayer()
  if witness is not None: say(witness.summary())
  for finding in watching.untold if watching is not None else (): say(f"check: {finding}")
  if not host.used(): say(f"{words[0]} has looked for no GPU: /dev/kfd, /dev/dri and /sys/class/drm have mock cards")
  for line in machine.report(): say(line)
  machine.close()
  return status


def _sayer() -> Callable[[str], None]:
  told: set[str] = set()
  def say(line: str) -> None:
    if line not in told: click.echo(f"tinyhw: {line}", err=True)
    told.add(line)
  return say
