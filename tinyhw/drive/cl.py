"""OpenCL devices, through the library that finds the installed drivers (ICDs).

A "binary" is a kernel's text in OpenCL C, which the driver compiles. Every device of every platform has a number, in
the order in which the library tells them. A device has one context and one queue that runs in order, so launches and
copies are asynchronous and `copyout` and `synchronize` wait. Threads may share a device: the queue's functions are safe
by OpenCL's own rule, and `lock` is held from a kernel's first argument until it is queued. What is open does not pass
through fork: a child is told to open the device anew.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhw.autogen import opencl as cl
from tinyhw.core.errors import DeviceError, InvalidArgument, OutOfMemory
from tinyhw.core.locks import lock
from tinyhw.core.trace import Whose
from tinyhw.drive.base import Allocation, Dim3, Program, Runtime

NAMES = ("libOpenCL.so.1", "libOpenCL.so")
CHANNELS = {"float32": cl.CL_FLOAT, "float16": cl.CL_HALF_FLOAT}
IMAGE = re.compile(r"(?a)// image (\d+) (\w+) (\d+) (\d+)")
NO_MEMORY = {cl.CL_MEM_OBJECT_ALLOCATION_FAILURE, cl.CL_OUT_OF_RESOURCES, cl.CL_OUT_OF_HOST_MEMORY,
             cl.CL_INVALID_BUFFER_SIZE}
NOTHING_THERE = {cl.CL_DEVICE_NOT_FOUND, -1001}         # and CL_PLATFORM_NOT_FOUND_KHR, of cl_khr_icd
LOG = 4000              # characters of a build log that an error quotes


class Library:
  """The functions of OpenCL. What one refuses raises DeviceError with the name of its code."""

  def __init__(self) -> None:
    for name in NAMES:
      try: self.library = ctypes.CDLL(name)
      except OSError: continue
      break
    else:
      raise DeviceError("there is no OpenCL library (libOpenCL.so.1)", where="CL",
                        hint="install an OpenCL driver and its loader: pocl-opencl-icd of Debian runs on any processor")

  @functools.cache        # noqa: B019  (one library a process)
  def function(self, name: str) -> Any:
    """A function of the library, with its types."""
    try: found = getattr(self.library, name)
    except AttributeError: raise DeviceError(f"the OpenCL library has no {name}", where="CL") from None
    found.restype, found.argtypes = cl.FUNCTIONS[name]
    return found

  def call(self, name: str, *arguments: Any) -> None:
    """A function that returns an error code."""
    if (code := self.function(name)(*arguments)) != cl.CL_SUCCESS: raise failed(name, code)

  def make(self, name: str, *arguments: Any) -> int:
    """A function that returns a handle, and its error code through its last parameter."""
    code = ctypes.c_int32()
    handle = self.function(name)(*arguments, ctypes.byref(code))
    if code.value != cl.CL_SUCCESS: raise failed(name, code.value)
    return int(handle)

  def handles(self, name: str, *arguments: Any) -> list[int]:
    """A function that lists handles; none where it finds none."""
    count = ctypes.c_uint32()
    code = self.function(name)(*arguments, 0, None, ctypes.byref(count))
    if code in NOTHING_THERE or code == cl.CL_SUCCESS and not count.value: return []
    if code != cl.CL_SUCCESS: raise failed(name, code)
    found = (ctypes.c_void_p * count.value)()
    self.call(name, *arguments, count.value, found, None)
    return [int(h or 0) for h in found]

  def text(self, name: str, *what: Any) -> str:
    """A function that tells a text."""
    size = ctypes.c_size_t()
    self.call(name, *what, 0, None, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value + 1)
    self.call(name, *what, size.value, room, None)
    return room.value.decode(errors="replace").strip()

  def number(self, name: str, kind: Any, *what: Any) -> int:
    """A function that tells a number of that ctypes class."""
    room = kind()
    self.call(name, *what, ctypes.sizeof(kind), ctypes.byref(room), None)
    return int(room.value)


def failed(name: str, code: int) -> DeviceError:
  """The error of a function that returned `code`."""
  error = DeviceError(f"{name}: {cl.ERRORS.get(code, f'error {code}')}", where="CL")
  error.code = code  # type: ignore[attr-defined]
  return error


@functools.cache
def library() -> Library: return Library()


def devices() -> list[tuple[int, int]]:
  """(platform, device) of all devices, in the library's order."""
  found = library()
  return [(platform, device) for platform in found.handles("clGetPlatformIDs")
          for device in found.handles("clGetDeviceIDs", platform, cl.CL_DEVICE_TYPE_ALL)]


@dataclass(frozen=True)
class Image:
  """A parameter that is an image: its number, the type of its numbers ("float32", "float16"), its size in pixels, and
  whether the kernel writes it."""
  number: int
  kind: str
  width: int
  height: int
  written: bool


