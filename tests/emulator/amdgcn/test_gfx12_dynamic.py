"""gfx1201: loads that transpose, in waves of both sizes, and vector registers that a wave allocates while it runs."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu, compile_gpu
from tests.strength import seed
from tinyhw.core.errors import InvalidArgument, MachineFault, PageFault, Unsupported
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats, dispatch
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.debug.amdgcn.engine import AmdEngine
from tinyhw.emulator.engines.amdgcn import dispatch as run_with
from tinyhw.emulator.observe import Observer

GPU = "gfx1201"
ENGINES = ("ref", "jit", "both", "auto")
U8, U16, U32 = np.uint8, np.uint16, np.uint32


# ---- transposing loads: two loads and a matrix product in LLVM's IR, held against NumPy's product

PRODUCT = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare {type} @llvm.amdgcn.global.load.tr.{load}(ptr addrspace(1))
declare {result} @llvm.amdgcn.wmma.{wmma}
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %pa, ptr addrspace(1) %pb,
                             ptr addrspace(1) %o) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %ga = getelementptr i32, ptr addrspace(1) %pa, i32 %i
  %ia = load i32, ptr addrspace(1) %ga
  %gb = getelementptr i32, ptr addrspace(1) %pb, i32 %i
  %ib = load i32, ptr addrspace(1) %gb
  %la = getelementptr i8, ptr addrspace(1) %a, i32 %ia
  %lb = getelementptr i8, ptr addrspace(1) %b, i32 %ib
  %x = call {type} @llvm.amdgcn.global.load.tr.{load}(ptr addrspace(1) %la)
  %y = call {type} @llvm.amdgcn.global.load.tr.{load}(ptr addrspace(1) %lb)
  {call}
  %g = getelementptr {result}, ptr addrspace(1) %o, i32 %i
  store {result} %d, ptr addrspace(1) %g
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="{lanes},{lanes}" }}"""
KINDS = {
  (8, 32): ("<2 x i32>", "b64.v2i32", "<8 x i32>"), (8, 64): ("i32", "b64.i32", "<4 x i32>"),
  (16, 32): ("<8 x half>", "b128.v8f16", "<8 x float>"), (16, 64): ("<4 x half>", "b128.v4f16", "<4 x float>")}


def product_ir(bits: int, lanes: int) -> str:
  operand, load, result = KINDS[bits, lanes]
  n = 8 if lanes == 32 else 4
  suffix = {"<2 x i32>": "v2i32", "i32": "i32", "<8 x half>": "v8f16", "<4 x half>": "v4f16"}[operand]
  if bits == 8:
    wmma = f"i32.16x16x16.iu8.v{n}i32.{suffix}(i1, {operand}, i1, {operand}, {result}, i1)"
    call = (f"%d = call {result} @llvm.amdgcn.wmma.i32.16x16x16.iu8.v{n}i32.{suffix}(i1 false, {operand} %x, i1 false, "
            f"{operand} %y, {result} zeroinitializer, i1 false)")
  else:
    wmma = f"f32.16x16x16.f16.v{n}f32.{suffix}({operand}, {operand}, {result})"
    call = (f"%d = call {result} @llvm.amdgcn.wmma.f32.16x16x16.f16.v{n}f32.{suffix}({operand} %x, {operand} %y, "
            f"{result} zeroinitializer)")
  return PRODUCT.format(type=operand, load=load, result=result, wmma=wmma, call=call, lanes=lanes)


def reading(bits: int, stride: int) -> np.ndarray:
  """Byte offset that each of 32 lanes reads of a matrix [k, m] whose rows are `stride` bytes apart.

  Eight of the 16 columns, and the row that the instruction puts where the layout of section 7.12.2 has it. For bytes
  that is (lane / 8) * 4 + lane % 4, with the upper columns in lanes whose bit 2 is set: the addresses of a kernel that
  a gfx1201 has run.
  """
  lane = np.arange(32)
  if bits == 8: row, high = lane // 8 * 4 + lane % 4, lane >> 2 & 1
  else: row, high = lane & 3 | (lane >> 2 & 1) << 3 | (lane >> 4 & 1) << 2, lane >> 3 & 1
  return row * stride + high * bits


