"""PM4 packets of the compute micro engine (MEC) of gfx9, gfx11 and gfx12, from AMD's PAL headers, held against the
kernel's nvd.h and soc15d.h.

PAL declares a packet as one union a dword ("ordinal"), whose members are the readings of that dword. A dword with one
reading gives its bit fields. Where several readings share a dword (a register number or an address, say) the
declaration has one field over all their bits, named in UNIONS, and each reading is a property under the vendor's name.
A low and a high dword of one value (X_lo and X_hi, or X and X_hi) are one field X.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import emit
from tinyhw.tools.gen.emit import FieldRow, PacketRow, View
from tinyhw.tools.gen.family import Family, corrected
from tinyhw.tools.gen.linux import AMD, LINUX, PAL, PAL_2024, PAL_2024_FOLDER
from tinyhw.tools.gen.sources import Origin, Sources, head

PACKETS = "src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_f32_mec_pm4_packets.h"  # named where a declaration is wrong
NVD = f"{AMD}/amdgpu/nvd.h"
SOC15D = f"{AMD}/amdgpu/soc15d.h"

SUFFIX = re.compile(r"__((?:GFX|NV|HAS|CORE)[A-Z0-9_]*)$")

# Dwords (the vendor's ordinals, header = 1) that have several readings: the name of the field that covers them.
UNIONS = {
  "COPY_DATA": {3: "src_addr_lo", 4: "src_addr_hi", 5: "dst_addr_lo", 6: "dst_addr_hi"},
  "RELEASE_MEM": {4: "address_lo", 6: "data_lo", 7: "data_hi"},
  "WAIT_REG_MEM": {3: "mem_poll_addr_lo", 4: "mem_poll_addr_hi"},
  "WAIT_REG_MEM64": {3: "mem_poll_addr_lo", 4: "mem_poll_addr_hi"},
  "WRITE_DATA": {3: "dst_mem_addr_lo", 4: "dst_mem_addr_hi"},
}
# Packets whose header count covers dwords beyond the declared ones: register values, data, padding.
PAYLOADS = {
  "NOP",
  "SET_CONFIG_REG",
  "SET_QUEUE_REG",
  "SET_SH_REG",
  "SET_SH_REG_INDEX",
  "SET_UCONFIG_REG",
  "WRITE_DATA",
  "SET_SH_REG_PAIRS_PACKED",
  "SET_SH_REG_PAIRS_PACKED_N",
}
# PAL declares address dwords that only the sampling events have. The kernel's other events end after one dword
# (PACKET3(PACKET3_EVENT_WRITE, 0) in gfx_v11_0.c): the packet is that dword, and a subclass has the rest.
SHORT_FORM = {"EVENT_WRITE": (1, "EVENT_WRITE_ADDRESS")}
EVENT_FIELDS = {
  ("EVENT_WRITE", "event_type"): "VGT_EVENT_TYPE",
  ("RELEASE_MEM", "event_type"): "VGT_EVENT_TYPE",
  ("ATOMIC_MEM", "atomic"): "TC_OP",
  ("ATOMIC_GDS", "atom_op"): None,
}

BASE = '''
class Pm4(Packet):
  """Base of the packets. OP is the type-3 opcode; the header is made and read by tinyhw.wire.pm4."""
  OP: ClassVar[int] = -1
'''
TOKEN = re.compile(r"\w+|[{};:=]")


@dataclass(frozen=True)
class Bits:
  """A bit field of PAL's: `path` leads to it inside its dword's union."""

  name: str
  enum: str | None
  hi: int
  lo: int
  path: str = ""


@dataclass
class Reading:
  """One reading of a dword: its bit fields."""

  fields: list[Bits] = field(default_factory=list)


class Parser:
  """Recursive descent over PAL's struct declarations."""

  def __init__(self, text: str, layouts: frozenset[str]) -> None:
    self.layouts = layouts
    self.tokens: list[str] = TOKEN.findall(re.sub(r"//[^\n]*", "", text))
    self.at = 0

  def take(self, *expected: str) -> str:
    token = self.tokens[self.at]
    if expected and token not in expected:
      raise LayoutError(f"expected {expected}, found {token!r}", where=PACKETS)
    self.at += 1
    return token

  def peek(self) -> str:
    return self.tokens[self.at]

  def packet(self) -> dict[int, list[Reading]]:
    """After `struct NAME`: ordinal -> its readings."""
    ordinals = {}
    self.take("{")
    while self.peek() != "}":
      self.take("union")
      readings = self.ordinal()
      ordinals[int(self.take().removeprefix("ordinal"))] = readings
      self.take(";")
    self.take("}")
    return ordinals

  def ordinal(self) -> list[Reading]:
    readings = []
    self.take("{")
    while self.peek() != "}":
      if self.peek() == "union":
        self.take()
        reading = self.bitfields()
        union = self.take()
        self.take(";")
        reading.fields = [replace(row, path=f"{union}.{row.path}") for row in reading.fields]
        if reading.fields:
          readings.append(reading)
      else:
        kind, name = self.take(), self.take()
        self.take(";")
        if kind == "uint32_t" and name != "u32All" and not name.startswith("reserved"):
          readings.append(Reading([Bits(name, None, 31, 0)]))
    self.take("}")
    return readings

  def bitfields(self) -> Reading:
    """A union of structs: the common one (unnamed) and those of generations; one has the first and its own."""
    reading = Reading()
    self.take("{")
    while self.peek() != "}":
      self.take("struct")
      self.take("{")
      rows, lo = [], 0
      while self.peek() != "}":
        kind, name = self.take(), self.take()
        self.take(":")
        width = int(self.take())
        self.take(";")
        if not name.startswith("reserved"):
          rows.append(Bits(name, None if kind == "uint32_t" else kind, lo + width - 1, lo))
        lo += width
      if lo != 32:
        raise LayoutError(f"a struct of {lo} bits ({rows})", where=PACKETS)
      self.take("}")
      generation = "" if self.peek() == ";" else self.take()
      self.take(";")
      if not generation or generation in self.layouts:
        reading.fields += [replace(row, path=f"{generation}." if generation else "") for row in rows]
    self.take("}")
    return reading

