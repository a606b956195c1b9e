"""A chip as the witness of the PTX emulator: what it made of probes, and whether the emulator makes the same.

    python -m tinyhw.tools.ledger.chip plan FILE [--ptx]     kernels of all probes, as cubins (ptxas) or as PTX
    python -m tinyhw.tools.ledger.chip run FILE OUT          on a machine with the chip: what each made
    python -m tinyhw.tools.ledger.chip keep FILE OUT --card "NVIDIA H200" --driver 580.159.04 --date 2026-11-27
    python -m tinyhw.tools.ledger.chip                       the emulator beside the record

`tools/witness/ptx/probes` makes the probes; the record has their texts, inputs and outputs, so that it stands when they
change. Bits must agree; of approximations, which have the manual's bounds, the distance is told.

`tests/recordings` has the record of an NVIDIA H200, what RM told of it, and what CUDA's driver
wrote (`tools/nvcapture`). The emulator, the mock and the driver are held to them; what differs has
its reason beside it.
"""
from __future__ import annotations

import argparse
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tinyhw.isa.ptx.forms import SIZES
from tinyhw.tools.witness.ptx import probes
from tinyhw.tools.witness.ptx.probes import OWN, Probe

Array = Any
RECORD: Final = Path(__file__).resolve().parents[2] / "tests/recordings/ptx_sm90.xz"
CHUNK: Final = 140  # probes that a process runs
BATCH: Final = 48  # probes of a kernel on the emulator


@dataclass(frozen=True)
class Made:
  """What a chip made of a probe: of each result the threads' bits, and its memory afterwards."""
  results: tuple[tuple[int, ...], ...]
  memory: bytes


@dataclass(frozen=True)
class Image:
  """A probe's kernel as a card takes it; without a binary ptxas has refused it."""
  probe: Probe
  binary: bytes
  refused: str = ""


def _bits(type_: str) -> int: return 1 if type_ == "pred" else 8 * SIZES[type_]


