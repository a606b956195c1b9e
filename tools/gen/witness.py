"""Second and third opinions on generated modules: what gcc and cffi say of each constant, struct, field and bit.

The C compiler sees the vendor's own headers; the modules are compared with its answers, not with the generator's.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import keyword
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tinyhw.core.errors import MissingTool
from tinyhw.core.layout import Packet
from tinyhw.tools.gen import gc as gc_family
from tinyhw.tools.gen import gcc, hsa, kfd, nvclass, nvclass_witness, nvrm, nvrm_witness, pm4, sdma
from tinyhw.tools.gen.family import errata
from tinyhw.tools.gen.sources import Sources


@dataclass
class Report:
  """What was compared, and what did not agree."""

  text: str
  problems: list[str] = field(default_factory=list)


def constants(module: ModuleType) -> dict[str, int]:
  """The integer constants of a module, by their C names."""
  return {n: v for n, v in vars(module).items() if type(v) is int and not n.startswith("_")}


def aggregates(module: ModuleType) -> dict[str, Any]:
  """The structs and unions that a module declares."""
  return {
    n: c
    for n, c in vars(module).items()
    if isinstance(c, type) and c.__module__ == module.__name__ and issubclass(c, (ctypes.Structure, ctypes.Union))
  }


def c_fields(cls: Any) -> list[tuple[str, str]]:
  """(our name, C name) of each field that C can name: those of anonymous members stand for them."""
  rows = []
  for row in cls._fields_:
    if row[0] in getattr(cls, "_anonymous_", ()):
      rows += c_fields(row[1])
    else:
      name = row[0][:-1] if keyword.iskeyword(row[0][:-1]) and row[0].endswith("_") else row[0]
      rows.append((row[0], name + ("" if ctypes.sizeof(row[1]) else "[]")))
  return rows


def compare_constants(
  module: ModuleType, includes: str, flags: Sequence[str], skip: Callable[[str], bool] = lambda n: False
) -> Report:
  ours = {n: v for n, v in constants(module).items() if not skip(n)}
  theirs = gcc.macro_values(list(ours), includes, flags)
  problems = [f"{n}: {v:#x} here, {theirs.get(n, 'nothing')} in C" for n, v in ours.items() if theirs.get(n) != v]
  return Report(f"{len(ours)} constants against gcc", problems)


def spellings(module: ModuleType, text: str) -> dict[str, str]:
  """Name of each aggregate that C can name -> its C spelling."""
  found = {}
  for name, cls in aggregates(module).items():
    keyword = "union" if issubclass(cls, ctypes.Union) else "struct"
    if re.search(rf"\b{keyword}\s+{name}\s*{{", text):
      found[name] = f"{keyword} {name}"
    elif name.endswith("_t"):
      found[name] = name
  return found


def compare_layouts(module: ModuleType, names: Mapping[str, str], includes: str, flags: Sequence[str]) -> Report:
  """Hold size, and offset and size of each field, against gcc. `names`: each aggregate's spelling in C."""
  ours = aggregates(module)
  theirs = gcc.layouts({c: [f for _, f in c_fields(ours[n])] for n, c in names.items()}, includes, flags)
  problems, count = [], 0
  for name, spelling in names.items():
    size, places = theirs[spelling]
    if ctypes.sizeof(ours[name]) != size:
      problems.append(f"{name}: {ctypes.sizeof(ours[name])} bytes here, {size} in C")
    for field_name, c_name in c_fields(ours[name]):
      row = getattr(ours[name], field_name)
      count += 1
      if (row.offset, row.size) != places[c_name]:
        problems.append(f"{name}.{field_name}: offset {row.offset}, size {row.size} here, {places[c_name]} in C")
  return Report(
    f"{len(names)} of {len(ours)} structs and unions ({count} fields) against gcc; the others have no name in C",
    problems,
  )


def cffi_kind(kind: Any) -> tuple[str, str]:
  """(declaration before the name, array suffix) of a ctypes type in C."""
  if hasattr(kind, "_length_"):
    before, suffix = cffi_kind(kind._type_)
    return before, f"[{kind._length_}]{suffix}"
  if isinstance(kind, type) and issubclass(kind, (ctypes.Structure, ctypes.Union)):
    return f"{'union' if issubclass(kind, ctypes.Union) else 'struct'} {kind.__name__}", ""
  signed = "" if kind(-1).value < 0 else "u"
  return f"{signed}int{8 * ctypes.sizeof(kind)}_t", ""


