"""What observers are shown of each instruction that touches memory: the threads, addresses, widths, kinds and data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.observe import Access, Copy, Observer
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.simt import Cohort, Group
from tinyhw.isa.ptx import parse

G, P, V = 0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000  # an array, the parameters, the module's variables
HEAD = """.version 8.6
.target sm_90a
.address_size 64
.const .align 128 .b8 c[4096];
.visible .entry k (.param .align 16 .b8 p[64], .param .u64 g) {
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>, %t, %s, %a, %n; .reg .f32 %f<9>; .reg .b128 %q<4>;
  .reg .b64 %l<9>, %g, %c, %w, %v, %x, %b;
  .shared .align 1024 .b8 s[8192]; .shared .align 8 .b64 bar; .local .align 16 .b8 a[64];
  ld.param.u64 %b, [g]; mov.u32 %t, %tid.x; mov.u32 %s, s; mov.u32 %a, a; mov.u64 %c, c; mov.u32 %n, s;
  mad.wide.u32 %g, %t, 64, %b; mad.wide.u32 %c, %t, 64, %c; mad.lo.u32 %s, %t, 64, %s;
  cvt.u64.u32 %w, %s; cvta.shared.u64 %w, %w; cvt.u64.u32 %v, %a; cvta.local.u64 %v, %v;
  and.b32 %r9, %t, 1; setp.eq.u32 %p1, %r9, 1; setp.eq.u32 %p4, %t, 33; setp.lt.u32 %p2, %t, 8;
  selp.b64 %x, %w, %g, %p2;
  setp.ge.u32 %p3, %t, 20; selp.b64 %x, %v, %x, %p3;
  add.u32 %r1, %t, 256; add.u32 %r2, %t, 512; add.u32 %r3, %t, 768; add.u32 %r4, %t, 1024;
  mov.b64 %l1, {%r1, %r2}; mov.b64 %l2, {%r3, %r4}; cvt.u16.u32 %h1, %r1; mov.b128 %q1, {%l1, %l2};
"""
THREADS = 40


class Recorder(Observer):
  """What is shown from a line of the text on."""

  def __init__(self, line: int) -> None:
    self.line, self.seen, self.order = line, list[Any](), list[Any]()

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    assert access.addresses.shape == access.active.shape == (group.size, 32) and access.addresses.dtype == np.uint64
    if instruction.line.instruction.at[0] < self.line:
      return

    def rows(of: Any) -> dict[int, Any]:
      return {int(w) * 32 + k: of(r, k) for r, w in enumerate(group.waves) for k in range(32) if access.active[r, k]}

    self.seen.append(
      (
        access.segment,
        access.kind,
        access.width,
        rows(lambda r, k: int(access.addresses[r, k])),
        None if access.data is None else rows(lambda r, k: bytes(access.data[r, k])),
      )
    )

  def copied(self, group: Group, pc: int, instruction: Any, copy: Copy) -> None:
    if instruction.line.instruction.at[0] < self.line:
      return
    thread = int(group.waves[copy.row]) * 32 + copy.lane
    self.seen.append((copy.segment, copy.kind, copy.width, thread, copy.addresses.tolist(), copy.block, copy.how))

  def told(self, group: Group, rows: Any, token: Any, how: str = "") -> None:
    self.order.append(
      ("told", group.waves.tolist() if rows is None else group.waves[np.asarray(rows)].tolist(), token, how)
    )

  def complete(self, cohort: Cohort, token: Any) -> None:
    self.order.append(("complete", token))

  def heard(self, group: Group, rows: Any, token: Any) -> None:
    self.order.append(
      ("heard", group.waves.tolist() if rows is None else group.waves[np.asarray(rows)].tolist(), token)
    )

  def released(self, cohort: Cohort, workgroups: Any) -> None:
    self.order.append(("released", workgroups.tolist()))

  def barrier(self, group: Group, pc: int) -> None:
    self.order.append(("barrier", group.waves.tolist()))

  def ended(self, group: Group) -> None:
    self.order.append(("ended", group.waves.tolist()))


def watched(body: str, blocks: int = 1, cluster: Any = None, threads: int = THREADS) -> Recorder:
  """What is seen of some instructions behind the head, of threads that have places of 64 bytes each."""
  linked, space = link(parse(f"{HEAD}{body}\nret; }}")), AddressSpace("seen")
  for at, data in ((G, bytes(range(256)) * 16), (P, bytes(64) + G.to_bytes(8, "little")), (V, bytes(4096))):
    region = Region("data", 4096)
    space.map(at, 4096, region)
    space.write(at, data)
  recorder = Recorder(HEAD.count("\n") + 1)
  d = Dispatch(Program(linked, "k", V), (blocks, 1, 1), (threads, 1, 1), P, 72, cluster=cluster)
  dispatch(space, d, observer=recorder, engine="ref")
  return recorder


def word(*parts: int) -> Callable[[int], bytes]:
  """The thread's registers %r1, %r2 ... as bytes: their numbers."""
  return lambda t: b"".join((t + 256 * p).to_bytes(4, "little") for p in parts)


def at(base: int, step: int = 64) -> Callable[[int], int]:
  return lambda t: base + step * t


# The instruction, for all threads or with @%p1 for odd ones; then what is seen: segment, kind, width, addresses, data.
ACCESSES: list[tuple[str, list[tuple[Any, ...]]]] = [
  *(
    (f"ld.global.{t} {r}, [%g+{n}];", [("global", "load", n, at(G + n), None)])
    for t, r, n in (
      ("u8", "%r5", 1),
      ("s16", "%h2", 2),
      ("u32", "%r5", 4),
      ("b64", "%l3", 8),
      ("b128", "%q2", 16),
      ("v2.u8", "{%h2, %h3}", 2),
      ("v4.u8", "{%h2, %h3, %h4, %h5}", 4),
      ("v2.b16", "{%h2, %h3}", 4),
      ("v2.f32", "{%f1, %f2}", 8),
      ("v4.b32", "{%r5, %r6, %r7, %r8}", 16),
      ("v2.b64", "{%l3, %l4}", 16),
    )
  ),
  (
    "ld.global.v8.b32 {%r5, %r6, %r7, %r8, %r10, %r11, %r12, %r13}, [%g+32];",
    [("global", "load", 16, at(G + 32), None), ("global", "load", 16, at(G + 48), None)],
  ),
  (
    "ld.global.v4.b64 {%l3, %l4, %l5, %l6}, [%g];",
    [("global", "load", 16, at(G), None), ("global", "load", 16, at(G + 16), None)],
  ),
  ("ld.const.u32 %r5, [%c+4];", [("global", "load", 4, at(V + 4), None)]),
  ("ld.param.u32 %r5, [p+8];", [("global", "load", 4, at(P + 8, 0), None)]),
  ("ld.shared.u64 %l3, [%s+8];", [("lds", "load", 8, at(8), None)]),
  ("ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%s+16];", [("lds", "load", 16, at(16), None)]),
  ("ld.local.u16 %h2, [a+4];", [("scratch", "load", 2, at(4, 0), None)]),
  ("st.global.u8 [%g+1], %r1;", [("global", "store", 1, at(G + 1), lambda t: word(1)(t)[:1])]),
  ("st.global.u16 [%g+2], %h1;", [("global", "store", 2, at(G + 2), lambda t: word(1)(t)[:2])]),
  ("st.global.u32 [%g+4], %r1;", [("global", "store", 4, at(G + 4), word(1))]),
  ("st.global.u64 [%g+8], %l1;", [("global", "store", 8, at(G + 8), word(1, 2))]),
  ("st.global.v4.u32 [%g+16], {%r1, %r2, %r3, %r4};", [("global", "store", 16, at(G + 16), word(1, 2, 3, 4))]),
  ("st.global.v2.u32 [%g+16], {%r1, %r2};", [("global", "store", 8, at(G + 16), word(1, 2))]),
  ("st.global.b128 [%g+16], %q1;", [("global", "store", 16, at(G + 16), word(1, 2, 3, 4))]),
  (
    "st.global.v4.b64 [%g], {%l1, %l2, %l2, %l1};",
    [("global", "store", 16, at(G), word(1, 2, 3, 4)), ("global", "store", 16, at(G + 16), word(3, 4, 1, 2))],
  ),
  ("st.shared.u32 [%s+4], %r1;", [("lds", "store", 4, at(4), word(1))]),
  ("st.shared.b128 [%s+16], %q1;", [("lds", "store", 16, at(16), word(1, 2, 3, 4))]),
  ("st.shared.v2.u8 [%s+2], {%h1, %h1};", [("lds", "store", 2, at(2), lambda t: word(1)(t)[:1] * 2)]),
  ("st.local.u16 [a+4], %h1;", [("scratch", "store", 2, at(4, 0), lambda t: word(1)(t)[:2])]),
  *(
    (f"{op} [%g+{n}], {v};", [("global", "atomic", n, at(G + n), None)])
    for op, v, n in (
      ("atom.global.add.u32 %r5,", "%r1", 4),
      ("atom.global.cas.b64 %l3,", "0, %l1", 8),
      ("red.global.max.s32", "%r1", 4),
      ("atom.global.add.f32 %f1,", "%f2", 4),
      ("atom.global.cas.b16 %h2,", "1, %h1", 2),
      ("red.global.and.b32", "%r1", 4),
      ("atom.global.exch.b128 %q2,", "%q1", 16),
      ("red.global.add.noftz.f16x2", "%r1", 4),
      ("atom.global.add.noftz.bf16 %h2,", "%h1", 2),
      ("multimem.red.global.add.u32", "%r1", 4),
    )
  ),
  (
    "atom.global.v2.f32.add {%f1, %f2}, [%g+8], {%f1, %f2};",
    [("global", "atomic", 4, at(G + 8), None), ("global", "atomic", 4, at(G + 12), None)],
  ),
  ("multimem.ld_reduce.global.add.u32 %r5, [%g+4];", [("global", "load", 4, at(G + 4), None)]),
  ("multimem.st.global.b32 [%g+4], %r1;", [("global", "store", 4, at(G + 4), word(1))]),
  ("atom.shared.cas.b64 %l3, [%s+8], 0, %l1;", [("lds", "atomic", 8, at(8), None)]),
  ("red.shared.add.u32 [%s+4], %r1;", [("lds", "atomic", 4, at(4), None)]),
  ("atom.shared.cas.b16 %h2, [%s+2], 1, %h1;", [("lds", "atomic", 2, at(2), None)]),
  ("atom.shared.exch.b128 %q2, [%s+16], %q1;", [("lds", "atomic", 16, at(16), None)]),
  (
    "cp.async.ca.shared.global [%s+4], [%g+8], 4;",
    [
      ("global", "load", 4, at(G + 8), None),
      ("lds", "store", 4, at(4), lambda t: bytes((64 * t + 8 + k) % 256 for k in range(4))),
    ],
  ),
  (
    "cp.async.cg.shared.global [%s+16], [%g+16], 16, 2;",
    [
      *(("global", "load", 1, at(G + 16 + k), None) for k in range(2)),
      ("lds", "store", 16, at(16), lambda t: bytes((64 * t + 16 + k) % 256 for k in range(2)) + bytes(14)),
    ],
  ),
]


@pytest.mark.parametrize("guard", ["", "@%p1 "])
@pytest.mark.parametrize(("line", "wanted"), ACCESSES, ids=[line for line, _ in ACCESSES])
def test_an_access(line: str, wanted: list[tuple[Any, ...]], guard: str) -> None:
  threads = [t for t in range(THREADS) if not guard or t & 1]
  assert watched(guard + line).seen == [
    (segment, kind, width, {t: where(t) for t in threads}, None if data is None else {t: data(t) for t in threads})
    for segment, kind, width, where, data in wanted
  ]


@pytest.mark.parametrize("guard", ["", "@%p1 "])
@pytest.mark.parametrize(
  ("line", "kind", "width"),
  [
    ("ld.u32 %r5, [%x];", "load", 4),
    ("ld.v2.u64 {%l3, %l4}, [%x];", "load", 16),
    ("st.u32 [%x], %r1;", "store", 4),
    ("st.v4.u32 [%x], {%r1, %r2, %r3, %r4};", "store", 16),
    ("atom.add.u32 %r5, [%y], %r1;", "atomic", 4),
    ("atom.cas.b16 %h2, [%y], 1, %h1;", "atomic", 2),
    ("atom.exch.b128 %q2, [%y], %q1;", "atomic", 16),
  ],
)
def test_generic_addresses(line: str, kind: str, width: int, guard: str) -> None:
  """Threads below 8 are in shared memory, those from 20 on in their stacks (not for atomics), the others in global."""
  if kind == "atomic":
    line = f"selp.b64 %x, %g, %x, %p3; {guard}{line.replace('%y', '%x')}"
  else:
    line = guard + line
  threads = [t for t in range(THREADS) if not guard or t & 1]
  shared = {t: 64 * t for t in threads if t < 8}
  local = {t: 0 for t in threads if t >= 20 and kind != "atomic"}
  rest = {t: G + 64 * t for t in threads if t not in shared and t not in local}
  data = None if kind != "store" else word(1) if width == 4 else word(1, 2, 3, 4)
  assert watched(line).seen == [
    (segment, kind, width, of, None if data is None else {t: data(t) for t in of})
    for segment, of in (("lds", shared), ("scratch", local), ("global", rest))
    if of
  ]


def test_matrices_are_loaded_and_stored_by_rows() -> None:
  """A row of 16 bytes at each thread's address: of those threads that name one."""
  for count in (1, 2, 4):
    names = ", ".join(f"%r{k}" for k in range(5, 5 + count))
    for kind, text in (
      ("load", f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{names}}}, [%s];"),
      ("store", f"stmatrix.sync.aligned.m8n8.x{count}.shared.b16 [%s], {{{names}}};"),
    ):
      seen = watched(text, threads=64).seen
      assert {(s, k, w) for s, k, w, *_ in seen} == {("lds", kind, 16)}
      touched = {a for *_, of, _ in seen for a in of.values()}
      assert touched == {64 * (32 * w + t) for w in range(2) for t in range(8 * count)}


