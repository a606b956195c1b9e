"""Bugs of drivers as data: what each is, how it is put into a capture of `planted.PROGRAM`, and which rules may
tell it.

`at` of an edit is the submission that the finding must name. Most are those of issue trackers: a wait of the wrong
value ("signal is not set to 27, but 26"), a barrier without release scope, a copy that no signal orders, a doorbell
beyond what was written, arguments that are filled again too early, addresses with swapped halves.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.queues.planted import Found, Stream
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import kfd, nv_c8b5, nv_uvm
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.queues.effects import Does
from tinyhw.queues.events import Doorbell, Ioctl, Waited
from tinyhw.queues.world import World
from tinyhw.wire import gpfifo, qmd

Edit = Callable[..., Found]


@dataclass(frozen=True)
class Bug:
  """See the module. `rules`: one of them must tell it."""
  name: str
  vendor: str
  edit: Edit
  rules: tuple[str, ...]


BUGS: list[Bug] = []


def bug(name: str, vendor: str, *rules: str) -> Callable[[Edit], Edit]:
  """Declare one."""
  def declare(edit: Edit) -> Edit:
    BUGS.append(Bug(name, vendor, edit, rules))
    return edit
  return declare


def swapped(value: int) -> int:
  """An address whose halves were put into the wrong dwords."""
  return (value & 0xFFFFFFFF) << 32 | value >> 32


def next_bell(s: Stream, found: Found, after: int = 1) -> int:
  """The doorbell that comes next."""
  bells = [n for n, e in enumerate(s.events) if isinstance(e, Doorbell) and n > found.event]
  return bells[after - 1]


def world_at(found: Found) -> World:
  assert found.step.world is not None
  return found.step.world


# ---- what both vendors do alike: order, signals, memory

COMPUTE = {"AMD": "PM4", "NV": "channel 0"}
COPIER = {"AMD": "SDMA.1", "NV": "channel 1"}


def for_both(name: str, *rules: str) -> Callable[[Callable[..., Found]], None]:
  """Declare a bug of both vendors."""
  def declare(edit: Callable[..., Found]) -> None:
    BUGS.extend(Bug(name, vendor, partial(edit, vendor=vendor), rules) for vendor in ("AMD", "NV"))
  return declare


def _first_copy_out(s: Stream, vendor: str) -> Found:
  """The copy engine's wait for the kernels before it."""
  wait = s.doing(Does.WAIT, 2 if vendor == "AMD" else 3, COPIER[vendor])
  return wait


@for_both("a copy does not wait for the kernel that makes its source", "race")
def _(s: Stream, vendor: str) -> Found:
  wait = _first_copy_out(s, vendor)
  s.drop(wait)
  return wait


@for_both("a kernel does not wait for the copy that makes its input", "race")
def _(s: Stream, vendor: str) -> Found:
  if vendor == "AMD":
    wait = s.doing(Does.WAIT, 0, COMPUTE[vendor])
    s.drop(wait)
    return s.launch(0)
  wait = s.doing(Does.WAIT, 3, COMPUTE[vendor])
  s.drop(wait)
  return s.launch(3)


def _idle_before(s: Stream, vendor: str, nth: int) -> Found:
  launch = s.launch(nth)
  s.drop(s.before(launch, does=Does.IDLE))
  return launch


@for_both("a kernel does not wait for the kernel that makes its input", "race")
def _(s: Stream, vendor: str) -> Found: return _idle_before(s, vendor, 7)


@for_both("a wait has a value that nobody writes: one too many", "wait")
def _(s: Stream, vendor: str) -> Found:
  return _hangs(s, _wait_value(s, s.doing(Does.WAIT, 2, COMPUTE[vendor]), 1000))


def _hangs(s: Stream, found: Found) -> Found:
  """Nothing comes after this submission: its program waits in vain."""
  s.events[found.event + 1:] = [Waited(vendor=found.step.event.vendor, met=False, ns=10 ** 9)]
  return found


def _wait_value(s: Stream, wait: Found, more: int) -> Found:
  effect = next(e for e in wait.item.effects if e.does is Does.WAIT)
  if wait.step.event.vendor == "amd":
    name = "reference" if hasattr(wait.item.packet, "reference") else "value"
    s.put(wait, **{name: effect.value + more})
  else: s.method(wait, host.SEM_PAYLOAD_LO.OFFSET, lambda v: v + more)
  return wait


