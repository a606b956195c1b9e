"""A program that uses the driver API as C programs do: through the library's symbols, with arguments as it thinks."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.library.library import stand_in
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.draws import Draws
from tinyhw.mock.injected import Injected

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
SAXPY = HEAD + """
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {
  .reg .u64 %rd<5>; .reg .u32 %r<6>; .reg .f32 %f<5>; .reg .pred %p;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1; @%p bra done;
  mul.wide.u32 %rd3, %r5, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2]; fma.rn.f32 %f4, %f1, %f2, %f3; st.global.f32 [%rd2], %f4;
done: ret; }
"""
WAIT = HEAD + """
.visible .entry wait(.param .u64 at, .param .u32 value) {
  .reg .u64 %rd; .reg .u32 %r<3>; .reg .pred %p;
  ld.param.u64 %rd, [at]; ld.param.u32 %r1, [value];
again: ld.volatile.global.u32 %r2, [%rd]; setp.ne.u32 %p, %r2, %r1; @%p bra again;
  ret; }
.visible .entry put(.param .u64 at, .param .u32 value) {
  .reg .u64 %rd; .reg .u32 %r;
  ld.param.u64 %rd, [at]; ld.param.u32 %r, [value]; st.volatile.global.u32 [%rd], %r; ret; }
.visible .entry add(.param .u64 at, .param .u32 value) {
  .reg .u64 %rd; .reg .u32 %r<3>;
  ld.param.u64 %rd, [at]; ld.param.u32 %r1, [value]; ld.global.u32 %r2, [%rd];
  mad.lo.u32 %r2, %r2, 3, %r1; st.global.u32 [%rd], %r2; ret; }
"""
GARBAGE = 0xEEEE_EEEE_EEEE_EEEE  # what is where results go, before they are there


class Client:
  """A machine with the library in front, and a current context on its first card."""

  def __init__(self, cards: str = "sm_90", seed: int = 0, context: bool = True, draws: Draws | None = None,
               injected: Injected | None = None) -> None:
    self.machine = CudaMachine(cards, seed=seed, vram=1 << 28, draws=draws, injected=injected)
    self.library = stand_in(self.machine)
    if context:
      self.call("cuInit", 0)
      self.context = self.handle("cuDevicePrimaryCtxRetain", 0)
      self.call("cuCtxSetCurrent", self.context)

  def code(self, name: str, *arguments: Any) -> int:
    """Call a function; 64-bit integers are given as such."""
    wide = (ctypes.c_uint64(a) if isinstance(a, int) and (a > 0x7FFF_FFFF or a < -0x8000_0000) else a
            for a in arguments)
    return int(getattr(self.library, name)(*wide))

  def call(self, name: str, *arguments: Any) -> None:
    code = self.code(name, *arguments)
    assert code == 0, (name, cuda.RESULTS[code], self.machine.logs[-3:])

  def handle(self, name: str, *arguments: Any) -> int:
    """Call a function that stores a handle or an address through its first argument."""
    out = ctypes.c_uint64(GARBAGE)
    self.call(name, ctypes.byref(out), *arguments)
    return int(out.value)

  def alloc(self, size: int) -> int:
    return self.handle("cuMemAlloc_v2", ctypes.c_size_t(size))

  def put(self, address: int, data: npt.NDArray[Any]) -> None:
    self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(data.ctypes.data),
              ctypes.c_size_t(data.nbytes))

  def get(self, address: int, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    out = np.empty_like(like)
    self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), ctypes.c_uint64(address),
              ctypes.c_size_t(out.nbytes))
    return out

  def function(self, text: str, name: str) -> int:
    module = self.handle("cuModuleLoadData", text.encode() + b"\0")
    return self.handle("cuModuleGetFunction", ctypes.c_uint64(module), name.encode())

  def launch(self, function: int, grid: int, block: int, arguments: Sequence[Any], stream: int = 0,
             shared: int = 0) -> int:
    """The code of cuLaunchKernel; `arguments` are ctypes values."""
    places = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(a) for a in arguments))
    return self.code("cuLaunchKernel", ctypes.c_uint64(function), grid, 1, 1, block, 1, 1, shared,
                     ctypes.c_uint64(stream), places, None)


def u64(value: int) -> ctypes.c_uint64:
  return ctypes.c_uint64(value)


def u32(value: int) -> ctypes.c_uint32:
  return ctypes.c_uint32(value)
