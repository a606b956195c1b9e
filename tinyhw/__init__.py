"""tinyhw: a reference GPU simulator and driver toolkit, with a small tensor-to-kernel compiler to feed it.

The public handles load on first use, so that `import tinyhw` costs next to nothing.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from tinyhw import nn as nn
  from tinyhw.core.errors import Deadlock as Deadlock
  from tinyhw.core.errors import DecodeError as DecodeError
  from tinyhw.core.errors import DeviceError as DeviceError
  from tinyhw.core.errors import DriverError as DriverError
  from tinyhw.core.errors import EncodeError as EncodeError
  from tinyhw.core.errors import Error as Error
  from tinyhw.core.errors import HazardFound as HazardFound
  from tinyhw.core.errors import Interrupted as Interrupted
  from tinyhw.core.errors import InvalidArgument as InvalidArgument
  from tinyhw.core.errors import InvalidIndex as InvalidIndex
  from tinyhw.core.errors import InvalidIndexType as InvalidIndexType
  from tinyhw.core.errors import InvalidMode as InvalidMode
  from tinyhw.core.errors import InvalidNumber as InvalidNumber
  from tinyhw.core.errors import InvalidShape as InvalidShape
  from tinyhw.core.errors import InvalidType as InvalidType
  from tinyhw.core.errors import LayoutError as LayoutError
  from tinyhw.core.errors import LDSWarning as LDSWarning
  from tinyhw.core.errors import MachineFault as MachineFault
  from tinyhw.core.errors import MissingFile as MissingFile
  from tinyhw.core.errors import MissingTool as MissingTool
  from tinyhw.core.errors import OutOfMemory as OutOfMemory
  from tinyhw.core.errors import PageFault as PageFault
  from tinyhw.core.errors import UnknownType as UnknownType
  from tinyhw.core.errors import Unsupported as Unsupported
  from tinyhw.core.errors import ValueLost as ValueLost
  from tinyhw.core.errors import WaitTimeout as WaitTimeout
  from tinyhw.core.errors import WatchdogExpired as WatchdogExpired
  from tinyhw.core.timeout import Stopped as Stopped
  from tinyhw.devices.registry import Device as Device
  from tinyhw.emulator.engines.both import EnginesDiffer as EnginesDiffer
  from tinyhw.emulator.jit.refusal import CompilerFailed as CompilerFailed
  from tinyhw.emulator.jit.refusal import NotCompiled as NotCompiled
  from tinyhw.emulator.jit.refusal import TranslatorFailed as TranslatorFailed
  from tinyhw.ir.dtype import dtypes as dtypes
  from tinyhw.ir.spec import SpecError as SpecError
  from tinyhw.isa.ptx.lexer import PtxSyntaxError as PtxSyntaxError
  from tinyhw.jit.jit import TinyJit as TinyJit
  from tinyhw.kernels.debug import captures as captures
  from tinyhw.kernels.debug import debug as debug
  from tinyhw.kernels.debug import report as report
  from tinyhw.kernels.debug import reports as reports
  from tinyhw.kernels.launch import launch as launch
  from tinyhw.kernels.textures import Surface as Surface
  from tinyhw.kernels.textures import Texture as Texture
  from tinyhw.mock.nv.chip.faults import ChannelFault as ChannelFault
  from tinyhw.queues.diff import StreamsDiffer as StreamsDiffer
  from tinyhw.tensor.tensor import Tensor as Tensor
  from tinyhw.tensor.variable import Variable as Variable

__version__ = "0.1.0"
_HANDLES = {"Tensor": "tinyhw.tensor.tensor", "dtypes": "tinyhw.ir.dtype", "Device": "tinyhw.devices.registry",
            "Variable": "tinyhw.tensor.variable", "TinyJit": "tinyhw.jit.jit", "launch": "tinyhw.kernels.launch",
            "debug": "tinyhw.kernels.debug", "report": "tinyhw.kernels.debug",
            "Texture": "tinyhw.kernels.textures", "Surface": "tinyhw.kernels.textures",
            "reports": "tinyhw.kernels.debug", "captures": "tinyhw.kernels.debug"}
_HANDLES |= dict.fromkeys((
  "Error", "LayoutError", "EncodeError", "DecodeError", "Unsupported", "InvalidArgument", "InvalidShape",
  "InvalidIndex", "InvalidType", "InvalidIndexType", "UnknownType", "InvalidMode", "InvalidNumber", "MissingFile",
  "MissingTool", "DriverError",
  "DeviceError", "ValueLost", "OutOfMemory", "WaitTimeout", "MachineFault", "PageFault", "WatchdogExpired", "Deadlock",
  "Interrupted", "HazardFound", "LDSWarning"), "tinyhw.core.errors")
_HANDLES |= {"SpecError": "tinyhw.ir.spec", "Stopped": "tinyhw.core.timeout",
             "EnginesDiffer": "tinyhw.emulator.engines.both",
             "NotCompiled": "tinyhw.emulator.jit.refusal", "CompilerFailed": "tinyhw.emulator.jit.refusal",
             "PtxSyntaxError": "tinyhw.isa.ptx.lexer", "ChannelFault": "tinyhw.mock.nv.chip.faults",
             "StreamsDiffer": "tinyhw.queues.diff", "TranslatorFailed": "tinyhw.emulator.jit.refusal"}
__all__ = [*_HANDLES, "nn"]


def __getattr__(name: str) -> Any:
  if name == "nn": value: Any = importlib.import_module("tinyhw.nn")
  elif name in _HANDLES: value = getattr(importlib.import_module(_HANDLES[name]), name)
  else: raise AttributeError(f"module 'tinyhw' has no attribute {name!r}")
  globals()[name] = value
  return value


def __dir__() -> list[str]:
  return sorted({*globals(), *__all__})
