"""How a kernel's code uses its arguments, as `evidence` finds it."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Uses:
  """Types under which dwords were used: "f32", "i32", ... by their place in the argument segment."""
  values: dict[int, set[str]] = field(default_factory=dict)
  elements: dict[int, set[str]] = field(default_factory=dict)
  loaded: set[int] = field(default_factory=set)  # dwords of the argument segment that the code asks for
  complete: bool = False  # whether these are all: nothing else gets the segment's address

  @classmethod
  def of(cls, plain: dict[str, Any]) -> Uses:
    """What `plain` gave."""
    values, elements = ({int(at): set(types) for at, types in plain[name].items()} for name in ("values", "elements"))
    return cls(values, elements, set(plain["loaded"]), plain["complete"])

  def plain(self) -> dict[str, Any]:
    """These in JSON's types."""
    values, elements = ({str(at): sorted(types) for at, types in found.items()}
                        for found in (self.values, self.elements))
    return {"values": values, "elements": elements, "loaded": sorted(self.loaded), "complete": self.complete}

  def asks_for(self, at: int, size: int) -> bool:
    """Whether the code may read an argument."""
    return not self.complete or any(at - 3 <= dword < at + size for dword in self.loaded)

  def value(self, at: int, size: int) -> str | None:
    """The type of a number of 4 or 8 bytes that is passed by value at an offset: f32, f64, i32 or i64; None unsure."""
    low = self.values.get(at, set())
    if size == 4: return next(iter(low)) if len(low) == 1 and low <= {"f32", "i32"} else None
    if size != 8: return None
    both = low | self.values.get(at + 4, set())
    if both == {"f64"}: return "f64"
    wide = "i64" in both or "i32" in low and "carry" in self.values.get(at + 4, set())
    return "i64" if wide and both <= {"i64", "i32", "carry"} else None

  def element(self, at: int) -> str | None:
    """The type of the elements of the array whose pointer is passed at an offset: f32 or f64; None where that is not
    sure. Whole numbers are not: a compiler loads the lower halves of those that it does not need whole."""
    found = self.elements.get(at, set())
    return next(iter(found)) if len(found) == 1 and found <= {"f32", "f64"} else None
