"""Compiled atomics, LDS instructions and buffer loads against the reference: memory, returned values and faults."""
from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import ARCH
from tests.emulator.jit.amdgcn.test_jit import (
  EXEC,
  ONES,
  OUT,
  TABLE,
  descriptor,
  differences,
  encode,
  inputs,
  outcome,
  prologue,
)
from tests.emulator.jit.amdgcn.test_jit import store as kept
from tests.emulator.jit.amdgcn.test_single import by_code, difference
from tests.strength import THOROUGH
from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.emulator.amdgcn.memory.tables import DS_ATOMICS, DS_EXCHANGE_PAIRS, LOADS, STORES, VECTOR_ATOMICS
from tinyhw.emulator.jit.amdgcn.launch import dispatch as compiled
from tinyhw.emulator.jit.amdgcn.run import Waves
from tinyhw.isa.amdgcn import Row
from tinyhw.tools.witness.run import bench
from tinyhw.tools.witness.state import MEMORY, MEMORY_SIZE

CELLS = 0x400  # where in the inputs the cells lie that atomics change
LDS = 1024
DS = sorted({*DS_ATOMICS, *DS_EXCHANGE_PAIRS, "ds_append", "ds_consume", "ds_load_addtid_b32", "ds_store_addtid_b32",
             "ds_permute_b32", "ds_bpermute_b32", "ds_swizzle_b32"} & set(TABLE.by_mnemonic))


def one_wave(lanes: int, lds: int = 0) -> Dispatch:
  return replace(descriptor(lanes, lds=lds), grid=(1, 1, 1))


def agree(code: bytes, data: bytes, d: Dispatch) -> None:
  """Both engines give the same memory, and nothing is left to the reference."""
  expected, found = (outcome(run, code, data, d) for run in (dispatch, compiled))
  assert not isinstance(expected[0], type), expected
  assert not isinstance(found[0], type), found
  lanes = 32 if d.wave32 else 64
  assert not differences(expected[0], found[0], lanes).size and not found[1].interpreted


def by_type(rows: list[Row]) -> list[list[Row]]:
  """Integers, f32 and f64 apart: which NaN a cell holds must not be seen by another type."""
  kinds = [next((t for t in ("f32", "f64") if r.mnemonic.endswith(t)), "") for r in rows]
  return [[r for r, k in zip(rows, kinds) if k == kind] for kind in ("", "f32", "f64")]


def some_lanes(rng: random.Random) -> bytes:
  """All lanes, some or none."""
  return encode("s_mov_b64", src0=rng.choice((ONES, ONES, 8, 10, 12, 128)), sdst=EXEC)


def results(n: int) -> bytes:
  return encode("s_mov_b64", src0=ONES, sdst=EXEC) + b"".join(kept(16 + k) for k in range(n))


def moved(rng: random.Random) -> bytes:
  """Results begin as copies of inputs."""
  return b"".join(encode("v_mov_b32", "e32", src0=256 + rng.randrange(12), vdst=16 + n) for n in range(4))


def vector_atomic(rng: random.Random, row: Row) -> bytes:
  """An atomic on cells that lanes share, by an address of the row's form."""
  width = VECTOR_ATOMICS[row.mnemonic][1]
  wide = "saddr" not in row.fields
  out = encode("v_and_b32", "e32", src0=255, src1=rng.randrange(12), vdst=20, literal=0x7F & -width)
  out += encode("v_add_nc_u32", "e32", src0=255, src1=20, vdst=20, literal=CELLS)
  if wide:
    out += encode("v_add_nc_u32", "e32", src0=0, src1=20, vdst=20)
    out += encode("v_mov_b32", "e32", src0=1, vdst=21)
  values = {"vaddr": 20, "vdata": rng.randrange(8), "vdst": 16, "saddr": 0, "cpol": 0,
            "offset": rng.randrange(8) * width}
  return moved(rng) + out + some_lanes(rng) + TABLE.encode(row, {k: v for k, v in values.items() if k in row.fields}) \
    + results(2)


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("segment", ["global", "flat"])
def test_atomics_on_memory(segment: str, lanes: int) -> None:
  """Every operation, with and without a result (rows of their own), several times on cells that lanes share."""
  rng = random.Random(segment)
  rows = [r for name in VECTOR_ATOMICS if name.startswith(segment) for r in TABLE.by_mnemonic.get(name, ())]
  assert len(rows) > 25
  for part in by_type(rows):
    code = prologue(lanes) + b"".join(vector_atomic(rng, r) for r in part)
    agree(code, inputs(rng), one_wave(lanes))


