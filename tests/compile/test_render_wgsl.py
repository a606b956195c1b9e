"""WGSL through wgpu (whose naga checks it) on whatever adapter there is, such as Mesa's lavapipe; and what is refused.

WGSL promises less than IEEE 754: NaN, infinities and subnormal numbers are not asked for here, and quotients may be 2.5
units in the last place off.
"""
from __future__ import annotations

import base64
import functools
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from tests.compile.families import ROWS, Array, buffer, check_arithmetic, check_casts, per_element
from tests.compile.test_render_amdgcn import linear, operations
from tests.compile.witness import memory_type, realized
from tests.strength import seed
from tinyhw import Tensor, dtypes
from tinyhw.compile import ProgramSpec, compile_kernel, schedule
from tinyhw.compile.legalize import without_missing_types
from tinyhw.compile.pairs import without_wide_integers
from tinyhw.compile.render import wgsl
from tinyhw.compile.render.base import grid_size
from tinyhw.compile.render.wgsl import WGSLRenderer
from tinyhw.core.errors import Unsupported
from tinyhw.devices.buffer import buffer_of
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
                                   ("int32", "uint32", "float32", "uint8", "uint16")], ids=lambda d: d.name)
def test_types_that_there_are_not(dtype: DType) -> None:
  zero = UOp.const(dtypes.int32, 0)
  with pytest.raises(Unsupported, match=rf"(?i){dtype.name}"):
    WGSL.source("k", linear(buffer(0, dtype, 1).index(zero).store(UOp.const(dtype, 0))))


def test_arithmetic_on_parts_of_words_is_refused() -> None:
  x = buffer(1, dtypes.uint8).index(UOp.const(dtypes.int32, 3)).load()
  with pytest.raises(Unsupported, match="uint8"):
    WGSL.source("k", linear(buffer(0, dtypes.uint8).index(UOp.const(dtypes.int32, 5)).store(x + x)))


def run_emulated(uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  """A program with types that WGSL lacks, made of those that it has."""
  sink = UOp.sink(*(u for u in uops if u.op is Ops.STORE))
  run(linear(*without_wide_integers(without_missing_types(sink, WGSL), "wgsl").src), arrays)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint16, dtypes.int64, dtypes.uint64], ids=lambda d: d.name)
def test_arithmetic_of_integers_that_there_are_not(dtype: DType) -> None:
  check_arithmetic(dtype, run_emulated, threads=True)


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.uint8, dtypes.int16, dtypes.int64], ids=lambda d: d.name)
def test_conversions_of_integers_that_there_are_not(dtype: DType) -> None:
  check_casts(dtype, run_emulated, threads=True, without=frozenset({dtypes.float64}))


def tensors() -> dict[str, tuple[Tensor, Array]]:
  """Small programs and their values, by name."""
  rng = np.random.default_rng(seed(6))
  ints, floats = rng.integers(-2**62, 2**62, (4, 8)), rng.integers(-64, 64, (4, 8)).astype(np.float32) / 8
  halves, bytes_ = floats.astype(np.float16), ints.astype(np.int8)
  return {
    "sums of int64": (Tensor(ints).sum(0), ints.sum(0)),
    "quotients of int64": (Tensor(ints).div(Tensor(ints).flip(0) % 1000, rounding_mode="trunc"), _quotients(ints)),
    "order": (Tensor(floats).argsort(1), np.argsort(floats, 1, kind="stable")),
    "sums of halves": (Tensor(halves).sum(1), halves.sum(1)),
    "products of bfloat16": ((Tensor(floats).cast(dtypes.bfloat16) * 2).cast(dtypes.float32), floats * 2),
    "float8": (Tensor(floats).cast(dtypes.float8_e5m2).cast(dtypes.float32), _rounded(floats).astype(np.float32)),
    "int8": (Tensor(bytes_) * Tensor(bytes_).flip(0), bytes_ * bytes_[::-1]),
    "bool": (Tensor(floats) > 1, floats > 1),
  }


def _quotients(x: Array) -> Array:
  """x // (x from its end, modulo 1000 as Python has it), toward zero."""
  pairs = zip(x.reshape(-1).tolist(), (x[::-1] % 1000).reshape(-1).tolist())
  return np.array([semantics.trunc_div(a, b) for a, b in pairs]).reshape(x.shape)


def _rounded(x: Array) -> Array:
  return np.array([semantics.canonical(v, dtypes.float8_e5m2) for v in x.reshape(-1).tolist()]).reshape(x.shape)


def launch(program: ProgramSpec, arrays: list[Array]) -> None:
  """On the adapter, whose memory is whole words."""
  words = [np.concatenate([a.reshape(-1).view(np.uint8), np.zeros(-a.nbytes % 4, np.uint8)]) for a in arrays]
  execute(program.source.replace(f"fn {program.name}(", "fn k("), program.grid, words)
  for a, w in zip(arrays, words): a.reshape(-1).view(np.uint8)[:] = w[:a.nbytes]


@pytest.mark.parametrize("case", ["sums of int64", "quotients of int64", "order", "sums of halves",
                                  "products of bfloat16", "float8", "int8", "bool"])
