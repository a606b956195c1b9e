"""Tensor maps and clusters through the driver API."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.emulator.ptx.test_async import kernel
from tests.mock.cuda.client import Client, u64
from tinyhw.autogen import cuda
from tinyhw.emulator.ptx.memory.tensormap import TensorMap


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client("sm_90")
  yield client
  client.machine.close()


def aligned(size: int) -> Any:
  """Bytes whose address is a multiple of 64."""
  room = np.zeros(size + 64, np.uint8)
  start = -room.ctypes.data % 64
  return room[start:start + size]


def encode(client: Client, out: Any, address: int, **changes: Any) -> int:
  """cuTensorMapEncodeTiled of a tensor [6, 20] of float32 in boxes of [4, 8]; `changes` are its arguments by name."""
  given = {"kind": cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "rank": 2, "dims": [20, 6], "strides": [80], "box": [8, 4],
           "steps": [1, 1], "interleave": cuda.CU_TENSOR_MAP_INTERLEAVE_NONE, "swizzle": cuda.CU_TENSOR_MAP_SWIZZLE_32B,
           "fill": cuda.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, **changes}
  dims, strides = ((ctypes.c_uint64 * len(given[n]))(*given[n]) for n in ("dims", "strides"))
  box, steps = ((ctypes.c_uint32 * len(given[n]))(*given[n]) for n in ("box", "steps"))
  return client.code("cuTensorMapEncodeTiled", u64(out.ctypes.data), given["kind"], given["rank"], u64(address), dims,
                     strides, box, steps, given["interleave"], given["swizzle"],
                     cuda.CU_TENSOR_MAP_L2_PROMOTION_NONE, given["fill"])


LOAD = kernel("""mov.b64 %l1, map; cvta.param.u64 %l1, %l1; @!%p1 bra E; mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%l1, {16, 1}], [bar];
W:  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
    cp.async.bulk.global.shared::cta.bulk_group [%o], [buf], 128;
