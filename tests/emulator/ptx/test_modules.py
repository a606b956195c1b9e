"""Modules of PTX as they are loaded: variables in memory, names, the order of code, what may be launched."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.strength import examples
from tinyhw.core.errors import DecodeError, Error, InvalidArgument, Unsupported
from tinyhw.emulator.ptx.module import flow
from tinyhw.emulator.ptx.module import link as linking
from tinyhw.emulator.ptx.module.link import link, link_text
from tinyhw.emulator.ptx.module.merge import linked, merge
from tinyhw.isa.ptx import parse
from tinyhw.isa.ptx.printer import text as printed

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"

# ---- variables in memory


def image(declarations: str) -> tuple[bytes, dict[str, int]]:
  """(the bytes of a module's variables at 0x10000, where each lies)."""
  linked = link(parse(HEAD + declarations + "\n.func f () { ret; }"))
  return linked.bytes_at(0x10000, {"f": 0x40}), linked.offsets


VARIABLES = [
  (".global .u32 x = 5;", struct.pack("<I", 5)),
  (".global .s64 x = -5;", struct.pack("<q", -5)),
  (".global .u8 x = 0x1FF;", b"\xff"),
  (".const .u16 x[3] = {1, 2};", struct.pack("<3H", 1, 2, 0)),
  (".global .f32 x = 1.5;", struct.pack("<f", 1.5)),
  (".global .f32 x = 0f3FC00000;", struct.pack("<f", 1.5)),
  (".global .f64 x = 0f3FC00000;", struct.pack("<d", 1.5)),
  (".global .f64 x = 0.1;", struct.pack("<d", 0.1)),
  (".global .f16 x = 1.5;", struct.pack("<e", 1.5)),
  (".global .b32 x = 0f3FC00000;", struct.pack("<f", 1.5)),
  (".global .b64 x = 1.5;", struct.pack("<d", 1.5)),
  (".global .u16 x[2][3] = {{1, 2, 3}, {4, 5, 6}};", struct.pack("<6H", *range(1, 7))),
  (".global .u16 x[2][3] = {{1}, {4, 5}};", struct.pack("<6H", 1, 0, 0, 4, 5, 0)),
  (".global .u8 x[2][2][3] = {{{1, 2, 3}, {4}}, {{7}, {0, 9}}};", bytes((1, 2, 3, 4, 0, 0, 7, 0, 0, 0, 9, 0))),
  (".global .v2 .u16 x = {1, 2};", struct.pack("<2H", 1, 2)),
  (".global .v4 .f32 x = {1.0, 2.0, 3.0};", struct.pack("<4f", 1, 2, 3, 0)),
  (".global .v2 .u16 x[3] = {{1, 2}, {3, 4}, {5}};", struct.pack("<6H", 1, 2, 3, 4, 5, 0)),
  (".global .v2 .u16 x[2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};", struct.pack("<8H", *range(1, 9))),
  (".global .u32 x[] = {1, 2, 3};", struct.pack("<3I", 1, 2, 3)),
  (".global .v2 .u16 x[] = {{1, 2}, {3, 4}};", struct.pack("<4H", 1, 2, 3, 4)),
  (".global .u64 y; .global .u64 x = y;", struct.pack("<Q", 0x10000)),
  (".global .u64 y; .global .u64 x = y+12;", struct.pack("<Q", 0x1000C)),
  (".global .u64 y; .global .u64 x = generic(y)-4;", struct.pack("<Q", 0xFFFC)),
  (".global .u32 x[2] = {f, f+1};", struct.pack("<2I", 0x40, 0x41)),
  (".global .u64 x = x+8;", struct.pack("<Q", 0x10008)),
]


@pytest.mark.parametrize(("declaration", "wanted"), VARIABLES, ids=[d for d, _ in VARIABLES])
def test_an_initial_value(declaration: str, wanted: bytes) -> None:
  data, offsets = image(declaration)
  assert data[offsets["x"] :] == wanted


def test_where_variables_lie() -> None:
  """Behind each other, each aligned to what it says, to its vector, and to 16; one without a size has a byte."""
  data, offsets = image(
    ".global .u8 a; .global .align 64 .u8 b[3]; .const .v4 .f32 c; .global .u64 d[5]; .global .align 4 .u8 e;"
    " .extern .global .u8 n[]; .global .u8 o;"
  )
  assert (
    offsets == {"a": 0, "b": 64, "c": 80, "d": 96, "e": 144, "n": 160, "o": 176} and len(data) == 177 and not any(data)
  )
  linked = link(
    parse(
      HEAD + ".global .u8 a[7]; .visible .global .v4 .u32 b[2][3]; .func f () {} .func g () { .global .u32 a; ret; }"
    )
  )
  assert (linked.bytes_of("a"), linked.bytes_of("b")) == (7, 96) and len(linked.offsets) == 3


REFUSED = [
  (".global .u16 x[2] = {1, 2, 3};", DecodeError, "PTX line 4: x has too many values"),
  (".global .u32 x = nobody;", DecodeError, "PTX line 4: nobody is not declared"),
  (".global .u32 x = { a = b };", DecodeError, "PTX line 4: x has no members"),
  (".global .u8 y; .global .u8 x = 0xFF(y);", Unsupported, "PTX line 4: unsupported PTX initializer 0xFF"),
  (".global .texref x = { a = b };", Unsupported, "PTX line 4: unsupported PTX initializer of .texref x"),
  (".global .samplerref x = { a = b };", DecodeError, "PTX line 4: x: no sampler has a = b"),
  (".local .u32 x;", DecodeError, "PTX line 4, column 13: .local x outside of a function"),
  (".global .b8 x[1073741825];", DecodeError, "PTX line 4: variables of more than 1,073,741,824 bytes"),
  (".func f () { .reg .b32 x; .reg .b64 x; }", DecodeError, "PTX line 4, column 37: x is declared twice"),
  (".func f () { .reg .b32 %r<3>; .reg .b64 %r<4>; }", DecodeError, "PTX line 4, column 41: %r is declared twice"),
  (".func f () { A: ret; A: ret; }", DecodeError, "PTX line 4, column 22: A is declared twice"),
  (".func f (.reg .b32 x, .param .b32 x) { ret; }", DecodeError, "PTX line 4, column 35: x is declared twice"),
  (
    ".func f () { .reg .texref2 x; }",
    DecodeError,
    "PTX line 4, column 19: a type, .align or .v2, .v4 expected, found '.texref2'",
  ),
  (".func f () { .reg .tf32x x; }", DecodeError, "column 19"),
  (".func f () { .reg .v2 .b128 x; }", DecodeError, "PTX line 4: no vector has elements of b128"),
]


@pytest.mark.parametrize(("declaration", "kind", "message"), REFUSED, ids=[d[:40] for d, *_ in REFUSED])
def test_what_is_no_variable(declaration: str, kind: type[Error], message: str) -> None:
  with pytest.raises(kind) as caught:
    link(parse(HEAD + declaration))
  assert message in str(caught.value)


def test_the_largest_module(monkeypatch: pytest.MonkeyPatch) -> None:
  assert linking.IMAGE_LIMIT == 1 << 30
  monkeypatch.setattr(linking, "IMAGE_LIMIT", 4096)
  assert link(parse(HEAD + ".global .b8 x[4000]; .global .b8 y[96];")).size == 4096
  with pytest.raises(DecodeError, match="variables of more than 4,096 bytes"):
    link(parse(HEAD + ".global .b8 x[4097];"))


def test_addresses_have_64_bits() -> None:
  """ptxas takes a module that says no size by its addresses, and refuses those of 32 bits where memory is larger."""
  with pytest.raises(DecodeError, match="PTX with .address_size 32: GPUs from sm_75 on have addresses of 64 bits"):
    link(parse(".version 8.0 .target sm_80 .address_size 32"))
  head = ".version 8.0\n.target sm_80\n"
  kernel = head + """.shared .u32 s; .visible .entry k (.param .u64 out) { .reg .b64 %o; .reg .b32 %r;
    ld.param.u64 %o, [out]; mov.u32 %r, s; st.shared.u32 [%r], 7; ld.shared.u32 %r, [%r];
    st.global.u32 [%o], %r; ret; }"""
  assert tinyhw.launch(kernel, "k", 1, 1, [np.zeros(1, np.uint32)], "EMU")[0] == 7
  assert printed(parse(kernel)).splitlines()[:3] == [".version 8.0", ".target sm_80", ""]
  assert merge([parse(head), parse(head + ".address_size 64"), parse(head)]).address_size == 64
  with pytest.raises(DecodeError, match=r"^PTX: modules of different \.address_size$"):
    merge([parse(head + ".address_size 32"), parse(head), parse(head + ".address_size 64")])
  with pytest.raises(DecodeError, match="^second: PTX line 3"): linked([("first", head), ("second", head + "nonsense")])
  for space, name in ((".global", "global"), ("", "generic")):
    with pytest.raises(DecodeError, match=f"an address of 32 bits in {name} space, where they have 64"):
      wrong = kernel.replace("st.global.u32 [%o]", f"st{space}.u32 [%r]")
      tinyhw.launch(wrong, "k", 1, 1, [np.zeros(1, np.uint32)], "EMU")


def test_results_that_a_function_does_not_give() -> None:
  """Who declares one has what nobody has written; of functions that give one it comes, by name or by pointer."""
  caller = (
    HEAD + """.extern .func (.param .b32 r) silent (.param .b32 x);
.extern .func (.param .b32 r) twice (.param .b32 x);
.visible .entry k (.param .u64 out) { .reg .b32 %a<5>; .reg .b64 %o, %f; ld.param.u64 %o, [out]; mov.u32 %a1, 21;
  F: .callprototype (.param .b32 _) _ (.param .b32 _);
  { .param .b32 x; .param .b32 y; st.param.b32 [x], %a1; call (y), silent, (x); }
  { .param .b32 x; .param .b32 y; st.param.b32 [x], %a1; call (y), twice, (x); ld.param.b32 %a3, [y]; }
  mov.u64 %f, twice;
  { .param .b32 x; .param .b32 y; st.param.b32 [x], %a3; call (y), %f, (x), F; ld.param.b32 %a4, [y]; }
  st.global.v2.u32 [%o], {%a3, %a4}; ret; }"""
  )
  others = (
    HEAD + """.visible .func silent (.param .b32 x) { ret; }
.visible .func (.param .b32 r) twice (.param .b32 x) { .reg .b32 %b; ld.param.b32 %b, [x]; add.u32 %b, %b, %b;
  st.param.b32 [r], %b; ret; }"""
  )
  text = printed(merge([parse(caller), parse(others)]))
  assert tinyhw.launch(text, "k", 1, 1, [np.zeros(2, np.uint32)], "EMU")[0].tolist() == [42, 84]


@pytest.mark.parametrize(("version", "target", "name", "right"), [
  ("1.4", "sm_13", "mad.f32", 0.0), ("3.1", "sm_30", "mad.f32", 2.0 ** -130), ("3.1", "sm_30", "mad.ftz.f32", 0.0),
  ("1.4", "sm_10", "mul.rn.f32", None), ("3.1", "sm_30", "mad.rz.f32", 2.0 ** -130)])
def test_what_old_modules_leave_unsaid(version: str, target: str, name: str, right: float | None) -> None:
  """PTX for sm_1x flushes subnormal numbers; mad.f32 needs no rounding up to PTX 3.1, and is fused."""
  two = name.startswith("mul")
  kernel = f""".version {version}\n.target {target}
    .entry k (.param .u64 out) {{ .reg .b64 %o; .reg .f32 %a, %b, %c; ld.param.u64 %o, [out]; ld.global.f32 %a, [%o];
    ld.global.f32 %b, [%o+4]; ld.global.f32 %c, [%o+8]; {name} %a, %a, %b{"" if two else ", %c"};
    st.global.f32 [%o], %a; ret; }}"""

  def run(*values: float) -> float:
    return float(tinyhw.launch(kernel, "k", 1, 1, [np.array(values, np.float32)], "EMU")[0][0])
  assert run(2.0 ** -65, 2.0 ** -65, 0.0) == (right or 0.0)
  near = 1 + 2.0 ** -12  # whose square has a bit more than f32
  if not two: assert run(near, near, -1 - 2.0 ** -11) == 2.0 ** -24
  later = kernel.replace(version, "3.2")
  if name in {"mad.f32", "mad.ftz.f32"} and target == "sm_30":
    with pytest.raises(Unsupported, match=f"unsupported PTX instruction {name}"):
      tinyhw.launch(later, "k", 1, 1, [np.zeros(3, np.float32)], "EMU")


# ---- names


def told(body: str, outer: str = "", count: int = 8) -> list[int]:
  """What a kernel of one thread stores: `out` is in %o."""
  text = f"""{HEAD}{outer}.visible .entry k (.param .u64 out) {{ .reg .b64 %o; ld.param.u64 %o, [out]; {body} ret; }}"""
  return [int(x) for x in tinyhw.launch(text, "k", 1, 1, [np.zeros(count, np.uint32)], "EMU")[0]]


def test_names_and_scopes() -> None:
  """The innermost declaration counts; numbered registers are those below their count, without zeros in front."""
  assert told(""".reg .b32 x, %r<11>; mov.u32 x, 1; mov.u32 %r10, 5; mov.u32 %r0, 3;
    { .reg .b32 x; mov.u32 x, 2; st.global.u32 [%o], x; { .reg .b32 %r<2>; mov.u32 %r1, 9; mov.u32 %r10, 6; } }
    st.global.u32 [%o+4], x; st.global.u32 [%o+8], %r10; st.global.u32 [%o+12], %r1; st.global.u32 [%o+16], %r0;
    .reg .v4 .b32 v; mov.u32 v.x, 4; mov.u32 v.w, 7; st.global.u32 [%o+20], v.x; st.global.u32 [%o+24], v.w;
    .reg .b32 %r1x, r; mov.u32 r, 8; st.global.u32 [%o+28], r;""") == [2, 1, 6, 0, 3, 4, 7, 8]
  for name in ("%r11", "%r01", "%r", "%r00", "v.q", "x1"):
    with pytest.raises(DecodeError, match=f"{name} is no register|{name} is not declared"):
      told(f".reg .b32 %r<11>, x; .reg .v2 .b32 v; mov.u32 {name}, 1;")
  assert told(".reg .v2 .b32 v; mov.b64 {v.x, v.y}, 0x500000004; st.global.v2.u32 [%o], v;")[:2] == [4, 5]
  assert told(
    ".reg .v4 .b32 v; ld.global.v4.u32 v, [g]; st.global.v4.u32 [%o], v;", ".global .u32 g[4] = {1, 2, 3, 4};"
  )[:4] == [1, 2, 3, 4]
  assert told(
    ".reg .v2 .b128 q;"
    if False
    else ".reg .b128 %q<3>; .reg .b64 %l<3>; mov.u64 %l0, 5; mov.u64 %l1, 6; mov.b128 %q2, {%l0, %l1};"
    "mov.b128 %q0, %q2; mov.b128 {%l1, %l0}, %q0; st.global.v2.u64 [%o], {%l1, %l0};"
  )[:4] == [5, 0, 6, 0]


def test_variables_of_functions() -> None:
  """Those of a function and of its blocks have places of their own, in each space; a name may be there twice."""
  assert told(""".global .u32 g = 1; .local .u32 a; .shared .u32 s; .param .u32 p; .local .align 32 .b8 b[3];
    .local .u16 d;
    .reg .b32 %r<9>; st.local.u32 [a], 10; st.shared.u32 [s], 11; st.param.u32 [p], 12; st.local.u8 [b+2], 13;
    st.local.u16 [d], 14; ld.global.u32 %r1, [g]; st.global.u32 [%o], %r1;
    { .global .u32 g = 2; .local .u32 a; .shared .u32 s; st.local.u32 [a], 20; st.shared.u32 [s], 21;
      ld.global.u32 %r1, [g]; st.global.u32 [%o+4], %r1; }
    ld.local.u32 %r1, [a]; st.global.u32 [%o+8], %r1; ld.shared.u32 %r1, [s]; st.global.u32 [%o+12], %r1;
    ld.param.u32 %r1, [p]; st.global.u32 [%o+16], %r1; ld.local.u8 %r1, [b+2]; st.global.u32 [%o+20], %r1;
    ld.local.u16 %r1, [d]; st.global.u32 [%o+24], %r1; mov.u32 %r1, b;
    and.b32 %r1, %r1, 31; st.global.u32 [%o+28], %r1;""") == [1, 2, 10, 11, 12, 13, 14, 0]


# ---- the order of code


def graphs() -> st.SearchStrategy[dict[int, list[int]]]:
  return st.integers(1, 9).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=3, unique=True), min_size=n, max_size=n).map(
      lambda rows: dict(enumerate(rows))
    )
  )


