"""Programs whose results on chips are known (`autogen/silicon.py`), on the emulator: the ledger's witness "silicon".

    python -m tinyhw.tools.ledger.silicon                  every program, both engines; what disagrees
    python -m tinyhw.tools.ledger.silicon --match div_scale

Programs of one kind run as one launch, one after the other, each with its own start and its own place for results.
What disagrees and why is in `autogen/errata/silicon.toml`; tests hold the list true.
"""
from __future__ import annotations

import argparse
import math
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from tinyhw.arch import decoded
from tinyhw.autogen import silicon as facts
from tinyhw.core.errors import DecodeError, Error
from tinyhw.core.memory import Access, AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.amdgcn.fields import FLOAT_MODE
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.isa.amdgcn import Instruction, table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.tools.witness.state import CODE

# The processors of a table, of which a program runs on the first that has its instructions.
CPUS: Final = {"gfx11": ("gfx1100", "gfx1150"), "gfx12": ("gfx1201",), "gfx9": ("gfx942",)}
MODE: Final = 0xC0  # FP_DENORM keeps those of f16 and f64; what a kernel has whose descriptor says nothing
VGPRS, SGPRS = 16, 16  # whose results are kept
DATA: Final = CODE + (1 << 36)
A_PROGRAM: Final = 1 << 16  # bytes of a program's buffer
LDS: Final = 1 << 16
SCRATCH: Final = 1 << 13
WATCHDOG: Final = 1_000_000
FLOATS: Final[dict[str, Any]] = {
  "f16": (np.uint16, np.float16), "f32": (np.uint32, np.float32), "f64": (np.uint64, np.float64)}
_PLACE: Final = re.compile(r"([\w:+]+)>>(\d+)&([0-9a-f]+)")


# ---- what is stated

@dataclass(frozen=True)
class Check:
  """One statement about results, as `autogen/silicon.py` has it."""
  text: str

  def holds(self, read: Results) -> bool:
    """Whether it is true of these results."""
    places, _, rest = self.text.partition(" ")
    words = rest.split()
    kind = words.pop(0) if words[0] in {*FLOATS, "u"} else ""
    how, values = words[0], words[1:]
    bits = [read.at(p) for p in places.split(",")]
    if not kind:
      wanted = read.at(values[0][1:]) if values[0].startswith("@") else int(values[0], 16)
      return _compared(bits[0], how, wanted)
    x = sum(float(b) if kind == "u" else _float(b, kind) for b in bits)
    if how.endswith(("nan", "inf")): return (math.isnan(x) if how.endswith("nan") else math.isinf(x)) != (how[0] == "!")
    y = float(values[0])
    if how == "~": return x == y or abs(x - y) <= float(values[1])
    return _compared(abs(x), how[3:], y) if how.startswith("abs") else _compared(x, how, y)

  def found(self, read: Results) -> str:
    """The statement, and what the results have in its place."""
    places = self.text.partition(" ")[0].split(",")
    return f"{self.text}: found {', '.join(f'{read.at(p):x}' for p in places)}"


