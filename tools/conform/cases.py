"""Cases: an instruction in one of its forms, the state of waves before it, and the state that is wanted after it.

Forms and states are the witness's (`tools/witness/cases`), and further states whose sources go through tables of
boundary values. What is wanted is what the reference emulator makes of it, after the witness has agreed; where the two
do not agree the case says so, and wants what the witness says.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn import coverage
from tinyhw.isa.amdgcn.codes import AGPR0
from tinyhw.tools.ledger.ledger import section
from tinyhw.tools.witness import groups
from tinyhw.tools.witness.cases import PLAIN, Case, Encoder, _rng, cases, rows_of, wave_size
from tinyhw.tools.witness.draw import special
from tinyhw.tools.witness.run import Bench, Prepared, bench, compare, expected
from tinyhw.tools.witness.table import WITNESSES, Mode, Witness, format_of, width_of

Array = Any
SGPRS: Final = 80  # a kernel keeps what is its own in the registers behind these
MEMORY_SGPRS: Final = 64  # the same of cases with memory
VGPRS: Final = 240
# Values at which operations change, by kind of operand; sources go through all pairs, or all triples of the first few.
_FLOATS: Final = 20
_PAIRS: Final = 16
_TRIPLES: Final = 6


@dataclass(eq=False)
class Baked:
  """A case and what is wanted of it: registers [register, waves * lanes], [register, waves], one SCC a wave, memories.

  `differs`: what the reference emulator makes of it is not what the witness says; this is the difference.
  """
  id: str
  prepared: Prepared
  v: Array
  s: Array
  scc: Array
  mode: int
  memory: bytes = b""
  lds: bytes = b""
  differs: str = ""
  barred: str = ""  # why no kernel can ask a device about it
  flow: tuple[int, ...] = ()  # of control flow: where each wave goes on (`flow.FELL`, `flow.JUMPED`)
  backward: bool = False  # where to, if it jumps

  @property
  def case(self) -> Case: return self.prepared.case

  @property
  def mnemonic(self) -> str: return self.id.split("/")[1]

  @cached_property
  def start_v(self) -> Array:
    """The vector registers before [register, waves * lanes]."""
    return np.array(self.prepared.start.v, np.uint32)

  @cached_property
  def start_s(self) -> Array:
    """The scalar registers before [register, waves]."""
    return np.array(self.prepared.start.s, np.uint32)

  @property
  def vgprs(self) -> int: return len(self.prepared.start.v)

  @cached_property
  def low_vgprs(self) -> int:
    """How many vector registers take part of those that are no accumulation registers."""
    used = [o.value + max(1, o.dwords) + 4 for o in self.case.instruction.operands.values()
            if o.kind == "v" and o.value < AGPR0]
    return max(used, default=4)

  @property
  def scratch(self) -> bool:
    """Whether its memory is what lanes have as scratch."""
    name = self.case.instruction.mnemonic
    return name.startswith("scratch_") or name.startswith(("flat_load", "flat_store")) and bool(self.lds)

  @cached_property
  def sgprs(self) -> int:
    """How many scalar registers take part."""
    changed = np.flatnonzero((self.start_s[:106] != self.s[:106]).any(axis=1))
    used = [int(changed.max()) + 1] if len(changed) else [0]
    for o in self.case.instruction.operands.values():
      if o.kind == "s" and o.value < 106: used.append(o.value + max(2, o.dwords) + 4)
    return max(used)


def names(arch: str) -> list[str]:
  """The mnemonics and groups of mnemonics that have cases."""
  machine = bench(arch)
  isa = machine.table.name
  found = [m for m in sorted(machine.table.by_mnemonic)
           if WITNESSES.get(m, isa) is not None and coverage.status(m, machine.table.key) != "missing"]
  return [*found, *groups.names(isa)]


def _slug(note: str, variant: str) -> str:
  words = note.split()
  if words and words[0] == variant: words = words[1:]
  return "-".join(words) or "plain"


@dataclass(frozen=True)
class Drawn:
  """A case that is not made yet: what its identifier says, and its maker."""
  id: str
  make: Callable[[], Prepared]


def drawn(arch: str, name: str, seed: str = "", boundaries: bool = True) -> Iterator[Drawn]:
  """The cases of a mnemonic or group ("@dual")."""
  machine = bench(arch)
  isa = machine.table.name
  seen: dict[str, int] = {}

  def named(case: Case) -> str:
    variant = case.row.variant or case.row.family.lower()
    mnemonic = case.row.mnemonic.replace(" :: ", "+")
    out = f"{arch}/{mnemonic}/{variant.replace(' ', '-')}/{_slug(case.note, case.row.variant)}"
    if case.lanes != wave_size(isa): out += f"-wave{case.lanes}"
    if seed: out += f"@{seed}"
    count = seen[out] = seen.get(out, -1) + 1
    return f"{out}.{count}" if count else out
  if name.startswith("@"):
    for case, x in groups.group(machine.table, name, seed): yield Drawn(named(case), partial(expected, case, x))
    return
  x = WITNESSES.get(name, isa)
  if x is None: return
  for case in cases(machine.table, name, x, seed): yield Drawn(named(case), partial(expected, case, x))
  if boundaries and not seed and isinstance(x, Witness):
    for edge in _boundaries(machine, name, x): yield Drawn(named(edge), partial(_at_boundaries, edge, x))


# ---- boundary values

@dataclass(frozen=True)
class _Boundary(Case):
  """A case whose sources have values from the tables: the first combination's number."""
  first: int = 0


