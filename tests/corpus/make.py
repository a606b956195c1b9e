"""Makes the corpus's objects: `python -m tests.corpus.make triton|clang|llvm|pack FOLDER`, in this order, any of them
several times with other versions of the compilers; see README.md. Needs what it is to compile with, nothing else.
"""
from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
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
  Plan("matmul_float", {**BLOCKS, "BK": 16, "PRECISION": "ieee"}, (1, 1), "matmul"),
  Plan("matmul_tf32", {**BLOCKS, "BK": 16, "PRECISION": "tf32"}, (1, 1), "matmul"),
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


def add_row(folder: Path, data: bytes, name: str, label: str, **row: Any) -> None:
  """Keep an object and say what a kernel of it is."""
  folder.mkdir(parents=True, exist_ok=True)
  (folder / name).write_bytes(data)
  (folder / f"{label}.json").write_text(json.dumps({"file": name, "sha256": hashlib.sha256(data).hexdigest(), **row}))


def make_triton(folder: Path) -> None:
  import numpy as np
  import triton
  from triton.backends.compiler import GPUTarget

  from tests.corpus import kernels_triton
  from tests.corpus.cases import CASES, Formats
  version = triton.__version__
  for target, wave in TARGETS.items():
    for plan in PLANS:
      name = f"triton{version}-{target}-{plan.case}"
      arguments = CASES[plan.case](np.random.default_rng(0), Formats()).arguments
      fn = getattr(kernels_triton, plan.kernel or plan.case)
      constants = {**({"PRECISION": None} if "PRECISION" in fn.arg_names else {}), **plan.constants}
      formats = SMALL_FLOATS[target]
      signature, attributes = {}, {}
      for k, parameter in enumerate(fn.arg_names):
        if parameter in constants:
          signature[parameter] = "constexpr"
          continue
        value = arguments[parameter]
        given = plan.types.get(parameter, "")
        kind = FP8.get((formats, given)) or given or KINDS[value.dtype.name]
        signature[parameter] = "*" * isinstance(value, np.ndarray) + kind
        if isinstance(value, np.ndarray):
          attributes[k,] = [["tt.divisibility", 16]] + ([["tt.pointer_range", 32]] if version >= "3.5" else [])
      at = {(fn.arg_names.index(name),): value for name, value in constants.items()}
      source = triton.compiler.ASTSource(fn, signature, at, attributes)
      options = {"num_warps": plan.warps, "num_stages": plan.stages, **plan.options}
      try: made = triton.compile(source, target=GPUTarget("hip", target, wave), options=options)
      except Exception as error:
        print(f"{name}: not compiled: {str(error).strip().splitlines()[-1][:150]}")
        continue
      add_row(folder, made.asm["hsaco"], name, name, compiler=f"Triton {version}", language="Triton", target=target,
              case=plan.case, kernel=made.metadata.name, grid=plan.grid, block=(plan.warps * wave,),
              shared=made.metadata.shared, formats=formats,
              arguments=[n for n, kind in signature.items() if kind != "constexpr"])


# language -> (file, words for clang); and what each version of clang can compile for
LANGUAGES = {
  "C": ("kernels.c", ["-x", "c", "-std=c11"]),
  "C++": ("kernels.cpp", ["-x", "c++", "-std=c++17", "-fno-exceptions", "-fno-rtti"]),
  "OpenCL C": ("kernels.cl", ["-x", "cl", "-cl-std=CL2.0"]),
  "HIP": ("kernels.hip", ["-x", "hip", "--cuda-device-only", "-nogpuinc", "--no-gpu-bundle-output"]),
}
SINCE = {"gfx1100": 15, "gfx942": 17, "gfx1201": 18, "gfx11-generic": 19, "gfx12-generic": 19}
CLANG_GRIDS = {
  "add": 5, "softmax": 6, "layer_norm": 5, "layer_norm_backward": 6, "dropout": 8, "matmul_half": 35,
  "matmul_float": 16, "matmul_double": 16, "matmul_int8": 64, "attention": 2, "scan": 4, "sort": 3, "histogram": 3,
  "atomics": 5, "lookback": 8, "reductions": 8, "shapes": 8, "integers": 4, "collatz": 2, "cross_entropy": 5,
  "calls": 4,
}
DYNAMIC = {("OpenCL C", "softmax"): 64 * 4, ("HIP", "softmax"): 100 * 4}  # bytes of LDS that the launch says


def parameters(language: str) -> dict[str, list[str]]:
  """Names of each kernel's parameters."""
  text = (HERE / LANGUAGES[language][0]).read_text() + (HERE / "kernels.h").read_text()
  found: dict[str, list[str]] = {}
  for name, inside in re.findall(r"(?:KERNEL|__kernel) void (\w+)\(([^)]*)\)", text):
    found.setdefault(name, [re.findall(r"\w+", p)[-1] for p in inside.split(",")])
  matmul = found.pop("name")
  return found | {n: matmul for n in re.findall(r"^MATMUL\((\w+)", text, re.M)}


