"""gfx942 as a card: tensors by its own packets and registers, its matrix units, scratch, faults, its XCCs, what is
refused."""
from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import command
from tests.drive.conftest import compile_ir
from tests.mock.client import Client
from tests.mock.test_aql import AqlClient
from tinyhw import Device, Tensor, dtypes
from tinyhw.arch import arch
from tinyhw.autogen import hsa, kfd, kfd_sysfs, mqd
from tinyhw.autogen import pm4_gfx9 as p9
from tinyhw.core.errors import InvalidArgument, PageFault, Unsupported, WaitTimeout
from tinyhw.devices import disassembly
from tinyhw.drive.amd import report, topology
from tinyhw.drive.amd.commands import ComputeCommands, CopyCommands
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.mock.amd.card import GFX942, PARTITIONED
from tinyhw.mock.amd.chip.registers import registers_of
from tinyhw.mock.amd.driver import topology as files
from tinyhw.mock.amd.machine import Machine
from tinyhw.queues import source
from tinyhw.queues.build import QueueProgram
from tinyhw.wire import aql, codeobject, pm4, sdma

RNG = np.random.default_rng(9)
KERNELS = """
declare i32 @llvm.amdgcn.s.getreg(i32)
define amdgpu_kernel void @spill(ptr addrspace(1) %out, i32 %n) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = shl i32 %w, 6
  %t = add i32 %b, %l
  %a = alloca [64 x i32], addrspace(5)
  %i = and i32 %t, 63
  %p = getelementptr [64 x i32], ptr addrspace(5) %a, i32 0, i32 %i
  store volatile i32 %t, ptr addrspace(5) %p
  %v = load volatile i32, ptr addrspace(5) %p
  %s = add i32 %v, %n
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %s, ptr addrspace(1) %o
  ret void
}
define amdgpu_kernel void @where(ptr addrspace(1) %out, i32 %n) #0 {
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %x = call i32 @llvm.amdgcn.s.getreg(i32 6164)
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %w
  store i32 %x, ptr addrspace(1) %o
  ret void
}
define amdgpu_kernel void @stray(ptr addrspace(1) %out) #0 {
  %p = getelementptr i32, ptr addrspace(1) %out, i64 268435456
  store i32 7, ptr addrspace(1) %p
  ret void
}
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="1,64" }
"""  # getreg: 4 bits of register 20, XCC_ID


@pytest.fixture(autouse=True)
def cards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """Two of them."""
  monkeypatch.setenv("MOCKGPU", "gfx942,gfx942")
  Device.close()
  yield
  Device.close()


def test_tensors_are_what_numpy_says() -> None:
  a, b = RNG.random((48, 40), np.float32), RNG.random((40, 56), np.float32)
  found = ((Tensor(a, device="AMD") @ Tensor(b, device="AMD")).relu().sum(axis=1)).numpy()
  np.testing.assert_allclose(found, (a @ b).sum(axis=1), rtol=1e-5)
  x = Tensor(np.arange(1000, dtype=np.int32), device="AMD:1")
  assert (x * 3 - 1).sum().item() == int((np.arange(1000) * 3 - 1).sum())
  assert (x.to("AMD")[::7] + 1).tolist() == list(range(1, 1001, 7))


def test_products_of_halves_are_its_matrix_units() -> None:
  a, b = RNG.standard_normal((64, 64)).astype(np.float16), RNG.standard_normal((64, 64)).astype(np.float16)
  runtime: Any = Device["AMD"].runtime
  product = Tensor(a, device="AMD").matmul(Tensor(b, device="AMD"), dtype=dtypes.float32).numpy()
  np.testing.assert_allclose(product, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
  texts = [shown.text for image in runtime._images for shown in disassembly.code_object(image)]
  assert any("v_mfma_f32" in text for text in texts)


def test_its_packets_are_its_generations(tmp_path: Path) -> None:
  """A fence has the bits of gfx9's caches (gfx_v9_4_3_ring_emit_fence), and an acquire CP_COHER_CNTL's."""
  runtime = Device["AMD"].runtime
  assert isinstance(runtime, AMDRuntime) and runtime.arch.pm4 == "gfx9"
  words = ComputeCommands(runtime.arch).memory_barrier().signal(0x1000, "value").words
  table = pm4.table("gfx9")
  _, acquire, release = (packet for _, packet in pm4.walk(words, table))
  assert isinstance(acquire, p9.ACQUIRE_MEM) and acquire.coher_cntl == 0x28C4_0000  # gfx_v9_4_3_emit_mem_sync
  assert isinstance(release, p9.RELEASE_MEM) and release.tc_wb_action_ena and release.tcl1_action_ena
  text = pm4.text(words, of=table)
  assert report.pm4_lines(runtime.arch.pm4, words) == text.splitlines()
  (tmp_path / "words.bin").write_bytes(struct.pack(f"<{len(words)}I", *words))
  done = command.tinyhw("decode", "words.bin", "--kind", "pm4", "--arch", "gfx942", cwd=tmp_path)
  assert done.returncode == 0 and "tc_wb_action_ena=1" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["gfx942", "gfx1201", "gfx1100"])
