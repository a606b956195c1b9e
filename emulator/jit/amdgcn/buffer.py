"""Buffer instructions as LLVM IR: plain loads, stores and atomics through linear buffers, with their range checks.

What the resource says at run time to be otherwise (a swizzle, the thread's number in the index, dwords of one lane of
which only some are in range) goes to the reference.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw.emulator.amdgcn.memory.resource import field, has, part
from tinyhw.emulator.amdgcn.memory.tables import LOADS, STORES, VECTOR_ATOMICS
from tinyhw.emulator.amdgcn.memory.vector import returns
from tinyhw.emulator.jit.amdgcn import lds_loads
from tinyhw.emulator.jit.amdgcn.alu import read
from tinyhw.emulator.jit.amdgcn.state import Registers
from tinyhw.emulator.jit.values import BOOL, Untranslatable, Value, convert
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.isa.amdgcn import Instruction

if TYPE_CHECKING:
  from tinyhw.emulator.jit.amdgcn.access import Accesses


def translate(a: Accesses, r: Registers, i: Instruction, offset: int) -> None:
  """Emit a buffer instruction. Raises Untranslatable for typed ones."""
  name = i.mnemonic
  if (kind := lds_loads.buffer_kind(i)) is not None:
    at, check = _addresses(r, i)
    ok = check(kind[0])
    kept = r.limit(ok)
    word = a.far(r, at, offset, i, kind[0], None)[0]
    r.restore(kept)
    return lds_loads.put(a, r, i, offset, r.o.where(ok, word, 0), kind[1])
  known = name in LOADS or name in STORES or name in VECTOR_ATOMICS
  if not known or "vdata" not in i.operands: raise Untranslatable(name)
  n = i.operands["vdata"].value
  if name in VECTOR_ATOMICS: return _atomic(a, r, i, offset, n)
  width, sign_bits, half = LOADS.get(name) or (STORES[name][0], 0, None)
  if n + max(1, width // 4) > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
  words = None if name in LOADS else a.data(r, n, width, STORES[name][1])
  at, check = _addresses(r, i)
  ok = check(width)
  if width > 4: r.unless(_differ(ok, check(4)))
  kept = r.limit(ok)
  loaded = a.far(r, at, offset, i, width, words)
  r.restore(kept)
  if words is None: a.loaded(r, n, [r.o.where(ok, w, 0) for w in loaded], sign_bits, half)


def _differ(x: Value, y: Value) -> Value: return (x | y) & ~(x & y)


def _atomic(a: Accesses, r: Registers, i: Instruction, offset: int, n: int) -> None:
  operation, width = VECTOR_ATOMICS[i.mnemonic]
  if n + width // 4 > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
  words = a.data(r, n, width * (1 + ATOMICS[operation].compares), 0)
  at, check = _addresses(r, i)
  lanes = check(width) & r.active()
  old = a.atomic(at, lanes, offset, i, operation, width, words)
  if returns(i): a.loaded(r, n, [r.o.where(lanes, w, 0) for w in old], 0, None)


def _addresses(r: Registers, i: Instruction) -> tuple[Value, Callable[[int], Value]]:
  """(u64 addresses, a function that says of a width which lanes are in range with it), both for each lane."""
  e, o = r.e, r.o
  first = i.operands["srsrc"].value
  dwords = [r.scalar(first + k) for k in range(4)]

  def value(name: str) -> Value:
    found: Value = part(i.isa, name).of(dwords)
    return found
  r.unless((value("swizzle_enable") != 0) | (value("add_tid_enable") != 0))
  base = o.pack(dwords[0], dwords[1] & field(i.isa, "base_address").limit >> 32)
  records, stride = convert(dwords[part(i.isa, "num_records").dword], U64), convert(value("stride"), U64)
  if has(i.isa, "stride_scale"):
    scale = value("stride_scale")
    stride = stride << o.where(scale == 3, e.const(U64, 5), o.where(scale == 0, e.const(U64, 0),
                                                                    convert(scale + 1, U64)))
  n = i.operands["vaddr"].value if "vaddr" in i.operands else 0
  idxen, offen = i.variant in {"idxen", "bothen"}, i.variant in {"offen", "bothen"}
  index: Value = convert(r.vector(n, U32), U64) if idxen else e.const(U64, 0)
  within: Value = r.number(i, "offset", U64)
  if offen: within = convert(r.vector(n + (i.variant == "bothen"), U32), U64) + within
  extra = convert(read(r, i.operands["soffset"], "u32"), U64)
  at = index * stride + within if idxen else within
  select = value("oob_select") if has(i.isa, "oob_select") else None

  def check(width: int) -> Value:
    """Which lanes are in range, by the generation's rules (see `memory.buffer`)."""
    inside = index < records
    if select is None:
      linear = within + width <= records
      ok = o.where(stride != 0, inside, linear) if idxen else linear
    else:
      structured = inside & (within + width <= o.max(stride, 1))
      ok = o.where(select == 0, structured, o.where(select == 1, inside, o.where(
        select == 2, records != 0, at + extra + width <= records)))
    return Value(e, ok.in_lanes(), BOOL, True)
  return Value(e, (at + extra + base).in_lanes(), U64, True), check
