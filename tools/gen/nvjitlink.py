"""The functions that libraries call which were linked with libnvJitLink, from nvJitLink.h."""

from __future__ import annotations

import re

from tinyhw.tools.gen.cuda import values_of
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.sources import Origin, Sources, head

NVJITLINK = Origin("NVIDIA nvJitLink 13.0", "13.0.88", "NVIDIA CUDA Toolkit EULA; names and numbers only")
HEADER = "include/nvJitLink.h"
PROTOTYPE = re.compile(r"\bextern\s+nvJitLinkResult\s+(__nvJitLink\w+)\s*\(")
RESULTS = ("NVJITLINK_ERROR_INTERNAL",)


def generate(sources: Sources) -> str:
  file = sources.find(HEADER)
  values = values_of(RESULTS, [f"-I{file.path.parent}"], "#include <nvJitLink.h>\n")
  return "\n".join([
    head("The functions of NVIDIA's linker by the names that a program's linker sees.", [(NVJITLINK, file)],
         "tinyhw gen nvjitlink", ["The header's functions call these, which have the version in their names."]),
    *(f"{n} = {v}" for n, v in values.items()),
    "",
    "FUNCTIONS: tuple[str, ...] = (",
    *(f'  "{n}",' for n in sorted(set(PROTOTYPE.findall(file.text)))),
    ")",
    "",
  ])


FAMILY = Family("nvjitlink", "nvjitlink", "functions of NVIDIA's linker", (HEADER,), generate)
