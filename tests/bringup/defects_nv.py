"""Defects of an NVIDIA card, a row a rung: each is one behaviour of the mock's kernel driver or chip, broken as cards,
firmware and prototypes break. The ladder must stop at the rung that is named."""
from __future__ import annotations

from typing import Final

from tests.bringup.defect import Defect

_PORT: Final = "tinyhw.mock.nv.port:NvPort."
_SHARED: Final = "tinyhw.mock.port:SharedPort."
_RM: Final = "tinyhw.mock.nv.driver.rm:Rm."
_UVM: Final = "tinyhw.mock.nv.driver.uvm:Uvm."
_CONTROLS: Final = "tinyhw.mock.nv.driver.controls:"
_CLASSES: Final = "tinyhw.mock.nv.driver.classes:Classes."
_EVENTS: Final = "tinyhw.mock.nv.driver.events:OsEvents."
_MACHINE: Final = "tinyhw.mock.nv.machine:NvMachine."
_LAUNCH: Final = "tinyhw.mock.nv.chip.launch:QmdLaunch."
_PLAN: Final = "tinyhw.mock.nv.chip.plan:Plan."
_SPACES: Final = "tinyhw.emulator.ptx.memory.spaces:"
_CHANNEL: Final = "tinyhw.mock.nv.chip.channel:Channel."
_HOST: Final = "tinyhw.mock.nv.chip.host:Host."
_COPY: Final = "tinyhw.mock.nv.chip.copy:CopyEngine."
_SEMAPHORES: Final = "tinyhw.mock.nv.chip.semaphores:"
_ALIASED: Final = """self._remember(at, length, bool(protection), owner)
    if region.name == "{}" and length == {} * PAGE:
      map_memory(region.fd, PAGE, start, at + PAGE, int(protection))
    return at"""
_MAPPED: Final = "self._remember(at, length, bool(protection), owner)\n    return at"

