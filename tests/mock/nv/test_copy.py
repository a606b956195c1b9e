"""The copy engine: lines, components, semaphores; what it refuses; that it runs beside the host engine."""
from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock.nv.bench import COPY, FAR, SIZE, Bench, release
from tests.mock.nv.test_host import MMU, PBDMA, dead
from tests.strength import examples, seeds
from tinyhw.autogen import nv_c8b5 as ce
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.errors import Unsupported
from tinyhw.core.layout import Method
from tinyhw.mock.nv.chip.channel import State
from tinyhw.wire import methods

TRANSFER, SEMAPHORE = ce.LAUNCH_DMA_DATA_TRANSFER_TYPE, ce.LAUNCH_DMA_SEMAPHORE_TYPE
PITCH = {"SRC_MEMORY_LAYOUT": 1, "DST_MEMORY_LAYOUT": 1}


def addresses(source: int, target: int) -> list[Method]:
  return [ce.OFFSET_IN_UPPER(UPPER=source >> 32), ce.OFFSET_IN_LOWER(VALUE=source & 0xFFFF_FFFF),
          ce.OFFSET_OUT_UPPER(UPPER=target >> 32), ce.OFFSET_OUT_LOWER(VALUE=target & 0xFFFF_FFFF)]


def linear(source: int, target: int, size: int, kind: int = TRANSFER.NON_PIPELINED, **more: int) -> list[Method]:
  return [*addresses(source, target), ce.LINE_LENGTH_IN(VALUE=size),
          ce.LAUNCH_DMA(DATA_TRANSFER_TYPE=kind, **{"FLUSH_ENABLE": 1, **PITCH, **more})]


def filled(b: Bench, size: int, seed: int = 1) -> int:
  at = b.take(size)
  b.space.write(at, random.Random(seed).randbytes(size))
  return at


def test_lines() -> None:
  b = Bench()
  c, source, target = b.channel("copy"), filled(b, 4096), b.take(4096)
  b.send(c, COPY, *linear(source + 3, target + 5, 1000))
  assert b.space.read(target + 5, 1000) == b.space.read(source + 3, 1000) and b.space.read(target, 5) == bytes(5)
  b.send(c, COPY, *linear(source, target, 0))  # a line of nothing
  rect = b.take(4096)
  b.send(c, COPY, *addresses(source, rect), ce.LINE_LENGTH_IN(VALUE=10), ce.LINE_COUNT(VALUE=7), ce.PITCH_IN(VALUE=100),
         ce.PITCH_OUT(VALUE=32), ce.LAUNCH_DMA(DATA_TRANSFER_TYPE=TRANSFER.PIPELINED, MULTI_LINE_ENABLE=1, **PITCH))
  raw = np.frombuffer(b.space.read(source, 700), np.uint8).reshape(7, 100)
  out = np.frombuffer(b.space.read(rect, 224), np.uint8).reshape(7, 32)
  assert (out[:, :10] == raw[:, :10]).all() and not out[:, 10:].any()
  assert c.state is State.READY and not b.machine.findings


def test_across_mappings() -> None:
  """Pieces of one copy that are in different memory on either side."""
  b = Bench()
  far = 0x30_0000_0000
  for n, place in enumerate((0x3000, 0x1000, 0x2000)): b.space.map(far + n * 4096, 4096, b.gpu.vram, SIZE + place)
  c, source, back = b.channel("copy"), filled(b, 10_000), b.take(10_000)
  b.send(c, COPY, *linear(source, far + 100, 10_000))
  assert b.space.read(far + 100, 10_000) == b.space.read(source, 10_000)
  b.send(c, COPY, *linear(far + 100, far + 50, 9000), *linear(far + 50, back, 9000))
  assert b.space.read(back, 9000) == b.space.read(source, 9000)


def test_a_semaphore_that_does_not_wait_for_its_copy_is_doubted() -> None:
  for flush, kind, doubted in ((1, TRANSFER.PIPELINED, False), (0, TRANSFER.PIPELINED, True),
                               (0, TRANSFER.NONE, False)):
    b = Bench()
    c, at = b.channel("copy"), b.take(16)
    place = [ce.SET_SEMAPHORE_A(UPPER=at >> 32), ce.SET_SEMAPHORE_B(LOWER=at & 0xFFFF_FFFF),
             ce.SET_SEMAPHORE_PAYLOAD(PAYLOAD=1)]
    b.send(c, COPY, *place, *linear(filled(b, 64), b.take(64), 64, kind, SEMAPHORE_TYPE=1, FLUSH_ENABLE=flush))
    assert b.space.load(at, 4) == 1 and any("FLUSH_ENABLE 0" in f for f in b.machine.findings) == doubted


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(1, 4), st.integers(1, 4), st.integers(0, 9),
       st.integers(0, 2**32))
