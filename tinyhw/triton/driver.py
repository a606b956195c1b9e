"""The driver that Triton's runtime calls: which GPU there is, how a code object is loaded, how a kernel is launched.

The names of methods and the order of their arguments are Triton's (triton.backends.driver, triton.runtime), 3.3 and
later. A launch is done when it returns; so streams and events order nothing, and only tell the host's time.
"""
from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import triton.backends.driver as interface
from triton.backends.compiler import GPUTarget

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.devices.registry import Device, OpenDevice
from tinyhw.triton.arguments import flattened
from tinyhw.triton.launch import launch
from tinyhw.triton.target import triton_target

CACHE_BYTES = 1 << 20  # what is cleared between runs of a benchmark; a GPU's cache would be larger, and is not modelled
if os.environ.get("TINYHW_TRITON", "0") not in ("", "0"):
  os.environ.setdefault("TRITON_DEFAULT_BACKEND", "tinyhw")  # also where the machine has a GPU of its own


class Module:
  """A code object that Triton has loaded; it goes along when the device is closed and opened again."""

  def __init__(self, driver: TinyhwDriver, binary: bytes, name: str) -> None:
    self.driver, self.binary, self.name = driver, binary, name
    self._program: Any = None

  def program(self) -> Any:
    """The kernel on the device that is open now."""
    runtime: Any = self.driver.device.runtime
    if self._program is None or self._program.runtime is not runtime:
      self._program = runtime.load_kernel(self.binary, self.name)
    return self._program


class Utils:
  """What Triton asks of a GPU's runtime library."""

  def __init__(self, driver: TinyhwDriver) -> None: self._driver = driver

  def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
    """(module, function, vector registers, spilled dwords, threads that a workgroup may have)."""
    module = Module(self._driver, bytes(binary), name)
    program = module.program()
    if program.layout.unserved:
      what = ", ".join(program.layout.unserved)
      raise Unsupported("kernel with", what, where=name,
                        hint="tl.device_print and tl.device_assert need it: take them out, or run with debug off")
    kernel, arch = program.kernel, self._driver.arch
    unit = arch.vgpr_unit[kernel.wavefront_size]
    registers = ((kernel.descriptor.compute_pgm_rsrc1 & 63) + 1) * unit
    return module, module, registers, kernel.private_segment_size // 4, arch.workgroup_limit

  def unload_module(self, module: Any) -> None:
    """Code stays on the device until that closes."""

  def get_device_properties(self, device: int) -> dict[str, Any]:
    """As HIP's; clocks and the bus are not modelled, so nothing that needs them may be computed."""
    arch = self._driver.arch
    return {"arch": arch.name, "warpSize": self._driver.target.warp_size, "max_shared_mem": arch.lds_per_workgroup,
            "max_num_regs": arch.vgprs, "multiprocessor_count": arch.cu_count, "cooperativeLaunch": True,
            "name": f"tinyhw {self._driver.device.name} {arch.name}"}


class Launcher:
  """A compiled kernel that Triton calls with grid, hooks and arguments."""

  def __init__(self, source: Any, metadata: Any) -> None:
    self.name, self.metadata = metadata.name, metadata
    names = list(getattr(source.fn, "arg_names", ())) if hasattr(source, "fn") else []
    keys = list(source.signature)
    self.names = [k if isinstance(k, str) else names[k] if k < len(names) else f"argument {k}" for k in keys]
    self.kinds = list(source.signature.values())
    if getattr(metadata, "num_ctas", 1) not in (0, 1):
      raise Unsupported("clusters of workgroups: num_ctas", str(metadata.num_ctas), where=self.name)
    if any(t for t in getattr(metadata, "tensordesc_meta", None) or ()):
      raise Unsupported("tensor descriptor in hardware (TMA, TDM)", self.name)

  def __call__(self, x: int, y: int, z: int, stream: Any, module: Module, packed_metadata: Any, launch_metadata: Any,
               enter: Callable[[Any], Any] | None, leave: Callable[[Any], Any] | None, *arguments: Any) -> None:
    if len(arguments) != len(self.kinds):
      raise InvalidArgument(f"{len(arguments)} arguments for {len(self.kinds)} parameters", where=self.name)
    if enter is not None: enter(launch_metadata)
    if x * y * z:
      rows = [row for n, k, a in zip(self.names, self.kinds, arguments) for row in flattened(n, k, a)]
      m, driver = self.metadata, module.driver
      block = (m.num_warps * driver.target.warp_size, 1, 1)
      with driver.lock:
        launch(driver.device.runtime, module.program(), (x, y, z), block, int(m.shared), rows,
               scratch=int(getattr(m, "global_scratch_size", 0) or 0))
    if leave is not None: leave(launch_metadata)


