"""Kernels that a second thread finishes are those that one thread makes, and what goes wrong is told by who asks."""
from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

from tinyhw import Device, Tensor
from tinyhw.compile import compiler, schedule
from tinyhw.compile.render.host import HostRenderer
from tinyhw.compile.render.uops import UOpRenderer
from tinyhw.ir.uop import UOp


def graphs(n: int) -> list[UOp]:
  """Kernels that no other test makes."""
  tensors = [Tensor(np.ones((3 + k, n), np.float32), device="LLVM").sum(1) * n for k in range(5)]
  return [item.ast for t in tensors for item in schedule([t.uop]).items]


def test_programs_are_the_same() -> None:
  asts, renderer = graphs(1001), HostRenderer()
  one = [compiler.compile_kernel(ast, renderer) for ast in asts]
  for ast in asts: compiler.forget(ast, renderer, None)
  compiler.compile_ahead(asts, renderer)
  for ast, program in zip(asts, one):
    ahead = compiler.compile_kernel(ast, renderer)
    assert ahead is not program and ahead == program
    assert compiler.compile_kernel(ast, renderer) is ahead


def test_the_interpreters_interval_is_as_before() -> None:
  before = sys.getswitchinterval()
  threads = [threading.Thread(target=compiler.compile_ahead, args=(graphs(1010 + n), HostRenderer())) for n in range(3)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert sys.getswitchinterval() == before


class Failing(HostRenderer):
  """Refuses what it is asked to compile."""
  @property
  def key(self) -> str: return "failing " + super().key
  def compile(self, source: str, name: str) -> bytes: raise MemoryError("no room")


def test_what_goes_wrong_is_told_by_who_asks() -> None:
  asts, renderer = graphs(1020), Failing()
  compiler.compile_ahead(asts, renderer)
  for ast in asts:
    with pytest.raises(MemoryError, match="no room"): compiler.compile_kernel(ast, renderer)


def test_ctrl_c_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
  asts, renderer, draft, seen = graphs(1030), HostRenderer(), compiler._draft, list[Any]()
  def interrupted(*args: Any) -> Any:
    if len(seen) == 2: raise KeyboardInterrupt
    seen.append(args)
    return draft(*args)
  monkeypatch.setattr(compiler, "_draft", interrupted)
  with pytest.raises(KeyboardInterrupt): compiler.compile_ahead(asts, renderer)
  assert not any(t.name == "tinyhw.compile" for t in threading.enumerate())
  monkeypatch.undo()
  assert len({compiler.compile_kernel(ast, renderer).name for ast in asts}) == 5


def test_who_has_no_second_thread_to_gain_from_does_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
  called: list[Any] = []
  monkeypatch.setattr(compiler, "compile_ahead", lambda *args: called.append(args))
  monkeypatch.setenv("CACHEDB", "0")
  for device in ("PYTHON", "LLVM"):
    x = Tensor(np.ones((3, 1040), np.float32), device=device)
    ((x / x.sum(1, keepdim=True)).sum(0).contiguous().sum() * x).realize()
  assert not UOpRenderer.leaves_python and len(called) == 1 and called[0][1] is Device["LLVM"].renderer
