"""Files of tensors against the packages of their makers, and files that mean harm."""
from __future__ import annotations

import io
import json
import pickle
import random
import struct
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor, dtypes, nn
from tinyhw.core.errors import DecodeError, Error, InvalidArgument, Unsupported
from tinyhw.nn.formats import gguf, safetensors
from tinyhw.nn.formats.pickled import Machine

FILES = Path(__file__).parent / "files"
sys.path.insert(0, str(FILES))
import values  # noqa: E402

CHECKPOINTS = ("zipped", "streamed")
NUMPY = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32",
         "float64")


def same(got: Tensor, want: np.ndarray[Any, Any]) -> None:
  assert got.dtype is dtypes.from_numpy(want.dtype) and got.shape == want.shape
  np.testing.assert_array_equal(got.numpy(), want)


# *** PyTorch ***

@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_of_torch(name: str) -> None:
  """Written by torch.save: every type, views, parameters, an optimizer's state."""
  found = nn.torch_load(FILES / f"{name}.pt")
  for kind, want in values.PLAIN.items(): same(found["plain"][kind], want)
  for kind, want in values.VIEWS.items(): same(found["views"][kind], np.ascontiguousarray(want))
  assert found["bfloat16"].dtype is dtypes.bfloat16 and found["bfloat16"].tolist() == values.BFLOAT16.tolist()
  assert found["parameter"].requires_grad and found["parameter"].tolist() == [1, 1]
  first, second = found["shared"]
  assert first is second and not first.requires_grad
  assert found["text"] == "né" and found["none"] is None and found["shape"] == (4, 6) and found["ordered"] == {"a": 1}
  assert found["numbers"] == (1, -2**40, 2.5, True, 10**30)
  assert found["optimizer"]["param_groups"][0]["lr"] == 0.125
  assert {k: v["step"].item() for k, v in found["optimizer"]["state"].items()} == {0: 1, 1: 1, 2: 1, 3: 1}
  assert list(found["model"]) == ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
                                  "1.num_batches_tracked"]
  assert found["model"]["1.num_batches_tracked"].item() == 1
  assert nn.load((FILES / f"{name}.pt").read_bytes())["text"] == "né"


@pytest.mark.parametrize("name, what", [
  ("module", "torch.nn.modules.container.Sequential"), ("script", "__torch__.torch.nn.modules.linear.Linear")])
def test_a_checkpoint_of_code_is_refused(name: str, what: str) -> None:
  with pytest.raises(Unsupported, match=f"{name}.pt: unsupported object in a checkpoint {what}; .*state_dict"):
    nn.torch_load(FILES / f"{name}.pt")


class _Harm:
  def __reduce__(self) -> Any: return print, ("harm",)


def _archive(data: bytes, *members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
  out = io.BytesIO()
  with zipfile.ZipFile(out, "w", compression) as archive:
    for name, content in (("a/data.pkl", data), *members): archive.writestr(name, content)
  return out.getvalue()


def test_nothing_in_a_checkpoint_runs(capsys: pytest.CaptureFixture[str]) -> None:
  for protocol in range(2, 6):
    with pytest.raises(Unsupported, match="__builtin__.print|builtins.print"):
      nn.torch_load(_archive(pickle.dumps({"x": _Harm()}, protocol)))
  assert capsys.readouterr().out == ""


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"


def _tensor(offset: int, shape: bytes, strides: bytes) -> bytes:
  return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"K" + bytes([offset]) + shape + strides +
          b"\x89NtR.")


FOUR = ("a/data/0", np.arange(4, dtype=np.float32).tobytes())
TWICE = b"(K\x02K\x02t"


def test_a_tensor_within_its_storage() -> None:
  assert nn.torch_load(_archive(_tensor(0, TWICE, b"(K\x01K\x02t"), FOUR)).tolist() == [[0, 2], [1, 3]]
  huge = nn.torch_load(_archive(_tensor(1, b"(J\x00\x00\x00\x40K\x02t", b"(K\x00K\x01t"), FOUR))
  assert huge.shape == (1 << 30, 2) and huge[7].tolist() == [1, 2]  # told once, and never held


