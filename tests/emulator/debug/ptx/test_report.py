"""The report of PTX kernels: counts against what is known of the kernels, sectors, banks, lines, the mocks."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.emulator.ptx.test_ptx import kernel
from tests.strength import examples
from tinyhw import Tensor
from tinyhw.cli import tinyhw as command
from tinyhw.emulator.debug.report import Report

KERNELS = Path(__file__).resolve().parents[2] / "ptx" / "kernels_sm80.ptx"


def report(body: str, threads: int = 32, registers: str = "", grid: int = 1, size: int = 0, shared: int = 0) -> Report:
  out = np.zeros(size or threads * grid, np.uint32)
  return tinyhw.report(kernel(body, registers), "k", grid, threads, [out], shared=shared)


def access(r: Report, segment: str, kind: str) -> Any:
  return next(a for a in r.accesses if (a.segment, a.kind) == (segment, kind))


def test_counts_of_a_plain_kernel() -> None:
  a, b = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
  r = tinyhw.report(KERNELS, "add", 4, 256, [a, b, np.zeros_like(a), 1000])
  assert (r.buffers[2] == a + 1).all() and (r.kernel, r.arch, r.waves, r.wave_lanes) == ("add", "sm_80", 32, 32)
  assert sum(r.units.values()) == r.executed == sum(i.waves for i in r.instructions)
  assert access(r, "global", "load").bytes == 8000 and access(r, "global", "store").bytes == 4000
  assert access(r, "global", "store").sectors == 125 and access(r, "global", "load").efficiency == 1.0
  assert access(r, "param", "load").lanes == 4 * 1024 and r.exactness() == ["every executed instruction is exact"]
  branch = next(i for i in r.instructions if i.taken is not None)
  assert (branch.taken, branch.splits) == (1, 1)  # the last warp, of which 24 threads are past the end
  assert r.instructions[0].label == "add" and r.instructions[0].place.startswith("PTX:")


@pytest.mark.parametrize(("stride", "sectors", "lines"), [(1, 4, 1), (2, 8, 2), (8, 32, 8), (32, 32, 32), (0, 1, 1)])
def test_coalescing_by_stride(stride: int, sectors: int, lines: int) -> None:
  r = report(f"mad.wide.u32 %l1, %t, {4 * stride}, %b; ld.global.u32 %r1, [%l1];", size=32 * max(stride, 1))
  found = access(r, "global", "load")
  assert (found.sectors, found.lines, found.bytes) == (sectors, lines, 128)


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 64), st.sampled_from([1, 2, 4]))
def test_banks_against_a_model(stride: int, words: int) -> None:
  """In a cycle each of 32 banks gives one dword, to any number of threads; 16 threads of 8 bytes go at once."""
  registers = f".shared .align 16 .b8 s[{16 * (32 * max(stride, 1) + 16)}];"
  vector = {1: ("", "%r1"), 2: (".v2", "{%r1, %r2}"), 4: (".v4", "{%r1, %r2, %r3, %r4}")}[words]
  r = report(f"""mov.u32 %r5, s; mad.lo.u32 %r5, %t, {4 * words * stride}, %r5;
                 ld.shared{vector[0]}.u32 {vector[1]}, [%r5];""", registers=registers)
  cycles = 0
  for first in range(0, 32, 32 // words):
    banks: dict[int, set[int]] = {}
    for lane in range(first, first + 32 // words):
      for k in range(words):
        at = lane * words * stride + k
        banks.setdefault(at % 32, set()).add(at)
    cycles += max(map(len, banks.values()))
  found = access(r, "lds", "load")
  assert (found.cycles, found.ideal) == (cycles, words)
  assert bool(r.conflicts()) == (cycles > words)


def test_divergence_guards_and_warps_of_a_part() -> None:
  r = report("""setp.lt.u32 %p1, %t, 5; @%p1 add.u32 %r1, %r1, 1; @%p1 bra A; mul.lo.u32 %r1, %r1, 3; bra B;
                A: mul.lo.u32 %r1, %r1, 5; B: st.global.u32 [%o], %r1;""", threads=40)
  lanes = {(i.mnemonic, i.text): (i.waves, i.lanes) for i in r.instructions if i.waves}
  assert lanes["add.u32", "@%p1 add.u32 %r1, %r1, 1"] == (2, 2.5)
  assert lanes["mul.lo.u32", "mul.lo.u32 %r1, %r1, 5"] == (1, 5)
  assert lanes["mul.lo.u32", "mul.lo.u32 %r1, %r1, 3"] == (2, 17.5)
  branch = next(i for i in r.instructions if i.taken is not None)
  assert (branch.taken, branch.splits) == (1, 1) and r.lanes < 32


def test_an_instruction_that_threads_wait_for_counts_once() -> None:
  r = report("""setp.lt.u32 %p1, %t, 5; @%p1 bra A; add.u32 %r1, %t, 1; vote.sync.ballot.b32 %r2, %p1, 0xFFFFFFE0;
                bra B;
                A: add.u32 %r1, %t, 2; vote.sync.ballot.b32 %r2, %p1, 31; B: bar.warp.sync -1;
                st.global.u32 [%o], %r2;""")
  assert next(i for i in r.instructions if i.mnemonic == "bar.warp.sync").waves == 1


def test_what_is_moved_in_bulk_and_read_by_products_counts() -> None:
  r = report("""mov.u32 %r1, s; setp.eq.u32 %p1, %t, 0; @!%p1 bra W;
                mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 %l1, [bar], 512;
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%b], 512, [bar];
                W: bar.sync 0; ld.shared.u32 %r2, [%r1]; st.global.u32 [%o], %r2;""",
             registers=".shared .align 128 .b8 s[512]; .shared .align 8 .b64 bar;", size=128)
  assert access(r, "global", "load").bytes == 512 and access(r, "global", "load").sectors == 16
  assert access(r, "lds", "store").bytes == 512 and r.barriers >= 1 and r.meetings == 1


def test_registers_and_shared_memory_limit_what_fits() -> None:
  few = report("st.global.u32 [%o], %t;", threads=256)
  assert "limited by the 64 warps" in few.occupancy and few.lds == 0
  much = report("st.shared.u32 [s], %t;", threads=64, registers=".shared .align 16 .b8 s[40000];")
  assert "5 blocks of 2 warps" in much.occupancy and "shared memory (41,024 bytes a block" in much.occupancy
  # 97 values that live at once, their sum, and the address of the result
  many = "".join(f"add.u32 %q{n}, %t, {n};" for n in range(97))
  r = report(many + "".join(f"xor.b32 %r1, %r1, %q{n};" for n in range(97)) + "st.global.u32 [%o], %r1;",
             threads=256, registers=".reg .b32 %q<97>;")
  assert next(iter(r.registers.values())) == 100 and "registers (3,328 a warp of 65,536)" in r.occupancy


LOCATED = """.version 8.0
.target sm_90
.address_size 64
.file 1 "/src/twice.cu"
.visible .entry twice (.param .u64 out)
{ .reg .b32 %r<4>; .reg .b64 %rd<4>;
  .loc 1 3 7
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  .loc 1 4 3
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  ld.global.u32 %r2, [%rd2];
  shl.b32 %r2, %r2, 1;
  st.global.u32 [%rd2], %r2;
  .loc 1 5 1
  ret;
}
"""


def test_lines_of_the_source(tmp_path: Path) -> None:
  r = tinyhw.report(LOCATED, "twice", 1, 64, [np.arange(64, dtype=np.uint32)])
  assert [(s.place, s.function, s.waves, s.bytes) for s in r.lines] == [
    ("twice.cu:4", "twice", 8, 512), ("twice.cu:3", "twice", 4, 0), ("twice.cu:5", "twice", 2, 0)]
  assert r.arch == "sm_90" and r.instructions[2].line == "twice.cu:4"


def test_from_the_shell(tmp_path: Path) -> None:
  (tmp_path / "twice.ptx").write_text(LOCATED)
  words = ["launch", str(tmp_path / "twice.ptx"), "--block", "64", "--arg", "out:u32:64", "--report"]
  out = CliRunner().invoke(command, words).output
  for part in ("twice on sm_90", "2 warps of 32 lanes", "global load", "32 B sectors", "twice.cu:4", "st.global.u32"):
    assert part in out, f"{part!r} is not in\n{out}"
  found = json.loads(CliRunner().invoke(command, [*words, "json"]).output)
  assert found["kernel"] == "twice" and found["units"]["memory"] == 6
  page = CliRunner().invoke(command, [*words, "html"]).output
  assert "warp instructions" in page and "--memory: var(--VMEM)" in page and "wave" not in page


@pytest.mark.parametrize("device", ["NV", "CUDA"])
def test_kernels_of_tensors_on_the_mocks(sm_90: None, device: str) -> None:
  a = Tensor([1.0, 2.0, 3.0], device=device).realize()
  with tinyhw.reports() as reports: assert (a + 1).numpy().tolist() == [2, 3, 4]
  assert [(r.arch, r.waves, access(r, "global", "store").bytes) for r in reports] == [("sm_90", 1, 12)]


def test_a_launch_reports_on_the_mock(sm_90: None) -> None:
  done = tinyhw.launch(LOCATED, "twice", 2, 32, [np.ones(32, np.uint32)], "NV", report=True)
  assert done.report is not None and done.report.executed == 14 and done.report.lines[0].place == "twice.cu:4"
