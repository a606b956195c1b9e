"""Where generators find vendor files, and what a generated module says about them.

A source root is any of: an unpacked Linux tree, a checkout of GPUOpen-Drivers/pal, a folder of installed headers, or
Debian's `linux-source-*.tar.xz` itself. A file is asked for by its path inside its own project and taken from the first
root that has it.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tinyhw.core.errors import MissingTool

SOURCE_VARIABLE = "TINYHW_GEN_SOURCE"  # roots, separated by os.pathsep
ARCHIVED = ("drivers/", "include/uapi/")  # what a Linux archive is searched for: reading one takes seconds
INSTALLED = ("/usr/include", "/usr/include/libdrm", "/usr/include/llvm-19", "/usr/src/linux-source-6.12.tar.xz")


@dataclass(frozen=True)
class Origin:
  """A vendor's publication: what the head of a generated module cites."""

  project: str
  version: str
  licence: str


@dataclass(frozen=True)
class SourceFile:
  """One file of a source: `name` inside its project, `path` on this machine."""

  name: str
  path: Path

  @cached_property
  def text(self) -> str:
    return self.path.read_text(encoding="utf-8", errors="replace")

  @cached_property
  def sha256(self) -> str:
    return hashlib.sha256(self.path.read_bytes()).hexdigest()


@dataclass
class Sources:
  """The roots given by the caller, then TINYHW_GEN_SOURCE, then what distributions install."""

  given: Sequence[str | Path] = ()
  _unpacked: dict[Path, Path] = field(default_factory=dict)
  _scratch: list[tempfile.TemporaryDirectory[str]] = field(default_factory=list)

  @property
  def roots(self) -> list[Path]:
    lists = [*map(str, self.given), os.environ.get(SOURCE_VARIABLE, "")]
    named = [name for names in lists for name in names.split(os.pathsep) if name]
    return [p for p in map(Path, (*named, *INSTALLED)) if p.exists()]

  def find(self, name: str, *, wanted: Iterable[str] = ()) -> SourceFile:
    """The file `name`; `wanted` are others soon asked for, so that an archive is read once. Raises MissingTool."""
    for root in self.roots:
      if root.is_dir():
        if (root / name).is_file():
          return SourceFile(name, root / name)
      elif name.startswith(ARCHIVED) and (path := self._from_archive(root, name, wanted)) is not None:
        return SourceFile(name, path)
    raise MissingTool(
      f"source file {name} not found",
      where="tinyhw gen",
      hint=f"give its root with --source DIR or {SOURCE_VARIABLE}; searched {', '.join(map(str, self.roots))}",
    )

  def has(self, *names: str) -> bool:
    try:
      for name in names:
        self.find(name, wanted=names)
    except MissingTool:
      return False
    return True

  def prepare(self, names: Iterable[str]) -> None:
    """Take these files, as far as they exist, out of an archive in one pass."""
    archived = [name for name in names if name.startswith(ARCHIVED)]
    self.has(*archived)

  def _from_archive(self, archive: Path, name: str, wanted: Iterable[str]) -> Path | None:
    """Unpack `name` (and `wanted`) from a tar archive whose members stand below one top folder."""
    if archive not in self._unpacked:
      self._scratch.append(tempfile.TemporaryDirectory(prefix="tinyhw-gen-"))
      self._unpacked[archive] = Path(self._scratch[-1].name)
    into = self._unpacked[archive]
    marks = {n: into / "asked" / n for n in (name, *wanted)}
    missing = {n for n, mark in marks.items() if not mark.exists()}
    if missing:
      with tarfile.open(archive) as tar:
        for member in tar:
          inside = member.name.partition("/")[2]
          if inside not in missing or not member.isfile():
            continue
          stream = tar.extractfile(member)
          if stream is None:
            continue
          (into / inside).parent.mkdir(parents=True, exist_ok=True)
          (into / inside).write_bytes(stream.read())
          missing.discard(inside)
          if not missing:
            break
      for mark in marks.values():
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return into / name if (into / name).is_file() else None


def head(title: str, files: Sequence[tuple[Origin, SourceFile]], command: str, notes: Sequence[str] = ()) -> str:
  """The docstring and the imports' line that open a generated module."""
  lines = [f'"""{title}', "", "Generated; do not edit. Source:"]
  for origin in dict.fromkeys(o for o, _ in files):
    lines.append(f"  {origin.project} {origin.version}, licence {origin.licence}")
    lines += [f"    {f.name} sha256 {f.sha256}" for o, f in files if o == origin]
  lines.append(f"Generator: {command}")
  if notes:
    lines += ["", *textwrap.wrap(" ".join(notes), 118)]
  return "\n".join([*lines, '"""', "from __future__ import annotations", ""])
