"""The text of a module around a kernel's blocks: how it is entered and left. And that of the module beside it, which
kernels have in common: how blocks of threads are run, and how addresses are found."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tinyhw.emulator.jit.memory import finder
from tinyhw.emulator.jit.ptx.launch import runner
from tinyhw.emulator.jit.ptx.memory import clocks, order, watched
from tinyhw.emulator.jit.ptx.module import layout as at
from tinyhw.emulator.jit.values import BOOL
from tinyhw.emulator.jit.vectors import ALIGNED

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.module.emit import Lanes

_WINDOW: Final = 1 << 32
_COUNTED: Final = ("declare i64 @llvm.cttz.i64(i64, i1)", "declare i32 @llvm.cttz.i32(i32, i1)")
# What a kernel's module calls of the one beside it, and intrinsics.
_SHARED: Final = {re.findall(r"@([\w.]+)", text)[0]: text for text in (
  *_COUNTED, "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
  "declare hidden i1 @find(ptr, ptr, i64, i64, i64, i64)", "declare hidden i1 @look(ptr, ptr, i32, i64, i64, i64)",
  "declare hidden i1 @slow(ptr, ptr, ptr, i32, i64, i64, i64, i64, i1)", "declare hidden i1 @lives(ptr, ptr, i64)",
  "declare hidden void @arrived(ptr, ptr, i32, i32)")}

_SEEN: Final = f"""
  %seen.at = getelementptr i8, ptr %context, i64 {at.SEEN}
  %seen = load ptr, ptr %seen.at
  %what.at = getelementptr i64, ptr %seen, i64 %i
  %what = load i64, ptr %what.at
  %what.now = or i64 %what, %access
  store i64 %what.now, ptr %what.at"""


def find(watches: bool) -> str:
  """Looks an address up for a site: whether the mapping lets `extent` bytes from there on be accessed. In watched code
  rows may overlap, and what they serve is noted."""
  return finder("  %count = load i64, ptr %context", at.TABLE, ", i64 %shift", "%good", """  %ones = shl i64 1, %shift
  %low = sub i64 %ones, 1
  %rest = and i64 %relative, %low
  %aligned = icmp eq i64 %rest, 0
  %good = and i1 %legal.inside, %aligned""", "%multiples", """  %room = sub i64 %size, %extent
  %whole = lshr i64 %room, %shift
  %multiples = add i64 %whole, 1""" + (_SEEN if watches else ""), "%other" if watches else "%none", "hidden")


def look(clustered: bool) -> str:
  """Looks the address of each thread up: whether all may be accessed; then their host addresses are in the context."""
  from tinyhw.emulator.ptx.memory.spaces import LOCAL_WINDOW, SHARED_WINDOW
  test, more = runner.far() if clustered else ("", "")
  return f"""
define hidden i1 @look(ptr %context, ptr %state, i32 %mask, i64 %width, i64 %access, i64 %mode) noinline {{
  %row = alloca [{at.ROW} x i8]
  store [{at.ROW} x i8] zeroinitializer, ptr %row
  %row.count = getelementptr i8, ptr %row, i64 8
  %row.distance = getelementptr i8, ptr %row, i64 16
  %low = sub i64 %width, 1
  %shift = call i64 @llvm.cttz.i64(i64 %width, i1 false)
  %shared.at = getelementptr i8, ptr %state, i64 {at.SHARED}
  %shared = load i64, ptr %shared.at
  %total.at = getelementptr i8, ptr %context, i64 {at.SHARED_SIZE}
  %total = load i64, ptr %total.at
  %addresses = getelementptr i8, ptr %context, i64 {at.ADDRESSES}
  %hosts = getelementptr i8, ptr %context, i64 {at.HOSTS}
  %is.shared = icmp eq i64 %mode, 1
  %is.generic = icmp eq i64 %mode, 3
  br label %look
look:
  %left = phi i32 [ %mask, %0 ], [ %rest, %kept ]
  %over = icmp eq i32 %left, 0
  br i1 %over, label %good, label %check
check:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %address.at = getelementptr i64, ptr %addresses, i32 %lane
  %address = load i64, ptr %address.at
  %odd = and i64 %address, %low
  %straight = icmp eq i64 %odd, 0
  br i1 %straight, label %where, label %fail
where:
  %in.window = sub i64 %address, {SHARED_WINDOW}
  %window = icmp ult i64 %in.window, {_WINDOW}
  %windowed = and i1 %window, %is.generic
  %any.shared = or i1 %is.shared, %windowed
  br i1 %any.shared, label %in.shared, label %in.global
in.shared:
  %offset = select i1 %windowed, i64 %in.window, i64 %address
{test}  %end = add i64 %offset, %width
  %wraps = icmp ult i64 %end, %offset
  %inside = icmp ule i64 %end, %total
  %no.wrap = xor i1 %wraps, true
  %fine = and i1 %inside, %no.wrap
  %host.shared = add i64 %shared, %offset
  br i1 %fine, label %kept, label %fail
in.global:
  %local = icmp uge i64 %address, {LOCAL_WINDOW}
  %stack = and i1 %local, %is.generic
  br i1 %stack, label %fail, label %known
known:
  %start = load i64, ptr %row
  %count = load i64, ptr %row.count
  %relative = sub i64 %address, %start
  %multiple = call i64 @llvm.fshr.i64(i64 %relative, i64 %relative, i64 %shift)
  %same = icmp ult i64 %multiple, %count
  br i1 %same, label %global, label %search
search:
  %found = call i1 @find(ptr %context, ptr %row, i64 %address, i64 %width, i64 %shift, i64 %access)
  br i1 %found, label %global, label %fail
global:
  %distance = load i64, ptr %row.distance
  %host.global = add i64 %address, %distance
  br label %kept
kept:
  %host = phi i64 [ %host.shared, %{"in.own" if clustered else "in.shared"} ], [ %host.global, %global ]{more}
  %host.at = getelementptr i64, ptr %hosts, i32 %lane
  store i64 %host, ptr %host.at
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %look
good:
  ret i1 true
fail:
  ret i1 false
}}
declare i64 @llvm.fshr.i64(i64, i64, i64)
"""


def slow(width: int) -> str:
  """Makes an access thread by thread, or `reads` what is there: all addresses are looked up first; whether that could
  be."""
  return f"""
