"""SDMA packets: v6 (gfx11's and gfx12's copy engines) and v4 (gfx9's), from the kernel's sdma_v6_0_0_pkt_open.h and
vega10_sdma_pkt_open.h.

The header gives each field as dword offset, mask and shift. It names opcodes and sub-opcodes but not which packet has
which: CODES says so, by the vendor's names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import emit
from tinyhw.tools.gen.emit import FieldRow, PacketRow
from tinyhw.tools.gen.family import Family, corrected
from tinyhw.tools.gen.linux import AMD, LINUX
from tinyhw.tools.gen.sources import Sources, head

HEADER = f"{AMD}/amdgpu/sdma_v6_0_0_pkt_open.h"

# Packet: SDMA_OP_*, SDMA_SUBOP_* (None: zero, no name in the header), and fields that tell it from a sibling.
CODES: dict[str, tuple[str, str | None, dict[str, int]]] = {
  "COPY_LINEAR": ("COPY", "COPY_LINEAR", {"broadcast": 0}),
  "COPY_LINEAR_BC": ("COPY", "COPY_LINEAR_BC", {}),
  "COPY_DIRTY_PAGE": ("COPY", "COPY_DIRTY_PAGE", {}),
  "COPY_PHYSICAL_LINEAR": ("COPY", "COPY_LINEAR_PHY", {}),
  "COPY_BROADCAST_LINEAR": ("COPY", "COPY_LINEAR", {"broadcast": 1}),
  "COPY_LINEAR_SUBWIN": ("COPY", "COPY_LINEAR_SUB_WIND", {}),
  "COPY_LINEAR_SUBWIN_LARGE": ("COPY", "COPY_LINEAR_SUB_WIND_LARGE", {}),
  "COPY_LINEAR_SUBWIN_BC": ("COPY", "COPY_LINEAR_SUB_WIND_BC", {}),
  "COPY_TILED": ("COPY", "COPY_TILED", {"broadcast": 0}),
  "COPY_TILED_BC": ("COPY", "COPY_TILED_BC", {}),
  "COPY_L2T_BROADCAST": ("COPY", "COPY_TILED", {"broadcast": 1}),
  "COPY_T2T": ("COPY", "COPY_T2T_SUB_WIND", {}),
  "COPY_T2T_BC": ("COPY", "COPY_T2T_SUB_WIND_BC", {}),
  "COPY_TILED_SUBWIN": ("COPY", "COPY_TILED_SUB_WIND", {}),
  "COPY_TILED_SUBWIN_BC": ("COPY", "COPY_TILED_SUB_WIND_BC", {}),
  "COPY_STRUCT": ("COPY", "COPY_SOA", {}),
  "WRITE_UNTILED": ("WRITE", "WRITE_LINEAR", {}),
  "WRITE_TILED": ("WRITE", "WRITE_TILED", {}),
  "WRITE_TILED_BC": ("WRITE", "WRITE_TILED_BC", {}),
  "PTEPDE_COPY": ("PTEPDE", "PTEPDE_COPY", {}),
  "PTEPDE_COPY_BACKWARDS": ("PTEPDE", "PTEPDE_COPY_BACKWARDS", {}),
  "PTEPDE_RMW": ("PTEPDE", "PTEPDE_RMW", {}),
  "WRITE_INCR": ("PTEPDE", "PTEPDE_GEN", {}),
  "INDIRECT": ("INDIRECT", None, {}),
  "SEMAPHORE": ("SEM", None, {}),
  "MEM_INCR": ("SEM", "MEM_INCR", {}),
  "VM_INVALIDATION": ("GPUVM_INV", "VM_INVALIDATION", {}),
  "FENCE": ("FENCE", None, {}),
  "SRBM_WRITE": ("SRBM_WRITE", None, {}),
  "PRE_EXE": ("PRE_EXE", None, {}),
  "COND_EXE": ("COND_EXE", None, {}),
  "CONSTANT_FILL": ("CONST_FILL", None, {}),
  "DATA_FILL_MULTI": ("CONST_FILL", "DATA_FILL_MULTI", {}),
  "POLL_REGMEM": ("POLL_REGMEM", None, {}),
  "POLL_REG_WRITE_MEM": ("POLL_REGMEM", "POLL_REG_WRITE_MEM", {}),
  "POLL_DBIT_WRITE_MEM": ("POLL_REGMEM", "POLL_DBIT_WRITE_MEM", {}),
  "POLL_MEM_VERIFY": ("POLL_REGMEM", "POLL_MEM_VERIFY", {}),
  "ATOMIC": ("ATOMIC", None, {}),
  "TIMESTAMP_SET": ("TIMESTAMP", "TIMESTAMP_SET", {}),
  "TIMESTAMP_GET": ("TIMESTAMP", "TIMESTAMP_GET", {}),
  "TIMESTAMP_GET_GLOBAL": ("TIMESTAMP", "TIMESTAMP_GET_GLOBAL", {}),
  "TRAP": ("TRAP", None, {}),
  "DUMMY_TRAP": ("DUMMY_TRAP", None, {}),
  "GPUVM_INV": ("GPUVM_INV", None, {}),
  "GCR_REQ": ("GCR_REQ", None, {}),
  "NOP": ("NOP", None, {}),
}
# What user space has of a packet, beside the kernel's own form: (name, packet, sub-opcode, source).
OF_USERS = (("SDMA_PKT_GCR_USER", "SDMA_PKT_GCR_REQ", 1,
             "SDMA_SUBOP_USER_GCR of ROCr 6.1"),)
# Packets whose `data0` dword stands for as many dwords as their count field says (count + 1 of data; count of padding).
PAYLOADS = {"WRITE_UNTILED": 1, "WRITE_TILED": 1, "WRITE_TILED_BC": 1, "NOP": 0}
FIELD = re.compile(
  r"/\*define for (\w+) field\*/\s*"
  r"#define \S+_offset\s+(\d+)\s*#define \S+_mask\s+(0x[0-9A-Fa-f]+)\s*#define \S+_shift\s+(\d+)\s"
)
SPLIT = re.compile(r"(\w+)_(\d+)_(\d+)$")
BASE = '''
class Sdma(Packet):
  """Base of the packets. OP and SUB_OP stand in every packet's first byte and second byte.

  PAYLOAD_BIAS: the payload has `count` + PAYLOAD_BIAS dwords.
  """
  OP: ClassVar[int] = -1
  SUB_OP: ClassVar[int] = -1
  PAYLOAD_BIAS: ClassVar[int] = 0
'''


def join(rows: list[FieldRow]) -> list[FieldRow]:
  """Make one field of parts X_31_0 and X_63_32 whose bits also follow each other in the packet."""
  out: list[FieldRow] = []
  for row in sorted(rows, key=lambda r: r.start):
    part, last = SPLIT.match(row.name), SPLIT.match(out[-1].name) if out else None
    if part and last and part[1] == last[1] and int(part[3]) == int(last[2]) + 1:
      before = out[-1]
      contiguous = before.end + 1 == row.start
      if contiguous:
        name = f"{part[1]}_{part[2]}_{last[3]}"
        out[-1] = FieldRow(name, before.dword, before.hi + row.hi - row.lo + 1, before.lo)
        continue
    out.append(row)
  parts = [m[1] for r in out if (m := SPLIT.match(r.name))]
  final = []
  for row in out:
    part = SPLIT.match(row.name)
    whole = part is not None and parts.count(part[1]) == 1 and int(part[2]) - int(part[3]) == row.hi - row.lo
    # A field that begins above bit 0 of its value (X_63_2) stores the value without its low bits.
    final.append(replace(row, name=part[1], shift=int(part[3])) if part and whole else row)
  return final


def sections(text: str) -> list[tuple[str, list[FieldRow]]]:
  found = []
  for block in re.split(r"\*\* Definitions for ", text)[1:]:
    name = block.split()[0]
    rows = []
    for field, offset, mask_text, shift in FIELD.findall(block):
      mask, lo = int(mask_text, 0), int(shift)
      if mask & (mask + 1):
        raise LayoutError(f"mask {mask:#x} has holes", where=f"{name}.{field}")
      if not field.startswith("reserved"):
        rows.append(FieldRow(field, int(offset), lo + mask.bit_length() - 1, lo))
    names = [r.name for r in rows]
    rows = [replace(r, name=f"{r.name}_dw{r.dword}") if names.count(r.name) > 1 else r for r in rows]
    found.append((name, rows))
  return found


def packet_row(name: str, rows: list[FieldRow], constants: dict[str, int]) -> PacketRow:
  short = name.removeprefix("SDMA_PKT_")
  payload = short in PAYLOADS
  if payload:
    rows = [r for r in rows if r.name != "data0"]
  dwords = max(r.end for r in rows) // 32 + 1
  if short not in CODES:
    return PacketRow(name, dwords, join(rows), f"{name}, {dwords} dwords.", base="Packet")
  op_name, sub_name, fixed = CODES[short]
  op, sub = constants[f"SDMA_OP_{op_name}"], constants[f"SDMA_SUBOP_{sub_name}"] if sub_name else 0
  default = {"op": op, "sub_op": sub, **fixed}
  rows = [replace(r, default=default.get(r.name, r.default)) for r in rows]
  doc = (
    f"{name}: op {op_name}" + (f", sub-op {sub_name}" if sub_name else "") + f", {dwords} dword{'s' * (dwords > 1)}"
  )
  values = {"OP": op, "SUB_OP": sub}
  if payload:
    values["PAYLOAD_BIAS"] = PAYLOADS[short]
  return PacketRow(
    name, dwords, join(rows), doc + (", then the payload." if payload else "."), values, payload=payload, base="Sdma"
  )


@dataclass(frozen=True)
class Generation:
  """A generation's packets, and the one whose declarations it takes where they are the same letter for letter."""

  name: str
  header: str
  about: str
  before: Generation | None = None

  @property
  def module(self) -> str: return f"sdma_{self.name}"

  @property
  def needs(self) -> tuple[str, ...]: return (self.header,)

  def text(self, sources: Sources) -> str:
    return corrected(sources.find(self.header).text, self.module, self.header.rpartition("/")[2])

  def rows(self, sources: Sources) -> list[PacketRow]:
    text, found = self.text(sources), list[PacketRow]()
    for name, rows in sections(text):
      found.append(row := packet_row(name, rows, _constants(text)))
      for other, of, sub, source in OF_USERS if self.before is None else ():
        if of != name: continue
        fields = [replace(r, default=sub) if r.name == "sub_op" else r for r in row.fields]
        found.append(replace(row, name=other, fields=fields, constants={**row.constants, "SUB_OP": sub},
                             doc=f"{name} as user space sends it, sub-op {sub}: {source}."))
    return found

  def parts(self, sources: Sources) -> dict[str, str]:
    """The text of each declaration, by its name."""
    return {"Sdma": BASE.lstrip("\n"), **{row.name: emit.packet(row) for row in self.rows(sources)}}

  def generate(self, sources: Sources) -> str:
    text, rows = self.text(sources), self.rows(sources)
    before = [] if self.before is None else [(self.before.module, self.before.parts(sources))]
    earlier, own = emit.shared(self.parts(sources), before)
    gcr = re.findall(r"^#define (SDMA_GCR_\w+)\s+\((1 << \d+)\)", text, re.M)
    out = [
      head(f"SDMA {self.name} packets ({self.about}'s copy engines): one class a packet, its header dword included, "
           "fields by vendor's name.", [(LINUX, sources.find(self.header))],
           f"tinyhw gen {self.module if self.before else 'sdma'}",
           ["A field X stands for the vendor's parts X_31_0 and X_63_32. Fields under 20 bits default to 0, `op` and",
            "`sub_op` to the packet's own.", *([emit.IMPORTED] if earlier else [])]),
      *emit.imports(own, earlier), "",
      *(f"{name} = {value}" for name, value in _constants(text).items())]
    if gcr:
      out += ["", "# Bits of SDMA_PKT_GCR_REQ.gcr_control.", *(f"{n} = {v}" for n, v in gcr)]
      out += [f"{n}_SHIFT = {v}"
              for n, v in re.findall(r"^#define (SDMA_GCR_\w+)\(x\)\s+\(\(\(x\) & \w+\) << (\d+)\)", text, re.M)]
    out += ["", *("\n" + p for p in own)]
    names = [row.name for row in rows if row.base == "Sdma"]
    out += ["", "PACKETS: tuple[type[Sdma], ...] = (", *emit.wrapped(names), ")"]
    return "\n".join(out) + "\n"


def _constants(text: str) -> dict[str, int]:
  found = re.findall(r"^#define (SDMA_(?:SUB)?OP_\w+|HEADER_\w+)\s+(\w+)\s*$", text, re.M)
  return {n: int(v, 0) for n, v in found}


V6 = Generation("v6", HEADER, "gfx11")
V4 = Generation("v4", f"{AMD}/amdgpu/vega10_sdma_pkt_open.h", "gfx9", V6)
FAMILIES = {
  "sdma": Family("sdma", V6.module, "SDMA v6 packets of gfx11's copy engines", V6.needs, V6.generate),
  V4.module: Family(V4.module, V4.module, "SDMA v4 packets of gfx9's copy engines", V4.needs, V4.generate)}
