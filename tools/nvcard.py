"""An NVIDIA card, step by step: read-only questions to RM, channels, the copy engine, kernels. Stops at the first step
that fails, with what the error notifier and the kernel's log say. `make test-nv` runs it.

    python -m tinyhw.tools.nvcard [--index N] [--qmd 3.0] [--record FILE]

It changes no setting of the card. The last step stores where no memory is: the channel ends, and another is opened.
With MOCKGPU it runs on a mock card.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tinyhw.core.errors import Error, MachineFault, PageFault
from tinyhw.devices.registry import Device, mock_cards
from tinyhw.drive.base import Launch
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.drive.nv.rm import Rm
from tinyhw.wire import qmd, rm, uvm

KERNEL = """.version {version}
.target {arch}
.address_size 64
.visible .entry square(.param .u64 out, .param .u32 n) {{
  .reg .pred %p; .reg .b64 %rd<3>; .reg .b32 %r<5>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1; @%p ret;
  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2; mul.lo.u32 %r4, %r2, %r2; st.global.u32 [%rd1], %r4; ret;
}}
.visible .entry frame(.param .u64 out) {{
  .local .align 4 .b8 own[1024]; .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %p;
  ld.param.u64 %rd1, [out]; mov.u32 %r1, own; mov.u32 %r2, 0; mov.u32 %r3, %tid.x;
FILL: add.u32 %r4, %r3, %r2; st.local.u32 [%r1], %r4; add.u32 %r1, %r1, 4; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p, %r2, 256; @%p bra FILL;
  and.b32 %r4, %r3, 255; shl.b32 %r4, %r4, 2; mov.u32 %r1, own; add.u32 %r1, %r1, %r4; ld.local.u32 %r5, [%r1];
  mov.u32 %r2, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r2, %r2, %r4, %r3;
  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r5; ret;
}}
.visible .entry add(.param .u64 out, .param .u64 a, .param .u64 b) {{
  .reg .b64 %rd<5>; .reg .b32 %r<5>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.wide.u32 %rd4, %r1, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;
  ld.global.u32 %r1, [%rd2]; ld.global.u32 %r2, [%rd3]; add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1; ret;
}}
"""
CLUSTERS = """
.visible .entry around(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<8>; .shared .align 4 .b8 own[4];
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, own; st.shared.u32 [%r2], %r1;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  mov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 1; mapa.shared::cluster.u32 %r4, %r2, %r3;
  ld.shared::cluster.u32 %r4, [%r4]; mov.u32 %r5, %nclusterid.x; mov.u32 %r6, %clusterid.x;
  mad.lo.u32 %r4, %r5, 100, %r4; mad.lo.u32 %r4, %r6, 10000, %r4;
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r4;
  barrier.cluster.arrive; barrier.cluster.wait; ret;
}
"""
COUNT = 1000
FAR = 0x6FFF_0000_0000  # an address of no memory


class Check:
  """The steps, and what they found: `record` is for a file that a mock can be held against."""

  def __init__(self, index: int, version: tuple[int, int] | None) -> None:
    self.index, self.version = index, version
    self.record: dict[str, Any] = {}
    self.runtime: NVRuntime | None = None
    self._program: Any = None
    self._binary = b""

  def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
    """In this order: each needs those before."""
    yield "driver and cards", self.driver
    yield "questions to RM", self.questions
    yield "channels", self.channels
    yield "copy engine", self.copies
    yield "inline data", self.inline
    yield "a kernel", self.kernel
    yield "a chain", self.chain
    yield "an inline QMD", self.inline_qmd
    yield "local memory", self.local
    yield "clusters", self.clusters
    yield "two queues", self.queues
    yield "large copies", self.large
    yield "a fault", self.fault

  def driver(self) -> str:
    """The version of the kernel driver; the cards."""
    found = Rm.of(Device.nv_port())
    self.record["driver"] = found.version
    self.record["cards"] = [c.bus for c in found.cards]
    return f"{found.version}; {', '.join(c.bus for c in found.cards)}"

  def questions(self) -> str:
    """Control calls that only read."""
    gpu = Rm.of(Device.nv_port()).open_gpu(self.index)
    self.record["gpu"] = {
      "name": gpu.name, "arch": gpu.arch.name, "uuid": uvm.uuid_text(gpu.uuid), "sms": gpu.sms, "tpcs": gpu.tpcs,
      "warps_per_sm": gpu.warps_per_sm, "vram": gpu.vram_bytes, "engines": list(gpu.engines),
      "classes": {f"{c:#06x}": rm.class_name(c) for c in sorted(gpu.classes)}}
    return f"{gpu.name} ({gpu.arch.name}), {gpu.sms} SMs, {gpu.vram_bytes >> 20:,} MiB, {len(gpu.classes)} classes"

  def channels(self) -> str:
    """A compute and a copy channel, whose first submissions end."""
    self.runtime = runtime = NVRuntime(Device.nv_port(), self.index, qmd_version=self.version)
    runtime.synchronize()
    return f"timeline at {runtime.timeline.signal.value}, QMD version {'.'.join(map(str, runtime.qmd_version))}"

  def copies(self) -> str:
    """Random bytes there and back, over a second buffer."""
    runtime = self._opened
    data: Any = np.random.default_rng(1).integers(0, 256, 3_000_001, np.uint8)
    out: Any = np.zeros_like(data)
    a, b = runtime.alloc(data.nbytes), runtime.alloc(data.nbytes)
    runtime.copyin(a, memoryview(data))
    runtime.copy(b, a, data.nbytes)
    runtime.copyout(memoryview(out), b)
    if (out != data).any(): raise Error(f"{int((out != data).sum())} bytes differ")
    for allocation in (a, b): runtime.free(allocation)
    return f"{data.nbytes:,} bytes"

  def inline(self) -> str:
    """The compute class writes memory, without a launch."""
    runtime, data = self._opened, b"inline to memory"
    a, out = runtime.alloc(64), bytearray(len(data))
    runtime.write_inline(a, data)
    runtime.copyout(memoryview(out), a)
    if out != data: raise Error(f"{bytes(out)!r} came back")
    return f"{len(data)} bytes"

  def kernel(self) -> str:
    """A launch, and its time on the card's clock."""
    from tinyhw.devices.assemble import Assembler
    runtime = self._opened
    assemble = Assembler(runtime.arch, mock_cards() is None)
    text = KERNEL.format(arch=runtime.arch.name, version="9.0" if runtime.arch.sm >= 100 else "8.0")
    if runtime.arch.bank0.clusters is not None: text += CLUSTERS
    runtime.assemble, self._binary = assemble, assemble(text.encode())
    program = runtime.load(self._binary, "square")
    out: Any = np.zeros(COUNT, np.uint32)
    a = runtime.alloc(out.nbytes)
    runtime.copyin(a, memoryview(out.view(np.uint8)))
    seconds = program([a], [COUNT], (8, 1, 1), (128, 1, 1), wait=True)
    runtime.copyout(memoryview(out.view(np.uint8)), a)
    wrong = out != np.arange(COUNT, dtype=np.uint32) ** 2
    if wrong.any(): raise Error(f"{int(wrong.sum())} of {COUNT} values are wrong")
    self.record["launch"] = {"qmd": list(runtime.qmd_version), "methods": runtime.last_submission()}
    self._program = program, a, out
    return f"{COUNT} values, {(seconds or 0) * 1e6:.1f} us"

  def _again(self, run: Callable[[], object]) -> None:
    """Have the kernel run anew, over zeros."""
    runtime, (_, a, out) = self._opened, self._program
    out[:] = 0
    runtime.copyin(a, memoryview(out.view(np.uint8)))
    run()
    runtime.copyout(memoryview(out.view(np.uint8)), a)
    wrong = out != np.arange(COUNT, dtype=np.uint32) ** 2
    if wrong.any(): raise Error(f"{int(wrong.sum())} of {COUNT} values are wrong")

  def chain(self) -> str:
    """Launches of which each schedules the next, as a replay makes them."""
    program, a, _ = self._program
    runner = self._opened.runner([Launch(program, (0,), (8, 1, 1), (128, 1, 1))] * 3)
    self._again(lambda: runner([a], [[COUNT]] * 3))
    self.record["chain"] = self._opened.last_submission()
    return "3 launches"

  def inline_qmd(self) -> str:
    """A launch whose QMD travels in the pushbuffer."""
    program, a, _ = self._program
    runtime = self._opened
    runtime.inline_qmd = True
    try:
      other = runtime.load_kernel(program.image.code.file, program.name)
      self._again(lambda: other([a], [COUNT], (8, 1, 1), (128, 1, 1)))
    finally: runtime.inline_qmd = False
    return f"{len(runtime.last_submission())} methods"

  def _filled(self, name: str, grid: int, block: int) -> Any:
    """What a kernel of the module stores, a u32 a thread."""
    out: Any = np.zeros(grid * block, np.uint32)
    runtime = self._opened
    a = runtime.alloc(out.nbytes)
    runtime.copyin(a, memoryview(out.view(np.uint8)))
    runtime.load(self._binary, name)([a], [], (grid, 1, 1), (block, 1, 1))
    runtime.copyout(memoryview(out.view(np.uint8)), a)
    runtime.free(a)
    return out

  def local(self) -> str:
    """Local variables of all threads that the card holds at once, and more."""
    out = self._filled("frame", 64, 256)
    if not np.array_equal(out, np.tile(2 * np.arange(256, dtype=np.uint32), 64)): raise Error("values are wrong")
    return f"{len(out):,} threads, 1,024 bytes each"

  def clusters(self) -> str:
    """Blocks that read each other's shared memory; their number of clusters."""
    runtime = self._opened
    if runtime.arch.bank0.clusters is None: return f"{runtime.arch.name} has none"
    out: Any = np.zeros(64, np.uint32)
    a = runtime.alloc(out.nbytes)
    assert a.address is not None
    runtime.copyin(a, memoryview(out.view(np.uint8)))
    around = runtime.load(self._binary, "around")
    around.launch(a.address.to_bytes(8, "little"), (6, 1, 1), (1, 1, 1), cluster=(2, 1, 1))
    runtime.copyout(memoryview(out.view(np.uint8)), a)
    wanted = [10000 * (n // 2) + 300 + (n ^ 1) for n in range(6)]
    if out[:6].tolist() != wanted: raise Error(f"{out[:6].tolist()} came back")
    if out[6:].any(): raise Error(f"{np.count_nonzero(out)} blocks ran, where 6 were asked for")
    return "3 of 2 blocks"

  def queues(self) -> str:
    """Kernels and copies in turns, each of which needs the one before."""
    start: Any = np.arange(4096, dtype=np.uint32)
    runtime, out = self._opened, np.zeros_like(start)
    add, (a, b) = runtime.load(self._binary, "add"), (runtime.alloc(start.nbytes) for _ in range(2))
    runtime.copyin(a, memoryview(start.view(np.uint8)))
    for _ in range(20):
      runtime.copy(b, a, start.nbytes)
      add([a, a, b], [], (32, 1, 1), (128, 1, 1))
    runtime.copyout(memoryview(out.view(np.uint8)), a)
    if not np.array_equal(out, start << 20): raise Error("values are wrong")
    return "20 kernels, 20 copies"

  def large(self) -> str:
    """Bytes there by threads, within the card by a kernel, and back."""
    data: Any = np.random.default_rng(2).integers(0, 256, (33 << 20) + 5, np.uint8)
    runtime, out = self._opened, np.zeros_like(data)
    a, b = runtime.alloc(data.nbytes), runtime.alloc(data.nbytes)
    runtime.copyin(a, memoryview(data))
    runtime.copy(b, a, data.nbytes)
    runtime.copyout(memoryview(out), b)
    if not np.array_equal(out, data): raise Error(f"{int((out != data).sum())} bytes differ")
    return f"{data.nbytes:,} bytes, {runtime.movers.threads} threads"

  def fault(self) -> str:
    """A store where no memory is ends the channel; it is told, and a new device runs the kernel."""
    program, a, out = self._program
    runtime, far = self._opened, self._opened.alloc(out.nbytes)
    far.address = FAR
    program([far], [COUNT], (8, 1, 1), (128, 1, 1))
    try: runtime.synchronize()
    except MachineFault as error: told = error
    else: raise Error("nobody tells of it")
    self.record["fault"] = str(told).splitlines()
    if not isinstance(told, PageFault) or (told.address or 0) // 4096 != FAR // 4096:
      raise Error(f"it is told as {told}")
    runtime.close()
    self.channels()
    binary, self._program = self._binary, None
    again = self._opened.load(binary, "square")
    self._program = again, self._opened.alloc(out.nbytes), out
    self._again(lambda: again([self._program[1]], [COUNT], (8, 1, 1), (128, 1, 1)))
    return f"{told.access} at {told.address:#x} in kernel {told.kernel}; a new device runs it"

  @property
  def _opened(self) -> NVRuntime:
    if self.runtime is None: raise Error("the device is not open")
    return self.runtime

  def other_versions(self) -> list[str]:
    """QMD versions of the card's compute class that this run did not try."""
    if self.runtime is None: return []
    return [".".join(map(str, v)) for v in qmd.versions(self.runtime.arch.compute_class)
            if v != self.runtime.qmd_version]


def main(argv: Sequence[str]) -> int:
  """Returns the exit status: 0 when every step holds."""
  options = argparse.ArgumentParser(prog="python -m tinyhw.tools.nvcard", description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
  options.add_argument("--index", type=int, default=0, help="which card")
  options.add_argument("--qmd", metavar="X.Y", help="the QMD version of launches; the generation's own when left out")
  options.add_argument("--record", metavar="FILE", help="write what was found as JSON")
  given = options.parse_args(list(argv))
  version = None
  if given.qmd:
    major, _, minor = given.qmd.partition(".")
    if not (major + minor).isdecimal(): options.error(f"{given.qmd!r} is no version")
    version = int(major), int(minor or 0)
  check, failed = Check(given.index, version), False
  for name, step in check.steps():
    try: print(f"{name:18s} {step()}", flush=True)
    except Error as e:
      print(f"{name:18s} FAILED: {e}", flush=True)
      if name == "a kernel" and (others := check.other_versions()):
        print(f"{'':18s} the class has other QMD versions: --qmd {' or '.join(others)}")
      failed = True
      break
  if given.record:
    with open(given.record, "w") as file: json.dump(check.record, file, indent=1)
  if check.runtime is not None: check.runtime.close()
  return int(failed)


if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
