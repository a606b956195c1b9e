"""Binds buffer instructions: MUBUF and MTBUF (gfx9, gfx11), VBUFFER (gfx12).

Sources: RDNA3 ISA manual, section 9; RDNA4, section 9; CDNA3, section 9.1. How a generation lays out its resources is
`resource`'s matter.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.bind import ZERO_FILLING
from tinyhw.emulator.amdgcn.binders import unsupported
from tinyhw.emulator.amdgcn.memory import formats
from tinyhw.emulator.amdgcn.memory.resource import Resource, instruction_format, parser
from tinyhw.emulator.amdgcn.memory.tables import LOADS, STORES, VECTOR_ATOMICS
from tinyhw.emulator.amdgcn.memory.vector import returns
from tinyhw.emulator.amdgcn.memory.words import by_lane, data_reader, extended, split, wide, write_loaded, write_words
from tinyhw.emulator.amdgcn.registers import each_wave, reader, scalar32, vector32
from tinyhw.emulator.memory import access
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.simt import Group, Step, full, need_lanes
from tinyhw.emulator.values.ops import BOOL, TRUE, U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction

IDENTITY: Final = (4, 5, 6, 7)
FORMATTED: Final = re.compile(r"(t?)buffer_(load|store)_(lds_)?(d16_)?(hi_)?format_(d16_)?(hi_)?(x|xy|xyz|xyzw)")


class Addressing:
  """Where the lanes of a buffer instruction go."""

  def __init__(self, i: Instruction, pc: int) -> None:
    self.i, self.pc, self.parse = i, pc, parser(i.isa, FORMATTED.fullmatch(i.mnemonic) is not None)
    srsrc = i.operands["srsrc"].value
    self.words = [scalar32(srsrc + k) for k in range(4)]
    self.soffset = reader(i.operands["soffset"], "u32")
    self.fixed: Value = U64.type(i.fields["offset"])
    n = i.operands["vaddr"].value if "vaddr" in i.operands else 0
    self.idxen = i.variant in {"idxen", "bothen"}
    self.index_of = vector32(n, U32) if self.idxen else None
    offen = i.variant in {"offen", "bothen"}
    self.offset_of = vector32(n + (i.variant == "bothen"), U32) if offen else None

  def each(self, group: Group, run: Callable[[Resource], None]) -> None:
    """Run for the buffer that the waves have; where they have several, for each with only its waves active."""
    if not access.nobody(group): each_wave(group, [r(group) for r in self.words], lambda *w: run(self.parse(*w)))

  def __call__(self, group: Group, r: Resource, widths: list[int]) -> tuple[Value, list[Value]]:
    """(u64 addresses, for each width in bytes from the address whether that much is in range)."""
    within = self.fixed
    if self.offset_of is not None: within = within + self.offset_of(group).astype(U64)
    index: Value = U64.type(0) if self.index_of is None else self.index_of(group).astype(U64)
    if r.add_thread: index = index + np.arange(group.cohort.lanes, dtype=U64)[None, :]
    extra = self.soffset(group).astype(U64)
    stride = np.uint64(r.stride)
    if not r.element: at = index * stride + within
    else:
      element, indices = np.uint64(r.element), np.uint64(r.indices)
      at = ((index // indices * stride + within // element * element) * indices + index % indices * element
            + within % element)
    return U64.type(r.base) + at + extra, [self._ok(r, index, within, at, extra, U64.type(w)) for w in widths]

  def _ok(self, r: Resource, index: Value, within: Value, at: Value, extra: Value, width: Value) -> Value:
    records, stride = np.uint64(r.records), np.uint64(max(r.stride, 1))
    if r.out_of_range == 0: return (index < records) & (within + width <= stride)
    if r.out_of_range == 1: return index < records
    if r.out_of_range == 2: return BOOL.type(r.records != 0)
    if r.out_of_range == 3:
      if r.element and r.stride: return (index < records) & (within + width <= np.uint64(r.stride))
      return at + extra + width <= records
    if r.add_thread and not self.idxen: return TRUE  # a private buffer
    if self.idxen and r.stride: return index < records
    return within + width <= records


def under(group: Group, ok: Value, run: Callable[[], None]) -> None:
  """Run with only those lanes active for which `ok` holds; not at all without any."""
  mask = group.mask
  if not np.all(ok): group.mask = need_lanes(group) & full(group, ok)
  try:
    if not access.nobody(group): run()
  finally: group.mask = mask


def bind(i: Instruction, pc: int, mode: int) -> Step:
  """The step of a buffer instruction. Raises Unsupported for one without meaning."""
  addressing = Addressing(i, pc)
  match = FORMATTED.fullmatch(i.mnemonic)
  to_lds = "_lds_" in i.mnemonic or "_load_" in i.mnemonic and "vdata" not in i.operands
  if to_lds: return _load_to_lds(i, pc, addressing)
  if match is not None:
    d16, high = bool(match[4] or match[6]), bool(match[5] or match[7])
    typed = _format_load if match[2] == "load" else _format_store
    return typed(i, pc, addressing, len(match[8]), d16, high)
  if i.mnemonic in LOADS: return _load(i, addressing)
  if i.mnemonic in STORES: return _store(i, addressing)
  if i.mnemonic in VECTOR_ATOMICS: return _atomic(i, addressing)
  raise unsupported(i, pc)


# ---- plain loads, stores and atomics; dwords are checked one by one

def _widths(width: int) -> list[int]: return [width] if width <= 4 else list(range(4, width + 1, 4))


def _together(group: Group, oks: list[Value]) -> bool:
  """Whether each active lane is in range with all of its dwords or with none."""
  return all(ok is oks[0] or not np.any((ok ^ oks[0]) & need_lanes(group)) for ok in oks)


def _fetch(group: Group, at: Value, oks: list[Value], width: int) -> list[Value]:
  """Dwords from addresses; those out of range are 0."""
  out: list[Value] = [U32.type(0)] * max(1, width // 4)
  if _together(group, oks):
    ok = oks[0]

    def whole() -> None:
      words = access.words_of(access.load(group, None, at, width), width)
      for k, w in enumerate(words): out[k] = w if np.all(ok) else np.where(ok, w, np.uint32(0))
    under(group, ok, whole)
    return out
  for k, ok in enumerate(oks):
    def one(k: int = k, ok: Value = ok) -> None:
      out[k] = np.where(ok, access.load(group, None, at + np.uint64(4 * k), 4), np.uint32(0))
    under(group, ok, one)
  return out


def _load(i: Instruction, addressing: Addressing) -> Step:
  width, sign_bits, half = LOADS[i.mnemonic]
  write = write_loaded(i.operands["vdata"].value, sign_bits, half)

  def load(group: Group, r: Resource) -> None:
    at, oks = addressing(group, r, _widths(width))
    write(group, _fetch(group, at, oks, width))
  return lambda group: addressing.each(group, lambda r: load(group, r))


def _put(group: Group, at: Value, oks: list[Value], words: list[Value], width: int) -> None:
  if _together(group, oks):
    return under(group, oks[0], lambda: access.store(group, None, at, words, width))
  for k, ok in enumerate(oks):
    def one(k: int = k) -> None: access.store(group, None, at + np.uint64(4 * k), [words[k]], 4)
    under(group, ok, one)


def _store(i: Instruction, addressing: Addressing) -> Step:
  width, shift = STORES[i.mnemonic]
  data = data_reader(i.operands["vdata"].value, width, shift)

  def store(group: Group, r: Resource) -> None:
    at, oks = addressing(group, r, _widths(width))
    _put(group, at, oks, data(group), width)
  return lambda group: addressing.each(group, lambda r: store(group, r))


def _atomic(i: Instruction, addressing: Addressing) -> Step:
  operation, width = VECTOR_ATOMICS[i.mnemonic]
  want = returns(i)
  vdata = i.operands["vdata"].value
  data_of = data_reader(vdata, width)
  compare_of = data_reader(vdata + width // 4, width) if ATOMICS[operation].compares else None

  def atomic(group: Group, r: Resource) -> None:
    at, (ok,) = addressing(group, r, [width])
    out: list[Value] = [np.zeros((1, group.cohort.lanes), U32 if width == 4 else U64)]

    def run() -> None:
      compare = None if compare_of is None else wide(compare_of(group))
      old = access.atomic(group, at, width, operation, wide(data_of(group)), compare, want)
      if old is not None: out[0] = old
    under(group, ok, run)
    if want: write_words(group, vdata, split(out[0]))
  return lambda group: addressing.each(group, lambda r: atomic(group, r))


# ---- typed buffers; an element is in range or out of it as a whole

def _typed(i: Instruction, pc: int, r: Resource) -> tuple[formats.Format | None, tuple[int, ...]]:
  """(the format, None for an unbound buffer; what each component selects)."""
  carried = "format" in i.fields
  name = instruction_format(i) if carried else r.format
  if r.format == "INVALID" and not carried and not r.add_thread: return None, IDENTITY
  if name.startswith("INVALID"): return None, IDENTITY
  try: f = formats.parse(name)
  except ValueError: raise unsupported(i, pc, f"buffer format {name}") from None
  return f, IDENTITY if carried else r.selects


def _format_load(i: Instruction, pc: int, addressing: Addressing, count: int, d16: bool, high: bool) -> Step:
  vdata = i.operands["vdata"].value

  def load(group: Group, r: Resource) -> None:
    f, selects = _typed(i, pc, r)
    if f is None: values: list[Value] = [U32.type(0)] * count
    else:
      at, (ok,) = addressing(group, r, [f.size])
      words = _fetch(group, at, [ok], f.size)
      values = formats.load(f, words, selects[:count], d16)
      if not np.all(ok): values = [v if s == 1 else np.where(ok, v, np.uint32(0)) for v, s in zip(values, selects)]
    if not d16: return write_words(group, vdata, values)
    if count == 1: return write_loaded(vdata, 0, int(high) + 2 * (i.isa in ZERO_FILLING))(group, values)
    values.append(U32.type(0))
    write_words(group, vdata, [values[k] | values[k + 1] << np.uint32(16) for k in range(0, count, 2)])
  return lambda group: addressing.each(group, lambda r: load(group, r))


def _format_store(i: Instruction, pc: int, addressing: Addressing, count: int, d16: bool, high: bool) -> Step:
  vdata = i.operands["vdata"].value

  def component(group: Group, k: int) -> Value:
    if not d16: return group.v[vdata + k].view(U32)
    return group.v[vdata + k // 2].view(U32) >> np.uint32(16 * (k % 2 or high))

  def store(group: Group, r: Resource) -> None:
    f, selects = _typed(i, pc, r)
    if f is None: return
    chosen = formats.components(f, {k: component(group, k) for k in range(count)}, selects, i.isa)
    at, (ok,) = addressing(group, r, [f.size])
    words = formats.store(f, chosen, d16)
    under(group, ok, lambda: access.store(group, None, at, words, f.size))
  return lambda group: addressing.each(group, lambda r: store(group, r))


# ---- loads into LDS (CDNA3 ISA manual, section 9.1.9)

def _load_to_lds(i: Instruction, pc: int, addressing: Addressing) -> Step:
  """Each lane's dword (or its extended byte or short) goes to LDS at M0[15:0] + offset + 4 * lane."""
  name = i.mnemonic.replace("_lds_", "_")
  typed = FORMATTED.fullmatch(name) is not None
  if not typed and name not in LOADS: raise unsupported(i, pc)
  width, sign_bits, _ = (4, 0, None) if typed else LOADS[name]
  stride = 4 if width <= 4 else 16  # gfx950 has loads of 3 and 4 dwords a lane (CDNA4 ISA manual, 9.1.9)

  def load(group: Group, r: Resource) -> None:
    f, selects = _typed(i, pc, r) if typed else (None, IDENTITY)
    size = width if not typed else f.size if f is not None else 4
    at, (ok,) = addressing(group, r, [size])
    words: list[Value] = [U32.type(0)] if typed and f is None else _fetch(group, at, [ok], size)
    if typed and f is not None: words = formats.load(f, words, selects[:1], False)
    elif sign_bits: words = [extended(words[0], sign_bits)]
    access.lds_store(group, by_lane(group, i.fields["offset"], stride=stride), words, max(width, 4))
  return lambda group: addressing.each(group, lambda r: load(group, r))
