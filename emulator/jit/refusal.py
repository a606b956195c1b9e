"""Why a program is not compiled, and what its user is told."""
from __future__ import annotations

import warnings

from tinyhw.core.errors import Unsupported


class NotCompiled(Unsupported):
  """A program, or a place in one, that the compiled engine does not take; the reference runs it."""

  def __init__(self, why: str) -> None:
    self.why = why
    super().__init__("program for the compiled engine", why)


class CompilerFailed(NotCompiled):
  """LLVM ended, or did not end, over a program."""


def tell(entry: int, refused: NotCompiled) -> None:
  """Warn where it is LLVM's failure, and not in the nature of the program, that makes it slow."""
  if isinstance(refused, CompilerFailed):
    text = f"the program at {entry:#x} is interpreted, which is slow: {refused.why}"
    warnings.warn(text, RuntimeWarning, stacklevel=2)
