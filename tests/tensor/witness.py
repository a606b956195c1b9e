"""What a tensor graph means, in NumPy and node by node: the witness that compiled kernels are held to."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.scattering import scattered
from tinyhw.devices.buffer import buffer_of
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

Array = np.ndarray[Any, np.dtype[Any]]


def to_bf16(x: Array) -> Array:
  """Float32 rounded to bfloat16, kept as float32."""
  bits = np.array(x, np.float32).view(np.uint32).astype(np.uint64)
  rounded = ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)).astype(np.uint32)
  return np.where(np.isnan(x), np.float32(np.nan), rounded.view(np.float32))


def kind(dtype: DType) -> Any:
  return np.dtype(np.float32) if dtype is dtypes.bfloat16 else dtype.numpy


def fit(x: Array, dtype: DType) -> Array:
  return to_bf16(x) if dtype is dtypes.bfloat16 else np.asarray(x).astype(kind(dtype))


def cast(x: Array, source: DType, target: DType) -> Array:
  if target.is_bool: return x != 0
  if source.is_float and target.is_int:
    out = np.zeros(x.shape, kind(target))
    for i, v in np.ndenumerate(x.astype(np.float64)):
      out[i] = 0 if np.isnan(v) else target.max if v >= target.max else target.min if v <= target.min else int(v)
    return out
  return fit(x, target)


def divide(a: Array, b: Array, remainder: bool) -> Array:
  out = np.zeros(a.shape, a.dtype)
  for i in np.ndindex(a.shape):
    x, y = int(a[i]), int(b[i])
    q = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    out[i] = np.array((0 if y == 0 else x - q * y) if remainder else q).astype(a.dtype)
  return out


UNARY = {Ops.EXP2: np.exp2, Ops.EXP: np.exp, Ops.EXPM1: np.expm1, Ops.LOG2: np.log2, Ops.LOG: np.log,
         Ops.LOG10: np.log10, Ops.LOG1P: np.log1p, Ops.SIN: np.sin, Ops.COS: np.cos, Ops.TANH: np.tanh,
         Ops.SQRT: np.sqrt, Ops.RECIP: lambda a: 1 / a, Ops.NEG: np.negative, Ops.TRUNC: np.trunc}
BINARY = {Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MAX: np.maximum,
          Ops.FMOD: np.fmod, Ops.POW: np.power, Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
          Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor,
          Ops.IDIV: lambda a, b: divide(a, b, False), Ops.MOD: lambda a, b: divide(a, b, True),
          Ops.SHL: lambda a, b: a << (b.astype(a.dtype) % (a.dtype.itemsize * 8)),
          Ops.SHR: lambda a, b: a >> (b.astype(a.dtype) % (a.dtype.itemsize * 8))}
REDUCE = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum}


def step(u: UOp, src: list[Array]) -> Array:
  """The value of one node from those of its sources."""
  op, arg = u.op, u.arg
  if op is Ops.CONST: return np.array(arg, kind(u.dtype))
  if op is Ops.BUFFER:
    buffer = buffer_of(u)
    raw = np.frombuffer(bytes(buffer.copyout(memoryview(bytearray(buffer.nbytes)))), np.uint8)
    if u.dtype is dtypes.bfloat16: return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return raw.view(u.dtype.numpy)
  if op is Ops.RESHAPE: return src[0].reshape(arg)
  if op is Ops.PERMUTE: return src[0].transpose(arg)
  if op is Ops.EXPAND: return np.broadcast_to(src[0], arg)
  if op is Ops.PAD: return np.pad(src[0], arg) if arg else src[0]
  if op is Ops.SHRINK: return src[0][tuple(slice(a, b) for a, b in arg)]
  if op is Ops.FLIP: return np.flip(src[0], [i for i, f in enumerate(arg) if f])
  if op is Ops.REDUCE_AXIS:
    if arg[0] is Ops.MAX and not src[0].size: return np.full(u.shape, u.dtype.min, kind(u.dtype))
    return fit(REDUCE[arg[0]].reduce(src[0], axis=arg[1], keepdims=True, dtype=kind(u.dtype)), u.dtype)
  if op in (Ops.CONTIGUOUS, Ops.COPY, Ops.DETACH, Ops.GATHER): return src[0]
  if op is Ops.SCATTER: return scattered(arg, *src)
  if op is Ops.CAST: return cast(src[0], u.src[0].dtype, u.dtype)
  if op is Ops.BITCAST:
    assert dtypes.bfloat16 not in (u.dtype, u.src[0].dtype)
    return np.array(src[0]).view(kind(u.dtype))
  if op is Ops.WHERE: return np.where(src[0], src[1], src[2])
  if op is Ops.MULACC: return fit(src[0] * src[1] + src[2], u.dtype)
  if op in UNARY: return fit(UNARY[op](src[0]), u.dtype)
  return fit(BINARY[op](src[0], src[1]), u.dtype)


def value(root: UOp) -> Array:
  """The value of a graph (bfloat16 as float32)."""
  done: dict[UOp, Array] = {}
  with np.errstate(all="ignore"):
    for u in root.toposort():
      if u.op is not Ops.DEVICE: done[u] = step(u, [done[s] for s in u.src if s.op is not Ops.DEVICE])
  return done[root]
