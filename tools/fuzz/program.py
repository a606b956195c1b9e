"""Random programs: straight code, selects, branches and loops over values of mixed types, from a seed.

Nothing in them is undefined: shift amounts are masked, divisors mended, conversions saturate. A NaN's pattern never
becomes an integer, and a value that LLVM may compute in two ways (the sign of a zero out of a minimum) is not used.
"""
from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.scalar import FCMP, INTS, SUFFIX

TYPES: Final = ("i1", "i8", "i16", "i32", "i64", "half", "float", "double")
FLOATS: Final = ("half", "float", "double")
BINARY: Final = ("add", "sub", "mul", "and", "or", "xor")
PREDICATES: Final = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")


class ProgramWriter:
  """IR lines with the values that are alive, by type."""

  def __init__(self, rng: random.Random) -> None:
    self.rng, self.lines, self.declared, self.count = rng, list[str](), dict[str, None](), 0
    self.values: dict[str, list[str]] = {kind: [] for kind in TYPES}

  def emit(self, kind: str, text: str) -> str:
    """A line that defines a new value."""
    self.count += 1
    name = f"%v{self.count}"
    self.lines.append(f"{name} = {text}")
    self.values[kind].append(name)
    return name

  def call(self, kind: str, function: str, *arguments: tuple[str, str]) -> str:
    """A call of an intrinsic."""
    self.declared[f"declare {kind} @{function}({', '.join(k for k, _ in arguments)})"] = None
    return self.emit(kind, f"call {kind} @{function}({', '.join(f'{k} {v}' for k, v in arguments)})")

  def pick(self, kind: str) -> str:
    """A value of a type: mostly a recent one, sometimes a constant."""
    known = self.values[kind]
    if known and self.rng.random() < 0.88: return self.rng.choice(known[-6:] if self.rng.random() < 0.6 else known)
    if kind == "i1": return self.rng.choice(["true", "false"])
    if kind in INTS:
      n = INTS[kind]
      return str(self.rng.choice([0, 1, 2, 7, -1, -2, 100, (1 << n - 1) - 1, -(1 << n - 1),
                                  self.rng.getrandbits(n - 1)]))
    return self.rng.choice(["0.0", "1.0", "-1.0", "0.5", "2.0", "-4.0", "3.0", "1024.0", "-0.375"])

  def operation(self) -> None:
    """One random operation."""
    kind = self.rng.choice(TYPES)
    if kind == "i1": self._condition()
    elif kind in FLOATS: self._float(kind)
    else: self._integer(kind)

  def _condition(self) -> None:
    what = self.rng.randrange(3)
    if what == 0:
      kind = self.rng.choice(list(INTS))
      self.emit("i1", f"icmp {self.rng.choice(PREDICATES)} {kind} {self.pick(kind)}, {self.pick(kind)}")
    elif what == 1:
      kind = self.rng.choice(FLOATS)
      self.emit("i1", f"fcmp {self.rng.choice(FCMP)} {kind} {self.pick(kind)}, {self.pick(kind)}")
    else: self.emit("i1", f"{self.rng.choice(['and', 'or', 'xor'])} i1 {self.pick('i1')}, {self.pick('i1')}")

  def _integer(self, kind: str) -> None:
    rng, n = self.rng, INTS[kind]
    a, b = self.pick(kind), self.pick(kind)
    what = rng.randrange(11)
    if what < 3: self.emit(kind, f"{rng.choice(BINARY)} {kind} {a}, {b}")
    elif what == 3:
      amount = self.emit(kind, f"and {kind} {b}, {n - 1}")
      self.emit(kind, f"{rng.choice(['shl', 'lshr', 'ashr'])} {kind} {a}, {amount}")
    elif what == 4:
      divisor = self.emit(kind, f"or {kind} {b}, 1")
      if rng.random() < 0.5: self.emit(kind, f"{rng.choice(['udiv', 'urem'])} {kind} {a}, {divisor}")
      else:
        positive = self.emit(kind, f"and {kind} {divisor}, {(1 << n - 1) - 1}")
        self.emit(kind, f"{rng.choice(['sdiv', 'srem'])} {kind} {a}, {positive}")
    elif what == 5:
      op = rng.choice(["smin", "smax", "umin", "umax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat"])
      self.call(kind, f"llvm.{op}.{kind}", (kind, a), (kind, b))
    elif what == 6:
      op = rng.choice(["ctpop", "bitreverse"] + ["bswap"] * (kind == "i32"))
      self.call(kind, f"llvm.{op}.{kind}", (kind, a))
    elif what == 7: self.call(kind, f"llvm.{rng.choice(['fshl', 'fshr'])}.{kind}", (kind, a), (kind, b), (kind,
      self.pick(kind)))
    elif what == 8: self.emit(kind, f"select i1 {self.pick('i1')}, {kind} {a}, {kind} {b}")
    elif what == 9:
      other = rng.choice([k for k in INTS if k != kind])
      x = self.pick(other)
      if INTS[other] > n: self.emit(kind, f"trunc {other} {x} to {kind}")
      else: self.emit(kind, f"{rng.choice(['zext', 'sext'])} {other} {x} to {kind}")
    else:
      source = rng.choice(FLOATS)
      op = rng.choice(["fptosi", "fptoui"])
      self.call(kind, f"llvm.{op}.sat.{kind}.{SUFFIX[source]}", (source, self.pick(source)))

  def _float(self, kind: str) -> None:
    rng, m = self.rng, SUFFIX[kind]
    a, b = self.pick(kind), self.pick(kind)
    what = rng.randrange(10)
    if what < 4: self.emit(kind, f"{rng.choice(['fadd', 'fsub', 'fmul'])} {kind} {a}, {b}")
    elif what == 4: self.emit(kind, f"fdiv {kind} {a}, {b}")
    elif what == 5:
      if kind == "half": self.emit(kind, f"fneg {kind} {a}")  # the host rounds a fused half product twice
      else: self.call(kind, f"llvm.fma.{m}", (kind, a), (kind, b), (kind, self.pick(kind)))
    elif what == 6: self.call(kind, f"llvm.{rng.choice(['floor', 'ceil', 'trunc', 'rint', 'fabs', 'sqrt'])}.{m}",
                              (kind, a))
    elif what == 7: self.emit(kind, f"select i1 {self.pick('i1')}, {kind} {a}, {kind} {b}")
    elif what == 8:
      source = rng.choice(list(INTS))
      self.emit(kind, f"{rng.choice(['sitofp', 'uitofp'])} {source} {self.pick(source)} to {kind}")
    else:
      other = rng.choice([k for k in FLOATS if k != kind])
      wider = FLOATS.index(kind) > FLOATS.index(other)
      x = self.emit(kind, f"{'fpext' if wider else 'fptrunc'} {other} {self.pick(other)} to {kind}")
      if (other, kind) == ("float", "half"):  # LLVM 22's v_fma_mixlo_f16 for a product loses the sign of a zero
        self.values[kind].remove(x)
        self.emit(kind, f"fadd {kind} {x}, 0.0")

  def block(self, count: int) -> None:
    """Some operations."""
    for _ in range(count): self.operation()


