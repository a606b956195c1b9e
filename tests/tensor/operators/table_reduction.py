"""Cases of reductions, running results, order, and products of matrices."""
from __future__ import annotations

from typing import Any

from tests.tensor.operators.cases import BFLOAT16, Case, In

M, CUBE = In((3, 4)), In((2, 3, 4))
CASES: list[Case] = []


def add(name: str, ours: str, *inputs: In, **options: object) -> None:
  CASES.append(Case(name, ours, inputs, **options))  # type: ignore[arg-type]  # the fields' own types


# ---- reductions
for name in ("sum", "mean", "prod", "var", "std", "logsumexp", "amax", "amin", "norm"):
  first = "a" if name != "logsumexp" else "a, dim=(0, 1, 2)"
  one = ", dim=1" if name != "norm" else ", dim=1"
  add(f"{name}", f"T.{name}({first})", CUBE)
  add(f"{name} of an axis", f"T.{name}(a{one})", CUBE)
  add(f"{name} keeps", f"a.{name}(dim=-1, keepdim=True)", CUBE)
  if name != "prod": add(f"{name} of axes", f"a.{name}(dim=(0, 2))", CUBE)
  add(f"{name} by axis=", f"a.{name}(axis=1, keepdims=True)", CUBE, theirs=f"a.{name}(dim=1, keepdim=True)")
  if name in ("sum", "mean", "prod", "logsumexp", "amax", "norm"):
    for kind in ("float16", BFLOAT16, "float64"): add(f"{name} of {kind}", f"a.{name}(dim=1)", In((3, 4), kind))
  add(f"{name} with NaN", f"a.{name}(dim=1)", In((2, 3), values=(1.0, float("nan"), 2.0, 3.0, 1.0, 2.0)),
      backward=False)
for kind in ("bool", "uint8", "int8", "int16", "int32", "int64"):
  add(f"sum of {kind}", "a.sum(), a.sum(0)", In((3, 4), kind, 0, 5), loose="dtype")
  add(f"extremes of {kind}", "a.amax(1), a.amin(0), a.max(), a.min()", In((3, 4), kind, 0, 9))
  add(f"any, all of {kind}", "a.any(), a.all(), a.any(1), a.all(dim=0, keepdim=True)", In((3, 4), kind, 0, 3),
      loose="dtype")
for kind in ("int32", "int64"): add(f"prod of {kind}", "a.prod(), a.prod(1)", In((2, 3), kind, -3, 4), loose="int")
add("sum as a type", "a.sum(dtype=dtypes.float64), a.cumsum(0, dtype=dtypes.float64)", M,
    theirs="a.sum(dtype=torch.float64), a.cumsum(0, dtype=torch.float64)")
add("max and min", "T.max(a), T.min(a), T.amax(a, dim=(0, 1))", M)
add("max of an axis", "a.max(1), a.min(0), a.max(axis=1, keepdim=True)", M,
    theirs="a.max(1).values, a.min(0).values, a.max(1, keepdim=True).values")
add("aminmax", "T.aminmax(a)", M)
add("ties of max", "a.amax(1), a.amin(1)", In((2, 4), values=(1.0, 3.0, 3.0, 0.0, 2.0, 2.0, 2.0, 2.0)))
for text in ("T.argmax(a)", "T.argmin(a)", "a.argmax(1)", "a.argmin(dim=0, keepdim=True)", "a.argmax(dim=-1)"):
  add(text, text, CUBE, loose="int")
add("argmax of equal ones", "a.argmax(1), a.argmin(1)", In((2, 4), "int32", values=(1, 3, 3, 0, 2, 2, 2, 2)),
    loose="int")
add("argmax with NaN", "a.argmax(), a.argmin()", In((4,), values=(1.0, float("nan"), 3.0, float("nan"))), loose="int",
    backward=False)
for name in ("var", "std", "var_mean", "std_mean"):
  for option in ("correction=0", "correction=2", "unbiased=False"):
    add(f"{name} {option}", f"T.{name}(a, {'dim=1, ' if option != 'unbiased=False' else ''}{option})", M)
  add(f"{name} of axes kept", f"T.{name}(a, dim=(0, 2), keepdim=True)", CUBE)
add("var of one", "a.var(1), a.std(1)", In((2, 1)), backward=False)
add("mean of nothing", "a.mean(), a.sum(), a.prod(), a.sum(0), a.any(), a.all()", In((0, 3)), backward=False)
add("logsumexp of infinities", "a.logsumexp(1)",
    In((3, 2), values=(float("-inf"), float("-inf"), float("inf"), 1.0, 500.0, 500.0)),
    backward=False)
