"""HSA: AQL packets, queues, signals and the enums around them, from the HSA runtime's headers."""

from __future__ import annotations

from tinyhw.tools.gen import ctypes_types, gcc
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.kfd import value_lines
from tinyhw.tools.gen.sources import Origin, Sources, head

HSA = Origin("ROCR-Runtime (Debian libhsa-runtime-dev)", "5.2.3-3", "NCSA")
HEADERS = ("hsa/hsa.h", "hsa/amd_hsa_common.h", "hsa/amd_hsa_queue.h", "hsa/amd_hsa_signal.h", "hsa/hsa_ext_amd.h")


def include_text() -> str:
  return "".join(f"#include <{name}>\n" for name in HEADERS)


def generate(sources: Sources) -> str:
  files = [sources.find(n, wanted=HEADERS) for n in HEADERS]
  flags = [f"-I{files[0].path.parents[1]}"]
  text = "\n".join(f.text for f in files)
  types = ctypes_types.collect(ctypes_types.read([f.path for f in files], flags), text)
  values = gcc.macro_values(gcc.macro_names(text), include_text(), flags)
  out = [
    head(
      "HSA: AQL packets, queues, signals and their enums.",
      [(HSA, f) for f in files],
      "tinyhw gen hsa",
      ["Pointers are 64-bit integers."],
    ),
    "import ctypes",
    "",
    "from tinyhw.core.layout import Struct, Union",
    "",
  ]
  out += value_lines(values)
  out += ctypes_types.enum_lines(types.enums, values)
  out += ["", *ctypes_types.Writer(types).text()]
  return "\n".join(out) + "\n"


FAMILY = Family("hsa", "hsa", "AQL packets, queues and signals of HSA", HEADERS, generate)
