"""The ledger as one HTML page that needs nothing else: a tab a generation, its numbers, and a table to search."""
from __future__ import annotations

import html
from typing import Final

from tinyhw.arch import decoded
from tinyhw.autogen import isa_manuals
from tinyhw.tools.ledger.ledger import Entry, Summary, entries, summary

GRADES: Final = {"exact": "exact", "ULP": "within n ULP", "approximate": "approximate", "no effect": "no effect",
                 "unsupported": "unsupported", "not compute": "not compute"}
STYLE: Final = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5d6779; --line: #e3e7ee; --paper: #fbfcfe; --card: #fff;
  --on: #1d2430; --exact: #2e7d4f; --ulp: #7aa63c; --approximate: #d99a2b; --none: #8a94a6; --unsupported: #c0392b;
  --other: #c9ced6 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf3; --soft: #9aa5b8; --line: #2b3342; --paper: #12161d;
  --card: #191f29; --on: #cfd8e6; --exact: #4cb27a; --ulp: #9cc95a; --approximate: #e8b04c; --none: #7f8aa0;
  --unsupported: #e5695c; --other: #4a5364 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 82rem; margin: 0 auto; padding: 2rem 1.2rem 4rem }
h1 { font-size: 1.6rem; margin: 0 } p { color: var(--soft); max-width: 52rem; margin: .6rem 0 0 }
button, input { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; padding: .35rem .8rem }
button { cursor: pointer } :focus-visible { outline: 2px solid var(--approximate); outline-offset: 1px }
[aria-selected=true], [aria-pressed=true] { border-color: var(--on); box-shadow: inset 0 0 0 1px var(--on) }
[hidden] { display: none !important }
.tools { position: sticky; top: 0; z-index: 2; background: var(--paper); display: flex; flex-wrap: wrap;
  gap: .4rem .5rem; align-items: center; align-content: center; height: 7rem; margin: .6rem 0 }
.tools nav { display: flex; gap: .4rem }
.tools input { flex: 1 1 14rem; min-width: 9rem } .grades { display: flex; flex-wrap: wrap; gap: .4rem; flex: 1 1 100% }
.grades button { padding: .2rem .6rem; font-size: .87rem } .shown { color: var(--soft); align-self: center;
  font-variant-numeric: tabular-nums } .cards { display: grid; gap: .7rem; margin: .4rem 0 .8rem;
  grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)) }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: .7rem .9rem }
.card b { display: block; font-size: 1.45rem; font-variant-numeric: tabular-nums } .card span { color: var(--soft) }
.bar { display: flex; height: .8rem; border-radius: .4rem; overflow: hidden; margin: .6rem 0 1.2rem; gap: 1px }
i { display: inline-block; width: .7rem; height: .7rem; border-radius: .2rem; margin-right: .45rem }
.exact { background: var(--exact) } .ULP { background: var(--ulp) } .approximate { background: var(--approximate) }
.no-effect { background: var(--none) } .unsupported { background: var(--unsupported) }
.not-compute { background: var(--other) }
table { border-collapse: collapse; width: 100%; table-layout: fixed; font-size: .92rem }
thead th { position: sticky; top: 7rem; z-index: 1; background: var(--paper); text-align: left; color: var(--soft);
  font-weight: 500; box-shadow: inset 0 -1px var(--line) }
th, td { padding: .3rem .8rem .3rem 0; vertical-align: baseline; overflow-wrap: anywhere }
td { border-bottom: 1px solid var(--line) } tbody tr:hover { background: var(--card) }
td:first-child { font-family: ui-monospace, monospace; font-size: .95em }
td small { color: var(--soft); font-size: 1em }
th:nth-child(1) { width: 27% } th:nth-child(3) { width: 11% } th:nth-child(4) { width: 5.2rem }
th:nth-child(5) { width: 5rem } th:nth-child(6) { width: 17% }
td:nth-child(4), th:nth-child(4) { text-align: right; padding-right: 1.6rem; font-variant-numeric: tabular-nums }
@media (max-width: 56rem) { .tools { position: static; height: auto } thead th { top: 0 }
  th:nth-child(n+3):nth-child(-n+4), td:nth-child(n+3):nth-child(-n+4) { display: none }
  th:nth-child(1) { width: 34% } th:nth-child(5), td:nth-child(5) { display: none } }
