"""Words of a queue as text that people edit, and back: `source(kind, words)`, `assemble(text)`.

    .kind pm4
    .label done = 0x7f572a568000
    ACQUIRE_MEM(coher_size=0xffffffffff, coher_base=0, gcr_cntl=0xc3b1)
    RELEASE_MEM(event_type=CS_DONE, data_sel=send_64_bit_data, address=done, data=7, int_ctxid=0)

A line a packet, fields by name; those that are left out have their defaults. A label stands for a number wherever one
is written, also with an offset (`done + 8`). What no declaration has is `.words 0x0 0x1`, so that every stream comes
back as it was, word by word: `assemble(source(kind, words)) == words`. `#` begins a comment.

AMD's packets are those of gfx11, or of the generation that `.class 9` or `.class 12` says.

Pushbuffers have a header's line, with subchannel and first method, and a line below it for each method:

    .kind pushbuffer
    .class 0xcbc0
    INCR 1
      HOPPER_COMPUTE_A.SET_SHADER_SHARED_MEMORY_WINDOW_A(BASE_ADDRESS_UPPER=0x7294)
      0x2a4 = 0x0
    NONINCR 1 0x1b4 = 0x1 0x2 0x3
"""
from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.environment import whole
from tinyhw.core.errors import DecodeError, EncodeError, Unsupported
from tinyhw.core.layout import Method
from tinyhw.queues import raw
from tinyhw.queues.amd import text as amd
from tinyhw.queues.world import Item
from tinyhw.wire import aql, gpfifo, methods, pm4, qmd, sdma
from tinyhw.wire import text as wire_text

_LABEL: Final = re.compile(r"([A-Za-z_][A-Za-z_0-9.]*)")
_DIRECTIVE: Final = re.compile(r"(?a)\.(\w+)\s*(.*)")
_SUM: Final = re.compile(r"(?a)\b([A-Za-z_]\w*)\s*\+\s*(0[xX][0-9a-fA-F]+|[0-9]+)")
_NAME: Final = re.compile(r"(?a)(?<=[=\s(])[A-Za-z_][\w.]*(?=[,)\s]|$)")
_HEADERS: Final[dict[str, type[Any]]] = {"INCR": methods.INCR, "NONINCR": methods.NONINCR, "ONEINCR": methods.ONEINCR,
                                         "IMMD": methods.IMMD}
_HEADER_NAMES: Final = {cls: name for name, cls in _HEADERS.items()}
_METHOD: Final = re.compile(r"(?a)(?:(\w+)\.)?(\w+)(?:\[(\d+)\])?\((.*)\)")
_RAW_METHOD: Final = re.compile(r"(0x[0-9a-fA-F]+)\s*=\s*(.*)")
_LONGEST: Final = 12  # words in a line of data


@dataclass
class Stream:
  """Words of one kind. `class_id` is the class whose methods or QMD they are, or the
  generation of AMD's graphics core (0: gfx11), `labels` name numbers in the text."""
  kind: str
  words: list[int]
  class_id: int = 0
  labels: dict[str, int] = field(default_factory=dict)


# ---- to text


def source(kind: str, words: Sequence[int], *, class_id: int = 0, labels: Mapping[str, int] | None = None) -> str:
  """The text. `labels` are names for numbers that it is to use. Raises InvalidArgument for an unknown kind."""
  named = {value: name for name, value in (labels or {}).items()}
  follow = raw.follow(kind, words, class_id=class_id)
  head = [f".kind {kind}", *([f".class {class_id:#x}"] if class_id else [])]
  head += [f".label {name} = {value:#x}" for name, value in (labels or {}).items()]
  body: list[str] = []
  for item in (i for i in follow.items if i.depth == 0):
    lines = list(_lines(kind, item, class_id)) if item.packet is not None else []
    if not lines or not _same(kind, lines, item.words, class_id):
      note = f"  # {_plain(item.error or item.packet)}"[:100]
      lines = [line + (note if i == 0 else "") for i, line in enumerate(_data(item.words))]
    body += [_labelled(line, named) for line in lines]
  return "\n".join([*head, *body, ""])


def _plain(what: object) -> str: return " ".join(str(what).split())


def _same(kind: str, lines: list[str], words: Sequence[int], class_id: int) -> bool:
  """Whether the lines give these words."""
  try: return _Assembler(Stream(kind, [], class_id)).run(lines) == list(words)
  except (DecodeError, EncodeError, Unsupported): return False