BULK = "mbarrier::complete_tx::bytes"
COPIES: list[tuple[str, list[tuple[Any, ...]]]] = [  # of thread 33: segment, kind, width, addresses, when it is done
  (
    f"cp.async.bulk.shared::cluster.global.{BULK} [%n], [%b], 32, [bar];",
    [("global", "load", 32, [G], "mbarrier"), ("lds", "store", 32, [0], "mbarrier")],
  ),
  (
    "cp.async.bulk.global.shared::cta.bulk_group [%b], [%n], 48;",
    [("lds", "load", 48, [0], "bulk_group"), ("global", "store", 48, [G], "bulk_group")],
  ),
  (
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%b], [%n], 16;",
    [
      ("lds", "load", 16, [0], "bulk_group"),
      ("global", "load", 16, [G], "bulk_group"),
      ("global", "store", 16, [G], "bulk_group"),
    ],
  ),
  (
    f"cp.reduce.async.bulk.shared::cluster.shared::cta.{BULK}.and.b32 [%n], [%n], 16, [bar];",
    [("lds", "load", 16, [0], "mbarrier")] * 2 + [("lds", "store", 16, [0], "mbarrier")],
  ),
  (f"st.async.shared::cluster.{BULK}.v2.u32 [%n], {{%r1, %r2}}, [%m];", [("lds", "store", 8, [0], "mbarrier")]),
  (
    f"red.async.relaxed.cluster.shared::cluster.{BULK}.add.u32 [%n], %r1, [%m];",
    [("lds", "load", 4, [0], "mbarrier"), ("lds", "store", 4, [0], "mbarrier")],
  ),
  (
    "tensormap.replace.tile.rank.global.b1024.b32 [%b], 2;",
    [("global", "load", 128, [G], ""), ("global", "store", 128, [G], "")],
  ),
  (
    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%n], 2;",
    [("lds", "load", 128, [0], ""), ("lds", "store", 128, [0], "")],
  ),
]


