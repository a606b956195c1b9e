"""Programs for a chip: the witness's cases and others, each a kernel of its own, with what goes in.

A probe's kernel loads each thread's operands, executes an instruction and stores its results, as `bench` has it. Here
nothing says what is right: a chip does, and `tools/ledger/chip` records it.
"""
from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.isa.ptx.forms import SIZES
from tinyhw.tools.ledger.ptx_forms import form_of
from tinyhw.tools.witness.ptx import bench, table
from tinyhw.tools.witness.ptx.draw import values
from tinyhw.tools.witness.ptx.table import Case

Array = Any
THREADS: Final = 64
OWN: Final = 4096  # bytes of memory that a probe has at most
TARGET: Final = "sm_90a"
# Textures and multicast objects are of the driver's making; those that need none of it are left to other tests.
LEFT: Final = frozenset({"tex", "tld4", "txq", "suq", "suld", "sust", "sured", "istypep", "multimem"})
MANY: Final = {"set": 90, "ld": 90, "st": 60, "setp": 90, "cvt": 400, "atom": 90, "red": 70, "vmad": 40}
FEW: Final = 24  # cases that cover modifiers, of other instructions
FUNCTIONS: Final = (*(f"{f}.approx{z}.f32" for f in ("ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt")
                      for z in ("", ".ftz")), "tanh.approx.f32")
HALVES: Final = ("tanh.approx.f16", "tanh.approx.bf16", "ex2.approx.f16", "ex2.approx.ftz.bf16")


@dataclass(frozen=True)
class Probe:
  """An instruction `text` with operands `{0}`, `{1}`..., results first; `{M}` is the address of its memory. `serial`:
  one thread after the other, as each sees what those before it have stored."""
  form: str
  text: str
  results: tuple[str, ...]
  sources: tuple[str, ...]
  given: tuple[tuple[int, ...], ...]  # of each source, the threads' bits
  memory: bytes = b""
  serial: bool = False
  threads: int = THREADS


def kernel(probes: Sequence[Probe], serially: bool = False) -> str:
  """A kernel of probes that have as many threads: operands of one behind those of the other, 8 bytes for each thread.
  `serially` takes turns where a probe wants it; the emulator's threads come in order without."""
  lines, given, made, threads = list[str](), 0, 0, probes[0].threads
  for number, p in enumerate(probes):
    names = [bench.register(t, k) for k, t in enumerate((*p.results, *p.sources))]
    n = len(p.results)
    lines.append(f"ld.param.u64 %l75, [mem]; add.u64 %l75, %l75, {OWN * number};")
    for type_, name in zip(p.sources, names[n:]):
      lines.append(bench.load(type_, name, 8 * threads * given))
      given += 1
    for type_, name in zip(p.results, names[:n]):  # what a thread is not told is 0
      if type_ != "pred": lines.append(f"mov.b{8 * max(SIZES[type_], 2)} {name}, 0;" if SIZES[type_] < 16 else "")
    text = p.text.format(*names, M="%l75", N=number)
    if p.serial and serially:
      text = (f"mov.u32 %r77, 0; T{number}: setp.ne.u32 %p31, %r77, %r79; @%p31 bra S{number};\n{text}\n"
              f"S{number}: bar.sync 0; add.u32 %r77, %r77, 1; setp.lt.u32 %p31, %r77, {threads}; @%p31 bra T{number};")
    lines.append(text)
    for type_, name in zip(p.results, names[:n]):
      lines.append(bench.store(type_, name, 8 * threads * made))
      made += 1
  body = "\n".join(lines)
  return f""".version 9.0
.target {TARGET}
.address_size 64
.shared .align 1024 .b8 sh[8192];
.visible .entry k (.param .u64 in, .param .u64 out, .param .u64 mem) {{
  .reg .pred %p<32>; .reg .b16 %h<80>; .reg .b32 %r<80>; .reg .b64 %l<80>; .reg .b128 %q<4>;
  ld.param.u64 %l78, [in]; ld.param.u64 %l79, [out];
  mov.u32 %r79, %tid.x;
  mad.wide.u32 %l78, %r79, 8, %l78; mad.wide.u32 %l79, %r79, 8, %l79;
{body}
  ret;
}}
"""


def operands(probes: Sequence[Probe]) -> Array:
  """The array u64 [sources, threads] that `kernel` reads."""
  rows = [column for p in probes for column in p.given]
  return np.array(rows or [(0,) * probes[0].threads], np.uint64)


