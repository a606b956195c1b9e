"""PTX in compiled code against the reference: the same memory, the same faults."""
from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from tests.isa import ptx_samples as samples
from tests.strength import examples, seed, seeds
from tinyhw.core.errors import InvalidArgument, MachineFault, PageFault
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines import ptx_compiled
from tinyhw.emulator.engines.both import EnginesDiffer
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.jit.ptx.module import code
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.simt import Stats
from tinyhw.isa.ptx import parse
from tinyhw.tools.fuzz import ptx as fuzz
from tinyhw.tools.fuzz.program import programs

HEAD = ".version 9.0\n.target sm_120a\n.address_size 64\n"
IN, OUT = 0x1_0000_0000, 0x2_0000_0000
REGISTERS = [("r", "b32", 4), ("f", "b32", 4), ("h", "b16", 2), ("d", "b64", 8), ("l", "b64", 8)]
THREADS = 80  # two warps and a half


def run(text: str, name: str, data: bytes, how: str, grid: Any = 1, block: Any = THREADS, size: int = 1 << 16,
        shared: int = 0, watchdog: int = 200_000) -> tuple[Any, Stats]:
  """(what the kernel left at OUT, what it did); its parameters are the addresses of `data` and OUT."""
  linked = link(parse(text))
  space = AddressSpace("two engines")
  params = IN.to_bytes(8, "little") + OUT.to_bytes(8, "little")
  for at, content in ((IN, data), (OUT, bytes(size)), (0x3_0000_0000, params),
                      (0x4_0000_0000, bytes(max(linked.size, 1)))):
    region = Region("data", -(-max(len(content), 1) // 4096) * 4096)
    space.map(at, region.size, region)
    space.write(at, content)
  program = Program(linked, name, 0x4_0000_0000)
  if linked.size: space.write(0x4_0000_0000, linked.bytes_at(0x4_0000_0000, program.functions))
  def three(x: Any) -> tuple[int, int, int]: return tuple([*(x if isinstance(x, tuple) else (x,)), 1, 1][:3])  # type: ignore[return-value]
  d = Dispatch(program, three(grid), three(block), 0x3_0000_0000, 16, shared)
  stats = dispatch(space, d, watchdog=watchdog, engine=how)
  return np.frombuffer(space.read(OUT, size), np.uint8), stats


def kernel(body: str, more: str = "") -> str:
  """A kernel with the addresses of its data in %in and %out, its index in %t."""
  head = HEAD.replace("sm_120a", "sm_90a") if "wgmma" in body else HEAD  # that is Hopper's alone
  return f"""{head}{more}.visible .entry k (.param .u64 in, .param .u64 out) {{
  .reg .pred %p<12>; .reg .b16 %h<12>; .reg .b32 %r<24>, %t; .reg .f32 %f<12>; .reg .f64 %d<12>;
  .reg .b64 %l<12>, %in, %out;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
  {body}
  ret;
}}"""


def both(text: str, data: bytes, refused: bool = False, **more: Any) -> tuple[Any, Stats]:
  """What both engines leave, which must be the same."""
  reference, _ = run(text, "k", data, "ref", **more)
  compiled, stats = run(text, "k", data, "jit", **more)
  assert (stats.engine != "jit") == refused, stats.interpreted
  at = np.flatnonzero(reference != compiled)
  assert not at.size, f"{at.size} bytes differ, the first at {at[0]}"
  return compiled, stats


# ---- every instruction that computes: on vectors, on what threads share, and on steps

LEFT_OUT = re.compile(r"%[qb]\d|\[|alloca|stack|trap|brkpt|^exit|bar|clock|sync|griddep|setmaxnreg|createpolicy|elect"
                      r"|activemask|vote|shfl|match|redux|pmevent|nanosleep|cvta|mapa|getctarank|mma|movmatrix"
                      r"|\.cc|[dm]c\.|subc")
SPECIAL = [0, 1, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0x7F800001, 0x3F800000, 0x00000001, 0x7FFFFFFF,
           0xFFFFFFFF, 0x7C007C01, 0x3C000400]


def numbers(rng: random.Random, count: int) -> bytes:
  """Random dwords, many of them special."""
  return b"".join((rng.choice(SPECIAL) if rng.random() < 0.3 else rng.getrandbits(32)).to_bytes(4, "little")
                  for _ in range(count))


def moved(lines: list[str], rng: random.Random) -> str:
  """Instructions between loads of all registers and stores of them all."""
  begin, end, at = [], [], 0
  for letter, type_, size in REGISTERS:
    for k in range(1, 9):
      kind = rng.randrange(4)  # of each thread, shared, in steps
      at = -(-at // size) * size
      step = f"mad.wide.u32 %l9, %t, {size}, %in; " if kind < 2 else "mov.b64 %l9, %in; "
      begin.append(f"{step}ld.global.{type_} %{letter}{k}, [%l9+{256 * 8 * at if kind < 2 else at}];")
      if kind == 3 and letter == "r": begin.append(f"mad.lo.u32 %r{k}, %t, {rng.choice((1, 4, 7))}, %r{k};")
      end.append(f"mad.wide.u32 %l9, %t, {size}, %out; st.global.{type_} [%l9+{128 * at}], %{letter}{k};")
      at += size
  for k in range(1, 9):
    begin.append(f"setp.lt.s32 %p{k}, %r{k}, %r{k % 8 + 1};" if k % 2 else f"setp.gt.u32 %p{k}, %t, {k * 7};")
    end.append(f"selp.u32 %r9, 1, 0, %p{k}; mad.wide.u32 %l9, %t, 4, %out; st.global.u32 [%l9+{128 * at}], %r9;")
    at += 4
  body = [f"@%p{rng.randrange(3, 9)} {line}" if rng.random() < 0.25 else line for line in lines]
  return "\n".join([*begin, *body, *end])


def forms() -> list[str]:
  texts = samples.samples(2, random.Random(seed(7)))
  lines = [line for of in texts.values() for line in of.values()]
  return [line for line in lines if not LEFT_OUT.search(line)]


LINES = forms()


@pytest.mark.parametrize("start", seeds(range(2)))
def test_instructions(start: int) -> None:
  """Random instructions in random order."""
  rng = random.Random(start)
  data = numbers(rng, 256 * 8 * 512)
  for _ in range(examples(1)):
    text = kernel(moved(rng.sample(LINES, 24), rng)).replace("sm_120a", "sm_100a")  # which has them all
    reference, _ = run(text, "k", data, "ref")
    compiled, stats = run(text, "k", data, "jit")
    assert stats.engine == "jit", stats.interpreted
    same = reference.view(np.uint32) == compiled.view(np.uint32)
    # of f64, NaN is whichever the host's instructions make
    x, y = reference.view(np.float64), compiled.view(np.float64)
    nan = np.repeat((x != x) & (y != y), 2)
    assert (same | nan).all(), (start, np.flatnonzero(~(same | nan))[:4])


def test_video_instructions() -> None:
  """One line of each: the values are the same, and nothing is left to the reference's threads."""
  video = {line.split(".")[0]: line for line in LINES if line.startswith("v")}
  assert len(video) == 8 + 1 + 14
  body = [f"mul.lo.u32 %r{n}, %t, {n * 0x01234567 + 1};" for n in range(2, 6)]
  for line in video.values(): body += [line, "xor.b32 %r9, %r9, %r2;"]
  body.append("mul.wide.u32 %l1, %t, 4; add.u64 %l1, %out, %l1; st.global.u32 [%l1], %r9;")
  _, stats = both(kernel(" ".join(body)), bytes(4))
  assert not stats.interpreted


# ---- control

@pytest.mark.parametrize("start", seeds(range(1)))
def test_random_programs(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", "jit")
  assert not fuzz.check(programs(range(start * 4, start * 4 + 4)), [2], seed=seed(start))


DIVERGENT = """
  mov.u32 %r1, 0; mov.u32 %r2, 0; and.b32 %r3, %t, 7;
LOOP:
  setp.ge.u32 %p1, %r2, %r3; @%p1 bra OUT;
  and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN;
  add.u32 %r1, %r1, %t; bra NEXT;
EVEN:
  mad.lo.u32 %r1, %r1, 3, 1;
NEXT:
  add.u32 %r2, %r2, 1; bra LOOP;
OUT:
  mad.lo.u32 %r1, %r1, 16, %r2;
  setp.eq.u32 %p3, %t, 5; @%p3 exit;
  mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r1;
"""


def test_threads_that_part() -> None:
  """Loops of different lengths with branches in them; one thread ends before the others."""
  found, stats = both(kernel(DIVERGENT), bytes(4096))
  assert found[20:24].tobytes() == bytes(4)
  assert not stats.interpreted


@pytest.mark.left("bar.sync")
def test_a_barrier_that_some_threads_reach() -> None:
  body = "setp.lt.u32 %p1, %t, 7; @%p1 bar.sync 0; mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %t;"
  _, stats = both(kernel(body), bytes(64))
  assert stats.interpreted == {"bar.sync": 1}


def test_a_barrier_and_shared_memory() -> None:
  body = """
  mov.u32 %r1, s; mad.lo.u32 %r2, %t, 4, %r1; st.shared.u32 [%r2], %t; bar.sync 0;
  xor.b32 %r3, %t, 63; and.b32 %r3, %r3, 63; mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.u32 %r4, [%r2];
  mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mad.lo.u32 %r5, %r5, %r6, %t;
  mad.wide.u32 %l1, %r5, 4, %out; st.global.u32 [%l1], %r4;"""
  found, stats = both(kernel(body, ".shared .align 4 .b8 s[256];\n"), bytes(4096), grid=5, block=64)
  assert (found[:1280].view(np.uint32).reshape(5, 64) == np.arange(64) ^ 63).all()
  assert not stats.interpreted


@pytest.mark.parametrize("dims", [(16, 4, 1), (8, 8, 2), (3, 5, 7), (48, 2, 1), (1, 64, 1), (33, 1, 2), (5, 1, 1)])
def test_indices_of_threads(dims: tuple[int, int, int]) -> None:
  n = int(np.prod(dims))
  body = f"""
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %laneid; mov.u32 %r5, %warpid;
  mad.lo.u32 %r6, %r3, {dims[1]}, %r2; mad.lo.u32 %r6, %r6, {dims[0]}, %r1; mov.u32 %r7, %ctaid.y;
  mad.lo.u32 %r6, %r7, {n}, %r6;
  mad.wide.u32 %l1, %r6, 32, %out; st.global.v4.u32 [%l1], {{%r1, %r2, %r3, %r4}}; mov.u32 %r8, %lanemask_lt;
  st.global.v2.u32 [%l1+16], {{%r5, %r8}}; st.global.u32 [%l1+24], %r7;"""
  found, _ = both(kernel(body), bytes(4096), grid=(1, 3), block=dims)
  rows = found[:n * 96].view(np.uint32).reshape(3, n, 8)
  assert (rows[1, :, 0] == np.arange(n) % dims[0]).all() and (rows[2, :, 6] == 2).all()


# ---- memory

ACCESSES = [
  "ld.global.u32 %r1, [%l1]; st.global.u32 [%l2], %r1;", "ld.global.u8 %r1, [%l1+3]; st.global.u8 [%l2+1], %r1;",
  "ld.global.s16 %r1, [%l1+2]; st.global.u32 [%l2], %r1;", "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%l1]; "
  "st.global.v4.u32 [%l2], {%r4,%r3,%r2,%r1};", "ld.global.v2.f64 {%d1,%d2}, [%l1]; st.global.v2.f64 [%l2], {%d2,%d1};",
  "@%p1 ld.global.u32 %r1, [%l1]; @!%p1 st.global.u32 [%l2], %r1;", "ld.u32 %r1, [%l1]; st.u64 [%l2], %l1;",
  "st.global.u32 [%out], %t;", "@%p1 st.global.u32 [%out+4], %t;",
  "@%p1 ld.global.u32 %r1, [%in+8]; st.global.u32 [%l2], %r1;"]


@pytest.mark.parametrize("step", ["mul.wide.u32 %l3, %t, 16;", "mul.lo.u32 %r8, %t, 7; rem.u32 %r8, %r8, 61; "
                                  "mul.wide.u32 %l3, %r8, 16;", "shr.u32 %r8, %t, 2; mul.wide.u32 %l3, %r8, 16;"])
@pytest.mark.parametrize("access", range(len(ACCESSES)))
def test_loads_and_stores(access: int, step: str) -> None:
  body = f"mov.u32 %r1, 7; setp.lt.u32 %p1, %t, 37; {step} add.u64 %l1, %in, %l3; add.u64 %l2, %out, %l3;"
  _, stats = both(kernel(body + ACCESSES[access]), numbers(random.Random(access), 1024))
  assert not stats.interpreted


def test_the_stack() -> None:
  body = """.local .align 8 .b8 stack[64];
  and.b32 %r1, %t, 7; mov.u64 %l1, stack; mad.wide.u32 %l2, %r1, 4, %l1; st.local.u32 [%l2], %t;
  st.local.u32 [%l1+32], %r1;
  ld.local.u32 %r2, [%l2]; ld.local.u32 %r3, [stack+32]; mad.lo.u32 %r2, %r2, 8, %r3;
  mad.wide.u32 %l3, %t, 4, %out; st.global.u32 [%l3], %r2;"""
  found, _ = both(kernel(body), bytes(4096))
  assert (found[:320].view(np.uint32) == np.arange(80) * 8 + np.arange(80) % 8).all()


@pytest.mark.parametrize("body", [
  "atom.global.add.u32 %r1, [%out], %t; mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1+64], %r1;",
  "and.b32 %r2, %t, 3; mad.wide.u32 %l1, %r2, 4, %out; red.global.max.s32 [%l1], %t;",
  "cvt.rn.f32.u32 %f1, %t; red.global.add.f32 [%out], %f1; atom.global.exch.b64 %l2, [%out+8], %in;",
  "atom.global.cas.b32 %r1, [%out], %t, 5; mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1+64], %r1;",
  "setp.gt.u32 %p1, %t, 9; @%p1 red.global.inc.u32 [%out], 12; red.shared.add.u32 [s], %t; bar.sync 0; "
  "ld.shared.u32 %r1, [s]; st.global.u32 [%out+4], %r1;"])
def test_atomics(body: str) -> None: both(kernel(body, ".shared .align 8 .b8 s[8];\n"), bytes(64))


ATOMICS = ["add.noftz.f16 %h1, {at}, %h2", "add.noftz.bf16 %h1, {at}, %h2", "cas.b16 %h1, {at}, %h2, %h3",
           "v2.min.noftz.bf16x2 {{%r1, %r2}}, {at}, {{%r5, %r6}}",
           "v2.max.noftz.f16x2 {{%r1, %r2}}, {at}, {{%r5, %r6}}",
           "v2.add.f32 {{%f1, %f2}}, {at}, {{%f3, %f4}}",
           "v4.add.f32 {{%f1, %f2, %f5, %f6}}, {at}, {{%f3, %f4, %f7, %f8}}",
           "v8.min.noftz.f16 {{%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}}, {at}, "
           "{{%h2, %h3, %h4, %h5, %h6, %h7, %h8, %h9}}",
           "v4.add.noftz.bf16x2 {{%r1, %r2, %r3, %r4}}, {at}, {{%r5, %r6, %r7, %r8}}", "exch.b128 %q1, {at}, %q2",
           "cas.b128 %q1, {at}, %q3, %q2", "exch.b128 _, {at}, %q2"]


@pytest.mark.parametrize("atomics", [ATOMICS[k::3] for k in range(3)], ids=["0", "1", "2"])
def test_atomics_of_other_sizes(atomics: list[str]) -> None:
  """Of 16 and 128 bits, and of vectors, by threads that share cells; a misaligned one is a fault."""
  lines = []
  for atomic in atomics:
    name, rest = atomic.split(" ", 1)
    parts = name.split(".")
    if parts[0] in {"v2", "v4", "v8"}: parts = [*parts[1:-1], parts[0], parts[-1]]
    for space, where, guard in (("global", "[%l5]", ""), ("shared", "[%r20]", "@%p1 "), ("", "[%l6]", "@!%p1 ")):
      if parts[-2][0] == "v" and space == "shared": continue
      lines.append(f"{guard}{'.'.join(['atom', *[space] * bool(space), *parts])} {rest.format(at=where)};")
  begin = [f"ld.global.u16 %h{k}, [%l4+{2 * k}]; ld.global.b32 %r{k}, [%l4+{4 * k}]; "
           f"ld.global.f32 %f{k}, [%l4+{4 * k}];" for k in range(1, 10)]
  end = [f"st.global.u16 [%l7+{2 * k}], %h{k}; st.global.b32 [%l7+{20 + 4 * k}], %r{k}; "
         f"st.global.f32 [%l7+{60 + 4 * k}], %f{k};" for k in range(1, 10)]
  body = f""".reg .b128 %q<4>; and.b32 %r20, %t, 3; shl.b32 %r20, %r20, 5; mov.u32 %r21, s; add.u32 %r20, %r20, %r21;
    cvt.u64.u32 %l5, %r20; add.u64 %l5, %l5, %out; mad.wide.u32 %l4, %t, 64, %in; and.b32 %r22, %t, 4;
    setp.eq.u32 %p1, %r22, 0; cvt.u64.u32 %l6, %r20; cvta.shared.u64 %l6, %l6; @%p1 mov.b64 %l6, %l5;
    {" ".join(begin)} ld.global.b128 %q2, [%l4]; ld.global.b128 %q3, [%out+32]; mov.b128 %q1, %q2; {" ".join(lines)}
    mad.wide.u32 %l7, %t, 160, %out; add.u64 %l7, %l7, 4096; {" ".join(end)} mov.b128 {{%l8, %l9}}, %q1;
    st.global.b128 [%l7+112], %q1; st.global.u64 [%l7+128], %l8;"""
  data = bytes(b & 0x3B for b in numbers(random.Random(1), 4096))
  text = kernel(body, ".shared .align 32 .b8 s[128];\n")
  _, stats = both(text, data, block=32)
  assert not stats.helped and not stats.interpreted
  text = text.replace("mov.u32 %r21, s;", "mov.u32 %r21, s; add.u32 %r21, %r21, 1;")
  with pytest.raises(MachineFault) as caught: run(text, "k", data, "jit")
  assert "misaligned" in str(caught.value)


def test_a_policy_for_caches() -> None:
  both(kernel("""createpolicy.fractional.L2::evict_last.b64 %l1, 1.0; ld.global.L2::cache_hint.u32 %r1, [%in], %l1;
    st.global.u32 [%out], %r1;"""), numbers(random.Random(1), 4))


WARPS = [
  "shfl.sync.bfly.b32 %r1|%p1, %t, 5, 31, -1;", "shfl.sync.idx.b32 %r1|%p1, %t, %r2, 0x1807, -1;",
  "shfl.sync.up.b32 %r1|%p1, %t, 3, 0, -1;", "shfl.sync.down.b32 %r1|%p1, %t, %r2, 0x1F, -1;",
  "vote.sync.ballot.b32 %r1, %p2, -1;", "vote.sync.any.pred %p1, %p2, -1; selp.u32 %r1, 3, 4, %p1;",
  "redux.sync.add.s32 %r1, %r2, -1;", "redux.sync.max.u32 %r1, %t, -1;", "match.any.sync.b32 %r1, %r2, -1;",
  "activemask.b32 %r1;", "@%p2 bra HERE; mov.u32 %r1, 9; bra THERE; HERE: activemask.b32 %r1; THERE:",
  "@%p2 bra HERE; mov.u32 %r1, 9; bra THERE; HERE: vote.sync.ballot.b32 %r1, %p3, 0x00AA00AA; THERE:"]


@pytest.mark.parametrize("body", WARPS)
def test_warps(body: str) -> None:
  both(kernel(f"""mov.u32 %r1, 77; and.b32 %r2, %t, 5; setp.eq.u32 %p3, %r2, 1; and.b32 %r3, %t, 1;
  setp.eq.u32 %p2, %r3, 1; mad.wide.u32 %l1, %t, 4, %out; {body} st.global.u32 [%l1], %r1;"""), bytes(64), block=64)


MATRICES = [
  ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
   "{%f1,%f2,%f3,%f4};"),
  ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5}, {%f1,%f2,%f3,%f4};"),
  ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
   "{%f1,%f2,%f3,%f4};"),
  ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
   "{%r7,%r8,%r7,%r8};"),
  "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r5}, {%r7,%r8,%r7,%r8};",
  "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1,%r2}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%r7,%r8};",
  "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;"]


