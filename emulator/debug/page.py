"""The report as one HTML page: no scripts, no fonts, no images from elsewhere; light and dark."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
  from tinyhw.emulator.debug.parts import Words
  from tinyhw.emulator.debug.report import AccessCounts, Instruction, Report

# Colours of the units, the same in bar, legend and listing; told apart also by people who see few colours.
STYLE: Final = """
:root { color-scheme: light dark; --bg: #fbfaf8; --card: #ffffff; --ink: #1f2328; --soft: #68707a; --line: #e3e0da;
  --heat: 214, 93, 14; --good: #2f7d4f; --warn: #b4540a; --bad: #b3261e; --track: #ece9e3;
  --VALU: #3b6fb6; --transcendental: #8a5bb5; --matrix: #c2478a; --SALU: #6f9fc9; --SMEM: #4d9c93; --VMEM: #d98324;
  --LDS: #b9a02c; --branch: #7a8594; --barrier: #c0483e; --wait: #b9bfc7; --export: #8d6e52; }
@media (prefers-color-scheme: dark) { :root { --bg: #16181b; --card: #1e2125; --ink: #e5e2dc; --soft: #98a0aa;
  --line: #32363c; --heat: 240, 140, 60; --good: #6cc08b; --warn: #f0a35e; --bad: #f2857d; --track: #2b2f35;
  --VALU: #6d9fe0; --transcendental: #b58be0; --matrix: #e379b3; --SALU: #8fb8dc; --SMEM: #6fc0b6; --VMEM: #eba557;
  --LDS: #d6c04e; --branch: #9aa5b4; --barrier: #e2746b; --wait: #5c636d; --export: #b89474; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 5rem; max-width: 74rem; background: var(--bg); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 1.7rem; margin: 0; letter-spacing: -0.01em; } h1 small { color: var(--soft); font-weight: 400; }
h2 { font-size: 1.05rem; margin: 2.6rem 0 .7rem; } p { margin: .3rem 0; } .soft { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); gap: .8rem;
  margin: 1.5rem 0 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .75rem .95rem .85rem; }
.card b { display: block; font-size: 1.42rem; font-weight: 600; font-variant-numeric: tabular-nums; line-height: 1.3; }
.card span { color: var(--soft); font-size: .84rem; }
.track { display: block; height: 6px; border-radius: 3px; background: var(--track); overflow: hidden;
  margin-top: .45rem; }
.track i { display: block; height: 100%; background: var(--VALU); border-radius: 3px; }
.stack { display: flex; height: 26px; border-radius: 6px; overflow: hidden; gap: 1px; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin-top: .6rem; font-size: .88rem; }
.legend i, .dot { display: inline-block; width: .7em; height: .7em; border-radius: 2px; margin-right: .45em; }
table { border-collapse: collapse; width: 100%; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; overflow: hidden; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: var(--soft); font-size: .82rem; padding: .5rem .8rem .35rem; }
td { padding: .22rem .8rem; border-top: 1px solid var(--line); vertical-align: middle; } .n { text-align: right; }
td.bar { width: 34%; } td.bar i { display: block; height: 10px; border-radius: 3px; min-width: 1px; }
code, .asm td { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace; font-size: .84rem; }
.asm td { border-top: 0; padding: .08rem .7rem; white-space: nowrap; }
.asm td.notes { white-space: normal; width: 30%; }
.asm tr.label td { padding-top: .6rem; color: var(--soft); font-weight: 600; }
.asm tr.never td { color: var(--soft); opacity: .6; } .asm tr:hover td { background-color: var(--track); }
.asm .count { text-align: right; border-left: 4px solid transparent; } .asm .place { color: var(--soft); }
.lanes { display: inline-block; width: 48px; height: 8px; background: var(--track); border-radius: 2px;
  overflow: hidden; }
.lanes i { display: block; height: 100%; background: var(--good); }
.chip { display: inline-block; border: 1px solid var(--line); border-radius: 999px; padding: 0 .55em;
  margin: 0 .25em 0 0; font: .76rem/1.6 system-ui, sans-serif; color: var(--soft); background: var(--card); }
.chip.warn { color: var(--warn); border-color: currentColor; }
.chip.bad { color: var(--bad); border-color: currentColor; }
.wide { overflow-x: auto; border-radius: 10px; } li { margin: .25rem 0; }
"""


def size(n: float) -> str:
  """Bytes for a person."""
  for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
    if n >= scale: return f"{n / scale:.3g} {unit}"
  return f"{n:,.0f} B"


def percent(x: float) -> str: return f"{100 * x:.3g} %"


def segment(a: AccessCounts, words: Words) -> str:
  """An access's memory as the vendor calls it."""
  return {"lds": words.short.lower(), "scratch": words.scratch, "tensor": "tensor memory"}.get(a.segment, a.segment)


def notes(i: Instruction, words: Words) -> list[tuple[str, str]]:
  """What is remarkable about an instruction: (kind "", "warn" or "bad"; text)."""
  out: list[tuple[str, str]] = []
  if i.status == "approximate": out.append(("warn", "approximate"))
  for a in i.accesses:
    out.append(("", f"{segment(a, words)} {a.kind} {size(a.bytes)}"))
    if a.efficiency is not None and a.segment == "global" and a.efficiency < 0.9:
      out.append(("bad" if a.efficiency < 0.3 else "warn", f"{percent(a.efficiency)} of {a.sectors:,} sectors used"))
    if a.slowdown is not None and a.cycles > a.ideal:
      out.append(("bad" if a.slowdown >= 4 else "warn", f"{a.slowdown:.3g}x cycles by bank conflicts"))
    if a.repeats: out.append(("warn", f"{a.repeats:,} lanes at an address of another lane"))
  if i.taken is not None and i.waves: out.append(("", f"taken {percent(i.taken / i.waves)}"))
  if i.splits: out.append(("warn", f"splits lanes in {i.splits:,} {words.wave}s"))
  if i.idle and i.unit not in words.scalar: out.append(("warn", f"{i.idle:,} times without a lane"))
  return out


def page(r: Report) -> str:
  """The whole page."""
  title = f"{r.kernel or 'kernel'} on {r.arch}"
  colors = "".join(f":root {{ --{u}: var(--{c}); }}\n" for u, c in r.words.units.items() if u != c)
  sections = (_head, _cards, _units, _mix, _memory, _divergence, _conflicts, _exactness, _lines, _listing)
  return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
          f'content="width=device-width"><title>{escape(title)}</title><style>{STYLE}{colors}</style></head>\n<body>\n'
          + "\n".join(section(r) for section in sections) + "\n</body></html>\n")


def _head(r: Report) -> str:
  dims = " &times; ".join(map(str, r.grid)), " &times; ".join(map(str, r.block))
  name, w = escape(r.kernel or "kernel"), r.words
  return (f"<h1>{name} <small>on {escape(r.arch)}</small></h1><p class=soft>grid {dims[0]} of "
          f"{dims[1]} {w.item}s: {r.waves:,} {w.wave}s of {r.wave_lanes} lanes. {r.register_text}, "
          f"{size(r.lds)} of {w.shared} a {w.group}, {size(r.scratch)} of {w.scratch} a lane. "
          f"Occupancy: {escape(r.occupancy)}.</p>")


def _card(value: str, words: str, part: float | None = None) -> str:
  bar = "" if part is None else f'<span class=track><i style="width:{100 * part:.1f}%"></i></span>'
  return f"<div class=card><b>{value}</b><span>{words}</span>{bar}</div>"


def _cards(r: Report) -> str:
  memory = [a for a in r.accesses if a.segment == "global"]
  cards = [_card(f"{r.executed:,}", f"{r.words.wave} instructions")]
  vector = r.lanes / r.wave_lanes
  cards.append(_card(f"{r.lanes:.1f} / {r.wave_lanes}", "active lanes of a vector instruction", vector))
  if memory:
    cards.append(_card(size(sum(a.bytes for a in memory)), "of global memory asked for by lanes"))
    sectors = sum(a.sectors for a in memory)
    useful = sum((a.efficiency or 0) * a.sectors for a in memory) / sectors if sectors else 1.0
    cards.append(_card(percent(useful), f"of the bytes in {sectors:,} sectors of {r.words.sector} B used", useful))
  lds = [a for a in r.accesses if a.segment == "lds"]
  if lds:
    ideal, cycles = sum(a.ideal for a in lds), sum(a.cycles for a in lds)
    words = f"{r.words.short} cycles: {cycles:,}, {ideal:,} without conflicts"
    cards.append(_card(f"{cycles / ideal if ideal else 1:.3g}x", words))
  exact = "all exact" if not r.approximate else f"{len(r.approximate)} place{'s' * (len(r.approximate) > 1)}"
  cards.append(_card(exact, "approximate instructions" if r.approximate else "every result is the chip's"))
  return f"<div class=cards>{''.join(cards)}</div>"


def _units(r: Report) -> str:
  order = [u for u in r.words.units if r.units.get(u)]
  bars = "".join(f'<div style="flex:{r.units[u]};background:var(--{u})" title="{u}: {r.units[u]:,}"></div>'
                 for u in order)
  names = "".join(f'<span><i style="background:var(--{u})"></i>{u} <span class=soft>{percent(r.units[u] / r.executed)}'
                  "</span></span>" for u in order)
  return f"<h2>Units</h2><div class=stack>{bars}</div><div class=legend>{names}</div>" if r.executed else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], classes: Sequence[str]) -> str:
  head = "".join(f'<th class="{c}">{n}</th>' for n, c in zip(columns, classes))
  body = "".join("<tr>" + "".join(f'<td class="{c}">{x}</td>' for x, c in zip(row, classes)) + "</tr>" for row in rows)
  return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"