@pytest.mark.parametrize("data, what", [
  (_archive(_tensor(1, TWICE, b"(K\x02K\x01t"), FOUR), "reaches element 4, and storage '0' has 4"),
  (_archive(_tensor(0, b"(K\x03K\x02t", b"(K\x01K\x01t"), FOUR), "overlap"),
  (_archive(_tensor(0, TWICE, b"(K\x01t"), FOUR), "a tensor of shape"),
  (_archive(_tensor(0, TWICE, b"(J\xff\xff\xff\xffK\x01t"), FOUR), "a tensor of shape"),
  (_archive(_tensor(0, TWICE, b"(K\x02K\x01t")), "the archive has no a/data/0"),
  (_archive(_tensor(0, TWICE, b"(K\x02K\x01t"), ("a/data/0", bytes(12))), "has 12 bytes, and 4 of float32"),
  (_archive(b"\x80\x02}.", ("a/data/0", bytes(1 << 20)), compression=zipfile.ZIP_DEFLATED), "a/data.pkl is compressed"),
  (_archive(b"\x80\x02}"), "not a readable pickle"),
  (_archive(b"\x80\x02s."), "not a readable pickle"),
  (_archive(b"\x80\x02}))s."), "a tuple as a key at byte 5"),
  (_archive(b"\x80\x05\x96" + bytes(7) + b"\x7f."), "not a readable pickle"),
  (_archive(b"\x80\x02(" + b"]" * 50_000 + b"a" * 49_999 + b"."), "nested too deeply|not a readable pickle"),
  (b"PK\x03\x04" + bytes(60), "a damaged zip archive"),
  (b"\x80\x02K\x01.", "neither a zip archive nor the older format"),
  (b"", "not a readable pickle"),
])
def test_a_damaged_checkpoint(data: bytes, what: str) -> None:
  with pytest.raises(DecodeError, match=what): nn.torch_load(data)


def test_a_cycle_is_a_value() -> None:
  found = nn.torch_load(_archive(b"\x80\x02]q\x00h\x00a."))
  assert found[0] is found


BASES = {name: (FILES / f"{name}.pt").read_bytes() for name in CHECKPOINTS}


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(CHECKPOINTS), st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 255)), max_size=4),
       st.integers(0, 12_000) | st.none())
def test_damage_anywhere_is_told(name: str, changes: list[tuple[int, int]], end: int | None) -> None:
  data = bytearray(BASES[name][:end])
  for at, byte in changes:
    if data: data[at % len(data)] = byte
  try: nn.torch_load(bytes(data))
  except Error as error: assert "\n" not in str(error).splitlines()[0]


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=40))
@example(b"r\xff\xff\xff\x7f.")  # a memo of 2**31 places
def test_any_bytes_as_a_pickle(data: bytes) -> None:
  try: Machine(io.BytesIO(data), "x", lambda named, arguments: arguments, lambda key: key).read()
  except DecodeError: pass


# *** safetensors ***

@settings(max_examples=examples(25), deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda n: n != safetensors.METADATA), st.tuples(
  st.sampled_from(NUMPY), st.lists(st.integers(0, 3), max_size=3)), max_size=4), st.integers(0, 2**32 - 1))
def test_safetensors_both_ways(tmp_path_factory: Any, table: dict[str, tuple[str, list[int]]], seed: int) -> None:
  """Against the package of the format's makers: what either writes, the other reads."""
  theirs = pytest.importorskip("safetensors.numpy")
  rng = np.random.default_rng(seed)
  def made(kind: str, shape: list[int]) -> np.ndarray[Any, Any]:
    raw = rng.integers(0, 2 if kind == "bool" else 256, (*shape, np.dtype(kind).itemsize), dtype=np.uint8)
    return np.ascontiguousarray(raw).reshape(-1).view(kind).reshape(shape)
  arrays = {name: made(*row) for name, row in table.items()}
  found = nn.safe_load(theirs.save(arrays, {"made": "there"}))
  assert found.keys() == arrays.keys()
  for name, want in arrays.items(): same(found[name], want)
  path = tmp_path_factory.mktemp("written") / "here.safetensors"
  nn.safe_save(found, path, {"made": "here"})
  back = theirs.load_file(path)
  assert back.keys() == arrays.keys() and nn.safe_metadata(path) == {"made": "here"}
  for name, want in arrays.items():
    assert back[name].dtype == want.dtype
    np.testing.assert_array_equal(back[name].view(np.uint8) if want.shape else back[name].tobytes(),
                                  want.view(np.uint8) if want.shape else want.tobytes())
  assert nn.load(path).keys() == arrays.keys()


