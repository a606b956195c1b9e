"""Variables of the environment: each that is read is named, and what nothing reads is told."""
from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import command
from tinyhw.devices.variables import PREFIXES, PRIVATE, PUBLIC, unread

ROOT = Path(__file__).parents[2]
NAME = re.compile(rf"(?a)\b(?:{'|'.join(PREFIXES)})[A-Z_]*[A-Z]\b")


def test_all_that_the_sources_name_are_known() -> None:
  found = {n for folder in ("tinyhw", "emulator", "mock", "tools") for path in (ROOT / folder).rglob("*.py")
           for n in NAME.findall(path.read_text())}
  assert found - PRIVATE == PUBLIC and not PUBLIC & PRIVATE


def test_the_page_has_all_that_are_public() -> None:
  assert PUBLIC <= {*NAME.findall((ROOT / "docs/environment.md").read_text())}


@pytest.mark.parametrize("name, value, said", [
  ("MOCKGPU_MEM", "weak", "nothing reads MOCKGPU_MEM; did you mean MOCKGPU_MEMORY?"),
  ("TINYHW_QQQQQQ", "1", "nothing reads TINYHW_QQQQQQ; docs/environment.md has all names"),
  ("AMD", "1", "AMD=1 chooses no device here; DEV=AMD does"),
  ("CUDACPU", "1", "CUDACPU=1 chooses no device here; DEV=CUDA does"),
  ("AMD", "yes", None), ("EMU_CHECK", "1", None), ("EMULATOR", "1", None), ("GPU", "1", None)])
def test_what_nothing_reads_is_told(name: str, value: str, said: str | None) -> None:
  assert [*unread({name: value})] == ([] if said is None else [said])
  if name == "AMD": assert not [*unread({name: value, "DEV": "LLVM"})]


def test_it_is_told_once_when_the_first_device_opens() -> None:
  program = "from tinyhw import Device; Device['NPY']; Device['NULL']"
  done = command.python(program, env={**os.environ, "MOCKGPU_SEEED": "3"})
  assert done.stderr == "tinyhw: nothing reads MOCKGPU_SEEED; did you mean MOCKGPU_SEED?\n"
