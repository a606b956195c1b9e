"""Random programs of Tensor's functions beside PyTorch in the same process, where PyTorch is installed.

    python -m tinyhw.tools.fuzz.beside_torch --seconds 3600
    python -m tinyhw.tools.fuzz.beside_torch --seed 3 --only 17      program 17 of seed 3 again, with its text

A program is text: statements such as `d = a.sum(dim=1)`, `d[1:] += b` that both libraries understand. It is made beside
PyTorch, which says what is allowed; then Tensor runs it, and what it has then must be equal: values, kinds of types,
gradients. Some are read on the way, some are functions that TinyJit runs four times with other values. What tinyhw
refuses is counted by its message, which is no mistake: those are silent. Functions with steps follow only what both
compute exactly. Gradients by leaves that have changed since differ on purpose (docs/tensor.md).
"""
from __future__ import annotations

import argparse
import collections
import random
import re
import sys
import time
import warnings
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch

from tinyhw import nn
from tinyhw.core.errors import Error
from tinyhw.devices import registry
from tinyhw.jit.jit import TinyJit
from tinyhw.tensor.tensor import Tensor
from tinyhw.tools.fuzz.beside_torch_table import Draw, Line, lines

DTYPES: Final = ("float32",) * 8 + ("float64", "float16", "int32", "int32", "bool", "uint8", "int8")
SHAPES: Final = ((2, 3),) * 4 + ((3,), (3,), (), (1, 3), (2, 1, 3), (2, 3, 4), (4, 4), (1, 2, 4, 4), (0, 3), (5,), (1,))
LARGEST: Final = 200      # elements of a value
MOST: Final = 1e4         # greatest magnitude


@dataclass
class Value:
  """What is known of a variable: PyTorch's tensor, whether both have it exactly, what it is a view of."""
  name: str
  tensor: Any
  exact: bool
  parent: str | None = None
  fixed: bool = False     # whether it may not be changed in place


@dataclass
class TorchProgram:
  """Inputs (name, array, whether it learns), and statements."""
  inputs: list[tuple[str, np.ndarray[Any, Any], bool]] = field(default_factory=list)
  text: list[str] = field(default_factory=list)
  results: list[str] = field(default_factory=list)
  jitted: bool = False

  def story(self) -> str:
    """The program as it can be typed."""
    made = [f"{n} = Tensor(np.array({a.tolist()}, '{a.dtype}').reshape({a.shape}){', requires_grad=True' * g})"
            for n, a, g in self.inputs]
    return "\n".join([*made, *["@TinyJit"] * self.jitted, *self.text, f"# results: {', '.join(self.results)}"])


class Ours:
  """Tensor as PyTorch's module: what it has under that name."""
  def __getattr__(self, name: str) -> Any: return getattr(Tensor, name)
  def tensor(self, data: Any) -> Tensor:
    """A tensor of data."""
    return Tensor(data)


def names_of(mine: bool) -> dict[str, Any]:
  """What the statements call."""
  if mine: return {"T": Ours(), "F": nn.functional, "no_grad": Tensor.no_grad, "where": Tensor.where, "inf": np.inf}
  return {"T": torch, "F": torch.nn.functional, "no_grad": torch.no_grad, "where": torch.where, "inf": np.inf}


