"""The host engine of a channel: entries, headers, semaphores of every operation, and what ends a channel."""
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.mock.nv.bench import BASE, COMPUTE, COPY, ENTRIES, FAR, SIZE, Bench, release, semaphore
from tests.strength import examples
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_cbc0 as compute
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.kept import Kept
from tinyhw.mock.nv.chip import channel as memo
from tinyhw.mock.nv.chip import semaphores
from tinyhw.mock.nv.chip.channel import Channel, Group, State
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import gpfifo, methods
from tinyhw.wire.gpfifo import Userd

OPERATION, REDUCTION = host.SEM_EXECUTE_OPERATION, host.SEM_EXECUTE_REDUCTION
PBDMA, MMU = status.ROBUST_CHANNEL_PBDMA_ERROR, status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT


def dead(bench: Bench, channel: Channel, code: int, text: str) -> None:
  """The channel is dead for this reason; its notifier and the kernel's log say so."""
  assert channel.state is State.DEAD and channel.rc == code, channel.describe()
  assert text in str(channel.error), str(channel.error)
  told = bench.told(channel)
  assert (told.info32, told.status) == (code, 0xFFFF)
  assert 0 <= bench.gpu.timer() - (told.time_high << 32 | told.time_low) < 10**9
  assert f"Xid (PCI:0000:01:00): {code}, Ch {channel.number:08x}" in bench.machine.kernel_log[-1]
  assert str(code) in bench.machine.findings[-1]


def test_a_release_is_written() -> None:
  b = Bench()
  c = b.channel()
  at = b.take(64)
  b.space.write(at, b"\xff" * 64)
  b.send(c, 0, *release(at, 0x1_2345_6789))
  assert b.space.read(at, 8) == b"\x89\x67\x45\x23\xff\xff\xff\xff"
  b.send(c, 0, *release(at, 0x1_2345_6789, wide=True))
  assert b.space.load(at, 8) == 0x1_2345_6789
  before = b.gpu.timer()
  b.send(c, 0, *release(at + 16, 7, timed=True))
  assert b.space.load(at + 16, 8) == 7 and before < b.space.load(at + 24, 8) < b.gpu.timer()
  assert b.space.load(b.userd[c] + Userd.GPGet.offset, 4) == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("operation", list(OPERATION)[:6], ids=lambda o: o.name)
@given(seen=st.integers(0, 2**64 - 1), payload=st.integers(0, 2**64 - 1), wide=st.booleans(), near=st.booleans())
@example(seen=5, payload=2**32 + 5, wide=False, near=False)
@settings(max_examples=examples(10), deadline=None)
def test_an_acquire_waits_for_its_condition(operation: OPERATION, seen: int, payload: int, wide: bool,
                                            near: bool) -> None:
  if operation in (OPERATION.RELEASE, OPERATION.REDUCTION): return
  if near: payload = seen + payload % 5 - 2 & 2**64 - 1
  b = Bench()
  c, at = b.channel(), b.take(16)
  b.space.store(at, 8, seen)
  b.send(c, 0, *semaphore(at, payload), host.SEM_EXECUTE(OPERATION=operation, PAYLOAD_SIZE=int(wide)),
         *release(at + 8, 1))
  bits = 64 if wide else 32
  v, p = seen % 2**bits, payload % 2**bits
  holds = {OPERATION.ACQUIRE: v == p, OPERATION.ACQ_STRICT_GEQ: v >= p,
           OPERATION.ACQ_CIRC_GEQ: (v - p) % 2**bits < 2**(bits - 1), OPERATION.ACQ_AND: v & p != 0,
           OPERATION.ACQ_NOR: (v | p) != 2**bits - 1}[operation]
  assert (b.space.load(at + 8, 4) == 1) == holds
  assert c.state is (State.READY if holds else State.BLOCKED)
  assert bool(b.machine.report()) != holds


