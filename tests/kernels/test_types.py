"""No argument is reinterpreted in silence: objects that name their parameters' types, and objects that do not."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.conftest import build
from tests.strength import examples
from tinyhw import Device
from tinyhw.arch import DECODED
from tinyhw.cli import tinyhw as tinyhw_command
from tinyhw.core.errors import InvalidArgument
from tinyhw.kernels.arguments import Parameter, check_array, pack_value
from tinyhw.kernels.parameters import declared, seen
from tinyhw.wire.codeobject import Argument, load
from tinyhw.wire.ctype import CType, named

OBJECTS = Path(__file__).parent / "objects"
PLAIN, PLAIN_O0 = OBJECTS / "typed_O2.co", OBJECTS / "typed_O0.o"  # clang -x c: no types in the metadata
DEBUG, DEBUG_O0 = OBJECTS / "typed_O2_g.co", OBJECTS / "typed_O0_g.o"  # the same with -g
OPENCL = OBJECTS / "typed_cl.co"
X = np.arange(64, dtype=np.float32)
REFUSED = "given for|nothing says what type"


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Any:
  monkeypatch.setenv("MOCKGPU", "1")
  monkeypatch.delenv("DEV", raising=False)
  yield
  Device.close()


def run(path: Path, kernel: str, args: list[Any], device: str = "EMU", block: int = 64) -> Any:
  return tinyhw.launch(path, kernel, 1, block, args, device)[0]


def refused(path: Path, kernel: str, args: list[Any], message: str) -> None:
  for device in ("EMU", "AMD"):
    with pytest.raises(InvalidArgument, match=message): run(path, kernel, args, device)


# ---- the report of the users: `y, 2` for `float *y, float a, int n`

@pytest.mark.parametrize("device", ["EMU", "AMD"])
@pytest.mark.parametrize("path", [PLAIN, DEBUG, DEBUG_O0], ids=lambda p: p.name)
def test_python_numbers_become_what_the_parameter_is(path: Path, device: str) -> None:
  """By debug information, and else by what the code does: a is multiplied as a float, n converted from an int."""
  for a, n in ((2, 3), (2.5, -3), (np.float32(2.5), np.int32(-3)), (np.float32(1), np.uint32(7)), (-0.0, True)):
    assert (run(path, "axpn", [X, a, n], device) == np.float32(a) * X + np.float32(n)).all()


@pytest.mark.parametrize("path", [PLAIN, DEBUG, DEBUG_O0], ids=lambda p: p.name)
@pytest.mark.parametrize(("args", "message"), [
  ([X, 2, 1.0], r"1.0 \(float\) given for int"), ([X, 2, np.float32(1)], r"1.0 \(float32\) given for int"),
  ([X, np.int32(2), 1], r"2 \(int32\) given for (real|float32)"), ([X, True, 1], "True .bool. given for"),
  ([X, 1 << 24 | 1, 1], "16777217 .int. given for .* which does not hold it exactly"),
  ([X, 1e39, 1], "which does not hold it"), ([X, 10**400, 1], "which does not hold it"),
  ([X, 1, 1 << 32], "which holds"), ([X, 1, -(1 << 31) - 1], "which holds"), ([X, 1j, 1], "given for"),
  ([X, np.float64(2), 1], "8 bytes given for a value of 4 bytes"), ([X, 1, np.int64(2)], "8 bytes given for a value"),
  ([X, 1, np.bool_(1)], "1 bytes given for a value of 4"), ([X, "2", 1], "str given for"), ([X, None, 1], "NoneType"),
  ([X, X, 1], "an array of float32 given for"),
  ([X.astype(np.float64), 1, 1], "an array of float64 given for .*(real|float)"),
  ([np.arange(64), 1, 1], "an array of int64 given for .*(real|float)"),
  ([X.astype(np.float16), 1, 1], "an array of float16 given for .*(real|float)")])
def test_other_types_are_refused(path: Path, args: list[Any], message: str) -> None:
  refused(path, "axpn", args, message)


def test_the_error_names_parameter_wanted_and_given_and_the_way_on() -> None:
  refused(DEBUG, "axpn", [X, 2, 1.0], r"^axpn, argument 2 \(n\): 1.0 \(float\) given for int$")
  refused(PLAIN, "axpn", [X, 2, 1.0], r"^axpn, argument 2: 1.0 \(float\) given for int32 \(as its code uses it\)$")
  refused(DEBUG, "axpn", [X.astype(np.float64), 2, 1],
          r"argument 0 \(y\): an array of float64 given for real\*; convert it, or \.view\('V8'\) for its bytes")
  refused(DEBUG, "axpn", [X], r"1 arguments given, the kernel takes 3 \(y: real\*, a: real, n: int\)")


@pytest.mark.parametrize("path", [PLAIN_O0], ids=lambda p: p.name)
def test_where_nothing_says_the_type_a_python_number_is_refused(path: Path) -> None:
  refused(path, "axpn", [X, 2, 3], r"argument 1: 2 \(int\) given, and nothing says what type the parameter's 4 bytes "
          r"have; say it: np.int32\(2\) or np.float32\(2\) \(on the command line 2:i32 or 2:f32\)")
  refused(path, "axpn", [X, 2.5, 3], r"say it: np.float32\(2.5\) \(on the command line 2.5:f32\)")
  assert (run(path, "axpn", [X, np.float32(2), np.int32(3)]) == 2 * X + 3).all()
  assert (run(path, "axpn", [X, np.float32(2).tobytes(), np.int32(3)]) == 2 * X + 3).all()


@pytest.mark.parametrize("path", [PLAIN, PLAIN_O0], ids=lambda p: p.name)
def test_what_the_code_says_nothing_sure_of(path: Path) -> None:
  """A float's sign, an integer's bits, halves of a structure, a short, what is never read."""
  p = np.zeros(4, np.uint32)
  sure: list[Any] = [np.float32(-2), np.uint32(0x1FF), np.array((7, 1.5), "i4,f4"), np.int16(-2), np.int32(0)]
  assert run(path, "unsure", [p, *sure]).tolist() == [1, 255, 7, 0xFFFFFFFE]
  for k, guess in enumerate((-2.0, 1, 7, -2, 0)):
    refused(path, "unsure", [p, *sure[:k], guess, *sure[k + 1:]], f"argument {k + 1}: .* nothing says what type")


def test_arrays_are_taken_by_their_own_type_where_nothing_says_one() -> None:
  y = np.arange(64.0)
  assert (run(PLAIN_O0, "axpn", [y.view(np.int64), np.float32(1), np.int32(0)]).view(np.float64) == y).all()


# ---- every type

LIMITS: dict[str, tuple[int, int]] = {
  "b": (0, 1), "c": (-128, 127), "uc": (0, 255), "s": (-32768, 32767), "us": (0, 65535),
  "i": (-(1 << 31), (1 << 31) - 1), "u": (0, (1 << 32) - 1),
  "l": (-(1 << 63), (1 << 63) - 1), "ul": (0, (1 << 64) - 1), "h": (-2048, 2048),
  "f": (-(1 << 24), 1 << 24), "d": (-(1 << 53), 1 << 53), "e": (0, (1 << 32) - 1)}
NUMPY = {"b": "?", "c": "i1", "uc": "u1", "s": "i2", "us": "u2", "i": "i4", "u": "u4", "l": "i8", "ul": "u8", "h": "f2",
         "f": "f4", "d": "f8", "e": "u4"}


@pytest.mark.parametrize("path", [DEBUG, DEBUG_O0, PLAIN, PLAIN_O0], ids=lambda p: p.name)
def test_numbers_at_the_extremes(path: Path) -> None:
  out = np.zeros(len(LIMITS))
  for side in (0, 1):
    numbers = [limits[side] for limits in LIMITS.values()]
    args: list[Any] = [np.array(n, NUMPY[k])[()] for k, n in zip(LIMITS, numbers)]
    assert run(path, "values", [out, *args]).tolist() == [float(n) for n in numbers]
    if path in {DEBUG, DEBUG_O0}: assert run(path, "values", [out, *numbers]).tolist() == [float(n) for n in numbers]


@pytest.mark.parametrize("name", LIMITS)
def test_numbers_past_the_extremes(name: str) -> None:
  index = list(LIMITS).index(name)
  for past in (LIMITS[name][0] - 1, LIMITS[name][1] + 1):
    args: list[Any] = [np.zeros(13), *(1 for _ in LIMITS)]
    args[1 + index] = past
    refused(DEBUG, "values", args, rf"argument {index + 1} \({name}\): {past} \(int\) given for")


def test_structures_vectors_and_pointers_of_their_own_kind() -> None:
  pair = np.array((3, 0.5), "i4,f4")
  v, w = np.arange(4, dtype=np.float32), np.array([7, 8, 9], np.float32)
  q, r, s = np.array([(1, 0.25)], "i4,f4"), np.full(1, 2.5, np.float32), np.zeros(1, np.uint64)
  good: list[Any] = [np.zeros(13, np.float32), pair, v, w, q, r, s, np.uint16(0x3FC0)]
  want = [3, 0.5, 0, 1, 2, 3, 7, 8, 9, 1.25, 2.5, 1, 1.5]
  for path in (DEBUG, DEBUG_O0):
    assert run(path, "groups", good).tolist() == want
    for k, wrong, message in (
      (1, 3, "3 .int. given for struct pair, 8 bytes; give bytes or a NumPy record"), (1, bytes(9), "9 bytes given"),
      (2, 1.0, "given for real4; give its elements"), (2, v[:3], "array of 3 float32 given for real4"),
      (2, v.astype(np.float64), "array of 4 float64 given for real4"), (2, v.astype(np.int32), "int32 given for real4"),
      (3, v, "array of 4 float32 given for real3"), (3, w.astype(">f4"), "given for real3"),
      (6, np.zeros(1, np.float32), r"float32 given for float\*\*"), (7, np.float16(1.5), "__bf16; give its bits"),
      (7, 1.5, "given for __bf16; give its bits as np.uint16"), (0, np.zeros(13, "i4"), r"int32 given for float\*")):
      refused(path, "groups", [*good[:k], wrong, *good[k + 1:]], message)
    assert run(path, "groups", [*good[:2], v.tobytes(), w.tobytes() + bytes(4), *good[4:]]).tolist() == want
  sure = [good[0], pair, v.tobytes(), w.tobytes() + bytes(4), *good[4:]]
  for path in (PLAIN, PLAIN_O0):
    assert run(path, "groups", sure).tolist() == want
    refused(path, "groups", [good[0], pair, v, *sure[3:]], "argument 2: an array of float32 given .* bytes are taken")


def test_opencl_names_the_types() -> None:
  half = np.full(64, 0.5, np.float32)
  want = (2 * X + 3) * 0.5
  for device in ("EMU", "AMD"):
    assert (run(OPENCL, "axpn", [X, 2, 3, half, 256], device) == want).all()
  refused(OPENCL, "axpn", [X, 2, 3.0, half, 256], r"argument 2 \(n\): 3.0 \(float\) given for int")
  refused(OPENCL, "axpn", [X, 2, 3, half.astype(np.float64), 256], r"\(scale\): an array of float64 given for float\*")
  refused(OPENCL, "axpn", [X, 2, 3, half, None], r"argument 4 \(tile\): NoneType given for a pointer to LDS")
  pair, v = np.array((3, 0.5), "i4,f4"), np.arange(4, dtype=np.float32)
  args: list[Any] = [np.zeros(10, np.float32), pair, v, np.array([7, 8, 255], np.uint8), pair.reshape(1),
                     v.reshape(1, 4), (1 << 64) - 1, 0.25]
  assert run(OPENCL, "groups", args).tolist() == [3, 0.5, 0, 3, 7, 255, 0.5, 1, 2.0**64, 0.25]
  refused(OPENCL, "groups", [*args[:6], -1, 0.25], r"\(u\): -1 \(int\) given for ulong, which holds 0 to")
  refused(OPENCL, "groups", [*args[:7], 65520.0], r"\(h\): 65520.0 \(float\) given for half, which does not hold it")
  refused(OPENCL, "groups", [*args[:3], np.array([7, 8, 255]), *args[4:]], r"array of 3 int64 given for uchar3")


# ---- arrays of every make

def test_arrays_of_every_make() -> None:
  read_only = X.copy()
  read_only.flags.writeable = False
  wide = np.zeros((64, 2), np.float32)
  wide[:, 0] = X
  for y in (read_only, wide[:, 0], X[::-1][::-1], X.reshape(8, 8).T, X.reshape(4, 16)):
    out = run(DEBUG, "axpn", [y, 2, 0])
    assert out.shape == y.shape and out.dtype == y.dtype and (out == 2 * y).all() and out.flags.writeable
  assert (read_only == np.arange(64)).all(), "what is given is not written"
  for kernel_path in (DEBUG, PLAIN, PLAIN_O0):
    refused(kernel_path, "axpn", [X.astype(">f4"), np.float32(2), np.int32(0)],
            r"array of >f4 \(big-endian\).*astype\('float32'\)")
  refused(DEBUG, "axpn", [np.array([None]), 2, 0], "array of Python objects")
  assert (run(DEBUG, "axpn", [X.view("V4"), 2, 0]).view(np.float32) == 2 * X).all(), "bytes are taken as they are"
  empty = tinyhw.launch(OPENCL, "axpn", 1, 1, [X, 2, 3, np.full(1, 1, np.float32), 4], "EMU")
  assert empty[0][0] == 3
  for nothing in (np.zeros(0), np.zeros((3, 0), np.int16)):  # no element is of the wrong type
    out = run(DEBUG, "axpn", [nothing, 2, 0])
    assert out.shape == nothing.shape and out.dtype == nothing.dtype


def test_two_launches_in_a_row_do_not_mix() -> None:
  for path, kernel in ((DEBUG, "axpn"), (PLAIN, "axpn"), (DEBUG, "axpn")):
    for device in ("EMU", "AMD"):
      assert (run(path, kernel, [X, 3, 1], device) == 3 * X + 1).all()
      assert (run(path, kernel, [X, 0.5, -1], device) == 0.5 * X - 1).all()


@pytest.mark.parametrize("device", ["EMU", "AMD"])
def test_threads_take_turns(device: str) -> None:
  """Also where each of them would be the one that opens the device."""
  wrong: list[object] = []

  def work(a: int) -> None:
    try: wrong.extend((a, n) for n in range(4) if (run(DEBUG, "axpn", [X, a, n], device) != a * X + n).any())
    except BaseException as error: wrong.append(error)
  threads = [threading.Thread(target=work, args=(a,)) for a in range(6)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert not wrong


# ---- the command line

def test_the_command_line_says_types_the_same_way(tmp_path: Path) -> None:
  np.save(tmp_path / "x.npy", X)
  def launch(path: Path, *args: str) -> str:
    words = [w for a in (str(tmp_path / "x.npy"), *args) for w in ("--arg", a)]
    words = ["launch", str(path), "-k", "axpn", "-b", "64", "--device", "EMU", *words]
    done = CliRunner().invoke(tinyhw_command, words)
    return f"{done.stdout}{done.exception or ''}"
  assert "2:i32 or 2:f32" in launch(PLAIN_O0, "2", "3")
  assert "[  3.   5.   7." in launch(PLAIN_O0, "2:f32", "3:i32")
  assert "argument 2 (n): 3.5 (float) given for int" in launch(DEBUG, "2", "3.5")


# ---- numbers and types, all of them

TYPES = [named(n) for n in ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float",
                            "double")]
NUMBERS = st.one_of(st.integers(-(1 << 70), 1 << 70), st.floats(allow_nan=False), st.booleans(),
                    st.sampled_from([0, 1, -1, 255, 256, 65504, 65520, 1 << 24, (1 << 24) + 1, -0.0]))


@settings(max_examples=examples(200))
@given(st.sampled_from(TYPES), NUMBERS)
def test_a_python_number_is_packed_as_itself_or_refused(t: CType, value: Any) -> None:
  """What is packed reads back as the number: exactly, or as the nearest float to a float."""
  p = Parameter(Argument("x", "by_value", 0, t.size), "here", t, lambda: None)
  dtype = np.dtype(f"{'?' if t.kind == 'b' else t.kind + str(t.size)}")
  try: data = pack_value(value, p)
  except InvalidArgument:
    if isinstance(value, bool): assert t.kind == "f"
    elif isinstance(value, int) and t.kind in "iu": assert not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    elif isinstance(value, float) and t.kind == "f": assert abs(value) > float(np.finfo(dtype).max)
    return
  back = np.frombuffer(data, dtype)[0]
  if isinstance(value, float):
    assert t.kind == "f" and (back == dtype.type(value) or t.size == 8 and back == value)
  else: assert back == value and int(back) == int(value)


@settings(max_examples=examples(200))
@given(st.sampled_from(TYPES), st.sampled_from("?bBhHiIqQefdFD"), st.integers(0, (1 << 64) - 1))
def test_a_numpy_scalar_is_packed_as_itself_or_refused(t: CType, code: str, bits: int) -> None:
  """With a type that is known or not: the bytes are its own, and mean the same number as the parameter's type."""
  given_type = np.dtype(code)
  raw = (bits.to_bytes(8, "little") * 2)[:given_type.itemsize]
  value = np.frombuffer(raw if code != "?" else bytes([bits & 1]), given_type)[0]
  unknown = Parameter(Argument("x", "by_value", 0, t.size), "here", None, lambda: None)
  if value.nbytes == t.size: assert pack_value(value, unknown) == value.tobytes()
  else:
    with pytest.raises(InvalidArgument, match=f"{value.nbytes} bytes given for a value of {t.size}"):
      pack_value(value, unknown)
  known = Parameter(Argument("x", "by_value", 0, t.size), "here", t, lambda: None)
  dtype = np.dtype("?" if t.kind == "b" else f"{t.kind}{t.size}")
  try: data = pack_value(value, known)
  except InvalidArgument:
    assert value.nbytes != t.size or given_type.kind != dtype.kind
    return
  back = np.frombuffer(data, dtype)[0]
  assert data == value.tobytes() and (back == value or back != back) and value.nbytes == t.size


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_bool_says_its_type_for_a_byte_alone(size: int) -> None:
  p = Parameter(Argument("x", "by_value", 0, size), "here", None, lambda: None)
  for value in (False, True):
    if size == 1: assert pack_value(value, p) == bytes([value])
    else:
      with pytest.raises(InvalidArgument, match="nothing says what type"): pack_value(value, p)


