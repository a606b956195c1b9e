"""A case: a few lines of LLVM IR for one lane, rendered as a GPU kernel and as a host loop over all lanes."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Witness = Callable[[list[Array]], Sequence[Array]]
# Storage of a scalar type in arrays: i1 and i8 take a byte; half and bfloat are kept as bit patterns.
STORED: Final = {"i1": "u1", "i8": "u1", "i16": "u2", "i32": "u4", "i64": "u8", "half": "u2", "bfloat": "u2",
                 "float": "u4", "double": "u8"}
BLOCK: Final = 64
_VECTOR = re.compile(r"<(\d+) x (\w+)>")


def split(kind: str) -> tuple[int, str]:
  """(elements, scalar type) of an IR type: ("<4 x half>" -> 4, "half")."""
  found = _VECTOR.fullmatch(kind)
  return (int(found[1]), found[2]) if found else (1, kind)


def stored(kind: str) -> np.dtype[Any]:
  """The unsigned dtype that holds one element of a type."""
  return np.dtype(STORED[split(kind)[1]])


def width(kind: str) -> int:
  """Elements of a lane's slot in an array: three-element vectors take four, as in memory."""
  n = split(kind)[0]
  return 4 if n == 3 else n


@dataclass(frozen=True)
class Case:
  """IR for one lane.

  `body` reads %a, %b, ... (one for each of `inputs`, loaded for this lane), %i (lane index in the launch, i32) and
  %lanes (their number), may address %pa, %pb, ... and %po, %pp, ... (pointers to global memory), and defines %r, %s,
  ... (one for
  each of `outputs`), which are stored for this lane. Blocks may follow; the last one falls into the stores.
  Address spaces are written as the GPU wants them; the host text is the same without them.
  `gpu` replaces the body on the GPU, where an instruction is reached by a target intrinsic; `witness` replaces the host
  program by NumPy (arrays in and out as stored). `ulp` is the allowed distance of float results (0: same value, any NaN
  equals any NaN, and with `signless` either zero); `bits` compares patterns.
  `fill` shapes the inputs after they are drawn. `inplace` names inputs that the program changes: they are compared too.
  `dims` (workgroups, work-items of one, each x, y, z) replaces the line of `lanes` in groups of `block`; %i then counts
  work-items row by row. `unordered` compares results as sets: the order of the lanes is not fixed.
  `levels` are the optimization levels at which the compiler is right.
  """
  name: str
  inputs: tuple[str, ...]
  outputs: tuple[str, ...]
  body: str
  declarations: str = ""
  gpu: str | None = None
  gpu_declarations: str | None = None
  witness: Witness | None = None
  ulp: float = 0
  bits: bool = False
  signless: bool = False
  fill: Callable[[list[Array], np.random.Generator], None] | None = None
  inplace: tuple[int, ...] = ()
  lanes: int = 512
  block: int = BLOCK
  attributes: str = ""
  absolute: float = 0.0
  dims: tuple[tuple[int, int, int], tuple[int, int, int]] | None = None
  unordered: bool = False
  levels: tuple[int, ...] = (0, 1, 2, 3)

  @property
  def launch(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Workgroups and work-items of one."""
    return self.dims or ((self.lanes // self.block, 1, 1), (self.block, 1, 1))

  @property
  def pointers(self) -> list[str]:
    """Kernel parameters: inputs, then outputs."""
    first = [97 + i for i in range(len(self.inputs))]
    return [f"%p{chr(x)}" for x in first + [111 + i for i in range(len(self.outputs))]]


def _loads(case: Case) -> list[str]:
  out = []
  for at, kind in enumerate(case.inputs):
    x = chr(97 + at)
    if split(kind)[0] == 1:
      memory = "i8" if kind == "i1" else kind
      out.append(f"%g{x} = getelementptr {memory}, ptr addrspace(1) %p{x}, i32 %i")
      out.append(f"%{'m' if kind == 'i1' else ''}{x} = load {memory}, ptr addrspace(1) %g{x}")
      if kind == "i1": out.append(f"%{x} = trunc i8 %m{x} to i1")
    else:
      out.append(f"%g{x} = getelementptr {kind}, ptr addrspace(1) %p{x}, i32 %i")
      out.append(f"%{x} = load {kind}, ptr addrspace(1) %g{x}")
  return out


def _stores(case: Case) -> list[str]:
  out = []
  for at, kind in enumerate(case.outputs):
    x, p = chr(114 + at), chr(111 + at)
    value = f"{kind} %{x}"
    if kind == "i1":
      out.append(f"%m{x} = zext i1 %{x} to i8")
      kind, value = "i8", f"i8 %m{x}"
    out.append(f"%g{p} = getelementptr {kind}, ptr addrspace(1) %p{p}, i32 %i")
    out.append(f"store {value}, ptr addrspace(1) %g{p}")
  return out


def _allocas(body: str) -> list[str]:
  """Stack slots: they belong to the entry block, or the stack becomes dynamic."""
  return [line.strip() for line in body.split("\n") if " = alloca " in line]


def _without_allocas(body: str) -> str: return "\n".join(line for line in body.split("\n") if " = alloca " not in line)


def _linear(groups: tuple[int, int, int], block: tuple[int, int, int]) -> list[str]:
  """IR of %i, the row-by-row number of a work-item in three dimensions."""
  out, last = [], "0"
  for axis, k in (("z", 2), ("y", 1), ("x", 0)):
    out += [f"%item.{axis} = call i32 @llvm.amdgcn.workitem.id.{axis}()",
            f"%group.{axis} = call i32 @llvm.amdgcn.workgroup.id.{axis}()",
            f"%first.{axis} = mul i32 %group.{axis}, {block[k]}", f"%at.{axis} = add i32 %first.{axis}, %item.{axis}",
            f"%row.{axis} = mul i32 {last}, {groups[k] * block[k]}",
            f"%{'i' if k == 0 else f'sum.{axis}'} = add i32 %row.{axis}, %at.{axis}"]
    last = f"%sum.{axis}"
  return out


def gpu_text(case: Case) -> str:
  """The kernel definition (without declarations)."""
  body = case.body if case.gpu is None else case.gpu
  params = ", ".join(f"ptr addrspace(1) noalias {p}" for p in case.pointers)
  lines = ["%lane = call i32 @llvm.amdgcn.workitem.id.x()", "%group = call i32 @llvm.amdgcn.workgroup.id.x()"]
  if case.dims is None: lines += [f"%first = mul i32 %group, {case.block}", "%i = add i32 %first, %lane"]
  else: lines += _linear(*case.dims)
  lines += [*_loads(case), *_allocas(body), "br label %body"]
  body = _without_allocas(body)
  _, (x, y, z) = case.launch
  attributes = f'"amdgpu-flat-work-group-size"="{x * y * z},{x * y * z}" nounwind {case.attributes}'
  text = "\n  ".join([f"define amdgpu_kernel void @{case.name}({params}, i32 %lanes) {attributes} {{\nentry:", *lines])
  return f"{text}\nbody:\n  {body.strip()}\n  br label %done\ndone:\n  " + "\n  ".join([*_stores(case), "ret "
    "void"]) + "\n}\n"


def host_text(case: Case) -> str:
  """A function of one lane and a loop over the lanes (without declarations)."""
  params = ", ".join(f"ptr {p}" for p in case.pointers)
  lines = [f"%lane = urem i32 %i, {case.block}", f"%group = udiv i32 %i, {case.block}", *_loads(case), "br label %body"]
  lines = [*lines[:-1], *_allocas(case.body), lines[-1]]
  text = "\n  ".join([f"define internal void @{case.name}.lane({params}, i32 %lanes, i32 %i) {{\nentry:", *lines])
  text += f"\nbody:\n  {_without_allocas(case.body).strip()}\n  br label %done\ndone:\n  "
  text += "\n  ".join([*_stores(case), "ret void"]) + "\n}\n"
  text += "\n  ".join([
    f"define void @{case.name}({params}, i32 %lanes) {{\nentry:", "br label %loop\nloop:",
    "%i = phi i32 [0, %entry], [%next, %loop]",
    f"call void @{case.name}.lane({params}, i32 %lanes, i32 %i)", "%next = add i32 %i, 1", "%more = icmp ult i32 "
    "%next, %lanes",
    "br i1 %more, label %loop, label %end\nend:", "ret void\n}\n"])
  return without_address_spaces(text)


def without_address_spaces(text: str) -> str:
  """The same IR for a target with one address space."""
  text = re.sub(r",? addrspace\(\d\)", "", text)
  return text.replace("addrspacecast ", "bitcast ").replace("amdgpu_kernel ", "").replace("amdgpu_gfx ", "")


def module(cases: Sequence[Case], *, gpu: bool, features: str = "") -> str:
  """IR of many cases as one module. Declarations that several cases need come once."""
  declarations: dict[str, None] = {}
  if gpu:
    for name in (f"work{k}.id.{axis}" for k in ("item", "group") for axis in "xyz"): declarations[f"declare i32 "
      f"@llvm.amdgcn.{name}()"] = None
  for case in cases:
    extra = case.declarations
    if gpu and case.gpu is not None: extra = case.gpu_declarations if case.gpu_declarations is not None else extra
    for block in extra.strip().split("\n\n"):
      if block.startswith("declare"):
        for line in block.split("\n"): declarations[line.strip()] = None
      elif block: declarations[block] = None
  head = "\n".join(d if gpu else without_address_spaces(d) for d in declarations)
  return head + "\n" + "\n".join(gpu_text(c) if gpu else host_text(c) for c in cases)
