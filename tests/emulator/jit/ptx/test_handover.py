"""Threads change engines in the middle of a launch: whenever that is, they leave what they would have left in one."""
from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import tinyhw
from tests.emulator.jit.ptx.test_calls import DEEP, RECURSIVE
from tests.emulator.jit.ptx.test_jit import IN, OUT, numbers
from tests.emulator.jit.ptx.test_jit import kernel as text_of
from tests.emulator.jit.ptx.test_sm90 import TURNS
from tests.strength import THOROUGH, seed
from tinyhw.core.errors import Deadlock, MachineFault, WatchdogExpired
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines import ptx_compiled
from tinyhw.emulator.engines.ptx import dispatch, turns
from tinyhw.emulator.jit.ptx.launch import run
from tinyhw.emulator.jit.ptx.module import code, emit
from tinyhw.emulator.ptx.group import Blocks
from tinyhw.emulator.ptx.launch.grid import Dispatch, Grid
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.schedule import Schedule, ended
from tinyhw.emulator.simt import Stats
from tinyhw.isa.ptx import parse

SIZE = 1 << 16
LOAD = "mad.wide.u32 %l1, %r20, 16, %in; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%l1];"
INDEX = """mov.u32 %r20, %ctaid.x; mov.u32 %r21, %ntid.x; mov.u32 %r22, %tid.y; mad.lo.u32 %r22, %r22, %r21, %t;
  mov.u32 %r23, %ntid.y; mul.lo.u32 %r21, %r21, %r23; mad.lo.u32 %r20, %r20, %r21, %r22;"""

# registers of every type, as vectors, of all threads, in steps; a carry; loops that threads leave at different times
TYPES = f"""{INDEX} {LOAD} .reg .f16 %g<4>; .reg .b16 %s<4>; .reg .pred %q<6>; .reg .f64 %e<4>; .reg .b64 %m<6>;
  and.b32 %r5, %r1, 15; mov.u32 %r6, 0; mov.u32 %r7, %r20; cvt.u16.u32 %s1, %r2; mov.b32 {{%h1, %h2}}, %r3;
  cvt.rn.f16.u32 %g1, %r5; cvt.rn.f32.u32 %f1, %r3; cvt.rn.f64.u32 %e1, %r4; mov.b64 %m1, {{%r1, %r4}};
  mov.u64 %m2, %out; cvt.u64.u32 %m3, %r20; mov.f32 %f2, 0f40490FDB; mov.f64 %e2, 0d400921FB54442D18; mov.u16 %s2, 7;
  .local .align 4 .b8 mine[16]; mov.u32 %r14, mine; st.local.u32 [%r14], %r3;
  setp.lt.s32 %q1, %r1, 0; setp.gt.u32 %q2, %r20, 40; add.cc.u32 %r8, %r2, %r3; mov.u32 %r12, 0; cvt.u16.u32 %s3, %r20;
L: setp.ge.u32 %q3, %r6, %r5; @%q3 bra OUT;
  and.b32 %r9, %r6, 3; setp.eq.u32 %q4, %r9, 2; @%q4 bra EVEN;
  addc.cc.u32 %r8, %r8, %r1; add.f16 %g1, %g1, %g1; fma.rn.f32 %f1, %f1, %f2, %f1; not.pred %q1, %q1; bra NEXT;
EVEN: madc.lo.cc.u32 %r8, %r8, %r6, %r2; add.rn.f64 %e1, %e1, %e2; mad.lo.s16 %s1, %s1, %s2, %s3;
NEXT: shl.b64 %m1, %m1, 1; xor.b64 %m1, %m1, %m3; add.u32 %r7, %r7, 3; add.u64 %m3, %m3, %m2; add.u32 %r6, %r6, 1;
  add.u16 %s3, %s3, %s2; xor.b32 %r12, %r12, %r7; ld.local.u32 %r13, [%r14]; add.u32 %r13, %r13, %r7;
  st.local.u32 [%r14], %r13; bra L;
OUT: addc.u32 %r8, %r8, 0; selp.u32 %r10, 1, 2, %q1; @%q2 add.u32 %r10, %r10, 4; mov.b16 %h3, %g1;
  mov.b32 %r11, {{%s1, %h3}}; setp.eq.u32 %p1, %r20, 5; @%p1 exit;
  mad.wide.u32 %l2, %r20, 64, %out; st.global.v4.u32 [%l2], {{%r8, %r10, %r11, %r7}}; st.global.f32 [%l2+16], %f1;
  st.global.f64 [%l2+24], %e1; st.global.u64 [%l2+32], %m1; st.global.u64 [%l2+40], %m3; st.global.u32 [%l2+48], %r12;
  cvt.u32.u16 %r9, %s3; st.global.u32 [%l2+52], %r9; ld.local.u32 %r13, [%r14]; st.global.u32 [%l2+56], %r13;"""

