"""Mistakes of an AMD driver, as data: each was put in by hand, and each must be noticed.

A row names the mistake, says what is wrong, how it is planted (`plant.py`), under which memory it shows, and what the
evidence must say. `strict` is the mock as it is; `weak` needs caches that keep old lines (`MOCKGPU_MEMORY=weak`).
`docs/driver-mistakes.md` has the table, made of these rows.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.drive.plant import Change

COMMANDS: Final = "tinyhw.drive.amd.commands:"
DEVICE: Final = "tinyhw.drive.amd.device:AMDRuntime."
PROGRAM: Final = "tinyhw.drive.amd.program:AMDProgram."
KFD: Final = "tinyhw.drive.amd.kfd:Kfd."
RING: Final = "tinyhw.drive.queue:Ring."
QUEUED: Final = "tinyhw.drive.queued:QueuedRuntime."


@dataclass(frozen=True)
class Mistake:
  """See the module. `found` is a regular expression that some line of evidence matches."""
  name: str
  what: str
  changes: tuple[Change, ...]
  found: str
  mode: str = "strict"


def _one(name: str, what: str, place: str, old: str, new: str, found: str, mode: str = "strict") -> Mistake:
  return Mistake(name, what, (Change(place, old, new),), found, mode)


def _weak(name: str, what: str, place: str, old: str, new: str, found: str) -> Mistake:
  """A mistake that only caches show."""
  return _one(name, what, place, old, new, found, "weak")


def _unmapped(name: str, what: str, unless: str, found: str) -> Mistake:
  """Memory that is allocated and never entered into the page tables."""
  return _one(name, what, KFD + "_alloc", "self.map_to(buffer, [gpu.gpu_id])",
              f"self.map_to(buffer, [gpu.gpu_id] if not ({unless}) else [])", found)


_BARRIER, _EMIT, _REGISTERS = COMMANDS + "ComputeCommands.memory_barrier", PROGRAM + "_emit", PROGRAM + "_set_registers"
_RELEASE, _QUEUE = COMMANDS + "ComputeCommands._release", DEVICE + "_open_queue"
_WRONG = r"element \d+ is .* expected"
_FAULT = "page fault"
_STALE, _EARLY = "stale memory: .* ACQUIRE_MEM or GCR_REQ with", "too early: .* CS_PARTIAL_FLUSH"
_REFUSED = "Invalid argument"

MISTAKES: Final[tuple[Mistake, ...]] = (
  # ---- order and caches
  _weak("no barrier", "a launch neither waits for the kernels before it nor drops what caches hold",
        PROGRAM + "_commands", "c.memory_barrier()", "pass", _EARLY),
  _weak("no ACQUIRE_MEM", "a launch waits for the kernels before it and reads what caches held before",
        _BARRIER, "return self._put(", "return self; self._put(", _STALE),
  _weak("no CS_PARTIAL_FLUSH", "a launch drops caches while the kernel before it still runs",
        _BARRIER, "self._put(\n    p.EVENT_WRITE", "(\n    p.EVENT_WRITE", _EARLY),
  _weak("ACQUIRE_MEM of one range", "a barrier invalidates a range of 256 bytes instead of all memory",
        _BARRIER, 'coher_size=whole["coher_size"], coher_base=0, poll_interval=_POLL_INTERVAL, **caches',
        'coher_size=1, coher_base=0, gcr_cntl=caches["gcr_cntl"] | 2 << 2 | 2 << 11', _STALE),
  _weak("ACQUIRE_MEM without vector caches", "a barrier leaves GL0 and GL1 as they are",
        _BARRIER, "GLV_INV=1, GL1_INV=1", "GLV_INV=0, GL1_INV=0", "stale memory: .* with GLV_INV"),
  _weak("RELEASE_MEM without flush", "the timeline moves while results are still in L2",
        COMMANDS + "ComputeCommands.signal", "named=value)", "named=value, flush=False)",
        "stale memory: .* missing: .*GL2_WB on GPU[01]"),
  _weak("SDMA without GCR", "a copy after a kernel reads what caches of the copy engine held",
        DEVICE + "_open_queues", '.wait("address", "value").memory_barrier()', '.wait("address", "value")',
        "stale memory: .*SDMA_PKT_COPY_LINEAR.* with GL2_INV"),
  _weak("SDMA without GCR after a wait that is over", "a copy whose wait has ended before reads what caches held",
        QUEUED + "_waits", "(queue is self.copier or self._done[0] < before)", "self._done[0] < before",
        "stale memory: .*SDMA_PKT_COPY_LINEAR.* with GL2_INV"),
  _weak("wrong mtype", "a copy's fence stays in a cache, where the host does not see it",
        COMMANDS + "CopyCommands.signal", "**self._uncached", "mtype=0", "the host reads .*SDMA_PKT_FENCE"),
  _weak("memory neither coherent nor uncached", "signals and arguments are cached by the GPU",
        KFD + "alloc", "flags = kind.value |", "flags = kind.value & ~kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT & "
        "~kfd.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED |", "stale memory: .*(WAIT_REG_MEM|POLL_REGMEM|RELEASE_MEM|fetcher)"),
  _weak("no barrier in a batch", "launches of an indirect buffer do not wait for each other",
        PROGRAM + "record", "self._emit(c.memory_barrier(), ", "self._emit(c, ", _EARLY),
  # ---- order of queues
  _one("queues do not wait for each other", "a copy starts beside the kernel whose result it copies",
       QUEUED + "_waits", "if queue is not self._last_queue and (queue is self.copier or self._done[0] < before):",
       "if False:", _WRONG),
  _one("the host stores too early", "the host stores into memory that a queued kernel still reads",
       QUEUED + "_store_at_once", "if self._done[0] < self.timeline.last or self._unsure or self._dependencies:",
       "if False:", _WRONG),
  _one("the host reads too early", "the host reads a result before the kernel is done",
       QUEUED + "_copyout", "self.synchronize()", "pass", _WRONG),
  _one("peers do not wait for each other", "a copy from another card starts beside the kernel that makes its source",
       QUEUED + "copy", "self.depend_on(owner.timeline.signal, owner.timeline.last)", "pass",
       _WRONG),
  _one("release before the dispatch", "the timeline moves before the launch that it stands for",
       PROGRAM + "_commands", "self._emit(c, block, lds, registers)",
       'c.signal(signal.address, "timeline"); self._emit(c, block, lds, registers)', f"({_WRONG}|no progress)"),
  _one("timeline value used twice", "a wait for the second of two submissions ends with the first",
       "tinyhw.drive.signal:Timeline.next", "value = self.last + 1", "value = self.last + (self.last % 3 != 1)",
       _WRONG),
  _one("memory freed too early", "pages leave the page tables while a kernel uses them",
       "tinyhw.drive.suballocation:SuballocatingRuntime._release", "if self.lost is None: self.synchronize()", "pass",
       _FAULT),
  _one("arguments reused too early", "a launch's arguments are overwritten before it has read them",
       "tinyhw.drive.allocate:KernargRing.used_by", "= value", "= 0", _WRONG),
  _one("bounce buffer reused too early", "a copy's staging memory is filled again before the copy engine has read it",
       "tinyhw.drive.allocate:BounceBuffer.take", "self._wait(half.busy_until)", "pass", _WRONG),
  # ---- queues
  _one("no EOP buffer", "CREATE_QUEUE is given no end-of-pipe buffer, which the kernel driver allows", _QUEUE,
       "args.eop_buffer_address, args.eop_buffer_size = eop.address, _EOP_BYTES", "pass", "EOP buffer"),
  _one("SDMA wptr in dwords", "a copy queue's write pointer counts dwords, and not bytes",
       _QUEUE, "PointerUnit.DWORDS if is_compute else PointerUnit.BYTES", "PointerUnit.DWORDS", "never passes"),
  _one("PM4 wptr in bytes", "a compute queue's write pointer counts bytes, and not dwords",
       _QUEUE, "PointerUnit.DWORDS if is_compute else PointerUnit.BYTES", "PointerUnit.BYTES",
       "(type-0 packet|never passes)"),
  _one("doorbell before the packets", "the doorbell is rung before the ring holds the submission",
       "tinyhw.drive.queue:HardwareQueue.submit",
       "ring.push(stream.words, timeout_s, self.name)\n  ring.ring_doorbell()",
       "ring.ring_doorbell()\n  ring.push(stream.words, timeout_s, self.name)", "no progress"),
  _one("write pointer never stored", "the doorbell is rung and the write pointer in memory stays as it was",
       RING + "ring_doorbell", "self._write[0] = value", "pass", "write pointer in memory"),
  _one("write pointer stored late", "the doorbell is rung before the write pointer is in memory",
       RING + "ring_doorbell", "self._write[0] = value\n  self._port.doorbell(self._doorbell, value)",
       "self._port.doorbell(self._doorbell, value)\n  self._write[0] = value", "write pointer in memory"),
  _one("doorbell of another queue", "the doorbell's offset is not the one that CREATE_QUEUE gave",
       DEVICE + "_doorbell", "self._doorbells + inside", "self._doorbells + inside + 24", "belongs to no queue"),
  Mistake("ring overrun", "packets are written over those that the engine has not read",
          (Change(RING + "has_room", ">= count", ">= 0"),
           Change(RING + "push", "_make_room(count, timeout_s, name)", "size")), "never passes the read pointer"),
  _one("ring size not a power of two", "CREATE_QUEUE is given 3 KiB", _QUEUE, "ring_size=_RING_BYTES,",
       "ring_size=_RING_BYTES // 4 * 3,", _REFUSED),
  _one("queue without a percentage", "CREATE_QUEUE is given 0 percent of the chip", _QUEUE,
       "queue_percentage=kfd.KFD_MAX_QUEUE_PERCENTAGE", "queue_percentage=0", "no progress"),
  _one("EOP buffer too small", "half of the node's eop_buffer_size", _QUEUE, "eop.address, _EOP_BYTES",
       "eop.address, _EOP_BYTES // 2", _REFUSED),
  _one("save area too small", "ctx_save_restore_size is a page less than the node's cwsr_size", _QUEUE,
       "save.address, area.save_restore", "save.address, area.save_restore - PAGE", _REFUSED),
  _one("save area without the debugger's part", "the buffer ends where the debugger's 32 bytes a wave begin", _QUEUE,
       "self.kfd.alloc(self.gpu, area.total, Domain.VRAM)", "self.kfd.alloc(self.gpu, area.save_restore, Domain.VRAM)",
       _REFUSED),
  _one("control stack of another size", "ctl_stack_size is not the node's", _QUEUE,
       "args.ctl_stack_size = area.control_stack", "args.ctl_stack_size = area.control_stack + PAGE", _REFUSED),
  _unmapped("ring not mapped", "the ring is allocated and not mapped on the GPU",
            "flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE and kind is Domain.GTT", _REFUSED),
  _unmapped("arguments not mapped", "kernel arguments are allocated and not mapped on the GPU",
            "size == 8192 and not flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE and kind is Domain.GTT", _FAULT),
  _unmapped("EOP buffer not mapped", "the EOP buffer is allocated and not mapped on the GPU",
            "size == PAGE and kind is Domain.VRAM", _REFUSED),
  _unmapped("save area not mapped", "the context save area is allocated and not mapped on the GPU",
            "size > 1 << 24 and kind is Domain.VRAM", _REFUSED),
  # ---- events
  _one("event page of the first card only", "the page of events is mapped on one of two cards",
       KFD + "_open_gpu", "else: self.map_to(self.event_page, [gpu.gpu_id])", "else: pass", _FAULT),
  _one("event page too small", "half of the slots that the kernel driver asks for",
       KFD + "_create_event_page", "KFD_SIGNAL_EVENT_LIMIT * 8", "KFD_SIGNAL_EVENT_LIMIT * 4", _REFUSED),
  _one("event not created", "waits name an event that was destroyed", DEVICE + "__init__",
       "self._event: Event = self.kfd.create_event()",
       "self._event: Event = self.kfd.create_event(); self.kfd.destroy_event(self._event)", _REFUSED),
  _one("mailbox of another event", "the interrupt's event is written into the slot of the next one", KFD + "mailbox",
       "event.slot", "(event.slot + 1)", "signals no event"),
  # ---- the dispatch
  _one("registers of another kernel", "a launch leaves out registers that another launch has changed",
       PROGRAM + "_submit", "prepared.again if runtime.registers is prepared else prepared.full",
       "prepared.again if runtime.registers is not None else prepared.full", _FAULT),
  _one("registers forgotten after a batch", "a replay changes registers, and the next launch does not write them",
       "tinyhw.drive.amd.batch:Batch._submit", "runtime.registers = None", "pass", _WRONG),
  _one("registers forgotten by a reset", "a new queue is taken to hold what the old one held",
       DEVICE + "reset", "self._armed, self.registers = None, None, -1, None", "self._armed = None, None, -1",
       "never written"),
  _one("wave32 bit", "CS_W32_EN is the opposite of what the kernel was compiled for", _EMIT,
       "int(self.wave_lanes == 32)", "int(self.wave_lanes != 32)", "beyond the wave's allocation"),
  _one("LDS in units of 1,024 bytes", "COMPUTE_PGM_RSRC2.LDS_SIZE asks for half of what the kernel uses", _REGISTERS,
       "-(-lds // self.runtime.arch.lds_granule)", "-(-lds // 1024)", "touched LDS"),
  _one("VGPRs in units of 16", "COMPUTE_PGM_RSRC1.VGPRS asks for half of what the kernel uses", _REGISTERS,
       "rsrc1.PRIV = ", "rsrc1.VGPRS >>= 1; rsrc1.PRIV = ", "beyond the wave's allocation"),
  _one("user data count", "COMPUTE_PGM_RSRC2.USER_SGPR counts one register less than the kernel takes", _REGISTERS,
       "rsrc2.LDS_SIZE = ", "rsrc2.USER_SGPR -= 1; rsrc2.LDS_SIZE = ", "."),
  _one("arguments elsewhere", "the argument segment's address is 4 bytes off", PROGRAM + "fill",
       'stream.set("kernarg" + suffix, address)', 'stream.set("kernarg" + suffix, address + 4)', _FAULT),
  _one("program address not shifted", "COMPUTE_PGM_LO takes bytes, and not units of 256", _REGISTERS,
       "DATA=self.entry >> 8 & _DWORD", "DATA=self.entry & _DWORD", _FAULT),
  _one("code not executable", "code is put in memory without the executable flag",
       DEVICE + "_place", "Domain.VRAM, executable=True", "Domain.VRAM", _FAULT),
  _one("entry of another kernel", "the entry is the image's start, whichever kernel is launched", PROGRAM + "__init__",
       "image.address + kernel.entry_offset", "image.address + 256", "no gfx11 instruction"),
  _one("grid in work-items", "DISPATCH_DIRECT is given threads where it counts workgroups",
       PROGRAM + "_set_grid", 'stream.set(f"grid_{axis}", groups)', 'stream.set(f"grid_{axis}", groups * 2)', _WRONG),
  _one("block dimensions exchanged", "COMPUTE_NUM_THREAD_X and Y take each other's value", _REGISTERS,
       "NUM_THREAD_X, NUM_THREAD_FULL=block[0]", "NUM_THREAD_X, NUM_THREAD_FULL=block[1]", _WRONG),
  _one("FORCE_START_AT_000 is 0", "the first workgroup is the one that COMPUTE_START_* names, by luck 0,0,0", _EMIT,
       "FORCE_START_AT_000=1", "FORCE_START_AT_000=0", "COMPUTE_START"),
  _one("waves that cannot be saved", "COMPUTE_PGM_RSRC1.PRIV is 0 on a chip whose queues are mapped with traps off",
       _REGISTERS, "rsrc1.PRIV = int(self.runtime.arch.saved_privileged)", "rsrc1.PRIV = 0", "context save"),
  # ---- scratch
  _one("scratch of one shader engine", "the buffer holds WAVES x WAVESIZE, and WAVES counts each shader engine's",
       DEVICE + "_grow_scratch", "wave_bytes * self._scratch_waves * self._scratch_parts",
       "wave_bytes * self._scratch_waves", _FAULT),
  _one("WAVES of all shader engines", "COMPUTE_TMPRING_SIZE.WAVES counts the waves of the whole card",
       DEVICE + "scratch_registers", "WAVES=self._scratch_waves",
       "WAVES=self._scratch_waves * self.gpu.node.shader_engines", _FAULT),
  _one("WAVESIZE in units of 1,024 bytes", "a wave gets a quarter of the scratch memory that it uses",
       DEVICE + "scratch_registers", "round_up(wave_bytes, self.arch.scratch_granule) // self.arch.scratch_granule",
       "-(-wave_bytes // 1024)", "past the 0x48 bytes of a lane"),
  _one("scratch base not shifted", "COMPUTE_DISPATCH_SCRATCH_BASE takes bytes, and not units of 256", _REGISTERS,
       "DATA=scratch >> 8 & _DWORD", "DATA=scratch & _DWORD", _FAULT),
  _one("scratch outgrown", "a launch prepared before the scratch buffer grew goes on with the old one",
       DEVICE + "_grow_scratch", "self.scratch_generation += 1", "pass", _FAULT),
  # ---- copies and indirect buffers
  _one("copy counts from one", "SDMA_PKT_COPY_LINEAR is given bytes where it takes bytes less one", QUEUED + "_copy",
       "nbytes - self.copy_counts_from", "nbytes", _FAULT),
  _one("peer memory not mapped", "a copy reads memory that only the other card has mapped", DEVICE + "reach",
       "self.kfd.map_to(buffer, [self.gpu.gpu_id])", "pass", _FAULT),
  _one("peer signals not mapped", "a card waits for a signal that only the other card has mapped", DEVICE + "reach",
       "self.kfd.map_to(mine, [theirs.gpu_id])", "pass", _FAULT),
  _one("a poll that gives up", "SDMA_PKT_POLL_REGMEM tries 16 times, and not for ever", COMMANDS + "CopyCommands.wait",
       "retry_count=_SDMA_RETRIES", "retry_count=16", "gives up"),
  _one("RELEASE_MEM with another index", "RELEASE_MEM.event_index is not the one of end-of-pipe events", _RELEASE,
       "event_index=p.RELEASE_MEM_event_index.end_of_pipe", "event_index=p.RELEASE_MEM_event_index.shader_done",
       "event_index"),
  _one("CS_PARTIAL_FLUSH with another index", "EVENT_WRITE.event_index is not the one of partial flushes", _BARRIER,
       "event_index=p.EVENT_WRITE_event_index.cs_partial_flush", "event_index=p.EVENT_WRITE_event_index.other",
       "event_index"),
  _one("indirect buffer too short", "INDIRECT_BUFFER.ib_size is a dword less than the packets",
       COMMANDS + "ComputeCommands.indirect_buffer", "ib_size=count", "ib_size=count - 1", "indirect buffer"),
  _one("indirect buffer too long", "INDIRECT_BUFFER.ib_size is a dword more than the packets",
       COMMANDS + "ComputeCommands.indirect_buffer", "ib_size=count", "ib_size=count + 1", "type-0 packet"),
  _one("indirect buffer not valid", "INDIRECT_BUFFER.valid is 0",
       COMMANDS + "ComputeCommands.indirect_buffer", "valid=1", "valid=0", "valid"),
)

PAGE: Final = Path(__file__).parents[2] / "docs/driver-mistakes.md"
MARK: Final = "<!-- made by: python -m tests.drive.mistakes -->\n"


def table() -> str:
  """The mistakes as the page shows them."""
  count = Counter(m.mode for m in MISTAKES)
  lines = [f"{len(MISTAKES)} mistakes are kept, and all are noticed: {count['strict']} by the mock as it is, "
           f"{count['weak']} under weak memory.", "", "| mistake | what the driver does | shows |", "|---|---|---|"]
  return "\n".join(lines + [f"| {m.name} | {m.what} | {m.mode} |" for m in MISTAKES]) + "\n"


if __name__ == "__main__":
  text = PAGE.read_text()
  PAGE.write_text(text[:text.index(MARK)] + MARK + table())
