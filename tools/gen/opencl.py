"""OpenCL: constants, error codes and the signatures of its functions, from Khronos' headers."""

from __future__ import annotations

import re

from tinyhw.core.errors import Error
from tinyhw.tools.gen import gcc
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.kfd import value_lines
from tinyhw.tools.gen.sources import Origin, Sources, head

OPENCL = Origin("OpenCL-Headers (Debian opencl-c-headers)", "3.0~2023.02.06-1", "Apache-2.0")
HEADERS = ("CL/cl.h", "CL/cl_platform.h", "CL/cl_version.h")
PREFIX = "#define CL_TARGET_OPENCL_VERSION 300\n#include <CL/cl.h>\n"
BASE = {"size_t": "c_size_t", "intptr_t": "c_ssize_t", "void": "None",
        **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}
PROTOTYPE = re.compile(r"^extern\s+CL_API_ENTRY\s+(?:CL_API_PREFIX\w+\s+)?([\w\s*]+?)\s*CL_API_CALL\s+"
                       r"(cl\w+)\s*\(([^;]*)\)\s*CL_API_SUFFIX\w+;", re.M)
TYPEDEF = re.compile(r"^typedef\s+(\w+(?:\s+\w+)?\s*\*?)\s*(cl_\w+);", re.M)


def typedefs(text: str) -> dict[str, str]:
  """The ctypes class of each scalar type and handle."""
  found = dict(BASE)
  for source, name in TYPEDEF.findall(text):
    if source.rstrip().endswith("*"):
      found.setdefault(name, "c_void_p")
    elif source.strip() in found:
      found.setdefault(name, found[source.strip()])
  return found


def ctype(text: str, known: dict[str, str], name: str) -> str:
  """The ctypes class of a parameter or of a result; pointers and functions are addresses."""
  if "*" in text or "[" in text or "CL_CALLBACK" in text:
    return "c_void_p"
  word = text.replace("const", "").split()[0]
  if word not in known:
    raise Error(f"{name} has a parameter of the unknown type {word!r}", where="tinyhw gen opencl")
  return known[word]


def split(parameters: str) -> list[str]:
  """Parameters at the outermost commas."""
  parts, depth = [""], 0
  for c in parameters:
    depth += (c == "(") - (c == ")")
    if c == "," and not depth:
      parts.append("")
    else:
      parts[-1] += c
  return [p.strip() for p in parts if p.strip() != "void"]


def functions(text: str, known: dict[str, str]) -> dict[str, tuple[str, list[str]]]:
  """The result and the parameters of each function, as names of ctypes classes."""
  return {
    name: (ctype(result, known, name), [ctype(p, known, name) for p in split(parameters)])
    for result, name, parameters in PROTOTYPE.findall(text)
  }


def generate(sources: Sources) -> str:
  files = [sources.find(n) for n in HEADERS]
  flags = [f"-I{files[0].path.parents[1]}"]
  text, platform = files[0].text, files[1].text
  values = gcc.macro_values([n for n in gcc.macro_names(text) if n.startswith("CL_")], PREFIX, flags)
  start, end = text.index("/* Error Codes */"), text.index("/* cl_bool */")
  errors = [n for n in gcc.macro_names(text[start:end]) if n in values]
  out = [
    head(
      "OpenCL: constants, error codes and the signatures of its functions.",
      [(OPENCL, f) for f in files],
      "tinyhw gen opencl",
      ["FUNCTIONS has a function's result and parameters as ctypes has them. Pointers, handles and callbacks are",
       "addresses."],
    ),
    "from ctypes import c_int32, c_size_t, c_ssize_t, c_uint32, c_uint64, c_void_p",
    "",
    *value_lines(values),
    "",
    "ERRORS = {",
    *(f'  {values[n]}: "{n}",' for n in errors),
    "}",
    "",
    "FUNCTIONS = {",
  ]
  known = typedefs(platform + text)
  for name, (result, parameters) in functions(text, known).items():
    listed = ", ".join(parameters) + ("," if len(parameters) == 1 else "")
    out.append(f'  "{name}": ({result}, ({listed})),')
  return "\n".join([*out, "}", ""])


FAMILY = Family("opencl", "opencl", "constants, errors and functions of OpenCL", HEADERS, generate)
