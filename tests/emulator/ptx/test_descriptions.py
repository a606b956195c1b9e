"""What describes memory to PTX: tensor maps, samplers, headers of textures; what is asked about them."""

from __future__ import annotations

import itertools
import struct
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.strength import examples
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.emulator.ptx.memory.tensormap import FIELDS, ORDINALS, SIZE, TensorMap
from tinyhw.emulator.ptx.texture.objects import FILTERS, FORMATS, MODES, Header, Sampler, decoded

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"

# ---- tensor maps

I16 = st.integers(-(2**15), 2**15 - 1)
U8, U32, U64 = st.integers(0, 255), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
MAPS = st.builds(
  TensorMap,
  U64,
  st.tuples(*[U32] * 5),
  st.tuples(*[U64] * 4),
  st.tuples(*[U32] * 5),
  st.tuples(*[U32] * 5),
  st.integers(1, 256),
  U8,
  U8,
  U8,
  U8,
  U8,
  U8,
  st.tuples(*[I16] * 3),
  st.tuples(*[I16] * 3),
)


@settings(max_examples=examples(60), deadline=None)
@given(MAPS, st.sampled_from([*FIELDS, *ORDINALS, "rank"]), st.integers(0, 5), U32)
def test_a_tensor_map_is_its_bytes(m: TensorMap, name: str, ordinal: int, value: int) -> None:
  """Every field has bytes of its own, and tensormap.replace changes it alone."""
  data = m.encode()
  assert len(data) == SIZE == 128 and TensorMap.decode(data) == m and TensorMap.decode(data + b"x") == m
  if name not in ORDINALS and name != "global_address":
    value &= 0xFF
  counts = {"box_dim": 5, "global_dim": 5, "global_stride": 4, "element_stride": 5}
  if ordinal >= counts.get(name, 6):
    with pytest.raises(InvalidArgument, match=f"tensormap.replace: dimension {ordinal} of {name}"):
      m.replaced(name, ordinal, value)
    return
  new = m.replaced(name, ordinal, value)
  own = {"rank": "rank", **FIELDS, **ORDINALS}[name]
  for f in fields(TensorMap):
    before, after = getattr(m, f.name), getattr(new, f.name)
    if f.name != own:
      assert before == after
    elif isinstance(before, tuple):
      assert after == (*before[:ordinal], value, *before[ordinal + 1 :])
    else:
      assert after == value + (name == "rank")
  assert sum(a != b for a, b in zip(data, new.encode())) <= (8 if name in {"global_address", "global_stride"} else 4)


def test_what_a_tensor_map_is_made_of_nothing() -> None:
  m = TensorMap()
  assert m == TensorMap.decode(bytes(128)) and m.encode() == bytes(128)
  assert m.dims == m.box == m.steps == (0,) * 5 and m.strides == (0,) * 4 and m.rank == 1
  assert m.replaced("elemtype", 0, 255).kind == 255 and m.replaced("global_address", 0, 1 << 63).address == 1 << 63
  for name in ("rank", *(f for f in FIELDS if f != "global_address")):
    with pytest.raises(InvalidArgument, match=f"tensormap.replace: {name} 1,256"):
      m.replaced(name, 0, 1256)
    with pytest.raises(InvalidArgument):
      m.replaced(name, 0, 256)
  assert TensorMap(dims=(0, 5, 7, 0, 0), rank=2).extents == (1 << 32, 5)
  m = TensorMap(box=(8, 9, 10, 0, 0), steps=(4, 2, 3, 0, 0), rank=3)
  assert (m.walk, m.tile) == ((1, 2, 3), (8, 5, 4))


KINDS = [
  ("u8", 1),
  ("u16", 2),
  ("u32", 4),
  ("s32", 4),
  ("u64", 8),
  ("s64", 8),
  ("f16", 2),
  ("f32", 4),
  ("f32.ftz", 4),
  ("f64", 8),
  ("bf16", 2),
  ("tf32", 4),
  ("tf32.ftz", 4),
  ("b4x16", 8),
  ("b4x16_p64", 8),
  ("b6x16_p32", 12),
]
GOOD = TensorMap(4096, (64, 8, 4, 2, 2), (256, 2048, 8192, 16384), (16, 2, 1, 1, 1), (1, 1, 1, 1, 1), 5, 7)