def test_the_source_of_words_is_of_their_generation(name: str) -> None:
  known = arch(name)
  compute = ComputeCommands(known).memory_barrier().wait("a", "v").signal(0x1000, "v")
  copies = CopyCommands(known).wait("a", "v").memory_barrier().copy("d", "s", "c").signal(0x1000, "v")
  for kind, stream in (("pm4", compute), ("sdma", copies)):
    text = source.source(kind, stream.words, class_id=known.version[0])
    assert ".words" not in text and source.assemble(text).words == list(stream.words)
  assert ("coher_cntl" in source.source("pm4", compute.words, class_id=9)) == (name == "gfx942")


@pytest.mark.parametrize("cls", sdma.table("v4").packets, ids=lambda cls: cls.__name__)
def test_copies_of_v4_come_back_as_they_were(cls: type[Any]) -> None:
  table = sdma.table("v4")
  required: dict[str, Any] = {f.name: 0 for f in cls.FIELDS if f.default is None}
  if cls.PAYLOAD_BIAS: required[cls.REST] = (0,) * cls.PAYLOAD_BIAS
  words = sdma.encode(cls(**required))
  packet, size = sdma.decode(words, 0, table)
  assert type(packet) is cls and size == len(words) and sdma.parse(repr(packet), table) == packet


def test_a_program_of_its_packets_runs() -> None:
  """gfx9's words: COPY_DATA names memory where gfx11's goes by L2."""
  q = QueueProgram("pm4", 9)
  out, flag = q.buffer("out", b"abcdefgh"), q.buffer("flag", 8)
  q.COPY_DATA(src_sel="memory", dst_sel="memory", count_sel=1, src_addr=out, dst_addr=flag)
  assert q.run(Device["AMD"].runtime)["flag"] == b"abcdefgh" and ".class 0x9" in q.source({"out": 0, "flag": 8})
  copies = QueueProgram("sdma", 9)
  target = copies.buffer("target", 16)
  copies.SDMA_PKT_CONSTANT_FILL(fillsize=2, dst_addr=target, src_data=0x01020304, count=12)
  assert copies.run(Device["AMD"].runtime)["target"] == bytes((4, 3, 2, 1)) * 4
  with pytest.raises(InvalidArgument, match="a pm4 with class 0x8"): QueueProgram("pm4", 8)


def test_scratch_counts_the_waves_of_an_xcc() -> None:
  """Of a PM4 queue, which one XCC executes: 38 compute units of 32 waves."""
  runtime = Device["AMD"].runtime
  assert isinstance(runtime, AMDRuntime)
  memory, result = runtime.alloc(4 * 64 * 300), np.zeros(64 * 300, np.uint32)
  runtime.load(compile_ir(KERNELS, "gfx942"), "spill")([memory], [5], (300, 1, 1), (64, 1, 1))
  runtime.copyout(memoryview(result).cast("B"), memory)
  assert (result == np.arange(64 * 300) + 5).all()
  assert runtime.scratch_registers(1024)[1].to_dict()["WAVES"] == 38 * 32


def test_a_fault_names_address_and_access() -> None:
  runtime = Device["AMD"].runtime
  assert isinstance(runtime, AMDRuntime)
  memory = runtime.alloc(4096)
  runtime.load(compile_ir(KERNELS, "gfx942"), "stray")([memory], [], (1, 1, 1), (64, 1, 1))
  with pytest.raises(PageFault, match="write of 4 bytes"): runtime.synchronize()