def _mix(r: Report) -> str:
  top = max((m.waves for m in r.mnemonics), default=1)

  def row(k: int) -> tuple[str, ...]:
    m = r.mnemonics[k]
    return (f'<span class=dot style="background:var(--{m.unit})"></span><code>{escape(m.mnemonic)}</code>',
            f"{m.waves:,}", percent(m.waves / r.executed),
            f'<i style="width:{100 * m.waves / top:.1f}%;background:var(--{m.unit})"></i>',
            f'<span class="chip warn">{m.status}</span>' if m.status == "approximate" else "")
  columns, classes = ("instruction", f"{r.words.wave}s", "share", "", ""), ("", "n", "n", "bar", "")
  first = _table(columns, [row(k) for k in range(min(16, len(r.mnemonics)))], classes)
  more = range(16, len(r.mnemonics))
  rest = f"<details><summary class=soft>{len(more)} more</summary>{_table(columns, map(row, more), classes)}</details>"
  return f"<h2>Instruction mix</h2>{first}{rest if more else ''}"


def _memory(r: Report) -> str:
  if not r.accesses: return ""

  def row(a: AccessCounts) -> tuple[str, ...]:
    used = percent(a.efficiency) if a.efficiency is not None and a.segment == "global" else "-"
    per = f"{a.sectors / a.waves:.3g}" if a.sectors and a.waves else "-"
    lds = f"{a.slowdown:.3g}x" if a.slowdown is not None else "-"
    return (f"{segment(a, r.words)} {a.kind}", f"{a.waves:,}", f"{a.lanes:,}", size(a.bytes),
            f"{a.sectors:,}" if a.sectors else "-", f"{a.lines:,}" if a.lines else "-", per, used, lds)
  columns = ("access", f"by {r.words.wave}s", "by lanes", "bytes", f"{r.words.sector} B sectors", "128 B lines",
             "sectors each", "used",
             f"{r.words.short} cycles")
  return f"<h2>Memory</h2>{_table(columns, map(row, r.accesses), ('', *('n',) * 8))}"