# Bits above a field of which it is known that the chip has nothing for them. CP_COHER_SIZE_HI has 8 bits (GC 9.4.3's
# headers; nvd.h's words on ACQUIRE_MEM), and the kernel's own flushes write more into it: 0xffffff (emit_mem_sync in
# gfx_v9_4_3.c, gfx_v11_0.c, gfx_v12_0.c). tinygrad writes all 32, on cards of each.
UNUSED = frozenset({("ACQUIRE_MEM", "coher_size")})


def packet_row(name: str, ordinals: dict[int, list[Reading]], opcode: int, size: int | None = None) -> PacketRow:
  """`size`: its dwords with the header, where the struct has more than the generation."""
  rows: list[FieldRow] = []
  views: list[tuple[str, int, int, int]] = []  # name, dword, hi, lo
  for ordinal, readings in sorted(ordinals.items()):
    dword = ordinal - 2
    if dword < 0 or not readings:
      continue
    if len(readings) == 1:
      for f in readings[0].fields:
        enum = EVENT_FIELDS.get((name, f.name), f.enum)
        rows.append(FieldRow(f.name, dword, f.hi, f.lo, _shift(f.name, f.hi, f.lo), enum))
      continue
    if ordinal not in UNIONS.get(name, {}):
      raise LayoutError(f"dword {ordinal} has several readings and no name", where=name)
    every = [f for reading in readings for f in reading.fields]
    lo, hi = min(f.lo for f in every), max(f.hi for f in every)
    merged = UNIONS[name][ordinal]
    shift = lo if merged.endswith("_lo") else 0
    rows.append(FieldRow(merged, dword, hi, lo, shift))
    views += [(f.name, dword, f.hi, f.lo) for f in every]
  rows, homes = combine(rows)
  for row in [r for r in rows if (name, r.name) in UNUSED]:
    dword, last = divmod(row.end, 32)
    rows.insert(rows.index(row) + 1, FieldRow(f"{row.name}_unused", dword, 31, last + 1, unused=True))
  made = []
  for view_name, dword, hi, lo in views:
    home = next(r for r in rows if r.name == homes[dword])
    if home.name == view_name:
      continue
    base = 32 * (dword - home.dword) - home.lo + home.shift
    made.append(
      View(view_name, emit.identifier(home.name), base + hi, base + lo, in_place="addr" in view_name and lo > 0)
    )
  dwords = (size or max(ordinals)) - 1
  doc = _doc(name, opcode, dwords)
  payload = name in PAYLOADS
  if payload:
    doc = f"{doc[:-1]}, then the payload."
  return PacketRow(name, dwords, rows, doc, {"OP": opcode}, made, payload, base="Pm4")


