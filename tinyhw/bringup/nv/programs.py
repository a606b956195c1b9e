"""PTX of the rungs, one module, and its launch through the driver's runtime: a card needs an assembler for it."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.bringup.nv.bench import NvBench
from tinyhw.drive.base import Dim3

# Of each kernel: the declarations of registers, and the body. %rd1 is the output, %r1 and %r2 are numbers; %r3 the
# thread's x, %r4 the block's, %r5 their global number, and %rd2 the address of that word.
_HEAD: Final = """.visible .entry {name}(.param .u64 out, .param .u32 a, .param .u32 b) {{
  .reg .pred %p<4>; .reg .b64 %rd<8>; .reg .b32 %r<24>; .reg .f32 %f<4>;
{declared}
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b];
  mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mad.lo.u32 %r5, %r4, %r5, %r3;
  mul.wide.u32 %rd2, %r5, 4; add.u64 %rd2, %rd1, %rd2;
{body}
}}
"""
_LINEAR: Final = """mov.u32 %r6, %tid.y; mov.u32 %r7, %tid.z; mad.lo.u32 %r8, %r7, %r2, %r6;
  mad.lo.u32 %r8, %r8, %r1, %r3;
  mul.wide.u32 %rd3, %r8, 4; add.u64 %rd3, %rd1, %rd3;"""
NUMBERS: Final = ("add.u32 %r6, %r1, %r3", "sub.u32 %r6, %r1, %r3", "mul.lo.u32 %r6, %r1, %r3",
                  "mul.hi.u32 %r6, %r1, %r3", "xor.b32 %r6, %r1, %r3", "shl.b32 %r6, %r1, %r3",
                  "cvt.rn.f32.u32 %f1, %r3; fma.rn.f32 %f2, %f1, %f1, %f1; mov.b32 %r6, %f2",
                  "bfe.u32 %r6, %r1, %r3, 7")
BODIES: Final[dict[str, tuple[str, str]]] = {
  "nothing": ("", "ret;"),
  "store": ("", "st.global.u32 [%rd1], %r1; ret;"),
  "arguments": ("", "st.global.u64 [%rd1], %rd1; st.global.u32 [%rd1+8], %r1; st.global.u32 [%rd1+12], %r2; ret;"),
  "lanes": ("", "st.global.u32 [%rd2], %r3; ret;"),
  "groups": ("", """mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z; mad.lo.u32 %r8, %r7, %r2, %r6;
  mad.lo.u32 %r8, %r8, %r1, %r4; mul.wide.u32 %rd3, %r8, 4; add.u64 %rd3, %rd1, %rd3;
  shl.b32 %r6, %r6, 8; shl.b32 %r7, %r7, 16; or.b32 %r6, %r6, %r7; or.b32 %r6, %r6, %r4;
  st.global.u32 [%rd3], %r6; ret;"""),
  "ones": ("", "mov.u32 %r6, %laneid; mul.wide.u32 %rd3, %r6, 4; add.u64 %rd3, %rd1, %rd3; "
               "mov.u32 %r7, 1; st.global.u32 [%rd3], %r7; ret;"),
  "masked": ("", """shr.u32 %r6, %r1, %r3; and.b32 %r6, %r6, 1; setp.eq.u32 %p1, %r6, 0; @%p1 bra OUT;
  activemask.b32 %r7; st.global.u32 [%rd2], %r7;
OUT: ret;"""),
  "numbers": ("",
         " ".join(f"{step}; st.global.u32 [%rd2+{128 * i}], %r6;" for i, step in enumerate(NUMBERS)) + " ret;"),
  "branches": ("", """mov.u32 %r6, 0; mov.u32 %r7, 0;
LOOP: add.u32 %r6, %r6, %r7; add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, %r1; @%p1 bra LOOP;
  setp.lt.u32 %p2, %r3, %r2; @!%p2 bra OVER; add.u32 %r6, %r6, 1;
OVER: st.global.u32 [%rd2], %r6; ret;"""),
  "constants": ("", """and.b32 %r6, %r3, 7; mul.wide.u32 %rd3, %r6, 4; mov.u64 %rd4, squares; add.u64 %rd3, %rd4, %rd3;
  ld.const.u32 %r8, [%rd3]; st.global.u32 [%rd2], %r8; ret;"""),
  "shared": (".shared .align 4 .b8 own[1024];", """mov.u32 %r6, own; shl.b32 %r7, %r3, 2; add.u32 %r7, %r6, %r7;
  st.shared.u32 [%r7], %r3; bar.sync 0; sub.u32 %r8, %r1, %r3; shl.b32 %r8, %r8, 2; add.u32 %r8, %r6, %r8;
  ld.shared.u32 %r9, [%r8]; st.global.u32 [%rd2], %r9; ret;"""),
  "apart": (".shared .align 4 .b8 mine[128];", """mov.u32 %r6, mine; shl.b32 %r7, %r3, 2; add.u32 %r7, %r6, %r7;
  st.shared.u32 [%r7], %r4; bar.sync 0; mov.u32 %r8, 0;
SPIN: add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 20; @%p1 bra SPIN;
  bar.sync 0; ld.shared.u32 %r9, [%r7]; st.global.u32 [%rd2], %r9; ret;"""),
  "local": (".local .align 4 .b8 frame[1024];", """mov.u32 %r6, frame; mov.u32 %r7, 0;
