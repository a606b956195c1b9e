"""Cases of longer axes, of ties, of the gamma function's family, of square matrices, of grids and of sequences."""
from __future__ import annotations

import re

from tests.tensor.operators.cases import Case, In

NAN, INF = float("nan"), float("inf")
CASES: list[Case] = []


def add(name: str, ours: str, *inputs: In, **options: object) -> None:
  if "T.eye(" in ours:      # where the inputs are
    options.setdefault("theirs", ours)
    ours = re.sub(r"(T\.eye\([^()]*)\)", r"\1, device=device)", ours)
  CASES.append(Case(name, ours, inputs, **options))  # type: ignore[arg-type]  # the fields' own types


def whole(shape: tuple[int, ...], low: int, high: int, dtype: str = "int64") -> In:
  """Random positions."""
  return In(shape, dtype, low, high)


# ---- ties: whose gradient it is
TIED = In((3, 4), values=(1.0, 3.0, 3.0, 0.0, 2.0, 2.0, 2.0, 2.0, -1.0, -1.0, 0.0, -0.0))
for text in ("T.amax(a, 1)", "T.amin(a, 0)", "T.amax(a, (0, 1))", "a.max()", "a.min()", "T.maximum(a, a.flip(1))",
             "T.minimum(a, a.flip(0))", "T.fmax(a, a.flip(1))", "T.relu(a)", "T.abs(a)", "T.sign(a) * a",
             "T.clamp(a, 0, 2)", "T.clamp(a, 2, 0)", "T.clamp(a, min=-1)", "T.clamp(a, max=2)", "T.clamp_min(a, 2)",
             "F.hardtanh(a, -1, 2)", "F.relu6(a * 2)", "F.leaky_relu(a)", "F.hardsigmoid(a * 3)", "F.elu(a)",
             "F.softshrink(a, 1)", "F.hardshrink(a, 2)", "F.threshold(a, 2, 7)", "T.sort(a, dim=1, stable=True)[0]",
             "T.median(a)", "T.cummax(a, 1)[0]", "T.cummin(a, 0)[0]", "T.aminmax(a)", "T.aminmax(a, dim=1)",
             "T.copysign(a, a.flip(1))", "a.norm(inf, 1)", "a.norm(1)", "a.norm(2, 1)", "T.logsumexp(a, 1)",
             "F.hardswish(a * 3)", "T.frac(a)", "T.std(a, 1)", "T.prod(a, 1)", "T.cumprod(a, 1)"):
  add(f"ties: {text}", text, TIED)
for name in ("max", "min"):
  add(f"ties: {name} of an axis", f"a.{name}(1), a.{name}(0, True)", TIED,
      theirs=f"a.{name}(1).values, a.{name}(0, True).values")
  add(f"ties: {name} of two", f"T.{name}(a, b)", TIED, In((4,), values=(1.0, 2.0, 3.0, 0.0)))
add("ties: limits that are tensors", "T.clamp(a, b, c)", TIED, In((4,), values=(1.0, 2.0, 0.0, 0.0)),
    In((3, 1), values=(1.0, 2.0, -1.0)))
add("ties: topk, kthvalue", "a.topk(2)[0], a.kthvalue(2, 1)[0]", In((2, 3), values=(1.0, 3.0, 2.0, 5.0, 4.0, 6.0)))
add("NaN: clamp", "T.clamp(a, 0, 1), T.clamp(a, min=0.5)", In((4,), values=(NAN, INF, -INF, 0.5)), backward=False)