def _shift(name: str, hi: int, lo: int) -> int:
  """A low address part that does not begin at bit 0 stands in place: its zero bits are not stored."""
  return lo if lo and hi == 31 and name.endswith("_lo") else 0


def combine(rows: list[FieldRow]) -> tuple[list[FieldRow], dict[int, str]]:
  """Join X_lo or X with the X_hi of the next dword. Returns the rows, and which field covers each dword's last bits."""
  out: list[FieldRow] = []
  homes: dict[int, str] = {}
  for row in rows:
    stem = row.name.removesuffix("_hi")
    low = out[-1] if out else None
    if (
      low is not None
      and stem != row.name
      and row.lo == 0
      and low.name in (stem, stem + "_lo")
      and low.hi == 31
      and low.dword == row.dword - 1
    ):
      out[-1] = FieldRow(stem, low.dword, 32 + row.hi, low.lo, low.shift)
      homes[low.dword] = homes[row.dword] = stem
    else:
      out.append(row)
      homes[row.dword] = row.name
  return out, homes


def enum_members(body: str, module_name: str, suffixes: frozenset[str]) -> dict[str, int]:
  """Members of one of PAL's enums, without the field and packet prefix and the generation suffix. `suffixes`: those
  that the generation has."""
  members = {}
  for name, value in re.findall(r"(\w+)\s*=\s*(\w+)", body):
    generation = SUFFIX.search(name)
    if generation and generation[1] not in suffixes:
      continue
    short = SUFFIX.sub("", name).split(f"__{module_name}__")[-1]
    members[short] = int(value, 0)
  return members


def opcodes(text: str, suffixes: frozenset[str]) -> dict[str, int]:
  """Opcode by name, without PAL's generation suffix; names of other generations only are left out."""
  plain, suffixed = {}, {}
  for name, value in re.findall(r"^\s*IT_(\w+?)\s*=\s*(0x[0-9a-fA-F]+)", text, re.M):
    generation = SUFFIX.search(name)
    if generation is None:
      plain[name] = int(value, 0)
    elif generation[1] in suffixes:
      suffixed[SUFFIX.sub("", name)] = int(value, 0)
  return plain | suffixed


def check_against_kernel(ours: dict[str, int], nvd: str, declared: set[str]) -> tuple[int, list[str]]:
  """How many opcodes the kernel gives like PAL, and the names on which they differ (no declared packet may be one)."""
  theirs = {n: int(v, 0) for n, v in re.findall(r"^#define\s+PACKET3_(\w+)\s+(0x[0-9A-F]{2})\s*$", nvd, re.M)}
  common = ours.keys() & theirs.keys()
  differ = sorted(name for name in common if ours[name] != theirs[name])
  for name in declared & set(differ):
    raise LayoutError(f"opcode {ours[name]:#x} in PAL, {theirs[name]:#x} in the kernel", where=name)
  return len(common) - len(differ), [f"{n} ({ours[n]:#x} and {theirs[n]:#x})" for n in differ]


def fields_against_kernel(rows: list[PacketRow], nvd: str) -> int:
  """Each field that nvd.h also has, by packet and name, must begin at the same bit. Returns how many do."""
  agreed = 0
  for row in rows:
    shifts = re.findall(rf"define\s+(?:PACKET3_)?{row.name}_(\w+?)(?:\(x\))?\s+\(\(?[x1]\)?\s*<<\s*(\d+)\)", nvd)
    for name, shift in shifts:
      found = [f for f in row.fields if f.name.upper() == name]
      if found and found[0].lo != int(shift):
        raise LayoutError(f"bit {found[0].lo} in PAL, {shift} in the kernel", where=f"{row.name}.{name}")
      agreed += bool(found)
  return agreed


def gcr_fields(text: str, union: str) -> list[tuple[str, int, int]]:
  """Fields (name, hi, lo) of one of PAL's GCR_CNTL unions, in the kernel's spelling (gl2Inv -> GL2_INV)."""
  body = re.search(rf"union {union}\s*{{\s*struct\s*{{(.*?)}}", text, re.S)
  if body is None:
    raise LayoutError(f"no {union}", where="PAL's CmdUtil")
  fields, lo = [], 0
  for name, width in re.findall(r"uint32\s+(\w+)\s*:\s*(\d+);", body[1]):
    if not name.startswith("reserved"):
      spelling = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.removeprefix("gfx11").removeprefix("Gfx11")).upper()
      fields.append((spelling, lo + int(width) - 1, lo))
    lo += int(width)
  return fields


