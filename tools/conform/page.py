"""The report as one page that needs nothing else: numbers, coverage, every difference, and a line to sign on."""
from __future__ import annotations

import html
from typing import Final

from tinyhw.tools.conform.judge import VERDICTS
from tinyhw.tools.conform.report import ConformanceReport, by_section, told

STYLE: Final = """
:root { color-scheme: light dark; --pass: #2e7d32; --allowed: #6a9a2d; --fail: #c62828; --error: #8e24aa;
  --none: #90a4ae; --line: color-mix(in srgb, currentColor 15%, transparent) }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: .6rem 0 1.4rem } h1 { font-size: 1.5rem }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } code, pre { font: .88em ui-monospace, monospace }
pre { border-left: 3px solid var(--fail); padding: .3rem .8rem; overflow-x: auto; margin: .5rem 0 }
.pass { color: var(--pass) } .allowed { color: var(--allowed) } .fail { color: var(--fail) }
.error { color: var(--error) } .not-asked { color: var(--none) } .sign { margin: 2rem 0; display: flex; gap: 2rem }
.sign span { flex: 1; border-top: 1px solid currentColor; padding-top: .2rem; font-size: .85em }
.bar { display: flex; height: .7rem; gap: 1px; margin: .5rem 0 1rem } .bar i { background: currentColor }
input { font: inherit; padding: .3rem .6rem; width: 20rem; max-width: 100% }
"""
SCRIPT: Final = """
const box = document.querySelector("input"), rows = [...document.querySelectorAll("#instructions tbody tr")];
box.oninput = () => { const words = box.value.toLowerCase().split(/\\s+/).filter(w => w);
  for (const r of rows) r.hidden = !words.every(w => r.textContent.toLowerCase().includes(w)); };
"""


def _class(verdict: str) -> str: return verdict.replace(" ", "-")


def _cells(values: list[str], kind: str = "td") -> str:
  return "<tr>" + "".join(f"<{kind}{' class=n' if v[:1].isdigit() and kind == 'td' else ''}>{v}</{kind}>"
                          for v in values) + "</tr>"


def page(r: ConformanceReport) -> str:
  """The whole page."""
  c = r.counts
  bar = "".join(f'<i class="{_class(v)}" style="flex:{n}" title="{v}: {n:,}"></i>' for v, n in c.items() if n)
  facts = [("suite", r.suite), ("manual", r.manual), ("device", r.device), *((k, str(v)) for k, v in r.facts.items()),
           ("questions", r.asked), ("seed", r.seed or "the suite's own"), ("began", r.started),
           ("took", f"{r.seconds:.1f} s"), ("verdict", "passes" if r.good else "does not pass")]
  sections = [_cells([html.escape(s), f"{n:,}", f"{k:,}", *(f"{v[name]:,}" for name in VERDICTS)])
              for s, n, k, v in by_section(r.instructions)]
  rows = []
  for i in r.instructions:
    numbers = ", ".join(f"{n:,} {v}" for v, n in i.verdicts.items() if v != "not asked") or html.escape(i.why)
    rows.append(f'<tr><td><code>{html.escape(i.mnemonic)}</code></td><td>{i.section or "-"}</td><td>{i.families}</td>'
                f'<td class="{_class(i.verdict)}">{i.verdict}</td><td>{numbers}</td></tr>')
  differences = "".join(f'<pre id="{html.escape(x.id, quote=True)}">{html.escape(told(x))}</pre>'
                        for x in r.bad) or "<p>None.</p>"
  stale = "".join(f"<li><code>{html.escape(i)}</code></li>" for i in r.stale)
  against = "".join(f"<li><code>{html.escape(i)}</code>: {html.escape(how)}</li>" for i, how in r.against.items())
  title = html.escape(f"Conformance of {r.device}: {r.suite}")
  return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>{STYLE}</style></head>
<body><h1>{title}</h1>
<p>{c["pass"]:,} of {len(r.results):,} cases pass, {c["allowed"]:,} differ inside of what the manual allows,
{c["fail"]:,} fail, {c["error"]:,} ended in an error, {c["not asked"]:,} could not be asked.
{r.coverage_text} are covered.</p><div class="bar">{bar}</div>
<table><tbody>{"".join(_cells([html.escape(k), html.escape(v)]) for k, v in facts)}</tbody></table>
<h2>By section of the manual</h2><table><thead>{_cells(["section", "names", "covered", *VERDICTS], "th")}
</thead><tbody>{"".join(sections)}</tbody></table>
<h2>Differences</h2>{differences}
{f"<h2>Should fail by the list, and does not</h2><ul>{stale}</ul>" if stale else ""}
{f"<h2>Not as recorded</h2><ul>{against}</ul>" if against else ""}
<div class="sign"><span>reviewed by</span><span>date</span><span>signature</span></div>
<h2>Instructions, packets, methods and calls</h2>
<input type="search" placeholder="search: v_add fail" aria-label="search">
<table id="instructions"><thead>{_cells(["name", "manual", "encodings", "verdict", "cases"], "th")}</thead>
<tbody>{"".join(rows)}</tbody></table><script>{SCRIPT}</script></body></html>
"""
