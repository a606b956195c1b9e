"""The types of graphs and programs: which ops a stage has, and what each takes. Violations raise SpecError.

`check_tensor`, `check_kernel` and `check_linear` say in code what `tinyhw.ir.uop` says in words. Each names the op and
the reason. The scheduler and the compiler check what they are given and what they make.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tinyhw.core.errors import Error
from tinyhw.ir import semantics
from tinyhw.ir.dtype import AddressSpace, PtrDType, dtypes
from tinyhw.ir.matrix import TileProduct
from tinyhw.ir.uop import Axis, GroupOp, Ops, ScatterArg, UOp

Check = Callable[[UOp], "str | None"]
Table = dict[Ops, Check]


class SpecError(Error, ValueError):
  """A UOp is not what its stage allows. `uop` is the node."""

  def __init__(self, uop: UOp, reason: str, stage: str) -> None:
    self.uop = uop
    super().__init__(f"{uop.op.name} of {uop.dtype}: {reason}", where=stage)


def _sources(u: UOp, *counts: int) -> str | None:
  if len(u.src) in counts: return None
  return f"takes {' or '.join(map(str, counts))} sources, not {len(u.src)}"


def _same(u: UOp) -> str | None:
  """One source of the node's own dtype."""
  if (wrong := _sources(u, 1)): return wrong
  return None if u.src[0].dtype is u.dtype else f"its source is {u.src[0].dtype}"


def _alike(u: UOp) -> str | None:
  """An odd number of sources of the node's own dtype and shape."""
  if len(u.src) % 2 == 0: return f"takes a value, and pairs of sources behind it, not {len(u.src)} sources"
  if any(s.dtype is not u.dtype for s in u.src): return f"its sources are {', '.join(repr(s.dtype) for s in u.src)}"
  return None if all(s.shape == u.shape for s in u.src) else "its sources have different shapes"


def _scalar(u: UOp) -> str | None:
  if isinstance(u.dtype, PtrDType) or u.dtype is dtypes.void: return "is no value"
  return None if u.dtype.count == 1 else "is a vector"


def _const(u: UOp) -> str | None:
  if (wrong := _scalar(u)): return wrong
  if not isinstance(u.arg, (bool, int, float)): return f"its arg {u.arg!r} is no number"
  if any(s.op is not Ops.DEVICE for s in u.src) or len(u.src) > 1: return "takes a DEVICE or nothing"
  kept = semantics.canonical(u.arg, u.dtype) if u.arg == u.arg or u.dtype.is_float else None
  if type(kept) is not type(u.arg) or kept != u.arg and u.arg == u.arg: return f"{u.arg!r} is not a number of its dtype"
  return None


def _variable(u: UOp) -> str | None:
  if u.dtype is not dtypes.int32 or any(s.op is not Ops.CONST for s in u.src): return "is an int32 of no other value"
  name, low, high = u.arg
  return None if isinstance(name, str) and low <= high else f"bounds {low}..{high} are empty"


def _value(u: UOp) -> str | None:
  return "is no value" if isinstance(u.dtype, PtrDType) or u.dtype is dtypes.void else None


def _cast(u: UOp) -> str | None:
  if (wrong := _sources(u, 1) or _value(u) or _value(u.src[0])): return wrong
  a, b = u.src[0].dtype.count, u.dtype.count
  return None if a == b else f"{a} lanes give {b}"


def _bitcast(u: UOp) -> str | None:
  if (wrong := _cast(u)): return wrong
  a, b = u.src[0].dtype.scalar.itemsize, u.dtype.scalar.itemsize
  return None if a == b else f"{a} bytes cannot be read as {b}"


def _alu(u: UOp) -> str | None:
  op, dtype = u.op, u.dtype
  count = 1 if op in GroupOp.UNARY else 2 if op in GroupOp.BINARY else 3
  if (wrong := _sources(u, count) or _value(u)): return wrong
  if any(s.dtype.count != dtype.count for s in u.src): return f"lanes {', '.join(str(s.dtype.count) for s in u.src)}"
  operands = u.src
  if op is Ops.WHERE:
    if not u.src[0].dtype.is_bool: return f"its condition is {u.src[0].dtype}"
    operands = u.src[1:]
  if op in (Ops.SHL, Ops.SHR):
    if not u.src[1].dtype.is_int: return f"its count is {u.src[1].dtype}"
    operands = u.src[:1]
  kinds = {s.dtype for s in operands}
  if len(kinds) > 1: return f"its operands are {', '.join(str(s.dtype) for s in operands)}"
  operand = operands[0].dtype
  expected = dtypes.bool.vec(dtype.count) if op in GroupOp.COMPARE else operand
  if dtype is not expected: return f"operands of {operand} give {expected}"
  if op in GroupOp.FLOAT_ONLY and not operand.is_float: return "is for floats"
  if op in GroupOp.INT_ONLY and not operand.is_int: return "is for integers"
  if op in GroupOp.BITWISE and operand.is_float: return "is for integers and bools"
  if op is Ops.NEG and operand.is_bool: return "is for numbers"
  return None


