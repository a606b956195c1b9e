"""Cases of factors of matrices, of spectra, and of bags of embeddings."""
from __future__ import annotations

from tests.tensor.operators.cases import Case, In

CASES: list[Case] = []
ELSE = "another elimination"


def add(name: str, ours: str, *inputs: In, **options: object) -> None:
  CASES.append(Case(name, ours, inputs, **options))  # type: ignore[arg-type]  # the fields' own types


for shape in ((3, 3), (2, 3, 2), (2, 3), (2, 0, 3, 3), (0, 2)):
  some = In(shape, "float64")
  add(f"lu {shape}", "T.lu_unpack(*a.lu_factor()), a.lu_factor()", some,
      theirs="torch.linalg.lu(a), torch.linalg.lu_factor(a)", rtol=1e-8, atol=1e-9, because=ELSE)
  add(f"pinv {shape}", "a.pinv()", some, theirs="torch.linalg.pinv(a)", rtol=1e-8,
      atol=1e-9, because=ELSE)
  if shape[-2] == shape[-1]:
    add(f"eigh {shape}",
        "(lambda l, v: (l, (v * l.unsqueeze(-2).exp()) @ v.mT))(*((a + a.mT) / 2).eigh()), a.eigvalsh('U')", some,
        theirs="(lambda l, v: (l, (v * l.unsqueeze(-2).exp()) @ v.mT))(*torch.linalg.eigh((a + a.mT) / 2)), "
               "torch.linalg.eigvalsh(a, UPLO='U')", rtol=1e-8, atol=1e-9, because=ELSE)
    right = In((*shape[:-1], 2), "float64")
    add(f"lu_solve {shape}", "b.lu_solve(*a.lu_factor()), b.lu_solve(*a.lu_factor(), adjoint=True), "
        "b.mT.lu_solve(*a.lu_factor(), left=False), a.solve(b.mT, left=False)", some, right,
        theirs="(lambda f: (torch.linalg.lu_solve(*f, b), torch.linalg.lu_solve(*f, b, adjoint=True), "
               "torch.linalg.lu_solve(*f, b.mT, left=False), torch.linalg.solve(a, b.mT, left=False)))"
               "(torch.linalg.lu_factor(a))", rtol=1e-8, atol=1e-8, because=ELSE)
  elif len(shape) < 4:
    add(f"lstsq {shape}", "a.lstsq(b)[0], a.lstsq(b)[2]", some, In((*shape[:-1], 2), "float64"), loose="int",
        theirs="torch.linalg.lstsq(a, b)[0], torch.linalg.lstsq(a, b)[2]", rtol=1e-8, atol=1e-9, because=ELSE)
add("lstsq with residuals", "a.lstsq(b, driver='gelsd')", In((5, 3), "float64"), In((5,), "float64"), loose="int",
    theirs="torch.linalg.lstsq(a, b, driver='gelsd')", rtol=1e-8, atol=1e-9, because=ELSE, backward=False)
add("lstsq of less rank", "a.lstsq(b)[0], a.lstsq(b)[2]", In((3, 2), values=(1.0, 2.0, 2.0, 4.0, 3.0, 6.0)),
    In((3, 2)), theirs="torch.linalg.lstsq(a, b)[0], torch.linalg.lstsq(a, b)[2]", rtol=1e-4, atol=1e-5, loose="int",
    because="torch solves in float32", backward=False)
add("lu of a singular matrix", "T.lu_unpack(*a.lu()), a.lu(get_infos=True)",
    In((2, 3, 3), values=(1.0, 2.0, 0.0, 2.0, 4.0, 1.0, 3.0, 6.0, 5.0, *(0.0,) * 9)),
    theirs="torch.linalg.lu(a), torch.linalg.lu_factor_ex(a)", rtol=1e-5, atol=1e-6, because=ELSE, backward=False)
