"""The runtime's arrays, textures, surfaces, rows and graphs, as programs of nvcc call them."""
from __future__ import annotations

import ctypes

import numpy as np

from tests.mock.cuda.test_runtime import SCALE, TEXT, Program
from tinyhw.autogen import cudart

FETCH = 0x4321
TEXTS = TEXT + """
.visible .entry fetch(.param .u64 out, .param .u64 texture) {
  .reg .u64 %rd<3>; .reg .u32 %r<2>; .reg .f32 %f<7>;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [texture]; mov.u32 %r0, %tid.x;
  cvt.rn.f32.u32 %f0, %r0; add.f32 %f0, %f0, 0f3F000000;
  tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f0, 0f3FC00000}];
  mul.wide.u32 %rd2, %r0, 4; add.u64 %rd0, %rd0, %rd2; st.global.f32 [%rd0], %f1; ret; }
"""
UP, DOWN = cudart.cudaMemcpyHostToDevice, cudart.cudaMemcpyDeviceToHost


def program() -> Program:
  p = Program("sm_90", TEXTS)
  zero = ctypes.c_uint64(0)
  p("__cudaRegisterFunction", p.handle, FETCH, b"fetch", b"fetch", -1, zero, zero, zero, zero, zero)
  return p


def channel(bits: int, kind: int, count: int = 1) -> cudart.cudaChannelFormatDesc:
  return cudart.cudaChannelFormatDesc(*[bits] * count, *[0] * (4 - count), kind)


def run(p: Program, kernel: int, threads: int, *values: object) -> None:
  places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))  # type: ignore[arg-type]
  one, block = cudart.dim3(x=1, y=1, z=1), cudart.dim3(x=threads, y=1, z=1)
  p("cudaLaunchKernel", kernel, one, block, places, 0, 0)


def test_a_texture_of_bytes_is_fractions() -> None:
  """An array filled by rows, looked at by its second row; the object tells what it was made of."""
  p, data = program(), np.arange(32, dtype=np.uint8).reshape(4, 8)
  array = p.made("cudaMallocArray", ctypes.byref(channel(8, cudart.cudaChannelFormatKindUnsigned)), 8, 4, 0)
  p("cudaMemcpy2DToArray", array, 0, 0, data.ctypes.data, 8, 8, 4, UP)
  resource, sampling = cudart.cudaResourceDesc(resType=cudart.cudaResourceTypeArray), cudart.cudaTextureDesc(
    readMode=cudart.cudaReadModeNormalizedFloat)
  resource.res.array.array = array
  texture = p.made("cudaCreateTextureObject", ctypes.byref(resource), ctypes.byref(sampling), 0)
  out = p.made("cudaMalloc", 32)
  run(p, FETCH, 8, ctypes.c_uint64(out), ctypes.c_uint64(texture))
  seen = np.zeros(8, np.float32)
  p("cudaMemcpy", seen.ctypes.data, out, 32, DOWN)
  assert np.allclose(seen, data[1] / 255)
  told, format_ = cudart.cudaResourceDesc(), cudart.cudaChannelFormatDesc()
  p("cudaGetTextureObjectResourceDesc", ctypes.byref(told), texture)
  p("cudaGetChannelDesc", ctypes.byref(format_), array)
  assert bytes(told) == bytes(resource) and bytes(format_) == bytes(channel(8, cudart.cudaChannelFormatKindUnsigned))
  sampling.filterMode, sampling.readMode = cudart.cudaFilterModeLinear, cudart.cudaReadModeElementType
  handle = ctypes.c_uint64()
  assert p.code("cudaCreateTextureObject", ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(sampling),
                0) == cudart.cudaErrorInvalidFilterSetting
  p("cudaDestroyTextureObject", texture)
  p("cudaFreeArray", array)
  assert p.code("cudaGetChannelDesc", ctypes.byref(format_), array) == cudart.cudaErrorInvalidValue


def test_bytes_of_an_array_go_on_from_row_to_row() -> None:
  p, data = program(), np.arange(12, dtype=np.int32)
  kind = channel(32, cudart.cudaChannelFormatKindSigned)
  array, other = (p.made("cudaMallocArray", ctypes.byref(kind), 4, 3, 0) for _ in range(2))
  p("cudaMemcpyToArray", array, 0, 0, data.ctypes.data, 48, UP)
  p("cudaMemcpyToArray", array, 8, 0, data.ctypes.data, 28, UP)
  p("cudaMemcpy2DArrayToArray", other, 0, 0, array, 0, 0, 16, 3, cudart.cudaMemcpyDeviceToDevice)
  seen = np.zeros(12, np.int32)
  p("cudaMemcpyFromArray", seen.ctypes.data, other, 0, 0, 48, DOWN)
  assert seen.tolist() == [0, 1, 0, 1, 2, 3, 4, 5, 6, 9, 10, 11]
  assert p.code("cudaMallocArray", ctypes.byref(ctypes.c_uint64()), ctypes.byref(channel(24, 0)), 4, 3,
                0) == cudart.cudaErrorInvalidChannelDescriptor