def test_tensors_of_types_that_there_are_not(case: str) -> None:
  device()
  x, wanted = tensors()[case]
  assert (realized(x, WGSL, launch) == wanted).all()


PAGE = """<body><script>
const programs = %s;
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
(async () => {
  const found = [];
  try {
    const gpu = await (await navigator.gpu.requestAdapter()).requestDevice();
    const problems = [];
    gpu.onuncapturederror = e => problems.push(e.error.message);
    for (const p of programs) {
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      const memory = p.buffers.map(text => {
        const data = bytes(text), made = gpu.createBuffer({size: data.length, usage});
        gpu.queue.writeBuffer(made, 0, data);
        return made;
      });
      const layout = gpu.createBindGroupLayout({entries: p.kinds.map((type, binding) =>
        ({binding, visibility: GPUShaderStage.COMPUTE, buffer: {type}}))});
      const pipeline = gpu.createComputePipeline({
        layout: gpu.createPipelineLayout({bindGroupLayouts: [layout]}),
        compute: {module: gpu.createShaderModule({code: p.source}), entryPoint: "k"}});
      const group = gpu.createBindGroup({layout, entries: memory.map((buffer, binding) =>
        ({binding, resource: {buffer}}))});
      const encoder = gpu.createCommandEncoder(), pass = encoder.beginComputePass();
      pass.setPipeline(pipeline); pass.setBindGroup(0, group); pass.dispatchWorkgroups(...p.grid); pass.end();
      const read = gpu.createBuffer({size: memory[0].size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST});
      encoder.copyBufferToBuffer(memory[0], 0, read, 0, memory[0].size);
      gpu.queue.submit([encoder.finish()]);
      await read.mapAsync(GPUMapMode.READ);
      found.push(Array.from(new Uint8Array(read.getMappedRange())));
    }
    await fetch("/", {method: "POST", body: JSON.stringify(problems.length ? {problems} : {found})});
  } catch (e) { await fetch("/", {method: "POST", body: JSON.stringify({problems: [String(e)]})}); }
})();
</script></body>"""


def in_browser(programs: list[Any]) -> Any:
  """What the page says of the programs: `found` results or `problems`."""
  answers: SimpleQueue[Any] = SimpleQueue()
  class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
      self.send_response(200)
      self.send_header("Content-Type", "text/html")
      self.end_headers()
      self.wfile.write((PAGE % json.dumps(programs)).encode())
    def do_POST(self) -> None:
      answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
      self.send_response(204)
      self.end_headers()
    def log_message(self, format: str, *args: Any) -> None:
      """Nothing."""
  with tempfile.TemporaryDirectory() as profile, HTTPServer(("localhost", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = subprocess.Popen(["chromium", "--no-sandbox", "--headless", "--enable-unsafe-webgpu",
                                "--use-webgpu-adapter=swiftshader", f"--user-data-dir={profile}",
                                f"http://localhost:{server.server_port}/"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try: return answers.get(timeout=120)
    finally:
      os.killpg(browser.pid, signal.SIGKILL)
      browser.wait()
      server.shutdown()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_a_browser_runs_them_all() -> None:
  """Chromium on its software GPU: the cases of one kernel, whose first buffer is the result."""
  programs, expected = [], []
  for x, wanted in tensors().values():
    work = [item for item in schedule([x.uop]) if item.ast.op is not Ops.COPY]
    if len(work) > 1: continue
    spec = compile_kernel(work[0].ast, WGSL)
    memory = []
    for i in spec.buffer_order:
      b = work[0].buffers[i]
      a = np.zeros(b.arg.size, memory_type(b.dtype))
      if i: buffer_of(b).copyout(memoryview(a).cast("B"))
      memory.append(a.tobytes() + bytes(-a.nbytes % 4))
    kinds = ["storage" if f"read_write> data{i}:" in spec.source else "read-only-storage" for i in range(len(memory))]
    programs.append({"source": spec.source.replace(f"fn {spec.name}(", "fn k("), "grid": spec.grid, "kinds": kinds,
                     "buffers": [base64.b64encode(m).decode() for m in memory]})
    expected.append(wanted)
  answer = in_browser(programs)
  if any("null" in p for p in answer.get("problems", ())): pytest.skip("chromium has no WebGPU adapter here")
  assert "problems" not in answer, answer
  assert len(programs) == len(answer["found"]) >= 5
  for got, wanted in zip(answer["found"], expected):
    made = np.array(got, np.uint8)[:wanted.size * wanted.itemsize].view(wanted.dtype)
    assert (made.reshape(wanted.shape) == wanted).all()


def test_numbers_that_wgsl_has_no_word_for_have_their_bits() -> None:
  """NaN as NumPy has it, and both infinities."""
  for value in (math.nan, math.inf, -math.inf):
    language = wgsl.WGSL()
    assert language.literal(value, dtypes.float32).startswith("bitcast<f32>(")
    assert f" = {int(np.float32(value).view(np.uint32))}u;" in "".join(language.module)
