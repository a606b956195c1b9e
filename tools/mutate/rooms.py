"""The rooms whose code can be changed, and which tests answer for each."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tinyhw.tools.mutate.places import File

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Room:
  """Files or folders of the package, and the test folders or files (patterns) that answer for them: the room's own
  first; `without`: files of programs that only measure."""
  sources: tuple[str, ...]
  tests: tuple[str, ...]
  without: tuple[str, ...] = ()


ROOMS: Final = {
  "core": Room(("tinyhw/core",), ("tests/core", "tests/wire", "tests/mock", "tests/drive", "tests/bad")),
  "wire": Room(("tinyhw/wire",), ("tests/wire", "tests/drive", "tests/mock", "tests/kernels")),
  "isa": Room(("tinyhw/isa",), ("tests/isa", "tests/arch")),
  "arch": Room(("tinyhw/arch",), ("tests/arch", "tests/drive", "tests/compile")),
  "ir": Room(("tinyhw/ir",), ("tests/ir", "tests/compile", "tests/tensor")),
  "compile": Room(("tinyhw/compile",), ("tests/compile", "tests/tensor")),
  "engine": Room(("tinyhw/engine", "tinyhw/jit"), ("tests/engine", "tests/jit", "tests/tensor")),
  "function": Room(("tinyhw/function", "tinyhw/tensor"), ("tests/tensor", "tests/engine", "tests/jit")),
  "nn": Room(("tinyhw/nn",), ("tests/nn", "tests/tensor")),
  "drive": Room(("tinyhw/drive",), ("tests/drive", "tests/mock", "tests/kernels", "tests/bad")),
  "mock": Room(("mock",), ("tests/mock", "tests/drive", "tests/kernels", "tests/bad")),
  "ptx": Room(("emulator/ptx", "tinyhw/isa/ptx"),
              ("tests/emulator/ptx", "tests/emulator/jit/ptx", "tests/emulator/check/ptx", "tests/isa/test_ptx*.py",
               "tests/mock/cuda/test_links.py")),
  "jitptx": Room(("emulator/jit/ptx",), ("tests/emulator/jit/ptx", "tests/emulator/ptx", "tests/emulator/check/ptx")),
  "jit": Room(("emulator/jit/amdgcn",), ("tests/emulator/jit/amdgcn", "tests/emulator/engines",
                                         "tests/mock/test_onecall.py", "tests/mock/test_plans.py")),
  "debug": Room(("emulator/debug",), ("tests/emulator/debug", "tests/cli/test_debug*.py")),
  "nvmock": Room(("mock/nv", "mock/cuda"), ("tests/mock/nv", "tests/mock/cuda")),
  "devices": Room(("tinyhw/devices",), ("tests/devices", "tests/engine", "tests/kernels", "tests/bad")),
  "kernels": Room(("tinyhw/kernels",), ("tests/kernels", "tests/bad", "tests/cli")),
  "cli": Room(("tinyhw/cli", "tinyhw/terminal"), ("tests/cli", "tests/kernels"),
              ("tinyhw/cli/bench.py", "tinyhw/cli/cold.py")),
}


@cache
def files(room: str) -> tuple[File, ...]:
  """The source files of a room, in order."""
  out = []
  for source in ROOMS[room].sources:
    path = ROOT / source
    for p in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
      if str(p.relative_to(ROOT)) in ROOMS[room].without: continue
      parts = p.relative_to(ROOT).with_suffix("").parts
      module = ".".join((() if parts[0] == "tinyhw" else ("tinyhw",)) + parts).removesuffix(".__init__")
      out.append(File(p, module))
  return tuple(out)


def test_files(room: str) -> list[str]:
  """The test files that answer for a room, relative to the root, in order."""
  out = []
  for name in ROOMS[room].tests:
    path = ROOT / name
    found = sorted(path.rglob("test_*.py")) if path.is_dir() else sorted(ROOT.glob(name))
    out += [str(p.relative_to(ROOT)) for p in found]
  return out