def test_safetensors_of_bfloat16_and_views(tmp_path: Path) -> None:
  path = tmp_path / "a.safetensors"
  nn.safe_save({"b": Tensor([1.0, 2.5]).bfloat16(), "t": Tensor([[1, 2], [3, 4]]).T}, path)
  found = nn.safe_load(path)
  assert found["b"].dtype is dtypes.bfloat16 and found["b"].tolist() == [1, 2.5]
  assert found["t"].tolist() == [[1, 3], [2, 4]]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
  with pytest.raises(InvalidArgument, match="may be called __metadata__"):
    nn.safe_save({"__metadata__": Tensor([1])}, tmp_path / "a")
  with pytest.raises(InvalidArgument, match="cannot be written: No such file"):
    nn.safe_save({"a": Tensor([1])}, tmp_path / "missing" / "a")
  assert not list(tmp_path.iterdir())
  with pytest.raises(InvalidArgument, match="cannot be read: No such file"): nn.load(tmp_path / "a")


def _safe(table: Any, data: bytes = b"") -> bytes:
  text = table if isinstance(table, bytes) else json.dumps(table).encode()
  return len(text).to_bytes(8, "little") + text + data


ROW = {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize("data, what", [
  (b"", "the header's length is 8 bytes at 0, and the file has 0"),
  (_safe({})[:9], "the header is 2 bytes at 8"),
  ((1 << 62).to_bytes(8, "little"), "a header of"),
  (_safe(b"{,"), "the header is no JSON"),
  (_safe(b"[" * 100_000), "the header is no JSON"),
  (_safe([]), "the header is a list"),
  (_safe(b'{"a": 1, "a": 2}'), "'a' stands in the header twice"),
  (_safe({"a": {"dtype": "I32"}}), "'a' has no dtype, shape and data_offsets"),
  (_safe({"a": ROW | {"shape": [-2]}}, bytes(8)), r"'a' has the shape \[-2\]"),
  (_safe({"a": ROW | {"shape": [True]}}, bytes(8)), "'a' has the shape"),
  (_safe({"a": ROW | {"shape": [3]}}, bytes(8)), "are 12 bytes, and 8 are told of"),
  (_safe({"a": ROW | {"shape": [2**40, 2**40]}}, bytes(8)), "bytes, and 8 are told of"),
  (_safe({"a": ROW}, bytes(4)), "the tensors end at byte"),
  (_safe({"a": ROW}, bytes(12)), "the tensors end at byte"),
  (_safe({"a": ROW, "b": ROW}, bytes(8)), "begins at 0, and what is before it ends at 8"),
  (_safe({"a": ROW | {"data_offsets": [4, 12]}}, bytes(12)), "begins at 4, and what is before it ends at 0"),
])
def test_a_damaged_safetensors(data: bytes, what: str) -> None:
  with pytest.raises(DecodeError, match=what): nn.safe_load(data)


def test_an_unknown_type_of_safetensors() -> None:
  with pytest.raises(Unsupported, match="safetensors dtype F4"):
    nn.safe_load(_safe({"a": ROW | {"dtype": "F4"}}, bytes(8)))


# *** GGUF ***

@pytest.mark.parametrize("kind", gguf.BLOCKS)
@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_blocks_against_their_makers(kind: int, device: str) -> None:
  theirs = pytest.importorskip("gguf")
  from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
  block, quantized = gguf.BLOCKS[kind], GGMLQuantizationType(kind)
  assert quantized.name == block.name and GGML_QUANT_SIZES[quantized] == (block.elements, block.size)
  raw = np.random.default_rng(kind).integers(0, 256, (5, block.size), dtype=np.uint8)
  with np.errstate(all="ignore"): want = theirs.quants.dequantize(raw, quantized).reshape(5, block.elements)
  np.testing.assert_array_equal(block.widen(Tensor(raw, device=device)).numpy(), want)


def _written(path: Path) -> dict[str, Any]:
  """A file by the package `gguf`; what its tensors are."""
  theirs = pytest.importorskip("gguf")
  rng = np.random.default_rng(5)
  writer = theirs.GGUFWriter(path, "test")
  writer.add_uint32("number", 7)
  writer.add_array("texts", ["a", "né"])
  writer.add_array("numbers", [1, 2, 3])
  writer.add_float32("part", 0.5)
  writer.add_bool("yes", True)
  plain = {"f32": rng.normal(size=(2, 3)).astype(np.float32), "f16": rng.normal(size=(4,)).astype(np.float16),
           "i8": np.array([[[-1]]], np.int8)}
  for name, array in plain.items(): writer.add_tensor(name, array)
  x = rng.normal(size=(3, 64)).astype(np.float32)
  q = theirs.quants.quantize(x, theirs.GGMLQuantizationType.Q4_0)
  writer.add_tensor("q", q, raw_dtype=theirs.GGMLQuantizationType.Q4_0)
  writer.write_header_to_file()
  writer.write_kv_data_to_file()
  writer.write_tensors_to_file()
  writer.close()
  return plain | {"q": theirs.quants.dequantize(q, theirs.GGMLQuantizationType.Q4_0)}


def test_a_gguf_file(tmp_path: Path) -> None:
  want = _written(tmp_path / "a.gguf")
  metadata, found = nn.gguf_load(tmp_path / "a.gguf")
  assert metadata["general.architecture"] == "test" and metadata["number"] == 7 and metadata["texts"] == ["a", "né"]
  assert metadata["numbers"] == [1, 2, 3] and metadata["part"] == 0.5 and metadata["yes"] is True
  assert found.keys() == want.keys() == nn.load(tmp_path / "a.gguf").keys()
  for name, array in want.items(): same(found[name], array)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4), st.integers(0, 2000) | st.none())