def _data(words: Sequence[int]) -> Iterator[str]:
  for at in range(0, len(words), _LONGEST): yield ".words " + " ".join(f"{w:#x}" for w in words[at:at + _LONGEST])


def _labelled(line: str, named: Mapping[int, str]) -> str:
  """Numbers that have a name, by it."""
  if not named: return line
  return re.sub(r"(?<==)0x[0-9a-f]+(?=[,)])", lambda m: named.get(int(m[0], 16), m[0]), line)


def _lines(kind: str, item: Item, class_id: int) -> Iterator[str]:
  packet = item.packet
  if isinstance(packet, methods.Send): yield from _send_lines(packet, item.class_id or class_id)
  elif kind == "aql": yield _struct_line(packet)
  elif isinstance(packet, gpfifo.Segment | gpfifo.Control): yield str(packet)
  elif isinstance(packet, int): yield "NOP"
  elif kind == "qmd":
    fields = [f"  {f.name}={f.show(v)}" for f, v in packet.items() if v != f.default]
    yield f"{type(packet).__name__}(" + ("" if fields else ")")
    for i, line in enumerate(fields): yield line + ("," if i < len(fields) - 1 else ")")
  else: yield repr(amd.own(packet, item.words, class_id) if kind == "pm4" and class_id else packet)


def _struct_line(packet: Any) -> str:
  def shown(value: Any) -> str:
    if isinstance(value, ctypes.Array): return f"({', '.join(map(shown, value))})"
    return hex(value.handle if isinstance(value, ctypes.Structure) else value)
  return f"{type(packet).__name__}({', '.join(f'{n}={shown(getattr(packet, n))}' for n, *_ in packet._fields_)})"


def _send_lines(sent: methods.Send, class_id: int) -> Iterator[str]:
  start = f"{_HEADER_NAMES[sent.header]} {sent.subchannel}"
  if not sent.data:
    yield f"{start} {sent.method:#x}"
    return
  if sent.header is methods.NONINCR:
    yield f"{start} {sent.method:#x} = " + " ".join(hex(v) for v in sent.data)
    return
  yield start
  for method, value in sent.writes(): yield f"  {_method_line(class_id, method, value)}"


def _method_line(class_id: int, method: int, value: int) -> str:
  module = _module(class_id, method)
  row = None if module is None else methods.by_address(module).get(method)
  if module is None or row is None: return f"{method:#x} = {value:#x}"
  try: shown = repr(row[0].decode(value)).partition("(")[2][:-1]
  except DecodeError: return f"{method:#x} = {value:#x}"
  return f"{methods.method_name(module, method)}({shown})"


def _module(class_id: int, method: int) -> ModuleType | None:
  if method < methods.HOST_END: return host
  return methods.declared(class_id) if class_id in methods.CLASS_IDS else None


# ---- from text


def assemble(text: str, where: str = "source") -> Stream:
  """The words that a text says. Raises DecodeError or EncodeError that name the line."""
  stream = Stream("", [])
  return _Assembler(stream, where).whole(text)


