"""The report of a run: numbers, coverage by instruction and by section of the manual, and every difference.

As text for a terminal, JSON, JUnit's XML for a build server, and a page to sign (`page`).
"""
from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from tinyhw.tools.conform.judge import BAD, VERDICTS, Result

FORMAT: Final = 1


@dataclass
class Instruction:
  """An instruction's cases: how many of each verdict; `why` says why none was asked."""
  mnemonic: str
  section: str
  families: str
  verdicts: Counter[str] = field(default_factory=Counter)
  why: str = ""
  kind: str = ""  # as that of its results

  @property
  def covered(self) -> bool: return any(self.verdicts[v] for v in VERDICTS if v != "not asked")

  @property
  def verdict(self) -> str:
    """Of all its cases: the worst."""
    return next((v for v in ("error", "fail", "unsupported", "allowed", "pass") if self.verdicts[v]), "not asked")


@dataclass
class ConformanceReport:
  """A run: what was asked (`suite`), of whom (`device`, facts about it), when, and what came of it.

  `expected` are the identifiers that may fail, by evidence; without them nothing may.
  """
  suite: str
  manual: str
  device: str
  facts: dict[str, Any]
  results: list[Result]
  instructions: list[Instruction]
  seconds: float
  seed: str = ""
  complete: bool = True  # the whole suite was asked, not a part
  expected: dict[str, str] | None = None
  against: dict[str, str] = field(default_factory=dict)  # case -> how it differs from a record
  started: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

  @property
  def counts(self) -> dict[str, int]:
    found = Counter(r.verdict for r in self.results)
    return {v: found[v] for v in VERDICTS}

  @property
  def asked(self) -> str:
    """A digest of all questions: two reports with the same one are of the same suite."""
    rows = sorted(f"{r.id} {r.asked}" for r in self.results)
    return hashlib.blake2b("\n".join(rows).encode(), digest_size=8).hexdigest()

  @property
  def bad(self) -> list[Result]: return [r for r in self.results if r.verdict in BAD]

  @property
  def unexpected(self) -> list[Result]:
    """What fails and may not."""
    return [r for r in self.bad if self.expected is None or r.id not in self.expected]

  @property
  def stale(self) -> list[str]:
    """What should fail by the list, and does not, or is no case any more."""
    if not self.expected: return []
    failed, ran = {r.id for r in self.bad}, {r.id for r in self.results}
    return [i for i in self.expected if i not in failed and (self.complete or i in ran)]

  @property
  def good(self) -> bool: return not self.unexpected and not self.stale and not self.against

  @property
  def coverage(self) -> dict[str, tuple[int, int]]:
    """(how many are covered, how many there are) of instructions, packets, methods, ioctls."""
    out: dict[str, tuple[int, int]] = {}
    for i in self.instructions:
      covered, count = out.get(i.kind or "instructions", (0, 0))
      out[i.kind or "instructions"] = covered + i.covered, count + 1
    return out

  @property
  def coverage_text(self) -> str:
    """The same in words."""
    return ", ".join(f"{n:,} of {of:,} {kind}" for kind, (n, of) in self.coverage.items()) or "no instruction"


def by_instruction(results: Iterable[Result], compute: Iterable[tuple[str, str, str, str]]) -> list[Instruction]:
  """The instructions, each with its verdicts: `compute` are (mnemonic, section, families, why none can be asked)."""
  rows = {m: Instruction(m, s, f, why=why) for m, s, f, why in compute}
  for r in results:
    for part in r.mnemonic.split("+"):
      name = part.replace("v_dual_", "v_")
      row = rows.setdefault(name, Instruction(name, r.section, r.family))
      row.verdicts[r.verdict] += 1
      row.kind = r.kind
      if r.verdict == "not asked": row.why = row.why or r.detail
  for row in rows.values():
    if row.covered: row.why = ""
    elif not row.why: row.why = "no case was chosen"
  return [rows[m] for m in sorted(rows)]


def by_section(found: Iterable[Instruction]) -> list[tuple[str, int, int, Counter[str]]]:
  """(section, instructions, those covered, verdicts of their cases)."""
  out: dict[str, tuple[list[Instruction], Counter[str]]] = {}
  for i in found:
    some, verdicts = out.setdefault(i.section or "-", ([], Counter()))
    some.append(i)
    verdicts.update(i.verdicts)

  def key(section: str) -> list[Any]: return [(int(p), "") if p.isdigit() else (999, p) for p in section.split(".")]
  return [(s, len(out[s][0]), sum(i.covered for i in out[s][0]), out[s][1]) for s in sorted(out, key=key)]


