"""ONNX models: what a caller gives and gets, graphs, control flow, and what is refused."""
from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.nn.onnx_models import BOOL, FLOAT, INT64, graph, helper, matrix, model, node, onnx, proto
from tinyhw import Tensor, TinyJit, nn
from tinyhw.core.errors import DecodeError, Error, InvalidArgument, MissingTool, Unsupported

LINE = [("x", FLOAT, ["n", 3])]
OUT = [("y", FLOAT, None)]


def two_layers() -> bytes:
  return model([node("Gemm", ["x", "w", "b"], ["h"], transB=1), node("Relu", ["h"], ["r"]),
                node("MatMul", ["r", "v"], ["y"])], LINE, OUT,
               {"w": matrix(4, 3, seed=1), "b": matrix(4, seed=2), "v": matrix(4, 2, seed=3)})


def expected(x: Any) -> Any:
  hidden = np.maximum(x @ matrix(4, 3, seed=1).T + matrix(4, seed=2), 0)
  return hidden @ matrix(4, 2, seed=3)


# *** what a caller gives and gets ***


def test_inputs_by_name_and_in_order_as_arrays_tensors_and_lists() -> None:
  loaded = nn.onnx.load(two_layers())
  assert [str(i) for i in loaded.inputs] == ["x: float32[n, 3]"] and [o.name for o in loaded.outputs] == ["y"]
  assert loaded.operators == {"Gemm": 1, "Relu": 1, "MatMul": 1}
  x = matrix(5, 3)
  for given in (x, Tensor(x), x.tolist()):
    np.testing.assert_allclose(loaded(given)["y"].numpy(), expected(x), rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(loaded(x=x)["y"].numpy(), expected(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("given, named, told", [
  ((), {}, "input 'x' is not given; it takes x: float32[n, 3]"),
  ((), {"z": 1}, "the model has no input 'z'"),
  ((matrix(1, 3), matrix(1, 3)), {}, "2 inputs, and the model takes 1"),
  ((matrix(1, 3),), {"x": matrix(1, 3)}, "input 'x' is given twice"),
  ((matrix(1, 4),), {}, "input 'x': it has the shape (1, 4), and the model takes x: float32[n, 3]"),
  ((matrix(3),), {}, "input 'x': it has the shape (3,)"),
  ((np.ones((1, 3)),), {}, "input 'x': it is of float64, and the model takes float32"),
])
def test_wrong_inputs_are_told(given: tuple[Any, ...], named: dict[str, Any], told: str) -> None:
  with pytest.raises(InvalidArgument) as raised: nn.onnx.load(two_layers())(*given, **named)
  assert told in str(raised.value)


def test_a_name_is_one_size_wherever_it_stands() -> None:
  loaded = nn.onnx.load(model([node("Add", ["a", "b"], ["y"])], [("a", FLOAT, ["n"]), ("b", FLOAT, ["n"])], OUT))
  assert loaded(a=[1.0, 2], b=[3.0, 4])["y"].tolist() == [4, 6]
  with pytest.raises(InvalidArgument,
                     match=r"input 'b': it has the shape \(3,\), and the model takes b: float32\[n\] where n is 2"):
    loaded(a=[1.0, 2], b=[3.0, 4, 5])


def test_weights_are_leaves_and_learn() -> None:
  loaded = nn.onnx.load(two_layers())
  state = nn.get_state_dict(loaded)
  assert sorted(state) == ["weights.b", "weights.v", "weights.w"]
  for w in state.values(): w.requires_grad_()
  x = matrix(5, 3)
  loaded(x)["y"].sum().backward()
  hidden = np.maximum(x @ matrix(4, 3, seed=1).T + matrix(4, seed=2), 0)
  grad = loaded.weights["v"].grad
  assert grad is not None
  np.testing.assert_allclose(grad.numpy(), hidden.sum(0)[:, None].repeat(2, 1), rtol=1e-4)
  loaded.weights["v"].requires_grad_(False).assign(Tensor.zeros(4, 2))
  assert loaded(x)["y"].tolist() == [[0, 0]] * 5


def test_a_model_records_into_a_jit() -> None:
  loaded = nn.onnx.load(two_layers())
  step = TinyJit(lambda x: loaded(x)["y"].realize())
  for seed in range(4):
    x = matrix(2, 3, seed=seed)
    np.testing.assert_allclose(step(Tensor(x)).numpy(), expected(x), rtol=1e-5, atol=1e-6)


def test_threads_may_call_a_model_at_once() -> None:
  """One with an operator that ONNX defines by others, whose body is made in the first call."""
  nodes = [node("AffineGrid", ["x", "s"], ["g"]), node("Relu", ["g"], ["y"])]
  loaded = nn.onnx.load(model(nodes, [("x", FLOAT, None)], OUT, {"s": np.array([2, 1, 2, 3])}, opset=20))
  x = matrix(2, 2, 3)
  want = loaded(x)["y"].tolist()
  fresh = nn.onnx.load(model(nodes, [("x", FLOAT, None)], OUT, {"s": np.array([2, 1, 2, 3])}, opset=20))
  with ThreadPoolExecutor(4) as pool:
    assert [r["y"].tolist() for r in pool.map(lambda _: fresh(x), range(8))] == [want] * 8


def test_an_initializer_that_is_an_input_is_a_default() -> None:
  loaded = nn.onnx.load(model([node("Mul", ["x", "s"], ["y"])], [("x", FLOAT, [2]), ("s", FLOAT, [])], OUT,
                              {"s": np.float32(3)}))
  assert [i.name for i in loaded.inputs] == ["x"]
  assert loaded([1.0, 2])["y"].tolist() == [3, 6]
  assert loaded([1.0, 2], s=np.float32(5))["y"].tolist() == [5, 10]


@pytest.mark.parametrize("device", ["PYTHON", "LLVM"])
def test_on_a_device(device: str) -> None:
  loaded = nn.onnx.load(two_layers(), device)
  assert loaded(matrix(2, 3))["y"].device == device and loaded.weights["w"].device == device
  np.testing.assert_allclose(loaded(Tensor(matrix(2, 3)))["y"].numpy(), expected(matrix(2, 3)), rtol=1e-5, atol=1e-6)


# *** graphs ***


def test_nodes_in_any_order_and_cycles() -> None:
  nodes = [node("Relu", ["h"], ["y"]), node("Neg", ["x"], ["h"])]
  assert nn.onnx.load(model(nodes, LINE, OUT))([[-1.0, 2, 0]])["y"].tolist() == [[1, 0, 0]]
  nodes = [node("Add", ["x", "b"], ["a"], name="first"), node("Neg", ["a"], ["b"], name="second"),
           node("Neg", ["b"], ["y"])]
  with pytest.raises(InvalidArgument, match=r"a cycle.*node 'first' \(Add\)"): nn.onnx.load(model(nodes, LINE, OUT))


def test_shapes_are_arithmetic_of_the_host() -> None:
  """x.reshape(x.shape[0], -1) as exporters write it: the shape's numbers are no kernels."""
  nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Unsqueeze", ["n", "axes"], ["m"]),
           node("Concat", ["m", "rest"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])]
  weights = {"zero": np.int64(0), "axes": np.array([0]), "rest": np.array([-1])}
  loaded = nn.onnx.load(model(nodes, [("x", FLOAT, None)], OUT, weights))
  step = TinyJit(lambda x: loaded(x)["y"].realize())  # a recording reads no values: nothing of this is one
  for _ in range(3): assert step(Tensor(matrix(4, 2, 3))).shape == (4, 6)


def test_functions_of_the_model_with_attributes() -> None:
  leak = helper.make_node("LeakyRelu", ["a"], ["t"])
  leak.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
  inner = helper.make_function("mine", "Leak", ["a"], ["b"], [leak, node("Neg", ["t"], ["b"])],
                               [helper.make_opsetid("", 18)], ["slope"])
  outer = helper.make_function("mine", "Twice", ["a"], ["c"],
                               [helper.make_node("Leak", ["a"], ["b"], domain="mine", slope=0.5),
                                helper.make_node("Leak", ["b"], ["c"], domain="mine", slope=0.25)],
                               [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)])
  use = [helper.make_node("Twice", ["x"], ["y"], domain="mine")]
  loaded = nn.onnx.load(model(use, LINE, OUT, functions=[inner, outer], domains={"mine": 1}))
  assert loaded([[-4.0, 0, 8]])["y"].tolist() == [[-2, 0, 2]]
  itself = helper.make_function("mine", "Twice", ["a"], ["c"], [helper.make_node("Twice", ["a"], ["c"], domain="mine")],
                                [helper.make_opsetid("mine", 1)])
  with pytest.raises(InvalidArgument, match="function 'Twice' calls itself"):
    nn.onnx.load(model(use, LINE, OUT, functions=[itself], domains={"mine": 1}))


def test_if_takes_the_branch_that_a_value_says() -> None:
  yes = graph([node("Neg", ["x"], ["a"])], [], [("a", FLOAT, None)], name="yes")
  no = graph([node("Identity", ["x"], ["b"])], [], [("b", FLOAT, None)], name="no")
  nodes = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Less", ["s", "zero"], ["c"]),
           node("If", ["c"], ["y"], then_branch=yes, else_branch=no)]
  loaded = nn.onnx.load(model(nodes, LINE, OUT, {"zero": np.float32(0)}))
  assert loaded([[1.0, 2, 3]])["y"].tolist() == [[1, 2, 3]]
  assert loaded([[-1.0, -2, -3]])["y"].tolist() == [[1, 2, 3]]


