"""What the driver adds to modules that call it: the device's malloc and free, launches by kernels, the setting of
conditions of graphs, and where a grid's blocks meet.

All of it is PTX, linked with a module that declares the functions and does not have them.
"""
from __future__ import annotations

import re
from typing import Final

HEAD: Final = ".version {version}\n.target {target}\n.address_size 64\n"
HEAP: Final = "__tinyhw_heap"  # the address of the context's heap, which begins with HEAP_HEAD bytes
HEAP_HEAD: Final = 16 + 64 * 8  # (next free byte, end), lists of what was freed by its class
LAUNCHES: Final = "__tinyhw_launches"  # (next free byte, end, how many were launched, bytes of a record)
# A handle of a condition is the address of its value.
_CONDITION: Final = """
.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value) {
  .reg .b64 %at; .reg .b32 %value;
  ld.param.b64 %at, [handle]; ld.param.b32 %value, [value];
  st.volatile.global.b32 [%at], %value; ret; }
"""
# The handle of a grid is the address of its workspace, 0 where it has none. Its second dword is changed by 2**31 in all
# each time that all blocks have come, as cooperative_groups' headers have it: so both may be used.
_GROUPS: Final = {
  "cudaCGGetIntrinsicHandle": """
.visible .func (.param .b64 out) cudaCGGetIntrinsicHandle(.param .b32 scope) {
  .reg .b32 %scope, %high, %low; .reg .b64 %at; .reg .pred %p;
  ld.param.b32 %scope, [scope]; mov.u32 %high, %envreg1; mov.u32 %low, %envreg2; mov.b64 %at, {%low, %high};
  setp.eq.u32 %p, %scope, 1; selp.b64 %at, %at, 0, %p; st.param.b64 [out], %at; ret; }
""",
  "cudaCGSynchronize": """
.visible .func (.param .b32 out) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) {
  .reg .b32 %x, %y, %z, %mine, %then, %now, %code; .reg .b64 %at; .reg .pred %p;
  ld.param.b64 %at, [handle]; mov.u32 %code, 1;
  setp.eq.u64 %p, %at, 0; @%p bra done;
  bar.sync 0;
  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z; or.b32 %x, %x, %y; or.b32 %x, %x, %z;
  setp.ne.u32 %p, %x, 0; @%p bra all;
  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z; or.b32 %x, %x, %y; or.b32 %x, %x, %z;
  setp.eq.u32 %p, %x, 0;
  mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %nctaid.z; mul.lo.u32 %x, %x, %y; mul.lo.u32 %x, %x, %z;
  sub.u32 %x, 0x80000001, %x; selp.b32 %mine, %x, 1, %p;
  membar.gl; atom.global.add.u32 %then, [%at+4], %mine;
wait:
  ld.volatile.global.u32 %now, [%at+4]; xor.b32 %now, %now, %then; setp.ge.s32 %p, %now, 0; @%p bra wait;
  membar.gl;
all:
  bar.sync 0; mov.u32 %code, 0;
done: st.param.b32 [out], %code; ret; }
"""}
# Blocks are powers of two from 32 bytes on, the first 16 bytes say which. What is freed is kept in a list for its size:
# its head has an address in 48 bits and a count in 16, so that a block that went and came back is another head.
_HEAP: Final = f"""
.visible .global .align 8 .b64 {HEAP};
.visible .func (.param .b64 out) malloc(.param .b64 size) {{
  .reg .b64 %size, %list, %head, %block, %next, %count, %seen, %end, %heap, %wide;
  .reg .b32 %class, %left; .reg .pred %p;
  ld.param.b64 %size, [size];
  setp.eq.u64 %p, %size, 0; @%p bra none;
  setp.gt.u64 %p, %size, 0x4000000000; @%p bra none;
  add.u64 %size, %size, 15; clz.b64 %left, %size; mov.u32 %class, 64; sub.u32 %class, %class, %left;
  max.u32 %class, %class, 5;
  mov.u64 %heap, {HEAP}; ld.global.b64 %heap, [%heap];
  mul.wide.u32 %wide, %class, 8; add.u64 %list, %heap, %wide; add.u64 %list, %list, 16;
again:
  ld.volatile.global.b64 %head, [%list]; and.b64 %block, %head, 0xffffffffffff;
  setp.eq.u64 %p, %block, 0; @%p bra fresh;
  ld.volatile.global.b64 %next, [%block+8]; and.b64 %count, %head, 0xffff000000000000;
  or.b64 %next, %next, %count;
  atom.global.cas.b64 %seen, [%list], %head, %next;
  setp.ne.u64 %p, %seen, %head; @%p bra again;
  bra made;
fresh:
  mov.u64 %wide, 1; shl.b64 %wide, %wide, %class;
  ld.volatile.global.b64 %end, [%heap+8];
  ld.volatile.global.b64 %block, [%heap]; add.u64 %next, %block, %wide;
  setp.gt.u64 %p, %next, %end; @%p bra none;
  atom.global.add.u64 %block, [%heap], %wide; add.u64 %next, %block, %wide;
  setp.gt.u64 %p, %next, %end; @%p bra none;
made:
  st.global.b32 [%block], %class; add.u64 %block, %block, 16; st.param.b64 [out], %block; ret;
none:
  mov.u64 %block, 0; st.param.b64 [out], %block; ret; }}
.visible .func free(.param .b64 at) {{
  .reg .b64 %block, %list, %head, %next, %count, %new, %seen, %wide; .reg .b32 %class; .reg .pred %p;
  ld.param.b64 %block, [at];
  setp.eq.u64 %p, %block, 0; @%p bra done;
  sub.u64 %block, %block, 16; ld.global.b32 %class, [%block];
  mov.u64 %list, {HEAP}; ld.global.b64 %list, [%list];
  mul.wide.u32 %wide, %class, 8; add.u64 %list, %list, %wide; add.u64 %list, %list, 16;
again:
  ld.volatile.global.b64 %head, [%list]; and.b64 %next, %head, 0xffffffffffff;
  st.volatile.global.b64 [%block+8], %next;
  and.b64 %count, %head, 0xffff000000000000; add.u64 %count, %count, 0x1000000000000; or.b64 %new, %block, %count;
  atom.global.cas.b64 %seen, [%list], %head, %new;
  setp.ne.u64 %p, %seen, %head; @%p bra again;
done: ret; }}
"""


