"""Running what a renderer made on the emulator: a code object of any generation, or PTX."""
from __future__ import annotations

import functools
import struct
from collections.abc import Sequence

import numpy as np

from tests.compile.families import Array, Run
from tinyhw.compile.render.base import Renderer, block_size, grid_size
from tinyhw.compile.render.nvidia import NVIDIARenderer
from tinyhw.devices.registry import emulated
from tinyhw.ir.uop import UOp


def runner(made: Renderer) -> Run: return functools.partial(run, made)


def run(made: Renderer, uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  device = emulated()
  program = device.load(made.compile(made.source("k", uops), "k"), "k")
  memory = [device.alloc(a.nbytes) for a in arrays]
  for m, a in zip(memory, arrays): device.copyin(m, memoryview(a.view(np.uint8)))
  if isinstance(made, NVIDIARenderer): program.launch(struct.pack(f"<{len(memory)}Q", *(m.address for m in memory)),
                                                      grid_size(uops), block_size(uops))
  else: program(memory, (), grid_size(uops), block_size(uops))
  for m, a in zip(memory, arrays): device.copyout(memoryview(a.view(np.uint8)), m)
