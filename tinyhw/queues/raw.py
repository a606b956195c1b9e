"""Words without a capture: a dump of a ring, a pushbuffer, a QMD, as hex text or bytes."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tinyhw.core.errors import DecodeError, InvalidArgument
from tinyhw.queues.amd.stream import AmdFollow
from tinyhw.queues.nv.stream import NvFollow, NvState
from tinyhw.queues.world import Follow, Item, Queue, Read
from tinyhw.wire import qmd

KINDS: Final = ("pm4", "sdma", "aql", "gpfifo", "pushbuffer", "qmd")
_UNITS: Final = {"aql": 64, "gpfifo": 8}  # bytes of an entry, 4 for others
_WORD: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{1,8})")
_ADDRESS: Final = re.compile(r"^\s*(?:0x)?[0-9a-fA-F]+:")


def words_of_text(text: str, where: str = "text") -> list[int]:
  """Dwords in hex, with or without 0x, parted by blanks or commas; `#` and `;` begin a comment, `1a0:` an address at a
  line's beginning is left out. Raises DecodeError that names the line."""
  found: list[int] = []
  for number, line in enumerate(text.splitlines(), 1):
    line = _ADDRESS.sub("", re.split(r"[#;]", line)[0], count=1)
    for token in line.replace(",", " ").split():
      m = _WORD.fullmatch(token)
      if m is None:
        raise DecodeError(f"{token[:20]!r} is no dword in hex", where=f"{where}, line {number}",
                          hint="write words like 0xc0001000 or c0001000")
      found.append(int(m[1], 16))
  return found


def read_words(data: bytes, where: str) -> list[int]:
  """Dwords of a file: of its text where it is text, else of its bytes, low byte first."""
  try: text = data.decode("ascii")
  except UnicodeDecodeError: text = ""
  if text and all(c.isprintable() or c.isspace() for c in text): return words_of_text(text, where)
  if len(data) % 4: raise DecodeError(f"{len(data)} bytes are no whole dwords", where=where)
  return list(memoryview(data).cast("I")) if data else []


def nothing(address: int, size: int) -> bytes | None:
  """Memory of which nothing is known."""


def follow(kind: str, words: Sequence[int], *, class_id: int = 0, address: int = 0, read: Read = nothing) -> Follow:
  """What these words are, of one of `KINDS`; `class_id` is the compute or copy class of a pushbuffer or QMD, or the
  generation of AMD's graphics core (0: gfx11's packets); `read` is memory that the words lead to.

  Raises InvalidArgument for another kind, or a number of words that is none of it.
  """
  if kind not in KINDS:
    raise InvalidArgument(f"no kind of words is called {kind!r}", hint=f"there are {', '.join(KINDS)}")
  unit = _UNITS.get(kind, 4)
  if 4 * len(words) % unit:
    raise InvalidArgument(f"{len(words)} dwords, and {kind} has entries of {unit // 4}", where=kind)
  raw = b"".join(w.to_bytes(4, "little") for w in words)
  queue = Queue(0, kind, "gpfifo" if kind in ("pushbuffer", "qmd") else kind, 0, address, len(raw), 0)
  if kind in ("pm4", "sdma", "aql"):
    queue.class_id = class_id
    return AmdFollow(queue, [(address, raw)], read)
  queue.state = NvState(classes=[class_id] if class_id else [])
  if kind == "gpfifo": return NvFollow(queue, [(address, raw)], read)
  found = NvFollow(queue, [], read)
  if kind == "pushbuffer": found.words(address, tuple(words), 0)
  else:
    if not class_id:
      raise InvalidArgument("a QMD is a compute class's", where="qmd", hint="name the card: --arch sm_90")
    try: found.items.append(Item(address, tuple(words), qmd.decode(class_id, words), queue=queue))
    except DecodeError as error: found.items.append(Item(address, tuple(words), None, error=str(error), queue=queue))
  return found
