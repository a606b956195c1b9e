"""NVIDIA's classes: the methods of host, compute and copy engines, and the queue meta data (QMD) of compute launches.

A class header names, in order, a method (a byte offset), its fields (`hi:lo`) and their values; a name begins with what
it belongs to. What begins with no method is a format of words in memory: entries of the GPFIFO, headers of pushbuffers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import emit
from tinyhw.tools.gen.emit import FieldRow
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.sources import Origin, SourceFile, Sources, head

DOC = Origin("NVIDIA/open-gpu-doc", "commit c8607fe576b53ff821ffcf97e7548d2de11c4eaf (2025-07-18)", "MIT")
METHODS_END = 0x4000  # a pushbuffer header has 12 bits for a method's dword
BOOLEAN = {"FALSE": 0, "TRUE": 1}
DEFINE = re.compile(r"^#define\s+(\w+)(?:\((\w)\))?\s+(.+?)\s*(?://.*|/\*.*)?$", re.M)
METHOD = re.compile(r"0x[0-9a-f]{4}|\(0x[0-9a-fA-F]{8}\)")  # how headers write an offset, and no value
WORDS = ("DMA_", "GP_ENTRY")  # what tells of words in memory, in a host's header
NUMBER = re.compile(r"\(?(0x[0-9a-fA-F]+|\d+)\)?")
RANGE = re.compile(r"(\d+):(\d+)")
ARRAY = re.compile(r"\((0x[0-9a-fA-F]+)\+\(\w\)\*(\d+)\)")
WIDE = re.compile(r"MW\(\(?(\d+)(?:\+\(\w\)\*(\d+)\))?:\(?(\d+)(?:\+\(\w\)\*\d+\))?\)")


@dataclass
class Bits:
  """A field: where it is, its values by name, and in an array how far apart its copies are."""

  name: str
  hi: int
  lo: int
  stride: int = 0
  values: dict[str, int] = field(default_factory=dict)

  @property
  def named(self) -> bool:
    """Whether its values say more than yes and no."""
    return bool(self.values) and self.values != BOOLEAN


@dataclass
class Body:
  """A method (with its offset), or a format (without)."""

  name: str
  offset: int | None
  stride: int = 0
  fields: list[Bits] = field(default_factory=list)

  def find(self, name: str) -> Bits | None:
    """The field that a longer name begins with."""
    fitting = [f for f in self.fields if name.startswith(f"{self.name}_{f.name}_")]
    return max(fitting, key=lambda f: len(f.name), default=None)


def defines(text: str, prefix: str) -> Iterator[tuple[str, str]]:
  """(name without the class, body) of each macro of the class."""
  for name, _, body in DEFINE.findall(text):
    if name.startswith(prefix):
      yield name.removeprefix(prefix), body


def bodies(text: str, prefix: str, formats: Sequence[str] = ()) -> list[Body]:
  """The methods of a class and the formats of these names, with their fields and values."""
  found: dict[str, Body] = {name: Body(name, None) for name in formats}
  current: Body | None = None
  for name, body in defines(text, prefix):
    format_ = max((f for f in formats if name.startswith(f"{f}_")), key=len, default=None)
    owner = found[format_] if format_ else current
    if match := RANGE.fullmatch(body):
      if owner is None or not name.startswith(f"{owner.name}_"):
        continue  # a format that nobody asked for
      owner.fields.append(Bits(name.removeprefix(f"{owner.name}_"), int(match[1]), int(match[2])))
    elif match := ARRAY.fullmatch(body):
      current = found.setdefault(name, Body(name, int(match[1], 0), int(match[2])))
    elif match := NUMBER.fullmatch(body):
      value = int(match[1], 0)
      if owner is not None and (known := owner.find(name)) is not None:
        known.values[name.removeprefix(f"{owner.name}_{known.name}_")] = value
      elif METHOD.fullmatch(body) and not (formats and name.startswith(WORDS)):
        current = found.setdefault(name, Body(name, value))
  return [b for b in found.values() if b.fields or b.offset is not None]


def count(body: Body, others: Sequence[Body]) -> int:
  """How many methods an array has: as many as fit before another one begins."""
  start = body.offset or 0
  # Arrays with one distance stand within each other: MACRO(0), DATA(0), MACRO(1), DATA(1) ...
  after = [b for b in others if b.offset is not None and b.offset > start]
  limit = min((b.offset or 0 for b in after if b.stride != body.stride or (b.offset or 0) - start >= body.stride),
              default=METHODS_END)
  return -(-(limit - start) // body.stride)


class Names:
  """Names of enumerations that no other class of the module has."""

  def __init__(self, taken: Sequence[str]) -> None:
    self.taken = set(taken)

  def enum(self, name: str) -> str:
    while name in self.taken:
      name += "_"
    self.taken.add(name)
    return name


def split(fields: Sequence[Bits]) -> tuple[list[Bits], list[Bits]]:
  """(fields that share no bit, others: further names of the same bits, for some use of the method)."""
  plain: list[Bits] = []
  rest: list[Bits] = []
  for f in fields:
    clash = any(f.lo <= g.hi and g.lo <= f.hi for g in plain)
    (rest if clash else plain).append(f)
  return plain, rest


def declared(body: Body, names: Names, base: str) -> str:
  """The text of a method's or a format's class, after its enumerations."""
  plain, rest = split(list({f.name: f for f in body.fields}.values()))
  out, lines = [], []
  for f in plain:
    kind = names.enum(f"{body.name}_{f.name}") if f.named else None
    if kind:
      out.append(emit.enum(kind, f.values))
    lines.append(emit.field_line(FieldRow(f.name, 0, f.hi, f.lo, enum=kind), register=True))
  for f in rest:
    if f.named:
      out.append(emit.enum(names.enum(f"{body.name}_{f.name}"), f.values))
    lines += ["", "  @property", f"  def {emit.identifier(f.name, register=True)}(self) -> int:",
              f'    """Another use of bits {f.hi}:{f.lo}."""',
              f"    return self.value() >> {f.lo} & {(1 << f.hi - f.lo + 1) - 1:#x}"]
  if not lines:
    lines = ['  """It takes no fields."""']
  return "\n\n".join([*out, "\n".join([f"class {body.name}({base}):", *lines]) + "\n"])


def class_of(file: SourceFile, prefix: str) -> tuple[str, int]:
  """The class's name and number, which a header defines without its prefix."""
  number = int(prefix[2:-1], 16)
  for name, _, body in DEFINE.findall(file.text):
    match = NUMBER.fullmatch(body)
    if match and int(match[1], 0) == number and not name.startswith("NV"):
      return name, number
  raise LayoutError(f"no name for class {number:#x}", where=file.name)


