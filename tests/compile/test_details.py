"""Details of the compiler that whole programs rarely show: what is computed once, rounded, shared or left out."""
from __future__ import annotations

import random

import numpy as np
import pytest

from tests.compile.test_kernels import CASES, HOST, ON, check, raw_memory
from tests.compile.witness import buffer, evaluate, realize
from tests.strength import seeds
from tinyhw.compile import Opt, OptKind, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.render import objects
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.uop import Ops, UOp

Memory = dict[UOp, np.ndarray]


def to_bits(x: np.ndarray) -> np.ndarray:
  """float32 as bfloat16, to nearest even."""
  bits = x.view(np.uint32).astype(np.uint64)
  return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_float(bits: np.ndarray) -> np.ndarray: return (bits.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("target", ["host", "local", "uops", "gfx1100 O2"])
@pytest.mark.parametrize("number", seeds(range(3)))
def test_every_step_in_bfloat16_is_rounded(number: int, target: str) -> None:
  """Random expressions, as if each result went to memory and back."""
  rng, draw = np.random.default_rng(number), random.Random(number)
  memory: Memory = {}
  pool = []
  for _ in range(3):
    bits = to_bits(rng.uniform(0.5, 4.0, 64).astype(np.float32) * rng.choice([-1, 1], 64).astype(np.float32))
    pool.append((buffer(bits, memory, dtypes.bfloat16), bits))
  for op in (Ops.ADD, Ops.MUL, Ops.SUB, Ops.MAX, Ops.NEG, Ops.WHERE, Ops.FDIV, Ops.ADD):
    (a, x), (b, y) = draw.sample(pool, 2) if op is not Ops.ADD else pool[-2:]
    f, g = to_float(x), to_float(y)
    with np.errstate(all="ignore"):
      if op is Ops.NEG: new = -a, to_bits(-f)
      elif op is Ops.WHERE: new = (a < b).where(b, a), np.where(f < g, y, x)
      else:
        wanted = {Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.MAX: np.maximum,
                  Ops.FDIV: np.divide}[op](f, g)
        if not np.isfinite(wanted).all(): continue
        new = a.alu(op, b), to_bits(wanted)
    pool.append(new)
  (got,) = raw_memory([pool[-1][0]], memory, target)
  np.testing.assert_array_equal(got, pool[-1][1])


@pytest.mark.parametrize("target", ["local", "gfx1100 O2"])
@pytest.mark.parametrize("amount", [2, 4, 5, 16])
def test_one_of_two_reductions_is_shared_by_a_group(amount: int, target: str) -> None:
  """Each in turn: the other one is every work-item's own."""
  output, memory = CASES["two in one"]
  reductions = optimize(schedule([output]).items[0].ast, ON[target][0], []).reductions
  assert len(reductions) == 2
  for axis in reductions: check([output], memory, target, [Opt(OptKind.GROUP, axis.arg.axis, amount)])


def test_the_optimizer_of_llvm_is_asked_from_level_1_on() -> None:
  source = objects.header(HOST.processor) + "\n".join([
    "define i32 @k(i32 %x) {", "  %a = add i32 %x, 1", "  %b = add i32 %a, 2", "  ret i32 %b", "}"])
  for level in range(4):
    text = str(objects.optimised(source, "k", HOST.processor, level))
    assert ("add i32 %x, 3" in text) == (level > 0), level


@pytest.mark.parametrize(("make", "kernels"), [
  # A sum with two users that meet, and what they meet in is expanded: the sum needs no memory of its own.
  (lambda x: (lambda c: [c, x - c.expand((4, 8))])((lambda r: (r + 1.0) * (r - 1.0))(x.reduce(Ops.ADD, (1,)))), 2),
  # A value that is used twice at the same index is computed once there, so nothing need be kept.
  (lambda x: [(lambda u: [u := u * u + u for _ in range(9)][-1])(x * 0.125)], 1),
  (lambda x: [(lambda u: [u := u.maximum(u * 0.5).flip((True, False)) for _ in range(3)][-1])(x)], 1),
])
def test_cuts(make: object, kernels: int) -> None:
  memory: Memory = {}
  outputs = make(buffer(np.arange(32, dtype=np.float32).reshape(4, 8) % 3 / 4, memory))
  wanted = [evaluate(u, memory).copy() for u in outputs]
  assert len(schedule(outputs)) == kernels
  for got, want in zip(realize(outputs, memory, HOST), wanted): np.testing.assert_allclose(got, want, rtol=1e-5)
