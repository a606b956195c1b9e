"""`tinyhw bench`: each case beside its rivals, measured in the same run on the same machine."""
from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import click
import numpy as np

from tinyhw.cli import arithmetic, card, checked, decoding, growth, overheads, ptx, schedules, trapped
from tinyhw.cli.measure import Seconds, child, process, repeat, rest, settle
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.devices.registry import Device

NVIDIA = ("NV", "CUDA")


@dataclass(frozen=True)
class Case:
  """A thing to measure. Each function returns the seconds of some runs; a rival of None has no counterpart."""
  name: str
  title: str
  ours: Callable[[], Seconds]
  numpy: Callable[[], Seconds] | None = None
  tinygrad: Callable[[], Seconds] | None = None
  llvm: Callable[[], Seconds] | None = None  # the same tensor program on this processor
  reach: float | None = None  # seconds on a 2-core machine
  unit: str = "s"  # or B: bytes; or what a run's seconds are of one of, where many a second is the figure


@dataclass
class Result:
  case: str
  title: str
  reach: float | None
  unit: str = "s"
  runs: dict[str, Seconds] = field(default_factory=dict)

  def median(self, who: str) -> float | None: return statistics.median(self.runs[who]) if who in self.runs else None


@contextmanager
def engine(name: str, **more: str) -> Iterator[None]:
  """The AMD emulator's engine (`EMU`) and other variables for what runs inside; devices open anew."""
  from tinyhw import Device
  wanted = {"EMU": name, **more}
  before = {variable: os.environ.get(variable) for variable in wanted}
  Device.close()
  os.environ.update(wanted)
  try: yield
  finally:
    Device.close()
    for variable, value in before.items():
      if value is None: del os.environ[variable]
      else: os.environ[variable] = value


def matmul_on_mock(emulator: str) -> Seconds:
  with engine(emulator): return matmul("AMD")


def matmul(device: str, n: int = 256) -> Seconds:
  """Warm n x n x n float32 matmul through Tensor: schedule, cached kernel, run, wait."""
  from tinyhw import Device, Tensor
  rng = np.random.default_rng(0)
  host = [rng.random((n, n), dtype=np.float32) for _ in range(2)]
  a, b = (Tensor(x, device=device).realize() for x in host)
  def run() -> None:
    (a @ b).realize()
    Device[device].synchronize()
  if not np.allclose((a @ b).numpy(), host[0] @ host[1], rtol=1e-4): raise Error("wrong product", where=device)
  rest()
  if device == "AMD" and os.environ.get("EMU") != "ref": settle(run)
  return repeat(run)


def numpy_matmul(n: int = 256) -> Seconds:
  a, b = (np.random.default_rng(0).random((n, n), dtype=np.float32) for _ in range(2))
  return repeat(lambda: a @ b)


def tinygrad_matmul(device: str, n: int = 256) -> Seconds:
  """The same in tinygrad, in a process of its own; once, since a run takes long there."""
  code = (f"import time, numpy as np\nfrom tinygrad import Tensor, Device\n"
          "r = np.random.default_rng(0)\n"
          f"a, b = (Tensor(r.random(({n}, {n}), dtype=np.float32)).realize() for _ in range(2))\n"
          "(a @ b).numpy()\ns = time.perf_counter(); (a @ b).numpy(); print(time.perf_counter() - s)")
  return [float(child(code, DEV=device, **{device: "1"}))]


