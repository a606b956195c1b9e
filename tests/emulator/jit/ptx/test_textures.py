"""Fetches and surfaces in compiled code do what the reference does, bit for bit."""
from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.emulator.ptx.test_sampling import POINTS, drawn
from tests.strength import seeds
from tinyhw.core.errors import Error
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.jit.ptx.texture import fetches
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.ptx.texture.objects import FORMATS, Header, Sampler
from tinyhw.emulator.simt import Stats
from tinyhw.isa.ptx import parse

THREADS, IN, OUT, ARRAYS, PARAMS = 256, 0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000, 0x4_0000_0000
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
TEXT = """.visible .entry k (.param .u64 in, .param .u64 out, .param .u64 one, .param .u64 two) {{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b64 %l<9>;
  ld.param.u64 %l1, [in]; ld.param.u64 %l2, [out]; ld.param.u64 %l3, [one]; ld.param.u64 %l5, [two];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, 32, %r2;
  mad.wide.u32 %l1, %r1, 64, %l1; mad.wide.u32 %l2, %r1, 64, %l2;
  setp.lt.u32 %p1, %r2, 11; selp.b64 %l4, %l3, %l5, %p1;
  ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%l1]; ld.global.v4.f32 {{%f5, %f6, %f7, %f8}}, [%l1+16];
  ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%l1+32]; ld.global.v4.u32 {{%r9, %r10, %r11, %r12}}, [%l1+48];
  mov.u32 %r20, 77; mov.u32 %r21, 78; mov.u32 %r22, %r2; mov.u32 %r23, 80;
  setp.lt.f32 %p2, %f8, 0f3F000000;
  {line}
  st.global.v4.u32 [%l2], {{%r20, %r21, %r22, %r23}}; ret;
}}"""


def point(rng: random.Random) -> bytes:
  """What a thread has: coordinates, gradients and such, whole numbers, what is stored."""
  floats = [rng.choice(POINTS) if rng.random() < 0.6 else rng.uniform(-1.5, 8) for _ in range(8)]
  whole = [rng.choice([0, 1, 2, 3, 5, 8, -1, -9, 2**31 - 1, rng.randrange(-2**31, 2**31)]) for _ in range(4)]
  stored = [rng.randrange(2**32) for _ in range(4)]
  with np.errstate(over="ignore"): raw = np.array(floats).astype(np.float32).tobytes()
  return raw + np.array(whole, np.int64).astype(np.uint32).tobytes() + np.array(stored, np.uint32).tobytes()