def drawn(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
  """Few different numbers, so that equal ones meet."""
  size = int(np.prod(shape))
  numbers: list[Any]
  if dtype == "bool": numbers = [rng.random() < 0.5 for _ in range(size)]
  elif dtype.startswith("float"): numbers = [rng.randrange(-8, 9) / 4 for _ in range(size)]
  else: numbers = [rng.randrange(0 if dtype == "uint8" else -4, 6) for _ in range(size)]
  return np.array(numbers, dtype).reshape(shape)


def sane(x: Any) -> bool:
  """Whether a value is one that both can go on with."""
  if not isinstance(x, torch.Tensor) or x.is_complex() or x.numel() > LARGEST or x.ndim > 5: return False
  if x.dtype in (torch.float16, torch.bfloat16): return not x.numel() or float(x.detach().abs().max()) < 60
  return not x.numel() or x.dtype is torch.bool or not float(x.detach().abs().double().max()) > MOST


class Maker:
  """Makes a program beside PyTorch."""

  def __init__(self, rng: random.Random) -> None:
    self.rng, self.program = rng, TorchProgram()
    self.known: dict[str, Value] = {}
    self.names = names_of(False)
    self.count = 0

  def name(self) -> str:
    """A new one."""
    self.count += 1
    return f"v{self.count}"

  def make(self) -> TorchProgram:
    """A whole program."""
    rng, p = self.rng, self.program
    p.jitted = rng.random() < 0.25
    shape = rng.choice(SHAPES)
    for _ in range(rng.randrange(1, 4)):
      dtype, name = rng.choice(DTYPES), self.name()
      learns = dtype.startswith("float") and not p.jitted and rng.random() < 0.6
      array = drawn(rng, dtype, shape if rng.random() < 0.6 else rng.choice(SHAPES))
      p.inputs.append((name, array, learns))
      self.known[name] = Value(name, torch.from_numpy(array.copy()).requires_grad_(learns), True,
                               fixed=p.jitted or learns)
    wanted, tries = rng.randrange(3, 11), 0
    while wanted and tries < 60:
      tries += 1
      if self.statement(): wanted -= 1
    return p

  def statement(self) -> bool:
    """One more, if what was drawn can be done."""
    rng = self.rng
    weights = [8, 3 if not self.program.jitted else 2, 1 if not self.program.jitted else 0]
    kind = rng.choices(("new", "change", "read"), weights)[0]
    x = rng.choice(list(self.known.values())[-5:])
    if kind == "read":
      self.program.text.append(rng.choice((f"{x.name}.realize()", f"{x.name}.numpy()")))
      return True
    draw = Draw(rng, x.name, x.tensor, x.exact, [(v.name, v.tensor, v.exact) for v in self.known.values()])
    line = rng.choice(lines(kind))(draw)
    if line is None: return False
    return self.new(x, line) if kind == "new" else self.change(x, line)

  def execute(self, text: str) -> dict[str, Any] | None:
    """The variables after a statement, unless PyTorch refuses it."""
    space = {n: v.tensor for n, v in self.known.items()}
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      try: exec(text, self.names, space)
      except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AttributeError): return None
    return space

  def new(self, x: Value, line: Line) -> bool:
    """`name = expression`."""
    name = self.name()
    text = f"{name} = {line.text}"
    space = self.execute(text)
    if space is None or not sane(found := space[name]): return False
    if any(v.tensor is found for v in self.known.values()): return False       # there it is one tensor of two names
    shares = [v for v in self.known.values() if _shares(v.tensor, found)]
    value = Value(name, found, line.exact, x.name if line.view and shares else None)
    if bool(shares) != line.view:
      value.fixed = True
      for v in shares: v.fixed = True
    # Where nobody says what learns, what is detached stays so when it is changed.
    if shares and x.fixed or self.program.jitted and "detach" in text: value.fixed = True
    self.known[name] = value
    self.program.text.append(text)
    self.program.results.append(name)
    return True

  def change(self, x: Value, line: Line) -> bool:
    """A statement that changes x."""
    if x.fixed: return False
    before = x.tensor.detach().clone()
    space = self.execute(line.text)
    good = space is not None and sane(x.tensor) and x.tensor.dtype is before.dtype
    if not good:
      with torch.no_grad():
        if space is not None or not torch.equal(before, x.tensor.detach()): raise _Again
      return False
    assert space is not None
    x.tensor = space[x.name]
    kept, at = {x.name}, x.parent
    while at is not None and at in self.known: kept.add(at); at = self.known[at].parent
    self.program.text.append(line.text)
    kept |= {v.name for v in self.known.values() if _shares(v.tensor, x.tensor)}
    for n in kept: self.known[n].exact = self.known[n].exact and line.exact
    return True

  def forget(self, name: str) -> None:
    """Go on without a variable."""
    del self.known[name]
    self.program.text.append(f"del {name}")
    if name in self.program.results: self.program.results.remove(name)