CORNERS = ((3, 1 << 15), (4, 1 << 7), (5, 1 << 4))


def at(values: tuple[int, ...], k: int, value: int) -> tuple[int, ...]:
  return (*values[:k], value, *values[k + 1 :])


def test_which_tensor_maps_there_are() -> None:
  """The limits of cuTensorMapEncodeTiled, each from both sides."""
  assert [(replace(GOOD, kind=k).type, replace(GOOD, kind=k).size) for k in range(len(KINDS))] == KINDS
  GOOD.check()
  good: list[dict[str, Any]] = [
    {"rank": 1},
    {"address": 16},
    {"fill": 1},
    {"swizzle": 2},
    {"swizzle": 3, "box": (32, 1, 1, 1, 1)},
    *({"swizzle": 3, "box": (32, 1, 1, 1, 1), "atomicity": k} for k in (1, 3)),
    *({"kind": k, "box": (32, 2, 1, 1, 1)} for k in (13, 14, 15)),
    *({"kind": k, "box": (16, 2, 1, 1, 1)} for k in (14, 15)),
    {"swizzle": 1, "box": (8, 1, 1, 1, 1)},
    {"rank": 1, "swizzle": 3},
    {"kind": 0, "box": (256, 1, 1, 1, 1)},
    *({"kind": k, "fill": 1} for k in (6, 7, 8, 9, 10)),
    *({"kind": k} for k in (1, 2, 3, 4, 5)),
    {"rank": 1, "strides": (0,) * 4, "box": (4, 0, 0, 0, 0), "steps": (1, 0, 0, 0, 0)},
    *({"box": at(GOOD.box, k, 256)} for k in range(5)),
    *({"steps": at(GOOD.steps, k, 8)} for k in range(5)),
    *({"strides": at(GOOD.strides, k, s)} for k in range(4) for s in (0, 16, (1 << 40) - 16)),
    *({"kind": k, "fill": f} for k in (11, 12) for f in (0, 1)),
    *({"im2col": 1, "rank": rank, "lower": at((0,) * 3, k, -most)} for rank, most in CORNERS for k in range(rank - 2)),
    *({"im2col": 1, "rank": rank, "upper": at((0,) * 3, k, most - 1)} for rank, most in CORNERS
      for k in range(rank - 2)),
    *({"im2col": 1, "rank": rank, "lower": at((0,) * 3, k, d - 1)} for rank, _ in CORNERS
      for k, d in enumerate(GOOD.dims[1:rank - 1])),
    *({"im2col": 1, "rank": rank, "upper": at((0,) * 3, k, 1 - d)} for rank, _ in CORNERS
      for k, d in enumerate(GOOD.dims[1:rank - 1])),
    *({"im2col": 1, "rank": rank, "lower": at((0,) * 3, rank - 2, 1 << 14)} for rank in (3, 4)),
    *({"im2col": 1, "box": (16, n, 0, 0, 0)} for n in (1, 1024)),
    *({"im2col": 1, "steps": at(GOOD.steps, k, 8)} for k in range(1, 5)),
  ]
  for change in good:
    replace(GOOD, **change).check()
  bad: list[tuple[dict[str, Any], str]] = [
    ({"rank": 0}, "0 dimensions: there are 1 to 5"),
    ({"rank": 6}, "6 dimensions: there are 1 to 5"),
    ({"kind": 16}, "elements of type 16"),
    ({"interleave": 3}, "interleave layout 3"),
    ({"swizzle": 5}, "swizzle mode 5"),
    ({"fill": 2}, "fill mode 2"),
    ({"im2col": 2}, "mode 2"),
    *(({"im2col": 1, "rank": rank}, f"{rank} dimensions, for im2col: there are 3 to 5") for rank in (1, 2)),
    *(({"im2col": 1, "rank": rank, side: (c,) * 3}, f"{side} corners {(c,) * (rank - 2)}: {-most} to {most - 1}")
      for rank, most in CORNERS for side in ("lower", "upper") for c in (-most - 1, most)),
    *(({"im2col": 1, "rank": 4, **change}, f"no place between its corners, {window}") for change, window in (
      ({"lower": (8, 0, 0)}, ((8, 7), (0, 3))), ({"upper": (0, -4, 0)}, ((0, 7), (0, -1))))),
    *(({"im2col": 1, "box": (16, n, 0, 0, 0)}, f"{n} pixels of a column: there are 1 to 1024") for n in (0, 1025)),
    *(({"im2col": 1, "steps": at(GOOD.steps, k, n)}, f"steps of {n} pixels: there are 1 to 8")
      for k in range(1, 5) for n in (0, 9)),
    *(({"im2col": 1, "box": (n, 2, 0, 0, 0)}, f"a box of {n} elements in dimension 0: there are 1 to 256")
      for n in (0, 257)),
    ({"address": 8}, "the address 0x8, no multiple of 16"),
    *(
      ({"strides": at(GOOD.strides, k, s)}, f"a stride of {s:,} bytes: a multiple of 16 under 2**40")
      for k in range(4)
      for s in (8, 24, 1 << 40)
    ),
    *(
      ({"box": at(GOOD.box, k, n)}, f"a box of {n} elements in dimension {k}: there are 1 to 256")
      for k in range(5)
      for n in (0, 257)
    ),
    *(
      ({"steps": at(GOOD.steps, k, n)}, f"steps of {n} elements in dimension {k}: there are 1 to 8")
      for k in range(5)
      for n in (0, 9)
    ),
    ({"box": (3, 2, 1, 1, 1)}, "a box of 12 bytes in the first dimension, no multiple of 16"),
    ({"kind": 13, "box": (16, 2, 1, 1, 1)}, "a box of 8 bytes in the first dimension, no multiple of 16"),
    *(({"kind": k, field: at(getattr(GOOD, field), 0, 24)},
       f"a {name} of 24 elements of {KINDS[k][0]} in the first dimension: 16 are one")
      for k in (13, 14, 15) for field, name in (("dims", "tensor"), ("box", "box"))),
    ({"atomicity": 1}, "swizzle atomicity without swizzles of 128 bytes"),
    ({"atomicity": 4}, "swizzle atomicity 4"),
    ({"kind": 0, "box": (8, 2, 1, 1, 1)}, "a box of 8 bytes in the first dimension, no multiple of 16"),
    ({"swizzle": 1}, "a box of 64 bytes in the first dimension, and swizzles of 32"),
    ({"swizzle": 2, "box": (20, 1, 1, 1, 1)}, "a box of 80 bytes in the first dimension, and swizzles of 64"),
    *(({"kind": k, "fill": 1}, f"NaN for what lies outside, of {KINDS[k][0]}") for k in range(6)),
  ]
  for change, text in bad:
    with pytest.raises(InvalidArgument) as caught:
      replace(GOOD, **change).check()
    assert str(caught.value) == f"tensor map: a tensor map with {text}"
  never: list[tuple[dict[str, Any], str]] = [
    *(({"interleave": k}, "tensor map with an interleaved layout") for k in (1, 2)),
    ({"atomicity": 2, "swizzle": 3, "box": (32, 1, 1, 1, 1)}, "tensor map with swizzle atomicity 2"),
    ({"swizzle": 4}, "tensor map with swizzles of 96 bytes"),
    ({"swizzle": 3}, "tensor map with rows of 64 bytes in swizzles of 128"),
    ({"swizzle": 2, "box": (8, 1, 1, 1, 1), "rank": 2}, "tensor map with rows of 32 bytes in swizzles of 64"),
  ]
  for change, text in never:
    with pytest.raises(Unsupported) as unsupported:
      replace(GOOD, **change).check()
    assert str(unsupported.value) == f"unsupported {text}"


