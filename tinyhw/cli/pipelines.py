"""Kernels of PTX that LLVM has no text for: cases of `checked`. Warps take turns as producers and consumers, blocks are
in clusters, locks and units of matrices are used."""
from __future__ import annotations

from typing import Final

_BEGIN: Final = """.version {version}
.target {target}
.address_size 64
.visible .entry {name}(.param .u64 out, .param .u64 in) {cluster}
{{
  .reg .pred %p<4>;
  .reg .b16 %half;
  .reg .b32 %a<8>, %b<8>;
  .reg .b32 %r<16>, %t, %block, %k, %stage, %phase;
  .reg .b64 %o, %i, %d<4>;
  .reg .f32 %f<40>;
  ld.param.u64 %o, [out];
  ld.param.u64 %i, [in];
  mov.u32 %t, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %k, 0;
  mad.lo.u32 %r0, %block, 256, %t;
  mad.wide.u32 %o, %r0, 4, %o;
  setp.ge.u32 %p0, %t, 128;
"""
# Half of the warps fill two tiles by turns, the others sum rows of them; barriers 1 and 2 say that one is full, 3 and 4
# that it is empty.
_BARRIERS: Final = """  .shared .align 16 .b8 tiles[1024];
  mov.u32 %r1, tiles;
  and.b32 %r2, %t, 127;
  mov.f32 %f0, 0f00000000;
  @%p0 bra PRODUCE;
  bar.arrive 3, 256;
  bar.arrive 4, 256;
  and.b32 %r3, %t, 112;
  mad.lo.u32 %r3, %r3, 4, %r1;
CONSUME:
  and.b32 %stage, %k, 1;
  add.u32 %r4, %stage, 1;
  bar.sync %r4, 256;
  mad.lo.u32 %r5, %stage, 512, %r3;
  mov.u32 %r6, 0;
SUM:
  ld.shared.f32 %f1, [%r5];
  fma.rn.f32 %f0, %f0, 0f3F000000, %f1;
  add.u32 %r5, %r5, 4;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p1, %r6, 16;
  @%p1 bra SUM;
  add.u32 %r4, %stage, 3;
  add.u32 %k, %k, 1;
  setp.ge.u32 %p1, %k, 15;
  @%p1 bra LAST;
  bar.arrive %r4, 256;
LAST:
  setp.lt.u32 %p1, %k, 16;
  @%p1 bra CONSUME;
  st.global.f32 [%o], %f0;
  bra END;
PRODUCE:
  and.b32 %stage, %k, 1;
  add.u32 %r4, %stage, 3;
  bar.sync %r4, 256;
  mad.lo.u32 %r5, %k, 128, %r0;
  and.b32 %r5, %r5, 65535;
  mad.wide.u32 %d0, %r5, 4, %i;
  ld.global.f32 %f1, [%d0];
  mad.lo.u32 %r6, %stage, 512, %r1;
  mad.lo.u32 %r6, %r2, 4, %r6;
  st.shared.f32 [%r6], %f1;
  add.u32 %r4, %stage, 1;
  bar.arrive %r4, 256;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p1, %k, 16;
  @%p1 bra PRODUCE;
END:
  ret;
}}
"""
# One thread has tiles of two matrices copied in bulk, two stages ahead; a warpgroup multiplies them.
_HOPPER: Final = """  .shared .align 128 .b8 tiles[8192];
  .shared .align 8 .b64 full[2];
  .shared .align 8 .b64 empty[2];
  mov.u32 %r1, tiles;
  mov.u32 %r2, full;
  mov.u32 %r3, empty;
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r2], 1;
  mbarrier.init.shared.b64 [%r2+8], 1;
  mbarrier.init.shared.b64 [%r3], 128;
  mbarrier.init.shared.b64 [%r3+8], 128;
  fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  @%p0 bra PRODUCE;
{zero}
CONSUME:
  and.b32 %stage, %k, 1;
  shr.u32 %phase, %k, 1;
  and.b32 %phase, %phase, 1;
  mad.lo.u32 %r4, %stage, 8, %r2;
FULL:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %phase;
  @!%p2 bra FULL;
  mad.lo.u32 %r5, %stage, 4096, %r1;
  shr.u32 %r5, %r5, 4;
  cvt.u64.u32 %d0, %r5;
  or.b64 %d0, %d0, 68720001024;
  add.u64 %d1, %d0, 128;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{sums}}}, %d0, %d1, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  mad.lo.u32 %r4, %stage, 8, %r3;
  mbarrier.arrive.shared.b64 %d2, [%r4];
  add.u32 %k, %k, 1;
  setp.lt.u32 %p1, %k, 8;
  @%p1 bra CONSUME;
{total}
  st.global.f32 [%o], %f0;
  bra END;
PRODUCE:
  setp.ne.u32 %p1, %t, 128;
  @%p1 bra END;
COPY:
  and.b32 %stage, %k, 1;
  shr.u32 %phase, %k, 1;
  and.b32 %phase, %phase, 1;
  xor.b32 %phase, %phase, 1;
  mad.lo.u32 %r4, %stage, 8, %r3;
EMPTY:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %phase;
  @!%p2 bra EMPTY;
  mad.lo.u32 %r4, %stage, 8, %r2;
  mbarrier.arrive.expect_tx.shared.b64 %d2, [%r4], 4096;
  mad.lo.u32 %r5, %block, 8, %k;
  and.b32 %r5, %r5, 63;
  mad.wide.u32 %d0, %r5, 4096, %i;
  mad.lo.u32 %r6, %stage, 4096, %r1;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%d0], 4096, [%r4];
  add.u32 %k, %k, 1;
  setp.lt.u32 %p1, %k, 8;
  @%p1 bra COPY;
END:
  ret;
}}
"""

