"""Tables and limits of PTX by rule: sizes of types, numbers, headers of textures, what is exact, matrices."""
from __future__ import annotations

import math
import re
import struct
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.jit.ptx.test_jit import HEAD, kernel, run
from tests.emulator.ptx.test_modules import image
from tests.emulator.ptx.test_tcgen05_mma import CASES, F16, Case, descriptor, refused
from tests.emulator.ptx.test_tcgen05_mma import name as named
from tests.emulator.tensor_memory import LANES
from tests.emulator.tensor_memory import text as tensor_text
from tests.strength import examples
from tinyhw import launch
from tinyhw.core.errors import DecodeError, InvalidArgument, MachineFault
from tinyhw.emulator.ptx.launch.occupancy import alive_in
from tinyhw.emulator.ptx.memory import tensormap
from tinyhw.emulator.ptx.module import targets
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.ptx.tensorcore import descriptors, matrix, sparse, tcgen05, tmem
from tinyhw.emulator.ptx.texture import objects, queries
from tinyhw.emulator.ptx.texture.objects import FILTERS, FORMATS, MODES, Header, Sampler, decoded
from tinyhw.emulator.ptx.texture.sampling import face
from tinyhw.emulator.values.ops import Ops
from tinyhw.isa.ptx import parse
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.isa.ptx.lexer import integer

# ---- sizes and numbers

def test_sizes_of_types() -> None:
  """Section "Fundamental Types" and "Alternate Floating-Point Data Formats": what a name's numbers say. Numbers of 6
  bits have a byte each where they stand in registers, those of 4 bits half of one."""
  for t, size in SIZES.items():
    plain, small = re.fullmatch(r"(?:[busf]|bf|tf)(\d+)(?:x(\d))?", t), re.fullmatch(r"u?e(\d)m(\d)(?:x(\d))?", t)
    if t == "tf32": assert size == 4
    elif plain is not None: assert 8 * size == int(plain[1]) * int(plain[2] or 1), t
    elif small is not None:
      bits = 4 if (small[1], small[2]) == ("2", "1") else 8
      assert 8 * size == bits * int(small[3] or 1), t
    else: assert size == {"pred": 1, "texref": 8, "samplerref": 8, "surfref": 8, "s2f6x2": 2}[t]


@given(st.integers(0, (1 << 64) - 1), st.booleans())
def test_numbers_in_every_base(value: int, unsigned: bool) -> None:
  """Section "Integer Constants": hexadecimal, octal, binary, decimal, with a U or without."""
  for form in ("0x{:x}", "0X{:X}", "0{:o}", "0b{:b}", "0B{:b}", "{:d}"):
    assert integer(form.format(value) + "U" * unsigned) == value


# ---- textures

FLOATS = st.floats(-1000, 1000, width=32)
SAMPLERS = st.builds(Sampler, st.tuples(*[st.sampled_from(MODES)] * 3), *[st.booleans()] * 4)
HEADERS = st.builds(
  Header, st.integers(0, (1 << 64) - 1), st.tuples(*[st.integers(0, (1 << 32) - 1)] * 3), st.sampled_from([*FORMATS]),
  st.sampled_from([1, 2, 4]), st.integers(0, 1 << 20), st.integers(1, 32), st.integers(0, 8),
  st.integers(0, (1 << 32) - 1), *[st.booleans()] * 5, SAMPLERS, st.tuples(*[FLOATS] * 4), st.tuples(*[FLOATS] * 3))


