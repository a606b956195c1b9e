"""What engines have in common: methods of a class, decoded by its declarations, given to handlers by name.

A method that only sets a field is state: it is decoded, so undeclared bits are an error, and kept by name. A method
that starts something has a handler. One that the class does not declare is an error of the class; one that is declared
and neither handled, state nor ignored is Unsupported, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.core.errors import DecodeError, Error, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.table import Handlers
from tinyhw.wire import methods

if TYPE_CHECKING:
  from types import ModuleType

  from tinyhw.mock.nv.chip.channel import Channel


DECODED: Final = 4096  # methods with their data that an engine keeps decoded


class Engine:
  """One channel's view of an engine: its class, and the state that methods have set. Groups share nothing more here,
  since what a context keeps between channels (windows, caches) has no effect on results."""

  KIND: ClassVar[str] = "?"
  table: ClassVar[Handlers[str]]
  state_names: ClassVar[frozenset[str]] = frozenset()

  def __init__(self, channel: Channel, class_id: int) -> None:
    self.channel, self.class_id = channel, class_id
    self.machine, self.space = channel.machine, channel.space
    self.module: ModuleType = methods.declared(class_id)
    self._methods = methods.by_address(self.module)
    self.state: dict[str, Any] = {}
    self._decoded: Kept[tuple[int, int], tuple[Callable[..., Any] | None, str, Any, int]] = Kept(DECODED)

  def refuse(self, message: str) -> Error:
    """What the engine raises for a method that it does not have."""
    raise NotImplementedError

  def invalid(self, message: str) -> Error:
    """What the engine raises for a value that a method does not take."""
    raise NotImplementedError

  def method(self, address: int, value: int) -> None:
    """One method arrives."""
    found = self._decoded.get((address, value))
    if found is None:
      found = self._decoded.keep((address, value), self._decode(address, value))
    handler, name, decoded, copy = found
    if handler is not None:
      handler(self, decoded, copy)
    else:
      self.state[name] = decoded
      self.changed(name)

  def _decode(self, address: int, value: int) -> tuple[Callable[..., Any] | None, str, Any, int]:
    """Who takes the method (None: it is state), its name, its fields, which copy of an array it is."""
    row = self._methods.get(address)
    if row is None:
      raise self.refuse(f"{self.module.NAME} has no method {address:#06x} (data {value:#x})")
    declared, copy = row
    name = declared.__name__
    try:
      decoded = declared.decode(value)
    except DecodeError as error:
      raise self.invalid(f"{methods.method_name(self.module, address)}: {error.message}") from None
    for field in declared.FIELDS:
      if field.enum is not None and getattr(decoded, field.name) not in field.enum._value2member_map_:
        raise self.invalid(f"{methods.method_name(self.module, address)}.{field.name} = "
                           f"{getattr(decoded, field.name):#x}, which is none of {field.enum.__name__}")
    if (handler := self.table.get(name)) is not None:
      return handler, name, decoded, copy
    if name in self.state_names:
      return None, name, decoded, copy
    if (why := self.table.why_ignored(name)) is not None:
      return self._ignore(why), name, decoded, copy
    raise Unsupported(f"{self.KIND} method", f"{self.module.NAME}.{name}", where=self.channel.name)

  def _ignore(self, why: str) -> Callable[..., None]:
    def ignore(self: Engine, p: Any, copy: int) -> None:
      self.machine.ignored.note(f"{self.KIND} method", type(p).__name__, why)
    return ignore

  def changed(self, name: str) -> None:
    """A state method was sent."""

  def field(self, method: str, name: str) -> int:
    """A field of a state method; 0 where it was never sent."""
    found = self.state.get(method)
    return 0 if found is None else int(getattr(found, name))

  def sent(self, method: str) -> Any:
    """A state method that an operation needs. Raises the engine's error where it was never sent."""
    found = self.state.get(method)
    if found is None:
      raise self.invalid(f"{method} was never sent on this channel")
    return found
