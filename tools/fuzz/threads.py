"""Threads that do all at once what one thread may do: launches, expressions, TinyJits, random numbers, open and close.

    python -m tinyhw.tools.fuzz.threads                                      8 threads, 100 rounds each, on AMD
    python -m tinyhw.tools.fuzz.threads --threads 8 --rounds 1000 --repeat 20     the long form
    python -m tinyhw.tools.fuzz.threads --devices AMD,AMD:1,LLVM,PYTHON --close     several devices, which come and go
    python -m tinyhw.tools.fuzz.threads --faults AMD:1 --devices AMD                threads fault on the second card
    MOCKGPU=sm_90,sm_90 python -m tinyhw.tools.fuzz.threads --devices NV,NV:1,LLVM --faults NV:1       on NVIDIA's mocks

Each round is a launch of a ready kernel, an expression and now and then something else; every value is compared with
NumPy's. Python changes threads every microsecond (`--switch`). What a thread does follows from the seed and its number,
in which order threads get on does not. A value that went with a device that another thread closed is no mistake.
"""
from __future__ import annotations

import argparse
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import tinyhw
from tinyhw.core.errors import DeviceError
from tinyhw.devices.registry import Device
from tinyhw.drive.base import Allocation
from tinyhw.jit.jit import TinyJit
from tinyhw.tensor.tensor import Tensor
from tinyhw.tools.fuzz.views import Seeded, WrongValue, chain

