"""The names of all UOps and their families. What each one means stands in `tinyhw.ir.uop`."""
from __future__ import annotations

import enum


class Ops(enum.Enum):
  """The operation of a UOp, for the tensor graph, the kernel graph and the linear program alike."""
  # values without sources
  CONST = enum.auto()
  DEVICE = enum.auto()
  BUFFER = enum.auto()
  DEFINE_VAR = enum.auto()
  # movement (tensor and kernel graph)
  RESHAPE = enum.auto()
  PERMUTE = enum.auto()
  EXPAND = enum.auto()
  PAD = enum.auto()
  SHRINK = enum.auto()
  FLIP = enum.auto()
  VIEW = enum.auto()
  # tensor graph
  REDUCE_AXIS = enum.auto()
  CONTIGUOUS = enum.auto()
  COPY = enum.auto()
  SHARD = enum.auto()
  ASSIGN = enum.auto()
  DETACH = enum.auto()
  GATHER = enum.auto()
  SCATTER = enum.auto()
  # conversions
  CAST = enum.auto()
  BITCAST = enum.auto()
  # unary arithmetic
  EXP2 = enum.auto()
  EXP = enum.auto()
  EXPM1 = enum.auto()
  LOG2 = enum.auto()
  LOG = enum.auto()
  LOG10 = enum.auto()
  LOG1P = enum.auto()
  SIN = enum.auto()
  COS = enum.auto()
  TANH = enum.auto()
  SQRT = enum.auto()
  RECIP = enum.auto()
  NEG = enum.auto()
  TRUNC = enum.auto()
  # binary arithmetic
  ADD = enum.auto()
  SUB = enum.auto()
  MUL = enum.auto()
  FDIV = enum.auto()
  IDIV = enum.auto()
  MOD = enum.auto()
  FMOD = enum.auto()
  POW = enum.auto()
  MAX = enum.auto()
  CMPLT = enum.auto()
  CMPNE = enum.auto()
  CMPEQ = enum.auto()
  AND = enum.auto()
  OR = enum.auto()
  XOR = enum.auto()
  SHL = enum.auto()
  SHR = enum.auto()
  # ternary arithmetic
  WHERE = enum.auto()
  MULACC = enum.auto()
  # programs
  DEFINE_GLOBAL = enum.auto()
  DEFINE_LOCAL = enum.auto()
  DEFINE_ACC = enum.auto()
  SPECIAL = enum.auto()
  RANGE = enum.auto()
  ENDRANGE = enum.auto()
  REDUCE = enum.auto()
  INDEX = enum.auto()
  LOAD = enum.auto()
  STORE = enum.auto()
  BARRIER = enum.auto()
  VECTORIZE = enum.auto()
  GEP = enum.auto()
  WMMA = enum.auto()
  WGMMA = enum.auto()
  SINK = enum.auto()

  def __repr__(self) -> str: return f"Ops.{self.name}"
  # Members are singletons: the identity hash is much cheaper than Enum's hash of the name.
  __hash__ = object.__hash__


class GroupOp:
  """Families of operations."""
  # Functions that a target need not have: `compile.transcendental` writes them in plain arithmetic.
  LIBRARY = frozenset({Ops.EXP2, Ops.EXP, Ops.EXPM1, Ops.LOG2, Ops.LOG, Ops.LOG10, Ops.LOG1P, Ops.SIN, Ops.COS,
                       Ops.TANH, Ops.POW, Ops.FMOD})
  UNARY = (LIBRARY - {Ops.POW, Ops.FMOD}) | {Ops.SQRT, Ops.RECIP, Ops.NEG, Ops.TRUNC}
  COMPARE = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})
  BINARY = COMPARE | {Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR,
                      Ops.SHL, Ops.SHR, Ops.FMOD, Ops.POW}
  TERNARY = frozenset({Ops.WHERE, Ops.MULACC})
  ALU = UNARY | BINARY | TERNARY
  ELEMENTWISE = ALU | {Ops.CAST, Ops.BITCAST}
  MOVEMENT = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.FLIP})
  COMMUTATIVE = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.CMPNE, Ops.CMPEQ, Ops.AND, Ops.OR, Ops.XOR})
  REDUCING = frozenset({Ops.ADD, Ops.MUL, Ops.MAX})
  FLOAT_ONLY = LIBRARY | {Ops.SQRT, Ops.RECIP, Ops.TRUNC, Ops.FDIV}
  INT_ONLY = frozenset({Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR})
  BITWISE = frozenset({Ops.AND, Ops.OR, Ops.XOR})