@pytest.mark.parametrize("engine", ["ref", "both"])
@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("bits", [8, 16])
def test_transposed_operands_multiply(bits: int, lanes: int, engine: str) -> None:
  """A, stored column by column, and B, stored row by row, loaded with transposition and multiplied, as NumPy does."""
  rng = np.random.default_rng(bits + lanes)
  if bits == 8: a, b = (rng.integers(0, 256, (16, 16)).astype(U8) for _ in "ab")
  else: a, b = (rng.integers(-9, 9, (16, 16)).astype(np.float16) for _ in "ab")  # [k, m] and [k, n], products exact
  gpu = Gpu(cpu=GPU)
  gpu.engine = engine
  features = "+wavefrontsize64" if lanes == 64 else ""
  kernel = gpu.load(compile_gpu(product_ir(bits, lanes), cpu=GPU, features=features))["k"]
  beyond = np.full(lanes, 1 << 30)  # what the upper lanes of 64 hold is no address
  beyond[:32] = reading(bits, 16 * bits // 8)
  offsets = beyond.astype(U32)
  out = np.zeros((16, 16), np.int32 if bits == 8 else np.float32)
  at = [gpu.put(x) for x in (a, b, offsets, offsets, out)]
  gpu.launch(kernel, (1, 1, 1), (lanes, 1, 1), at)
  got = gpu.get(at[4], out.dtype, 256).reshape(lanes, 256 // lanes)
  wide = np.int64 if bits == 8 else np.float64
  want = a.astype(wide).T @ b.astype(wide)  # [m, n]
  for lane in range(lanes):  # D: the column is the lane modulo 16, the rows are spread as section 7.12.2 says
    first = 8 * (lane >> 4 & 1) + 4 * (lane >> 5)
    assert np.array_equal(got[lane], want[first:first + 256 // lanes, lane % 16])


def seen(lane: int, element: int) -> int:
  """The byte of 256 that an element of a lane got on a gfx1201, with lane l at byte 8 * l (measured by others)."""
  return (lane & 7) + (lane >> 3 & 1) * 32 + (lane >> 4) * 128 + (element & 3) * 8 + (element >> 2) * 64


def load_text(name: str, lanes: int, mask: str = "") -> str:
  out = {("b64", 32): "b64 v6, v[2:3]", ("b64", 64): "b32 v6, v2", ("b128", 32): "b128 v6, v[2:5]",
         ("b128", 64): "b64 v6, v[2:3]"}[name, lanes]
  shift, back = (3, 2 if lanes == 64 else 3) if name == "b64" else (4, 3 if lanes == 64 else 4)
  return f"""
    v_lshlrev_b32_e32 v1, {shift}, v0
    v_lshlrev_b32_e32 v6, {back}, v0
    {mask}
    global_load_tr_{name} v[2:{3 if name == 'b64' else 5}], v1, s[0:1]
    s_wait_loadcnt 0
    global_store_{out}, s[0:1] offset:1024
    s_endpgm"""


def run(text: str, data: np.ndarray, *, lanes: int = 32, waves: int = 1, engine: str = "ref", vgprs: int = 16,
        rsrc2: int = 0, block: int = 16, checker: Checker | None = None) -> tuple[np.ndarray, DispatchStats]:
  """Run a program with s[0:1] the address of the data, v0 the work-item; the data after it, and the statistics."""
  gpu = Gpu(1 << 22, GPU)
  at = gpu.put(np.frombuffer(code_of(text, "gfx12"), U8))
  where = gpu.put(data)
  d = Dispatch(at, (1, 1, 1), (lanes * waves, 1, 1), vgprs // (8 if lanes == 32 else 4) - 1 | 0xC0 << 12,
               2 << 1 | rsrc2, user_data=(where & 0xFFFFFFFF, where >> 32), wave32=lanes == 32, vgpr_block=block)
  if checker is not None: stats = dispatch(gpu.space, gpu.arch, d, observer=checker)
  elif engine == "debugger":
    stands = AmdEngine(gpu.space, gpu.arch, d, 10_000, Observer())
    while (turn := stands.pick()) is not None: stands.execute(*turn)
    stats = stands.stats
  else: stats = run_with(gpu.space, gpu.arch, d, engine=engine)
  return gpu.get(where, data.dtype, data.size), stats


@pytest.mark.parametrize("engine", ENGINES)
def test_the_order_of_bytes_is_the_measured_one(engine: str) -> None:
  data = np.arange(2048, dtype=U32).astype(U8)
  data[:256] = np.arange(256)
  got, stats = run(load_text("b64", 32), data, engine=engine)
  assert [int(x) for x in got[1024:1280]] == [seen(lane, e) for lane in range(32) for e in range(8)]
  assert engine != "jit" or stats.interpreted == {"global_load_tr_b64": 1}


@pytest.mark.parametrize("name", ["b64", "b128"])
def test_waves_of_64_have_the_same_registers_in_twice_as_many_lanes(name: str) -> None:
  """The lower half of each lane's registers, then the upper half of each."""
  data = np.random.default_rng(seed(1)).integers(0, 1 << 32, 512, dtype=U32)
  words = 2 if name == "b64" else 4
  small, wide = (run(load_text(name, lanes), data, lanes=lanes, engine="both")[0][256:256 + 32 * words]
                 for lanes in (32, 64))
  assert np.array_equal(wide.reshape(2, 32, words // 2), small.reshape(32, 2, words // 2).swapaxes(0, 1))


@pytest.mark.parametrize("name", ["b64", "b128"])
def test_all_lanes_or_none(name: str) -> None:
  data = np.arange(1024, dtype=U32)
  with pytest.raises(Unsupported, match="some lanes are inactive, which the manual leaves undefined"):
    run(load_text(name, 32, "s_mov_b32 exec_lo, 0xffff"), data)
  got, _ = run(load_text(name, 32, "s_mov_b32 exec_lo, 0"), data)
  assert np.array_equal(got, data)


def test_a_faulty_address_is_that_of_the_lane() -> None:
  text = load_text("b64", 32, "v_cmp_eq_u32_e32 vcc_lo, 5, v0\n v_cndmask_b32_e64 v1, v1, -4096, vcc_lo")
  with pytest.raises(PageFault) as caught: run(text, np.arange(1024, dtype=U32))
  assert caught.value.lane == 5


# ---- registers that come and go

DYNAMIC = 1 << 6  # COMPUTE_PGM_RSRC2.DYNAMIC_VGPR


def test_a_wave_gets_blocks_and_gives_them_back() -> None:
  """Against the manual's words: rounded up to blocks of 16; more than 8 blocks fail; SCC tells."""
  asks = [0, 1, 16, 17, 33, 128, 129, 255, 256, 511, 512, 513]
  lines = ["v_mov_b32_e32 v1, 0"]
  for k, n in enumerate(asks):
    lines += [f"s_mov_b32 s4, {n}", "s_alloc_vgpr s4", "s_cselect_b32 s5, 1, 0", "v_mov_b32_e32 v2, s5",
              f"global_store_b32 v1, v2, s[0:1] offset:{4 * k}"]
  got, stats = run("\n".join([*lines, "s_endpgm"]), np.full(64, 7, U32), rsrc2=DYNAMIC)
  assert got[:len(asks)].tolist() == [int((n & 511) <= 128) for n in asks]
  assert stats.modelled["s_alloc_vgpr"] == len(asks)


@pytest.mark.parametrize("engine", ENGINES)
def test_new_registers_can_be_used_and_old_ones_keep_their_values(engine: str) -> None:
  text = """
    s_alloc_vgpr 40
    v_mov_b32_e32 v47, v0
    v_add_nc_u32_e32 v15, 5, v0
    s_alloc_vgpr 64
    v_add_nc_u32_e32 v63, v47, v15
    s_alloc_vgpr 0
    v_lshlrev_b32_e32 v1, 2, v0
    s_alloc_vgpr 48
    v_mov_b32_e32 v47, 3
    v_add_nc_u32_e32 v15, v15, v47
    s_alloc_vgpr 16
    global_store_b32 v1, v15, s[0:1]
    s_endpgm"""
  got, stats = run(text, np.zeros(64, U32), waves=2, rsrc2=DYNAMIC, engine=engine)
  assert np.array_equal(got, np.arange(64) + 8)
  assert engine != "jit" or "vector registers that come and go" in next(iter(stats.interpreted))


@pytest.mark.parametrize(("text", "block"), [
  ("v_mov_b32_e32 v16, 0", 16), ("s_alloc_vgpr 32\n v_mov_b32_e32 v32, 0", 16), ("v_mov_b32_e32 v32, 0", 32),
  ("s_alloc_vgpr 32\n s_alloc_vgpr 1\n v_mov_b32_e32 v0, v31", 16), ("s_alloc_vgpr 129\n v_mov_b32_e32 v16, 0", 16)])
def test_what_a_wave_does_not_have_faults(text: str, block: int) -> None:
  """The registers that the descriptor counts are of no account here: a wave begins with one block."""
  with pytest.raises(MachineFault, match="a register beyond the wave's allocation"):
    run(f"{text}\n s_endpgm", np.zeros(4, U32), vgprs=64, rsrc2=DYNAMIC, block=block)


@pytest.mark.parametrize("engine", ["ref", "debugger"])
def test_each_wave_has_its_own_number(engine: str) -> None:
  """Three waves ask for different numbers (wave w for 16 * (w + 1)), meet at a barrier, and use what they have."""
  text = """
    v_lshrrev_b32_e32 v1, 5, v0
    s_nop 0
    v_readfirstlane_b32 s4, v1
    s_lshl_b32 s5, s4, 4
    s_add_co_i32 s5, s5, 16
    s_alloc_vgpr s5
    s_cselect_b32 s6, 1, 0
    s_barrier_signal -1
    s_barrier_wait -1
    v_lshlrev_b32_e32 v2, 2, v0
    v_mov_b32_e32 v3, s5
    s_cmp_lg_u32 s4, 2
    s_cbranch_scc1 store
    v_mov_b32_e32 v47, 1000
    v_add_nc_u32_e32 v3, v3, v47
  store:
    v_add_nc_u32_e32 v3, s6, v3
    global_store_b32 v2, v3, s[0:1]
    s_endpgm"""
  got, _ = run(text, np.zeros(96, U32), waves=3, rsrc2=DYNAMIC, engine=engine)
  assert np.array_equal(got, np.repeat([17, 33, 1049], 32))
  with pytest.raises(MachineFault, match="a register beyond the wave's allocation") as caught:
    run(text.replace("s_cmp_lg_u32 s4, 2", "s_cmp_lg_u32 s4, 1"), np.zeros(96, U32), waves=3, rsrc2=DYNAMIC,
        engine=engine)
  assert caught.value.wave == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_without_the_mode_the_request_is_ignored(engine: str) -> None:
  """SCC too stays what it was."""
  text = """
    s_cmp_eq_u32 0, 1
    s_alloc_vgpr 64
    s_cselect_b32 s4, 1, 2
    v_mov_b32_e32 v1, s4
    v_lshlrev_b32_e32 v2, 2, v0
    global_store_b32 v2, v1, s[0:1]
    s_endpgm"""
  assert (run(text, np.zeros(32, U32), engine=engine)[0] == 2).all()
  with pytest.raises(MachineFault): run("s_alloc_vgpr 64\n v_mov_b32_e32 v40, 0\n s_endpgm", np.zeros(32, U32))


@pytest.mark.parametrize("rsrc2", [0, DYNAMIC])
def test_a_wave_can_ask_for_the_mode(rsrc2: int) -> None:
  """STATUS.DVGPR_EN, which assemblers name by its place (gc_12_0_0_sh_mask.h)."""
  text = """
    s_getreg_b32 s4, hwreg(HW_REG_STATUS, 30, 1)
    v_mov_b32_e32 v1, s4
    v_lshlrev_b32_e32 v2, 2, v0
    global_store_b32 v2, v1, s[0:1]
    s_endpgm"""
  assert (run(text, np.zeros(32, U32), rsrc2=rsrc2)[0] == bool(rsrc2)).all()


def test_the_mode_is_for_waves_of_32_lanes() -> None:
  with pytest.raises(InvalidArgument, match="dynamic vector registers are for waves of 32 lanes"):
    run("s_endpgm", np.zeros(4, U32), lanes=64, rsrc2=DYNAMIC)
  with pytest.raises(InvalidArgument, match="a block of 24 vector registers"):
    run("s_endpgm", np.zeros(4, U32), rsrc2=DYNAMIC, block=24)


def test_the_check_knows_that_new_registers_hold_nothing() -> None:
  """v20 was written, given back and allocated again: what it holds decides an address."""
  text = """
    s_alloc_vgpr 32
    v_mov_b32_e32 v20, 0
    {}
    global_load_b32 v2, v20, s[0:1]
    s_wait_loadcnt 0
    s_endpgm"""
  for between, found in (("s_nop 0", 0), ("s_alloc_vgpr 16\n s_alloc_vgpr 32", 1)):
    checker = Checker({"undefined"})
    run(text.format(between), np.zeros(64, U32), rsrc2=DYNAMIC, checker=checker)
    assert len(checker.report) == found
    if found: assert "v20, which nobody has written since it was allocated" in str(checker.report)


def test_a_dispatch_says_how_large_a_block_is() -> None:
  assert {f.name: f.default for f in dataclasses.fields(Dispatch)}["vgpr_block"] == 16
