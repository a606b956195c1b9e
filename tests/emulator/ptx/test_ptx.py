"""PTX on the emulator: single instructions, divergence, faults, what is refused; LLVM's programs against the host."""
from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.isa import ptx_samples as samples
from tests.strength import examples, seed, seeds
from tinyhw.core.errors import DecodeError, InvalidArgument, MachineFault, PageFault, Unsupported, WatchdogExpired
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.ptx import bind, control
from tinyhw.emulator.ptx.launch.grid import Dispatch, Grid
from tinyhw.emulator.ptx.module.flow import arranged
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.simt import Stats
from tinyhw.isa.ptx import forms, parse
from tinyhw.tools.fuzz import ptx as fuzz
from tinyhw.tools.fuzz.program import programs

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def kernel(body: str, registers: str = "", params: str = ".param .u64 out") -> str:
  """A kernel whose threads have their index in %t and the address of their dword of `out` in %o."""
  return f"""{HEAD}.visible .entry k ({params}) {{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>, %t; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b64 %l<9>, %o, %b;
  {registers}
  ld.param.u64 %b, [out];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %o, %t, 4, %b;
  {body}
  ret;
}}"""


def run(body: str, threads: int = 32, registers: str = "", out: Any = None, grid: int = 1, shared: int = 0) -> Any:
  given = np.zeros(threads, np.uint32) if out is None else out
  return tinyhw.launch(kernel(body, registers), "k", grid, threads, [given], "EMU", shared)[0]


def fault(body: str, kind: type[Exception] = MachineFault, threads: int = 32, **more: Any) -> Any:
  with pytest.raises(kind) as caught: run(body, threads, **more)
  return caught.value


def value(body: str) -> int: return int(run(f"{body} st.global.b32 [%o], %r1;", 1)[0])


