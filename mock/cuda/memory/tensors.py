"""Tensor maps: what cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col write is the emulator's own form of them
(`emulator/ptx/memory/tensormap.py`)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.emulator.ptx.memory.tensormap import SIZE, TYPES, TensorMap
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import CudaMachine

# cuda.h declares CUtensorMap with an alignment of 64, later 128 bytes. NVIDIA's own bindings for Python hand the driver
# maps in memory of malloc's alignment (NVIDIA/cuda-python#1692), which work on cards: so the driver asks no more.
PLACE: Final = 16
_CODES: Final = {name: code for code, (name, _) in enumerate(TYPES)}
# PTX counts the types of elements in another order.
_KINDS: Final = {
  cuda.CU_TENSOR_MAP_DATA_TYPE_UINT8: "u8", cuda.CU_TENSOR_MAP_DATA_TYPE_UINT16: "u16",
  cuda.CU_TENSOR_MAP_DATA_TYPE_UINT32: "u32", cuda.CU_TENSOR_MAP_DATA_TYPE_INT32: "s32",
  cuda.CU_TENSOR_MAP_DATA_TYPE_UINT64: "u64", cuda.CU_TENSOR_MAP_DATA_TYPE_INT64: "s64",
  cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT16: "f16", cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT32: "f32",
  cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT64: "f64", cuda.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: "bf16",
  cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ: "f32.ftz", cuda.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32: "tf32",
  cuda.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: "tf32.ftz", cuda.CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B: "b4x16",
  cuda.CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B: "b4x16_p64", cuda.CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B: "b6x16_p32"}
_SWIZZLES: Final = {cuda.CU_TENSOR_MAP_SWIZZLE_NONE: 0, cuda.CU_TENSOR_MAP_SWIZZLE_32B: 1,
                    cuda.CU_TENSOR_MAP_SWIZZLE_64B: 2, cuda.CU_TENSOR_MAP_SWIZZLE_128B: 3,
                    cuda.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B: 3, cuda.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B: 3}
_ATOMS: Final = {cuda.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B: 1, cuda.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B: 3}


@serves("cuTensorMapEncodeTiled")
def encode_tiled(m: CudaMachine, out: int, kind: int, rank: int, address: int, dims: int, strides: int, box: int,
                 steps: int, interleave: int, swizzle: int, promotion: int, fill: int) -> None:
  _encode(m, out, kind, rank, address, dims, strides, lambda: {"box": _padded(m.get(box, f"{rank}I"), 5)}, steps,
          interleave, swizzle, promotion, fill)


@serves("cuTensorMapEncodeIm2col")
def encode_im2col(m: CudaMachine, out: int, kind: int, rank: int, address: int, dims: int, strides: int, lower: int,
                  upper: int, channels: int, pixels: int, steps: int, interleave: int, swizzle: int, promotion: int,
                  fill: int) -> None:
  if not 3 <= rank <= 5: raise invalid(f"a tensor of {rank} dimensions, for im2col: there are 3 to 5")

  def corner(at: int) -> tuple[int, ...]:
    found = m.get(at, f"{rank - 2}i")
    if not all(-1 << 15 <= c < 1 << 15 for c in found): raise invalid(f"corners {found}")
    return _padded(found, 3)
  _encode(m, out, kind, rank, address, dims, strides, lambda: {
    "box": (channels, pixels, 0, 0, 0), "lower": corner(lower), "upper": corner(upper), "im2col": 1}, steps, interleave,
    swizzle, promotion, fill)


def _padded(values: tuple[int, ...], count: int) -> tuple[int, ...]: return (*values, *[0] * (count - len(values)))


def _encode(m: CudaMachine, out: int, kind: int, rank: int, address: int, dims: int, strides: int,
            more: Callable[[], dict[str, Any]], steps: int, interleave: int, swizzle: int, promotion: int,
            fill: int) -> None:
  if out % PLACE: raise invalid(f"a tensor map at {out:#x}, no multiple of {PLACE}")
  if not 1 <= rank <= 5: raise invalid(f"a tensor of {rank} dimensions: there are 1 to 5")
  if kind not in _KINDS: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"a tensor map of data type {kind}")
  if swizzle not in _SWIZZLES: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"a tensor map with swizzle {swizzle}")
  if promotion > cuda.CU_TENSOR_MAP_L2_PROMOTION_L2_256B: raise invalid(f"L2 promotion {promotion}")
  extents = m.get(dims, f"{rank}Q")
  if not all(1 <= d <= 1 << 32 for d in extents): raise invalid(f"a tensor of {extents} elements: 1 to 2**32 each way")
  made = TensorMap(address, _padded(extents, 5), _padded(m.get(strides, f"{rank - 1}Q") if rank > 1 else (), 4),
                   steps=_padded(m.get(steps, f"{rank}I"), 5), rank=rank, kind=_CODES[_KINDS[kind]],
                   interleave=interleave, swizzle=_SWIZZLES[swizzle], fill=fill, atomicity=_ATOMS.get(swizzle, 0),
                   **more())
  try: made.check()
  except InvalidArgument as why: raise invalid(str(why)) from None
  except Unsupported as why: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, str(why)) from None
  m.user.write(out, made.encode())


@serves("cuTensorMapReplaceAddress")
def replace_address(m: CudaMachine, out: int, address: int) -> None:
  if out % PLACE or address % 16: raise invalid(f"a tensor map at {out:#x} of a tensor at {address:#x}")
  m.user.write(out, TensorMap.decode(m.user.read(out, SIZE)).replaced("global_address", 0, address).encode())
