"""The importer against onnxruntime: networks, operators in many forms, and graphs that Hypothesis draws."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.onnx_models import FLOAT, INT64, helper, matrix, model, node, onnx
from tests.strength import THOROUGH, examples
from tinyhw import nn

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def held(data: bytes, rtol: float = 2e-5, atol: float = 2e-5, device: str | None = None, of_most: float = 0,
         **inputs: Any) -> None:
  """A model's outputs here are those of onnxruntime; `of_most` adds a part of the greatest one to what may differ."""
  options = onnxruntime.SessionOptions()
  options.log_severity_level = 4
  options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
  session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
  found = nn.onnx.load(data, device)(**inputs)
  for (name, value), want in zip(found.items(), session.run(None, inputs), strict=True):
    assert value.shape == want.shape and value.dtype.name == want.dtype.name, name
    most = float(np.abs(want).max()) if of_most else 0.0
    np.testing.assert_allclose(value.numpy(), want, rtol=rtol, atol=atol + of_most * most, err_msg=name)


X = [("x", FLOAT, None)]
Y = [("y", FLOAT, None)]


# *** networks ***


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_a_perceptron(device: str) -> None:
  nodes = [node("Flatten", ["x"], ["f"]), node("Gemm", ["f", "w", "b"], ["h"], alpha=0.5, beta=2.0, transB=1),
           node("Tanh", ["h"], ["t"]), node("MatMul", ["t", "v"], ["s"]), node("Softmax", ["s"], ["y"], axis=-1)]
  weights = {"w": matrix(7, 12, seed=1), "b": matrix(7, seed=2), "v": matrix(7, 5, seed=3)}
  held(model(nodes, X, Y, weights), device=device, x=matrix(4, 3, 4))


def test_a_convolutional_network() -> None:
  nodes = [node("Conv", ["x", "w", "b"], ["c"], pads=[1, 0, 0, 1], strides=[2, 1], dilations=[1, 2], group=2),
           node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"], epsilon=1e-3),
           node("Relu", ["n"], ["r"]), node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[1, 2], ceil_mode=1),
           node("Conv", ["p", "u"], ["q"], auto_pad="SAME_LOWER"), node("GlobalAveragePool", ["q"], ["y"])]
  weights = {"w": matrix(6, 2, 3, 3, seed=1), "b": matrix(6, seed=2), "scale": matrix(6, seed=3),
             "bias": matrix(6, seed=4), "mean": matrix(6, seed=5), "var": matrix(6, seed=6) ** 2 + 0.5,
             "u": matrix(3, 6, 2, 3, seed=7)}
  held(model(nodes, X, Y, weights), x=matrix(2, 4, 9, 10))


@pytest.mark.parametrize("kind, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_networks(kind: str, gates: int) -> None:
  hidden = 3
  more: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
  outputs = ["y", "h"] + ["c"] * (kind == "LSTM")
  nodes = [node(kind, ["x", "w", "r", "b", "n"], outputs, hidden_size=hidden, direction="bidirectional", **more)]
  weights = {"w": matrix(2, gates * hidden, 4, seed=1), "r": matrix(2, gates * hidden, hidden, seed=2),
             "b": matrix(2, 2 * gates * hidden, seed=3), "n": np.array([5, 2], np.int32)}
  held(model(nodes, X, [(o, FLOAT, None) for o in outputs], weights, opset=14), x=matrix(5, 2, 4))


def test_attention_of_heads_with_a_mask() -> None:
  nodes = [node("MatMul", ["x", "w"], ["qkv"]), node("Split", ["qkv"], ["q", "k", "v"], axis=-1, num_outputs=3),
           *(node("Reshape", [n, "heads"], [n + "h"]) for n in "qkv"),
           node("Transpose", ["qh"], ["qt"], perm=[0, 2, 1, 3]), node("Transpose", ["kh"], ["kt"], perm=[0, 2, 3, 1]),
           node("Transpose", ["vh"], ["vt"], perm=[0, 2, 1, 3]), node("MatMul", ["qt", "kt"], ["s"]),
           node("Mul", ["s", "scale"], ["z"]), node("Where", ["seen", "z", "far"], ["m"]),
           node("Softmax", ["m"], ["a"], axis=-1), node("MatMul", ["a", "vt"], ["o"]),
           node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]), node("Reshape", ["ot", "back"], ["f"]),
           node("Add", ["f", "x"], ["r"]), node("LayerNormalization", ["r", "gain"], ["y"], axis=-1)]
  weights = {"w": matrix(8, 24, seed=1), "heads": np.array([0, 0, 2, 4]), "scale": np.float32(0.5),
             "seen": np.tril(np.ones((5, 5), bool)), "far": np.float32(-1e9), "back": np.array([0, 0, -1]),
             "gain": matrix(8, seed=2)}
  held(model(nodes, X, Y, weights), x=matrix(2, 5, 8))


