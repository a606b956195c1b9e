"""Defects of an AMD card, a row a rung: each is one behaviour of the mock's kernel driver or chip, broken as cards,
firmware and prototypes break. The ladder must stop at the rung that is named."""
from __future__ import annotations

from typing import Final

from tests.bringup.defect import Defect

_PORT: Final = "tinyhw.mock.amd.port:MockPort."
_SHARED: Final = "tinyhw.mock.port:SharedPort."
_ALIASED: Final = """self._remember(at, length, bool(protection), owner)
    if region.name == "{}" and length == 16 * PAGE:
      map_memory(region.fd, PAGE, start, at + PAGE, int(protection))
    return at"""
_KFD: Final = "tinyhw.mock.amd.driver.kfd:Kfd."
_MEMORY: Final = "tinyhw.mock.amd.driver.memory:KfdMemory."
_FILES: Final = "tinyhw.mock.amd.driver.topology:Files."
_DRM: Final = "tinyhw.mock.amd.driver.drm:"
_QUEUES: Final = "tinyhw.mock.amd.driver.queues:"
_QUEUE: Final = "tinyhw.mock.amd.chip.queue:Queue."
_EVENTS: Final = "tinyhw.mock.amd.driver.events:Events."
_COMPUTE: Final = "tinyhw.mock.amd.chip.compute:"
_LAUNCH: Final = "tinyhw.emulator.amdgcn.launch:"
_CONTROL: Final = "tinyhw.emulator.amdgcn.control:"
_CHIP: Final = "tinyhw.mock.amd.chip.caches.chip:Chip."
_PM4: Final = "tinyhw.mock.amd.chip.pm4:ComputeQueue."
_SDMA: Final = "tinyhw.mock.amd.chip.sdma:SdmaQueue."

