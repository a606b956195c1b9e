"""What is known of a kernel, and what programs may ask for it."""

from __future__ import annotations

from typing import Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.devices import constant
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.modules.libraries import function_for

HINTS: Final = frozenset({  # told back, no more: any value is taken
  cuda.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
  cuda.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE})


@serves("cuFuncGetAttribute")
def func_get_attribute(m: CudaMachine, out: int, attribute: int, handle: int) -> None:
  function = function_for(m, handle, m.working())
  linked, program = function.module.linked, function.program
  entry = linked.kernel(function.name)
  most = entry.reqntid or entry.maxntid
  threads = 1
  for n in most or (1024,):
    threads *= n
  width, height, depth = (*entry.reqnctapercluster, 1, 1, 1)[:3] if entry.reqnctapercluster else (0, 0, 0)
  known = {
    cuda.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: threads,
    cuda.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: program.shared_size,
    cuda.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: 0,
    cuda.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: entry.frame,
    cuda.CU_FUNC_ATTRIBUTE_NUM_REGS: 32,  # PTX's registers have no number: one that fits any block
    cuda.CU_FUNC_ATTRIBUTE_PTX_VERSION: linked.sm,
    cuda.CU_FUNC_ATTRIBUTE_BINARY_VERSION: 10 * function.context.gpu.card.capability[0],
    cuda.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: 0,
    cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: function.dynamic_limit,
    cuda.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: -1,
    cuda.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: width, cuda.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: height,
    cuda.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: depth,
    cuda.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: 0,  # the default
    cuda.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: 0, cuda.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: 0,
  } | {k: v for k, v in function.attributes.items() if k != cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES}
  if attribute not in known:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"function attribute {attribute} is not modelled")
  m.out(out, "i", known[attribute])


@serves("cuFuncSetAttribute")
def func_set_attribute(m: CudaMachine, handle: int, attribute: int, value: int) -> None:
  function = function_for(m, handle, m.working())
  if attribute == cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    most = function.context.gpu.card.shared_limit - 1024 - function.program.shared_size
    if not 0 <= value <= most:
      raise invalid(f"{value:,} bytes of dynamic shared memory, {most:,} at most")
  elif attribute == cuda.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    if value not in (0, 1): raise invalid(f"{value} is neither 0 nor 1")
  elif attribute not in HINTS:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"function attribute {attribute} cannot be set")
  function.attributes[attribute] = value
  function.shapes.clear()


@serves("cuKernelGetAttribute")
def kernel_get_attribute(m: CudaMachine, out: int, attribute: int, handle: int, device: int) -> None:
  func_get_attribute(m, out, attribute, handle)


@serves("cuKernelSetAttribute")
def kernel_set_attribute(m: CudaMachine, attribute: int, value: int, handle: int, device: int) -> None:
  func_set_attribute(m, handle, attribute, value)


@serves("cuFuncSetCacheConfig", "cuFuncSetSharedMemConfig")
def func_set_config(m: CudaMachine, handle: int, config: int) -> None:
  function_for(m, handle, m.working())  # a preference


@serves("cuKernelSetCacheConfig")
def kernel_set_cache_config(m: CudaMachine, handle: int, config: int, device: int) -> None:
  func_set_config(m, handle, config)


@serves("cuFuncLoad")
def func_load(m: CudaMachine, handle: int) -> None:
  function_for(m, handle, m.working())  # all are, with their module


@serves("cuFuncIsLoaded")
def func_is_loaded(m: CudaMachine, out: int, handle: int) -> None:
  function_for(m, handle, m.working())
  m.out(out, "i", cuda.CU_FUNCTION_LOADING_STATE_LOADED)


@serves("cuFuncGetModule")
def func_get_module(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "Q", function_for(m, handle, m.working()).module.handle)


@serves("cuFuncGetName", "cuKernelGetName")
def func_get_name(m: CudaMachine, out: int, handle: int) -> None:
  if not handle: raise invalid("a null handle")
  m.out(out, "Q", constant(m, function_for(m, handle, m.working()).name))


@serves("cuFuncGetParamInfo", "cuKernelGetParamInfo")
def func_get_param_info(m: CudaMachine, handle: int, index: int, offset: int, size: int) -> None:
  function = function_for(m, handle, m.working())
  if index >= len(function.params):
    raise invalid(f"parameter {index} of {function.name}, which has {len(function.params)}")
  at, length = function.params[index]
  m.out(offset, "Q", at)
  if size: m.out(size, "Q", length)
