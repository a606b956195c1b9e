"""Arithmetic that rounds down, up or toward zero, on both engines: near every edge, beside the host's processor."""
from __future__ import annotations

import ctypes
import platform
import random
from typing import Any

import numpy as np
import pytest

from tests.emulator.jit.ptx.test_jit import kernel, run
from tests.strength import examples, seed

OPERATIONS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "sqrt": 1, "rcp": 1, "fma": 3}
MODES = {"rm": 0x400, "rp": 0x800, "rz": 0xC00}  # fenv.h of x86-64
WITNESS: dict[str, Any] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
                           "sqrt": np.sqrt, "rcp": lambda x: np.true_divide(x.dtype.type(1), x)}


def draw(rng: random.Random, size: int, count: int) -> Any:
  """Numbers of every kind, half of them within a few powers of two of 1, so that sums lose some digits."""
  bits, fraction = 8 * size, 52 if size == 8 else 23
  one, top = (1 << bits - 2) - (1 << fraction), 1 << bits - 1
  infinity = top - (1 << fraction)
  edges = [0, 1, 2, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, one - 1, one, one + 1, infinity - 1,
           infinity, infinity | 1 << fraction - 1, one + (fraction << fraction), one - (fraction + 1 << fraction)]
  near = [one + rng.randrange(-6 << fraction, 6 << fraction) for _ in range(count)]
  return np.array([(rng.choice(edges) if rng.random() < 0.5 else n) ^ rng.choice((0, top)) for n in near], f"u{size}")


@pytest.mark.parametrize("size", [8, 4])
def test_directed_arithmetic(size: int) -> None:
  """Of numbers of each thread, and of one that all share."""
  count, t = 32 * examples(8), f"f{8 * size}"
  r, columns = f"%{'d' if size == 8 else 'f'}", [draw(random.Random(seed(9 + k)), size, count) for k in range(3)]
  forms = [(op, mode, ftz) for op in OPERATIONS for mode in MODES for ftz in (["", ".ftz"] if size == 4 else [""])]
  body = f"""mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 32, %t; mad.wide.u32 %l1, %r1, {size}, %in;
    mad.wide.u32 %l2, %r1, {size}, %out; mov.u32 %r2, %ctaid.x; mad.wide.u32 %l3, %r2, {size}, %in;
    """
  for j in range(3):
    at = j * count * size
    body += f"ld.global.{t} {r}{j + 1}, [%l1+{at}]; ld.global.{t} {r}{j + 5}, [%l3+{at}];\n"
  for k, (op, mode, ftz) in enumerate(forms):
    for j, first in enumerate((1, 5)):
      given = ", ".join(f"{r}{first + n}" for n in range(OPERATIONS[op]))
      body += f"{op}.{mode}{ftz}.{t} {r}4, {given}; st.global.{t} [%l2+{(2 * k + j) * count * size}], {r}4;\n"
  data = b"".join(c.tobytes() for c in columns)
  out = {}
  for how in ("ref", "jit"):
    found, stats = run(kernel(body), "k", data, how, grid=count // 32, block=32, size=2 * len(forms) * count * size)
    assert stats.engine == how and not stats.helped
    out[how] = found.view(f"f{size}").reshape(len(forms), 2, count)
  reference, compiled = out["ref"], out["jit"]
  raw = f"u{size}"
  same = (reference.view(raw) == compiled.view(raw)) | (reference != reference) & (compiled != compiled)
  assert same.all(), [forms[k] for k in np.flatnonzero(~same.all((1, 2)))]
  if platform.machine() != "x86_64": return
  libm, numbers = ctypes.CDLL(None), [c.view(f"f{size}") for c in columns]
  for k, (op, mode, ftz) in enumerate(forms):
    if op not in WITNESS or ftz: continue
    with np.errstate(all="ignore"):
      libm.fesetround(MODES[mode])
      try: wanted = WITNESS[op](*numbers[:OPERATIONS[op]])
      finally: libm.fesetround(0)
    found = reference[k, 0]
    assert ((found.view(raw) == wanted.view(raw)) | (found != found) & (wanted != wanted)).all(), (op, mode)