# warps that are at barriers: of all threads, of some, with votes, and such that only arrive; threads that have ended
BARRIERS = f"""{INDEX} {LOAD} setp.eq.u32 %p9, %t, 77; @%p9 exit; mov.u32 %r6, 0; shr.u32 %r7, %t, 5; mov.u32 %r12, 0;
  mov.u32 %r9, s; mad.lo.u32 %r9, %t, 4, %r9; setp.eq.u32 %p2, %r7, 2;
L: mad.lo.u32 %r10, %r6, 7, %r1; st.shared.u32 [%r9], %r10; bar.sync 0; xor.b32 %r11, %t, 32; and.b32 %r11, %r11, 63;
  mov.u32 %r13, s; mad.lo.u32 %r13, %r11, 4, %r13; ld.shared.u32 %r11, [%r13]; add.u32 %r12, %r12, %r11;
  setp.gt.s32 %p3, %r10, %r2; bar.red.popc.u32 %r11, 1, %p3; add.u32 %r12, %r12, %r11;
  bar.red.and.pred %p4, 2, !%p3; @%p4 add.u32 %r12, %r12, 1; @%p2 bra TAKE;
  bar.arrive 3, 96; bra ON; TAKE: mov.u32 %r14, 0;
W: add.u32 %r14, %r14, 1; setp.lt.u32 %p5, %r14, 30; @%p5 bra W; bar.sync 3, 96; mad.lo.u32 %r12, %r12, 3, %r14;
ON: add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 6; @%p1 bra L;
  mad.wide.u32 %l2, %r20, 4, %out; st.global.u32 [%l2], %r12;"""

VOTE = re.compile(r"bar\.red[^;]*;")

# blocks of a cluster write to each other, arrive, do something else, wait; one thread ends
CLUSTERS = f"""{INDEX} {LOAD} mov.u32 %r5, %cluster_ctarank; xor.b32 %r6, %r5, 1; mov.u32 %r7, s; mov.u32 %r12, 0;
  mad.lo.u32 %r8, %t, 4, %r7; mapa.shared::cluster.u32 %r9, %r8, %r6; mov.u32 %r10, 0; barrier.cluster.arrive;
  barrier.cluster.wait; setp.eq.u32 %p9, %r20, 67; @%p9 exit; mad.lo.u32 %r15, %r5, -19, 19;
L: mad.lo.u32 %r11, %r10, 5, %r1; mov.u32 %r13, %r15;
V: add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 20; @%p2 bra V;
  st.shared::cluster.u32 [%r9], %r11; barrier.cluster.arrive; mov.u32 %r13, %r5;
W: add.u32 %r13, %r13, 1; xor.b32 %r12, %r12, %r13; setp.lt.u32 %p2, %r13, 20; @%p2 bra W;
  barrier.cluster.wait; ld.shared.u32 %r14, [%r8]; mad.lo.u32 %r12, %r12, 3, %r14; barrier.cluster.arrive;
  barrier.cluster.wait; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 4; @%p1 bra L;
  mad.wide.u32 %l2, %r20, 4, %out; st.global.u32 [%l2], %r12;"""

LOOPING = """.reg .pred %q; .reg .b32 %c, %d; mov.u32 %c, 0; and.b32 %d, %a, 7;
  L: add.u32 %c, %c, 1; mad.lo.u32 %a, %a, 3, %c; setp.le.u32 %q, %c, %d; @%q bra L; st.global.u32 [%z1], %a;"""
