"""Random machine code for as long as wished: instructions against the witness, programs on both engines, any bytes.

    python -m tinyhw.tools.fuzz.campaign --seconds 3600
    python -m tinyhw.tools.fuzz.campaign --programs 100000 --seed 7 --only bytes
    make fuzz SECONDS=600

Every program has a number; `--seed N` starts there, so that a run that was stopped goes on, and one that failed is run
again alone with `--seed N --programs 1`. It stops at the first thing that is wrong.
"""
from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tinyhw.arch import decoded
from tinyhw.core.errors import EncodeError, TinyhwError
from tinyhw.core.memory import Access, AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch, coverage
from tinyhw.emulator.amdgcn import dispatch as interpret
from tinyhw.emulator.engines import dispatch
from tinyhw.isa.amdgcn import Row, Table, table
from tinyhw.isa.amdgcn_asm import assemble
from tinyhw.tools.witness import registers_all
from tinyhw.tools.witness.cases import Encoder, dpp_control
from tinyhw.tools.witness.run import bench
from tinyhw.tools.witness.table import WITNESSES, Witness

GPUS: Final = ("gfx1100", "gfx1201", "gfx942")
CODE: Final = 0x7F00_0000_0000
DATA: Final = 0x7F10_0000_0000
PAGE: Final = 4096
WATCHDOG: Final = 400  # instructions of a wave that runs random bytes
MEMORY_LIMIT: Final = 3 << 20  # KiB of this process


class Wrong(Exception):
  """A random program did what it must not."""


# ---- one instruction

@cache
def witnessed(gpu: str) -> list[str]:
  """Mnemonics of a GPU that the witness knows and the emulator means."""
  generation = bench(gpu).table
  return sorted(m for m in generation.by_mnemonic if WITNESSES.get(m, generation.name)
                and coverage.status(m, generation.name) != "missing")


def instruction(number: int) -> None:
  """The forms of one instruction, drawn by the number, against the witness."""
  rng = random.Random(number)
  gpu = rng.choice(GPUS)
  name = rng.choice(witnessed(gpu))
  wrong = bench(gpu).check(name, salt=f" {number}")
  if wrong: raise Wrong(f"{gpu}: {wrong[0]}")


# ---- any bytes as code

class Playground:
  """Memory of one GPU for random programs: code, and data that they may reach through s[0:1]."""

  def __init__(self, gpu: str) -> None:
    self.arch = decoded(gpu)
    self.space, self.code, self.data = AddressSpace("fuzz"), Region("code", PAGE), Region("data", 4 * PAGE)
    self.space.map(CODE, PAGE, self.code, access=Access.READ | Access.EXECUTE)
    self.space.map(DATA, 4 * PAGE, self.data, access=Access.READ | Access.WRITE | Access.ATOMIC)
    self.rows = [r for r in table(self.arch.isa).rows()]

  def start(self, lanes: int, waves: int) -> Dispatch:
    """One workgroup, with the data's address in s[0:1] and scratch in its last page."""
    users = 2
    return Dispatch(CODE, (1, 1, 1), (lanes * waves, 1, 1), 7 | 0xF0 << 12, users << 1,
                    user_data=(DATA & 0xFFFFFFFF, DATA >> 32, *[0] * 14), scratch_base=DATA + 3 * PAGE, scratch_size=16,
                    scratch_waves=4, lds_size=512, wave32=lanes == 32)


@cache
def playground(gpu: str) -> Playground: return Playground(gpu)


def any_bytes(number: int) -> None:
  """Random bytes, or opcodes with random fields: the emulator ends, or says one clear thing, and stays what it is."""
  rng = random.Random(number)
  p = playground(GPUS[number % 3])
  words = bytearray()
  while len(words) < 96:
    if rng.random() < 0.3: words += rng.randbytes(4)
    else:
      row: Row = rng.choice(p.rows)
      noise = rng.getrandbits(8 * row.size) & ~row.mask & (1 << 8 * row.size) - 1
      words += (row.value | noise).to_bytes(row.size, "little")
  p.code.u8[:len(words)] = np.frombuffer(bytes(words), np.uint8)
  p.code.u8[len(words):256] = 0
  lanes = 64 if p.arch.isa == "gfx9" else rng.choice((32, 32, 64))
  try: interpret(p.space, p.arch, p.start(lanes, 1 + number % 2), watchdog=WATCHDOG)
  except TinyhwError as error:
    if not str(error) or "\n" in str(error): raise Wrong(f"an error of no line or of several: {error!r}") from error


# ---- programs, on both engines

