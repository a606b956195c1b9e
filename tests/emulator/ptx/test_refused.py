"""What PTX refuses, and the words for it: operands that do not fit, declarations, faults of each instruction."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tinyhw
from tinyhw.core.errors import DecodeError, MachineFault
from tinyhw.emulator.jit.ptx.launch.run import CompiledLaunch

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.global .align 16 .b32 g[8];
.const .align 16 .b32 c[8];
.global .texref tx;
.global .surfref su;
.func nothing () { ret; }
.func (.reg .b32 r) one (.reg .b32 x) { mov.b32 r, x; ret; }
.extern .func absent ();
.visible .entry k (.param .u64 p, .param .u32 q) {
  .reg .pred %p<5>; .reg .b8 %c<5>; .reg .b16 %h<5>; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .f64 %d<9>;
  .reg .b64 %l<9>, %o; .reg .b128 %q<4>; .reg .v2 .b32 v;
  .shared .align 128 .b8 s[256]; .local .align 16 .b8 a[64]; .shared .align 8 .b64 bar;
  ld.param.u64 %o, [p];
"""

F4 = "{%f0, %f1, %f2, %f3}"
FIRST = HEAD.count("\n") + 1  # the line behind it


def run(body: str, threads: int = 32, number: int = 0) -> None:
  tinyhw.launch(f"{HEAD}{body}\n}}", "k", 1, threads, [np.zeros(64, np.uint32), np.uint32(number)], "EMU")


