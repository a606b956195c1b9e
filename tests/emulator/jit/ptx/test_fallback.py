"""What the reference does for compiled code, an instruction of a warp at a time: any instruction can be done so."""
from __future__ import annotations

import random
import re
import sys

import numpy as np
import pytest

from tests.emulator.conftest import of_this_process
from tests.emulator.jit.ptx.test_jit import IN, LINES, OUT, both, kernel, moved, numbers, run
from tests.strength import seed, seeds
from tinyhw.core.errors import Interrupted, MachineFault, PageFault, WatchdogExpired
from tinyhw.core.kept import Kept
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.jit.ptx import fallback
from tinyhw.emulator.jit.ptx.launch import called
from tinyhw.emulator.jit.ptx.launch import run as run_module
from tinyhw.emulator.jit.ptx.module import blocks, code
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.values import Untranslatable
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

OWN = {m[0] for m in re.finditer(r"[a-z]\w*(\.\w+)+", moved([], random.Random(1)))}  # of the text around


def all_helped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
  """Have kernels be compiled to calls of the helper; the names of what is not."""
  left: list[str] = []
  step = blocks._step

  def asked(g: Lanes, k: int) -> None:
    line = g.plan.lines[k].instruction
    if line.name in OWN: return step(g, k)
    try: return fallback.emit(g, k)
    except Untranslatable: left.append(line.name)
    return step(g, k)
  monkeypatch.setattr(blocks, "_step", asked)
  monkeypatch.setattr(code, "_MEMORY", Kept(256))
  monkeypatch.setenv("TINYHW_CACHE", "0")
  return left


