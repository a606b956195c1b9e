"""Watched code lets no launch pass in which the reference's checks find something, with faults planted in kernels.

A barrier is dropped, an initialisation, a store to shared memory, a group of copies or its wait; an address in shared
memory is shifted by a dword. What the checks tell with `EMU=jit` is then what they tell with `EMU=ref`. The long form,
which takes each such place of each kernel of the corpus: THOROUGH=1 pytest tests/emulator/check/ptx/test_watched.py.
"""
from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.corpus.test_ptx import ROWS, files, prepared
from tests.emulator.check.ptx.test_check import MISTAKES, SHARED, parted
from tests.emulator.ptx.test_ptx import kernel
from tests.strength import THOROUGH, some
from tinyhw.cli.checked import binary
from tinyhw.core.errors import Error
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.jit.ptx.launch import detect as detector
from tinyhw.emulator.jit.ptx.memory import watched

LEFT_OUT = {
  "barrier": re.compile(r"^\s*bar\.sync[^;]*;", re.M),
  "initialisation": re.compile(r"^\s*mov\.[bufs]\d+\s+%\w+, (0f)?[-0-9A-Fx]+;", re.M),
  "store": re.compile(r"^\s*(@!?%p\d+ )?st\.shared[^;]*;", re.M),
  "group": re.compile(r"^\s*cp\.async\.(commit|wait)_group[^;]*;", re.M)}
DEVICE = re.compile(r"0x[0-9a-f]{9,}")
SHIFTED = re.compile(r"((?:ld|st)\.shared[^\[;]*\[[^\]+;]*)(\+\d+)?\]")


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
  """Whether watched code let a launch pass, how often."""
  seen: Counter[bool] = Counter()
  real = detector.detect

  def detect(*arguments: Any) -> Any:
    found = real(*arguments)
    seen[found is not None] += 1
    return found
  monkeypatch.setattr(detector, "detect", detect)
  return seen


def planted(source: str) -> Iterator[tuple[str, str]]:
  """(what is wrong, the code with it)."""
  for what, pattern in LEFT_OUT.items():
    for m in pattern.finditer(source):
      yield f"no {what} at {source.count(chr(10), 0, m.start()) + 2}", source[:m.start()] + source[m.end():]
  for m in SHIFTED.finditer(source):
    shifted = f"{m[1]}+{int((m[2] or '+0')[1:]) + 4}]"
    yield f"shifted at {source.count(chr(10), 0, m.start()) + 1}", source[:m.start()] + shifted + source[m.end():]


def told(source: str, name: str, grid: Any, block: Any, args: Any, shared: int,
         monkeypatch: pytest.MonkeyPatch) -> list[str]:
  """What the checks tell of a launch, by the reference and with watched code; faults too."""
  out = []
  for engine in ("ref", "jit"):
    checker = Checker()
    own = [a.copy() if hasattr(a, "copy") else a for a in args]
    with monkeypatch.context() as patch, tinyhw.Device.observing(checker):
      patch.setenv("EMU", engine)
      try: tinyhw.launch(source.encode(), name, grid, block, own, "EMU", shared)
      except Error as error: text = f"{error}\n{checker.report}"
      else: text = str(checker.report)
    out.append(DEVICE.sub("<address>", text))  # arrays lie elsewhere in each launch
  return out


PARTS = [m for m in MISTAKES if THOROUGH or m[0] in {"a barrier in global memory", "an atomic", "one element",
                                                     "an initial value", "bar.warp.sync", "local memory"}]
KERNELS = ("softmax",)


@pytest.mark.parametrize("row", [r for r in ROWS if THOROUGH or r["file"] in {f"triton3.9.0-sm_80-{k}.ptx"
                                                                            for k in KERNELS}],
                         ids=lambda r: r["file"].removesuffix(".ptx"))
