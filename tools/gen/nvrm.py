"""NVIDIA's resource manager (RM) and its unified memory driver (UVM): ioctls, classes, control commands, status codes.

Of the thousands of structs that RM has these are the ones that a compute driver and a mock of the kernel driver use,
with what they are made of; macros come by whole families. A range of bits (`31:0`) is a pair (hi, lo).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import ctypes_types, emit, gcc
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.kfd import value_lines
from tinyhw.tools.gen.sources import Origin, SourceFile, Sources, head

MODULES = Origin("NVIDIA/open-gpu-kernel-modules", "tag 580.142", "MIT")
SDK = "src/common/sdk/nvidia/inc"
UNIX = "src/nvidia/arch/nvalloc/unix/include"
UVM = "kernel-open/nvidia-uvm"
INCLUDES = (SDK, "src/common/inc", UNIX, "kernel-open/common/inc", UVM, "src/nvidia/generated")

DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+?)[ \t]*(?://.*|/\*.*)?$", re.M)
RANGE = re.compile(r"\(?\s*(\d+)\s*:\s*(0x[0-9a-fA-F]+|\d+)\s*\)?")


@dataclass(frozen=True)
class Escape:
  """An ioctl of nvidiactl or a GPU's node: its number's macro, its argument, and how many of them it takes."""

  macro: str
  struct: str
  copies: int = 1


ESCAPES = (
  Escape("NV_ESC_RM_ALLOC_MEMORY", "nv_ioctl_nvos02_parameters_with_fd"), Escape("NV_ESC_RM_FREE", "NVOS00_PARAMETERS"),
  Escape("NV_ESC_RM_CONTROL", "NVOS54_PARAMETERS"), Escape("NV_ESC_RM_ALLOC", "NVOS21_PARAMETERS"),
  Escape("NV_ESC_RM_ALLOC", "NVOS64_PARAMETERS"), Escape("NV_ESC_RM_DUP_OBJECT", "NVOS55_PARAMETERS"),
  Escape("NV_ESC_RM_SHARE", "NVOS57_PARAMETERS"), Escape("NV_ESC_RM_IDLE_CHANNELS", "NVOS30_PARAMETERS"),
  Escape("NV_ESC_RM_VID_HEAP_CONTROL", "NVOS32_PARAMETERS"),
  Escape("NV_ESC_RM_MAP_MEMORY", "nv_ioctl_nvos33_parameters_with_fd"),
  Escape("NV_ESC_RM_UNMAP_MEMORY", "NVOS34_PARAMETERS"), Escape("NV_ESC_RM_GET_EVENT_DATA", "NVOS41_PARAMETERS"),
  Escape("NV_ESC_RM_ALLOC_CONTEXT_DMA2", "NVOS39_PARAMETERS"), Escape("NV_ESC_RM_MAP_MEMORY_DMA", "NVOS46_PARAMETERS"),
  Escape("NV_ESC_RM_UNMAP_MEMORY_DMA", "NVOS47_PARAMETERS"), Escape("NV_ESC_RM_BIND_CONTEXT_DMA", "NVOS49_PARAMETERS"),
  Escape("NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO", "NVOS56_PARAMETERS"),
  Escape("NV_ESC_CARD_INFO", "nv_ioctl_card_info_t", 32), Escape("NV_ESC_REGISTER_FD", "nv_ioctl_register_fd_t"),
  Escape("NV_ESC_ALLOC_OS_EVENT", "nv_ioctl_alloc_os_event_t"),
  Escape("NV_ESC_FREE_OS_EVENT", "nv_ioctl_free_os_event_t"), Escape("NV_ESC_STATUS_CODE", "nv_ioctl_status_code_t"),
  Escape("NV_ESC_CHECK_VERSION_STR", "nv_ioctl_rm_api_version_t"), Escape("NV_ESC_IOCTL_XFER_CMD", "nv_ioctl_xfer_t"),
  Escape("NV_ESC_QUERY_DEVICE_INTR", "nv_ioctl_query_device_intr"),
  Escape("NV_ESC_SYS_PARAMS", "nv_ioctl_sys_params_t"),
  Escape("NV_ESC_EXPORT_TO_DMABUF_FD", "nv_ioctl_export_to_dma_buf_fd_t"),
  Escape("NV_ESC_WAIT_OPEN_COMPLETE", "nv_ioctl_wait_open_complete_t"),
)

# Control commands by interface, without its NVxxxx_CTRL_CMD_.
COMMANDS: dict[str, tuple[str, ...]] = {
  "ctrl/ctrl0000/ctrl0000system.h": ("SYSTEM_GET_BUILD_VERSION", "SYSTEM_GET_BUILD_VERSION_V2",
                                     "SYSTEM_GET_P2P_CAPS_V2", "SYSTEM_GET_P2P_CAPS_MATRIX",
                                     "SYSTEM_GET_FABRIC_STATUS", "SYSTEM_GET_CPU_INFO"),
  "ctrl/ctrl0000/ctrl0000gpu.h": ("GPU_GET_ATTACHED_IDS", "GPU_GET_PROBED_IDS", "GPU_GET_ID_INFO",
                                  "GPU_GET_ID_INFO_V2", "GPU_ATTACH_IDS", "GPU_DETACH_IDS", "GPU_GET_PCI_INFO",
                                  "GPU_GET_DEVICE_IDS", "GPU_GET_UUID_INFO", "GPU_GET_UUID_FROM_GPU_ID",
                                  "GPU_GET_MEMOP_ENABLE"),
  "ctrl/ctrl0000/ctrl0000client.h": ("CLIENT_GET_ADDR_SPACE_TYPE", "CLIENT_GET_HANDLE_INFO",
                                     "CLIENT_GET_ACCESS_RIGHTS", "CLIENT_SET_INHERITED_SHARE_POLICY",
                                     "CLIENT_GET_CHILD_HANDLE"),
  "ctrl/ctrl0000/ctrl0000unix.h": ("OS_UNIX_EXPORT_OBJECT_TO_FD", "OS_UNIX_IMPORT_OBJECT_FROM_FD",
                                   "OS_UNIX_FLUSH_USER_CACHE"),
  "ctrl/ctrl0080/ctrl0080gpu.h": ("GPU_GET_CLASSLIST", "GPU_GET_CLASSLIST_V2", "GPU_GET_NUM_SUBDEVICES",
                                  "GPU_GET_VIRTUALIZATION_MODE", "GPU_GET_SPARSE_TEXTURE_COMPUTE_MODE"),
  "ctrl/ctrl0080/ctrl0080fifo.h": ("FIFO_GET_CHANNELLIST", "FIFO_GET_CAPS_V2", "FIFO_IDLE_CHANNELS"),
  "ctrl/ctrl0080/ctrl0080fb.h": ("FB_GET_CAPS_V2",),
  "ctrl/ctrl0080/ctrl0080gr.h": ("GR_GET_CAPS_V2",),
  "ctrl/ctrl0080/ctrl0080host.h": ("HOST_GET_CAPS_V2",),
  "ctrl/ctrl0080/ctrl0080dma.h": ("DMA_ADV_SCHED_GET_VA_CAPS", "DMA_GET_PDE_INFO", "DMA_GET_PTE_INFO"),
  "ctrl/ctrl2080/ctrl2080gpu.h": ("GPU_GET_INFO_V2", "GPU_GET_NAME_STRING", "GPU_GET_SHORT_NAME_STRING",
                                  "GPU_GET_SIMULATION_INFO", "GPU_GET_GID_INFO", "GPU_GET_ENGINES",
                                  "GPU_GET_ENGINES_V2", "GPU_GET_ENGINE_CLASSLIST", "GPU_GET_ID",
                                  "GPU_QUERY_COMPUTE_MODE_RULES", "GPU_QUERY_ECC_STATUS",
                                  "GPU_GET_MAX_SUPPORTED_PAGE_SIZE", "GPU_GET_PIDS", "GPU_GET_COMPUTE_POLICY_CONFIG",
                                  "GPU_GET_IP_VERSION"),
  "ctrl/ctrl2080/ctrl2080gr.h": ("GR_GET_INFO", "GR_GET_CAPS_V2", "GR_GET_GLOBAL_SM_ORDER",
                                 "GR_GET_SM_TO_GPC_TPC_MAPPINGS", "GR_GET_CTX_BUFFER_SIZE", "GR_GET_GPC_MASK",
                                 "GR_GET_TPC_MASK", "GR_GET_CTX_BUFFER_INFO", "GR_CTXSW_PREEMPTION_BIND"),
  "ctrl/ctrl2080/ctrl2080fb.h": ("FB_GET_INFO", "FB_GET_INFO_V2"),
  "ctrl/ctrl2080/ctrl2080bus.h": ("BUS_GET_PCI_INFO", "BUS_GET_INFO_V2", "BUS_GET_PCI_BAR_INFO"),
  "ctrl/ctrl2080/ctrl2080ce.h": ("CE_GET_CAPS_V2", "CE_GET_ALL_CAPS", "CE_GET_CE_PCE_MASK"),
  "ctrl/ctrl2080/ctrl2080mc.h": ("MC_GET_ARCH_INFO", "MC_SERVICE_INTERRUPTS"),
  "ctrl/ctrl2080/ctrl2080tmr.h": ("TIMER_GET_TIME", "TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO"),
  "ctrl/ctrl2080/ctrl2080event.h": ("EVENT_SET_NOTIFICATION",),
  "ctrl/ctrl2080/ctrl2080rc.h": ("RC_READ_VIRTUAL_MEM", "RC_GET_ERROR_COUNT", "RC_GET_ERROR_V2"),
  "ctrl/ctrl2080/ctrl2080gsp.h": ("GSP_GET_FEATURES",),
  "ctrl/ctrl2080/ctrl2080fifo.h": ("FIFO_GET_CHANNEL_MEM_INFO", "FIFO_DISABLE_CHANNELS"),
  "ctrl/ctrl2080/ctrl2080nvlink.h": ("NVLINK_GET_NVLINK_CAPS",),
  "ctrl/ctrl0041.h": ("GET_SURFACE_INFO", "GET_SURFACE_PHYS_ATTR", "GET_MEM_PAGE_SIZE"),
  "ctrl/ctrl906f.h": ("GET_CLASS_ENGINEID", "RESET_CHANNEL", "GET_DEFER_RC_STATE", "GET_MMU_FAULT_INFO"),
  "ctrl/ctrla06f/ctrla06fgpfifo.h": ("GPFIFO_SCHEDULE", "BIND", "STOP_CHANNEL", "SET_ERROR_NOTIFIER"),
  "ctrl/ctrla06c.h": ("GPFIFO_SCHEDULE", "SET_TIMESLICE", "GET_TIMESLICE", "PREEMPT", "GET_INFO"),
  "ctrl/ctrlc36f.h": ("GPFIFO_GET_WORK_SUBMIT_TOKEN", "GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX"),
  "ctrl/ctrl90f1.h": ("VASPACE_GET_GMMU_FORMAT", "VASPACE_GET_PAGE_LEVEL_INFO",
                      "VASPACE_RESERVE_ENTRIES", "VASPACE_RELEASE_ENTRIES"),
  "ctrl/ctrl83de/ctrl83dedebug.h": ("DEBUG_READ_ALL_SM_ERROR_STATES", "DEBUG_CLEAR_ALL_SM_ERROR_STATES",
                                    "DEBUG_SET_EXCEPTION_MASK", "DEBUG_READ_MMU_FAULT_INFO",
                                    "SM_DEBUG_MODE_ENABLE", "SM_DEBUG_MODE_DISABLE"),
}

# Parameters of allocations, beside those of `resource_list.h` that a compute client may meet.
PARAMETERS = (
  "NV0080_ALLOC_PARAMETERS", "NV2080_ALLOC_PARAMETERS", "NV0005_ALLOC_PARAMETERS", "NV_MEMORY_ALLOCATION_PARAMS",
  "NV_OS_DESC_MEMORY_ALLOCATION_PARAMS", "NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS", "NV_VASPACE_ALLOCATION_PARAMETERS",
  "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS", "NV_CTXSHARE_ALLOCATION_PARAMETERS", "NV_CHANNEL_ALLOC_PARAMS",
  "NV_HOPPER_USERMODE_A_PARAMS", "NV_GR_ALLOCATION_PARAMETERS", "NVB0B5_ALLOCATION_PARAMETERS",
  "NV_CONTEXT_DMA_ALLOCATION_PARAMS", "NV503B_ALLOC_PARAMETERS", "NV503C_ALLOC_PARAMETERS", "NV83DE_ALLOC_PARAMETERS",
  "NV_SEMAPHORE_SURFACE_ALLOC_PARAMETERS", "NV_MEMORY_MAPPER_ALLOCATION_PARAMS", "NV2081_ALLOC_PARAMETERS",
)
CLASS_HEADERS = tuple(f"{SDK}/class/cl{c}.h" for c in (
  "0000", "0005", "0040", "0041", "003e", "0070", "0071", "0080", "2080", "2080_notification", "2081", "503b", "503c",
  "50a0", "83de", "906f", "9067", "90f1", "a06c", "a06f", "00da", "00fe", "0002", "c361", "c461", "c561",
  "c661", "c761", "c56f", "c86f", "c96f", "ca6f", "b0b5sw"))
CHIPS = ("GA100", "GA102", "AD102", "GH100", "GB100", "GB202")


def folder_of(file: SourceFile) -> str:
  """The root that a source file was found below."""
  return str(file.path)[: -len(file.name)].rstrip("/")


def flags_of(file: SourceFile) -> list[str]:
  return [f"-I{folder_of(file)}/{name}" for name in INCLUDES]


def include(names: Iterable[str]) -> str:
  """C text that includes headers by the names that they have within the SDK."""
  short = [re.sub(rf"^({'|'.join(map(re.escape, INCLUDES))})/", "", n) for n in names]
  return "".join(f'#include "{n}"\n' for n in ("nvtypes.h", *short))


def ranges(text: str, prefixes: Sequence[str]) -> dict[str, tuple[int, int]]:
  """Macros that name bits: (hi, lo); of capabilities (which byte, its mask)."""
  found = {}
  for name, body in DEFINE.findall(text):
    if name.startswith(tuple(prefixes)) and (match := RANGE.fullmatch(body)):
      found[name] = int(match[1]), int(match[2], 0)
  return found


def chosen(types: ctypes_types.Types, wanted: Iterable[str], where: str) -> ctypes_types.Types:
  """Only these aggregates and what they are made of. Raises LayoutError when the headers lack one."""
  by_name = dict(types.aggregates)
  names = {cls: name for name, cls in types.aggregates}
  kept: dict[str, object] = {}

  def keep(name: str) -> None:
    if name in kept: return
    if name not in by_name: raise LayoutError(f"the headers declare no {name}", where=where)
    for row in by_name[name]._fields_:
      inner = row[1]
      while hasattr(inner, "_length_"): inner = inner._type_
      if inner in names: keep(names[inner])
    kept[name] = by_name[name]

  for name in wanted: keep(name)
  return ctypes_types.Types([(n, c) for n, c in types.aggregates if n in kept], types.spellings, {})


@dataclass
class Facts:
  """What one module is made of: its types, the macros of these prefixes, and the text of all headers."""

  files: Sequence[SourceFile]
  types: ctypes_types.Types
  values: dict[str, int]
  bits: dict[str, tuple[int, int]]
  text: str
  same: dict[str, str]  # further names of structs


def aliases(space: Mapping[str, object], wanted: Iterable[str]) -> set[str]:
  """Further names of the aggregates of these names."""
  asked = {id(space[n]): n for n in wanted if n in space}
  return {k for k, v in space.items() if id(v) in asked and k != asked[id(v)] and not re.match("(struct|union)_", k)}


def gather(sources: Sources, headers: Sequence[str], structs: Iterable[str], prefixes: Sequence[str]) -> Facts:
  files = [sources.find(n) for n in headers]
  flags, text = flags_of(files[0]), "\n".join(f.text for f in files)
  space = ctypes_types.read([f.path for f in files], ["-include", "nvtypes.h", *flags])
  wanted = list(structs)
  # A struct with a second name is collected under that: the one that is asked for goes first.
  told = text + "".join(f"}} {n};\n" for n in wanted)  # also those that are another's name
  types = ctypes_types.collect({k: v for k, v in space.items() if k not in aliases(space, wanted)}, told)
  bits = ranges(text, prefixes)
  names = [n for n in gcc.macro_names(text) if n.startswith(tuple(prefixes)) and n not in bits]
  values = gcc.macro_values(names, include(headers), flags)
  names_of = {cls: n for n, cls in types.aggregates}
  same = {n: names_of[space[n]] for n in wanted if n in space and names_of.get(space[n], n) != n}
  return Facts(files, chosen(types, [same.get(n, n) for n in wanted], headers[0]), values, bits, text, same)


def body(facts: Facts) -> list[str]:
  """The lines of macros and types."""
  out = value_lines(facts.values)
  if facts.bits: out += ["", "# bits of flags and words: (hi, lo)"]
  out += [f"{n} = {v}" for n, v in facts.bits.items()]
  return [*out, "", *ctypes_types.Writer(facts.types).text(), *(f"{n} = {first}" for n, first in facts.same.items())]


def opening(title: str, facts: Facts, command: str, *imports: str, notes: Sequence[str] = ()) -> list[str]:
  return [head(title, [(MODULES, f) for f in facts.files], command, notes), "import ctypes", "", *imports, ""]


# *** the ioctls ***

RM_HEADERS = (f"{SDK}/nvos.h", f"{UNIX}/nv_escape.h", f"{UNIX}/nv-ioctl-numbers.h", f"{UNIX}/nv-ioctl.h",
              f"{UNIX}/nv-unix-nvos-params-wrappers.h")
RM_PREFIXES = ("NV_ESC_", "NV_IOCTL_", "NV_RM_API_VERSION_", "NV_DMABUF_", "NVOS02_", "NVOS21_", "NVOS30_", "NVOS33_",
               "NVOS34_", "NVOS46_", "NVOS47_", "NVOS54_", "NVOS55_", "NVOS57_", "NVOS64_", "NV04_DUP_HANDLE_")


def requests(sources: Sources) -> dict[str, int]:
  """Request number of each escape with its argument, as gcc has it."""
  file = sources.find(RM_HEADERS[0])
  lines = [f'  printf("%s %lu\\n", "{e.macro}:{e.struct}", (unsigned long)_IOC(_IOC_READ | _IOC_WRITE, '
           f'NV_IOCTL_MAGIC, {e.macro}, {e.copies} * sizeof({e.struct})));' for e in ESCAPES]
  text = ("#include <stdio.h>\n#include <sys/ioctl.h>\n" + include(RM_HEADERS) + "int main(void) {\n" + "\n".join(lines)
          + "\n}\n")
  return {n: int(v) for n, v in (line.split() for line in gcc.compile_and_run(text, flags_of(file)).splitlines())}


def generate_rm(sources: Sources) -> str:
  facts = gather(sources, RM_HEADERS, [e.struct for e in ESCAPES], RM_PREFIXES)
  numbers = requests(sources)
  out = opening("RM: the ioctls of /dev/nvidiactl and /dev/nvidiaN and their arguments.", facts, "tinyhw gen nv_rm",
                "from tinyhw.core.ioctl import Ioctl", "from tinyhw.core.layout import Struct, Union",
                notes=["Pairs are ranges of bits: (hi, lo). CARD_INFO takes an array of its struct."])
  out += [*body(facts), "", 'VERSION = "580.142"', "", "IOCTLS: dict[int, Ioctl] = {  # by request number"]
  out += [f'  {numbers[f"{e.macro}:{e.struct}"]:#x}: Ioctl("{e.macro}", {e.struct}),' for e in ESCAPES]
  return "\n".join([*out, "}"]) + "\n"


# *** what is allocated ***

ALLOC_HEADERS = (f"{SDK}/nvos.h", f"{SDK}/alloc/alloc_channel.h", *CLASS_HEADERS)
ALLOC_PREFIXES = ("NVOS32_", "NVOS04_", "NV_VASPACE_", "NV_CTXSHARE_", "NV_CHANNEL", "NV_SWRUNLIST", "NV0005_",
                  "NV01_EVENT_", "NV0080_", "NV2080_NOTIFIERS", "NV2080_ENGINE", "NV2080_SUBDEVICE",
                  "NVB0B5_ALLOCATION", "NV83DE_",
                  "NV503", "NV_HOPPER_USERMODE", "NVC361_",
                  "NVC661_", "NVC761_", "NVA06C_", "NV906F_", "NV_GR_",
                  "NV_MEMORY_", "NVOS03_", "NVOS05_", "NV_CONTEXT_DMA_", "NV_DEVICE_", "NV01_NULL_OBJECT",
                  "NV_SEMAPHORE_SURFACE")
RESOURCES = "src/nvidia/src/kernel/rmapi/resource_list.h"
CLASSES = "src/nvidia/generated/g_allclasses.h"
LISTS = "src/nvidia/generated/g_gpu_class_list.c"


@dataclass(frozen=True)
class Resource:
  """A class as RM knows it: the internal class, whether a parent may have several, parents, parameters."""

  name: str
  internal: str
  several: bool
  parents: tuple[str, ...]
  parameters: str
  required: bool
  privileged: bool


def arguments(text: str) -> list[str]:
  """The arguments of a macro call, split where no parenthesis is open."""
  parts, depth, start = [], 0, 0
  for i, c in enumerate(text):
    depth += (c == "(") - (c == ")")
    if c == "," and depth == 0:
      parts.append(text[start:i].strip())
      start = i + 1
  return [*parts, text[start:].strip()]


def resources(text: str) -> Iterator[Resource]:
  """The rows of RM's resource list. Parents: `client` for a root object, `any`, or internal classes."""
  for entry in re.findall(r"^RS_ENTRY\((.*?)^\)", text, re.S | re.M):
    row = arguments(re.sub(r"/\*.*?\*/", "", entry, flags=re.S))
    given = re.fullmatch(r"RS_(REQUIRED|OPTIONAL)\((\w+)\)", row[4])
    parents = tuple(re.findall(r"classId\((\w+)\)", row[3]))
    if not parents: parents = {"RS_ROOT_OBJECT": (), "RS_ANY_PARENT": ("any",)}[row[3]]
    yield Resource(row[0], row[1], row[2] == "NV_TRUE", parents, given[2] if given else "",
                   bool(given and given[1] == "REQUIRED"),
                   "RS_FLAGS_ALLOC_NON_PRIVILEGED" not in row[6] and not row[0].startswith("NV01_ROOT"))


