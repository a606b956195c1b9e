"""`tinyhw info`: what files with GPU code hold, however the code is packed."""
from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.wire.test_fatbin import packed
from tinyhw.cli import tinyhw
from tinyhw.wire import cubin, fatbin
from tinyhw.wire.codeobject import BUNDLE

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 k) .maxntid 128, 2, 1 {
  .reg .u64 %rd<2>; .reg .f32 %f<3>;
  ld.param.u64 %rd0, [x];
  ld.param.f32 %f0, [k];
  ld.global.f32 %f1, [%rd0];
  mul.f32 %f2, %f1, %f0;
  st.global.f32 [%rd0], %f2;
  ret;
}
"""


def info(data: bytes, folder: Path) -> Any:
  """The answer's JSON, or the error's text."""
  (folder / "file").write_bytes(data)
  done = CliRunner().invoke(tinyhw, ["info", "--json", str(folder / "file")])
  return str(done.exception) if done.exception else json.loads(done.output)


def bundle(**codes: bytes) -> bytes:
  """An offload bundle, by LLVM's description of it."""
  names = {f"hipv4-amdgcn-amd-amdhsa--{target}".encode(): code for target, code in codes.items()}
  at = len(BUNDLE) + 8 + sum(24 + len(n) for n in names)
  head, body = BUNDLE + struct.pack("<Q", len(names)), b""
  for name, code in names.items():
    head += struct.pack("<QQQ", at + len(body), len(code), len(name)) + name
    body += code
  return head + body


def program(section: str, data: bytes) -> bytes:
  """An ELF of the host with one section."""
  names = b"\0.shstrtab\0" + section.encode() + b"\0"
  rows = [bytes(64), struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64, len(names), 0, 0, 1, 0),
          struct.pack("<IIQQQQIIQQ", 11, 1, 2, 0, 64 + len(names), len(data), 0, 0, 1, 0)]
  head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(names) + len(data), 0, 64,
                                                   56, 0, 64, 3, 1)
  return head + names + data + b"".join(rows)


def test_a_code_object_shows_its_kernels_and_where_it_runs(add_kernel: bytes, tmp_path: Path) -> None:
  piece, = info(add_kernel, tmp_path)
  assert piece["target"] == "gfx1100" and piece["runs"] == ["MOCKGPU=gfx1100", "EMU"] and not piece["why"]
  kernel, = piece["kernels"]
  assert kernel["name"] == "add" and len(kernel["parameters"]) == 3 and kernel["counts"]["wave"] == 32
  assert kernel["counts"]["VGPRs"] > 0 and kernel["counts"]["LDS"] == 0


def test_ptx_shows_types_that_its_code_tells(tmp_path: Path) -> None:
  piece, = info(PTX, tmp_path)
  assert piece["what"] == "PTX, version 8.0" and piece["target"] == "sm_80"
  assert piece["runs"][0] == "MOCKGPU=sm_80" and piece["runs"][-1] == "EMU"
  kernel, = piece["kernels"]
  assert kernel["parameters"] == ["x: float32*", "k: float32"] and kernel["threads"] == 256


@pytest.mark.parametrize("target, runs", [("sm_90a", ["MOCKGPU=sm_90", "EMU"]), ("sm_120", ["MOCKGPU=sm_120", "EMU"])])
def test_targets_of_ptx_run_on_what_has_their_features(target: str, runs: list[str], tmp_path: Path) -> None:
  piece, = info(PTX.replace(b"sm_80", target.encode()).replace(b"8.0", b"9.0"), tmp_path)
  assert piece["runs"] == runs


def test_each_way_of_packing_shows_what_is_in_it(add_kernel: bytes, tmp_path: Path) -> None:
  own = info(add_kernel, tmp_path)[0]
  both = bundle(gfx1100=add_kernel, gfx942=add_kernel)
  pages = both.ljust(-(-len(both) // 4096) * 4096, b"\0")
  for data, count in ((both, 2), (program(".hip_fatbin", pages + both), 4)):
    assert info(data, tmp_path) == [own] * count
  text = info(PTX, tmp_path)[0]
  fat = packed((fatbin.PTX, 80, PTX, 0, 0))
  assert info(fat, tmp_path) == [text]
  padded = fat + bytes(-len(fat) % 8)
  assert info(program(".nv_fatbin", padded + fat), tmp_path) == [text] * 2
  assert info(cubin.write(PTX, 80, 0x160, []), tmp_path) == [text]


def test_code_that_runs_nowhere_says_why(add_kernel: bytes, tmp_path: Path) -> None:
  mach = 48  # e_flags
  other = add_kernel[:mach] + bytes([0x30]) + add_kernel[mach + 1:]
  piece, = info(other, tmp_path)
  assert not piece["runs"] and piece["why"].startswith("unsupported GPU gfx908; gfx90a is its nearest")


def test_a_broken_piece_is_told_beside_the_others(add_kernel: bytes, tmp_path: Path) -> None:
  good, bad = info(bundle(gfx1100=add_kernel, gfx1101=add_kernel[:200]), tmp_path)
  assert good["kernels"] and not bad["kernels"] and bad["target"] == "gfx1101" and "code object" in bad["why"]


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ", bytes(100), program(".text", b"x")])
def test_what_holds_no_code_is_refused_in_one_line(data: bytes, tmp_path: Path) -> None:
  assert isinstance(told := info(data, tmp_path), str) and "\n" not in told


def test_lines_are_for_people(add_kernel: bytes, tmp_path: Path) -> None:
  (tmp_path / "add.o").write_bytes(add_kernel)
  done = CliRunner().invoke(tinyhw, ["info", str(tmp_path / "add.o")])
  first, runs, *_ = done.output.splitlines()
  assert first == "AMDGPU code object, version 5 for gfx1100" and runs == "  runs on: MOCKGPU=gfx1100, EMU"


@pytest.mark.parametrize("data", [b"", b"\xff\xfe.version", b"\x7fELF", program(".text", b"\xc3")],
                         ids=["empty", "no text", "a cut ELF", "a host's program"])
def test_a_launch_of_no_gpu_code_says_so_before_it_looks_for_a_card(data: bytes, tmp_path: Path) -> None:
  (tmp_path / "file").write_bytes(data)
  done = CliRunner().invoke(tinyhw, ["launch", str(tmp_path / "file"), "--kernel", "k"])
  assert done.exception and "/dev/kfd" not in str(done.exception)
  assert re.search(r"holds no GPU code|ELF", str(done.exception))
