"""Where compiled code of GPU programs is kept on disk."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tinyhw.core.store import Store, store_in
from tinyhw.core.store import sources_digest as digest_of

VARIABLE: Final = "TINYHW_CACHE"
_SOURCES: Final = ("emulator/*.py", "emulator/jit/*.py", "emulator/jit/amdgcn/*.py", "emulator/amdgcn/**/*.py",
                   "emulator/check/*.py", "emulator/check/amdgcn/*.py", "emulator/values/*.py", "emulator/memory/*.py",
                   "isa/amdgcn/__init__.py", "isa/amdgcn/codes.py", "isa/amdgcn/images.py", "isa/amdgcn/model.py",
                   "isa/amdgcn/tables.py", "autogen/amdgcn*.py", "autogen/sq.py", "arch/*.py", "core/host.py",
                   "core/memory.py")


def user_cache() -> Path:
  """The folder for what this user's processes keep of tinyhw. Earlier versions had unmarked ones in the one above."""
  from platformdirs import user_cache_path
  return user_cache_path("tinyhw", version="2")


def store() -> Store:
  """The store that `TINYHW_CACHE` chooses: a folder, `0` for none; unset, a folder in the user's cache."""
  return store_in(os.environ.get(VARIABLE), "emulator", user_cache)


def sources_digest() -> bytes:
  """Changes with every change of what decides the compiled code on our side."""
  return digest_of(_SOURCES)
