"""CONTRIBUTING.md's worked examples, done as they stand: each block goes into the module, class or table that its first
line names, and the functions of a block of tests must then pass, which they do not before."""
from __future__ import annotations

import importlib
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from tests.test_layout import ROOT
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.core.errors import Unsupported
from tinyhw.core.table import Handlers
from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.mock.amd.chip.pm4 import ComputeQueue
from tinyhw.mock.nv.driver.controls import Controls
from tinyhw.queues.amd.effects import effects
from tinyhw.tools.witness.run import bench
from tinyhw.tools.witness.table import WITNESSES

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
NAME = "v_lshl_add_u32"
Block = tuple[str, str, str]  # file, "in" which class or table, text


def blocks(title: str) -> list[Block]:
  """The blocks of a section, in order."""
  section = re.search(rf"^## {title}\n(.*?)(?=^## )", PAGE, re.M | re.S)
  assert section, title
  found = re.findall(r"^```python\n# ([\w./]+)(?:, in (\w+))?\n(.*?)^```$", section[1], re.M | re.S)
  assert len(found) == section[1].count("```python"), "a block does not say where it goes"
  return found


def put_in(block: Block, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
  """Do what a block says; the functions of a block of tests."""
  path, inside, text = block
  if path.startswith("tests/"):
    assert (ROOT / path).exists(), path
    space: dict[str, Any] = {}
    exec(compile(text, path, "exec"), space)
    return [f for name, f in space.items() if name.startswith("test_")]
  module = importlib.import_module(f"tinyhw.{path.removeprefix('tinyhw/').removesuffix('.py').replace('/', '.')}")
  place = getattr(module, inside) if inside else None
  if isinstance(place, dict):
    for key, value in eval("{" + text + "}", vars(module)).items():
      assert key not in place
      monkeypatch.setitem(place, key, value)
    return []
  names = {**vars(module), **(vars(place) if place else {})}
  made: dict[str, Any] = {}
  exec(compile("from __future__ import annotations\n" + textwrap.dedent(text), path, "exec"), names, made)
  for name, value in made.items():
    if name != "annotations": monkeypatch.setattr(place or module, name, value, raising=False)
  return []


def forgets(monkeypatch: pytest.MonkeyPatch, table: Handlers[Any]) -> None:
  """What is registered from here on is gone after the test."""
  monkeypatch.setattr(table, "_handlers", dict(table._handlers))


def done(title: str, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
  """The tests of a section, when all that it says is done."""
  return [test for block in blocks(title) for test in put_in(block, monkeypatch)]


def before(title: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
  """The proof of a section, which is its last block."""
  return put_in(blocks(title)[-1], monkeypatch)[0]


@pytest.fixture
def practised(monkeypatch: pytest.MonkeyPatch) -> None:
  """The tables without the instruction that the page takes away."""
  judge, everywhere = bench("gfx1100"), MEANINGS._tables[""]
  forgets(monkeypatch, everywhere)
  monkeypatch.setattr(MEANINGS, "_meanings", dict(MEANINGS._meanings))
  monkeypatch.setattr(WITNESSES, "_rows", dict(WITNESSES._rows))
  monkeypatch.setattr(judge, "prepared", {})
  del everywhere._handlers[NAME], MEANINGS._meanings["", NAME], WITNESSES._rows["", NAME]


def test_an_instruction(practised: None, monkeypatch: pytest.MonkeyPatch) -> None:
  (meaning, witness, proof) = blocks("An instruction")
  assert coverage.status(NAME, "gfx11") == "missing"
  put_in(witness, monkeypatch)
  prove, = put_in(proof, monkeypatch)
  with pytest.raises(AssertionError): prove()
  assert re.search(rf"Unsupported.*{NAME}", str(bench("gfx1100").check(NAME)[0]))
  put_in(meaning, monkeypatch)
  assert coverage.status(NAME, "gfx11") == "exact"
  prove()


def test_the_witness_notices_another_meaning(practised: None, monkeypatch: pytest.MonkeyPatch) -> None:
  (path, inside, text), witness, proof = blocks("An instruction")
  put_in((path, inside, text.replace("+ c", "- c")), monkeypatch)
  put_in(witness, monkeypatch)
  with pytest.raises(AssertionError): put_in(proof, monkeypatch)[0]()


def test_a_packet(monkeypatch: pytest.MonkeyPatch) -> None:
  forgets(monkeypatch, ComputeQueue.packets_table)
  packet = pm4.COND_WRITE(poll_address=8, reference=0, mask=0, write_address=16, write_data=3)
  assert effects(packet) == [] and "COND_WRITE" in ComputeQueue.packets_table.gaps(pm4.PACKETS)
  for block in blocks("A packet"):
    if "commands" in block[0]: put_in(block, monkeypatch)  # the driver's verb; the mock does not know the packet yet
  with pytest.raises(Unsupported, match="COND_WRITE"): before("A packet", monkeypatch)()
  tests = done("A packet", monkeypatch)
  assert len(tests) == 2
  for test in tests: test()
  assert [(e.address, e.size) for e in effects(packet)] == [(8, 4), (16, 4)]


def test_an_ioctl(monkeypatch: pytest.MonkeyPatch) -> None:
  forgets(monkeypatch, Controls.table)
  with pytest.raises(Exception, match="NV_ERR_NOT_SUPPORTED"): before("An ioctl", monkeypatch)()
  prove, = done("An ioctl", monkeypatch)
  prove()


def test_the_files_that_it_names_are_there() -> None:
  names = set(re.findall(r"`((?:tinyhw|mock|emulator|autogen|tests|tools|docs)/[\w./]+)`", PAGE))
  assert len(names) > 40 and not [n for n in names if not (ROOT / n).exists()]
