"""Compiled code against the reference: every kind of ALU instruction, random programs, faults, the watchdog."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import ARCH, Gpu
from tests.strength import seeds
from tinyhw.core.errors import DecodeError, EncodeError, Error, PageFault, WatchdogExpired
from tinyhw.core.memory import Access, Region
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.engines.amdgcn import dispatch as choose
from tinyhw.emulator.jit.amdgcn.launch import dispatch as compiled
from tinyhw.isa.amdgcn import Row, table

TABLE = table("gfx11")
CODE, OUT = 0x1_0000_0000, 0x1_0010_0000
SIZE = 1 << 18  # of the memory at OUT: inputs first, results from RESULTS on
RESULTS = 1 << 14
VGPRS = 24  # v0..v13 inputs, v14 v15 addresses, v16..v19 results
MODE = 0xF0 | 1 << 9 | 1 << 8
VCC, EXEC, ONES = 106, 126, 193
FAMILIES = {"SOP1", "SOP2", "SOPC", "SOPK", "VOP1", "VOP2", "VOP3", "VOPC", "VOP3P", "VOPD"}
SPECIAL_BITS = (0, 1, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00400000, 0x007FFFFF,
                0x7F7FFFFF, 0xFFFFFFFF, 0x7FFFFFFF, 0x3C003C00, 0x7C00FC00, 0x7E000001, 0x40490FDB, 0x3F8FFFFF)
PROGRAMS = 5


def encode(mnemonic: str, variant: str = "", literal: int | None = None, **fields: int) -> bytes:
  """Bytes of an instruction by its fields."""
  rows = [r for r in TABLE.by_mnemonic[mnemonic] if set(fields) <= set(r.fields) and variant in ("", r.variant)]
  return TABLE.encode(rows[0], fields, literal)


def load(register: int, offset: int) -> bytes:
  return encode("global_load_b32", "saddr", vdst=register, vaddr=14, saddr=0, offset=offset)


def store(register: int) -> bytes:
  """A register of every lane to where v15 points, which moves on."""
  return encode("global_store_b32", "saddr", vdata=register, vaddr=15, saddr=0, offset=0) + \
    encode("v_add_nc_u32", "e32", src0=34, src1=15, vdst=15)


def prologue(lanes: int) -> bytes:
  """Inputs to v0..v13 and s8..s31; v15 points to this workgroup's part of the results.

  In the second workgroup, whose waves run together with the first one's, every third scalar is another number.
  """
  out = encode("v_and_b32", "e32", src0=128 + lanes - 1, src1=0, vdst=14)
  out += encode("v_lshlrev_b32", "e32", src0=130, src1=14, vdst=14)
  out += encode("s_load_b512", "imm", sdst=8, sbase=0, offset=RESULTS - 256, cpol=0)
  out += encode("s_load_b256", "imm", sdst=24, sbase=0, offset=RESULTS - 128, cpol=0)
  out += encode("s_mul_i32", src0=255, src1=4, sdst=35, literal=0x9E3779B9)
  for n in range(8, 32, 3): out += encode("s_xor_b32", src0=35, src1=n, sdst=n)
  for n in range(13): out += load(n, 0) + encode("v_add_nc_u32", "e32", src0=255, src1=14, vdst=14, literal=4 * lanes)
  out += encode("s_mul_i32", src0=255, src1=4, sdst=35, literal=(SIZE - RESULTS) // 2)
  out += encode("s_add_u32", src0=255, src1=35, sdst=35, literal=RESULTS)
  out += encode("v_and_b32", "e32", src0=255, src1=14, vdst=14, literal=4 * lanes - 1)
  out += encode("v_add_nc_u32", "e32", src0=35, src1=14, vdst=15)
  return out + encode("s_mov_b32", src0=255, sdst=34, literal=4 * lanes)


def operand(rng: random.Random, kind: str, dwords: int, name: str, half: str) -> int:
  """A raw field value of an operand."""
  if kind == "v" or kind == "x" and rng.random() < 0.7:
    register = rng.randrange(0, 12) if not name.startswith("vdst") else 16
    if half == "h": register |= rng.randrange(2) << 7
    return register + (256 if kind == "x" else 0)
  if name in {"sdst", "vdst"}: return rng.choice((36, VCC))
  if name == "src2" and dwords == 0: return rng.choice((8, 10, VCC))
  pick = rng.random()
  if pick < 0.5: return 8 + rng.randrange(10) * 2
  if pick < 0.9: return rng.choice((*range(128, 209), *range(240, 249)))
  return rng.choice((VCC, 253 if dwords < 2 else VCC, EXEC))


def instruction(rng: random.Random, row: Row) -> bytes:
  """A random instruction of a row that decodes."""
  kinds = {name: (kind, dwords, half) for name, _, kind, dwords, _, half in row.operands}
  for _ in range(20):
    values = {}
    for name, pieces in row.fields.items():
      width = sum(w for _, _, w in pieces)
      if name in kinds and kinds[name][0] != "i":
        value = operand(rng, kinds[name][0], kinds[name][1], name, kinds[name][2])
        if row.family == "VOPD": value = {"vdstX": 16, "vdstY": 16}.get(name, value)
      elif name == "clamp" or name == "omod": value = rng.choice((0, 0, rng.randrange(1 << width)))
      elif name == "dpp_ctrl": value = rng.choice((rng.randrange(256), 0x101, 0x112, 0x123, 0x140, 0x141, 0x155, 0x167))
      else: value = rng.randrange(1 << width)
      values[name] = value
    try:
      code = TABLE.encode(row, values)
      i = TABLE.decode(code)
      if i.mnemonic == row.mnemonic and i.size == len(code): return code
    except (EncodeError, DecodeError): continue
  return b""


def body(rng: random.Random, rows: list[Row], lanes: int) -> bytes:
  """Instructions one by one, each followed by stores of all that it can have written."""
  out = b""
  full = rng.random() < 0.4
  for row in rows:
    out += b"".join(encode("v_mov_b32", "e32", src0=256 + rng.randrange(12), vdst=n) for n in (16, 17, 18, 19))
    out += encode("s_mov_b64", src0=10, sdst=36) + encode("s_mov_b64", src0=12, sdst=VCC)
    if not full: out += encode("s_mov_b64", src0=8, sdst=EXEC)
    out += instruction(rng, row)
    out += encode("s_cselect_b32", src0=129, src1=128, sdst=38) + encode("s_mov_b64", src0=EXEC, sdst=40)
    out += encode("s_mov_b64", src0=ONES, sdst=EXEC) + encode("v_mov_b32", "e32", src0=36, vdst=20)
    for n, s in enumerate((37, VCC, VCC + 1, 38, 40, 41)):
      out += encode("v_writelane_b32", src0=s, src1=129 + n, vdst=20)
    out += b"".join(store(n) for n in (16, 17, 18, 19, 20))
  return out


END = encode("s_endpgm")


def inputs(rng: random.Random) -> bytes:
  words = [rng.choice(SPECIAL_BITS) if rng.random() < 0.3 else rng.getrandbits(32) if rng.random() < 0.5 else
           rng.randrange(0x3E000000, 0x42000000) for _ in range(RESULTS // 4)]
  return np.array(words, np.uint32).tobytes()


def outcome(run: Any, code: bytes, data: bytes, d: Dispatch, watchdog: int = 100_000) -> Any:
  """(results as u32, statistics) of a dispatch, or its error as (type, text, fields)."""
  gpu = Gpu(1 << 21)
  gpu.space.write(CODE, code + END * 8)
  gpu.space.write(OUT, data)
  try: stats = run(gpu.space, ARCH, d, watchdog=watchdog)
  except Error as e: return type(e), str(e), [getattr(e, k, None) for k in ("pc", "lane", "wave", "address")]
  return np.frombuffer(gpu.space.read(OUT, SIZE), np.uint32), stats


def descriptor(lanes: int = 32, block: int = 0, lds: int = 0, mode: int = MODE) -> Dispatch:
  vgprs = VGPRS // (8 if lanes == 32 else 4) - 1
  rsrc1 = vgprs | (mode & 0xFF) << 12 | (mode >> 8 & 1) << 21 | (mode >> 9 & 1) << 23
  return Dispatch(CODE, (2, 1, 1), (block or lanes, 1, 1), rsrc1, 4 << 1 | 1 << 7,
                  user_data=(OUT & 0xFFFFFFFF, OUT >> 32, 0x89ABCDEF, 77), lds_size=lds, wave32=lanes == 32)


def differences(a: Any, b: Any, lanes: int) -> Any:
  """Dwords that differ, but for which NaN an operation gives."""
  at = np.flatnonzero(a != b)
  x, y = a[at], b[at]
  nan = (x & 0x7FFFFFFF > 0x7F800000) & (y & 0x7FFFFFFF > 0x7F800000)
  for shift in (0, 16):
    h, k = x >> shift & 0x7FFF, y >> shift & 0x7FFF
    rest = (x ^ y) & np.uint32(0xFFFF0000 if shift == 0 else 0xFFFF) == 0
    nan |= (h > 0x7C00) & (k > 0x7C00) & rest
  both = ((x & 0x7C007C00) == 0x7C007C00) & ((y & 0x7C007C00) == 0x7C007C00)
  top = np.minimum(at + lanes, len(a) - 1)
  wide = (a[top] & 0x7FF00000 == 0x7FF00000) & (b[top] & 0x7FF00000 == 0x7FF00000)
  return at[~(nan | both | wide | (x & y & 0x7FF00000 == 0x7FF00000))]


KNOWN = [r for r in TABLE.rows() if r.family in FAMILIES and (
  MEANINGS.get(r.mnemonic) or binds.get(r.mnemonic, "gfx11") or r.family == "VOPD")
  and not r.mnemonic.startswith(("s_get", "s_sendmsg"))]
ROWS = [r for r in KNOWN if "dpp" not in r.variant]
DPP_ROWS = [r for r in KNOWN if "dpp" in r.variant]


def check(rows: list[Row], seed: int, lanes: int) -> list[str]:
  """Rows that do not give the same results in both engines."""
  rng = random.Random(seed)
  code, data = prologue(lanes) + body(rng, rows, lanes), inputs(rng)
  expected, found = (outcome(run, code, data, descriptor(lanes)) for run in (dispatch, compiled))
  if isinstance(expected[0], type): return [] if expected == found else [f"{expected} {found}"]
  if isinstance(found[0], type): return [str(found)]
  at = differences(expected[0], found[0], lanes)
  part = (SIZE - RESULTS) // 2
  which = sorted({((int(k) * 4 - RESULTS) % part) // (5 * 4 * lanes) for k in at if k * 4 >= RESULTS})
  assert expected[1].instructions == found[1].instructions
  return [f"{rows[k].mnemonic} {rows[k].variant}" if k < len(rows) else "?" for k in which]


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("seed", seeds(range(PROGRAMS)))
def test_instructions_of_all_kinds(seed: int, lanes: int) -> None:
  assert check(random.Random(seed).sample(ROWS, 24), seed, lanes) == []


@pytest.mark.parametrize("seed", seeds(range(PROGRAMS)))
def test_instructions_through_dpp(seed: int) -> None:
  assert check(random.Random(seed).sample(DPP_ROWS, 24), seed, 32) == []


# ---- branches: forward over random distances, loops that count down, divergence through EXEC

SCALARS = [r for r in ROWS if r.family in {"SOP2", "SOPC"} and not r.mnemonic.endswith(("b64", "i64", "u64"))]
VECTORS = [r for r in ROWS if r.variant == "e32" and r.family in {"VOP1", "VOP2"} and (m := MEANINGS.get(r.mnemonic))
           and all(t.removeprefix("d:") in {"u32", "i32", "u16", "i16", "mask"} for t in (*m.results, *m.sources))]


def block(rng: random.Random, n: int) -> bytes:
  """Integer instructions on v0..v11 and s8..s31."""
  out = b""
  while n:
    row = rng.choice(VECTORS if rng.random() < 0.7 else SCALARS)
    code = instruction(rng, row)
    if not code: continue
    out += code
    if "vdst" in row.fields: out += encode("v_mov_b32", "e32", src0=256 + 16, vdst=rng.randrange(12))
    if "sdst" in row.fields and row.family == "SOP2": out += encode("s_mov_b32", src0=36, sdst=8 + rng.randrange(20))
    n -= 1
  return out


def program(rng: random.Random, depth: int) -> bytes:
  """Blocks, branches on SCC, VCC and EXEC over blocks, lanes switched off for a while, and counted loops."""
  out = block(rng, 4)
  for _ in range(3):
    inner = program(rng, depth - 1) if depth else block(rng, 3)
    kind = rng.randrange(4)
    if kind == 0:
      name = rng.choice(("s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_vccz", "s_cbranch_vccnz"))
      out += encode(name, simm16=len(inner) // 4) + inner
    elif kind == 1:
      kept = 50 + 2 * depth
      out += encode("v_cmp_gt_i32", "e32", src0=256 + rng.randrange(12), src1=rng.randrange(12))
      out += encode("s_and_saveexec_b64", src0=VCC, sdst=kept)
      out += encode("s_cbranch_execz", simm16=len(inner) // 4) + inner + encode("s_mov_b64", src0=kept, sdst=EXEC)
    elif kind == 2:
      counter = 60 + depth
      loop = inner + encode("s_sub_u32", src0=counter, src1=129, sdst=counter)
      loop += encode("s_cmp_lg_u32", src0=counter, src1=128)
      out += encode("s_mov_b32", src0=128 + rng.randrange(2, 5), sdst=counter) + loop
      out += encode("s_cbranch_scc1", simm16=-(len(loop) // 4 + 1) & 0xFFFF)
    else: out += inner
  return out


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("seed", seeds(range(PROGRAMS)))
def test_random_programs_with_branches(seed: int, lanes: int) -> None:
  rng = random.Random(seed)
  code = encode("s_mov_b64", src0=EXEC, sdst=70) + prologue(lanes) + program(rng, 2)
  code += encode("s_mov_b64", src0=70, sdst=EXEC)
  for s in (*range(8, 32), VCC, VCC + 1): code += encode("v_mov_b32", "e32", src0=s, vdst=17) + store(17)
  for n in range(12): code += store(n)
  data = inputs(rng)
  block_size = lanes if seed % 2 else lanes - 5
  expected, found = (outcome(run, code, data, descriptor(lanes, block_size)) for run in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions
  assert not found[1].interpreted


# ---- faults, the watchdog, code that changes, choosing

@pytest.mark.parametrize(("lane", "active"), [(0, -1), (5, -1), (31, -1), (9, 0xFFFF0200), (20, 0x00100000)])
@pytest.mark.parametrize("kind", ["load", "store", "wide", "near"])
def test_a_fault_is_exact(kind: str, lane: int, active: int) -> None:
  """One lane points outside: same error, PC, instruction, wave, lane and address."""
  width = "b128" if kind == "wide" else "b32"
  setup = encode("v_mov_b32", "e32", src0=0, vdst=1) + encode("v_mov_b32", "e32", src0=1, vdst=2)
  setup += encode("v_mov_b32", "e32", src0=128, vdst=3) + encode("s_mov_b32", src0=255, sdst=20, literal=0x7654)
  setup += encode("v_writelane_b32", src0=20, src1=128 + lane, vdst=2 if kind != "near" else 3)
  if kind == "near": setup += encode("v_lshlrev_b32", "e32", src0=128 + 16, src1=3, vdst=3)
  setup += encode("s_mov_b32", src0=255, sdst=EXEC, literal=active & 0xFFFFFFFF)
  if kind == "near": access = encode("global_load_b32", "saddr", vdst=4, vaddr=3, saddr=0, offset=0)
  elif kind == "store": access = encode("global_store_b32", "", vdata=4, vaddr=1, offset=8)
  else: access = encode(f"global_load_{width}", "", vdst=4, vaddr=1, offset=8)
  expected, found = (outcome(run, setup + access, b"", descriptor()) for run in (dispatch, compiled))
  assert expected == found and found[0] is PageFault and found[2][0] == CODE + len(setup)
  assert found[2][1] == lane and found[2][2] == 0


def test_a_store_without_permission_is_a_fault() -> None:
  code = encode("v_mov_b32", "e32", src0=128, vdst=3) + encode("global_store_b32", "saddr", vdata=3, vaddr=3, saddr=0)
  results = []
  for run in (dispatch, compiled):
    gpu = Gpu(1 << 21)
    gpu.space.unmap(gpu.base, 1 << 21)
    gpu.space.map(gpu.base, 1 << 20, gpu.region, 0)
    gpu.space.map(gpu.base + (1 << 20), 1 << 20, gpu.region, 1 << 20, Access.READ)
    gpu.space.write(CODE, code + END)
    with pytest.raises(PageFault, match="no permission") as caught: run(gpu.space, ARCH, descriptor(), watchdog=1000)
    results.append(str(caught.value))
  assert results[0] == results[1]


def test_an_access_across_mappings_is_served() -> None:
  """The two halves of a dwordx4 lie in different memory."""
  code = encode("v_mov_b32", "e32", src0=255, vdst=3, literal=4096 - 8)
  code += encode("global_load_b128", "saddr", vdst=4, vaddr=3, saddr=0, offset=0)
  code += encode("v_mov_b32", "e32", src0=128, vdst=3)
  code += encode("global_store_b128", "saddr", vdata=4, vaddr=3, saddr=0, offset=0)
  data = np.arange(2048, dtype=np.uint32)
  for run in (dispatch, compiled):
    gpu = Gpu(1 << 21)
    gpu.space.unmap(gpu.base, 1 << 21)
    gpu.space.map(gpu.base, 1 << 20, gpu.region, 0)
    gpu.space.map(OUT, 4096, Region("one", 4096))
    gpu.space.map(OUT + 4096, 4096, Region("two", 4096))
    gpu.space.write(CODE, code + END)
    gpu.space.write(OUT, data.tobytes())
    run(gpu.space, ARCH, descriptor(), watchdog=1000)
    assert gpu.get(OUT, np.uint32, 4).tolist() == [1022, 1023, 1024, 1025]


@pytest.mark.parametrize("body_size", [0, 3, 200])
def test_the_watchdog_counts_instructions(body_size: int) -> None:
  """A counter keeps the state of the waves changing; both engines stop at the same PC."""
  loop = encode("s_add_u32", src0=20, src1=129, sdst=20) + encode("s_nop", simm16=0) * body_size
  code = loop + encode("s_branch", simm16=-(len(loop) // 4 + 1) & 0xFFFF)
  expected, found = (outcome(run, code, b"", descriptor(), 5000) for run in (dispatch, compiled))
  assert expected == found and found[0] is WatchdogExpired


def test_waves_wait_for_each_other_in_memory() -> None:
  """The first workgroup spins until the second has stored."""
  code = encode("v_mov_b32", "e32", src0=128, vdst=3) + encode("s_cmp_eq_u32", src0=4, src1=128)
  store_one = encode("v_mov_b32", "e32", src0=129, vdst=4)
  store_one += encode("global_store_b32", "saddr", vdata=4, vaddr=3, saddr=0, offset=0) + END
  code += encode("s_cbranch_scc1", simm16=len(store_one) // 4) + store_one
  spin = encode("s_load_b32", "imm", sdst=20, sbase=0, offset=0) + encode("s_cmp_eq_u32", src0=20, src1=128)
  code += spin + encode("s_cbranch_scc1", simm16=-(len(spin) // 4 + 1) & 0xFFFF)
  found = outcome(compiled, code, b"", descriptor(), 100_000_000)
  assert found[0][0] == 1


@pytest.mark.parametrize("engine", ["auto", "ref", "jit", "both"])
def test_engines_are_chosen_by_name(engine: str) -> None:
  code = encode("v_mov_b32", "e32", src0=128, vdst=3)
  code += encode("global_store_b32", "saddr", vdata=0, vaddr=3, saddr=0, offset=0)
  result = outcome(lambda *a, **k: choose(*a, engine=engine, **k), code, b"", descriptor())
  assert result[0][0] == 31 and result[1].engine == ("jit" if engine in {"jit", "both"} else "ref")


def test_a_program_that_llvm_refuses_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("tinyhw.emulator.jit.amdgcn.translate.FIND", "no such text")
  code = encode("v_mov_b32", "e32", src0=129, vdst=3) + encode("v_mov_b32", "e32", src0=128, vdst=4)
  code += encode("global_store_b32", "saddr", vdata=3, vaddr=4, saddr=0, offset=4)
  with pytest.warns(RuntimeWarning, match="a mistake of tinyhw's own"):
    found = outcome(lambda *a, **k: choose(*a, engine="jit", **k), code, b"", descriptor())
  assert found[0][1] == 1 and found[1].engine == "ref" and any("unsupported" in name for name in found[1].interpreted)
