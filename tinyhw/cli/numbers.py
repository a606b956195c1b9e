"""Numbers of options. `int` and `float`, which click's own types call, take digits of all scripts."""
from __future__ import annotations

from typing import Any

import click

from tinyhw.core.environment import LONGEST


class _Ascii(click.ParamType):
  def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
    if isinstance(value, str) and not (value.isascii() and len(value) <= LONGEST):
      self.fail(f"{value[:LONGEST]!r} is not a valid number: ASCII, at most {LONGEST} letters.", param, ctx)
    return super().convert(value, param, ctx)


class Whole(_Ascii, click.IntRange):
  """A whole number in a range."""


class Real(_Ascii, click.FloatRange):
  """A number in a range."""
