"""Python functions that C calls. Nothing is raised out of one, and no call of one is lost.

What C calls is machine code (`called_code`) that calls the function:

- Python has ended, or is about to take its modules down: the answer is `ended`, and no Python is run.
- An exception comes before the function has begun (a signal's handler raises KeyboardInterrupt at its first
  instruction): the function is called again. What handlers raise while it runs is kept (`timeout.HELD`).
- What was raised is raised in the main thread once that is back in Python: by the next signal's handler, which is told
  of here.
- The function itself raises: Python prints it, and the answer is `failed`.
- An exception is on its way already (C was called by a destructor): it goes on being so afterwards.
- Python has made a state for a thread of C's: it stays until the thread ends, and goes then. So what is the thread's
  own (`threading.local`) is there at its next call.
- C forks: as `os.fork` does, with all that is registered for that.

On other processors than x86-64 it is a callback of ctypes, of which only the fourth holds.
"""
from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import traceback
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from types import FrameType
from typing import Any, Final

from tinyhw.core.called_code import CODE, PLACES, WORDS
from tinyhw.core.mapped import map_memory
from tinyhw.core.timeout import HELD, in_main_thread

_PAGE: Final = 4096
_COUNT: Final = 2048  # functions of one arena
_STUB, _RECORD = 16, 32  # bytes of each
_REGISTERS: Final = 6  # words of arguments; then the return address, and what is on the stack
_MASK: Final = (1 << 64) - 1
_TABLES: Final = _PAGE * 2 + _STUB * _COUNT  # code, words, stubs, and then records
_WHOLE: Final = _TABLES + _RECORD * _COUNT
_PACK: Final = struct.Struct("<Q").pack
NATIVE: Final = platform.machine() in ("x86_64", "AMD64")
_LETTERS: Final = {ctypes.c_int8: "b", ctypes.c_uint8: "B", ctypes.c_int16: "h", ctypes.c_uint16: "H",
                   ctypes.c_int32: "i", ctypes.c_uint32: "I", ctypes.c_int64: "q", ctypes.c_uint64: "Q",
                   ctypes.c_void_p: "Q"}


class Caller(ctypes.c_uint64):
  """As a parameter: where the call comes from, an address in the code of the caller. It is no argument."""