def test_boxes_of_layers_and_memory() -> None:
  p, data = program(), np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
  extent = cudart.cudaExtent(width=4, height=3, depth=2)
  array = p.made("cudaMalloc3DArray", ctypes.byref(channel(32, cudart.cudaChannelFormatKindFloat)), extent, 1)
  box = cudart.cudaMemcpy3DParms(dstArray=array, extent=extent, kind=UP)
  box.srcPtr = cudart.cudaPitchedPtr(ptr=data.ctypes.data, pitch=16, xsize=4, ysize=3)
  p("cudaMemcpy3D", ctypes.byref(box))
  memory = cudart.cudaPitchedPtr()
  p("cudaMalloc3D", ctypes.byref(memory), cudart.cudaExtent(width=16, height=3, depth=2))
  p("cudaMemset3D", memory, 0xFF, cudart.cudaExtent(width=16, height=3, depth=2))
  box = cudart.cudaMemcpy3DParms(srcArray=array, dstPtr=memory, kind=cudart.cudaMemcpyDeviceToDevice,
                                 srcPos=cudart.cudaPos(x=1, y=0, z=1),
                                 extent=cudart.cudaExtent(width=3, height=3, depth=1))
  p("cudaMemcpy3D", ctypes.byref(box))
  seen = np.zeros((3, 4), np.float32)
  p("cudaMemcpy2D", seen.ctypes.data, 16, memory.ptr, memory.pitch, 16, 3, DOWN)
  assert (seen[:, :3] == data[1, :, 1:]).all() and np.isnan(seen[:, 3]).all()
  assert p.code("cudaMemcpy2D", seen.ctypes.data, 8, memory.ptr, memory.pitch, 16, 3, DOWN) == \
    cudart.cudaErrorInvalidPitchValue
  box.dstPtr = cudart.cudaPitchedPtr()
  assert p.code("cudaMemcpy3D", ctypes.byref(box)) == cudart.cudaErrorInvalidValue


def test_graphs_by_hand() -> None:
  """A copy, a kernel by its host function, a copy of bytes; the kernel's parameters change."""
  p, data, out = program(), np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)
  memory, graph = p.made("cudaMalloc", 32), p.made("cudaGraphCreate", 0)
  box = cudart.cudaMemcpy3DParms(extent=cudart.cudaExtent(width=32, height=1, depth=1), kind=UP)
  box.srcPtr = cudart.cudaPitchedPtr(ptr=data.ctypes.data, pitch=32, xsize=32, ysize=1)
  box.dstPtr = cudart.cudaPitchedPtr(ptr=memory, pitch=32, xsize=32, ysize=1)
  first = ctypes.c_uint64(p.made("cudaGraphAddMemcpyNode", graph, 0, 0, ctypes.byref(box)))
  values = ctypes.c_uint64(memory), ctypes.c_uint32(8)
  places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
  one, block = cudart.dim3(x=1, y=1, z=1), cudart.dim3(x=64, y=1, z=1)
  work = cudart.cudaKernelNodeParams(func=SCALE, gridDim=one, blockDim=block, kernelParams=ctypes.addressof(places))
  second = ctypes.c_uint64(p.made("cudaGraphAddKernelNode", graph, ctypes.byref(first), 1, ctypes.byref(work)))
  p.made("cudaGraphAddMemcpyNode1D", graph, ctypes.byref(second), 1, out.ctypes.data, memory, 32, DOWN)
  ready = p.made("cudaGraphInstantiate", graph, 0)
  p("cudaGraphLaunch", ready, 0)
  p("cudaDeviceSynchronize")
  assert (out == 3 * data).all()
  told = cudart.cudaKernelNodeParams()
  p("cudaGraphKernelNodeGetParams", second.value, ctypes.byref(told))
  assert told.func == SCALE and told.blockDim.x == 64
  values[1].value = 4
  p("cudaGraphExecKernelNodeSetParams", ready, second.value, ctypes.byref(work))
  p("cudaGraphLaunch", ready, 0)
  p("cudaDeviceSynchronize")
  assert out.tolist() == [0, 3, 6, 9, 4, 5, 6, 7]
  params = cudart.cudaGraphNodeParams(type=cudart.cudaGraphNodeTypeMemset)
  params.memset = cudart.cudaMemsetParamsV2(dst=memory, value=1, elementSize=4, width=2, height=1)
  p.made("cudaGraphAddNode", graph, 0, 0, 0, ctypes.byref(params))
  params.type = cudart.cudaGraphNodeTypeExtSemaphoreWait
  assert p.code("cudaGraphAddNode", ctypes.byref(first), graph, 0, 0, 0, ctypes.byref(params)) == \
    cudart.cudaErrorNotSupported


def test_memory_and_events_of_other_processes() -> None:
  """A handle is not for the process that made it."""
  p = program()
  memory, handle, out = p.made("cudaMalloc", 64), cudart.cudaIpcMemHandle_t(), ctypes.c_uint64()
  p("cudaIpcGetMemHandle", ctypes.byref(handle), memory)
  assert p.code("cudaIpcOpenMemHandle", ctypes.byref(out), handle, 1) == cudart.cudaErrorDeviceUninitialized
  assert p.code("cudaIpcCloseMemHandle", memory) == cudart.cudaErrorInvalidValue
  event, given = p.made("cudaEventCreateWithFlags", 6), cudart.cudaIpcEventHandle_t()
  p("cudaIpcGetEventHandle", ctypes.byref(given), event)
  assert p.code("cudaIpcOpenEventHandle", ctypes.byref(out), given) == cudart.cudaErrorDeviceUninitialized
