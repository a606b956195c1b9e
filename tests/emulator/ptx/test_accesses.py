"""Loads and stores of every size at addresses of every shape, for all threads or some, in every space: both engines."""
from __future__ import annotations

import math
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.jit.ptx.test_bulk import outcomes
from tests.emulator.jit.ptx.test_jit import both, kernel, numbers
from tests.strength import THOROUGH, examples, seed, seeds
from tinyhw.core.errors import PageFault
from tinyhw.core.memory import PAGE, AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

TYPES = {"u8": ("%r", 1), "s8": ("%r", 1), "u16": ("%h", 2), "s16": ("%r", 2), "b32": ("%r", 4), "f32": ("%f", 4),
         "u64": ("%l", 8), "f64": ("%d", 8), "b128": ("%q", 16)}
COUNTS = {1: (1, 2, 4), 2: (1, 2, 4), 4: (1, 2, 4, 8), 8: (1, 2, 4), 16: (1,)}
SHAPES = ["one", "block", "gaps", "back", "groups", "wraps", "mixed", "row"]
SPACES = ["global", "shared", "local", "generic", "generic shared"]
GUARDS = ["", "", "@%p1", "@%p2", "@%p3", "@!%p3", "@%p4"]
FLAGS = """.reg .b128 %q<4>; ld.global.v2.u32 {%r22, %r23}, [%in]; setp.eq.u32 %p1, %r22, 1; setp.eq.u32 %p2, %r23, 1;
  setp.lt.u32 %p3, %t, 37; and.b32 %r22, %t, 5; setp.eq.u32 %p4, %r22, 4; mov.u32 %r20, 0;"""
ROOM = {"global": 1 << 13, "shared": 1 << 12, "local": 256}
GLOBAL = 1 << 15  # where stores go, behind what loads have found


@dataclass
class Drawn:
  """An access: `address` computes where it is, `text` makes it."""
  address: str
  text: str


def place(rng: random.Random, space: str, shape: str, width: int, base: str) -> str:
  """Have an address in %l9 (or %r19 where it has 32 bits): inside of what a space has, aligned to the width."""
  at = space.rpartition(" ")[2].replace("generic", "global")
  units = ROOM[at] // width
  index = "%r19"
  if at == "local": shape = rng.choice(["one", "mixed", "row"])  # threads have few places there
  start = rng.randrange(max(1, units - 161)) if shape in {"block", "gaps", "groups"} else rng.randrange(units)
  step = {"block": 1, "gaps": 2, "groups": 1}.get(shape, 1)
  steps = {
    "one": f"mov.u32 {index}, {start};", "block": f"add.u32 {index}, %t, {start};",
    "gaps": f"mad.lo.u32 {index}, %t, {step}, {start};",
    "back": f"mov.u32 {index}, {units - 1}; sub.u32 {index}, {index}, %t;",
    "groups": f"shr.u32 {index}, %t, 2; add.u32 {index}, {index}, {start};",
    "wraps": f"sub.u32 {index}, %t, 3; and.b32 {index}, {index}, {units - 1};",
    "mixed": f"mul.lo.u32 {index}, %t, 7; rem.u32 {index}, {index}, {min(units, 61)};",
    "row": f"and.b32 {index}, %t, 3;"}[shape]
  if space in {"shared", "local"} and rng.random() < 0.5:
    name = {"shared": "s", "local": "mine"}[space]
    return f"{steps} mov.u32 %r18, {name}; mad.lo.u32 {index}, {index}, {width}, %r18;"
  start_ = {"global": f"mov.u64 %l8, {base};", "shared": "mov.u64 %l8, s;", "local": "mov.u64 %l8, mine;"}[at]
  if space == "generic shared": start_ += " cvta.shared.u64 %l8, %l8;"
  if space == "generic local": start_ += " cvta.local.u64 %l8, %l8;"
  return f"{start_} {steps} mad.wide.u32 %l9, {index}, {width}, %l8;"


