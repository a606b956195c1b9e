"""A capture as a Python program: calls, submissions in source form, memory. It runs with tinyhw alone.

`written` makes the text; the text fills a `Stream`, which is a capture again.
"""
from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from tinyhw.queues import calls, source
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.container import content_hash
from tinyhw.queues.draft import Draft, Submission
from tinyhw.queues.events import KINDS, Doorbell, Program, Seen

_COLUMNS: Final = 110
_WORDS: Final = ("ring", "pieces")  # of a doorbell: rows of address and bytes, which are given in source form
_TIMES: Final = {"at_ns": 0, "thread": 0}


class Stream:
  """See `container.Frames`: a capture that a program makes."""
  cut: Final = -1

  def __init__(self, **head: Any) -> None:
    self.path, self.head = Path("reproducer"), {"format": 1, **head}
    self._rows: list[list[Any]] = []
    self._blobs: dict[bytes, bytes] = {}

  def event(self, tag: str, **values: Any) -> None:
    """A call, or what else a capture says, by the fields of its class in `queues.events`."""
    self._rows.append(KINDS[tag](**{**_TIMES, **values}).row())

  def submission(self, *, ring: list[tuple[int, str | bytes]], pieces: list[tuple[int, str | bytes]] | None = None,
                 **values: Any) -> None:
    """A doorbell: the words of the ring, and of what they lead to, as source (`queues.source`) or as bytes."""
    self.event(Doorbell.TAG, ring=[[a, _words(w)] for a, w in ring], pieces=[[a, _words(w)] for a, w in pieces or ()],
               **values)

  def content(self, text: str) -> bytes:
    """Memory: zlib in base 85. The name by which events call it."""
    data = zlib.decompress(base64.b85decode("".join(text.split())))
    self._blobs[name := content_hash(data)] = data
    return name

  def capture(self) -> Capture:
    """What was put in so far."""
    return Capture(self)

  def events(self) -> Iterator[list[Any]]: return iter(self._rows)
  def names(self) -> list[bytes]: return list(self._blobs)
  def has(self, name: bytes) -> bool: return name in self._blobs

  def blob(self, name: bytes) -> bytes | None: return self._blobs.get(name)
  def close(self) -> None: self._rows = []


def _words(given: str | bytes) -> bytes:
  if isinstance(given, bytes): return given
  return b"".join(w.to_bytes(4, "little") for w in source.assemble(given).words)


# ---- to text


def written(capture: Capture, told: str, until: str, signature: Any) -> str:
  """The program. `told` is what it says of itself; `until` and `signature` are what it must show again."""
  draft, names = Draft(capture), dict[bytes, str]()
  body: list[str] = []
  for step in capture:
    event = step.event
    if isinstance(event, Doorbell): rows = [r[3] for r in event.memory]
    elif isinstance(event, Seen): rows = [r[3] for r in event.memory]
    else: rows = [event.image] if isinstance(event, Program) else []
    for name in rows:
      content = None if name in names else capture.reader.blob(name)
      if content is None: continue
      names[name] = f"content_{len(names)}"
      body += [f"{names[name]} = stream.content(\"\"\"", *_packed(content), '""")']
    body += _event(step, draft.submissions.get(step.number), names)
  head = {k: v for k, v in capture.head.items() if k in ("mockgpu", "program")}
  told = told.replace("\\", "/").replace('"""', "'''")
  return "\n".join([
    f'"""{told}\n\nRuns with tinyhw alone, on mock cards; the status is 1 where it does not show that any more.\n"""',
    "from tinyhw.cli.trials import reproduce", "from tinyhw.queues.reproduce import Stream", "",
    f"stream = Stream({', '.join(f'{k}={v!r}' for k, v in head.items())})", "", *body, "",
    f"reproduce(stream, {until!r}, {signature!r})", ""])


def _packed(content: bytes) -> list[str]:
  text = base64.b85encode(zlib.compress(content, 9)).decode()  # which has no backslash and no quotation mark
  return [text[at:at + _COLUMNS] for at in range(0, len(text), _COLUMNS)]


def _event(step: Step, found: Submission | None, names: dict[bytes, str]) -> Iterator[str]:
  event = step.event
  given = {name: getattr(event, name) for name in (f.name for f in fields(event)) if name not in _TIMES}
  if isinstance(event, Doorbell) and found is not None:
    yield f"\n# submission {step.submission}, {step.queue}"
    yield "stream.submission("
    for name in _WORDS:
      rows = given.pop(name)
      if rows: yield from (f"  {line}" for line in [f"{name}=[", *_sources(step, found, rows, name), "],"])
    yield f"  {', '.join(f'{k}={_literal(v, names)}' for k, v in given.items())})"
    return
  if told := calls.text(step): yield f"# {_line(told)}"
  yield f"stream.event({event.TAG!r}, {', '.join(f'{k}={_literal(v, names)}' for k, v in given.items())})"


def _line(text: str) -> str: return " ".join(text.split())[:_COLUMNS]


def _sources(step: Step, found: Submission, rows: list[list[Any]], name: str) -> Iterator[str]:
  """Rows of address and words, in source form where that gives them back."""
  assert step.queue is not None
  kind, class_id = step.queue.kind, step.queue.class_id
  for address, data in rows:
    mine = kind if name == "ring" else "qmd" if address in found.descriptors else \
      "pushbuffer" if kind == "gpfifo" else kind
    text = _source(mine, data, class_id if kind == "gpfifo" and mine != "gpfifo" else 0)
    if text is None: yield f"({address:#x}, bytes.fromhex({data.hex()!r})),"
    else: yield f'({address:#x}, """\n{text}"""),'


def _source(kind: str, data: bytes, class_id: int) -> str | None:
  if len(data) % 4 or (kind == "qmd" and not class_id): return None
  text = source.source(kind, memoryview(data).cast("I").tolist(), class_id=class_id)
  return None if '"""' in text or "\\" in text or _words(text) != data else text


def _literal(value: Any, names: dict[bytes, str]) -> str:
  if isinstance(value, bytes): return names.get(value) or f"bytes.fromhex({value.hex()!r})"
  if isinstance(value, list): return f"[{', '.join(_literal(v, names) for v in value)}]"
  return repr(value)