DEFECTS: Final[tuple[Defect, ...]] = (
  # ---- device
  Defect("device.node", "the control node is not there", _PORT + "open", "{CTL_PATH: \"ctl\", ", "{"),
  Defect("device.version", "the driver is of another branch", _RM + "check_version", "self.version.encode()",
         'b"570.12"'),
  Defect("device.cards", "the driver has bound no card", _RM + "card_info",
         "row.valid, row.gpu_id, row.minor_number = 1,",
         "row.valid, row.gpu_id, row.minor_number = 0,"),
  Defect("device.client", "every client gets the same handle", _RM + "_new_client",
         "handle, self._next_client = self._next_client, self._next_client + 1", "handle = self._next_client"),
  Defect("device.uvm", "UVM refuses to begin", _UVM + "initialize", "if p.flags & ~uvm.UVM_INIT_FLAGS_MASK:",
         "if True:"),
  Defect("device.open", "the card's node cannot join the client's file", _RM + "register_fd", "ctl is None or",
         "ctl is not None or"),
  Defect("device.identity", "the UUID is zeros", _CONTROLS + "_fill_uuid", "uuid_of(gpu) if binary",
         "bytes(16) if binary"),
  Defect("device.units", "an SM is told to have half its warps", _CONTROLS + "gr_information",
         "card.arch.warps_per_sm", "card.arch.warps_per_sm // 2"),
  Defect("device.target", "the SM version is one that nobody knows", _CONTROLS + "gr_information",
         "versions.get((major, minor), major << 8 | minor)", "0x9F7"),
  Defect("device.classes", "RM does not offer the compute class", _CONTROLS + "class_list_v2",
         "classes = gpu_of(node).card.classes",
         "card = gpu_of(node).card\n  classes = [c for c in card.classes if c != card.compute_class]"),
  Defect("device.engines", "the copy engines are fused off", _CONTROLS + "engine_types",
         "range(len(card.engines(card.copy_class)))", "range(0)"),
  Defect("device.memory", "more memory is free than there is", _CONTROLS + "fb_info",
         "gpu.vram_allocator.free_bytes >> 10",
         "gpu.vram_allocator.free_bytes >> 9"),
  Defect("device.clock", "PTIMER stands still", "tinyhw.mock.nv.machine:NvGpu.timer", "self.machine.clock.now_ns()",
         "1_000_000"),
  # ---- memory
  Defect("memory.space", "an address space can be registered twice", _UVM + "register_space",
         "if va.gpu is not gpu or gpu.index in space.spaces or va.registered is not None:", "if va.gpu is not gpu:"),
  Defect("memory.page", "the page tables take no system memory", _UVM + "map_external", "physical = memory.physical\n",
         "physical = memory.physical\n"
         "  if physical.kind == 'system': raise RmError(status.NV_ERR_INVALID_ADDRESS, '')\n"),
  Defect("memory.host", "the second page of a mapping shows the first one", _SHARED + "mmap", _MAPPED,
         _ALIASED.format("system memory", 16)),
  Defect("memory.apart", "a buffer of two pages is shown a page too early", _RM + "map_memory",
         "region, start = node.data.at(m.offset)",
         "region, start = node.data.at(m.offset)\n    start -= PAGE * (m.length == 2 * PAGE and start > 0)"),
  Defect("memory.vram", "the second page of BAR1 shows the first one", _SHARED + "mmap", _MAPPED,
         _ALIASED.format("GPU0.vram", 32)),
  Defect("memory.again", "freed video memory stays counted", "tinyhw.mock.nv.driver.objects:Physical.drop",
         "self.allocator.free(self.offset)", "self.kind == 'video' or self.allocator.free(self.offset)"),
  Defect("memory.user", "registering pages of the process wipes them", _RM + "alloc_memory",
         "node.data = self._user_pages(node, a.pMemory, a.limit + 1)",
         "node.data = self._user_pages(node, a.pMemory, a.limit + 1); self.user.write(a.pMemory, bytes(8))"),
  Defect("memory.refusals", "ranges may overlap", _UVM + "create_range",
         "if before is not None and p.base < before.base + before.size:", "if False:"),
  # ---- queue
  Defect("queue.create", "a channel takes no ring in video memory", _CLASSES + "channel",
         "if p.gpFifoOffset % 8:", "if p.gpFifoEntries > 1024:"),
  Defect("queue.token", "every channel is told the first one's token", _CONTROLS + "work_submit_token",
         "p.workSubmitToken = channel.token", "p.workSubmitToken = min(gpu_of(node).by_token)"),
  Defect("queue.nop", "the host engine does not tell how far it has fetched", _CHANNEL + "_fetch",
         "self._userd[_GET] = self.get", "self._userd[_GET] = 0"),
  Defect("queue.release", "semaphores of 32 bits write 64", _SEMAPHORES + "write", "width = 8 if wide else 4",
         "width = 8"),
  Defect("queue.object", "inline data is written word by word",
         "tinyhw.mock.nv.chip.compute:ComputeEngine._inline_done",
         "data[line * length : (line + 1) * length])", "data[line * length : (line + 1) * length & -4])"),
  Defect("queue.wrap", "the ring wraps an entry too late", _CHANNEL + "_fetch",
         "self.space.load(self.ring + self.get * gpfifo.SIZE, gpfifo.SIZE)",
         "self.space.load(self.ring + self.get % (self.entries - 1) * gpfifo.SIZE, gpfifo.SIZE)"),
  Defect("queue.timestamp", "semaphores have the time of the last doorbell", _HOST + "_write",
         "time_ns=channel.gpu.timer() if timed else None", "time_ns=5 if timed else None"),
  Defect("queue.wait", "ACQ_CIRC_GEQ compares without wrapping", _SEMAPHORES + "acquired",
         "return not (seen - payload & ones) >> width - 1", "return seen >= payload"),
  Defect("queue.atomics", "IMIN and IMAX are unsigned always", _HOST + "execute",
         "signed = p.REDUCTION_FORMAT == host.SEM_EXECUTE_REDUCTION_FORMAT.SIGNED", "signed = False"),
  Defect("queue.second", "a second channel of a process writes no semaphores of its own", _HOST + "_write",
         "self._when_idle(write, waits)",
         "self.channel.number % 2 and len(self.channel.machine.channels) > 1 and payload < 1000 and payload % 100 == 2 "
         "or self._when_idle(write, waits)"),
  Defect("queue.destroy", "a freed channel keeps its ring", "tinyhw.mock.nv.driver.objects:Physical.drop",
         "self.allocator.free(self.offset)",
         "self.kind == 'video' and self.size == 1 << 20 or self.allocator.free(self.offset)"),
  # ---- copies
  Defect("copies.queue", "the copy engine's runlist never runs", _CLASSES + "_engine_object",
         "channel.classes = (*channel.classes, node.class_id)",
         "channel.classes = (*channel.classes, node.class_id) if kind == 'compute' else ()"),
  Defect("copies.four", "copies are of whole quads", _COPY + "_pieces", "if not size: return",
         "if not size: return\n  if size == 4: size = 8"),
  Defect("copies.sizes", "a copy over a page's end that starts at an odd address is a byte short", _COPY + "_copy",
         "space = self.space\n", "space = self.space\n  size -= source & 1 and size > 4096\n"),
  Defect("copies.vram", "video memory is written a sector too far", _COPY + "_copy", "space = self.space\n",
         "space = self.space\n  there = space.find(target)\n"
         "  if there is not None and 'vram' in there.backing.name and size == 65536: target += 32; size -= 32\n"),
  Defect("copies.lines", "the pitches are exchanged", _COPY + "_moves",
         '(int(self.sent("PITCH_IN").VALUE), int(self.sent("PITCH_OUT").VALUE))',
         '(int(self.sent("PITCH_OUT").VALUE), int(self.sent("PITCH_IN").VALUE))'),
  Defect("copies.large", "LINE_LENGTH_IN has 21 bits", _COPY + "_copy", "space = self.space\n",
         "space = self.space\n  size = (size - 1 & (1 << 21) - 1) + 1\n"),
  Defect("copies.high", "the engine adds offsets in 32 bits", _COPY + "_copy", "space = self.space\n",
         "space = self.space\n  there = space.find(target)\n"
         "  if there is not None: target = there.start + (target - there.start & 0xFFFF_FFFF)\n"),
  Defect("copies.fill", "LINE_LENGTH_IN of a fill counts bytes", "tinyhw.mock.nv.chip.copy:Remap.run",
         "out = elements * len(self.picks) * size", "elements //= 4\n  out = elements * len(self.picks) * size"),
  Defect("copies.signal", "the copy engine's semaphores have no time", _COPY + "_release",
         "time_ns=self.channel.gpu.timer() if timed else None", "time_ns=0 if timed else None"),
  Defect("copies.atomics", "reductions of the copy engine store", _COPY + "_release",
         "p.SEMAPHORE_REDUCTION).name if p.SEMAPHORE_REDUCTION_ENABLE else",
         "p.SEMAPHORE_REDUCTION).name if False else"),
  # ---- signals
  Defect("signals.interrupt", "the compute engine's interrupts reach nobody", _EVENTS + "interrupt",
         "or event.file is None:", 'or event.file is None or engine == "compute":'),
  Defect("signals.copied", "the copy engines' interrupts reach nobody", _EVENTS + "interrupt",
         "or event.file is None:", 'or event.file is None or engine.startswith("copy"):'),
  Defect("signals.across", "an acquire of a copy channel looks once", _HOST + "_acquire",
         "return semaphores.acquired(operation, seen(), payload, wide)",
         'return semaphores.acquired(operation, seen() if self.channel.kind == "compute" else '
         "self.__dict__.setdefault((address, payload), seen()), payload, wide)"),
  Defect("signals.order", "a semaphore overtakes the last line of a copy", _COPY + "_pieces", "if not size: return",
         "if not size: return\n  late = self.__dict__.pop('late', None)\n  if late: self._copy(*late)\n"
         "  if size == 1 << 20:\n    size -= 64\n    self.late = source + size, target + size, 64"),
  Defect("signals.holds", "an acquire of a copy channel ends with any change", _HOST + "_acquire",
         "return semaphores.acquired(operation, seen(), payload, wide)",
         'return semaphores.acquired(operation, seen(), payload, wide) or self.channel.kind == "copy" and '
         "seen() != self.__dict__.setdefault((address, payload), seen())"),
  # ---- waves
  Defect("waves.driver", "a process has UVM once", _UVM + "initialize", "if file.uvm is None:",
         "if any(f.uvm is not None for f in self.machine.files_of(pid).values()):\n"
         "    raise RmError(status.NV_ERR_STATE_IN_USE, 'once')\n  if file.uvm is None:"),
  Defect("waves.assembled", "the assembler takes the card for an older one", "tinyhw.devices.assemble:bare",
         "arch.sm):", "arch.sm - 10):"),
  Defect("waves.end", "the release that a QMD asks for is not written", _LAUNCH + "_release",
         "for r in self.plan.releases:", "for r in ():"),
  Defect("waves.store", "bank 0 is read 8 bytes too early", _LAUNCH + "_run",
         "params = self.banks[0][0] + kernel.params if", "params = self.banks[0][0] + kernel.params - 8 if"),
  Defect("waves.arguments", "bank 0 has room for 12 bytes of arguments", _LAUNCH + "_run",
         "kernel.params if 0 in self.banks else 0",
         "kernel.params if 0 in self.banks else 0\n  self.space.store(params + 12, 4, 0)"),
  Defect("waves.lanes", "a block has 64 threads at most", _PLAN + "__init__",
         'self._dimensions(*(f"CTA_THREAD_DIMENSION{n}" for n in range(3)))',
         'self._dimensions(*(f"CTA_THREAD_DIMENSION{n}" for n in range(3)))\n'
         "  self.block = min(self.block[0], 64), *self.block[1:]"),
  Defect("waves.groups", "the grid's y and z are exchanged", _PLAN + "_grid", "return a * x, b * y, c * z",
         "return a * x, c * z, b * y"),
  Defect("waves.masks", "all lanes of the last warp live", "tinyhw.emulator.ptx.launch.grid:Grid.cohort",
         "if left != LANES:", "if False:"),
  Defect("waves.numbers", "bfe takes a bit too many", "tinyhw.emulator.ptx.meanings.integer:_places",
         "tuple(n & 0xFF if", "tuple((n + (n is counts[-1])) & 0xFF if"),
  Defect("waves.branches", "a negated predicate is not", "tinyhw.emulator.ptx.operands:_guard", "if negated else",
         "if False else"),
  Defect("waves.constants", "the tables of a module begin a word too late", "tinyhw.emulator.ptx.program:Code.address",
         "return program.base + program.linked.offsets[key]", "return program.base + program.linked.offsets[key] + 4"),
  Defect("waves.shared", "shared memory wraps at 512 bytes", _SPACES + "places",
         'cohort.shared.total, what, "shared")', 'cohort.shared.total, what, "shared") & 511'),
  Defect("waves.apart", "all blocks have the same shared memory", _SPACES + "places", "(slots * cohort.lds_size)",
         "(slots * 0)"),
  Defect("waves.local", "two threads share their local memory", _SPACES + "places", "threads * cohort.local.size",
         "threads // 2 * cohort.local.size"),
  Defect("waves.calls", "the result of a call is not taken back", "tinyhw.emulator.ptx.control:_ret",
         "frame.finish(group, base, registers)", "pass"),
  Defect("waves.shuffles", "shfl.bfly goes by one bit", "tinyhw.emulator.ptx.warp:_sources", "j = _LANE ^ value",
         "j = _LANE ^ (value & 1)"),
  # ---- shapes
  Defect("shapes.blocks", "the y of a thread has 9 bits", "tinyhw.emulator.ptx.special:_tid",
         "table = group.cohort.shared.tid[axis]", "table = group.cohort.shared.tid[axis] "
         "& np.uint32(511 if axis == 1 else 1023)"),
  Defect("shapes.counts", "a reduction of more than 2 adds one too few", _SPACES + "atomic",
         'check_alignment(group, addresses, width, "atomic")\n  return',
         'check_alignment(group, addresses, width, "atomic")\n'
         "  if not want: data = data - (np.asarray(data) > 2).astype(data.dtype)\n  return"),
  Defect("shapes.returns", "an atomic returns the new value", _SPACES + "atomic",
         "return access.atomic(group, addresses, width, operation, data, compare, want)",
         "old = access.atomic(group, addresses, width, operation, data, compare, want)\n"
         "  return old if old is None else old + data"),
  Defect("shapes.many", "the distributor stops at 8,500 blocks", _PLAN + "_grid", "return a * x, b * y, c * z",
         "return min(a * x, 8500), b * y, c * z"),
  Defect("shapes.behind", "the scheduler keeps the constant bank of a QMD that it has seen", _LAUNCH + "__init__",
         'at = self._own("CONSTANT_BUFFER_ADDR", 0)',
         'at = plan.__dict__.setdefault("kept", self._own("CONSTANT_BUFFER_ADDR", 0))'),
  Defect("shapes.chain", "a QMD's dependents are not scheduled", _LAUNCH + "_end",
         "for index, fresh in self.plan.dependents:", "for index, fresh in ():"),
  Defect("shapes.inline", "the last word of an inline QMD schedules nothing",
         "tinyhw.mock.nv.chip.compute:ComputeEngine.inline_qmd", "self._schedule(address, True)", "pass"),
  Defect("shapes.clusters", "GRID_WIDTH counts blocks", _PLAN + "_grid", "self.cluster or (1, 1, 1)", "(1, 1, 1)"),
  # ---- faults
  Defect("faults.method", "a method that there is not is skipped", _HOST + "illegal",
         'raise faults.host("METHOD", f"ILLEGAL({p.HANDLE:#x})")', "pass"),
  Defect("faults.semaphore", "RM keeps the next page of a fault", _CONTROLS + "mmu_fault_info",
         "fault.address & 0xFFFF_FFFF", "fault.address + 4096 & 0xFFFF_FFFF"),
  Defect("faults.copy", "a copy from no memory is dropped, and nobody hears", _COPY + "_copy", "space = self.space\n",
         "space = self.space\n  if space.find(source) is None: return\n"),
  Defect("faults.readonly", "mappings for reading can be written", _UVM + "map_external",
         "access_bits(attributes.gpuMappingType == uvm.UvmGpuMappingTypeReadOnly)", "access_bits(False)"),
  Defect("faults.write", "the log tells of reads only", _MACHINE + "channel_failed", "str(error).splitlines()",
         'str(error).replace("fault: write", "fault: read").splitlines()'),
  Defect("faults.read", "the log tells of writes only", _MACHINE + "channel_failed", "str(error).splitlines()",
         'str(error).replace("fault: read", "fault: write").splitlines()'),
  Defect("faults.spins", "a kernel that polls holds the whole chip", "tinyhw.mock.running:Running._turn",
         "ready = list(filter(_RUNNABLE, self.runners))", "ready = list(filter(_RUNNABLE, self.runners))\n"
         "  if any(r.busy for r in self.runners): ready = [r for r in ready if r.busy]"),
  # ---- processes
  Defect("processes.two", "a store is lost when the runlist comes back to the first process", _HOST + "_write",
         "self._when_idle(write, waits)",
         "rm = self.channel.machine.rm\n  if len({c.pid for c in rm.clients.values()}) < 2: rm.__dict__['n'] = 0\n"
         "  else: rm.__dict__['n'] += 1\n  if rm.__dict__['n'] != 3: self._when_idle(write, waits)"),
  Defect("processes.apart", "page tables of another process are looked at too", _HOST + "_write",
         "semaphores.write(channel.space,",
         "semaphores.write(channel.space if channel.space.find(address) else next((c.space for c in "
         "channel.machine.channels if c.space.find(address)), channel.space),"),
  Defect("processes.ends", "the objects of a client that ends stay", _RM + "free_node",
         "for below in list(node.tree()):", "for below in [] if node.parent is None and node.children else "
         "list(node.tree()):"),
  Defect("processes.channels", "the chip has 30 channels", _CLASSES + "channel", "if not p.hUserdMemory[0]:",
         "if not p.hUserdMemory[0] or len(self.machine.channels) > 30:"),
  Defect("processes.preempts", "channels that wait keep their engine", "tinyhw.mock.running:Running._turn",
         "ready = list(filter(_RUNNABLE, self.runners))", "ready = list(filter(_RUNNABLE, self.runners))\n"
         "  if sum(r.wait is not None for r in self.runners) > 8: ready = [r for r in ready if r.wait is not None]"),
  Defect("peers.copy", "peer access is answered and not given", _UVM + "enable_peers", "space.peers.add(pair)", "pass",
         cards=("sm_90,sm_90",)),
)
