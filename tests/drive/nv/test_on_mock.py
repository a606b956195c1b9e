"""The NV driver on mock cards: copies, launches, local memory, several GPUs, what stops a channel, and tensors."""
from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product

import numpy as np
import pytest

import tinyhw
from tinyhw import Device, Tensor, TinyJit
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.core.errors import (
  DecodeError,
  DeviceError,
  Error,
  InvalidArgument,
  MachineFault,
  MissingTool,
  OutOfMemory,
  PageFault,
  Unsupported,
  ValueLost,
  WaitTimeout,
)
from tinyhw.devices.assemble import Assembler, bare
from tinyhw.drive.base import Allocation, Launch
from tinyhw.drive.nv import channel
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort
from tinyhw.wire import cubin

HEAD = ".version 9.0\n.target {arch}\n.address_size 64\n"
PTX = HEAD + """
.global .align 4 .u32 table[4] = {{10, 20, 30, 40}};
.global .align 8 .u64 where = table;
.extern .shared .align 4 .b8 dynamic[];
.visible .entry scale(.param .u64 out, .param .u64 in, .param .u32 n, .param .f32 by) {{
  .reg .pred %p; .reg .b64 %rd<5>; .reg .b32 %r<5>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; ld.param.u32 %r1, [n]; ld.param.f32 %f1, [by];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1; @%p ret;
  mul.wide.u32 %rd3, %r2, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f2, [%rd2]; mul.rn.f32 %f2, %f2, %f1; st.global.f32 [%rd1], %f2; ret;
}}
.visible .entry through(.param .u64 out) .maxntid 64, 1, 1 {{
  .reg .b64 %rd<5>; .reg .b32 %r<7>; .shared .align 4 .b8 own[256]; .local .align 4 .b8 frame[16];
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd2, %r2; add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r3, own; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1; bar.sync 0;
  and.b32 %r4, %r1, 3; shl.b32 %r4, %r4, 2; cvt.u64.u32 %rd3, %r4;
  ld.global.u64 %rd4, [where]; add.u64 %rd4, %rd4, %rd3; ld.global.u32 %r4, [%rd4];
  ld.shared.u32 %r3, [%r3]; add.u32 %r4, %r4, %r3; and.b32 %r5, %r2, 12; mov.u32 %r6, frame; add.u32 %r5, %r5, %r6;
  st.local.u32 [%r5], %r4; mov.u32 %r5, %laneid; and.b32 %r5, %r5, 3; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r6;
  ld.local.u32 %r3, [%r5];
  st.shared.u32 [dynamic], %r3; st.global.u32 [%rd1], %r3; ret;
}}
.visible .entry wild(.param .u64 out, .param .u64 by) {{
  .reg .b64 %rd<3>; ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [by]; add.u64 %rd1, %rd1, %rd2;
  st.global.u64 [%rd1], %rd2; ret;
}}
.visible .entry stops() {{ trap; }}
.visible .entry three() .reqntid 3, 1, 1 {{ ret; }}
"""
Open = Callable[..., NVRuntime]


@pytest.fixture
def opened() -> Iterator[Open]:
  """Makes runtimes on machines of their own; all end with the test."""
  made: list[NVRuntime] = []
  machines: list[NvMachine] = []

  def make(cards: str = "sm_90", index: int = 0, machine: NvMachine | None = None, ptxas: bool = False,
           port: NvPort | None = None, vram: int = 1 << 30) -> NVRuntime:
    if port is None:
      machine = NvMachine(cards, vram=vram, system_memory=1 << 30)
      machines.append(machine)
      port = NvPort(machine)
    runtime = NVRuntime(port, index, timeout_s=20)
    runtime.assemble = Assembler(runtime.arch, ptxas)
    made.append(runtime)
    return runtime
  yield make
  for runtime in made: runtime.close()
  for machine in machines: machine.close()


def put(runtime: NVRuntime, data: np.ndarray) -> Allocation:
  allocation = runtime.alloc(max(data.nbytes, 1))
  runtime.copyin(allocation, memoryview(np.ascontiguousarray(data)).cast("B"))
  return allocation


