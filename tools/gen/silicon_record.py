"""Records what tests of instructions expect of a chip: run as a process of its own on a checkout of tinygrad.

    python tools/gen/silicon_record.py CHECKOUT > record.json

The tests run no program here: they get results that remember where they come from, and what they assert of them is
written down as bits or numbers of a register. Standard library only, for the checkout's own `test` is imported here.
"""
from __future__ import annotations

import importlib
import json
import math
import operator
import struct
import sys
import types
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODULES = ("sop", "smem", "vop1", "vop2", "vop3", "vop3p", "vopc", "vopd", "dpp", "ds", "flat", "global", "scratch",
           "vinterp", "rdna4_permlane_var", "cdna_vop3", "cdna_sdwa")
FORMATS = {2: "f16", 4: "f32", 8: "f64"}
RUNS: list[dict[str, Any]] = []  # what the current test has run
COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
            "!=": operator.ne}
PENDING: list[Condition] = []  # conditions that an assertion will take up


def place(where: tuple[str, ...], shift: int, mask: int) -> str:
  """A place in words: registers low first, then the bits that count."""
  return f"{'+'.join(where)}>>{shift}&{mask:x}"


class Bits(int):
  """Bits of a result: registers of 32 bits low first, shifted right and masked. Its value as a number is 0."""
  where: tuple[str, ...]
  run: int
  shift: int
  mask: int

  def __new__(cls, where: tuple[str, ...], run: int, shift: int = 0, mask: int | None = None) -> Bits:
    self = super().__new__(cls, 0)
    self.where, self.run, self.shift = where, run, shift
    self.mask = (1 << 32 * len(where) - shift) - 1 if mask is None else mask
    return self

  def _with(self, shift: int, mask: int) -> Bits: return Bits(self.where, self.run, shift, mask)
  def __and__(self, other: int) -> Any: return self._with(self.shift, self.mask & other)
  __rand__ = __and__
  def __rshift__(self, n: int) -> Any: return self._with(self.shift + n, self.mask >> n)
  def __lshift__(self, n: int) -> Any: return Moved(self, n)
  def __or__(self, other: Any) -> Any: return joined(self, other)
  __ror__ = __or__
  def __lt__(self, x: Any) -> Any: return Condition(self, "<", x)
  def __le__(self, x: Any) -> Any: return Condition(self, "<=", x)
  def __gt__(self, x: Any) -> Any: return Condition(self, ">", x)
  def __ge__(self, x: Any) -> Any: return Condition(self, ">=", x)
  def __eq__(self, x: object) -> Any: return Condition(self, "=", x)
  def __ne__(self, x: object) -> Any: return Condition(self, "!=", x)
  __hash__ = int.__hash__

  def told(self) -> str: return place(self.where, self.shift, self.mask)

  def truth(self, how: str, other: Any) -> bool: return bool(COMPARED[how](0, int(other)))


class Moved(int):
  """Bits shifted left, which are the high part of something wider."""
  def __new__(cls, bits: Bits, n: int) -> Moved:
    self = super().__new__(cls, 0)
    self.bits, self.by = bits, n  # type: ignore[attr-defined]
    return self

  def __or__(self, other: Any) -> Any: return joined(other, self)
  __ror__ = __or__


def joined(low: Any, high: Any) -> Any:
  """Two registers as one of 64 bits."""
  if isinstance(low, Moved): low, high = high, low
  if isinstance(low, Bits) and isinstance(high, Moved) and high.by == 32:  # type: ignore[attr-defined]
    return Bits((*low.where, *high.bits.where), low.run)  # type: ignore[attr-defined]
  return 0