def wmma(n: int = 512) -> Seconds:
  """`tinyhw.launch` of an n x n x n f16 product by v_wmma_f32_16x16x16_f16, with the copies in and out."""
  from tinyhw import launch
  from tinyhw.cli.wmma import code
  rng = np.random.default_rng(0)
  a, b = (rng.standard_normal((n, n)).astype(np.float16) for _ in range(2))
  c = np.zeros((n, n), np.float32)
  def run() -> np.ndarray: return launch(code(n), "product", (n // 32, n // 32), (32,), [a, b, c])[2]
  with engine("jit"):
    if not np.allclose(run(), a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-4, atol=1e-4):
      raise Error("wrong product", where="WMMA")
    rest()
    return repeat(run)


def by_units(units: str, n: int = 1024) -> Seconds:
  """Warm n x n x n float16 matmul through Tensor on the mock, with matrix units ("1") or without ("0")."""
  from tinyhw import Device, Tensor
  rng = np.random.default_rng(0)
  host = [(rng.standard_normal((n, n)) / 8).astype(np.float16) for _ in range(2)]
  with engine("jit", TC=units):
    a, b = (Tensor(x, device="AMD").realize() for x in host)
    def run() -> None:
      (a @ b).realize()
      Device["AMD"].synchronize()
    right = host[0].astype(np.float32) @ host[1].astype(np.float32)
    if not np.allclose((a @ b).numpy(), right, rtol=2e-3, atol=2e-3): raise Error("wrong product", where=f"TC={units}")
    rest()
    settle(run)
    return repeat(run)


def a_million(device: str, adds: bool) -> Seconds:
  """The sum of two tensors of 2**20 floats, or the sum of one's elements, from realized tensors to the value on the
  device: graph, cached kernels, launches, wait."""
  from tinyhw import Device, Tensor
  rng = np.random.default_rng(0)
  x, y = (Tensor(rng.random(1 << 20, dtype=np.float32), device=device).realize() for _ in range(2))
  def run() -> Tensor:
    result = (x + y if adds else x.sum()).realize()
    Device[device].synchronize()
    return result
  if adds: right = np.array_equal(run().numpy(), x.numpy() + y.numpy())
  else: right = np.isclose(run().item(), x.numpy().sum(dtype=np.float64), rtol=1e-5)
  if not right: raise Error("wrong sum", where=device)
  if device == "AMD": settle(run)
  return repeat(run)


def a_million_in_numpy(adds: bool) -> Seconds:
  x, y = (np.random.default_rng(0).random(1 << 20, dtype=np.float32) for _ in range(2))
  return repeat((lambda: x + y) if adds else x.sum)


def a_million_in_tinygrad(adds: bool) -> Seconds:
  """On its own emulator, in a process of its own."""
  code = ("import time, numpy as np\nfrom tinygrad import Tensor, Device\n"
          "r = np.random.default_rng(0)\n"
          "x, y = (Tensor(r.random(1 << 20, dtype=np.float32)).realize() for _ in range(2))\n"
          f"def run(): {'(x + y)' if adds else 'x.sum()'}.realize(); Device[Device.DEFAULT].synchronize()\n"
          "run(); s = time.perf_counter(); run(); print(time.perf_counter() - s)")
  return [float(child(code, DEV="PYTHON", PYTHON="1"))]


def instruction() -> Seconds:
  """Time of one instruction of one wave in the compiled 256x256x256 matmul, on one processor: a whole warm run (graph,
  launch, wait) through its number of instructions."""
  from tinyhw import Device, Tensor
  rng = np.random.default_rng(0)
  with engine("jit", TINYHW_THREADS="1"):
    a, b = (Tensor(rng.random((256, 256), dtype=np.float32), device="AMD").realize() for _ in range(2))
    def run() -> None:
      (a @ b).realize()
      Device["AMD"].synchronize()
    settle(run)
    runtime: Any = Device["AMD"].runtime
    machine = runtime.port.machine
    before = machine.executed
    seconds = repeat(run, warm=0)
    each = (machine.executed - before) / len(seconds)
  return [s / each for s in seconds]


def first_launch(cached: bool) -> Seconds:
  """First launches of kernels of about 1,000 instructions in fresh processes; cached: that another process has run."""
  seconds = []
  with tempfile.TemporaryDirectory() as folder:
    for seed in range(5):
      code = f"from tinyhw.cli.cold import first_launch; print(first_launch({seed}))"
      for _ in range(1 + cached): out = child(code, EMU="jit", MOCKGPU="1", TINYHW_CACHE=folder)
      seconds.append(float(out))
  return seconds


def first_ptx(cached: bool) -> Seconds:
  with tempfile.TemporaryDirectory() as folder: return ptx.first_launches(cached, folder)


def on_nvidia(measure: Callable[[str], Seconds], device: str) -> Seconds:
  """On a mock machine of one card, with compiled kernels."""
  with engine("jit", MOCKGPU=ptx.TARGET): return measure(device)


RECORDED_ON = ("AMD", "gfx1100"), ("NV", ptx.TARGET)
FIRST = "from {m} import Tensor; assert (Tensor([1, 2, 3]) + 1).tolist() == [2, 3, 4]"
CASES = (
  Case("matmul-python", "PYTHON: 256x256x256 f32 matmul, warm", lambda: matmul("PYTHON"), numpy_matmul,
       lambda: tinygrad_matmul("PYTHON"), reach=0.4),
  Case("matmul-amd", "AMD mock: the same, reference interpreter", lambda: matmul_on_mock("ref"), numpy_matmul,
       reach=0.15),
  Case("matmul-jit", "AMD mock: the same, compiled (LLVM: the same tensor program on this processor, at most 10x)",
       lambda: matmul_on_mock("jit"), numpy_matmul, llvm=lambda: matmul("LLVM")),
  Case("instruction", "AMD mock: an instruction of a wave of that, compiled, one core (150 M/s)", instruction,
       reach=1 / 150e6),
  Case("add-amd", "AMD mock: sum of two tensors of 1M floats, warm", lambda: a_million("AMD", True),
       lambda: a_million_in_numpy(True), lambda: a_million_in_tinygrad(True), lambda: a_million("LLVM", True), 0.02),
  Case("sum-amd", "AMD mock: sum of 1M floats, warm", lambda: a_million("AMD", False),
       lambda: a_million_in_numpy(False), lambda: a_million_in_tinygrad(False), lambda: a_million("LLVM", False),
       0.015),
  Case("cold-jit", "AMD mock: first launch of a new 1,000-instruction kernel, compiled",
       lambda: first_launch(False), reach=0.15),
  Case("cached-jit", "AMD mock: the same, compiled by another process before", lambda: first_launch(True), reach=5e-3),
  Case("wmma-jit", "AMD mock: 512x512x512 f16 matmul by WMMA, compiled, with copies", wmma, lambda: numpy_matmul(512),
       reach=0.05),
  Case("tc-amd", "AMD mock: 1024x1024x1024 f16 matmul by WMMA, compiled (LLVM: the mock without units, at most 0.25x)",
       lambda: by_units("1"), lambda: numpy_matmul(1024), llvm=lambda: by_units("0")),
  Case("launch-amd", "AMD mock: launch of a tiny kernel, raw", lambda: overheads.launches("AMD"), reach=30e-6),
  Case("run-ioctl", "tinyhw run, gfx1100: an ioctl of /dev/kfd", trapped.ioctls, reach=20e-6),
  Case("run-open", "tinyhw run, gfx1100: a render node opened and closed", trapped.opens, reach=20e-6),
  Case("run-amd", "tinyhw run, gfx1100: a program that opens /dev/kfd, whole", trapped.whole, reach=0.4),
  *(Case(f"check-{name}-{cpu}", f"EMU, {cpu}: 64K threads {title}, under all checks (LLVM: without, at most 5x)",
         partial(checked.launches, name, cpu, True), llvm=partial(checked.launches, name, cpu, False))
    for cpu in ("gfx1100", "gfx942", "sm_80")
    for name, title in (("plain", "a product each"), ("lds", "sum rows in LDS"), ("reduce", "sum blocks in LDS"),
                        ("matmul", "multiply matrices by tiles in LDS"), ("scratch", "with scratch"),
                        *([("copies", "sum rows that cp.async brings"), ("calls", "sum rows in a function"),
                          ("barriers", "half of which fill tiles for the others, by barriers of some warps"),
                          ("locks", "whose warps add to a sum under a lock"),
                          ("wmma", "multiply tiles in LDS by wmma"),
                          ("generic", "sum rows, odd ones of global memory, the others in LDS")]
                          if cpu == "sm_80" else []))),
  *(Case(f"check-{name}-sm_90", f"EMU, sm_90: 64K threads {title}, under all checks (LLVM: without, at most 5x)",
         partial(checked.launches, name, "sm_90", True), llvm=partial(checked.launches, name, "sm_90", False))
    for name, title in (("hopper", "multiply by wgmma what copies in bulk bring"),
                        ("cluster", "in clusters sum each other's rows"),
                        ("reduced", "add rows to global memory in bulk"))),
  Case("check-blackwell-sm_100",
       "EMU, sm_100: 64K threads multiply by tcgen05 what copies bring, under all checks (LLVM: without, at most 5x)",
       partial(checked.launches, "blackwell", "sm_100", True),
       llvm=partial(checked.launches, "blackwell", "sm_100", False)),
  *(Case(f"record-{d.lower()}", f"{d} mock: training step of 784-128-10, recorded (LLVM: not recorded, at most 1.3x)",
         partial(overheads.recorded, d, cards, True), llvm=partial(overheads.recorded, d, cards, False))
    for d, cards in RECORDED_ON),
  *(Case(f"capture-{d.lower()}", f"{d} mock: the capture of 80 such steps (LLVM: memory that they name, at most 0.05x)",
         partial(overheads.captured, d, cards, True), llvm=partial(overheads.captured, d, cards, False), unit="B")
    for d, cards in RECORDED_ON),
  Case("copy-amd", "AMD mock: 64 bytes in and out", overheads.copies, reach=10e-6),
  Case("explore-run", "AMD mock: a small program under one schedule of tinyhw explore", schedules.small,
       reach=1 / 17),
  Case("explore-rare", "AMD mock: a race that one random schedule in 1,000 shows, found and made short",
       schedules.rare, reach=60.0),
  Case("replay-llvm", "LLVM: a tiny kernel replayed by TinyJit", overheads.replayed, reach=5e-6),
  Case("train-jit", "LLVM: training step of 784-128-10, replayed", lambda: overheads.training(True), reach=0.3e-3),
  Case("train-eager", "LLVM: the same, as it is", lambda: overheads.training(False), reach=3e-3),
  Case("first-step", "LLVM: a convnet's first training step, imports to loss", lambda: overheads.first_step(False),
       reach=1.5),
  Case("first-step-kept", "LLVM: the same, with kernels that another process has left",
       lambda: overheads.first_step(True), reach=0.5),
  Case("first-amd", "AMD mock: Tensor([1,2,3])+1, whole process",
       lambda: process(FIRST.format(m="tinyhw"), DEV="AMD"),
       lambda: process("import numpy as n; assert (n.array([1, 2, 3]) + 1).tolist() == [2, 3, 4]"), reach=1.0),
  Case("first-llvm", "LLVM: Tensor([1,2,3])+1, whole process", lambda: process(FIRST.format(m="tinyhw"), DEV="LLVM"),
       None, lambda: process(FIRST.format(m="tinygrad"), DEV="PYTHON", PYTHON="1")),
  Case("import", "import tinyhw, whole process", lambda: process("import tinyhw"), lambda: process("import numpy"),
       lambda: process("import tinygrad"), reach=0.2),
  Case("matmul-ptx", "PTX: 256x256x256 f32 matmul for sm_90, compiled (LLVM: the same on this processor, at most 3x)",
       lambda: ptx.matmul()[0], numpy_matmul, llvm=lambda: matmul("LLVM")),
  Case("instruction-ptx", "PTX: an instruction of a warp of that, one core (250 M/s)", ptx.instruction,
       reach=1 / 250e6),
  *(Case(f"{unit}-ptx", f"PTX: 512x512x512 bf16 matmul by {unit}, compiled", partial(ptx.by_units, unit),
         lambda: numpy_matmul(512)) for unit in ("mma", "wmma")),
  Case("cold-ptx", "PTX: first launch of a new 1,000-instruction kernel", lambda: first_ptx(False), reach=0.09),
  Case("cached-ptx", "PTX: the same, compiled by another process before", lambda: first_ptx(True), reach=5e-3),
  *(Case(f"matmul-{d.lower()}", f"{d} mock: 256x256x256 f32 matmul, compiled, by its driver (LLVM: at most 3x)",
         partial(on_nvidia, ptx.mock_matmul, d), numpy_matmul, llvm=lambda: matmul("LLVM")) for d in NVIDIA),
  *(Case(f"launch-{d.lower()}", f"{d} mock: launch of a tiny kernel, raw", partial(on_nvidia, overheads.launches, d))
    for d in NVIDIA),
  *(Case(f"first-{d.lower()}", f"{d} mock: Tensor([1,2,3])+1, whole process",
         partial(process, FIRST.format(m="tinyhw"), DEV=d, MOCKGPU=ptx.TARGET), reach=1.0) for d in NVIDIA),
  Case("matmul-llvm", "LLVM: 256x256x256 f32 matmul, warm", lambda: matmul("LLVM"), numpy_matmul),
  *(Case(f"matmul-{n}", f"LLVM: {n}x{n}x{n} f32 matmul (at most 1.6x)", w.ours, w.theirs)
    for n, w in ((512, arithmetic.PRODUCT_512), (1024, arithmetic.PRODUCT_1024))),
  *(Case(f"beam-{name}", f"LLVM: {title} with BEAM=2 (LLVM: without)", w.searched, w.theirs, llvm=w.ours)
    for name, title, w in (("512", "512x512x512 f32 matmul (at most 1.25x)", arithmetic.PRODUCT_512),
                           ("1024", "1024x1024x1024 f32 matmul (at most 1.25x)", arithmetic.PRODUCT_1024),
                           ("softmax", "softmax of 512x1024", arithmetic.SOFTMAX))),
  *(Case(f"{name}-16m", f"LLVM: {title} of 16M floats (at most 1x)", w.ours, w.theirs) for name, title, w in (
    ("add", "a + b", arithmetic.ADD), ("sum", "sum", arithmetic.SUM), ("chain", "(2a + b) a - b", arithmetic.CHAIN))),
  Case("softmax-llvm", "LLVM: softmax of 512x1024 (tinygrad: at most 0.5x)", arithmetic.SOFTMAX.ours,
       arithmetic.SOFTMAX.theirs, arithmetic.SOFTMAX.tinygrads),
  Case("conv-llvm", "LLVM: convolution of 4x16x32x32 by 32x3x3 (tinygrad: at most 0.5x)", arithmetic.CONVOLUTION.ours,
       None, arithmetic.CONVOLUTION.tinygrads),
  Case("new-llvm", "LLVM: first result of a new expression of two kernels", arithmetic.new_kernel, reach=25e-3),
  *(Case(f"transformer-{layers}", f"LLVM: first training step of a transformer of {layers} layers, graph to loss",
         partial(overheads.transformer, layers), reach=5.0) for layers in (6, 12)),
  *(Case(f"decode-{d.lower()}", f"a capture of training on the {d} mock, decoded: fields and names of addresses",
         partial(decoding.again, d, decoding.decoded), reach=1 / 200e3, unit="packets") for d in decoding.CARDS),
  *(Case(f"summary-{d.lower()}", f"the same capture of {d}'s, counted by headers",
         partial(decoding.again, d, decoding.headed), reach=1e-6, unit="packets") for d in decoding.CARDS),
  *(Case(f"decode-once-{d.lower()}", f"a capture of training on the {d} mock, decoded by a new process",
         partial(decoding.once, d, decoding.decoded), reach=1 / 200e3, unit="packets") for d in decoding.CARDS),
  *(Case(f"summary-once-{d.lower()}", f"a capture of training on the {d} mock, counted by a new process",
         partial(decoding.once, d, decoding.headed), reach=1e-6, unit="packets") for d in decoding.CARDS),
  Case("summary-words", "PM4's words, counted by headers", decoding.words, reach=1e-6, unit="packets"),
  *(Case(f"shrink-{d.lower()}", f"{d}: 2,000 packets with one guilty one, shrunk to the smallest that fails",
         partial(decoding.shrunk, d), reach=60.0) for d in decoding.CARDS),
  *(Case(f"lstm-{d.lower()}", f"{d}: loss and gradients of an LSTM of 2 layers and 12 steps, first call",
         partial(growth.lstm, d), reach=reach) for d, reach in (("LLVM", 1.5), ("AMD", 4.0), ("NV", 4.0))),
  *(Case(f"alloc-{d.lower()}", f"{d} mock: 4 KiB more beside 4,000 others (LLVM: beside 50, at most 1x)",
         partial(growth.allocation, d, 4000), llvm=partial(growth.allocation, d, 50), reach=60e-6)
    for d in ("AMD", "NV", "CUDA")),
  Case("list-1m", "LLVM: a tensor of a list of a million floats (at most 4x)", partial(growth.listed, False),
       partial(growth.listed, True)),
  Case("digits", "LLVM: a convnet learns digits (97 % right), imports to the end", overheads.digits, reach=30.0),
)


def show_figure(value: float | None, unit: str) -> str:
  """A figure of a case."""
  if unit == "s" or value is None: return show_time(value)
  if unit != "B": return f"{1 / value:,.0f} {unit}/s"
  for name, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
    if value >= scale: return f"{value / scale:.3g} {name}"
  return f"{value:.0f} B"


def show_time(seconds: float | None) -> str:
  if seconds is None: return "-"
  for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
    if seconds >= scale: return f"{seconds / scale:.3g} {unit}"
  return f"{seconds * 1e9:.3g} ns"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--device", default=None, metavar="DEVICE",
              help="Measure a device: launches, copies, products; NV and CUDA beside CUDA and PyTorch.")
@click.option("--no-rivals", is_flag=True, help="Measure tinyhw alone.")
@click.option("--json", "as_json", is_flag=True, help="Print every run's seconds as JSON.")
def command(names: tuple[str, ...], device: str | None, no_rivals: bool, as_json: bool) -> None:
  """Measure the cases NAMES (all when none is given) beside NumPy, LLVM on this processor and tinygrad, if installed.

  Figures are medians. A ratio says how many times longer (more than 1) or shorter tinyhw takes than the rival.

  \b
  Examples:
    tinyhw bench import launch-amd
    tinyhw bench decode-amd summary-nv
    tinyhw bench --json > bench.json
    tinyhw bench --device NV launch matmul-bf16
    MOCKGPU=sm_90 tinyhw bench --device NV
  """
  from rich.console import Console
  if device is not None: return on_device(Device.canonicalize(device, "--device"), names, no_rivals, as_json)
  unknown = sorted(set(names) - {c.name for c in CASES})
  if unknown:
    there = ", ".join(c.name for c in CASES)
    raise InvalidArgument(f"no case is called {', '.join(unknown)}", hint=f"there are {there}")
  os.environ.setdefault("MOCKGPU", "1")
  rivals = [] if no_rivals else ["numpy", *(["tinygrad"] if find_spec("tinygrad") else []), "llvm"]
  console = Console(stderr=True)      # a spinner would be a thread that takes turns with what is measured
  results = []
  for case in (c for c in CASES if not names or c.name in names):
    result = Result(case.name, case.title, case.reach, case.unit)
    console.print(f"[dim]{case.title}", highlight=False)
    result.runs["tinyhw"] = case.ours()
    for rival in rivals:
      measure = getattr(case, rival)
      if measure is not None: result.runs[rival] = measure()
    results.append(result)
  if as_json: click.echo(json.dumps([vars(r) for r in results]))
  else: show(results, rivals)


def on_device(device: str, names: tuple[str, ...], no_rivals: bool, as_json: bool) -> None:
  """The cases of a device, beside whoever else reaches the same card."""
  from rich.console import Console
  from rich.table import Table
  cases, others = card.chosen(names), [] if no_rivals else card.rivals(device)
  told, results = Console(stderr=True), []
  for case in cases:
    title = case.title(card.Sizes.of(device))
    told.print(f"[dim]{device}: {title}", highlight=False)
    results.append((case, title, card.measured(case, device, others)))
  if as_json:
    click.echo(json.dumps([{"case": c.name, "title": title, "most": c.most, "work": c.work(card.Sizes.of(device)),
                            "runs": runs} for c, title, runs in results]))
    return
  table = Table()
  for name in ("case", device, "", *others): table.add_column(name, justify="left" if name == "case" else "right")
  for case, title, runs in results:
    ours = statistics.median(runs[device])
    cells = [f"{show_time(theirs)} ({ours / theirs:.3g}x)" for theirs in (statistics.median(runs[r]) for r in others)]
    table.add_row(title, show_time(ours), card.rate(case, device, ours), *cells)
  Console().print(table)


def show(results: list[Result], rivals: list[str]) -> None:
  """One row a case; rivals with their ratio."""
  from rich.console import Console
  from rich.table import Table
  table = Table()
  table.add_column("case")
  for name in ("tinyhw", *rivals, "target"): table.add_column(name, justify="right")
  for r in results:
    ours = r.median("tinyhw")
    assert ours is not None
    cells = []
    for rival in rivals:
      theirs = r.median(rival)
      cells.append("-" if theirs is None else f"{show_figure(theirs, r.unit)} ({ours / theirs:.3g}x)")
    color = "" if r.reach is None else "[green]" if ours <= r.reach else "[red]"
    table.add_row(r.title, f"{color}{show_figure(ours, r.unit)}", *cells, show_figure(r.reach, r.unit))
  Console().print(table)
