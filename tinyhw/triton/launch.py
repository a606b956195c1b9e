"""A launch: the host's tensors in GPU memory, the arguments, the dispatch.

On the emulator a tensor's memory is the GPU's, at the same address, so aliases, views and tables of pointers work as
they are. A device with memory of its own gets copies, one of each memory that tensors share, and gives them back.
"""
from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.drive.amd.host import Span, host_bytes, merged
from tinyhw.triton.arguments import Row, base_of, memory_of, packed, pointer

if TYPE_CHECKING:
  from tinyhw.drive.base import Allocation

LOWEST, HIGHEST = 1 << 16, 1 << 47  # what may be a host address
TABLE = 1 << 16  # a longer tensor of 64-bit integers is no table of pointers
ALIGN = 256  # a copy lies as its original does within so many bytes


class Memory:
  """The spans of host memory that a launch may touch."""

  def __init__(self, kernel: str, rows: Sequence[Row]) -> None:
    self.spans: list[Span] = []
    self.loose: list[int] = []  # whole numbers among the arguments that may be addresses
    for name, kind, value in rows:
      if not kind.startswith("*"):
        if kind in ("i64", "u64"): self.loose.append(int(value))
        continue
      if value is None: continue
      if isinstance(value, (int, np.integer)): self.loose.append(int(value))
      else:
        where = f"{kernel}, argument {name}"
        pointer(value, where)
        start, end, writable = memory_of(value, where)
        self.spans.append(Span(start, end, name, writable))
        if kind in ("*i64", "*u64"): self.loose += table(base_of(value))
    self.add_pointed()
    self.spans = merged(self.spans)

  def add_pointed(self) -> None:
    """Add the tensors that addresses in arguments and in tables point to: any that Python knows, as a GPU would."""
    inside = sorted((s.start, s.end) for s in self.spans)
    wanted = {a for a in self.loose if LOWEST <= a < HIGHEST and not any(lo <= a < hi for lo, hi in inside)}
    torch: Any = sys.modules.get("torch")
    if not wanted or torch is None: return
    for found in gc.get_objects():
      if not issubclass(type(found), torch.Tensor) or found.layout is not torch.strided: continue
      if found.device.type != "cpu": continue
      start, end, _ = memory_of(found, "")
      if any(start <= a < end for a in wanted): self.spans.append(Span(start, end, f"tensor at {start:#x}"))


def table(value: Any) -> list[int]:
  """The numbers of a tensor that may hold addresses."""
  count = value.size if isinstance(value, np.ndarray) else value.numel()
  if not count or count > TABLE: return []
  return [int(n) for n in (value.reshape(-1) if isinstance(value, np.ndarray) else value.detach().reshape(-1).numpy())]


def launch(runtime: Any, program: Any, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
           rows: Sequence[Row], scratch: int = 0) -> None:
  """Run a kernel and wait for it. `scratch`: bytes of global memory that each program of the grid has for itself."""
  kernel, taken = program.kernel, list[Any]()
  memory = Memory(program.name, rows)
  try:
    extra: list[Row] = []
    if scratch:
      size = scratch * grid[0] * grid[1] * grid[2]
      taken.append(runtime.alloc(size))
      extra = [("global scratch", "*i8", taken[0].address)]
    own = {a.address for a in taken}
    with (borrowed if hasattr(runtime, "borrowed") else copied)(runtime, memory.spans) as places:
      def translate(address: int, value: Any, name: str) -> int:
        if address in own or not address: return address
        found = next((p for p in places if p[0].start <= address <= p[0].end), None)
        if found is None: return address
        return address - found[0].start + found[1]
      payload = packed(kernel, [*rows, *extra], translate)
      program.launch(payload, grid, block, dynamic_lds=shared)
      runtime.synchronize()
  finally:
    for allocation in taken: runtime.free(allocation)


@contextmanager
def borrowed(runtime: Any, spans: Sequence[Span]) -> Iterator[list[tuple[Span, int]]]:
  """(span, its GPU address), which is the host's."""
  with runtime.borrowed(spans): yield [(s, s.start) for s in spans]


@contextmanager
def copied(runtime: Any, spans: Sequence[Span]) -> Iterator[list[tuple[Span, int]]]:
  """(span, GPU address of its copy); the host has what the kernel made of it once the block is left without an error.
  """
  made: list[tuple[Span, Allocation, memoryview]] = []
  try:
    for span in spans:
      before = span.start % ALIGN
      allocation = runtime.alloc(before + span.size)
      if hasattr(runtime, "rename"): runtime.rename(allocation, span.name)
      data = np.zeros(before + span.size, np.uint8)
      data[before:] = host_bytes(span.start, span.size)
      runtime.copyin(allocation, data.data)
      made.append((span, allocation, data.data))
    yield [(span, (a.address or 0) + span.start % ALIGN) for span, a, _ in made]
    for span, allocation, after in made:
      if not span.writable: continue
      runtime.copyout(after, allocation)
      host_bytes(span.start, span.size)[:] = np.frombuffer(after, np.uint8)[span.start % ALIGN:]
  finally:
    for _, allocation, _ in made: runtime.free(allocation)

