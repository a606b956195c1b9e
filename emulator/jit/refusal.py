"""Why a program is not compiled, and what its user is told."""
from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tinyhw.core.errors import MachineFault, Unsupported


class NotCompiled(Unsupported):
  """A program, or a place in one, that the compiled engine does not take; the reference runs it."""

  def __init__(self, why: str) -> None:
    self.why = why
    super().__init__("program for the compiled engine", why)


class CompilerFailed(NotCompiled):
  """LLVM ended, or did not end, over a program."""


class TranslatorFailed(CompilerFailed):
  """A mistake of this package's own in what it wrote, or could not write, of a program. Its `why` begins with OWN."""


OWN: Final = "a mistake of tinyhw's own, please report it"
SLOW: Final = "is interpreted, which is slow"
CHECKED_SLOWLY: Final = "is checked by the interpreter, which is slow"


@contextmanager
def translating(*expected: type[Exception]) -> Iterator[None]:
  """Around what writes a program's text and touches nothing else. It raises NotCompiled, what a program does wrong, and
  what is `expected`; anything else is TranslatorFailed, for the reference can run the program and its user has to be
  told whose mistake it is."""
  told: tuple[type[Exception], ...] = NotCompiled, MachineFault, *expected
  try: yield
  except told: raise
  except Exception as mistake:
    at = traceback.extract_tb(mistake.__traceback__)[-1]
    words = f"{type(mistake).__name__}: {mistake} ({at.filename.rpartition('/')[2]}, line {at.lineno})"
    raise TranslatorFailed(f"{OWN}: {words}") from mistake


def tell(what: str, refused: NotCompiled, how: str = SLOW) -> None:
  """Warn where it is LLVM's failure or ours, and not in the nature of the program, that makes it slow."""
  if isinstance(refused, CompilerFailed):
    warnings.warn(f"{what} {how}: {refused.why}", RuntimeWarning, stacklevel=2)