def assembled(probe: Probe) -> Image:
  """A probe's kernel, by ptxas."""
  with tempfile.TemporaryDirectory() as folder:
    text, out = Path(folder, "k.ptx"), Path(folder, "k.cubin")
    text.write_text(probes.kernel([probe], True))
    command = ["ptxas", f"-arch={probes.TARGET}", str(text), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode: return Image(probe, b"", (done.stderr + done.stdout).strip().split("\n")[0])
    return Image(probe, out.read_bytes())


def plan(wanted: Iterable[Probe], ptx: bool = False) -> list[Image]:
  """The kernels of probes."""
  if ptx: return [Image(p, probes.kernel([p], True).encode()) for p in wanted]
  with ThreadPoolExecutor(os.cpu_count()) as pool: return list(pool.map(assembled, wanted))


# ---- on the card

def run_one(image: Image, device: str) -> Made:
  """Run a probe on a device of `tinyhw.launch`."""
  from tinyhw.kernels.launch import launch
  p = image.probe
  out = np.zeros((max(len(p.results), 1), p.threads), np.uint64)
  memory = np.frombuffer(p.memory.ljust(OWN, b"\0"), np.uint8)
  found = launch(image.binary, "k", 1, p.threads, [probes.operands([p]), out, memory], device=device)
  return _made(p, found[1], found[2].tobytes()[:len(p.memory)])


def _made(p: Probe, out: Array, memory: bytes) -> Made:
  rows = [tuple(int(x) & (1 << _bits(t)) - 1 for x in out[k]) for k, t in enumerate(p.results)]
  return Made(tuple(rows), memory)


def work(file: str, first: int, last: int, out: str, device: str) -> None:
  """Run some of a plan, one line of the result for each; a probe that loses the context ends the process."""
  images: list[Image] = pickle.loads(lzma.decompress(Path(file).read_bytes()))
  with open(out, "ab") as stream:
    for k in range(first, last):
      if not images[k].binary: continue
      try:
        found = run_one(images[k], device)
        made: Any = found.results, found.memory
      except Exception as error: made = f"{type(error).__name__}: {error}"
      stream.write(pickle.dumps((k, made)))
      stream.flush()
      if isinstance(made, str): os._exit(3)  # the context may be gone


def run(file: str, out: str, device: str, jobs: int) -> None:
  """Run a plan in processes, and write what each probe made, or why not, by its number."""
  images: list[Image] = pickle.loads(lzma.decompress(Path(file).read_bytes()))
  whole: dict[int, Any] = {}
  count = sum(bool(i.binary) for i in images)
  started = time.monotonic()

  def chunk(first: int) -> dict[int, Any]:
    last, got = min(first + CHUNK, len(images)), dict[int, Any]()
    while first < last:
      if not images[first].binary:
        first += 1
        continue
      with tempfile.NamedTemporaryFile() as room:
        command = [sys.executable, "-m", "tinyhw.tools.ledger.chip", "work", file, str(first), str(last), room.name,
                   "--device", device]
        try: subprocess.run(command, timeout=120)
        except subprocess.TimeoutExpired: print("timed out near", first, file=sys.stderr, flush=True)
        before = first
        with open(room.name, "rb") as stream:
          while True:
            try: k, made = pickle.load(stream)
            except EOFError: break
            got[k], first = made, k + 1
        if first == before:  # it told nothing
          got[first] = "the process ended"
          first += 1
    return got
  with ThreadPoolExecutor(jobs) as pool:
    for some in pool.map(chunk, range(0, len(images), CHUNK)):
      whole |= some
      Path(out).write_bytes(lzma.compress(pickle.dumps(whole), preset=1))
      print(f"{len(whole)} of {count} in {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
  failed = {k: v for k, v in whole.items() if isinstance(v, str)}
  for k, why in failed.items(): print(images[k].probe.form, "|", why[:200])
  print(f"{len(whole)} probes, {len(failed)} failed")


# ---- the record

@dataclass(frozen=True)
class Kept:
  """A probe, and what the chip made of it."""
  probe: Probe
  made: Made


def _packed(columns: Sequence[Sequence[int]], types: Sequence[str]) -> bytes:
  return b"".join(x.to_bytes(-(-_bits(t) // 8), "little") for t, column in zip(types, columns) for x in column)


def keep(file: str, out: str, header: dict[str, str], path: Path = RECORD) -> None:
  """Write the record: a line of JSON that says which probes there are, then the bits of their columns, each once."""
  images: list[Image] = pickle.loads(lzma.decompress(Path(file).read_bytes()))
  made: dict[int, Any] = pickle.loads(lzma.decompress(Path(out).read_bytes()))
  where: dict[bytes, int] = {}
  blob, rows = bytearray(), []

  def put(data: bytes) -> int:
    if data not in where:
      where[data] = len(blob)
      blob.extend(data)
    return where[data]
  for k, image in enumerate(images):
    p = image.probe
    if isinstance(made.get(k, ""), str) or p.form.startswith("cvta.param"): continue  # an address of the process
    results, memory = made[k]
    rows.append([p.form, p.text, p.results, p.sources, p.serial, p.threads, len(p.memory), put(p.memory), put(memory),
                 [put(_packed([c], [t])) for c, t in zip(p.given, p.sources)],
                 [put(_packed([c], [t])) for c, t in zip(results, p.results)]])
  refused = sorted({i.probe.form for i in images if not i.binary})
  head = json.dumps({**header, "probes": rows, "refused by ptxas": refused}, separators=(",", ":"))
  path.parent.mkdir(exist_ok=True)
  path.write_bytes(lzma.compress(head.encode() + b"\n" + bytes(blob), preset=9 | lzma.PRESET_EXTREME))


@cache
def record(path: Path = RECORD) -> tuple[dict[str, str], list[Kept]]:
  """(what the record says of itself, its probes)."""
  head, _, blob = lzma.decompress(path.read_bytes()).partition(b"\n")
  said = json.loads(head)

  def column(at: int, type_: str, threads: int) -> tuple[int, ...]:
    size = -(-_bits(type_) // 8)
    return tuple(int.from_bytes(blob[at + size * k:at + size * (k + 1)], "little") for k in range(threads))
  found = []
  for form, text, results, sources, serial, threads, size, memory, after, given, made in said.pop("probes"):
    p = Probe(form, text, tuple(results), tuple(sources),
              tuple(column(at, t, threads) for at, t in zip(given, sources)), blob[memory:memory + size], serial,
              threads)
    found.append(Kept(p, Made(tuple(column(at, t, threads) for at, t in zip(made, results)), blob[after:after + size])))
  return said, found


# ---- the emulator beside it

IN, OUT, MEM, PARAMS, VARIABLES = (k << 32 for k in range(1, 6))


def emulated(batch: Sequence[Probe], engine: str = "ref") -> tuple[list[Made], set[str]]:
  """What the emulator makes of probes that have as many threads, and what compiled code left to the reference."""
  from tinyhw.core.memory import AddressSpace, Region
  from tinyhw.emulator.engines.ptx import dispatch
  from tinyhw.emulator.ptx.launch.grid import Dispatch
  from tinyhw.emulator.ptx.module.link import link
  from tinyhw.emulator.ptx.program import Program
  from tinyhw.isa.ptx import parse
  threads = batch[0].threads
  linked, space = link(parse(probes.kernel(batch))), AddressSpace("chip")
  count = sum(len(p.results) for p in batch)
  memory = b"".join(p.memory.ljust(OWN, b"\0") for p in batch)
  params = b"".join(x.to_bytes(8, "little") for x in (IN, OUT, MEM))
  program = Program(linked, "k", VARIABLES)
  for at, content in ((IN, probes.operands(batch).tobytes()), (OUT, bytes(8 * threads * max(count, 1))), (MEM, memory),
                      (PARAMS, params), (VARIABLES, linked.bytes_at(VARIABLES, program.functions))):
    region = Region("data", -(-max(len(content), 1) // 4096) * 4096)
    space.map(at, region.size, region)
    space.write(at, content)
  stats = dispatch(space, Dispatch(program, (1, 1, 1), (threads, 1, 1), PARAMS, len(params)), engine=engine)
  out = np.frombuffer(space.read(OUT, 8 * threads * max(count, 1)), np.uint64).reshape(-1, threads)
  found, at = [], 0
  for k, p in enumerate(batch):
    n = len(p.results)
    found.append(_made(p, out[at:at + n], bytes(space.read(MEM + OWN * k, OWN))[:len(p.memory)]))
    at += n
  return found, {w.split(" ")[0] for w in stats.interpreted}


def batches(wanted: Iterable[Kept]) -> Iterator[list[Kept]]:
  """Probes that go together."""
  by: dict[int, list[Kept]] = {}
  for one in wanted: by.setdefault(one.probe.threads, []).append(one)
  for of in by.values():
    for first in range(0, len(of), BATCH): yield of[first:first + BATCH]


# Where the emulator goes on to disagree, and why: a pattern of forms, the reason.
DIFFER: Final = (
  (r"v(add|sub|absdiff|min|max|shl|shr|set|mad)\.", "scalar video instructions: where signs are mixed, what ptxas 13.0 "
   "makes of them for sm_90 saturates, and compares with the third operand, otherwise than the manual's pseudocode"),
  (r"(fma|mad)\.r[nzmp]\.f64", "which NaN of several comes out: the chip has the addend's first"),
  (r"mul\..*ftz\.sat\.f32", "the chip flushes a product that is below the least normal number before it is rounded"),
  (r"cvt\.rp\.ftz\.sat\.f16\.f32", "ptxas 13.0 does not flush the source there"),
  (r"ld\..*v8\.[busf]8", "ptxas 13.0 takes eight bytes for sm_90 and makes code that leaves registers as they were"),
  (r"w?mma\..*f64\.f64", "sums of f64: in an order that is not known here"),
  (r"mma\.sync.*\.(e4m3|e5m2)\.(e4m3|e5m2)\.", "fp8 for sm_90: ptxas makes other products of them, whose order is not "
   "known here"),
  (r"mma\.sync\.aligned\.m8n8k4.*f16\.f16", "sm_90 has no unit for them"),
  (r"wgmma\.mma_async\.sp.*f(16|32)\.(b?f16|tf32|e[45]m[32])", "sums of sparse products as the chip's are refused"))
_APART: Final = {"f64": 1 << 32, "f32": 1 << 8}  # numbers between two approximations; 1 of halves
_ABSOLUTE: Final = {"sin": 2.0 ** -20, "cos": 2.0 ** -20, "lg2": 2.0 ** -21}  # the manual's bounds are absolute
_TURNS: Final = 3.15  # between -pi and pi
_NEAR: Final = re.compile(r"\.approx|^div\.full")


def reason(form: str) -> str | None:
  """Why an instruction may differ; None where it may not."""
  return next((why for pattern, why in DIFFER if re.match(pattern, form)), None)


def near(form: str) -> bool:
  """Whether an instruction is an approximation, of which the manual gives bounds alone."""
  return _NEAR.search(form) is not None


def _ordered(bits: int, size: int) -> int:
  top = 1 << size - 1
  return top - bits if bits & top else bits


def distance(kept: Kept, made: Made) -> int:
  """How many numbers lie between the chip's and the emulator's results, at most; NaN beside a number is -1. Of
  functions whose bound is absolute, differences below it are none, and of sines only arguments of a turn count."""
  most, op = 0, kept.probe.form.split(".")[0]
  for r, (t, xs, ys) in enumerate(zip(kept.probe.results, kept.made.results, made.results)):
    parts = 2 if t.endswith("x2") else 1
    size = _bits(t) // parts
    exponent = {"f64": 0x7FF << 52, "f32": 0xFF << 23}.get(t, 0x7F80 if "bf16" in kept.probe.form else 0x7C00)
    for k in range(parts):
      for x, y, given in zip(xs, ys, kept.probe.given[r]):
        a, b = (v >> size * k & (1 << size) - 1 for v in (x, y))
        nans = [v & (1 << size - 1) - 1 > exponent for v in (a, b)]
        if nans[0] != nans[1]: return -1
        if nans[0]: continue
        if op in _ABSOLUTE:
          p, q, at = np.array([a, b, given], np.uint32).view(np.float32).astype(np.float64)
          if op != "lg2" and not abs(at) < _TURNS or p == q or abs(p - q) < _ABSOLUTE[op]: continue
        most = max(most, abs(_ordered(a, size) - _ordered(b, size)))
  return most


@dataclass(frozen=True)
class Beside:
  """A probe on the emulator: what it made, None where it is refused; what compiled code left to the reference."""
  kept: Kept
  made: Made | None
  interpreted: frozenset[str]

  @property
  def agrees(self) -> bool: return self.made == self.kept.made


def beside(wanted: Iterable[Kept], engine: str = "ref") -> Iterator[Beside]:
  """Probes on the emulator, with the sums of a chip."""
  every, before = list(wanted), os.environ.get("EMU_SUMS")
  os.environ["EMU_SUMS"] = "chip"
  try:
    refused = [k for k in every if re.match("|".join(pattern for pattern, _ in DIFFER[-2:]), k.probe.form)]
    yield from (Beside(k, None, frozenset()) for k in refused)
    for batch in batches(k for k in every if not any(k is r for r in refused)):
      made, left = emulated([k.probe for k in batch], engine)
      yield from (Beside(k, m, frozenset(left)) for k, m in zip(batch, made))
  finally:
    if before is None: del os.environ["EMU_SUMS"]
    else: os.environ["EMU_SUMS"] = before


def agreed(found: Iterable[Beside]) -> tuple[set[str], list[Beside]]:
  """(instructions that agree wherever they were tried, what disagrees without a reason); approximations that are near
  agree."""
  right, wrong, off = set[str](), set[str](), []
  for one in found:
    form = one.kept.probe.form
    good = one.agrees or one.made is not None and near(form) \
      and 0 <= distance(one.kept, one.made) <= _APART.get(one.kept.probe.results[0], 1)
    (right if good else wrong).add(form)
    if not good and reason(form) is None: off.append(one)
  return right - wrong, off


def show() -> int:
  """Print the emulator beside the record."""
  said, kept = record()
  print("; ".join(f"{k}: {v}" for k, v in said.items() if isinstance(v, str)))
  found = list(beside(kept))
  right, off = agreed(found)
  far: dict[str, int] = {}
  for one in found:
    if one.made is not None and near(one.kept.probe.form):
      far[one.kept.probe.form] = max(far.get(one.kept.probe.form, 0), distance(one.kept, one.made), key=abs)
  for form, n in sorted(far.items()): print(f"  {form}: {n} numbers apart at most")
  for pattern, why in DIFFER:
    rows = [b for b in found if not b.agrees and re.match(pattern, b.kept.probe.form)]
    print(f"  {len(rows)} probes of {len({b.kept.probe.form for b in rows})} instructions: {why}")
  for one in off: print("  without a reason:", one.kept.probe.form, one.kept.probe.text[:100])
  print(f"{len(found)} probes, {sum(b.agrees for b in found)} bit for bit; {len(right)} instructions agree, {len(off)} "
        "probes disagree without a reason")
  return int(bool(off))


def main() -> None:
  """The command."""
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.ledger.chip")
  commands = parser.add_subparsers(dest="command")
  planned = commands.add_parser("plan", help="make the kernels of all probes")
  planned.add_argument("file")
  planned.add_argument("--ptx", action="store_true", help="as PTX, for a mock card")
  for name in ("run", "work"):
    on_card = commands.add_parser(name, help="run a plan" if name == "run" else "a process of run")
    on_card.add_argument("file")
    if name == "work":
      on_card.add_argument("first", type=int)
      on_card.add_argument("last", type=int)
    on_card.add_argument("out")
    on_card.add_argument("--device", default="CUDA", help="a device of tinyhw.launch")
    on_card.add_argument("--jobs", type=int, default=8, help="processes at a time")
  stored = commands.add_parser("keep", help="write the record")
  stored.add_argument("file")
  stored.add_argument("out")
  for name in ("card", "driver", "date"): stored.add_argument(f"--{name}", required=True)
  o = parser.parse_args()
  if o.command == "plan": Path(o.file).write_bytes(lzma.compress(pickle.dumps(plan(probes.every(), o.ptx)), preset=1))
  elif o.command == "run": run(o.file, o.out, o.device, o.jobs)
  elif o.command == "keep":
    keep(o.file, o.out, {"card": o.card, "driver": o.driver, "date": o.date, "ptxas": "13.0",
                         "command": "python -m tinyhw.tools.ledger.chip run PLAN OUT"})
  elif o.command is None: sys.exit(show())
  elif o.command == "work": work(o.file, o.first, o.last, o.out, o.device)


if __name__ == "__main__": main()
