"""An address space as the clients of a GPU's caches see it: the command processor, a copy engine, instruction fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import PageFault
from tinyhw.core.memory import U8, U64, Access, AddressSpace, Mapping
from tinyhw.mock.amd.chip.caches.lines import I64, LINE, Bools

if TYPE_CHECKING:
  from tinyhw.mock.amd.chip.caches.chip import Chip, Met
  from tinyhw.mock.amd.chip.caches.history import Agent

SMALL: Final = 256  # bytes below which an access is made byte by byte


class Client(AddressSpace):
  """An address space through caches. The mappings are those of the space that it stands before.

  `agent` makes the accesses; `detail` is what it does at the moment.
  """

  direct: ClassVar[bool] = False

  def __init__(self, base: AddressSpace, chip: Chip, agent: Agent | None = None) -> None:
    self.base, self.chip, self.weak = base, chip, chip.weak
    self.agent, self.detail = agent, None

  agent: Agent | None
  detail: object

  def __getattr__(self, name: str) -> Any:
    """The rest of it is the space's own."""
    return getattr(self.__dict__["base"], name)

  def find(self, address: int) -> Mapping | None:
    return self.base.find(address)

  def locate(self, addresses: U64, width: int, access: int) -> list[tuple[Mapping | None, Any, Any]]:
    return self.base.locate(addresses, width, access)

  # ---- the way of this client

  def _load(self, physical: I64, width: int, uncached: Bools) -> U8:
    return self.chip.through_gl2(0, physical, width, uncached)

  def _store(self, physical: I64, raw: U8, uncached: Bools) -> None:
    self.chip.to_gl2(physical, raw, uncached)

  def _met(self) -> Met:
    return [(self.chip.gl2, 0)]

  # ---- accesses

  def _chunks(self, address: int, size: int, access: int) -> list[tuple[U64, int, I64, Bools]]:
    """Accesses that make up a range, none across a line: (addresses, width, physical, uncached) of each width."""
    self._parts(address, size, access)
    first = -address % LINE
    if size <= SMALL or size < first + LINE:
      parts = [(np.arange(size, dtype=np.uint64) + np.uint64(address), 1)]
    else:
      whole = (size - first) // LINE
      tail = address + first + whole * LINE
      parts = [(np.arange(address, address + first, dtype=np.uint64), 1),
               (np.arange(whole, dtype=np.uint64) * np.uint64(LINE) + np.uint64(address + first), LINE),
               (np.arange(tail, address + size, dtype=np.uint64), 1)]
    out = []
    for addresses, width in parts:
      if len(addresses):
        found = self.weak.resolve(self, addresses, width, access)
        assert found is not None
        out.append((addresses, width, *found))
    return out

  def read(self, address: int, size: int, access: int = Access.READ) -> bytes:
    return self._read(address, size, access, self.agent is not None)

  def _read(self, address: int, size: int, access: int, note: bool) -> bytes:
    """Read, hold it against what is newest and, with `note`, remember that it was read."""
    if size <= 0:
      return b""
    history = self.weak.history
    history.tick()
    out = []
    for addresses, width, physical, uncached in self._chunks(address, size, access):
      seen = self._load(physical, width, uncached)
      if self.agent is not None:
        self.weak.saw(self.agent, self.detail, addresses, physical, seen, self._met(), self.chip)
        if note:
          history.has_read(history.places(physical, width), history.number(self.agent, self.detail))
      out.append(seen.tobytes())
    return b"".join(out)

  def write(self, address: int, data: bytes | bytearray | memoryview, access: int = Access.WRITE) -> None:
    history, done = self.weak.history, 0
    history.tick()
    raw = np.frombuffer(bytes(data), np.uint8)
    for _, width, physical, uncached in self._chunks(address, len(raw), access):
      n = len(physical) * width
      self._store(physical, raw[done : done + n].reshape(-1, width), uncached)
      if self.agent is not None:
        history.wrote(history.places(physical, width), history.number(self.agent, self.detail))
      done += n

  def load(self, address: int, width: int, access: int = Access.READ) -> int:
    return int.from_bytes(self.read(address, width, access), "little")

  def poll(self, address: int, width: int) -> int:
    return int.from_bytes(self._read(address, width, Access.READ, False), "little")

  def store(self, address: int, width: int, value: int, access: int = Access.WRITE) -> None:
    self.write(address, value.to_bytes(width, "little"), access)

  def view(self, address: int, size: int, access: int = Access.READ) -> U8:
    """A copy: nobody sees memory itself."""
    return np.frombuffer(self.read(address, size, access), np.uint8)


