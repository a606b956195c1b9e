"""Watched code finds out whether the checks find something: what it lets pass has no finding by the reference.

Each wait, barrier and s_nop of LLVM's code is deleted in turn; with `jit` the checks tell what they tell with `ref`.
"""
from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.check.amdgcn.test_deleted import NOP
from tests.emulator.checking import SEEN, check, code_of
from tests.emulator.gpu import Gpu
from tests.strength import THOROUGH, some
from tinyhw.arch import decoded
from tinyhw.cli.checked import binary
from tinyhw.core.errors import Error, Unsupported
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats
from tinyhw.emulator.amdgcn.launch import Workgroups
from tinyhw.emulator.check.amdgcn import price
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.emulator.jit.amdgcn import detect as detector
from tinyhw.emulator.jit.amdgcn import watched
from tinyhw.emulator.jit.amdgcn.forms import Wish
from tinyhw.isa.amdgcn import Instruction, table
from tinyhw.tools.fuzz.build import gpu_object
from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.corpus import all_cases
from tinyhw.tools.fuzz.groups import all_groups
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import Emulated, emulated

EVERY = int(os.environ.get("WATCHED_EVERY", "40" if THOROUGH else "500"))
SKIPS = 1 if THOROUGH else 6  # of so many guards one is left out in turn
GUARDS = re.compile(r"s_(wait\w*|barrier\w*|nop)$")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
  """Whether watched code let a dispatch pass, how often."""
  seen: Counter[bool] = Counter()
  real = detector.detect

  def detect(*arguments: object) -> object:
    found = real(*arguments)  # type: ignore[arg-type]
    seen[found is not None] += 1
    return found
  monkeypatch.setattr(detector, "detect", detect)
  return seen


def guards(code: bytes, isa: str, at: int) -> Iterator[tuple[int, Instruction]]:
  """What orders the instructions of a program, up to its last one."""
  furthest = at
  while True:
    i = table(isa).decode(code, at)
    if i.mnemonic.startswith("s_cbranch"):
      offset = i.fields["simm16"]
      furthest = max(furthest, at + 4 + 4 * (offset - (offset >> 15 << 16)))
    if GUARDS.match(i.mnemonic) and i.size == 4: yield at, i
    if i.mnemonic == "s_endpgm" and at >= furthest: return
    at += i.size


def reports(case: Case, machines: tuple[Emulated, Emulated], checkers: tuple[Checker, Checker]) -> tuple[str, str]:
  """What the checks tell of a case, by the reference and with watched code; faults too."""
  out = []
  for machine, checker in zip(machines, checkers):
    checker.forget()
    try: emulated(case, machine, 0)
    except Error as error: out.append(str(error))
    else: out.append(str(checker.last))
  return out[0], out[1]


@pytest.mark.parametrize(("cpu", "level"), [
  ("gfx1100", 0), ("gfx1100", 2), ("gfx1201", 2), ("gfx942", 2), ("gfx942", 0)])
def test_checks_tell_the_same_with_watched_code(cpu: str, level: int, counted: Counter[bool]) -> None:
  cases = [c for c in all_cases() if not c.name.startswith("amdgcn_")] + programs(range(20))
  chosen = [c for c in cases if zlib.crc32(f"{c.name} {cpu}".encode()) % EVERY == 0] + some(all_groups(), 60)
  chosen = [c for c in chosen if level in c.levels]
  checkers = Checker(), Checker()
  code = gpu_object(chosen, level, cpu=cpu)
  machines = (Emulated(code, decoded(cpu), "ref", checkers[0]), Emulated(code, decoded(cpu), "jit", checkers[1]))
  wrong, clean = [], 0
  for case in chosen:
    try: told = reports(case, machines, checkers)
    except Unsupported: continue
    if told[0] != told[1]: wrong.append((case.name, *told))
    clean += not told[0]
    entry = machines[0].code.kernel(case.name).entry_offset
    for n, (at, i) in enumerate(guards(bytes(machines[0]._image.u8), decoded(cpu).isa, entry)):
      if n % SKIPS != zlib.crc32(case.name.encode()) % SKIPS: continue
      for machine in machines: machine._image.u8[at:at + 4] = list(NOP)
      told = reports(case, machines, checkers)
      for machine in machines: machine._image.u8[at:at + 4] = list(i.data)
      if told[0] != told[1]: wrong.append((f"{case.name} without '{i}' at {at - entry:#x}", *told))
  assert not wrong, "\n".join(map(str, wrong[:5]))
  assert counted[True] > len(chosen) // 3, counted