# ---- longer axes than are compared with themselves
for shape, dim in (((300,), 0), ((3, 90), 1), ((1100,), 0), ((70, 4), 0)):
  for kind in ("float32", "float16", "int32", "uint8", "int64", "float64"):
    values = In(shape, kind, 0 if kind == "uint8" else -40, 40)
    if kind in ("float32", "int32") or shape == (3, 90):
      add(f"sort {shape} of {kind}",
          f"T.sort(a, dim={dim}, stable=True), T.sort(a, dim={dim}, descending=True, stable=True)", values, loose="int")
    if shape == (3, 90):
      add(f"cumsum 90 of {kind}", "a.cumsum(1)", values, loose="dtype" if kind == "uint8" else "int", rtol=1e-3,
          atol=2e-3, because="sums of 90 in another order")
  add(f"topk {shape}", f"T.topk(a, 3, {dim})[0], T.topk(a, 20, {dim}, largest=False)[0]", In(shape, low=-40, high=40))
  add(f"cummax {shape}", f"T.cummax(a, {dim})", In(shape, low=-40, high=40), loose="int")
  add(f"scans {shape}", f"T.cumsum(a, {dim}), T.logcumsumexp(a, {dim})", In(shape), rtol=1e-4, atol=1e-4,
      because="sums in another order")
add("sort 90 bools", "T.sort(a, dim=0, stable=True)", In((90,), "bool"), loose="int")
add("sort 80 with NaN", "T.sort(a, dim=0, stable=True), T.sort(a, dim=0, descending=True, stable=True)",
    In((80,), values=(NAN, INF, 1.0, -INF, 0.0, -0.0, 2.0, NAN) * 10), loose="int", backward=False)
add("median 81", "T.median(a), T.median(b)", In((81,)), In((90,)))
add("cumprod 70", "T.cumprod(a, 0)", In((70,), low=0.9, high=1.1), rtol=1e-4, because="products in another order")

# ---- reading and writing by index
add("gather 200", "T.gather(a, 1, b)", In((3, 50)), whole((3, 200), 0, 50))
add("gather of nothing", "T.gather(a, 0, b)", In((5,)), In((2, 0), "int64", values=()), backward=False)
add("index_select of a scalar", "T.index_select(a, 0, b)", In(()), In((1,), "int64", values=(0,)))
add("rows of a table", "a[b]", In((9, 5)), whole((4, 3), -9, 9))
add("elements by two tensors", "a[b, :, c]", In((4, 3, 5)), whole((6,), -4, 4), whole((6,), 0, 5))
add("scatter 200", "a.scatter(1, b, c)", In((3, 7)), whole((3, 200), 0, 7), In((3, 200)), backward=False)
add("scatter of a part", "a.scatter(0, b, c)", In((4, 5)), In((2, 3), "int64", values=(3, 1, 0, 2, 0, 1)), In((2, 3)))
for how in ("sum", "prod", "mean", "amax", "amin"):
  for own in (True, False):
    add(f"scatter_reduce {how} {own} 40", f"a.scatter_reduce(1, b, c, '{how}', include_self={own})", In((3, 7)),
        whole((3, 40), 0, 6), In((3, 40), without=0.5, low=-1, high=1), rtol=1e-4, atol=1e-4,
        because="sums and products in another order")
  add(f"scatter_reduce {how} of int32", f"a.scatter_reduce(0, b, c, '{how}')", In((5,), "int32", -9, 9),
      whole((9,), 0, 5), In((9,), "int32", -9, 9), backward=False)
add("scatter_reduce amax of equal ones", "a.scatter_reduce(0, b, c, 'amax')", In((3,), values=(1.0, 2.0, 0.0)),
    In((5,), "int64", values=(0, 0, 1, 1, 2)), In((5,), values=(1.0, 1.0, 2.0, 3.0, -1.0)))
add("scatter_reduce prod of zeros", "a.scatter_reduce(0, b, c, 'prod')", In((3,), values=(0.0, 2.0, 3.0)),
    In((6,), "int64", values=(0, 1, 1, 2, 2, 2)), In((6,), values=(4.0, 0.0, 5.0, 0.0, 0.0, 6.0)))
add("index_add 90", "a.index_add(0, b, c)", In((7, 3)), whole((90,), 0, 7), In((90, 3)), rtol=1e-4, atol=1e-5,
    because="sums in another order")
