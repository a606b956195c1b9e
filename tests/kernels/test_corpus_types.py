"""What the code of real compilers' kernels says of their parameters, held against what they take: never wrong.

Each kernel of the corpus has arguments of the right types. None of them may be refused, and a Python number becomes the
same bytes, or is refused because nothing says its type; a float for an integer is always refused.
"""
from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tests.corpus.cases import CASES
from tests.corpus.corpus import FORMATS, Entry, entries, objects
from tests.strength import THOROUGH, seed
from tinyhw.core.errors import InvalidArgument
from tinyhw.kernels.arguments import Parameter, check_array, pack_value
from tinyhw.kernels.parameters import declared, seen
from tinyhw.wire import codeobject

EVERY = 1 if THOROUGH else 97  # a prime: the manifest is ordered by compiler, target and case


def judge(entry: Entry, told: Counter[str]) -> None:
  """Pack a kernel's arguments, and others in their place."""
  case = CASES[entry.case](np.random.default_rng(seed(0)), FORMATS[entry.formats])
  binary = objects()[entry.file]
  kernel = codeobject.load(binary).kernels[entry.kernel]
  names, code = declared(binary, kernel), seen(binary, kernel)
  for k, (name, argument) in enumerate(zip(entry.arguments, kernel.arguments)):
    value: Any = case.arguments.get(name)
    if value is None: continue
    found = code[k]
    p = Parameter(argument, f"{entry.id}, {name}", names[k][1], lambda found=found: found)  # type: ignore[misc]
    if argument.kind == "global_buffer":
      check_array(value, p)
      continue
    assert pack_value(value, p) == value.tobytes(), p.where
    if value.shape or value.dtype.kind not in "iuf": continue
    try: assert pack_value(value.item(), p) == value.tobytes(), p.where
    except InvalidArgument as error:
      assert "nothing says what type" in str(error)
      told["unknown"] += 1
    else: told["known"] += 1
    if value.dtype.kind == "f": continue
    try: pack_value(value.item() + 0.5, p)
    except InvalidArgument: continue
    raise AssertionError(f"{p.where}: a float was taken for {value.dtype}")


def test_no_argument_of_the_corpus_is_misjudged() -> None:
  told: Counter[str] = Counter()
  for entry in entries()[::EVERY]: judge(entry, told)
  assert told["known"] > 3 * told["unknown"] > 0, "most types are seen, and not all"
