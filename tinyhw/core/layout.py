"""Declared packets, registers and structs: one declaration gives encode, decode, text, diff and fuzz.

    class WRITE_DATA(Packet, dwords=4):
      dst_sel: int = bits(0, 11, 8)
      address: int = u64(1, shift=2, hi=61)

A declaration that contradicts itself (overlap, past the end, enum too wide, default out of range) raises `LayoutError`
when the class is made, that is at import. Encoding never truncates; decoding refuses bits that nobody declared. Encoder
and decoder of each class are compiled from the declaration on first use, since a queue meets them for each packet.

The compiled decoder of a packet costs about 0.6 us in Python, with the strict checks in it.
"""
from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

from tinyhw.core.errors import DecodeError, EncodeError, LayoutError

_REST = object()


@dataclass(frozen=True, slots=True)
class Field:
  """Where one value lives: bit `lo` (from the start of the body), `width` bits, stored shifted right by `shift`.

  `unused` are bits that the chip has nothing for: whatever is in them has no effect, and they are shown where they are
  set.
  """
  lo: int
  width: int
  default: int | None
  shift: int
  enum: type[IntEnum] | None
  name: str = ""
  unused: bool = False

  @property
  def mask(self) -> int: return ((1 << self.width) - 1) << self.lo

  @property
  def limit(self) -> int:
    """The largest value that the field holds, in the caller's units (before the shift)."""
    return ((1 << self.width) - 1) << self.shift

  def show(self, value: int) -> str:
    if self.enum is not None and value in self.enum._value2member_map_: return self.enum(value).name
    return hex(value) if value > 9 else str(value)


def bits(dword: int, hi: int, lo: int, *, default: int | None = None, shift: int = 0,
         enum: type[IntEnum] | None = None) -> Any:
  """Bits hi..lo (inclusive, hi may pass 31 into the next dwords) of `dword`.

  `shift` counts low bits of the value that are always zero and are not stored.
  """
  return Field(dword * 32 + lo, hi - lo + 1, default, shift, enum)


def unused(dword: int, hi: int, lo: int) -> Any:
  """Bits that are written and have no effect; who declares them says how that is known."""
  return Field(dword * 32 + lo, hi - lo + 1, 0, 0, None, unused=True)


def u32(dword: int, *, default: int | None = None) -> Any:
  """A whole dword."""
  return bits(dword, 31, 0, default=default)


def rest(*, default: tuple[int, ...] = ()) -> Any:
  """The tail of a packet whose length its header or a count field gives: any number of dwords, kept as a tuple.

  Empty when it is not given; `default=()` in a declaration tells type checkers so.
  """
  if default: raise LayoutError(f"a tail's default is empty, not {default}")
  return _REST


def u64(dword: int, *, default: int | None = None, shift: int = 0, hi: int = 63) -> Any:
  """A value in two dwords, low one first."""
  return bits(dword, hi, 0, default=default, shift=shift)


def _collect(cls: type, inherited: tuple[Field, ...], total_bits: int) -> tuple[Field, ...]:
  """Check the declared fields of a class and return them in bit order."""
  names = {f.name for f in inherited}
  fields, used = list(inherited), sum(f.mask for f in inherited)
  for name, f in list(vars(cls).items()):
    if not isinstance(f, Field): continue
    where = f"{cls.__name__}.{name}"
    if name in names: raise LayoutError("declared again in a subclass", where=where)
    if f.width <= 0: raise LayoutError(f"has {f.width} bits", where=where)
    if f.lo + f.width > total_bits:
      raise LayoutError(f"bit {f.lo + f.width - 1} is past the end of {total_bits // 32} dwords", where=where)
    if used & f.mask:
      other = next(o.name for o in fields if o.mask & f.mask)
      raise LayoutError(f"overlaps {other}", where=where)
    if f.enum is not None and any(not 0 <= e.value <= f.limit for e in f.enum):
      raise LayoutError(f"enum {f.enum.__name__} does not fit {f.width} bits", where=where)
    if f.default is not None and (not 0 <= f.default <= f.limit or f.default & ((1 << f.shift) - 1)):
      raise LayoutError(f"default {f.default:#x} does not fit {f.width} bits (shift {f.shift})", where=where)
    used |= f.mask
    fields.append(Field(f.lo, f.width, f.default, f.shift, f.enum, name, f.unused))
    delattr(cls, name)  # the slot of the instance must not be shadowed by the declaration
  return tuple(sorted(fields, key=lambda f: f.lo))


