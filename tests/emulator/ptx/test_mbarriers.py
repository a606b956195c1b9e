"""Every operation on mbarriers of any state, each thread its own and all one: both engines do the same."""
from __future__ import annotations

import random
import struct

import pytest

from tests.emulator.jit.ptx.test_bulk import outcomes
from tests.emulator.jit.ptx.test_jit import both, kernel
from tests.strength import THOROUGH, examples, seed
from tinyhw.emulator.ptx.memory.mbarrier import LIMIT, Object

OPERATIONS = {
  "arrive": "mbarrier.arrive.shared.b64 %l4, [%r9];", "arrive 3": "mbarrier.arrive.shared.b64 %l4, [%r9], 3;",
  "arrive n": "mbarrier.arrive.shared.b64 %l4, [%r9], %r8;", "sink": "mbarrier.arrive.shared.b64 _, [%r9];",
  "drop": "mbarrier.arrive_drop.shared.b64 %l4, [%r9];", "drop 2": "mbarrier.arrive_drop.shared.b64 %l4, [%r9], 2;",
  "expecting": "mbarrier.arrive.expect_tx.shared.b64 %l4, [%r9], 48;",
  "dropping": "mbarrier.arrive_drop.expect_tx.shared.b64 %l4, [%r9], %r7;",
  "expect": "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r9], 16;",
  "complete": "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r9], %r7;",
  "part": "mbarrier.arrive.noComplete.shared.b64 %l4, [%r9], 1;",
  "part of drop": "mbarrier.arrive_drop.noComplete.shared.b64 %l4, [%r9], 1;",
  "generic": "mbarrier.arrive.b64 %l4, [%l6];", "test": "mbarrier.test_wait.shared.b64 %p5, [%r9], %l5;",
  "parity": "mbarrier.test_wait.parity.shared.b64 %p5, [%r9], %r8;",
  "try": "mbarrier.try_wait.shared.b64 %p5, [%r9], %l5;",
  "count": "mbarrier.pending_count.b64 %r6, %l5;", "init": "mbarrier.init.shared.b64 [%r9], %r8;",
  "inval": "mbarrier.inval.shared.b64 [%r9];", "copied": "cp.async.mbarrier.arrive.shared.b64 [%r9];",
  "copied in": "cp.async.mbarrier.arrive.noinc.shared.b64 [%r9];",
  "bulk": "@%p6 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%in], 16, [%r9];"}


SHARED = {"arrive", "drop 2", "expecting", "part", "test", "try", "bulk"}  # that the quick run does on one by all


def text(operation: str, alone: bool, guard: str = "") -> str:
  """A kernel that gives mbarriers words of its data, does something, and stores what there is then. `alone`: each
  thread has its own."""
  line = OPERATIONS[operation]
  return kernel(f"""mov.u32 %r9, bars; mad.lo.u32 %r10, %t, 8, %r9; mad.wide.u32 %l1, %t, 16, %in; mov.u64 %l4, 0;
    ld.global.v2.u64 {{%l2, %l5}}, [%l1]; st.shared.u64 [%r10], %l2; bar.sync 0; setp.eq.u32 %p6, %t, 0;
    {"mov.u32 %r9, %r10;" if alone else ""} cvt.u64.u32 %l6, %r9; cvta.shared.u64 %l6, %l6; and.b32 %r8, %t, 1;
    add.u32 %r8, %r8, 1; shl.b32 %r7, %r8, 4; mov.u32 %r6, 0; setp.ne.u32 %p5, %t, %t; setp.lt.u32 %p7, %t, 9;
    {guard} {line} bar.sync 0; ld.shared.u64 %l7, [%r10]; selp.u32 %r5, 1, 0, %p5; mad.wide.u32 %l1, %t, 32, %out;
    st.global.v2.u64 [%l1], {{%l7, %l4}}; st.global.v2.u32 [%l1+16], {{%r5, %r6}};""",
                ".shared .align 16 .b8 s[16]; .shared .align 8 .b64 bars[32];\n")


def words(rng: random.Random, least: int = 200, most: int = LIMIT - 4000) -> bytes:
  """Objects that have something to wait for still, each with a token of another one."""
  out = []
  for _ in range(32):
    pair = []
    for _ in range(2):
      pending = rng.choice([least, least + 1, rng.randrange(least, most), most])
      tx = rng.choice([0, 0, 16, 32, -16, 48, most - 1000, 1000 - most])
      pair.append(Object(pending, rng.choice([least, most, rng.randrange(least, most)]), tx, rng.randrange(4)).word)
    if rng.random() < 0.3: pair[1] = pair[0]
    out.append(struct.pack("<2Q", *pair))
  return b"".join(out)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations(operation: str) -> None:
  """Nothing is left to the reference."""
  rng = random.Random(seed(len(operation)))
  for alone in (True, False):
    if alone or operation not in {"init", "inval"} and (THOROUGH or operation in SHARED):
      for guard in ("", "@%p7")[:1 if operation not in {"arrive", "complete"} and not THOROUGH else 2]:
        of = text(operation, alone, guard)
        for _ in range(examples(2)):
          _, stats = both(of, words(rng), block=32)
          assert not stats.helped and not stats.interpreted


ENDS = [Object(pending, expected, tx, phase).word
        for pending, expected, tx, phase in ((1, 1, 0, 0), (1, 5, 16, 3), (2, 2, 0, 1), (0, 3, 16, 2), (0, 3, 48, 3),
                                             (3, 3, -16, 0), (3, 0, 0, 1), (1, 7, -48, 3), (0, 0, 0, 0),
                                             (1, LIMIT - 1, 0, 3), (2, 5, LIMIT - 1, 0), (2, 5, 1 - LIMIT, 0),
                                             (2, 5, LIMIT - 17, 0),
                                             (2, 5, 16 - LIMIT, 1), (2, 5, 17 - LIMIT, 1), (2, 5, LIMIT - 48, 1),
                                             (2, 5, LIMIT - 49, 1))] + [0, 5, 1 << 62]


@pytest.mark.left("mbarrier.(test|try)_wait")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_ends_of_phases_and_of_counts(operation: str) -> None:
  """One thread's last arrival, the last bytes, more than there may be, and what is no mbarrier."""
  of = text(operation, True, "@%p6")
  for word in ENDS:
    (reference, compiled), _ = outcomes(of, struct.pack("<2Q", word, ENDS[0]) * 32, block=32)
    if isinstance(reference, tuple) or isinstance(compiled, tuple): assert reference == compiled, hex(word)
    else: assert (reference == compiled).all(), hex(word)
