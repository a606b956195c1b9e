"""Cases of several work-items together: atomics, LDS with barriers, ids in three dimensions."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinyhw.tools.fuzz.case import Array, Case
from tinyhw.tools.fuzz.fills import whole

BARRIER = ('fence syncscope("workgroup") release\n  call void @llvm.amdgcn.s.barrier()\n  '
           'fence syncscope("workgroup") acquire\n  ')
DECLARE_BARRIER = "declare void @llvm.amdgcn.s.barrier()"
BITS = {"i32": "i32", "i64": "i64", "float": "i32", "double": "i64", "i16": "i16", "i8": "i8", "<2 x half>": "i32"}


def atomics() -> Iterator[Case]:
  """Read-modify-write on global memory and LDS, returning or not, with and without contention."""
  table: list[tuple[str, str, Any]] = [
    (kind, op, None) for kind in ("i32", "i64")
    for op in ("add", "sub", "and", "or", "xor", "min", "max", "umin", "umax", "xchg", "nand", "uinc_wrap",
               "udec_wrap")]
  table += [("float", op, whole) for op in ("fadd", "fsub", "fmin", "fmax", "xchg")]
  table += [("double", op, whole) for op in ("fadd", "fmin", "fmax")]
  table += [("i16", "add", None), ("i8", "umax", None), ("<2 x half>", "fadd", whole)]
  for kind, op, fill in table:
    name = f"{op}_{kind}".replace("<", "v").replace(" x ", "").replace(">", "")
    yield Case(f"atomic_own_{name}", (kind, kind), (kind,), f"%q = getelementptr {kind}, ptr addrspace(1) %pa, i32 "
               f"%i\n  "
               f'%r = atomicrmw {op} ptr addrspace(1) %q, {kind} %b syncscope("agent") monotonic', inplace=(0,),
               fill=fill)
    yield Case(f"atomic_lds_{name}", (kind, kind), (kind, kind),
               f"%q = getelementptr [64 x {kind}], ptr addrspace(3) @atomic_lds_{name}.buf, i32 0, i32 %lane\n  "
               f"store {kind} %a, ptr addrspace(3) %q\n  "
               f'%r = atomicrmw {op} ptr addrspace(3) %q, {kind} %b syncscope("workgroup") monotonic\n  '
               f"%s = load {kind}, ptr addrspace(3) %q",
               f"@atomic_lds_{name}.buf = internal addrspace(3) global [64 x {kind}] undef", fill=fill)
    if op in ("xchg", "nand", "uinc_wrap", "udec_wrap", "fsub"): continue
    lanes = 512 if kind in ("i32", "i64", "float") else 128  # the others are loops, one lane a round
    yield Case(f"atomic_shared_{name}", (kind, kind), (), "%k0 = mul i32 %i, 7\n  %k = and i32 %k0, 15\n  "
               f"%q = getelementptr {kind}, ptr addrspace(1) %pa, i32 %k\n  "
               f'%old = atomicrmw {op} ptr addrspace(1) %q, {kind} %b syncscope("agent") monotonic', inplace=(0,),
               fill=fill, lanes=lanes)
    yield Case(f"atomic_one_{name}", (kind, kind), (),
               f'%old = atomicrmw {op} ptr addrspace(1) %pa, {kind} %b syncscope("agent") seq_cst', inplace=(0,),
               fill=fill, lanes=lanes)
  yield Case("atomic_ticket", ("i32", "i32"), ("i32",), "%first1 = getelementptr i32, ptr addrspace(1) %pa, i32 3\n  "
             '%r = atomicrmw add ptr addrspace(1) %first1, i32 1 syncscope("agent") monotonic', inplace=(0,),
             unordered=True)
  for kind in ("i32", "i64"):
    for space in (1, 3):
      where = ("%q = getelementptr T, ptr addrspace(1) %pa, i32 %i\n  " if space == 1 else
               f"%q = getelementptr [64 x T], ptr addrspace(3) @cmpxchg_{kind}_3.buf, i32 0, i32 %lane\n  "
               "store T %a, ptr addrspace(3) %q\n  ").replace("T", kind)
      yield Case(f"cmpxchg_{kind}_{space}", (kind, kind, "i1"), (kind, "i1"), f"%e = select i1 %c, {kind} %a, {kind} "
                 f"%b\n  "
                 f"{where}%o = cmpxchg ptr addrspace({space}) %q, {kind} %e, {kind} %b monotonic monotonic\n  "
                 f"%r = extractvalue {{{kind}, i1}} %o, 0\n  %s = extractvalue {{{kind}, i1}} %o, 1",
                 f"@cmpxchg_{kind}_3.buf = internal addrspace(3) global [64 x {kind}] undef" if space == 3 else "",
                 inplace=(0,))
  yield Case("cas_loop", ("i32", "i32"), (), "%k = and i32 %i, 3\n  %q = getelementptr i32, ptr addrspace(1) %pa, i32 "
             "%k\n  "
             "%v0 = load atomic i32, ptr addrspace(1) %q monotonic, align 4\n  br label %try\ntry:\n  "
             "%v = phi i32 [%v0, %body], [%seen, %try]\n  %x = mul i32 %b, 3\n  %w = add i32 %v, %x\n  "
             '%o = cmpxchg ptr addrspace(1) %q, i32 %v, i32 %w syncscope("agent") acq_rel monotonic\n  '
             "%seen = extractvalue {i32, i1} %o, 0\n  %ok = extractvalue {i32, i1} %o, 1\n  "
             "br i1 %ok, label %end, label %try\nend:", inplace=(0,))
  yield Case("atomic_flat", ("i32", "i32"), ("i32",), "%q = getelementptr i32, ptr addrspace(1) %pa, i32 %i\n  "
             "%f = addrspacecast ptr addrspace(1) %q to ptr\n  "
             '%r = atomicrmw add ptr %f, i32 %b syncscope("agent") monotonic', inplace=(0,))
  for kind in ("i32", "i64", "i16"):
    yield Case(f"atomic_load_store_{kind}", (kind,), (kind,), f"%q = getelementptr {kind}, ptr addrspace(1) %pa, i32 "
               f"%i\n  "
               f"%v = load atomic {kind}, ptr addrspace(1) %q acquire, align {int(kind[1:]) // 8}\n  %w = xor {kind} "
               f"%v, 5\n  "
               f"store atomic {kind} %w, ptr addrspace(1) %q release, align {int(kind[1:]) // 8}\n  %r = add {kind} "
               f"%w, 1",
               inplace=(0,))


def _rows(function: Any, block: int, dtype: str = "u4") -> Any:
  """A NumPy witness that maps each workgroup's values."""
  def witness(arrays: list[Array]) -> list[Array]:
    x = arrays[0].view(dtype).reshape(-1, block)
    return [np.ascontiguousarray(function(x)).astype(dtype).reshape(-1).view(arrays[0].dtype)]
  return witness