def kernel_gcr(nvd: str, prefix: str) -> dict[str, int]:
  """Field -> first bit, of the kernel's macros with this prefix."""
  return {n: int(shift) for n, shift in re.findall(rf"{prefix}(\w+?)(?:\(x\))?\s+\(\(?[x1]\)? << (\d+)\)", nvd)}


def gcr_registers(g: Generation, pal: str, nvd: str) -> dict[str, str]:
  """The bits of ACQUIRE_MEM's and RELEASE_MEM's GCR_CNTL."""
  out = {}
  for packet, union, prefix, start, width in (
    ("ACQUIRE_MEM", g.gcr_unions[0], "PACKET3_ACQUIRE_MEM_GCR_(?:CNTL_)?", 0, 19),
    ("RELEASE_MEM", g.gcr_unions[1], "PACKET3_RELEASE_MEM_GCR_", 12, 13),
  ):
    fields, kernel = gcr_fields(pal, union), kernel_gcr(nvd, prefix)
    for name, _, lo in fields:
      if name in kernel and kernel[name] - start != lo:
        raise LayoutError(f"bit {lo} in PAL, {kernel[name] - start} in nvd.h", where=f"{packet} {name}")
    known = {name for name, _, _ in fields}
    fields += [(name, lo - start, lo - start) for name, lo in kernel.items() if name not in known]
    if max(hi for _, hi, _ in fields) >= width:
      raise LayoutError("GCR_CNTL is wider than its field", where=packet)
    rows = [FieldRow(name, 0, hi, lo) for name, hi, lo in fields]
    text = emit.register(f"{packet}_GCR_CNTL", 0, rows)
    out[f"{packet}_GCR_CNTL"] = text.replace(
      "offset=0x0):", f'offset=-1):\n  """Bits of {packet}.gcr_cntl: `{packet}_GCR_CNTL(...).value()`."""')
  return out


def c_enum(text: str, name: str) -> dict[str, int]:
  body = re.search(rf"typedef enum {name} {{(.*?)}} {name};", text, re.S)
  if body is None:
    raise LayoutError(f"no enum {name}", where="the kernel's enums")
  return {n: int(v, 0) for n, v in re.findall(r"(\w+)\s*=\s*(0x[0-9a-fA-F]+)", body[1])}


def packet_rows(g: Generation, text: str, codes: dict[str, int], foreign: list[str]) -> list[PacketRow]:
  """Every packet that PAL declares, but those of other generations."""
  found = [m for m in re.finditer(r"typedef struct PM4_(?:MEC|PFP)_(\w+)\n", text) if m[1] not in foreign]
  sizes = dict(re.findall(r"PM4_MEC_(\w+)_SIZEDW__CORE\s*= (\d+);", text)) if g.sized else {}
  return [packet_row(m[1], Parser(text[m.end() :], g.layouts).packet(), codes[m[1]],
                     int(sizes[m[1]]) if m[1] in sizes else None) for m in found]


def enum_classes(g: Generation, text: str, kernel: str) -> dict[str, str]:
  """The kernel's enums of events and atomics, and PAL's of packet fields."""
  out = {name: emit.enum(name, c_enum(kernel, name), "From the kernel's enums of the chip (soc*_enum.h).")
         for name in ("VGT_EVENT_TYPE", "TC_OP")}
  for name, body in re.findall(r"^enum (MEC_\w+)_enum\s*{(.*?)};", text, re.S | re.M):
    members = enum_members(body, _infix(body), g.suffixes)
    if members: out[name.removeprefix("MEC_")] = emit.enum(name.removeprefix("MEC_"), members)
  return out