def test_bfloat16_of_a_package_is_a_number_and_no_structure() -> None:
  def pointer(to: str) -> Parameter:
    return Parameter(Argument("p", "global_buffer", 0, 8), "here", named(f"{to}*"), lambda: None)
  bfloat, pair = np.dtype(ml_dtypes.bfloat16), np.dtype("V2")
  check_array(np.zeros(2, bfloat), pointer("__bf16"))
  for to in ("short", "half", "float", "__bf16", "uchar"):
    check_array(np.zeros(2, pair), pointer(to))  # bytes, taken as they are
    if to == "__bf16": continue
    with pytest.raises(InvalidArgument, match=f"array of bfloat16 given for {to}"):
      check_array(np.zeros(2, bfloat), pointer(to))
  one, value = ml_dtypes.bfloat16(1), Parameter(Argument("x", "by_value", 0, 2), "here", None, lambda: None)
  assert pack_value(one, value) == b"\x80\x3f"
  for kind in ("__bf16", "half"):
    value.declared = named(kind)
    if kind == "__bf16": assert pack_value(one, value) == b"\x80\x3f"
    else:
      with pytest.raises(InvalidArgument, match="bfloat16. given for half"): pack_value(one, value)


def test_ctypes_and_views_are_bytes() -> None:
  p = Parameter(Argument("x", "by_value", 0, 8), "here", None, lambda: None)
  two = (ctypes.c_int32 * 2)(1, 2)
  for value in (two, memoryview(two), bytearray(two), bytes(two)): assert pack_value(value, p) == bytes(two)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_the_way_on_is_one(size: int) -> None:
  """Every value that an error offers is taken."""
  p = Parameter(Argument("x", "by_value", 0, size), "here", None, lambda: None)
  for value in (1, 0.5):
    with pytest.raises(InvalidArgument) as caught: pack_value(value, p)
    offered = [w for w in str(caught.value).replace("(on the", " ").split() if w.startswith("np.")]
    assert bool(offered) == (size < 16 and not (size == 1 and value == 0.5))
    for way in offered: assert len(pack_value(eval(way, {"np": np}), p)) == size


