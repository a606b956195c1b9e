"""What code uses of the host's processor: levels, how one is chosen, the functions that stand in for instructions."""
from __future__ import annotations

import ctypes
import random
from fractions import Fraction
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.strength import examples, seed
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.host import FUNCTIONS, GENERIC, LEVELS, Host, choose, levels

X86 = "x86_64-unknown-linux-gnu"
NAMES = list(LEVELS)


@pytest.fixture(autouse=True)
def no_wish(monkeypatch: pytest.MonkeyPatch) -> None: monkeypatch.delenv("TINYHW_CPU", raising=False)


def having(level: str, *more: str, without: str = "") -> dict[str, bool]:
  """Features of a processor of this level."""
  names = [n for known in NAMES[:NAMES.index(level) + 1] for n in LEVELS[known]]
  return {n: n != without for n in (*names, *more)} | {"amx-tile": False}


@pytest.mark.parametrize("level", NAMES)
def test_a_processor_is_the_highest_level_that_it_has(level: str) -> None:
  assert choose(X86, having(level)) == Host(X86, level)
  assert levels(X86, having(level)) == NAMES[:NAMES.index(level) + 1]


def test_what_no_level_names_is_not_used() -> None:
  plain = choose(X86, having("x86-64-v4"))
  assert choose(X86, having("x86-64-v4", "avx512fp16", "avx512bf16", "avx10.2", "anything")) == plain
  assert choose(X86, having("x86-64-v3", "avx512f")).cpu == "x86-64-v3"  # without the rest of it


@pytest.mark.parametrize("without", ["fma", "f16c", "sse4.1"])
def test_a_level_without_one_of_its_features_is_not_had(without: str) -> None:
  lower = "x86-64" if without == "sse4.1" else "x86-64-v2"
  assert choose(X86, having("x86-64-v4", without=without)).cpu == lower


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "riscv64-unknown-linux-gnu"])
def test_other_architectures_are_what_all_of_their_processors_have(triple: str) -> None:
  assert choose(triple, {"neon": True, "fullfp16": True, "sve": True}) == Host(triple, GENERIC)
  assert not choose(triple, {}).functions


def test_a_lower_level_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("TINYHW_CPU", "x86-64-v2")
  assert choose(X86, having("x86-64-v4")).cpu == "x86-64-v2"
  assert choose(X86, having("x86-64-v4"), "x86-64-v3").cpu == "x86-64-v3"
  with pytest.raises(InvalidArgument, match="TINYHW_CPU: this processor is no x86-64-v2; it can be x86-64$"):
    choose(X86, having("x86-64"))
  monkeypatch.setenv("TINYHW_CPU", "x86-64-v2")
  with pytest.raises(InvalidArgument, match="'x86-64-v2' is no level of processors; it can be generic"):
    choose("aarch64-unknown-linux-gnu", {})
  monkeypatch.setenv("TINYHW_CPU", "native")
  with pytest.raises(InvalidArgument, match="'native' is no level of processors; it can be x86-64, x86-64-v2"):
    choose(X86, having("x86-64-v4"))


def test_llvm_knows_the_levels() -> None:
  """As processors; of an unknown one it would say so and go on with the plain one."""
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  text = "define <16 x float> @f(<16 x float> %x) {\n  %y = fadd <16 x float> %x, %x\n  ret <16 x float> %y\n}"
  used = []
  for level in NAMES:
    machine = llvm.Target.from_triple(X86).create_target_machine(cpu=level, opt=2)
    assembly = machine.emit_assembly(llvm.parse_assembly(text))
    used.append(next(r for r in ("zmm", "ymm", "xmm") if r in assembly))
  assert used == ["xmm", "xmm", "ymm", "zmm"]


# ---- functions that stand in for instructions

