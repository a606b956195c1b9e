"""Binds image instructions without a sampler: loads, stores, atomics and sizes (RDNA3, RDNA4 ISA manuals, chapter 10).

A texel outside its level, or a slice or level outside the view, reads 0 and is not stored. With TFE a lane whose page
is not resident gets a status; pages that are not mapped fault here, so that nobody gets one (section 10.1.1).
"""
from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from tinyhw.autogen import images
from tinyhw.emulator.amdgcn.binders import binds, unsupported
from tinyhw.emulator.amdgcn.memory import buffer, formats, texture, vector
from tinyhw.emulator.amdgcn.memory.words import data_reader, extended, split, wide, write_words
from tinyhw.emulator.amdgcn.registers import each_wave, scalar32, vector32
from tinyhw.emulator.memory import access
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.simt import Group, Step, full
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction

_PLAIN: Final = re.compile(r"image_(load|store)(_mip)?(_pck)?(_sgn)?")
_LOADS: Final = tuple(f"image_load{mip}{how}" for mip in ("", "_mip") for how in ("", "_pck", "_pck_sgn"))
_STORES: Final = tuple(f"image_store{mip}{how}" for mip in ("", "_mip") for how in ("", "_pck"))
# Those whose numbers are converted: how stores round, and what D16 makes of integers, no manual says.
CONVERTING: Final = frozenset(n for n in (*_LOADS, *_STORES) if "_pck" not in n)
# gfx12's names of what gfx11 calls otherwise
_ATOMICS: Final = {
  **{n: n for n in ("swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec",
                    "pk_add_f16", "pk_add_bf16")},
  "add_uint": "add", "sub_uint": "sub", "min_int": "smin", "min_uint": "umin", "max_int": "smax", "max_uint": "umax",
  "inc_uint": "inc", "dec_uint": "dec", "add_flt": "fadd", "min_flt": "fmin", "max_flt": "fmax"}


