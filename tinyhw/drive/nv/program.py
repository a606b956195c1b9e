"""A kernel of a cubin, ready to be launched: its queue meta data (QMD), constant bank 0 with its arguments, the methods
that schedule it.

The three lie side by side in the argument ring, which is memory of the GPU; the channel's entry leads to the methods
there. What does not change between two launches of one block shape is made once; a launch puts in the arguments, where
all this lies, and the timeline's value, which the QMD has the chip write when the last block has ended. So the next
launch's methods begin with a wait for idle, and its own end with the schedule.

The places that are patched are those that the declaration of the QMD's version gives.
"""
from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Any, Final

from tinyhw.arch.nv import ClusterBank, NvArch
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.core.lazy import cached_property
from tinyhw.drive.allocate import round_up
from tinyhw.drive.base import ADDRESS, Allocation, Dim3, Program
from tinyhw.drive.nv.bare import PtxKernel
from tinyhw.drive.nv.commands import ComputeCommands
from tinyhw.drive.nv.gpu import CodeImage, GpuRuntime, Places, Prepared
from tinyhw.drive.nv.rm import LOCAL_WINDOW, SHARED_WINDOW
from tinyhw.drive.queue import BoundStream
from tinyhw.wire import qmd
from tinyhw.wire.codeobject import Argument
from tinyhw.wire.cubin import Kernel

QMD_ALIGN: Final = 256       # SEND_PCAS_A takes an address in units of so many bytes
_BANK_ALIGN: Final = 64
_GRID_LIMIT: Final = (2**31 - 1, 65535, 65535)
_BLOCK_LIMIT: Final = (1024, 1024, 64)
_SHARED_GRANULE: Final = 128
_CONFIG_KIB: Final = 4       # of *_SM_CONFIG_SHARED_MEM_SIZE, which counts from 1
# Warps live in one of an SM's partitions, each with its share of the registers, given out by so many a thread.
_PARTITIONS: Final = 4
_REGISTERS_OF_THREAD: Final = 8
# Where a thread's stack begins in its local memory: what NVIDIA's driver puts into bank 0 for all kernels.
_STACK_TOP: Final = 0xFFFDC0
_LOCAL_TOP: Final = 1 << 24  # where that memory ends: what a thread has of it begins so many bytes before
_NO_CHECK: Final = 1         # API_VISIBLE_CALL_LIMIT
_SYSMEMBAR: Final = 1        # CWD_MEMBAR_TYPE
_GRID_CTA: Final = 2         # QMD_TYPE
_GRID_GPC_CGA: Final = 3     # the same of a grid of clusters, each within a GPC
CLUSTER_LIMIT: Final = 8     # blocks of one, on every card that has clusters (CUDA C++ Programming Guide)
_ONE: Final = (1, 1, 1)
_AXES: Final = ("WIDTH", "HEIGHT", "DEPTH")
_INVALIDATE_COPY_SCHEDULE: Final = 3  # DEPENDENT_QMD_ACTION
_ALL_GROUPS: Final = 0x3F    # QMD_GROUP_ID of work that belongs to no group
# Of the caches; that of instructions forgets what it holds when a program is loaded.
_INVALIDATES: Final = ("TEXTURE_HEADER_CACHE", "TEXTURE_SAMPLER_CACHE", "TEXTURE_DATA_CACHE", "SHADER_DATA_CACHE",
                       "SHADER_CONSTANT_CACHE")


Patches = tuple[tuple[int, int, int, int], ...]  # (dword, what of it stays, bits of the value to drop, place)


def patches(declaration: type[Any], name: str, index: int | None = None) -> Patches:
  """How to store a whole value into the dwords of a QMD."""
  out = []
  for field, at, width in qmd.pieces(declaration, name, index):
    lo, left = field.lo, width
    while left:
      dword, place = lo // 32, lo % 32
      count = min(left, 32 - place)
      mask = (1 << count) - 1 << place
      out.append((dword, 0xFFFFFFFF & ~mask, at + width - left, place))
      lo, left = lo + count, left - count
  return tuple(out)


def store(words: array[int] | memoryview[int], where: Patches, value: int) -> None:
  """Put a value at its places."""
  for dword, keep, right, left in where:
    words[dword] = words[dword] & keep | value >> right << left & ~keep & 0xFFFFFFFF