# ---- code that is followed

CASES: dict[str, tuple[str, str, str | None]] = {  # body, type, what the code says of %x
  "float": ("%r = fadd float %x, 1.0\n store float %r, ptr addrspace(1) %p", "float", "f32"),
  "double": ("%r = fmul double %x, %x\n store double %r, ptr addrspace(1) %p", "double", "f64"),
  "int": ("%r = sitofp i32 %x to float\n store float %r, ptr addrspace(1) %p", "i32", "i32"),
  "long": ("%r = add i64 %x, 12345678901\n store i64 %r, ptr addrspace(1) %p", "i64", "i64"),
  "offset": ("%q = getelementptr i8, ptr addrspace(1) %p, i64 %x\n store i32 7, ptr addrspace(1) %q", "i64", "i64"),
  "stored": ("store float %x, ptr addrspace(1) %p", "float", None),
  "sign": ("%i = bitcast float %x to i32\n %n = icmp slt i32 %i, 0\n %r = select i1 %n, i32 3, i32 4\n"
           "store i32 %r, ptr addrspace(1) %p", "float", None),
  "against -2": ("%n = icmp slt i32 %x, -2\n %r = select i1 %n, i32 3, i32 4\n store i32 %r, ptr addrspace(1) %p",
                 "i32", "i32"),
  "shifted": ("%r = shl i64 %x, 3\n store i64 %r, ptr addrspace(1) %p", "i64", "i64"),
  "bits": ("%y = load volatile i64, ptr addrspace(1) %p\n %r = xor i64 %x, %y\n store i64 %r, ptr addrspace(1) %p",
           "i64", None),
  "both": ("%i = bitcast float %x to i32\n %m = mul i32 %i, 77\n %f = sitofp i32 %m to float\n %r = fadd float %x, %f\n"
           "store float %r, ptr addrspace(1) %p", "float", None)}


