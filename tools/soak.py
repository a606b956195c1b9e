"""Soak: a process works, faults, closes, resets, forks and times out for hours, and has to stay as large as it was.

    python -m tinyhw.tools.soak --device AMD --seconds 3600         on the mock gfx1100; progress each half minute
    python -m tinyhw.tools.soak --device NV --seconds 3600 --json    on the mock sm_90; all samples as JSON
    python -m tinyhw.tools.soak --device CUDA --rounds 500 --seed 7   so many rounds, whatever they take
    python -m tinyhw.tools.soak --device NV --keep                   one mock machine all the time, and all it remembers

A round is drawn from `OPERATIONS` by the seed, and every value is held against NumPy's. After `--every` rounds the
devices are closed and garbage is collected: there the process is measured. Verdict: what is measured in the last third
of the time, behind the warm-up, beside the first third, as a slope per hour; more than `MOST` of it is growth (in less
than an hour: that much in the run). The process ends with 1 where something grows or a value is wrong.

Real cards do as well (`MOCKGPU=0`); what kills a card for its process (AMD's faults) is left out there.
"""
from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

import tinyhw
from tinyhw.core.ending import end
from tinyhw.core.errors import DeviceError, WaitTimeout
from tinyhw.devices.registry import Device
from tinyhw.drive.base import Allocation
from tinyhw.tensor.tensor import Tensor
from tinyhw.tools.fuzz.threads import KERNEL, PTX, code_object

CARDS: Final = {"AMD": "gfx1100", "NV": "sm_90", "CUDA": "sm_90"}
WATCHDOG: Final = str(10 ** 15)  # what never ends is ended by its launch's time-out
SIZES: Final = (1, 1000, 75_000, 800_000)  # floats of a copy
NOWHERE: Final = 0x7000_0000_0000
PATIENCE_S: Final = 0.02
WARM_UP: Final = 0.25  # of the time, in which caches fill
MOST: Final = {"resident KiB": 16 << 10, "addresses KiB": 256 << 10, "files": 2.0, "threads": 2.0, "mappings": 40.0,
               "objects": 20_000.0}
"""By how much each may grow in an hour, or in a shorter run: a few bytes for each of thousands of rounds, and addresses
for C's allocator, which takes them 64 MiB at a time."""


@dataclass
class Sample:
  """The process at one moment, in a state that comes again."""
  seconds: float
  rounds: int
  found: dict[str, float]


def measured() -> dict[str, float]:
  """What the process has: memory in KiB, files, threads, mappings, objects that the collector knows."""
  status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
  return {"resident KiB": float(status["VmRSS"].split()[0]), "addresses KiB": float(status["VmSize"].split()[0]),
          "files": float(len(os.listdir("/proc/self/fd"))), "threads": float(status["Threads"]),
          "mappings": float(Path("/proc/self/maps").read_bytes().count(b"\n")), "objects": float(len(gc.get_objects()))}


def census() -> Counter[str]:
  """What must be the same whenever the devices are closed: objects of drivers and mocks by their type, mappings of
  GPUs' memory, files and threads."""
  found: Counter[str] = Counter()
  for thing in gc.get_objects():
    kind = type(thing)
    module = getattr(kind, "__module__", None)
    if kind.__qualname__ in CACHED: continue
    if isinstance(module, str) and module.startswith(("tinyhw.drive", "tinyhw.mock", "tinyhw.core.mapped",
                                                      "tinyhw.core.memory")):
      found[f"{module}.{kind.__qualname__}"] += 1
  found["mappings"] = sum("memfd:" in line for line in Path("/proc/self/maps").read_text().splitlines())
  found["files"], found["threads"] = len(os.listdir("/proc/self/fd")), threading.active_count()
  return found


@cache
def endless(device: str) -> bytes | str:
  """A kernel `count` that never ends."""
  if device != "AMD":
    again = "again: st.global.u32 [%d1], %r1; add.u32 %r1, %r1, 1; bra again;\n"
    return PTX.replace("mix", "count").replace("  ret;\n", again)
  body = """
define amdgpu_kernel void @count(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %k) #0 {
  br label %loop
loop:
  %i = phi i32 [0, %0], [%next, %loop]
  %next = add i32 %i, 1
  store volatile i32 %next, ptr addrspace(1) %p
  br label %loop
}
"""
  attributes = KERNEL[KERNEL.index("attributes #0"):]
  return code_object(body + attributes)