# A record: function, three sizes of the grid, three of a block, bytes of shared memory, its turn (from 1 on; 0: not
# launched), the stream; parameters behind RECORD bytes. Of a copy or fill the function is COPY or FILL.
RECORD: Final = 64
COPY, FILL = 1, 2
TAIL: Final = 3  # cudaStreamTailLaunch
# With what a record begins: the function's name is the runtime's for the device (`cuda_device_runtime_api.h`).
_RUNTIME: Final = {
  "GetParameterBufferV2": f"""
.visible .func (.param .b64 out) __cudaCDP2GetParameterBufferV2(.param .b64 of, .param .align 4 .b8 grid[12],
    .param .align 4 .b8 block[12], .param .b32 shared) {{
  .reg .b64 %queue, %at, %end, %size; .reg .b32 %x; .reg .pred %p;
  mov.u64 %queue, {LAUNCHES}; ld.global.b64 %size, [%queue+24]; ld.global.b64 %end, [%queue+8];
  atom.global.add.u64 %at, [%queue], %size;
  setp.ge.u64 %p, %at, %end; @%p bra none;
  ld.param.b64 %size, [of]; st.global.b64 [%at], %size;
  ld.param.b32 %x, [grid]; st.global.b32 [%at+8], %x; ld.param.b32 %x, [grid+4]; st.global.b32 [%at+12], %x;
  ld.param.b32 %x, [grid+8]; st.global.b32 [%at+16], %x; ld.param.b32 %x, [block]; st.global.b32 [%at+20], %x;
  ld.param.b32 %x, [block+4]; st.global.b32 [%at+24], %x; ld.param.b32 %x, [block+8]; st.global.b32 [%at+28], %x;
  ld.param.b32 %x, [shared]; st.global.b32 [%at+32], %x; mov.b32 %x, 0; st.global.b32 [%at+36], %x;
  add.u64 %at, %at, {RECORD}; st.param.b64 [out], %at; ret;
none:
  mov.u64 %at, 0; st.param.b64 [out], %at; ret; }}
""",
  "LaunchDeviceV2": f"""
.visible .func (.param .b32 out) __cudaCDP2LaunchDeviceV2(.param .b64 at, .param .b64 stream) {{
  .reg .b64 %queue, %at, %stream; .reg .b32 %x; .reg .pred %p;
  ld.param.b64 %at, [at]; setp.eq.u64 %p, %at, 0; @%p bra none;
  ld.param.b64 %stream, [stream]; st.global.b64 [%at-24], %stream;
  mov.u64 %queue, {LAUNCHES}; atom.global.add.u32 %x, [%queue+16], 1; add.u32 %x, %x, 1;
  st.global.b32 [%at-28], %x; mov.b32 %x, 0; st.param.b32 [out], %x; ret;
none:
  mov.b32 %x, 69; st.param.b32 [out], %x; ret; }}
""",
  **{name: f"""
.visible .func (.param .b32 out) __cudaCDP2{name}(.param .b64 to, {second}, .param .b64 count{more},
    .param .b64 stream) {{
  .reg .b64 %queue, %at, %end, %size, %x; .reg .b32 %turn; .reg .pred %p;
  mov.u64 %queue, {LAUNCHES}; ld.global.b64 %size, [%queue+24]; ld.global.b64 %end, [%queue+8];
  atom.global.add.u64 %at, [%queue], %size;
  setp.ge.u64 %p, %at, %end; @%p bra none;
  mov.u64 %x, {kind}; st.global.b64 [%at], %x; ld.param.b64 %x, [to]; st.global.b64 [%at+8], %x;
  ld.param.{'b64' if kind == COPY else 's32'} {'%x, [second]' if kind == COPY else '%turn, [second]'};
  {'' if kind == COPY else 'cvt.u64.u32 %x, %turn;'} st.global.b64 [%at+16], %x;
  ld.param.b64 %x, [count]; st.global.b64 [%at+24], %x; ld.param.b64 %x, [stream]; st.global.b64 [%at+40], %x;
  atom.global.add.u32 %turn, [%queue+16], 1; add.u32 %turn, %turn, 1; st.global.b32 [%at+36], %turn;
  mov.b32 %turn, 0; st.param.b32 [out], %turn; ret;
none:
  mov.b32 %turn, 69; st.param.b32 [out], %turn; ret; }}
""" for name, kind, second, more in (("MemcpyAsync", COPY, ".param .b64 second", ", .param .b32 kind"),
                                     ("MemsetAsync", FILL, ".param .b32 second", ""))},
  "StreamCreateWithFlags": f"""
.visible .func (.param .b32 out) __cudaCDP2StreamCreateWithFlags(.param .b64 at, .param .b32 flags) {{
  .reg .b64 %queue, %at, %new; .reg .b32 %x;
  ld.param.b64 %at, [at]; mov.u64 %queue, {LAUNCHES}; atom.global.add.u64 %new, [%queue+32], 1;
  add.u64 %new, %new, 16; st.b64 [%at], %new; mov.b32 %x, 0; st.param.b32 [out], %x; ret; }}
""",
  "StreamDestroy": """
.visible .func (.param .b32 out) __cudaCDP2StreamDestroy(.param .b64 stream) {
  .reg .b32 %x; mov.b32 %x, 0; st.param.b32 [out], %x; ret; }
""",
  **{name: f"""
.visible .func (.param .b32 out) __cudaCDP2{name}() {{ .reg .b32 %x; mov.b32 %x, 0; st.param.b32 [out], %x; ret; }}
""" for name in ("GetLastError", "PeekAtLastError")},
  "GetErrorString": """
.global .align 1 .b8 __tinyhw_no_error[9] = {110, 111, 32, 101, 114, 114, 111, 114, 0};
.visible .func (.param .b64 out) __cudaCDP2GetErrorString(.param .b32 code) {
  .reg .b64 %at; mov.u64 %at, __tinyhw_no_error; st.param.b64 [out], %at; ret; }
""",
  "Malloc": """
.visible .func (.param .b32 out) __cudaCDP2Malloc(.param .b64 at, .param .b64 size) {
  .reg .b64 %at, %x; .reg .b32 %code; .reg .pred %p;
  ld.param.b64 %x, [size];
  { .param .b64 wanted; .param .b64 found; st.param.b64 [wanted], %x; call (found), malloc, (wanted);
    ld.param.b64 %x, [found]; }
  ld.param.b64 %at, [at]; st.b64 [%at], %x; setp.eq.u64 %p, %x, 0; selp.b32 %code, 2, 0, %p;
  st.param.b32 [out], %code; ret; }
""",
  "Free": """
.visible .func (.param .b32 out) __cudaCDP2Free(.param .b64 at) {
  .reg .b64 %x; .reg .b32 %code;
  ld.param.b64 %x, [at];
  { .param .b64 old; st.param.b64 [old], %x; call free, (old); }
  mov.b32 %code, 0; st.param.b32 [out], %code; ret; }
"""}
_PREFIX: Final = "__cudaCDP2"
NAMES: Final = frozenset(_PREFIX + name for name in _RUNTIME) | {
  "malloc", "free", "cudaGraphSetConditional", *_GROUPS}


