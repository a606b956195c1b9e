"""What was recorded about instructions: which witness executed them, and how the disassembler compares with LLVM's.

The records are JSON files beside this module. `RECORDS` names the commands that write them; tests hold them true.
"""
from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import DecodeError

RECORDS: Final = {"executed": "python -m tinyhw.tools.ledger.executed", "llvm": "python -m tinyhw.tools.ledger.llvm"}


@cache
def record(name: str) -> dict[str, Any]:
  """The record of that name, by instruction table. Raises DecodeError for one that is damaged."""
  path = Path(__file__).parent / f"{name}.json"
  try: found = json.loads(path.read_text())
  except FileNotFoundError: return {}
  except ValueError as error:
    hint = f"write it anew: {RECORDS[name]}"
    raise DecodeError(f"{path.name} is no JSON: {error}", where=str(path), hint=hint) from None
  assert isinstance(found, dict)
  return found


def witnesses(isa: str) -> dict[str, list[str]]:
  """Mnemonic -> the independent witnesses that tests held its execution against."""
  found: dict[str, list[str]] = record("executed").get(isa, {})
  return found


def differences(isa: str) -> dict[str, str]:
  """Mnemonic -> how our text differs from that of LLVM's disassembler; empty where it does not."""
  found: dict[str, str] = record("llvm").get(isa, {}).get("different", {})
  return found


def compared(isa: str) -> str:
  """The LLVM that the text was compared with; empty when it was not."""
  return "19" if isa in record("llvm") else ""
