"""Image loads, stores, atomics and sizes: LLVM's intrinsics on gfx1100 and gfx1201 against a picture in NumPy."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu, compile_gpu
from tests.emulator.images import TYPES, Picture
from tinyhw.core.errors import PageFault, Unsupported
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.engines.amdgcn import dispatch

CPUS = ("gfx1100", "gfx1201")
ENGINES = ("ref", "both")
LANES = 64
U32 = np.uint32
COORDINATES = {"1d": 1, "2d": 2, "3d": 3, "1darray": 2, "2darray": 3}
KINDS = {"1d": "1D", "2d": "2D", "3d": "3D", "1darray": "1D_ARRAY", "2darray": "2D_ARRAY"}


def kernel(call: str, declaration: str, coordinates: int, kind: str) -> str:
  """IR of a kernel: `call` has %x, %y, %z as the coordinates of a lane, %r as the resource, %d for data or result."""
  loads = "".join(f"""
  %p{k} = getelementptr i32, ptr addrspace(1) %c, i32 %o{k}
  %{'xyzw'[k]} = load i32, ptr addrspace(1) %p{k}""" for k in range(coordinates))
  offsets = "".join(f"\n  %o{k} = add i32 %i, {LANES * k}" for k in range(coordinates))
  return f"""
declare i32 @llvm.amdgcn.workitem.id.x()
{declaration}
define amdgpu_kernel void @k(<8 x i32> inreg %r, ptr addrspace(1) %c, ptr addrspace(1) %data) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x(){offsets}{loads}
  %g = getelementptr {kind}, ptr addrspace(1) %data, i32 %i
  {call}
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}"""


class Run:
  """A GPU with a picture's memory."""

  def __init__(self, picture: Picture, engine: str = "ref") -> None:
    self.gpu = Gpu(1 << 24, picture.cpu)
    self.gpu.engine = engine
    self.picture = picture
    rng = np.random.default_rng(picture.width)
    self.memory = rng.integers(0, 256, picture.size, dtype=np.uint8)
    if picture.texel.kind == "f" or picture.format.endswith("FLOAT"):
      kind = np.float16 if picture.format.startswith("16") else np.float32
      self.memory.view(kind)[:] = rng.normal(0, 100, self.memory.view(kind).size)
    self.at = self.gpu.put(self.memory)

  def __call__(self, ir: str, coordinates: list[np.ndarray], data: np.ndarray,
               words: np.ndarray | None = None) -> np.ndarray:
    """The data after the kernel."""
    gpu = self.gpu
    k = gpu.load(compile_gpu(ir, cpu=self.picture.cpu))["k"]
    words = self.picture.words(self.at) if words is None else words
    where = gpu.put(np.concatenate(coordinates).astype(U32))
    at = gpu.put(data)
    gpu.launch(k, (1, 1, 1), (LANES, 1, 1), [*words, where, at])
    return gpu.get(at, data.dtype, data.size).reshape(data.shape)

  def after(self) -> np.ndarray: return self.gpu.get(self.at, np.uint8, self.memory.size)


def places(picture: Picture, dim: str, outside: bool = True) -> list[np.ndarray]:
  """Coordinates of each lane: in the image, and some just outside it or far away."""
  rng = np.random.default_rng(picture.height)
  n = COORDINATES[dim]
  w, h, d = picture.extent(0)
  limits = {"1d": (w,), "2d": (w, h), "3d": (w, h, d), "1darray": (w, d), "2darray": (w, h, d)}[dim]
  out = [rng.integers(0, m, LANES) for m in limits]
  if outside:
    for lane, (axis, value) in zip(range(0, LANES, 5), [(k, v) for k in range(n) for v in (limits[k], 1 << 31)]):
      out[axis][lane] = value
  return out


def texels(picture: Picture, memory: np.ndarray, c: list[np.ndarray], dim: str) -> tuple[list[int], np.ndarray]:
  """(byte of each lane's texel, whether it is inside)."""
  w, h, d = picture.extent(0)
  names = {"1d": "x", "2d": "xy", "3d": "xyz", "1darray": "xz", "2darray": "xyz"}[dim]
  limit = {"x": w, "y": h, "z": d}
  inside = np.ones(LANES, bool)
  for name, values in zip(names, c): inside &= values < limit[name]
  return [picture.offset(**{n: int(v[lane]) for n, v in zip(names, c)}) if inside[lane] else 0
          for lane in range(LANES)], inside