@cache
def reader(parameters: tuple[Any, ...]) -> Callable[[int], tuple[Any, ...]]:
  """What reads arguments of these types of ctypes where they lie. A struct of up to 16 bytes is in registers where
  there are enough (the ABI of x86-64); none of them has floats."""
  free, stack, places = 0, _REGISTERS + 1, list[tuple[int, int]]()
  for at, kind in enumerate(parameters):
    words = -(-ctypes.sizeof(kind) // 8)
    if kind is Caller: places.append((_REGISTERS, at))
    elif words <= 2 and free + words <= _REGISTERS:
      places.append((free, at))
      free += words
    else:
      places.append((stack, at))
      stack += words
  form, end, structs = "<", 0, list[tuple[int, Any]]()
  places.sort()
  for word, at in places:
    kind = parameters[at]
    size = ctypes.sizeof(kind)
    form += f"{8 * word - end}x" if 8 * word > end else ""
    letter = "Q" if kind is Caller else _LETTERS.get(kind)
    form += letter or f"{size}s"
    if letter is None: structs.append((at, kind.from_buffer_copy))
    end = 8 * word + size
  layout = struct.Struct(form)
  unpack, memory = layout.unpack, (ctypes.c_char * layout.size).from_address
  order = [next(i for i, (_, at) in enumerate(places) if at == k) for k in range(len(places))]
  plain = order == sorted(order)
  if not structs and plain: return lambda block: unpack(memory(block))

  def read(block: int) -> tuple[Any, ...]:
    found = unpack(memory(block))
    row = [*found] if plain else [found[k] for k in order]
    for at, made in structs: row[at] = made(row[at])
    return tuple(row)
  return read


class _Late:
  """A signal's handler that raises what was kept, once: the handler that was there before is the one afterwards."""

  def __init__(self, error: BaseException, before: Any) -> None:
    self.error, self.before = error, before

  def __call__(self, number: int, frame: FrameType | None) -> None:
    found: Any = signal.getsignal(number)
    if found is self: signal.signal(number, self.before)
    raise self.error


def _told(error: BaseException) -> int:
  """What was raised is to be raised once Python goes on; the number of the signal whose handler does so, or 0."""
  found = signal.getsignal(signal.SIGINT)
  if isinstance(found, _Late): return signal.SIGINT  # of two the first
  if not in_main_thread() or found is None:
    traceback.print_exception(error)
    return 0
  if type(error) is not KeyboardInterrupt or found is not signal.default_int_handler:
    signal.signal(signal.SIGINT, _Late(error, found))
  return signal.SIGINT


class _Arena:
  """Pages of code and of what it uses: a stub and a record for each function."""

  def __init__(self) -> None:
    stubs = bytearray()
    for i in range(_COUNT):
      at, record = 2 * _PAGE + _STUB * i, _TABLES + _RECORD * i
      stub = b"\x4c\x8d\x1d" + struct.pack("<i", record - at - 7)  # lea r11, record
      stubs += (stub + b"\xe9" + struct.pack("<i", -at - 12)).ljust(_STUB, b"\xcc")  # jmp code
    file = os.memfd_create("tinyhw called", os.MFD_CLOEXEC)
    try:
      os.write(file, CODE.ljust(2 * _PAGE, b"\xcc") + stubs)
      self.at = map_memory(-1, _WHOLE)
      map_memory(file, _PAGE, 0, self.at, 5)
      map_memory(file, len(stubs), 2 * _PAGE, self.at + 2 * _PAGE, 5)
    finally: os.close(file)
    own = dict(pthread_setspecific=_address(_LIBC.pthread_setspecific), told=id(_told), key=0, gil=0, ours=0, forking=0)
    self.words = (ctypes.c_uint64 * len(WORDS)).from_address(self.at + _PAGE)
    self.words[:] = [own[name] if name in own else _address(getattr(ctypes.pythonapi, name)) for name in WORDS]
    if not _arenas: self._first()
    self.words[_KEY] = _arenas[0].words[_KEY] if _arenas else self.words[_KEY]
    _arenas.append(self)

  def _first(self) -> None:
    """Have the code told of the ends of threads, and of forks."""
    thread_ends, *forks = (ctypes.c_void_p(self.at + PLACES[name])
                           for name in ("thread_ends", "before_fork", "in_parent", "in_child"))
    key = ctypes.c_uint()
    if _LIBC.pthread_key_create(ctypes.byref(key), thread_ends): raise OSError("there is no key for threads")
    self.words[_KEY] = key.value
    _register(*forks, None)
    os.register_at_fork(before=partial(self._forks, 1), after_in_parent=partial(self._forks, 0),
                        after_in_child=partial(self._forks, 0))

  def _forks(self, now: int) -> None: self.words[_FORKING] = now


_LIBC: Final = ctypes.CDLL(None)
_register: Final[Any] = _LIBC["__register_atfork"]
_KEY, _FORKING = WORDS.index("key"), WORDS.index("forking")
_arenas: Final[list[_Arena]] = []
_free: Final = deque[tuple[int, int]]()  # stubs and records that nobody has


def _address(function: Any) -> int: return ctypes.cast(function, ctypes.c_void_p).value or 0


def _place() -> tuple[int, int]:
  """A stub and its record."""
  try: return _free.popleft()
  except IndexError: pass
  arena = _Arena()
  _free.extend((arena.at + 2 * _PAGE + _STUB * i, arena.at + _TABLES + _RECORD * i) for i in range(_COUNT))
  return _free.popleft()


class Called:
  """`address` is what C calls; `function` gets where its arguments lie (`reader`) and gives a word. Whoever has C call
  it keeps this. Once Python has ended the answer is `ended`, and `text` is the address that it stores where its second
  argument says."""

  def __init__(self, function: Callable[[int], int], failed: int, ended: int | None = None, text: int = 0) -> None:
    def enter(block: int, answer: bytearray) -> None:
      if in_main_thread():
        HELD.keep()
        try: answer[:] = _PACK(run(block))
        finally: HELD.release()
      else: answer[:] = _PACK(run(block))

    def run(block: int) -> int:
      try: return function(block) & _MASK
      except BaseException as error:  # C has called this
        traceback.print_exception(error)
        return failed & _MASK

    self._enter, self._at = enter, _place()
    self.address, record = self._at
    words = (ctypes.c_uint64 * 4).from_address(record)
    words[:] = [id(enter), failed & _MASK, (failed if ended is None else ended) & _MASK, text]

  def __del__(self) -> None:
    if hasattr(self, "_at"): _free.append(self._at)


class Plain:
  """As `Called`, of a function that gets its arguments, of types of ctypes, and gives an integer or None (0)."""

  def __init__(self, function: Callable[..., int | None], *parameters: Any, failed: int) -> None:
    if NATIVE:
      read = reader(parameters)
      self._kept: Any = Called(lambda block: function(*read(block)) or 0, failed)
      self.address: int = self._kept.address
      return

    def run(*arguments: Any) -> int:
      try: return function(*arguments) or 0
      except BaseException as error:  # C has called this
        traceback.print_exception(error)
        return failed
    self._kept = ctypes.CFUNCTYPE(ctypes.c_int64, *parameters)(run)
    self.address = _address(self._kept)
