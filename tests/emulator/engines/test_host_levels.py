"""The emulator's values on other hosts: compiled code for each level of processors, NumPy and the C library without
what newer processors have, and the witness that is the host. One machine stands for many."""
from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

from tests.emulator.amdgcn.test_meanings import TYPES, drawn
from tests.emulator.jit.amdgcn.test_jit import ROWS, check
from tests.strength import examples, seed, seeds
from tinyhw.core.host import LEVELS, choose, levels
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.jit.amdgcn import forms
from tinyhw.emulator.jit.native import host
from tinyhw.emulator.values.elementary import exp2, log2, sin_of_turns
from tinyhw.emulator.values.ops import Ops
from tinyhw.tools.fuzz.build import Host as Witness
from tinyhw.tools.fuzz.corpus import all_cases
from tinyhw.tools.fuzz.run import describe, expected

TRIPLE = llvm.get_process_triple()
HAD = levels(TRIPLE, llvm.get_host_cpu_features())
FIELDS = {k for m in MEANINGS for k in m.sources if k.startswith(("i:", "mode:"))}
KINDS = {*TYPES, "mask", *FIELDS}
FLOATS = [r for r in ROWS if any(t in r.mnemonic for t in ("f16", "f32", "f64"))]


# ---- compiled code

@pytest.mark.parametrize("level", LEVELS if HAD[0] in LEVELS else HAD)
@pytest.mark.parametrize("number", seeds(range(1)))
def test_compiled_instructions(level: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Those of floats, above all, against the reference."""
  if level not in HAD: pytest.skip(f"this processor is no {level}")
  monkeypatch.setenv("TINYHW_CPU", level)
  assert host().cpu == level
  for lanes, rows, count in ((32, FLOATS, 20), (64, ROWS, 8)):
    assert check(random.Random(f"{level} {number}").sample(rows, count), number, lanes) == []


def test_code_of_another_level_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
  """What is kept in memory and on disk is found by a name that the processor is part of."""
  names = set()
  for level in HAD:
    monkeypatch.setenv("TINYHW_CPU", level)
    known = set(forms._MEMORY)
    assert check(ROWS[:1], 0, 32) == []
    names |= set(forms._MEMORY) - known
  assert len(names) == len(HAD)


def test_the_witness_of_the_host() -> None:
  """IR that the emulator is held to: compiled for the host at each level it gives the same values."""
  plain = [c for c in all_cases() if c.witness is None]
  cases = random.Random(seed(5)).sample(plain, min(examples(16), len(plain)))
  first, *others = HAD
  machine = Witness(cases, 1, first)
  wanted = {c.name: expected(c, machine, 0) for c in cases}
  for level in others:
    machine = Witness(cases, 1, level)
    for case in cases:
      kinds = [*(case.inputs[k] for k in case.inplace), *case.outputs]
      assert describe(case, 0, kinds, expected(case, machine, 0), wanted[case.name]) is None, (level, case.name)


# ---- the reference

def digests() -> dict[str, str]:
  """What each meaning of floats gives, and the functions in f64 that some are made of, as the bits of all results.

  A NaN is any NaN. Fields of MODE and such are 0.
  """
  x = np.random.default_rng(0).uniform(0, 0.25, 20_000)
  found = {f.__name__: hashlib.sha256(f(Ops, x).tobytes()).hexdigest() for f in (exp2, log2, sin_of_turns)}
  for number, meaning in enumerate(MEANINGS):
    kinds = [k.removeprefix("d:") for k in meaning.sources]
    floats = any(k[0] == "f" for k in (*kinds, *meaning.results))
    if not floats or not set(kinds) <= KINDS: continue
    rng = np.random.default_rng(number)
    values = [np.uint32(0) if k in FIELDS else drawn(k, examples(4000), rng) for k in kinds]
    with np.errstate(all="ignore"): results: Any = meaning.function(Ops, *values)
    digest = hashlib.sha256()
    for x in results if isinstance(results, tuple) else (results,):
      array = np.array(x)
      if array.dtype.kind == "f": array[np.isnan(array)] = np.nan
      digest.update(array.tobytes())
    found[f"{meaning.mnemonic} {number}"] = digest.hexdigest()
  return found


def test_the_reference_without_what_newer_processors_have() -> None:
  """NumPy chooses its loops, and the C library its functions, by the processor; both can be told not to."""
  simd = np.show_config(mode="dicts")["SIMD Extensions"]
  code = "import json; from tests.emulator.engines.test_host_levels import digests; print(json.dumps(digests()))"
  plain = digests()
  names = {n.split()[0] for n in plain}
  assert len(names) > 300 and {"v_exp_f32", "v_sin_f16", "v_sqrt_f64", "v_fma_f32", "v_cvt_f16_f32"} <= names
  environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(simd.get("found", [])),
                              "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX512F"}
  done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True,
                        text=True)
  assert not done.returncode, done.stderr
  other = json.loads(done.stdout)
  assert sorted(n for n in plain if plain[n] != other.get(n)) == []


@pytest.mark.parametrize("name", ["exp2", "log2", "sin"])
def test_elementary_functions_are_near(name: str) -> None:
  """Within 3 units of f64's last place; where the exact value is a number of f64, that one."""
  rng = np.random.default_rng(seed(3))
  n = examples(400)
  near = np.abs(1 + rng.normal(size=n) * 2.0**-rng.integers(1, 30, n))
  cases: dict[str, Any] = {
    "exp2": (rng.uniform(-900, 900, n), exp2, lambda v: mpmath.mpf(2)**v),
    "log2": (np.concatenate([2.0**rng.uniform(-149, 128, n), near]), log2, lambda v: mpmath.log(v, 2)),
    "sin": (rng.uniform(-0.25, 0.25, n), sin_of_turns, lambda v: mpmath.sin(2 * mpmath.pi * v))}
  x, run, exact = cases[name]
  x = x.astype(np.float32).astype(np.float64)
  with mpmath.workprec(200):
    for value, got in zip(x.tolist(), run(Ops, x).tolist()):
      wanted = exact(mpmath.mpf(value))
      assert abs(got - wanted) <= 3 * np.spacing(abs(float(wanted))), (value.hex(), got.hex())
  whole = np.arange(-140, 120, dtype=np.float64)
  assert (exp2(Ops, whole) == np.ldexp(1.0, whole.astype(int))).all()
  assert (log2(Ops, np.ldexp(1.0, whole.astype(int))) == whole).all()


def test_elementary_functions_beyond_numbers() -> None:
  inf, nan = np.inf, np.nan
  with np.errstate(all="ignore"):
    assert exp2(Ops, np.array([0.0, -0.0, inf, -inf, 3e38, -3e38])).tolist() == [1, 1, inf, 0, inf, 0]
    assert log2(Ops, np.array([0.0, -0.0, inf, 1.0])).tolist() == [-inf, -inf, inf, 0]
    assert np.isnan([exp2(Ops, np.array([nan])), log2(Ops, np.array([nan])), log2(Ops, np.array([-1.0]))]).all()
    zeros = sin_of_turns(Ops, np.array([0.0, -0.0]))
  assert (zeros == 0).all() and np.signbit(zeros).tolist() == [False, True]


def test_this_process_takes_the_highest_level() -> None:
  wanted = os.environ.get("TINYHW_CPU") or HAD[-1]
  assert choose(TRIPLE, llvm.get_host_cpu_features()).cpu == wanted