@settings(max_examples=examples(25), deadline=None)
def test_components(picks: list[int], count: int, size: int, elements: int, seed: int) -> None:
  b = Bench()
  rng = random.Random(seed)
  c, source, target = b.channel("copy"), filled(b, 256, seed), filled(b, 256, seed + 1)
  before, given_, consts = b.space.read(target, 256), b.space.read(source, 256), [rng.getrandbits(32) for _ in "ab"]
  remap = {f"DST_{'XYZW'[i]}": p for i, p in enumerate(picks)}
  b.send(c, COPY, *addresses(source, target), ce.LINE_LENGTH_IN(VALUE=elements), ce.SET_REMAP_CONST_A(V=consts[0]),
         ce.SET_REMAP_CONST_B(V=consts[1]),
         ce.SET_REMAP_COMPONENTS(COMPONENT_SIZE=size - 1, NUM_SRC_COMPONENTS=count - 1,
                                 NUM_DST_COMPONENTS=len(picks) - 1, **remap),
         ce.LAUNCH_DMA(DATA_TRANSFER_TYPE=TRANSFER.NON_PIPELINED, REMAP_ENABLE=1, **PITCH))
  if any(count <= p < 4 for p in picks):
    return dead(b, c, status.ROBUST_CHANNEL_CE0_ERROR, "SET_REMAP_COMPONENTS takes SRC_")
  out = bytearray(before)
  for i in range(elements):
    for k, p in enumerate(picks):
      at, src = (i * len(picks) + k) * size, (i * count + p) * size
      if p < 4: out[at:at + size] = given_[src:src + size]
      elif p < 6: out[at:at + size] = consts[p - 4].to_bytes(4, "little")[:size]
  assert b.space.read(target, 256) == bytes(out)


