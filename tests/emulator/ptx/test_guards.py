"""Everything that ends a block, under every sort of guard: of all threads, of whole warps, of some; on both engines."""
from __future__ import annotations

import random
import struct

import pytest

from tests.emulator.jit.ptx.test_bulk import alike
from tests.emulator.jit.ptx.test_jit import both, kernel, numbers
from tests.strength import THOROUGH

# %p1 is true and %p2 false for all, which the compiler cannot know; %p3: of the first warp; %p4: of some threads
FLAGS = """ld.global.v2.u32 {%r8, %r9}, [%in]; setp.eq.u32 %p1, %r8, 1; setp.eq.u32 %p2, %r9, 1;
  setp.lt.u32 %p3, %t, 32; and.b32 %r10, %t, 5; setp.eq.u32 %p4, %r10, 4; mad.lo.u32 %r1, %t, 77, 5; mov.u32 %r2, 0;"""
FUNCTIONS = """.func (.reg .b32 back) f (.reg .b32 x, .reg .b32 flag) { .reg .pred %q; setp.ne.u32 %q, flag, 0;
  mad.lo.u32 back, x, 3, 1; @%q ret; mad.lo.u32 back, back, 5, x; ret; }
.func (.param .b32 back) g (.param .b32 x) { .reg .b32 %x; ld.param.b32 %x, [x]; mad.lo.u32 %x, %x, 7, 9;
  st.param.b32 [back], %x; ret; }
.func (.param .b32 back) h (.param .b32 x) { .reg .b32 %x; .reg .pred %q; ld.param.b32 %x, [x]; and.b32 %x, %x, 0xFFF;
  st.param.b32 [back], %x; setp.gt.u32 %q, %x, 99; @!%q ret; add.u32 %x, %x, 1; st.param.b32 [back], %x; }
.global .align 8 .u64 table[2] = {g, h};
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.shared .align 8 .b64 bar; .shared .align 4 .b8 s[512];
"""
STORE = "mad.wide.u32 %l1, %t, 8, %out; st.global.v2.u32 [%l1], {%r1, %r2};"
DATA = struct.pack("<II", 1, 0) + numbers(random.Random(1), 400)
PROTO = "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; N: .callprototype (.param .b32 _) _ (.param .b32 _);"


def goes(guard: str, k: int) -> str:
  """Branches, calls and returns."""
  at = f"_{k}"
  return f"""xor.b32 %r2, %r2, {k + 3}; {guard} bra A{at}; add.u32 %r1, %r1, 3; A{at}: mad.lo.u32 %r1, %r1, 5, 1;
    mov.u32 %r3, 0;
  {guard} mov.u32 %r3, 1; call (%r1), f, (%r1, %r3); call (%r1), f, (%r1, %r8); call (%r1), f, (%r1, %r9);
  {guard} call (%r1), f, (%r1, %r9);
  {{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; {guard} call (y), g, (x); {guard} ld.param.b32 %r1, [y]; }}
  mov.u64 %l2, table; {guard} add.u64 %l2, %l2, 8; ld.global.u64 %l3, [%l2];
  {PROTO.replace("N:", f"N{at}:")} call (y), %l3, (x), N{at}; ld.param.b32 %r1, [y]; }}
  {PROTO.replace("N:", f"M{at}:")} add.u32 %r2, %r2, 9; {guard} call (y), %l3, (x), M{at};
    {guard} ld.param.b32 %r1, [y]; }}
  add.u32 %r1, %r1, 11; add.u32 %r2, %r2, %r10;
  T{at}: .branchtargets B{at}, C{at}; brx.idx %r3, T{at}; B{at}: add.u32 %r2, %r2, 1;
  C{at}: mad.lo.u32 %r2, %r2, 3, %r1; add.u32 %r1, %r1, 13;
  {guard if guard[-1:] in "12" else ""} nanosleep.u32 1;"""