@settings(max_examples=examples(50))
@given(HEADERS)
def test_a_header_says_what_it_was_made_of(header: Header) -> None:
  """As a whole, and each of its numbers at its place, by itself."""
  raw = header.encode()
  assert decoded(raw) == header and len(raw) == objects.SIZE
  own = {f.name for f in fields(Header)} - {"size", "border", "lod"} | {"width", "height", "depth"}
  assert set(header.numbers) == own
  ends = [8]
  for number, value in header.numbers.items():
    at, size = objects.place_of(number)
    assert at == ends[-1] and int.from_bytes(raw[at:at + size], "little") == value
    ends.append(at + size)
  for number, value in zip(("width", "height", "depth"), header.size): assert header.numbers[number] == value
  for number in ("address", "layers", "levels", "samples", "pitch", "channels", "cube", "unit", "mipmapped", "linear",
               "srgb"): assert header.numbers[number] == getattr(header, number)
  with pytest.raises(KeyError): objects.place_of("border")


def test_bytes_that_are_no_header() -> None:
  """Another magic number, kind, number of channels, levels or sampler."""
  good = Header(levels=7).encode()
  def changed(name: str, value: int) -> Header | None:
    at, size = (0, 8) if name == "magic" else objects.place_of(name)
    return decoded(good[:at] + value.to_bytes(size, "little") + good[at + size:])
  assert changed("magic", objects.MAGIC) == Header(levels=7) and changed("magic", objects.MAGIC ^ 1) is None
  right = {"kind": range(len(FORMATS)), "channels": (1, 2, 4), "levels": range(1, 33)}
  for number, values in right.items():
    for value in range(40): assert (changed(number, value) is not None) == (value in values), number
  for k in range(3):
    for mode in range(8): assert (changed("sampler", mode << 3 * k) is not None) == (mode < len(MODES))
  for bit in range(9, 64): assert (changed("sampler", 1 << bit) is not None) == (bit in (9, 11, 12, 13)), bit


BAD = [("address", 8, 0), ("kind", 1, 8), ("channels", 1, 3), ("channels", 1, 0), ("levels", 4, 0), ("levels", 4, 33),
       *(("sampler", 8, v) for v in (5, 7, 5 << 3, 5 << 6, 1 << 10, 1 << 14, 1 << 63))]


@pytest.mark.parametrize(("field", "size", "value"), BAD)
def test_questions_about_what_is_no_texture(field: str, size: int, value: int) -> None:
  """Both engines say the same of a header, and of the sampler in it or by itself."""
  good = Header(0x1000, (40, 3, 0), levels=2).encode()
  at, _ = objects.place_of(field)
  for wrong in (False, True):
    raw = good[:at] + value.to_bytes(size, "little") + good[at + size:] if wrong else good
    told = []
    for how, what in product(("ref", "jit"), ("txq.width.b32 %r2, [%in];", "txq.level.height.b32 %r2, [%in], 1;")):
      text = kernel(f"{what} st.global.u32 [%out], %r2;")
      try: told.append(str(int(run(text, "k", raw, how, block=1)[0][0])))
      except MachineFault as fault: told.append(f"{fault.address:#x} {str(fault).splitlines()[0]}")
    assert told[:2] == told[2:]
    if not wrong or field == "address": assert told[:2] == ["40", "1"]
    else: assert "no texture or surface is at 0x100" in told[0]


@pytest.mark.parametrize("value", [v for f, _, v in BAD if f == "sampler"])
def test_questions_about_what_is_no_sampler(value: int) -> None:
  text = kernel("""mov.u64 %l1, s; ld.global.u64 %l2, [%in]; st.global.u64 [%l1], %l2; txq.addr_mode_0.b32 %r2, [s];
    st.global.u32 [%out], %r2;""", ".global .samplerref s = { addr_mode_0 = mirror };\n")
  for how in ("ref", "jit"):
    assert run(text, "k", (2).to_bytes(8, "little"), how, block=1)[0][0] == 2
    with pytest.raises(MachineFault, match="no sampler"): run(text, "k", value.to_bytes(8, "little"), how, block=1)