def _misfit(cls: type, fields: Sequence[Field], values: Sequence[Any]) -> EncodeError:
  """Name the field that made the compiled encoder refuse."""
  for f, value in zip(fields, values, strict=True):
    where = f"{cls.__name__}.{f.name}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
      if not isinstance(value, bool): return EncodeError(f"{value!r} is not an integer", where=where)
    number = int(value)
    if not 0 <= number <= f.limit or number & ((1 << f.shift) - 1):
      return EncodeError(f"{number:#x} does not fit {f.width} bits (shift {f.shift})", where=where)
  return EncodeError("a dword of its tail is not an integer of 32 bits", where=cls.__name__)


def _init_source(fields: tuple[Field, ...], rest: str | None) -> str:
  """A keyword for each field; `rest` names the tail."""
  params, body = [], []
  for f in fields:
    params.append(f.name if f.default is None else f"{f.name}={f.default}")
    body.append(f"  self.{f.name} = {f.name}")
  if rest:
    params.append(f"{rest}=()")
    body.append(f"  self.{rest} = tuple({rest})")
  return f"def __init__(self{', *, ' + ', '.join(params) if params else ''}):\n" + ("\n".join(body) or "  pass")


def _encode_source(dwords: int, fields: tuple[Field, ...], rest: str | None) -> str:
  reads = "".join(f"  v{i} = self.{f.name}\n" for i, f in enumerate(fields))
  tests = [f"0 <= v{i} <= {f.limit}" + (f" and not v{i} & {(1 << f.shift) - 1}" if f.shift else "")
           for i, f in enumerate(fields)]
  terms: list[list[str]] = [[] for _ in range(dwords)]
  for i, f in enumerate(fields):
    for d in range(f.lo // 32, (f.lo + f.width - 1) // 32 + 1):
      up = f.lo - 32 * d - f.shift  # where the value's bit 0 stands relative to this dword
      term = f"v{i} << {up}" if up > 0 else f"v{i} >> {-up}" if up < 0 else f"v{i}"
      terms[d].append(f"({term})" if f.lo >= 32 * d and f.lo + f.width <= 32 * (d + 1) else f"({term} & 0xFFFFFFFF)")
  words = ", ".join(" | ".join(t) if t else "0" for t in terms)
  if rest:
    reads += f"  tail = self.{rest}\n"
    tests.append(f"(not tail or 0 <= min(tail) and max(tail) <= {0xFFFFFFFF})")
    words += ", *tail" if words else "*tail"
  values = "".join(f"v{i}, " for i in range(len(fields)))
  return (f"def encode(self):\n{reads}  try:\n    if {' and '.join(tests) or 'True'}:\n      return [{words}]\n"
          f"  except TypeError: pass\n  raise _misfit(type(self), _fields, ({values}))")


def _strays(dwords: int, fields: tuple[Field, ...]) -> tuple[int, ...]:
  """The bits of each dword that nobody declares."""
  stray = [0xFFFFFFFF] * dwords
  for f in fields:
    for d in range(f.lo // 32, (f.lo + f.width - 1) // 32 + 1): stray[d] &= ~(f.mask >> 32 * d) & 0xFFFFFFFF
  return tuple(stray)


def _decode_source(dwords: int, fields: tuple[Field, ...], rest: str | None) -> str:
  parts = [f"  p.{f.name} = {_taken(f)}" for f in fields]
  refuse = " or ".join(f"w[{d}] & {m}" for d, m in enumerate(_strays(dwords, fields)) if m)
  if rest: parts.append(f"  p.{rest} = tuple(w[{dwords}:])")
  return "def _decode(cls, w):\n" + (f"  if {refuse}: raise _stray(cls, w, _masks)\n" if refuse else "") + \
    "  p = cls.__new__(cls)\n" + "\n".join(parts) + "\n  return p"


def _compile(cls: type, name: str, source: str, **space: Any) -> None:
  """Make a function of a class of straight code over its fields."""
  exec(compile(source, f"<layout of {cls.__name__}>", "exec"), space)
  setattr(cls, name, classmethod(space[name]) if name == "_decode" else space[name])


LONG = 32    # dwords from which on a layout is decoded by chunks
_CHUNK = 8   # dwords of them
_KEPT = 2048  # chunks of a place that are kept


class _Chunks:
  """Decodes a long layout by chunks of its dwords, of which most come again: each is known by its words, as the values
  of its fields and as text."""

  def __init__(self, cls: type[Any], dwords: int, fields: tuple[Field, ...], stray: tuple[int, ...]) -> None:
    self._cls, self._stray = cls, stray
    cuts = [d for d in range(0, dwords, _CHUNK) if not any(f.lo < 32 * d < f.lo + f.width for f in fields)] + [dwords]
    self._places: list[tuple[int, int, dict[tuple[int, ...], tuple[dict[str, int], str]], Callable[..., Any]]] = []
    for first, end in zip(cuts, cuts[1:]):
      inside = [f for f in fields if 32 * first <= f.lo < 32 * end]
      space: dict[str, Any] = {}
      strays = " or ".join(f"w[{d}] & {stray[d + first]}" for d in range(end - first) if stray[d + first])
      values = "".join(f"  v{i} = {_taken(f, first)}\n" for i, f in enumerate(inside))
      pairs = ", ".join(f"{f.name!r}: v{i}" for i, f in enumerate(inside))
      shown = _all_shown(inside, [f"v{i}" for i in range(len(inside))], space)
      source = f"def made(w):\n{f'  if {strays}: return None' if strays else ''}\n{values}" \
               f"  return {{{pairs}}}, f'{shown}'"
      exec(compile(source, f"<layout of {cls.__name__}>", "exec"), space)
      self._places.append((first, end, {}, space["made"]))

  def _found(self, words: Sequence[int]) -> Iterator[tuple[dict[str, int], str]]:
    for first, end, known, made in self._places:
      found = known.get(chunk := tuple(words[first:end]))
      if found is None:
        if (found := made(chunk)) is None: raise _stray(self._cls, words, self._stray)
        if len(known) >= _KEPT: known.clear()
        known[chunk] = found
      yield found

  def decode(self, words: Sequence[int]) -> Any:
    """See `_Layout._decode`."""
    packet = object.__new__(self._cls)
    values = packet.__dict__
    for found, _ in self._found(words): values.update(found)
    return packet

  def text(self, words: Sequence[int]) -> str:
    """As repr of what they are decoded to."""
    return f"{self._cls.__name__}({', '.join([text for _, text in self._found(words) if text])})"


_CHUNKED: dict[type[Any], _Chunks] = {}  # of the long layouts that were used


def _taken(f: Field, first: int = 0) -> str:
  """The expression of a field's value over dwords `w`, of which the first is number `first`."""
  chunks = []
  for d in range(f.lo // 32, (f.lo + f.width - 1) // 32 + 1):
    lo, hi = max(f.lo, 32 * d), min(f.lo + f.width, 32 * (d + 1))
    take = f"(w[{d - first}] >> {lo - 32 * d} & {(1 << (hi - lo)) - 1})" if hi - lo < 32 else f"w[{d - first}]"
    up = lo - f.lo + f.shift
    chunks.append(f"({take} << {up})" if up else take)
  return " | ".join(chunks)


def _shown(f: Field, value: str, space: dict[str, Any]) -> str:
  """`name=value` of a field for an f-string, as `Field.show` has it; `space` gets what it goes by."""
  plain = f"hex(v) if (v := {value}) > 9 else str(v)"
  if f.enum is not None:
    space[f"named_{f.name}"] = {n: member.name for n, member in f.enum._value2member_map_.items()}
    plain = f"named_{f.name}.get({value}) or ({plain})"
  return f"{f.name}={{{plain}}}"


def _all_shown(fields: Sequence[Field], values: Sequence[str], space: dict[str, Any]) -> str:
  """The fields for an f-string, one behind the other; those that are unused only where they are not 0."""
  text = ""
  for f, value in zip(fields, values, strict=True):
    if f.unused:
      assert text, f"{f.name}: an unused field has a used one before it"
      space[f"unused_{f.name}"] = lambda found, name=f.name: f", {name}={found:#x}" if found else ""
      text += f"{{unused_{f.name}({value})}}"
    else: text += f"{', ' if text else ''}{_shown(f, value, space)}"
  return text


def words_text(cls: type[Any], words: Sequence[int]) -> str:
  """The text of a packet, register or method by its words: repr of what they are decoded to. Raises DecodeError for
  undeclared bits."""
  if (chunks := _CHUNKED.get(cls)) is not None: return chunks.text(words)
  if cls.DWORDS > 1 or cls.REST: return repr(cls._decode(words))
  return (_WORD_PRINTERS.get(cls) or _word_printer(cls))(words)


_WORD_PRINTERS: dict[type[Any], Callable[[Sequence[int]], str]] = {}  # a memo of a pure function


def _word_printer(cls: type[Any]) -> Callable[[Sequence[int]], str]:
  stray = 0xFFFFFFFF & ~sum(f.mask for f in cls.FIELDS)
  space: dict[str, Any] = {"_stray": _stray, "_cls": cls, "_masks": (stray,)}
  shown = _all_shown(cls.FIELDS, [f"({_taken(f)})" for f in cls.FIELDS], space)
  source = f"def text(w):\n{f'  if w[0] & {stray}: raise _stray(_cls, w, _masks)' if stray else ''}\n" \
           f"  return f'{cls.__name__}({shown})'"
  exec(compile(source, f"<layout of {cls.__name__}>", "exec"), space)
  made: Callable[[Sequence[int]], str] = space["text"]
  return _WORD_PRINTERS.setdefault(cls, made)


def _compile_on_use(cls: type, dwords: int, fields: tuple[Field, ...], rest: str | None = None) -> None:
  """Put off `_compile` until a function is first used: tables declare hundreds of classes, a program meets a dozen, and
  who reads packets makes none."""
  def init(self: Any, **values: Any) -> None:
    _compile(cls, "__init__", _init_source(fields, rest))
    getattr(cls, "__init__")(self, **values)  # noqa: B009  (the compiled one, which mypy cannot see)

  def encode(self: Any) -> Any:
    _compile(cls, "encode", _encode_source(dwords, fields, rest), _misfit=_misfit, _fields=fields)
    return cast(Any, cls).encode(self)

  def decode(_: type, words: Sequence[int]) -> Any:
    masks = _strays(dwords, fields)
    if dwords >= LONG and not rest:
      chunks = _CHUNKED[cls] = _Chunks(cls, dwords, fields, masks)
      setattr(cls, "_decode", classmethod(lambda _, words: chunks.decode(words)))  # noqa: B010  (as above)
    else: _compile(cls, "_decode", _decode_source(dwords, fields, rest), _stray=_stray, _masks=masks)
    return cast(Any, cls)._decode(words)

  for name, stub in (("__init__", init), ("encode", encode), ("_decode", classmethod(decode))): setattr(cls, name, stub)


def _stray(cls: type, words: Sequence[int], masks: Sequence[int]) -> DecodeError:
  d = next(i for i, m in enumerate(masks) if words[i] & m)
  return DecodeError(f"undeclared bits set in dword {d}: {words[d] & masks[d]:#010x}", where=cls.__name__, words=words)


def _dwords(words: Sequence[int]) -> str: return f"({', '.join(map(hex, words))})"


_PRINTERS: dict[type[Any], Callable[[Any], str]] = {}  # a memo of a pure function


def _printer(cls: type[Any]) -> Callable[[Any], str]:
  """`NAME(field=value, ...)` of a class as one expression over its fields, each as `Field.show` has it."""
  space: dict[str, Any] = {"_dwords": _dwords}
  parts = [shown] if (shown := _all_shown(cls.FIELDS, [f"p.{f.name}" for f in cls.FIELDS], space)) else []
  if cls.REST: parts.append(f"{cls.REST}={{_dwords(p.{cls.REST})}}")
  made: Callable[[Any], str] = eval(f"lambda p: f'{cls.__name__}({', '.join(parts)})'", space)
  return _PRINTERS.setdefault(cls, made)


class _Layout:
  """What packets and registers share; not for use by itself."""
  DWORDS: ClassVar[int] = 0
  FIELDS: ClassVar[tuple[Field, ...]] = ()
  REST: ClassVar[str | None] = None

  @property
  def tail(self) -> tuple[int, ...]:
    """The dwords after the declared ones; empty unless the packet has a `rest()`."""
    return cast("tuple[int, ...]", getattr(self, self.REST)) if self.REST else ()

  def encode(self) -> list[int]:
    """The dwords. Raises EncodeError, naming the field, for a value that does not fit."""
    raise LayoutError("is not a declared layout", where=type(self).__name__)

  @classmethod
  def _decode(cls, words: Sequence[int]) -> Self:
    raise LayoutError("is not a declared layout", where=cls.__name__)

  def items(self) -> Iterator[tuple[Field, int]]:
    """Each field with its value, in bit order."""
    for f in self.FIELDS: yield f, getattr(self, f.name)

  def to_dict(self) -> dict[str, int | str | list[int]]:
    """Field name to value; values of an enum by their name."""
    named: dict[str, int | str | list[int]] = {
      f.name: f.enum(v).name if f.enum is not None and v in f.enum._value2member_map_ else int(v)
      for f, v in self.items()}
    if self.REST: named[self.REST] = list(self.tail)
    return named

  def diff(self, other: Self) -> list[str]:
    """One line for each field that differs: `name: ours != theirs`."""
    if type(self) is not type(other): return [f"{type(self).__name__} != {type(other).__name__}"]
    pairs = ((f, v, getattr(other, f.name)) for f, v in self.items())
    lines = [f"{f.name}: {f.show(ours)} != {f.show(theirs)}" for f, ours, theirs in pairs if ours != theirs]
    if self.tail != other.tail: lines.append(f"{self.REST}: {_dwords(self.tail)} != {_dwords(other.tail)}")
    return lines

  @classmethod
  def fuzz(cls, rng: random.Random) -> Self:
    """A random legal value of each field."""
    def value(f: Field) -> int:
      if f.enum is not None and rng.random() < 0.8: return rng.choice(list(f.enum)).value
      return rng.choice((0, f.limit, rng.getrandbits(f.width) << f.shift))
    values: dict[str, Any] = {f.name: value(f) for f in cls.FIELDS}
    if cls.REST: values[cls.REST] = tuple(rng.getrandbits(32) for _ in range(rng.randrange(6)))
    return cls(**values)

  def __eq__(self, other: object) -> bool:
    return type(self) is type(other) and self.__dict__ == other.__dict__

  def __hash__(self) -> int: return hash((type(self), *(v for _, v in self.items()), self.tail))

  def __repr__(self) -> str: return (_PRINTERS.get(type(self)) or _printer(type(self)))(self)


@dataclass_transform(kw_only_default=True, field_specifiers=(bits, unused, u32, u64, rest))
class Packet(_Layout):
  """Base of packet bodies. Subclass with `dwords=`; class attributes (an opcode, say) may stand beside the fields.

  A subclass of a declared packet inherits its fields, so that a common header is written once.
  """

  def __init_subclass__(cls, *, dwords: int | None = None) -> None:
    if dwords is None: return  # a family's base, without a body of its own
    if dwords < cls.DWORDS: raise LayoutError(f"{dwords} dwords are fewer than its base has", where=cls.__name__)
    inherited = cls.FIELDS
    for name in [n for n, v in vars(cls).items() if v is _REST]:
      if cls.REST: raise LayoutError(f"a second tail beside {cls.REST}", where=f"{cls.__name__}.{name}")
      cls.REST = name
      delattr(cls, name)
    cls.DWORDS, cls.FIELDS = dwords, _collect(cls, inherited, dwords * 32)
    _compile_on_use(cls, dwords, cls.FIELDS, cls.REST)

  @classmethod
  def decode(cls, words: Sequence[int]) -> Self:
    """Raises DecodeError for a wrong number of dwords or undeclared bits."""
    if len(words) < cls.DWORDS or len(words) > cls.DWORDS and not cls.REST:
      raise DecodeError(f"{len(words)} dwords, expected {cls.DWORDS}", where=cls.__name__, words=words)
    return cls._decode(words)


@dataclass_transform(kw_only_default=True, field_specifiers=(bits,))
class Register(_Layout):
  """Base of 32-bit registers. `offset` is the dword offset as the vendor's headers give it, segment base included.

  Fields have the default 0 unless they say otherwise, so a register is written by the fields that matter.
  """
  OFFSET: ClassVar[int] = -1

  def __init_subclass__(cls, *, offset: int) -> None:
    for name, f in list(vars(cls).items()):
      if isinstance(f, Field) and f.default is None: setattr(cls, name, Field(f.lo, f.width, 0, f.shift, f.enum))
    cls.OFFSET, cls.DWORDS, cls.FIELDS = offset, 1, _collect(cls, (), 32)
    _compile_on_use(cls, 1, cls.FIELDS)

  def value(self) -> int:
    """The register's 32 bits."""
    return self.encode()[0]

  @classmethod
  def decode(cls, value: int) -> Self:
    """Raises DecodeError for undeclared bits."""
    return cls._decode((value,))


@dataclass_transform(kw_only_default=True, field_specifiers=(bits,))
class Method(Register, offset=-1):
  """Base of the methods of NVIDIA's classes: 32-bit words that a pushbuffer sends to an engine.

  `offset` is in bytes, as the vendor's headers give it. The `copies` of an array are `apart` bytes from each other.
  """
  APART: ClassVar[int] = 0
  COPIES: ClassVar[int] = 1

  def __init_subclass__(cls, *, offset: int, apart: int = 0, copies: int = 1) -> None:
    super().__init_subclass__(offset=offset)
    cls.APART, cls.COPIES = apart, copies


@dataclass_transform(kw_only_default=True, field_specifiers=(bits,))
class Word(Register, offset=-1):
  """Base of 32-bit words that stand in memory: headers, entries."""

  def __init_subclass__(cls) -> None: super().__init_subclass__(offset=-1)


S = TypeVar("S", bound="Struct")


def _plain(value: object) -> object:
  if isinstance(value, (ctypes.Structure, ctypes.Union)):
    return {name: _plain(getattr(value, name)) for name in _names(type(value))}
  if isinstance(value, ctypes.Array): return [_plain(v) for v in value]
  return value


def _names(cls: type[Any]) -> list[str]:
  """Field names in order, paddings left out."""
  names: list[str] = []
  for base in reversed(cls.__mro__):
    names += [str(row[0]) for row in vars(base).get("_fields_", ()) if not str(row[0]).startswith(("PADDING_", "_pad"))]
  return names


def _fill(value: Any, rng: random.Random) -> None:
  """Random bytes into a ctypes aggregate."""
  raw = (ctypes.c_uint8 * ctypes.sizeof(value)).from_buffer(value)
  ctypes.memmove(raw, rng.randbytes(len(raw)), len(raw))


class _Text:
  """Text, diff and fuzz of a ctypes aggregate."""

  def to_dict(self) -> dict[str, object]:
    """Field name to value; nested aggregates as dicts, arrays as lists."""
    return cast("dict[str, object]", _plain(self))

  def text(self) -> str:
    def show(v: object) -> str: return hex(v) if isinstance(v, int) and v > 9 else str(v)
    return f"{type(self).__name__}({', '.join(f'{k}={show(v)}' for k, v in self.to_dict().items())})"

  def diff(self, other: object) -> list[str]:
    """One line for each field that differs."""
    if type(self) is not type(other): return [f"{type(self).__name__} != {type(other).__name__}"]
    mine, theirs = self.to_dict(), other.to_dict()
    return [f"{k}: {v!r} != {theirs[k]!r}" for k, v in mine.items() if v != theirs[k]]

  @classmethod
  def fuzz(cls, rng: random.Random) -> Self:
    value = cls()
    _fill(value, rng)
    return value

  __repr__ = text


class Struct(_Text, ctypes.Structure):
  """Base of generated C structs: a ctypes.Structure with text, diff and fuzz."""


class Union(_Text, ctypes.Union):
  """Base of generated C unions."""