@dataclass(frozen=True)
class Header:
  """A class header: `path` in the documentation, `prefix` of its macros, `formats` of words that it describes; what
  `before` says letter for letter is theirs."""

  path: str
  prefix: str
  formats: tuple[str, ...] = ()
  before: tuple[Header, ...] = ()

  @property
  def module(self) -> str:
    return f"nv_{self.prefix[2:-1].lower()}"

  def bodies(self, sources: Sources) -> list[Body]:
    return bodies(sources.find(self.path).text, self.prefix, self.formats)

  def parts(self, sources: Sources) -> dict[str, str]:
    """The text of each method and format, by its name."""
    found = self.bodies(sources)
    methods = [b for b in found if b.offset is not None]
    names = Names([b.name for b in found])
    parts = {}
    for b in found:
      if b.offset is None:
        base = "Word"
      else:
        array = f", apart={b.stride}, copies={count(b, methods)}" if b.stride else ""
        base = f"Method, offset={b.offset:#06x}{array}"
      parts[b.name] = declared(b, names, base)
    return parts

  def generate(self, sources: Sources) -> str:
    file = sources.find(self.path)
    name, number = class_of(file, self.prefix)
    earlier, own = emit.shared(self.parts(sources), [(h.module, h.parts(sources)) for h in self.before])
    return "\n".join([
      head(f"{name} ({number:#x}): its methods, one class each, fields as the vendor names them.", [(DOC, file)],
           f"tinyhw gen {self.module}", ["Offsets are in bytes. All fields default to 0.",
                                         *([emit.IMPORTED] if earlier else [])]),
      *emit.imports(own, earlier, ["Method"]),
      "",
      f'NAME = "{name}"',
      f"CLASS = {number:#x}",
      "",
      *("\n" + p for p in own),
      "",
      "METHODS: tuple[type[Method], ...] = (",
      *emit.wrapped([b.name for b in self.bodies(sources) if b.offset is not None]),
      ")",
      "",
    ]).replace("\n\n\n\n", "\n\n\n")


# *** queue meta data ***


def queue_meta_data(text: str, prefix: str) -> dict[str, list[Bits]]:
  """The fields of each version, by its name ("V03_00")."""
  found: dict[str, list[Bits]] = {}
  for name, body in defines(text, f"{prefix}QMD"):
    version, _, rest = (name[:6], "", name[7:])
    rows = found.setdefault(version, [])
    if match := WIDE.fullmatch(body):
      rows.append(Bits(rest, int(match[1]), int(match[3]), int(match[2] or 0)))
    elif (match := NUMBER.fullmatch(body)) is not None:
      fitting = [r for r in rows if rest.startswith(f"{r.name}_")]
      if fitting:
        owner = max(fitting, key=lambda r: len(r.name))
        owner.values[rest.removeprefix(f"{owner.name}_")] = int(match[1], 0)
  return found