VALUES = [  # from the manual's definitions, by hand
  ("mov.b32 %r2, 0x80000000; bfe.s32 %r1, %r2, 28, 8;", 0xFFFFFFF8),
  ("bfe.u32 %r1, 0xABCD1234, 8, 12;", 0xD12),
  ("bfi.b32 %r1, 0xFF, 0x11111111, 4, 4;", 0x111111F1),
  ("bfind.s32 %r1, -1;", 0xFFFFFFFF), ("bfind.u32 %r1, 0x1000;", 12), ("bfind.shiftamt.u32 %r1, 0x1000;", 19),
  ("fns.b32 %r1, 0xF0F0, 5, 2;", 6), ("fns.b32 %r1, 0xF0F0, 5, -2;", 4), ("fns.b32 %r1, 0xF0F0, 4, 0;", 4),
  ("szext.clamp.s32 %r1, 0xFF, 8;", 0xFFFFFFFF), ("szext.wrap.u32 %r1, 0xFFFFFFFF, 0;", 0),
  ("bmsk.clamp.b32 %r1, 4, 30;", 0xFFFFFFF0), ("bmsk.wrap.b32 %r1, 33, 3;", 0xE),
  ("prmt.b32 %r1, 0x33221100, 0x77665544, 0x8F40;", 0x00004400), ("prmt.b32.rc16 %r1, 0x33221100, 0, 1;", 0x33223322),
  ("lop3.b32 %r1, 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0x80;", 0x80808080),
  ("shl.b32 %r1, 1, 40;", 0), ("shr.s32 %r1, -8, 99;", 0xFFFFFFFF), ("shf.l.wrap.b32 %r1, 0x80000000, 1, 33;", 3),
  ("dp2a.hi.s32.s32 %r1, 0x0002FFFF, 0x03FE0000, 5;", 13), ("mul24.hi.s32 %r1, 0x7FFFFF, 0x7FFFFF;", 0x3FFFFF00),
  ("sad.s32 %r1, -3, 4, 10;", 17), ("mad.hi.sat.s32 %r1, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF;", 0x7FFFFFFF),
  ("add.sat.s32 %r1, 0x7FFFFFFF, 1;", 0x7FFFFFFF), ("sub.cc.u32 %r2, 0, 1; subc.u32 %r1, 5, 0;", 4),
  ("add.cc.u32 %r2, 0xFFFFFFFF, 1; addc.u32 %r1, 5, 0;", 6), ("cnot.b32 %r1, 0;", 1),
  ("mov.f32 %f1, 0f7F800001; add.f32 %f2, %f1, 0f3F800000; mov.b32 %r1, %f2;", 0x7FFFFFFF),
  ("mov.f32 %f1, 0f00000001; mul.ftz.f32 %f2, %f1, 0f40000000; mov.b32 %r1, %f2;", 0),
  ("mov.f32 %f1, 0fC0000000; add.sat.f32 %f2, %f1, %f1; mov.b32 %r1, %f2;", 0),
  ("mov.f32 %f1, 0f7FC00000; cvt.rzi.s32.f32 %r1, %f1;", 0), ("cvt.rni.s32.f32 %r1, 0f40200000;", 2),
  ("mov.f64 %d1, 0d7FF8000000000000; cvt.rzi.s32.f64 %r1, %d1;", 0x80000000),
  ("cvt.rna.tf32.f32 %r1, 0f3F801000;", 0x3F802000), ("cvt.rn.bf16x2.f32 %r1, 0f3F808000, 0f40490FDB;", 0x3F804049),
  ("cvt.rz.f16x2.f32 %r1, 0f3F801FFF, 0fC0490FDB;", 0x3C00C248),
  ("cvt.rn.satfinite.e4m3x2.f32 %h1, 0f447A0000, 0fBF800000; cvt.u32.u16 %r1, %h1;", 0x7EB8),
  ("mov.b16 %h1, 0x7EB8; cvt.rn.f16x2.e4m3x2 %r1, %h1;", 0x5F00BC00),
  ("cvt.pack.sat.s8.s32.b32 %r1, 300, -300, 0x1234;", 0x12347F80), ("cvt.sat.u8.s32 %r1, 300;", 255),
  ("cvt.pack.sat.u2.s32.b32 %r1, 2, 300, 0x1F;", 0x1FB), ("cvt.pack.sat.s4.s32.b32 %r1, -9, 9, 0x1F;", 0x1F87),
  ("mov.f32 %f1, 0fBF800000; slct.ftz.f32.f32 %f2, 0f00000001, 0f00000002, %f1; mov.b32 %r1, %f2;", 2),
  ("cvt.s8.s32 %r1, 200;", 0xFFFFFFC8), ("set.lt.u32.s32 %r1, -1, 0;", 0xFFFFFFFF),
  ("slct.b32.s32 %r1, 5, 6, -1;", 6), ("mov.b32 %r2, 0x3C003C00; add.f16x2 %r1, %r2, %r2;", 0x40004000),
  ("mov.b32 %r2, 0x3F803F80; fma.rn.bf16x2 %r1, %r2, %r2, %r2;", 0x40004000),
  ("mov.b32 %r2, 0xBC003C00; fma.rn.relu.f16x2 %r1, %r2, %r2, %r2;", 0x00004000),
  ("testp.subnormal.f32 %p1, 0f00000001; selp.b32 %r1, 7, 8, %p1;", 7),
  ("setp.ltu.f32 %p1, 0f7FC00000, 0f00000000; selp.b32 %r1, 7, 8, %p1;", 7),
  ("mov.u64 %l1, 5; isspacep.global %p1, %l1; selp.b32 %r1, 7, 8, %p1;", 7),
  ("rsqrt.approx.f32 %f1, 0f40800000; mov.b32 %r1, %f1;", 0x3F000000),
]


@pytest.mark.parametrize(("body", "wanted"), VALUES, ids=[re.sub(r"\W+", "-", b)[:50] for b, _ in VALUES])
def test_an_instruction(body: str, wanted: int) -> None: assert value(body) == wanted


# ---- divergence

def test_threads_that_part_meet_at_once() -> None:
  """Nested branches and a loop of different lengths: behind them the warp is one again."""
  out = run("""and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; setp.eq.u32 %p2, %r1, 1; @%p2 bra B;
    mov.u32 %r2, 5; bra C;
A:  mov.u32 %r2, 6; mov.u32 %r3, %t;
L:  setp.eq.u32 %p3, %r3, 0; @%p3 bra C; sub.u32 %r3, %r3, 1; bra L;
B:  mov.u32 %r2, 7;
C:  activemask.b32 %r4; add.u32 %r4, %r4, %r2; st.global.u32 [%o], %r4;""")
  want = np.array([6, 7, 5, 5], np.uint32)[np.arange(32) % 4] + np.uint32(0xFFFFFFFF)
  assert (out == want).all()


