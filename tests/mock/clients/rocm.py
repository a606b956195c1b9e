"""Where ROCm is for tests: that of the system, or one in a folder that packages were unpacked to, which the variable
TINYHW_ROCM names; its programs run with their own loader."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIBRARIES = "usr/lib/x86_64-linux-gnu"
KNOWS_GFX11 = 8  # libhsa-runtime64.so.1.8 and newer (ROCm 5.5)
CLANG = "clang-19"


@dataclass(frozen=True)
class Rocm:
  """ROCm below a folder."""
  root: Path

  @property
  def libraries(self) -> Path: return self.root / LIBRARIES

  def words(self, program: Path) -> list[str]:
    """How one of its programs begins, or one that was compiled for it."""
    loader = self.libraries / "ld-linux-x86-64.so.2"
    if self.root == Path("/") or not loader.exists(): return [str(program)]
    return [str(loader), "--library-path", f"{self.libraries}:{self.root}/usr/lib/llvm-17/lib", str(program)]

  def need(self, *paths: str) -> None:
    """Skip the test where one of these is missing."""
    for path in paths:
      if not (self.root / path).exists(): pytest.skip(f"there is no {self.root / path}")

  def compiled(self, source: str, library: str, folder: Path, *more: str) -> Path:
    """A program in C, linked with some of its libraries."""
    out = folder / Path(source).stem
    done = subprocess.run(
      ["gcc", "-O1", "-w", f"-I{self.root}/usr/include", str(HERE / source), "-o", str(out),
       *(str(self.libraries / name) for name in (library, *more)), "-Wl,--unresolved-symbols=ignore-in-shared-libs"],
      capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return out


@cache
def found_rocm() -> Rocm | str:
  root = Path(os.environ.get("TINYHW_ROCM", "/"))
  library = root / LIBRARIES / "libhsa-runtime64.so.1"
  if not library.exists(): return f"there is no {library} (TINYHW_ROCM names the folder of another ROCm)"
  version = re.search(r"(?a)\.so\.1\.(\d+)\.", library.resolve().name)
  if version is None or int(version[1]) < KNOWS_GFX11: return f"{library.resolve()} knows no card of gfx11"
  return Rocm(root)


def kernels_of(card: str, tmp_path: Path) -> str:
  """A code object of a card."""
  if shutil.which(CLANG) is None or shutil.which("gcc") is None: pytest.skip(f"there is no {CLANG}, or no gcc")
  out = tmp_path / "kernels.hsaco"
  done = subprocess.run([CLANG, "-x", "c", "-target", "amdgcn-amd-amdhsa", f"-mcpu={card}", "-nogpulib", "-O2",
                         "-fvisibility=default", "-mcode-object-version=5", "-fuse-ld=lld",
                         str(HERE / "kernels.c"), "-o", str(out)], capture_output=True, text=True)
  if done.returncode: pytest.skip(f"{CLANG} makes no code objects: {done.stderr}")
  return str(out)
