"""Cases of movement, joining, padding, indexing: what moves elements, and where from and to."""
from __future__ import annotations

from tests.tensor.operators.cases import Case, In

M, CUBE, V = In((3, 4)), In((2, 3, 4)), In((6,))
CASES: list[Case] = []


def add(name: str, ours: str, *inputs: In, **options: object) -> None:
  CASES.append(Case(name, ours, inputs, **options))  # type: ignore[arg-type]  # the fields' own types


def places(*values: int, shape: tuple[int, ...] | None = None, dtype: str = "int64") -> In:
  """Positions."""
  return In(shape or (len(values),), dtype, values=values)


# ---- shape and order
for text in ("a.reshape(4, 6)", "a.reshape((2, -1))", "a.view(-1)", "a.view(3, 8)", "a.flatten()", "a.flatten(1)",
             "a.flatten(start_dim=0, end_dim=1)", "T.flatten(a, 1)", "a.unflatten(2, (2, 2))",
             "a.unflatten(-1, (2, -1))",
             "a.unsqueeze(0)", "a.unsqueeze(-1)", "T.unsqueeze(a, dim=1)", "a.permute(2, 0, 1)", "a.permute((1, 0, 2))",
             "a.permute(dims=(2, 1, 0))", "a.transpose(0, 2)", "a.transpose(dim0=1, dim1=-1)", "T.transpose(a, 0, 1)",
             "a.swapaxes(0, 1)", "a.swapdims(1, 2)", "a.movedim(0, 2)", "a.movedim((0, 1), (2, 0))", "a.moveaxis(2, 0)",
             "T.movedim(a, source=1, destination=0)", "a.mT", "a.flip(0)", "a.flip((0, 2))", "a.flip(dims=(1,))",
             "T.flip(a, (0, 1))", "a.fliplr()", "a.flipud()", "T.rot90(a, 1, (0, 1))", "T.rot90(a, 2, (1, 2))",
             "T.rot90(a, -1, dims=(0, 2))", "T.roll(a, 1, 0)", "T.roll(a, (1, -2), (0, 2))", "T.roll(a, 5)",
             "a.roll(shifts=-1, dims=1)", "a.expand(5, 2, 3, 4)", "a.unsqueeze(0).expand(3, -1, -1, -1)",
             "a[:1].expand_as(a)", "T.broadcast_to(a[:, :1], (2, 3, 4))", "a.repeat(2, 1, 3)", "a.repeat(2, 1, 1, 2)",
             "T.tile(a, (2,))", "T.tile(a, dims=(2, 1, 1, 2))", "T.repeat_interleave(a, 2)",
             "a.repeat_interleave(3, dim=1)", "a.narrow(1, 1, 2)", "T.narrow(a, 2, -2, 2)", "a.ravel()",
             "a.view_as(a.T)",
             "a.reshape_as(a.reshape(4, 6))", "a.select(1, -1)", "T.diagonal(a, 0, 1, 2)",
             "a.diagonal(offset=1, dim1=0, dim2=2)",
             "a.diagonal(-1)", "T.diag_embed(a)", "T.diag_embed(a, offset=1, dim1=0, dim2=2)", "a.unfold(2, 2, 1)",
             "a.unfold(1, 2, 1)", "a.unfold(-1, 3, 2)", "a.unfold(2, 1, 3)", "T.triu(a)", "T.tril(a, diagonal=-1)",
             "a.triu(1)", "T.atleast_2d(a)", "a.squeeze()", "a.squeeze(0)"):
  theirs = text.replace("a.view_as(a.T)", "a.view_as(a.permute(2, 1, 0))")
  add(text, text, CUBE, theirs="" if theirs == text else theirs)
for text in ("a.squeeze()", "a.squeeze(1)", "a.squeeze(dim=(0, 1))", "T.squeeze(a, (1, 3))", "a.squeeze(2)"):
  add(f"{text} of ones", text, In((1, 1, 3, 1)))
for text in ("a.t()", "a.T", "T.diag(a)", "T.diag(a, 1)", "a.diag(diagonal=-2)", "a.trace()", "T.fliplr(a)",
             "T.flipud(a)"):
  add(f"{text} of a matrix", text, M)
for text in ("T.diag(a)", "T.diag(a, 2)", "a.diag(-1)", "T.diagflat(a, 1)", "a.unfold(0, 3, 2)", "T.atleast_2d(a)",
             "T.atleast_3d(a)", "a.flip(0)", "a.t()", "a.expand(2, 6)", "a.roll(2)", "T.diag_embed(a, -1)"):
  add(f"{text} of a vector", text, V)