add("pinv of equal values, of limits", "b.pinv(), a.pinv(rtol=0.4), a.pinv(atol=1.5), (a + a.mT).pinv(hermitian=True)",
    In((3, 3), "float64"), In((2, 2), "float64", values=(0.0, 2.0, 2.0, 0.0)),
    theirs="torch.linalg.pinv(b), torch.linalg.pinv(a, rtol=0.4), torch.linalg.pinv(a, atol=1.5), "
           "torch.linalg.pinv(a + a.mT, hermitian=True)", rtol=1e-7, atol=1e-8, because=ELSE)
add("cond, svdvals", "a.cond(), a.cond(-2), a.cond(1), a.cond('fro'), a.svdvals()", In((2, 3, 3), "float64"),
    theirs="torch.linalg.cond(a), torch.linalg.cond(a, -2), torch.linalg.cond(a, 1), torch.linalg.cond(a, 'fro'), "
           "torch.linalg.svdvals(a)", rtol=1e-7, atol=1e-8, because=ELSE, backward=False)
add("tensorinv, tensorsolve", "a.reshape(2, 3, 6).tensorinv(), a.tensorinv(1), a.reshape(2, 3, 6).tensorsolve(b)",
    In((6, 2, 3), "float64"), In((2, 3), "float64"),
    theirs="torch.linalg.tensorinv(a.reshape(2, 3, 6)), torch.linalg.tensorinv(a, 1), "
           "torch.linalg.tensorsolve(a.reshape(2, 3, 6), b)", rtol=1e-7, atol=1e-8, because=ELSE)

# ---- spectra
for name, size, options in (
    ("plain", 8, ""), ("odd", 7, ", hop_length=3"), ("normalized", 8, ", 3, 5, normalized=True"),
    ("whole", 6, ", onesided=False, pad_mode='replicate'"), ("windows", 8, ", window=b, center=False")):
  given = (In((2, 21), "float64"), *([In((8,), "float64", 0.2, 1)] if "window=" in options else ()))
  add(f"stft {name}", f"a.stft({size}{options}, return_complex=False)", *given, rtol=1e-9, atol=1e-10,
      because="sums in another order")
  back = options.replace(", pad_mode='replicate'", "")
  parts = In((2, size if "False" in options and "one" in options else size // 2 + 1, 6, 2), "float64")
  add(f"istft {name}", f"T.istft(a, {size}{back})", parts, *given[1:], rtol=1e-9, atol=1e-10,
      theirs=f"torch.istft(torch.view_as_complex(a), {size}{back})", because="sums in another order")
add("istft of a length", "T.istft(a, 8, length=9), T.istft(a, 8, length=14)", In((5, 6, 2)), rtol=1e-4, atol=1e-5,
    theirs="torch.istft(torch.view_as_complex(a), 8, length=9), torch.istft(torch.view_as_complex(a), 8, length=14)",
    because="sums in another order")

# ---- bags of embeddings
TABLE, PLACES = In((7, 3)), In((10,), "int64", 0, 7)
OFFSETS = In((4,), "int64", values=(0, 3, 3, 8))
for mode in ("sum", "mean", "max"):
  add(f"embedding_bag {mode}", f"F.embedding_bag(a, b, c, mode='{mode}'), "
      f"F.embedding_bag(a, b, c, mode='{mode}', padding_idx=-5), "
      f"F.embedding_bag(a.reshape(2, 5), b, mode='{mode}'), "
      f"F.embedding_bag(a, b, d, mode='{mode}', include_last_offset=True)", PLACES, TABLE, OFFSETS,
      In((3,), "int64", values=(0, 6, 10)))
add("embedding_bag with weights", "F.embedding_bag(a, b, c, mode='sum', per_sample_weights=d)", PLACES, TABLE, OFFSETS,
    In((10,)))
add("embedding_bag of a greatest norm", "F.embedding_bag(a, b * 1, c, max_norm=1.5, norm_type=1.0)", PLACES, TABLE,
    OFFSETS, backward=False)
