"""Which format a file has, by its first bytes."""
from __future__ import annotations

from typing import Any

from tinyhw.nn.formats import gguf, pytorch, safetensors
from tinyhw.nn.formats.source import Data, File


def read(source: Data, device: str | None = None) -> Any:
  """The tensors of a safetensors or GGUF file by name, or what a PyTorch checkpoint holds."""
  file = File.of(source)
  start = bytes(file.data[:4])
  if start == b"GGUF": return gguf.read(source, device)[1]
  if bytes(file.data[8:9]) == b"{": return safetensors.read(source, device)
  if start == b"PK\x03\x04" or start[:1] == b"\x80": return pytorch.read(source, device)
  raise file.damaged("neither safetensors nor GGUF nor a PyTorch checkpoint")
