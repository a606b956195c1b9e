"""gfx950's conversions of 32 numbers of 6 bits, which fill six registers (CDNA4 ISA manual, V_CVT_SCALEF32_*PK32_*)."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.gfx950.conversions import both, halves, narrow, narrow_by, power, wide
from tinyhw.emulator.amdgcn.gfx950.meanings import prng
from tinyhw.emulator.amdgcn.registers import reader, vector32, write_vector32
from tinyhw.emulator.simt import Group, Step
from tinyhw.emulator.values.ops import U32, V
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.small_floats import E2M3, E3M2, SmallFloat
from tinyhw.isa.amdgcn import Instruction

SIX: Final[dict[str, SmallFloat]] = {"fp6": E2M3, "bf6": E3M2}
_KINDS: Final = ("f16", "bf16", "f32")
NAMES: Final = tuple(f"v_cvt_scalef32_{name}" for small in SIX for name in (
  f"2xpk16_{small}_f32", *(f"pk32_{kind}_{small}" for kind in _KINDS),
  *(f"pk32_{small}_{kind}" for kind in _KINDS[:2]), *(f"sr_pk32_{small}_{kind}" for kind in _KINDS)))


def sixes(o: O[V], codes: Sequence[V]) -> list[V]:
  """32 codes of 6 bits as six registers."""
  out = []
  for r in range(6):
    word = o.const("u32", 0)
    for k in range(r * 32 // 6, min(32, (r * 32 + 37) // 6)):
      at = 6 * k - 32 * r
      if -6 < at < 32: word = word | (codes[k] << at if at >= 0 else codes[k] >> -at)
    out.append(word)
  return out


def six(o: O[V], words: Sequence[V], k: int) -> V:
  """The k-th code of 6 bits of six registers."""
  r, at = divmod(6 * k, 32)
  low = words[r] >> at
  return (low | words[r + 1] << 32 - at if at > 26 else low) & 0x3F


def numbers(o: O[V], words: Sequence[V], kind: str) -> list[V]:
  """f32 of registers of f32 or of pairs of halves."""
  if kind == "f32": return [o.bits(w, "f32") for w in words]
  return [x for w in words for x in halves(o, w, kind)]


def to_sixes(o: O[V], values: Sequence[V], t: SmallFloat, scale: V) -> list[V]:
  """32 f32 as numbers of 6 bits, divided by a scale."""
  f, limit = power(o, scale, -1), o.const("u32", 1)
  return sixes(o, [narrow(o, x, t, f, limit) for x in values])


def to_sixes_by(o: O[V], values: Sequence[V], seed: V, t: SmallFloat, scale: V) -> list[V]:
  """The same rounded by a seed, of which each number has the next."""
  f, limit, codes = power(o, scale, -1), o.const("u32", 1), []
  for x in values:
    codes.append(narrow_by(o, x, seed, t, f, limit))
    seed = prng(o, seed)
  return sixes(o, codes)


def of_sixes(o: O[V], words: Sequence[V], t: SmallFloat, kind: str, scale: V) -> list[V]:
  """32 numbers of 6 bits times a scale, as registers of f32 or of pairs of halves."""
  f = power(o, scale, 1)
  values = [wide(o, six(o, words, k), t, f) for k in range(32)]
  if kind == "f32": return [o.bits(x, "u32") for x in values]
  return [both(o, low, high, kind) for low, high in zip(values[::2], values[1::2])]


def converted(o: O[V], mnemonic: str, sources: Sequence[Sequence[V]], seed: V, scale: V) -> list[V]:
  """The registers of the result; `sources` are those of the one or two vectors that are converted."""
  to, of = re.findall("bf16|f16|f32|fp6|bf6", mnemonic.removeprefix("v_cvt_scalef32_"))
  if to not in SIX: return of_sixes(o, sources[0], SIX[of], to, scale)
  values = numbers(o, sources[0], of)
  if len(sources) == 2: values = [x for pair in zip(values, numbers(o, sources[1], of)) for x in pair]
  if "_sr_" in mnemonic: return to_sixes_by(o, values, seed, SIX[to], scale)
  return to_sixes(o, values, SIX[to], scale)


@binds(*NAMES, isa="gfx950")
def convert(i: Instruction, pc: int, mode: int) -> Step:
  """All of them: one or two vectors, a seed where the name says it, and a scale."""
  operands = [i.operands[name] for name in ("src0", "src1", "src2") if name in i.operands]
  vectors = [[vector32(x.value + k, U32) for k in range(x.dwords)] for x in operands if x.dwords > 1]
  one = [reader(x, "u32") for x in operands if x.dwords == 1]
  seed, scale = one[0], one[-1]
  destination = i.operands["vdst"]
  writers = [write_vector32(destination.value + k) for k in range(destination.dwords)]

  def step(group: Group) -> None:
    read = [[register(group) for register in vector] for vector in vectors]
    for write, value in zip(writers, converted(group.o, i.mnemonic, read, seed(group), scale(group))):
      write(group, value)
  return step