for text in ("a.reshape(1, 1)", "a.expand(2, 3)", "a.flatten()", "a.unsqueeze(0)", "a.repeat(3)", "T.atleast_1d(a)",
             "a.squeeze(0)", "a.permute()", "a.ravel()", "a.flip(())"):
  add(f"{text} of a scalar", text, In(()), theirs="a.permute(())" if text == "a.permute()" else "")
for text in ("a.reshape(3, 0)", "a.flatten()", "a.permute(1, 0)", "a.flip(0)", "a.repeat(2, 1)", "a.unsqueeze(1)",
             "a.T",
             "T.roll(a, 1, 0)", "a.diagonal()", "T.tril(a)"):
  add(f"{text} of nothing", text, In((0, 3)))
add("pixel_shuffle", "F.pixel_shuffle(a, 2)", In((2, 8, 2, 3)))
add("pixel_unshuffle", "F.pixel_unshuffle(a, downscale_factor=2)", In((2, 4, 6)))
add("rearrange", "a.rearrange('b (c d) ... -> ... (b d) c', d=2)", In((2, 6, 3)),
    theirs="a.reshape(2, 3, 2, 3).permute(3, 0, 2, 1).reshape(3, 4, 3)")
add("rearrange joins", "a.rearrange('b h w -> b (h w)')", CUBE, theirs="a.reshape(2, 12)")
add("view of types", "a.flip(0), a.T, a.reshape(-1)", In((3, 4), "int8"))
add("bool views", "a.flip(0), a.T, a.repeat(2, 1)", In((3, 4), "bool"))
add("shrink", "a.shrink(((0, 1), None, (1, 3)))", CUBE, theirs="a[0:1, :, 1:3]")
add("reshape with None", "a.reshape(None, -1)", CUBE, theirs="a.reshape(2, -1)")

# ---- joining and splitting
TWO = (In((2, 3)), In((2, 3)))
for text in ("T.cat((a, b))", "T.cat([a, b], 1)", "T.cat((a, b), dim=-1)", "T.concat((a, b, a))", "T.stack((a, b))",
             "T.stack([a, b], dim=1)", "T.stack((a, b), -1)", "T.hstack((a, b))", "T.vstack((a, b))",
             "T.dstack((a, b))",
             "T.column_stack((a, b))", "T.broadcast_tensors(a, b)", "T.atleast_3d(a, b)"):
  add(text, text, *TWO)
add("Tensor.stack(a, b)", "T.stack(a, b), T.cat(a, b, dim=1), a.cat(b), a.stack(b, dim=1)", *TWO,
    theirs="torch.stack([a, b]), torch.cat([a, b], 1), torch.cat([a, b]), torch.stack([a, b], 1)")
add("cat of sizes", "T.cat((a, b, c), 1)", In((2, 1)), In((2, 3)), In((2, 0)))
add("cat of types", "T.cat((a, b))", In((2,), "int32"), In((3,), "float16"), backward=False)
add("cat with an empty vector", "T.cat((a, b))", In((0,)), In((2, 3)))
add("stack of scalars", "T.stack((a, b))", In(()), In(()))
add("hstack of vectors", "T.hstack((a, b)), T.vstack((a, b)), T.dstack((a, b)), T.column_stack((a, b))", In((3,)),
    In((3,)))
add("cat of many", "T.cat((a, b, a, b, a))", In((1, 2)), In((2, 2)))
for text in ("a.split(2)", "T.split(a, 2, dim=1)", "a.split([1, 3], 1)", "T.split(a, [2, 1])", "a.chunk(2)",
             "a.chunk(3, dim=1)",
             "T.chunk(a, chunks=2, dim=-1)", "T.tensor_split(a, 2)", "a.tensor_split(3, dim=1)",
             "a.tensor_split((1, 2), 1)",
             "a.unbind()", "T.unbind(a, dim=1)", "a.split(5)"):
  add(text, text, M)
for text in ("T.meshgrid(a, b, indexing='ij')", "T.meshgrid(a, b, indexing='xy')", "T.cartesian_prod(a, b)"):
  add(text, text, In((3,)), In((2,)))
add("repeat_interleave by each", "a.repeat_interleave(b, dim=0)", In((3, 2)), places(2, 0, 1))

add("splits by axis", "a.hsplit(2), a.vsplit((1,)), a.unsqueeze(0).dsplit(2), T.hsplit(a[0], 2)", M)
add("channel_shuffle", "F.channel_shuffle(a, 2)", In((1, 4, 2)))

