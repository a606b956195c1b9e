"""Which function is the witness of an instruction, and the cases that are tried."""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import SIZES, Form

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
  """An instruction with operands `{0}`, `{1}`... : results of the types of `results`, then sources of those of
  `sources`. `function` takes the sources' bits of a thread and gives the results' bits: an int for one, a tuple for
  several; where more than one is right, a function of the bits that says whether they are; `()` for none."""
  form: str
  text: str
  results: tuple[str, ...]
  sources: tuple[str, ...]
  function: Function
  draw: Callable[[random.Random], tuple[int, ...]] | None = None  # the sources' bits, where any will not do
  memory: Callable[[int], bytes] | None = None  # of the case's own, at `{M}`, as its address has it
  effect: Callable[[bytes, list[tuple[int, ...]]], bytes] | None = None  # that memory after all threads, in order
  warp: bool = False  # `function` takes the sources of a warp's threads, and gives a list
  setup: str = ""  # instructions before it


Maker = Callable[[Form, random.Random], "Iterator[Case]"]
MAKERS: Final[dict[str, Maker]] = {}


def witness(*opcodes: str) -> Callable[[Maker], Maker]:
  """Decorator: the function makes the cases of these opcodes; none for a form that it has no opinion of."""
  def register(maker: Maker) -> Maker:
    for opcode in opcodes:
      assert opcode not in MAKERS, opcode
      MAKERS[opcode] = maker
    return maker
  return register


def cases(name: str, rng: random.Random) -> list[Case]:
  """The cases of an instruction."""
  form = forms.find(name)
  if form is None: return []
  maker = MAKERS.get(form.row.opcode)
  return [] if maker is None else list(maker(form, rng))


def plain(form: Form, function: Function, **more: Any) -> Case:
  """A case of an instruction whose operands are as the table has them."""
  results = tuple("pred" if r == "p" else r for r in form.results)
  sources = tuple("pred" if s == "q" else form.type if s == "m" else s for s in form.sources)
  assert all(t in SIZES for t in (*results, *sources)), form.name
  words = ", ".join(f"{{{k}}}" for k in range(len(results) + len(sources)))
  return Case(form.name, f"{form.name} {words};", results, sources, function, **more)