def ds(rng: random.Random, row: Row, lanes: int) -> bytes:
  """An LDS instruction at addresses of which some lie outside."""
  width = 8 if row.mnemonic.endswith("64") else 4
  mask = rng.choice((0x7F, 0x1FF, 0xFFF)) & -width
  out = encode("v_and_b32", "e32", src0=255, src1=rng.randrange(12), vdst=20, literal=mask)
  out += encode("s_mov_b32", src0=255, sdst=125, literal=rng.choice((0, 64, LDS - 64)))
  values = {"addr": 20, "data0": rng.randrange(8), "data1": rng.randrange(8), "vdst": 16,
            "offset": rng.randrange(1 << 16) if "swizzle" in row.mnemonic else rng.randrange(16) * width,
            "offset0": rng.randrange(16), "offset1": rng.randrange(16)}
  values = {k: v for k, v in values.items() if k in row.fields}
  return moved(rng) + out + some_lanes(rng) + TABLE.encode(row, values) + results(4)


@pytest.mark.parametrize("lanes", [32, 64])
def test_lds_instructions(lanes: int) -> None:
  rng = random.Random(lanes)
  fill = b""
  for n in range(8):
    fill += encode("v_and_b32", "e32", src0=255, src1=14, vdst=20, literal=4 * lanes - 1)
    fill += encode("ds_store_b32", addr=20, data0=n, offset=n * 4 * lanes)
  rows = [r for name in DS for r in TABLE.by_mnemonic[name] if r.family == "DS"]
  for part in by_type(rows):
    code = prologue(lanes) + fill + b"".join(ds(rng, r, lanes) for r in part)
    agree(code, inputs(rng), one_wave(lanes, LDS))


@pytest.mark.parametrize("variant", ["imm", "sgpr"])
def test_scalar_buffer_loads(variant: str) -> None:
  """Words past the buffer's records are 0."""
  rng = random.Random(variant)
  code = prologue(32)
  for _ in range(30):
    name, count = rng.choice((("s_buffer_load_b32", 1), ("s_buffer_load_b64", 2), ("s_buffer_load_b128", 4),
                              ("s_buffer_load_b256", 8)))
    code += encode("s_mov_b64", src0=0, sdst=40) + encode("s_mov_b32", src0=255, sdst=42, literal=rng.randrange(80))
    code += encode("s_mov_b32", src0=255, sdst=43, literal=rng.randrange(96))
    row = next(r for r in TABLE.by_mnemonic[name] if r.variant == variant)
    values = {"sdst": 48, "sbase": 40, "offset": rng.randrange(20) * 4,
              "soffset": 43, "cpol": 0}
    code += TABLE.encode(row, {k: v for k, v in values.items() if k in row.fields})
    for n in range(count): code += encode("v_mov_b32", "e32", src0=48 + n, vdst=16) + kept(16)
  agree(code, inputs(rng), one_wave(32))


@pytest.mark.parametrize("kind", ["unmapped", "misaligned", "lds"])
@pytest.mark.parametrize("lane", [0, 9, 31])
def test_a_fault_of_an_atomic_is_exact(kind: str, lane: int) -> None:
  code = encode("v_mov_b32", "e32", src0=0, vdst=20) + encode("v_mov_b32", "e32", src0=1, vdst=21)
  code += encode("s_mov_b32", src0=255, sdst=20, literal=0x7654 if kind == "unmapped" else (OUT & 0xFFFFFFFF) + 2)
  code += encode("v_writelane_b32", src0=20, src1=128 + lane, vdst=21 if kind == "unmapped" else 20)
  if kind == "lds":
    code += encode("v_and_b32", "e32", src0=255, src1=20, vdst=20, literal=0xFF)
    code += encode("ds_add_u32", addr=20, data0=21, offset=0)
  else: code += encode("global_atomic_add_u32", "", vaddr=20, vdata=21, offset=0, cpol=0)
  expected, found = (outcome(run, code, b"", one_wave(32, LDS)) for run in (dispatch, compiled))
  assert expected == found and issubclass(found[0], PageFault if kind == "unmapped" else MachineFault)


# ---- buffers of every generation

