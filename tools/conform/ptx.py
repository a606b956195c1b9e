"""The suite of PTX: kernels with the wanted results in the module's own memory, for any device that runs PTX.

Cases are the witness's (`tools/witness/ptx`: Python integers and exact floats, from NVIDIA's manual) and the probes of
an NVIDIA H200's record (tests/recordings/ptx_sm90.xz), of which the card has said what is right. A thread compares its
results with what is baked in and says that it has passed, or that it is the first that has not. Where the manual leaves
a result open the kernel leaves it to who reads what it stored.
"""
from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.tools.campaign.task import Answer
from tinyhw.tools.conform.judge import Result
from tinyhw.tools.conform.patterns import fits
from tinyhw.tools.conform.run import ALONE, Spread, answered, spread
from tinyhw.tools.ledger import chip
from tinyhw.tools.ledger.ptx_forms import form_of
from tinyhw.tools.witness.ptx import bench, probes, table
from tinyhw.tools.witness.ptx.table import Case

Array = Any
Word = Any  # the bits that are right, or a function that says whether bits are
SUITE: Final = "ptx"
MANUAL: Final = "PTX ISA 9.0"
RECORDED: Final = "ptx/sm_90-record"
BATCH: Final = 24  # cases of a kernel
PORTIONS: Final = 32  # of the suite, for a cluster
FAILED: Final = 0xFFFFFFFF  # what the first failure is where there is none
TEXTURES: Final = "its object is of the driver's making: textures, surfaces, multicast"


@dataclass(eq=False)
class PtxCase:
  """A case: an instruction with what each thread gives it, and what is right. `wanted` has a row for each result."""
  id: str
  form: str
  text: str
  results: tuple[str, ...]
  sources: tuple[str, ...]
  given: tuple[tuple[int, ...], ...]
  wanted: tuple[tuple[Word, ...], ...]
  threads: int = bench.THREADS
  memory: bytes = b""
  left: bytes | None = None  # that memory after all threads, where it is looked at
  serial: bool = False
  target: str = probes.TARGET
  version: tuple[int, int] = (9, 0)
  barred: str = ""

  @property
  def kernel_judges(self) -> list[bool]:
    """Of each result, whether the kernel can compare it."""
    return [SIZES[t] <= 8 and all(isinstance(w, int) for w in row) for t, row in zip(self.results, self.wanted)]


# ---- cases

def of_witness(seed: int = 0, opcodes: Sequence[str] | None = None) -> Iterator[PtxCase]:
  """A case of each form, and cases that have each modifier; of these opcodes, or of all."""
  count: dict[str, int] = {}
  seen = set[str]()
  wanted = [c for c in bench.of_table("", 1, seed, form_of, opcodes) if form_of(c.form) is not None]
  for opcode in table.MAKERS if opcodes is None else opcodes:
    more = list(bench.covering([opcode], seed))
    wanted += random.Random(f"{seed} {opcode}").sample(more, min(len(more), probes.MANY.get(opcode, probes.FEW)))
  for case in wanted:
    if case.setup + case.text in seen: continue
    seen.add(case.setup + case.text)
    number = count[case.form] = count.get(case.form, -1) + 1
    yield _of_case(f"ptx/{case.form}/{number}" + (f"@{seed}" if seed else ""), case,
                   random.Random(f"{seed} {case.text}"))


def _of_case(ident: str, case: Case, rng: random.Random) -> PtxCase:
  row = forms.find(case.form)
  version = max((9, 0), row.row.version) if row is not None else (9, 0)
  made = PtxCase(ident, case.form, case.setup + case.text, case.results, case.sources, (), (),
                 target=bench.target(case), version=version)
  if case.form.split(".")[0] in probes.LEFT:
    made.barred = TEXTURES
    return made
  made.memory = b"" if case.memory is None else case.memory(1 << 32)
  if case.memory is not None and made.memory != case.memory(1 << 40):
    made.barred = "its memory holds addresses"
    return made
  if len(made.memory) > probes.OWN:
    made.barred = f"{len(made.memory)} bytes of memory"
    return made
  rows = bench._drawn(case, rng)
  made.given = tuple(zip(*rows)) if case.sources else ()
  if case.effect is not None: made.left, made.serial = case.effect(made.memory, rows), True
  whole = ([r for k in range(0, len(rows), 32) for r in case.function(rows[k:k + 32])] if case.warp
           else [case.function(*r) for r in rows])
  right = [r if isinstance(r, tuple) else (r,) for r in whole]
  masks = [(1 << (1 if t == "pred" else 8 * SIZES[t])) - 1 for t in case.results]
  made.wanted = tuple(tuple(r[k] & m if isinstance(r[k], int) else r[k] for r in right) for k, m in enumerate(masks))
  return made