add("reductions of scalars", "a.sum(), a.mean(), a.amax(), a.prod(), a.sum(0), a.logsumexp(0)", In(()))
add("nansum, nanmean", "T.nansum(a, dim=1), T.nanmean(a, dim=1)",
    In((2, 3), values=(1.0, float("nan"), 2.0, 3.0, 1.0, 2.0)))
add("count_nonzero", "T.count_nonzero(a), T.count_nonzero(a, dim=0)", In((3, 4), "int32", 0, 2), loose="int")
for p in ("1", "2", "3", "0", "inf", "-inf", "0.5", "'fro'"):
  add(f"norm {p}", f"T.norm(a, p={p}), a.norm({p}, dim=1)" if p != "'fro'" else "T.norm(a, p='fro')",
      In((3, 4), without=.1),
      backward=p != "0")
add("norm of zeros", "a.norm(), a.norm(dim=1)", In((2, 3), values=(0.0,) * 6))
add("normalize", "F.normalize(a, dim=1), F.normalize(a, p=1, dim=0)", M)
add("cosine_similarity", "F.cosine_similarity(a, b, dim=1)", M, M)
add("pairwise_distance", "F.pairwise_distance(a, b), F.pairwise_distance(a, b, p=1, keepdim=True)", M, M)
add("cdist", "T.cdist(a, b), T.cdist(a, b, p=1)", M, In((2, 4)))
add("dist", "T.dist(a, b), T.dist(a, b, 1)", M, M)
add("long sum", "a.sum(), a.sum(1), a.mean(0)", In((3, 700)), atol=1e-4, because="another order of adding")

# ---- running
for name in ("cumsum", "cumprod", "logcumsumexp"):
  for axis in (0, 1, -1): add(f"{name} {axis}", f"T.{name}(a, dim={axis})", CUBE)
for name in ("cummax", "cummin"):
  for axis in (0, -1): add(f"{name} {axis}", f"T.{name}(a, dim={axis})", CUBE, loose="int")
  add(f"{name} of integers", f"a.{name}(0)", In((7,), "int32", 0, 4), loose="int")
  add(f"{name} with NaN", f"a.{name}(0)", In((6,), values=(1.0, 3.0, float("nan"), 2.0, 5.0, float("nan"))),
      loose="int",
      backward=False)
add("cumsum of many", "a.cumsum(0)", In((700,)), atol=1e-4, because="another order of adding")
add("cumprod with zeros", "a.cumprod(0)", In((5,), values=(2.0, 0.0, 3.0, 0.0, 4.0)))
add("running of integers", "a.cumsum(0), a.cumprod(1)", In((2, 5), "int32", -3, 4), loose="int")
add("running of nothing", "a.cumsum(0), a.cumprod(1)", In((0, 3)))
add("running of a scalar", "a.cumsum(0), a.cumprod(0)", In(()))
add("cumsum of bool", "a.cumsum(0)", In((5,), "bool"), loose="int")
add("logcumsumexp of infinities", "a.logcumsumexp(0)", In((4,), values=(float("-inf"), 1.0, 500.0, float("-inf"))),
    backward=False)
add("diff", "T.diff(a), T.diff(a, n=2, dim=0), T.diff(a, prepend=b)", M, In((3, 2)))

# ---- order
for text in ("T.sort(a)", "a.sort(dim=0, descending=True)", "a.sort(0)", "T.sort(a, dim=1, stable=True)"):
  add(text, text, M, loose="int")
for text in ("T.topk(a, 2)", "a.topk(3, dim=0, largest=False)", "T.topk(a, k=1, dim=1)", "T.kthvalue(a, 2)",
             "a.kthvalue(3, dim=0, keepdim=True)", "T.median(a, dim=1)"):
  add(text, text, M, loose="int")
for text in ("T.argsort(a)", "a.argsort(dim=0, descending=True)", "T.msort(a)", "T.median(a)",
             "T.quantile(a, 0.3)", "T.quantile(a, 0.6, dim=1, keepdim=True)",
             "a.quantile(0.5, dim=0, interpolation='lower')",
             "a.quantile(0.4, dim=0, interpolation='higher')", "a.quantile(0.4, dim=0, interpolation='nearest')",
             "a.quantile(0.4, dim=0, interpolation='midpoint')"):
  add(text, text, M, loose="int")