@pytest.mark.parametrize(("line", "wanted"), COPIES, ids=[line for line, _ in COPIES])
def test_a_copy_of_one_thread(line: str, wanted: list[tuple[Any, ...]]) -> None:
  told = "mbarrier" in line
  before = ".reg .b32 %m; mov.u32 %m, bar; @%p4 mbarrier.init.shared.b64 [bar], 1;"
  seen = watched(
    f"{before} @%p4 mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 64; @%p4 {line}" if told else f"@%p4 {line}"
  )
  found = [x for x in seen.seen if len(x) == 7]
  assert found == [(segment, kind, width, 33, where, 0, how) for segment, kind, width, where, how in wanted]
  others = [x for x in seen.seen if len(x) != 7]
  assert others == [("lds", "atomic", 8, {33: 8192}, None)] * (2 * told)
  assert [x for x in seen.order if x[0] == "told"] == [("told", [1], ("mbarrier", 1024), "bulk")] * told


def test_boxes_of_tensors() -> None:
  """The map, the elements that are inside, pieces of 16 bytes in shared memory; then the mbarrier."""
  from tinyhw.emulator.ptx.memory.tensormap import TensorMap

  m = TensorMap(G + 1024, (6, 2, 0, 0, 0), (32, 0, 0, 0), (4, 2, 0, 0, 0), (1, 1, 0, 0, 0), 2, 2)
  words = np.frombuffer(m.encode(), np.uint32)
  fill = " ".join(f"st.global.u32 [%b+{4 * k}], {int(w)};" for k, w in enumerate(words) if w)
  zero = "".join(f"st.global.u32 [%b+{4 * k}], 0;" for k in range(32))
  begin = f"@!%p4 bra E; mbarrier.init.shared.b64 [bar], 1; {zero}{fill} mov.u32 %r20, 4; mov.u32 %r21, 1;\n"
  load = f"cp.async.bulk.tensor.2d.shared::cluster.global.tile.{BULK} [s], [%b, {{%r20, %r21}}], [bar]; E:"
  found = [x for x in watched(begin + "mov.u32 %r22, 0;\n" + load).seen if len(x) == 7]
  assert found == [
    ("global", "load", 128, 33, [G], 0, ""),
    ("global", "load", 4, 33, [G + 1024 + 32 + 4 * k for k in (4, 5)], 0, "mbarrier"),
    ("lds", "store", 16, 33, [0, 16], 0, "mbarrier"),
  ]
  store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%b, {%r20, %r21}], [s]; E:"
  found = [x for x in watched(begin + store).seen if len(x) == 7]
  assert found == [
    ("global", "load", 128, 33, [G], 0, ""),
    ("lds", "load", 16, 33, [0, 16], 0, "bulk_group"),
    ("global", "store", 4, 33, [G + 1024 + 32 + 4 * k for k in (4, 5)], 0, "bulk_group"),
  ]


