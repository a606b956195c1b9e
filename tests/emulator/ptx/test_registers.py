"""Special registers: every one, of every thread of launches of several forms, against what the launch says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.compiled import compiled_too
from tests.strength import THOROUGH

AXES = ("%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid")
MASKS = {
  "%lanemask_eq": lambda n: 1 << n,
  "%lanemask_lt": lambda n: (1 << n) - 1,
  "%lanemask_le": lambda n: (2 << n) - 1,
  "%lanemask_gt": lambda n: 0xFFFFFFFF & ~((2 << n) - 1),
  "%lanemask_ge": lambda n: 0xFFFFFFFF & ~((1 << n) - 1),
}
SIZES = ("%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size")
SYSTEM = tuple(f"%reserved_smem_offset_{name}" for name in ("begin", "end", "cap", "0", "1"))
FIXED = ("%clock_hi", "%globaltimer_hi")
PLAIN = ("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%cluster_ctarank", "%cluster_nctarank")
NAMES = (*(f"{a}.{k}" for a in AXES for k in "xyz"), *MASKS, *SIZES, *SYSTEM, *FIXED, *PLAIN)
SMS = 132  # of an H100


def text(names: tuple[str, ...], directives: str = "") -> str:
  """A kernel that writes these registers of each thread, and whether its cluster was asked for; 48 bytes of shared
  memory. Threads are counted over the launch by what they are given: `n` of a block and the block's number."""
  lines = [f"mov.u32 %r3, {name}; st.global.u32 [%l1+{4 * k}], %r3;" for k, name in enumerate(names)]
  return f""".version 8.6
.target sm_90
.address_size 64
.shared .align 16 .b8 s[48];
.visible .entry k (.param .u64 out) {directives} {{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %l<5>;
  ld.param.u64 %l1, [out];
  mov.u32 %r1, %ctaid.z; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %ntid.z; mov.u32 %r3, %tid.z; mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %ntid.y; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
  mad.wide.u32 %l1, %r1, {4 * len(names) + 4}, %l1;
  st.shared.u8 [s], %r1;
  {" ".join(lines)}
  mov.pred %p1, %is_explicit_cluster; selp.u32 %r3, 1, 0, %p1; st.global.u32 [%l1+{4 * len(names)}], %r3;
  ret;
}}"""