# ---- samplers and headers of textures

BITS = {
  "addr_mode_0": 0,
  "addr_mode_1": 3,
  "addr_mode_2": 6,
  "filter_mode": 9,
  "force_unnormalized_coords": 11,
  "normalized_coords": 12,
}
VALUES = {
  **dict.fromkeys(("addr_mode_0", "addr_mode_1", "addr_mode_2"), MODES),
  "filter_mode": FILTERS,
  **dict.fromkeys(("force_unnormalized_coords", "normalized_coords"), ("0", "1")),
}


def test_a_sampler_is_its_bits() -> None:
  """The places of its members, which modules, maps of memory and launches share."""
  assert MODES == ("wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border") and FILTERS == (
    "nearest",
    "linear",
  )
  assert Sampler().bits == 0 and Sampler.of(0) == Sampler() and Sampler().modes == ("wrap",) * 3
  for name, low in BITS.items():
    for k, value in enumerate(VALUES[name]):
      found = Sampler.named({name: value})
      assert found.bits == k << low and Sampler.of(k << low) == found
    with pytest.raises(InvalidArgument, match=f"no sampler has {name} = 2"):
      Sampler.named({name: "2"})
  assert Sampler(mip_linear=True).bits == 1 << 13 and Sampler.of(1 << 13).mip_linear
  for members in ({"mip_filter": "linear"}, {"width": "1"}):
    with pytest.raises(InvalidArgument):
      Sampler.named(members)
  for modes, flags in itertools.product(range(512), (0, 1, 2, 4, 8, 16, 31, 32)):
    bits = modes | flags << 9
    good = flags < 32 and not flags & 2 and all(modes >> low & 7 < 5 for low in (0, 3, 6))
    try:
      assert Sampler.of(bits).bits == bits and good
    except InvalidArgument as error:
      assert not good and str(error) == f"{bits:#x} is no sampler"
  assert Sampler.named({"addr_mode_1": "mirror", "filter_mode": "linear"}) == Sampler(("wrap", "mirror", "wrap"), True)