add("index_put 30", "a.index_put((b, c), d, accumulate=True)", In((4, 5)), whole((30,), 0, 4), whole((30,), 0, 5),
    In((30,)), rtol=1e-4, atol=1e-5, because="sums in another order")
add("nonzero 300", "T.nonzero(a), a[a]", In((20, 15), "bool"), loose="int")
add("masked_select 300", "T.masked_select(a, b)", In((20, 15)), In((20, 15), "bool"))
add("masked_select by a scalar", "T.masked_select(a, b)", In((10, 10)), In((), "bool", values=(True,)))
add("bincount 200", "T.bincount(a), T.bincount(a, b), T.bincount(a, minlength=9)", whole((200,), 0, 7), In((200,)),
    loose="int", backward=False, rtol=1e-4, because="sums in another order")
add("take_along_dim 90", "T.take_along_dim(a, b, 1)", In((3, 90)), whole((3, 5), 0, 90))
add("searchsorted by side", "T.searchsorted(a, b, right=True), T.searchsorted(a, b, side='left', out_int32=True)",
    In((6,), values=(-2.0, -1.0, 0.0, 0.0, 1.0, 2.0)), In((5,), values=(-3.0, 0.0, 1.5, 2.0, 9.0)), loose="int",
    backward=False)

# ---- the gamma function's family
SOME = In((4, 5), low=-6, high=8)
EDGES = In((12,), values=(0.0, -0.0, -1.0, -2.5, 0.5, 1.0, 2.0, 1.5, INF, -INF, NAN, 1e30))
for name, theirs, inputs in (
    ("lgamma", "T.lgamma(a)", (SOME, In((3, 5), "float64", 0.01, 40), In((6,), "float16", 0.1, 9))),
    ("digamma", "T.digamma(a)", (SOME, In((3, 5), "float64", 0.01, 40))),
    ("erfinv", "T.erfinv(a)", (In((4, 5), low=-1, high=1), In((9,), "float64", -1, 1))),
    ("ndtr", "torch.special.ndtr(a)", (SOME,)), ("ndtri", "torch.special.ndtri(a)", (In((9,), low=0.01, high=0.99),)),
    ("entr", "torch.special.entr(a)", (In((9,), low=0.01, high=4),))):
  for n, x in enumerate(inputs):
    add(f"{name} {n}", f"T.{name}(a)", x, theirs=theirs, rtol=None if x.dtype != "float64" else 1e-9,
        because="" if x.dtype != "float64" else "a root is near")
add("lgamma of edges", "T.lgamma(a)", EDGES, backward=False)
add("digamma of edges", "T.digamma(a)", EDGES, backward=False)
add("erfinv of edges", "T.erfinv(a)", In((6,), values=(1.0, -1.0, 0.0, 2.0, NAN, -0.0)), backward=False)
add("lgamma of a scalar, of none, of int32", "T.lgamma(a), T.lgamma(b), T.lgamma(c)", In(()), In((0, 2)),
    In((4,), "int32", 1, 9))
for n in (0, 1, 2, 3): add(f"polygamma {n}", f"T.polygamma({n}, a)", In((3, 4), low=0.2, high=9), rtol=1e-4,
                           because="torch sums in float32")
add("xlog1py", "T.xlog1py(a, b)", In((3, 4)), In((4,), low=-0.5, high=3), theirs="torch.special.xlog1py(a, b)")
add("gcd, lcm", "T.gcd(a, b), T.lcm(a, b)", In((3, 5), "int32", -40, 40), In((5,), "int32", -40, 40))

