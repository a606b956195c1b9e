"""VIZ: a page on the kernels of a run, complete and in one file."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.devices.test_closed import run_apart
from tinyhw import Device, Tensor
from tinyhw.compile import schedule
from tinyhw.compile.compiler import _programs
from tinyhw.engine import viz
from tinyhw.engine.run import kernel_for
from tinyhw.engine.viz import Viz
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.stages import Watcher, stage, watched
from tinyhw.ir.uop import Ops, UOp


def data(page: str) -> Any:
  found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
  assert found is not None
  return json.loads(found[1])


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Viz:
  made = Viz()
  made._process = os.getpid()
  monkeypatch.setenv("VIZ", "1")
  monkeypatch.setattr(viz, "VIZ", made)
  _programs.clear()
  Device.close()
  return made


def test_a_kernel_from_its_graph_to_its_code(taken: Viz) -> None:
  x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="LLVM")
  assert ((x * 2 + 1).sum(1)).tolist() == [8.0, 16.0]
  kernel, = data(taken.page())
  names = [s["name"] for s in kernel["stages"]]
  assert names[0] == "kernel" and names[-1] == "linear program" and {"lowered", "legalized", "expanded"} < set(names)
  first, last = kernel["stages"][0]["rows"], kernel["stages"][-1]["rows"]
  assert {"REDUCE_AXIS", "SINK"} < {row[0] for row in first} and "STORE" in {row[0] for row in last}
  for s in kernel["stages"]: assert all(k < i for i, row in enumerate(s["rows"]) for k in row[3])  # sources come first
  assert any(s["rules"] for s in kernel["stages"]) and "symbolic.py" in json.dumps(kernel["stages"])
  assert kernel["source"].count("define") and "ret" in kernel["code"] and kernel["runs"] == 1 and kernel["seconds"] > 0


def test_the_page_needs_nothing_else(taken: Viz) -> None:
  (Tensor([1.0, 2.0], device="PYTHON") < 2).realize()
  page = taken.page()
  assert not re.search(r"(src|href)\s*=|@import|url\(", page) and "@DATA@" not in page
  assert page.count("</script>") == 2


def test_text_of_a_kernel_ends_no_script(taken: Viz) -> None:
  (Tensor([1.0, 2.0], device="PYTHON") + 1).realize()
  page = next(iter(taken._pages))
  page.code = "</script><script>alert(1)</script>"
  assert data(taken.page())[0]["code"] == page.code and taken.page().count("</script>") == 2


def test_pages_are_bounded(taken: Viz, monkeypatch: pytest.MonkeyPatch) -> None:
  for name in ("KERNELS", "ROWS", "RULES"): monkeypatch.setattr(viz, name, 1)
  for n in (3, 4): (Tensor([1.0] * n, device="PYTHON") * 2 + 1).realize()
  kernel, = data(taken.page())
  assert all(len(s["rows"]) <= 1 and len(s["rules"]) <= 1 for s in kernel["stages"])


def test_machine_code_of_a_gpu_is_read(tmp_path: Path) -> None:
  run_apart("assert (Tensor([1.0, 2.0], device=NAME) + 1).tolist() == [2, 3]", VIZ=str(tmp_path / "page.html"))
  kernel, = data((tmp_path / "page.html").read_text())
  assert "s_endpgm" in kernel["code"] and "v_add_f32" in kernel["code"] and kernel["device"] == "AMD"


def test_watchers_see_their_own_thread_and_block() -> None:
  class Seen(Watcher):
    def __init__(self) -> None: self.stages, self.rules = list[str](), list[tuple[str, str]]()
    def stage(self, name: str, graph: Any) -> None: self.stages.append(name)
    def rewrote(self, rule: str, before: Any, after: Any) -> None: self.rules.append((rule, after.op.name))
  x = schedule([(Tensor([1, 2], device="PYTHON").realize() + 1).uop]).items[0].ast
  rules = PatternMatcher([(UPat(Ops.ADD, "u"), lambda u: u.src[0])])
  outer, inner = Seen(), Seen()
  with watched(outer):
    stage("one", x)
    with watched(inner): graph_rewrite(x, rules)
    stage("two", x)
  stage("three", x)
  graph_rewrite(x, rules)
  assert outer.stages == ["one", "two"] and not outer.rules
  assert [after for _, after in inner.rules] == ["LOAD"] and "test_viz.py" in inner.rules[0][0]
  assert isinstance(x, UOp) and kernel_for(x, "PYTHON").spec.uops


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_a_browser_shows_it(taken: Viz, tmp_path: Path) -> None:
  (Tensor([[1.0, 2.0]], device="PYTHON").sum(1) + 1).realize()
  taken.write(tmp_path / "page.html")
  done = subprocess.run(["chromium", "--no-sandbox", "--headless", "--disable-gpu", "--virtual-time-budget=3000",
                         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"file://{tmp_path / 'page.html'}"],
                        capture_output=True, text=True, timeout=110)
  assert "<svg" in done.stdout and "linear program</button>" in done.stdout and "0 DEFINE_GLOBAL 0" in done.stdout
