"""The global data share: LLVM's kernels for address space 2, and drawn instructions against a model in Python."""
from __future__ import annotations

import random

import numpy as np
import pytest

from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu, compile_gpu
from tests.strength import seeds
from tinyhw.core.errors import MachineFault, Unsupported
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats, dispatch
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.engines.amdgcn import dispatch as run_with
from tinyhw.emulator.observe import Access, Observer

ENGINES = ("ref", "jit", "both", "auto")
U32 = np.uint32
SIZE = 4096  # RDNA3 ISA manual, 1.2.2.2: 4 kB


class Bench:
  """A GPU whose programs find the address of 4 KiB in s[0:1], the workgroup's number in s2, the work-item in v0."""

  def __init__(self, cpu: str = "gfx1100") -> None:
    self.gpu = Gpu(1 << 24, cpu)
    self.out = self.gpu.put(np.zeros(1024, U32))

  def run(self, text: str, *, waves: int = 1, groups: int = 1, engine: str = "ref", lanes: int = 32,
          observer: Observer | None = None) -> DispatchStats:
    gpu = self.gpu
    at = gpu.put(np.frombuffer(code_of(text + "\n s_endpgm", gpu.arch.isa), np.uint8))
    d = Dispatch(at, (groups, 1, 1), (lanes * waves, 1, 1), 64 // (8 if lanes == 32 else 4) - 1 | 0xC0 << 12,
                 2 << 1 | 1 << 7, user_data=(self.out & 0xFFFFFFFF, self.out >> 32), wave32=lanes == 32)
    if observer is not None: return dispatch(gpu.space, gpu.arch, d, observer=observer)
    return run_with(gpu.space, gpu.arch, d, watchdog=100_000, engine=engine)

  def results(self, count: int) -> np.ndarray: return self.gpu.get(self.out, U32, count)


KERNEL = """
declare i32 @llvm.amdgcn.ds.append.p2(ptr addrspace(2) nocapture, i1)
declare i32 @llvm.amdgcn.ds.consume.p2(ptr addrspace(2) nocapture, i1)
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @add(ptr addrspace(1) %o, ptr addrspace(2) %counter) #0 {
  %old = call i32 @llvm.amdgcn.ds.append.p2(ptr addrspace(2) %counter, i1 false)
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %p = getelementptr i32, ptr addrspace(1) %o, i32 %g
  store i32 %old, ptr addrspace(1) %p
  ret void
}
define amdgpu_kernel void @take(ptr addrspace(1) %o, ptr addrspace(2) %counter) #0 {
  %old = call i32 @llvm.amdgcn.ds.consume.p2(ptr addrspace(2) %counter, i1 false)
  store i32 %old, ptr addrspace(1) %o
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="32,32" "amdgpu-gds-size"="64" }"""


@pytest.mark.parametrize("engine", ENGINES)
def test_llvms_kernels_count_in_it(engine: str) -> None:
  """What one launch stores the next one finds; workgroups count one after the other. LLVM hands M0 on as it is."""
  gpu = Gpu(cpu="gfx1100")
  gpu.engine = engine
  kernels = gpu.load(compile_gpu(KERNEL, cpu="gfx1100"))
  out = gpu.put(np.zeros(64, U32))
  gpu.launch(kernels["add"], (33, 1, 1), (32, 1, 1), [out, U32(0x10 << 16)])
  assert sorted(gpu.get(out, U32, 33)) == list(range(0, 32 * 33, 32))
  for k in range(2):
    gpu.launch(kernels["take"], (1, 1, 1), (32, 1, 1), [out, U32(0x10 << 16)])
    assert gpu.get(out, U32, 1)[0] == 32 * (33 - k)


# ---- drawn instructions against a model

OPERATIONS = {
  "ds_add_rtn_u32": lambda m, d, c: m + d, "ds_sub_rtn_u32": lambda m, d, c: m - d,
  "ds_rsub_rtn_u32": lambda m, d, c: d - m, "ds_min_rtn_u32": lambda m, d, c: min(m, d),
  "ds_max_rtn_u32": lambda m, d, c: max(m, d), "ds_and_rtn_b32": lambda m, d, c: m & d,
  "ds_or_rtn_b32": lambda m, d, c: m | d, "ds_xor_rtn_b32": lambda m, d, c: m ^ d,
  "ds_inc_rtn_u32": lambda m, d, c: 0 if m >= d else m + 1,
  "ds_dec_rtn_u32": lambda m, d, c: d if m == 0 or m > d else m - 1,
  "ds_cmpstore_rtn_b32": lambda m, d, c: d if m == c else m, "ds_storexchg_rtn_b32": lambda m, d, c: d}


