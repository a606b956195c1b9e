"""Compiled kernels on disk: a process that starts finds what another one has compiled.

A program is found by what it was made from: the kernel's graph (`UOp.key`), the renderer's `key`, the options asked
for, and the sources of the compiler. `CACHEDB=0` keeps none; `CACHEDB=FOLDER` says where; unset, they lie beside the
emulator's (`TINYHW_CACHE`). What cannot be read again, or not as it was, is compiled anew.
"""
from __future__ import annotations

import hashlib
import os
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from tinyhw.compile import program
from tinyhw.compile.program import ProgramSpec
from tinyhw.compile.render.base import Renderer
from tinyhw.core.store import Store, sources_digest, store_in
from tinyhw.emulator.jit.store import VARIABLE as TINYHW_CACHE
from tinyhw.emulator.jit.store import user_cache
from tinyhw.ir import uop
from tinyhw.ir.program import dump
from tinyhw.ir.program import load as parse
from tinyhw.ir.size import Size, from_node
from tinyhw.ir.uop import UOp

VARIABLE: Final = "CACHEDB"
_SOURCES: Final = ("compile/**/*.py", "ir/*.py", "core/host.py", "arch/*.py", "drive/pool.py")
_CHOICES: Final = ("NOOPT", "BEAM", "TC")  # variables that decide what is compiled
_LEFT_OUT: Final = ("uops", "binary")  # of a ProgramSpec; nothing that runs needs the first one, the other is the code


def store() -> Store:
  """Where kernels are kept."""
  return store_in(os.environ.get(VARIABLE) or os.environ.get(TINYHW_CACHE), "kernels", user_cache)


def key(ast: UOp, renderer: Renderer) -> str:
  """The name of the program of a kernel graph for a target."""
  from llvmlite import __version__ as llvmlite_version
  choices = [os.environ.get(name, "") for name in _CHOICES]
  what = repr([renderer.key, type(renderer).__qualname__, llvmlite_version, *choices]).encode()
  return hashlib.sha256(sources_digest(_SOURCES) + ast.key + what).hexdigest()


def load(name: str) -> ProgramSpec | None:
  """The program of this name, without its uops."""
  entry = store().load(name)
  if entry is None: return None
  header, binary = entry
  try: return ProgramSpec(**{k: _read(v) for k, v in header.items()}, uops=(), binary=binary)
  except (TypeError, ValueError, KeyError, AttributeError): return None  # another version's


def save(name: str, spec: ProgramSpec) -> None:
  """Keep a program."""
  try: header = {f.name: _written(getattr(spec, f.name)) for f in fields(spec) if f.name not in _LEFT_OUT}
  except TypeError: return  # it holds what has no form here
  store().save(name, header, spec.binary)


def _written(value: Any) -> Any:
  """A value as JSON has it, which `_read` makes the value again."""
  if value is None or isinstance(value, (bool, int, float, str)) and not isinstance(value, Enum): return value
  if isinstance(value, Size): return {"Size": dump(tuple(value.node.toposort()))}
  kind = type(value).__name__
  if _kind(kind) is type(value):
    if isinstance(value, Enum): return {kind: value.value}
    if is_dataclass(value): return {kind: [_written(getattr(value, f.name)) for f in fields(value)]}
    if isinstance(value, tuple): return {kind: [_written(v) for v in value]}
  if type(value) is tuple: return [_written(v) for v in value]
  raise TypeError(f"{kind} is not kept")


def _read(value: Any) -> Any:
  if isinstance(value, list): return tuple(_read(v) for v in value)
  if not isinstance(value, dict): return value
  (name, inside), = value.items()
  if name == "Size": return from_node(parse(inside)[-1])
  kind = _kind(name)
  return kind(inside) if issubclass(kind, Enum) else kind(*map(_read, inside))


def _kind(name: str) -> Any:
  """The classes that programs are made of, by name: data and nothing else."""
  found = getattr(program, name, None) or getattr(uop, name, None)
  data = isinstance(found, type) and (is_dataclass(found) or issubclass(found, (tuple, Enum)))
  return found if data else type(None)
