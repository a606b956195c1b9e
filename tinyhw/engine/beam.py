"""`BEAM=N`: kernels whose options are searched for on the device that runs them, N lists at a time.

A program is measured on memory of its own, filled with numbers that the seed of a graph's key gives, and only kept in
the race while its results are those of the kernel without any option. In the end the fastest run in turns, so that what
else the machine does meets all of them. What is found is kept with the other compiled kernels (`kept`), whose names
tell searches apart.

`choose.py` proposes the heuristic's steps, and `Kernel.apply` checks all of them.
"""
from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence

import numpy as np

from tinyhw.compile import ProgramSpec, compile_kernel
from tinyhw.compile.search import Judge, search
from tinyhw.core.environment import count
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.trace import Whose
from tinyhw.devices.registry import OpenDevice, debug_level
from tinyhw.drive.base import Allocation
from tinyhw.engine.load import loaded
from tinyhw.ir.dtype import DType, PtrDType
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

VARIABLE = "BEAM"
_TIMES, _ENOUGH_S = 8, 0.05     # launches of a program, and after how many seconds of them it is known well enough
_TURNS, _LONGEST_S = 25, 1.0    # of the race at the end: of each program, and in all
_FEWEST = 5                     # turns after which the race may be over
_FASTER, _WINS = 0.98, 0.7      # of the first one's time, in the best turn; and of the turns themselves


def width() -> int:
  """How many lists a search keeps: the variable `BEAM`; 0 is no search."""
  text = os.environ.get(VARIABLE, "") or "0"
  if (lists := count(text)) is None: raise InvalidArgument(f"{text!r} is no number of lists", where=VARIABLE)
  return lists


def searched(ast: UOp, opened: OpenDevice, lists: int) -> ProgramSpec:
  """The fastest program found for a kernel graph on a device."""
  with _Race(ast, opened) as race: found = search(ast, opened.renderer, lists, race)
  if debug_level() >= 1:
    opts = ", ".join(f"{o.kind.name} {o.axis} {o.amount}" for o in found.opts) or "no options"
    by = f", by the {Whose.MOCK.value}" if opened.runtime.clock is Whose.MOCK else ""
    print(f"BEAM     {found.name} on {opened.name}{by}: {opts}", file=sys.stderr)
  return found


class _Race(Judge):
  """Memory for one kernel's programs, and what they have to compute."""

  def __init__(self, ast: UOp, opened: OpenDevice) -> None:
    self.opened = opened
    pointers = {int(u.arg): u.dtype for u in ast.toposort() if u.op is Ops.DEFINE_GLOBAL}
    self.written = sorted({int(s.src[0].src[0].arg) for s in ast.src})
    rng = np.random.default_rng(int.from_bytes(ast.key[:8], "little"))
    self.types: dict[int, DType] = {}
    self.data: dict[int, bytes] = {}
    self.memory: dict[int, Allocation] = {}
    for number, dtype in pointers.items():
      assert isinstance(dtype, PtrDType)
      self.types[number], self.data[number] = dtype.base, _numbers(rng, dtype.base, dtype.size)
    self.wanted: list[bytes] = []
    self.plain = compile_kernel(ast, opened.renderer, ())

  def __enter__(self) -> _Race:
    self.memory = {n: self.opened.alloc(len(data)) for n, data in self.data.items()}
    self.wanted = self._results(self.plain)[1]
    return self

  def __exit__(self, *_: object) -> None:
    for allocation in self.memory.values(): self.opened.free(allocation)

  def _launcher(self, spec: ProgramSpec) -> Callable[[], float]:
    """What launches a program and says how many seconds it took."""
    program = loaded(spec, self.opened.runtime)
    arguments = [self.memory.get(n) or self.memory[self.written[0]] for n in spec.buffer_order]
    values = [v.max for v in spec.variables]
    grid = spec.launch_grid(dict(zip(spec.variables, values)))
    return lambda: program(arguments, values, grid, spec.block, wait=True) or 0.0

  def _results(self, spec: ProgramSpec, limit: float = math.inf) -> tuple[float, list[bytes]]:
    """(the fastest launch in seconds, what the first one wrote). Beyond the limit two launches are enough to know."""
    runtime, once = self.opened.runtime, self._launcher(spec)
    for number, data in self.data.items(): runtime.copyin(self.memory[number], memoryview(data))
    best = spent = once()
    found = []
    for number in self.written:
      out = bytearray(len(self.data[number]))
      runtime.copyout(memoryview(out), self.memory[number])
      found.append(bytes(out))
    for turn in range(1, _TIMES):
      if spent > _ENOUGH_S or turn > 1 and best > limit: break
      best = min(best, again := once())
      spent += again
    return best, found

  def seconds(self, program: ProgramSpec, limit: float) -> float | None:
    seconds, found = self._results(program, limit)
    if seconds > limit: return None
    # As far as the order of sums explains.
    same = all(_alike(a, b, self.types[n]) for a, b, n in zip(found, self.wanted, self.written))
    return seconds if same else None

  def fastest(self, programs: Sequence[ProgramSpec]) -> ProgramSpec:
    if len(programs) < 2: return programs[0]
    launchers = [self._launcher(p) for p in programs]
    times: list[list[float]] = []
    while len(times) < _TURNS and (len(times) < _FEWEST or sum(map(sum, times)) < _LONGEST_S):
      times.append([once() for once in launchers])
    first = min(turn[0] for turn in times)
    def beats(n: int) -> bool:
      return (min(turn[n] for turn in times) < first * _FASTER
              and sum(turn[n] < turn[0] for turn in times) >= len(times) * _WINS)
    return programs[min((n for n in range(len(programs)) if n == 0 or beats(n)),
                        key=lambda n: min(turn[n] for turn in times))]


def _numbers(rng: np.random.Generator, dtype: DType, count: int) -> bytes:
  """Numbers of a type as its memory: floats between -1 and 1, whole numbers from 0 to 3."""
  if dtype.numpy is None: return bytes(dtype.itemsize * count)     # types that NumPy lacks: zeros
  if dtype.is_float: return bytes(rng.uniform(-1, 1, count).astype(dtype.numpy).tobytes())
  return bytes(rng.integers(0, 2 if dtype.is_bool else 4, count).astype(dtype.numpy).tobytes())


def _alike(a: bytes, b: bytes, dtype: DType) -> bool:
  if not dtype.is_float or dtype.numpy is None or a == b: return a == b
  x, y = (np.frombuffer(v, dtype.numpy).astype(np.float64) for v in (a, b))
  tolerance = math.sqrt(float(np.finfo(dtype.numpy).eps))
  scale = float(np.nanmax(np.abs(y), initial=0.0, where=np.isfinite(y)))
  return bool(np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
