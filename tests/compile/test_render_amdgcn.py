"""Linear programs as gfx11 machine code: what is in the code objects, and what they compute on the ISA emulator."""
from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tinyhw.arch import ARCHES
from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.compile.render.amdgcn import AMDGCNRenderer
from tinyhw.compile.render.base import block_size, grid_size
from tinyhw.compile.transcendental import lower
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.core.memory import AddressSpace as GPUMemory
from tinyhw.core.memory import Region
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.ir import semantics
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp
from tinyhw.wire import codeobject

Array = np.ndarray[Any, np.dtype[Any]]
GPU = AMDGCNRenderer()
SCALARS = [d for d in dtypes.all() if GPU.supports(d)]
INTS = [d for d in SCALARS if d.is_int]
FLOATS = [d for d in SCALARS if d.is_float]
ROWS = 256
CODE, KERNARG, DATA = 0x10000, 0x8000, 0x100000     # addresses in the GPU's memory


def buffer(index: int, dtype: DType, size: int) -> UOp: return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(size), (), index)


def linear(*stores: UOp) -> list[UOp]: return [u for u in UOp.sink(*stores).toposort() if u.op is not Ops.SINK]


def run(uops: Sequence[UOp], *arguments: Array | int, renderer: AMDGCNRenderer = GPU) -> None:
  """Compile, load at an address, dispatch; arrays are copied to the GPU's memory and back."""
  code = codeobject.load(renderer.compile(renderer.source("k", uops), "k"), arch=renderer.target)
  kernel, space = code.kernel("k"), GPUMemory()
  image, kernarg = code.link(CODE), bytearray()
  size = sum(-(-a.nbytes // 4096) * 4096 for a in arguments if isinstance(a, np.ndarray)) + 4096
  for address, bytes_ in ((CODE, len(image)), (KERNARG, 4096), (DATA, size)):
    space.map(address, -(-bytes_ // 4096) * 4096, Region("test", -(-bytes_ // 4096) * 4096))
  space.write(CODE, image)
  places, at = [], DATA
  for a in arguments:
    if isinstance(a, np.ndarray):
      space.write(at, a.tobytes())
      places.append((at, a))
      kernarg += at.to_bytes(8, "little")
      at += -(-a.nbytes // 4096) * 4096
    else: kernarg += a.to_bytes(4, "little", signed=True)
  space.write(KERNARG, bytes(kernarg))
  d = kernel.descriptor
  dispatch(space, GFX1100, Dispatch(
    entry_pc=CODE + kernel.entry_offset, grid=grid_size(uops), block=block_size(uops), rsrc1=d.compute_pgm_rsrc1,
    rsrc2=d.compute_pgm_rsrc2, rsrc3=d.compute_pgm_rsrc3, user_data=(KERNARG, 0) + (0,) * 14,
    lds_size=kernel.group_segment_size))
  for at, a in places: a[...] = np.frombuffer(space.read(at, a.nbytes), a.dtype).reshape(a.shape)


def specials(dtype: DType) -> list[Any]:
  """Canonical values at which arithmetic goes wrong."""
  if dtype.is_bool: return [False, True]
  if dtype.is_int:
    return [semantics.wrap(v, dtype) for v in (0, 1, -1, 2, 3, 7, 31, 32, 33, 63, 64, 100, -7, dtype.min, dtype.max)]
  limits = np.finfo(dtype.numpy)
  numbers = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 3.0, 65504.0, 2.0**31, -2.0**31, 2.0**63, float(limits.max),
             float(limits.tiny), float(limits.smallest_subnormal), math.inf, -math.inf, math.nan]
  return [semantics.canonical(v, dtype) for v in numbers]


def operands(dtype: DType, seed: int) -> Array:
  """ROWS values: special ones and any others."""
  rng = np.random.default_rng(seed)
  values: list[Any] = specials(dtype)
  values = [values[i] for i in rng.integers(0, len(values), ROWS // 2)]
  bits = rng.integers(0, 2 if dtype.is_bool else 2**dtype.bits - 1, ROWS - len(values), dtype=np.uint64, endpoint=True)
  anything = (bits % 2).astype(bool) if dtype.is_bool else bits.astype(f"u{dtype.itemsize}").view(dtype.numpy)
  return np.concatenate([np.array(values, dtype.numpy), anything])


def whole(u: UOp, renderer: AMDGCNRenderer = GPU) -> UOp:
  """The value with nothing in it that the GPU has no instruction for."""
  def missed(v: UOp) -> bool: return v.op in GroupOp.LIBRARY and not renderer.native(v.op, v.dtype)
  while missing := {v: lower(v, renderer.native) for v in u.toposort() if missed(v)}:
    u = u.substitute(missing)
  return u


def program(results: Sequence[tuple[DType, Callable[..., UOp]]], sources: Sequence[DType]) -> list[UOp]:
  """Each thread computes all results of its element of the sources. Buffers: the results, then the sources."""
  thread = UOp.special("gidx0", ROWS // 64) * 64 + UOp.special("lidx0", 64)
  loads = [buffer(len(results) + i, d, ROWS).index(thread).load() for i, d in enumerate(sources)]
  return linear(*(buffer(i, d, ROWS).index(thread).store(compute(*loads)) for i, (d, compute) in enumerate(results)))


def operations(dtype: DType) -> list[Ops]:
  """The arithmetic that the type has."""
  missing = frozenset() if dtype.is_int else GroupOp.INT_ONLY
  missing |= GroupOp.BITWISE if dtype.is_float else GroupOp.FLOAT_ONLY
  return sorted(GroupOp.ALU - missing, key=lambda op: op.name)


def arithmetic(dtype: DType) -> tuple[list[Ops], list[tuple[DType, Callable[..., UOp]]]]:
  """All arithmetic of a type on (a, b, c, condition)."""
  def compute(op: Ops) -> Callable[..., UOp]:
    def value(a: UOp, b: UOp, c: UOp, condition: UOp) -> UOp:
      if op is Ops.WHERE: return condition.alu(op, a, b)
      if op is Ops.MULACC: return a.alu(op, b, c)
      return whole(a.alu(op) if op in GroupOp.UNARY else a.alu(op, b))
    return value
  ops = operations(dtype)
  return ops, [(dtypes.bool if op in GroupOp.COMPARE else dtype, compute(op)) for op in ops]


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_arithmetic_on_the_emulator_means_what_semantics_says(dtype: DType) -> None:
  ops, results = arithmetic(dtype)
  values = [operands(dtype, seed) for seed in range(3)] + [operands(dtypes.bool, 3)]
  found = [np.zeros(ROWS, r.numpy) for r, _ in results]
  run(program(results, [dtype, dtype, dtype, dtypes.bool]), *found, *values)
  rows = list(zip(*(v.tolist() for v in values)))
  for op, (result, _), out in zip(ops, results, found):
    if op in GroupOp.LIBRARY or op is Ops.MULACC and dtype.is_float:
      with np.errstate(all="ignore"): check_close(op, out, values)
      continue
    for (a, b, c, condition), value in zip(rows, out.tolist()):
      args = (condition, a, b) if op is Ops.WHERE else (a, b, c) if op is Ops.MULACC else (a, b)
      if op in GroupOp.UNARY: args = (a,)
      wanted = semantics.alu(op, dtype, *args)
      same = math.isnan(value) if wanted != wanted else value == wanted
      assert same, f"{op.name} of {dtype.name} {args}: {value!r}, not {wanted!r} ({result.name})"


UNARY_REFERENCES = {Ops.EXP2: np.exp2, Ops.EXP: np.exp, Ops.EXPM1: np.expm1, Ops.LOG2: np.log2, Ops.LOG: np.log,
                    Ops.LOG10: np.log10, Ops.LOG1P: np.log1p, Ops.SIN: np.sin, Ops.COS: np.cos, Ops.TANH: np.tanh}
REFERENCES = {Ops.POW: np.power, Ops.FMOD: np.fmod}


def check_close(op: Ops, found: Array, values: Sequence[Array]) -> None:
  """Two units in the last place of what a wider type gives; of the product too for MULACC."""
  wide = np.longdouble if found.dtype == np.float64 else np.float64
  a, b, c = (v.astype(wide) for v in values[:3])
  exact = REFERENCES[op](a, b) if op in REFERENCES else UNARY_REFERENCES[op](a) if op in GroupOp.LIBRARY else a * b + c
  rounded, size = exact.astype(found.dtype), np.abs(exact)
  if op is Ops.MULACC:
    rounded = np.where(np.isinf((a * b).astype(found.dtype)) & np.isinf(found), found, rounded)     # rounded twice
    size = np.maximum(size, np.abs(a * b))
  assert (np.isnan(found) == np.isnan(rounded)).all()
  finite = np.isfinite(rounded) & np.isfinite(found)
  assert (found == rounded)[~finite & ~np.isnan(rounded)].all()
  limits = np.finfo(found.dtype)
  unit = np.maximum(size[finite] * float(limits.eps), float(limits.smallest_subnormal))
  assert np.max(np.abs(found[finite].astype(wide) - exact[finite]) / unit, initial=0) <= 2, op


@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
def test_casts_on_the_emulator(source: DType) -> None:
  values = operands(source, 0)
  found = [np.zeros(ROWS, d.numpy) for d in SCALARS]
  run(program([(d, lambda x, d=d: x.cast(d)) for d in SCALARS], [source]), *found, values)
  for target, out in zip(SCALARS, found):
    for x, value in zip(values.tolist(), out.tolist()):
      wanted = semantics.cast(x, source, target)
      assert math.isnan(value) if wanted != wanted else value == wanted, (x, source, target, value, wanted)


@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_every_level_makes_code_of_all_arithmetic_and_casts(dtype: DType, level: int) -> None:
  renderer = AMDGCNRenderer(optimization=level)
  _, results = arithmetic(dtype)
  casts: list[tuple[DType, Callable[..., UOp]]] = [(d, lambda a, b, c, e, d=d: a.cast(d)) for d in SCALARS]
  uops = program([*results, *casts], [dtype, dtype, dtype, dtypes.bool])
  code = codeobject.load(renderer.compile(renderer.source("k", uops), "k"), arch="gfx1100")
  assert code.kernel("k").max_workgroup_size == 64


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_what_a_code_object_asks_for(level: int) -> None:
  """Buffers, then values, and nothing hidden; one wave32 user pointer; LDS as declared."""
  shared = UOp(Ops.DEFINE_LOCAL, dtypes.float32.ptr(64, AddressSpace.LOCAL), (), "shared")
  uops = reverse(shared, UOp.variable("n", 0, 9))
  renderer = AMDGCNRenderer(optimization=level)
  kernel = codeobject.load(renderer.compile(renderer.source("k", uops), "k"), arch="gfx1100").kernel("k")
  assert [(a.kind, a.offset, a.size) for a in kernel.arguments] == [
    ("global_buffer", 0, 8), ("global_buffer", 8, 8), ("by_value", 16, 4)]
  assert not kernel.hidden and kernel.wavefront_size == 32 and not kernel.dynamic_stack
  assert kernel.group_segment_size == 256 and kernel.private_segment_size == 0
  assert kernel.required_workgroup_size == (64, 1, 1)
  assert kernel.descriptor.kernel_code_properties & 0x7F == 1 << 3      # of the user SGPRs only the kernarg pointer


@pytest.mark.parametrize("name", ARCHES)
def test_every_generation_gets_code_of_its_own(name: str) -> None:
  renderer = AMDGCNRenderer(ARCHES[name])
  shared = UOp(Ops.DEFINE_LOCAL, dtypes.float32.ptr(64, AddressSpace.LOCAL), (), "shared")
  binary = renderer.compile(renderer.source("k", reverse(shared, UOp.variable("n", 0, 9))), "k")
  assert codeobject.load(binary, arch=name).arch == name


def reverse(shared: UOp, add: UOp) -> list[UOp]:
  """Each workgroup of 64 turns its elements round, through local memory, and adds a value."""
  item, group = UOp.special("lidx0", 64), UOp.special("gidx0", 4)
  out, a = buffer(0, dtypes.float32, 256), buffer(1, dtypes.float32, 256)
  barrier = UOp(Ops.BARRIER, dtypes.void, (shared.index(item).store(a.index(group * 64 + item).load()),))
  other = shared.index(UOp.const(dtypes.int32, 63) - item).load(barrier)
  return linear(out.index(group * 64 + item).store(other + add.cast(dtypes.float32)))


def test_local_memory_and_barriers() -> None:
  shared = UOp(Ops.DEFINE_LOCAL, dtypes.float32.ptr(64, AddressSpace.LOCAL), (), "shared")
  values, found = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
  run(reverse(shared, UOp.variable("n", 0, 9)), found, values, 7)
  assert (found == values.reshape(4, 64)[:, ::-1].reshape(-1) + 7).all()


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_vectors_gates_and_big_buffers(dtype: DType) -> None:
  """A gated vector load with another value, a gated store, and a pointer too large for 32-bit offsets."""
  item = UOp.special("lidx0", 32)
  out, a = buffer(0, dtype, 1 << 31), buffer(1, dtype, 64)
  other = UOp(Ops.VECTORIZE, dtype.vec(4), tuple(UOp.const(dtype, v) for v in (1, 0, 1, 1)))
  vector = a.index(item * 4, item < 16).load(other, dtype=dtype.vec(4))
  turned = UOp(Ops.VECTORIZE, dtype.vec(4), tuple(vector.gep(i) for i in (3, 2, 1, 0)))
  values = (np.arange(64) % 3).astype(dtype.numpy)
  found = np.full(128, 1, dtype.numpy)
  run(linear(out.index(item * 4, item.ne(5)).store(turned)), found, values)
  others = np.tile(np.array([1, 1, 0, 1], dtype.numpy), 16)
  wanted = np.concatenate([values.reshape(16, 4)[:, ::-1].reshape(-1), others])
  wanted[20:24] = 1
  assert (found == wanted).all()


def test_addresses_are_a_base_and_a_32_bit_offset() -> None:
  """In a loop too, and behind a gate."""
  item, group, loop = UOp.special("lidx0", 32), UOp.special("gidx0", 8), UOp.range(8, 0)
  out, a, b = (buffer(i, dtypes.float32, 1 << 16) for i in range(3))
  place = group * 1024 + loop * 128 + item * 4
  vector = a.index(place + 1000).load(dtype=dtypes.float32.vec(4))
  ends = [b.index(place + c, item < 30).load(UOp.const(dtypes.float32, 1.0)) for c in (0, 2, 900)]
  lanes = tuple(vector.gep(i) for i in range(4))
  sums = tuple(lane + end for lane, end in zip(lanes, ends))
  value = UOp(Ops.VECTORIZE, dtypes.float32.vec(4), (*sums, lanes[3]))
  head = [*linear(out, a, b), *linear(group, item), *loop.src, loop]
  uops = [*head, *(u for u in linear(out.index(place).store(value)) if u not in head)]
  uops.append(UOp(Ops.ENDRANGE, dtypes.void, (loop,)))
  text = GPU.assembly(GPU.source("k", uops), "k")
  assert "global_load_b128" in text and "global_store_b128" in text
  assert ", off" not in text and "v_add_co" not in text and "flat_load" not in text
  left, right, found = (np.random.default_rng(i).normal(size=1 << 16).astype(np.float32) for i in range(3))
  run(uops, found, left, right)
  n = np.arange(8192)
  late = n // 4 % 32 >= 30
  wanted = left[n + 1000].reshape(-1, 4)
  for lane, c in enumerate((0, 2, 900)): wanted[:, lane] += np.where(late, np.float32(1), right[n + c])[::4]
  assert (found[:8192] == wanted.reshape(-1)).all()


def test_what_the_gpu_does_not_do_is_refused() -> None:
  big = UOp(Ops.DEFINE_LOCAL, dtypes.float32.ptr(1 << 15, AddressSpace.LOCAL), (), "big")
  with pytest.raises(InvalidArgument, match="131,072 bytes of local memory, gfx1100 has 65,536"): GPU.source("k", [big])
  with pytest.raises(InvalidArgument, match="work-items; gfx1100 has at most 1024"):
    GPU.source("k", [UOp.special("lidx0", 2048)])
  x = buffer(0, dtypes.float64, 4).index(UOp.const(dtypes.int32, 0))
  with pytest.raises(Unsupported, match="EXP2 on float64 on gfx1100"): GPU.source("k", linear(x.store(x.load().exp2())))
  with pytest.raises(InvalidArgument, match="grid"): GPU.render("k", linear(x.store(x.load())), (2, 1, 1), (1, 1, 1))
  with pytest.raises(InvalidArgument, match="LLVM refuses the source"): GPU.compile("nonsense", "k")


def test_a_cold_process_compiles_with_little() -> None:
  """A first kernel needs the compiler alone: nothing that runs kernels is loaded for it."""
  text = GPU.source("k", linear(buffer(0, dtypes.float32, 64).index(UOp.special("lidx0", 64)).store(
    UOp.const(dtypes.float32, 1.0))))
  done = subprocess.run([sys.executable, "-c", "import sys\n"
                         "from tinyhw.compile.render.amdgcn import AMDGCNRenderer\n"
                         "made = AMDGCNRenderer().compile(sys.stdin.read(), 'k')\n"
                         "rooms = 'engine', 'drive', 'mock', 'emulator'\n"
                         "heavy = [m for m in sys.modules if m.startswith(tuple(f'tinyhw.{r}' for r in rooms))]\n"
                         "print(made[:4] == bytes.fromhex('7f454c46'), heavy)"],
                        input=text, capture_output=True, text=True, check=True)
  assert done.stdout.split(maxsplit=1) == ["True", "[]\n"], done.stdout
