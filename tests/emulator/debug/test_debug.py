"""The debugger's Python interface, over kernels that LLVM compiled: where it stands, what it shows, what it changes."""
from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinyhw
from tinyhw.core.errors import Error, InvalidArgument, PageFault, Unsupported
from tinyhw.emulator.debug.breaks import Watch
from tinyhw.kernels.debug import Session

Build = Callable[..., bytes]
# Reverses 64 values of each workgroup through LDS; values above 4 are doubled by a function that is called.
REVERSE = """
@t = internal addrspace(3) global [64 x float] undef
define amdgpu_kernel void @reverse(ptr addrspace(1) %out, ptr addrspace(1) %a) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %group, 64
  %i = add i32 %base, %id
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %v = load float, ptr addrspace(1) %pa
  %c = fcmp ogt float %v, 4.0
  br i1 %c, label %big, label %next
big:
  %k = call float @twice(float %v)
  br label %next
next:
  %r = phi float [ %v, %0 ], [ %k, %big ]
  %pt = getelementptr [64 x float], ptr addrspace(3) @t, i32 0, i32 %id
  store float %r, ptr addrspace(3) %pt
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %other = sub i32 63, %id
  %pq = getelementptr [64 x float], ptr addrspace(3) @t, i32 0, i32 %other
  %q = load float, ptr addrspace(3) %pq
  %po = getelementptr float, ptr addrspace(1) %out, i32 %i
  store float %q, ptr addrspace(1) %po
  ret void
}
define float @twice(float %x) noinline {
  %y = fmul float %x, 2.0
  ret float %y
}
"""
A = (np.arange(128) % 7).astype(np.float32)
EXPECTED = np.where(A > 4, 2 * A, A).reshape(2, 64)[:, ::-1].reshape(-1)


@pytest.fixture
def session(code_object: Build) -> Iterator[Session]:
  with tinyhw.debug(code_object(REVERSE), "reverse", (2,), (64,), [np.zeros_like(A), A]) as d: yield d


def place_of(d: Session, mnemonic: str, which: int = 0) -> str:
  """Location of an instruction of the kernel by its mnemonic."""
  found = [n for n in d.code.function("reverse") if n.instruction is not None and n.instruction.mnemonic == mnemonic]
  return d.code.where(found[which].address)


def test_it_stands_at_the_entry_and_runs_to_the_end(session: Session) -> None:
  assert session.last.reason == "start" and session.last.waves == (0, 1, 2, 3)
  assert session.wave.pc == session.dispatch.entry_pc
  assert session.run().reason == "end" and session.ended
  assert (session.buffers()[0] == EXPECTED).all()
  with pytest.raises(InvalidArgument, match="has ended"): session.run()


def test_it_executes_what_the_interpreter_executes(code_object: Build) -> None:
  """The debugger's loop against the reference's: the same instructions, however the run is cut up."""
  from tinyhw.emulator.amdgcn import dispatch
  build = code_object(REVERSE)
  with tinyhw.debug(build, "reverse", (2,), (64,), [np.zeros_like(A), A]) as d:
    expected = dispatch(d.space, d.arch, d.dispatch).instructions
  with tinyhw.debug(build, "reverse", (2,), (64,), [np.zeros_like(A), A]) as d:
    steps = 0
    while not d.ended:
      d.look_at(d.waves()[steps * 7 % len(d.waves())].wave)
      if d.stepi(1 + steps % 3).reason == "barrier": d.next()
      steps += 1
    assert (d.buffers()[0] == EXPECTED).all() and d.engine.stats.instructions == expected and steps > 40


def test_breakpoints_on_places(session: Session) -> None:
  b = session.break_at("twice")
  stop = session.run()
  assert stop.reason == "breakpoint" and stop.breakpoint is b and session.code.where(stop.pc or 0) == "twice"
  frames = [f.where for f in session.backtrace()]
  assert frames[0] == "twice" and frames[1] == place_of(session, "s_swappc_b64") and b.hits == 1
  session.delete(b.number)
  back = session.finish()
  assert back.reason == "step" and session.wave.pc == session.code.resolve(frames[1]) + 4
  assert len(session.backtrace()) == 1
  later = session.break_at(place_of(session, "ds_load_b32"), temporary=True)
  assert session.run().breakpoint is later and session.run().reason == "end"


