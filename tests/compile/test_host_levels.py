"""Kernels of the host at every level of processors that it has: the same bits. Higher levels are compiled all the same.

What the bits have to be is held by `test_render_host`, at the level that the host gives; here one machine stands for
others.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.compile.test_render_host import INTS, SCALARS, buffer, linear, load, specials
from tests.strength import examples, seed
from tinyhw.compile.render import objects
from tinyhw.compile.render.host import HostRenderer
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.host import LEVELS, Host, levels
from tinyhw.drive.cpu import HostRuntime
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp

HOST = objects.host()
KNOWN = list(LEVELS) if HOST.cpu in LEVELS else [HOST.cpu]


@functools.cache
def had() -> list[str]:
  import llvmlite.binding as llvm
  return levels(HOST.triple, llvm.get_host_cpu_features())


def kernel(dtype: DType, count: int) -> tuple[list[UOp], list[DType]]:
  """Every operation on three operands of a type, each into a buffer of its own, and the buffers' types."""
  counter = UOp.range(count, 0)
  inputs = [buffer(i, dtype, count) for i in range(3)]
  head = [*inputs, *linear(counter)]
  x = [i.index(counter).load() for i in inputs]
  made = [x[0].alu(op, *x[1:1 + (op in GroupOp.BINARY) + 2 * (op is Ops.MULACC)])
          for op in sorted(GroupOp.ALU - GroupOp.LIBRARY - {Ops.WHERE}, key=lambda op: op.name)
          if op not in ((GroupOp.INT_ONLY | GroupOp.BITWISE) if dtype.is_float else GroupOp.FLOAT_ONLY)
          and (op not in GroupOp.INT_ONLY or dtype.is_int)]
  made.append(x[0].alu(Ops.CMPLT, x[1]).alu(Ops.WHERE, x[1], x[2]))
  made += [UOp(Ops.CAST, other, (x[0],)) for other in SCALARS if other is not dtype]
  outputs = [buffer(3 + k, u.dtype, count) for k, u in enumerate(made)]
  body = linear(*(o.index(counter).store(u) for o, u in zip(outputs, made)), known=head)
  return [*head, *body, UOp(Ops.ENDRANGE, dtypes.void, (counter,))], [u.dtype for u in made]


def operands(dtype: DType, count: int) -> list[np.ndarray]:
  """All pairs of special values, then anything; of floats also products that the third operand takes away."""
  rng, kind = np.random.default_rng(seed(SCALARS.index(dtype))), dtype.numpy
  assert kind is not None
  if dtype.is_bool: return [rng.integers(0, 2, count).astype(np.bool_) for _ in range(3)]
  few = np.array(specials(dtype), kind)
  pairs = [x.reshape(-1) for x in np.meshgrid(few, few)]
  out = [rng.integers(0, np.iinfo(f"u{dtype.itemsize}").max, count, f"u{dtype.itemsize}", endpoint=True).view(kind)
         for _ in range(3)]
  for column, given in zip(out, (*pairs, rng.choice(few, pairs[0].size))): column[:given.size] = given
  if dtype.is_float:
    for column in out[:2]: column[-100:] = rng.uniform(-2, 2, 100)
    out[2][-100:] = -out[0][-100:] * out[1][-100:]
  return out


def ran(level: str, uops: Sequence[UOp], inputs: Sequence[np.ndarray], results: Sequence[DType]) -> list[np.ndarray]:
  """The results as bits; a NaN is any NaN."""
  found: list[Any] = [np.zeros(inputs[0].size, d.numpy) for d in results]
  load(uops, HostRenderer(2, Host(HOST.triple, level)))(*inputs, *found)
  for x in found:
    if x.dtype.kind == "f": x[np.isnan(x)] = np.nan
  return [x.view(f"u{x.itemsize}") for x in found]


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_every_operation_gives_the_same_bits(dtype: DType) -> None:
  count = examples(700) + 5  # also where vectors end
  uops, results = kernel(dtype, count)
  inputs = operands(dtype, count)
  first, *others = had()
  wanted = ran(first, uops, inputs, results)
  for level in others:
    for k, (got, want) in enumerate(zip(ran(level, uops, inputs, results), wanted)):
      at = np.flatnonzero(got != want)
      assert not at.size, (level, k, results[k].name, [i[at[0]] for i in inputs], hex(got[at[0]]), hex(want[at[0]]))
  for level in KNOWN[len(had()):]:
    renderer = HostRenderer(2, Host(HOST.triple, level))
    assert renderer.compile(renderer.source("k", uops), "k")


def test_kernels_of_different_levels_have_different_keys() -> None:
  assert len({HostRenderer(2, Host(HOST.triple, level)).key for level in LEVELS}) == len(LEVELS)


def test_the_device_says_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("TINYHW_CPU", had()[0])
  assert f" as {had()[0]} through LLVM " in HostRuntime().describe()
  assert HostRenderer().host.cpu == had()[0]
  monkeypatch.setenv("TINYHW_CPU", "z80")
  with pytest.raises(InvalidArgument, match="TINYHW_CPU: 'z80' is no level"): HostRenderer()


@pytest.mark.parametrize("target", INTS, ids=lambda d: d.name)
@pytest.mark.parametrize("level", KNOWN)
def test_every_half_as_an_integer(level: str, target: DType) -> None:
  """Saturated, NaN is 0: LLVM's own way with halves is wrong on some processors."""
  if level not in had(): pytest.skip(f"this processor is no {level}")
  halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
  counter = UOp.range(halves.size, 0)
  source, out = buffer(0, dtypes.float16, halves.size), buffer(1, target, halves.size)
  head = [source, out, *linear(counter)]
  body = linear(out.index(counter).store(UOp(Ops.CAST, target, (source.index(counter).load(),))), known=head)
  found = np.zeros(halves.size, target.numpy)
  uops = [*head, *body, UOp(Ops.ENDRANGE, dtypes.void, (counter,))]
  load(uops, HostRenderer(2, Host(HOST.triple, level)))(halves, found)
  exact = np.nan_to_num(halves.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
  low, high = int(target.min), int(target.max)
  wanted = np.array([min(max(int(v), low), high) for v in exact], target.numpy)
  assert (found == wanted).all()