DEFECTS: Final[tuple[Defect, ...]] = (
  # ---- device
  Defect("device.node", "the compute driver has no device node", _PORT + "open",
         "if path != KFD_PATH and gpu is None:", "if gpu is None:"),
  Defect("device.version", "the driver speaks another major version", _KFD + "get_version",
         "kfd.KFD_IOCTL_MAJOR_VERSION, ", "kfd.KFD_IOCTL_MAJOR_VERSION + 1, "),
  Defect("device.topology", "the GPU's node says that it is a processor", _FILES + "_gpu_node",
         'f"{gpu_id}\\n".encode()', 'b"0\\n"'),
  Defect("device.units", "simd_count was never filled in", _FILES + "_gpu_node", '("simd_count", card.simds)',
         '("simd_count", 0)'),
  Defect("device.target", "a stepping that nobody knows", _FILES + "_gpu_node",
         '("gfx_target_version", card.gfx_target_version)', '("gfx_target_version", card.gfx_target_version + 9)'),
  Defect("device.render", "drm_render_minor is another card's", _DRM + "device", "device_id=card.device_id,",
         "device_id=card.device_id ^ 0x30,"),
  Defect("device.banks", "the topology tells twice the memory that there is", _FILES + "_gpu_node",
         "local_memory(card, vram_size, self.system_memory)", "2 * local_memory(card, vram_size, self.system_memory)"),
  Defect("device.counter", "the reference clock's frequency is not known", _DRM + "device",
         "gpu_counter_freq=card.counter_clock_khz", "gpu_counter_freq=0"),
  Defect("device.clock", "the counter is latched", "tinyhw.mock.amd.machine:Gpu.counter",
         "self.machine.clock.now_ns()", "1_000_000"),
  # ---- memory
  Defect("memory.space", "a second file's address space replaces the first", _KFD + "acquire_vm",
         "raise Refused(errno.EBUSY", "device.drm_file = file; return; (errno.EBUSY"),
  Defect("memory.apertures", "the apertures of LDS and scratch are exchanged", _KFD + "_aperture",
         "lds_base=LDS_BASE,\n    lds_limit=LDS_BASE + APERTURE_BYTES - 1,\n    scratch_base=SCRATCH_BASE,\n"
         "    scratch_limit=SCRATCH_BASE + APERTURE_BYTES - 1,",
         "lds_base=SCRATCH_BASE, lds_limit=SCRATCH_BASE + APERTURE_BYTES - 1, scratch_base=LDS_BASE, "
         "scratch_limit=LDS_BASE + APERTURE_BYTES - 1,"),
  Defect("memory.available", "AVAILABLE_MEMORY counts MiB", _MEMORY + "available_memory",
         "// VRAM_ALIGN * VRAM_ALIGN)", "// VRAM_ALIGN // 1_000_000)"),
  Defect("memory.page", "MAP_MEMORY_TO_GPU stops in front of the first GPU", _MEMORY + "map_memory_to_gpu",
         "args.n_success = i + 1", "args.n_success = i"),
  Defect("memory.host", "the second page of a mapping shows the first one", _SHARED + "mmap",
         "self._remember(at, length, bool(protection), owner)\n    return at",
         _ALIASED.format("system memory")),
  Defect("memory.apart", "a buffer of two pages is shown a page too early", _PORT + "_target",
         "return buffer.backing, buffer.offset, device if",
         "return buffer.backing, buffer.offset - PAGE * (buffer.size == 2 * PAGE), device if"),
  Defect("memory.vram", "the second page of the BAR shows the first one", _SHARED + "mmap",
         "self._remember(at, length, bool(protection), owner)\n    return at", _ALIASED.format("GPU0.vram")),
  Defect("memory.again", "freed video memory stays counted", _MEMORY + "drop",
         "(self.machine.system_allocator if gpu is None else gpu.vram_allocator).free(buffer.offset)",
         "if gpu is None: self.machine.system_allocator.free(buffer.offset)"),
  Defect("memory.user", "registering pages of the process wipes them", _MEMORY + "alloc_memory_of_gpu",
         "self.user_buffers[buffer] = process",
         "self.user_buffers[buffer] = process; process.user.write(args.mmap_offset, bytes(8))"),
  Defect("memory.refusals", "a mapped buffer can be freed", _MEMORY + "free_memory_of_gpu", "if buffer.mapped:",
         "if False:"),
  # ---- queue
  Defect("queue.create", "the driver finds no free compute pipe", _QUEUES + "create",
         "index = _doorbell_index(device, p)",
         'index = _doorbell_index(device, p)\n  if bit < 0: raise Refused(errno.ENOSPC, "no pipe")'),
  Defect("queue.doorbell", "every queue of a process gets the first doorbell", _QUEUES + "create",
         "| index * 8", "| device.queues[0].doorbell"),
  Defect("queue.nop", "the engine does not report its read pointer", _PM4 + "_report_read",
         "self.read & 0xFFFF_FFFF", "0"),
  Defect("queue.write", "WRITE_DATA of several words writes the first one alone", _PM4 + "write_data",
         'b"".join(v.to_bytes(4, "little") for v in p.payload)', 'p.payload[0].to_bytes(4, "little")'),
  Defect("queue.wrap", "what lies across the ring's end is read from one place only", _QUEUE + "_words_from",
         "self._words(0, at + count - n)", "self._words(n - (at + count - n), at + count - n)"),
  Defect("queue.indirect", "an indirect buffer loses its last dword", _PM4 + "indirect_buffer",
         "self.space.read(p.ib_base, p.ib_size * 4)", "self.space.read(p.ib_base, p.ib_size * 4 - 4)"),
  Defect("queue.release", "RELEASE_MEM of 64 bits writes the low ones", _PM4 + "_released",
         "space.store(p.address, 8, data if select == _WHOLE else self.gpu.counter())",
         "space.store(p.address, 8, data & 0xFFFF_FFFF if select == _WHOLE else self.gpu.counter())"),
  Defect("queue.timestamp", "timestamps at the end of the pipe stand still", _PM4 + "_released",
         "else self.gpu.counter())", "else 0x1234)"),
  Defect("queue.wait", "WAIT_REG_MEM does not look at its mask", _PM4 + "_wait", "mask = p.mask", "mask = -1"),
  Defect("queue.copy", "COPY_DATA moves 8 bytes always", _PM4 + "copy_data", "8 if p.count_sel else 4", "8"),
  Defect("queue.atomics", "SMIN compares without sign", "tinyhw.mock.amd.chip.atomics:atomic",
         "meaning(old, source & ones, compare & ones, ones)",
         'MEANINGS["UMIN" if "_SMIN_" in name else name.split("_")[3]](old, source & ones, compare & ones, ones)'),
  Defect("queue.second", "a second queue writes where the first one does", _PM4 + "write_data",
         "space.write(p.dst_mem_addr, b", "space.write(p.dst_mem_addr - 4 * (len(self.device.queues) > 1 and "
         "self.queue_id > 0 and p.dst_mem_addr % 8 == 4), b"),
  Defect("queue.destroy", "a queue's id is never free again", _QUEUES + "create",
         "next(i for i in range(len(process.queues) + 1) if i not in process.queues)",
         "machine.trace.__dict__.setdefault('ids', iter(range(999))).__next__()"),
  # ---- copies
  Defect("copies.queue", "a fence writes 16 bits", _SDMA + "fence", "space.store(p.addr, 4, p.data)",
         "space.store(p.addr, 2, p.data & 0xFFFF)"),
  Defect("copies.four", "the count of a copy is taken as bytes", _SDMA + "copy_linear",
         "self._copy(p.src_addr, p.dst_addr, size)", "self._copy(p.src_addr, p.dst_addr, size - 1)"),
  Defect("copies.sizes", "a copy over a page's end that starts at an odd address is a byte short", _SDMA + "_piece",
         "space = self.space\n", "space = self.space\n  size -= source & 1 and size > 4096\n"),
  Defect("copies.vram", "video memory is written a cache line too far", _SDMA + "_piece", "space = self.space\n",
         "space = self.space\n  there = self.space.find(target)\n"
         "  if there is not None and 'vram' in there.backing.name and size == 65536: target += 64; size -= 64\n"),
  Defect("copies.large", "the count of a packet has 21 bits", _SDMA + "_piece", "space = self.space\n",
         "space = self.space\n  size = (size - 1 & (1 << 21) - 1) + 1\n"),
  Defect("copies.high", "the engine adds offsets in 32 bits", _SDMA + "_piece", "space = self.space\n",
         "space = self.space\n  there = self.space.find(target)\n"
         "  if there is not None: target = there.start + (target - there.start & 0xFFFF_FFFF)\n"),
  Defect("copies.fill", "a fill is a dword short", _SDMA + "constant_fill", "(p.count >> 2) + 1 << 2",
         "(p.count >> 2) << 2"),
  Defect("copies.timestamp", "the copy engine's clock was never set", _SDMA + "timestamp", "self.gpu.counter()",
         "self.gpu.counter() >> 8"),
  Defect("copies.atomics", "the copy engine's atomics swap operands", _SDMA + "atomic", "p.src_data, p.cmp_data)",
         "p.cmp_data, p.src_data)"),
  Defect("copies.wrap", "the copy engine reads past the ring's end", _QUEUE + "_words_from",
         "n = self.properties.ring_size >> 2",
         "n = self.properties.ring_size >> 2\n  if self.SHIFT and at + count >= n - 256: at += 1"),
  # ---- signals
  Defect("signals.event", "an event that resets itself does not", _EVENTS + "_waiter",
         "event.signaled = event.signaled and not event.auto_reset", "pass"),
  Defect("signals.interrupt", "the end of the pipe raises no interrupt", _PM4 + "_released",
         "if interrupt not in (_INT_NONE, _INT_DATA):", "if False:"),
  Defect("signals.copied", "the copy engine's TRAP raises no interrupt", _SDMA + "trap",
         'self.interrupt(p.int_context, 28, "SDMA_PKT_TRAP")', "pass"),
  Defect("signals.across", "POLL_REGMEM looks once", _SDMA + "_poll", "return holds(seen() & mask, reference)",
         "return holds(self.__dict__.setdefault((address, reference), seen()) & mask, reference)"),
  Defect("signals.order", "a fence overtakes the last line of a copy", _SDMA + "_copy",
         "self._piece(source, target, size)",
         "late = self.__dict__.pop('late', None)\n  if late: self._piece(*late)\n  if size == 1 << 20:\n"
         "    size -= 64\n    self.late = source + size, target + size, 64\n  self._piece(source, target, size)"),
  Defect("signals.polls", "POLL_REGMEM ends with any change", _SDMA + "_poll", "return holds(seen() & mask, reference)",
         "return holds(seen() & mask, reference) or seen() != self.__dict__.setdefault((address, reference), seen())"),
  # ---- waves
  Defect("waves.end", "COMPUTE_PGM_HI is not looked at", _COMPUTE + "program_of",
         "entry = (registers.get(_HI, 0) << 32 | registers[_LO]) << 8", "entry = registers[_LO] << 8"),
  Defect("waves.store", "user SGPRs begin at register 1", _LAUNCH + "_first_group",
         "s[:users] = np.array(d.user_data[:users], np.uint32)",
         "s[1:users + 1] = np.array(d.user_data[:users], np.uint32)"),
  Defect("waves.users", "the last user SGPR is not written", _LAUNCH + "_first_group",
         "s[:users] = np.array(d.user_data[:users], np.uint32)",
         "s[:users - 1] = np.array(d.user_data[:users - 1], np.uint32)"),
  Defect("waves.lanes", "every wave of a workgroup begins with work-item 0", _LAUNCH + "_first_group",
         "items = _work_items(d.block, lanes)", "items = _work_items(d.block, lanes).copy()\n  items[:] = items[0]"),
  Defect("waves.groups", "the workgroup's y and z are exchanged", _LAUNCH + "_workgroup_ids", "x, y, z = d.grid",
         "x, z, y = d.grid"),
  Defect("waves.exec", "all lanes of the last wave live", _LAUNCH + "_first_group", "if left != lanes:", "if False:"),
  Defect("waves.wide", "the upper half of EXEC is not looked at", "tinyhw.emulator.amdgcn.registers:exec_changed",
         "lanes = read_mask(group, EXEC_LO)", "lanes = read_mask(group, EXEC_LO)\n"
         "  if lanes.ndim and group.cohort.lanes == 64: lanes = lanes | (np.arange(64) >= 32)"),
  Defect("waves.numbers", "V_BFE_U32 takes a bit too many", "tinyhw.emulator.amdgcn.meanings.integer:bfe_u",
         "(n & 31)", "(n + 1 & 31)"),
  Defect("waves.branches", "branches on SCC are taken the other way", _CONTROL + "_branch",
         "return there if bool(scc) is wanted else after", "return after if bool(scc) is wanted else there"),
  Defect("waves.scalar", "scalar loads load one dword", "tinyhw.emulator.amdgcn.memory.scalar:bind",
         "count = SCALAR_LOADS[i.mnemonic]", "count = 1"),
  Defect("waves.lds", "the LDS of a workgroup has half its size", _COMPUTE + "program_of",
         "lds = r2.LDS_SIZE * known.lds_granule", "lds = r2.LDS_SIZE * known.lds_granule // 2"),
  Defect("waves.apart", "all workgroups have the same LDS", "tinyhw.emulator.memory.access:lds_offsets",
         "if np.all(inside): return lds_base(group) + address, inside",
         "if np.all(inside): return lds_base(group) * 0 + address, inside"),
  Defect("waves.scratch", "the scratch of waves overlaps", _LAUNCH + "_first_group",
         "a_wave = d.scratch_size * lanes", "a_wave = d.scratch_size * lanes // 16"),
  Defect("waves.calls", "a call's return address is the call's own end of 8 bytes", _CONTROL + "_call",
         "pc + i.size", "pc + i.size + 4"),
  # ---- shapes
  Defect("shapes.blocks", "the y of a work-item has 9 bits", _LAUNCH + "_work_items", "linear // x % y << 10",
         "(linear // x % y & 511) << 10"),
  Defect("shapes.counts", "lanes of a wave that meet in an atomic count once",
         "tinyhw.emulator.amdgcn.memory.vector:_vector_atomic", "data = wide(data_of(group))",
         "data = wide(data_of(group))\n    if not want: "
         "data = data * 0 + (group.waves.reshape(-1, 1) % 2).astype(data.dtype)"),
  Defect("shapes.returns", "an atomic returns the new value", "tinyhw.emulator.amdgcn.memory.vector:_vector_atomic",
         "if old is not None: write_words(group, destination, split(old))",
         "if old is not None: write_words(group, destination, split(old + data))"),
  Defect("shapes.many", "the last workgroup of more than 1,200 does not start", _COMPUTE + "run_dispatch",
         "queue.machine.execute(queue, known, size,",
         "queue.machine.execute(queue, known, (size[0] - (size[0] > 1200), size[1], size[2]),"),
  Defect("shapes.chain", "user SGPRs are latched once a submission", _COMPUTE + "run_dispatch",
         "tuple(queue.user_data[:known.user_sgprs])",
         "queue.__dict__.setdefault(('latched', queue.write), tuple(queue.user_data[:known.user_sgprs]))"),
  # ---- caches
  Defect("caches.code", "GLI_INV forgets nothing", _CHIP + "control", 'if asks("GLI_INV"):', "if False:",
         memory="weak"),
  Defect("caches.vector", "GLV_INV forgets nothing", _CHIP + "control",
         "for cache in (self.vector, self.scalar, self.gl1):", "for cache in (self.scalar, self.gl1):", memory="weak"),
  Defect("caches.scalar", "GLK_INV forgets nothing", _CHIP + "control",
         "for cache in (self.vector, self.scalar, self.gl1):", "for cache in (self.vector, self.gl1):", memory="weak"),
  Defect("caches.written", "GL2_WB of RELEASE_MEM writes nothing back", _CHIP + "control", 'if asks("GL2_WB"):',
         'if asks("GL2_WB") and type(what).__name__ != "RELEASE_MEM_GCR_CNTL":', memory="weak"),
  Defect("caches.host", "GLK_INV keeps what it holds of system memory", _CHIP + "control",
         'cache.invalidate(ranges=some if asks("GL1_RANGE") else None)',
         "at = self.weak.physical.base(self.gpu.vram)\n      "
         "cache.invalidate(ranges=[(at, at + self.gpu.vram.size)] if cache is self.scalar else None)", memory="weak"),
  # ---- faults
  Defect("faults.read", "the page of a fault is the next one", _KFD + "memory_violation",
         "va=(fault.address or 0) & ~(PAGE - 1))", "va=((fault.address or 0) & ~(PAGE - 1)) + PAGE)"),
  Defect("faults.write", "every fault is told as a read", _KFD + "memory_violation",
         'int(fault.access in ("write", "atomic"))', "0"),
  Defect("faults.readonly", "pages are writable always", _MEMORY + "alloc_memory_of_gpu",
         "bool(flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE), ", "True, "),
  Defect("faults.fetch", "pages are executable always", _MEMORY + "alloc_memory_of_gpu",
         ", bool(flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)", ", True"),
  Defect("faults.packet", "a packet's store to no memory is dropped, and nobody hears", _PM4 + "write_data",
         "space.write(p.dst_mem_addr, b", "space.find(p.dst_mem_addr) and space.write(p.dst_mem_addr, b"),
  Defect("faults.copy", "a copy from no memory is dropped, and nobody hears", _SDMA + "_piece", "space = self.space\n",
         "space = self.space\n  if space.find(source) is None: return\n"),
  Defect("faults.packets", "a hang is told as an error of memory", _KFD + "gpu_hang",
         "reset_cause=kfd.KFD_HW_EXCEPTION_GPU_HANG", "reset_cause=kfd.KFD_HW_EXCEPTION_ECC"),
  Defect("faults.endless", "a queue whose wave runs cannot be taken off", _QUEUES + "destroy",
         "machine.settle(queue)", 'machine.settle(queue)\n  if queue.busy: raise Refused(errno.ETIME, "preemption")'),
  Defect("faults.spins", "a wave that polls holds the whole chip", "tinyhw.mock.running:Running._turn",
         "ready = list(filter(_RUNNABLE, self.runners))",
         "ready = list(filter(_RUNNABLE, self.runners))\n  if any(r.waves is not None for r in self.runners): "
         "ready = [r for r in ready if r.waves is not None]"),
  # ---- processes
  Defect("processes.two", "a process that comes again finds no engine", "tinyhw.mock.amd.machine:Machine.execute",
         "queue.terms = ", "order = self.__dict__.setdefault('order', [])\n  if queue.process in order[:-1] and "
         "order[-1] is not queue.process: return\n  order.append(queue.process)\n  queue.terms = "),
  Defect("processes.apart", "processes share an address space", _KFD + "acquire_vm",
         'AddressSpace(f"GPU{device.gpu.index} of process {process.pid}")',
         "next((s for p in self.processes.values() if (s := p.devices[args.gpu_id].space) is not None), None) "
         'or AddressSpace("all")'),
  Defect("processes.ends", "the memory of a process that ends stays taken", _KFD + "end_process",
         "self._give_back(device, buffer)", "pass"),
  Defect("processes.queues", "a ninth queue finds no place", _QUEUES + "create", ">= MAX_QUEUES:", ">= 9:"),
  Defect("processes.preempts", "queues that wait keep their places", "tinyhw.mock.running:Running._turn",
         "ready = list(filter(_RUNNABLE, self.runners))", "ready = list(filter(_RUNNABLE, self.runners))\n"
         "  if sum(r.wait is not None for r in self.runners) > 8: ready = [r for r in ready if r.wait is not None]"),
  Defect("peers.copy", "a buffer is mapped on its own card only", _MEMORY + "map_memory_to_gpu",
         "if ids[i] not in buffer.mapped:", "if ids[i] not in buffer.mapped and ids[i] == buffer.gpu_id:",
         cards=("gfx1100,gfx1100",)),
  Defect("counters.memory", "the memory in use is a constant", _DRM + "vram_usage",
         "(gpu.vram.size - gpu.vram_allocator.free_bytes)", "(1 << 20)"),
)
