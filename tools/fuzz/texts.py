"""Whole modules with mistakes in them, each drawn by its number: PTX texts, cubins and fat binaries.

The right ones are compilers' texts (the corpus beside the tests, where this is a checkout), one of our renderer's
kind that has most of what a text can have, and nvrtc's where it is installed. A mistake is one that an editor, a
generator or a broken file makes. What becomes of them is read and, where it still is a program, launched small:
`Error` is all that may be raised.
"""
from __future__ import annotations

import ctypes
import lzma
import mmap
import random
import re
import tarfile
from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from tinyhw.arch.nv import nv_arch
from tinyhw.core.errors import Error, MissingTool
from tinyhw.core.memory import Access, AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import Linked, link_text
from tinyhw.emulator.ptx.program import Program
from tinyhw.wire import cubin, fatbin

CORPUS: Final = Path(__file__).resolve().parents[2] / "tests/corpus/ptx.tar.xz"
LONGEST: Final = 8000  # bytes of a text of the corpus
PAGE: Final = 4096
DATA, PARAMS, VARIABLES, FILE = (k << 32 for k in (1, 2, 3, 4))
DATA_SIZE: Final = 16 * PAGE
WATCHDOG: Final = 300  # instructions of a warp
ARCH: Final = "sm_90"

OWN: Final = """//
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b32 table[4] = {1, 2, 0x3, 4};
.const .align 8 .u64 place = table;
.extern .shared .align 16 .b8 more[];
.func (.param .b32 r) twice(.param .b32 a) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [a];
  add.s32 %r2, %r1, %r1;
  st.param.b32 [r], %r2;
  ret;
}
.visible .entry k(.param .u64 out, .param .u32 n, .param .align 8 .b8 s[16]) .maxntid 64, 1, 1 {
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .f32 %f<6>; .reg .f64 %d<3>; .reg .b64 %l<6>;
  .shared .align 4 .b8 near[256];
  .local .align 8 .b8 stack[16];
  .loc 1 3 0
  ld.param.u64 %l1, [out];
  cvta.to.global.u64 %l2, %l1;
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %l3, %r1, 16, %l2;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%l3];
  fma.rn.ftz.f32 %f5, %f1, 0f3F800000, %f2;
  cvt.f64.f32 %d1, %f5;
  add.f64 %d2, %d1, 0d3FF0000000000000;
  setp.lt.and.u32 %p1, %r1, 7, !%p2;
  @%p1 bra THEN;
  shfl.sync.down.b32 %r2|%p3, %r1, 1, 31, -1;
  atom.global.add.u32 %r3, [table+4], -1;
  bra.uni BOTH;
THEN:
  { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call.uni (r), twice, (a); ld.param.b32 %r2, [r]; }
BOTH:
  mov.u32 %r4, near;
  st.shared.u32 [%r4+8], %r2;
  st.local.v2.u32 [stack], {%r1, %r2};
  bar.sync 0;
  bar.red.popc.u32 %r5, 1, 64, %p1;
  ld.shared.u32 %r6, [near+8];
  vote.sync.ballot.b32 %r7, %p1, 0xffffffff;
  prmt.b32 %r8, %r6, %r7, 0x5410;
  mov.b32 {%h1, %h2}, %r8;
  lop3.b32 %r9, %r8, %r7, %r6, 0x96;
  selp.b32 %r10, %r9, 0, %p1;
  st.global.u32 [%l3], %r10;
  ret;
}
"""
CUDA: Final = b"""
__device__ int f(int x) { return x > 3 ? f(x - 3) + 1 : x; }
extern "C" __global__ void k(float *a, const float *b, int n) {
  __shared__ float s[64];
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  s[threadIdx.x & 63] = t < n ? b[t] : 0.f;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < (n & 7); k++) sum += s[(threadIdx.x + k) & 63] * sinf(k);
  if (t < n) a[t] = sum + f(t & 15) + __shfl_xor_sync(-1u, sum, 1);
}
"""


class Wrong(Exception):
  """A module with mistakes did what it must not."""


