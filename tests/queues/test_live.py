"""What the doctor says of devices that are open: streams of CUDA's mock, waves that stand, memory that was freed."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.mock.cuda.client import WAIT, Client
from tinyhw import Device, Tensor
from tinyhw.autogen import cuda
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.core.errors import DeviceError, Error, WaitTimeout
from tinyhw.devices.examined import streams_of
from tinyhw.drive.amd.commands import ComputeCommands
from tinyhw.drive.base import Allocation


@pytest.fixture
def client() -> Iterator[Client]:
  made = Client()
  yield made
  made.machine.close()


def told(client: Client) -> list[str]:
  """What the doctor says."""
  assert client.machine.picture is not None
  return streams_of(client.machine.picture)


def test_streams_that_wait_for_each_other(client: Client) -> None:
  """A kernel waits for a fill, and the fill for an event behind the kernel: a circle with its line of source."""
  kernel = client.function(WAIT, "wait")
  first, second, event = client.handle("cuStreamCreate", 1), client.handle("cuStreamCreate", 1), \
    client.handle("cuEventCreate", 0)
  at = client.alloc(8)
  client.call("cuMemsetD32_v2", at, 0, 2)
  client.launch(kernel, 1, 64, [ctypes.c_uint64(at), ctypes.c_uint32(5)], first)
  client.call("cuEventRecord", event, first)
  client.call("cuStreamWaitEvent", second, event, 0)
  client.call("cuMemsetD32Async", at, 5, 1, second)
  assert client.code("cuStreamSynchronize", second) == cuda.CUDA_ERROR_LAUNCH_TIMEOUT
  verdict, *lines = told(client)
  assert verdict == ("doctor: a circle: CUDA0.stream1 waits for CUDA0.stream2 waits for CUDA0.stream1")
  text = "\n".join(lines)
  assert f"waits for {at:#x} (memory of cuMemAlloc, 8 bytes" in text and "a fill of CUDA0.stream2 would write" in text
  assert f"waits for event {event:#x}, recorded in CUDA0.stream1, which comes behind kernel wait" in text
  assert "kernel wait: 2 waves wait for 4 bytes" in text and "PTX:8: again: ld.volatile.global.u32" in text


def test_a_value_that_nobody_writes_and_one_that_a_kernel_might(client: Client) -> None:
  wait, put = client.function(WAIT, "wait"), client.function(WAIT, "put")
  stream, at = client.handle("cuStreamCreate", 1), client.alloc(8)
  client.call("cuMemsetD32_v2", at, 0, 2)
  arguments = [ctypes.c_uint64(at), ctypes.c_uint32(5)]
  client.call("cuStreamBeginCapture_v2", stream, 0)
  client.launch(wait, 1, 32, arguments, stream)
  client.launch(put, 1, 32, arguments, stream)
  graph = ctypes.c_uint64()
  client.call("cuStreamEndCapture", stream, ctypes.byref(graph))
  client.call("cuGraphLaunch", client.handle("cuGraphInstantiateWithFlags", graph.value, 0), stream)
  assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_LAUNCH_TIMEOUT
  verdict, *lines = told(client)
  text = "\n".join(lines)
  assert "kernel wait (node 1 of 2 of graph" in text, text
  assert "kernel put (node 2 of 2 of graph" in text and "has a pointer to this memory, and has not run" in text, text


def test_a_function_of_the_host_that_does_not_return(client: Client) -> None:
  first, second = client.handle("cuStreamCreate", 1), client.handle("cuStreamCreate", 1)
  event, over = client.handle("cuEventCreate", 0), threading.Event()
  function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: over.wait())
  client.call("cuLaunchHostFunc", first, function, None)
  client.call("cuEventRecord", event, first)
  client.call("cuStreamWaitEvent", second, event, 0)
  assert client.code("cuStreamQuery", second) == cuda.CUDA_ERROR_NOT_READY
  client.machine.pictured()
  over.set()
  verdict, *lines = told(client)
  assert verdict == "doctor: CUDA0.stream1 waits for the host"
  assert any("waits for the function, which has not returned" in line for line in lines)
  assert any(f"waits for event {event:#x}, recorded in CUDA0.stream1, which comes behind" in line for line in lines)
  client.call("cuCtxSynchronize")


def test_freed_memory_has_its_history(client: Client) -> None:
  kernel, at = client.function(WAIT, "put"), client.alloc(64)
  client.call("cuMemFree_v2", at)
  assert client.code("cuMemsetD32_v2", at, 1, 1) == cuda.CUDA_ERROR_INVALID_VALUE
  assert f"is in no allocation; {at:#x} was in memory of cuMemAlloc" in client.machine.logs[-1]
  client.launch(kernel, 1, 32, [ctypes.c_uint64(at + 8), ctypes.c_uint32(5)], 0)
  assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_ILLEGAL_ADDRESS
  verdict, *lines = told(client)
  assert verdict.startswith(f"doctor: a GPU faulted: {at + 8:#x} was in memory of cuMemAlloc, 64 bytes at {at:#x}, ")
  assert "given back by cuMemFree_v2 of thread MainThread" in verdict


# Waits for ever for memory of its own to change; two waves at once.
SPIN = """
define amdgpu_kernel void @spin(ptr addrspace(1) %p) #0 {
  br label %loop
