"""tinyhw: a reference GPU simulator and driver toolkit, with a small tensor-to-kernel compiler to feed it.

The public handles load on first use, so that `import tinyhw` costs next to nothing.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from tinyhw import nn as nn
  from tinyhw.debugger import captures as captures
  from tinyhw.debugger import debug as debug
  from tinyhw.debugger import report as report
  from tinyhw.debugger import reports as reports
  from tinyhw.device import Device as Device
  from tinyhw.engine.jit import TinyJit as TinyJit
  from tinyhw.ir.dtype import dtypes as dtypes
  from tinyhw.launcher import launch as launch
  from tinyhw.tensor import Tensor as Tensor
  from tinyhw.variable import Variable as Variable

__version__ = "0.1.0"
_HANDLES = {"Tensor": "tinyhw.tensor", "dtypes": "tinyhw.ir.dtype", "Device": "tinyhw.device",
            "Variable": "tinyhw.variable", "TinyJit": "tinyhw.engine.jit", "launch": "tinyhw.launcher",
            "debug": "tinyhw.debugger", "report": "tinyhw.debugger",
            "reports": "tinyhw.debugger", "captures": "tinyhw.debugger"}
__all__ = [*_HANDLES, "nn"]


def __getattr__(name: str) -> Any:
  if name == "nn": value: Any = importlib.import_module("tinyhw.nn")
  elif name in _HANDLES: value = getattr(importlib.import_module(_HANDLES[name]), name)
  else: raise AttributeError(f"module 'tinyhw' has no attribute {name!r}")
  globals()[name] = value
  return value


def __dir__() -> list[str]:
  return sorted({*globals(), *__all__})