def got(runtime: NVRuntime, allocation: Allocation, like: np.ndarray) -> np.ndarray:
  out = np.empty_like(like)
  runtime.copyout(memoryview(out).cast("B"), allocation)
  return out


def ptx(runtime: NVRuntime) -> bytes: return PTX.format(arch=runtime.arch.name).encode()


@pytest.mark.parametrize("arch", NV_ARCHES)
@pytest.mark.parametrize("ptxas", [False, True])
def test_kernels_run_on_each_generation(arch: str, ptxas: bool, opened: Open) -> None:
  if ptxas and shutil.which("ptxas") is None: pytest.skip("ptxas is not installed")
  runtime = opened(arch, ptxas=ptxas)
  x = np.arange(1000, dtype=np.float32)
  out, source = put(runtime, np.zeros_like(x)), put(runtime, x)
  program = runtime.load(ptx(runtime), "scale")
  program([out, source], [1000, 2.5], (8, 1, 1), (128, 1, 1))
  assert (got(runtime, out, x) == x * np.float32(2.5)).all()
  through, values = runtime.load(ptx(runtime), "through"), np.zeros(64, np.uint32)
  cells = put(runtime, values)
  through.launch(cells.address.to_bytes(8, "little"), (1, 1, 1), (64, 1, 1), dynamic_lds=64)
  assert (got(runtime, cells, values) == np.arange(64) + np.tile([10, 20, 30, 40], 16)).all()
  seconds = program([out, source], [1000, 2.5], (8, 1, 1), (128, 1, 1), wait=True)
  assert seconds is not None and 0 < seconds < 1 and runtime.began() > 0
  if ptxas: assert program.code.registers < 32 and through.code.local == 16


def test_copies(opened: Open) -> None:
  runtime, rng = opened(), random.Random(5)
  for size in (1, 3, 4096, 65536, rng.randrange(1 << 20), 9 << 20):
    data = np.frombuffer(rng.randbytes(size), np.uint8)
    a = put(runtime, data)
    b = runtime.alloc(size)
    runtime.copy(b, a, size)
    assert (got(runtime, b, data) == data).all()
    for allocation in (a, b): runtime.free(allocation)
  runtime.max_copy_bytes = 1000
  data = np.frombuffer(rng.randbytes(5555), np.uint8)
  a, b = put(runtime, data), runtime.alloc(5555)
  runtime.copy(b, a, 5555)
  assert (got(runtime, b, data) == data).all()


def test_lines_and_inline_data(opened: Open) -> None:
  runtime = opened()
  source = np.arange(100, dtype=np.uint8)
  a, b = put(runtime, source), put(runtime, np.zeros(200, np.uint8))
  runtime.copy_lines(b, a, length=5, lines=9, to_pitch=20, from_pitch=10)
  found = got(runtime, b, np.zeros(200, np.uint8))
  for line in range(9): assert (found[20 * line:20 * line + 5] == source[10 * line:10 * line + 5]).all()
  assert found.sum() == sum(int(source[10 * n:10 * n + 5].sum()) for n in range(9))
  runtime.write_inline(b, b"seven b", 3)
  assert bytes(got(runtime, b, np.zeros(10, np.uint8))[3:]) == b"seven b"
  with pytest.raises(InvalidArgument, match="20 lines"): runtime.copy_lines(b, a, 11, 20, 20, 10)