def test_loop_carries_stacks_and_stops() -> None:
  """Doubles x until its sum is above 100, at most m times."""
  body = graph([node("Add", ["v", "v"], ["w"]), node("ReduceSum", ["w"], ["s"], keepdims=0),
                node("Less", ["s", "limit"], ["go"])],
               [("i", INT64, []), ("c", BOOL, []), ("v", FLOAT, [2])],
               [("go", BOOL, []), ("w", FLOAT, [2]), ("s", FLOAT, [])], name="body")
  loaded = nn.onnx.load(model([node("Loop", ["m", "", "x"], ["y", "sums"], body=body)],
                              [("m", INT64, []), ("x", FLOAT, [2])], [*OUT, ("sums", FLOAT, None)],
                              {"limit": np.float32(100)}))
  found = loaded(m=10, x=[1.0, 2])
  assert found["y"].tolist() == [64, 128] and found["sums"].tolist() == [6, 12, 24, 48, 96, 192]
  assert loaded(m=2, x=[1.0, 2])["y"].tolist() == [4, 8]
  assert loaded(m=0, x=[1.0, 2])["sums"].shape == (0,)


def test_data_in_other_files(tmp_path: Path) -> None:
  """Beside the model they are read; outside of its folder, as bytes, or where they are too short, they are refused."""
  made = proto([node("Add", ["x", "w"], ["y"])], LINE, OUT, {"w": matrix(3)})
  path = tmp_path / "sub" / "m.onnx"
  path.parent.mkdir()
  onnx.external_data_helper.convert_model_to_external_data(made, location="w.bin", size_threshold=0)
  onnx.save_model(made, str(path))
  np.testing.assert_allclose(nn.onnx.load(path)(np.zeros((1, 3), np.float32))["y"].numpy()[0], matrix(3))
  with pytest.raises(InvalidArgument, match="given as bytes; load the model by its path"):
    nn.onnx.load(path.read_bytes())
  secret = tmp_path / "secret"
  secret.write_bytes(bytes(12))
  (path.parent / "link").symlink_to(secret)
  entries = {e.key: e for e in made.graph.initializer[0].external_data}
  for place in ("../secret", str(secret), "link", "", "."):
    entries["location"].value = place
    path.write_bytes(made.SerializeToString())
    with pytest.raises(InvalidArgument, match="'w'.*outside of the model's folder"): nn.onnx.load(path)
  entries["location"].value = "nothing"
  path.write_bytes(made.SerializeToString())
  with pytest.raises(InvalidArgument, match="cannot be read"): nn.onnx.load(path)
  (path.parent / "nothing").write_bytes(b"1234")
  with pytest.raises(DecodeError, match="12 bytes at 0 of 'nothing', which has 4"): nn.onnx.load(path)


