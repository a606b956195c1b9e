"""Folders for files of a moment, which the process that made them removes, and no child that it forks meanwhile.

(tempfile's own are removed by each forked child that ends, for their finalizers are inherited.)
"""
from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def folder(prefix: str) -> Iterator[str]:
  """A new folder, there for the block. Raises OSError where there is no place for it."""
  made, owner = tempfile.mkdtemp(prefix=prefix), os.getpid()
  try: yield made
  finally:
    if os.getpid() == owner: shutil.rmtree(made, ignore_errors=True)
