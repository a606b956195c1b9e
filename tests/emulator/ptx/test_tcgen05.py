"""Tensor memory of sm_100 against a model of its own: loads and stores of every shape, copies, shifts, refusals."""
from __future__ import annotations

import random
import zlib
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.compiled import compiled_too
from tests.emulator.tensor_memory import COLUMNS, HEAD, LANES, once, run, text
from tests.strength import THOROUGH, seed
from tinyhw.core.errors import MachineFault

pytestmark = pytest.mark.left("tcgen05")  # all of it is the reference's

# Of a shape at .x1: bits from thread to thread, by the bits of its number, and from register to register; lanes follow
# each other.
SHAPES = {"32x32b": ([32, 64, 128, 256, 512], []), "16x64b": ([512, 32, 64, 128, 256], []),
          "16x128b": ([32, 64, 128, 256, 512], [1024]), "16x256b": ([64, 128, 256, 512, 1024], [32, 2048])}
MOST = {"32x32b": 128, "16x64b": 128, "16x32bx2": 128, "16x128b": 64, "16x256b": 32}
WIDTH = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}


@pytest.fixture(autouse=True)
def engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
  """Both engines, for each test or, in the quick run, for some."""
  if THOROUGH or not zlib.crc32(request.node.name.encode()) % 3: compiled_too(monkeypatch)


