"""The debugger of AMD's machine code: `debug.debugger` with its waves and its calls, which it follows itself."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tinyhw.emulator.debug.amdgcn.code import MachineCode
from tinyhw.emulator.debug.amdgcn.engine import AmdEngine
from tinyhw.emulator.debug.amdgcn.wave import AmdWave
from tinyhw.emulator.debug.code import Code
from tinyhw.emulator.debug.debugger import Debugger
from tinyhw.emulator.debug.engine import Engine
from tinyhw.emulator.debug.stop import Frame, Stop
from tinyhw.isa.amdgcn import Instruction, table


@dataclass
class _Call:
  at: int  # PC of the call
  back: int  # where it returns to


class AmdDebugger(Debugger):
  """A dispatch of AMD's machine code under control. See `Debugger`."""
  unit = "wave"
  names = ("wave", "workgroup")

  def __post_init__(self) -> None:
    self._calls: dict[int, list[_Call]] = {}
    super().__post_init__()

  def _code(self) -> Code:
    return MachineCode(self.space, table(self.arch.table), self.ranges, self.symbols, self.dispatch.entry_pc,
                       self.source)

  def _engine(self) -> Engine:
    return AmdEngine(self.space, self.arch, self.dispatch, self.watchdog, self._watcher)

  def view(self, wave: int) -> AmdWave: return AmdWave(self.engine, wave)

  @property
  def wave(self) -> AmdWave: return self.view(self.focus)

  # ---- calls

  def _follow_calls(self, i: Instruction, pc: int, waves: list[int]) -> None:
    for wave in waves:
      if self.engine.find(wave) is None: continue
      stack = self._calls.setdefault(wave, [])
      if i.mnemonic in self.code.calls: stack.append(_Call(pc, pc + i.size))
      else:
        now = self.view(wave).pc
        depth = next((k for k in range(len(stack) - 1, -1, -1) if stack[k].back == now), None)
        if depth is not None: del stack[depth:]

  def _depth(self, wave: int) -> int:
    return len(self._calls.get(wave, ()))

  def _over_call(self, address: int, depth: int) -> Stop:
    return self._run_until(address, depth)

  def finish(self) -> Stop:
    self._focused()
    stack = self._calls.get(self.focus)
    if stack: return self._run_until(stack[-1].back, len(stack) - 1)
    return self._run_until(-1, -1)

  def backtrace(self, wave: int | None = None) -> list[Frame]:
    number = self.focus if wave is None else wave
    pcs = [self.view(number).pc, *(c.at for c in reversed(self._calls.get(number, [])))]
    return [Frame(pc, self.code.where(pc), spot) for pc in pcs for spot in self.code.source.chain(pc) or (None,)]

  def _calls_kept(self) -> Any: return {w: list(c) for w, c in self._calls.items()}

  def _calls_back(self, kept: Any) -> None: self._calls = {w: list(c) for w, c in kept.items()}
