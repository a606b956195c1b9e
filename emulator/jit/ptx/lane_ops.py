"""The operations of meanings over LLVM values, as PTX has them: NaN, and other roundings."""
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tinyhw.emulator.jit.ptx.routine import defined
from tinyhw.emulator.jit.values import Emitter, LLVMOps, Value, convert, mangled, name_of
from tinyhw.emulator.ptx.meanings.convert import MODES
from tinyhw.emulator.values.ops import DTYPES

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.module.emit import Lanes

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
    """An operation of f32 or f64 that rounds toward zero, down or up: the processor does it in that mode."""
    if opcode == "rcp": opcode, values = "div", (self.const(name_of(values[0].dtype), 1), *values)
    wide = any(v.wide for v in values)
    t, name = self.e.type(values[0].dtype, wide), mangled(values[0].dtype, self.e.lanes if wide else 0)
    operation = {"mad": "fma", "fma": "fma", "sqrt": "sqrt"}.get(opcode, f"f{opcode}")
    function = f"directed.{operation}.{mode}.{name}"
    intrinsic = f"llvm.experimental.constrained.{operation}.{name}"
    defined(self.e, _rounding(function, intrinsic, t, len(values), mode))
    given = ", ".join(f"{t} {v.at(wide)}" for v in values)
    self.e.declared["llvm.set.rounding"] = "declare void @llvm.set.rounding(i32)"
    self.e.declared[intrinsic] = f"declare {t} @{intrinsic}({', '.join([t] * len(values))}, metadata, metadata)"
    return Value(self.e, self.e.op(f"call {t} @{function}({given})"), values[0].dtype, wide)

  def bits_const(self, x: Value, bits: int) -> Value:
    """Bits of the width of a float."""
    return self.e.const(DTYPES[f"u{x.dtype.itemsize * 8}"], bits)


_MODES: Final = {MODES["rz"]: 0, MODES["rp"]: 2, MODES["rm"]: 3}  # as C's FLT_ROUNDS has them
_NEAREST: Final = 1


def _rounding(name: str, intrinsic: str, t: str, count: int, mode: int) -> str:
  """A function of its own, in which nothing else rounds: LLVM may move plain arithmetic past a change of mode."""
  parameters = [f"{t} %x{k}" for k in range(count)]
  return "\n".join([
    f"define private {t} @{name}({', '.join(parameters)}) noinline strictfp {{",
    f"  call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp",
    f"  %r = call {t} @{intrinsic}({', '.join(parameters)}, metadata !\"round.dynamic\","
    " metadata !\"fpexcept.strict\") strictfp",
    f"  call void @llvm.set.rounding(i32 {_NEAREST}) strictfp", f"  ret {t} %r", "}"])