def test_breakpoints_on_mnemonics_with_conditions(session: Session) -> None:
  session.break_on("ds_store*", wave=2)
  stop = session.run()
  assert stop.reason == "breakpoint" and stop.wave == 2
  session.delete(1)
  session.break_on("global_store_b32", "workgroup == 1 and lane[0] == 0")
  stop = session.run()
  assert stop.wave == 2 and session.wave.workgroup == (1, 0, 0)
  session.delete(2)
  session.break_on("global_store_b32", "v0[31].i32 == -7")
  assert session.run().reason == "end"


def test_conditions_that_fail_stand_and_say_so(session: Session) -> None:
  with pytest.raises(InvalidArgument, match="nothing is called 'v777'"): session.break_at("twice", "v777 > 1")
  assert not session.breaks
  session.break_on("ds_store_b32", "u32(s0) == 1")  # s0 holds no address
  stop = session.run()
  assert stop.reason == "breakpoint" and "its condition cannot be told: GPU page fault: read of 4 bytes" in stop.text
  session.delete(1)
  w = session.watch("u32(out + s40)")
  session.wave.write("s40", 1 << 31)
  stop = session.run()
  assert stop.reason == "watch" and "watch 2 is off: GPU page fault" in stop.text and not w.enabled
  assert session.run().reason == "end"


def test_ignore_and_disable(session: Session) -> None:
  b, off = session.break_on("s_waitcnt", ignore=1), session.break_at("twice")
  session.enable(off.number, False)
  assert session.run().breakpoint is b and b.hits == 2
  session.enable(b.number, False)
  assert session.run().reason == "end" and off.hits == 0


def test_a_wave_steps_alone_and_a_group_together(session: Session) -> None:
  pcs = lambda: [session.code.where(w.pc or 0) for w in session.waves()]
  session.stepi(2)
  assert pcs() == ["reverse+0x10", "reverse", "reverse", "reverse"]
  session.look_at(1)
  session.step()
  assert pcs() == ["reverse+0x10", "reverse+0x8", "reverse+0x8", "reverse+0x8"] and session.last.waves == (1, 2, 3)
  assert session.run().reason == "end" and (session.buffers()[0] == EXPECTED).all()


def test_a_wave_waits_at_the_barrier(session: Session) -> None:
  barrier = place_of(session, "s_barrier")
  assert session.until(barrier).reason == "step" and session.wave.pc == session.code.resolve(barrier)
  session.stepi()
  assert [w.state for w in session.waves()][0] == "at barrier"
  assert session.stepi().reason == "barrier"
  assert session.next().reason == "step" and session.wave.state == "running"
  assert session.wave.pc == session.code.resolve(barrier) + 4


def test_next_steps_over_calls(session: Session) -> None:
  call = place_of(session, "s_swappc_b64")
  session.until(call)
  assert session.next().pc == session.code.resolve(call) + 4


def test_registers_are_shown_and_written(session: Session) -> None:
  session.until(place_of(session, "ds_store_b32"))
  ds = next(n for n in session.code.function("reverse") if n.instruction is not None
            and n.instruction.mnemonic == "ds_store_b32")
  assert ds.instruction is not None
  data = f"v{ds.instruction.operands['data0'].value}"
  w = session.wave
  assert (w.values(data).view(np.float32) == np.where(A > 4, 2 * A, A)[:32]).all() and w.exec == 0xFFFFFFFF
  assert w.active().all() and len(w.vgprs()) >= 32
  assert session.evaluate(f"{data}[3].f32") == 3.0 and session.evaluate(f"{data}.f32 > 4").sum() == (A[:32] > 4).sum()
  w.write(data, 0x42280000, lane=5)  # 42.0
  assert session.evaluate(f"{data}.f32")[5] == 42
  session.run()
  assert session.buffers()[0][63 - 5] == 42 and (np.delete(session.buffers()[0], 58) == np.delete(EXPECTED, 58)).all()