def _wait_address(s: Stream, wait: Found, address: int) -> Found:
  if wait.step.event.vendor == "amd":
    name = "mem_poll_addr" if hasattr(wait.item.packet, "mem_poll_addr") else "addr"
    s.put(wait, **{name: address})
  else:
    s.method(wait, host.SEM_ADDR_LO.OFFSET, lambda v: address & 0xFFFFFFFF)
    s.method(wait, host.SEM_ADDR_HI.OFFSET, lambda v: address >> 32 & 0xFF)
  return wait


@for_both("a copy's wait has a value that nobody writes", "wait")
def _(s: Stream, vendor: str) -> Found: return _hangs(s, _wait_value(s, s.doing(Does.WAIT, -1, COPIER[vendor]), 500))


@for_both("a wait polls the dwords next to its signal", "wait")
def _(s: Stream, vendor: str) -> Found:
  wait = s.doing(Does.WAIT, 2, COMPUTE[vendor])
  effect = next(e for e in wait.item.effects if e.does is Does.WAIT)
  return _hangs(s, _wait_address(s, wait, effect.address + 64))


@for_both("a wait's address is none of the process's memory", "unmapped")
def _(s: Stream, vendor: str) -> Found:
  wait = s.doing(Does.WAIT, 2, COMPUTE[vendor])
  effect = next(e for e in wait.item.effects if e.does is Does.WAIT)
  return _wait_address(s, wait, effect.address ^ 1 << 38)


@for_both("a signal goes to memory that the process does not have", "unmapped")
def _(s: Stream, vendor: str) -> Found:
  signal = s.doing(Does.SIGNAL, -1, COPIER[vendor])
  effect = next(e for e in signal.item.effects if e.does is Does.SIGNAL)
  return _signal_address(s, signal, effect.address ^ 1 << 38)


def _signal_address(s: Stream, signal: Found, address: int) -> Found:
  if signal.step.event.vendor == "amd":
    s.put(signal, **{"address" if hasattr(signal.item.packet, "address") else "addr": address})
  else:
    s.method(signal, host.SEM_ADDR_LO.OFFSET, lambda v: address & 0xFFFFFFFF)
    s.method(signal, host.SEM_ADDR_HI.OFFSET, lambda v: address >> 32 & 0xFF)
  return signal


def _unseen(s: Stream, from_event: int, value: int) -> None:
  """What the host would have seen: values of the timeline stay below one."""
  for number in range(from_event, len(s.events)):
    event: Any = s.events[number]
    for row in getattr(event, "signals", []):
      if row[2] >= value: row[2] = value - 1


def _kernel_signal(s: Stream, vendor: str) -> tuple[Found, int, Found]:
  """A signal that a copy waits for: (who writes it, its value, who waits)."""
  wait = s.doing(Does.WAIT, 4, COPIER[vendor])
  effect = next(e for e in wait.item.effects if e.does is Does.WAIT)
  signal = s.doing(Does.SIGNAL, 0, COMPUTE[vendor],
                   lambda e: e.address == effect.address and e.value == effect.value)
  return signal, effect.value, wait


@for_both("a signal is never sent", "wait")
def _(s: Stream, vendor: str) -> Found:
  signal, value, wait = _kernel_signal(s, vendor)
  if vendor == "AMD": s.drop(signal)
  else: s.descriptor(signal, "RELEASE_ENABLE", 0, 0)
  _unseen(s, signal.event, value)
  return _hangs(s, wait)


@for_both("a signal is written one too low", "wait", "signal-value")
def _(s: Stream, vendor: str) -> Found:
  signal, value, wait = _kernel_signal(s, vendor)
  if vendor == "AMD": s.put(signal, data=value - 1)
  else: s.descriptor(signal, "RELEASE_SEMAPHORE_PAYLOAD", value - 1, 0)
  _unseen(s, signal.event, value)
  return _hangs(s, wait)


