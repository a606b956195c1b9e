"""Numbers of options. `int` and `float`, which click's own types call, take digits of all scripts."""
from __future__ import annotations

from typing import Any

import click

from tinyhw.core.environment import LONGEST


def _plain(value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
  """The value, unless it is a text of other letters, or too long a one."""
  if isinstance(value, str) and not (value.isascii() and len(value) <= LONGEST):
    raise click.BadParameter(f"{value[:LONGEST]!r} is no valid number: ASCII, at most {LONGEST} letters.", ctx, param)
  return value


class Whole(click.IntRange):
  """A whole number in a range."""

  def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
    return super().convert(_plain(value, param, ctx), param, ctx)


class Real(click.FloatRange):
  """A number in a range."""

  def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
    return super().convert(_plain(value, param, ctx), param, ctx)
