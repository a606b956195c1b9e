"""Threads of a warp, and of a block, that exchange values where only some of them come: against models in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.compiled import compiled_too
from tests.strength import THOROUGH

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
X = [(7919 * t * t + 104729 * t) % 1009 * 4099 & 0xFFFFFFFF for t in range(128)]  # a value of each thread
Y = [x % 3 for x in X]  # and one that several have

# Which threads of a warp come to the instruction in the same branch; the others do so in another one.
SOME: dict[str, Callable[[int], bool]] = {
  "all": lambda n: True,
  "low": lambda n: n < 13,
  "odd": lambda n: bool(n & 1),
  "one": lambda n: n == 5,
  "not": lambda n: n not in {0, 31},
}


def launched(body: str, threads: int = 64, blocks: int = 1, size: int = 1) -> Any:
  """What each thread has stored: `size` words from [%o] on; %x and %y are its values, %t its index, %n its lane."""
  text = f"""{HEAD}.visible .entry k (.param .u64 out, .param .u64 in) {{
  .reg .pred %p<9>; .reg .b32 %r<20>, %t, %n, %x, %y, %m; .reg .b64 %l<9>, %o; .shared .b32 s[64];
  ld.param.u64 %l1, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mov.u32 %n, %laneid;
  mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, {threads}, %t; mad.wide.u32 %o, %r1, {4 * size}, %o;
  mad.wide.u32 %l1, %t, 8, %l1; ld.global.v2.u32 {{%x, %y}}, [%l1]; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %m, -1;
  {body}
  ret;
}}"""
  given = np.array([X, Y], np.uint32).T.copy()
  out = np.zeros((blocks, threads, size), np.uint32)
  return tinyhw.launch(text, "k", blocks, threads, [out, given], "EMU")[0]


def parted(some: str, line: str, k: int) -> str:
  """The instruction where these threads come together, and again where the others do; %m are the lanes that come."""
  bits = sum(1 << n for n in range(32) if SOME[some](n))
  return f"""{{ mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r9, {bits}; shr.u32 %r9, %r9, %n;
  and.b32 %r9, %r9, 1; setp.eq.u32 %p1, %r9, 1; @%p1 bra A;
  mov.u32 %m, {~bits & 0xFFFFFFFF}; {line} bra E;
A: mov.u32 %m, {bits}; {line}
E: st.global.v2.u32 [%o+{8 * k}], {{%r2, %r3}}; }}"""


def group(some: str, t: int) -> list[int]:
  """The threads that come with one."""
  mine = SOME[some](t % 32)
  return [32 * (t // 32) + n for n in range(32) if SOME[some](n) == mine]


def bits(lanes: list[int]) -> int:
  return sum(1 << n % 32 for n in lanes)


def source(kind: str, lane: int, b: int, c: int) -> int:
  """The lane that a shfl reads (PTX ISA, section 9.7.9.6), or -1 for its own: outside of its segment."""
  b, segment, clamp = b & 31, c >> 8 & 31, c & 31
  most, least = lane & segment | clamp & ~segment & 31, lane & segment
  j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | b & ~segment & 31}[kind]
  return j if (j >= most if kind == "up" else j <= most) else -1


def signed(x: int) -> int:
  return x - (x >> 31 << 32)


Wanted = Callable[[int, list[int]], tuple[int, int]]
EXCHANGES: list[tuple[str, Wanted]] = [
  ("activemask.b32 %r2;", lambda t, g: (bits(g), 0)),
  ("elect.sync %r2|%p2, %m; selp.u32 %r3, 1, 0, %p2;", lambda t, g: (min(g) % 32, int(t == min(g)))),
  ("elect.sync _|%p2, %m; selp.u32 %r3, 1, 0, %p2;", lambda t, g: (0, int(t == min(g)))),
  ("setp.eq.u32 %p3, %y, 0; vote.sync.ballot.b32 %r2, %p3, %m;", lambda t, g: (bits([m for m in g if Y[m] == 0]), 0)),
  (
    "setp.ne.u32 %p3, %y, 1; vote.sync.all.pred %p2, %p3, %m; selp.u32 %r2, 1, 0, %p2;"
    "vote.sync.any.pred %p2, !%p3, %m; selp.u32 %r3, 1, 0, %p2;",
    lambda t, g: (int(all(Y[m] != 1 for m in g)), int(any(Y[m] == 1 for m in g))),
  ),
  (
    "setp.lt.u32 %p3, %y, 3; vote.sync.uni.pred %p2, %p3, %m; selp.u32 %r2, 1, 0, %p2; setp.eq.u32 %p3, %y, 2;"
    "vote.sync.uni.pred %p2, %p3, %m; selp.u32 %r3, 1, 0, %p2;",
    lambda t, g: (1, int(len({Y[m] == 2 for m in g}) == 1)),
  ),
  ("match.any.sync.b32 %r2, %y, %m;", lambda t, g: (bits([m for m in g if Y[m] == Y[t]]), 0)),
  (
    "cvt.u64.u32 %l2, %y; shl.b64 %l2, %l2, 40; match.any.sync.b64 %r2, %l2, %m;",
    lambda t, g: (bits([m for m in g if Y[m] == Y[t]]), 0),
  ),
  (
    "match.all.sync.b32 %r2|%p2, %y, %m; selp.u32 %r3, 1, 0, %p2;",
    lambda t, g: (bits(g), 1) if len({Y[m] for m in g}) == 1 else (0, 0),
  ),
  ("shr.u32 %r4, %y, 2; match.all.sync.b32 %r2|%p2, %r4, %m; selp.u32 %r3, 1, 0, %p2;", lambda t, g: (bits(g), 1)),
  ("match.all.sync.b32 %r2, %r9, %m;", lambda t, g: (bits(g), 0)),
  (
    "redux.sync.add.u32 %r2, %x, %m; redux.sync.xor.b32 %r3, %x, %m;",
    lambda t, g: (sum(X[m] for m in g) & 0xFFFFFFFF, int(np.bitwise_xor.reduce([X[m] for m in g]))),
  ),
  (
    "redux.sync.min.u32 %r2, %x, %m; redux.sync.max.u32 %r3, %x, %m;",
    lambda t, g: (min(X[m] for m in g), max(X[m] for m in g)),
  ),
  (
    "mul.lo.u32 %r4, %x, 1001; redux.sync.min.s32 %r2, %r4, %m; redux.sync.max.s32 %r3, %r4, %m;",
    lambda t, g: (
      min(signed(X[m] * 1001 & 0xFFFFFFFF) for m in g) & 0xFFFFFFFF,
      max(signed(X[m] * 1001 & 0xFFFFFFFF) for m in g) & 0xFFFFFFFF,
    ),
  ),
  (
    "redux.sync.and.b32 %r2, %x, %m; redux.sync.or.b32 %r3, %x, %m;",
    lambda t, g: (int(np.bitwise_and.reduce([X[m] for m in g])), int(np.bitwise_or.reduce([X[m] for m in g]))),
  ),
  (
    "mul.lo.u32 %r4, %x, 1001; redux.sync.add.s32 %r2, %r4, %m;",
    lambda t, g: (sum(X[m] * 1001 for m in g) & 0xFFFFFFFF, 0),
  ),
]


@pytest.mark.parametrize("engine", ["ref", "both"])
@pytest.mark.parametrize("some", SOME)
def test_exchanges_of_those_who_come(some: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Of each half of a warp that parts; 50 threads, so that the last warp is one in part."""
  if engine == "both" and some not in {"all", "low"} and not THOROUGH:
    pytest.skip("two in the quick run")
  monkeypatch.setenv("EMU", engine)
  if engine == "both":
    compiled_too(monkeypatch)
  body = "\n".join(parted(some, line, k) for k, (line, _) in enumerate(EXCHANGES))
  for threads in (64, 50) if engine == "ref" else (50,):
    out = launched(body, threads, size=2 * len(EXCHANGES))[0].reshape(threads, -1, 2)
    for t, (k, (line, wanted)) in itertools.product(range(threads), enumerate(EXCHANGES)):
      assert out[t, k].tolist() == [*wanted(t, [m for m in group(some, t) if m < threads])], (line, t)


