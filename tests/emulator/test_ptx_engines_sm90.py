"""What Hopper adds to PTX, in compiled code against the reference: the same memory, the same faults."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.emulator.test_ptx_engines import both, kernel
from tests.strength import THOROUGH, seed, seeds

KINDS = [("f32", "f16", "f16", 16), ("f16", "f16", "f16", 16), ("f32", "bf16", "bf16", 16), ("f32", "tf32", "tf32", 8),
         ("f32", "e4m3", "e5m2", 32), ("s32", "s8", "u8", 32), ("f16", "e5m2", "e4m3", 32)]


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


def wgmma(rng: random.Random, kind: tuple[str, str, str, int]) -> tuple[str, bytes]:
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
  satfinite = ".satfinite" if d == "s32" and rng.random() < 0.5 else ""
  name = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}{satfinite}"
  loads = " ".join(f"ld.global.{type_} {r}, [%l5+{4 * j}];" for j, r in enumerate(results))
  if d == "f32": loads = " ".join(f"cvt.rn.f32.s32 {r}, %r{1 + j % 4};" for j, r in enumerate(results))
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
  {loads}
  wgmma.fence.sync.aligned;
  {name} {{{", ".join(results)}}}, {left}, %l4, {flags};
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  {stores}"""
  return kernel(body, ".shared .align 1024 .b8 s[65536];\n"), drawn(rng, a, 65536 * 8 // {"tf32": 32, "f16": 16,
                                                                                         "bf16": 16}.get(a, 8))


@pytest.mark.parametrize("start", seeds(range(1)))
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_products_of_a_warpgroup(kind: Any, start: int) -> None:
  """Every layout, operands in registers and in shared memory."""
  rng = random.Random(seed(start + len(".".join(map(str, kind)))))
  text, data = wgmma(rng, kind)
  _, stats = both(text, data, block=128)
  assert not stats.interpreted
