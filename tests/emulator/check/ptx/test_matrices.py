"""What of a warp's matrices depends on what nobody has written: held to which results change where sources do."""
from __future__ import annotations

import numpy as np
import pytest

import tinyhw
from tests.emulator.check.ptx.test_watched import told
from tests.strength import examples, seed
from tinyhw.emulator.check.ptx import matrices
from tinyhw.emulator.check.ptx.effects import effects
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k (.param .u64 out, .param .u64 in) {{
{}
ret; }}"""
PRODUCTS = [  # a product; registers of its result, left and right operand, and sum; the kind of its elements
  ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", (4, 2, 1, 4), "f16"),
  ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (4, 4, 2, 4), "f16"),
  ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", (2, 4, 2, 2), "f16"),
  ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", (4, 4, 2, 4), "f32"),
  ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", (4, 4, 2, 4), "s8"),
  ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", (2, 1, 1, 2), "s8"),
  ("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", (4, 4, 2, 4), "s8"),
  ("movmatrix.sync.aligned.m8n8.trans.b16", (1, 1), "s8")]


def drawn(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
  """Registers of numbers other than 0, so that each counts."""
  if kind == "f32": return rng.uniform(1, 2, shape).astype(np.float32).view(np.uint32)
  if kind == "f16": return rng.uniform(1, 2, (*shape, 2)).astype(np.float16).view(np.uint32)[..., 0]
  return rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)


def text(name: str, counts: tuple[int, ...]) -> str:
  """A kernel that loads a register of each lane after the other, and stores the results."""
  numbers, floats = iter(range(sum(counts))), (0, 3) if ".f32" in name else ()
  parts = [[f"%{'f' if k in floats else 'r'}{next(numbers)}" for _ in range(n)] for k, n in enumerate(counts)]
  def vector(part: list[str]) -> str: return part[0] if name.startswith("mov") else "{" + ", ".join(part) + "}"
  body = [f".reg .b32 %r<{sum(counts)}>, %t; .reg .f32 %f<{sum(counts)}>; .reg .b64 %o, %i;",
          "ld.param.u64 %o, [out]; ld.param.u64 %i, [in]; mov.u32 %t, %tid.x;",
          "mad.wide.u32 %o, %t, 4, %o; mad.wide.u32 %i, %t, 4, %i;"]
  for n, r in enumerate(r for part in parts[1:] for r in part): body.append(f"ld.global.b32 {r}, [%i+{128 * n}];")
  body.append(f"{name} {', '.join(map(vector, parts))};")
  for n, r in enumerate(parts[0]): body.append(f"st.global.b32 [%o+{128 * n}], {r};")
  return HEAD.format("\n".join(body))


@pytest.mark.parametrize(("name", "counts", "kind"), PRODUCTS, ids=[p[0] for p in PRODUCTS])
def test_what_depends_is_what_changes(name: str, counts: tuple[int, ...], kind: str,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", "ref")
  rng, source = np.random.default_rng(seed(1)), text(name, counts)
  code = Program(link(parse(source)), "k", 0).function("k")
  does, = (effects(line) for line in code.flat.lines if line.instruction.opcode in {"mma", "movmatrix"})
  given = [r for part in does.matrices[1:] for r in part]
  out = np.zeros(32 * counts[0], np.uint32)
  for _ in range(examples(6)):
    undefined = rng.random((len(given), 32)) < 0.02
    undefined[rng.random(len(given)) < 0.5] = False
    undefined[rng.integers(len(given)), rng.integers(32)] = True
    data, changed = drawn(kind, undefined.shape, rng), np.zeros((counts[0], 32), bool)
    def run(data: np.ndarray) -> np.ndarray:
      return tinyhw.launch(source.encode(), "k", 1, 32, [out, data.reshape(-1)], "EMU")[0].reshape(-1, 32)
    before = run(data)
    for _ in range(4): changed |= run(np.where(undefined, drawn(kind, data.shape, rng), data)) != before
    shadows = dict(zip(given, undefined))
    found = matrices.results(does, lambda r, shadows=shadows: shadows[r][None])
    assert found is not None
    assert np.array_equal(np.concatenate([found[r] for r in does.matrices[0]]), changed)


TILE = """.reg .b32 %r<20>, %t; .reg .f32 %f<8>; .reg .b64 %o, %l; .reg .pred %p<4>; .shared .align 16 .b8 s[1024];
  ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 4, %o; mov.u32 %r0, s;
  mad.lo.u32 %r1, %t, 16, %r0; mov.u32 %r2, 0x3c003c00; setp.lt.u32 %p1, %t, 5; shr.u32 %r3, %t, 2;
  mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; mov.u32 %r6, %r2;
  setp.lt.u32 %p2, %r3, ROWS;
  @%p1 st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2}; bar.warp.sync -1;
  LOAD
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r4, %r5}, {%r6}, {%f0, %f1, %f2, %f3};
  STORE
"""
ACROSS = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1]; mov.u32 %r5, %r4;"
DOWN = "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r6}, [%r1]; mov.u32 %r4, %r2; mov.u32 %r5, %r2;"
PLAIN = "@%p2 st.global.f32 [%o], %f0; @%p2 st.global.f32 [%o+128], %f1;"
BACK = """cvt.rn.f16x2.f32 %r7, %f1, %f0; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r7}; bar.warp.sync -1;
  @%p3 ld.shared.b32 %r8, [%r1]; @%p3 st.global.b32 [%o], %r8;"""


@pytest.mark.parametrize("store", [PLAIN, BACK], ids=["registers", "stmatrix"])
@pytest.mark.parametrize("rows", [5, 6])
def test_rows_past_an_edge(store: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Five rows are written: to store five of the product is right, to store six is a finding."""
  body = TILE.replace("LOAD", ACROSS).replace("STORE", store).replace("ROWS", str(rows))
  body = body.replace("setp.lt.u32 %p2", f"setp.lt.u32 %p3, %t, {rows}; setp.lt.u32 %p2")
  reference, found = told(HEAD.format(body), "k", 1, 32, [np.zeros(64, np.uint32)] * 2, 0, monkeypatch)
  assert reference == found and bool(reference) == (rows > 5)


def test_a_matrix_that_is_turned_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
  """Rows in memory are what the product sums over: with three unwritten, each of its elements depends on them."""
  body = TILE.replace("LOAD", DOWN).replace("STORE", PLAIN).replace("ROWS", "1")
  reference, found = told(HEAD.format(body), "k", 1, 32, [np.zeros(64, np.uint32)] * 2, 0, monkeypatch)
  assert reference == found and "undefined" in reference
