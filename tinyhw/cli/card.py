"""`tinyhw bench --device NV`: launches, copies and matrix products of a device, beside CUDA's and PyTorch's way to the
same card in the same run. A mock card takes small sizes, a real one those that fill it."""
from __future__ import annotations

import ctypes.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from tinyhw.cli import overheads
from tinyhw.cli.measure import Seconds, repeat
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.devices.registry import Device, mock_cards, nv_cards

LAUNCHES: Final = 32
TORCH: Final = "torch"
RIVALS: Final = {"NV": ("CUDA", TORCH), "CUDA": (TORCH,)}
RUNS: Final = 15
Measure = Callable[[str, "Sizes"], Seconds]


@dataclass(frozen=True)
class Sizes:
  """Of a product's side, and of what is copied, in bytes."""
  side: int
  copied: int

  @classmethod
  def of(cls, device: str) -> Sizes:
    """What a device can be asked for."""
    emulated = device.startswith(("AMD", "NV", "CUDA")) and mock_cards() is not None
    return cls(512, 16 << 20) if emulated else cls(8192, 256 << 20)


@dataclass(frozen=True)
class DeviceCase:
  """A thing to measure on a device, ours and PyTorch's. `work` is done in one run: (how much, its unit a second)."""
  name: str
  title: Callable[[Sizes], str]
  ours: Measure
  torch: Callable[[Sizes], Seconds]
  work: Callable[[Sizes], tuple[float, str] | None] = lambda sizes: None
  most: float | None = None  # times a rival's median, on a card


def launches(count: int, device: str, sizes: Sizes) -> Seconds:
  return overheads.launches(device, count)


def torch_launches(count: int, sizes: Sizes) -> Seconds:
  import torch
  x = torch.tensor([1, 2, 3], device="cuda")
  def run() -> None:
    for _ in range(count): torch.add(x, 1)
    torch.cuda.synchronize()
  return repeat(run, runs=300, warm=100)


def copied(way: str, device: str, sizes: Sizes) -> Seconds:
  """Bytes into the device's memory ("in"), out of it ("out") or within it ("within")."""
  runtime: Any = Device[device].runtime
  data: Any = np.random.default_rng(0).integers(0, 256, sizes.copied, np.uint8)
  out: Any = np.zeros_like(data)
  a, b = (runtime.alloc(sizes.copied) for _ in range(2))
  runtime.copyin(a, memoryview(data))
  runtime.copy(b, a, sizes.copied)
  ways: dict[str, Callable[[], None]] = {
    "in": lambda: runtime.copyin(a, memoryview(data)), "out": lambda: runtime.copyout(memoryview(out), b),
    "within": lambda: runtime.copy(b, a, sizes.copied)}
  def run() -> None:
    ways[way]()
    runtime.synchronize()
  seconds = repeat(run, runs=RUNS)
  runtime.copyout(memoryview(out), b)
  for allocation in (a, b): runtime.free(allocation)
  if (out != data).any(): raise Error("other bytes came back", where=device)
  return seconds


def torch_copied(way: str, sizes: Sizes) -> Seconds:
  import torch
  host = torch.from_numpy(np.random.default_rng(0).integers(0, 256, sizes.copied, np.uint8))
  a, b = (host.cuda() for _ in range(2))
  ways: dict[str, Callable[[], object]] = {"in": lambda: a.copy_(host), "out": lambda: host.copy_(a),
                                           "within": lambda: b.copy_(a)}
  def run() -> None:
    ways[way]()
    torch.cuda.synchronize()
  return repeat(run, runs=RUNS)


def factors(sizes: Sizes) -> list[Any]:
  """Two matrices whose products' sums are exact in every order. All get the same: on zeros a card draws less power."""
  rng = np.random.default_rng(0)
  return [rng.integers(-2, 3, (sizes.side, sizes.side)).astype(np.float32) for _ in range(2)]


