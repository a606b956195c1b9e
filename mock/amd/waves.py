"""Dispatches on the ISA emulator: the one place where the mock hands waves over.

A dispatch runs in turns, so that other queues and the host go on meanwhile: its waves may wait for them.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from tinyhw.arch import arch
from tinyhw.core.errors import InvalidArgument, MachineFault
from tinyhw.core.patience import ticker
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.amdgcn.hwreg import MODELLED
from tinyhw.emulator.engines import start
from tinyhw.emulator.schedule import Idle
from tinyhw.mock.amd.compute import Program

if TYPE_CHECKING:
  from tinyhw.mock.amd.pm4 import ComputeQueue

CYCLES_PER_INSTRUCTION: Final = 4  # of a wave, when others hide nothing

Waves = Generator[Idle | None, None, int]


def start_waves(queue: ComputeQueue, program: Program, size: tuple[int, int, int], user_data: tuple[int, ...]) -> Waves:
  """Run a dispatch in turns, see `engines.start`. Returns its nanoseconds on the machine's clock: the instructions of
  all waves shared out among the card's SIMDs, and no less than those of one wave."""
  card = queue.gpu.card
  lanes = 32 if program.wave32 else 64
  try:
    stats = yield from start(
      queue.space,
      arch(card.name),
      Dispatch(
        entry_pc=program.entry,
        grid=size,
        block=program.block,
        rsrc1=program.rsrc1,
        rsrc2=program.rsrc2,
        rsrc3=program.rsrc3,
        user_data=user_data,
        scratch_base=program.scratch_base,
        scratch_size=program.scratch_size // lanes,
        scratch_waves=program.scratch_waves,
        lds_size=program.lds_size,
        wave32=program.wave32,
        compute_units=card.compute_units,
        shader_engines=card.shader_engines,
        interrupt=lambda what: queue.interrupt(what, 24, "a wave"),  # the SQ's interrupts have 24 bits
        tick=ticker(queue.terms, queue.queued_by() in (None, threading.main_thread().ident)),
      ),
      watchdog=queue.machine.watchdog,
      engine=queue.machine.engine,
      observer=queue.observer,
    )
  except InvalidArgument as refused:  # what the registers ask for and no chip has
    raise MachineFault(f"DISPATCH: {refused}") from None
  for pc, outside in stats.outside.items():
    queue.machine.doubt(f"{queue.name}: at PC {pc:#x} {outside}")
  if queue.terms is not None:
    queue.terms.outside |= stats.outside
  for what, count in stats.modelled.items():
    queue.machine.ignored.note("hardware state", what, MODELLED[what], count)
  queue.machine.executed += stats.instructions
  waves = max(stats.waves, 1)
  turns = -(-waves // card.simds)
  return stats.instructions // waves * turns * CYCLES_PER_INSTRUCTION * 1000 // card.engine_clock