class NearSpace(Client):
  """Stores whose packet says that GL2 may keep them, whatever the page says."""

  def _store(self, physical: I64, raw: U8, uncached: Bools) -> None:
    self.chip.to_gl2(physical, raw, np.zeros_like(uncached))


class BypassSpace(Client):
  """The command processor where a packet's policy or destination goes past GL2, and its own pointers."""

  def _load(self, physical: I64, width: int, uncached: Bools) -> U8:
    return self.weak.physical.load(physical, width)

  def _store(self, physical: I64, raw: U8, uncached: Bools) -> None:
    self.chip.past_gl2(physical, raw)

  def _met(self) -> Met:
    return []


class SdmaSpace(Client):
  """A copy engine: its writes go past GL2 and leave the lines there as they are; its reads find what memory holds or
  what GL2 does, whichever is older."""

  def _load(self, physical: I64, width: int, uncached: Bools) -> U8:
    out = self.weak.physical.load(physical, width)
    held, here, _, _ = self.chip.gl2.holds(physical, width)
    here &= ~uncached[:, None]
    if here.any():
      newest, _ = self.weak.newest(physical, width)
      older = here & (out == newest)
      out[older] = held[older]
    return out

  def _store(self, physical: I64, raw: U8, uncached: Bools) -> None:
    self.weak.physical.store(physical, raw)


class WaveSpace(Client):
  """What the waves of a process's dispatches have before them: code through the instruction cache. Their data goes
  through a view; `read` is what a wave that waits would find there."""

  def read(self, address: int, size: int, access: int = Access.READ) -> bytes:
    out = []
    if not access & Access.EXECUTE:
      for _, width, physical, uncached in self._chunks(address, size, access):
        out.append(self._found(physical, width, uncached).tobytes())
      return b"".join(out)
    self.weak.history.tick()
    for addresses, width, physical, uncached in self._chunks(address, size, access):
      code = self.chip.load_code(physical, width, uncached)
      if self.agent is not None:
        self.weak.saw(self.agent, "code", addresses, physical, code, [(self.chip.code, 0), (self.chip.gl2, 0)],
                      self.chip)
      out.append(code.tobytes())
    return b"".join(out)

  def fetch(self, pc: int, size: int) -> bytes:
    m = self.find(pc)
    if m is None or not m.access & Access.EXECUTE:
      raise PageFault(pc, "execute", 4, reason="not mapped" if m is None else "no permission", pc=pc)
    return self.read(pc, min(size, m.end - pc), Access.EXECUTE)

  def _found(self, physical: I64, width: int, uncached: Bools) -> U8:
    """What a wave would find in GL2, or in memory, without a trace of the question."""
    out = self.weak.physical.load(physical, width)
    held, here, _, _ = self.chip.gl2.holds(physical, width)
    here &= ~uncached[:, None]
    out[here] = held[here]
    return out

  def gather(self, addresses: U64, width: int, access: int = Access.READ) -> npt.NDArray[Any]:
    found = self.weak.resolve(self, addresses, width, access)
    if found is None:
      each = [self.read(int(a), width, access) for a in addresses]
      raw = np.frombuffer(b"".join(each), np.uint8).reshape(-1, width)
    else:
      raw = np.ascontiguousarray(self._found(found[0], width, found[1]))
    return raw.view(np.uint32) if width > 8 else raw.view(f"u{width}").reshape(-1)
