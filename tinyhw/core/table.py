"""Dispatch tables that can be printed: which handler serves which key, what is ignored on purpose, what is missing.

    class Engine:
      table: ClassVar[Handlers[type[Packet]]] = Handlers("PM4 packet")

      @table.handles(RELEASE_MEM)
      def release_mem(self, packet: RELEASE_MEM) -> None: ...

      table.ignores(ACQUIRE_MEM, why="no caches are modelled")

A key registered twice is refused. A key that is ignored is counted each time that it occurs, in the caller's `Ignored`.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tinyhw.core.errors import LayoutError, Unsupported

K = TypeVar("K")
F = TypeVar("F", bound=Callable[..., Any])


def key_name(key: object) -> str:
  """A key as people write it: a class by its name, an enum member by its name, a number in hex."""
  if isinstance(key, type): return key.__name__
  name = getattr(key, "name", None)
  if isinstance(name, str): return name
  return hex(key) if isinstance(key, int) else str(key)


class Handlers(Generic[K]):
  """Keys to functions. `what` names the kind of key in errors and reports ("PM4 packet", "KFD ioctl")."""

  def __init__(self, what: str, *, name: Callable[[K], str] = key_name) -> None:
    self.what = what
    self._name = name
    self._handlers: dict[K, Callable[..., Any]] = {}
    self._ignored: dict[K, str] = {}

  def handles(self, *keys: K) -> Callable[[F], F]:
    """Decorator: the function serves these keys. Raises LayoutError for a key that is taken."""
    def register(function: F) -> F:
      for key in keys:
        self._check_new(key)
        self._handlers[key] = function
      return function
    return register

  def ignores(self, *keys: K, why: str) -> None:
    """Declare that these keys are accepted and have no effect, with the reason that reports show."""
    for key in keys:
      self._check_new(key)
      self._ignored[key] = why

  def _check_new(self, key: K) -> None:
    if key in self._handlers or key in self._ignored:
      raise LayoutError(f"{self.what} {self._name(key)} is registered twice")

  def get(self, key: K) -> Callable[..., Any] | None:
    """The handler, or None for an ignored or unknown key."""
    return self._handlers.get(key)

  def why_ignored(self, key: K) -> str | None: return self._ignored.get(key)

  def __getitem__(self, key: K) -> Callable[..., Any]:
    """The handler. Raises Unsupported, naming the key."""
    try: return self._handlers[key]
    except KeyError: raise Unsupported(self.what, self._name(key)) from None

  def __contains__(self, key: object) -> bool: return key in self._handlers or key in self._ignored

  def __iter__(self) -> Iterator[K]: return iter((*self._handlers, *self._ignored))

  def gaps(self, declared: Iterable[K]) -> list[str]:
    """Names of declared keys that nobody handles or ignores."""
    return [self._name(key) for key in declared if key not in self]

  def report(self) -> list[tuple[str, str]]:
    """(name, what happens) of each key, for coverage tables."""
    rows = [(self._name(k), f"handled by {f.__name__}") for k, f in self._handlers.items()]
    return rows + [(self._name(k), f"ignored: {why}") for k, why in self._ignored.items()]


@dataclass
class Ignored:
  """What a run met, accepted and did not model: (kind, name, why) with its count."""
  counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)

  def note(self, kind: str, name: str, why: str, count: int = 1) -> None: self.counts[kind, name, why] += count

  def lines(self) -> list[str]:
    """One line a thing: `PM4 packet ACQUIRE_MEM x3: no caches are modelled`."""
    return [f"{kind} {name} x{n}: {why}" for (kind, name, why), n in sorted(self.counts.items())]
