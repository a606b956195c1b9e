"""The corpus of compiled kernels: what there is, and how one is run and judged.

As a program it prints the table of compilers, targets and engines:
`python -m tests.corpus.corpus [--engines ref,jit,auto] [--only TEXT]`.
"""
from __future__ import annotations

import argparse
import functools
import json
import lzma
import signal
import sys
import tarfile
import time
import zlib
from collections import Counter
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from tests.corpus.cases import CASES, Formats
from tinyhw.drive.amd.bare import BareRuntime
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.emulator.observe import Observer

HERE = Path(__file__).resolve().parent
FORMATS = {"ocp": Formats(), "fnuz": Formats((4, 3, 8, "fnuz"), (5, 2, 16, "fnuz"))}


@dataclass(frozen=True)
class Entry:
  """A row of the manifest: a kernel of an object and how it is launched.

  `arguments`: names of the case's arguments; one that the case lacks points to LDS. `shared`: bytes of dynamic LDS.
  """
  file: str
  sha256: str
  compiler: str
  language: str
  target: str
  case: str
  kernel: str
  grid: tuple[int, ...]
  block: tuple[int, ...]
  arguments: tuple[str, ...]
  shared: int = 0
  formats: str = "ocp"

  @property
  def id(self) -> str: return f"{self.compiler} {self.language} {self.target} {self.case}".replace(" ", "-")


def entries() -> list[Entry]:
  """All of the manifest."""
  manifest = json.loads((HERE / "manifest.json").read_text())
  rows = [{**row, **kernel} for row in manifest["objects"] for kernel in manifest["kernels"][row["kernels"]]]
  return [Entry(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items() if k != "kernels"})
          for row in rows]


@functools.cache
def objects() -> dict[str, bytes]:
  """The archive's files by name."""
  with tarfile.open(fileobj=BytesIO(lzma.decompress((HERE / "objects.tar.xz").read_bytes()))) as tar:
    return {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]


def run(entry: Entry, engine: str, seed: int = 0, observer: Observer | None = None) -> list[str]:
  """Launch a kernel with its case's arguments; a line for each result that is not as NumPy has it."""
  case = CASES[entry.case](np.random.default_rng((seed, zlib.crc32(entry.case.encode()))), FORMATS[entry.formats])
  runtime = BareRuntime(Dispatch, functools.partial(dispatch, engine=engine, observer=observer))
  try:
    program = runtime.load_kernel(objects()[entry.file], entry.kernel)
    payload, buffers = bytearray(program.kernel.kernarg_size), dict[str, Any]()
    for name, parameter in zip(entry.arguments, program.kernel.arguments):
      value = case.arguments.get(name)
      if value is None: data = program.kernel.group_segment_size.to_bytes(4, "little")  # a pointer to dynamic LDS
      elif isinstance(value, np.ndarray):
        buffers[name] = runtime.take(name, value.nbytes)
        runtime.copyin(buffers[name], np.ascontiguousarray(value).view(np.uint8).reshape(-1).data)
        data = buffers[name].address.to_bytes(8, "little")
      else: data = value.tobytes()
      assert len(data) == parameter.size, f"{name} has {len(data)} bytes, the kernel's parameter {parameter.size}"
      payload[parameter.offset:parameter.offset + parameter.size] = data
    grid, block = ((*n, 1, 1)[:3] for n in (entry.grid, entry.block))
    program.launch(bytes(payload), grid, block, dynamic_lds=entry.shared)
    got = {}
    for name in case.wanted:
      like = case.arguments[name]
      got[name] = np.frombuffer(runtime.space.read(buffers[name].address, like.nbytes), like.dtype).reshape(like.shape)
    return case.wrong(got)
  finally: runtime.close()


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--engines", default="ref,jit,auto")
  parser.add_argument("--only", default="", help="a part of compiler-language-target-case")
  parser.add_argument("--limit", type=int, default=120, help="seconds for a launch")
  asked = parser.parse_args()

  def late(*_: Any) -> None: raise TimeoutError(f"more than {asked.limit} s")

  signal.signal(signal.SIGALRM, late)
  engines = asked.engines.split(",")
  good, total, bad = Counter[tuple[str, str, str]](), Counter[tuple[str, str]](), 0
  for entry in entries():
    if asked.only not in entry.id: continue
    row = f"{entry.compiler}, {entry.language}", entry.target
    total[row] += 1
    for engine in engines:
      start = time.process_time()
      signal.alarm(asked.limit)
      try: wrong = run(entry, engine)
      except Exception as error: wrong = [f"{type(error).__name__}: {error}"]
      finally: signal.alarm(0)
      good[*row, engine] += not wrong
      bad += bool(wrong)
      took = time.process_time() - start
      if wrong: print(f"{entry.id} {engine}: {'; '.join(wrong)[:400]}", flush=True)
      elif took > 2: print(f"{entry.id} {engine}: {took:.1f} s", flush=True)
  width = max(len(name) for name, _ in total) if total else 0
  print(f"{'':{width}}  {'target':14}" + "".join(f"{e:>10}" for e in engines))
  for (name, target), count in sorted(total.items()):
    print(f"{name:{width}}  {target:14}" + "".join(f"{f'{good[name, target, e]}/{count}':>10}" for e in engines))
  return int(bad > 0)


if __name__ == "__main__": sys.exit(main())