@given(SAMPLERS)
def test_a_samplers_fields(sampler: Sampler) -> None:
  """Each in its bits, which is what txq is told; an initializer names them all but the filter between levels."""
  values = {**{f"addr_mode_{k}": MODES.index(mode) for k, mode in enumerate(sampler.modes)},
            "filter_mode": sampler.linear, "normalized_coords": sampler.normalized,
            "force_unnormalized_coords": sampler.force_unnormalized, "mip_filter": sampler.mip_linear}
  taken = 0
  for field, value in values.items():
    found = objects.field_of(field)
    assert found is not None
    at, bits = found
    assert sampler.bits >> at & (1 << bits) - 1 == value and not taken >> at & (1 << bits) - 1
    taken |= (1 << bits) - 1 << at
  assert Sampler.of(sampler.bits) == sampler and taken == objects.MEANT
  words = {f: MODES[v] if f[:4] == "addr" else FILTERS[v] if f == "filter_mode" else str(int(v))
           for f, v in values.items() if f != "mip_filter"}
  assert Sampler.named(words) == replace(sampler, mip_linear=False)
  for field, value in (("mip_filter", "linear"), ("addr_mode_3", "wrap"), ("filter_mode", "wrap")):
    with pytest.raises(InvalidArgument): Sampler.named({field: value})
  assert objects.field_of("width") is None


# ---- meanings

def words(body: str, *values: int, size: int = 4) -> list[int]:
  """What a body makes of a word in %r1 (%l1), of each value: in %r2 (%l2); both engines alike."""
  raw = b"".join(v.to_bytes(size, "little") for v in values)
  wide = size == 8
  source, kind = ("%l1", "u64") if wide else ("%r1", "u32")
  out = "%l2" if wide else "%r2"
  text = kernel(f"""mad.wide.u32 %l3, %t, {size}, %in; ld.global.{kind} {source}, [%l3]; {body}
    mad.wide.u32 %l3, %t, {size}, %out; st.global.{kind} [%l3], {out};""")
  found = [run(text, "k", raw, how, block=len(values))[0] for how in ("ref", "jit")]
  assert (found[0] == found[1]).all()
  cells = np.ascontiguousarray(found[0][:size * len(values)]).view(f"u{size}")
  return [int(c) for c in cells]


NANS = (0x7F800001, 0x7FC00000, 0xFF800001, 0xFFFFFFFF, 0x7FFFFFFF)


def test_the_least_nan_is_one_too() -> None:
  """And infinity is none, at each conversion to what has no infinity of its own. What `cvt.rna.tf32` makes of a NaN has
  its upper bits: of the least one those of infinity."""
  numbers = (0x7F800000, 0xFF800000, 0x7F7FFFFF, 0, 0x80000000)
  def converted(what: str, *values: int) -> list[int]:
    return words(f"mov.b32 %f1, %r1; {what}", *values)
  scale = "mov.f32 %f2, 0f3F800000; cvt.rz.{}ue8m0x2.f32 %h1, %f2, %f1; cvt.u32.u16 %r2, %h1; and.b32 %r2, %r2, 0xff;"
  assert converted(scale.format("satfinite."), *NANS) == [255] * 5
  assert converted(scale.format("satfinite."), *numbers)[:3] == [254, 254, 254]
  pair = "mov.f32 %f2, 0f3F800000; cvt.rn.satfinite.{}.f32 %h1, %f2, %f1; cvt.u32.u16 %r2, %h1; and.b32 %r2, %r2, 0x7f;"
  for t, nan, most in (("e4m3x2", 0x7F, 0x7E), ("e5m2x2", 0x7F, 0x7B)):
    assert converted(pair.format(t), *NANS) == [nan] * 5
    assert converted(pair.format(t), *numbers) == [most, most, most, 0, 0]
  tf32 = converted("cvt.rna.tf32.f32 %r2, %f1;", *NANS)
  assert tf32 == [n & 0xFFFFE000 for n in NANS]  # as an H200 cuts them off (tests/recordings)
  assert converted("cvt.rna.satfinite.tf32.f32 %r2, %f1;", *NANS, *numbers) == [
    *[0x7FFFFFFF] * 5, 0x7F7FE000, 0xFF7FE000, 0x7F7FE000, 0, 0x80000000]