define hidden i1 @slow(ptr %context, ptr %state, ptr %site, i32 %mask, i64 %size, i64 %count, i64 %access,
                        i64 %mode, i1 %reads) noinline {{
  %width = mul i64 %size, %count
  %looked = call i1 @look(ptr %context, ptr %state, i32 %mask, i64 %width, i64 %access, i64 %mode)
  %hosts = getelementptr i8, ptr %context, i64 {at.HOSTS}
  br i1 %looked, label %move, label %fail
move:
  %left = phi i32 [ %mask, %0 ], [ %rest, %moved ]
  %all = icmp eq i32 %left, 0
  br i1 %all, label %good, label %elements
elements:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %there.at = getelementptr i64, ptr %hosts, i32 %lane
  %there = load i64, ptr %there.at
  %j = zext i32 %lane to i64
  br label %element
element:
  %k = phi i64 [ 0, %elements ], [ %k.next, %copied ]
  %each = mul i64 %k, %size
  %target = add i64 %there, %each
  %pointer = inttoptr i64 %target to ptr
  %column = mul i64 %k, {width}
  %cell = add i64 %column, %j
  %bytes = mul i64 %cell, %size
  %data.base = getelementptr i8, ptr %context, i64 {at.DATA}
  %data = getelementptr i8, ptr %data.base, i64 %bytes
  br i1 %reads, label %read, label %write
read:
  call void @llvm.memcpy.p0.p0.i64(ptr %data, ptr %pointer, i64 %size, i1 false)
  br label %copied
write:
  call void @llvm.memcpy.p0.p0.i64(ptr %pointer, ptr %data, i64 %size, i1 false)
  br label %copied
copied:
  %k.next = add i64 %k, 1
  %last = icmp eq i64 %k.next, %count
  br i1 %last, label %moved, label %element
moved:
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %move
good:
  %remembers = icmp ne ptr %site, null
  %wanted = icmp ne i32 %mask, 0
  %global.mode = icmp eq i64 %mode, 0
  %learn.first = and i1 %remembers, %wanted
  %learn = and i1 %learn.first, %global.mode
  br i1 %learn, label %learned, label %out
learned:
  %first = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %base = getelementptr i8, ptr %context, i64 {at.ADDRESSES}
  %where = getelementptr i64, ptr %base, i32 %first
  %address = load i64, ptr %where
  %span.at = getelementptr i8, ptr %site, i64 {at.SPAN}
  %span = load i64, ptr %span.at
  %none = icmp eq i64 %span, 0
  %extent = select i1 %none, i64 %width, i64 %span
  %shift = call i64 @llvm.cttz.i64(i64 %width, i1 false)
  %r = call i1 @find(ptr %context, ptr %site, i64 %address, i64 %extent, i64 %shift, i64 %access)
  br label %out
out:
  ret i1 true
fail:
  ret i1 false
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def _in_cluster() -> list[str]:
  """Where a block is in its cluster, and that in the grid."""
  out = [f"  %cluster.at = getelementptr i8, ptr %context, i64 {at.CLUSTER}", "  %cluster = load i64, ptr %cluster.at",
         "  %cluster_nctarank = trunc i64 %cluster to i32",
         "  %in.cluster = urem i64 %block, %cluster", "  %cluster_ctarank = trunc i64 %in.cluster to i32",
         "  %of.cluster = udiv i64 %block, %cluster", "  %number.of = trunc i64 %of.cluster to i32"]
  for k in range(3):
    out += [f"  %extent.at.{k} = getelementptr i8, ptr %context, i64 {at.CLUSTERED + 4 * k}",
            f"  %cluster_nctaid.{k} = load i32, ptr %extent.at.{k}",
            f"  %nclusterid.{k} = udiv i32 %nctaid.{k}, %cluster_nctaid.{k}"]
  below, whole = "%cluster_ctarank", "%number.of"
  for k in range(3):
    out += [f"  %cluster_ctaid.{k} = urem i32 {below}, %cluster_nctaid.{k}",
            f"  %below.{k} = udiv i32 {below}, %cluster_nctaid.{k}",
            f"  %clusterid.{k} = urem i32 {whole}, %nclusterid.{k}",
            f"  %whole.{k} = udiv i32 {whole}, %nclusterid.{k}",
            f"  %begin.{k} = mul i32 %clusterid.{k}, %cluster_nctaid.{k}",
            f"  %ctaid.{k} = add i32 %begin.{k}, %cluster_ctaid.{k}"]
    below, whole = f"%below.{k}", f"%whole.{k}"
  return out


class Beside(NamedTuple):
  """What the module beside a kernel depends on: whether it is watched, may have blocks of its cluster to talk to, has
  barriers of clusters, barriers that are not of the whole block, and warps that tell each other what they know; and the
  threads of a strand."""
  watches: bool
  clustered: bool
  phases: bool
  named: bool
  ordered: bool
  width: int


def beside(g: Lanes) -> Beside:
  """What goes beside a kernel whose blocks are written."""
  ordered = g.watch is not None and bool(g.watch.kinds)
  return Beside(g.watch is not None, g.plan.clustered, g.phases, g.named, ordered, g.width)


def shared(b: Beside) -> str:
  """The module beside a kernel. It has `run`, and calls the kernel."""
  parts = [find(b.watches), look(b.clustered), *([runner.lives()] if b.clustered else []), slow(b.width),
           runner.text(b.phases, b.named, b.ordered, b.watches), *(order.CALLED if b.ordered else ()),
           "declare hidden void @kernel(ptr noalias, ptr noalias)", *_COUNTED]
  return "\n".join([*parts, ""])


def module(g: Lanes) -> str:
  """All of a kernel's module."""
  w, m, clustered = g.width, g.mask_type, g.plan.clustered
  out = [f"define hidden void @kernel(ptr noalias %context, ptr noalias %state) {ALIGNED} {{", "entry:"]
  # exits keep what the reference reads: also a fragment's registers that repeat others, which compiled code does not
  used = g.used | {n for x in g.exits for n, _ in x.registers}
  for n in sorted(used):
    home = g.homes.get(n)
    out.append(f"  %r{n} = " + (f"alloca {g.slot(n)}, align 64" if home is None else
                               f"getelementptr i8, ptr %state, i64 {home}"))
  for b in g.plan.blocks: out.append(f"  %waiting.{b.number} = alloca {m}")
  for name, text in g.e.stack.items(): out.append(f"  %{name} = {text}")
  out += [f"  %active = alloca {m}", f"  %alive = alloca {m}", "  %left = alloca i64", f"  %carry = alloca <{w} x i1>",
          f"  store <{w} x i1> zeroinitializer, ptr %carry"]
  begins = [f"  store {g.mask_type if g.packed(n) else g.slot(n)} zeroinitializer, ptr %r{n}, align 4"
            for n in sorted(used & g.plan.blocks[0].live)]
  for b in g.plan.blocks: out.append(f"  store {m} 0, ptr %waiting.{b.number}")

  def word(base: str, offset: int, t: str, name: str) -> None:
    out.append(f"  {name}.at = getelementptr i8, ptr {base}, i64 {offset}")
    out.append(f"  {name} = load {t}, ptr {name}.at")
  word("%context", at.SITES, "ptr", "%sites")
  word("%context", at.PARAMS, "ptr", "%params")
  for offset in (at.PARAMS_AT, at.MODULE, at.SHARED_SIZE, at.LOCAL_SIZE, at.DYNAMIC, at.WORKSPACE, at.USED,
                 at.AGGREGATE, at.SYSTEM):
    word("%context", offset, "i64", f"%context.{offset}")
  for k in range(3): word("%context", at.GRID + 4 * k, "i32", f"%nctaid.{k}")
  word("%state", at.SHARED, "i64", "%shared")
  word("%state", at.LOCAL, "i64", "%local")
  word("%state", at.BLOCK, "i64", "%block")
  word("%state", at.STRAND, "i32", "%strand")
  word("%state", at.LEFT, "i64", "%left.first")
  word("%state", at.EXIT, "i32", "%from")
  for name, offset in (("active", at.ACTIVE), ("alive", at.ALIVE)):
    word("%state", offset, m, f"%{name}.first")
    out.append(f"  store {m} %{name}.first, ptr %{name}")
  if g.watch is not None: out += watched.entered(g)
  out += ["  store i64 %left.first, ptr %left", f"  %first = mul i32 %strand, {w}",
          "  %gx = zext i32 %nctaid.0 to i64", "  %gy = zext i32 %nctaid.1 to i64",
          "  %cx = urem i64 %block, %gx", "  %rest.x = udiv i64 %block, %gx", "  %cy = urem i64 %rest.x, %gy",
          "  %cz = udiv i64 %rest.x, %gy",
          *(_in_cluster() if clustered else [f"  %ctaid.{k} = trunc i64 %c{a} to i32" for k, a in enumerate("xyz")]),
          f"  %state.number = getelementptr i8, ptr %state, i64 {at.NUMBER}", "  store i32 -1, ptr %state.number"]
  out += [f"  %keep.{offset} = getelementptr i8, ptr %state, i64 {offset}" for offset in sorted(g.places)]
  cases = " ".join(f"i32 {n}, label %resume.{n}" for n, _ in g._resumable)
  out += [f"  switch i32 %from, label %begin [ {cases} ]", "begin:", *begins, "  br label %block.0"]
  for number, target in g._resumable:
    x = g.exits[number]
    out.append(f"resume.{number}:")
    for n, offset in x.registers:
      if n in g.homes: continue
      t = g.slot(n)
      if g.types[n] == BOOL and g.shape(n).steps is None:
        word("%state", offset, m, f"%s{number}.{n}.b")
        out.append(f"  %s{number}.{n} = bitcast {m} %s{number}.{n}.b to {t}")
      else:
        out.append(f"  %s{number}.{n}.at = getelementptr i8, ptr %state, i64 {offset}")
        out.append(f"  %s{number}.{n} = load {t}, ptr %s{number}.{n}.at, align 4")
      out.append(f"  store {t} %s{number}.{n}, ptr %r{n}, align 4")
    for q, offset in x.masks:
      word("%state", offset, m, f"%s{number}.m{q}")
      out.append(f"  store {m} %s{number}.m{q}, ptr %waiting.{q}")
    if g.uses_carry:
      word("%state", x.carry, m, f"%s{number}.cb")
      out.append(f"  %s{number}.c = bitcast {m} %s{number}.cb to <{w} x i1>")
      out.append(f"  store <{w} x i1> %s{number}.c, ptr %carry")
    out.append(f"  br label %{target}")
  out += g.e.lines + g.tail
  ways = [way for way in g._ways if way.comes]
  for way in ways: out += way.text()
  for status in sorted({way.status for way in ways}):
    leaves = [(way.label, f"%{way.label}.n") for way in ways if way.status == status]
    out += [f"leave.{status}:", f"  %l{status}.n = phi i32 " + ", ".join(f"[ {n}, %{label} ]" for label, n in leaves),
            f"  %l{status}.exit = getelementptr i8, ptr %state, i64 {at.EXIT}",
            f"  store i32 %l{status}.n, ptr %l{status}.exit",
            f"  %l{status}.a = load {m}, ptr %active",
            f"  %l{status}.active = getelementptr i8, ptr %state, i64 {at.ACTIVE}",
            f"  store {m} %l{status}.a, ptr %l{status}.active",
            f"  store i32 {status}, ptr %state", "  br label %out"]
  out += ["ended:", f"  store i32 {at.END}, ptr %state", "  br label %out", "out:",
          f"  %out.alive = load {m}, ptr %alive",
          f"  %out.alive.at = getelementptr i8, ptr %state, i64 {at.ALIVE}",
          f"  store {m} %out.alive, ptr %out.alive.at", "  %out.left = load i64, ptr %left",
          f"  %out.left.at = getelementptr i8, ptr %state, i64 {at.LEFT}",
          "  store i64 %out.left, ptr %out.left.at", "  ret void", "}"]
  ordered = clocks.functions(g)
  declared = list((g.e.declared | _SHARED).values())
  return "\n".join([*g.e.constants, *out, *ordered, *declared, "!0 = !{}", '!1 = !{!"branch_weights", i32 2000, i32 1}',
                    '!2 = !{!"branch_weights", i32 1, i32 2000}', ""])
