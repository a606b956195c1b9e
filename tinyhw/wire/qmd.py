"""QMD, the description of a launch that NVIDIA's compute classes take: one declaration a version, exact both ways.

Versions lie apart in where fields stand and in some of their names. `read` and `write` go by the newest names and by
whole values: an address is one number, in bytes, however its bits are cut or shifted; the version decides. What a
version has not, or what does not fit, is refused.

    launch = declared(0xCBC0, (3, 0))()
    write(launch, "PROGRAM_ADDRESS", address)
    write(launch, "CONSTANT_BUFFER_ADDR", address, 0)
    words = encode(launch)
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Sequence
from typing import Any

from tinyhw.core.errors import DecodeError, EncodeError, Unsupported
from tinyhw.core.layout import Field, Packet

CLASS_IDS = (0xC6C0, 0xC7C0, 0xC9C0, 0xCBC0, 0xCDC0, 0xCEC0)
_VERSION = re.compile(r"(?a)QMDV(\d\d)_(\d\d)")
_NEWEST_NAMES = {  # what fields were called before, by their newest name; # is the number of a release or dependent
  "QMD_MINOR_VERSION": ("QMD_VERSION",),
  "GRID_WIDTH": ("CTA_RASTER_WIDTH",),
  "GRID_HEIGHT": ("CTA_RASTER_HEIGHT",),
  "GRID_DEPTH": ("CTA_RASTER_DEPTH",),
  "GRID_WIDTH_RESUME": ("CTA_RASTER_WIDTH_RESUME",),
  "GRID_HEIGHT_RESUME": ("CTA_RASTER_HEIGHT_RESUME",),
  "GRID_DEPTH_RESUME": ("CTA_RASTER_DEPTH_RESUME",),
  "REGISTER_COUNT": ("REGISTER_COUNT_V",),
  "RELEASE_SEMAPHORE_ADDR": ("RELEASE_SEMAPHORE#_ADDR", "RELEASE#_ADDRESS"),
  "RELEASE_SEMAPHORE_PAYLOAD": ("RELEASE_SEMAPHORE#_PAYLOAD", "RELEASE#_PAYLOAD"),
  "RELEASE_ENABLE": ("RELEASE#_ENABLE", "SEMAPHORE_RELEASE_ENABLE#"),
  "RELEASE_STRUCTURE_SIZE": ("RELEASE#_STRUCTURE_SIZE",),
  "RELEASE_MEMBAR_TYPE": ("RELEASE#_MEMBAR_TYPE",),
  "RELEASE_REDUCTION_ENABLE": ("RELEASE#_REDUCTION_ENABLE",),
  "RELEASE_REDUCTION_OP": ("RELEASE#_REDUCTION_OP",),
  "RELEASE_REDUCTION_FORMAT": ("RELEASE#_REDUCTION_FORMAT",),
  "RELEASE_TRAP_TYPE": ("RELEASE#_TRAP_TYPE", "RELEASE#_NON_BLOCKING_INTR_TYPE"),
  "RELEASE_PAYLOAD64B": ("RELEASE#_PAYLOAD64B",),
  "DEPENDENT_QMD_POINTER": ("DEPENDENT_QMD#_POINTER",),
  "DEPENDENT_QMD_ENABLE": ("DEPENDENT_QMD#_ENABLE",),
  "DEPENDENT_QMD_ACTION": ("DEPENDENT_QMD#_ACTION",),
  "DEPENDENT_QMD_PREFETCH": ("DEPENDENT_QMD#_PREFETCH",),
}
Piece = tuple[Field, int, int]  # a field, the value's bit where it begins, and how many of its bits it has
_PIECES: dict[tuple[type[Any], str, int | None], tuple[Piece, ...]] = {}  # a memo: (version, name, index) -> where


def version_of(declaration: type[Any]) -> tuple[int, int]:
  """(major, minor) of a declaration."""
  match = _VERSION.fullmatch(declaration.__name__)
  assert match is not None
  return int(match[1]), int(match[2])


@functools.cache
def versions(class_id: int) -> dict[tuple[int, int], type[Any]]:
  """(major, minor) -> declaration of a compute class. Raises Unsupported for a class that is not declared."""
  if class_id not in CLASS_IDS:
    raise Unsupported("compute class", f"{class_id:#06x}")
  module = importlib.import_module(f"tinyhw.autogen.nv_{class_id:04x}_qmd")
  return {version_of(v): v for v in module.VERSIONS}


def declared(class_id: int, version: tuple[int, int]) -> type[Any]:
  """The declaration of a version that a compute class has. Raises Unsupported."""
  found = versions(class_id).get(version)
  if found is None:
    named = ", ".join(f"{major}.{minor}" for major, minor in versions(class_id))
    raise Unsupported("QMD version", f"{version[0]}.{version[1]}", where=f"compute class {class_id:#06x}",
                      hint=f"it has {named}")
  return found


def encode(qmd: Packet) -> list[int]:
  """The dwords. Raises EncodeError for a value that does not fit, or a version that is not its own."""
  stated = read(qmd, "QMD_MAJOR_VERSION"), read(qmd, "QMD_MINOR_VERSION")
  if stated != version_of(type(qmd)):
    raise EncodeError(f"says version {stated[0]}.{stated[1]}", where=type(qmd).__name__)
  return qmd.encode()


def new(class_id: int, version: tuple[int, int]) -> Any:
  """An empty QMD of a version, which it says."""
  qmd = declared(class_id, version)()
  write(qmd, "QMD_MAJOR_VERSION", version[0])
  write(qmd, "QMD_MINOR_VERSION", version[1])
  return qmd


def decode(class_id: int, words: Sequence[int]) -> Any:
  """The QMD of some dwords; which version they are, they say themselves. Versions say it in other places: words that
  another version's bits make say two are of the one whose declared bits they keep to.

  Raises DecodeError for undeclared bits, another length, or words that state no version of the class.
  """
  wrong: DecodeError | None = None
  for version, declaration in versions(class_id).items():
    if len(words) < declaration.DWORDS or stated(declaration, words) != version: continue
    try:
      return declaration.decode(words[: declaration.DWORDS])
    except DecodeError as error:
      wrong = wrong or error
  if wrong is not None: raise wrong
  named = ", ".join(f"{major}.{minor}" for major, minor in versions(class_id))
  raise DecodeError(f"state no version of compute class {class_id:#06x} ({named})", where="QMD", words=words[:20])


def stated(declaration: type[Any], words: Sequence[int]) -> tuple[int, int]:
  """(major, minor) that words state where this declaration has the version's fields."""
  def value(name: str) -> int:
    (field, _, width), = pieces(declaration, name)
    return int(words[field.lo // 32]) >> field.lo % 32 & (1 << width) - 1
  return value("QMD_MAJOR_VERSION"), value("QMD_MINOR_VERSION")


# ---- whole values by the newest names


def pieces(declaration: type[Any], name: str, index: int | None = None) -> tuple[Piece, ...]:
  """Where a value lies. Raises Unsupported for a name that the version does not have."""
  key = declaration, name, index
  if (found := _PIECES.get(key)) is None:
    found = _PIECES[key] = _pieces(declaration, name, index)
  return found


def _pieces(declaration: type[Any], name: str, index: int | None) -> tuple[Piece, ...]:
  fields = {f.name: f for f in declaration.FIELDS}
  for spelled in (name, *_NEWEST_NAMES.get(name, ())):
    inside = index is not None and "#" in spelled
    base = spelled.replace("#", str(index)) if inside else spelled
    tail = "" if index is None or inside else f"_{index}"
    if found := _found(fields, base, tail):
      return found
  shown = name if index is None else f"{name}[{index}]"
  raise Unsupported("QMD field", shown, where=declaration.__name__)


def _found(fields: dict[str, Field], base: str, tail: str) -> tuple[Piece, ...]:
  shifts = ("", "_SHIFTED4", "_SHIFTED6", "_SHIFTED7", "_SHIFTED8")
  for shifted in shifts:
    at = int(shifted[-1]) if shifted else 0
    if (whole := fields.get(f"{base}{shifted}{tail}")) is not None:
      return ((whole, at, whole.width),)
    low, high = fields.get(f"{base}_LOWER{shifted}{tail}"), fields.get(f"{base}_UPPER{shifted}{tail}")
    if low is not None and high is not None:
      return (low, at, low.width), (high, at + low.width, high.width)
  return ()


def has(declaration: type[Any], name: str, index: int | None = None) -> bool:
  """Whether the version has a value of this name."""
  try:
    pieces(declaration, name, index)
  except Unsupported:
    return False
  return True


def read(qmd: Packet, name: str, index: int | None = None) -> int:
  """A whole value: addresses and sizes in bytes. Raises Unsupported for a name that the version does not have."""
  return sum(getattr(qmd, field.name) << at for field, at, _ in pieces(type(qmd), name, index))


def write(qmd: Packet, name: str, value: int, index: int | None = None) -> None:
  """Set a whole value. Raises EncodeError for one that the fields cannot hold exactly."""
  found = pieces(type(qmd), name, index)
  low, top = found[0][1], found[-1][1] + found[-1][2]
  if not 0 <= value < 1 << top or value & (1 << low) - 1:
    multiple = f", a multiple of {1 << low}" if low else ""
    raise EncodeError(f"{value:#x} does not fit {top} bits{multiple}", where=f"{type(qmd).__name__}.{found[0][0].name}")
  for field, at, width in found:
    setattr(qmd, field.name, value >> at & (1 << width) - 1)


def text(qmd: Packet) -> str:
  """The fields that are not zero, one a line."""
  lines = [f"  {field.name} = {field.show(value)}" for field, value in qmd.items() if value]
  return "\n".join([type(qmd).__name__, *lines])
