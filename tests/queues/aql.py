"""A capture of AQL queues that are right: kernels behind one another, a queue that waits for another's signal, a copy
engine that does, another card, and the host. This project's drivers have none, so a small client makes it."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.mock.client import Client
from tests.mock.test_aql import SIGNAL, AqlClient, barrier
from tests.mock.test_waves import binary
from tinyhw.autogen import hsa
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.mock.amd.machine import Machine
from tinyhw.queues.record import Recorder
from tinyhw.wire import aql, codeobject

BYTES = 4 * 32 * 2  # that a launch of two groups writes
SYSTEM = hsa.HSA_FENCE_SCOPE_SYSTEM


FORGETS = sdma.SDMA_PKT_GCR_REQ(
  base_va=0, limit_va=0, vmid=0, gcr_control=sdma.SDMA_GCR_GL2_INV | sdma.SDMA_GCR_GL2_WB | sdma.SDMA_GCR_GLK_INV
  | sdma.SDMA_GCR_GLV_INV | sdma.SDMA_GCR_GL1_INV)


def poll(address: int, value: int) -> sdma.SDMA_PKT_POLL_REGMEM:
  """A wait of the copy engine for a value."""
  return sdma.SDMA_PKT_POLL_REGMEM(mem_poll=1, func=3, addr=address, value=value, mask=0xFFFFFFFF, interval=1,
                                   retry_count=0xFFF)


@dataclass
class Loaded:
  """Code in GPU memory, as a capture wants it; a kernel's entry is its descriptor here, which AQL packets name."""
  address: int
  size: int
  file: bytes
  kernels: tuple[tuple[str, int, int], ...]
  name: str = "AQL"
  kind: str = "amdgcn"


def capture(path: Path) -> Path:
  """Make it."""
  loaded: list[Loaded] = []
  recorder = Recorder(path, {"mockgpu": "gfx1100,gfx1100"}, codes=lambda vendor: [loaded])
  machine = Machine("gfx1100,gfx1100", watchdog=20_000)
  client = Client(machine, wrap=lambda port: recorder.port(port, "amd"))
  first, second = AqlClient(client), AqlClient(client)
  for q in (first, second):
    kernels = codeobject.load(binary()).kernels.values()
    loaded.append(Loaded(q.image.address, q.image.size, binary(), tuple(
      (k.name, q.image.address + k.descriptor_offset, k.kernarg_size) for k in kernels)))
  copier, out, other = client.queue(copy=True), client.alloc(4096), client.queue(gpu=1, copy=True)
  shared = client.alloc(4096, map_to=[0, 1])

  def done(q: AqlClient, index: int) -> None:
    assert client.port.wait(lambda: q.value(index) == 0, 1.0)
  first.put(first.launch(2, 100, first.signal(0)))
  done(first, 0)
  first.put(first.launch(2, 200, slot=8))                    # two that write the same, behind one another
  first.put(first.launch(2, 300, first.signal(1), slot=16))
  waits = barrier(first.signals.address + SIGNAL, done=second.signal(0))
  waits.header = aql.header(hsa.HSA_PACKET_TYPE_BARRIER_AND, barrier=True, acquire=SYSTEM, release=SYSTEM)
  second.put(waits)
  second.data = first.data
  second.put(second.launch(2, 400, second.signal(1)))        # the other queue writes it behind the signal
  copier.submit(
    poll(second.signals.address + SIGNAL + 8, 0), FORGETS,
    sdma.SDMA_PKT_COPY_LINEAR(count=BYTES - 1, src_addr=first.data.address, dst_addr=out.address),
    sdma.SDMA_PKT_FENCE(mtype=3, addr=out.address + 2048, data=1))
  assert client.port.wait(lambda: out.u32[512] == 1, 1.0)
  assert out.u32[:64].tolist() == list(range(400, 464))
  shared.u32[256] = 7  # another card copies it, and this one waits for that card's signal
  other.submit(sdma.SDMA_PKT_COPY_LINEAR(count=3, src_addr=shared.address + 1024, dst_addr=shared.address),
               sdma.SDMA_PKT_FENCE(mtype=3, addr=shared.address + 2048, data=1))
  copier.submit(poll(shared.address + 2048, 1), FORGETS,
                sdma.SDMA_PKT_COPY_LINEAR(count=3, src_addr=shared.address, dst_addr=out.address + 1024),
                sdma.SDMA_PKT_FENCE(mtype=3, addr=out.address + 2048, data=2))
  assert client.port.wait(lambda: out.u32[512] == 2, 1.0) and out.u32[256] == 7
  client.queue(gpu=1).submit(  # another card stores a dword, and this one copies it behind that card's signal
    pm4.WRITE_DATA(dst_sel=5, addr_incr=0, wr_confirm=1, cache_policy=0, dst_mem_addr=shared.address + 512,
                   payload=(9,)),
    pm4.RELEASE_MEM(event_type=20, event_index=5, data_sel=1, address=shared.address + 2056, data=1, int_ctxid=0))
  copier.submit(poll(shared.address + 2056, 1), FORGETS,
                sdma.SDMA_PKT_COPY_LINEAR(count=3, src_addr=shared.address + 512, dst_addr=out.address + 1536),
                sdma.SDMA_PKT_FENCE(mtype=3, addr=out.address + 2048, data=3))
  assert client.port.wait(lambda: out.u32[512] == 3, 1.0) and out.u32[384] == 9
  recorder.close()
  client.port.end()
  return path

