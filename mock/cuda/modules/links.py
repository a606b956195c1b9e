"""Programs of several modules: the driver's linker, `cuLink*`. It links PTX and makes an ELF that carries PTX.

NVIDIA's own linker, libnvJitLink, has another stand-in (`jitlink`), which makes the same ELF.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import Error
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine
from tinyhw.mock.cuda.modules.images import ptx_of
from tinyhw.mock.cuda.modules.modules import Log, log_of

PARAMETERS: Final = 0x210  # where they begin in constant bank 0; of no account without machine code
_KINDS: Final = {cuda.CU_JIT_INPUT_CUBIN: "a cubin", cuda.CU_JIT_INPUT_PTX: "PTX",
                 cuda.CU_JIT_INPUT_FATBINARY: "a fat binary", cuda.CU_JIT_INPUT_OBJECT: "an object file",
                 cuda.CU_JIT_INPUT_LIBRARY: "a library", cuda.CU_JIT_INPUT_NVVM: "NVVM IR"}
_CARRY_PTX: Final = frozenset({cuda.CU_JIT_INPUT_CUBIN, cuda.CU_JIT_INPUT_PTX, cuda.CU_JIT_INPUT_FATBINARY})


class Link:
  """A linker's state: the texts that were given, and what they have become."""

  def __init__(self, context: Context, log: Log | None) -> None:
    self.context, self.log, self.handle = context, log, 0
    self.texts: list[tuple[str, str]] = []  # of a name and PTX
    self.image: Any = None

  def failed(self, m: CudaMachine, code: int, why: str) -> Failed:
    """The refusal, which the program's log has too."""
    if self.log is not None: self.log.tell(m, f"error   : {why}")
    return Failed(code, why)


def carrying(text: str, sm: int) -> bytes:
  """An ELF with PTX for an SM, in place of machine code."""
  from tinyhw.wire import cubin
  return cubin.write(text.encode(), sm, PARAMETERS, [])


@serves("cuLinkCreate_v2")
def link_create(m: CudaMachine, count: int, options: int, values: int, out: int) -> None:
  link = Link(m.working(), log_of(m, count, options, values))
  link.handle = m.new(link)
  m.out(out, "Q", link.handle)


@serves("cuLinkAddData_v2")
def link_add_data(m: CudaMachine, handle: int, kind: int, data: int, size: int, name: int, count: int, options: int,
                  values: int) -> None:
  link: Link = m.find(handle, Link)
  if kind not in _KINDS: raise invalid(f"an input of kind {kind}")
  if link.image is not None: raise invalid("the link is complete")
  called = m.name(name) if name else "<input>"
  if kind not in _CARRY_PTX:
    raise link.failed(m, cuda.CUDA_ERROR_NOT_SUPPORTED, f"{called}: {_KINDS[kind]} to link: PTX alone is executed")
  if not data: raise invalid("the input's pointer is null")
  copied = ctypes.create_string_buffer(m.user.read(data, size) + b"\0")
  try: text = ptx_of(m, ctypes.addressof(copied), link.context.gpu.card)
  except Failed as failed: raise link.failed(m, failed.code, f"{called}: {failed.why}") from None
  from tinyhw.emulator.ptx.module.link import link_text
  try: link_text(text.encode())
  except Error as error:
    raise link.failed(m, cuda.CUDA_ERROR_INVALID_PTX, f"{called}: {error}") from None
  link.texts.append((called, text))


@serves("cuLinkAddFile_v2")
def link_add_file(m: CudaMachine, handle: int, kind: int, path: int, count: int, options: int, values: int) -> None:
  name = m.name(path)
  try:
    with open(name, "rb") as file: data = file.read()
  except OSError as error: raise Failed(cuda.CUDA_ERROR_FILE_NOT_FOUND, f"{name}: {error.strerror}") from None
  kept = ctypes.create_string_buffer(data)
  link_add_data(m, handle, kind, ctypes.addressof(kept), len(data), path, count, options, values)


@serves("cuLinkComplete")
def link_complete(m: CudaMachine, handle: int, out: int, size: int) -> None:
  from tinyhw.emulator.ptx.module.merge import linked
  link: Link = m.find(handle, Link)
  if not link.texts: raise invalid("nothing to link")
  try: text = linked(link.texts)
  except Error as error: raise link.failed(m, cuda.CUDA_ERROR_INVALID_PTX, str(error)) from None
  major, minor = link.context.gpu.card.capability
  image = carrying(text, 10 * major + minor)
  link.image = ctypes.create_string_buffer(image, len(image))  # the program's until the link is destroyed
  m.out(out, "Q", ctypes.addressof(link.image))
  if size: m.out(size, "Q", len(image))


@serves("cuLinkDestroy")
def link_destroy(m: CudaMachine, handle: int) -> None:
  m.find(handle, Link)
  del m.handles[handle]