def local() -> Iterator[Case]:
  """LDS shared by a workgroup, with barriers."""
  for block in (32, 64, 256):
    for kind, op, function in (("i32", "add", np.add), ("float", "fadd", np.add), ("i64", "add", np.add),
                               ("double", "fadd", np.add), ("i16", "add", np.add)):
      name = f"reduce_{kind}_{block}"
      step = (f"%at = getelementptr [{block} x {kind}], ptr addrspace(3) @{name}.buf, i32 0, i32 %lane\n  "
              f"store {kind} %a, ptr addrspace(3) %at\n  {BARRIER}br label %head\nhead:\n  "
              f"%w = phi i32 [{block // 2}, %body], [%w2, %next]\n  %low = icmp ult i32 %lane, %w\n  "
              "br i1 %low, label %sum, label %next\nsum:\n  %o = add i32 %lane, %w\n  "
              f"%q = getelementptr [{block} x {kind}], ptr addrspace(3) @{name}.buf, i32 0, i32 %o\n  "
              f"%x = load {kind}, ptr addrspace(3) %at\n  %y = load {kind}, ptr addrspace(3) %q\n  %z = {op} {kind} "
              f"%x, %y\n  "
              f"store {kind} %z, ptr addrspace(3) %at\n  br label %next\nnext:\n  {BARRIER}%w2 = lshr i32 %w, 1\n  "
              "%more = icmp ne i32 %w2, 0\n  br i1 %more, label %head, label %out\nout:\n  "
              f"%r = load {kind}, ptr addrspace(3) @{name}.buf")
      dtype = {"i32": "u4", "i64": "u8", "float": "f4", "double": "f8", "i16": "u2"}[kind]
      yield Case(name, (kind,), (kind,), step, f"@{name}.buf = internal addrspace(3) global [{block} x {kind}] "
                 f"undef\n\n"
                 + DECLARE_BARRIER, block=block, fill=whole if op == "fadd" else None,
                 witness=_rows(lambda x, f=function: np.repeat(f.reduce(x, axis=1, dtype=x.dtype), x.shape[1]),
                               block, dtype))
  for kind in ("i8", "i16", "i32", "i64", "<2 x i32>", "<4 x i32>", "<8 x half>"):
    name = "transpose_" + kind.replace("<", "v").replace(" x ", "").replace(">", "")
    yield Case(name, (kind,), (kind,), "%row = lshr i32 %lane, 3\n  %col = and i32 %lane, 7\n  %rw = mul i32 %col, "
               "9\n  "
               f"%to = add i32 %rw, %row\n  %p = getelementptr [80 x {kind}], ptr addrspace(3) @{name}.buf, i32 0, "
               f"i32 %to\n  "
               f"store {kind} %a, ptr addrspace(3) %p\n  {BARRIER}%r9 = mul i32 %row, 9\n  %from = add i32 %r9, "
               f"%col\n  "
               f"%q = getelementptr [80 x {kind}], ptr addrspace(3) @{name}.buf, i32 0, i32 %from\n  "
               f"%r = load {kind}, ptr addrspace(3) %q", f"@{name}.buf = internal addrspace(3) global [80 x {kind}] "
               f"undef\n\n"
               + DECLARE_BARRIER, bits=True, witness=lambda x: [
                 x[0].reshape(-1, 8, 8, *x[0].shape[1:]).swapaxes(1, 2).reshape(x[0].shape).copy()])
  yield Case("scan", ("i32",), ("i32",), "%at = getelementptr [64 x i32], ptr addrspace(3) @scan.buf, i32 0, i32 "
             "%lane\n  "
             f"br label %head\nhead:\n  %w = phi i32 [1, %body], [%w2, %join]\n  %v = phi i32 [%a, %body], [%v2, "
             f"%join]\n  "
             f"store i32 %v, ptr addrspace(3) %at\n  {BARRIER}%in = icmp uge i32 %lane, %w\n  br i1 %in, label %take, "
             "label %join\ntake:\n  %o = sub i32 %lane, %w\n  "
             "%q = getelementptr [64 x i32], ptr addrspace(3) @scan.buf, i32 0, i32 %o\n  %x = load i32, ptr "
             "addrspace(3) %q\n"
             f"  %v1 = add i32 %v, %x\n  br label %join\njoin:\n  %v2 = phi i32 [%v, %head], [%v1, %take]\n  {BARRIER}"
             "%w2 = shl i32 %w, 1\n  %more = icmp ult i32 %w2, 64\n  br i1 %more, label %head, label %out\nout:\n  "
             "%r = add i32 %v2, 0", "@scan.buf = internal addrspace(3) global [64 x i32] undef\n\n" + DECLARE_BARRIER,
             witness=_rows(lambda x: np.cumsum(x, axis=1, dtype=np.uint32), 64))

  def counted(x: list[Array]) -> list[Array]:
    rows = (x[0] & 15).reshape(-1, 256)
    bins = np.stack([np.bincount(r, minlength=16) for r in rows])
    return [np.take_along_axis(bins, rows.astype(np.int64), axis=1).astype(np.uint32).reshape(-1)]
  yield Case("histogram", ("i32",), ("i32",), "%z = icmp ult i32 %lane, 16\n  br i1 %z, label %clear, label "
             "%go1\nclear:\n  "
             "%c0 = getelementptr [16 x i32], ptr addrspace(3) @histogram.buf, i32 0, i32 %lane\n  "
             f"store i32 0, ptr addrspace(3) %c0\n  br label %go1\ngo1:\n  {BARRIER}%k = and i32 %a, 15\n  "
             "%q = getelementptr [16 x i32], ptr addrspace(3) @histogram.buf, i32 0, i32 %k\n  "
             f'%old = atomicrmw add ptr addrspace(3) %q, i32 1 syncscope("workgroup") monotonic\n  {BARRIER}'
             "%r = load i32, ptr addrspace(3) %q",
             "@histogram.buf = internal addrspace(3) global [16 x i32] undef\n\n" + DECLARE_BARRIER, block=256,
             witness=counted)


