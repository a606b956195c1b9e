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

# What is around the meanings.
FMA: Final = r"_fma(32|16|64|64_safe|64_exact)|_error_of_sum|multiply|add|minimum|maximum"
AROUND: Final = (
  Rule(r"(ops|bind|formats|registers|control|lds|vector|smem|words|access)\..*", r"",
       rf"({FMA}): arguments 0 and 1 swapped",
       "sums, products and extremes commute; which NaN comes out is not told apart"),
  Rule(r"ops\.(fmin|fmax)", r"_of_numbers\(", r"_of_numbers: arguments 1 and 2 swapped", "extremes commute"),
  Rule(r"ops\.fma_scaled", r"zip\(x, y|tiny", r".*",
       "the manuals leave open whether a quotient is rounded before it is scaled"),
  Rule(r"ops\._fma64", r"broadcast_arrays\(", r"broadcast_arrays: arguments 0 and 1 swapped", "products commute"),
  Rule(r"ops\.to_int", r"", r"(trunc dropped|GtE becomes Gt|Gt becomes GtE|0\.0 becomes 1\.0)",
       "what is at or past an end is chosen elsewhere, and the conversion truncates"),
  Rule(r"ops\.leading_zeros", r"if k < n", r"Lt becomes LtE", "a shift by the whole width adds nothing"),
  Rule(r"ops\.mul_high", r"I64 if", r"(arms swapped|Eq becomes NotEq)",
       "bits 32 to 63 of the product are the same either way"),
  Rule(r"ops\.ldexp", r"", r"(clip: .*|clip dropped|6000 becomes 6001|arms swapped|NotEq becomes Eq)",
       "NumPy's ldexp rounds once, whatever the type, and takes any exponent"),
  Rule(r"ops\._split", r"1 << fraction", r"1 becomes 2",
       "the fraction is looked at where the exponent is zero: its last bit too"),
  Rule(r"ops\._of_numbers", r"np\.any\(r != r\)", r"(arms swapped|NotEq becomes Eq)",
       "this NumPy's extremes take a number before a signalling NaN themselves; not every C library's do"),
  Rule(r"ops\._to_odd", r"step = ", r"Gt becomes GtE", "neither the error nor the sum is zero there"),
  Rule(r"ops\._fma64", r"safe = |< 900|a != 0",
       r"(Lt becomes LtE|900 becomes 901|0 becomes 1|BitOr becomes BitAnd|Eq becomes NotEq)",
       "both ways are exact around the limit; a factor of 1 needs neither"),
  Rule(r"ops\._fma64", r"out\[\(\)\]", r"arms swapped", "an array of no dimension is a scalar"),
  Rule(r"ops\._fma64_exact", r"if e < 0|n > 0", r"(Lt becomes LtE|0 becomes 1|Gt becomes GtE)",
       "a shift by zero changes nothing, and what overflows is not near zero"),
  Rule(r"bind\.(_source|_destination)", r"itemsize < 8", r"(Lt becomes LtE|8 becomes 9)",
       "SDWA has no 64-bit operands"),
  Rule(r"bind\.(_source|_destination|_packed)", r"_half\(o, 1|write_vector16\(|for high in", r"1 becomes 2",
       "any number that is not zero stands for the upper half"),
  Rule(r"bind\._vector_parts", r"position \+= 1", r"1 becomes 2", "a mask is the last source"),
  Rule(r"bind\._vector_parts", r"else 3$", r"3 becomes 4", "no encoding has modifiers for its constant"),
  Rule(r"bind\._float_result", r"OMOD\.get", r"1\.0 becomes 2\.0", "the factor counts only with omod"),
  Rule(r"bind\.saturates", r"_clampable", r"and and or swapped", "where nothing can clamp, the bit is not set"),
  Rule(r"bind\..*", r"np\.clip\((result|total), ", r"clip: arguments 0 and 1 swapped",
       "the middle one of three numbers"),
  Rule(r"bind\.(_dual|dword)", r"Operand\(\"imm\"|dwords=1", r"1 becomes 2", "a reader of 32 bits does not ask"),
  Rule(r"bind\.dot_iu\..*", r"range\(32 // bits\)|zip\(", r"(FloorDiv becomes Mult|32 becomes 33|zip: .*)",
       "past the register there are only zeros, and products commute"),
  Rule(r"bind\.quad_sad\..*", r"range\(4\)", r"4 becomes 5", "one more element is made and not used"),
  Rule(r"lanes\.mbcnt\..*", r"np\.clip\(lane", r"32 becomes 33", "the bits above 32 are cut off"),
  Rule(r"dpp\._broadcast_row_end\..*", r"last >= 0", r"(0 becomes 1|GtE becomes Gt)",
       "the last lanes of rows are 15, 31, 47"),
  Rule(r"dpp\.source_lanes", r"ctrl < 0x100", r"(Lt becomes LtE|256 becomes 257)", "0x100 is no pattern"),
  Rule(r"sdwa\.(source\.part|destination\.write)", r"bits < 32", r"(Lt becomes LtE|32 becomes 33)",
       "a dword is shifted by nothing and masked with all ones"),
)


def reason(module: str, function: str, source: str, change: str) -> str | None:
  """Why a change cannot be noticed; None where it can."""
  from tinyhw.tools.mutate.equivalent_rooms import ROOMS
  return next((r.reason for r in (*RULES, *AROUND, *ROOMS) if r.fits(module, function, source, change)), None)