PRELOADED = """
define amdgpu_kernel void @k(ptr addrspace(1) inreg %p, float inreg %x, i32 inreg %n) #0 {
  %f = sitofp i32 %n to float
  %r = fadd float %x, %f
  store float %r, ptr addrspace(1) %p
  ret void
}
"""


def test_arguments_that_are_preloaded(code_object: Callable[..., bytes]) -> None:
  binary, p = code_object(PRELOADED, cpu="gfx942"), np.zeros(1, np.float32)
  assert tinyhw.launch(binary, "k", 1, 1, [p, 2, 3], "EMU")[0][0] == 5
  for args, message in (([p, 2, 3.5], "3.5 .float. given for int32"), ([p.astype("f8"), 2, 3], "float64 given for")):
    with pytest.raises(InvalidArgument, match=message): tinyhw.launch(binary, "k", 1, 1, args, "EMU")


def said(binary: bytes) -> list[str | None]:
  """What the code of kernel `k` says of its parameters: "f32", ... and None for those that it says nothing sure of."""
  names = {("f", 4): "f32", ("f", 8): "f64", ("n", 4): "i32", ("n", 8): "i64", ("*", 8): "*"}
  return [None if t is None else names[t.kind, t.size] for t in seen(binary, load(binary).kernels["k"])]


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942", "gfx11-generic"])
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("name", CASES)
def test_what_code_says_of_a_value(code_object: Callable[..., bytes], name: str, cpu: str, opt: int) -> None:
  body, kind, says = CASES[name]
  text = f"define amdgpu_kernel void @k(ptr addrspace(1) %p, {kind} %x) #0 {{\n  {body}\n  ret void\n}}\n"
  got = said(code_object(text, cpu=cpu, opt=opt, version=600 if "generic" in cpu else 500))[1]
  assert got == says or opt == 0 and got is None


