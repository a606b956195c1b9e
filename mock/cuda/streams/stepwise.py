"""Launches as CUDA 3 had them: a call for the block's shape, for each parameter, and for the launch (cuda.h, deprecated
since 4.0). What was said of a kernel stays for its next launch. Parameters of textures (cuParamSetTexRef) and
cuParamSetf, whose float travels in a register of its own, are not served."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.modules.libraries import function_for
from tinyhw.mock.cuda.modules.modules import Function
from tinyhw.mock.cuda.streams import parameters
from tinyhw.mock.cuda.streams.launches import enqueue, shaped
from tinyhw.mock.cuda.streams.streams import stream_of

_UNSAID: Final = (0, 0, 0)


@dataclass
class Steps:
  """What was said of a kernel: its block, bytes of dynamic shared memory, bytes of parameters, and these."""

  block: tuple[int, int, int] = _UNSAID
  shared: int = 0
  size: int = 0
  data: bytearray = field(default_factory=lambda: bytearray(parameters.LIMIT))


def _of(m: CudaMachine, handle: int) -> tuple[Function, Steps]:
  function = function_for(m, handle, m.working())
  if function.steps is None: function.steps = Steps()
  return function, function.steps


@serves("cuFuncSetBlockShape")
def func_set_block_shape(m: CudaMachine, handle: int, x: int, y: int, z: int) -> None:
  _, steps = _of(m, handle)
  if min(x, y, z) < 1: raise invalid(f"a block of {(x, y, z)}")
  steps.block = x, y, z


@serves("cuFuncSetSharedSize")
def func_set_shared_size(m: CudaMachine, handle: int, size: int) -> None:
  function, steps = _of(m, handle)
  if size > function.dynamic_limit:
    raise invalid(f"{size:,} bytes of dynamic shared memory, {function.dynamic_limit:,} at most")
  steps.shared = size


@serves("cuParamSetSize")
def param_set_size(m: CudaMachine, handle: int, size: int) -> None:
  _, steps = _of(m, handle)
  if size > parameters.LIMIT: raise invalid(f"{size} bytes of parameters, {parameters.LIMIT} at most")
  steps.size = size


@serves("cuParamSeti")
def param_set_int(m: CudaMachine, handle: int, offset: int, value: int) -> None:
  _set(m, handle, offset, value.to_bytes(4, "little"))


@serves("cuParamSetv")
def param_set_bytes(m: CudaMachine, handle: int, offset: int, address: int, size: int) -> None:
  if size > parameters.LIMIT: raise invalid(f"{size} bytes of parameters, {parameters.LIMIT} at most")
  _set(m, handle, offset, m.user.read(address, size))


def _set(m: CudaMachine, handle: int, offset: int, data: bytes) -> None:
  _, steps = _of(m, handle)
  if not 0 <= offset <= parameters.LIMIT - len(data):
    raise invalid(f"{len(data)} bytes of parameters at {offset}, {parameters.LIMIT} at most")
  steps.data[offset:offset + len(data)] = data


def _launch(m: CudaMachine, handle: int, grid: tuple[int, int, int], stream: int) -> None:
  function, steps = _of(m, handle)
  if steps.block == _UNSAID:
    raise Failed(cuda.CUDA_ERROR_INVALID_VALUE, f"no cuFuncSetBlockShape has said the block of {function.name}")
  if steps.size < function.params_size:
    raise invalid(f"{function.name} has {function.params_size} bytes of parameters, cuParamSetSize said {steps.size}")
  enqueue(stream_of(m, stream), shaped(function, grid, steps.block, steps.shared,
                                       bytes(steps.data[:function.params_size])))


@serves("cuLaunch")
def launch(m: CudaMachine, handle: int) -> None: _launch(m, handle, (1, 1, 1), 0)


@serves("cuLaunchGrid")
def launch_grid(m: CudaMachine, handle: int, width: int, height: int) -> None:
  _launch(m, handle, (width, height, 1), 0)


@serves("cuLaunchGridAsync")
def launch_grid_async(m: CudaMachine, handle: int, width: int, height: int, stream: int) -> None:
  _launch(m, handle, (width, height, 1), stream)