def of(order: list[Any], *kinds: str) -> list[Any]:
  return [x for x in order if x[0] in kinds]


def test_barriers_are_told_in_order() -> None:
  kinds = "barrier", "told", "complete", "heard", "released"
  assert of(watched("bar.sync 0;").order, *kinds) == [
    ("barrier", [0, 1]),
    ("told", [0, 1], ("bar", 0, 0), ""),
    ("released", [0]),
    ("complete", ("bar", 0, 0)),
    ("heard", [0, 1], ("bar", 0, 0)),
  ]
  parted = "setp.lt.u32 %p5, %t, 32; @%p5 bra A; bar.sync 3, 64; bra E; A: bar.arrive 3, 64; E:"
  found = of(watched(parted, threads=64).order, *kinds)
  assert found[-3:] == [("released", [0]), ("complete", ("bar", 0, 3)), ("heard", [1], ("bar", 0, 3))]
  assert sorted(found[:-3], key=str) == [
    ("barrier", [0]),
    ("barrier", [1]),
    ("told", [0], ("bar", 0, 3), ""),
    ("told", [1], ("bar", 0, 3), ""),
  ]
  found = of(watched("mov.u32 %r5, %ctaid.x; bar.sync %r5;", 2).order, *kinds)
  assert ("told", [0, 1], ("bar", 0, 0), "") in found and ("told", [2, 3], ("bar", 1, 1), "") in found
  assert [x[1] for x in of(watched("").order, "ended")] == [[0, 1]]


