"""Textures and surfaces: arguments of launches, variables of modules, faults; values are test_ptx_witness's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyhw
from tinyhw import Surface, Texture
from tinyhw.core.errors import DecodeError, InvalidArgument, MachineFault, PageFault, Unsupported
from tinyhw.emulator.ptx.texture.objects import FORMATS, SIZE, Header, Sampler, decoded
from tinyhw.isa.ptx import parse, printer

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel(body: str, more: str = "", params: str = ".param .u64 t") -> str:
  return f"""{HEAD}{more}.visible .entry k ({params}, .param .u64 out) {{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %l<9>;
  ld.param.u64 %l2, [out];
  mov.u32 %r1, %tid.x; mad.wide.u32 %l2, %r1, 16, %l2; and.b32 %r2, %r1, 7; shr.u32 %r3, %r1, 3;
  {body}
  ret;
}}"""


FETCH = "tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [A, {%r2, %r3}]; st.global.v4.f32 [%l2], {%f1,%f2,%f3,%f4};"
DATA = np.arange(64, dtype=np.float32).reshape(8, 8)


def run(text: str, *given: Any, **more: Any) -> Any:
  args = [np.int64(a) if isinstance(a, int) else a for a in given]
  return tinyhw.launch(text, "k", 1, 64, [*args, np.zeros((64, 4), np.float32)], "EMU", **more)


@pytest.mark.left("tex")
@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("way", ["handle", "parameter", "variable", "address", "old"])
def test_a_texture_by_each_way(way: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  t = Texture(DATA)
  if way == "handle": found = run(kernel("ld.param.u64 %l1, [t];" + FETCH.replace("A", "%l1")), t)
  elif way == "parameter": found = run(kernel(FETCH.replace("A", "t"), params=".param .texref t"), t)
  else:
    body = "mov.u64 %l1, v;" + FETCH.replace("A", "%l1") if way == "address" else FETCH.replace("A", "v")
    found = run(kernel(body, ".tex .u32 v;\n" if way == "old" else ".global .texref v;\n"), 0, textures={"v": t})
  out, = found
  assert (out[:, 0].reshape(8, 8) == DATA).all() and (out[:, 1:] == (0, 0, 1)).all()


def test_threads_may_look_at_textures_of_their_own() -> None:
  """A handle, and a sampler, that differs from thread to thread."""
  body = """ld.param.u64 %l1, [t]; ld.param.u64 %l3, [u]; setp.lt.u32 %p1, %r1, 20; selp.b64 %l1, %l1, %l3, %p1;
  mov.u64 %l4, s; mov.u64 %l5, z; setp.lt.u32 %p2, %r1, 40; selp.b64 %l4, %l4, %l5, %p2;
  cvt.rn.f32.u32 %f5, %r1; sub.f32 %f5, %f5, 0f40000000;
  tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}|%p3, [%l1, %l4, {%f5}]; selp.f32 %f4, 0f40A00000, %f4, %p3;
  @%p2 st.global.v4.f32 [%l2], {%f1,%f2,%f3,%f4}; @!%p2 st.global.f32 [%l2], %f1;"""
  samplers = """.global .samplerref s = { addr_mode_0 = clamp_to_edge, filter_mode = nearest };
