"""What the environment asks of the mock machine and of the emulator, where there are such: engine, memory, limits."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tinyhw.core.environment import count
from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.devices import explored
from tinyhw.devices.captured import RECORDING

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.emulator.observe import Observer


def mock_options(observer: Observer | None = None) -> dict[str, Any]:
  """What `MOCKGPU_WATCHDOG` (instructions of one wave) and `MOCKGPU_SEED` (turns of the queues) ask of the mock.

  `MOCKGPU_MEMORY` is `strong` or `weak`, which runs on the reference interpreter.
  `EMU` chooses its emulator's engine: `ref`, `jit`, `both` or `auto`, `EMU_SUMS` how NVIDIA's matrices are summed:
  `exact` or `chip`. An `observer` is shown all dispatches.
  """
  options: dict[str, Any] = {}
  for option in ("watchdog", "seed"):
    text = os.environ.get(f"MOCKGPU_{option.upper()}")
    if not text: continue
    if (number := count(text)) is None:
      raise InvalidArgument(f"{text!r} is no count", where=f"MOCKGPU_{option.upper()}")
    options[option] = number
  if engine := os.environ.get("EMU"):
    from tinyhw.emulator.engines.amdgcn import ENGINES
    if engine not in ENGINES:
      raise InvalidArgument(f"no engine is called {engine!r}", where="EMU", hint=f"there are {', '.join(ENGINES)}")
    options["engine"] = engine
  if memory := os.environ.get("MOCKGPU_MEMORY"):
    if memory not in ("strong", "weak"):
      raise InvalidArgument(f"no memory is called {memory!r}", where="MOCKGPU_MEMORY", hint="there are strong, weak")
    if memory == "weak" and options.get("engine", "auto") not in ("auto", "ref"):
      raise InvalidArgument(f"weak memory runs on the reference interpreter, not on EMU={options['engine']}",
                            where="MOCKGPU_MEMORY", hint="unset EMU, or set EMU=ref")
    options["memory"] = memory
  if os.environ.get("EMU_SUMS"):
    from tinyhw.emulator.values.chip_sums import wanted
    wanted()
  threads = os.environ.get("TINYHW_THREADS", "1")
  if not count(threads):
    raise InvalidArgument(f"{threads!r} is no number of threads", where="TINYHW_THREADS")
  if (draws := explored.draws()) is not None: options["draws"] = draws
  if path := os.environ.get("MOCKGPU_FAULTS"): options["injected"] = explored.injected(path)
  if observer is not None: options["observer"] = observer
  return options


def mock_machine(kind: str, cards: tuple[str, ...], **options: Any) -> tuple[Any, Any]:
  """A machine of mock GPUs with these cards, and a port to it; for "CUDA", beside "AMD" and "NV", a libcuda.

  Raises DeviceError where there are none, or the process cannot have their memory.
  """
  if not cards:
    raise DeviceError(f"MOCKGPU={os.environ.get('MOCKGPU')} names no card of {kind}", where=kind,
                      hint="cards of AMD are gfx..., those of NVIDIA sm_..., and a machine may have both")
  injected = options.get("injected")
  try:
    if kind == "CUDA":
      from tinyhw.mock.cuda.library.library import stand_in
      from tinyhw.mock.cuda.machine import CudaMachine
      if options.pop("memory", "strong") != "strong":
        raise InvalidArgument("NVIDIA's cards have strong memory only", where="MOCKGPU_MEMORY")
      if injected is not None: injected.refuse("a mock of CUDA")
      machine = CudaMachine(cards, **options)
      RECORDING.watch(machine)
      return machine, stand_in(machine)
    if kind == "NV":
      from tinyhw.mock.nv.machine import NvMachine
      from tinyhw.mock.nv.port import NvPort
      if injected is not None: injected.refuse("NVIDIA's kernel driver")
      nvidia = NvMachine(cards, **options)
      return nvidia, NvPort(nvidia)
    from tinyhw.mock.amd.machine import Machine
    from tinyhw.mock.amd.port import MockPort
    if injected is not None: injected.refuse("an AMD card")
    amd = Machine(cards, **options)
    return amd, MockPort(amd)
  except (OSError, MemoryError) as e:
    raise DeviceError(f"this process cannot have the mock machine's memory: {getattr(e, 'strerror', None) or e}",
                      where=kind, hint="it takes addresses (ulimit -v) for all memory of its cards and of the "
                      "system, of which pages exist once written, and some files (ulimit -n)") from None


def stand_again(machine: Any) -> None:
  """Have a mock machine of CUDA behind the process's libcuda again, of which there is one."""
  from tinyhw.mock.cuda.library.library import stand_in
  stand_in(machine)


def emulated_card(index: int, cards: tuple[str, ...]) -> Arch | None:
  """The card of that index where the mock has none of these cards, and the emulator runs them all."""
  from tinyhw.arch import DECODED
  from tinyhw.mock.amd.card import NAMES
  if not cards or any(c in NAMES or c not in DECODED for c in cards): return None
  if index >= len(cards): raise DeviceError(f"no GPU {index}: MOCKGPU names {', '.join(cards)}", where=f"EMU:{index}")
  return DECODED[cards[index]]


def gpus_named(kind: str, cards: tuple[str, ...]) -> tuple[str, ...]:
  """The name of the card of each GPU that cards of that kind are: one in parts is several ("gfx942:cpx")."""
  if kind != "AMD": return cards
  from tinyhw.mock.amd.card import PARTITIONED  # its vendor's mock loads when it is asked for
  return tuple(card for card in cards for _ in PARTITIONED.get(card, (card,)))


def card_names(kind: str) -> tuple[str, ...]:
  """The cards that a mock machine of AMD's or of NVIDIA's can have."""
  if kind == "AMD":
    from tinyhw.mock.amd.card import CARDS as amd
    return tuple(amd)
  from tinyhw.mock.nv.card import CARDS as nvidia
  return tuple(nvidia)
