"""What a program says of itself: arguments, name, work, local memory; and which programs are kept."""
from __future__ import annotations

import math

import numpy as np
import pytest

from tests.compile.test_kernels import HOST, LOCAL
from tests.compile.witness import buffer, launch_host, matmul
from tinyhw.compile import Opt, OptKind, ProgramSpec, compile_kernel, schedule
from tinyhw.compile.render.base import Renderer
from tinyhw.compile.render.uops import UOpRenderer
from tinyhw.ir.dtype import PtrDType, dtypes
from tinyhw.ir.uop import Ops, UOp

Memory = dict[UOp, np.ndarray]
UOPS = UOpRenderer()


def compiled(u: UOp, renderer: Renderer = UOPS,
             opts: tuple[Opt, ...] | None = ()) -> tuple[ProgramSpec, tuple[UOp, ...]]:
  """The only kernel of a graph, and the buffers that the schedule gives it."""
  (item,) = schedule([u])
  return compile_kernel(item.ast, renderer, opts), item.buffers


def ints(n: int, memory: Memory) -> UOp: return buffer(np.arange(n, dtype=np.int32), memory)


def test_buffers_are_passed_by_their_numbers() -> None:
  """Also where the loads of one in between were simplified away: then nothing moves up."""
  memory: Memory = {}
  x, y, z = ints(6, memory), ints(6, memory), ints(6, memory)
  program, buffers = compiled(x + y * z)
  assert program.buffer_order == (0, 1, 2, 3) and len(buffers) == 4
  outside = [u.pad(((6, 0),)).shrink(((0, 6),)) for u in (x, z)]  # nothing but zeros of the padding
  program, buffers = compiled(outside[0] + outside[1] + y + y, HOST)
  assert program.buffer_order == tuple(range(len(buffers))) and len(buffers) == 4
  used = {int(u.arg) for u in program.uops if u.op is Ops.DEFINE_GLOBAL}
  assert used == {0, buffers.index(y.base)}, "only two of them are touched"
  out = np.full(6, 77, np.int32)
  launch_host(program, [out, *(memory[b] for b in buffers[1:])])
  assert (out == 2 * memory[y.base]).all()


def test_a_number_is_a_buffer_of_its_own() -> None:
  program, buffers = compiled(UOp.const(dtypes.int32, 5, "TEST").reshape((1,)).expand((4,)).contiguous())
  assert program.buffer_order == (0,) and len(buffers) == 1


def test_work_is_counted_on_values_and_bytes_on_buffers() -> None:
  """One multiplication and one addition for each term of a product; indices do not count."""
  memory: Memory = {}
  a, b = (buffer(np.ones(s, np.float32), memory) for s in ((4, 8), (8, 6)))
  for renderer in (UOPS, HOST, LOCAL):
    program, _ = compiled(matmul(a, b), renderer)
    assert program.estimates.ops == 2 * 4 * 8 * 6, renderer
    assert program.estimates.bytes == 4 * (4 * 8 + 8 * 6 + 4 * 6)
  program, _ = compiled(buffer(np.ones(10, np.int8), memory) + buffer(np.ones(10, np.int8), memory))
  assert (program.estimates.ops, program.estimates.bytes) == (10, 30)
  sums, _ = compiled(buffer(np.ones((3, 50), np.float32), memory).reduce(Ops.ADD, (1,)))
  assert sums.estimates.ops == 150


def test_the_grid_and_block_hold_every_element() -> None:
  memory: Memory = {}
  u = buffer(np.ones((32, 16), np.float32), memory) * 2.0
  program, _ = compiled(u, LOCAL, (Opt(OptKind.LOCAL, 1, 8),))
  assert math.prod(program.grid) * math.prod(program.block) == 32 * 16 and math.prod(program.block) == 8
  assert program.opts == (Opt(OptKind.LOCAL, 1, 8),) and program.local_bytes == 0
  assert program.estimates.ops == 32 * 16
  plain, _ = compiled(u, LOCAL)
  assert math.prod(plain.block) == 1 and math.prod(plain.grid) == 32 * 16 and plain.opts == ()


def test_local_memory_of_a_grouped_reduction() -> None:
  """One partial sum a work-item."""
  memory: Memory = {}
  u = buffer(np.ones((4, 64), np.float32), memory).reduce(Ops.ADD, (1,))
  program, _ = compiled(u, LOCAL, (Opt(OptKind.GROUP, 1, 16),))
  tiles = [u.dtype for u in program.uops if u.op is Ops.DEFINE_LOCAL]
  assert program.local_bytes == sum(t.size * 4 for t in tiles if isinstance(t, PtrDType)) == 4 * 16
  assert program.block.count(16) == 1


def test_the_name_tells_kernels_apart() -> None:
  memory: Memory = {}
  x = buffer(np.ones((4, 8), np.float32), memory)
  names = [compiled(u)[0].name for u in (x + 1.0, x + 2.0, x.reduce(Ops.ADD, (1,)), x.reduce(Ops.MAX, (1,)))]
  assert len(set(names)) == 4 and [n[0] for n in names] == ["e", "e", "r", "r"]
  assert all(n.split("_")[1:-1] in (["4", "8"], ["32"]) for n in names)


def test_programs_are_kept_by_graph_target_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
  memory: Memory = {}
  (item,) = schedule([buffer(np.ones((8, 8), np.float32), memory) * 3.0])
  plain, auto = compile_kernel(item.ast, LOCAL, ()), compile_kernel(item.ast, LOCAL)
  assert compile_kernel(item.ast, LOCAL, ()) is plain and compile_kernel(item.ast, LOCAL, []) is plain
  assert compile_kernel(item.ast, LOCAL) is auto is not plain and auto.opts and not plain.opts
  assert compile_kernel(item.ast, UOPS, ()) is not plain
  for value, wanted in (("1", plain), ("", auto), ("0", auto)):
    monkeypatch.setenv("NOOPT", value)
    assert compile_kernel(item.ast, LOCAL) is wanted