def access(rng: random.Random, space: str, load: bool, number: int) -> str:
  """One access, and what it found stored."""
  t = rng.choice([*TYPES])
  letter, size = TYPES[t]
  count = rng.choice(COUNTS[size])
  shape = rng.choice(SHAPES)
  if size * count > 16 and space not in {"global", "generic"}: count = 1
  address = place(rng, space, shape, size * count, "%in" if load else "%l7")
  said = "" if space.startswith("generic") else space
  name = ".".join(filter(None, (said, f"v{count}" * (count > 1), t)))
  registers = [f"{letter}{k + 1}" for k in range(count)]
  if letter == "%q": registers = ["%q1"]
  values = registers[0] if count == 1 else "{" + ", ".join(registers) + "}"
  at = "%r19" if "%r18" in address else "%l9"
  guard = rng.choice(GUARDS)
  if load:
    stores = "".join(f"st.global.b{8 * max(size, 4) if letter == '%r' else 8 * size} [%l6+{32 * (k % 4)}], {r};"
                     for k, r in enumerate(registers))
    return f"{address} {guard} ld.{name} {values}, [{at}]; {stores} add.u64 %l6, %l6, 128;"
  fill = "".join(f"mad.lo.u32 %r17, %t, {number + 3 * k + 1}, 5; " + {
    "%r": f"mov.u32 {r}, %r17;", "%h": f"cvt.u16.u32 {r}, %r17;", "%f": f"cvt.rn.f32.u32 {r}, %r17;",
    "%l": f"mul.wide.u32 {r}, %r17, 77777;", "%d": f"cvt.rn.f64.u32 {r}, %r17;",
    "%q": "mul.wide.u32 %l1, %r17, 7; mul.wide.u32 %l2, %r17, 77777; mov.b128 %q1, {%l1, %l2};"}[letter]
    for k, r in enumerate(registers))
  if rng.random() < 0.2 and letter in {"%r", "%f"}:
    fill = "".join(f"mov.b32 {r}, {number};" for r in registers)
  return f"{fill} {address} {guard} st.{name} [{at}], {values};"


def accesses(rng: random.Random, count: int, *spaces: str) -> str:
  """A kernel of several, some for a part of the threads; all that they wrote is stored."""
  lines = [access(rng, rng.choice(spaces), rng.random() < 0.5, n) for n in range(count)]
  half = count // 2
  parted = f"setp.gt.u32 %p5, %t, 19; @%p5 bra PART; {' '.join(lines[half:])} PART:"
  return kernel(f"""{FLAGS} .local .align 16 .b8 mine[{ROOM["local"]}]; mad.wide.u32 %l6, %t, {128 * count}, %out;
    add.u64 %l7, %in, {GLOBAL}; mov.u32 %r1, 0; mov.u32 %r21, mine;
    mad.lo.u32 %r20, %t, 16, 0;
  Z: mov.u32 %r17, s; add.u32 %r17, %r17, %r20; st.shared.v4.u32 [%r17], {{%r20, %t, %r20, %t}};
    add.u32 %r20, %r20, {16 * 80}; setp.lt.u32 %p6, %r20, {ROOM["shared"] - 15}; @%p6 bra Z; bar.sync 0;
    mov.u32 %r20, 0;
  Y: add.u32 %r17, %r21, %r20; st.local.v2.u32 [%r17], {{%r20, %t}}; add.u32 %r20, %r20, 8;
    setp.lt.u32 %p6, %r20, {ROOM["local"]}; @%p6 bra Y;
    {" ".join(lines[:half])} {parted} bar.sync 0;
    mov.u64 %l5, 0; mov.u32 %r20, 0;
  X: add.u32 %r17, %r21, %r20; ld.local.u64 %l4, [%r17]; mul.lo.u64 %l5, %l5, 31; add.u64 %l5, %l5, %l4;
    add.u32 %r20, %r20, 8; setp.lt.u32 %p6, %r20, {ROOM["local"]}; @%p6 bra X;
    mov.u32 %r20, 0; mad.lo.u32 %r17, %t, 8, 0;
  W: and.b32 %r18, %r17, {ROOM["shared"] - 1}; mov.u32 %r19, s; add.u32 %r19, %r19, %r18; ld.shared.u64 %l4, [%r19];
    mul.lo.u64 %l5, %l5, 31; add.u64 %l5, %l5, %l4; add.u32 %r17, %r17, 640; add.u32 %r20, %r20, 1;
    setp.lt.u32 %p6, %r20, 8; @%p6 bra W;
    mad.wide.u32 %l4, %t, 8, %out; st.global.u64 [%l4+245760], %l5;
    mov.u32 %r20, 0; mad.wide.u32 %l4, %t, 16, %l7; mov.u64 %l5, 0;
  V: ld.global.v2.u64 {{%l1, %l2}}, [%l4]; mul.lo.u64 %l5, %l5, 31; add.u64 %l5, %l5, %l1; xor.b64 %l5, %l5, %l2;
    add.u64 %l4, %l4, {16 * 80}; add.u32 %r20, %r20, 1; setp.lt.u32 %p6, %r20, 7; @%p6 bra V;
    mad.wide.u32 %l4, %t, 8, %out; st.global.u64 [%l4+253952], %l5;""",
                f".shared .align 16 .b8 s[{ROOM['shared']}];\n")


