"""What inline constants and literals are to an operand, by the operand's type in the generated table.

Integers are 32-bit numbers with sign to operands of 32 bits and less. A number is a float of the size of the operand's
elements, with zeros above it: to a pair of f16 or bf16 it is in the low half alone, and op_sel_hi says whether both
halves read that (ISA manuals: RDNA3, sections 4.1 and 7.5.1; RDNA4, 4.1 and 7.7.2). Pairs of 16-bit integers are the
exception: they get the f32, whose upper half is the one that is not zero (LLVM: getInlineEncodingV2I16). The sources of
v_fma_mix are f16 operands, and one that reads 32 bits reads zeros above the f16 (LLVM: isInlinableLiteralFP16).

Of v_dot2_f16_f16 and v_dot2_bf16_bf16, and on RDNA4 of the other two, the manuals say that a constant of source 0 or 1
is in both halves (RDNA3, 7.2.1; RDNA4, 7.2.1); LLVM takes it for one in the low half, and so does this table, because
compiled programs rely on it.
"""
from __future__ import annotations

import struct
from typing import Final

from tinyhw.emulator.values.ops import DTYPES
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Operand
from tinyhw.isa.amdgcn.codes import INLINE_FLOATS

# The float that a number is, by the operand's type; of other types, the one as wide as what is read.
FORMATS: Final = {
  "f16": "f16", "v2f16": "f16", "b16": "f16", "i16": "f16", "u16": "f16", "bf16": "bf16", "v2bf16": "bf16",
  "v2b16": "f32", "v2i16": "f32", "v2u16": "f32", "b32": "f32", "f32": "f32", "i32": "f32", "u32": "f32"}
_PACK: Final = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}
_INVERSE_2PI: Final = {"f16": 0x3118, "bf16": 0x3E22, "f32": 0x3E22F983, "f64": 0x3FC45F306DC9C882}  # code 248


def number(code: int, kind: str) -> int:
  """The pattern of an inline number, codes 240 to 248, as f16, bf16, f32 or f64."""
  if code == 248: return _INVERSE_2PI[kind]
  if kind == "bf16": return number(code, "f32") >> 16
  as_float, as_int = _PACK[kind]
  bits: int = struct.unpack(as_int, struct.pack(as_float, INLINE_FLOATS[code]))[0]
  return bits


def constant(o: Operand, type_: str) -> Value:
  """An inline constant or literal as a value of the type. 64-bit literals: floats take the upper half."""
  width = int(type_[1:])
  if o.kind == "lit":
    if type_ == "f64": bits = o.value << 32
    elif type_ == "i64": bits = o.value - (o.value >> 31 << 32)
    else: bits = o.value
  elif o.value <= 208: bits = o.value - 128 if o.value <= 192 else 192 - o.value
  else: bits = number(o.value, "f64" if width == 64 else FORMATS.get(o.type, f"f{width}"))
  return DTYPES[f"u{width}"].type(bits & (1 << width) - 1).view(DTYPES[type_])


def constant_half(o: Operand, high: int, type_: str) -> Value:
  """One half of an inline constant or literal of 32 bits, as a 16-bit type."""
  bits = int(constant(o, "u32")) >> 16 * high & 0xFFFF
  return DTYPES["u16"].type(bits).view(DTYPES[type_])