# Blocks of a cluster of four put rows into shared memory, and sum those of all four.
_CLUSTER: Final = """  .shared .align 16 .b8 row[1024];
  mov.u32 %r1, row;
  mad.lo.u32 %r2, %t, 4, %r1;
  mov.f32 %f0, 0f00000000;
  mad.wide.u32 %d0, %r0, 4, %i;
  ld.global.f32 %f1, [%d0];
  mov.u32 %r3, %cluster_ctarank;
ROUND:
  st.shared.f32 [%r2], %f1;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  mov.u32 %r4, 0;
SUM:
  add.u32 %r5, %r3, %r4;
  and.b32 %r5, %r5, 3;
  mapa.shared::cluster.u32 %r6, %r2, %r5;
  ld.shared::cluster.f32 %f2, [%r6];
  fma.rn.f32 %f0, %f0, 0f3F000000, %f2;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 16;
  @%p1 bra SUM;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  add.f32 %f1, %f1, %f0;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p1, %k, 8;
  @%p1 bra ROUND;
  st.global.f32 [%o], %f0;
  ret;
}}
"""
# Each warp adds its sum to one of the block, which a lock guards.
_LOCKS: Final = """  .shared .align 4 .b32 lock, total;
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra READY;
  st.shared.u32 [lock], 0;
  st.shared.u32 [total], 0;
READY:
  mad.wide.u32 %d0, %r0, 4, %i;
  ld.global.f32 %f1, [%d0];
  and.b32 %r1, %t, 31;
  setp.ne.u32 %p0, %r1, 0;
  bar.sync 0;
ROUND:
  mov.f32 %f2, %f1;
{sums_of_warps}
  @%p0 bra TOGETHER;
TAKE:
  atom.acquire.cta.shared.cas.b32 %r2, [lock], 0, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra TAKE;
  ld.shared.f32 %f3, [total];
  add.f32 %f3, %f3, %f2;
  st.shared.f32 [total], %f3;
  atom.release.cta.shared.exch.b32 %r2, [lock], 0;
TOGETHER:
  bar.warp.sync -1;
  fma.rn.f32 %f1, %f1, 0f3F000000, %f2;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p1, %k, 16;
  @%p1 bra ROUND;
  bar.sync 0;
  ld.shared.f32 %f0, [total];
  st.global.f32 [%o], %f0;
  ret;
}}
"""
# Warps multiply tiles of halves, their own and the others', and look at their part of the product.
_WMMA: Final = """  .shared .align 128 .b8 tiles[4096];
  .shared .align 128 .b8 products[8192];
  mov.u32 %r1, tiles;
  mad.wide.u32 %d0, %r0, 4, %i;
  ld.global.f32 %f32, [%d0];
  cvt.rn.f16.f32 %half, %f32;
  mov.b32 %r2, {{%half, %half}};
  mad.lo.u32 %r3, %t, 16, %r1;
  st.shared.v4.b32 [%r3], {{%r2, %r2, %r2, %r2}};
  bar.sync 0;
  shr.u32 %r4, %t, 5;
  mad.lo.u32 %r5, %r4, 512, %r1;
{zero}
  wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {{{b}}}, [%r5];
ROUND:
  add.u32 %r6, %r4, %k;
  and.b32 %r6, %r6, 7;
  mad.lo.u32 %r6, %r6, 512, %r1;
  wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {{{a}}}, [%r6];
  wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {{{d}}}, {{{a}}}, {{{b}}}, {{{d}}};
  add.u32 %k, %k, 1;
  setp.lt.u32 %p1, %k, 16;
  @%p1 bra ROUND;
  mov.u32 %r6, products;
  mad.lo.u32 %r6, %r4, 1024, %r6;
  wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r6], {{{d}}};
  bar.warp.sync -1;
  and.b32 %r5, %t, 31;
  mad.lo.u32 %r6, %r5, 32, %r6;
  ld.shared.f32 %f0, [%r6];
  st.global.f32 [%o], %f0;
  ret;
}}
"""
# A row of each block is added to global memory in bulk.
_REDUCED: Final = """  .shared .align 128 .b8 row[1024];
  mov.u32 %r1, row;
  mad.lo.u32 %r2, %t, 4, %r1;
  mad.wide.u32 %d0, %r0, 4, %i;
  ld.global.f32 %f1, [%d0];
  setp.ne.u32 %p1, %t, 0;
ROUND:
  st.shared.f32 [%r2], %f1;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p1 bra COPIED;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%o], [%r1], 1024;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
COPIED:
  bar.sync 0;
  fma.rn.f32 %f1, %f1, 0f3F000000, %f1;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p2, %k, 16;
  @%p2 bra ROUND;
  ret;
}}
"""
# Odd threads sum rows of global memory, the others such of shared memory, by the same instructions.
_GENERIC: Final = """  .shared .align 16 .b8 row[1024];
  mov.u32 %r1, row;
  mad.lo.u32 %r2, %t, 4, %r1;
  mad.wide.u32 %d0, %r0, 4, %i;
  ld.global.f32 %f1, [%d0];
  st.shared.f32 [%r2], %f1;
  bar.sync 0;
  and.b32 %r3, %t, 1;
  setp.ne.u32 %p1, %r3, 0;
  and.b32 %r4, %t, 240;
  mad.lo.u32 %r5, %r4, 4, %r1;
  cvt.u64.u32 %d1, %r5;
  cvta.shared.u64 %d1, %d1;
  and.b32 %r6, %r0, 65520;
  mad.wide.u32 %d2, %r6, 4, %i;
  selp.b64 %d1, %d2, %d1, %p1;
  mov.f32 %f0, 0f00000000;
ROUND:
  mov.b64 %d3, %d1;
  mov.u32 %r4, 0;
SUM:
  ld.f32 %f2, [%d3];
  fma.rn.f32 %f0, %f0, 0f3F000000, %f2;
  add.u64 %d3, %d3, 4;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p2, %r4, 16;
  @%p2 bra SUM;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p2, %k, 8;
  @%p2 bra ROUND;
  st.global.f32 [%o], %f0;
  ret;
}}
"""
# Copies in bulk bring four tiles of 128 rows; tensor cores multiply each with half of itself into tensor memory, which
# the first four warps sum at last.
_BLACKWELL: Final = """  .shared .align 1024 .b8 tiles[8192];
  .shared .align 8 .b64 full[2];
  .shared .align 8 .b64 empty[2];
  .shared .align 8 .b64 done;
  .shared .align 4 .b32 slot;
  mov.u32 %r1, tiles;
  mov.u32 %r2, full;
  mov.u32 %r3, empty;
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r2], 1;
  mbarrier.init.shared.b64 [%r2+8], 1;
  mbarrier.init.shared.b64 [%r3], 1;
  mbarrier.init.shared.b64 [%r3+8], 1;
  mbarrier.init.shared.b64 [done], 1;
  fence.mbarrier_init.release.cluster;
READY:
  mov.u32 %r9, slot;
  setp.lt.u32 %p2, %t, 32;
  @%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 64;
  bar.sync 0;
  ld.shared.u32 %r10, [slot];
  @%p0 bra PRODUCE;
  mov.u32 %r11, 135266320;
  @%p1 bra WAIT;
MULTIPLY:
  and.b32 %stage, %k, 1;
  shr.u32 %phase, %k, 1;
  mad.lo.u32 %r4, %stage, 8, %r2;
FULL:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r4], %phase;
  @!%p3 bra FULL;
  mad.lo.u32 %r5, %stage, 4096, %r1;
  shr.u32 %r5, %r5, 4;
  cvt.u64.u32 %d0, %r5;
  add.u64 %d0, %d0, 70437464178688;
  setp.ne.u32 %p3, %k, 0;
  tcgen05.mma.cta_group::1.kind::f16 [%r10], %d0, %d0, %r11, %p3;
  mad.lo.u32 %r4, %stage, 8, %r3;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
  add.u32 %k, %k, 1;
  setp.lt.u32 %p3, %k, 4;
  @%p3 bra MULTIPLY;
  mov.u32 %r4, done;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
  @!%p3 bra WAIT;
  tcgen05.fence::after_thread_sync;
  bar.warp.sync 0xffffffff;
  shr.u32 %r5, %t, 5;
  shl.b32 %r5, %r5, 21;
  add.u32 %r5, %r5, %r10;
  tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{sums}}}, [%r5];
  tcgen05.wait::ld.sync.aligned;
{total}
  st.global.f32 [%o], %f0;
  bra END;
PRODUCE:
  setp.ne.u32 %p1, %t, 128;
  @%p1 bra END;
COPY:
  and.b32 %stage, %k, 1;
  shr.u32 %phase, %k, 1;
  xor.b32 %phase, %phase, 1;
  mad.lo.u32 %r4, %stage, 8, %r3;
EMPTY:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r4], %phase;
  @!%p3 bra EMPTY;
  mad.lo.u32 %r4, %stage, 8, %r2;
  mbarrier.arrive.expect_tx.shared.b64 %d2, [%r4], 4096;
  mad.lo.u32 %r5, %block, 4, %k;
  and.b32 %r5, %r5, 63;
  mad.wide.u32 %d0, %r5, 4096, %i;
  mad.lo.u32 %r6, %stage, 4096, %r1;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%d0], 4096, [%r4];
  add.u32 %k, %k, 1;
  setp.lt.u32 %p3, %k, 4;
  @%p3 bra COPY;
END:
  barrier.sync 0;
  @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;
  ret;
}}
"""


