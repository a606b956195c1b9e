"""HSA: AQL packets, queues, signals, the enums around them and the runtime's functions, from its headers."""

from __future__ import annotations

import re
import subprocess

from tinyhw.core.errors import Error
from tinyhw.tools.gen import ctypes_types, gcc
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.kfd import value_lines
from tinyhw.tools.gen.opencl import BASE, split
from tinyhw.tools.gen.sources import Origin, Sources, head

HSA = Origin("ROCR-Runtime (Debian libhsa-runtime-dev)", "5.2.3-3", "NCSA")
HEADERS = ("hsa/hsa.h", "hsa/amd_hsa_common.h", "hsa/amd_hsa_queue.h", "hsa/amd_hsa_signal.h", "hsa/hsa_ext_amd.h")
PROTOTYPE = re.compile(r"((?:\b\w+\s+)+\**)\s*\b(hsa_\w+)\s*\(([^;{}]*?)\)\s*;")
TYPEDEF = re.compile(r"\btypedef\s+([^;{}()]+?)\s+(\w+)\s*;")
FUNCTION = re.compile(r"\btypedef\s+[^;{}()]+\(\s*\*\s*(\w+)\s*\)")
ENUM = re.compile(r"\btypedef\s+enum\s*\w*\s*\{[^}]*\}\s*(\w+)\s*;")
HANDLE = re.compile(r"\btypedef\s+struct\s*\w*\s*\{\s*uint64_t\s+handle;\s*\}\s*(\w+)\s*;")
PLAIN = {**BASE, "int": "c_int32", "_Bool": "c_bool", "char": "c_char", "unsigned": "c_uint32"}


def include_text() -> str:
  return "".join(f"#include <{name}>\n" for name in HEADERS)


def typedefs(text: str) -> dict[str, str]:
  """The ctypes class of each type that goes by value. A struct of one handle goes as the number in it does, by the
  calling conventions of x86-64 and AArch64."""
  found = {**PLAIN, **dict.fromkeys(ENUM.findall(text), "c_int32"), **dict.fromkeys(HANDLE.findall(text), "c_uint64"),
           **dict.fromkeys(FUNCTION.findall(text), "c_void_p")}
  for source, name in TYPEDEF.findall(text):
    if source in found: found.setdefault(name, found[source])
  return found


def ctype(text: str, known: dict[str, str], name: str) -> str:
  """The ctypes class of a parameter or of a result; pointers and functions are addresses."""
  if "*" in text or "[" in text: return "c_void_p"
  words = re.sub(r"\b(const|extern|struct|enum)\b", "", text).split()
  if not words or words[0] not in known: raise Error(f"{name} has the unknown type {text!r}", where="tinyhw gen hsa")
  return known[words[0]]


def functions(text: str) -> dict[str, tuple[str, list[str]]]:
  """The result and the parameters of each function, as names of ctypes classes."""
  known = typedefs(text)
  return {name: (ctype(result, known, name), [ctype(p, known, name) for p in split(parameters) if p])
          for result, name, parameters in PROTOTYPE.findall(text) if "typedef" not in result.split()}


def preprocessed(flags: list[str]) -> str:
  done = subprocess.run([gcc.compiler(), "-E", "-P", *flags, "-"], input=include_text(), capture_output=True, text=True)
  if done.returncode: raise Error(f"HSA's headers do not preprocess: {done.stderr[:2000]}", where="tinyhw gen hsa")
  return done.stdout


def generate(sources: Sources) -> str:
  files = [sources.find(n, wanted=HEADERS) for n in HEADERS]
  flags = [f"-I{files[0].path.parents[1]}"]
  text = "\n".join(f.text for f in files)
  types = ctypes_types.collect(ctypes_types.read([f.path for f in files], flags), text)
  values = gcc.macro_values(gcc.macro_names(text), include_text(), flags)
  out = [
    head(
      "HSA: AQL packets, queues, signals, their enums, and the runtime's functions.",
      [(HSA, f) for f in files],
      "tinyhw gen hsa",
      ["Pointers are 64-bit integers. FUNCTIONS has a function's result and parameters as ctypes has them; pointers,",
       "handles and callbacks are addresses or numbers."],
    ),
    "import ctypes",
    "from ctypes import c_bool, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p",
    "from typing import Any",
    "",
    "from tinyhw.core.layout import Struct, Union",
    "",
  ]
  out += value_lines(values)
  out += ctypes_types.enum_lines(types.enums, values)
  out += ["", *ctypes_types.Writer(types).text()]
  out += ["", "FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {"]
  for name, (result, parameters) in functions(preprocessed(flags)).items():
    out.append(f'  "{name}": ({result}, ({", ".join(parameters)}{"," * (len(parameters) == 1)})),')
  out.append("}")
  return "\n".join(out) + "\n"


FAMILY = Family("hsa", "hsa", "AQL packets, queues, signals and functions of HSA", HEADERS, generate)
