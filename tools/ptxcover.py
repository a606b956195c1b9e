"""How much of the PTX manual's instructions the emulator has: `python -m tinyhw.tools.ptxcover FOLDER` (its Markdown).

The manual says an instruction's forms in blocks of syntax: names with sets of modifiers, of which some, in braces, may
be left out. A form is a mnemonic with its types: what a line always has, and a choice of each type; it counts as done
where the table of instructions has it with some choice of the rest, and there is a meaning for it. The sets allow more
than there is, so ptxas is asked about what the table has not: what it refuses for sm_90a is no form. Where it only says
that the operands of a sample do not fit, the form counts as lacking: the share is the least that it can be. What the
manual has for targets after sm_90 alone is counted apart (`--later`), and ptxas asked for each of LATER.
"""
from __future__ import annotations

import argparse
import itertools
import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.ptx import bind
from tinyhw.emulator.ptx.control import FLOW
from tinyhw.emulator.ptx.launch.grid import BINDERS
from tinyhw.emulator.ptx.meanings.registry import find as meaning_of
from tinyhw.isa.ptx import forms

TARGET: Final = "sm_90a"
LATER: Final = ("sm_100a", "sm_103a", "sm_120a")
MOST: Final = 20_000  # choices of one line
TRIED: Final = 12  # names of a form that ptxas is asked about
# What the manual has for targets after sm_90.
_LATER: Final = re.compile(r"^tcgen05|^clusterlaunch|kind::|e[23]m[123]|ue8m0|block_scale|^multimem\S*e[45]m[23]"
                           r"|^(add|sub|fma)\.f32\.b?f16|^redux\.sync\.f32|^ld\.mmio\S*b128"
                           r"|^st\.async\.\S*release|^st\.bulk|^cvt\.rs\.|s2f6|e[45]m[23]x2\.bf16x2")
_SYNTAX: Final = re.compile(r"^Syntax\s*$(.*?)^Description\s*$", re.S | re.M)
_SET: Final = re.compile(r"((?:\.[\w:]+\s*=\s*)+)\{(.*?)\}\s*;?\s*$", re.S)
_HEAD: Final = """.version 9.0
.target {target}
.address_size 64
.visible .entry k () {{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b64 %l<9>;
  .reg .b128 %q<9>; .reg .b8 %b<9>;
"""
# What ptxas says of a name that it does not have. Of one that it has it says that the arguments do not fit.
_NO_NAME: Final = re.compile(r"[Ii]llegal|[Uu]nexpected instruction type|not supported|[Rr]equires|[Uu]nknown"
                             r"|[Nn]ot a|Parsing error|must be specified|Missing|missing|Invalid|invalid"
                             r"|not allowed|must be '|incorrect|[Mm]odifier|cannot|State space|expected|Incorrect"
                             r"|should")


_WIDE: Final = {"b64": "l", "u64": "l", "s64": "l", "f64": "d", "f32": "f", "f16": "h", "bf16": "h", "b16": "h",
               "u16": "h", "s16": "h", "pred": "p", "b128": "q", "e4m3": "b", "e5m2": "b", "e4m3x2": "h", "e5m2x2": "h"}


Forms = dict[str, dict[str, str]]


def is_later(form: str) -> bool:
  """Whether targets after sm_90 alone have a form."""
  return _LATER.search(form) is not None


def names(text: str) -> Forms:
  """The forms of a page of the manual, each with its names and their operands as the manual writes them."""
  found: Forms = {}
  for block in _SYNTAX.findall(text):
    groups: list[tuple[list[str], dict[str, list[str]]]] = [([], {})]
    for statement in _statements(block):
      if not isinstance(statement, str): groups[-1][1].update(statement)
      elif groups[-1][1]: groups.append(([statement], {}))  # what is defined below lines is for them first
      else: groups[-1][0].append(statement)
    every = {name: members for _, sets in reversed(groups) for name, members in sets.items()}
    for lines, sets in groups:
      for line in lines:
        for form, name in _expanded(line, {**every, **sets}):
          found.setdefault(form, {}).setdefault(name, _operands(line))
  return found