def _wanted(text: str, name: str) -> bool:
  """Whether a module declares a function without having it."""
  found = [m.end() for m in re.finditer(rf"\.func\s*(?:\([^)]*\)\s*)?{name}\b", text)]
  return bool(found) and all(";" in text[at:at + 4096].partition("{")[0] for at in found)


def runtime(text: str) -> bool:
  """Whether a module is of the runtime for the device itself: the mock has another one."""
  return any(f"{_PREFIX}{name}" in text and not _wanted(text, _PREFIX + name) for name in _RUNTIME)


def completed(text: str) -> str:
  """A module's text with what it asks of the driver."""
  parts = []
  if "cudaGraphSetConditional" in text and _wanted(text, "cudaGraphSetConditional"): parts.append(_CONDITION)
  parts += [of for name, of in _GROUPS.items() if name in text and _wanted(text, name)]
  launching = [name for name in _RUNTIME if _PREFIX + name in text and _wanted(text, _PREFIX + name)]
  if launching: parts.append(f".visible .global .align 16 .b64 {LAUNCHES}[5];\n")
  parts += [_RUNTIME[name] for name in launching]
  own = {"Malloc": "malloc", "Free": "free"}
  if any(name in text and _wanted(text, name) for name in own.values()) or own.keys() & launching:
    parts.insert(0, _HEAP)
  if not parts: return text
  from tinyhw.emulator.ptx.module.merge import linked
  version, target = (text.partition(f".{word}")[2].split()[0].rstrip(",") for word in ("version", "target"))
  return linked([("module", text), ("driver", HEAD.format(version=version, target=target) + "".join(parts))])
