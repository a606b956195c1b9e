"""What the tasks of these tests do."""
from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.tools.campaign.task import Answer

BAD: Final = 13
_kept: list[int] = []


def work(number: int, parameters: Mapping[str, Any]) -> Answer:
  """Notes that it ran, and does with a bad number what the parameters say."""
  if "ran" in parameters:
    with Path(parameters["ran"]).open("a") as file: file.write(f"{number} {os.getpid()} {os.getppid()}\n")
  time.sleep(parameters.get("seconds", 0.0))
  how = parameters.get("how", "")
  if number == BAD and how == "crash": os.kill(os.getpid(), signal.SIGKILL)
  if number == BAD and how == "once" and Path(parameters["ran"]).read_text().count(f"{BAD} ") == 1: os._exit(7)
  if number == BAD and how == "worker": os.kill(os.getppid(), signal.SIGKILL)
  if number == BAD and how == "hang": time.sleep(60)
  if number == BAD and how == "raise": raise InvalidArgument("not what it must be")
  if how == "leak": _kept.extend(os.pipe())
  return Answer("odd" if number % 2 else "even", [number * number],
                [f"{number} at {hex(number)} is divided by ten"] if how == "found" and number % 10 == 0 else [])
