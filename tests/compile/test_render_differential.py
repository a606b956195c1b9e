"""Random linear programs give the same on the host processor, on gfx11 machine code and in the UOp emulator."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.strength import seeds
from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.compile.render.amdgcn import AMDGCNRenderer
from tinyhw.compile.render.host import HostRenderer
from tinyhw.compile.render.uops import UOpRenderer
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.emulator.uops import load_program
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import Axis, UOp
from tinyhw.wire import codeobject

Array = np.ndarray[Any, np.dtype[Any]]
THREADS, WORKGROUPS = 64, 2
COUNT = THREADS * WORKGROUPS
INPUTS = [dtypes.int32, dtypes.uint8, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bool]
# What has one right answer only.
OPERATIONS = sorted(GroupOp.ELEMENTWISE - GroupOp.LIBRARY - {Ops.MULACC, Ops.BITCAST}, key=lambda o: o.name)
OUTPUTS = [dtypes.float64, dtypes.int64, dtypes.int32]
CODE, KERNARG, DATA, STEP = 0x10000, 0x8000, 0x100000, 0x2000


class Program:
  """A random program over an element's number, one buffer of each input type, and a loop that accumulates."""

  def __init__(self, seed: int):
    self.rng = np.random.default_rng(seed)
    self.kinds = [INPUTS[i] for i in self.rng.choice(len(INPUTS), 4, replace=False)]

  def pick(self, values: Sequence[Any]) -> Any: return values[self.rng.integers(len(values))]

  def constant(self, dtype: DType) -> UOp:
    values = [0, 1, 2, 3, 7, 31, 64, 100] if not dtype.is_float else [0.0, 1.0, -1.5, 0.25, 3.0, 100.0]
    return UOp.const(dtype, self.pick(values) * (self.pick([1, 1, -1]) if not dtype.is_bool else 1))

  def step(self, known: list[UOp]) -> UOp:
    """A random operation on values that are there, converted to one type."""
    op = self.pick(OPERATIONS)
    kinds = [dtypes.int32, dtypes.int32, dtypes.uint32, *INPUTS]
    if op in GroupOp.FLOAT_ONLY: kinds = [d for d in kinds if d.is_float]
    elif op in GroupOp.INT_ONLY: kinds = [d for d in kinds if d.is_int]
    elif op in GroupOp.BITWISE: kinds = [d for d in kinds if not d.is_float]
    dtype = self.pick(kinds)
    def operand() -> UOp: return self.pick(known).cast(dtype) if self.rng.random() < 0.75 else self.constant(dtype)
    if op is Ops.CAST: return operand()
    if op is Ops.WHERE: return self.pick(known).cast(dtypes.bool).alu(op, operand(), operand())
    return operand().alu(op) if op in GroupOp.UNARY else operand().alu(op, operand())

  def build(self, number: UOp, before: list[UOp]) -> list[UOp]:
    """The linear program after `before`, which computes the number of the element."""
    def buffer(i: int, dtype: DType) -> UOp: return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(COUNT), (), i)
    out = [buffer(i, d) for i, d in enumerate(OUTPUTS)]
    inputs = [buffer(len(out) + i, d) for i, d in enumerate(self.kinds)]
    uops = list(before)
    def put(*nodes: UOp) -> None:
      uops.extend(u for u in UOp.sink(*nodes).toposort() if u.op is not Ops.SINK and u not in uops)
    known = [number, number * 3 + 5, number % 7]
    for b, kind in zip(inputs, self.kinds):
      gate = number < int(self.rng.integers(1, COUNT))
      index = b.index(number, gate) if self.rng.random() < 0.5 else b.index(number)
      known.append(index.load(self.constant(kind)) if len(index.src) > 2 else index.load())
    for _ in range(6): known.append(self.step(known))
    total = UOp(Ops.DEFINE_ACC, dtypes.int32, (known[-1].cast(dtypes.int32),), 0)
    loop = UOp.range(int(self.rng.integers(1, 5)), 1, Axis.REDUCE)
    put(*out, *inputs, *known, total, loop)
    inside = [*known, loop, loop * number]
    for _ in range(4): inside.append(self.step(inside))
    op = self.pick([Ops.ADD, Ops.MAX, Ops.MUL, Ops.XOR])
    assign = UOp(Ops.ASSIGN, dtypes.int32, (total, total.alu(op, inside[-1].cast(dtypes.int32))))
    put(assign)
    uops.append(UOp(Ops.ENDRANGE, dtypes.void, (loop,)))
    known.append(assign)
    inner = {u for u in uops[uops.index(loop):] if u.op is not Ops.CONST} - {assign}
    while len(known) < 18:          # what is made in a loop is not known after it
      value = self.step(known)
      stored = UOp.sink(*(value.cast(kind) for kind in OUTPUTS)).toposort(lambda u: u is not assign)
      if inner.isdisjoint(stored): known.append(value)
    results = zip(out, OUTPUTS, (known[-1], known[-2], assign))
    put(*(b.index(number).store(value.cast(kind)) for b, kind, value in results))
    return uops

  def for_threads(self) -> list[UOp]:
    """With a thread for each element."""
    group, item = UOp.special("gidx0", WORKGROUPS), UOp.special("lidx0", THREADS)
    number = group * THREADS + item
    return self.build(number, [u for u in number.toposort()])

  def for_one_thread(self) -> list[UOp]:
    """With a loop over the elements."""
    counter = UOp.range(COUNT, 0)
    return [*self.build(counter, [*counter.src, counter]), UOp(Ops.ENDRANGE, dtypes.void, (counter,))]

  def data(self) -> list[Array]:
    found = []
    for d in self.kinds:
      if d.is_float: values = self.rng.normal(size=COUNT) * self.pick([1.0, 1e3, 1e-3])
      else: values = self.rng.integers(0 if not d.is_signed else -100, 2 if d.is_bool else 200, COUNT)
      found.append(values.astype(d.numpy))
    return found