def buffer_case(gpu: str, row: Row, lanes: int, rng: random.Random) -> Any:
  """One buffer instruction on a resource of any size, stride and kind of check; lanes go a little beyond it."""
  isa = bench(gpu).table
  records, stride = rng.choice((0, 5, 64, 500)), rng.choice((0, 8, 16, 20))
  w3 = rng.randrange(4) << 28 | (rng.randrange(4) << 18 if gpu == "gfx1201" else 0)
  base = MEMORY + 256
  words = {20: base & 0xFFFFFFFF, 21: base >> 32 | stride << 16, 22: records, 23: w3, 30: rng.randrange(3) * 8}
  values = {"vaddr": 4, "vdata": 8, "srsrc": 20, "soffset": rng.choice((30, 128)),
            "offset": rng.randrange(4) * rng.choice((4, 8, 8))}
  if isa.name == "gfx12" and values["soffset"] == 128: values["soffset"] = 124
  code = isa.encode(row, {k: v for k, v in values.items() if k in row.fields})
  v = [np.array([[rng.getrandbits(32) & 0x7F7FFFFF for _ in range(lanes)]], np.uint32) for _ in range(16)]
  many = rng.choice((4, 40))
  for n in (4, 5): v[n] = np.array([[rng.randrange(many) * (8 if n == 5 or "offen" in row.variant else 1)
                                     for _ in range(lanes)]], np.uint32)
  s = [np.uint32(words.get(k, 0)) for k in range(126)]
  s += [np.uint32(rng.choice((0, 0xFFFFFFFF, rng.getrandbits(32)))) for _ in range(2)]
  data = bytes(rng.getrandbits(8) for _ in range(1024)) * (MEMORY_SIZE // 1024)
  start = SimpleNamespace(memory=data, lds=b"", gds=b"", scc=[False], v=v)
  instruction = isa.decode(code)
  one = SimpleNamespace(code=code, lanes=lanes, waves=1, mode=0x3F0, instruction=instruction, text=str(instruction))
  return SimpleNamespace(case=one, start=start, v=v, s=s)


@pytest.mark.parametrize("gpu", ["gfx1100", "gfx1201", "gfx942"])
def test_buffers(gpu: str) -> None:
  """Plain loads, stores and atomics in every form; few are left to the reference: those with dwords half in range."""
  rng = random.Random(gpu)
  isa = bench(gpu).table
  rows = [r for r in isa.rows() if r.family == "MUBUF" and "vdata" in r.fields and r.mnemonic in
          LOADS | STORES | VECTOR_ATOMICS and "lds" not in r.variant]
  left = 0
  for row in rng.sample(rows, 60):
    p = buffer_case(gpu, row, 64 if gpu == "gfx942" else 32, rng)
    assert difference(bench(gpu), p) == "", p.case.text
    left += bool(by_code(bench(gpu), p)[1])
  assert left < 10


FLAT_LDS, FLAT_SCRATCH = (getattr(ARCH, f"{name}_aperture") >> 32 for name in ("shared", "private"))
FLAT = [r for name in sorted({*LOADS, *STORES, *VECTOR_ATOMICS}) if name.startswith("flat")
        for r in TABLE.by_mnemonic.get(name, ())]


def flat(rng: random.Random, row: Row, where: str) -> bytes:
  """A flat instruction at addresses in LDS, in scratch, in global memory, or in some of them by lane."""
  width = next(t[row.mnemonic][at] for t, at in ((LOADS, 0), (STORES, 0), (VECTOR_ATOMICS, 1)) if row.mnemonic in t)
  out = encode("v_and_b32", "e32", src0=255, src1=rng.randrange(12), vdst=20, literal=0xF0 | 16 - max(width, 4) & 15)
  highs = {"lds": (255, FLAT_LDS), "scratch": (255, FLAT_SCRATCH)}
  for one in where.split():
    code, literal = highs.get(one, (1, None))
    out += encode("v_mov_b32", "e32", src0=code, vdst=21, literal=literal)
    if one == "global": out += encode("v_add_nc_u32", "e32", src0=0, src1=20, vdst=20)
    out += encode("s_mov_b64", src0=255, sdst=EXEC, literal=0x0FF03355)  # the next place for some of the lanes
  out += encode("s_mov_b64", src0=ONES, sdst=EXEC)
  offset = rng.choice((0, 16, LDS)) if where in {"lds", "global"} else rng.choice((0, 16))
  values = {"vaddr": 20, "vdata": rng.randrange(8), "vdst": 16, "offset": offset, "cpol": 0}
  return moved(rng) + out + some_lanes(rng) + TABLE.encode(row, {k: v for k, v in values.items() if k in row.fields}) \
    + results(4)


@pytest.mark.parametrize(("where", "lanes"), [
  (where, lanes) for k, where in enumerate(["lds", "scratch", "global", "lds global", "scratch lds", "scratch global"])
  for lanes in ((32, 64) if THOROUGH else (32, 64)[k % 2:][:1])])
def test_flat_accesses(where: str, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """The upper half of an address chooses; only lanes that go different ways need the reference."""
  rng = random.Random(where)
  served = []
  serve = Waves._serve

  def watched(self: Waves, site: Any, group: Any) -> None:
    served.append(site)
    serve(self, site, group)
  monkeypatch.setattr(Waves, "_serve", watched)
  fill = b""
  for n in range(8):
    fill += encode("v_and_b32", "e32", src0=255, src1=14, vdst=20, literal=4 * lanes - 1)
    fill += encode("ds_store_b32", addr=20, data0=n, offset=n * 4 * lanes)
  rows = [r for r in FLAT if "scratch" not in where or r.mnemonic not in VECTOR_ATOMICS]
  d = replace(one_wave(lanes, LDS), scratch_base=OUT + 0x30000, scratch_size=512, scratch_waves=4)
  for part in by_type(rows):
    code = prologue(lanes) + fill + b"".join(flat(rng, r, where) for r in part)
    agree(code, inputs(rng), d)
  assert bool(served) == (" " in where)
