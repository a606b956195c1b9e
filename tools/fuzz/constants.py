"""Operands that are constants: `op(x, constant)` beside `op(x, the same value from memory)`, in one kernel.

    python -m tinyhw.tools.fuzz.constants                          every case, operand and constant, all generations
    python -m tinyhw.tools.fuzz.constants --arch gfx942 --match dot

The compiler chooses where a constant goes: inline in an operand, as a literal, or in a register. What it takes an
inline constant for in an operand of a type (LLVM's isInlinableLiteral*) must be what the emulator reads there. The
constants are those that inline codes stand for in any type: integers from -16 to 64 and nine numbers, in either half
and in both halves of pairs.
"""
from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tinyhw.arch import decoded
from tinyhw.emulator.engines.amdgcn import ENGINES
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.codes import INLINE_FLOATS
from tinyhw.tools.fuzz.build import gpu_object
from tinyhw.tools.fuzz.case import Array, Case, split, stored, width
from tinyhw.tools.fuzz.corpus import cases_of
from tinyhw.tools.fuzz.folding import constant
from tinyhw.tools.fuzz.run import Emulated, differing, inputs, outputs

LANES: Final = 64
# Cases whose constants LLVM folds to something else than the instruction gives: more precise, or NaN for NaN.
FOLDED: Final = re.compile(r"amdgcn_(rcp|rsq|sqrt|sin|cos|log|exp2|cube|trig_preop)")
MISTAKEN: Final = "or_v2i32"  # LLVM 22 leaves x, of x | <c, -1>, in the element of -1 (v_mov_b32 of x itself)
CHUNK: Final = 24  # kernels in one module
CPUS: Final = ("gfx1100", "gfx1201", "gfx942")
_NAME: Final = re.compile(r"%([A-Za-z_][\w.]*)")
_INTEGERS: Final = range(-16, 65)
_NUMBERS: Final = tuple(INLINE_FLOATS.values())
SPECIAL: Final = re.compile(r"dot2|mix|v2i16|v2half")  # cases whose operands have types of their own


@dataclass(frozen=True, eq=False)
class Trial:
  """One operand of a case, with the constants that it takes: stored values [n, width of the operand]."""
  case: Case
  operand: int
  values: Array

  @property
  def kernel(self) -> Case:
    """The case that computes all of them both ways: outputs by constants, then the same by memory."""
    case, parts = self.case, []
    count = len(case.outputs)
    for k, value in enumerate(self.values):
      parts.append(self._body(f"_c{k}", constant(case.inputs[self.operand], value)))
      letter, kind = chr(97 + self.operand), case.inputs[self.operand]
      parts.append(f"%q.at{k} = add i32 %i, {k * LANES}\n  %q.g{k} = getelementptr {_memory(kind)}, ptr addrspace(1) "
                   f"%p{letter}, i32 %q.at{k}\n  %q.v{k} = load {_memory(kind)}, ptr addrspace(1) %q.g{k}")
      if kind == "i1": parts.append(f"%q.w{k} = trunc i8 %q.v{k} to i1")
      parts.append(self._body(f"_m{k}", f"%q.{'w' if kind == 'i1' else 'v'}{k}"))
      for way, suffix in enumerate((f"_c{k}", f"_m{k}")):
        parts += [_store(case.outputs[n], f"%{chr(114 + n)}{suffix}", chr(111 + way * count + n), f"{suffix}{n}",
                         f"%q.at{k}") for n in range(count)]
    parts += [f"%{chr(114 + way * count + n)} = freeze {case.outputs[n]} %{chr(114 + n)}{'_m' if way else '_c'}0"
              for way in (0, 1) for n in range(count)]
    return Case(f"{case.name}_{self.operand}", case.inputs, case.outputs * 2, "\n  ".join(parts),
                case.declarations if case.gpu_declarations is None else case.gpu_declarations, lanes=LANES,
                attributes=case.attributes)

  def _body(self, suffix: str, value: str) -> str:
    """The case's body with the operand's value, and names of its own."""
    case = self.case
    kept = {chr(97 + k) for k in range(len(case.inputs))} | {"i", "lanes", "lane", "group"}
    letter = chr(97 + self.operand)

    def name(found: re.Match[str]) -> str:
      if found[1] == letter: return value
      return found[0] if found[1] in kept else found[0] + suffix
    return _NAME.sub(name, case.body if case.gpu is None else case.gpu).strip()


def _memory(kind: str) -> str: return "i8" if kind == "i1" else kind