def _text(name: str, target: str, body: str, cluster: str = "", version: str = "8.0") -> bytes:
  sums = [f"%f{k}" for k in range(32)]
  return (_BEGIN + body).format(
    name=name, target=target, version=version, sums=", ".join(sums),
    zero="\n".join(f"  mov.f32 {f}, 0f00000000;" for f in sums),
    total="\n".join(f"  add.f32 %f0, %f0, {f};" for f in sums[1:]), d=", ".join(sums[:8]),
    a=", ".join(f"%a{k}" for k in range(8)), b=", ".join(f"%b{k}" for k in range(8)), sums_of_warps="\n".join(
      f"  mov.b32 %r2, %f2;\n  shfl.sync.bfly.b32 %r2, %r2, {k}, 31, -1;\n  mov.b32 %f3, %r2;\n"
      "  add.f32 %f2, %f2, %f3;" for k in (16, 8, 4, 2, 1)), cluster=cluster).encode()


PIPELINES: Final = {
  "barriers": _text("barriers", "sm_80", _BARRIERS), "hopper": _text("hopper", "sm_90a", _HOPPER),
  "cluster": _text("cluster", "sm_90", _CLUSTER, ".reqnctapercluster 4"), "locks": _text("locks", "sm_80", _LOCKS),
  "wmma": _text("wmma", "sm_80", _WMMA), "reduced": _text("reduced", "sm_90", _REDUCED),
  "generic": _text("generic", "sm_80", _GENERIC), "blackwell": _text(
    "blackwell", "sm_100a", _BLACKWELL, version="8.6")}