def of_case(case: Case, rng: random.Random) -> Probe | None:
  """A witness's case; None where its memory holds what a driver makes."""
  memory = b"" if case.memory is None else case.memory(1 << 32)
  if case.memory is not None and memory != case.memory(1 << 40) or len(memory) > OWN: return None
  if case.draw is not None: given = tuple(zip(*(case.draw(rng) for _ in range(THREADS))))
  else: given = tuple(tuple(values(t, random.Random(f"{t} {k}"), THREADS)) for k, t in enumerate(case.sources))
  return Probe(case.form, case.setup + case.text, case.results, case.sources, given, memory, case.effect is not None)


def of_witness(seed: int = 0) -> Iterator[Probe]:
  """A case of each form, and cases that have each modifier."""
  opcodes = [o for o in table.MAKERS if o not in LEFT]
  wanted = [c for c in bench.of_table("", 1, seed, form_of, opcodes) if form_of(c.form) is not None]
  for opcode in opcodes:
    more = list(bench.covering([opcode], seed))
    wanted += random.Random(f"{seed} {opcode}").sample(more, min(len(more), MANY.get(opcode, FEW)))
  seen = set()
  for case in wanted:
    if case.text in seen or bench.target(case) != TARGET or case.form.startswith("cvta.param"): continue
    seen.add(case.text)
    probe = of_case(case, random.Random(f"{seed} {case.text}"))
    if probe is not None: yield probe
    if case.form.startswith("mma.") and probe is not None: yield from wild(probe, seed)


def wild(p: Probe, seed: int) -> Iterator[Probe]:
  """A product of any bits, NaN and infinities too, and one of numbers far apart."""
  if not any(f".{t}." in f"{p.form}." for t in ("f16", "bf16", "tf32", "f64", "e4m3", "e5m2")): return
  rng = random.Random(f"wild {seed} {p.text}")
  any_bits = tuple(tuple(rng.getrandbits(8 * SIZES[t]) for _ in range(THREADS)) for t in p.sources)
  yield Probe(p.form, p.text, p.results, p.sources, any_bits)
  # The upper bits of exponents cleared now and then: small numbers beside large ones, few that are no numbers.
  masks = (0xBFFFBFFF, 0x9FFF9FFF, 0x8FFF8FFF, 0xBF3FBF3F, 0x3F7F3F7F)
  apart = tuple(tuple(x & (rng.choice(masks) * 0x1_0000_0001 & (1 << 8 * SIZES[t]) - 1) for x in column)
                for t, column in zip(p.sources, any_bits))
  yield Probe(p.form, p.text, p.results, p.sources, apart)


def of_functions() -> Iterator[Probe]:
  """Approximations at 2,048 places: of all exponents, and of those where the functions bend."""
  rng = np.random.default_rng(90)
  size = (16, THREADS)
  anywhere = rng.integers(0, 1 << 32, size).astype(np.uint32)
  near = (rng.standard_normal(size) * 2.0 ** rng.integers(-12, 7, size)).astype(np.float32).view(np.uint32)
  for name in FUNCTIONS:
    for inputs in (anywhere, near):
      yield _repeated(name, "f32", [[int(x) for x in row] for row in inputs])
  halves = rng.permutation(1 << 16)[:16 * THREADS].reshape(size)
  for name in HALVES: yield _repeated(name, "b16", [[int(x) for x in row] for row in halves])
  for name in ("div.approx.f32", "div.approx.ftz.f32", "div.full.f32"):
    for inputs in (anywhere, near):
      n = len(inputs) // 2
      text = "".join(f"{name} {{{k}}}, {{{n + k}}}, {{{2 * n + k}}};" for k in range(n))
      yield Probe(name, text, ("f32",) * n, ("f32",) * 2 * n, tuple(tuple(int(x) for x in row) for row in inputs))


def _repeated(name: str, type_: str, rows: list[list[int]]) -> Probe:
  n = len(rows)
  text = "".join(f"{name} {{{k}}}, {{{n + k}}};" for k in range(n))
  return Probe(name, text, (type_,) * n, (type_,) * n, tuple(map(tuple, rows)))


# ---- products whose operands lie in memory

_BITS: Final = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1,
                "e4m3": 8, "e5m2": 8, "s32": 32}
_BIAS: Final = {"f16": (10, 15), "bf16": (7, 127), "tf32": (23, 127), "f32": (23, 127), "f64": (52, 1023),
                "e4m3": (3, 7), "e5m2": (2, 15)}


