"""Kernels of PTX whose warps take turns as producers and consumers: cases of `checked` that LLVM has no C for."""
from __future__ import annotations

from typing import Final

_BEGIN: Final = """.version 8.0
.target {target}
.address_size 64
.visible .entry {name}(.param .u64 out, .param .u64 in)
{{
  .reg .pred %p<4>;
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


def _text(name: str, target: str, body: str) -> bytes:
  sums = [f"%f{k}" for k in range(32)]
  return (_BEGIN + body).format(
    name=name, target=target, sums=", ".join(sums), zero="\n".join(f"  mov.f32 {f}, 0f00000000;" for f in sums),
    total="\n".join(f"  add.f32 %f0, %f0, {f};" for f in sums[1:])).encode()


PIPELINES: Final = {"barriers": _text("barriers", "sm_80", _BARRIERS), "hopper": _text("hopper", "sm_90a", _HOPPER)}