@pytest.mark.parametrize("opt", [0, 2])
def test_a_comparison_with_0_or_minus_1_alone_may_be_of_a_sign(code_object: Callable[..., bytes], opt: int) -> None:
  """Also where a register gets the number first, whose value is what instructions write for 0 or -1."""
  for order, bound, says in (("slt", 0, None), ("sgt", -1, None), ("slt", 128, "i32"), ("slt", 193, "i32")):
    text = f"""define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %x) #0 {{
  %n = icmp {order} i32 %x, {bound}
  %r = select i1 %n, i32 3, i32 4
  store i32 %r, ptr addrspace(1) %p
  ret void
}}"""
    assert said(code_object(text, cpu="gfx942", opt=opt))[1] == says, bound


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("condition", ["eq", "ne"])
def test_both_ways_of_a_branch_are_looked_at(code_object: Callable[..., bytes], condition: str, opt: int) -> None:
  """A float is read on one way alone, a whole number on the other, and both ways go on to where a third one is."""
  text = f"""define amdgpu_kernel void @k(ptr addrspace(1) %p, float %x, i32 %n, double %d) #0 {{
  %v = load volatile i32, ptr addrspace(1) %p
  %s = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %v)
  %c = icmp {condition} i32 %s, 7
  br i1 %c, label %one, label %other
one:
  %r = fadd float %x, 1.0
  store volatile float %r, ptr addrspace(1) %p
  br label %done
other:
  %f = sitofp i32 %n to float
  store volatile float %f, ptr addrspace(1) %p
  br label %done
done:
  %e = fmul double %d, %d
  store volatile double %e, ptr addrspace(1) %p
  ret void
}}
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)"""
  binary = code_object(text, opt=opt)
  if opt: assert said(binary)[1:] == ["f32", "i32", "f64"]
  else: assert all(a in {None, b} for a, b in zip(said(binary)[1:], ["f32", "i32", "f64"]))


