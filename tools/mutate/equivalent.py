"""Changes that no test can notice, each kind with its reason. A rule that fits no change any more fails a test."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Rule:
  """Changes that fit all three patterns: of "module.function", of the source line, of the change."""
  function: str
  line: str
  change: str
  reason: str

  def fits(self, module: str, function: str, source: str, change: str) -> bool:
    return bool(re.fullmatch(self.function, f"{module}.{function}") and re.search(self.line, source)
                and re.fullmatch(self.change, change))


SWAP01: Final = "arguments 0 and 1 swapped"
RULES: Final = (
  Rule(r".*", r"", rf"(min|max|fmin|fmax|mul_high): {SWAP01}", "the operation commutes; NaNs are not told apart"),
  Rule(r".*", r"", rf"(fma|fma_scaled|fma_f16_of_f32): {SWAP01}", "the factors of a product commute"),
  Rule(r"floats\.fmac_dx9|floats\.(_nlg|_t|_nle|_ngt|_nlt|_nge|_u)|floats\.dot2acc", r"fma_dx9\(|_lg\(|_f\(|dot2\(",
       r"\w+: arguments 1 and 2 swapped", "the function commutes in these"),
  Rule(r"integer\.(sad_u8|sad_hi_u8)", r"_sad\(", r"_sad: arguments 1 and 2 swapped", "a distance has no direction"),
  Rule(r"integer\.(dot4|dot8)", r"_unsigned_dot", rf"_unsigned_dot: {SWAP01}", "products commute"),
  Rule(r"integer\.subrev_co_ci", r"sub_co_ci", r"sub_co_ci: arguments 2 and 3 swapped",
       "b - a - c is what b - c - a is, borrow and all"),
  Rule(r".*", r"o\.abs\([^,]* - [^,]*\)", "operands swapped", "the absolute value of a difference"),
  Rule(r"integer\.sad_u32", r"a > b", "Gt becomes GtE", "the difference of equal numbers is 0 both ways"),
  Rule(r"(integer|floats)\.(_f|_t)", r"\(a [<=]+ a\) [&|] \(b", r".*",
       "the terms are constant: one of them alone gives the result, or NaN is compared with itself"),
  Rule(r"integer\.bfe_i", r"n == 0", r"Sub becomes Add", "where() takes the result of an empty field from elsewhere"),
  Rule(r"scalar\.addk", r"add_i\(", r"add_i: arguments 1 and 2 swapped", "a sum commutes"),
  Rule(r"scalar\.(abs_|absdiff)", r"a < 0|a - b", r"(Lt becomes LtE|0 becomes 1|operands swapped)",
       "the negative of 0 is 0, and a distance has no direction"),
  Rule(r"scalar\.quadmask", r"q & 0|itemsize \* 2", r"(0 becomes 1|2 becomes 3)",
       "bit 0 is set again by the loop, and past the register there are only zeros"),
  Rule(r"floats\.(mul_dx9|mullit)", r"_zero_wins", r"_zero_wins: arguments 1 and 2 swapped", "the factors commute"),
  Rule(r"floats\.mullit", r"isinf\(b\) & \(b < 0\)", r"(Lt becomes LtE|0 becomes 1)",
       "an infinity is neither 0 nor between 0 and 1"),
  Rule(r"gfx12\._nan_or", r"a \+ a", r"Add becomes Sub", "NaN either way"),
  Rule(r"gfx12\.(minimum3|maximum3|minimummaximum|maximumminimum)", r"(minimum|maximum)\(o, ",
       r"(minimum|maximum): arguments 1 and 2 swapped", "both commute, NaNs too"),
  Rule(r"gfx9\.(.*_signed|dot2_u16)", r"_dot\(o, a, b", r"_dot: arguments 1 and 2 swapped", "products commute"),
  Rule(r"atomics\._add_bf16", r"^(inexact|down|odd) = ", r".*",
       "where f32 rounds the sum of two bf16 numbers, the smaller is far below a tie: the last bit does not count"),
  Rule(r"small_floats\._finished", r"128 - t\.bias << 23", r"(Lt becomes LtE|GtE becomes Gt|128 becomes 129)",
       "the least normal numbers have the same code both ways, and none of them passes the top"),
  Rule(r"quiet\.quieting\.quiet", r"plain = function", r"function: arguments 1 and 2 swapped", "extremes commute"),
  Rule(r"atomics\.<lambda>", r"csub", r"GtE becomes Gt", "the difference of equal numbers is 0 both ways"),
  Rule(r"atomics\._two\.both", r"add\(o, old", r"add: arguments 1 and 2 swapped", "a sum commutes"),
  Rule(r"atomics\._add_bf16", r"0x7FC0", r"32704 becomes 32705", "any NaN stands for any other"),
  Rule(r"floats\.med3", r"(max3|min3)\(o, a, b, c\)", r"(max3|min3): arguments \d and \d swapped",
       "the extreme of three numbers has no order; which NaN comes out is not told apart"),
  Rule(r"floats\.rsq", r"_flushed\(o, _rounded", r"_flushed dropped", "no inverse root is denormal"),
  Rule(r"floats\.exp", r"_wide\(o, _flushed", r"_flushed dropped", "2 to the power of a denormal is 1 either way"),
  Rule(r"(integer\.cls|scalar\.cls32|scalar\.cls64)", r"a >> (31|63)", r"(31 becomes 32|63 becomes 64)",
       "NumPy shifts the sign in whatever the distance"),
  Rule(r"integer\.(perm|_sad|_unsigned_dot)", r"for k in range", r"(4 becomes 5|32 becomes 33)",
       "one more element lies past the register and adds nothing"),
  Rule(r"floats\.frexp_(mant|exp)", r"isnan\(a\) \| o\.isinf", r"BitOr becomes BitAnd",
       "NumPy's frexp gives the same for NaN and infinity"),
  Rule(r"floats\._div_scale", r"inverse = ", r"1 becomes 2", "2 / den is denormal unless 1 / den is: one bit above"),
  Rule(r"floats\._div_scale", r"done = done \| den_denormal", r".*", "a denormal denominator has no denormal inverse"),
  Rule(r"floats\._div_fixup", r"o\.const\(t, -?1\)", r"1 becomes 2", "only the sign, or a quotient by zero, is used"),
  Rule(r"floats\._div_fixup", r"o\.abs\(q\)", r"abs dropped", "copysign takes the sign from elsewhere"),
  Rule(r"floats\.div_fixup16", r"1000", r"1000 becomes 1001", "no exponent of f16 is near: the rule is off"),
  Rule(r"floats\.div_fixup(32|64)", r"255|2047", r"(255 becomes 256|2047 becomes 2048)",
       "an exponent of all ones is infinity or NaN, which other rules take first"),
  Rule(r"floats\._norm", r"o\.fmin\(o\.fmax\(x", r"1 becomes 2", "the conversion to an integer saturates anyway"),
  Rule(r"floats\.dot2_bf16_bf16", r"0x7FC0", r"32704 becomes 32705", "any NaN stands for any other"),
)


def reason(module: str, function: str, source: str, change: str) -> str | None:
  """Why a change cannot be noticed; None where it can."""
  return next((r.reason for r in RULES if r.fits(module, function, source, change)), None)