add("quantiles", "T.quantile(a, b, dim=1)", M, In((3,), values=(0.0, 0.25, 1.0), grad=False))
add("sort of equal ones", "a.sort(stable=True), a.sort(descending=True, stable=True)", In((9,), "int32", 0, 3),
    loose="int")
add("sort with NaN", "a.sort(stable=True), a.sort(descending=True, stable=True), a.argsort(stable=True)",
    In((7,),
       values=(1.0, float("nan"), float("-inf"), 0.0, float("inf"), float("nan"), -1.0)), loose="int", backward=False)
for kind in ("bool", "uint8", "int64", "float16", "float64"):
  add(f"sort of {kind}", "a.sort(stable=True)", In((6,), kind, 0, 9), loose="int")
add("sort of nothing", "a.sort()", In((0,)), loose="int")
add("sort of a scalar", "a.sort(), a.argsort()", In(()), loose="int")
add("topk of many", "a.topk(5)", In((100,)), loose="int")
add("mode", "T.mode(a), a.mode(dim=0, keepdim=True)", In((3, 5), "int32", 0, 3), loose="int")
add("unique_consecutive", "T.unique_consecutive(a, return_inverse=True, return_counts=True)", In((12,), "int32", 0, 2),
    loose="int")
add("searchsorted", "T.searchsorted(a.sort()[0], b), T.searchsorted(a.sort()[0], b, right=True)",
    In((6,), "int32", 0, 5),
    In((2, 3), "int32", 0, 6), loose="int")
add("bucketize", "T.bucketize(a, b)", In((5,)), In((3,), values=(-1.0, 0.0, 1.0)), loose="int", backward=False)
add("isin", "T.isin(a, b)", In((2, 4), "int32", 0, 6), In((3,), "int32", 0, 6))
add("bincount", "T.bincount(a), T.bincount(a, minlength=9)", In((8,), "int64", 0, 5), loose="int")
add("bincount with weights", "T.bincount(a, weights=b)", In((8,), "int64", 0, 5), In((8,)), backward=False)
add("histc", "T.histc(a, bins=4, min=-1, max=1)", In((20,)), backward=False)
add("unique", "T.unique(a), T.unique(a, return_inverse=True, return_counts=True)", In((3, 4), "int32", 0, 5),
    loose="int")

# ---- products
SIZES = [((3, 4), (4, 2)), ((4,), (4,)), ((3, 4), (4,)), ((3,), (3, 2)), ((2, 3, 4), (4, 2)), ((2, 3, 4), (2, 4, 5)),
         ((1, 3, 4), (5, 4, 2)), ((2, 1, 3, 4), (3, 4, 2)), ((3,), (2, 3, 2)), ((2, 3, 4), (4,)), ((3, 0),
                                                                                                   (0, 2)), ((0, 3),
                                                                                                             (3, 2)),
         ((1, 1), (1, 1)), ((17, 5), (5, 9))]
for one, other in SIZES: add(f"matmul {one} {other}", "T.matmul(a, b)", In(one), In(other))
for kind in ("float16", BFLOAT16, "float64", "int32", "int64", "uint8"):
  add(f"matmul of {kind}", "a @ b", In((3, 4), kind, 0, 4), In((4, 2), kind, 0, 4))
add("mm, bmm, mv", "T.mm(a, b), T.bmm(a.reshape(1, 3, 4), b.reshape(1, 4, 2)), T.mv(a, c)", M, In((4, 2)), In((4,)))
add("dot, vdot, inner, outer", "T.dot(a, b), T.vdot(a, b), T.inner(a, b), T.outer(a, b), a.dot(b)", In((4,)), In((4,)))
add("inner of matrices", "T.inner(a, b)", M, In((2, 4)))
add("addmm", "T.addmm(a, b, c), T.addmm(a, b, c, beta=0.5, alpha=2)", In((3, 2)), M, In((4, 2)))
add("addmv, addr", "T.addmv(a, b, c), T.addr(b, a, c)", In((3,)), M, In((4,)))
add("baddbmm, addbmm", "T.baddbmm(a, b, c, alpha=0.5), T.addbmm(a[0], b, c)", In((2, 3, 2)), CUBE, In((2, 4, 2)))
for text, shapes in [("ij,jk->ik", ((2, 3), (3, 4))), ("ij->ji", ((2, 3),)), ("ii", ((3, 3),)), ("ii->i", ((3, 3),)),
                     ("i,j->ij", ((2,), (3,))), ("ij,ij->", ((2, 3), (2, 3))), ("bij,bjk->bik", ((2, 3, 4), (2, 4, 2))),
                     ("...ij,...jk->...ik", ((2, 3, 4), (4, 2))), ("ij,j", ((2, 3), (3,))), ("a,b,c->abc",
                                                                                             ((2,), (3,), (2,))),
                     ("ijk->", ((2, 3, 4),)), ("ij...->...j", ((2, 3, 4),)), ("bhwc,hkc->bwhk",
                                                                              ((2, 3, 4, 2), (3, 4, 2))),
                     ("ij , jk -> ki", ((2, 3), (3, 2)))]:
  names = ", ".join("abc"[:len(shapes)])
  add(f"einsum {text}", f"T.einsum('{text}', {names})", *(In(s) for s in shapes))