def _store(kind: str, value: str, pointer: str, name: str, at: str) -> str:
  text = ""
  if kind == "i1": text, value, kind = f"%q.z{name} = zext i1 {value} to i8\n  ", f"%q.z{name}", "i8"
  return text + (f"%q.o{name} = getelementptr {kind}, ptr addrspace(1) %p{pointer}, i32 {at}\n  "
                 f"store {kind} {value}, ptr addrspace(1) %q.o{name}")


# ---- which constants

def _float(value: float, code: int, bits: int) -> int:
  """The pattern of an inline number as a float of so many bits."""
  if code == 248: return {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}[bits]
  return int(np.array(value, f"f{bits // 8}").view(f"u{bits // 8}"))


def patterns(bits: int, parts: int = 1) -> list[int]:
  """Patterns of a value of so many bits, of one or two parts, that could be an inline constant in some type."""
  mask = (1 << bits) - 1
  out = [v & mask for v in _INTEGERS]
  for code, value in INLINE_FLOATS.items():
    out += [_float(value, code, b) for b in (16, 32, 64) if b <= bits]
    if bits >= 16: out.append(_float(value, code, 32) >> 16)  # as bfloat
  if parts == 2:
    half, low = bits // 2, (1 << bits // 2) - 1
    singles = patterns(half)
    out += [p | p << half for p in singles] + [p << half for p in singles] + [p & low for p in singles]
    out += [p | singles[k * 7 % len(singles)] << half for k, p in enumerate(singles)]
  return list(dict.fromkeys(out))