@pytest.mark.parametrize("padded", [False, True])
def test_operators_of_microsoft(padded: bool) -> None:
  fused = [helper.make_node(kind, inputs, outputs, domain="com.microsoft", **attributes) for kind, inputs, outputs,
           attributes in [
    ("SkipLayerNormalization", ["x", "x", "gain", "bias"], ["s"], {"epsilon": 1e-5}),
    ("MultiHeadAttention", ["s", "s", "x", "", "mask" if padded else ""], ["a"], {"num_heads": 2}),
    ("FusedMatMul", ["a", "w"], ["f"], {"transB": 1, "alpha": 0.5}),
    ("BiasGelu", ["f", "bias"], ["g"], {}), ("FastGelu", ["g"], ["h"], {}), ("QuickGelu", ["h"], ["y"], {})]]
  weights = {"gain": matrix(8, seed=1), "bias": matrix(8, seed=2), "w": matrix(8, 8, seed=3)}
  if padded: weights["mask"] = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
  held(model(fused, X, Y, weights, domains={"com.microsoft": 1}), rtol=1e-3, atol=1e-4, x=matrix(2, 5, 8))


def test_a_quantized_layer() -> None:
  nodes = [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), node("MatMulInteger", ["q", "w", "z"], ["i"]),
           node("Cast", ["i"], ["f"], to=1), node("Mul", ["f", "s"], ["y"])]
  held(model(nodes, X, Y, {"w": np.random.default_rng(1).integers(-64, 64, (6, 4)).astype(np.int8)}), x=matrix(3, 6))


@pytest.mark.skipif(not THOROUGH, reason="whole networks: with THOROUGH=1")
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "resnet50", "densenet121", "inception_v1"])
def test_whole_networks(name: str) -> None:
  """The architectures that the package onnx brings without weights: random ones, and what goes into the last
  softmax."""
  path = Path(onnx.__file__).parent / f"backend/test/data/light/light_{name}.onnx"
  if not path.exists(): pytest.skip("this package onnx has no such model")
  found, draw = onnx.load(path), np.random.default_rng(0)
  shapes = {i.name: tuple(onnx.numpy_helper.to_array(i)) for i in found.graph.initializer}
  nodes = []
  for n in found.graph.node:
    if n.op_type != "ConstantOfShape": nodes.append(n)
    else:
      shape = shapes[n.input[0]]
      made = draw.uniform(0.5, 1.5, shape)
      if len(shape) > 1: made = draw.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
      found.graph.initializer.append(onnx.numpy_helper.from_array(made.astype(np.float32), n.output[0]))
  if nodes[-1].op_type == "Softmax":
    found.graph.output[0].name = nodes.pop().input[0]
    found.graph.output[0].type.tensor_type.ClearField("shape")
  del found.graph.node[:]
  found.graph.node.extend(nodes)
  (port,) = [i for i in found.graph.input if i.name not in {w.name for w in found.graph.initializer}]
  x = matrix(*(d.dim_value or 1 for d in port.type.tensor_type.shape.dim))
  held(found.SerializeToString(), of_most=1e-5, **{port.name: x})


# *** operators in the forms that node tests leave out ***

FORMS: list[tuple[str, list[Any], dict[str, Any], dict[str, Any], int]] = [
  ("average of what is padded",
   [node("AveragePool", ["x"], ["y"], kernel_shape=[3, 2], pads=[1, 1, 1, 0], strides=[2, 1],
                                      count_include_pad=1)], {}, {"x": matrix(1, 2, 6, 5)}, 18),
  ("norms of windows", [node("LpPool", ["x"], ["y"], kernel_shape=[2], p=3, strides=[2])], {}, {"x": matrix(2, 3, 7)},
   18),
  ("transposed convolution", [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 3], output_padding=[1, 0],
                                   pads=[1, 0, 1,
                                         2], group=2)], {"w": matrix(4, 3, 3, 2, seed=1)}, {"x": matrix(2, 4, 4,
                                                                                                        3)}, 18),
  ("softmax of rows", [node("Softmax", ["x"], ["y"], axis=1)], {}, {"x": matrix(2, 3, 4)}, 11),
  ("upsampling", [node("Upsample", ["x", "s"], ["y"], mode="linear")], {"s": np.array([1, 1, 2, 1.5], np.float32)},
   {"x": matrix(1, 2, 4, 4)}, 9),
  ("cubic resizing", [node("Resize", ["x", "", "s"], ["y"], mode="cubic", cubic_coeff_a=-0.5)],
   {"s": np.array([1, 1, 1.7, 0.6], np.float32)}, {"x": matrix(1, 2, 5, 6)}, 18),
  ("padding by reflection", [node("Pad", ["x", "p"], ["y"], mode="reflect")], {"p": np.array([0, 2, 1, 0, 1, 3])},
   {"x": matrix(2, 3, 4)}, 18),
  ("slices backwards", [node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
   {"s": np.array([-1, 100]), "e": np.array([-100, 1]), "a": np.array([1, 2]), "t": np.array([-2, -1])},
   {"x": matrix(2, 5, 6)}, 18),
  ("normalization of channels", [node("LRN", ["x"], ["y"], size=5, alpha=0.2, bias=1.5)], {},
   {"x": matrix(2, 6, 3, 2)}, 18),
  ("determinants", [node("Det", ["x"], ["y"])], {}, {"x": matrix(3, 4, 4)}, 18),
  ("a sum that starts late", [node("CumSum", ["x", "a"], ["y"], exclusive=1, reverse=1)], {"a": np.int64(-1)},
   {"x": matrix(2, 5)}, 18),
  ("regions", [node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[2, 3], spatial_scale=0.5)],
   {"r": np.array([[0, 1, 2, 9, 11], [1, 0, 0, 3, 3], [0, 4, 4, 4, 4]], np.float32)}, {"x": matrix(2, 3, 7, 6)}, 18),
  ("a product at positions that repeat", [node("ScatterND", ["x", "i", "u"], ["y"], reduction="mul")],
   {"i": np.array([[1, 0], [0, 2], [1, 0]]), "u": matrix(3, 2, seed=4)}, {"x": matrix(2, 3, 2)}, 18),
]


