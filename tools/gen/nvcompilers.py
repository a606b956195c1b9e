"""NVIDIA's compilers as libraries: nvrtc's and nvJitLink's codes and the signatures of their functions."""

from __future__ import annotations

import re

from tinyhw.tools.gen.cuda import BASE, enums, kind, preprocessed, values_of
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.opencl import split
from tinyhw.tools.gen.sources import Origin, Sources, head

LICENCE = "NVIDIA CUDA Toolkit EULA; names and numbers only"
VERSION = "13.5.37"
NVRTC = Origin("NVIDIA nvrtc 13.5, PyPI's nvidia-cuda-nvrtc", VERSION, LICENCE)
NVJITLINK = Origin("NVIDIA nvJitLink 13.5, PyPI's nvidia-nvjitlink", VERSION, LICENCE)
RTC_HEADER, LINK_HEADER = "include/nvrtc.h", "include/nvJitLink.h"
RTC_TYPES = BASE | {"nvrtcProgram": "c_void_p", "nvrtcResult": "c_int32"}
LINK_TYPES = BASE | {"nvJitLinkHandle": "c_void_p", "nvJitLinkInputType": "c_int32"}


def signatures(text: str, result: str, known: dict[str, str]) -> dict[str, list[str]]:
  """The parameters of each function that returns `result`, as names of ctypes classes."""
  found = {}
  for name, parameters in re.findall(rf"\b{result}\s+(_*nv\w+)\s*\(([^;{{}}]*?)\)\s*;", text):
    kinds = [kind(p, known, name) for p in ([] if parameters.strip() == "void" else split(parameters))]
    if None not in kinds: found[name] = [k for k in kinds if k is not None]
  return found


def module(title: str, origin: Origin, sources: Sources, header: str, results: tuple[str, str], more: dict[str, str],
           known: dict[str, str], notes: list[str]) -> str:
  """A module of a header. `results`: what functions return, and its members' prefix; `more` has others."""
  file = sources.find(header)
  flags = ["-DNVJITLINK_NO_INLINE"]
  text = preprocessed(str(file.path), *flags)
  name, prefix = results
  for alias, members in re.findall(r"\btypedef\s+enum\s*(?:\w+\s*)?\{([^}]*)\}\s*(\w+)\s*;", text):
    text += f"\nenum {members} {{{alias}}};"  # `enums` looks for tags
  listed = {n: enums(text, [n], p)[n] for n, p in {name: prefix, **more}.items()}
  values = values_of([m for members in listed.values() for m in members], [*flags, f"-I{file.path.parent}"],
                     f"#include <{file.path.name}>\n")
  calls = {n: k for n, k in signatures(text, name, known).items() if not n.startswith("__")}
  kinds = sorted({k for row in calls.values() for k in row})
  return "\n".join([
    head(title, [(origin, file)], f"tinyhw gen {file.path.stem.lower()}", notes),
    f"from ctypes import {', '.join(kinds)}",
    "",
    *(f"{n} = {v}" if -10 < v < 10 else f"{n} = {v:#x}" for n, v in values.items()),
    "",
    *(f"VERSION = ({', '.join(v)})" for v in sorted(set(re.findall(r"\b__nv\w+Create_(\d+)_(\d+)\s*\(", text)))),
    "",
    "RESULTS = {",
    *dict.fromkeys(f'  {values[m]}: "{m}",' for m in listed[name]),
    "}",
    "",
    "FUNCTIONS: dict[str, tuple[type, ...]] = {",
    *(f'  "{n}": ({"".join(k + ", " for k in row).strip()}),' for n, row in sorted(calls.items())),
    "}",
    "",
  ])


def nvrtc(sources: Sources) -> str:
  return module("nvrtc, which compiles CUDA C++ in a process: results and the signatures of its functions.", NVRTC,
                sources, RTC_HEADER, ("nvrtcResult", "NVRTC_"), {}, RTC_TYPES,
                ["FUNCTIONS has a function's parameters as ctypes has them; all return an nvrtcResult."])


def nvjitlink(sources: Sources) -> str:
  return module("nvJitLink, which links PTX and cubins in a process: results, inputs and signatures.", NVJITLINK,
                sources, LINK_HEADER, ("nvJitLinkResult", "NVJITLINK_"), {"nvJitLinkInputType": "NVJITLINK_"},
                LINK_TYPES,
                ["FUNCTIONS has a function's parameters as ctypes has them; all return an nvJitLinkResult. The library",
                 "exports each with the version that a program was made for behind its name (__nvJitLinkCreate_13_5),",
                 "but for nvJitLinkVersion. VERSION is the header's own."])


FAMILIES = {
  "nvrtc": Family("nvrtc", "nvrtc", "results and functions of nvrtc", (RTC_HEADER,), nvrtc),
  "nvjitlink": Family("nvjitlink", "nvjitlink", "results, inputs and functions of nvJitLink", (LINK_HEADER,),
                      nvjitlink),
}