# ---- padding
for text in ("F.pad(a, (1, 2))", "F.pad(a, (1, 0, 2, 1))", "F.pad(a, (1, 1), value=1.5)", "F.pad(a, (-1, 2))",
             "F.pad(a, (0, -2, 1, -1))", "F.pad(a, (1, 1, 1, 1, 1, 0))", "F.pad(a, (2, 1), mode='reflect')",
             "F.pad(a, (3, 2), mode='replicate')", "F.pad(a, (2, 4), mode='circular')",
             "F.pad(a, (1, 1), 'constant', -2.0)",
             "F.pad(a, (0, 0))"):
  add(text, text, CUBE)
for text in ("F.pad(a, (1, 2, 1, 0), mode='reflect')", "F.pad(a, (2, 1, 0, 3), mode='replicate')",
             "F.pad(a, (1, 2, 2, 1), mode='circular')", "F.pad(a, (1, 1, 1, 1), value=inf)"):
  add(text, text, In((1, 2, 3, 4)))
add("pad by axes", "a.pad(((1, 0), None, (0, 2)))", CUBE, theirs="F.pad(a, (0, 2, 0, 0, 1, 0))")
add("pad of integers", "F.pad(a, (1, 2), value=7)", In((2, 3), "int32"))

# ---- indexing
for text in ("a[0]", "a[-1]", "a[:, 1]", "a[..., 2]", "a[1, 2, 3]", "a[1:, ::2]", "a[..., 1:3]", "a[:, None, 1:]",
             "a[None]",
             "a[:, -2:]", "a[0, ..., 1]", "a[:, :, 5:]", "a[1:1]", "a[[1, 0]]", "a[:, [2, 0, 2]]", "a[[0, 1], [2, 0]]",
             "a[:, [[0, 1], [2, 0]]]", "a[[1], :, [2]]", "a[..., [3, -1]]", "a[1, [0, 2]]", "a[[0, 1], :, 1:3]",
             "a[a[:, 0, 0] > -9]", "a[:, a[0, :, 0] > -9, 1]", "a[a > 0]", "a[a > 9]", "a[[[0]], [[1, 2]]]",
             "a[:, [True, False, True]]", "a[None, [1, 0], None]"):
  add(text, text, CUBE)
for text, theirs in (("a[::-1]", "a.flip(0)"), ("a[:, ::-2]", "a.flip(1)[:, ::2]"), ("a[2:0:-1]", "a[1:3].flip(0)"),
                     ("a[..., ::-3]", "a.flip(1)[:, ::3]")):
  add(f"{text} backwards", text, M, theirs=theirs)
add("a[b]", "a[b], a[:, b % 4]", M, places(2, 0, 1, -1))
add("a[b, c]", "a[b, c]", M, places(0, 2, shape=(2, 1)), places(1, 3, 0))
add("a[b] of integers", "a[b]", In((5,), "int64", -9, 9), places(4, 0, -5, dtype="int32"), theirs="a[b.long()]")
add("a[b] of bools", "a[b]", In((5,), "bool"), places(4, 0, 3))
add("a[b] of float16", "a[b]", In((5, 2), "float16"), places(4, 0, 3))
add("a[b] of nothing", "a[b]", In((5, 2)), places(shape=(0,)))
add("mask of a scalar place", "a[b]", In((2, 3)), In((2, 3), "bool"))
add("gather", "T.gather(a, 1, b)", M, places(0, 1, 3, 3, 2, 1, shape=(3, 2)))
add("gather dim 0", "a.gather(0, b), a.gather(dim=-2, index=b)", M, places(0, 1, 2, 2, shape=(1, 4)))
add("gather of fewer", "a.gather(2, b)", CUBE, places(3, 0, shape=(1, 2, 1)))
add("take_along_dim", "T.take_along_dim(a, b, dim=1)", M, places(3, 0, shape=(1, 2)))
add("take_along_dim sorted", "T.take_along_dim(a, T.argsort(a, dim=0), dim=0)", M)
add("index_select", "T.index_select(a, 1, b), a.index_select(dim=0, index=b)", M, places(2, 0, 2))
add("take", "T.take(a, b)", M, places(0, 11, 5, 5, shape=(2, 2)))
add("masked_select", "T.masked_select(a, b)", M, In((3, 4), "bool"))
add("masked_select broadcast", "a.masked_select(b)", M, In((4,), "bool"))
add("masked_scatter", "a.masked_scatter(b, c)", M, In((3, 4), "bool"), In((12,)))
add("nonzero", "T.nonzero(a)", In((3, 4), "int32", 0, 2), loose="int")
add("nonzero as tuple", "a.nonzero(as_tuple=True)", In((2, 3, 2), "bool"), loose="int")
add("nonzero of floats", "T.argwhere(a)", In((6,), values=(0.0, 1.0, -0.0, float("nan"), 2.0, 0.0)), loose="int",
    backward=False)