CALLS = """mov.u32 %r20, %ctaid.x; mad.lo.u32 %r20, %r20, 80, %t; mad.wide.u32 %l1, %r20, 16, %out; mov.u32 %r6, 0;
  mov.u32 %r7, 0; and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 1; mov.u32 %r3, %t;
L: { .param .b64 x; st.param.b64 [x], %l1; @%p1 call outer, (x); }
  { .param .b32 x; .param .b32 y; add.u32 %r8, %r6, %t; st.param.b32 [x], %r8; call.uni (y), over, (x);
    ld.param.b32 %r3, [y]; }
  mad.lo.u32 %r7, %r7, 5, %r3; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3; @%p2 bra L; st.global.u32 [%l1+12], %r7;"""

# half a warp comes to a barrier before the other half does
HALVES = f"""{INDEX} {LOAD} and.b32 %r5, %t, 1; setp.eq.u32 %p1, %r5, 1; mov.u32 %r10, 0; mov.u32 %r12, %r1;
L: @%p1 bra B; mad.lo.u32 %r12, %r12, 3, 1; bar.sync 2; bra C; B: mad.lo.u32 %r12, %r12, 5, 2; bar.sync 2;
C: add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 9; @%p2 bra L; mad.wide.u32 %l2, %r20, 4, %out;
  st.global.u32 [%l2], %r12;"""

# half a warp arrives at a cluster's barrier before the other half does
APART = f"""{INDEX} {LOAD} and.b32 %r5, %t, 1; setp.eq.u32 %p1, %r5, 1; mov.u32 %r10, 0; mov.u32 %r12, %r1;
L: @%p1 bra B; mad.lo.u32 %r12, %r12, 3, 1; barrier.cluster.arrive; bra C;
B: mad.lo.u32 %r12, %r12, 5, 2; xor.b32 %r12, %r12, %r10; barrier.cluster.arrive; C: barrier.cluster.wait;
  add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 3; @%p2 bra L; mad.wide.u32 %l2, %r20, 4, %out;
  st.global.u32 [%l2], %r12;"""

# threads of a warp are apart in a function that the reference runs, and come to a barrier there
MEET = RECURSIVE.replace("ret; }\n.func (.param .b32 back) over", "bar.sync 4; ret; }\n.func (.param .b32 back) over")
MEETING = """mad.wide.u32 %l1, %t, 4, %out; and.b32 %r5, %t, 1; mov.u32 %r6, 0; mov.u32 %r7, %t;
L: { .param .b32 x; .param .b32 y; st.param.b32 [x], %r5; call (y), over, (x); ld.param.b32 %r3, [y]; }
  mad.lo.u32 %r7, %r7, 5, %r3; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3; @%p2 bra L; st.global.u32 [%l1], %r7;"""

ROOM = """mov.u32 %r5, 0; and.b32 %r6, %t, 3; mov.u32 %r7, 0; stacksave.u64 %l9; .local .align 8 .b8 mine[24];
  st.local.u32 [mine+4], %t;
A: mul.lo.u32 %r1, %r6, 12; add.u32 %r1, %r1, 8; cvt.u64.u32 %l1, %r1; alloca.u64 %l2, %l1, 16;
  st.local.u32 [%l2], %t; st.local.u32 [%l2+4], %r7; ld.local.u32 %r2, [%l2+4]; mad.lo.u32 %r5, %r5, 3, %r2;
  cvt.u32.u64 %r2, %l2; add.u32 %r5, %r5, %r2; add.u32 %r7, %r7, 1; setp.le.u32 %p1, %r7, %r6; @%p1 bra A;
  ld.local.u32 %r3, [mine+4]; stacksave.u64 %l3; cvt.u32.u64 %r2, %l3; add.u32 %r5, %r5, %r2; stackrestore.u64 %l9;
  add.u32 %r5, %r5, %r3; mov.u32 %r8, 0;
B: add.u32 %r8, %r8, 1; alloca.u64 %l4, 8; cvt.u32.u64 %r2, %l4; add.u32 %r5, %r5, %r2; setp.lt.u32 %p2, %r8, 4;
  @%p2 bra B; mad.wide.u32 %l4, %t, 4, %out; st.global.u32 [%l4], %r5;"""