def _compared(x: float, how: str, y: float) -> bool:
  return {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[how]


def _float(bits: int, kind: str) -> float:
  raw, number = FLOATS[kind]
  return float(raw(bits & int(np.iinfo(raw).max)).view(number))


@dataclass(frozen=True)
class ChipProgram:
  """A few instructions with what they leave in registers. `zeros`: v0 to v15, s0 to s15 and VCC are 0 at first."""
  name: str
  isa: str
  zeros: bool
  wave: int
  lanes: int
  code: bytes
  checks: tuple[Check, ...]

  @cached_property
  def cpu(self) -> str:
    """The processor that it runs on."""
    for name in CPUS[self.isa]:
      try: self._decoded(name)
      except DecodeError: continue
      return name
    return CPUS[self.isa][0]

  @cached_property
  def instructions(self) -> list[Instruction]:
    """The program decoded. Raises DecodeError for instructions that no processor of the table has."""
    return self._decoded(self.cpu)

  def _decoded(self, cpu: str) -> list[Instruction]:
    out, at, decode = [], 0, table(decoded(cpu).table).decode
    while at < len(self.code):
      out.append(decode(self.code, at))
      at += out[-1].size
    return out

  @property
  def mnemonics(self) -> set[str]:
    """What it executes, the halves of dual instructions apart."""
    return {half.strip().replace("v_dual_", "v_") for i in self.instructions for half in i.mnemonic.split("::")}


@cache
def programs() -> tuple[ChipProgram, ...]:
  """All programs."""
  out = []
  for line in facts.PROGRAMS.splitlines():
    name, isa, start, lanes, code, checks = line.split(";")
    out.append(ChipProgram(name, isa, start.startswith("zeros"), int(start[-2:]), int(lanes), bytes.fromhex(code),
                       tuple(map(Check, checks.split("|")))))
  return tuple(out)


# ---- running them

class Results:
  """What a program left: u32 [registers, lanes] and u32 [scalars, VCC, SCC, EXEC]."""

  def __init__(self, v: Any, s: Any) -> None: self._v, self._s = v, s

  def at(self, place: str) -> int:
    """The bits of a place."""
    found = _PLACE.fullmatch(place)
    assert found is not None, place
    value = sum(self._register(name) << 32 * k for k, name in enumerate(found[1].split("+")))
    return value >> int(found[2]) & int(found[3], 16)

  def _register(self, name: str) -> int:
    if name[0] == "v" and ":" in name:
      n, lane = map(int, name[1:].split(":"))
      return int(self._v[n, lane])
    return int(self._s[_scalar(name)])


@cache
def _line(isa: str, text: str) -> bytes: return assemble(text, table(isa))


def _text(isa: str, lines: Sequence[str]) -> bytes: return b"".join(_line(isa, x) for x in lines)


def _asked(p: ChipProgram) -> tuple[list[int], list[str]]:
  """The vector registers and the scalars that a program's checks are about."""
  names = {n for c in p.checks for found in _PLACE.finditer(c.text) for n in found[1].split("+")}
  return (sorted({int(n[1:].partition(":")[0]) for n in names if ":" in n}),
          sorted(n for n in names if ":" not in n))


def _used(p: ChipProgram, kind: str) -> set[int]:
  """The registers below 16 that a program's operands name; all of them where it may name others by a number."""
  if any("movrel" in m for m in p.mnemonics): return set(range(16))
  return {n for i in p.instructions for o in i.operands.values() if o.kind == kind
          for n in range(o.value, o.value + max(1, o.dwords)) if n < 16}


def _before(p: ChipProgram, arguments: int) -> list[str]:
  lines = [f"s_mov_b32 s80, {arguments & 0xFFFFFFFF:#x}", f"s_mov_b32 s81, {arguments >> 32:#x}",
           "v_mov_b32_e32 v255, v254"]
  if not p.zeros: return [*lines, "v_mov_b32_e32 v0, v254", "s_mov_b32 s0, s80", "s_mov_b32 s1, s81"]
  vectors, scalars = _asked(p)
  lines += [f"v_mov_b32_e32 v{k}, 0" for k in sorted(_used(p, "v").union(vectors))]
  used = {f"s{n}" for n in _used(p, "s")}.union(scalars) - _KEPT.keys()
  lines += [f"s_mov_b32 {name}, 0" for name in sorted(used)]
  return [*lines, "s_mov_b32 vcc_lo, 0"]


def _after(p: ChipProgram, out: int) -> list[str]:
  """Keep what is asked for at an address: vectors in rows of lanes, then scalars; EXEC is as at the start."""
  all_lanes = (1 << p.lanes) - 1
  vectors, scalars = _asked(p)
  dword = "dword" if p.isa == "gfx9" else "b32"
  lines = []
  if "scc" in scalars: lines.append("s_cselect_b32 s91, 1, 0")
  lines += ["s_mov_b32 s90, vcc_lo", "s_mov_b32 s94, exec_lo", f"s_mov_b32 exec_lo, {all_lanes & 0xFFFFFFFF:#x}"]
  if p.wave == 64: lines.append(f"s_mov_b32 exec_hi, {all_lanes >> 32:#x}")
  lines += [f"s_mov_b32 s92, {out & 0xFFFFFFFF:#x}", f"s_mov_b32 s93, {out >> 32:#x}",
            "v_lshlrev_b32_e32 v240, 2, v254"]
  lines += [f"global_store_{dword} v240, v{n}, s[92:93] offset:{4 * p.lanes * n}" for n in vectors]
  if scalars: lines.append(f"v_mov_b32_e32 v240, {4 * p.lanes * VGPRS:#x}")
  for name in scalars:
    lines += [f"v_mov_b32_e32 v241, {_KEPT.get(name, (0, name))[1]}",
              f"global_store_{dword} v240, v241, s[92:93] offset:{4 * _scalar(name)}"]
  return lines


# Scalars that are no s0 to s15: their place among the results, and where they are kept.
_KEPT: Final = {"vcc": (SGPRS, "s90"), "scc": (SGPRS + 1, "s91"), "exec": (SGPRS + 2, "s94")}


def _scalar(name: str) -> int: return _KEPT[name][0] if name in _KEPT else int(name[1:])


_LASTING: Final = re.compile(r"s_setreg|s_round_mode|s_denorm_mode|s_endpgm|s_getpc|s_setpc|s_swappc|s_call")


def batches(chosen: Sequence[ChipProgram]) -> Iterator[list[ChipProgram]]:
  """Programs that can run one after the other in one launch; what changes MODE, jumps far or has waves is alone."""
  together: dict[tuple[str, int, int], list[ChipProgram]] = {}
  for p in chosen:
    if p.lanes > p.wave or any(_LASTING.match(i.mnemonic) for i in p.instructions): yield [p]
    else: together.setdefault((p.cpu, p.wave, p.lanes), []).append(p)
  yield from together.values()


def run(batch: Sequence[ChipProgram], engine: str) -> list[Results]:
  """The results of programs of one kind. Raises what the emulator raises."""
  first, arch = batch[0], decoded(batch[0].cpu)
  scalars, size = SGPRS + len(_KEPT), 4 * first.lanes * VGPRS
  at = [DATA + 2 * k * A_PROGRAM for k in range(len(batch))]
  code = _text(first.isa, ["v_mov_b32_e32 v254, v0"])
  for p, data in zip(batch, at):
    code += _text(p.isa, _before(p, data + A_PROGRAM)) + p.code + _text(p.isa, _after(p, data + A_PROGRAM + 4096))
  code += _text(first.isa, ["s_endpgm"]) + bytes(256)
  space = AddressSpace("silicon")
  text, memory = Region("code", -(-len(code) // 4096) * 4096), Region("data", 2 * len(batch) * A_PROGRAM)
  scratch = Region("scratch", SCRATCH * 64)
  text.u8[:len(code)] = np.frombuffer(code, np.uint8)
  space.map(CODE, text.size, text, access=Access.READ | Access.EXECUTE)
  space.map(DATA, memory.size, memory, access=Access.READ | Access.WRITE | Access.ATOMIC)
  space.map(DATA - scratch.size, scratch.size, scratch, access=Access.READ | Access.WRITE | Access.ATOMIC)
  for place in at: space.write(place + A_PROGRAM, place.to_bytes(8, "little"))
  d = Dispatch(CODE, (1, 1, 1), (first.lanes, 1, 1), 63 | MODE << FLOAT_MODE.low | 1 << 21 | 1 << 23, 2 << 1 | 1 << 7,
               rsrc3=63, user_data=(0, 0), scratch_base=DATA - scratch.size, scratch_size=SCRATCH, scratch_waves=1,
               lds_size=LDS, wave32=first.wave == 32)
  dispatch(space, arch, d, engine=engine, watchdog=WATCHDOG)
  out = []
  for place in at:
    kept = np.frombuffer(space.read(place + A_PROGRAM + 4096, size + 4 * scalars), np.uint32)
    out.append(Results(kept[:size // 4].reshape(VGPRS, first.lanes), kept[size // 4:]))
  return out


@dataclass(frozen=True)
class Disagreement:
  """A program that leaves something else than it did on the chip, or does not run."""
  program: ChipProgram
  engine: str
  text: str

  def __str__(self) -> str: return f"{self.program.name} ({self.engine}): {self.text}"


def disagreements(chosen: Sequence[ChipProgram], engine: str) -> list[Disagreement]:
  """What is not as on the chip."""
  out: list[Disagreement] = []
  able: list[ChipProgram] = []
  for p in chosen:
    try: able += [p] if p.instructions else []
    except Error as error: out.append(Disagreement(p, engine, f"{type(error).__name__}: {error}"))
  for batch in batches(able):
    try: found = list(zip(batch, run(batch, engine)))
    except Error:
      found = []
      for p in batch:
        try: found.append((p, run([p], engine)[0]))
        except Error as error: out.append(Disagreement(p, engine, f"{type(error).__name__}: {error}"))
    for p, results in found:
      wrong = [c.found(results) for c in p.checks if not c.holds(results)]
      if wrong: out.append(Disagreement(p, engine, "; ".join(wrong)))
  return out


@dataclass(frozen=True)
class Known:
  """A program whose chip differs from the emulator, with the reason."""
  name: str
  why: str


@cache
def known() -> dict[str, Known]:
  """The disagreements that are understood, by the program's name."""
  path = Path(facts.__file__).parent / "errata" / "silicon.toml"
  if not path.exists(): return {}
  return {r["what"]: Known(r["what"], r["evidence"]) for r in tomllib.loads(path.read_text())["erratum"]}


def witnessed(isa: str) -> set[str]:
  """The mnemonics that programs execute whose results are those of the chip."""
  return {m for p in programs() if p.cpu == CPUS[isa][0] and p.name not in known() for m in p.mnemonics}


def main() -> int:
  """Run what the command line asks for; the exit status is 1 where a program disagrees that is not known to."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.ledger.silicon", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--match", default="", help="only programs whose name matches this regular expression")
  parser.add_argument("--engine", action="append", choices=("ref", "jit"))
  options = parser.parse_args()
  chosen, unknown = [p for p in programs() if re.search(options.match, p.name)], 0
  for engine in options.engine or ("ref", "jit"):
    found = disagreements(chosen, engine)
    for d in found:
      reason = known().get(d.program.name)
      unknown += reason is None
      print(f"{d}{f' [{reason.why}]' if reason else ''}")
    print(f"{engine}: {len(chosen) - len(found)} of {len(chosen)} programs leave what they left on the chip")
  return 1 if unknown else 0


if __name__ == "__main__": sys.exit(main())
