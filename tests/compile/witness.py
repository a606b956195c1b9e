"""A witness for the compiler's tests: tensor graphs evaluated in NumPy, node by node; programs run on the host through
llvmlite alone."""
from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence

import llvmlite.binding as llvm
import numpy as np

from tests.scattering import scattered
from tinyhw.compile import ProgramSpec, compile_kernel, schedule
from tinyhw.compile.render.base import Renderer
from tinyhw.devices.buffer import buffer_of
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.uop import Ops, UOp
from tinyhw.tensor.tensor import Tensor

UFUNC = {Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MAX: np.maximum,
         Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal, Ops.AND: np.bitwise_and,
         Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor, Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.SIN: np.sin,
         Ops.SQRT: np.sqrt, Ops.TRUNC: np.trunc, Ops.NEG: np.negative, Ops.RECIP: lambda a: a.dtype.type(1) / a}
REDUCE = {Ops.ADD: np.sum, Ops.MUL: np.prod, Ops.MAX: np.max}
_loaded = itertools.count()
_jit: list = []


def evaluate(root: UOp, memory: dict[UOp, np.ndarray]) -> np.ndarray:
  """The value of a tensor graph; `memory` holds the flat arrays of BUFFERs."""
  done: dict[UOp, np.ndarray] = {}
  with np.errstate(all="ignore"):
    for u in root.toposort(): done[u] = _one(u, [done[s] for s in u.src], memory)
  return done[root]


def _one(u: UOp, src: list, memory: dict[UOp, np.ndarray]) -> np.ndarray:
  op = u.op
  if op is Ops.DEVICE: return np.zeros(0)
  if op is Ops.BUFFER: return memory[u]
  if op is Ops.CONST: return np.array(u.arg, u.dtype.numpy)
  if op is Ops.RESHAPE: return src[0].reshape(u.arg)
  if op is Ops.PERMUTE: return src[0].transpose(u.arg)
  if op is Ops.EXPAND: return np.broadcast_to(src[0], u.arg)
  if op is Ops.PAD: return np.pad(src[0], u.arg)
  if op is Ops.SHRINK: return src[0][tuple(slice(*b) for b in u.arg)]
  if op is Ops.FLIP: return src[0][tuple(slice(None, None, -1 if f else 1) for f in u.arg)]
  if op is Ops.REDUCE_AXIS:
    kind = np.float64 if u.dtype.is_float else u.dtype.numpy
    return REDUCE[u.arg[0]](src[0].astype(kind), axis=u.arg[1], keepdims=True).astype(u.dtype.numpy)
  if op in (Ops.CONTIGUOUS, Ops.COPY, Ops.DETACH, Ops.GATHER): return src[0]
  if op is Ops.SCATTER: return scattered(u.arg, *src)
  if op is Ops.BITCAST: return np.ascontiguousarray(src[0]).view(u.dtype.numpy)
  if op is Ops.WHERE: return np.where(*src)
  if op is Ops.CAST or op in (Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR): return _elements(u, src)
  return np.asarray(UFUNC[op](*src), u.dtype.numpy)


def _elements(u: UOp, src: list) -> np.ndarray:
  def one(*values: np.generic) -> object:
    numbers = [v.item() for v in values]
    if u.op is Ops.CAST: return semantics.cast(numbers[0], u.src[0].dtype, u.dtype)
    return semantics.alu(u.op, u.src[0].dtype, *numbers)
  out = np.empty(src[0].shape, u.dtype.numpy)
  for i in np.ndindex(*src[0].shape): out[i] = one(*(s[i] for s in src))
  return out


def memory_type(dtype: DType) -> np.dtype:
  """The NumPy type of a buffer; a float that NumPy has not as its bits."""
  return dtype.numpy if dtype.numpy is not None else np.dtype(f"u{dtype.itemsize}")


def launch_host(program: ProgramSpec, arrays: Sequence[np.ndarray]) -> None:
  """Runs a program for the host on flat arrays."""
  if not _jit:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)
    _jit.append(llvm.create_lljit_compiler(machine, use_jit_link=True))
  builder = llvm.JITLibraryBuilder().add_object_img(program.binary).export_symbol(program.name)
  if stretches := f"{program.name}.scratch".encode() in program.binary: builder.export_symbol(f"{program.name}.scratch")
  library = builder.link(_jit[0], f"{program.name}.{next(_loaded)}")
  if stretches:
    # In two parts, the later one first, and in memory with garbage: stretches are computed in any order.
    scratch = aligned(np.full(ctypes.c_int64.from_address(library[f"{program.name}.scratch"]).value + 64, 77, np.uint8))
    shared = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)(
      library[program.name])
    arguments, middle = np.array([a.ctypes.data for a in arrays], np.int64), program.grid[0] // 2
    for first, last in ((middle, program.grid[0]), (0, middle)):
      if first < last: shared(arguments.ctypes.data, first, last, scratch.ctypes.data)
    return
  assert program.grid == program.block == (1, 1, 1)
  function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(library[program.name])
  function(*[a.ctypes.data for a in arrays])


def realize(outputs: Sequence[UOp], memory: dict[UOp, np.ndarray], renderer: Renderer, launch=launch_host,
            opts=None) -> list[np.ndarray]:
  """Schedules, compiles and runs graphs; the outputs' values. New BUFFERs are added to `memory`."""
  work = schedule(outputs)
  for item in work:
    for b in item.buffers:
      # An allocator's alignment, with garbage in it: a kernel must not count on zeros.
      if b not in memory: memory[b] = aligned(np.full(max(b.arg.size, 1), 77).astype(memory_type(b.dtype)))
    if item.ast.op is Ops.COPY: memory[item.buffers[0]][:] = memory[item.buffers[1]]
    else:
      program = compile_kernel(item.ast, renderer, opts)
      launch(program, [memory[item.buffers[i]] for i in program.buffer_order])
  return [evaluate(work.becomes.get(u, u), memory) for u in outputs]


def realized(tensor: Tensor, renderer: Renderer, launch=launch_host) -> np.ndarray:
  """The value of a Tensor whose kernels are made for a target and launched by a function."""
  memory: dict[UOp, np.ndarray] = {}
  for u in tensor.uop.toposort():
    if u.op is not Ops.BUFFER: continue
    memory[u] = aligned(np.empty(u.arg.size, memory_type(u.dtype)))
    buffer_of(u).copyout(memoryview(memory[u]).cast("B"))
  return realize([tensor.uop], memory, renderer, launch)[0]


def aligned(array: np.ndarray) -> np.ndarray:
  """A copy that begins at a multiple of 64 bytes."""
  raw = np.empty(array.nbytes + 64, np.uint8)
  start = -raw.ctypes.data % 64
  out = raw[start:start + array.nbytes].view(array.dtype)
  out[:] = array
  return out


def buffer(array: np.ndarray, memory: dict[UOp, np.ndarray], dtype: DType | None = None) -> UOp:
  """A BUFFER with the array's values, in its shape."""
  u = UOp.new_buffer("TEST", array.size, dtype or dtypes.from_numpy(array.dtype))
  memory[u] = aligned(np.ascontiguousarray(array).reshape(-1))
  return u.reshape(array.shape)


def matmul(a: UOp, b: UOp) -> UOp:
  """(m, k) by (k, n)."""
  (m, k), n = a.shape, b.shape[1]
  left = a.reshape((m, 1, k)).expand((m, n, k))
  right = b.permute((1, 0)).reshape((1, n, k)).expand((m, n, k))
  return (left * right).reduce(Ops.ADD, (2,)).reshape((m, n))