def test_the_reciprocal_of_what_is_large_is_zero() -> None:
  """rcp.approx.ftz.f64: subnormal sources and results are zeros of their sign; the lower half of a result is 0."""
  def bits(x: float) -> int: return int.from_bytes(struct.pack("<d", x), "little")
  given_ = [1.7e308, -1.7e308, 2.0**1022, 2.0**1021, -2.0**-1022, 1e-310, -1e-310, 3.0]
  found = words("mov.b64 %d1, %l1; rcp.approx.ftz.f64 %d2, %d1; mov.b64 %l2, %d2;", *map(bits, given_), size=8)
  inf = float("inf")
  assert found[:7] == [bits(x) for x in (0.0, -0.0, 2.0**-1022, 2.0**-1021, -2.0**1022, inf, -inf)]
  assert found[7] & 0xFFFF_FFFF == 0 and abs(struct.unpack("<d", found[7].to_bytes(8, "little"))[0] - 1 / 3) < 1e-6


# ---- variables

@pytest.mark.parametrize(("text", "wanted"), [
  (".v2 .u32 x = {1, 2};", (1, 2)), (".v4 .u32 x = {1, 2};", (1, 2, 0, 0)),
  (".v2 .u32 x[2] = {{1, 2}, {3, 4}};", (1, 2, 3, 4)),
  (".v4 .u32 x[2] = {{1}, {5, 6}};", (1, 0, 0, 0, 5, 6, 0, 0)), (".u32 x[2][2] = {{1}, {3}};", (1, 0, 3, 0)),
  (".v2 .u32 x[2][2] = {{{1}, {3, 4}}, {{5, 6}}};", (1, 0, 3, 4, 5, 6, 0, 0)), (".u32 x[] = {1, 2, 3};", (1, 2, 3))])
def test_initial_values_of_vectors_and_arrays(text: str, wanted: tuple[int, ...]) -> None:
  """Each at the place of its element; what is left out is 0."""
  data, offsets = image(f".global .align 16 {text}")
  assert struct.unpack_from(f"<{len(wanted)}I", data, offsets["x"]) == wanted


# ---- matrices in tensor memory

KINDS = {c.kind: c for c in reversed(CASES) if c.pair == 1 and not (c.ws or c.sparse or c.tensor or c.ultra >= 0)
         and c.modes == (2, 2) and c.turned == (False, False)}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_a_descriptor_may_say_of_its_matrices(kind: str) -> None:
  """Integers are not negated, and what has two elements a byte is not transposed; each matrix is asked for itself."""
  for negated, turned in product(product((0, 1), repeat=2), repeat=2):
    case: Case = replace(KINDS[kind], signs=negated, turned=(bool(turned[0]), bool(turned[1])), n=128)
    scales = ", [%d], [%d]" if case.scale is not None else ""
    body = f"""mov.u32 %r14, {descriptor(case)}; mov.u64 %l10, {1 << 46};
      @%p1 {named(case)} [%d], %l10, %l10, %r14{scales}, 1;"""
    wrong = kind == "i8" and any(negated) or kind.startswith("mxf4") and any(turned)
    try: refused(body, 256)
    except MachineFault as fault: said = str(fault)
    else: said = ""
    assert ("a matrix that is" in said) == wrong, (negated, turned, said)


@pytest.mark.parametrize(("kind", "given_"), [(".sp", "[%d], %l10, %l10, %r14, 1"), ("", "[%d], %l10, %l10, %r14"),
                                              (".sp", "[%d], %l10, %l10, [%d], %r14")])
def test_a_product_takes_so_many_operands(kind: str, given_: str) -> None:
  with pytest.raises(DecodeError, match="takes .* operands, not"):
    refused(f"@%p1 tcgen05.mma{kind}.cta_group::1.kind::f16 {given_};")


