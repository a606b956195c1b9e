"""Workgroups that wait for one another get on in every engine; those that cannot are told, with what each waits for."""
from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu
from tests.emulator.waiting import CASES, HERE, LARGE, Case, binary, device, u32, words
from tests.strength import THOROUGH, examples
from tinyhw.core.errors import Deadlock, DeviceError, Error, WatchdogExpired
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Group

CPUS = ("gfx1100", "gfx1201", "gfx942")
ENGINES = ("ref", "jit", "auto", "both")


def run(case: Case, cpu: str = "gfx1100", name: str = "EMU", **more: object) -> bool:
  out = tinyhw.launch(binary(cpu), case.kernel, (case.grid,), (case.block,), case.args(), device=name, **more)
  return case.right(list(out))


@pytest.mark.parametrize(("cpu", "engine"), [(c, e) for c in CPUS for e in ENGINES
                                             if THOROUGH or c == "gfx1100" or e in {"ref", "jit"}])
def test_workgroups_that_wait_for_one_another_get_on(cpu: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  with device(monkeypatch, "EMU", engine):
    for name, case in CASES.items(): assert run(case, cpu), name


@pytest.mark.parametrize("engine", ENGINES if THOROUGH else ["ref", "jit"])
def test_so_they_do_on_a_mock_card(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  with device(monkeypatch, "AMD", engine):
    for name, case in CASES.items(): assert run(case, name="AMD"), name


@pytest.mark.parametrize("engine", ["ref", "jit", "auto"])
@pytest.mark.parametrize("name", LARGE)
def test_they_wait_for_workgroups_that_begin_later(name: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  with device(monkeypatch, "EMU", engine): assert run(LARGE[name])


@pytest.mark.parametrize("name", CASES if THOROUGH else ["spin_lock", "chain_back", "grid_barrier", "look_back"])
def test_under_the_checks_the_report_and_the_debugger(name: str) -> None:
  case = CASES[name]
  assert run(case, check="report", report=True)
  with tinyhw.debug(binary("gfx1100"), case.kernel, (case.grid,), (case.block,), case.args()) as session:
    assert session.run().reason == "end" and case.right(session.buffers())


@pytest.mark.skipif(which("clang-19") is None, reason="needs clang 19")
@pytest.mark.parametrize("level", ["-O1", "-O3"] if THOROUGH else ["-O1"])
def test_however_they_are_compiled(level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  made = tmp_path / "kernels.co"
  subprocess.run(["clang-19", level, "-x", "c", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-nogpulib",
                  "-fuse-ld=lld", str(HERE / "kernels.c"), "-o", str(made)], check=True)
  for engine in ("ref", "jit"):
    with device(monkeypatch, "EMU", engine):
      for name, case in CASES.items():
        out = tinyhw.launch(made, case.kernel, (case.grid,), (case.block,), case.args(), device="EMU")
        assert case.right(list(out)), name


# ---- deadlocks

def deadlock(kernel: str, grid: int, block: int, args: list[object], name: str = "EMU", cpu: str = "gfx1100") -> str:
  with pytest.raises((Deadlock, DeviceError), match="a deadlock: ") as caught:
    tinyhw.launch(binary(cpu), kernel, (grid,), (block,), args, device=name)
  return str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["EMU", "AMD"])
def test_two_locks_taken_crosswise_are_told_with_both_places(name: str, engine: str,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
  with device(monkeypatch, name, engine):
    text = deadlock("crossed", 2, 32, [words(128), words(1)], name)
    places = set(re.findall(r"PC (0x[0-9a-f]+)", text))
    assert len(places) >= 1 and text.count("crossed+0x") >= 2 and text.count("_cmpswap_") >= 2
    assert "(they hold 0x1)" in text and "first wave 1" in text and "wave 0" in text
    if name == "AMD":
      assert "GPU hang" in text
      tinyhw.Device.close()
    assert run(CASES["chain"], name=name)  # the process goes on


@pytest.mark.parametrize("engine", ["ref", "jit", "auto"])
def test_a_grid_barrier_of_more_workgroups_than_the_card_holds(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Where they wait, who is missing, where those would begin, and what limits."""
  with device(monkeypatch, "EMU", engine):
    text = deadlock("grid_barrier", 100, 1024, [words(1), words(200), u32(100), u32(2)])
  assert "96 waves wait for 4 bytes at 0x" in text and "(they hold 0x60)" in text  # 96 have come
  assert "2,976 waves wait at a barrier before PC 0x" in text and "what it waits for is in arg0" in text
  assert "workgroups 96 to 99 are not resident (the chip holds 16 waves a SIMD, limited by the 16 waves of a SIMD; " \
         "96 workgroups of 32 waves resident at once on 96 compute units) and would begin with PC 0x" in text
  assert "(grid_barrier+0x0)" in text


def test_as_many_as_the_card_holds_pass_it(monkeypatch: pytest.MonkeyPatch) -> None:
  with device(monkeypatch, "EMU", "jit"):
    out = tinyhw.launch(binary("gfx1100"), "grid_barrier", (96,), (1024,), [words(1), words(192), u32(96), u32(2)],
                        device="EMU")
    assert int(out[0][0]) == 192


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_of_a_wave_that_wait_for_one_another(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  with device(monkeypatch, "EMU", engine):
    assert "lane_deadlock+0x" in deadlock("lane_deadlock", 1, 32, [words(1), words(1), u32(1)])


def test_a_deadlock_under_the_debugger_can_be_mended() -> None:
  with tinyhw.debug(binary("gfx1100"), "spin_lock", (2,), (32,), [np.ones(1, np.uint32), words(1), u32(1)]) as s:
    assert s.run().reason == "fault" and "a deadlock: 2 waves wait for 4 bytes" in s.last.text
    s.write(s.code.data["arg0"], 0)
    assert s.run().reason == "end" and s.buffers()[1].tolist() == [3]


@pytest.mark.parametrize("engine", ENGINES)
def test_waves_that_look_at_nothing_are_an_endless_loop(engine: str) -> None:
  gpu = Gpu(1 << 20)
  entry = gpu.put(np.frombuffer(code_of("s_cmp_eq_u32 s2, 3\n s_cbranch_scc1 again\n s_endpgm\nagain:\n"
                                        "s_nop 0\n s_branch again", "gfx11"), np.uint8))
  d = Dispatch(entry, (5, 1, 1), (32, 1, 1), 7 | 0xF0 << 12, 2 << 1 | 1 << 7, user_data=(0, 0))
  with pytest.raises(WatchdogExpired, match="an endless loop: these waves repeat one state") as caught:
    dispatch(gpu.space, gpu.arch, d, engine=engine)
  assert caught.value.wave == 3 and caught.value.pc == entry + 12


class Count(Observer):
  """Counts what it is shown."""
  seen = 0

  def before(self, group: Group, pc: int, instruction: Any) -> None: self.seen += group.size


NOTHING = {
  "jump": "again:\n s_nop 0\n s_branch again",
  "one store": "v_mov_b32 v1, 0\nagain:\n global_store_b32 v1, v1, s[0:1]\n s_branch again",
  "barrier": "v_mov_b32 v1, 0\nagain:\n ds_store_b32 v1, v1\n s_waitcnt lgkmcnt(0)\n s_barrier\n s_branch again",
  "many stores": "v_mov_b32 v1, 0\n s_mov_b32 s4, 0\nagain:\n s_add_u32 s4, s4, 4\n s_and_b32 s4, s4, 0xff\n"
                 " v_mov_b32 v2, s4\n global_store_b32 v2, v1, s[0:1]\n s_branch again",
}


@pytest.mark.parametrize("name", NOTHING)
def test_an_endless_loop_that_changes_nothing_is_told_soon_also_where_it_is_observed(name: str) -> None:
  """Soon is a matter of instructions: a hundred times fewer than the watchdog of an observed launch lets a wave run."""
  gpu, count = Gpu(1 << 20), Count()
  memory = gpu.put(np.zeros(64, np.uint32))
  entry = gpu.put(np.frombuffer(code_of(NOTHING[name] + "\n s_endpgm", "gfx11"), np.uint8))
  d = Dispatch(entry, (3, 1, 1), (64, 1, 1), 7 | 0xF0 << 12, 2 << 1 | 1 << 7, lds_size=512,
               user_data=(memory & 0xFFFFFFFF, memory >> 32))
  with pytest.raises(WatchdogExpired, match="an endless loop: these waves repeat one state"):
    dispatch(gpu.space, gpu.arch, d, observer=count)
  assert 0 < count.seen < 2000 * 6
  for engine in ENGINES:
    with pytest.raises(WatchdogExpired, match="an endless loop: these waves repeat one state"):
      dispatch(gpu.space, gpu.arch, d, engine=engine)


# ---- who has ended makes room

ROOM = """
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  s_cmp_eq_u32 s2, 0
  s_cbranch_scc1 wait
  global_atomic_add_u32 v1, v2, s[0:1]
  s_endpgm
wait:
  global_load_b32 v3, v1, s[0:1] glc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s3, v3
  s_cmp_lt_u32 s3, 9
  s_cbranch_scc1 wait
  s_endpgm"""


@pytest.mark.parametrize("engine", ENGINES)
def test_one_place_is_enough_for_all_that_follow(engine: str) -> None:
  """Of two compute units one workgroup each; the first waits for nine others that come and go in the other place."""
  gpu = Gpu(1 << 20)
  out = gpu.put(words(64))
  entry = gpu.put(np.frombuffer(code_of(ROOM, "gfx11"), np.uint8))
  d = Dispatch(entry, (10, 1, 1), (32, 1, 1), 7 | 0xF0 << 12, 2 << 1 | 1 << 7, lds_size=64 << 10, compute_units=2,
               user_data=(out & 0xFFFFFFFF, out >> 32))
  stats = dispatch(gpu.space, gpu.arch, d, engine=engine)
  assert stats.waves == 10 and gpu.get(out, np.uint32, 2).tolist() == [9 * 32, 0]
  with pytest.raises(Deadlock, match="workgroups 1 to 9 are not resident") as caught:
    gpu.space.store(out, 4, 0)
    dispatch(gpu.space, gpu.arch, replace(d, compute_units=1), engine=engine)
  assert caught.value.pc == entry + 28 and caught.value.address == out


# ---- random programs

STEPS = st.lists(st.tuples(st.sampled_from(["lock", "flag", "work"]), st.integers(0, 2)), min_size=1, max_size=5)


def program(steps: list[tuple[str, int]], groups: int) -> str:
  """Each workgroup works through the steps: adds its number to a counter under a lock; tells that it came, and waits
  until all have; runs a loop as long as its number. s[0:1]: counters, locks and flags, 4 dwords apart."""
  lines = ["v_mov_b32 v2, 1", "v_mov_b32 v3, 0", "v_add_nc_u32 v4, s2, 1", "s_mov_b32 exec_lo, 1"]
  came = [0, 0, 0]
  for n, (kind, which_one) in enumerate(steps):
    lines.append(f"v_mov_b32 v1, {16 * which_one}")
    if kind == "lock":
      lines += [f"again{'abcde'[n]}:", "global_atomic_cmpswap_b32 v5, v1, v[2:3], s[0:1] offset:4 glc",
                "s_waitcnt vmcnt(0)", "v_readfirstlane_b32 s3, v5", "s_cmp_lg_u32 s3, 0",
                f"s_cbranch_scc1 again{'abcde'[n]}", "global_load_b32 v6, v1, s[0:1] glc", "s_waitcnt vmcnt(0)",
                "v_add_nc_u32 v6, v6, v4", "global_store_b32 v1, v6, s[0:1]",
                "global_store_b32 v1, v3, s[0:1] offset:4"]
    elif kind == "flag":
      came[which_one] += groups
      lines += ["global_atomic_add_u32 v1, v2, s[0:1] offset:8", f"again{'abcde'[n]}:", "s_sleep 1",
                "global_load_b32 v6, v1, s[0:1] offset:8 glc", "s_waitcnt vmcnt(0)", "v_readfirstlane_b32 s3, v6",
                f"s_cmp_lt_u32 s3, {came[which_one]:#x}", f"s_cbranch_scc1 again{'abcde'[n]}"]
    else:
      lines += ["s_add_u32 s4, s2, 1", f"again{'abcde'[n]}:", "s_sub_u32 s4, s4, 1", "s_cmp_lg_u32 s4, 0",
                f"s_cbranch_scc1 again{'abcde'[n]}"]
  return "\n".join([*lines, "s_endpgm"])


@settings(max_examples=examples(8))
@given(STEPS, st.integers(1, 40), st.sampled_from(["ref", "jit", "auto", "both"]), st.integers(1, 3))
def test_random_locks_and_flags(steps: list[tuple[str, int]], groups: int, engine: str, waves: int) -> None:
  gpu = Gpu(1 << 20)
  out = gpu.put(words(64))
  entry = gpu.put(np.frombuffer(code_of(program(steps, groups * waves), "gfx11"), np.uint8))
  d = Dispatch(entry, (groups, 1, 1), (32 * waves, 1, 1), 7 | 0xF0 << 12, 2 << 1 | 1 << 7,
               user_data=(out & 0xFFFFFFFF, out >> 32))
  dispatch(gpu.space, gpu.arch, d, engine=engine, watchdog=100_000_000)
  found = gpu.get(out, np.uint32, 12).reshape(3, 4)
  for k in range(3):
    rounds = sum(kind == "lock" and which_one == k for kind, which_one in steps)
    flags = sum(kind == "flag" and which_one == k for kind, which_one in steps)
    assert found[k].tolist() == [rounds * waves * groups * (groups + 1) // 2, 0, flags * groups * waves, 0]


def test_a_deadlock_is_a_watchdogs_error() -> None:
  """Who catches what endless loops raise catches it too."""
  assert issubclass(Deadlock, WatchdogExpired) and issubclass(Deadlock, Error)