@for_both("two submissions write the same value of a timeline", "signal-value")
def _(s: Stream, vendor: str) -> Found:
  if vendor == "AMD":
    signal = s.doing(Does.SIGNAL, 8, COMPUTE[vendor])
    effect = next(e for e in signal.item.effects if e.does is Does.SIGNAL)
    s.put(signal, data=effect.value - 1)
  else:
    signal = s.doing(Does.SIGNAL, 0, COMPUTE[vendor], lambda e: e.value == 28)
    s.descriptor(signal, "RELEASE_SEMAPHORE_PAYLOAD", 27, 0)
  _unseen_exactly(s, signal)
  return signal


def _unseen_exactly(s: Stream, signal: Found) -> None:
  effect = next(e for e in signal.item.effects if e.does is Does.SIGNAL)
  for event in s.events:
    for row in getattr(event, "signals", []):
      if row[0] == effect.address and row[2] == effect.value: row[2] -= 1


@for_both("two queues wait for each other", "wait")
def _(s: Stream, vendor: str) -> Found:
  signal, _, wait = _kernel_signal(s, vendor)
  earlier = next(f for f in s.items(COMPUTE[vendor]) if f.event == signal.event
                 and any(e.does is Does.WAIT for e in f.item.effects))
  later = next(e for e in wait.item.effects if e.does is Does.WAIT)
  mine = next(e for e in earlier.item.effects if e.does is Does.WAIT)
  _wait_value(s, earlier, later.value + 1 - mine.value)
  for row in (r for e in s.events[earlier.event:] for r in getattr(e, "signals", [])):
    if row[0] == mine.address: row[2] = min(row[2], mine.value)
  _hangs(s, wait)
  return earlier


# ---- memory

@for_both("arguments are filled again before their kernel has read them", "reuse")
def _(s: Stream, vendor: str) -> Found:
  launch = s.launch(6)
  key, at, size = s.uses[id(launch.launch)]
  s.overwrite(next_bell(s, launch), key, at + size - 8, b"\x5a" * 8)
  return launch


def _copy(s: Stream, vendor: str, nth: int, reads: str = "", writes: str = "") -> Found:
  def fits(found: Found) -> bool:
    kinds = {d: next((world_at(found).allocations[m.key].kind for e in found.item.effects if e.does is d
                      and (m := _made(found, e.address)) is not None), "") for d in (Does.READ, Does.WRITE)}
    return kinds[Does.READ] == reads and kinds[Does.WRITE] == writes
  return [f for f in s.items(COPIER[vendor]) if any(e.does is Does.READ for e in f.item.effects) and fits(f)][nth]


def _made(found: Found, address: int) -> Any:
  return next((a for a in world_at(found).allocations if a.address <= address < a.end), None)


STAGING = {"AMD": "GTT", "NV": "SYSTEM"}
VIDEO = {"AMD": "VRAM", "NV": "VIDMEM"}


@for_both("staging memory is filled again before the copy has read it", "reuse")
def _(s: Stream, vendor: str) -> Found:
  copy = _copy(s, vendor, 0, STAGING[vendor], VIDEO[vendor])
  effect = next(e for e in copy.item.effects if e.does is Does.READ)
  made = _made(copy, effect.address)
  other = next_bell(s, copy)
  s.overwrite(other, made.key, effect.address - made.address + 8, b"\x5a" * 64)
  for row in s.bell(other).signals: row[2] = max(row[2] - 3, 0)
  return copy


def _copy_fields(s: Stream, copy: Found, **fields: int) -> Found:
  """A copy with another `source`, `target` or `count` of bytes."""
  if copy.step.event.vendor == "amd":
    names = {"source": "src_addr", "target": "dst_addr", "count": "count"}
    s.put(copy, **{names[n]: v - (n == "count") for n, v in fields.items()})
    return copy
  m: Any = nv_c8b5
  for name, value in fields.items():
    if name == "count": s.method_before(copy, m.LINE_LENGTH_IN.OFFSET, lambda v, n=value: n)  # type: ignore[misc]
    else:
      upper, lower = {"source": (m.OFFSET_IN_UPPER, m.OFFSET_IN_LOWER),
                      "target": (m.OFFSET_OUT_UPPER, m.OFFSET_OUT_LOWER)}[name]
      s.method_before(copy, upper.OFFSET, lambda v, n=value: n >> 32)  # type: ignore[misc]
      s.method_before(copy, lower.OFFSET, lambda v, n=value: n & 0xFFFFFFFF)  # type: ignore[misc]
  return copy