KERNEL = """
define amdgpu_kernel void @mix(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %k) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %in, i32 %i
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %x = load i32, ptr addrspace(1) %p
  %y = mul i32 %x, %k
  %z = add i32 %y, %i
  store i32 %z, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="1,64" "uniform-work-group-size"="true" }
"""
PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry mix(.param .u64 out, .param .u64 in, .param .u32 k) {
  .reg .b32 %r<5>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; ld.param.u32 %r1, [k];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %d3, %r2, 4;
  add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;
  ld.global.u32 %r3, [%d2];
  mad.lo.s32 %r4, %r3, %r1, %r2;
  st.global.u32 [%d1], %r4;
  ret;
}
"""
SHAPES = ((5,), (3, 4), (64,), (16, 8))
STUCK_S = 300.0  # of no progress by any thread: then all of them show where they stand


def binary(device: str) -> bytes | str:
  """The kernel that is launched on a device: out = in * k + i."""
  return PTX if device.startswith("NV") else code_object()


@cache
def code_object(text: str = KERNEL) -> bytes:
  """A kernel of LLVM IR for AMD: that one, or another."""
  import llvmlite.binding as llvm
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx1100", opt=2, reloc="pic")
  head = f'target triple = "amdgcn-amd-amdhsa"\ntarget datalayout = "{machine.target_data}"\n'
  return bytes(machine.emit_object(llvm.parse_assembly(head + text)))


@dataclass
class Plan:
  """What the threads do. `devices` are for expressions, AMD, EMU and NV for launches too."""
  devices: Sequence[str] = ("AMD",)
  threads: int = 8
  rounds: int = 100
  seed: str = "0"
  close: bool = False
  faults: str = ""
  switch: float = 1e-6
  wrong: list[str] = field(default_factory=list)
  done: int = 0
  _counting: threading.Lock = field(default_factory=threading.Lock)

  def count(self) -> None:
    """A round is over."""
    with self._counting: self.done += 1

  def blame(self, who: str, what: str) -> None:
    """Something is wrong."""
    with self._counting: self.wrong.append(f"{who}: {what}")


class Worker:
  """One thread's work."""

  def __init__(self, plan: Plan, number: int) -> None:
    self.plan, self.name = plan, f"thread {number}"
    self.rng, self.choose = random.Random(f"{plan.seed}.{number}"), Seeded(f"{plan.seed}.{number}")
    self.weight = {d: Tensor(np.arange(12, dtype=np.int32).reshape(4, 3), device=d).realize() for d in self.own()}
    self.jits = {d: TinyJit(lambda t, d=d: t @ self.weight[d] + 1) for d in self.own()}

  def own(self) -> Sequence[str]: return () if self.plan.close else self.plan.devices

  def same(self, what: str, got: Any, want: Any) -> None:
    """Note a wrong value."""
    if not np.array_equal(got, want): self.plan.blame(self.name, f"{what}: {np.asarray(got)!r}, not {want!r}")

  def launch(self, device: str) -> None:
    """A ready kernel, arrays in and out."""
    n, k = self.rng.randint(1, 64), self.rng.randint(1, 1000)
    data = np.array([self.rng.randint(0, 1000) for _ in range(n)], np.int32)
    out, same = tinyhw.launch(binary(device), "mix", 1, n, [np.zeros(n, np.int32), data, np.int32(k)], device)
    self.same(f"launch on {device}", out, data * k + np.arange(n, dtype=np.int32))
    self.same(f"input of a launch on {device}", same, data)

  def expression(self, device: str) -> None:
    """A few operations, a view among them, in one or several kernels."""
    shape, k = self.rng.choice(SHAPES), self.rng.randint(1, 3)  # few kernels, of which each has many launches
    data = np.array([self.rng.randint(-50, 50) for _ in range(int(np.prod(shape)))], np.int32).reshape(shape)
    x = Tensor(data, device=device)
    kind = self.rng.randint(0, 3)
    if kind == 0: self.same(f"sum on {device}", (x * k + 1).sum().numpy(), (data * k + 1).sum(dtype=np.int32))
    elif kind == 1:
      middle = (x + k).realize()
      self.same(f"chain on {device}", (middle.transpose() if len(shape) > 1 else middle.flip(0)).numpy() * 2,
                (data.T if len(shape) > 1 else data[::-1]) * 2 + 2 * k)
    elif kind == 2: self.same(f"compare on {device}", (x < k).numpy(), data < k)
    else:
      first, second = x * k, x - k
      self.same(f"two on {device}", (first + second).numpy(), data * k + data - k)
      self.same(f"copy on {device}", first.to(self.rng.choice(self.plan.devices)).numpy(), data * k)

  def rare(self, device: str) -> None:
    """A replay, a gradient, random numbers, or a whole life of tensors."""
    kind = self.rng.randint(0, 4)
    if kind == 0 and device in self.jits:
      data = np.array([[self.rng.randint(0, 9) for _ in range(4)] for _ in range(2)], np.int32)
      want = data @ np.arange(12, dtype=np.int32).reshape(4, 3) + 1
      self.same(f"replay on {device}", self.jits[device](Tensor(data, device=device)).numpy(), want)
    elif kind == 1:
      p = Tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
      with Tensor.no_grad(): loose = p * 2
      (p * p).sum().backward()
      assert p.grad is not None and not loose.requires_grad
      self.same(f"gradient on {device}", p.grad.numpy(), np.array([2.0, 4.0, 6.0], np.float32))
    elif kind == 2:
      drawn = Tensor.rand(16, device=device).numpy()
      if not ((drawn >= 0) & (drawn < 1)).all(): self.plan.blame(self.name, f"rand on {device}: {drawn}")
    elif kind == 3 and not self.plan.close:
      try: chain(tuple(self.plan.devices), self.choose)
      except WrongValue as error: self.plan.blame(self.name, str(error))
    elif self.plan.close: Device[device].close()

  def fault(self) -> None:
    """A kernel that reads memory that is not there, and the card made anew."""
    device = self.plan.faults
    try:
      (Tensor([1.0, 2.0], device=device) + 1).numpy()
      opened = Device[device]
      kernel = next(iter(opened.kernels.values()), None)
      if kernel is None: return
      bad = [Allocation(0x7000_0000_0000, 8)] * len(kernel.spec.buffer_order)
      kernel.program(bad, kernel.spec.variables and [0] * len(kernel.spec.variables) or [], kernel.spec.grid,
                     kernel.spec.block)
      opened.synchronize()
      self.plan.blame(self.name, "a fault that nobody saw")
    except DeviceError: Device.reset(device)

  def round(self, number: int) -> None:
    """One of each."""
    device = self.rng.choice(self.plan.devices)
    steps: list[Callable[[], None]] = [lambda: self.expression(device)]
    if device.startswith(("AMD", "EMU", "NV")): steps.append(lambda: self.launch(device))
    if self.rng.random() < 0.1: steps.append(lambda: self.rare(device))
    if self.plan.faults and number % 10 == 0: steps.append(self.fault)
    for step in steps:
      try: step()
      except DeviceError as error:
        if not self.plan.close or not any(word in str(error) for word in ("closed", "reset")): raise

  def run(self, start: threading.Barrier) -> None:
    """All rounds; the first thing that goes wrong ends them."""
    start.wait()
    try:
      for number in range(self.plan.rounds):
        if self.plan.wrong: return
        self.round(number)
        self.plan.count()
    except Exception: self.plan.blame(self.name, traceback.format_exc())


