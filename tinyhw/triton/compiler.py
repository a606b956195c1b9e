"""Triton wants a compiler from each backend. Triton's own AMD compiler serves tinyhw's targets; this one has none."""
from __future__ import annotations

from typing import Any

from triton.backends.compiler import BaseBackend


class NoCompiler(BaseBackend):
  """Supports no target, so that AMD's compiler is the only one that does."""

  @staticmethod
  def supports_target(target: Any) -> bool: return False

  def hash(self) -> str: raise NotImplementedError
  def parse_options(self, options: Any) -> Any: raise NotImplementedError
  def add_stages(self, stages: Any, options: Any, language: Any = None) -> None: raise NotImplementedError
  def load_dialects(self, context: Any) -> None: raise NotImplementedError
  def get_module_map(self) -> Any: raise NotImplementedError
  def get_codegen_implementation(self, *options: Any) -> Any: raise NotImplementedError
  def pack_metadata(self, metadata: Any) -> Any: raise NotImplementedError