# the end of the stack is that of all threads, which leave a loop at different times
SAVED = f"""{INDEX} {LOAD} and.b32 %r5, %r1, 7; mov.u32 %r6, 0; mov.u32 %r7, %r20; .local .align 8 .b8 mine[24];
  st.local.u32 [mine+4], %t;
L: setp.ge.u32 %p3, %r6, %r5; @%p3 bra OUT; stacksave.u64 %l3; cvt.u32.u64 %r8, %l3; mad.lo.u32 %r7, %r7, 3, %r8;
  and.b32 %r9, %r6, 1; setp.eq.u32 %p4, %r9, 1; @%p4 bra ODD; add.u32 %r7, %r7, %r1; bra ON; ODD: xor.b32 %r7, %r7, %r2;
ON: add.u32 %r6, %r6, 1; bra L;
OUT: stacksave.u64 %l3; cvt.u32.u64 %r8, %l3; mad.lo.u32 %r7, %r7, 5, %r8; ld.local.u32 %r8, [mine+4];
  add.u32 %r7, %r7, %r8; mad.wide.u32 %l2, %r20, 4, %out; st.global.u32 [%l2], %r7;"""


# warps of a block meet in parties of two and four; one of each comes later than the others, which come together
PARTIES = """mov.u32 %r2, %tid.y; mov.u32 %r6, 0; mov.u32 %r8, 0; setp.gt.u32 %p3, %r2, 1; selp.u32 %r9, 2, 1, %p3;
  selp.u32 %r11, 128, 64, %p3; rem.u32 %r10, %r2, 5; setp.eq.u32 %p4, %r10, 0;
L: bar.sync %r9, %r11; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 12; mov.u32 %r7, 0; @%p4 bra M;
  mad.lo.u32 %r8, %r8, 5, %r6; @%p1 bra L; bra OUT;
M: add.u32 %r7, %r7, 1; mad.lo.u32 %r8, %r8, 3, %r7; setp.lt.u32 %p2, %r7, 9; @%p2 bra M; @%p1 bra L;
OUT: mad.lo.u32 %r2, %r2, 64, %t; mad.wide.u32 %l1, %r2, 4, %out; st.global.u32 [%l1], %r8;"""


# warps of a warpgroup come to their products one after the other, and store to what the last ones were made of
PRODUCTS = f"""{INDEX} {LOAD} mov.u32 %r5, s; mad.lo.u32 %r5, %t, 16, %r5; and.b32 %r1, %r1, 0xBBFFBBFF; mov.u32 %r6, 0;
  and.b32 %r2, %r2, 0xBBFFBBFF; shr.u32 %r7, %t, 5; mul.lo.u32 %r7, %r7, 4; mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1;
  mov.f32 %f3, %f1; mov.f32 %f4, %f1; mov.b64 %l3, {8 << 16 | 16 << 32}; st.shared.v4.u32 [%r5], {{%r1, %r2, %r2, %r1}};
L: bar.sync 0; mov.u32 %r8, %r6; wgmma.fence.sync.aligned;
W: add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, %r7; @%p2 bra W;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f1, %f2, %f3, %f4}}, %l3, %l3, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; mov.b32 %r9, %f2; and.b32 %r9, %r9, 0x3BFF3BFF;
  st.shared.v4.u32 [%r5], {{%r2, %r9, %r1, %r9}}; fence.proxy.async; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 4;
  @%p1 bra L; mad.wide.u32 %l2, %r20, 16, %out; st.global.v4.f32 [%l2], {{%f1, %f2, %f3, %f4}};"""


@dataclass(frozen=True)
class Case:
  """A kernel, and how it is launched. `data`: bytes at IN."""
  body: str
  more: str = ""
  grid: int = 2
  block: tuple[int, int, int] = (80, 1, 1)
  cluster: int = 0
  tries: int = 0  # how often it is asked in all whether compiled code can take a cohort over; 0: as often as it may be
  data: bytes = numbers(random.Random(5), 1024)