def compare_cffi(module: ModuleType, text: str, includes: str, flags: Sequence[str]) -> Report:
  """cffi's API mode: it compiles its own description of our structs against the headers and refuses what differs."""
  try:
    import cffi
  except ImportError:
    raise MissingTool("cffi is needed as second witness", where="tinyhw gen check", hint="pip install cffi") from None
  names, ours = spellings(module, text), aggregates(module)
  lines: list[str] = []
  told: set[str] = set()  # those that cffi has been told of, in order of dependence
  for name, spelling in names.items():
    # Members of anonymous unions are left to gcc: cffi would need the union's shape to be told. So are flexible arrays.
    rows = [
      r for r in ours[name]._fields_ if r[0] not in getattr(ours[name], "_anonymous_", ()) and ctypes.sizeof(r[1])
    ]
    rows = [r for r in rows if not r[0].endswith("_")]
    kinds = [cffi_kind(r[1]) for r in rows]
    if any(k[0].split()[-1] not in told for k in kinds if " " in k[0]):
      continue
    told.add(name)
    body = " ".join(f"{before} {r[0]}{suffix};" for r, (before, suffix) in zip(rows, kinds, strict=True))
    lines.append(f"{spelling} {{ {body} ...; }};")
  made = cffi.FFI()
  made.cdef("\n".join(lines))
  made.set_source("_tinyhw_witness", includes, extra_compile_args=[*flags, "-w"])
  problems = []
  with tempfile.TemporaryDirectory(prefix="tinyhw-gen-") as folder:
    path = made.compile(tmpdir=folder)
    spec = importlib.util.spec_from_file_location("_tinyhw_witness", path)
    if spec is None or spec.loader is None:
      return Report("cffi", [f"cannot load {path}"])
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    ffi = loaded.ffi
    for line in lines:
      spelling = line.split(" {")[0]
      cls = ours[spelling.split()[-1]]
      if ffi.sizeof(spelling) != ctypes.sizeof(cls):
        problems.append(f"{spelling}: {ffi.sizeof(spelling)} bytes says cffi")
      for name, row in ffi.typeof(spelling).fields:
        if row.offset != getattr(cls, name).offset:
          problems.append(f"{spelling}.{name}: offset {row.offset} says cffi")
  return Report(f"{len(lines)} structs and unions against cffi's API mode", problems)


def uapi(name: str, sources: Sources) -> Iterator[Report]:
  """KFD and DRM: constants, layouts, and cffi."""
  module = importlib.import_module(f"tinyhw.autogen.{name}")
  names = (kfd.IOCTL, kfd.SYSFS, *kfd.DRM)
  files = [sources.find(n, wanted=names) for n in names]
  header = {"kfd": files[0], "kfd_sysfs": files[1], "amdgpu_drm": files[-1]}[name]
  with kfd.usable_headers(*files) as (_, flags):
    includes = f"#include <stdint.h>\n#include <{header.name.removeprefix('include/uapi/')}>\n"
    yield compare_constants(module, includes, flags, lambda n: n.startswith("CRAT_"))
    if name == "kfd_sysfs":
      return
    yield compare_layouts(module, spellings(module, header.text), includes, flags)
    yield compare_cffi(module, header.text, includes, flags)


def hsa_reports(name: str, sources: Sources) -> Iterator[Report]:
  module = importlib.import_module("tinyhw.autogen.hsa")
  files = [sources.find(n) for n in hsa.HEADERS]
  flags = [f"-I{files[0].path.parents[1]}"]
  yield compare_constants(module, hsa.include_text(), flags)
  yield compare_layouts(module, spellings(module, "\n".join(f.text for f in files)), hsa.include_text(), flags)


