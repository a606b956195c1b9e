"""Has a device run kernels that judge themselves, and says what became of each case.

What ends a whole launch (a fault, a refusal, a hang) is taken apart: halves are run again until the case is alone.
"""
from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tinyhw.arch import decoded
from tinyhw.core.errors import DeviceError, Error, LDSWarning, Unsupported
from tinyhw.isa.amdgcn.codes import AGPR0
from tinyhw.tools.campaign.run import rows
from tinyhw.tools.campaign.store import surroundings
from tinyhw.tools.campaign.task import Answer, Limits, Task
from tinyhw.tools.conform import flow, silicon
from tinyhw.tools.conform.cases import Baked, bake, barred, drawn, names
from tinyhw.tools.conform.harness import PASS, SPECIALS
from tinyhw.tools.conform.image import NAME
from tinyhw.tools.conform.judge import BAD, Found, Result, judged, result
from tinyhw.tools.conform.kernel import Packed, numbers, pack, packs
from tinyhw.tools.conform.patterns import fits
from tinyhw.tools.witness.run import bench

Array = Any
TIMEOUT: Final = 120.0  # seconds that a launch of many cases may take
MANY: Final = 60  # names of a portion
FEW: Final = 15  # of one for a cluster: the last is not waited for long
HANG: Final = 3600.0  # seconds that a portion may take; each launch in it has its own limit


# Why no case is asked about an instruction that compute code can use; by how its name begins.
UNASKED: Final = {
  "ds_gws_": "global wave sync: its resource is given by the kernel driver, not by a launch",
  "ds_ordered_count": "counts in the order in which waves were created, which a launch does not fix",
  "global_atomic_ordered_add": "adds in the order in which waves were created, which a launch does not fix",
  "s_sendmsg": "a message to the chip's front end: the wave sees nothing of it",
  "s_sethalt": "stops the wave, for a debugger", "s_setkill": "ends the wave where it stands",
  "s_trap": "enters the trap handler, which the kernel driver has",
  "s_code_end": "stands behind code, and is not executed",
  "s_endpgm_saved": "ends a wave that is saved for another time",
  "s_subvector_loop": "goes round for the halves of a wave of 64, and has no case yet",
  "s_memtime": "a clock", "s_memrealtime": "a clock",
  "s_barrier_signal": "a barrier of several waves; a case has a wave for itself",
  "s_get_barrier_state": "a barrier of several waves; a case has a wave for itself"}


@dataclass(frozen=True)
class Options:
  """What is asked of whom: `only` are patterns of identifiers, of which a case must fit one."""
  arch: str
  device: str
  only: tuple[str, ...] = ()
  seed: str = ""
  timeout: float = TIMEOUT
  dut: str = ""  # the command of a program to ask instead of a device


def wanted_names(o: Options) -> list[str]:
  """The mnemonics and groups that may have a case that fits."""
  found = names(o.arch)
  chips = [silicon.GROUP] if not o.seed and (not o.only or any("silicon" in p for p in o.only)) else []
  if not o.only: return found + chips
  out = chips
  for name in found:
    if name.startswith("@"):  # two instructions in one have names of their own, in which no other's is
      if name != "@dual" or not all(re.search(r"/?[a-z]+_", p) and "dual" not in p for p in o.only): out.append(name)
      continue
    here = f"{o.arch}/{name}/"
    for p in o.only:
      plain = p.split("*")[0].split("?")[0].split("[")[0]
      whole = set(p) & set("*?[")
      if not whole and (p in here or here in p or "/" not in p or p.split("/")[0] in name): out.append(name)
      elif whole and (here.startswith(plain) or plain.startswith(here) or not plain): out.append(name)
      else: continue
      break
  return out


def baked(o: Options, chosen: Sequence[str]) -> Iterator[Baked]:
  """The cases of these names that fit."""
  machine = bench(o.arch)
  for name in chosen:
    for d in drawn(o.arch, name, o.seed):
      if not fits(d.id, o.only): continue
      p = d.make()
      b = (flow.bake if flow.is_flow(p.case.instruction.mnemonic) else bake)(machine, d.id, p)
      b.barred = barred(b)
      yield b