def class_numbers(sources: Sources) -> dict[str, int]:
  """Every class that RM knows, by name."""
  file = sources.find(CLASSES)
  lines = re.findall(r"^#define\s+(\w+)\s+\(0x[0-9a-fA-F]+\)", file.text, re.M)
  return gcc.macro_values(lines, f'#include "{CLASSES.rpartition("/")[2]}"\n', flags_of(file))


def generate_alloc(sources: Sources) -> str:
  facts = gather(sources, ALLOC_HEADERS, PARAMETERS, ALLOC_PREFIXES)
  numbers = class_numbers(sources)
  files = [sources.find(n) for n in (CLASSES, RESOURCES)]
  facts = Facts([*facts.files, *files], facts.types, {**numbers, **facts.values}, facts.bits, facts.text, facts.same)
  out = opening("RM: what NV_ESC_RM_ALLOC makes: classes by name and the structs that describe new objects.", facts,
                "tinyhw gen nv_rm_alloc", "from typing import NamedTuple", "",
                "from tinyhw.core.layout import Struct, Union",
                notes=["Pairs are ranges of bits: (hi, lo). PARAMETERS has the classes whose struct is declared here."])
  out += body(facts)
  known = {r.name: r for r in resources(files[1].text) if r.parameters in PARAMETERS and r.name in numbers}
  rows: dict[int, Resource] = {}
  for r in known.values(): rows.setdefault(numbers[r.name], r)
  out += ["", "PARAMETERS: dict[int, type[Struct]] = {  # class -> the struct that RM_ALLOC takes",
          *(f"  {r.name}: {r.parameters}," for r in rows.values()), "}", ""]
  out = [line for line in out if line not in ("from typing import NamedTuple",)]
  return "\n".join(out).replace("\n\n\n\n", "\n\n\n") + "\n"