def _reduce_axis(u: UOp) -> str | None:
  if (wrong := _same(u)): return wrong
  op, axes = u.arg
  if op not in GroupOp.REDUCING: return f"{op} is not ADD, MUL or MAX"
  return None if tuple(sorted(set(axes))) == axes else f"axes {axes} are not in order"


def _buffer(u: UOp) -> str | None:
  if (wrong := _sources(u, 0) or _scalar(u)): return wrong
  return None if u.arg.size >= 0 and isinstance(u.arg.device, str) else f"arg {u.arg}"


def _assign_tensor(u: UOp) -> str | None:
  if (wrong := _sources(u, 2)): return wrong
  target, value = u.src
  if target.dtype is not value.dtype or u.dtype is not target.dtype: return f"{value.dtype} into {target.dtype}"
  while target.op is not Ops.BUFFER:
    if target.op not in (Ops.ASSIGN, Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP):
      return f"its target is {target.op.name}, not a view of a BUFFER"
    target = target.src[0]
  return None


def _rows_alike(axis: int, *of: UOp) -> str | None:
  """All axes but one are of one size each."""
  shapes = [s.shape for s in of]
  if not 0 <= axis < len(shapes[0]): return f"along axis {axis} of shape {shapes[0]}"
  rest = {(*s[:axis], *s[axis + 1:]) for s in shapes}
  alike = len(rest) == 1 and len({len(s) for s in shapes}) == 1
  return None if alike else f"of shapes {', '.join(map(str, shapes))}"


def _gather(u: UOp) -> str | None:
  if (wrong := _sources(u, 3)): return wrong
  x, table, index = u.src
  if x.dtype is not u.dtype or table.dtype is not u.dtype or not index.dtype.is_int:
    return f"of {x.dtype} and {table.dtype} by {index.dtype}"
  if x.shape != index.shape: return f"shape {x.shape} of {index.shape}"
  return _rows_alike(u.arg, x, table, index)


def _scatter_parts(u: UOp, table: UOp, index: UOp, value: UOp) -> str | None:
  if not isinstance(u.arg, ScatterArg): return f"its arg {u.arg!r} is no ScatterArg"
  if u.arg.op not in (None, Ops.ADD, Ops.MUL, Ops.MAX): return f"{u.arg.op} is not ADD, MUL or MAX"
  if u.arg.before and u.arg.unique: return "what was before needs an order"
  if u.arg.whole and (not u.arg.unique or u.arg.op is not None): return "whole but combined, or not unique"
  base = table.dtype.base if isinstance(table.dtype, PtrDType) else table.dtype
  if index.dtype is not dtypes.int32 or value.dtype is not base:
    return f"{value.dtype} into {base} by {index.dtype}"
  if index.shape != value.shape: return f"{value.shape} by {index.shape}"
  return _rows_alike(u.arg.axis, table, index, value)


def _scatter(u: UOp) -> str | None:
  if (wrong := _sources(u, 3)): return wrong
  return _scatter_parts(u, *u.src) or (None if u.dtype is u.src[0].dtype else f"of {u.src[0].dtype}")


def _void(u: UOp) -> str | None: return None if u.dtype is dtypes.void else "is void"


def _text_arg(u: UOp) -> str | None:
  return None if isinstance(u.arg, str) and u.arg else f"its arg {u.arg!r} is no name"


def _of_scalars(check: Check) -> Check: return lambda u: _scalar(u) or check(u)


_values: Table = {Ops.CONST: _const, Ops.DEFINE_VAR: _variable, Ops.CAST: _cast, Ops.BITCAST: _bitcast,
                  **{op: _alu for op in GroupOp.ALU}}
_moves: Table = {**{op: _same for op in GroupOp.MOVEMENT}, Ops.REDUCE_AXIS: _reduce_axis}

