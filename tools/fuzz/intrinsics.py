"""Cases that reach instructions by LLVM's AMDGPU intrinsics, with NumPy or host IR as the witness.

The formulas are written from the RDNA3 ISA manual (15-Aug-2023), section 16, and share nothing with the emulator.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.tools.fuzz.case import Array, Case, Witness
from tinyhw.tools.fuzz.fills import normal, normal_numbers, numbers, positive, tame, turns

U32: Final = np.uint32
U64: Final = np.uint64


def intrinsic(name: str, out: str, kinds: Sequence[str], witness: Witness, *, extra: Sequence[str] = (), ulp: float = 0,
              suffix: str = "", bits: bool = False, label: str = "", absolute: float = 0.0, signless: bool = False,
              fill: Callable[[list[Array], np.random.Generator], None] | None = None, block: int = 64,
              attributes: str = "", front: Sequence[str] = ()) -> Case:
  """A call of `llvm.amdgcn.name` on one argument of each kind and constants."""
  values = [*front, *(f"{k} %{chr(97 + i)}" for i, k in enumerate(kinds)), *extra]
  types = [*(e.rsplit(" ", 1)[0] for e in front), *kinds, *(e.rsplit(" ", 1)[0] for e in extra)]
  full = f"@llvm.amdgcn.{name}{'.' + suffix if suffix else ''}"
  return Case(f"amdgcn_{label or (name + '_' + suffix).replace('.', '_').strip('_')}", tuple(kinds), (out,),
              f"%r = call {out} {full}({', '.join(values)})", f"declare {out} {full}({', '.join(types)})",
              witness=witness, ulp=ulp, bits=bits, absolute=absolute, signless=signless, fill=fill, block=block,
              attributes=attributes)


def _bytes(x: Array) -> Array:
  return x.astype("<u4").view(np.uint8).reshape(-1, 4).astype(np.int64)


def _sad(a: Array, b: Array, *, masked: bool = False) -> Array:
  x, y = _bytes(a), _bytes(b)
  distance = np.abs(x - y)
  if masked: distance = np.where(y == 0, 0, distance)
  total: Array = distance.sum(axis=1)
  return total


def _quad(arrays: list[Array], *, masked: bool, bits: int) -> list[Array]:
  a, b, c = arrays
  c = c.reshape(len(a), -1)
  lanes = np.stack([_sad((a >> U64(8 * k)).astype(U32), b, masked=masked) for k in range(4)], axis=1)
  if bits == 32: return [(lanes + c.astype(np.int64)).astype(U32)]
  parts = np.ascontiguousarray(c.astype("<u8")).view(np.uint16).reshape(-1, 4).astype(np.int64)
  return [np.ascontiguousarray((lanes + parts).astype(np.uint16)).view(np.uint64).reshape(-1)]


def _permute(a: Array, b: Array, selector: Array) -> Array:
  joined = np.concatenate([_bytes(b), _bytes(a)], axis=1)
  out = np.zeros((len(a), 4), np.uint8)
  for k in range(4):
    sel = _bytes(selector)[:, k]
    picked = np.take_along_axis(joined, np.minimum(sel, 7)[:, None], axis=1)[:, 0]
    sign = np.take_along_axis(joined, np.clip((sel - 8) * 2 + 1, 0, 7)[:, None], axis=1)[:, 0] >> 7
    out[:, k] = np.where(sel < 8, picked, np.where(sel < 12, sign * 255, np.where(sel == 12, 0, 255)))
  return out.view("<u4").reshape(-1)


def _selectors(arrays: list[Array], rng: np.random.Generator) -> None:
  arrays[2][:] = rng.integers(0, 14, (len(arrays[2]), 4)).astype(np.uint8).view(np.uint32).reshape(-1)


def _first_difference(x: Array) -> Array:
  v = x.view(np.int32).astype(np.int64)
  magnitude = np.where(v < 0, ~v, v)
  length = np.array([int(m).bit_length() for m in magnitude])
  return np.where(length == 0, -1, 32 - length).astype(np.int32).view(U32)


def _field(x: Array, offset: Array, count: Array, *, signed: bool = False) -> Array:
  out = []
  for v, o, n in zip(x.tolist(), (offset & U32(31)).tolist(), (count & U32(31)).tolist()):
    value = v - (1 << 32) if signed and v >> 31 else v
    part = value >> o & (1 << n) - 1
    if signed and n and part >> n - 1: part -= 1 << n
    out.append(part & 0xFFFFFFFF)
  return np.array(out, U32)


def _dot(arrays: list[Array], bits: int, signed: tuple[bool, bool], saturate: bool) -> list[Array]:
  a, b, c = (x.astype(np.int64) for x in arrays)
  total = np.zeros(len(a), np.int64)
  for at in range(0, 32, bits):
    parts = []
    for x, sign in ((a, signed[0]), (b, signed[1])):
      part = x >> at & (1 << bits) - 1
      parts.append(np.where(sign & (part >> bits - 1 != 0), part - (1 << bits), part))
    total += parts[0] * parts[1]
  if any(signed):
    total += c.astype(np.uint32).view(np.int32)
    if saturate: total = np.clip(total, -(1 << 31), (1 << 31) - 1)
  else:
    total += c
    if saturate: total = np.minimum(total, (1 << 32) - 1)
  return [(total & 0xFFFFFFFF).astype(U32)]


def _f(x: Array) -> Array: return x.view(np.float32)


def _h(x: Array) -> Array: return x.view(np.float16)


def _u(x: Any) -> Array:
  x = np.ascontiguousarray(x)
  bits: Array = x.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[x.dtype.itemsize])
  return bits


def _product(a: Array, b: Array) -> Array:
  with np.errstate(all="ignore"): return _u(_f(a) * _f(b))


def _real(function: Callable[..., Any], kind: str) -> Witness:
  """A function in double precision, rounded once to the type."""
  dtype = {"half": np.float16, "float": np.float32, "double": np.float64}[kind]

  def witness(arrays: list[Array]) -> list[Array]:
    wide = [x.view(dtype).astype(np.float64) for x in arrays]
    with np.errstate(all="ignore"): return [_u(function(*wide).astype(dtype))]
  return witness


def _pack16(low: Array, high: Array) -> Array:
  return np.stack([low, high], axis=1).astype(np.int64).astype(np.uint16)


def _toward_zero(x: Array) -> Array:
  """f32 to f16 bits, rounded toward zero (infinities stay, overflow gives the largest value)."""
  with np.errstate(all="ignore"):
    near = x.astype(np.float16)
    bigger = np.abs(near.astype(np.float32)) > np.abs(x)
    bits = near.view(np.uint16)
    return np.where(bigger, bits - 1, bits).astype(np.uint16)


def _normalized(x: Array, signed: bool) -> Array:
  scale, low, high = (32767.0, -32767, 32767) if signed else (65535.0, 0, 65535)
  with np.errstate(all="ignore"):
    return np.where(np.isnan(x), 0, np.clip(np.rint(np.nan_to_num(x.astype(np.float64), posinf=1e9,
      neginf=-1e9) * scale),
                                            low, high)).astype(np.int64)


def _lanes(shift: Callable[[int], int], rows: int) -> Witness:
  """Each lane reads the lane that `shift` names, within groups of `rows` lanes."""
  def witness(arrays: list[Array]) -> list[Array]:
    x = arrays[0].reshape(-1, rows)
    return [x[:, [shift(k) for k in range(rows)]].reshape(-1).copy()]
  return witness


def _low24(x: Array) -> Array: return (x.astype(np.int64) << 40) >> 40


def _dots(bits: int, signed: tuple[bool, bool], saturate: bool) -> Witness:
  return lambda arrays: _dot(arrays, bits, signed, saturate)


def _packed_norms(signed: bool) -> Witness:
  return lambda arrays: [_pack16(*(_normalized(_f(x), signed) for x in arrays))]


def _cube_part(k: int) -> Witness:
  return lambda arrays: [_u(_cube(*(_f(x) for x in arrays))[k])]


def _after(witness: Witness, k: int) -> Witness:
  """The witness of one of the inputs."""
  return lambda arrays: witness([arrays[k]])


def _joined(witness: Witness, function: Callable[[Array, Array], Array]) -> Witness:
  """The moved values and the values themselves, combined."""
  return lambda arrays: [function(witness(arrays)[0], arrays[0])]


def arithmetic() -> Iterator[Case]:
  """Instructions of one lane."""
  i3 = ("i32",) * 3
  yield intrinsic("sad.u8", "i32", i3, lambda x: [(_sad(x[0], x[1]) + x[2]).astype(U32)])
  yield intrinsic("msad.u8", "i32", i3, lambda x: [(_sad(x[0], x[1], masked=True) + x[2]).astype(U32)])
  yield intrinsic("sad.hi.u8", "i32", i3, lambda x: [((_sad(x[0], x[1]) << 16) + x[2]).astype(U32)])
  yield intrinsic("sad.u16", "i32", i3, lambda x: [sum((np.abs((x[0] >> U32(s) & U32(65535)).astype(np.int64) - (
    x[1] >> U32(s) & U32(65535))) for s in (0, 16)), x[2].astype(np.int64)).astype(U32)])
  yield intrinsic("lerp", "i32", i3, lambda x: [((_bytes(x[0]) + _bytes(x[1]) + (_bytes(x[2]) & 1)) >> 1).astype(
    np.uint8).view(U32).reshape(-1)])
  yield intrinsic("perm", "i32", i3, lambda x: [_permute(*x)], fill=_selectors)
  yield intrinsic("perm", "i32", i3, lambda x: [_permute(*x)], label="perm_any")
  yield intrinsic("alignbyte", "i32", i3, lambda x: [((x[0].astype(U64) << U64(32) | x[1]) >> (U64(8) * (
    x[2] & U32(3)).astype(U64))).astype(U32)])
  yield intrinsic("ubfe", "i32", i3, lambda x: [_field(x[0], x[1], x[2])], suffix="i32")
  yield intrinsic("sbfe", "i32", i3, lambda x: [_field(x[0], x[1], x[2], signed=True)], suffix="i32")
  yield intrinsic("qsad.pk.u16.u8", "i64", ("i64", "i32", "i64"), lambda x: _quad(x, masked=False, bits=16))
  yield intrinsic("mqsad.pk.u16.u8", "i64", ("i64", "i32", "i64"), lambda x: _quad(x, masked=True, bits=16))
  yield intrinsic("mqsad.u32.u8", "<4 x i32>", ("i64", "i32", "<4 x i32>"), lambda x: _quad(x, masked=True, bits=32))
  yield intrinsic("sffbh", "i32", ("i32",), lambda x: [_first_difference(x[0])], suffix="i32")
  yield intrinsic("mul.i24", "i32", ("i32", "i32"), lambda x: [(_low24(x[0]) * _low24(x[1])).astype(U32)], suffix="i32")
  yield intrinsic("mul.u24", "i32", ("i32", "i32"), lambda x: [((x[0] & U32(0xFFFFFF)).astype(U64) * (
    x[1] & U32(0xFFFFFF))).astype(U32)], suffix="i32")
  yield intrinsic("mulhi.i24", "i32", ("i32", "i32"), lambda x: [(_low24(x[0]) * _low24(x[1]) >> 32).astype(U32)])
  yield intrinsic("mulhi.u24", "i32", ("i32", "i32"), lambda x: [((x[0] & U32(0xFFFFFF)).astype(U64) * (
    x[1] & U32(0xFFFFFF)) >> U64(32)).astype(U32)])
  for clamp in ("false", "true"):
    saturate = clamp == "true"
    for bits in (4, 8):
      yield intrinsic(f"udot{32 // bits}", "i32", i3, _dots(bits, (False, False), saturate),
                      extra=[f"i1 {clamp}"], label=f"udot{32 // bits}_{clamp}")
      for mode in ((True, True), (True, False), (False, True)):
        flags = [str(m).lower() for m in mode]
        yield Case(f"amdgcn_sudot{32 // bits}_{'_'.join(flags)}_{clamp}", i3, ("i32",),
                   f"%r = call i32 @llvm.amdgcn.sudot{32 // bits}(i1 {flags[0]}, i32 %a, i1 {flags[1]}, i32 %b, i32 "
                   f"%c, "
                   f"i1 {clamp})", f"declare i32 @llvm.amdgcn.sudot{32 // bits}(i1, i32, i1, i32, i32, i1)",
                   witness=_dots(bits, mode, saturate))
  yield intrinsic("cvt.pk.i16", "<2 x i16>", ("i32", "i32"), lambda x: [_pack16(
    *(np.clip(v.view(np.int32), -32768, 32767) for v in x))])
  yield intrinsic("cvt.pk.u16", "<2 x i16>", ("i32", "i32"), lambda x: [_pack16(*(np.minimum(v, 65535) for v in x))])
  yield intrinsic("cvt.pkrtz", "<2 x half>", ("float", "float"),
                  lambda x: [np.stack([_toward_zero(_f(v)) for v in x], 1)])
  for sign in "iu":
    yield intrinsic(f"cvt.pknorm.{sign}16", "<2 x i16>", ("float", "float"),
                    _packed_norms(sign == "i"))
  yield intrinsic("mbcnt.lo", "i32", ("i32", "i32"), lambda x: [(np.array([(int(v) & (1 << k % 32) - 1).bit_count()
                  for k, v in enumerate(x[0])]) + x[1]).astype(U32)])


def floating() -> Iterator[Case]:
  """Float helpers; bounds of the approximations are those that the manual and OpenCL give."""
  for kind, suffix in (("float", "f32"), ("half", "f16"), ("double", "f64")):
    loose = 0.51 if kind == "half" else 1.0
    wide = float(1 << 27) if kind == "double" else loose  # the double forms only seed a Newton iteration (2^-25)
    yield intrinsic("rcp", kind, (kind,), _real(lambda x: 1 / x, kind), suffix=suffix, ulp=max(wide, 1.0), fill=normal)
    yield intrinsic("rsq", kind, (kind,), _real(lambda x: 1 / np.sqrt(x), kind), suffix=suffix, ulp=max(wide, 1.0),
                    fill=normal)
    yield intrinsic("sqrt", kind, (kind,), _real(np.sqrt, kind), suffix=suffix, ulp=max(wide, 1.0), fill=normal)
    yield intrinsic("frexp.mant", kind, (kind,), _real(lambda x: np.where(np.isfinite(x), np.frexp(x)[0], x), kind),
                    suffix=suffix)
    yield intrinsic("trig.preop", kind, (kind, "i32"), _preop, suffix=suffix) if kind == "double" else _class(kind,
      suffix)
    yield intrinsic("fract", kind, (kind,), _real(lambda x: x - np.floor(x), kind), suffix=suffix, fill=positive)
    if kind != "double":
      yield intrinsic("sin", kind, (kind,), _real(lambda x: np.sin(x * 2 * np.pi), kind), suffix=suffix,
                      absolute=1e-3, fill=turns)
      yield intrinsic("cos", kind, (kind,), _real(lambda x: np.cos(x * 2 * np.pi), kind), suffix=suffix,
                      absolute=1e-3, fill=turns)
      yield intrinsic("log", kind, (kind,), _real(np.log2, kind), suffix=suffix, ulp=2, absolute=1e-6, fill=normal)
      yield intrinsic("exp2", kind, (kind,), _real(np.exp2, kind), suffix=suffix, ulp=2, fill=turns)
      yield intrinsic("fmed3", kind, (kind,) * 3, _real(lambda *x: np.sort(np.stack(x), axis=0)[1], kind),
                      suffix=suffix,
                      signless=True, fill=numbers)
  yield intrinsic("frexp.exp", "i32", ("float",), lambda x: [_exponent(_f(x[0]))], suffix="i32.f32")
  yield intrinsic("frexp.exp", "i32", ("double",), lambda x: [_exponent(x[0].view(np.float64))], suffix="i32.f64")
  yield intrinsic("fmul.legacy", "float", ("float",) * 2, lambda x: [_legacy(x[0], x[1], None)], signless=True)
  yield intrinsic("fma.legacy", "float", ("float",) * 3, lambda x: [_legacy(*x)], signless=True, fill=turns)
  for at, name in enumerate(("cubeid", "cubesc", "cubetc", "cubema")):
    yield intrinsic(name, "float", ("float",) * 3, _cube_part(at), fill=normal_numbers)
  yield intrinsic("fdot2", "float", ("<2 x half>", "<2 x half>", "float"), _fdot2, extra=["i1 false"], ulp=2, fill=tame,
                  absolute=1e-4)
  yield intrinsic("fdot2.f16.f16", "half", ("<2 x half>", "<2 x half>", "half"), _fdot2_half, ulp=2, fill=tame,
                  absolute=0.05)


def _class(kind: str, suffix: str) -> Case:
  bits = {"float": (23, 8), "half": (10, 5)}[kind]

  def witness(arrays: list[Array]) -> list[Array]:
    x, mask = arrays[0].astype(np.int64), arrays[1]
    mantissa, exponent, sign = x & (1 << bits[0]) - 1, x >> bits[0] & (1 << bits[1]) - 1, x >> sum(bits) != 0
    top = (1 << bits[1]) - 1
    kinds = [(exponent == top) & (mantissa != 0) & (mantissa >> bits[0] - 1 == 0),
             (exponent == top) & (mantissa >> bits[0] - 1 == 1),
             sign & (exponent == top) & (mantissa == 0), sign & (exponent > 0) & (exponent < top),
             sign & (exponent == 0) & (mantissa != 0), sign & (exponent == 0) & (mantissa == 0),
             ~sign & (exponent == 0) & (mantissa == 0), ~sign & (exponent == 0) & (mantissa != 0),
             ~sign & (exponent > 0) & (exponent < top), ~sign & (exponent == top) & (mantissa == 0)]
    hit = np.zeros(len(x), bool)
    for k, member in enumerate(kinds): hit |= member & (mask >> U32(k) & U32(1) != 0)
    return [hit.astype(np.uint8)]
  return intrinsic("class", "i1", (kind, "i32"), witness, suffix=suffix)


def _preop(arrays: list[Array]) -> list[Array]:
  two_over_pi = _two_over_pi(1201)
  out = []
  for x, s in zip(arrays[0].tolist(), arrays[1].tolist()):
    exponent = x >> 52 & 0x7FF
    shift = (s & 31) * 53 + max(0, exponent - 1077)
    part = (two_over_pi << shift) >> 1201 - 53 & (1 << 53) - 1 if shift < 1201 + 53 else 0
    out.append(np.ldexp(np.float64(part), -53 - shift + (128 if exponent >= 1968 else 0)))
  return [_u(np.array(out))]


def _two_over_pi(bits: int) -> int:
  """2/pi as a fraction of that many bits, by Machin's formula on integers."""
  one = 1 << bits + 64

  def arctan(inverse: int) -> int:
    total, term, k, sign = 0, one // inverse, 1, 1
    while term:
      total += sign * (term // k)
      term //= inverse * inverse
      k, sign = k + 2, -sign
    return total
  pi = 4 * (4 * arctan(5) - arctan(239))
  return (2 * one << bits) // pi


def _exponent(x: Array) -> Array:
  with np.errstate(all="ignore"):
    return np.where(np.isfinite(x), np.frexp(np.where(np.isfinite(x), x, 0))[1], 0).astype(np.int32).view(U32)


def _legacy(a: Array, b: Array, c: Array | None) -> Array:
  """Products in which zero times anything is zero."""
  x, y = _f(a).astype(np.float64), _f(b).astype(np.float64)
  with np.errstate(all="ignore"):
    product = np.where((x == 0) | (y == 0), 0.0, x * y)
    return _u((product if c is None else product + _f(c)).astype(np.float32))


def _cube(x: Array, y: Array, z: Array) -> list[Array]:
  """(face, s, t, twice the major axis) of a direction."""
  ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
  onz, ony = (az >= ax) & (az >= ay), ay >= ax
  with np.errstate(all="ignore"):
    face = np.where(onz, np.where(z < 0, 5, 4), np.where(ony, np.where(y < 0, 3, 2), np.where(x < 0, 1, 0)))
    s = np.where(onz, np.where(z < 0, -x, x), np.where(ony, x, np.where(x < 0, z, -z)))
    t = np.where(onz, -y, np.where(ony, np.where(y < 0, -z, z), -y))
    major = np.where(onz, z, np.where(ony, y, x)) * np.float32(2)
  return [face.astype(np.float32), s.astype(np.float32), t.astype(np.float32), major.astype(np.float32)]


def _fdot2(x: list[Array]) -> list[Array]:
  a, b = (_h(v).astype(np.float64).reshape(-1, 2) for v in x[:2])
  return [_u(((a * b).sum(axis=1) + _f(x[2])).astype(np.float32))]


def _fdot2_half(x: list[Array]) -> list[Array]:
  a, b = (_h(v).astype(np.float64).reshape(-1, 2) for v in x[:2])
  return [_u(((a * b).sum(axis=1) + _h(x[2])).astype(np.float16))]


def cross_lane() -> Iterator[Case]:
  """Values that move between the lanes of a wave of 32."""
  one = ("i32",)
  yield intrinsic("ds.bpermute", "i32", ("i32", "i32"), lambda x: [np.take_along_axis(
    x[1].reshape(-1, 32), (x[0].reshape(-1, 32) >> U32(2) & U32(31)).astype(np.int64), axis=1).reshape(-1)])
  yield Case("amdgcn_ds_permute", one, one, "%j = xor i32 %i, 9\n  %k = mul i32 %j, 4\n  "
             "%r = call i32 @llvm.amdgcn.ds.permute(i32 %k, i32 %a)", "declare i32 @llvm.amdgcn.ds.permute(i32, i32)",
             witness=_lanes(lambda k: k ^ 9, 32))
  for name, offset, source in (
    ("xor", 0x1F | 5 << 10, lambda k: k ^ 5), ("and_or", 0x18 | 3 << 5, lambda k: k & 0x18 | 3),
    ("quad", 0x8000 | 0x1B, lambda k: (k & ~3) | (3 - (k & 3))), ("rotate", 0xC000 | 3 << 5, lambda k: (k + 3) % 32),
  ):
    yield intrinsic("ds.swizzle", "i32", one, _lanes(source, 32), extra=[f"i32 {offset}"], label=f"ds_swizzle_{name}")
  for name, control, source in (
    ("quad", 0x1B, lambda k: (k & ~3) | (3 - (k & 3))), ("mirror", 0x140, lambda k: (k & ~15) | (15 - (k & 15))),
    ("half_mirror", 0x141, lambda k: (k & ~7) | (7 - (k & 7))), ("ror", 0x123, lambda k: (k & ~15) | ((k - 3) & 15)),
    ("share", 0x152, lambda k: (k & ~15) | 2), ("xmask", 0x165, lambda k: k ^ 5),
  ):
    yield intrinsic("update.dpp", "i32", ("i32", "i32"), _after(_lanes(source, 32), 1),
                    extra=[f"i32 {control}", "i32 15", "i32 15", "i1 false"], suffix="i32", label=f"dpp_{name}")
    yield Case(f"amdgcn_dpp_add_{name}", ("i32",), ("i32",),
               f"%x = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %a, i32 {control}, i32 15, i32 15, i1 "
               f"true)\n  "
               "%r = add i32 %x, %a", "declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)",
               witness=_joined(_lanes(source, 32), np.add))
    yield Case(f"amdgcn_dpp_fmul_{name}", ("float",), ("float",), "%y = bitcast float %a to i32\n  "
               f"%x = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %y, i32 {control}, i32 15, i32 15, i1 "
               f"true)\n  "
               "%z = bitcast i32 %x to float\n  %r = fmul float %z, %a",
               "declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)",
               witness=_joined(_lanes(source, 32), _product), fill=numbers)
  for name, control, distance in (("shr", 0x112, -2), ("shl", 0x103, 3)):
    for bound in ("false", "true"):
      def shifted(x: list[Array], d: int = distance, keep: bool = bound == "false") -> list[Array]:
        rows, old = x[1].reshape(-1, 16), x[0].reshape(-1, 16)
        out = old.copy() if keep else np.zeros_like(old)
        if d < 0: out[:, -d:] = rows[:, :d]
        else: out[:, :-d] = rows[:, d:]
        return [out.reshape(-1)]
      yield intrinsic("update.dpp", "i32", ("i32", "i32"), shifted, suffix="i32", label=f"dpp_{name}_{bound}",
                      extra=[f"i32 {control}", "i32 15", "i32 15", f"i1 {bound}"])

  def masked(x: list[Array]) -> list[Array]:
    moved = _lanes(lambda k: k ^ 5, 32)([x[1]])[0].reshape(-1, 2, 4, 4)
    out = x[0].reshape(-1, 2, 4, 4).copy()
    out[:, 1, 1:3] = moved[:, 1, 1:3]
    return [out.reshape(-1)]
  yield intrinsic("update.dpp", "i32", ("i32", "i32"), masked, suffix="i32", label="dpp_masks",
                  extra=[f"i32 {0x165}", "i32 2", "i32 6", "i1 false"])
  pattern = [7, 2, 0, 5, 4, 1, 3, 6]
  code = sum(p << 3 * k for k, p in enumerate(pattern))
  yield intrinsic("mov.dpp8", "i32", one, _lanes(lambda k: (k & ~7) | pattern[k & 7], 32), extra=[f"i32 {code}"],
                  suffix="i32")
  order = [3, 15, 0, 7, 8, 1, 2, 14, 9, 9, 4, 12, 11, 5, 6, 10]
  halves = [sum(p << 4 * k for k, p in enumerate(order[h:h + 8])) for h in (0, 8)]
  signed = [v - (1 << 32) if v >> 31 else v for v in halves]
  yield intrinsic("permlane16", "i32", ("i32", "i32"), lambda x: _lanes(lambda k: (k & ~15) | order[k & 15],
    32)([x[1]]),
                  extra=[f"i32 {signed[0]}", f"i32 {signed[1]}", "i1 false", "i1 false"], suffix="i32")
  yield intrinsic("permlanex16", "i32", ("i32", "i32"), lambda x: _lanes(lambda k: (~k & 16) | order[k & 15],
    32)([x[1]]),
                  extra=[f"i32 {signed[0]}", f"i32 {signed[1]}", "i1 false", "i1 false"], suffix="i32")
  yield intrinsic("permlane64", "i32", one, _lanes(lambda k: k ^ 32, 64), suffix="i32", label="permlane64_w64",
                  attributes='"target-features"="+wavefrontsize64"')
  yield intrinsic("readlane", "i32", one, _lanes(lambda k: 5, 32), extra=["i32 5"], suffix="i32")
  yield intrinsic("readfirstlane", "i32", one, _lanes(lambda k: 0, 32), suffix="i32")
  yield Case("amdgcn_readfirstlane_branch", one, one, "%o = and i32 %i, 3\n  %c0 = icmp eq i32 %o, 2\n  "
             "br i1 %c0, label %x, label %m\nx:\n  %v = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %a)\n  br label "
             "%m\nm:\n  "
             "%r = phi i32 [%v, %x], [%a, %body]", "declare i32 @llvm.amdgcn.readfirstlane.i32(i32)",
             witness=lambda x: [np.where(np.arange(len(x[0])) & 3 == 2, _lanes(lambda k: 2, 32)([x[0]])[0], x[0])])

  def written(x: list[Array]) -> list[Array]:
    out = x[1].reshape(-1, 32).copy()
    out[:, 3] = x[0].reshape(-1, 32)[:, 0]
    return [out.reshape(-1)]
  yield Case("amdgcn_writelane", ("i32", "i32"), one, "%u = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %a)\n  "
             "%r = call i32 @llvm.amdgcn.writelane.i32(i32 %u, i32 3, i32 %b)",
             "declare i32 @llvm.amdgcn.readfirstlane.i32(i32)\ndeclare i32 @llvm.amdgcn.writelane.i32(i32, i32, i32)",
             witness=written)
  for size in (32, 64):
    def ballot(x: list[Array], n: int = size) -> list[Array]:
      bits = (x[0] & 1).reshape(-1, n).astype(U64) << np.arange(n, dtype=U64)
      return [np.repeat(bits.sum(axis=1, dtype=U64), n)]
    yield Case(f"amdgcn_ballot_{size}", ("i1",), ("i64",), f"%v = call i{size} @llvm.amdgcn.ballot.i{size}(i1 %a)\n  "
               + ("%r = zext i32 %v to i64" if size == 32 else "%r = freeze i64 %v"),
               f"declare i{size} @llvm.amdgcn.ballot.i{size}(i1)", witness=ballot,
               attributes='"target-features"="+wavefrontsize64"' if size == 64 else "")
  reductions: dict[str, Any] = {
    "umin": np.minimum, "umax": np.maximum, "min": np.minimum, "max": np.maximum, "add": np.add, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor}
  for name, function in reductions.items():
    def reduced(x: list[Array], f: Any = function, s: bool = name in ("min", "max")) -> list[Array]:
      v = (x[0].view(np.int32) if s else x[0]).reshape(-1, 32)
      return [np.repeat(f.reduce(v, axis=1).astype(v.dtype), 32).view(U32)]
    yield intrinsic(f"wave.reduce.{name}", "i32", one, reduced, extra=["i32 0"], suffix="i32")
  yield Case("amdgcn_lane_id", one, one, "%l = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)\n  "
             "%h = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %l)\n  %r = add i32 %h, %a",
             "declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)\ndeclare i32 @llvm.amdgcn.mbcnt.hi(i32, i32)",
             witness=lambda x: [x[0] + (np.arange(len(x[0])) % 64).astype(U32)],
             attributes='"target-features"="+wavefrontsize64"')


def all_intrinsics() -> list[Case]:
  """All cases of this module."""
  return [*arithmetic(), *floating(), *cross_lane()]
