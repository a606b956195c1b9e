"""`--check` of the verbs: all checks that are on by default, or with `--check=race,wait` those alone."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tinyhw.core.errors import InvalidArgument

FC = TypeVar("FC", bound="Callable[..., Any] | click.Command")
_EVERY = ""  # what `--check` without names stands for


class Checked(click.Command):
  """A verb with `--check`, which takes names behind "=" only: what follows a plain `--check` is the verb's."""

  def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
    valued = {name for p in self.params if isinstance(p, click.Option) and not p.is_flag for name in p.opts}
    rest, out = list(args), list[str]()
    while rest and rest[0] != "--" and (ctx.allow_interspersed_args or rest[0].startswith("-")):
      word = rest.pop(0)
      if word == "--check": word = f"--check={_EVERY}"
      out.append(word)
      if word in valued and rest: out.append(rest.pop(0))
    return super().parse_args(ctx, [*out, *rest])


def names(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
  """What `--check` was given, in the words of EMU_CHECK without its policy: names with commas between, "" for those
  that EMU_CHECK names, None where there is no `--check`. Raises InvalidArgument for a name that no check has."""
  if value is None: return None
  from tinyhw.emulator.check.report import KINDS
  asked = [word.strip() for word in value.split(",")] if value else [
    word for word in os.environ.get("EMU_CHECK", "").split(",") if word.strip() not in {"", "0", "1", "report"}]
  where = f"--check={value}" if value else "EMU_CHECK"
  if unknown := [word for word in asked if word not in KINDS]:
    raise InvalidArgument(f"no check is called {', '.join(unknown)}", where=where, hint=f"there are {', '.join(KINDS)}")
  return ",".join(asked)


def option(told: str) -> Callable[[FC], FC]:
  """The option `--check` of a verb; `told` is how it says what was found."""
  return click.option("--check", metavar="[=NAME,...]", default=None, callback=names,
                      help=f"Check for hazards on the emulator, or for those of these names alone; {told}.")
