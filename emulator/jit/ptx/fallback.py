"""Instructions that compiled code has the reference do, for one strand at a time.

Compiled code puts what the instruction reads into the strand's state and calls the helper, which runs the reference's
bound step on a group of one warp, and puts the results beside it. An error ends the launch as it would the reference's.
"""
from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.called import Plain
from tinyhw.core.errors import DecodeError, Error, Unsupported
from tinyhw.emulator.jit.ptx.launch.called import MANY, Call
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.inline import OWN_STACK
from tinyhw.emulator.jit.ptx.texture import fetches
from tinyhw.emulator.jit.values import BOOL, Untranslatable, Value
from tinyhw.emulator.ptx import bind, control, operands
from tinyhw.emulator.ptx.group import LANES, Blocks, Warps
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.program import Shown
from tinyhw.emulator.ptx.tensorcore import tmem
from tinyhw.emulator.values.ops import U64

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.launch.run import Cohort, CompiledLaunch
  from tinyhw.emulator.jit.ptx.module.emit import Lanes

Places = list[tuple[int, int]]
# with a strand's state, the number of the instruction, and the block (`fetches`) that it was called through
_PARAMETERS: Final = (ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p)


# What compiled code has no way of its own for: patterns of names, and what docs/ptx.md says of them.
SELDOM: Final = (
  (r"call(\.uni)?", "`call` of a function that calls itself, or is too long to stand in the kernel"),
  (r"(tex|tld4|suld|sust|sured)\..*",
   "`tex`, `tld4`, `suld`, `sust`, `sured`, until a launch has made one a few times: then compiled for the array"),
  (r"tcgen05\..*", "`tcgen05`"),
  (r"clusterlaunchcontrol\..*", "`clusterlaunchcontrol`"),
  (r"mma\..*\.kind::.*", "`mma` with a `.kind`"),
  (r"(ldmatrix\..*\.(m8n16|m16n16)|stmatrix\..*\.m16n8)\..*", "`ldmatrix` and `stmatrix` of bytes"),
  (r"st\.bulk.*", "`st.bulk`"),
  (r"redux\.sync\..*f32", "`redux` of floats"),
  (r"cp\.async\.bulk\.tensor\..*(gather4|scatter4|cta_group::2).*",
   "copies of gathered rows, and those that tell a pair of blocks"),
)
_UNKNOWN: Final = re.compile(r"call|sust|sured")


def table() -> str:
  """What is in SELDOM as docs/ptx.md has it."""
  return "\n".join(["| left to the reference's step |", "|---|", *(f"| {text} |" for _, text in SELDOM)])


def noted(name: str) -> bool:
  """Whether the reference does an instruction for watched code, too: it shows an observer all that this touches, and
  whom it tells (`launch.notes`). A function may do more; surfaces the reference is quicker with."""
  return any(re.fullmatch(pattern, name) for pattern, _ in SELDOM) and not _UNKNOWN.match(name)


def only(g: Lanes, k: int) -> None:
  """As `emit`, where there is no other way."""
  if g.watch is not None and not (g.watch.kinds and noted(g.plan.lines[k].instruction.name)):
    raise Untranslatable("watched code does it itself")
  number = len(g.helped)
  emit(g, k)
  if len(g.helped) > number: g.seldom.add(g.plan.lines[k].instruction.name)


def emit(g: Lanes, k: int) -> None:
  """Have the helper do an instruction. Raises Untranslatable for one that only the reference's own groups can do."""
  line, plan = g.plan.lines[k], g.plan
  i = line.instruction
  if i.opcode in OWN_STACK or "cc" in i.modifiers:  # they change more of a thread than registers
    raise Untranslatable("no compiled form")
  home, own = g.plan.whole.owner[k], g.plan.whole.own(k)
  try: step = bind.step(home.code, home.code.flat.lines[own])
  except Unsupported: return never(g)
  except DecodeError: raise Untranslatable("with such operands") from None
  if step is None or step is bind.nothing: return None
  reads, _ = g.touched_sets(k)
  skip = "" if plan.written[k] or i.predicate is None else _skipped(g, line)
  _helped(g, k, reads)
  if skip:
    g.e.do(f"br label %{skip}")
    g.e.start(skip)
    g.e.side = False
  return None


def call(g: Lanes, k: int) -> None:
  """A call of a function of the module, or through a register: it sees all registers that live on, and the stack."""
  code, own = g.plan.whole.owner[k].code, g.plan.whole.own(k)
  try: control.ender(code, code.flat.lines[own], g.pc, code.pc(own + 1))
  except Unsupported: return never(g)
  reads, writes = g.touched_sets(k)
  g.seldom.add(code.flat.lines[own].instruction.name)
  return _helped(g, k, reads | set(g.live_out[g.block.number]) | writes)