PICTURES = [
  ("1d", "32_FLOAT", "f4", (100, 1, 1)), ("2d", "32_FLOAT", "f4", (70, 9, 1)),
  ("2d", "8_8_8_8_UINT", "u1", (33, 12, 1)),
  ("2d", "16_16_16_16_FLOAT", "f2", (20, 7, 1)), ("3d", "32_32_32_32_FLOAT", "f4", (10, 6, 5)),
  ("1darray", "16_FLOAT", "f2", (70, 1, 4)), ("2darray", "8_UINT", "u1", (65, 5, 3)),
  ("2d", "32_UINT", "u4", (64, 4, 1)),
  ("2darray", "32_32_FLOAT", "f4", (40, 3, 6))]


def picture_of(cpu: str, dim: str, name: str, element: str, size: tuple[int, int, int]) -> tuple[Picture, int]:
  """(the picture, how many components it has)."""
  count = len(name.split("_")) - 1
  kind = np.dtype(element)
  texel = np.dtype((np.void, kind.itemsize * count))
  return Picture(cpu, KINDS[dim], name, texel, *size), count


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("dim", "name", "element", "size"), PICTURES)
def test_loads_and_stores(dim: str, name: str, element: str, size: tuple[int, int, int], cpu: str, engine: str) -> None:
  """Texels come as f32 or integers, missing components as dst_sel says; outside the image 0; stores go the same way."""
  picture, count = picture_of(cpu, dim, name, element, size)
  run = Run(picture, engine)
  integer = name.endswith("INT")
  t, v = ("<4 x i32>", "v4i32") if integer else ("<4 x float>", "v4f32")
  n = COORDINATES[dim]
  given = ", ".join(f"i32 %{'xyz'[k]}" for k in range(n))
  types = ", ".join(["i32"] * n)
  selects = (4, 5 if count > 1 else 0, 6 if count > 2 else 0, 7 if count > 3 else 1)
  words = picture.words(run.at, selects)
  ir = kernel(f"%d = call {t} @llvm.amdgcn.image.load.{dim}.{v}.i32(i32 15, {given}, <8 x i32> %r, i32 0, i32 0)\n"
              f"  store {t} %d, ptr addrspace(1) %g",
              f"declare {t} @llvm.amdgcn.image.load.{dim}.{v}.i32(i32, {types}, <8 x i32>, i32, i32)", n, t)
  c = places(picture, dim)
  got = run(ir, c, np.zeros((LANES, 4), U32 if integer else np.float32), words)
  at, inside = texels(picture, run.memory, c, dim)
  size_of = np.dtype(element).itemsize
  for lane in range(LANES):
    raw = run.memory[at[lane]:at[lane] + size_of * count].view(element)
    want = [raw[k] if s >= 4 and inside[lane] else float(s == 1) for k, s in enumerate(selects)
            if s < 4 or k < count]
    assert got[lane].tolist() == [float(x) if not integer else int(x) for x in want], (lane, at[lane])
  # a second kernel stores other texels
  data = np.random.default_rng(9).integers(0, 200, (LANES, 4)).astype(got.dtype)
  ir = kernel(f"%d = load {t}, ptr addrspace(1) %g\n  call void @llvm.amdgcn.image.store.{dim}.{v}.i32({t} %d, i32 15, "
              f"{given}, <8 x i32> %r, i32 0, i32 0)",
              f"declare void @llvm.amdgcn.image.store.{dim}.{v}.i32({t}, i32, {types}, <8 x i32>, i32, i32)", n, t)
  run(ir, c, data, words)
  want_memory = run.memory.copy()
  for lane in range(LANES):
    if inside[lane]:
      want_memory[at[lane]:at[lane] + size_of * count] = data[lane, :count].astype(element).view(np.uint8)
  assert np.array_equal(run.after(), want_memory)