.global .samplerref z = { addr_mode_0 = clamp_to_border };
"""
  text = kernel(body, samplers, ".param .u64 t, .param .u64 u")
  out, = run(text, Texture(np.arange(48, dtype=np.float32), "1d"), Texture(-np.arange(48, dtype=np.float32), "1d"))
  at = np.arange(64) - 2
  wanted = np.where(at < 18, 1, -1) * np.clip(at, 0, 47)
  assert (out[:, 0] == np.where((np.arange(64) >= 40) & (at > 47), 0, wanted)).all()
  assert (out[:40, 3] == 5).all()
  module = parse(text)
  assert parse(printer.text(module)) == module


# CL_SNORM_INT8 ... CL_UNORM_INT16, CL_SIGNED_INT8 ... CL_FLOAT of OpenCL's cl.h
CHANNEL_TYPES = [("int8", True, 0x10D0), ("int16", True, 0x10D1), ("uint8", True, 0x10D2), ("uint16", True, 0x10D3),
                 ("int8", False, 0x10D7), ("int16", False, 0x10D8), ("int32", False, 0x10D9), ("uint8", False, 0x10DA),
                 ("uint16", False, 0x10DB), ("uint32", False, 0x10DC), ("float16", False, 0x10DD),
                 ("float32", False, 0x10DE)]


def test_what_is_asked_about_channels() -> None:
  text = kernel("""ld.param.u64 %l1, [t]; txq.channel_data_type.b32 %r4, [%l1]; txq.channel_order.b32 %r5, [%l1];
  st.global.v2.b32 [%l2], {%r4, %r5};""")
  for number, (dtype, unit, wanted) in enumerate(CHANNEL_TYPES):
    channels, order = [(1, 0x10B0), (2, 0x10B2), (4, 0x10B5)][number % 3]  # CL_R, CL_RG, CL_RGBA
    data = np.zeros((2, 2, channels) if channels > 1 else (2, 2), dtype)
    out, = tinyhw.launch(text, "k", 1, 1, [Texture(data, "2d", channels=channels, unit=unit), np.zeros(4, np.uint32)],
                         "EMU")
    assert out[:2].tolist() == [wanted, order]


def test_a_surface_comes_back() -> None:
  body = """ld.param.u64 %l1, [t]; shl.b32 %r4, %r2, 2; add.u32 %r5, %r1, 100;
  setp.ne.u32 %p1, %r1, 9; @%p1 sust.b.2d.b32.trap [%l1, {%r4, %r3}], %r5;
  and.b32 %r4, %r4, 0xFFFFFFF8; suld.b.2d.v2.b32.clamp {%r6, %r7}, [%l1, {%r4, %r3}];
  st.global.v2.b32 [%l2], {%r6, %r7};"""
  surface, out = run(kernel(body), Surface(np.zeros((8, 8), np.uint32)))
  wanted = np.where(np.arange(64) == 9, 0, np.arange(64) + 100).reshape(8, 8)
  assert (surface == wanted).all()
  assert (out.view(np.uint32)[:, 0] == wanted[np.arange(64) // 8, np.arange(64) % 8 & 6]).all()


def faulty(body: str, argument: Any, kind: type[Exception] = MachineFault, **more: Any) -> str:
  with pytest.raises(kind) as caught: run(kernel("ld.param.u64 %l1, [t];" + body, **more), argument)
  return str(caught.value)


def test_what_goes_wrong_is_named() -> None:
  flat = Texture(DATA)
  assert "outside of a surface of (8, 8, 1) elements" in faulty(
    "mov.u32 %r4, 30; suld.b.2d.b32.trap %r6, [%l1, {%r4, %r3}];", flat)
  assert "misaligned read of 4 bytes" in faulty(
    "mov.u32 %r4, 2; suld.b.2d.b32.trap %r6, [%l1, {%r4, %r3}];", flat)
  assert "not .3d is fetched from as one" in faulty(
    "tex.3d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%l1, {%r1,%r1,%r1,%r1}];", flat)
  assert "not .3d is used as one" in faulty("suld.b.3d.b32.zero %r6, [%l1, {%r1,%r1,%r1,%r1}];", flat)
  assert "reduction of 4 bytes on a surface with elements of 8" in faulty(
    "sured.p.add.1d.b32.zero [%l1, {%r1}], %r1;", Texture(np.zeros((4, 2), np.float32), "1d", channels=2))
  assert "no texture or surface is at" in faulty("mov.u64 %l1, v;" + FETCH.replace("A", "%l1"), 0,
                                                 more=".global .align 8 .u64 v = w;\n.global .b8 w[256];\n")
  assert "no texture or surface is bound" in faulty(FETCH.replace("A", "v"), 0, more=".global .texref v;\n")
  assert "not mapped" in faulty(FETCH.replace("A", "%l1"), 4096, PageFault)
  assert "no sampler is at" in faulty(
    "mov.u64 %l3, w; tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%l1, %l3, {%f1}];", Texture(DATA[0], "1d"),
    more=".global .align 8 .u64 w = 0xffffff;\n")
  assert "a sampler has no width" in faulty("txq.width.b32 %r4, [v];", 0, more=".global .samplerref v;\n")
  assert "no sampler has filter_mode = cubic" in faulty(
    "", 0, DecodeError, more=".global .samplerref v = { filter_mode = cubic };\n")
  for kind in ("texref", "surfref"):
    assert f".{kind} v" in faulty("", 0, Unsupported, more=f".global .{kind} v = {{ width = 4 }};\n")
  assert "is no texture, sampler or surface" in faulty(
    FETCH.replace("A", "v"), 0, DecodeError, more=".global .u64 v;\n")


@pytest.mark.parametrize("line", [
  "tex.2d.v4.f32.s32 {%f1,%f2,%f3}, [%l1, {%r1,%r1}];", "tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%l1, {%r1}];",
  "tex.cube.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%l1, {%f1,%f1,%f1,%f1}], {%r1,%r1,%r1,%r1};",
  "tex.3d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%l1, {%f1,%f1,%f1,%f1}], %f1;",
  "tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%l1, {%f1}], %f1, %f1;", "tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, %f1;",
  "suld.b.1d.b32.trap {%r1,%r2}, [%l1, {%r1}];", "suld.b.2d.b32.trap %r1, [%l1, {%r1}];",
  "sust.b.1d.v2.b32.trap [%l1, {%r1}], %r1;", "suld.b.1d.b32.trap %r1, [%l1];"])
def test_operands_that_do_not_fit(line: str) -> None: faulty(line, Texture(DATA), DecodeError)


@pytest.mark.parametrize("given", [
  {"geometry": "4d"}, {"channels": 3}, {"address": "around"}, {"filter": "cubic"}, {"geometry": "1d"},
  {"geometry": "cube"}, {"unit": True}, {"channels": 2}, {"levels": (DATA,)}, {"address": ("wrap", "wrap")},
  {"data": np.zeros((7, 4, 4), np.float32), "geometry": "acube"}, {"data": np.zeros((6, 4, 5), np.float32),
                                                                 "geometry": "cube"}])
def test_textures_that_there_are_not(given: dict[str, Any]) -> None:
  with pytest.raises(InvalidArgument): Texture(**{"data": DATA, **given})


def test_names_and_types_that_there_are_not() -> None:
  with pytest.raises(Unsupported, match="a texture of"): Texture(DATA.astype(np.float64))
  with pytest.raises(InvalidArgument, match="'w'; *|the module has v"):
    run(kernel("", ".global .texref v;\n"), 0, textures={"w": Texture(DATA)})
  with pytest.raises(InvalidArgument, match="a texture given for 4 bytes"):
    run(kernel("", params=".param .u32 t"), Texture(DATA))


def test_headers_are_what_they_say() -> None:
  """Sizes of levels, and the way to bytes and back."""
  for kind in FORMATS:
    h = Header(4096, (9, 5, 0), kind, 2, 6, 3, 0, 0, True, False, True, False, False,
               Sampler(("wrap", "clamp_ogl", "clamp_to_border"), True, False, True, True), (0.5, 1.0, 2.0, 4.0),
               (0.5, 1.0, 2.0))
    assert decoded(h.encode()) == h and len(h.encode()) == SIZE
    e = 2 * FORMATS[kind]
    first, second = -(-9 * 5 * 6 * e // 16) * 16, -(-4 * 2 * 6 * e // 16) * 16
    assert (h.start(1), h.start(2)) == (4096 + first, 4096 + first + second) and h.extent(2) == (2, 1, 1)
    assert h.bytes == first + second + 2 * 6 * e
  pitched = Header(0, (9, 5, 0), pitch=64)
  assert pitched.row(0) == 64 and pitched.slices(0) == 320
  assert decoded(bytes(SIZE)) is None
  for bits in (7, 1 << 10, 1 << 14):
    with pytest.raises(InvalidArgument): Sampler.of(bits)
  assert Sampler.of(0x3BFF & ~(0x7 << 0 | 7 << 3 | 7 << 6) | 4).modes == ("clamp_to_border", "wrap", "wrap")
