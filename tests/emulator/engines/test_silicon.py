"""Programs whose results on chips are known, on both engines; divisions under a MODE that flushes denormals."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhw.autogen import silicon as facts
from tinyhw.tools.fuzz.case import Array, Case
from tinyhw.tools.fuzz.run import check
from tinyhw.tools.ledger import silicon


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_programs_leave_what_they_left_on_the_chip(engine: str) -> None:
  """Each of them, but for those that are listed with the reason; and those do differ."""
  programs = silicon.programs()
  assert len(programs) >= 780 and sum(len(p.checks) for p in programs) >= 3900
  found = {d.program.name: d for d in silicon.disagreements(programs, engine)}
  unknown = "\n".join(str(d) for name, d in found.items() if name not in silicon.known())
  assert not unknown, unknown
  assert found.keys() == silicon.known().keys()


def test_every_program_is_of_its_own_name_and_every_reason_of_a_program() -> None:
  names = [p.name for p in silicon.programs()]
  assert len(set(names)) == len(names) and silicon.known().keys() <= set(names)
  assert all(k.why for k in silicon.known().values())
  assert facts.UNTRACED == ("vop3.TestWMMAMore.v_wmma_f32_16x16x16_f16_basic",)


@pytest.mark.parametrize(("text", "bits", "holds"), [
  ("v2:0>>0&ffffffff = 3f800000", 0x3F800000, True), ("v2:0>>16&ff = 3f", 0x3F800000, False),
  ("v2:0>>0&ffffffff f32 ~ 1.1 0.2", 0x3F800000, True), ("v2:0>>0&ffffffff f32 ~ 1.1 0.05", 0x3F800000, False),
  ("v2:0>>0&ffffffff f32 nan", 0x7FC00000, True), ("v2:0>>0&ffffffff f32 !nan", 0x7FC00000, False),
  ("v2:0>>0&ffffffff f32 inf", 0xFF800000, True), ("v2:0>>16&ffff f16 > 0.5", 0x3C000000, True),
  ("v2:0>>0&ffffffff f32 abs< 0.5", 0xBE800000, True), ("v2:0>>0&ff = @v2:0>>8&ff", 0x1212, True),
  ("v2:0>>0&ffffffff u ~ 7.0 1.0", 8, True), ("v2:0>>0&ffffffff != 8", 8, False)])
def test_statements(text: str, bits: int, holds: bool) -> None:
  v = np.zeros((silicon.VGPRS, 1), np.uint32)
  v[2, 0] = bits
  assert silicon.Check(text).holds(silicon.Results(v, np.zeros(silicon.SGPRS + 3, np.uint32))) == holds


def _flushed_quotients(arrays: list[Array]) -> list[Array]:
  def flush(x: Array) -> Array:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)
  a, b = (flush(x.view(np.float32)) for x in arrays)
  with np.errstate(all="ignore"): return [flush(a / b).astype(np.float32).view(np.uint32)]


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])
def test_divisions_without_denormals(cpu: str) -> None:
  """LLVM scales before it lets denormals be: V_DIV_SCALE and V_DIV_FIXUP see them as zeros."""
  case = Case("divided", ("float", "float"), ("float",), "%r = fdiv float %a, %b", witness=_flushed_quotients,
              lanes=2048, attributes='"denormal-fp-math-f32"="preserve-sign,preserve-sign"')
  assert not check([case], [0, 2], cpu=cpu)