@pytest.mark.parametrize("body", MATRICES)
def test_matrices(body: str) -> None:
  """Numbers that are no NaN: of several, which one comes out is open."""
  rng = np.random.default_rng(1)
  data = rng.standard_normal(32 * 32).astype(np.float16).tobytes() * 2
  loads = "".join(f"ld.global.u32 %r{k}, [%l1+{4 * k}];" for k in range(1, 9))
  loads += "".join(f"cvt.rn.f32.u32 %f{k}, %t;" for k in range(1, 5))
  stores = "".join(f"st.global.u32 [%l2+{4 * k}], %r{k}; st.global.f32 [%l2+{16 + 4 * k}], %f{k};" for k in range(1, 5))
  places = "mad.wide.u32 %l1, %t, 32, %in; mad.wide.u32 %l2, %t, 64, %out;"
  both(kernel(f"{places} {loads} {body} {stores}"), data, block=32)


@pytest.mark.parametrize("copy", [
  "cp.async.cg.shared.global [%r2], [%l1], 16;", "cp.async.ca.shared.global [%r2], [%l1], 8, %r3;",
  "cp.async.cg.shared.global [%r2], [%l1], 16, %r3;", "@%p1 cp.async.ca.shared.global [%r2], [%l1], 4;"])
@pytest.mark.parametrize("way", ["x1", "x2.trans", "x4", "x4.trans"])
def test_copies_and_matrices_in_shared_memory(way: str, copy: str) -> None:
  count = int(way[1])
  to = ",".join(f"%r{k}" for k in range(4, 4 + count))
  stores = "".join(f"st.global.u32 [%l2+{4 * k}], %r{4 + k};" for k in range(count))
  body = f"""mov.u32 %r1, s; mad.lo.u32 %r2, %t, 16, %r1; mad.wide.u32 %l1, %t, 16, %in; setp.gt.u32 %p1, %t, 3;
  and.b32 %r3, %t, 1; shl.b32 %r3, %r3, 4; {copy} cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
  xor.b32 %r3, %t, 5; mad.lo.u32 %r3, %r3, 16, %r1; ldmatrix.sync.aligned.m8n8.{way}.shared.b16 {{{to}}}, [%r3];
  mad.wide.u32 %l2, %t, 16, %out; {stores}"""
  _, stats = both(kernel(body, ".shared .align 16 .b8 s[512];\n"), numbers(random.Random(2), 1024), block=32)
  assert not stats.interpreted


