"""Cases on the emulator: a kernel loads each thread's operands, executes the instruction and stores its results.

    python -m tinyhw.tools.witness.ptx.bench            every form of the table, with what disagrees
    python -m tinyhw.tools.witness.ptx.bench '^vadd'    those of a pattern
"""
from __future__ import annotations

import itertools
import random
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import forms, parse
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.tools.witness.ptx import models
from tinyhw.tools.witness.ptx.draw import values
from tinyhw.tools.witness.ptx.table import Case, cases

THREADS: Final = 64
BATCH: Final = 64
MOST: Final = 600  # names of a row that are all looked at
PAGE: Final = 4096
TARGETS: Final = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")
IN, OUT, PARAMS, VARIABLES = 0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000, 0x4_0000_0000
interpreted: set[str] = set()  # what compiled code left to the reference, by name
_LETTERS: Final = {1: "h", 2: "h", 4: "r", 8: "l"}


@dataclass(frozen=True)
class Wrong:
  """A case whose result the witness does not have."""
  case: Case
  sources: tuple[int, ...]
  found: tuple[int, ...]
  wanted: Any

  def __str__(self) -> str:
    given = ", ".join(f"{x:#x}" for x in self.sources)
    found = ", ".join(f"{x:#x}" for x in self.found)
    wanted = self.wanted if isinstance(self.wanted, tuple) else (self.wanted,)
    right = ", ".join(hex(x) if isinstance(x, int) else "?" for x in wanted)
    return f"{self.case.text} of {given}: {found}; witness: {right}"


def register(type_: str, number: int) -> str:
  return f"%p{number}" if type_ == "pred" else f"%{_LETTERS[SIZES[type_]]}{number}"


def load(type_: str, register: str, at: int) -> str:
  if type_ == "pred": return f"ld.global.u32 %r78, [%l78+{at}]; setp.ne.u32 {register}, %r78, 0;"
  return f"ld.global.b{8 * max(SIZES[type_], 2)} {register}, [%l78+{at}];"


def store(type_: str, register: str, at: int) -> str:
  if type_ == "pred": return f"selp.u32 %r78, 1, 0, {register}; st.global.u32 [%l79+{at}], %r78;"
  return f"st.global.b{8 * SIZES[type_]} [%l79+{at}], {register};"


def target(case: Case) -> str:
  """The first target that has an instruction."""
  form = forms.find(case.form)
  return next((t for t in TARGETS if form is None or form.row.sm <= int(t[3:-1])), TARGETS[-1])


def _own(k: int) -> int:
  """The address of a case's own memory."""
  return 0x5_0000_0000 + 0x10_0000 * k


def _kernel(batch: Sequence[Case]) -> str:
  """A kernel of cases: the operands of one behind those of the other, 8 bytes times threads each."""
  lines, given, made = list[str](), 0, 0
  for number, case in enumerate(batch):
    names = [register(t, k) for k, t in enumerate((*case.results, *case.sources))]
    n = len(case.results)
    for type_, name in zip(case.sources, names[n:]):
      lines.append(load(type_, name, 8 * THREADS * given))
      given += 1
    lines.append((case.setup + case.text).format(*names, M=_own(number)))
    for type_, name in zip(case.results, names[:n]):
      lines.append(store(type_, name, 8 * THREADS * made))
      made += 1
  body = "\n".join(lines)
  rows = [form.row for c in batch if (form := forms.find(c.form)) is not None]
  major, minor = max([(9, 0), *(row.version for row in rows)])
  return f""".version {major}.{minor}
.target {max(map(target, batch), key=TARGETS.index, default=TARGETS[0])}
.address_size 64
.global .texref tx;
.global .samplerref sm;
.global .surfref su;
.shared .align 8 .b8 sh[64];
.visible .entry k (.param .u64 in, .param .u64 out) {{
  .reg .pred %p<32>; .reg .b16 %h<32>; .reg .b32 %r<80>; .reg .b64 %l<80>; .reg .b128 %q<4>;
  ld.param.u64 %l78, [in]; ld.param.u64 %l79, [out];
  mov.u32 %r79, %tid.x;
  mad.wide.u32 %l78, %r79, 8, %l78; mad.wide.u32 %l79, %r79, 8, %l79;
{body}
  ret;
}}"""