class _Assembler:
  """Lines to words."""

  def __init__(self, stream: Stream, where: str = "source") -> None:
    self.stream, self._where, self._number = stream, where, 0
    self._held: list[str] = []          # lines of a packet that is not closed yet
    self._send: tuple[str, int, int] | None = None
    self._writes: list[tuple[int, int]] = []

  def whole(self, text: str) -> Stream:
    for number, line in enumerate(text.splitlines(), 1):
      self._number = number
      if line := line.split("#")[0].rstrip(): self._line(line)
    self._finish()
    if not self.stream.kind: raise DecodeError("no .kind is said", where=self._where, hint=".kind pm4, for example")
    return self.stream

  def run(self, lines: Iterable[str]) -> list[int]:
    for line in lines: self._line(line)
    self._finish()
    return self.stream.words

  def _wrong(self, message: str, hint: str | None = None) -> DecodeError:
    return DecodeError(message, where=f"{self._where}, line {self._number}", hint=hint)

  def _finish(self) -> None:
    if self._held: raise self._wrong("a packet that is not closed")
    self._close()

  def _line(self, line: str) -> None:
    try: self._read(line)
    except (DecodeError, EncodeError, Unsupported) as error:
      if error.where and error.where.startswith(self._where): raise
      raise self._wrong(str(error).splitlines()[0]) from None

  def _read(self, line: str) -> None:
    directive = _DIRECTIVE.fullmatch(line.strip())
    if directive is not None and not self._held: return self._directive(directive[1], directive[2])
    if not self.stream.kind: raise self._wrong("no .kind is said before the first packet")
    if self.stream.kind == "pushbuffer" and not self._held: return self._pushed(line)
    self._held.append(line.strip())
    whole = " ".join(self._held)
    if whole.count("(") > whole.count(")"): return
    self._held = []
    self.stream.words += _ENCODE[self.stream.kind](self._numbers(whole).replace("( ", "("), self.stream)

  def _directive(self, name: str, rest: str) -> None:
    self._close()
    if name == "kind":
      if rest not in raw.KINDS: raise self._wrong(f"no kind is called {rest!r}", f"there are {', '.join(raw.KINDS)}")
      self.stream.kind = rest
    elif name == "class": self.stream.class_id = self._int(rest)
    elif name == "words": self.stream.words += [self._word(w) for w in rest.split()]
    elif name == "label":
      label, equals, value = (part.strip() for part in rest.partition("="))
      if not equals or _LABEL.fullmatch(label) is None: raise self._wrong("a label is .label NAME = NUMBER")
      self.stream.labels[label] = self._int(value)
    else: raise self._wrong(f"no directive is called .{name}", "there are .kind .class .label .words")

  def _int(self, text: str) -> int:
    text = self._numbers(text.strip())
    value = whole(text) if re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", text) else None
    if value is None: raise self._wrong(f"{text!r} is no number")
    return value

  def _word(self, text: str) -> int:
    value = self._int(text)
    if value >> 32: raise self._wrong(f"{text} does not fit 32 bits")
    return value

  def _numbers(self, text: str) -> str:
    """The text with numbers for labels."""
    labels = self.stream.labels
    if not labels: return text
    text = _SUM.sub(lambda m: hex(labels[m[1]] + int(m[2], 0)) if m[1] in labels else m[0], text)
    return _NAME.sub(lambda m: hex(labels[m[0]]) if m[0] in labels else m[0], text)

  # ---- pushbuffers

  def _pushed(self, line: str) -> None:
    text = self._numbers(line.strip())
    first, _, rest = text.partition(" ")
    if first in _HEADERS:
      self._close()
      channel, _, more = rest.strip().partition(" ")
      at, equals, data = (p.strip() for p in more.partition("="))
      self._send = first, self._int(channel), self._int(at) if at else -1
      if equals: self._writes = [(self._send[2], self._word(w)) for w in data.split()]
      return
    if self._send is None:
      self.stream.words += _control(text)
      return
    if (m := _RAW_METHOD.fullmatch(text)) is not None: self._writes.append((int(m[1], 16), self._word(m[2])))
    elif (m := _METHOD.fullmatch(text)) is not None and m[1]: self._writes.append(self._method(m))
    else:
      self._close()
      self.stream.words += _control(text)

  def _method(self, m: re.Match[str]) -> tuple[int, int]:
    module = next((x for x in self._modules() if x.NAME == m[1]), None)
    cls: type[Method] | None = None if module is None else getattr(module, m[2], None)
    if module is None or cls is None: raise self._wrong(f"no method is called {m[1]}.{m[2]}")
    made = wire_text.parse(f"{m[2]}({m[4]})", [cls])  # type: ignore[list-item]  # it asks for fields alone
    return cls.OFFSET + int(m[3] or 0) * cls.APART, made.encode()[0]

  def _modules(self) -> Iterator[ModuleType]:
    yield host
    ids = [self.stream.class_id] if self.stream.class_id in methods.CLASS_IDS else []
    for class_id in (*ids, *(c for c in methods.CLASS_IDS if c not in ids)): yield methods.declared(class_id)

  def _close(self) -> None:
    """The words of a header and of what stands below it."""
    if self._send is None: return
    (name, channel, at), writes = self._send, self._writes
    self._send, self._writes = None, []
    method = writes[0][0] if writes and at < 0 else at
    if method < 0: raise self._wrong(f"{name} without a method")
    made = methods.Send(_HEADERS[name], channel, method, tuple(v for _, v in writes))
    for (wanted, _), (given, _) in zip(made.writes(), writes):
      if wanted != given: raise self._wrong(f"{name} sends to {wanted:#x} there, and {given:#x} is written")
    self.stream.words += made.encode()


