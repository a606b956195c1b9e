"""What `tinyhw bench` times of `tinyhw explore`: a run of a small program, and how long a rare race takes to find."""
from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tinyhw.cli.measure import Seconds
from tinyhw.cli.served import Runs, ServedProgram
from tinyhw.core.errors import Error
from tinyhw.core.schedule import Schedule
from tinyhw.core.written import save
from tinyhw.queues.explore import again, explore, shrink

RUNS: Final = 30
# A value that stands for one packet, and a copy that waits for nothing: random orders show it about once in 1,000.
RARE: Final = """
from tinyhw import Device
from tinyhw.drive.amd.commands import ComputeCommands, CopyCommands

runtime = Device["AMD"].runtime
value, copied, other = (runtime.new_signal() for _ in range(3))
writer, reader = ComputeCommands(runtime.arch, "writes"), CopyCommands(runtime.arch, "copies")
for _ in range(16): writer.signal(other.address, "one")
writer.signal(value.address, "one").signal(value.address, "zero")
for _ in range(4): writer.signal(other.address, "one")
for _ in range(3): reader.signal(other.address + 8, "one")
reader.copy("to", "from", "count")
for queue, commands, values in (
    (runtime.compute, writer, {"one": 1, "zero": 0}),
    (runtime.copier, reader, {"one": 1, "to": copied.address, "from": value.address, "count": 3})):
  stream = commands.signal(runtime.timeline.signal.address, "timeline").bind()
  last = runtime.timeline.next()
  for name, number in {**values, "timeline": last}.items(): stream.set(name, number)
  queue.submit(stream, last, (), 60.0)
runtime.wait(last)
assert copied.value == 0, "the copy has seen what was there for one packet"
"""
SMALL: Final = "from tinyhw import Tensor\nassert (Tensor([1.0, 2.0]) + 1).tolist() == [2, 3]\n"


@contextmanager
def running(text: str) -> Iterator[Runs]:
  """Runs of a program on a mock card of AMD's, one at a time."""
  with tempfile.TemporaryDirectory() as folder:
    program = Path(folder) / "program.py"
    save(program, text)
    environment = {**os.environ, "DEV": "AMD", "MOCKGPU": "gfx1100", "EMU": "ref"}
    with Runs(ServedProgram.of([str(program)]), environment, 1, 60) as run:
      for _ in range(2): run(Schedule())  # the first one says what there is to import
      yield run


def small() -> Seconds:
  """A run of a small program, once it is warm."""
  seconds = []
  with running(SMALL) as run:
    for _ in range(RUNS):
      start = time.perf_counter()
      if run(Schedule()).failure: raise Error("the program fails", where="tinyhw explore")
      seconds.append(time.perf_counter() - start)
  return seconds


def rare() -> Seconds:
  """Until the race is found, of 1,000 runs at most, and short; by three seeds. It has to fail again each time."""
  seconds = []
  with running(RARE) as run:
    for seed in range(3):
      start = time.perf_counter()
      search = explore(run, runs=1000, seconds=600, seed=seed)
      if not search.failures: raise Error(f"not found in {search.runs} runs", where="tinyhw explore")
      (_, failed), = search.failures.values()
      short, _ = shrink(run, failed)
      seconds.append(time.perf_counter() - start)
      if again(run, short, 10) != (10, 10): raise Error("its schedule does not fail again", where="tinyhw explore")
  return seconds