def test_a_damaged_gguf_is_told(tmp_path_factory: Any, changes: list[tuple[int, int]], end: int | None) -> None:
  path = tmp_path_factory.getbasetemp() / "base.gguf"
  if not path.exists(): _written(path)
  data = bytearray(path.read_bytes()[:end])
  for at, byte in changes:
    if data: data[at % len(data)] = byte
  try: nn.gguf_load(bytes(data))
  except Error as error: assert "\n" not in str(error).splitlines()[0]


@pytest.mark.parametrize("name", ["Q8_1", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S",
                                  "IQ4_XS", "IQ1_M", "TQ1_0", "TQ2_0", "MXFP4"])
def test_a_type_of_gguf_that_is_refused_has_its_name(name: str) -> None:
  pytest.importorskip("gguf")
  from gguf.constants import GGMLQuantizationType
  assert gguf.NAMES[int(GGMLQuantizationType[name])] == name and len(gguf.NAMES) == 14


@pytest.mark.parametrize("name, kind", [("float32", "F32"), ("float16", "F16"), ("float64", "F64"),
                                        ("bfloat16", "BF16"), ("int8", "I8"), ("int16", "I16"),
                                        ("int32", "I32"), ("int64", "I64")])
def test_a_plain_type_of_gguf(name: str, kind: str) -> None:
  pytest.importorskip("gguf")
  from gguf.constants import GGMLQuantizationType
  assert gguf.PLAIN[int(GGMLQuantizationType[kind])].name == name and len(gguf.PLAIN) == 8


def _gguf(version: int = 3, tensors: bytes = b"", count: int = 1, pairs: bytes = b"", pair_count: int = 0) -> bytes:
  head = b"GGUF" + struct.pack("<IQQ", version, count, pair_count) + pairs + tensors
  return head + bytes(-len(head) % 32)


def _info(name: bytes, shape: tuple[int, ...], kind: int, offset: int = 0) -> bytes:
  return struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


