"""Atomics as LLVM IR: one function an operation, with loops over the active lanes in their order, as the reference has.

Global memory is changed by the host's own atomics, because workgroups may run at the same time; a workgroup's LDS
belongs to one thread. What a cell becomes is the same function that the reference runs (`memory.atomics`).
Addresses, lanes and operands are in the context, where the reference finds them too when it has to help.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.core.memory import Access
from tinyhw.emulator.amdgcn.memory.vector import flat_atomic
from tinyhw.emulator.jit.amdgcn import context
from tinyhw.emulator.jit.amdgcn.state import LDS
from tinyhw.emulator.jit.values import BOOL, Emitter, LLVMOps, Value, convert, type_of
from tinyhw.emulator.memory import access
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import U32, U64, Array

# Operations that LLVM has by name; every other one is a loop of compare and exchange.
_NATIVE: Final = {"swap": "xchg", "add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "smin": "min",
                  "smax": "max", "umin": "umin", "umax": "umax", "inc": "uinc_wrap", "dec": "udec_wrap",
                  "csub": "usub_sat"}
_BOTH: Final = Access.READ | Access.WRITE


def function(e: Emitter, operation: str, width: int, lds: bool) -> str:
  """The name of the function `i32 (context, state, site, index, lanes as bits)`; it gives 1 where the access faults.

  The old values of the lanes that it serves replace their data; lanes whose LDS address is outside get 0.
  """
  name = f"atomic_{'lds' if lds else 'global'}_{operation}_{width}"
  if name not in e.declared:
    inner = Emitter(e.lanes)
    inner.declared = e.declared
    _Function(inner, operation, width, lds).emit()
    t = f"i{e.lanes}"
    lines = [*(f"  %{x} = {allocation}" for x, allocation in inner.stack.items()), *inner.lines]
    e.declared[name] = (f"define private i32 @{name}(ptr %context, ptr %state, ptr %site, i32 %index, {t} %lanes) "
                        f"noinline #0 {{\nentry:\n" + "\n".join(lines) + "\n}")
  return name


class _Function:
  """Emits the body: every lane is checked, then every lane is served."""

  def __init__(self, e: Emitter, operation: str, width: int, lds: bool) -> None:
    self.e, self.operation, self.width, self.lds = e, operation, width, lds
    self.raw = U32 if width == 4 else U64

  def emit(self) -> None:
    e = self.e
    e.label = "entry"
    e.do("br label %check")
    e.start("check")
    if not self.lds: e.do("%tried = phi i1 [ false, %entry ], [ true, %look ]")
    base, size = self._place()
    self._each(lambda lane: self._check(lane, base, size))
    host = base if self.lds else self._load64(self._site(16))
    self._each(lambda lane: self._serve(lane, size, host))
    e.do("ret i32 0")
    e.start("bad")
    if not self.lds:
      e.do("br i1 %tried, label %slow, label %look")
      e.start("look")
      first = e.call(f"i{e.lanes}", f"llvm.cttz.i{e.lanes}", (f"i{e.lanes}", "%lanes"), ("i1", "true"))
      lane = Value(e, first if e.lanes == 64 else e.op(f"zext i32 {first} to i64"), U64, False)
      e.op(f"call i1 @find(ptr %context, ptr %site, i64 {self._address(lane).text}, i64 {self.width}, i64 {_BOTH})")
      e.do("br label %check")
      e.start("slow")
    served = e.op(f"load ptr, ptr {self._context(context.CALLBACK)}")
    e.do(f"store i{e.lanes} %lanes, ptr {self._context(context.MASK)}")
    handle = self._load64(self._context(context.HANDLE))
    e.do(f"ret i32 {e.op(f'call i32 {served}(i64 {handle.text}, i32 %index)')}")

  # ---- small pieces

  def _context(self, at: int) -> str: return self.e.op(f"getelementptr i8, ptr %context, i64 {at}")
  def _site(self, at: int) -> str: return self.e.op(f"getelementptr i8, ptr %site, i64 {at}")
  def _load64(self, pointer: str) -> Value: return Value(self.e, self.e.op(f"load i64, ptr {pointer}"), U64, False)

  def _place(self) -> tuple[Value, Value]:
    """Start and size: of the workgroup's LDS at the host, or of the site's mapping in the GPU's address space."""
    if not self.lds: return self._load64(self._site(0)), self._load64(self._site(8))
    at = self.e.op(f"getelementptr i32, ptr %state, i64 {LDS}")
    return self._load64(at), self._load64(self._context(context.LDS_SIZE))

  def _element(self, row: int, lane: Value) -> str:
    """Where a lane's dword of a row of the data is."""
    return self.e.op(f"getelementptr i32, ptr {self._context(context.DATA + row * 4 * self.e.lanes)}, i64 {lane.text}")

  def _operand(self, number: int, lane: Value) -> Value:
    """The data (0), or what to compare with (1)."""
    e, count = self.e, self.width // 4
    words = [Value(e, e.op(f"load i32, ptr {self._element(number * count + k, lane)}"), U32, False)
             for k in range(count)]
    return words[0] if count == 1 else LLVMOps(e).pack(words[0], words[1])

  def _address(self, lane: Value) -> Value:
    e = self.e
    return self._load64(e.op(f"getelementptr i64, ptr {self._context(context.ADDRESSES)}, i64 {lane.text}"))

  def _each(self, body: Callable[[Value], None]) -> None:
    """A loop over the set lanes, the lowest first."""
    e, t = self.e, f"i{self.e.lanes}"
    before, head, inner, after = e.label, e.new_label("lanes"), e.new_label("lane"), e.new_label("done")
    left, latch = f"%{head}.left", e.new_label("latch")
    e.do(f"br label %{head}")
    e.start(head)
    e.do(f"{left} = phi {t} [ %lanes, %{before} ], [ {left}.next, %{latch} ]")
    e.do(f"br i1 {e.op(f'icmp eq {t} {left}, 0')}, label %{after}, label %{inner}")
    e.start(inner)
    number = e.call(t, f"llvm.cttz.{t}", (t, left), ("i1", "true"))
    body(Value(e, number if e.lanes == 64 else e.op(f"zext i32 {number} to i64"), U64, False))
    e.do(f"br label %{latch}")
    e.start(latch)
    e.do(f"{left}.less = sub {t} {left}, 1")
    e.do(f"{left}.next = and {t} {left}, {left}.less")
    e.do(f"br label %{head}")
    e.start(after)

  # ---- the lanes

  def _check(self, lane: Value, start: Value, size: Value) -> None:
    """Go on with the next lane, or to %bad. An address outside LDS is no fault, a misaligned one inside is."""
    e = self.e
    address = self._address(lane)
    aligned = address & self.width - 1 == 0
    good = (address + self.width > size) | aligned if self.lds else \
      (address - start <= size - self.width) & (size != 0) & aligned
    ok = e.new_label("ok")
    e.do(f"br i1 {good.text}, label %{ok}, label %bad")
    e.start(ok)

  def _serve(self, lane: Value, size: Value, host: Value) -> None:
    e = self.e
    address = self._address(lane)
    data, compare = self._operand(0, lane), None
    if ATOMICS[self.operation].compares: compare = self._operand(1, lane)
    inside, after = e.new_label("inside"), e.new_label("served")
    if self.lds:
      outside = e.new_label("outside")
      e.do(f"br i1 {(address + self.width <= size).text}, label %{inside}, label %{outside}")
      e.start(outside)
      self._remember(address)
      e.do(f"br label %{after}")
      e.start(inside)
    pointer = e.op(f"inttoptr i64 {(address + host).text} to ptr")
    old = self._modify(pointer, data, compare)
    if self.lds:
      by = e.label
      e.do(f"br label %{after}")
      e.start(after)
      t = type_of(self.raw)
      old = Value(e, e.op(f"phi {t} [ {old.text}, %{by} ], [ 0, %{outside} ]"), self.raw, False)
    words = [old] if self.width == 4 else [convert(old, U32), convert(old >> 32, U32)]
    for k, w in enumerate(words): e.do(f"store i32 {w.text}, ptr {self._element(k, lane)}")

  def _remember(self, address: Value) -> None:
    """Count a lane whose address is outside LDS in the site's row."""
    o: Any = LLVMOps(self.e)
    one = Value(self.e, "1", U64, False, 1)
    for place, value in ((context.OUTSIDE_START, ~address), (context.OUTSIDE_END, address + self.width),
                         (context.OUTSIDE_LANES, one)):
      pointer = self._site(place)
      old = self._load64(pointer)
      new = old + value if place == context.OUTSIDE_LANES else o.max(old, value)
      self.e.do(f"store i64 {new.text}, ptr {pointer}")

  def _modify(self, pointer: str, data: Value, compare: Value | None) -> Value:
    """Change one cell; its old value."""
    e, raw, width = self.e, self.raw, self.width
    t = type_of(raw)
    what = ATOMICS[self.operation]
    dtype = what.dtype(width)
    d, c = data.view(dtype), (data if compare is None else compare).view(dtype)

    def new(old: str) -> str:
      o: Any = LLVMOps(e)
      return str(what.function(o, Value(e, old, raw, False).view(dtype), d, c).view(raw).text)

    if self.lds:
      old = e.op(f"load {t}, ptr {pointer}, align {width}")
      e.do(f"store {t} {new(old)}, ptr {pointer}, align {width}")
    elif self.operation in _NATIVE:
      old = e.op(f"atomicrmw {_NATIVE[self.operation]} ptr {pointer}, {t} {data.text} seq_cst")
    elif self.operation == "cmpswap":
      assert compare is not None
      pair = e.op(f"cmpxchg ptr {pointer}, {t} {compare.text}, {t} {data.text} seq_cst seq_cst")
      old = e.op(f"extractvalue {{ {t}, i1 }} {pair}, 0")
    else:
      before, again, done = e.label, e.new_label("again"), e.new_label("changed")
      first = e.op(f"load {t}, ptr {pointer}, align {width}")
      e.do(f"br label %{again}")
      e.start(again)
      old = f"%{again}.old"
      e.do(f"{old} = phi {t} [ {first}, %{before} ], [ {old}.now, %{again} ]")
      pair = e.op(f"cmpxchg ptr {pointer}, {t} {old}, {t} {new(old)} seq_cst seq_cst")
      e.do(f"{old}.now = extractvalue {{ {t}, i1 }} {pair}, 0")
      e.do(f"br i1 {e.op(f'extractvalue {{ {t}, i1 }} {pair}, 1')}, label %{done}, label %{again}")
      e.start(done)
    return Value(e, old, raw, False)


