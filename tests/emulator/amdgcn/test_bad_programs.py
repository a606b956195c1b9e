"""Programs that do what programs should not: defined results, or one clear error."""
from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from tests.emulator.gpu import Gpu
from tinyhw.core.errors import DecodeError, InvalidArgument, MachineFault, PageFault, Unsupported
from tinyhw.core.memory import Access
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

TABLE = table("gfx11")
STORE = ["v_lshlrev_b32 v1, 2, v0", "global_store_b32 v1, v2, s[0:1]", "s_endpgm"]


class Bench(Gpu):
  def __init__(self) -> None:
    super().__init__(1 << 22)
    self.out = self.put(np.zeros(1024, np.uint32))

  def assemble(self, lines: Sequence[str]) -> bytes: return b"".join(assemble(line, TABLE) for line in lines)

  def run(self, code: bytes, *, grid: tuple[int, int, int] = (1, 1, 1), block: int = 32, engine: str = "ref",
          lds: int = 0, at: int = 0) -> DispatchStats:
    """Run code from `at` with the address of the results in s[0:1] and that of the code in s[2:3]."""
    self.entry = self.put(np.frombuffer(code, np.uint8))
    users = (self.out & 0xFFFFFFFF, self.out >> 32, self.entry & 0xFFFFFFFF, self.entry >> 32)
    d = Dispatch(self.entry + at, grid, (block, 1, 1), 0xC0 << 12 | 3, len(users) << 1, 0, users, lds_size=lds)
    return dispatch(self.space, self.arch, d, watchdog=100_000, engine=engine)

  def results(self, count: int = 32) -> np.ndarray: return self.get(self.out, np.uint32, count)


@pytest.fixture
def bench() -> Bench: return Bench()


ENGINES = pytest.mark.parametrize("engine", ["ref", "jit"])


@ENGINES
@pytest.mark.parametrize("invalidates", [False, True])
def test_changed_code_is_seen_when_the_instruction_cache_is_invalidated(bench: Bench, engine: str,
                                                                        invalidates: bool) -> None:
  """The program writes `v_mov_b32 v2, 2` over an instruction that it has executed and comes to once more."""
  new = int.from_bytes(assemble("v_mov_b32 v2, 2", TABLE), "little")
  lines = ["s_mov_b32 s4, 0", "v_mov_b32 v2, 1", "s_add_u32 s4, s4, 1", "s_cmp_eq_u32 s4, 2", "s_cbranch_scc1 7",
           "v_mov_b32 v4, 0", f"v_mov_b32 v3, {new:#x}", "global_store_b32 v4, v3, s[2:3] offset:4",
           "s_icache_inv" if invalidates else "s_nop 0", "s_branch 0xfff5", *STORE]
  bench.run(bench.assemble(lines), engine=engine)
  assert (bench.results() == (2 if invalidates else 1)).all()


@ENGINES
def test_a_jump_into_the_middle_of_an_instruction_executes_what_lies_there(bench: Bench, engine: str) -> None:
  """The literal of the first instruction is itself an instruction."""
  literal = int.from_bytes(assemble("v_mov_b32 v2, 7", TABLE), "little")
  bench.run(bench.assemble([f"v_mov_b32 v2, {literal:#x}", *STORE]), engine=engine, at=4)
  assert (bench.results() == 7).all()


@ENGINES
def test_nothing_is_done_with_no_active_lane(bench: Bench, engine: str) -> None:
  lines = ["v_mov_b32 v2, 5", "v_mov_b32 v5, -1", "s_mov_b32 exec_lo, 0", "v_mov_b32 v2, 6",
           "global_load_b32 v2, v5, s[4:5]", "global_store_b32 v5, v2, s[4:5]", "ds_store_b32 v5, v2",
           "v_readfirstlane_b32 s6, v2", "s_mov_b32 exec_lo, -1", "v_add_nc_u32 v2, s6, v2", *STORE]
  bench.run(bench.assemble(lines), engine=engine)
  assert (bench.results() == 10).all()