@pytest.mark.parametrize("cpu", CPUS)
def test_normalized_numbers_and_selected_components(cpu: str) -> None:
  """UNORM and SNORM to f32, dst_sel in another order, a dmask with holes, and 16-bit data."""
  picture = Picture(cpu, "2D", "8_8_8_8_UNORM", np.dtype("V4"), 30, 10)
  run = Run(picture)
  c = places(picture, "2d", outside=False)
  at, _ = texels(picture, run.memory, c, "2d")
  raw = np.stack([run.memory[a:a + 4] for a in at]).astype(np.float64)
  declare = "declare <2 x float> @llvm.amdgcn.image.load.2d.v2f32.i32(i32, i32, i32, <8 x i32>, i32, i32)"
  ir = kernel("%d = call <2 x float> @llvm.amdgcn.image.load.2d.v2f32.i32(i32 10, i32 %x, i32 %y, <8 x i32> %r, i32 0, "
              "i32 0)\n  store <2 x float> %d, ptr addrspace(1) %g", declare, 2, "<2 x float>")
  got = run(ir, c, np.zeros((LANES, 2), np.float32), picture.words(run.at, (6, 5, 4, 7)))
  assert np.array_equal(got, (raw[:, [1, 3]] / 255).astype(np.float32))
  signed = run.memory.view(np.int8)
  raw = np.stack([signed[a:a + 4] for a in at]).astype(np.float64)
  words = picture.words(run.at, (6, 5, 4, 7), format=43)
  declare = "declare <4 x half> @llvm.amdgcn.image.load.2d.v4f16.i32(i32, i32, i32, <8 x i32>, i32, i32)"
  ir = kernel("%d = call <4 x half> @llvm.amdgcn.image.load.2d.v4f16.i32(i32 15, i32 %x, i32 %y, <8 x i32> %r, i32 0, "
              "i32 0)\n  store <4 x half> %d, ptr addrspace(1) %g", declare, 2, "<4 x half>")
  got = run(ir, c, np.zeros((LANES, 4), np.float16), words)
  want = np.maximum(raw[:, [2, 1, 0, 3]] / 127, -1)
  assert (np.abs(got.astype(np.float64) - want) <= 2.0 ** -10).all()
  declare = "declare void @llvm.amdgcn.image.store.2d.v4f16.i32(<4 x half>, i32, i32, i32, <8 x i32>, i32, i32)"
  ir = kernel("%d = load <4 x half>, ptr addrspace(1) %g\n  call void @llvm.amdgcn.image.store.2d.v4f16.i32("
              "<4 x half> %d, i32 15, i32 %x, i32 %y, <8 x i32> %r, i32 0, i32 0)", declare, 2, "<4 x half>")
  data = np.tile(np.array([1, 0.5, -1, -2], np.float16), (LANES, 1))
  run(ir, c, data, words)
  after = run.after().view(np.int8)
  assert all(after[a:a + 4].tolist() == [-127, 64, 127, -127] for a in at)


ATOMICS = {  # LLVM's name -> what it makes of memory and data
  "add": lambda m, d: m + d, "sub": lambda m, d: m - d, "umax": max, "umin": min, "and": lambda m, d: m & d,
  "or": lambda m, d: m | d, "xor": lambda m, d: m ^ d, "swap": lambda m, d: d,
  "smax": lambda m, d: max(m, d, key=lambda x: x - (x >> 31 << 32)),
  "inc": lambda m, d: 0 if m >= d else m + 1, "dec": lambda m, d: d if m == 0 or m > d else m - 1}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", [*ATOMICS, "cmpswap"])
