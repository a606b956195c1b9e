"""A GPU with channels in memory of its own, without a kernel driver: what tests of engines stand on."""
from __future__ import annotations

import struct
from collections.abc import Sequence

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.layout import Method
from tinyhw.core.memory import Access, AddressSpace
from tinyhw.mock.nv.chip.channel import Channel, Group
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import gpfifo, methods, qmd
from tinyhw.wire.gpfifo import Notification, Userd

BASE = 0x10_0000_0000
SIZE = 1 << 20
ENTRIES = 32
FAR = 0x77_0000_0000  # where nothing is mapped
COMPUTE, COPY = 1, 4


def cubin(ptx: str, kernel: str, *, offset: int = 0x210, size: int = 0, shared: int = 0, text: bool = True) -> bytes:
  """An ELF without machine code: `.text.NAME`, `.nv.info.NAME` and the PTX, written by hand."""
  info = struct.pack("<BBHIHH", 4, 0x0A, 8, 0, offset, size)
  rows = [("", b"", 0, 0), (f".text.{kernel}", b"\0" * 128, 1, 128), (f".nv.info.{kernel}", info, 0x70000000, 4)]
  if text: rows.append((".tinyhw.ptx", ptx.encode(), 1, 1))
  names = b"".join(n.encode() + b"\0" for n, *_ in rows) + b".shstrtab\0"
  rows.append((".shstrtab", names, 3, 1))
  body, headers, at, name = bytearray(b"\0" * 128), [], 128, 0
  for title, data, kind, align in rows:
    at = -(-at // max(align, 1)) * max(align, 1)
    body += b"\0" * (at - len(body)) + data
    headers.append(struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, at, len(data), 0, 0, align, 0))
    at, name = at + len(data), name + len(title) + 1
  start = -(-len(body) // 8) * 8
  body += b"\0" * (start - len(body)) + b"".join(headers)
  ident = b"\x7fELF\x02\x01\x01" + b"\0" * 9
  head = struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, start, 0, 64, 0, 0, 64, len(rows), len(rows) - 1)
  body[:64] = ident + head
  return bytes(body)


class Bench:
  """One card, an address space with memory at BASE, and channels made as asked for."""

  def __init__(self, card: str = "sm_90", seed: int = 0, machine: NvMachine | None = None, gpu: int = 0) -> None:
    self.machine = machine or NvMachine(card, seed=seed, vram=SIZE * 4, system_memory=SIZE * 4, tracing=True)
    self.gpu = self.machine.gpus[gpu]
    self.space = AddressSpace("test")
    self.space.map(BASE, SIZE, self.gpu.vram, 0, Access.ALL)
    self._next = 0x1000
    self.userd: dict[Channel, int] = {}
    self.notifier: dict[Channel, int] = {}

  def take(self, size: int, align: int = 256) -> int:
    """So many bytes of memory."""
    self._next = -(-self._next // align) * align
    at, self._next = self._next, self._next + size
    return BASE + at

  def channel(self, kind: str = "compute", group: Group | None = None, engine: int = 0) -> Channel:
    """A channel that is scheduled."""
    group = group or Group(kind)
    card = self.gpu.card
    ring, userd, notifier = self.take(ENTRIES * 8), self.take(512), self.take(16)
    classes = [card.compute_class, card.copy_class] if kind == "compute" else [card.copy_class]
    channel = Channel(self.gpu, group, self.gpu.new_number(), self.space, ring, ENTRIES,
                      (self.gpu.vram, userd - BASE), (self.gpu.vram, notifier - BASE), classes, engine)
    self.machine.channels.append(channel)
    self.gpu.by_token[channel.number] = channel
    channel.schedule()
    self.userd[channel] = userd
    self.notifier[channel] = notifier
    return channel

  def submit(self, channel: Channel, words: Sequence[int], **how: bool) -> None:
    """Put words behind the next entry and ring."""
    at = self.take(4 * max(len(words), 1))
    self.space.write(at, b"".join(w.to_bytes(4, "little") for w in words))
    self.entry(channel, gpfifo.Segment(at, len(words), **how).encode())

  def entry(self, channel: Channel, value: int) -> None:
    """Put an entry into the ring and ring."""
    userd = self.userd[channel]
    put = self.space.load(userd + Userd.GPPut.offset, 4)  # type: ignore[attr-defined]
    self.space.store(channel.ring + put * 8, 8, value)
    self.space.store(userd + Userd.GPPut.offset, 4, (put + 1) % ENTRIES)  # type: ignore[attr-defined]
    self.gpu.doorbell(channel.number)

  def run(self) -> None:
    """Until nothing can go on."""
    self.machine.run(lambda: False, 0.0)

  def told(self, channel: Channel) -> Notification:
    """The channel's error notifier."""
    return Notification.from_buffer_copy(self.space.read(self.notifier[channel], 16))

  def send(self, channel: Channel, subchannel: int, *sent: Method) -> None:
    """Submit methods and run."""
    self.submit(channel, methods.send(subchannel, *sent))
    self.run()


def release(address: int, payload: int, *, wide: bool = False, timed: bool = False, idle: bool = True) -> list[Method]:
  """The methods of a semaphore release."""
  return [*semaphore(address, payload),
          host.SEM_EXECUTE(OPERATION=host.SEM_EXECUTE_OPERATION.RELEASE, RELEASE_WFI=int(idle), PAYLOAD_SIZE=int(wide),
                           RELEASE_TIMESTAMP=int(timed))]


def semaphore(address: int, payload: int) -> list[Method]:
  """Address and payload."""
  return [host.SEM_ADDR_LO(OFFSET_=(address & 0xFFFF_FFFF) >> 2), host.SEM_ADDR_HI(OFFSET_=address >> 32),
          host.SEM_PAYLOAD_LO(PAYLOAD=payload & 0xFFFF_FFFF), host.SEM_PAYLOAD_HI(PAYLOAD=payload >> 32)]


def launch_qmd(bench: Bench, program: int, *, version: tuple[int, int] | None = None,
               grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (32, 1, 1),
               bank: tuple[int, int] | None = None, shared: int = 1024, **more: int) -> int:
  """A QMD in memory; `more` are whole values by name. Returns its address."""
  card = bench.gpu.card
  made = qmd.new(card.compute_class, version or card.qmd_versions[0])
  if qmd.has(type(made), "QMD_TYPE"): qmd.write(made, "QMD_TYPE", 2)
  for name, value in zip(("GRID_WIDTH", "GRID_HEIGHT", "GRID_DEPTH"), grid): qmd.write(made, name, value)
  for n, value in enumerate(block): qmd.write(made, f"CTA_THREAD_DIMENSION{n}", value)
  qmd.write(made, "PROGRAM_ADDRESS", program)
  qmd.write(made, "REGISTER_COUNT", 32)
  qmd.write(made, "SHARED_MEMORY_SIZE", shared)
  if bank is not None:
    qmd.write(made, "CONSTANT_BUFFER_VALID", 1, 0)
    qmd.write(made, "CONSTANT_BUFFER_ADDR", bank[0], 0)
    qmd.write(made, "CONSTANT_BUFFER_SIZE", bank[1], 0)
  for name, value in more.items():
    base, _, index = name.rpartition("__")
    qmd.write(made, base or index, value, int(index) if base else None)
  address = bench.take(4 * type(made).DWORDS)
  bench.space.write(address, b"".join(w.to_bytes(4, "little") for w in made.encode()))
  return address
