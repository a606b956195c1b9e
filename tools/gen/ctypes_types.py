"""C types by ctypeslib2 and libclang, written again as clean declarations over core.layout.Struct and Union.

ctypeslib2 writes packed structs with explicit padding. Here each keeps its natural alignment when that gives the same
offsets and size, and the packed form only when it must. Pointers become 64-bit integers: they are addresses of the GPU
or of a process, never of the interpreter.
"""

from __future__ import annotations

import ctypes
import keyword
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinyhw.core.errors import Error, MissingTool

PYTHON_VARIABLE = "TINYHW_GEN_PYTHON"  # an interpreter that has ctypeslib2, when this one does not
HINT = (
  "pip install 'tinyhw[gen]' (ctypeslib2 2.4.0, clang 18.1.8, libclang 18.1.1); "
  f"{PYTHON_VARIABLE} names another interpreter that has them"
)
LOCATE = (
  "import ctypeslib, clang.native, pathlib\nprint(pathlib.Path(list(clang.native.__path__)[0]) / 'libclang.so')"
)

ENUMS = "enums of the header"  # key of the namespace that no C name can take
ENUM = re.compile(r"^# values for enumeration '(\w+)'\n(.*?)^\1 = ctypes\.\w+ # enum", re.M | re.S)
PLAIN: dict[Any, str] = {
  ctypes.c_uint8: "c_uint8", ctypes.c_int8: "c_int8", ctypes.c_uint16: "c_uint16", ctypes.c_int16: "c_int16",
  ctypes.c_uint32: "c_uint32", ctypes.c_int32: "c_int32", ctypes.c_uint64: "c_uint64", ctypes.c_int64: "c_int64",
  ctypes.c_bool: "c_bool", ctypes.c_char: "c_char", ctypes.c_float: "c_float", ctypes.c_double: "c_double",
}  # fmt: skip


@dataclass
class Types:
  """What a header declares: aggregates in order of dependence, with their names in C, and enums."""

  aggregates: list[tuple[str, Any]] = field(default_factory=list)  # Python name, ctypes class
  spellings: dict[str, str] = field(default_factory=dict)  # Python name -> C spelling, anonymous ones left out
  enums: dict[str, dict[str, int]] = field(default_factory=dict)


def gcc_include() -> list[str]:
  """gcc's own headers (stddef.h and so on), which libclang's wheel lacks."""
  done = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True)
  return [f"-I{done.stdout.strip()}"] if done.returncode == 0 else []


def read(headers: Sequence[Path], flags: Sequence[str]) -> dict[str, Any]:
  """The namespace of the module that ctypeslib2 writes for what these C headers themselves declare."""
  python = os.environ.get(PYTHON_VARIABLE, sys.executable)
  located = subprocess.run([python, "-W", "ignore", "-c", LOCATE], capture_output=True, text=True)
  if located.returncode:
    raise MissingTool("ctypeslib2 and libclang are needed for C types", where="tinyhw gen", hint=HINT)
  with tempfile.TemporaryDirectory(prefix="tinyhw-gen-") as folder:
    out = Path(folder) / "out.py"
    command = [
      python,
      "-W",
      "ignore",
      "-c",
      "from ctypeslib.clang2py import main; import sys; sys.exit(main(sys.argv[1:]))",
      "-k",
      "cdefstu",
      f"--clang-args={' '.join([*flags, *gcc_include()])}",
      *map(str, headers),
      "-o",
      str(out),
    ]
    environment = os.environ | {"CLANG_LIBRARY_PATH": located.stdout.strip()}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    text = out.read_text() if out.exists() else ""
    if done.returncode or "_fields_" not in text:
      raise Error(f"ctypeslib2 failed: {done.stderr[-2000:]}", where="tinyhw gen")
  namespace: dict[str, Any] = {"__name__": "ctypeslib_output"}
  exec(compile(text, "<ctypeslib2>", "exec"), namespace)
  namespace[ENUMS] = {
    name: {n: int(v) for n, v in re.findall(r"^(\w+) = (-?\d+)", body, re.M)} for name, body in ENUM.findall(text)
  }
  return namespace


def is_aggregate(value: object) -> bool:
  return (
    isinstance(value, type) and issubclass(value, (ctypes.Structure, ctypes.Union)) and hasattr(value, "_fields_")
  )


def collect(namespace: dict[str, Any], header_text: str) -> Types:
  """The aggregates and enums that `header_text` itself declares, with those they are made of."""
  types = Types()
  by_class: dict[Any, str] = {}
  typedefs = {v: k for k, v in namespace.items() if is_aggregate(v) and not re.match(r"(struct|union)_", k)}

  def visit(cls: Any) -> None:
    if cls in by_class:
      return
    for row in cls._fields_:
      inner = row[1]
      while hasattr(inner, "_length_"):
        inner = inner._type_
      if is_aggregate(inner):
        visit(inner)
    tag = re.sub(r"^(struct|union)_", "", cls.__name__)
    name = typedefs.get(cls, tag)
    by_class[cls] = name
    types.aggregates.append((name, cls))
    if cls in typedefs:
      types.spellings[name] = name
    elif re.search(rf"\b(struct|union)\s+{tag}\b", header_text):
      types.spellings[name] = cls.__name__.replace("_", " ", 1)

  for key, value in list(namespace.items()):
    if not is_aggregate(value):
      continue
    tag = re.sub(r"^(struct|union)_", "", key)
    if re.search(rf"\b(struct|union)\s+{tag}\s*\{{|\}}[^;{{}}]*\b{tag}\s*;", header_text):
      visit(value)
  for name, members in namespace[ENUMS].items():
    if any(re.search(rf"\b{m}\b", header_text) for m in members):
      types.enums[name] = members
  return types