def test_columns_that_are_kept_name_who_allocated_them() -> None:
  """The place is the instruction's, the warp the one that has executed it."""
  text = tensor_text("", 16, columns=64, ends=False).replace("setp.lt.u32 %p3, %t, 32;", "setp.ge.u32 %p3, %t, 96;")
  cells = np.zeros((1, LANES, 512), np.uint32)
  with pytest.raises(MachineFault, match="64 columns of tensor memory that it has not given back") as caught:
    launch(text, "k", 1, LANES, [cells, cells, np.zeros((1, 16), np.uint8)], "EMU")
  line = next(k for k, row in enumerate(text.splitlines(), 1) if "tcgen05.alloc" in row)
  assert (caught.value.wave, caught.value.line) == (3, line) and F16.kind == "f16"


def bound(line: str, more: str = "") -> None:
  """Bind an instruction of a kernel, without running it."""
  program = Program(link(parse(kernel(line, more))), "k", 0x4_0000_0000)
  program.block(program.entry, 0)


COORDINATES = {"1d": (1, 0), "2d": (2, 0), "3d": (3, 0), "a1d": (1, 1), "a2d": (2, 1), "cube": (3, 0), "acube": (3, 1),
               "2dms": (2, 1), "a2dms": (2, 2)}  # of section "Texture Instructions: tex": coordinates, and what leads


@pytest.mark.parametrize("geometry", COORDINATES)
def test_coordinates_of_each_geometry(geometry: str) -> None:
  """So many, in a vector of the next power of two at least; fewer are refused."""
  count, lead = COORDINATES[geometry]
  kind = "s32" if geometry.endswith("ms") else "f32"
  for given_ in range(1, 5):
    names = [f"%r{k + 1}" for k in range(lead)] + [f"%{'r' if kind == 's32' else 'f'}{k + 1}" for k in range(4)]
    vector = names[0] if given_ == 1 else "{" + ", ".join(names[:given_]) + "}"
    if given_ == 3: continue  # there are no vectors of three
    text = f"tex.{geometry}.v4.f32.{kind} {{%f5, %f6, %f7, %f8}}, [%l1, {vector}];"
    if given_ >= count + lead: bound(text)
    else:
      with pytest.raises(DecodeError): bound(text)


@pytest.mark.parametrize("geometry", ["1d", "2d", "3d", "a1d", "a2d"])
def test_coordinates_of_each_surface(geometry: str) -> None:
  count, lead = COORDINATES[geometry]
  for given_ in (1, 2, 4):
    names = [f"%r{k + 1}" for k in range(given_)]
    vector = names[0] if given_ == 1 else "{" + ", ".join(names) + "}"
    text = f"suld.b.{geometry}.b32.trap %r9, [%l1, {vector}];"
    if given_ >= count + lead: bound(text)
    else:
      with pytest.raises(DecodeError): bound(text)


def test_bytes_of_other_blocks() -> None:
  """At each offset of a block's shared memory, by blocks of a cluster in each order."""
  text = kernel("""mov.u32 %r1, s; add.u32 %r2, %r1, %t; mov.u32 %r3, %cluster_ctarank; mul.lo.u32 %r4, %r3, 50;
    add.u32 %r4, %r4, %t; st.shared.u8 [%r2], %r4; barrier.cluster.arrive; barrier.cluster.wait;
    mad.lo.u32 %r6, %r3, 16, 0; cvt.u64.u32 %l4, %r6; mad.wide.u32 %l3, %r3, 96, %out; mad.wide.u32 %l3, %t, 1, %l3;
    mov.u32 %r5, 0;
L:  mapa.shared::cluster.u32 %r7, %r2, %r5; ld.shared::cluster.u8 %r8, [%r7]; st.global.u8 [%l3], %r8;
    add.u64 %l3, %l3, 32; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra L;
    barrier.cluster.arrive; barrier.cluster.wait;""", ".shared .align 8 .b8 s[32];\n").replace(
      ") {", ") .reqnctapercluster 3 {", 1)
  for how in ("ref", "jit"):
    found, _ = run(text, "k", bytes(16), how, block=32, grid=3)
    wanted = [(50 * rank + t) % 256 for rank in range(3) for t in range(32)]
    assert found[:288].tolist() == wanted * 3