def _values(type_: str, count: int) -> list[int]:
  """So many boundary values of a type, those that tell most first."""
  every = special(type_)
  if format_of(type_) is None: return list(every[:count])
  f = format_of(type_)
  assert f is not None
  one, step = f.bias << f.mantissa, 1 << f.mantissa
  best = [0, f.sign, one, one | f.sign, f.infinity, f.infinity | f.sign, f.nan, 1, 1 | f.sign, step, step - 1,
          f.infinity - 1, (f.infinity - 1) | f.sign, one + step // 2, one - 1, f.infinity | 1, one + 1, one + step]
  return list(dict.fromkeys(best + list(every)))[:count]


def _boundaries(machine: Bench, mnemonic: str, x: Witness) -> Iterator[_Boundary]:
  """One encoding of vector instructions with registers for sources, as often as the table's combinations fill waves."""
  isa = machine.table.name
  if x.packed or mnemonic.startswith("v_div_scale"): return
  rows = [r for r in rows_of(machine.table, mnemonic) if r.variant in {"", "e32", "e64"}
          and r.family in {"VOP1", "VOP2", "VOP3", "VOPC"}]
  if not rows or any(t.startswith(("s:", "exec", "scc")) for t in (*x.sources, *x.results)): return
  row, lanes = rows[0], wave_size(isa)
  total = len(_combinations(x.sources))
  for k, first in enumerate(range(0, total, lanes)):
    e = Encoder(machine.table, row, _rng(row, "boundary", isa))
    e.operands()
    made = e.done(PLAIN[isa], "all", lanes, f"boundary {k}", 1)
    if any(o.kind != "v" for n, o in made.instruction.operands.items() if n in {"src0", "src1"}): return
    yield _Boundary(**{n: getattr(made, n) for n in ("row", "code", "instruction", "mode", "mask", "lanes", "waves",
                                                      "seed", "note")}, first=first)


def _combinations(sources: tuple[str, ...]) -> list[tuple[int, ...]]:
  """Values for the sources that have types of their own, in order: all values, pairs or triples of few."""
  types = [t.removeprefix("d:") for t in sources if t not in {"mask", "vcc", "scc", "k", "ku"}]
  types = ["b" + t[1:] if t[0] == "m" else t for t in types]
  types = ["b32" if t == "v2f16" else t for t in types]
  count = {0: 0, 1: 64, 2: _PAIRS}.get(len(types), _TRIPLES)
  return list(itertools.product(*(_values(t, count) for t in types))) if types else []


def _at_boundaries(case: _Boundary, x: Witness) -> Prepared:
  """The case's states with the values of the table in the lanes' sources."""
  plain = expected(replace(case, note="plain"), x)
  start = plain.start
  rows = _combinations(x.sources)
  i = case.instruction
  names_left = iter(n for n in ("src0", "src1", "src2") if n in i.operands)
  places = []
  for t in x.sources:
    if t in {"vcc", "scc", "k", "ku"}: continue
    if t == "mask":
      next(names_left, None)
      continue
    if t.startswith("d:"): o = i.operands["vdst"]
    else:
      name = next(names_left, None)
      if name is None: continue  # a constant in the instruction
      o = i.operands[name]
    places.append((o, width_of(t)))
  for lane in range(case.lanes * case.waves):
    values = rows[(case.first + lane) % len(rows)]
    for (o, bits), value in zip(places, values):
      if o.kind != "v": continue
      if bits == 16: start.v[o.value][lane] = value | value << 16
      else:
        for k in range(-(-bits // 32)): start.v[o.value + k][lane] = value >> 32 * k & 0xFFFFFFFF
  return _again(case, start, x)


def _again(case: Case, start: Any, x: Witness) -> Prepared:
  """What the witness makes of a start."""
  from tinyhw.tools.witness.lanes import lane_witness
  wanted = replace(start, v=[r[:] for r in start.v], s=[r[:] for r in start.s], scc=start.scc[:],
                   mode=Mode(case.mode), loose={}, jump=[None] * case.waves)
  lane_witness(wanted, case.instruction, x)
  return Prepared(case, start, wanted)


# ---- what is wanted

def _witnessed(name: str, p: Prepared, differs: str) -> Baked:
  w = p.wanted
  return Baked(name, p, np.array(w.v, np.uint32), np.array(w.s, np.uint32), np.array(w.scc, bool), w.mode.value,
               bytes(w.memory), bytes(w.lds), differs)


def bake(machine: Bench, name: str, p: Prepared, model: bool = True) -> Baked:
  """What is wanted of a case. Without `model`, the witness's words alone."""
  if not model: return _witnessed(name, p, "")
  case, shape = p.case, (p.case.waves, p.case.lanes)
  try:
    outcome = machine.execute(p)
    text = compare(p, outcome)
  except Error as error: return _witnessed(name, p, f"{type(error).__name__}: {error}")
  if text: return _witnessed(name, p, text)
  group = outcome[0]
  v = np.stack([np.broadcast_to(group.v[k].view(np.uint32), shape).reshape(-1) for k in range(len(p.start.v))])
  s = np.stack([np.broadcast_to(group.s[k], (case.waves, 1)).reshape(-1) for k in range(len(p.start.s))])
  scc = np.broadcast_to(group.scc, (case.waves, 1)).reshape(-1).astype(bool)
  memory = machine.memory.u8[:len(p.start.memory)].tobytes() if p.start.memory else b""
  return Baked(name, p, v, s, scc, int(group.mode), memory, group.cohort.lds.tobytes() if p.start.lds else b"")


def barred(b: Baked) -> str:
  """Why a kernel that judges itself cannot ask about the case; "" where it can."""
  case, start, wanted = b.case, b.prepared.start, b.prepared.wanted
  if case.instruction.mnemonic == "s_endpgm": return "every kernel ends with it"
  if not b.flow and any(j is not None for j in wanted.jump) or "fork" in b.mnemonic or "cbranch_join" in b.mnemonic:
    return "forks: a stack of places in the code that the kernel has not"
  if start.gds: return "GDS: a launch is given none"
  if b.vgprs > VGPRS and (b.vgprs <= AGPR0 or b.vgprs - AGPR0 > VGPRS): return f"{b.vgprs} vector registers"
  if b.sgprs > (MEMORY_SGPRS if start.memory or start.lds else SGPRS): return f"{b.sgprs} scalar registers"
  return ""


def manual_section(mnemonic: str, arch: str) -> str:
  """Section of the manual that describes an instruction; of two together, of the first."""
  return section(mnemonic.split("+")[0].replace("v_dual_", "v_"), bench(arch).table.name)
