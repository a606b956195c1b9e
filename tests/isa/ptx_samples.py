"""An instruction's text for every form of the PTX table, and what ptxas says: `python -m tests.isa.ptx_samples`."""
from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import SIZES, Form, Row

PTXAS = shutil.which("ptxas")
_REGISTERS = {"pred": "p", "b8": "h", "u8": "h", "s8": "h", "b16": "h", "u16": "h", "s16": "h", "f16": "h", "bf16": "h",
              "e4m3x2": "h", "e5m2x2": "h", "f32": "f", "f64": "d", "b64": "l", "u64": "l", "s64": "l", "f32x2": "l",
              "b128": "q"}
_CONSTANT = {"bar": "1", "barrier": "1", "lop3": "0xE8", "cp": "16", "pmevent": "1", "setmaxnreg": "64", "fence": "128",
             "discard": "128",
             "applypriority": "128", "alloca": "8"}
VERSION = (9, 0)  # ptxas'
HEAD = """.version 9.0
.target {target}
.address_size 64
.const .align 16 .b8 cvar[64];
.global .texref tex;
.global .surfref suf;
.visible .entry k (.param .align 16 .b8 par[64]) {{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b64 %l<9>;
  .reg .b128 %q<9>; .reg .b8 %b<9>;
L:
"""
# Where the table allows more than ptxas: hints for caches go with few types, .sat only where a number may not fit;
# and where that is older than what compilers write.
LOOSE = re.compile(r"4X\.f32.*ue8m0|L[12]::|\.v8|\.v4\.\w(64|128)|\.v2\.b128|cvt\.sat\.[us]"
                   r"|^cvt\.\w+\.(bf16\.[us]8|[us]8\.bf16)")
# What ptxas accepts and the table has not: modifiers twice, and forms that the manual does not name.
BEYOND = re.compile(r"\.(\w+)(\.\w+)*\.\1(\.|$)|^fence.*generic\.global|^cvt\.b?f16\.b?f16|^madc\.hi\.sat"
                    r"|^set\.\w+\.u16\.and|^cvt.*ftz|^testp\.f")
RENAMED = {101: 110}
UNTRIED = {"call", "brx", "bra", "param::func", "wgmma"}


