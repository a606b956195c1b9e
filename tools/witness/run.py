"""Holds the emulator against the witness: one instruction from a drawn state, every register compared after."""
from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch, decoded
from tinyhw.core.errors import Error
from tinyhw.core.memory import Access, AddressSpace, Region
from tinyhw.emulator.amdgcn.launch import Dispatch
from tinyhw.emulator.amdgcn.program import AmdgcnProgram
from tinyhw.emulator.amdgcn.registers import exec_changed
from tinyhw.emulator.amdgcn.sync import Shared
from tinyhw.emulator.simt import ZERO, Cohort, End, Group, Split, Stats
from tinyhw.emulator.values.ops import BOOL
from tinyhw.isa.amdgcn import Table, table
from tinyhw.isa.amdgcn.codes import NULL
from tinyhw.tools.witness import registers_all
from tinyhw.tools.witness.cases import Case, cases, state_of
from tinyhw.tools.witness.groups import GROUPS, group
from tinyhw.tools.witness.lanes import lane_witness
from tinyhw.tools.witness.softfloat import to_float
from tinyhw.tools.witness.state import CODE, MEMORY, MEMORY_SIZE, Loose, State
from tinyhw.tools.witness.table import WITNESSES, WaveWitness, Witness

PAGE: Final = 4096
VECTOR: Final = frozenset(("VOP1", "VOP2", "VOP3", "VOPC", "VOPD"))
END: Final = {"gfx11": 0xBFB00000, "gfx12": 0xBFB00000, "gfx9": 0xBF810000}  # s_endpgm


@dataclass
class Difference:
  """A case whose outcome is not the witness's, or that the emulator refused."""
  case: Case
  text: str
  error: Error | None = None

  def __str__(self) -> str: return f"{self.case}: {self.text}"


@dataclass(eq=False)
class Prepared:
  """A case with its start and the outcome that the witness says."""
  case: Case
  start: State
  wanted: State

  @cached_property
  def v(self) -> list[Any]:
    """The vector registers that the case starts from [waves, lanes]."""
    shape = self.case.waves, self.case.lanes
    return [self.compact(np.array(r, np.uint32).reshape(shape)) for r in self.start.v]

  def compact(self, column: Any) -> Any:
    """A register as the emulator may keep it: one value, or one a wave, where all lanes have the same."""
    if self.case.instruction.family not in VECTOR or (column != column[:, :1]).any(): return column
    return column[0, 0] if (column == column[0, 0]).all() else column[:, :1]

  @cached_property
  def s(self) -> list[Any]:
    """The scalar registers [waves, 1], or () where all waves have one value."""
    return [np.uint32(r[0]) if r.count(r[0]) == len(r) else np.array(r, np.uint32)[:, None] for r in self.start.s]

  @cached_property
  def results(self) -> list[tuple[int, Any]]:
    """(register, wanted [waves * lanes]) of the vector registers."""
    return [(k, np.array(r, np.uint32)) for k, r in enumerate(self.wanted.v)]