OPERANDS = [  # an instruction, and what is wrong with its operands: {} is its name
  ("add.u32 %r1, %r2;", "{} takes 3 operands, not 2"),
  ("add.u32 %r1, %r2, %r3, %r4;", "{} takes 3 operands, not 4"),
  ("mov.u32 %r1;", "{} takes 2 operands, not 1"),
  ("mov.b64 {%r1, %r2, %r3}, %l1;", "{} does not take these operands"),
  ("mov.b32 {%h1}, %r1;", "{} does not fit the type .b16 of its destination"),
  ("ld.global.u32 {%r1, %r2}, [%o];", "{} has 2 destinations"),
  ("ld.global.v2.u32 %r1, [%o];", "{} has 1 destinations"),
  ("ld.global.v4.u32 {%r1, %r2}, [%o];", "{} has 2 destinations"),
  ("ld.global.v2.b128 {%q1, %q2}, [%o];", "ld.global.v2.b128: no vector has elements of b128"),
  ("ld.global.u32 %r1;", "{} takes 2 operands, not 1"),
  ("ld.global.u32 %r1, [%o], %l1;", "{} takes 2 operands, not 3"),
  ("ld.global.L2::cache_hint.u32 %r1, [%o];", "{} takes 3 operands, not 2"),
  ("ld.global.u32 %r1, %o;", "{} needs an address"),
  ("ld.global.u32 %r1, [%h1];", "no address has the type .b16"),
  ("ld.global.u32 %r1, [%c1];", "no address has the type .b8"),
  ("ld.global.u32 %r1, [%p1];", "no address has the type .pred"),
  ("ld.global.u32 %r1, [s];", "s is in .shared, not in .global"),
  ("ld.shared.u32 %r1, [g];", "g is in .global, not in .shared"),
  ("ld.local.u32 %r1, [g];", "g is in .global, not in .local"),
  ("ld.const.u32 %r1, [s];", "s is in .shared, not in .const"),
  ("ld.param.u32 %r1, [g];", "g is in .global, not in .param"),
  ("ld.global.u32 %r1, [nobody];", "nobody is not declared"),
  ("ld.global.u32 5, [%o];", "int is no register that {} could write"),
  ("ld.global.u32 %tid.x, [%o];", "%tid.x is no register that {} could write"),
  ("ld.global.u64 %r1, [%o];", "{} does not fit the type .b32 of its destination"),
  ("ld.global.u32 %p1, [%o];", "{} does not fit the type .pred of its destination"),
  ("ld.global.b128 %l1, [%o];", "{} needs a register of b128"),
  ("st.global.u32 [%o], {%r1, %r2};", "{} has 2 sources"),
  ("st.global.v2.u32 [%o], %r1;", "{} has 1 sources"),
  ("st.global.v2.b128 [%o], {%q1, %q2};", "st.global.v2.b128: no vector has elements of b128"),
  ("st.global.u32 [%o];", "{} takes 2 operands, not 1"),
  ("st.global.u32 [%o], %r1, %l1;", "{} takes 2 operands, not 3"),
  ("st.global.u64 [%o], %r1;", "%r1 of the type .b32 does not fit {}"),
  ("st.global.u32 [%o], %p1;", "%p1 of the type .pred does not fit {}"),
  ("st.global.u32 [%o], %q1;", "%q1 of the type .b128 does not fit {}"),
  ("st.global.b128 [%o], %l1;", "{} needs a register of b128"),
  ("atom.global.add.u32 %r1, [%o];", "{} takes 3 operands, not 2"),
  ("atom.global.add.u32 %r1, [%o], %r2, %r3;", "{} takes 3 operands, not 4"),
  ("atom.global.cas.b32 %r1, [%o], %r2;", "{} takes 4 operands, not 3"),
  ("atom.global.cas.b128 %q1, [%o], %q2;", "{} takes 4 operands, not 3"),
  ("atom.global.exch.b128 %q1, [%o], %q2, %q3;", "{} takes 3 operands, not 4"),
  ("atom.global.v2.f32.add %r1, [%o], {%f1, %f2};", "{} has 2 results"),
  ("atom.global.add.v2.f32 {%f1}, [%o], {%f1, %f2};", "{} has 2 results"),
  ("red.global.add.u32 [%o];", "{} takes 2 operands, not 1"),
  ("red.global.add.u32 [%o], %r1, %r2;", "{} takes 2 operands, not 3"),
  ("cvta.global.u64 %l1;", "{} takes 2 operands, not 1"),
  ("cvta.global.u64 %l1, %l2, %l3;", "{} takes 2 operands, not 3"),
  ("isspacep.global %p1;", "{} takes 2 operands, not 1"),
  ("isspacep.global %p1, %r1;", "an address of 32 bits in generic space, where they have 64"),
  ("isspacep.global %r1, %l1;", "{} does not fit the type .b32 of its destination"),
  ("add.u32 %x, %r2, %r3;", "%x is no register that {} could write"),
  ("add.u32 5, %r2, %r3;", "int is no register that {} could write"),
  ("add.u32 {%r1, %r2}, %r2, %r3;", "vector is no register that {} could write"),
  ("add.u32 [%o], %r2, %r3;", "address is no register that {} could write"),
  ("add.u32 g, %r2, %r3;", "g is no register that {} could write"),
  ("add.u32 %r1, [%o], %r3;", "{} takes no such operand"),
  ("add.u32 %r1, {%r1}, %r3;", "{} takes no such operand"),
  ("add.u32 %r1, (%r1), %r3;", "{} takes no such operand"),
  ("add.u32 %r1, -%r2, %r3;", "{} takes no such operand"),
  ("add.f32 %f1, -%f2, %f3;", "{} takes no such operand"),
  ("st.global.u32 [%o], -%r1;", "{} takes no such operand"),
  ("add.u32 %r1, !%p1, %r3;", "{} takes no such operand"),
  ("mov.u32 %r1, !%r2;", "{} takes no such operand"),
  ("add.u32 %r1, %q1, %r3;", "%q1 of the type .b128 does not fit {}"),
  ("add.u64 %l1, %r1, %l3;", "%r1 of the type .b32 does not fit {}"),
  ("add.u32 %p1, %r1, %r3;", "{} does not fit the type .pred of its destination"),
  ("add.u32 %q1, %r1, %r3;", "{} does not fit the type .b128 of its destination"),
  ("add.u32 %h1, %r1, %r3;", "{} does not fit the type .b16 of its destination"),
  ("add.f32 %f1, 5, %f2;", "5 is no floating-point constant"),
  ("add.f64 %d1, 5, %d2;", "5 is no floating-point constant"),
  ("add.f16 %h1, 5, %h2;", "5 is no floating-point constant"),
  ("mov.b16 %h1, 0f3F800000;", "{} takes no such operand"),
  ("setp.eq.u32 %r1, %r2, %r3;", "{} does not fit the type .b32 of its destination"),
  ("setp.eq.u32 %p1, %r2;", "{} takes 3 operands, not 2"),
  ("setp.eq.and.u32 %p1, %r2, %r3;", "{} takes 4 operands, not 3"),
  ("setp.eq.and.u32 %p1, %r2, %r3, %r4;", "%r4 of the type .b32 does not fit {}"),
  ("setp.eq.u32 %p1, %r2, %r3, %p2;", "{} takes 3 operands, not 4"),
  ("selp.b32 %r1, %r2, %r3, %r4;", "%r4 of the type .b32 does not fit {}"),
  ("not.pred %p1, %r1;", "%r1 of the type .b32 does not fit {}"),
  ("@%r1 add.u32 %r1, %r2, %r3;", "%r1 is no predicate register"),
  ("@%nobody add.u32 %r1, %r2, %r3;", "%nobody is no predicate register"),
  ("@v add.u32 %r1, %r2, %r3;", "v is no predicate register"),
  ("cvt.u64.u32 %l1;", "{} takes 2 operands, not 1"),
  ("cvt.rn.f16x2.f32 %r1, %f1;", "{} takes 3 operands, not 2"),
  ("lop3.b32 %r1, %r2, %r3, %r4;", "{} takes 5 operands, not 4"),
  ("lop3.b32 %r1, %r2, %r3, %r4, %r5;", "lop3 needs a constant table"),
  ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "a table of lop3 has 8 bits, not 0x100"),
  ("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x80;", "{} takes 6 operands, not 5"),
  ("mov.b128 %q1, {%l1, %l2, %l3};", "{} needs a register of b128"),
  ("mov.b128 %l1, %q1;", "{} needs a register of b128"),
  ("mov.u32 %r1, %q1.lo;", "%q1.lo is not declared"),
  ("mov.u32 %r1, %r2.lo;", "%r2.lo is not declared"),
  ("bra nowhere;", "there is no label nowhere"),
  ("bra 5;", "{} has no label"),
  ("bra %r1;", "there is no label %r1"),
  ("bra g;", "there is no label g"),
  ("brx.idx %r1, nowhere;", "there is no label nowhere"),
  ("brx.idx %r1, T; T: .branchtargets X;", "there is no label X"),
  ("call ;", "{} of nothing"),
  ("call 5;", "{} of what is no function"),
  ("call nothing, (%r1);", "nothing takes 0 parameters and gives 0 results"),
  ("call (%r1), nothing;", "nothing takes 0 parameters and gives 0 results"),
  ("call one;", "one takes 1 parameters and gives 1 results"),
  ("call (%r1), one, (%r2, %r3);", "one takes 1 parameters and gives 1 results"),
  ("call (%r1, %r2), one, (%r2);", "one takes 1 parameters and gives 1 results"),
  ("call (5), one, (%r2);", "int is no register that {} could write"),
  ("call (%r1), one, (%p2);", "%p2 of the type .pred does not fit {}"),
  ("call (%r1), one, ([%o]);", "{} takes no such operand"),
  ("ret 5;", "{} takes 0 operands, not 1"),
  ("bar.sync;", "{} takes 1 or 2 operands, not 0"),
  ("barrier.sync 1, 2, 3;", "{} takes 1 or 2 operands, not 3"),
  ("bar.red.popc.u32 %r1, 0, %r2;", "%r2 of the type .b32 does not fit {}"),
  (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3};",
    "{} takes 4, 2, 1 and 4 registers",
  ),
  (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0}, {%r2}, {%f0, %f1, %f2, %f3};",
    "{} takes 4, 2, 1 and 4 registers",
  ),
  (
    f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {F4}, {{%r0, %r1}}, {{%r2, %r3}}, {F4};",
    "{} takes 4, 2, 1 and 4 registers",
  ),
  (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1};",
    "{} takes 4, 2, 1 and 4 registers",
  ),
  (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2};",
    "{} takes 4 operands, not 3",
  ),
  (
    f"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {F4}, {{%r0, %r1}}, {{%r2, %r3}}, {F4};",
    "{} takes 8, 2, 2 and 8 registers",
  ),
  (
    f"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {F4}, {{%r0, %r1}}, {{%r2}}, {F4}, %r5, 0;",
    "{} takes 4, 2, 2 and 4 registers",
  ),
  (
    f"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {F4}, {{%r0, %r1}}, {{%r2, %r3}}, {F4}, %r5, 4;",
    "the sparsity selector of {} is 0 to 3",
  ),
  (
    f"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {F4}, {{%r0, %r1, %r4, %r5}}, "
    f"{{%r2, %r3, %r6, %r7}}, {F4}, %r5, 2;",
    "the sparsity selector of {} is 0 to 1",
  ),
  (
    "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r4, %r5}, "
    "{%r2, %r3, %r6, %r7}, {%r0, %r1, %r2, %r3}, %r5, 1;",
    "the sparsity selector of {} is 0 to 0",
  ),
  ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [s];", "{} has 2 destinations"),
  ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [s];", "{} has 4 destinations"),
  ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1, %r2}, [s];", "{} has 1 destinations"),
  ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, %l1;", "{} needs an address"),
  ("stmatrix.sync.aligned.m8n8.x2.shared.b16 [s], {%r1};", "{} has 2 sources"),
  ("movmatrix.sync.aligned.m8n8.trans.b16 %r1;", "{} takes 2 operands, not 1"),
  ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2}, [%o];", "{} has 8 registers of a, not 2"),
  ("wmma.store.d.sync.aligned.row.m16n16k16.f32 [%o], {%f1, %f2};", "{} has 8 registers of d, not 2"),
  (
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1, %f2}, {%r1}, {%r1}, {%f1};",
    "{} has 8 registers of d, not 2",
  ),
  ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %l1, %l2, 1, 1, 1, 0, 0;", "{} has 4 results"),
  (
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1, %f2, %f3, %f4}, %l1, %l2, %r1, 2, 1, 1, 1, 0, 0;",
    "the sparsity selector of {} is 0 to 1",
  ),
  ("multimem.ld_reduce.add.u32 %r1, [%o], %r2;", "{} takes 2 operands, not 3"),
  ("multimem.ld_reduce.global.add.v4.f32 {%f1, %f2}, [%o];", "{} has 4 values"),
  ("multimem.st.global.v2.f32 [%o], {%f1};", "{} has 2 values"),
  ("cp.async.ca.shared.global [s], [%o], 3;", "{} copies 4, 8 or 16 bytes"),
  ("cp.async.ca.shared.global [s], [%o], %r1;", "{} copies 4, 8 or 16 bytes"),
  ("cp.async.cg.shared.global [s], [%o], 8;", "{} copies 4, 8 or 16 bytes"),
  ("cp.async.ca.shared.global [s], [%o];", "{} takes 3 or 4 operands, not 2"),
  ("cp.async.ca.shared.global [s], %o, 4;", "{} needs an address"),
  ("tensormap.replace.tile.rank.global.b1024.b32 [%o];", "{} takes 2 operands, not 1"),
  (
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%o], [s], 64;",
    "{} copies 128 bytes",
  ),
  (
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%o], [s], %r1;",
    "{} copies 128 bytes",
  ),
  (
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%o], [s];",
    "{} takes 3 operands, not 2",
  ),
  (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%o, {%r1}], [bar];",
    "{} takes 2 coordinates, not 1",
  ),
  (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%o], [bar];",
    "{} takes a tensor map with coordinates",
  ),
  (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], %o, [bar];",
    "{} takes a tensor map with coordinates",
  ),
  ("mbarrier.init.shared.b64 bar, 1;", "{} needs an address"),
  ("mbarrier.pending_count.b64 %r1;", "{} takes 2 operands, not 1"),
  ("mbarrier.test_wait.shared.b64 %r1, [bar], %l1;", "{} does not fit the type .b32 of its destination"),
  ("mapa.shared::cluster.u32 %r1, %r2;", "{} takes 3 operands, not 2"),
  ("getctarank.shared::cluster.u32 %r1;", "{} takes 2 operands, not 1"),
  ("vadd.u32.u32.u32 %r1, %r2;", "{} takes 3 or 4 operands, not 2"),
  ("shfl.sync.idx.b32 %r1, %r2, 0, 31;", "{} takes 5 operands, not 4"),
  ("vote.sync.all.pred %p1, %r1, -1;", "%r1 of the type .b32 does not fit {}"),
  ("match.any.sync.b32 %p1, %r2, -1;", "{} does not fit the type .pred of its destination"),
  ("redux.sync.add.u32 %r1, %r2;", "{} takes 3 operands, not 2"),
  ("elect.sync %r1;", "{} takes 2 operands, not 1"),
  ("activemask.b32 %r1, %r2;", "{} takes 1 operands, not 2"),
  ("mov.u32 %r1, g[3], 4;", "{} takes 2 operands, not 3"),
  ("mov.u32 %r1, %r3[2];", "%r3 is not declared"),
  ("createpolicy.fractional.L2::evict_last.b64 5;", "int is no register that {} could write"),
  ("alloca.u64 %r1, 16;", "{} does not fit the type .b32 of its destination"),
  ("stacksave.u64 %r1;", "{} does not fit the type .b32 of its destination"),
  ("nanosleep.u32;", "{} takes 1 operands, not 0"),
  ("prmt.b32 %r1, %r2, %r3;", "{} takes 4 operands, not 3"),
  ("mad.lo.u32 %r1, %r2, %r3;", "{} takes 4 operands, not 3"),
  ("txq.width.b32 %r1, [%r2];", "%r2 of the type .b32 does not fit {}"),
  ("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tx, {%f1}], {%r1}, %f2, %f3;", "{} takes 2 or 3 or 4 operands, not 5"),
]