def reachable(g: dict[int, list[int]], start: int) -> set[int]:
  seen, work = set[int](), [*g[start]]
  while work:
    n = work.pop()
    if n not in seen:
      seen.add(n)
      work += g[n]
  return seen


@settings(max_examples=examples(150), deadline=None)
@given(graphs())
def test_loops_lie_together_and_edges_go_up(g: dict[int, list[int]]) -> None:
  """Every block has one place; between loops control goes up only; a loop's blocks follow each other."""
  order = flow.arranged([*g], g)
  assert sorted(order) == [*g]
  far = {n: reachable(g, n) for n in g}
  place = {n: k for k, n in enumerate(order)}
  for n, targets in g.items():
    for t in targets:
      if n not in far[t]:
        assert place[n] < place[t]
    loop = sorted(place[m] for m in g if m == n or m in far[n] and n in far[m])
    assert loop == [*range(loop[0], loop[0] + len(loop))]


@settings(max_examples=examples(100), deadline=None)
@given(graphs(), st.randoms())
def test_which_registers_live(g: dict[int, list[int]], rng: Any) -> None:
  """A register lives where some way leads to a block that uses it, and none before gives it anew."""
  uses, kills = ({n: rng.getrandbits(4) for n in g} for _ in range(2))
  found = flow.liveness([*g], g, uses, kills)
  for n, bit in itertools.product(g, range(4)):
    seen, work, lives = set[int](), [n], False
    while work:
      m = work.pop()
      if m in seen:
        continue
      seen.add(m)
      if uses[m] >> bit & 1:
        lives = True
      elif not kills[m] >> bit & 1:
        work += g[m]
    assert bool(found[n] >> bit & 1) == lives


