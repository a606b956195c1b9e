"""What threads send to other blocks, do in several places of memory, and ask of headers: compiled code against the
reference, with its faults; the reference is not called for what is none."""
from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.emulator.jit.ptx.test_bulk import BARRIER, SHARED, alike, around, data
from tests.isa import ptx_samples as samples
from tests.strength import seed, seeds
from tinyhw.core.errors import Error
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.memory.tensormap import TensorMap
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.ptx.texture.objects import FORMATS, MODES, Header, Sampler
from tinyhw.emulator.simt import Stats
from tinyhw.isa.ptx import parse

# ---- to another block

SENDS = [("st.async.weak", "shared::cluster.", "b32"), ("st.async", "", "v4.f32"),
         ("st.async", "shared::cluster.", "v2.s64"),
         *((f"red.async.relaxed.cluster{'.shared::cluster' * far}", "", o) for far, o in (
           (1, "add.u32"), (0, "max.s32"), (1, "inc.u32"), (1, "dec.u32"), (0, "min.u32"), (1, "xor.b32"),
           (1, "add.u64")))]


def sending(rng: random.Random, send: tuple[str, str, str], clustered: bool, apart: bool, at: int) -> tuple[str, int]:
  """(what sends a value of each thread to a place of its own or of two, the bytes of one). `apart`: the mbarrier is in
  another block than the places."""
  name, space, t = send
  element = t.rpartition(".")[2]
  size, count = int(element[1:]) // 8, {"v2": 2, "v4": 4}.get(t.partition(".")[0], 1)
  value = "%l4" if size == 8 else "%f1" if element[0] == "f" else "%r8"
  values = value if count == 1 else "{" + ", ".join([value] * count) + "}"
  window = "" if space or "shared" in name else "cvta.shared.u64 %l6, %l6; cvta.shared.u64 %l7, %l7;"

  def mapped(to: str, of: str, rank: str) -> str:
    return f"mapa.shared::cluster.u64 {to}, {of}, {rank};" if clustered else f"mov.u64 {to}, {of};"
  return f"""mov.u32 %r8, %tid.x; and.b32 %r10, %r8, {rng.choice([31, 15])}; mad.lo.u32 %r8, %r8, 77, {5 + at};
    mad.lo.u32 %r10, %r10, {size * count}, %to; cvt.u64.u32 %l5, %r10; cvt.u64.u32 %l7, %barrier;
    add.u64 %l5, %l5, {at}; mov.b64 %l4, {{%r8, %r8}}; cvt.rn.f32.u32 %f1, %r8;
    mov.u32 %r11, %cluster_ctarank; xor.b32 %r11, %r11, 1;
    {mapped("%l6", "%l5", "%r11")} {mapped("%l7", "%l7", "%far" if apart else "%r11")} {window}
    @%p2 {name}.{space}mbarrier::complete_tx::bytes.{t} [%l6], {values}, [%l7];""", size * count


@pytest.mark.parametrize("clustered", [True, False])
def test_values_are_sent(clustered: bool) -> None:
  rng = random.Random(seed(clustered))
  made = [sending(rng, send, clustered, False, 512 * k) for k, send in enumerate(SENDS)]
  numbers = {"to": 1024, "barrier": BARRIER}
  text = around(" ".join(t for t, _ in made), clustered)
  for threads in (0, 1, 29):
    raw = data(TensorMap(), b"", threads=threads, expected=threads * sum(n for _, n in made), **numbers)
    stats = alike(text, raw, block=32, grid=1 + clustered)
    assert stats is not None and not stats.helped


@pytest.mark.parametrize("twist", ["odd", "end", "barrier", "block", "over", "many"])
def test_values_that_are_not_sent(twist: str) -> None:
  """By all threads or the last ones; `over`: one of them writes where the mbarrier is."""
  rng = random.Random(seed(twist))
  clustered = twist == "block" or rng.random() < 0.5
  text, width = sending(rng, rng.choice(SENDS), clustered, twist == "block", 0)
  threads = 3 if twist == "over" else 29
  numbers = {"to": 1024, "threads": threads, "expected": threads * width, "barrier": BARRIER}
  if twist == "odd": numbers["to"] += 2
  if twist == "end": numbers["to"] = SHARED - 8 * width
  if twist == "barrier": numbers["barrier"] = BARRIER + 4
  if twist == "over": numbers["to"] = BARRIER - width
  if twist == "many": numbers["expected"] = (1 << 20) - 1
  alike(around(text, clustered), data(TensorMap(), b"", **numbers), block=32, grid=1 + clustered)


# ---- memory that is in several places

PLACES, WINDOW, OTHER = (0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000), 0x7_0000_0000, 0x4_0000_0000


