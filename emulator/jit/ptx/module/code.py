"""Compiled kernels: found in memory or on disk by a digest of their text, or made."""
from __future__ import annotations

import hashlib
import json
import time
import warnings
import zlib
from typing import Any, Final

from tinyhw.core.errors import DecodeError
from tinyhw.core.kept import Kept
from tinyhw.core.store import sources_digest
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.background import BACKGROUND
from tinyhw.emulator.jit.native import Native, compiled_by, host
from tinyhw.emulator.jit.ptx import fallback, warp
from tinyhw.emulator.jit.ptx.launch import cluster
from tinyhw.emulator.jit.ptx.memory import access, atomics, mbarrier, multimem, order
from tinyhw.emulator.jit.ptx.memory.watched import Watch
from tinyhw.emulator.jit.ptx.module import blocks, calls
from tinyhw.emulator.jit.ptx.module import text as module
from tinyhw.emulator.jit.ptx.module.emit import Exit, Lanes, Refused
from tinyhw.emulator.jit.ptx.module.inline import JitCode
from tinyhw.emulator.jit.ptx.module.shapes import Plan
from tinyhw.emulator.jit.ptx.module.text import Beside
from tinyhw.emulator.jit.ptx.tensorcore import matrix, wgmma, wmma
from tinyhw.emulator.jit.ptx.texture import queries
from tinyhw.emulator.jit.refusal import CHECKED_SLOWLY, SLOW, NotCompiled, TranslatorFailed, tell, translating
from tinyhw.emulator.jit.store import store
from tinyhw.emulator.ptx.group import LANES
from tinyhw.emulator.ptx.module.kept import SOURCES, keep
from tinyhw.emulator.ptx.module.scope import Flat
from tinyhw.emulator.ptx.program import Code, Program
from tinyhw.isa.ptx import printer

# they register what they emit
EMITTERS: Final = (access, atomics, calls, cluster, matrix, mbarrier, multimem, queries, warp, wgmma, wmma)
# ways in which a kernel is watched; ORDERS comes behind one of the others
WATCHES, TRACKS, ORDERS, GAPS = "watches", "tracks", "orders", "gaps"
_LINE: Final = 0.025  # seconds more that LLVM may take, for each line: to interpret large kernels takes longest
# A kernel is compiled quickly, and well once that has run for this share of the seconds that LLVM then takes.
WORTH: Final = 0.1
_LETTERS: Final = 150_000  # of LLVM IR that it compiles well in a second
# Lines of LLVM IR of the largest kernel that is: each value has a place of its own on the stack, of 256 bytes at most.
LARGEST_QUICK: Final = 16_000


class Kernel:
  """A compiled kernel for blocks of one size. `exits` are the places where strands leave it; of their masks it has the
  place of a block, (PC, function's instance), and the offset. `shapes` of registers: steps, or None; `types` are their
  types, `instances` the rows of `inline.Instance`. With a `wish` it is what was compiled quickly."""

  def __init__(self, header: dict[str, Any], native: Native, wish: Wish | None = None) -> None:
    self.native, self.header = native, header
    self._wish, self._left = wish, wish.price if wish is not None else 0.0  # seconds until it is compiled well
    self.exits = [Exit(*row) for row in header["exits"]]
    self.masks = [{(pc, instance): at for pc, instance, at in row} for row in header["masks"]]
    self.types: list[str] = header["types"]
    self.instances: list[list[Any]] = header["instances"]
    self.shapes: list[list[int] | None] = header["shapes"]
    self.stride: int = header["stride"]
    self.top: int | None = header["top"]  # the register that has the end of the stack
    self.sites: int = header["sites"]
    self.widens: dict[int, list[int]] = {int(k): v for k, v in header["widens"].items()}
    # [place in its function's text, PC, [[register, offset] read], [the same written], name, function's instance]
    self.helped: list[Any] = header["helped"]
    self.named: bool = header["named"]  # it has barriers that are not of the whole block

  def run(self, context: int, states: int, count: int) -> None:
    """Run the strands of so many blocks, by the addresses of context and states, until they end or leave."""
    native = self.native  # alive until this ends
    began = 0.0 if self._wish is None else time.perf_counter()
    native.run(context, states, self.stride, count)
    if self._wish is None: return
    self._left -= time.perf_counter() - began
    if self._left <= 0: self._improve()

  def _improve(self) -> None:
    """Have it compiled well; meanwhile this form goes on."""
    wish, self._wish = self._wish, None
    if wish is None: return

    def improve() -> None:
      try: self.native = wish.make(self.header)
      except NotCompiled as refused:  # the form that there is serves on
        if isinstance(refused, TranslatorFailed):
          tell(f"kernel {wish.name}", refused, "stays as it was compiled at first")
    BACKGROUND.add(improve)


