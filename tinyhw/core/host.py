"""What compiled code uses of the processor that runs this process: a level that the tests run, and nothing beyond it.

A compiler that may use all that it finds makes other code on each host, some of it wrong: LLVM 22's conversions of
half to small integers with AVX512-FP16 do not saturate, and those to bfloat with AVX512-BF16 flush denormal numbers.
So the host is one of a few levels. Values do not depend on which: the numeric tests run on each that a host has.

`TINYHW_CPU` names a lower level than the highest one; code that is kept says in its key which it was made for.
Levels of x86-64 are those of the System V ABI (AMD64 psABI 1.0, table 3.1), by LLVM's names.

Tests run on every level that a machine has, and on NumPy and the C library without their newer
loops. So multiply-add is fused on all levels, and 2**x, logarithms and sines are sums and products
(`compile/transcendental.py`, `emulator/values/elementary.py`), never a library's.
"""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tinyhw.core.errors import InvalidArgument

VARIABLE: Final = "TINYHW_CPU"
# level: what it has beyond the one before it
LEVELS: Final[dict[str, tuple[str, ...]]] = {
  "x86-64": ("cx8", "fxsr", "sse2"),
  "x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"),
  "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
  "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
GENERIC: Final = "generic"  # what every processor of another architecture has, as LLVM sees it


@dataclass(frozen=True)
class Host:
  """What code for this process is made for: LLVM's target triple, and its name of a processor."""
  triple: str
  cpu: str

  @property
  def functions(self) -> str:
    """LLVM IR that belongs into each module: what LLVM calls where this processor has no instruction for it."""
    return FUNCTIONS if self.cpu in ("x86-64", "x86-64-v2") else ""

  def __str__(self) -> str: return f"{self.triple} {self.cpu}"


def levels(triple: str, found: Mapping[str, bool]) -> list[str]:
  """The levels that a processor has, the lowest first. `found` are its features as LLVM names them."""
  if not triple.startswith("x86_64"): return [GENERIC]
  out: list[str] = []
  for level, needs in LEVELS.items():
    if out and not all(found.get(n) for n in needs): break  # the first one is what x86-64 means
    out.append(level)
  return out


def choose(triple: str, found: Mapping[str, bool], wanted: str | None = None) -> Host:
  """The highest level that this processor has, or the one that is `wanted` or in `TINYHW_CPU`.

  Raises InvalidArgument where the processor has no such level.
  """
  have, wanted = levels(triple, found), wanted or os.environ.get(VARIABLE)
  if not wanted: return Host(triple, have[-1])
  if wanted not in have:
    known = triple.startswith("x86_64") and wanted in LEVELS
    raise InvalidArgument(f"this processor is no {wanted}" if known else f"{wanted!r} is no level of processors",
                          where=VARIABLE, hint=f"it can be {', '.join(have)}")
  return Host(triple, wanted)


# Conversions of half (libraries of compilers have them only of late, and with the old ABI before), and float's fused
# multiply-add, in double: the product is exact, and a sum that is rounded to odd may be rounded once more. A NaN
# operand comes before one that the product makes, as with the instruction.
FUNCTIONS: Final = """
define weak float @__extendhfsf2(half %x) {
  %h = bitcast half %x to i16
  %bits = zext i16 %h to i32
  %magnitude = and i32 %bits, 32767
  %top = and i32 %bits, 32768
  %sign = shl i32 %top, 16
  %shifted = shl i32 %magnitude, 13
  %small = bitcast i32 %shifted to float
  %finite = fmul float %small, 0x46F0000000000000
  %number = bitcast float %finite to i32
  %special = or i32 %shifted, 2139095040
  %quiet = or i32 %special, 4194304
  %isnan = icmp ugt i32 %magnitude, 31744
  %isinf = icmp eq i32 %magnitude, 31744
  %a = select i1 %isinf, i32 %special, i32 %number
  %b = select i1 %isnan, i32 %quiet, i32 %a
  %signed = or i32 %b, %sign
  %r = bitcast i32 %signed to float
  ret float %r
}

define weak half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %magnitude = and i32 %bits, 2147483647
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %cut = lshr i32 %magnitude, 13
  %odd = and i32 %cut, 1
  %near = add i32 %magnitude, 4095
  %even = add i32 %near, %odd
  %rebased = sub i32 %even, 939524096
  %normal = lshr i32 %rebased, 13
  %positive = bitcast i32 %magnitude to float
  %aligned = fadd float %positive, 0.5
  %alignedbits = bitcast float %aligned to i32
  %denormal = sub i32 %alignedbits, 1056964608
  %isdenormal = icmp ult i32 %magnitude, 947912704
  %isgreat = icmp uge i32 %magnitude, 1199570944
  %isnan = icmp ugt i32 %magnitude, 2139095040
  %payload = and i32 %cut, 1023
  %quiet = or i32 %payload, 32256
  %a = select i1 %isdenormal, i32 %denormal, i32 %normal
  %b = select i1 %isgreat, i32 31744, i32 %a
  %c = select i1 %isnan, i32 %quiet, i32 %b
  %signed = or i32 %c, %sign
  %short = trunc i32 %signed to i16
  %r = bitcast i16 %short to half
  ret half %r
}

define weak float @fmaf(float %x, float %y, float %z) {
  %a = fpext float %x to double
  %b = fpext float %y to double
  %c = fpext float %z to double
  %product = fmul double %a, %b
  %nan = fcmp uno double %c, %c
  %p = select i1 %nan, double %c, double %product
  %s = fadd double %p, %c
  %v = fsub double %s, %p
  %u = fsub double %s, %v
  %left = fsub double %p, %u
  %right = fsub double %c, %v
  %error = fadd double %left, %right
  %inexact = fcmp one double %error, 0.0
  %up = fcmp ogt double %error, 0.0
  %positive = fcmp ogt double %s, 0.0
  %outward = icmp eq i1 %up, %positive
  %step = select i1 %outward, i64 1, i64 -1
  %bits = bitcast double %s to i64
  %even = xor i64 %bits, -1
  %iseven = trunc i64 %even to i1
  %move = and i1 %inexact, %iseven
  %moved = add i64 %bits, %step
  %odd = select i1 %move, i64 %moved, i64 %bits
  %wide = bitcast i64 %odd to double
  %r = fptrunc double %wide to float
  ret float %r
}
"""
