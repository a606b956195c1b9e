"""Runs instructions of tcgen05 on shared and tensor memory that are given, and gives tensor memory back."""
from __future__ import annotations

from typing import Any

import numpy as np

import tinyhw

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"
LANES, COLUMNS = 128, 512
EACH = 32  # columns that a loop's turn moves
_REGISTERS = "{" + ", ".join(f"%v{k}" for k in range(EACH)) + "}"


def text(body: str, shared: int, cluster: int = 1, pair: int = 1, columns: int = COLUMNS, ends: bool = True,
         declared: str = "", target: str = "sm_100a") -> str:
  """A kernel of 128 threads: %t is a thread's index, %d the address of tensor memory, %s that of shared memory, %m that
  of an mbarrier; thread 0 executes `body` in a place where %p1 is true for it."""
  size = max(shared, 16)
  return f"""{HEAD.replace("sm_100a", target)}.visible .entry k (.param .u64 out, .param .u64 cells, .param .u64 given)
  {f'.explicitcluster .reqnctapercluster {cluster}, 1, 1' if cluster > 1 else ''} {{
  .reg .pred %p<20>; .reg .b16 %h<9>; .reg .b32 %r<90>, %t, %d, %s, %m, %v<{EACH}>, %q, %w; .reg .b64 %l<30>;
  .shared .align 1024 .b8 bytes[{size}]; .shared .align 8 .b64 bar; .shared .align 4 .b32 slot; {declared}
  mov.u32 %t, %tid.x; mov.u32 %s, bytes; mov.u32 %m, bar; mov.u32 %r1, %ctaid.x;
  ld.param.u64 %l1, [given]; mul.wide.u32 %l2, %r1, {size}; add.u64 %l1, %l1, %l2; mul.lo.u32 %r2, %t, 16;
COPY: setp.ge.u32 %p2, %r2, {size}; @%p2 bra COPIED;
  cvt.u64.u32 %l2, %r2; add.u64 %l3, %l1, %l2; ld.global.v4.u32 {{%r3, %r4, %r5, %r6}}, [%l3]; add.u32 %r7, %s, %r2;
  st.shared.v4.u32 [%r7], {{%r3, %r4, %r5, %r6}}; add.u32 %r2, %r2, 2048; bra COPY;
COPIED: setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [bar], 1;
  setp.lt.u32 %p3, %t, 32; mov.u32 %r8, slot;
  @%p3 tcgen05.alloc.cta_group::{pair}.sync.aligned.shared::cta.b32 [%r8], {columns};
  fence.proxy.async.shared::cta; {'barrier.cluster.arrive; barrier.cluster.wait;' if cluster > 1 else ''} bar.sync 0;
  ld.shared.u32 %d, [slot];
  ld.param.u64 %l4, [cells]; ld.param.u64 %l5, [out]; mul.wide.u32 %l6, %r1, {4 * LANES * COLUMNS};
  mul.wide.u32 %l7, %t, {4 * COLUMNS}; add.u64 %l6, %l6, %l7; add.u64 %l4, %l4, %l6; add.u64 %l5, %l5, %l6;
  shr.u32 %q, %t, 5; shl.b32 %q, %q, 21; add.u32 %q, %q, %d; mov.u32 %w, 0;
FILL:
  {''.join(f'ld.global.v4.u32 {{%v{k}, %v{k + 1}, %v{k + 2}, %v{k + 3}}}, [%l4+{4 * k}]; ' for k in range(0, EACH, 4))}
  tcgen05.st.sync.aligned.32x32b.x{EACH}.b32 [%q], {_REGISTERS};
  add.u64 %l4, %l4, {4 * EACH}; add.u32 %q, %q, {EACH}; add.u32 %w, %w, {EACH}; setp.lt.u32 %p4, %w, {columns};
  @%p4 bra FILL;
  tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; sub.u32 %q, %q, {columns};
  {'barrier.cluster.arrive; barrier.cluster.wait;' if cluster > 1 else ''} bar.sync 0;
  tcgen05.fence::after_thread_sync;
  {body}
  {'barrier.cluster.arrive; barrier.cluster.wait;' if cluster > 1 else ''} bar.sync 0; mov.u32 %w, 0;
DUMP: tcgen05.ld.sync.aligned.32x32b.x{EACH}.b32 {_REGISTERS}, [%q]; tcgen05.wait::ld.sync.aligned;
  {''.join(f'st.global.v4.u32 [%l5+{4 * k}], {{%v{k}, %v{k + 1}, %v{k + 2}, %v{k + 3}}}; ' for k in range(0, EACH, 4))}
  add.u64 %l5, %l5, {4 * EACH}; add.u32 %q, %q, {EACH}; add.u32 %w, %w, {EACH}; setp.lt.u32 %p4, %w, {columns};
  @%p4 bra DUMP;
  bar.sync 0;
  {f'@%p3 tcgen05.dealloc.cta_group::{pair}.sync.aligned.b32 %d, {columns};' if ends else ''}
  ret;
}}"""


def once(body: str, pair: int = 1, leader: bool = False) -> str:
  """The first thread does this and all wait until it is done; of a pair of blocks the first one does it for both."""
  which = "%cluster_ctarank" if leader else "0"
  multicast = ".multicast::cluster" if leader else ""
  return f"""mov.u32 %r80, {which}; setp.eq.and.u32 %p8, %r80, 0, %p1; @!%p8 bra WAIT;
  {body}
  mov.u16 %h8, 3;
  tcgen05.commit.cta_group::{pair}.mbarrier::arrive::one.shared::cluster{multicast}.b64 [%m]{', %h8' if leader else ''};
WAIT: mbarrier.try_wait.parity.shared.b64 %p9, [%m], 0; @!%p9 bra WAIT;
  tcgen05.fence::after_thread_sync;"""


def run(body: str, cells: Any, shared: Any = None, cluster: int = 1, **more: Any) -> Any:
  """Tensor memory [blocks, lanes, columns] behind a body, of `cells` and of bytes in shared memory [blocks, n]."""
  blocks = len(cells)
  given = np.zeros((blocks, 16), np.uint8) if shared is None else shared
  out = np.zeros((blocks, LANES, COLUMNS), np.uint32)
  source = text(body, given.shape[1], cluster, **more)
  found = tinyhw.launch(source, "k", blocks, LANES, [out, cells, given], "EMU")
  return found[0]
