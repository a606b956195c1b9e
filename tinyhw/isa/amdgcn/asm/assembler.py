"""One line of LLVM's text to bytes: rows are walked over the line until one gives it back."""
from __future__ import annotations

import re
from functools import cache
from typing import Final

from tinyhw.autogen.amdgcn_aliases import ALIASES
from tinyhw.core.errors import DecodeError, EncodeError, InvalidArgument
from tinyhw.isa.amdgcn.asm.line import AsmLine, Reject
from tinyhw.isa.amdgcn.asm.modifiers import MODIFIERS, addresses, image_register
from tinyhw.isa.amdgcn.asm.operands import REGISTERS, operand, source
from tinyhw.isa.amdgcn.images import IMAGES
from tinyhw.isa.amdgcn.model import Row
from tinyhw.isa.amdgcn.tables import Table, table
from tinyhw.isa.amdgcn.text import suffix, template
from tinyhw.isa.amdgcn.values import number

VARIANTS: Final = ("_e64_dpp", "_e32_dpp", "_dpp", "_sdwa", "_e64", "_e32")
Step = tuple[str, str, str]  # a fixed part; a key of an operand or modifier; or the mnemonic and its encoding's suffix


@cache
def steps(row: Row) -> tuple[Step, ...]:
  """The parts of a row's template in their order."""
  names, out = iter(row.mnemonic.split(" :: ")), []
  for fixed, own, _, key in re.findall(r"(?a)([^@$]+)|@(?:\{(\w+)\})?(?=(\$)?)|\$(\w+)", template(row)):
    if key == "vdst" and not any(o[0] == key for o in row.operands): key = "vdata"
    if fixed or key: out.append((fixed, key, ""))
    else:
      name = next(names)
      out.append(("", name, name + (own or suffix(row))))
  return tuple(out)


def walk(row: Row, text: str, generation: Table) -> AsmLine:
  """Fields of the row that the line gives. Raises Reject where the line leaves the template."""
  line = AsmLine(row, text, generation.name)
  operands = {o[0]: o for o in row.operands}
  for fixed, key, full in steps(row):
    if fixed: line.word(fixed)
    elif full:
      word = line.need(r"\S+", "mnemonic")[0]
      if word not in (full, key) and renamed(word, line.isa) not in (full, key):
        raise Reject(0, f"{word} is not {full}")
    elif key.endswith("_modifiers"): source(line, operands[key.removesuffix("_modifiers")])
    elif row.family in IMAGES and key == "vdata": image_register(line, key, line.need(REGISTERS, key)[0])
    elif row.family in IMAGES and key == "vaddr0": addresses(line)
    elif key in MODIFIERS and (key not in operands or operands[key][2] == "i"): MODIFIERS[key](line)
    else: operand(line, line.need(r"(?:sendmsg|gpr_idx)\([^)]*\)|[^,\s]+", key)[0], operands[key])
  line.space()
  if line.at != len(text): raise Reject(line.at, f"{text[line.at:]!r} is left over")
  return line


REGISTER: Final = re.compile(r"(?a)\b(v|s|a|ttmp)\[\s*(\w+)\s*(?::\s*(\w+)\s*)?\]")


def _group(match: re.Match[str]) -> str:
  """v[1] is v1, v[0x4:7] is v[4:7]."""
  first, last = number(match[2]), number(match[3] or match[2])
  if first is None or last is None: return match[0]
  return f"{match[1]}{first}" if first == last else f"{match[1]}[{first}:{last}]"


def normal(text: str) -> str:
  """A line in the spelling of the templates.

  One space between words, none at the ends; a mnemonic in small letters; a group of one register without brackets; a
  dimension with its prefix.
  """
  text = re.sub(r"\s+", " ", text).strip()
  head, gap, rest = text.partition(" ")
  if head != head.lower(): text = head.lower() + gap + rest
  if "[" in text: text = REGISTER.sub(_group, text)
  return re.sub(r"(?a)\bdim:(?!SQ_RSRC)(\w+)", r"dim:SQ_RSRC_IMG_\1", text) if "dim:" in text else text


def candidates(text: str, generation: Table) -> tuple[Row, ...]:
  """Rows whose mnemonic the line starts with. Raises InvalidArgument for an unknown one."""
  heads = tuple(part.split(None, 1)[0] if part.split() else "" for part in text.split(" :: "))
  rows = named(heads, generation.key)
  if not rows: raise InvalidArgument(f"{' :: '.join(heads)!r} is no instruction of {generation.key}", where=repr(text))
  return rows


@cache
def renamed(word: str, isa: str) -> str:
  """The mnemonic of today of an older one that LLVM's assembler still takes, with the suffix that it has."""
  bare = next((word.removesuffix(v) for v in VARIANTS if word.endswith(v)), word)
  return ALIASES[isa].get(bare, bare) + word[len(bare):]


@cache
def named(heads: tuple[str, ...], key: str) -> tuple[Row, ...]:
  """Rows of a mnemonic with or without its encoding's suffix; of two with one text, first the one that LLVM chooses."""
  for names in (heads, *([h.removesuffix(v) for h in heads] for v in VARIANTS)):
    names = [ALIASES[table(key).name].get(n, n) for n in names]
    if rows := table(key).rows_of(" :: ".join(names)):
      return tuple(sorted(rows, key=lambda r: (r.variant == "sdwa", r.size, r.returns, r.variant.endswith("_alt"))))
  return ()


def assemble(text: str, generation: Table | None = None) -> bytes:
  """Bytes of one instruction. Raises InvalidArgument, with the line and the operand at fault."""
  generation = generation or table("gfx11")
  if not text.isascii():  # digits and letters of other scripts, which Python would take for numbers and names
    letter = next(c for c in text if not c.isascii())
    raise InvalidArgument(f"{letter!r} is no letter of an instruction", where=repr(text))
  text = normal(text)
  furthest = Reject(-1, "no encoding takes it")
  loose: bytes | None = None
  for row in candidates(text, generation):
    try:
      line = walk(row, text, generation)
      code = generation.encode(row, line.fields, line.literal)
      back = generation.decode(code)
    except Reject as error:
      if error.at > furthest.at: furthest = error
      continue
    except (EncodeError, DecodeError) as error:
      furthest = Reject(len(text), error.message)
      continue
    if str(back) == text: return code
    if row.family in IMAGES:
      furthest = Reject(len(text), f"its fields make it {back}")  # whose registers are as many as dmask, dim ... say
      continue
    if loose is None and back.mnemonic == row.mnemonic: loose = code
  if loose is not None: return loose
  raise InvalidArgument(furthest.what, where=repr(text))
