"""PTX with code that control never comes to, on both engines: it changes nothing, and nothing is left to the reference.
And mistakes of the translator's own: the reference runs the kernel, and it is told."""
from __future__ import annotations

import random
import struct
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.jit.ptx.test_bulk import alike
from tests.emulator.jit.ptx.test_jit import both, kernel, numbers, run
from tests.strength import examples
from tinyhw.core.errors import MachineFault
from tinyhw.emulator.jit.ptx.module import blocks, code
from tinyhw.emulator.jit.ptx.module.code import kernel as compiled_kernel
from tinyhw.emulator.jit.refusal import OWN, TranslatorFailed, translating
from tinyhw.emulator.ptx.module import flow
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

FUNCTIONS = """.func (.reg .b32 back) f (.reg .b32 x) { .reg .pred %q; .reg .b32 %z; and.b32 %z, x, 1;
  setp.eq.u32 %q, %z, 1; mov.u32 back, 5; @%q bra END; add.u32 back, x, 9; bra END; @%q add.u32 back, %z, x; ret; END: }
.func never () { exit; }
.func again (.reg .b32 x) { .reg .b32 %z; LOOP: bra LOOP; add.u32 %z, x, x; ret; }
.shared .align 8 .b64 bar;
"""
DATA = struct.pack("<II", 1, 0) + numbers(random.Random(1), 400)
BEGIN = """mad.wide.u32 %l3, %t, 4, %in; ld.global.u32 %r1, [%l3+8]; mov.u32 %r2, 0; mov.u32 %r3, 7;
  cvt.rn.f32.u32 %f1, %t; mov.f32 %f2, 0f3F800000; setp.gt.u32 %p1, %r1, 99; ld.global.u32 %r4, [%in];"""
STORE = "mad.wide.u32 %l1, %t, 8, %out; st.global.v2.u32 [%l1], {%r1, %r2};"

# %p1, %f1 and %r1 are vectors, %r3 and %r4 all threads'; %p8 up, %r9 up, %f8 up and %l8 up nobody writes anywhere else
PLAIN = [
  "@%p9 add.f32 %f9, %f1, %f2;", "@%p9 mov.u32 %r9, %r1;", "add.f32 %f2, %f8, %f1;", "@!%p1 add.u32 %r2, %r2, %r9;",
  "setp.lt.u32 %p9, %r9, %r1;", "mov.u32 %r10, %t; @%p8 shl.b32 %r10, %r10, 2;", "cvt.u64.u32 %l8, %r10;",
  "mad.wide.u32 %l8, %r9, 4, %l9; @%p10 ld.global.u32 %r1, [%l8];", "selp.u32 %r10, %r1, %r9, %p9;",
  "add.cc.u32 %r9, %r1, %r1; addc.u32 %r10, %r9, 0;", "mov.u32 %r3, 8;"]
MEETING = ["shfl.sync.idx.b32 %r9, %r1, %r10, 31, -1;", "vote.sync.ballot.b32 %r9, %p9, -1;", "bar.sync %r9;",
           "bar.red.popc.u32 %r9, 0, %p9;", "call (%r9), f, (%r10);", "call never;", "call again, (%r9);",
           "@%p9 trap;", "nanosleep.u32 %r9;", "activemask.b32 %r10;", "redux.sync.max.s32 %r9, %r10, -1;",
           "mbarrier.test_wait.shared.b64 %p9, [bar], %l9;", "{ .reg .pred %p12; @%p12 bra A0; }"]
LIVE = ["add.u32 %r2, %r2, %r1;", "@%p1 mad.lo.u32 %r2, %r2, 3, %t;", "xor.b32 %r1, %r1, %r3;",
        "add.f32 %f1, %f1, %f2; mov.b32 %r5, %f1; add.u32 %r2, %r2, %r5;", "call (%r2), f, (%r2);"]
GOES = ["bra {};", "@%p1 bra {}; bra {};", "@%p9 bra {}; ret;", "T{n}: .branchtargets {}, {}; brx.idx %r9, T{n};",
        "@%p10 exit; bra {};", "ret;", "exit;", "trap;", "@%p9 call never; bra {};"]


@st.composite
def kernels(draw: Any) -> str:
  """Some pieces that run one after the other, some under a condition; behind each jump others that nothing comes to,
  which go on anywhere."""
  pieces = draw(st.integers(1, 4))
  islands = draw(st.integers(1, 4))
  labels = [f"A{k}" for k in range(pieces)] + [f"X{k}" for k in range(islands)] + ["END"]
  out, n = [], 0
  behind = [draw(st.integers(0, pieces - 1)) for _ in range(islands)]
  for k in range(pieces):
    body = draw(st.lists(st.sampled_from(LIVE), max_size=3))
    after = draw(st.sampled_from([f"bra {labels[k + 1] if k + 1 < pieces else 'END'};",
                                  f"@%p1 bra END; bra {labels[k + 1] if k + 1 < pieces else 'END'};"]))
    out.append(f"A{k}: {' '.join(body)} {after}")
    for x in [x for x in range(islands) if behind[x] == k]:
      body = draw(st.lists(st.sampled_from(PLAIN + MEETING), min_size=1, max_size=4))
      go = draw(st.sampled_from(GOES)).replace("{n}", str(n))
      go = go.format(*(draw(st.sampled_from(labels)) for _ in range(go.count("{}"))))
      out.append(f"X{x}: {' '.join(body)} {go}")
      n += 1
  return kernel(f"{BEGIN} {' '.join(out)} END: {STORE}", FUNCTIONS)