def _helped(g: Lanes, k: int, reads: set[int]) -> None:
  plan, e = g.plan, g.e
  writes = plan.written[k]
  if any(g.shape(n).steps is not None for n in writes): raise Untranslatable("no compiled form")
  away = g.deopt()
  taken: Places = []
  given: Places = []
  at = g.kept_at
  g.stepped, g.tolerant = True, False
  for n in sorted(reads & g.assigned):
    value = g.read(n)
    t, text = value.type, value.text
    if value.wide and value.dtype == BOOL: t, text = g.mask_type, g.bits(value)
    e.do(f"store {t} {text}, ptr {g.keep(at)}, align 4")
    taken.append((n, at))
    at += g.size_of(n)
  g.stepped = False
  for n in writes:
    given.append((n, at))
    at += g.size_of(n)
  g.room = max(g.room, at)
  for place, name in ((layout.ACTIVE, "active"), (layout.ALIVE, "alive")):
    e.do(f"store i32 {e.op(f'load i32, ptr %{name}')}, ptr {g.pointer('%state', place)}")
  number = len(g.helped)
  home = plan.whole.owner[k]
  g.helped.append((plan.whole.own(k), g.pc, taken, given, plan.lines[k].instruction.name, home.number))
  blocks = e.op(f"load ptr, ptr {g.pointer('%context', layout.HELPER)}")
  block = e.op(f"load ptr, ptr {g.pointer(blocks, 8 * number)}")
  helper = e.op(f"load ptr, ptr {block}")
  done = e.op(f"call i32 {helper}(i64 {e.op('ptrtoint ptr %state to i64')}, i32 {number}, ptr {block})")
  fine = e.new_label("helped")
  e.do(f"br i1 {e.op(f'icmp eq i32 {done}, 0')}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)
  for n, place in given:
    if g.types[n] == BOOL: value = g.as_mask(e.op(f"load {g.mask_type}, ptr {g.keep(place)}, align 4"))
    else: value = Value(e, e.op(f"load {g.slot(n)}, ptr {g.keep(place)}, align 4"), g.types[n], True)
    g.write(n, value)


def _skipped(g: Lanes, line: Line) -> str:
  """Go around an instruction that no thread executes; the label where that comes back. What is computed between is not
  at hand behind it."""
  e, p = g.e, operands.predicate(line)
  assert p is not None
  here = e.op(f"and {g.mask_type} {g.bits(p(g))}, {g.active_bits}")
  some, skip = e.new_label("some"), e.new_label("skip")
  e.do(f"br i1 {e.op(f'icmp ne {g.mask_type} {here}, 0')}, label %{some}, label %{skip}")
  e.start(some)
  e.side = True
  return skip


def never(g: Lanes) -> None:
  """What the emulator does not have: the reference says so when control comes to it."""
  g.e.do(f"br label %{g.deopt()}")
  g.e.start(g.e.new_label("never"))


@dataclass
class Bound:
  """An instruction that is helped: registers as (number in its function, offset in the state, type, steps)."""
  step: Any
  pc: int
  taken: list[Any]
  given: list[Any]
  calls: bool
  shown: Shown
  base: int  # of its function's variables on the stack
  instance: int  # of its function
  top: tuple[int, Any, list[int] | None] | None  # where the state has the end of the stack, its type, its steps
  fetch: fetches.One | None = None  # what looks at a texture or a surface


class Helper:
  """Runs instructions of a launch's strands; `error` is what one has raised: none is run after it."""

  def __init__(self, launch: CompiledLaunch) -> None:
    self._launch = launch
    self._callback = Plain(self._call, *_PARAMETERS, failed=1)
    self.forget()
    self.error: BaseException | None = None
    self.calls = 0  # of functions, in this launch
    self._steps: dict[int, Bound] = {}
    self._cohort: Cohort | None = None

  def forget(self) -> None:
    """Mappings have changed: what arrays the launch looks at is to be learned again."""
    self.learner = fetches.Learner(self._callback.address, len(self._launch.kernel.helped))

  def begin(self, cohort: Cohort) -> None:
    """What is called next is called for the strands of a cohort."""
    self._cohort, self.error = cohort, None

  def _call(self, state: int, number: int, block: int) -> int:
    if self.error is not None: return 1  # the launch ends
    try: return int(not self._run(state, number))
    except BaseException as error:  # must not go through native code
      self.error = error
      return 1

  def _bound(self, number: int) -> Bound:
    found = self._steps.get(number)
    if found is not None: return found
    kernel = self._launch.kernel
    k, pc, taken, given, _, instance = kernel.helped[number]
    name, _, _, first, base = kernel.instances[instance]
    code = self._launch.grid.dispatch.program.function(name)
    line = code.flat.lines[k]
    calls = line.instruction.opcode == "call"
    step = control.ender(code, line, pc, code.pc(k + 1)) if calls else bind.step(code, line)

    def rows(places: Places) -> list[Any]:
      return [(n - first, at, operands.dtype_of(kernel.types[n]), kernel.shapes[n]) for n, at in places
              if first <= n < first + len(code.flat.types)]
    top = next(((at, U64, kernel.shapes[n]) for n, at in taken if n == kernel.top), None)
    found = self._steps[number] = Bound(step, pc, rows(taken), rows(given), calls, Shown(line, pc), base,
                                         instance, top)
    if line.instruction.opcode in fetches.OPCODES: found.fetch = fetches.instruction(code, line)
    return found

  def _run(self, address: int, number: int) -> bool:
    """Whether it could be done; else the reference is to go on."""
    bound = self._bound(number)
    pc = bound.pc
    cohort = self._cohort
    assert cohort is not None
    self._launch.grid.stats.helped[self._launch.kernel.helped[number][4]] += 1
    if bound.calls:
      self.calls += 1
      if self.calls > MANY: return False
    row = (address - cohort.raw.ctypes.data) // self._launch.kernel.stride
    state = cohort.states[row]
    raw = state.view(np.uint8)
    blocks = cohort.ghost()
    group = Warps(blocks, 1, pc, blocks.program.blank(pc))
    group.base = bound.base
    block, strand = divmod(row, cohort.strands)
    group.waves = np.array([blocks.first + block * blocks.shared.warps + strand])
    group.workgroups = np.array([block])
    active = int(state[layout.ACTIVE // 4])
    if active != 0xFFFFFFFF: group.mask = lanes_of(active)
    for n, at, dtype, steps in bound.taken: group.v[n] = value_of(raw, at, dtype, steps)
    if bound.top is not None: group.top = top_of(group, value_of(raw, *bound.top))
    with np.errstate(all="ignore"):
      if bound.calls:
        found = self._called(cohort, blocks, row, group, bound)
        if found is None: return False
        group = found
      else:
        seen = None
        if bound.fetch is not None and self.learner.wants(number): seen = self.learner.look(bound.fetch, group)
        if blocks.observer is not None: blocks.seen = pc, bound.shown
        try: bound.step(group)
        except tmem.Blocked: return False
        except (Error, IndexError) as error: raise blocks.located(error, pc, group) from None
        if seen is not None: self._learn(number, bound, seen)
    for n, at, dtype, _ in bound.given: put(raw, at, dtype, group.v[n])
    return True

  def _learn(self, number: int, bound: Bound, seen: fetches.Seen) -> None:
    if not self._launch.learns(seen.header): return
    k, *_, instance = self._launch.kernel.helped[number]
    code = self._launch.grid.dispatch.program.function(self._launch.kernel.instances[instance][0])
    self.learner.learn(number, bound, code, code.flat.lines[k], seen, self._launch.mappings)

  @staticmethod
  def _called(cohort: Cohort, blocks: Blocks, row: int, group: Warps, bound: Bound) -> Warps | None:
    """The threads when they are back from a function; None where the reference has to go on with them."""
    blocks.alive_lanes[row] = lanes_of(int(cohort.states[row, layout.ALIVE // 4]))[0]
    group.count = int(cohort.executed[row])
    call = Call(blocks, group, bound.step)
    call.run()
    cohort.executed[row] += call.instructions
    blocks.stats.instructions += call.instructions
    if call.back and len(call.groups) == 1: return call.groups[0]
    cohort.parted[row] = call.groups, bound.instance
    return None


def top_of(group: Warps, value: Any) -> Any:
  """The end of a kernel's stack [1, lanes], of which 0 is that of its frame; None for that of all threads."""
  if not value.any(): return None
  return np.where(value == 0, np.uint64(group.base + group.cohort.program.at(group.pc).flat.frame), value)


def put(raw: Any, at: int, dtype: Any, value: Any) -> None:
  """Write a register of each thread into a state."""
  if value.dtype != dtype: value = value.view(dtype)
  if dtype == BOOL: raw[at:at + 4] = np.packbits(np.broadcast_to(value, (1, LANES)), bitorder="little")
  else: raw[at:at + LANES * dtype.itemsize].view(dtype)[:] = value if value.ndim == 0 else value[0]


def lanes_of(bits: int) -> Any:
  """Threads as bools [1, lanes]."""
  return np.unpackbits(np.array([bits], "<u4").view(np.uint8), bitorder="little").view(bool).reshape(1, LANES)


def value_of(raw: Any, at: int, dtype: Any, steps: list[int] | None) -> Any:
  """A register in a state: one for all, or [1, lanes]."""
  if steps is None:
    if dtype == BOOL: return np.unpackbits(raw[at:at + 4], bitorder="little").view(bool).reshape(1, LANES)
    return raw[at:at + LANES * dtype.itemsize].view(dtype).reshape(1, LANES).copy()
  one = raw[at:at + dtype.itemsize].view(dtype)[0]
  if not any(steps): return one
  unsigned = np.dtype(f"u{dtype.itemsize}")
  mask = (1 << dtype.itemsize * 8) - 1
  base = int(np.asarray(one).view(unsigned))
  return np.array([[base + s & mask for s in steps]], unsigned).view(dtype)