def of_record() -> Iterator[PtxCase]:
  """The probes whose results an NVIDIA H200 has said; none where this installation lacks the record."""
  if not chip.RECORD.exists(): return
  count: dict[str, int] = {}
  for kept in chip.record()[1]:
    p = kept.probe
    number = count[p.form] = count.get(p.form, -1) + 1
    made = PtxCase(f"{RECORDED}/{p.form}/{number}", p.form, p.text, p.results, p.sources, p.given, kept.made.results,
                   p.threads, p.memory, kept.made.memory if p.memory else None, p.serial)
    why = chip.reason(p.form)
    if why is not None: made.barred = f"the card does otherwise than the manual: {why}"
    elif chip.near(p.form): made.wanted = tuple(_close(kept, k) for k in range(len(p.results)))
    yield made


def _close(kept: chip.Kept, k: int) -> tuple[Word, ...]:
  """Of an approximation: judges of whether a result is about the card's."""
  def judge(thread: int) -> Word:
    def near(got: int) -> bool:
      rows = [list(r) for r in kept.made.results]
      rows[k][thread] = got
      apart = chip.distance(kept, chip.Made(tuple(map(tuple, rows)), kept.made.memory))
      return 0 <= apart <= chip._APART.get(kept.probe.results[k], 2)
    return near
  return tuple(judge(t) for t in range(kept.probe.threads))


# ---- kernels

