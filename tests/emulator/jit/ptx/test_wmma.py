"""wmma in compiled code against the reference: every type and shape, rows or columns, global and shared memory."""
from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from tests.emulator.jit.ptx.test_jit import both, kernel, run
from tests.strength import THOROUGH
from tinyhw.core.errors import MachineFault
from tinyhw.emulator.ptx.tensorcore.matrix import BITS

FLOATS = [f"m{m}n{n}k16.{d}.f16.f16.{c}" for m, n in ((16, 16), (32, 8), (8, 32)) for d in ("f16", "f32")
          for c in ("f16", "f32")]
OTHERS = ["m16n16k16.f32.bf16.bf16.f32", "m16n16k8.f32.tf32.tf32.f32", "m8n8k4.f64.f64.f64.f64",
          "m16n16k16.s32.s8.s8.s32", "m32n8k16.s32.u8.u8.s32.satfinite", "m8n32k16.s32.s8.s8.s32",
          "m8n8k32.s32.s4.s4.s32", "m8n8k32.s32.u4.u4.s32.satfinite", "m8n8k128.s32.b1.b1.s32.xor.popc",
          "m8n8k128.s32.b1.b1.s32.and.popc"]
KINDS = [*FLOATS, *OTHERS] if THOROUGH else [FLOATS[1], FLOATS[6], *OTHERS[:3], OTHERS[4], *OTHERS[7:9]]


def registers(which: str, m: int, n: int, k: int, t: str) -> tuple[str, int]:
  """(letter of its registers, how many) of a fragment."""
  size = {"a": m * k, "b": k * n}.get(which, m * n) * BITS[t] // (64 if t == "f64" else 32) // 32
  return {"f32": "f", "f64": "d"}.get(t, "r"), 8 if t == "f16" and which in "ab" else max(1, size)


def text(kind: str, ways: tuple[str, str, str], space: str, stride: bool, shift: int = 0) -> str:
  """Loads three matrices, multiplies them and stores the result; `ways` are those of A, B and the others. Places in
  shared memory and steps are in registers: each thread has the same there, which a compiler cannot know."""
  shape, d, a, b, c, *more = kind.split(".")
  m, n, k = (int(x) for x in shape[1:].replace("n", "k").split("k"))
  lines, names, at = [], {}, 0
  for which, t in zip("abcd", (a, b, c, d)):
    letter, count = registers(which, m, n, k, t)
    names[which] = "{" + ", ".join(f"%{letter}{which}{j}" for j in range(count)) + "}"
    lines.append(f".reg .{'f32' if letter == 'f' else 'f64' if letter == 'd' else 'b32'} %{letter}{which}<{count}>;")
  for which, t, way in zip("abc", (a, b, c), (ways[0], ways[1], ways[2])):
    rows, columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    lead = (columns if way == "row" else rows) + (max(16, 128 // BITS[t]) if stride else 0)
    base = {"global": "%in", "shared": "%r9", "": "%l5"}[space]
    if stride: lines.append(f"add.u32 %r11, %r10, {lead};")
    lines.append(f"wmma.load.{which}.sync.aligned.{way}.{shape}.{space + '.' if space else ''}{t} {names[which]}, "
                 f"[{base}+{at + shift}]{', %r11' if stride else ''};")
    at += 4096
  types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{b}.{c}"
  how, more = (f"{'.'.join(more)}.", []) if a == "b1" else ("", more)
  lines.append(f"wmma.mma.{how}sync.aligned.{ways[0]}.{ways[1]}.{shape}.{types}{'.' * bool(more)}{'.'.join(more)} "
               f"{names['d']}, {names['a']}, {names['b']}, {names['c']};")
  store = f"wmma.store.d.sync.aligned.{ways[2]}.{shape}.global.{d} [%out], {names['d']}"
  lines.append(f"{store}, {(n if ways[2] == 'row' else m) + 8};" if stride else f"{store};")
  fill = """shr.u32 %r10, %t, 5; add.u32 %r9, %r10, s; shl.b32 %r1, %t, 4; cvt.u64.u32 %l1, %r1;
   add.u64 %l1, %l1, %in; mov.u64 %l5, s; cvta.shared.u64 %l5, %l5;
L: ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%l1]; st.shared.v4.u32 [%r1], {%r2, %r3, %r4, %r5};
   add.u32 %r1, %r1, 512; add.u64 %l1, %l1, 512; setp.lt.u32 %p1, %r1, 12288; @%p1 bra L; bar.sync 0;"""
  return kernel(fill + "\n".join(lines), ".shared .align 128 .b8 s[12288];\n")


def numbers(kind: str) -> bytes:
  """Matrices of numbers that are finite."""
  rng, out = np.random.default_rng(1), b""
  for t in kind.split(".")[2:5]:
    if t in {"f16", "bf16"}: x = rng.integers(0, 1 << 16, 2048, np.uint16) & (0xBBFF if t == "f16" else 0xBFFF)
    elif t in {"f32", "tf32"}: x = rng.standard_normal(1024).astype(np.float32)
    elif t == "f64": x = rng.standard_normal(512)
    else: x = rng.integers(0, 1 << 32, 1024, np.uint32) if t != "s32" else rng.integers(
      -1 << 31, 1 << 31, 1024).astype(np.int32)
    out += x.tobytes()
  return out + bytes(4096)


@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str) -> None:
  rng = random.Random(kind)
  small = BITS[kind.split(".")[2]] < 8
  ways = [("row", "col", "row")] if small else [*product(("row", "col"), repeat=3)]
  for way in ways if THOROUGH else rng.sample(ways, 1):
    space, stride = rng.choice(("global", "shared", "")), rng.random() < 0.5
    _, stats = both(text(kind, way, space, stride), numbers(kind), block=32)
    assert not stats.interpreted and not stats.helped


def test_faults_and_odd_places() -> None:
  """What is at no multiple of a word is loaded all the same; a fault is the reference's."""
  kind = FLOATS[1]
  both(text(kind, ("row", "col", "row"), "global", True, 4), numbers(kind), block=32)
  found = []
  for how in ("ref", "jit"):
    with pytest.raises(MachineFault) as caught:
      run(text(kind, ("row", "col", "row"), "shared", True, 8192), "k", numbers(kind), how, block=32)
    found.append((str(caught.value), caught.value.lane))
  assert found[0] == found[1]


def test_fragments_that_nobody_has_written() -> None:
  """Registers that only repeat elements of others are compiled code's, though it does not read them: zeros here."""
  a, b, c = (", ".join(f"%{name}{k}" for k in range(8)) for name in "abf")
  source = f""".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k (.param .u64 out) {{
    .reg .b32 %a<8>; .reg .b32 %b<8>; .reg .f32 %f<8>; .reg .b64 %o; .reg .b32 %i; .reg .pred %p;
    ld.param.u64 %o, [out]; mov.u32 %i, 0;
    AGAIN: wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra AGAIN; st.global.f32 [%o], %f0; ret; }}"""
  _, stats = both(source, np.ones(64, np.float32).tobytes(), block=32)
  assert not stats.interpreted and not stats.helped