def llvm_reports(name: str, sources: Sources) -> Iterator[Report]:
  """The kernel descriptor and ELF: LLVM's headers are C++."""
  if name == "elf":
    from tinyhw.autogen import elf_amdgpu

    yield compare_layouts(elf_amdgpu, {n: n for n in aggregates(elf_amdgpu)}, "#include <elf.h>\n", [])
    include = sources.find("llvm/BinaryFormat/ELF.h").path.parents[2]
    ours = constants(elf_amdgpu) | {f"R_AMDGPU_{r.name}": r.value for r in elf_amdgpu.R_AMDGPU}
    for row in errata("elf_amdgpu"):  # what the header does not know yet
      for n in set(re.findall(r"EF_\w+", row.now)) - set(re.findall(r"EF_\w+", row.was)): del ours[n]
    lines = [f'  std::printf("{n} %lld\\n", (long long)llvm::ELF::{n});' for n in ours]
    program = "#include <llvm/BinaryFormat/ELF.h>\n#include <cstdio>\nint main() {\n" + "\n".join(lines) + "\n}\n"
    theirs = run_cpp(program, [f"-I{include}"])
    yield Report(f"{len(ours)} constants against g++", [f"{n}: {v:#x} here" for n, v in ours.items() if theirs[n] != v])
    return
  module = importlib.import_module("tinyhw.autogen.amdhsa")
  header = sources.find("llvm/Support/AMDHSAKernelDescriptor.h")
  prefix = (
    "#include <cstddef>\n#include <cstdint>\n" + header.text + "\nusing namespace llvm::amdhsa;\n#include <cstdio>\n"
  )
  wanted: dict[str, int] = {}
  for n, cls in vars(module).items():
    register = re.fullmatch(r"(COMPUTE_PGM_RSRC\d)_GFX(\d+)", n)
    if register is None:
      continue
    for f in cls.FIELDS:
      candidates = [m for m in re.findall(rf"\b{register[1]}(?:_GFX\w+?)?\({f.name},", header.text)]
      if len(candidates) == 1:
        wanted[f"{candidates[0].split('(')[0]}_{f.name}"] = f.mask
  wanted |= {
    n: v for n, v in constants(module).items() if not n.startswith("COMPUTE_PGM_RSRC") or n.endswith("_OFFSET")
  }
  lines = [f'  std::printf("{n} %lld\\n", (long long)({n}));' for n in wanted]
  lines += [
    f'  std::printf("@{f} %zu\\n", offsetof(kernel_descriptor_t, {f}));'
    for f, *_ in module.kernel_descriptor_t._fields_
  ]
  theirs = run_cpp(prefix + "int main() {\n" + "\n".join(lines) + "\n}\n")
  problems = [f"{n}: {v:#x} here, {theirs[n]:#x} in C++" for n, v in wanted.items() if theirs[n] & 0xFFFFFFFF != v]
  problems += [
    f"{f}: offset"
    for f, *_ in module.kernel_descriptor_t._fields_
    if getattr(module.kernel_descriptor_t, f).offset != theirs[f"@{f}"]
  ]
  fields = len(module.kernel_descriptor_t._fields_)
  yield Report(f"{len(wanted)} constants and register fields, 1 struct ({fields} fields) against g++", problems)


def run_cpp(source: str, flags: Sequence[str] = ()) -> dict[str, int]:
  """`name value` lines that a C++ program prints."""
  return {
    n: int(v)
    for n, v in (line.split() for line in gcc.compile_and_run(source, ["-xc++", "-std=c++17", *flags]).splitlines())
  }


def pm4_reports(name: str, sources: Sources) -> Iterator[Report]:
  """Each bit field of PAL's structs, found by the C++ compiler, must be a field of ours, or a view of one."""
  generation = {"pm4": pm4.GFX11, "pm4_gfx12": pm4.GFX12, "pm4_gfx9": pm4.GFX9}[name]
  module, text = importlib.import_module(f"tinyhw.autogen.{generation.module}"), generation.text(sources)
  lines, wanted = [], []
  classes: Mapping[str, type[Packet]] = {cls.__name__: cls for cls in module.PACKETS}
  for found in re.finditer(r"typedef struct PM4_MEC_(\w+)\n", text):
    packet = found[1]
    if packet not in classes:
      continue
    for ordinal, readings in pm4.Parser(text[found.end() :], generation.layouts).packet().items():
      for reading in readings if ordinal > 1 else []:
        for row in reading.fields:
          path = f"ordinal{ordinal}.{row.path}{row.name}"
          lines.append(
            f"  {{ Pal::{generation.namespace}::PM4_MEC_{packet} p; std::memset(&p, 0, sizeof p);\n"
            f"    p.{path} = static_cast<decltype(p.{path})>(~0u);\n"
            f'    uint32_t w[32] = {{}}; std::memcpy(w, &p, sizeof p); std::printf("{packet}.{path} %lld\\n", '
            f"(long long)w[{ordinal - 1}]); }}"
          )
          wanted.append((packet, ordinal - 2, row.name, f"{packet}.{path}"))
  source = (
    "#define LITTLEENDIAN_CPU 1\n"
    + text
    + "\n#include <cstdio>\n#include <cstring>\nint main() {\n"
    + "\n".join(lines)
    + "\n}\n"
  )
  theirs = run_cpp(source, ["-fpermissive"])
  problems = []
  for packet, dword, vendor, key in wanted:
    longest = classes.get(f"{packet}_ADDRESS", classes[packet])
    if not bits_agree(longest, dword, vendor, theirs[key]):
      problems.append(f"{key}: bits {theirs[key]:#010x} say otherwise")
  yield Report(f"{len(wanted)} bit fields of {len(classes)} packets against g++", problems)


def bits_agree(cls: type[Packet], dword: int, vendor: str, mask: int) -> bool:
  """Whether these bits of a dword are the field of that name, its part X_lo or X_hi, or a view of a field's part."""
  within = [f for f in cls.FIELDS if f.mask >> 32 * dword & 0xFFFFFFFF & mask == mask]
  if len(within) != 1:
    return False
  exact = within[0].mask >> 32 * dword & 0xFFFFFFFF == mask
  same_name = within[0].name.rstrip("_") in (vendor, vendor.removesuffix("_lo"), vendor.removesuffix("_hi"))
  return exact and same_name or isinstance(vars(cls).get(vendor), property)


