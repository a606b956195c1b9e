"""The examples of README.md and docs/ run, in order, in an empty folder, and print what the pages say.

A block without a language behind a command or program is what it prints: its lines stand in the output in that order,
"..." for any. A transcript of the debugger gives the commands, too.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests import command
from tests.mock.clients.running import REFUSED

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CLANG = shutil.which("clang-19")  # the offsets that the pages show are its
# Examples that name a program of the reader's or a kernel of Triton, install, or run long; other tests run these.
LONG = re.compile(r"make (demo|test|fuzz)|^pytest |pip install|my_test\.py|train\.py|python -m tinyhw\.tools|@M\("
                  r"|kernel\[\(", re.M)
PROMPT = "(tinyhw) "


@dataclass
class Example:
  """A block that can be run: its language, its text, where it stands, and what it prints if the page says so."""
  language: str
  text: str
  where: str
  printed: str = ""


def examples(page: Path) -> list[Example]:
  """The blocks of a page that can be run; one without a language right behind is what is printed."""
  text = page.read_text()
  blocks = re.finditer(r"^```(sh|python)\n(.*?)^```$(?:\s*^```\n(.*?)^```$)?", text, re.M | re.S)
  return [Example(m[1], m[2], f"{page.name}:{text.count(chr(10), 0, m.start()) + 1}", m[3] or "") for m in blocks]


@pytest.fixture
def place(tmp_path: Path) -> Path:
  """A folder with the examples and the commands that the pages use."""
  (tmp_path / "examples").symlink_to(ROOT / "examples")
  commands = tmp_path / "bin"
  commands.mkdir()
  for name in ("tinyhw", "python"): command.stand_in(commands / name)
  if CLANG is not None: (commands / "clang").symlink_to(CLANG)
  return tmp_path


def run(example: Example, place: Path) -> str:
  """What the example prints. Fails with its output when it does not end well."""
  env = {k: v for k, v in os.environ.items() if k not in {"DEV", "MOCKGPU", "EMU", "EMU_CHECK", "DEBUG"}}
  env |= {"PATH": f"{place / 'bin'}:{env['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
  words = ["bash", "-eo", "pipefail", "-c", example.text]
  if example.language == "python":
    words = [str(place / "bin/python"), "-c", example.text]
    env["MOCKGPU"] = "1"
  if "def test_" in example.text:
    (place / "test_page.py").write_text(example.text)
    plugin = () if any(e.name == "tinyhw" for e in entry_points(group="pytest11")) else ("-p", "tinyhw.testing.plugin")
    words = [str(place / "bin/python"), "-m", "pytest", *plugin, "test_page.py"]
    del env["MOCKGPU"]
  lines = [line.removeprefix(PROMPT) for line in example.printed.splitlines() if line.startswith(PROMPT)]
  done = subprocess.run(words, input="\n".join(lines) + "\n", cwd=place, env=env, capture_output=True, text=True,
                        timeout=180, check=False)
  checked = "--check" in example.text  # its status says that there are findings
  if done.returncode and REFUSED in done.stderr: pytest.skip(f"{example.where}: {REFUSED}")
  assert done.returncode == 0 or checked and done.returncode == 1, f"{example.where}\n{done.stdout}{done.stderr}"
  assert "Traceback" not in done.stderr, f"{example.where}\n{done.stderr}"
  return done.stdout


def missing(printed: str, output: str) -> str | None:
  """The first line that the page shows and that does not come in the output where it should."""
  lines = iter(re.sub(r"0x7[0-9a-f]{7,}", "0x7f", line).rstrip() for line in output.splitlines())
  for wanted in printed.splitlines():
    wanted = re.sub(r"0x7[0-9a-f]{7,}", "0x7f", wanted).rstrip()
    if wanted.strip() not in {"", "..."} and wanted not in lines: return wanted
  return None


@pytest.mark.skipif(CLANG is None, reason="clang-19 is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run_and_print_what_the_page_says(page: Path, place: Path) -> None:
  assert examples(page), f"{page.name} has no example to copy"
  for example in examples(page):
    if LONG.search(example.text): continue
    output = run(example, place)
    lost = missing(example.printed, output)
    assert lost is None, f"{example.where}: {lost!r} is not printed there\n{output}"
    for line in example.text.splitlines():  # `echo ... | command     # what it prints`
      if line.startswith("echo") and "  # " in line: assert line.split("  # ")[1].strip() in output, example.where
