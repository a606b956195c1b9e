"""Small things that PyTorch's and tinygrad's users type: what they take, give and raise."""
from __future__ import annotations

import copy
import gc
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, Variable, dtypes
from tinyhw.core.errors import InvalidArgument, Unsupported

# What torch 2.13.0 (CPU) makes of arange(16) * 17 as a picture of bytes of 4 by 4, at 3 by 7 and 7 by 3.
WIDE = {
  ("bilinear", False): [[11, 17, 27, 37, 46, 56, 62], [102, 108, 118, 128, 137, 147, 153],
                        [193, 199, 209, 219, 228, 238, 244]],
  ("bilinear", True): [[0, 9, 17, 26, 34, 43, 51], [102, 111, 119, 128, 136, 145, 153],
                       [204, 213, 221, 230, 238, 247, 255]],
  ("bicubic", False): [[8, 14, 24, 35, 45, 55, 62], [100, 107, 117, 128, 138, 148, 155],
                       [193, 200, 210, 221, 231, 241, 247]]}


@pytest.mark.parametrize(("mode", "aligned"), WIDE)
def test_pictures_of_bytes(mode: str, aligned: bool) -> None:
  x = (Tensor.arange(16) * 17).cast("uint8").reshape(1, 1, 4, 4)
  found = x.interpolate((3, 7), mode=mode, align_corners=aligned)
  assert found.dtype is dtypes.uint8 and found[0, 0].tolist() == WIDE[mode, aligned]


def test_pictures_of_bytes_are_torchs() -> None:
  torch = pytest.importorskip("torch")
  random = np.random.default_rng(3)
  for k in range(12):
    x = random.integers(0, 256, (1, 2, *random.integers(3, 20, 2)), dtype=np.uint8)
    told: dict[str, Any] = {"mode": ("bilinear", "bicubic")[k % 2], "align_corners": k % 3 == 0}
    if k % 4: told["size"] = tuple(map(int, random.integers(1, 20, 2)))
    else: told["scale_factor"] = float(random.choice([0.5, 0.7, 1.5, 2.0]))
    want = torch.nn.functional.interpolate(torch.from_numpy(x), **told)
    assert np.array_equal(Tensor(x, device="PYTHON").interpolate(**told).numpy(), want.numpy()), (x.shape, told)


def test_negative_numbers_in_lists_of_unsigned_ones() -> None:
  """Their bits, as PyTorch has it (of 64 bits it takes none); what has no such bits is refused, as NumPy does."""
  assert Tensor([-1, -255, 2], dtype="uint8").tolist() == [255, 1, 2]
  assert Tensor([[-1], [7]], dtype="uint64").tolist() == [[2**64 - 1], [7]]
  assert Tensor([-1.5, 2.5], dtype="uint16").tolist() == [65535, 2]
  for data, kind in (([256], "uint8"), ([-256], "uint8"), ([128], "int8"), ([-129], "int8"), ([1 << 33], "uint32")):
    with pytest.raises(OverflowError, match="does not fit"): Tensor(data, dtype=kind)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "argmax", "argmin"])
def test_extremes_of_nothing(name: str) -> None:
  x = Tensor.zeros(2, 0, 3)
  with pytest.raises(RuntimeError, match=rf"^{name}\(\): Expected reduction dim to be specified for input.numel\(\) "):
    getattr(x, name)()
  with pytest.raises(IndexError, match=rf"^{name}\(\): Expected reduction dim 1 to have non-zero size"):
    getattr(x, name)(axis=-2)
  assert getattr(x, name)(axis=0).shape == (0, 3)


def test_a_variable_says_its_type() -> None:
  n = Variable("typed", 1, 10, dtype="int64").bind(3)
  assert Tensor(n).dtype is dtypes.int64 and Tensor(n).item() == 3
  assert (Tensor([1, 2], dtype="int8") * n).dtype is dtypes.int8
  assert pickle.loads(pickle.dumps(n)).dtype is dtypes.int64
  half = n.cast(dtypes.float16) / 2
  assert half.dtype is dtypes.float16 and half.item() == 1.5
  assert Tensor((n + 1).cast("float32")).tolist() == 4.0
  assert Tensor(Variable("plain", 1, 10).bind(2)).dtype is dtypes.int32
  for low, high, kind in ((0, 1 << 40, "int64"), (0, 200, "int8"), (-1, 1, "uint32"), (0, 1, "float32")):
    with pytest.raises(InvalidArgument, match="is not a range of"): Variable("wrong", low, high, dtype=kind)


def test_a_second_backward_adds_to_the_same_gradient() -> None:
  x = Tensor([3.0], requires_grad=True)
  (x * 2).sum().backward()
  held = x.grad
  assert held is not None
  seen, copied = held * 1, copy.copy(x)
  (x * 3).sum().backward()
  assert x.grad is held and held.tolist() == [5.0] and seen.tolist() == [2.0] and copied.grad.tolist() == [2.0]
  (x * x * x).sum().backward(create_graph=True)
  assert x.grad is not held and x.grad is not None and x.grad.tolist() == [32.0] and held.tolist() == [5.0]


def test_what_is_no_type_and_no_bound() -> None:
  for error in (TypeError, AttributeError):
    with pytest.raises(error, match="no dtype is called 'typo'"): Tensor([1], dtype="typo")
  for told in ({"low": 0.5}, {"high": 3.5}, {"dtype": "float32"}):
    with pytest.raises(TypeError, match="randint"): Tensor.randint(3, **told)
  with pytest.raises(ValueError, match="uniform within"): Tensor.uniform(3, low=5.0, high=3.0)
  with pytest.raises(TypeError, match="not deleted"): del Tensor([1, 2])[0]


