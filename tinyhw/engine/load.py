"""Compiled programs on their devices."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from tinyhw.compile import ProgramSpec
  from tinyhw.drive.base import Program, Runtime


def loaded(spec: ProgramSpec, runtime: Runtime) -> Program:
  """The program on a device."""
  program = runtime.load(spec.binary, spec.name)
  if spec.dynamic_bytes: program.dynamic_bytes = spec.dynamic_bytes
  return program
