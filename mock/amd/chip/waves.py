"""Dispatches on the ISA emulator: the one place where the mock hands waves over.

A dispatch runs in turns, so that other queues and the host go on meanwhile: its waves may wait for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tinyhw.core.errors import InvalidArgument, MachineFault
from tinyhw.core.timeout import ticker
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.amdgcn.hwreg import MODELLED
from tinyhw.emulator.engines.amdgcn import Repeated, start
from tinyhw.emulator.schedule import Idle
from tinyhw.mock.amd.chip.compute import Shader, duration

if TYPE_CHECKING:
  from tinyhw.mock.amd.chip.flights import Flight
  from tinyhw.mock.amd.chip.planning import Planning

_REPEATING: Final = frozenset({"auto", "jit"})  # engines

Waves = Generator[Idle | None, None, int]


def start_waves(
  queue: Planning, program: Shader, size: tuple[int, int, int], user_data: tuple[int, ...],
  flight: Flight | None = None,
) -> Waves:
  """Run a dispatch in turns, see `engines.start`. Returns its `duration`. A `flight` sees memory through caches."""
  machine, card, terms = queue.machine, queue.gpu.card, queue.terms
  def tick() -> Callable[[], None]:
    return ticker(queue.terms, queue.queued_by() in (None, threading.main_thread().ident))

  try:
    if flight is not None or queue.observer is not None or machine.engine not in _REPEATING or (
        terms is not None and terms.seconds is not None):
      stats = yield from start(
        queue.space if flight is None else flight.space,
        queue.processor,
        replace(_dispatch(queue, program, size), user_data=user_data, tick=tick()),
        watchdog=machine.watchdog,
        engine=machine.engine,
        observer=queue.observer,
        view=None if flight is None else flight.view,
      )
    else:
      stats = yield from _repeated(queue, program, size).start(user_data, tick)
  except InvalidArgument as refused:  # what the registers ask for and no chip has
    raise MachineFault(f"DISPATCH: {refused}") from None
  for pc, outside in stats.outside.items():
    machine.doubt(f"{queue.name}: at PC {pc:#x} {outside}")
  if terms is not None:
    terms.outside |= stats.outside
  for what, count in stats.modelled.items():
    machine.ignored.note("hardware state", what, MODELLED[what], count)
  for why, count in stats.mistakes.items():
    machine.ignored.note("compiled code", f"of the program at {program.entry:#x}", why, count)
  machine.executed += stats.instructions
  return duration(stats, card)


def _dispatch(queue: Planning, program: Shader, size: tuple[int, int, int]) -> Dispatch:
  """The dispatch without its user data."""
  card, lanes = queue.gpu.card, 32 if program.wave32 else 64
  return Dispatch(
    entry_pc=program.entry,
    grid=size,
    block=program.block,
    rsrc1=program.rsrc1,
    rsrc2=program.rsrc2,
    rsrc3=program.rsrc3,
    scratch_base=program.scratch_base,
    scratch_size=program.scratch_size // lanes,
    scratch_waves=program.scratch_waves,
    lds_size=program.lds_size,
    wave32=program.wave32,
    compute_units=card.compute_units * queue.cores // card.xccs,
    shader_engines=queue.scratch_engines,
    xccs=queue.cores,
    interrupt=lambda what: queue.interrupt(what, 24, "a wave"),  # the SQ's interrupts have 24 bits
  )


def _repeated(queue: Planning, program: Shader, size: tuple[int, int, int]) -> Repeated:
  """The dispatch, kept for as long as nothing but its user data changes."""
  machine = queue.machine
  return queue.repeated.made((program, size), lambda: Repeated(
    queue.space, queue.processor, _dispatch(queue, program, size), watchdog=machine.watchdog, engine=machine.engine))