def _statements(block: str) -> Iterator[str | dict[str, list[str]]]:
  """The lines of a block of syntax: instructions, or sets of modifiers by name."""
  block = re.sub(r"//.*", "", block)
  held = ""
  for line in block.split("\n"):
    if not held and not re.match(r"\s*[.a-z]", line): continue
    held += " " + line.strip()
    if re.match(r"\s*v\w+\s*=", held) and "}" in held:  # mnemonics: vop = { vadd, vsub }
      yield {held.split("=")[0].strip(): _members(held.split("=")[1])}
      held = ""
    elif re.match(r"\s*\.[\w:]+\s*=", held):
      found = _SET.match(held.strip())
      if found is None:
        if held.count("{") <= held.count("}"): held = ""
        continue
      yield {name: _members(found[2]) for name in re.findall(r"\.([\w:]+)\s*=", found[1])}
      held = ""
    elif ";" in held:
      yield held.strip()
      held = ""
    elif not line.strip(): held = ""


def _members(text: str) -> list[str]:
  """`.shared{::cta, ::cluster}` is three."""
  out = []
  for word, more in re.findall(r"\.?([\w:]+)(\{[^}]*\})?", text):
    if word.startswith("::"): continue
    out.append(word)
    out += [word + x for x in re.findall(r"::\w+", more)]
  return out