# *** which chip has what, below which parent ***


def chip_lists(text: str) -> dict[str, list[tuple[str, str]]]:
  """Chip -> (class, engine) rows in RM's order; those without an engine first, with an empty one."""
  found: dict[str, list[tuple[str, str]]] = {}
  pattern = r"^gpuGet(NoEngClassList|EngClassDescriptorList|GenericClassList)_(\w+)\(.*?^\{.*?\{\n(.*?)^    \};"
  for kind, chip, lines in re.findall(pattern, text, re.M | re.S):
    rows = found.setdefault(chip, [])
    if kind == "EngClassDescriptorList": rows += re.findall(r"\{ (\w+), ENG_(\w+(?:\(\d+\))?) \}", lines)
    else: rows += [(n, "") for n in re.findall(r"^\s+(\w+),", lines, re.M)]
  return found


def generate_chips(sources: Sources) -> str:
  files = [sources.find(n) for n in (RESOURCES, LISTS, CLASSES)]
  numbers, lists = class_numbers(sources), chip_lists(files[1].text)
  title = "RM: which classes a chip has, on which engine, and below which parents RM makes them."
  out = [head(title, [(MODULES, f) for f in files], "tinyhw gen nv_rm_chips",
              ["An internal class names objects of RM: a resource's parents are the internal classes that it may stand",
               "below; none for a client, `any` for whatever there is."]),
         "from typing import NamedTuple", "", "", "class Resource(NamedTuple):",
         '  """A class: internal class, parents, whether a parent may have several, parameters, if they are needed."""',
         "  name: str", "  internal: str", "  parents: tuple[str, ...]", "  several: bool", "  parameters: str",
         "  required: bool", "  privileged: bool", "", "", "RESOURCES: dict[int, Resource] = {  # by class"]
  seen: set[int] = set()
  for r in resources(files[0].text):
    if r.name not in numbers or numbers[r.name] in seen: continue
    seen.add(numbers[r.name])
    out.append(f'  {numbers[r.name]:#06x}: Resource("{r.name}", "{r.internal}", {_tuple(r.parents)}, {r.several}, '
               f'"{r.parameters}", {r.required}, {r.privileged}),')
  generic = [f"{numbers[n]:#06x}" for n, _ in lists["IMPL"] if n in numbers]
  out += ["}", "", "# classes of every chip, then (class, engine) of each chip, in RM's order",
          "GENERIC: tuple[int, ...] = (", *emit.wrapped(generic), ")",
          "CHIPS: dict[str, tuple[tuple[int, str], ...]] = {"]
  for chip in CHIPS:
    out.append(f'  "{chip}": (')
    out += ["  " + line for line in _rows([f'({numbers[n]:#06x}, "{e}")' for n, e in lists[chip] if n in numbers])]
    out.append("  ),")
  return "\n".join([*out, "}"]) + "\n"