def kernel(batch: Sequence[PtxCase]) -> str:
  """The module: cases that have as many threads and one target. Parameters: operands, results, memory, verdicts."""
  lines, wanted, given, made, threads = list[str](), list[int](), 0, 0, batch[0].threads
  for number, c in enumerate(batch):
    names = [bench.register(t, k) for k, t in enumerate((*c.results, *c.sources))]
    n = len(c.results)
    lines.append(f"ld.param.u64 %l75, [mem]; add.u64 %l75, %l75, {probes.OWN * number};")
    for t, name in zip(c.sources, names[n:]):
      lines.append(bench.load(t, name, 8 * threads * given))
      given += 1
    for t, name in zip(c.results, names[:n]):
      if t != "pred" and SIZES[t] < 16: lines.append(f"mov.b{8 * max(SIZES[t], 2)} {name}, 0;")
    text = c.text.format(*names, M="%l75", N=number)
    if c.serial:
      text = (f"mov.u32 %r77, 0; T{number}: setp.ne.u32 %p31, %r77, %r79; @%p31 bra S{number};\n{text}\n"
              f"S{number}: bar.sync 0; add.u32 %r77, %r77, 1; setp.lt.u32 %p31, %r77, {threads}; @%p31 bra T{number};")
    lines += [text, f"mov.u32 %u0, {FAILED:#x};"]
    for k, (t, name, judges) in enumerate(zip(c.results, names[:n], c.kernel_judges)):
      at = 8 * threads * made
      lines.append(bench.store(t, name, at))
      made += 1
      if not judges: continue
      lines += [f"ld.global.u64 %w0, [%l79+{at}]; ld.global.u64 %w1, [%w4+{8 * len(wanted)}];",
                f"setp.ne.u64 %z0, %w0, %w1; @%z0 min.u32 %u0, %u0, {k << 16};"]
      wanted += c.wanted[k]
    if c.left is not None:
      lines += ["bar.sync 0; membar.gl; mul.wide.u32 %w2, %r79, 4; add.u64 %w2, %w2, %l75;"]
      left = c.left.ljust(-(-len(c.left) // (8 * threads)) * 8 * threads, b"\0")
      for at in range(0, len(left), 4 * threads):
        lines += [f"ld.global.u32 %u1, [%w2+{at}]; ld.global.u32 %u2, [%w5+{8 * len(wanted) + at}];",
                  f"setp.ne.u32 %z0, %u1, %u2; @%z0 min.u32 %u0, %u0, {0xFFFF0000 | at:#x};"]
      wanted += np.frombuffer(left, np.uint64).tolist()
    lines += [f"setp.eq.u32 %z0, %u0, {FAILED:#x}; or.b32 %u0, %u0, %r79;",
              f"@%z0 red.global.add.u32 [%w3+{8 * number}], 1; @!%z0 red.global.min.u32 [%w3+{8 * number + 4}], %u0;"]
  body, version = "\n".join(lines), max(c.version for c in batch)
  baked = ", ".join(map(str, wanted or [0]))
  return f""".version {version[0]}.{version[1]}
.target {batch[0].target}
.address_size 64
.shared .align 1024 .b8 sh[8192];
.global .align 8 .u64 want[{max(1, len(wanted))}] = {{{baked}}};
.visible .entry k (.param .u64 in, .param .u64 out, .param .u64 mem, .param .u64 said) {{
  .reg .pred %p<32>; .reg .b16 %h<80>; .reg .b32 %r<80>; .reg .b64 %l<80>; .reg .b128 %q<4>;
  .reg .b64 %w<6>; .reg .b32 %u<3>; .reg .pred %z<1>;  // ours: the cases' texts have the others
  ld.param.u64 %l78, [in]; ld.param.u64 %l79, [out]; ld.param.u64 %w3, [said];
  mov.u32 %r79, %tid.x;
  mov.u64 %w4, want; mul.wide.u32 %w5, %r79, 4; add.u64 %w5, %w5, %w4;
  mad.wide.u32 %w4, %r79, 8, %w4;
  mad.wide.u32 %l78, %r79, 8, %l78; mad.wide.u32 %l79, %r79, 8, %l79;
{body}
  ret;
}}
"""


def launched(batch: Sequence[PtxCase], device: str, timeout: float) -> tuple[Array, Array, Array]:
  """(results [results, threads], memory [cases, bytes], verdicts [cases, 2]) of a kernel of cases."""
  from tinyhw.kernels.launch import launch
  threads = batch[0].threads
  columns = [column for c in batch for column in c.given]
  given = np.array(columns or [(0,) * threads], np.uint64)
  out = np.zeros((max(1, sum(len(c.results) for c in batch)), threads), np.uint64)
  memory = np.frombuffer(b"".join(c.memory.ljust(probes.OWN, b"\0") for c in batch), np.uint8)
  said = np.array([[0, FAILED]] * len(batch), np.uint32)
  _, found, after, told = launch(kernel(batch), "k", 1, threads, [given, out, memory, said], device, timeout=timeout)
  return found, after.reshape(len(batch), -1), told


# ---- what came of it

def _result(c: PtxCase, verdict: str, detail: str = "", **more: Any) -> Result:
  h = hashlib.blake2b(f"{c.text} {c.sources} {c.given}".encode() + c.memory, digest_size=8)
  return Result(c.id, form_of(c.form) or c.form, c.form.split(".")[0], c.form, "", c.text.strip(), "", verdict, detail,
                asked=h.hexdigest() if verdict != "not asked" else "", **more)


def judged(c: PtxCase, found: Array, memory: bytes, told: Array) -> Result:
  """The result of a case: the kernel's word, and ours where it had none."""
  masks = [(1 << (1 if t == "pred" else 8 * SIZES[t])) - 1 for t in c.results]
  got = [[int(x) & m for x in row] for row, m in zip(found, masks)]
  mark = hashlib.blake2b(repr(got).encode() + (memory if c.left is not None else b""), digest_size=8).hexdigest()
  passed, first = int(told[0]), int(told[1])
  for k, row in enumerate(c.wanted):
    for thread, want in enumerate(row):
      right = want == got[k][thread] if isinstance(want, int) else bool(want(got[k][thread]))
      if right: continue
      difference = {"instruction": c.text.strip(), "lane": thread, "where": f"result {k}",
                    "wanted": hex(want) if isinstance(want, int) else "about another value",
                    "found": hex(got[k][thread]),
                    "operands": {f"source {n}": f"{column[thread]:#x}" for n, column in enumerate(c.given)}}
      text = f"result {k} of thread {thread}: wanted {difference['wanted']}, found {difference['found']}"
      return _result(c, "fail", text, difference=difference, digest=mark)
  if c.left is not None and memory != c.left:
    at = next(k for k, (x, y) in enumerate(zip(memory, c.left)) if x != y) & ~3
    return _result(c, "fail", f"memory at {at:#x}: wanted {c.left[at:at + 4].hex()}, found {memory[at:at + 4].hex()}",
                   digest=mark)
  if passed != c.threads:
    return _result(c, "error", f"{passed} of {c.threads} threads say that they passed, the first that did not says "
                   f"{first:#x}, and what they stored is right", digest=mark)
  return _result(c, "pass", digest=mark)


def run_batch(batch: Sequence[PtxCase], device: str, timeout: float) -> Iterator[Result]:
  """The results of a kernel's cases; what ends the launch is taken apart."""
  try: found, memory, told = launched(batch, device, timeout)
  except Error as error:
    if len(batch) == 1:
      kind = "unsupported" if type(error).__name__ == "Unsupported" else "error"
      yield _result(batch[0], kind, f"{type(error).__name__}: {error}".split("\n")[0])
      return
    for some in (batch[:len(batch) // 2], batch[len(batch) // 2:]): yield from run_batch(some, device, timeout)
    return
  at = 0
  for number, c in enumerate(batch):
    n = len(c.results)
    yield judged(c, found[at:at + n], memory[number].tobytes()[:len(c.memory)], told[number])
    at += n


def opcodes_of(only: Sequence[str]) -> list[str] | None:
  """The opcodes of which cases may fit the patterns; None for all."""
  heads = [re.split(r"[.*?\[/]", p.removeprefix(f"{RECORDED}/").removeprefix(f"{SUITE}/"))[0] for p in only]
  if not heads or not all(p.startswith(f"{SUITE}/") and h for p, h in zip(only, heads)): return None
  return [o for o in table.MAKERS if any(o.startswith(h) for h in heads)]


def every(seed: str, only: Sequence[str] = ()) -> Iterator[PtxCase]:
  """The cases that fit: the witness's, and of the suite's own seed the record's."""
  number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=4).digest(), "little") if seed else 0
  whole, opcodes = [p for p in only if p.startswith(RECORDED)], opcodes_of(only)
  if not only or len(whole) < len(only): yield from (c for c in of_witness(number, opcodes) if fits(c.id, only))
  if not seed and (whole or opcodes is None): yield from (c for c in of_record() if fits(c.id, only))


@contextmanager
def _sums(of_chip: bool) -> Iterator[None]:
  """Have emulated devices add up matrices' products as the recorded card does, which the manual leaves open."""
  before = os.environ.get("EMU_SUMS")
  if of_chip and before is None: os.environ["EMU_SUMS"] = "chip"
  try: yield
  finally:
    if of_chip and before is None: del os.environ["EMU_SUMS"]


def for_device(c: PtxCase, sm: int) -> None:
  """Make a case one for a device, or say why it is none."""
  row = forms.find(c.form)
  if c.id.startswith(RECORDED): c.barred = c.barred or ("" if sm == 90 else "recorded on sm_90")
  elif row is not None and row.row.sm > sm: c.barred = c.barred or f"for sm_{row.row.sm} and later"
  else: c.target = f"sm_{sm}{'a' if sm >= 90 else ''}"


def run(cases: Iterable[PtxCase], device: str, timeout: float, sm: int | None = None) -> list[Result]:
  """The results of cases, in order. `sm` is the device's target, None where it runs all."""
  out: dict[str, Result] = {}
  every_one = list(cases)
  groups: dict[tuple[str, int, bool], list[PtxCase]] = {}
  for c in every_one:
    if sm is not None: for_device(c, sm)
    if c.barred: out[c.id] = _result(c, "not asked", c.barred)
    else: groups.setdefault((c.target, c.threads, c.id.startswith(RECORDED)), []).append(c)
  for (_, _, recorded), some in groups.items():
    with _sums(recorded):
      for first in range(0, len(some), BATCH):
        for r in run_batch(some[first:first + BATCH], device, timeout): out[r.id] = r
  return [out[c.id] for c in every_one]


def sources() -> dict[str, str]:
  """Which record the suite has, by its hash and what it says of the card."""
  if not chip.RECORD.exists(): return {"record": "not in this installation: a checkout has tests/recordings"}
  said = chip.record()[0]
  digest = hashlib.sha256(chip.RECORD.read_bytes()).hexdigest()
  card = ", ".join(f"{k} {v}" for k, v in said.items() if isinstance(v, str) and k != "command")
  return {"record": f"{chip.RECORD.name}, sha256 {digest[:16]}: {card}"}


def compute() -> list[tuple[str, str, str, str]]:
  """The forms of PTX that have a meaning: (form, section, opcode, why none is asked)."""
  from tinyhw.tools.ledger.ptx import entries
  return [(e.form, "", e.form.split(".")[0], "no case of the witness, and none recorded" if e.effect else
           "has no effect that a kernel could see") for e in entries() if e.meaning]


def run_all(device: str, only: Sequence[str], seed: str, timeout: float, by: Spread = ALONE,
            progress: Callable[[int, int], None] = lambda done, of: None) -> list[Result]:
  """The results of the cases that fit, by several processes or machines where `by` says so."""
  sm = device_sm(device)
  if by.alone: return run(every(seed, only), device, timeout, sm)
  given = {"device": device, "only": list(only), "seed": seed, "timeout": timeout, "sm": sm}
  found = spread(by, "ptx", f"{__name__}:portion", PORTIONS if by.scheduler else by.jobs, given, progress)
  return sorted(found, key=lambda r: r.id)


def portion(number: int, parameters: Mapping[str, Any]) -> Answer:
  """A portion of the cases, as a task of a campaign."""
  p = parameters
  cases = list(every(p["seed"], p["only"]))[number::p["portions"]]
  return answered(run(cases, p["device"], p["timeout"], p["sm"]))


def device_sm(device: str) -> int | None:
  """The number of a device's target ("sm_90": 90); None for EMU, which runs all."""
  from tinyhw.devices.registry import Device
  runtime: Any = Device[device].runtime
  if hasattr(runtime, "capability"):
    major, minor = runtime.capability
    return 10 * int(major) + int(minor)
  name = getattr(getattr(runtime, "arch", None), "name", "")
  return int(name[3:].rstrip("af")) if name.startswith("sm_") else None