def test_exec_and_scalars_are_written(session: Session) -> None:
  session.until(place_of(session, "global_store_b32"))
  session.wave.write("exec", 0xFF)
  session.wave.write("vcc", 0xF0F0F0F0)
  session.wave.write("scc", 1)
  session.wave.write("s40", 77)
  w = session.wave
  assert (w.exec, w.vcc, w.scc, w.s(40), w.active().sum()) == (0xFF, 0xF0F0F0F0, 1, 77, 8)
  assert session.view(1).exec == 0xFFFFFFFF and session.view(1).s(40) == 0
  session.run()
  out = session.buffers()[0]
  assert (out[:8] == EXPECTED[:8]).all() and not out[8:32].any() and (out[32:] == EXPECTED[32:]).all()


def test_the_pc_is_written(session: Session) -> None:
  session.wave.write("pc", session.code.function("reverse")[-1].address)  # s_endpgm, for wave 0 alone
  end = session.code.function("reverse")[-1].instruction
  assert end is not None and end.mnemonic == "s_endpgm"
  session.run()
  assert not session.buffers()[0][:32].any() and (session.buffers()[0][64:] == EXPECTED[64:]).all()


def test_memory_breaks(session: Session) -> None:
  out = session.code.data["out"]
  session.break_memory(out + 4 * 40, 4, "w")
  stop = session.run()
  assert stop.reason == "memory" and stop.wave == 1 and "store of 4 bytes at out+0xa0 by lane 8 of wave 1" in stop.text
  session.delete(1)
  lds = session.break_memory(0, 4, "r", "lds", workgroup=1)
  read = session.break_memory(session.code.data["a"], 4, "r")
  assert session.run().reason == "end" and lds.hits == read.hits == 0  # all were read before


def test_lds_breaks(session: Session) -> None:
  session.break_memory(4, 4, "w", "lds")
  stop = session.run()
  assert stop.reason == "lds" and "store of 4 bytes at 0x4 by lane 1 of wave 0" in stop.text
  assert session.wave.lds()[:8].view(np.float32).tolist() == [0.0, 1.0] and len(session.wave.lds()) == 512


def test_watches(session: Session) -> None:
  w = session.watch("f32(out + 4)")
  assert isinstance(w, Watch)
  stop = session.run()
  assert stop.reason == "watch" and f"0.0 -> {EXPECTED[1]}" in stop.text
  session.delete(w.number)
  assert session.run().reason == "end"


def test_a_watch_on_a_register_of_one_wave(session: Session) -> None:
  session.watch("exec", wave=3)
  stop = session.run()
  assert stop.reason == "watch" and stop.wave == 3 and session.view(3).exec != 0xFFFFFFFF
  assert f"0xffffffff -> {session.view(3).exec:#x}, by reverse+" in stop.text


def test_snapshots_differ_and_come_back(session: Session) -> None:
  session.until(place_of(session, "ds_store_b32"))
  s = session.snapshot("stored")
  assert session.diff(s) == []
  session.stepi()
  lines = session.diff(s)
  assert lines[0].startswith("wave 0 pc: reverse+")
  assert any(x.startswith("lds of workgroup 0 +0x4: 0x00000000") for x in lines)
  session.run()
  assert any(x.startswith("out+0x4: ") for x in session.diff(s)) and "waves 0-3 ended" in session.diff(s)
  assert session.restore(s).wave == 0 and session.diff(s) == []
  assert not session.buffers()[0].any() and session.run().reason == "end"
  assert (session.buffers()[0] == EXPECTED).all()


def test_restore_puts_later_workgroups_back(code_object: Build, add_source: str) -> None:
  a = np.arange(64 * 600, dtype=np.float32)
  with tinyhw.debug(code_object(add_source), "add", (600,), (64,), [np.zeros_like(a), a, 1.0]) as d:
    start = d.snapshot()
    d.run()
    assert d.engine.started == 1200 and (d.buffers()[0] == a + 1).all()
    d.restore(start)
    assert not d.buffers()[0].any() and d.engine.started < 1200
    d.break_at("add", wave=1100)
    assert d.run().wave == 1100
    assert d.run().reason == "end" and (d.buffers()[0] == a + 1).all()


def test_a_fault_stands_at_the_instruction(code_object: Build, add_source: str) -> None:
  a = np.arange(64, dtype=np.float32)
  with tinyhw.debug(code_object(add_source), "add", (1,), (64,), [0x7000_0000_0000, a, 1.0]) as d:
    stop = d.run()
    assert stop.reason == "fault" and isinstance(stop.error, PageFault)
    assert "write of 4 bytes at 0x700000000000" in stop.text
    line = d.code.at(stop.pc or 0)
    assert line is not None and line.text.startswith("global_store_b32") and d.wave.state == "running"
    assert d.run().reason == "fault"  # it is still there
    last = d.code.function("add")[-1].address
    for n in range(2): d.view(n).write("pc", last)
    assert d.run().reason == "end"