@pytest.mark.parametrize("data, error, what", [
  (b"GGML", DecodeError, "no GGUF file"),
  (_gguf(1), Unsupported, "GGUF version 1"),
  (_gguf(0x03000000), Unsupported, "big-endian"),
  (_gguf(tensors=_info(b"a", (2**63, 2**63), 0)), DecodeError, "'a' is .* bytes at 96"),
  (_gguf(tensors=_info(b"a", (1, 1, 1, 1, 1), 0)), DecodeError, "5 axes"),
  (_gguf(tensors=_info(b"a", (1,), 0) * 2, count=2), DecodeError, "two tensors are called 'a'"),
  (_gguf(count=0, pair_count=2, pairs=struct.pack("<Q1sIB", 1, b"k", 7, 1) * 2), DecodeError,
   "the metadata have 'k' twice"),
  (_gguf(tensors=_info(b"a", (31,), 2)), DecodeError, "no whole number of Q4_0 blocks"),
  (_gguf(tensors=_info(b"a", (256,), 16)), Unsupported, "GGUF type IQ2_XXS"),
  (_gguf(tensors=_info(b"\xff", (1,), 0)), DecodeError, "no UTF-8"),
  (_gguf(count=2**60), DecodeError, "the file has"),
  (_gguf(count=0, pair_count=1, pairs=struct.pack("<Q1sIIQ", 1, b"k", 9, 9, 1) + struct.pack("<IQ", 9, 1) * 20),
   DecodeError, "nested too deeply"),
  (_gguf(count=0, pair_count=1, pairs=struct.pack("<Q17sII", 17, b"general.alignment", 4, 3)), DecodeError,
   "an alignment of 3"),
  (_gguf(count=0, pair_count=1, pairs=struct.pack("<Q1sI", 1, b"k", 77)), DecodeError, "unknown type 77"),
])
def test_a_hostile_gguf(data: bytes, error: type[Error], what: str) -> None:
  with pytest.raises(error, match=what): nn.gguf_load(data)


def test_a_file_of_no_known_format() -> None:
  with pytest.raises(DecodeError, match="neither safetensors nor GGUF nor a PyTorch checkpoint"):
    nn.load(b"hello there")


def test_archives_are_tensors_of_bytes() -> None:
  made = io.BytesIO()
  with tarfile.open(fileobj=made, mode="w:gz") as tar:
    entry = tarfile.TarInfo("folder/name")
    entry.size = 3
    tar.addfile(entry, io.BytesIO(b"abc"))
    tar.addfile(tarfile.TarInfo("empty"))
  found = nn.state.tar_extract(made.getvalue())
  assert {name: bytes(t.tolist()) for name, t in found.items()} == {"folder/name": b"abc", "empty": b""}
  made = io.BytesIO()
  with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive: archive.writestr("a/b", b"hello" * 100)
  zipped = Tensor(made.getvalue())
  assert bytes(nn.state.zip_extract(zipped)["a/b"].tolist()) == b"hello" * 100
  for extract in (nn.state.tar_extract, nn.state.zip_extract):
    with pytest.raises(DecodeError, match="archive"): extract(b"neither of them")
  file = nn.state.TensorIO(Tensor(b"0123456789"))
  assert (file.read(2), file.seek(-3, io.SEEK_END), file.read(), file.read(1)) == (b"01", 7, b"789", b"")
  with pytest.raises(InvalidArgument, match="vector of uint8"): nn.state.TensorIO(Tensor([1.0]))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
  for read in (nn.load, Tensor, nn.safe_load):
    with pytest.raises(FileNotFoundError, match="No such file"): read(tmp_path / "nothing")  # type: ignore[operator]


# *** What no file means ***

MANY = "9" * 10_000
LONG = "x" * 100_000


def _long(count: int) -> bytes:
  """A pickled number of so many bytes."""
  return b"\x8b" + count.to_bytes(4, "little") + bytes([1] * count)


def _old(keys: bytes) -> bytes:
  """A checkpoint of the older format, up to the list of its storages."""
  parts = (b"\x8a\x0a" + (0x1950A86A20F9469CFC6C).to_bytes(10, "little"), b"M\xe9\x03",
           b"}X\x0d\0\0\0little_endian\x88s", b"}", b"]" + keys)
  return b"".join(b"\x80\x02" + part + b"." for part in parts)


