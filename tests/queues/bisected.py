"""Every planted bug and streams of 2,000 packets, shrunk: `python -m tests.queues.bisected [TEXT ...]`.

A line each: what it takes of what there was, how many streams were tried, and how long that took. TEXT chooses those
that have it in their name. The tests shrink a sample (`test_bisect.py`).
"""
from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.queues import aql
from tests.queues.conftest import MACHINES, record
from tests.queues.planted import PROGRAM, Stream
from tests.queues.planted_aql import BUGS
from tests.queues.planted_bugs import argument_at
from tinyhw.cli.trials import MockBench
from tinyhw.core.errors import Error
from tinyhw.queues.capture import Capture
from tinyhw.queues.shown import Differs, Rule, Trial, by_itself
from tinyhw.queues.shrink import Shrinker

LONG = """
from tinyhw import Tensor
x = Tensor([1.0, 2.0, 3.0]).realize()
for _ in range({}): x = (x * 1.5 + 1).realize()
x.tolist()
"""
LAUNCHES = {"AMD": 400, "NV": 400}  # of about 5 packets each


def shrunk(path: Path, rules: tuple[str, ...] = ()) -> Shrinker:
  """What a capture shows by itself, as small as it gets; where that is nothing, a finding of one of these rules."""
  capture = Capture(path)
  bench = MockBench(capture, None)
  trial = Trial(capture, bench)
  wanted = by_itself(trial)
  if wanted is None or isinstance(wanted, Differs): wanted = Rule(rules[0])
  made = Shrinker(capture, wanted, bench)
  made.check()
  made.bisect()
  made.shrink()
  return made


def long_stream(vendor: str, folder: Path) -> Path:
  """A stream of 2,000 packets, with one launch in its middle whose destination is null."""
  path = folder / f"long-{vendor}.thq"
  done = record(path, vendor, LONG.format(LAUNCHES[vendor]))
  assert done.returncode == 0, done.stderr
  stream = Stream(path)
  stream.argument(stream.launch(len(stream.launches) // 2), argument_at(vendor), bytes(8))
  return stream.save(folder / f"long-{vendor}-bug.thq")


def _all(folder: Path) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
  for vendor in MACHINES: yield f"{vendor}: one launch of a long stream", long_stream(vendor, folder), ()
  for vendor, card in MACHINES.items():
    record(folder / f"{vendor}.thq", vendor, PROGRAM, MOCKGPU=f"{card},{card}")
  aql.capture(folder / "AQL.thq")
  for bug in BUGS:
    stream = Stream(folder / f"{bug.vendor}.thq")
    bug.edit(stream)
    yield f"{bug.vendor}: {bug.name}", stream.save(folder / "bug.thq"), bug.rules


def main() -> None:
  """See the module."""
  with tempfile.TemporaryDirectory() as folder:
    for name, path, rules in _all(Path(folder)):
      if sys.argv[1:] and not any(text in name for text in sys.argv[1:]): continue
      start = time.process_time()
      try: made = shrunk(path, rules)
      except Error as error:
        print(f"{name}: {error}", flush=True)
        continue
      before, after = made.before, made.size()
      print(f"{name}: {made.predicate.name}, {after.packets} of {before.packets:,} packets in {after.submissions} of "
            f"{before.submissions} submissions, {after.calls} of {before.calls} calls, {made.trials} trials, "
            f"{time.process_time() - start:.1f} s of the processor{made.stopped and ', ' + made.stopped}", flush=True)


if __name__ == "__main__": main()