class Event:
  """A moment of the host's time, for `triton.testing.do_bench`."""

  def __init__(self, enable_timing: bool = True, **more: Any) -> None: self.at = 0.0
  def record(self, stream: Any = None) -> None: self.at = time.perf_counter()
  def synchronize(self) -> None: return None
  def query(self) -> bool: return True
  def elapsed_time(self, end: Event) -> float:
    """Milliseconds from this event to another."""
    return (end.at - self.at) * 1e3


class Interface:
  """What programs ask of `torch.cuda` through Triton: one device, one stream."""
  Event = Event

  def __init__(self, driver: TinyhwDriver) -> None: self._driver = driver
  def is_available(self) -> bool: return True
  def device_count(self) -> int: return 1
  def current_device(self) -> int: return 0
  def set_device(self, device: Any) -> None: return None
  def synchronize(self, device: Any = None) -> None: self._driver.device.synchronize()
  def current_stream(self, device: Any = None) -> Any: return None
  def default_stream(self, device: Any = None) -> Any: return None
  def get_device_capability(self, device: Any = None) -> tuple[int, int]: return self._driver.get_device_capability()

  @contextmanager
  def stream(self, stream: Any) -> Iterator[None]: yield

  @contextmanager
  def device(self, device: Any) -> Iterator[None]: yield


class TinyhwDriver(interface.DriverBase):
  """Active where `TINYHW_TRITON` or `MOCKGPU` is set; `tinyhw.triton.target` says for what."""

  def __init__(self) -> None:
    wanted = triton_target()
    if wanted is None: raise InvalidArgument("no GPU to run Triton's kernels on", hint="set TINYHW_TRITON=gfx1100")
    from tinyhw.arch import decoded
    self.name = wanted[0]
    self.arch = decoded(wanted[1] or self.device.runtime.arch.name)  # type: ignore[attr-defined]
    self.target = GPUTarget("hip", self.arch.name, self.arch.wave_sizes[0])
    self.lock = threading.RLock()
    self.utils = Utils(self)
    self.launcher_cls = Launcher

  @property
  def device(self) -> OpenDevice:
    """The device, which opens when it is first used, and again after `Device.close()`."""
    return Device[self.name]

  @classmethod
  def is_active(cls) -> bool: return triton_target() is not None

  def get_current_target(self) -> Any: return self.target
  def get_current_device(self) -> int: return 0
  def set_current_device(self, device: Any) -> None: return None
  def get_current_stream(self, device: Any = None) -> int: return 0
  def get_device_capability(self, device: Any = None) -> tuple[int, int]: return self.arch.version[:2]
  def get_device_interface(self) -> Interface: return Interface(self)
  def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any: return args

  def map_python_to_cpp_type(self, ty: str) -> str:
    raise Unsupported("C launcher for a type", ty, hint="tinyhw launches from Python")

  def get_active_torch_device(self) -> Any:
    """The host: kernels work on its tensors."""
    import torch
    return torch.device("cpu")

  def get_benchmarker(self) -> Callable[..., Any]:
    """How `triton.autotune` compares configurations: by instructions, which are the same in each run."""
    return self.count

  def count(self, call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **more: Any) -> Any:
    """Millions of instructions that the waves of one call execute; on a device with a clock of its own, milliseconds.
    """
    runtime: Any = self.device.runtime
    before = getattr(runtime, "executed", None)
    start = time.perf_counter()
    call()
    self.device.synchronize()
    cost = (time.perf_counter() - start) * 1e3 if before is None else (runtime.executed - before) / 1e6
    return cost if quantiles is None else [cost] * len(quantiles)

  def get_empty_cache_for_benchmark(self) -> Any:
    import torch
    return torch.empty(CACHE_BYTES // 4, dtype=torch.int)

  def clear_cache(self, cache: Any) -> None: cache.zero_()

  def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Any:
    raise Unsupported("profiling scratch", f"of {size} bytes")