@ENGINES
def test_grids_of_no_workgroup_and_of_many(bench: Bench, engine: str) -> None:
  code = bench.assemble(["s_endpgm"])
  assert bench.run(code, grid=(4, 0, 2), engine=engine).waves == 0
  assert bench.run(code, grid=(300, 10, 10), engine=engine).waves == 30_000
  with pytest.raises(InvalidArgument, match="grid"): bench.run(code, grid=(-1, 1, 1), engine=engine)


@ENGINES
def test_misaligned_accesses(bench: Bench, engine: str) -> None:
  """Vector memory and LDS take any address; scalar loads drop the two lowest bits; atomics fault."""
  lines = ["v_mov_b32 v3, 0x44332211", "v_lshlrev_b32 v4, 3, v0", "v_add_nc_u32 v4, 1, v4", "ds_store_b32 v4, v3",
           "ds_load_b32 v5, v4", "global_store_b32 v4, v5, s[0:1] offset:1", "global_load_b32 v2, v4, s[0:1] offset:2",
           "global_store_b32 v4, v2, s[0:1] offset:511", "s_add_u32 s2, s2, 3", "s_addc_u32 s3, s3, 0",
           "s_load_b32 s6, s[2:3], 0x0", "v_mov_b32 v6, s6", "v_mov_b32 v7, 0",
           "global_store_b32 v7, v6, s[0:1] offset:1024", "s_endpgm"]
  code = bench.assemble(lines)
  bench.run(code, engine=engine, lds=512)
  raw = bench.results(512).view(np.uint8)
  assert raw[2:6].tolist() == [0x11, 0x22, 0x33, 0x44] and raw[512:516].tolist() == [0x22, 0x33, 0x44, 0]
  assert bench.results(257)[256] == int.from_bytes(code[:4], "little")
  atomic = bench.assemble(["v_mov_b32 v1, 2", "global_atomic_add_u32 v1, v1, s[0:1]", "s_endpgm"])
  with pytest.raises(MachineFault, match="misaligned atomic"): bench.run(atomic, engine=engine)


@ENGINES
def test_control_that_leaves_the_code(bench: Bench, engine: str) -> None:
  with pytest.raises(PageFault, match="execute"):
    bench.run(bench.assemble(["s_mov_b64 s[4:5], 0", "s_setpc_b64 s[4:5]"]), engine=engine)
  with pytest.raises(PageFault, match="misaligned PC"):
    bench.run(bench.assemble(["s_add_u32 s2, s2, 2", "s_setpc_b64 s[2:3]"]), engine=engine)
  with pytest.raises((DecodeError, MachineFault)):
    bench.run(bench.assemble(["v_mov_b32 v2, 7"]) + b"\xff" * 16, engine=engine)


@ENGINES
def test_an_instruction_cut_off_by_the_end_of_memory(bench: Bench, engine: str) -> None:
  page = bench.alloc(4096)
  at = 0x7000_0000_0000
  bench.space.map(at, 4096, bench.region, page - bench.base, Access.READ | Access.WRITE | Access.EXECUTE)
  code = assemble("v_add_f32_e64 v1, v2, |v3|", TABLE)
  bench.space.write(at + 4092, code[:4])
  d = Dispatch(at + 4092, (1, 1, 1), (32, 1, 1), 0xC0 << 12 | 3, 0, 0, ())
  with pytest.raises(DecodeError, match="no gfx11 instruction|left"):
    dispatch(bench.space, bench.arch, d, watchdog=1000, engine=engine)


@ENGINES
def test_code_that_was_no_code_is_seen_once_it_is(bench: Bench, engine: str) -> None:
  """A launch of what cannot be decoded leaves nothing behind that a later launch at the same place would run."""
  bad, good = bytes(8), bench.assemble(["v_mov_b32 v2, 7", *STORE])
  at = bench.put(np.zeros(64, np.uint8))
  for code in (bad, good, bad, bench.assemble(["v_mov_b32 v2, 9", *STORE])):
    bench.space.write(at, code.ljust(64, b"\0"))
    d = Dispatch(at, (1, 1, 1), (32, 1, 1), 0xC0 << 12 | 3, 4, 0, (bench.out & 0xFFFFFFFF, bench.out >> 32))
    if code is bad:
      with pytest.raises(DecodeError): dispatch(bench.space, bench.arch, d, watchdog=1000, engine=engine)
    else:
      dispatch(bench.space, bench.arch, d, watchdog=1000, engine=engine)
      assert (bench.results() == (7 if code is good else 9)).all()