@pytest.mark.parametrize("operation", list(REDUCTION), ids=lambda o: o.name)
@given(v=st.integers(0, 2**64 - 1), p=st.integers(0, 2**64 - 1), wide=st.booleans(), unsigned=st.booleans())
@settings(max_examples=examples(10), deadline=None)
def test_reductions(operation: REDUCTION, v: int, p: int, wide: bool, unsigned: bool) -> None:
  """The table of dev_pbdma.ref: what each does, and which widths and signs each has."""
  b = Bench()
  c, at = b.channel(), b.take(16)
  b.space.store(at, 8, v)
  b.send(c, 0, *semaphore(at, p), host.SEM_EXECUTE(OPERATION=OPERATION.REDUCTION, PAYLOAD_SIZE=int(wide),
                                                   REDUCTION=operation, REDUCTION_FORMAT=int(unsigned)))
  bits = 64 if wide else 32
  refused = operation in (REDUCTION.INC, REDUCTION.DEC) and (wide or not unsigned) or (
    operation is REDUCTION.IADD and wide and not unsigned)
  if refused: return dead(b, c, PBDMA, "SEMAPHORE")
  v, p = v % 2**bits, p % 2**bits
  half = 0 if unsigned else 2**(bits - 1)

  def ordered(x: int) -> int: return (x + half) % 2**bits
  expected = {REDUCTION.IMIN: min(v, p, key=ordered), REDUCTION.IMAX: max(v, p, key=ordered), REDUCTION.IXOR: v ^ p,
              REDUCTION.IAND: v & p, REDUCTION.IOR: v | p, REDUCTION.IADD: (v + p) % 2**bits,
              REDUCTION.INC: 0 if v >= p else v + 1, REDUCTION.DEC: p if v == 0 or v > p else v - 1}[operation]
  assert b.space.load(at, bits // 8) == expected


@pytest.mark.parametrize("seen, payload", [(2**32 - 1, 0), (1, 2**32 - 2), (0, 0), (2**64 - 1, 5), (2**32, 2**32 - 1)])
@pytest.mark.parametrize("wide", [False, True])
def test_the_acquire_that_waits_for_a_bit_that_neither_has(seen: int, payload: int, wide: bool) -> None:
  bits = 2**(64 if wide else 32)
  assert semaphores.acquired("ACQ_NOR", seen % bits, payload, wide) == ((seen | payload) % bits != bits - 1)


@pytest.mark.parametrize("operation", list(host.SEMAPHORED_REDUCTION), ids=lambda o: o.name)
@pytest.mark.parametrize("v, p", [(5, 3), (3, 5), (2**32 - 1, 1), (0, 7)])
def test_reductions_of_the_older_methods(operation: host.SEMAPHORED_REDUCTION, v: int, p: int) -> None:
  b = Bench()
  c, at = b.channel(), b.take(16)
  b.space.store(at, 4, v)
  b.send(c, 0, host.SEMAPHOREA(OFFSET_UPPER=at >> 32), host.SEMAPHOREB(OFFSET_LOWER=(at & 0xFFFF_FFFF) >> 2),
         host.SEMAPHOREC(PAYLOAD=p), host.SEMAPHORED(OPERATION=host.SEMAPHORED_OPERATION.REDUCTION,
                                                     REDUCTION=operation, FORMAT=1))
  wanted = {"MIN": min(v, p), "MAX": max(v, p), "XOR": v ^ p, "AND": v & p, "OR": v | p, "ADD": (v + p) % 2**32,
            "INC": 0 if v >= p else v + 1, "DEC": p if v == 0 or v > p else v - 1}[operation.name]
  assert b.space.load(at, 4) == wanted and c.state is State.READY


ADD = host.SEM_EXECUTE(OPERATION=OPERATION.REDUCTION, REDUCTION=REDUCTION.IADD, REDUCTION_FORMAT=1)
ADDING, HIGH, LOW = host.SEM_EXECUTE.OFFSET, host.SEM_PAYLOAD_HI.OFFSET, host.SEM_PAYLOAD_LO.OFFSET


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(("sent", "times"), [
  (methods.Send(methods.INCR, 0, LOW, (7, 0, ADD.value())), 1),
  (methods.Send(methods.NONINCR, 0, ADDING, (ADD.value(),) * 4), 4),
  (methods.Send(methods.ONEINCR, 0, HIGH, (0, *(ADD.value(),) * 3)), 3),
  (methods.Send(methods.ONEINCR, 0, LOW, (7, 5, 6, 0)), 0),
], ids=lambda x: str(x)[:24])
def test_where_the_words_of_a_sequence_go(sent: methods.Send, times: int, split: bool) -> None:
  """All behind each other, to one method, or the first to one and the rest to the next; also word by word."""
  b = Bench()
  c, at = b.channel(), b.take(16)
  b.send(c, 0, *semaphore(at, 7))
  words = sent.encode()
  for piece in [[w] for w in words] if split else [words]: b.submit(c, piece)
  b.run()
  assert b.space.load(at, 4) == 7 * times
  b.send(c, 0, ADD)
  assert b.space.load(at, 4) == 7 * times + 7


def test_a_reduction_with_a_time() -> None:
  """The time is behind the payload, also in the last bytes that there are."""
  b = Bench()
  c, timed = b.channel(), host.SEM_EXECUTE(OPERATION=OPERATION.REDUCTION, REDUCTION=REDUCTION.IADD,
                                           REDUCTION_FORMAT=1, RELEASE_TIMESTAMP=1)
  for at in (b.take(16), BASE + SIZE - 16):
    before = b.gpu.timer()
    b.space.store(at, 8, 30)
    b.send(c, 0, *semaphore(at, 12), timed)
    assert b.space.load(at, 8) == 42 and before < b.space.load(at + 8, 8) < b.gpu.timer()


def test_semaphores_of_older_methods() -> None:
  b = Bench()
  c, at = b.channel(), b.take(32)
  place = host.SEMAPHOREA(OFFSET_UPPER=at >> 32), host.SEMAPHOREB(OFFSET_LOWER=(at & 0xFFFF_FFFF) >> 2)
  b.send(c, 0, *place, host.SEMAPHOREC(PAYLOAD=5), host.SEMAPHORED(OPERATION=host.SEMAPHORED_OPERATION.RELEASE,
                                                                  RELEASE_SIZE=0))
  assert b.space.load(at, 4) == 5 and b.space.load(at + 8, 8)
  b.send(c, 0, host.SEMAPHOREC(PAYLOAD=3), host.SEMAPHORED(OPERATION=host.SEMAPHORED_OPERATION.REDUCTION,
                                                           REDUCTION=host.SEMAPHORED_REDUCTION.ADD, FORMAT=1))
  assert b.space.load(at, 4) == 8
  b.send(c, 0, host.SEMAPHOREC(PAYLOAD=9), host.SEMAPHORED(OPERATION=host.SEMAPHORED_OPERATION.ACQ_GEQ))
  assert c.state is State.BLOCKED
  b.space.store(at, 4, 9)
  b.run()
  assert c.state is State.READY
  b.send(c, 0, host.SEMAPHORED(OPERATION=3))
  dead(b, c, PBDMA, "SEMAPHORED.OPERATION = 3")


@pytest.mark.parametrize("header", [methods.INCR, methods.ONEINCR, methods.NONINCR], ids=lambda h: h.__name__)
def test_a_sequence_ends_with_the_last_method(header: type[Any]) -> None:
  """It may reach that, and not go on from there; one that stays at its method has any length."""
  for steps in range(1, 5):
    start = methods.METHODS_END - 4 * (steps if header is not methods.ONEINCR else min(steps, 2))
    for more in (0, 1):
      word = methods.Send(header, 0, start, (0,) * (steps + more)).encode()[0]
      if header is methods.INCR and more or header is methods.ONEINCR and (steps, more) == (1, 1):
        with pytest.raises(Exception, match="passes the last method"): memo._header(word)
      else: assert memo._header(word) is not None


def test_channels_wait_for_each_other() -> None:
  for seed in range(4):
    b = Bench(seed=seed)
    one, two, at = b.channel(), b.channel("copy"), b.take(16)
    b.submit(one, methods.send(0, *semaphore(at, 1), host.SEM_EXECUTE(OPERATION=OPERATION.ACQUIRE,
                                                                      ACQUIRE_SWITCH_TSG=1), *release(at + 4, 1)))
    b.run()
    assert b.space.load(at + 4, 4) == 0 and "waits for" in one.describe()
    b.send(two, 0, *release(at, 1))
    assert b.space.load(at + 4, 4) == 1


def test_the_ring_goes_round_and_sequences_go_on_in_the_next_piece() -> None:
  b = Bench()
  c, at = b.channel(), b.take(16)
  for i in range(ENTRIES * 2 + 3):
    words = methods.send(0, *release(at, i))
    b.submit(c, words[:3])
    b.submit(c, words[3:], wait=True)
    b.run()
    assert b.space.load(at, 4) == i
  words = methods.Send(methods.NONINCR, 0, host.NOP.OFFSET, tuple(range(5))).encode()
  for word in words: b.submit(c, [word])
  b.submit(c, [0, *methods.send(0, *release(at, 77))])
  b.entry(c, gpfifo.Control(host.GP_ENTRY1_OPCODE.NOP).encode())
  b.run()
  assert b.space.load(at, 4) == 77


def test_sub_device_masks_and_the_end_of_a_piece() -> None:
  b = Bench()
  c, at = b.channel(), b.take(16)

  def said(n: int) -> list[int]: return methods.send(0, *release(at, n))

  def mask(n: int) -> int: return host.DMA_SET_SUBDEVICE_MASK(VALUE=n, OPCODE=1).value()
  b.submit(c, [*said(1), mask(2), *said(2), *methods.send(0, host.NOP(HANDLE=1 << 31)),
               host.DMA_STORE_SUBDEVICE_MASK(VALUE=1, OPCODE=2).value()])
  b.run()
  assert b.space.load(at, 4) == 1
  b.submit(c, said(3), conditional=True)
  b.run()
  assert b.space.load(at, 4) == 1
  b.submit(c, [host.DMA_USE_SUBDEVICE_MASK(OPCODE=3).value(), *said(4), host.DMA_ENDSEG(OPCODE=7).value(), *said(5)])
  b.run()
  assert b.space.load(at, 4) == 4
  b.submit(c, said(6), conditional=True)  # the condition is that the mask has this GPU
  b.run()
  assert b.space.load(at, 4) == 6
  b.submit(c, [mask(2)])
  b.entry(c, gpfifo.Segment(FAR, 4, conditional=True).encode())  # what is not fetched need not be mapped
  b.run()
  assert c.state is State.READY


@pytest.mark.parametrize(("words", "text"), [
  ([6 << 29], "PBENTRY: 0xc0000000"), ([2 << 29 | 1 << 18], "PBENTRY"), ([1 << 18 | 0x100], "PBENTRY"),
  ([1 << 29 | 1 << 12], "PBENTRY"), (methods.Send(methods.INCR, 1, 0x3FFC, (1, 2)).encode(), "passes the last method"),
  (methods.Send(methods.IMMD, 0, host.ILLEGAL.OFFSET, (3,)).encode(), "METHOD: ILLEGAL(0x3)"),
  (methods.Send(methods.IMMD, 0, 0xFC, (3,)).encode(), "METHOD: there is no host method 0xfc"),
  (methods.Send(methods.IMMD, 0, host.WFI.OFFSET, (6,)).encode(), "METHOD: WFI: undeclared bits"),
  (methods.Send(methods.IMMD, 0, host.CLEAR_FAULTED.OFFSET, (0,)).encode(), "METHOD: CLEAR_FAULTED"),
  (methods.send(0, host.MEM_OP_D(OPERATION=host.MEM_OP_D_OPERATION.MMU_TLB_INVALIDATE)), "privileged"),
  (methods.send(0, host.MEM_OP_D(OPERATION=1)), "MEM_OP_D.OPERATION = 0x1"),
  (methods.send(6, host.SET_OBJECT(NVCLASS=5)), "DEVICE: subchannel 6"),
  (methods.Send(methods.IMMD, 5, 0x200, (0,)).encode(), "DEVICE: subchannel 5"),
  (methods.send(0, *release(BASE + 2, 1)[1:3], host.SEM_ADDR_LO(OFFSET_=1), *release(BASE, 1, wide=True)[3:]),
   "SEMAPHORE: a semaphore of 8 bytes"),
  (methods.send(0, *release(BASE + 8, 1, timed=True)), "SEMAPHORE: a semaphore of 16 bytes"),
  (methods.send(0, host.SEM_EXECUTE(OPERATION=7)), "SEMAPHORE: SEM_EXECUTE.OPERATION = 7"),
  (methods.send(0, host.SEM_EXECUTE(OPERATION=6, REDUCTION=9)), "SEMAPHORE: SEM_EXECUTE.REDUCTION = 9"),
])
def test_what_the_host_engine_refuses(words: list[int], text: str) -> None:
  b = Bench()
  other, c, at = b.channel(), b.channel(), b.take(16)
  b.submit(c, words)
  b.submit(c, methods.send(0, *release(at, 1)))
  b.run()
  dead(b, c, PBDMA, text)
  assert b.space.load(at, 4) == 0
  b.send(other, 0, *release(at, 2))
  assert b.space.load(at, 4) == 2  # others live


def test_bad_rings_and_unmapped_addresses() -> None:
  def made() -> tuple[Bench, Channel]:
    b = Bench()
    return b, b.channel()
  b, c = made()
  b.space.store(b.userd[c] + Userd.GPPut.offset, 4, ENTRIES)  # type: ignore[attr-defined]
  b.gpu.doorbell(c.number)
  dead(b, c, PBDMA, "GPPTR: GP_PUT 32 in a ring of 32 entries")
  for entry, text in ((gpfifo.Control(1).encode(), "OPCODE=ILLEGAL"), (gpfifo.Control(77).encode(), "OPCODE=0x4d"),
                      (1 << 40 | 1 << 42, "GPENTRY: entry 0: "),
                      (gpfifo.Segment(gpfifo.END - 8, 2).encode(), "passes the end")):
    b, c = made()
    b.entry(c, entry)
    b.run()
    dead(b, c, PBDMA, text)
  b, c = made()
  b.entry(c, gpfifo.Segment(gpfifo.END - 4004, 1000).encode())  # not the last word
  b.run()
  dead(b, c, MMU, f"GPU page fault: read of 4000 bytes at {gpfifo.END - 4004:#x}")
  b, c = made()
  b.entry(c, gpfifo.Segment(FAR, 4).encode())
  b.run()
  dead(b, c, MMU, f"GPU page fault: read of 16 bytes at {FAR:#x}")
  for operation in (OPERATION.RELEASE, OPERATION.ACQUIRE, OPERATION.REDUCTION):
    b, c = made()
    b.send(c, 0, *semaphore(FAR, 1), host.SEM_EXECUTE(OPERATION=operation, REDUCTION_FORMAT=1))
    dead(b, c, MMU, f"at {FAR:#x}")


def test_a_group_dies_together_and_others_live() -> None:
  b = Bench()
  group = Group("compute")
  c, mate, other, at = b.channel(group=group), b.channel(group=group), b.channel(), b.take(16)
  b.send(c, 0, host.ILLEGAL(HANDLE=0))
  dead(b, c, PBDMA, "ILLEGAL")
  assert mate.state is State.DEAD and b.told(mate).info32 == PBDMA and b.told(other).status == 0
  assert len(b.machine.kernel_log) == 1
  b.send(mate, 0, *release(at, 1))
  b.send(other, 0, *release(at + 4, 1))
  assert (b.space.load(at, 4), b.space.load(at + 4, 4)) == (0, 1)


def test_objects_are_checked() -> None:
  b = Bench()
  good = b.channel()
  b.send(good, COMPUTE, compute.SET_OBJECT(CLASS_ID=0xCBC0))
  b.send(good, COPY, compute.SET_OBJECT(CLASS_ID=0xC8B5))
  assert good.state is State.READY
  for kind, subchannel, class_id, code, text in (
      ("compute", 1, 0xC6C0, status.ROBUST_CHANNEL_GR_CLASS_ERROR, "class 0xc6c0 on subchannel 1"),
      ("compute", 0, 0xCBC0, status.ROBUST_CHANNEL_GR_CLASS_ERROR, "subchannel 0"),
      ("copy", 4, 0xC6B5, PBDMA, "HCE_ILLEGAL_CLASS")):
    c = b.channel(kind)
    b.send(c, subchannel, host.SET_OBJECT(NVCLASS=class_id))
    dead(b, c, code, text)


def test_doorbells() -> None:
  b = Bench()
  b.gpu.doorbell(999)
  assert "a doorbell with token 0x3e7, which belongs to no channel" in b.machine.findings[-1]
  group = Group("compute")
  c = Channel(b.gpu, group, 7, b.space, BASE, ENTRIES, (b.gpu.vram, 512), None, [0xCBC0], 0)
  c.ring_doorbell()
  assert "before the channel was scheduled" in b.machine.findings[-1] and not c.runnable()
  b.machine.close()


def test_the_record_says_what_was_sent() -> None:
  b = Bench()
  c = b.channel()
  before = b.machine.snapshot()
  b.send(c, COMPUTE, compute.SET_OBJECT(CLASS_ID=0xCBC0), compute.NO_OPERATION(V=1))
  names = [e.name for e in b.machine.trace if e.kind == "method"]
  assert names == ["AMPERE_CHANNEL_GPFIFO_A.SET_OBJECT(NVCLASS=0xcbc0, ENGINE=0)", "HOPPER_COMPUTE_A.NO_OPERATION(V=1)"]
  assert f"{c.name} get: 0x0 -> 0x1" in NvMachine.diff(before, b.machine.snapshot())


def test_headers_are_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(memo, "_HEADERS", Kept(8))
  b = Bench()
  c, at = b.channel("copy"), b.take(4)
  for n in range(1, 30):
    told = methods.Send(methods.IMMD, 0, host.NON_STALL_INTERRUPT.OFFSET, (n,)).encode()  # a header of its own
    b.submit(c, told + methods.send(0, *release(at, n)))
    b.run()
    assert b.space.load(at, 4) == n and len(memo._HEADERS) <= 8
  assert c.interrupts == 29