class Wish:
  """What a kernel is compiled from: its name, LLVM IR, packed, of so many letters, and where it is kept on disk."""

  def __init__(self, name: str, key: str, letters: int, packed: bytes) -> None:
    self.name, self._key, self._packed = name, key, packed
    self.price = WORTH * letters / _LETTERS

  def make(self, header: dict[str, Any]) -> Native:
    """The kernel, compiled well. Raises NotCompiled."""
    data = _compiled(zlib.decompress(self._packed).decode(), True, soon=False)
    store().save(self._key + _HOT, header, data)
    return Native([data, _beside(Beside(*header["beside"]))])


def kernel(program: Program, block: tuple[int, int, int], exact: frozenset[int] = frozenset(),
           clustered: bool = False, watch: str = "") -> Kernel:
  """The compiled form of a program's kernel. Raises NotCompiled with the instruction that it is for. `watch`: it finds
  out whether the checks may find something, see `watching`."""
  known: Kernel | str | NotCompiled | None = program.compiled.get((block, exact, clustered, watch))
  if known is None:
    try: known = _find(program, block, exact, clustered, watch)
    except Refused as why: known = str(why)
    except NotCompiled as failed:  # LLVM's failure, or this package's
      known = type(failed)(failed.why)  # without what its traceback holds
      how = CHECKED_SLOWLY if watch else SLOW
      warnings.warn(f"kernel {program.entry_name} {how}: {failed.why}", RuntimeWarning, stacklevel=2)
    program.compiled.keep((block, exact, clustered, watch), known)
  if isinstance(known, NotCompiled): raise type(known)(known.why)
  if isinstance(known, str): raise NotCompiled(known)
  return known


def watching(way: str, cluster: int, gaps: bool) -> str:
  """How a kernel is watched (`detect`): with TRACKS loads of global memory too; with ORDERS atomics, and what threads
  of a warp do together, order what they do; in clusters of so many blocks; there may be `gaps` between arrays of
  shared memory, which nobody may touch."""
  return " ".join([way, *[GAPS] * gaps, str(cluster)])


def kept(program: Program, block: tuple[int, int, int], clustered: bool = False) -> bool:
  """Whether a kernel's compiled form is at hand, here or on disk."""
  if (block, frozenset(), clustered, "") in program.compiled: return True
  key = _key(program, block, frozenset(), clustered, "")
  return key in _MEMORY or any(store().holds(key + how) for how in (_HOT, _QUICK))


def _find(program: Program, block: tuple[int, int, int], exact: frozenset[int], clustered: bool, watch: str) -> Kernel:
  key = _key(program, block, exact, clustered, watch)
  found = _MEMORY.get(key)
  if found is not None: return found
  entry = store().load(key + _HOT) or store().load(key + _QUICK)
  if entry is not None:
    header, data = entry
    if "refused" in header: raise Refused(header["refused"])
    try: return _MEMORY.keep(key, _kernel(program, key, header, data))
    except (NotCompiled, KeyError, TypeError, ValueError): pass  # a file of another kind
  try:
    with translating(Refused, DecodeError): header, text = written(program, block, exact, clustered, watch)
  except Refused as why:
    store().save(key + _HOT, {"refused": str(why)}, b"")
    keep(program.linked)
    raise
  _beside(Beside(*header["beside"]))  # is told before the kernel that it cannot be compiled
  quick = text.count("\n") <= LARGEST_QUICK
  data = _compiled(text, not quick, program.linked.lines[program.entry_name] * _LINE)
  if quick:
    header |= {"object": len(data), "letters": len(text)}
    data += zlib.compress(text.encode(), 1)
  store().save(key + (_QUICK if quick else _HOT), header, data)
  keep(program.linked)
  return _MEMORY.keep(key, _kernel(program, key, header, data))


def _kernel(program: Program, key: str, header: dict[str, Any], data: bytes) -> Kernel:
  """A kernel of what is kept of it. Raises NotCompiled."""
  beside, wish = _beside(Beside(*header["beside"])), None
  if (size := header.pop("object", None)) is not None:
    wish = Wish(program.entry_name, key, header.pop("letters"), data[size:])
    data = data[:size]
  return Kernel(header, Native([data, beside]), wish)


def _compiled(text: str, hot: bool, more: float = 0.0, soon: bool = True) -> bytes:
  """Raises NotCompiled."""
  with servers.job(hot, host(), more, soon=soon) as job:
    job.send(text)
    return job.objects()[0]


def _beside(what: Beside) -> bytes:
  """The object file that a kernel is linked with. There are few: each is compiled once, and kept like kernels.

  Raises NotCompiled.
  """
  text = module.shared(what)
  key = hashlib.sha256("\n".join((text, str(host()), compiled_by())).encode()).hexdigest() + "b"
  if (known := _BESIDE.get(key)) is not None: return known
  entry = store().load(key)
  if entry is None:
    entry = {}, _compiled(text, True)
    store().save(key, *entry)
  _BESIDE[key] = entry[1]
  return entry[1]


