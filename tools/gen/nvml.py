"""NVML, NVIDIA's management library: results, some enumerations and structs, and its functions, from nvml.h."""

from __future__ import annotations

import re

from tinyhw.core.errors import Error
from tinyhw.tools.gen import ctypes_types
from tinyhw.tools.gen.cuda import BASE, TYPEDEF, enums, kind, preprocessed, values_of
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.nvrm import chosen
from tinyhw.tools.gen.opencl import split
from tinyhw.tools.gen.sources import Origin, Sources, head

NVML = Origin("NVIDIA NVML 13.5, PyPI's nvidia-nvml-dev", "13.5.37", "NVIDIA CUDA Toolkit EULA; names and numbers only")
HEADER = "include/nvml.h"
OLD = "-DNVML_NO_UNVERSIONED_FUNC_DEFS"  # shows what older programs were linked with
STRUCTS = ("nvmlMemory_t", "nvmlMemory_v2_t", "nvmlPciInfo_t", "nvmlPciInfoExt_v1_t", "nvmlUtilization_t",
           "nvmlProcessInfo_v1_t", "nvmlProcessInfo_v2_t", "nvmlUUID_v1_t")
VERSIONED = ("nvmlMemory_v2", "nvmlPciInfoExt_v1", "nvmlUUID_v1")  # what a struct's first member has to be
ENUMS = ("nvmlReturn_enum", "nvmlBrandType_enum", "nvmlComputeMode_enum", "nvmlClockType_enum", "nvmlClockId_enum",
         "nvmlEnableState_enum", "nvmlGpuP2PStatus_enum", "nvmlGpuP2PCapsIndex_enum", "nvmlGpuVirtualizationMode")
MACROS = re.compile(r"^#define\s+(NVML_(?:DEVICE_ARCH|BUS_TYPE|INIT_FLAG|API_VERSION|(?:DEVICE|SYSTEM)_\w+_SIZE)\w*)\s+"
                    r"(?!\")\S", re.M)
PROTOTYPE = re.compile(r"\bnvmlReturn_t\s+(nvml\w+)\s*\(([^;{}]*?)\)\s*;")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)")
TEXT = "nvmlErrorString"  # which returns a string, and all others a result


def typedefs(text: str) -> dict[str, str]:
  """The ctypes class of each scalar type and handle."""
  found = dict(BASE)
  for name in re.findall(r"\btypedef\s+enum\s*\w*\s*\{[^}]*\}\s*(\w+)\s*;", text): found[name] = "c_int32"
  for _ in range(3):  # aliases of aliases
    for source, star, name in TYPEDEF.findall(text):
      if star: found[name] = "c_void_p"
      elif source in found: found[name] = found[source]
  return found


def generate(sources: Sources) -> str:
  file = sources.find(HEADER)
  flags = [f"-I{file.path.parent}"]
  text, old = (ATTRIBUTE.sub("", preprocessed(str(file.path), *more)) for more in ([], [OLD]))
  listed = {n: enums(text, [n], "NVML_")[n] for n in ENUMS}
  macros = sorted(set(MACROS.findall(file.text)) - {"NVML_API_VERSION_STR"})
  values = values_of([*macros, *VERSIONED, *dict.fromkeys(m for members in listed.values() for m in members)], flags,
                     "#include <nvml.h>\n")
  space = ctypes_types.read([file.path], flags)
  types = ctypes_types.collect(space, text)
  names = {cls: n for n, cls in types.aggregates}
  kept = chosen(types, [names[space[s]] for s in STRUCTS], HEADER)
  known, signatures = typedefs(text), dict[str, list[str]]()
  for name, parameters in PROTOTYPE.findall(text + old):
    found = [kind(p, known, name) for p in ([] if parameters.strip() == "void" else split(parameters))]
    signatures[name] = [k for k in found if k is not None]
    if None in found: raise Error(f"{name} takes what is not known: {parameters}", where="tinyhw gen nvml")
  devices = sorted(n for n, p in PROTOTYPE.findall(text + old) if p.startswith("nvmlDevice_t"))
  kinds = sorted({k for row in signatures.values() for k in row} | {"c_char", "c_int32", "c_uint32", "c_uint64"})
  return "\n".join([
    head("NVML, NVIDIA's management library: results, enumerations, structs and the signatures of its functions.",
         [(NVML, file)], "tinyhw gen nvml",
         ["FUNCTIONS has a function's parameters as ctypes has them; all return an nvmlReturn_t, but for TEXT, which",
          "returns a string. Pointers and handles are addresses. ON_DEVICE are the functions whose first parameter is",
          "a device's handle."]),
    "import ctypes",
    f"from ctypes import {', '.join(kinds)}",
    "",
    "from tinyhw.core.layout import Struct, Union",
    "",
    *(f"{n} = {v}" if -10 < v < 10 else f"{n} = {v:#x}" for n, v in values.items()),
    "",
    "RESULTS = {",
    *dict.fromkeys(f'  {values[m]}: "{m}",' for m in listed["nvmlReturn_enum"]),
    "}",
    *ctypes_types.Writer(kept).text(),
    "",
    f'TEXT = "{TEXT}"',
    "FUNCTIONS: dict[str, tuple[type, ...]] = {",
    f'  TEXT: ({known["nvmlReturn_t"]},),',
    *(f'  "{n}": ({"".join(k + ", " for k in row).strip()}),' for n, row in sorted(signatures.items())),
    "}",
    "",
    "ON_DEVICE = frozenset((",
    *(f'  "{n}",' for n in devices),
    "))",
    "",
  ])


FAMILY = Family("nvml", "nvml", "results, structs and functions of NVML", (HEADER,), generate)