# ---- square matrices
for shape in ((1, 1), (3, 3), (2, 4, 4), (2, 0, 3, 3), (0, 0)):
  square = In(shape, "float64")
  label = str(shape)
  add(f"inverse {label}", "T.inverse(a)", square, rtol=1e-8, atol=1e-9, because="another elimination")
  add(f"det {label}", "T.det(a)", square, rtol=1e-8, atol=1e-9, because="another elimination")
  add(f"slogdet {label}", "T.slogdet(a)", square, rtol=1e-8, atol=1e-9, because="another elimination")
  even = f"(a @ a.mT + {max(shape[-1], 1)} * T.eye({shape[-1]}, dtype=DOUBLE))"
  for upper in (False, True):
    add(f"cholesky {label} {upper}", f"T.cholesky({even.replace('DOUBLE', 'dtypes.float64')}, upper={upper})", square,
        theirs=f"T.linalg.cholesky({even.replace('DOUBLE', 'torch.float64')}, upper={upper})", rtol=1e-8, atol=1e-9,
        because="another order")
  right = In((*shape[:-1], 2), "float64")
  add(f"solve {label}", "a.solve(b)", square, right, theirs="torch.linalg.solve(a, b)", rtol=1e-8, atol=1e-8,
      because="another elimination")
  for options in ("upper=False", "upper=True", "upper=True, unitriangular=True"):
    moved = f"a + 3 * T.eye({shape[-1]}, dtype=DOUBLE), b, {options}"
    add(f"solve_triangular {label} {options}", f"T.solve_triangular({moved.replace('DOUBLE', 'dtypes.float64')})",
        square, right, theirs=f"torch.linalg.solve_triangular({moved.replace('DOUBLE', 'torch.float64')})", rtol=1e-8,
        atol=1e-9, because="another order")
add("solve for a vector", "a.solve(b)", In((3, 3)), In((3,)), theirs="torch.linalg.solve(a, b)", rtol=1e-3, atol=1e-4,
    because="torch solves in float32")
add("solve from the right", "T.solve_triangular(a + 3 * T.eye(3), b, upper=False, left=False)", In((3, 3)), In((2, 3)),
    theirs="torch.linalg.solve_triangular(a + 3 * T.eye(3), b, upper=False, left=False)", rtol=1e-4, atol=1e-5,
    because="torch solves in float32")
add("det of a singular matrix", "T.det(a), T.slogdet(a)[1]", In((2, 2), values=(1.0, 2.0, 2.0, 4.0)), backward=False)
add("cholesky_solve", "T.cholesky_solve(b, a.tril() + 2 * T.eye(3))", In((3, 3)), In((3, 2)), rtol=1e-3, atol=1e-4,
    because="torch solves in float32")
add("negative matrix_power", "T.matrix_power(a + 3 * T.eye(3), -2)", In((3, 3)), rtol=1e-3, atol=1e-4,
    because="torch inverts in float32")

# ---- grids and windows
GRID = In((2, 3, 4, 2), low=-1.4, high=1.4)
for mode in ("bilinear", "nearest", "bicubic"):
  for beyond in ("zeros", "border", "reflection"):
    for corners in (False, True):
      add(f"grid_sample {mode} {beyond} {corners}", f"F.grid_sample(a, b, '{mode}', '{beyond}', {corners})",
          In((2, 2, 5, 4)), GRID, rtol=1e-3, atol=1e-4, because="positions in float32 are computed in another order")
add("grid_sample of a volume", "F.grid_sample(a, b, align_corners=False)", In((1, 2, 3, 4, 5)),
    In((1, 2, 2, 3, 3), low=-1.2, high=1.2), rtol=1e-3, atol=1e-4, because="positions in float32, in another order")
for corners in (False, True):
  add(f"affine_grid {corners}", f"F.affine_grid(a, (2, 3, 4, 5), {corners})", In((2, 2, 3)), rtol=1e-4, atol=1e-5,
      because="another order")
for options, shape in (("(4, 5), (2, 3)", (2, 18, 9)), ("(6, 7), 2, (2, 1), (1, 0), (2, 3)", (1, 12, 6)),
                       ("5, 3, padding=1, stride=2", (9, 9))):
  add(f"fold {options}", f"F.fold(a, {options})", In(shape), atol=1e-5, because="sums in another order")