def document(r: ConformanceReport) -> dict[str, Any]:
  """As JSON values."""
  return {
    "format": FORMAT, "suite": r.suite, "manual": r.manual, "asked": r.asked, "seed": r.seed,
    "device": r.device, "facts": r.facts, "started": r.started, "seconds": round(r.seconds, 2),
    "good": r.good, "cases": r.counts,
    "coverage": {"instructions": len(r.instructions), "covered": sum(i.covered for i in r.instructions)},
    "kinds": {kind: {"count": of, "covered": n} for kind, (n, of) in r.coverage.items()},
    "unexpected": [x.id for x in r.unexpected], "stale": r.stale, "against": r.against,
    "sections": [{"section": s, "instructions": n, "covered": c, "cases": dict(v)} for s, n, c, v in
                 by_section(r.instructions)],
    "instructions": [{"mnemonic": i.mnemonic, "section": i.section, "families": i.families, "verdict": i.verdict,
                      "cases": dict(i.verdicts), **({"why": i.why} if i.why else {})} for i in r.instructions],
    "results": [x.document() for x in r.results]}


def to_json(r: ConformanceReport) -> str:
  return json.dumps(document(r), indent=1) + "\n"


def to_junit(r: ConformanceReport) -> str:
  """JUnit's XML: a test suite for each instruction, a test case for each case."""
  by: dict[str, list[Result]] = {}
  for x in r.results: by.setdefault(x.mnemonic, []).append(x)
  lines = ['<?xml version="1.0" encoding="UTF-8"?>',
           f'<testsuites name={quoteattr(f"{r.suite} on {r.device}")} tests="{len(r.results)}" '
           f'{_totals(r.counts)} '
           f'time="{r.seconds:.2f}">']
  for mnemonic, some in by.items():
    verdicts = Counter(x.verdict for x in some)
    lines.append(f'  <testsuite name={quoteattr(f"{r.suite}/{mnemonic}")} tests="{len(some)}" '
                 f'{_totals(verdicts)}>')
    for x in some:
      head = f'    <testcase classname={quoteattr(f"{r.suite}.{mnemonic}")} name={quoteattr(x.id)}'
      if x.verdict in BAD:
        word = "failure" if x.verdict == "fail" else "error"
        lines.append(f"{head}><{word} message={quoteattr(x.detail)}>{escape(told(x))}</{word}></testcase>")
      elif x.verdict == "not asked": lines.append(f"{head}><skipped message={quoteattr(x.detail)}/></testcase>")
      else: lines.append(f"{head}/>")
    lines.append("  </testsuite>")
  return "\n".join([*lines, "</testsuites>", ""])


def _totals(c: Mapping[str, int]) -> str:
  return f'failures="{c["fail"]}" errors="{c["error"] + c["unsupported"]}" skipped="{c["not asked"]}"'


def told(x: Result) -> str:
  """A difference in a few lines."""
  if not x.difference: return f"{x.id}\n  {x.text}\n  {x.detail}"
  d = x.difference
  where = f"{d['where']}" + (f", lane {d['lane']}" if "lane" in d else "")
  lines = [x.id, f"  {x.text}    {x.code}" + (f"    (manual: section {x.section})" if x.section else "")]
  if x.kind: lines[1:] = [f"  {x.text}"]
  lines += [f"  {name:8} {value}" for name, value in d["operands"].items()]
  if state := ", ".join(f"{n.upper()} {d[n]}" for n in ("mode", "exec", "vcc", "scc") if n in d):
    lines.append("  " + state)
  lines += [f"  {where}: wanted {d['wanted']}, found {d['found']}"]
  if x.note: lines.append(f"  the reference emulator differs too: {x.note}")
  return "\n".join(lines)


def summary(r: ConformanceReport, limit: int = 10) -> str:
  """For a terminal: the differences, one an instruction, and the numbers."""
  lines = []
  first: dict[str, Result] = {}
  for x in r.unexpected: first.setdefault(x.mnemonic, x)
  for k, (mnemonic, x) in enumerate(first.items()):
    if k == limit:
      lines.append(f"... and {len(first) - limit} more instructions")
      break
    more = sum(y.mnemonic == mnemonic for y in r.unexpected) - 1
    lines.append(told(x) + (f"\n  ({more} more cases of {mnemonic} fail)" if more else ""))
  lines += [f"{i}: may fail by the list, and does not" for i in r.stale[:limit]]
  lines += [f"{i}: {how}" for i, how in list(r.against.items())[:limit]]
  c = r.counts
  lines.append(f"{r.suite} on {r.device}: {c['pass']:,} of {len(r.results):,} cases pass"
               + "".join(f", {c[v]:,} {v}" for v in VERDICTS[1:] if c[v])
               + f"; {r.coverage_text} covered; {r.seconds:.1f} s")
  if r.expected is not None: lines.append(f"{len(r.bad) - len(r.unexpected):,} failures are in the list of what may "
                                          f"fail; {len(r.stale):,} of its rows did not come")
  if len(r.against): lines.append(f"{len(r.against):,} cases differ from the record")
  return "\n".join(lines)
