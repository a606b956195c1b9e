"""Replays as chains of QMDs, and QMDs that travel in the pushbuffer: every generation, every version of its class."""
from __future__ import annotations

import numpy as np
import pytest

from tests.drive.nv.programs import BLOCK, ONE, PTX, THREADS, download, row, upload
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.core.errors import MachineFault, Unsupported
from tinyhw.devices.assemble import Assembler
from tinyhw.drive.base import Launch
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort
from tinyhw.wire import qmd

VERSIONS = [(name, v) for name, a in NV_ARCHES.items() for v in qmd.versions(a.compute_class)
            if v >= (3, 0) and (v == a.qmd or not a.qmd_alone)]


def runtime(arch: str, version: tuple[int, int] | None = None, inline: bool = False) -> NVRuntime:
  machine = NvMachine(arch, vram=1 << 28, system_memory=1 << 28)
  made = NVRuntime(NvPort(machine), timeout_s=5, qmd_version=version, inline_qmd=inline)
  made.assemble = Assembler(made.arch, False)
  return made


@pytest.mark.parametrize(("arch", "version"), VERSIONS)
def test_a_replay_is_a_chain(arch: str, version: tuple[int, int]) -> None:
  gpu = runtime(arch, version)
  add = gpu.load(PTX, "add")
  a, b, one = (upload(gpu, row(v)) for v in (0, 0, 1))
  steps = [Launch(add, (1, 0, 2), ONE, BLOCK), Launch(add, (0, 1, 2), ONE, BLOCK)] * 35  # more than a group has
  run = gpu.runner(steps)
  for n in range(1, 4):
    run([a, b, one], None)
    add([a, a, one], [], ONE, BLOCK)
    assert (download(gpu, a, row(0)) == 71 * n).all()
  run([a, b, one], None)
  gpu.synchronize()
  sent = [line for line in gpu.last_submission() if "SEND_PCAS_A" in line]
  assert len(sent) == 1 and ["WFI(" in line for line in gpu.last_submission()].count(True) == 1  # before them all
  machine = gpu.port.machine  # type: ignore[attr-defined]
  gpu.close()
  assert machine.findings == []


def test_grids_and_values_change_from_replay_to_replay() -> None:
  gpu = runtime("sm_90")
  add = gpu.load(PTX, "add")
  a, b = upload(gpu, np.zeros(4 * THREADS, np.uint32)), upload(gpu, np.full(4 * THREADS, 3, np.uint32))
  run, like = gpu.runner([Launch(add, (0, 0, 1), (4, 1, 1), BLOCK)] * 2), np.zeros(4 * THREADS, np.uint32)
  for grid, blocks in (((4, 1, 1), 4), ((1, 1, 1), 1), ((3, 1, 1), 3)):
    like[:blocks * THREADS] += 6
    run([a, b], None, [grid, grid])
    assert (download(gpu, a, like) == like).all()
  gpu.close()


def test_a_fault_amid_a_chain() -> None:
  gpu = runtime("sm_90")
  add = gpu.load(PTX, "add")
  a, one = upload(gpu, row(0)), upload(gpu, row(1))
  far = gpu.alloc(64)
  far.address = 0x6FFF_0000_0000
  gpu.runner([Launch(add, (0, 0, 1), ONE, BLOCK), Launch(add, (2, 0, 1), ONE, BLOCK)] * 2)([a, one, far], None)
  with pytest.raises(MachineFault, match="0x6fff00000000"): gpu.synchronize()
  gpu.close()


@pytest.mark.parametrize(("arch", "version"), VERSIONS)
def test_qmds_in_the_pushbuffer(arch: str, version: tuple[int, int]) -> None:
  gpu = runtime(arch, version, inline=True)
  add, box = gpu.load(PTX, "add"), gpu.load(PTX, "box")
  if gpu.arch.sm < 90 and qmd.declared(gpu.arch.compute_class, version).DWORDS > 64:
    with pytest.raises(Unsupported, match="inline QMD"): add([], [], ONE, BLOCK)
    return gpu.close()
  a, one, boxed = upload(gpu, row(0)), upload(gpu, row(1)), upload(gpu, np.zeros(96, np.uint32))
  for _ in range(4):
    add([a, a, one], [], ONE, BLOCK)
    box([boxed], [], (1, 3, 1), (8, 4, 1))
  assert (download(gpu, a, row(0)) == 4).all()
  assert (download(gpu, boxed, np.zeros(96, np.uint32)) == np.arange(96) * 3).all()
  seconds = add([a, a, one], [], ONE, BLOCK, wait=True)
  assert seconds and any("LOAD_INLINE_QMD_DATA" in line for line in gpu.last_submission())
  assert not any("SEND_PCAS_A" in line for line in gpu.last_submission())
  machine = gpu.port.machine  # type: ignore[attr-defined]
  gpu.close()
  assert machine.findings == []
