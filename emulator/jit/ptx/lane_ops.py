"""The operations of meanings over LLVM values, as PTX has them: NaN, and roundings by way of f64."""
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tinyhw.emulator.jit.values import Emitter, LLVMOps, Untranslatable, Value, convert
from tinyhw.emulator.ptx.meanings.convert import MODES
from tinyhw.emulator.values.ops import DTYPES, F32

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.emit import Lanes

NAN: Final = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


class LaneOps(LLVMOps):
  """Operations for one kernel; a NaN need not be the chip's where nobody sees its bits."""

  def __init__(self, e: Emitter, lanes: Lanes) -> None:
    super().__init__(e)
    self._lanes = lanes

  def canonical(self, x: Value, type_: str) -> Value: return x if self._lanes.loose else self.chip(x, type_)

  def chip(self, x: Value, type_: str) -> Value:
    """The value with NaN as the chip makes it."""
    return self.where(x != x, self.from_bits(type_, NAN[type_]), x)

  def rounded(self, x: Value, type_: str, mode: str) -> Value:
    """A number as a float type, rounded toward zero, down or up."""
    if x.dtype.kind != "f" and x.dtype.itemsize < 8: x = self.to(x, "f64")
    near = self.to(x, type_)
    if x.dtype.kind == "f":
      if x.dtype.itemsize <= near.dtype.itemsize: return near
      back = convert(near, x.dtype)
      finite = self.abs(x) < float("inf")
      above, below = finite & (x > back), finite & (x < back)
    else:
      back = self.to_int(near, ("i" if x.dtype.kind == "i" else "u") + "64")
      most = float("inf") if type_ == "f16" else 2.0 ** (63 if x.dtype.kind == "i" else 64)
      over, under = near >= most, near == -float("inf")
      above, below = under | ~over & (x > back), over | (x < back)
    raw, zero = self._raw(near), near == 0
    one, top = self.bits_const(near, 1), self.bits_const(near, near.top)
    up = self.where(zero, one, self.where(near > 0, raw + 1, raw - 1))
    down = self.where(zero, top | one, self.where(near > 0, raw - 1, raw + 1))
    if mode == "rp": above, below = above, above & ~above
    elif mode == "rm": above, below = below & ~below, below
    else: above, below = above & (near < 0), below & (near > 0)
    return self.where(above, up, self.where(below, down, raw)).view(near.dtype)

  def directed(self, opcode: str, mode: int, *values: Value) -> Value:
    """A sum, product or both of f32, rounded another way than to nearest even, by way of f64."""
    if values[0].dtype != F32 or opcode not in {"add", "sub", "mul", "fma", "mad"}:
      raise Untranslatable(f"directed rounding of {opcode}")
    a, b, *c = (self.to(v, "f64") for v in values)
    one = self.const("f64", 1)
    if opcode == "sub": b = self.neg(b)
    if opcode == "mul": wide = a * b
    else: wide = self.fma_f16_of_f32(a, *((b, c[0]) if c else (one, b)))
    r = self.rounded(wide, "f32", next(name for name, n in MODES.items() if n == mode))
    if opcode == "mul" or mode != MODES["rm"]: return r
    opposite = self.signbit(a) ^ self.signbit(b) ^ self.signbit(c[0]) if c else self.signbit(a) ^ self.signbit(b)
    return self.where((wide == 0) & opposite, self.from_bits("f32", 0x80000000), r)

  def bits_const(self, x: Value, bits: int) -> Value:
    """Bits of the width of a float."""
    return self.e.const(DTYPES[f"u{x.dtype.itemsize * 8}"], bits)
