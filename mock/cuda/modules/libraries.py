"""Libraries: modules without a context, and their kernels."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Collection

from tinyhw.autogen import cuda
from tinyhw.core.errors import Error
from tinyhw.mock.cuda.calls import Failed, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine
from tinyhw.mock.cuda.modules.images import ptx_of
from tinyhw.mock.cuda.modules.modules import (
  Function,
  Module,
  function_of,
  load,
  log_of,
  module_get_global,
  module_unload,
)


class Library:
  """A library: PTX that each context loads on its own."""

  def __init__(self, text: str) -> None:
    self.text, self.handle = text, 0
    self.modules: dict[Context, Module] = {}
    self.kernels: dict[str, LibraryKernel] = {}

  def module(self, m: CudaMachine, context: Context) -> Module:
    """The library's module in a context."""
    if context not in self.modules:
      self.modules[context] = load(m, context, self.text)
    return self.modules[context]

  @property
  def names(self) -> Collection[str]:
    """Its kernels' names, in the text's order."""
    from tinyhw.emulator.ptx.module.link import link_text
    found: Collection[str] = link_text(self.text.encode()).names
    return found

  def kernel(self, m: CudaMachine, name: str) -> LibraryKernel:
    """The kernel of one of its names."""
    found = self.kernels.get(name)
    if found is None:
      found = self.kernels[name] = LibraryKernel(self, name)
      found.handle = m.new(found)
    return found


class LibraryKernel:
  """A kernel of a library."""

  def __init__(self, library: Library, name: str) -> None:
    self.library, self.name, self.handle = library, name, 0


@serves("cuLibraryLoadData")
def library_load_data(m: CudaMachine, out: int, image: int, options: int, values: int, count: int, more: int,
                      more_values: int, more_count: int) -> None:
  from tinyhw.emulator.ptx.module.link import link_text
  text = ptx_of(m, image)
  try:
    link_text(text.encode())
  except Error as error:
    if (log := log_of(m, count, options, values)) is not None: log.tell(m, str(error))
    raise Failed(cuda.CUDA_ERROR_INVALID_PTX, str(error)) from None
  library = Library(text)
  library.handle = m.new(library)
  m.out(out, "Q", library.handle)


@serves("cuLibraryLoadFromFile")
def library_load_from_file(m: CudaMachine, out: int, path: int, options: int, values: int, count: int, more: int,
                           more_values: int, more_count: int) -> None:
  name = m.name(path)
  try:
    with open(name, "rb") as file: kept = ctypes.create_string_buffer(file.read())
  except OSError as error: raise Failed(cuda.CUDA_ERROR_FILE_NOT_FOUND, f"{name}: {error.strerror}") from None
  library_load_data(m, out, ctypes.addressof(kept), options, values, count, more, more_values, more_count)


@serves("cuLibraryUnload")
def library_unload(m: CudaMachine, handle: int) -> None:
  library: Library = m.find(handle, Library)
  for module in library.modules.values():
    if module.handle in m.handles:
      module_unload(m, module.handle)
  for kernel in library.kernels.values():
    m.handles.pop(kernel.handle, None)
  del m.handles[handle]


@serves("cuLibraryGetKernel")
def library_get_kernel(m: CudaMachine, out: int, handle: int, name: int) -> None:
  library, text = m.find(handle, Library), m.name(name)
  if text not in library.names: raise Failed(cuda.CUDA_ERROR_NOT_FOUND, f"no kernel {text}")
  m.out(out, "Q", library.kernel(m, text).handle)


@serves("cuLibraryEnumerateKernels")
def library_enumerate_kernels(m: CudaMachine, out: int, count: int, handle: int) -> None:
  library: Library = m.find(handle, Library)
  names = [*library.names][:count]
  m.user.write(out, struct.pack(f"<{len(names)}Q", *(library.kernel(m, n).handle for n in names)))


@serves("cuKernelGetLibrary")
def kernel_get_library(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "Q", m.find(handle, LibraryKernel).library.handle)


@serves("cuLibraryGetGlobal")
def library_get_global(m: CudaMachine, out: int, size: int, handle: int, name: int) -> None:
  library: Library = m.find(handle, Library)
  module_get_global(m, out, size, library.module(m, m.working()).handle, name)


@serves("cuLibraryGetKernelCount")
def library_get_kernel_count(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "I", len(m.find(handle, Library).names))


@serves("cuLibraryGetModule")
def library_get_module(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "Q", m.find(handle, Library).module(m, m.working()).handle)


@serves("cuKernelGetFunction")
def kernel_get_function(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "Q", function_for(m, handle, m.working()).handle)


def function_for(m: CudaMachine, handle: int, context: Context) -> Function:
  """A kernel by a CUfunction, or by a CUkernel, which is one of the context."""
  thing = m.handles.get(handle)
  if isinstance(thing, LibraryKernel):
    return function_of(m, thing.library.module(m, context), thing.name)
  found: Function = m.find(handle, Function)
  return found