@dataclass
class Bench:
  """One generation's emulator with room for code and data."""
  arch: Arch
  table: Table
  space: AddressSpace
  code: Region
  memory: Region
  prepared: dict[str, list[Prepared]] = field(default_factory=dict)

  def cases(self, mnemonic: str, salt: str = "", of: int = 1) -> list[Prepared]:
    """The cases of a mnemonic, or of a group ("@dual"), or a drawn one in `of` of them; the witness is asked once."""
    known = self.prepared.get(mnemonic)
    if known is None and mnemonic in GROUPS:
      known = self.prepared[mnemonic] = [expected(c, x) for c, x in group(self.table, mnemonic, salt)]
    if known is None:
      x = WITNESSES.get(mnemonic, self.table.name)
      assert x is not None, mnemonic
      drawn = cases(self.table, mnemonic, x, salt)
      if of > 1: drawn = random.Random(f"{mnemonic} {salt}").sample(drawn, -(-len(drawn) // of))
      known = self.prepared[mnemonic] = [expected(c, x) for c in drawn]
    return known

  def check(self, mnemonic: str, limit: int = 3, keep: bool = False, salt: str = "", of: int = 1) -> list[Difference]:
    """Run the cases of a mnemonic, or one in `of` of them; up to `limit` differences. `keep` the prepared cases for
    another run.

    Another `salt` draws other cases.
    """
    out: list[Difference] = []
    if salt: self.prepared.pop(mnemonic, None)
    for p in self.cases(mnemonic, salt, of):
      try: text = compare(p, self.execute(p))
      except Error as error: out.append(Difference(p.case, f"{type(error).__name__}: {error}", error))
      else:
        if text: out.append(Difference(p.case, text))
      if len(out) >= limit: break
    if not keep: del self.prepared[mnemonic]
    return out

  def execute(self, p: Prepared) -> tuple[Group, Any]:
    """The group after the instruction, and where it goes on."""
    case, start = p.case, p.start
    code = case.code + END[self.table.name].to_bytes(4, "little")
    self.code.u8[:len(code)] = np.frombuffer(code, np.uint8)
    if start.memory: self.memory.u8[:] = np.frombuffer(bytes(start.memory), np.uint8)
    program = AmdgcnProgram(self.space, self.arch, CODE)
    lds = len(start.lds)
    cohort = Cohort(program, self.space, case.lanes, case.mode, 1000, Stats(), lds, 1)
    cohort.arch = self.arch
    cohort.dispatch = Dispatch(CODE, (1, 1, 1), (case.waves * case.lanes, 1, 1), 0, 0, wave32=case.lanes == 32,
                               scratch_base=MEMORY, scratch_size=MEMORY_SIZE // case.lanes // case.waves,
                               scratch_waves=case.waves)
    cohort.shared = Shared(np.frombuffer(bytes(start.gds), np.uint8).copy())
    cohort.seen = CODE, case.instruction  # what is running, for what is told of it
    if lds: cohort.lds[:] = np.frombuffer(bytes(start.lds), np.uint8)
    group = Group(cohort, case.waves, CODE, max(512, len(start.v)), 128)
    group.v[:len(p.v)] = p.v
    one = case.waves == 1
    group.s[:len(p.s)] = p.s
    group.s[NULL] = ZERO
    group.scc = BOOL.type(start.scc[0]) if one else np.array(start.scc)[:, None]
    group.waves, group.workgroups = np.arange(case.waves), np.zeros(case.waves, np.intp)
    cohort.live = cohort.arrived = np.array([case.waves])
    cohort.left = case.waves
    slots = np.arange(case.waves, dtype=np.uint64)[:, None] * np.uint64(MEMORY_SIZE // case.waves)
    group.scratch = np.uint64(MEMORY) + (slots[0, 0] if one else slots)
    exec_changed(group)
    with np.errstate(all="ignore"):
      block = program.block(CODE, case.mode)
      for step in block.steps: step(group)
      after: Any = block.next if block.end is None else block.end(group)
    return group, after


@cache
def bench(name: str) -> Bench:
  """The bench of a GPU ("gfx1100")."""
  registers_all()
  gpu = decoded(name)
  space, code, memory = AddressSpace("witness"), Region("code", PAGE), Region("memory", MEMORY_SIZE)
  space.map(CODE, PAGE, code, access=Access.READ | Access.EXECUTE)
  space.map(MEMORY, MEMORY_SIZE, memory, access=Access.READ | Access.WRITE | Access.ATOMIC)
  return Bench(gpu, table(gpu.table), space, code, memory)


def expected(case: Case, x: Witness | WaveWitness) -> Prepared:
  """The start of a case and what the witness makes of it."""
  start = state_of(case, x)
  wanted = copy.copy(start)
  wanted.v, wanted.s = [r[:] for r in start.v], [r[:] for r in start.s]
  wanted.scc, wanted.memory, wanted.lds = start.scc[:], bytearray(start.memory), bytearray(start.lds)
  wanted.gds = bytearray(start.gds)
  wanted.loose, wanted.jump = {}, [None] * case.waves
  if isinstance(x, Witness): lane_witness(wanted, case.instruction, x)
  else: x.function(wanted, case.instruction)
  return Prepared(case, start, wanted)


def compare(p: Prepared, outcome: tuple[Group, Any]) -> str:
  """The first difference in words; "" where all is as the witness says."""
  group, after = outcome
  wanted, case = p.wanted, p.case
  shape = case.waves, case.lanes
  for k, results in p.results:
    now = group.v[k]
    if now is p.v[k] and wanted.v[k] == p.start.v[k]: continue
    got = np.broadcast_to(now.view(np.uint32), shape).reshape(-1)
    if (got == results).all(): continue
    column = wanted.v[k]
    for at in np.flatnonzero(got != results).tolist():
      whole = [int(np.broadcast_to(group.v[k + d].view(np.uint32), shape).reshape(-1)[at]) for d in (-1, 0, 1)]
      if close(whole, [wanted.v[k + d][at] for d in (-1, 0, 1)], wanted.loose.get((k, at), []),
               (k - 1, at) in wanted.loose): continue
      return (f"v{k} wave {at // case.lanes} lane {at % case.lanes}: emulator {int(got[at]):#010x}, "
              f"witness {column[at]:#010x}, before {p.start.v[k][at]:#010x}; {inputs(p, at)}")
  for k, values in enumerate(wanted.s):
    now = group.s[k]
    if now is p.s[k] and values == p.start.s[k] or k == NULL: continue
    for wave, got in enumerate(np.broadcast_to(now, (case.waves, 1)).reshape(-1).tolist()):
      if got != values[wave]:
        if close([0, got, 0], [0, values[wave], 0], wanted.loose.get((-1 - k, wave), []), False): continue
        return f"s{k} wave {wave}: emulator {got:#010x}, witness {values[wave]:#010x}; {inputs(p, wave * case.lanes)}"
  mask = np.broadcast_to(True if group.mask is None else group.mask, shape)
  for wave, active in enumerate(np.packbits(mask, axis=1, bitorder="little")):
    bits = int.from_bytes(active.tobytes(), "little")
    if bits != wanted.exec(wave): return f"mask of wave {wave}: {bits:#x}, EXEC {wanted.exec(wave):#x}; {inputs(p, 0)}"
  scc = np.broadcast_to(group.scc, (case.waves, 1)).reshape(-1).tolist()
  if scc != wanted.scc: return f"SCC: emulator {scc}, witness {wanted.scc}; {inputs(p, 0)}"
  if group.mode != wanted.mode.value: return f"MODE: emulator {group.mode:#x}, witness {wanted.mode.value:#x}"
  return compare_memory(p, group) or compare_flow(p, after)


def compare_memory(p: Prepared, group: Group) -> str:
  """LDS and memory."""
  for name, got, want in (("LDS", group.cohort.lds.tobytes(), bytes(p.wanted.lds)),
                          ("GDS", group.cohort.shared.gds.tobytes(), bytes(p.wanted.gds)),
                          ("memory", None, bytes(p.wanted.memory))):
    if not want: continue
    if got is None: got = group.space.read(MEMORY, len(want))
    if got == want: continue
    at = next(k for k, (a, b) in enumerate(zip(got, want)) if a != b) & ~3
    return f"{name} at {at:#x}: emulator {got[at:at + 16].hex()}, witness {want[at:at + 16].hex()}"
  return ""


def compare_flow(p: Prepared, after: Any) -> str:
  """Where the waves go on."""
  following = CODE + len(p.case.code)
  wanted = [following if j is None else j for j in p.wanted.jump]
  if isinstance(after, Split): got = [int(x) for x in after.pcs]
  elif isinstance(after, End): got = [-1 if p.case.row.mnemonic.startswith("s_endpgm") else following] * len(wanted)
  else: got = [int(getattr(after, "pc", after))] * len(wanted)
  return "" if got == wanted else f"goes on at {got}, witness {wanted}"


def close(got: list[int], want: list[int], loose: list[Loose], high: bool) -> bool:
  """Whether a dword (the middle one; with its neighbours) agrees where results need not be exact; `high` says that it
  is the upper one of an f64."""
  x, y = got[1], want[1]
  for how in loose:
    f = how.format
    if f.bits == 64:
      a, b = ([p[0], p[1]] if high else [p[1], p[2]] for p in (got, want))
      return near(a[0] | a[1] << 32, b[0] | b[1] << 32, how)
    mask = (1 << f.bits) - 1
    if near(x >> how.at & mask, y >> how.at & mask, how): x = x & ~(mask << how.at) | y & mask << how.at
  return x == y


def near(x: int, y: int, how: Loose) -> bool:
  """Whether a pattern is what the witness allows."""
  f = how.format
  if x == y or x in how.allowed: return True
  if f.is_nan(x) or f.is_nan(y): return f.is_nan(x) and (f.is_nan(y) or any(map(f.is_nan, how.allowed)))
  if how.ulp and abs(f.order(x) - f.order(y)) <= how.ulp: return True
  return bool(how.absolute) and abs(to_float(x, f) - to_float(y, f)) <= how.absolute


def inputs(p: Prepared, at: int) -> str:
  """The operands of a lane, for messages."""
  out = []
  for name, o in p.case.instruction.operands.items():
    parts = range(min(4, max(1, o.dwords)) - 1, -1, -1)
    if o.kind == "v": words = [p.start.v[o.value + k][at] for k in parts]
    elif o.kind == "s" and o.value < 126: words = [p.start.s[o.value + k][at // p.case.lanes] for k in parts]
    else: continue
    out.append(f"{name}=" + "_".join(f"{w:08x}" for w in words))
  return ", ".join(out)
