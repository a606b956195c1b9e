"""What Hopper adds to PTX, in compiled code against the reference: the same memory, the same faults."""
from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from tests.emulator.jit.ptx.test_jit import both, kernel, run
from tests.strength import THOROUGH, seed, seeds
from tinyhw.core.errors import MachineFault, Unsupported
from tinyhw.emulator.engines import ptx_compiled
from tinyhw.emulator.jit.ptx.module import code

KINDS = [("f32", "f16", "f16", 16), ("f16", "f16", "f16", 16), ("f32", "bf16", "bf16", 16), ("f32", "tf32", "tf32", 8),
         ("f32", "e4m3", "e5m2", 32), ("s32", "s8", "u8", 32), ("f16", "e5m2", "e4m3", 32)]
DENSE = [*KINDS, ("s32", "b1", "b1", 256)]


def drawn(rng: random.Random, t: str, count: int) -> bytes:
  """Elements of a type that are no NaN: of several, which one comes out is open."""
  values = np.random.default_rng(rng.getrandbits(32))
  x = values.standard_normal(count).astype(np.float32) * np.float32(2) ** values.integers(-6, 6, count)
  if t == "f16": return x.astype(np.float16).tobytes()
  if t == "bf16": return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()
  if t == "tf32": return x.astype(np.float32).tobytes()
  bits = values.integers(0, 256, count).astype(np.uint8)
  if t[0] == "e": bits = np.where(bits & 0x7F > 0x7A, 0, bits).astype(np.uint8)
  return bits.tobytes()


