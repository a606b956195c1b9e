"""Makes the corpus's objects: `python tests/corpus/make.py triton|clang|llvm|pack FOLDER`, in this order, any of them
several times with other versions of the compilers; see README.md. Needs what it is to compile with, nothing else.
"""
from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
TARGETS = {"gfx1100": 32, "gfx1201": 32, "gfx942": 64}  # and their wave sizes
SMALL_FLOATS = {"gfx1100": "ocp", "gfx1201": "ocp", "gfx942": "fnuz"}
EPOCH = 1_700_000_000  # of the files in the archive


@dataclass
class Plan:
  """How a Triton kernel is compiled and launched for a case. `types` says what NumPy has no type for."""
  case: str
  constants: dict[str, Any]
  grid: tuple[int, ...]
  kernel: str = ""
  warps: int = 4
  stages: int = 2
  types: dict[str, str] = field(default_factory=dict)
  options: dict[str, Any] = field(default_factory=dict)


BLOCKS = {"BM": 32, "BN": 32, "BK": 32}
PLANS = [
  Plan("add", {"BLOCK": 128}, (3,)),
  Plan("softmax", {"BLOCK": 128}, (6,)),
  Plan("layer_norm", {"BLOCK": 128}, (5,)),
  Plan("layer_norm_backward", {"BLOCK": 64}, (6,), warps=2),
  Plan("dropout", {"BLOCK": 256}, (2,)),
  Plan("matmul_half", BLOCKS, (2, 2), "matmul"),
  Plan("matmul_half_out", {"BM": 64, "BN": 32, "BK": 32}, (1, 2), "matmul", stages=3),
  Plan("matmul_brain", BLOCKS, (2, 2), "matmul", types={"a": "bf16", "b": "bf16"}),
  Plan("matmul_float", {**BLOCKS, "BK": 16}, (1, 1), "matmul"),
  Plan("matmul_double", {**BLOCKS, "BK": 16}, (1, 1), "matmul"),
  Plan("matmul_int8", BLOCKS, (2, 2), "matmul"),
  Plan("matmul_e4", BLOCKS, (2, 2), "matmul", types={"a": "e4", "b": "e4"}),
  Plan("matmul_e5", BLOCKS, (2, 2), "matmul", types={"a": "e5", "b": "e5"}),
  Plan("persistent_matmul", {"PROGRAMS": 2, **BLOCKS}, (2,)),
  Plan("grouped_matmul", {"PROGRAMS": 3, **BLOCKS}, (3,)),
  Plan("split_matmul", {"SPLIT": 2, **BLOCKS}, (1, 1, 2)),
  Plan("attention", {"CAUSAL": False, "D": 32, "BM": 32, "BN": 32}, (2, 2)),
  Plan("attention_causal", {"CAUSAL": True, "D": 32, "BM": 32, "BN": 32}, (2, 2), "attention"),
  Plan("attention_backward", {"D": 32, "BM": 32, "BN": 32}, (2, 2)),
  Plan("scan", {"BLOCK": 128}, (4,)),
  Plan("sort", {"BLOCK": 64}, (3,), warps=1),
  Plan("histogram", {"BINS": 32, "BLOCK": 256}, (3,)),
  Plan("atomics", {"BLOCK": 128}, (3,)),
  Plan("lookback", {"BLOCK": 128}, (4,)),
  Plan("reductions", {"BLOCK": 64, "ROWS": 4}, (2,)),
  Plan("shapes", {"R": 16, "C": 32}, (1,)),
  Plan("mathematics", {"BLOCK": 128}, (1,)),
  Plan("integers", {"BLOCK": 128}, (2,)),
  Plan("conversions", {"BLOCK": 128}, (2,), types={"brain": "bf16", "e4": "e4", "e5": "e5"}),
  Plan("collatz", {"BLOCK": 128}, (1,)),
  Plan("cross_entropy", {"BLOCK": 128}, (5,)),
  Plan("calls", {"BLOCK": 128}, (2,)),
  Plan("descriptors", {"BM": 16, "BN": 32}, (2, 2)),
  Plan("block_pointers", {"BM": 16, "BN": 32}, (2,)),
  Plan("batched_matmul", {"B": 4, "M": 16, "N": 16, "K": 16}, (1,)),
]
KINDS = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "int8": "i8", "int32": "i32", "int64": "i64",
         "uint32": "u32", "uint8": "u8", "uint16": "u16"}
