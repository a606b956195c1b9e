"""A launch: where its QMD says that constant bank 0 lies, who is told of its end, what follows. The rest is its plan's.

When all blocks have ended, memory is released to whom it concerns, semaphores are written, and dependent QMDs begin.

A program is what memory holds at PROGRAM_ADDRESS: the uploaded cubin with its PTX.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from tinyhw.core.errors import DecodeError, Interrupted, InvalidArgument, MachineFault
from tinyhw.core.printf import Printed
from tinyhw.core.timeout import Terms, ticker
from tinyhw.mock.nv.chip import faults, semaphores
from tinyhw.mock.nv.chip.jobs import Job, Turns
from tinyhw.mock.nv.chip.plan import Plan

if TYPE_CHECKING:
  from tinyhw.emulator.observe import Observer
  from tinyhw.emulator.schedule import Idle
  from tinyhw.emulator.simt import Stats

CYCLES_PER_INSTRUCTION: Final = 4
_DIMENSIONS: Final = struct.Struct("<3I")


class QmdLaunch:
  """See the module. `value` are the bits of the QMD at `address`."""

  def __init__(self, plan: Plan, value: int, address: int) -> None:
    self.plan, self.address, self._value = plan, address, value
    self.channel, self.space = plan.channel, plan.space
    self.image = plan.image
    self.banks = plan.banks
    if 0 in plan.banks:
      size = plan.banks[0][1]
      at = self._own("CONSTANT_BUFFER_ADDR", 0)
      plan.check_bank(0, at)
      if plan.banks[0][0] != at: self.banks = {**plan.banks, 0: (at, size)}
      stack = plan.channel.gpu.card.arch.bank0.stack
      if plan.image.kernel.local and size >= stack + 4:
        plan.check_stack(int.from_bytes(self.space.read(at + stack, 4), "little"))
      for name, offset, wanted in plan.bank0:
        found = _DIMENSIONS.unpack(self.space.read(at + offset, 12))
        if found != wanted:
          plan.machine.doubt(f"{self.channel.name}: constant bank 0 of {self.name} says {name} {found}, and its QMD "
                             f"{wanted}: machine code reads the bank")

  @property
  def name(self) -> str:
    return self.image.name

  def _own(self, name: str, index: int) -> int:
    return self.plan.changing.read(self._value, name, index)

  def job(self, by: int | None) -> Job:
    """It, as the engine's work, which a thread has queued."""
    terms = self.plan.machine.agreed.get(by or 0)
    return Job(f"the launch of {self.name}", self._run(by, terms), True, by, terms, True, explain=self.explain)

  def _run(self, by: int | None, terms: Terms | None) -> Turns:
    """Run the blocks, then tell who waits."""
    channel, machine, plan = self.channel, self.plan.machine, self.plan
    channel.caches.begins(self)
    observer = machine.observer if terms is None or terms.observer is None else terms.observer
    kernel = self.image.kernel
    params = self.banks[0][0] + kernel.params if 0 in self.banks else 0
    if machine.trace.enabled:
      machine.trace.add(channel.name, "dispatch", self.name, grid=plan.grid, block=plan.block)
    try:
      stats = plan.repeated.at_once(params) if terms is None and observer is None else None
      if stats is None:
        stats = yield from self._turns(params, terms, by, observer)
    except InvalidArgument as refused:
      raise faults.compute("ILLEGAL_LAUNCH", str(refused)) from None
    except DecodeError as wrong:  # found when control gets there; ptxas would have refused the program
      raise faults.compute("ILLEGAL_INSTRUCTION", str(wrong)) from None
    except MachineFault as fault:
      self.explain(fault)
      if isinstance(fault, Interrupted): self._end(by)  # it was taken off: what waits for its end goes on
      raise
    for why, count in stats.mistakes.items():
      machine.ignored.note("compiled code", f"of kernel {self.name}", why, count)
    machine.executed += stats.instructions
    waves, card = max(stats.waves, 1), channel.gpu.card
    turns = -(-waves // (4 * card.sms))
    machine.clock.advance(stats.instructions // waves * turns * CYCLES_PER_INSTRUCTION * 1000 // card.clock_mhz)
    self._end(by)

  def _end(self, by: int | None) -> None:
    """Tell who waits, and begin what follows."""
    self._release()
    for index, fresh in self.plan.dependents:
      launch = self.plan.engine.launch_at(self._own("DEPENDENT_QMD_POINTER", index) << 8, fresh)
      self.channel.begin(launch.job(by))

  def _turns(self, params: int, terms: Terms | None, by: int | None,
             observer: Observer | None) -> Generator[Idle | None, None, Stats]:
    """Run them turn by turn, and print what they print."""
    printed, tick = Printed(), ticker(terms, by in (None, threading.main_thread().ident))
    try:
      return (yield from self.plan.repeated.start(params, tick, printed, observer))
    finally:
      printed.write(tick)

  def explain(self, fault: MachineFault) -> None:
    """Say which line of the PTX a fault is at, once."""
    if fault.work is not None:
      return
    fault.work, fault.kernel = f"kernel {self.image.name}", self.image.name
    text = self.image.ptx.splitlines()
    at = None
    if fault.pc is not None:
      line = self.image.program.place(fault.pc)[1]
      at = None if line is None else line.instruction.at
    self.image.program.explain(fault, self.plan.grid, self.plan.block, text, self.plan.cluster)
    self.channel.fault_pc = self.image.text_address if at is None else self.image.place_of(*at)

  def _release(self) -> None:
    """The semaphores that the QMD names, after all memory that the threads wrote."""
    for r in self.plan.releases:
      address = self._own("RELEASE_SEMAPHORE_ADDR", r.index)
      payload = self._own("RELEASE_SEMAPHORE_PAYLOAD", r.index)
      if address % r.align:
        raise self.plan.engine.invalid(f"a semaphore of {r.align} bytes at {address:#x}")
      semaphores.write(self.space, address, payload, r.reduction, wide=r.wide, signed=r.signed,
                       time_ns=self.channel.gpu.timer() if r.timed and not r.reduction else None)
      if r.interrupts:
        self.channel.interrupt("QMD RELEASE")