def _expanded(line: str, sets: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
  """(form, name) of a line: of the choices a form has the types alone."""
  name = line.split(";")[0].strip()
  name = re.split(r"\s(?![.{])", name, maxsplit=1)[0] if " " in name else name
  inline = re.findall(r"\.\{([\w, ]+)\}", name)  # choices where they stand: sust.b.{1d,2d,3d}
  sets = {**sets, **{f"inline{k}": _members(x) for k, x in enumerate(inline)}}
  for k, x in enumerate(inline): name = name.replace(f".{{{x}}}", f".inline{k}", 1)
  while re.search(r"\{[^{}]*\}", name): name = re.sub(r"\{[^{}]*\}", "", name)
  name = re.sub(r"\s|\{.*", "", name).replace("..", ".").rstrip(".")
  if not re.fullmatch(r"[a-z]\w*(\.[\w:]+)*", name): return
  choices = [sets.get(word, [word]) for word in name.split(".")]
  total = 1
  for c in choices: total *= len(c)
  if total > MOST: return
  for chosen in itertools.product(*choices):
    kept = (w for w, c in zip(chosen[1:], choices[1:]) if len(c) == 1 or w in _TYPES)
    yield ".".join([chosen[0], *kept]), ".".join(chosen)


def _operands(line: str) -> str:
  """What stands behind the name, without what may be left out."""
  parts = re.split(r"\s(?=[a-z_\[|{][^.]*)", line.split(";")[0].strip(), maxsplit=1)
  rest = parts[1] if len(parts) > 1 else ""
  while re.search(r"\{\s*,[^{}]*\}", rest): rest = re.sub(r"\{\s*,[^{}]*\}", "", rest)
  return re.sub(r"\{\.?!\}|\{-\}|\{\.\w+\}", "", rest).strip()


def sample(name: str, operands: str) -> str:
  """An instruction of a form, with registers that may fit."""
  types, given = [w for w in name.split(".")[1:] if w in forms.SIZES], list[str]()

  def register(found: re.Match[str]) -> str:
    word = found[0]
    if word in {"p", "q", "c"} and re.search(r"\.(and|or|xor)\b|^set|^selp|^vote|^bar", name): return "%p1"
    if not types: return "%r1"
    t = types[0] if word in {"d", "xdim"} or "get_first_ctaid" in name and not given else types[-1]
    given.append(t)
    return f"%{_WIDE.get(t, 'r')}1"
  text = re.sub(r"\[[^\]]*\]", "[@]", operands)
  text = re.sub(r"[a-z]\w*(-\w+)*", register, text).replace("@", "%l1")
  return f"{name} {text};"


_TYPES: Final = {*forms.SIZES, "u4", "s4", "b1", "b6x16", "e2m1", "e3m2", "e2m3", "e4m3x4", "e5m2x4"}


def has(name: str) -> bool:
  """Whether the emulator has a form: in its table, and with a meaning."""
  form = forms.find(name)
  if form is None: return False
  return form.row.opcode in bind.BINDERS or form.row.opcode in {*FLOW, "bar"} or meaning_of(form) is not None


def known(wanted: dict[str, str], ptxas: str, target: str = TARGET) -> set[str]:
  """Which names ptxas knows, whatever it says of their operands. It tells some errors a run: who is told of is left out
  of the next one."""
  out, names = set[str](), [*wanted]
  work = [names[k:k + 300] for k in range(0, len(names), 300)]
  while work:
    part = work.pop()
    said = _told([sample(n, wanted[n]) for n in part], ptxas, target)
    if said is None: out.update(part)
    elif not said and len(part) > 1: work += [part[:len(part) // 2], part[len(part) // 2:]]
    elif said:
      out |= {part[k] for k, whats in said.items() if not any(_NO_NAME.search(w) for w in whats)}
      rest = [n for k, n in enumerate(part) if k not in said]
      if rest: work.append(rest)
  return out


def _told(lines: list[str], ptxas: str, target: str) -> dict[int, list[str]] | None:
  """What ptxas says of instructions, by their place; None where it takes them all."""
  text = _HEAD.format(target=target)
  with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "k.ptx"
    path.write_text(text + "\n".join(lines) + "\nret;\n}\n")
    done = subprocess.run([ptxas, "-arch", target, "-O0", "--compile-only", str(path), "-o", str(Path(folder) / "k.o")],
                          capture_output=True, text=True)
  if not done.returncode: return None
  said: dict[int, list[str]] = {}
  for at, what in re.findall(r"line (\d+);\s*(?:error|fatal)\s*:\s*(.*)", done.stderr):
    place = int(at) - text.count("\n") - 1
    if 0 <= place < len(lines): said.setdefault(place, []).append(what)
  return said


def counted(folder: Path, ptxas: str | None, later: bool = False) -> dict[str, tuple[int, list[str]]]:
  """(forms, those that the emulator lacks) by opcode: of targets up to sm_90, or `later` of those after it alone."""
  assert BINDERS
  pages = sorted(folder.rglob("9.7.*.md"))
  if not pages: raise InvalidArgument("no pages of section 9.7", where=str(folder))
  every: Forms = {}
  for page in pages:
    for form, of in names(page.read_text()).items():
      if is_later(form) == later: every.setdefault(form, {}).update(of)
  lacking = {form: of for form, of in every.items() if not any(map(has, of))}
  if ptxas:
    some = {name: text for of in lacking.values() for name, text in [*of.items()][:TRIED]}
    real = set[str]().union(*(known(some, ptxas, target) for target in (LATER if later else (TARGET,))))
    lacking = {form: of for form, of in lacking.items() if any(name in real for name in of)}
    every = {form: of for form, of in every.items() if form in lacking or any(map(has, of))}
  out: dict[str, tuple[int, list[str]]] = {}
  for opcode, count in sorted(Counter(n.split(".")[0] for n in every).items()):
    out[opcode] = count, sorted(n for n in lacking if n.split(".")[0] == opcode)
  return out


def listed(folder: Path, ptxas: str | None) -> dict[str, str]:
  """Every form that there is with one of its names, one that the emulator has if it has any."""
  lacking = {form for later in (False, True) for _, less in counted(folder, ptxas, later).values() for form in less}
  every: Forms = {}
  for page in sorted(folder.rglob("9.7.*.md")):
    for form, of in names(page.read_text()).items(): every.setdefault(form, {}).update(of)
  found = {form: next((n for n in of if has(n)), "" if form not in lacking else next(iter(of)))
           for form, of in every.items()}
  return {form: name for form, name in sorted(found.items()) if name}


def main() -> None:
  """Prints the share, and what is lacking."""
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("folder", type=Path)
  parser.add_argument("--all", action="store_true", help="name every form that is lacking")
  parser.add_argument("--json", action="store_true")
  parser.add_argument("--later", action="store_true", help="forms for targets after sm_90 alone")
  parser.add_argument("--forms", type=Path, help="write the forms for the ledger: tools/ledger/ptx_forms.json")
  given = parser.parse_args()
  if given.forms is not None:
    rows = [f"  {json.dumps(f)}: {json.dumps(n)}" for f, n in listed(given.folder, shutil.which("ptxas")).items()]
    given.forms.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    return print(f"{given.forms}: {len(rows)} forms")
  found = counted(given.folder, shutil.which("ptxas"), given.later)
  total, lacking = sum(n for n, _ in found.values()), sum(len(x) for _, x in found.values())
  if given.json: return print(json.dumps({"forms": total, "lacking": {k: x for k, (_, x) in found.items() if x}}))
  for opcode, (count, less) in found.items():
    if less: print(f"{opcode:18} {count - len(less):5} of {count:5}  {' '.join(less if given.all else less[:3])}")
  print(f"{total - lacking:,} of {total:,} forms of {len(found)} opcodes: {100 * (total - lacking) / total:.1f} %")


if __name__ == "__main__": main()
