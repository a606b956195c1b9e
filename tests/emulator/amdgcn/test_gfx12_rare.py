"""What only gfx1201 has, in kernels: split barriers, small scalar loads, blocks, transposing loads, atomics."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.checking import check
from tests.emulator.gpu import Gpu, compile_gpu
from tests.strength import seed
from tinyhw.core.errors import MachineFault, Unsupported
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

GPU = "gfx1201"
U32 = np.uint32


def launch(ir: str, arrays: list[np.ndarray], block: int = 32, grid: int = 1, features: str = "") -> list[np.ndarray]:
  """Run kernel k with pointers to arrays; the arrays after it."""
  gpu = Gpu(cpu=GPU)
  kernel = gpu.load(compile_gpu(ir, cpu=GPU, features=features))["k"]
  at = [gpu.put(x) for x in arrays]
  gpu.launch(kernel, (grid, 1, 1), (block, 1, 1), at)
  return [gpu.get(a, x.dtype, x.size).reshape(x.shape) for a, x in zip(at, arrays)]


def run_text(lines: str, arrays: list[np.ndarray], block: int = 32, vgprs: int = 64, lds: int = 0) -> list[np.ndarray]:
  """Run assembled instructions: s[8:9], s[10:11]... point to the arrays, v0 is the work-item, v1 four times it."""
  gpu = Gpu(cpu=GPU)
  parameters = ", ".join(f"ptr addrspace(1) %a{k}" for k in range(len(arrays)))
  kernel = gpu.load(compile_gpu(f"define amdgpu_kernel void @k({parameters}) {{\n  store i32 0, ptr addrspace(1) %a0\n"
                                "  ret void\n}", cpu=GPU))["k"]
  kernel.rsrc1 = kernel.rsrc1 & ~63 | vgprs // 8 - 1
  kernel.lds = lds
  code = ["s_load_b512 s[8:23], s[0:1], 0x0", "s_wait_kmcnt 0x0", "v_lshlrev_b32_e32 v1, 2, v0",
          *filter(None, map(str.strip, lines.splitlines())), "s_endpgm"]
  gpu.space.write(kernel.entry, b"".join(assemble(line, table("gfx12")) for line in code))
  at = [gpu.put(x) for x in arrays]
  gpu.launch(kernel, (1, 1, 1), (block, 1, 1), at)
  return [gpu.get(a, x.dtype, x.size).reshape(x.shape) for a, x in zip(at, arrays)]


# ---- barriers in two parts

BARRIERS = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier.signal(i32 immarg)
declare i1 @llvm.amdgcn.s.barrier.signal.isfirst(i32 immarg)
declare void @llvm.amdgcn.s.barrier.wait(i16 immarg)
declare i32 @llvm.amdgcn.s.get.barrier.state(i32 immarg)
attributes #0 = { "amdgpu-flat-work-group-size"="1,1024" }"""


@pytest.mark.parametrize("features", ["", "+wavefrontsize64"])
def test_a_wave_works_between_its_signal_and_its_wait(features: str) -> None:
  """Each wave publishes, signals, does other work, waits, and then sees what all the others published."""
  ir = """
@lds = internal addrspace(3) global [256 x i32] poison
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %o) #0 {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr i32, ptr addrspace(1) %p, i32 %i
  %x = load i32, ptr addrspace(1) %g
  %l = getelementptr i32, ptr addrspace(3) @lds, i32 %i
  store volatile i32 %x, ptr addrspace(3) %l
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier.signal(i32 -1)
  %wave = lshr i32 %i, 5
  br label %work
work:
  %n = phi i32 [0, %entry], [%n2, %work]
  %s = phi i32 [%x, %entry], [%s2, %work]
  %s1 = mul i32 %s, 3
  %s2 = add i32 %s1, 1
  %n2 = add i32 %n, 1
  %more = icmp ule i32 %n2, %wave
  br i1 %more, label %work, label %done
done:
  call void @llvm.amdgcn.s.barrier.wait(i16 -1)
  fence syncscope("workgroup") acquire
  %far = xor i32 %i, 224
  %m = getelementptr i32, ptr addrspace(3) @lds, i32 %far
  %y = load volatile i32, ptr addrspace(3) %m
  %r = add i32 %y, %s2
  %h = getelementptr i32, ptr addrspace(1) %o, i32 %i
  store i32 %r, ptr addrspace(1) %h
  ret void
}""" + BARRIERS
  x = np.arange(7, 263, dtype=U32) * U32(2654435761)
  got = launch(ir, [x, x * 0], 256, features=features)[1]
  want = x.copy()
  for k in range(8): want[k * 32:] = want[k * 32:] * U32(3) + U32(1)
  assert np.array_equal(got, want + x[np.arange(256) ^ 224])


