"""What a kernel's code says of its parameters' types, where nothing declares them.

Values are followed from the argument segment through scalar loads, copies and loads of array elements to instructions
whose operands have a type. Only what is sure counts: a parameter whose uses disagree, or are none, has no type here,
and nothing is followed through memory, calls or arithmetic.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tinyhw.arch import Arch
from tinyhw.core.errors import DecodeError
from tinyhw.drive.amd.program import user_sgprs
from tinyhw.emulator.amdgcn import control
from tinyhw.emulator.amdgcn.all_tables import MEANINGS
from tinyhw.emulator.check.amdgcn.effects import SGPR0, Effects, dwords, effects
from tinyhw.isa.amdgcn import Instruction, Operand, table
from tinyhw.isa.amdgcn.codes import NULL
from tinyhw.kernels.inference import Uses
from tinyhw.wire.codeobject import CodeObject, Kernel

_SIGNS: Final = frozenset({128, 193})  # the inline constants 0 and -1
LARGEST: Final = 20_000  # instructions of a kernel that is looked at
_WHOLE: Final = re.compile(r"_[iu](16|24|32|64)(_|$)")
# Integer instructions that compilers also use on the bits of floats: shifts that spread the sign, fields, signs.
_BITS: Final = re.compile(r"_(ashr|bfe|bfi|bfm|perm|alignbit|alignbyte|sad|msad|sext|lshl_or|and_or|or3|xad|pack)")
_DWORDS: Final = re.compile(r"_(load|store)_(b32|b64|b96|b128|dword|dwordx[234])$")
_ADDS: Final = re.compile(r"[sv]_(add|addc|lshl_add)_|[sv]_addk?_")
_LAST: Final = frozenset({"s_endpgm", "s_setpc_b64", "s_swappc_b64", "s_call_b64", "s_rfe_b64", "s_trap", "s_code_end",
                          "s_endpgm_saved"})


@dataclass(frozen=True)
class Tag:
  """What a dword register holds.

  "kernarg": dword `part` of the argument segment's address. "value": the dword at `at` of the segment, in bytes.
  "address": dword `part` of an address in the array whose pointer is at `at`. "element": a dword loaded from there.
  "made": what an instruction whose result has the type `of` has computed. "sign": 0 or -1.
  """
  what: str
  at: int = 0
  part: int = 0
  of: str = ""


State = dict[int, Tag]


def uses(code: CodeObject, kernel: Kernel, arch: Arch) -> Uses:
  """What a kernel's code does with its arguments; nothing for code that cannot be followed. Raises what keeps the
  kernel from running."""
  found = Uses()
  sgprs = user_sgprs(kernel, arch.name, 0)
  start: State = {SGPR0 + at + k: Tag("kernarg", 0, k) for at, name in sgprs.pairs.items() if name == "kernarg"
                  for k in (0, 1)}
  first, count = sgprs.preload
  start |= {SGPR0 + len(sgprs.values) + k: Tag("value", 4 * (first + k)) for k in range(count)}
  pointers = frozenset(a.offset for a in kernel.arguments if a.kind == "global_buffer")
  flow = _Flow(code, arch.table, kernel.wavefront_size, pointers)
  if flow.follow(kernel.entry_offset, start):
    found.complete, found.loaded = True, {t.at for t in start.values() if t.what == "value"}
    flow.collect(found)
  return found


class _Flow:
  """States of registers before each instruction that the kernel can reach."""

  def __init__(self, code: CodeObject, instructions: str, lanes: int, pointers: frozenset[int]) -> None:
    self.pointers = pointers  # where the arguments are that are some
    self.image, self.table, self.lanes = code.image, table(instructions), lanes
    self.decoded: dict[int, tuple[Instruction, Effects]] = {}
    self.states: dict[int, State] = {}  # before a block's first instruction

  def follow(self, entry: int, start: State) -> bool:
    """Find what all paths agree upon. False for code that is too large, or is none."""
    self.states[entry] = start
    work = [entry]
    try:
      while work:
        at = work.pop()
        for there, state in self._block(at, None):
          known = self.states.get(there)
          both = state if known is None else {r: t for r, t in known.items() if state.get(r) == t}
          if both != known:
            self.states[there] = both
            work.append(there)
          if len(self.decoded) > LARGEST: return False
    except (DecodeError, IndexError): return False
    return True

  def collect(self, found: Uses) -> None:
    """Take note of the uses, now that the states are known."""
    for at in list(self.states): list(self._block(at, found))

  def _block(self, at: int, found: Uses | None) -> Iterator[tuple[int, State]]:
    """Go through instructions up to a branch, or to where another block begins; (place, state) of what comes next."""
    state, first = dict(self.states[at]), at
    while True:
      if at != first and at in self.states:
        yield at, state
        return
      known = self.decoded.get(at)
      if known is None:
        i = self.table.decode(self.image, at)
        known = self.decoded[at] = i, effects(i, self.lanes)
      i = known[0]
      if i.mnemonic in _LAST:
        if found is not None and i.mnemonic != "s_endpgm": found.complete &= i.mnemonic == "s_code_end"
        return
      self._step(*known, state, found)
      after = at + i.size
      if i.mnemonic in control.DIRECT:
        yield control.target(i, at), dict(state)
        if i.mnemonic == "s_branch": return
        yield after, state
        return
      at = after
      if len(self.decoded) > LARGEST: return

  # ---- one instruction

  def _step(self, i: Instruction, known: Effects, state: State, found: Uses | None) -> None:
    new: State = {}
    if found is not None and i.family != "SMEM" and not i.mnemonic.startswith("s_mov_b"):
      read = {state.get(r) for r in known.reads}
      if any(tag is not None and tag.what == "kernarg" for tag in read): found.complete = False
    if i.family == "SMEM": self._scalar_load(i, state, new, found)
    elif i.family == "FLAT": self._vector_memory(i, state, new, found)
    else:
      halves = i.mnemonic.split(" :: ")
      for half, suffix in zip(halves, ("X", "Y") if len(halves) > 1 else ("",)):
        mnemonic = half.replace("v_dual_", "v_")
        if mnemonic in {"s_mov_b32", "s_mov_b64", "v_mov_b32"} and not _modified(i): self._move(i, suffix, state, new)
        else: self._compute(i, mnemonic, suffix, state, new, found)
    for r in known.writes: state.pop(r, None)
    state.update(new)

  def _tags(self, o: Operand, state: State) -> list[Tag | None]: return [state.get(r) for r in dwords(o, self.lanes)]

  def _scalar_load(self, i: Instruction, state: State, new: State, found: Uses | None) -> None:
    """Dwords of the argument segment, or of an array."""
    if not {"sdst", "sbase"} <= i.operands.keys(): return
    base = self._tags(i.operands["sbase"], state)
    kernarg = base == [Tag("kernarg", 0, 0), Tag("kernarg", 0, 1)]
    offset = i.fields.get("offset", 0)
    moved = next((i.operands[n] for n in ("soffset",) if n in i.operands), None)
    plain = i.mnemonic.startswith("s_load_") and not (
      moved is not None and not (moved.kind == "s" and moved.value == NULL))
    targets = dwords(i.operands["sdst"], self.lanes)
    if found is not None and kernarg:
      found.complete &= plain
      found.loaded |= {offset + 4 * k for k in range(len(targets))}
    if not plain or re.search(r"_[iu](8|16)$", i.mnemonic): return
    for k, r in enumerate(targets):
      if kernarg: new[r] = Tag("value", offset + 4 * k)
      elif (pointer := self._pointer(base)) is not None: new[r] = Tag("element", pointer)

  def _vector_memory(self, i: Instruction, state: State, new: State, found: Uses | None) -> None:
    """Elements of an array that lanes load and store as dwords."""
    if not i.mnemonic.startswith(("global_", "flat_")) or not _DWORDS.search(i.mnemonic): return
    base = i.operands.get("saddr")
    if base is None or base.kind != "s" or base.value == NULL: base = i.operands.get("vaddr")
    pointer = None if base is None else self._pointer(self._tags(base, state))
    if pointer is None: return
    if "_load_" in i.mnemonic and "vdst" in i.operands:
      for r in dwords(i.operands["vdst"], self.lanes): new[r] = Tag("element", pointer)
    elif "_store_" in i.mnemonic and found is not None and "vdata" in i.operands:
      for tag in self._tags(i.operands["vdata"], state):
        if tag is not None and tag.what == "made": found.elements.setdefault(pointer, set()).add(tag.of)

  def _move(self, i: Instruction, suffix: str, state: State, new: State) -> None:
    own = [o for n, o in i.operands.items() if not suffix or n.endswith(suffix)]
    source = next((o for o in own if o.role == "s" and o.kind in "vs"), None)
    target = next((o for o in own if o.role == "d"), None)
    constant = next((o for o in own if o.role == "s" and o.kind == "const"), None)
    if target is not None and constant is not None and constant.value in _SIGNS:
      for r in dwords(target, self.lanes): new[r] = Tag("sign")
    if source is None or target is None: return
    for r, tag in zip(dwords(target, self.lanes), self._tags(source, state)):
      if tag is not None: new[r] = tag

  def _compute(self, i: Instruction, mnemonic: str, suffix: str, state: State, new: State, found: Uses | None) -> None:
    meaning = MEANINGS.get(mnemonic, i.table)
    if meaning is None: return
    read = [o for n, o in i.operands.items() if o.role == "s" and (not suffix or n.endswith(suffix))]
    operands = [o for o in read if o.kind in {"v", "s", "const", "lit"} and o.type != "imm"]
    types = [t for t in meaning.sources if ":" not in t and t not in {"vcc", "scc", "exec"}]
    if len(read) == len(types): operands = read  # an immediate is one of the numbers (v_fmaak_f32)
    target = next((o for n, o in i.operands.items() if o.role == "d" and (not suffix or n.endswith(suffix))), None)
    # a float's sign is read by an integer's comparison with 0 or -1
    signs = "_cmp" in mnemonic and any(o.kind == "const" and o.value in _SIGNS or Tag("sign") in self._tags(o, state)
                                       for o in operands)
    if found is not None and len(types) == len(operands) and not (signs and types[0] in {"i32", "i64"}):
      for o, t in zip(operands, types): self._use(o, _class(mnemonic, t, meaning.packed), state, found)
      tied = next((t[2:] for t in meaning.sources if t.startswith("d:")), None)
      if tied is not None and target is not None:
        self._use(target, _class(mnemonic, tied, meaning.packed), state, found)
    result = next(iter(meaning.results), "")
    if target is None or meaning.packed: return
    for k, r in enumerate(dwords(target, self.lanes)):
      if result in {"f32", "f64"}: new[r] = Tag("made", of=result)
      elif _ADDS.match(mnemonic) and (address := self._sum(operands, k, state)) is not None: new[r] = address

  def _sum(self, operands: list[Operand], k: int, state: State) -> Tag | None:
    """What dword `k` of a sum is, one of whose terms is a pointer as it was passed, or an address made from it."""
    found = []
    for o in operands:
      tags = self._tags(o, state)
      tag = tags[k] if k < len(tags) else None
      if tag is None or tag.what not in {"value", "address"}: continue
      if tag.what == "address": found.append(tag)
      elif tag.at in self.pointers: found.append(Tag("address", tag.at, 0))
      elif tag.at - 4 in self.pointers: found.append(Tag("address", tag.at - 4, 1))
    return found[0] if len(found) == 1 else None

  def _pointer(self, tags: list[Tag | None]) -> int | None:
    """The place of the pointer into whose array the address in two registers goes."""
    if len(tags) != 2: return None
    low, high = tags
    if low is None or high is None: return None
    if low.what == high.what == "value" and high.at == low.at + 4: return low.at if low.at in self.pointers else None
    return low.at if low.what == high.what == "address" and low.at == high.at and low.part < high.part else None

  def _use(self, o: Operand, kind: str | None, state: State, found: Uses) -> None:
    """An operand was read under a type; None for one that says nothing."""
    if kind is None: return
    for tag in self._tags(o, state):
      if tag is None: continue
      if tag.what == "value": found.values.setdefault(tag.at, set()).add(kind)
      elif tag.what == "element": found.elements.setdefault(tag.at, set()).add(kind)


def _modified(i: Instruction) -> bool:
  """Whether a move selects bytes or lanes (SDWA, DPP)."""
  return any(n in i.fields for n in ("dpp_ctrl", "dpp8", "src0_sel"))


def _class(mnemonic: str, declared: str, packed: bool) -> str | None:
  """What reading an operand of a type says: f16, f32, f64, i32, i64; "carry" for the upper half of a sum; else "other".
  """
  if packed: return "other"
  if declared in {"f16", "f32", "f64"}: return declared
  if mnemonic.startswith(("v_ldexp", "s_cselect", "v_cndmask")): return "i32" if "ldexp" in mnemonic else None
  if re.match(r"(s|v)_(addc|subb|add_co_ci|sub_co_ci|subrev_co_ci|subbrev)", mnemonic): return "carry"
  if mnemonic.startswith(("v_cvt_f32_ubyte", "v_cvt_off")): return "other"
  if _BITS.search(mnemonic): return None
  if not _WHOLE.search(mnemonic): return "i64" if declared in {"u64", "i64"} and _shifts(mnemonic) else None
  if declared in {"u16", "i16"}: return "other"
  if declared in {"u64", "i64"}: return "i64"
  return "i32"


def _shifts(mnemonic: str) -> bool: return re.match(r"(s|v)_(lshl|lshr|ashr)(rev)?_[bi]64", mnemonic) is not None