class Number(float):
  """Bits of results as floats, whose sum is asked; `less` was taken from it, and `size` says that its sign was."""
  terms: tuple[Bits, ...]
  format: str
  less: float
  size: bool

  def __new__(cls, terms: tuple[Bits, ...], format_: str, less: float = 0.0, size: bool = False) -> Number:
    self = super().__new__(cls, 0.0)
    self.terms, self.format, self.less, self.size = terms, format_, less, size
    return self

  @property
  def run(self) -> int: return self.terms[0].run

  def __add__(self, x: Any) -> Any:
    return Number((*self.terms, *x.terms), self.format) if isinstance(x, Number) else Number(
      self.terms, self.format, self.less - x)

  def __sub__(self, x: float) -> Any: return Number(self.terms, self.format, self.less + x)
  def __rsub__(self, x: float) -> Any: return Number(self.terms, self.format, self.less + x)  # only its size is asked
  def __abs__(self) -> Any: return Number(self.terms, self.format, self.less, True)
  def __lt__(self, x: Any) -> Any: return Condition(self, "<", x)
  def __le__(self, x: Any) -> Any: return Condition(self, "<=", x)
  def __gt__(self, x: Any) -> Any: return Condition(self, ">", x)
  def __ge__(self, x: Any) -> Any: return Condition(self, ">=", x)
  def __eq__(self, x: object) -> Any: return Condition(self, "=", x)
  def __ne__(self, x: object) -> Any: return Condition(self, "!=", x)
  __hash__ = float.__hash__

  def told(self) -> str: return f"{','.join(b.told() for b in self.terms)} {self.format}"

  def truth(self, how: str, other: Any) -> bool: return True


class Condition(int):
  """What is asked of a result. Of bits it is true where it is of 0, so that signs are not extended; of numbers always.

  Those that are true are taken up by the next assertion.
  """
  def __new__(cls, x: Any, how: str, y: Any) -> Condition:
    truth = x.truth(how, y)
    self = super().__new__(cls, truth)
    self.x, self.how, self.y = x, how, y  # type: ignore[attr-defined]
    if truth: PENDING.append(self)
    return self
  __hash__ = int.__hash__

  def note(self, negated: bool = False) -> None:
    """Write it down. Values of bits are hexadecimal, of numbers decimal."""
    x, how, y = self.x, self.how, self.y  # type: ignore[attr-defined]
    run = RUNS[x.run]
    if negated: how = {"nan": "!nan", "inf": "!inf", "<": ">=", ">": "<=", "=": "!=", "<=": ">", ">=": "<",
                       "!=": "="}[how]
    if isinstance(x, Bits): value = f" {y & x.mask:x}"
    elif how.endswith(("nan", "inf")): value = ""
    elif x.size and x.less: how, value = "~", f" {x.less!r} {float(y)!r}"  # |x - less| below y
    elif x.size: how, value = f"abs{how}", f" {float(y)!r}"
    else: value = f" {float(y) + x.less!r}"
    run["checks"].append(f"{x.told()} {how}{value}")


def number(bits: Any, format_: str, otherwise: Callable[[Any], float]) -> float:
  return Number((bits,), format_) if isinstance(bits, Bits) else otherwise(bits)


class Struct(types.SimpleNamespace):
  """`struct`, through which results pass as they are."""
  @staticmethod
  def pack(form: str, *values: Any) -> Any:
    if not any(isinstance(v, Bits) for v in values): return struct.pack(form, *values)
    return values[0] if len(values) == 1 else joined(values[0], values[1] << 32)

  @staticmethod
  def unpack(form: str, data: Any) -> Any:
    if not isinstance(data, Bits): return struct.unpack(form, data)
    size = struct.calcsize(form)
    return (Number((data,), FORMATS[size]) if form[-1] in "efd" else data,)


class Math:
  """`math`, which may be asked of results."""
  def __getattr__(self, name: str) -> Any: return getattr(math, name)

  @staticmethod
  def isnan(x: Any) -> Any: return Condition(x, "nan", 0) if isinstance(x, Number) else math.isnan(x)

  @staticmethod
  def isinf(x: Any) -> Any: return Condition(x, "inf", 0) if isinstance(x, Number) else math.isinf(x)


