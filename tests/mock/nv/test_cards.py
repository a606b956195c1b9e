"""What cards are, as NVIDIA publishes it, and small things that engines and files tell."""
from __future__ import annotations

import pytest

from tests.mock.nv.bench import COPY, FAR, Bench, launch_qmd
from tests.mock.nv.client import Client
from tests.mock.nv.test_compute import CLUSTER, Compute
from tests.mock.nv.test_copy import PITCH, TRANSFER, addresses, ce, filled
from tinyhw.autogen import nv_c56f as host
from tinyhw.mock.memory import Refused
from tinyhw.mock.nv.card import CARDS
from tinyhw.mock.nv.channel import State

# Of NVIDIA's architecture white papers and data sheets: SMs, GPCs and the TPCs of a whole one, GiB of memory,
# the boost clock in MHz, GB/s, bits of the bus, KiB of level 2.
PUBLISHED = {
  "sm_80": (108, 7, 8, 80, 1410, 2039, 5120, 40960), "sm_86": (82, 7, 6, 24, 1695, 936, 384, 6144),
  "sm_89": (128, 11, 6, 24, 2520, 1008, 384, 73728), "sm_90": (132, 8, 9, 141, 1980, 4917, 6144, 61440),
  "sm_100": (148, 8, 10, 180, 1965, 7672, 7680, 129536), "sm_120": (170, 12, 8, 32, 2407, 1792, 512, 98304)}


@pytest.mark.parametrize("name", CARDS)
def test_cards_have_what_is_published(name: str) -> None:
  c = CARDS[name]
  assert (c.sms, c.gpcs, c.tpcs_a_gpc, c.vram_size >> 30, c.clock_mhz, c.bandwidth, c.bus_bits,
          c.l2_size >> 10) == PUBLISHED[name]
  assert c.sms <= 2 * c.gpcs * c.tpcs_a_gpc and c.vram_size % (1 << 30) == 0 == c.l2_size % 1024
  assert abs(c.memory_khz * 2000 * c.bus_bits / 8 / 1e9 - c.bandwidth) < 1


def test_a_dead_channel_says_when() -> None:
  """In two words of its notifier; and a channel counts what it was sent."""
  b = Bench()
  c = b.channel()
  b.machine.clock.advance(5 << 32)
  before = b.gpu.timer()
  b.send(c, 0, host.WFI(), host.SET_REFERENCE(COUNT=7))
  assert c.snapshot()["packets"] == 2
  b.send(c, 0, host.SEMAPHORED(OPERATION=3))
  told = b.told(c)
  words = [getattr(told, name) for name, *_ in type(told)._fields_[:2]]
  assert c.state is State.DEAD and before < words[0] | words[1] << 32 <= b.gpu.timer()


def test_components_that_stay_are_not_read_where_nothing_may_be_written() -> None:
  b = Bench()
  c = b.channel("copy")
  b.send(c, COPY, *addresses(filled(b, 64), FAR), ce.LINE_LENGTH_IN(VALUE=4),
         ce.SET_REMAP_COMPONENTS(COMPONENT_SIZE=0, NUM_SRC_COMPONENTS=0, NUM_DST_COMPONENTS=0, DST_X=6),
         ce.LAUNCH_DMA(DATA_TRANSFER_TYPE=TRANSFER.NON_PIPELINED, REMAP_ENABLE=1, **PITCH))
  assert c.state is State.DEAD and "write" in str(c.error)


@pytest.mark.parametrize("blocks", [1, 16])
def test_the_largest_cluster(blocks: int) -> None:
  b = Compute()
  c, data = b.channel(), b.take(256)
  b.pcas(c, launch_qmd(b, b.load(CLUSTER, "k"), version=(4, 0), grid=(16, 1, 1), block=(1, 1, 1), bank=b.bank(data),
                       QMD_TYPE=3, GPC_CGA_WIDTH=blocks, GPC_CGA_HEIGHT=1, GPC_CGA_DEPTH=1))
  b.run()
  assert [b.space.load(data + 4 * i, 4) for i in range(16)] == [16 * blocks + i % blocks for i in range(16)]


def test_files_that_are_waited_for() -> None:
  c = Client()
  for name, tells in (("/dev/nvidiactl", True), ("/dev/nvidia0", True), ("/dev/nvidia-uvm", False)):
    fd = c.port.open(name)
    if tells: assert not c.port.poll(fd, 0.0)
    else:
      with pytest.raises(Refused): c.port.poll(fd, 0.0)
