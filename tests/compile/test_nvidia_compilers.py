"""nvrtc and nvJitLink: what they make runs, what they refuse is told in a line, and neither need be there."""
from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tinyhw
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.compile.nvidia import installed, nvjitlink, nvrtc
from tinyhw.compile.render.cuda import CUDARenderer
from tinyhw.core.errors import DecodeError, DeviceError, InvalidArgument, MissingTool
from tinyhw.devices.assemble import Assembler, assembled, bare, processor
from tinyhw.wire.cubin import Cubin

MODULE = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) {
  .reg .u64 %rd; .reg .u32 %r<3>; .shared .align 4 .b8 room[400];
  ld.param.u64 %rd, [p]; ld.param.u32 %r1, [n];
  st.shared.u32 [room+8], %r1; ld.shared.u32 %r2, [room+8];
  st.global.u32 [%rd+4], %r2;
  ret;
}"""
SOURCE = b"""template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }
extern "C" __global__ void plain(int *x) { x[threadIdx.x] += N; }
"""


@pytest.fixture
def linker() -> str:
  if (file := nvjitlink.find()) is None: pytest.skip("there is no nvJitLink")
  return file


@pytest.mark.parametrize("arch", sorted(NV_ARCHES))
def test_calls_that_the_library_leaves_to_the_loader(arch: str, linker: str) -> None:
  """It gives functions sections of their own, where ptxas knows how far they are from each other: with the image at an
  address, calls by address go to the function. Which bits of an instruction say it, ptxas' own calls tell, by the way
  from the next instruction in their place."""
  if (tool := shutil.which("ptxas")) is None: pytest.skip("there is no ptxas to tell")
  lines = "".join(f"div.rn.f32 %f{1 + i % 3}, %f{1 + (i + 1) % 3}, %f{1 + (i + 2) % 3};\n" for i in range(40))
  text = f""".version {"8.0" if NV_ARCHES[arch].sm < 100 else "8.7"}
