"""Attributes that are worked out when they are first read."""
from __future__ import annotations

import functools
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
  """functools.cached_property as Python 3.12 and newer have it: without a lock that all objects of the class share.

  A child that is forked while another thread works one out could never read that attribute again. Threads that read
  it at once may each work it out; all get the value of the first that was ready.
  """

  @overload
  def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
  @overload
  def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

  def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | T:
    if instance is None: return self
    assert self.attrname is not None, "made without a class's body"
    values = instance.__dict__
    try: return values[self.attrname]  # type: ignore[no-any-return]
    except KeyError: return values.setdefault(self.attrname, self.func(instance))  # type: ignore[no-any-return]