class _Again(Exception):
  """A statement was refused when it had changed something."""


def _shares(a: Any, b: Any) -> bool:
  return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()) and a.untyped_storage().size() > 0


def differs(what: str, mine: Any, other: Any, small: bool) -> str:
  """Why ours is wrong, or nothing."""
  kinds = [("bool" if "bool" in str(d) else "float" if "float" in str(d) else "int") for d in (mine.dtype, other.dtype)]
  if kinds[0] != kinds[1] or kinds[0] == "float" and mine.dtype.name != str(other.dtype).rpartition(".")[2]:
    return f"{what} is {mine.dtype}, torch {other.dtype}"
  a, b = np.asarray(mine.numpy(), np.float64), other.detach().double().numpy()
  if a.shape != b.shape: return f"{what} of shape {a.shape}, torch {b.shape}"
  large = np.abs(b[np.isfinite(b)]).max(initial=1.0)
  with np.errstate(all="ignore"):
    good = (a == b) | np.isnan(a) & np.isnan(b) | (np.abs(a - b) <= (2e-2 if small else 1e-3) * large)
  return "" if good.all() else f"{what} is\n{a.tolist()}, torch\n{b.tolist()}"


def slopes(program: TorchProgram, space: dict[str, Any], mine: bool) -> list[Any]:
  """Derivatives of what the program has made, by all that learns (in a function that is recorded: by all floats)."""
  total: Any = None
  for n, name in enumerate(program.results):
    x = space[name]
    if not (x.dtype.is_float if mine else x.is_floating_point()): continue
    if not (mine and program.jitted or x.requires_grad): continue
    # Each result counts differently, and so does each of its elements.
    weight = np.cos(np.arange(x.numel()) + n).reshape(tuple(x.shape))
    part = (x.cast("float64") * Tensor(weight) if mine else x.double() * torch.from_numpy(weight)).sum()
    total = part if total is None else total + part
  wanted = [space[n] for n, a, learns in program.inputs if learns or program.jitted and a.dtype.kind == "f"]
  if total is None or not wanted: return []
  if mine: return list(total.gradient(*wanted))
  if not total.requires_grad: return []
  return [torch.zeros_like(x) if g is None else g
          for x, g in zip(wanted, torch.autograd.grad(total, wanted, allow_unused=True))]


def theirs(program: TorchProgram, arrays: list[np.ndarray[Any, Any]]) -> tuple[dict[str, Any], list[Any] | None]:
  """What PyTorch has in the end; None for gradients that it has not."""
  names = names_of(False)
  space: dict[str, Any] = {n: torch.from_numpy(a.copy()) for (n, _, _), a in zip(program.inputs, arrays)}
  for name, a, learns in program.inputs:
    if learns or program.jitted and a.dtype.kind == "f": space[name].requires_grad_()
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for line in program.text:
      if not line.endswith((".realize()", ".numpy()")): exec(line, names, space)
    # The slopes of what is no number are nobody's.
    if any(x.is_floating_point() and bool(x.isnan().any()) for n in program.results for x in [space[n]]):
      return space, None
    try: return space, slopes(program, space, False)
    except RuntimeError: return space, None


def compared(program: TorchProgram, mine: list[Any], found: list[Any], other: dict[str, Any],
             wanted: list[Any] | None) -> str:
  """The first difference."""
  small = any(a.dtype == np.float16 for _, a, _ in program.inputs) or ".half()" in "".join(program.text)
  small = small or "bfloat16" in "".join(program.text)
  for name, value in zip(program.results, mine):
    if (why := differs(name, value, other[name], small)): return why
  if wanted is None or not wanted or not found: return ""
  names = [n for n, a, learns in program.inputs if learns or program.jitted and a.dtype.kind == "f"]
  for name, g, w in zip(names, found, wanted):
    # Where PyTorch's is no number, ours may be one.
    good = torch.isfinite(w)
    if not good.all(): g, w = Tensor(np.where(good.numpy(), g.numpy(), 0)).cast(g.dtype), torch.where(good, w, 0)
    if (why := differs(f"the gradient by {name}", g, w, small)): return why
  return ""


