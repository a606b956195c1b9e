"""Registers of a wave in memory, and as LLVM values while one block of a program is translated.

A block reads each register from memory at most once and writes back what it changed when it is left. Vector registers
are vectors of lanes; SGPRs, VCC, EXEC and M0 are scalars; a lane mask in an SGPR is kept as bools as well.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tinyhw.emulator.amdgcn.registers import SCC as SRC_SCC
from tinyhw.emulator.amdgcn.registers import aperture
from tinyhw.emulator.jit.amdgcn.fields import FIELDS
from tinyhw.emulator.jit.values import BOOL, Emitter, LLVMOps, Untranslatable, Value, convert
from tinyhw.emulator.values.ops import DTYPES, U16, U32, U64
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, NULL

# A wave's state in memory: dwords. Vector registers follow the header, `lanes` dwords each.
SCC: Final = 128
STATUS: Final = 129
RESUME: Final = 130  # where the wave goes on or stopped: an index into the code's list of places
MODE: Final = 131
LEFT: Final = 132  # instructions that the wave may still execute in this turn, as i64
SCRATCH: Final = 134  # scratch base address, u64
LDS: Final = 136  # host address of the workgroup's LDS, u64
SIGNALS: Final = 140  # how often the wave has signalled its workgroup's barrier since that last completed
PASSED: Final = 141  # whether the barrier completed since the wave last waited for it
TARGET: Final = 142  # PC that the wave jumps to, u64
ME: Final = 144  # watched code: the number of what runs between two barriers of a workgroup, and the wave in it
AWAY: Final = 145  # watched code: offset of the instruction that the reference has to look at
HERE: Final = 146  # watched code: what a wave that writes puts into cells of LDS, see `cells`
HEADER: Final = 160
SGPRS: Final = 128


def _stay() -> None: raise Untranslatable("a condition that only the translator of a program can leave by")


class Registers:
  """The registers of the wave whose block is being translated. `full` says that EXEC is known to have every lane."""

  def __init__(self, e: Emitter, vgprs: int, arch: Any) -> None:
    self.e, self.vgprs, self.arch, self.lanes = e, vgprs, arch, e.lanes
    self.o = LLVMOps(e)
    self.full = False
    self.leave: Callable[[], None] = _stay
    self.begin()

  def begin(self) -> None:
    """A new block: nothing is at hand, all is in memory."""
    self.forget()
    self.exec_written = False
    self.read: set[int] = set()  # vector registers that the block has read as they were before
    self.written: set[int] = set()  # those of which it wrote all lanes first
    self.any_read = False  # whether it read one by a number that only the wave knows

  def forget(self) -> None:
    """Nothing is at hand: all is in memory."""
    self.e.forget()
    self._v: dict[int, dict[str, Value]] = {}
    self._s: dict[int, Value] = {}
    self._masks: dict[int, tuple[Value, Value]] = {}
    self._pairs: dict[tuple[str, int], tuple[Value, Value, Value]] = {}
    self._scc: Value | None = None
    self._dirty_v: set[int] = set()
    self._dirty_s: set[int] = set()
    self._dirty_scc = False
    self._active: tuple[Value, Value] | None = None
    self.fragments: dict[tuple[Any, ...], str] = {}  # of matrix instructions: what is at hand as numbers, and where

  def unless(self, condition: Value) -> None:
    """Where the condition holds, leave the instruction to the reference; nothing of it may have been written yet."""
    e = self.e
    if condition.wide:
      lanes = condition if self.full else condition & self.active()
      condition = self.to_bits(lanes) != 0
    away, on = e.new_label("away"), e.new_label("on")
    e.do(f"br i1 {condition.text}, label %{away}, label %{on}, !prof !2")
    e.start(away)
    e.side = True
    self.spill()
    self.leave()
    e.side = False
    e.start(on)

  def _pointer(self, dword: int) -> str: return self.e.op(f"getelementptr i32, ptr %state, i64 {dword}")
  def _vector_place(self, n: int) -> str: return self._pointer(HEADER + n * self.lanes)

  def number(self, i: Instruction, name: str, dtype: Any) -> Value:
    """A number of an instruction, see `fields`."""
    return self.e.const(dtype, FIELDS[name][0](i))

  def given(self, source: tuple[str, str], dtype: Any) -> Value:
    """A literal that is not known, see `shapes`."""
    raise Untranslatable(f"{source[0]} is not given")

  def flush(self) -> dict[int, int]:
    """Write back what changed. Returns which line stores a vector register."""
    stored = self.spill()
    self._dirty_v, self._dirty_s, self._dirty_scc = set(), set(), False
    return stored

  def spill(self) -> dict[int, int]:
    """As `flush`, on a way that leaves the block while another goes on."""
    stored = self._store_vectors(self._dirty_v)
    for n in sorted(self._dirty_s): self.e.do(f"store i32 {self._s[n].text}, ptr {self._pointer(n)}")
    if self._dirty_scc and self._scc is not None:
      self.e.do(f"store i32 {convert(self._scc, U32).text}, ptr {self._pointer(SCC)}")
    return stored

  # ---- vector registers

  def _store_vectors(self, changed: set[int]) -> dict[int, int]:
    stored = {}
    for n in sorted(changed):
      value = next(iter(self._v[n].values()))
      if not value.wide: value = Value(self.e, value.in_lanes(), value.dtype, True)
      self.e.do(f"store {value.type} {value.text}, ptr {self._vector_place(n)}, align 64")
      stored[n] = len(self.e.lines) - 1
    return stored

  def vector(self, n: int, dtype: Any) -> Value:
    """A vector register as a 4-byte type."""
    if n >= self.vgprs: raise Untranslatable("a register beyond the wave's allocation")
    forms = self._v.get(n)
    if forms is None:
      self._find(n)
      text = self.e.op(f"load <{self.lanes} x i32>, ptr {self._vector_place(n)}, align 64")
      forms = self._v[n] = {"u": Value(self.e, text, U32, True)}
    kept = forms.get(dtype.kind)
    if kept is None: kept = forms[dtype.kind] = next(iter(forms.values())).view(dtype)
    return kept

  def _masked(self, new: Value, old: Value) -> Value:
    return new if self.full else self.o.where(self.active(), new, old)

  def set_vector(self, n: int, value: Value, *, everywhere: bool = False) -> None:
    """Write a 4-byte value under EXEC."""
    if n >= self.vgprs: raise Untranslatable("a register beyond the wave's allocation")
    if not everywhere and not self.full: value = self._masked(value, self.vector(n, value.dtype))
    self._v[n] = {value.dtype.kind: value}
    self._dirty_v.add(n)
    self._replace(n)

  def _find(self, n: int) -> None:
    """A vector register is read where it lies."""
    if n not in self.written: self.read.add(n)

  def _replace(self, n: int) -> None:
    """A vector register is written: all lanes, or with what it had in the others."""
    if n not in self.read: self.written.add(n)

  def settled(self, n: int, count: int) -> str:
    """Where some vector registers lie one after the other, with what they hold now."""
    for k in range(n, n + count): self._find(k)
    changed = self._dirty_v.intersection(range(n, n + count))
    self._store_vectors(changed)
    self._dirty_v -= changed
    return self._vector_place(n)

  def overwritten(self, n: int, count: int) -> str:
    """Where some vector registers lie, which the caller is about to write there: what was at hand of them is not."""
    for k in range(n, n + count):
      self._v.pop(k, None)
      self._replace(k)
    self._dirty_v.difference_update(range(n, n + count))
    return self._vector_place(n)

  def indexed(self, n: Value) -> Value:
    """The vector register whose number (below `vgprs`) is in a scalar, as u32."""
    self.any_read = True
    self.flush()
    text = self.e.op(f"load <{self.lanes} x i32>, ptr {self._vector_at(n)}, align 64")
    return Value(self.e, text, U32, True)

  def set_indexed(self, n: Value, value: Value) -> None:
    """Write a u32 under EXEC to the vector register whose number (below `vgprs`) is in a scalar."""
    value = self._masked(value, self.indexed(n))
    self.e.do(f"store {self.e.type(U32, True)} {value.in_lanes()}, ptr {self._vector_at(n)}, align 64")
    self._v.clear()
    self._pairs = {key: kept for key, kept in self._pairs.items() if key[0] != "v"}

  def _vector_at(self, n: Value) -> str:
    return self._pointer_to(convert(n, U64) * self.lanes + HEADER)

  def _pointer_to(self, dword: Value) -> str: return self.e.op(f"getelementptr i32, ptr %state, i64 {dword.text}")

  def scalar_indexed(self, n: Value) -> Value:
    """The SGPR whose number is in a scalar."""
    self.flush()
    return Value(self.e, self.e.op(f"load i32, ptr {self._pointer_to(convert(n, U64))}"), U32, False)

  def set_scalar_indexed(self, n: Value, value: Value) -> None:
    """Write the SGPR, which is not EXEC, whose number is in a scalar."""
    self.flush()
    self.e.do(f"store i32 {value.view(U32).text}, ptr {self._pointer_to(convert(n, U64))}")
    kept = {k: v for k, v in self._s.items() if k >= EXEC_LO}
    self._s.clear()
    self._s.update(kept)

  def vector64(self, n: int, dtype: Any) -> Value:
    low, high = self.vector(n, U32), self.vector(n + 1, U32)
    return self._joined("v", n, low, high).view(dtype)

  def _joined(self, which: str, n: int, low: Value, high: Value) -> Value:
    kept = self._pairs.get((which, n))
    if kept is not None and kept[0] is low and kept[1] is high: return kept[2]
    value = self.o.pack(low, high)
    self._pairs[which, n] = low, high, value
    return value

  def set_vector64(self, n: int, value: Value) -> None:
    value = value.view(U64)
    if n + 1 >= self.vgprs: raise Untranslatable("a register beyond the wave's allocation")
    if not self.full: value = self._masked(value, self.vector64(n, U64))
    low, high = convert(value, U32), convert(value >> 32, U32)
    self.set_vector(n, low, everywhere=True)
    self.set_vector(n + 1, high, everywhere=True)
    self._pairs["v", n] = low, high, value

  def vector16(self, n: int, half: int, dtype: Any) -> Value:
    x = self.vector(n, U32)
    return convert(x >> 16 if half else x, U16).view(dtype)

  def set_vector16(self, n: int, half: int, value: Value) -> None:
    """The other half of the register is kept."""
    old, bits = self.vector(n, U32), convert(value.view(U16), U32)
    self.set_vector(n, old & 0xFFFF | bits << 16 if half else old & 0xFFFF0000 | bits)

  # ---- scalars

  def scalar(self, code: int) -> Value:
    """An SGPR or special operand as u32."""
    if code == NULL: return self.e.const(U32, 0)
    if code >= SGPRS: return self._special(code)
    kept = self._s.get(code)
    if kept is None:
      kept = self._s[code] = Value(self.e, self.e.op(f"load i32, ptr {self._pointer(code)}"), U32, False)
    return kept

  def _special(self, code: int) -> Value:
    if code == SRC_SCC: return convert(self.scc(), U32)
    value = aperture(self.arch, code)
    if value is None: raise Untranslatable(f"the scalar operand {code}")
    return self.e.const(U32, value)

  def scalar64(self, code: int) -> Value:
    """An SGPR pair or a special operand as u64."""
    if code == NULL: return self.e.const(U64, 0)
    if code == SRC_SCC: return convert(self._special(code), U64)
    if code >= SGPRS: return convert(self._special(code), U64) << 32
    return self._joined("s", code, self.scalar(code), self.scalar(code + 1))

  def set_scalar(self, code: int, value: Value) -> None:
    if code == NULL: return
    if value.wide or code >= SGPRS: raise Untranslatable("a scalar from lanes")
    self._s[code] = value.view(U32)
    self._dirty_s.add(code)
    if code == EXEC_LO or code == EXEC_LO + 1 and self.lanes == 64: self.exec_changed()

  def set_scalar64(self, code: int, value: Value) -> None:
    if code == NULL: return
    value = value.view(U64)
    low, high = convert(value, U32), convert(value >> 32, U32)
    self.set_scalar(code, low)
    self.set_scalar(code + 1, high)
    self._pairs["s", code] = low, high, value

  def scc(self) -> Value:
    if self._scc is None:
      self._scc = Value(self.e, self.e.op(f"load i32, ptr {self._pointer(SCC)}"), U32, False) != 0
    return self._scc

  def set_scc(self, value: Value) -> None:
    if value.wide: raise Untranslatable("SCC from lanes")
    self._scc, self._dirty_scc = value, True

  # ---- lane masks

  def mask_bits(self, code: int) -> Value:
    """A lane mask as an integer of as many bits as there are lanes."""
    return self.scalar(code) if self.lanes == 32 else self.scalar64(code)

  def mask(self, code: int) -> Value:
    """The lane mask in an SGPR (pair) as bools."""
    if code == NULL: return Value(self.e, "zeroinitializer", BOOL, True)
    bits = self.mask_bits(code)
    kept = self._masks.get(code)
    if kept is not None and kept[0] is bits: return kept[1]
    lanes = self.to_lanes(bits)
    self._masks[code] = bits, lanes
    return lanes

  def to_lanes(self, bits: Value) -> Value:
    n = self.lanes
    return Value(self.e, self.e.op(f"bitcast i{n} {bits.text} to <{n} x i1>"), BOOL, True)

  def to_bits(self, lanes: Value) -> Value:
    n = self.lanes
    return Value(self.e, self.e.op(f"bitcast <{n} x i1> {lanes.in_lanes()} to i{n}"), DTYPES[f"u{n}"], False)

  def set_mask(self, code: int, lanes: Value) -> None:
    """Bools of the active lanes as bits; inactive lanes give 0."""
    if not self.full: lanes = lanes & self.active()
    if not lanes.wide: lanes = Value(self.e, lanes.in_lanes(), BOOL, True)
    if code == NULL: return
    bits = self.to_bits(lanes)
    if self.lanes == 32: self.set_scalar(code, bits)
    else: self.set_scalar64(code, bits)
    self._masks[code] = self.mask_bits(code), lanes

  def active(self) -> Value:
    """EXEC as bools."""
    if self.full: return Value(self.e, "splat (i1 true)", BOOL, True)
    bits = self.mask_bits(EXEC_LO)
    if self._active is None or self._active[0] is not bits: self._active = bits, self.mask(EXEC_LO)
    return self._active[1]

  def assume_exec(self, bits: Value) -> None:
    """Take EXEC from a value instead of the state."""
    parts = [bits] if self.lanes == 32 else [convert(bits, U32), convert(bits >> 32, U32)]
    self._s.update({EXEC_LO + k: part for k, part in enumerate(parts)})

  def exec_changed(self) -> None:
    """EXEC was written: from here on its lanes are not known."""
    self.exec_written = True
    self.full = False
    self._active = None

  def limit(self, lanes: Value) -> tuple[bool, tuple[Value, Value] | None]:
    """Make only some of the active lanes active until `restore` gets what this returns."""
    kept = self.full, self._active
    narrowed = lanes if self.full else lanes & self.active()
    self.full = False
    self._active = self.mask_bits(EXEC_LO), narrowed
    return kept

  def restore(self, kept: tuple[bool, tuple[Value, Value] | None]) -> None:
    self.full, self._active = kept
