"""`tinyhw bench --device`: what it measures is right on every device, and wrong values are no figures."""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tinyhw import Device
from tinyhw.cli import card, overheads, tinyhw
from tinyhw.core.errors import Error

NAMES = [c.name for c in card.CASES]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  monkeypatch.setenv("MOCKGPU", "sm_90")
  monkeypatch.setattr(card.Sizes, "of", classmethod(lambda cls, device: cls(32, 4096)))
  monkeypatch.setattr(overheads, "settle", lambda run, runs: run())
  yield
  Device.close()


def told(*words: str) -> Any:
  done = CliRunner().invoke(tinyhw, ["bench", *words])
  assert done.exit_code == 0, done.output + str(done.exception)
  return done.stdout


def test_every_case_beside_cuda() -> None:
  rows = json.loads(told("--device", "nv", "--json"))
  assert [r["case"] for r in rows] == NAMES
  assert all(list(r["runs"]) == ["NV", "CUDA"] and all(map(min, r["runs"].values())) for r in rows)
  assert {r["case"]: r["work"] for r in rows}["copy-in"] == [4096, "B/s"]
  assert {r["case"]: r["work"] for r in rows}["matmul-bf16"] == [2 * 32 ** 3, "FLOP/s"]
  assert {r["case"]: r["most"] for r in rows if r["most"]} == {"launch": 0.7, "matmul-f16": 2.0, "matmul-bf16": 2.0}


@pytest.mark.parametrize("device", ["LLVM", "CUDA", "AMD"])
def test_other_devices(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "sm_90,gfx1100")
  rows = json.loads(told("--device", device, "copy-within", "matmul-f32", "--json"))
  assert [list(r["runs"]) for r in rows] == [[device]] * 2


def test_a_table_fits_a_terminal() -> None:
  text = told("--device", "NV", "launch", "copy-out")
  assert "launch of a tiny kernel" in text and "CUDA" in text and "B/s" in text
  assert max(map(len, text.splitlines())) < 81
  assert "CUDA" not in told("--device", "NV", "launch", "--no-rivals")


def test_whoever_is_there() -> None:
  assert card.rivals("NV") == card.rivals("NV") == ["CUDA"] and card.rivals("NV:1") == ["CUDA:1"]
  assert card.rivals("LLVM") == card.rivals("AMD") == []


def test_rates() -> None:
  case = next(c for c in card.CASES if c.name == "copy-in")
  for seconds, text in ((2e-9, "2.05 TB/s"), (2e-6, "2.05 GB/s"), (2e-3, "2.05 MB/s"), (40.96, "100 B/s")):
    assert card.rate(case, "NV", seconds) == text
  assert card.rate(card.CASES[0], "NV", 1.0) == ""


def test_what_is_wrong_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
  runtime = type(Device["NV"].runtime)
  monkeypatch.setattr(runtime, "copy", lambda self, dst, src, nbytes: None)
  with pytest.raises(Error, match="NV: other bytes came back"): card.copied("out", "NV", card.Sizes(32, 4096))
  monkeypatch.undo()
  monkeypatch.setenv("MOCKGPU", "sm_90")
  monkeypatch.setattr(np, "array_equal", lambda a, b: bool((np.asarray(a) + 1 == b).all()))
  with pytest.raises(Error, match="NV, float16: wrong product"): card.product("float16", "NV", card.Sizes(16, 64))


def test_unknown_names() -> None:
  done = CliRunner().invoke(tinyhw, ["bench", "--device", "NV", "lunch"])
  assert done.exit_code and f"no case of a device is called lunch; there are {', '.join(NAMES)}" in str(done.exception)
