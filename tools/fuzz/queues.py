"""Words, captures, dumps and logs of queues, drawn by numbers: `python -m tinyhw.tools.fuzz.queues`.

    streams   random valid streams of every kind: text and words come back word by word, without a line of raw words
    words     random dwords: a stream with what is none told, or one clear error; what comes back is the same
    files     captures, dumps and logs with mistakes in them: shown, counted, examined; nothing but `Error` is raised

What fails is printed with its number; `--first` begins there. A file that takes longer than `LONGEST_S` counts as one
that hangs.
"""
from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tinyhw.autogen import hsa, pm4_gfx11, sdma_v6
from tinyhw.cli.decoding import recorded
from tinyhw.core.errors import Error
from tinyhw.queues import listing, raw, summary
from tinyhw.queues.capture import Capture
from tinyhw.queues.container import MAGIC
from tinyhw.queues.doctor import examine
from tinyhw.queues.foreign import forms, show
from tinyhw.queues.kernellog import read, verdict
from tinyhw.queues.source import assemble, source
from tinyhw.wire import aql, gpfifo, methods, pm4, qmd, sdma

LONGEST_S: Final = 20.0
CLASSES: Final = {"pushbuffer": methods.CLASS_IDS, "qmd": qmd.CLASS_IDS}
_HEADERS: Final[tuple[Any, ...]] = methods.INCR, methods.NONINCR, methods.ONEINCR, methods.IMMD
UNITS: Final = {"aql": 16, "gpfifo": 2}  # dwords of an entry, 1 for others
PROGRAM: Final = """
from tinyhw import Tensor
a = Tensor([1.0, 2.0, 3.0]) + 1
b = Tensor.rand(16, 16)
(b @ b).sum().item()
"""


def class_of(kind: str, rng: random.Random) -> int:
  """A class for what is a class's, else 0."""
  return rng.choice(CLASSES[kind]) if kind in CLASSES else 0


def valid(kind: str, rng: random.Random, class_id: int) -> list[int]:
  """A random valid stream of one of `raw.KINDS`."""
  return _VALID[kind](rng, class_id)


def _pm4(rng: random.Random, class_id: int) -> list[int]:
  return pm4.stream(rng.choice(pm4_gfx11.PACKETS).fuzz(rng) for _ in range(rng.randrange(1, 6)))


def _sdma(rng: random.Random, class_id: int) -> list[int]:
  cls = rng.choice(sdma_v6.PACKETS)
  packet: Any = cls.fuzz(rng)
  for f in cls.FIELDS:  # what says which packet it is, and how long
    if f.name in ("op", "sub_op", "broadcast") and f.default is not None: setattr(packet, f.name, f.default)
  if cls.REST is not None:
    tail = tuple(rng.getrandbits(32) for _ in range(cls.PAYLOAD_BIAS + rng.randrange(5)))
    setattr(packet, cls.REST, tail)
    packet.count = len(tail) - cls.PAYLOAD_BIAS
  return sdma.encode(packet)


def _aql(rng: random.Random, class_id: int) -> list[int]:
  number, cls = rng.choice(list(aql.KINDS.items()))
  packet: Any = cls.fuzz(rng)
  packet.header = packet.header & ~0xFF | number << hsa.HSA_PACKET_HEADER_TYPE
  return list(memoryview(bytes(packet)).cast("I"))


def _gpfifo(rng: random.Random, class_id: int) -> list[int]:
  value = gpfifo.Segment(rng.randrange(gpfifo.END) & ~3, rng.randrange(1, gpfifo.LONGEST + 1),
                         *(bool(rng.getrandbits(1)) for _ in range(3))).encode()
  return [value & 0xFFFFFFFF, value >> 32]


def _qmd(rng: random.Random, class_id: int) -> list[int]:
  version, cls = rng.choice(list(qmd.versions(class_id).items()))
  packet = cls.fuzz(rng)
  qmd.write(packet, "QMD_MAJOR_VERSION", version[0])
  qmd.write(packet, "QMD_MINOR_VERSION", version[1])
  return list(packet.encode())


def _pushbuffer(rng: random.Random, class_id: int) -> list[int]:
  words: list[int] = []
  for _ in range(rng.randrange(1, 5)):
    header: Any = rng.choice(_HEADERS)
    count = 1 if header is methods.IMMD else rng.randrange(0, 5)
    data = tuple(rng.randrange(methods.IMMEDIATE + 1) if header is methods.IMMD else rng.getrandbits(32)
                 for _ in range(count))
    words += methods.Send(header, rng.randrange(8), rng.randrange(0, 0x3000) & ~3, data).encode()
  return words


_VALID: Final[dict[str, Callable[[random.Random, int], list[int]]]] = {
  "pm4": _pm4, "sdma": _sdma, "aql": _aql, "gpfifo": _gpfifo, "qmd": _qmd, "pushbuffer": _pushbuffer}


def mutated(data: bytes, rng: random.Random) -> bytes:
  """Bytes of a file with a few mistakes: bits, digits, lines gone, twice or long, an end that is missing."""
  out = bytearray(data)
  for _ in range(rng.randrange(1, 12)):
    at = rng.randrange(len(out) or 1)
    match rng.randrange(6):
      case 0: out[at:at + 1] = bytes([rng.randrange(256)])
      case 1: out[at:at] = rng.choice([b"9" * 30, b"f" * 20, b" " * 50, b"\n", b"0x", b"\xff"])
      case 2: del out[at:at + rng.randrange(1, 80)]
      case 3: out[at:at] = out[at:at + rng.randrange(1, 200)]
      case 4: out[at:at + 4] = rng.randbytes(4)
      case 5 if rng.random() < 0.2: del out[at:]
  return bytes(out)