@cache
def originals() -> list[str]:
  """Texts without mistakes, the same ones in every checkout."""
  out = [OWN]
  if CORPUS.exists():
    with tarfile.open(fileobj=BytesIO(lzma.decompress(CORPUS.read_bytes()))) as tar:
      for m in sorted(tar, key=lambda m: m.name):
        if m.size <= LONGEST and (file := tar.extractfile(m)) is not None: out.append(file.read().decode())
  return out


@cache
def nvrtcs() -> list[str]:
  """nvrtc's texts. Raises MissingTool without one."""
  from tinyhw.compile.nvidia import nvrtc
  return [nvrtc.compiled(CUDA, sm)[0].rstrip(b"\0").decode() for sm in ("sm_80", "sm_90")]


# ---- mistakes in a text

TOKEN: Final = re.compile(r"\s+|[\w$]+|\W")
NUMBER: Final = re.compile(r"(?<![\w%$.])\d\w*")
NUMBERS: Final = ("0", "-1", "1", "3", "16", "-2147483649", "4294967296", "18446744073709551616", "9" * 30,
                  "9" * 5000, "0x" + "f" * 17, "0xffffffffffffffff", "08", "0b2", "1e400", "0f7F800001",
                  "0d7FF0000000000000", "0f1", "1.5", "-0", "0x", "65536", "1073741824", "4294967295U",
                  "0777777777777777777777777")
DIGITS: Final = ("\u0660", "\uff10", "\u0966", "\u00b2", "\u2460", "\U0001d7ce")  # zeros of other scripts, and others
WORDS: Final = ("{", "}", "(", ")", "[", "]", ";", ",", ":", "|", "!", "@", ".", "<", ">", "=", '"', "/*", "//", "-",
                "+", "\\", "\0", "\ufeff", "\u00e9", "\u2028", "\r", "_", "%", "%r", "%tid", ".b32", ".u64", ".f16x2",
                ".v4", ".v8", ".pred", ".sync", ".reg", ".param", ".entry", ".func", ".align", ".target", ".version",
                ".pragma", ".section", ".branchtargets", ".callprototype", ".file", ".loc", ".attribute", ".alias",
                ".weak", ".extern", "mov", "call", "ret", "bra", "brx.idx", "exit", "mma", "wgmma", "tex", "ld",
                "cp.async.bulk", "k", "mask()", "sizeof", "generic", "#define X", "WARP_SZ")


def _line(rng: random.Random, lines: list[str]) -> None:
  """A line is lost, comes twice, or stands elsewhere; or two have changed places."""
  at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
  how = rng.randrange(4)
  if how == 0: del lines[at]
  elif how == 1: lines[at:at] = [lines[at]] * rng.choice((1, 1, 2, 30))
  elif how == 2: lines.insert(to, lines.pop(at))
  else: lines[at], lines[to] = lines[to], lines[at]


def _token(rng: random.Random, tokens: list[str], other: list[str]) -> None:
  """A token is lost, comes twice, has changed places, or is another one: of the text, of another one, or of `WORDS`."""
  at, to = rng.randrange(len(tokens)), rng.randrange(len(tokens))
  how = rng.randrange(6)
  if how == 0: del tokens[at]
  elif how == 1: tokens.insert(at, tokens[at])
  elif how == 2: tokens[at], tokens[to] = tokens[to], tokens[at]
  elif how == 3: tokens[at] = rng.choice(tokens)
  elif how == 4: tokens[at] = rng.choice(other)
  else: tokens[at] = rng.choice(WORDS)


def _number(rng: random.Random, text: str) -> str:
  """A number is another one, or has a digit of another script."""
  found = list(NUMBER.finditer(text))
  if not found: return text
  m = rng.choice(found)
  if rng.random() < 0.3:
    at = rng.randrange(m.start(), m.end())
    zero = rng.choice(DIGITS)
    digit = chr(ord(zero) + int(text[at])) if text[at].isdecimal() and zero.isdecimal() else zero
    return text[:at] + digit + text[at + 1:]
  return text[:m.start()] + rng.choice(NUMBERS) + text[m.end():]


