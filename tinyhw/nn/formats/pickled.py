"""Pickles read as data: a stack machine for the opcodes that hold values, which constructs nothing but containers.

Opcodes and their arguments come from the standard library's `pickletools`, which executes none. What a pickle names
(GLOBAL) and calls (REDUCE) is handed to the reader of the format, which knows a few names and refuses all others.
"""
from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from tinyhw.core.errors import DecodeError
from tinyhw.nn.formats.source import QUOTED

LONGEST: Final = 4096  # bits of a number: Python shows those of more than 4,300 digits to nobody
_KEYS: Final = (str, bytes, int, float, type(None))  # what a key may be: hashing a tuple of tuples may take for ever
_MARK: Final = object()
_VALUES: Final = frozenset({
  "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
  "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES",
  "SHORT_BINBYTES", "BINBYTES8"})
_CONSTANTS: Final[dict[str, Any]] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_EMPTY: Final[dict[str, Callable[[], Any]]] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUTS: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS: Final = frozenset({"GET", "BINGET", "LONG_BINGET"})
_NOTHING: Final = frozenset({"PROTO", "FRAME"})


@dataclass(frozen=True)
class Named:
  """What a pickle names: a class or function of some module. Nothing is imported."""
  module: str
  name: str

  def __str__(self) -> str: return f"{self.module}.{self.name}"


class Machine:
  """Reads one pickle after the other from a stream.

  `call(named, arguments)` gives the value of a REDUCE or NEWOBJ, `persistent(key)` that of a persistent id.
  """

  def __init__(self, stream: BytesIO, where: str, call: Callable[[Named, tuple[Any, ...]], Any],
               persistent: Callable[[Any], Any]) -> None:
    self.stream, self.where, self.call, self.persistent = stream, where, call, persistent

  def damaged(self, what: str, at: int | None) -> DecodeError:
    """The error that says what is wrong, at a byte of the pickle."""
    return DecodeError(f"not a readable pickle: {what} at byte {at}", where=self.where)

  def read(self) -> Any:
    """The next value of the stream."""
    self.stack: list[Any] = []
    self.memo: dict[int, Any] = {}
    at: int | None = self.stream.tell()
    try:
      for opcode, argument, at in pickletools.genops(self.stream):
        if opcode.name == "STOP": return self.stack.pop()
        self._step(opcode.name, argument, at)
    except DecodeError: raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, MemoryError) as error:
      raise self.damaged(str(error)[:QUOTED] or type(error).__name__, at) from None
    raise self.damaged("no end", at)

  def _above_mark(self) -> list[Any]:
    """What lies above the last mark, taken off with it."""
    place = next(i for i in range(len(self.stack) - 1, -2, -1) if i < 0 or self.stack[i] is _MARK)
    if place < 0: raise ValueError("no mark")
    found = self.stack[place + 1:]
    del self.stack[place:]
    return found

  def _into(self, pairs: list[Any]) -> None:
    """Put keys and values in turn into the dictionary on top."""
    target = self.stack[-1]
    if not isinstance(target, dict): raise ValueError(f"items for a {type(target).__name__}")
    for key, value in zip(pairs[::2], pairs[1::2], strict=True): target[self._key(key)] = value

  def _key(self, key: Any) -> Any:
    if not isinstance(key, _KEYS): raise ValueError(f"a {type(key).__name__} as a key")
    return key

  def _step(self, name: str, argument: Any, at: int | None) -> None:
    stack = self.stack
    if name in _NOTHING: return
    if isinstance(argument, int) and argument.bit_length() > LONGEST:
      raise ValueError(f"a number of {argument.bit_length():,} bits")
    if name in _VALUES: stack.append(argument)
    elif name in _CONSTANTS: stack.append(_CONSTANTS[name])
    elif name in _EMPTY: stack.append(_EMPTY[name]())
    elif name in _PUTS: self.memo[int(argument)] = stack[-1]
    elif name == "MEMOIZE": self.memo[len(self.memo)] = stack[-1]
    elif name in _GETS: stack.append(self.memo[int(argument)])
    elif name == "MARK": stack.append(_MARK)
    elif name == "POP": stack.pop()
    elif name == "POP_MARK": self._above_mark()
    elif name == "DUP": stack.append(stack[-1])
    elif name in _TUPLES:
      count = _TUPLES[name]
      if len(stack) < count: raise ValueError("a tuple of too few")
      stack[-count:] = [tuple(stack[-count:])]
    elif name == "TUPLE": stack.append(tuple(self._above_mark()))
    elif name == "LIST": stack.append(self._above_mark())
    elif name == "DICT":
      pairs = self._above_mark()
      stack.append({})
      self._into(pairs)
    elif name == "APPEND": self._list(-2).append(stack.pop())
    elif name == "APPENDS":
      more = self._above_mark()
      self._list(-1).extend(more)
    elif name == "SETITEM":
      pair = [stack.pop(-2), stack.pop()]
      self._into(pair)
    elif name == "SETITEMS": self._into(self._above_mark())
    elif name in ("ADDITEMS", "FROZENSET"):
      items = self._above_mark()
      if name == "FROZENSET": stack.append(set())
      if not isinstance(stack[-1], set): raise ValueError(f"members for a {type(stack[-1]).__name__}")
      stack[-1].update(self._key(i) for i in items)
    elif name == "GLOBAL": stack.append(Named(*str(argument).split(" ", 1)))
    elif name == "STACK_GLOBAL":
      attribute, module = stack.pop(), stack.pop()
      stack.append(Named(str(module), str(attribute)))
    elif name in ("REDUCE", "NEWOBJ"):
      arguments, called = stack.pop(), stack.pop()
      if not isinstance(called, Named) or not isinstance(arguments, tuple): raise ValueError("no name is called")
      stack.append(self.call(called, arguments))
    elif name == "BUILD":
      state = stack.pop()
      # An OrderedDict may carry attributes (a state dict's _metadata): they are no part of the value.
      if not isinstance(stack[-1], dict) or not isinstance(state, dict): raise ValueError("state for what has none")
    elif name == "BINPERSID": stack.append(self.persistent(stack.pop()))
    else: raise self.damaged(f"opcode {name}, which no checkpoint needs,", at)

  def _list(self, place: int) -> list[Any]:
    found = self.stack[place]
    if not isinstance(found, list): raise ValueError(f"an element for a {type(found).__name__}")
    return found