@settings(max_examples=examples(25))
@given(text=kernels(), block=st.sampled_from([32, 80]))
def test_code_that_nothing_comes_to(text: str, block: int) -> None:
  """Results are the same, in compiled code alone; of what cannot be reached no block is there."""
  stats = alike(text, DATA, block=block)
  assert stats is not None and not stats.interpreted and not stats.helped
  cut = Program(link(parse(text)), "k", 0x4_0000_0000).function("k").cut
  assert len(cut.starts) < len(cut.ends) and cut.position != [] and sorted(cut.order) == [*range(len(cut.order))]
  assert {*cut.starts} == flow.reached(0, cut.successors)


@pytest.mark.parametrize("line", [*PLAIN, *MEETING])
def test_each_instruction_there(line: str) -> None:
  """Behind a jump, behind a call that never comes back, and in a function."""
  for before in ("bra END;", "call never;", "@%p1 bra END; @!%p1 bra END;" if "A0" not in line else "bra END;"):
    text = kernel(f"{BEGIN} A0: {STORE} {before} {line} {line} END: {STORE}", FUNCTIONS)
    if before[0] == "@": alike(text, DATA, block=80)  # it cannot be known there
    else:
      _, stats = both(text, DATA, block=80)
      assert not stats.interpreted and not stats.helped


def test_bad_operands_there() -> None:
  """Nobody comes to what is wrong with them, so nobody says it."""
  _, stats = both(kernel(f"{BEGIN} {STORE} bra END; setp.lt.u32 %r1, %r2, %r3; END:",
                         FUNCTIONS), DATA)
  assert not stats.interpreted and not stats.helped


@pytest.mark.parametrize("ending", ["END: }", "END: ret; }"])
@pytest.mark.parametrize("call", ["call (%r1), f, (%r1);", "@%p1 call (%r1), f, (%r1);"])
@pytest.mark.parametrize("goes", ["@%q bra END;", "T: .branchtargets ON, END; brx.idx %k, T; ON:"])
def test_a_label_at_a_functions_end(ending: str, call: str, goes: str) -> None:
  """Threads that go there come back with the others, each with its own values."""
  function = f""".func (.reg .b32 back) f (.reg .b32 x) {{ .reg .pred %q, %s; .reg .b32 %z, %k; mov.u32 back, 5;
    and.b32 %z, x, 3; setp.eq.u32 %q, %z, 1; selp.u32 %k, 1, 0, %q; setp.eq.u32 %s, %z, 2; {goes}
    add.u32 back, back, x; @%s bra M; add.u32 back, back, 100; ret; M: add.u32 back, back, 1000; ret; {ending} """
  text = kernel(f"{BEGIN} mov.u32 %r1, %t; setp.gt.u32 %p1, %t, 3; {call} {STORE}", function)
  found, stats = both(text, DATA, block=32)
  assert not stats.interpreted and not stats.helped
  def back(t: int) -> int: return 5 if t % 4 == 1 else 1005 + t if t % 4 == 2 else 105 + t
  wanted = [t if t <= 3 and "@" in call else back(t) for t in range(32)]
  assert found[:256].view("<u4")[::2].tolist() == wanted


# ---- mistakes of our own

def _broken(*_: Any) -> Any: raise AttributeError("'NoneType' object has no attribute 'steps'")


@pytest.mark.left(OWN)
@pytest.mark.parametrize("how", ["jit", "auto"])
def test_a_mistake_of_the_translator(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """The reference runs the kernel; it is said whose mistake it is, once, and counted."""
  monkeypatch.setattr(blocks, "_step", _broken)
  monkeypatch.setattr(code, "kept", lambda *_: how == "auto")
  text = kernel(f"{BEGIN} add.u32 %r2, %r2, 77; {STORE}")
  with pytest.warns(RuntimeWarning, match=f"kernel k is interpreted, which is slow: {OWN}: AttributeError: 'NoneType'"):
    found, stats = run(text, "k", DATA, how, block=64)
  assert stats.engine == "ref" and found[4:256:8].tolist() == [77] * 32
  (why, count), = stats.interpreted.items()
  assert why.startswith(f"{OWN}: AttributeError: ") and "test_unreached.py, line" in why and count == 2


def test_it_is_no_refusal() -> None:
  """Tests of ours fail by it: the warning is an error there, and so is a kernel that should have been compiled."""
  with pytest.raises(TranslatorFailed, match=OWN) as failed, translating(): _broken()
  assert isinstance(failed.value.__cause__, AttributeError)
  with pytest.raises(MachineFault), translating(): raise MachineFault("the program's own")
  program = Program(link(parse(kernel("st.global.u32 [%out], 31339;"))), "k", 0x4_0000_0000)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(blocks, "_step", _broken)
    with pytest.raises(RuntimeWarning, match=OWN): compiled_kernel(program, (32, 1, 1))
    with warnings.catch_warnings(record=True):
      warnings.simplefilter("always")
      for _ in range(2):
        with pytest.raises(TranslatorFailed, match=OWN): compiled_kernel(program, (32, 1, 1))