def natural(cls: Any) -> bool:
  """Whether the fields without padding, naturally aligned, have the offsets and the size that C gives."""
  rows = [row for row in cls._fields_ if not row[0].startswith("PADDING_")]
  base = ctypes.Union if issubclass(cls, ctypes.Union) else ctypes.Structure
  plain: Any = type("Plain", (base,), {"_fields_": [(row[0], _width(row[1]), *row[2:]) for row in rows]})
  return ctypes.sizeof(plain) == ctypes.sizeof(cls) and all(
    getattr(plain, row[0]).offset == getattr(cls, row[0]).offset for row in rows if len(row) == 2
  )


def _width(kind: Any) -> Any:
  """A stand-in with the alignment that the type has in C: for an aggregate, that of its widest member."""
  if hasattr(kind, "_length_"):
    return _width(kind._type_) * kind._length_
  if isinstance(kind, type) and issubclass(kind, (ctypes.Structure, ctypes.Union)):
    if not natural(kind):
      return kind
    rows = [(r[0], _width(r[1]), *r[2:]) for r in kind._fields_ if not r[0].startswith("PADDING_")]
    base = ctypes.Union if issubclass(kind, ctypes.Union) else ctypes.Structure
    return type("Plain", (base,), {"_fields_": rows})
  return kind if kind in PLAIN else ctypes.c_uint64


def safe(name: str) -> str:
  """A field's name; one that Python keeps for itself gets an underscore."""
  return name + "_" if keyword.iskeyword(name) else name


class Writer:
  """Text of the aggregates."""

  def __init__(self, types: Types) -> None:
    self.names = {cls: name for name, cls in types.aggregates}
    self.types = types

  def kind(self, kind: Any) -> str:
    if hasattr(kind, "_length_"):
      return f"{self.kind(kind._type_)} * {kind._length_}"
    if kind in self.names:
      return self.names[kind]
    return f"ctypes.{PLAIN.get(kind, 'c_uint64')}"

  def annotation(self, kind: Any) -> str:
    if hasattr(kind, "_length_"):
      return "bytes" if kind._type_ is ctypes.c_char else f"ctypes.Array[{self.element(kind._type_)}]"
    if kind in self.names:
      return self.names[kind]
    return {ctypes.c_bool: "bool", ctypes.c_char: "bytes", ctypes.c_float: "float", ctypes.c_double: "float"}.get(
      kind, "int"
    )

  def element(self, kind: Any) -> str:
    if hasattr(kind, "_length_"):
      return f"ctypes.Array[{self.element(kind._type_)}]"
    return self.kind(kind)

  def aggregate(self, name: str, cls: Any) -> str:
    packed = not natural(cls)
    rows = [row for row in cls._fields_ if packed or not row[0].startswith("PADDING_")]
    anonymous = tuple(getattr(cls, "_anonymous_", ()))
    lines = [
      f"class {name}({'Union' if issubclass(cls, ctypes.Union) else 'Struct'}):",
      f'  """{ctypes.sizeof(cls)} bytes."""',
    ]
    for row in rows:
      if row[0].startswith("PADDING_"):
        continue
      if row[0] in anonymous:
        lines += [
          f"  {safe(inner[0])}: {self.annotation(inner[1])}"
          for inner in row[1]._fields_
          if not inner[0].startswith("PADDING_")
        ]
      else:
        lines.append(f"  {safe(row[0])}: {self.annotation(row[1])}")
    if packed:
      lines.append("  _pack_ = 1")
    if anonymous:
      lines.append(f"  _anonymous_ = {anonymous!r}")
    lines.append("  _fields_ = [")
    lines += [f'    ("{safe(row[0])}", {self.kind(row[1])}{"".join(f", {w}" for w in row[2:])}),' for row in rows]
    return "\n".join([*lines, "  ]"]) + "\n"

  def text(self) -> list[str]:
    return ["\n" + self.aggregate(name, cls) for name, cls in self.types.aggregates]


def enum_lines(enums: dict[str, dict[str, int]], taken: Iterable[str]) -> list[str]:
  """Enum members as module constants, and ENUMS, which names a value."""
  taken, out = set(taken), []
  for name, members in enums.items():
    out += ["", f"# enum {name}" if not name.startswith("c__E") else "# an enum without a name"]
    out += [f"{k} = {v}" if -10 < v < 10 else f"{k} = {v:#x}" for k, v in members.items() if k not in taken]
  out += ["", "ENUMS: dict[str, dict[str, int]] = {  # enum -> member -> value"]
  for name, members in enums.items():
    if not name.startswith("c__E"):
      out.append(f'  "{name}": {{' + ", ".join(f'"{k}": {v}' for k, v in members.items()) + "},")
  return [*out, "}"]
