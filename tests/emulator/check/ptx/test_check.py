"""Checks of PTX: each kind of mistake, planted, and the kernel without it; nothing is found in compilers' kernels."""
from __future__ import annotations

import inspect
import json
import re
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tinyhw
from tests.corpus.test_ptx import ROWS, prepared
from tests.emulator.ptx import test_kernels as kernels
from tests.emulator.ptx import test_triton as tma
from tests.emulator.ptx.test_kernels import MODULES
from tests.emulator.ptx.test_ptx import kernel
from tests.emulator.tensor_memory import COLUMNS, LANES, once, text
from tests.strength import THOROUGH
from tinyhw import Device, Tensor
from tinyhw.cli import tinyhw as command
from tinyhw.core.errors import Error, HazardFound

SHARED = ".shared .align 128 .b8 s[4096]; .shared .align 8 .b64 bar; .reg .b32 %s, %n; .reg .f32 %w<16>;"


def findings(body: str, threads: int = 64, grid: int = 1, shared: int = 0, check: Any = "report", size: int = 0,
             registers: str = "") -> list[Any]:
  out = np.zeros(size or max(threads * grid, 1024), np.uint32)
  source = kernel("mov.u32 %s, s; mad.lo.u32 %r1, %t, 4, %s; xor.b32 %r2, %t, 32; mad.lo.u32 %r2, %r2, 4, %s;"
                  "setp.eq.u32 %p1, %t, 0;" + body, SHARED + registers)
  return list(tinyhw.launch(source, "k", grid, threads, [out], "EMU", shared, check=check).findings or ())


def kinds(body: str, **more: Any) -> set[str]: return {f.kind for f in findings(body, **more)}