@pytest.mark.parametrize("way", ["x1", "x2.trans", "x4", "x4.trans"])
@pytest.mark.parametrize("shift", [0, 4])
def test_matrices_are_stored(way: str, shift: int) -> None:
  """Rows in any order; where a row is misaligned, both engines say so."""
  given = ",".join(f"%r{k}" for k in range(4, 4 + int(way[1])))
  body = f"""mov.u32 %r1, s; mad.lo.u32 %r2, %t, 16, %r1; mad.wide.u32 %l1, %t, 16, %in;
  ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%l1]; mov.u32 %r3, 7; st.shared.v4.u32 [%r2], {{%r3, %r3, %t, %t}};
  bar.sync 0; xor.b32 %r3, %t, 5; mad.lo.u32 %r3, %r3, 16, %r1; add.u32 %r3, %r3, {shift};
  stmatrix.sync.aligned.m8n8.{way}.shared.b16 [%r3], {{{given}}}; bar.sync 0;
  ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r2]; mad.wide.u32 %l2, %t, 16, %out;
  st.global.v4.u32 [%l2], {{%r4, %r5, %r6, %r7}};"""
  text = kernel(body, ".shared .align 16 .b8 s[528];\n")
  if shift:
    with pytest.raises(MachineFault, match="misaligned"): both(text, numbers(random.Random(2), 1024), block=32)
  else:
    _, stats = both(text, numbers(random.Random(2), 1024), block=32)
    assert not stats.interpreted