def test_registers_that_are_alive_at_once() -> None:
  """In whichever block of the code most of them are."""
  def most(body: str) -> int:
    return alive_in(Program(link(parse(kernel(body))), "k", 0).function("k"))
  first = f"""{HEAD}.visible .entry k (.param .u64 in, .param .u64 out) {{ .reg .b32 %r<5>; .reg .b64 %l<3>;
    ld.param.u64 %l0, [in]; ld.param.u64 %l1, [out]; ld.global.u32 %r0, [%l0]; st.global.u32 [%l1], %r0;
    ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l0]; st.global.v4.u32 [%l1], {{%r4, %r3, %r2, %r1}}; ret; }}"""
  assert alive_in(Program(link(parse(first)), "k", 0).function("k")) == 6  # an address, and what was loaded; not %r0
  load = "".join(f"ld.global.u32 %r{k}, [%in+{4 * k}];" for k in range(1, 19))
  use = "".join(f"st.global.u32 [%out+{4 * k}], %r{k};" for k in range(1, 19))
  branch = "setp.lt.u32 %p1, %t, 5; @%p1 bra L; add.u32 %r20, %t, 1; st.global.u32 [%out+400], %r20; L: "
  few = most("ld.global.u32 %r1, [%in]; st.global.u32 [%out], %r1;")
  assert few < 10 < 18 <= most(load + use) <= 18 + few
  for body in (branch + load + use, load + use + branch): assert most(load + use) <= most(body) <= most(load + use) + 2
  assert most(load + branch + use) >= most(load + use)


# ---- tables

OPS = Ops()
WIDTHS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64, "u8": 8, "s8": 8, "u4": 4, "s4": 4,
          "b1": 1, "e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 8, "e2m1x2": 4}  # in registers