def test_atomics(name: str, cpu: str, engine: str) -> None:
  """Several lanes meet in each texel; they act one after the other in the order of the lanes."""
  picture = Picture(cpu, "2D", "32_UINT", np.dtype("u4"), 4, 3)
  run = Run(picture, engine)
  c = places(picture, "2d")
  rng = np.random.default_rng(3)
  memory = run.memory.view(U32).copy()
  at, inside = texels(picture, run.memory, c, "2d")
  data = rng.integers(0, 1 << 32, LANES, dtype=U32)
  extra = "i32 %c2, " if name == "cmpswap" else ""
  prepare = ("%q = getelementptr i32, ptr addrspace(1) %g, i32 64\n  %c2 = load i32, ptr addrspace(1) %q\n  "
             if extra else "")
  intrinsic = f"i32 @llvm.amdgcn.image.atomic.{name}.2d.i32.i32"
  declare = f"declare {intrinsic}(i32, {'i32, ' if extra else ''}i32, i32, <8 x i32>, i32, i32)"
  ir = kernel(f"{prepare}%d = load i32, ptr addrspace(1) %g\n  %old = call {intrinsic}(i32 %d, {extra}i32 %x, i32 %y, "
              "<8 x i32> %r, i32 0, i32 0)\n  store i32 %old, ptr addrspace(1) %g", declare, 2, "i32")
  compare = np.array([memory[a // 4] if k % 2 else 5 for k, a in enumerate(at)], U32)
  got = run(ir, c, np.concatenate([data, compare]))[:LANES]
  for lane in range(LANES):
    if not inside[lane]:
      assert got[lane] == 0
      continue
    old = int(memory[at[lane] // 4])
    assert got[lane] == old
    if name == "cmpswap": new = int(data[lane]) if old == compare[lane] else old
    else: new = ATOMICS[name](old, int(data[lane])) & 0xFFFFFFFF
    memory[at[lane] // 4] = new
  assert np.array_equal(run.after().view(U32), memory)


@pytest.mark.parametrize("cpu", CPUS)
def test_sizes(cpu: str) -> None:
  """image_get_resinfo: width, height, depth or slices, levels; of each level, and of one that there is not."""
  cases = [(("3D", "8_UINT", np.dtype("u1"), 20, 9, 5, 3), "3d", {}),
           (("2D_ARRAY", "8_UINT", np.dtype("u1"), 20, 9, 6), "2darray", {}),
           (("1D", "8_UINT", np.dtype("u1"), 300), "1d", {}),
           (("2D", "32_FLOAT", np.dtype("f4"), 20, 9, 1, 4), "2d", {"base_level": 1, "last_level": 2}),
           (("2D", "32_FLOAT", np.dtype("f4"), 20, 9, 1, 4), "2d", {"base_level": 3, "last_level": 1})]  # no level
  for arguments, dim, view in cases:
    picture = Picture(cpu, *arguments)  # type: ignore[arg-type]  # tuples of several lengths
    run = Run(picture)
    intrinsic = f"<4 x i32> @llvm.amdgcn.image.getresinfo.{dim}.v4i32.i32"
    ir = kernel(f"%d = call {intrinsic}(i32 15, i32 %x, <8 x i32> %r, i32 0, i32 0)\n"
                "  store <4 x i32> %d, ptr addrspace(1) %g", f"declare {intrinsic}(i32, i32, <8 x i32>, i32, i32)", 1,
                "<4 x i32>")
    level = np.arange(LANES) % 6
    got = run(ir, [level], np.zeros((LANES, 4), U32), picture.words(run.at, **view))
    base, last = view.get("base_level", 0), view.get("last_level", picture.levels - 1)
    for lane in range(LANES):
      there = base + level[lane] <= last
      extent = picture.extent(base + level[lane]) if there else (0, 0, 0)
      assert got[lane].tolist() == [*extent, max(0, last - base + 1)]


@pytest.mark.parametrize("cpu", CPUS)
def test_levels(cpu: str) -> None:
  """The smallest level comes first in memory; loads take the view's first level, or count from it."""
  picture = Picture(cpu, "2D_ARRAY", "32_UINT", np.dtype("u4"), 100, 40, 3, 4)
  run = Run(picture)
  rng = np.random.default_rng(4)
  level = np.arange(LANES) % 4
  x, y, z = (np.array([rng.integers(0, picture.extent(int(m) + (m < 3))[k]) for m in level]) for k in range(3))
  words = picture.words(run.at, base_level=1)
  intrinsic = "i32 @llvm.amdgcn.image.load.mip.2darray.i32.i32"
  ir = kernel(f"%d = call {intrinsic}(i32 1, i32 %x, i32 %y, i32 %z, i32 %w, <8 x i32> %r, i32 0, i32 0)\n"
              "  store i32 %d, ptr addrspace(1) %g",
              f"declare {intrinsic}(i32, i32, i32, i32, i32, <8 x i32>, i32, i32)", 4, "i32")
  got = run(ir, [x, y, z, level], np.zeros(LANES, U32), words)
  for lane in range(LANES):
    want = 0
    if level[lane] < 3:
      at = picture.offset(int(x[lane]), int(y[lane]), int(z[lane]), int(level[lane]) + 1)
      want = int(run.memory[at:at + 4].view(U32)[0])
    assert got[lane] == want


@pytest.mark.parametrize("cpu", CPUS)
def test_a_set_pitch_and_the_slices_of_a_view(cpu: str) -> None:
  picture = Picture(cpu, "2D", "32_UINT", np.dtype("u4"), 20, 9, pitch=192)
  run = Run(picture)
  c = places(picture, "2d", outside=False)
  load = kernel("%d = call i32 @llvm.amdgcn.image.load.2d.i32.i32(i32 1, i32 %x, i32 %y, <8 x i32> %r, i32 0, i32 0)\n"
                "  store i32 %d, ptr addrspace(1) %g",
                "declare i32 @llvm.amdgcn.image.load.2d.i32.i32(i32, i32, i32, <8 x i32>, i32, i32)", 2, "i32")
  at, _ = texels(picture, run.memory, c, "2d")
  assert run(load, c, np.zeros(LANES, U32)).tolist() == [int(run.memory[a:a + 4].view(U32)[0]) for a in at]
  for kind, dim, view in (("2D_ARRAY", "2darray", {}), ("3D", "3d", {"uav3d": 1})):
    picture = Picture(cpu, kind, "32_UINT", np.dtype("u4"), 20, 9, 6)
    run = Run(picture)
    words = picture.words(run.at, base_array=2, depth=4, **view)
    intrinsic = f"i32 @llvm.amdgcn.image.load.{dim}.i32.i32"
    ir = kernel(f"%d = call {intrinsic}(i32 1, i32 %x, i32 %y, i32 %z, <8 x i32> %r, i32 0, i32 0)\n"
                "  store i32 %d, ptr addrspace(1) %g", f"declare {intrinsic}(i32, i32, i32, i32, <8 x i32>, i32, i32)",
                3, "i32")
    z = np.arange(LANES) % 5
    got = run(ir, [*c, z], np.zeros(LANES, U32), words)
    for lane in range(LANES):
      at = picture.offset(int(c[0][lane]), int(c[1][lane]), 2 + int(z[lane])) if z[lane] < 3 else -1
      assert got[lane] == (0 if at < 0 else int(run.memory[at:at + 4].view(U32)[0]))


def run_text(cpu: str, text: str, words: np.ndarray, memory: np.ndarray, engine: str = "ref",
             checker: Checker | None = None) -> np.ndarray:
  """Run a program with s[0:1] the address of the memory, which `words` get too, in s[8:15], and v0 the lane."""
  gpu = Gpu(1 << 22, cpu)
  at = gpu.put(memory)
  words = words.copy()
  if words.any(): words[:2] += np.array([at >> 8, 0], U32)
  lines = [f"s_mov_b32 s{8 + k}, {int(w):#x}" for k, w in enumerate(words)]
  code = gpu.put(np.frombuffer(code_of("\n".join([*lines, text, "s_endpgm"]), gpu.arch.isa), np.uint8))
  d = Dispatch(code, (1, 1, 1), (32, 1, 1), 64 // 8 - 1 | 0xC0 << 12, 2 << 1, user_data=(at & 0xFFFFFFFF, at >> 32))
  dispatch(gpu.space, gpu.arch, d, engine=engine, observer=checker)
  return gpu.get(at, memory.dtype, memory.size)


def load_text(cpu: str, registers: str, dim: str, more: str = "", name: str = "image_load", dmask: int = 1) -> str:
  """An image instruction in the generation's words."""
  if cpu == "gfx1100":
    n = registers.count(",") + 1
    address = "v1" if n == 1 else f"v[1:{n}]"
    unorm = " unorm"
  else: address, unorm = f"[{registers}]" if "," in registers else registers, ""
  data = "v8" if dmask == 1 else f"v[8:{7 + bin(dmask).count('1')}]"
  return f"{name} {data}, {address}, s[8:15] dmask:{dmask:#x} dim:SQ_RSRC_IMG_{dim}{unorm}{more}"


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("fields", "what"), [
  ({"sw_mode": 4}, "with swizzle mode 4"), ({"type": TYPES["CUBE"]}, "of type CUBE"),
  ({"type": TYPES["2D_MSAA"]}, "of type 2D_MSAA"), ({"format": 66}, "of format 8_8_8_8_SRGB"),
  ({"format": 109}, "of format BC1_UNORM"), ({"format": 60}, "of format 32_32_32_FLOAT"),
  ({"type": TYPES["3D"]}, "an image of type 3D as one of type 2D")])
def test_other_images_are_refused_by_name(fields: dict[str, int], what: str, cpu: str) -> None:
  picture = Picture(cpu, "2D", "32_UINT", np.dtype("u4"), 8, 8)
  text = "v_mov_b32_e32 v1, 0\n v_mov_b32_e32 v2, 0\n" + load_text(cpu, "v1, v2", "2D")
  with pytest.raises(Unsupported, match=what): run_text(cpu, text, picture.words(0, **fields), np.zeros(4096, U32))
  sampled = {"gfx1100": "image_sample v[8:11], v[1:2], s[8:15], s[16:19] dmask:0xf dim:SQ_RSRC_IMG_2D",
             "gfx1201": "image_sample v[8:11], [v1, v2], s[8:15], s[16:19] dmask:0xf dim:SQ_RSRC_IMG_2D"}[cpu]
  with pytest.raises(Unsupported, match="image_sample"):
    run_text(cpu, sampled, picture.words(0), np.zeros(4096, U32))


@pytest.mark.parametrize("engine", ["ref", "jit", "both"])
@pytest.mark.parametrize("cpu", CPUS)
def test_unbound_images_and_buffers(cpu: str, engine: str) -> None:
  """No resource at all reads 0, one that is a buffer nothing; stores to either do nothing."""
  text = f"""
    v_mov_b32_e32 v1, 0
    v_mov_b32_e32 v2, 0
    v_mov_b32_e32 v8, 7
    {load_text(cpu, 'v1, v2', '2D', name='image_store')}
    {load_text(cpu, 'v1, v2', '2D')}
    {'s_wait_loadcnt 0' if cpu == 'gfx1201' else 's_waitcnt vmcnt(0)'}
    v_lshlrev_b32_e32 v3, 2, v0
    global_store_b32 v3, v8, s[0:1]"""
  assert not run_text(cpu, text, np.zeros(8, U32), np.ones(64, U32), engine)[:32].any()
  buffer = Picture(cpu, "2D", "32_UINT", np.dtype("u4"), 8, 8).words(0, type=0)
  assert (run_text(cpu, text, buffer, np.ones(64, U32), engine) == np.repeat([7, 1], 32)).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
def test_residency_is_asked_for_and_nothing_is_missing(cpu: str, engine: str) -> None:
  """With texfailctrl LLVM keeps 0 where the chip would say what failed: of an image and of a buffer."""
  picture = Picture(cpu, "2D", "8_8_8_8_UINT", np.dtype("V4"), 30, 10)
  run = Run(picture, engine)
  c = places(picture, "2d", outside=False)
  at, _ = texels(picture, run.memory, c, "2d")
  t = "{ <4 x i32>, i32 }"
  store = """
  %v = extractvalue { <4 x i32>, i32 } %d, 0
  %s = extractvalue { <4 x i32>, i32 } %d, 1
  %u = insertelement <4 x i32> %v, i32 %s, i32 3
  store <4 x i32> %u, ptr addrspace(1) %g"""
  image = f"{t} @llvm.amdgcn.image.load.2d.sl_v4i32i32s.i32"
  ir = kernel(f"%d = call {image}(i32 15, i32 %x, i32 %y, <8 x i32> %r, i32 1, i32 0){store}",
              f"declare {image}(i32, i32, i32, <8 x i32>, i32, i32)", 2, "<4 x i32>")
  got = run(ir, c, np.full((LANES, 4), 7, U32))
  assert np.array_equal(got, [[*run.memory[a:a + 3], 0] for a in at])
  buffer = f"{t} @llvm.amdgcn.struct.buffer.load.format.sl_v4i32i32s"
  ir = kernel("%q = shufflevector <8 x i32> %r, <8 x i32> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>\n"
              f"  %d = call {buffer}(<4 x i32> %q, i32 %x, i32 0, i32 0, i32 0){store}",
              f"declare {buffer}(<4 x i32>, i32, i32, i32, i32)", 1, "<4 x i32>")
  words = np.zeros(8, U32)
  words[:4] = run.at & 0xFFFFFFFF, run.at >> 32 | 4 << 16, 1000, 46 << 12 | 0xFAC
  got = run(ir, [np.arange(LANES)], np.full((LANES, 4), 7, U32), words)
  assert np.array_equal(got, [[*run.memory[4 * n:4 * n + 3], 0] for n in range(LANES)])


@pytest.mark.parametrize("cpu", CPUS)
def test_components_that_a_store_lacks(cpu: str) -> None:
  """RDNA3 stores 0 in an image; RDNA4 repeats the first component, in buffers too."""
  picture = Picture(cpu, "1D", "8_8_8_8_UINT", np.dtype("V4"), 64)
  memory = np.full(64, 0x07070707, U32)
  text = "v_mov_b32_e32 v1, v0\n v_mov_b32_e32 v8, 5\n v_mov_b32_e32 v9, 6\n{}"
  store = load_text(cpu, "v1", "1D", name="image_store", dmask=9)
  got = run_text(cpu, text.format(store), picture.words(0), memory)
  assert (got[:32] == (0x06050505 if cpu == "gfx1201" else 0x06000005)).all()
  if cpu == "gfx1201":
    words = np.zeros(8, U32)
    words[:4] = 0, 4 << 16, 64, 46 << 12 | 0xFAC
    store = f"s_mov_b32 s8, s0\n s_or_b32 s9, s1, {4 << 16:#x}\n buffer_store_format_xy v[8:9], v1, s[8:11], null idxen"
    assert (run_text(cpu, text.format(store), words, memory)[:32] == 0x05050605).all()


@pytest.mark.parametrize("cpu", CPUS)
def test_packed_texels_and_short_coordinates(cpu: str) -> None:
  """The texel's bits as they are, sign-extended or not; two coordinates of 16 bits in a register."""
  picture = Picture(cpu, "2D", "8_SNORM", np.dtype("i1"), 100, 4)
  memory = np.random.default_rng(1).integers(0, 1 << 32, 512, dtype=U32)
  raw = memory.view(np.int8)
  for name, kind in (("image_load_pck", np.uint8), ("image_load_pck_sgn", np.int8)):
    load = load_text(cpu, "v1", "2D", " a16", name)
    text = f"""
      v_lshl_or_b32 v1, 3, 16, v0
      {load}
      {'s_wait_loadcnt 0' if cpu == 'gfx1201' else 's_waitcnt vmcnt(0)'}
      v_lshlrev_b32_e32 v3, 2, v0
      global_store_b32 v3, v8, s[0:1]"""
    got = run_text(cpu, text, picture.words(0), memory)[:32]
    at = picture.offset(0, 3)
    assert np.array_equal(got.view(np.int32), raw[at:at + 32].view(kind).astype(np.int32))


@pytest.mark.parametrize("cpu", CPUS)
def test_faults_and_checks(cpu: str) -> None:
  """A fault names the lane; the checks see a load that is not waited for, and its address's register."""
  picture = Picture(cpu, "1D", "32_UINT", np.dtype("u4"), 4096, pitch=0)
  far = picture.words(0x7000_0000)
  with pytest.raises(PageFault) as caught:
    run_text(cpu, "v_mov_b32_e32 v1, v0\n" + load_text(cpu, "v1", "1D"), far, np.zeros(64, U32))
  assert caught.value.lane == 0 and caught.value.instruction is not None
  after = "v_lshlrev_b32_e32 v3, 2, v0\n global_store_b32 v3, v8, s[0:1]"
  wait = "s_wait_loadcnt 0" if cpu == "gfx1201" else "s_waitcnt vmcnt(0)"
  for between, found in ((wait, 0), ("", 1)):
    checker = Checker()
    text = f"v_mov_b32_e32 v1, v0\n {load_text(cpu, 'v1', '1D')}\n {between}\n {after}"
    run_text(cpu, text, Picture(cpu, "1D", "32_UINT", np.dtype("u4"), 64).words(0), np.zeros(64, U32), checker=checker)
    assert bool(len(checker.report)) == bool(found), str(checker.report)
    if found: assert "v8" in str(checker.report)


@pytest.mark.parametrize("cpu", CPUS)
def test_the_checks_wait_for_what_an_atomic_gives_back(cpu: str) -> None:
  more = " th:TH_ATOMIC_RETURN" if cpu == "gfx1201" else " glc"
  wait = "s_wait_loadcnt 0" if cpu == "gfx1201" else "s_waitcnt vmcnt(0)"
  name = "image_atomic_add_uint" if cpu == "gfx1201" else "image_atomic_add"
  for between, found in ((wait, 0), ("", 1)):
    checker = Checker()
    text = f"""
      v_mov_b32_e32 v1, v0
      v_mov_b32_e32 v8, 5
      {load_text(cpu, 'v1', '1D', more, name)}
      {between}
      v_lshlrev_b32_e32 v3, 2, v0
      v_add_nc_u32_e32 v3, 0x400, v3
      global_store_b32 v3, v8, s[0:1]"""
    run_text(cpu, text, Picture(cpu, "1D", "32_UINT", np.dtype("u4"), 64).words(0), np.zeros(512, U32), checker=checker)
    assert bool(len(checker.report)) == bool(found), str(checker.report)


@pytest.mark.parametrize("cpu", CPUS)
def test_the_checks_know_which_registers_a_texel_takes(cpu: str) -> None:
  """Components, not dwords: one of four dwords, and four of one; and each address register."""
  def told(store: str, format_: str, texel: str, kind: str = "1D") -> str:
    checker = Checker({"undefined"})
    text = f"v_mov_b32_e32 v1, v0\n v_mov_b32_e32 v8, 5\n {store}"
    run_text(cpu, text, Picture(cpu, kind, format_, np.dtype(texel), 64).words(0), np.zeros(512, U32), checker=checker)
    return str(checker.report)
  assert told(load_text(cpu, "v1", "1D", name="image_store"), "32_32_32_32_FLOAT", "V16") == ""
  found = told(load_text(cpu, "v1", "1D", name="image_store", dmask=15), "8_8_8_8_UINT", "V4")
  assert "the value stored to memory depends on v9" in found
  found = told(load_text(cpu, "v1, v2", "1D_ARRAY", name="image_store"), "32_FLOAT", "V4", "1D_ARRAY")
  assert "the address depends on v2" in found


def test_the_checks_know_which_registers_a_typed_buffer_takes() -> None:
  text = """
    s_mov_b32 s10, 64
    s_mov_b32 s11, {:#x}
    v_mov_b32_e32 v1, v0
    v_mov_b32_e32 v8, 5
    s_mov_b32 s8, s0
    s_or_b32 s9, s1, {:#x}
    buffer_store_format_{} v{}, v1, s[8:11], 0 idxen"""
  for code, stride, suffix, registers, found in ((63, 16, "x", "8", ""), (46, 4, "xy", "[8:9]", "depends on v9")):
    checker = Checker({"undefined"})
    words = np.zeros(8, U32)
    program = text.format(code << 12 | 0xFAC, stride << 16, suffix, registers)
    run_text("gfx1100", program, words, np.zeros(512, U32), checker=checker)
    assert found in str(checker.report) and bool(found) == bool(len(checker.report))