def _run(batch: Sequence[Case], given: Any, results: int, engine: str) -> tuple[Any, AddressSpace]:
  """(the results u64 [results, threads] of operands u64 [operands, threads], memory as it is then)."""
  linked = link(parse(_kernel(batch)))
  space = AddressSpace("witness")
  params = IN.to_bytes(8, "little") + OUT.to_bytes(8, "little")
  size = 8 * THREADS * max(results, 1)
  own = [(_own(k), c.memory(_own(k))) for k, c in enumerate(batch) if c.memory is not None]
  fixed = (IN, given.tobytes()), (OUT, bytes(size)), (PARAMS, params), (VARIABLES, bytes(linked.size))
  for at, content in (*fixed, *own):
    region = Region("data", -(-max(len(content), 1) // PAGE) * PAGE)
    space.map(at, region.size, region)
    space.write(at, content)
  program = Program(linked, "k", VARIABLES)
  space.write(VARIABLES, linked.bytes_at(VARIABLES, program.functions))
  stats = dispatch(space, Dispatch(program, (1, 1, 1), (THREADS, 1, 1), PARAMS, 16), engine=engine)
  interpreted.update(w.split(" ")[0] for w in stats.interpreted)
  return np.frombuffer(space.read(OUT, size), np.uint64).reshape(-1, THREADS), space


def check(wanted: Sequence[Case], seed: int = 0, engine: str = "ref") -> Iterator[Wrong]:
  """Run cases on drawn operands; the first thread of each where emulator and witness differ."""
  ordered = sorted(wanted, key=target)
  groups = [[*of] for _, of in itertools.groupby(ordered, target)]
  for batch in (of[start:start + BATCH] for of in groups for start in range(0, len(of), BATCH)):
    drawn = [_drawn(c, random.Random(f"{seed} {c.text}")) for c in batch]
    columns: list[Any] = [row for rows in drawn for row in zip(*rows)]
    table = np.array(columns or [[0] * THREADS], np.uint64)
    found, space = _run(batch, table, sum(len(c.results) for c in batch), engine)
    at = 0
    for number, (case, rows) in enumerate(zip(batch, drawn)):
      masks = [(1 << (1 if t == "pred" else 8 * SIZES[t])) - 1 for t in case.results]
      if case.effect is not None and case.memory is not None:
        before = case.memory(_own(number))
        left, wanted_memory = bytes(space.read(_own(number), len(before))), case.effect(before, rows)
        if left != wanted_memory:
          first = next(k for k in range(len(left)) if left[k] != wanted_memory[k])
          yield Wrong(case, (first,), (left[first],), wanted_memory[first])
          continue
      whole = [r for k in range(0, THREADS, 32) for r in case.function(rows[k:k + 32])] if case.warp else None
      for thread, sources in enumerate(rows):
        got = tuple(int(found[at + k, thread]) & mask for k, mask in enumerate(masks))
        right = whole[thread] if whole is not None else case.function(*sources)
        all_right = right if isinstance(right, tuple) else (right,)
        if not all(w(g) if callable(w) else w & m == g for w, g, m in zip(all_right, got, masks, strict=True)):
          yield Wrong(case, sources, got, right)
          break
      at += len(case.results)


def _drawn(case: Case, rng: random.Random) -> list[tuple[int, ...]]:
  """The sources' bits of each thread."""
  if case.draw is not None: return [case.draw(rng) for _ in range(THREADS)]
  columns = [values(t, rng, THREADS) for t in case.sources]
  return list(zip(*columns)) if columns else [()] * THREADS


def drawn_names(row: forms.Row, rng: random.Random) -> list[str]:
  """Some names of a row that has too many: each choice of types, with as little else as there may be, and at random."""
  typed = [any(c in SIZES for c in choices) for _, choices in row.slots]
  out = []
  for plainly in (True, False, False, False, False):
    options = [choices if t else ("",) if optional and (plainly or rng.random() < 0.6) else (rng.choice(choices),)
               for (optional, choices), t in zip(row.slots, typed)]
    out += [".".join([row.opcode, *filter(None, chosen)]) for chosen in itertools.product(*options)]
  return out


def _types(name: str) -> object: return tuple(w for w in name.split(".") if w in SIZES)


def of_table(pattern: str = "", most: int = 1, seed: int = 0, key: Callable[[str], object] = _types,
             opcodes: Collection[str] | None = None) -> Iterator[Case]:
  """The cases of the table's instructions that fit a pattern: of each row `most` random names for each key, which are
  the types unless it says otherwise."""
  assert models
  for opcode, rows in forms.rows().items():
    for row in rows if opcodes is None or opcode in opcodes else ():
      rng = random.Random(f"{seed} {row}")
      chosen: dict[object, list[str]] = {}
      names = list(row.combinations()) if row.size <= MOST else drawn_names(row, rng)
      for name in dict.fromkeys(names): chosen.setdefault(key(name), []).append(name)
      for group in chosen.values():
        tried = 0
        for name in rng.sample(group, len(group)):
          made = cases(name, rng) if re.search(pattern, name) else []
          yield from made
          tried += bool(made)
          if tried == most: break


def covering(opcodes: Collection[str], seed: int = 0) -> Iterator[Case]:
  """Cases of instructions such that each modifier of a row is there with each choice of the row's types."""
  assert models
  for opcode, rows in forms.rows().items():
    for row in rows if opcode in opcodes else ():
      rng = random.Random(f"{seed} {row}")
      names = [*row.combinations()] if row.size <= MOST else [n for _ in range(6) for n in drawn_names(row, rng)]
      seen: set[object] = set()
      for name in rng.sample(names, len(names)):
        types = _types(name)
        new = {types, *((word, types) for word in name.split("."))}
        if new <= seen: continue
        made = cases(name, rng)
        if made: seen |= new
        yield from made


def main(pattern: str = "", most: str = "4", seed: str = "0") -> int:
  """Print what disagrees."""
  wanted = list(of_table(pattern, int(most), int(seed)))
  wrong = list(check(wanted, int(seed)))
  for one in wrong: print(one)
  print(f"{len(wanted)} cases of {len({c.form for c in wanted})} instructions, {len(wrong)} disagree")
  return int(bool(wrong))


if __name__ == "__main__": sys.exit(main(*sys.argv[1:]))
