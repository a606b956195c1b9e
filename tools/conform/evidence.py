"""What a device may fail, and what a card made of the suite: files written by runs, never by hand.

A list of what may fail has the differences that were found as evidence. It is strict: what it lists has to fail, and
nothing else may. A record has a digest of what each case left on a card, which another card or an emulator is held
against; a case whose question has changed since is not compared, and is told.
"""
from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.written import save
from tinyhw.tools.conform.report import ConformanceReport

FORMAT = 1


def write_may_fail(path: Path, r: ConformanceReport) -> int:
  """Write the list of what fails in a run; how many."""
  rows = {x.id: {"verdict": x.verdict, "detail": x.detail, "text": x.text, "manual": x.section} for x in r.bad}
  head = {"format": FORMAT, "suite": r.suite, "device": r.device, "facts": r.facts, "began": r.started,
          "seed": r.seed, "cases": len(r.results)}
  save(path, json.dumps({**head, "may fail": rows}, indent=1) + "\n")
  return len(rows)


def read_may_fail(path: Path, suite: str) -> dict[str, str]:
  """Identifier -> what was found, of a list. Raises InvalidArgument for one of another suite."""
  said = _read(path)
  rows = said.get("may fail")
  if not isinstance(rows, dict):
    raise InvalidArgument("is no list of what may fail", where=str(path), hint="--write-may-fail writes one")
  if said["suite"] != suite: raise InvalidArgument(f"is for {said['suite']}, the suite is {suite}", where=str(path))
  return {k: v["detail"] for k, v in rows.items()}


def _read(path: Path) -> dict[str, Any]:
  data = path.read_bytes()
  if data[:6] == b"\xfd7zXZ\0": data = lzma.decompress(data)
  try: said = json.loads(data)
  except ValueError as error: raise InvalidArgument(f"is no JSON: {error}", where=str(path)) from None
  if not isinstance(said, dict) or said.get("format") != FORMAT:
    raise InvalidArgument("is of another format", where=str(path))
  return said


def write_record(path: Path, r: ConformanceReport) -> int:
  """Write what each case left: {identifier: [digest of the question, digest of the answer, verdict]}; how many."""
  rows = {x.id: [x.asked, x.digest, x.verdict] for x in r.results if x.digest}
  said = {"format": FORMAT, "suite": r.suite, "device": r.device, "facts": r.facts, "began": r.started, "seed": r.seed,
          "answers": rows}
  text = json.dumps(said, separators=(",", ":")).encode()
  save(path, lzma.compress(text, preset=9) if path.suffix == ".xz" else text)
  return len(rows)


def read_record(path: Path, suite: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
  """(what a record says of the card, its answers)."""
  said = _read(path)
  rows = said.pop("answers", None)
  if not isinstance(rows, dict): raise InvalidArgument("is no record", where=str(path), hint="--record writes one")
  if said["suite"] != suite: raise InvalidArgument(f"is for {said['suite']}, the suite is {suite}", where=str(path))
  return said, rows


def beside(r: ConformanceReport, answers: dict[str, list[str]]) -> dict[str, str]:
  """Case -> how its answer is not the recorded one."""
  out = {}
  for x in r.results:
    row = answers.get(x.id)
    if row is None: continue
    question, answer, verdict = row
    if x.asked and x.asked != question: out[x.id] = "asks something else than it did when it was recorded"
    elif not x.digest: out[x.id] = f"recorded as {verdict}; here: {x.verdict}: {x.detail}"
    elif x.digest != answer: out[x.id] = f"left other registers than recorded (there {verdict}, here {x.verdict})"
  return out