TENSOR: Table = {
  **{op: _of_scalars(check) for op, check in _values.items()}, **_moves,
  Ops.DEVICE: lambda u: _sources(u, 0) or _void(u) or _text_arg(u),
  Ops.BUFFER: _buffer,
  Ops.CONTIGUOUS: _same,
  Ops.DETACH: lambda u: _same(u) if len(u.src) == 1 else None if u.arg == "one way" else _alike(u),
  Ops.COPY: lambda u: _same(u) or _text_arg(u),
  Ops.ASSIGN: _assign_tensor, Ops.GATHER: _gather, Ops.SCATTER: _scatter,
  Ops.SINK: _void,
}


def _pointer(u: UOp, space: AddressSpace) -> str | None:
  if (wrong := _sources(u, 0)): return wrong
  if not isinstance(u.dtype, PtrDType): return "is a pointer"
  if u.dtype.space is not space: return f"points to {u.dtype.space.value} memory"
  return None if u.dtype.size >= 0 else "its pointer has no size"


def _global(u: UOp) -> str | None:
  space = AddressSpace.IMAGE if _is_image(u) else AddressSpace.GLOBAL
  return _pointer(u, space) or (None if isinstance(u.arg, int) and u.arg >= 0 else f"number {u.arg!r}")


def _view(u: UOp) -> str | None:
  if (wrong := _same(u)): return wrong
  return None if u.src[0].op is Ops.DEFINE_GLOBAL else f"of {u.src[0].op.name}"


def _load_view(u: UOp) -> str | None:
  if (wrong := _sources(u, 1)): return wrong
  view = u.src[0]
  if view.op is not Ops.VIEW: return f"of {view.op.name}, not of a VIEW"
  return None if isinstance(view.dtype, PtrDType) and view.dtype.base is u.dtype else f"from {view.dtype}"


def _store_view(u: UOp) -> str | None:
  if (wrong := _sources(u, 2) or _void(u)): return wrong
  view, value = u.src
  if view.op is not Ops.VIEW: return f"to {view.op.name}, not to a VIEW"
  if not isinstance(view.dtype, PtrDType) or view.dtype.base is not value.dtype: return f"{value.dtype} to {view.dtype}"
  if any(v.mask is not None for v in view.arg.views): return "to a VIEW with a mask"
  return None if view.shape == value.shape else f"shape {value.shape} to {view.shape}"


def _kernel_sink(u: UOp) -> str | None:
  if not u.src: return "stores nothing"
  if any(s.op is Ops.SCATTER for s in u.src) and len(u.src) > 1: return "of a SCATTER and others"
  return _void(u) or next((f"of {s.op.name}, not of STOREs" for s in u.src if s.op not in (Ops.STORE, Ops.SCATTER)),
                          None)


def _scatter_view(u: UOp) -> str | None:
  if (wrong := _sources(u, 3, 4) or _void(u) or _scatter_parts(u, *u.src[:3])): return wrong
  if u.arg.before is not (len(u.src) == 4): return f"{len(u.src)} sources, {u.arg}"
  views = (u.src[0], *u.src[3:])
  if any(v.op is not Ops.VIEW or any(w.mask is not None for w in v.arg.views) for v in views): return "to no plain VIEW"
  return None if all(v.shape == u.src[1].shape for v in views[1:]) else f"{views[1].shape} of {u.src[1].shape}"


_kernel_values: Table = {**_values, Ops.CONST: lambda u: _const(u) or _sources(u, 0),
                         Ops.DEFINE_VAR: lambda u: _variable(u) or _sources(u, 0)}


KERNEL: Table = {
  **{op: _of_scalars(check) for op, check in _kernel_values.items()}, **_moves,
  Ops.DEFINE_GLOBAL: _global, Ops.VIEW: _view, Ops.LOAD: _load_view, Ops.STORE: _store_view, Ops.SINK: _kernel_sink,
  Ops.SCATTER: _scatter_view,
}


def _special(u: UOp) -> str | None:
  if u.dtype is not dtypes.index or any(s.dtype is not dtypes.index for s in u.src): return "counts in int32"
  if len(u.src) > 1: return "takes one end or none"
  name, size = u.arg
  if name[:4] not in ("gidx", "lidx") or name[4:] not in ("0", "1", "2"): return f"no index is called {name!r}"
  return None if size >= 1 else f"size {size}"


def _range(u: UOp) -> str | None:
  if (wrong := _sources(u, 1)): return wrong
  if u.dtype is not dtypes.index or u.src[0].dtype is not dtypes.index: return "counts in int32"
  if u.src[0].vmax < 1: return "never runs"
  kind = u.arg.kind
  return None if kind in (Axis.LOOP, Axis.REDUCE, Axis.ORDER) else f"a range of kind {kind.value} is no loop"


