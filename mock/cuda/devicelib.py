"""What the driver adds to modules that call it: the device's malloc and free, and the setting of conditions of graphs.

All of it is PTX, linked with a module that declares the functions and does not have them.
"""
from __future__ import annotations

import re
from typing import Final

HEAD: Final = ".version {version}\n.target {target}\n.address_size 64\n"
HEAP: Final = "__tinyhw_heap"  # (next free byte, end): 16 bytes that the driver fills
# A handle of a condition is the address of its value.
_CONDITION: Final = """
.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value) {
  .reg .b64 %at; .reg .b32 %value;
  ld.param.b64 %at, [handle]; ld.param.b32 %value, [value];
  st.volatile.global.b32 [%at], %value; ret; }
"""
# Blocks are powers of two from 32 bytes on, the first 16 bytes say which. What is freed is kept in a list for its size:
# its head has an address in 48 bits and a count in 16, so that a block that went and came back is another head.
_HEAP: Final = f"""
.visible .global .align 16 .b64 {HEAP}[2];
.global .align 8 .b64 __tinyhw_free[64];
.visible .func (.param .b64 out) malloc(.param .b64 size) {{
  .reg .b64 %size, %list, %head, %block, %next, %count, %seen, %end, %heap, %wide;
  .reg .b32 %class, %left; .reg .pred %p;
  ld.param.b64 %size, [size];
  setp.eq.u64 %p, %size, 0; @%p bra none;
  setp.gt.u64 %p, %size, 0x4000000000; @%p bra none;
  add.u64 %size, %size, 15; clz.b64 %left, %size; mov.u32 %class, 64; sub.u32 %class, %class, %left;
  max.u32 %class, %class, 5;
  mov.u64 %list, __tinyhw_free; mul.wide.u32 %wide, %class, 8; add.u64 %list, %list, %wide;
again:
  ld.volatile.global.b64 %head, [%list]; and.b64 %block, %head, 0xffffffffffff;
  setp.eq.u64 %p, %block, 0; @%p bra fresh;
  ld.volatile.global.b64 %next, [%block+8]; and.b64 %count, %head, 0xffff000000000000;
  or.b64 %next, %next, %count;
  atom.global.cas.b64 %seen, [%list], %head, %next;
  setp.ne.u64 %p, %seen, %head; @%p bra again;
  bra made;
fresh:
  mov.u64 %heap, {HEAP}; mov.u64 %wide, 1; shl.b64 %wide, %wide, %class;
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
  mov.u64 %list, __tinyhw_free; mul.wide.u32 %wide, %class, 8; add.u64 %list, %list, %wide;
again:
  ld.volatile.global.b64 %head, [%list]; and.b64 %next, %head, 0xffffffffffff;
  st.volatile.global.b64 [%block+8], %next;
  and.b64 %count, %head, 0xffff000000000000; add.u64 %count, %count, 0x1000000000000; or.b64 %new, %block, %count;
  atom.global.cas.b64 %seen, [%list], %head, %new;
  setp.ne.u64 %p, %seen, %head; @%p bra again;
done: ret; }}
"""


def _wanted(text: str, name: str) -> bool:
  """Whether a module declares a function without having it."""
  found = [m.end() for m in re.finditer(rf"\.func\s*(?:\([^)]*\)\s*)?{name}\b", text)]
  return bool(found) and all(";" in text[at:at + 4096].partition("{")[0] for at in found)


def completed(text: str) -> str:
  """A module's text with what it asks of the driver."""
  parts = []
  if "cudaGraphSetConditional" in text and _wanted(text, "cudaGraphSetConditional"): parts.append(_CONDITION)
  if "malloc" in text and _wanted(text, "malloc") or "free" in text and _wanted(text, "free"): parts.append(_HEAP)
  if not parts: return text
  from tinyhw.emulator.ptx.merge import linked
  version, target = (text.partition(f".{word}")[2].split()[0].rstrip(",") for word in ("version", "target"))
  return linked([("module", text), ("driver", HEAD.format(version=version, target=target) + "".join(parts))])