FILL: add.u32 %r8, %r5, %r7; st.local.u32 [%r6], %r8; add.u32 %r6, %r6, 4; add.u32 %r7, %r7, 1;
  setp.lt.u32 %p1, %r7, 256; @%p1 bra FILL;
  and.b32 %r8, %r3, 255; shl.b32 %r8, %r8, 2; mov.u32 %r6, frame; add.u32 %r6, %r6, %r8; ld.local.u32 %r9, [%r6];
  st.global.u32 [%rd2], %r9; ret;"""),
  "calls": ("", """mov.u32 %r6, 1;
  {{ .param .b32 x; st.param.b32 [x], %r6; .param .b32 y; call.uni (y), thrice, (x); ld.param.b32 %r6, [y]; }}
  add.u32 %r6, %r6, 100;
  {{ .param .b32 x; st.param.b32 [x], %r6; .param .b32 y; call.uni (y), thrice, (x); ld.param.b32 %r6, [y]; }}
  st.global.u32 [%rd2], %r6; ret;"""),
  "shuffles": ("", """shfl.sync.bfly.b32 %r6, %r3, 5, 31, 0xffffffff; setp.lt.u32 %p1, %r3, 9;
  vote.sync.ballot.b32 %r7, %p1, 0xffffffff; shl.b32 %r7, %r7, 8; or.b32 %r6, %r6, %r7;
  st.global.u32 [%rd2], %r6; ret;"""),
  "blocks": ("", _LINEAR + " shl.b32 %r6, %r6, 10; shl.b32 %r7, %r7, 20; or.b32 %r6, %r6, %r7; or.b32 %r6, %r6, %r3; "
             "st.global.u32 [%rd3], %r6; ret;"),
  "counts": ("", "red.global.add.u32 [%rd1], %r1; ret;"),
  "returns": ("", """atom.global.add.u32 %r6, [%rd1], 1; mul.wide.u32 %rd3, %r6, 4; add.u64 %rd3, %rd1, %rd3;
  red.global.add.u32 [%rd3+64], 1; ret;"""),
  "many": ("", "setp.ne.u32 %p1, %r3, 0; @%p1 ret; mul.wide.u32 %rd3, %r4, 4; add.u64 %rd3, %rd1, %rd3; "
               "red.global.add.u32 [%rd3], 1; ret;"),
  "chain": ("", "ld.global.u32 %r6, [%rd2]; mad.lo.u32 %r6, %r6, %r1, %r2; st.global.u32 [%rd2], %r6; ret;"),
  "reads": ("", "ld.global.u32 %r6, [%rd1]; st.global.u32 [%rd1+2048], %r6; ret;"),
  "spins": ("", """mov.u32 %r6, 1; st.global.u32 [%rd1+8], %r6;
AGAIN: ld.volatile.global.u32 %r7, [%rd1]; setp.eq.u32 %p1, %r7, 0; @%p1 bra AGAIN;
  st.global.u32 [%rd1+4], %r7; ret;"""),
}
_COMMON: Final = """.const .align 4 .u32 squares[8] = {0, 1, 4, 9, 16, 25, 36, 49};
.func (.param .b32 y) thrice(.param .b32 x) { .reg .b32 %t<3>; ld.param.b32 %t1, [x]; mul.lo.u32 %t2, %t1, 3;
  st.param.b32 [y], %t2; ret; }
"""
_CLUSTERS: Final = """.visible .entry around(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<8>; .shared .align 4 .b8 part[4];
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, part; st.shared.u32 [%r2], %r1;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  mov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 1; mapa.shared::cluster.u32 %r4, %r2, %r3;
  ld.shared::cluster.u32 %r4, [%r4]; mov.u32 %r5, %nclusterid.x; mov.u32 %r6, %clusterid.x;
  mad.lo.u32 %r4, %r5, 100, %r4; mad.lo.u32 %r4, %r6, 10000, %r4;
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r4;
  barrier.cluster.arrive; barrier.cluster.wait; ret;
}
"""


def module(b: NvBench) -> bytes:
  """The PTX of all rungs for the card."""
  arch = b.arch
  text = f".version {'9.0' if arch.sm >= 100 else '8.0'}\n.target {arch.name}\n.address_size 64\n{_COMMON}"
  text += "".join(_HEAD.format(name=name, declared=declared, body=body.replace("{{", "{").replace("}}", "}"))
                  for name, (declared, body) in BODIES.items())
  if arch.bank0.clusters is not None: text += _CLUSTERS
  return text.encode()


def binary(b: NvBench) -> bytes:
  """What the runtime loads of it, made once."""
  known = b.kept.get("module")
  if known is None:
    make = b.assembler
    known = b.kept["module"] = make(module(b))
  return known


def kernel(b: NvBench, name: str) -> Any:
  """A kernel of the module on the runtime."""
  return b.runtime.load(binary(b), name)


def stored(b: NvBench, name: str, words: int, grid: Dim3 = (1, 1, 1), block: Dim3 = (32, 1, 1),
           numbers: tuple[int, int] = (0, 0), fill: int = 0xEEEE_EEEE, data: Any = None) -> list[int]:
  """Run a kernel to its end; the words of its buffer, which begins with `fill` everywhere, or with `data`."""
  runtime = b.runtime
  out: Any = np.full(words, fill, np.uint32) if data is None else np.array(data, np.uint32)
  buffer = runtime.alloc(out.nbytes)
  runtime.copyin(buffer, memoryview(out.view(np.uint8)))
  kernel(b, name)([buffer], list(numbers), grid, block)
  runtime.copyout(memoryview(out.view(np.uint8)), buffer)
  runtime.free(buffer)
  found: list[int] = out.tolist()
  return found
