"""Operators in old versions, of com.microsoft, with options that ONNX's node tests leave out, and what they refuse;
against NumPy and onnxruntime."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.nn.onnx_models import FLOAT, INT64, helper, matrix, model, node, onnx
from tinyhw import Tensor, TinyJit, nn
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
X = [("x", FLOAT, None)]


def outputs(*names: str) -> list[Any]: return [(n, FLOAT, None) for n in names]


def run(data: bytes, *given: Any) -> list[Any]:
  """A model's results, as arrays."""
  return [v.numpy() for v in nn.onnx.load(data, "PYTHON")(*given).values()]


def held(data: bytes, x: Any) -> None:
  """The same as onnxruntime has it."""
  options = onnxruntime.SessionOptions()
  options.log_severity_level = 4
  session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
  for found, want in zip(run(data, x), session.run(None, {"x": x}), strict=True):
    assert found.shape == want.shape and found.dtype == want.dtype
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


MS = {"com.microsoft": 1}


def fused(kind: str, inputs: list[str], results: list[str], **attributes: Any) -> Any:
  return helper.make_node(kind, inputs, results, domain="com.microsoft", **attributes)


WINDOW = {"s": np.array([0.5, 0.25], np.float32)}
GRID = np.random.default_rng(3).uniform(-1.6, 1.6, (1, 2, 2, 2)).astype(np.float32)
CASES: dict[str, tuple[list[Any], list[str], dict[str, Any], Any, int]] = {
  # What were attributes once
  "slices": ([node("Slice", ["x"], ["y"], starts=[1, -3], ends=[9, -1], axes=[0, 2])], ["y"], {}, matrix(3, 2, 4), 9),
  "slices of all axes": ([node("Slice", ["x"], ["y"], starts=[1, 0], ends=[3, 1])], ["y"], {}, matrix(3, 2, 4), 9),
  "parts": ([node("Split", ["x"], ["y", "z"], axis=1, split=[1, 2])], ["y", "z"], {}, matrix(2, 3), 11),
  "equal parts": ([node("Split", ["x"], ["y", "z"], axis=0)], ["y", "z"], {}, matrix(4, 3), 11),
  "padding": ([node("Pad", ["x"], ["y"], pads=[0, 1, 2, 0], value=2.5)], ["y"], {}, matrix(2, 3), 10),
  "padding by reflection": ([node("Pad", ["x"], ["y"], pads=[1, 1, 0, 2], mode="reflect")], ["y"], {},
                            matrix(3, 4), 10),
  "squeezed": ([node("Squeeze", ["x"], ["y"], axes=[1])], ["y"], {}, matrix(2, 1, 3), 11),
  "unsqueezed": ([node("Unsqueeze", ["x"], ["y"], axes=[0, 2])], ["y"], {}, matrix(2, 3), 11),
  "sums": ([node("ReduceSum", ["x"], ["y"], axes=[0, 2], keepdims=0)], ["y"], {}, matrix(2, 3, 4), 11),
  "means kept": ([node("ReduceMean", ["x"], ["y"], axes=[-1])], ["y"], {}, matrix(2, 3, 4), 13),
  "logarithms of sums": ([node("ReduceLogSumExp", ["x"], ["y"], axes=[1])], ["y"], {}, matrix(2, 3, 4), 13),
  "norms": ([node("ReduceL2", ["x"], ["y"], keepdims=0)], ["y"], {}, matrix(2, 3), 13),
  "greatest": ([node("TopK", ["x"], ["y", "i"], k=2, axis=0)], ["y"], {}, matrix(4, 3), 9),
  "hardmax of rows": ([node("Hardmax", ["x"], ["y"], axis=1)], ["y"], {}, matrix(2, 3, 2), 11),
  "log softmax of rows": ([node("LogSoftmax", ["x"], ["y"], axis=2)], ["y"], {}, matrix(2, 3, 2), 11),
  "first resizing": ([node("Resize", ["x", "s"], ["y"], mode="linear")], ["y"],
                     {"s": np.array([1, 1, 1.5, 2], np.float32)}, matrix(1, 2, 3, 3), 10),
  "first upsampling": ([node("Upsample", ["x"], ["y"], scales=[1.0, 1, 2, 1.5])], ["y"], {}, matrix(1, 1, 3, 4), 7),
  "dropout": ([node("Dropout", ["x"], ["y"], ratio=0.3)], ["y"], {}, matrix(3, 2), 10),
  "clipped": ([node("Clip", ["x"], ["y"], min=-0.5, max=0.25)], ["y"], {}, matrix(3, 2), 10),
  "statistics at rest": ([node("BatchNormalization", ["x", "a", "b", "m", "v"], ["y"], epsilon=0.01)], ["y"],
                         {"a": matrix(3, seed=1), "b": matrix(3, seed=2), "m": matrix(3, seed=3),
                          "v": matrix(3, seed=4) ** 2}, matrix(2, 3, 2), 9),
  "regions": ([node("RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=2, sampling_ratio=2)], ["y"],
              {"r": np.array([[0, 0, 3, 3], [1, 1.5, 4, 3.5]], np.float32), "i": np.array([0, 0])},
              matrix(1, 2, 5, 5), 10),
  # Sampling
  **{f"sampled {mode} {padding} {aligned}": (
      [node("GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=padding, align_corners=aligned)], ["y"],
      {"g": GRID}, matrix(1, 1, 3, 4), 16) for mode, padding, aligned in
     [("bicubic", "zeros", 0), ("bilinear", "reflection", 1), ("nearest", "reflection", 0)]},
  "exclusive cubic": ([node("Resize", ["x", "", "s"], ["y"], mode="cubic", exclude_outside=1)], ["y"],
                      {"s": np.array([1, 1, 1.7, 0.8], np.float32)}, matrix(1, 1, 5, 4), 18),
  "not larger": ([node("Resize", ["x", "", "", "z"], ["y"], keep_aspect_ratio_policy="not_larger", axes=[2, 3])],
                 ["y"], {"z": np.array([7, 5])}, matrix(1, 1, 4, 4), 18),
  # com.microsoft
  "gemm": ([fused("FusedGemm", ["x", "b", "c"], ["y"], activation="Relu", alpha=0.5, beta=2.0, transB=1)], ["y"],
           {"b": matrix(4, 3, seed=1), "c": matrix(4, seed=2)}, matrix(2, 3), 18),
  "gemm turned": ([fused("FusedGemm", ["x", "b"], ["y"], transA=1, activation="Tanh")], ["y"],
                  {"b": matrix(2, 4, seed=1)}, matrix(2, 3), 18),
  "products twofold": ([fused("FusedMatMul", ["x", "b"], ["y"], alpha=2.0, transA=1)], ["y"],
                       {"b": matrix(2, 4, seed=1)}, matrix(2, 3), 18),
  "heads with a bias": ([fused("MultiHeadAttention", ["x", "x", "x", "b"], ["y"], num_heads=2, scale=0.3)], ["y"],
                        {"b": matrix(24, seed=1)}, matrix(2, 5, 8), 18),
  "heads that look back": ([fused("MultiHeadAttention", ["x", "x", "x"], ["y"], num_heads=2, unidirectional=1)], ["y"],
                           {}, matrix(1, 5, 8), 18),
  "skipped and simplified": ([fused("SkipSimplifiedLayerNormalization", ["x", "k", "g", "b"], ["y", "", "", "t"])],
                             ["y", "t"], {"k": matrix(2, 3, 4, seed=1), "g": matrix(4, seed=2), "b": matrix(4, seed=3)},
                             matrix(2, 3, 4), 18),
  "skipped": ([fused("SkipLayerNormalization", ["x", "k", "g", "e", "b"], ["y", "", "", "t"], epsilon=0.1)],
              ["y", "t"], {"k": matrix(2, 3, 4, seed=1), "g": matrix(4, seed=2), "e": matrix(4, seed=4),
                           "b": matrix(4, seed=3)}, matrix(2, 3, 4), 18),
}


@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime_has_it(name: str) -> None:
  nodes, names, weights, x, opset = CASES[name]
  held(model(nodes, X, outputs(*names), weights, opset=opset, domains=MS), x)


def test_normalization_without_a_mean() -> None:
  x, g = matrix(2, 3, 4), matrix(4, seed=1)
  node_ = fused("SimplifiedLayerNormalization", ["x", "g"], ["y", "i"], epsilon=0.5)
  inverse = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 0.5)
  found = run(model([node_], X, outputs("y", "i"), {"g": g}, domains=MS), x)
  np.testing.assert_allclose(found[0], x * inverse * g, rtol=1e-5)
  np.testing.assert_allclose(found[1], inverse, rtol=1e-5)
  two = fused("SimplifiedLayerNormalization", ["x", "g"], ["y"], axis=1)
  wide = run(model([two], X, outputs("y"), {"g": matrix(3, 4, seed=1)}, domains=MS), x)[0]
  np.testing.assert_allclose(wide, x / np.sqrt((x * x).mean((1, 2), keepdims=True) + 1e-5) * matrix(3, 4, seed=1),
                             rtol=1e-5)


def test_groups_of_channels_with_a_scale_each() -> None:
  x, scale, bias = matrix(2, 4, 3), np.array([2, 3], np.float32), np.array([1, -1], np.float32)
  found = run(model([node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)], X, outputs("y"),
                    {"s": scale, "b": bias}, opset=18), x)[0]
  groups = x.reshape(2, 2, 6)
  plain = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
  np.testing.assert_allclose(found, (plain * scale[:, None] + bias[:, None]).reshape(x.shape), rtol=1e-4, atol=1e-5)


# *** types of few bits ***


@pytest.mark.parametrize("kind, to", [("int4", 22), ("uint4", 21), ("int2", 26), ("uint2", 25)])
def test_weights_of_few_bits(kind: str, to: int) -> None:
  bits = int(kind[-1])
  low = -(1 << bits - 1) if kind.startswith("i") else 0
  numbers = np.arange(low, low + (1 << bits))[:, None].repeat(3, 1)[:-1] if bits == 4 else np.array([[low, 0, 1]] * 3)
  ends = np.concatenate((numbers.ravel(), [low + (1 << bits) - 1]))
  packed = np.zeros(-(-ends.size * bits // 8), np.uint8)
  for i, n in enumerate(ends): packed[i * bits // 8] |= (int(n) & ((1 << bits) - 1)) << i * bits % 8
  for raw in (True, False):
    weight = onnx.TensorProto(name="w", data_type=to, dims=[ends.size])
    if raw: weight.raw_data = packed.tobytes()
    else: weight.int32_data.extend(int(b) for b in packed)
    made = onnx.ModelProto()
    made.ParseFromString(model([node("Cast", ["w"], ["y"], to=FLOAT)], [], outputs("y"), opset=25))
    made.graph.initializer.append(weight)
    made.ir_version = 13
    np.testing.assert_array_equal(run(made.SerializeToString())[0], ends.astype(np.float32))


SCALES = np.array([1.0, 1.5, 2.0, 3.0, 0.3, 2.0**-126, 2.0**-127, 1.5 * 2.0**-127, 2.0**-128, 2.0**127, 3e38, np.nan],
                  np.float32)


@pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_scales_that_are_powers_of_2(rounding: str, saturate: int) -> None:
  """float8e8m0 by its definition: 2**(code - 127); 255 is no number."""
  nodes = [node("Cast", ["x"], ["e"], to=24, round_mode=rounding, saturate=saturate), node("Cast", ["e"], ["y"], to=1)]
  found = run(model(nodes, X, outputs("y"), opset=24), SCALES)[0]
  exact = SCALES.astype(np.float64)
  with np.errstate(all="ignore"):
    power = np.log2(exact)
    if rounding == "nearest": exponent = np.floor(power) + (exact / 2.0**np.floor(power) >= 1.5)
    else: exponent = np.ceil(power) if rounding == "up" else np.floor(power)
    exponent = np.maximum(exponent, -127)
    wanted = np.where(exponent > 127, 2.0**127 if saturate else np.nan, 2.0**exponent)
  np.testing.assert_array_equal(found[:7], wanted[:7])
  np.testing.assert_array_equal(found[9:], wanted[9:])


@pytest.mark.parametrize("kind, limits", [(2, (0, 255)), (3, (-128, 127)), (4, (0, 65535)), (5, (-32768, 32767))])
def test_a_type_to_quantize_to(kind: int, limits: tuple[int, int]) -> None:
  x = np.array([-1e6, -2.5, -0.4, 0.5, 1.5, 2.6, 1e6], np.float32)
  nodes = [node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=kind)]
  found = run(model(nodes, X, [("y", kind, None)], {"s": np.float32(0.5)}, opset=21), x)[0]
  np.testing.assert_array_equal(found, np.clip(np.round(x / np.float32(0.5)), *limits))


@pytest.mark.parametrize("kind, code", [("float8_e4m3fnuz", 18), ("float8_e5m2fnuz", 20), ("float4_e2m1fn", 23)],
                         ids=["float8e4m3fnuz", "float8e5m2fnuz", "float4e2m1"])
def test_small_floats_by_their_bits(kind: str, code: int) -> None:
  """Every code, and numbers between, beyond and at the ends, as ml_dtypes has them."""
  ml_dtypes = pytest.importorskip("ml_dtypes")
  theirs = np.dtype(getattr(ml_dtypes, kind))
  codes = np.arange(16 if "4_" in kind else 256, dtype=np.uint8)
  values = codes.view(theirs).astype(np.float32)
  read = model([node("Cast", ["x"], ["y"], to=1)], [("x", code, None)], outputs("y"), opset=25)
  np.testing.assert_array_equal(run(read, codes)[0], values)
  finite = np.unique(values[np.isfinite(values)])
  most = finite.max()
  x = np.concatenate((finite, (finite[1:] + finite[:-1]) / 2, (3 * finite[1:] + finite[:-1]) / 4))
  for saturate in (0, 1):
    write = model([node("Cast", ["x"], ["y"], to=code, saturate=saturate)], X, [("y", code, None)], opset=25)
    np.testing.assert_array_equal(run(write, x)[0], x.astype(theirs).view(np.uint8))
    far = run(write, np.array([1e9, -1e9], np.float32))[0].view(theirs).astype(np.float32)
    if saturate or "4_" in kind: np.testing.assert_array_equal(far, [most, -most])
    else: assert np.isnan(far).all()


def test_halves_quantize_as_floats_do() -> None:
  """A half has not the digits of what it is quantized to."""
  x, scale = np.array([1.5, 300.25, 60000], np.float16), np.float16(1.75)
  data = model([node("QuantizeLinear", ["x", "s", "z"], ["y"])], [("x", 10, None)], [("y", 4, None)],
               {"s": scale, "z": np.uint16(12345)}, opset=21)
  np.testing.assert_array_equal(run(data, x)[0], np.round((x / scale).astype(np.float32)) + 12345)


def test_products_of_integers_less_their_zeros() -> None:
  draw = np.random.default_rng(5)
  a, b = draw.integers(0, 255, (2, 3)).astype(np.uint8), draw.integers(-128, 127, (3, 4)).astype(np.int8)
  for a_zero, b_zero in ((np.array([3, 250], np.uint8), np.array([1, -2, 3, -4], np.int8)),
                         (np.uint8(7), np.array([5], np.int8)), (np.array([9], np.uint8), np.int8(-3))):
    data = model([node("MatMulInteger", ["x", "b", "p", "q"], ["y"])], [("x", 2, None)], [("y", 6, None)],
                 {"b": b, "p": a_zero, "q": b_zero})
    mine = a.astype(int) - (a_zero[:, None] if a_zero.ndim else a_zero).astype(int)
    np.testing.assert_array_equal(run(data, a)[0], mine @ (b.astype(int) - b_zero.astype(int)))
  x, w = draw.integers(0, 255, (1, 1, 4)).astype(np.uint8), draw.integers(0, 255, (2, 1, 2)).astype(np.uint8)
  for zero, zeros in ((np.array([100], np.uint8), np.array([30, 200], np.uint8)), (np.uint8(1), np.uint8(2))):
    data = model([node("ConvInteger", ["x", "w", "p", "q"], ["y"])], [("x", 2, None)], [("y", 6, None)],
                 {"w": w, "p": zero, "q": zeros})
    less = w[:, 0].astype(int) - (zeros[:, None] if zeros.ndim else zeros).astype(int)
    rows = np.lib.stride_tricks.sliding_window_view(x[0, 0] - np.int64(zero.item()), 2)
    np.testing.assert_array_equal(run(data, x)[0][0], (rows @ less.T).T)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_classes_on_any_axis(axis: int) -> None:
  found = run(model([node("OneHot", ["x", "d", "v"], ["y"], axis=axis)], [("x", INT64, None)], outputs("y"),
                    {"d": np.int64(4), "v": np.array([-1, 5], np.float32)}), np.array([[0, 3], [-1, 2]]))[0]
  wanted = np.where(np.eye(4, dtype=bool)[np.array([[0, 3], [3, 2]])], np.float32(5), np.float32(-1))
  np.testing.assert_array_equal(found, np.moveaxis(wanted, -1, axis))


@pytest.mark.parametrize("shape, all_sizes, wanted", [([0, -1], 0, (0, 0)), ([3, -1], 0, (3, 0)), ([3, 0], 1, (3, 0)),
                                                      ([0, -1], 1, (0, 0)), ([-1, 3], 0, (0, 3))])
def test_reshaping_nothing(shape: list[int], all_sizes: int, wanted: tuple[int, ...]) -> None:
  data = model([node("Reshape", ["x", "s"], ["y"], allowzero=all_sizes)], X, outputs("y"), {"s": np.array(shape)})
  assert run(data, np.zeros((0, 3), np.float32))[0].shape == wanted


# *** sequences, features, chance, shapes ***


def test_sequences() -> None:
  def of(*nodes: Any, **weights: Any) -> Any:
    parts = node("SplitToSequence", ["x", "two"], ["q"], axis=0)
    return run(model([parts, *nodes], X, outputs("y"), {"two": np.array(2), **weights}, opset=13), x)[0]
  x = matrix(5, 3)
  for at in (0, 1, 2, -1, -3):
    np.testing.assert_array_equal(of(node("SequenceAt", ["q", "i"], ["y"]), i=np.array(at)), [x[:2], x[2:4], x[4:]][at])
    rest = [x[:2], x[2:4], x[4:]]
    del rest[at]
    erased = [node("SequenceErase", ["q", "i"], ["r"]), node("ConcatFromSequence", ["r"], ["y"], axis=0)]
    np.testing.assert_array_equal(of(*erased, i=np.array(at)), np.concatenate(rest))
  last = [node("SequenceErase", ["q"], ["r"]), node("ConcatFromSequence", ["r"], ["y"], axis=0)]
  np.testing.assert_array_equal(of(*last), x[:4])
  pair = [node("SequenceErase", ["q"], ["r"]), node("ConcatFromSequence", ["r"], ["y"], axis=1, new_axis=1)]
  np.testing.assert_array_equal(of(*pair), np.stack((x[:2], x[2:4]), 1))
  one = [node("SequenceErase", ["q"], ["r"]), node("SequenceErase", ["r"], ["s"])]
  for new, want in ((0, x[:2]), (1, x[None, :2])):
    np.testing.assert_array_equal(of(*one, node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=new)), want)
  for at in (3, -4):
    with pytest.raises(InvalidArgument, match=f"position {at} of a sequence of 3"):
      of(node("SequenceAt", ["q", "i"], ["y"]), i=np.array(at))
  with pytest.raises(InvalidArgument, match="an empty sequence"):
    of(node("SequenceEmpty", [], ["e"]), node("ConcatFromSequence", ["e"], ["y"], axis=0))
  with pytest.raises(InvalidArgument, match="a tensor where a sequence is needed"):
    of(node("SequenceAt", ["x", "two"], ["y"]))
  with pytest.raises(InvalidArgument, match="a sequence where a tensor is needed"): of(node("Neg", ["q"], ["y"]))
  with pytest.raises(InvalidArgument, match="a sequence has no shape"): of(node("Shape", ["q"], ["y"]))
  with pytest.raises(InvalidArgument, match="a sequence where numbers are needed"):
    of(node("Expand", ["x", "q"], ["y"]))


def test_chosen_features() -> None:
  for x in (matrix(2, 5), matrix(5)):
    pick = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    found = run(model([pick], X, outputs("y"), {"i": np.array([3, 0, 3])}, domains={"ai.onnx.ml": 3}), x)[0]
    np.testing.assert_array_equal(found, x.reshape(-1, 5)[:, [3, 0, 3]])


@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("kind, dtype", [(1, np.float32), (11, np.float64)])
def test_random_numbers(like: bool, kind: int, dtype: Any) -> None:
  size = {} if like else {"shape": [40, 50]}
  nodes = [node("RandomNormal" + "Like" * like, ["x"] * like, ["n"], mean=3.0, scale=0.5, dtype=kind, **size),
           node("RandomUniform" + "Like" * like, ["x"] * like, ["u"], low=-1.0, high=4.0, dtype=kind, **size)]
  data = model(nodes, X if like else [], [("n", kind, None), ("u", kind, None)], {})
  normal, uniform = run(data, *([np.zeros((40, 50), np.float32)] * like))
  assert normal.dtype == uniform.dtype == dtype and normal.shape == uniform.shape == (40, 50)
  assert abs(normal.mean() - 3) < 0.06 and abs(normal.std() - 0.5) < 0.04
  assert -1 <= uniform.min() < -0.95 and 3.95 < uniform.max() < 4 and abs(uniform.mean() - 1.5) < 0.15


def test_shapes_turned_and_repeated_on_the_host() -> None:
  """Arithmetic of shapes is no kernel's: what comes of it may be a shape again."""
  nodes = [node("Shape", ["x"], ["s"]), node("Reshape", ["s", "two"], ["m"]), node("Transpose", ["m"], ["t"]),
           node("Reshape", ["t", "flat"], ["f"]), node("Tile", ["f", "once"], ["r"]),
           node("Reshape", ["x", "r"], ["y"])]
  weights = {"two": np.array([2, 2]), "flat": np.array([-1]), "once": np.array([1])}
  found = run(model(nodes, X, outputs("y"), weights), matrix(2, 3, 4, 5))[0]
  np.testing.assert_array_equal(found, matrix(2, 3, 4, 5).reshape(2, 4, 3, 5))


def test_shapes_of_constants_are_known_while_recording() -> None:
  """A shape that is put together of constants, and a product of sizes: a recording reads no values."""
  nodes = [node("Concat", ["a", "b"], ["s"], axis=0), node("Reshape", ["x", "s"], ["r"]), node("Shape", ["r"], ["t"]),
           node("ReduceProd", ["t"], ["p"], keepdims=1), node("Reshape", ["r", "p"], ["f"]),
           node("ReduceMax", ["t"], ["m"], axes=[0], keepdims=1), node("Concat", ["m", "b"], ["u"], axis=0),
           node("Reshape", ["f", "u"], ["y"])]
  loaded = nn.onnx.load(model(nodes, X, outputs("y"), {"a": np.array([2]), "b": np.array([-1])}, opset=12), "PYTHON")
  step = TinyJit(lambda x: loaded(x)["y"].realize())
  for seed in range(3):
    x = matrix(3, 4, seed=seed)
    np.testing.assert_array_equal(step(Tensor(x, device="PYTHON")).numpy(), x.reshape(6, 2))


def test_large_constants_in_nodes_are_weights() -> None:
  big = matrix(40, 40)
  nodes = [helper.make_node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(big)),
           node("Split", ["x"], ["p", "q"], axis=0), node("MatMul", ["p", "c"], ["y"]), node("Neg", ["q"], ["z"])]
  loaded = nn.onnx.load(model(nodes, X, outputs("y", "z"), opset=13), "PYTHON")
  assert list(nn.get_state_dict(loaded)) == ["weights.c"]
  x = matrix(4, 40, seed=1)
  found = loaded(x)
  np.testing.assert_allclose(found["y"].numpy(), x[:2] @ big, rtol=1e-4, atol=1e-4)
  np.testing.assert_array_equal(found["z"].numpy(), -x[2:])


def test_what_may_be_absent() -> None:
  kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
  made = onnx.ModelProto()
  made.ParseFromString(model([node("OptionalHasElement", ["o"], ["y"])], [], [("y", 9, [])]))
  made.graph.input.append(helper.make_value_info("o", kind))
  assert not run(made.SerializeToString())[0]
  assert run(made.SerializeToString(), np.zeros(2, np.float32))[0]
  empty = [helper.make_node("Optional", [], ["o"], type=kind), node("OptionalHasElement", ["o"], ["y"])]
  assert not run(model(empty, [], [("y", 9, [])]))[0]


def test_random_numbers_without_options() -> None:
  nodes = [node("RandomNormalLike", ["x"], ["n"]), node("RandomUniformLike", ["x"], ["u"])]
  normal, uniform = run(model(nodes, X, outputs("n", "u")), np.zeros((40, 50), np.float32))
  assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.08
  assert 0 <= uniform.min() < 0.01 and 0.99 < uniform.max() < 1


# *** what is refused ***


REFUSED: dict[str, tuple[Any, Any, str]] = {
  "activation": (fused("FusedGemm", ["x", "x"], ["y"], activation="Elu"), InvalidArgument, "matmul"),
  "heads": (fused("MultiHeadAttention", ["x", "x", "x"], ["y"], num_heads=3), InvalidArgument, "3 heads of 4 and 4"),
  "packed": (fused("MultiHeadAttention", ["x"], ["y"], num_heads=2), Unsupported, "packed queries"),
  "resize mode": (node("Resize", ["x", "", "s"], ["y"], mode="area"), InvalidArgument, "mode 'area' is none of"),
  "coordinates": (node("Resize", ["x", "", "s"], ["y"], coordinate_transformation_mode="mine"), InvalidArgument,
                  "mode 'mine' of coordinates"),
  "nearest mode": (node("Resize", ["x", "", "s"], ["y"], nearest_mode="up"), InvalidArgument, "nearest_mode 'up'"),
  "no size": (node("Resize", ["x"], ["y"]), InvalidArgument, "neither scales nor sizes"),
  "few scales": (node("Resize", ["x", "", "s"], ["y"]), InvalidArgument, "2 scales for 3 axes"),
  "few sizes": (node("Resize", ["x", "", "", "i"], ["y"]), InvalidArgument, "2 sizes for 3 axes"),
  "policy": (node("Resize", ["x", "", "", "i"], ["y"], keep_aspect_ratio_policy="wide", axes=[0, 1]), InvalidArgument,
             "policy 'wide'"),
  "squeezed": (node("Squeeze", ["x", "i"], ["y"]), InvalidArgument, "not of size 1"),
  "blocks": (node("SpaceToDepth", ["w"], ["y"], blocksize=2), InvalidArgument, "blocks of 2 of shape"),
  "nd indices": (node("GatherND", ["x", "five"], ["y"]), InvalidArgument, "indices of shape"),
  "quantized": (node("QuantizeLinear", ["x", "s"], ["y"], axis=0), InvalidArgument, "2 scales for axis 0"),
  "kernel": (node("Conv", ["x", "w"], ["y"], kernel_shape=[2]), InvalidArgument, "kernel_shape .2,. of weights"),
  "columns": (node("Col2Im", ["x", "two", "i"], ["y"]), InvalidArgument, "4 columns for"),
  "random": (node("RandomNormalLike", ["i"], ["y"]), InvalidArgument, "random numbers of int64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
  node_, kind, told = REFUSED[name]
  weights = {"two": np.array([4, 4]),
             "s": np.array([1, 2], np.float32), "i": np.array([1, 2]), "five": np.zeros((1, 5), np.int64),
             "w": matrix(2, 3, 3)}
  with pytest.raises(kind, match=told):
    run(model([node_], X, outputs("y"), weights, domains=MS, opset=19), matrix(1, 3, 4))


def test_two_opsets_of_one_domain() -> None:
  made = onnx.ModelProto()
  made.ParseFromString(model([node("Neg", ["x"], ["y"])], X, outputs("y")))
  made.opset_import.append(helper.make_opsetid("", 17))
  with pytest.raises(InvalidArgument, match="opsets 18 and 17 of domain"): nn.onnx.load(made.SerializeToString())


@pytest.mark.parametrize("name", ["", "w"])
def test_an_initializer_has_a_name_of_its_own(name: str) -> None:
  made = onnx.ModelProto()
  made.ParseFromString(model([node("Add", ["x", "w"], ["y"])], X, outputs("y"), {"w": matrix(3)}))
  made.graph.initializer.append(onnx.numpy_helper.from_array(matrix(3), name))
  with pytest.raises(InvalidArgument, match=f"initializer '{name}' has no name of its own"):
    nn.onnx.load(made.SerializeToString())


def test_data_elsewhere_at_no_number() -> None:
  made = onnx.ModelProto()
  made.ParseFromString(model([node("Add", ["x", "w"], ["y"])], X, outputs("y"), {"w": matrix(3)}))
  weight = made.graph.initializer[0]
  weight.ClearField("raw_data")
  weight.data_location = onnx.TensorProto.EXTERNAL
  for key, value in (("location", "w.bin"), ("offset", "here")):
    entry = weight.external_data.add()
    entry.key, entry.value = key, value
  with pytest.raises((DecodeError, InvalidArgument), match="is no number|given as bytes"):
    nn.onnx.load(made.SerializeToString())