def _tuple(names: Sequence[str]) -> str:
  return "(" + ", ".join(f'"{n}"' for n in names) + ("," if len(names) == 1 else "") + ")"


def _rows(items: Sequence[str]) -> list[str]:
  lines, line = [], " "
  for item in items:
    if len(line) + len(item) > 108:
      lines.append(line)
      line = " "
    line += f" {item},"
  return [*lines, line]


# *** control commands ***

CONTROL_HEADERS = tuple(f"{SDK}/{n}" for n in COMMANDS)
CONTROL_STRUCTS = ("NV2080_CTRL_GR_INFO",)  # what lists of (index, value) that pointers lead to are made of
CONTROL_PREFIXES = (
  "NV0000_CTRL_CMD_", "NV0080_CTRL_CMD_", "NV2080_CTRL_CMD_", "NV906F_CTRL_CMD_", "NVA06F_CTRL_CMD_",
  "NVA06C_CTRL_CMD_", "NVC36F_CTRL_CMD_", "NV90F1_CTRL_CMD_", "NV0041_CTRL_CMD_", "NV83DE_CTRL_CMD_",
  "NV0000_CTRL_GPU_", "NV0000_CTRL_P2P", "NV0000_CTRL_SYSTEM_GET_", "NV2080_CTRL_GPU_INFO_", "NV2080_CTRL_GR_INFO_",
  "NV2080_CTRL_FB_INFO_", "NV2080_CTRL_BUS_INFO_", "NV2080_CTRL_MC_ARCH_INFO_", "NV2080_CTRL_GPU_COMPUTE_MODE_RULES_",
  "NV2080_GPU_", "NV2080_CTRL_CE_CAPS_", "NV2080_CTRL_EVENT_SET_NOTIFICATION_", "NV2080_CTRL_GPU_GET_",
  "NV83DE_CTRL_DEBUG_",
  "NV0080_CTRL_FIFO_CAPS_", "NV0080_CTRL_GR_CAPS_", "NV0080_CTRL_HOST_CAPS_", "NV0080_CTRL_GPU_", "NV2080_CTRL_GR_",
  "NVA06F_CTRL_", "NVA06C_CTRL_", "NVC36F_CTRL_", "NV906F_CTRL_", "NV0041_CTRL_", "NV2080_CTRL_TIMER_")