def make_clang(folder: Path) -> None:
  for version in (15, 16, 19, 22):
    clang = f"clang-{version}"
    full = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    number = re.search(r"version ([0-9.]+)", full)
    assert number
    for target, since in SINCE.items():
      if version < since or "generic" in target and version < 22: continue
      for language, (source, words) in LANGUAGES.items():
        for extra in ([], ["-O0"], ["-mwavefrontsize64"], ["-mcumode", "-Os"]):
          if extra and language != {"-O0": "C", "-mcumode": "OpenCL C", "-mwavefrontsize64": "C++"}[extra[0]]: continue
          if extra and version < 19 or "-m" in "".join(extra) and target == "gfx942": continue
          if "generic" in target and (extra or language != "C"): continue
          name = f"clang{version}-{target}-{source.replace('.', '-')}{''.join(extra)}"
          where = [f"--offload-arch={target}"] if language == "HIP" else ["-target", "amdgcn-amd-amdhsa",
                                                                         f"-mcpu={target}"]
          linker = [f"--ld-path=/usr/bin/ld.lld-{max(version, 16)}"]
          if version == 15: linker = [] if language == "HIP" else ["-c"]  # Debian has no lld of that version
          made = folder / "made"
          folder.mkdir(parents=True, exist_ok=True)
          level = extra if "-O0" in extra or "-Os" in extra else ["-O2", *extra]
          done = subprocess.run([clang, *words, *where, *level, "-fno-math-errno", "-ffreestanding",
                                 "-nogpulib", *linker, str(HERE / source), "-o", str(made)],
                                capture_output=True, text=True)
          if done.returncode:
            print(f"{name}: not compiled: {done.stderr.strip()[:300]}")
            continue
          data = made.read_bytes()
          made.unlink()
          for case, names in parameters(language).items():
            if case == "attention" and "-O0" in extra: continue  # a million instructions a wave
            add_row(folder, data, name, f"{name}-{case}", compiler=f"clang {number[1]}",
                    language=" ".join([language, *extra]), target=target, case=case, kernel=case,
                    grid=(CLANG_GRIDS[case],), block=(64,), shared=DYNAMIC.get((language, case), 0), arguments=names)


def make_llvm(folder: Path) -> None:
  import llvmlite.binding as llvm
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  version = ".".join(str(n) for n in llvm.llvm_version_info)
  for target in TARGETS:
    for opt in (0, 2):
      machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=target, opt=opt, reloc="pic")
      module = llvm.parse_assembly(f'target triple = "amdgcn-amd-amdhsa"\ntarget datalayout = "{machine.target_data}"\n'
                                   + (HERE / "kernels.ll").read_text())
      module.verify()
      data = bytes(machine.emit_object(module))
      name = f"llvmlite-{target}-O{opt}"
      for case, names in {"add": ["x", "y", "out", "n"], "collatz": ["x", "steps", "n"], "sort": ["x", "up", "down"],
                          "integers": ["x", "y", "quotient", "remainder", "high", "wide", "n"]}.items():
        add_row(folder, data, name, f"{name}-{case}", compiler=f"llvmlite, LLVM {version}", language=f"LLVM IR -O{opt}",
                target=target, case=case, kernel=case, grid=(CLANG_GRIDS[case],), block=(64,), arguments=names)


def pack(folder: Path) -> None:
  """All objects as one archive, and what they are as one manifest: kernels that many objects have are told once."""
  objects: dict[str, dict[str, Any]] = {}
  for path in sorted(folder.glob("*.json")):
    row = json.loads(path.read_text())
    kernel = {key: row.pop(key) for key in ("case", "kernel", "grid", "block", "shared", "arguments") if key in row}
    objects.setdefault(row["file"], {**row, "kernels": []})["kernels"].append(kernel)
  sets: dict[str, str] = {}
  for row in objects.values():
    text = ",\n  ".join(json.dumps(k) for k in row.pop("kernels"))
    row["kernels"] = sets.setdefault(text, f"{row['language']} {len(sets)}")
  archive = io.BytesIO()
  with tarfile.open(fileobj=archive, mode="w:xz", preset=9) as tar:
    for name in sorted(objects, key=lambda n: (n.split("-", 1)[1], n)):
      info = tarfile.TarInfo(name)
      info.size, info.mtime = (folder / name).stat().st_size, EPOCH
      with open(folder / name, "rb") as file: tar.addfile(info, file)
  (HERE / "objects.tar.xz").write_bytes(archive.getvalue())
  lines = ",\n".join(json.dumps(row) for row in objects.values())
  kernels = ",\n".join(f"{json.dumps(name)}: [\n  {text}]" for text, name in sets.items())
  (HERE / "manifest.json").write_text(f'{{"objects": [\n{lines}],\n"kernels": {{\n{kernels}}}}}\n')
  print(f"{len(objects)} objects, {len(archive.getvalue()):,} bytes")


if __name__ == "__main__":
  {"triton": make_triton, "clang": make_clang, "llvm": make_llvm, "pack": pack}[sys.argv[1]](Path(sys.argv[2]))
