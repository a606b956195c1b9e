"""What says of changes that nothing can notice them: see `equivalent.py`."""
from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
  """Changes that fit all three patterns: of "module.function", of the source line, of the change."""
  function: str
  line: str
  change: str
  reason: str

  def fits(self, module: str, function: str, source: str, change: str) -> bool:
    return bool(re.fullmatch(self.function, f"{module}.{function}") and re.search(self.line, source)
                and re.fullmatch(self.change, change))
