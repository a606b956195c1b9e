"""The debugger of PTX kernels: `debug.debugger` with threads, registers and calls as PTX has them."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import Error, InvalidArgument, MachineFault
from tinyhw.emulator.debug.breaks import Break
from tinyhw.emulator.debug.code import Code
from tinyhw.emulator.debug.debugger import Debugger
from tinyhw.emulator.debug.engine import Engine
from tinyhw.emulator.debug.ptx.code import PtxCode
from tinyhw.emulator.debug.ptx.engine import PtxEngine
from tinyhw.emulator.debug.ptx.warp import Warp
from tinyhw.emulator.debug.stop import Frame, Stop
from tinyhw.emulator.debug.wave import Wave, WaveInfo
from tinyhw.emulator.ptx.group import LANES, warps
from tinyhw.emulator.ptx.launch.explain import explain
from tinyhw.emulator.simt import Group


@dataclass
class PtxDebugger(Debugger):
  """A launch of a PTX kernel under control; `text` are the module's lines. See `Debugger`.

      with tinyhw.debug("kernel.ptx", "add", (1,), (64,), [a, b, out]) as d:
        d.break_at("PTX:21")
        print(d.run(), d.thread(0, 5)["%r1"])
  """
  text: Sequence[str] = ()
  unit = "warp"
  names = ("warp", "block")

  def _code(self) -> Code: return PtxCode(self.dispatch.program)

  def _engine(self) -> Engine:
    return PtxEngine(self.space, self.arch, self.dispatch, self.watchdog, self._watcher)

  def view(self, wave: int) -> Warp: return Warp(self.engine, wave)

  @property
  def wave(self) -> Warp: return self.view(self.focus)

  # ---- threads

  @property
  def lane(self) -> int:
    """The thread in focus, within its warp."""
    return self._ptx.lane

  @property
  def _ptx(self) -> PtxEngine:
    assert isinstance(self.engine, PtxEngine)
    return self.engine

  def look_at(self, wave: int, lane: int = 0) -> Wave:
    if not 0 <= lane < LANES: raise InvalidArgument(f"no lane {lane}")
    before, self._ptx.lane = self._ptx.lane, lane
    try: return super().look_at(wave)
    except Error:
      self._ptx.lane = before
      raise

  def look_at_thread(self, block: int, thread: int) -> Warp:
    """Put a thread in focus: of a block by its number (x fastest), by its own number in the block."""
    x, y, z = self.dispatch.block
    if not 0 <= thread < x * y * z: raise InvalidArgument(f"a block has {x * y * z} threads, no thread {thread}")
    self.look_at(block * self.engine.waves_a_group + thread // LANES, thread % LANES)
    return self.wave

  def thread(self, block: int, thread: int) -> dict[str, Any]:
    """The registers of a thread by name."""
    before = self.focus, self.lane
    try:
      view = self.look_at_thread(block, thread)
      return {name: view.values(name)[thread % LANES].item() for name in view.registers()}
    finally: self.focus, self._ptx.lane = before

  def waves(self, ended: bool = False) -> list[WaveInfo]:
    """All warps that have started and not ended, and each part of those whose threads have parted."""
    if ended: return super().waves(ended)
    out = []
    for _, group, runs in self.engine.groups():
      for row, n in enumerate(group.waves.tolist()):
        active = int(warps(group).lanes[row].sum())
        out.append(WaveInfo(n, self.view(n).workgroup, "running" if runs else "waiting", group.pc, active, LANES,
                            group.count))
    return sorted(out, key=lambda w: w.wave)

  # ---- calls

  def _depth(self, wave: int) -> int:
    found = self.engine.find(wave)
    return 0 if found is None else len(warps(found[1]).frames)

  def backtrace(self, wave: int | None = None) -> list[Frame]:
    """Where a warp is, then each call that it has not returned from: the instruction behind it."""
    found = self.engine.find(self.focus if wave is None else wave)
    if found is None: raise InvalidArgument(f"warp {wave} has ended")
    group: Any = found[1]
    pcs = [group.pc, *(f.pc for f in reversed(group.frames))]
    return [Frame(pc, f"{self.code.function_of(pc)} {self.code.where(pc)}", self.code.source.spot(pc)) for pc in pcs]

  def _over_call(self, address: int, depth: int) -> Stop:
    stop = self.step()
    if stop.reason != "step" or self._depth(self.focus) <= depth: return stop
    return self._run_to_depth(depth)

  def finish(self) -> Stop:
    """Go on until the function that the warp is in returns; without a call, until the warp ends."""
    self._focused()
    return self._run_to_depth(self._depth(self.focus) - 1)

  def _run_to_depth(self, depth: int) -> Stop:
    wave = self.focus

    def done() -> str | None:
      if self.engine.find(wave) is None: return f"warp {wave} has ended"
      return "" if self._depth(wave) <= depth else None
    return self.run(done)

  def _stop(self, reason: str, text: str, group: Group, wave: int | None = None, b: Break | None = None,
            error: Error | None = None) -> Stop:
    if b is not None and b.lane is not None: self._ptx.lane = b.lane
    elif isinstance(error, MachineFault) and error.lane is not None: self._ptx.lane = error.lane % LANES
    return super()._stop(reason, text, group, wave, b, error)

  # ---- looking

  def _fault(self, error: Error, group: Group | None) -> Stop:
    if isinstance(error, MachineFault):
      d: Any = self.dispatch
      error.kernel = d.program.entry_name
      error.work = f"kernel {error.kernel}"
      explain(d.program, error, d.grid, d.block, self.text, d.clusters)
    return super()._fault(error, group)

  def shared(self, kind: str = "u8", block: int | None = None) -> npt.NDArray[Any]:
    """The shared memory of a block (that of the warp in focus) as values of a type, a copy."""
    view = self.wave if block is None else self.view(block * self.engine.waves_a_group)
    raw = view.lds()
    dtype = np.dtype({"u8": "u1", "u32": "u4", "i32": "i4", "f32": "f4", "f16": "f2", "u16": "u2", "u64": "u8",
                      "f64": "f8", "i64": "i8", "i16": "i2", "i8": "i1"}[kind])
    return np.frombuffer(raw.tobytes()[:len(raw) // dtype.itemsize * dtype.itemsize], dtype)
