"""The rooms' rule, executed: who may import whom (ARCHITECTURE.md has the picture)."""
from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LINKED = ("autogen", "emulator", "mock", "tools")
# Room -> rooms, and modules of the package itself, that it may import besides itself.
ALLOWED = {room: set(others.split()) for room, others in {
  "core": "",
  "autogen": "core",
  "wire": "core autogen",
  "isa": "core autogen",
  "ir": "core",
  "arch": "core autogen wire isa",
  "compile": "core autogen isa ir arch",
  "emulator": "core autogen isa arch",
  "emulator.uops": "core autogen isa arch ir emulator",
  "terminal": "core emulator",
  "drive": "core autogen wire arch",
  "mock": "core autogen wire arch emulator",
  "queues": "core autogen wire isa arch",
  "devices": "core autogen wire isa ir arch compile emulator drive mock queues",
  "triton": "core wire arch drive devices",
  "kernels": "core autogen wire isa arch compile emulator terminal drive devices triton",
  "toolbox": "core autogen wire emulator drive queues devices kernels",
  "bringup": "core autogen wire isa arch drive queues",
  "function": "core ir devices",
  "engine": "core ir compile emulator drive devices function",
  "tensor": "core ir drive devices function engine",
  "jit": "core ir drive devices function engine tensor",
  "nn": "core ir devices function engine tensor",
}.items()}
ROOT_OF_COMPOSITION = {"tinyhw.devices.registry", "tinyhw.devices.captured"}
OUTERMOST = {"cli", "testing", "tools"}  # may import all; nobody else imports them

FILES = {".".join(("tinyhw", *path.relative_to(top).with_suffix("").parts)).removesuffix(".__init__"): path
         for folder, top in (("tinyhw", ROOT / "tinyhw"), *((folder, ROOT) for folder in LINKED))
         for path in sorted((ROOT / folder).rglob("*.py")) if not any(p.is_symlink() for p in path.parents)}
# `import` is a keyword: outside of strings and comments it is a statement. Parsing would take ten times as long.
STATEMENT = re.compile(r"""\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*
                           |\bfrom\ +([\w.]+)\ +import\ +(\([^)]*\)|[^\n;\#]+)|\bimport\ +([^\n;\#]+)""", re.S | re.X)
FOR_TYPES = re.compile(r"^( *)if TYPE_CHECKING:\n(?:\1 +.*\n|\n)*", re.M)


class Import(NamedTuple):
  """An import of a module, wherever it stands; `runs` where it is not for types alone."""
  line: int
  module: str
  runs: bool


@cache
def imports(name: str) -> list[Import]:
  """The imports of a module, by absolute names."""
  text, package = FILES[name].read_text(), name.split(".")
  if FILES[name].name != "__init__.py": package.pop()
  blocks, found = [m.span() for m in FOR_TYPES.finditer(text)], []
  for m in STATEMENT.finditer(text):
    base, names, modules = m.groups("")
    if not base + modules: continue
    if level := len(base) - len(rest := base.lstrip(".")):
      base = ".".join([*package[:len(package) + 1 - level], *filter(None, [rest])])
    listed = [n.split()[0] for n in re.sub(r"#.*", "", names or modules).strip("()").split(",") if n.strip()]
    runs = not any(start <= m.start() < end for start, end in blocks)
    for module in listed if modules else (f"{base}.{n}" if f"{base}.{n}" in FILES else base for n in listed):
      found.append(Import(text.count("\n", 0, m.start()) + 1, module, runs))
  return found


def room_of(module: str) -> str:
  """The room of a module of the package; of one that is in none, its own name, and of the package nothing."""
  return module.split(".")[1] if "." in module else ""


def _of(prefix: str) -> list[str]: return [n for n in FILES if f"{n}.".startswith(f"{prefix}.")]


def _told(name: str, found: Import) -> str:
  return f"{FILES[name].relative_to(ROOT)}:{found.line} imports {found.module}"


@pytest.mark.parametrize("room", [*ALLOWED, ""])
def test_a_room_imports_only_rooms_below(room: str) -> None:
  """What is in no room (""), the composition, may import all but the outermost."""
  wrong, rows = [], {r for r in ALLOWED if r.startswith(f"{room}.")}
  for name in _of(f"tinyhw.{room}") if room else (n for n in FILES if room_of(n) not in {*ALLOWED, *OUTERMOST}):
    if name.removeprefix("tinyhw.") in rows: continue
    for found in imports(name):
      if found.module.split(".")[0] != "tinyhw": continue
      other = room_of(found.module)
      bad = other not in {room, *ALLOWED[room]} if room else other in OUTERMOST
      if bad: wrong.append(_told(name, found))
  assert not wrong, "\n".join(wrong)


def _circles(edges: dict[str, set[str]]) -> list[set[str]]:
  """Modules that lead to each other (strongly connected components of more than one; Kosaraju)."""
  order, seen, back = list[str](), set[str](), dict[str, set[str]]()
  for a, others in edges.items():
    for b in others: back.setdefault(b, set()).add(a)

  def reached(start: str, graph: dict[str, set[str]], done: list[str]) -> None:
    seen.add(start)
    stack = [(start, iter(graph.get(start, ())))]
    while stack:
      to = next((t for t in stack[-1][1] if t not in seen), None)
      if to is None: done.append(stack.pop()[0])
      else:
        seen.add(to)
        stack.append((to, iter(graph.get(to, ()))))
  for start in edges:
    if start not in seen: reached(start, edges, order)
  seen.clear()
  found = []
  for start in reversed(order):
    if start in seen: continue
    reached(start, back, circle := list[str]())
    if len(circle) > 1: found.append(set(circle))
  return found


