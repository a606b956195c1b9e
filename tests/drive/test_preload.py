"""Kernel arguments that the command processor puts in SGPRs (gfx942), and the prologue for where it does not."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import tinyhw
from tests.drive.test_program import changed
from tests.emulator.gpu import TRIPLE
from tinyhw.autogen import amdhsa
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.devices.registry import emulated
from tinyhw.drive.amd.program import user_sgprs
from tinyhw.wire import codeobject
from tinyhw.wire.codeobject import PRELOAD_PROLOGUE, metadata

# LLVM preloads `inreg` parameters; an attribute for each register that a kernel could ask for and does not.
NO_INPUTS = " ".join(f'"amdgpu-no-{n}"' for n in ("dispatch-ptr", "queue-ptr", "dispatch-id", "implicitarg-ptr",
                                                "workgroup-id-y", "workgroup-id-z"))
KERNEL = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) {0} %p, i32 {0} %a, i16 {0} %b, i64 {0} %c, i32 %d) {1} {{
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %n = call i32 @llvm.amdgcn.workgroup.id.x()
  %m = shl i32 %n, 6
  %i = add i32 %l, %m
  %g = getelementptr i64, ptr addrspace(1) %p, i32 %i
  %w = sext i16 %b to i64
  %x = sext i32 %a to i64
  %s = add i64 %w, %x
  %t = mul i64 %s, %c
  %y = sext i32 %d to i64
  %u = add i64 %t, %y
  store i64 %u, ptr addrspace(1) %g
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
"""
ARGUMENTS: tuple[Any, ...] = (np.zeros(128, np.int64), np.int32(-5), np.int16(-300), np.int64(1 << 40 | 3), np.int32(9))
WANT = (-5 - 300) * (1 << 40 | 3) + 9


def kernel(where: str = "inreg", attributes: str = NO_INPUTS) -> bytes:
  """The object of a kernel whose first four arguments are preloaded."""
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu="gfx942", opt=2)
  return bytes(machine.emit_object(llvm.parse_assembly(KERNEL.format(where, attributes))))


@pytest.mark.parametrize("engine", ["ref", "jit", "both"])
@pytest.mark.parametrize("attributes", [NO_INPUTS, ""])
def test_preloaded_arguments(engine: str, attributes: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Behind no other registers, and behind those of the dispatch packet, the queue, the arguments and the dispatch."""
  monkeypatch.setenv("EMU", engine)
  binary = kernel("inreg", attributes)
  loaded = codeobject.load(binary).kernel("k")
  assert loaded.preload == (0, 6) and loaded.start_offset == loaded.entry_offset + PRELOAD_PROLOGUE
  got = tinyhw.launch(binary, "k", (2,), (64,), ARGUMENTS, device="EMU")
  assert (got[0] == WANT).all()
  plain = kernel("", attributes)
  assert codeobject.load(plain).kernel("k").preload == (0, 0)
  assert (tinyhw.launch(plain, "k", (2,), (64,), ARGUMENTS, device="EMU")[0] == WANT).all()


def test_the_prologue_loads_what_is_not_preloaded() -> None:
  """Firmware that does not preload starts at the entry point, with other SGPRs there: the result is the same."""
  runtime = emulated()
  program = runtime.load_kernel(kernel(), "k")
  out = runtime.alloc(1024)
  program.layout.packer(1, [0, 0, 0, 0])
  payload = bytearray(program.kernel.kernarg_size)
  for p, value in zip(program.kernel.arguments, (np.uint64(out.address), *ARGUMENTS[1:]), strict=True):
    payload[p.offset:p.offset + p.size] = value.tobytes()
  ready = program.ready(bytes(payload), (2, 1, 1), (64, 1, 1))
  at = len(user_sgprs(program.kernel, "gfx942", 0).values)
  users = ready.dispatch.user_data
  assert users[at:at + 2] == (out.address & 0xFFFFFFFF, out.address >> 32) and users[at + 2] == 0xFFFFFFFB
  for start, registers in ((0, users), (-PRELOAD_PROLOGUE, (*users[:at], *[0xDEADBEEF] * (len(users) - at)))):
    runtime.copyin(out, memoryview(bytes(1024)))
    runtime.run(replace(ready, dispatch=replace(ready.dispatch, entry_pc=ready.dispatch.entry_pc + start,
                                                user_data=registers)))
    got = np.empty(128, np.int64)
    runtime.copyout(memoryview(got), out)
    assert (got == WANT).all()
  program.release(ready)


def test_observers_know_the_registers_and_the_kernel() -> None:
  """The checks find nothing undefined; report and debugger name the kernel and begin where its waves do."""
  binary = kernel()
  report = tinyhw.report(binary, "k", (2,), (64,), ARGUMENTS)
  assert report.kernel == "k" and not any("dwordx4" in m.mnemonic for m in report.mnemonics)
  with tinyhw.debug(binary, "k", (2,), (64,), ARGUMENTS, check="1") as session:
    assert session.symbols["k"] == session.wave.pc
    session.run()


def test_fields_that_contradict_are_refused() -> None:
  code = codeobject.load(kernel())
  k = code.kernel("k")

  def spec(first: int, count: int) -> Any:
    return changed(k, kernarg_preload=first << amdhsa.KERNARG_PRELOAD_SPEC_OFFSET_SHIFT | count)

  assert user_sgprs(k, "gfx942", 0).preload == (0, 6) and user_sgprs(spec(2, 3), "gfx942", 0).preload == (2, 3)
  with pytest.raises(InvalidArgument, match="need 9 user SGPRs, its descriptor has 8"):
    user_sgprs(spec(0, 7), "gfx942", 0)
  with pytest.raises(InvalidArgument, match="preloads dwords 4 to 9 of 28 bytes of arguments"):
    user_sgprs(spec(4, 6), "gfx942", 0)
  with pytest.raises(InvalidArgument, match="17 user SGPRs, a wave gets at most 16"):
    user_sgprs(changed(k, compute_pgm_rsrc2=17 << 1), "gfx942", 0)
  for other in ("gfx1100", "gfx1201"):
    with pytest.raises(Unsupported, match=f"kernarg preload.*{other}"): user_sgprs(k, other, 0)


def test_code_follows_the_prologue() -> None:
  """The field says that the code goes on 256 bytes behind the entry point."""
  code = codeobject.load(kernel())
  k = code.kernel("k")
  short = tuple(replace(s, size=k.start_offset - s.offset) if s.executable else s for s in code.segments)
  with pytest.raises(DecodeError, match="nothing follows the 256 bytes"):
    metadata._kernel("k.kd", k.descriptor_offset, bytearray(code.image), short, None)
