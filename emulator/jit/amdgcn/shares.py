"""Instructions of a workgroup's LDS, and those that only go by its way from lane to lane, as LLVM IR."""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.emulator.amdgcn.memory.lds import swizzled
from tinyhw.emulator.amdgcn.memory.tables import DS_ATOMICS, DS_EXCHANGE_PAIRS, DS_LOADS, DS_PAIRS, DS_STORES
from tinyhw.emulator.jit.amdgcn.alu import lane_numbers, permuted
from tinyhw.emulator.jit.amdgcn.site import Site
from tinyhw.emulator.jit.amdgcn.state import Registers
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.jit.vectors import scatter
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0

if TYPE_CHECKING:
  from tinyhw.emulator.jit.amdgcn.access import Accesses


def translate(a: Accesses, r: Registers, i: Instruction, offset: int) -> None:
  if i.get("gds"): raise Untranslatable(i.mnemonic)
  name = i.mnemonic
  if name == "ds_bpermute_b32": return _bpermute(a, r, i)
  if name == "ds_permute_b32": return _permute(a, r, i)
  if name in DS_ATOMICS or name in DS_EXCHANGE_PAIRS: return _atomic(a, r, i, offset)
  if name in {"ds_append", "ds_consume"}: return _count(a, r, i, offset)
  if name in {"ds_load_addtid_b32", "ds_store_addtid_b32"}: return _by_lane(a, r, i, offset)
  if name == "ds_swizzle_b32": return _swizzle(a, r, i)
  if name in DS_PAIRS:
    width, unit, stores = DS_PAIRS[name]
    at = r.vector(i.operands["addr"].value, U32)
    places = [at + r.number(i, n, U32) * unit for n in ("offset0", "offset1")]
    if stores:
      data = [a.data(r, i.operands[n].value, width, 0) for n in ("data0", "data1")]
      for place, words in zip(places, data): a.lds(r, place, Site(offset, "store", "lds", width, i), words)
      return
    n = i.operands["vdst"].value
    if n + width // 2 > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
    loaded = [a.lds(r, place, Site(offset, "load", "lds", width, i), None) for place in places]
    return a.loaded(r, n, loaded[0] + loaded[1], 0, None)
  if name not in DS_LOADS and name not in DS_STORES: raise Untranslatable(name)
  at = r.vector(i.operands["addr"].value, U32) + r.number(i, "offset", U32)
  if name in DS_STORES:
    width, shift = DS_STORES[name]
    a.lds(r, at, Site(offset, "store", "lds", width, i), a.data(r, i.operands["data0"].value, width, shift))
    return
  width, sign_bits, half = DS_LOADS[name]
  n = i.operands["vdst"].value
  if n + max(1, width // 4) > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
  a.loaded(r, n, a.lds(r, at, Site(offset, "load", "lds", width, i), None), sign_bits, half)


def _atomic(a: Accesses, r: Registers, i: Instruction, offset: int) -> None:
  at = r.vector(i.operands["addr"].value, U32)
  if i.mnemonic in DS_EXCHANGE_PAIRS:
    width, unit = DS_EXCHANGE_PAIRS[i.mnemonic]
    places = [at + r.number(i, f"offset{k}", U32) * unit for k in (0, 1)]
    parts = [("swap", place, a.data(r, i.operands[f"data{k}"].value, width, 0))
             for k, place in enumerate(places)]
    want = True
  else:
    operation, width, want = DS_ATOMICS[i.mnemonic]
    words = a.data(r, i.operands["data0"].value, width, 0)
    if ATOMICS[operation].compares: words += a.data(r, i.operands["data1"].value, width, 0)
    parts = [(operation, at + r.number(i, "offset", U32), words)]
  n = i.operands["vdst"].value if want else 0
  if want and n + len(parts) * width // 4 > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
  old: list[Value] = []
  for operation, address, words in parts:
    site = Site(offset, "atomic", "lds", width, i, operation=operation)
    old += a.atomic_at(convert(address, U64), r.active(), site, words)
  if want: a.loaded(r, n, old, 0, None)


def _count(a: Accesses, r: Registers, i: Instruction, offset: int) -> None:
  """ds_append and ds_consume: the first active lane adds or subtracts the number of active lanes at M0 + offset."""
  e = a.e
  bits = r.to_bits(r.active())
  count = r.o.popcount(bits)
  data = count if i.mnemonic == "ds_append" else -count
  at = convert(r.scalar(M0) + r.number(i, "offset", U32), U64)
  site = Site(offset, "atomic", "lds", 4, i, operation="add")
  old = a.atomic_at(at, r.to_lanes(bits & -bits), site, [data])[0]
  first = r.o.min(r.o.trailing_zeros(bits), e.lanes - 1)
  one = Value(e, e.op(f"extractelement {old.type} {old.text}, i32 {first.text}"), U32, False)
  r.set_vector(i.operands["vdst"].value, one)


def _by_lane(a: Accesses, r: Registers, i: Instruction, offset: int) -> None:
  """Dword `lane` at M0 + offset."""
  at = (r.scalar(M0) & 0xFFFF) + r.number(i, "offset", U32) + lane_numbers(r) * 4
  if i.mnemonic == "ds_load_addtid_b32":
    loaded = a.lds(r, at, Site(offset, "load", "lds", 4, i), None)
    return a.loaded(r, i.operands["vdst"].value, loaded, 0, None)
  a.lds(r, at, Site(offset, "store", "lds", 4, i), a.data(r, i.operands["data0"].value, 4, 0))


def _permute(a: Accesses, r: Registers, i: Instruction) -> None:
  """Lanes push values by address, the highest wins; who gets none has 0."""
  e, n = a.e, r.lanes
  at, x = r.vector(i.operands["addr"].value, U32), r.vector(i.operands["data0"].value, U32)
  index = at + r.number(i, "offset", U32) >> 2 & n - 1
  e.do(f"store <{n} x i32> zeroinitializer, ptr %lanes, align 64")
  pointers = e.op(f"getelementptr i32, ptr %lanes, <{n} x i32> {index.in_lanes()}")
  scatter(e, "i32", n, x.in_lanes(), pointers, r.active().in_lanes())
  r.set_vector(i.operands["vdst"].value, Value(e, e.op(f"load <{n} x i32>, ptr %lanes, align 64"), U32, True))


def _bpermute(a: Accesses, r: Registers, i: Instruction) -> None:
  """Lanes pull values by address; inactive lanes give 0."""
  at, x = r.vector(i.operands["addr"].value, U32), r.vector(i.operands["data0"].value, U32)
  index = at + r.number(i, "offset", U32) >> 2 & r.lanes - 1
  if not r.full: x = r.o.where(r.active(), x, r.e.const(U32, 0))
  r.set_vector(i.operands["vdst"].value, permuted(r, x, index))


def _swizzle(a: Accesses, r: Registers, i: Instruction) -> None:
  """ds_swizzle_b32."""
  index = swizzled(i.fields["offset"], r.lanes)
  x = r.vector(i.operands["addr"].value, U32)
  if not r.full: x = r.o.where(r.active(), x, r.e.const(U32, 0))
  r.set_vector(i.operands["vdst"].value, permuted(r, x, r.e.vector(U32, index)))