def _edges(types: bool) -> dict[str, set[str]]:
  return {n: {i.module for i in imports(n) if (i.runs or types) and i.module in FILES and i.module != n} for n in FILES}


def _around(module: str, name: str) -> Iterator[str]:
  """The packages that importing a module from `name` begins: all that it lies in, and `name` does not."""
  parts = module.split(".")
  return (p for k in range(1, len(parts)) if not f"{name}.".startswith((p := ".".join(parts[:k])) + "."))


def test_no_module_is_imported_in_a_circle() -> None:
  """Of imports that run, in functions too: each module may be the first. A package runs before what it holds."""
  edges = {n: {*found, *(p for m in found for p in _around(m, n))} for n, found in _edges(types=False).items()}
  assert not [sorted(c) for c in _circles(edges)]


def test_no_circle_joins_rooms() -> None:
  """Also of imports for types; what is in no room counts as one."""
  rooms = {*ALLOWED, *OUTERMOST}
  for circle in _circles(_edges(types=True)):
    assert len({room_of(m) if room_of(m) in rooms else "" for m in circle}) == 1, sorted(circle)


def _vendors(names: Iterator[str] | list[str], vendor: str) -> str:
  return "\n".join(_told(n, found) for n in names for found in imports(n) if vendor in found.module.split("."))


@pytest.mark.parametrize(("folder", "vendor"), [(folder, vendor) for vendor in ("amdgcn", "ptx") for folder in (
  f"{'ptx' if vendor == 'amdgcn' else 'amdgcn'}", f"jit.{'ptx' if vendor == 'amdgcn' else 'amdgcn'}",
  "values", "memory")])
def test_what_both_vendors_share_is_a_room_of_its_own(folder: str, vendor: str) -> None:
  """Neither vendor's emulator imports the other's, and what they share imports neither."""
  assert not (wrong := _vendors(_of(f"tinyhw.emulator.{folder}"), vendor)), wrong


@pytest.mark.parametrize("folder", ["check", "debug"])
def test_checks_and_debugger_keep_their_vendors_apart(folder: str) -> None:
  """What lies in the folder itself imports neither vendor, and of the folders `amdgcn` and `ptx` neither the other's.

  One file may: `vendor.py`, the composition point, which imports a vendor's part when the first launch of it comes.
  """
  at = f"tinyhw.emulator.{folder}"
  for mine, other in (("amdgcn", "ptx"), ("ptx", "amdgcn")):
    shared = [n for n in _of(at) if n.count(".") <= 3 and n != f"{at}.vendor" and FILES[n].parent.name == folder]
    assert not (wrong := _vendors([*shared, *_of(f"{at}.{mine}")], other)), wrong


def test_no_name_is_shared_by_five_classes() -> None:
  owners: dict[str, list[str]] = {}
  for name, path in FILES.items():
    if room_of(name) == "autogen": continue
    for m in re.finditer(r"^ *class (\w+)", path.read_text(), re.M): owners.setdefault(m[1], []).append(name)
  assert not {k: v for k, v in owners.items() if len(v) > 4}


def test_core_needs_only_the_standard_library_and_numpy() -> None:
  for name in _of("tinyhw.core"):
    for found in imports(name):
      assert found.module.split(".")[0] in {"tinyhw", "numpy", *sys.stdlib_module_names}, _told(name, found)


def test_the_linter_reads_no_package_that_need_not_be_installed() -> None:
  """What is neither a dependency nor one of the tests' is skipped by mypy: installed or not, it says the same."""
  settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
  wanted = {re.split(r"[^\w-]", line)[0] for line in (*settings["project"]["dependencies"],
                                                      *settings["project"]["optional-dependencies"]["test"])}
  there = {name for name, owners in packages_distributions().items() if wanted & set(owners)}
  used = {i.module.split(".")[0] for name in FILES for i in imports(name)} - {"tinyhw", "tests", "__future__"}
  skipped = {name.split(".")[0] for row in settings["tool"]["mypy"]["overrides"]
             if row.get("follow_imports") == "skip" for name in row["module"]}
  assert used - there - sys.stdlib_module_names == skipped


ANY_ALIAS = re.compile(r"^ *\w+(?: *: *(?:\w+\.)?TypeAlias)? *= *(?:\w+\.)?Any\b *(?:#.*)?$|\bimport +Any +as\b", re.M)


def test_no_alias_of_any_is_in_the_emulator() -> None:
  """A value has its kind: NumPy's arrays, or the protocols of `emulator.values.ops`; what mypy refuses of them is in
  tests/emulator/refused.py, which the lint reads."""
  found = {module: m[0] for module, path in FILES.items() if module.startswith("tinyhw.emulator")
           if (m := ANY_ALIAS.search(path.read_text()))}
  assert not found, found
  assert all(map(ANY_ALIAS.search, ("Value = Any", "V = Any  # for now", "A: TypeAlias = typing.Any")))
  settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
  assert settings["strict"] and "tests.emulator.refused" in settings["modules"]


def test_only_the_composition_root_knows_of_the_mock() -> None:
  for name, path in FILES.items():
    if room_of(name) in {*LINKED, "cli", "testing"} or name in ROOT_OF_COMPOSITION: continue
    assert '"MOCKGPU"' not in path.read_text(), f"{path.relative_to(ROOT)} asks for MOCKGPU"


@pytest.mark.parametrize("folder", LINKED)
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
