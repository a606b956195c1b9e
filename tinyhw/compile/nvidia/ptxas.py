"""ptxas: PTX to a cubin, as a program of its own."""
from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import Final

from tinyhw.core import scratch
from tinyhw.core.errors import DecodeError, MissingTool
from tinyhw.core.written import save

_TIMEOUT_S: Final = 300


@functools.cache
def name(tool: str) -> str:
  """The program and its version."""
  done = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S)
  said = done.stdout.strip().splitlines() if done.returncode == 0 else []
  return f"ptxas {said[-1] if said else '?'}"


def assembled(ptx: bytes, processor: str, tool: str) -> bytes:
  """The cubin of a PTX module. Raises DecodeError for what ptxas refuses, MissingTool where it does not run."""
  where = f"PTX for {processor}"
  with scratch.folder("tinyhw-ptx-") as folder:
    source, out = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
    save(source, ptx)
    try:
      done = subprocess.run([tool, f"-arch={processor}", str(source), "-o", str(out)], capture_output=True, text=True,
                            timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as e:
      raise MissingTool(f"{tool} does not run: {e}", where=where) from None
    if done.returncode:
      lines = [line.replace(str(source), "PTX") for line in (done.stderr + done.stdout).splitlines() if line.strip()]
      raise DecodeError(f"ptxas refuses it: {lines[0] if lines else f'exit status {done.returncode}'}", where=where)
    return out.read_bytes()