# ---- what may be launched


def launched(
  grid: Any, block: Any, directives: str = "", shared: int = 0, cluster: Any = None, declared: int = 0
) -> None:
  more = f".shared .b8 s[{declared}];" if declared else ""
  text = (
    f"{HEAD}.visible .entry k () {directives} {{ .reg .b32 %r; {more} {'mov.u32 %r, s;' if declared else ''} exit; }}"
  )
  tinyhw.launch(text, "k", grid, block, [], "EMU", shared, cluster=cluster)


LIMIT = 227 << 10
FINE: list[tuple[Any, ...]] = [
  (1, 1),
  (1, 1024),
  ((1, 1, 1), (1, 1024, 1)),
  (1, (1, 1, 64)),
  (1, (16, 1, 64)),
  ((1, 1, 65535), 1),
  ((1, 65535, 1), 1),
  (66000, 1),
  (1, 8, ".maxntid 8"),
  (1, (2, 2, 2), ".maxntid 4, 2, 1"),
  (1, (2, 3, 4), ".reqntid 2, 3, 4"),
  (1, (2, 3, 1), ".reqntid 2, 3"),
  (1, 5, ".reqntid 5"),
  (1, 1, "", LIMIT),
  (1, 1, "", LIMIT - 64, None, 64),
  (8, 1, "", 0, 8),
  ((4, 2, 1), 1, "", 0, (4, 2, 1)),
  ((2, 4, 6), 1, "", 0, (1, 2, 3)),
  (4, 1, ".reqnctapercluster 2"),
  (4, 1, ".reqnctapercluster 2, 1, 1", 0, 2),
  (16, 1, "", 0, 16),
]