def wanted(
  name: str,
  thread: tuple[int, ...],
  block: tuple[int, ...],
  threads: tuple[int, ...],
  blocks: tuple[int, ...],
  cluster: tuple[int, ...],
  shared: int,
) -> int:
  """What a thread's register holds."""
  base, _, part = name.partition(".")
  at = "xyz".find(part)
  linear = thread[0] + threads[0] * (thread[1] + threads[1] * thread[2])
  inner = [b % c for b, c in zip(block, cluster)]
  outer = [b // c for b, c in zip(block, cluster)]
  counts = [g // c for g, c in zip(blocks, cluster)]
  rank = inner[0] + cluster[0] * (inner[1] + cluster[1] * inner[2])
  size = cluster[0] * cluster[1] * cluster[2]
  if base in MASKS:
    return int(MASKS[base](linear % 32))
  if base in FIXED:
    return 0
  system = -(-(48 + shared) // 128) * 128
  number = (outer[0] + counts[0] * (outer[1] + counts[1] * outer[2])) * size + rank  # blocks begin cluster by cluster
  return {
    "%tid": thread[at],
    "%ntid": threads[at],
    "%ctaid": block[at],
    "%nctaid": blocks[at],
    "%clusterid": outer[at],
    "%nclusterid": counts[at],
    "%cluster_ctaid": inner[at],
    "%cluster_nctaid": cluster[at],
    "%laneid": linear % 32,
    "%warpid": linear // 32,
    "%nwarpid": -(-threads[0] * threads[1] * threads[2] // 32),
    "%smid": number % SMS,
    "%nsmid": SMS,
    "%gridid": 1,
    "%cluster_ctarank": rank,
    "%cluster_nctarank": size,
    "%dynamic_smem_size": shared,
    "%total_smem_size": 48 + shared,
    "%aggr_smem_size": 48 + shared + 1024,
    **dict(zip(SYSTEM, (system, system + 1024, 1024, system, system + 512))),
  }[base]


FORMS: list[tuple[Any, Any, Any, int, str]] = [  # grid, block, cluster, dynamic shared memory, directives
  ((3, 2, 2), (5, 3, 4), None, 64, ""),
  ((4, 2, 2), (33, 2, 1), (2, 2, 1), 0, ""),
  ((1, 1, 1), (7, 1, 1), None, 0, ""),
  ((2, 1, 4), (32, 1, 2), (1, 1, 2), 16, ""),
  ((4, 1, 1), (16, 2, 3), None, 0, ".reqnctapercluster 2"),
  ((5, 1, 1), (64, 1, 1), None, 0, ""),
  ((2, 3, 1), (1, 1, 33), (1, 3, 1), 0, ""),
  ((140, 1, 1), (1, 1, 1), None, 0, ""),
]


@pytest.mark.parametrize("engine", ["ref", "both"])
@pytest.mark.parametrize(("grid", "block", "cluster", "shared", "directives"), FORMS, ids=[str(f[:3]) for f in FORMS])
def test_every_register_of_every_thread(
  grid: Any, block: Any, cluster: Any, shared: int, directives: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
  if engine == "both" and not THOROUGH and (grid, block) not in {((3, 2, 2), (5, 3, 4)), ((4, 2, 2), (33, 2, 1))}:
    pytest.skip("two in the quick run")
  monkeypatch.setenv("EMU", engine)
  if engine == "both":
    compiled_too(monkeypatch)
  total = int(np.prod(grid)) * int(np.prod(block))
  out = np.zeros((total, len(NAMES) + 1), np.uint32)
  (found,) = tinyhw.launch(text(NAMES, directives), "k", grid, block, [out], "EMU", shared, cluster=cluster)
  size = cluster or ((2, 1, 1) if directives else (1, 1, 1))
  row = 0
  for b in np.ndindex(*reversed(grid)):
    for t in np.ndindex(*reversed(block)):
      right = [wanted(n, t[::-1], b[::-1], block, grid, size, shared) for n in NAMES]
      assert found[row].tolist() == [*right, int(bool(cluster or directives))], (b[::-1], t[::-1])
      row += 1


KEEPS = """.version 8.6
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 more[];
.visible .entry k (.param .u64 out) {
  .reg .b32 %r<9>; .reg .b64 %l<5>; .shared .align 4 .b8 s[40];
  ld.param.u64 %l1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %l1, %r1, 16, %l1;
  mov.u32 %r2, %reserved_smem_offset_1; cvt.u64.u32 %l2, %r2; cvta.shared.u64 %l2, %l2;
  mad.wide.u32 %l2, %r1, 4, %l2; add.u32 %r3, %r1, 7; st.u32 [%l2+128], %r3; bar.sync 0;
  ld.u32 %r4, [%l2+128]; st.global.u32 [%l1], %r4; ld.shared.u32 %r5, [%r2+128]; st.global.u32 [%l1+4], %r5;
  st.global.u32 [%l1+8], %r2; mov.u32 %r6, s; st.global.u32 [%l1+12], %r6; ret;
}"""


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("shared", [0, 4, 4096, (227 << 10) - 48])
def test_shared_memory_that_the_system_keeps(shared: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """It is there for who asks, behind all that a block has, also where that is the most that a launch may ask for; what
  does not ask has none."""
  monkeypatch.setenv("EMU", engine)
  (out,) = tinyhw.launch(KEEPS, "k", 2, 32, [np.zeros((32, 4), np.uint32)], "EMU", shared)
  assert (out[:, 0] == np.arange(32) + 7).all() and (out[:, 1] == 7).all()
  assert (out[:, 2] >= max(out[0, 3] + 40, 40 + shared)).all()
  with pytest.raises(tinyhw.Error, match="of shared memory, which has"):
    tinyhw.launch(KEEPS.replace("mov.u32 %r2, %reserved_smem_offset_1", f"mov.u32 %r2, {out[0, 2]}"), "k", 2, 32,
                  [np.zeros((32, 4), np.uint32)], "EMU", shared)


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_widths_and_clocks(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Registers of 64 bits give their low half, those of 32 bits theirs; clocks count on from block to block."""
  monkeypatch.setenv("EMU", engine)
  clocks = ("%clock64", "%clock", "%globaltimer", "%globaltimer_lo")
  reads = "".join(
    f"bar.warp.sync -1; mov.u{64 if k % 2 == 0 else 32} %{'lk'[k % 2]}{k}, {name};"
    + (f"cvt.u64.u32 %l{k}, %k{k};" if k % 2 else "")
    for k, name in enumerate(clocks)
  )
  body = f""".visible .entry k (.param .u64 out) {{
  .reg .b16 %h<3>; .reg .b32 %r<9>, %k<9>; .reg .b64 %l<9>, %o;
  ld.param.u64 %o, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %o, %r1, 64, %o; {reads}
  mov.u16 %h1, %tid.x; cvt.u32.u16 %r3, %h1; st.global.u32 [%o], %r3; mov.u16 %h1, %lanemask_ge; cvt.u32.u16 %r3, %h1;
  st.global.u32 [%o+4], %r3; mov.u64 %l5, %gridid; st.global.u64 [%o+8], %l5; mov.u32 %r3, %clock_hi;
  st.global.u32 [%o+16], %r3; mov.u32 %r3, %globaltimer_hi; st.global.u32 [%o+20], %r3;
  st.global.u64 [%o+32], %l0; st.global.u64 [%o+40], %l1; st.global.u64 [%o+48], %l2; st.global.u64 [%o+56], %l3; ret;
}}"""
  (out,) = tinyhw.launch(text(()).partition(".visible")[0] + body, "k", 1, 32, [np.zeros((32, 16), np.uint32)], "EMU")
  n = np.arange(32)
  assert (out[:, 0] == n).all() and (out[:, 1] == (0xFFFF << n & 0xFFFF)).all() and (out[:, 2:6] == (1, 0, 0, 0)).all()
  times = np.ascontiguousarray(out[:, 8:]).view(np.uint64)
  assert (times == times[0]).all() and (np.diff(times[0].astype(np.int64)) > 0).all() and times[0, 3] < 64


@pytest.mark.parametrize("name", ["%pm0", "%pm7", "%envreg0", "%envreg0.x", "%current_graph_exec"])
def test_what_is_not_modelled_is_refused_by_name(name: str) -> None:
  with pytest.raises(tinyhw.Error, match=f"unsupported PTX special register {name}$"):
    tinyhw.launch(text((name,)), "k", 1, 1, [np.zeros(9, np.uint32)], "EMU")
