"""Kernels give what NumPy gives: random graphs and types, every option of the optimizer, workgroups with local memory.

The host runs them through llvmlite; programs with workgroups run in the UOp emulator, as a GPU would (local memory
begins with garbage, reductions are grouped), and as gfx1100 machine code of each level of LLVM in its emulator.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.compile.witness import aligned, buffer, evaluate, launch_host, matmul, memory_type, realize
from tests.emulator.gpu import Gpu
from tests.strength import examples, seed
from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.compile import Opt, OptKind, ProgramSpec, compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.render.amdgcn import AMDGCNRenderer
from tinyhw.compile.render.base import Renderer
from tinyhw.compile.render.host import HostRenderer
from tinyhw.compile.render.uops import UOpRenderer
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.emulator.uops import Executable
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.uop import Ops, UOp

F32, I32 = dtypes.float32, dtypes.int32
Memory = dict[UOp, np.ndarray]


class LocalRenderer(UOpRenderer):
  """A pretended GPU: workgroups, local memory, vectors, tiles."""
  target = "pretended"
  local = True
  tile = 4
  vector_bytes = 16
  fused = True
  max_block = 64
  max_local = 4096


def launch(program: ProgramSpec, arrays: list[np.ndarray]) -> None:
  """Runs a program in the emulator."""
  Executable(program.uops, program.name)([a.view(np.uint8) for a in arrays], [], program.grid, program.block)


def launch_gfx(program: ProgramSpec, arrays: list[np.ndarray]) -> None:
  """Runs a code object in the emulator of the machine."""
  gpu = Gpu(1 << 22)
  kernel = gpu.load(program.binary)[program.name]
  addresses = [gpu.put(a) for a in arrays]
  gpu.launch(kernel, program.grid, program.block, addresses)
  for a, address in zip(arrays, addresses): a[:] = gpu.get(address, a.dtype, a.size)


HOST, LOCAL = HostRenderer(1), LocalRenderer()
ON: dict[str, tuple[Renderer, Callable[..., None]]] = {
  "host": (HOST, launch_host), "local": (LOCAL, launch), "uops": (UOpRenderer(), launch),
  **{f"gfx1100 O{level}": (AMDGCNRenderer(GFX1100, level), launch_gfx) for level in range(4)}}


def run(outputs: list[UOp], memory: Memory, target: str, opts: object = None) -> list[np.ndarray]:
  renderer, how = ON[target]
  return realize(outputs, memory, renderer, how, opts)


def check(outputs: list[UOp], memory: Memory, target: str, opts: object = None, rtol: float = 0.0) -> None:
  expected = [evaluate(u, memory).copy() for u in outputs]
  for got, want in zip(run(outputs, memory, target, opts), expected): np.testing.assert_allclose(got, want, rtol=rtol)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[UOp, Memory]:
  """A random tensor graph of small whole numbers, so that no order of operations changes a result."""
  memory: Memory = {}
  kind = draw(st.sampled_from([np.float32, np.int32]))
  rng = np.random.default_rng(draw(st.integers(0, 1000)))
  shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
  u = buffer(rng.integers(-4, 5, shape).astype(kind), memory)
  for _ in range(draw(st.integers(1, 7))):
    step = draw(st.sampled_from(["binary", "binary", "unary", "move", "move", "reduce", "expand", "where", "pad"]))
    if step == "binary":
      other = u.flip((True,) * len(u.shape))
      if draw(st.booleans()): other = buffer(rng.integers(-4, 5, u.shape).astype(kind), memory)
      u = u.alu(draw(st.sampled_from([Ops.ADD, Ops.SUB, Ops.MAX])), other)
    elif step == "unary": u = -u if draw(st.booleans()) else u.maximum(0)
    elif step == "where": u = (u < 1).where(u, u + 2)
    elif step == "reduce":
      axes = draw(st.sets(st.integers(0, len(u.shape) - 1), min_size=1))
      u = u.reduce(draw(st.sampled_from([Ops.ADD, Ops.MAX])), axes)
    elif step == "expand": u = u.expand(tuple(draw(st.integers(1, 5)) if s == 1 else s for s in u.shape))
    elif step == "pad": u = u.pad(tuple((draw(st.integers(0, 2)), draw(st.integers(0, 1))) for _ in u.shape))
    else:
      op = draw(st.sampled_from([Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP]))
      if op is Ops.RESHAPE: u = u.reshape((u.size,)) if draw(st.booleans()) else u.reshape((*u.shape, 1))
      elif op is Ops.PERMUTE: u = u.permute(tuple(draw(st.permutations(range(len(u.shape))))))
      elif op is Ops.FLIP: u = u.flip(tuple(draw(st.booleans()) for _ in u.shape))
      else: u = u.shrink(tuple((0, draw(st.integers(1, s))) for s in u.shape))
    assume(u.size <= 2000)
  return u, memory


@settings(max_examples=examples(60))
@given(graphs(), st.sampled_from(sorted(ON)))
def test_random_graphs(case: tuple[UOp, Memory], target: str) -> None: check([case[0]], case[1], target)


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray: return rng.integers(-3, 4, shape).astype(np.float32)


def cases() -> dict[str, tuple[UOp, Memory]]:
  """Kernels of several forms."""
  made: dict[str, tuple[UOp, Memory]] = {}
  rng = np.random.default_rng(seed(1))
  memory: Memory = {}
  made["matmul"] = matmul(buffer(whole(rng, 8, 12), memory), buffer(whole(rng, 12, 16), memory)), memory
  memory = {}
  made["rows"] = buffer(whole(rng, 12, 24), memory).reduce(Ops.ADD, (1,)) + 1.0, memory
  memory = {}
  made["columns"] = buffer(whole(rng, 24, 12), memory).reduce(Ops.MAX, (0,)), memory
  memory = {}
  made["all"] = buffer(whole(rng, 16, 24), memory).reduce(Ops.ADD, (0, 1)), memory
  memory = {}
  made["elementwise"] = (buffer(whole(rng, 12, 8), memory) * 2.0).permute((1, 0)), memory
  memory = {}
  padded = buffer(whole(rng, 10), memory).pad(((2, 4),)).reshape((4, 4))
  made["padded"] = padded + padded.permute((1, 0)), memory
  memory = {}
  made["repeated"] = buffer(whole(rng, 6, 1), memory).expand((6, 24)).maximum(0.0).reduce(Ops.ADD, (0, 1)), memory
  memory = {}
  tiles = buffer(whole(rng, 1, 8), memory).expand((6, 8)).reshape((48,))
  made["in turn"] = (tiles + tiles.flip((True,)).maximum(0.0)).reduce(Ops.ADD, (0,)), memory
  memory = {}
  x = buffer(whole(rng, 6, 16), memory)
  made["two in one"] = (lambda r: r + r.flip((True, False)))(x.reduce(Ops.ADD, (1,))), memory
  return made


CASES = cases()


@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from(sorted(CASES)),
       st.sampled_from(["host", "local", "gfx1100 O2"]))
def test_any_options_keep_the_result(data: st.DataObject, name: str, target: str) -> None:
  output, memory = CASES[name]
  item = schedule([output]).items[0]
  kernel = optimize(item.ast, ON[target][0], [])
  for _ in range(data.draw(st.integers(1, 4))):
    axis = data.draw(st.sampled_from(list(kernel.parts)))
    opt = Opt(data.draw(st.sampled_from(list(OptKind))), axis.arg.axis, data.draw(st.sampled_from([2, 3, 4, 5, 8, 12])))
    try: kernel.apply(opt)
    except InvalidArgument: continue
  check([output], memory, target, kernel.opts)


def test_two_axes_of_one_sum_are_no_lanes_both() -> None:
  """Also where what is summed does not move along one of them."""
  ast = schedule([CASES["repeated"][0]]).items[0].ast
  with pytest.raises(InvalidArgument, match="lanes along another axis"):
    compile_kernel(ast, HOST, [Opt(OptKind.VECTOR, 0, 2), Opt(OptKind.VECTOR, 1, 2)])


@pytest.mark.parametrize("target", sorted(ON))
@pytest.mark.parametrize("name", sorted(CASES))
def test_without_options(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
  check([CASES[name][0]], CASES[name][1], target, [])
  monkeypatch.setenv("NOOPT", "1")
  assert compile_kernel(schedule([CASES[name][0]]).items[0].ast, ON[target][0]).opts == ()


@pytest.mark.parametrize("opt, reason", [
  (Opt(OptKind.UPCAST, 9, 4), "the kernel has axes"), (Opt(OptKind.UPCAST, 0, 3), "3 does not divide 8"),
  (Opt(OptKind.UPCAST, 2, 4), "axis 2 is a reduce axis"), (Opt(OptKind.UNROLL, 0, 4), "axis 0 is a loop axis"),
  (Opt(OptKind.LOCAL, 0, 9), "only 8 steps are left"), (Opt(OptKind.UNROLL, 2, 1), "less than 2")])
def test_options_that_do_not_fit(opt: Opt, reason: str) -> None:
  ast = schedule([CASES["matmul"][0]]).items[0].ast
  with pytest.raises(InvalidArgument, match=reason): compile_kernel(ast, LOCAL, [opt])
  with pytest.raises(InvalidArgument, match="has no workgroups"): compile_kernel(ast, HOST, [Opt(OptKind.LOCAL, 0, 2)])


def test_limits_of_the_target() -> None:
  big = UOp.new_buffer("X", 1 << 16, F32).reshape((256, 256))
  ast = schedule([big.reduce(Ops.ADD, (1,))]).items[0].ast
  local, group = Opt(OptKind.LOCAL, 0, 8), Opt(OptKind.GROUP, 1, 8)
  assert compile_kernel(ast, LOCAL, [local, group]).block == (8, 8, 1)
  with pytest.raises(InvalidArgument, match="more than 64 work-items"):
    compile_kernel(ast, LOCAL, [local, Opt(OptKind.GROUP, 1, 16)])
  with pytest.raises(InvalidArgument, match="more than 4096 bytes"):
    compile_kernel(ast, LOCAL, [Opt(OptKind.UPCAST, 0, 32), local, group])
  with pytest.raises(InvalidArgument, match="grouped already"): compile_kernel(ast, LOCAL, [group, group])


def test_heuristic_uses_what_the_target_has() -> None:
  n = 64
  a, b = (UOp.new_buffer("X", n * n, F32).reshape((n, n)) for _ in range(2))
  program = compile_kernel(schedule([matmul(a, b)]).items[0].ast, LOCAL)
  kinds = {(o.kind, o.amount) for o in program.opts}
  assert {(OptKind.UPCAST, 4), (OptKind.UNROLL, 4)} <= kinds and np.prod(program.block) == 64
  loads = [u for u in program.uops if u.op is Ops.LOAD]
  assert len(loads) == 8 and all(u.dtype.count == 4 for u in loads)
  assert sum(u.op is Ops.MULACC for u in program.uops) == 64
  assert np.prod(program.grid) * np.prod(program.block) * 16 == n * n
  total = compile_kernel(schedule([a.reduce(Ops.ADD, (0, 1))]).items[0].ast, LOCAL)
  assert any(o.kind is OptKind.GROUP for o in total.opts) and sum(u.op is Ops.BARRIER for u in total.uops) == 1
  assert total.local_bytes == 64 * 4 and total.grid == (1, 1, 1)


@pytest.mark.parametrize("size", [1, 2, 7, 127, 10007])
def test_sizes_without_divisors(size: int) -> None:
  memory: Memory = {}
  x = buffer(np.arange(size, dtype=np.float32), memory)
  for target in ON: check([x * 2.0, x.reduce(Ops.MAX, (0,))], memory, target)


def test_launch_values() -> None:
  memory: Memory = {}
  x, n = buffer(np.arange(6, dtype=np.int32), memory), UOp.variable("n", 0, 9)
  for renderer, _ in ON.values():
    program = compile_kernel(schedule([x + n.reshape((1,)).expand((6,))]).items[0].ast, renderer)
    assert program.variables == (n.arg,)
  program = compile_kernel(schedule([x + n.reshape((1,)).expand((6,))]).items[0].ast, LOCAL)
  out = aligned(np.zeros(6, np.int32))
  Executable(program.uops, "k")([out.view(np.uint8), memory[x].view(np.uint8)], [7], program.grid, program.block)
  np.testing.assert_array_equal(out, np.arange(6) + 7)


def test_more_elements_than_an_index_counts() -> None:
  wide = UOp.new_buffer("X", 1 << 16, F32).reshape((1 << 16, 1)).expand((1 << 16, 1 << 16))
  flat = wide.reshape((1 << 32,)).reduce(Ops.ADD, (0,))
  with pytest.raises(Unsupported, match="4,294,967,296 elements"):
    compile_kernel(schedule([flat]).items[0].ast, LOCAL)
  rows = schedule([wide.maximum(0.0).reduce(Ops.ADD, (0, 1))]).items[0].ast      # each axis for itself is short enough
  assert compile_kernel(rows, LOCAL).grid == (1, 1, 1)


def test_many_axes() -> None:
  memory: Memory = {}
  x = buffer(np.arange(2 ** 7, dtype=np.float32).reshape((2,) * 7), memory)
  for target in ON: check([x.permute((6, 4, 2, 0, 1, 3, 5)) + 1.0], memory, target)


def test_a_deep_chain_is_one_kernel() -> None:
  memory: Memory = {}
  x = buffer(np.zeros(5, np.float32), memory)
  for i in range(1200): x = x + float(i % 2)
  assert len(schedule([x])) == 1
  check([x], memory, "uops")


@pytest.mark.parametrize("target", sorted(ON))
@pytest.mark.parametrize("dtype", dtypes.all(), ids=str)
def test_every_type(dtype: DType, target: str) -> None:
  """Arithmetic, reductions and casts of each type, by the scalar meanings."""
  memory: Memory = {}
  values = [0, 1, 2, 3, 1, 0, 2, 5, 7, 1, 1, 2]
  bits = [semantics.to_bits(semantics.canonical(v, dtype), dtype) for v in values]
  x = UOp.new_buffer("TEST", 12, dtype)
  memory[x] = aligned(np.array(bits, np.dtype(f"u{dtype.itemsize}"))).view(memory_type(dtype))
  one = x.const_like(1)
  outputs = [x + one, x * x, x.maximum(one), x.reduce(Ops.MAX, (0,)), x < one, x.eq(one), x.cast(F32), x.cast(I32),
             x.cast(dtypes.bool), x.cast(dtypes.float16), x.cast(dtypes.float64), x.cast(dtypes.bfloat16).cast(F32)]
  # Which sums are rounded depends on their order, which is open: floats of 8 bits count exactly to 8 or 16 only.
  summed = x.eq(one).cast(dtype) if dtype.is_float and dtype.itemsize == 1 else x
  if not dtype.is_bool: outputs += [summed.reduce(Ops.ADD, (0,)), x - one]
  def meaning(op: Ops, *operands: float) -> object: return semantics.alu(op, dtype, *operands)
  c = [semantics.canonical(v, dtype) for v in values]
  terms = c if summed is x else [semantics.canonical(v == 1, dtype) for v in values]
  total = terms[0]
  for v in terms[1:]: total = meaning(Ops.ADD, total, v)
  expected: list[list] = [[meaning(Ops.ADD, v, c[1]) for v in c], [meaning(Ops.MUL, v, v) for v in c],
                          [meaning(Ops.MAX, v, c[1]) for v in c], [max(c)], [v < c[1] for v in c],
                          [v == c[1] for v in c], c, c, [v != 0 for v in c], c, c, c]
  if not dtype.is_bool: expected += [[total], [meaning(Ops.SUB, v, c[1]) for v in c]]
  results = raw_memory(outputs, memory, target)
  for u, got, want in zip(outputs, results, expected):
    values_got = [semantics.from_bits(int(b), u.dtype) for b in got.view(f"u{u.dtype.itemsize}")]
    assert values_got == [semantics.cast(w, dtypes.float64, u.dtype) for w in want], u


def raw_memory(outputs: list[UOp], memory: Memory, target: str) -> list[np.ndarray]:
  """Runs and gives the flat memory of the outputs; floats that NumPy has not as their bits."""
  renderer, how = ON[target]
  s = schedule(outputs)
  for item in s:
    for b in item.buffers:
      if b not in memory: memory[b] = aligned(np.zeros(b.arg.size, memory_type(b.dtype)))
    program = compile_kernel(item.ast, renderer)
    how(program, [memory[item.buffers[i]] for i in program.buffer_order])
  return [memory[s.becomes.get(u, u).base] for u in outputs]


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[UOp], Memory]:
  """Several outputs of a graph with shared nodes: matrices of one shape, combined, reduced and expanded again."""
  memory: Memory = {}
  rng = np.random.default_rng(draw(st.integers(0, 1000)))
  n = draw(st.integers(2, 5))
  pool = [buffer(rng.integers(-2, 3, (n, n)).astype(np.int32), memory) for _ in range(draw(st.integers(1, 3)))]
  for _ in range(draw(st.integers(2, 9))):
    a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
    step = draw(st.sampled_from(["add", "max", "product", "normalize", "sum", "turn", "keep", "shift"]))
    if step == "add": new = a - b
    elif step == "max": new = a.maximum(b)
    elif step == "product": new = matmul(a, b) % 7
    elif step == "normalize": new = a - b.reduce(Ops.MAX, (draw(st.integers(0, 1)),)).expand((n, n))
    elif step == "sum": new = (a * 3).reduce(Ops.ADD, (0, 1)).expand((n, n)) % 5
    elif step == "turn": new = a.permute((1, 0)).flip((True, False))
    elif step == "keep": new = a.contiguous()
    else: new = b.shrink(((1, n), (0, n))).pad(((0, 1), (0, 0))) + a
    pool.append(new)
  return draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3)), memory


@settings(max_examples=examples(40))
@given(programs(), st.sampled_from(["local", "uops"]))
def test_random_programs(case: tuple[list[UOp], Memory], target: str) -> None: check(case[0], case[1], target)
