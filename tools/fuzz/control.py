"""Cases of memory access and control flow: loads and stores of each width, loops, branches, calls, stacks, "
"constants."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tinyhw.tools.fuzz.case import Case

VECTORS: Final = ("<2 x i8>", "<4 x i8>", "<8 x i8>", "<16 x i8>", "<2 x i16>", "<4 x i16>", "<8 x i16>", "<2 x i32>",
                  "<4 x i32>", "<2 x i64>", "<2 x half>", "<4 x half>", "<8 x half>", "<2 x float>", "<4 x float>",
                  "<2 x double>")


def memory() -> Iterator[Case]:
  """Loads and stores of 1 to 16 bytes: aligned, unaligned, gated, volatile, indexed, through flat pointers."""
  for kind in ("i8", "i16", "i32", "i64", "half", "float", "double", *VECTORS):
    name = kind.replace("<", "v").replace(" x ", "").replace(">", "")
    yield Case(f"copy_{name}", (kind,), (kind,), f"%r = freeze {kind} %a", bits=True)
    yield Case(f"copy_volatile_{name}", (kind,), (kind,), f"%q = getelementptr {kind}, ptr addrspace(1) %pa, i32 %i\n  "
               f"%r = load volatile {kind}, ptr addrspace(1) %q", bits=True)
    yield Case(f"copy_flat_{name}", (kind,), (kind,), f"%f = addrspacecast ptr addrspace(1) %pa to ptr\n  "
               f"%q = getelementptr {kind}, ptr %f, i32 %i\n  %r = load {kind}, ptr %q", bits=True)
    yield Case(f"neighbour_{name}", (kind,), (kind,), "%x = xor i32 %i, 5\n  %y = zext i32 %x to i64\n  "
               f"%q = getelementptr {kind}, ptr addrspace(1) %pa, i64 %y\n  %r = load {kind}, ptr addrspace(1) %q",
               bits=True)
    zero = "zeroinitializer" if kind.startswith("<") else "0" if kind.startswith("i") else "0.0"
    yield Case(f"gated_{name}", (kind, "i1"), (kind,),
               "br i1 %b, label %then, label %merge\nthen:\n  %x = xor i32 %i, 3\n  "
               f"%q = getelementptr {kind}, ptr addrspace(1) %pa, i32 %x\n  %v = load {kind}, ptr addrspace(1) %q\n  "
               f"br label %merge\nmerge:\n  %r = phi {kind} [{zero}, %body], [%v, %then]", bits=True)
    yield Case(f"gated_store_{name}", (kind, "i1"), (kind,),
               "br i1 %b, label %then, label %merge\nthen:\n  "
               f"%q = getelementptr {kind}, ptr addrspace(1) %po, i32 %i\n  store {kind} %a, ptr addrspace(1) %q\n  "
               f"br label %merge\nmerge:\n  %q2 = getelementptr {kind}, ptr addrspace(1) %po, i32 %i\n  "
               f"%r = load {kind}, ptr addrspace(1) %q2", bits=True)
    yield Case(f"private_{name}", (kind, "i32"), (kind,),
               f"%s0 = alloca [8 x {kind}], addrspace(5)\n  %j = and i32 %b, 7\n  "
               f"call void @llvm.memset.p5.i32(ptr addrspace(5) %s0, i8 17, i32 %bytes, i1 false)\n  "
               .replace("%bytes", str(8 * _bytes(kind))) +
               f"%q = getelementptr [8 x {kind}], ptr addrspace(5) %s0, i32 0, i32 %j\n  "
               f"store volatile {kind} %a, ptr addrspace(5) %q\n  %k = lshr i32 %b, 3\n  %l = and i32 %k, 7\n  "
               f"%q2 = getelementptr [8 x {kind}], ptr addrspace(5) %s0, i32 0, i32 %l\n  "
               f"%r = load volatile {kind}, ptr addrspace(5) %q2",
               "declare void @llvm.memset.p5.i32(ptr addrspace(5), i8, i32, i1)", bits=True)
    yield Case(f"lds_{name}", (kind,), (kind,),
               f"%q = getelementptr [64 x {kind}], ptr addrspace(3) @lds_{name}.buf, i32 0, i32 %lane\n  "
               f"store volatile {kind} %a, ptr addrspace(3) %q\n  %r = load volatile {kind}, ptr addrspace(3) %q",
               f"@lds_{name}.buf = internal addrspace(3) global [64 x {kind}] undef", bits=True)
  for to in ("i16", "i32", "i64"):
    for op in ("zext", "sext"):
      yield Case(f"extload_{op}_i8_{to}", ("i8",), (to,), f"%r = {op} i8 %a to {to}")
  for n in (1, 2, 4):
    yield Case(f"unaligned_{n}", ("i64", "i64"), ("i64", "<4 x i32>"),
               "%b7 = and i32 %i, 63\n  %flip = sub i32 511, %i\n  %at = mul i32 %flip, 8\n  "
               f"%off = sub i32 %at, {n}\n  %fit = call i32 @llvm.smax.i32(i32 %off, i32 0)\n  "
               f"%q = getelementptr i8, ptr addrspace(1) %pa, i32 %fit\n  %r = load i64, ptr addrspace(1) %q, align "
               f"{n}\n  "
               "%cap = call i32 @llvm.smin.i32(i32 %fit, i32 4000)\n  %q2 = getelementptr i8, ptr addrspace(1) %pb, "
               "i32 %cap\n"
               f"  %s = load <4 x i32>, ptr addrspace(1) %q2, align {n}",
               "declare i32 @llvm.smax.i32(i32, i32)\ndeclare i32 @llvm.smin.i32(i32, i32)")
  for n in (1, 2, 3, 4, 8, 16):
    body = ["%z = zext i32 %lanes to i64"]
    for at in range(n):
      body += [f"%q{at} = getelementptr i32, ptr addrspace(1) %pa, i32 {at + 4}",
               f"%v{at} = load i32, ptr addrspace(1) %q{at}, align {64 if at == 12 else 4}"]
    body += [f"%t{at + 1} = xor i32 {f'%t{at}' if at else '%a'}, %v{at}" for at in range(n)]
    yield Case(f"uniform_load_{n}", ("i32",), ("i32",), "\n  ".join(body) + f"\n  %r = add i32 %t{n}, 1")
  yield Case("uniform_index_load", ("i32", "i8", "i16"), ("i32",),
             "%g4 = mul i32 %group, 4\n  %q = getelementptr i32, ptr addrspace(1) %pa, i32 %g4\n  "
             "%v = load <4 x i32>, ptr addrspace(1) %q\n  %x = extractelement <4 x i32> %v, i32 0\n  "
             "%y = extractelement <4 x i32> %v, i32 3\n  %s1 = xor i32 %x, %y\n  "
             "%q2 = getelementptr i8, ptr addrspace(1) %pb, i32 %group\n  %u = load i8, ptr addrspace(1) %q2\n  "
             "%u2 = sext i8 %u to i32\n  %q3 = getelementptr i16, ptr addrspace(1) %pc, i32 %group\n  "
             "%w = load i16, ptr addrspace(1) %q3\n  %w2 = zext i16 %w to i32\n  %s2 = add i32 %s1, %u2\n  "
             "%s3 = add i32 %s2, %w2\n  %r = add i32 %s3, %a")
  yield Case("table", ("i32",), ("i32", "float"), "%j = and i32 %a, 7\n  "
             "%q = getelementptr [8 x i32], ptr addrspace(4) @table.data, i32 0, i32 %j\n  %r = load i32, ptr "
             "addrspace(4) %q\n"
             "  %k = urem i32 %group, 5\n  %q2 = getelementptr [5 x float], ptr addrspace(4) @table.floats, i32 0, "
             "i32 %k\n  "
             "%s = load float, ptr addrspace(4) %q2",
             "@table.data = internal addrspace(4) constant [8 x i32] [i32 3, i32 1, i32 4, i32 1, i32 5, i32 9, i32 "
             "2, i32 6]"
             "\n@table.floats = internal addrspace(4) constant [5 x float] [float 1.0, float 2.5, float -3.0, float "
             "0.125, "
             "float 7.0]".replace("\n@", "\n\n@"))
  yield Case("table_of_pointers", ("i32",), ("i32",), "%j = and i32 %a, 1\n  "
             "%q = getelementptr [2 x ptr addrspace(4)], ptr addrspace(4) @tp.table, i32 0, i32 %j\n  "
             "%p = load ptr addrspace(4), ptr addrspace(4) %q\n  %k = and i32 %i, 3\n  "
             "%q2 = getelementptr i32, ptr addrspace(4) %p, i32 %k\n  %r = load i32, ptr addrspace(4) %q2",
             "@tp.one = internal addrspace(4) constant [4 x i32] [i32 11, i32 12, i32 13, i32 14]\n\n"
             "@tp.two = internal addrspace(4) constant [4 x i32] [i32 21, i32 22, i32 23, i32 24]\n\n"
             "@tp.table = internal addrspace(4) constant [2 x ptr addrspace(4)] [ptr addrspace(4) @tp.one, "
             "ptr addrspace(4) @tp.two]")
  yield Case("address_64", ("i64", "i64"), ("i64",), "%m = and i64 %b, 511\n  %x = mul i64 %m, 8\n  "
             "%base = ptrtoint ptr addrspace(1) %pa to i64\n  %at = add i64 %base, %x\n  "
             "%q = inttoptr i64 %at to ptr addrspace(1)\n  %r = load i64, ptr addrspace(1) %q")
  yield Case("negative_offset", ("i32",), ("i32",), "%j = or i32 %i, 8\n  %e = sext i32 %j to i64\n  "
             "%q = getelementptr i32, ptr addrspace(1) %pa, i64 %e\n  %q2 = getelementptr i32, ptr addrspace(1) %q, "
             "i64 -8\n  "
             "%r = load i32, ptr addrspace(1) %q2")
  for at, extra in ((0, 1), (1, 1000), (2, 1200)):
    yield Case(f"offset_{at}", ("i32",), ("i32",), f"%j = and i32 %i, 127\n  %q = getelementptr i32, ptr addrspace(1) "
               f"%pa, "
               f"i32 %j\n  %q2 = getelementptr i8, ptr addrspace(1) %q, i32 {extra}\n  %r = load i32, ptr "
               f"addrspace(1) %q2, "
               f"align 1", bits=True)
  yield Case("store_truncated", ("i64", "i32"), ("i8", "i16"), "%r = trunc i64 %a to i8\n  %x = lshr i32 %b, 16\n  "
             "%s = trunc i32 %x to i16")
  yield Case("high_halves", ("<2 x i16>", "<2 x i16>"), ("<2 x i16>", "i16"), "%x = extractelement <2 x i16> %a, i32 "
             "1\n  "
             "%y = extractelement <2 x i16> %b, i32 0\n  %v = insertelement <2 x i16> poison, i16 %y, i32 1\n  "
             "%r = insertelement <2 x i16> %v, i16 %x, i32 0\n  %s = add i16 %x, %y")
  yield Case("load_d16_hi", ("i16", "i16", "i8"), ("<2 x i16>", "<2 x i16>"), "%j = xor i32 %i, 1\n  "
             "%q = getelementptr i16, ptr addrspace(1) %pb, i32 %j\n  %v = load i16, ptr addrspace(1) %q\n  "
             "%p = insertelement <2 x i16> poison, i16 %a, i32 0\n  %r = insertelement <2 x i16> %p, i16 %v, i32 1\n  "
             "%q2 = getelementptr i8, ptr addrspace(1) %pc, i32 %j\n  %w = load i8, ptr addrspace(1) %q2\n  "
             "%w2 = sext i8 %w to i16\n  %s = insertelement <2 x i16> %p, i16 %w2, i32 1")
  yield Case("load_d16_lo", ("<2 x i16>", "i16"), ("<2 x i16>",), "%j = xor i32 %i, 1\n  "
             "%q = getelementptr i16, ptr addrspace(1) %pb, i32 %j\n  %v = load i16, ptr addrspace(1) %q\n  "
             "%r = insertelement <2 x i16> %a, i16 %v, i32 0")
  yield Case("store_d16_hi", ("i32",), ("i16", "i8"), "%x = lshr i32 %a, 16\n  %r = trunc i32 %x to i16\n  "
             "%s = trunc i32 %x to i8")
  yield Case("memcpy_private", ("<4 x i32>", "i32"), ("i32",), "%m = alloca [4 x <4 x i32>], align 16, addrspace(5)\n  "
             "%j = and i32 %i, 504\n  %q = getelementptr <4 x i32>, ptr addrspace(1) %pa, i32 %j\n  "
             "call void @llvm.memcpy.p5.p1.i64(ptr addrspace(5) align 16 %m, ptr addrspace(1) align 16 %q, i64 64, i1 "
             "false)\n"
             "  %k = and i32 %b, 15\n  %q2 = getelementptr i32, ptr addrspace(5) %m, i32 %k\n  "
             "%r = load i32, ptr addrspace(5) %q2",
             "declare void @llvm.memcpy.p5.p1.i64(ptr addrspace(5), ptr addrspace(1), i64, i1)")
  yield Case("flat_or_private", ("i32", "i1"), ("i32",), "%m = alloca i32, addrspace(5)\n  "
             "store volatile i32 77, ptr addrspace(5) %m\n  %f = addrspacecast ptr addrspace(5) %m to ptr\n  "
             "%g = getelementptr i32, ptr addrspace(1) %pa, i32 %i\n  %h = addrspacecast ptr addrspace(1) %g to ptr\n  "
             "%q = select i1 %b, ptr %f, ptr %h\n  %r = load i32, ptr %q")
  yield Case("flat_or_lds", ("i32", "i1"), ("i32",), "%m = getelementptr [64 x i32], ptr addrspace(3) @fl.buf, i32 0, "
             "i32 %lane\n  store volatile i32 99, ptr addrspace(3) %m\n  %f = addrspacecast ptr addrspace(3) %m to "
             "ptr\n  "
             "%g = getelementptr i32, ptr addrspace(1) %pa, i32 %i\n  %h = addrspacecast ptr addrspace(1) %g to ptr\n  "
             "%q = select i1 %b, ptr %f, ptr %h\n  %r = load i32, ptr %q\n  store i32 %i, ptr %q",
             "@fl.buf = internal addrspace(3) global [64 x i32] undef", inplace=(0,))


def _bytes(kind: str) -> int:
  scalar = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}
  if not kind.startswith("<"): return scalar[kind]
  n, _, base = kind[1:-1].split()
  return int(n) * scalar[base]


def control() -> Iterator[Case]:
  """Divergent and uniform branches, loops, switches, calls."""
  yield Case("if_else", ("i32", "i32"), ("i32",), "%c0 = icmp slt i32 %a, %b\n  br i1 %c0, label %x, label %y\nx:\n  "
             "%u = mul i32 %a, 3\n  br label %m\ny:\n  %v = sub i32 %b, %a\n  br label %m\nm:\n  "
             "%r = phi i32 [%u, %x], [%v, %y]")
  yield Case("loop_divergent", ("i32", "i32"), ("i32",), "%n = and i32 %a, 31\n  br label %head\nhead:\n  "
             "%k = phi i32 [0, %body], [%k2, %work]\n  %s = phi i32 [%b, %body], [%s2, %work]\n  "
             "%more = icmp ult i32 %k, %n\n  br i1 %more, label %work, label %out\nwork:\n  %t = mul i32 %s, "
             "1664525\n  "
             "%s2 = add i32 %t, 1013904223\n  %k2 = add i32 %k, 1\n  br label %head\nout:\n  %r = xor i32 %s, %k")
  yield Case("loop_uniform_float", ("float", "float"), ("float",), "br label %head\nhead:\n  "
             "%k = phi i32 [0, %body], [%k2, %head]\n  %s = phi float [%a, %body], [%s2, %head]\n  "
             "%q = getelementptr float, ptr addrspace(1) %pb, i32 %k\n  %v = load float, ptr addrspace(1) %q\n  "
             "%t = fmul float %v, 0.5\n  %s2 = fadd float %s, %t\n  %k2 = add i32 %k, 1\n  %more = icmp ult i32 %k2, "
             "37\n  "
             "br i1 %more, label %head, label %out\nout:\n  %r = fneg float %s2")
  yield Case("loop_break", ("i32", "i32"), ("i32", "i32"), "br label %head\nhead:\n  "
             "%k = phi i32 [0, %body], [%k2, %next]\n  %j0 = add i32 %i, %k\n  %j = and i32 %j0, 511\n  "
             "%q = getelementptr i32, ptr addrspace(1) %pa, i32 %j\n  %v = load i32, ptr addrspace(1) %q\n  "
             "%hit = icmp ugt i32 %v, %b\n  br i1 %hit, label %out, label %next\nnext:\n  %k2 = add i32 %k, 1\n  "
             "%more = icmp ult i32 %k2, 40\n  br i1 %more, label %head, label %out\nout:\n  "
             "%r = phi i32 [%v, %head], [-1, %next]\n  %s = phi i32 [%k, %head], [%k2, %next]")
  yield Case("nested_loops", ("i32", "i32"), ("i32",), "%n = and i32 %a, 7\n  %m = and i32 %b, 7\n  br label %o\no:\n  "
             "%x = phi i32 [0, %body], [%x2, %on]\n  %s = phi i32 [1, %body], [%s4, %on]\n  %oc = icmp ult i32 %x, "
             "%n\n  "
             "br i1 %oc, label %in, label %out\nin:\n  %y = phi i32 [0, %o], [%y2, %cont]\n  %s1 = phi i32 [%s, %o], "
             "[%s3, %cont]\n  %ic = icmp ult i32 %y, %m\n  br i1 %ic, label %w, label %on\nw:\n  %t = mul i32 %s1, "
             "31\n  "
             "%s2 = add i32 %t, %y\n  %odd = and i32 %s2, 3\n  %sk = icmp eq i32 %odd, 0\n  br i1 %sk, label %brk, "
             "label %c1"
             "\nbrk:\n  %big = icmp ugt i32 %s2, 100000\n  br i1 %big, label %out2, label %cont\nc1:\n  %s5 = xor i32 "
             "%s2, %x\n"
             "  br label %cont\ncont:\n  %s3 = phi i32 [%s2, %brk], [%s5, %c1]\n  %y2 = add i32 %y, 1\n  br label "
             "%in\non:\n  "
             "%s4 = phi i32 [%s1, %in]\n  %x2 = add i32 %x, 1\n  br label %o\nout2:\n  br label %out\nout:\n  "
             "%r = phi i32 [%s, %o], [%s2, %out2]")
  yield Case("switch", ("i32", "i32"), ("i32",), "%k = and i32 %a, 7\n  switch i32 %k, label %d [i32 0, label %c0\n "
             "i32 1, "
             "label %c1\n i32 2, label %c2\n i32 5, label %c5]\nc0:\n  %v0 = add i32 %b, 5\n  br label %m\nc1:\n  "
             "%v1 = mul i32 %b, %b\n  br label %m\nc2:\n  %v2 = lshr i32 %b, 3\n  br label %m\nc5:\n  %v5 = xor i32 "
             "%b, -1\n"
             "  br label %m\nd:\n  br label %m\nm:\n  %r = phi i32 [%v0, %c0], [%v1, %c1], [%v2, %c2], [%v5, %c5], "
             "[7, %d]")
  yield Case("uniform_switch", ("i32",), ("i32",), "%k = and i32 %group, 3\n  switch i32 %k, label %d [i32 0, label "
             "%c0\n "
             "i32 1, label %c1\n i32 2, label %c2]\nc0:\n  %v0 = add i32 %a, 5\n  br label %m\nc1:\n  %v1 = mul i32 "
             "%a, %a\n  "
             "br label %m\nc2:\n  %v2 = lshr i32 %a, 3\n  br label %m\nd:\n  br label %m\nm:\n  "
             "%r = phi i32 [%v0, %c0], [%v1, %c1], [%v2, %c2], [7, %d]")
  yield Case("early_return", ("i32", "i32"), ("i32",), "%c0 = icmp eq i32 %a, %b\n  br i1 %c0, label %m, label "
             "%g\ng:\n  "
             "%h = icmp ult i32 %a, 1000\n  br i1 %h, label %w, label %m\nw:\n  %t = udiv i32 1000000, %a1\n  br "
             "label %m\nm:\n"
             "  %r = phi i32 [1, %body], [2, %g], [%t, %w]".replace("%a1", "%a1").replace("w:\n  ", "w:\n  %a1 = or "
               "i32 %a, 1\n  "))
  yield Case("collatz", ("i16",), ("i32",), "%z = zext i16 %a to i32\n  %z1 = or i32 %z, 1\n  br label %h\nh:\n  "
             "%v = phi i32 [%z1, %body], [%v2, %c]\n  %k = phi i32 [0, %body], [%k2, %c]\n  %e = icmp ugt i32 %v, 1\n  "
             "%f = icmp ult i32 %k, 60\n  %both = and i1 %e, %f\n  br i1 %both, label %l, label %out\nl:\n  %o = and "
             "i32 %v, 1\n  "
             "%odd = icmp ne i32 %o, 0\n  br i1 %odd, label %x, label %y\nx:\n  %t = mul i32 %v, 3\n  %t1 = add i32 "
             "%t, 1\n  "
             "br label %c\ny:\n  %u = lshr i32 %v, 1\n  br label %c\nc:\n  %v2 = phi i32 [%t1, %x], [%u, %y]\n  "
             "%k2 = add i32 %k, 1\n  br label %h\nout:\n  %r = add i32 %k, 0")
  yield Case("call_noinline", ("i32", "i32"), ("i32",), "%x = call i32 @cn.f(i32 %a, i32 %b)\n  "
             "%y = call i32 @cn.f(i32 %x, i32 %a)\n  %r = sub i32 %y, %b",
             "define internal i32 @cn.f(i32 %x, i32 %y) noinline {\n  %t = mul i32 %x, 7\n  %u = xor i32 %t, %y\n  "
             "ret i32 %u\n}")
  yield Case("call_float", ("float", "double", "i64"), ("double", "i64"), "%p = call double @cf.f(float %a, double "
             "%b)\n  "
             "%s = call i64 @cf.g(i64 %c, i32 %i)\n  %r = fadd double %p, 1.0",
             "define internal double @cf.f(float %x, double %y) noinline {\n  %t = fpext float %x to double\n  "
             "%u = fmul double %t, %y\n  ret double %u\n}\n\n"
             "define internal i64 @cf.g(i64 %x, i32 %y) noinline {\n  %t = zext i32 %y to i64\n  %u = add i64 %x, "
             "%t\n  "
             "%v = mul i64 %u, %u\n  ret i64 %v\n}")
  yield Case("call_divergent", ("i32", "i1"), ("i32",), "br i1 %b, label %t, label %m\nt:\n  %x = call i32 @cd.f(i32 "
             "%a)\n  "
             "br label %m\nm:\n  %r = phi i32 [%x, %t], [%a, %body]",
             "define internal i32 @cd.f(i32 %x) noinline {\n  %k = alloca [4 x i32], addrspace(5)\n  %j = and i32 %x, "
             "3\n  "
             "%q = getelementptr i32, ptr addrspace(5) %k, i32 %j\n  store volatile i32 %x, ptr addrspace(5) %q\n  "
             "%v = load volatile i32, ptr addrspace(5) %q\n  %w = add i32 %v, 9\n  ret i32 %w\n}")
  yield Case("call_nested", ("i32",), ("i32",), "%r = call i32 @cx.f(i32 %a)",
             "define internal i32 @cx.g(i32 %x) noinline {\n  %w = mul i32 %x, %x\n  ret i32 %w\n}\n\n"
             "define internal i32 @cx.f(i32 %x) noinline {\n  %p = call i32 @cx.g(i32 %x)\n  %y = add i32 %x, 1\n  "
             "%q = call i32 @cx.g(i32 %y)\n  %z = xor i32 %p, %q\n  %w = add i32 %z, %x\n  ret i32 %w\n}")
  yield Case("call_indirect", ("i32", "i32"), ("i32",), "%k = and i32 %b, 1\n  %c0 = icmp eq i32 %k, 0\n  "
             "%f = select i1 %c0, ptr @ci.f, ptr @ci.g\n  %r = call i32 %f(i32 %a)",
             "define internal i32 @ci.f(i32 %x) noinline {\n  %w = add i32 %x, 100\n  ret i32 %w\n}\n\n"
             "define internal i32 @ci.g(i32 %x) noinline {\n  %w = mul i32 %x, 5\n  ret i32 %w\n}")
  # Many values alive at once: register copies, dual-issue pairs, spills at low optimization.
  lines = [f"%q{k} = getelementptr float, ptr addrspace(1) %pa, i32 {k}\n  %x{k} = load float, ptr addrspace(1) "
           f"%q{k}\n  "
           f"%y{k} = fmul float %x{k}, %b" for k in range(24)]
  lines += [f"%s{k} = fadd float {f'%s{k - 1}' if k else '%a'}, %y{23 - k}" for k in range(24)]
  yield Case("many_values", ("float", "float"), ("float",), "\n  ".join(lines) + "\n  %r = fadd float %s23, %s11")
  lines = [f"%f{k} = fmul float %{x}, {k + 1}.0\n  %g{k} = fadd float %{y}, {k}.5\n  %h{k} = call float "
           f"@llvm.fma.f32(float "
           f"%f{k}, float %g{k}, float %c)\n  %o{k} = call float @llvm.maxnum.f32(float %h{k}, float %g{k})"
           for k, (x, y) in enumerate([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("b", "a"), ("c", "b")])]
  lines += ["%t0 = fadd float %o0, %o1", "%t1 = fsub float %o2, %o3", "%t2 = fmul float %o4, %o5", "%t3 = fadd float "
            "%t0, %t1"]
  yield Case("dual_issue", ("float",) * 3, ("float", "float"), "\n  ".join(lines) + "\n  %r = fadd float %t3, %t2\n  "
             "%c9 = fcmp olt float %t0, %t1\n  %s = select i1 %c9, float %t2, float %t3",
             "declare float @llvm.fma.f32(float, float, float)\ndeclare float @llvm.maxnum.f32(float, float)")
  # Uniform integer work lands on the scalar unit.
  for kind in ("i32", "i64", "i16"):
    lines, last = [], f"%{'u' if kind != 'i32' else 'group'}"
    if kind == "i64": lines = ["%u0 = zext i32 %group to i64", "%u = add i64 %u0, 12345678901"]
    if kind == "i16": lines = ["%u = trunc i32 %group to i16"]
    n = int(kind[1:])
    steps = [f"add {kind} X, 77", f"mul {kind} X, {1103515245 if n > 16 else 1103}", f"xor {kind} X, Y", f"shl {kind} "
             f"X, 3",
             f"sub {kind} X, Y", f"lshr {kind} X, 5", f"or {kind} X, 40", f"ashr {kind} X, 1", f"and {kind} X, "
             f"{0x7fffff if n > 16 else 0x7fff}",
             *(f"call {kind} @llvm.{op}.{kind}({kind} X{extra})" for op, extra in (
               ("ctpop", ""), ("bitreverse", ""), ("ctlz", ", i1 false"), ("cttz", ", i1 false"), ("abs", ", i1 false"),
               ("bswap", ""))),
             *(f"call {kind} @llvm.{op}.{kind}({kind} X, {kind} Y)" for op in ("smin", "smax", "umin", "umax",
               "uadd.sat")),
             f"udiv {kind} X, 7", f"srem {kind} X, 13"]
    declarations, total = [], [f"%t0 = add {kind} {last}, 0"]
    for k, step in enumerate(steps):
      lines.append(f"%v{k} = " + step.replace("X", last).replace("Y", f"%v{k // 2}" if k > 1 else "3"))
      if "call" in step:
        shape = step.split("(")
        declarations.append("declare " + shape[0].removeprefix("call ") + "(" + kind + (
          ", i1)" if "i1 false" in step else f", {kind})" if "Y" in step else ")"))
      last = f"%v{k}"
      total.append(f"%t{k + 1} = xor {kind} %t{k}, {last}")
      total.append(f"%w{k} = mul {kind} {last}, 3") if k == 0 else None
    yield Case(f"uniform_{kind}", (kind,), (kind,), "\n  ".join([*lines, *total]) +
               f"\n  %r = xor {kind} %t{len(steps)}, %a", "\n".join(declarations))
  yield Case("uniform_branch", ("i32",), ("i32",), "%k = icmp ugt i32 %group, 3\n  br i1 %k, label %x, label %y\nx:\n  "
             "%u = mul i32 %a, %group\n  br label %m\ny:\n  %q = getelementptr i32, ptr addrspace(1) %pa, i32 "
             "%group\n  "
             "%v = load i32, ptr addrspace(1) %q\n  br label %m\nm:\n  %r = phi i32 [%u, %x], [%v, %y]")
  yield Case("uniform_compare_64", ("i32",), ("i32",), "%z = zext i32 %group to i64\n  %q = getelementptr i64, ptr "
             "addrspace(1) %pa, i64 %z\n  %v = load i64, ptr addrspace(1) %q\n  %k = icmp eq i64 %v, 5\n  "
             "%l = icmp ugt i64 %v, 1099511627776\n  %x = select i1 %k, i32 3, i32 %a\n  %r = select i1 %l, i32 "
             "%group, i32 %x")
  yield Case("uniform_float", ("float",), ("float",), "%z = uitofp i32 %group to float\n  %y = fmul float %z, 1.5\n  "
             "%q = getelementptr float, ptr addrspace(1) %pa, i32 %group\n  %v = load float, ptr addrspace(1) %q\n  "
             "%x = fadd float %y, %v\n  %r = fmul float %x, %a")


def all_control() -> list[Case]:
  """All cases of this module."""
  return [*memory(), *control()]