def images_of(text: bytes) -> tuple[Image, ...]:
  """The images that the first lines of a kernel's text tell of."""
  found = []
  for line in text.decode().splitlines():
    if (match := IMAGE.fullmatch(line)) is None: break
    written = f"write_only image2d_t data{match[1]}".encode() in text
    found.append(Image(int(match[1]), match[2], int(match[3]), int(match[4]), written))
  return tuple(found)


class CLProgram(Program):
  """A kernel of a built program. What it sees as images is copied into images of its own before it runs, and back from
  those that it writes; the queue runs in order, so one set of them is enough."""

  def __init__(self, device: CLRuntime, name: str, program: int, kernel: int, images: tuple[Image, ...] = ()):
    self.name, self._device, self._program, self._kernel = name, device, program, kernel
    self._images = {i.number: (i, device.image(i)) for i in images}

  def _copy(self, number: int, buffer: int, back: bool) -> None:
    """Queue the copy of a buffer to its image, or back."""
    image, handle = self._images[number]
    origin, region = (ctypes.c_size_t * 3)(), (ctypes.c_size_t * 3)(image.width, image.height, 1)
    queue, call = self._device.queue, self._device.library.call
    if back: call("clEnqueueCopyImageToBuffer", queue, handle, buffer, origin, region, 0, 0, None, None)
    else: call("clEnqueueCopyBufferToImage", queue, buffer, handle, 0, origin, region, 0, None, None)

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    device, call = self._device, self._device.library.call
    device.check()
    event = ctypes.c_void_p()
    with device.lock:
      for i, buffer in enumerate(buffers):
        handle = ctypes.c_void_p(buffer.memory(0, self.name))
        if i in self._images:
          if not self._images[i][0].written: self._copy(i, handle.value or 0, False)
          handle = ctypes.c_void_p(self._images[i][1])
        call("clSetKernelArg", self._kernel, i, ctypes.sizeof(handle), ctypes.byref(handle))
      for i, value in enumerate(values, len(buffers)):
        number = ctypes.c_int32(int(value))
        call("clSetKernelArg", self._kernel, i, ctypes.sizeof(number), ctypes.byref(number))
      sizes = (ctypes.c_size_t * 3)(*(g * b for g, b in zip(grid, block)))
      call("clEnqueueNDRangeKernel", device.queue, self._kernel, 3, None, sizes, (ctypes.c_size_t * 3)(*block), 0, None,
           ctypes.byref(event) if wait else None)
      for i, (image, _) in self._images.items():
        if image.written: self._copy(i, buffers[i].memory(0, self.name), True)
    if not wait:
      call("clFlush", device.queue)
      return None
    try:
      call("clWaitForEvents", 1, ctypes.byref(event))
      start, end = (device.library.number("clGetEventProfilingInfo", ctypes.c_uint64, event, what)
                    for what in (cl.CL_PROFILING_COMMAND_START, cl.CL_PROFILING_COMMAND_END))
    finally: call("clReleaseEvent", event)
    return (end - start) * 1e-9

  def __del__(self) -> None:
    for handle in (self._kernel, self._program, *(h for _, h in self._images.values())): self._device.release(handle)