loop:
  %v = load volatile i32, ptr addrspace(1) %p
  %c = icmp eq i32 %v, 5
  br i1 %c, label %done, label %loop
done:
  ret void
}
"""
CARDS = {"AMD": "gfx1100", "NV": "sm_90"}


@pytest.fixture(params=CARDS)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
  card = CARDS[request.param]
  for name, value in (("MOCKGPU", f"{card},{card}"), ("DEV", request.param), ("TINYHW_TIMEOUT_S", "0.05")):
    monkeypatch.setenv(name, value)
  with Device.aside(): yield request.param


def test_a_wait_that_ends_says_where_waves_stand(device: str, code_object: Callable[..., bytes]) -> None:
  code = code_object(SPIN) if device == "AMD" else WAIT.encode()
  arguments = [np.zeros(4, np.uint32)] + ([np.uint32(5)] if device == "NV" else [])
  with pytest.warns(RuntimeWarning, match="before its work was done"), Device.aside():
    with pytest.raises(Error) as caught:
      tinyhw.launch(code, "spin" if device == "AMD" else "wait", 1, 64, arguments, device)
  text = str(caught.value)
  assert "doctor: work does not end: GPU0." in text and "2 waves wait for 4 bytes at" in text, text
  assert ("spin+0x" in text and "global_load_b32" in text) if device == "AMD" else "PTX:8: again: ld.vol" in text, text
  assert ("its read pointer is" if device == "AMD" else "GP_GET is") in text


@pytest.mark.parametrize("device", ["AMD"], indirect=True)
def test_a_register_that_is_polled_is_named(device: str) -> None:
  runtime: Any = Device[device].runtime
  commands = ComputeCommands(runtime.arch, "a register")
  commands._put(pm4.WAIT_REG_MEM(
    function=pm4.WAIT_REG_MEM_function.equal_to_the_reference_value, mem_space=0, reference=1, mask=0xFFFFFFFF,
    mem_poll_addr=gc.GRBM_STATUS.OFFSET))
  stream = commands.signal(runtime.timeline.signal.address, "timeline").bind()
  with pytest.raises(WaitTimeout) as caught: runtime.wait(runtime.submit(runtime.compute, stream))
  assert "doctor: GPU0.PM4.0: WAIT_REG_MEM waits for GRBM_STATUS == 0x1, found 0x0" in str(caught.value)
  runtime.reset()


def faulted(device: str, address: int) -> str:
  """What a kernel's access to an address comes to."""
  (Tensor([1.0, 2.0]) + 1).tolist()
  kernel = next(k for k in Device[device].kernels.values() if k.spec.grid)
  kernel.program([Allocation(address, 8)] * 2, [], kernel.spec.grid, kernel.spec.block)
  with pytest.raises(DeviceError) as caught: Device[device].synchronize()
  return str(caught.value)


def test_a_fault_knows_what_was_freed(device: str) -> None:
  runtime = Device[device].runtime
  (Tensor([1.0, 2.0]) + 1).tolist()
  lent = runtime.alloc(1 << 30)  # more than is kept for others
  runtime.rename(lent, "a big one")
  address = lent.address
  runtime.free(lent)
  text = faulted(device, address + 16)
  assert f"{address + 16:#x} was in a big one of {device}, {1 << 30:,} bytes at {address:#x}, given" in text, text


def test_a_fault_knows_whose_memory_it_is(device: str) -> None:
  lent = Device[f"{device}:1"].runtime.alloc(1 << 20)
  assert f"bytes at {lent.address:#x}; it was never mapped on {device}" in faulted(device, lent.address)