def constants(kind: str, rng: np.random.Generator | None, limit: int) -> Array:
  """Constants of a type as stored [n, elements]; at most `limit` of them, drawn, where there is a generator."""
  count, scalar = split(kind)
  bits = 1 if scalar == "i1" else 8 * stored(kind).itemsize
  pair = 2 if count % 2 == 0 and bits in {16, 32} else 1
  chosen = np.array(patterns(bits * pair, pair) if bits > 1 else [0, 1], object)
  if rng is not None and len(chosen) > limit: chosen = chosen[np.sort(rng.permutation(len(chosen))[:limit])]
  rows = []
  for p in chosen:
    whole = int(p)
    for k in range(1, count // pair): whole |= int(p) << bits * pair * k
    raw = whole.to_bytes(max(1, bits * count // 8), "little")
    rows.append(np.frombuffer(raw, stored(kind)))
  out = np.zeros((len(rows), width(kind)), stored(kind))
  for k, row in enumerate(rows): out[k, :len(row)] = row
  return out


def operands(case: Case) -> Iterator[int]:
  """The operands of a case that may be constants; none where the body is more than straight lines of one lane."""
  body = case.body if case.gpu is None else case.gpu
  if len(case.inputs) < 2 or len(case.outputs) > 2 or case.inplace or case.dims or case.unordered: return
  if re.search(r"^\s*[\w.]+:|alloca|%p[a-z]\b|%i\b|%lanes?\b|%group\b", body, re.M) or FOLDED.match(case.name): return
  if case.block != LANES and case.lanes % LANES: return
  for k in range(len(case.inputs)):
    if "mma" in case.name and k < 2: continue  # these are registers always
    if re.search(rf"%{chr(97 + k)}\b", body): yield k


def trials(cpu: str, match: str = "", seed: int | None = None, limit: int = 16) -> list[Trial]:
  """Every operand of the corpus with every constant; with a seed, with up to `limit` constants that it draws."""
  rng = None if seed is None else np.random.default_rng(seed)
  out = []
  for case in [*cases_of(cpu), *own_cases(cpu)]:
    if not re.search(match, case.name): continue
    for k in operands(case):
      values = constants(case.inputs[k], rng, limit)
      if case.name == MISTAKEN: values = values[~(values == 0xFFFFFFFF).any(axis=1)]
      out.append(Trial(case, k, values))
  return out


# ---- cases that the corpus lacks

# Products of matrices, whose accumulator may be a constant: name, types of A, B and C, the arguments after them.
MATRICES: Final[dict[str, list[tuple[str, tuple[str, str, str], list[str]]]]] = {
  "gfx1100": [("wmma.f16.16x16x16.f16.v16f16.v16f16", ("<16 x half>",) * 3, ["i1 0"]),
              ("wmma.f32.16x16x16.f16.v8f32.v16f16", ("<16 x half>", "<16 x half>", "<8 x float>"), []),
              ("wmma.bf16.16x16x16.bf16.v16i16.v16i16", ("<16 x i16>",) * 3, ["i1 0"])],
  "gfx1201": [("wmma.f16.16x16x16.f16.v8f16.v8f16", ("<8 x half>",) * 3, ["i1 0"]),
              ("wmma.f32.16x16x16.f16.v8f32.v8f16", ("<8 x half>", "<8 x half>", "<8 x float>"), []),
              ("wmma.bf16.16x16x16.bf16.v8i16.v8i16", ("<8 x i16>",) * 3, ["i1 0"])],
  "gfx942": [("mfma.f32.16x16x16f16", ("<4 x half>", "<4 x half>", "<4 x float>"), ["i32 0"] * 3),
             ("mfma.i32.16x16x32.i8", ("i64", "i64", "<4 x i32>"), ["i32 0"] * 3),
             ("mfma.f64.16x16x4f64", ("double", "double", "<4 x double>"), ["i32 0"] * 3)]}


def own_cases(cpu: str) -> list[Case]:
  """Products of pairs and mixed precision, whose operands have types of their own."""
  out: list[Case] = []
  pair, wide = "<2 x half>", "<2 x bfloat>"

  def intrinsic(name: str, kind: str, *kinds: str, clamp: bool) -> None:
    values = [f"{k} %{chr(97 + n)}" for n, k in enumerate(kinds)] + ["i1 false"] * clamp
    types = [*kinds, *["i1"] * clamp]
    out.append(Case(f"constant_{name.replace('.', '_')}", kinds, (kind,),
                    f"%r = call {kind} @llvm.amdgcn.{name}({', '.join(values)})",
                    f"declare {kind} @llvm.amdgcn.{name}({', '.join(types)})"))
  if cpu == "gfx942":
    for sign in "su": intrinsic(f"{sign}dot2", "i32", "<2 x i16>", "<2 x i16>", "i32", clamp=True)
    intrinsic("sdot4", "i32", "i32", "i32", "i32", clamp=True)
    intrinsic("sdot8", "i32", "i32", "i32", "i32", clamp=True)
  else:
    intrinsic("fdot2.bf16.bf16", "bfloat", wide, wide, "bfloat", clamp=False)
    intrinsic("fdot2.f32.bf16", "float", wide, wide, "float", clamp=True)
  intrinsic("fdot2", "float", pair, pair, "float", clamp=True)
  for name, kinds, flags in MATRICES[cpu]:
    values = ", ".join([f"{k} %{chr(97 + n)}" for n, k in enumerate(kinds)] + flags)
    types = ", ".join([*kinds, *(f.split()[0] for f in flags)])
    out.append(Case(f"constant_{name.replace('.', '_')}", kinds, (kinds[2],),
                    f"%r = call {kinds[2]} @llvm.amdgcn.{name}({values})",
                    f"declare {kinds[2]} @llvm.amdgcn.{name}({types})"))
  # v_fma_mix, v_mad_mix: each source is f32, or f16 from either half
  for name, kinds in (("hhf", ("half", "half", "float")), ("hff", ("half", "float", "float")),
                      ("hhh", ("half", "half", "half"))):
    lines = [f"%{c}x = fpext half %{c} to float" for c, k in zip("abc", kinds) if k == "half"]
    x, y, z = (f"%{c}x" if k == "half" else f"%{c}" for c, k in zip("abc", kinds))
    lines.append(f"%m = call float @llvm.fma.f32(float {x}, float {y}, float {z})")
    text, declared = "\n  ".join(lines), "declare float @llvm.fma.f32(float, float, float)"
    out.append(Case(f"constant_mix_{name}", kinds, ("float",), text.replace("%m =", "%r ="), declared))
    out.append(Case(f"constant_mixlo_{name}", kinds, ("half",), text + "\n  %r = fptrunc float %m to half", declared))
    out.append(Case(f"constant_mixhi_{name}", (*kinds, "half"), (pair,), text + f"""
  %h = fptrunc float %m to half
  %v = insertelement {pair} poison, half %d, i32 0
  %r = insertelement {pair} %v, half %h, i32 1""", declared))
  return out


# ---- running them

@dataclass(frozen=True)
class Difference:
  """A constant that an operation takes for another value than memory's."""
  trial: Trial
  constant: int
  text: str

  def __str__(self) -> str:
    case, value = self.trial.case, self.trial.values[self.constant]
    digits = 2 * value.dtype.itemsize
    shown = " ".join(f"{int(v):#0{digits + 2}x}" for v in value)
    return f"{case.name}, operand {self.trial.operand} = {shown}: {self.text}"


def _arrays(trial: Trial, kernel: Case, seed: int) -> list[Array]:
  """Inputs of LANES lanes, with the constants for all lanes in the operand's place."""
  arrays = [a[:LANES].copy() for a in inputs(trial.case, seed)]
  values = trial.values if trial.values.shape[1] > 1 else trial.values[:, 0]
  arrays[trial.operand] = np.ascontiguousarray(np.repeat(values, LANES, axis=0))
  return arrays


def differences(trial: Trial, machine: Emulated, seed: int) -> list[Difference]:
  """The constants that make a difference."""
  kernel, count = trial.kernel, len(trial.case.outputs)
  arrays = _arrays(trial, kernel, seed)
  results = [np.repeat(x, len(trial.values), axis=0) for x in outputs(kernel)]
  machine.run(kernel, [*arrays, *results])
  found = []
  for n, kind in enumerate(trial.case.outputs):
    by_constant, by_memory = results[n], results[count + n]
    wrong = differing(trial.case, kind, by_constant, by_memory)
    slots = by_constant.size // len(trial.values)
    for k in dict.fromkeys((wrong // slots).tolist()):
      at = int(wrong[wrong // slots == k][0])
      lane = at % slots // (slots // LANES)
      others = ", ".join(f"{int(v):#x}" for j, a in enumerate(arrays) if j != trial.operand for v in np.ravel(a[lane]))
      found.append(Difference(trial, k, f"{int(by_constant.reshape(-1)[at]):#x} for "
                              f"{int(by_memory.reshape(-1)[at]):#x} (others {others})"))
  return found


def inline_operands(machine: Emulated) -> Counter[str]:
  """How many operands of each type are inline constants in the code of a machine's kernels."""
  out: Counter[str] = Counter()
  decode, image = table(machine.arch.isa).decode, machine.code.link(0)
  for kernel in machine.code.kernels.values():
    at = kernel.entry_offset
    while (i := decode(image, at)).mnemonic != "s_endpgm":
      at += i.size
      out.update(o.type for o in i.operands.values() if o.kind == "const")
  return out


def run(cpu: str, chosen: Sequence[Trial], *, engine: str = "ref", seed: int = 0, level: int = 2,
        selected: Counter[str] | None = None) -> Iterator[Difference]:
  """Compile and run trials in modules. `selected` counts the inline constants that the compiler chose, by type."""
  for at in range(0, len(chosen), CHUNK):
    part = chosen[at:at + CHUNK]
    machine = Emulated(gpu_object([t.kernel for t in part], level, cpu=cpu), decoded(cpu), engine)
    if selected is not None: selected.update(inline_operands(machine))
    for trial in part: yield from differences(trial, machine, seed)


def main() -> int:
  """Run what the command line asks for; the exit status is 1 where a constant makes a difference."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.fuzz.constants", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--arch", "--cpu", dest="cpus", action="append", choices=CPUS)
  parser.add_argument("--match", default="", help="only cases whose name matches this regular expression")
  parser.add_argument("--engine", default="ref", choices=ENGINES)
  parser.add_argument("--seed", type=int, default=0, help="of the other operands")
  parser.add_argument("--level", type=int, default=2, help="LLVM's optimization level")
  parser.add_argument("--limit", type=int, default=0, help="so many constants an operand, drawn by the seed; 0: all")
  options = parser.parse_args()
  wrong = 0
  for cpu in options.cpus or CPUS:
    start = time.monotonic()
    chosen = trials(cpu, options.match, options.seed if options.limit else None, options.limit)
    operations, selected = Counter[str](), Counter[str]()
    for difference in run(cpu, chosen, engine=options.engine, seed=options.seed, level=options.level,
                          selected=selected):
      operations[f"{difference.trial.case.name}, operand {difference.trial.operand}"] += 1
      if operations[f"{difference.trial.case.name}, operand {difference.trial.operand}"] <= 3: print(cpu, difference)
    count = sum(len(t.values) for t in chosen)
    print(f"{cpu}: {count} constants in {len(chosen)} operands of {len({t.case.name for t in chosen})} cases, "
          f"{selected.total()} operands inline, {operations.total()} differ in {len(operations)} operands, "
          f"{time.monotonic() - start:.0f} s", flush=True)
    wrong += operations.total()
  return 1 if wrong else 0


if __name__ == "__main__": sys.exit(main())