@pytest.mark.parametrize("engine", ["ref", "both"])
@pytest.mark.parametrize("seed", seeds(range(6)))
def test_drawn_instructions(seed: int, engine: str) -> None:
  """One wave: only the first active lane acts, at M0's base; a place past M0's size reads 0 and stores nothing."""
  rng = random.Random(seed)
  memory = bytearray(SIZE)
  lines, want = ["v_mov_b32_e32 v20, 0"], []
  for step in range(24):
    base, size = rng.randrange(0, 900) * 4, rng.choice([64, 256, 4096, 65535])
    address, offset, data, compare = (rng.randrange(40) * 4, rng.randrange(16) * 4, rng.getrandbits(32),
                                      rng.getrandbits(32))
    first = rng.randrange(32)
    mask = (rng.getrandbits(32) | 1) << first & 0xFFFFFFFF
    # lane l has the address plus 4 * (l - first), the data plus l - first: those of the first lane must count
    lines += ["s_mov_b32 exec_lo, -1", f"s_mov_b32 m0, {base << 16 | size}", f"v_subrev_nc_u32_e32 v1, {first}, v0",
              "v_lshlrev_b32_e32 v2, 2, v1", f"v_add_nc_u32_e32 v2, {address}, v2",
              f"v_add_nc_u32_e32 v3, {data}, v1", f"v_add_nc_u32_e32 v4, {compare}, v1", "v_mov_b32_e32 v5, 77",
              "v_mov_b32_e32 v6, 78", f"s_mov_b32 exec_lo, {mask:#x}"]
    name = rng.choice([*OPERATIONS, "ds_store_b32", "ds_load_b32", "ds_store_b16", "ds_load_u8", "ds_load_b64",
                       "ds_store_b64", "ds_load_2addr_b32"])
    place = base + address + offset
    def inside(width: int) -> bool: return address + offset + width <= size and place + width <= SIZE  # noqa: B023  (called in this round alone)
    old = [77, 78]
    if name in OPERATIONS:
      data1 = ", v4" if "cmp" in name else ""
      lines.append(f"{name} v5, v2, v3{data1} offset:{offset} gds")
      old[0] = int.from_bytes(memory[place:place + 4], "little") if inside(4) else 0
      new = OPERATIONS[name](old[0], data, compare) & 0xFFFFFFFF
      if inside(4): memory[place:place + 4] = new.to_bytes(4, "little")
    elif name.startswith("ds_store"):
      width = int(name[-2:]) // 8
      lines.append(f"{name} v2, {'v[3:4]' if width == 8 else 'v3'} offset:{offset} gds")
      if inside(width): memory[place:place + width] = (data | compare << 32).to_bytes(8, "little")[:width]
    elif name == "ds_load_2addr_b32":
      near = rng.randrange(8)
      lines.append(f"{name} v[5:6], v2 offset0:{near} offset1:{near + 1} gds")
      for k in (0, 1):
        relative = address + 4 * (near + k)
        ok = relative + 4 <= size and base + relative + 4 <= SIZE
        old[k] = int.from_bytes(memory[base + relative:base + relative + 4], "little") if ok else 0
    else:
      width = {"ds_load_u8": 1, "ds_load_b32": 4, "ds_load_b64": 8}[name]
      lines.append(f"{name} {'v[5:6]' if width == 8 else 'v5'}, v2 offset:{offset} gds")
      value = int.from_bytes(memory[place:place + width], "little") if inside(width) else 0
      old[0] = value & 0xFFFFFFFF
      if width == 8: old[1] = value >> 32
    # the first lane's results, then what another active lane is left with
    lines += ["s_waitcnt lgkmcnt(0)", f"v_readlane_b32 s10, v5, {first}", f"v_readlane_b32 s11, v6, {first}",
              f"v_readlane_b32 s12, v5, {(first + 1) % 32}", "s_mov_b32 exec_lo, 1"]
    for k, register in enumerate(("s10", "s11", "s12")):
      lines += [f"v_mov_b32_e32 v7, {register}", f"global_store_b32 v20, v7, s[0:1] offset:{12 * step + 4 * k}"]
    want += [*old, 77]
  bench = Bench()
  bench.run("\n".join(lines), engine=engine)
  assert bench.results(len(want)).tolist() == want