def several(lines: str, content: bytes, engine: str, places: tuple[int, ...], far: int) -> tuple[Any, Stats]:
  """(all memory, counts) of a launch, or its fault."""
  text = f"""{samples.HEAD.format(target='sm_100a').partition('.visible')[0]}
.visible .entry k (.param .u64 m, .param .u64 out) {{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b64 %l<10>;
  .reg .b8 %b<9>;
  ld.param.u64 %l8, [m]; ld.param.u64 %l9, [out]; mov.u32 %r8, %tid.x; mul.wide.u32 %l1, %r8, 16;
  add.u64 %l8, %l8, %l1; add.u64 %l9, %l9, %l1; setp.gt.u32 %p1, %r8, {far};
  ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l9]; ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%l9];
  mov.b64 %l2, {{%r1, %r2}}; mov.b64 %d1, %l2; mov.b64 %l3, {{%r3, %r4}};
  cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; cvt.u16.u32 %h3, %r3; cvt.u16.u32 %h4, %r4;
  mov.b32 {{%b1, %b2, %b3, %b4}}, %r1; mov.b32 {{%b5, %b6, %b7, %b8}}, %r2;
  mov.u64 %l1, %l8; {lines} ret;
}}"""
  space = AddressSpace("places")
  params = WINDOW.to_bytes(8, "little") + OTHER.to_bytes(8, "little")
  contents = [*((p, content[:1024]) for p in PLACES), (OTHER, content[-2048:]), (0x5_0000_0000, params),
              (WINDOW, content[:1024])]
  for k, (at, raw) in enumerate(contents):
    space.map(at, 4096, Region("data", 4096))
    if k < 3: raw = raw[64 * k:] + raw[:64 * k]
    space.write(at, raw)
  if places: space.multicast = ((WINDOW + 4096, 4096, PLACES), (WINDOW, 4096, places))
  program = Program(link(parse(text)), "k", 0)
  try: stats = dispatch(space, Dispatch(program, (1, 1, 1), (64, 1, 1), 0x5_0000_0000, 16), engine=engine)
  except Error as error: return str(error), Stats()
  return [space.read(at, 4096) for at in (*PLACES, WINDOW, OTHER)], stats


def multimem(rng: random.Random) -> str:
  """An instruction, and what stores its results."""
  row = samples.samples(3, rng)
  line = rng.choice([x for of in row.values() for x in of.values() if x.startswith("multimem")])
  if "ld_reduce" not in line: return f"@%p1 {line}"
  given = re.findall(r"%[a-z]\d", line)[:-1]
  sizes = {"b": 8, "h": 16, "r": 32, "f": 32, "l": 64, "d": 64}
  stores = "".join(f"st.global.b{sizes[x[1]]} [%l9+{1024 + 2 * 8 * k}], {x};" for k, x in enumerate(given[:1]))
  return f"@%p1 {line} {stores}"


@pytest.mark.parametrize("start", seeds(range(10)))
def test_places(start: int) -> None:
  """An address that stands for one place, several, or itself; some threads do nothing."""
  rng = random.Random(start)
  line = multimem(rng)
  content = np.random.default_rng(start).integers(0, 0x3C, 4096, np.uint8).tobytes()  # no NaN: only which is open
  places = rng.choice([PLACES, PLACES[:1], (), (PLACES[2], PLACES[0])])
  far = rng.choice([0, 5, 40, 63])
  wanted, _ = several(line, content, "ref", places, far)
  found, stats = several(line, content, "jit", places, far)
  assert found == wanted, line
  assert isinstance(wanted, str) or not stats.helped, line


@pytest.mark.parametrize("places", [(PLACES[0], 0x9_0000_0000), (0x9_0000_0000,), PLACES])
@pytest.mark.parametrize("line", ["multimem.st.weak.b32 [%l8], %r1;", "multimem.red.relaxed.gpu.add.u32 [%l8], %r1;",
                                  "multimem.ld_reduce.add.u32 %r2, [%l8];"])
def test_places_that_there_are_not(line: str, places: tuple[int, ...]) -> None:
  """Of the last address, by one thread; or it is not aligned."""
  more = "add.u64 %l8, %l8, 2;" if places == PLACES else ""
  (wanted, _), (found, _) = (several(more + line, bytes(4096), engine, places, 62) for engine in ("ref", "jit"))
  assert isinstance(wanted, str) and found == wanted


# ---- questions

ASKED = [*(f"txq.{n}" for n in (
           "width", "height", "depth", "channel_data_type", "channel_order", "normalized_coords", "array_size",
           "num_mipmap_levels", "num_samples", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2",
           "force_unnormalized_coords")),
         *(f"suq.{n}" for n in ("width", "height", "depth", "channel_data_type", "channel_order", "array_size",
                                "memory_layout")), *(f"txq.level.{n}" for n in ("width", "height", "depth"))]


def header(rng: random.Random) -> Header:
  """Any."""
  modes = tuple(rng.choice(MODES) for _ in range(3))
  sampler = Sampler(modes, *(rng.random() < 0.5 for _ in range(4)))  # type: ignore[arg-type]
  return Header(0x1234, (rng.choice([1, 7, 300]), rng.choice([0, 9]), rng.choice([0, 40])), rng.choice([*FORMATS]),
                rng.choice([1, 2, 4]), rng.choice([0, 6, 7, 18]), rng.randrange(1, 9), rng.choice([0, 4]), 0,
                *(rng.random() < 0.5 for _ in range(5)), sampler)