def test_an_endless_loop_is_a_fault_or_interrupted(code_object: Build) -> None:
  spin = """define amdgpu_kernel void @spin(ptr addrspace(1) %p) #0 {
    br label %loop
  loop:
    %v = load volatile i32, ptr addrspace(1) %p
    %go = icmp eq i32 %v, 12345
    br i1 %go, label %done, label %loop
  done:
    ret void
  }"""
  with tinyhw.debug(code_object(spin), "spin", (1,), (32,), [np.zeros(4, np.int32)]) as d:
    count = 0

    def done() -> str | None:
      nonlocal count
      count += 1
      if count == 50: d.interrupt()
      return None
    assert d.run(done).reason == "interrupted" and count == 50
    assert d.run().reason == "fault" and "a deadlock: a wave waits for 4 bytes" in d.last.text
    d.write(d.code.data["p"], 12345)
    assert d.run().reason == "end"


def test_memory_and_code_are_written(session: Session) -> None:
  a = session.code.data["a"]
  session.write(a, [9.0, 1.5], "f32")
  assert session.read(a, "f32", 2).tolist() == [9.0, 1.5]
  line = next(n for n in session.code.lines if n.text.startswith("v_add_f32") or n.text.startswith("v_mul_f32"))
  assert line.instruction is not None
  session.write(line.address, [0xBF800000] * (line.size // 4))  # s_nop
  written = session.code.at(line.address)
  assert written is not None and written.text == "s_nop 0"
  session.run()
  out = session.buffers()[0]
  assert out[63] == 9 and out[62] == 1.5 and (out[64:] == A.reshape(2, 64)[1, ::-1]).all()


@pytest.mark.parametrize(("use", "message"), [
  (lambda d: d.break_at("nothing"), "no symbol is called 'nothing'; there are reverse, reverse.kd, twice|there are"),
  (lambda d: d.break_at("reverse+0x2"), "reverse[+]0x2: 0x.* is inside the instruction at reverse"),
  (lambda d: d.break_at("0x10"), "0x10: 0x10 is outside the code; code is at 0x"),
  (lambda d: d.break_at("a b"), "'a b' is no location"),
  (lambda d: d.break_on("v_nonsense"), "no instruction of gfx1100 is called 'v_nonsense'"),
  (lambda d: d.break_memory(0, 4, "q"), "'q' is no access"),
  (lambda d: d.break_memory(-1, 4), "-0x1 is no 64-bit address"),
  (lambda d: d.break_memory(0, 4, "r", "moon"), "no memory is called 'moon'"),
  (lambda d: d.delete(9), "no breakpoint 9; there are none"),
  (lambda d: d.watch("v999"), "nothing is called 'v999'; there are registers .* out, a"),
  (lambda d: d.evaluate("v200"), "no register v200; the wave has v0 to v"),
  (lambda d: d.evaluate("1 +"), "'1 [+]' is no expression"),
  (lambda d: d.evaluate("open('x')"), "'x' is no number"),
  (lambda d: d.evaluate("[1]"), "not part of the language"),
  (lambda d: d.evaluate("1 // 0"), "1 // 0: cannot be computed"),
  (lambda d: d.evaluate("v0[64]"), "no lane 64"),
  (lambda d: d.evaluate("v0.q"), "no type is called 'q'"),
  (lambda d: d.evaluate("lds.u32(9999)"), "LDS has 512 bytes, not 0x270f"),
  (lambda d: d.look_at(4), "no wave 4; there are waves 0 to 3"),
  (lambda d: d.wave.write("s200", 1), "no register is called 's200'"),
  (lambda d: d.wave.write("s3", 1 << 32), "s3: 0x100000000 does not fit"),
  (lambda d: d.wave.write("v0", 1, lane=40), "v0: no lane 40"),
  (lambda d: d.wave.scratch_address(99999, 0), "scratch has|no scratch memory"),
  (lambda d: d.restore(3), "no snapshot 3; there are none"),
  (lambda d: d.read(0x10, "u32"), "not mapped"),
  (lambda d: d.read(0, "u99"), "no type is called 'u99'"),
])
def test_wrong_requests_are_one_clear_line(session: Session, use: Callable[[Session], Any], message: str) -> None:
  with pytest.raises(Error, match=message) as caught: use(session)
  assert "\n" not in str(caught.value)
  assert session.run().reason == "end"  # and it goes on


def test_a_closed_debugger_says_so_and_gives_its_memory_back(code_object: Build, add_source: str) -> None:
  a = np.arange(64, dtype=np.float32)
  d = tinyhw.debug(code_object(add_source), "add", (1,), (64,), [np.zeros_like(a), a, 1.0])
  d.stepi(3)
  d.close()
  d.close()
  with pytest.raises(InvalidArgument, match="is closed"): d.run()
  gc.collect()


def test_launch_errors_come_before_the_debugger(code_object: Build, add_source: str) -> None:
  a = np.arange(64, dtype=np.float32)
  build = code_object(add_source)
  with pytest.raises(InvalidArgument, match="no kernel 'sub'"): tinyhw.debug(build, "sub", (1,), (64,), [])
  with pytest.raises(InvalidArgument, match="2 arguments given"): tinyhw.debug(build, "add", (1,), (64,), [a, a])
  with pytest.raises(InvalidArgument, match="at most 256"): tinyhw.debug(build, "add", (1,), (512,), [a, a, 1.0])


RACE = REVERSE.replace("call void @llvm.amdgcn.s.barrier()", "")


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])
def test_hazard_checks_stop_the_run(code_object: Build, cpu: str) -> None:
  """Without its barrier the kernel races through LDS: the debugger stands at the second access."""
  wide = RACE.replace("64 x float", "128 x float").replace("%group, 64", "%group, 128").replace("i32 63", "i32 127")
  a = np.ones(256, np.float32)
  with tinyhw.debug(code_object(wide, cpu=cpu), "reverse", (2,), (128,), [np.zeros_like(a), a], check="race") as d:
    s = d.snapshot()
    stop = d.run()
    assert stop.reason == "check" and "check race: " in stop.text and "LDS" in stop.text and "\n" not in stop.text
    assert stop.pc is not None and any(n.text.startswith("ds_") for n in d.disassemble(2, 0))
    while (stop := d.run()).reason == "check": assert "race" in stop.text
    assert stop.reason == "end"
    with pytest.raises(InvalidArgument, match="the checks cannot go back"): d.restore(s)
  with tinyhw.debug(code_object(REVERSE), "reverse", (2,), (64,), [np.zeros_like(A), A], check="1") as d:
    assert d.run().reason == "end" and (d.buffers()[0] == EXPECTED).all()


