"""What docs/cuda.md says of packages: the page has the table, and where a package is installed its program is run."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.mock.cuda.client import Client
from tests.mock.cuda.packages import CLAIMS, REFUSED, Claim, table
from tinyhw.autogen import cuda
from tinyhw.mock.cuda.library.genuine import INSTEAD, SHARED, why

ROOT = Path(__file__).parents[3]


def test_the_page_has_the_table() -> None:
  assert table() in (ROOT / "docs" / "cuda.md").read_text()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: re.sub(r"\W+", "-", f"{c.package} {c.what}"))
def test_a_package_does_as_the_page_says(claim: Claim, tmp_path: Path) -> None:
  try: found = version(claim.package)
  except PackageNotFoundError: pytest.skip(f"{claim.package} is not installed; {claim.version} was tried")
  (tmp_path / "program.py").write_text(claim.program)
  command = [sys.executable, "-c", "from tinyhw.cli import main; main()", "run", "--mockgpu", "sm_90", "program.py"]
  done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **claim.environment}, capture_output=True, text=True,
                        timeout=600)
  said = f"{claim.package} {found} ({claim.version} was tried)\n{done.stdout}{done.stderr}"
  if claim.runs:
    assert done.returncode == 0 and claim.shown in done.stdout, said
    assert "Traceback" not in done.stderr, said
  else:
    told = [line for line in done.stderr.splitlines() if line.startswith("tinyhw: ")]
    assert done.returncode != 0 and told and claim.shown in told[0], said


def test_who_asks_for_a_proof_is_named(client: Client) -> None:
  """Here ctypes, whose calls come out of libffi."""
  assert client.code("cuGetExportTable", None, None) == cuda.CUDA_ERROR_NOT_SUPPORTED
  line, = (line for line in client.machine.report() if line.startswith("cuGetExportTable"))
  assert line.startswith("cuGetExportTable: /") and "ffi" in line.split(" has ")[0]
  assert SHARED in line and REFUSED in line
  for part, words in INSTEAD.items(): assert words in why(f"/site-packages/{part}/lib.so")
  assert why("").startswith("a library has")
