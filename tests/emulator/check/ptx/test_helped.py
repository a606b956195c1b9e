"""Instructions that the reference does for watched code: right kernels run there to their end, and what is found in
wrong ones is told as by the reference alone."""
from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.check.ptx.test_watched import passed, told
from tests.emulator.ptx import test_triton as tma
from tests.strength import THOROUGH

HEAD = """.version 9.0
.target sm_120a
.address_size 64
.visible .entry k (.param .u64 out, .param .u64 in) {
  .reg .pred %p<9>; .reg .b32 %r<40>, %t; .reg .f32 %f<20>; .reg .b64 %l<20>, %o; .reg .b128 %q;
  .shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar;
  ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; setp.eq.u32 %p1, %t, 0; mad.wide.u32 %o, %t, 4, %o; mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 4, %r1; mov.u32 %r3, bar;
"""
CLEARED = """st.shared.u32 [%r2], %t; bar.sync 0; @%p1 st.bulk.weak.shared::cta [%r1+8], 512, 0; bar.sync 1;
  ld.shared.u32 %r5, [%r2]; st.global.u32 [%o], %r5;"""
CANCELLED = """@%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
  @%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r3];
LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra LOOP; ld.shared.b128 %q, [s];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q; selp.u32 %r5, 1, 2, %p3; st.global.u32 [%o], %r5;"""
SCALED = """st.shared.u32 [%r2], %t; bar.sync 0; ld.shared.u32 %r5, [s+132]; mov.u32 %r6, %t; mov.u32 %r7, %r6;
  mov.u32 %r8, %r6; mov.u32 %r9, %r6; mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
  mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32 {%f1, %f2, %f3, %f4}, {%r6, %r7, %r8, %r9},
    {%r5, %r6}, {%f1, %f2, %f3, %f4}; st.global.f32 [%o], %f1;"""
CASES = [  # an instruction, a kernel with it, and what is left out of a wrong one
  ("st.bulk", CLEARED, "bar.sync 1;"), ("st.bulk behind others", CLEARED, "bar.sync 0;"),
  ("clusterlaunchcontrol", CANCELLED, "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra LOOP;"),
  ("mma", SCALED, "bar.sync 0;")]