def some_order(value: int, left: list[tuple[int, tuple[tuple[int, int], ...]]]) -> bool:
  """Whether the steps (found, added) of some threads can follow each other from a value on, each thread's in order."""
  if not left: return True
  return any(some_order(value + steps[0][1], [x for x in left if x[0] != p] + ([(p, steps[1:])] if steps[1:] else []))
             for p, steps in left if steps[0][0] == value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lanes", [32, 64])
def test_append_and_consume_count_every_active_lane(lanes: int, engine: str) -> None:
  """Each wave of each workgroup appends its lanes with odd numbers, then takes 3 away; each gets what was there."""
  bench = Bench()
  ones = 0xAAAAAAAA
  bench.run(f"""
    s_mov_b32 m0, 0x00400004
    s_mov_b32 s6, {ones:#x}
    s_mov_b32 s7, {ones:#x}
    s_mov_b64 exec, s[6:7]
    ds_append v1 gds
    s_waitcnt lgkmcnt(0)
    s_mov_b64 exec, 7
    ds_consume v2 gds
    s_waitcnt lgkmcnt(0)
    s_mov_b64 exec, 2
    s_lshl_b32 s4, s2, 3
    v_mov_b32_e32 v3, s4
    global_store_b64 v3, v[1:2], s[0:1]""", groups=5, lanes=lanes, engine=engine)
  half = lanes // 2
  pairs = bench.results(10).astype(np.int64).reshape(5, 2).tolist()
  assert some_order(0, [(p, ((appended, half), (taken, -3))) for p, (appended, taken) in enumerate(pairs)])
  bench.run("s_mov_b32 m0, 0x1000\n v_mov_b32_e32 v1, 0x40\n ds_load_b32 v2, v1 gds\n v_mov_b32_e32 v3, 0\n"
            "s_mov_b32 exec_lo, 1\n global_store_b32 v3, v2, s[0:1]", engine=engine)
  assert bench.results(1).tolist() == [5 * (half - 3)]


def test_no_lane_no_effect() -> None:
  bench = Bench()
  bench.run("""
    s_mov_b32 m0, 0x1000
    v_mov_b32_e32 v1, 0
    v_mov_b32_e32 v2, 5
    s_mov_b32 exec_lo, 0
    ds_add_u32 v1, v2 gds
    ds_append v3 gds
    ds_load_b32 v2, v1 gds
    s_mov_b32 exec_lo, 1
    global_store_b32 v1, v2, s[0:1]
    ds_load_b32 v4, v1 gds
    global_store_b32 v1, v4, s[0:1] offset:4""")
  assert bench.results(2).tolist() == [5, 0]


def test_each_address_space_has_its_own() -> None:
  text = """
    s_mov_b32 m0, 0x1000
    v_mov_b32_e32 v1, 0
    v_mov_b32_e32 v2, 1
    ds_add_rtn_u32 v3, v1, v2 gds
    s_waitcnt lgkmcnt(0)
    s_mov_b32 exec_lo, 1
    global_store_b32 v1, v3, s[0:1]"""
  one, other = Bench(), Bench()
  for k in range(3):
    one.run(text)
    assert one.results(1).tolist() == [k]
  other.run(text)
  assert other.results(1).tolist() == [0]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_chip_does_not_have(engine: str) -> None:
  with pytest.raises(Unsupported, match="ds_swizzle_b32.*the global data share has no such instruction"):
    Bench().run("ds_swizzle_b32 v1, v0 offset:swizzle(QUAD_PERM,0,1,2,3) gds".replace(
      "offset:swizzle(QUAD_PERM,0,1,2,3)", "offset:32996"), engine=engine)
  with pytest.raises(MachineFault, match="a misaligned atomic on the global data share"):
    Bench().run("s_mov_b32 m0, 0x1000\n v_mov_b32_e32 v1, 2\n ds_add_u32 v1, v0 gds", engine=engine)
  with pytest.raises(MachineFault, match="gfx942 has no global data share.*ds_gws_"):
    Bench("gfx942").run("s_mov_b32 m0, 0x1000\n ds_add_u32 v0, v0 gds", lanes=64, engine=engine)


def test_observers_see_the_first_lane() -> None:
  """Addresses with M0's base; the checks take it as a memory of its own."""
  seen: list[Access] = []

  class Watch(Observer):
    def access(self, group: object, pc: int, instruction: object, access: Access) -> None: seen.append(access)
  text = """
    s_mov_b32 m0, 0x01000100
    v_lshlrev_b32_e32 v1, 2, v0
    s_mov_b32 exec_lo, 0xfffffff0
    ds_add_u32 v1, v0 offset:8 gds
    s_waitcnt lgkmcnt(0)
    ds_append v2 gds"""
  Bench().run(text, observer=Watch())
  add, append = seen
  assert (add.segment, add.kind, add.width) == (append.segment, append.kind, append.width) == ("gds", "atomic", 4)
  assert np.flatnonzero(add.active).tolist() == np.flatnonzero(append.active).tolist() == [4]
  assert int(add.addresses[0, 4]) == 0x100 + 16 + 8 and int(append.addresses[0, 4]) == 0x100
  checker = Checker()
  Bench().run(text, observer=checker)
  assert not len(checker.report)
  checker = Checker({"undefined"})
  Bench().run("s_mov_b32 m0, 0x1000\n v_mov_b32_e32 v1, 0\n ds_store_b32 v1, v9 gds", observer=checker)
  assert "the value stored to the global data share depends on v9" in str(checker.report)