def macro_reports(name: str, sources: Sources) -> Iterator[Report]:
  """SDMA fields and GC registers: the vendor's offset, mask and shift macros, evaluated by gcc."""
  problems = []
  if name.startswith("sdma"):
    made = sdma.V6 if name == "sdma" else sdma.V4
    header = sources.find(made.header)
    module = importlib.import_module(f"tinyhw.autogen.{made.module}")
    names = [n for n in gcc.macro_names(header.text) if n.endswith(("_offset", "_mask", "_shift"))]
    values = gcc.macro_values(names, header.text, [])
    classes = {
      cls.__name__: cls for cls in vars(module).values() if isinstance(cls, type) and issubclass(cls, Packet)
    }
    count = 0
    for packet in sorted(classes, key=len, reverse=True):
      for stem in [n.removesuffix("_offset") for n in names if n.startswith(f"{packet}_") and n.endswith("_offset")]:
        names = [n for n in names if not n.startswith(f"{stem}_")]
        if "reserved" in stem:
          continue
        bits = values[f"{stem}_mask"] << values[f"{stem}_shift"] + 32 * values[f"{stem}_offset"]
        cls = classes[packet]
        count += 1
        if sum(f.mask & bits == bits for f in cls.FIELDS) != 1 and not (cls.REST and stem.endswith("data0")):
          problems.append(f"{stem}: bits {bits:#x} are in no field of {packet}")
    yield Report(f"{count} fields of {len(classes)} packets against gcc", problems)
    yield compare_constants(module, header.text, [], lambda n: n.endswith("_SHIFT"))
    return
  generation = {"gc": gc_family.GFX11, "gc_12_0_0": gc_family.GFX12, "gc_9_4_3": gc_family.GFX9,
                "gc_9_4_2": gc_family.GFX90A}[name]
  module, (places_in, masks_in, *_) = importlib.import_module(f"tinyhw.autogen.{generation.module}"), generation.needs
  text = sources.find(masks_in).text + sources.find(places_in).text
  wanted = {
    f"{r.__name__}__{f.name}_MASK": f.mask
    for r in module.REGISTERS
    for f in r.FIELDS
    if f"{r.__name__}__{f.name}_MASK" in text
  }
  places = {f"reg{r.__name__}": r.OFFSET for r in module.REGISTERS}
  values = gcc.macro_values([*wanted, *places, *(f"{n}_BASE_IDX" for n in places)], text, [])
  problems = [f"{n}: {v:#x} here, {values[n]:#x} in C" for n, v in wanted.items() if values[n] & 0xFFFFFFFF != v]
  problems += [
    f"{n}: {v:#x} here" for n, v in places.items() if module.GC_BASE[values[f"{n}_BASE_IDX"]] + values[n] != v
  ]
  yield Report(f"{len(wanted)} masks and {len(places)} offsets of registers against gcc", problems)


def class_reports(name: str, sources: Sources) -> Iterator[Report]:
  """Methods and queue meta data of NVIDIA's classes."""
  header = next(h for h in nvclass.HEADERS if h.module == name)
  for text, problems in nvclass_witness.reports(header, sources.find(header.path).text):
    yield Report(text, problems)


def rm_reports(name: str, sources: Sources) -> Iterator[Report]:
  """Structs and constants of NVIDIA's kernel drivers."""
  for text, problems in nvrm_witness.reports(name, sources): yield Report(text, problems)


WITNESSES: dict[str, Callable[[str, Sources], Iterator[Report]]] = {
  "kfd": uapi,
  "kfd_sysfs": uapi,
  "amdgpu_drm": uapi,
  "hsa": hsa_reports,
  "amdhsa": llvm_reports,
  "elf": llvm_reports,
  "pm4": pm4_reports,
  "pm4_gfx12": pm4_reports,
  "pm4_gfx9": pm4_reports,
  "sdma": macro_reports,
  "sdma_v4": macro_reports,
  "gc": macro_reports,
  "gc_12_0_0": macro_reports,
  "gc_9_4_3": macro_reports,
  "gc_9_4_2": macro_reports,
  **dict.fromkeys(nvclass.FAMILIES, class_reports),
  **dict.fromkeys(nvrm.FAMILIES, rm_reports),
}


def reports(name: str, sources: Sources) -> list[Report]:
  """Every comparison that a family has; none for one whose facts no compiler knows."""
  return list(WITNESSES[name](name, sources)) if name in WITNESSES else []
