"""A file's bytes to a code object."""
from __future__ import annotations

from collections.abc import Mapping

from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.core.errors import DecodeError
from tinyhw.wire.codeobject.identity import WHERE, identify, unbundled
from tinyhw.wire.codeobject.image import laid_out, linked
from tinyhw.wire.codeobject.metadata import kernels_of
from tinyhw.wire.codeobject.model import CodeObject
from tinyhw.wire.elf import Elf


def load(data: bytes, *, arch: str | None = None, features: Mapping[str, bool] | None = None) -> CodeObject:
  """Read a code object, or the one for `arch` in an offload bundle; with `arch`, refuse one for another GPU, or for
  other `features` than it has.

  Raises DecodeError for what is no code object, Unsupported for versions before 4, InvalidArgument for another GPU.
  """
  file = Elf(unbundled(data, arch))
  processor, version, features_of_code, generic = identify(file)
  if file.header.e_type == elf.ET_DYN:
    image, symbols, segments, fixups, places = linked(file)
  elif file.header.e_type == elf.ET_REL:
    image, symbols, segments, fixups, places = laid_out(file)
  else:
    raise DecodeError(f"ELF type {file.header.e_type} is neither relocatable nor shared", where=WHERE)
  target, kernels = kernels_of(file, image, symbols, segments)
  result = CodeObject(
    processor, version, target, kernels, symbols, segments, bytes(image), fixups,
    features_of_code, generic, file.data, places,
  )
  if arch is not None:
    result.check(arch, features)
  return result
