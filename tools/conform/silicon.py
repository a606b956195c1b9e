"""Programs whose results on chips are known, in kernels for any device: `tools/ledger/silicon` has them, with sources.

Each is a few instructions and statements about what they leave in registers. The kernel keeps the registers, and the
statements are judged here: they are no bits that a kernel could compare.
"""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tinyhw.arch import decoded
from tinyhw.core.errors import DecodeError, Error
from tinyhw.tools.conform.harness import Words
from tinyhw.tools.conform.image import NAME, KernelShape, code_object
from tinyhw.tools.conform.judge import Result
from tinyhw.tools.conform.patterns import fits
from tinyhw.tools.ledger import silicon
from tinyhw.tools.ledger.silicon import A_PROGRAM, LDS, MODE, SCRATCH, SGPRS, VGPRS, ChipProgram, Results

Array = Any
GROUP: Final = "@silicon"
BATCH: Final = 24  # programs of a kernel
RESULTS: Final = 4096  # where results are, from the arguments on
_SCALARS: Final = SGPRS + 3


def ident(p: ChipProgram) -> str: return f"{p.cpu}/silicon/{p.name}"


def programs(arch: str) -> list[ChipProgram]:
  """Those of a generation that run in a kernel with others: what changes MODE, jumps far or has waves is left out."""
  chosen = [p for p in silicon.programs() if p.cpu == arch and _known(p)]
  return [p for batch in silicon.batches(chosen) if len(batch) > 1 for p in batch]


def _known(p: ChipProgram) -> bool:
  """Whether its instructions are the processor's; a few programs use what it reserves."""
  try: return bool(p.instructions)
  except DecodeError: return False


def kernel(batch: Sequence[ChipProgram]) -> bytes:
  """A code object of programs that are alike in wave and lanes. Parameter: memory, 2 * A_PROGRAM bytes for each."""
  first = batch[0]
  w, isa = Words(first.isa), first.isa
  lines = [w.loaded(76, 2, "s[0:1]", 0), w.scalars, "v_mov_b32_e32 v254, v0"]
  code = b""
  for k, p in enumerate(batch):
    data, arguments = 2 * k * A_PROGRAM, (2 * k + 1) * A_PROGRAM
    lines += [*w.pair(80, f"{arguments:#x}", base=76), *w.pair(92, f"{data:#x}", base=76), "v_mov_b32_e32 v240, s92",
              "v_mov_b32_e32 v241, s93", "v_mov_b32_e32 v242, 0",
              f"{w.store} v242, v240, s[80:81]", f"{w.store} v242, v241, s[80:81] offset:4", *w.everything,
              *silicon._before(p, 0)[2:]]
    code += silicon._text(isa, lines) + p.code
    there = {"s_mov_b32 s92, 0x0": w.pair(92, f"{arguments + RESULTS:#x}", base=76), "s_mov_b32 s93, 0x0": []}
    lines = [x for line in silicon._after(p, 0) for x in there.get(line, [line])]
    lines.append(f"s_mov_b64 exec, {(1 << p.lanes) - 1:#x}" if p.lanes < 32 else "s_mov_b64 exec, -1")
  code += silicon._text(isa, [*lines, *w.everything, "s_endpgm"]) + bytes(256)
  shape = KernelShape(first.wave, 256, 0, LDS, SCRATCH, MODE | (0x300 if isa != "gfx12" else 0))
  return code_object(decoded(first.cpu), shape, code)


def run(arch: str, device: str, only: Sequence[str], timeout: float) -> list[Result]:
  """The results of a generation's programs that fit."""
  chosen = [p for p in programs(arch) if fits(ident(p), only)]
  known, out = silicon.known(), list[Result]()
  groups: dict[tuple[int, int], list[ChipProgram]] = {}
  for p in chosen:
    if p.name in known: out.append(_result(p, "not asked", f"the emulator differs, and why: {known[p.name].why}"))
    elif any(o.kind == "s" and o.value < 78 and o.value + max(1, o.dwords) > 76
             for i in p.instructions for o in i.operands.values()):
      out.append(_result(p, "not asked", "it has registers that are the kernel's own"))
    else: groups.setdefault((p.wave, p.lanes), []).append(p)
  for some in groups.values():
    for first in range(0, len(some), BATCH): out += _run(some[first:first + BATCH], device, timeout)
  return out


def _run(batch: Sequence[ChipProgram], device: str, timeout: float) -> list[Result]:
  from tinyhw.kernels.launch import launch
  memory = np.zeros(2 * A_PROGRAM * len(batch), np.uint8)
  try: (found,) = launch(kernel(batch), NAME, 1, batch[0].lanes, [memory], device=device, timeout=timeout)
  except Error as error:
    if len(batch) == 1: return [_result(batch[0], "error", f"{type(error).__name__}: {error}".split("\n")[0])]
    half = len(batch) // 2
    return _run(batch[:half], device, timeout) + _run(batch[half:], device, timeout)
  return [_judged(p, found[(2 * k + 1) * A_PROGRAM + RESULTS:]) for k, p in enumerate(batch)]


def _judged(p: ChipProgram, found: Array) -> Result:
  size = 4 * p.lanes * VGPRS
  kept = found[:size + 4 * _SCALARS].view(np.uint32)
  read = Results(kept[:size // 4].reshape(VGPRS, p.lanes), kept[size // 4:])
  mark = hashlib.blake2b(kept.tobytes(), digest_size=8).hexdigest()
  for check in p.checks:
    if not check.holds(read): return _result(p, "fail", f"on the chip {check.found(read)}", mark)
  return _result(p, "pass", digest=mark)


def _result(p: ChipProgram, verdict: str, detail: str = "", digest: str = "") -> Result:
  asked = hashlib.blake2b(p.code + repr(p.checks).encode(), digest_size=8).hexdigest()
  return Result(ident(p), "+".join(sorted(p.mnemonics)), "silicon", f"wave{p.wave}", "",
                "; ".join(str(i) for i in p.instructions), p.code.hex(), verdict, detail, digest=digest,
                asked=asked if verdict != "not asked" else "")