def _divergence(r: Report) -> str:
  rows = [(f"<code>{i.place}</code>", f"<code>{escape(i.text)}</code>",
           percent(i.taken / i.waves) if i.taken is not None and i.waves else "-", f"{i.splits:,}" if i.splits else "-",
           f"{i.lanes:.1f}") for i in r.instructions if i.waves and (i.taken is not None or i.splits)]
  if not rows: return ""
  columns = ("place", "instruction", "taken", "splits lanes", "active lanes")
  return (f"<h2>Branches and lanes</h2>{_table(columns, rows, ('', '', 'n', 'n', 'n'))}<p class=soft>{r.idle:,} vector "
          "instructions ran without an active lane.</p>")


def _conflicts(r: Report) -> str:
  rows = [(f"<code>{i.place}</code>", f"<code>{escape(i.text)}</code>", f"{a.cycles:,}", f"{a.ideal:,}",
           f"{a.slowdown or 0:.3g}x") for i, a in r.conflicts()]
  if not rows: return ""
  columns = ("place", "instruction", "cycles", "without conflicts", "")
  return f"<h2>{r.words.short} bank conflicts</h2>{_table(columns, rows, ('', '', 'n', 'n', 'n'))}"


def _exactness(r: Report) -> str:
  if not r.approximate: return "<h2>Exactness</h2><p>Every executed instruction is exact.</p>"
  rows = [(f"<code>{i.place}</code>", f"<code>{escape(i.text)}</code>", f"{i.waves:,}") for i in r.approximate]
  text = f"<h2>Exactness</h2>{_table(('place', 'approximate instruction', 'waves'), rows, ('', '', 'n'))}"
  if r.arrivals is None: return text
  items = []
  for sink, words in r.words.sinks.items():
    found = [a for a in r.arrivals if a.sink == sink]
    where = "; ".join(f"<code>{a.place}</code> <code>{escape(a.text)}</code> ({r.words.waves(a.waves)}, from "
                      f"{', '.join(f'<code>{o}</code>' for o in a.origins)})" for a in found)
    items.append(f"<li>{'Reached' if found else 'Did not reach'} {words}{f': {where}' if found else '.'}</li>")
  return f"{text}<ul>{''.join(items)}</ul>"