@dataclass(frozen=True)
class Generation:
  """A generation's packets: where PAL and the kernel have them, and what is left out of it. `before`: the one whose
  declarations it takes where they are the same letter for letter."""

  name: str
  packets: str
  opcodes: str
  gcr: str | None  # where the bits of GCR_CNTL are; gfx9 has no such dword
  gcr_unions: tuple[str, str]
  enums: str
  namespace: str = "Gfx9"  # where PAL declares them
  foreign: str | None = None  # a pattern of packets of other generations
  without: tuple[str, ...] = ()
  before: Generation | None = None
  layouts: frozenset[str] = frozenset({"gfx11", "gfx103Plus"})  # PAL's names of those that it has beside common ones
  suffixes: frozenset[str] = frozenset({"GFX11", "GFX103PLUS"})  # PAL's, of names that it has
  sized: bool = False  # whether structs may have more dwords than the generation, whose size is called CORE
  kernel: str = NVD
  pal: Origin = PAL
  # A header of another engine, and packets that MEC executes though PAL declares them there only.
  borrowed: tuple[str, str] | None = None

  @property
  def module(self) -> str: return f"pm4_{self.name}"

  @property
  def of_pal(self) -> tuple[str, ...]:
    return tuple(n for n in (self.packets, self.opcodes, self.gcr, self.borrowed and self.borrowed[0]) if n)

  @property
  def needs(self) -> tuple[str, ...]: return (*self.of_pal, self.kernel, self.enums)

  def text(self, sources: Sources) -> str:
    file = sources.find(self.packets, wanted=self.needs)
    return corrected(file.text, self.module, file.name.rpartition("/")[2])

  def with_borrowed(self, sources: Sources) -> str:
    if self.borrowed is None: return self.text(sources)
    header, name = self.borrowed
    text = sources.find(header).text
    found = re.search(rf"^typedef struct PM4_PFP_{name}\n.*?^}} PM4_PFP_{name};", text, re.S | re.M)
    if found is None: raise LayoutError(f"no {name}", where=header)
    return f"{self.text(sources)}\n{found[0]}\n"

  def others(self, sources: Sources) -> list[str]:
    """Packets that stand in the header and are no packets of it."""
    found = re.findall(self.foreign, self.text(sources)) if self.foreign else []
    return [*found, *self.without]

  def rows(self, sources: Sources) -> list[PacketRow]:
    codes = opcodes(sources.find(self.opcodes).text, self.suffixes)
    return packet_rows(self, self.with_borrowed(sources), codes, self.others(sources))

  def parts(self, sources: Sources) -> dict[str, str]:
    """The text of each declaration, by its name."""
    kernel = sources.find(self.enums).text
    out = {**enum_classes(self, self.text(sources), kernel), "Pm4": BASE.lstrip("\n")}
    if self.gcr is not None: out |= gcr_registers(self, sources.find(self.gcr).text, sources.find(self.kernel).text)
    named = {name for name, text in out.items() if "(IntEnum)" in text}
    for row in self.rows(sources):
      row.fields = [replace(f, enum=_enum_name(f.enum, named)) for f in row.fields]
      for part in split(row): out[part.name] = emit.packet(part)
    return out

  def generate(self, sources: Sources) -> str:
    ours, (nvd, kernel_enums) = [sources.find(n, wanted=self.needs) for n in self.of_pal], (
      sources.find(n) for n in (self.kernel, self.enums))
    codes, rows = opcodes(sources.find(self.opcodes).text, self.suffixes), self.rows(sources)
    foreign, kernel = self.others(sources), self.kernel.rpartition("/")[2]
    agreed, differ = check_against_kernel(codes, nvd.text, {row.name for row in rows})
    same_fields = fields_against_kernel(rows, nvd.text)
    before = [] if self.before is None else [(self.before.module, self.before.parts(sources))]
    earlier, own = emit.shared(self.parts(sources), before)
    names = [part.name for row in rows for part in split(row)]
    notes = [
      f"{agreed} opcodes and {same_fields} fields are the same in PAL and in {kernel}"
      + (f"; the opcodes of {', '.join(differ)} differ, and neither is declared here." if differ else "."),
      "A field X stands for the vendor's X_lo and X_hi. Addresses are given",
      "whole: low bits that are not stored must be zero. Fields under 20 bits default to 0.",
      f"Left out, as they are other generations' or have no opcode: {', '.join(foreign)}.",
      *([emit.IMPORTED] if earlier else [])]
    out = [
      head(f"PM4 packets that {self.name}'s MEC (compute queues) executes: one class a packet, fields as the vendor "
           "names them.", [*((self.pal, f) for f in ours), (LINUX, nvd), (LINUX, kernel_enums)],
           f"tinyhw gen {self.module if self.before else 'pm4'}", notes),
      *emit.imports(own, earlier), "",
      *("\n" + p for p in own),
      "\nOPCODES: dict[int, str] = {  # every type-3 opcode that the vendor names, declared above or not",
      *(f'  {code:#x}: "{name}",' for code, name in sorted({c: n for n, c in reversed(codes.items())}.items())),
      "}", "", "PACKETS: tuple[type[Pm4], ...] = (", *emit.wrapped(names), ")", "",
      "# First register and the one after the last of each SET_*_REG packet, in dwords."]
    spaces = re.findall(r"PACKET3_(SET_\w+_REG_(?:START|END))\s+(0x[0-9a-f]+)", nvd.text)
    return "\n".join([*out, *(f"{n} = {int(v, 0):#x}" for n, v in spaces)]) + "\n"


