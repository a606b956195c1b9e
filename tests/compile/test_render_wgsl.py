"""WGSL through wgpu (whose naga checks it) on whatever adapter there is, such as Mesa's lavapipe; and what is refused.

WGSL promises less than IEEE 754: NaN, infinities and subnormal numbers are not asked for here, and quotients may be 2.5
units in the last place off.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.compile.families import ROWS, Array, buffer, per_element
from tests.compile.test_render_amdgcn import linear, operations
from tests.strength import seed
from tinyhw import Tensor, dtypes
from tinyhw.compile import compile_kernel, schedule
from tinyhw.compile.render.base import grid_size
from tinyhw.compile.render.wgsl import WGSLRenderer
from tinyhw.core.errors import Unsupported
from tinyhw.ir import semantics
from tinyhw.ir.dtype import AddressSpace, DType
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp, VariableArg

WGSL = WGSLRenderer()


@functools.cache
def device() -> Any:
  wgpu = pytest.importorskip("wgpu")
  if not (found := [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan"]):
    pytest.skip("WebGPU has no adapter here")
  return found[0].request_device_sync(required_limits={"max-storage-buffers-per-shader-stage": 24})


def run(uops: Sequence[UOp], arrays: Sequence[Array], values: Sequence[int] = ()) -> None:
  execute(WGSL.source("k", uops), grid_size(uops), arrays, values)


def execute(source: str, grid: tuple[int, int, int], arrays: Sequence[Array], values: Sequence[int] = ()) -> None:
  gpu = device()
  import wgpu
  every = [*arrays, *([np.array(values, np.int32)] if values else [])]
  usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
  memory = [gpu.create_buffer_with_data(data=a, usage=usage) for a in every]
  kinds = ["storage" if f"read_write> data{i}:" in source else "read-only-storage" for i in range(len(every))]
  layout = gpu.create_bind_group_layout(entries=[
    {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}} for i, kind in enumerate(kinds)])
  pipeline = gpu.create_compute_pipeline(layout=gpu.create_pipeline_layout(bind_group_layouts=[layout]), compute={
    "module": gpu.create_shader_module(code=source), "entry_point": "k"})
  group = gpu.create_bind_group(layout=layout, entries=[
    {"binding": i, "resource": {"buffer": m, "offset": 0, "size": m.size}} for i, m in enumerate(memory)])
  encoder = gpu.create_command_encoder()
  work = encoder.begin_compute_pass()
  work.set_pipeline(pipeline)
  work.set_bind_group(0, group)
  work.dispatch_workgroups(*grid)
  work.end()
  gpu.queue.submit([encoder.finish()])
  for m, a in zip(memory, arrays): a[...] = np.frombuffer(gpu.queue.read_buffer(m), a.dtype).reshape(a.shape)


def numbers(dtype: DType, k: int) -> Array:
  rng = np.random.default_rng(seed(k))
  if dtype.is_float: return (rng.normal(size=ROWS) * np.exp2(rng.integers(-8, 8, ROWS))).astype(np.float32)
  special = [0, 1, 2, 7, 31, 32, 33, int(dtype.max), int(dtype.min), int(dtype.max) - 1]
  values = rng.integers(int(dtype.min), int(dtype.max), ROWS, endpoint=True)
  values[::2] = rng.choice(special, ROWS // 2)
  return values.astype(dtype.numpy)


def taken(op: Ops, *values: Any) -> tuple[Any, ...]:
  """As many of three values as the operation takes."""
  return values[:1 if op in GroupOp.UNARY else 3 if op is Ops.MULACC else 2]


def compute(op: Ops) -> Any:
  """The operation on three values of one type; a bool as int32, since memory holds none."""
  def value(*values: UOp) -> UOp:
    if op is Ops.WHERE: return values[0].ne(values[1]).alu(op, *values[:2])
    first, *others = taken(op, *values)
    found = first.alu(op, *others)
    return found.cast(dtypes.int32) if found.dtype.is_bool else found
  return value


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint32, dtypes.float32], ids=lambda d: d.name)
def test_arithmetic(dtype: DType) -> None:
  ops = [op for op in operations(dtype) if op not in GroupOp.LIBRARY]
  for some in (ops[:8], ops[8:]):
    kinds = [dtypes.int32 if op in GroupOp.COMPARE else dtype for op in some]
    values = [numbers(dtype, k) for k in range(3)]
    if dtype.is_float: values[0] = np.where(np.array([op is Ops.SQRT for op in some]).any(), abs(values[0]), values[0])
    out = [np.zeros(ROWS, d.numpy) for d in kinds]
    run(per_element([(d, compute(op)) for d, op in zip(kinds, some)], [dtype] * 3, threads=True), [*out, *values])
    for op, found in zip(some, out):
      for a, b, c, got in zip(*(v.tolist() for v in values), found.tolist()):
        args = (a != b, a, b) if op is Ops.WHERE else taken(op, a, b, c)
        wanted = semantics.alu(op, dtype, *args)
        if dtype.is_float and op in (Ops.FDIV, Ops.RECIP, Ops.SQRT, Ops.MULACC):
          assert math.isclose(got, wanted, rel_tol=3e-7, abs_tol=1e-5 if op is Ops.MULACC else 0), (op, args, got)
        else: assert got == wanted, (op, args, got, wanted)


def test_conversions() -> None:
  for source in (dtypes.int32, dtypes.uint32, dtypes.float32):
    targets = [d for d in (dtypes.int32, dtypes.uint32, dtypes.float32)]
    values = numbers(source, 5)
    if source.is_float: values[:8] = [3e9, -3e9, 5e9, -1.5, 2.0**31, -2.0**31, 2.0**32, 0.99]
    results = [(d, lambda x, d=d: x.cast(d)) for d in targets] + [(d, lambda x, d=d: x.bitcast(d)) for d in targets]
    out = [np.zeros(ROWS, d.numpy) for d, _ in results]
    run(per_element(results, [source], threads=True), [*out, values])
    for target, found in zip(targets, out):
      for v, got in zip(values.tolist(), found.tolist()): assert got == semantics.cast(v, source, target), (v, target)
    for found in out[3:]: assert found.tobytes() == values.tobytes()


def test_workgroups_turn_values_around_in_local_memory() -> None:
  for dtype in (dtypes.float32, dtypes.int32):
    group, item = UOp.special("gidx0", 2), UOp.special("lidx0", 64)
    shared = UOp(Ops.DEFINE_LOCAL, dtype.ptr(64, AddressSpace.LOCAL), (), "turn")
    row = group * 64 + item
    barrier = UOp(Ops.BARRIER, dtypes.void, (shared.index(item).store(buffer(1, dtype, 128).index(row).load()),))
    turned = UOp(Ops.LOAD, dtype, (shared.index(63 - item), barrier))
    given = np.arange(128).reshape(2, 64).astype(dtype.numpy)
    out = np.zeros_like(given)
    run(linear(buffer(0, dtype, 128).index(row).store(turned)), [out, given])
    assert (out == given[:, ::-1]).all()


def test_values_come_after_the_buffers() -> None:
  n = UOp(Ops.DEFINE_VAR, dtypes.int32, (), VariableArg("n", -5, 5))
  uops = linear(buffer(2, dtypes.int32, 1).index(UOp.const(dtypes.int32, 0)).store(n * n + n))
  arrays = [np.zeros(1, np.int32) for _ in range(3)]
  run(uops, arrays, [-5])
  assert arrays[2] == 20


def test_kernels_of_tensors() -> None:
  rng = np.random.default_rng(seed(2))
  a, b = (rng.normal(size=(32, 48)).astype(np.float32), rng.normal(size=(48, 40)).astype(np.float32))
  x, y = Tensor.empty(32, 48), Tensor.empty(48, 40)
  (item,) = schedule([((x @ y).relu() + 1).uop])
  spec = compile_kernel(item.ast, WGSL)
  memory = {x.uop.base: a, y.uop.base: b}
  out = np.zeros((32, 40), np.float32)
  arrays = [memory.get(item.buffers[i], out) for i in spec.buffer_order]
  execute(spec.source.replace(f"fn {spec.name}(", "fn k("), spec.grid, arrays)
  np.testing.assert_allclose(out, np.maximum(a @ b, 0) + 1, rtol=1e-4, atol=1e-5)


def test_what_is_not_a_number_is_read_from_memory() -> None:
  index = UOp.const(dtypes.int32, 0)
  x = buffer(1, dtypes.float32, 1).index(index).load()
  for value, name in ((math.inf, "infinite"), (-math.inf, "minus_infinite"), (math.nan, "not_a_number")):
    uops = linear(buffer(0, dtypes.float32, 1).index(index).store((x < 1).where(x, UOp.const(dtypes.float32, value))))
    assert f"bitcast<f32>({name})" in WGSL.source("k", uops)
    out = np.zeros(1, np.float32)
    run(uops, [out, np.array([2], np.float32)])
    assert out[0] == value or value != value


@pytest.mark.parametrize("dtype", [d for d in dtypes.all() if d.bits_type is None and d.name not in
                                   ("int32", "uint32", "float32")], ids=lambda d: d.name)
def test_types_that_there_are_not(dtype: DType) -> None:
  zero = UOp.const(dtypes.int32, 0)
  with pytest.raises(Unsupported, match=rf"(?i){dtype.name}"):
    WGSL.source("k", linear(buffer(0, dtype, 1).index(zero).store(UOp.const(dtype, 0))))
