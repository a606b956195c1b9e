"""Functions without instructions for them, run on the host processor and held to references."""
from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.strength import seeds
from tinyhw.compile.render.host import HostRenderer
from tinyhw.compile.transcendental import lower
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp

Array = np.ndarray[Any, np.dtype[Any]]
COUNT = 1 << 15
REFERENCES: dict[Ops, Callable[..., Array]] = {
  Ops.EXP2: np.exp2, Ops.EXP: np.exp, Ops.EXPM1: np.expm1, Ops.LOG2: np.log2, Ops.LOG: np.log, Ops.LOG10: np.log10,
  Ops.LOG1P: np.log1p, Ops.SIN: np.sin, Ops.COS: np.cos, Ops.TANH: np.tanh, Ops.POW: np.power, Ops.FMOD: np.fmod}
GROWING = (Ops.LOG2, Ops.LOG, Ops.LOG10, Ops.LOG1P, Ops.POW, Ops.FMOD)
WIDER = {dtypes.float16: np.float64, dtypes.float32: np.float64, dtypes.float64: np.longdouble}


def whole(op: Ops, *x: UOp) -> UOp:
  """The op with nothing left that the host has not."""
  lowered = lower(x[0].alu(op, *x[1:]))
  left = {u: lower(u) for u in lowered.toposort() if u.op is op}
  return lowered.substitute(left) if left else lowered


@pytest.fixture(scope="module")
def functions() -> dict[tuple[Ops, DType], Any]:
  """Each op of each type as a function of arrays: result, operands."""
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  jit = llvm.create_lljit_compiler(llvm.Target.from_default_triple().create_target_machine(opt=2), use_jit_link=True)
  renderer, found = HostRenderer(), {}
  for op in REFERENCES:
    for dtype in WIDER:
      arity = 1 if op in GroupOp.UNARY else 2
      buffers = [UOp(Ops.DEFINE_GLOBAL, dtype.ptr(COUNT), (), i) for i in range(1 + arity)]
      counter = UOp.range(COUNT, 0)
      store = buffers[0].index(counter).store(whole(op, *(b.index(counter).load() for b in buffers[1:])))
      head = [*buffers, *counter.src, counter]
      uops = [*head, *(u for u in store.toposort() if u not in head), UOp(Ops.ENDRANGE, dtypes.void, (counter,))]
      name = f"{op.name}_{dtype.name}"
      binary = renderer.compile(renderer.source(name, uops), name)
      builder = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process().export_symbol(name)
      library = builder.link(jit, name)
      run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(buffers))(library[name])
      found[op, dtype] = (run, library)
  return found


def results(functions: dict[tuple[Ops, DType], Any], op: Ops, dtype: DType, *operands: Array) -> Array:
  padded = [np.zeros(COUNT, dtype.numpy) for _ in operands]
  for p, x in zip(padded, operands): p[:x.size] = x
  out = np.zeros(COUNT, dtype.numpy)
  functions[op, dtype][0](out.ctypes.data, *(p.ctypes.data for p in padded))
  return out[:operands[0].size]


def error(found: Array, wanted: Array, dtype: DType) -> float:
  """The largest difference in units in the last place; NaN and infinities must be where they are wanted."""
  kind = dtype.numpy
  assert kind is not None
  rounded = wanted.astype(kind)
  special = ~np.isfinite(rounded)
  assert (np.isnan(found) == np.isnan(rounded)).all()
  assert (found[special] == rounded[special])[~np.isnan(rounded[special])].all()
  unit = np.spacing(np.maximum(np.abs(rounded[~special]), np.finfo(kind).smallest_normal)).astype(wanted.dtype)
  return float(np.max(np.abs(found[~special].astype(wanted.dtype) - wanted[~special]) / unit, initial=0))


def operands(op: Ops, dtype: DType, seed: int) -> Array:
  """Numbers of every magnitude, numbers where the result is neither 0 nor infinite, numbers near 1."""
  rng, kind = np.random.default_rng(seed), dtype.numpy
  assert kind is not None
  bits = rng.integers(0, 1 << dtype.bits, 12000, dtype=np.uint64, endpoint=False) if dtype.bits < 64 else rng.integers(
    0, 2**64 - 1, 12000, dtype=np.uint64)
  anything = bits.astype(f"u{dtype.itemsize}").view(kind)
  low, high = (-100, 100) if op in (Ops.SIN, Ops.COS) else (0, 20) if op in GROWING else (-160, 140)
  usual = rng.uniform(low, high, 10000).astype(kind)
  near = (1 + rng.normal(size=5000) * 2.0 ** -rng.integers(1, 30, 5000)).astype(kind)
  named = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 127.0, 128.0, -149.0, -150.0, -1074.0, -1075.0, 1023.0, 1024.0,
                    math.inf, -math.inf, math.nan, np.finfo(kind).max, np.finfo(kind).tiny,
                    np.finfo(kind).smallest_subnormal], kind)
  turns = (np.arange(1, 2000) * (np.pi / 2)).astype(kind)         # next to the zeros of sine and cosine
  return np.concatenate([anything, usual, near, named, turns])


