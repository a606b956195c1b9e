"""Runs the blocks of a launch with compiled code, some at a time; the reference takes over what that leaves."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.core.lazy import cached_property
from tinyhw.emulator.jit.memory import Memory
from tinyhw.emulator.jit.ptx.fallback import Helper, lanes_of, top_of, value_of
from tinyhw.emulator.jit.ptx.launch.called import MANY
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.code import Kernel, kernel
from tinyhw.emulator.jit.ptx.module.emit import RESUMING, Exit
from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.control import Calling
from tinyhw.emulator.ptx.group import LANES, Blocks, Warps
from tinyhw.emulator.ptx.launch.cluster import Barriers
from tinyhw.emulator.ptx.launch.grid import Grid, stack_size
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.texture.objects import Header
from tinyhw.emulator.schedule import Idle, Resident, Schedule
from tinyhw.emulator.values.ops import Array as Value

FIRST, TURN = 1 << 14, 1 << 18  # instructions that a strand may run while others could, at first and later
STATES: Final = 1 << 22  # bytes of the states of blocks that run together
SHARED: Final = 1 << 24  # bytes of their shared memory, stacks alike
PATIENCE: Final = 64  # turns of a strand in which threads of it wait elsewhere
SOON: Final = 256  # blocks of the reference in which its threads may come to where compiled code can go on
HANDED: Final = 4  # cohorts that the reference takes over before it has the rest of the launch


_BEGIN: Final = np.zeros(layout.HEADER // 4, np.uint32)  # the state of a strand before its first instruction
_BEGIN[[layout.EXIT // 4, layout.TICKET // 4]] = 0xFFFFFFFF


class Cohort:
  """Blocks of a launch that began together, in compiled code."""

  def __init__(self, launch: CompiledLaunch, first: int, count: int) -> None:
    k, d, grid = launch.kernel, launch.grid.dispatch, launch.grid
    self.launch, self.first, self.count = launch, first, count
    threads = self.threads = d.block[0] * d.block[1] * d.block[2]
    self.strands = strands = grid.shared.warps
    self.size = apart(grid)
    self.lds = np.zeros(count * self.size + 64, np.uint8)
    self.lds = self.lds[-self.lds.ctypes.data % 64:][:count * self.size]
    self.local = spaces.Local(count * grid.shared.warps * LANES, launch.stack)
    self.raw = launch.states(count * strands * k.stride)
    states = self.states = self.raw.reshape(count * strands, k.stride // 4)
    number = np.tile(np.arange(strands, dtype=np.uint32), count)
    block = np.repeat(np.arange(count), strands)
    states[:, :layout.HEADER // 4] = _BEGIN
    lanes = np.minimum(threads - number.astype(np.int64) * LANES, LANES)
    states[:, layout.ACTIVE // 4] = states[:, layout.ALIVE // 4] = ((1 << lanes) - 1).astype(np.uint32)
    wide = states.view(np.uint64)
    wide[:, layout.BLOCK // 8] = (first + block).astype(np.uint64)
    states[:, layout.STRAND // 4] = number
    wide[:, layout.SHARED // 8] = (self.lds.ctypes.data + block * self.size).astype(np.uint64)
    wide[:, layout.LOCAL // 8] = (self.local.u8.ctypes.data
                                  + np.arange(count * strands) * LANES * self.local.size)
    # of each barrier: threads that came and did not wait, expected ones
    self.counts = np.zeros((count if k.named else 0, layout.BARRIERS, 2), np.uint32)
    if k.named:
      wide[:, layout.COUNTS // 8] = (self.counts.ctypes.data + block * self.counts.strides[0]).astype(np.uint64)
    self._ghost: Blocks | None = None
    # where threads of a strand stand that are in a function which the reference runs, and the instance that called it
    self.parted: dict[int, tuple[list[Warps], int]] = {}
    self.status = states[:, layout.STATUS // 4]
    self.left = wide[:, layout.LEFT // 8].view(np.int64)
    self.executed = np.zeros(len(states), np.int64)
    self.turns = 0
    self.entered: Value | None = None  # what its strands were granted in a turn that is over and was not looked at
    self.idle: bool  # after a turn: its strands have come back to where they were
    self._seen: Value | None = None

  def run(self) -> bool | None:
    """Run until all have ended (True), or have had a turn (False); None: the reference is to go on."""
    launch, granted = self.launch, self.entered
    if granted is None:
      turn = min(FIRST << min(self.turns, 16), TURN)
      granted = np.minimum(turn, launch.grid.watchdog - self.executed)
      self.left[:] = granted
      launch.context[layout.CLOCK // 8] = launch.grid.stats.steps + turn
      launch.run(self)
    self.entered = None
    used = granted - self.left
    self.executed += used
    stats = launch.grid.stats
    stats.instructions += int(used.sum())
    stats.steps += int(used.max())
    status = self.status
    self.turns += 1
    if (status == layout.END).all():
      self.given_back()
      return True
    if (status == layout.LEAVE).any(): return None
    yields = (status == layout.YIELD) | (status == layout.POLL)
    if not yields.any(): return None  # a barrier that does not complete
    if (self.executed >= launch.grid.watchdog).any(): return None
    if self.turns % PATIENCE == 0 and self._parted(np.flatnonzero(yields)): return None
    self.idle = self._same()
    status[yields] = layout.RUN
    return False

  def given_back(self) -> None:
    """Its blocks have ended. Raises MachineFault where they have kept tensor memory."""
    if self._ghost is not None and self._ghost.tensor is not None: self._ghost.tensor.check(range(self.count))

  def _same(self) -> bool:
    """Whether all strands are where they were at the last look."""
    self.left[:] = 0  # the next turn begins with as many as it likes
    now = self.states.copy()
    before, self._seen = self._seen, now
    return before is not None and np.array_equal(before, now)

  def _parted(self, rows: Value) -> bool:
    """Whether threads of a strand that runs on and on wait elsewhere: it may wait for them."""
    for row in rows.tolist():
      masks = self.launch.kernel.masks[int(self.states[row, layout.EXIT // 4])]
      if any(self.states[row, at // 4] for at in masks.values()): return True
    return False

  def held(self) -> int:
    """Blocks that have not ended."""
    return int((self.status.reshape(self.count, self.strands) != layout.END).any(axis=1).sum())

  # ---- taking over from the reference, and giving back

  def take(self, blocks: Blocks) -> bool:
    """Have a cohort's threads as they are, if all stand where compiled code can go on."""
    k = self.launch.kernel
    places = self.launch.places
    stops = {x.pc: n for n, x in enumerate(k.exits) if x.status == layout.BARRIER and not x.instance}
    rows: dict[int, list[tuple[Warps, int]]] = {}
    waits: dict[int, tuple[int, int, int]] = {}  # a warp's exit, its barrier, how many threads that waits for
    for group, what in blocks.waiting:
      if not isinstance(what, tuple) or what[1].finish is not None or what[1].at not in stops: return False
      numbers, after = what
      expected = np.broadcast_to(np.asarray(after.expected).reshape(-1), group.size).tolist()
      for row, warp in enumerate((group.waves - blocks.first).tolist()):
        waits[warp] = stops[after.at], int(numbers[row]), expected[row]
    for one in [*blocks.runnable, *(g for g, _ in blocks.waiting)]:
      assert isinstance(one, Warps)
      group = one
      if group.frames or group.top is not None: return False
      for row, warp in enumerate((group.waves - blocks.first).tolist()): rows.setdefault(warp, []).append((group, row))
    program = self.launch.grid.dispatch.program
    for warp in range(len(self.states)):
      state, parts = self.states[warp], sorted(rows.get(warp, ()), key=lambda p: p[0].pc)
      state[layout.STATUS // 4] = layout.RUN if parts else layout.END
      if not parts: continue
      if warp in waits:
        if len(parts) > 1: return False
        number, at, expected = waits[warp]
        state[layout.STATUS // 4], state[layout.NUMBER // 4] = layout.BARRIER, at
        state[layout.EXPECTED // 4] = layout.WHOLE if expected == self.threads else expected
      else:
        found = places.get(parts[0][0].pc)
        if found is None: return False
        number = found
      exit_, offsets = k.exits[number], k.masks[number]
      if any((group.pc, 0) not in offsets for group, _ in parts[1:]): return False
      lanes, alive = [_bits(group.lanes[row]) for group, row in parts], _bits(blocks.alive_lanes[warp])
      if alive != int(state[layout.ALIVE // 4]) and not exit_.left: return False  # it counts on those that have ended
      state[layout.EXIT // 4], state[layout.ACTIVE // 4] = number, lanes[0]
      state[layout.ALIVE // 4] = alive
      for offset in offsets.values(): state[offset // 4] = 0
      for (group, _), bits in zip(parts[1:], lanes[1:]): state[offsets[group.pc, 0] // 4] = bits
      raw = state.view(np.uint8)
      for n, offset in exit_.registers:
        if n == k.top: _put(raw, offset, np.zeros(LANES, np.uint64), np.ones(LANES, bool), k.shapes[n])
        if n >= len(program.function(program.entry_name).zeros): continue  # of a function that nobody is in
        value = np.zeros(LANES, operands.dtype_of(k.types[n]))
        known = np.zeros(LANES, bool)
        for group, row in parts:
          here = group.lanes[row]
          np.copyto(value, _row(group.v[n].view(value.dtype), row), where=here)
          if n in program.live(group.pc): known |= here
        if not _put(raw, offset, value, known, k.shapes[n]): return False
      if exit_.carry:
        carries = [_row(g.carry, row) & g.lanes[row] for g, row in parts]
        state[exit_.carry // 4] = _bits(np.logical_or.reduce(carries))
      self.executed[warp] = parts[0][0].count
    if not self._taken_barriers(blocks): return False
    self._taken_products(blocks)
    if blocks.tensor is not None: self.ghost().tensor = blocks.tensor
    self.local = blocks.local
    base = self.local.u8.ctypes.data
    self.states.view(np.uint64)[:, layout.LOCAL // 8] = base + np.arange(len(self.states)) * LANES * self.local.size
    size = blocks.lds_size
    self.lds.reshape(self.count, self.size)[:, :size] = blocks.lds.reshape(self.count, size)[:, :self.size]
    return True

  def _taken_barriers(self, blocks: Blocks) -> bool:
    """Have barriers as they stand, where no warp's threads differ."""
    came = {key: [row[0], row[1]] for key, row in blocks.barriers.items()}
    for group, (numbers, after) in blocks.waiting:  # they are counted where they wait
      expected = np.broadcast_to(np.asarray(after.expected).reshape(-1), group.size).tolist()
      for row, (block, number) in enumerate(zip(group.workgroups.tolist(), numbers.tolist())):
        count = LANES if expected[row] else int(group.lanes[row].sum())
        came[block, number][0] -= count
    for (block, number), (arrived, expected) in came.items():
      if not arrived: continue
      self.counts[block, number] = arrived, expected
    barriers = blocks.clusters
    if barriers is None: return True
    alive = blocks.alive_lanes
    came, tickets = barriers.arrived & alive, np.where(alive, barriers.ticket, -1)
    phases = np.repeat(barriers.phase, barriers.warps)
    if ((came != alive) & came.any(axis=1)[:, None]).any(): return False
    first = tickets.max(axis=1)
    if ((tickets != first[:, None]) & alive).any(): return False
    for at, values in ((layout.ARRIVED, came.any(axis=1)), (layout.TICKET, first), (layout.PHASE, phases)):
      self.states[:, at // 4] = values.astype(np.int64).astype(np.uint32)
    return True

  def _taken_products(self, blocks: Blocks) -> None:
    if blocks.committed is not None: self.states[:, layout.COMMITTED // 4] = blocks.committed

  def _given_products(self, cohort: Blocks) -> None:
    committed = self.states[:, layout.COMMITTED // 4]
    if committed.any(): cohort.committed = committed.astype(np.int64)

  def _given_barriers(self, cohort: Blocks) -> None:
    """Barriers as they stand, for the reference; threads that wait will come to them again."""
    for block, number in np.argwhere(self.counts[..., 0]).tolist():
      arrived, expected = self.counts[block, number].tolist()
      cohort.barriers[block, number] = [arrived, expected, 0, True]
    tickets = self.states[:, layout.TICKET // 4].view(np.int32)
    if (tickets < 0).all(): return
    size = cohort.shared.clustered
    barriers = cohort.clusters = Barriers(self.count // size, cohort.shared.warps * size)
    barriers.phase[:] = self.states[::barriers.warps, layout.PHASE // 4]
    barriers.arrived[:] = self.states[:, layout.ARRIVED // 4, None] != 0
    barriers.ticket[:] = tickets[:, None]

  def ghost(self) -> Blocks:
    """The reference's cohort that instructions which it does for compiled code see: memory is this one's."""
    grid = self.launch.grid
    if self._ghost is None:
      self._ghost = grid.cohort(self.first, self.count)
      everyone = self._ghost.runnable.pop()
      grid.stats.waves -= everyone.size
      self._ghost.lds, self._ghost.lds_size = self.lds, self.size
    self._ghost.local = self.local
    if grid.shared.clustered > 1:
      alive = (self.status.reshape(self.count, self.strands) != layout.END).any(axis=1)
      self._ghost.threads = alive.astype(np.int64)
    return self._ghost

  def back(self) -> Blocks:
    """The threads as a cohort of the reference, each where it stands."""
    grid = self.launch.grid
    cohort = grid.cohort(self.first, self.count)
    lds = cohort.lds.reshape(self.count, -1)
    lds[:, :self.size] = self.lds.reshape(self.count, self.size)[:, :lds.shape[1]]
    cohort.local = self.local
    everyone = cohort.runnable.pop()
    assert isinstance(everyone, Warps)
    groups = [g for row in range(len(self.states)) for g in self._groups(cohort, row)]
    alive = np.zeros((everyone.size, LANES), bool)
    for g in groups: alive[g.waves - cohort.first] |= g.lanes
    cohort.alive_lanes = alive
    cohort.threads[:] = 0
    np.add.at(cohort.threads, everyone.workgroups, alive.sum(axis=1))
    here = alive.any(axis=1)
    cohort.left = int(here.sum())
    cohort.live = np.bincount(everyone.workgroups[here], minlength=self.count)
    grid.stats.waves -= everyone.size
    self._given_barriers(cohort)
    self._given_products(cohort)
    if self._ghost is not None: cohort.tensor = self._ghost.tensor
    for g in groups: cohort._meet(g)
    interpreted, why = self.launch.grid.stats.interpreted, self.launch.why(self)
    interpreted[why] = interpreted.get(why, 0) + cohort.left
    return cohort

  def _groups(self, cohort: Blocks, row: int) -> Iterator[Warps]:
    """The groups of one strand: the threads that run, and those that wait elsewhere."""
    k, state = self.launch.kernel, self.states[row]
    if state[layout.STATUS // 4] == layout.END: return
    number = int(state[layout.EXIT // 4])
    program = self.launch.grid.dispatch.program
    if number == 0xFFFFFFFF: exit_, offsets = Exit(layout.RUN, program.entry, [], [], 0, 0, False, 0), {}
    else: exit_, offsets = k.exits[number], k.masks[number]
    carry, bytes_ = exit_.carry, state.view(np.uint8)
    values = {n: self._register(bytes_, offset, k.types[n], k.shapes[n]) for n, offset in exit_.registers}
    ways = [(exit_.pc, exit_.instance, int(state[layout.ACTIVE // 4]))]
    if row in self.parted:
      ways = []
      groups, instance = self.parted[row]
      for group in groups:
        group.cohort = cohort
        if instance: group.frames = (*self.launch.entered(cohort, instance, values).frames, *group.frames)
        yield group
    ways += [(at, instance, int(state[offset // 4])) for (at, instance), offset in offsets.items()]
    for at, instance, bits in ways:
      if not bits: continue
      group = self.launch.entered(cohort, instance, values)
      group.pc = at
      group.waves = np.array([cohort.first + row])
      group.workgroups = np.array([row // self.strands])
      if bits != (1 << LANES) - 1: group.mask = lanes_of(bits)
      group.count = int(self.executed[row])
      if carry: group.carry = lanes_of(int(state[carry // 4]))
      yield group

  @staticmethod
  def _register(state: Value, offset: int, type_: str, steps: list[int] | None) -> Value:
    """A register's value [1, lanes]."""
    return np.broadcast_to(value_of(state, offset, operands.dtype_of(type_), steps), (1, LANES)).copy()


def taken(launch: CompiledLaunch, blocks: Blocks) -> Cohort | Blocks | None:
  """What goes on with a cohort of the reference: compiled code, from the next place where it can; the reference, where
  threads do not come to one soon; nothing, when all have ended."""
  for _ in range(SOON):
    cohort = Cohort(launch, blocks.first // launch.grid.shared.warps, len(blocks.threads))
    if cohort.take(blocks): return cohort
    with np.errstate(all="ignore"):
      if blocks.run(1): return None
  return blocks


def _bits(lanes: Value) -> int: return int(np.packbits(lanes, bitorder="little").view(np.uint32)[0])


def _row(x: Value, row: int) -> Value:
  """A value of one warp of a group, as far as it differs from thread to thread."""
  return x if x.ndim == 0 else x[row if x.shape[0] > 1 else 0]


def _put(state: Value, offset: int, value: Value, known: Value, steps: list[int] | None) -> bool:
  """Write a register's value [lanes], which counts where it is `known`; whether it has the shape that it must have."""
  dtype = value.dtype
  if steps is None:
    if dtype.kind == "b": state[offset:offset + 4].view(np.uint32)[0] = _bits(value)
    else: state[offset:offset + LANES * dtype.itemsize] = value.view(np.uint8)
    return True
  if not known.any(): return True
  raw = value.view(f"u{dtype.itemsize}")
  if any(steps):
    bases = raw - np.array([s & (1 << dtype.itemsize * 8) - 1 for s in steps], raw.dtype)
  else: bases = raw
  if (bases[known] != bases[known][0]).any(): return False
  state[offset:offset + dtype.itemsize] = bases[known][:1].view(np.uint8)
  return True


def apart(grid: Grid) -> int:
  """Bytes from a block's shared memory to the next one's."""
  return -(-max(grid.shared.total, 1) // 64) * 64


class CompiledLaunch:
  """A launch in compiled code."""

  def __init__(self, grid: Grid, compiled: Kernel, exact: frozenset[int] = frozenset()) -> None:
    self.exact = exact
    self.grid, self.kernel, self.stack = grid, compiled, stack_size(grid.dispatch.program)
    self._memory = Memory(grid.space)
    self._version = grid.space.version
    self.helper = Helper(self) if compiled.helped else None
    self._context()

  def _context(self) -> None:
    d, grid, k = self.grid.dispatch, self.grid, self.kernel
    words = self.context = np.zeros(layout.CONTEXT_SIZE // 8, np.uint64)
    self._sites = np.zeros(k.sites * layout.ROW, np.uint8)
    params = grid.space.read(d.params, d.params_size) if d.params_size else b""
    self.params = np.frombuffer(params.ljust(max(16, len(params)), bytes(1)), np.uint8).copy()
    memory_ = self._memory.table
    for at, value in ((layout.MAPPINGS, len(memory_)), (layout.TABLE, memory_.ctypes.data),
                      (layout.SITES, self._sites.ctypes.data), (layout.PARAMS, self.params.ctypes.data),
                      (layout.PARAMS_AT, d.params), (layout.MODULE, d.program.base),
                      (layout.SHARED_SIZE, grid.shared.total), (layout.LOCAL_SIZE, max(16, -(-self.stack // 16) * 16)),
                      (layout.DYNAMIC, d.dynamic_shared), (layout.WORKSPACE, d.workspace),
                      (layout.USED, grid.shared.used), (layout.AGGREGATE, grid.shared.aggregate),
                      (layout.SYSTEM, grid.shared.system.start),
                      (layout.MULTICAST, len(grid.space.multicast)), (layout.MULTICAST + 8, self._several()),
                      (layout.STRANDS, grid.shared.warps), (layout.CLOCK, FIRST),
                      (layout.CLUSTER, grid.shared.clustered), (layout.APART, apart(grid)), (layout.STRIDE, k.stride)):
      words[at // 8] = value
    if self.helper is not None: words[layout.HELPER // 8] = self.helper.learner.table.ctypes.data
    small = words.view(np.uint32)
    small[layout.GRID // 4:layout.GRID // 4 + 3] = d.grid
    small[layout.CLUSTERED // 4:layout.CLUSTERED // 4 + 3] = grid.shared.cluster

  @cached_property
  def places(self) -> dict[int, int]:
    """Where threads of the reference can go on in compiled code, with the exits by which it comes back there: at loops
    and waits, and behind barriers that nobody votes at."""
    code, exits = self.grid.dispatch.program.function(self.grid.dispatch.program.entry_name), self.kernel.exits
    out = {x.pc: n for n, x in enumerate(exits) if x.status in RESUMING and not x.instance}
    for n, x in enumerate(exits):
      if x.status != layout.BARRIER or x.instance: continue
      line, following = code.beside(x.pc)
      if "red" not in line.instruction.modifiers: out.setdefault(following, n)
    return out

  def _several(self) -> int:
    """Where it says which addresses stand for several places."""
    self._places = [np.array(at, np.uint64) for *_, at in self.grid.space.multicast]
    self._ranges = np.array([(start, size, len(at), at.ctypes.data) for (start, size, _), at in zip(
      self.grid.space.multicast, self._places)], np.uint64).reshape(-1, 4)
    found: int = self._ranges.ctypes.data
    return found

  @property
  def mappings(self) -> Value:
    """Rows of `jit.memory.Memory`."""
    return self._memory.table

  def learns(self, array: Header) -> bool:
    """Whether what looks at a texture or surface may be compiled for it."""
    return True

  def states(self, size: int) -> Value:
    """Memory for states, used again by the next cohort when nobody has it any more."""
    raw = np.empty(size // 4 + 16, np.uint32)
    skip = -raw.ctypes.data % 64 // 4
    return raw[skip:skip + size // 4]

  def run(self, cohort: Cohort) -> None:
    """Run a cohort's blocks natively, as the mappings are now. Raises what the helper has raised."""
    if self.grid.space.version != self._version:
      self._memory, self._version = Memory(self.grid.space), self.grid.space.version
      if self.helper is not None: self.helper.forget()
      self._context()
    helper = self.helper
    if helper is not None: helper.begin(cohort)
    self.kernel.run(self.context.ctypes.data, cohort.states.ctypes.data, cohort.count)
    if helper is not None and helper.error is not None: raise helper.error

  def entered(self, cohort: Blocks, instance: int, values: dict[int, Value]) -> Warps:
    """A warp in a function's instance, with the frames of those that have called it; `values` are registers."""
    program = cohort.program
    name, caller, call, first, base = self.kernel.instances[instance]
    code = program.function(name)
    if caller < 0: group = Warps(cohort, 1, code.pc(0), [*code.zeros])
    else:
      group = self.entered(cohort, caller, values)
      of = program.at(group.pc)
      calling = Calling(of, of.flat.lines[call], name, of.pc(call + 1))
      group.frames = (*group.frames, calling.frame(group))
      group.v, group.pc = [*code.zeros], code.pc(0)
    group.base = base
    for n, value in values.items():
      if first <= n < first + len(group.v): group.v[n - first] = value
    if caller < 0 and self.kernel.top in values: group.top = top_of(group, values[self.kernel.top])
    return group

  def why(self, cohort: Cohort) -> str:
    """Why the reference goes on, in words for a report."""
    rows = np.flatnonzero(cohort.status == layout.LEAVE)
    if not rows.size: return "threads that wait"
    pc = self.kernel.exits[int(cohort.states[int(rows[0]), layout.EXIT // 4])].pc
    words = self.grid.dispatch.program.describe(pc).split()
    return next(w for w in words if not w.startswith("@")).rstrip(";")

  def size(self) -> int:
    """How many blocks run together."""
    grid, k = self.grid, self.kernel
    threads = grid.shared.warps * LANES
    cluster = grid.shared.clustered
    most = min(STATES // (grid.shared.warps * k.stride), SHARED // max(grid.shared.total, 64),
               SHARED // max(threads * self.stack, 1), grid.left, grid.places)
    return max(cluster, most // cluster * cluster)

  def turns(self, begun: Sequence[Resident] = (), entered: Sequence[Cohort] = ()) -> Iterator[Idle | None]:
    """As `Schedule.turns`; cohorts of the reference that have `begun` go on in compiled code as soon as they can, those
    that have `entered` it go on there."""
    grid = self.grid
    running: list[Cohort | Blocks] = [*entered]
    handed = 0
    grid.stats.engine = "jit"
    for blocks in begun:
      assert isinstance(blocks, Blocks)
      cohort = taken(self, blocks)
      if cohort is not None: running.append(cohort)
      yield None
    while running or grid.left:
      room = grid.places - sum(c.held() for c in running)
      while grid.left and room >= grid.shared.clustered:
        count = min(self.size(), room // grid.shared.clustered * grid.shared.clustered)
        cohort = Cohort(self, grid.started(count, room), count)
        grid.stats.waves += count * grid.shared.warps
        over = self._ran(cohort)
        if over is None:
          if wide := self._widened(cohort): return (yield from self._again(wide, [*running, cohort]))
          handed += 1 if not self._calls() else HANDED + 1
          running.append(cohort.back())
        elif not over: running.append(cohort)
        if over is not True: room -= count
        yield None
        if handed > HANDED: return (yield from self._reference(running))
      grid.tell(room)
      quiet = True
      for one in [*running]:
        over = self._interpreted(one) if isinstance(one, Blocks) else self._ran(one)
        if over:
          running.remove(one)
          quiet = False
        elif over is None:
          assert isinstance(one, Cohort)
          if wide := self._widened(one): return (yield from self._again(wide, running))
          running[running.index(one)] = one.back()
          handed += 1 if not self._calls() else HANDED + 1
          quiet = False
        else: quiet = quiet and one.idle
        yield None
      if running and (quiet or handed > HANDED): return (yield from self._reference(running))

  def _calls(self) -> bool:
    """Whether it calls functions so often that the reference is quicker: then so it is next time."""
    if self.helper is None or self.helper.calls <= MANY: return False
    d = self.grid.dispatch
    d.program.compiled[d.block, self.exact, self.grid.shared.explicit, ""] = "calls of functions"
    return True

  @staticmethod
  def _interpreted(blocks: Blocks) -> bool:
    """A turn of a cohort of the reference."""
    with np.errstate(all="ignore"): return blocks.run()

  def _widened(self, cohort: Cohort) -> set[int]:
    """The instructions that left because steps from a base passed the end of the type that they widen."""
    rows = np.flatnonzero(cohort.status == layout.LEAVE)
    pcs = {self.kernel.exits[int(n)].pc for n in cohort.states[rows, layout.EXIT // 4]}
    return {k for pc in pcs for k in self.kernel.widens.get(pc, ())}

  def _again(self, wide: set[int], running: list[Cohort | Blocks]) -> Iterator[Idle | None]:
    """Go on with code in which the results of these instructions are vectors."""
    exact = self.exact | wide
    try: found = kernel(self.grid.dispatch.program, self.grid.dispatch.block, exact, self.grid.shared.explicit)
    except NotCompiled: return (yield from self._reference(running))
    begun = [c.back() if isinstance(c, Cohort) else c for c in running]
    yield from CompiledLaunch(self.grid, found, exact).turns(begun)

  def _ran(self, cohort: Cohort) -> bool | None:
    """A turn of a cohort, see `Cohort.run`."""
    tick = self.grid.dispatch.tick
    if tick is not None:
      try: tick()
      except MachineFault: return None  # the reference says where threads were stopped
    return cohort.run()

  def _reference(self, running: list[Cohort | Blocks]) -> Iterator[Idle | None]:
    """The reference runs all that is left, and finds out whether anything can go on."""
    back: list[Any] = [c.back() if isinstance(c, Cohort) else c for c in running]
    self.grid.changes.count += 1  # what compiled code changed was not counted
    yield from Schedule(self.grid, back).turns()


__all__ = ["Cohort", "CompiledLaunch", "kernel"]
