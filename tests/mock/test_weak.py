"""Litmus tests of weak memory: what passes between the host, waves, packets, copy engines and cards, with and without
the operation that it needs. With it the value is the new one and nothing is found; without it the old one is seen, as
a chip may show it, and the report names the pair of accesses and what was missing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import ADD, build
from tests.emulator.checking import code_of
from tests.mock import test_waves
from tests.mock.client import CACHED_GTT, GTT, VRAM, Client, Memory, Queue
from tests.mock.test_aql import AqlClient
from tests.mock.test_queues import poll, wait
from tests.strength import examples
from tinyhw import Tensor, nn
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import hsa
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.core.errors import InvalidArgument
from tinyhw.devices.mocked import mock_options
from tinyhw.devices.registry import Device
from tinyhw.kernels.launch import launch
from tinyhw.mock.amd.machine import Machine
from tinyhw.wire import aql, pm4

UC = 3  # SDMA_PKT_FENCE.mtype
CODE = {  # s[0:1]: what is read, s[2:3]: what is written, s4: a number
  "copy": "v_mov_b32 v1, 0\nglobal_load_b32 v2, v1, s[0:1]\ns_waitcnt vmcnt(0)\n"
          "global_store_b32 v1, v2, s[2:3]\ns_endpgm",
  "coherent": "v_mov_b32 v1, 0\nglobal_load_b32 v2, v1, s[0:1] glc\ns_waitcnt vmcnt(0)\n"
              "global_store_b32 v1, v2, s[2:3]\ns_endpgm",
  "scalar": "s_load_b32 s5, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v1, 0\nv_mov_b32 v2, s5\n"
            "global_store_b32 v1, v2, s[2:3]\ns_endpgm",
  "put": "v_mov_b32 v1, 0\nv_mov_b32 v2, s4\nglobal_store_b32 v1, v2, s[2:3]\ns_endpgm",
  # reads s[0:1], waits until the dword behind is s4, reads it again
  "twice": "v_mov_b32 v1, 0\nglobal_load_b32 v2, v1, s[0:1]\nagain:\nglobal_load_b32 v3, v1, s[0:1] offset:128 glc\n"
           "s_waitcnt vmcnt(0)\nv_readfirstlane_b32 s5, v3\ns_cmp_lg_u32 s5, s4\ns_cbranch_scc1 again\n{}"
           "global_load_b32 v2, v1, s[0:1]\ns_waitcnt vmcnt(0)\nglobal_store_b32 v1, v2, s[2:3]\ns_endpgm",
}
CODE["twice, invalidated"] = CODE["twice"].format("buffer_gl0_inv\nbuffer_gl1_inv\n")
CODE["twice"] = CODE["twice"].format("")
ALL = {"GLI_INV": 1, "GLK_INV": 1, "GLV_INV": 1, "GL1_INV": 1, "GL2_INV": 1, "GL2_WB": 1}
FLUSH = p4.EVENT_WRITE(event_type=p4.VGT_EVENT_TYPE.CS_PARTIAL_FLUSH,
                       event_index=p4.EVENT_WRITE_event_index.cs_partial_flush)


def acquire(**bits: int) -> p4.ACQUIRE_MEM:
  return p4.ACQUIRE_MEM(coher_size=(1 << 40) - 1, coher_base=0, gcr_cntl=p4.ACQUIRE_MEM_GCR_CNTL(**bits).value())


def release(address: int, value: int, **bits: int) -> p4.RELEASE_MEM:
  return p4.RELEASE_MEM(
    event_type=p4.VGT_EVENT_TYPE.BOTTOM_OF_PIPE_TS, event_index=p4.RELEASE_MEM_event_index.end_of_pipe,
    data_sel=p4.RELEASE_MEM_data_sel.send_64_bit_data, address=address, data=value, cache_policy=3, int_ctxid=0,
    gcr_cntl=p4.RELEASE_MEM_GCR_CNTL(**bits).value(),
  )


def cached(address: int, value: int) -> p4.WRITE_DATA:
  """A store that GL2 may keep."""
  return p4.WRITE_DATA(dst_sel=p4.WRITE_DATA_dst_sel.tc_l2, dst_mem_addr=address, payload=(value,))


class Bench:
  """A client with kernels, video memory that the host sees, and a page of coherent words."""

  def __init__(self, seed: int = 0, cards: str = "gfx1100") -> None:
    self.client = Client(Machine(cards, seed=seed, memory="weak", vram=1 << 30))
    everyone = range(len(self.client.machine.gpus))
    self.vram = self.client.alloc(8192, VRAM, map_to=everyone)
    self.words = self.client.alloc(8192, map_to=everyone)
    self.code: dict[str, Memory] = {}

  def kernel(self, name: str, source: int = 0, target: int = 0, number: int = 0) -> list[p4.Pm4]:
    """A dispatch of a kernel of `CODE`."""
    if name not in self.code:
      self.code[name] = self.client.alloc(4096, VRAM, map_to=range(len(self.client.machine.gpus)))
      text = code_of(CODE[name], "gfx11")
      self.code[name].view[: len(text)] = text
    data = [w for at in (source, target) for w in (at & 0xFFFF_FFFF, at >> 32)]
    *registers, dispatch = test_waves.settings(self.code[name].address, user=5)
    return [*registers, pm4.set_sh_reg(gc.COMPUTE_USER_DATA_0, *data, number), dispatch]

  def run(self, queue: Queue, *packets: Any) -> None:
    queue.submit(*packets)
    self.client.run()

  @property
  def found(self) -> list[str]:
    """What is wrong, without what has no effect."""
    return [line for line in self.client.machine.report() if "stale memory" in line or "too early" in line]


@pytest.fixture
def bench() -> Iterator[Bench]:
  bench = Bench()
  yield bench
  bench.client.port.end()


def right(bench: Bench, has: bool, value: int, old: int, new: int, *texts: str) -> None:
  """The value is the new one and nothing is found; without the operation it is the old one, and a finding has the
  texts."""
  assert value == (new if has else old), bench.found
  if has:
    assert bench.found == []
  else:
    assert any(all(t in line for t in texts) for line in bench.found), bench.found


@pytest.mark.parametrize("kind", ["VRAM", "cached GTT", "GTT"])
@pytest.mark.parametrize("bits", [ALL, {}, {b: 1 for b in ("GLV_INV", "GL1_INV", "GLK_INV")},
                                  {"GL2_INV": 1, "GL2_WB": 1}])
def test_the_host_writes_what_a_kernel_has_read(bench: Bench, kind: str, bits: dict[str, int]) -> None:
  queue, out = bench.client.queue(), bench.words
  memory = bench.client.alloc(4096, {"VRAM": VRAM, "cached GTT": CACHED_GTT, "GTT": GTT}[kind])
  memory.u32[0] = 5
  bench.run(queue, *bench.kernel("copy", memory.address, out.address))
  assert out.u32[0] == 5
  memory.u32[0] = 6
  bench.run(queue, acquire(**bits), *bench.kernel("copy", memory.address, out.address))
  missing = [b for b in ("GLV_INV", "GL1_INV", "GL2_INV") if b not in bits and (b != "GL2_INV" or kind != "GTT")]
  right(bench, not missing, out.u32[0], 5, 6, "from before the host wrote 0x6", f"{memory.address:#x}", "PC 0x",
        "global_load_b32", f"missing: an ACQUIRE_MEM or GCR_REQ with {' and '.join(missing)}")


def test_loads_past_the_l0_see_what_gl2_holds(bench: Bench) -> None:
  queue, at = bench.client.queue(), bench.vram.address
  bench.run(queue, *bench.kernel("copy", at, at + 128))
  bench.run(queue, cached(at, 3), *bench.kernel("coherent", at, bench.words.address))
  assert bench.words.u32[0] == 3 and bench.found == []


@pytest.mark.parametrize("bit", ["GLK_INV", "GL1_INV", ""])
def test_arguments_are_read_through_the_scalar_cache(bench: Bench, bit: str) -> None:
  """Coherent memory: GL2 has none of it, the scalar cache and GL1 do."""
  queue, at = bench.client.queue(), bench.words.address
  bits = {"GLK_INV": 1, "GL1_INV": 1}
  bits.pop(bit, None)
  bench.words.u32[0] = 5
  bench.run(queue, *bench.kernel("scalar", at, at + 128))
  bench.words.u32[0] = 6
  bench.run(queue, acquire(**bits), *bench.kernel("scalar", at, at + 128))
  right(bench, not bit, bench.words.u32[32], 5, 6, "s_load_b32", "the host wrote 0x6", f"with {bit} between")


@pytest.mark.parametrize("has", [True, False])
def test_code_is_read_through_the_instruction_cache(bench: Bench, has: bool) -> None:
  queue, at = bench.client.queue(), bench.words.address
  bench.run(queue, *bench.kernel("put", 0, at, 1))
  text = code_of(CODE["put"].replace("s4", "7"), "gfx11")
  bench.code["put"].view[: len(text)] = text
  bench.run(queue, acquire(**ALL | ({} if has else {"GLI_INV": 0})), *bench.kernel("put", 0, at, 2))
  at = bench.code["put"].address + 4  # the instruction behind `v_mov_b32 v1, 0`, a dword that has another operand now
  old, new = (int.from_bytes(code_of(CODE["put"].replace("s4", s), "gfx11")[4:8], "little") for s in ("s4", "7"))
  right(bench, has, bench.words.u32[0], 2, 7, "the instruction fetch of", "GLI_INV",
        f"read 4 bytes at {at:#x} as {old:#x}, from before the host wrote {new:#x}")


@pytest.mark.parametrize("has", [True, False])
def test_the_host_reads_what_a_kernel_wrote(bench: Bench, has: bool) -> None:
  queue, out = bench.client.queue(), bench.client.alloc(4096, CACHED_GTT)
  queue.submit(*bench.kernel("put", 0, out.address, 9), release(bench.words.address, 1, **{"GL2_WB": int(has)}))
  assert bench.client.port.wait(lambda: bench.words.u64[0] == 1, 1.0)
  assert has != any("the host reads" in line for line in bench.client.machine.findings)  # the host looks now
  right(bench, has, out.u32[0], 0, 9, "the host reads", "global_store_b32", "missing: GL2_WB on GPU0")


def test_a_signal_in_memory_that_gl2_keeps_is_not_seen(bench: Bench) -> None:
  queue, out = bench.client.queue(), bench.client.alloc(4096, CACHED_GTT)
  queue.submit(cached(out.address, 1))
  assert not bench.client.port.wait(lambda: out.u32[0] == 1, 1.0)
  assert "the host reads" in bench.found[0] and "WRITE_DATA" in bench.found[0]
  queue.submit(acquire(GL2_WB=1))
  assert bench.client.port.wait(lambda: out.u32[0] == 1, 1.0)


def in_all_orders(has: bool, run: Callable[[int], tuple[Bench, int]], old: int, new: int, *texts: str) -> None:
  """With the operation it is right in every order of queues and dispatches, without it wrong in some."""
  wrong = 0
  for seed in range(8):
    bench, value = run(seed)
    wrong += value != new
    right(bench, value == new, value, old, new, *texts)
    bench.client.port.end()
  assert bool(wrong) is not has


@pytest.mark.parametrize("has", [True, False])
def test_a_kernel_reads_what_the_one_before_it_wrote(has: bool) -> None:
  def run(seed: int) -> tuple[Bench, int]:
    bench = Bench(seed)
    at, out = bench.vram.address, bench.words
    bench.run(bench.client.queue(), *bench.kernel("put", 0, at, 8), *([FLUSH] if has else []), acquire(**ALL),
              *bench.kernel("copy", at, out.address))
    return bench, out.u32[0]
  in_all_orders(has, run, 0, 8, "too early", "read", "before", "wrote it", "CS_PARTIAL_FLUSH", "PC 0x")


@pytest.mark.parametrize("has", [True, False])
def test_a_packet_writes_what_the_kernel_before_it_reads(has: bool) -> None:
  def run(seed: int) -> tuple[Bench, int]:
    bench = Bench(seed)
    at, out = bench.vram.address, bench.words
    bench.vram.u32[0] = 4
    bench.run(bench.client.queue(), *bench.kernel("copy", at, out.address), *([FLUSH] if has else []), cached(at, 5))
    return bench, out.u32[0]
  in_all_orders(has, run, 5, 4, "too early", "WRITE_DATA", "read only then", "CS_PARTIAL_FLUSH")


def test_a_release_waits_for_the_kernels_before_it() -> None:
  for seed in range(8):
    bench = Bench(seed)
    at, out = bench.vram.address, bench.words
    queue, copy = bench.client.queue(), bench.client.queue(copy=True)
    queue.submit(*bench.kernel("put", 0, at, 8), release(out.address, 1, GL2_WB=1), cached(at + 256, 7))
    copy.submit(poll(out.address, 1), s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=at, dst_addr=out.address + 256))
    bench.client.run()
    assert out.u32[64] == 8 and bench.found == []
    bench.client.port.end()


@pytest.mark.parametrize("has", [True, False])
def test_a_copy_reads_what_a_kernel_wrote(bench: Bench, has: bool) -> None:
  queue, copy, at, out = bench.client.queue(), bench.client.queue(copy=True), bench.vram.address, bench.words
  bench.run(queue, *bench.kernel("put", 0, at, 8), release(out.address, 1))
  gcr = s6.SDMA_PKT_GCR_REQ(base_va=0, limit_va=0, gcr_control=p4.ACQUIRE_MEM_GCR_CNTL(GL2_WB=1).value())
  bench.run(copy, *([gcr] if has else []),
            s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=at, dst_addr=out.address + 256))
  right(bench, has, out.u32[64], 0, 8, "SDMA_PKT_COPY_LINEAR", "global_store_b32", "missing: GL2_WB on GPU0")


@pytest.mark.parametrize("has", [True, False])
def test_a_copy_reads_what_a_copy_wrote_over_a_line_of_gl2(bench: Bench, has: bool) -> None:
  queue, copy, at, out = bench.client.queue(), bench.client.queue(copy=True), bench.vram.address, bench.words
  bench.run(queue, *bench.kernel("copy", at, at + 256), FLUSH)
  bench.words.u32[1] = 77
  gcr = s6.SDMA_PKT_GCR_REQ(base_va=0, limit_va=0, gcr_control=p4.ACQUIRE_MEM_GCR_CNTL(**ALL).value())
  bench.run(copy, *([gcr] if has else []), s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=out.address + 4, dst_addr=at),
            s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=at, dst_addr=out.address + 256))
  right(bench, has, out.u32[64], 0, 77, "SDMA_PKT_COPY_LINEAR", "GL2_INV")


@pytest.mark.parametrize("mtype", [UC, 0])
def test_a_fence_goes_by_its_own_mtype(bench: Bench, mtype: int) -> None:
  copy = bench.client.queue(copy=True)
  copy.submit(s6.SDMA_PKT_FENCE(mtype=mtype, addr=bench.words.address, data=6))
  seen = bench.client.port.wait(lambda: bench.words.u32[0] == 6, 1.0)
  assert seen is (mtype == UC)
  right(bench, seen, bench.words.u32[0], 0, 6, "the host reads", "SDMA_PKT_FENCE", "mtype")


def test_polling_memory_that_gl2_keeps_waits_for_ever(bench: Bench) -> None:
  queue, flag = bench.client.queue(), bench.client.alloc(4096, CACHED_GTT)
  bench.run(queue, wait(flag.address, 1), cached(bench.words.address, 2))
  assert queue.state == "blocked"
  flag.u32[0] = 1
  bench.client.run()
  assert queue.state == "blocked" and "WAIT_REG_MEM" in bench.found[0] and "the host wrote 0x1" in bench.found[0]
  other = bench.client.queue()
  bench.run(other, acquire(GL2_INV=1))
  assert queue.state == "ready" and bench.words.u32[0] == 2


@pytest.mark.parametrize("has", [True, False])
def test_a_kernel_of_another_card_reads_what_one_wrote(has: bool) -> None:
  bench = Bench(cards="gfx1100,gfx1100")
  first, second, at, out = bench.client.queue(0), bench.client.queue(1), bench.vram.address, bench.words
  bench.run(first, *bench.kernel("put", 0, at, 8), release(out.address, 1, **{"GL2_WB": int(has)}))
  bench.run(second, wait(out.address, 1), acquire(**ALL), *bench.kernel("copy", at, out.address + 256))
  right(bench, has, out.u32[64], 0, 8, "GPU1.PM4", "GPU0.PM4", "missing: GL2_WB on GPU0")
  bench.client.port.end()


@pytest.mark.parametrize("width", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("apart", [True, False])
def test_a_wave_that_waits_looks_at_whole_words(bench: Bench, width: int, apart: bool) -> None:
  """What it would find is what memory holds, in words of the width of its loads, also across a line."""
  process = bench.client.machine.kfd.processes[bench.client.port.pid()]
  device = process.devices[bench.client.gpu_ids[0]]
  bench.vram.view[:4096] = random.Random(width).randbytes(4096)
  addresses = np.arange(5, dtype=np.uint64) * np.uint64(256 if apart else width) + np.uint64(bench.vram.address + 112)
  expected, found = (space.gather(addresses, width) for space in (device.bind(), device.wave_space()))
  assert found.dtype == expected.dtype
  np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("has", [True, False])
def test_a_wave_reads_again_what_was_written_meanwhile(bench: Bench, has: bool) -> None:
  queue, other, at, out = bench.client.queue(), bench.client.queue(), bench.vram.address, bench.words
  bench.run(queue, *bench.kernel("twice, invalidated" if has else "twice", at, out.address, 6))
  bench.run(other, cached(at, 5), cached(at + 128, 6))
  right(bench, has, out.u32[0], 0, 5, "global_load_b32", "WRITE_DATA", "GLV_INV and GL1_INV")


@pytest.mark.parametrize("seed", range(3))
def test_a_range_names_what_is_invalidated(seed: int) -> None:
  bench = Bench(seed)
  queue, at, out = bench.client.queue(), bench.vram.address, bench.words
  bench.run(queue, *bench.kernel("copy", at, out.address), *bench.kernel("copy", at + 4096, out.address + 4), FLUSH)
  bench.vram.u32[0] = bench.vram.u32[1024] = 1
  bits = p4.ACQUIRE_MEM_GCR_CNTL(**ALL, GL1_RANGE=2, GL2_RANGE=2).value()
  bench.run(queue, p4.ACQUIRE_MEM(coher_base=at >> 8, coher_size=16, gcr_cntl=bits),
            *bench.kernel("copy", at, out.address), *bench.kernel("copy", at + 4096, out.address + 4))
  assert list(out.u32[:2]) == [1, 0] and len(bench.found) == 1 and f"{at + 4096:#x}" in bench.found[0]
  bench.client.port.end()


def test_memory_that_leaves_the_page_tables_leaves_the_caches(bench: Bench) -> None:
  queue, memory = bench.client.queue(), bench.client.alloc(4096, VRAM)
  bench.run(queue, *bench.kernel("put", 0, memory.address, 3))
  bench.client.unmap(memory.handle, [0])
  assert memory.u32[0] == 3 and bench.found == []
  bench.client.map(memory.handle, [0])
  memory.u32[0] = 4
  bench.run(queue, *bench.kernel("copy", memory.address, bench.words.address))
  assert bench.words.u32[0] == 4 and bench.found == []


# ---- AQL packets


@pytest.mark.parametrize("scope", [hsa.HSA_FENCE_SCOPE_NONE, hsa.HSA_FENCE_SCOPE_AGENT, hsa.HSA_FENCE_SCOPE_SYSTEM])
def test_fences_of_aql_packets(scope: int) -> None:
  """Arguments in coherent memory need an acquire of agent scope, results in memory that GL2 keeps a release of system
  scope."""
  client = Client(Machine(memory="weak"))
  q = AqlClient(client)
  q.data = client.alloc(4096, CACHED_GTT)

  def launch(value: int) -> None:
    packet = q.launch(1, value, q.signal(0))
    packet.header = aql.header(hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier=True, acquire=scope, release=scope)
    q.put(packet)
    assert client.port.wait(lambda: q.value(0) == 0, 1.0)

  launch(10)
  launch(20)
  client.machine.report()
  found = [line for line in client.machine.findings if "stale memory" in line]
  system = scope == hsa.HSA_FENCE_SCOPE_SYSTEM
  assert q.data.u32[0] == (20 if system else 0)
  assert any("s_load" in line and "GLK_INV" in line for line in found) is (scope == hsa.HSA_FENCE_SCOPE_NONE)
  assert any("the host reads" in line for line in found) is not system
  client.port.end()


@pytest.mark.parametrize("bar", [True, False])
def test_the_barrier_bit_of_aql_packets(bar: bool) -> None:
  wrong = 0
  for seed in range(8):
    client = Client(Machine(memory="weak", seed=seed))
    q = AqlClient(client)
    for n in range(4):
      packet = q.launch(1, 100 * (n + 1), q.signal(n), slot=n)
      scope = hsa.HSA_FENCE_SCOPE_SYSTEM
      packet.header = aql.header(hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier=bar, acquire=scope, release=scope)
      q.put(packet)
    assert client.port.wait(lambda q=q: all(q.value(n) == 0 for n in range(4)), 1.0)
    wrong += q.data.u32[0] != 400
    early = [line for line in client.machine.report() if "too early" in line]
    assert (early == []) if bar else (early or q.data.u32[0] == 400)
    client.port.end()
  assert bool(wrong) is not bar


# ---- how it is asked for


def test_weak_memory_is_refused_with_compiled_code() -> None:
  with pytest.raises(InvalidArgument, match="reference interpreter"):
    Machine(memory="weak", engine="jit")
  with pytest.raises(InvalidArgument, match="there are strong, weak"):
    Machine(memory="lazy")


def test_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.delenv("EMU", raising=False)
  for value in ("weak", "strong"):
    monkeypatch.setenv("MOCKGPU_MEMORY", value)
    assert mock_options()["memory"] == value
  monkeypatch.setenv("MOCKGPU_MEMORY", "weak")
  add = build(ADD)  # the emulator alone has no caches
  assert launch(add, "add", 1, 64, [np.zeros(64, np.float32), np.ones(64, np.float32), 2.0], "EMU")[0][0] == 3
  monkeypatch.setenv("MOCKGPU_MEMORY", "lazy")
  with pytest.raises(InvalidArgument, match="MOCKGPU_MEMORY: no memory is called 'lazy'"):
    mock_options()
  monkeypatch.setenv("MOCKGPU_MEMORY", "weak")
  monkeypatch.setenv("EMU", "jit")
  with pytest.raises(InvalidArgument, match="reference interpreter, not on EMU=jit"):
    mock_options()


def learned(memory: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], list[str]]:
  """The losses of a small network on a mock card of its own, and what is wrong."""
  monkeypatch.setenv("MOCKGPU_MEMORY", memory)
  Device.close()
  rng = np.random.default_rng(5)
  x, y, first, second = (Tensor(rng.standard_normal(shape).astype(np.float32), device="AMD", requires_grad=n > 1)
                         for n, shape in enumerate(((8, 4), (8, 2), (4, 6), (6, 2))))
  optimizer, losses = nn.optim.SGD([first, second], lr=0.01), []
  for _ in range(3):
    optimizer.zero_grad()
    loss = (((x @ first).relu() @ second - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(float(loss.item()))
  found = [line for line in Device.report() if "stale memory" in line or "too early" in line]
  Device.close()
  return losses, found


def test_a_network_learns(monkeypatch: pytest.MonkeyPatch) -> None:
  """The AMD driver and all layers above it: values are those of strong memory, and nothing is found."""
  monkeypatch.delenv("EMU", raising=False)
  monkeypatch.setenv("MOCKGPU", "1")
  losses, found = learned("weak", monkeypatch)
  assert (losses, []) == learned("strong", monkeypatch) and losses[2] < losses[0] and found == []


# ---- with the right operations, weak memory gives what strong memory gives

WORDS = 6
step = st.one_of(
  st.tuples(st.sampled_from(["kernel", "scalar", "copy", "packet"]), st.integers(0, WORDS - 1),
            st.integers(0, WORDS - 1)),
  st.tuples(st.sampled_from(["put", "write", "host"]), st.integers(0, WORDS - 1), st.integers(1, 1000)),
)


@settings(max_examples=examples(12))
@given(st.lists(step, min_size=1, max_size=10), st.integers(0, 1000))
def test_right_operations_give_the_values_of_strong_memory(steps: list[Any], seed: int) -> None:
  """Kernels, packets, copies and the host on words of video memory, some in one line; each step is fenced."""
  bench = Bench(seed)
  rng = random.Random(seed)
  queue, copy, signal = bench.client.queue(), bench.client.queue(copy=True), bench.words.address
  places = [bench.vram.address + n for n in rng.sample(range(0, 1024, 4), WORDS)]
  words, done = [0] * WORDS, 0
  for kind, to, what in steps:
    done += 1
    fences = [FLUSH, acquire(**ALL)]
    finish = release(signal, done, GL2_WB=1)
    if kind in ("kernel", "scalar"):
      queue.submit(*fences, *bench.kernel("copy" if kind == "kernel" else kind, places[what], places[to]), finish)
    elif kind == "packet":
      queue.submit(*fences, p4.COPY_DATA(src_sel=2, dst_sel=2, src_addr=places[what], dst_addr=places[to]), finish)
    elif kind == "put":
      queue.submit(*fences, *bench.kernel("put", 0, places[to], what), finish)
    elif kind == "write":
      queue.submit(*fences, cached(places[to], what), finish)
    elif kind == "copy":
      gcr = s6.SDMA_PKT_GCR_REQ(base_va=0, limit_va=0, gcr_control=acquire(**ALL).gcr_cntl)
      copy.submit(poll(signal, done - 1), gcr,
                  s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=places[what], dst_addr=places[to]),
                  s6.SDMA_PKT_FENCE(mtype=UC, addr=signal, data=done))
      queue.submit(wait(signal, done))
    else:
      assert bench.client.port.wait(lambda before=done - 1: bench.words.u64[0] == before, 1.0)
      bench.vram.u32[(places[to] - bench.vram.address) // 4] = what
      bench.words.u64[0] = done
    words[to] = words[what] if kind in ("kernel", "scalar", "packet", "copy") else what
  assert bench.client.port.wait(lambda: bench.words.u64[0] == done, 1.0), bench.client.machine.report()
  assert [bench.vram.u32[(p - bench.vram.address) // 4] for p in places] == words
  assert bench.found == []
  bench.client.port.end()