class Places:
  """Where the lanes of an image instruction go: its resource and its coordinates."""

  def __init__(self, i: Instruction, pc: int, mip: bool) -> None:
    self.i, self.pc, self.parse = i, pc, texture.parser(i.isa)
    resource = i.operands["srsrc" if "srsrc" in i.operands else "rsrc"].value
    self.words = [scalar32(resource + k) for k in range(4 if i.get("r128") else texture.DWORDS)]
    self.dim = images.TYPES[i.fields["dim"] + texture.FIRST_TYPE]
    self.names = texture.COORDINATES.get(self.dim, "") + ("m" if mip else "")
    if self.dim not in texture.COORDINATES: raise unsupported(i, pc, f"images of type {self.dim}")
    self.registers = [vector32(n, U32) for n in _addresses(i)]

  def each(self, group: Group, run: Callable[[texture.Image | None], None]) -> None:
    """Run for the image that the waves have; where they have several, for each with only its waves active."""
    def one(*words: int) -> None:
      try: image = self.parse(*words, *[0] * (texture.DWORDS - len(words)))
      except texture.NotAnImage: return
      run(image)
    if not access.nobody(group): each_wave(group, [r(group) for r in self.words], one)

  def coordinates(self, group: Group) -> dict[str, Value]:
    """The coordinates by their names: x, y, z, l (slice) and m (level), u64 of each lane."""
    out = {}
    for k, name in enumerate(self.names):
      if self.i.get("a16"):
        word = self.registers[k // 2](group)
        out[name] = (word >> np.uint32(16 * (k % 2)) & np.uint32(0xFFFF)).astype(U64)
      else: out[name] = self.registers[k](group).astype(U64)
    return out

  def __call__(self, group: Group, image: texture.Image) -> tuple[Value, Value]:
    """(u64 addresses, whether each is inside)."""
    if image.kind not in {self.dim, f"{self.dim}_ARRAY"}:
      raise unsupported(self.i, self.pc, f"an image of type {image.kind} as one of type {self.dim}")
    c = {n: np.uint64(0) for n in "xyzlm"} | self.coordinates(group)
    level = c["m"] + np.uint64(image.base_level)
    levels, a_slice = image.layout
    inside = level <= np.uint64(min(image.last_level, len(levels) - 1))
    at = np.minimum(level, np.uint64(len(levels) - 1)).astype(np.intp)
    of = {n: np.array([getattr(x, n) for x in levels], U64)[at]
          for n in ("width", "height", "depth", "pitch", "start")}
    x, y, layer = c["x"], c["y"], c["z"] + c["l"] + np.uint64(image.first)  # a texel has a depth or a slice
    inside = inside & (x < of["width"]) & (y < of["height"])
    inside = inside & (layer <= np.uint64(image.last) if image.last >= 0 else layer < of["depth"])
    size = np.uint64(image.format.size)
    place = layer * np.uint64(a_slice) + of["start"] + (y * of["pitch"] + x) * size
    return np.uint64(image.base) + place, np.broadcast_to(inside, np.broadcast_shapes(inside.shape, place.shape))


def _addresses(i: Instruction) -> list[int]:
  """The vector registers that coordinates come from."""
  given = [i.operands[f"vaddr{k}"] for k in range(5) if f"vaddr{k}" in i.operands]
  return [o.value + k for o in given for k in range(max(1, o.dwords))]


def _chosen(i: Instruction, pc: int) -> list[int]:
  """The components that dmask chooses."""
  found = [k for k in range(4) if i.fields["dmask"] >> k & 1]
  if not found: raise unsupported(i, pc, "dmask 0")
  return found


@binds("image_get_resinfo", *(f"image_atomic_{n}" for n in _ATOMICS), *_LOADS, *_STORES)
def bind(i: Instruction, pc: int, mode: int) -> Step:
  """The step of an image instruction."""
  if i.mnemonic == "image_get_resinfo": return _sizes(i, pc)
  if i.mnemonic.startswith("image_atomic_"): return _atomic(i, pc)
  match = _PLAIN.fullmatch(i.mnemonic)
  assert match is not None, i.mnemonic
  places = Places(i, pc, bool(match[2]))
  made = _load if match[1] == "load" else _store
  run = made(i, pc, places, bool(match[3]), bool(match[4]))
  return lambda group: places.each(group, partial(run, group))


def _fetch(group: Group, image: texture.Image, places: Places) -> tuple[list[Value], Value]:
  """(dwords of each lane's texel, or one zero-extended smaller value; whether it is inside); 0 outside."""
  at, ok = places(group, image)
  size = image.format.size
  out: list[Value] = [U32.type(0)] * max(1, size // 4)

  def run() -> None:
    for k, w in enumerate(access.words_of(access.load(group, None, full(group, at), size), size)):
      out[k] = np.where(ok, w, np.uint32(0))
  buffer.under(group, ok, run)
  return out, ok


def _load(i: Instruction, pc: int, places: Places, packed: bool, signed: bool) -> Callable[..., None]:
  """Components in the format's numbers, or the texel's dwords as they are."""
  n, d16 = i.operands["vdata"].value, bool(i.get("d16"))
  if not i.fields["dmask"]: return lambda group, image: write_words(group, n, [U32.type(0)])  # nothing is fetched
  chosen = _chosen(i, pc)

  def load(group: Group, image: texture.Image | None) -> None:
    values: list[Value] = [U32.type(0)] * len(chosen)
    if image is not None:
      words, ok = _fetch(group, image, places)
      if packed:
        if signed and image.format.size < 4: words = [extended(words[0], 8 * image.format.size)]
        values = [words[k] if k < len(words) else U32.type(0) for k in chosen]
      else:
        selects = tuple(image.selects[k] for k in chosen)
        values = [v if s == 1 else np.where(ok, v, np.uint32(0))
                  for v, s in zip(formats.load(image.format, words, selects, d16), selects)]
    if d16 and not packed:
      values.append(U32.type(0))
      values = [values[k] | values[k + 1] << np.uint32(16) for k in range(0, len(chosen), 2)]
    write_words(group, n, values)
  return load


def _store(i: Instruction, pc: int, places: Places, packed: bool, signed: bool) -> Callable[..., None]:
  """Of D16 data the dmask has only the number of components; what it leaves out is `formats.components`'s matter."""
  n, chosen, d16 = i.operands["vdata"].value, _chosen(i, pc), bool(i.get("d16")) and not packed
  if d16: chosen = list(range(len(chosen)))

  def component(group: Group, k: int) -> Value:
    if not d16: return group.v[n + k].view(U32)
    return group.v[n + k // 2].view(U32) >> np.uint32(16 * (k % 2))

  def store(group: Group, image: texture.Image | None) -> None:
    if image is None: return
    given = {c: component(group, k) for k, c in enumerate(chosen)}
    if packed: words = [given.get(k, U32.type(0)) for k in range(max(1, image.format.size // 4))]
    else:
      words = formats.store(image.format, formats.components(image.format, given, image.selects, i.isa), d16)
    at, ok = places(group, image)
    buffer.under(group, ok, lambda: access.store(group, None, at, words, image.format.size))
  return store


def _atomic(i: Instruction, pc: int) -> Step:
  """The texel as one number of 32 or 64 bits; data and result are in the same registers."""
  operation = _ATOMICS[i.mnemonic.removeprefix("image_atomic_")]
  compares = ATOMICS[operation].compares
  count = len(_chosen(i, pc)) // (2 if compares else 1)
  if i.fields["dmask"] not in ({3: 4, 15: 8} if compares else {1: 4, 3: 8}):
    raise unsupported(i, pc, f"dmask {i.fields['dmask']:#x}")
  width, want, places = 4 * count, vector.returns(i), Places(i, pc, False)
  n = i.operands["vdata"].value
  data_of = data_reader(n, width)
  compare_of = data_reader(n + count, width) if compares else None

  def atomic(group: Group, image: texture.Image | None) -> None:
    out: list[Value] = [np.zeros((1, group.cohort.lanes), U32 if count == 1 else U64)]

    def run(at: Value) -> None:
      compare = None if compare_of is None else wide(compare_of(group))
      old = access.atomic(group, at, width, operation, wide(data_of(group)), compare, want)
      if old is not None: out[0] = old
    if image is not None:
      if image.format.size != width: raise unsupported(i, pc, f"{8 * width} bits of an image of {image.format.name}")
      at, ok = places(group, image)
      buffer.under(group, ok, lambda: run(at))
    if want: write_words(group, n, split(out[0]))
  return lambda group: places.each(group, partial(atomic, group))


def _sizes(i: Instruction, pc: int) -> Step:
  """image_get_resinfo: width, height, depth or slices, and number of levels; sizes are 0 for a level that is not."""
  n, chosen, places = i.operands["vdata"].value, _chosen(i, pc), Places(i, pc, False)
  level_of = places.registers[0]

  def sizes(group: Group, image: texture.Image | None) -> None:
    found: list[Value] = [U32.type(0)] * 4
    if image is not None:
      level = level_of(group).astype(U64) + np.uint64(image.base_level)
      if i.get("a16"): level = (level_of(group) & np.uint32(0xFFFF)).astype(U64) + np.uint64(image.base_level)
      levels, _ = image.layout
      ok = level <= np.uint64(min(image.last_level, len(levels) - 1))
      at = np.minimum(level, np.uint64(len(levels) - 1)).astype(np.intp)
      slices = max(0, image.last - image.first + 1)
      rows = [(x.width, x.height, slices if image.last >= 0 else x.depth) for x in levels]
      found = [np.where(ok, np.array([r[k] for r in rows], U32)[at], np.uint32(0)) for k in range(3)]
      found.append(U32.type(max(0, image.last_level - image.base_level + 1)))
    write_words(group, n, [full(group, np.asarray(found[k])) for k in chosen])
  return lambda group: places.each(group, partial(sizes, group))