COPY = "cp.async.ca.shared.global [%r1], [%o], 4; cp.async.commit_group;"
BULK = """@%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
          @%p1 mbarrier.arrive.expect_tx.shared.b64 %l1, [bar], 1024;
          @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%b], 1024, [bar];"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;"
WARP = "xor.b32 %r3, %t, 1; mad.lo.u32 %r3, %r3, 4, %s;"
MISTAKES = [  # what is wrong, the right code with the instruction in braces, what is found without it
  ("a barrier before a read", "st.shared.u32 [%r1], %t; {bar.sync 0;} ld.shared.u32 %r3, [%r2];", "race"),
  ("a barrier before a write", """st.shared.u32 [%r1], %t; bar.sync 0; ld.shared.u32 %r3, [%r2]; {bar.sync 0;}
                                  st.shared.u32 [%r1], %r3;""", "race"),
  ("a barrier in global memory", """st.global.u32 [%o], %t; {bar.sync 0;} xor.b32 %r3, %t, 32;
                                    mad.wide.u32 %l1, %r3, 4, %b; ld.global.u32 %r4, [%l1];""", "race"),
  ("bar.warp.sync", "st.shared.u32 [%r1], %t;" + WARP + "{bar.warp.sync -1;} ld.shared.u32 %r4, [%r3];", "race"),
  ("an atomic", "atom.shared.add.u32 %r3, [%s], 1; {bar.sync 0;} ld.shared.u32 %r4, [%s];", "race"),
  ("a named barrier of some warps", """st.shared.u32 [%r1], %t; {bar.sync 3, 64;} ld.shared.u32 %r3, [%r2];""", "race"),
  ("arrival of a producer", """setp.lt.u32 %p2, %t, 32; @%p2 bra P; bar.sync 1, 64; ld.shared.u32 %r3, [%r2]; bra E;
                               P: st.shared.u32 [%r1], %t; {bar.arrive 1, 64; bra E;} bar.sync 1, 64; E:""", ""),
  ("cp.async.wait_group", COPY + "{cp.async.wait_group 0;} ld.shared.u32 %r3, [%r1];", "wait"),
  ("the right group", COPY + "cp.async.ca.shared.global [%r1+1024], [%o], 4; cp.async.commit_group;"
   "cp.async.wait_group 1; ld.shared.u32 %r3, [%r1]; {cp.async.wait_group 0;} ld.shared.u32 %r3, [%r1+1024];", "wait"),
  ("a barrier behind it", COPY + "cp.async.wait_all; {bar.sync 0;} ld.shared.u32 %r3, [%r2];", "race"),
  ("the wait before a barrier", COPY + "{cp.async.wait_all;} bar.sync 0; ld.shared.u32 %r3, [%r2];", "race"),
  ("a wait for a copy in bulk", BULK + "{" + WAIT + "} ld.shared.u32 %r3, [%r1];", "wait"),
  ("a barrier behind mbarrier.init", BULK.replace("bar.sync 0;", "{bar.sync 0;}") + WAIT, "race"),
  ("a wait for a group of copies", """st.shared.u32 [%r1], %t; fence.proxy.async; bar.sync 0;
     @%p1 cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 256; @%p1 cp.async.bulk.commit_group;
     {@%p1 cp.async.bulk.wait_group.read 0;} bar.sync 0; st.shared.u32 [%r1], 7;""", "wait"),
  ("fence.proxy.async", """st.shared.u32 [%r1], %t; {fence.proxy.async;} bar.sync 0;
     @%p1 cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 256; @%p1 cp.async.bulk.commit_group;
     @%p1 cp.async.bulk.wait_group 0;""", "race"),
  ("arrival at an mbarrier", """@%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; st.shared.u32 [%r1], %t;
     {mbarrier.arrive.shared.b64 %l1, [bar];}""" + WAIT + "ld.shared.u32 %r3, [%r2];", ""),
  ("a wait at an mbarrier", """@%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; st.shared.u32 [%r1], %t;
     mbarrier.arrive.shared.b64 %l1, [bar]; {""" + WAIT + "} ld.shared.u32 %r3, [%r2];", "race"),
  ("an initial value", "{mov.u32 %n, 0;} mad.wide.u32 %l1, %n, 4, %b; ld.global.u32 %r3, [%l1];", "undefined"),
  ("an initial predicate", "{setp.eq.u32 %p5, %t, 3;} @%p5 bra E; st.shared.u32 [%r1], %t; E:", "undefined"),
  ("a store before a load", "{st.shared.u32 [%r1], %t;} ld.shared.u32 %r3, [%r1]; st.global.u32 [%o], %r3;",
   "undefined"),
  ("one element", """{st.shared.u32 [%s+4], 0;} bar.sync 0; ld.shared.u32 %r3, [%s+4]; mad.wide.u32 %l1, %r3, 4, %b;
                     ld.global.u32 %r4, [%l1];""", "undefined"),
  ("local memory", "{st.local.u32 [v], 0;} ld.local.u32 %r3, [v]; add.u32 %r3, %r3, 1; st.global.u32 [%o], %r3;",
   "undefined"),
]


def parted(text: str) -> tuple[str, str]:
  """(the right code, the code without what is in braces)."""
  marked = re.sub(r"\{((?:[^{}])*)\}", "\x01\\1\x02", text)
  return marked.replace("\x01", "").replace("\x02", ""), re.sub("\x01[^\x02]*\x02", "", marked)


@pytest.mark.parametrize(("what", "text", "found"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_what_is_left_out_is_found(what: str, text: str, found: str) -> None:
  good, bad = parted(text)
  registers = ".local .align 4 .b8 v[16];"
  assert findings(good, registers=registers) == []
  if found: assert kinds(bad, registers=registers) == {found}


MMA = """wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%w0, %w1, %w2, %w3}, %l4, %l5, 1, 1, 1, 0, 0;
         wgmma.commit_group.sync.aligned;"""


def products(fence: str = "wgmma.fence.sync.aligned;", wait: str = "wgmma.wait_group.sync.aligned 0;",
             proxy: str = "fence.proxy.async;", then: str = "add.f32 %w5, %w0, %w1;") -> set[str]:
  body = f"""mov.u32 %n, 0; L: add.u32 %r4, %r1, %n; st.shared.u32 [%r4], 0; add.u32 %n, %n, 512;
    setp.lt.u32 %p3, %n, 4096; @%p3 bra L; {proxy} bar.sync 0; mov.b64 %l4, 0x0000001000080000; mov.b64 %l5, %l4;
    mov.f32 %w0, 0f00000000; mov.f32 %w1, %w0; mov.f32 %w2, %w0; mov.f32 %w3, %w0; {fence} {MMA} {wait}
    {then}"""
  return kinds(body, threads=128)


def test_products_of_warp_groups() -> None:
  assert products() == set()
  assert products(wait="") == products(fence="") == {"wait"} and products(proxy="") == {"race"}
  late = "bar.sync 0; st.shared.u32 [%r1], 7;"
  assert products(then=late) == set() and "race" in products(wait="", then=late)
  whole = "st.shared.u32 [%r1], 7;"  # the wait is for the products of the whole warpgroup
  assert products(then=whole) == set() and "race" in products(wait="", then=whole)


TENSOR = [  # what is left out of a product in tensor memory, what is found without it
  ("WAIT: mbarrier.try_wait.parity.shared.b64 %p9, [%m], 0; @!%p9 bra WAIT;", {"race", "wait"},
   "reads tensor memory at 0x0, which tcgen05 writes that no tcgen05.commit, wait for its mbarrier"),
  ("fence.proxy.async.shared::cta;", {"race"},
   "reads shared memory at 0x0, which thread 0 writes with no fence.proxy.async"),
]


@pytest.mark.parametrize(("left_out", "found", "message"), TENSOR)
def test_products_in_tensor_memory(left_out: str, found: set[str], message: str) -> None:
  body = once(f"""cvt.u64.u32 %l10, %s; shr.u64 %l10, %l10, 4; add.u64 %l10, %l10, {1 << 46 | 8 << 16 | 16 << 32};
    mov.u32 %r14, {1 << 4 | 8 << 17 | 8 << 24}; tcgen05.mma.cta_group::1.kind::f16 [%d], %l10, %l10, %r14, 0;""")
  source = text(body, 8192, columns=64)
  assert left_out in source

  def checked(source: str) -> list[Any]:
    cells = np.zeros((2, LANES, COLUMNS), np.uint32)
    return list(tinyhw.launch(source, "k", 1, LANES, [*cells, np.zeros(8192, np.uint8)], "EMU", check="report").findings
                or ())
  assert not checked(source)
  without = checked(source.replace(left_out, "WAIT:" if "WAIT" in left_out else "", 1))
  assert {f.kind for f in without} == found
  assert any(message in f.message for f in without), without


def test_metadata_that_are_overwritten() -> None:
  """All warps write the column where those of a sparse product lie, which nobody waits for."""
  body = once(f"""cvt.u64.u32 %l10, %s; shr.u64 %l10, %l10, 4; add.u64 %l10, %l10, {1 << 46 | 8 << 16 | 16 << 32};
    add.u32 %r15, %d, 64; mov.u32 %r14, {1 << 4 | 1 << 2 | 8 << 17 | 8 << 24};
    tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %l10, %l10, [%r15], %r14, 0;""")
  store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%q+64], {%t}; tcgen05.wait::st.sync.aligned;"
  source = text(body + store, 8192, columns=128)

  def checked(source: str) -> list[Any]:
    cells = np.zeros((2, LANES, COLUMNS), np.uint32)
    return list(tinyhw.launch(source, "k", 1, LANES, [*cells, np.zeros(8192, np.uint8)], "EMU", check="report").findings
                or ())
  assert not checked(source)
  without = checked(source.replace(TENSOR[0][0], "WAIT:", 1))
  assert any("writes tensor memory at 0x40, which tcgen05 reads" in f.message for f in without), without


def test_masks_that_leave_threads_out() -> None:
  assert kinds("shfl.sync.down.b32 %r3, %t, 1, 31, 0xFFFF; st.global.u32 [%o], %r3;", threads=32) == {"mask"}
  assert kinds("shfl.sync.down.b32 %r3, %t, 1, 31, -1; st.global.u32 [%o], %r3;", threads=32) == set()


@pytest.mark.parametrize(("masks", "found"), [
  ("0xFFFF, 0xFFFF0000", set()), ("0xFFFF, -1", {"mask"}), ("-1, 0xFFFF0000", {"mask"}),
  ("0xFFFF0000, 0xFFFF", {"mask"}), ("0xFFFF, 0xFFFE0000", {"mask"})])
@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_parts_of_a_warp_have_masks_of_their_own(masks: str, found: set[str], engine: str,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
  """As tiles of cooperative groups have: those whom a mask names have to name the same one (PTX ISA, redux.sync)."""
  monkeypatch.setenv("EMU", engine)
  body = f"setp.lt.u32 %p2, %t, 16; selp.b32 %n, {masks}, %p2; redux.sync.add.u32 %r3, %t, %n; st.global.u32 [%o], %r3;"
  if found: assert found <= kinds(body, threads=32)
  else: assert kinds(body, threads=32) == set()


def test_an_mbarrier_is_told_of_copies(monkeypatch: pytest.MonkeyPatch) -> None:
  """cp.async.mbarrier.arrive is no copy: the threads of all warps tell one mbarrier, as libcu++'s pipelines do."""
  body = """@%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; cp.async.ca.shared.global [%r1], [%o], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; {} ld.shared.u32 %r3, [%r2];"""
  for engine in ("ref", "jit"):
    monkeypatch.setenv("EMU", engine)
    assert kinds(body.format(WAIT)) == set()
    assert kinds(body.format("")) == {"race"}
    assert kinds(body.replace("bar.sync 0;", "").format(WAIT)) == {"race"}