@pytest.mark.parametrize("case", FINE, ids=str)
def test_what_may_be_launched(case: tuple[Any, ...]) -> None:
  launched(*case)


TOO_MUCH: list[tuple[tuple[Any, ...], str]] = [
  ((1, 1025), "a block of (1025, 1, 1) has 1025 threads; there are 1 to 1024, 64 in z"),
  ((1, (1, 1, 65)), "a block of (1, 1, 65) has 65 threads; there are 1 to 1024, 64 in z"),
  ((1, (32, 33, 1)), "a block of (32, 33, 1) has 1056 threads; there are 1 to 1024, 64 in z"),
  (((1, 65536, 1), 1), "a grid of (1, 65536, 1) blocks: there are 2,147,483,647 in x, 65,535 in y and z"),
  (((1, 1, 65536), 1), "a grid of (1, 1, 65536) blocks: there are 2,147,483,647 in x, 65,535 in y and z"),
  ((1 << 31, 1), "a grid of (2147483648, 1, 1) blocks: there are 2,147,483,647 in x, 65,535 in y and z"),
  ((1, 9, ".maxntid 8"), "a block of (9, 1, 1) has 9 threads, the kernel was compiled for at most 8 (.maxntid)"),
  (
    (1, (3, 3, 1), ".maxntid 4, 2"),
    "a block of (3, 3, 1) has 9 threads, the kernel was compiled for at most 8 (.maxntid)",
  ),
  ((1, 4, ".reqntid 5"), "a block of (4, 1, 1), the kernel was compiled for exactly (5,) (.reqntid)"),
  ((1, (5, 1, 2), ".reqntid 5, 1"), "a block of (5, 1, 2), the kernel was compiled for exactly (5, 1) (.reqntid)"),
  ((1, 1, "", LIMIT + 1), f"{LIMIT + 1:,} bytes of shared memory; a block has {LIMIT:,}"),
  ((1, 1, "", LIMIT - 63, None, 64), f"{LIMIT + 1:,} bytes of shared memory; a block has {LIMIT:,}"),
  ((17, 1, "", 0, 17), "a cluster of (17, 1, 1) blocks: there are 1 to 16, which divide the grid (17, 1, 1)"),
  ((9, 1, "", 0, 2), "a cluster of (2, 1, 1) blocks: there are 1 to 16, which divide the grid (9, 1, 1)"),
  (
    ((2, 3, 1), 1, "", 0, (1, 2, 1)),
    "a cluster of (1, 2, 1) blocks: there are 1 to 16, which divide the grid (2, 3, 1)",
  ),
  (
    (4, 1, ".reqnctapercluster 2", 0, 4),
    "a cluster of (4, 1, 1) blocks, the kernel was compiled for (2, 1, 1) (.reqnctapercluster)",
  ),
  ((3, 1, ".reqnctapercluster 2"), "a cluster of (2, 1, 1) blocks: there are 1 to 16, which divide the grid (3, 1, 1)"),
]