_CONTROLS: Final = {cls.__name__: cls for cls, _ in methods._CONTROLS}


def _control(text: str) -> list[int]:
  if text == "NOP": return [methods.NOP]
  made = wire_text.parse(text, _CONTROLS.values())
  return made.encode()


# ---- the other kinds


def _pm4(text: str, stream: Stream) -> list[int]: return pm4.encode(pm4.parse(text, amd.declared(stream.class_id)))


def _sdma(text: str, stream: Stream) -> list[int]:
  return sdma.encode(sdma.parse(text, amd.copies(stream.class_id)))


_ENTRY: Final = re.compile(r"GP_ENTRY\((.*)\)")
_ASSIGNED: Final = re.compile(r"(?a)(\w+)=(\([^()]*\)|[^,()\s]+)")


def _gpfifo(text: str, stream: Stream) -> list[int]:
  m = _ENTRY.fullmatch(text.strip())
  if m is None: raise DecodeError(f"{text[:60]!r} is no GP_ENTRY(...)")
  given = dict(_ASSIGNED.findall(m[1]))
  known = {"GET", "LENGTH", "FETCH", "LEVEL", "SYNC", "OPCODE", "OPERAND"}
  if wrong := given.keys() - known: raise DecodeError(f"GP_ENTRY has no {', '.join(sorted(wrong))}")
  entry: gpfifo.Entry
  if "OPCODE" in given:
    names = host.GP_ENTRY1_OPCODE.__members__
    opcode = int(names[given["OPCODE"]]) if given["OPCODE"] in names else _number(given["OPCODE"])
    entry = gpfifo.Control(opcode, _number(given.get("OPERAND", "0")), "SYNC" in given)
  else:
    if not {"GET", "LENGTH"} <= given.keys(): raise DecodeError("GP_ENTRY wants GET and LENGTH, or OPCODE")
    entry = gpfifo.Segment(_number(given["GET"]), _number(given["LENGTH"]), "FETCH" in given, "LEVEL" in given,
                           "SYNC" in given)
  value = entry.encode()
  return [value & 0xFFFFFFFF, value >> 32]


def _number(text: str) -> int:
  if (value := whole(text)) is None: raise DecodeError(f"{text!r} is no number")
  return value


def _qmd(text: str, stream: Stream) -> list[int]:
  if not stream.class_id: raise DecodeError("a QMD is a compute class's: say .class")
  made: Any = wire_text.parse(text, qmd.versions(stream.class_id).values())
  return qmd.encode(made)


def _aql(text: str, stream: Stream) -> list[int]:
  m = wire_text.WHOLE.fullmatch(text)
  cls: Any = None if m is None else next((c for c in aql.KINDS.values() if c.__name__ == m[1]), None)
  if m is None or cls is None: raise DecodeError(f"{text[:60]!r} is no AQL packet")
  made = cls()
  kinds = {name: kind for name, kind, *_ in cls._fields_}
  for name, value in _ASSIGNED.findall(m[2]):
    if name not in kinds: raise DecodeError(f"{m[1]} has no field {name}")
    _put(made, name, kinds[name], value)
  return list(memoryview(bytes(made)).cast("I"))


def _put(made: Any, name: str, kind: Any, text: str) -> None:
  values = [_number(v.strip()) for v in text.strip("()").split(",") if v.strip()]
  count = getattr(kind, "_length_", 1)
  one = getattr(kind, "_type_", kind) if count > 1 else kind
  if len(values) != count: raise DecodeError(f"{len(values)} values for {count}", where=name)
  for i, value in enumerate(values):
    if value >> 8 * ctypes.sizeof(one): raise EncodeError(f"{value:#x} does not fit", where=name)
    if issubclass(one, ctypes.Structure): (getattr(made, name)[i] if count > 1 else getattr(made, name)).handle = value
    elif count > 1: getattr(made, name)[i] = value
    else: setattr(made, name, value)


_ENCODE: Final[dict[str, Callable[[str, Stream], list[int]]]] = {
  "pm4": _pm4, "sdma": _sdma, "aql": _aql, "gpfifo": _gpfifo, "qmd": _qmd}
