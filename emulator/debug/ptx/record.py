"""PTX in a report: units, branches, what a multiprocessor holds."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.check.ptx.effects import effects
from tinyhw.emulator.debug.parts import Facts, Vendor, Words
from tinyhw.emulator.debug.ptx.exactness import SINKS, Exactness
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.group import lanes_of, warps
from tinyhw.emulator.ptx.launch.grid import Dispatch, stack_size
from tinyhw.emulator.ptx.launch.occupancy import occupancy
from tinyhw.emulator.ptx.program import Shown

if TYPE_CHECKING:
  from tinyhw.arch.nv import NvArch
  from tinyhw.emulator.observe import Access
  from tinyhw.emulator.simt import Group

WORDS: Final = Words("warp", "block", "thread", "shared memory", "local memory", "shared", 32, 128, {
  "float": "VALU", "integer": "transcendental", "double": "export", "special": "matrix", "tensor": "LDS",
  "convert": "SMEM", "move": "SALU", "memory": "VMEM", "shared": "LDS", "warp": "SMEM", "branch": "branch",
  "barrier": "barrier", "wait": "wait"}, frozenset({"branch", "barrier", "wait"}), SINKS)
_MEMORY: Final = frozenset({"ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "prefetch", "prefetchu",
                            "tensormap", "multimem", "tex", "tld4", "txq", "suld", "sust", "sured", "suq"})
_UNITS: Final = (
  ("branch", ("bra", "brx", "call", "ret", "exit", "trap", "brkpt")), ("barrier", ("bar", "barrier", "mbarrier")),
  ("wait", ("membar", "fence", "nanosleep", "griddepcontrol", "setmaxnreg", "discard", "applypriority", "pmevent")),
  ("warp", ("shfl", "vote", "match", "redux", "activemask", "elect", "movmatrix")), ("convert", ("cvt",)),
  ("move", ("mov", "selp", "cvta", "isspacep", "mapa", "getctarank", "createpolicy", "alloca", "stacksave",
            "stackrestore")),
  ("special", ("sin", "cos", "ex2", "lg2", "tanh", "rsqrt", "rcp", "sqrt")))
_UNIT_OF: Final = {opcode: unit for unit, opcodes in _UNITS for opcode in opcodes}
_APPROXIMATE: Final = frozenset({"sin", "cos", "ex2", "lg2", "tanh", "rsqrt"})


def unit(i: Shown) -> str:
  """The part of a multiprocessor that executes an instruction, as PTX shows it."""
  text = i.line.instruction
  opcode, m = text.opcode, text.modifiers
  if opcode in _MEMORY:
    if "wait_group" in m or "wait_all" in m or "commit_group" in m: return "wait"
    return "shared" if opcode in {"ldmatrix", "stmatrix"} or m and m[0].startswith("shared") and opcode != "cp" \
      else "memory"
  if opcode == "tcgen05":
    if "mma" in m: return "tensor"
    return "memory" if m[0] in {"ld", "st", "cp", "shift"} else "wait"
  if opcode in {"mma", "wgmma", "wmma"}:
    if "mma" in m or opcode == "mma" or "mma_async" in m: return "tensor"
    return "wait" if opcode == "wgmma" else "memory"
  found = _UNIT_OF.get(opcode)
  if found is not None: return found
  kind = m[-1] if m else ""
  if kind == "f64": return "double"
  return "float" if kind.startswith(("f", "bf")) else "integer"


class Nvidia(Vendor):
  """A launch of a PTX kernel."""

  words = WORDS

  def __init__(self, arch: NvArch, d: Dispatch) -> None:
    self.arch, self.dispatched = arch, d
    self._members: dict[int, tuple[Any, bool, Any]] = {}

  def unit(self, i: Shown) -> str: return unit(i)

  def status(self, i: Shown) -> str:
    text = i.line.instruction
    sums = unit(i) == "tensor" and not any(m in {"s32", "b1", "kind::i8"} for m in text.modifiers)
    loose = "approx" in text.modifiers or "full" in text.modifiers and text.opcode == "div"
    return "approximate" if sums or loose or text.opcode in _APPROXIMATE else "exact"

  def follower(self) -> Exactness: return Exactness(self.status)

  def branches(self, i: Shown) -> bool:
    text = i.line.instruction
    return text.opcode == "brx" or text.opcode == "bra" and text.predicate is not None

  def mask(self, group: Group, i: Shown) -> Any:
    """Lanes in the group whose guard is true; a branch is executed by all."""
    guard = None if i.line.instruction.opcode == "bra" else operands.predicate(i.line)
    if guard is None: return group.mask
    p = np.broadcast_to(guard(warps(group)), (group.size, group.cohort.lanes))
    return p if group.mask is None else p & group.mask

  def comes(self, group: Group, i: Shown) -> int:
    """Warps of which all threads are there that an instruction names, where it needs them together."""
    if group.mask is None: return group.size
    here = warps(group)
    known = self._members.get(id(i.line))
    if known is None:
      does = effects(i.line)
      warp = does.together and (does.opcode != "bar" or "warp" in does.modifiers) and does.opcode != "barrier"
      read = None if does.members is None else operands.reader(
        here.cohort.program.at(i.pc), i.line, does.members, "u32")
      known = self._members[id(i.line)] = i.line, warp, read
    _, together, read = known
    if not together: return group.size
    bits = np.full((group.size, 1), 0xFFFFFFFF, np.uint32)
    if read is not None:
      bits = operands.full(here, read(here))[np.arange(here.size), here.lanes.argmax(axis=1)].reshape(-1, 1)
    return int(here.cohort.complete_warps(here, lanes_of(bits)).sum())

  def taken(self, group: Group, i: Shown) -> tuple[int, int]:
    here = warps(group)
    lanes = here.lanes
    guard = operands.predicate(i.line)
    if guard is None:  # brx
      at = i.line.instruction.operands[0]
      index = operands.full(here, operands.reader(here.cohort.program.at(i.pc), i.line, at, "u32")(here))
      first = index[np.arange(group.size), lanes.argmax(axis=1)]
      return group.size, int(((index != first[:, None]) & lanes).any(axis=1).sum())
    p = np.broadcast_to(guard(here), lanes.shape) & lanes
    some = p.any(axis=1)
    return int(some.sum()), int((some & (p != lanes).any(axis=1)).sum())

  def segment(self, i: Shown, access: Access) -> str:
    if access.segment != "global": return access.segment
    m = i.line.instruction.modifiers
    return "param" if any(x.startswith("param") for x in m) else "const" if "const" in m else "global"

  def facts(self) -> Facts:
    d = self.dispatched
    found = occupancy(self.arch, d)
    return Facts(self.arch.name, self.arch.warp_size, {"registers of 32 bits alive at once in a thread": found.alive},
                 d.program.shared_size + d.dynamic_shared, stack_size(d.program), str(found))