def _odd(rng: random.Random, text: str) -> str:
  """The text ends early, or something is in it very often."""
  at = rng.randrange(len(text))
  if rng.random() < 0.5: return text[:at]
  return text[:at] + rng.choice(WORDS) * rng.choice((2, 100, 3000)) + text[at:]


def mistaken(rng: random.Random, texts: Sequence[str]) -> str:
  """One of the texts with one to four mistakes."""
  text, other = rng.choice(texts), [t for t in TOKEN.findall(rng.choice(texts)) if not t.isspace()]
  for _ in range(rng.choice((1, 1, 1, 2, 4))):
    how = rng.randrange(8)
    if not text: break
    if how < 2:
      lines = text.split("\n")
      _line(rng, lines)
      text = "\n".join(lines)
    elif how < 5:
      tokens = TOKEN.findall(text)
      _token(rng, tokens, other)
      text = "".join(tokens)
    elif how < 7: text = _number(rng, text)
    else: text = _odd(rng, text)
  return text


# ---- mistakes in a file

def broken(rng: random.Random, data: bytes) -> bytes:
  """The bytes with flipped bits, words of other values, parts that are lost or stand elsewhere, or an early end."""
  out = bytearray(data)
  for _ in range(rng.choice((1, 1, 2, 5, 20))):
    if len(out) < 16: break
    # headers and tables decide most: half of the mistakes are near the beginning or the end
    near = rng.choice((len(out), len(out), 64, 256))
    at = rng.randrange(min(near, len(out) - 8))
    if rng.random() < 0.3: at = len(out) - 8 - at
    how = rng.randrange(6)
    if how < 2: out[at] ^= 1 << rng.randrange(8)
    elif how == 2:
      size = rng.choice((1, 2, 4, 8))
      at -= at % size
      value = rng.choice((0, 1, 0x7F, 1 << 8 * size - 1, (1 << 8 * size) - 1, len(out), rng.getrandbits(8 * size)))
      out[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    elif how == 3: del out[at:at + rng.choice((1, 4, 8, 64))]
    elif how == 4: out[at:at] = out[at:at + rng.choice((1, 8, 64))]
    elif rng.random() < 0.3: del out[at:]
  return bytes(out)


@cache
def files() -> list[tuple[str, bytes]]:
  """(what it is, a file without mistakes)."""
  from tinyhw.devices.assemble import bare
  out = []
  for text in originals()[:12]:
    raw = text.encode()
    try: out.append(("cubin", bare(raw, nv_arch(ARCH))))
    except Error: continue  # for another generation
    packed = bytes([0xF0]) + b"\xff" * ((len(raw) - 15) // 255) + bytes([(len(raw) - 15) % 255]) + raw  # LZ4: as it is
    for flags, payload, length in ((0x11, raw, 0), (0x2011, packed, len(raw))):
      padded = -(-len(payload) // 8) * 8
      row = fatbin.ENTRY.pack(fatbin.PTX, 0x101, 80, padded, len(payload) if length else 0, 64, 0, 9, 80, 0, flags, 0,
                              length).ljust(80, b"\0") + payload.ljust(padded, b"\0")
      out.append(("fatbin", fatbin.HEADER.pack(fatbin.MAGIC, 1, 16, len(row)) + row))
  return out


# ---- what becomes of them

def _launched(linked: Linked, rng: random.Random, engine: str) -> None:
  """Launch the module's first kernel, if it has one, on two small blocks: its addresses are the data's, its numbers
  small."""
  if not linked.names: return
  name = linked.names[0]
  kernel = linked.kernel(name)
  space, variables, data = AddressSpace("texts"), bytes(max(linked.size, 1)), bytearray()
  for p in kernel.params:
    value = DATA if p[1] >= 8 else rng.choice((0, 1, 5, 64))
    data[p[0]:p[0]] = bytes(max(0, p[0] - len(data)))
    data[p[0]:p[0] + p[1]] = value.to_bytes(8, "little")[:p[1]].ljust(p[1], b"\0")
  for at, size in ((DATA, DATA_SIZE), (PARAMS, max(len(data), 1)), (VARIABLES, len(variables))):
    region = Region("data", -(-size // PAGE) * PAGE)
    space.map(at, region.size, region, access=Access.READ | Access.WRITE | Access.ATOMIC)
  space.write(PARAMS, bytes(data))
  program = Program(linked, name, VARIABLES)
  if linked.size: space.write(VARIABLES, linked.bytes_at(VARIABLES, program.functions))
  x, y, z = (*(kernel.reqntid or kernel.maxntid or (64,)), 1, 1)[:3]
  a, b, c = (*(kernel.reqnctapercluster or (2,)), 1, 1)[:3]
  if min(a, b, c) < 1 or a * b * c > 16: a = b = c = 1
  dispatch(space, Dispatch(program, (a, b, c), (x, y, z), PARAMS, len(data)), watchdog=WATCHDOG, engine=engine)


def _ended(run: Callable[[], Any]) -> str:
  """How something ends: well, or with an error of ours that has a first line."""
  try: run()
  except Error as error:
    if not error.headline() or "\n" in error.headline():
      raise Wrong(f"an error without a line for people: {error!r:.300}") from error
    return type(error).__name__
  return "ended"


def _text_of(number: int, texts: Sequence[str], engine: str) -> str:
  rng = random.Random(number)
  raw = mistaken(rng, texts).encode()
  if not rng.randrange(16): raw = broken(rng, raw)  # and such as are no text

  return _ended(lambda: _launched(link_text(raw), rng, engine))


def any_text(number: int) -> str:
  """A PTX text with mistakes, interpreted."""
  return _text_of(number, originals(), "ref")


def text_compiled(number: int) -> str:
  """A PTX text with mistakes, compiled."""
  return _text_of(number, originals(), "jit")


def nvrtc_text(number: int) -> str:
  """One of nvrtc's texts with mistakes, interpreted or compiled; nothing where there is no nvrtc."""
  try: nvrtcs()
  except MissingTool: return "no nvrtc"
  return _text_of(number, nvrtcs(), "jit" if number % 4 == 0 else "ref")


@cache
def _machine() -> Any:
  from tinyhw.mock.cuda.machine import CudaMachine
  return CudaMachine(ARCH)


def _loaded(raw: bytes) -> None:
  """What CUDA's mock makes of a file in a program's memory: the text, or a call that fails with a code of CUDA's or of
  the kernel's."""
  from tinyhw.mock.cuda.calls import Failed
  from tinyhw.mock.cuda.modules.images import ptx_of
  from tinyhw.mock.memory import Refused
  memory = mmap.mmap(-1, (len(raw) // PAGE + 1) * PAGE)
  memory[:len(raw)] = raw
  kept = ctypes.c_char.from_buffer(memory)
  try: ptx_of(_machine(), ctypes.addressof(kept), _machine().gpus[0].card)
  except (Failed, Refused): return
  finally:
    del kept
    memory.close()


def any_file(number: int) -> str:
  """A cubin or fat binary with mistakes, as a driver reads it and as mocks find it in memory."""
  rng = random.Random(number)
  kind, right = rng.choice(files())
  raw = broken(rng, right)

  def run() -> None:
    _loaded(raw)
    if kind == "fatbin":
      for e in fatbin.entries(raw[:fatbin.size_of(raw)]):
        if e.kind == fatbin.PTX: _launched(link_text(e.text().encode()), rng, "ref")
      return
    read = cubin.Cubin(raw)
    for name in read.kernels: read.kernel(name)
    image = read.link(FILE)
    space, region = AddressSpace("files"), Region("code", -(-len(image) // PAGE) * PAGE)
    space.map(FILE, region.size, region, access=Access.READ | Access.EXECUTE)
    region.u8[:len(image)] = memoryview(image)
    from tinyhw.mock.nv.chip.image import Images
    for s in read.elf.sections:
      if s.name.startswith(".text."): _launched(Images(space).at(FILE + s.offset).program.linked, rng, "ref")
  return _ended(run)
