"""Compiled code is kept under a digest of the sources that decide it: all that its translators import, room by room."""
from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tinyhw
from tinyhw.emulator.jit import store
from tinyhw.emulator.jit.ptx.module import code

ROOT = Path(tinyhw.__file__).parent
ROOMS = ("emulator", "isa", "autogen", "arch")  # what lies in others carries out, or keeps, what these decide


def imported(path: Path) -> set[str]:
  """The package's files that one imports, relative to it, of these rooms."""
  out = set()
  for node in ast.walk(ast.parse(path.read_text())):
    if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tinyhw."): continue
    module = str(node.module).removeprefix("tinyhw.").replace(".", "/")
    if module.split("/")[0] not in ROOMS: continue
    for name in [module] if (ROOT / f"{module}.py").exists() else [f"{module}/{a.name}" for a in node.names]:
      out.add(f"{name}.py" if (ROOT / f"{name}.py").exists() else f"{module}/__init__.py")
  return out


@pytest.mark.parametrize(("sources", "folders"), [
  (store._SOURCES, ("emulator/jit", "emulator/jit/amdgcn")), (code.SOURCES, ("emulator/jit", "emulator/jit/ptx"))],
  ids=["amdgcn", "ptx"])
def test_a_change_of_what_decides_code_is_a_change_of_the_digest(sources: tuple[str, ...],
                                                                 folders: tuple[str, ...]) -> None:
  covered = {str(p.relative_to(ROOT)) for pattern in sources for p in ROOT.glob(pattern)}
  for folder in folders:
    for path in sorted((ROOT / folder).glob("*.py" if folder == "emulator/jit" else "**/*.py")):
      assert imported(path) <= covered, path.name
