"""The page of `tinyhw bringup`: no scripts, nothing from elsewhere; the styles are those of launch reports."""
from __future__ import annotations

from html import escape
from typing import Any, Final

from tinyhw.bringup.result import ABSENT, BLOCKED, BROKEN, PASSED, STATES, LadderRun, Result
from tinyhw.bringup.rung import Ladder
from tinyhw.emulator.debug.page import STYLE

_COLORS: Final = {PASSED: "good", BROKEN: "bad", BLOCKED: "warn", ABSENT: "soft"}
_MORE: Final = """
td { vertical-align: top; } td.state { width: 6rem; font-weight: 600; } td.ms { width: 6rem; }
.passed { color: var(--good); } .broken { color: var(--bad); } .blocked { color: var(--warn); }
.absent { color: var(--soft); } pre { font-size: .8rem; overflow-x: auto; margin: .4rem 0; }
.broken-box { background: var(--card); border: 1px solid var(--bad); border-radius: 10px; padding: .8rem 1rem;
  margin: 1rem 0; } dt { color: var(--soft); font-size: .84rem; margin-top: .4rem; } dd { margin: 0; }
"""


def page(run: LadderRun, ladder: Ladder[Any]) -> str:
  """The whole page."""
  first = run.first_broken
  title = f"Bring-up of {run.vendor}, {run.device}"
  says = "every rung holds" if run.whole else f"the first broken rung is {first.rung}" if first else "rungs are blocked"
  cards = "".join(f'<div class=card><b style="color:var(--{_COLORS[s]})">{len(run.of(s))}</b><span>{s}</span></div>'
                  for s in STATES)
  boxes = "".join(_box(r, ladder[r.rung].why) for r in run.of(BROKEN))
  return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
          f'content="width=device-width"><title>{escape(title)}</title><style>{STYLE}{_MORE}</style></head>\n<body>\n'
          f"<h1>{escape(title)} <small>{escape(says)}</small></h1>\n<div class=cards>{cards}</div>\n{boxes}\n"
          + "\n".join(_branch(run, ladder, b) for b in ladder.branches) + f"\n{_facts(run)}</body></html>\n")


def _box(r: Result, why: str) -> str:
  rows = [("found", r.found), ("wanted", r.wanted), ("look at", r.look_at)]
  text = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in rows if value)
  more = "\n".join([*r.facts, *r.packets])
  packets = f"<dt>packets</dt><dd><pre>{escape(more)}</pre></dd>" if more else ""
  return f"<div class=broken-box><b class=broken>{escape(r.rung)}</b> {escape(why)}<dl>{text}{packets}</dl></div>"


def _branch(run: LadderRun, ladder: Ladder[Any], branch: str) -> str:
  rows = [r for r in run.results if r.rung.partition(".")[0] == branch]
  if not rows: return ""
  lines = "".join(
    f'<tr><td><code>{escape(r.rung.partition(".")[2])}</code></td><td class="state {r.state}">{r.state}</td>'
    f'<td class="n ms">{r.seconds * 1000:.0f} ms</td><td>{escape(r.evidence or r.found)}'
    f'<br><span class=soft>{escape(ladder[r.rung].why)}</span></td></tr>' for r in rows)
  return f"<h2>{escape(branch)}</h2><div class=wide><table>{lines}</table></div>"


def _facts(run: LadderRun) -> str:
  if not run.facts: return ""
  lines = "".join(f"<tr><td><code>{escape(k)}</code></td><td>{escape(str(v))}</td></tr>" for k, v in run.facts.items()
                  if not isinstance(v, dict))
  return f"<h2>device</h2><div class=wide><table>{lines}</table></div>"