@pytest.mark.parametrize("card", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_semaphores(card: str) -> None:
  b = Bench(card)
  m = methods.declared(b.gpu.card.copy_class)
  c, at = b.channel("copy"), b.take(32)
  b.space.write(at, b"\xff" * 32)
  place = [m.SET_SEMAPHORE_A(UPPER=at >> 32), m.SET_SEMAPHORE_B(LOWER=at & 0xFFFF_FFFF),
           m.SET_SEMAPHORE_PAYLOAD(PAYLOAD=9)]
  b.send(c, COPY, *place, m.LAUNCH_DMA(SEMAPHORE_TYPE=1, FLUSH_ENABLE=1))
  assert b.space.read(at, 8) == b"\x09\0\0\0\xff\xff\xff\xff"
  b.send(c, COPY, m.LAUNCH_DMA(SEMAPHORE_TYPE=2))
  assert b.space.load(at, 8) == 9 and 0 < b.space.load(at + 8, 8) < b.gpu.timer()
  b.send(c, COPY, m.LAUNCH_DMA(SEMAPHORE_TYPE=1, SEMAPHORE_REDUCTION=m.LAUNCH_DMA_SEMAPHORE_REDUCTION.IADD,
                               SEMAPHORE_REDUCTION_SIGN=1, SEMAPHORE_REDUCTION_ENABLE=1))
  assert b.space.load(at, 8) == 18
  if hasattr(m, "SET_SEMAPHORE_PAYLOAD_UPPER"):
    b.send(c, COPY, m.SET_SEMAPHORE_PAYLOAD_UPPER(PAYLOAD=1), m.LAUNCH_DMA(SEMAPHORE_TYPE=1, SEMAPHORE_PAYLOAD_SIZE=1))
    assert b.space.load(at, 8) == 1 << 32 | 9
  assert c.state is State.READY
  b.send(c, COPY, m.SET_SEMAPHORE_B(LOWER=at + 8 & 0xFFFF_FFFF), m.LAUNCH_DMA(SEMAPHORE_TYPE=2))
  dead(b, c, status.ROBUST_CHANNEL_CE0_ERROR, "a semaphore of 16 bytes")


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("operation, pick", [("IMIN", min), ("IMAX", max), ("IADD", None)])
def test_reductions_of_semaphores(operation: str, pick: Callable[..., int] | None, unsigned: bool,
                                  timed: bool) -> None:
  """-1 and 1, which are in another order where they have no sign; a timestamp is told beside."""
  b = Bench()
  c, at = b.channel("copy"), b.take(32)
  for seen, payload in ((0xFFFF_FFFF, 1), (1, 0xFFFF_FFFF), (2, 3)):
    b.space.store(at, 8, seen)
    b.space.store(at + 8, 8, 0)
    b.send(c, COPY, ce.SET_SEMAPHORE_A(UPPER=at >> 32), ce.SET_SEMAPHORE_B(LOWER=at & 0xFFFF_FFFF),
           ce.SET_SEMAPHORE_PAYLOAD(PAYLOAD=payload),
           ce.LAUNCH_DMA(SEMAPHORE_TYPE=1 + timed, SEMAPHORE_REDUCTION_ENABLE=1, SEMAPHORE_REDUCTION_SIGN=unsigned,
                         SEMAPHORE_REDUCTION=ce.LAUNCH_DMA_SEMAPHORE_REDUCTION[operation]))
    key = int if unsigned else lambda x: (x ^ 1 << 31) - (1 << 31)
    assert b.space.load(at, 4) == (pick(seen, payload, key=key) if pick else (seen + payload) & 0xFFFF_FFFF)
    assert bool(b.space.load(at + 8, 8)) == timed


def test_what_it_refuses() -> None:
  def after(sent: list[Method], engine: int = 0) -> tuple[Bench, object]:
    b = Bench()
    c = b.channel("copy", engine=engine)
    other, at = b.channel("copy"), b.take(4)
    b.send(c, COPY, *sent)
    b.send(other, 0, *release(at, 1))
    assert b.space.load(at, 4) == 1
    return b, c
  b0 = Bench()
  here = filled(b0, 64)
  cases: list[tuple[list[Method], int, str]] = [
    (linear(here, FAR, 64), MMU, f"write of 64 bytes at {FAR:#x}"),
    (linear(FAR, here, 64), MMU, f"read of 64 bytes at {FAR:#x}"),
    (linear(here, here, 64, SRC_TYPE=1), PBDMA, "HCE_PRIV: LAUNCH_DMA.SRC_TYPE = PHYSICAL"),
    (linear(here, here, 64, DST_TYPE=1), PBDMA, "HCE_PRIV: LAUNCH_DMA.DST_TYPE = PHYSICAL"),
    ([ce.LAUNCH_DMA(DATA_TRANSFER_TYPE=1, **PITCH)], status.ROBUST_CHANNEL_CE0_ERROR, "OFFSET_IN_UPPER was never sent"),
    (linear(here, here, 64, kind=3), status.ROBUST_CHANNEL_CE0_ERROR, "LAUNCH_DMA.DATA_TRANSFER_TYPE = 0x3")]
  for sent, code, text in cases:
    b, c = after(sent)
    dead(b, c, code, text)  # type: ignore[arg-type]
  b, c = after(linear(here, here, 64, kind=3), engine=3)
  dead(b, c, status.ROBUST_CHANNEL_CE3_ERROR, "CE3")  # type: ignore[arg-type]
  b = Bench()
  bad = b.channel("copy")
  b.submit(bad, methods.Send(methods.IMMD, COPY, 0x3F00, (1,)).encode())
  b.run()
  dead(b, bad, PBDMA, "HCE_ILLEGAL_MTHD: HOPPER_DMA_COPY_A has no method 0x3f00")
  bad = b.channel("copy")
  with pytest.raises(Unsupported, match="SRC_MEMORY_LAYOUT = BLOCKLINEAR"):
    b.send(bad, COPY, ce.LAUNCH_DMA(DATA_TRANSFER_TYPE=TRANSFER.PIPELINED))
  assert bad.state is State.DEAD


@pytest.mark.parametrize("seed", seeds(range(3)))
def test_only_who_waits_comes_after_a_copy(seed: int) -> None:
  """A release without WFI may come before the end of the copy; one with WFI never does."""
  early = 0
  for n in range(24):
    b = Bench(seed=seed * 100 + n)
    c, source, target, at = b.channel("copy"), filled(b, 64), b.take(64), b.take(16)
    b.submit(c, methods.send(COPY, *linear(source, target, 64)) + methods.send(0, *release(at, 1, idle=False))
             + methods.send(0, *release(at + 4, 1)))
    copied = []
    while b.machine.channels[0].runnable():
      c.run(1)
      done = b.space.read(target, 64) == b.space.read(source, 64)
      if b.space.load(at, 4) and not copied: copied.append(done)
      if b.space.load(at + 4, 4): assert done
    assert b.space.load(at + 4, 4) == 1
    early += not copied[0]
  assert 0 < early < 24


def test_copies_between_gpus() -> None:
  b = Bench("sm_90,sm_90")
  other = Bench(machine=b.machine, gpu=1)
  far = 0x20_0000_0000
  b.space.map(far, 1 << 16, other.gpu.vram, 1 << 16)
  c, source = b.channel("copy"), filled(b, 4096)
  b.send(c, COPY, *linear(source, far + 64, 4096))
  assert other.gpu.vram.u8[(1 << 16) + 64:(1 << 16) + 64 + 4096].tobytes() == b.space.read(source, 4096)
