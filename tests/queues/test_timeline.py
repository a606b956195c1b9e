"""The picture of a capture keeps to what is known of it, and the page answers to mouse and keys."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.kernels.test_source_lines import CLANG, built
from tests.queues.conftest import MACHINES, record
from tests.queues.test_doctor import FAULT, HANG
from tinyhw.cli.timeline import code_of, command, source_of
from tinyhw.queues import page, trace
from tinyhw.queues.capture import Capture
from tinyhw.queues.effects import Does
from tinyhw.queues.events import Doorbell, Seen
from tinyhw.queues.timeline import Timeline, timeline

DRIVER = """
<script>
const told = [], tell = text => told.push(text);
const key = k => picture.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true}));
const press = (x, y) => ["pointerdown", "pointerup"].forEach(t =>
  canvas.dispatchEvent(new PointerEvent(t, {bubbles: true, clientX: x, clientY: y, pointerId: 1})));
const type = text => { $("search").value = text; $("search").dispatchEvent(new Event("input")); };
addEventListener("load", () => {
  key("ArrowRight"); tell("first " + chosen); key("ArrowRight"); tell("second " + chosen);
  key("ArrowDown"); tell("lane " + S[chosen][LANE]); key("ArrowUp"); tell("back " + S[chosen][LANE]);
  const width = to - from;
  key("+"); tell("closer " + ((to - from) / width).toFixed(2)); key("0"); tell("all " + (to - from === width));
  type(T(S.find(s => s[KERNEL] >= 0)[NAME])); tell("found " + hits.length); key("n");
  const n = chosen, s = S[n], w = Math.max(s[END] - s[START], 100);
  tell("launch " + D.kinds[s[KIND]] + ", code " + (document.querySelector("pre.code")?.textContent.length > 20));
  type(""); key("Escape"); tell("nothing " + chosen); view(s[START] - w, s[END] + w);
  const box = canvas.getBoundingClientRect();
  press(box.left + (x(s[START]) + x(s[END])) / 2, box.top + TOP + s[LANE] * ROW + ROW / 2);
  tell("clicked " + (chosen === n));
  picture.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, bubbles: true, cancelable: true}));
  tell("wheel " + (to - from < 3 * w));
  key("f"); tell("finding " + (marked.has(chosen) ? D.marks[marked.get(chosen)][1] : "none"));
  key("Escape"); key("?"); tell("keys " + (document.querySelectorAll("kbd").length > 8));
  document.querySelectorAll("#tabs button")[2].click();
  tell("arrows " + document.querySelectorAll("#panel svg > path").length);
  document.body.append(make("pre", told.join("\\n"), {id: "told"}));
});
</script></body>
"""


def drawn(path: Path) -> Timeline: return timeline(Capture(path), code_of)


def test_spans_keep_to_what_is_known(captured: Path) -> None:
  """A packet lies behind its doorbell, the packet before it, who ends its wait, and before the host knows it over."""
  taken = drawn(captured)
  queues = [n for n, lane in enumerate(taken.lanes) if lane.vendor]
  packets = [s for s in taken.spans if s.lane in queues]
  rung = {s.submission: s.start for s in taken.spans if s.kind == "doorbell"}
  counts: dict[int, int] = {}
  looks = [0]
  for step in Capture(captured):
    if step.follow is not None: counts[step.submission] = len(step.follow.items)
    if isinstance(step.event, Doorbell | Seen) and step.event.signals: looks.append(step.event.at_ns)
  assert len(packets) == sum(counts.values()) and not taken.marks and len(looks) > 2
  for s in packets: assert rung[s.submission] <= s.start <= s.end <= taken.end_ns and not s.stands
  for n in queues:
    row = [s for s in packets if s.lane == n]
    assert all(a.end <= b.start for a, b in zip(row, row[1:]))
  for flow in taken.flows:
    a, b = taken.spans[flow.start], taken.spans[flow.to]
    assert (a.end <= b.end) if flow.why == "seen" else (a.end <= b.start), (a, b)
  assert {f.why for f in taken.flows} == {"rung", "ends the wait", "seen"}
  launches = [s for s in packets if s.kind == "launch"]
  assert launches and all(s.kernel in taken.code and taken.code[s.kernel] for s in launches)


def test_each_wait_has_its_arrow(captured: Path) -> None:
  """From the packet that wrote the value."""
  taken = drawn(captured)
  signals: dict[tuple[int, int], list[int]] = {}
  capture = Capture(captured)
  at = {(s.submission, s.address): n for n, s in enumerate(taken.spans) if s.address}
  for step in capture:
    for item in step.follow.items if step.follow is not None else ():
      for e in item.effects:
        if e.does is Does.SIGNAL: signals.setdefault((e.address, e.value), []).append(at[step.submission, item.address])
  for flow in taken.flows:
    if flow.why != "ends the wait": continue
    span = taken.spans[flow.to]
    assert any(flow.start in rows for rows in signals.values()) and span.kind == "wait"


@pytest.mark.parametrize("device", MACHINES)
@pytest.mark.parametrize("program", [HANG, FAULT], ids=["hang", "fault"])
def test_what_is_wrong_is_marked(device: str, program: str, tmp_path: Path) -> None:
  done = record(tmp_path / "ill.thq", device, program, TINYHW_TIMEOUT_S="1")
  assert done.returncode == 0, done.stderr
  taken = drawn(tmp_path / "ill.thq")
  marks = {m.name for m in taken.marks}
  if program == HANG:
    assert {"stands", "wait"} <= marks
    stands = [taken.spans[m.span] for m in taken.marks if m.name == "stands"]
    assert stands and all(s.kind == "wait" for s in stands)
  else: assert "fault" in marks
  data = page.data(taken)
  assert len(data["marks"]) == len(taken.marks) and (data["waits"] or program == FAULT)
  if program == HANG and device == "AMD" and shutil.which("chromium"): assert "arrows 2" in told(taken, tmp_path)


def test_a_trace_is_of_chromes_form(captured: Path) -> None:
  """JSON, complete events of known tracks, arrows in pairs inside of their spans, counters that never fall below 0."""
  taken = drawn(captured)
  rows = json.loads("".join(trace.text(taken)))["traceEvents"]
  tracks = {(r["pid"], r["tid"]) for r in rows if r["ph"] == "M" and r["name"] == "thread_name"}
  spans = [r for r in rows if r["ph"] == "X"]
  assert len(spans) == len(taken.spans) and all((r["pid"], r["tid"]) in tracks and r["dur"] > 0 for r in spans)
  arrows: dict[int, list[dict[str, Any]]] = {}
  for r in rows:
    if r["ph"] in "sf": arrows.setdefault(r["id"], []).append(r)
  assert len(arrows) == len(taken.flows)
  for a, b in arrows.values():
    assert a["ph"] == "s" and b["ph"] == "f" and a["ts"] <= b["ts"] + 0.001
    for r in (a, b):
      assert any(s["tid"] == r["tid"] and s["ts"] <= r["ts"] <= s["ts"] + s["dur"] for s in spans), r
  assert all(r["args"]["bytes"] >= 0 for r in rows if r["ph"] == "C")


def test_a_long_capture_keeps_its_end(captured: Path) -> None:
  taken = drawn(captured)
  whole, part = page.data(taken), page.data(taken, 20)
  assert not whole["left_out"] and part["left_out"] == len(taken.spans) - 20
  assert part["spans"][-1][:4] == whole["spans"][-1][:4]
  assert all(0 <= a < 20 and 0 <= b < 20 for a, b, _ in part["flows"])


def test_the_command(captured: Path, tmp_path: Path) -> None:
  run = CliRunner().invoke(command, [str(captured), "-o", str(tmp_path / "a.html")])
  assert run.exit_code == 0 and "packets and calls" in run.output
  text = (tmp_path / "a.html").read_text()
  found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
  assert found and json.loads(found[1])["lanes"]
  assert "perfetto" in CliRunner().invoke(command, [str(captured), "-o", str(tmp_path / "a.json")]).output
  wrong = CliRunner().invoke(command, [str(captured), "-o", "a.svg"])
  assert wrong.exit_code and "neither .html nor .json" in str(wrong.exception)
  cannot = CliRunner().invoke(command, [str(captured), "-o", str(tmp_path / "no" / "a.html")])
  assert cannot.exit_code and "cannot be written" in str(cannot.exception)


def told(taken: Timeline, folder: Path, driver: str = DRIVER) -> str:
  """What the driver script saw of the page in a browser."""
  (folder / "page.html").write_text("".join(page.text(taken)).replace("</body>", driver), encoding="utf-8")
  done = subprocess.run(["chromium", "--no-sandbox", "--headless", "--disable-gpu", "--window-size=1200,800",
                         "--virtual-time-budget=3000", f"--user-data-dir={folder / 'profile'}", "--dump-dom",
                         f"file://{folder / 'page.html'}"], capture_output=True, text=True, timeout=110)
  found = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.S)
  assert found, done.stdout[-3000:] + done.stderr[-2000:]
  return found[1]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_mouse_and_keys(captured: Path, tmp_path: Path) -> None:
  seen = told(drawn(captured), tmp_path).splitlines()
  assert seen == ["first 0", "second 1", "lane 1", "back 0", "closer 0.50", "all true", "found 1",
                  "launch launch, code true", "nothing -1", "clicked true", "wheel true", "finding none", "keys true",
                  "arrows 0"]


LINES = """.version 8.0
.target sm_80
.address_size 64
.file 1 "/src/twice.cu"
.visible .entry twice(.param .u64 p) {
  .reg .u64 %rd; .reg .u32 %r;
  ld.param.u64 %rd, [p];
  .loc 1 7 3
  ld.global.u32 %r, [%rd];
  add.u32 %r, %r, %r;
  .loc 1 8 5
  st.global.u32 [%rd], %r;
  .loc 1 0 0
  ret;
}
.visible .entry none() { ret; }
"""


def test_lines_of_ptx_have_their_source() -> None:
  rows = source_of(LINES.encode(), "ptx")
  assert list(rows) == ["twice"] and len(rows["twice"]) == len(code_of(LINES.encode(), "ptx")["twice"])
  at = dict(zip(code_of(LINES.encode(), "ptx")["twice"], rows["twice"]))
  places = {line.split()[0]: [(s.file, s.line, s.column) for s in chain] for line, chain in at.items()}
  assert places["add.u32"] == [("/src/twice.cu", 7, 3)] and places["st.global.u32"] == [("/src/twice.cu", 8, 5)]
  assert places["ld.param.u64"] == [] == places["ret;"]


CLICK = """
<script>
addEventListener("load", () => {
  const told = [], tell = text => told.push(text), box = () => document.querySelector("pre.source").textContent;
  const n = S.findIndex(s => s[KERNEL] >= 0 && T(s[KERNEL]) === "deep");
  choose(n); tell(box());
  const rows = [...document.querySelectorAll("pre.code .has")];
  rows.find(r => r.textContent.includes("v_add_f32")).click(); tell(box());
  tell("same " + rows.filter(r => r.classList.contains("same")).length);
  rows[0].dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true})); tell(box());
  document.body.append(make("pre", told.join("\\n"), {id: "told"}));
});
</script></body>
"""
DEEP = """\
import numpy as np, tinyhw
a = np.arange(32, dtype=np.float32)
tinyhw.launch({!r}, "deep", 1, 32, [np.zeros_like(a), a, 0], device="AMD")
"""


@pytest.mark.skipif(CLANG is None or shutil.which("chromium") is None, reason="there is no clang-19, or no chromium")
def test_a_click_shows_the_line_of_the_source(tmp_path: Path) -> None:
  done = record(tmp_path / "run.thq", "AMD", DEEP.format(built(tmp_path)))
  assert done.returncode == 0, done.stderr
  taken = timeline(Capture(tmp_path / "run.thq"), code_of, source_of)
  seen = told(taken, tmp_path, CLICK).splitlines()
  assert seen[0].startswith("Click a line")
  assert seen[1:3] == ["bugs.c:10 in twice", "inlined into bugs.c:16 in deep"]
  assert any(line.startswith("&gt;   10  static inline") for line in seen) and "same 1" in seen, seen
