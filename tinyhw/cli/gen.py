"""`tinyhw gen`: hands its words to the generators of tools/gen."""
from __future__ import annotations

import sys

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
  """Regenerate autogen/ from vendor headers, or check it."""
  from tinyhw.tools.gen import main
  sys.exit(main(list(words)))