def on_host(uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  renderer = HostRenderer()
  binary = renderer.compile(renderer.source("k", uops), "k")        # also makes LLVM's targets known
  jit = llvm.create_lljit_compiler(llvm.Target.from_default_triple().create_target_machine(), use_jit_link=True)
  library = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process().export_symbol("k").link(jit, "k")
  ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(library["k"])(*(a.ctypes.data for a in arrays))


def on_emulator(uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  renderer = UOpRenderer()
  run = load_program(renderer.compile(renderer.source("k", uops), "k"), "k")
  run([a.view(np.uint8) for a in arrays], (), (WORKGROUPS, 1, 1), (THREADS, 1, 1))


def on_gpu(uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  renderer = AMDGCNRenderer()
  code = codeobject.load(renderer.compile(renderer.source("k", uops), "k"), arch="gfx1100")
  kernel, space, image = code.kernel("k"), AddressSpace(), code.link(CODE)
  room = -(-len(image) // 4096) * 4096
  space.map(CODE, room, Region("code", room))
  space.map(KERNARG, 4096, Region("kernarg", 4096))
  space.map(DATA, STEP * len(arrays), Region("data", STEP * len(arrays)))
  space.write(CODE, image)
  for i, a in enumerate(arrays): space.write(DATA + i * STEP, a.tobytes())
  space.write(KERNARG, b"".join((DATA + i * STEP).to_bytes(8, "little") for i in range(len(arrays))))
  d = kernel.descriptor
  dispatch(space, GFX1100, Dispatch(
    CODE + kernel.entry_offset, (WORKGROUPS, 1, 1), (THREADS, 1, 1), d.compute_pgm_rsrc1, d.compute_pgm_rsrc2,
    d.compute_pgm_rsrc3, (KERNARG, 0) + (0,) * 14))
  for i, a in enumerate(arrays): a[...] = np.frombuffer(space.read(DATA + i * STEP, a.nbytes), a.dtype)


@pytest.mark.parametrize("seed", seeds(range(30)))
def test_three_machines_agree(seed: int) -> None:
  # The same choices twice, so the same program, but for where an element's number comes from.
  threads, one, data = Program(seed).for_threads(), Program(seed).for_one_thread(), Program(seed).data()
  outputs = []
  for run, uops in ((on_emulator, threads), (on_host, one), (on_gpu, threads)):
    out = [np.zeros(COUNT, d.numpy) for d in OUTPUTS]
    run(uops, [*out, *(d.copy() for d in data)])
    outputs.append(out)
  for name, found in zip(("host", "gpu"), outputs[1:]):
    for a, b in zip(outputs[0], found):
      different = ~((a == b) | ((a != a) & (b != b)))
      assert not different.any(), f"{name}: {b[different][:4]}, the emulator has {a[different][:4]}"


def test_large_integers_on_the_host() -> None:
  from tests.compile.families import check_large_integers
  check_large_integers(on_host, threads=False)
