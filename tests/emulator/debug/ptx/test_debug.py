"""The debugger of PTX: places, threads, registers, calls, divergence, snapshots; a run by single steps is a launch."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tinyhw
from tests.corpus.test_ptx import ROWS, prepared
from tests.emulator.debug.ptx.test_report import LOCATED
from tests.emulator.ptx.test_kernels import MODULES
from tests.emulator.ptx.test_ptx import HEAD, kernel
from tests.emulator.tensor_memory import COLUMNS, LANES, text
from tests.strength import THOROUGH
from tinyhw import Tensor
from tinyhw.cli import tinyhw as command
from tinyhw.core.errors import InvalidArgument

TILE = Path(__file__).resolve().parents[4] / "examples" / "tile.ptx"


def debugger(body: str, threads: int = 64, registers: str = "", grid: int = 1, **more: Any) -> Any:
  return tinyhw.debug(kernel(body, registers), "k", grid, threads, [np.zeros(threads * grid, np.uint32)], **more)


PARTED = """setp.lt.u32 %p1, %t, 5;
  @%p1 bra SMALL;
  mul.lo.u32 %r1, %t, 3;
  bra JOIN;
SMALL:
  mul.lo.u32 %r1, %t, 5;
JOIN:
  st.global.u32 [%o], %r1;"""


def test_places_threads_and_registers() -> None:
  with debugger(PARTED) as d:
    d.break_at("SMALL")
    stop = d.run()
    assert stop.reason == "breakpoint" and stop.waves == (0,) and str(d.wave.active().sum()) == "5"
    assert d.thread(0, 3)["%t"] == 3 and d.thread(1 - 1, 40)["%t"] == 40
    assert sorted((i.wave, i.state, i.active) for i in d.waves()) == [
      (0, "running", 5), (0, "running", 27), (1, "running", 32)]
    d.look_at_thread(0, 2)
    before = d.wave.pc
    d.stepi()
    assert d.evaluate("%r1")[2] == 10 and d.wave.pc != before and d.evaluate("%tid.x")[4] == 4
    d.look_at_thread(0, 20)  # the other part of the warp stands elsewhere
    assert d.wave.active().sum() == 27 and d.code.where(d.wave.pc) != d.code.where(before)
    d.delete(1)
    assert d.run().reason == "end"
    assert d.buffers()[0].tolist() == [x * (5 if x < 5 else 3) for x in range(64)]


def test_lines_of_the_text_and_of_the_source() -> None:
  with tinyhw.debug(LOCATED, "twice", 2, 32, [np.arange(64, dtype=np.uint32)]) as d:
    d.break_at("twice.cu:4")
    assert d.run().text == "breakpoint 1, at twice.cu:4" and d.code.where(d.wave.pc) == "PTX:11"
    assert str(d.backtrace()[0].spot) == "twice.cu:4"
    d.next_line()
    assert str(d.code.source.spot(d.wave.pc)) == "twice.cu:5"
    with pytest.raises(InvalidArgument, match="no code comes from other.cu"): d.break_at("other.cu:4")
    d.break_at("PTX:1", temporary=True)  # the next line that has an instruction
    assert str(d.breaks[2]) == "at PTX:8"
    with pytest.raises(InvalidArgument, match="no symbol is called 'NOWHERE'"): d.break_at("NOWHERE")


def test_conditions_of_threads_and_watches() -> None:
  body = """mov.u32 %r1, 0;