def test_one_wave_is_the_first_to_signal() -> None:
  """In each of two rounds; then the state is: no signals, eight members, valid."""
  ir = """
define amdgpu_kernel void @k(ptr addrspace(1) %o) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %one = call i1 @llvm.amdgcn.s.barrier.signal.isfirst(i32 -1)
  call void @llvm.amdgcn.s.barrier.wait(i16 -1)
  %two = call i1 @llvm.amdgcn.s.barrier.signal.isfirst(i32 -1)
  call void @llvm.amdgcn.s.barrier.wait(i16 -1)
  %state = call i32 @llvm.amdgcn.s.get.barrier.state(i32 -1)
  %a = zext i1 %one to i32
  %b = zext i1 %two to i32
  %c = shl i32 %b, 1
  %d = or i32 %a, %c
  %e = shl i32 %state, 2
  %r = or i32 %d, %e
  %h = getelementptr i32, ptr addrspace(1) %o, i32 %i
  store i32 %r, ptr addrspace(1) %h
  ret void
}""" + BARRIERS
  got, = launch(ir, [np.zeros(256, U32)], 256)
  waves = got.reshape(8, 32)
  assert (waves == waves[:, :1]).all()
  assert sorted(waves[:, 0] & 1) == [0] * 7 + [1] == sorted(waves[:, 0] >> 1 & 1)
  assert (waves[:, 0] >> 2 == (8 << 4 | 1)).all()


def test_waves_that_end_are_not_waited_for_and_others_are() -> None:
  ir = """
define amdgpu_kernel void @k(ptr addrspace(1) %o) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %early = icmp uge i32 %i, 64
  br i1 %early, label %end, label %stay
stay:
  call void @llvm.amdgcn.s.barrier.signal(i32 -1)
  call void @llvm.amdgcn.s.barrier.wait(i16 -1)
  %h = getelementptr i32, ptr addrspace(1) %o, i32 %i
  store i32 1, ptr addrspace(1) %h
  br label %end
end:
  ret void
}""" + BARRIERS
  got, = launch(ir, [np.zeros(128, U32)], 128)
  assert got.tolist() == [1] * 64 + [0] * 64
  with pytest.raises(MachineFault, match="never reach"):
    run_text("s_barrier_wait -1", [np.zeros(1, U32)], 64)
  run_text("s_barrier_wait -1\ns_barrier_signal -1", [np.zeros(1, U32)], 32)  # a wave alone does not wait
  run_text("s_barrier_signal -2\ns_barrier_wait -2", [np.zeros(1, U32)], 64)  # the trap handler's is not its business
  with pytest.raises(Unsupported, match="other chips"): run_text("s_barrier_signal m0", [np.zeros(1, U32)], 64)


# ---- scalar memory

def test_small_scalar_loads() -> None:
  raw = np.array([0x80FF7F01, 0x12345678, 0xFEDCBA98], U32)
  names = ("u8", "i8", "u16", "i16")
  lines = []
  for k, name in enumerate(names):
    for at in range(3):
      lines += [f"s_load_{name} s{40 + at}, s[8:9], {hex(at * (1 if '8' in name else 2))}",
                f"v_mov_b32_e32 v3, s{40 + at}", f"global_store_b32 v1, v3, s[10:11] offset:{(k * 3 + at) * 128}"]
  lines += ["s_load_b96 s[40:42], s[8:9], 0x0", *(f"v_mov_b32_e32 v{3 + k}, s{40 + k}" for k in range(3))]
  lines += [f"global_store_b32 v1, v{3 + k}, s[10:11] offset:{(12 + k) * 128}" for k in range(3)]
  got = run_text("\n".join(lines), [raw, np.zeros((15, 32), U32)])[1]
  data = raw.tobytes()
  want = [int.from_bytes(data[at * size:(at + 1) * size], "little", signed=signed) & 0xFFFFFFFF
          for size, signed in ((1, False), (1, True), (2, False), (2, True)) for at in range(3)]
  assert got[:, 0].tolist() == [*want, *raw.tolist()] and (got == got[:, :1]).all()


