"""Variables of the environment that look like tinyhw's and that nothing reads: they are told, once a process."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from tinyhw.core.nearest import near

PREFIXES: Final = ("TINYHW_", "MOCKGPU_", "EMU_")
# Those that docs/environment.md has, and those by which processes of tinyhw's own speak to each other.
PUBLIC: Final = frozenset({
  "EMU_CHECK", "EMU_SUMS", "MOCKGPU_FAULTS", "MOCKGPU_MEMORY", "MOCKGPU_SCHEDULE", "MOCKGPU_SEED", "MOCKGPU_WATCHDOG",
  "TINYHW_CACHE", "TINYHW_CORES", "TINYHW_CPU", "TINYHW_DEBUGGABLE", "TINYHW_NULL", "TINYHW_PTX", "TINYHW_PTXAS",
  "TINYHW_THREADS", "TINYHW_TIMEOUT_S", "TINYHW_TRITON"})
PRIVATE: Final = frozenset({
  "MOCKGPU_SCHEDULE_OUT", "MOCKGPU_SCHEDULE_TEXT", "TINYHW_CUTLASS", "TINYHW_GEN_PYTHON", "TINYHW_GEN_SOURCE",
  "TINYHW_MUTATE_CODE", "TINYHW_MUTATE_FILES", "TINYHW_MUTATE_TEST", "TINYHW_MUTATE_TRACE", "TINYHW_RECORD_RUN",
  "TINYHW_RUN_CARDS", "TINYHW_TESTING_DEV"})
# How tinygrad is told a device, and what says the same here.
OTHERS: Final = {"AMD": "AMD", "NV": "NV", "CUDA": "CUDA", "CUDACPU": "CUDA", "HIP": "AMD", "CLANG": "C"}


def unread(environment: Mapping[str, str]) -> Iterator[str]:
  """What is to be said of an environment, in lines."""
  for name, value in environment.items():
    if name.startswith(PREFIXES) and name not in PUBLIC and name not in PRIVATE:
      known = {n.partition("_")[2]: n for n in PUBLIC}
      meant = near(name.partition("_")[2], known)
      hint = f"did you mean {known[meant[0]]}?" if meant else "docs/environment.md has all names"
      yield f"nothing reads {name}; {hint}"
    elif name in OTHERS and value == "1" and not environment.get("DEV"):
      yield f"{name}=1 chooses no device here; DEV={OTHERS[name]} does"


def tell() -> None:
  """Say it, where standard error is."""
  if sys.stderr is None: return
  with suppress(OSError, ValueError):  # it may be closed
    for line in unread(os.environ): print(f"tinyhw: {line}", file=sys.stderr)
