"""A prompt: commands in gdb's words, from a terminal, a file or a pipe.

A command is a method `do_NAME`, whose docstring is its line of help: `name ARGUMENTS: what it does`.
"""
from __future__ import annotations

import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar, Final, Protocol

import click
from rich.console import Console
from rich.text import Text

from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.core.store import make_own_folder, own_folder, read_own, write_own

HISTORY: Final = 1000  # lines that are kept


class Prompt(ABC):
  """See the module. `failed` says whether a command of a file or pipe went wrong."""
  PROMPT: ClassVar[str]
  ALIASES: ClassVar[dict[str, str]]
  REPEATED: ClassVar[frozenset[str]]  # commands that an empty line repeats

  def __init__(self, console: Console, interactive: bool) -> None:
    self.lastcmd = ""
    self.console, self.interactive = console, interactive
    self.failed = self.done = False

  # ---- reading commands

  def read(self, lines: Iterable[str]) -> None:
    """Run commands that are not typed: each is shown; the first that fails ends it."""
    for line in lines:
      line = line.strip()
      if not line or line.startswith("#"): continue
      self.say(f"{self.PROMPT}{line}", style="bold")
      if self.onecmd(line): self.done = True
      if self.done or self.failed: return

  def type(self) -> None:
    """The prompt, until quit."""
    with history(self.completions):
      while not self.done:
        try:
          line = input(self.PROMPT)
          self.done = bool(self.onecmd(line))
        except EOFError:
          self.say("")
          return
        except KeyboardInterrupt: self.say("\n(quit ends the debugger)")

  def completions(self, line: str, word: str) -> list[str]:
    """What a word of a line could become: a command at the start, else what `words` has."""
    names = self.commands() if not line[:len(line) - len(word)].strip() else self.words()
    return sorted(n for n in names if n.startswith(word))

  @abstractmethod
  def words(self) -> Iterable[str]:
    """What words of a command could be."""

  @classmethod
  def commands(cls) -> list[str]:
    """The names of all commands."""
    return [n[3:] for n in dir(cls) if n.startswith("do_")]

  def emptyline(self) -> bool:
    """An empty line repeats a step or continue, and nothing else."""
    words = self.lastcmd.split()
    again = words and self.ALIASES.get(words[0], words[0]) in self.REPEATED
    return self.onecmd(self.lastcmd) if again else False

  def onecmd(self, line: str) -> bool:
    """One command; an error of the tree is one line."""
    m = re.match(r"(?a)\s*([\w?]+)(/\S*)?\s*(.*)", line)
    if m is None and line.strip(): return self.fail(f"unknown command {line.strip()!r}; help lists them")
    if m is None: return self.emptyline()
    word = self.unabbreviated(m[1])
    if word is None: return self.fail(f"unknown command {m[1]!r}; help lists them")
    self.lastcmd = line
    try: return bool(getattr(self, f"do_{word}")(f"{m[2] or ''} {m[3]}".strip()))
    except Error as error: return self.fail(str(error))

  def unabbreviated(self, word: str) -> str | None:
    """A command by its name, alias or unique beginning."""
    word = self.ALIASES.get(word, word)
    names = self.commands()
    if word in names: return word
    found = [n for n in names if n.startswith(word)]
    return found[0] if len(found) == 1 else None

  def fail(self, text: str) -> bool:
    """Say what went wrong."""
    if self.interactive: self.console.print(Text(text, style="red"))
    else: click.echo(f"tinyhw: {text}", err=True)
    self.failed = not self.interactive
    return False

  # ---- showing

  def say(self, text: str | Text, style: str = "") -> None:
    """A line as it is: no markup, no wrapping."""
    self.console.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True, highlight=False)

  def do_quit(self, args: str) -> bool:
    """quit: end the debugger; the run is dropped."""
    return True

  def do_help(self, args: str) -> bool:
    """help [COMMAND]: one line for each command."""
    names = self.commands()
    if args:
      word = self.unabbreviated(args)
      if word is None: raise InvalidArgument(f"no command is called {args!r}", hint=", ".join(names))
      names = [word]
    short = {full: alias for alias, full in reversed(self.ALIASES.items())}
    for n in names:
      usage, _, what = self.worded(" ".join((getattr(self, f"do_{n}").__doc__ or "").split())).partition(": ")
      alias = f" ({short[n]})" if n in short else ""
      line = Text(usage, style="bold")
      self.say(line.append(f"{alias}: {what}", style="not bold"))
    return False

  def worded(self, text: str) -> str:
    """A text as the vendor calls things."""
    return text


class Interruptible(Protocol):
  """What runs."""
  def interrupt(self) -> None: ...


@contextmanager
def interruptible(session: Interruptible) -> Iterator[None]:
  """Ctrl-C makes the run stand instead of ending the process."""
  try: before = signal.signal(signal.SIGINT, lambda *_: session.interrupt())
  except ValueError:  # not the main thread: nobody can press Ctrl-C
    yield
    return
  try: yield
  finally: signal.signal(signal.SIGINT, before)


@contextmanager
def history(completions: Callable[[str, str], list[str]]) -> Iterator[None]:
  """Line editing with the commands of earlier sessions, and completion by the tab key."""
  from platformdirs import user_state_path
  try:
    import readline
  except ImportError:
    yield
    return
  folder, name = user_state_path("tinyhw"), "debug_history"
  with suppress(OSError), own_folder(folder) as at:  # none in the first session
    for line in read_own(at, name).decode(errors="surrogateescape").splitlines():
      with suppress(UnicodeEncodeError): readline.add_history(line)  # letters that this terminal has not
  readline.set_completer_delims(" \t()[]*/:")
  readline.parse_and_bind("tab: complete")

  def complete(text: str, state: int) -> str | None:
    found = completions(readline.get_line_buffer()[:readline.get_endidx()], text)
    return found[state] if state < len(found) else None
  readline.set_completer(complete)
  try: yield
  finally:
    last = readline.get_current_history_length()
    lines = [readline.get_history_item(n) for n in range(max(1, last - HISTORY + 1), last + 1)]
    try:
      make_own_folder(folder)
      with own_folder(folder) as at:
        write_own(at, name, "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
    except OSError as error:
      click.echo(f"tinyhw: history not kept: {error.filename or folder}: {error.strerror}", err=True)
