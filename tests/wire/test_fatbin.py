"""Fat binaries: what nvcc's bytes say, and what is cut or unknown."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.wire import fatbin

NVCC = shutil.which("nvcc") or next(map(str, Path("/usr/local").glob("cuda*/bin/nvcc")), None)


def packed(*rows: tuple[int, int, bytes, int, int]) -> bytes:
  """A fat binary of (kind, sm, payload, flags, length)."""
  out = b""
  for kind, sm, payload, flags, length in rows:
    padded = -(-len(payload) // 8) * 8
    told = len(payload) if flags else 0
    out += fatbin.ENTRY.pack(kind, 0x101, 80, padded, told, 64, 0, 9, sm, 0, flags, 0, length).ljust(80, b"\0")
    out += payload.ljust(padded, b"\0")
  return fatbin.HEADER.pack(fatbin.MAGIC, 1, 16, len(out)) + out


def test_entries_are_found_in_order() -> None:
  data = packed((1, 80, b"one", 0x11, 0), (2, 90, b"\x7fELF", 0x11, 0), (1, 90, b"three ...", 0x11, 0))
  assert [(e.kind, e.sm) for e in fatbin.entries(data)] == [(1, 80), (2, 90), (1, 90)]
  assert [e.text() for e in fatbin.entries(data) if e.kind == fatbin.PTX] == ["one", "three ..."]
  assert fatbin.size_of(data) == len(data)
  assert [*fatbin.entries(packed())] == []


@pytest.mark.parametrize("broken", [b"", b"\0" * 64, packed((1, 80, b"x" * 40, 0, 0))[:-8],
                                    packed((1, 80, b"x", 0, 0))[:60]])
def test_what_is_none_or_cut_is_refused(broken: bytes) -> None:
  with pytest.raises(DecodeError): list(fatbin.entries(broken))


def test_a_cut_header_has_no_size() -> None:
  with pytest.raises(DecodeError, match="15 bytes are no fat binary"): fatbin.size_of(packed()[:15])


def test_entries_that_leave_the_file_are_refused() -> None:
  data = bytearray(packed((1, 80, b"x" * 40, 0, 0)))
  data[16 + 8] += 8
  with pytest.raises(DecodeError, match="leaves it"): list(fatbin.entries(bytes(data)))
  data[16 + 8] -= 8
  data[8] -= 100
  with pytest.raises(DecodeError, match="is cut"): list(fatbin.entries(bytes(data)))


SEQUENCES = st.lists(st.tuples(st.binary(max_size=300), st.integers(1, 400), st.integers(4, 700)), max_size=6)


def _count(n: int) -> bytes:
  return b"" if n < 15 else bytes([255] * ((n - 15) // 255) + [(n - 15) % 255])


@settings(max_examples=examples(60))
@given(SEQUENCES, st.binary(max_size=40))
def test_lz4_is_undone(sequences: list[tuple[bytes, int, int]], last: bytes) -> None:
  block, plain = b"", bytearray()
  for literals, back, length in sequences:
    plain += literals
    if not plain: continue
    back = min(back, len(plain))
    for _ in range(length): plain.append(plain[-back])
    block += bytes([min(len(literals), 15) << 4 | min(length - 4, 15)]) + _count(len(literals)) + literals
    block += back.to_bytes(2, "little") + _count(length - 4)
  block += bytes([min(len(last), 15) << 4]) + _count(len(last)) + last
  plain += last
  assert fatbin.lz4(block, len(plain)) == plain
  if sequences and any(s[0] for s in sequences):
    with pytest.raises(DecodeError): fatbin.lz4(block + b"\x0f\xff\xff", len(plain))
  if len(plain) > len(last):
    with pytest.raises(DecodeError): fatbin.lz4(block, len(plain) - len(last) - 1)


def test_a_wrong_length_and_another_compression_are_told() -> None:
  entry, = fatbin.entries(packed((1, 80, b"\x30abc", 0x2011, 3)))
  assert entry.text() == "abc"
  entry, = fatbin.entries(packed((1, 80, b"\x30abc", 0x2011, 4)))
  with pytest.raises(DecodeError, match="3 bytes of code, 4 were told"): entry.text()


def test_what_is_no_zstd_is_told() -> None:
  pytest.importorskip("zstandard")
  entry, = fatbin.entries(packed((1, 80, b"no zstd at all", 0x8011, 3)))
  with pytest.raises(DecodeError, match="its code is no zstd"): entry.text()


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
@pytest.mark.parametrize("mode", ["none", "speed", "size"])
def test_nvcc_s_own(tmp_path: Path, mode: str) -> None:
  assert NVCC is not None
  (tmp_path / "k.cu").write_text("__global__ void k(float *x) { x[threadIdx.x] *= 2; }\n")
  targets = [word for sm in ("80", "90a") for word in ("-gencode", f"arch=compute_{sm},code=compute_{sm}")]
  made = subprocess.run([NVCC, *targets, f"--compress-mode={mode}", "-fatbin", "k.cu", "-o", "k.fatbin"],
                        cwd=tmp_path, capture_output=True)
  if made.returncode: pytest.skip(f"nvcc does not know --compress-mode={mode}")
  found = [*fatbin.entries((tmp_path / "k.fatbin").read_bytes())]
  assert [(e.kind, e.sm) for e in found] == [(1, 80), (1, 90)]
  try: texts = [e.text() for e in found]
  except Unsupported as why: pytest.skip(str(why))
  assert ".target sm_80" in texts[0] and ".target sm_90a" in texts[1]