def _effect(found: Found, does: Does) -> Any: return next(e for e in found.item.effects if e.does is does)


@for_both("a copy's count is in dwords where it counts bytes", "beyond")
def _(s: Stream, vendor: str) -> Found:
  copy = _copy(s, vendor, 0, STAGING[vendor], VIDEO[vendor])
  return _copy_fields(s, copy, count=_effect(copy, Does.WRITE).size * 4)


@for_both("the halves of a copy's destination are swapped", "unmapped")
def _(s: Stream, vendor: str) -> Found:
  copy = _copy(s, vendor, 1, STAGING[vendor], VIDEO[vendor])
  target = swapped(_effect(copy, Does.WRITE).address) & (1 << 48) - 1 if vendor == "NV" else swapped(
    _effect(copy, Does.WRITE).address)
  return _copy_fields(s, copy, target=target)


@for_both("a copy engine faults, and nobody is told: its program waits on", "signal-lost")
def _(s: Stream, vendor: str) -> Found:
  """rocm-systems issue 11047: faults of queues of the copy engine reach no callback."""
  copy = _copy(s, vendor, 1, STAGING[vendor], VIDEO[vendor])
  _copy_fields(s, copy, target=_effect(copy, Does.WRITE).address ^ 1 << 38)
  return _hangs(s, copy)


@for_both("a copy's source and destination overlap", "overlap")
def _(s: Stream, vendor: str) -> Found:
  copy = _copy(s, vendor, 0, STAGING[vendor], VIDEO[vendor])
  return _copy_fields(s, copy, target=_effect(copy, Does.READ).address + 256)


def _given_back(s: Stream, address: int, found: Found, after: bool = False) -> None:
  """The call that gives memory back comes before a submission, or right behind it."""
  made = max((a for a in world_at(found).allocations if a.address <= address < a.end and a.made_at < found.event),
             key=lambda a: a.made_at)
  assert isinstance(s.events[made.freed_at], Ioctl) and made.freed_at > found.event
  s.events.insert(found.event + after, s.events.pop(made.freed_at))


@for_both("a copy reads memory that was given back", "freed")
def _(s: Stream, vendor: str) -> Found:
  copy = [f for f in s.items(COPIER[vendor]) if any(e.does is Does.READ for e in f.item.effects)][2]
  _given_back(s, _effect(copy, Does.WRITE).address, copy)
  return copy


@for_both("a copy reads what nobody wrote", "unwritten", "race")
def _(s: Stream, vendor: str) -> Found:
  wait = s.doing(Does.WAIT, 2 if vendor == "AMD" else 3, COPIER[vendor])
  copy = next(f for f in s.items(COPIER[vendor]) if f.event == wait.event
              and any(e.does is Does.READ for e in f.item.effects))
  launch = [x for x in s.launches if x.event < copy.event][-1]
  s.drop(launch if vendor == "AMD" else s.before_launch(launch))
  return copy


@for_both("a kernel's output is null", "argument")
def _(s: Stream, vendor: str) -> Found:
  launch = s.launch(2)
  s.argument(launch, argument_at(vendor), bytes(8))
  return launch


def argument_at(vendor: str) -> int:
  """Where the first argument lies in what a launch reads its arguments from."""
  return 0 if vendor == "AMD" else 528


@for_both("the halves of an argument's address are swapped", "argument")
def _(s: Stream, vendor: str) -> Found:
  launch = s.launch(2)
  key, at, _ = s.uses[id(launch.launch)]
  raw = s.capture_bytes(launch, key, at + argument_at(vendor), 8)
  s.argument(launch, argument_at(vendor), raw[4:] + raw[:4])
  return launch


@for_both("an argument points to memory that was given back", "argument")
def _(s: Stream, vendor: str) -> Found:
  launch = s.launch(14)
  _given_back(s, s.pointers[id(launch.launch)][0], launch)
  return launch


@for_both("memory is given back while a kernel uses it", "freed-in-use")
def _(s: Stream, vendor: str) -> Found:
  launch = s.launch(14)
  _given_back(s, s.pointers[id(launch.launch)][0], launch, True)
  return launch


