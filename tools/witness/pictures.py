"""Witnesses of image instructions without a sampler (RDNA3 and RDNA4 ISA manuals, sections 10.1 to 10.5).

Linear images of integers. The manuals do not say how one lies in memory; AMD's address library does: rows begin at
multiples of 256 bytes, on gfx12 of 128, slices count rows of 256 bytes, and smaller mip levels lie before larger ones.
"""
from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.tools.witness.atomics import Atomic, atomic, load, signed, store
from tinyhw.tools.witness.atomics import drawn as number
from tinyhw.tools.witness.softfloat import FORMATS as FLOATS
from tinyhw.tools.witness.state import M32, MEMORY, MEMORY_SIZE, State
from tinyhw.tools.witness.table import WITNESSES

# dim of the instruction -> the type in the resource, and the coordinates
DIMS: Final = {0: (8, "x"), 1: (9, "xy"), 2: (10, "xyz"), 4: (12, "xl"), 5: (13, "xyl")}
# format -> (code, bytes of a component, components, whether they are signed)
FORMATS: Final = {"8_UINT": (5, 1, 1, False), "16_SINT": (12, 2, 1, True), "32_UINT": (20, 4, 1, False),
                  "8_8_8_8_UINT": (46, 1, 4, False), "8_8_8_8_SINT": (47, 1, 4, True), "32_32_UINT": (48, 4, 2, False),
                  "16_16_16_16_SINT": (56, 2, 4, True), "32_32_32_32_UINT": (61, 4, 4, False)}
# where fields of the resource stand (tables 50 and 60): name -> lowest bit; depth has the last slice of an array too
FIELDS: Final = {
  "gfx11": {"max_mip": 48, "format": 52, "width": 62, "height": 78, "selects": 96, "base_level": 108, "last_level": 112,
            "type": 124, "depth": 128, "base_array": 144},
  "gfx12": {"max_mip": 44, "format": 49, "base_level": 57, "width": 62, "height": 78, "selects": 96, "last_level": 111,
            "type": 124, "depth": 128, "base_array": 144}}
_NAMES: Final = {"add": "add_u32", "add_uint": "add_u32", "sub": "sub_u32", "sub_uint": "sub_u32", "smin": "min_i32",
                 "min_int": "min_i32", "umin": "min_u32", "min_uint": "min_u32", "smax": "max_i32",
                 "max_int": "max_i32", "umax": "max_u32", "max_uint": "max_u32", "and": "and_b32", "or": "or_b32",
                 "xor": "xor_b32", "inc": "inc_u32", "inc_uint": "inc_u32", "dec": "dec_u32", "dec_uint": "dec_u32",
                 "swap": "swap_b32", "cmpswap": "cmpswap_b32", "add_flt": "add_f32", "min_flt": "min_num_f32",
                 "max_flt": "max_num_f32", "pk_add_f16": "pk_add_f16", "pk_add_bf16": "pk_add_bf16"}
ATOMICS: Final[dict[str, Atomic]] = {n: atomic(m) for n, m in _NAMES.items()}
WIDE: Final = {n: atomic(m.replace("32", "64")) for n, m in _NAMES.items() if m[-4:-2] in {"_u", "_i", "_b"}}