@dataclass
class Soak:
  """The work on one device. `wrong` has what was not as NumPy has it."""
  device: str
  seed: int = 0
  faults: bool = True
  keep: bool = False  # the mock machine stays, with all that it remembers
  rounds: int = 0
  wrong: list[str] = field(default_factory=list)
  done: Counter[str] = field(default_factory=Counter)

  def __post_init__(self) -> None: self.rng = random.Random(f"{self.device} {self.seed}")

  def same(self, what: str, got: object, want: object) -> None:
    """Note a wrong value."""
    if not np.array_equal(np.asarray(got), np.asarray(want)):
      self.wrong.append(f"round {self.rounds}, {what}: {str(got)[:200]}, not {str(want)[:200]}")

  # ---- operations

  def launch(self) -> None:
    """A ready kernel."""
    n, k = self.rng.choice((1, 31, 64)), self.rng.randint(1, 1000)
    data = np.arange(n, dtype=np.int32) * 3
    code = PTX if self.device != "AMD" else code_object()
    out, _ = tinyhw.launch(code, "mix", 1, n, [np.zeros(n, np.int32), data, np.int32(k)], self.device)
    self.same("launch", out, data * k + np.arange(n, dtype=np.int32))

  def tensors(self) -> None:
    """Expressions of a few shapes."""
    shape, k = self.rng.choice(((5,), (3, 4), (64,), (16, 8))), self.rng.randint(1, 3)
    data = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    x = Tensor(data, device=self.device)
    self.same("sum", (x * k + 1).sum().numpy(), (data * k + 1).sum(dtype=np.int32))
    self.same("two", (x * k + (x - k).realize()).numpy(), data * k + data - k)

  def copies(self) -> None:
    """To the device and back, and to another one."""
    data = np.arange(self.rng.choice(SIZES), dtype=np.float32)
    x = Tensor(data, device=self.device).realize()
    self.same("copy", x.numpy(), data)
    self.same("copy to another device", x.to("PYTHON").numpy(), data)

  def thread(self) -> None:
    """A launch by a thread that ends."""
    worker = threading.Thread(target=self.launch)
    worker.start()
    worker.join()

  def late(self) -> None:
    """A launch that never ends, and its time-out."""
    words = np.zeros(4, np.int32)
    try: tinyhw.launch(endless(self.device), "count", 1, 1, [words, words, np.int32(1)], self.device,
                       timeout=PATIENCE_S)
    except WaitTimeout: pass
    else: self.wrong.append(f"round {self.rounds}: an endless kernel ended")

  def fault(self) -> None:
    """A launch with memory that is not there; then the device is closed, or made anew."""
    if not self.faults: return self.close()
    (Tensor([1.0, 2.0], device=self.device) + 1).numpy()
    kernel = next(iter(Device[self.device].kernels.values()))
    spec, nothing = kernel.spec, Allocation(NOWHERE, 8)
    try:
      kernel.program([nothing] * len(spec.buffer_order), [0] * len(spec.variables), spec.grid, spec.block)
      Device[self.device].synchronize()
    except DeviceError: pass
    else: self.wrong.append(f"round {self.rounds}: a fault that nobody saw")
    self.rng.choice((self.reset, self.all_closed, Device[self.device].close))()

  def reset(self) -> None:
    """The device anew."""
    Device.reset(self.device)

  def close(self) -> None:
    """The device closed, with work in its queue at times."""
    if self.rng.random() < 0.5: (Tensor([1.0], device=self.device) * 2).realize()
    Device[self.device].close()

  def all_closed(self) -> None:
    """All devices closed, and the mock machine with them."""
    if not self.keep: return Device.close()
    for device in Device.opened: device.close()

  def fork(self) -> None:
    """A child that does nothing, uses what is not its own, closes, or works; the parent's memory stays."""
    data = np.arange(5000, dtype=np.int32)
    x = Tensor(data, device=self.device).realize()
    x.numpy()
    how = self.rng.choice(("nothing", "end", "use", "close", "work"))
    if not (child := os.fork()): self._child(how, x)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status: self.wrong.append(f"round {self.rounds}: a child that was to {how} ended with {status}")
    self.same(f"memory after a child's {how}", x.numpy(), data)
    self.same(f"a kernel after a child's {how}", (x + 1).numpy(), data + 1)

  def _child(self, how: str, x: Tensor) -> None:
    status = 1
    try:
      if how == "use":
        try: (x + 1).numpy()
        except DeviceError: pass
        else: raise AssertionError("a child used its parent's device")
      if how in ("close", "work"): Device.close()
      if how == "work": assert (Tensor([1, 2], device=self.device) + 1).tolist() == [2, 3]
      if how == "end": end()
      status = 0
    except BaseException: traceback.print_exc()
    finally: os._exit(status)

  # ---- rounds

  def round(self) -> None:
    """One operation, as the seed has it."""
    names, weights = zip(*OPERATIONS.items(), strict=True)
    self.do(self.rng.choices(names, weights)[0])

  def do(self, name: str) -> None:
    """An operation by its name. What it raises is wrong."""
    work: Callable[[], None] = getattr(self, name)
    try: work()
    except Exception: self.wrong.append(f"round {self.rounds}, {name}: {traceback.format_exc()}")
    self.rounds += 1
    self.done[name] += 1

  def settle(self) -> None:
    """The state that comes again: nothing open, no garbage."""
    self.all_closed()
    for _ in range(4): gc.collect()  # what one pass finds may free what the next one finds


