"""Makes `triton.tar.xz`: `python -m tests.emulator.ptx.make_triton FOLDER` for each Triton, then `... pack`."""
from __future__ import annotations

import io
import json
import re
import sys
import tarfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = {"M": "i32", "N": "i32", "K": "i32"}
TILE = {"BM": 64, "BN": 64, "BK": 64, "SPECIAL": False}
# name -> kernel, types of its arguments, constants, options
PLANS: dict[str, tuple[str, dict[str, str], dict[str, Any], dict[str, int]]] = {
  "fp8": ("matmul", {"a": "*fp8e4nv", "b": "*fp8e4nv", "c": "*fp32", **SIZES}, TILE, {}),
  "bf16": ("matmul", {"a": "*bf16", "b": "*bf16", "c": "*fp32", **SIZES}, {**TILE, "BN": 32, "BK": 32}, {}),
  "special": ("matmul", {"a": "*fp16", "b": "*fp16", "c": "*fp16", **SIZES}, {**TILE, "BM": 128, "SPECIAL": True}, {}),
  "cluster": ("matmul", {"a": "*fp16", "b": "*fp16", "c": "*fp16", **SIZES}, {**TILE, "BM": 128, "BN": 128},
              {"num_ctas": 2}),
  "attention": ("attention", {"q": "*fp16", "k": "*fp16", "v": "*fp16", "o": "*fp16", "N": "i32", "scale": "fp32"},
                {"BM": 64, "BN": 64, "D": 64}, {}),
  "sums": ("sums", {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 2048}, {"num_ctas": 2})}
_TILE = {**TILE, "BM": 128}
# Those for sm_100: products by tcgen05, also of 64 rows, whose left operand may lie in tensor memory.
BLACKWELL: dict[str, tuple[str, dict[str, str], dict[str, Any], dict[str, int]]] = {
  "fp8": (*PLANS["fp8"][:2], _TILE, {}), "bf16": (*PLANS["bf16"][:2], {**_TILE, "BN": 32, "BK": 32}, {}),
  "rows": ("matmul", {"a": "*fp16", "b": "*fp16", "c": "*fp32", **SIZES}, TILE, {}),
  "tf32": ("matmul", {"a": "*fp32", "b": "*fp32", "c": "*fp32", **SIZES}, {**_TILE, "BK": 32}, {}),
  "special": PLANS["special"], "cluster": PLANS["cluster"],
  "attention": (*PLANS["attention"][:2], {"BM": 128, "BN": 64, "D": 64}, {})}


def _scaled(left: str, right: str) -> tuple[str, dict[str, str], dict[str, Any], dict[str, int]]:
  types = {"e4m3": "*fp8e4nv", "e5m2": "*fp8e5", "e2m1": "*u8"}
  return ("scaled", {"a": types[left], "b": types[right], "p": "*u8", "q": "*u8", "c": "*fp32"},
          {"M": 128, "N": 64, "K": 128, "LEFT": left, "RIGHT": right, "A": 1 + (left == "e2m1"),
           "B": 1 + (right == "e2m1")},
          {"num_stages": 2})


SCALED = {"scaled-fp8": _scaled("e4m3", "e5m2"), "scaled-fp4": _scaled("e2m1", "e2m1"),
          "scaled-mixed": _scaled("e5m2", "e2m1")}


def make(folder: Path) -> None:
  import triton
  from triton.backends.compiler import GPUTarget

  from tests.emulator.ptx import kernels_tma
  folder.mkdir(parents=True, exist_ok=True)
  every = [(90, name, plan) for name, plan in PLANS.items()]
  if triton.__version__ >= "3.9":
    every += [(100, name, plan) for name, plan in BLACKWELL.items()]
    every += [(target, name, plan) for target in (100, 120) for name, plan in SCALED.items()]
  for target, name, (kernel, types, constants, options) in every:
    fn = getattr(kernels_tma, kernel)
    signature = {p: "constexpr" if p in constants else types[p] for p in fn.arg_names}
    attributes = {(k,): [["tt.divisibility", 16]] for k, p in enumerate(fn.arg_names) if signature[p][0] in "*i"}
    source = triton.compiler.ASTSource(fn, signature, {(fn.arg_names.index(n),): v for n, v in constants.items()},
                                       attributes)
    made = triton.compile(source, target=GPUTarget("cuda", target, 32),
                          options={"num_warps": 4, "num_stages": 3, **options})
    m = made.metadata
    if m.num_ctas > 1 and ".reqnctapercluster" not in made.asm["ptx"]: continue  # older ones: the launch says it
    text = re.sub(r'"[^"\n]*/([^"\n/]*\.py)"', r'"\1"', made.asm["ptx"])
    text = re.sub(r"\n\s*\.section\s+\.debug.*?\n\s*\}", "", text, flags=re.S)
    row = {"name": name, "compiler": f"Triton {triton.__version__}", "kernel": m.name, "threads": 32 * m.num_warps,
           "shared": m.shared, "scratch": m.global_scratch_size, "ctas": m.num_ctas, "constants": constants}
    file = f"{triton.__version__}-{'' if target == 90 else f'sm_{target}-'}{name}"
    (folder / f"{file}.ptx").write_text(text)
    (folder / f"{file}.json").write_text(json.dumps(row))


def pack(folder: Path) -> None:
  with tarfile.open(HERE / "triton.tar.xz", "w:xz", preset=9) as tar:
    for path in sorted(folder.glob("*")):
      data = path.read_bytes()
      info = tarfile.TarInfo(path.name)
      info.size = len(data)
      tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
  if sys.argv[2:] == ["pack"]: pack(Path(sys.argv[1]))
  else: make(Path(sys.argv[1]))