@pytest.mark.parametrize("engine", ["ref", "both"])
@pytest.mark.parametrize("kind", ["up", "down", "bfly", "idx"])
def test_shuffles(kind: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Every distance with segments of every size, in whole warps; the distance may differ from thread to thread."""
  monkeypatch.setenv("EMU", engine)
  if engine == "both":
    compiled_too(monkeypatch)
  controls = [c for size in (1, 2, 8, 32) for c in ((32 - size) << 8, (32 - size) << 8 | 31, (32 - size) << 8 | 5)]
  lines, wanted = list[str](), list[tuple[int | None, int]]()
  for c in controls if engine == "ref" else controls[::4]:
    for b in (0, 1, 3, 16, 31, 37, None):
      distance = "%y" if b is None else str(b)
      lines.append(
        f"shfl.sync.{kind}.b32 %r2|%p2, %x, {distance}, {c}, -1; selp.u32 %r3, 1, 0, %p2;"
        f"st.global.v2.u32 [%o+{8 * len(lines)}], {{%r2, %r3}};"
      )
      wanted.append((b, c))
  out = launched("\n".join(lines), size=2 * len(lines))[0].reshape(64, -1, 2)
  for t in range(64):
    for k, (b, c) in enumerate(wanted):
      j = source(kind, t % 32, Y[t] if b is None else b, c)
      assert out[t, k].tolist() == [X[t if j < 0 else t // 32 * 32 + j], int(j >= 0)], (t, b, c)


@pytest.mark.parametrize("engine", ["ref", "both"])
def test_reductions_of_a_barrier(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Votes of all the block's threads that live, or of the warps that name a barrier."""
  monkeypatch.setenv("EMU", engine)
  if engine == "both":
    compiled_too(monkeypatch)
  line = """setp.eq.u32 %p3, %y, {}; bar.red.popc.u32 %r2, 0, %p3; bar.red.and.pred %p2, 1, %p3;
    selp.u32 %r3, 1, 0, %p2; bar.red.or.pred %p2, 2, !%p3; selp.u32 %r4, 2, 0, %p2;
    or.b32 %r3, %r3, %r4; st.global.v2.u32 [%o], {{%r2, %r3}};"""
  for threads, k in ((96, 1), (96, 7), (50, 0), (32, 2)):
    out = launched(line.format(k), threads, 2, 2).reshape(-1, 2)
    yes = [Y[t] == k for t in range(threads)]
    assert (out == (sum(yes), int(all(yes)) | 2 * int(not all(yes)))).all()
  out = launched(
    "setp.ge.u32 %p3, %y, 0; bar.red.and.pred %p2, 1, %p3; selp.u32 %r3, 1, 0, %p2;"
    "bar.red.or.pred %p2, 2, !%p3; selp.u32 %r4, 2, 0, %p2; or.b32 %r3, %r3, %r4; st.global.u32 [%o], %r3;",
    70,
  )
  assert (out == 1).all()
  parts = """setp.lt.u32 %p1, %t, 64; setp.eq.u32 %p3, %y, 1; @%p1 bra A;
    barrier.red.popc.aligned.u32 %r2, 5, 32, %p3; bra E;
    A: barrier.red.popc.aligned.u32 %r2, 6, 64, %p3; E: st.global.u32 [%o], %r2;"""
  out = launched(parts, 96).reshape(-1)
  assert (out[:64] == sum(Y[t] == 1 for t in range(64))).all() and (
    out[64:] == sum(Y[t] == 1 for t in range(64, 96))
  ).all()


@pytest.mark.parametrize("engine", ["ref", "both"])
def test_barriers_between_warps(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """A ring: each warp hands a value on to the next one, at barriers whose numbers the threads compute."""
  monkeypatch.setenv("EMU", engine)
  if engine == "both":
    compiled_too(monkeypatch)
  body = """shr.u32 %r5, %t, 5; mov.u32 %r6, s; mad.lo.u32 %r6, %r5, 4, %r6; setp.eq.u32 %p1, %r5, 0; @%p1 bra F;
    bar.sync %r5, 64; ld.shared.u32 %r2, [%r6];
F:  add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, 10; setp.eq.u32 %p2, %r5, 3; @%p2 bra E; st.shared.u32 [%r6+4], %r2;
    add.u32 %r7, %r5, 1; bar.arrive %r7, 64;
E:  st.global.u32 [%o], %r2;"""
  out = launched(body, 128, 3)
  assert (out.reshape(3, 4, 32) == np.array([10, 21, 33, 46])[None, :, None]).all()