def program(seed: int, uniform: bool = False) -> Case:
  """The random program of a seed: straight code, then a branch and a loop whose results are joined.

  A uniform one computes on values that a workgroup shares: much of it then runs on the scalar unit.
  """
  rng = random.Random(zlib.crc32(b"program %d %d" % (seed, uniform)))
  w = ProgramWriter(rng)
  kinds = [rng.choice(("i32", "i64", "i32", "i16",
                       "float") if uniform else TYPES[1:]) for _ in range(rng.randrange(2, 5))]
  for at, kind in enumerate(kinds):
    x = chr(97 + at)
    if uniform:
      w.lines.append(f"%q{x} = getelementptr {kind}, ptr addrspace(1) %p{x}, i32 %group")
      w.emit(kind, f"load {kind}, ptr addrspace(1) %q{x}")
    else: w.values[kind].append(f"%{x}")
  w.values["i32"].append("%group" if uniform else "%i")
  w.block(rng.randrange(6, 30))
  if rng.random() < 0.7: _branch(w)
  if rng.random() < 0.6: _loop(w)
  w.block(rng.randrange(2, 12))
  results = []
  for k, letter in enumerate("rst"):
    kind = rng.choice([t for t in TYPES if any(v.startswith("%v") for v in w.values[t])] or ["i32"])
    value = rng.choice(w.values[kind][-3:] or ["0"])
    if kind in FLOATS: w.lines.append(f"%{letter} = select i1 true, {kind} {value}, {kind} 0.0")
    elif kind == "i1": w.lines.append(f"%{letter} = xor i1 {value}, false")
    else: w.lines.append(f"%{letter} = add {kind} {value}, 0")
    results.append(kind)
    if k and rng.random() < 0.4: break
  name = f"{'uniform_' if uniform else ''}program_{seed}"
  text = "\n  ".join(w.lines)
  case = Case(name, tuple(kinds), tuple(results), text, "\n".join(w.declared),
              lanes=512 if uniform else 256, block=32 if uniform else 64)
  # LLVM 22 takes a sign extended number for a small one in an unsigned division at O0.
  return replace(case, levels=(1, 2, 3)) if re.search("= u(div|rem) ", text) and "= sext " in text else case