@pytest.mark.parametrize("dtype", WIDER, ids=lambda d: d.name)
@pytest.mark.parametrize("op", REFERENCES, ids=lambda o: o.name)
def test_within_one_unit_of_a_wider_reference(functions: dict[tuple[Ops, DType], Any], op: Ops, dtype: DType) -> None:
  with np.errstate(all="ignore"):
    for seed in range(3):
      x = [operands(op, dtype, seed)]
      if op in GroupOp.BINARY: x.append(exponents(x[0], seed) if op is Ops.POW else operands(op, dtype, seed + 10))
      # Times 1: where NumPy widens halves without the processor, signalling NaNs stay so, whose power is no number.
      found, wanted = results(functions, op, dtype, *x), REFERENCES[op](*(a.astype(WIDER[dtype]) * 1 for a in x))
      # A tanh is a quotient of what is rounded already.
      assert error(found, wanted, dtype) < (2.0 if op is Ops.TANH and dtype is dtypes.float64 else 1.0)


def exponents(bases: Array, seed: int) -> Array:
  """An exponent for each base: whole ones, and such that the power is neither 0 nor infinite, and special ones."""
  rng, kind = np.random.default_rng(seed + 20), bases.dtype
  reach = math.log(float(np.finfo(kind).max)) * 1.1
  fits = rng.uniform(-reach, reach, bases.size) / np.maximum(np.abs(np.log(np.abs(bases.astype(np.float64)))), 1e-9)
  special = rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -3.0, math.inf, -math.inf, math.nan, 1e300], bases.size)
  choice = rng.integers(0, 3, bases.size)
  return np.where(choice == 0, np.round(fits), np.where(choice == 1, fits, special)).astype(kind)


@pytest.mark.parametrize("dtype", WIDER, ids=lambda d: d.name)
def test_a_remainder_is_exact(functions: dict[tuple[Ops, DType], Any], dtype: DType) -> None:
  """Also where the operands are 2000 binades apart; C's fmod is exact."""
  with np.errstate(all="ignore"):
    for seed in seeds(range(4)):
      rng = np.random.default_rng(seed)
      bits = rng.integers(0, 2**63, (2, COUNT), dtype=np.uint64) >> np.uint64(64 - dtype.bits)
      x, y = bits.astype(f"u{dtype.itemsize}").view(dtype.numpy)
      y = np.where(rng.random(COUNT) < 0.3, x * rng.integers(1, 9, COUNT).astype(x.dtype), y)
      # Both below the normal numbers.
      x[:500], y[:500] = (rng.integers(1, 999, (2, 500)) * np.finfo(x.dtype).smallest_subnormal).astype(x.dtype)
      wanted = np.fmod(-x, y)
      found = results(functions, Ops.FMOD, dtype, -x, y)
      same = (found == wanted) & (np.signbit(found) == np.signbit(wanted)) | np.isnan(found) & np.isnan(wanted)
      assert same.all(), (x[~same][:3], y[~same][:3])


def test_powers_have_the_special_cases_of_ieee_754(functions: dict[tuple[Ops, DType], Any]) -> None:
  """Python's pow is C's, but raises where that gives an infinity or NaN."""
  values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30, math.inf, -math.inf, math.nan]
  pairs = [(x, y) for x in values for y in values]
  for dtype in (dtypes.float32, dtypes.float64):
    x, y = (np.array([p[i] for p in pairs], dtype.numpy) for i in range(2))
    for a, b, found in zip(x.tolist(), y.tolist(), results(functions, Ops.POW, dtype, x, y).tolist()):
      wanted = semantics.alu(Ops.POW, dtype, a, b)
      nearly = 2 * float(np.finfo(dtype.numpy).eps) * abs(wanted) if math.isfinite(wanted) else 0
      same = (found == wanted or abs(found - wanted) <= nearly) and math.copysign(1, found) == math.copysign(1, wanted)
      assert same or found != found and wanted != wanted, (a, b, found, wanted)


def test_zeros_keep_their_sign(functions: dict[tuple[Ops, DType], Any]) -> None:
  for dtype in WIDER:
    for op in (Ops.SIN, Ops.EXPM1, Ops.LOG1P):
      found = results(functions, op, dtype, np.array([0.0, -0.0], dtype.numpy))
      assert np.signbit(found).tolist() == [False, True] and (found == 0).all(), op


def test_sines_of_numbers_closest_to_multiples_of_half_pi(functions: dict[tuple[Ops, DType], Any]) -> None:
  """J.-M. Muller, Elementary Functions (2006), 11.3.2, gives the double and the float that lie closest."""
  doubles = np.array([6381956970095103 * 2.0**797, 5.0, 1e22, 2.0**1023])
  found = results(functions, Ops.SIN, dtypes.float64, doubles)
  assert error(found, np.sin(doubles.astype(np.longdouble)), dtypes.float64) < 1.0
  floats = np.array([16367173 * 2.0**72, 2.0**127, 3.4028235e38], np.float32)
  found = results(functions, Ops.SIN, dtypes.float32, floats)
  assert error(found, np.sin(floats.astype(np.float64)), dtypes.float32) < 1.0
