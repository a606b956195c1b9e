"""The random programs of the campaign, each drawn by its number: any bytes, instructions, programs on both engines."""
from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tinyhw.arch import decoded
from tinyhw.core.errors import DecodeError, EncodeError, Error
from tinyhw.core.memory import Access, AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch, coverage
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.emulator.engines.both import EnginesDiffer
from tinyhw.isa.amdgcn import Row, Table, table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.tools.fuzz import texts
from tinyhw.tools.witness import registers_all
from tinyhw.tools.witness.cases import Encoder, dpp_control
from tinyhw.tools.witness.run import bench
from tinyhw.tools.witness.state import CODE
from tinyhw.tools.witness.table import WITNESSES, Witness

GPUS: Final = ("gfx1100", "gfx1201", "gfx942")
DATA: Final = CODE + (1 << 36)
PAGE: Final = 4096
VALID: Final = 5_000  # instructions of a generation that programs are drawn from
WATCHDOG: Final = 400  # instructions of a wave that runs random bytes


class Wrong(Exception):
  """A random program did what it must not."""


# ---- one instruction

@cache
def witnessed(gpu: str) -> list[str]:
  """Mnemonics of a GPU that the witness knows and the emulator means."""
  generation = bench(gpu).table
  return sorted(m for m in generation.by_mnemonic if WITNESSES.get(m, generation.name)
                and coverage.status(m, generation.name) != "missing")


def instruction(number: int) -> str:
  """The forms of one instruction, drawn by the number, against the witness."""
  rng = random.Random(number)
  gpu = rng.choice(GPUS)
  name = rng.choice(witnessed(gpu))
  wrong = bench(gpu).check(name, salt=f" {number}")
  if wrong: raise Wrong(f"{gpu}: {wrong[0]}")
  return gpu


# ---- any bytes as code

class Playground:
  """Memory of one GPU for random programs: code, and data that they may reach through s[0:1]."""

  def __init__(self, gpu: str) -> None:
    self.arch = decoded(gpu)
    self.table = table(self.arch.isa)
    self.rows, self.end = list(self.table.rows()), assemble("s_endpgm", self.table)
    self.space, self.code, self.data = AddressSpace("fuzz"), Region("code", PAGE), Region("data", 4 * PAGE)
    self.space.map(CODE, PAGE, self.code, access=Access.READ | Access.EXECUTE)
    self.space.map(DATA, 4 * PAGE, self.data, access=Access.READ | Access.WRITE | Access.ATOMIC)

  def start(self, lanes: int, waves: int, vgprs: int = 7) -> Dispatch:
    """One workgroup, with the data's address in s[0:1] and scratch in its last page."""
    users = 2
    return Dispatch(CODE, (1, 1, 1), (lanes * waves, 1, 1), vgprs | 0xF0 << 12, users << 1,
                    user_data=(DATA & 0xFFFFFFFF, DATA >> 32, *[0] * 14), scratch_base=DATA + 3 * PAGE, scratch_size=16,
                    scratch_waves=4, lds_size=512, wave32=lanes == 32)


@cache
def playground(gpu: str) -> Playground: return Playground(gpu)


def _noise(p: Playground, rng: random.Random) -> bytes:
  """An opcode of the table with random fields; they may make no instruction."""
  row: Row = rng.choice(p.rows)
  noise = rng.getrandbits(8 * row.size) & ~row.mask & (1 << 8 * row.size) - 1
  return (row.value | noise).to_bytes(row.size, "little")


@cache
def valid(gpu: str) -> list[bytes]:
  """Instructions with random fields that can be decoded, the same ones in each process."""
  p, rng = playground(gpu), random.Random(gpu)
  out: list[bytes] = []
  while len(out) < VALID:
    code = _noise(p, rng)
    try: p.table.decode(code + bytes(16 - len(code)))
    except DecodeError: continue
    out.append(code)
  return out


def bytes_of(number: int) -> bytes:
  """1 to 16 words: valid instructions, opcodes with random fields, random words; as many of each as the number says."""
  rng, gpu = random.Random(number), GPUS[number % 3]
  noisy, words, size = rng.choice((0.0, 0.02, 0.1, 0.5)), bytearray(), 4 * rng.randrange(1, 1 + rng.choice((4, 8, 16)))
  while len(words) < size:
    kind = rng.random()
    words += rng.randbytes(4) if kind < noisy / 2 else _noise(playground(gpu), rng) if kind < noisy else \
      rng.choice(valid(gpu))
  return bytes(words[:size])


def _bytes_on(number: int, engine: str) -> str:
  p = playground(GPUS[number % 3])
  code = bytes_of(number)
  p.code.u8[:len(code)] = np.frombuffer(code, np.uint8)
  end = p.end if number % 50 else bytes(4)
  p.code.u8[len(code):256] = np.frombuffer(end * 64, np.uint8)[:256 - len(code)]
  before = p.code.u8.tobytes()
  d = p.start(64 if p.arch.isa == "gfx9" or number & 4 else 32, 1 + number % 2, 63)
  ending = "ended"
  try: dispatch(p.space, p.arch, d, watchdog=WATCHDOG, engine=engine)
  except EnginesDiffer: raise
  except Error as error:
    if not str(error) or "\n" in str(error): raise Wrong(f"an error of no line or of several: {error!r}") from error
    ending = type(error).__name__
  if p.code.u8.tobytes() != before: raise Wrong("code changed that nobody may write")
  return ending


def any_bytes(number: int) -> str:
  """Random bytes as code: the emulator ends, or says one clear thing, and stays what it is. Returns how it ended."""
  return _bytes_on(number, "ref")


def bytes_on_both(number: int) -> str:
  """Random bytes as code, interpreted and compiled: the same end, the same memory and registers."""
  return _bytes_on(number, "both")


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
      e.fields |= {"dpp_ctrl": dpp_control(row, rng), "row_mask": 15, "bank_mask": 15}
    if "dpp8" in row.fields: e.fields["dpp8"] = rng.getrandbits(24)
    try:
      e.operands(other=rng.choice(sources) if sources and rng.random() < 0.4 and "dpp" not in row.variant else "")
      if rng.random() < 0.3: e.random_bits("neg", "abs", "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp")
      return e.done(0xF0, "all", 32, "").code
    except (EncodeError, Error, ValueError): continue


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


def both_engines(number: int) -> str:
  """A random program on the reference and compiled: the same memory."""
  code = program(number)
  p = playground("gfx1100" if number % 2 else "gfx1201")
  p.code.u8[:len(code)] = np.frombuffer(code, np.uint8)
  p.data.u8[:] = np.frombuffer(random.Random(number + 1).randbytes(p.data.size), np.uint8)
  dispatch(p.space, p.arch, p.start(32, 1), watchdog=10_000, engine="both")
  return p.arch.name


KINDS: Final[dict[str, Callable[[int], str]]] = {  # kind -> what runs the program of a number and says how it ended
  "bytes": any_bytes, "compiled": bytes_on_both, "instructions": instruction, "programs": both_engines,
  "texts": texts.any_text, "compiled-texts": texts.text_compiled, "nvrtc-texts": texts.nvrtc_text,
  "files": texts.any_file}
