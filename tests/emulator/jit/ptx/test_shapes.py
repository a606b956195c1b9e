"""What compiled code knows of a register before it runs: one value for all threads, steps from a base, or neither."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.emulator.jit.ptx.test_jit import kernel
from tests.strength import THOROUGH
from tinyhw.emulator.jit.ptx.module.inline import JitCode
from tinyhw.emulator.jit.ptx.module.shapes import Plan
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.module.scope import Register
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

LANES = np.arange(32)


def plan(body: str, block: tuple[int, int, int] = (96, 1, 1), clustered: bool = False, more: str = "") -> Plan:
  program = Program(link(parse(kernel(body, more))), "k", 0x40000)
  return Plan(JitCode(program, "k"), block, clustered=clustered)


def shape(of: Plan, name: str) -> Any:
  found = of.code.flat.scope.find(name)
  assert isinstance(found, Register)
  return of.shapes[found.number]


def steps(of: Plan, name: str) -> list[int] | None:
  """The steps from thread to thread, or None for a vector."""
  found = shape(of, name)
  return None if found is None or found.steps is None else list(found.steps)


BEGIN = """.local .align 8 .b8 mine[8]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, 5;
  mov.u32 %r4, %lanemask_lt; mul.wide.u32 %l1, %r2, 8; mul.wide.u32 %l2, %r1, 4; cvt.u16.u32 %h1, %r1; mov.u16 %h2, 7;
  mov.u64 %l3, 9; setp.eq.u32 %p1, %r2, 3; setp.eq.u32 %p2, %r1, 3; mov.u32 %r5, 0; ld.global.u32 %r6, [%in];
  cvt.rn.f32.u32 %f1, %r2; sub.u32 %r7, %r2, %r1; mul.lo.u32 %r8, %r1, 3;"""
U, V = 0, None  # one for all; a vector; else a number: the step
RESULTS: list[tuple[str, str, Any]] = [
  ("mov.u32 %r9, %r1;", "%r9", 1), ("mov.u32 %r9, %r2;", "%r9", U), ("mov.u32 %r9, %r4;", "%r9", V),
  ("mov.u32 %r9, %laneid;", "%r9", 1), ("mov.u32 %r9, %warpid;", "%r9", U), ("mov.u32 %r9, mine;", "%r9", U),
  ("add.u32 %r9, %r1, %r2;", "%r9", 1), ("add.u32 %r9, %r1, %r1;", "%r9", 2), ("add.u32 %r9, %r1, %r4;", "%r9", V),
  ("add.u32 %r9, %r2, %r3;", "%r9", U), ("add.s32 %r9, %r7, %r1;", "%r9", U), ("add.u32 %r9, %r7, -9;", "%r9", -1),
  ("sub.u32 %r9, %r2, %r1;", "%r9", -1), ("sub.u32 %r9, %r1, %r2;", "%r9", 1), ("sub.u32 %r9, %r8, %r1;", "%r9", 2),
  ("mul.lo.u32 %r9, %r1, %r3;", "%r9", 5), ("mul.lo.s32 %r9, %r3, %r1;", "%r9", 5),
  ("mul.lo.u32 %r9, %r1, %r2;", "%r9", V),
  ("mul.lo.u32 %r9, %r1, 0;", "%r9", U), ("mul.lo.s32 %r9, %r1, -3;", "%r9", -3),
  ("mul.lo.u32 %r9, %r8, 7;", "%r9", 21),
  ("mul.hi.u32 %r9, %r1, 5;", "%r9", V), ("mul24.lo.u32 %r9, %r1, 5;", "%r9", V), ("mul.hi.u32 %r9, %r2, 5;", "%r9", U),
  ("mad.lo.u32 %r9, %r1, 5, %r1;", "%r9", 6), ("mad.lo.u32 %r9, 5, %r1, %r2;", "%r9", 5),
  ("mad.lo.u32 %r9, %r2, 5, %r1;", "%r9", 1), ("mad.lo.u32 %r9, %r1, 5, %r4;", "%r9", V),
  ("mad.lo.u32 %r9, %r1, %r1, %r1;", "%r9", V), ("mad24.lo.u32 %r9, %r1, 5, %r1;", "%r9", V),
  ("mad.wide.u32 %l9, %r1, 4, %l1;", "%l9", 4), ("mad.wide.u32 %l9, %r1, 4, %l2;", "%l9", 8),
  ("mul.wide.s32 %l9, %r1, -3;", "%l9", -3), ("mul.wide.u32 %l9, %r1, -1;", "%l9", 0xFFFFFFFF),
  ("mul.wide.u16 %r9, %h1, %h2;", "%r9", 7), ("mul.wide.u32 %l9, %r7, 2;", "%l9", -2),
  ("shl.b32 %r9, %r1, 3;", "%r9", 8), ("shl.b32 %r9, %r1, 31;", "%r9", 1 << 31), ("shl.b32 %r9, %r1, 32;", "%r9", V),
  ("shl.b32 %r9, %r1, %r3;", "%r9", 32), ("shl.b32 %r9, %r1, %r2;", "%r9", V), ("shl.b32 %r9, %r3, %r1;", "%r9", V),
  ("shl.b64 %l9, %l2, 4;", "%l9", 64), ("shr.u32 %r9, %r1, 1;", "%r9", V), ("shr.u32 %r9, %r2, 1;", "%r9", U),
  ("cvt.u64.u32 %l9, %r1;", "%l9", 1), ("cvt.s64.s32 %l9, %r7;", "%l9", -1), ("cvt.u32.u64 %r9, %l2;", "%r9", 4),
  ("cvt.u16.u32 %h9, %r8;", "%h9", 3), ("cvt.u32.u16 %r9, %h1;", "%r9", 1), ("cvt.rn.f32.u32 %f9, %r1;", "%f9", V),
  ("cvt.rn.f32.u32 %f9, %r2;", "%f9", U), ("cvt.sat.u16.u32 %h9, %r1;", "%h9", V),
  ("cvta.global.u64 %l9, %l2;", "%l9", 4),
  ("cvta.global.u64 %l9, %l1;", "%l9", U), ("mov.b64 %l9, {%r1, %r2};", "%l9", V),
  ("mov.b64 %l9, {%r3, %r2};", "%l9", U),
  ("add.cc.u32 %r9, %r1, %r2;", "%r9", V), ("addc.u32 %r9, %r2, %r2;", "%r9", V),
  ("add.sat.s32 %r9, %r1, %r2;", "%r9", V),
  ("add.f32 %f9, %f1, %f1;", "%f9", U), ("and.b32 %r9, %r1, 7;", "%r9", V), ("and.b32 %r9, %r2, 7;", "%r9", U),
  ("setp.lt.u32 %p9, %r1, 9;", "%p9", V), ("setp.lt.u32 %p9, %r2, 9;", "%p9", U),
  ("selp.u32 %r9, %r2, %r3, %p1;", "%r9", U),
  ("selp.u32 %r9, %r2, %r3, %p2;", "%r9", V), ("not.pred %p9, %p1;", "%p9", U), ("not.pred %p9, %p2;", "%p9", V),
  ("mov.u32 %r9, 1; @%p1 mov.u32 %r9, 2;", "%r9", U), ("mov.u32 %r9, 1; @%p2 mov.u32 %r9, 1;", "%r9", V),
  ("mov.u32 %r9, %r1; @%p1 add.u32 %r9, %r1, 7;", "%r9", 1), ("mov.u32 %r9, %r1; @%p1 add.u32 %r9, %r8, 7;", "%r9", V),
  ("ld.global.u32 %r9, [%in+8];", "%r9", U), ("ld.global.u32 %r9, [%l2];", "%r9", V),
  ("ld.param.u64 %l9, [in];", "%l9", U),
  ("ld.local.u32 %r9, [mine];", "%r9", V), ("ld.local.u32 %r9, [%r5];", "%r9", V),
  ("ld.shared.u32 %r9, [%r5];", "%r9", U),
  ("ld.u32 %r9, [%l1];", "%r9", U), ("ld.global.v2.u32 {%r9, %r10}, [%l1];", "%r10", U),
  ("vote.sync.ballot.b32 %r9, %p2, -1;", "%r9", U), ("redux.sync.add.u32 %r9, %r1, -1;", "%r9", U),
  ("redux.sync.add.u32 %r9, %r1, %r4;", "%r9", V), ("activemask.b32 %r9;", "%r9", U),
  ("shfl.sync.idx.b32 %r9, %r2, 0, 31, -1;", "%r9", V), ("match.any.sync.b32 %r9, %r2, -1;", "%r9", V),
  ("atom.global.add.u32 %r9, [%in], 1;", "%r9", V), ("mapa.shared::cluster.u32 %r9, %r5, %r3;", "%r9", U),
  ("mbarrier.test_wait.parity.shared.b64 %p9, [%r5], 1;", "%p9", U),
  ("mbarrier.try_wait.shared.b64 %p9, [%r5], %l1;", "%p9", U), ("mbarrier.arrive.shared.b64 %l9, [%r5];", "%l9", V),
  ("bfe.u32 %r9, %r2, 3, 5;", "%r9", U), ("lop3.b32 %r9, %r2, %r3, %r2, 0xE8;", "%r9", U)]


@pytest.mark.parametrize("k", range(0, len(RESULTS), 8))
def test_what_is_known_of_results(k: int) -> None:
  """Neither too little, which is slow, nor too much."""
  for text, name, step in RESULTS[k:k + 8]:
    found = steps(plan(f"{BEGIN} {text}"), name)
    bits = {"%l": 64, "%h": 16}.get(name[:2], 32)
    wanted = None if step is None else [int(x) - (int(x) >> bits - 1 << bits) for x in (step * LANES) % (1 << bits)] \
      if bits < 64 else [step * n for n in range(32)]
    assert found == wanted, (text, found)


def test_what_is_held_against_a_width() -> None:
  """Steps that are widened: which operand, as which type; none where nothing is widened, or where it was not exact."""
  for text, checks in (("cvt.u64.u32 %l9, %r1;", ((0, "u32"),)), ("cvt.s64.s32 %l9, %r1;", ((0, "s32"),)),
                       ("cvt.u32.u64 %r9, %l2;", ()), ("mad.wide.u32 %l9, %r1, 4, %l1;", ((0, "u32"),)),
                       ("mad.wide.s32 %l9, 4, %r1, %l1;", ((1, "s32"),)), ("mul.wide.u32 %l9, %r2, 4;", ()),
                       ("mad.wide.u32 %l9, %r2, 4, %l2;", ()), ("add.u32 %r9, %r1, 4;", ())):
    of = plan(f"{BEGIN} {text}")
    k = len(of.lines) - 2
    assert of.infos[k].checks == checks, text
    assert of.infos[k].stepped == bool(steps(of, text.split()[1].rstrip(",")) not in (None, [0] * 32)), text
    program = Program(link(parse(kernel(f"{BEGIN} {text}"))), "k", 0x40000)
    exact = Plan(JitCode(program, "k"), (96, 1, 1), frozenset({k}))
    if checks: assert steps(exact, text.split()[1].rstrip(",")) is None and not exact.infos[k].checks


def test_constants_are_known() -> None:
  of = plan(f"{BEGIN} mov.u32 %r9, %r3; mov.u32 %r10, 7; @%p1 mov.u32 %r10, 8; mov.u32 %r11, 3; @%p1 mov.u32 %r11, 3;")
  assert [shape(of, f"%r{n}").const for n in (3, 9, 10, 11, 2)] == [5, 5, None, 3, None]


WIDTHS = (1, 2, 3, 4, 5, 8, 16, 20, 31, 32, 33, 40, 64, 96, 256)
SOME = [b for b in itertools.product(WIDTHS, (1, 2, 3, 4, 5, 8, 33), (1, 2, 3, 8)) if b[0] * b[1] * b[2] <= 1024]


def test_indices_of_threads_in_blocks_of_every_form() -> None:
  """What each warp's threads have, when it is the same from warp to warp but for where it begins."""
  short = set()
  of = plan("")
  for block in SOME if not THOROUGH else [b for b in itertools.product(range(1, 67), range(1, 20), range(1, 10))
                                          if b[0] * b[1] * b[2] <= 1024]:
    x, y, z = block
    of.block, of.threads = block, x * y * z
    warps = -(-of.threads // 32)
    n = np.arange(warps * 32).reshape(warps, 32)
    there = n < of.threads
    for axis, index in enumerate((n % x, n // x % y, n // (x * y))):
      found = of.tid(axis).steps
      ways = {tuple((row - row[0])[: int(k)].tolist()) for row, k in zip(index, there.sum(axis=1))}
      longest = max(ways, key=len)
      regular = all(way == longest[:len(way)] for way in ways)
      if found is None:
        if regular: short.add((block, axis))
        continue
      assert regular and found[:len(longest)] == longest, (block, axis)
  assert THOROUGH or len(short) <= 95  # of blocks that are less than a warp, and odd ones