def call(e: Emitter, operation: str, lds: bool, site: str, index: Any, addresses: Value, lanes: Value,
         words: Sequence[Value], width: int) -> tuple[str, list[Value]]:
  """Leave the operands in the context and call the function: (i1 that says whether it faulted, old dwords)."""
  n = e.lanes
  def row(k: int) -> str: return e.op(f"getelementptr i8, ptr %context, i64 {context.DATA + k * 4 * n}")
  at = e.op(f"getelementptr i8, ptr %context, i64 {context.ADDRESSES}")
  e.do(f"store {e.type(U64, True)} {addresses.in_lanes()}, ptr {at}, align 8")
  for k, w in enumerate(words): e.do(f"store <{n} x i32> {w.view(U32).in_lanes()}, ptr {row(k)}, align 4")
  bits = e.op(f"bitcast {e.type(BOOL, True)} {lanes.in_lanes()} to i{n}")
  bad = e.op(f"call i32 @{function(e, operation, width, lds)}(ptr %context, ptr %state, ptr {site}, i32 {index}, "
             f"i{n} {bits})")
  old = [Value(e, e.op(f"load <{n} x i32>, ptr {row(k)}, align 4"), U32, True) for k in range(width // 4)]
  return e.op(f"icmp ne i32 {bad}, 0"), old


def serve(group: Group, segment: str, operation: str, width: int, addresses: Array, words: Sequence[Array]) -> Array:
  """What compiled code could not do itself, by the reference: old values as dwords [width / 4, lanes]."""
  raw = U32 if width == 4 else U64
  values = np.ascontiguousarray(np.stack(words, axis=-1)).view(raw)
  data, compare = values[None, :, 0], values[None, :, 1] if ATOMICS[operation].compares else None
  at = addresses[None, :]
  if segment == "lds": old = access.lds_atomic(group, at.astype(U32), width, operation, data, compare, True)
  elif segment == "flat": old = flat_atomic(group, at, width, operation, data, compare, True)
  else: old = access.atomic(group, at, width, operation, data, compare, True)
  assert old is not None
  lanes = group.cohort.lanes
  return np.ascontiguousarray(np.broadcast_to(old, (1, lanes))).view(U32).reshape(lanes, width // 4).T
