"""CUDA's driver API: error codes, enumerations, some structs, and the signatures of its functions, from cuda.h."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence

from tinyhw.core.errors import Error
from tinyhw.tools.gen import ctypes_types, gcc
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.nvrm import chosen
from tinyhw.tools.gen.opencl import split
from tinyhw.tools.gen.sources import Origin, Sources, head

CUDA = Origin("NVIDIA CUDA Toolkit 13.0, cuda.h", "13000", "NVIDIA CUDA Toolkit EULA; names and numbers only")
HEADER = "include/cuda.h"
PROFILER = "include/cudaProfiler.h"
POINTERS = "include/cudaTypedefs.h"  # in which version of CUDA a function came to be, or changed its parameters
OLD = "-D__CUDA_API_VERSION_INTERNAL"  # shows what older programs were linked with
STRUCTS = ("CUDA_KERNEL_NODE_PARAMS_v2", "CUDA_KERNEL_NODE_PARAMS_v1", "CUDA_MEMCPY2D_v2", "CUDA_MEMCPY3D_v2",
           "CUDA_MEMSET_NODE_PARAMS_v1", "CUDA_GRAPH_INSTANTIATE_PARAMS", "CUlaunchConfig", "CUlaunchAttribute",
           "CUDA_ARRAY_DESCRIPTOR_v2", "CUDA_ARRAY3D_DESCRIPTOR_v2", "CUDA_ARRAY_MEMORY_REQUIREMENTS_v1",
           "CUDA_RESOURCE_DESC_v1", "CUDA_TEXTURE_DESC_v1", "CUDA_RESOURCE_VIEW_DESC_v1",
           "CUmemPoolProps_v1", "CUmemAccessDesc_v1", "CUmemAllocationProp_v1", "CUgraphExecUpdateResultInfo_v1",
           "CUgraphNodeParams", "CUgraphEdgeData", "CUDA_MEM_ALLOC_NODE_PARAMS_v1", "CUipcMemHandle_v1",
           "CUipcEventHandle_v1", "CUctxCreateParams", "CUstreamBatchMemOpParams_v1")
ENUMS = ("cudaError_enum", "CUdevice_attribute_enum", "CUfunction_attribute_enum", "CUpointer_attribute_enum",
         "CUjit_option_enum", "CUmemorytype_enum", "CUevent_flags_enum", "CUevent_record_flags_enum",
         "CUstream_flags_enum", "CUctx_flags_enum", "CUlimit_enum", "CUmemAttach_flags_enum",
         "CUgraphNodeType_enum", "CUstreamCaptureStatus_enum", "CUstreamCaptureMode_enum", "CUlaunchAttributeID_enum",
         "CUdriverProcAddressQueryResult_enum", "CUdriverProcAddress_flags_enum", "CUfunc_cache_enum",
         "CUsharedconfig_enum", "CUmemPool_attribute_enum", "CUcomputemode_enum", "CUgraphExecUpdateResult_enum",
         "CUstreamWaitValue_flags_enum", "CUstreamWriteValue_flags_enum", "CUtensorMapDataType_enum",
         "CUtensorMapInterleave_enum", "CUtensorMapSwizzle_enum", "CUtensorMapL2promotion_enum",
         "CUtensorMapFloatOOBfill_enum", "CUmem_advise_enum", "CUmem_range_attribute_enum",
         "CUmemLocationType_enum", "CUarray_format_enum", "CUaddress_mode_enum", "CUfilter_mode_enum",
         "CUresourcetype_enum", "CUresourceViewFormat_enum", "CUmemAccess_flags_enum", "CUmemAllocationType_enum",
         "CUmemAllocationHandleType_enum", "CUjitInputType_enum", "CUmemAllocationGranularity_flags_enum",
         "CUgraphConditionalNodeType_enum", "CUgraphMem_attribute_enum", "CUgraphInstantiateResult_enum",
         "CUgraphInstantiate_flags_enum", "CUdevice_P2PAttribute_enum", "CUstreamUpdateCaptureDependencies_flags_enum",
         "CUipcMem_flags_enum", "CUevent_wait_flags_enum", "CUuserObject_flags_enum", "CUuserObjectRetain_flags_enum",
         "CUmemAllocationCompType_enum", "CUgraphDependencyType_enum",
         "CUstreamBatchMemOpType_enum", "CUstreamMemoryBarrier_flags_enum", "CUsynchronizationPolicy_enum",
         "CUmoduleLoadingMode_enum", "CUfunctionLoadingState_enum")
PROTOTYPE = re.compile(r"\bCUresult\s+(cu\w+)\s*\(([^;{}]*?)\)\s*;")
TYPEDEF = re.compile(r"\btypedef\s+([^;{}()]+?)\s*(\*?)\s*\b(\w+)\s*;")
BASE = {"int": "c_int32", "unsigned int": "c_uint32", "unsigned": "c_uint32", "unsigned char": "c_uint8",
        "unsigned short": "c_uint16", "unsigned long long": "c_uint64", "unsigned long": "c_uint64",
        "long long": "c_int64", "size_t": "c_size_t", "float": "c_float", "double": "c_double", "char": "c_char",
        "cuuint32_t": "c_uint32", "cuuint64_t": "c_uint64", "uint64_t": "c_uint64", "uint32_t": "c_uint32"}
MACROS = re.compile(r"^#define\s+((?:CU|CUDA)_[A-Z0-9_]+)\s+(\S.*)$", re.M)


def preprocessed(header: str, *flags: str) -> str:
  done = subprocess.run([gcc.compiler(), "-E", "-P", *flags, header], capture_output=True, text=True)
  if done.returncode: raise Error(f"cuda.h does not preprocess: {done.stderr[:2000]}", where="tinyhw gen cuda")
  return done.stdout


def typedefs(text: str) -> dict[str, str]:
  """The ctypes class of each scalar type and handle."""
  found = dict(BASE)
  for name in re.findall(r"\btypedef\s+enum\s*\w*\s*\{[^}]*\}\s*(\w+)\s*;", text): found[name] = "c_int32"
  for _ in range(4):  # aliases of aliases
    for source, star, name in TYPEDEF.findall(text):
      source = re.sub(r"\b(const|struct)\b", "", source).strip()
      if star: found[name] = "c_void_p"
      elif source.startswith("enum"): found[name] = "c_int32"
      elif source in found: found[name] = found[source]
  for name in re.findall(r"\(\s*(?:\w+\s*)?\*\s*(CU\w+)\s*\)\s*\(", text): found[name] = "c_void_p"
  return found


def kind(text: str, known: dict[str, str], name: str) -> str | None:
  """The ctypes class of a parameter; pointers and arrays are addresses. None for a struct by value."""
  if "*" in text or "[" in text: return "c_void_p"
  words = re.sub(r"\b(const|struct|enum)\b", "", text).split()
  for spelled in (" ".join(words), " ".join(words[:-1])):
    if spelled in known: return known[spelled]
  return None


def functions(text: str, known: dict[str, str]) -> dict[str, list[str] | None]:
  """The parameters of each function, as names of ctypes classes."""
  found: dict[str, list[str] | None] = {}
  for name, parameters in PROTOTYPE.findall(text):
    kinds = [kind(p, known, name) for p in split(parameters)]
    found[name] = None if None in kinds else [k for k in kinds if k is not None]
  return found


def enums(text: str, wanted: Iterable[str], prefix: str = "CU") -> dict[str, list[str]]:
  """The members of enumerations, whose names begin alike."""
  found = {}
  for name in wanted:
    match = re.search(rf"\benum\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?{name}\s*\{{([^}}]*)\}}", text)
    if match is None: raise Error(f"CUDA's headers declare no enum {name}", where="tinyhw gen cuda")
    found[name] = [m.group(1) for m in re.finditer(rf"\b({prefix}\w+)\s*(?:=[^,}}]*)?(?:,|$|\s*$)",
                                                   match[1].strip() + ",")]
  return found


def versions(text: str, symbols: Iterable[str]) -> dict[str, list[tuple[int, str]]]:
  """The symbols of each function, with the versions of CUDA that they came with, the oldest first."""
  found: dict[str, list[tuple[int, str]]] = {}
  there = set(symbols)
  by_name: dict[str, set[int]] = {}
  for name, version in re.findall(r"\(\s*CUDAAPI\s*\*\s*PFN_(cu\w+?)_v(\d+)\s*\)", text):
    by_name.setdefault(name, set()).add(int(version))
  for name, numbers in by_name.items():
    ours = [s for s in (name, *(f"{name}_v{n}" for n in range(2, 9))) if s in there]
    if len(ours) == len(numbers): found[name] = list(zip(sorted(numbers), ours))
  return found


def values_of(names: Sequence[str], flags: Sequence[str], include: str = "#include <cuda.h>\n") -> dict[str, int]:
  return gcc.macro_values(names, include, flags)


def generate(sources: Sources) -> str:
  file = sources.find(HEADER)
  flags = [f"-I{file.path.parent}"]
  new, old = preprocessed(str(file.path)), preprocessed(str(file.path), OLD)
  listed = enums(new, ENUMS)
  macros = [n for n, body in MACROS.findall(file.text) if not body.startswith(("(CUstream", "CUstream", "\\"))]
  values = values_of([*macros, *(m for members in listed.values() for m in members)], flags)
  space = ctypes_types.read([file.path], flags)
  types = ctypes_types.collect(space, file.text)
  names = {cls: n for n, cls in types.aggregates}
  kept = chosen(types, [names[space[s]] for s in STRUCTS], HEADER)
  known = typedefs(old)
  profiler = sources.find(PROFILER)
  more = preprocessed(str(profiler.path), *flags)
  calls = functions(old, known) | functions(new, known) | functions(more, known | typedefs(more))
  pointers = sources.find(POINTERS)
  since = versions(pointers.text, calls)
  left_out = sorted(n for n, kinds in calls.items() if kinds is None)
  out = [
    head("CUDA's driver API: error codes, enumerations, structs and the signatures of its functions.",
         [(CUDA, file), (CUDA, pointers), (CUDA, profiler)],
         "tinyhw gen cuda",
         ["FUNCTIONS has a symbol's parameters as ctypes has them; all return a CUresult. Pointers and handles are",
          "addresses. VERSIONS has the symbols of a function, each with the version of CUDA that brought it.",
          "BY_VALUE are the functions that take a struct by value, whose parameters are not told."]),
    "import ctypes",
    "from ctypes import c_float, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p",
    "",
    "from tinyhw.core.layout import Struct, Union",
    "",
    *(f"{n} = {v}" if -10 < v < 10 else f"{n} = {v:#x}" for n, v in values.items()),
    "",
    "RESULTS = {",
    *dict.fromkeys(f'  {values[m]}: "{m}",' for m in listed["cudaError_enum"]),
    "}",
    *ctypes_types.Writer(kept).text(),
    *(f"{s} = {names[space[s]]}" for s in STRUCTS if names[space[s]] != s),
    "",
    "FUNCTIONS: dict[str, tuple[type, ...]] = {",
    *(f'  "{n}": ({"".join(k + ", " for k in kinds).strip()}),' for n, kinds in sorted(calls.items())
      if kinds is not None),
    "}",
    "",
    "BY_VALUE = (",
    *(f'  "{n}",' for n in left_out),
    ")",
    "",
    "VERSIONS: dict[str, tuple[tuple[int, str], ...]] = {",
    *(f'  "{n}": (' + " ".join(f'({v}, "{s}"),' for v, s in rows) + ")," for n, rows in sorted(since.items())),
    "}",
    "",
  ]
  return "\n".join(out)


FAMILY = Family("cuda", "cuda", "error codes, structs and functions of CUDA's driver API", (HEADER, POINTERS, PROFILER),
                generate)
