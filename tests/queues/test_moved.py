"""Addresses of NVIDIA's words, where memory lies elsewhere: halves of methods, descriptors, entries."""
from __future__ import annotations

from typing import Any

import pytest

from tinyhw.autogen import nv_c8b5 as dma
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_cbc0 as compute
from tinyhw.autogen import nv_cbc0_qmd as descriptors
from tinyhw.core.errors import Unsupported
from tinyhw.queues.moved import Moves
from tinyhw.queues.nv.moved import Moved, pairs
from tinyhw.queues.nv.stream import NvFollow, NvState
from tinyhw.queues.world import Queue
from tinyhw.wire import gpfifo, methods, qmd

PUSH, OLD, HERE = 0x10_0000_0000, 0x20_0000_0000, 0xA0_0000_0000
RING = 0x30_0000_0000


def channel() -> Queue:
  return Queue(0, "channel", "gpfifo", 0, RING, 4096, 0, state=NvState(classes=[0xC8B5, 0xCBC0]))


def moved(words: list[int], queue: Queue | None = None, mover: Moved | None = None) -> list[int]:
  """The words of a pushbuffer, where the addresses of OLD lie at HERE."""
  mover = mover or mover_of()
  queue = queue or channel()
  raw = b"".join(w.to_bytes(4, "little") for w in words)
  memory = {PUSH: raw, OLD + 0x100: _qmd()}
  entry = gpfifo.Segment(PUSH, len(words)).encode().to_bytes(8, "little")
  follow = NvFollow(queue, [(RING, entry)], lambda at, size: memory.get(at, b"")[:size] or None)
  out = list(words)
  for at, old, new in mover.patches(queue, follow):
    if not PUSH <= at < PUSH + len(raw): continue
    assert out[(at - PUSH) // 4] == old
    out[(at - PUSH) // 4] = new
  return out


def mover_of(*more: tuple[int, int, int]) -> Moved:
  moves = Moves()
  for row in ((OLD, 1 << 20, HERE), *more): moves.add(*row)
  return Moved(moves)


def _qmd() -> bytes:
  made: Any = descriptors.QMDV04_00(**{f.name: 0 for f in descriptors.QMDV04_00.FIELDS})
  qmd.write(made, "QMD_MAJOR_VERSION", 4)
  for name, value, index in (("PROGRAM_ADDRESS", OLD + 0x1000, None), ("CONSTANT_BUFFER_ADDR", OLD + 0x2000, 0),
                             ("RELEASE_SEMAPHORE_ADDR", OLD + 0x30, 1)): qmd.write(made, name, value, index)
  return b"".join(w.to_bytes(4, "little") for w in made.encode())


def test_both_halves_of_an_address_move_in_one_header_or_two() -> None:
  def words(at: int) -> list[int]:
    return [*methods.send(4, dma.OFFSET_IN_UPPER(UPPER=at >> 32), dma.OFFSET_IN_LOWER(VALUE=at & 0xFFFFFFFF)),
            *methods.send(4, dma.OFFSET_OUT_LOWER(VALUE=at + 64 & 0xFFFFFFFF)),
            *methods.send(4, dma.OFFSET_OUT_UPPER(UPPER=at >> 32)), *methods.send(4, dma.LINE_LENGTH_IN(VALUE=16))]
  assert moved(words(OLD + 0x123)) == words(HERE + 0x123)
  assert moved(words(OLD - 0x1000)) == words(OLD - 0x1000)


def test_a_semaphore_and_an_entry_move() -> None:
  def words(at: int) -> list[int]:
    return methods.send(0, host.SEM_ADDR_LO(OFFSET_=at >> 2 & (1 << 30) - 1), host.SEM_ADDR_HI(OFFSET_=at >> 32))
  assert moved(words(OLD + 0x40)) == words(HERE + 0x40)
  follow = NvFollow(channel(), [(RING, gpfifo.Segment(OLD, 4).encode().to_bytes(8, "little"))], lambda at, size: None)
  found = {at: new for at, _, new in mover_of().patches(channel(), follow)}
  assert found[RING] | (gpfifo.Segment(OLD, 4).encode() & ~0xFFFFFFFF if RING + 4 not in found else
                        found[RING + 4] << 32) == gpfifo.Segment(HERE, 4).encode()


def test_a_descriptor_moves_with_what_it_names() -> None:
  queue, mover = channel(), mover_of()
  words = methods.send(1, compute.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=OLD + 0x100 >> 8))
  memory = {PUSH: b"".join(w.to_bytes(4, "little") for w in words), OLD + 0x100: _qmd()}
  follow = NvFollow(queue, [(RING, gpfifo.Segment(PUSH, len(words)).encode().to_bytes(8, "little"))],
                    lambda at, size: memory.get(at, b"")[:size] or None)
  raw = bytearray(_qmd())
  for at, _, new in mover.patches(queue, follow):
    if OLD <= at < OLD + 4096: raw[at - OLD - 0x100:at - OLD - 0xFC] = new.to_bytes(4, "little")
    elif at < RING: assert at == PUSH + 4 and new == HERE + 0x100 >> 8
  made = qmd.decode(0xCBC0, memoryview(bytes(raw)).cast("I").tolist())
  assert [qmd.read(made, name, index) for name, index in (
    ("PROGRAM_ADDRESS", None), ("CONSTANT_BUFFER_ADDR", 0), ("RELEASE_SEMAPHORE_ADDR", 1))] == [
    HERE + 0x1000, HERE + 0x2000, HERE + 0x30]


def test_a_half_of_two_addresses_that_part_is_refused() -> None:
  """The high half was sent once, for addresses whose ranges lie far from each other here."""
  queue, mover = channel(), mover_of((OLD + (2 << 20), 1 << 20, 0x50_0000_0000))
  first = [*methods.send(4, dma.OFFSET_IN_UPPER(UPPER=OLD >> 32), dma.OFFSET_IN_LOWER(VALUE=0)),
           *methods.send(4, dma.LINE_LENGTH_IN(VALUE=16))]
  moved(first, queue, mover)
  with pytest.raises(Unsupported, match="sent in a submission before"):
    moved(methods.send(4, dma.OFFSET_IN_LOWER(VALUE=2 << 20)), queue, mover)


@pytest.mark.parametrize("module", [compute, dma])
def test_numbers_that_are_no_addresses_have_no_pair(module: Any) -> None:
  by_offset = {m.OFFSET: name for name, m in vars(module).items() if hasattr(m, "OFFSET") and hasattr(m, "FIELDS")}
  names = {by_offset[at] for at in pairs(module)}
  assert not [n for n in names if any(word in n for word in ("PAYLOAD", "SIZE", "WINDOW", "COUNTER"))]
  assert {"OFFSET_OUT_UPPER", "SET_RENDER_ENABLE_B"} <= names