class ResultRow:
  """A table of results that is asked by number."""
  def __init__(self, make: Callable[[int], Any]) -> None: self.make = make
  def __getitem__(self, n: Any) -> Any: return self.make(int(n))


def state(isa: str, start: str, lanes: int, code: bytes) -> Any:
  """Note a program; its results as the tests ask for them: v0 to v15 of each lane, s0 to s15, VCC, SCC, EXEC.

  `start`: "zeros" in v0 to v15, s0 to s15 and VCC, or registers as the chip "began" with them; and the wave's size.
  """
  run = len(RUNS)
  RUNS.append({"isa": isa, "start": start, "lanes": lanes, "code": code.hex(), "checks": []})
  return types.SimpleNamespace(
    vgpr=ResultRow(lambda lane: ResultRow(lambda n: Bits((f"v{n}:{lane}",), run))),
    sgpr=ResultRow(lambda n: Bits(("exec" if n == 126 else f"s{n}",), run)),
    vcc=Bits(("vcc",), run), scc=Bits(("scc",), run))


def assembled(instructions: list[Any]) -> bytes: return b"".join(i.to_bytes() for i in instructions)


def run_program(instructions: list[Any], n_lanes: int = 1, ulp_tolerance: int = 0) -> Any:
  return state("gfx11", "zeros32", n_lanes, assembled(instructions))


def run_wave64(instructions: list[Any], out_reg: int = 1) -> Any:
  x = state("gfx11", "began64", 64, assembled(instructions))
  return [x.vgpr[lane][out_reg] for lane in range(64)]


def run_rdna4(instructions: list[Any], out_reg: int = 2) -> Any:
  x = state("gfx12", "began32", 32, assembled(instructions))
  return [x.vgpr[lane][out_reg] for lane in range(32)]


def run_cdna(instructions: list[Any], out_reg: int = 2) -> Any:
  return state("gfx9", "began64", 1, assembled(instructions)).vgpr[0][out_reg]


REPLACED: dict[str, Any] = {
  "run_program": run_program, "run_wave64": run_wave64, "run_rdna4": run_rdna4, "run_cdna": run_cdna,
  "struct": Struct(), "math": Math()}
FLOATS = {"i2f": "f32", "_f32": "f32", "f16": "f16", "i642f": "f64"}


class Lost(Exception):
  """An assertion that no result can be found in."""


def _equal(a: Any, b: Any, negated: bool = False) -> None:
  if not isinstance(a, (Bits, Number)): a, b = b, a
  if isinstance(a, list) and isinstance(b, list):
    for x, y in zip(a, b, strict=True): _equal(x, y, negated)
    return
  if isinstance(a, Bits) and isinstance(b, Bits):
    if a.run != b.run: raise Lost
    RUNS[a.run]["checks"].append(f"{a.told()} {'!' if negated else ''}= @{b.told()}")
    return
  if not isinstance(a, (Bits, Number)) or isinstance(b, Number): raise Lost
  Condition(a, "=", b).note(negated)


def _almost(a: Any, b: Any, places: int | None = None, delta: float | None = None) -> None:
  if not isinstance(a, (Bits, Number)): a, b = b, a
  if not isinstance(a, (Bits, Number)) or isinstance(b, (Bits, Number)): raise Lost
  allowed = delta if delta is not None else 0.5 * 10.0 ** -(7 if places is None else places)
  if isinstance(a, Bits):
    RUNS[a.run]["checks"].append(f"{a.told()} u ~ {float(b)!r} {float(allowed)!r}")
    return
  RUNS[a.run]["checks"].append(f"{a.told()} ~ {float(b)!r} {allowed!r}")


def _all(expression: Any, negated: bool) -> None:
  if isinstance(expression, Condition) and not expression: PENDING.append(expression)
  if not PENDING: raise Lost
  for c in PENDING: c.note(negated)