# *** what is refused ***


def broken(change: Any) -> bytes:
  made = proto([node("Add", ["x", "w"], ["y"], name="sum")], LINE, OUT, {"w": matrix(3)})
  change(made)
  found: bytes = made.SerializeToString()
  return found


REFUSED: list[tuple[str, bytes, type[Error], str]] = [
  ("operator", model([node("Foo", ["x"], ["y"], name="n")], LINE, OUT), Unsupported,
   "node 'n' (Foo): unsupported ONNX operator Foo"),
  ("domain", model([helper.make_node("Foo", ["x"], ["y"], domain="a.b")], LINE, OUT, domains={"a.b": 1}), Unsupported,
   "node '#0' (a.b.Foo): unsupported ONNX operator a.b.Foo"),
  ("domain not imported", model([helper.make_node("Foo", ["x"], ["y"], domain="a.b")], LINE, OUT), InvalidArgument,
   "node '#0' (a.b.Foo): the model imports no opset of domain 'a.b'"),
  ("old opset", model([node("Relu", ["x"], ["y"])], LINE, OUT, opset=6), Unsupported,
   "the data: unsupported ONNX opset 6; 7 to 28 are read"),
  ("new opset", model([node("Relu", ["x"], ["y"])], LINE, OUT, opset=99), Unsupported, "unsupported ONNX opset 99"),
  ("later operator", model([node("Gelu", ["x"], ["y"])], LINE, OUT), InvalidArgument,
   "node '#0' (Gelu): Gelu begins with opset 20, and the model imports 18"),
  ("attribute", model([node("Relu", ["x"], ["y"], alpha=1.0)], LINE, OUT), InvalidArgument,
   "node '#0' (Relu): Relu has no attribute 'alpha'"),
  ("attribute's type", model([node("Softmax", ["x"], ["y"], axis=1.5)], LINE, OUT), InvalidArgument,
   "node '#0' (Softmax): attribute 'axis' is of float, not of int"),
  ("attribute missing", model([node("Concat", ["x", "x"], ["y"])], LINE, OUT), InvalidArgument,
   "node '#0' (Concat): attribute 'axis' is missing"),
  ("number of inputs", model([node("Add", ["x"], ["y"])], LINE, OUT), InvalidArgument,
   "node '#0' (Add): 1 inputs, and Add takes 2"),
  ("no such input", model([node("Add", ["x", "z"], ["y"])], LINE, OUT), InvalidArgument,
   "node '#0' (Add): input 'z' is made by no node, and is no input of the graph"),
  ("no such output", model([node("Relu", ["x"], ["z"])], LINE, OUT), InvalidArgument,
   "graph 'g': output 'y' is made by no node"),
  ("two makers", model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], LINE, OUT), InvalidArgument,
   "'y' has two makers, the second is node '#1' (Neg)"),
  ("strings", model([node("Constant", [], ["y"], value_string="a")], [], OUT), Unsupported, ""),
  ("few bytes", broken(lambda m: m.graph.initializer[0].ClearField("raw_data")), DecodeError,
   "graph 'g': tensor 'w': shape (3,) has 3 elements, and there are 0"),
  ("other bytes", broken(lambda m: setattr(m.graph.initializer[0], "raw_data", b"12345")), DecodeError,
   "(3,) of float32 are 12 bytes, and there are 5"),
  ("huge shape", broken(lambda m: m.graph.initializer[0].dims.extend([1 << 62, 1 << 62])), DecodeError, "bytes"),
  ("negative shape", broken(lambda m: m.graph.initializer[0].dims.append(-1)), DecodeError, "a negative size"),
  ("element type", broken(lambda m: setattr(m.graph.initializer[0], "data_type", 77)), InvalidArgument,
   "77 is no element type of ONNX"),
  ("string weights", broken(lambda m: setattr(m.graph.initializer[0], "data_type", 8)), Unsupported,
   "tensor 'w': unsupported ONNX element type string"),
  ("no model", b"", DecodeError, "no ONNX model"),
  ("text", b"not a model at all", DecodeError, "no ONNX model"),
]