def resident(arch: NvArch, threads: int, registers: int) -> int:
  """Blocks of so many threads with so many registers each that an SM has at once, shared memory aside."""
  warps = -(-threads // arch.warp_size)
  a_warp = round_up(max(registers, 1), _REGISTERS_OF_THREAD) * arch.warp_size
  held = min(arch.warps_per_sm, _PARTITIONS * (arch.registers_per_sm // _PARTITIONS // a_warp))
  return max(min(held // warps, arch.blocks_per_sm), 1)


def shared_config(arch: NvArch, nbytes: int, blocks: int = 1) -> int:
  """*_SM_CONFIG_SHARED_MEM_SIZE of the smallest configuration of an SM that has room for so many blocks of `nbytes`
  each, or for as many of them as the largest has."""
  most = max(arch.shared_kib) << 10
  need = min(blocks, most // nbytes) * nbytes if nbytes else 0
  return next(k for k in arch.shared_kib if k << 10 >= need and k >= 8) // _CONFIG_KIB + 1


def factor(blocks: int) -> int:
  """The bits of the f32 by which code multiplies a block's index, to have its cluster's where that has so many."""
  nearest = struct.unpack("<f", struct.pack("<f", 1 / blocks))[0]
  bits = int(struct.unpack("<I", struct.pack("<f", nearest))[0])
  return bits + int(nearest * blocks < 1)  # not below: the product is cut


class NVProgram(Program):
  """See the module. Made by `NVRuntime.load`. `code` is what the cubin says."""

  def __init__(self, runtime: GpuRuntime, image: CodeImage, kernel: Kernel) -> None:
    self.name, self.code, self.runtime, self.image = kernel.name, kernel, runtime, image
    self._where = f"{runtime.name}, kernel {kernel.name}"
    self.arch = runtime.arch
    self.entry = image.address + kernel.text
    self.declaration: Any = qmd.declared(self.arch.compute_class, runtime.qmd_version)
    self._grid = tuple(patches(self.declaration, n) for n in ("GRID_WIDTH", "GRID_HEIGHT", "GRID_DEPTH"))
    self._bank = patches(self.declaration, "CONSTANT_BUFFER_ADDR", 0)
    self._next = patches(self.declaration, "DEPENDENT_QMD_POINTER", 0)
    self._over = patches(self.declaration, "RELEASE_SEMAPHORE_PAYLOAD", 0)
    self.bank_bytes = round_up(max(kernel.bank0, self.arch.bank0.params), 16)
    qmd_bytes = 4 * int(self.declaration.DWORDS)
    self.bank_at = round_up(qmd_bytes, _BANK_ALIGN)
    self.argument_bytes = round_up(self.bank_at + self.bank_bytes, QMD_ALIGN)
    self.params_at = self.bank_at + kernel.params
    ring = runtime.kernargs
    self._bank_moves = tuple(p for p in self._bank if ring.address >> p[2] != ring.address + len(ring.memory) >> p[2])
    self._prepared: dict[tuple[Dim3, int, bool, Dim3 | None], Prepared] = {}
    self._packers: dict[tuple[Any, ...], struct.Struct] = {}
    if kernel.call_stack: raise Unsupported("kernel with", "a stack of calls", where=self._where)
    self._local = round_up(kernel.local + _LOCAL_TOP - _STACK_TOP, 16) if kernel.local else 0
    if self._local: runtime.require_local(self._local, self._where)

  @property
  def clusters(self) -> bool:
    """Whether a launch may be in clusters of blocks."""
    return self.arch.bank0.clusters is not None

  # ---- arguments

  @cached_property
  def kernel(self) -> PtxKernel:
    """What `tinyhw.launch` has to know of the parameters: from the PTX, where there is some and somebody reads it."""
    ptx, code = self.image.code.ptx, self.code
    if ptx is not None and self.runtime.signature is not None: return self.runtime.signature(ptx, self.name)
    arguments = tuple(Argument(f"parameter {i}", "pointer_or_value" if p.size == 8 else "by_value", p.offset, p.size)
                      for i, p in enumerate(code.parameters))
    return PtxKernel(self.name, arguments, code.params_size, self._own_shared, (None,) * len(arguments))

  @property
  def _own_shared(self) -> int:
    """Bytes of shared memory that the kernel declares."""
    code, arch = self.code, self.arch
    return code.shared - (arch.shared_reserved if code.shared and arch.shared_symbols_reserved else 0)

  def packer(self, count: int, values: Sequence[int | float]) -> struct.Struct:
    """How to pack `count` addresses and then `values`; made once for each combination of kinds."""
    key = (count, *[isinstance(v, float) or v < 0 and -1 for v in values]) if values else (count,)
    known = self._packers.get(key)
    if known is None: known = self._packers[key] = self._make_packer(count, values)
    return known

  def _make_packer(self, count: int, values: Sequence[int | float]) -> struct.Struct:
    parameters = self.code.parameters
    if count + len(values) != len(parameters):
      sizes = ", ".join(f"{p.size} bytes" for p in parameters) or "none"
      raise InvalidArgument(f"takes {len(parameters)} parameters ({sizes}), got {count} buffers and {len(values)} "
                            "values", where=self._where)
    code, at = "<", 0
    for i, p in enumerate(parameters):
      if p.offset > at: code += f"{p.offset - at}x"
      if i < count:
        if p.size != 8:
          raise InvalidArgument(f"parameter {i} has {p.size} bytes, got a buffer", where=self._where)
        code += "Q"
      else: code += self._value_code(i, p.size, values[i - count])
      at = p.offset + p.size
    return struct.Struct(code)

  def _value_code(self, i: int, size: int, value: int | float) -> str:
    codes = {2: "e", 4: "f", 8: "d"} if isinstance(value, float) else {1: "B", 2: "H", 4: "I", 8: "Q"}
    if size not in codes:
      raise InvalidArgument(f"parameter {i} has {size} bytes; {type(value).__name__} {value!r} does not fill it",
                            where=self._where)
    return codes[size] if isinstance(value, float) or value >= 0 else codes[size].lower()

  # ---- launch

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    packer = self.packer(len(buffers), values)
    try:
      made = None if wait else self._prepared.get((block, self.dynamic_bytes, False, None))
      if made is not None and made.grid == grid:
        if self.runtime.launch_at_once(made, packer, [b.address for b in buffers], values): return None
      params = packer.pack(*map(ADDRESS, buffers), *values)
    except struct.error as e: raise InvalidArgument(f"an argument does not fit: {e}", where=self._where) from None
    return self._launch(params, grid, block, self.dynamic_bytes, wait, None)

  def launch(self, params: bytes, grid: Dim3, block: Dim3, *, dynamic_lds: int = 0, wait: bool = False,
             cluster: Dim3 | None = None) -> float | None:
    """Launch with the parameters as bytes and so much dynamic shared memory, in clusters of so many blocks."""
    if len(params) > self.code.params_size:
      raise InvalidArgument(f"{len(params)} bytes of parameters, the kernel takes {self.code.params_size}",
                            where=self._where)
    return self._launch(params, grid, block, dynamic_lds, wait, cluster)

  def _launch(self, params: bytes, grid: Dim3, block: Dim3, dynamic: int, wait: bool,
              cluster: Dim3 | None) -> float | None:
    if not wait:
      self._submit(params, grid, block, dynamic, False, cluster)
      return None
    with self.runtime.profiling:  # there is one pair of timestamps
      self.runtime.wait(self._submit(params, grid, block, dynamic, True, cluster))
      return self.runtime.elapsed()

  def _submit(self, params: bytes, grid: Dim3, block: Dim3, dynamic: int, profile: bool, cluster: Dim3 | None) -> int:
    runtime, prepared = self.runtime, self.prepared(block, dynamic, profile, cluster)
    if prepared.grid != grid: self.check_grid(grid, prepared.cluster)
    ring, made = runtime.kernargs, prepared.bytes
    nbytes = len(made)
    runtime.enter(runtime.compute, prepared.stream, nbytes)
    try:
      at = ring.take(nbytes)
      address = ring.address + at
      made[self.params_at:self.params_at + len(params)] = params
      self.fill(prepared, address, grid)
      prepared.stream.set("qmd", address)
      value = runtime.claim()
      try:
        if prepared.releases: store(prepared.qmd, self._over, value)
        else: prepared.stream.set("timeline", value)
        ring.memory[at:at + nbytes] = made
        runtime.submit_placed(address + prepared.stream_at, prepared.stream, value)
      except BaseException:
        runtime.abandon()
        raise
      ring.used_by(value)
      return value
    finally: runtime.lock.release()

  def fill(self, prepared: Prepared, address: int, grid: Dim3) -> None:
    """Put in the grid, and that the GPU sees it all at `address`. The parameters are the caller's, at `params_at`."""
    if prepared.grid != grid: self._fill_grid(prepared, grid)
    store(prepared.qmd, self._bank_moves, address + self.bank_at)

  def _fill_grid(self, prepared: Prepared, grid: Dim3) -> None:
    counts = [g // c for g, c in zip(grid, prepared.cluster or _ONE)]  # GRID_WIDTH counts clusters
    for where, value in zip(self._grid, counts, strict=True): store(prepared.qmd, where, value)
    made, bank = prepared.bytes, self.bank_at
    struct.pack_into("<III", made, bank + self.arch.bank0.nctaid, *grid)
    for start, told in self._cluster_banks():
      struct.pack_into("<III", made, bank + start + told.nclusterid, *counts)
    prepared.grid = grid

  def check_grid(self, grid: Dim3, cluster: Dim3 | None) -> None:
    """Refuse what a launch cannot have."""
    if len(grid) != 3 or not all(0 < g <= limit for g, limit in zip(grid, _GRID_LIMIT)):
      raise InvalidArgument(f"grid {grid}: blocks from 1 to {_GRID_LIMIT}", where=self._where)
    if cluster is not None and any(g % c for g, c in zip(grid, cluster)):
      raise InvalidArgument(f"grid {grid} is not whole clusters of {cluster} blocks", where=self._where)

  # ---- what is made once

  def prepared(self, block: Dim3, dynamic: int, profile: bool = False, cluster: Dim3 | None = None) -> Prepared:
    """QMD, bank and stream of a block shape. Raises InvalidArgument for what the chip or the kernel cannot run."""
    key = block, dynamic, profile, cluster
    found = self._prepared.get(key)
    if found is None or found.generation != self.runtime.local_generation:
      found = self._prepared[key] = self._prepare(block, dynamic, profile, self._clustered(cluster))
    return found

  def _clustered(self, asked: Dim3 | None) -> Dim3 | None:
    """The cluster of a launch that asks for one or for none."""
    kernel, where, cluster = self.code, self._where, asked or self.code.cluster
    if cluster is None:
      if kernel.cluster_asked:
        raise InvalidArgument("the kernel runs in clusters, and the launch does not say of how many blocks",
                              where=where, hint="cluster=(x, y, z); it was compiled with .explicitcluster")
      return None
    if kernel.cluster not in (None, cluster):
      raise InvalidArgument(f"a cluster of {cluster} blocks, the kernel was compiled for exactly {kernel.cluster}",
                            where=where)
    if not self.clusters: raise Unsupported("clusters of blocks on", self.arch.name, where=where)
    count, limit = cluster[0] * cluster[1] * cluster[2], kernel.cluster_limit or CLUSTER_LIMIT
    if min(cluster) < 1 or count > min(limit, CLUSTER_LIMIT):
      raise InvalidArgument(f"a cluster of {cluster} blocks: there are 1 to {min(limit, CLUSTER_LIMIT)}", where=where)
    if not qmd.has(self.declaration, "GPC_CGA_WIDTH"):
      raise Unsupported("clusters in", self.declaration.__name__, where=where)
    return cluster

  def _check(self, block: Dim3, dynamic: int) -> int:
    """Bytes of shared memory that a block gets."""
    arch, kernel, where = self.arch, self.code, self._where
    if len(block) != 3 or not all(0 < b <= limit for b, limit in zip(block, _BLOCK_LIMIT)):
      raise InvalidArgument(f"block {block}: threads from 1 to {_BLOCK_LIMIT}", where=where)
    threads = block[0] * block[1] * block[2]
    limit = kernel.limit or arch.block_limit
    if threads > arch.block_limit:
      raise InvalidArgument(f"block {block} has {threads} threads, {arch.name} runs at most {arch.block_limit}",
                            where=where)
    if threads > limit:
      raise InvalidArgument(f"block {block} has {threads} threads, the kernel was compiled for at most {limit}",
                            where=where, hint="compile it with a larger .maxntid")
    if kernel.required and kernel.required != tuple(block):
      raise InvalidArgument(f"block {block}, the kernel was compiled for exactly {kernel.required}", where=where)
    registers = round_up(kernel.registers, _REGISTERS_OF_THREAD) * 32 * -(-threads // 32)
    if registers > arch.registers_per_sm:
      raise InvalidArgument(f"block {block} needs {registers:,} registers, an SM has {arch.registers_per_sm:,}",
                            where=where)
    if dynamic < 0: raise InvalidArgument(f"{dynamic:,} bytes of dynamic shared memory", where=where)
    own = self._own_shared
    if own + dynamic > arch.shared_per_block:
      parts = f" ({own:,} of its own and {dynamic:,} dynamic)" if own and dynamic else ""
      raise InvalidArgument(f"needs {own + dynamic:,} bytes of shared memory{parts}, a block has at most "
                            f"{arch.shared_per_block:,}", where=where)
    return round_up(max(own + dynamic + arch.shared_reserved, arch.shared_reserved), _SHARED_GRANULE)

  def _prepare(self, block: Dim3, dynamic: int, profile: bool, cluster: Dim3 | None) -> Prepared:
    made = self._meta_data(block, self._check(block, dynamic), cluster)
    if not profile: self._release(made, self.runtime.timeline.signal.address)
    words = array("I", qmd.encode(made))
    stream, inline = self._commands(profile, len(words))
    return self._placed(words, block, cluster, stream, inline, not profile)

  def _placed(self, words: array[int], block: Dim3, cluster: Dim3 | None, stream: BoundStream, inline: int | None,
              releases: bool) -> Prepared:
    """All of a launch in one piece of memory. `inline`: where the QMD stands among the stream's words, if it does."""
    at = self.bank_at + self.bank_bytes
    made = bytearray(round_up(at + 4 * len(stream.words), QMD_ALIGN))
    made[self.bank_at:at] = self._bank0(block, cluster)
    dwords = memoryview(made).cast("I")
    stream.move(dwords[at // 4:at // 4 + len(stream.words)])
    first = 0 if inline is None else at // 4 + inline
    meta_data = dwords[first:first + len(words)]
    meta_data[:] = words
    store(meta_data, self._bank, self.runtime.kernargs.address)
    places = self._places(first, at, stream) if releases else None
    return Prepared(made, meta_data, stream, at, None, self.runtime.local_generation, cluster, releases, dwords,
                    self.params_at, places)

  def _places(self, first: int, at: int, stream: BoundStream) -> Places | None:
    """Where a launch's numbers lie, the QMD's dwords from `first` on, if each is the bits of whole dwords from some bit
    on."""
    rows = [(first + d, keep, right, left) for d, keep, right, left in (*self._bank_moves, *self._over)]
    rows += [(at // 4 + d, keep, right, left) for d, keep, right, left in stream.places("qmd")]
    if len(rows) != 4 or any(keep or left for _, keep, _, left in rows): return None
    (bank, _, shift, _), (low, *_), (high, *_), (send, _, right, _) = rows
    return Places(bank, shift, self.bank_at, low, high, send, right)

  def _commands(self, profile: bool, count: int) -> tuple[BoundStream, int | None]:
    """The words of a submission, and where the QMD of `count` dwords stands in them, if it does."""
    runtime, inline = self.runtime, None
    c = ComputeCommands(self.arch.compute_class, f"kernel {self.name}").wait_for_idle()
    if profile: c.signal(runtime.times, 0, timestamp=True)
    if runtime.inline_qmd: inline = c.launch_inline("qmd", count)
    else: c.launch("qmd")
    if profile:
      c.signal(runtime.times + 16, 0, timestamp=True).signal(runtime.timeline.signal.address, "timeline")
    return c.bind(), inline

  def _release(self, made: Any, address: int) -> None:
    """Have the chip write a value of 64 bits to an address when the grid has ended, after all that its threads wrote.
    """
    for name, value in (("ENABLE", 1), ("PAYLOAD64B", 1), ("SEMAPHORE_ADDR", address)):
      qmd.write(made, f"RELEASE_{name}", value, 0)

  def link(self, block: Dim3, last: bool) -> Prepared:
    """QMD and bank for a place in a chain: its end schedules the QMD behind it, or tells that the chain is over. Where
    those are, `join` and `finish` say."""
    cluster = self._clustered(None)
    made = self._meta_data(block, self._check(block, self.dynamic_bytes), cluster)
    if last: self._release(made, self.runtime.chain.address)
    else:
      for name, value in {"DEPENDENT_QMD_ENABLE": 1, "DEPENDENT_QMD_ACTION": _INVALIDATE_COPY_SCHEDULE}.items():
        qmd.write(made, name, value, 0)
    none = ComputeCommands(self.arch.compute_class).bind()
    return self._placed(array("I", qmd.encode(made)), block, cluster, none, None, last)

  def join(self, prepared: Prepared, address: int) -> None:
    """Have the QMD at an address follow."""
    store(prepared.qmd, self._next, address >> 8)

  def finish(self, prepared: Prepared, value: int) -> None:
    """What the end of the chain writes."""
    store(prepared.qmd, self._over, value)

  def _bank0(self, block: Dim3, cluster: Dim3 | None) -> bytearray:
    layout, bank = self.arch.bank0, bytearray(self.bank_bytes)
    struct.pack_into("<III", bank, layout.ntid, *block)
    struct.pack_into("<Q", bank, layout.shared_window, SHARED_WINDOW)
    struct.pack_into("<Q", bank, layout.local_window, LOCAL_WINDOW)
    struct.pack_into("<I", bank, layout.stack, _STACK_TOP)
    size = cluster or _ONE
    for at, told in self._cluster_banks():
      struct.pack_into("<III", bank, at + told.nctaid, *size)
      struct.pack_into("<III", bank, at + told.factors, *map(factor, size))
      struct.pack_into("<I", bank, at + told.nctarank, size[0] * size[1] * size[2])
    return bank

  def _cluster_banks(self) -> list[tuple[int, ClusterBank]]:
    """Where bank 0 tells of the launch's clusters, which have one block where it has none."""
    told = self.arch.bank0.clusters
    return [] if told is None else [(told.at - n * told.apart, told) for n in range(told.copies)]

  def _meta_data(self, block: Dim3, shared: int, cluster: Dim3 | None) -> Any:
    arch, kernel, image = self.arch, self.code, self.image
    made = qmd.new(arch.compute_class, self.runtime.qmd_version)
    major, minor = arch.version
    config = shared_config(arch, shared, resident(arch, block[0] * block[1] * block[2], kernel.registers))
    values: dict[str, int] = {
      "QMD_GROUP_ID": _ALL_GROUPS, "CWD_MEMBAR_TYPE": _SYSMEMBAR, "API_VISIBLE_CALL_LIMIT": _NO_CHECK,
      "SAMPLER_INDEX": 1, "PROGRAM_ADDRESS": self.entry, "REGISTER_COUNT": max(kernel.registers, 1),
      "BARRIER_COUNT": kernel.barriers, "SASS_VERSION": major << 4 | minor, "SHARED_MEMORY_SIZE": shared,
      "MIN_SM_CONFIG_SHARED_MEM_SIZE": config, "TARGET_SM_CONFIG_SHARED_MEM_SIZE": config,
      "MAX_SM_CONFIG_SHARED_MEM_SIZE": max(arch.shared_kib) // _CONFIG_KIB + 1,
      "SHADER_LOCAL_MEMORY_HIGH_SIZE": self._local, "SHADER_LOCAL_MEMORY_LOW_SIZE": 0,
      **{f"INVALIDATE_{cache}": 1 for cache in _INVALIDATES},
      **{f"CTA_THREAD_DIMENSION{n}": b for n, b in enumerate(block)}}
    kind = _GRID_CTA if cluster is None else _GRID_GPC_CGA
    for name, value in {"QMD_TYPE": kind, "SM_GLOBAL_CACHING_ENABLE": 1}.items():
      if qmd.has(self.declaration, name): values[name] = value
    if cluster is not None: values |= {f"GPC_CGA_{axis}": n for axis, n in zip(_AXES, cluster)}
    for name, value in values.items(): qmd.write(made, name, value)
    if qmd.has(self.declaration, "CONSTANT_BUFFER_PREFETCH", 0): qmd.write(made, "CONSTANT_BUFFER_PREFETCH", 1, 0)
    banks = {0: (0, self.bank_bytes)} | {n: (image.address + at, round_up(size, 16))
                                         for n, (at, size) in kernel.banks.items()}
    for n, (address, size) in banks.items():
      for name, value in (("VALID", 1), ("ADDR", address), ("SIZE", size), ("INVALIDATE", 1)):
        qmd.write(made, f"CONSTANT_BUFFER_{name}", value, n)
    return made
