"""Compact the records of LLVM's AMDGPU target for `tinyhw.tools.gen.amdgcn`, from `llvm-tblgen --dump-json`.

    llvm-tblgen --dump-json -I llvm/include -I llvm/lib/Target/AMDGPU llvm/lib/Target/AMDGPU/AMDGPU.td -o dump.json
    python -m tinyhw.tools.gen.llvm_records dump.json amdgpu21_gfx950.json.xz --member gfx950

A record: the decoder's namespace, size in bytes, assembly text, fixed bits (mask and value), fields as [bit of the
word, bit of the field, width], operands, the pseudo instruction, predicates, implicit uses and defs. With a member,
only records that some of its own features (`tinyhw.tools.gen.amdgcn.LATER`) bring are kept. LLVM 19's llvm-tblgen
reads the description of LLVM 21 once `!listflatten(x)` in include/llvm/IR/Intrinsics.td is written as
`!foldl([]<int>, x, flat, each, !listconcat(flat, each))`.
"""
from __future__ import annotations

import argparse
import json
import lzma
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.tools.gen.amdgcn import LATER, NAMESPACES

_PREDICATES = ("SubtargetPredicate", "AssemblerPredicate", "OtherPredicates", "True16Predicate")


def _named(values: Any) -> list[str]:
  """The names of definitions: one, or a list."""
  return [v["def"] for v in (values if isinstance(values, list) else [values]) if isinstance(v, dict) and "def" in v]


def predicates(record: dict[str, Any]) -> list[str]:
  """What a processor must have for the record."""
  found = set(_named(record.get("Predicates", [])))
  for key in _PREDICATES: found.update(_named(record.get(key)))
  return sorted(found)


def _bits(inst: Sequence[Any]) -> tuple[int, int, dict[str, list[list[int]]]]:
  """(mask, value, fields) of an encoding's bits, the lowest first."""
  mask = value = 0
  fields: dict[str, list[list[int]]] = {}
  for position, bit in enumerate(inst):
    if bit in (0, 1):
      mask, value = mask | 1 << position, value | bit << position
    elif isinstance(bit, dict):
      name, index = (bit["var"], bit["index"]) if bit["kind"] == "varbit" else (bit["printable"], 0)
      pieces = fields.setdefault(name, [])
      last = pieces[-1] if pieces else None
      if last and position == last[0] + last[2] and index == last[1] + last[2]: last[2] += 1
      else: pieces.append([position, index, 1])
  return mask, value, fields


def _operands(raw: dict[str, Any], classes: dict[str, str]) -> str:
  """The operands' text, in which register operands without a name have that of their registers."""
  return re.sub(r"anonymous_\d+", lambda m: classes[m[0]], str(raw["printable"]))


def record(raw: dict[str, Any], classes: dict[str, str]) -> dict[str, Any]:
  """One instruction record, compacted; `classes` names the registers of operands that have no name."""
  mask, value, fields = _bits(raw["Inst"])
  if raw.get("SDWA"):  # LLVM 21 has the sign extension of SDWA at the modifiers' bit 4
    for name in ("src0_modifiers", "src1_modifiers"):
      fields[name] = [[at, bit % 4, width] for at, bit, width in fields.get(name, [])]
  fields = {name: pieces for name, pieces in fields.items() if pieces}
  return {
    "ns": raw["DecoderNamespace"], "size": raw["Size"], "asm": raw["AsmString"].replace("\t", " "), "mask": hex(mask),
    "val": hex(value), "fields": fields, "outs": _operands(raw["OutOperandList"], classes),
    "ins": _operands(raw["InOperandList"], classes), "pseudo": raw.get("PseudoInstr", ""), "pred": predicates(raw),
    "uses": _named(raw["Uses"]), "defs": _named(raw["Defs"]), "mayLoad": int(bool(raw["mayLoad"])),
    "mayStore": int(bool(raw["mayStore"])), "wave": (_named(raw.get("WaveSizePredicate")) or [""])[0]}


def compacted(instructions: dict[str, dict[str, Any]], classes: dict[str, str], generation: str = "",
              features: Iterable[str] = ()) -> dict[str, Any]:
  """All real instructions, or those of a generation's namespaces that some of the features bring."""
  wanted, spaces = set(features), NAMESPACES[generation] if generation else ()
  out = {}
  for name, raw in instructions.items():
    if raw.get("isPseudo") or not raw.get("DecoderNamespace"): continue
    if generation and (raw["DecoderNamespace"] not in spaces or not wanted & set(predicates(raw))): continue
    out[name] = record(raw, classes)
  return out


def main(arguments: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser("python -m tinyhw.tools.gen.llvm_records", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("dump", type=Path)
  parser.add_argument("output", type=Path)
  parser.add_argument("--member", default="", help="a processor of LATER: only what its features bring")
  given = parser.parse_args(arguments)
  owner = next((g for g, members in LATER.items() if given.member in members), "")
  if given.member and not owner:
    raise InvalidArgument(f"no later member is called {given.member!r}", where="--member")
  dump = json.loads(given.dump.read_bytes())
  instructions = {name: dump[name] for name in dump["!instanceof"]["Instruction"]}
  classes = {name: dump[name]["RegClass"]["def"] for name in dump["!instanceof"]["RegisterOperand"]}
  found = compacted(instructions, classes, owner, LATER[owner][given.member] if owner else ())
  data = json.dumps(found, sort_keys=True, separators=(",", ":")).encode()
  given.output.write_bytes(lzma.compress(data) if given.output.suffix == ".xz" else data)
  print(f"{given.output}: {len(found)} records")
  return 0


if __name__ == "__main__": raise SystemExit(main())
