"""Modules that another process has compiled: launched without parsing, and parsed where their code is asked for."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhw import Device, launch
from tinyhw.core.errors import InvalidArgument, MachineFault
from tinyhw.core.store import SUFFIX, store_in
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.background import BACKGROUND
from tinyhw.emulator.jit.native import Native
from tinyhw.emulator.jit.ptx.module import code
from tinyhw.emulator.jit.refusal import TranslatorFailed
from tinyhw.emulator.ptx.module import kept, link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

TEXT = b"""
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 table[4] = {10, 20, 30, 40};
.global .u64 where = table;
.visible .entry add (.param .u64 out, .param .u32 n)
.maxntid 64, 1, 1
{
  .reg .b64 %l<8>; .reg .b32 %r<8>; .shared .b32 turned[64];
  ld.param.u64 %l1, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %l2, %r2, 4;
  mov.u64 %l6, turned;
  add.s64 %l6, %l6, %l2;
  st.shared.u32 [%l6], %r2;
  bar.sync 0;
  ld.shared.u32 %r2, [%l6];
  add.s64 %l3, %l1, %l2;
  and.b32 %r3, %r2, 3;
  mul.wide.u32 %l4, %r3, 4;
  ld.global.u64 %l5, [where];
  add.s64 %l5, %l5, %l4;
  ld.global.u32 %r4, [%l5];
  add.u32 %r4, %r4, %r1;
  st.global.u32 [%l3], %r4;
  ret;
}
.visible .entry far (.param .u64 out)
{
  .reg .b64 %l<2>; .reg .b32 %r<2>;
  ld.param.u64 %l1, [out];
  ld.global.u32 %r1, [%l1+1048576];
  st.global.u32 [%l1], %r1;
  ret;
}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """A store of the test's own, and nothing in memory."""
  monkeypatch.setenv("TINYHW_CACHE", str(tmp_path))
  monkeypatch.setenv("EMU", "jit")
  store_in.cache_clear()
  _forget()
  yield
  store_in.cache_clear()
  _forget()


def _forget() -> None:
  """Be as a new process is."""
  Device.close()
  code._MEMORY.clear()
  code._BESIDE.clear()
  link._linked.cache_clear()


def _add(n: int) -> np.ndarray: return launch(TEXT, "add", 1, 64, [np.zeros(64, np.uint32), n], "EMU")[0]


def _expected(n: int) -> np.ndarray: return np.arange(64, dtype=np.uint32) % 4 * 10 + 10 + n


def test_another_process_launches_without_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
  assert (_add(5) == _expected(5)).all()
  _forget()
  def never(*_: object) -> None: raise AssertionError("parsed")
  monkeypatch.setattr(link, "parse", never)
  assert (_add(7) == _expected(7)).all()


def test_what_kernels_have_in_common_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
  """It is a module beside each of them; so there are two texts for the first kernel, one for the next, and none for
  another process."""
  sent, send = list[str](), servers.Job.send
  def seen(self: servers.Job, text: str) -> None:
    sent.append(text)
    send(self, text)
  monkeypatch.setattr(servers.Job, "send", seen)
  far = np.zeros(1 << 19, np.uint32)
  def both() -> None:
    assert (_add(5) == _expected(5)).all()
    far[1 << 18] = 9
    assert launch(TEXT, "far", 1, 1, [far], "EMU")[0][0] == 9
  both()
  assert ["define void @run(" in text for text in sent] == [True, False, False]
  _forget()
  both()
  assert len(sent) == 3


def test_what_is_kept_is_what_was_parsed() -> None:
  _add(1)
  _forget()
  found, whole = link.link_text(TEXT), link.link(parse(TEXT))
  assert isinstance(found, link.Known) and not found._full
  for name in ("names", "lines", "version", "target", "sm", "offsets", "size", "image", "fixups"):
    assert getattr(found, name) == getattr(whole, name), name
  assert found.kernel("add") == whole.kernel("add")
  assert not found._full
  assert found.kernel("far") == whole.kernel("far")  # nobody had asked for it
  assert found._full


def test_the_reference_has_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
  _add(1)
  _forget()
  monkeypatch.setenv("EMU", "ref")
  assert (_add(3) == _expected(3)).all()


def test_a_fault_of_a_kept_kernel_says_its_line() -> None:
  told = []
  for _ in range(2):
    with pytest.raises(MachineFault) as fault: launch(TEXT, "far", 1, 1, [np.zeros(1, np.uint32)], "EMU")
    told.append(str(fault.value))
    assert isinstance(link.link_text(TEXT), link.Known) == (len(told) > 1)
    _forget()
  assert told[0] == told[1]
  assert "ld.global.u32" in told[0]


def test_launches_are_checked_as_before() -> None:
  _add(1)
  _forget()
  with pytest.raises(InvalidArgument, match="at most 64"):
    launch(TEXT, "add", 1, 65, [np.zeros(64, np.uint32), 1], "EMU")
  with pytest.raises(InvalidArgument, match="it has add, far"):
    launch(TEXT, "sub", 1, 64, [np.zeros(64, np.uint32), 1], "EMU")