def places(rng: random.Random, a: str, k: int) -> tuple[str, int]:
  """(text that gives threads metadata of a sparse matrix in %m, a selector)."""
  two = [4, 14] if a == "tf32" else [4, 8, 12, 9, 13, 14, 1, 6]  # different ones of a chunk, in any order
  words = [int("".join(f"{rng.choice(two):x}" for _ in range(8)), 16) for _ in range(3)]
  body = (f".reg .b32 %m; and.b32 %m, %t, 5; setp.eq.u32 %p1, %m, 0; setp.gt.u32 %p2, %m, 3; mov.b32 %m, {words[0]};"
          f"@%p1 mov.b32 %m, {words[1]}; @%p2 mov.b32 %m, {words[2]};")
  return body, rng.randrange(max(16 * {"tf32": 2, "s4": 8, "u4": 8}.get(a, 4) // k, 1))


def wgmma(rng: random.Random, kind: tuple[str, str, str, int], sparse: bool = False) -> tuple[str, bytes]:
  """A random product of its kind: (the kernel's text, what is in shared memory)."""
  d, a, b, k = kind
  n, registers = 8 * rng.choice([1, 2, 3, 8, 32]), rng.random() < 0.5
  count = n // 4 if d == "f16" else n // 2
  across = [a in {"f16", "bf16"} and rng.random() < 0.5 for _ in range(2)]

  def descriptor(at: int) -> int:
    mode = rng.randrange(4)
    return at >> 4 | rng.choice([8, 16, 64]) << 16 | rng.choice([8, 16, 64]) << 32 | mode << 62
  type_, letter = ("b32", "r") if d == "f16" else (("s32", "r") if d == "s32" else ("f32", "f"))
  results = [f"%a{j}" for j in range(count)]
  flags = "p" + (f", {rng.choice([1, -1])}, {rng.choice([1, -1])}" if d != "s32" else "")
  if a in {"f16", "bf16"}:
    flags += "".join(f", {int(x)}" for x in (across[1:] if registers else across))
  left = "{%r1, %r2, %r3, %r4}" if registers else "%l1"
  satfinite = ".and.popc" if a == "b1" else ".satfinite" if d == "s32" and rng.random() < 0.5 else ""
  thin, more = "", ""
  if sparse:
    k *= 2
    thin, selector = places(rng, a, k)
    if a in {"f16", "tf32"}: selector = 1  # of two
    more = f", %m, {selector}"
  name = f"wgmma.mma_async{'.sp' * sparse}.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}{satfinite}"
  begin = {"f32": "cvt.rn.f32.s32 {}, {};", "s32": "mov.b32 {}, {};", "f16": "and.b32 {}, {}, 0xBBFFBBFF;"}[d]
  loads = " ".join(begin.format(r, f"%r{1 + j % 4}") for j, r in enumerate(results))
  stores = " ".join(f"st.global.{type_} [%l6+{4 * j}], {r};" for j, r in enumerate(results))
  body = f"""
  .reg .{type_} %a<{count}>; .reg .pred p;
  mov.u32 %r5, s; mov.u32 %r6, %t;
FILL: mad.wide.u32 %l2, %r6, 16, %in; mad.lo.u32 %r7, %r6, 16, %r5; ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l2];
  st.shared.v4.u32 [%r7], {{%r1, %r2, %r3, %r4}}; add.u32 %r6, %r6, 128; setp.lt.u32 %p1, %r6, 4096; @%p1 bra FILL;
  bar.sync 0;
  mad.wide.u32 %l2, %t, 16, %in; ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l2];
  mad.wide.u32 %l5, %t, 16, %in; mad.wide.u32 %l6, %t, {4 * count}, %out;
  mov.b64 %l1, {descriptor(rng.choice([0, 1024, 4096]))}; mov.b64 %l4, {descriptor(rng.choice([0, 1024, 8192]))};
  setp.ne.u32 p, {rng.randrange(2)}, 0;
  {loads} {thin}
  wgmma.fence.sync.aligned;
  {name} {{{", ".join(results)}}}, {left}, %l4{more}, {flags};
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  {stores}"""
  return kernel(body, ".shared .align 1024 .b8 s[65536];\n"), drawn(rng, a, 65536 * 8 // {"tf32": 32, "f16": 16,
                                                                                         "bf16": 16}.get(a, 8))


@pytest.mark.parametrize("start", seeds(range(1)))
@pytest.mark.parametrize(("kind", "sparse"), [*((k, False) for k in DENSE), *((k, True) for k in KINDS[1:-1])], ids=str)
def test_products_of_a_warpgroup(kind: Any, sparse: bool, start: int) -> None:
  """Every layout, operands in registers and in shared memory."""
  rng = random.Random(seed(start + len(".".join(map(str, kind)))))
  text, data = wgmma(rng, kind, sparse)
  _, stats = both(text, data, block=128)
  assert not stats.interpreted and not stats.helped


LATE = "setp.ge.u32 %p2, %t, 32; @!%p2 bra SOON; nanosleep.u32 100; SOON:"
PRODUCT = """wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %l3, %l4, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;"""


def overwritten(between: str, late: str, then: str, groups: str = PRODUCT) -> str:
  """Products, after whose wait the threads store to what they have read."""
  return kernel(f"""
  mov.u32 %r5, s; mad.lo.u32 %r7, %t, 16, %r5; mad.wide.u32 %l2, %t, 16, %in;
  ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l2]; and.b32 %r1, %r1, 0xBBFFBBFF; and.b32 %r2, %r2, 0xBBFFBBFF;
  and.b32 %r3, %r3, 0xBBFFBBFF; and.b32 %r4, %r4, 0xBBFFBBFF;
  st.shared.v4.u32 [%r7], {{%r1, %r2, %r3, %r4}}; st.shared.v4.u32 [%r7+2048], {{%r4, %r2, %r1, %r3}};
  bar.sync 0; mov.b64 %l3, {8 << 16 | 16 << 32}; mov.b64 %l4, {128 | 8 << 16 | 16 << 32};
  mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
  {late} wgmma.fence.sync.aligned; {groups} {between} {then}
  mad.wide.u32 %l6, %t, 16, %out; st.global.v4.f32 [%l6], {{%f1, %f2, %f3, %f4}};""",
  ".shared .align 1024 .b8 s[4096];\n")


@pytest.mark.parametrize("late", ["", LATE], ids=["together", "late"])
@pytest.mark.parametrize("left", [0, 1])
def test_a_product_is_done_when_its_last_warp_has_made_it(late: str, left: int) -> None:
  """What it reads may be overwritten then, by any warp that has waited for it."""
  data = np.random.default_rng(9).integers(0, 256, 2048, np.uint8).tobytes()
  groups = PRODUCT + left * PRODUCT.replace("%l3, %l4", "%l3, %l3").replace("%f", "%q")
  groups = ".reg .f32 %q<5>;" + groups if left else groups
  then = "st.shared.v4.u32 [%r7+2048], {%r5, %r5, %r5, %r5};"
  wait = f"wgmma.wait_group.sync.aligned {left};"
  expected, _ = both(overwritten(wait, late, "", groups), data, block=128)
  found, stats = both(overwritten(wait, late, then, groups), data, block=128)
  assert (found == expected).all() and not stats.interpreted


def test_a_group_that_a_warp_never_commits() -> None:
  """The others wait for ever, which is found."""
  part = PRODUCT.replace("wgmma.commit", "setp.lt.u32 %p1, %t, 96; @%p1 wgmma.commit")
  text = overwritten("wgmma.wait_group.sync.aligned 0;", "", "bar.sync 0;", part)
  told = set()
  for name in ("ref", "jit"):
    with pytest.raises(MachineFault) as caught: run(text, "k", bytes(2048), name, block=128)
    told.add(str(caught.value))
  assert len(told) == 1 and "wgmma.wait_group.sync.aligned" in told.pop()


# ---- matrices of every kind that mma has

MATRICES = ["m8n8k4.f64.f64.f64.f64", "m16n8k4.f64.f64.f64.f64", "m16n8k16.f64.f64.f64.f64",
            "m16n8k4.f32.tf32.tf32.f32",
            "m8n8k16.s32.s8.u8.s32", "m8n8k32.s32.u4.s4.s32", "m16n8k32.s32.s4.u4.s32.satfinite",
            "m16n8k64.s32.s4.s4.s32", "m16n8k32.f32.e4m3.e5m2.f32", "m16n8k16.f16.e5m2.e4m3.f16",
            "m16n8k32.f16.e4m3.e4m3.f16", "m8n8k128.s32.b1.b1.s32.xor.popc", "m16n8k128.s32.b1.b1.s32.and.popc",
            "m16n8k256.s32.b1.b1.s32.xor.popc", "m16n8k16.f32.bf16.bf16.f32", "m16n8k32.s32.u8.s8.s32.satfinite"]
SPARSE = ["m16n8k16.f32.f16.f16.f32", "m16n8k32.f16.f16.f16.f16", "m16n8k32.f32.bf16.bf16.f32",
          "m16n8k8.f32.tf32.tf32.f32", "m16n8k16.f32.tf32.tf32.f32", "m16n8k64.s32.s8.u8.s32",
          "m16n8k32.s32.u8.s8.s32.satfinite", "m16n8k64.s32.u4.s4.s32", "m16n8k128.s32.s4.s4.s32",
          "m16n8k64.f32.e4m3.e5m2.f32"]
BITS = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "b1": 1, "s4": 4, "u4": 4, "f32": 32, "s32": 32}