def test_debug_information_counts_only_where_it_fits_the_arguments() -> None:
  """Compilers may pass other arguments than were written: then nothing is declared, rather than something wrong."""
  binary = DEBUG.read_bytes()
  kernel = load(binary).kernels["axpn"]  # y: a pointer, a and n: 4 bytes each

  def known(at: int, **changes: Any) -> list[str]:
    arguments = [replace(a, **changes) if k == at else a for k, a in enumerate(kernel.arguments)]
    return [t.name for _, t in declared(binary, replace(kernel, arguments=tuple(arguments))) if t is not None]
  assert known(-1) == ["real*", "real", "int"]
  for at, changes in ((0, {"kind": "by_value"}), (1, {"kind": "global_buffer", "size": 8}), (1, {"size": 8}),
                      (2, {"size": 2})):
    assert known(at, **changes) == [], (at, changes)


SCALARS = """
define amdgpu_kernel void @scale(ptr addrspace(1) %out, float %k, float %b) #0 {
  %product = fmul contract float %k, %b
  %sum = fadd contract float %product, 1.5
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %at = getelementptr float, ptr addrspace(1) %out, i32 %x
  store float %sum, ptr addrspace(1) %at
  ret void
}
"""


@pytest.mark.parametrize("arch", DECODED)
def test_python_numbers_are_taken_whatever_unit_computes_with_them(arch: str) -> None:
  """RDNA3.5 and newer multiply the two in SALU floats, which tables of gfx11's first processors lack."""
  found, = tinyhw.launch(build(SCALARS, cpu=arch), "scale", 1, 4, [np.zeros(4, np.float32), 2, 3.5], "EMU")
  assert (found == np.float32(8.5)).all()
