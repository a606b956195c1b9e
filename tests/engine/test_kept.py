"""Compiled kernels on disk: another process finds them, and nothing else."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tinyhw.compile
from tinyhw import Device, Tensor
from tinyhw.compile import Opt, OptKind, compile_kernel, compiler, schedule
from tinyhw.core import store as files
from tinyhw.core.kept import Kept
from tinyhw.engine import kept
from tinyhw.engine.run import kernels_for, program_of
from tinyhw.ir.uop import UOp


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
  monkeypatch.setenv(kept.VARIABLE, str(tmp_path))
  yield tmp_path / "kernels"
  files.store_in.cache_clear()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[UOp]:
  """What was compiled, and not found."""
  seen: list[UOp] = []
  def counted(ast: UOp, renderer: Any) -> Any:
    seen.append(ast)
    return compile_kernel(ast, renderer)
  monkeypatch.setattr(tinyhw.compile, "compile_kernel", counted)
  return seen


def kernel(device: str = "LLVM") -> UOp:
  """The graph of a reduction."""
  x = Tensor([[1.0, 2.0], [3.0, 4.0]], device=device).realize()
  return schedule([((x + 1).sum(1) * 2).uop]).items[0].ast


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_what_was_compiled_is_found(device: str, folder: Path, compiled: list[UOp]) -> None:
  ast, renderer = kernel(device), Device[device].renderer
  first, second = program_of(ast, renderer), program_of(ast, renderer)
  assert len(compiled) == 1 and len(list(folder.glob("*.tinyhw"))) == 1
  assert second == replace(first, uops=())


def test_all_that_a_program_has_comes_back(folder: Path) -> None:
  spec = replace(compile_kernel(kernel(), Device["LLVM"].renderer), opts=(Opt(OptKind.UPCAST, 1, 4),), uops=())
  kept.save("name", spec)
  found = kept.load("name")
  assert found == spec and found.opts[0].kind is OptKind.UPCAST and type(found.estimates) is type(spec.estimates)


def test_another_target_or_choice_is_another_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  ast = kernel()
  names = {kept.key(ast, Device[d].renderer) for d in ("LLVM", "PYTHON")}
  monkeypatch.setenv("NOOPT", "1")
  names |= {kept.key(ast, Device[d].renderer) for d in ("LLVM", "PYTHON")}
  monkeypatch.setattr(kept, "_SOURCES", ("ir/*.py",))
  names |= {kept.key(ast, Device[d].renderer) for d in ("LLVM", "PYTHON")}
  assert len(names) == 6


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "header", "kind", "fields"])
def test_a_damaged_file_is_compiled_anew(damage: str, folder: Path, compiled: list[UOp]) -> None:
  ast, renderer = kernel(), Device["LLVM"].renderer
  right = program_of(ast, renderer)
  path, = folder.glob("*.tinyhw")
  data = path.read_bytes()
  if damage == "cut": path.write_bytes(data[:-1])
  elif damage == "bit": path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
  elif damage == "empty": path.write_bytes(b"")
  elif damage == "header": files.Store(folder).save(path.stem, {"name": "x"}, b"")
  elif damage == "kind": files.Store(folder).save(path.stem, {"name": {"Path": ["/"]}}, b"")
  else: files.Store(folder).save(path.stem, {"name": "x", "another": 1}, b"")
  assert replace(program_of(ast, renderer), uops=()) == replace(right, uops=()) and len(compiled) == 2
  program_of(ast, renderer)
  assert len(compiled) == 2


def test_no_folder_keeps_nothing(monkeypatch: pytest.MonkeyPatch, compiled: list[UOp]) -> None:
  monkeypatch.setenv(kept.VARIABLE, "0")
  for _ in range(2): program_of(kernel(), Device["LLVM"].renderer)
  assert len(compiled) == 2


PROGRAM = """
from tinyhw import Tensor
import tinyhw.compile as c
made, compile_kernel = [], c.compile_kernel
c.compile_kernel = lambda *a: made.append(a) or compile_kernel(*a)
x = Tensor([[1.0, 2.0], [3.0, 4.0]])
print((x.softmax() @ x).tolist(), len(made))
"""


def test_processes_share_the_folder(tmp_path: Path) -> None:
  """Two at once, then one more."""
  env = {**os.environ, kept.VARIABLE: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
  def begin() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, text=True)
  both = [begin(), begin()]
  said = [p.communicate()[0].rsplit(maxsplit=1) for p in both]
  last = begin().communicate()[0].rsplit(maxsplit=1)
  assert said[0][0] == said[1][0] == last[0] and sum(int(made) for _, made in said) > 0 and last[1] == "0"


def test_values_are_the_same(folder: Path, compiled: list[UOp]) -> None:
  def value() -> Any:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    return (x.exp().sum(0) / 3).tolist()
  first = value()
  Device.close()
  assert value() == first and len(compiled) == len(set(compiled)) > 0


def test_only_what_is_not_on_disk_is_compiled_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """And nothing where that is one kernel."""
  called: list[list[UOp]] = []
  monkeypatch.setattr(compiler, "compile_ahead", lambda asts, renderer: called.append(list(asts)))
  opened = Device["LLVM"]
  asts = [schedule([(Tensor.empty(k, device="LLVM") * 3 + 1).uop]).items[0].ast for k in (2011, 2012, 2013, 2014)]
  for ready in (1, 3):
    for ast in asts[:ready]: program_of(ast, opened.renderer, opened)
    monkeypatch.setattr(opened, "kernels", Kept(64))
    assert [k.device for k in kernels_for([(ast, "LLVM") for ast in asts])] == [opened] * 4
    for path in folder.glob("*.tinyhw"): path.unlink()
  assert called == [asts[1:]]
