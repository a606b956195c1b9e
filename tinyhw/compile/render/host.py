"""The host processor: a kernel is `void NAME(ptr buffer0, ..., i32 value0, ...)` in an object file.

All loops, also those over the output, are inside the function: a launch is one call. Or the kernel is in stretches
(`gidx0`), or has local memory: then it is `void NAME(ptr arguments, i32 first, i32 last, ptr scratch)`, as `drive.cpu`
has it. The buffers of a launch do not overlap. The object needs nothing from outside but memset and memcpy, which LLVM
may call, and the C library's functions of numbers where a processor has no instruction (`fma`, `trunc`): all exact.

Values do not depend on the processor. So MULACC is fused on all (of halves on none).
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.compile.render import objects
from tinyhw.compile.render.llvm import LLVMRenderer, LLVMWriter, register_type, suffix
from tinyhw.core.errors import Unsupported
from tinyhw.core.host import GENERIC, Host
from tinyhw.ir.dtype import DType, PtrDType
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

ALIGNMENT = 64        # of local memory, in bytes
# Vectors of 64 bytes that a tile holds: three quarters of the registers, 32 of 64 bytes, 16 of 32, 32 of 16 on other
# processors; else 16 of 16.
TILES = {"x86-64-v4": 24, "x86-64-v3": 6, GENERIC: 6}
FEW = 1 << 12         # steps up to which vectors that LLVM would make are not worth its time
BRIEF = 1 << 12       # executed UOps up to which better code is a fraction of a microsecond, and milliseconds of LLVM's


def _run(uops: Sequence[UOp]) -> tuple[int, int]:
  """(how often the innermost code of a program runs, how many UOps run), about."""
  open_, most, all_ = 1, 1, 0
  for u in uops:
    if u.op is Ops.RANGE: open_ *= int(u.src[0].vmax)
    elif u.op is Ops.ENDRANGE: open_ //= int(u.src[0].src[0].vmax)
    most, all_ = max(most, open_), all_ + open_
  return most, all_


def check_stretches(target: str, name: str, uops: Sequence[UOp]) -> None:
  """Refuse a grid that is not of stretches alone."""
  for u in uops:
    if u.op is Ops.SPECIAL and u.arg.name != "gidx0":
      raise Unsupported("uop", f"SPECIAL {u.arg.name}", arch=target, where=f"kernel {name}",
                        hint="stretches of a host kernel are gidx0")


class HostRenderer(LLVMRenderer):
  """Compiles for the processor of this process (`host`: one of its levels), at LLVM's `optimization` level."""
  target = "host"
  vector_bytes = 32
  tile = 8
  lanes = 64
  pool = True
  max_local = 1 << 20
  begins_anywhere = True

  def __init__(self, optimization: int = 2, host: Host | None = None) -> None:
    super().__init__(optimization)
    self.host = host or objects.host()
    self._processor = objects.Processor(self.host.triple, self.host.cpu)
    self.masks = self.host.cpu == "x86-64-v4"
    self.tile_vectors = TILES.get(self.host.cpu, 3)

  @property
  def key(self) -> str: return f"{super().key} {self.host}"

  @property
  def processor(self) -> objects.Processor: return self._processor

  def pointer_argument(self, number: int) -> str:
    return f"ptr noalias noundef nonnull %data{number}"

  def multiply_add(self, writer: LLVMWriter, dtype: DType, x: Sequence[str]) -> str:
    t = register_type(dtype)
    if dtype.bits == 16: return writer.new(f"fadd {t} {writer.new(f'fmul {t} {x[0]}, {x[1]}')}, {x[2]}")
    return writer.intrinsic(t, f"fma.{suffix(dtype)}", *((t, y) for y in x))

  def special(self, writer: LLVMWriter, u: UOp) -> str: return "%stretch"

  def local_memory(self, writer: LLVMWriter, u: UOp) -> str: return f"%local.{u.arg}"

  def barrier(self, writer: LLVMWriter, u: UOp) -> None:
    """Nobody else writes a stretch's local memory."""

  def check(self, name: str, uops: Sequence[UOp]) -> None:
    check_stretches(self.target, name, uops)
    super().check(name, uops)

  def function(self, name: str, uops: Sequence[UOp], arguments: list[str], body: str, declarations: list[str]) -> str:
    rest = [*declarations, self.host.functions]
    most, all_ = _run(uops)
    if any(u.dtype.count > 1 for u in uops) or most < FEW: rest.append(objects.AS_WRITTEN)
    local = [u for u in uops if u.op is Ops.DEFINE_LOCAL and isinstance(u.dtype, PtrDType)]
    if not local and not any(u.op is Ops.SPECIAL for u in uops):
      if all_ <= BRIEF: rest.append(objects.AT_ONCE)
      return "\n".join([f"define void @{name}({', '.join(arguments)}) nounwind {{", "entry:", body, "}", *rest])
    places, size = [], 0
    for u in local:
      assert isinstance(u.dtype, PtrDType)
      places.append(f"  %local.{u.arg} = getelementptr i8, ptr %scratch, i64 {size}")
      size += -(-u.dtype.size * u.dtype.base.itemsize // ALIGNMENT) * ALIGNMENT
    loads, passed = [], []
    for i, argument in enumerate(arguments):
      kind = argument.split()[0]
      loads += [f"  %p{i} = getelementptr i64, ptr %arguments, i64 {i}", f"  %a{i} = load {kind}, ptr %p{i}"]
      passed.append(f"{kind} %a{i}")
    inner = [*arguments, "i32 noundef %stretch", f"ptr noalias noundef align {ALIGNMENT} %scratch"]
    return "\n".join([
      f"@{name}.scratch = constant i64 {size}",
      f"define internal void @{name}.stretch({', '.join(inner)}) noinline nounwind {{", "entry:", *places, body, "}",
      f"define void @{name}(ptr %arguments, i32 %first, i32 %last, ptr %scratch) nounwind {{", "entry:", *loads,
      "  br label %loop", "loop:", "  %i = phi i32 [ %first, %entry ], [ %next, %loop ]",
      f"  call void @{name}.stretch({', '.join([*passed, 'i32 %i', 'ptr %scratch'])})", "  %next = add nsw i32 %i, 1",
      "  %more = icmp slt i32 %next, %last", "  br i1 %more, label %loop, label %done", "done:", "  ret void", "}",
      *rest])
