"""A launch leaves out the registers that its queue still holds: those, and only those, that a chip keeps for the queue.

What is kept is the kernel driver's to say: the dwords of a queue's descriptor that the command processor loads when it
maps the queue (`autogen/mqd.py`). The mock takes queues off their engine now and then, and loses all other registers.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.drive import programs
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import mqd
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.mock.amd.chip import planning as mock
from tinyhw.mock.amd.chip.registers import registers_of
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
from tinyhw.wire import pm4

NAMES = {r.OFFSET: r.__name__ for r in gc.REGISTERS}
# without effect here: what they limit, or where half a dispatch would go on, is not modelled
UNSEEN = {"COMPUTE_RESOURCE_LIMITS", "COMPUTE_RESTART_X", "COMPUTE_RESTART_Y", "COMPUTE_RESTART_Z", "COMPUTE_PGM_RSRC3"}
# looked at with FORCE_START_AT_000 0 only
UNREAD = {"COMPUTE_START_X", "COMPUTE_START_Y", "COMPUTE_START_Z"}


def written(words: Sequence[int]) -> set[str]:
  """The registers that a stream writes."""
  return {NAMES[offset] for _, packet in pm4.walk(words) for offset, _ in pm4.registers(packet)}


def left_out() -> set[str]:
  """What the second launch of a kernel in a row does not write."""
  gpu = AMDRuntime(MockPort(Machine("gfx1100")))
  program = gpu.load(programs.objects("gfx1100")[1], "private")
  prepared = program._prepare((64, 1, 1), 0, False)
  return written(prepared.full.words) - written(prepared.again.words)


LEFT_OUT = (
  "COMPUTE_DISPATCH_SCRATCH_BASE_HI", "COMPUTE_DISPATCH_SCRATCH_BASE_LO", "COMPUTE_NUM_THREAD_X",
  "COMPUTE_NUM_THREAD_Y", "COMPUTE_NUM_THREAD_Z", "COMPUTE_PGM_HI", "COMPUTE_PGM_LO", "COMPUTE_PGM_RSRC1",
  "COMPUTE_PGM_RSRC2", "COMPUTE_PGM_RSRC3", "COMPUTE_RESOURCE_LIMITS", "COMPUTE_RESTART_X", "COMPUTE_RESTART_Y",
  "COMPUTE_RESTART_Z", "COMPUTE_START_X", "COMPUTE_START_Y", "COMPUTE_START_Z", "COMPUTE_TMPRING_SIZE",
)


def test_a_launch_leaves_out_these_registers_and_a_queue_keeps_each() -> None:
  assert left_out() == set(LEFT_OUT) <= mqd.PRELOAD_GFX11.keys()


@pytest.mark.parametrize("name", sorted({*LEFT_OUT} - UNSEEN - UNREAD))
def test_a_register_that_were_not_kept_would_be_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
  """The model is no ornament: take one register from the list, and the driver's programs go wrong."""
  known = registers_of("gfx1100")
  less = replace(known, kept=known.kept - {getattr(gc, name).OFFSET})
  monkeypatch.setattr(mock, "registers_of", lambda _: less)
  with programs.small(): assert programs.all_of(Machine("gfx1100,gfx1100"))