def test_contiguous_takes_what_others_write() -> None:
  x = Tensor([[1, 2], [3, 4]]).T
  assert x.contiguous(arg=()).tolist() == x.contiguous(memory_format=None).tolist() == [[1, 3], [2, 4]]
  with pytest.raises(InvalidArgument, match="channels_last"): x.contiguous(memory_format="torch.channels_last")


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_memory_of_somebody_else(device: str) -> None:
  raw = np.zeros(64, np.int32)
  array = raw[-raw.ctypes.data % 64 // 4:][:4]
  x = Tensor.from_blob(array.ctypes.data, (2, 2), dtype=dtypes.int32, device=device)
  assert (x + 1).tolist() == [[1, 1], [1, 1]]
  array[:] = [0, 1, 2, 3]
  assert (x + 1).tolist() == [[1, 2], [3, 4]]
  x += 1
  assert x.tolist() == [[1, 2], [3, 4]]
  kept = array.copy()
  del x
  gc.collect()
  for _ in range(4): Tensor([9, 9, 9, 9], dtype="int32", device=device).realize()   # it is nobody's spare memory
  assert np.array_equal(array, kept)
  with pytest.raises(Unsupported, match="of somebody else"): Tensor.from_blob(64, 4, device="NULL")


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float16", "float64"])
def test_memory_of_somebody_else_begins_anywhere(device: str, dtype: str) -> None:
  """Products and sums are made of vectors, whose memory is aligned as one element is."""
  raw = np.zeros(40 * 36 * 8 + 64, np.uint8)
  start = -raw.ctypes.data % 64 + np.dtype(dtype).itemsize
  array = raw[start:][:36 * 36 * np.dtype(dtype).itemsize].view(dtype).reshape(36, 36)
  array[:] = np.arange(36 * 36).reshape(36, 36) % 3
  x = Tensor.from_blob(array.ctypes.data, (36, 36), dtype=dtype, device=device)
  assert np.array_equal((x @ x).numpy(), array @ array) and np.array_equal((x + x.T).numpy(), array + array.T)
  assert x.sum().item() == array.sum() and np.array_equal(x[1:, 3:].contiguous().numpy(), array[1:, 3:])


def test_memory_of_somebody_else_is_aligned() -> None:
  with pytest.raises(InvalidArgument, match="no multiple of 4"): Tensor.from_blob(4102, (4,), device="LLVM")
  assert Tensor.from_blob(0, (2, 0)).shape == (2, 0)


def test_multinomial_of_one_weight() -> None:
  assert Tensor([2.0]).multinomial(3, replacement=True).tolist() == [0, 0, 0]
  assert Tensor([2.0]).multinomial().tolist() == [0]
  with pytest.raises(RuntimeError, match="shape"): Tensor(2.0).multinomial()


@pytest.mark.parametrize("r, again", [(1, False), (2, False), (3, False), (2, True), (5, False), (3, True)])
def test_combinations_are_those_of_itertools(r: int, again: bool) -> None:
  numbers = [7, 3, 9, 4]
  choose = itertools.combinations_with_replacement if again else itertools.combinations
  found = Tensor(numbers).combinations(r, with_replacement=again)
  assert found.shape[1] == r and found.tolist() == [list(row) for row in choose(numbers, r)]


def test_combinations_that_there_are_not() -> None:
  with pytest.raises(InvalidArgument, match=r"combinations of shape \(1, 1\)"): Tensor([[1]]).combinations()
  with pytest.raises(InvalidArgument, match="combinations of 0 elements"): Tensor([1]).combinations(0)


def test_what_counts_up_and_arrays_among_lists() -> None:
  assert Tensor(range(1, 7, 2)).tolist() == [1, 3, 5] and Tensor(range(0)).shape == (0,)
  assert Tensor([range(2), [5, 6]]).tolist() == Tensor([np.array([0, 1]), [5, 6]]).tolist() == [[0, 1], [5, 6]]
  assert Tensor([[np.array([1.5, 2])], [[3, 4]]]).tolist() == [[[1.5, 2]], [[3, 4]]]
  with pytest.raises(InvalidArgument, match="lists of lengths 1, 2 side by side"): Tensor([np.array([1, 2]), [3]])


def test_a_part_of_a_buffer() -> None:
  data = np.arange(6, dtype=np.int16)
  assert Tensor.frombuffer(data, dtype="int16", count=2, offset=4).tolist() == [2, 3]
  assert Tensor.frombuffer(data.tobytes(), dtype=dtypes.int16, offset=8).tolist() == [4, 5]
  with pytest.raises(InvalidArgument, match="3 elements of .*int16 from byte 8 on of 12"):
    Tensor.frombuffer(data, dtype="int16", count=3, offset=8)
  with pytest.raises(InvalidArgument, match="13 bytes into a buffer of 12"): Tensor.frombuffer(data, offset=13)


def test_tinygrads_names() -> None:
  assert Variable("n", min_val=1, max_val=3) is not None and Variable("n", 1, max_val=3).bind(2).value == 2
  with pytest.raises(TypeError, match="the same parameter"): Variable("n", 1, max_val=3, maximum=3)
  assert np.allclose(Tensor([-1.0, 2.0]).leakyrelu(neg_slope=0.5).numpy(), [-0.5, 2])
  assert Tensor([1, 2]).row_stack(Tensor([3, 4])).tolist() == [[1, 2], [3, 4]]