def test_a_wait_that_nobody_ends_is_told() -> None:
  """By the packet, its address, and what stands there, behind a packet that only gfx9 has."""
  runtime = Device["AMD"].runtime
  assert isinstance(runtime, AMDRuntime)
  signal, runtime.timeout_s = runtime.new_signal(), 0.2
  words = ComputeCommands(runtime.arch).memory_barrier().wait("address", "value").bind(address=signal.address, value=5)
  runtime.submit_words(list(words.words), False)
  with pytest.raises(WaitTimeout) as told: runtime.synchronize()
  assert (told.value.packet, told.value.address, told.value.wanted) == ("WAIT_REG_MEM", signal.address, 5)
  assert "RELEASE_MEM(event_type=CACHE_FLUSH_AND_INV_TS_EVENT" in str(told.value)
  signal.value = 5
  runtime.synchronize()


def test_what_kfd_tells_of_an_mi300() -> None:
  """Linux 6.12 kfd_topology.c and kfd_queue.c: eight XCCs in a node, save areas for each of them."""
  runtime = Device["AMD"].runtime
  assert isinstance(runtime, AMDRuntime)
  node = runtime.gpu.node
  assert (node.xccs, node.compute_units, node.shader_engines) == (8, 304, 32)
  assert runtime.describe().startswith("gfx942, 304 CUs, 196,608 MiB")
  assert files.capability(GFX942) & kfd_sysfs.HSA_CAP_TRAP_DEBUG_PRECISE_MEMORY_OPERATIONS_SUPPORTED
  told = topology.save_area(node)
  untold = topology.GpuNode(node.node, node.gpu_id, node.name, {**node.p, "cwsr_size": 0})
  assert topology.save_area(untold) == told and told.total == 8 * (told.save_restore + told.debug)
  waves = 38 * 40
  assert told.control_stack == -(-(40 + 8 * waves + 8) // 4096) * 4096 and told.debug == 32 * waves


def test_rsrc3_is_no_register_of_the_descriptor() -> None:
  """v9_mqd names no dword for it: the driver writes it with each launch, and the mock forgets it."""
  known = registers_of("gfx942")
  assert known.modelled - known.kept == {known.rsrc3} and "COMPUTE_PGM_RSRC3" not in mqd.PRELOAD_GFX9
  runtime = Device["AMD"].runtime
  assert isinstance(runtime, AMDRuntime)
  program: Any = runtime.load(compile_ir(KERNELS, "gfx942"), "stray")
  again = program._prepare((64, 1, 1), 0, False).again
  rows = [r for _, packet in pm4.walk(again.words, pm4.table("gfx9")) for r in pm4.registers(packet)]
  assert known.rsrc3 in dict(rows)


def test_packets_behind_a_predicate_are_other_xccs() -> None:
  """PRED_EXEC: on XCC 0, what names XCC 1 alone is skipped."""
  client = Client(Machine("gfx942"))
  memory, queue = client.alloc(4096), client.queue()
  def write(value: int, at: int) -> list[int]:
    return pm4.encode(p9.WRITE_DATA(dst_sel=p9.WRITE_DATA_dst_sel.tc_l2, dst_mem_addr=memory.address + at,
                                    payload=(value,)))
  one, two = write(1, 0), write(2, 4)
  queue.push([*pm4.encode(p9.PRED_EXEC(exec_count=len(one), device_select=2)), *one,
              *pm4.encode(p9.PRED_EXEC(exec_count=len(two), device_select=3)), *two])
  client.run()
  assert memory.u32[:2].tolist() == [0, 2]
  queue.push(pm4.encode(p9.PRED_EXEC(exec_count=9, device_select=2)))
  client.run()
  assert queue.state == "hung" and any("PRED_EXEC of 9 dwords, 0 are left" in text for text in client.machine.findings)
  client.port.end()


def dispatched(q: AqlClient, kernel: str, groups: int, value: int, private: int = 0) -> list[int]:
  """The first dwords of `data` after an AQL dispatch of a kernel, which decrements a signal of 2 once."""
  client, code = q.client, codeobject.load(compile_ir(KERNELS, "gfx942"))
  image = client.alloc(len(code.image))
  image.view[:len(code.image)] = code.link(image.address)
  struct.pack_into("<QI", q.arguments.view, 0, q.data.address, value)
  q.put(aql.dispatch((groups, 1, 1), (64, 1, 1), kernel_object=image.address + code.kernel(kernel).descriptor_offset,
                     kernarg_address=q.arguments.address, private_bytes=private, group_bytes=0,
                     completion_signal=q.signal(0, 2)))
  assert client.port.wait(lambda: q.value(0) != 2, 5.0) and q.value(0) == 1
  return q.data.u32[:1024].tolist()


def test_workgroups_of_an_aql_queue_go_to_the_xccs_in_turn() -> None:
  """compute_tg_chunk_size 1 (kfd_mqd_manager_v9.c); the signal is written once."""
  q = AqlClient(Client(Machine("gfx942")))
  assert dispatched(q, "where", 20, 0)[:20] == [n % 8 for n in range(20)]
  assert q.state.u64[hsa.amd_queue_t.read_dispatch_id.offset // 8] == 1
  q.client.port.end()


def test_scratch_of_an_aql_queue_is_that_of_all_xccs() -> None:
  """WAVES counts those of each; a buffer for one of them is too small."""
  wave, doubtful = 64 * 272, "of 8 XCCs), of which"
  for waves, enough in ((1, True), (16, False)):
    q = AqlClient(Client(Machine("gfx942")))
    memory = q.client.alloc(-(-8 * wave // 4096) * 4096)
    ring = registers_of("gfx942").declared.COMPUTE_TMPRING_SIZE(WAVES=waves, WAVESIZE=wave // 1024)
    state = hsa.amd_queue_t.from_buffer(q.state.view)
    state.scratch_backing_memory_location, state.compute_tmpring_size = memory.address, ring.value()
    del state
    if enough: assert dispatched(q, "spill", 16, 5, 272) == [n + 5 for n in range(1024)]
    else: dispatched(q, "spill", 1, 5, 272)
    assert any(doubtful in line for line in q.client.machine.report()) != enough
    q.client.port.end()


def test_an_xcc_that_is_not_there_is_refused() -> None:
  """And what KFD takes of these GPUs and of no others: retry of page faults, compute units one by one."""
  client = Client(Machine("gfx942"))
  with pytest.raises(Unsupported, match="PM4 for XCC 8 of 8"):
    client.call("CREATE_QUEUE", queue_percentage=100 | 8 << 8, gpu_id=client.gpu_ids[0],
                queue_type=kfd.KFD_IOC_QUEUE_TYPE_COMPUTE, ring_size=4096)
  with pytest.raises(Unsupported, match="SET_XNACK_MODE on"): client.call("SET_XNACK_MODE", xnack_enabled=1)
  assert client.call("SET_XNACK_MODE", xnack_enabled=-1).xnack_enabled == 0
  queue, mask = client.queue(), client.alloc(4096)
  mask.u32[0] = 1
  assert client.errno("SET_CU_MASK", queue_id=queue.queue_id, num_cu_mask=32, cu_mask_ptr=mask.address) == 0
  client.port.end()


@pytest.mark.parametrize(("mode", "gpus", "units"), [("spx", 1, 304), ("dpx", 2, 152), ("cpx", 8, 38)])
def test_modes_are_so_many_gpus(mode: str, gpus: int, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", f"gfx942:{mode}")
  assert {card.compute_units for card in PARTITIONED[f"gfx942:{mode}"]} == {units}
  last = f"AMD:{gpus - 1}" if gpus > 1 else "AMD"
  runtime = Device[last].runtime
  assert isinstance(runtime, AMDRuntime) and runtime.gpu.node.xccs == 8 // gpus
  assert (Tensor([1, 2, 3], device=last).to("AMD") + 1).tolist() == [2, 3, 4]
  with pytest.raises(Exception, match=f"AMD:{gpus}|no GPU"): Tensor([1], device=f"AMD:{gpus}").tolist()


def test_weak_memory_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU_MEMORY", "weak")
  with pytest.raises(Unsupported, match="gfx942"): Tensor([1], device="AMD").tolist()


def test_a_capture_has_the_words_of_its_generation(tmp_path: Path) -> None:
  (tmp_path / "add.py").write_text("from tinyhw import Tensor; print((Tensor([1, 2, 3]) + 1).tolist())")
  def said(*words: str) -> str:
    done = command.tinyhw(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout
  said("record", "-o", "run.thq", "--mockgpu", "gfx942", "--", "add.py")
  text = said("decode", "run.thq")
  assert "tc_wb_action_ena=1" in text and "coher_cntl=0x28c40000" in text and "gcr_cntl" not in text
  assert "COMPUTE_PGM_RSRC3 = 0x00000001 (ACCUM_OFFSET=1)" in text and "SDMA_PKT_FENCE(op=5, sub_op=0, addr=" in text
  state = said("decode", "run.thq", "--dispatch", "0", "--state")
  assert state.count("COMPUTE_PGM_RSRC3") == 2 and "STATIC_THREAD_MGMT" not in state
  assert "all as captured" in said("replay", "run.thq")
  said("lint", "run.thq")  # no findings