def matrix(rng: random.Random, t: str, size: int, spread: int) -> bytes:
  """Bytes of finite elements, whose exponents differ by `spread` at most; of others any."""
  if t not in _BIAS: return rng.randbytes(size)
  fraction, bias = _BIAS[t]
  n = _BITS[t] // 8
  spread = min(spread, bias - 2)
  def one() -> int:
    return rng.randrange(bias - spread, bias + spread) << fraction | rng.getrandbits(fraction) | \
      rng.getrandbits(1) << 8 * n - 1
  return b"".join(one().to_bytes(n, "little") for _ in range(size // n))


WMMA: Final = (*(f"m{m}n{n}k16.{d}.f16.f16.{c}" for m, n in ((16, 16), (32, 8), (8, 32)) for d in ("f16", "f32")
                 for c in ("f16", "f32")),
               *(f"m{m}n{n}k16.{t}" for m, n in ((16, 16), (32, 8), (8, 32))
                 for t in ("f32.bf16.bf16.f32", "s32.s8.s8.s32", "s32.u8.u8.s32", "s32.s8.s8.s32.satfinite")),
               "m16n16k8.f32.tf32.tf32.f32", "m8n8k4.f64.f64.f64.f64", "m8n8k32.s32.s4.s4.s32",
               "m8n8k32.s32.u4.u4.s32", "m8n8k128.s32.b1.b1.s32.xor.popc", "m8n8k128.s32.b1.b1.s32.and.popc")


def of_wmma() -> Iterator[Probe]:
  """Fragments loaded, multiplied and stored: what is where in a fragment does not show."""
  for kind in WMMA:
    shape, d, a, b, c, *more = kind.split(".")
    m, n, k = (int(x) for x in shape[1:].replace("n", "k").split("k"))
    for spread in (2, 9):
      rng = random.Random(f"{kind} {spread}")
      ways = [rng.choice(["row", "col"]) for _ in range(3)]
      if _BITS[a] < 8: ways[:2] = "row", "col"
      names, lines = {}, []
      for which, t in zip("abcd", (a, b, c, d)):
        count = {"a": m * k, "b": k * n}.get(which, m * n) * _BITS[t] // (64 if t == "f64" else 32) // 32
        count = 8 if t == "f16" and which in "ab" else max(1, count)
        names[which] = "{{" + ", ".join(f"{which}{j}" for j in range(count)) + "}}"
        kind_of = t if t in {"f32", "f64"} else "b32"
        lines.append(f".reg .{kind_of} {names[which][2:-2]};")
      for at, (which, t, way) in enumerate(zip("abc", (a, b, c), ways)):
        lines.append(f"wmma.load.{which}.sync.aligned.{way}.{shape}.global.{t} {names[which]}, [{{M}}+{1024 * at}];")
      types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{b}.{c}"
      how, rest = (f"{'.'.join(more)}.", "") if a == "b1" else ("", "".join(f".{w}" for w in more))
      product = f"wmma.mma.{how}sync.aligned.{ways[0]}.{ways[1]}.{shape}.{types}{rest}"
      lines.append(f"{product} {names['d']}, {names['a']}, {names['b']}, {names['c']};")
      lines.append(f"wmma.store.d.sync.aligned.{ways[2]}.{shape}.global.{d} [{{M}}+3072], {names['d']};")
      memory = b"".join(matrix(rng, t, 1024, spread) for t in (a, b, c)) + bytes(1024)
      yield Probe(product, "{{" + "\n".join(lines) + "}}", (), (), (), memory, threads=32)


WGMMA: Final = ("k16.f16.f16.f16", "k16.f32.f16.f16", "k16.f32.bf16.bf16", "k8.f32.tf32.tf32",
                *(f"k32.{d}.{a}.{b}" for d in ("f16", "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
                *(f"k32.s32.{a}.{b}" for a in ("s8", "u8") for b in ("s8", "u8")), "k256.s32.b1.b1.and.popc")
SPARSE: Final = ("k32.f16.f16.f16", "k32.f32.f16.f16", "k32.f32.bf16.bf16", "k16.f32.tf32.tf32",
                 *(f"k64.{d}.{a}.{b}" for d in ("f16", "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
                 *(f"k64.s32.{a}.{b}" for a in ("s8", "u8") for b in ("s8", "u8")))
_ORDERED: Final = (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)


def of_wgmma() -> Iterator[Probe]:
  """Of 64 rows and 8 columns: both operands in shared memory, as K goes, without a swizzle."""
  for kind, sparse in (*((k, False) for k in WGMMA), *((k, True) for k in SPARSE)):
    _, d, a, b, *more = kind.split(".")
    for spread in (2, 9):
      rng = random.Random(f"{kind} {sparse} {spread}")
      count = 2 if d == "f16" else 4
      sums = ", ".join(f"{{{j}}}" for j in range(count))
      starts = "".join(f"mov.b32 {{{j}}}, {{{count + j}}};" for j in range(count))
      name = f"wgmma.mma_async{'.sp' * sparse}.sync.aligned.m64n8{kind}"
      scales = "1" if d == "s32" else "1, 1, 1"
      tail = ", 0, 0" if a in {"f16", "bf16"} else ""
      def descriptor(at: int, leading: int, stride: int) -> int: return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32
      metadata = f", {{{2 * count}}}, 0" if sparse else ""
      text = f"""{{{{ .reg .b64 x, y, z; .reg .b32 r; .reg .b32 w<4>; .reg .pred t;
mov.u32 r, sh; cvt.u64.u32 z, r; shr.u64 z, z, 4; shl.b32 r, %r79, 4; cvt.u64.u32 x, r; add.u64 x, x, {{M}};
mov.u32 w0, sh; add.u32 r, r, w0;
ld.global.v4.u32 {{{{w0, w1, w2, w3}}}}, [x]; st.shared.v4.u32 [r], {{{{w0, w1, w2, w3}}}};
setp.lt.u32 t, %r79, 32;
@t ld.global.v4.u32 {{{{w0, w1, w2, w3}}}}, [x+2048]; @t st.shared.v4.u32 [r+2048], {{{{w0, w1, w2, w3}}}};
{starts}
fence.proxy.async; bar.sync 0;
add.u64 x, z, {descriptor(0, 128, 256)}; add.u64 y, z, {descriptor(2048, 128, 512)};
wgmma.fence.sync.aligned;
{name} {{{{{sums}}}}}, x, y{metadata}, {scales}{tail};
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }}}}"""
      memory = matrix(rng, a, 2048, spread) + matrix(rng, b, 512, spread)
      given = [tuple(int.from_bytes(matrix(rng, d, 4, spread), "little") for _ in range(128)) for _ in range(count)]
      chunks = _ORDERED if a != "tf32" else (4, 14)
      if sparse: given.append(tuple(sum(rng.choice(chunks) << 4 * j for j in range(8)) for _ in range(128)))
      yield Probe(name, text, ("b32",) * count, ("b32",) * len(given), tuple(given), memory, threads=128)


def of_matrices() -> Iterator[Probe]:
  """ldmatrix and stmatrix."""
  for n in (1, 2, 4):
    for way in ("", ".trans"):
      for name in ("ldmatrix", "stmatrix"):
        full = f"{name}.sync.aligned.m8n8.x{n}{way}.shared.b16"
        words = "{{" + ", ".join(f"{{{j}}}" for j in range(n)) + "}}"
        fill = """{{ .reg .b64 x; .reg .b32 r, a; .reg .b32 w<4>; mov.u32 r, %r79; shl.b32 r, r, 4; cvt.u64.u32 x, r;
add.u64 x, x, {M}; mov.u32 a, sh; add.u32 a, a, r; """
        rng = random.Random(full)
        if name == "ldmatrix":
          text = f"""{fill} ld.global.v4.u32 {{{{w0, w1, w2, w3}}}}, [x]; st.shared.v4.u32 [a], {{{{w0, w1, w2, w3}}}};
bar.warp.sync -1; {full} {words}, [a]; }}}}"""
          yield Probe(full, text, ("b32",) * n, (), (), rng.randbytes(512), threads=32)
        else:
          text = f"""{fill} mov.b32 w0, 0; st.shared.v4.u32 [a], {{{{w0, w0, w0, w0}}}}; bar.warp.sync -1;
{full} [a], {words}; bar.warp.sync -1;
ld.shared.v4.u32 {{{{w0, w1, w2, w3}}}}, [a]; st.global.v4.u32 [x], {{{{w0, w1, w2, w3}}}}; }}}}"""
          given = tuple(tuple(rng.getrandbits(32) for _ in range(32)) for _ in range(n))
          yield Probe(full, text, (), ("b32",) * n, given, bytes(512), threads=32)


def every(seed: int = 0) -> list[Probe]:
  """All of them."""
  return [*of_witness(seed), *of_functions(), *of_wmma(), *of_wgmma(), *of_matrices()]