def matrices(name: str, rng: random.Random, sparse: bool) -> tuple[str, bytes]:
  """A product of random numbers: (the kernel's text, what it loads)."""
  shape, d, a, b, _, *more = name.split(".")
  m, k = int(shape[1:shape.index("n")]), int(shape[shape.index("k") + 1:])
  size = {"f64": 8}.get(d, 4)

  def words(rows: int, t: str) -> int: return rows * BITS.get(t, 8) // (8 * size) // 32
  counts = [m * 8 * (16 if d == "f16" else 8 * size) // (8 * size) // 32,
            words(m * k // (2 if sparse else 1), a), words(8 * k, b)]
  t, load = ("f64", "f64") if size == 8 else ("f32" if d == "f32" else "b32", "b32")
  body, at, names = f".reg .{t} %x<32>; .reg .{load} %y<32>;", 0, []
  body += f"mad.wide.u32 %l1, %t, {size * 32}, %in; mad.wide.u32 %l2, %t, {size * 16}, %out;"
  thin, selector = places(rng, a, k) if sparse else ("", 0)
  for letter, count in zip("xyy", counts):
    names.append([f"%{letter}{at + j}" for j in range(count)])
    body += "".join(f"ld.global.{t if letter == 'x' else load} {r}, [%l1+{size * (at + j)}];"
                    for j, r in enumerate(names[-1]))
    at += count
  result, left, right = ("{" + ", ".join(n) + "}" for n in names)
  modifiers = [x for x in more if x == "satfinite"], [x for x in more if x != "satfinite"]
  full = ".".join(["mma", *(["sp"] if sparse else []), "sync.aligned", shape, "row.col", *modifiers[0], d, a, b, d,
                   *modifiers[1]])
  body += f"{thin} {full} {result}, {left}, {right}, {result}{f', %m, {selector}' if sparse else ''};"
  body += "".join(f"st.global.{t} [%l2+{size * j}], {r};" for j, r in enumerate(names[0]))
  if size == 8:
    return kernel(body), np.random.default_rng(rng.getrandbits(32)).standard_normal(32 * 32).tobytes()
  return kernel(body), drawn(rng, a, 32 * 32 * 32 // {"tf32": 32, "f16": 16, "bf16": 16}.get(a, 8))


@pytest.mark.parametrize("name", [*MATRICES, *(f"sp.{s}" for s in SPARSE)])
def test_matrices_of_every_kind(name: str) -> None:
  """Sums are those of the reference, bit for bit."""
  rng = random.Random(seed(len(name)))
  sparse = name.startswith("sp.")
  for _ in range(4 if THOROUGH else 1):
    text, data = matrices(name.removeprefix("sp."), rng, sparse)
    _, stats = both(text, data, block=32)
    assert not stats.interpreted and not stats.helped


def test_four_products_of_eight_lanes_each() -> None:
  """mma.m8n8k4 of f16: rows or columns on either side, halves or floats as sums and as results."""
  rng = random.Random(seed(8))
  every = [*itertools.product(("row", "col"), ("row", "col"), ("f16", "f32"), ("f16", "f32"))]
  for left, right, d, c in every if THOROUGH else every[1::4][:2] + every[2::4][2:]:
    body, names = ".reg .b32 %x<20>; .reg .f32 %y<20>;", []
    body += "mad.wide.u32 %l1, %t, 80, %in; mad.wide.u32 %l2, %t, 32, %out;"
    for at, t, count in ((0, d, 8), (8, "f16", 2), (10, "f16", 2), (12, c, 8)):
      letter, load = ("y", "f32") if t == "f32" else ("x", "b32")
      names.append([f"%{letter}{at + k}" for k in range(count // 2 if t == "f16" and count == 8 else count)])
      if at: body += "".join(f"ld.global.{load} {r}, [%l1+{4 * (at + k)}];" for k, r in enumerate(names[-1]))
    operands = ", ".join("{" + ", ".join(n) + "}" for n in names)
    body += f"mma.sync.aligned.m8n8k4.{left}.{right}.{d}.f16.f16.{c} {operands};"
    body += "".join(f"st.global.b32 [%l2+{4 * k}], {r};" for k, r in enumerate(names[0]))
    _, stats = both(kernel(body), drawn(rng, "f16", 32 * 40), block=32)
    assert not stats.interpreted and not stats.helped


@pytest.mark.parametrize("kind", ["m8n8k16", "m16n8k16", "m16n8k32"])
@pytest.mark.parametrize("satfinite", [False, True])
def test_sums_that_pass_the_ends_of_their_type(kind: str, satfinite: bool) -> None:
  """Of s32: they wrap, or stay at the end."""
  k, m = int(kind.partition("k")[2]), int(kind[1:kind.index("n")])
  many, one = {"m8n8k16": (1, 1), "m16n8k16": (2, 1), "m16n8k32": (4, 2)}[kind]
  a, b = "{" + ", ".join(["%r1"] * many) + "}", "{" + ", ".join(["%r2"] * one) + "}"
  results = ["%r4", "%r5", "%r6", "%r7"][:m // 4]
  text = kernel(f"""mov.b32 %r1, 0x64646464; mov.b32 %r2, 0x9C9C9C9C; mov.b32 %r4, -2147483000; mov.b32 %r5, 2147483000;
    mov.b32 %r6, -7; mov.b32 %r7, -2147483648; setp.gt.u32 %p1, %t, 15; @%p1 mov.b32 %r1, %r2;
    mma.sync.aligned.{kind}.row.col{'.satfinite' * satfinite}.s32.s8.s8.s32 {{{", ".join(results)}}}, {a}, {b},
    {{{", ".join(results)}}}; mad.wide.u32 %l1, %t, 16, %out; st.global.v4.u32 [%l1], {{%r4, %r5, %r6, %r7}};""")
  found, stats = both(text, bytes(64), block=32)
  assert not stats.helped and not stats.interpreted
  rows = found[:512].view(np.int32).reshape(32, 4)
  for lane in range(32):
    total = 10_000 * k * (1 if lane > 15 else -1)
    for n, start in enumerate((-2147483000, 2147483000, -7, -2147483648)[:m // 4]):
      exact = start + total
      wanted = min(max(exact, -1 << 31), (1 << 31) - 1) if satfinite else (exact + (1 << 31)) % (1 << 32) - (1 << 31)
      assert rows[lane, n] == wanted


@pytest.mark.parametrize("way, wanted", [("xor", 96), ("and", 32)])
def test_products_of_bits(way: str, wanted: int) -> None:
  """Rows of ones, and columns of which one bit in four is set."""
  text = kernel(f"""mov.b32 %r1, -1; mov.b32 %r2, 0x11111111; mov.b32 %r3, %t; mov.b32 %r4, %t;
  mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.{way}.popc {{%r3, %r4}}, {{%r1}}, {{%r2}}, {{%r3, %r4}};
  mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r3;""")
  found, _ = both(text, bytes(64), block=32)
  assert (found[:128].view(np.uint32) == wanted + np.arange(32)).all()


# ---- barriers

def test_barriers_of_some_warps() -> None:
  """Two warps of four hand numbers over by a pair of barriers, the others have one of their own."""
  body = """mov.u32 %r1, s; shr.u32 %r2, %t, 5; and.b32 %r3, %t, 31; mad.lo.u32 %r4, %r3, 4, %r1; mov.u32 %r8, 0;
  setp.ge.u32 %p1, %r2, 2; @%p1 bra OTHERS; setp.eq.u32 %p2, %r2, 1; mov.u32 %r6, 0;
L: @%p2 bra TAKE;
  bar.sync 2, 64; mad.lo.u32 %r7, %r6, 100, %t; st.shared.u32 [%r4], %r7; bar.arrive 1, 64; bra NEXT;
TAKE: bar.arrive 2, 64; bar.sync 1, 64; ld.shared.u32 %r7, [%r4]; add.u32 %r8, %r8, %r7;
NEXT: add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 9; @%p3 bra L; bra DONE;
OTHERS: setp.lt.u32 %p4, %t, 100; bar.red.popc.u32 %r8, 3, 64, %p4;
DONE: bar.sync 0; mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r8;"""
  found, stats = both(kernel(body, ".shared .align 8 .b8 s[128];\n"), bytes(64), block=128)
  assert not stats.interpreted
  rows = found[:512].view(np.uint32).reshape(4, 32)
  assert (rows[1] == 3600 + 9 * np.arange(32)).all() and (rows[2:] == 36).all() and not rows[0].any()


TURNS = """mov.u32 %r1, s; shr.u32 %r2, %t, 5; and.b32 %r3, %t, 31; setp.eq.u32 %p1, %t, 0; mov.u32 %r8, 0;
  @%p1 mbarrier.init.shared.b64 [s], 32; @%p1 mbarrier.init.shared.b64 [s+8], 32; bar.sync 0;
  mad.lo.u32 %r4, %r3, 4, %r1; mov.u32 %r6, 0; setp.eq.u32 %p2, %r2, 1;
L: and.b32 %r9, %r6, 1; @%p2 bra TAKE;
  xor.b32 %r10, %r9, 1;
W: mbarrier.try_wait.parity.shared.b64 %p3, [s+8], %r10; @!%p3 bra W;
  mad.lo.u32 %r7, %r6, 100, %t; st.shared.u32 [%r4+16], %r7; mbarrier.arrive.shared.b64 _, [s]; bra NEXT;
TAKE: mbarrier.test_wait.parity.shared.b64 %p3, [s], %r9; @!%p3 bra TAKE;
  ld.shared.u32 %r7, [%r4+16]; add.u32 %r8, %r8, %r7; mbarrier.arrive.shared.b64 %l2, [s+8];
NEXT: add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 50; @%p4 bra L;
  mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r8;"""
PAIRS = """mov.u32 %r2, %tid.y; mov.u32 %r6, 0; mov.u32 %r8, 0; add.u32 %r9, %r2, 1; mul.lo.u32 %r10, %r2, 500;
  add.u32 %r10, %r10, 300;
L: mov.u32 %r7, 0;
M: add.u32 %r7, %r7, 1; mad.lo.u32 %r8, %r8, 3, %r7; setp.lt.u32 %p1, %r7, %r10; @%p1 bra M;
  bar.sync %r9, 64; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 12; @%p1 bra L;
  mad.lo.u32 %r2, %r2, 64, %t; mad.wide.u32 %l1, %r2, 4, %out; st.global.u32 [%l1], %r8;"""


@pytest.mark.parametrize("body, block", [(TURNS.replace("50; @%p4", "300; @%p4"), (64, 1)), (PAIRS, (64, 2))])
def test_waiting_threads_are_taken_over(body: str, block: Any, monkeypatch: pytest.MonkeyPatch) -> None:
  """Where they stand: at barriers of some warps, at mbarriers."""
  monkeypatch.setattr(code, "kept", lambda *_: False)
  monkeypatch.setattr(ptx_compiled, "_LLVM", 0.0)
  text = kernel(body, ".shared .align 8 .b8 s[256];\n")
  reference, _ = run(text, "k", bytes(64), "ref", grid=2, block=block, watchdog=1_000_000)
  found, stats = run(text, "k", bytes(64), "auto", grid=2, block=block, watchdog=1_000_000)
  assert stats.engine == "jit" and not stats.interpreted and (found == reference).all()


@pytest.mark.parametrize("kind", ["popc.u32 %r1, %r5", "and.pred %p1, %r5", "or.pred %p1, %r5", "popc.u32 %r1, 2, 96",
                                  "and.pred %p1, 2"])
def test_votes_at_barriers(kind: str) -> None:
  body = f"""mov.u32 %r5, %ctaid.x; setp.gt.u32 %p2, %t, %r5; mov.u32 %r1, 7; setp.ne.u32 %p1, %t, 3;
  bar.red.{kind}, %p2; selp.u32 %r2, 1, 0, %p1; mad.lo.u32 %r6, %r5, 96, %t; mad.wide.u32 %l1, %r6, 8, %out;
  st.global.v2.u32 [%l1], {{%r1, %r2}};"""
  _, stats = both(kernel(body), bytes(64), block=96, grid=3)
  assert not stats.interpreted


def test_an_mbarrier_between_warps() -> None:
  """Warps that load and warps that add take turns by phases."""
  found, stats = both(kernel(TURNS, ".shared .align 8 .b8 s[256];\n"), bytes(64), block=64, grid=2)
  assert not stats.interpreted
  assert (found[128:256].view(np.uint32) == 122_500 + 50 * np.arange(32)).all()


def test_a_block_alone_is_its_own_cluster() -> None:
  """`mapa` of its own rank, by whom an mbarrier is told, as programs have it that may run in clusters."""
  body = """mov.u32 %r1, bar; mapa.shared::cluster.u32 %r2, %r1, 0; getctarank.shared::cluster.u32 %r5, %r2;
    setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [bar], 32; bar.sync 0; setp.ge.u32 %p2, %t, 32; @%p2 bra W;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
W:  mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra W; sub.u32 %r3, %r2, %r1; add.u32 %r3, %r3, 7;
    add.u32 %r3, %r3, %r5; mad.wide.u32 %l2, %t, 4, %out; st.global.u32 [%l2], %r3;"""
  found, stats = both(kernel(body, ".shared .b64 bar;\n"), bytes(64), block=64)
  assert not stats.interpreted and (found[:256].view(np.uint32) == 7).all()


@pytest.mark.parametrize("noinc", ["", ".noinc"])
def test_copies_that_an_mbarrier_waits_for(noinc: str) -> None:
  """With the count of a token; an mbarrier that is none is a fault."""
  body = f"""mov.u32 %r9, s; setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [%r9], 33; bar.sync 0;
    setp.lt.u32 %p2, %t, 20; @%p2 cp.async.mbarrier.arrive{noinc}.shared.b64 [%r9]; bar.sync 0;
    mbarrier.arrive.shared.b64 %l1, [%r9]; mbarrier.pending_count.b64 %r1, %l1; mad.wide.u32 %l2, %t, 4, %out;
    st.global.u32 [%l2], %r1;"""
  _, stats = both(kernel(body, ".shared .b64 s;\n"), bytes(64), block=12)
  assert not stats.helped and not stats.interpreted
  found = []
  for how in ("ref", "jit"):
    text = kernel(body.replace("@%p1 mbarrier.init.shared.b64 [%r9], 33;", ""), ".shared .b64 s;\n")
    with pytest.raises(MachineFault) as caught: run(text, "k", bytes(64), how, block=12)
    found.append(str(caught.value))
  assert found[0] == found[1]


@pytest.mark.parametrize("count", [13, 12])
@pytest.mark.parametrize("way", ["arrive", "arrive_drop"])
def test_arrivals_that_must_not_complete(count: int, way: str) -> None:
  """One that would is a fault, and so is one too many."""
  body = f"""mov.u32 %r9, s; setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [%r9], {count}; bar.sync 0;
    mbarrier.{way}.noComplete.shared.b64 %l1, [%r9], 1; mad.wide.u32 %l2, %t, 8, %out; st.global.u64 [%l2], %l1;"""
  text = kernel(body, ".shared .b64 s;\n")
  if count > 12:
    _, stats = both(text, bytes(64), block=12)
    assert not stats.helped and not stats.interpreted
    return
  found = []
  for how in ("ref", "jit"):
    with pytest.raises(MachineFault) as caught: run(text, "k", bytes(64), how, block=12)
    found.append((str(caught.value), caught.value.lane))
  assert found[0] == found[1]


def test_time_goes_on_and_blocks_are_somewhere() -> None:
  body = """mov.u64 %l2, %clock64; mov.u32 %r1, 0;
L: add.u32 %r1, %r1, 1; mov.u64 %l3, %clock64; sub.u64 %l4, %l3, %l2; setp.lt.u64 %p1, %l4, 5000; @%p1 bra L;
  mov.u32 %r2, %smid; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r4, %r3, 32, %t; mad.wide.u32 %l1, %r4, 4, %out;
  st.global.u32 [%l1], %r2;"""
  found, stats = both(kernel(body), bytes(64), block=32, grid=140)
  assert not stats.interpreted and (found[:140 * 128:128] == np.arange(140) % 132).all()


# ---- calls

FUNCTION = """.func (.param .b32 back) f (.param .b32 x) { .reg .pred %q; .reg .b32 %a<6>; .reg .b64 %z<3>;
  .local .align 8 .b8 kept[16];
  ld.param.u32 %a1, [x]; mov.u64 %z1, kept; st.local.u32 [%z1], %a1; mov.u32 %a2, 0;
A: setp.eq.u32 %q, %a1, 0; @%q bra B; mad.lo.u32 %a2, %a2, 3, %a1; sub.u32 %a1, %a1, 1; bra A;
B: SYNC ld.local.u32 %a3, [%z1]; add.u32 %a2, %a2, %a3; st.param.b32 [back], %a2; ret; }
"""
CALLER = """and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 1; mov.u32 %r2, 5; mov.u32 %r8, 0;
AGAIN: @!%p1 bra SKIP;
  { .param .b32 given; .param .b32 taken; shr.u32 %r3, %t, 2; st.param.b32 [given], %r3;
    call.uni (taken), f, (given); ld.param.b32 %r2, [taken]; }
SKIP: add.u32 %r8, %r8, 1; mad.lo.u32 %r2, %r2, 7, %t; setp.lt.u32 %p2, %r8, TIMES; @%p2 bra AGAIN;
  mov.u32 %r4, %ctaid.x; mad.lo.u32 %r4, %r4, 80, %t; mad.wide.u32 %l1, %r4, 4, %out; st.global.u32 [%l1], %r2;"""


@pytest.mark.parametrize("sync, times", [
  ("", 3), ("@%q shfl.sync.idx.b32 %a2, %a2, 5, 31, 0x22222222;", 2), ("bar.warp.sync 0x22222222; bar.sync 1, 96;", 1),
  ("", 40)])
def test_calls(sync: str, times: int) -> None:
  """Threads of a warp in a function, of which each goes round otherwise often; with what they do together there."""
  body = CALLER.replace("TIMES", str(times))
  if "bar.sync" in sync: body = body.replace("@!%p1 bra SKIP;", "")
  sync = sync.replace("0x22222222", "-1") if "bar.sync" in sync else sync
  text = kernel(body, FUNCTION.replace("SYNC", sync))
  block = 96 if "bar.sync" in sync else 80
  _, stats = both(text, bytes(64), grid=3, block=block)
  assert not stats.interpreted and not stats.helped


def test_a_function_that_the_emulator_does_not_know_is_told_of_when_it_is_called() -> None:
  text = kernel("setp.eq.u32 %p1, %t, 77; @%p1 call.uni g, (); mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %t;",
                ".extern .func g ();\n")
  found, _ = both(text, bytes(64), block=64)
  assert (found[:256].view(np.uint32) == np.arange(64)).all()
  with pytest.raises(Unsupported, match="g"): both(text, bytes(64), block=96)