def test_blocks_are_arranged_with_loops_together() -> None:
  # 0 -> 1 (a loop 1, 2, 3 with a way out from 2 to 5), 4 is out of line and joins 5
  order = arranged(range(6), {0: [1], 1: [2, 4], 2: [3, 5], 3: [1], 4: [5], 5: []})
  assert order.index(5) == 5 and order[0] == 0
  assert sorted(order[order.index(1):order.index(1) + 3]) == [1, 2, 3]


def test_a_shuffle_waits_for_its_threads() -> None:
  out = run("""setp.lt.u32 %p1, %t, 5; @%p1 bra A; mov.u32 %r1, 1; bra J;
A:  mov.u32 %r1, 2;
J:  shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff; st.global.u32 [%o], %r2;""")
  assert (out == 2).all()


def test_threads_that_never_come_are_named() -> None:
  error = fault("setp.lt.u32 %p1, %t, 5; @%p1 bra A; bar.warp.sync 0xffffffff; exit;\n"
                "A: shfl.sync.idx.b32 %r2, %t, 0, 31, 0xffffffff;")
  assert "wait for lanes that never come" in str(error)
  error = fault("setp.lt.u32 %p1, %t, 32; @%p1 bra A; bar.sync 1, 64; A: bar.sync 2, 64;", threads=64)
  assert "barrier" in str(error) and "32 of 64 threads have come" in str(error)


def test_a_barrier_in_a_branch_and_early_exits() -> None:
  out = run("setp.ge.u32 %p1, %t, 40; @%p1 exit; bar.sync 0; st.global.u32 [%o], %t;", threads=64)
  assert (out[:40] == np.arange(40)).all() and not out[40:].any()


def test_an_endless_loop_ends() -> None:
  assert isinstance(fault("L: bra L;", WatchdogExpired), WatchdogExpired)