def written(program: Program, block: tuple[int, int, int], exact: frozenset[int] = frozenset(),
            clustered: bool = False, watch: str = "") -> tuple[dict[str, Any], str]:
  """A kernel's header and text. Raises Refused."""
  name = program.entry_name
  flat = program.linked.flats[name]
  if not flat.lines: raise Refused("an empty kernel")
  _taken(program.function(name))
  code = JitCode(program, name)
  plan = Plan(code, block, exact, clustered)
  lanes = Lanes(plan, _watched(plan, watch) if watch else None)
  text = blocks.text(lanes)
  masks = [[(plan.blocks[q].pc, plan.blocks[q].instance, at) for q, at in x.masks] for x in lanes.exits]
  stride = -(-max(lanes.room, *(x.size for x in lanes.exits), 0) // 64) * 64
  shapes = [list(plan.uniform().steps or ()) if s is None else None if s.steps is None else list(s.steps)
            for s in plan.shapes]
  widens: dict[str, list[int]] = {}
  for k, info in enumerate(plan.infos):
    if info.checks: widens.setdefault(str(code.pc(k)), []).append(k)
  return {"cells": {} if lanes.watch is None else {
            "shared": lanes.watch.shared, "far": lanes.watch.far, "copies": lanes.watch.copies,
            "kinds": [*lanes.watch.kinds], "far kinds": [*lanes.watch.far_kinds], "more": lanes.watch.more,
            "speaks": bool(lanes.watch.speaking)},
          "exits": [x.row() for x in lanes.exits], "masks": masks, "types": code.flat.types,
          "instances": [i.row() for i in code.whole.instances], "stride": stride,
          "beside": module.beside(lanes), "sites": lanes.sites, "shapes": shapes, "widens": widens,
          "helped": lanes.helped, "named": lanes.named, "instructions": len(flat.lines),
          "seldom": sorted(lanes.seldom), "top": code.whole.top}, text


def _watched(plan: Plan, watch: str) -> Watch:
  """How a kernel is watched. Raises Refused for one that is not proven."""
  from tinyhw.emulator.check.ptx.paths import prove
  proof = prove(plan.whole, plan.threads)
  if proof.why: raise Refused(f"not proven: {proof.why}")
  kinds = (order.OWN, *[order.STORE] * proof.stores, *[order.MATRIX] * proof.products,
           *[order.BULK] * proof.sources, *[order.ATOMICS] * (proof.atomics or bool(proof.listening)))
  *ways, blocks = watch.split()
  cluster, orders = int(blocks), ORDERS in ways
  helped = any(fallback.noted(plan.lines[k].instruction.name) for b in plan.blocks for k in range(b.start, b.end))
  ordered = proof.ordered or helped or cluster > 1 or orders or GAPS in ways
  speaks = orders and bool(proof.listening)
  more = not orders and (bool(proof.listening) or proof.together and not ordered)
  nobody = frozenset[int]()
  return Watch(proof.shared, proof.far, TRACKS in ways, proof.copies, kinds if ordered else (), cluster,
               order.Order.of(-(-plan.threads // LANES) * cluster), proof.speaking if speaks else nobody,
               proof.listening if speaks else nobody, more)


def _taken(code: Code) -> None:
  """Raises Refused where an instruction does not take its operands: the reference says so when control gets there."""
  for k in code.reached:
    try: code.bound(k)
    except DecodeError as why: raise Refused(f"{code.flat.lines[k].instruction.name} ({why})") from None


def _key(program: Program, block: tuple[int, int, int], exact: frozenset[int], clustered: bool,
         watch: str) -> str:
  what = [_text(program), program.entry_name, block, sorted(exact), clustered, watch, program.chip_sums, str(host()),
          compiled_by()]
  return hashlib.sha256(sources_digest(SOURCES) + json.dumps(what).encode()).hexdigest()


def _text(program: Program) -> str:
  """A digest of the module's text, or, where there is none, of the kernel's and its functions', with the places of what
  they name."""
  if not program.digest and program.linked.text:
    places = json.dumps(sorted(program.linked.offsets.items()))
    program.digest = hashlib.sha256(program.linked.text + b"\0" + places.encode()).hexdigest()
  if not program.digest:
    own = [(name, *_code(flat)) for name, flat in sorted(program.linked.flats.items())
           if name == program.entry_name or flat.function.kind != "entry"]  # it may call any function
    more = [sorted(program.linked.offsets.items(), key=str), sorted(program.functions.items()),
            sorted(program.shared.values())]
    program.digest = hashlib.sha256(json.dumps([own, more], default=str).encode()).hexdigest()
  return program.digest


def _code(flat: Flat) -> list[Any]:
  """What a function's compiled form comes from."""
  return ["\n".join(printer.instruction(line.instruction) for line in flat.lines), flat.types, flat.frame,
          [(p.variable.name, p.offset, p.size) for p in flat.params],
          sorted((k, str(v)) for k, v in flat.scope.names.items() if isinstance(v, int))]


_HOT, _QUICK = "p", "s"  # how the names of files end
_MEMORY: Final[Kept[str, Kernel]] = Kept(256)
_BESIDE: Final[dict[str, bytes]] = {}
