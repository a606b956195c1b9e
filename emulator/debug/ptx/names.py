"""The registers of a function of PTX by their names."""
from __future__ import annotations

from tinyhw.emulator.ptx.module.scope import Range, Register, Scope
from tinyhw.emulator.ptx.program import Code


def names(code: Code) -> dict[str, Register]:
  """The registers of a function by their names; of names declared twice, in blocks of their own, the first."""
  found: dict[str, Register] = {}
  seen: list[Scope] = []
  for scope in [code.flat.scope, *(line.scope for line in code.flat.lines)]:
    if any(scope is s for s in seen): continue
    seen.append(scope)
    for name, entity in scope.names.items():
      if isinstance(entity, Register): found.setdefault(name, entity)
      elif isinstance(entity, Range) and name.endswith("<>"):
        for k in range(entity.count): found.setdefault(f"{name[:-2]}{k}", Register(entity.first + k, entity.type))
  return found
