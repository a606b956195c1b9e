"""Sources in C++ that launches are given, of both vendors: which one a source is, and what is made of it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.devices.registry import nv_cards
from tinyhw.kernels import cuda_source, hip_source
from tinyhw.kernels.cuda_source import CudaSource
from tinyhw.kernels.hip_source import HipSource

Source = CudaSource | HipSource


def source_of(binary: Any, device: str | None = None) -> Source | None:
  """The source that a launch was given for a device, if it is one."""
  return HipSource.of(binary, device) or CudaSource.of(binary)


def device_for(source: Source | None) -> str:
  """Where a source runs, or PTX, if nobody says: on a mock card of the vendor's, else on the emulator itself."""
  if isinstance(source, HipSource): return hip_source.default()
  return "NV" if nv_cards() else "EMU"


def compiled(source: Source, kernel: str, runtime: Any, device: str, options: Sequence[str]) -> tuple[bytes, str]:
  """What a device runs of a source, and the name of `kernel` there."""
  vendor = hip_source if isinstance(source, HipSource) else cuda_source
  return source.compiled(kernel, vendor.processor(runtime, device), options)


def translated(binary: Any, kernel: str, options: Sequence[str] = ()) -> tuple[Any, str]:
  """What the emulator runs of what it was given: CUDA C++ as PTX, HIP C++ as a code object; all else as it is.

  Raises InvalidArgument where there are options and nothing that they are for.
  """
  if isinstance(source := source_of(binary), CudaSource): return source.compiled(kernel, cuda_source.EMULATED, options)
  if source is not None: return source.compiled(kernel, hip_source.emulated(), options)
  refuse_options(options)
  return binary, kernel


def refuse_options(options: Sequence[str], where: str = "options") -> None:
  """Refuse a compiler's options where nothing is compiled."""
  if options: raise InvalidArgument("are for CUDA C++ and HIP C++", where=where)
