"""Programs on the machine: compiled by LLVM, launched by the driver, executed by the emulator; and their faults."""

from __future__ import annotations

import gc as gc_collect
import os
import weakref
from collections.abc import Iterator
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.mock.client import VRAM, Client
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import kfd
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.core.errors import DeviceError
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
from tinyhw.wire import pm4

PROGRAMS = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()

define amdgpu_kernel void @store(ptr addrspace(1) %p, i32 %value) #0 {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %group, 32
  %i = add i32 %base, %lane
  %sum = add i32 %i, %value
  %at = getelementptr i32, ptr addrspace(1) %p, i32 %i
  store i32 %sum, ptr addrspace(1) %at
  ret void
}

define amdgpu_kernel void @spin(ptr addrspace(1) %p) #0 {
  br label %again
again:
  %x = load volatile i32, ptr addrspace(1) %p
  br label %again
}

attributes #0 = { "amdgpu-flat-work-group-size"="1,1024" }
"""


@cache
def binary() -> bytes:
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx1100", opt=2, reloc="pic")
  return bytes(machine.emit_object(llvm.parse_assembly(PROGRAMS)))


@pytest.fixture
def machine() -> Iterator[Machine]:
  machine = Machine("gfx1100,gfx1100", watchdog=20_000)
  yield machine
  machine.close()


def test_a_program_runs(machine: Machine) -> None:
  runtime = AMDRuntime(MockPort(machine))
  memory, result = runtime.alloc(4096), np.zeros(1024, np.int32)
  runtime.load(binary(), "store")((memory,), (7,), (4, 1, 1), (32, 1, 1))
  runtime.copyout(memoryview(result), memory)
  assert result[:128].tolist() == list(range(7, 135)) and not result[128:].any()
  assert machine.findings == []


def test_a_page_fault_names_address_access_pc_and_instruction(machine: Machine) -> None:
  port = MockPort(machine)
  runtime, other = AMDRuntime(port), AMDRuntime(port, 1)
  program, there = runtime.load(binary(), "store"), other.alloc(4096)
  memory = runtime.alloc(4096)
  program((memory,), (1,), (400, 1, 1), (32, 1, 1))
  with pytest.raises(DeviceError, match="page fault") as fault:
    runtime.synchronize()
  text = str(fault.value)
  assert "global_store" in text and "PC 0x" in text and "write" in text
  queues = {q.name: q.state.value for q in machine.queues}
  assert queues["GPU0.PM4.0"] == "faulted" and queues["GPU0.SDMA.1"] == "evicted" and queues["GPU1.PM4.2"] == "ready"
  other.load(binary(), "store")((there,), (3,), (1, 1, 1), (32, 1, 1))
  other.synchronize()


def test_an_interrupted_dispatch_does_not_count_as_done() -> None:
  """Ctrl-C while a program runs: its completion is not signalled, the queue is dead and says why."""

  def interrupt(*_: object) -> int:
    raise KeyboardInterrupt

  machine = Machine(executor=interrupt)
  runtime = AMDRuntime(MockPort(machine))
  memory = runtime.alloc(4096)
  runtime.load(binary(), "store")((memory,), (1,), (1, 1, 1), (32, 1, 1))
  with pytest.raises(KeyboardInterrupt):
    runtime.synchronize()
  with pytest.raises(DeviceError, match="KeyboardInterrupt"):
    runtime.synchronize()
  machine.close()


def test_an_endless_loop_meets_the_watchdog(machine: Machine) -> None:
  runtime = AMDRuntime(MockPort(machine))
  memory = runtime.alloc(4096)
  runtime.load(binary(), "spin")((memory,), (), (1, 1, 1), (32, 1, 1))
  with pytest.raises(DeviceError, match="GPU hang") as hang:
    runtime.synchronize()
  assert "PC 0x" in str(hang.value)


def settings(address: int, **changes: int) -> list[p4.Pm4]:
  """A dispatch of one wave at `address`, with some registers otherwise."""
  values = {"block": 32, "lds": 0, "vgprs": 1, "scratch": 0, "initiator": 0x8005, "user": 2, "priv": 1} | changes
  rsrc1 = gc.COMPUTE_PGM_RSRC1(VGPRS=values["vgprs"], MEM_ORDERED=1, PRIV=values["priv"])  # type: ignore[call-arg]  # made by Register
  rsrc2 = gc.COMPUTE_PGM_RSRC2(USER_SGPR=values["user"], LDS_SIZE=values["lds"], SCRATCH_EN=values["scratch"])  # type: ignore[call-arg]  # made by Register
  return [
    pm4.set_sh_reg(gc.COMPUTE_PGM_LO, address >> 8 & 0xFFFF_FFFF, address >> 40),
    pm4.set_sh_reg(gc.COMPUTE_PGM_RSRC1, rsrc1, rsrc2),
    pm4.set_sh_reg(gc.COMPUTE_NUM_THREAD_X, values["block"], 1, 1),
    p4.DISPATCH_DIRECT(dim_x=1, dim_y=1, dim_z=1, dispatch_initiator=values["initiator"]),
  ]


@pytest.mark.parametrize(
  ("changes", "text"),
  [
    ({"block": 1025}, "1024 at most"),
    ({"block": 0}, "NUM_THREAD_FULL is 0"),
    ({"lds": 129}, "64 KiB"),
    ({"vgprs": 40}, "VGPRs"),
    ({"scratch": 1}, "COMPUTE_TMPRING_SIZE is empty"),
    ({"user": 17}, "USER_SGPR"),
    ({"initiator": 0x8004}, "starts nothing"),
  ],
)
def test_dispatches_that_the_chip_refuses(changes: dict[str, int], text: str) -> None:
  client = Client()
  code = client.alloc(4096, VRAM)
  code.u32[0] = 0xBFB0_0000  # s_endpgm
  queue = client.queue()
  queue.submit(*settings(code.address, **changes))
  client.run()
  assert text in str(client.machine.report())
  client.port.end()


def test_registers_that_were_never_written_are_missed() -> None:
  client = Client()
  queue = client.queue()
  queue.submit(p4.DISPATCH_DIRECT(dim_x=1, dim_y=1, dim_z=1, dispatch_initiator=0x8005))
  client.run()
  assert queue.state == "hung" and "COMPUTE_PGM_LO was never written" in str(client.machine.report())
  client.port.end()


@pytest.mark.parametrize("mapped", [True, False])
def test_code_must_be_mapped_and_executable(mapped: bool) -> None:
  client = Client()
  event = client.event(kfd.KFD_IOC_EVENT_MEMORY)
  data = client.alloc(4096, VRAM, flags=kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE & 0xFFFF_FFFF)
  queue = client.queue()
  queue.submit(*settings(data.address if mapped else 0x1234_5600))
  client.run()
  failure = client.wait_events([event.event_id])[1][0].memory_exception_data.failure
  assert queue.state == "faulted" and "execute" in str(client.machine.report()) and failure.NotPresent == (not mapped)
  client.port.end()


def test_an_empty_grid_runs_nothing() -> None:
  client = Client()
  code = client.alloc(4096, VRAM)  # zeros are no program
  queue = client.queue()
  *registers, dispatch = settings(code.address)
  assert isinstance(dispatch, p4.DISPATCH_DIRECT)
  dispatch.dim_y = 0
  queue.submit(*registers, dispatch)
  client.run()
  assert queue.state == "ready"
  client.port.end()


def test_a_machine_that_ran_programs_gives_its_memory_back() -> None:
  """No cache of code may keep the address space, and with it the video memory, of a machine that is gone."""

  def use() -> tuple[weakref.ref[Machine], int]:
    machine = Machine()
    runtime = AMDRuntime(MockPort(machine))
    memory = runtime.alloc(4096)
    runtime.load(binary(), "store")((memory,), (7,), (1, 1, 1), (32, 1, 1))
    runtime.synchronize()
    runtime.close()
    return weakref.ref(machine), machine.gpus[0].vram.fd

  machine, fd = use()
  gc_collect.collect()
  assert machine() is None
  with pytest.raises(OSError):
    os.fstat(fd)


def test_a_wave_signals_an_event_by_a_message() -> None:
  """What ROCm's device code does to wake the host: write the event's slot, then s_sendmsg MSG_INTERRUPT with its id."""
  client = Client()
  page = client.alloc(kfd.KFD_SIGNAL_EVENT_LIMIT * 8)
  event = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1, event_page_offset=page.handle)
  slot = page.address + event.event_id * 8
  lines = [f"s_mov_b32 s0, {slot & 0xFFFF_FFFF:#x}", f"s_mov_b32 s1, {slot >> 32:#x}", "v_mov_b32 v0, 0",
           "v_mov_b32 v1, 1", "global_store_b32 v0, v1, s[0:1]", f"s_mov_b32 m0, {event.event_id:#x}",
           "s_sendmsg sendmsg(MSG_INTERRUPT)", "s_endpgm"]  # fmt: skip
  code = client.alloc(4096, VRAM)
  machine_code = b"".join(assemble(line, table("gfx11")) for line in lines)
  code.view[: len(machine_code)] = machine_code
  queue = client.queue()
  assert client.wait_events([event.event_id])[0] == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
  queue.submit(*settings(code.address))
  client.run()
  assert client.wait_events([event.event_id])[0] == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  client.port.end()


def test_hardware_state_that_a_program_reads_is_declared() -> None:
  client = Client()
  code = client.alloc(4096, VRAM)
  lines = ["s_getreg_b32 s0, hwreg(HW_REG_HW_ID1)", "s_getreg_b32 s0, hwreg(HW_REG_SHADER_CYCLES)", "s_endpgm"]
  machine_code = b"".join(assemble(line, table("gfx11")) for line in lines)
  code.view[: len(machine_code)] = machine_code
  client.queue().submit(*settings(code.address))
  client.run()
  report = "\n".join(client.machine.report())
  assert "hardware state HW_REG_HW_ID1 x1: waves are dealt out" in report and "HW_REG_SHADER_CYCLES" in report
  client.port.end()