def sample(form: Form) -> str | None:
  """An instruction of a form; None for one that needs more than a line."""
  m, opcode = form.modifiers, form.row.opcode
  if form.row.version > VERSION or opcode in UNTRIED or m & UNTRIED or LOOSE.search(form.name): return None
  if opcode in {"vote", "shfl"} and "sync" not in m: return None  # of targets before sm_70
  count = next((int(x[1]) for x in ("v2", "v4", "v8") if x in m), 1)
  number = [0]

  def register(type_: str) -> str:
    number[0] += 1
    return f"%{_REGISTERS.get(type_, 'r')}{number[0] % 8 + 1}"

  def vector(type_: str) -> str:
    if count == 1: return register(type_)
    return "{" + ", ".join(register(type_) for _ in range(count)) + "}"

  def memory() -> str:
    if "const" in m: return "[cvar]"
    if m & {"param", "param::entry"}: return "[par]"
    return "[%l1]"

  def matrix(k: int) -> str | None:
    if opcode in {"ldmatrix", "stmatrix"}:
      return _braces("r", next(int(x[1]) for x in ("x1", "x2", "x4") if x in m) << ("m16n16" in m))
    if opcode == "wmma": return fragment(k)
    shape = next(s for s in (re.fullmatch(r"m(\d+)n8k(\d+)", x) for x in m) if s is not None)
    rows, depth = int(shape[1]), int(shape[2])
    if (rows, depth) == (8, 4) and "f16" in m:
      t = [x for x in form.name.split(".") if x in {"f16", "f32"}][k]
      return _braces("f" if t == "f32" else "r", 2 if k in {1, 2} else 8 if t == "f32" else 4)
    bits = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1, "e4m3": 8,
            "e5m2": 8, "f32": 32, "s32": 32}
    kinds = [x for x in form.name.split(".") if x in bits or x in {"e2m1", "e2m3", "e3m2"}]
    if k > 3: return "{%h1, %h2}"
    t = kinds[k]
    thin = bool(m & {"sp", "sp::ordered_metadata"})
    if t not in bits: t = "u4" if t == "e2m1" and depth == 64 << thin else "u8"
    stored = rows * depth >> thin
    total = (rows * 8, stored, depth * 8, rows * 8)[k] * bits[t]
    size = 64 if t == "f64" else 32
    return _braces({"f64": "d", "f32": "f"}.get(t, "r"), total // size // 32)

  def fragment(k: int) -> str:
    kinds = re.findall(r"\.(b?f16|tf32|f64|u8|s8|u4|s4|b1|f32|s32)(?=\.|$)", form.name)
    rows, columns, depth = map(int, re.findall(r"\d+", next(x for x in m if re.fullmatch(r"m\d+n\d+k\d+", x))))
    which = "dabc"[k] if "mma" in m else next(x for x in "abcd" if x in m)
    if len(kinds) == 2: kinds[1:1] = ["f16", "f16"]
    t = kinds[0] if len(kinds) == 1 else kinds["dabc".index(which)]
    size = {"a": rows * depth, "b": depth * columns}.get(which, rows * columns)
    bits = {"b1": 1, "u4": 4, "s4": 4, "u8": 8, "s8": 8, "f16": 16, "bf16": 16, "f64": 64}.get(t, 32)
    count = 8 if t == "f16" and which in "ab" else max(1, size * bits // (64 if t == "f64" else 32) // 32)
    return _braces({"f64": "d", "f32": "f"}.get(t, "r"), count)
  if opcode in {"tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"}: return _texture(form)
  if opcode == "multimem": return _multimem(form, count)
  if opcode == "tcgen05": return _tensor_core(form)
  words = []
  for k, code in enumerate((*form.results, *form.sources)):
    code = code.removeprefix("*")
    if code == "p": words.append("%p1")
    elif code == "p|p": words.append("%p1" if form.type in {"f16", "bf16"} else "%p1|%p2")
    elif code.endswith("|p"): words.append(f"{register(code[:-2])}|%p2")
    elif code == "q": words.append("!%p3")
    elif code == "i": words.append("0" if opcode == "mma" else _CONSTANT.get(opcode, "1"))
    elif code == "m": words.append(register(form.type))
    elif code == "@": words.append(memory())
    elif code == "T":
      rank = next(int(x[0]) for x in m if x in {"1d", "2d", "3d", "4d", "5d"})
      words.append(f"[%l1, {_braces('r', 5 if m & {'tile::gather4', 'tile::scatter4'} else rank)}]")
    elif code == "y": words.append("%r1" if "parity" in m else "%l2")
    elif code == "_": words.append("_")
    elif code == "v" and opcode == "clusterlaunchcontrol": words.append(_braces("r", 4))
    elif code == "v" and opcode == "cp":  # offsets of im2col
      words.append(_braces("h", next(int(x[0]) for x in m if x in {"3d", "4d", "5d"}) - 2))
    elif code == "v" and opcode == "cvt": words.append(_braces("f", 4))
    elif code == "v":
      text = matrix(k)
      if text is None: return None
      words.append(text)
    elif code == "b8" and opcode == "cvt": words.append("%b1")
    elif code in SIZES: words.append(vector(code) if opcode in {"ld", "ldu", "st", "atom", "red"} else register(code))
    else: return None
  if "*b32" in form.sources and not m & {"add", "min", "max"}: words[0] += ".h1"  # a third operand is merged with
  if "*u32" in form.sources and opcode in {"bar", "barrier"}: words[-1 - ("q" in form.sources)] = "64"
  if opcode in {"bar", "barrier"} and "arrive" in m and "cluster" not in m: words[-1] = "64"
  if opcode == "cp" and m & {"ca", "cg"}:
    words[2:] = ["16" if "cg" in m else "8"]
  if "cp_fenceproxy" in m: words[2] = "128"
  if opcode == "alloca": words[1] = "%l2" if form.type == "u64" else "%r2"
  if opcode == "createpolicy" and "fractional" in m: words = words[:1]
  if "L2::cache_hint" in m: words.append("%l8")
  if opcode == "st" and "bulk" in m: words = ["[%l1]", "%l2", "0"]
  if opcode == "st" and "async" in m and SIZES[form.type] == 1: words[1] = "%b1"
  return f"{form.name} {', '.join(words)};"


def _multimem(form: Form, count: int) -> str | None:
  """An instruction on multicast memory; None for sizes that there are not."""
  if count * SIZES[form.type] not in {4, 8, 16}: return None
  letter = "b" if SIZES[form.type] == 1 else _REGISTERS.get(form.type, "r")
  data = _braces(letter, count) if count > 1 else f"%{letter}1"
  return f"{form.name} {data}, [%l1];" if "ld_reduce" in form.modifiers else f"{form.name} [%l1], {data};"


def _tensor_core(form: Form) -> str:
  """An instruction of the tensor cores of sm_100."""
  m = form.modifiers
  words = []
  for code in form.sources if form.results[:1] != ("v",) else (*form.results, *form.sources):
    if code in {"u32", "s32", "f32"}: words.append("%f1" if code == "f32" else "%r1")
    elif code == "v": words.append(_braces("r", {"16x128b": 2, "16x256b": 4}.get(form.name.split(".")[4], 1)
                                         * next(int(x[1:]) for x in m if re.fullmatch(r"x\d+", x))))
    elif code == "M": words.append("[%r7]" if len(form.name) % 2 else "%l1")
    elif code == "@": words.append("[%l1]" if m & {"alloc", "commit"} and not m & {"shared::cta", "shared::cluster"}
                                   else "[%r1]")
    elif code[0] != "*": words.append({"b64": "%l2", "u16": "%h1", "q": "%p1", "i": "16"}.get(code, "%r2"))
  return f"{form.name} {', '.join(words)};"


def _texture(form: Form) -> str | None:
  """An instruction on a texture or surface: with an offset where the geometry has them."""
  m, opcode, t = form.modifiers, form.row.opcode, form.type
  if opcode == "istypep": return f"{form.name} %p1, %l1;"
  if "force_unnormalized_coords" in m: return None  # of a .samplerref, in another mode
  if opcode in {"txq", "suq"}:
    return f"{form.name} %r1, [{'tex' if opcode == 'txq' else 'suf'}]{', %r2' if 'level' in m else ''};"
  geometry = next(g for g in ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms") if g in m)
  axes = {"1d": 1, "a1d": 1, "3d": 3, "cube": 3, "acube": 3}.get(geometry, 2)
  lead = (geometry[0] == "a") + geometry.endswith("ms")

  def vector(letter: str, n: int) -> str: return _braces(letter, {3: 4}.get(n, n))
  if opcode in {"suld", "sust", "sured"}:
    count = next((int(x[1]) for x in ("v2", "v4") if x in m), 1)
    letter = _REGISTERS.get(t, "r")
    data = _braces(letter, count) if count > 1 else f"%{letter}1"
    at = f"[suf, {vector('r', lead + axes)}]"
    return f"{form.name} {data}, {at};" if opcode == "suld" else f"{form.name} {at}, {data};"
  letter = "f" if opcode == "tld4" or t == "f32" else "r"
  words = [f"%r{k + 1}" for k in range(lead)] + [f"%{letter}{k + 1}" for k in range(axes)]
  words += words[-1:] * (len(words) == 3)
  out = {"f32": "f", "f16": "h"}.get(form.types[0], "r")
  text = f"{form.name} {_braces(out, 2 if form.types[0] == 'f16x2' else 4)}|%p1, [tex, {{{', '.join(words)}}}]"
  if "level" in m: text += f", %{letter}1"
  if "grad" in m: text += f", {vector('f', axes)}, {vector('f', axes)}"
  if "cube" not in geometry: text += f", {vector('r', axes)}"
  return text + ";"


def _braces(letter: str, n: int) -> str: return "{" + ", ".join(f"%{letter}{k % 8 + 1}" for k in range(n)) + "}"


def refused(lines: list[str], target: str) -> dict[int, str]:
  """Which of these instructions ptxas refuses, with what it says."""
  assert PTXAS is not None
  head = HEAD.format(target=target)
  with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "k.ptx"
    path.write_text(head + "\n".join(lines) + "\nret;\n}\n")
    done = subprocess.run([PTXAS, "-arch", target, "-O0", "--compile-only", str(path), "-o", str(Path(folder) / "k.o")],
                          capture_output=True, text=True)
  if not done.returncode: return {}
  if len(lines) == 1: return {0: done.stderr.strip()}
  first = head.count("\n") + 1
  found: dict[int, str] = {}
  for line, text in re.findall(r"line (\d+);\s*error\s*:\s*(.*)", done.stderr):
    at = int(line) - first
    # some errors are told of another line: only those that name its instruction count
    if 0 <= at < len(lines) and f"'{lines[at].split('.')[0].split(' ')[0]}" in text: found.setdefault(at, text)
  left = [k for k in range(len(lines)) if k not in found]
  parts = [left] if found else [left[:len(left) // 2], left[len(left) // 2:]]
  for part in parts:
    found |= {part[k]: text for k, text in refused([lines[k] for k in part], target).items()} if part else {}
  return found


def chosen(row: Row, rng: random.Random, most: int) -> list[str]:
  """Names of a row: all, or a number of random ones."""
  if row.size <= most: return list(row.combinations())
  out = set()
  for _ in range(most):
    parts = [rng.choice((("",) if optional else ()) + choices) for optional, choices in row.slots]
    out.add(".".join([row.opcode, *filter(None, parts)]))
  return sorted(out)


def neighbours(names: Iterable[str], rng: random.Random, count: int) -> list[str]:
  """Names that the table does not have: with another modifier or type, with one left out, with one too many."""
  pool = [*(t for t in _REGISTERS if t != "pred"), "b32", "u32", "s32", "lo", "hi", "sat", "rn", "rz",
          "ftz", "cc", "approx", "relu", "NaN", "and", "sync", "global", "shared"]
  known = [n for n in names if "." in n]
  out = set()
  while len(out) < count:
    parts = rng.choice(known).split(".")
    at = rng.randrange(1, len(parts))
    kind = rng.randrange(3)
    if kind == 0: parts[at] = rng.choice(pool)
    elif kind == 1: del parts[at]
    else: parts.insert(at, rng.choice(pool))
    name = ".".join(parts)
    if forms.find(name) is None and not BEYOND.search(name): out.add(name)
  return sorted(out)


def like(name: str, of: dict[str, str]) -> str:
  """An instruction of a name that the table lacks, with the operands of the nearest one that it has."""
  opcode = name.split(".")[0]
  words = set(name.split("."))
  best = max((n for n in of if n.split(".")[0] == opcode), key=lambda n: len(words & set(n.split("."))))
  return name + of[best][len(best):]


def samples(most: int, rng: random.Random) -> dict[str, dict[str, str]]:
  """Instructions of the table by target and name."""
  texts: dict[str, dict[str, str]] = {}
  for rows in forms.rows().values():
    for row in rows:
      for name in chosen(row, rng, most):
        form = forms.find(name)
        assert form is not None, name
        text = sample(form)
        if text is None: continue
        target = RENAMED.get(form.row.sm, max(form.row.sm, 90))
        texts.setdefault(f"sm_{target}a", {})[name] = text
  return texts


def main(most: int = 60) -> int:
  """Print where the table and ptxas differ; how many instructions of the table ptxas refuses."""
  rng, wrong = random.Random(1), 0
  texts = samples(most, rng)
  for target, of in texts.items():
    names = list(of)
    found = refused([of[n] for n in names], target)
    print(f"{target}: {len(names)} instructions of the table, {len(found)} refused")
    for k, text in found.items():
      wrong += 1
      print(f"  {of[names[k]]}  {text}")
  of = texts["sm_90a"]
  others = neighbours(of, rng, 3000)
  found = refused([like(n, of) for n in others], "sm_90a")
  print(f"{len(others)} others, {len(others) - len(found)} accepted")
  for k, name in enumerate(others):
    if k not in found: print(f"  {like(name, of)}")
  return wrong


if __name__ == "__main__": sys.exit(main(*map(int, sys.argv[1:])))
