"""Where values of approximate PTX instructions arrive: what depends on one is marked, and little else is."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tinyhw
from tests.emulator.ptx.test_ptx import HEAD, kernel
from tests.strength import examples
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.debug.follow import Tracker
from tinyhw.emulator.debug.record import Recorder
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

BASE, SIZE = 0x1_0000_0000, 8192
THREADS = 64
FUNCTIONS = """.func (.reg .b32 %y) fold (.reg .b32 %x, .reg .b32 %z) { xor.b32 %y, %x, %z; ret; }
.func (.param .b32 y) first (.param .b32 x, .param .b32 z) {
  .reg .b32 %q<3>; ld.param.b32 %q1, [x]; ld.param.b32 %q2, [z]; add.u32 %q1, %q1, 1; st.param.b32 [y], %q1; ret; }
.func (.reg .b32 %y) deep (.reg .b32 %x, .reg .b32 %n) {
  .reg .pred %q; .reg .b32 %m, %r;
  mov.u32 %y, %x; setp.eq.u32 %q, %n, 0; @%q ret;
  sub.u32 %m, %n, 1; call (%r), deep, (%x, %m); add.u32 %y, %r, %n; ret; }
.func (.reg .b32 %y) own (.reg .b32 %x) { add.u32 %x, %x, 1; mov.b32 %y, %x; ret; }
.func (.reg .b32 %y) rough (.reg .f32 %x) { .reg .f32 %f; sqrt.approx.f32 %f, %x; mov.b32 %y, %f; ret; }
"""


def followed(body: str, threads: int = THREADS, grid: int = 1) -> tuple[AddressSpace, Program, Tracker]:
  """What a launch leaves."""
  space, recorder = AddressSpace(), Recorder()
  space.map(BASE, 2 * SIZE, Region("memory", 2 * SIZE))
  space.write(BASE + SIZE, np.uint64(BASE).tobytes())
  registers = ".shared .align 16 .b8 s[4096]; .local .align 16 .b8 m[64]; .reg .b32 %x<9>;"
  program = Program(link(parse(kernel(body, registers).replace(HEAD, HEAD + FUNCTIONS))), "k", 0)
  dispatch(space, Dispatch(program, (grid, 1, 1), (threads, 1, 1), BASE + SIZE), observer=recorder)
  tracker = recorder.exactness
  assert isinstance(tracker, Tracker)
  return space, program, tracker


def observed(body: str, threads: int = THREADS, grid: int = 1) -> tuple[Any, Any, dict[str, set[str]]]:
  """(the memory's dwords, which of them are marked, {sink: origins of what arrived there})."""
  space, program, tracker = followed(body, threads, grid)
  marked = np.zeros(SIZE // 4, bool)
  for page, bits in tracker.memory.pages.items(): marked[((page << 10) - (BASE >> 2)):][:1024] = bits != 0
  sinks: dict[str, set[str]] = {}
  for r in tracker.reached():
    sinks.setdefault(r.sink, set()).update(program.describe(pc).split()[0] for pc in r.origins)
  return np.frombuffer(space.read(BASE, SIZE), np.uint32), marked, sinks


# Instructions on four registers of 32 bits, %x1 to %x4, and which of them the result depends on. {d}, {a}, {b} are
# registers, {f}, {g} the same as floats.
STEPS = (
  ("add.u32 {d}, {a}, {b};", "ab"), ("mov.b32 {d}, {a};", "a"), ("lop3.b32 {d}, {a}, {b}, {d}, 0x96;", "abd"),
  ("prmt.b32 {d}, {a}, {b}, 0x6240;", "ab"), ("mov.u32 {d}, 3;", ""), ("mov.u32 {d}, %t;", ""),
  ("setp.lt.u32 %p1, {a}, {b}; selp.b32 {d}, {a}, {d}, %p1;", "abd"),
  ("shfl.sync.bfly.b32 {d}, {a}, 3, 31, -1;", "A"), ("redux.sync.xor.b32 {d}, {a}, -1;", "A"),
  ("setp.lt.u32 %p1, {a}, {b}; vote.sync.ballot.b32 {d}, %p1, -1;", "AB"),
  ("st.shared.b32 [%r9], {a}; bar.sync 0; ld.shared.b32 {d}, [%r10]; bar.sync 0;", "a'"),
  ("st.shared.v2.b32 [%r11], {{{a}, {b}}}; ld.shared.v2.b32 {{%r5, {d}}}, [%r11];", "b"),
  ("st.shared.v2.b32 [%r11], {{{a}, {b}}}; ld.shared.v2.b32 {{_, {d}}}, [%r11];", "ab"),
  ("st.local.v2.b32 [m + 8], {{{a}, {b}}}; ld.local.b32 {d}, [m + 8];", "a"),
  ("mov.b64 %l5, {{{a}, {a}}}; mov.u64 %l6, 9; st.local.v2.b64 [m], {{%l5, %l6}}; ld.local.b32 {d}, [m + 4];", "a"),
  ("st.local.v4.b32 [m], {{%t, {a}, %t, {b}}}; ld.local.v2.b64 {{%l5, %l6}}, [m]; mov.b64 {{%r5, {d}}}, %l6;", "b"),
  ("st.local.b32 [m], {a}; st.local.b16 [m], 9; ld.local.b32 {d}, [m];", "a"),
  ("st.local.b32 [m], {a}; st.local.b32 [m], 9; ld.local.b32 {d}, [m];", ""),
  ("st.local.b32 [m], 9; cvt.u16.u32 %h1, {a}; st.local.b16 [m + 2], %h1; ld.local.b32 {d}, [m];", "a"),
  ("st.shared.b32 [%r9], 0; red.shared.add.u32 [%r9], {a}; ld.shared.b32 {d}, [%r9];", "a"),
  ("add.cc.u32 %r5, {a}, {b}; addc.u32 {d}, 0, 0;", "ab"), ("call ({d}), fold, ({a}, {b});", "ab"),
  ("call ({d}), deep, ({a}, 3);", "a"), ("call ({d}), own, ({a});", "a"),
  ("{{ .param .b32 u, v, w; st.param.b32 [u], {a}; st.param.b32 [v], {b}; call (w), first, (u, v);"
   " ld.param.b32 {d}, [w]; }}", "a"),
  ("mov.b64 %l2, {{{a}, {b}}}; mov.b64 {{{d}, %r5}}, %l2;", "ab"), ("cvt.rn.f16x2.f32 {d}, {f}, {g};", "ab"),
  ("mov.b32 %f1, {a}; mov.b32 %f2, {b}; fma.rn.f32 %f3, %f1, %f2, 0f3F800000; mov.b32 {d}, %f3;", "ab"),
  ("setp.lt.u32 %p2, %t, 64; @%p2 mov.b32 {d}, {a};", "a"), ("setp.lt.u32 %p2, %t, 64; @!%p2 mov.b32 {d}, 5;", "d"),
  ("st.global.b32 [%o + 4096], {a}; ld.global.b32 {d}, [%o + 4096];", "a"),
  ("st.global.b32 [%o + 4096], {a}; cp.async.ca.shared.global [%r9], [%o + 4096], 4; cp.async.wait_all;"
   " ld.shared.b32 {d}, [%r9]; bar.sync 0;", "a"),
  ("atom.shared.exch.b32 %r5, [%r9], {a}; atom.shared.add.u32 {d}, [%r9], {b};", "ab"),
)
APPROXIMATE = ("ex2.approx.f32", "sqrt.approx.f32", "sin.approx.f32", "rcp.approx.f32", "tanh.approx.f32")
START = """mov.u32 %x1, %t; mad.lo.u32 %x2, %t, 77, 5; mov.b32 %x3, 0x40490FDB; mul.lo.u32 %x4, %t, 0x9E3779B1;
  mov.u32 %r8, s; mad.lo.u32 %r9, %t, 4, %r8; xor.b32 %r10, %t, 37; mad.lo.u32 %r10, %r10, 4, %r8;
  and.b32 %r11, %t, 31; mad.lo.u32 %r11, %r11, 8, %r8; st.local.v2.b32 [m], {%t, %t}; st.shared.b32 [s + 1016], 0;
  st.global.b32 [%o + 4096], %t; st.shared.b32 [%r9], %t; st.shared.b32 [%r9 + 256], %t; bar.sync 0;"""
END = "st.global.v4.b32 [%l4], {%x1, %x2, %x3, %x4};"
TEXTS = [text for text, _ in STEPS]
Step = tuple[str, int, int, int]
Steps = st.lists(st.tuples(st.sampled_from([*TEXTS, *APPROXIMATE * 4]), *[st.integers(1, 4)] * 3), min_size=3,
                 max_size=14)
SOME = np.arange(THREADS) % 8 == 1  # the threads that execute what is approximate


def written(steps: list[Step], change: int) -> str:
  """A body; what is approximate gives a result whose bits are `change` more."""
  out = START + "and.b32 %r12, %t, 7; setp.eq.u32 %p5, %r12, 1; mad.wide.u32 %l4, %t, 16, %b;"
  for text, d, a, b in steps:
    if text in APPROXIMATE:
      out += f"\n@%p5 cvt.rn.f32.u32 %f4, %x{a}; @%p5 {text} %f5, %f4;"
      out += f"@%p5 mov.b32 %x{d}, %f5; @%p5 add.u32 %x{d}, %x{d}, {change};"
    else:
      names = {"d": f"%x{d}", "a": f"%x{a}", "b": f"%x{b}"}
      if "{f}" in text: out += f"\nmov.b32 %f6, %x{a}; mov.b32 %f7, %x{b};"
      out += "\n" + text.format(**names, f="%f6", g="%f7")
  return out + END


@settings(max_examples=examples(60), deadline=None)
@given(Steps, st.sampled_from([1, 2, 0xFF, 0x80000000]))
def test_what_changes_with_an_approximate_result_is_marked(steps: list[Step], change: int) -> None:
  """Results with other bits change only memory that is marked."""
  assume(any(text in APPROXIMATE for text, *_ in steps))
  plain, marked, _ = observed(written(steps, 0))
  other, again, _ = observed(written(steps, change))
  assert not ((plain != other) & ~marked).any()
  assert (marked == again).all()


@pytest.mark.parametrize(("step", "reads"), STEPS)
def test_each_step_carries_what_it_reads(step: str, reads: str) -> None:
  """Each alone: a mark is where the instruction's definition says that its result depends on the value."""
  for d, a, b in ((1, 2, 3), (1, 3, 2), (2, 3, 4), (2, 2, 4)):
    steps: list[Step] = [("sqrt.approx.f32", 2, 2, 2), (step, d, a, b)]
    (plain, marked, _), (other, _, _) = (observed(written(steps, change)) for change in (0, 0x10001))
    assert not ((plain != other) & ~marked).any()
    expected = np.zeros(THREADS, bool)
    for letter, register in (("a", a), ("b", b), ("d", d)):
      if register == 2 and letter in reads: expected |= SOME[np.arange(THREADS) ^ (37 if "'" in reads else 0)]
      if register == 2 and letter.upper() in reads: expected |= True
    quads = marked[:4 * THREADS].reshape(-1, 4)
    assert (quads[:, d - 1] == expected).all(), (d, a, b)
    assert not quads[:, [2, 3]].any() and (d == 2 or (quads[:, 1] == SOME).all())


def test_lanes_and_elements_are_apart() -> None:
  """A mark is a thread's own, and an element's of a vector."""
  body = """setp.lt.u32 %p1, %t, 10; cvt.rn.f32.u32 %f1, %t; mov.u32 %x1, 1; mov.b32 %x2, 2; mov.b32 %x3, 3;
    @%p1 ex2.approx.f32 %f1, %f1; mov.b32 %x4, %f1; mad.wide.u32 %l4, %t, 16, %b;""" + END
  _, marked, sinks = observed(body)
  quads = marked[:4 * THREADS].reshape(-1, 4)
  assert (quads[:, 3] == (np.arange(64) < 10)).all() and not quads[:, :3].any() and sinks == {"memory": {"@%p1"}}


@pytest.mark.parametrize(("text", "sink"), [
  ("@%p1 bra X; X:", "branch"), ("@%p1 exit;", "branch"), ("@!%p1 add.u32 %x2, %x2, 1;", "guard"),
  ("mad.wide.u32 %l1, %x1, 4, %b; ld.global.b32 %x2, [%l1];", "address"), ("bar.sync %x3;", "wait"),
  ("nanosleep.u32 %x3;", "wait"), ("st.shared.b32 [%r9], %x1;", "memory"), ("st.global.f32 [%o], %f1;", "memory"),
  ("cvt.u64.u32 %l2, %x3; mov.u64 %l1, own; add.u64 %l1, %l1, %l2; call (%x2), %l1, (%x4), P;"
   " P: .callprototype (.reg .b32 _) _ (.reg .b32 _);", "branch"),
  ("TO: .branchtargets X, Y; brx.idx %x3, TO; X: Y:", "branch"), ("atom.global.add.u32 %x2, [%o], %x1;", "memory"),
])
def test_sinks(text: str, sink: str) -> None:
  body = f"""cvt.rn.f32.u32 %f1, %t; sqrt.approx.f32 %f1, %f1; mov.b32 %x1, %f1; cvt.rzi.u32.f32 %x1, %f1;
    and.b32 %x3, %x1, 0; setp.gt.u32 %p1, %x1, 3; mov.u32 %r9, s; {text}"""
  assert {k: v for k, v in observed(body)[2].items() if k == sink} == {sink: {"sqrt.approx.f32"}}
  exact = body.replace("sqrt.approx.f32", "sqrt.rn.f32")
  assert observed(exact)[2] == {}


def test_executions_are_counted_by_warps_and_sinks_are_in_order() -> None:
  """One warp goes round three times, one twice."""
  _, program, tracker = followed("""shr.u32 %r1, %t, 5; add.u32 %r1, %r1, 2; mov.u32 %r2, 0; cvt.rn.f32.u32 %f1, %t;
    L: rcp.approx.f32 %f2, %f1; mov.b32 %x1, %f2; and.b32 %x3, %x1, 0; mad.wide.u32 %l1, %x3, 4, %b;
    setp.eq.u32 %p1, %x3, 0; @%p1 st.global.b32 [%l1], %x1; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1;
    @%p2 bra L;""")
  found = tracker.reached()
  assert [(r.sink, r.waves) for r in found] == [("address", 5), ("guard", 5), ("memory", 5)]
  assert {program.describe(r.pc).split()[1] for r in found} == {"st.global.b32"} and tracker.executed.total() == 5


def test_calls_of_functions_keep_registers_apart() -> None:
  """A function's registers are clean when it is called again, results carry its own, and the caller's marks stay."""
  body = """cvt.rn.f32.u32 %f1, %t; sqrt.approx.f32 %f1, %f1; mov.b32 %x1, %f1; call (%x4), own, (%x1);
    mov.u32 %x3, 5; call (%x2), own, (%x3); mov.f32 %f2, 0f40000000; call (%x5), rough, (%f2);
    st.global.b32 [%o], %x4; st.global.b32 [%o + 256], %x2; st.global.b32 [%o + 512], %x1;
    st.global.b32 [%o + 768], %x5;"""
  _, marked, _ = observed(body)
  assert [marked[k:k + 64].tolist() for k in (0, 64, 128, 192)] == [[m] * 64 for m in (True, False, True, True)]


def test_a_product_of_integers_carries_what_lies_in_shared_memory() -> None:
  """wgmma of integers is exact; its operands are not."""
  sums = ", ".join(f"%r{k}" for k in range(1, 5))
  body = f"""mov.u32 %r9, s; mad.lo.u32 %r9, %t, 4, %r9; mov.b32 %x1, 0; mov.b32 %x2, 0; mov.f32 %f1, 0f40000000;
    @MARK st.shared.b32 [%r9], 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0;
    fence.proxy.async; bar.sync 0; mov.b64 %l1, 0x0000001000080000; wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {{{sums}}}, %l1, %l1, 1;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.global.b32 [%o], %r1;"""
  exact = observed(body.replace("@MARK ", ""), threads=128)
  rough = "sqrt.approx.f32 %f1, %f1; mov.b32 %x1, %f1; and.b32 %x1, %x1, 0; st.shared.b32 [%r9], %x1;"
  found = observed(body.replace("@MARK st.shared.b32 [%r9], 0;", rough), threads=128)
  assert not exact[1].any() and found[1][:128].all() and exact[2] == {}


def test_copies_in_bulk_carry_marks() -> None:
  """Of the block that makes them: of two, the second one's threads alone have what is approximate."""
  body = """.reg .b64 %q; .reg .b32 %c; mov.u32 %c, %ctaid.x; mov.u32 %r9, s; mad.lo.u32 %r10, %t, 4, %r9;
    cvt.rn.f32.u32 %f1, %t; ex2.approx.f32 %f2, %f1; setp.eq.u32 %p2, %c, 1; @%p2 sqrt.approx.f32 %f1, %f1;
    st.shared.f32 [%r10], %f1; bar.sync 0; mad.wide.u32 %l1, %c, 1024, %b;
    fence.proxy.async; setp.eq.u32 %p1, %t, 0; @!%p1 bra X;
    cp.async.bulk.global.shared::cta.bulk_group [%l1], [%r9], 128; cp.async.bulk.commit_group;
    cp.async.bulk.global.shared::cta.bulk_group [%l1 + 512], [%r9 + 256], 128; cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0; X:"""
  _, marked, sinks = observed(body, grid=2)
  assert np.flatnonzero(marked).tolist() == [*range(256, 288)] and sinks == {"memory": {"@%p2"}}
  _, program, tracker = followed(body, grid=2)
  arrived = {program.describe(r.pc).split()[0]: r.waves for r in tracker.reached()}
  assert arrived == {"st.shared.f32": 2, "cp.async.bulk.global.shared::cta.bulk_group": 1}


def test_matrices_mark_what_they_make() -> None:
  """A sum of products is approximate itself; the report says so in words."""
  body = """mov.u32 %r1, 0x3C003C00; mov.b32 %f1, 0f00000000;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1}, {%r1}, {%f1, %f1, %f1, %f1};
    st.global.f32 [%o], %f4;"""
  lines = tinyhw.report(kernel(body), "k", 1, 32, [np.zeros(32, np.float32)]).exactness()
  assert "approximate, executed by 1 warp" in lines[0] and "no such value reached an address" in lines
  assert any(line.startswith("reached memory: PTX:") and "st.global.f32 [%o], %f4" in line for line in lines)