@pytest.mark.left(r".* \(PTX line")
@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize(("line", "message"), OPERANDS, ids=[b[:60] for b, _ in OPERANDS])
def test_operands_that_an_instruction_does_not_take(
  line: str, message: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
  """The error names the instruction, what it takes, and the place; on both engines, and where control gets there."""
  monkeypatch.setenv("EMU", engine)
  found = re.match(r"(@\S+ )?([\w.:]+)", line)
  assert found is not None
  with pytest.raises(DecodeError) as caught:
    run(f"bra A;\nB: ret;\nA:\n{line}\nbra B;")
  column = 1 + len(found[1] or "")
  assert str(caught.value) == f"PTX line {FIRST + 3}, column {column}: {message.replace('{}', found[2])}"
  if "label" not in message:
    run(f"bra A;\n{line}\nA:", 1)  # a place for every branch there must be


# what comes before, an instruction, what is wrong with it; O is the address of the array, {} the instruction's name
FAULTS = [
  ("mov.u32 %r1, 2;", "brx.idx %r1, T; A: ret; T: .branchtargets A, A;", "brx.idx with index 2, of 2 targets"),
  ("", "bar.sync 16;", "barrier 16, of 16 barriers"),
  ("mov.u32 %r1, 99;", "bar.sync %r1;", "barrier 99, of 16 barriers"),
  ("", "bar.sync 1, 33;", "a barrier for 33 threads, which are no whole warps"),
  ("", "bar.sync 1, 31;", "a barrier for 31 threads, which are no whole warps"),
  (
    "mov.u64 %l1, 77;",
    "call (%r1), %l1, (%r2), P; P: .callprototype (.reg .b32 _) _ (.reg .b32 _);",
    "a {} of 0x4d, where no function is",
  ),
  ("", "trap;", "the program stopped itself (trap)"),
  ("", "brkpt;", "the program stopped itself (brkpt)"),
  ("", "ld.shared.u32 %r1, [s+400];", "read of 4 bytes at 0x190 of shared memory, which has 264 bytes"),
  ("", "ld.shared.u32 %r1, [s+2];", "misaligned read of 4 bytes at 0x2"),
  ("", "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [s+8];", "misaligned read of 16 bytes at 0x8"),
  ("", "st.shared.u32 [s+400], %r1;", "write of 4 bytes at 0x190 of shared memory, which has 264 bytes"),
  ("", "st.shared.u64 [s+4], %l1;", "misaligned write of 8 bytes at 0x4"),
  ("", "ld.local.u32 %r1, [a+4096];", "read of 4 bytes at 0x1000 of local memory, which has 64 bytes"),
  ("", "ld.local.u16 %h1, [a+1];", "misaligned read of 2 bytes at 0x1"),
  ("", "st.local.u32 [a+4096], %r1;", "write of 4 bytes at 0x1000 of local memory, which has 64 bytes"),
  ("", "ld.global.u64 %l1, [%o+4];", "misaligned read of 8 bytes at O+004"),
  ("", "st.global.u16 [%o+1], %h1;", "misaligned write of 2 bytes at O+001"),
  ("", "st.global.v8.b32 [%o+16], {%r1, %r2, %r3, %r4, %r1, %r2, %r3, %r4};", "misaligned write of 32 bytes at O+010"),
  ("", "ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%o+16];", "misaligned read of 32 bytes at O+010"),
  ("", "atom.shared.add.u32 %r1, [s+400], 1;", "atomic of 4 bytes at 0x190 of shared memory, which has 264 bytes"),
  ("", "atom.shared.add.u32 %r1, [s+2], 1;", "misaligned atomic of 4 bytes at 0x2"),
  ("", "atom.global.add.u32 %r1, [%o+2], 1;", "misaligned atomic of 4 bytes at O+002"),
  ("", "atom.global.add.u64 %l1, [%o+4], 1;", "misaligned atomic of 8 bytes at O+004"),
  ("mov.u64 %l1, a; cvta.local.u64 %l1, %l1;", "atom.add.u32 %r1, [%l1], 1;", "an atomic on local memory"),
  ("", "atom.shared.cas.b16 %h1, [s+1], 1, 2;", "misaligned read of 2 bytes at 0x1"),
  ("", "atom.shared.cas.b128 %q1, [s+8], %q2, %q3;", "misaligned read of 16 bytes at 0x8"),
  ("", "atom.global.add.v2.f32 {%f1, %f2}, [%o+4], {%f1, %f2};", "misaligned atomic of 8 bytes at O+004"),
  ("", "multimem.ld_reduce.add.u32 %r1, [%o+2];", "misaligned read of 4 bytes at O+002"),
  ("", "multimem.st.global.v2.f32 [%o+4], {%f1, %f2};", "misaligned write of 8 bytes at O+004"),
  ("", "mapa.shared::cluster.u32 %r1, %r2, 1;", "mapa: a rank of a cluster that has 1"),
  ("", "mapa.u64 %l1, %o, 0;", "a generic address outside of shared memory: O+000"),
  (
    "mov.u64 %l1, 0x700100000000;",
    "mapa.u64 %l1, %l1, 0;",
    "a generic address outside of shared memory: 0x700100000000",
  ),
  ("", "getctarank.u64 %r1, %o;", "a generic address outside of shared memory: O+000"),
  (
    "mov.u32 %r2, 0x2000000;",
    "ld.shared::cluster.u32 %r1, [%r2];",
    "read of 4 bytes at 0x2000000 of shared memory, which has 264 bytes",
  ),
  ("", "mbarrier.init.shared.b64 [bar], 0;", "an mbarrier for 0 arrivals, of 1 to 1,048,575, at 0x100"),
  ("", "mbarrier.init.shared.b64 [bar], 1048576;", "an mbarrier for 1,048,576 arrivals, of 1 to 1,048,575, at 0x100"),
  ("", "mbarrier.init.shared.b64 [s+300], 1;", "misaligned mbarrier of 8 bytes at 0x12c"),
  ("", "mbarrier.init.shared.b64 [s+4], 1;", "misaligned mbarrier of 8 bytes at 0x4"),
  ("", "mbarrier.init.b64 [%o], 1;", "an mbarrier outside of shared memory: O+000"),
  ("", "mbarrier.inval.shared.b64 [s];", "no mbarrier has been initialized, at 0x0"),
  ("", "mbarrier.arrive.shared.b64 %l1, [s];", "no mbarrier has been initialized, at 0x0"),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 1048576;",
    "1,048,576 bytes to come: an mbarrier counts to 1,048,575, at 0x100",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 1048576;",
    "-1,048,576 bytes to come: an mbarrier counts to 1,048,575, at 0x100",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "mbarrier.arrive_drop.shared.b64 %l1, [bar], 2;",
    "2 drop out of an mbarrier for 1, at 0x100",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "mbarrier.arrive.shared.b64 %l1, [bar], 2;",
    "2 arrive at an mbarrier that waits for 1 more in this phase, at 0x100",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "mbarrier.arrive.noComplete.shared.b64 %l1, [bar], 1;",
    "an arrival with .noComplete completes the phase, at 0x100",
  ),
  ("", "mbarrier.test_wait.shared.b64 %p1, [s], %l1;", "no mbarrier has been initialized, at 0x0"),
  ("", "mbarrier.test_wait.parity.shared.b64 %p1, [s+4], 0;", "misaligned mbarrier of 8 bytes at 0x4"),
  ("", "barrier.cluster.wait;", "barrier.cluster.wait without an arrival"),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%o], 24, [bar];",
    "a bulk copy of 24 bytes from O+000 to 0x0: size and addresses are multiples of 16",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+8], [%o], 32, [bar];",
    "a bulk copy of 32 bytes from O+000 to 0x8: size and addresses are multiples of 16",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%o+8], 32, [bar];",
    "a bulk copy of 32 bytes from O+008 to 0x0: size and addresses are multiples of 16",
  ),
  (
    "",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%o], 32, [s];",
    "no mbarrier has been initialized, at 0x0",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%o], 32, [bar+4];",
    "an mbarrier at 0x104 of shared memory, which has 264 bytes",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%o], 32, [bar+400];",
    "an mbarrier at 0x290 of shared memory, which has 264 bytes",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1; mov.b16 %h1, 0;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%o], 32, [bar], %h1;",
    "a copy to no block of the cluster",
  ),
  (
    "mbarrier.init.shared.b64 [bar], 1; mov.b16 %h1, 2;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%o], 32, [bar], %h1;",
    "block 1 of the cluster, which there is not, or which has ended",
  ),
  (
    "",
    "cp.async.bulk.global.shared::cta.bulk_group [%o], [s], 512;",
    "read of 512 bytes at 0x0 of shared memory, which has 264 bytes",
  ),
  (
    "mov.u32 %r1, s; mov.u32 %r3, bar;",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
    "no mbarrier has been initialized, at 0x100",
  ),
  (
    "mov.u32 %r1, s; mov.u32 %r3, bar;",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1+2], %r2, [%r3];",
    "misaligned {} of 4 bytes at 0x2",
  ),
  ("", "cp.async.ca.shared.global [s+2], [%o], 4;", "misaligned write of 4 bytes at 0x2"),
  ("", "cp.async.ca.shared.global [s], [%o+2], 4;", "misaligned read of 4 bytes at O+002"),
  (
    "add.u64 %l1, %o, 127; and.b64 %l1, %l1, -128;",
    "tensormap.replace.tile.elemtype.global.b1024.b32 [%l1], 256;",
    "tensormap.replace: elemtype 256",
  ),
  (
    "add.u64 %l1, %o, 127; and.b64 %l1, %l1, -128;",
    "tensormap.replace.tile.box_dim.global.b1024.b32 [%l1], 5, 1;",
    "tensormap.replace: dimension 5 of box_dim",
  ),
  (
    "add.u64 %l1, %o, 127; and.b64 %l1, %l1, -128; add.u64 %l1, %l1, 8;",
    "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%l1, {%r1}], [bar];",
    "a tensor map at O+008, no multiple of 64",
  ),
  (
    "add.u64 %l1, %o, 127; and.b64 %l1, %l1, -128;",
    "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%l1, {%r1}], [bar];",
    "a tensor map with a box of 0 elements in dimension 0: there are 1 to 256",
  ),
  ("", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s+8];", "misaligned read of 16 bytes at 0x8"),
  (
    "mov.u32 %r1, 0;",
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1, %f2, %f3, %f4}, %l1, %l2, %r1, 0, 1, 1, 1, 0, 0;",
    "metadata of {} that names a place of a chunk twice",
  ),
  (
    "mov.u32 %r5, 0;",
    f"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {F4}, {{%r0, %r1}}, {{%r2, %r3}}, {F4}, %r5, 0;",
    "metadata of {} that names a place of a chunk twice",
  ),
  ("", "alloca.u64 %l1, 100000;", "the stack of a thread has 65,600 bytes, a call needs 100,064"),
  ("", "suld.b.1d.b32.trap %r1, [su, {%r1}];", "no texture or surface is bound to the variable at O+050"),
  (
    "",
    "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tx, {%f1}];",
    "no texture or surface is bound to the variable at O+040",
  ),
  ("", "txq.width.b32 %r1, [tx];", "no texture or surface is bound to the variable at O+040"),
]