def planted(code: bytes, name: str, cpu: str) -> Iterator[tuple[str, bytes]]:
  """(what is wrong, the code object with it): no barrier, wait, initialisation or store to LDS, a shifted index."""
  machine = Emulated(code, decoded(cpu), "ref", None)
  at, image = machine.code.kernel(name).entry_offset, bytes(machine._image.u8)
  first = code.index(image[at:at + 64])
  rows, end = [], at
  while not rows or rows[-1][1].mnemonic != "s_endpgm":
    rows.append((first + end - at, table(decoded(cpu).isa).decode(image, end)))
    end += rows[-1][1].size
  for place, i in rows:
    near = re.match(r"ds_(load|read|store|write)", i.mnemonic)
    stores, begins = near and near[1] in {"store", "write"}, re.match(r"v_mov_b32.*, (0|1\.0)$", str(i))
    if GUARDS.match(i.mnemonic) or stores or begins:
      yield f"no '{i}' at {place:#x}", code[:place] + NOP * (i.size // 4) + code[place + i.size:]
    if near and "2" not in i.mnemonic.replace("_b32", ""):  # the offset is the encoding's low 16 bits
      shifted = (int.from_bytes(code[place:place + 2], "little") + 4 * i.size & 0xFFFF).to_bytes(2, "little")
      yield f"'{i}' shifted", code[:place] + shifted + code[place + 2:]


@pytest.mark.filterwarnings("ignore::tinyhw.LDSWarning")
@pytest.mark.parametrize("cpu", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("name", ["reduce", *(["lds", "matmul"] if THOROUGH else [])])
def test_planted_faults_are_told_the_same(name: str, cpu: str, counted: Counter[bool],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
  """A barrier, a wait, an initialisation or a store to LDS is left out, an index shifted: both tell the same."""
  code, x = binary(name, cpu), np.random.default_rng(0).random(4096, np.float32)
  faults = [*planted(code, name, cpu)]
  assert any("barrier" in what for what, _ in faults) and any("shifted" in what for what, _ in faults)
  found = 0
  for what, wrong in [("nothing", code), *some(faults[1:], 9)]:
    told = []
    for engine in ("ref", "jit"):
      checker = Checker()
      with monkeypatch.context() as patch, tinyhw.Device.observing(checker):
        patch.setenv("EMU", engine)
        tinyhw.Device.close()
        try: tinyhw.launch(wrong, name, 1, 256, [np.zeros(4096, np.float32), x], "EMU")
        except Error as error: told.append(f"{error}\n{checker.report}")
        else: told.append(str(checker.report))
    told = [re.sub(r"0x[0-9a-f]{9,}", "<address>", t) for t in told]  # arrays lie elsewhere in each launch
    assert told[0] == told[1], what
    found += bool(told[0])
  assert counted[True] and found, counted


def test_a_fault_and_a_finding_leave_memory_as_it_was() -> None:
  """A dispatch is run again: what it has written by then, also where nobody had, is as before."""
  check("s_load_b64 s[4:5], s[0:1], null\n s_waitcnt lgkmcnt(0)\n v_lshlrev_b32 v1, 2, v0\n"
        " global_load_b32 v2, v1, s[0:1]\n s_waitcnt vmcnt(0)\n v_add_nc_u32 v2, v2, v2\n"
        " global_store_b32 v1, v2, s[0:1]\n global_store_b32 v1, v9, s[0:1] offset:512", waves=2)


def test_watched_code_is_for_what_costs_more_than_it() -> None:
  """A small dispatch is the reference's, until it has been run as often as watched code costs."""
  gpu = Gpu(1 << 24, "gfx1100")
  entry = gpu.put(np.frombuffer(code_of("v_mov_b32 v1, 0\n s_endpgm", gpu.arch.isa), np.uint8))
  d = Dispatch(entry, (1, 1, 1), (32, 1, 1), rsrc1=7, rsrc2=2 << 1 | 1 << 7, user_data=(0, 0))
  engines = {dispatch(gpu.space, gpu.arch, d, observer=Checker()).engine for _ in range(3)}
  assert engines == {"ref"}
  assert dispatch(gpu.space, gpu.arch, d, observer=Checker(), engine="jit").engine == "jit"
  assert dispatch(gpu.space, gpu.arch, d, observer=Checker()).engine == "jit"  # it is compiled by now
  assert dispatch(gpu.space, gpu.arch, d, observer=Checker({"workgroup-race"}), engine="jit").engine == "ref"


def test_watched_code_rests_where_it_is_in_vain() -> None:
  """A program that it cannot let pass is the reference's at once, more and more often."""
  gpu = Gpu(1 << 24, "gfx1100")
  entry = gpu.put(np.frombuffer(code_of("global_store_b32 v0, v9, s[0:1]\n s_endpgm", gpu.arch.isa), np.uint8))
  data = gpu.put(np.zeros(1024, np.uint32))
  d = Dispatch(entry, (1, 1, 1), (32, 1, 1), rsrc1=7, rsrc2=2 << 1 | 1 << 7, user_data=(data & 0xFFFFFFFF, data >> 32))
  program = Workgroups(gpu.space, gpu.arch, d, 1000, DispatchStats()).program
  asked = []
  price.watched(program, False)
  for _ in range(12):
    asked.append(price.pays(program, 1))
    if asked[-1]: price.watched(program, False)
  assert asked == [False] + [True] + [False] * 3 + [True] + [False] * 6
  price.watched(program, True)
  price.watched(program, False)
  assert [price.pays(program, 1) for _ in range(2)] == [False, True]


WIDTHS = {1: ("b8", "u8"), 2: ("b16", "u16"), 4: ("b32", "b32"), 8: ("b64", "b64"), 12: ("b96", "b96"),
          16: ("b128", "b128")}
PLACES = {"own": "", "reversed": "v_xor_b32 v2, 63, v0", "rows": "v_and_b32 v2, 48, v0",
          "columns": "v_and_b32 v2, 15, v0", "one": "v_mov_b32 v2, 0"}
MASKS = ("-1", "0xffff0000", "0x5a5a0ff0")
SHAPES = [(w, p, m) for w in WIDTHS for p in PLACES for m in MASKS]


@pytest.mark.parametrize(("width", "places", "mask"), some(SHAPES[7:], 37), ids=str)
def test_each_shape_of_an_access_to_lds_is_watched(width: int, places: str, mask: str) -> None:
  """Two waves store, meet, and load what either has stored; then without what makes that right."""
  count = max(1, width // 4)
  data = "v4" if count == 1 else f"v[4:{3 + count}]"
  set_up = [f"v_mov_b32 v{4 + k}, {k + 1}" for k in range(count)]
  store, load = (f"{what}_{kind}" for what, kind in zip(("ds_store", "ds_load"), WIDTHS[width]))
  meet = ["s_waitcnt lgkmcnt(0)", "s_barrier"]

  def told(set_up: list[str], stores: str, meet: list[str]) -> set[str]:
    lines = [f"v_mul_u32_u24 v1, {width}, v0", *set_up, f"s_mov_b32 exec_lo, {stores}", f"{store} v1, {data}",
             "s_mov_b32 exec_lo, -1", *meet, PLACES[places] or "v_mov_b32 v2, v0", f"v_mul_u32_u24 v2, {width}, v2",
             f"s_mov_b32 exec_lo, {mask}", f"{load} {data}, v2", "s_waitcnt lgkmcnt(0)", "v_lshlrev_b32 v21, 2, v0",
             *(f"global_store_b32 v21, v{4 + k}, s[0:1] offset:{256 * k}" for k in range(count))]
    return {f.kind for f in check("\n".join(lines), waves=2, lds=2048)}
  assert not told(set_up, "-1", meet)
  assert SEEN[-1][0], "watched code lets what is right pass"
  assert told(set_up[1:], "-1", meet) == {"undefined"}
  told(set_up, "0xff00ff00", meet)
  if places not in {"own", "rows"}: assert told(set_up, "-1", meet[:1]) == {"race"}


def test_waves_that_wait_for_others_are_watched() -> None:
  """A wave asks again and again for what another one of its workgroup has yet to write."""
  assert not check("""
    v_lshrrev_b32 v3, 5, v0
    v_readfirstlane_b32 s4, v3
    v_mov_b32 v1, 0
    v_mov_b32 v2, 1
    s_cmp_eq_u32 s4, 0
    s_cbranch_scc0 on
    ds_store_b32 v1, v1
    on:
    s_waitcnt lgkmcnt(0)
    s_barrier
    s_cmp_eq_u32 s4, 0
    s_cbranch_scc1 wait
    ds_add_u32 v1, v2
    s_branch out
    wait:
    ds_add_rtn_u32 v5, v1, v1
    s_waitcnt lgkmcnt(0)
    v_readfirstlane_b32 s5, v5
    s_cmp_eq_u32 s5, 0
    s_cbranch_scc1 wait
    out:
    s_waitcnt lgkmcnt(0)""", waves=2, workgroups=2, lds=512)
  assert SEEN[-1][0]


@pytest.mark.parametrize("broken", ["its translator", "its text"])
def test_a_mistake_of_ours_in_watched_code_is_told(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """The reference checks the dispatch, and its user hears whose mistake it is that it does so slowly."""
  def shared(inside: Any, *_: object) -> list[Any]:
    if broken == "its translator": raise KeyError("planted")
    inside.e.do("this is no LLVM")
    return []
  monkeypatch.setattr(watched._Inside, "shared", shared)
  monkeypatch.setattr(Wish, "find", lambda *_: None)  # what earlier runs have kept is right
  gpu = Gpu(1 << 24, "gfx1100")
  text = "v_mov_b32 v1, 0\n ds_store_b32 v1, v1\n s_waitcnt lgkmcnt(0)\n s_endpgm"
  entry = gpu.put(np.frombuffer(code_of(text, gpu.arch.isa), np.uint8))
  d = Dispatch(entry, (1, 1, 1), (32, 1, 1), rsrc1=7, rsrc2=2 << 1 | 1 << 7, user_data=(0, 0), lds_size=512)
  with pytest.warns(RuntimeWarning, match="is checked by the interpreter.*(planted|expected instruction)"):
    assert dispatch(gpu.space, gpu.arch, d, observer=Checker(), engine="jit").engine == "ref"