def split(row: PacketRow) -> list[PacketRow]:
  """The packet, or its short form and the subclass that adds the rest."""
  if row.name not in SHORT_FORM:
    return [row]
  dwords, longer = SHORT_FORM[row.name]
  first = [f for f in row.fields if f.dword < dwords]
  second = [f for f in row.fields if f.dword >= dwords]
  return [
    PacketRow(row.name, dwords, first, _doc(row.name, row.constants["OP"], dwords), row.constants, base=row.base),
    PacketRow(longer, row.dwords, second, f"{row.name} with its address dwords.", base=row.name),
  ]


def _doc(name: str, opcode: int, dwords: int) -> str:
  return f"{name}, type 3 opcode {opcode:#x}, {dwords} dword{'s' if dwords != 1 else ''} after the header."


def _infix(body: str) -> str:
  """The infix that PAL puts between field and member: mec_<packet>."""
  first = re.search(r"\w+?__(mec_[a-z0-9_]+?)__", body)
  return first[1] if first else ""


def _enum_name(vendor: str | None, emitted: set[str]) -> str | None:
  if vendor is None:
    return None
  name = vendor.removeprefix("MEC_").removesuffix("_enum")
  return name if name in emitted else None


GFXIP = "src/core/hw/gfxip"
GFX11 = Generation("gfx11", PACKETS, f"{GFXIP}/gfx9/chip/gfx9_plus_merged_pm4_it_opcodes.h",
                   f"{GFXIP}/gfx9/gfx9CmdUtil.cpp", ("Gfx10AcquireMemGcrCntl", "Gfx10ReleaseMemGcrCntl"),
                   f"{AMD}/include/soc21_enum.h",
                   foreign=r"PM4_MEC_(\w+)_SIZEDW__GFX10 ")
GFX12 = Generation("gfx12", f"{GFXIP}/gfx12/chip/gfx12_merged_f32_mec_pm4_packets.h",
                   f"{GFXIP}/gfx12/chip/gfx12_merged_pm4_it_opcodes.h", f"{GFXIP}/gfx12/gfx12CmdUtil.cpp",
                   ("AcquireMemGcrCntl", "ReleaseMemGcrCntl"), f"{AMD}/include/soc24_enum.h",
                   "Gfx12", without=("CLEANER_SHADER",), before=GFX11)
OLDER = f"{PAL_2024_FOLDER}/{GFXIP}/gfx9/chip/gfx9_plus_merged"
GFX9 = Generation("gfx9", f"{OLDER}_f32_mec_pm4_packets.h", f"{OLDER}_pm4_it_opcodes.h", None, ("", ""),
                  f"{AMD}/include/vega10_enum.h", foreign=r"PM4_MEC_((?!ACQUIRE_MEM)\w+)_SIZEDW__GFX1", before=GFX11,
                  layouts=frozenset({"gfx09", "hasCe", "core"}), sized=True, kernel=SOC15D, pal=PAL_2024,
                  suffixes=frozenset({"GFX09", "GFX09_10", "GFX09_GFX10CORE", "HASCE", "CORE"}),
                  borrowed=(f"{OLDER}_f32_pfp_pm4_packets.h", "PRED_EXEC"))
FAMILIES = {
  GFX9.module: Family(GFX9.module, GFX9.module, "PM4 packets of gfx9's compute queues", GFX9.needs, GFX9.generate),
  "pm4": Family("pm4", GFX11.module, "PM4 packets of gfx11's compute queues", GFX11.needs, GFX11.generate),
  GFX12.module: Family(GFX12.module, GFX12.module, "PM4 packets of gfx12's compute queues",
                       GFX12.needs, GFX12.generate)}