def _end(u: UOp) -> str | None:
  return _sources(u, 1) or _void(u) or (None if u.src[0].op is Ops.RANGE else f"of {u.src[0].op.name}")


def _assign_register(u: UOp) -> str | None:
  if (wrong := _sources(u, 2)): return wrong
  if u.src[0].op is not Ops.DEFINE_ACC: return f"to {u.src[0].op.name}, not to a DEFINE_ACC"
  return None if u.dtype is u.src[0].dtype is u.src[1].dtype else f"{u.src[1].dtype} to {u.src[0].dtype}"


def _index(u: UOp) -> str | None:
  if (wrong := _sources(u, 2, 3)): return wrong
  if u.src[0].op not in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL): return f"into {u.src[0].op.name}"
  if u.dtype is not u.src[0].dtype: return f"into {u.src[0].dtype}"
  if u.src[1].dtype.scalar is not dtypes.index: return f"by {u.src[1].dtype}"
  if len(u.src) == 3 and not u.src[2].dtype.is_bool: return f"gated by {u.src[2].dtype}"
  if _is_image(u): return None if u.src[1].dtype.count == 2 else "into an image, not by column and row"
  if len({s.dtype.count for s in u.src[1:]} - {1}) > 1: return f"at {u.src[1].dtype} gated by {u.src[2].dtype}"
  return None


def _is_image(u: UOp) -> bool: return isinstance(u.dtype, PtrDType) and u.dtype.space is AddressSpace.IMAGE


def _lanes(index: UOp, value: UOp) -> str | None:
  """A vector INDEX, and a vector gate, have as many lanes as what is moved."""
  if _is_image(index): return None if value.dtype.count == 4 else f"{value.dtype} as a pixel"
  count = max(s.dtype.count for s in index.src[1:])
  return None if count in (1, value.dtype.count) else f"{value.dtype} at {count} places"


def _load(u: UOp) -> str | None:
  rest = u.src[1:-1] if u.src and u.src[-1].op is Ops.BARRIER else u.src[1:]
  if not u.src or u.src[0].op is not Ops.INDEX: return "not of an INDEX"
  index = u.src[0]
  if not isinstance(index.dtype, PtrDType) or index.dtype.base is not u.dtype.scalar: return f"from {index.dtype}"
  if len(rest) != (len(index.src) == 3): return "takes a value for a False gate exactly where the INDEX has a gate"
  if (wrong := _lanes(index, u)): return wrong
  return None if all(s.dtype is u.dtype for s in rest) else f"its value for a False gate is {rest[0].dtype}"


def _store(u: UOp) -> str | None:
  if (wrong := _sources(u, 2) or _void(u)): return wrong
  index, value = u.src
  if index.op is not Ops.INDEX or not isinstance(index.dtype, PtrDType): return f"to {index.op.name}, not to an INDEX"
  if index.dtype.base is not value.dtype.scalar: return f"{value.dtype} to {index.dtype}"
  return _lanes(index, value)


def _barrier(u: UOp) -> str | None:
  return _void(u) or next((f"of {s.op.name}, not of STOREs" for s in u.src if s.op is not Ops.STORE), None)


def _vectorize(u: UOp) -> str | None:
  if len(u.src) != u.dtype.count: return f"of {len(u.src)} scalars"
  return next((f"of {s.dtype}" for s in u.src if s.dtype is not u.dtype.scalar), None)


def _gep(u: UOp) -> str | None:
  if (wrong := _sources(u, 1)): return wrong
  if u.dtype is not u.src[0].dtype.scalar.vec(len(u.arg)): return f"{len(u.arg)} lanes of {u.src[0].dtype}"
  return None if all(0 <= lane < u.src[0].dtype.count for lane in u.arg) else f"lanes {u.arg} of {u.src[0].dtype}"


def _not_memory_only(check: Check) -> Check:
  def checked(u: UOp) -> str | None:
    base = u.dtype.base if isinstance(u.dtype, PtrDType) else u.dtype.scalar
    if (stored := base.bits_type) is None: return check(u)
    return f"{base.name} does not occur here: its memory is {stored.name}"
  return checked


def _wmma(u: UOp) -> str | None:
  if (wrong := _sources(u, 3) or _text_arg(u)): return wrong
  a, b, c = u.src
  if a.dtype.scalar is not b.dtype.scalar: return f"of {a.dtype} and {b.dtype}"
  return None if u.dtype is c.dtype else f"adds to {c.dtype}"


