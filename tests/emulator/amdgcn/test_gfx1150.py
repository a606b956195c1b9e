"""RDNA3.5: floats in scalar registers and scalar sources of DPP, which gfx1100 has not."""
from __future__ import annotations

from fractions import Fraction

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.emulator.gpu import Gpu, compile_gpu
from tinyhw.arch import DECODED
from tinyhw.core.errors import DecodeError, InvalidArgument
from tinyhw.emulator.amdgcn import Dispatch, coverage
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

NEW, OLD = table("gfx1150"), table("gfx11")
MEMBERS = [a.name for a in DECODED.values() if a.table == "gfx1150"]
FLOATS = np.array([0.0, -0.0, 1.5, -2.75, 1e30, -1e-30, 3.5, 2.5, -0.5, 65504.0, np.inf, -np.inf, 7e-6], np.float32)
ONE = {"ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "roundeven": np.round}
TWO = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply}
CHOICE = {"minnum": np.fmin, "maxnum": np.fmax}
COMPARE = {"olt": np.less, "oeq": np.equal, "ole": np.less_equal, "ogt": np.greater, "oge": np.greater_equal,
           "one": lambda a, b: (a < b) | (a > b), "une": np.not_equal, "ult": lambda a, b: ~(a >= b)}


def kernel(t: str) -> str:
  """Every operation on two uniform values of the kernel's arguments; a result each, from %p on."""
  name, size = {"float": ("f32", 4), "half": ("f16", 2)}[t]
  lines, results = [], []

  def add(line: str, result: str) -> None:
    lines.append(line)
    results.append(result)

  for k, op in enumerate(ONE): add(f"%o{k} = call {t} @llvm.{op}.{name}({t} %a)", f"%o{k}")
  for k, op in enumerate(TWO): add(f"%t{k} = {op} {t} %a, %b", f"%t{k}")
  for k, op in enumerate(CHOICE): add(f"%m{k} = call nnan nsz {t} @llvm.{op}.{name}({t} %a, {t} %b)", f"%m{k}")
  for k, op in enumerate(COMPARE):
    lines.append(f"%c{k} = fcmp {op} {t} %a, %b")
    add(f"%s{k} = select i1 %c{k}, {t} %a, {t} %b", f"%s{k}")
  add(f"%f = call {t} @llvm.fma.{name}({t} %a, {t} %b, {t} %a)", "%f")
  stores = "".join(f"%g{k} = getelementptr {t}, ptr addrspace(1) %p, i32 {k}\nstore {t} {r}, ptr addrspace(1) %g{k}\n"
                   for k, r in enumerate(results))
  declared = "".join(f"declare {t} @llvm.{op}.{name}({t})\n" for op in ONE) + "".join(
    f"declare {t} @llvm.{op}.{name}({t}, {t})\n" for op in CHOICE)
  return (f"define amdgpu_kernel void @k(ptr addrspace(1) %p, {t} %a, {t} %b) {{\n" + "\n".join(lines)
          + f"\n{stores}ret void\n}}\n{declared}declare {t} @llvm.fma.{name}({t}, {t}, {t})\n")


def fma(a: np.floating, b: np.floating, c: np.floating) -> np.floating:
  """a * b + c, rounded once: the nearest of the neighbours, of two the even one."""
  near = (np.float64(a) * np.float64(b) + np.float64(c)).astype(a.dtype)
  if not np.isfinite([a, b, c, near]).all(): return near
  exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
  around = [x for x in (np.nextafter(near, -np.inf, dtype=a.dtype), near, np.nextafter(near, np.inf, dtype=a.dtype))
            if np.isfinite(x)]
  return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(f"u{x.itemsize}")) & 1))


def wanted(a: np.floating, b: np.floating) -> list[np.floating]:
  return [*(f(a) for f in ONE.values()), *(f(a, b) for f in TWO.values()), *(f(a, b) for f in CHOICE.values()),
          *(a if f(a, b) else b for f in COMPARE.values()), fma(a, b, a)]


