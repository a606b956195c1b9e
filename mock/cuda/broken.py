"""Faults that are declared (`mock.injected`) of CUDA's mock, which cost contexts.

CUDA's header says of CUDA_ERROR_ECC_UNCORRECTABLE and CUDA_ERROR_ILLEGAL_ADDRESS what costs a context. What a card that
has fallen off the bus answers is not documented: CUDA_ERROR_UNKNOWN, or what the declaration says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import MachineFault, PageFault

if TYPE_CHECKING:
  from tinyhw.mock.cuda.streams.streams import Stream
  from tinyhw.mock.injected import Fault

_DECLARED: Final = "a fault that is declared"


def strike(stream: Stream, fault: Fault) -> None:
  """Have a fault happen in a turn of a stream."""
  if fault.kind == "page fault":
    return stream.fail(PageFault(fault.address, "read", 4, reason=_DECLARED), cuda.CUDA_ERROR_ILLEGAL_ADDRESS)
  ecc = fault.kind == "ecc"
  code = cuda.CUDA_ERROR_ECC_UNCORRECTABLE if ecc else fault.result or cuda.CUDA_ERROR_UNKNOWN
  error = MachineFault(f"{'an uncorrectable memory error' if ecc else 'the card is gone from the bus'} ({_DECLARED})")
  for other in [s for s in stream.machine.streams if s.context.gpu is stream.context.gpu]:
    if not other.context.error: other.fail(error, code)
  if not ecc: stream.machine.lost[stream.context.gpu.index] = code