WRAPPERS = """
define void @widen(ptr %out, ptr %in) {
  %h = load half, ptr %in
  %f = call float @__extendhfsf2(half %h)
  store float %f, ptr %out
  ret void
}
define void @narrow(ptr %out, ptr %in) {
  %f = load float, ptr %in
  %h = call half @__truncsfhf2(float %f)
  store half %h, ptr %out
  ret void
}
define void @fused(ptr %out, ptr %in) {
  %pb = getelementptr float, ptr %in, i64 1
  %pc = getelementptr float, ptr %in, i64 2
  %a = load float, ptr %in
  %b = load float, ptr %pb
  %c = load float, ptr %pc
  %r = call float @fmaf(float %a, float %b, float %c)
  store float %r, ptr %out
  ret void
}
define void @every(ptr %out, ptr %in, i64 %n, i64 %to, i64 %from, ptr %f) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a = mul i64 %i, %to
  %b = mul i64 %i, %from
  %p = getelementptr i8, ptr %out, i64 %a
  %q = getelementptr i8, ptr %in, i64 %b
  call void %f(ptr %p, ptr %q)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


@cache
def engine() -> Any:
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
  made = llvm.create_mcjit_compiler(llvm.parse_assembly(FUNCTIONS + WRAPPERS), machine)
  made.finalize_object()
  return made


def every(name: str, out: Any, values: np.ndarray) -> np.ndarray:
  """The function of each row of values."""
  result = np.zeros(len(values), out)
  run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p)
  run(engine().get_function_address("every"))(result.ctypes.data, values.ctypes.data, len(values), result.itemsize,
                                              values.nbytes // len(values), engine().get_function_address(name))
  return result


def test_every_half_as_a_float() -> None:
  """NaNs keep their sign and payload, and become quiet."""
  halves = np.arange(1 << 16, dtype=np.uint16)
  nan = (halves & 0x7FFF) > 0x7C00
  found = every("widen", np.float32, halves)
  assert (found[~nan].view(np.uint32) == halves.view(np.float16).astype(np.float32)[~nan].view(np.uint32)).all()
  wanted = (halves[nan].astype(np.uint32) & 0x8000) << 16 | 0x7FC00000 | (halves[nan].astype(np.uint32) & 0x1FF) << 13
  assert (found[nan].view(np.uint32) == wanted).all()


def test_floats_as_halves() -> None:
  """Every half, the middles between two, their neighbours, and anything else."""
  halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
  middles = ((halves[1:].astype(np.float64) + halves[:-1]) / 2).astype(np.float32)
  anything = np.random.default_rng(seed(0)).integers(0, 1 << 32, examples(200_000), dtype=np.uint32).view(np.float32)
  edges = np.array([0, 65504, 65519.996, 65520, 65536, 3e38, np.inf, 1e-45, 2.0**-25, 2.0**-24], np.float32)
  values = [x for near in (halves, middles, edges) for x in (near, np.nextafter(near, np.float32(0)),
                                                             np.nextafter(near, np.float32(np.inf)))]
  all_ = np.concatenate([*values, *(-v for v in values), anything])
  found = every("narrow", np.uint16, all_)
  nan = np.isnan(all_)
  with np.errstate(over="ignore"): wanted = all_[~nan].astype(np.float16)
  assert (found[~nan] == wanted.view(np.uint16)).all()
  bits = all_[nan].view(np.uint32)
  assert (found[nan] == (bits >> 16 & 0x8000 | 0x7E00 | bits >> 13 & 0x3FF)).all()


def test_floats_multiplied_and_added_with_one_rounding() -> None:
  rng = random.Random(seed(7))

  def number() -> float:
    if rng.random() < 0.1: return rng.choice((0.0, -0.0, 1.0, 1e38, -1e38, 1e-45, 2.0**-149, 2.0**-126, 3.0))
    return float(np.ldexp(np.float32(1 + rng.getrandbits(23) / (1 << 23)), rng.randrange(-149, 127)))
  rows = np.array([[number(), number(), number()] for _ in range(examples(4000))], np.float32)
  for row in rows[::2]:  # sums that cancel, or are half a unit of the other
    with np.errstate(all="ignore"): row[2] = -row[0] * row[1] * np.float32(rng.choice((1, 2.0**-24, 2.0**24, 1.5)))
  found = every("fused", np.float32, rows)
  for (a, b, c), got in zip(rows.tolist(), found.tolist()):
    if not np.isfinite((a, b, c)).all(): continue
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    assert got == rounded(exact), (a.hex(), b.hex(), c.hex(), got.hex())


def rounded(exact: Fraction) -> float:
  """The nearest float, ties to even."""
  size = abs(exact)
  if not size: return 0.0
  exponent = size.numerator.bit_length() - size.denominator.bit_length()
  if Fraction(2)**exponent > size: exponent -= 1
  unit = Fraction(2)**(max(exponent, -126) - 23)
  value = round(size / unit) * unit  # Python rounds halves to even
  return float("inf" if value >= 2**128 else value) * (1 if exact > 0 else -1)


@pytest.mark.parametrize("row", [(np.inf, 0, 1), (np.inf, 1, -np.inf), (np.nan, 1, 1), (1, 1, np.nan)])
def test_no_number_comes_of_none(row: tuple[float, ...]) -> None:
  assert np.isnan(every("fused", np.float32, np.array([row], np.float32))).all()
  for a, b, c, wanted in ((np.inf, 2, 1, np.inf), (2, 2, -np.inf, -np.inf), (1e38, 1e38, -np.inf, -np.inf)):
    assert every("fused", np.float32, np.array([(a, b, c)], np.float32)) == wanted


@pytest.mark.parametrize("level", NAMES)
def test_functions_stand_in_below_the_third_level(level: str) -> None:
  """x86-64-v3 has F16C and FMA; code for what is below calls functions of ours, and none of a library."""
  assert (Host(X86, level).functions == FUNCTIONS) == (level in ("x86-64", "x86-64-v2"))
  assert Host(X86, level).functions in ("", FUNCTIONS)