add("nonzero of none", "a.nonzero()", In((3,), "int32", 0, 1), loose="int")
add("one_hot", "F.one_hot(a, num_classes=5), F.one_hot(a)", places(0, 3, 1, 2, shape=(2, 2)), loose="int")

add("embedding", "F.embedding(a, b), F.embedding(a, b, padding_idx=1)", places(2, 0, 1, 1, shape=(2, 2)), In((3, 4)))

# ---- scatter
IDX = places(0, 1, 2, 2, 3, 1, shape=(2, 3))
for kind in ("float32", "int32", "float16"):
  add(f"scatter of {kind}", "T.scatter(a, 0, b, c), a.scatter(dim=1, index=b, src=c)", In((4, 4), kind), IDX,
      In((2, 3), kind))
add("scatter a number", "a.scatter(1, b, 1.5)", In((4, 4)), IDX)
add("scatter of three axes", "a.scatter(1, b, c)", CUBE, places(2, 1, 0, 2, shape=(2, 2, 1)), In((2, 3, 4)),
    backward=False)
add("scatter_add", "T.scatter_add(a, 0, b, c), a.scatter_add(1, b, c)", In((4, 4)), IDX, In((2, 3)))
add("scatter reduce add", "a.scatter(0, b, c, reduce='add')", In((4, 4)), IDX, In((2, 3)), backward=False)
add("scatter reduce multiply", "a.scatter(0, b, c, reduce='multiply')", In((4, 4)), IDX, In((2, 3)), backward=False)
DOUBLED = places(0, 0, 2, 0, 2, 2, shape=(2, 3))
for how in ("sum", "prod", "mean", "amax", "amin"):
  for own in (True, False):
    add(f"scatter_reduce {how} {own}", f"a.scatter_reduce(1, b, c, reduce='{how}', include_self={own})", In((3, 4)),
        DOUBLED,
        In((2, 3), without=.1))
  add(f"scatter_reduce {how} of integers", f"a.scatter_reduce(1, b, c, reduce='{how}')", In((3, 4), "int32", -5, 6),
      DOUBLED,
      In((2, 3), "int32", 1, 6))
add("index_add", "T.index_add(a, 0, b, c), a.index_add(0, b, c, alpha=2)", M, places(2, 0, 2), In((3, 4)))
add("index_copy", "T.index_copy(a, 1, b, c)", M, places(2, 0), In((3, 2)))
add("index_fill", "T.index_fill(a, 1, b, 7.0)", M, places(3, 0))
add("index_put", "T.index_put(a, (b, c), d)", M, places(0, 2), places(1, 3), In((2,)))
add("index_put accumulates", "T.index_put(a, (b,), c, accumulate=True)", M, places(1, 1, 0), In((3, 4)))
add("select_scatter", "T.select_scatter(a, b, 1, 2)", M, In((3,)))
add("slice_scatter", "T.slice_scatter(a, b, 1, 1, 4, 2)", M, In((3, 2)))
add("diagonal_scatter", "T.diagonal_scatter(a, b, 1)", M, In((3,)))


def assigned(index: str, value: str) -> None:
  """`x[index] = value` of a copy."""
  text = f"(lambda x: (x.__setitem__({index}, {value}), x)[1])(a + 0)"
  add(f"x[{index}] = {value}", text, CUBE, In((3, 4)), backward=False)


for index, value in [("0", "b"), ("(slice(None), 1)", "b[0]"), ("(Ellipsis, slice(0, None, 2))", "-1.0"),
                     ("(1, 2, 3)", "5.0"),
                     ("(0, slice(1, None))", "b[:2]"), ("[1, 0]", "b"), ("(slice(None), [2, 0])", "b[:2]"),
                     ("([0, 1], [1, 2])", "b[:2]"), ("([0, 1], slice(None), [1, 2])", "b[:2, :3]"), ("a > 0", "0.0"),
                     ("a[:, :, 0] > 0", "7.0"), ("(0, [2, 1], slice(1, 3))",
                                                 "b[:2, :2]"), ("(slice(None), a[0, :, 0] > -9)", "b"),
                     ("(None, 0)", "b[None]"), ("(1, [0, 1, 2], [3, 2, 1])", "b[:, 0]")]:
  assigned(index, value)
