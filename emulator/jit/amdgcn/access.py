"""Memory instructions as LLVM IR: translated accesses with an inline check, LDS, scratch and scalar loads.

Each memory instruction is a *site* with a cached mapping: start and size in the GPU's address space, and the distance
to the host's address. A lane outside it takes the slow path: the mapping table is searched, and what that cannot
serve (a page fault, a missing permission, an access across mappings, another segment) goes to the reference, which
raises the exact fault. No address is used before it was checked.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tinyhw.core.memory import Access
from tinyhw.emulator.amdgcn.memory.resource import field, part
from tinyhw.emulator.amdgcn.memory.scalar import violates
from tinyhw.emulator.amdgcn.memory.tables import (
  LOADS,
  NO_EFFECT,
  SCALAR_LOADS,
  SCALAR_SMALL,
  STORES,
  VECTOR_ATOMICS,
)
from tinyhw.emulator.amdgcn.memory.vector import returns
from tinyhw.emulator.jit.amdgcn import atomics, buffer, lds_loads, shares
from tinyhw.emulator.jit.amdgcn.alu import lane_numbers
from tinyhw.emulator.jit.amdgcn.context import (
  ADDRESSES,
  CALLBACK,
  DATA,
  HANDLE,
  LDS_SIZE,
  MASK,
  OUTSIDE_END,
  OUTSIDE_LANES,
  OUTSIDE_START,
  ROW,
  SCRATCH_SIZE,
  SITES,
)
from tinyhw.emulator.jit.amdgcn.moves import EVERY, LINE, Moves, fetch
from tinyhw.emulator.jit.amdgcn.site import Site
from tinyhw.emulator.jit.amdgcn.state import LDS, SCRATCH, Registers
from tinyhw.emulator.jit.values import BOOL, Emitter, LLVMOps, Untranslatable, Value, convert
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.values.ops import I32, I64, U32, U64
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import NULL

READ, WRITE = Access.READ, Access.WRITE


class Accesses(Moves):
  """Translates the memory instructions of one program; `sites` collects what their slow paths need."""

  def __init__(self, e: Emitter, fault: str) -> None:
    self.e, self.fault = e, fault
    self.sites: list[Site] = []
    self.ahead = False
    self.halves = False  # whether the upper lanes of loads often have the addresses of the lower ones

  # ---- small pieces of IR

  def _context(self, at: int) -> str: return self.e.op(f"getelementptr i8, ptr %context, i64 {at}")
  def _load64(self, pointer: str) -> Value: return Value(self.e, self.e.op(f"load i64, ptr {pointer}"), U64, False)

  def _site(self, site: Site) -> tuple[str, str]:
    index = self._number(site)
    rows = self.e.op(f"load ptr, ptr {self._context(SITES)}, !invariant.load !0")
    return index, self.e.op(f"getelementptr [{ROW} x i8], ptr {rows}, i32 {index}")

  def _number(self, site: Site) -> str:
    self.sites.append(site)
    return str(len(self.sites) - 1)

  def _row(self, site: str) -> tuple[Value, Value]:
    return self._load64(site), self._load64(self.e.op(f"getelementptr i8, ptr {site}, i64 8"))

  def _distance(self, site: str) -> Value:
    return self._load64(self.e.op(f"getelementptr i8, ptr {site}, i64 16"))

  def _find(self, site: str, address: Value, extent: Value, access: int) -> Value:
    text = self.e.op(f"call i1 @find(ptr %context, ptr {site}, i64 {address.text}, i64 {extent.text}, i64 {access})")
    return Value(self.e, text, BOOL, False)

  def _branch(self, condition: Value, yes: str, no: str) -> None:
    self.e.do(f"br i1 {condition.text}, label %{yes}, label %{no}, !prof !1")

  def _largest(self, offsets: Value) -> Value:
    """The largest u32 of the lanes, as u64."""
    e = self.e
    if not offsets.wide: return convert(offsets, U64)
    text = e.call("i32", f"llvm.vector.reduce.umax.v{e.lanes}i32", (offsets.type, offsets.text))
    return convert(Value(e, text, U32, False), U64)

  def _every(self, lanes: Value) -> Value:
    text = self.e.op(f"bitcast {lanes.type} {lanes.text} to i{self.e.lanes}")
    return Value(self.e, self.e.op(f"icmp eq i{self.e.lanes} {text}, -1"), BOOL, False)

  def _mask_text(self, r: Registers, mask: Value | None = None) -> str:
    return (r.active() if mask is None else mask).in_lanes()

  # ---- loads and stores of lanes

  def _served(self, r: Registers, base: str, offsets: Value, width: int, stride: int,
              words: Sequence[Value] | None, after: str) -> list[tuple[str, list[Value]]]:
    """The checked access itself: one block of memory where the lanes are in order, else lane by lane.

    Ends in a branch to `after`; returns the LLVM blocks that it comes from with what they loaded.
    """
    e = self.e
    out: list[tuple[str, list[Value]]] = []
    if r.full and stride == 4 and width != 12:
      block, scattered = e.new_label("block"), e.new_label("scattered")
      first, in_order = self._in_order(offsets, width)
      e.do(f"br i1 {in_order.text}, label %{block}, label %{scattered}")
      e.start(block)
      pointer = self._at(base, first.type, first.text)
      if words is None:
        self._ahead(pointer, width * e.lanes)
        out.append((block, self._load_block(pointer, width)))
      else:
        self._store_block(pointer, words, width)
        out.append((block, []))
      e.do(f"br label %{after}")
      e.start(scattered)
    if self.halves and r.full and words is None: out += self._twice(base, offsets, width, stride, after)
    mask = EVERY if r.full else self._mask_text(r)
    if words is None: loaded = self._gather(base, offsets, width, stride, mask)
    else:
      self._scatter(base, offsets, words, width, stride, mask)
      loaded = []
    out.append((e.label, loaded))
    e.do(f"br label %{after}")
    return out

  def _twice(self, base: str, offsets: Value, width: int, stride: int, after: str) -> list[tuple[str, list[Value]]]:
    """What is loaded where the upper half of the lanes has the addresses of the lower half; begins the LLVM block of
    all other cases."""
    e, n, t = self.e, self.e.lanes // 2, offsets.type
    low, high = (e.op(f"shufflevector {t} {offsets.text}, {t} poison, <{n} x i32> {_order(range(at, at + n))}")
                 for at in (0, n))
    both, block, scattered, apart = (e.new_label(x) for x in ("both", "block", "scattered", "apart"))
    out: list[tuple[str, list[Value]]] = []

    def done(words: list[Value]) -> None:
      wide = f"<{n} x i32>"
      texts = [e.op(f"shufflevector {wide} {w.text}, {wide} poison, <{2 * n} x i32> {_order([*range(n)] * 2)}")
               for w in words]
      out.append((e.label, [Value(e, x, U32, True) for x in texts]))
      e.do(f"br label %{after}")

    with e.narrowed(n):
      half = Value(e, low, offsets.dtype, True)
      e.do(f"br i1 {self._every(half == half.like(high)).text}, label %{both}, label %{apart}")
      e.start(both)
      if stride == 4 and width != 12:
        first, in_order = self._in_order(half, width)
        e.do(f"br i1 {in_order.text}, label %{block}, label %{scattered}")
        e.start(block)
        pointer = self._at(base, first.type, first.text)
        self._ahead(pointer, width * n)
        done(self._load_block(pointer, width))
        e.start(scattered)
      done(self._gather(base, half, width, stride, EVERY))
    e.start(apart)
    return out

  def _ahead(self, pointer: str, size: int) -> None:
    """Have the processor fetch what comes as far behind this place as the place is behind the site's last one. It does
    so by itself where the steps of a loop are small; those of a matrix go from row to row, from page to page."""
    if not self.ahead: return
    e = self.e
    last = f"%last{len(self.sites)}"
    e.stack[last[1:]] = "alloca i64, align 8"
    now, before = e.op(f"ptrtoint ptr {pointer} to i64"), e.op(f"load i64, ptr {last}")
    e.do(f"store i64 {now}, ptr {last}")
    step = e.op(f"sub i64 {now}, {e.op(f'freeze i64 {before}')}")
    for at in range(0, size, LINE):
      fetch(e, e.op(f"getelementptr i8, ptr {e.op(f'getelementptr i8, ptr {pointer}, i64 {at}')}, i64 {step}"))

  def _in_order(self, offsets: Value, width: int) -> tuple[Value, Value]:
    """The first lane's offset, and whether those of the others follow it."""
    e = self.e
    zero = "i32 0" if offsets.dtype.itemsize == 4 else "i64 0"
    first = Value(e, e.op(f"extractelement {offsets.type} {offsets.text}, {zero}"), offsets.dtype, False)
    return first, self._every(offsets == first + e.vector(offsets.dtype, [k * width for k in range(e.lanes)]))

  def _slow(self, index: str, addresses: Value, r: Registers, words: Sequence[Value] | None, count: int,
            after: str) -> tuple[str, list[Value]]:
    """Hand the access to the reference; go to the fault exit when it raised."""
    self._hand_over(addresses, r.active(), words or ())
    self._callback(index, after if words is not None else None)
    return ("", []) if words is not None else self._handed_back(count, after)

  def _hand_over(self, addresses: Value, lanes: Value, words: Sequence[Value]) -> None:
    """Addresses, active lanes and dwords for the reference."""
    e, n = self.e, self.e.lanes
    e.do(f"store {e.type(U64, True)} {addresses.in_lanes()}, ptr {self._context(ADDRESSES)}, align 8")
    bits = e.op(f"bitcast <{n} x i1> {lanes.in_lanes()} to i{n}")
    e.do(f"store i{n} {bits}, ptr {self._context(MASK)}, align 8")
    for k, w in enumerate(words):
      e.do(f"store <{n} x i32> {w.view(U32).in_lanes()}, ptr {self._context(DATA + k * 4 * n)}, align 4")

  def _handed_back(self, count: int, after: str) -> tuple[str, list[Value]]:
    """The dwords that the reference left, and the LLVM block that goes on to `after` with them."""
    e, n = self.e, self.e.lanes
    loaded = [Value(e, e.op(f"load <{n} x i32>, ptr {self._context(DATA + k * 4 * n)}, align 4"), U32, True)
              for k in range(count)]
    label = e.label
    e.do(f"br label %{after}")
    return label, loaded

  def _callback(self, index: str, after: str | None) -> None:
    e = self.e
    function = e.op(f"load ptr, ptr {self._context(CALLBACK)}")
    handle = self._load64(self._context(HANDLE))
    bad = e.op(f"call i32 {function}(i64 {handle.text}, i32 {index})")
    wrong = e.op(f"icmp ne i32 {bad}, 0")
    ok = after or e.new_label("served")
    e.do(f"br i1 {wrong}, label %{self.fault}, label %{ok}")
    if after is None: e.start(ok)

  def _merged(self, parts: Sequence[tuple[str, list[Value]]], count: int) -> list[Value]:
    e = self.e
    out = []
    for k in range(count):
      t = e.type(U32, True)
      sources = ", ".join(f"[ {values[k].in_lanes()}, %{label} ]" for label, values in parts)
      out.append(Value(e, e.op(f"phi {t} {sources}"), U32, True))
    return out

  def _near(self, r: Registers, base: Value, offsets: Value, site: Site, words: Sequence[Value] | None,
            stride: int = 4, ok: Value | None = None, told: Value | None = None) -> list[Value]:
    """An access at a 64-bit base of the wave with a u32 offset in each lane; `told` is what the slow path gets."""
    e = self.e
    offsets = Value(e, offsets.in_lanes(), U32, True)
    count = max(1, site.width // 4)
    used = offsets if r.full else r.o.where(r.active(), offsets, e.const(U32, 0))
    extent = self._largest(used) + ((count - 1) * stride + min(site.width, 4))
    index, row = self._site(site)
    start, size = self._row(row)
    relative = base - start
    inside = (relative <= size) & (relative + extent <= size) & (extent < 1 << 31)
    if ok is not None: inside = inside & ok
    fast, miss, slow, after = (e.new_label(x) for x in ("fast", "miss", "slow", "after"))
    before, e.side = e.side, True
    self._branch(inside, fast, miss)
    e.start(miss)
    found = self._find(row, base, extent, READ if words is None else WRITE)
    found = found & (extent < 1 << 31)
    if ok is not None: found = found & ok
    self._branch(found, fast, slow)
    e.start(slow)
    parts = [self._slow(index, base + convert(offsets, U64) if told is None else told, r, words, count, after)]
    e.start(fast)
    host = e.op(f"inttoptr i64 {(base + self._distance(row)).text} to ptr")
    parts += self._served(r, host, used.view(I32), site.width, stride, words, after)
    e.start(after)
    e.side = before
    return self._merged(parts, count) if words is None else []

  def _far(self, r: Registers, addresses: Value, site: Site, words: Sequence[Value] | None) -> list[Value]:
    """An access at a 64-bit address in each lane."""
    e = self.e
    addresses = Value(e, addresses.in_lanes(), U64, True)
    count = max(1, site.width // 4)
    width = Value(e, str(site.width), U64, False, site.width)
    index, row = self._site(site)
    fast, miss, slow, after = (e.new_label(x) for x in ("fast", "miss", "slow", "after"))

    def inside() -> Value:
      start, size = self._row(row)
      relative = addresses - start
      good = (relative <= size - width) & (size != 0)
      if not r.full: good = good | ~r.active()
      return self._every(good)

    good = inside()
    before, e.side = e.side, True
    self._branch(good, fast, miss)
    e.start(miss)
    self._find(row, self._leader(r, addresses), width, READ if words is None else WRITE)
    self._branch(inside(), fast, slow)
    e.start(slow)
    parts = [self._slow(index, addresses, r, words, count, after)]
    e.start(fast)
    pointers = addresses + self._distance(row)
    parts += self._served(r, "", pointers, site.width, 4, words, after)
    e.start(after)
    e.side = before
    return self._merged(parts, count) if words is None else []

  # ---- flat: the upper half of an address says whether it is in LDS, in scratch or global

  def _anywhere(self, r: Registers, addresses: Value, site: Site, words: Sequence[Value] | None) -> list[Value]:
    """An access at flat addresses. Lanes that all reach LDS, or all scratch, do so here; mixed ones the slow way."""
    count = 0 if words is not None else max(1, site.width // 4)
    low = convert(addresses, U32)
    return self._by_aperture(r, addresses, {
      r.arch.shared_aperture: lambda: self.lds(r, low, replace(site, segment="lds"), words),
      r.arch.private_aperture: lambda: self._scratch_at(r, low, replace(site, segment="scratch"), words)},
      lambda: self._far(r, addresses, site, words), count)

  def _by_aperture(self, r: Registers, addresses: Value, ways: Mapping[int, Callable[[], list[Value]]],
                   other: Callable[[], list[Value]], count: int) -> list[Value]:
    """What the way gives whose aperture all active lanes point into, or the other one."""
    e, after = self.e, self.e.new_label("there")
    addresses = Value(e, addresses.in_lanes(), U64, True)
    before, active = e.side, r.active()
    high = convert(addresses >> 32, U32)
    e.side = True
    merged: list[tuple[str, list[Value]]] = []
    for aperture, one in ways.items():
      here, elsewhere = e.new_label("here"), e.new_label("elsewhere")
      lanes = high == aperture >> 32
      every = self._every(lanes if r.full else lanes | ~active)
      e.do(f"br i1 {every.text}, label %{here}, label %{elsewhere}")
      e.start(here)
      found = one()
      merged.append((e.label, found))
      e.do(f"br label %{after}")
      e.start(elsewhere)
    found = other()
    merged.append((e.label, found))
    e.do(f"br label %{after}")
    e.start(after)
    e.side = before
    return self._merged(merged, count)

  # ---- atomics

  def atomic_at(self, addresses: Value, lanes: Value, site: Site, words: Sequence[Value]) -> list[Value]:
    """An atomic of some lanes; `words` has the data, then what to compare with. Old dwords of those lanes."""
    e = self.e
    index, row = self._site(site)
    bad, old = atomics.call(e, site.operation, site.segment == "lds", row, index, addresses, lanes, words, site.width)
    after = e.new_label("after")
    e.do(f"br i1 {bad}, label %{self.fault}, label %{after}")
    e.start(after)
    return old

  def _leader(self, r: Registers, addresses: Value) -> Value:
    """The address of the lowest active lane."""
    e = self.e
    first: Value = e.const(U32, 0)
    if not r.full: first = r.o.min(r.o.trailing_zeros(r.to_bits(r.active())), e.const(U32, e.lanes - 1))
    return Value(e, e.op(f"extractelement {addresses.type} {addresses.text}, i32 {first.text}"), U64, False)

  def _vector_atomic(self, r: Registers, i: Instruction, site: Site, addresses: Value) -> None:
    """An atomic of a vector memory family: its operands and its result."""
    count = site.width // 4 * (1 + ATOMICS[site.operation].compares)
    n = i.operands["vdata"].value
    destination = i.operands["vdst"].value if "vdst" in i.operands else n
    if returns(i) and destination + site.width // 4 > r.vgprs: raise Untranslatable("a register beyond")
    words, lanes = self.data(r, n, 4 * count, 0), r.active()
    if site.segment == "flat":
      low = convert(convert(addresses, U32), U64)
      old = self._by_aperture(r, addresses, {
        r.arch.shared_aperture: lambda: self.atomic_at(low, lanes, replace(site, segment="lds"), words)},
        lambda: self.atomic_at(addresses, lanes, site, words), site.width // 4)
    else: old = self.atomic_at(addresses, lanes, site, words)
    if returns(i): self.loaded(r, destination, old, 0, None)

  # ---- what buffer instructions are made of

  def far(self, r: Registers, addresses: Value, offset: int, i: Instruction, width: int,
          words: Sequence[Value] | None) -> list[Value]:
    """A load (`words` None) or store of the active lanes at 64-bit addresses."""
    return self._far(r, addresses, Site(offset, "load" if words is None else "store", "global", width, i), words)

  def atomic(self, addresses: Value, lanes: Value, offset: int, i: Instruction, operation: str, width: int,
             words: Sequence[Value]) -> list[Value]:
    """An atomic of some lanes on global memory; their old dwords."""
    return self.atomic_at(addresses, lanes, Site(offset, "atomic", "global", width, i, operation=operation), words)

  def to_lds(self, r: Registers, at: Value, offset: int, i: Instruction, word: Value) -> None:
    """Store a dword of each active lane to LDS."""
    self.lds(r, at, Site(offset, "store", "lds", 4, i), [word])

  # ---- instructions

  def translate(self, r: Registers, i: Instruction, offset: int) -> None:
    """Emit a memory instruction at a byte offset from the entry. Raises Untranslatable for what has no form here."""
    if i.mnemonic in NO_EFFECT: return
    if i.family == "SMEM": self._smem(r, i, offset)
    elif i.family == "DS": shares.translate(self, r, i, offset)
    elif i.family == "FLAT": self._flat(r, i, offset)
    elif i.family == "MUBUF": buffer.translate(self, r, i, offset)
    else: raise Untranslatable(i.mnemonic)

  def _flat(self, r: Registers, i: Instruction, offset: int) -> None:
    segment = i.mnemonic.split("_")[0]
    if i.mnemonic in VECTOR_ATOMICS and segment != "scratch":
      operation, width = VECTOR_ATOMICS[i.mnemonic]
      site = Site(offset, "atomic", segment, width, i, operation=operation)
      return self._vector_atomic(r, i, site, self._flat_address(r, i, segment))
    if (kind := lds_loads.flat_kind(i)) is not None:
      word = self._reach(r, i, Site(offset, "load", segment, kind[0], i), None)[0]
      return lds_loads.put(self, r, i, offset, word, kind[1])
    if i.mnemonic in LOADS: width, sign_bits, half = LOADS[i.mnemonic]
    elif i.mnemonic in STORES: width, shift = STORES[i.mnemonic]
    else: raise Untranslatable(i.mnemonic)
    words: list[Value] | None = None
    if i.mnemonic in STORES: words = self.data(r, i.operands["vdata"].value, width, shift)
    elif i.operands["vdst"].value + max(1, width // 4) > r.vgprs: raise Untranslatable("a register beyond")
    loaded = self._reach(r, i, Site(offset, "load" if words is None else "store", segment, width, i), words)
    if words is None: self.loaded(r, i.operands["vdst"].value, loaded, sign_bits, half)

  def _reach(self, r: Registers, i: Instruction, site: Site, words: list[Value] | None) -> list[Value]:
    """A load (`words` None) or store of a global_, flat_ or scratch_ instruction; the dwords that it loads."""
    if site.segment == "scratch": return self._scratch(r, i, site, words)
    if site.segment == "flat": return self._anywhere(r, self._flat_address(r, i, "flat"), site, words)
    if "saddr" not in i.operands: return self._far(r, self._flat_address(r, i, "global"), site, words)
    base = r.scalar64(i.operands["saddr"].value) + r.number(i, "signed offset", U64)
    return self._near(r, base, r.vector(i.operands["vaddr"].value, U32), site, words)

  def _flat_address(self, r: Registers, i: Instruction, segment: str) -> Value:
    """The 64-bit address in each lane of a flat_ or global_ instruction."""
    n = i.operands["vaddr"].value
    if segment == "flat": return r.vector64(n, U64) + r.number(i, "flat offset", U64)
    fixed = r.number(i, "signed offset", U64)
    if "saddr" not in i.operands: return r.vector64(n, U64) + fixed
    return convert(r.vector(n, U32), U64) + (r.scalar64(i.operands["saddr"].value) + fixed)

  def _scratch(self, r: Registers, i: Instruction, site: Site, words: list[Value] | None) -> list[Value]:
    """Each lane's dword k lies at base + k * 4 * lanes + lane * 4."""
    o: Value = r.number(i, "signed offset", U32)
    if "saddr" in i.operands: o = r.scalar(i.operands["saddr"].value) + o
    if "vaddr" in i.operands: o = r.vector(i.operands["vaddr"].value, U32) + o
    return self._scratch_at(r, o, site, words)

  def _scratch_at(self, r: Registers, o: Value, site: Site, words: Sequence[Value] | None) -> list[Value]:
    e, n = self.e, self.e.lanes
    o = Value(e, o.in_lanes(), U32, True)
    used = o if r.full else r.o.where(r.active(), o, e.const(U32, 0))
    size = self._load64(self._context(SCRATCH_SIZE))
    base = self._load64(e.op(f"getelementptr i32, ptr %state, i64 {SCRATCH}"))
    step = min(site.width, 4)
    aligned = self._every((used & step - 1) == 0)
    inside = aligned & (self._largest(used) + site.width <= size)
    at = (o >> 2) * (4 * n) + lane_numbers(r) * 4 + (o & 3)
    return self._near(r, base, at, site, words, 4 * n, inside, convert(o, U64))

  def data(self, r: Registers, n: int, width: int, shift: int) -> list[Value]:
    """The dwords of data in registers."""
    if shift: return [r.vector(n, U32) >> shift]
    return [r.vector(n + k, U32) for k in range(max(1, width // 4))]

  def loaded(self, r: Registers, n: int, words: Sequence[Value], sign_bits: int, half: int | None) -> None:
    """Loaded dwords to registers: small ones sign-extended, or into one half."""
    words = list(words)
    if sign_bits: words = [(words[0].view(I32) << 32 - sign_bits >> 32 - sign_bits).view(U32)]
    if half is not None:
      old, word = r.vector(n, U32) if half < 2 else self.e.const(U32, 0), words[0] & 0xFFFF
      words = [old & 0xFFFF | word << 16 if half & 1 else old & 0xFFFF0000 | word]
    if n + len(words) > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
    for k, w in enumerate(words): r.set_vector(n + k, w)

  def _smem(self, r: Registers, i: Instruction, offset: int) -> None:
    e = self.e
    small = SCALAR_SMALL.get(i.mnemonic)
    if small is None and i.mnemonic not in SCALAR_LOADS or violates(i): raise Untranslatable(i.mnemonic)
    width = 4 * SCALAR_LOADS[i.mnemonic] if small is None else small[0]
    align = min(width, 4)
    keep = e.const(U64, (1 << 64) - align)
    sbase, buffer = i.operands["sbase"].value, i.mnemonic.startswith("s_buffer")
    base = r.scalar64(sbase)
    if buffer:
      at, records = part(i.isa, "stride"), part(i.isa, "num_records")
      stride = convert(at.field.of(r.scalar(sbase + at.dword)), I64)
      size = convert(r.scalar(sbase + records.dword), I64) * r.o.where(stride == 0, e.const(I64, 1), stride)
      base = base & field(i.isa, "base_address").mask
    forward = r.number(i, "signed offset", U64) & keep
    if "soffset" in i.operands: forward = forward + (convert(r.scalar(i.operands["soffset"].value), U64) & keep)
    address = (base & keep) + forward
    left = size - forward.view(I64) if buffer else e.const(I64, width)
    index, row = self._site(Site(offset, "scalar", "", width, i))
    start, mapped = self._row(row)
    relative = address - start
    inside = (relative <= mapped) & (relative + width <= mapped)
    fast, miss, slow, after = (e.new_label(x) for x in ("fast", "miss", "slow", "after"))
    self._branch(inside, fast, miss)
    e.start(miss)
    self._branch(self._find(row, address, e.const(U64, width), READ), fast, slow)
    e.start(slow)
    e.do(f"store i64 {address.text}, ptr {self._context(ADDRESSES)}, align 8")
    e.do(f"store i64 {left.text}, ptr {self._context(ADDRESSES + 8)}, align 8")
    self._callback(index, None)
    t = f"<{width // 4} x i32>" if small is None else f"i{8 * width}"
    by_callback = e.op(f"load {t}, ptr {self._context(DATA)}, align {align}")
    by_slow = e.label
    e.do(f"br label %{after}")
    e.start(fast)
    host = e.op(f"inttoptr i64 {(address + self._distance(row)).text} to ptr")
    direct = e.op(f"load {t}, ptr {host}, align {align}")
    e.do(f"br label %{after}")
    e.start(after)
    loaded = e.op(f"phi {t} [ {by_callback}, %{by_slow} ], [ {direct}, %{fast} ]")
    first = i.operands["sdst"].value
    if first == NULL: return
    if small is None:
      words = [Value(e, e.op(f"extractelement {t} {loaded}, i64 {k}"), U32, False) for k in range(width // 4)]
    else: words = [Value(e, e.op(f"{'sext' if small[1] else 'zext'} {t} {loaded} to i32"), U32, False)]
    if buffer: words = [r.o.where(left >= 4 * k + align, w, 0) for k, w in enumerate(words)]
    for k, w in enumerate(words): r.set_scalar(first + k, w)

  # ---- LDS

  def lds(self, r: Registers, at: Value, site: Site, words: Sequence[Value] | None) -> list[Value]:
    """Reads past the workgroup's LDS give 0, writes past it are dropped; the site's row remembers them."""
    e, width = self.e, site.width
    at = Value(e, at.in_lanes(), U32, True)
    base = e.op(f"load ptr, ptr {e.op(f'getelementptr i32, ptr %state, i64 {LDS}')}")
    size = self._load64(self._context(LDS_SIZE))
    used = at if r.full else r.o.where(r.active(), at, e.const(U32, 0))
    inside = self._largest(used) + width <= size
    fast, partly, after = (e.new_label(x) for x in ("fast", "partly", "after"))
    before, e.side = e.side, True
    self._branch(inside, fast, partly)
    e.start(partly)
    lanes = (convert(at, U64) + width <= size) & r.active()
    self._outside(at, r.active() & ~lanes, site)
    safe = r.o.where(lanes, at, e.const(U32, 0)).view(I32)
    parts: list[tuple[str, list[Value]]] = []
    if words is None: parts.append((e.label, self._gather(base, safe, width, 4, lanes.text)))
    else: self._scatter(base, safe, words, width, 4, lanes.text)
    e.do(f"br label %{after}")
    e.start(fast)
    parts += self._served(r, base, used.view(I32), width, 4, words, after)
    e.start(after)
    e.side = before
    return self._merged(parts, max(1, width // 4)) if words is None else []

  def _outside(self, at: Value, lanes: Value, site: Site) -> None:
    """Let the site remember some lanes' addresses, which the workgroup's LDS does not have."""
    e, n = self.e, self.e.lanes
    if "outside" not in e.declared: e.declared["outside"] = _outside(e)
    bits = e.op(f"bitcast {e.type(BOOL, True)} {lanes.in_lanes()} to i{n}")
    row = self._site(site)[1]
    e.do(f"call void @outside(ptr {row}, <{n} x i32> {at.in_lanes()}, i{n} {bits}, i64 {site.width})")

def _order(lanes: Iterable[int]) -> str: return "<" + ", ".join(f"i32 {k}" for k in lanes) + ">"


def _outside(e: Emitter) -> str:
  """The function that remembers addresses outside LDS in a site's row. Out of line: it is rarely called, if ever."""
  n, inner = e.lanes, Emitter(e.lanes)
  inner.declared, o = e.declared, LLVMOps(inner)
  at = Value(inner, "%at", U32, True)
  mask = Value(inner, inner.op(f"bitcast i{n} %lanes to {inner.type(BOOL, True)}"), BOOL, True)

  def extreme(name: str, other: int) -> Value:
    lanes = o.where(mask, at, inner.const(U32, other))
    text = inner.call("i32", f"llvm.vector.reduce.{name}.v{n}i32", (lanes.type, lanes.text))
    return convert(Value(inner, text, U32, False), U64)
  bits = inner.call(f"i{n}", f"llvm.ctpop.i{n}", (f"i{n}", "%lanes"))
  count = Value(inner, bits if n == 64 else inner.op(f"zext i32 {bits} to i64"), U64, False)
  end = extreme("umax", 0) + Value(inner, "%width", U64, False)
  for place, value in ((OUTSIDE_START, ~extreme("umin", 0xFFFFFFFF)), (OUTSIDE_END, end), (OUTSIDE_LANES, count)):
    pointer = inner.op(f"getelementptr i8, ptr %site, i64 {place}")
    old = Value(inner, inner.op(f"load i64, ptr {pointer}"), U64, False)
    new = old + value if place == OUTSIDE_LANES else o.max(old, value)
    inner.do(f"store i64 {new.text}, ptr {pointer}")
  lines = [*(f"  %{x} = {allocation}" for x, allocation in inner.stack.items()), *inner.lines]
  return (f"define private void @outside(ptr %site, <{n} x i32> %at, i{n} %lanes, i64 %width) noinline #0 {{\nentry:\n"
          + "\n".join(lines) + "\n  ret void\n}")