def run(line: str, headers: list[Header], engine: str, rng: random.Random, coordinates: bytes) -> tuple[Any, Stats]:
  """(all memory that may have changed, counts) of a launch; a fault is an outcome too."""
  space = AddressSpace("textures")
  arrays = bytearray(1 << 16)
  for k, h in enumerate(headers):
    here = replace(h, address=ARRAYS + 0x8000 * k + 0x400)
    assert h.bytes < 0x7C00
    arrays[0x8000 * k:0x8000 * k + 160] = here.encode()
    data = rng.randbytes(h.bytes)
    if h.kind == "f16": data = np.frombuffer(data, np.int8)[:h.bytes // 2].astype(np.float16).tobytes()
    if h.kind == "f32" and rng.random() < 0.8:
      data = (np.frombuffer(data, np.int8)[:h.bytes // 4] / np.float32(8)).tobytes()
    arrays[0x8000 * k + 0x400:0x8000 * k + 0x400 + len(data)] = data
  params = b"".join(x.to_bytes(8, "little") for x in (IN, OUT, ARRAYS, ARRAYS + 0x8000))
  for at, content in ((IN, coordinates), (OUT, bytes(64 * THREADS)), (ARRAYS, bytes(arrays)), (PARAMS, params)):
    space.map(at, -(-len(content) // 4096) * 4096, Region("data", -(-len(content) // 4096) * 4096))
    space.write(at, content)
  program = Program(link(parse(HEAD + TEXT.format(line=line))), "k", 0x5_0000_0000)
  d = Dispatch(program, (THREADS // 32, 1, 1), (32, 1, 1), PARAMS, 32)
  try: stats = dispatch(space, d, engine=engine)
  except Error as error: return str(error), Stats()
  return (space.read(OUT, 64 * THREADS), space.read(ARRAYS, len(arrays))), stats


def held(line: str, headers: list[Header], start: object, native: bool = True) -> None:
  """Both engines do the same, and compiled code does it by itself."""
  data = b"".join(point(random.Random(f"{start} {k}")) for k in range(THREADS))
  wanted, _ = run(line, headers, "ref", random.Random(f"{start}"), data)
  found, stats = run(line, headers, "jit", random.Random(f"{start}"), data)
  assert found == wanted, (line, headers)
  if native and not isinstance(wanted, str):
    name = line.removeprefix("@%p2 ").removeprefix("@!%p2 ").split()[0]
    assert stats.helped[name] <= 2 * len(headers), (line, headers)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None: monkeypatch.setattr(fetches, "SOON", 1)


def fetch(rng: random.Random) -> tuple[str, list[Header]]:
  """An instruction and what it looks at."""
  h = drawn(rng)
  rank = sum(n > 0 for n in h.size)
  h = replace(h, address=0)
  geometry = f"{rank}d"
  if rank == 2 and not h.samples and h.levels == 1 and rng.random() < 0.25:
    h = replace(h, size=(h.size[0], h.size[0], 0), layers=12, cube=True, pitch=0)
    geometry = rng.choice(["cube", "acube"])
  elif h.samples: geometry = "2dms"
  if h.layers and not h.cube: geometry = "a" + geometry
  axes, integers = (3 if h.cube else rank), not h.cube and rng.random() < 0.25 or h.samples > 0
  kind = "s32" if integers else "f32"
  c = [f"%{'r' if integers else 'f'}{5 * integers + k + (not integers)}" for k in range(axes)]
  if geometry == "a2dms": c = ["%r9", "%r10", *c]
  elif geometry[0] == "a" or h.samples: c = ["%r9", *c]
  while len(c) & len(c) - 1: c.append(c[-1])
  how, more = "", ""
  if not h.samples:
    how = rng.choice(["", "", ".level", ".grad"]) if not integers else rng.choice(["", ".level"])
    if how == ".level": more += ", %r8" if integers else ", %f7"
    if how == ".grad":
      n = {1: 1, 2: 2, 3: 4}[axes]
      more += "".join(f", {{{', '.join(f'%f{5 + (k + j) % 4}' for k in range(n))}}}" for j in (0, 1))
    if not h.cube and rng.random() < 0.3: more += f", {{{', '.join(['3', '-1', '2', '0'][:(0, 1, 2, 4)[axes]])}}}"
    if (axes < 3 or h.cube) and h.floats and rng.random() < 0.15: more += ", %f8"
  result = "f32" if h.floats else "u32" if h.kind[0] == "u" else "s32"
  out = "{%r20, %r21, %r22, %r23}"
  name = f"tex{how}.{geometry}.v4.{result}.{kind}"
  more = more.replace("{%f5}", "%f5").replace("{%f6}", "%f6")
  if rank == 2 and not h.cube and not h.samples and rng.random() < 0.15:
    name, more = f"tld4.{rng.choice('rgba')}.{geometry}.v4.{result}.f32", ""
    c = [*(["%r9"] if h.layers else []), "%f1", "%f2"]
    while len(c) & len(c) - 1: c.append(c[-1])
  at = f"{{{', '.join(c)}}}"
  handle = rng.choice(["%l3", "%l3", "%l4"])
  return f"{rng.choice(['', '', '@%p2 '])}{name} {out}, [{handle}, {at}]{more};", [h, replace(h, pitch=0)]


@pytest.mark.left("tex", "tld4")
@pytest.mark.parametrize("start", seeds(range(14)))
def test_fetches(start: int) -> None:
  """Random textures, instructions and coordinates, also of threads that look at different ones."""
  line, headers = fetch(random.Random(start))
  held(line, headers, start)


SURFACES = [
  "suld.b.{g}.b32.{m} %r20, [%l3, {c}];",
  "@%p2 suld.b.{g}.v2.b16.{m} {{%h1, %h2}}, [%l4, {c}]; mov.b32 %r20, {{%h1, %h2}};",
  "suld.b.{g}.v4.b32.{m} {{%r20, %r21, %r22, %r23}}, [%l4, {c}];",
  "sust.b.{g}.v2.b32.{m} [%l3, {c}], {{%r9, %r10}};", "@!%p2 sust.b.{g}.b16.{m} [%l4, {c}], %h3;",
  "sust.p.{g}.v4.b32.{m} [%l3, {c}], {{%r9, %f1, %r11, %r12}};", "sust.p.{g}.b32.{m} [%l4, {c}], %f2;",
  "sured.b.{o}.{g}.{t}.{m} [%l4, {c}], %r9;", "@%p2 sured.p.{o}.{g}.b32.{m} [%l3, {c}], %r9;"]


@pytest.mark.left("suld", "sust", "sured")
@pytest.mark.parametrize("start", seeds(range(len(SURFACES))))
def test_surfaces(start: int) -> None:
  rng = random.Random(start)
  h = drawn(rng)
  rank = sum(n > 0 for n in h.size)
  h = replace(h, address=0, samples=0, levels=1, mipmapped=False, linear=False)
  geometry = ("a" if h.layers else "") + f"{rank}d"
  mode = rng.choice(["clamp", "zero", "zero", "trap"])
  c = ["%r25"] * bool(h.layers) + ["%r26", "%r27", "%r28"][:rank]
  while len(c) & len(c) - 1: c.append(c[-1])
  o, t = rng.choice([("add", "u32"), ("min", "s32"), ("max", "s32"), ("max", "u32"), ("and", "b32"), ("or", "b32")])
  line = SURFACES[start % len(SURFACES)]
  if line.startswith("@%p2 sured"):
    kind, channels = rng.choice([("u32", 1), ("s32", 1), ("s8", 4), ("u16", 2), ("f32", 1)])
    h, o = replace(h, kind=kind, channels=channels, pitch=0), rng.choice(["min", "max"])
  line = line.format(g=geometry, m=mode, c="{" + ", ".join(c) + "}", o=o, t=t)
  near = "" if mode == "zero" else "".join(f"and.b32 %r{k}, %r{k}, 0;" for k in range(25, 29))
  move = "shl.b32 %r26, %r5, 4; and.b32 %r25, %r6, 3; and.b32 %r27, %r7, 7; mov.u32 %r28, %r8;"
  move += f"cvt.u16.u32 %h3, %r9; {near}"
  data = b"".join(point(random.Random(f"{start} {k}")) for k in range(THREADS))
  wanted, _ = run(move + line, [h, h], "ref", random.Random(f"{start}"), data)
  found, stats = run(move + line, [h, h], "jit", random.Random(f"{start}"), data)
  assert found == wanted, (line, h)
  if not isinstance(wanted, str): assert stats.helped.total() <= 4, (line, h, stats.helped)


@pytest.mark.parametrize("line", [
  "suld.b.2d.b32.trap %r20, [%l3, {%r5, %r6}];", "sust.b.2d.b32.trap [%l3, {%r5, %r6}], %r9;",
  "suld.b.2d.v2.b32.clamp {%r20, %r21}, [%l3, {%r2, %r6}];"])
def test_faults_are_the_references(line: str) -> None:
  """Outside, and misaligned: by some threads of a warp that others have gone before."""
  held("shr.u32 %r30, %r1, 6; mul.lo.u32 %r5, %r5, %r30; mul.lo.u32 %r6, %r6, %r30; mul.lo.u32 %r2, %r2, %r30;" + line,
       [Header(size=(64, 8, 0), kind="u32")], line, native=False)


@pytest.mark.parametrize("offset", [1, 2, 4])
def test_bytes_of_surfaces_are_aligned(offset: int) -> None:
  """Eight bytes that are not at a multiple of eight are a fault, however far from one, of those who come late too."""
  held(f"shr.u32 %r30, %r1, 6; mul.lo.u32 %r5, %r30, {offset}; mov.u32 %r6, 0; "
       "suld.b.2d.v2.b32.trap {%r20, %r21}, [%l3, {%r5, %r6}];", [Header(size=(64, 8, 0), kind="u32")], offset,
       native=False)


def test_mappings_that_change_are_learned_anew() -> None:
  """Where an array lies is asked of each launch; an array that is not in one mapping is the reference's."""
  h = Header(size=(64, 8, 0), kind="f32", sampler=Sampler(normalized=True, linear=True))
  assert fetches._host(replace(h, address=0x1000), np.array([[0x1000, 2048, 5, 1]], np.uint64), False) == 0x1005
  for start, size, access, writes in ((0x1000, 2047, 1, False), (0x2000, 4096, 1, False), (0x1000, 2048, 1, True)):
    rows = np.array([[start, size, 5, access]], np.uint64)
    assert fetches._host(replace(h, address=0x1000), rows, writes) is None


def test_forms_are_few() -> None:
  """Sizes and places are no part of what a function is compiled for."""
  one = Header(0x1000, (64, 8, 0), "u8", 4, unit=True, pitch=512, lod=(1.0, 0.0, 3.0), border=(1.0,) * 4)
  two = Header(0x9000, (20, 90, 0), "u8", 4, unit=True)
  assert fetches.form_of(one, Sampler()) == fetches.form_of(two, Sampler())
  edge = Sampler(("clamp_to_border",) * 3)
  assert fetches.form_of(one, edge) != fetches.form_of(two, edge)
  assert FORMATS[one.kind] == 1