COMMAND = re.compile(r"^#define\s+(NV\w{4}_CTRL_\w+)\s+\(?(0x[0-9a-fA-F]+)[uU]?\)?\s*/\* finn: Evaluated from "
                     r"\"\(+\w+ << 8\) \| (0x\w+|(\w+)_MESSAGE_ID)\)?\"", re.M)


def commands(sources: Sources) -> dict[str, str]:
  """Command -> its struct, or empty when it has none; those of COMMANDS. Raises LayoutError for one that is missing."""
  found: dict[str, str] = {}
  for path, names in COMMANDS.items():
    text = sources.find(f"{SDK}/{path}").text
    rows = {name: struct for name, _, _, struct in COMMAND.findall(text)}
    for name in names:
      match = [full for full in rows if re.fullmatch(rf"NV\w{{4}}_CTRL_(CMD_)?{name}", full)]
      if len(match) != 1: raise LayoutError(f"{len(match)} commands of the name {name}", where=path)
      found[match[0]] = rows[match[0]]
  return found


def generate_control(sources: Sources) -> str:
  calls = commands(sources)
  facts = gather(sources, CONTROL_HEADERS, [*CONTROL_STRUCTS, *(s for s in calls.values() if s)], CONTROL_PREFIXES)
  facts.values = {n: v for n, v in facts.values.items() if not n.endswith("_MESSAGE_ID")}
  out = opening("RM: control commands (NV_ESC_RM_CONTROL) and their parameters.", facts, "tinyhw gen nv_rm_control",
                "from tinyhw.core.ioctl import Ioctl", "from tinyhw.core.layout import Struct, Union",
                notes=["Pairs are ranges of bits: (hi, lo); of _CAPS_: (byte, mask). CONTROLS has the commands whose",
                       "parameters are declared here; the constants NVxxxx_CTRL_CMD_ have all of these headers."])
  out += [*body(facts), "", "CONTROLS: dict[int, Ioctl] = {  # by command"]
  out += [f'  {name}: Ioctl("{name}", {struct or None}),' for name, struct in calls.items()]
  return "\n".join([*out, "}"]) + "\n"