E:""", ".shared .align 1024 .b8 buf[1024]; .shared .b64 bar;", ".param .u64 out, .param .align 64 .b8 map[128]")


def test_a_tensor_map_describes_a_box(client: Client) -> None:
  tensor = np.arange(120, dtype=np.float32).reshape(6, 20)
  at, out, encoded = client.alloc(480), client.alloc(128), aligned(128)
  client.put(at, tensor)
  assert encode(client, encoded, 0x10000) == 0
  assert client.code("cuTensorMapReplaceAddress", u64(encoded.ctypes.data), u64(at)) == 0
  again = aligned(128)
  assert encode(client, again, at) == 0 and (again == encoded).all()
  function = client.function(LOAD, "k")
  address = u64(out)
  places = (ctypes.c_void_p * 2)(ctypes.addressof(address), encoded.ctypes.data)
  client.call("cuLaunchKernel", u64(function), 1, 1, 1, 32, 1, 1, 0, u64(0), places, None)
  found = client.get(out, np.zeros((4, 2, 4), np.float32))
  wanted = np.zeros((4, 2, 4), np.float32)  # rows of 32 bytes: four of them make the 128 that swap pieces
  wanted.reshape(4, 8)[:, :4] = tensor[1:5, 16:20]
  assert (found == wanted).all()


@pytest.mark.parametrize("rank", range(7))
def test_tensors_have_one_to_five_dimensions(client: Client, rank: int) -> None:
  found = encode(client, aligned(128), 0x10000, rank=rank, dims=[8] * rank, box=[8, 2, 2, 2, 2, 2], steps=[1] * rank,
                 strides=[32 << 4 * k for k in range(max(rank - 1, 0))])
  assert cuda.RESULTS[found] == ("CUDA_SUCCESS" if 1 <= rank <= 5 else "CUDA_ERROR_INVALID_VALUE")


@pytest.mark.parametrize(("changes", "code"), [
  ({"rank": 6}, "INVALID_VALUE"), ({"dims": [0, 6]}, "INVALID_VALUE"), ({"strides": [84]}, "INVALID_VALUE"),
  ({"box": [257, 4]}, "INVALID_VALUE"), ({"box": [16, 4]}, "INVALID_VALUE"), ({"steps": [1, 9]}, "INVALID_VALUE"),
  ({"fill": 7}, "INVALID_VALUE"), ({"interleave": cuda.CU_TENSOR_MAP_INTERLEAVE_16B}, "NOT_SUPPORTED"),
  ({"kind": 99}, "NOT_SUPPORTED"),
  ({"swizzle": cuda.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B}, "NOT_SUPPORTED")], ids=str)
def test_maps_that_the_driver_refuses(client: Client, changes: dict[str, Any], code: str) -> None:
  assert encode(client, aligned(128), 0x10000, **changes) == getattr(cuda, f"CUDA_ERROR_{code}")
  assert encode(client, aligned(192)[40:168], 0x10000) == cuda.CUDA_ERROR_INVALID_VALUE


def test_a_map_for_columns_of_pixels(client: Client) -> None:
  dims, strides = (ctypes.c_uint64 * 4)(8, 7, 5, 2), (ctypes.c_uint64 * 3)(32, 224, 1120)
  steps, encoded = (ctypes.c_uint32 * 4)(1, 2, 1, 1), aligned(128)

  def code(rank: int, lower: tuple[int, ...], pixels: int = 64) -> int:
    low, high = ((ctypes.c_int32 * len(c))(*c) for c in (lower, (-1, -2, 0)))
    kind, swizzle = cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, cuda.CU_TENSOR_MAP_SWIZZLE_32B
    return client.code("cuTensorMapEncodeIm2col", u64(encoded.ctypes.data), kind, rank, u64(0x10000), dims, strides,
                       low, high, 8, pixels, steps, 0, swizzle, 0, 0)
  assert code(4, (-1, 0)) == 0
  found = TensorMap.decode(encoded.tobytes())
  assert found == TensorMap(0x10000, (8, 7, 5, 2, 0), (32, 224, 1120, 0), (8, 64, 0, 0, 0), (1, 2, 1, 1, 0), 4,
                            found.kind, 0, 1, im2col=1, lower=(-1, 0, 0), upper=(-1, -2, 0))
  assert found.type == "f32" and found.window == ((-1, 5), (0, 2))
  for wrong in ((2, (-1, 0)), (4, (-200, 0)), (4, (-70000, 0)), (4, (9, 0)), (4, (0, 0), 1025)):
    assert code(*wrong) == cuda.CUDA_ERROR_INVALID_VALUE


def test_a_cluster_by_an_attribute(client: Client) -> None:
  function = client.function(kernel("""mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank; mov.u32 %r3, v;
    add.u32 %r8, %c, 70; @%p1 st.shared.u32 [v], %r8; barrier.cluster.arrive; barrier.cluster.wait;
    add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2; mapa.shared::cluster.u32 %r5, %r3, %r4;
    ld.shared::cluster.u32 %r6, [%r5]; barrier.cluster.arrive; barrier.cluster.wait;
    mad.wide.u32 %l1, %c, 4, %o; @%p1 st.global.u32 [%l1], %r6;""", ".shared .b32 v;"), "k")
  out = client.alloc(32)
  row = cuda.CUlaunchAttribute(id=cuda.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
  row.value.clusterDim = (4, 1, 1)
  config = cuda.CUlaunchConfig(gridDimX=8, gridDimY=1, gridDimZ=1, blockDimX=64, blockDimY=1, blockDimZ=1,
                               attrs=ctypes.addressof(row), numAttrs=1)
  address = u64(out)
  places = (ctypes.c_void_p * 1)(ctypes.addressof(address))
  client.call("cuLaunchKernelEx", ctypes.byref(config), u64(function), places, None)
  assert client.get(out, np.zeros(8, np.uint32)).tolist() == [71, 72, 73, 70, 75, 76, 77, 74]
