"""Cases of functions that are seldom used: special ones, spectra of half a signal, strides, fractional pools."""
from __future__ import annotations

from tests.tensor.operators.cases import Case, In

CASES: list[Case] = []


def add(name: str, ours: str, *inputs: In, theirs: str = "", rtol: float | None = None, atol: float | None = None,
        because: str = "", backward: bool = True, loose: str = "") -> None:
  """One more."""
  CASES.append(Case(name, ours, inputs, theirs, backward, rtol, atol, because, loose))


# ---- special functions
WIDE = In((41,), "float64", -30, 30, without=0.1)
for text in ("i0e", "i1e", "erfcx", "log_ndtr"):
  add(text, f"a.{text}()", WIDE, theirs=f"torch.special.{text}(a)", rtol=1e-12, atol=1e-300, because="other series")
add("i0, i1", "a.i0(), a.i1()", In((40,), "float64", -20, 20, without=0.1), theirs="torch.i0(a), torch.special.i1(a)",
    rtol=1e-12, because="other series")
add("mvlgamma, psi, gammaln, expit", "a.mvlgamma(3), a.psi(), a.gammaln(), a.expit()", In((9,), "float64", 1.5, 6),
    theirs="torch.mvlgamma(a, 3), torch.special.psi(a), torch.special.gammaln(a), torch.special.expit(a)", rtol=1e-7,
    because="torch's digamma has no more digits")
for name in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
             "shifted_chebyshev_polynomial_t", "hermite_polynomial_h", "hermite_polynomial_he",
             "laguerre_polynomial_l", "legendre_polynomial_p"):
  add(name, ", ".join(f"a.{name}({n})" for n in (0, 1, 4)), In((9,), "float64", -1, 1), rtol=1e-10, backward=False,
      theirs=", ".join(f"torch.special.{name}(a, {n})" for n in (0, 1, 4)), because="sums in another order")
add("frexp", "T.frexp(a)", In((7,), values=(0.0, 1.0, -0.75, 1e-40, 3e38, 6.0, -8.0)), backward=False, loose="int")
add("nextafter", "a.nextafter(b)", In((6,), values=(0.0, 1.0, -1.0, 2.0, 3.0, -0.0)),
    In((6,), values=(1.0, 2.0, 0.0, 2.0, -1.0, -1.0)), backward=False)

# ---- spectra of half a signal
for norm in ("backward", "ortho", "forward"):
  add(f"hfft {norm}", f"a.hfft(norm='{norm}'), a.hfft(5, 0, '{norm}'), a.hfft2(norm='{norm}')",
      In((3, 4, 2), "float64"),
      theirs=f"torch.fft.hfft(torch.view_as_complex(a), norm='{norm}'), torch.fft.hfft(torch.view_as_complex(a), 5, 0, "
             f"'{norm}'), torch.fft.hfft2(torch.view_as_complex(a), norm='{norm}')", rtol=1e-9, atol=1e-10,
      because="sums in another order")
  add(f"ihfft {norm}", f"a.ihfft(norm='{norm}'), a.ihfft(5, 0, '{norm}'), a.ihfftn(norm='{norm}')",
      In((3, 4), "float64"), rtol=1e-9, atol=1e-10, because="sums in another order",
      theirs=", ".join(f"torch.view_as_real(torch.fft.{f}(a, {rest}norm='{norm}').resolve_conj())" for f, rest in (
        ("ihfft", ""), ("ihfft", "5, 0, "), ("ihfftn", ""))))

# ---- memory
add("as_strided", "a.as_strided((2, 3), (5, 2), 1), a.as_strided((4, 2), (1, 1))", In((4, 5)))
add("as_strided_scatter", "a.as_strided_scatter(b, (2, 3), (5, 2), 1)", In((4, 5)), In((2, 3)), backward=False)
add("put", "a.put(c, b), a.put(c, b, accumulate=True)", In((4, 5)), In((2, 2)),
    In((2, 2), "int64", values=(3, -1, 7, 4)))
for how in ("prod", "mean", "amax", "amin"):
  add(f"index_reduce {how}",
      f"a.index_reduce(0, c, b, '{how}'), a.index_reduce(1, c, b.T, '{how}', include_self=False)",
      In((4, 4)), In((3, 4)), In((3,), "int64", values=(0, 0, 2)), rtol=1e-5, because="products in another order",
      backward=False)
for shape in ((4, 5), (7, 3), (3, 3, 3)):
  add(f"fill_diagonal {shape}", "(a * 1).fill_diagonal_(9), (a * 1).fill_diagonal_(9, wrap=True)", In(shape))
add("narrow_copy, adjoint, resize", "a.narrow_copy(1, 1, 2), a.adjoint(), (a * 1).detach().resize_(2, 3)", In((4, 5)))
add("nonzero_static", "T.nonzero_static(a, size=30), T.nonzero_static(a, size=2, fill_value=7)",
    In((4, 5), "int32", 0, 2), loose="int")

# ---- of networks
for n, image, rest in ((2, (2, 3, 9, 7), "(2, 3), (4, 3)"), (3, (1, 2, 6, 7, 8), "(2, 3, 2), output_ratio=0.5")):
  add(f"fractional_max_pool{n}d", f"F.fractional_max_pool{n}d(a, {rest}, return_indices=True, _random_samples=b), "
      f"F.fractional_max_pool{n}d(a[0], {rest}, _random_samples=b[:1])", In(image),
      In((*image[:2], n), low=0, high=1, grad=False),
      loose="int")
for loss in ("mse_loss", "l1_loss", "huber_loss"):
  add(f"{loss} by weights", ", ".join(f"F.{loss}(a, b, weight=c, reduction='{r}')" for r in ("mean", "sum", "none")),
      In((3, 4)), In((3, 4)), In((3, 4), low=0.5, high=2))
add("rrelu", "F.rrelu(a), F.rrelu(a, 0.25, 0.75)", In((3, 4), without=0.1))
add("pools of equal elements", "F.max_pool2d(a, 2), F.max_pool2d(a, 3, 1, padding=1), F.adaptive_max_pool2d(a, 2)",
    In((1, 1, 4, 4), values=(1.0, 1, 2, 2, 1, 0, 2, 0, 0, 0, 3, 3, 0, 0, 3, 3)),
    theirs="F.max_pool2d(a, 2), F.max_pool2d(a, 3, stride=1, padding=1), F.adaptive_max_pool2d(a, 2)")
add("max, min, median of equal elements", "a.max(1), a.min(1), a.median()",
    In((3, 4), values=(1.0, 3, 3, 1, 2, 2, 2, 2, 0, 1, 0, 1)),
    theirs="a.max(1)[0], a.min(1)[0], a.median()")