def test_a_barrier_that_part_of_a_warp_comes_to() -> None:
  body = """setp.lt.u32 %p2, %t, 16; @%p2 bra A; add.u32 %r3, %t, 1; bar.sync 0; bra E;
            A: add.u32 %r3, %t, 2; bar.sync 0; E: st.global.u32 [%o], %r3;"""
  assert kinds(body, threads=32) == {"barrier"}
  assert kinds(body.replace("bar.sync", "barrier.sync"), threads=32) == set()


LATE = "mov.u32 %n, 0; @%p2 bra A; L: add.u32 %n, %n, 1; setp.lt.u32 %p3, %n, 3000; @%p3 bra L; A:"


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize(("body", "found"), [
  (f"{LATE} bar.sync 0; st.global.u32 [%o], %n;", False),  # one half takes long to come
  (f"mov.u32 %n, 1; @%p2 bra A; {LATE.replace('@%p2 bra A;', '').replace('A:', '')} bar.sync 0; A:", False),  # or ends
  (f"{LATE} @%p2 bra B; bar.sync 0; bra E; B: bar.sync 0; E:", True)])
def test_a_warp_that_comes_to_a_barrier_in_parts(body: str, found: bool, engine: str,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
  """How the interpreter lets threads of a warp run is nothing that a program can be blamed for: all of those that have
  not ended come to the same barrier, or not."""
  monkeypatch.setenv("EMU", engine)
  assert kinds(f"setp.lt.u32 %p2, %t, 16; {body}", threads=32) == ({"barrier"} if found else set())


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize(("body", "found"), [
  ("st.shared.v2.u32 [%s], {%t, %t}; ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%s]; add.u32 %n, %r1, %r2;", False),
  ("st.shared.v2.u32 [%s+8], {%t, %t}; ld.shared.v4.u32 {%r1, %r2, %r3, %n}, [%s];", False),
  ("st.shared.v2.u32 [%s], {%t, %t}; ld.shared.v4.u32 {%r1, %r2, %n, %r4}, [%s];", True),
  ("ld.shared.u32 %r1, [%s]; st.shared.v2.u32 [%s+8], {%r1, %t}; ld.shared.u32 %n, [%s+12];", False),
  ("ld.shared.u32 %r1, [%s]; st.shared.v2.u32 [%s+8], {%r1, %t}; ld.shared.u32 %n, [%s+8];", True),
  ("ld.shared.u32 %r1, [%s]; st.local.v4.u32 [m], {7, %r1, %t, %r1}; ld.local.v2.u32 {%n, %r2}, [m+8];", False),
  ("ld.shared.u32 %r1, [%s]; st.local.v4.u32 [m], {7, %r1, %t, %r1}; ld.local.v2.u32 {%r2, %n}, [m+8];", True)])
def test_each_element_of_a_vector_is_its_own(body: str, found: bool, engine: str,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
  """As CUB's scans load the totals of three warps: four words at once."""
  monkeypatch.setenv("EMU", engine)
  assert kinds(f"{body} st.global.u32 [%o], %n;", threads=1, registers=".local .align 16 .b8 m[32];") == (
    {"undefined"} if found else set())


@pytest.mark.parametrize("what", ["and", "or"])
@pytest.mark.parametrize("decides", [False, True])
def test_what_one_source_decides_alone(what: str, decides: bool) -> None:
  """CUB's merges compare a key that lies behind the last one, and throw the answer away by what they know besides."""
  other = "eq" if (what == "and") == decides else "ne"  # true where the other source is to decide it alone
  flag = f"setp.{'ne' if other == 'eq' else 'eq'}.u32 %p3, %t, %t;"
  word = f"mov.u32 %r4, {0 if (what == 'and') == decides else -1};"
  inverse = f"setp.{other}.u32 %p4, %t, %t;"
  start, end = "ld.shared.u32 %r1, [%s]; setp.lt.u32 %p2, %r1, 5;", "selp.u32 %n, 1, 2, %p5;"
  for body in (f"{flag} {what}.pred %p5, %p2, %p3; {end}", f"{flag} {what}.pred %p5, %p3, %p2; {end}",
               f"{flag} setp.lt.{what}.u32 %p5, %r1, 5, %p3; {end}", f"{word} {what}.b32 %n, %r1, %r4;",
               f"{inverse} setp.lt.{what}.u32 %p5, %r1, 5, !%p4; {end}"):
    assert kinds(f"{start} {body} st.global.u32 [%o], %n;", threads=1) == (set() if decides else {"undefined"}), body


def test_bounds() -> None:
  assert kinds("add.u32 %n, %t, 40; mad.wide.u32 %l1, %n, 4, %b; st.global.u32 [%l1], %t;", threads=32, size=64) == {
    "bounds"}
  assert kinds("st.shared.u32 [%s+12], 1;", registers=".shared .align 16 .b8 q[4]; .shared .align 16 .b8 u[4];"
               ) == set()
  gap = ".shared .align 16 .b8 q[4]; .shared .align 16 .b8 u[4];"
  assert kinds("mov.u32 %n, q; st.shared.u32 [%n+4], 1; mov.u32 %n, u; ld.shared.u32 %r3, [%n-16];", registers=gap,
               check="report,bounds") == {"bounds"}
  glob = kernel("mov.u64 %l1, table; mad.wide.u32 %l1, %t, 4, %l1; ld.global.u32 %r1, [%l1];").replace(
    ".visible", ".global .align 4 .u32 table[20] = {1, 2}; .global .align 4 .u32 next[4]; .visible")
  found = tinyhw.launch(glob, "k", 1, 24, [np.zeros(32, np.uint32)], "EMU", check="report").findings
  assert [f.kind for f in found or ()] == ["bounds"] or not found  # where an array follows at once nothing is seen


def test_bank_conflicts_when_asked_for() -> None:
  body = "mad.lo.u32 %r3, %t, 64, %s; st.shared.u32 [%r3], %t;"
  assert kinds(body) == set() and kinds(body, check="report,bank") == {"bank"}


@pytest.mark.parametrize("times", [100, 0])
def test_calls_that_do_the_same_again_and_again_get_on(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """The one who counts them is the caller. Where he does not, they never end."""
  monkeypatch.setenv("EMU", "ref")
  body = """mov.u32 %r1, 0; st.shared.u32 [s], 5; L: call (%r2), read, (); add.u32 %r1, %r1, STEP;
    setp.lt.u32 %p1, %r1, 100; @%p1 bra L; st.global.u32 [%o], %r2;"""
  read = """.func (.reg .b32 %x) read() { .reg .b32 %k; .reg .pred %q; mov.u32 %k, 0;
    M: ld.shared.u32 %x, [s]; add.u32 %k, %k, 1; setp.lt.u32 %q, %k, 16; @%q bra M; ret; }"""
  source = kernel(body.replace("STEP", str(bool(times) * 1))).replace(
    ".visible .entry", f".shared .align 4 .b8 s[4]; {read} .visible .entry", 1)

  def launched() -> Any: return tinyhw.launch(source, "k", 1, 1, [np.zeros(1, np.uint32)], "EMU", check="report")
  if times: assert launched()[0].tolist() == [5] and not launched().findings
  else:
    with pytest.raises(Error, match="deadlock"): launched()


def test_blocks_race_when_asked_for() -> None:
  body = "mov.u32 %n, %ctaid.x; st.global.u32 [%b], %n;"
  assert kinds(body, threads=1, grid=2) == set()
  assert kinds(body, threads=1, grid=2, check="report,workgroup-race") == {"workgroup-race"}


def test_a_finding_says_where_and_fails_a_launch() -> None:
  f = findings("st.shared.u32 [%r1], %t;\n ld.shared.u32 %r3, [%r2];")[0]
  assert (f.kind, f.workgroup, f.wave, f.lane) == ("race", 0, 0, 0) and f.place.startswith("PTX:")
  assert "reads shared memory at 0x80, which thread 32 writes with nothing that orders them" in str(f)
  assert f.instruction == "ld.shared.u32 %r3, [%r2]" and f.other_instruction == "st.shared.u32 [%r1], %t"
  with pytest.raises(HazardFound, match="the checks found 1 hazard: race: reads shared memory"):
    findings("st.shared.u32 [%r1], %t;\n ld.shared.u32 %r3, [%r2];", check=True)


def test_from_the_shell(tmp_path: Any) -> None:
  source = kernel("mov.u32 %r1, s; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1], %t; ld.shared.u32 %r2, [%r1+128];"
                  "st.global.u32 [%o], %r2;", ".shared .align 4 .b8 s[1024];")
  (tmp_path / "race.ptx").write_text(source)
  words = ["launch", str(tmp_path / "race.ptx"), "--block", "128", "--arg", "out:u32:128", "--check"]
  done = CliRunner().invoke(command, words)
  assert done.exit_code == 1 and "race         reads shared memory at 0x" in done.output and "   PTX:" in done.output
  rows = json.loads(CliRunner().invoke(command, [*words, "--json"]).output)["findings"]
  assert {r["kind"] for r in rows} == {"race", "undefined"} and rows[0]["place"].startswith("PTX:")


@pytest.mark.parametrize("device", ["NV", "CUDA"])
def test_programs_on_the_mocks(sm_90: None, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
  monkeypatch.setenv("EMU_CHECK", "1")
  assert (Tensor([1.0, 2.0], device=device) + 1).numpy().tolist() == [2, 3] and len(Device.findings()) == 0


def test_a_race_fails_a_launch_on_the_mock(sm_90: None, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU_CHECK", "1")
  source = kernel("mov.u32 %r1, s; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1], %t; ld.shared.u32 %r2, [%r1+128];",
                  ".shared .align 4 .b8 s[1024];")
  with pytest.raises(Error, match="the checks found .* race: reads shared memory"):
    tinyhw.launch(source, "k", 1, 64, [np.zeros(64, np.uint32)], "NV")


# ---- nothing is found in what compilers write

QUICK = {"triton3.9.0-sm_90-matmul_half_out.ptx", "triton3.4.0-sm_80-attention.ptx", "triton3.9.0-sm_80-sort.ptx",
         "triton3.4.0-sm_90-lookback.ptx", "triton3.9.0-sm_80-histogram.ptx", "triton3.9.0-sm_90-descriptors.ptx",
         "triton3.4.0-sm_80-reductions.ptx", "triton3.9.0-sm_90-conversions.ptx", "triton3.9.0-sm_90-atomics.ptx"}


@pytest.mark.parametrize("row", [r for r in ROWS if THOROUGH or r["file"] in QUICK], ids=lambda r: r["file"])
def test_nothing_is_found_in_tritons_kernels(row: dict[str, Any]) -> None:
  made, shared = prepared(row), row["shared"]
  out = tinyhw.launch(made.source, row["kernel"], row["grid"], row["block"], made.args, "EMU", shared, check="report")
  assert list(out.findings or ()) == []


TESTS = {**{n: f for n, f in vars(kernels).items() if n.startswith("test_")}, "tma": tma.test_a_kernel}


@pytest.mark.parametrize("name", TESTS if THOROUGH else [*TESTS][3:20:4])
def test_nothing_is_found_in_the_kernels_of_other_tests(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """nvcc's, and Triton's with TMA, wgmma, warp groups and clusters."""
  checked = []
  real = tinyhw.launch

  def launch(*args: Any, **more: Any) -> Any:
    done = real(*args, check="report", **more)
    assert list(done.findings or ()) == []
    checked.append(args[1])
    return done
  with monkeypatch.context() as patch:
    patch.setattr(tinyhw, "launch", launch)
    if name == "tma":
      patch.setattr(tma, "compiled_too", lambda _: None)
      for case in tma.NAMES: TESTS[name](case, patch)
    elif [*inspect.signature(TESTS[name]).parameters] == ["module"]:
      for module in MODULES.values(): TESTS[name](module)
    else: pytest.skip("it takes more than a module")
  assert checked