def test_damage_and_files_of_another_kind_are_ignored(tmp_path: Path) -> None:
  _add(1)
  path = tmp_path / "emulator" / f"{kept.key(TEXT.rstrip(bytes(1)))}{SUFFIX}"
  data = path.read_bytes()
  for wrong in (data[:-1], b"", data[:60] + b"x" + data[61:]):
    path.write_bytes(wrong)
    _forget()
    assert not isinstance(link.link_text(TEXT), link.Known)
  from tinyhw.emulator.jit.store import store
  store().save(path.stem, {"names": 3}, b"")
  _forget()
  assert not isinstance(link.link_text(TEXT), link.Known)
  assert (_add(2) == _expected(2)).all()


def test_a_module_that_moved_keeps_its_places_by_identity() -> None:
  _add(1)
  _forget()
  found = link.link_text(TEXT)
  moved = found.moved({name: at + 64 for name, at in found.offsets.items()})
  assert moved.flats is found.flats and moved.offsets != found.offsets


def test_variables_of_functions_are_not_kept(tmp_path: Path) -> None:
  text = TEXT.replace(b".shared .b32 turned[64];", b".shared .b32 turned[64]; .global .u32 own;")
  launch(text, "add", 1, 64, [np.zeros(64, np.uint32), 1], "EMU")
  assert not (tmp_path / "emulator" / kept.key(text)).exists()


def test_ptx_needs_no_tables_of_amd() -> None:
  """What both vendors' emulators share brings nothing of one of them along."""
  code = ("import sys, tinyhw.emulator.ptx.launch.grid, tinyhw.emulator.ptx.module.link\n"
          "print([m for m in sys.modules if m.startswith(('tinyhw.isa.amdgcn', 'tinyhw.autogen'))])")
  done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=120,
                        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
  assert (done.stdout, done.stderr) == ("[]\n", "")


def test_what_a_loader_moved_is_kept_where_the_text_has_it() -> None:
  """NVIDIA's driver puts variables where the cubin has them; another process launches the text by itself."""
  text = b""".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .u32 table[2] = {11, 22};
    .visible .entry k (.param .u64 out) { .reg .b64 %o; .reg .b32 %v; ld.param.u64 %o, [out];
    ld.global.u32 %v, [table+4]; st.global.u32 [%o], %v; ret; }"""
  linked = link.link_text(text)
  moved = linked.moved({"table": 4096}).moved({"table": 8192})
  code.kernel(Program(moved, "k", 0), (32, 1, 1))
  _forget()
  again = link.link_text(text)
  assert isinstance(again, link.Known) and again.offsets == linked.offsets == {"table": 0}
  assert moved.offsets == {"table": 8192}
  assert again.kernel("k") == linked.kernel("k")


# ---- kernels that are compiled quickly, and then well

def _texts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
  """For each kernel's text that is compiled from here on, whether it is compiled well."""
  hows, begun = list[bool](), servers.Job.send
  def send(self: servers.Job, text: str) -> None:
    if "define void @run(" not in text: hows.append(self._how == servers.HOT)
    begun(self, text)
  monkeypatch.setattr(servers.Job, "send", send)
  return hows


def test_a_kernel_that_has_run_for_long_is_compiled_well(monkeypatch: pytest.MonkeyPatch) -> None:
  """Once; another process has it so from the start."""
  hows = _texts(monkeypatch)
  assert (_add(5) == _expected(5)).all()
  BACKGROUND.wait()
  assert hows == [False]
  monkeypatch.setattr(code, "WORTH", 0.0)
  _forget()
  for n in range(3):
    assert (_add(n) == _expected(n)).all()
    BACKGROUND.wait()
  assert hows == [False, True]
  _forget()
  assert (_add(9) == _expected(9)).all() and hows == [False, True]


def test_launches_go_on_while_a_kernel_is_compiled_well(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(code, "WORTH", 0.0)
  hows, go = _texts(monkeypatch), threading.Event()
  make = code.Wish.make
  def later(self: code.Wish, header: dict[str, Any]) -> Native:
    assert go.wait(60)
    return make(self, header)
  monkeypatch.setattr(code.Wish, "make", later)
  try:
    for n in range(3): assert (_add(n) == _expected(n)).all()
    assert hows == [False]
  finally: go.set()
  BACKGROUND.wait()
  assert (_add(7) == _expected(7)).all() and hows == [False, True]


def test_what_llvm_does_not_compile_well_stays(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(code, "WORTH", 0.0)
  made = code._compiled
  def compiled(text: str, hot: bool, more: float = 0.0, soon: bool = True) -> bytes:
    if hot and not soon: raise TranslatorFailed("no such register")
    return made(text, hot, more, soon)
  monkeypatch.setattr(code, "_compiled", compiled)
  with pytest.warns(RuntimeWarning, match="kernel add stays as it was compiled at first: no such register"):
    assert (_add(5) == _expected(5)).all()
    BACKGROUND.wait()
  assert (_add(7) == _expected(7)).all()


def test_large_kernels_are_compiled_well_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
  """What is compiled quickly has a place on the stack for each value."""
  monkeypatch.setattr(code, "LARGEST_QUICK", 10)
  hows = _texts(monkeypatch)
  for n in range(2): assert (_add(n) == _expected(n)).all()
  assert hows == [True]