@pytest.mark.left("")
@pytest.mark.parametrize("start", seeds(range(1)))
def test_instructions_that_the_reference_does(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """All instructions that compute, on vectors, of all threads, on steps, with guards; a part of the threads, too."""
  left = all_helped(monkeypatch)
  rng = random.Random(seed(40 + start))
  data = numbers(rng, 256 * 8 * 512)
  lines = rng.sample(LINES, 15)
  parted = ["@%p4 bra PART;", *lines[5:10], "bra WHOLE;", "PART:", *lines[10:], "WHOLE:"]
  text = kernel(re.sub(r"@%p\d (?=@%p4 bra|bra WHOLE|PART|WHOLE)", "", moved([*lines[:5], *parted], rng)))
  reference, _ = run(text, "k", data, "ref")
  compiled, stats = run(text, "k", data, "jit")
  assert stats.engine == "jit" and not stats.interpreted, stats.interpreted
  by_itself = len(left) + sum(line.split()[0] in OWN for line in lines)
  assert stats.helped.total() >= 35 - 3 * by_itself  # by each of three warps, of which one parts
  same = reference.view(np.uint32) == compiled.view(np.uint32)
  x, y = reference.view(np.float64), compiled.view(np.float64)
  assert (same | np.repeat((x != x) & (y != y), 2)).all(), (start, np.flatnonzero(~same)[:4])


# ---- functions that call themselves

OF = ["u8", "s8", "b16", "s16", "f16", "u32", "f32", "s64", "b64", "f64"]


def down(kind: str, space: str) -> str:
  """A function that goes down to 0 and gives back what it got, changed; a number of its type in a register or not."""
  size = {"8": "b16", "16": "b16", "32": "b32", "64": "b64"}[re.sub(r"\D", "", kind)]
  width = int(re.sub(r"\D", "", kind))
  if space == "reg":
    head, get, put = f".func (.reg .{size} back) f (.reg .{size} x, .reg .b32 n)", "mov.{0} %x, x;", "mov.{0} back, %x;"
    call = "call (%x), f, (%x, %m);"
  else:
    head = f".func (.param .{kind} back) f (.param .{kind} x, .param .b32 n)"
    get, put = f"ld.param.b{width} %x, [x];", f"st.param.b{width} [back], %x;"
    call = f"""{{ .param .{kind} y; .param .b32 m; .param .{kind} z; st.param.b{width} [y], %x; st.param.b32 [m], %m;
      call (z), f, (y, m); ld.param.b{width} %x, [z]; }}"""
  get_n = "mov.u32 %m, n;" if space == "reg" else "ld.param.b32 %m, [n];"
  u = size.replace("b", "u")
  return f"""{head};
{head} {{ .reg .pred %q; .reg .{size} %x; .reg .b32 %m; {get.format(size)} {get_n}
  setp.eq.u32 %q, %m, 0; @%q bra E; sub.u32 %m, %m, 1; {call} add.{u} %x, %x, 3; E: {put.format(size)} ret; }}
"""


@pytest.mark.left("call")
@pytest.mark.parametrize("space", ["reg", "param"])
@pytest.mark.parametrize("kind", OF)
def test_what_functions_take_and_give(kind: str, space: str) -> None:
  """Each type, in registers and parameters; what the caller has in registers of every type stays."""
  if space == "reg" and kind not in {"b16", "u32", "b64"}: pytest.skip("registers have bits")
  width = int(re.sub(r"\D", "", kind))
  r = {8: "%h9", 16: "%h9", 32: "%r9", 64: "%l9"}[width]
  size = {8: "u16", 16: "u16", 32: "u32", 64: "u64"}[width]
  if space == "reg": call = f"call ({r}), f, ({r}, %r8);"
  else:
    call = f"""{{ .param .{kind} y; .param .b32 m; .param .{kind} z; st.param.b{width} [y], {r}; st.param.b32 [m], %r8;
      call (z), f, (y, m); ld.param.b{width} {r}, [z]; }}"""
  body = f"""and.b32 %r8, %t, 3; mad.wide.u32 %l1, %t, 64, %in; ld.global.v2.u64 {{%l2, %l3}}, [%l1];
    ld.global.u32 %r1, [%l1+16]; ld.global.f32 %f1, [%l1+20]; ld.global.f64 %d1, [%l1+24];
    ld.global.u16 %h1, [%l1+32]; .reg .f16 %g; .reg .b128 %q; mov.b16 %g, %h1; mov.b128 %q, {{%l2, %l3}};
    setp.lt.s32 %p1, %r1, 0; setp.eq.u32 %p2, %r8, 1; cvt.{size}.u64 {r}, %l2; mov.u32 %r2, 5; mov.u64 %l4, %out;
    setp.eq.u32 %p3, %r2, 5; add.u32 %r3, %t, 9;
    {call} add.{size} {r}, {r}, 1; @%p2 bra A; {call} A: mad.wide.u32 %l5, %t, 96, %l4; st.global.{size} [%l5], {r};
    selp.u32 %r4, 1, 2, %p1; @%p3 add.u32 %r4, %r4, %r2; st.global.v2.u32 [%l5+8], {{%r4, %r3}};
    st.global.b128 [%l5+16], %q; st.global.v2.u64 [%l5+32], {{%l2, %l3}}; st.global.u32 [%l5+48], %r1;
    st.global.f32 [%l5+52], %f1; st.global.f64 [%l5+56], %d1; mov.b16 %h2, %g; st.global.u16 [%l5+64], %h2;
    st.global.u16 [%l5+66], %h1;"""
  found, stats = both(kernel(body, down(kind, space)), numbers(random.Random(3), 80 * 16))
  assert {*stats.helped} == {"call"} and stats.helped.total() == 6 and not stats.interpreted
  rows = found[:96 * 80].reshape(80, 96)
  given = np.frombuffer(numbers(random.Random(3), 80 * 16), np.uint8).reshape(80, 64)
  n = np.arange(80)
  wanted = given[:, :8].copy().view(np.uint64)[:, 0] + (3 * (n & 3) * (1 + ((n & 3) != 1)) + 1).astype(np.uint64)
  assert not ((rows[:, :8].copy().view(np.uint64)[:, 0] ^ wanted) & np.uint64((1 << width) - 1)).any()


def test_faults_of_several_warps(monkeypatch: pytest.MonkeyPatch) -> None:
  """The first counts; what another one's instruction has said is not carried over."""
  body = """setp.eq.u32 %p1, %t, 40; setp.eq.u32 %p2, %t, 70; or.pred %p1, %p1, %p2; mov.u64 %l1, 0x40;
    tensormap.replace.tile.rank.global.b1024.b32 [%l1], 1;"""
  found = []
  for how in ("ref", "jit"):
    with pytest.raises(PageFault) as caught: run(kernel(body.replace("tensormap", "@%p1 tensormap")), "k", b"", how)
    found.append((str(caught.value), caught.value.wave, caught.value.lane))
  assert found[0] == found[1] and found[0][1:] == (1, 8)


LONG = """.func (.param .b32 back) f (.param .b32 x, .param .b32 n);
.func (.param .b32 back) f (.param .b32 x, .param .b32 n) { .reg .pred %q; .reg .b32 %x, %m, %c; ld.param.b32 %x, [x];
  ld.param.b32 %m, [n]; mov.u32 %c, 0; L: add.u32 %c, %c, 1; mad.lo.u32 %x, %x, 3, %c; setp.lt.u32 %q, %c, 40;
  @%q bra L; setp.eq.u32 %q, %m, 0; @%q bra E; sub.u32 %m, %m, 1;
  { .param .b32 y; .param .b32 m; .param .b32 z; st.param.b32 [y], %x; st.param.b32 [m], %m; call (z), f, (y, m);
    ld.param.b32 %x, [z]; }
  E: st.param.b32 [back], %x; ret; }
"""
OVER = """mov.u32 %r4, 0; mov.u32 %r5, %t; mov.u32 %r6, 2;
A: { .param .b32 y; .param .b32 m; .param .b32 z; st.param.b32 [y], %r5; st.param.b32 [m], %r6; call (z), f, (y, m);
  ld.param.b32 %r5, [z]; } add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 10; @%p1 bra A;
  mad.wide.u32 %l3, %t, 4, %out; st.global.u32 [%l3], %r5;"""


@pytest.mark.left("call")
def test_what_functions_execute_counts() -> None:
  """For reports, and for the watchdog: in one call, and of many together."""
  text = kernel(OVER, LONG)
  counts = [run(text, "k", b"", how, block=64)[1].instructions for how in ("ref", "jit")]
  assert counts[0] == counts[1]
  a_warp = counts[0] // 2
  for how in ("ref", "jit"):
    run(text, "k", b"", how, block=64, watchdog=a_warp + 1)
    with pytest.raises(WatchdogExpired): run(text, "k", b"", how, block=64, watchdog=a_warp // 2)
    with pytest.raises(WatchdogExpired): run(text, "k", b"", how, block=64, watchdog=300)


@pytest.mark.left("call")
def test_calls_often_enough_are_the_reference_s(monkeypatch: pytest.MonkeyPatch) -> None:
  """From so many calls on in one launch; the next launch of the kernel begins there."""
  text = kernel(OVER, LONG)
  for most, helped_ in ((20, 20), (19, 20), (3, 5)):
    monkeypatch.setattr(fallback, "MANY", most)
    monkeypatch.setattr(run_module, "MANY", most)
    _, stats = both(text, b"", block=64)
    assert stats.helped == {"call": helped_} and bool(stats.interpreted) == (most < 20)


def test_patience_ends_in_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
  """Whoever asks for the end is heard while the reference runs a function for compiled code, once is enough."""
  monkeypatch.setattr(called, "_TICK", 4)
  ticks: list[str] = []

  def tick() -> None:
    ticks.append(sys._getframe(1).f_code.co_name)
    if ticks.count("ticks") == 3: raise Interrupted("of the test")
  linked = link(parse(kernel(OVER, LONG)))
  space = AddressSpace("patience")
  for at in (IN, OUT, 0x3_0000_0000): space.map(at, 4096, Region("data", 4096))
  space.write(0x3_0000_0000, IN.to_bytes(8, "little") + OUT.to_bytes(8, "little"))
  d = Dispatch(Program(linked, "k", 0x4_0000_0000), (1, 1, 1), (64, 1, 1), 0x3_0000_0000, 16, tick=tick)
  with pytest.raises(Interrupted): dispatch(space, d, engine="jit")
  assert ticks.count("ticks") == 3 and ticks[0] == "_ran"


TOGETHER = """.func (.reg .b32 back) f (.reg .b32 x, .reg .b32 n);
.func (.reg .b32 back) f (.reg .b32 x, .reg .b32 n) { .reg .pred %q, %w; .reg .b32 %x, %m, %d; mov.b32 %x, x;
  mov.b32 %m, n; and.b32 %x, %x, 1023; setp.gt.u32 %q, %x, 300; setp.ne.and.u32 %q, %m, 2, %q;
  mov.u32 %d, 0; @%q bra LATER;
  P: MEET mov.u32 %d, 1; LATER: mad.lo.u32 %x, %x, 3, 100; setp.eq.u32 %w, %d, 0; @%w bra P;
  setp.eq.u32 %q, %m, 0; @%q bra E; sub.u32 %m, %m, 1; call (%x), f, (%x, %m); E: mov.b32 back, %x; ret; }
"""


@pytest.mark.left("call")
@pytest.mark.parametrize("meet", ["shfl.sync.bfly.b32 %x, %x, 5, 31, -1;", "redux.sync.add.s32 %x, %x, -1;",
                                  "vote.sync.any.pred %q, %q, -1; @%q add.u32 %x, %x, 7;", "bar.warp.sync -1;"])
def test_threads_that_meet_in_functions_that_the_reference_runs(meet: str) -> None:
  """Some come late, from behind: the first wait for them, and they go on together."""
  body = """mul.lo.u32 %r1, %t, 77; mov.u32 %r2, 2; call (%r1), f, (%r1, %r2); mad.wide.u32 %l1, %t, 4, %out;
    st.global.u32 [%l1], %r1;"""
  _, stats = both(kernel(body, TOGETHER.replace("MEET", meet)), b"", block=96)
  kept = "bar" not in meet  # a barrier of a warp may be one of several warps
  assert stats.helped == {"call": 3} and bool(stats.interpreted) == (not kept)


def test_a_store_to_a_block_that_has_ended() -> None:
  """The reference's step sees which blocks of a cluster live."""
  text = kernel("""mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1; setp.ne.u32 %p2, %t, 0;
    @!%p1 bra A; @%p2 exit; mov.u32 %r2, s; mapa.shared::cluster.u32 %r3, %r2, 0;
    barrier.cluster.arrive; barrier.cluster.wait;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], 5, [%r3+8]; exit; A:""",
                ".shared .align 8 .b8 s[16];\n").replace("out) {", "out) .reqnctapercluster 2 {", 1)
  found = []
  for how in ("ref", "jit"):
    with pytest.raises(MachineFault) as caught:
      run(text, "k", b"", how, grid=2, block=32)
    found.append(str(caught.value))
  assert found[0] == found[1] and "ended" in found[0]


@pytest.mark.left("cp.async.ca")
@pytest.mark.parametrize("width", [4, 8, 16])
def test_copies_of_less_than_their_width(width: int) -> None:
  """cp.async with how much is read, of all threads or of each; nothing of it, and all; a part is the reference's."""
  ways = "".join(f"""{{ .reg .b32 %n; mov.u32 %n, s; add.u32 %r5, %r9, {512 * k}; add.u32 %n, %n, %r5;
    {guard} cp.async.ca.shared.global [%n], [%l1], {width}, {size}; }}""" for k, (guard, size) in enumerate(
      [("", "%r1"), ("@%p1", "%r2"), ("", "%r3"), ("@%p1", "%r3"), ("@%p2", "%r3"), ("@!%p2", "%r1"),
       ("@%p1", str(width))]))
  body = f"""ld.global.v2.u32 {{%r1, %r2}}, [%in]; mad.wide.u32 %l1, %t, 16, %in; and.b32 %r3, %t, 3;
    shl.b32 %r3, %r3, 4; mul.lo.u32 %r9, %t, 16; setp.lt.u32 %p1, %t, 13; setp.eq.u32 %p2, %r2, 99;
    mov.u32 %r4, s; mov.u32 %r6, 7;
    Z: mad.lo.u32 %r5, %r6, 512, %r9; sub.u32 %r5, %r5, 512; add.u32 %r5, %r5, %r4;
    st.shared.v4.u32 [%r5], {{%r6, %t, %r6, %t}}; sub.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0;
    @%p3 bra Z;
    bar.warp.sync -1; {ways} cp.async.commit_group; cp.async.wait_group 0; bar.warp.sync -1; mov.u32 %r6, 7;
    mad.wide.u32 %l2, %t, 16, %out;
    Y: mad.lo.u32 %r5, %r6, 512, %r9; sub.u32 %r5, %r5, 512; add.u32 %r5, %r5, %r4; cvt.u64.u32 %l3, %r6;
    shl.b64 %l3, %l3, 9; add.u64 %l3, %l3, %l2; ld.shared.v4.u32 {{%r11, %r12, %r13, %r14}}, [%r5];
    st.global.v4.u32 [%l3], {{%r11, %r12, %r13, %r14}}; sub.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0; @%p3 bra Y;"""
  rest = numbers(random.Random(2), 130)
  for one, other in ((0, width), (width, 0), (99, 0), (0, 99), (width // 2, 0), (0, 1)):
    data = one.to_bytes(4, "little") + other.to_bytes(4, "little") + rest
    _, stats = both(kernel(body, ".shared .align 16 .b8 s[3584];\n"), data, block=32)
    assert bool(stats.interpreted) == (0 < one < width or 0 < other < width) and not stats.helped


@pytest.mark.parametrize("thread", [0, 5, 31])
def test_one_result_for_all_who_are_here(thread: int) -> None:
  """Which may be one thread, the others' lanes hold something else."""
  body = f"""setp.ne.u32 %p1, %t, {thread}; mov.u32 %r1, 7; @%p1 bra E; ld.global.u64 %l2, [%in];
    cvt.rn.bf16.s64 %h1, %l2; isspacep.global %p2, %l2; cvt.u32.u16 %r1, %h1; @%p2 add.u32 %r1, %r1, 65536;
    E: mad.wide.u32 %l3, %t, 4, %out;
    st.global.u32 [%l3], %r1;"""
  found, stats = both(kernel(body), (5).to_bytes(8, "little"), block=32)
  assert found[:128].view("u4").tolist() == [0x40A0 + 65536 if t == thread else 7 for t in range(32)]
  assert not stats.helped and not stats.interpreted


# ---- what the reference reads of a warp's state

# a register of each type that all threads share, that goes in steps from a base, and that each thread has its own of
KEPT = {"b16": ("mov.u16 {r}, 1234;", "cvt.u16.u32 {r}, %t; add.u16 {r}, {r}, 60000;", "cvt.u16.u32 {r}, %r1;"),
        "b32": ("ld.global.u32 {r}, [%in];", "add.u32 {r}, %t, 4000000000;", "mov.u32 {r}, %r1;"),
        "b64": ("ld.global.u64 {r}, [%in];", "mad.wide.u32 {r}, %t, 24, %out;", "mov.b64 {r}, {{%r1, %r2}};"),
        "f32": ("ld.global.f32 {r}, [%in];", "cvt.rn.f32.u32 {r}, %t;", "cvt.rn.f32.u32 {r}, %r1;"),
        "f64": ("ld.global.f64 {r}, [%in];", "cvt.rn.f64.u32 {r}, %t;", "cvt.rn.f64.u32 {r}, %r1;"),
        "pred": ("setp.gt.u32 {r}, %r9, 7;", "setp.gt.u32 {r}, %t, 7;", "setp.gt.u32 {r}, %r1, %r2;")}
WAYS = {"call": "call (%r3), f, (%r4);", "stack": "stacksave.u64 %l5; call (%r3), f, (%r4);",
        "stack behind": "call (%r3), f, (%r4); stacksave.u64 %l5;",
        "room": "alloca.u64 %l5, 24; call (%r3), f, (%r4); st.local.u32 [%l5], %r4; stackrestore.u64 %l5;",
        "rooms": "mul.wide.u32 %l5, %r4, 8; alloca.u64 %l5, %l5; call (%r3), f, (%r4); stacksave.u64 %l5;",
        "left": "and.b32 %r5, %t, 1; setp.eq.u32 %p1, %r5, 1; stacksave.u64 %l5; @%p1 bra X; bar.sync 1; bra Y; "
                "X: bar.sync 1; Y:"}
FUNCTION = """.func (.reg .b32 back) f (.reg .b32 x) { .reg .pred %q; .reg .b32 %z; .local .b32 own; mov.u32 back, 1;
  st.local.u32 [own], x; setp.eq.u32 %q, x, 0; @%q ret; sub.u32 %z, x, 1; call (%z), f, (%z); ld.local.u32 x, [own];
  add.u32 back, %z, x; ret; }
"""


@pytest.mark.left("call", "bar.sync")
@pytest.mark.parametrize("block", [33, 64])
@pytest.mark.parametrize("way", WAYS)
def test_each_shape_is_read_as_it_is(way: str, block: int) -> None:
  """Registers, and the end of the stack, live over what the reference does, in each shape of each type."""
  declared, made, told = "", "", ""
  for type_, lines in KEPT.items():
    for k, line in enumerate(lines):
      name = f"%{type_}_{k}"
      declared += f".reg .{type_} {name}; "
      made += line.format(r=name) + " "
      value = {"b16": f"cvt.u64.u16 %l6, {name};", "pred": f"selp.u64 %l6, 3, 5, {name};",
               "b32": f"cvt.u64.u32 %l6, {name};", "f32": f"mov.b32 %r6, {name}; cvt.u64.u32 %l6, %r6;"}
      told += f"{value.get(type_, f'mov.b64 %l6, {name};')} mad.lo.u64 %l7, %l7, 31, %l6; "
  text = kernel(f"""{declared} mad.wide.u32 %l1, %t, 8, %in; ld.global.v2.u32 {{%r1, %r2}}, [%l1];
    ld.global.u32 %r9, [%in]; and.b32 %r4, %r1, 3; mov.u32 %r3, 0; {made} {WAYS[way]} mov.u64 %l7, %l5; {told}
    add.u64 %l7, %l7, %l5; cvt.u64.u32 %l6, %r3; add.u64 %l7, %l7, %l6; mad.wide.u32 %l1, %t, 8, %out;
    st.global.u64 [%l1], %l7;""", FUNCTION)
  _, stats = both(text, numbers(random.Random(2), 256), block=block)
  assert bool(stats.helped) == (way != "left") and bool(stats.interpreted) == (way == "left")


def test_addresses_of_the_host_would_be_seen() -> None:
  """In hexadecimal, in decimal, with commas; those of a GPU are none."""
  at = np.zeros(1 << 20, np.uint8).ctypes.data
  assert len(of_this_process([f"at {at:#x}", f"needs {at + 4096:,}", str(at), f"at {IN:#x}", "12,345"])) == 3