def test_scalar_buffers_end_where_they_say() -> None:
  """Ten bytes: the third dword is out of range, and so is a dword at an offset; a stride of 4 counts records."""
  raw = np.arange(1, 9, dtype=U32) * U32(0x01010101)
  lines = """
    s_mov_b32 s24, s8
    s_mov_b32 s25, s9
    s_movk_i32 s26, 0xa
    s_mov_b32 s27, 0
    s_buffer_load_b96 s[40:42], s[24:27], 0x0
    s_buffer_load_u8 s43, s[24:27], 0x9
    s_buffer_load_u8 s44, s[24:27], 0xa
    s_or_b32 s25, s25, 0x40000
    s_buffer_load_b64 s[46:47], s[24:27], 0x20"""
  for k in range(8): lines += f"\nv_mov_b32_e32 v3, s{40 + k}\nglobal_store_b32 v1, v3, s[10:11] offset:{k * 128}"
  got = run_text(lines, [np.tile(raw, 2), np.zeros((8, 32), U32)])[1][:, 0]
  assert got[:5].tolist() == [0x01010101, 0x02020202, 0, 3, 0] and got[6:8].tolist() == [0x01010101, 0x02020202]


# ---- vector memory

@pytest.mark.parametrize("m0", [0xFFFFFFFF, 0x80000105, 0])
def test_blocks_of_registers(m0: int) -> None:
  """The registers that M0 names move, 4 bytes apart in memory; the others stay."""
  x = np.random.default_rng(seed(1)).integers(0, 1 << 32, (32, 32), dtype=U32)
  lines = f"s_mov_b32 m0, {m0:#x}\nv_lshlrev_b32_e32 v2, 7, v0\n"
  lines += "".join(f"v_mov_b32_e32 v{32 + k}, {k}\n" for k in range(32))
  lines += "global_load_block v[32:63], v2, s[8:9]\nv_mov_b32_e32 v3, 5\n"
  lines += "".join(f"v_add_nc_u32_e32 v{32 + k}, v{32 + k}, v3\n" for k in range(32))
  lines += "global_store_block v2, v[32:63], s[10:11]\n"
  lines += "v_sub_nc_u32_e32 v40, v40, v3\nglobal_store_b32 v2, v40, s[12:13]"
  got, extra = run_text(lines, [x, np.zeros((32, 32), U32), np.zeros((32, 32), U32)])[1:]
  chosen = np.array([m0 >> k & 1 for k in range(32)], bool)
  assert np.array_equal(got, np.where(chosen, x + U32(5), U32(0)))
  assert np.array_equal(extra[:, 0], x[:, 8] if chosen[8] else np.full(32, 8, U32))


def test_transposing_load() -> None:
  """Eight lanes turn a square of 8 x 8 halves; 16 x 16 come out as the rows that a matrix product wants."""
  ir = """
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %o) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr <8 x i16>, ptr addrspace(1) %p, i32 %i
  %x = call <8 x i16> @llvm.amdgcn.global.load.tr.b128.v8i16(ptr addrspace(1) %g)
  %h = getelementptr <8 x i16>, ptr addrspace(1) %o, i32 %i
  store <8 x i16> %x, ptr addrspace(1) %h
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare <8 x i16> @llvm.amdgcn.global.load.tr.b128.v8i16(ptr addrspace(1))
attributes #0 = { "amdgpu-flat-work-group-size"="32,32" }"""
  x = np.arange(256, dtype=np.uint16)
  got = launch(ir, [x, x * 0])[1]
  assert np.array_equal(got.reshape(4, 8, 8), x.reshape(4, 8, 8).swapaxes(1, 2))


ATOMICS = [
  ("cond_sub_u32", lambda old, d: old - d if old >= d else old), ("sub_clamp_u32", lambda old, d: max(old - d, 0))]


