"""Which registers may hold what nobody has written, in watched code: a bit for each lane of each half of a register.

A bit is set wherever the checks (`check.amdgcn.undefined`) have an undefined bit in that half, and may be set
elsewhere: so code that never comes upon a set bit where it matters has no such finding. Masks are scalars of the host,
so that they cost little beside the vectors that they stand for. What scalar registers hold is followed bit by bit, in
the lanes of vector registers too that they are kept in.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tinyhw.emulator.amdgcn.bind import source_names
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.check.amdgcn.effects import SCC, SGPR0, VGPRS, Effects, dwords, effects
from tinyhw.emulator.check.amdgcn.spread import spread
from tinyhw.emulator.jit.amdgcn.context import KNOWN_OUT, SHADOWS_IN, SHADOWS_OUT
from tinyhw.emulator.jit.amdgcn.state import HEADER, Registers
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value
from tinyhw.emulator.values.ops import U32
from tinyhw.isa.amdgcn import Instruction, Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO, NULL, VCC_HI, VCC_LO

Bits = str | None  # an LLVM value, None for zero: defined
Half = tuple[int, int]  # (vector register, 0 or 1)
_PARTS: Final = (65535, -65536)  # of a register, as its halves
_ADDRESSES: Final = frozenset({"vaddr", "saddr", "sbase", "srsrc", "rsrc", "soffset", "addr"})
_STORED: Final = ("vdata", "data0", "data1", "sdata")
_LANES: Final = re.compile(r"ds_(b?permute|swizzle)")
_S_LOGIC: Final = re.compile(r"s_(mov|not|and|or|xor|nand|nor|xnor|andn2|orn2|and_not1|or_not1)_b(32|64)$")
_SAVEEXEC: Final = re.compile(r"(?a)s_\w+_(saveexec|wrexec)_b(32|64)$")


EXACT: Final = 160  # behind the masks of vector registers come scalar ones and SCC, then exact shadows


def words(vgprs: int, lanes: int) -> int:
  """Dwords of a wave's shadows behind its registers: 2 of 64 bits a vector register, one a scalar one, SCC; and for
  vector registers that scalar ones are kept in a dword a lane."""
  return 4 * vgprs + EXACT + vgprs * lanes


class Shadows:
  """The shadows of the wave whose block is being translated; `fault` is where a block goes that comes upon one."""

  def __init__(self, e: Emitter, r: Registers, fault: str) -> None:
    self.e, self.r, self.fault, self.lanes = e, r, fault, e.lanes
    self.t = f"i{e.lanes}"
    self._effects: dict[Instruction, Effects] = {}
    self.exact: set[int] = set()  # vector registers whose lanes are shadowed bit by bit: scalar ones are kept there
    self.begin()

  def begin(self) -> None:
    """A new block: all is in memory."""
    self._halves: dict[Half, Bits] = {}
    self._scalars: dict[int, Bits] = {}
    self._vectors: dict[int, str] = {}  # the exact shadow of a vector register
    self._dirty_vectors: set[int] = set()
    self._dirty: set[Half] = set()
    self._dirty_scalars: set[int] = set()
    self._bad: list[str] = []
    self._loads: list[list[Bits]] = []
    self._bits = False
    self.stored: dict[int, int] = {}

  # ---- values of LLVM

  def op(self, text: str) -> str: return self.e.op(text)

  def _or(self, *parts: Bits, t: str = "") -> Bits:
    out: Bits = None
    for p in parts:
      if p is None or p == out: continue
      out = p if out is None else self.op(f"or {t or self.t} {out}, {p}")
    return out

  def _and(self, a: Bits, b: str, t: str = "") -> Bits:
    return None if a is None else self.op(f"and {t or self.t} {a}, {b}")

  def _not(self, a: str, t: str = "") -> str: return self.op(f"xor {t or self.t} {a}, -1")

  def exec(self) -> str | None:
    """The active lanes; None for all."""
    return None if self.r.full else self.r.mask_bits(EXEC_LO).text

  def _active(self, bits: Bits) -> Bits:
    active = self.exec()
    return bits if active is None else self._and(bits, active)

  def _any(self, bits: Bits, t: str = "") -> Bits:
    """All ones of a mask where any bit is set."""
    if bits is None: return None
    return self.op(f"sext i1 {self.op(f'icmp ne {t or self.t} {bits}, 0')} to {self.t}")

  # ---- what is known of registers

  def _pointer(self, dword: int) -> str:
    return self.op(f"getelementptr i32, ptr %state, i64 {HEADER + self.r.vgprs * self.lanes + dword}")

  def half(self, n: int, k: int) -> Bits:
    if n >= self.r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
    if n in self.exact and (n, k) not in self._halves:
      v = f"<{self.lanes} x i32>"
      some = self.op(f"and {v} {self.vector(n)}, splat (i32 {_PARTS[k]})")
      lanes = self.op(f"icmp ne {v} {some}, zeroinitializer")
      self._halves[n, k] = self.op(f"bitcast <{self.lanes} x i1> {lanes} to {self.t}")
    if (n, k) not in self._halves:
      self._halves[n, k] = self.op(f"load {self.t}, ptr {self._pointer(4 * n + 2 * k)}, align 8")
    return self._halves[n, k]

  def vector(self, n: int) -> str:
    """The undefined bits of each lane of a register that is shadowed so."""
    if n not in self._vectors:
      self._vectors[n] = self.op(f"load <{self.lanes} x i32>, ptr {self._exact_at(n)}, align 4")
    return self._vectors[n]

  def _exact_at(self, n: int) -> str: return self._pointer(4 * self.r.vgprs + EXACT + n * self.lanes)

  def put_vector(self, n: int, bits: str) -> None:
    self._vectors[n] = bits
    self._dirty_vectors.add(n)
    for k in (0, 1): self._halves.pop((n, k), None)

  def _widened(self, n: int, k: int, bits: Bits, active: str | None) -> None:
    """A half of a register that is shadowed bit by bit."""
    v = f"<{self.lanes} x i32>"
    part = _PARTS[k]
    new = "zeroinitializer"
    if bits is not None:
      lanes = self.op(f"bitcast {self.t} {bits} to <{self.lanes} x i1>")
      new = self.op(f"select <{self.lanes} x i1> {lanes}, {v} splat (i32 {part}), {v} zeroinitializer")
    old = self.vector(n)
    merged = self.op(f"or {v} {self.op(f'and {v} {old}, splat (i32 {~part})')}, {new}")
    if active is not None:
      lanes = self.op(f"bitcast {self.t} {active} to <{self.lanes} x i1>")
      merged = self.op(f"select <{self.lanes} x i1> {lanes}, {v} {merged}, {v} {old}")
    self.put_vector(n, merged)

  def put_half(self, n: int, k: int, bits: Bits, everywhere: bool = False) -> None:
    """What the active lanes, or all, have from now on."""
    if n >= self.r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
    active = None if everywhere else self.exec()
    if n in self.exact: return self._widened(n, k, bits, active)
    if active is not None:
      old = self.half(n, k)
      bits = self._or(self._and(old, self._not(active)) if old is not None else None, self._and(bits, active))
    self._halves[n, k] = bits
    self._dirty.add((n, k))

  def scalar(self, code: int) -> Bits:
    """The undefined bits of an SGPR, i32."""
    if code == NULL or code > EXEC_LO + 1 and code != SCC - SGPR0 or code in {EXEC_LO, EXEC_LO + 1}: return None
    if code not in self._scalars:
      self._scalars[code] = self.op(f"load i32, ptr {self._pointer(4 * self.r.vgprs + code)}, align 4")
    return self._scalars[code]

  def put_scalar(self, code: int, bits: Bits) -> None:
    if code == NULL: return
    if code in {EXEC_LO, EXEC_LO + 1}: return self.decides(bits, "i32")
    self._scalars[code] = bits
    self._dirty_scalars.add(code)

  def mask(self, code: int) -> Bits:
    """The undefined bits of a lane mask in SGPRs."""
    if self.lanes == 32: return self.scalar(code)
    low, high = self.scalar(code), self.scalar(code + 1)
    if low is None and high is None: return None
    wide = [None if x is None else self.op(f"zext i32 {x} to i64") for x in (low, high)]
    return self._or(wide[0], None if wide[1] is None else self.op(f"shl i64 {wide[1]}, 32"))

  def put_mask(self, code: int, bits: Bits) -> None:
    if self.lanes == 32 or bits is None:
      for k in range(self.lanes // 32): self.put_scalar(code + k, bits)
      return
    self.put_scalar(code, self.op(f"trunc i64 {bits} to i32"))
    self.put_scalar(code + 1, self.op(f"trunc i64 {self.op(f'lshr i64 {bits}, 32')} to i32"))

  def decides(self, bits: Bits, t: str = "") -> None:
    """Undefined bits decide something."""
    if bits is not None: self._bad.append(self.op(f"icmp ne {t or self.t} {bits}, 0"))

  def settle(self) -> None:
    """Leave for the reference where undefined bits have decided something."""
    if not self._bad: return
    bad = self._or(*self._bad, t="i1")
    self._bad = []
    on = self.e.new_label("defined")
    self.e.do(f"br i1 {bad}, label %{self.fault}, label %{on}, !prof !2")
    self.e.start(on)

  def flush(self) -> None:
    """Write back what changed."""
    self.settle()
    for n, k in sorted(self._dirty):
      self.e.do(f"store {self.t} {self._halves[n, k] or 0}, ptr {self._pointer(4 * n + 2 * k)}, align 8")
    for code in sorted(self._dirty_scalars):
      self.e.do(f"store i32 {self._scalars[code] or 0}, ptr {self._pointer(4 * self.r.vgprs + code)}, align 4")
    for n in sorted(self._dirty_vectors):
      self.e.do(f"store <{self.lanes} x i32> {self._vectors[n]}, ptr {self._exact_at(n)}, align 4")
    self._dirty, self._dirty_scalars, self._dirty_vectors = set(), set(), set()

  # ---- instructions

  def before(self, i: Instruction) -> None:
    """Note what an instruction makes of undefined bits, before it runs. Raises Untranslatable for what moves the
    numbers of registers."""
    if re.match(r"[sv]_movrel|v_swaprel|s_alloc_vgpr", i.mnemonic): raise Untranslatable(i.mnemonic)
    does = self._effects.get(i)
    if does is None: does = self._effects[i] = effects(i, self.lanes)
    self._loads, self._bits = [], False
    self.stored = {}
    if does.kind and not _LANES.match(i.mnemonic): self._memory(i, does)
    elif i.family == "SOPP" or i.mnemonic in {"s_setpc_b64", "s_swappc_b64"}:
      if not i.mnemonic.startswith("s_wait"):
        for r in does.reads:
          if r >= SGPR0: self.decides(self.scalar(r - SGPR0), "i32")
      for r in does.writes: self._defined(r)
    elif " :: " in i.mnemonic: self._dual(i, does)
    else: self._alu(i, does)
    self.settle()

  def _defined(self, r: int) -> None:
    if r >= SGPR0: return self.put_scalar(r - SGPR0, None)
    for k in (0, 1): self.put_half(r, k, None)

  # ---- memory

  def _memory(self, i: Instruction, does: Effects) -> None:
    for name, o in i.operands.items():
      if o.role == "d" or not (name in _ADDRESSES or name.startswith("vaddr")): continue
      for r in dwords(o, self.lanes): self._decided(r)
    if "addtid" in i.mnemonic or i.mnemonic in {"ds_append", "ds_consume"}: self.decides(self.scalar(124), "i32")
    if does.kind == "smem":
      for r in does.writes: self._defined(r)

  def _decided(self, r: int) -> None:
    if r >= SGPR0: return self.decides(self.scalar(r - SGPR0), "i32")
    for k in (0, 1): self.decides(self._active(self.half(r, k)))

  def data(self, i: Instruction, number: int, count: int, shift: int) -> list[tuple[Bits, Bits]]:
    """The shadows of the dwords that the instruction's store number `number` takes."""
    names = [n for n in _STORED if n in i.operands]
    n = i.operands[names[min(number, len(names) - 1)]].value
    if shift: return [(self.half(n, 1), None)]
    return [(self.half(n + k, 0), self.half(n + k, 1)) for k in range(count)]

  def is_defined(self, i: Instruction, number: int, count: int, width: int, shift: int) -> None:
    """What the instruction stores decides something."""
    for low, high in self.data(i, number, count, shift):
      self.decides(self._active(low))
      if width >= 4: self.decides(self._active(high))
    self.settle()

  def give(self, i: Instruction, number: int, count: int, shift: int) -> None:
    """Leave the shadows of what is stored in the context."""
    for k, pair in enumerate(self.data(i, number, count, shift)):
      for h, bits in enumerate(pair):
        at = self.op(f"getelementptr i8, ptr %context, i64 {SHADOWS_IN + 16 * k + 8 * h}")
        self.e.do(f"store {self.t} {bits or 0}, ptr {at}, align 8")

  def bits(self, i: Instruction, count: int) -> list[Value]:
    """The bits that were written of the dwords that a store takes, where some register is shadowed so; else none."""
    n = i.operands["vdata"].value
    if self.exact.isdisjoint(range(n, n + count)): return []
    out, v = [], f"<{self.lanes} x i32>"
    for k in range(n, n + count):
      if k not in self.exact: text = self._from_halves(k)
      else: text = self.vector(k)
      out.append(Value(self.e, self.op(f"xor {v} {text}, splat (i32 -1)"), U32, True))
    return out

  def _from_halves(self, n: int) -> str:
    v, out = f"<{self.lanes} x i32>", "zeroinitializer"
    for k, part in enumerate(_PARTS):
      bits = self.half(n, k)
      if bits is None: continue
      lanes = self.op(f"bitcast {self.t} {bits} to <{self.lanes} x i1>")
      mine = self.op(f"select <{self.lanes} x i1> {lanes}, {v} splat (i32 {part}), {v} zeroinitializer")
      out = self.op(f"or {v} {out}, {mine}")
    return out

  def take(self, count: int, exact: bool = False) -> None:
    """Take the shadows of what was loaded from the context; with `exact` they are there bit by bit as well."""
    self._bits = exact
    for k in range(count):
      pair: list[Bits] = []
      for h in (0, 1):
        at = self.op(f"getelementptr i8, ptr %context, i64 {SHADOWS_OUT + 16 * k + 8 * h}")
        pair.append(self.op(f"load {self.t}, ptr {at}, align 8"))
      self._loads.append(pair)

  def after(self, i: Instruction, lanes: str | None) -> None:
    """The instruction has run with `lanes` active: what a load has given. Its results are defined where it took none.
    """
    does = self._effects[i]
    if not does.kind or _LANES.match(i.mnemonic) or does.kind == "smem": return
    taken = self._loads
    targets = [r for r in does.writes if r < VGPRS]
    v, small = f"<{self.lanes} x i32>", re.search(r"_(i|u|s)(8|16)|_[us]?(byte|short)", i.mnemonic)
    d16 = "d16" in i.mnemonic or "u16_d16" in i.mnemonic
    for at, r in enumerate(targets):
      low, high = taken[at] if at < len(taken) else (None, None)
      if d16:
        if "_hi" in i.mnemonic: self._under(lanes, r, 1, low)
        else: self._under(lanes, r, 0, low)
        continue
      if r in self.exact and self._bits and taken and not small:
        at_ = self.op(f"getelementptr i8, ptr %context, i64 {KNOWN_OUT + at * 4 * self.lanes}")
        new = self.op(f"xor {v} {self.op(f'load {v}, ptr {at_}, align 4')}, splat (i32 -1)")
        if lanes is not None:
          mask = self.op(f"bitcast {self.t} {lanes} to <{self.lanes} x i1>")
          new = self.op(f"select <{self.lanes} x i1> {mask}, {v} {new}, {v} {self.vector(r)}")
        self.put_vector(r, new)
        continue
      if small: high = low
      self._under(lanes, r, 0, low)
      self._under(lanes, r, 1, high)
    for r in does.writes:
      if r >= VGPRS: self._defined(r)

  def _under(self, active: str | None, n: int, k: int, bits: Bits) -> None:
    if n in self.exact: return self._widened(n, k, bits, active)
    if active is not None:
      old = self.half(n, k)
      bits = self._or(self._and(old, self._not(active)), self._and(bits, active))
    self._halves[n, k] = bits
    self._dirty.add((n, k))

  # ---- arithmetic

  def _halves_of(self, i: Instruction, o: Operand) -> list[Bits]:
    """Of a vector or scalar operand: low and high half of each dword, as masks of lanes."""
    out: list[Bits] = []
    for r in dwords(o, self.lanes):
      if r < VGPRS:
        pair = [self.half(r, 0), self.half(r, 1)]
        if o.half is not None: pair = [pair[o.half], None]
        elif o.type in {"f16", "b16", "i16", "u16"} and not i.mnemonic.startswith(("v_pk", "v_dot", "v_fma_mix")):
          pair[1] = None
      else:
        bits = self.scalar(r - SGPR0)
        pair = [None, None] if bits is None else [
          self._any(self.op(f"and i32 {bits}, 65535"), "i32"), self._any(self.op(f"lshr i32 {bits}, 16"), "i32")]
      out += pair
    return out

  def _whole(self, i: Instruction, does: Effects) -> Bits:
    """Where some bit that the instruction reads is undefined."""
    parts: list[Bits] = []
    seen: set[int] = set()
    for o in i.operands.values():
      if o.role == "d": continue
      registers = dwords(o, self.lanes)
      seen.update(registers)
      if o.kind == "s" and not o.dwords: parts.append(self.mask(o.value))
      else: parts += self._halves_of(i, o)
    vector = i.family.startswith("V") or i.family == "DS"
    for r in does.reads:
      if r in seen or r in does.tied and r < VGPRS and self._halved(i): continue
      if r < VGPRS: parts += [self.half(r, 0), self.half(r, 1)]
      elif vector and r - SGPR0 in {VCC_LO, VCC_HI}:
        if r - SGPR0 == VCC_LO: parts.append(self.mask(VCC_LO))
      else: parts.append(self._any(self.scalar(r - SGPR0), "i32"))
    for r in does.tied:
      if r < VGPRS and self._halved(i): parts.append(self.half(r, i.operands["vdst"].half or 0))
    bad = self._or(*parts)
    if does.cross_lane: bad = self._any(bad)
    if "dpp" in i.variant and not (i.get("bound_ctrl") and i.get("row_mask", 15) == i.get("bank_mask", 15) == 15):
      bad = self._or(bad, *(self.half(r, k) for r in does.writes if r < VGPRS for k in (0, 1)))  # what lanes keep
    return bad

  def _halved(self, i: Instruction) -> bool:
    d = i.operands.get("vdst")
    return d is not None and d.half is not None

  def _alu(self, i: Instruction, does: Effects) -> None:
    name = i.mnemonic
    plain = "dpp" not in i.variant and "sdwa" not in i.variant and not i.get("clamp")
    if plain and i.family.startswith("V"):
      for pattern, rule in _RULES:
        if pattern.match(name) and rule(self, i): return
    if name.startswith("s_"):
      if _S_LOGIC.match(name) and self._s_logic(i, does): return
      if _SAVEEXEC.match(name) and self._saveexec(i): return
      if name.startswith("s_cselect"): return self._s_select(i)
      bad = self._or(*(self.scalar(r - SGPR0) for r in does.reads if r >= SGPR0), t="i32")
      every = None if bad is None else self.op(f"sext i1 {self.op(f'icmp ne i32 {bad}, 0')} to i32")
      for r in does.writes: self.put_scalar(r - SGPR0, every)
      return
    self._write(i, does, self._whole(i, does))

  def _write(self, i: Instruction, does: Effects, bad: Bits) -> None:
    """Everything that the instruction writes is undefined where `bad`."""
    d = i.operands.get("vdst")
    for r in does.writes:
      if r < VGPRS:
        kept = {1 - d.half} if d is not None and d.half is not None and d.value == r else set()
        if "mixlo" in i.mnemonic: kept = {1}
        if "mixhi" in i.mnemonic: kept = {0}
        if i.variant == "sdwa": kept, bad = set(), self._or(bad, self.half(r, 0), self.half(r, 1))
        for k in {0, 1} - kept: self.put_half(r, k, bad)
      elif r == SCC: self.put_scalar(SCC - SGPR0, self._scc(bad))
    self._masked(does, bad)

  def _masked(self, does: Effects, bad: Bits) -> None:
    """A mask that the instruction writes is undefined where `bad`, and what else it writes of scalar registers."""
    masks = [r for r in does.writes if SGPR0 <= r < SCC]
    if masks: self.put_mask(masks[0] - SGPR0, self._active(bad))
    for r in masks[self.lanes // 32:]: self.put_scalar(r - SGPR0, self._scc(bad))

  def _scc(self, bad: Bits) -> Bits:
    return None if bad is None else self.op(f"sext i1 {self.op(f'icmp ne {self.t} {bad}, 0')} to i32")

  def _move(self, i: Instruction) -> bool:
    """A move or an exchange: halves as they are."""
    if "swap" not in i.mnemonic: return self._placed(i, self._halves_of(i, i.operands["src0"]))
    a, b = i.operands["vdst"], i.operands["src0"]
    if a.half is not None: return False
    x, y = self._halves_of(i, a), self._halves_of(i, b)
    for o, halves in ((a, y), (b, x)):
      for k in (0, 1): self.put_half(o.value, k, halves[k])
    return True

  def _placed(self, i: Instruction, halves: list[Bits]) -> bool:
    d = i.operands["vdst"]
    if d.half is not None:
      self.put_half(d.value, d.half, halves[0] if halves else None)
      return True
    for at, r in enumerate(dwords(d, self.lanes)):
      for k in (0, 1): self.put_half(r, k, halves[2 * at + k] if 2 * at + k < len(halves) else None)
    return True

  def _sources(self, i: Instruction) -> list[Operand]: return [i.operands[n] for n in ("src0", "src1", "src2", "vsrc1")
                                                               if n in i.operands]

  def _constant(self, o: Operand) -> int | None:
    """The bits of a constant that is an integer as the instruction has it."""
    if o.kind == "lit": return o.value & 0xFFFFFFFF
    if o.kind == "const" and 128 <= o.value <= 192: return o.value - 128
    if o.kind == "const" and 193 <= o.value <= 208: return (192 - o.value) & 0xFFFFFFFF
    return None

  def _spread(self, i: Instruction) -> bool:
    """Halves of the results by what they depend on (`check.amdgcn.spread`)."""
    meaning = MEANINGS.get(i.mnemonic, i.table)
    if meaning is None: return False
    sources = [i.operands[name] for name in source_names(i)[:len(meaning.sources)]]
    if len(sources) != len(meaning.sources): return False
    known = tuple(self._constant(o) if t in {"u32", "i32"} else None for o, t in zip(sources, meaning.sources))
    depends = spread(meaning, known)
    if depends is None: return False
    halves = [self._halves_of(i, o) for o in sources]
    for t, parts in zip(meaning.results, depends):
      bits = [self._or(*(halves[s][k] for s, k in sorted(part) if k < len(halves[s]))) for part in parts]
      if t == "mask": self._masked(self._effects[i], bits[0])
      else: self._placed(i, bits)
    return True

  def _select(self, i: Instruction) -> bool:
    sources = self._sources(i)
    mask = i.operands.get("src2")
    code = VCC_LO if mask is None or mask.kind != "s" else mask.value
    if code == NULL or code > EXEC_LO + 1: return False
    no, yes = sources[0], sources[1]
    return self._placed(i, self._chosen(code, self._halves_of(i, no), self._halves_of(i, yes)))

  def _chosen(self, code: int, no: list[Bits], yes: list[Bits]) -> list[Bits]:
    unsure = self.mask(code)
    bits: str | None = None
    out: list[Bits] = []
    for k in (0, 1):
      a, b = no[k] if no else None, yes[k] if yes else None
      if a is not None or b is not None:
        if bits is None: bits = self.r.mask_bits(code).text
        b = self._and(b, bits)
        a = None if a is None else self._and(a, self._not(bits))
      out.append(self._or(a, b, unsure))
    return out

  def _one_lane(self, i: Instruction) -> bool:
    """v_readlane, v_readfirstlane: the bits of one lane."""
    source = i.operands["src0"]
    if source.kind != "v": raise Untranslatable(i.mnemonic)
    if i.mnemonic.startswith("v_readfirst"):
      active = self.exec()
      if active is None: lane: str = "0"
      else:
        first = self.e.call(self.t, f"llvm.cttz.{self.t}", (self.t, active), ("i1", "false"))
        lane = self.op(f"and {self.t} {first}, {self.lanes - 1}")
    else:
      lane = self._lane(i.operands["src1"])
    target = i.operands["sdst" if "sdst" in i.operands else "vdst"].value
    if source.value in self.exact:
      number = self.op(f"zext i32 {lane} to i64") if lane[0] == "%" and self.lanes == 32 else lane
      bits = self.op(f"extractelement <{self.lanes} x i32> {self.vector(source.value)}, i64 {number}")
      self.put_scalar(target, bits)
      return True
    halves = [None if h is None else self.op(f"trunc {self.t} {self.op(f'lshr {self.t} {h}, {lane}')} to i1")
              for h in self._halves_of(i, source)]
    parts = [None if h is None else self.op(f"select i1 {h}, i32 {m}, i32 0") for h, m in zip(halves, _PARTS)]
    self.put_scalar(target, self._or(*parts, t="i32"))
    return True

  def _lane(self, o: Operand) -> str:
    """A lane's number; undefined bits of it decide something."""
    if (c := self._constant(o)) is not None: return str(c & self.lanes - 1)
    if o.kind != "s" or o.value > EXEC_LO + 1 or o.value == NULL: raise Untranslatable("a lane's number")
    self.decides(self.scalar(o.value), "i32")
    lane = self.op(f"and i32 {self.r.scalar(o.value).text}, {self.lanes - 1}")
    return lane if self.lanes == 32 else self.op(f"zext i32 {lane} to i64")

  def _write_lane(self, i: Instruction) -> bool:
    lane = self._lane(i.operands["src1"])
    o = i.operands["src0"]
    bits = self.scalar(o.value) if o.kind == "s" and o.value <= EXEC_LO + 1 else None
    if o.kind not in {"s", "const", "lit"}: raise Untranslatable(i.mnemonic)
    n = i.operands["vdst"].value
    number = self.op(f"zext i32 {lane} to i64") if lane[0] == "%" and self.lanes == 32 else lane
    self.put_vector(n, self.op(f"insertelement <{self.lanes} x i32> {self.vector(n)}, i32 {bits or 0}, i64 {number}"))
    return True

  def _packed(self, i: Instruction) -> bool:
    """Packed 16-bit operations: each half of the result from the halves that are chosen for it."""
    d = i.operands["vdst"]
    if len(dwords(d, self.lanes)) != 1 or "op_sel_hi" not in i.fields: return False
    out: list[Bits] = []
    sources = [self._whole_halves(i, o) for o in self._sources(i)]
    tied = effects(i, self.lanes).tied
    for k, select in ((0, i.get("op_sel")), (1, i.get("op_sel_hi", 7))):
      parts = [h[select >> at & 1] for at, h in enumerate(sources)]
      if tied: parts.append(self.half(tied[0], k))
      out.append(self._or(*parts))
    return self._placed(i, out)

  def _whole_halves(self, i: Instruction, o: Operand) -> list[Bits]:
    found = self._halves_of(i, o)
    return found[:2] if found else [None, None]

  # ---- scalars

  def _s_logic(self, i: Instruction, does: Effects) -> bool:
    sources = [o for n, o in i.operands.items() if n.startswith("src")]
    d = i.operands["sdst"]
    count = max(1, d.dwords)
    how = i.mnemonic.split("_")[1:-1]
    scc: list[Bits] = []
    for k in range(count):
      shadows = [self._s_of(o, k) for o in sources]
      bits = self._or(*shadows, t="i32")
      if bits is not None and how[0] in {"and", "nand", "or", "nor", "andn2", "orn2"}:
        keeps = None  # where a defined operand decides
        for n, (o, shadow) in enumerate(zip(sources, shadows)):
          value = self._s_value(o, k)
          if value is None: continue
          negated = n == 1 and (how[0] in {"andn2", "orn2"} or how[-1] == "not1")
          zero = how[0] in {"and", "nand", "andn2"}
          decides = value if negated == zero else self._not(value, "i32")
          if shadow is not None: decides = self._and(decides, self._not(shadow, "i32"), "i32") or "0"
          keeps = self._or(keeps, decides, t="i32")
        if keeps is not None: bits = self._and(bits, self._not(keeps, "i32"), "i32")
      self.put_scalar(d.value + k, bits)
      scc.append(bits)
    if SCC in does.writes:
      bad = self._or(*scc, t="i32")
      self.put_scalar(SCC - SGPR0, None if bad is None else self.op(
        f"sext i1 {self.op(f'icmp ne i32 {bad}, 0')} to i32"))
    return True

  def _s_of(self, o: Operand, k: int) -> Bits:
    if o.kind != "s": return None
    registers = dwords(o, self.lanes)
    return self.scalar(registers[k] - SGPR0) if k < len(registers) else None

  def _s_value(self, o: Operand, k: int) -> str | None:
    if o.kind == "s" and k < len(dwords(o, self.lanes)) and o.value + k <= EXEC_LO + 1:
      return self.r.scalar(o.value + k).text
    c = self._constant(o)
    return None if c is None or k else str(c)

  def _saveexec(self, i: Instruction) -> bool:
    """The destination gets EXEC; EXEC gets a logic function of the source and itself."""
    mask = self.mask(i.operands["src0"].value) if i.operands["src0"].kind == "s" else None
    if "and_not0" in i.mnemonic or "andn1" in i.mnemonic or not i.mnemonic.startswith("s_and"): self.decides(mask)
    else: self.decides(self._active(mask))
    d = i.operands["sdst"]
    for k in range(self.lanes // 32): self.put_scalar(d.value + k, None)
    self.put_scalar(SCC - SGPR0, None)
    return True

  def _s_select(self, i: Instruction) -> None:
    unsure = self.scalar(SCC - SGPR0)
    every = None if unsure is None else self.op(f"sext i1 {self.op(f'icmp ne i32 {unsure}, 0')} to i32")
    d = i.operands["sdst"]
    condition: str | None = None
    for k in range(max(1, d.dwords)):
      a, b = self._s_of(i.operands["src0"], k), self._s_of(i.operands["src1"], k)
      bits: Bits = None
      if a is not None or b is not None:
        condition = condition or self.r.scc().text
        bits = self.op(f"select i1 {condition}, i32 {a or 0}, i32 {b or 0}")
      self.put_scalar(d.value + k, self._or(bits, every, t="i32"))

  # ---- dual instructions

  def _dual(self, i: Instruction, does: Effects) -> None:
    out: list[tuple[int, list[Bits]]] = []
    for name, suffix in zip(i.mnemonic.split(" :: "), "XY"):
      sources = [i.operands[n + suffix] for n in ("src0", "vsrc1") if n + suffix in i.operands]
      target = dwords(i.operands["vdst" + suffix], self.lanes)[0]
      halves = [self._halves_of(i, o) or [None, None] for o in sources]
      if name == "v_dual_mov_b32": out.append((target, halves[0]))
      elif name == "v_dual_cndmask_b32": out.append((target, self._chosen(VCC_LO, halves[0], halves[1])))
      else:
        parts = [x for h in halves for x in h]
        if "fmac" in name or "acc" in name: parts += [self.half(target, 0), self.half(target, 1)]
        bad = self._or(*parts)
        out.append((target, [bad, bad]))
    for target, halves_ in out:
      for k in (0, 1): self.put_half(target, k, halves_[k])


# By name: what has no meaning of its own, of whole registers of integers. All else that has one goes by that.
_RULES: Final[tuple[tuple[re.Pattern[str], Callable[[Shadows, Instruction], bool]], ...]] = (
  (re.compile(r"v_(mov|not)_b16$|v_swap_b(16|32)$"), Shadows._move),
  (re.compile(r"v_cndmask_b32$"), Shadows._select), (re.compile(r"v_read(first)?lane_b32$"), Shadows._one_lane),
  (re.compile(r"v_writelane_b32$"), Shadows._write_lane), (re.compile(r"(?a)v_pk_\w+16$"), Shadows._packed),
  (re.compile(r"v_"), Shadows._spread))


def rule_of(mnemonic: str, vector: bool) -> str:
  """What says how undefined bits spread in a plain instruction of that name: "" where all of it is undefined when a
  bit is."""
  if vector: return next(rule.__name__ for pattern, rule in _RULES if pattern.match(mnemonic))
  rules = ((_S_LOGIC.match(mnemonic), "_s_logic"), (_SAVEEXEC.match(mnemonic), "_saveexec"),
           (mnemonic.startswith("s_cselect"), "_s_select"))
  return next((name for found, name in rules if found), "")