FP8 = {("ocp", "e4"): "fp8e4nv", ("ocp", "e5"): "fp8e5", ("fnuz", "e4"): "fp8e4b8", ("fnuz", "e5"): "fp8e5b16"}


def add_row(folder: Path, data: bytes, name: str, **row: Any) -> None:
  """Keep an object and say what it is."""
  folder.mkdir(parents=True, exist_ok=True)
  (folder / name).write_bytes(data)
  (folder / f"{name}.json").write_text(json.dumps({"file": name, "sha256": hashlib.sha256(data).hexdigest(), **row}))


def make_triton(folder: Path) -> None:
  import kernels_triton
  import numpy as np
  import triton
  from cases import CASES, Formats
  from triton.backends.compiler import GPUTarget
  version = triton.__version__
  for target, wave in TARGETS.items():
    for plan in PLANS:
      name = f"triton{version}-{target}-{plan.case}"
      arguments = CASES[plan.case](np.random.default_rng(0), Formats()).arguments
      fn = getattr(kernels_triton, plan.kernel or plan.case)
      formats = SMALL_FLOATS[target]
      signature, attributes = {}, {}
      for k, parameter in enumerate(fn.arg_names):
        if parameter in plan.constants:
          signature[parameter] = "constexpr"
          continue
        value = arguments[parameter]
        given = plan.types.get(parameter, "")
        kind = FP8.get((formats, given)) or given or KINDS[value.dtype.name]
        signature[parameter] = "*" * isinstance(value, np.ndarray) + kind
        if isinstance(value, np.ndarray):
          attributes[k,] = [["tt.divisibility", 16]] + ([["tt.pointer_range", 32]] if version >= "3.5" else [])
      source = triton.compiler.ASTSource(fn, signature, {(fn.arg_names.index(n),): v for n, v in plan.constants.items()},
                                         attributes)
      options = {"num_warps": plan.warps, "num_stages": plan.stages, **plan.options}
      try: made = triton.compile(source, target=GPUTarget("hip", target, wave), options=options)
      except Exception as error:
        print(f"{name}: not compiled: {str(error).strip().splitlines()[-1][:150]}")
        continue
      add_row(folder, made.asm["hsaco"], name, compiler=f"Triton {version}", language="Triton", target=target,
              case=plan.case, kernel=made.metadata.name, grid=plan.grid, block=(plan.warps * wave,),
              shared=made.metadata.shared, formats=formats,
              arguments=[n for n, kind in signature.items() if kind != "constexpr"])


def pack(folder: Path) -> None:
  """All objects as one archive, and what they are as one manifest."""
  rows = [json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))]
  archive = io.BytesIO()
  with tarfile.open(fileobj=archive, mode="w:xz", preset=9) as tar:
    for name in sorted({row["file"] for row in rows}, key=lambda n: (n.split("-", 1)[1], n)):
      info = tarfile.TarInfo(name)
      info.size, info.mtime = (folder / name).stat().st_size, EPOCH
      with open(folder / name, "rb") as file: tar.addfile(info, file)
  (HERE / "objects.tar.xz").write_bytes(archive.getvalue())
  lines = ",\n".join(json.dumps(row) for row in rows)
  (HERE / "manifest.json").write_text(f"[\n{lines}\n]\n")
  print(f"{len(rows)} kernels, {len(archive.getvalue()):,} bytes")


if __name__ == "__main__":
  {"triton": make_triton, "pack": pack}[sys.argv[1]](Path(sys.argv[2]))