add("einsum of a list", "T.einsum('ij,jk->ik', [a, b])", M, In((4, 2)))
add("tensordot", "T.tensordot(a, b, 1), T.tensordot(a, b, dims=([2], [0]))", CUBE, In((4, 2)))
add("tensordot of axes", "T.tensordot(a, b, dims=([0, 2], [1, 0]))", CUBE, In((4, 2, 3)))
add("kron", "T.kron(a, b)", In((2, 3)), In((2, 2)))
add("kron of ranks", "T.kron(a, b)", In((2,)), In((2, 2)))
add("cross", "T.cross(a, b, dim=1), T.cross(a, b, dim=-1)", In((2, 3)), In((2, 3)))
add("multi_dot", "T.multi_dot([a, b, c])", In((2, 5)), In((5, 3)), In((3, 4)),
    theirs="torch.linalg.multi_dot([a, b, c])")
add("matrix_power", "T.matrix_power(a, 3), T.matrix_power(a, 0)", In((3, 3)))
ROUNDS: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "because": "each turn rounds"}
for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1)):
  add(f"qr {shape}", "a.qr()", In(shape), theirs="torch.linalg.qr(a)", backward=shape != (2, 4), **ROUNDS)
  add(f"svd {shape}",
      "(lambda u, s, v: (u @ (s.unsqueeze(-1) * v), s, u.mT @ u, v @ v.mT))(*a.svd(full_matrices=False))",
      In(shape), theirs="(lambda u, s, v: (u @ (s.unsqueeze(-1) * v), s, u.mT @ u, v @ v.mT))("
                        "*torch.linalg.svd(a, full_matrices=False))", backward=False, **ROUNDS)
add("qr complete, svd in full",
    "a.qr('complete'), a.svd()[1], a.svd()[0].mT @ a.svd()[0], a.svd()[2] @ a.svd()[2].mT", In((4, 2)),
    theirs="torch.linalg.qr(a, mode='complete'), torch.linalg.svd(a)[1], torch.eye(4), torch.eye(2)", backward=False,
    **ROUNDS)
add("svd of less rank", "(lambda u, s, v: (u @ (s.unsqueeze(-1) * v), s, u.T @ u))(*a.svd(full_matrices=False))",
    In((3, 2), values=(1.0, 2.0, 2.0, 4.0, 3.0, 6.0)), theirs="a, torch.linalg.svdvals(a), torch.eye(2)",
    backward=False, **ROUNDS)
add("linear", "a.linear(b, c), a.linear(b)", In((2, 3)), In((3, 4)), In((4,)),
    theirs="F.linear(a, b.T, c), F.linear(a, b.T)")
for text in ("a.softmax(0)", "F.softmax(a, dim=1)", "a.softmax(-1)", "F.log_softmax(a, dim=-1)", "a.log_softmax(1)",
             "F.softmin(a, dim=0)"):
  add(text, text, CUBE)
add("softmax of large ones", "a.softmax(0), a.log_softmax(0)", In((3,), values=(1000.0, 999.0, -1000.0)))
add("softmax with -inf", "a.softmax(0), a.log_softmax(0)", In((3,), values=(0.0, float("-inf"), 1.0)), backward=False)
for kind in ("float16", BFLOAT16, "float64"): add(f"softmax of {kind}", "a.softmax(1)", In((2, 5), kind))
add("softmax of a scalar, of nothing", "a.softmax(0), a.log_softmax(0), b.softmax(1)", In(()), In((0, 3)))