def check(program: TorchProgram, rng: random.Random) -> str:
  """What is wrong with what tinyhw makes of it, or nothing. Raises its errors."""
  names = names_of(True)
  if not program.jitted:
    arrays = [a for _, a, _ in program.inputs]
    other, wanted = theirs(program, arrays)
    space: dict[str, Any] = {n: Tensor(a, requires_grad=True if g else None) for n, a, g in program.inputs}
    for line in program.text: exec(line, names, space)
    found = slopes(program, space, True) if wanted else []
    return compared(program, [space[n] for n in program.results], found, other, wanted)
  rounds = []
  with_slopes = True
  for n in range(4):
    arrays = [a if n == 0 else drawn(rng, a.dtype.name, a.shape) for _, a, _ in program.inputs]
    try: other, wanted = theirs(program, arrays)
    except (RuntimeError, ValueError, IndexError): return ""       # what this value is not allowed to
    if any(not sane(other[n]) for n in program.results): return ""
    with_slopes = with_slopes and bool(wanted)
    rounds.append((arrays, other, wanted))
  def function(*inputs: Any) -> Any:
    space = {n: t for (n, _, _), t in zip(program.inputs, inputs)}
    for line in program.text: exec(line, names, space)
    return [space[n] for n in program.results], slopes(program, space, True) if with_slopes else []
  recorded = TinyJit(function)
  for n, (arrays, other, wanted) in enumerate(rounds):
    mine, found = recorded(*[Tensor(a).realize() for a in arrays])
    if (why := compared(program, mine, found, other, wanted if with_slopes else None)):
      given = [a.tolist() for a in arrays]
      return f"call {n} with {given}: {why}"
  return ""


def drawn_program(seed: int, number: int) -> tuple[TorchProgram, random.Random]:
  """Program `number`."""
  for again in range(100):
    rng = random.Random(f"{seed}.{number}.{again}")
    try: program = Maker(rng).make()
    except _Again: continue
    if program.results: return program, rng
  raise AssertionError("no program in 100 tries")


def main() -> int:
  """Run what the command line asks for; the exit status is 1 where something is wrong."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.fuzz.beside_torch", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, default=60.0, help="of processor time (default: 60)")
  parser.add_argument("--first", type=int, default=0, help="number of the first program")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--only", type=int, help="one program, with its text")
  options = parser.parse_args()
  torch.set_num_threads(1)
  registry.KERNELS = 1 << 14
  refused: collections.Counter[str] = collections.Counter()
  first: dict[str, int] = {}
  start, number, wrong = time.process_time(), options.first if options.only is None else options.only, 0
  while time.process_time() - start < options.seconds:
    program, rng = drawn_program(options.seed, number)
    if options.only is not None: print(program.story())
    try: why = check(program, rng)
    except (Error, TypeError, AttributeError) as error:
      why = ""
      message = re.sub(r"\d+", "n", f"{type(error).__name__}: {str(error).splitlines()[0][:90]}")
      first.setdefault(message, number)
      refused[message] += 1
      if options.only is not None: raise
    except Exception as error: why = f"{type(error).__name__}: {error}"
    if why:
      wrong += 1
      print(f"program {number}:\n{program.story()}\n{why}\n", flush=True)
    if options.only is not None: break
    number += 1
  for message, count in refused.most_common(60): print(f"{count} refused: {message} (first: {first[message]})")
  print(f"{number - options.first} programs, {refused.total()} refused, {wrong} wrong, seed {options.seed}, "
        f"{time.process_time() - start:.0f} s")
  return 1 if wrong else 0


if __name__ == "__main__": sys.exit(main())