def _lines(r: Report) -> str:
  if not r.lines: return ""
  top = r.lines[0].waves
  rows = [(f"<code>{escape(s.place)}</code>", f"<code>{escape(s.text)}</code>", f"{s.waves:,}",
           percent(s.waves / r.executed), f'<i style="width:{100 * s.waves / top:.1f}%;background:var(--VALU)"></i>',
           f"{s.lanes:.1f}" if s.lanes else "-", size(s.bytes) if s.bytes else "-",
           f"{s.cycles / s.ideal:.3g}x" if s.ideal else "-") for s in r.lines]
  columns = ("line", "source", f"{r.words.wave}s", "share", "", "lanes", "global memory", f"{r.words.short} cycles")
  return f"<h2>Source lines</h2>{_table(columns, rows, ('', '', 'n', 'n', 'bar', 'n', 'n', 'n'))}"


def _listing(r: Report) -> str:
  top, rows = max((i.waves for i in r.instructions), default=0), []
  for i in r.instructions:
    if i.label: rows.append(f"<tr class=label><td colspan=6>{escape(i.label)}:</td></tr>")
    heat = i.waves / top if top else 0.0
    chips = "".join(f'<span class="chip {kind}">{escape(text)}</span>' for kind, text in notes(i, r.words))
    lanes = (f'<span class=lanes title="{i.lanes:.1f} of {r.wave_lanes} lanes"><i style="width:'
             f'{100 * i.lanes / r.wave_lanes:.0f}%"></i></span>' if i.waves else "")
    name, _, operands = i.text.partition(" ")
    style = f"border-left-color:var(--{i.unit or 'wait'});background:rgba(var(--heat),{0.5 * heat:.2f})"
    rows.append(f'<tr{"" if i.waves else " class=never"}><td class=count style="{style}">'
                f"{f'{i.waves:,}' if i.waves else ''}</td><td>{lanes}</td><td class=place>{escape(i.place)}</td>"
                f"<td><b>{escape(name)}</b> {escape(operands)}</td><td class=place>{escape(i.line)}</td>"
                f"<td class=notes>{chips}</td></tr>")
  words = (f"Executions by {r.words.wave}s (the darker the more), mean active lanes, place, instruction; the "
           "stripe has the unit's colour.")
  return (f"<h2>Code</h2><p class=soft>{words}</p><div class=wide><table class=asm><tr><th class=n>{r.words.wave}s"
          f"</th><th>lanes</th><th>place</th><th>instruction</th><th></th><th></th></tr>{''.join(rows)}</table></div>")