@pytest.mark.parametrize("what, nodes, weights, inputs, opset", FORMS, ids=[f[0] for f in FORMS])
def test_forms_of_operators(what: str, nodes: list[Any], weights: dict[str, Any], inputs: dict[str, Any],
                            opset: int) -> None:
  held(model(nodes, X, Y, weights, opset=opset), rtol=1e-4, atol=1e-5, **inputs)


# *** graphs that are drawn ***

UNARY = ("Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Softsign", "Erf", "HardSwish", "Identity", "Sin")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")


@st.composite
def graphs(draw: Any) -> tuple[bytes, dict[str, Any]]:
  """A graph of elementwise functions, reductions, transpositions and computed shapes over two inputs of (n, m, 4)."""
  n, m = draw(st.integers(1, 3)), draw(st.integers(1, 3))
  nodes, values = [], ["a", "b"]
  for i in range(draw(st.integers(1, 8))):
    name, pick = f"t{i}", draw(st.sampled_from(values))
    kind = draw(st.sampled_from(("unary", "binary", "reduce", "turn", "shape", "softmax", "concat", "gather")))
    if kind == "unary": nodes.append(node(draw(st.sampled_from(UNARY)), [pick], [name]))
    elif kind == "binary": nodes.append(node(draw(st.sampled_from(BINARY)), [pick, draw(st.sampled_from(values))],
                                             [name]))
    elif kind == "softmax": nodes.append(node("Softmax", [pick], [name], axis=draw(st.integers(-3, 2))))
    elif kind == "reduce":  # and spread again, by the shape of the whole
      nodes += [node(draw(st.sampled_from(("ReduceMean", "ReduceMax", "ReduceSum"))), [pick, "last"], [name + "r"]),
                node("Shape", [pick], [name + "s"]), node("Expand", [name + "r", name + "s"], [name])]
    elif kind == "turn":
      nodes += [node("Transpose", [pick], [name + "t"], perm=[1, 0, 2]), node("Relu", [name + "t"], [name + "u"]),
                node("Transpose", [name + "u"], [name], perm=[1, 0, 2])]
    elif kind == "shape":  # flat, and back
      nodes += [node("Shape", [pick], [name + "s"]), node("ReduceProd", [name + "s", "first"], [name + "n"]),
                node("Reshape", [pick, name + "n"], [name + "f"]), node("Reshape", [name + "f", name + "s"], [name])]
    elif kind == "concat":
      nodes += [node("Concat", [pick, draw(st.sampled_from(values))], [name + "c"], axis=2),
                node("Slice", [name + "c", "two", "six", "last"], [name])]
    else: nodes.append(node("Gather", [pick, "order"], [name], axis=2))
    values.append(name)
  constants = {"last": np.array([2]), "first": np.array([0]), "two": np.array([2]), "six": np.array([6]),
               "order": np.array([3, 0, -2, 1])}
  shape = ["n", "m", 4]
  data = model(nodes, [("a", FLOAT, shape), ("b", FLOAT, shape)], [(values[-1], FLOAT, None)], constants)
  return data, {"a": matrix(n, m, 4, seed=n), "b": matrix(n, m, 4, seed=10 + m)}


@settings(max_examples=examples(15), deadline=None)
@given(graphs())
def test_drawn_graphs(case: tuple[bytes, dict[str, Any]]) -> None:
  held(case[0], rtol=1e-4, atol=1e-4, **case[1])


def test_integers_wrap_and_divide_towards_zero() -> None:
  nodes = [node("Div", ["x", "d"], ["q"]), node("Mod", ["x", "d"], ["r"]), node("Mod", ["x", "d"], ["f"], fmod=1),
           node("Mul", ["x", "x"], ["p"])]
  held(model(nodes, [("x", INT64, None)], [(n, INT64, None) for n in "qrfp"], {"d": np.array([3, -3, 5, -7])}),
       x=np.array([7, 7, -8, 1 << 40], np.int64))