@pytest.mark.parametrize(("case", "message"), TOO_MUCH, ids=str)
def test_what_is_too_much(case: tuple[Any, ...], message: str) -> None:
  with pytest.raises(InvalidArgument) as caught:
    launched(*case)
  assert str(caught.value) == f"k: {message}"


@pytest.mark.parametrize(("text", "match"), [
  (b".visible .entry k() { .reg .b32 %r<1073741824>; ret; }", "PTX line 4: more than 1,048,576 registers"),
  (b".visible .entry k() { .local .b8 x[1073741824]; ret; }", "variables of a thread's own of more than 524,288 bytes"),
  (b".visible .entry k(.param .b8 x[1099511627776]) { ret; }", "parameters of a kernel of more than 32,764 bytes"),
  (b".global .b8 x" + b"[99999999999999999]" * 999 + b";", "variables of more than 1,073,741,824 bytes"),
  (b"\n// \xff", "PTX line 5, column 4: text in UTF-8 expected, found byte 0xff"),
  ("mov.u32 %r1, \u0663;".encode(), "a token of PTX expected"), ("\u0663".encode(), "a token of PTX expected")])
def test_texts_that_nobody_means(text: bytes, match: str) -> None:
  """One line says what is wrong: no mistake of Python's, and no memory taken."""
  with pytest.raises(DecodeError, match=match): link_text(b".version 8.0\n.target sm_80\n.address_size 64\n" + text)
  for head in (".version \u0668.\u0660\n.target sm_80\n", ".version 8.0\n.target sm_\u0668\u0660\n"):
    with pytest.raises(DecodeError, match="a token of PTX expected"): link_text(head.encode())