CALLEES = """.func (.reg .b32 ret) plus1 (.reg .b32 a) { add.u32 ret, a, 1; ret; }
.func (.param .b32 ret) plus2 (.param .b32 a) {
  .reg .b32 %x; ld.param.u32 %x, [a]; add.u32 %x, %x, 2; st.param.u32 [ret], %x; ret;
}
"""


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize(("body", "more"), [
  ("call (%r1), plus1, (%t);", 1), ("call (%r1), plus2, (%t);", 2),
  ("{ .param .b32 x; .param .b32 y; st.param.u32 [x], %t; call (y), plus2, (x); ld.param.u32 %r1, [y]; }", 2),
  ("mov.u64 %l1, plus2; setp.eq.u32 %p1, %r3, 0; @%p1 mov.u64 %l1, plus1; call (%r1), %l1, (%t), F;", None),
], ids=["registers", "memory-to-register", "memory", "by-address"])
def test_results_of_calls(body: str, more: int | None, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Results in registers and in memory, as the callee gives and the caller takes them; each thread calls its own."""
  monkeypatch.setenv("EMU", engine)
  text = kernel(f"and.b32 %r3, %t, 1; {body} F: .callprototype (.param .b32 _) _ (.param .b32 _); "
                "st.global.u32 [%o], %r1;").replace(".visible", CALLEES + ".visible", 1)
  t = np.arange(64)
  found = tinyhw.launch(text, "k", 1, 64, [np.zeros(64, np.uint32)], "EMU")[0]
  assert (found == t + (1 + t % 2 if more is None else more)).all()


# ---- faults

def test_a_page_fault_says_where() -> None:
  error = fault("mad.wide.u32 %l1, %t, 1000000, %b; st.global.u32 [%l1+4096], %t;", PageFault, threads=64, grid=2)
  assert error.line == 10 and error.source == "mad.wide.u32 %l1, %t, 1000000, %b; st.global.u32 [%l1+4096], %t;"
  assert (error.lane, error.wave, error.workgroup, error.kernel) == (0, 0, (0, 0, 0), "k")
  assert "past the end of out (256 bytes), in kernel k at PTX:10" in str(error)
  assert "thread 0,0,0 of its block" in str(error)
  error = fault("setp.ne.u32 %p1, %t, 37; mov.u64 %l1, 8; selp.b64 %l1, %o, %l1, %p1; ld.global.u32 %r1, [%l1];",
                PageFault, threads=64)
  assert error.address == 8 and (error.wave, error.lane) == (1, 5)


def test_a_fault_says_which_line_of_the_source_it_is() -> None:
  text = kernel(".loc 2 7 3\nmov.u64 %l1, 8; ld.global.u32 %r1, [%l1];")
  for table, place in (('.file 2 "/src/add.cu"', "add.cu:7"), ('.file 2 "/src/add.cu", 1700000000, 99', "add.cu:7"),
                       ('.file 1 "/src/other.cu"', "line 7")):
    with pytest.raises(PageFault) as caught:
      tinyhw.launch(text.replace(".visible", table + "\n.visible"), "k", 1, 1, [np.zeros(1, np.uint32)], "EMU")
    assert caught.value.calls == (place,)


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_elements_of_arrays_by_their_number(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """`array[3]` is the address of an element, for mov and without brackets for ld and st, as ptxas has it."""
  monkeypatch.setenv("EMU", engine)
  arrays = ".shared .align 16 .u32 w[8]; .shared .align 16 .b8 c[8]; .local .align 16 .v2 .u32 v[4];"
  out = run("""
    mov.u32 %r1, w; mov.u32 %r2, w[3]; sub.u32 %r3, %r2, %r1;
    mov.u32 %r1, c; mov.u32 %r2, c[3]; sub.u32 %r4, %r2, %r1;
    mov.u32 %r1, v; mov.u32 %r2, v[3]; sub.u32 %r5, %r2, %r1;
    mov.u32 %r6, 77; st.shared.u32 w[5], %r6; ld.shared.u32 %r7, [w+20]; ld.shared.u32 %r8, w[5];
    st.global.u32 [%b], %r3; st.global.u32 [%b+4], %r4; st.global.u32 [%b+8], %r5; st.global.u32 [%b+12], %r7;
    st.global.u32 [%b+16], %r8;""", 8, registers=arrays)
  assert out[:5].tolist() == [12, 3, 24, 77, 77]
  with pytest.raises(tinyhw.PtxSyntaxError, match="array\\+bytes"): run("ld.shared.u32 %r1, [w[5]];", registers=arrays)


def test_misaligned_and_beyond_shared_memory() -> None:
  assert "misaligned write of 4 bytes" in str(fault("st.global.u32 [%o+2], %t;"))
  assert "misaligned read of 16 bytes" in str(fault("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%o+4];"))
  error = fault("shl.b32 %r1, %t, 2; st.shared.u32 [s+%r1], %t;".replace("[s+%r1]", "[%r1+100]"),
                registers=".shared .align 4 .b8 s[64]; ")
  assert "of shared memory, which has 64 bytes" in str(error)
  assert "of local memory" in str(fault("ld.local.u32 %r1, [a+16];", registers=".local .align 4 .b8 a[8];"))


def test_a_trap_and_an_endless_recursion() -> None:
  assert "stopped itself (trap)" in str(fault("setp.eq.u32 %p1, %t, 9; @%p1 trap;"))
  source = HEAD + ".func f () { .local .b8 a[4096]; call.uni f; ret; } .visible .entry k () { call.uni f; ret; }"
  with pytest.raises(MachineFault, match="an endless recursion"): tinyhw.launch(source, "k", 1, 32, [], "EMU")


def test_what_is_unknown_is_refused_by_name_where_control_gets_there() -> None:
  error = fault("add.q32 %r1, %r2, %r3;", Unsupported)
  assert str(error) == "PTX line 10, column 3: unsupported PTX instruction add.q32"
  assert (run("bra E; add.q32 %r1, %r2, %r3; E: st.global.u32 [%o], %t;") == np.arange(32)).all()
  assert "tex" in str(fault("add.foo.u32 %r1, %r2, %r3;".replace("foo", "tex"), Unsupported))


@pytest.mark.parametrize(("body", "message"), [
  ("add.u32 %r1, %r2;", "add.u32 takes 3 operands, not 2"), ("add.u32 %x, %r2, %r3;", "%x is no register"),
  ("mov.u32 %r1, nobody;", "nobody is not declared"), ("add.u32 %l1, %r2, %r3;", "add.u32 does not fit the type .b64"),
  ("bra NOWHERE;", "there is no label NOWHERE"), ("mov.pred %p1, %r1;", "%r1 of the type .b32 does not fit mov.pred")])
def test_what_contradicts_itself(body: str, message: str) -> None:
  with pytest.raises(DecodeError, match=re.escape(message)): run(body)


EXCHANGES = ["activemask.b32 %r2", "elect.sync %r2|%p2, -1", "vote.sync.all.pred %p2, %p1, -1",
             "vote.any.pred %p2, %p1", "shfl.sync.up.b32 %r2, %t, 1, 0, -1", "shfl.down.b32 %r2, %t, 1, 31",
             "match.any.sync.b32 %r2, %t, -1", "redux.sync.add.u32 %r2, %t, -1"]


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("line", EXCHANGES, ids=lambda line: line.split()[0])
def test_exchanges_take_all_their_operands_and_no_more(line: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Compiled code refuses what the reference refuses: members that were forgotten are not everybody."""
  monkeypatch.setenv("EMU", engine)
  name, count = line.split()[0], line.count(",") + 1
  run(f"{line};")
  for body, found in ((line.rpartition(",")[0], count - 1), (f"{line}, -1", count + 1)):
    if not found: continue
    with pytest.raises(DecodeError, match=re.escape(f"{name} takes {count} operands, not {found}")): run(f"{body};")


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_instructions_with_other_operands_are_errors_or_run(data: st.DataObject) -> None:
  """Whatever a module says, a launch ends with an error of tinyhw's or without one."""
  texts = LINES["sm_90a"]
  line = data.draw(st.sampled_from(texts))
  words = line.rstrip(";").split(", ")
  operands = ["%r1", "%h1", "%l1", "%f1", "%p1", "[%l1]", "{%r1, %r2}", "5", "0f3F800000", "_", "%q1", "[cvar+4]", "L"]
  for _ in range(data.draw(st.integers(1, 2))):
    at = data.draw(st.integers(0, len(words) - 1))
    kind = data.draw(st.integers(0, 2))
    new = data.draw(st.sampled_from(operands))
    if kind == 0 and len(words) > 1: del words[at]
    elif kind == 1: words.insert(at + 1, new)
    else: words[at] = f"{words[at].split(' ')[0]} {new}" if at == 0 else new
  source = samples.HEAD.format(target="sm_90a") + "bra A;\nA:\n" + ", ".join(words) + ";\nret;\n}\n"
  try: tinyhw.launch(source, "k", 1, 33, [bytes(64)], "EMU", timeout=5)
  except tinyhw.Error: pass


LINES = {target: list(of.values()) for target, of in samples.samples(3, random.Random(4)).items()}


def test_launches_that_do_not_fit() -> None:
  source = kernel("")
  out = np.zeros(4, np.uint32)
  for change, message in (({"kernel": "x"}, "no kernel 'x'; it has k"), ({"block": 2000}, "2000 threads"),
                          ({"shared": 1 << 20}, "bytes of shared memory"), ({"args": []}, "0 arguments given")):
    given: dict[str, Any] = {"kernel": "k", "block": 4, "shared": 0, "args": [out], **change}
    with pytest.raises(InvalidArgument, match=re.escape(message)):
      tinyhw.launch(source, given["kernel"], 1, given["block"], given["args"], "EMU", given["shared"])


@pytest.mark.parametrize(("threads", "shared", "blocks"), [
  (1, 0, 32), (64, 0, 32), (65, 0, 21), (256, 0, 8), (1024, 0, 2), (32, 100 << 10, 2), (32, 227 << 10, 1)])
def test_how_many_blocks_the_chip_holds(threads: int, shared: int, blocks: int) -> None:
  """On each of 132 multiprocessors: by its 32 places, its 2048 threads, its 227 KiB of shared memory."""
  d = Dispatch(Program(link(parse(kernel(""))), "k", 0), (9999, 1, 1), (threads, 1, 1), 0, 16, shared)
  assert Grid(AddressSpace("chip"), d, 1000, Stats()).places == 132 * blocks


def test_parameters_have_the_types_that_are_told_or_used() -> None:
  source = kernel("ld.param.b32 %f1, [a]; ld.param.b32 %r1, [n]; add.f32 %f2, %f1, %f1; cvt.rzi.u32.f32 %r2, %f2;"
                  "mad.lo.u32 %r3, %r1, 10, %r2; st.global.u32 [%o], %r3;",
                  params=".param .u64 out, .param .b32 a, .param .u32 n")
  assert tinyhw.launch(source, "k", 1, 1, [np.zeros(1, np.uint32), 2.5, 4], "EMU")[0] == 45
  with pytest.raises(InvalidArgument, match="float32"):
    tinyhw.launch(source, "k", 1, 1, [np.zeros(1, np.uint32), np.int32(2), 4], "EMU")


# ---- LLVM's programs, for NVIDIA and for the host

@pytest.mark.parametrize("start", seeds(range(2)))
def test_random_programs(start: int) -> None:
  at = start * 6
  assert not fuzz.check(programs(range(at, at + 6)), [0, 2], seed=seed(start))


def test_llvm_cases() -> None:
  cases = fuzz.cases()
  assert len(cases) > 1000
  assert not fuzz.check(cases[::23], [2], seed=seed(0))


def test_forms_of_the_table_have_meanings(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("tinyhw.emulator.ptx.module.link._checked", lambda *_: None)  # no target has them all
  texts = samples.samples(5, random.Random(seed(3)))
  lines = [t for of in texts.values() for t in of.values()]
  linked = link(parse(samples.HEAD.format(target="sm_120a") + "\n".join(lines) + "\nret;\n}\n"))
  code = Program(linked, "k", 1 << 20).function("k")
  missing = []
  for line in code.flat.lines:
    try:
      if control.stops(line.instruction): control.ender(code, line, 0, 2)
      else: bind.step(code, line)
    except Unsupported: missing.append(line.instruction.name)
  assert len(lines) > 600
  assert not missing


def split(text: str) -> tuple[str, list[str]]:
  """The name of an instruction and its operands."""
  name, _, rest = text.rstrip().removesuffix(";").partition(" ")
  out, depth = [""], 0
  for c in rest:
    depth += (c in "([{") - (c in ")]}")
    if c == "," and not depth: out.append("")
    else: out[-1] += c
  return name, [o.strip() for o in out if o.strip()]


def numbers_of(name: str) -> set[int]:
  """How many operands the rows of the table give an instruction."""
  found = set[int]()
  for row in forms.rows()[name.split(".")[0]]:
    slots = "".join(rf"(\.({'|'.join(map(re.escape, of))})){'?' * optional}" for optional, of in row.slots)
    if not re.fullmatch(row.opcode + slots, name): continue
    words = [*row.results, *row.sources]
    for left_out in range(1 + sum(w[0] == "*" for w in words)): found.add(len(words) - left_out)
  return found


def test_one_operand_more_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
  """No form of the table takes it, as ptxas has it; what is wrong is said, and where."""
  monkeypatch.setattr("tinyhw.emulator.ptx.module.link._checked", lambda *_: None)
  lines = []
  for of in samples.samples(1, random.Random(seed(8))).values():
    for text in of.values():
      name, given = split(text)
      good = numbers_of(name)
      assert len(given) in good, text
      for changed in (given[:-1], [*given, "%r1"]):
        if given and len(changed) not in good: lines.append(f"{name} {', '.join(changed)};")
  linked = link(parse(samples.HEAD.format(target="sm_120a") + "\n".join(lines) + "\nret;\n}\n"))
  code, known = Program(linked, "k", 1 << 20).function("k"), 0
  for k, text in enumerate(lines):
    try: step = code.bound(k)
    except DecodeError as error:
      assert str(error).startswith(f"PTX line {code.flat.lines[k].instruction.at[0]}, column"), text
      known += 1
    else: assert getattr(step, "__name__", "") == "refuse", text  # on a target that does not have it
  assert known > 800