def test_a_pushbuffer_is_used_again(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(channel, "PUSH_BYTES", 1 << 14)
  monkeypatch.setattr(channel, "ENTRIES", 64)
  runtime = opened()
  data, a = np.arange(16, dtype=np.uint8), runtime.alloc(16)
  for n in range(3 * runtime.copier.ring.size // len(runtime.copy_stream.words)):
    runtime.copyin(a, memoryview(data))
    if n % 100 == 0: assert (got(runtime, a, data) == data).all()
  assert runtime.copier.ring.at > 2 * runtime.copier.ring.size


def test_local_memory_grows(opened: Open) -> None:
  runtime = opened()
  runtime.require_local(16, "test")
  first, generation = runtime._local, runtime.local_generation
  runtime.require_local(8, "test")
  assert runtime._local is first and runtime.local_generation == generation
  runtime.require_local(100, "test")
  second = runtime._local
  assert second is not None and second is not first and runtime.local_generation == generation + 1
  assert second.size >= 112 * 32 * 64 * 2 * runtime.gpu.tpcs
  with pytest.raises(OutOfMemory, match=r"test: local memory, 1,000,000 bytes a thread"):
    runtime.require_local(1_000_000, "test")


def test_a_runner_is_the_launches_one_by_one(opened: Open) -> None:
  runtime = opened()
  program, x = runtime.load(ptx(runtime), "scale"), np.arange(64, dtype=np.float32)
  a, b, c = put(runtime, x), runtime.alloc(256), runtime.alloc(256)
  launches = [Launch(program, (1, 0), (1, 1, 1), (64, 1, 1)), Launch(program, (2, 1), (1, 1, 1), (64, 1, 1))]
  run = runtime.runner(launches * 40)
  before = runtime.timeline.last
  run([a, b, c], [[64, 2.0], [64, 3.0]] * 40)  # type: ignore[list-item]
  assert runtime.timeline.last == before + 2  # 80 launches, 64 of them in one submission
  assert (got(runtime, c, x) == 6 * x).all()
  other = opened()
  with pytest.raises(InvalidArgument, match="another device"): other.runner(launches)


def test_two_gpus_copy_and_order(opened: Open) -> None:
  first = opened("sm_90,sm_90")
  second = opened(index=1, port=first.port)  # type: ignore[arg-type]
  assert first.is_peer(second) and first.siblings() == 2 and second.name == "NV:1"
  x = np.arange(256, dtype=np.float32)
  program = first.load(ptx(first), "scale")
  a, b, c = put(first, x), first.alloc(1024), second.alloc(1024)
  for by in (2.0, 3.0):
    program([b, a], [256, by], (2, 1, 1), (128, 1, 1))
    second.copy(c, b, 1024)  # waits for the launch on the other one
    program([b, a], [256, 0.0], (2, 1, 1), (128, 1, 1))  # and this one for the copy
    assert (got(second, c, x) == x * np.float32(by)).all()
  assert not first.is_peer(opened("sm_90"))
  second.close()
  assert (got(first, a, x) == x).all()


REFUSED: Sequence[tuple[str, tuple[int, ...], tuple[int, ...], int, str]] = (
  ("scale", (1, 1, 1), (1025, 1, 1), 0, "block .1025, 1, 1."), ("scale", (1, 1, 1), (1024, 2, 1), 0, "2048 threads"),
  ("scale", (0, 1, 1), (1, 1, 1), 0, "grid .0, 1, 1."), ("scale", (1, 70000, 1), (1, 1, 1), 0, "grid"),
  ("through", (1, 1, 1), (65, 1, 1), 0, "at most 64"), ("three", (1, 1, 1), (4, 1, 1), 0, r"exactly \(3, 1, 1\)"),
  ("through", (1, 1, 1), (64, 1, 1), 250_000, "250,256 bytes of shared memory .256 of its own and 250,000 dynamic"),
)


@pytest.mark.parametrize(("kernel", "grid", "block", "shared", "words"), REFUSED)
def test_launches_that_cannot_be(kernel: str, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
                                 words: str, opened: Open) -> None:
  runtime = opened()
  program = runtime.load(ptx(runtime), kernel)
  with pytest.raises(InvalidArgument, match=words): program.launch(b"", grid, block, dynamic_lds=shared)


def test_bad_programs_and_arguments(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
  runtime = opened()
  with pytest.raises(InvalidArgument, match="no kernel 'nothing'") as error: runtime.load(ptx(runtime), "nothing")
  assert "scale, through" in str(error.value)
  program, a = runtime.load(ptx(runtime), "scale"), runtime.alloc(4)
  with pytest.raises(InvalidArgument, match=r"takes 4 parameters .8 bytes, 8 bytes, 4 bytes, 4 bytes."):
    program([a], [1], (1, 1, 1), (1, 1, 1))
  with pytest.raises(InvalidArgument, match="parameter 2 has 4 bytes, got a buffer"):
    program([a, a, a], [1], (1, 1, 1), (1, 1, 1))
  with pytest.raises(InvalidArgument, match="does not fit"): program([a, a], [1 << 40, 1.0], (1, 1, 1), (1, 1, 1))
  with pytest.raises(InvalidArgument, match="30 bytes of parameters"): program.launch(bytes(30), (1, 1, 1), (1, 1, 1))
  older = bare(ptx(opened("sm_80")), NV_ARCHES["sm_80"])
  with pytest.raises(Unsupported, match="cubin for sm_80"): runtime.load(older, "scale")
  with pytest.raises(DecodeError): runtime.load(b"no ELF", "k")
  with pytest.raises(Error): runtime.load(HEAD.format(arch="sm_90").encode() + b".visible .entry x() { ret }", "x")
  monkeypatch.setenv("TINYHW_PTXAS", "/nowhere/ptxas")
  with pytest.raises(MissingTool, match="/nowhere/ptxas"): Assembler(runtime.arch, True)(b"")
  with pytest.raises(InvalidArgument, match="alloc of 0"): runtime.alloc(0)


def test_arguments_are_packed_as_what_they_are(opened: Open) -> None:
  """Whatever was launched before: numbers with and without a sign, and floats, in places of one size."""
  program = opened().load(ptx(opened()), "scale")
  kinds = [(7, "I"), (-7, "i"), (1.5, "f"), (-1.5, "f"), (1 << 31, "I")]
  for (a, first), (b, second) in [*product(kinds, kinds), *product(reversed(kinds), kinds)]:
    packed = program.packer(2, [a, b]).pack(1 << 40, 2, a, b)
    assert packed[:24] == struct.pack(f"<QQ{first}{second}", 1 << 40, 2, a, b), (a, b)


def test_memory_ends(opened: Open) -> None:
  runtime = opened(vram=16 << 20)
  kept = [runtime.alloc(4 << 20) for _ in range(3)]
  with pytest.raises(OutOfMemory, match=r"H200 video memory: 8,388,608 bytes asked"): runtime.alloc(8 << 20)
  for allocation in kept: runtime.free(allocation)
  assert runtime.alloc(8 << 20).address  # what was kept for later went back


def test_a_page_fault_ends_the_channel_and_not_the_process(opened: Open) -> None:
  runtime = opened()
  a = put(runtime, np.zeros(2, np.uint64))
  runtime.rename(a, "cells")
  program = runtime.load(ptx(runtime), "wild")
  program.launch(a.address.to_bytes(8, "little") + (1 << 20).to_bytes(8, "little"), (1, 1, 1), (1, 1, 1))
  with pytest.raises(PageFault, match="write of 8 bytes") as error: runtime.synchronize()
  told = str(error.value)
  assert error.value.address == a.address + (1 << 20) and error.value.kernel == "wild"
  assert "past the end of cells (16 bytes)" in told and "st.global.u64 [%rd1], %rd2" in told and "reset()" in told
  with pytest.raises(PageFault): runtime.alloc(4)
  runtime.close()
  again = opened(port=runtime.port)  # type: ignore[arg-type]
  assert (got(again, put(again, np.arange(4)), np.arange(4)) == np.arange(4)).all()


def test_a_trap_has_its_words(opened: Open) -> None:
  runtime = opened()
  runtime.load(ptx(runtime), "stops").launch(b"", (1, 1, 1), (1, 1, 1))
  with pytest.raises(MachineFault, match=r"trap.*ROBUST_CHANNEL_GR_EXCEPTION, Xid 13.*in kernel stops"):
    runtime.synchronize()


@pytest.mark.parametrize(("line", "told"), [("bra NOWHERE;", "there is no label NOWHERE"),
                                            ("add.u32 %q, %r, %r;", "%q is no register that add.u32 could write")])
def test_a_program_that_contradicts_itself(opened: Open, line: str, told: str) -> None:
  """Where no ptxas has looked at it, the engine that runs it finds it, and not the one that reads pushbuffers."""
  runtime = opened()
  text = f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k () {{ .reg .u32 %r; {line} ret; }}".encode()
  runtime.load(bare(text, runtime.arch), "k").launch(b"", (1, 1, 1), (1, 1, 1))
  with pytest.raises(MachineFault, match=rf"ILLEGAL_INSTRUCTION: PTX line 4.*{told}.*GR_EXCEPTION, Xid 13"):
    runtime.synchronize()


def test_programs_for_other_gpus() -> None:
  text = ".version 8.8\n.target {}\n.address_size 64\n.visible .entry k () {{ ret; }}"
  for target in ("sm_100", "sm_100a", "sm_103"):
    with pytest.raises(DecodeError, match=f"PTX for {target} does not run on sm_90"):
      bare(text.format(target).encode(), NV_ARCHES["sm_90"])
  for target in ("sm_90a", "sm_90", "sm_52"): assert bare(text.format(target).encode(), NV_ARCHES["sm_90"])


def test_a_wait_that_does_not_end(opened: Open) -> None:
  runtime = opened()
  signal = runtime.new_signal()
  runtime.timeout_s = 0.05
  runtime.wait_for(signal, 1)
  with pytest.raises(WaitTimeout, match="wait for signal") as error: runtime.synchronize()
  assert "ACQ_CIRC_GEQ" in str(error.value)
  signal.value = 1
  runtime.timeout_s = 20
  runtime.synchronize()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
  """The process's devices are on a mock machine with these cards."""
  with Device.aside():
    monkeypatch.setenv("MOCKGPU", request.param)
    yield
  with suppress(Error): Device.get("NV")


@pytest.mark.parametrize("machine", ["sm_90", "sm_86"], indirect=True)
def test_tensors(machine: None) -> None:
  rng = np.random.default_rng(3)
  x, y = rng.random((24, 40), dtype=np.float32), rng.random((40, 16), dtype=np.float32)
  assert np.allclose((Tensor(x, device="NV") @ Tensor(y, device="NV")).numpy(), x @ y, rtol=1e-5)
  assert (Tensor([1, 2, 3], device="NV") + 1).tolist() == [2, 3, 4]

  @TinyJit
  def step(a: Tensor, b: Tensor) -> Tensor: return ((a @ b).relu().sum(axis=1) + 1).realize()
  for _ in range(4):
    a = rng.random((8, 8), dtype=np.float32) - 0.5
    found = step(Tensor(a, device="NV"), Tensor(a.T, device="NV")).numpy()
    assert np.allclose(found, np.maximum(a @ a.T, 0).sum(axis=1) + 1, rtol=1e-5)


@pytest.mark.parametrize("machine", ["sm_90,sm_90"], indirect=True)
def test_tensors_of_two_gpus(machine: None) -> None:
  first = Tensor([1.0, 2.0], device="NV") + 1
  second = first.to("NV:1") * 2
  assert second.tolist() == [4, 6] and second.device == "NV:1" and second.to("NV").tolist() == [4, 6]


@pytest.mark.parametrize("machine", ["sm_90"], indirect=True)
def test_launch_and_reset(machine: None) -> None:
  text, x = PTX.format(arch="sm_90"), np.arange(100, dtype=np.float32)
  out, _ = tinyhw.launch(text, "scale", 1, 128, [np.zeros_like(x), x, 100, 0.5])
  assert (out == x / 2).all() and Device.get("NV") is not None
  lost = (Tensor([1, 2], device="NV") + 1).realize()
  with pytest.raises(PageFault, match="in kernel wild"): tinyhw.launch(text, "wild", 1, 1, [np.zeros(1), 1 << 30])
  Device.reset("NV")
  with pytest.raises(ValueLost): lost.tolist()
  assert (Tensor([1, 2], device="NV") + 1).tolist() == [2, 3]
  elf = bare(text.encode(), NV_ARCHES["sm_90"])
  assert cubin.Cubin(elf).ptx is not None
  assert (tinyhw.launch(elf, "scale", 1, 128, [np.zeros_like(x), x, 100, 2.0])[0] == 2 * x).all()


@pytest.mark.parametrize("machine", ["sm_90"], indirect=True)
def test_cards_of_the_other_vendor(machine: None) -> None:
  with pytest.raises(DeviceError, match="MOCKGPU=sm_90 names no card of AMD"): Device["AMD"]