@pytest.mark.parametrize("what, data, kind, told", REFUSED, ids=[r[0] for r in REFUSED])
def test_what_is_refused_is_named(what: str, data: bytes, kind: type[Error], told: str) -> None:
  with pytest.raises(kind) as raised:
    loaded = nn.onnx.load(data)
    if what == "strings": loaded()
  assert told in str(raised.value) and "\n" not in str(raised.value)


def test_all_that_is_unsupported_is_told_at_once() -> None:
  data = model([node("Foo", ["x"], ["a"]), node("Bar", ["a"], ["y"])], LINE, OUT)
  with pytest.raises(Unsupported) as raised: nn.onnx.load(data)
  assert "Foo" in str(raised.value).splitlines()[0] and "Bar" in str(raised.value).splitlines()[1]
  assert len(nn.onnx.inspect(data).unsupported) == 2


def test_errors_of_a_run_name_the_node() -> None:
  loaded = nn.onnx.load(model([node("MatMul", ["x", "w"], ["y"], name="product")], LINE, OUT, {"w": matrix(4, 2)}))
  with pytest.raises(InvalidArgument, match=r"node 'product' \(MatMul\): matmul of shapes \(2, 3\) and \(4, 2\)"):
    loaded(matrix(2, 3))


def towers(depth: int, times: int) -> bytes:
  """Functions that call the next one, each so many times."""
  opsets = [helper.make_opsetid("", 18), helper.make_opsetid("m", 1)]
  functions = []
  for i in range(depth):
    kind, domain = (f"F{i + 1}", "m") if i + 1 < depth else ("Neg", "")
    calls = [helper.make_node(kind, ["a" if k == 0 else f"t{k - 1}"], ["b" if k == times - 1 else f"t{k}"],
                              domain=domain)
             for k in range(times)]
    functions.append(helper.make_function("m", f"F{i}", ["a"], ["b"], calls, opsets))
  use = [helper.make_node("F0", ["x"], ["y"], domain="m")]
  return model(use, LINE, OUT, functions=functions, domains={"m": 1})


def test_functions_that_grow_without_end_are_refused() -> None:
  assert nn.onnx.load(towers(4, 3))([[1.0, 2, 3]])["y"].tolist() == [[-1, -2, -3]]
  with pytest.raises(Unsupported, match="functions that expand to .* nodes; 1,000,000 are the most"):
    nn.onnx.load(towers(60, 2))
  with pytest.raises(Unsupported, match="functions or graphs nested as deep as here"): nn.onnx.load(towers(2000, 1))


def test_damaged_files_give_one_clear_error_or_a_model() -> None:
  """Every prefix, and every byte changed: an error of the tree, never another."""
  whole = two_layers()
  for at in range(0, len(whole), 3):
    for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1:]):
      try: nn.onnx.load(data)(matrix(1, 3))
      except Error: pass


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setitem(sys.modules, "onnx", None)
  with pytest.raises(MissingTool,
                     match="ONNX files need the package onnx; pip install onnx"): nn.onnx.load(two_layers_kept)


two_layers_kept = two_layers()