def test_wave64_registers(code_object: Build, add_source: str) -> None:
  attributes = '"amdgpu-flat-work-group-size"="1,256" "target-features"="+wavefrontsize64,-wavefrontsize32"'
  a = np.arange(128, dtype=np.float32)
  build = code_object(add_source, attributes=attributes)
  with tinyhw.debug(build, "add", (2,), (64,), [np.zeros_like(a), a, 1.0]) as d:
    assert d.engine.lanes == 64 and d.wave.exec == (1 << 64) - 1 and len(d.wave.v(0)) == 64
    d.until(d.code.where(next(n.address for n in d.code.function("add") if n.text.startswith("global_store"))))
    d.wave.write("exec", 1 << 63)
    assert d.run().reason == "end"
    out, _ = d.buffers()
    assert not out[:63].any() and out[63] == 64 and (out[64:] == a[64:] + 1).all()


def test_the_emulator_as_a_device(code_object: Build, add_source: str) -> None:
  """Ready code objects run without driver and mock; tensors do not."""
  a = np.arange(128, dtype=np.float32)
  out, again = tinyhw.launch(code_object(add_source), "add", (2,), (64,), [np.zeros_like(a), a, 0.5], device="EMU")
  assert (out == a + 0.5).all() and (again == a).all()
  with pytest.raises(Unsupported, match="tensors on EMU"): (tinyhw.Tensor([1.0], device="EMU") + 1).realize()
  tinyhw.Device.close()
