"""Assembler of whole files: instructions with labels and comments, and of a compiler's listing the code sections.

`program(text, table)` goes over the lines twice: sizes and labels first, then branches. What a linker would have to
fill in is refused; of directives, those that only describe the code are passed over, all others refused by name.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tinyhw.core.environment import digits
from tinyhw.core.errors import InvalidArgument
from tinyhw.isa.amdgcn.asm import assemble, candidates, normal
from tinyhw.isa.amdgcn.tables import Table
from tinyhw.isa.amdgcn.values import number

COMMENT: Final = re.compile(r"//|;")
NAME: Final = r"[A-Za-z_.$][\w.$]*"
LABEL: Final = re.compile(rf"({NAME}|[0-9]+):")
ASSIGNMENT: Final = re.compile(rf"(?:\.set\s+({NAME})\s*,|({NAME})\s*=)\s*(.+)")
TARGET: Final = re.compile(rf"(.*[\s,])({NAME})")
# Directives that say nothing of the code's bytes: what a symbol is called, who may see it, how large it is.
DESCRIPTIONS: Final = re.compile(
  r"(?a)\.(globl|global|weak|protected|hidden|internal|local|type|size|file|ident|loc|amdgcn_target|cfi_\w+"
  r"|amdhsa_code_object_version|addrsig(_sym)?|amdgpu_lds|amdgpu_hsa_kernel)\b")
BLOCKS: Final = {f".{name}": f".end_{name}" for name in ("amdhsa_kernel", "amdgpu_metadata", "amd_kernel_code_t")}
SECTIONS: Final = re.compile(r"(?a)\.(?:text|data|bss|rodata|(?:push)?section\s+\"?([\w.$]+)|popsection)")
DATA: Final = {".byte": 1, ".short": 2, ".2byte": 2, ".long": 4, ".int": 4, ".4byte": 4, ".quad": 8, ".8byte": 8}
NOP: Final = 0xBF800000  # s_nop 0, in every generation; LLVM fills gaps between functions with it


@dataclass
class Item:
  """A line that has bytes: its number, its text, its place, and the label that its branch goes to."""
  number: int
  text: str
  at: int
  code: bytes
  target: str = ""


def _lines(text: str) -> Iterator[tuple[int, str]]:
  """Number and text of each line without comments."""
  text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n") or " ", text, flags=re.S)
  for n, line in enumerate(text.splitlines(), 1):
    line = (COMMENT.split(line, maxsplit=1)[0] if "/" in line or ";" in line else line).strip()
    if line: yield n, line


def _statements(text: str) -> Iterator[tuple[int, str]]:
  """The lines of code sections; blocks that describe kernels are left out, and so are other sections."""
  code, stack, end = True, [], ""
  for n, line in _lines(text):
    if end:
      if line == end: end = ""
    elif line[0] == "." and (word := line.split()[0]) in BLOCKS: end = BLOCKS[word]
    elif line[0] == "." and (m := SECTIONS.match(line)):
      if line.startswith(".pushsection"): stack.append(code)
      code = (stack.pop() if stack else True) if word == ".popsection" else (m[1] or word).startswith(".text")
    elif code: yield n, line


def program(text: str, generation: Table, where: str) -> list[Item]:
  """The lines of a file that have bytes. Raises InvalidArgument with the number of the line at fault."""
  items: list[Item] = []
  labels: dict[str, int] = {}
  symbols: dict[str, int] = {}
  at = 0
  for n, line in _statements(text):
    try:
      while m := LABEL.match(line):
        if digits(m[1]): raise InvalidArgument(f"{m[1]!r} is a local label; give it a name")
        if m[1] in labels: raise InvalidArgument(f"{m[1]!r} is a label already")
        labels[m[1]], line = at, line[m.end():].strip()
      if not line: continue
      if "=" in line or line[0] == ".":
        code, target = _directive(line, at, symbols), ""
        if code is None: continue
      else: code, target = _instruction(line, generation, symbols)
    except InvalidArgument as error: raise InvalidArgument(f"line {n}: {error}", where=where) from None
    items.append(Item(n, line, at, code, target))
    at += len(code)
  for item in items:
    if item.target: item.code = _branch(item, labels, where)
  return items


def _instruction(line: str, generation: Table, symbols: dict[str, int]) -> tuple[bytes, str]:
  """Bytes of an instruction, and the label that it names, for which 0 stands in the bytes."""
  if symbols: line = re.sub(NAME, lambda m: str(symbols.get(m[0], m[0])), line)
  if line.startswith(("s_cbranch", "s_branch", "s_call", "s_subvector", "S_")):
    line = normal(line)
    if (m := TARGET.fullmatch(line)) and m[1].strip() and any(
        o[4] == "SOPPBrTarget" for row in candidates(line, generation) for o in row.operands):
      return assemble(m[1] + "0", generation), m[2]
  try: return assemble(line, generation), ""
  except InvalidArgument as error:
    if "@" in line or ".L" in line or "(" not in line and re.search(r"(?a)\b[A-Za-z_]\w*[+-]\d", line):
      raise InvalidArgument(f"{error}; addresses of symbols are a linker's to fill in") from None
    raise


def _branch(item: Item, labels: dict[str, int], where: str) -> bytes:
  """The branch with its offset: dwords from the next instruction, in the low half of its first dword."""
  line = f"line {item.number}: {item.text!r}"
  if item.target not in labels: raise InvalidArgument(f"{line}: there is no label {item.target!r}", where=where)
  distance = labels[item.target] - item.at - 4
  if distance % 4 or not -0x8000 <= distance // 4 < 0x8000:
    raise InvalidArgument(f"{line}: {item.target!r} is {distance} bytes away", where=where,
                          hint="a branch reaches whole dwords, 32,767 forth and 32,768 back")
  return (distance // 4 & 0xFFFF).to_bytes(2, "little") + item.code[2:]


def _directive(line: str, at: int, symbols: dict[str, int]) -> bytes | None:
  """Bytes of a directive; None where it has none."""
  word, _, rest = line.partition(" ")
  word = word.split("\t")[0]
  rest = line[len(word):].strip()
  if m := ASSIGNMENT.fullmatch(line):
    symbols[m[1] or m[2]] = _number(m[3], symbols)
    return None
  if DESCRIPTIONS.match(line): return None
  values = [_number(v, symbols) for v in rest.split(",")] if rest and word in {*DATA, *ALIGNMENTS, ".fill"} else []
  if word in DATA and values:
    size = DATA[word]
    return b"".join((v & (1 << 8 * size) - 1).to_bytes(size, "little") for v in values)
  if word in ALIGNMENTS and values:
    to = 1 << values[0] if word.startswith(".p2") else values[0]
    if not 0 < to <= 1 << 16 or to & to - 1: raise InvalidArgument(f"{line!r}: {to} is no power of two up to 65,536")
    fill = values[1] if len(values) > 1 and word.endswith("l") else NOP
    gap = -at % to
    return bytes(gap % 4) + (fill & 0xFFFFFFFF).to_bytes(4, "little") * (gap // 4) if gap else None
  if word == ".fill" and 1 <= len(values) <= 3:
    count, size, value = (*values, *(1, 0)[len(values) - 1:])
    if not (0 <= count <= 1 << 20 and 1 <= size <= 8): raise InvalidArgument(f"{line!r}: too many or too wide")
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little") * count
  raise InvalidArgument(f"directive {word!r} is not taken", hint="code, labels, numbers and alignment are")


ALIGNMENTS: Final = frozenset({".p2align", ".p2alignl", ".align", ".balign", ".balignl"})


def _number(text: str, symbols: dict[str, int]) -> int:
  text = text.strip()
  value = number(re.sub(NAME, lambda m: str(symbols.get(m[0], m[0])), text))
  if value is None: raise InvalidArgument(f"{text!r} is no number")
  return value