@pytest.mark.parametrize("segment", ["global", "flat", "ds"])
@pytest.mark.parametrize(("name", "function"), ATOMICS, ids=lambda x: x if isinstance(x, str) else "")
def test_subtracting_atomics(name: str, function: Callable[[int, int], int], segment: str) -> None:
  """All lanes on one cell, one after the other."""
  start = np.array([1000], U32)
  lines = "v_mul_u32_u24_e32 v4, 3, v0\nv_add_nc_u32_e32 v4, 7, v4\nv_mov_b32_e32 v2, 0\n"
  if segment == "ds":
    lines += f"v_mov_b32_e32 v5, 0x3e8\nds_store_b32 v2, v5\nds_{name.replace('_u32', '_rtn_u32')} v3, v2, v4\n" \
             "ds_load_b32 v6, v2\nglobal_store_b32 v2, v6, s[8:9]\n"
  elif segment == "flat":
    lines += f"v_mov_b32_e32 v6, s8\nv_mov_b32_e32 v7, s9\nflat_atomic_{name} v3, v[6:7], v4 th:TH_ATOMIC_RETURN\n"
  else: lines += f"global_atomic_{name} v3, v2, v4, s[8:9] th:TH_ATOMIC_RETURN\n"
  cell, got = run_text(lines + "global_store_b32 v1, v3, s[10:11]", [start, np.zeros(32, U32)], lds=512)
  value, seen = 1000, []
  for lane in range(32):
    seen.append(value)
    value = function(value, 3 * lane + 7)
  assert cell[0] == value and got.tolist() == seen


def test_packed_bfloat_atomics() -> None:
  """Both halves are sums rounded once."""
  rng = np.random.default_rng(seed(3))
  x, y = (rng.standard_normal((32, 2)).astype(np.float32) for _ in "xy")
  def narrow(v: np.ndarray) -> np.ndarray:
    raw = v.view(U32).astype(np.uint64)
    return (raw + 0x7FFF + (raw >> 16 & 1) >> 16).astype(np.uint16)
  def wide(v: np.ndarray) -> np.ndarray: return (v.astype(U32) << 16).view(np.float32)
  a, b = narrow(x), narrow(y)
  lines = "global_load_b32 v3, v1, s[10:11]\nglobal_atomic_pk_add_bf16 v1, v3, s[8:9]"
  got = run_text(lines, [a.view(U32).reshape(32), b.view(U32).reshape(32)])[0]
  assert np.array_equal(got.view(np.uint16).reshape(32, 2), narrow(wide(a) + wide(b)))


def test_ordered_add() -> None:
  """The cell's id is 0: lane 0 adds its value and raises the id, then lane 1 does, and so on."""
  lines = """
    v_mov_b32_e32 v2, 0
    v_mov_b32_e32 v4, v0
    v_add_nc_u32_e32 v5, 10, v0
    global_atomic_ordered_add_b64 v[6:7], v2, v[4:5], s[8:9] th:TH_ATOMIC_RETURN
    global_store_b32 v1, v7, s[10:11]"""
  cell, got = run_text(lines, [np.zeros(2, U32), np.zeros(32, U32)])
  sums = np.cumsum([0, *range(10, 42)])
  assert cell.tolist() == [32, sums[32]] and got.tolist() == sums[:32].tolist()


# ---- found by random programs, the two engines against each other

def test_exec_from_a_compare_through_dpp_counts_at_once() -> None:
  """Lanes whose neighbour below has a smaller number than 5 stay active; lane 0 of each row has none."""
  lines = """
    v_mov_b32_e32 v2, 0
    v_mov_b32_e32 v3, 5
    v_cmpx_lt_u32_dpp v0, v3 row_shr:1 row_mask:0xf bank_mask:0xf
    v_mov_b32_e32 v2, 1
    s_mov_b32 exec_lo, -1
    global_store_b32 v1, v2, s[8:9]"""
  got, = run_text(lines, [np.zeros(32, U32)])
  assert got.tolist() == [0, *[1] * 5, *[0] * 26]


@pytest.mark.parametrize("mode", ["0x5", "0xf"])
def test_scalar_floats_round_as_mode_says(mode: str) -> None:
  """1 + 2**-30 upward and toward zero, in f32; the same of 2**-15 in f16."""
  lines = f"""
    s_round_mode {mode}
    s_mov_b32 s24, 0x30800000
    s_add_f32 s24, s24, 1.0
    s_movk_i32 s25, 0x200
    s_add_f16 s25, s25, 1.0
    v_mov_b32_e32 v2, s24
    v_mov_b32_e32 v3, s25
    v_mov_b32_e32 v4, 0
    global_store_b64 v4, v[2:3], s[8:9]"""
  got, = run_text(lines, [np.zeros(2, U32)])
  up = mode == "0x5"
  assert got.tolist() == [0x3F800001 if up else 0x3F800000, 0x3C01 if up else 0x3C00]


