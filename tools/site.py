"""What the documentation site needs beside MkDocs: parts of README, ARCHITECTURE and CONTRIBUTING where a page asks,
and the files that pages link to."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_PART = re.compile(r"<!-- (README|ARCHITECTURE|CONTRIBUTING): (.*?) -->")
_OUTSIDE = re.compile(r"\]\(\.\./([\w./]+)(#[\w-]+)?\)")


def section(document: str, title: str) -> str:
  """The text under a heading of a document of the repository, without the heading."""
  found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", (ROOT / f"{document}.md").read_text(), re.M | re.S)
  if found is None: raise LookupError(f"{document}.md has no section {title!r}")
  return found[1].replace("](docs/", "](").strip()


def on_page_markdown(markdown: str, **_: Any) -> str:
  """Put the parts in, and let links to the repository's other files lead to their copies in the site."""
  return _OUTSIDE.sub(r"](files/\1\2)", _PART.sub(lambda m: section(m[1], m[2]), markdown))


def on_files(files: Any, config: Any) -> Any:
  """Copy what pages link to."""
  from mkdocs.structure.files import File
  wanted = {m[1] for page in Path(config["docs_dir"]).glob("*.md") for m in _OUTSIDE.finditer(page.read_text())}
  for name in sorted(wanted):
    content = (ROOT / name).read_bytes()
    if name.endswith(".md"): content = re.sub(rb"\]\((?!http|#)[^)]*\)", b"]", content)  # links of the repository
    files.append(File.generated(config, f"files/{name}", content=content))
  return files