# ---- what must hold


def stream(number: int) -> None:
  """A valid stream: it comes back in its packets' names."""
  rng = random.Random(f"stream {number}")
  kind = raw.KINDS[number % len(raw.KINDS)]
  class_id = class_of(kind, rng)
  words = valid(kind, rng, class_id)
  text = source(kind, words, class_id=class_id)
  assert assemble(text).words == words and ".words" not in text, text
  summary.of_words(kind, words)


def dwords(number: int) -> None:
  """Random dwords, half of them behind a header that is right: they are shown, and come back."""
  rng = random.Random(f"words {number}")
  kind = raw.KINDS[number % len(raw.KINDS)]
  class_id, unit = class_of(kind, rng), UNITS.get(kind, 1)
  words = [rng.getrandbits(rng.choice((2, 8, 16, 32))) for _ in range(rng.randrange(24) // unit * unit or unit)]
  if rng.getrandbits(1): words = (valid(kind, rng, class_id)[:rng.randrange(1, 9)] + words)[:24]
  words = words[:len(words) // unit * unit]
  try: follow = raw.follow(kind, words, class_id=class_id)
  except Error: return
  for _ in listing.lines(listing.Names(), follow): pass
  summary.of_words(kind, words)
  assert assemble(source(kind, words, class_id=class_id)).words == words


def file(data: bytes, number: int, path: Path) -> None:
  """A file with mistakes in it, at a path whose name is the right one's: a ring of debugfs goes by it."""
  rng = random.Random(f"file {number}")
  start = len(MAGIC) if data.startswith(MAGIC) and rng.random() < 0.9 else 0
  broken = data[:start] + mutated(data[start:], rng)
  path.write_bytes(broken)
  began = time.perf_counter()
  for use in (_captured, _counted, _examined) if broken.startswith(MAGIC) else (_dumped, _logged):
    try: use(path)
    except Error: pass
  took = time.perf_counter() - began
  assert took < LONGEST_S, f"took {took:.0f} s"


def _captured(path: Path) -> None:
  capture = Capture(path)
  for step in capture:
    if step.follow is None: continue
    names = listing.Names(capture, step.event.vendor, step.world)
    for _ in listing.lines(names, step.follow): pass


def _counted(path: Path) -> None: summary.of_capture(Capture(path, following=False))


def _examined(path: Path) -> None: list(examine(Capture(path)).lines())


def _dumped(path: Path) -> None:
  dump = forms.read(path.read_bytes(), str(path))
  if dump is None: return
  for _ in show.lines(dump, None, deep=True): pass
  for _ in show.rows(dump, None): pass


def _logged(path: Path) -> None:
  events = list(read(path.read_text(errors="replace")))
  for line in (verdict(events), *(line for e in events for line in e.lines())): assert line


# ---- campaigns


def _each(name: str, count: int, first: int, run: Callable[[int], None]) -> int:
  """How many of so many fail; each is printed."""
  wrong, start = 0, time.monotonic()
  for number in range(first, first + count):
    try: run(number)
    except Exception:  # whatever it is, it is what is looked for
      wrong += 1
      print(f"{name} {number}: {traceback.format_exc(limit=-3)}", flush=True)
    if sys.stderr.isatty() and not number % 256: print(f"{name} {number}", end="\r", file=sys.stderr)
  if count: print(f"{count:,} {name}, {wrong} wrong, {time.monotonic() - start:.0f} s", flush=True)
  return wrong


def _files(given: list[str]) -> Iterator[tuple[str, bytes]]:
  """Names and contents: what is given, and a capture of a small program on each vendor's mock."""
  for name in given: yield Path(name).name, Path(name).read_bytes()
  for device in ("AMD", "NV"):
    with recorded(device, PROGRAM) as path: yield path.name, path.read_bytes()


def main() -> int:
  """See the module."""
  head, _, _ = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(
    prog="python -m tinyhw.tools.fuzz.queues", description=head, formatter_class=argparse.RawDescriptionHelpFormatter,
    epilog="Example: python -m tinyhw.tools.fuzz.queues --streams 1000000 --words 1000000 --files 10000 dmesg.txt")
  parser.add_argument("given", nargs="*", metavar="FILE", help="captures, dumps and logs to put mistakes into")
  parser.add_argument("--streams", type=int, default=10_000, help="valid streams (default: 10,000)")
  parser.add_argument("--words", type=int, default=10_000, help="streams of random dwords (default: 10,000)")
  parser.add_argument("--files", type=int, default=200, help="files with mistakes (default: 200)")
  parser.add_argument("--first", type=int, default=0, help="the number of the first of each (default: 0)")
  options = parser.parse_args()
  wrong = _each("streams", options.streams, options.first, stream)
  wrong += _each("words", options.words, options.first, dwords)
  if options.files:
    contents = list(_files(options.given))
    with tempfile.TemporaryDirectory() as folder:
      def one(number: int) -> None:
        name, data = contents[number % len(contents)]
        file(data, number, Path(folder, name))
      wrong += _each("files", options.files, options.first, one)
  return 1 if wrong else 0


if __name__ == "__main__": sys.exit(main())
