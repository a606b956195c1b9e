"""What the optimizer chooses for common kernels, and how graphs are cut into kernels: nothing fails without it, but
speed is gone."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.compile.test_kernels import HOST, LOCAL
from tests.compile.witness import buffer, evaluate, matmul, realize
from tinyhw import Tensor
from tinyhw.compile import compile_kernel, schedule
from tinyhw.compile.render.base import Renderer, alignment
from tinyhw.compile.render.host import HostRenderer
from tinyhw.compile.render.ptx import PTXRenderer
from tinyhw.core.host import Host
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.uop import Ops, UOp

F32 = dtypes.float32


def new(*shape: int, dtype: DType = F32) -> UOp: return UOp.new_buffer("X", math.prod(shape), dtype).reshape(shape)


def chosen(u: UOp, renderer: Renderer) -> str:
  """The options by kind, axis and amount."""
  (item,) = schedule([u])
  return " ".join(f"{o.kind.name}{o.axis}:{o.amount}" for o in compile_kernel(item.ast, renderer).opts)


def twisted(u: UOp) -> UOp:
  """Long arithmetic on few values."""
  for _ in range(40): u = (u * u + 1.0).sqrt()
  return u


LOCALS = {
  # A thread takes what a vector of 16 bytes holds of the widest type, 8 elements at most; 64 threads are a workgroup.
  "f32": (lambda: new(4096) + 1.0, "UPCAST0:4 LOCAL0:64"),
  "f16": (lambda: new(4096, dtype=dtypes.float16) * 2.0, "UPCAST0:8 LOCAL0:64"),
  "f64": (lambda: new(4096, dtype=dtypes.float64) * 2.0, "UPCAST0:2 LOCAL0:64"),
  "int8": (lambda: new(4096, dtype=dtypes.int8) * 2, "UPCAST0:8 LOCAL0:64"),
  "int8 to f32": (lambda: new(4096, dtype=dtypes.int8).cast(F32) * 2.0, "UPCAST0:4 LOCAL0:64"),
  # Vectors lie along the axis that most accesses walk; neighbours on it share a workgroup first.
  "transposed": (lambda: new(64, 32).permute((1, 0)).contiguous(), "UPCAST0:4 LOCAL1:64"),
  "both ways": (lambda: new(12, 100) + new(100, 12).permute((1, 0)), "UPCAST1:4 LOCAL1:25 LOCAL0:2"),
  # Sizes without good divisors: idle work-items at the end, no vectors.
  "prime": (lambda: new(10007) + 1.0, "LOCAL0:64"),
  "sixteen primes": (lambda: new(4 * 16 * 67) + 1.0, "UPCAST0:4 LOCAL0:16"),
  "prime rows": (lambda: new(34, 37) + 1.0, "UPCAST1:2 LOCAL1:37"),
  # Reductions: few outputs share work, many have vectors of their own; the innermost steps are unrolled.
  "few short rows": (lambda: new(64, 64).reduce(Ops.ADD, (1,)), "UNROLL1:4 LOCAL0:64"),
  "columns": (lambda: new(64, 64).reduce(Ops.ADD, (0,)), "UNROLL1:4 LOCAL0:64"),
  "one sum": (lambda: new(4096).reduce(Ops.ADD, (0,)), "GROUP0:64 UNROLL0:4"),
  "one prime sum": (lambda: new(4099).reduce(Ops.ADD, (0,)), "GROUP0:64"),
  "few long rows": (lambda: matmul(new(64, 256), new(256, 1)), "GROUP1:32 UNROLL1:8 LOCAL0:2"),
  "many rows": (lambda: new(8192, 16).reduce(Ops.ADD, (1,)), "UPCAST0:4 UNROLL1:4 LOCAL0:64"),
  "many short rows": (lambda: new(8192, 6).reduce(Ops.ADD, (1,)), "UPCAST0:4 UNROLL1:6 LOCAL0:64"),
  # Products: a square of outputs a thread, so that a load serves several.
  "product": (lambda: matmul(new(64, 64), new(64, 64)), "UPCAST0:4 UPCAST1:4 UNROLL2:4 LOCAL1:16 LOCAL0:4"),
  "large product": (lambda: matmul(new(512, 512), new(512, 512)), "UPCAST0:4 UPCAST1:4 UNROLL2:4 LOCAL1:64"),
  "small product": (lambda: matmul(new(6, 10), new(10, 9)), "UPCAST0:3 UPCAST1:3 UNROLL2:2 LOCAL1:3 LOCAL0:2"),
  # Long arithmetic is not copied.
  "long": (lambda: twisted(new(4096)), "LOCAL0:64"),
}
# A processor of 64-byte vectors; which of them this machine is does not matter.
WIDE = HostRenderer(host=Host("x86_64-unknown-linux-gnu", "x86-64-v4"))
HOSTS = {
  # Lanes along the axis that accesses walk; two vectors at once, for the loop around them.
  "f32": "VECTOR0:16 UPCAST0:2", "f16": "VECTOR0:32 UPCAST0:2", "f64": "VECTOR0:8 UPCAST0:2",
  "int8": "VECTOR0:64 UPCAST0:2", "int8 to f32": "VECTOR0:16 UPCAST0:2",
  # Lines of the cache are used whole.
  "transposed": "VECTOR1:16 UPCAST1:2 UPCAST0:8",
  # The last vectors are partly masked.
  "prime": "PADTO0:16 VECTOR0:16 UPCAST0:2", "one prime sum": "PADTO0:16 VECTOR0:16",
  # Long sums have several vectors to add to.
  "one sum": "VECTOR0:64 UNROLL0:4", "columns": "VECTOR0:16 UPCAST0:4 UNROLL1:4", "many rows": "VECTOR1:16 THREAD0:4",
  # Tiles of rows and vectors; stretches of columns, each of which copies what its rows share.
  "product": "VECTOR1:16 UPCAST1:2 UPCAST0:8 SWAP0:1 THREAD1:2 PACK0:0",
  "large product": "VECTOR1:16 UPCAST1:2 UPCAST0:8 SWAP0:1 THREAD1:16 PACK0:0",
  # Too small for vectors.
  "small product": "UPCAST0:6 UPCAST1:3 UNROLL2:2", "long": "VECTOR0:16 THREAD0:4",
}


@pytest.mark.parametrize("name", LOCALS)
def test_what_is_chosen_for_workgroups(name: str) -> None:
  make, wanted = LOCALS[name]
  assert chosen(make(), LOCAL) == wanted


@pytest.mark.parametrize("name", HOSTS)
def test_what_is_chosen_for_one_thread(name: str) -> None: assert chosen(LOCALS[name][0](), WIDE) == HOSTS[name]


@pytest.mark.parametrize(("level", "registers"), [("x86-64-v4", (32, 64)), ("x86-64-v3", (16, 32)),
                                                  ("x86-64-v2", (16, 16))])
@pytest.mark.parametrize("n", [48, 64, 80, 512, 1024])
def test_a_tile_stays_in_the_registers(level: str, registers: tuple[int, int], n: int) -> None:
  """What a product adds to, and what one step multiplies: a 1024-cubed product whose tile was spilled
  took 2.6 times as long on a processor of 16 registers."""
  made = HostRenderer(host=Host("x86_64-unknown-linux-gnu", level))
  shape = {o.split(":")[0]: int(o.split(":")[1]) for o in chosen(matmul(new(n, 64), new(64, n)), made).split()}
  count, size = registers
  vectors = -(-shape["VECTOR1"] * 4 // size)
  rows, vectors = shape.get("UPCAST0", 1), shape.get("UPCAST1", 1) * vectors
  assert count // 4 <= rows * vectors and rows * vectors + min(rows, vectors) + 1 <= count


def test_the_rows_of_a_tile_share_the_operand_not_a_table() -> None:
  """A batch of products whose second operand is multiplied by a table: a batch shares the table, rows share both."""
  left = new(8, 64, 32).reshape((8, 64, 32, 1)).expand((8, 64, 32, 16))
  table = new(32, 16).reshape((1, 32, 16)).expand((8, 32, 16))
  right = (new(8, 32, 16) * table).reshape((8, 1, 32, 16)).expand((8, 64, 32, 16))
  options = chosen((left * right).reduce(Ops.ADD, (2,)), WIDE).split()
  assert "UPCAST1:8" in options and not any(o.startswith("UPCAST0") for o in options)


def test_products_of_a_gpu_have_square_workgroups() -> None:
  """Enough threads have 8 x 8 sums each; where there are few, or the sizes do not fit, 4 x 4."""
  def made(m: int, n: int) -> str: return chosen(matmul(new(m, 64), new(64, n)), PTXRenderer("sm_90"))
  broad, plain = "UPCAST0:8 UPCAST1:8 LOCAL1:8 LOCAL0:8", "UPCAST0:4 UPCAST1:4 LOCAL1:32 LOCAL0:8"
  assert made(8192, 8192) == made(2048, 2048) == f"{broad} UNROLL2:4"
  assert made(2048, 1920) == made(256, 256) == f"{plain} UNROLL2:4"
  assert made(8192, 8196) == "UPCAST0:4 UPCAST1:4 LOCAL1:3 LOCAL0:8 UNROLL2:4"


@pytest.mark.parametrize(("make", "kernels"), [
  # One kernel where the sum is used once, or its users end in one place.
  (lambda x: [(x.reduce(Ops.ADD, (1,)) * 2.0 + 1.0).contiguous()], 1),
  (lambda x: [(x.reduce(Ops.ADD, (1,)) * 2.0).reshape((4,)) + 1.0], 1),
  (lambda x: [(lambda r: (r + 1.0) * (r - 1.0))(x.reduce(Ops.ADD, (1,)))], 1),
  # Several results that want it are stored by one; two where an expansion would sum again for each element.
  (lambda x: [(lambda r: r + 1.0)(x.reduce(Ops.ADD, (1,))), x.reduce(Ops.ADD, (1,)) * 3.0], 1),
  (lambda x: [x - x.reduce(Ops.MAX, (1,)).expand((4, 8))], 2),
  (lambda x: [x.reduce(Ops.ADD, (1,)).expand((4, 8)).reduce(Ops.MAX, (0,))], 2),
  # What is asked for by name is realized; what only moves memory is not.
  (lambda x: [(x + 1.0).contiguous().permute((1, 0))], 2),
  (lambda x: [x.permute((1, 0)).contiguous()], 1),
  (lambda x: [x.permute((1, 0)), x.shrink(((1, 3), (0, 8)))], 0),
  # A long sum is one of stretches, then of their sums; not where there are many results, or no good divisor.
  (lambda x: [x.reshape((32, 1)).expand((32, 1 << 13)).reduce(Ops.ADD, (0, 1))], 2),
  (lambda x: [x.reshape((32, 1)).expand((32, 1 << 13)).reduce(Ops.MAX, (1,)).reduce(Ops.ADD, (0,))], 2),
  (lambda x: [x.shrink(((0, 1), (0, 1))).expand((1, 262147)).reduce(Ops.ADD, (0, 1))], 1),
])
def test_cuts(make: object, kernels: int) -> None:
  memory: dict[UOp, np.ndarray] = {}
  outputs = make(buffer(np.arange(32, dtype=np.float32).reshape(4, 8) % 5, memory))
  assert len(schedule(outputs)) == kernels
  wanted = [evaluate(u, memory).copy() for u in outputs]
  for got, want in zip(realize(outputs, memory, HOST), wanted): np.testing.assert_array_equal(got, want)


def test_a_view_of_an_assignment_is_the_memory_assigned_to() -> None:
  """Asked for by itself or under another shape, it is one kernel, and the view reads the same buffer."""
  memory: dict[UOp, np.ndarray] = {}
  a = buffer(np.arange(6, dtype=np.float32), memory)
  u = a.assign(a + 1.0)
  view = u.reshape((2, 3)).permute((1, 0))
  s = schedule([view, u])
  assert len(s) == 1 and s.items[0].buffers[0] is a.base and s.becomes[view].base is a.base
  got, _ = realize([view, u], memory, HOST)
  np.testing.assert_array_equal(got, (np.arange(6) + 1).reshape(2, 3).T)


@pytest.mark.parametrize(("dtype", "bytes_"), [
  (F32, 4), (F32.vec(2), 8), (F32.vec(4), 16), (F32.vec(3), 4), (dtypes.float16.vec(8), 16), (dtypes.int8.vec(4), 4),
  (dtypes.float64.vec(4), 16), (dtypes.bool, 1)])
def test_what_a_vector_is_aligned_to(dtype: DType, bytes_: int) -> None:
  """To what its place proves: to its size, up to 16 bytes, where it is one of many side by side; moved by one element,
  to its elements only."""
  pointer, i = UOp(Ops.DEFINE_GLOBAL, dtype.scalar.ptr(100), (), 0), UOp.range(8, 0)
  assert alignment(pointer.index(i * dtype.count), dtype) == bytes_
  assert alignment(pointer.index(i * dtype.count + 1), dtype) == dtype.scalar.itemsize
  assert alignment(pointer.index(UOp.const(dtypes.index, 0)), dtype) == 16


def test_lanes_for_a_length() -> None:
  """All of a vector, a half or a quarter, which divides the length; masks where none does, from two vectors on."""
  found = {n: chosen(new(n) + 1.0, WIDE).split()[0] for n in (12, 18, 20, 24, 25, 32, 33, 40, 48, 52)}
  assert found == {12: "VECTOR0:4", 18: "UPCAST0:6", 20: "VECTOR0:4", 24: "VECTOR0:8", 25: "UPCAST0:5",
                   32: "VECTOR0:16", 33: "PADTO0:16", 40: "VECTOR0:8", 48: "VECTOR0:16", 52: "VECTOR0:4"}


def test_sums_in_rows_have_four_vectors_and_their_results_one() -> None:
  """In a softmax and in a normalization each of the loops through a row has its lanes."""
  x = Tensor.empty(64, 256, device="LLVM")
  assert chosen(x.softmax(-1).uop, WIDE) == "VECTOR1:8 VECTOR2:32 VECTOR3:32 UNROLL3:4 THREAD0:64"
  assert chosen(x.layernorm().uop, WIDE).startswith("VECTOR1:16 VECTOR2:64 VECTOR3:64 UPCAST1:8")


def test_threads_are_woken_by_the_work_of_all_elements() -> None:
  """Elements times what each costs: few with long arithmetic are worth as much as many with little."""
  def chain(n: int, steps: int) -> UOp:
    u = new(n)
    for _ in range(steps): u = u * 1.5 + 0.25
    return u
  found = [chosen(chain(*at), WIDE).partition("THREAD")[2] for at in ((1 << 12, 20), (1 << 13, 20), (1 << 17, 1))]
  assert found == ["", "0:4", "0:8"]


@pytest.mark.parametrize("after", [
  lambda t: t.expand((4, 8)) * new(4, 8), lambda t: t.reduce(Ops.MAX, (0,)), lambda t: t.permute((1, 0)).contiguous()])
def test_a_sum_that_ends_in_one_result_is_not_stored_itself(after: Callable[[UOp], UOp]) -> None:
  """Whatever follows that result."""
  total = new(4, 8).reduce(Ops.ADD, (1,))
  end = total * 2.0 + total.sqrt()
  assert [len(item.ast.src) for item in schedule([end, after(end)]).items] == [1, 1]


def test_what_costs_much_is_computed_before_it_is_repeated() -> None:
  few, many = new(8), new(8, 16)
  for u, kernels in ((few.sqrt(), 2), (few * 2.0, 1)):
    assert len(schedule([u.reshape((8, 1)).expand((8, 16)) * many])) == kernels
  assert len(schedule([few.sqrt().reshape((8, 1)).expand((8, 1)) * few.reshape((8, 1))])) == 1


def test_random_numbers_are_drawn_once_and_positions_are_not_stored() -> None:
  """Many cheap operations cost much, too, also where they read nothing; few do not."""
  both = Tensor.rand(16, 16, device="LLVM") @ Tensor.rand(16, 16, device="LLVM")
  assert len(schedule([both.uop])) == 3
  few = Tensor.arange(16, device="LLVM").reshape(16, 1) * Tensor.empty(16, 32, device="LLVM")
  assert len(schedule([few.uop])) == 1
  shown = Tensor.empty(16, 16, device="LLVM")
  with Tensor.train(): assert len(schedule([shown.dropout(0.5).uop])) == 1