def test_planted_faults_are_told_the_same(row: dict[str, Any], passed: Counter[bool],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
  source = files()[row["file"]].decode()
  every = 1 if THOROUGH else 24
  cases = [("nothing", source), *(c for c in planted(source) if zlib.crc32(c[0].encode()) % every == 0)]
  wrong = []
  for what, text in cases:
    reference, found = told(text, row["kernel"], row["grid"], row["block"], prepared(row).args, row["shared"],
                            monkeypatch)
    if reference != found: wrong.append((what, reference, found))
  assert not wrong, wrong[:3]
  if not THOROUGH: assert passed[True], passed


@pytest.mark.parametrize("name", ["lds", "scratch"])
def test_faults_in_llvms_code_are_told_the_same(name: str, passed: Counter[bool],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
  source, x = binary(name, "sm_80").decode(), np.random.default_rng(0).random(256, np.float32)
  told_of = 0
  for what, text in [("nothing", source), *some([*planted(source)], 3)]:
    reference, found = told(text, name, 1, 256, [np.zeros(256, np.float32), x], 0, monkeypatch)
    assert reference == found, what
    told_of += bool(reference)
  assert passed[True] and (told_of or name == "scratch"), passed


@pytest.mark.parametrize(("what", "text", "found"), PARTS, ids=[m[0] for m in PARTS])
def test_what_is_left_out_is_told_the_same(what: str, text: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
  for body in parted(text):
    source = kernel("mov.u32 %s, s; mad.lo.u32 %r1, %t, 4, %s; xor.b32 %r2, %t, 32; mad.lo.u32 %r2, %r2, 4, %s;"
                    "setp.eq.u32 %p1, %t, 0;" + body, SHARED + ".local .align 4 .b8 v[16];")
    reference, watched = told(source, "k", 1, 64, [np.zeros(1024, np.uint32)], 0, monkeypatch)
    assert reference == watched


@pytest.mark.parametrize("broken", ["its translator", "its text"])
def test_a_mistake_of_ours_in_watched_code_is_told(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """The reference checks the launch, and its user hears whose mistake it is that it does so slowly."""
  def touched(g: Any, *_: object) -> None:
    if broken == "its translator": raise KeyError("planted")
    g.e.do("this is no LLVM")
  monkeypatch.setattr(watched, "touched", touched)
  monkeypatch.setenv("EMU", "jit")
  number = 1 + len(broken)  # a kernel that nothing was kept of
  source = kernel(f"mov.u32 %s, s; st.shared.u32 [%s], {number * 7919};", SHARED)
  with pytest.warns(RuntimeWarning, match="is checked by the interpreter.*(planted|expected instruction)"):
    tinyhw.launch(source.encode(), "k", 1, 1, [np.zeros(1024, np.uint32)], "EMU", check="report")


def pipelined(stages: int, left: int, barrier: str = "bar.sync 0;", commit: str = "cp.async.commit_group;",
              ahead: int = 0, wait: str = "") -> str:
  """A kernel that copies `stages` - 1 and `ahead` steps ahead, and reads what another warp has copied."""
  def copy(step: str) -> str:
    return f"""rem.u32 %r5, {step}, {stages}; mad.lo.u32 %r5, %r5, 256, %r1; mul.wide.u32 %l1, {step}, 256;
      add.u64 %l1, %l1, %o; setp.lt.u32 %p2, {step}, 6; selp.u32 %r6, 4, 0, %p2;
      @%p2 cp.async.ca.shared.global [%r5], [%l1], 4, %r6; {commit}"""
  steps = stages - 1 + ahead
  first = "".join(f"mov.u32 %r4, {k};" + copy("%r4") for k in range(steps))
  return kernel(f"""mov.u32 %s, s; mad.lo.u32 %r1, %t, 4, %s; xor.b32 %r2, %t, 32; mad.lo.u32 %r2, %r2, 4, %s;
    {first} mov.u32 %n, 0;
    L: {wait or f"cp.async.wait_group {left};"} {barrier} rem.u32 %r5, %n, {stages}; mad.lo.u32 %r5, %r5, 256, %r2;
    ld.shared.u32 %r7, [%r5]; add.u32 %r4, %n, {steps}; {copy("%r4")}
    add.u32 %n, %n, 1; setp.lt.u32 %p3, %n, 6; @%p3 bra L;""", SHARED)


def copied(text: str) -> str:
  """A kernel in which threads copy their element to [%r1], [%r1+1024]; %r2 is another warp's place."""
  for name, at in (("COPY", "%r1"), ("MORE", "%r1+1024")):
    text = text.replace(name, f"cp.async.ca.shared.global [{at}], [%o], 4;")
  return kernel("mov.u32 %s, s; mad.lo.u32 %r1, %t, 4, %s; xor.b32 %r2, %t, 32; mad.lo.u32 %r2, %r2, 4, %s;"
                "setp.lt.u32 %p2, %t, 32;" + text, SHARED)


PIPELINES = [  # what is wrong, the kernel
  ("", copied("COPY cp.async.commit_group; cp.async.wait_group 0; ld.shared.u32 %r3, [%r1];")),
  ("", copied("@!%p2 bra E; COPY cp.async.wait_all; E: bar.sync 0; @!%p2 ld.shared.u32 %r3, [%r2];")),
  ("no wait", copied("COPY cp.async.commit_group; ld.shared.u32 %r3, [%r1];")),
  ("no wait for the second", copied("COPY cp.async.wait_all; MORE bar.sync 0; ld.shared.u32 %r3, [%r1+1024];")),
  ("", pipelined(2, 0)), ("", pipelined(3, 1)), ("", pipelined(3, 1, wait="cp.async.wait_all;")),
  ("too few waited for", pipelined(2, 1)), ("too few waited for", pipelined(3, 2)),
  ("no wait", pipelined(3, 1, wait="mov.u32 %r7, 0;")), ("no barrier", pipelined(2, 0, barrier="")),
  ("the barrier before the wait", pipelined(3, 1, wait="bar.sync 0; cp.async.wait_group 1;", barrier="")),
  ("no group", pipelined(2, 0, commit="")), ("a stage too few", pipelined(3, 1, ahead=1))]


@pytest.mark.parametrize(("wrong", "source"), PIPELINES)
def test_copies_under_way(wrong: str, source: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """Right pipelines run in compiled code alone; whatever is left out of them is told as by the reference."""
  reference, found = told(source, "k", 2, 64, [np.arange(1024, dtype=np.uint32)], 0, monkeypatch)
  assert reference == found and bool(wrong) == bool(found)
  assert passed[not wrong] and not passed[bool(wrong)]


SAME = [  # what is right or wrong with stores of 64 threads to 32 places; whether watched code lets it pass
  ("each thread of a pair", "st.shared.u32 [%r3], %r4; bar.sync 0; ld.shared.u32 %r5, [%r3];", True),
  ("pairs of elements", "st.shared.v2.u32 [%r6], {%r4, %r4}; bar.sync 0; ld.shared.u32 %r5, [%r3];", True),
  ("one place", "st.shared.u32 [%s], 7; bar.sync 0; ld.shared.u32 %r5, [%s];", True),
  ("unlike bytes", "st.shared.u32 [%r3], %t;", False),
  ("no barrier before a read", "st.shared.u32 [%r3], %r4; ld.shared.u32 %r5, [%r3];", False),
  ("other bytes before by one", "@%p2 st.shared.u32 [%r3], 77; st.shared.u32 [%r3], %r4;", False),
  ("a read before by one", "@%p3 st.shared.u32 [%r3], %t; bar.sync 0; @%p2 ld.shared.u32 %r5, [%r3];"
                           "add.u32 %r4, %r4, 1; st.shared.u32 [%r3], %r4;", False),
  ("an atomic between", "@%p2 st.shared.u32 [%r3], 0; @%p2 red.shared.add.u32 [%r3], %r4;"
                        "@%p3 st.shared.u32 [%r3], %r4;", False),
  ("a read, where the other's store was the last",
   "@%p3 st.shared.u32 [%r3], %r4; @%p2 st.shared.u32 [%r3], %r4; @%p3 ld.shared.u32 %r5, [%r3];", False),
  ("a read by a whole warp", "st.shared.u32 [%s], 7; @%p3 ld.shared.u32 %r5, [%s];", False),
  ("unlike bytes of one instruction", "and.b32 %r5, %t, 1; shr.u32 %r4, %r4, 1; mad.lo.u32 %r7, %r4, 4, %s;"
   "@%p3 st.shared.u32 [%r7], 1; @%p2 st.shared.u32 [%r7], %r5;", False)]


@pytest.mark.parametrize(("what", "body", "lets"), SAME, ids=[s[0] for s in SAME])
def test_stores_of_the_same_bytes(what: str, body: str, lets: bool, passed: Counter[bool],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
  """Two warps store to the same places: right where nobody sees whose store it was."""
  source = kernel(f"""mov.u32 %s, s; and.b32 %r4, %t, 31; xor.b32 %r7, %r4, 5; mad.lo.u32 %r3, %r7, 4, %s;
    mad.lo.u32 %r6, %r7, 8, %s; setp.lt.u32 %p2, %t, 32; setp.ge.u32 %p3, %t, 32; {body}""", SHARED)
  reference, found = told(source, "k", 1, 64, [np.zeros(1024, np.uint32)], 0, monkeypatch)
  assert reference == found and passed[lets] and not passed[not lets]
  assert bool(reference) != lets, "a case that shows nothing"


@pytest.mark.parametrize(("what", "body", "lets"), SAME, ids=[s[0] for s in SAME])
def test_stores_of_the_same_bytes_to_global_memory(what: str, body: str, lets: bool, passed: Counter[bool],
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
  """As above: what is read is told by atomics and other stores too, for arrays that are read and written."""
  for a, b in (("shared", "global"), ("%r3]", "%l3]"), ("%r6]", "%l6]"), ("%r7]", "%l7]"), ("[%s]", "[%b]")):
    body = body.replace(a, b)
  body = body.replace("mad.lo.u32 %r7, %r4, 4, %s;", "mad.wide.u32 %l7, %r4, 4, %b;")
  source = kernel(f"""and.b32 %r4, %t, 31; xor.b32 %r7, %r4, 5; mad.wide.u32 %l3, %r7, 4, %b;
    mad.wide.u32 %l6, %r7, 8, %b; setp.lt.u32 %p2, %t, 32; setp.ge.u32 %p3, %t, 32; {body}""")
  reference, found = told(source, "k", 3, 64, [np.zeros(1024, np.uint32)], 0, monkeypatch)
  assert reference == found and passed[lets] and not passed[not lets]
  assert bool(reference) != lets, "a case that shows nothing"


CALLED = """
.func (.reg .b32 %sum) add(.reg .b64 %from, .reg .b32 %n) {
  .reg .b32 %x, %k; .reg .pred %q;
  mov.u32 %sum, 0; ZERO
  L: ld.u32 %x, [%from]; add.u32 %sum, %sum, %x; add.u64 %from, %from, 128; add.u32 %k, %k, 1;
  setp.lt.u32 %q, %k, %n; @%q bra L;
  ret;
}
.func (.param .b32 out) pair(.param .align 4 .b8 both[8]) {
  .reg .b32 %x, %y;
  ld.param.u32 %x, [both]; ld.param.u32 %y, [both+4]; add.u32 %x, %x, %y; RESULT
  ret;
}
"""
CALLS = [  # what is right or wrong with a call, the function's part, the kernel's; whether it is found
  ("a sum of shared memory", "", "st.shared.u32 [%r1], %t; bar.sync 0; SUM st.global.u32 [%o], %r5;", False),
  ("no barrier before", "", "st.shared.u32 [%r1], %t; SUM st.global.u32 [%o], %r5;", True),
  ("a sum of global memory", "", "st.global.u32 [%o], %t; bar.sync 0; FAR bar.sync 0; st.global.u32 [%o], %r5;", False),
  ("no barrier behind", "", "st.global.u32 [%o], %t; bar.sync 0; FAR st.global.u32 [%o], %r5;", True),
  ("a count that begins nowhere", "ZERO", "st.shared.u32 [%r1], %t; bar.sync 0; SUM st.global.u32 [%o], %r5;",
   True),
  ("both members", "", "st.param.u32 [given], %t; st.param.u32 [given+4], 3; PAIR st.global.u32 [%o], %r5;", False),
  ("one member", "", "st.param.u32 [given], %t; PAIR st.global.u32 [%o], %r5;", True),
  ("no result", "RESULT", "st.param.u32 [given], %t; st.param.u32 [given+4], 3; PAIR st.global.u32 [%o], %r5;", True),
  ("some call", "", "st.shared.u32 [%r1], %t; mov.u32 %r5, 1; bar.sync 0; @%p2 bra E; SUM E: st.global.u32 [%o], %r5;",
   False)]


@pytest.mark.parametrize(("what", "out", "body", "found"), CALLS, ids=[c[0] for c in CALLS])
def test_calls(what: str, out: str, body: str, found: bool, passed: Counter[bool],
               monkeypatch: pytest.MonkeyPatch) -> None:
  """Functions stand in the kernel's text: what they touch by generic addresses, and what they are given."""
  functions = CALLED
  for name, text in (("ZERO", "mov.u32 %k, 0;"), ("RESULT", "st.param.u32 [out], %x;")):
    functions = functions.replace(name, "" if out == name else text)
  for name, text in (("SUM", "cvt.u64.u32 %l1, %r2; cvta.shared.u64 %l1, %l1; call (%r5), add, (%l1, 1);"),
                     ("FAR", "call (%r5), add, (%b, 2);"),
                     ("PAIR", "call (result), pair, (given); ld.param.u32 %r5, [result];")):
    body = body.replace(name, text)
  source = kernel(f"""mov.u32 %s, s; mad.lo.u32 %r1, %t, 4, %s; xor.b32 %r2, %t, 32; mad.lo.u32 %r2, %r2, 4, %s;
    setp.lt.u32 %p2, %t, 32; {body}""", SHARED + ".param .align 4 .b8 given[8]; .param .b32 result;")
  source = source.replace(".visible .entry", functions + ".visible .entry", 1)
  reference, watched = told(source, "k", 2, 64, [np.zeros(1024, np.uint32)], 0, monkeypatch)
  assert reference == watched and bool(reference) == found
  assert passed[not found] and not passed[found]