@pytest.mark.parametrize("rounding", [0, 5, 15])
def test_halves_and_bytes_that_overflow_by_mode(rounding: int) -> None:
  """MODE.FP16_OVFL: the largest number in place of infinity, or of fp8's NaN; infinite operands stay infinite."""
  lines = f"""
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1
    s_round_mode {rounding:#x}
    v_mov_b32_e32 v2, 0x7bff
    v_mov_b32_e32 v3, 0xfc00
    v_mov_b32_e32 v10, 0
    v_add_f16_e32 v4.l, v2.l, v2.l
    v_mul_f16_e32 v5.l, v2.l, v3.l
    v_rcp_f16_e32 v6.l, v10.l
    v_cvt_f16_f32_e32 v7.l, 0xd0000000
    v_mov_b32_e32 v12, 0x7f800000
    v_cvt_pk_fp8_f32 v8, 0x47000000, -v12
    v_cvt_pk_bf8_f32 v9, v12, 1.0
    s_mov_b32 s24, 0x7bff
    s_add_f16 s25, s24, s24
    v_mov_b32_e32 v11, s25"""
  lines += "".join(f"\nglobal_store_b16 v10, v{4 + k}, s[8:9] offset:{2 * k}" for k in range(8) if k != 6)
  got, = run_text(lines, [np.zeros(8, np.uint16)])
  assert [hex(x) for x in got] == ["0x7bff", "0xfc00", "0x7c00", "0xfbff", "0xfe7e", "0x3c7b", "0x0", "0x7bff"]


@pytest.mark.parametrize("mode", range(4))
def test_lds_flushes_denormals_by_mode_and_flat_does_not(mode: int) -> None:
  """Bit 0 keeps those of the sources, bit 1 those of results; minima know only the first."""
  tiny = 0x00000003
  lines = f"""
    s_denorm_mode {0xC | mode:#x}
    v_mov_b32_e32 v2, {tiny}
    v_mov_b32_e32 v3, 0x00800000
    v_mov_b32_e32 v4, 0x80800001
    v_mov_b32_e32 v8, 0
    v_mov_b32_e32 v9, 0
    ds_store_b32 v8, v2
    ds_add_f32 v8, v2
    ds_load_b32 v10, v8
    ds_store_b32 v8, v3
    ds_add_f32 v8, v4
    ds_load_b32 v11, v8
    ds_store_b32 v8, v3
    ds_min_num_f32 v8, v2
    ds_load_b32 v12, v8
    ds_store_b32 v8, v2
    v_mov_b32_e32 v5, src_shared_base
    v_mov_b32_e32 v6, 0
    s_mov_b64 s[24:25], src_shared_base
    v_mov_b32_e32 v7, s25
    flat_atomic_add_f32 v[6:7], v2
    ds_load_b32 v13, v8
    global_store_b128 v8, v[10:13], s[8:9]"""
  got, = run_text("s_mov_b32 exec_lo, 1\n" + lines, [np.zeros(4, U32)], lds=512)
  source, result = mode & 1, mode >> 1
  assert got.tolist() == [6 if source and result else 0, 0x80000001 if result else 0x80000000, 3 if source else 0, 6]


@pytest.mark.parametrize(("wait", "races"), [("s_barrier_wait -1", 0), ("s_nop 0", 1)])
def test_a_wave_that_does_not_wait_races(wait: str, races: int) -> None:
  """The hazard checks order what lies before a signal and after a wait, and nothing else."""
  report = check(f"""
    v_lshlrev_b32_e32 v1, 2, v0
    ds_store_b32 v1, v0
    s_wait_dscnt 0x0
    s_barrier_signal -1
    {wait}
    v_xor_b32_e32 v2, 0x80, v1
    ds_load_b32 v3, v2
    s_wait_dscnt 0x0""", cpu=GPU, waves=2, lds=512)
  assert str(report).count("race:") == races