def _branch(w: ProgramWriter) -> None:
  """if/else with two values joined."""
  condition = w.pick("i1")
  w.count += 1
  n = w.count
  before = {k: list(v) for k, v in w.values.items()}
  w.lines += [f"br label %b{n}.in", f"b{n}.in:", f"br i1 {condition}, label %b{n}.then, label %b{n}.else",
              f"b{n}.then:"]
  w.block(w.rng.randrange(2, 8))
  kinds = [w.rng.choice(TYPES[1:]) for _ in range(2)]
  first = [w.pick(k) for k in kinds]
  w.values = {k: list(v) for k, v in before.items()}
  w.lines += [f"br label %b{n}.join", f"b{n}.else:"]
  w.block(w.rng.randrange(1, 8))
  second = [w.pick(k) for k in kinds]
  w.values = before
  w.lines += [f"br label %b{n}.join", f"b{n}.join:"]
  for kind, x, y in zip(kinds, first, second): w.emit(kind, f"phi {kind} [{x}, %b{n}.then], [{y}, %b{n}.else]")


def _loop(w: ProgramWriter) -> None:
  """A loop of 0 to 15 rounds, its number differing by lane, with two values carried."""
  start = w.emit("i32", f"and i32 {w.pick('i32')}, 15")
  kinds = [w.rng.choice(TYPES[1:]) for _ in range(2)]
  initial = [w.pick(k) for k in kinds]
  w.count += 1
  n = w.count
  before = {k: list(v) for k, v in w.values.items()}
  carried = [f"%l{n}.{k}" for k in range(2)]
  head = [f"br label %l{n}.entry", f"l{n}.entry:", f"br label %l{n}.head", f"l{n}.head:"]
  at = len(w.lines) + len(head)
  w.lines += head
  for kind, name in zip(kinds, carried): w.values[kind].append(name)
  w.lines += [f"%l{n}.more = icmp ugt i32 %l{n}.left, 0", f"br i1 %l{n}.more, label %l{n}.work, label %l{n}.out",
              f"l{n}.work:"]
  w.block(w.rng.randrange(2, 8))
  final = [w.pick(k) for k in kinds]
  w.lines += [f"%l{n}.next = sub i32 %l{n}.left, 1", f"br label %l{n}.head", f"l{n}.out:"]
  phis = [f"%l{n}.left = phi i32 [{start}, %l{n}.entry], [%l{n}.next, %l{n}.work]"]
  phis += [f"{name} = phi {kind} [{x}, %l{n}.entry], [{y}, %l{n}.work]"
           for kind, name, x, y in zip(kinds, carried, initial, final)]
  w.lines[at:at] = phis
  w.values = before
  for kind, name in zip(kinds, carried): w.values[kind].append(name)


def programs(seeds: Iterable[int]) -> list[Case]:
  """Random programs, two for each seed."""
  return [program(seed, uniform) for seed in seeds for uniform in (False, True)]