def unrolled(rows: Sequence[Bits], end: int) -> list[Bits]:
  """Every field once: an array's copies as NAME_0, NAME_1 and so on, as many as fit before another field begins.

  A field that stands at another's place under a second name is left out.
  """
  single = [r for r in rows if not r.stride]
  places = {(r.lo, r.hi) for r in single}
  arrays = [r for r in rows if r.stride and (r.lo, r.hi) not in places]
  out = list(single)
  for a in arrays:
    limit = min((r.lo for r in rows if r.lo > a.lo and r.stride != a.stride), default=end)
    copies = max(1, (limit - a.lo + a.stride - 1) // a.stride)
    group = [r for r in arrays if r.stride == a.stride]
    last = max(r.hi for r in group if abs(r.lo - a.lo) < a.stride)
    while copies > 1 and (last + (copies - 1) * a.stride >= limit):
      copies -= 1
    out += [Bits(f"{a.name}_{i}", a.hi + i * a.stride, a.lo + i * a.stride, 0, a.values) for i in range(copies)]
  return sorted(out, key=lambda r: r.lo)


def meta_data_class(version: str, rows: Sequence[Bits], names: Names) -> str:
  """The text of one version's class, after its enumerations."""
  highest = max(r.hi for r in rows)
  dwords = 64 if highest < 64 * 32 else 96
  out, lines, kinds = [], [], {}
  plain, rest = split(unrolled(rows, dwords * 32))
  if rest:
    raise LayoutError(f"{rest[0].name} overlaps another field", where=f"QMD{version}")
  for f in plain:
    copied = any(r.stride and r.values is f.values for r in rows)
    base = re.sub(r"_\d+$", "", f.name) if copied else f.name
    if f.named and base not in kinds:
      kinds[base] = names.enum(f"{version}_{base}")
      out.append(emit.enum(kinds[base], f.values))
    dword = f.lo // 32
    row = FieldRow(f.name, dword, f.hi - dword * 32, f.lo - dword * 32, enum=kinds.get(base), default=0)
    lines.append(emit.field_line(row, register=True))
  return "\n\n".join([*out, "\n".join([f"class QMD{version}(Packet, dwords={dwords}):",
                                       f'  """{dwords * 4} bytes."""', *lines]) + "\n"])


@dataclass(frozen=True)
class MetaData:
  """A header of queue meta data: the versions that a compute class takes."""

  path: str
  prefix: str
  versions: tuple[str, ...]
  before: tuple[MetaData, ...] = ()

  @property
  def module(self) -> str:
    return f"nv_{self.prefix[2:-1].lower()}_qmd"

  def parts(self, sources: Sources) -> dict[str, str]:
    """The text of each version, by its name."""
    found, names = queue_meta_data(sources.find(self.path).text, self.prefix), Names(())
    return {v: meta_data_class(v, found[v], names) for v in self.versions}

  def generate(self, sources: Sources) -> str:
    file = sources.find(self.path)
    earlier, own = emit.shared(self.parts(sources), [(h.module, h.parts(sources)) for h in self.before])
    return "\n".join([
      head(f"Queue meta data of compute class {self.prefix[2:-1].lower()}: one class a version.", [(DOC, file)],
           f"tinyhw gen {self.module}", ["An array's copies are NAME_0, NAME_1 and so on.",
                                         *([emit.IMPORTED] if earlier else [])]),
      *emit.imports(own, earlier, ["Packet"]),
      "",
      *("\n" + p for p in own),
      "",
      "VERSIONS: tuple[type[Packet], ...] = (" + ", ".join(f"QMD{v}" for v in self.versions) + ",)",
      "",
    ]).replace("\n\n\n\n", "\n\n\n")


FORMATS = ("GP_ENTRY0", "GP_ENTRY1", "DMA_INCR", "DMA_NONINCR", "DMA_ONEINCR", "DMA_IMMD", "DMA_SET_SUBDEVICE_MASK",
           "DMA_STORE_SUBDEVICE_MASK", "DMA_USE_SUBDEVICE_MASK", "DMA_ENDSEG")


def series(folder: str, classes: Sequence[str]) -> tuple[Header, ...]:
  """One kind of class, the oldest first."""
  made: tuple[Header, ...] = ()
  for c in classes: made += (Header(f"classes/{folder}/cl{c}.h", f"NV{c.upper()}_", before=made),)
  return made


def meta_data(versions: Mapping[str, tuple[str, ...]]) -> tuple[MetaData, ...]:
  """The versions that each compute class takes, the oldest class first."""
  made: tuple[MetaData, ...] = ()
  for c, names in versions.items():
    made += (MetaData(f"classes/compute/cl{c}qmd.h", f"NV{c.upper()}_", names, made),)
  return made


HEADERS: tuple[Header | MetaData, ...] = (
  Header("classes/host/clc56f.h", "NVC56F_", FORMATS),
  *series("compute", ("c6c0", "c7c0", "c9c0", "cbc0", "cdc0", "cec0")),
  *series("dma-copy", ("c6b5", "c7b5", "c8b5", "c9b5", "cab5")),
  *meta_data({"c6c0": ("V02_03", "V02_04", "V03_00"), "c7c0": ("V02_03", "V02_04", "V03_00"),
              "c9c0": ("V02_04", "V03_00"), "cbc0": ("V03_00", "V04_00"), "cdc0": ("V04_01", "V05_00"),
              "cec0": ("V04_01", "V05_00")}))
FAMILIES = {h.module: Family(h.module, h.module, f"methods or queue meta data: {h.path}",
                             (h.path,), h.generate) for h in HEADERS}