def one_of(faults: list[tuple[str, str, str]]) -> str:
  """A body in which the 38th thread does that whose number the kernel is given."""
  return "ld.param.u32 %r39, [q];" + "".join(
    f"setp.ne.u32 %p3, %r39, {k}; @%p3 bra N{k}; {before} setp.ne.u32 %p4, %tid.x, 37; @%p4 bra N{k};\n{line}\nN{k}: "
    for k, (before, line, _) in enumerate(faults)) + "mov.u32 %r1, 0;"


REFUSED = "bar.sync 1, 3"  # compiled code does not take the kernel
ALONE = [f for f in FAULTS if f[1].startswith((REFUSED, "alloca", "call"))]  # and these make the stack larger
TOGETHER = [f for f in FAULTS if f not in ALONE]


@pytest.mark.left("bar.sync")
@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("faults", [*(TOGETHER[k::4] for k in range(4)), *([f] for f in ALONE)], ids=len)
def test_a_fault_of_one_thread(
  faults: list[tuple[str, str, str]], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
  """The 38th thread of a block alone does what is wrong: the error names it, and its line; compiled code is left."""
  monkeypatch.setenv("EMU", engine)
  begun, begin = list[object](), CompiledLaunch.run
  monkeypatch.setattr(CompiledLaunch, "run", lambda launch, cohort: begun.append(cohort) or begin(launch, cohort))
  body = one_of(faults)
  for k, (_, line, message) in enumerate(faults):
    with pytest.raises(MachineFault) as caught: run(body, 64, k)
    error, at = caught.value, FIRST + 1 + 2 * k
    text, _, more = str(error).splitlines()[0].partition(", in kernel k at ")
    assert re.sub(r"0x1[0-9a-f]{5}([0-9a-f]{3})\b", r"O+\1", text) == message.replace("{}", line.split()[0])
    assert more.startswith(f"PTX:{at}") and (error.line, error.kernel) == (at, "k"), line
    assert (error.wave, error.lane, error.workgroup) == (1, 5, (0, 0, 0)), line
    assert "thread 37,0,0 of its block" in str(error)
  run(body, 64, len(faults))
  assert len(begun) == (0 if engine == "ref" or faults[0][1].startswith(REFUSED) else len(faults) + 1)