class Writer(Encoder):
  """Registers at random: v2 to v17, s8 to s39."""

  def take_vgpr(self, dwords: int, half: str) -> int:
    first = self.rng.randrange(2, 18 - max(1, dwords)) & (~1 if dwords > 1 else ~0)
    return max(2, first) | (self.rng.randrange(2) << 7 if half == "h" else 0)

  def take_sgpr(self, dwords: int) -> int:
    step = 4 if dwords > 2 else 2
    return 8 + self.rng.randrange(32 // step) * step


@cache
def arithmetic(isa: str) -> list[Row]:
  """Rows of exact instructions that work on registers alone."""
  out: list[Row] = []
  registers_all()
  for row in table(isa).rows():
    x = WITNESSES.get(row.mnemonic, isa)
    if isinstance(x, Witness) and coverage.status(row.mnemonic, isa) == "exact" and row.variant != "sdwa":
      if not any(t.startswith("s:") for t in x.results): out.append(row)
  return out


def one_of(generation: Table, rng: random.Random) -> bytes:
  """A random arithmetic instruction."""
  while True:
    row = rng.choice(arithmetic(generation.name))
    e = Writer(generation, row, rng)
    sources = [o[0] for o in row.operands if o[2] == "x" and o[3] <= 2]
    if "dpp_ctrl" in row.fields:
      e.fields |= {"dpp_ctrl": dpp_control(generation.name, rng), "row_mask": 15, "bank_mask": 15}
    if "dpp8" in row.fields: e.fields["dpp8"] = rng.getrandbits(24)
    try:
      e.operands(other=rng.choice(sources) if sources and rng.random() < 0.4 and "dpp" not in row.variant else "")
      if rng.random() < 0.3: e.random_bits("neg", "abs", "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp")
      return e.done(0xF0, "all", 32, "").code
    except (EncodeError, TinyhwError, ValueError): continue


def program(number: int) -> bytes:
  """Load registers, compute with branches over parts of it, store all registers. gfx11 and gfx12."""
  rng = random.Random(number)
  generation = table("gfx11" if number % 2 else "gfx12")
  def line(text: str) -> bytes: return assemble(text, generation)
  code = line("v_and_b32_e32 v0, 0x3ff, v0") + line("v_lshlrev_b32_e32 v1, 2, v0")
  for k in range(2, 18): code += line(f"global_load_b32 v{k}, v1, s[0:1] offset:{128 * (k - 2)}")
  for k in range(8, 40): code += line(f"s_mov_b32 s{k}, {rng.getrandbits(32):#x}")
  body = [one_of(generation, rng) for _ in range(rng.randrange(4, 24))]
  at = 0
  while at < len(body):
    part = body[at:at + rng.randrange(1, 6)]
    if rng.random() < 0.5:
      size = sum(map(len, part)) // 4
      condition = rng.choice(("scc0", "scc1", "vccz", "vccnz", "execz", "execnz"))
      code += line(f"s_cbranch_{condition} {size}")
    code += b"".join(part)
    at += len(part)
  code += line("s_mov_b32 exec_lo, -1")
  for k in range(2, 18): code += line(f"global_store_b32 v1, v{k}, s[0:1] offset:{128 * (k - 2)}")
  for k in range(8, 16):
    code += line(f"v_mov_b32_e32 v2, s{k}") + line(f"global_store_b32 v1, v2, s[0:1] offset:{2048 + 128 * (k - 8)}")
  return code + line("s_endpgm")


def both_engines(number: int) -> None:
  """A random program on the reference and compiled: the same memory."""
  code = program(number)
  p = playground("gfx1100" if number % 2 else "gfx1201")
  p.code.u8[:len(code)] = np.frombuffer(code, np.uint8)
  p.data.u8[:] = np.frombuffer(random.Random(number + 1).randbytes(p.data.size), np.uint8)
  dispatch(p.space, p.arch, p.start(32, 1), watchdog=10_000, engine="both")


KINDS: Final[dict[str, tuple[Callable[[int], None], int]]] = {  # kind -> (what runs one, how many in a round)
  "instructions": (instruction, 2), "programs": (both_engines, 1), "bytes": (any_bytes, 200)}


def run(seconds: float, programs: int, seed: int, only: str = "") -> dict[str, tuple[int, float]]:
  """Run until the time or the number is over: kind -> (how many ran, seconds). Raises Wrong with the number."""
  done = {kind: (0, 0.0) for kind in KINDS if not only or kind == only}
  began, number = time.monotonic(), seed
  while True:
    for kind in done:
      one, share = KINDS[kind]
      for _ in range(share):
        if sum(n for n, _ in done.values()) >= programs or time.monotonic() - began >= seconds: return done
        start = time.monotonic()
        try: one(number)
        except Exception as error:
          raise Wrong(f"{kind} {number}: {type(error).__name__}: {error} (--only {kind} --seed {number} --programs 1)"
                      ) from error
        done[kind] = done[kind][0] + 1, done[kind][1] + time.monotonic() - start
        number += 1
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if used > MEMORY_LIMIT: raise Wrong(f"{used >> 10} MiB of memory in use after program {number}")


def main() -> int:
  """Run, and say how many of what, how fast, and where to go on."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.fuzz.campaign", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, default=60.0)
  parser.add_argument("--programs", type=int, default=1 << 62, help="stop after this many")
  parser.add_argument("--seed", type=int, default=0, help="number of the first program")
  parser.add_argument("--only", default="", choices=("", *KINDS))
  options = parser.parse_args()
  try: done = run(options.seconds, options.programs, options.seed, options.only)
  except Wrong as wrong:
    print(wrong, file=sys.stderr)
    return 1
  for kind, (count, spent) in done.items():
    print(f"{kind}: {count:,} in {spent:.1f} s, {count / max(spent, 1e-9):,.0f} a second")
  print(f"nothing wrong; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB of memory at most; "
        f"go on with --seed {options.seed + sum(n for n, _ in done.values())}")
  return 0


if __name__ == "__main__": sys.exit(main())