@pytest.mark.left("ldmatrix")
@pytest.mark.parametrize("where", ["s", "in"])
def test_matrices_at_generic_addresses(where: str) -> None:
  """Of shared memory; in global memory the reference goes on."""
  at = "mov.u64 %l5, s; cvta.shared.u64 %l5, %l5;" if where == "s" else "mov.u64 %l5, %in;"
  body = f"""mov.u32 %r1, s; mad.lo.u32 %r2, %t, 16, %r1; mad.wide.u32 %l1, %t, 16, %in;
  ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%l1]; st.shared.v4.u32 [%r2], {{%r4, %r5, %r6, %r7}}; bar.sync 0; {at}
  mad.wide.u32 %l5, %t, 16, %l5; ldmatrix.sync.aligned.m8n8.x2.trans.b16 {{%r4, %r5}}, [%l5]; bar.sync 0;
  stmatrix.sync.aligned.m8n8.x2.b16 [%l5], {{%r5, %r4}}; bar.sync 0; ld.v2.u32 {{%r6, %r7}}, [%l5];
  mad.wide.u32 %l2, %t, 16, %out; st.global.v4.u32 [%l2], {{%r4, %r5, %r6, %r7}};"""
  _, stats = both(kernel(body, ".shared .align 16 .b8 s[528];\n"), numbers(random.Random(2), 1024), block=32)
  assert not stats.helped and bool(stats.interpreted) == (where == "in")