CACHED: Final = ("Image", "Freed")  # of which so many are kept: programs that were read, memory that was given back
OPERATIONS: Final = {"launch": 20, "tensors": 20, "copies": 10, "thread": 4, "late": 3, "fault": 10, "reset": 4,
                     "close": 8, "all_closed": 4, "fork": 3}
"""What rounds are drawn from, and how often each comes."""


def slopes(samples: list[Sample]) -> dict[str, float]:
  """By how much each grows in an hour, behind the warm-up: the last third's median less the first one's."""
  if not samples: return {}
  began = samples[-1].seconds * WARM_UP
  late = [s for s in samples if s.seconds >= began]
  third = len(late) // 3
  if not third: return {}
  first, last = late[:third], late[-third:]
  hours = (median(s.seconds for s in last) - median(s.seconds for s in first)) / 3600
  return {name: (median(s.found[name] for s in last) - median(s.found[name] for s in first)) / hours
          for name in samples[0].found} if hours > 0 else {}


def soaked(soak: Soak, seconds: float, rounds: int | None, every: int, tell: Callable[[Sample], None]) -> list[Sample]:
  """Work for so long, or so many rounds; the samples."""
  samples, start = list[Sample](), time.monotonic()
  while soak.rounds < rounds if rounds is not None else time.monotonic() - start < seconds:
    for _ in range(every):
      soak.round()
      if soak.wrong: return samples
    soak.settle()
    samples.append(Sample(time.monotonic() - start, soak.rounds, measured()))
    tell(samples[-1])
  return samples


def main(argv: list[str] | None = None) -> int:
  """The command; 0 where nothing grows and nothing was wrong."""
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.soak", description=(__doc__ or "").partition("\n")[0])
  parser.add_argument("--device", choices=sorted(CARDS), default="AMD")
  parser.add_argument("--seconds", type=float, default=600.0, help="how long (default: %(default)s)")
  parser.add_argument("--rounds", type=int, help="so many rounds instead")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--keep", action="store_true", help="the mock machine stays; without it, it ends now and then, "
                      "and when the process is measured")
  parser.add_argument("--every", type=int, default=50, help="rounds between two samples (default: %(default)s)")
  parser.add_argument("--progress", type=float, default=30.0, metavar="S", help="seconds between two lines of progress")
  parser.add_argument("--json", action="store_true", help="samples, slopes and verdict as JSON on standard output")
  asked = parser.parse_args(argv)
  os.environ.setdefault("MOCKGPU", CARDS[asked.device])
  os.environ.setdefault("MOCKGPU_WATCHDOG", WATCHDOG)
  soak = Soak(asked.device, asked.seed, asked.device != "AMD" or os.environ["MOCKGPU"] not in ("", "0"), asked.keep)
  told = [float("-inf")]

  def tell(sample: Sample) -> None:
    if sample.seconds - told[0] < asked.progress: return
    told[0] = sample.seconds
    print(f"{sample.seconds:7.0f} s {sample.rounds:8,} rounds  "
          + ", ".join(f"{name} {value:,.0f}" for name, value in sample.found.items()), file=sys.stderr, flush=True)

  samples = soaked(soak, asked.seconds, asked.rounds, asked.every, tell)
  found = slopes(samples)
  hours = min(samples[-1].seconds / 3600, 1.0) if samples else 1.0
  grows = {name: value for name, value in found.items() if value * hours > MOST[name]}
  for line in soak.wrong: print(line, file=sys.stderr)
  text = ", ".join(f"{name} {value:+,.1f}" for name, value in found.items())
  if soak.wrong: verdict = f"wrong after {soak.rounds:,} rounds"
  elif not found: verdict = "too short to tell: three samples behind the warm-up are needed"
  else: verdict = f"grows: {', '.join(grows)}" if grows else "flat"
  print(f"{asked.device}: {verdict}; an hour has {text or 'no figure'}", file=sys.stderr)
  if asked.json:
    print(json.dumps({"device": asked.device, "seed": asked.seed, "rounds": soak.rounds, "operations": soak.done,
                      "verdict": verdict, "slopes per hour": found, "wrong": soak.wrong,
                      "samples": [asdict(s) for s in samples]}))
  return 1 if soak.wrong or grows else 0


if __name__ == "__main__": sys.exit(main())
