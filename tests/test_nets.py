"""What the package catches: wide nets are few and reviewed, so that no fault of its own is told as the user's."""
from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import tinyhw

ROOT: Final = Path(tinyhw.__file__).parent
# What Python raises at a mistake in the code itself. What is wrong outside: ValueError, OSError, RuntimeError, ...
OWN: Final = frozenset({"Exception", "BaseException", "AssertionError", "AttributeError", "TypeError", "NameError",
                        "StopIteration", "IndexError", "UnboundLocalError"})
ONE: Final = "one look-up or call is tried, and its error is what it says"
DATA: Final = "a foreign reader, or data of any form: what it raises is of the data"
C: Final = "nothing is raised out of a function that C calls: it is told after the call"
# (file, function) -> why no mistake of the code's own is hidden there.
REVIEWED: Final = {
  ("cli/native.py", "_copies"): ONE,
  ("cli/native.py", "run"): ONE,
  ("cli/children.py", "say"): "there may be no second descriptor to write to",
  ("cli/children.py", "tell"): "a program may have closed its output, or put another in its place",
  ("cli/files.py", "load"): DATA,
  ("compile/compiler.py", "compile_ahead"): "what fails is compiled again by who wants it, and raises there",
  ("compile/compiler.py", "finish"): "what fails is compiled again by who wants it, and raises there",
  ("compile/nvidia/installed.py", "code"): ONE,
  ("core/called.py", "_place"): ONE,
  ("core/called.py", "run"): C,
  ("core/kept.py", "keep"): "another thread has changed the dict meanwhile, and makes room too",
  ("core/ending.py", "end"): "told by sys.excepthook; the next one is ended all the same",
  ("core/timeout.py", "_serve"): "a signal's handler: raised again when the call has ended",
  ("drive/amd/kfd.py", "_no_addresses"): "a number for an error's words",
  ("drive/cl.py", "function"): ONE,
  ("drive/cpu.py", "__call__"): ONE,
  ("drive/cuda.py", "function"): ONE,
  ("drive/hsa/library.py", "function"): ONE,
  ("jit/arguments.py", "__init__"): ONE,
  ("jit/jit.py", "_reference"): ONE,
  ("engine/kept.py", "load"): "an entry of another version's",
  ("engine/kept.py", "save"): "json's word for a value that has no form",
  ("kernels/evidence_amdgcn.py", "follow"): "code that runs out of its section is no evidence",
  ("function/indexing.py", "_index_axis"): "an index of the user's, which may be any object",
  ("function/indexing.py", "place"): "an index of the user's, which may be any object",
  ("tensor/conversion.py", "_of_array"): ONE,
  ("ir/program.py", "load"): "a line of JSON of any form",
  ("ir/uop.py", "_minmax"): ONE,
  ("ir/uop.py", "key"): ONE,
  ("ir/uop.py", "order"): ONE,
  ("ir/uop.py", "ranges"): ONE,
  ("ir/uop.py", "variables"): ONE,
  ("kernels/launch.py", "dims"): ONE,
  ("nn/formats/pickled.py", "read"): DATA,
  ("nn/onnx/graph.py", "expanded"): DATA,
  ("nn/onnx/proto.py", "parse"): DATA,
  ("nn/onnx/run.py", "step"): "a model's attributes of any type; the error names the node and its cause",
  ("testing/server.py", "body"): "the program of the user: its traceback is printed, and told as its failure",
  ("queues/cuda/record.py", "_plain"): ONE,
  ("tensor/tensor.py", "_shown"): "showing never raises: it happens in debuggers and logs, and shows the error",
  ("wire/codeobject/metadata.py", "_described"): DATA,
  ("wire/dwarf.py", "parameters"): DATA,
  ("wire/fatbin.py", "lz4"): DATA,
  ("wire/lines.py", "_load"): DATA,
  ("wire/lines.py", "_undamaged"): DATA,
}


class Nets(ast.NodeVisitor):
  """The functions that hold a net: a `suppress` of a wide class, or an `except` whose body does not raise the same
  again. Classes may have a name in the module together."""

  def __init__(self) -> None:
    self.around: list[str] = []
    self.found: set[str] = set()
    self.together: dict[str, set[str]] = {}

  def _caught(self, node: ast.AST) -> None:
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    names = set().union(*(self.together.get(name, {name}) for name in names))
    if names & OWN: self.found.add(self.around[-1] if self.around else "<module>")

  def visit_Module(self, node: ast.Module) -> None:
    for s in node.body:
      if not isinstance(s, ast.Assign | ast.AnnAssign) or not isinstance(s.value, ast.Tuple): continue
      for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
        self.together[ast.unparse(target)] = {n.id for n in ast.walk(s.value) if isinstance(n, ast.Name)}
    self.generic_visit(node)

  def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
    self.around.append(node.name)
    self.generic_visit(node)
    self.around.pop()

  def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
    again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
    if not again: self._caught(node.type or ast.Name("BaseException"))
    self.generic_visit(node)

  def visit_Call(self, node: ast.Call) -> None:
    if ast.unparse(node.func).rpartition(".")[2] == "suppress":
      for argument in node.args: self._caught(argument)
    self.generic_visit(node)


def nets(text: str) -> set[str]:
  visitor = Nets()
  visitor.visit(ast.parse(text))
  return visitor.found


def test_wide_nets_are_reviewed() -> None:
  files = {str(p.relative_to(ROOT)): p for p in sorted(ROOT.rglob("*.py"))}
  found = {(name, f) for name, p in files.items() if not name.startswith("tools/") for f in nets(p.read_text())}
  assert found == REVIEWED.keys()


def test_a_net_is_seen() -> None:
  assert nets("def f():\n  try: g()\n  except (KeyError, AttributeError): return 1") == {"f"}
  assert nets("try: g()\nexcept: pass") == {"<module>"}  # one that names no class
  assert nets("def f():\n  with contextlib.suppress(TypeError): g()") == {"f"}
  assert nets("BAD: Final = (KeyError, TypeError)\ntry: g()\nexcept BAD: pass") == {"<module>"}
  assert not nets("try: g()\nexcept TypeError:\n  h()\n  raise")
  assert not nets("try: g()\nexcept KeyError as e: raise ValueError from e")
