"""Benches of `tinyhw bringup` over the ports that the environment asks for: the system's, or a mock machine's."""
from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from tinyhw.bringup.bench import Other, TimedBench, forked
from tinyhw.bringup.rung import Ladder
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.port import Port
from tinyhw.devices.assemble import Assembler
from tinyhw.devices.captured import RECORDING
from tinyhw.devices.mocked import gpus_named
from tinyhw.devices.registry import Device, mock_cards, system_way

VENDORS: Final = ("AMD", "NV")


def ladder_of(vendor: str) -> Ladder[Any]:
  """The rungs of a vendor, whose packets and structs load with them."""
  if vendor == "NV":
    from tinyhw.bringup.nv.rungs import NV
    return NV
  from tinyhw.bringup.amd.rungs import AMD
  return AMD


def device_of(vendor: str, index: int) -> str:
  """What the run is of, for people and the state file. Raises DeviceError on a machine that has no such device."""
  cards = mock_cards(vendor)
  if cards is None:
    system_way(vendor)
    return f"card {index} of this machine"
  cards = gpus_named(vendor, cards)
  if not 0 <= index < len(cards):
    raise InvalidArgument(f"no card {index}: MOCKGPU={os.environ['MOCKGPU']} has {len(cards)} of {vendor}",
                          where="tinyhw bringup")
  return f"mock {cards[index]}"


def maker(vendor: str, index: int, largest: int, **options: Any) -> Callable[[], TimedBench]:
  """What makes a bench in the process that calls it."""
  def make() -> TimedBench:
    port = Device.amd_port() if vendor == "AMD" else Device.nv_port()
    machine = Device.machines.get(vendor)
    if machine is not None: return bench(vendor, port, index, largest, lambda: another(vendor, machine, index), options,
                                       mocked=True)
    return bench(vendor, port, index, largest, lambda: forked(fresh), options, mocked=False)

  def fresh() -> TimedBench: return bench(vendor, system_way(vendor).to, index, largest, None, options,
                                    mocked=False)
  return make


def bench(vendor: str, port: Port, index: int, largest: int, beside: Callable[[], Other] | None,
          options: dict[str, Any], *, mocked: bool) -> TimedBench:
  """A vendor's bench over a port; a mock card executes PTX, and needs no machine code."""
  if vendor == "NV":
    from tinyhw.bringup.nv.bench import NvBench
    return NvBench(port, index, largest, beside, assemblers=lambda arch: Assembler(arch, not mocked), **options)
  from tinyhw.bringup.amd.bench import AmdBench
  return AmdBench(port, index, largest, beside)


class Neighbour:
  """Another process of a mock machine: a port whose calls come from another pid. It is served in this process, where
  the machine is; what it waits for lets the machine go on as any wait does."""

  def __init__(self, made: TimedBench, port: Any) -> None:
    self._bench, self._port, self._ended = made, port, False

  def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
    self._bench.begin(5.0)
    return function(self._bench, *arguments)

  def end(self) -> None:
    if self._ended: return
    self._ended = True
    self._bench.close()
    self._port.end()


_pids = iter(range(1, 1 << 20))


def another(vendor: str, machine: Any, index: int) -> Other:
  """A bench in another process of a mock machine."""
  pid = os.getpid() + next(_pids)
  if vendor == "NV":
    from tinyhw.mock.nv.port import NvPort
    class NvNeighbour(NvPort):
      def pid(self) -> int: return pid
    port: Any = NvNeighbour(machine)
  else:
    from tinyhw.mock.amd.port import MockPort
    class AmdNeighbour(MockPort):
      def pid(self) -> int: return pid
    port = AmdNeighbour(machine)
  made = bench(vendor, port, index, 1 << 20, None, {}, mocked=True)
  return Neighbour(made, port)


def load(vendor: str) -> None:
  """Have the modules in this process that each child would load anew: of a mock card the machine and the emulator."""
  if mock_cards(vendor) is None: return
  for name in (("mock.nv.port", "emulator.ptx", "emulator.ptx.module.link") if vendor == "NV" else
               ("mock.amd.port", "mock.amd.chip.waves", "emulator.amdgcn.all_tables")):
    import_module(f"tinyhw.{name}")


def leave() -> None:
  """The end of a child: its capture is on file."""
  RECORDING.end()
