"""The documentation site builds without a warning, and has what its pages promise."""
from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.strength import THOROUGH
from tinyhw.tools.site import section

ROOT = Path(__file__).parents[2]


def test_the_site_builds(tmp_path: Path) -> None:
  """All pages with their links. The reference of the API, which takes most of the time, is made in the thorough run."""
  command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
  done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
                        env={**os.environ, "SITE_API": str(THOROUGH).lower()})
  assert done.returncode == 0, done.stdout + done.stderr
  for page in (ROOT / "docs").glob("*.md"): assert (tmp_path / f"{page.stem}.html").exists(), page.name
  reference = (tmp_path / "api.html").read_text()
  for name in re.findall(r"^::: (.*)$", (ROOT / "docs/api.md").read_text(), re.M):
    assert pkgutil.resolve_name(name).__doc__, name
    assert not THOROUGH or f'id="{name}"' in reference, name
  assert "MOCKGPU_WATCHDOG" in (tmp_path / "environment.html").read_text()
  assert (tmp_path / "files/examples/blend.c").exists()


def test_a_part_that_is_gone_is_named() -> None:
  with pytest.raises(LookupError, match="README.md has no section 'Gone'"): section("README", "Gone")