def test_clusters_are_told_in_order() -> None:
  kinds = "told", "complete", "heard"
  both = "barrier.cluster.arrive{}; barrier.cluster.wait;"
  assert of(watched(both.format(""), 4, (2, 1, 1)).order, *kinds) == [
    ("told", [0, 1, 2, 3], ("cluster", 0), ""),
    ("told", [4, 5, 6, 7], ("cluster", 1), ""),
    ("complete", ("cluster", 0)),
    ("complete", ("cluster", 1)),
    ("heard", [0, 1, 2, 3], ("cluster", 0)),
    ("heard", [4, 5, 6, 7], ("cluster", 1)),
  ]
  relaxed = of(watched(both.format(".relaxed"), 2, (2, 1, 1)).order, *kinds)
  assert relaxed == [
    ("told", [0, 1, 2, 3], ("cluster", 0), "relaxed"),
    ("complete", ("cluster", 0)),
    ("heard", [0, 1, 2, 3], ("cluster", 0)),
  ]
  late = (
    "mov.u32 %r5, %cluster_ctarank; setp.eq.u32 %p5, %r5, 1; @%p5 bra A; barrier.cluster.arrive; barrier.cluster.wait;"
    "bra E; A: bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait; E:"
  )
  found = of(watched(late, 2, (2, 1, 1)).order, *kinds)
  cluster = [x for x in found if "cluster" in str(x)]
  assert cluster[:3] == [
    ("told", [0, 1], ("cluster", 0), ""),
    ("told", [2, 3], ("cluster", 0), ""),
    ("complete", ("cluster", 0)),
  ]
  assert sorted(cluster[3:]) == [("heard", [0, 1], ("cluster", 0)), ("heard", [2, 3], ("cluster", 0))]