L:
  add.u32 %r1, %r1, 1;
  st.global.u32 [%o], %r1;
  setp.lt.u32 %p1, %r1, 4;
  @%p1 bra L;"""
  with debugger(body, grid=2) as d:
    d.break_on("st.global.u32", "%r1 > 2", wave=3, lane=1)
    assert str(d.run()) == "breakpoint 1, on st.global.u32 warp 3 lane 1 if %r1 > 2" and d.evaluate("%r1[1]") == 3
    d.delete(1)
    d.watch("%r1[0]")
    stop = d.run()
    assert stop.reason == "watch" and "%r1[0]: 3 -> 4" in stop.text
    d.delete(2)
    d.break_memory(d.evaluate("out + 4"), 4, "w")
    assert d.run().text.startswith("breakpoint 3, memory") or d.ended


def test_reads_and_writes_of_shared_memory() -> None:
  body = """mov.u32 %r1, s;
  mad.lo.u32 %r1, %t, 4, %r1;
  st.shared.u32 [%r1], %t;
  bar.sync 0;
  ld.shared.u32 %r2, [s+12];
  st.global.u32 [%o], %r2;"""
  with debugger(body, registers=".shared .align 4 .u32 s[64];") as d:
    d.break_memory(12, 4, "r", "lds")
    stop = d.run()
    assert "shared 0xc..0xf r: load of 4 bytes" in stop.text and d.shared("u32").tolist() == list(range(64))
    assert d.evaluate("shared.u32(8)") == 2
    d.write(d.evaluate("out"), [1])
    d.wave.write("%r2", 77, lane=5)
    d.delete(1)
    d.run()
    assert d.buffers()[0][5] == 77 and d.buffers()[0][4] == 3


CALLS = HEAD + """.func (.reg .u32 %z) inner (.reg .u32 %a) {
  add.u32 %z, %a, 1;
  ret;
}
.func (.reg .u32 %y) outer (.reg .u32 %b) {
  .reg .u32 %q;
  call (%q), inner, (%b);
  mul.lo.u32 %y, %q, 2;
  ret;
}
.visible .entry k (.param .u64 out) {
  .reg .u32 %t, %r<3>; .reg .u64 %l<3>;
  mov.u32 %t, %tid.x;
  call (%r1), outer, (%t);
  ld.param.u64 %l1, [out];
  mad.wide.u32 %l2, %t, 4, %l1;
  st.global.u32 [%l2], %r1;
  ret;
}
"""


def test_calls() -> None:
  with tinyhw.debug(CALLS, "k", 1, 32, [np.zeros(32, np.uint32)]) as d:
    d.break_at("inner")
    d.run()
    assert [f.where.partition(" ")[0] for f in d.backtrace()] == ["inner", "outer", "k"]
    assert d.evaluate("%a")[3] == 3
    d.finish()
    assert [f.where.partition(" ")[0] for f in d.backtrace()] == ["outer", "k"] and d.evaluate("%q")[3] == 4
    d.finish()
    assert len(d.backtrace()) == 1 and d.evaluate("%r1")[3] == 8
    d.run()
    assert d.buffers()[0].tolist() == [2 * (n + 1) for n in range(32)]
  with tinyhw.debug(CALLS, "k", 1, 32, [np.zeros(32, np.uint32)]) as d:
    d.next(2)  # over the call
    assert len(d.backtrace()) == 1 and d.evaluate("%r1")[3] == 8


def test_a_fault_stands_at_its_instruction() -> None:
  with debugger("ld.global.u32 %r1, [%b+65536];") as d:
    stop = d.run()
    assert stop.reason == "fault" and "PTX:10" in stop.text and d.evaluate("%t")[3] == 3
  with debugger("L: bra L;") as d: assert "endless" in d.run().text


def test_a_barrier_that_never_completes() -> None:
  with debugger("setp.lt.u32 %p1, %t, 32; @%p1 bra E; bar.sync 1, 96; E:") as d:
    stop = d.run()
    assert stop.reason == "fault" and "barrier 1 never completes" in stop.text


def test_snapshots() -> None:
  a = np.arange(4096, dtype=np.float32)
  with tinyhw.debug(TILE, "transpose", (2, 2), (32, 32), [np.zeros(4096, np.float32), a]) as d:
    d.break_at("PTX:31", wave=40)
    d.run()
    first = d.snapshot()
    d.next(3)
    lines = d.diff(first, wave=40)
    assert lines[0] == "warp 40 pc: PTX:31 -> PTX:34" and any(line.startswith("warp 40 %f2[lane") for line in lines)
    d.delete(1)
    d.run()
    out = d.buffers()[0]
    assert (out.reshape(64, 64) == a.reshape(64, 64).T).all()
    d.restore(first)
    assert d.code.where(d.wave.pc) == "PTX:31" and not d.buffers()[0].any()
    d.run()
    assert (d.buffers()[0] == out).all()


def test_it_stands_at_what_the_checks_find() -> None:
  body = """mov.u32 %r1, s; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1], %t;
  xor.b32 %r2, %r1, 128; ld.shared.u32 %r3, [%r2];"""
  with debugger(body, registers=".shared .align 256 .u32 s[64];", check="1") as d:
    stop = d.run()
    assert stop.reason == "check" and "race: reads shared memory" in stop.text


NVCC = [("add", 4, 256, lambda r: [r.normal(size=1000).astype("f4"), r.normal(size=1000).astype("f4"),
                                   np.zeros(1000, "f4"), 1000]),
        ("collatz", 3, 128, lambda r: [r.integers(0, 99, 300).astype("u4"), np.zeros(300, "u4"), 300]),
        ("choose", 2, 128, lambda r: [r.integers(-100, 100, 256).astype("i4"), np.zeros(256, "i4")]),
        ("reduce", 2, 256, lambda r: [r.integers(0, 50, 900).astype("f4"), np.zeros(1, "f4"), 900])]


@pytest.mark.parametrize(("name", "grid", "block", "make"), NVCC, ids=[row[0] for row in NVCC])
def test_a_run_by_single_steps_is_a_launch(name: str, grid: int, block: int, make: Any) -> None:
  args = make(np.random.default_rng(3))
  wanted = tinyhw.launch(MODULES["sm80"], name, grid, block, args, "EMU")
  with tinyhw.debug(MODULES["sm80"], name, grid, block, args) as d:
    while not d.ended: d.run(lambda: "")
    assert all((a == b).all() for a, b in zip(d.buffers(), wanted, strict=True))


QUICK = {"triton3.9.0-sm_90-matmul_half_out.ptx", "triton3.9.0-sm_90-lookback.ptx"}


@pytest.mark.parametrize("row", [r for r in ROWS if THOROUGH or r["file"] in QUICK], ids=lambda r: r["file"])
def test_tritons_kernels_run_under_the_debugger(row: dict[str, Any]) -> None:
  made = prepared(row)
  with tinyhw.debug(made.source, row["kernel"], row["grid"], row["block"], made.args, shared=row["shared"]) as d:
    assert d.run().reason == "end"
    out = d.buffers()
  assert not made.wrong(out)


@pytest.mark.parametrize("device", ["NV", "CUDA"])
def test_captures_of_the_mocks(sm_90: None, device: str) -> None:
  a = Tensor([1.0, 2.0, 3.0], device=device).realize()
  with tinyhw.captures() as launches: assert (a + 1).numpy().tolist() == [2, 3, 4]
  with launches[0].debug() as d:
    d.break_on("st.global*")
    stop = d.run()
    assert stop.reason == "breakpoint" and d.arch.name == "sm_90"


def test_in_the_shell(tmp_path: Path) -> None:
  np.save(tmp_path / "a.npy", np.arange(4096, dtype=np.float32))
  words = ["launch", str(TILE), "--grid", "2,2", "--block", "32,32", "--arg", "out:f32:4096", "--arg",
           str(tmp_path / "a.npy"), "--debug"]
  lines = ["break PTX:33 block 1 thread 70", "continue", "info warps", "thread 71", "info regs f1 r1", "print %r1[7]",
           "shared/4f", "info vregs r1 f1", "set %f1[7] = 2.5", "print %f1[7]", "break 34", "diff engines", "help",
           "quit"]
  done = CliRunner().invoke(command, words, input="\n".join(lines))
  assert done.exit_code == 0, done.output
  for part in ("breakpoint 1: at PTX:33 warp 34 lane 6", "thread 71 of block 1,0,0 (lane 7 of warp 34), running",
               "%f1  .f32  167", "%r1[7] = 7", "shared+0x0", "%f1[7] = 2.5", "breakpoint 2: at PTX:34",
               "the reference and compiled code agree: 3,456 warp instructions", "thread [N]"):
    assert part in done.output, f"{part!r} is not in\n{done.output}"
  assert "tinyhw:" not in done.output and "wave" not in done.output


def test_tensor_memory_is_shown_and_comes_back() -> None:
  """A snapshot has it."""
  source = text("mov.u32 %r1, 77; tcgen05.st.sync.aligned.32x32b.x1.b32 [%q], {%r1}; bar.sync 0;", 16, columns=64)
  args = [np.zeros((LANES, COLUMNS), np.uint32), np.arange(LANES * COLUMNS, dtype=np.uint32).reshape(LANES, COLUMNS),
          np.zeros(16, np.uint8)]
  with tinyhw.debug(source, "k", 1, LANES, args) as d:
    with pytest.raises(InvalidArgument, match="the block has allocated no tensor memory"): d.wave.tensor()
    d.break_on("tcgen05.st.*x1.b32", "%r1 == 77")
    d.run()
    pieces, cells = d.wave.tensor()
    assert pieces == [(0, 64)] and cells[40, :3].tolist() == [40 * COLUMNS, 40 * COLUMNS + 1, 40 * COLUMNS + 2]
    kept = d.snapshot("before")
    d.delete(1)
    d.break_on("bar.sync", "%r1 == 77")
    d.run()
    assert d.wave.tensor()[1][40, 0] == 77
    d.restore(kept)
    assert d.wave.tensor()[1][40, 0] == 40 * COLUMNS


def test_tensor_memory_in_the_shell(tmp_path: Path) -> None:
  (tmp_path / "k.ptx").write_text(text("mov.u32 %r1, 77; tcgen05.st.sync.aligned.32x32b.x1.b32 [%q], {%r1};", 16,
                                       columns=64))
  np.save(tmp_path / "cells.npy", np.arange(LANES * COLUMNS, dtype=np.uint32))
  words = ["launch", str(tmp_path / "k.ptx"), "--grid", "1", "--block", "128", "--arg", f"out:u32:{LANES * COLUMNS}",
           "--arg", str(tmp_path / "cells.npy"), "--arg", "out:u8:16", "--debug"]
  lines = ["break DUMP", "continue", "tensor", "tensor/3d 40 2", "tensor 128"]
  done = CliRunner().invoke(command, words, input="\n".join(lines))
  for part in ("columns 0 to 63", "lane 40 column 2", "20482 20483 20484",
               "no lane 128 of tensor memory: there are 128"):
    assert part in done.output, f"{part!r} is not in\n{done.output}"