def test_sparse_products() -> None:
  text = kernel("""mov.u32 %r5, 0x44444444; mad.wide.u32 %l1, %t, 4, %in; ld.global.u32 %r1, [%l1]; mov.u32 %r2, %r1;
  cvt.rn.f32.u32 %f1, %t; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
  mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r1,%r2},
  {%f1,%f2,%f3,%f4}, %r5, 0;
  mad.wide.u32 %l2, %t, 4, %out; st.global.f32 [%l2], %f1;""")
  _, stats = both(text, np.ones(512, np.float16).tobytes(), block=32)
  assert not stats.interpreted
  twice = text.replace("0x44444444", "0x44454444")
  for name in ("ref", "jit"):
    with pytest.raises(MachineFault, match="of a chunk twice"): run(twice, "k", bytes(1024), name, block=32)


# ---- compiled code takes over

LOOPS = [
  """mov.u32 %r1, 0; mov.u32 %r2, 0;
L: add.u32 %r1, %r1, %t; add.u32 %r2, %r2, 1; mad.lo.u32 %r1, %r1, 3, %r2; setp.lt.u32 %p1, %r2, 20000; @%p1 bra L;
  mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r1;""",
  """mov.u32 %r2, 0; mov.u32 %r5, %t; mov.u32 %r1, s; mad.lo.u32 %r6, %t, 4, %r1; xor.b32 %r3, %t, 33;
  mad.lo.u32 %r3, %r3, 4, %r1;
L: st.shared.u32 [%r6], %r5; bar.sync 0; ld.shared.u32 %r4, [%r3]; bar.sync 0; mad.lo.u32 %r5, %r5, 5, %r4;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 3000; @%p1 bra L;
  mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r5;""",
  """and.b32 %r3, %t, 7; mad.lo.u32 %r3, %r3, 1000, 500; mov.u32 %r2, 0; mov.u32 %r1, 0; add.cc.u32 %r4, %t, -3;
L: add.u32 %r2, %r2, 1; setp.ge.u32 %p1, %r2, %r3; mad.lo.u32 %r1, %r1, 3, %r2; @!%p1 bra L;
  addc.u32 %r1, %r1, 0; mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r1;"""]