# ---- AMD

@bug("an ACQUIRE_MEM is missing between two kernels", "AMD", "acquire")
def _(s: Stream) -> Found:
  launch = s.launch(7)
  s.drop(s.before(launch, "ACQUIRE_MEM"))
  return launch


@bug("an ACQUIRE_MEM leaves the vector caches", "AMD", "acquire")
def _(s: Stream) -> Found:
  launch = s.launch(7)
  acquire = s.before(launch, "ACQUIRE_MEM")
  off: Any = pm4.ACQUIRE_MEM_GCR_CNTL
  s.put(acquire, gcr_cntl=acquire.item.packet.gcr_cntl & ~off(GLV_INV=1, GL1_INV=1).value())
  return launch


@bug("an ACQUIRE_MEM is for another range", "AMD", "acquire")
def _(s: Stream) -> Found:
  launch = s.launch(7)
  acquire = s.before(launch, "ACQUIRE_MEM")
  more: Any = pm4.ACQUIRE_MEM_GCR_CNTL
  s.put(acquire, gcr_cntl=acquire.item.packet.gcr_cntl | more(GL1_RANGE=2, GL2_RANGE=2).value(), coher_base=0x1000,
        coher_size=16)
  return launch


@bug("a RELEASE_MEM does not write GL2 back", "AMD", "release")
def _(s: Stream) -> Found:
  signal, _, wait = _kernel_signal(s, "AMD")
  s.put(signal, gcr_cntl=0)
  return wait


@bug("a copy engine does not drop what caches hold", "AMD", "acquire")
def _(s: Stream) -> Found:
  gcr = next(f for f in s.items("SDMA.1") if f.event == _copy_out(s).event and type(f.item.packet).__name__ ==
             "SDMA_PKT_GCR_REQ")
  s.drop(gcr)
  return gcr


def _copy_out(s: Stream) -> Found: return _copy(s, "AMD", 0, "VRAM", "GTT")


def _bit(value: int, mask: int) -> int: return value & ~mask


@bug("a program's address is not shifted", "AMD", "unmapped", "program")
def _(s: Stream) -> Found:
  launch = s.launch(4)
  s.register(launch, gc.COMPUTE_PGM_LO.OFFSET, lambda v: v << 8 & 0xFFFFFFFF)
  return launch


@bug("a program's address is its descriptor's, not its entry's", "AMD", "program")
def _(s: Stream) -> Found:
  launch = s.launch(4)
  s.register(launch, gc.COMPUTE_PGM_LO.OFFSET, lambda v: v - 1)
  return launch


@bug("too few vector registers", "AMD", "object")
def _(s: Stream) -> Found:
  launch = next(s.launch(n) for n in range(9) if _register(s.launch(n), gc.COMPUTE_PGM_RSRC1) & 0x3F)
  s.register(launch, gc.COMPUTE_PGM_RSRC1.OFFSET, lambda v: v & ~0x3F)
  return launch


def _register(found: Found, register: Any) -> int:
  assert found.launch is not None
  return int(found.launch.state["registers"].get(register.OFFSET, 0))


@bug("another float mode than the kernel was compiled for", "AMD", "object")
def _(s: Stream) -> Found:
  s.register(s.launch(3), gc.COMPUTE_PGM_RSRC1.OFFSET, lambda v: v & ~(0xFF << 12))
  return s.launch(3)


@bug("too few user registers", "AMD", "object")
def _(s: Stream) -> Found:
  s.register(s.launch(3), gc.COMPUTE_PGM_RSRC2.OFFSET, lambda v: v & ~0x3E)
  return s.launch(3)


@bug("no LDS for a kernel that uses it", "AMD", "lds")
def _(s: Stream) -> Found:
  launch = next(s.launch(n) for n in range(12) if _register(s.launch(n), gc.COMPUTE_PGM_RSRC2) >> 15 & 0x1FF)
  s.register(launch, gc.COMPUTE_PGM_RSRC2.OFFSET, lambda v: v & ~(0x1FF << 15))
  return launch


@bug("waves of 64 lanes for a kernel of 32", "AMD", "object")
def _(s: Stream) -> Found:
  launch = s.launch(3)
  s.put(launch, dispatch_initiator=_bit(launch.item.packet.dispatch_initiator, 1 << 15))
  return launch