for rank, shape, size in ((1, (2, 3, 7), "3"), (2, (2, 7, 5), "(4, 2)"), (2, (1, 2, 4, 4), "(None, 2)"),
                          (3, (2, 5, 6, 4), "(2, 4, 3)"), (2, (1, 1, 3, 3), "(5, 4)")):
  add(f"adaptive_max_pool{rank}d {shape} {size} with places",
      f"F.adaptive_max_pool{rank}d(a, {size}, return_indices=True)", In(shape), loose="int")

# ---- sequences
SCORES, LABELS = In((9, 3, 5)), In((3, 4), "int64", 1, 5)
TIMES, SIZES = In((3,), "int64", values=(9, 8, 7)), In((3,), "int64", values=(4, 0, 3))
for options in ("", ", reduction='sum'", ", reduction='none'", ", zero_infinity=True"):
  add(f"ctc_loss{options}", f"F.ctc_loss(a.log_softmax(2), b, c, d{options})", SCORES, LABELS, TIMES, SIZES, rtol=1e-4,
      atol=1e-5, because="another order of sums")
add("ctc_loss of a target that does not fit", "F.ctc_loss(a.log_softmax(2), b, c, d, zero_infinity=True)", SCORES,
    LABELS, In((3,), "int64", values=(2, 8, 7)), In((3,), "int64", values=(4, 2, 3)), rtol=1e-4, atol=1e-5,
    because="another order of sums")
add("ctc_loss of targets in a row", "F.ctc_loss(a.log_softmax(2), b, (9, 8, 7), (4, 2, 3), blank=4)", SCORES,
    In((9,), "int64", 0, 4), rtol=1e-4, atol=1e-5, because="another order of sums")

# ---- more names
for text in ("T.cov(a)", "T.cov(a, correction=0)", "T.corrcoef(a)", "T.trapezoid(a, dim=1)",
             "T.trapezoid(a, dx=0.5, dim=0)", "T.cumulative_trapezoid(a)", "T.block_diag(a, a[:1])",
             "T.renorm(a, 2, 0, 1.0)", "a.sum_to_size(1, 4)", "F.pdist(a)", "F.pdist(a, 1.0)", "a.H, a.mH",
             "a.split_with_sizes([1, 2], 0)", "T.nanmedian(a), T.nanmedian(a, 1)[0]"):
  add(text, text, In((3, 4)), rtol=1e-4, atol=1e-5, because="another order of sums")
add("trapezoid at places", "T.trapezoid(a, b)", In((3, 4)), In((4,), values=(0.0, 1.0, 1.5, 4.0)))
HOLES = In((3, 4), values=(1.0, NAN, 3.0, 2.0, NAN, NAN, NAN, NAN, 5.0, 4.0, NAN, 7.0))
add("nanmedian, nanquantile", "T.nanmedian(a, 1)[0], T.nanquantile(a, 0.3, 1), T.nanmedian(a)", HOLES, backward=False)
add("multi_margin_loss", "F.multi_margin_loss(a, b), F.multi_margin_loss(a, b, p=2, margin=0.5, reduction='none')",
    In((3, 4)), In((3,), "int64", values=(0, 3, 1)))
add("multilabel_margin_loss", "F.multilabel_margin_loss(a, b, reduction='none')", In((3, 4)),
    In((3, 4), "int64", values=(0, 3, -1, 2, -1, 0, 1, 2, 1, 2, 3, 0)))
add("vecdot, vector_norm, matrix_norm", "a.vecdot(b), a.vector_norm(3, 1), a.matrix_norm(), a.matrix_norm(inf)",
    In((3, 4)), In((3, 4)),
    theirs="torch.linalg.vecdot(a, b), torch.linalg.vector_norm(a, 3, 1), torch.linalg.matrix_norm(a), "
           "torch.linalg.matrix_norm(a, inf)", rtol=1e-4, because="another order of sums")
add("windows", "T.bartlett_window(7), T.blackman_window(8), T.bartlett_window(6, periodic=False)", atol=1e-6,
    because="torch computes in float32", backward=False)
add("vander", "T.vander(a, 3), T.vander(a, increasing=True)", In((4,)), backward=False)