@media print { .tools { display: none } thead th { position: static } }
"""
# One row of tools for all generations: a tab, words to search for and grades choose what is shown; #gfx942 opens a tab.
SCRIPT: Final = """
const all = q => [...document.querySelectorAll(q)], box = document.querySelector("input"), off = new Set();
const sections = all("section"), tabs = all("nav button"), grades = all(".grades button");
let current;
const filter = () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(w => w);
  const rows = [...current.querySelectorAll("tbody tr")];
  let shown = 0;
  for (const row of rows) {
    row.hidden = off.has(row.dataset.grade) || !words.every(w => row.dataset.text.includes(w));
    shown += !row.hidden; }
  document.querySelector(".shown").textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
};
const show = name => {
  current = sections.find(s => s.dataset.arch === name) || sections[0];
  for (const s of sections) s.hidden = s !== current;
  for (const t of tabs) t.setAttribute("aria-selected", t.dataset.to === current.dataset.arch);
  for (const g of grades) {
    const count = current.querySelectorAll(`tr[data-grade="${g.dataset.grade}"]`).length;
    g.hidden = !count; g.querySelector("span").textContent = count.toLocaleString("en"); }
  filter(); };
for (const t of tabs) t.onclick = () => { history.replaceState(null, "", "#" + t.dataset.to); show(t.dataset.to); };
for (const g of grades) g.onclick = () => {
  if (!off.delete(g.dataset.grade)) off.add(g.dataset.grade);
  g.setAttribute("aria-pressed", !off.has(g.dataset.grade)); filter(); };
box.oninput = filter;
onhashchange = () => show(location.hash.slice(1));
addEventListener("keydown", e => { if (e.key === "/" && e.target !== box) { e.preventDefault(); box.focus(); } });
show(location.hash.slice(1));
"""


def _class(grade: str) -> str: return grade.replace(" ", "-")


def _card(value: str, what: str) -> str:
  return f'<div class="card"><b>{value}</b><span>{html.escape(what)}</span></div>'


def _bar(found: list[Entry]) -> str:
  """Shares of the grades among what compute code can use."""
  compute = [e.grade for e in found if e.grade != "not compute"]
  counts = {grade: compute.count(grade) for grade in GRADES}
  parts = [f'<div class="{_class(g)}" style="flex:{n}" title="{GRADES[g]}: {n:,}"></div>' for g, n in counts.items()]
  return f'<div class="bar">{"".join(parts)}</div>'


def _row(e: Entry) -> str:
  grade, _, why = e.meaning.partition(": ")
  meaning = f'<i class="{_class(e.grade)}"></i>{html.escape(grade)}'
  if why: meaning += f" <small>{html.escape(why)}</small>"
  cells = [meaning, " ".join(e.families), str(e.encodings), e.section or "-", html.escape(e.text),
           html.escape(", ".join(e.witnesses)) or "-"]
  text = html.escape(" ".join([e.mnemonic, e.meaning, *e.families, *e.witnesses]).lower(), quote=True)
  return (f'<tr data-text="{text}" data-grade="{_class(e.grade)}"><td>{e.mnemonic}</td>'
          + "".join(f"<td>{c}</td>" for c in cells) + "</tr>")


def _section(arch: str, found: list[Entry], s: Summary) -> str:
  cards = [_card(f"{s.percent:.1f} %", "of compute instructions have a meaning"),
           _card(f"{s.executed:,}", "executed by tests beside an independent witness"),
           _card(f"{s.compute:,}", "instructions that compute code can use"),
           _card(f"{s.encodings:,}", f"encodings; {s.text_differs} instructions' text is not LLVM's"),
           _card(f"{s.manual:,}", f"described by {isa_manuals.MANUALS[decoded(arch).isa]}")]
  heads = ("instruction", "meaning", "encoding", "rows", "manual", "text", "witnesses")
  return (f'<section data-arch="{arch}"><div class="cards">{"".join(cards)}</div>{_bar(found)}<table><thead><tr>'
          + "".join(f"<th>{h}</th>" for h in heads) + "</tr></thead><tbody>"
          + "".join(map(_row, found)) + "</tbody></table></section>")


def page(arches: list[str]) -> str:
  """The whole page."""
  parts = {arch: entries(arch) for arch in arches}
  tabs = "".join(f'<button role="tab" data-to="{a}">{a}</button>' for a in parts)
  grades = "".join(f'<button data-grade="{_class(g)}" aria-pressed="true"><i class="{_class(g)}"></i>{name} '
                   "<span></span></button>" for g, name in GRADES.items())
  sections = "".join(_section(a, found, summary(a, found)) for a, found in parts.items())
  return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>tinyhw: fidelity ledger</title>
<style>{STYLE}</style></head><body><main><h1>Fidelity ledger</h1>
<p>What the emulator makes of each AMD instruction, where that meaning comes from, and what it was held against.
Exact means bit for bit as the manual defines it; within n ULP means that ours is the exact result rounded once and the
manual allows the chip that error; approximate means that the manual leaves the result open.</p>
<div class="tools"><nav role="tablist">{tabs}</nav>
<input type="search" placeholder="search: v_add exact" aria-label="search">
<div class="shown" aria-live="polite"></div><div class="grades">{grades}</div></div>{sections}</main>
<script>{SCRIPT}</script></body></html>
"""