# *** status codes and errors of channels ***

STATUS_HEADERS = (f"{SDK}/nvstatuscodes.h", f"{SDK}/nverror.h")


def generate_status(sources: Sources) -> str:
  codes, errors = (sources.find(n) for n in STATUS_HEADERS)
  rows = re.findall(r"^NV_STATUS_CODE\((\w+),\s*(0x[0-9a-fA-F]+),\s*\"(.*?)\"\)", codes.text, re.M)
  names = [n for n in gcc.macro_names(errors.text) if n.startswith(("ROBUST_CHANNEL", "NV_"))]
  values = gcc.macro_values(names, include(STATUS_HEADERS[1:]), flags_of(errors))
  known: dict[int, str] = {}
  for n, v in values.items():
    if n.startswith("ROBUST_CHANNEL") and not n.endswith("LAST_ERROR"): known.setdefault(v, n)
  out = [head("RM: status codes, and the errors that end a channel (the numbers of Xid messages).",
              [(MODULES, codes), (MODULES, errors)], "tinyhw gen nv_rm_status"), ""]
  out += [f"{n} = {int(v, 16):#x}" for n, v, _ in rows]
  out += ["", *value_lines(values), "", "STATUS: dict[int, tuple[str, str]] = {  # code -> (name, RM's words)"]
  out += [f'  {n}: ("{n}", "{words}"),' for n, _, words in rows]
  out += ["}", "", "ERRORS: dict[int, str] = {  # Xid -> name"]
  out += [f'  {n}: "{n}",' for n in known.values()]
  return "\n".join([*out, "}"]) + "\n"