class CLRuntime(Runtime):
  """The OpenCL device of that number. Raises DeviceError where there is none."""
  clock = Whose.CARD

  def __init__(self, index: int = 0, name: str = "CL"):
    self.name, self.index, self.library = name, index, library()
    self.lock, self.closed, self.pid = lock(), True, os.getpid()
    self.owned: dict[int, str] = {}             # what is to be released, and how
    self.found = devices()
    if index >= len(self.found):
      some = f"; there are {len(self.found)}" if self.found else ""
      raise DeviceError(f"no OpenCL device {index}{some}", where=name,
                        hint="install a driver: pocl-opencl-icd of Debian runs on any processor")
    self.platform, self.device = self.found[index]
    one = (ctypes.c_void_p * 1)(self.device)
    self.context = self.library.make("clCreateContext", None, 1, one, None, None)
    self.queue = self.library.make("clCreateCommandQueue", self.context, self.device, cl.CL_QUEUE_PROFILING_ENABLE)
    self.closed = False
    config = self.info(cl.CL_DEVICE_SINGLE_FP_CONFIG, ctypes.c_uint64)
    self.exact = bool(config & cl.CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    self.double = bool(self.info(cl.CL_DEVICE_DOUBLE_FP_CONFIG, ctypes.c_uint64))
    self.images: tuple[int, int] | None = None      # the largest image, in pixels
    if self.info(cl.CL_DEVICE_IMAGE_SUPPORT, ctypes.c_uint32):
      self.images = (self.info(cl.CL_DEVICE_IMAGE2D_MAX_WIDTH, ctypes.c_size_t),
                     self.info(cl.CL_DEVICE_IMAGE2D_MAX_HEIGHT, ctypes.c_size_t))
    self.max_block = self.info(cl.CL_DEVICE_MAX_WORK_GROUP_SIZE, ctypes.c_size_t)
    self.max_local = self.info(cl.CL_DEVICE_LOCAL_MEM_SIZE, ctypes.c_uint64)
    self.options = b"-cl-std=CL1.2" + (b" -cl-fp32-correctly-rounded-divide-sqrt" if self.exact else b"")

  def info(self, what: int, kind: Any) -> int:
    """A number that the device tells about itself."""
    return self.library.number("clGetDeviceInfo", kind, self.device, what)

  def describe(self) -> str:
    text = self.library.text
    name, version = (text("clGetDeviceInfo", self.device, w) for w in (cl.CL_DEVICE_NAME, cl.CL_DRIVER_VERSION))
    return f"{name} through {text('clGetPlatformInfo', self.platform, cl.CL_PLATFORM_NAME)} {version}"

  def siblings(self) -> int: return len(self.found)

  def check(self) -> None:
    """Raise DeviceError where the device cannot be used from here."""
    if os.getpid() != self.pid:
      raise DeviceError(f"opened by process {self.pid} and used by its fork {os.getpid()}", where=self.name,
                        hint="in the child, call tinyhw.Device.close() and open the device again")
    if self.closed: raise DeviceError("the device was closed", where=self.name)

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    self.check()
    most = self.info(cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE, ctypes.c_uint64)
    hint = f"one piece may have {most:,} bytes here; free tensors that are no longer needed"
    if nbytes > most: raise OutOfMemory(self.name, nbytes, most, hint=hint)
    try: handle = self.library.make("clCreateBuffer", self.context, cl.CL_MEM_READ_WRITE, nbytes, None)
    except DeviceError as error:
      if getattr(error, "code", 0) not in NO_MEMORY: raise
      raise OutOfMemory(self.name, nbytes, most, hint=hint) from None
    self.owned[handle] = "clReleaseMemObject"
    return Allocation(None, nbytes, handle)

  def image(self, image: Image) -> int:
    """An image of four numbers a pixel."""
    self.check()
    form = (ctypes.c_uint32 * 2)(cl.CL_RGBA, CHANNELS[image.kind])
    handle = self.library.make("clCreateImage2D", self.context, cl.CL_MEM_READ_WRITE, form, image.width, image.height,
                               0, None)
    self.owned[handle] = "clReleaseMemObject"
    return handle

  def free(self, allocation: Allocation) -> None:
    handle, allocation.handle = allocation.handle, None
    if handle is not None: self.release(handle)

  def release(self, handle: int) -> None:
    """Give something back, once. Takes no lock: finalizers do it, wherever they run."""
    if os.getpid() != self.pid: return          # it is the parent's
    if (name := self.owned.pop(handle, None)) is not None: self.library.function(name)(handle)

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    self._transfer("clEnqueueWriteBuffer", dst, data)

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    self._transfer("clEnqueueReadBuffer", src, dst)

  def _transfer(self, name: str, allocation: Allocation, host: memoryview) -> None:
    """A copy between the device and the host, done when this returns."""
    self.check()
    handle = allocation.memory(host.nbytes, self.name)
    if not host.nbytes: return
    memory = np.frombuffer(host.cast("B"), np.uint8)
    self.library.call(name, self.queue, handle, cl.CL_TRUE, 0, host.nbytes, memory.ctypes.data, 0, None, None)

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    self.check()
    source, target = src.memory(nbytes, self.name), dst.memory(nbytes, self.name)
    if nbytes and source != target:
      self.library.call("clEnqueueCopyBuffer", self.queue, source, target, 0, 0, nbytes, 0, None, None)

  def load(self, binary: bytes, kernel: str) -> Program:
    self.check()
    text, length = ctypes.c_char_p(binary), ctypes.c_size_t(len(binary))
    program = self.library.make("clCreateProgramWithSource", self.context, 1, ctypes.byref(text), ctypes.byref(length))
    try:
      one = (ctypes.c_void_p * 1)(self.device)
      code = self.library.function("clBuildProgram")(program, 1, one, self.options, None, None)
      if code != cl.CL_SUCCESS:
        log = self.library.text("clGetProgramBuildInfo", program, self.device, cl.CL_PROGRAM_BUILD_LOG)
        raise DeviceError(f"kernel {kernel!r} does not load: clBuildProgram: {cl.ERRORS.get(code, code)}: "
                          f"{' '.join(log.split())[:LOG]}", where=self.name)
      try: made = self.library.make("clCreateKernel", program, kernel.encode())
      except DeviceError as error:
        raise DeviceError(f"kernel {kernel!r} does not load: {error}", where=self.name) from None
    except DeviceError:
      self.library.function("clReleaseProgram")(program)
      raise
    self.owned |= {program: "clReleaseProgram", made: "clReleaseKernel"}
    return CLProgram(self, kernel, program, made, images_of(binary))

  def synchronize(self) -> None:
    self.check()
    self.library.call("clFinish", self.queue)

  def close(self) -> None:
    if self.closed: return
    self.closed = True
    if os.getpid() != self.pid: return      # they are the parent's
    self.library.function("clFinish")(self.queue)
    for handle in list(self.owned): self.release(handle)
    for name, handle in (("clReleaseCommandQueue", self.queue), ("clReleaseContext", self.context)):
      self.library.function(name)(handle)