class RecordingCase(unittest.TestCase):
  """Assertions that write down what they are told."""
  untraced = 0

  def _noted(self, note: Callable[..., None], *values: Any) -> None:
    try: note(*values)
    except Lost: RecordingCase.untraced += 1
    PENDING.clear()

  def assertEqual(self, first: Any, second: Any, msg: Any = None) -> None: self._noted(_equal, first, second)
  def assertNotEqual(self, first: Any, second: Any, msg: Any = None) -> None: self._noted(_equal, first, second, True)
  def assertTrue(self, expr: Any, msg: Any = None) -> None: self._noted(_all, expr, False)
  def assertFalse(self, expr: Any, msg: Any = None) -> None: self._noted(_all, expr, True)

  def assertAlmostEqual(self, first: Any, second: Any, places: int | None = None, msg: Any = None,  # type: ignore[override]  # one form for all
                        delta: float | None = None) -> None: self._noted(_almost, first, second, places, delta)

  def _compared(self, first: Any, how: str, second: Any) -> None:
    if not isinstance(first, (Bits, Number)):
      first, second, how = second, first, how.translate(str.maketrans("<>", "><"))
    self._noted(_all, Condition(first, how, second) if isinstance(first, (Bits, Number)) else None, False)

  def assertLess(self, a: Any, b: Any, msg: Any = None) -> None: self._compared(a, "<", b)
  def assertLessEqual(self, a: Any, b: Any, msg: Any = None) -> None: self._compared(a, "<=", b)
  def assertGreater(self, a: Any, b: Any, msg: Any = None) -> None: self._compared(a, ">", b)
  def assertGreaterEqual(self, a: Any, b: Any, msg: Any = None) -> None: self._compared(a, ">=", b)


def replace(module: Any) -> None:
  """Give a module this one's names."""
  for name, value in REPLACED.items():
    if hasattr(module, name): setattr(module, name, value)
  for name, form in FLOATS.items():
    plain = getattr(module, name, None)
    if plain is not None: setattr(module, name, lambda x, f=form, p=plain: number(x, f, p))


def tests(module: Any) -> list[tuple[str, Any]]:
  """(name, test) of a module, with its names replaced."""
  replace(module)
  out = []
  for cls in vars(module).values():
    if not (isinstance(cls, type) and issubclass(cls, unittest.TestCase)) or cls.__module__ != module.__name__: continue
    own = {k: v for k, v in vars(RecordingCase).items() if k.startswith(("assert", "_noted", "_compared"))}
    made = type(cls.__name__, (cls, RecordingCase), own)
    out += [(f"{cls.__name__}.{name}", made(name)) for name in unittest.TestLoader().getTestCaseNames(cls)]
  return out


def main(root: Path) -> None:
  """Print the record: a row for each program that a test runs."""
  sys.path.insert(0, str(root))
  stub = types.ModuleType("test.mockgpu.amd.emu")
  stub.run_asm = None  # type: ignore[attr-defined]
  sys.modules["test.mockgpu.amd.emu"] = stub
  found = {short: importlib.import_module(f"test.amd.hw.test_{short}") for short in MODULES}
  replace(importlib.import_module("test.amd.hw.helpers"))
  sys.modules |= {"math": REPLACED["math"], "struct": REPLACED["struct"]}  # tests import them in their bodies too
  rows = []
  for short, module in found.items():
    for name, test in tests(module):
      RUNS.clear()
      PENDING.clear()
      RecordingCase.untraced = 0
      test.setUp()
      failed = ""
      try: operator.attrgetter(test._testMethodName)(test)()
      except Exception as error: failed = f"{type(error).__name__}: {error}"
      rows += [{"file": f"test_{short}.py", "name": name, **run} for run in RUNS]
      if failed or RecordingCase.untraced or not RUNS:
        rows.append({"file": f"test_{short}.py", "name": name, "untraced": RecordingCase.untraced, "failed": failed})
  json.dump(rows, sys.stdout)


if __name__ == "__main__": main(Path(sys.argv[1]))