@bug("a block of another size than the kernel was made for", "AMD", "object")
def _(s: Stream) -> Found:
  s.register(s.launch(3), gc.COMPUTE_NUM_THREAD_X.OFFSET, lambda v: v // 2)
  return s.launch(3)


@bug("a launch of no groups", "AMD", "empty")
def _(s: Stream) -> Found:
  s.put(s.launch(3), dim_y=0)
  return s.launch(3)


@bug("a doorbell goes round the ring", "AMD", "ring-overrun")
def _(s: Stream) -> Found:
  found = s.launch(10)
  event = s.bell(found.event)
  event.pointers[0] = 0
  assert found.step.queue is not None
  event.last = event.first = found.step.queue.size // 4 + 64
  event.last += 1
  event.pointers[1] = event.value
  return found


@bug("GP_PUT passes GP_GET", "NV", "ring-overrun")
def _(s: Stream) -> Found:
  """open-gpu-kernel-modules issue 1286: nobody looked whether the ring had room."""
  found = s.launch(3)
  event = s.bell(found.event)
  assert found.step.queue is not None
  event.pointers[0] = (event.first + 1) % (found.step.queue.size // gpfifo.SIZE)  # all but one are not read
  return found


@bug("a doorbell beyond what was written", "AMD", "no-packet", "write-pointer")
def _(s: Stream) -> Found:
  found = s.launch(10)
  event = s.bell(found.event)
  event.value += 8
  event.last += 8
  event.ring.append([event.ring[-1][0] + len(event.ring[-1][1]), b"\xff" * 32])
  return found


@bug("a doorbell before the write pointer", "AMD", "write-pointer")
def _(s: Stream) -> Found:
  found = s.launch(10)
  event = s.bell(found.event)
  event.pointers[1] = event.first
  return found


@bug("a packet's count is one too many", "AMD", "no-packet")
def _(s: Stream) -> Found:
  found = s.named("SET_SH_REG", 3)
  s.write(found, found.item.address, [found.item.words[0] + (1 << 16)])
  return found


@bug("memory that a kernel reads is not mapped on its GPU", "AMD", "not-mapped-here")
def _(s: Stream) -> Found:
  launch = s.launch(1)
  return _unmap(s, launch)


def _unmap(s: Stream, found: Found, gpu: int = 0) -> Found:
  made = _made(found, s.pointers[id(found.launch)][0])
  for event in s.events:
    if isinstance(event, Ioctl) and event.request == kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU and \
        kfd.kfd_ioctl_map_memory_to_gpu_args.from_buffer_copy(event.after).handle == made.handle:
      event.inner_before = (0xFFFF).to_bytes(4, "little")
  return found


@bug("a peer's memory is not mapped on the card that copies it", "AMD", "not-mapped-here")
def _(s: Stream) -> Found:
  copy = next(f for f in s.items("SDMA.3") if any(e.does is Does.READ for e in f.item.effects))
  made = _made(copy, _effect(copy, Does.READ).address)
  mine = copy.item.queue.gpu if copy.item.queue is not None else 0
  for event in s.events:
    if isinstance(event, Ioctl) and event.request == kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU and \
        kfd.kfd_ioctl_map_memory_to_gpu_args.from_buffer_copy(event.after).handle == made.handle:
      event.inner_before = event.inner_before.replace(mine.to_bytes(4, "little"), made.gpu.to_bytes(4, "little"))
  return copy


@bug("a fence to an odd address", "AMD", "misaligned")
def _(s: Stream) -> Found:
  fence = s.named("SDMA_PKT_FENCE", 2)
  s.put(fence, addr=fence.item.packet.addr + 2)
  return fence


# ---- NVIDIA

@bug("a kernel runs with what SMs cached before", "NV", "acquire")
def _(s: Stream) -> Found:
  launch = s.launch(7)
  s.descriptor(launch, "INVALIDATE_SHADER_DATA_CACHE", 0)
  return launch


@bug("a QMD without a membar", "NV", "release")
def _(s: Stream) -> Found:
  signal, _, wait = _kernel_signal(s, "NV")
  s.descriptor(signal, "CWD_MEMBAR_TYPE", 0)
  return wait


@bug("a QMD's program address is off by 256 bytes", "NV", "program")
def _(s: Stream) -> Found:
  launch = s.launch(3)
  assert launch.launch is not None
  s.descriptor(launch, "PROGRAM_ADDRESS", launch.launch.entry + 256)
  return launch


@bug("a QMD's program address is none of the process's memory", "NV", "unmapped")
def _(s: Stream) -> Found:
  launch = s.launch(3)
  assert launch.launch is not None
  s.descriptor(launch, "PROGRAM_ADDRESS", launch.launch.entry ^ 1 << 38)
  return launch


@bug("a QMD has too few registers", "NV", "object")
def _(s: Stream) -> Found:
  s.descriptor(s.launch(3), "REGISTER_COUNT", 8)
  return s.launch(3)


@bug("a QMD has no shared memory for a kernel that uses it", "NV", "lds")
def _(s: Stream) -> Found:
  launch = next(s.launch(n) for n in range(12) if _qmd(s.launch(n), "SHARED_MEMORY_SIZE") > 1024)
  s.descriptor(launch, "SHARED_MEMORY_SIZE", 1024)
  return launch


def _qmd(found: Found, name: str) -> int:
  return qmd.read(found.item.packet, name)


@bug("a QMD's bank 0 is not valid", "NV", "object")
def _(s: Stream) -> Found:
  s.descriptor(s.launch(3), "CONSTANT_BUFFER_VALID", 0, 0)
  return s.launch(3)


@bug("a QMD's bank 0 is too small for the arguments", "NV", "object")
def _(s: Stream) -> Found:
  s.descriptor(s.launch(3), "CONSTANT_BUFFER_SIZE", 256, 0)
  return s.launch(3)


@bug("a QMD's block is not the kernel's", "NV", "object")
def _(s: Stream) -> Found:
  s.descriptor(s.launch(3), "CTA_THREAD_DIMENSION0", 16)
  return s.launch(3)


@bug("a QMD of no groups", "NV", "empty")
def _(s: Stream) -> Found:
  s.descriptor(s.launch(3), "GRID_HEIGHT", 0)
  return s.launch(3)


@bug("a GPFIFO entry is one dword too long", "NV", "no-packet", "acquire", "wait", "signal-value")
def _(s: Stream) -> Found:
  entry = [f for f in s.items("channel 1") if type(f.item.packet).__name__ == "Segment"][6]
  s.write(entry, entry.item.address, [entry.item.words[0], entry.item.words[1] + (1 << 10)])
  return entry


@bug("a GPFIFO entry's address has no memory", "NV", "no-packet", "unmapped")
def _(s: Stream) -> Found:
  entry = [f for f in s.items("channel 1") if type(f.item.packet).__name__ == "Segment"][6]
  s.write(entry, entry.item.address, [entry.item.words[0], entry.item.words[1] ^ 0x40])
  for event in [s.bell(entry.event)]: event.pieces = []
  return entry


@bug("a header's count is one too many", "NV", "no-packet", "unmapped", "wait", "signal-value", "race")
def _(s: Stream) -> Found:
  wait = s.doing(Does.WAIT, 3, "channel 1")
  s.write(wait, wait.item.address, [wait.item.words[0] + (1 << 16)])
  return wait


@bug("a semaphore's release goes to an odd address", "NV", "misaligned", "wait", "unmapped")
def _(s: Stream) -> Found:
  signal = s.doing(Does.SIGNAL, 0, "channel 0", lambda e: e.value == 24)
  s.descriptor(signal, "RELEASE_SEMAPHORE_ADDR", _effect(signal, Does.SIGNAL).address + 2, 0)
  return signal


@bug("memory that a kernel reads is not mapped on its GPU", "NV", "not-mapped-here")
def _(s: Stream) -> Found:
  launch = s.launch(1)
  made = _made(launch, s.pointers[id(launch.launch)][0])
  for event in s.events:
    if isinstance(event, Ioctl) and event.request == nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION:
      a = nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS.from_buffer_copy(event.after)
      if a.hMemory != made.handle: continue
      a.perGpuAttributes[0].gpuUuid.uuid[0] ^= 0xFF
      event.after = bytes(a)
  return launch