def launched(p: Packed, device: str, timeout: float) -> Array:
  """The memory that the kernel wrote, in dwords."""
  from tinyhw.kernels.launch import launch
  out = np.zeros(-(-p.size // 4), np.uint32)
  with warnings.catch_warnings():
    warnings.simplefilter("ignore", LDSWarning)  # cases go past the end of LDS on purpose
    return launch(p.binary, NAME, p.grid, p.layout.lanes, [out], device=device, timeout=timeout)[0]


def found_in(p: Packed, memory: Array, slot: int) -> Found | None:
  """What a wave left; None where all was as wanted."""
  if int(memory[slot]) == PASS: return None
  x, b = p.layout, p.waves[slot][0]
  first = p.found_at(slot) // 4
  rows = memory[first:first + x.rows * x.lanes].reshape(x.rows, x.lanes)
  v = np.zeros((b.vgprs, x.lanes), np.uint32)
  for k, register in enumerate(numbers(x)):
    if register < b.vgprs: v[register] = rows[k]
  if x.accumulators:  # those between the two kinds are in no file
    for k in range(x.vgprs - x.accumulators, AGPR0): v[k] = b.v[k, :x.lanes]
  last = rows[-1]
  at = p.memory_at(slot)
  whole = memory[at // 4:(at + x.memory + x.lds) // 4].tobytes()
  return Found(v, rows[x.vgprs:x.vgprs + x.groups].reshape(-1)[:x.sgprs],
               {name: int(last[k]) for k, name in enumerate(SPECIALS)},
               whole[:x.memory] if x.memory else None, whole[x.memory:] if x.lds else None)


def run_pack(p: Packed, o: Options) -> Iterator[Result]:
  """The results of a code object's cases, in order."""
  cases = list(dict.fromkeys(b for b, _ in p.waves))
  try: memory = launched(p, o.device, o.timeout)
  except Error as error:
    if len(cases) == 1:
      yield result(cases[0], o.arch, "error", f"{type(error).__name__}: {error}".split("\n")[0])
      return
    half = len(cases) // 2
    for some in (cases[:half], cases[half:]): yield from run_pack(pack(p.arch, p.layout, some), o)
    return
  slots: dict[int, list[Found | None]] = {}
  lost = set[int]()
  for slot, (b, _) in enumerate(p.waves):
    if not int(memory[slot]): lost.add(id(b))
    slots.setdefault(id(b), []).append(found_in(p, memory, slot))
  for b in cases:
    if id(b) in lost: yield result(b, o.arch, "error", "its wave ended without a word")
    else: yield judged(b, o.arch, slots[id(b)], p.layout.sgprs)


def run(o: Options, chosen: Sequence[str], progress: Callable[[int], None] = lambda n: None) -> list[Result]:
  """The results of all cases of these names."""
  chips, chosen = silicon.GROUP in chosen, [n for n in chosen if n != silicon.GROUP]
  if o.dut:
    from tinyhw.tools.conform import dut
    return dut.run(o.dut, baked(o, chosen), o.arch)[0]
  out: dict[str, Result] = {}
  every = list(baked(o, chosen))
  for b in every:
    if b.barred: out[b.id] = result(b, o.arch, "not asked", b.barred)
  for p in packs(decoded(o.arch), [b for b in every if not b.barred]):
    for r in run_pack(p, o): out[r.id] = r
    progress(len(p.waves))
  on_chips = silicon.run(o.arch, o.device, o.only, o.timeout) if chips else []
  return [*(out[b.id] for b in every), *on_chips]


def first_rung(o: Options) -> None:
  """Raise DeviceError where a device does not even run a kernel of one move: nothing else would, one by one."""
  simple = Options(o.arch, o.device, (f"{o.arch}/v_mov_b32/e32/plain",), timeout=o.timeout)
  (found,) = run(simple, ["v_mov_b32"])
  if found.verdict == "error":
    raise DeviceError(f"{o.device}: no kernel of the suite runs: {found.detail}", where=found.id)


def chunks(chosen: Sequence[str], count: int) -> list[list[str]]:
  """Names in portions, each of as many kinds of instructions as the next."""
  return [list(chosen[k::count]) for k in range(count) if chosen[k::count]]


@dataclass(frozen=True)
class Spread:
  """Who runs the suite: this process, several (`jobs`), or the workers of a Dask scheduler; and a file of results."""
  jobs: int = 1
  scheduler: str = ""
  results: Path | None = None

  @property
  def alone(self) -> bool: return self.jobs <= 1 and not self.scheduler and self.results is None


ALONE: Final = Spread()


def answered(results: Sequence[Result]) -> Answer:
  """The results of a portion as a campaign keeps them."""
  return Answer("ended", [asdict(r) for r in results],
                [f"{r.mnemonic} {r.verdict}: {r.detail}" for r in results if r.verdict in BAD])


def portion(number: int, parameters: Mapping[str, Any]) -> Answer:
  """A portion of the suite, as a task of a campaign."""
  o = Options(**{**parameters["options"], "only": tuple(parameters["options"]["only"])})
  return answered(run(o, chunks(wanted_names(o), parameters["portions"])[number]))


def spread(by: Spread, kind: str, work: str, portions: int, parameters: Mapping[str, Any],
           progress: Callable[[int, int], None]) -> list[Result]:
  """The results of all portions. Raises GoneWrong where a portion has none."""
  environment = surroundings()
  given = {**parameters, "portions": portions}

  def plan(number: int) -> Task | None:
    return Task(number, kind, work, number, 1, given, Limits(hang=HANG), environment) if number < portions else None
  what = {"campaign": "conform", "kind": kind, "parameters": given, "environment": environment}
  return [Result(**row) for row in rows(plan, what, scheduler=by.scheduler, jobs=by.jobs, results=by.results,
                                        told=lambda done: progress(done, portions))]


def run_all(o: Options, by: Spread = ALONE, progress: Callable[[int, int], None] = lambda n, of: None) -> list[Result]:
  """The results of everything that fits, by several processes or machines where `by` says so; in the suite's order."""
  chosen = wanted_names(o)
  if not o.dut and chosen: first_rung(o)
  portions = chunks(chosen, max(by.jobs, -(-len(chosen) // (FEW if by.scheduler else MANY))))
  done = dict[str, list[Result]]()
  order = {name: k for k, name in enumerate(chosen)}
  finished = 0

  def take(found: list[Result]) -> None:
    for r in found: done.setdefault(r.id, []).append(r)
  if by.alone or len(portions) == 1 and not by.scheduler and by.results is None:
    for part in portions:
      take(run(o, part))
      finished += len(part)
      progress(finished, len(chosen))
  else:
    take(spread(by, o.arch, f"{__name__}:portion", len(portions), {"options": {**asdict(o), "only": list(o.only)}},
                progress))
  every = [r for rs in done.values() for r in rs]
  return sorted(every, key=lambda r: (order.get(r.mnemonic, len(order)), r.mnemonic))


@cache
def compute(arch: str) -> list[tuple[str, str, str, str]]:
  """The instructions that compute code can use: (mnemonic, section, encodings, why none can be asked)."""
  from tinyhw.tools.ledger.ledger import Entry, entries

  def why(e: Entry) -> str:
    return next((said for start, said in UNASKED.items() if e.mnemonic.startswith(start)), e.why or e.grade)
  return [(e.mnemonic, e.section, " ".join(e.families), why(e)) for e in entries(arch) if e.grade != "not compute"]


def facts(device: str) -> dict[str, str]:
  """What is known of a device: what it calls itself, its firmware where the kernel driver tells, what stands in."""
  import os
  from importlib.metadata import version

  from tinyhw.devices.registry import Device, mock_cards
  runtime: Any = Device[device].runtime
  out = {"card": runtime.describe(), "tinyhw": version("tinyhw")}
  if mock_cards() is not None: out["mock"] = ",".join(mock_cards() or ())
  node = getattr(getattr(runtime, "gpu", None), "node", None)
  if node is not None:
    out |= {name: str(node.p[name]) for name in ("fw_version", "sdma_fw_version", "device_id") if name in node.p}
  if mock_cards() is not None or device.startswith("EMU"): out["engine"] = os.environ.get("EMU", "auto")
  return out


def target(device: str) -> str | None:
  """The processor that a device is, None where it runs any. Raises Unsupported for one that runs no kernels."""
  from tinyhw.devices.registry import Device
  runtime: Any = Device[device].runtime
  if not hasattr(runtime, "load_kernel"):
    raise Unsupported("launch of ready code objects on", device, hint="use AMD, NV, CUDA or EMU, or --dut")
  found = getattr(runtime, "target", None)
  return found if isinstance(found, str) else None


def greeted(command: str) -> tuple[str, dict[str, str]]:
  """(name, facts) of a program under test, as it says itself."""
  from tinyhw.tools.conform.dut import Tested
  program = Tested(command)
  program.start()
  program.close()
  said = {k: str(v) for k, v in program.hello.items() if k != "protocol"}
  return said.pop("name", command), {"command": command, **said}
