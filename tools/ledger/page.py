"""The ledger as one HTML page that needs nothing else: a tab a generation, its numbers, and a table to search."""
from __future__ import annotations

import html
from typing import Final

from tinyhw.arch import decoded
from tinyhw.autogen import isa_manuals
from tinyhw.tools.ledger.ledger import Entry, Summary, entries, summary

COLOURS: Final = {"exact": "#2e7d4f", "ULP": "#7aa63c", "approximate": "#d99a2b", "no effect": "#8a94a6",
                  "unsupported": "#c0392b", "not compute": "#c9ced6"}
STYLE: Final = """
:root { --ink: #1d2430; --soft: #667085; --line: #e3e7ee; --paper: #fbfcfe; --card: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ecf3; --soft: #98a2b3; --line: #2b3342; --paper: #12161d; --card: #191f29; } }
* { box-sizing: border-box } body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif } main { max-width: 76rem; margin: 0 auto; padding: 2rem 1.2rem 4rem }
h1 { font-size: 1.6rem; margin: 0 } p { color: var(--soft); max-width: 46rem }
nav { display: flex; gap: .4rem; margin: 1.2rem 0 } button { font: inherit; color: inherit; cursor: pointer;
  background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .4rem .9rem }
button[aria-selected=true] { border-color: var(--ink); font-weight: 600 }
section { display: none } section.on { display: block }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .7rem; margin: .8rem 0 }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: .7rem .9rem }
.card b { display: block; font-size: 1.45rem; font-variant-numeric: tabular-nums } .card span { color: var(--soft) }
.bar { display: flex; height: 1.1rem; border-radius: .4rem; overflow: hidden; margin: .6rem 0 }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; color: var(--soft); margin-bottom: 1rem }
.legend i, td i { display: inline-block; width: .7rem; height: .7rem; border-radius: .2rem; margin-right: .4rem }
input { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .45rem .7rem; width: min(28rem, 100%); margin: .4rem 0 .8rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .92rem }
th { text-align: left; color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--line) }
th, td { padding: .28rem .7rem .28rem 0; white-space: nowrap } td { border-bottom: 1px solid var(--line) }
td:first-child { font-family: ui-monospace, monospace } td.wide { white-space: normal }
"""
SCRIPT: Final = """
const show = name => { for (const s of document.querySelectorAll("section")) s.classList.toggle("on", s.id === name);
  for (const b of document.querySelectorAll("nav button")) b.setAttribute("aria-selected", b.dataset.to === name); };
for (const b of document.querySelectorAll("nav button")) b.onclick = () => show(b.dataset.to);
for (const box of document.querySelectorAll("input")) box.oninput = () => {
  const words = box.value.toLowerCase().split(/\\s+/);
  for (const row of box.parentElement.querySelectorAll("tbody tr"))
    row.hidden = !words.every(w => row.dataset.text.includes(w)); };
show(document.querySelector("section").id);
"""


def _card(value: str, what: str) -> str:
  return f'<div class="card"><b>{value}</b><span>{html.escape(what)}</span></div>'


def _bar(found: list[Entry]) -> str:
  """Shares of the grades among what compute code can use."""
  compute = [e for e in found if e.grade != "not compute"]
  parts, legend = [], []
  for grade, colour in COLOURS.items():
    count = sum(e.grade == grade for e in compute)
    if not count: continue
    parts.append(f'<div style="flex:{count};background:{colour}" title="{grade}: {count}"></div>')
    legend.append(f'<span><i style="background:{colour}"></i>{_GRADES.get(grade, grade)} {count:,}</span>')
  return f'<div class="bar">{"".join(parts)}</div><div class="legend">{"".join(legend)}</div>'


_GRADES: Final = {"ULP": "within the manual's ULP"}


def _row(e: Entry) -> str:
  cells = [f'<i style="background:{COLOURS[e.grade]}"></i>{html.escape(e.meaning)}',
           " ".join(e.families), str(e.encodings), e.section or "-", html.escape(e.text)]
  text = html.escape(" ".join([e.mnemonic, e.meaning, *e.families, *e.witnesses]).lower(), quote=True)
  return (f'<tr data-text="{text}"><td>{e.mnemonic}</td>' + "".join(f"<td>{c}</td>" for c in cells)
          + f'<td class="wide">{html.escape(", ".join(e.witnesses)) or "-"}</td></tr>')


def _section(arch: str, found: list[Entry], s: Summary) -> str:
  cards = [_card(f"{s.percent:.1f} %", "of compute instructions have a meaning"),
           _card(f"{s.executed:,}", "executed by tests beside an independent witness"),
           _card(f"{s.compute:,}", "instructions that compute code can use"),
           _card(f"{s.encodings:,}", f"encodings, {s.text_differs} differ from LLVM in text"),
           _card(f"{s.manual:,}", f"described by {isa_manuals.MANUALS[decoded(arch).isa]}")]
  heads = ("instruction", "meaning", "encoding", "rows", "manual", "text", "witnesses")
  return (f'<section id="{arch}"><div class="cards">{"".join(cards)}</div>{_bar(found)}'
          f'<input placeholder="search: v_add exact" aria-label="search"><div class="scroll"><table><thead><tr>'
          + "".join(f"<th>{h}</th>" for h in heads) + "</tr></thead><tbody>"
          + "".join(map(_row, found)) + "</tbody></table></div></section>")


def page(arches: list[str]) -> str:
  """The whole page."""
  parts = {arch: entries(arch) for arch in arches}
  tabs = "".join(f'<button data-to="{a}">{a}</button>' for a in parts)
  sections = "".join(_section(a, found, summary(a, found)) for a, found in parts.items())
  return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>tinyhw: fidelity ledger</title>
<style>{STYLE}</style></head><body><main><h1>Fidelity ledger</h1>
<p>What the emulator makes of each AMD instruction, where that meaning comes from, and what it was held against.
Exact means bit for bit as the manual defines it; within n ULP means that ours is the exact result rounded once and the
manual allows the chip that error; approximate means that the manual leaves the result open.</p>
<nav>{tabs}</nav>{sections}</main><script>{SCRIPT}</script></body></html>
"""