def run(plan: Plan) -> list[str]:
  """Do what is planned; what went wrong."""
  before = sys.getswitchinterval()
  start = threading.Barrier(plan.threads)
  workers = [Worker(plan, number) for number in range(plan.threads)]
  threads = [threading.Thread(target=w.run, args=(start,), name=w.name, daemon=True) for w in workers]
  sys.setswitchinterval(plan.switch)
  try:
    for thread in threads: thread.start()
    seen, since = -1, time.monotonic()
    while any(t.is_alive() for t in threads):
      for thread in threads: thread.join(0.2)
      if plan.done != seen: seen, since = plan.done, time.monotonic()
      elif time.monotonic() - since > STUCK_S:
        frames = sys._current_frames()
        where = [f"{t.name}\n{''.join(traceback.format_stack(frames[t.ident]))}" for t in threads
                 if t.ident in frames]
        return [*plan.wrong, f"stuck after {plan.done} rounds:", *where]
  finally: sys.setswitchinterval(before)
  return plan.wrong


def main() -> int:
  """Run what the command line asks for; the exit status is 1 where something is wrong."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.fuzz.threads", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--threads", type=int, default=8)
  parser.add_argument("--rounds", type=int, default=100, help="of each thread (default: 100)")
  parser.add_argument("--repeat", type=int, default=1, help="how often, each time with another seed")
  parser.add_argument("--seed", default="0")
  parser.add_argument("--devices", default="AMD", help="names, with commas (default: AMD)")
  parser.add_argument("--close", action="store_true", help="threads close devices, which open again")
  parser.add_argument("--faults", default="", metavar="DEVICE", help="threads fault on this device, and reset it")
  parser.add_argument("--switch", type=float, default=1e-6, help="seconds between changes of threads (default: 1e-6)")
  options = parser.parse_args()
  os.environ.setdefault("MOCKGPU", "gfx1100,gfx1100")  # AMD is a mock machine unless the user has chosen
  failed, started = 0, time.monotonic()
  for number in range(options.repeat):
    plan = Plan(options.devices.split(","), options.threads, options.rounds, f"{options.seed}.{number}", options.close,
                options.faults, options.switch)
    begin, wrong = time.monotonic(), run(plan)
    Device.close()
    failed += bool(wrong)
    how = "wrong" if wrong else "all right"
    print(f"run {number + 1}: {plan.done} rounds, {how}, {time.monotonic() - begin:.1f} s", flush=True)
    for text in wrong[:5]: print(text, flush=True)
    if any(text.startswith("stuck") for text in wrong): os._exit(1)  # its threads would not end
  print(f"{options.threads} threads x {options.rounds} rounds on {options.devices}: {options.repeat - failed} of "
        f"{options.repeat} runs all right, {time.monotonic() - started:.0f} s")
  return 1 if failed else 0


if __name__ == "__main__": sys.exit(main())
