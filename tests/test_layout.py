"""The rooms' rule, executed: who may import whom (ARCHITECTURE.md has the picture)."""
from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = sorted((ROOT / "tests").rglob("*.py"))
# room -> rooms that it may import besides itself
ALLOWED: dict[str, set[str]] = {
  "core": set(),
  "autogen": {"core"},
  "wire": {"core", "autogen"},
  "isa": {"core", "autogen"},
  "ir": {"core"},
  "arch": {"core", "autogen", "wire", "isa"},
  "compile": {"core", "autogen", "isa", "ir", "arch"},
  "emulator": {"core", "autogen", "isa", "arch"},
  "emulator.uops": {"core", "autogen", "isa", "arch", "ir"},
  "drive": {"core", "autogen", "wire", "arch"},
  "mock": {"core", "autogen", "wire", "arch", "emulator"},
  "queues": {"core", "autogen", "wire", "isa", "arch"},
}
FOLDERS = {
  "core": "tinyhw/core", "autogen": "autogen", "wire": "tinyhw/wire", "isa": "tinyhw/isa", "ir": "tinyhw/ir",
  "arch": "tinyhw/arch", "compile": "tinyhw/compile", "emulator": "emulator", "drive": "tinyhw/drive", "mock": "mock",
  "queues": "tinyhw/queues",
}


def imports(path: Path) -> list[tuple[int, str]]:
  """(line, absolute module) of each import in a file, also those inside functions."""
  found = []
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.Import): found += [(node.lineno, a.name) for a in node.names]
    elif isinstance(node, ast.ImportFrom):
      base = node.module or ""
      found += [(node.lineno, f"{base}.{a.name}") for a in node.names] if base == "tinyhw" else [(node.lineno, base)]
  return found


@pytest.mark.parametrize("room", FOLDERS)
def test_a_room_imports_only_rooms_below(room: str) -> None:
  wrong = []
  for path in sorted((ROOT / FOLDERS[room]).rglob("*.py")):
    allowed = ALLOWED["emulator.uops"] if path == ROOT / "emulator/uops.py" else ALLOWED[room]
    for line, module in imports(path):
      parts = module.split(".")
      if parts[0] == "tinyhw" and len(parts) > 1 and parts[1] != room and parts[1] not in allowed:
        wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
  assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("folder", "vendor"), [(folder, vendor) for vendor in ("amdgcn", "ptx") for folder in (
  f"emulator/{'ptx' if vendor == 'amdgcn' else 'amdgcn'}", f"emulator/jit/{'ptx' if vendor == 'amdgcn' else 'amdgcn'}",
  "emulator/values", "emulator/memory")])
def test_what_both_vendors_share_is_a_room_of_its_own(folder: str, vendor: str) -> None:
  """Neither vendor's emulator imports the other's, and what they share imports neither."""
  wrong = [f"{path.relative_to(ROOT)}:{line} imports {module}" for path in (ROOT / folder).rglob("*.py")
           for line, module in imports(path) if vendor in module.split(".")]
  assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", ["check", "debug"])
def test_checks_and_debugger_keep_their_vendors_apart(folder: str) -> None:
  """What lies in the folder itself imports neither vendor, and of the folders `amdgcn` and `ptx` neither the other's.

  One file may: `vendor.py`, the composition point, which imports a vendor's part when the first launch of it comes.
  """
  at = ROOT / "emulator" / folder
  shared = [(path, vendor) for path in at.glob("*.py") if path.name != "vendor.py" for vendor in ("amdgcn", "ptx")]
  own = [(path, other) for mine, other in (("amdgcn", "ptx"), ("ptx", "amdgcn")) for path in (at / mine).rglob("*.py")]
  wrong = [f"{path.relative_to(ROOT)}:{line} imports {module}" for path, vendor in shared + own
           for line, module in imports(path) if vendor in module.split(".")]
  assert not wrong, "\n".join(wrong)


def _circles(edges: dict[str, set[str]]) -> list[list[str]]:
  """Circles of imports: for each module one that leads back to it, if there is any."""
  found = []
  for start in edges:
    came: dict[str, str] = {}
    stack = [start]
    while stack and start not in came:
      at = stack.pop()
      for to in edges.get(at, set()) - came.keys():
        came[to] = at
        stack.append(to)
    if start in came:
      way = [start]
      while (before := came[way[-1]]) != start: way.append(before)
      found.append(way[::-1])
  return found


@pytest.mark.parametrize("folder", ["tinyhw/engine", "tinyhw/drive", "tinyhw/compile", "tinyhw/ir", "tinyhw/core"])
def test_no_module_of_a_room_is_imported_in_a_circle(folder: str) -> None:
  """Also inside functions and for types; `device` and `variable` count to the engine."""
  files = [f for f in (ROOT / folder).rglob("*.py") if f.name != "__init__.py"]
  if folder.endswith("engine"): files += [ROOT / "tinyhw/device.py", ROOT / "tinyhw/variable.py"]
  names = {".".join(f.relative_to(ROOT).with_suffix("").parts): f for f in files}
  assert not _circles({n: {m for _, m in imports(f) if m in names and m != n} for n, f in names.items()})


def test_core_needs_only_the_standard_library_and_numpy() -> None:
  for path in (ROOT / "tinyhw/core").glob("*.py"):
    for line, module in imports(path):
      top = module.split(".")[0]
      assert top in {"tinyhw", "numpy"} or top in sys.stdlib_module_names, f"{path.name}:{line} imports {module}"


def test_only_the_composition_root_knows_of_the_mock() -> None:
  for path in sorted((ROOT / "tinyhw").rglob("*.py")):
    if any(p.is_symlink() for p in path.parents): continue
    if path.relative_to(ROOT).parts[1] in {"device.py", "recorded.py", "cli", "testing"}: continue
    assert '"MOCKGPU"' not in path.read_text(), f"{path.relative_to(ROOT)} asks for MOCKGPU"


@pytest.mark.parametrize("folder", ["autogen", "emulator", "mock", "tools"])
def test_a_linked_folder_refuses_its_bare_name(folder: str) -> None:
  done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode != 0 and f"import it as tinyhw.{folder}" in done.stderr
  assert (ROOT / "tinyhw" / folder).readlink() == Path("..") / folder


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
  """What runs of `node` when its module is imported: all but the bodies of functions and lambdas."""
  if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
    for part in (*node.decorator_list, *node.args.defaults): yield from _at_import(part)
  elif not isinstance(node, ast.Lambda):
    yield node
    for part in ast.iter_child_nodes(node): yield from _at_import(part)


def test_no_tensor_outlives_its_test() -> None:
  """A tensor of a module has memory from the first test that reads it until another closes the device: it would hold
  or be lost by the order in which tests run."""
  for path in TESTS:
    if "Tensor" not in (text := path.read_text()): continue
    for call in _at_import(ast.parse(text)):
      assert not isinstance(call, ast.Call) or ast.unparse(call.func).split(".")[0] != "Tensor", (
        f"{path}:{call.lineno} makes a tensor when it is imported; make it in a function")
