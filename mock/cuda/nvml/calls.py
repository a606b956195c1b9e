"""NVML's functions: a handler for each that is served; all others answer NVML_ERROR_NOT_SUPPORTED by name.

A handler takes the process's cards and the arguments as integers (pointers are addresses of the client; a device's
handle, where it comes first, is its card already) and raises `Refusal`.
"""
from __future__ import annotations

import os
import struct
import traceback
from collections.abc import Callable
from typing import Any, Final

from tinyhw.autogen import nvml
from tinyhw.core.layout import Struct
from tinyhw.core.locks import lock
from tinyhw.mock.cuda.machine import CudaMachine, Gpu
from tinyhw.mock.memory import Refused, UserMemory

Handler = Callable[..., None]
HANDLES: Final = 0x6E76_0000  # a device's handle is this and its number
TELLS: Final[dict[str, Handler]] = {}
INITIALIZES: Final = ("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags")


class Refusal(Exception):
  """A call fails with this nvmlReturn_t; `why` is for the machine's report."""

  def __init__(self, code: int, why: str = "") -> None:
    self.code, self.why = code, why
    super().__init__(f"{nvml.RESULTS[code]}: {why}")


def invalid(why: str) -> Refusal:
  """The usual refusal of an argument."""
  return Refusal(nvml.NVML_ERROR_INVALID_ARGUMENT, why)


class Cards:
  """What the functions of a process work on. `behind` gives the machine, or None where there is none any more."""

  def __init__(self, behind: Callable[[], CudaMachine | None]) -> None:
    self.behind, self.count = behind, 0  # how often the library was initialized
    self.lock, self.user, self.process = lock(), UserMemory(), os.getpid()

  @property
  def gpus(self) -> list[Gpu]:
    found = self.behind()
    if found is None: raise Refusal(nvml.NVML_ERROR_DRIVER_NOT_LOADED)
    return found.gpus

  def gpu(self, handle: int) -> Gpu:
    """The card of a handle."""
    gpus, index = self.gpus, handle - HANDLES
    if not 0 <= index < len(gpus): raise invalid(f"{handle:#x} is no device")
    return gpus[index]

  def number(self, out: int, *values: int, form: str = "I") -> None:
    """Store numbers where the client wants them."""
    self.give(out, struct.pack(f"<{len(values)}{form}", *values))

  def give(self, out: int, result: bytes | Struct) -> None:
    """Store a result."""
    if not out: raise invalid("a pointer for a result is null")
    self.user.write(out, bytes(result))

  def text(self, out: int, room: int, text: str) -> None:
    """Store a string in so many bytes."""
    if not out: raise invalid("a pointer for a string is null")
    data = text.encode() + b"\0"
    if room < len(data): raise Refusal(nvml.NVML_ERROR_INSUFFICIENT_SIZE, f"{len(data)} bytes are needed, not {room}")
    self.user.write(out, data)

  def word(self, pointer: int) -> int:
    """A number that the client points to."""
    if not pointer: raise invalid("a pointer is null")
    return int.from_bytes(self.user.read(pointer, 4), "little")

  def name(self, pointer: int, most: int = 256) -> str:
    """A string of the client, of at most so many bytes."""
    if not pointer: raise invalid("a string is null")
    found = bytearray()
    while len(found) < most:
      at = pointer + len(found)
      part = self.user.read(at, min(4096 - at % 4096, most - len(found)))  # to the end of a page that is there
      if (end := part.find(b"\0")) >= 0: return (found + part[:end]).decode(errors="replace")
      found += part
    raise invalid("a string without an end")

  def own_process(self) -> None:
    """A child of fork has files of its own, for it shares the places in them with its parent."""
    if self.process != os.getpid(): self.user, self.process = UserMemory(), os.getpid()


def tells(*symbols: str) -> Callable[[Handler], Handler]:
  """Register a handler for these symbols of the library."""

  def register(handler: Handler) -> Handler:
    for symbol in symbols:
      assert symbol in nvml.FUNCTIONS and symbol not in TELLS, symbol
      TELLS[symbol] = handler
    return handler

  return register


def answer(cards: Cards, symbol: str, handler: Handler | None) -> Callable[..., int]:
  """What a call of the symbol does; errors become nvmlReturn_t."""

  def call(*arguments: Any) -> int:
    try:
      with cards.lock:
        cards.own_process()
        if not cards.count and symbol not in INITIALIZES: raise Refusal(nvml.NVML_ERROR_UNINITIALIZED)
        first = [cards.gpu(arguments[0])] if symbol in nvml.ON_DEVICE else arguments[:1]
        if handler is None: raise Refusal(nvml.NVML_ERROR_NOT_SUPPORTED, "is not modelled")
        handler(cards, *first, *arguments[1:])
      return nvml.NVML_SUCCESS
    except Refusal as refusal:
      machine = cards.behind()
      if refusal.code == nvml.NVML_ERROR_NOT_SUPPORTED and machine is not None:
        machine.doubt(f"{symbol}: {refusal.why}")
      return refusal.code
    except Refused: return nvml.NVML_ERROR_INVALID_ARGUMENT  # an address that is none
    except Exception:  # a mistake of the mock's own
      traceback.print_exc()
      return nvml.NVML_ERROR_UNKNOWN

  return call