def asked(lines: list[str], memory: bytes, engine: str) -> tuple[Any, Stats]:
  """(what 64 threads were answered, counts), or the fault. Headers are 256 bytes apart; each thread has one of two in
  %l1, all have the first in %l2, and a level in %r9."""
  stores = "".join(f"{line} st.global.u32 [%l3+{4 * k}], %r1;" for k, line in enumerate(lines))
  text = f""".version 8.0
.target sm_80
.address_size 64
.global .texref tr; .global .samplerref sr; .global .surfref su; .global .u64 none;
.visible .entry k (.param .u64 in, .param .u64 out) {{
  .reg .pred %p<9>; .reg .b32 %r<10>; .reg .b64 %l<9>;
  ld.param.u64 %l2, [in]; ld.param.u64 %l3, [out]; mov.u32 %r8, %tid.x; and.b32 %r9, %r8, 3;
  mul.wide.u32 %l4, %r9, 256; and.b64 %l4, %l4, 256; add.u64 %l1, %l2, %l4; mul.wide.u32 %l4, %r8, 256;
  add.u64 %l3, %l3, %l4; mov.u32 %r1, 7; setp.lt.u32 %p1, %r8, 40; setp.ne.u64 %p2, %l2, 0; {stores} ret;
}}"""
  space = AddressSpace("questions")
  params = (0x1_0000_0000).to_bytes(8, "little") + OTHER.to_bytes(8, "little")
  linked = link(parse(text))
  program = Program(linked, "k", 0x6_0000_0000)
  for at, raw in ((0x1_0000_0000, memory), (OTHER, bytes(64 * 256)), (0x5_0000_0000, params),
                  (0x6_0000_0000, linked.bytes_at(0x6_0000_0000, program.functions))):
    size = -(-len(raw) // 4096) * 4096
    space.map(at, size, Region("data", size))
    space.write(at, raw)
  try: stats = dispatch(space, Dispatch(program, (1, 1, 1), (64, 1, 1), 0x5_0000_0000, 16), engine=engine)
  except Error as error: return str(error), Stats()
  return space.read(OTHER, 64 * 256), stats


@pytest.mark.parametrize("start", seeds(range(3)))
def test_questions(start: int) -> None:
  """Of one header, of two, under guards, behind a variable."""
  rng = random.Random(start)
  memory = b"".join(header(rng).encode().ljust(256, b"\0") for _ in range(2))
  memory += (0x1_0000_0100).to_bytes(8, "little")  # a variable's word: the second header
  def line(name: str) -> str:
    where = rng.choice(["%l1", "%l2", "%l1", "%l2+0"]).removesuffix("+0")
    level = f", {rng.choice(['%r9', '2', '40'])}" if "level" in name.split(".") else ""
    return f"{rng.choice(['', '', '@%p1 ', '@!%p2 '])}{name}.b32 %r1, [{where}]{level};"
  lines = [line(n) for n in ASKED] + ["add.u64 %l5, %l2, 512; txq.width.b32 %r1, [%l5];"]
  lines += [f"istypep.{t} %p3, {at}; selp.u32 %r1, 1, 0, %p3;" for t in ("texref", "samplerref", "surfref")
            for at in ("%l6", "%l7")]
  lines[-6] = "mov.u64 %l6, tr; mov.u64 %l7, su; mov.u64 %l4, sr; selp.b64 %l7, %l7, %l4, %p1;" + lines[-6]
  wanted, _ = asked(lines, memory, "ref")
  found, stats = asked(lines, memory, "jit")
  assert not isinstance(wanted, str) and found == wanted and not stats.helped and not stats.interpreted


@pytest.mark.parametrize("twist", range(9))
def test_questions_about_nothing(twist: int) -> None:
  """No header, a variable with none, one that is damaged, no sampler: by the threads that have the second one."""
  rng = random.Random(seed(twist))
  first, second = (bytearray(replace(header(rng), sampler=Sampler()).encode().ljust(256, b"\0")) for _ in range(2))
  if twist < 2: second[:8] = (0, 0x1000)[twist].to_bytes(8, "little")
  elif twist < 7: second[(52, 53, 40, 18, 16)[twist - 2]] = (99, 3, 33, 1, 7)[twist - 2]
  line = "txq.width.b32 %r1, [%l1];" if twist < 8 else "add.u64 %l1, %l1, 8192; txq.width.b32 %r1, [%l1];"
  if twist == 7: line, second = "txq.filter_mode.b32 %r1, [sr];", second
  (wanted, _), (found, stats) = (asked([line], bytes(first + second), engine) for engine in ("ref", "jit"))
  assert found == wanted and isinstance(wanted, str) == (twist != 7)