S = ".shared .align 8 .b8 s[512];\n"
# no loop, only barriers, as in an unrolled product: behind each of them compiled code can go on
LINE = f"""{INDEX} {LOAD} mov.u32 %r9, s; mad.lo.u32 %r9, %t, 4, %r9; xor.b32 %r11, %t, 32; mov.u32 %r13, s;
  mad.lo.u32 %r13, %r11, 4, %r13; mov.u32 %r12, %r2; """ + "".join(
    f"st.shared.u32 [%r9], %r12; bar.sync {k % 3}; ld.shared.u32 %r10, [%r13]; mad.lo.u32 %r12, %r10, {k + 3}, %r1; "
    f"bar.sync 0; " for k in range(24)) + "mad.wide.u32 %l2, %r20, 4, %out; st.global.u32 [%l2], %r12;"
CASES = {
  "types": Case(TYPES, tries=304), "types of a warp": Case(TYPES, grid=3, block=(32, 1, 1), tries=304),
  "types in planes": Case(TYPES, block=(20, 3, 1), tries=304),
  "barriers without votes": Case(VOTE.sub("bar.sync 1;", BARRIERS), S, tries=3912),
  "barriers": Case(BARRIERS, S, block=(96, 1, 1)), "barriers in a line": Case(LINE, S, block=(64, 1, 1), tries=105),
  "parties": Case(PARTIES, S, block=(32, 6, 1), tries=132),
  "mbarriers": Case(TURNS.replace("50; @%p4", "6; @%p4"), S, block=(64, 1, 1), tries=233),
  "clusters": Case(CLUSTERS, S, grid=4, block=(64, 1, 1), cluster=2, tries=1653),
  "barriers apart": Case(HALVES, grid=2, block=(64, 1, 1)),
  "clusters apart": Case(APART, grid=4, block=(48, 1, 1), cluster=2),
  "calls": Case(CALLS, RECURSIVE + DEEP.replace("INNER", LOOPING)), "meeting": Case(MEETING, MEET, grid=1),
  "stack": Case(ROOM), "stack of all": Case(SAVED),
  "products": Case(PRODUCTS, S.replace("8 .b8 s[512]", "1024 .b8 s[2048]"), block=(128, 1, 1))}