def scalar_floats(code: bytes) -> set[str]:
  """Mnemonics of an object's code that gfx1100 has not."""
  names, at = set(), 0
  while at + 4 <= len(code):
    try: i = NEW.decode(code, at)
    except DecodeError: break
    names.add(i.mnemonic)
    at += i.size
  return names - OLD.mnemonics


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("cpu", MEMBERS)
@pytest.mark.parametrize("t, dtype", [("float", np.float32), ("half", np.float16)])
def test_uniform_floats_are_numpys(t: str, dtype: type, cpu: str, engine: str) -> None:
  """What LLVM selects for uniform values of either size, for one member with all values, for the others with some."""
  gpu = Gpu(cpu=cpu)
  gpu.engine = engine
  loaded = gpu.load(compile_gpu(kernel(t), cpu=cpu))["k"]
  found = scalar_floats(gpu.space.read(loaded.entry, 1024))
  bits = np.dtype(dtype).itemsize * 8
  assert len(found) > 15 and {f"s_add_f{bits}", f"s_min_f{bits}", f"s_fmac_f{bits}"} <= found
  with np.errstate(all="ignore"): values = FLOATS.astype(dtype)
  pairs = [(a, b) for a in values for b in values]
  for a, b in pairs if cpu == "gfx1150" and engine == "ref" else pairs[::29]:
    with np.errstate(all="ignore"): want = np.array(wanted(a, b), dtype)
    out = gpu.alloc(256)
    gpu.launch(loaded, (1, 1, 1), (32, 1, 1), [out, a, b])
    got = gpu.get(out, dtype, len(want))
    zeros = (got == 0) & (want == 0)  # the sign of a zero that fmin and fmax choose is theirs
    assert ((got.view(f"u{got.itemsize}") == want.view(f"u{got.itemsize}")) | zeros | np.isnan(got) & np.isnan(want)
            ).all(), (a, b, got, want)


def test_every_instruction_has_a_meaning() -> None:
  assert len(NEW.mnemonics - OLD.mnemonics) == 59 and OLD.mnemonics <= NEW.mnemonics
  assert {coverage.status(n, "gfx11") for n in NEW.mnemonics - OLD.mnemonics} == {"exact", "no effect"}


def test_what_the_first_members_lack_is_refused_by_name() -> None:
  code = assemble("s_add_f32 s0, s1, 2.0", NEW)
  with pytest.raises(DecodeError, match=r"no gfx11 instruction \(gfx1150 and later have s_add_f32\)"): OLD.decode(code)
  with pytest.raises(InvalidArgument, match="'s_add_f32' is no instruction of gfx11"): assemble("s_add_f32 s0, s1, 2.0")
  line = "v_add_nc_u32_e64_dpp v5, v1, {} row_shl:1 row_mask:0xf bank_mask:0xf"
  for source in ("s2", "2", "v2"):
    code = assemble(line.format(source), NEW)
    assert str(NEW.decode(code)) == line.format(source)
    if source == "v2": assert OLD.decode(code).operands["src1"].kind == "v"
    else:
      with pytest.raises(DecodeError, match="operand src1 is no vector register"): OLD.decode(code)
      with pytest.raises(InvalidArgument): assemble(line.format(source), OLD)


@pytest.mark.parametrize("engine", ["ref", "jit", "both"])
def test_a_scalar_source_with_dpp(engine: str) -> None:
  """Each lane's left neighbour plus a scalar, and plus a constant."""
  lines = ["v_mov_b32_e32 v1, v0", "s_mov_b32 s4, 1000",
           "v_add_nc_u32_e64_dpp v2, v1, s4 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
           "v_add_nc_u32_e64_dpp v3, v1, 7 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
           "v_lshlrev_b32_e32 v0, 3, v0", "global_store_b64 v0, v[2:3], s[0:1]", "s_endpgm"]
  gpu = Gpu(cpu="gfx1150")
  entry = gpu.put(np.frombuffer(b"".join(assemble(x, NEW) for x in lines) + bytes(64), np.uint8))
  out = gpu.alloc(256)
  d = Dispatch(entry, (1, 1, 1), (32, 1, 1), 1, 2 << 1, user_data=(out & 0xFFFFFFFF, out >> 32))
  dispatch(gpu.space, gpu.arch, d, engine=engine)
  left = np.array([n - 1 if n % 16 else 0 for n in range(32)], np.uint32)
  assert np.array_equal(gpu.get(out, np.uint32, 64).reshape(32, 2), np.stack([left + 1000, left + 7], 1))
  with pytest.raises(DecodeError, match="no vector register"): dispatch(gpu.space, DECODED["gfx1100"], d, engine="ref")


def test_llvm_is_a_witness() -> None:
  """llvmlite's LLVM writes these objects for gfx1150 and not for gfx1100."""
  assert llvm.llvm_version_info[0] >= 19
  code = compile_gpu(kernel("float"), cpu="gfx1100")
  gpu = Gpu(cpu="gfx1100")
  assert not scalar_floats(gpu.space.read(gpu.load(code)["k"].entry, 1024))