@dataclass(frozen=True)
class Picture:
  """An image of a case. `view` is the first and last level, and the first slice."""
  dim: int
  format: str
  width: int
  height: int
  depth: int
  levels: int
  view: tuple[int, int, int]
  selects: tuple[int, int, int, int]

  @property
  def texel(self) -> int: return FORMATS[self.format][1] * FORMATS[self.format][2]

  def extent(self, level: int) -> tuple[int, int, int]:
    """Width, height and depth, or slices, of a level."""
    return (max(1, self.width >> level), 1 if self.dim in {0, 4} else max(1, self.height >> level),
            max(1, self.depth >> level) if self.dim == 2 else self.depth)

  def row(self, level: int, isa: str) -> int:
    unit = 128 if isa == "gfx12" else 256
    return -(-self.extent(level)[0] * self.texel // unit) * unit

  def size(self, level: int, isa: str) -> int:
    """Bytes of a level in one slice."""
    return -(-self.row(level, isa) // 256) * 256 * self.extent(level)[1]

  def place(self, isa: str, x: int, y: int, z: int, level: int) -> int | None:
    """Byte of a texel; None outside. The level counts from the view's first, a slice from its first."""
    first, last, layer = self.view
    level += first
    if level > last: return None
    z += layer
    if any(c >= limit for c, limit in zip((x, y, z), self.extent(level))): return None
    a_slice = sum(self.size(m, isa) for m in range(self.levels))
    smaller = sum(self.size(m, isa) for m in range(level + 1, self.levels))
    return z * a_slice + smaller + y * self.row(level, isa) + x * self.texel

  def words(self, isa: str) -> list[int]:
    """The resource."""
    code = FORMATS[self.format][0]
    depth = self.depth - 1 if self.dim in {2, 4, 5} else 0
    values = {"max_mip": self.levels - 1, "format": code, "width": self.width - 1, "height": self.height - 1,
              "selects": sum(s << 3 * k for k, s in enumerate(self.selects)), "base_level": self.view[0],
              "last_level": self.view[1], "type": DIMS[self.dim][0], "depth": depth, "base_array": self.view[2]}
    v = MEMORY >> 8 | sum(values[n] << at for n, at in FIELDS[isa].items())
    return [v >> 32 * k & M32 for k in range(8)]


def drawn(i: Instruction, isa: str, rng: Random) -> Picture:
  """An image that fits the instruction and the memory."""
  name = i.mnemonic.removeprefix("image_atomic_")
  words = i.fields["dmask"].bit_count() // (2 if name == "cmpswap" else 1)
  while True:
    format_ = rng.choice(list(FORMATS)) if name == i.mnemonic else "32_UINT" if words == 1 else "32_32_UINT"
    dim, levels = i.fields["dim"], rng.choice([1, 1, 2, 3])
    array = dim in {2, 4, 5}
    depth = rng.randrange(1, 4) if array else 1
    first = rng.randrange(levels)
    view = (first, rng.randrange(first, levels), rng.randrange(depth) if dim in {4, 5} else 0)
    selects = rng.choice([(4, 5, 6, 7), (4, 5, 6, 7), (6, 5, 4, 7), (4, 5, 0, 1)])
    p = Picture(dim, format_, rng.randrange(1, 70), rng.randrange(1, 8), depth, levels, view, selects)
    if depth * sum(p.size(m, isa) for m in range(levels)) <= MEMORY_SIZE: return p


def coordinates(i: Instruction) -> str:
  return DIMS[i.fields["dim"]][1] + ("m" if "_mip" in i.mnemonic else "")


def registers(i: Instruction) -> list[int]:
  """Address registers, in order."""
  return [o.value + k for n, o in sorted(i.operands.items()) if n.startswith("vaddr") for k in range(max(1, o.dwords))]


def fields(e: Any, k: int) -> None:
  """Dimension, mask and widths; data and addresses are kept apart."""
  name = e.row.mnemonic.removeprefix("image_atomic_")
  e.fields["dim"] = e.rng.choice(list(DIMS))
  e.fields["dmask"] = e.rng.randrange(1, 16)
  if name != e.row.mnemonic:
    wide = name in WIDE and e.rng.random() < 0.3
    e.fields["dmask"] = (15 if wide else 3) if name == "cmpswap" else 3 if wide else 1
    e.fields["cpol"] = e.rng.randrange(2)
  if "load" in name: e.fields["dmask"] *= e.rng.random() < 0.9  # without components nothing is fetched
  e.fields["a16"], e.fields["tfe"] = e.rng.randrange(2), e.rng.randrange(2)
  if "d16" in e.row.fields and "_pck" not in name: e.fields["d16"] = e.rng.randrange(2)
  if "unorm" in e.row.fields: e.fields["unorm"] = 1
  e.fields["vdata"] = 2
  for n in range(4):
    if f"vaddr{n}" in e.row.fields: e.fields[f"vaddr{n}"] = (12, 9, 15, 11)[n]


_PICTURES: Final[dict[tuple[int, ...], Picture]] = {}  # by the resource's dwords, so that a witness need not read them


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """Memory, a resource for each wave, and coordinates in and now and then outside of it."""
  s.memory = bytearray(rng.randbytes(MEMORY_SIZE))
  resource = next(i.operands[n].value for n in ("srsrc", "rsrc") if n in i.operands)
  a = ATOMICS.get(i.mnemonic.removeprefix("image_atomic_"))
  if a is not None and a.type in FLOATS:
    for at in range(0, MEMORY_SIZE, 4): store(s.memory, at, 4, number(a.type, 4, rng))
    for at in range(s.waves * s.lanes): s.write(i.operands["vdata"].value, at, number(a.type, 4, rng))
  p = drawn(i, s.isa, rng)
  for w in range(s.waves):
    if w and "load" in i.mnemonic: p = drawn(i, s.isa, rng)  # those that change the memory share one image
    words = p.words(s.isa)
    _PICTURES[tuple(words)] = p
    for k, word in enumerate(words): s.s[resource + k][w] = word
    names = "m" if i.mnemonic == "image_get_resinfo" else coordinates(i)
    used: set[tuple[int, ...]] = set()
    for lane in range(s.lanes):
      values: list[int] = []
      for _ in range(50):  # stores of several lanes to one texel are not drawn: the manual does not order them
        level = rng.randrange(p.view[1] - p.view[0] + 1) if "m" in names else 0
        w_, h, d = p.extent(p.view[0] + level)
        limits = {"x": w_, "y": h, "z": d, "l": max(1, p.depth - p.view[2]), "m": 1}
        values = [level + (rng.random() < 0.05) * 3 if n == "m" else rng.randrange(limits[n]) for n in names]
        if rng.random() < 0.15:
          at = rng.randrange(len(names))
          values[at] = (p.depth if names[at] in "zl" else 70) + rng.randrange(4)
        if "store" not in i.mnemonic or tuple(values) not in used: break
        values = [300 + lane] * len(names)
      used.add(tuple(values))
      put(s, i, w * s.lanes + lane, values)
    if "store" in i.mnemonic and w:  # waves that store have one image, of which each has its own rows
      for lane in range(s.lanes): put(s, i, w * s.lanes + lane, [500] * len(names))


def put(s: State, i: Instruction, at: int, values: list[int]) -> None:
  """Coordinates into a lane's registers, two in each where they have 16 bits."""
  where = registers(i)
  if i.fields["a16"]:
    pairs = [values[k:k + 2] for k in range(0, len(values), 2)]
    for n, pair in zip(where, pairs): s.write(n, at, sum(v << 16 * k for k, v in enumerate(pair)))
  else:
    for n, v in zip(where, values): s.write(n, at, v)


def got(s: State, i: Instruction, at: int, names: str) -> dict[str, int]:
  """A lane's coordinates."""
  where = registers(i)
  if i.fields["a16"]: raw = [s.v[where[k // 2]][at] >> 16 * (k % 2) & 0xFFFF for k in range(len(names))]
  else: raw = [s.v[where[k]][at] for k in range(len(names))]
  return dict(zip(names, raw))


def picture(s: State, i: Instruction, wave: int) -> Picture:
  n = next(i.operands[n].value for n in ("srsrc", "rsrc") if n in i.operands)
  return _PICTURES[tuple(s.s[n + k][wave] for k in range(8))]


def place(s: State, i: Instruction, p: Picture, at: int) -> int | None:
  c = got(s, i, at, coordinates(i))
  return p.place(s.isa, c["x"], c.get("y", 0), c.get("z", c.get("l", 0)), c.get("m", 0))


def chosen(i: Instruction) -> list[int]: return [k for k in range(4) if i.fields["dmask"] >> k & 1]


def component(p: Picture, memory: bytearray, where: int | None, k: int) -> int:
  """Component R, G, B or A of a texel as 32 bits; 0 where there is none."""
  _, width, count, sign = FORMATS[p.format]
  if where is None or k >= count: return 0
  value = load(memory, where + k * width, width)
  return signed(value, 8 * width) & M32 if sign else value


def image_load(s: State, i: Instruction) -> None:
  """Components in the order of dst_sel, or the texel's dwords."""
  n, packed, d16 = i.operands["vdata"].value, "_pck" in i.mnemonic, i.get("d16")
  for w, _, at in s.active():
    p = picture(s, i, w)
    where = place(s, i, p, at)
    out = []
    for k in chosen(i):
      if packed:
        value = load(s.memory, where + 4 * k, min(4, p.texel)) if where is not None and 4 * k < p.texel else 0
        if k == 0 and p.texel < 4 and i.mnemonic.endswith("_sgn"): value = signed(value, 8 * p.texel) & M32
      else:
        select = p.selects[k]
        value = component(p, s.memory, where, select - 4) if select >= 4 else select
      out.append(value)
    if not out: out = [0]
    elif d16:
      out.append(0)
      out = [out[k] & 0xFFFF | (out[k + 1] & 0xFFFF) << 16 for k in range(0, len(out) - 1, 2)]
    for k, value in enumerate(out): s.write(n + k, at, value)


def image_store(s: State, i: Instruction) -> None:
  """What a load would find as R goes where R is; components that are not given are 0; integers are limited."""
  n, packed, d16 = i.operands["vdata"].value, "_pck" in i.mnemonic, i.get("d16")
  for w, _, at in s.active():
    p = picture(s, i, w)
    where = place(s, i, p, at)
    if where is None: continue
    _, width, count, sign = FORMATS[p.format]
    given: dict[int, int] = {}
    for k, c in enumerate(chosen(i)):
      if d16: given[k] = s.v[n + k // 2][at] >> 16 * (k % 2) & 0xFFFF
      else: given[c] = s.v[n + k][at]
    if packed:
      for k in range(max(1, p.texel // 4)): store(s.memory, where + 4 * k, min(4, p.texel), given.get(k, 0))
      continue
    for c in range(count):
      first = given[min(given)] if s.isa == "gfx12" and len(given) < count else 0  # RDNA4 repeats it, RDNA3 has 0
      value = next((given[k] for k in sorted(given) if p.selects[k] == 4 + c), first)
      if sign:
        value = signed(value, 16 if d16 else 32)
        value = max(-(1 << 8 * width - 1), min((1 << 8 * width - 1) - 1, value))
      else: value = min(value, (1 << 8 * width) - 1)
      store(s.memory, where + c * width, width, value)


def image_atomic(s: State, i: Instruction) -> None:
  """The texel as a number of 32 or 64 bits."""
  name, n = i.mnemonic.removeprefix("image_atomic_"), i.operands["vdata"].value
  words = i.fields["dmask"].bit_count() // (2 if name == "cmpswap" else 1)
  a = (ATOMICS if words == 1 else WIDE)[name]
  for w, _, at in s.active():
    p = picture(s, i, w)
    where = place(s, i, p, at)
    new, compare = (sum(s.v[n + part + k][at] << 32 * k for k in range(words)) if not part or name == "cmpswap" else 0
                    for part in (0, words))
    old = load(s.memory, where, a.width) if where is not None else 0
    if where is not None: store(s.memory, where, a.width, a.change(old, new, compare))
    if i.fields["cpol"] & 1:
      for k in range(words): s.write(n + k, at, old >> 32 * k)


def sizes(s: State, i: Instruction) -> None:
  """image_get_resinfo: width, height, depth (slices of an array), levels; no size of a level that the view lacks."""
  n = i.operands["vdata"].value
  for w, _, at in s.active():
    p = picture(s, i, w)
    level = got(s, i, at, "m")["m"] + p.view[0]
    size = list(p.extent(level)) if level <= p.view[1] else [0, 0, 0]
    if p.dim in {4, 5} and size[2]: size[2] -= p.view[2]
    size.append(p.view[1] - p.view[0] + 1)
    for k, c in enumerate(chosen(i)): s.write(n + k, at, size[c])


KIND: Final = "bytes in Python"
_LOADS = [f"image_load{mip}{how}" for mip in ("", "_mip") for how in ("", "_pck", "_pck_sgn")]
_STORES = [f"image_store{mip}{how}" for mip in ("", "_mip") for how in ("", "_pck")]
for _names, _function in ((_LOADS, image_load), (_STORES, image_store),
                          ([f"image_atomic_{n}" for n in ATOMICS], image_atomic), (["image_get_resinfo"], sizes)):
  WITNESSES.wave(" ".join(_names), KIND, prepare=prepare, fields=fields, lanes=(32, 64, 32), forms=12)(_function)
