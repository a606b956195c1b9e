"""Mistakes of an NV driver, as data: each was put in by hand, and each must be noticed. As `tests/drive/mistakes.py`;
the table is in `docs/mock-nvidia.md`, made by `python -m tests.drive.nv.mistakes`.
"""
from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.drive.mistakes import Mistake
from tests.drive.plant import Change

HOST: Final = "tinyhw.drive.nv.commands:HostCommands."
COPIES: Final = "tinyhw.drive.nv.commands:CopyCommands."
COMPUTE: Final = "tinyhw.drive.nv.commands:ComputeCommands."
CHANNEL: Final = "tinyhw.drive.nv.channel:Channel."
RING: Final = "tinyhw.drive.nv.channel:PushRing."
DEVICE: Final = "tinyhw.drive.nv.device:NVRuntime."
RM: Final = "tinyhw.drive.nv.rm:Rm."
PROGRAM: Final = "tinyhw.drive.nv.program:NVProgram."
RUNNER: Final = "tinyhw.drive.nv.runner:NVRunner."
QUEUED: Final = "tinyhw.drive.queued:QueuedRuntime."
_META: Final = PROGRAM + "_meta_data"
_CACHES: Final = 'f"INVALIDATE_{cache}": 1 for cache in _INVALIDATES'
_WRONG: Final = r"element \d+ is .* expected"
_FAULT: Final = "page fault"
_GARBAGE: Final = _WRONG + "|no ELF|unsupported program"
_HANGS: Final = "WaitTimeout"


def _one(name: str, what: str, place: str, old: str, new: str, found: str) -> Mistake:
  return Mistake(name, what, (Change(place, old, new),), found)