@pytest.mark.parametrize("engine", ["ref", "jit", "both"])
def test_a_refused_instruction_keeps_no_memory(engine: str) -> None:
  """The error that an unsupported instruction raises is not kept with the program, nor what it passed through."""
  bench = Bench()
  code = assemble("s_mov_b32 s0, src_pops_exiting_wave_id", TABLE)
  for _ in range(3):
    with pytest.raises(Unsupported): bench.run(code, engine=engine)
  space = weakref.ref(bench.space)
  del bench
  gc.collect()
  assert space() is None


@pytest.mark.parametrize("engine", ["ref", "both"])
def test_a_lane_mask_is_in_scalar_registers(bench: Bench, engine: str) -> None:
  """`null` is 0. The word has room for a constant in the mask's place; that is no instruction (LLVM: invalid)."""
  row = next(r for r in TABLE.by_mnemonic["v_cndmask_b32"] if r.variant == "e64")

  def choose(mask: int) -> bytes: return TABLE.encode(row, {"src0": 131, "src1": 132, "src2": mask, "vdst": 2})
  bench.run(choose(124) + bench.assemble(STORE), engine=engine)
  assert (bench.results() == 3).all()
  for constant in (193, 133, 242):
    with pytest.raises(DecodeError, match="operand src2 is no register"):
      bench.run(choose(constant) + bench.assemble(STORE), engine=engine)


@pytest.mark.parametrize("engine", ["ref", "both"])
@pytest.mark.parametrize("mask", ["null", "src_shared_base", "src_private_limit", "src_scc"])
def test_a_lane_mask_may_be_a_value_of_the_machine(bench: Bench, mask: str, engine: str) -> None:
  bench.run(bench.assemble([f"v_cndmask_b32_e64 v2, 3, 4, {mask}", f"s_mov_b32 s4, {mask}", "v_mov_b32 v3, s4",
                            "v_mov_b32 v1, 0", "global_store_b32 v1, v3, s[0:1] offset:128", *STORE]), engine=engine)
  taken, bits = bench.results(), int(bench.get(bench.out + 128, np.uint32, 1)[0])
  assert (taken == np.where(bits >> np.arange(32) & 1, 4, 3)).all()


@pytest.mark.parametrize("engine", ["ref", "jit", "both"])
def test_a_scalar_load_of_two_waves_faults_as_a_whole(bench: Bench, engine: str) -> None:
  """Addresses that differ between the waves: the fault has the bytes of the load, not those of one register."""
  lines = ["v_readfirstlane_b32 s6, v0", "s_mov_b32 s7, 0", "s_load_b256 s[28:35], s[6:7], 0", "s_endpgm"]
  code = bench.assemble(lines)
  with pytest.raises(PageFault, match="read of 32 bytes at 0x0 "): bench.run(code, block=64, engine=engine)


@pytest.mark.parametrize("engine", ["ref", "jit", "both"])
def test_a_scalar_load_from_a_buffer_has_no_negative_offset(bench: Bench, engine: str) -> None:
  """It is a memory violation (RDNA3 ISA manual, 8.1.2), though the sum with the offset register lies inside."""
  lines = ["s_mov_b32 s6, 64", "s_mov_b32 s7, 0", "s_mov_b64 s[4:5], s[0:1]", "s_mov_b32 s8, 8", "{}", "s_endpgm"]
  bench.run(bench.assemble([n.format("s_buffer_load_b32 s9, s[4:7], s8 offset:0x4") for n in lines]), engine=engine)
  with pytest.raises(MachineFault, match="a scalar load from a buffer with a negative offset") as caught:
    bench.run(bench.assemble([n.format("s_buffer_load_b32 s9, s[4:7], s8 offset:-0x4") for n in lines]), engine=engine)
  assert caught.value.instruction is not None and caught.value.instruction.startswith("s_buffer_load_b32")