@pytest.mark.parametrize(("body", "left_out"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_is_left_out(body: str, left_out: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  for text, right in ((body, True), (body.replace(left_out, ""), False)):
    reference, found = told(f"{HEAD}{text} ret; }}", "k", 3, 64, [np.zeros(64, np.uint32)] * 2, 0, monkeypatch)
    assert reference == found and (reference == "") == right
  assert passed == {True: 1, False: 1}


KEPT = """mov.u32 %r4, %reserved_smem_offset_1; mad.lo.u32 %r4, %t, 4, %r4; ld.shared.u32 %r5, [%r4+4];
  bar.sync 0; st.shared.u32 [%r4], %t; bar.sync 1; ld.shared.u32 %r6, [%r4+4]; add.u32 %r5, %r5, %r6;
  st.global.u32 [%o], %r5;"""


@pytest.mark.parametrize("left_out", ["", "bar.sync 0;", "bar.sync 1;", "cap"])
@pytest.mark.parametrize("shared", [0, 64])
def test_shared_memory_that_the_system_keeps(shared: int, left_out: str, passed: Counter[bool],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
  """What is there nobody has to have written, and it is no place behind an array; races are races there, too. What lies
  behind it is nobody's."""
  body = KEPT.replace(left_out, "") if left_out != "cap" else KEPT.replace("[%r4+4]", "[%r4+256]", 1)
  if left_out == "cap": body = body.replace("offset_1", "offset_end")
  reference, found = told(f"{HEAD}{body} ret; }}", "k", 3, 64, [np.zeros(64, np.uint32)] * 2, shared, monkeypatch)
  assert reference == found and bool(reference) == bool(left_out)
  assert passed == {not left_out: 1}


LOOKED_AT = """ld.param.u64 %l1, [in]; st.shared.u32 [%r2], %t; bar.sync 0; ld.shared.u32 %r6, [s+132];
  and.b32 %r5, %t, 7; mov.u32 %r7, 0;
LOOP: tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%l1, {%r5, %r7}]; add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 5;
  @%p2 bra LOOP; cvt.rn.f32.u32 %f2, %r6; add.f32 %f1, %f1, %f2; st.global.f32 [%o], %f1;"""


@pytest.mark.parametrize("left_out", ["", "bar.sync 0;"])
def test_textures(left_out: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  texture = tinyhw.Texture(np.arange(64, dtype=np.float32).reshape(8, 8))
  reference, found = told(f"{HEAD}{LOOKED_AT.replace(left_out, '')} ret; }}", "k", 9, 64,
                          [np.zeros(64, np.float32), texture], 0, monkeypatch)
  assert reference == found and bool(reference) == bool(left_out)
  assert passed == {not left_out: 1}


@pytest.mark.parametrize("left_out", ["", "bar.sync 0;"])
@pytest.mark.parametrize("asks", ["txq.width", "txq.height", "suq.width", "txq.channel_order", "txq.array_size"])
def test_questions(asks: str, left_out: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  texture = tinyhw.Texture(np.arange(64, dtype=np.float32).reshape(8, 8))
  body = f"""ld.param.u64 %l1, [in]; st.shared.u32 [%r2], %t; bar.sync 0; ld.shared.u32 %r6, [s+132];
    {asks}.b32 %r5, [%l1]; add.u32 %r6, %r6, %r5; st.global.u32 [%o], %r6;""".replace(left_out, "")
  reference, found = told(f"{HEAD}{body} ret; }}", "k", 9, 64, [np.zeros(64, np.uint32), texture], 0, monkeypatch)
  assert reference == found and bool(reference) == bool(left_out)
  assert passed == {not left_out: 1}


def test_a_question_about_what_is_written(passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """Compiled code has no cells for what an answer is read from: the reference runs what reads and writes an array."""
  texture = tinyhw.Texture(np.arange(64, dtype=np.float32).reshape(8, 8))
  body = """ld.param.u64 %l1, [in]; ld.global.u32 %r6, [%o]; txq.width.b32 %r5, [%l1]; add.u32 %r5, %r5, %r6;
    st.global.u32 [%o], %r5;"""
  reference, found = told(f"{HEAD}{body} ret; }}", "k", 1, 64, [np.zeros(64, np.uint32), texture], 0, monkeypatch)
  assert reference == found == "" and passed == {False: 1}


@pytest.mark.parametrize("written", [False, True])
def test_an_array_that_is_looked_at_and_written(written: bool, passed: Counter[bool],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
  """By its address, which the header has: others may have looked there before."""
  more = "ld.global.u64 %l2, [%l1+8]; @%p1 st.global.u32 [%l2+80], 7;" if written else ""
  texture = tinyhw.Texture(np.arange(64, dtype=np.float32).reshape(8, 8))
  reference, found = told(f"{HEAD}{LOOKED_AT} {more} ret; }}", "k", 1, 64, [np.zeros(64, np.float32), texture], 0,
                          monkeypatch)
  assert reference == found and bool(reference) == written
  assert passed == {not written: 1}


@pytest.mark.parametrize("name", [n for n in tma.CHOSEN if THOROUGH and "sm_1" in n])
def test_kernels_of_triton(name: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """With tcgen05, block scales and gathered rows: nothing is found, by compiled code alone."""
  real = tinyhw.launch

  def launch(*args: Any, **more: Any) -> Any:
    with monkeypatch.context() as patch:
      patch.setenv("EMU", "jit")
      done = real(*args, check="report", **more)
    assert list(done.findings or ()) == []
    return done
  monkeypatch.setattr(tinyhw, "launch", launch)
  monkeypatch.setattr(tma, "compiled_too", lambda _: None)
  tma.test_a_kernel(name, monkeypatch)
  assert passed[True] and not passed[False]


__all__ = ["passed"]