@pytest.mark.parametrize("start", seeds(range(2)))
def test_accesses(start: int) -> None:
  """Random ones; none is left to the reference."""
  rng = random.Random(seed(60 + start))
  data = b"\x01\0\0\0\0\0\0\0" + numbers(rng, (GLOBAL + ROOM["global"]) // 4 + 64)
  for _ in range(examples(1)):
    _, stats = both(accesses(rng, 16, *SPACES), data, size=1 << 18, block=rng.choice([32, 32, 27]))
    assert not stats.interpreted and not stats.helped, stats


@pytest.mark.left("st.u16")
def test_generic_addresses_of_the_stack() -> None:
  """The reference goes on where control comes to one."""
  rng = random.Random(seed(70))
  data = b"\x01\0\0\0\0\0\0\0" + numbers(rng, (GLOBAL + ROOM["global"]) // 4 + 64)
  _, stats = both(accesses(rng, 6, "generic local", "local", "generic"), data, size=1 << 18, block=32)
  assert sum(stats.interpreted.values()) == 1


ENDS = [("global", "mov.u64 %l8, %out;", 1 << 16), ("shared", "mov.u64 %l8, s;", 4096),
        ("local", "mov.u64 %l8, mine;", 256), ("", "mov.u64 %l8, s; cvta.shared.u64 %l8, %l8;", 4096),
        ("", "mov.u64 %l8, %out;", 1 << 16)]
WIDE = [("ld", "b32", "%r1", 4), ("st", "v2.b64", "{%l1, %l2}", 16)]
if THOROUGH: WIDE += [("ld", "v2.b64", "{%l1, %l2}", 16), ("st", "b32", "%r1", 4), ("ld", "u8", "%r1", 1),
                      ("st", "b16", "%h1", 2)]


@pytest.mark.parametrize("shape", [0, 1, -1, 2] if THOROUGH else [0, 1, -1])
@pytest.mark.parametrize("k", range(len(ENDS)))
def test_ends_of_what_there_is(k: int, shape: int) -> None:
  """The last bytes can be accessed, those behind them and before the first ones cannot; nor can misaligned ones."""
  space, begin, size = ENDS[k]
  for opcode, t, values, width in WIDE if shape >= 0 or THOROUGH else WIDE[:1]:
    name = ".".join(filter(None, (opcode, space, t)))
    text = kernel(f"""{FLAGS} .local .align 16 .b8 mine[256]; {begin} mov.u32 %r1, %t; mov.u64 %l1, 5; mov.u64 %l2, 6;
      ld.global.s64 %l3, [%in+8]; mul.lo.u32 %r2, %t, {shape}; mul.wide.s32 %l9, %r2, {width}; add.u64 %l9, %l9, %l8;
      add.s64 %l9, %l9, %l3; {name} {f"{values}, [%l9]" if opcode == "ld" else f"[%l9], {values}"};
      mad.wide.u32 %l4, %t, 4, %in; st.global.u32 [%l4+64], %r1;""", ".shared .align 16 .b8 s[4096];\n")
    low, high = max(0, -shape) * 7 * width, size - width - max(0, shape) * 7 * width
    for at, good in ((high, True), (high + width, False), (low, True), (low - width, False),
                     (low + width // 2, width == 1)):
      data = bytes(8) + at.to_bytes(8, "little", signed=True) + bytes(1024)
      (reference, compiled), stats = outcomes(text, data, block=8, size=1 << 16)
      assert isinstance(reference, tuple) == isinstance(compiled, tuple) == (not good), (name, at)
      if good: assert (reference == compiled).all() and stats is not None and not stats.interpreted
      else: assert reference == compiled


@settings(max_examples=examples(12), deadline=None)
@given(st.sampled_from([4, 12, 400, 4000, 4096, -4, -400]), st.sampled_from([(1, 4), (2, 4), (4, 4), (1, 8), (1, 2)]),
       st.booleans(), st.integers(1, 64), st.sampled_from([64, 4096, -4096]), st.integers(0, 12))
def test_threads_in_steps_up_to_the_ends_of_memory(step: int, form: tuple[int, int], stores: bool, threads: int,
                                                   stride: int, first: int) -> None:
  """A loop goes on until some thread passes an end of what is mapped, where a mapping was found before: both engines
  fault at the same place, and have left the same."""
  count, size = form
  vector, type_ = f".v{count}" if count > 1 else "", f"u{8 * size}"
  registers = ", ".join(f"%v{i}" for i in range(count))
  operand = f"{{{registers}}}" if count > 1 else registers
  line = f"st.global{vector}.{type_} [%s], {operand};" if stores else f"ld.global{vector}.{type_} {operand}, [%s];"
  step, stride = step * size // math.gcd(step, size) * count if step % (size * count) else step, stride
  text = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 o) {{
  .reg .u64 %a,%o,%s,%q; .reg .u32 %t,%n; .reg .u{8 * size} %v<4>; .reg .pred %p;
  ld.param.u64 %a,[a]; ld.param.u64 %o,[o]; mov.u32 %t,%tid.x;
  mul.wide.s32 %s,%t,{step}; add.u64 %s,%s,%a; mul.wide.u32 %q,%t,{size}; add.u64 %o,%o,%q;
  mov.u{8 * size} %v0,1; mov.u{8 * size} %v1,2; mov.u{8 * size} %v2,3; mov.u{8 * size} %v3,4; mov.u32 %n,0;
L:
  {line}
  st.global.u{8 * size} [%o],%v0;
  add.s64 %s,%s,{stride}; add.u32 %n,%n,1; setp.lt.u32 %p,%n,400; @%p bra L;
  ret; }}"""
  told = []
  for engine in ("ref", "jit"):
    space, base = AddressSpace("ends"), 1 << 32
    places = [base, base + (1 << 24), base + (2 << 24), base + (3 << 24)]
    sizes = [PAGE, 16 * PAGE, PAGE, PAGE]
    for place_, room in zip(places, sizes): space.map(place_, room, Region("ends", room))
    start = places[1] + (first * PAGE if stride > 0 and step > 0 else (15 - first) * PAGE if step > 0 else 8 * PAGE)
    space.write(places[3], start.to_bytes(8, "little") + places[2].to_bytes(8, "little"))
    program = Program(link(parse(text.encode())), "k", base)
    try:
      dispatch(space, Dispatch(program, (1, 1, 1), (threads, 1, 1), places[3], 16), engine=engine)
      fault = ""
    except PageFault as error: fault = str(error).splitlines()[0]
    told.append((fault, space.read(places[1], sizes[1]), space.read(places[2], PAGE)))
  assert told[0] == told[1]
