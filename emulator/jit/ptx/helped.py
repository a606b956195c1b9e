"""Instructions that compiled code has the reference do, for one strand at a time.

Compiled code puts what the instruction reads into the strand's state and calls the helper, which runs the reference's
bound step on a group of one warp, and puts the results beside it. An error ends the launch as it would the reference's.
"""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import Error, Unsupported
from tinyhw.emulator.jit.native import Callback
from tinyhw.emulator.jit.ptx import layout
from tinyhw.emulator.jit.values import BOOL, Untranslatable, Value
from tinyhw.emulator.ptx import bind, operands
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.scope import Line

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.emit import Lanes
  from tinyhw.emulator.jit.ptx.run import Cohort, Launch

_STACK: Final = frozenset({"alloca", "stacksave", "stackrestore"})  # they change more of a thread than registers
_WIDE: Final = frozenset({"b128"})
Places = list[tuple[int, int]]


def emit(g: Lanes, k: int) -> None:
  """Have the helper do an instruction. Raises Untranslatable for one that only the reference's own groups can do."""
  line, plan, e = g.plan.lines[k], g.plan, g.e
  i = line.instruction
  if g.width != LANES or i.opcode in _STACK or "cc" in i.modifiers: raise Untranslatable("no compiled form")
  reads, _ = g.touched_sets(k)
  writes = plan.written[k]
  types = g.code.flat.types
  if any(types[n] in _WIDE for n in {*reads, *writes}): raise Untranslatable("of 128 bits")
  if any(g.shape(n).stepped for n in writes): raise Untranslatable("no compiled form")
  try: step = bind.step(g.code.program.function(g.code.flat.function.name), line)
  except Unsupported: return _never(g)
  except (IndexError, KeyError, ValueError, TypeError, AttributeError, AssertionError, StopIteration):
    raise Untranslatable("with such operands") from None
  if step is None or step is bind.nothing: return None
  skip = "" if writes or i.predicate is None else _skipped(g, line)
  away = g.deopt()
  taken: Places = []
  given: Places = []
  at = layout.HEADER
  g.stepped, g.tolerant, g.loose = True, False, False
  for n in sorted(reads):
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
  active = g.active_bits
  e.do(f"store i32 {active}, ptr {g.pointer('%state', layout.ACTIVE)}")
  number = len(g.helped)
  g.helped.append((k, g.pc, taken, given))
  helper = e.op(f"load ptr, ptr {g.pointer('%context', layout.HELPER)}")
  done = e.op(f"call i32 {helper}(i64 {e.op('ptrtoint ptr %state to i64')}, i32 {number})")
  fine = e.new_label("helped")
  e.do(f"br i1 {e.op(f'icmp eq i32 {done}, 0')}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)
  for n, place in given:
    dtype, wide = g.types[n], g.shape(n).steps is None
    if wide and dtype == BOOL: value = g.as_mask(e.op(f"load {g.mask_type}, ptr {g.keep(place)}, align 4"))
    else: value = Value(e, e.op(f"load {g.slot(n)}, ptr {g.keep(place)}, align 4"), dtype, wide)
    g.write(n, value)
  if skip:
    e.do(f"br label %{skip}")
    e.start(skip)
    e.side = False
  return None


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


def _never(g: Lanes) -> None:
  """What the emulator does not have: the reference says so when control comes to it."""
  g.e.do(f"br label %{g.deopt()}")
  g.e.start(g.e.new_label("never"))


class Helper:
  """Runs instructions of a launch's strands; `error` is what the last one raised."""

  def __init__(self, launch: Launch) -> None:
    self._callback = Callback(self._call)
    self.address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
    self.error: BaseException | None = None
    self._launch = launch
    self._steps: dict[int, Any] = {}
    self._cohort: Cohort | None = None

  def begin(self, cohort: Cohort) -> None:
    """What is called next is called for the strands of a cohort."""
    self._cohort, self.error = cohort, None

  def _call(self, state: int, number: int) -> int:
    try: self._run(state, number)
    except BaseException as error:  # must not go through native code
      self.error = self.error or error
      return 1
    return 0

  def _bound(self, number: int) -> tuple[Any, int, list[Any], list[Any]]:
    found = self._steps.get(number)
    if found is not None: return found  # type: ignore[no-any-return]
    k, pc, taken, given = self._launch.kernel.helped[number]
    program = self._launch.grid.dispatch.program
    code = program.function(program.entry_name)
    step = bind.step(code, code.flat.lines[k])
    shapes = self._launch.kernel.shapes

    def rows(places: Places) -> list[Any]:
      return [(n, at, operands.dtype_of(code.flat.types[n]), shapes[n]) for n, at in places]
    found = self._steps[number] = step, pc, rows(taken), rows(given)
    return found

  def _run(self, address: int, number: int) -> None:
    step, pc, taken, given = self._bound(number)
    cohort = self._cohort
    assert cohort is not None
    row = (address - cohort.raw.ctypes.data) // self._launch.kernel.stride
    state = cohort.states[row]
    raw = state.view(np.uint8)
    blocks = cohort.ghost()
    group = Warps(blocks, 1, pc, blocks.program.blank(pc))
    block, strand = divmod(row, cohort.strands)
    group.waves = np.array([blocks.first + block * blocks.shared.warps + strand])
    group.workgroups = np.array([block])
    active = int(state[layout.ACTIVE // 4])
    if active != 0xFFFFFFFF: group.mask = lanes_of(active)
    for n, at, dtype, steps in taken: group.v[n] = value_of(raw, at, dtype, steps)
    if step is not None:
      try:
        with np.errstate(all="ignore"): step(group)
      except (Error, IndexError) as error: raise blocks.located(error, pc, group) from None
    first = (active & -active).bit_length() - 1
    for n, at, dtype, steps in given:
      value = group.v[n]
      if value.dtype != dtype: value = value.view(dtype)
      if steps is not None:
        one = value if value.ndim == 0 else np.broadcast_to(value, (1, LANES))[0, max(first, 0)]
        raw[at:at + dtype.itemsize].view(dtype)[0] = one
      elif dtype == BOOL:
        bits = np.packbits(np.broadcast_to(value, (1, LANES)), bitorder="little")
        raw[at:at + 4] = bits
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