def test_mbarriers_are_told_in_order() -> None:
  """Each thread that arrives is told of, and how; a phase's end; who waits has heard it once a warp."""
  arrive = (
    "@%p4 mbarrier.init.shared.b64 [bar], {}; bar.sync 0; mbarrier.arrive{}.shared.b64 %l3, [bar];"
    "W: mbarrier.try_wait.shared.b64 %p5, [bar], %l3; @!%p5 bra W;"
  )
  token = ("mbarrier", 1024)
  for more, how in (("", ""), (".relaxed.cta", "relaxed")):
    found = [x for x in watched(arrive.format(40, more)).order if token in x]
    assert found == [
      *(("told", [t // 32], token, how) for t in range(40)),
      ("complete", token),
      ("heard", [0], token),
      ("heard", [1], token),
    ]
  copies = (
    "@%p4 mbarrier.init.shared.b64 [bar], 2; @%p4 cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"
    "@%p4 cp.async.mbarrier.arrive.shared.b64 [bar]; @%p4 mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 4;"
  )
  assert [x for x in watched(copies).order if token in x] == [("told", [1], token, "copies")] * 2


def test_a_copy_to_several_blocks() -> None:
  """What is written in each block that the mask names, and their mbarriers."""
  lines = (
    "mov.u32 %r5, %cluster_ctarank; setp.eq.u32 %p5, %r5, 1; and.pred %p5, %p5, %p4;"
    "@%p4 mbarrier.init.shared.b64 [bar], 1; @%p4 mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 64;"
    f"barrier.cluster.arrive; barrier.cluster.wait; .reg .b16 %k; mov.u16 %k, 5; .reg .b32 %m; mov.u32 %m, bar;"
    f"@%p5 cp.async.bulk.shared::cluster.global.{BULK}.multicast::cluster [%n], [%b], 32, [%m], %k;"
  )
  seen = watched(lines, 4, (4, 1, 1))
  found = [x for x in seen.seen if len(x) == 7]
  assert found == [("global", "load", 32, 97, [G], 0, "mbarrier")] + [
    ("lds", "store", 32, 97, [0], block, "mbarrier") for block in (0, 2)
  ]