.target {arch}
.address_size 64
.visible .entry k(.param .u64 p) {{
  .reg .u64 %rd; .reg .f32 %f<4>;
  ld.param.u64 %rd, [p];
  ld.global.v2.f32 {{%f1, %f2}}, [%rd]; mov.f32 %f3, %f1;
  {lines}st.global.f32 [%rd], %f3;
  ret;
}}""".encode()
  pieces = ((16, 8), (34, 47)) if NV_ARCHES[arch].sm >= 90 else ((34, 47),)
  def calls(image: bytes, cubin: Cubin, opcode: int) -> list[tuple[int, int]]:
    """(where the next instruction is, what a call says) within the kernel."""
    found, kernel = [], cubin.kernel("k")
    for at in range(kernel.text, kernel.text + kernel.text_size, 16):
      word, value, taken = int.from_bytes(image[at:at + 16], "little"), 0, 0
      for place, bits in pieces: value, taken = value | (word >> place & (1 << bits) - 1) << taken, taken + bits
      if word & 0xFFF == opcode: found.append((at + 16, value << 2))
    return found
  by_way, by_address = (Cubin(assembled(text, NV_ARCHES[arch], by)) for by in (tool, linker))
  base = 0x7F12_3456_7800
  (to,) = {next_ + way for next_, way in calls(by_way.link(base), by_way, 0x944)}
  name, = {s.name for s in by_way.symbols if "slowpath" in s.name}
  assert to == by_way.kernel("k").text + next(s.value for s in by_way.symbols if s.name == name)
  told = {address for _, address in calls(by_address.link(base), by_address, 0x943)}
  function = next(s for s in by_address.elf.sections if s.name.startswith(".text.") and "slowpath" in s.name)
  assert told == {base + function.offset} and len(calls(by_address.link(base), by_address, 0x943)) == 40
  assert by_address.kernels.keys() == {"k"}


@pytest.fixture
def compiler() -> str:
  if (file := nvrtc.find()) is None: pytest.skip("there is no nvrtc")
  return file


@pytest.mark.parametrize("arch", sorted(NV_ARCHES))
def test_a_cubin_of_the_library_says_what_one_of_ptxas_and_one_without_code_say(arch: str, linker: str) -> None:
  chip = NV_ARCHES[arch]
  text = MODULE if chip.sm < 100 else MODULE.replace(b"version 8.0", b"version 8.7")
  made = [assembled(text, chip, linker), bare(text, chip)]
  if (tool := shutil.which("ptxas")) is not None: made.append(assembled(text, chip, tool))
  told = set()
  for elf in made:
    cubin = Cubin(elf)
    kernel = cubin.kernel("k")
    assert cubin.ptx == text
    told.add((cubin.arch, kernel.name, kernel.shared, kernel.parameters, kernel.params, kernel.params_size))
  assert len(told) == 1, told


def test_the_driver_takes_the_library_by_its_name(linker: str, monkeypatch: pytest.MonkeyPatch) -> None:
  if not Path(linker).exists(): pytest.skip("it is the system's, and has no file of its own to name")
  monkeypatch.setenv("TINYHW_PTXAS", linker)
  make = Assembler(NV_ARCHES["sm_90"], False)
  assert make.key == nvjitlink.name(linker) and make.key.startswith("nvJitLink 1")
  assert Cubin(make(MODULE)).kernel("k").text_size > 64  # machine code, of which a card has need
  monkeypatch.setenv("MOCKGPU", "sm_90")
  out, = tinyhw.launch(MODULE, "k", 1, 1, [np.zeros(2, np.uint32), 7], device="NV")
  assert out.tolist() == [0, 7]
  tinyhw.Device.close()


def test_what_the_linker_refuses(linker: str) -> None:
  for bad, words in ((MODULE.replace(b"ret;", b"rot;"), "line 9.*'rot'"), (b"nonsense", "bad input"),
                     (MODULE.replace(b"sm_80", b"sm_100"), "does not support .target sm_100")):
    with pytest.raises(DecodeError, match=f"PTX for sm_90: nvJitLink refuses it: .*{words}"):
      nvjitlink.linked(bad, "sm_90", linker)
  with pytest.raises(DeviceError, match="nvJitLinkCreate: NVJITLINK_ERROR_UNRECOGNIZED_ARCH"):
    nvjitlink.linked(MODULE, "sm_77", linker)


def test_threads_link_side_by_side(linker: str) -> None:
  def one(n: int) -> bytes: return nvjitlink.linked(MODULE.replace(b"[%rd+4]", b"[%%rd+%d]" % (4 * n)), "sm_90", linker)
  with ThreadPoolExecutor(4) as pool: found = list(pool.map(one, range(12)))
  assert found == [one(n) for n in range(12)]  # no thread's module in another's cubin


def test_letters_of_what_only_one_gpu_has() -> None:
  chip = NV_ARCHES["sm_90"]
  for target, wanted in ((b"sm_90a", "sm_90a"), (b"sm_80", "sm_90"), (b"sm_90", "sm_90"), (b"sm_100a", "sm_90"),
                         (b"sm_90a, debug", "sm_90a")):
    assert processor(MODULE.replace(b"sm_80", target), chip) == wanted
  hopper = MODULE.replace(b"sm_80", b"sm_90a").replace(b"  ret;", b"  wgmma.fence.sync.aligned; ret;")
  for tool in filter(None, (nvjitlink.find(), shutil.which("ptxas"))):
    assert Cubin(assembled(hopper, chip, tool)).kernel("k").text_size > 64


def test_ptx_of_a_source(compiler: str) -> None:
  ptx, names = nvrtc.compiled(SOURCE, "sm_90", "a.cu", ["scale<float>", "scale<unsigned char>", "plain"], ["-DN=3"])
  assert b".target sm_90\n" in ptx and len(set(names)) == 3 and names[2] == "plain"
  x = np.arange(32, dtype=np.float32)
  assert (tinyhw.launch(ptx, names[0], 1, 32, [x, 1.5])[0] == x * np.float32(1.5)).all()
  b = np.arange(32, dtype=np.uint8)
  assert (tinyhw.launch(ptx, names[1], 1, 32, [b, np.uint8(9)])[0] == b * np.uint8(9)).all()
  assert b".target sm_86" in nvrtc.compiled(SOURCE, "sm_90", options=["-DN=3", "--gpu-architecture=compute_86"])[0]


@pytest.mark.parametrize("change, names, options, kind, words", [
  (b"", ["plain"], [], DecodeError, 'a.cu:2: nvrtc refuses it: identifier "N" is undefined'),
  (b"#error no such luck\n", [], ["-DN=1"], DecodeError, "a.cu:1: nvrtc refuses it: #error directive: no such luck"),
  (b'#include "none.h"\n', [], ["-DN=1"], DecodeError, "a.cu:1: nvrtc refuses it: .*none.h"),
  (b"", ["none"], ["-DN=1"], DecodeError, 'identifier "none" is undefined'),
  (b"", [], ["-DN=1", "--none"], InvalidArgument, "refuses an option: .*--none"),
  (b"", [], ["-DN=1", "-arch=compute_1"], InvalidArgument, "refuses an option: .*arch"),
])
def test_what_the_compiler_refuses(change: bytes, names: list[str], options: list[str], kind: type[Exception],
                                   words: str, compiler: str) -> None:
  with pytest.raises(kind, match=words): nvrtc.compiled(change + SOURCE, "sm_90", "a.cu", names, options)


def test_the_renderer_says_what_nvrtc_says(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("PATH", "/nowhere")
  with pytest.raises(DeviceError, match="kernel k: CUDA:1: nvrtc refuses it: "):
    CUDARenderer().compile("nonsense!", "k")


def test_without_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  monkeypatch.setattr(nvrtc, "library", lambda *_: None)
  with pytest.raises(MissingTool, match="CUDA C.*there is no nvrtc.*pip install nvidia-cuda-nvrtc"):
    nvrtc.compiled(SOURCE, "sm_90")
  monkeypatch.setattr("tinyhw.devices.assemble.library", lambda *_: None)
  monkeypatch.setattr("tinyhw.devices.assemble.program", lambda *_: None)
  monkeypatch.delenv("TINYHW_PTXAS", raising=False)
  with pytest.raises(MissingTool, match="ptxas is not there.*pip install nvidia-nvjitlink"):
    Assembler(NV_ARCHES["sm_90"], True)(MODULE)
  broken = tmp_path / "libnvJitLink.so.13"
  broken.write_bytes(b"\x7fELF")
  monkeypatch.setenv("TINYHW_PTXAS", str(broken))
  with pytest.raises(MissingTool, match="nvJitLink: .*does not load"): Assembler(NV_ARCHES["sm_90"], False)(MODULE)


def test_where_they_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  package = tmp_path / "nvidia" / "cu13"
  (package / "bin").mkdir(parents=True)
  (package / "include" / "cccl").mkdir(parents=True)
  tool = package / "bin" / "ptxas"
  tool.write_text("#!/bin/sh\n")
  tool.chmod(0o755)
  monkeypatch.setattr(installed, "packages", lambda *_: [package])
  monkeypatch.setenv("CUDA_HOME", str(tmp_path / "none"))
  assert installed.program("ptxas", "cuda_nvcc", str(tmp_path)) == str(tool)
  assert installed.program("nothing", "cuda_nvcc", str(tmp_path)) is None
  assert installed.library("no_such_library", "none") is None
  monkeypatch.setattr(nvrtc, "packages", lambda *_: [package])
  assert nvrtc.includes()[:2] == [str(package / "include"), str(package / "include" / "cccl")]
