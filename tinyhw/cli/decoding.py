"""How fast queues are read, and a failing stream shrinks: cases of `tinyhw bench`."""
from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tinyhw.autogen import pm4_gfx11
from tinyhw.cli.measure import Seconds, child, repeat
from tinyhw.cli.trials import MockBench
from tinyhw.core.errors import Error
from tinyhw.queues import listing, summary
from tinyhw.queues.capture import Capture
from tinyhw.queues.shown import Differs, Trial, by_itself
from tinyhw.queues.shrink import Shrinker
from tinyhw.wire import pm4

CARDS = {"AMD": "gfx1100", "NV": "sm_90"}
TRAINING = '''
from tinyhw import Tensor, TinyJit, nn
layers = [nn.Linear(64, 32), nn.Linear(32, 10)]
optimizer = nn.optim.SGD([p for l in layers for p in (l.weight, l.bias)], lr=0.01)
@TinyJit
def step(x, y):
  optimizer.zero_grad()
  loss = ((layers[1](layers[0](x).relu()) - y) ** 2).mean()
  loss.backward()
  optimizer.step()
  return loss.realize()
for i in range(400):
  loss = step(Tensor.rand(16, 64).realize(), Tensor.rand(16, 10).realize())
  if i % 4 == 0: loss.item()
'''

GUILTY = '''
from tinyhw import Device, Tensor
from tinyhw.core.errors import DeviceError
from tinyhw.drive.base import Allocation
x = Tensor([1.0, 2.0]).realize()
for step in range(400):
  x = (x * 1.5 + 1).realize()
  if step == 200:
    kernel = next(k for k in Device[Device.DEFAULT].kernels.values() if k.spec.grid)
    kernel.program([Allocation(0x70_0000_0000, 8)] * 2, [], kernel.spec.grid, kernel.spec.block)
try: x.tolist()
except DeviceError: pass
else: raise AssertionError("no fault")
'''


@contextmanager
def recorded(device: str, program: str = TRAINING) -> Iterator[Path]:
  """A capture of a program on a mock card."""
  with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "recorded.thq")
    child(program, DEV=device, MOCKGPU=CARDS[device], RECORD=str(path))
    yield path


def _each(packets: int, run: Callable[[], object]) -> Seconds: return [s / packets for s in repeat(run)]


def decoded(path: str | Path) -> int:
  """Packets of a capture, each with its line with all fields and what lies at its addresses."""
  capture, packets = Capture(path), 0
  for step in capture:
    if step.follow is None: continue
    packets += len(step.follow.items)
    for _ in listing.lines(listing.Names(capture, step.event.vendor, step.world), step.follow): pass
  return packets


def headed(path: str | Path) -> int:
  """Packets of a capture, counted by their headers."""
  return summary.of_capture(Capture(path, following=False)).packets.total()


def again(device: str, read: Callable[[str | Path], int]) -> Seconds:
  """Seconds a packet of a capture that is read once more: what a packet is made of is known by its words."""
  with recorded(device) as path: return _each(read(path), lambda: read(path))


ONCE: Final = """
import time
from tinyhw.cli.decoding import decoded, headed
start = time.process_time()
packets = {read}({path!r})
print((time.process_time() - start) / packets)
"""
RUNS: Final = 5


def once(device: str, read: Callable[[str | Path], int]) -> Seconds:
  """The same of processes that read it first, as commands do, in seconds of a processor."""
  with recorded(device) as path:
    return [float(child(ONCE.format(read=read.__name__, path=str(path)))) for _ in range(RUNS)]


def words() -> Seconds:
  """Seconds a packet of PM4's words without a capture, counted by its header."""
  made = pm4.stream([pm4_gfx11.SET_SH_REG(reg_offset=0x20C, payload=(1, 2)),
                     pm4_gfx11.DISPATCH_DIRECT(dim_x=1, dim_y=1, dim_z=1, dispatch_initiator=1)]) * 50_000
  return _each(100_000, lambda: summary.of_words("pm4", made))


def shrunk(device: str) -> Seconds:
  """Seconds of a search for the smallest stream that still fails, in one of about 2,000 packets where one launch of 400
  goes to memory that is none. Raises Error where more than a dozen packets are left."""
  with recorded(device, GUILTY) as path:
    capture = Capture(path)
    bench = MockBench(capture, None)
    start = time.perf_counter()
    wanted = by_itself(Trial(capture, bench))
    if wanted is None or isinstance(wanted, Differs): raise Error("nothing fails", where=device)
    made = Shrinker(capture, wanted, bench)
    made.check()
    made.bisect()
    made.shrink()
    seconds = time.perf_counter() - start
    if made.size().packets > 12: raise Error(f"{made.size().packets} packets are left", where=device)
    return [seconds]