# *** UVM ***

UVM_HEADERS = (f"{UVM}/uvm_ioctl.h", f"{UVM}/uvm_linux_ioctl.h", "kernel-open/common/inc/nv_uvm_user_types.h",
               f"{UVM}/uvm_types.h")
UVM_CALL = re.compile(r"^#define\s+(UVM_[A-Z0-9_]+)\s+(?:UVM_IOCTL_BASE\(\d+\)|0x3000000\d)\s*$", re.M)
UVM_GONE = ("UVM_REGION_SET_BACKING", "UVM_REGION_UNSET_BACKING")  # no driver for Linux has them, nor does ctypeslib2


def uvm_calls(text: str) -> dict[str, str]:
  """Call -> its struct, which follows it; empty when it has none."""
  found = {}
  for match in UVM_CALL.finditer(text):
    name = match[1]
    if name in UVM_GONE: continue
    found[name] = f"{name}_PARAMS" if re.search(rf"\}}\s*{name}_PARAMS\s*;", text) else ""
  return found


def generate_uvm(sources: Sources) -> str:
  text = "\n".join(sources.find(n).text for n in UVM_HEADERS[:2])
  calls = uvm_calls(text)
  facts = gather(sources, UVM_HEADERS, [s for s in calls.values() if s], ("UVM_", "Uvm"))
  facts.bits = {}
  kinds = "MappingType|CachingType|FormatType|FormatElementBits|CompressionType"
  enums = re.findall(rf"\b(UvmGpu(?:{kinds})\w+)\s*=", facts.text)
  values = gcc.macro_values(list(dict.fromkeys(enums)), include(UVM_HEADERS), flags_of(facts.files[0]))
  facts.values = {**facts.values, **values}
  out = opening("UVM: the ioctls of /dev/nvidia-uvm; their numbers carry no size.", facts, "tinyhw gen nv_uvm",
                "from tinyhw.core.ioctl import Ioctl", "from tinyhw.core.layout import Struct, Union")
  out += [*body(facts), "", "IOCTLS: dict[int, Ioctl] = {  # by request number"]
  out += [f'  {name}: Ioctl("{name}", {struct or None}),' for name, struct in calls.items() if name in facts.values]
  return "\n".join([*out, "}"]) + "\n"


FAMILIES: Mapping[str, Family] = {f.name: f for f in (
  Family("nv_rm", "nv_rm", "ioctls of /dev/nvidiactl", RM_HEADERS, generate_rm),
  Family("nv_rm_alloc", "nv_rm_alloc", "RM's classes and what allocates them", (*ALLOC_HEADERS, CLASSES, RESOURCES),
         generate_alloc),
  Family("nv_rm_chips", "nv_rm_chips", "classes and parents by chip", (RESOURCES, LISTS, CLASSES), generate_chips),
  Family("nv_rm_control", "nv_rm_control", "RM's control commands", CONTROL_HEADERS, generate_control),
  Family("nv_rm_status", "nv_rm_status", "RM's status codes, Xid numbers", STATUS_HEADERS, generate_status),
  Family("nv_uvm", "nv_uvm", "ioctls of /dev/nvidia-uvm", UVM_HEADERS, generate_uvm))}
