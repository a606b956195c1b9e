"""Forms of PTX that take more than an instruction: sparse and one-bit products of warpgroups, multicast memory."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyhw
from tinyhw.core.errors import DecodeError, MachineFault
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
N = 8


def laid(matrix: Any) -> bytes:
  """A matrix of bytes [rows, bytes] in the canonical layout without swizzle: 8 rows of 16 bytes lie together."""
  rows, width = matrix.shape
  return bytes(matrix.reshape(rows // 8, 8, width // 16, 16).transpose(0, 2, 1, 3).tobytes())


def descriptor(width: int) -> int:
  """Of a matrix at 0 with rows of so many bytes: blocks of 8 rows by 16 bytes, first along the rows."""
  return 128 >> 4 << 16 | 8 * width >> 4 << 32


def product(name: str, a: Any, b: Any, tail: str, result: str, dtype: Any) -> Any:
  """What a warpgroup makes of matrices of bytes in shared memory: [64, 8]."""
  data = laid(a) + laid(b)
  halves = name.split(".")[-3] == "f16"
  registers = "%d1, %d2" if halves else "%d1, %d2, %d3, %d4"
  at = len(laid(a))
  text = f"""{HEAD}.shared .align 128 .b8 s[{len(data)}];
.visible .entry k (.param .u64 in, .param .u64 out, .param .u32 meta) {{
  .reg .pred %p<3>; .reg .b32 %r<12>; .reg .{result} %d<5>; .reg .b64 %l<12>;
  ld.param.u64 %l1, [in]; ld.param.u64 %l2, [out]; ld.param.u32 %r9, [meta]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;
  mul.wide.u32 %l3, %r1, 4; add.u64 %l1, %l1, %l3; shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2; mov.u32 %r4, %r3;
L: ld.global.u32 %r5, [%l1]; st.shared.u32 [%r4], %r5; add.u64 %l1, %l1, 512; add.u32 %r4, %r4, 512;
  sub.u32 %r6, %r4, %r2; setp.lt.u32 %p1, %r6, {len(data)}; @%p1 bra L;
  bar.sync 0; shr.u32 %r2, %r2, 4; cvt.u64.u32 %l4, %r2;
  add.u64 %l5, %l4, {descriptor(a.shape[1])}; add.u64 %l6, %l4, {descriptor(b.shape[1]) + (at >> 4)};
  setp.ne.u32 %p2, %r1, %r1;
  wgmma.fence.sync.aligned;
  {name} {{{registers}}}, %l5, %l6, {tail};
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  mad.wide.u32 %l7, %r1, 16, %l2; st.global.v4.{result} [%l7], {{%d1, %d2, %d3, %d4}};
  ret;
}}"""
  words = np.frombuffer(data, np.uint32)
  given = np.concatenate([words, np.zeros(-len(words) % 128, np.uint32)])
  return lambda meta: spread(tinyhw.launch(text, "k", 1, 128, [given, np.zeros((128, 4), dtype), np.uint32(meta)],
                                           "EMU")[1])


def spread(d: Any) -> Any:
  """The matrix [64, 8] of four registers a thread, or of two with halves."""
  if d.dtype == np.uint32: d = np.ascontiguousarray(d[:, :2]).view(np.float16)
  out = np.zeros((64, N), d.dtype)
  for thread in range(128):
    for k in range(4):
      out[16 * (thread // 32) + thread % 32 // 4 + 8 * (k >> 1), 2 * (thread % 4) + (k & 1)] = d[thread, k]
  return out


@pytest.mark.parametrize(("pattern", "places"), [(0x44444444, (0, 1)), (0x88888888, (0, 2)), (0xEEEEEEEE, (2, 3))])
@pytest.mark.parametrize("kind", ["f16", "s8", "e4m3"])
def test_sparse_products(kind: str, pattern: int, places: tuple[int, int]) -> None:
  """The same places in each chunk of all rows, so that where a row's metadata lies does not matter."""
  rng = np.random.default_rng(3)
  k = 32 if kind == "f16" else 64
  if kind == "f16": a, b = (rng.integers(-8, 8, (n, w)).astype(np.float16) for n, w in ((64, k // 2), (N, k)))
  elif kind == "s8": a, b = (rng.integers(-128, 128, (n, w)).astype(np.int8) for n, w in ((64, k // 2), (N, k)))
  else: a, b = (rng.choice([0, 1, -1], (n, w)) for n, w in ((64, k // 2), (N, k)))
  def raw(x: Any) -> Any:
    return np.where(x == 0, 0, np.where(x > 0, 0x38, 0xB8)).astype(np.uint8) if kind == "e4m3" else x.view(np.uint8)
  dense = np.zeros((64, k), np.float64)
  for half, place in enumerate(places): dense[:, place::4] = a[:, half::2]
  result, dtype = ("s32", np.int32) if kind == "s8" else ("f32", np.float32)
  types = f"{result}.{kind}.{kind}"
  tail = "%r9, 0, %p2" + ("" if kind == "s8" else ", 1, 1" + (", 0, 0" if kind == "f16" else ""))
  run = product(f"wgmma.mma_async.sp.sync.aligned.m64n8k{k}.{types}", raw(a), raw(b), tail, result, dtype)
  assert (run(pattern) == dense @ b.astype(np.float64).T).all()
  with pytest.raises(MachineFault, match="names a place of a chunk twice"): run(0)


_CODES = {"e4m3": 0x38, "e5m2": 0x3C}
_FORMS = [*[(d, a, b) for d in ("f16", "f32") for a, b in (("f16", "f16"), *((x, y) for x in _CODES for y in _CODES))],
          ("f32", "bf16", "bf16"), *[("s32", x, y) for x in ("s8", "u8") for y in ("s8", "u8")]]


def of_type(x: Any, t: str) -> Any:
  """Numbers 0, 1, -1 (of unsigned types 0, 1, 255) as bytes."""
  if t in _CODES: return np.where(x == 0, 0, np.where(x > 0, _CODES[t], _CODES[t] | 0x80)).astype(np.uint8)
  if t == "bf16": return np.where(x == 0, 0, np.where(x > 0, 0x3F80, 0xBF80)).astype(np.uint16).view(np.uint8)
  return x.astype(np.float16).view(np.uint8) if t == "f16" else x.astype(np.int8).view(np.uint8)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("d", "a", "b"), _FORMS)
def test_products_of_all_types(d: str, a: str, b: str, sparse: bool) -> None:
  rng = np.random.default_rng(8)
  k = (32 if a in {"f16", "bf16"} else 64) // (1 if sparse else 2)
  x, y = rng.choice([0, 1, -1], (64, k // (1 + sparse))), rng.choice([0, 1, -1], (N, k))
  tail = ("%r9, 0, " if sparse else "") + "%p2"
  if d != "s32": tail += ", 1, 1" + (", 0, 0" if a in {"f16", "bf16"} else "")
  name = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.m64n8k{k}.{d}.{a}.{b}"
  kind = {"s32": ("s32", np.int32), "f32": ("f32", np.float32), "f16": ("b32", np.uint32)}[d]
  found = product(name, of_type(x, a), of_type(y, b), tail, *kind)(0x44444444)
  left, right = (np.where((v < 0) & (t == "u8"), 255, v) for v, t in ((x, a), (y, b)))
  if sparse:
    dense = np.zeros((64, k), np.int64)
    dense[:, 0::4], dense[:, 1::4] = left[:, 0::2], left[:, 1::2]
    left = dense
  assert (found == left @ right.T).all()


@pytest.mark.parametrize(("pattern", "place"), [(0x44444444, 0), (0xEEEEEEEE, 1)])
def test_sparse_products_of_tf32(pattern: int, place: int) -> None:
  rng = np.random.default_rng(4)
  a, b = (rng.integers(-8, 8, (n, w)).astype(np.float32) for n, w in ((64, 8), (N, 16)))
  dense = np.zeros((64, 16), np.float32)
  dense[:, place::2] = a
  run = product("wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32", a.view(np.uint8), b.view(np.uint8),
                "%r9, 1, %p2, -1, 1", "f32", np.float32)
  assert (run(pattern) == -(dense @ b.T)).all()


def test_products_of_bits() -> None:
  rng = np.random.default_rng(5)
  a, b = (rng.integers(0, 2, (n, 256)).astype(np.uint8) for n in (64, N))
  packed = [np.packbits(x, axis=1, bitorder="little") for x in (a, b)]
  run = product("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", *packed, "%p2", "s32", np.int32)
  assert (run(0) == a.astype(np.int32) @ b.astype(np.int32).T).all()


def test_a_selector_that_there_is_not() -> None:
  z = np.zeros((64, 32), np.uint8), np.zeros((N, 64), np.uint8)
  with pytest.raises(DecodeError, match="sparsity selector"):
    product("wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8", *z, "%r9, 1, %p2", "s32", np.int32)(0x44444444)


# ---- multicast memory: three places behind one address

PLACES, WINDOW = (0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000), 0x7_0000_0000


def multicast(body: str, contents: list[Any], head: str = "") -> tuple[Any, list[Any]]:
  """(what 32 threads stored behind the parameters, what is in the places)."""
  head = f"{head}\n.address_size 64\n" if head else HEAD
  text = f"""{head}.visible .entry k (.param .u64 m, .param .u64 out) {{
  .reg .b32 %r<9>; .reg .b16 %h<12>; .reg .b8 %b<12>; .reg .f32 %f<9>; .reg .b64 %l<9>;
  ld.param.u64 %l1, [m]; ld.param.u64 %l2, [out]; mov.u32 %r1, %tid.x;
  mad.wide.u32 %l1, %r1, 16, %l1; mad.wide.u32 %l2, %r1, 16, %l2; {body} ret;
}}"""
  space = AddressSpace("multicast")
  params = WINDOW.to_bytes(8, "little") + (0x4_0000_0000).to_bytes(8, "little")
  for at, data in (*zip(PLACES, (c.tobytes() for c in contents)), (0x4_0000_0000, bytes(512)), (0x5_0000_0000, params)):
    region = Region("data", 4096)
    space.map(at, 4096, region)
    space.write(at, data)
  space.multicast = ((WINDOW, 4096, PLACES),)
  program = Program(link(parse(text)), "k", 0)
  dispatch(space, Dispatch(program, (1, 1, 1), (32, 1, 1), 0x5_0000_0000, 16), engine="ref")
  return np.frombuffer(space.read(0x4_0000_0000, 512), np.uint8), [
    np.frombuffer(space.read(at, 512), np.uint8) for at in PLACES]


def test_multicast_memory() -> None:
  rng = np.random.default_rng(6)
  given = [rng.integers(0, 1 << 20, (32, 4)).astype(np.uint32) for _ in PLACES]
  out, left = multicast("multimem.ld_reduce.add.u32 %r2, [%l1]; st.global.u32 [%l2], %r2; multimem.red.max.u32 "
                        "[%l1+4], 524288; multimem.st.b32 [%l1+8], %r1;", given)
  assert (out.view(np.uint32).reshape(32, 4)[:, 0] == sum(given)[:, 0]).all()
  for before, after in zip(given, left):
    now = after.view(np.uint32).reshape(32, 4)
    assert (now[:, 1] == np.maximum(before[:, 1], 524288)).all() and (now[:, 2] == np.arange(32)).all()
    assert (now[:, [0, 3]] == before[:, [0, 3]]).all()


@pytest.mark.parametrize("wide", [False, True])
def test_sums_of_halves_are_rounded_once_or_each_time(wide: bool) -> None:
  given = [np.full((32, 8), x, np.float16) for x in (2048.0, 1.0, 1.0)]
  name = f"multimem.ld_reduce.add{'.acc::f32' if wide else ''}.v4.f16x2"
  out, _ = multicast(f"{name} {{%r2, %r3, %r4, %r5}}, [%l1]; st.global.v4.u32 [%l2], {{%r2, %r3, %r4, %r5}};", given)
  assert (out.view(np.float16) == (2050 if wide else 2048)).all()
  brains = [np.full((32, 8), x, np.uint16) for x in (0x4380, 0x3F80, 0x3F80)]  # 256, 1, 1
  name = name.replace("f16x2", "bf16x2")
  out, _ = multicast(f"{name} {{%r2, %r3, %r4, %r5}}, [%l1]; st.global.v4.u32 [%l2], {{%r2, %r3, %r4, %r5}};", brains)
  assert (out.view(np.uint16) == (0x4381 if wide else 0x4380)).all()


@pytest.mark.parametrize("t", ["e4m3", "e5m2"])
def test_sums_of_bytes_in_several_places(t: str) -> None:
  """Rounded each time, or as f16 each time and once at last; extremes of bytes, too, and a store to all places."""
  bits, bias = (3, 7) if t == "e4m3" else (2, 15)
  numbers = [0.0 if not c else (1 + (c & (1 << bits) - 1) / (1 << bits)) * 2.0 ** ((c >> bits) - bias) if c >> bits else
             (c & (1 << bits) - 1) / (1 << bits) * 2.0 ** (1 - bias) for c in range(0x78)]

  def code(x: float) -> int:
    best = min(range(0x78), key=lambda c: (abs(numbers[c] - abs(x)), c & 1))
    return best | 0x80 * (bool(np.signbit(x)) and best > 0)
  def number(c: int) -> float: return -numbers[c & 127] if c >> 7 else numbers[c]
  rng = np.random.default_rng(7)
  given = [(rng.integers((bias - 3) << bits, (bias + 2) << bits, (32, 16)) | rng.integers(0, 2, (32, 16)) << 7)
           .astype(np.uint8) for _ in PLACES]
  for name, count, size in ((f"add.v4.{t}x4", 4, 32), (f"add.acc::f16.v4.{t}x4", 4, 32), (f"add.v8.{t}x2", 8, 16),
                            (f"max.v4.{t}x4", 4, 32), (f"min.relaxed.gpu.v8.{t}", 8, 8), (f"add.{t}x4", 1, 32)):
    name = "relaxed.gpu.min.v8." + t if "relaxed" in name else name
    letter = {32: "r", 16: "h", 8: "b"}[size]
    registers = [f"%{letter}{k + 2}" for k in range(count)]
    vector = "{" + ", ".join(registers) + "}" if count > 1 else registers[0]
    stores = "".join(f"st.global.b{size} [%l2+{k * size // 8}], {r};" for k, r in enumerate(registers))
    out, _ = multicast(f"multimem.ld_reduce.{name} {vector}, [%l1]; {stores}", given, ".version 8.6\n.target sm_100a")
    found, used = out.reshape(32, 16), count * size // 8
    for place in np.ndindex(32, used):
      values = [number(int(g[place])) for g in given]
      total = values[0]
      for x in values[1:]:
        if "add" in name: total = float(np.float16(total + x)) if "acc" in name else number(code(total + x))
        else: total = max(total, x) if "max" in name else min(total, x)
      assert number(int(found[place])) == number(code(total)), (name, values)
    assert (found[:, used:] == 0).all()
  head = ".version 8.6\n.target sm_100a"
  _, left = multicast(f"mov.b32 %r3, 0x12345678; multimem.st.{t}x4 [%l1+4], %r3;", given, head)
  for before, after in zip(given, left):
    now = after.reshape(32, 16)
    assert (now[:, 4:8] == [0x78, 0x56, 0x34, 0x12]).all() and (now[:, 8:] == before[:, 8:]).all()


# ---- names

def test_generic_addresses_of_variables() -> None:
  """A variable's name in an access that names no space."""
  text = f"""{HEAD}.global .align 4 .u32 g[2] = {{5, 6}};
.shared .align 4 .u32 s[2];
.visible .entry k (.param .u64 out) {{
  .reg .b32 %r<9>; .reg .b64 %l<9>; .local .align 4 .u32 v[2];
  ld.param.u64 %l1, [out]; mov.u32 %r1, 7; mov.u32 %r2, 8; st.u32 [s+4], %r1; st.u32 [v+4], %r2; mov.u32 %r7, 1;
  ld.u32 %r3, [g]; ld.u32 %r4, [g+4]; ld.shared.u32 %r5, [s+4]; ld.local.u32 %r6, [v+4]; mov.u32 %r7, %cluster_nctarank;
  st.global.v4.u32 [%l1], {{%r3, %r4, %r5, %r6}}; st.global.u32 [%l1+16], %r7; ret;
}}"""
  out, = tinyhw.launch(text, "k", 1, 1, [np.zeros(5, np.uint32)], "EMU")
  assert out.tolist() == [5, 6, 7, 8, 1]


MEMBERS = f"""{HEAD}
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 kinds) {{
  .reg .u64 %l<5>; .reg .b32 %r<14>; .reg .pred %p<5>;
  ld.param.u64 %l1, [out]; ld.param.u64 %l2, [in]; ld.param.u32 %r13, [kinds];
  mov.u32 %r1, %tid.x; mul.wide.u32 %l3, %r1, 4; add.u64 %l2, %l2, %l3; ld.global.u32 %r2, [%l2];
  and.b32 %r3, %r2, %r13; match.any.sync.b32 %r4, %r3, -1;
  redux.sync.max.s32 %r5, %r2, %r4; redux.sync.add.u32 %r6, %r2, %r4;
  setp.gt.s32 %p1, %r2, 50; vote.sync.ballot.b32 %r7, %p1, %r4; vote.sync.all.pred %p2, %p1, %r4;
  vote.sync.any.pred %p3, %p1, %r4; selp.u32 %r8, 1, 0, %p2; @%p3 add.u32 %r8, %r8, 2;
  and.b32 %r9, %r2, 4; match.any.sync.b32 %r10, %r9, %r4; match.all.sync.b32 %r11, %r9, %r4;
  elect.sync %r12|%p4, %r4; @%p4 add.u32 %r12, %r12, 100;
  mad.wide.u32 %l4, %r1, 32, %l1; st.global.v4.u32 [%l4], {{%r5, %r6, %r7, %r8}};
  st.global.v4.u32 [%l4+16], {{%r10, %r11, %r12, %r4}};
  ret; }}"""


@pytest.mark.left("elect", "match", "redux", "vote")
@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("kinds", [0, 1, 3, 11])
def test_threads_of_a_warp_that_name_different_members(kinds: int, engine: str,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
  """As labelled partitions of cooperative groups do: each acts with those of its own members."""
  monkeypatch.setenv("EMU", engine)
  x = np.random.default_rng(kinds).integers(0, 100, 64).astype(np.uint32)
  found = tinyhw.launch(MEMBERS, "k", 1, 64, [np.zeros((64, 8), np.uint32), x, np.int32(kinds)], "EMU")[0]
  for i in range(64):
    mine = [j for j in range(i // 32 * 32, i // 32 * 32 + 32) if x[j] & kinds == x[i] & kinds]
    same = [j for j in mine if x[j] & 4 == x[i] & 4]
    def bits(lanes: Any) -> int: return sum(1 << j % 32 for j in lanes)
    wanted = [max(int(x[j]) for j in mine), sum(int(x[j]) for j in mine), bits(j for j in mine if x[j] > 50),
              int(all(x[j] > 50 for j in mine)) + 2 * int(any(x[j] > 50 for j in mine)), bits(same),
              bits(mine) if len(same) == len(mine) else 0, mine[0] % 32 + 100 * (mine[0] == i), bits(mine)]
    assert found[i].tolist() == wanted
