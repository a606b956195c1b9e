"""The host processor through a C compiler: objects that clang or gcc made, loaded by llvmlite's JIT linker.

Kernels look as those of `LLVM` do, so the runtime is the same; only where the objects come from differs.
"""
from __future__ import annotations

from tinyhw.drive.cpu import HostRuntime


class CRuntime(HostRuntime):
  """The processor of this process. `compiler` is what makes its kernels, in words for a person."""

  def __init__(self, compiler: str, name: str = "C"):
    super().__init__(name)
    self.compiler = compiler

  def describe(self) -> str: return self.compiler