@pytest.mark.parametrize("guards", [["", "@%p1", "@!%p1"], ["@%p2", "@%p3"], ["@!%p3", "@%p4"]], ids=str)
@pytest.mark.parametrize("parted", [False, True])
def test_ways_that_threads_go(guards: list[str], parted: bool) -> None:
  """The last ones end the threads: of no warp, of some threads, of those of one warp, of all."""
  lines = " ".join(goes(guard, k) for k, guard in enumerate(guards))
  if parted: lines = f"setp.gt.u32 %p5, %t, 40; @%p5 bra ELSE; {lines} bra END; ELSE: mov.u32 %r2, 8; END:"
  ends = " ".join(f"{guard} exit; {STORE.replace('[%l1]', f'[%l1+{1024 * k}]')}"
                  for k, guard in enumerate(["@%p2", "@!%p1", "@%p4", "@%p3", "@%p1"]))
  never = """@%p2 trap; @%p2 brkpt; { .param .b64 x; .param .b64 y; .param .b32 z; st.param.b64 [x], %in;
    st.param.b64 [y], %in; @%p2 call (z), vprintf, (x, y); }"""
  found, stats = both(kernel(f"{FLAGS} {lines} {never} {ends}", FUNCTIONS), DATA)
  assert not stats.interpreted and not stats.helped
  assert found[1024 * 3:1024 * 3 + 640].any() and not found[1024 * 4:].any()


# What threads do together: %r5 is theirs, %p6 a vote
MEETINGS = [
  "bar.sync 1;", "bar.sync %r9;", "bar.sync 2, 96;", "barrier.sync 3;", "bar.arrive 4, 128; @%p2 bar.sync 4, 128;",
  "bar.red.popc.u32 %r1, 5, %p6;", "bar.red.and.pred %p7, 6, %p6;", "bar.red.or.pred %p7, 7, 96, %p6;",
  "bar.warp.sync -1;", "shfl.sync.bfly.b32 %r1, %r5, 3, 31, -1;", "shfl.sync.idx.b32 %r1|%p7, %r5, %r10, 31, -1;",
  "vote.sync.ballot.b32 %r1, %p6, -1;", "vote.sync.all.pred %p7, %p6, -1;", "match.any.sync.b32 %r1, %r10, -1;",
  "match.all.sync.b32 %r1|%p7, %r10, -1;", "redux.sync.max.s32 %r1, %r5, -1;", "elect.sync %r1|%p7, -1;",
  "mbarrier.test_wait.shared.b64 %p7, [bar], %l4;", "mbarrier.try_wait.parity.shared.b64 %p7, [bar], 1;",
  "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r5;", "activemask.b32 %r1;"]
BEGIN = FLAGS + """setp.eq.u32 %p5, %t, 0; @%p5 mbarrier.init.shared.b64 [bar], 1; bar.sync 15;
  @%p5 mbarrier.arrive.shared.b64 %l4, [bar]; mov.u64 %l4, 0; bar.sync 15; mad.wide.u32 %l5, %t, 4, %in;
  ld.global.u32 %r5, [%l5+8]; and.b32 %r6, %r5, 1; setp.eq.u32 %p6, %r6, 1; setp.ne.u32 %p7, %r8, %r8;"""
AFTER = "mad.lo.u32 %r2, %r2, 5, %r1; @%p7 add.u32 %r2, %r2, 1; mov.u32 %r1, 0; setp.ne.u32 %p7, %r8, %r8;"


@pytest.mark.parametrize("guard", ["", "@%p1", "@%p2", "@%p3"])
def test_what_threads_do_together(guard: str) -> None:
  """All threads of a warp, or none: compiled code's alone."""
  lines = " ".join(f"{guard} {m.replace('; @%p2', f'; {chr(64)}%p2')} {AFTER}" for m in MEETINGS
                   if guard != "@%p3" or not m.startswith("bar") or "warp" in m)
  _, stats = both(kernel(f"{BEGIN} {lines} {STORE}", FUNCTIONS), DATA, block=96)
  assert not stats.interpreted and not stats.helped


@pytest.mark.left("bar", "elect", "match", "mbarrier", "movmatrix", "redux", "shfl", "vote")
@pytest.mark.parametrize("part", range(4))
def test_what_some_threads_do_together(part: int) -> None:
  """Those whose guard is true: what others of the warp have to come for is a fault, of both engines the same."""
  for k, m in enumerate(MEETINGS[part::4]):
    members = m.replace("-1;", "0x50505050;")
    if members == m or k % 2 or THOROUGH:
      alike(kernel(f"{BEGIN} @%p4 {m.partition(' @')[0]} {AFTER} {STORE}", FUNCTIONS), DATA, block=96)
    if members != m and (not k % 2 or THOROUGH):
      alike(kernel(f"{BEGIN} @%p4 {members} {AFTER} {STORE}", FUNCTIONS), DATA, block=64)
