"""cp in all its forms: which module makes the copies of which."""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.emulator.ptx.bind import Step, binds, nothing
from tinyhw.emulator.ptx.memory import copies, mbarrier, tensor
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code


@binds("cp")
def cp(code: Code, line: Line, form: Form) -> Step | None:
  """cp.async and cp.reduce.async in all their forms."""
  m = form.modifiers
  if "tensor" in m: return tensor.copy(code, line, form)
  if "mbarrier" in m: return mbarrier.copied(code, line, form)
  if m & {"commit_group", "wait_group", "wait_all", "prefetch"}: return nothing
  if "bulk" in m: return copies.bulk(code, line, form)
  return copies.small(code, line, form)