FLOATS = st.floats(width=32, allow_nan=False)
HEADERS = st.builds(
  Header,
  U64,
  st.tuples(U32, U32, U32),
  st.sampled_from(sorted(FORMATS)),
  st.sampled_from([1, 2, 4]),
  U32,
  st.integers(1, 32),
  U32,
  U32,
  *[st.booleans()] * 5,
  st.builds(Sampler, st.tuples(*[st.sampled_from(MODES)] * 3), *[st.booleans()] * 4),
  st.tuples(*[FLOATS] * 4),
  st.tuples(*[FLOATS] * 3),
)


@settings(max_examples=examples(60), deadline=None)
@given(HEADERS)
def test_a_header_is_its_bytes(h: Header) -> None:
  data = h.encode()
  assert len(data) == 160 and decoded(data) == h
  assert decoded(bytes([data[0] ^ 1]) + data[1:]) is None
  for at_, bad in ((52, 8), (53, 3), (53, 0)):
    assert decoded(data[:at_] + bytes([bad]) + data[at_ + 1 :]) is None
  for levels in (0, 33):
    assert decoded(data[:40] + struct.pack("<I", levels) + data[44:]) is None
  assert decoded(data[:16] + struct.pack("<Q", 7) + data[24:]) is None
  assert h.element == {"8": 1, "16": 2, "32": 4}[h.kind[1:]] * h.channels
  assert h.floats == (h.unit or h.kind in {"f16", "f32"})


def test_a_header_that_says_nothing() -> None:
  h = Header()
  assert (h.address, h.size, h.kind, h.channels, h.layers, h.levels, h.samples, h.pitch) == (
    0,
    (1, 0, 0),
    "f32",
    1,
    0,
    1,
    0,
    0,
  )
  assert not (h.cube or h.unit or h.mipmapped or h.linear or h.srgb) and h.sampler == Sampler()
  assert (h.border, h.lod) == ((0.0,) * 4, (0.0, 0.0, 1000.0)) and h.bytes == 4 and decoded(h.encode()) == h