def place(shape: str, thread: int, register: int, half: int) -> tuple[int, int]:
  """(lane, column) of what a thread has in a register."""
  if shape == "16x32bx2": return thread % 16, register + half * (thread // 16)
  threads, registers = SHAPES[shape]
  at = sum(step for k, step in enumerate(threads) if thread >> k & 1)
  at += sum(step for k, step in enumerate(registers) if register >> k & 1)
  row, column = divmod(at // 32, WIDTH[shape])
  return row, column + (register >> len(registers)) * WIDTH[shape]


def drawn(rng: random.Random, blocks: int = 1) -> Any:
  return np.random.default_rng(rng.getrandbits(32)).integers(0, 1 << 32, (blocks, LANES, COLUMNS), np.uint32)


@pytest.mark.parametrize("shape", ["32x32b", "16x32bx2"])
@pytest.mark.parametrize("op", ["min.u32", "max.s32", "max.f32", "min.NaN.f32", "max.abs.f32", "min.abs.NaN.f32"])
def test_a_load_with_an_extreme(op: str, shape: str) -> None:
  """sm_103 gives each thread the least or greatest of what it loads, too."""
  rng = np.random.default_rng(seed(zlib.crc32(f"{op}{shape}".encode())))
  cells = rng.integers(0, 1 << 32, (1, LANES, COLUMNS), np.uint32)
  if "f32" in op:
    values = (rng.integers(-3, 4, cells.shape) / 2).astype(np.float32) * rng.choice([1, -1], cells.shape)
    cells = values.astype(np.float32).view(np.uint32)
    cells[rng.random(cells.shape) < 0.05] = 0xFFC00001
  lower = 0 if shape == "32x32b" else 16
  more = ", 9" if lower else ""
  count = 8
  registers = ", ".join(f"%r{20 + k}" for k in range(count))
  out = run(f"""shr.u32 %r1, %t, 5; shl.b32 %r1, %r1, 21; add.u32 %r1, %r1, {lower << 16}; add.u32 %r2, %d, %r1;
    tcgen05.ld.red.sync.aligned.{shape}.x{count}.{op} {{{registers}}}, %r3, [%r2+4]{more};
    tcgen05.wait::ld.sync.aligned; shr.u32 %r5, %t, 5; shl.b32 %r5, %r5, 21; add.u32 %r5, %r5, %d;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5+400], {{%r3}}; tcgen05.wait::st.sync.aligned;""", cells,
    target="sm_103a")
  model = cells.copy()
  for thread in range(LANES):
    at = [place(shape, thread % 32, k, 9) for k in range(count)]
    words = [int(cells[0, thread // 32 * 32 + lower + lane, 4 + column]) for lane, column in at]
    if "f32" in op:
      given = [float(v) for v in np.array(words, np.uint32).view(np.float32)]
      if "abs" in op: given = [abs(v) for v in given]
      real = [v for v in given if v == v]
      if not real or "NaN" in op and len(real) < count: word = 0x7FFFFFFF
      else:
        best = (min if "min" in op else max)(real, key=lambda v: (v, not np.signbit(v)))
        word = int(np.float32(best).view(np.uint32))
    else:
      signed = [w - (1 << 32) if w >> 31 and "s32" in op else w for w in words]
      word = (min if "min" in op else max)(signed) & 0xFFFFFFFF
    model[0, thread, 400] = word
  assert (out == model).all()


CASES = [(shape, count, packed) for shape in MOST for count in (1, 2, 4, 8, 16, 32, 64, 128) for packed in (False, True)
         if count <= MOST[shape]]


@pytest.mark.parametrize(("shape", "count", "packed"), CASES)
def test_a_load_and_a_store(shape: str, count: int, packed: bool) -> None:
  """Each warp loads words of its lanes and stores them, changed, to columns further on."""
  rng = random.Random(seed(zlib.crc32(f"{shape}{count}{packed}".encode())))
  if not THOROUGH and (count in {2, 8, 32} or packed and count > 4): pytest.skip("in the thorough run")
  cells = drawn(rng)
  registers = count * {"16x128b": 2, "16x256b": 4}.get(shape, 1)
  half = rng.choice([count * (1 + packed), 100])
  width = (count + half if shape == "16x32bx2" else count * WIDTH[shape]) * (1 + (packed and shape != "16x32bx2"))
  if width > COLUMNS or shape == "16x32bx2" and half + count * (1 + packed) > COLUMNS: pytest.skip("more than there is")
  width = max(width, half + count * 2)
  first, to = rng.randrange(COLUMNS - width + 1) if width <= COLUMNS else 0, 0
  to = rng.randrange(COLUMNS - width + 1) if width <= COLUMNS else 0
  low = 16 * rng.randrange(2) if shape != "32x32b" else 0
  names = "{" + ", ".join(f"%x{k}" for k in range(registers)) + "}"
  at = "".join(f", {half}" for _ in range(shape == "16x32bx2"))
  out = run(f"""add.u32 %r10, %q, {(low << 16) + first}; add.u32 %r11, %q, {(low << 16) + to};
    tcgen05.ld.sync.aligned.{shape}.x{count}{'.pack::16b' * packed}.b32 {names}, [%r10]{at};
    tcgen05.wait::ld.sync.aligned;
    {''.join(f'xor.b32 %x{k}, %x{k}, {k + 1};' for k in range(registers))}
    bar.sync 0;
    tcgen05.st.sync.aligned.{shape}.x{count}{'.unpack::16b' * packed}.b32 [%r11]{at}, {names};
    tcgen05.wait::st.sync.aligned;""", cells, declared=f".reg .b32 %x<{registers}>;")[0]
  wanted = cells[0].copy()
  for warp in range(4):
    for thread in range(32):
      for r in range(registers):
        lane, column = place(shape, thread, r, 0 if packed else half)
        lane += 32 * warp + low
        if not packed: wanted[lane, to + column] = cells[0, lane, first + column] ^ (r + 1)
        else:
          column = 2 * column + half * (thread // 16) if shape == "16x32bx2" else 2 * column
          pair = cells[0, lane, first + column:first + column + 2] & 0xFFFF
          pair[0] ^= r + 1
          wanted[lane, to + column:to + column + 2] = pair
  assert (out == wanted).all()


COPIES = {"128x256b": (128, 8), "4x256b": (4, 8), "128x128b": (128, 4), "64x128b.warpx2::02_13": (64, 4),
          "64x128b.warpx2::01_23": (64, 4), "32x128b.warpx4": (32, 4)}


def swizzled(at: int, bits: int) -> int:
  """CuTe's Swizzle<bits, 4, 3>."""
  return at ^ at >> 3 & (1 << bits) - 1 << 4


@pytest.mark.parametrize("unpack", ["", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"])
@pytest.mark.parametrize("shape", COPIES)
def test_a_copy_from_shared_memory(shape: str, unpack: str) -> None:
  rng = random.Random(seed(len(shape) + len(unpack)))
  rows, columns = COPIES[shape]
  mode = rng.choice([0, 2, 4, 6])
  width, bits = {0: (16, 0), 2: (128, 3), 4: (64, 2), 6: (32, 1)}[mode]
  stride, leading = max(8 * width, 256), 128
  cells, first = drawn(rng), 4 * rng.randrange(100)
  shared = np.frombuffer(rng.randbytes(1024 + rows * stride // 8 + 1024), np.uint8)[None]
  descriptor = 1024 >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | mode << 61
  out = run(once(f"""add.u32 %r10, %d, {first}; cvt.u64.u32 %l10, %s; shr.u64 %l10, %l10, 4; add.u64 %l10, %l10,
    {descriptor}; tcgen05.cp.cta_group::1.{shape}{unpack} [%r10], %l10;"""), cells, shared)[0]
  matrix = np.zeros((rows, columns), np.uint32)
  for r in range(rows):
    for c in range(columns // 4):
      at = 1024 + r % 8 * width + r // 8 * stride + c * (leading if not mode else 16)
      chunk = shared[0, swizzled(at, bits):][:16]
      if unpack:
        n = 6 if "b6" in unpack else 4
        whole = int.from_bytes(chunk[:2 * n].tobytes(), "little")
        chunk = np.array([(whole >> n * k & (1 << n) - 1) << (2 if n == 4 else 0) for k in range(16)], np.uint8)
      matrix[r, 4 * c:4 * c + 4] = chunk.view(np.uint32)
  wanted = cells[0].copy()
  for lane in range(LANES):
    warp, k = divmod(lane, 32)
    if rows == 4: row = warp if not k else None
    elif rows == 128: row = lane
    elif rows == 32: row = k
    else: row = k + 32 * (warp % 2 if "02_13" in shape else warp // 2)
    if row is not None: wanted[lane, first:first + columns] = matrix[row]
  assert (out == wanted).all()


def test_a_shift() -> None:
  cells = drawn(random.Random(seed(3)))
  out = run(once("add.u32 %r10, %d, 4194320; tcgen05.shift.cta_group::1.down [%r10];"), cells)[0]
  wanted = cells[0].copy()
  wanted[65:96, 16:24] = cells[0, 64:95, 16:24]
  assert (out == wanted).all()


# ---- allocation

def allocating(body: str) -> Any:
  source = f"""{HEAD}.visible .entry k (.param .u64 out) {{
    .reg .pred %p<9>; .reg .b32 %r<20>, %t, %a, %b; .reg .b64 %l<9>, %o; .shared .align 4 .b32 slot[8];
    ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; setp.lt.u32 %p1, %t, 32; mov.u32 %a, slot;
    {body}
    ret; }}"""
  return tinyhw.launch(source, "k", 1, 64, [np.zeros(64, np.uint32)], "EMU")[0]


ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"


def test_who_finds_no_columns_waits_for_those_of_others() -> None:
  out = allocating(f"""@!%p1 bra OTHER;
    {ALLOC} [%a], 256; {ALLOC} [%a+4], 256; ld.shared.u32 %r1, [slot]; ld.shared.u32 %r2, [slot+4]; mov.u32 %r5, 0;
    bar.sync 0; LOOP: nanosleep.u32 20; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 50; @%p2 bra LOOP;
    st.global.v2.u32 [%o], {{%r1, %r2}}; {DEALLOC} %r2, 256; {DEALLOC} %r1, 256; bra END;
    OTHER: bar.sync 0; {ALLOC} [%a+16], 32; ld.shared.u32 %r4, [slot+16]; ld.global.u32 %r6, [%o+4];
    st.global.v2.u32 [%o+8], {{%r4, %r6}}; {DEALLOC} %r4, 32; END:""")
  assert out[:4].tolist() in ([0, 256, 256, 256], [0, 256, 0, 256])


@pytest.mark.parametrize(("body", "message"), [
  (f"@%p1 {ALLOC} [%a], 48;", "48 columns of tensor memory: a power of two of 32 to 512"),
  (f"@%p1 {ALLOC} [%a], 1024;", "1024 columns of tensor memory"),
  (f"@%p1 {ALLOC} [%a], 64;", "a block ends with 64 columns of tensor memory that it has not given back"),
  (f"@%p1 {ALLOC} [%a], 64; @%p1 {DEALLOC} 0, 32;", "32 columns of tensor memory at 0x0, where 64 were allocated"),
  (f"@%p1 {DEALLOC} 32, 32;", "32 columns of tensor memory at 0x20, where none were allocated"),
  (f"@%p1 {ALLOC} [%a], 32; @%p1 {ALLOC} [%a+4], 64;",
   "64 columns of tensor memory after 32: they may not become more"),
  ("@%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; @%p1 " + f"{ALLOC} [%a], 32;",
   "tensor memory after tcgen05.relinquish_alloc_permit"),
  (f"@%p1 {ALLOC} [%a], 32; @%p1 {ALLOC.replace('1.sync', '2.sync')} [%a], 32;",
   "an instruction for cta_group::2 behind others for cta_group::1"),
  (f"@%p1 {ALLOC.replace('1.sync', '2.sync')} [%a], 32;",
   "cta_group::2 in block 0 of a cluster of 1, which has no peer"),
  (f"@%p1 {ALLOC} [%a], %t;", "threads of a warp give different numbers of columns"),
])
def test_allocations_that_there_are_not(body: str, message: str) -> None:
  with pytest.raises(MachineFault, match=message): allocating(body)


def test_who_waits_for_columns_that_never_come_is_told() -> None:
  with pytest.raises(tinyhw.Error) as found: allocating(f"@%p1 {ALLOC} [%a], 512; {ALLOC} [%a], 32;")
  assert "tcgen05.alloc" in str(found.value)


@pytest.mark.parametrize(("body", "message"), [
  ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%d];",
   "a warp reads lanes 0 to 31 of tensor memory, and reaches 32 to 63"),
  ("add.u32 %r1, %q, 60; tcgen05.st.sync.aligned.32x32b.x8.b32 [%r1], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};",
   "a warp writes columns 60 to 67 of tensor memory, of which 64 is not allocated"),
  ("add.u32 %r1, %q, %t; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r1];",
   "threads of a warp give different addresses of tensor memory"),
  ("add.u32 %r1, %d, 60; mov.u64 %l10, 0x400000000000; tcgen05.cp.cta_group::1.128x256b [%r1], %l10;",
   "a copy to columns 60 to 67 of tensor memory, of which 64 is not allocated"),
  ("mov.u64 %l10, 0; tcgen05.cp.cta_group::1.128x256b [%d], %l10;",
   "a matrix descriptor .0x0000000000000000. with 0 in bits 46 to 48, which are 1"),
  ("mov.u64 %l10, 0x6000400000000000; tcgen05.cp.cta_group::1.128x256b [%d], %l10;", "with the swizzling mode 3"),
  ("mov.u64 %l10, 0x10400000000000; tcgen05.cp.cta_group::1.128x256b [%d], %l10;", "an absolute address"),
  ("mov.u64 %l10, 0x400000004000; tcgen05.cp.cta_group::1.128x256b [%d], %l10;", "bits that have no meaning"),
  ("mov.u64 %l10, 0x40FF00000000; tcgen05.cp.cta_group::1.128x256b [%d], %l10;", "of shared memory, which has"),
  ("add.u32 %r1, %d, 0x100000; tcgen05.shift.cta_group::1.down [%r1];", "tcgen05.shift at lane 16"),
  ("mov.u64 %l10, 64; tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%l10];",
   "an mbarrier outside of shared memory"),
])
def test_accesses_that_there_are_not(body: str, message: str) -> None:
  with pytest.raises(MachineFault, match=message):
    tinyhw.launch(text(body, 64, columns=64), "k", 1, LANES, [*np.zeros((2, LANES, COLUMNS), np.uint32),
                                                              np.zeros(64, np.uint8)], "EMU")


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_bit_24_of_an_address_is_its_block_and_of_a_number_a_bit(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Both blocks of a pair arrive at the first one's mbarrier, whose address their own becomes without that bit."""
  monkeypatch.setenv("EMU", engine)
  source = f"""{HEAD}.visible .entry k (.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1 {{
    .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %l<4>; .shared .align 8 .b64 bar; .shared .align 4 .b32 slot;
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, bar; mov.u32 %r3, slot;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r3], 32; ld.shared.u32 %r4, [%r3];
    @%p1 mbarrier.init.shared.b64 [%r2], 2; barrier.cluster.arrive; barrier.cluster.wait;
    and.b32 %r5, %r2, -16777217; @%p1 mbarrier.arrive.shared::cluster.b64 _, [%r5];
    mov.u32 %r6, %cluster_ctarank; setp.eq.u32 %p2, %r6, 0; @!%p2 bra DONE;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;
    DONE: ld.param.u64 %l1, [out]; mul.wide.u32 %l2, %r6, 4; add.u64 %l1, %l1, %l2; ld.global.u32 %r7, [%l1];
    and.b32 %r8, %r7, -16777217; st.global.u32 [%l1], %r8; barrier.cluster.arrive; barrier.cluster.wait;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r4, 32; ret; }}"""
  found = tinyhw.launch(source, "k", 2, 32, [np.array([0xFFFFFFFF, 0x01000040], np.uint32)], "EMU")[0]
  assert found.tolist() == [0xFEFFFFFF, 0x40]