def test_tables_of_matrices() -> None:
  """Bits of elements; of sparse ones a half is stored of each 2 (32 bits), 4 (8 and 16) or 8 (4 bits); shapes of
  tcgen05.cp and .ld by their names; modes of swizzling (sections 9.7.15.5.1 and 9.7.16.4)."""
  assert WIDTHS == matrix.BITS
  halves = {t: b for t, b in WIDTHS.items() if t not in ("f32", "s32", "f64", "b1")}
  assert sparse.CHUNK == {t: {32: 2, 16: 4, 8: 4, 4: 8}[b] for t, b in halves.items()}
  for name in tcgen05.COPIES:
    rows, bits = map(int, name.removesuffix("b").split("x"))
    assert tcgen05.COPIES[name] == (rows, bits // 128)
  for name, registers in tmem.REGISTERS.items():
    assert 32 * 32 * registers == math.prod(map(int, re.findall(r"\d+", name))), name
  assert {m: row[0] for m, row in descriptors.SWIZZLES.items()} == {0: 16, 1: 128, 2: 128, 4: 64, 6: 32}
  assert {m: row[1] for m, row in descriptors.SWIZZLES.items()} == {0: 0, 1: 3, 2: 7, 4: 3, 6: 1}
  assert {m: row[2] for m, row in descriptors.SWIZZLES.items()} == {0: 16, 1: 32, 2: 16, 4: 16, 6: 16}
  assert tensormap.SWIZZLES == (0, 32, 64, 128, 96) and tensormap.ATOMS == {0: (7, 16), 1: (3, 32), 3: (1, 64)}
  assert tensormap.CORNERS == {3: 32768, 4: 128, 5: 16} and tensormap.COLUMN == 1024
  assert tensormap.UNITS == {"b4x16": (8, 8), "b4x16_p64": (8, 16), "b6x16_p32": (12, 16)}
  for name, size in tensormap.TYPES:
    assert size == (0 if "x16" in name else int((re.search(r"\d+", name) or [""])[0]) // 8), name


def test_answers_are_opencls() -> None:
  """The enumerations of OpenCL's cl.h: CL_R, CL_RG, CL_RGBA, CL_SNORM_INT8 and so on."""
  types = {"s8": 0x10D7, "s16": 0x10D8, "s32": 0x10D9, "u8": 0x10DA, "u16": 0x10DB, "u32": 0x10DC, "f16": 0x10DD,
           "f32": 0x10DE}
  units = {"s8": 0x10D0, "s16": 0x10D1, "u8": 0x10D2, "u16": 0x10D3}
  for unit, kind, channels in product((False, True), FORMATS, (1, 2, 4)):
    if unit and kind not in units: continue
    numbers = Header(kind=kind, channels=channels, unit=unit).numbers
    def number(name: str, numbers: dict[str, int] = numbers) -> np.uint64: return np.uint64(numbers[name])
    assert queries.answer(OPS, "channel_data_type", number, None) == (units if unit else types)[kind]
    assert queries.answer(OPS, "channel_order", number, None) == {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}[channels]


@pytest.mark.parametrize(("c", "number", "s", "t"), [
  ((4, 1, 2), 0, -2, -1), ((-4, 1, 2), 1, 2, -1), ((1, 4, 2), 2, 1, 2), ((1, -4, 2), 3, 1, -2), ((1, 2, 4), 4, 1, -2),
  ((1, 2, -4), 5, -1, -2), ((4, -3, -2), 0, 2, 3), ((-1, -2, -4), 5, 1, 2), ((4, 2, 4), 4, 4, -2), ((4, 4, 2), 2, 4, 2),
  ((2, 4, 4), 4, 2, -4),
  ((4, 4, 4), 4, 4, -4)])
def test_faces_of_a_cube(c: tuple[int, int, int], number: int, s: int, t: int) -> None:
  """The table of section "Cubemap Textures" of the CUDA Programming Guide: (s / m + 1) / 2, (t / m + 1) / 2.
  Where two are the greatest it is z's face before y's, and y's before x's."""
  found, (u, v), _ = face(OPS, [np.float64(x) for x in c])
  assert (found, u, v) == (number, (s / 4 + 1) / 2, (t / 4 + 1) / 2)


def test_columns_of_tensor_memory_are_given_back() -> None:
  """In any order: each allocation is known by its first column."""
  held = tmem.TensorMemory(1)
  def got(columns: int) -> int: return held.allocate(0, columns, 0, 0, "")
  assert [got(64), got(32), got(32), got(32)] == [0, 64, 96, 128]
  held.free(0, 96, 32)
  held.free(0, 64, 32)
  assert np.flatnonzero(held.owned(0)).tolist() == [*range(64), *range(128, 160)]
  for at, columns in ((64, 32), (0, 32), (32, 32), (128, 64)):
    with pytest.raises(ValueError, match=f"{columns} columns of tensor memory at {at:#x}"): held.free(0, at, columns)
  assert got(32) == 64 and held.missing(0, 60, 100) == 96 and held.missing(0, 0, 95) is None


def test_targets_that_there_are() -> None:
  """Of section "PTX Module Directives: .target", with the letters of those that have features of their own."""
  plain = "10 11 12 13 20 21 30 32 35 37 50 52 53 60 61 62 70 72 75 80 86 87 88 89 90 100 101 103 110 120 121".split()
  letters = {"90": "a", **dict.fromkeys(("100", "101", "103", "110", "120", "121"), "af")}
  assert {f"sm_{n}{x}" for n in plain for x in ("", *letters.get(n, ""))} == targets.TARGETS


def test_sizes_of_texels() -> None:
  assert {t: int(t[1:]) // 8 for t in ("u8", "s8", "u16", "s16", "u32", "s32", "f16", "f32")} == FORMATS
  assert MODES == ("wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border")


def test_masks_of_lanes() -> None:
  """Section "Special Registers": those that are equal, less, greater, or both."""
  names = {"eq": lambda a, b: a == b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
           "ge": lambda a, b: a >= b}
  body = "".join(f"mov.u32 %r1, %lanemask_{n}; st.global.u32 [%l1+{4 * k}], %r1;" for k, n in enumerate(names))
  for how in ("ref", "jit"):
    found, _ = run(kernel(f"mad.wide.u32 %l1, %t, 32, %out; {body}"), "k", bytes(16), how, block=32)
    cells = found[:1024].view(np.uint32).reshape(32, 8)
    for k, holds in enumerate(names.values()):
      assert cells[:, k].tolist() == [sum(1 << a for a in range(32) if holds(a, b)) for b in range(32)]


LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %")  # section "Constant Expressions"
MADE = {
  "||": lambda a, b: int(bool(a or b)), "&&": lambda a, b: int(bool(a and b)), "|": lambda a, b: a | b,
  "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b),
  "<": lambda a, b: int(a < b), "<=": lambda a, b: int(a <= b), ">": lambda a, b: int(a > b),
  ">=": lambda a, b: int(a >= b), "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "+": lambda a, b: a + b,
  "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a // b, "%": lambda a, b: a % b}


def test_how_closely_operators_bind() -> None:
  """Each beside each other one, as in C: what binds more closely comes first, of two alike the left one."""
  level = {o: k for k, row in enumerate(LEVELS) for o in row.split()}
  texts, wanted = [], []
  for (one, f), (two, g), (a, b, c) in product(MADE.items(), MADE.items(), ((7, 2, 3), (1, 4, 1), (6, 6, 2))):
    first = level[one] >= level[two]
    try: inner = f(a, b) if first else g(b, c)
    except ZeroDivisionError: continue
    if inner < 0 or inner == 0 and not first and one in "/%": continue
    value = g(inner, c) if first else f(a, inner)
    texts.append(f"{a} {one} {b} {two} {c}")
    wanted.append(value)
  data, offsets = image(f".global .s64 x[] = {{{', '.join(texts)}}};")
  found = struct.unpack_from(f"<{len(wanted)}q", data, offsets["x"])
  assert [t for t, x, y in zip(texts, found, wanted) if x != y] == [] and len(texts) > 900


@pytest.mark.parametrize("space", ["shared", "local", "const", "global", "param"])
def test_addresses_go_to_generic_ones_and_back(space: str) -> None:
  """Of global memory they are the same; of another one a window of its own lies between."""
  more = {"shared": ".shared .align 8 .b8 v[64];\n", "const": ".const .align 8 .b8 v[64];\n",
          "global": ".global .align 8 .b8 v[64];\n"}.get(space, "")
  own = ".local .align 8 .b8 v[64];" if space == "local" else ""
  name = "in" if space == "param" else "v"
  text = kernel(f"""{own} mov.u64 %l1, {name}; add.u64 %l1, %l1, 8; cvta.{space}.u64 %l2, %l1;
    cvta.to.{space}.u64 %l3, %l2; sub.u64 %l4, %l3, %l1; sub.u64 %l5, %l2, %l1; isspacep.{space} %p1, %l2;
    selp.u64 %l6, 1, 0, %p1; isspacep.{space} %p2, %l1; st.global.u64 [%out], %l4; st.global.u64 [%out+8], %l5;
    st.global.u64 [%out+16], %l6;""", more)
  for how in ("ref", "jit"):
    found, _ = run(text, "k", bytes(64), how, block=1)
    back, apart, there = found[:24].view(np.uint64).tolist()
    assert back == 0 and (apart == 0) == (space in ("global", "const", "param")) and there == 1