def _wgmma(u: UOp) -> str | None:
  if (wrong := _sources(u, 4)): return wrong
  if not isinstance(u.arg, TileProduct): return f"of {u.arg!r}, no TileProduct"
  if any(s.op is not Ops.INDEX or len(s.src) != 2 for s in u.src[:2]): return "factors are no INDEXes without a gate"
  memory = u.src[2].dtype
  if u.src[2].op is not Ops.DEFINE_LOCAL or not isinstance(memory, PtrDType): return f"through {u.src[2].op.name}"
  found, wanted = memory.size * memory.base.itemsize, u.arg.local_bytes
  return None if found == wanted else f"{found} bytes of local memory, not {wanted}"


LINEAR: Table = {op: _not_memory_only(check) for op, check in {
  **_kernel_values,
  Ops.DEFINE_GLOBAL: _global,
  Ops.DEFINE_LOCAL: lambda u: _pointer(u, AddressSpace.LOCAL) or _text_arg(u),
  Ops.DEFINE_ACC: _same, Ops.ASSIGN: _assign_register, Ops.SPECIAL: _special, Ops.RANGE: _range, Ops.ENDRANGE: _end,
  Ops.INDEX: _index, Ops.LOAD: _load, Ops.STORE: _store, Ops.BARRIER: _barrier, Ops.VECTORIZE: _vectorize,
  Ops.GEP: _gep, Ops.WMMA: _wmma, Ops.WGMMA: _wgmma,
}.items()}


def _check(nodes: Iterable[UOp], table: Table, stage: str) -> None:
  for u in nodes:
    check = table.get(u.op)
    if check is None: raise SpecError(u, "does not occur at this stage", stage)
    if (reason := check(u)) is not None: raise SpecError(u, reason, stage)


def check_tensor(outputs: Iterable[UOp], known: dict[UOp, None] | None = None) -> None:
  """Every node of a tensor graph. Shapes and devices are derived too, which refuses what does not fit. Nodes in `known`
  were checked before; the rest is added."""
  known = {} if known is None else known
  for root in outputs:
    nodes = root._postorder(lambda u: u not in known)
    _check(nodes, TENSOR, "tensor graph")
    for u in nodes:
      known[u] = None
      try: _ = u.shape, u.device
      except ValueError as error: raise SpecError(u, str(error), "tensor graph") from None


def check_kernel(ast: UOp) -> None:
  """A kernel graph: a SINK of STOREs to VIEWs, or of a SCATTER. A COPY is of buffer 1."""
  if ast.op is Ops.COPY:
    if len(ast.src) != 1 or ast.src[0].op is not Ops.DEFINE_GLOBAL or ast.src[0].arg != 1:
      raise SpecError(ast, "is not of buffer 1", "kernel graph")
    return
  if ast.op is not Ops.SINK: raise SpecError(ast, "is not a SINK", "kernel graph")
  nodes = ast.toposort()
  _check(nodes, KERNEL, "kernel graph")
  for u in nodes:
    try: _ = u.shape
    except ValueError as error: raise SpecError(u, str(error), "kernel graph") from None


def check_linear(uops: Sequence[UOp]) -> None:
  """A linear program: types, sources before users, loops that nest, values used within the loops they are made in (but
  for what an ASSIGN leaves), registers set up outside of the loops that change them."""
  stage = "linear program"
  _check(uops, LINEAR, stage)
  loops: list[UOp] = []
  ended: set[UOp] = set()
  made: dict[UOp, tuple[UOp, ...]] = {}         # node -> the loops open when it was made
  for u in uops:
    if u in made: raise SpecError(u, "stands twice", stage)
    for s in u.src:
      if s not in made: raise SpecError(u, f"its source {s.op.name} does not stand before it", stage)
      if s.op is not Ops.ASSIGN and u.op not in (Ops.ENDRANGE, Ops.BARRIER) and any(r in ended for r in made[s]):
        raise SpecError(u, f"its source {s.op.name} is of a loop that has ended", stage)
    if u.op is Ops.ENDRANGE:
      if not loops or loops[-1] is not u.src[0]: raise SpecError(u, "does not end the innermost loop", stage)
      ended.add(loops.pop())
    if u.op is Ops.RANGE: loops.append(u)
    made[u] = tuple(loops)
  if loops: raise SpecError(loops[-1], "its loop does not end", stage)