def product(dtype: str, device: str, sizes: Sizes) -> Seconds:
  """A square product of that dtype through Tensor, warm."""
  from tinyhw import Tensor, dtypes
  host = factors(sizes)
  a, b = (Tensor(h, device=device).cast(getattr(dtypes, dtype)).realize() for h in host)
  def made() -> Tensor: return a.matmul(b, dtype=dtypes.float32)
  def run() -> None:
    made().realize()
    Device[device].synchronize()
  if not np.array_equal(made().numpy(), host[0] @ host[1]): raise Error("wrong product", where=f"{device}, {dtype}")
  return repeat(run, runs=RUNS)


def torch_product(dtype: str, sizes: Sizes) -> Seconds:
  import torch
  a, b = (torch.from_numpy(h).to("cuda", getattr(torch, dtype)) for h in factors(sizes))
  def run() -> None:
    torch.matmul(a, b)
    torch.cuda.synchronize()
  return repeat(run, runs=RUNS)


def _copy(way: str, sizes: Sizes) -> str: return f"{sizes.copied >> 20} MiB {way}"


def _product(dtype: str, sizes: Sizes) -> str: return f"product of {sizes.side} x {sizes.side}, {dtype}"


WAYS: Final = {"in": "from the host", "out": "to the host", "within": "within its memory"}
CASES: Final = (
  DeviceCase("launch", lambda s: "launch of a tiny kernel, to its end", partial(launches, 1),
             partial(torch_launches, 1), most=0.7),
  DeviceCase("launches", lambda s: f"{LAUNCHES} of them, and one wait", partial(launches, LAUNCHES),
             partial(torch_launches, LAUNCHES)),
  *(DeviceCase(f"copy-{way}", partial(_copy, words),
               partial(copied, way), partial(torch_copied, way), lambda s: (s.copied, "B/s"))
    for way, words in WAYS.items()),
  *(DeviceCase(f"matmul-{short}", partial(_product, short),
               partial(product, dtype), partial(torch_product, dtype), lambda s: (2 * s.side ** 3, "FLOP/s"), most)
    for short, dtype, most in (("f32", "float32", None), ("f16", "float16", 2.0), ("bf16", "bfloat16", 2.0))),
)


def rivals(device: str) -> list[str]:
  """Who else reaches the card that a device is: CUDA where there is a driver of it, PyTorch where it sees one."""
  found = []
  for rival in RIVALS.get(device.partition(":")[0], ()):
    if rival == TORCH:
      if mock_cards() is not None or find_spec("torch") is None: continue
      import torch
      if torch.cuda.is_available(): found.append(rival)
    elif nv_cards() or mock_cards() is None and ctypes.util.find_library("cuda") is not None:
      found.append(rival + device[len(device.partition(":")[0]):])
  return found


def chosen(names: tuple[str, ...]) -> list[DeviceCase]:
  """Cases by name, all without names. Raises InvalidArgument that lists them."""
  if unknown := sorted(set(names) - {c.name for c in CASES}):
    raise InvalidArgument(f"no case of a device is called {', '.join(unknown)}",
                          hint=f"there are {', '.join(c.name for c in CASES)}")
  return [c for c in CASES if not names or c.name in names]


def open_device(name: str) -> None:
  """Have the card opened by us or by PyTorch."""
  if name != TORCH: Device[name].synchronize()
  else:
    import torch
    torch.cuda.synchronize()


def measured(case: DeviceCase, device: str, others: list[str]) -> dict[str, Seconds]:
  """Seconds of runs, ours first. All are open before any is measured: a context of CUDA raises the card's clocks."""
  sizes = Sizes.of(device)
  for name in (device, *others): open_device(name)
  runs = {device: case.ours(device, sizes)}
  for rival in others: runs[rival] = case.torch(sizes) if rival == TORCH else case.ours(rival, sizes)
  return runs


def rate(case: DeviceCase, device: str, seconds: float) -> str:
  """What was done a second."""
  if (work := case.work(Sizes.of(device))) is None: return ""
  each = work[0] / seconds
  letter, scale = next(((letter, scale) for letter, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)) if each >= scale),
                       ("", 1.0))
  return f"{each / scale:.3g} {letter}{work[1]}"
