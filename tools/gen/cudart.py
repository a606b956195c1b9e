"""CUDA's runtime API: some enumerations and structs, and the signatures of its functions, from cuda_runtime_api.h."""

from __future__ import annotations

import re

from tinyhw.tools.gen import ctypes_types
from tinyhw.tools.gen.cuda import BASE, TYPEDEF, enums, kind, preprocessed, values_of
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.nvrm import chosen
from tinyhw.tools.gen.opencl import split
from tinyhw.tools.gen.sources import Origin, Sources, head

CUDART = Origin("NVIDIA CUDA Toolkit 13.0", "13000", "NVIDIA CUDA Toolkit EULA; names and numbers only")
HEADER = "include/cuda_runtime_api.h"
TYPES = "include/driver_types.h"
TEXTURES = "include/texture_types.h"
COMPILED = ("include/crt/host_runtime.h", "include/crt/device_functions.h")  # what the compiler's own code calls
SECTION = "include/fatbinary_section.h"
STRUCTS = ("cudaDeviceProp", "cudaFuncAttributes", "cudaPointerAttributes", "cudaLaunchConfig_st", "dim3",
           "cudaChannelFormatDesc", "cudaResourceDesc", "cudaTextureDesc", "cudaResourceViewDesc", "cudaMemcpy3DParms",
           "cudaMemcpy3DPeerParms", "cudaKernelNodeParams", "cudaMemsetParams", "cudaHostNodeParams",
           "cudaGraphNodeParams", "cudaMemLocation", "cudaIpcMemHandle_st", "cudaIpcEventHandle_st")
ENUMS = ("cudaError", "cudaMemcpyKind", "cudaFuncAttribute", "cudaDriverEntryPointQueryResult", "cudaMemoryType",
         "cudaChannelFormatKind", "cudaResourceType", "cudaTextureAddressMode", "cudaTextureFilterMode",
         "cudaTextureReadMode", "cudaGraphNodeType")
PROTOTYPE = re.compile(r"\b(?:cudaError_t|const\s+char\s*\*|void\s*\*\*|void|char|unsigned)\s+(_*cuda[A-Z]\w+)\s*"
                       r"\(([^;{}]*?)\)\s*;")
PER_THREAD = re.compile(r"#define\s+(cuda\w+)\s+__CUDART_API_(PTDS|PTSZ)\(\1\)")  # by the thread's default stream
BY_VALUE = {n: n for n in ("dim3", "cudaExtent", "cudaPitchedPtr", "cudaMemLocation", "cudaIpcMemHandle_t",
                           "cudaIpcEventHandle_t")}


def signatures(text: str, known: dict[str, str]) -> dict[str, list[str] | None]:
  """The parameters of each function, as names of ctypes classes; None for one with another struct by value."""
  found: dict[str, list[str] | None] = {}
  for name, parameters in PROTOTYPE.findall(text):
    parts = [] if parameters.strip() == "void" else split(parameters)
    kinds = [kind(p.split("=")[0].strip(), known, name) for p in parts]
    found[name] = None if None in kinds else [k for k in kinds if k is not None]
  return found


def typedefs(text: str) -> dict[str, str]:
  """The ctypes class of each scalar type and handle."""
  found = BASE | BY_VALUE
  for _ in range(4):
    for source, star, name in TYPEDEF.findall(text):
      words = source.split()
      source = re.sub(r"\b(const|struct|enum|__attribute__\(\(\w+\)\))\b", "", source).strip()
      if star: found[name] = "c_void_p"
      elif "enum" in words: found[name] = "c_int32"
      elif source in found: found[name] = found[source]
  for name in re.findall(r"\benum\s*(?:__attribute__\s*\(\(.*?\)\))?\s*(\w+)\s*\{", text): found[name] = "c_int32"
  for name in re.findall(r"\(\s*\*\s*(cuda\w+)\s*\)\s*\(", text): found[name] = "c_void_p"
  return found


def generate(sources: Sources) -> str:
  files = [sources.find(name) for name in (HEADER, TYPES, SECTION, *COMPILED)]
  include = files[0].path.parent
  flags = [f"-I{include}"]
  text = preprocessed(str(files[0].path))
  compiled = signatures("".join(f.text for f in files[3:]).replace("CUDARTAPI", ""),
                        typedefs(text) | {"cudaKernel_t": "c_void_p"})
  listed = enums(text, ENUMS, "cuda")
  macros = ["FATBINC_MAGIC", "FATBINC_VERSION", "FATBINC_LINK_VERSION"]
  values = values_of([*macros, *(m for members in listed.values() for m in members)], flags,
                     "#include <cuda_runtime_api.h>\n#include <fatbinary_section.h>\n")
  space = ctypes_types.read([files[0].path, files[1].path, include / "vector_types.h"], flags)
  types = ctypes_types.collect(space, re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text))
  names = {cls: n for n, cls in types.aggregates}
  kept = chosen(types, [names[space[s] if s in space else space["struct_" + s]] for s in STRUCTS], TYPES)
  calls = signatures(text, typedefs(text)) | {n: kinds for n, kinds in compiled.items() if n.startswith("__cuda")}
  left_out = sorted(n for n, kinds in calls.items() if kinds is None)
  return "\n".join([
    head("CUDA's runtime API: enumerations, structs and the signatures of its functions.",
         [(CUDART, file) for file in files], "tinyhw gen cudart",
         ["FUNCTIONS has a function's parameters as ctypes has them. Pointers and handles are addresses. BY_VALUE are",
          "the functions that take a struct by value that is not here, whose parameters are not told. PER_THREAD has",
          "the names under which programs of --default-stream per-thread call functions."]),
    "import ctypes",
    "from ctypes import c_char, c_float, c_int32, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p",
    "",
    "from tinyhw.core.layout import Struct, Union",
    "",
    *(f"{n} = {v}" if -10 < v < 10 else f"{n} = {v:#x}" for n, v in values.items()),
    "",
    "ERRORS = {",
    *dict.fromkeys(f'  {values[m]}: "{m}",' for m in listed["cudaError"]),
    "}",
    *ctypes_types.Writer(kept).text(),
    "",
    "FUNCTIONS: dict[str, tuple[type, ...]] = {",
    *(f'  "{n}": ({"".join(k + ", " for k in kinds).strip()}),' for n, kinds in sorted(calls.items())
      if kinds is not None),
    "}",
    "",
    "BY_VALUE: tuple[str, ...] = (",
    *(f'  "{n}",' for n in left_out),
    ")",
    "",
    "PER_THREAD: dict[str, str] = {",
    *(f'  "{n}": "{n}_{suffix.lower()}",' for n, suffix in sorted(set(PER_THREAD.findall(files[0].text)))),
    "}",
    "",
  ])


FAMILY = Family("cudart", "cudart", "structs and functions of CUDA's runtime API",
                (HEADER, TYPES, SECTION, *COMPILED), generate)