def asked(form: str, question: str, h: Header, lod: int | None = None) -> int:
  """What txq or suq says of a header."""
  more = "" if lod is None else f", {lod}"
  text = f"""{HEAD}.visible .entry k (.param .u64 t, .param .u64 out) {{ .reg .b64 %l<3>; .reg .b32 %r<2>;
    ld.param.u64 %l1, [t]; ld.param.u64 %l2, [out]; {form}.{question}.b32 %r1, [%l1]{more};
    st.global.u32 [%l2], %r1; ret; }}"""
  data = np.frombuffer(h.encode(), np.uint8)
  return int(tinyhw.launch(text, "k", 1, 1, [data, np.zeros(1, np.uint32)], "EMU")[1][0])


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_what_is_asked_about_a_texture(kind: str) -> None:
  """Channels as OpenCL counts them; sizes, layers, cubes, levels, samples, as the header says."""
  cl = {
    "s8": 0x10D7,
    "s16": 0x10D8,
    "s32": 0x10D9,
    "u8": 0x10DA,
    "u16": 0x10DB,
    "u32": 0x10DC,
    "f16": 0x10DD,
    "f32": 0x10DE,
  }
  units = {"s8": 0x10D0, "s16": 0x10D1, "u8": 0x10D2, "u16": 0x10D3}
  for channels, order in ((1, 0x10B0), (2, 0x10B2), (4, 0x10B5)):
    h = Header(0, (9, 5, 3), kind, channels, 7, 4, 2, linear=channels == 2, mipmapped=channels == 4)
    for form in ("txq", "suq"):
      wanted = {
        "width": 9,
        "height": 5,
        "depth": 3,
        "channel_order": order,
        "channel_data_type": cl[kind],
        "array_size": 7,
      }
      if form == "txq":
        wanted |= {"num_mipmap_levels": 4 * h.mipmapped, "num_samples": 2}
      else:
        wanted |= {"memory_layout": int(h.linear)}
      assert {q: asked(form, q, h) for q in wanted} == wanted
    assert asked("txq", "channel_data_type", replace(h, unit=True)) == units.get(kind, 0)
  for question, sizes in (("width", (9, 4, 2, 1, 1)), ("height", (5, 2, 1, 1, 1)), ("depth", (3, 1, 1, 1, 1))):
    assert [asked("txq.level", question, Header(size=(9, 5, 3)), k) for k in (0, 1, 2, 3, 40)] == list(sizes)


def test_what_is_asked_about_cubes_and_samplers() -> None:
  assert [asked("txq", "array_size", Header(size=(4, 4, 0), layers=n, cube=True)) for n in (6, 12, 18)] == [0, 2, 3]
  assert [asked("txq", "array_size", Header(size=(4, 4, 0), layers=n)) for n in (0, 1, 6, 12)] == [0, 1, 6, 12]
  s = Sampler(("clamp_ogl", "mirror", "clamp_to_border"), True, True, False)
  questions = (
    "filter_mode",
    "normalized_coords",
    "force_unnormalized_coords",
    "addr_mode_0",
    "addr_mode_1",
    "addr_mode_2",
  )
  assert [asked("txq", q, Header(sampler=s)) for q in questions] == [1, 1, 0, 2, 1, 4]
  assert [
    asked("txq", q, Header(sampler=replace(s, linear=False, normalized=False, force_unnormalized=True)))
    for q in questions
  ] == [0, 0, 1, 2, 1, 4]
  declared = ".global .samplerref s = { addr_mode_0 = clamp_to_edge, addr_mode_2 = mirror, normalized_coords = 1 };\n"
  reads = "".join(f"txq.{q}.b32 %r1, [s]; st.global.u32 [%l1+{4 * k}], %r1;" for k, q in enumerate(questions))
  body = f".reg .b64 %l<2>; .reg .b32 %r<2>; ld.param.u64 %l1, [out]; {reads} ret;"
  text = f"{HEAD}{declared}.visible .entry k (.param .u64 out) {{ {body} }}"
  assert tinyhw.launch(text, "k", 1, 1, [np.zeros(6, np.uint32)], "EMU")[0].tolist() == [0, 1, 0, 3, 0, 1]
