"""Makes the corpus's PTX: `python -m tests.corpus.make_ptx FOLDER`, once for each version of Triton, then
`python -m tests.corpus.make_ptx FOLDER pack`. The same kernels and cases as those of AMD's objects.
"""
from __future__ import annotations

import io
import json
import re
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.corpus.make import EPOCH, FP8, KINDS, PLANS

HERE = Path(__file__).resolve().parent
TARGETS = {"sm_80": 80, "sm_90": 90}


def without_paths(text: str) -> str:
  """The module without folders of the machine that made it: in `.file`, and among the bytes of the debug information,
  one a line, where a path of the same length stands in."""
  text = re.sub(r'"[^"\n]*/(?:site-packages|tests/corpus)/([^"\n]*)"', r'"\1"', text)
  lines, folder = text.split("\n"), str(HERE)
  places = [(i, int(m[1])) for i, line in enumerate(lines) if (m := re.match(r"\s*\.b8 (\d+)\s*(//.*)?$", line))]
  told = "".join(chr(value & 255) for _, value in places)
  for found in re.finditer(re.escape(folder), told):
    for (i, _), c in zip(places[found.start():found.end()], "/corpus".ljust(len(folder), "/")):
      lines[i] = re.sub(r"\.b8 \d+", f".b8 {ord(c)}", lines[i], count=1)
  return "\n".join(lines)


def make(folder: Path) -> None:
  import numpy as np
  import triton
  from triton.backends.compiler import GPUTarget

  from tests.corpus import kernels_triton
  from tests.corpus.cases import CASES, Formats
  version = triton.__version__
  folder.mkdir(parents=True, exist_ok=True)
  for target, number in TARGETS.items():
    for plan in PLANS:
      name = f"triton{version}-{target}-{plan.case}"
      arguments = CASES[plan.case](np.random.default_rng(0), Formats()).arguments
      fn = getattr(kernels_triton, plan.kernel or plan.case)
      constants = {**({"PRECISION": None} if "PRECISION" in fn.arg_names else {}), **plan.constants}
      signature: dict[str, str] = {}
      attributes: dict[Any, Any] = {}
      for k, parameter in enumerate(fn.arg_names):
        if parameter in constants:
          signature[parameter] = "constexpr"
          continue
        value = arguments[parameter]
        given = plan.types.get(parameter, "")
        kind = FP8.get(("ocp", given)) or given or KINDS[value.dtype.name]
        signature[parameter] = "*" * isinstance(value, np.ndarray) + kind
        if isinstance(value, np.ndarray): attributes[k,] = [["tt.divisibility", 16]]
      at = {(fn.arg_names.index(n),): value for n, value in constants.items()}
      source = triton.compiler.ASTSource(fn, signature, at, attributes)
      options = {"num_warps": plan.warps, "num_stages": plan.stages,
                 **{k: v for k, v in plan.options.items() if k in {"enable_fp_fusion", "num_ctas"}}}
      try: made = triton.compile(source, target=GPUTarget("cuda", number, 32), options=options)
      except Exception as error:
        print(f"{name}: not compiled: {str(error).strip().splitlines()[-1][:150]}")
        continue
      row = {"file": f"{name}.ptx", "compiler": f"Triton {version}", "target": target, "case": plan.case,
             "kernel": made.metadata.name, "grid": plan.grid, "block": (plan.warps * 32,),
             "shared": made.metadata.shared, "arguments": [n for n, k in signature.items() if k != "constexpr"]}
      (folder / f"{name}.ptx").write_text(without_paths(made.asm["ptx"]))
      (folder / f"{name}.json").write_text(json.dumps(row))


def pack(folder: Path) -> None:
  rows = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
  with tarfile.open(HERE / "ptx.tar.xz", "w:xz", preset=9) as tar:
    for row in rows:
      data = (folder / row["file"]).read_bytes()
      info = tarfile.TarInfo(row["file"])
      info.size, info.mtime = len(data), EPOCH
      tar.addfile(info, io.BytesIO(data))
  (HERE / "ptx.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
  if sys.argv[2:] == ["pack"]: pack(Path(sys.argv[1]))
  else: make(Path(sys.argv[1]))
