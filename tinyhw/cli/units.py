"""Matrix products by NVIDIA's matrix units in PTX: what `tinyhw bench` times on the emulator."""
from __future__ import annotations

from collections.abc import Iterator
from functools import cache

_TILES = [(i, j) for i in (0, 1) for j in (0, 1)]


@cache
def code(n: int, unit: str) -> bytes:
  """A module with kernel `product`: C = A * transpose(B), bf16 [n, n] to f32 [n, n], all row by row. `unit` is "wmma"
  or "mma". A warp makes 32 x 32 of C; a grid of (n / 32, n / 32) blocks of 32 threads."""
  return "\n".join(_kernel(n, unit)).encode()


def _named(name: str, count: int) -> str: return "{" + ", ".join(f"%{name}_{k}" for k in range(count)) + "}"


def _kernel(n: int, unit: str) -> Iterator[str]:
  yield f""".version 8.0
.target sm_80
.address_size 64
.visible .entry product (.param .u64 .ptr .global a, .param .u64 .ptr .global b, .param .u64 .ptr .global c)
{{
  .reg .b64 %a, %b, %c, %at, %end;
  .reg .b32 %x, %y, %lane, %group, %within;
  .reg .pred %more;
  ld.param.u64 %a, [a];
  ld.param.u64 %b, [b];
  ld.param.u64 %c, [c];
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  mad.wide.u32 %a, %y, {64 * n}, %a;
  mad.wide.u32 %b, %x, {64 * n}, %b;
  mad.wide.u32 %c, %y, {128 * n}, %c;
  mad.wide.u32 %c, %x, 128, %c;
  add.u64 %end, %a, {2 * n};"""
  yield from _fragments(n) if unit == "wmma" else _registers(n)
  yield "  ret;\n}"


def _loop(body: Iterator[str]) -> Iterator[str]:
  yield "AGAIN:"
  yield from body
  yield """  add.u64 %a, %a, 32;
  add.u64 %b, %b, 32;
  setp.lt.u64 %more, %a, %end;
  @%more bra AGAIN;"""


def _zeros(names: list[str], count: int) -> Iterator[str]:
  for name in names:
    yield f"  .reg .f32 {', '.join(f'%{name}_{k}' for k in range(count))};"
    yield from (f"  mov.f32 %{name}_{k}, 0f00000000;" for k in range(count))


def _fragments(n: int) -> Iterator[str]:
  """By wmma, whose fragments come from memory."""
  shape = "sync.aligned"
  yield from (f"  .reg .b32 {', '.join(f'%{m}{i}_{k}' for k in range(4))};" for m in "ab" for i in (0, 1))
  yield from _zeros([f"d{i}{j}" for i, j in _TILES], 8)

  def body() -> Iterator[str]:
    for m, major in (("a", "row"), ("b", "col")):
      for i in (0, 1):
        yield f"  wmma.load.{m}.{shape}.{major}.m16n16k16.global.bf16 {_named(f'{m}{i}', 4)}, [%{m}+{32 * n * i}], {n};"
    for i, j in _TILES:
      d = _named(f"d{i}{j}", 8)
      yield (f"  wmma.mma.{shape}.row.col.m16n16k16.f32.bf16.bf16.f32 {d}, {_named(f'a{i}', 4)}, {_named(f'b{j}', 4)}, "
             f"{d};")
  yield from _loop(body())
  for i, j in _TILES:
    yield f"  wmma.store.d.{shape}.row.m16n16k16.global.f32 [%c+{64 * n * i + 64 * j}], {_named(f'd{i}{j}', 8)}, {n};"


def _registers(n: int) -> Iterator[str]:
  """By mma: each thread loads its elements, two by two. Row (or column) `lane / 4`, elements `2 (lane % 4)` on."""
  yield from (f"  .reg .b32 {', '.join(f'%a{i}_{k}' for k in range(4))};" for i in (0, 1))
  yield from (f"  .reg .b32 %b{j}_0, %b{j}_1;" for j in range(4))
  yield from _zeros([f"d{i}{j}" for i in (0, 1) for j in range(4)], 4)
  yield f"""  mov.u32 %lane, %laneid;
  shr.u32 %group, %lane, 2;
  and.b32 %within, %lane, 3;
  mad.wide.u32 %a, %group, {2 * n}, %a;
  mad.wide.u32 %a, %within, 4, %a;
  mad.wide.u32 %b, %group, {2 * n}, %b;
  mad.wide.u32 %b, %within, 4, %b;
  mad.wide.u32 %c, %group, {4 * n}, %c;
  mad.wide.u32 %c, %within, 8, %c;
  mad.wide.u32 %end, %group, {2 * n}, %end;
  mad.wide.u32 %end, %within, 4, %end;"""

  def body() -> Iterator[str]:
    for i in (0, 1):
      for k in range(4):  # rows below by the first bit, columns behind by the second
        yield f"  ld.global.b32 %a{i}_{k}, [%a+{2 * n * (16 * i + 8 * (k & 1)) + 16 * (k >> 1)}];"
    for j in range(4):
      yield from (f"  ld.global.b32 %b{j}_{k}, [%b+{16 * n * j + 16 * k}];" for k in (0, 1))
    for i in (0, 1):
      for j in range(4):
        d = _named(f"d{i}{j}", 4)
        yield (f"  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {d}, {_named(f'a{i}', 4)}, "
               f"{_named(f'b{j}', 2)}, {d};")
  yield from _loop(body())
  for i in (0, 1):
    for j in range(4):
      for below in (0, 1):
        place = 4 * n * (16 * i + 8 * below) + 32 * j
        yield f"  st.global.v2.f32 [%c+{place}], {{%d{i}{j}_{2 * below}, %d{i}{j}_{2 * below + 1}}};"