@pytest.mark.parametrize("body", LOOPS)
def test_compiled_code_takes_threads_over_where_they_stand(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(code, "kept", lambda *_: False)
  monkeypatch.setattr(ptx_compiled, "_LLVM", 0.0)
  text = kernel(body, ".shared .align 4 .b8 s[512];\n")
  reference, _ = run(text, "k", bytes(64), "ref", grid=2, block=64, watchdog=1_000_000)
  found, stats = run(text, "k", bytes(64), "auto", grid=2, block=64, watchdog=1_000_000)
  assert stats.engine == "jit" and not stats.interpreted and (found == reference).all()


def test_a_short_launch_is_interpreted() -> None:
  text = kernel("mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], 77;")
  assert run(text, "k", bytes(64), "auto")[1].engine == "ref"


# ---- what leaves compiled code

@pytest.mark.parametrize("body", [
  "mad.wide.u32 %l1, %t, 4096, %in; ld.global.u32 %r1, [%l1];", "st.global.u32 [%out+2], %t;",
  "setp.eq.u32 %p1, %t, 67; mov.b64 %l1, %out; @%p1 mov.b64 %l1, 64; st.global.u32 [%l1], %t;",
  "setp.eq.u32 %p1, %t, 67; @%p1 trap; st.global.u32 [%out], %t;",
  "mad.lo.u32 %r1, %t, 64, 0; st.shared.u32 [%r1], %t;",
  "A: bra A;",
  "atom.global.add.u32 %r1, [%in+1048576], 1;"])
def test_faults_are_the_reference_s(body: str) -> None:
  text = kernel(body, ".shared .align 8 .b8 s[1024];\n")
  found = []
  for how in ("ref", "jit"):
    with pytest.raises(MachineFault) as caught: run(text, "k", bytes(4096), how)
    found.append((type(caught.value), str(caught.value), caught.value.pc, caught.value.wave, caught.value.lane))
  assert found[0] == found[1]


def test_memory_that_nobody_reads_may_be_anywhere() -> None:
  """Threads whose guard is false have any address; the last ones of a piece reach to its end."""
  body = "setp.lt.u32 %p1, %t, 64; mad.wide.u32 %l1, %t, 64, %in; @%p1 ld.global.u32 %r1, [%l1]; " \
         "mad.wide.u32 %l2, %t, 4, %out; st.global.u32 [%l2], %r1;"
  both(kernel(body), numbers(random.Random(1), 1024))


@pytest.mark.left("cvt.u64.u32")
def test_steps_that_pass_the_end_of_their_type() -> None:
  """An index of 32 bits that wraps is widened as the chip does it, by the reference if need be."""
  body = """sub.u32 %r1, %t, 3; cvt.u64.u32 %l1, %r1; mad.wide.u32 %l2, %t, 8, %out; st.global.u64 [%l2], %l1;"""
  found, stats = both(kernel(body), bytes(64), grid=64)
  assert found[:8].view(np.uint64)[0] == 0xFFFFFFFD
  assert stats.interpreted == {"cvt.u64.u32": 64}  # the warps that came to it


@pytest.mark.left("cvt.u64.u32")
def test_an_index_that_wraps_in_a_loop() -> None:
  """From the next turn on the index is a vector, and the loop is compiled code's."""
  body = """mov.u32 %r2, 0; mov.u64 %l3, 0;
L: sub.u32 %r1, %t, %r2; cvt.u64.u32 %l1, %r1; add.u64 %l3, %l3, %l1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 900;
  @%p1 bra L;
  mad.wide.u32 %l2, %t, 8, %out; st.global.u64 [%l2], %l3;"""
  _, stats = both(kernel(body), bytes(64), grid=3)
  assert stats.interpreted == {"cvt.u64.u32": 9} and stats.engine == "jit"


def test_both_engines_at_once() -> None:
  body = "mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %t;"
  assert run(kernel(body), "k", bytes(64), "both")[0][:320].view(np.uint32).tolist() == [*range(80)]
  with pytest.raises(PageFault): run(kernel("st.global.u32 [%l8], %t;"), "k", bytes(64), "both")
  with pytest.raises(InvalidArgument, match="no engine is called 'fast'; there are"):
    run(kernel(body), "k", bytes(64), "fast")


def test_engines_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
  written = code.written
  def wrong(*given: Any) -> Any:
    header, text = written(*given)
    return header, text.replace(" mul <32 x i32>", " add <32 x i32>")
  monkeypatch.setattr(code, "written", wrong)
  monkeypatch.setenv("TINYHW_CACHE", "0")
  body = "xor.b32 %r2, %t, 5; mul.lo.u32 %r1, %r2, 77; mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r1;"
  with pytest.raises(EnginesDiffer, match="80 dwords of memory differ after k: 0x200000000: reference 0x"):
    run(kernel(body), "k", bytes(64), "both")


def test_a_trap_is_found_after_stores() -> None:
  """The reference takes over where threads stand: what they have stored is there."""
  body = "mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %t; setp.eq.u32 %p1, %t, 99; @%p1 trap; " \
         "ld.global.u32 %r1, [%l1]; add.u32 %r1, %r1, 1; st.global.u32 [%l1], %r1;"
  found, _ = both(kernel(body), bytes(64))
  assert (found[:320].view(np.uint32) == np.arange(80) + 1).all()
  with pytest.raises(PageFault): run(kernel("ld.global.u32 %r1, [%t+0];".replace("%t", "%l8")), "k", bytes(64), "jit")


def test_threads_wait_for_other_blocks() -> None:
  """Blocks that poll what later blocks store."""
  body = """mov.u32 %r1, %ctaid.x; mad.wide.u32 %l1, %r1, 4, %out; add.u32 %r2, %r1, 1; setp.eq.u32 %p1, %r1, 7;
@%p1 bra GO;
WAIT: ld.volatile.global.u32 %r3, [%l1+4]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;
GO: st.volatile.global.u32 [%l1], %r2;"""
  found, _ = both(kernel(body), bytes(64), grid=8, block=32, watchdog=50_000_000)
  assert (found[:32].view(np.uint32) == np.arange(8) + 1).all()