MISTAKES: Final[tuple[Mistake, ...]] = (
  # ---- order and caches
  _one("release without WFI", "the timeline moves while the launch that it stands for still runs",
       HOST + "signal", "RELEASE_WFI=host.SEM_EXECUTE_RELEASE_WFI.EN", "RELEASE_WFI=0", _GARBAGE),
  _one("no release", "a launch's semaphore is written elsewhere, and its timeline value never comes",
       PROGRAM + "_prepare", "runtime.timeline.signal.address", "runtime.timeline.signal.address + 64", _HANGS),
  _one("launches side by side", "a launch begins beside the one before it, whose results it reads",
       PROGRAM + "_commands", ".wait_for_idle()", "", "."),
  _one("a chain is cut", "DEPENDENT_QMD_ENABLE is 0, and what follows a replay's first launch never runs",
       PROGRAM + "link", '"DEPENDENT_QMD_ENABLE": 1', '"DEPENDENT_QMD_ENABLE": 0', _HANGS),
  _one("a chain that is not told", "the last launch of a replay writes its semaphore elsewhere",
       PROGRAM + "link", "self.runtime.chain.address", "self.runtime.chain.address + 64", _HANGS),
  _one("a chain in bytes", "DEPENDENT_QMD_POINTER takes bytes, and not units of 256",
       PROGRAM + "join", "address >> 8", "address >> 4", "."),
  _one("a chain of old QMDs", "dependent QMDs are scheduled as the scheduler holds them, and their memory goes round",
       PROGRAM + "link", "_INVALIDATE_COPY_SCHEDULE", "1", "scheduler may hold"),
  _one("a chain without an end", "the last launch of a replay schedules a QMD that is not there",
       RUNNER + "group", "k == len(launches) - 1", "False", "."),
  _one("channels do not wait for each other", "a copy starts beside the kernel whose result it copies",
       QUEUED + "_waits", "if queue is not self._last_queue and (queue is self.copier or self._done[0] < before):",
       "if False:", _GARBAGE),
  _one("acquire of the very value", "a channel waits for a value that may have been passed already",
       HOST + "wait", "SEM_EXECUTE_OPERATION.ACQ_CIRC_GEQ", "SEM_EXECUTE_OPERATION.ACQUIRE", _HANGS),
  _one("constants not invalidated", "a QMD keeps the constant caches, and the argument ring goes round",
       _META, "return made", 'qmd.write(made, "INVALIDATE_SHADER_CONSTANT_CACHE", 0)\n'
       '  for n in banks: qmd.write(made, "CONSTANT_BUFFER_INVALIDATE", 0, n)\n  return made',
       "constant bank 0 .* may hold"),
  _one("L1 not invalidated", "a QMD keeps the data caches of SMs, and reads what was there before",
       _META, _CACHES, _CACHES + ' if cache != "SHADER_DATA_CACHE"', "INVALIDATE_SHADER_DATA_CACHE"),
  _one("no memory barrier", "a grid ends without a barrier: who sees its semaphore need not see what it wrote",
       _META, '"CWD_MEMBAR_TYPE": _SYSMEMBAR', '"CWD_MEMBAR_TYPE": 0', "CWD_MEMBAR_TYPE"),
  _one("a copy without flush", "what was copied need not be in memory when the semaphore is written",
       COPIES + "_launch", "FLUSH_ENABLE=1", "FLUSH_ENABLE=0", "FLUSH_ENABLE 0"),
  _one("the host reads too early", "bytes are taken out of the bounce buffer before the copy engine has written them",
       QUEUED + "_copyout", "self.wait(half.busy_until)", "pass", _WRONG),
  _one("peers do not wait for each other", "a copy from another card starts beside the kernel that makes its source",
       QUEUED + "copy", "self.depend_on(owner.timeline.signal, owner.timeline.last)", "pass", _WRONG),
  _one("timeline value used twice", "a wait for the second of two submissions ends with the first",
       "tinyhw.drive.signal:Timeline.next", "value = self.last + 1", "value = self.last + (self.last % 3 != 1)",
       _WRONG),
  _one("memory freed too early", "pages leave the page tables while a kernel uses them",
       "tinyhw.drive.suballocation:SuballocatingRuntime._release", "if self.lost is None: self.synchronize()", "pass",
       _FAULT),
  _one("arguments reused too early", "QMD and constants are overwritten before a launch has read them",
       "tinyhw.drive.allocate:KernargRing.used_by", "= value", "= 0", "."),
  _one("bounce buffer reused too early", "a copy's staging memory is filled again before the copy engine has read it",
       "tinyhw.drive.allocate:BounceBuffer.take", "self._wait(half.busy_until)", "pass", _GARBAGE),
  # ---- channels
  _one("doorbell without GP_PUT", "the doorbell is rung and GP_PUT stays as it was",
       RING + "ring_doorbell", "self._userd.GPPut = self._entry & ENTRIES - 1", "pass", _HANGS),
  _one("GP_PUT stored late", "the doorbell is rung before GP_PUT is in memory",
       RING + "ring_doorbell",
       "self._userd.GPPut = self._entry & ENTRIES - 1\n  port.fence()\n"
       "  port.doorbell(self._doorbell, self._token, 4)",
       "port.doorbell(self._doorbell, self._token, 4)\n  self._userd.GPPut = self._entry & ENTRIES - 1",
       "doorbell|WaitTimeout"),
  _one("no doorbell", "GP_PUT moves and nobody tells the channel",
       RING + "ring_doorbell", "port.doorbell(self._doorbell, self._token, 4)", "pass", "."),
  _one("doorbell of another channel", "the work submit token is not the one that RM gave",
       RING + "ring_doorbell", "self._token, 4", "self._token + 1, 4", "."),
  _one("GP_PUT in words", "GP_PUT counts words, and not entries",
       RING + "ring_doorbell", "self._entry & ENTRIES - 1", "self.at & ENTRIES - 1", _HANGS),
  _one("entry too short", "an entry has a word less than the methods",
       RING + "tell", "(count - 1)", "(count - 2)", "."),
  _one("entry too long", "an entry has a word more than the methods",
       RING + "tell", "(count - 1)", "count", "."),
  _one("entry in bytes", "an entry counts bytes, and not words",
       RING + "tell", "(count - 1)", "(4 * count - 1)", "."),
  _one("pushbuffer overrun", "methods are written over those that the channel has not read",
       RING + "has_room", "if self.size - (self.at - self._free) > count and self._entry - self._entry_free < ENTRIES "
       "- _SPARE: return True", "return True", "."),
  _one("ring of 63 entries", "RM is given a number of entries that is no power of two",
       CHANNEL + "_open", "gpFifoEntries=ENTRIES", "gpFifoEntries=ENTRIES - 1", "."),
  _one("channel not scheduled", "the group is never put on its runlist",
       CHANNEL + "_open", "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS(bEnable=1)", "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS()", "."),
  _one("channel unknown to UVM", "the channel's context is never mapped",
       CHANNEL + "_open", "rm.uvm(nv_uvm.UVM_REGISTER_CHANNEL, ", "(lambda *_: None)(0, ", "."),
  _one("group without an address space", "the channel group is allocated with no VA space",
       CHANNEL + "_open", "hVASpace=gpu.va_space, engineType=engine))\n  self._handles",
       "hVASpace=0, engineType=engine))\n  self._handles", "."),
  _one("class of another chip", "SET_OBJECT names a class that the channel has no object of",
       HOST + "begin", "NVCLASS=self.module.CLASS", "NVCLASS=self.module.CLASS - 0x100", "."),
  # ---- the QMD
  _one("QMD address not shifted", "SEND_PCAS_A takes bytes, and not units of 256",
       COMPUTE + "launch", "Patch(at, 0, 8, 0)", "Patch(at, 0, 4, 0)", "."),
  _one("QMD not aligned", "QMDs lie at multiples of 64 bytes, and their address loses its low bits",
       PROGRAM + "_placed", "round_up(at + 4 * len(stream.words), QMD_ALIGN)",
       "round_up(at + 4 * len(stream.words), 64)", "."),
  _one("QMD not scheduled", "SEND_SIGNALING_PCAS2_B invalidates the scheduler's copy, and schedules nothing",
       COMPUTE + "launch", "PCAS_ACTION.INVALIDATE_PREFETCH_COPY_SCHEDULE", "PCAS_ACTION.INVALIDATE", _HANGS),
  _one("shared memory too small", "SHARED_MEMORY_SIZE forgets what the system keeps",
       PROGRAM + "_check", "own + dynamic + arch.shared_reserved, arch.shared_reserved", "own + dynamic, 0",
       "OOR_SHARED"),
  _one("stack outside of local memory", "a thread's local memory is as large as the kernel's frame",
       PROGRAM + "__init__", "round_up(kernel.local + _LOCAL_TOP - _STACK_TOP, 16)", "round_up(kernel.local, 16)",
       "OOR_LOCAL"),
  _one("shared memory in bytes", "SHARED_MEMORY_SIZE is no multiple of 128",
       _META, '"SHARED_MEMORY_SIZE": shared', '"SHARED_MEMORY_SIZE": shared + 4', "SKEDCHECK14|does not fit|multiple"),
  _one("no registers", "REGISTER_COUNT is 0 for a cubin that says nothing",
       _META, "max(kernel.registers, 1)", "0", "SKEDCHECK06"),
  _one("program address of the ELF", "PROGRAM_ADDRESS is the cubin's, not the kernel's",
       PROGRAM + "__init__", "image.address + kernel.text", "image.address + 128", "."),
  _one("program address amid the code", "PROGRAM_ADDRESS is an instruction further",
       PROGRAM + "__init__", "image.address + kernel.text", "image.address + kernel.text + 16",
       "ILLEGAL_INSTRUCTION_PC"),
  _one("grid in threads", "GRID_WIDTH counts threads, and not blocks",
       PROGRAM + "_fill_grid", "store(prepared.qmd, where, value)", "store(prepared.qmd, where, value * 2)", "."),
  _one("grid of the launch before", "a launch keeps the grid that its QMD was made with",
       PROGRAM + "fill", "if prepared.grid != grid:", "if prepared.grid is None:", _WRONG),
  _one("block dimensions exchanged", "CTA_THREAD_DIMENSION0 and 1 take each other's value",
       _META, "for n, b in enumerate(block)}", "for n, b in enumerate((block[1], block[0], block[2]))}", "."),
  _one("blockDim of bank 0", "constant bank 0 tells machine code another block than the QMD",
       PROGRAM + "_bank0", "layout.ntid, *block", "layout.ntid, *block[::-1]", "blockDim"),
  _one("gridDim of bank 0", "constant bank 0 tells machine code another grid than the QMD",
       PROGRAM + "_fill_grid", "nctaid, *grid", "nctaid, *grid[::-1]", "gridDim"),
  _one("bank 0 not valid", "CONSTANT_BUFFER_VALID of bank 0 is 0", _META, '("VALID", 1)', '("VALID", 0)',
       "OOR_CONSTANT"),
  _one("bank 0 too short", "CONSTANT_BUFFER_SIZE ends before the last parameter",
       _META, '("SIZE", size)', '("SIZE", size - 16)', "OOR_CONSTANT"),
  _one("bank 0 elsewhere", "CONSTANT_BUFFER_ADDR is 64 bytes behind the bank",
       PROGRAM + "fill", "address + self.bank_at)", "address + self.bank_at + 64)", "."),
  _one("parameters elsewhere", "parameters begin 4 bytes further", PROGRAM + "__init__",
       "self.bank_at + kernel.params", "self.bank_at + kernel.params + 4", "."),
  _one("times of one semaphore", "both timestamps of a timed launch are written to one place",
       PROGRAM + "_commands", "runtime.times + 16", "runtime.times", "a launch took"),
  # ---- clusters
  _one("clusters in a grid of blocks", "GPC_CGA_WIDTH says two, and QMD_TYPE stays GRID_CTA",
       _META, "kind = _GRID_CTA if cluster is None else _GRID_GPC_CGA", "kind = _GRID_CTA", "GPC_CGA"),
  _one("no clusters in the QMD", "a launch in clusters goes as one without",
       PROGRAM + "_submit", "self.prepared(block, dynamic, profile, cluster)", "self.prepared(block, dynamic, profile)",
       "rank of a cluster"),
  _one("cluster dimensions exchanged", "GPC_CGA_WIDTH and HEIGHT take each other's value",
       _META, "zip(_AXES, cluster)", "zip(_AXES, (cluster[1], cluster[0], cluster[2]))", "blocks of a cluster"),
  _one("clusters of bank 0", "constant bank 0 tells machine code another cluster than the QMD",
       PROGRAM + "_bank0", "told.nctaid, *size", "told.nctaid, *size[::-1]", "clusterDim"),
  _one("grid of bank 0 in blocks", "constant bank 0 tells machine code the grid in blocks, where clusters count",
       PROGRAM + "_fill_grid", "told.nclusterid, *counts", "told.nclusterid, *grid", "gridDim in clusters"),
  _one("grid in blocks", "GRID_WIDTH counts blocks, where there are clusters",
       PROGRAM + "_fill_grid", "zip(self._grid, counts, strict=True)", "zip(self._grid, grid, strict=True)", "."),
  # ---- local memory
  _one("no local memory", "a kernel with a frame runs and no local memory was set",
       PROGRAM + "__init__", "if self._local: runtime", "if False: runtime", "SKEDCHECK05"),
  _one("local memory of one thread", "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED has no room for a warp",
       DEVICE + "_tpc_bytes", "round_up(round_up(thread_bytes, 16) * threads, _LOCAL_GRANULE)",
       "round_up(thread_bytes, 16)", "SKEDCHECK05"),
  _one("local memory not aligned", "SHADER_LOCAL_MEMORY_HIGH_SIZE is no multiple of 16",
       _META, '"SHADER_LOCAL_MEMORY_HIGH_SIZE": self._local', '"SHADER_LOCAL_MEMORY_HIGH_SIZE": self._local + 4', "."),
  _one("no windows", "generic addresses have no windows of shared and local memory",
       DEVICE + "_open_queues", ".begin().windows(SHARED_WINDOW, LOCAL_WINDOW)", ".begin()", "windows"),
  _one("windows overlap", "shared and local memory's windows lie over each other",
       DEVICE + "_open_queues", "windows(SHARED_WINDOW, LOCAL_WINDOW)",
       "windows(SHARED_WINDOW, SHARED_WINDOW + (1 << 31))", "SKEDCHECK17"),
  # ---- sleeping waits
  _one("no interrupt behind the work", "a wait sleeps, and the card was not asked to interrupt",
       DEVICE + "asleep", "queue.submit(stream, last + 1, (), self.timeout_s)", "pass", "no interrupt"),
  _one("event of another engine", "the event is of a copy engine that does nothing",
       RM + "open_event", "a.NV2080_NOTIFIERS_FIFO_EVENT_MTHD", "a.NV2080_NOTIFIERS_CE9", "no interrupt"),
  _one("event of no interrupt", "the event's notifier is not said to be of interrupts",
       RM + "open_event", "| a.NV01_EVENT_NONSTALL_INTR", "", "no interrupt"),
  _one("event of the device", "interrupts are asked of the device, and a sub-device has them",
       RM + "open_event", "hSrcResource=gpu.subdevice", "hSrcResource=gpu.device", "INVALID_ARGUMENT"),
  _one("event of a file that is none", "NV_ESC_ALLOC_OS_EVENT is told another descriptor than the event",
       RM + "open_event", "hDevice=gpu.device, fd=fd)", "hDevice=gpu.device, fd=fd + 1)", "OBJECT_NOT_FOUND"),
  # ---- pages of the process
  _one("user pages that RM maps", "pages of the process are registered without MAPPING_NO_MAP",
       RM + "register_host", "NVOS02_FLAGS_MAPPING_NO_MAP", "NVOS02_FLAGS_MAPPING_DEFAULT", "INVALID_FLAGS"),
  _one("user pages by a handle of RM's", "RM is to choose the handle of user pages, and never tells it",
       RM + "register_host", "gpu.device, handle", "gpu.device, 0", "."),
  _one("user pages in no page tables", "pages are registered with RM, and UVM is not told",
       RM + "register_host", "self._map_to(buffer, gpu)", "pass", _FAULT),
  _one("user pages let go too early", "pages leave the page tables while a kernel writes them",
       DEVICE + "unregister_host", "self._release(buffer)", "self.give(buffer)", _FAULT),
  # ---- copies
  _one("pitches exchanged", "a copy of lines takes the destination's pitch for the source",
       COPIES + "copy_lines", "from_pitch, to_pitch, length", "to_pitch, from_pitch, length", "."),
  _one("one line of many", "MULTI_LINE_ENABLE is 0, and LINE_COUNT is not looked at",
       COPIES + "copy_lines", "self._launch(multi=1)", "self._launch(multi=0)", _WRONG),
  _one("physical addresses", "a copy takes its source's address for a physical one",
       COPIES + "_launch", "LAUNCH_DMA_SRC_TYPE.VIRTUAL", "LAUNCH_DMA_SRC_TYPE.PHYSICAL", "HCE_PRIV"),
  _one("inline data too long", "LINE_LENGTH_IN asks for more bytes than follow",
       COMPUTE + "inline", "len(data), 1", "len(data) + 8, 1", "."),
  _one("peer memory not mapped", "a copy reads memory that only the other card has mapped",
       DEVICE + "reach", "self.rm.map_to(buffer, self.gpu)", "pass", "MMU|fault"),
  _one("peer signals not mapped", "a card waits for a signal that only the other card has mapped",
       DEVICE + "reach", "self.rm.map_to(mine, theirs)", "pass", "MMU|fault"),
)

PAGE: Final = Path(__file__).parents[3] / "docs/mock-nvidia.md"
MARK: Final = "<!-- made by: python -m tests.drive.nv.mistakes -->\n"


def table() -> str:
  """The mistakes as the page shows them."""
  lines = [f"{len(MISTAKES)} mistakes are kept, and all are noticed.", "", "| mistake | what the driver does |",
           "|---|---|"]
  return "\n".join(lines + [f"| {m.name} | {m.what} |" for m in MISTAKES]) + "\n"


if __name__ == "__main__":
  text = PAGE.read_text()
  PAGE.write_text(text[:text.index(MARK)] + MARK + table())