@pytest.mark.parametrize(("read", "data"), [
  *((nn.safe_load, _safe(text.encode())) for text in (
    f'{{"a": {MANY}}}', f'{{"a": {{"dtype": "F32", "shape": [{MANY}], "data_offsets": [0, 0]}}}}',
    f'{{"a": {{"dtype": "F32", "shape": [-{MANY}], "data_offsets": [0, 0]}}}}',
    f'{{"a": {{"dtype": "F32", "shape": [{"9" * 20}, {"9" * 20}], "data_offsets": [0, {"9" * 20}]}}}}',
    f'{{"a": {{"dtype": "F32", "shape": {"[" * 900}{"]" * 900}, "data_offsets": [0, 0]}}}}',
    f'{{"a": {{"dtype": {"[" * 900}{"]" * 900}, "shape": [], "data_offsets": [0, 0]}}}}',
    '{"a": {"dtype": {}, "shape": [], "data_offsets": [0, 0]}}',
    '{"a": {"dtype": "F32", "shape": [1e400, NaN], "data_offsets": [0, Infinity]}}',
    f'{{"{LONG}": {{"dtype": "{LONG}", "shape": [], "data_offsets": [0, 0]}}}}', f'{{"{LONG}": 1}}', f'"{LONG}"')),
  (nn.safe_load, _safe(b'{"a\xff": 1}')),
  (nn.torch_load, _archive(b"\x80\x02" + _long(2000) + b".")),
  (nn.torch_load, _archive(_tensor(0, b"(" + _long(500) + b"K\x02t", b"(K\x02K\x01t"), FOUR)),
  (nn.torch_load, _archive(b"\x80\x02I" + MANY.encode() + b"\n.")),
  (nn.torch_load, _archive(b"\x80\x02L" + MANY.encode() + b"L\n.")),
  (nn.torch_load, _archive(b"\x80\x02F" + LONG.encode() + b"\n.")),
  *((nn.torch_load, _old(keys)) for keys in (b"Na", b"]a", _long(2000) + b"a", _long(500) + b"a", b"X\1\0\0\0000a")),
  *((nn.gguf_load, b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + rest) for tensors, pairs, rest in (
    (0, 1, struct.pack("<Q", len(LONG)) + LONG.encode() + struct.pack("<I", 99)),
    (0, 1 << 63, b""), (1 << 63, 0, b""), (0, 1, struct.pack("<Q", 1 << 63)),
    (0, 1, struct.pack("<Q", 2) + b"\xff\xfe"),
    (0, 1, struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 4, 1 << 62)),
    (1, 0, struct.pack("<QcI4Q", 1, b"a", 4, *[(1 << 64) - 1] * 4) + bytes(12))))])
def test_sizes_and_names_that_there_are_not(read: Any, data: bytes) -> None:
  """One line, which quotes no more of the file than fits."""
  with pytest.raises(Error) as error: read(data)
  assert "\n" not in str(error.value) and len(str(error.value)) < 1000


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_that_are_damaged_anywhere(method: int) -> None:
  file = io.BytesIO()
  with zipfile.ZipFile(file, "w", method) as archive: archive.writestr("a", bytes(range(64)) * 3)
  data, r = file.getvalue(), random.Random(method)
  for _ in range(examples(150)):
    at = r.randrange(len(data))
    try: nn.state.zip_extract(data[:at] + bytes([r.randrange(256)]) + data[at + 1:])
    except Error: pass


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tars_that_are_damaged_anywhere(mode: Any) -> None:
  file = io.BytesIO()
  with tarfile.open(fileobj=file, mode=mode) as archive:
    info = tarfile.TarInfo("a")
    info.size = 192
    archive.addfile(info, io.BytesIO(bytes(range(64)) * 3))
  data, r = file.getvalue(), random.Random(mode)
  for _ in range(examples(150)):
    at = r.randrange(min(len(data), 600))
    try: nn.state.tar_extract(data[:at] + bytes([r.randrange(256)]) + data[at + 1:])
    except Error: pass
