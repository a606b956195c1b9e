"""EXP2, LOG2 and SIN without instructions for them, run on the host processor and held to references."""
from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from tinyhw.compile.render.host import HostRenderer
from tinyhw.compile.transcendental import lower
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

Array = np.ndarray[Any, np.dtype[Any]]
COUNT = 1 << 15
REFERENCES: dict[Ops, Callable[[Array], Array]] = {Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.SIN: np.sin}
WIDER = {dtypes.float16: np.float64, dtypes.float32: np.float64, dtypes.float64: np.longdouble}


def whole(op: Ops, x: UOp) -> UOp:
  """The op with nothing left that the host has not."""
  lowered = lower(x.alu(op))
  left = {u: lower(u) for u in lowered.toposort() if u.op is op}
  return lowered.substitute(left) if left else lowered


@pytest.fixture(scope="module")
def functions() -> dict[tuple[Ops, DType], Any]:
  """Each op of each type as a function of two arrays: result, operand."""
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  jit = llvm.create_lljit_compiler(llvm.Target.from_default_triple().create_target_machine(opt=2))
  renderer, found = HostRenderer(), {}
  for op in REFERENCES:
    for dtype in WIDER:
      out, a = (UOp(Ops.DEFINE_GLOBAL, dtype.ptr(COUNT), (), i) for i in range(2))
      counter = UOp.range(COUNT, 0)
      store = out.index(counter).store(whole(op, a.index(counter).load()))
      head = [out, a, *counter.src, counter]
      uops = [*head, *(u for u in store.toposort() if u not in head), UOp(Ops.ENDRANGE, dtypes.void, (counter,))]
      name = f"{op.name}_{dtype.name}"
      binary = renderer.compile(renderer.source(name, uops), name)
      builder = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process().export_symbol(name)
      library = builder.link(jit, name)
      run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library[name])
      found[op, dtype] = (run, library)
  return found


def results(functions: dict[tuple[Ops, DType], Any], op: Ops, dtype: DType, operands: Array) -> Array:
  padded = np.zeros(COUNT, dtype.numpy)
  padded[:operands.size] = operands
  out = np.zeros(COUNT, dtype.numpy)
  functions[op, dtype][0](out.ctypes.data, padded.ctypes.data)
  return out[:operands.size]


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
  usual = rng.uniform(*{Ops.EXP2: (-160, 140), Ops.LOG2: (0, 20), Ops.SIN: (-100, 100)}[op], 10000).astype(kind)
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
      x = operands(op, dtype, seed)
      assert error(results(functions, op, dtype, x), REFERENCES[op](x.astype(WIDER[dtype])), dtype) < 1.0


def test_zeros_keep_their_sign(functions: dict[tuple[Ops, DType], Any]) -> None:
  for dtype in WIDER:
    found = results(functions, Ops.SIN, dtype, np.array([0.0, -0.0], dtype.numpy))
    assert np.signbit(found).tolist() == [False, True] and (found == 0).all()


def test_sines_of_numbers_closest_to_multiples_of_half_pi(functions: dict[tuple[Ops, DType], Any]) -> None:
  """J.-M. Muller, Elementary Functions (2006), 11.3.2, gives the double and the float that lie closest."""
  doubles = np.array([6381956970095103 * 2.0**797, 5.0, 1e22, 2.0**1023])
  found = results(functions, Ops.SIN, dtypes.float64, doubles)
  assert error(found, np.sin(doubles.astype(np.longdouble)), dtypes.float64) < 1.0
  floats = np.array([16367173 * 2.0**72, 2.0**127, 3.4028235e38], np.float32)
  found = results(functions, Ops.SIN, dtypes.float32, floats)
  assert error(found, np.sin(floats.astype(np.float64)), dtypes.float32) < 1.0