def dimensions() -> Iterator[Case]:
  """Ids of work-items and workgroups, and the sizes that the launch tells."""
  dims = (3, 2, 2), (4, 4, 2)
  lanes = 3 * 2 * 2 * 4 * 4 * 2

  def coordinates(x: list[Array]) -> list[Array]:
    z, y, x_ = np.meshgrid(np.arange(4), np.arange(8), np.arange(12), indexing="ij")
    word = x_ % 4 | (y % 4) << 4 | (z % 2) << 8 | (x_ // 4) << 12 | (y // 4) << 16 | (z // 2) << 20
    return [word.reshape(-1).astype(np.uint32)]
  parts = []
  for k, name in enumerate(f"{what}.{axis}" for what in ("item", "group") for axis in "xyz"):
    parts.append(f"%s{k} = shl i32 %{name}, {4 * k}")
    parts.append(f"%t{k} = or i32 {f'%t{k - 1}' if k else '0'}, %s{k}")
  yield Case("ids", ("i32",), ("i32",), "\n  ".join(parts) + "\n  %r = or i32 %t5, 0", witness=coordinates, dims=dims,
             lanes=lanes)
  # Offsets in the hidden arguments of code object version 5 (AMDGPUUsage): group sizes from byte 12, counts from 0.
  sizes = []
  for k, at in enumerate((12, 14, 16)):
    sizes.append(f"%q{k} = getelementptr i8, ptr addrspace(4) %h, i32 {at}\n  %v{k} = load i16, ptr addrspace(4) "
                 f"%q{k}\n  "
                 f"%x{k} = zext i16 %v{k} to i32\n  %y{k} = shl i32 %x{k}, {4 * k}")
  for k, at in enumerate((0, 4, 8)):
    sizes.append(f"%q{k + 3} = getelementptr i8, ptr addrspace(4) %h, i32 {at}\n  "
                 f"%v{k + 3} = load i32, ptr addrspace(4) %q{k + 3}\n  %y{k + 3} = shl i32 %v{k + 3}, {4 * k + 12}")
  sizes += [f"%z{k} = or i32 {f'%z{k - 1}' if k else '0'}, %y{k}" for k in range(6)]
  word = 4 | 4 << 4 | 2 << 8 | 3 << 12 | 2 << 16 | 2 << 20
  yield Case("hidden_arguments", ("i32",), ("i32",), "%h = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n  "
             + "\n  ".join(sizes) + "\n  %r = or i32 %z5, 0", "declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()",
             witness=lambda x: [np.full(len(x[0]), word, np.uint32)], dims=dims, lanes=lanes)
  yield Case("dispatch_packet", ("i32",), ("i32",), "%h = call ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()\n  "
             "%q = getelementptr i8, ptr addrspace(4) %h, i32 4\n  %v = load i16, ptr addrspace(4) %q\n  "
             "%x = zext i16 %v to i32\n  %q2 = getelementptr i8, ptr addrspace(4) %h, i32 12\n  "
             "%w = load i32, ptr addrspace(4) %q2\n  %y = shl i32 %w, 8\n  %r = or i32 %x, %y",
             "declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()",
             witness=lambda x: [np.full(len(x[0]), 4 | 12 << 8, np.uint32)], dims=dims, lanes=lanes)


def all_groups() -> list[Case]:
  """All cases of this module."""
  return [*atomics(), *local(), *dimensions()]