class Launches:
  """A case, ready to be launched again and again."""

  def __init__(self, case: Case) -> None:
    self.case, text = case, text_of(case.body, case.more)
    if case.cluster: text = text.replace("out) {", f"out) .reqnctapercluster {case.cluster} {{", 1)
    linked = link(parse(text))
    self.space = AddressSpace("handover")
    params = IN.to_bytes(8, "little") + OUT.to_bytes(8, "little")
    for at, content in ((IN, case.data), (OUT, bytes(SIZE)), (0x3_0000_0000, params)):
      region = Region("data", -(-max(len(content), 1) // 4096) * 4096)
      self.space.map(at, region.size, region)
      self.space.write(at, content)
    self.dispatch = Dispatch(Program(linked, "k", 0x4_0000_0000), (case.grid, 1, 1), case.block, 0x3_0000_0000, 16)

  def run(self, blocks: int, ticks: int, watchdog: int = 1_000_000) -> tuple[bytes, Stats]:
    """What is left, when the reference has run `blocks` blocks of instructions, and compiled code `ticks` turns before
    the reference has to go on; 0 of either: it does all that is left, None: nothing."""
    self.space.write(OUT, bytes(SIZE))
    turns = itertools.count(1)

    def tick() -> None:
      if ticks and next(turns) == ticks: raise MachineFault("of the test")
    grid = Grid(self.space, self.dispatch, watchdog, Stats())
    schedule = Schedule(grid)
    with np.errstate(all="ignore"):
      if blocks < ALL: grid.usual = grid.shared.clustered
      for k in range(min(blocks, 2)):  # two cohorts, of which the second gets on less
        if k and not grid.left: break
        cohort = schedule.begin()
        for _ in range(blocks // (k + 1)):
          if cohort.run(1):
            schedule.running.remove(cohort)
            break
    if blocks < ALL:
      grid.dispatch = replace(self.dispatch, tick=tick)
      found = ptx_compiled.compiled(grid)
      assert found is not None, grid.stats.interpreted
      ended(run.CompiledLaunch(grid, found).turns(schedule.running))
    return self.space.read(OUT, SIZE), grid.stats


ALL = 1 << 20
BY_ITSELF = {"meeting", "barriers apart", "clusters apart"}  # the reference goes on without being asked


@pytest.mark.parametrize("name", CASES)
def test_threads_change_engines_at_any_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """From the reference after some of its blocks, and back after some turns, which are short here."""
  launches, rng = Launches(CASES[name]), random.Random(seed(3))
  wanted, of = launches.run(ALL, 0)
  assert any(wanted)
  back = [(0, t, n) for t in (1, 2, 3, 4, 5, 7, 9, 12) for n in (5, 11, 25, 60)]
  rounds = [(b, t, n) for b in range(1, 100) for t in (0, 1, 3, 9) for n in (1, 40, 200)]
  rounds = [*back, *rng.sample(rounds, 200)] if THOROUGH else [
    (0, 0, 25), *rng.sample(back, 16 if CASES[name].tries else 4), *rng.sample(rounds, 4 if CASES[name].tries else 1),
    *((b, 0, 40) for b in range(1, 36 if CASES[name].tries else 3))]
  tried: list[bool] = []
  asked = 0
  take = run.Cohort.take

  def logged(cohort: run.Cohort, blocks: Blocks) -> bool:
    tried.append(take(cohort, blocks))
    return tried[-1]
  monkeypatch.setattr(run.Cohort, "take", logged)
  for blocks, ticks, turn in rounds:
    tried.clear()
    monkeypatch.setattr(run, "FIRST", turn)
    monkeypatch.setattr(run, "TURN", turn)
    if name in BY_ITSELF: ticks = 0
    found, stats = launches.run(blocks, ticks)
    at = np.flatnonzero(np.frombuffer(found, np.uint8) != np.frombuffer(wanted, np.uint8))
    assert not at.size, (blocks, ticks, turn, at[:9])
    assert stats.waves == of.waves
    # who polls does so as often as it has turns, and who waits comes to its barrier again
    if name not in {"mbarriers", "products"}:
      assert abs(stats.instructions - of.instructions) <= 2 * of.waves
    if blocks < 36 and not ticks: asked += len(tried)
    if not ticks and name not in BY_ITSELF: assert not stats.interpreted
  if (tries := CASES[name].tries) and not THOROUGH: assert asked <= tries


@pytest.mark.parametrize("name", ["types", "clusters", "calls", "stack", "stack of all"])
def test_registers_that_stay_in_a_warp_s_state(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """As kernels with very many have them: threads change engines there too."""
  key = code._key
  monkeypatch.setattr(emit, "CROWDED", 0)
  monkeypatch.setattr(code, "_key", lambda *of: "crowded" + key(*of))
  launches = Launches(CASES[name])
  wanted, _ = launches.run(ALL, 0)
  for blocks, ticks, turn in ((0, 0, 11), (0, 3, 25), (3, 0, 40), (9, 2, 11)):
    monkeypatch.setattr(run, "FIRST", turn)
    monkeypatch.setattr(run, "TURN", turn)
    found, stats = launches.run(blocks, ticks)
    assert found == wanted, (blocks, ticks, turn)
    assert ticks or not stats.interpreted


@pytest.mark.parametrize("blocks", [0, 30])
def test_what_a_warp_has_executed_goes_with_it(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """To compiled code, and back: the watchdog counts all of it."""
  monkeypatch.setattr(run, "FIRST", 40)
  monkeypatch.setattr(run, "TURN", 40)
  launches = Launches(Case("""mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 60; @%p1 bra L;
    mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r1;"""))
  for ticks in (0, 3):
    assert launches.run(blocks, ticks, 200)[1].instructions == launches.run(ALL, 0)[1].instructions
    with pytest.raises(WatchdogExpired): launches.run(blocks, ticks, 170)


class Limited(Launches):
  """Of which a chip holds few blocks at once."""

  def end(self, how: str, places: int, watchdog: int = 5_000_000) -> tuple[bytes, Stats]:
    self.space.write(OUT, bytes(SIZE))
    grid = Grid(self.space, self.dispatch, watchdog, Stats())
    grid.places, grid.usual = places, min(places, grid.usual)
    ended(turns(grid, how))
    return self.space.read(OUT, SIZE), grid.stats


WAITS = """mov.u32 %r1, %ctaid.x; mad.wide.u32 %l1, %r1, 4, %out; setp.eq.u32 %p1, %r1, LAST; @%p1 bra GO;
  WAIT: ld.volatile.global.u32 %r3, [%l1+OTHER]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;
  GO: add.u32 %r2, %r1, 1; st.volatile.global.u32 [%l1], %r2;"""


@pytest.mark.parametrize("how", ["ref", "jit"])
def test_blocks_that_are_not_resident_do_not_run(how: str) -> None:
  """Who waits for an earlier block goes on; who waits for one that has no place yet never does."""
  earlier = Limited(Case(WAITS.replace("LAST", "0").replace("OTHER", "-4"), grid=8, block=(32, 1, 1)))
  found, stats = earlier.end(how, 2)
  assert np.frombuffer(found, np.uint32)[:9].tolist() == [*range(1, 9), 0] and not stats.interpreted
  later = Limited(Case(WAITS.replace("LAST", "7").replace("OTHER", "4"), grid=8, block=(32, 1, 1)))
  with pytest.raises(Deadlock, match=r"blocks 2 to 7 are not resident \(the chip holds 2\)"): later.end(how, 2)
  with pytest.raises(Deadlock, match=r"block 7 is not resident"): later.end(how, 7)
  assert np.frombuffer(later.end(how, 8)[0], np.uint32)[:9].tolist() == [*range(1, 9), 0]


@pytest.mark.left("bar.sync")
def test_a_kernel_that_often_leaves_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
  """From so many cohorts on the reference has the rest of the launch."""
  begun: list[int] = []
  begin = run.Cohort.__init__

  def counted(cohort: run.Cohort, launch: run.CompiledLaunch, first: int, count: int) -> None:
    begun.append(first)
    begin(cohort, launch, first, count)
  monkeypatch.setattr(run.Cohort, "__init__", counted)
  monkeypatch.setattr(run, "STATES", 1)
  monkeypatch.setattr(run, "FIRST", 30)
  monkeypatch.setattr(run, "TURN", 30)
  body = f"{INDEX} and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, BIT; @%p1 bra B; bar.sync 0; bra E; B: bar.sync 0; " \
         "E: mad.wide.u32 %l1, %r20, 4, %out; st.global.u32 [%l1], %r20;"
  later = "mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 30; @%p2 bra L;"
  for wait, bit, cohorts, left in (("", 1, run.HANDED + 1, {"bar.sync": 15}), ("", 2, 12, {}), (later, 2, 12, {}),
                                   (later, 1, 12, {"bar.sync": 36})):
    begun.clear()
    found, stats = Limited(Case(wait + body.replace("BIT", str(bit)), grid=12)).end("jit", 100)
    assert np.frombuffer(found, np.uint32)[:961].tolist() == [*range(960), 0]
    assert begun == [*range(cohorts)] and stats.interpreted == left and stats.waves == 36


def test_memory_that_comes_meanwhile_is_seen() -> None:
  """Mappings that are made while a kernel runs are compiled code's from its next turn on."""
  case = Case("""W: ld.volatile.global.u64 %l1, [%out]; setp.eq.u64 %p1, %l1, 0; @%p1 bra W; ld.global.u32 %r1, [%l1];
    mad.wide.u32 %l2, %t, 4, %out; st.global.u32 [%l2+64], %r1;""", grid=1)
  launches, calls = Launches(case), itertools.count()

  def tick() -> None:
    if next(calls) != 1: return
    launches.space.map(0x7_0000_0000, 4096, Region("new", 4096))
    launches.space.write(0x7_0000_0000, bytes([5, 0, 0, 1]))
    launches.space.write(OUT, (0x7_0000_0000).to_bytes(8, "little"))
  grid = Grid(launches.space, replace(launches.dispatch, tick=tick), 10_000_000, Stats())
  ended(turns(grid, "jit"))
  assert launches.space.read(OUT + 64, 320) == bytes([5, 0, 0, 1]) * 80 and not grid.stats.interpreted


def test_members_of_vectors_that_agree_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
  """Threads of a part of a warp that name their members by a register of their own, as cooperative groups do."""
  text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k (.param .u64 out) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %l<3>;
  ld.param.u64 %l1, [out];
  mov.u32 %r1, %tid.x; mad.wide.u32 %l1, %r1, 4, %l1;
  setp.lt.u32 %p1, %r1, 16;
  shl.b32 %r2, 65535, 0; @!%p1 shl.b32 %r2, %r2, 16;
  @%p1 bra LOW;
  shfl.sync.bfly.b32 %r3, %r1, 5, 31, %r2;
  bra STORE;
LOW:
  shfl.sync.down.b32 %r3, %r1, 3, 31, %r2;
STORE:
  st.global.u32 [%l1], %r3;
  ret;
}"""
  program = Program(link(parse(text)), "k", 0x40000)
  assert not code.written(program, (32, 1, 1))[0]["helped"]
  for way in ("ref", "jit"):
    monkeypatch.setenv("EMU", way)
    out, = tinyhw.launch(text, "k", 1, 32, [np.zeros(32, np.uint32)], "EMU")
    assert out.tolist() == [k + 3 for k in range(16)] + [k ^ 5 for k in range(16, 32)]


def test_what_costs_the_reference_much_counts_as_such() -> None:
  """A loop of few instructions, each of which is evaluated by fractions: it is compiled long before it ends."""
  text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k (.param .u64 out) {
  .reg .pred %p<2>; .reg .b32 %r<3>; .reg .f64 %d<3>; .reg .b64 %l<3>;
  ld.param.u64 %l1, [out];
  mov.u32 %r1, 0; mov.f64 %d1, 0d3FF0000000000000;
LOOP:
  add.rm.f64 %d1, %d1, 0d3FB999999999999A;
  add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 500;
  @%p1 bra LOOP;
  st.global.f64 [%l1], %d1;
  ret;
}"""
  space = AddressSpace("weights")
  space.map(OUT, 4096, Region("out", 4096))
  space.map(IN, 4096, Region("params", 4096))
  space.write(IN, OUT.to_bytes(8, "little"))
  program = Program(link(parse(text)), "k", 0x4_0000_0000)
  assert dispatch(space, Dispatch(program, (1, 1, 1), (32, 1, 1), IN, 8), engine="auto").engine == "jit"
  wanted = Fraction(1)
  for _ in range(500): wanted = below(wanted + Fraction(0.1))
  assert space.read(OUT, 8) == np.float64(wanted).tobytes()


def below(x: Fraction) -> Fraction:
  """The greatest f64 that is not above a number."""
  near = float(x)
  return Fraction(near if Fraction(near) <= x else float(np.nextafter(near, -np.inf)))


def test_the_base_of_steps_may_be_before_the_first_byte() -> None:
  """The last threads of a block fill a halo: where the first ones would be, there is no shared memory."""
  text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k (.param .u64 out) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %l<3>; .shared .align 8 .b8 tile[264];
  ld.param.u64 %l1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %l1, %r1, 4, %l1;
  shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;
  st.shared.u32 [%r2+8], %r1;
  setp.lt.u32 %p1, %r1, 62;
  @%p1 bra DONE;
  add.u32 %r4, %r1, 100; sub.u32 %r5, %r2, 248; st.shared.u32 [%r5], %r4;
DONE:
  bar.sync 0; ld.shared.u32 %r6, [%r2]; st.global.u32 [%l1], %r6; ret;
}"""
  space = AddressSpace("halo")
  space.map(OUT, 4096, Region("out", 4096))
  space.map(IN, 4096, Region("params", 4096))
  space.write(IN, OUT.to_bytes(8, "little"))
  program = Program(link(parse(text)), "k", 0x4_0000_0000)
  stats = dispatch(space, Dispatch(program, (1, 1, 1), (64, 1, 1), IN, 8), engine="jit")
  assert stats.engine == "jit" and not stats.interpreted
  assert np.frombuffer(space.read(OUT, 256), np.uint32).tolist() == [162, 163, *range(62)]
