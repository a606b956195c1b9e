"""Questions about textures, samplers and surfaces as LLVM IR: headers are looked at where they lie."""
from __future__ import annotations

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory import access
from tinyhw.emulator.jit.ptx.memory.moves import place_name
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Info
from tinyhw.emulator.jit.ptx.routine import Routine
from tinyhw.emulator.jit.ptx.turns import each
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.texture import objects, queries
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.isa.ptx.forms import Form


def _look(r: Routine, at: Value, size: int) -> Value:
  return r.ask(place_name("global"), at, r.number(size), r.number(Access.READ))


def _sampler(r: Routine, bits: Value) -> Value:
  """A sampler's bits, as an integer, which must be one's."""
  r.need(bits & ((1 << 64) - 1 ^ objects.MEANT) == 0)
  for k in range(3): r.need((bits >> 3 * k & 7) < len(objects.MODES))
  return bits


def _answered(name: str, own: bool, level: bool) -> Routine:
  """What a texture or surface, or a sampler of its `own`, is like."""
  r = Routine(".".join(["query", name, *["own"] * own, *["level"] * level]), ("handle", *["level"] * level, "slot"))
  first = r.load(_look(r, r["handle"], 8))
  if own:
    bits = _sampler(r, first)

    def number(name: str) -> Value: return bits
  else:
    at = r.o.where(first == objects.MAGIC, r["handle"], first)
    r.need(at != 0)
    host = _look(r, at, objects.SIZE)
    r.need(r.load(host) == objects.MAGIC)

    def number(name: str) -> Value:
      at, size = objects.place_of(name)
      return convert(r.load(host + at, operands.unsigned(size)), U64)
    channels = number("channels")
    known = channels == objects.CHANNELS[0]
    for n in objects.CHANNELS[1:]: known = known | (channels == n)
    r.need(known & (number("kind") < len(objects.FORMATS)) & (number("levels") - 1 < objects.LEVELS))
    _sampler(r, number("sampler"))
  found = queries.answer(r.o, name, number, convert(r["level"], U32) if level else None)
  r.store(r["slot"], convert(found, U64))
  return r


@access.emits("txq", "suq")
def query(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """What a texture, sampler or surface is like."""
  if g.watch is not None and g.watch.tracks: raise Untranslatable("of what is written, too: headers have no cells")
  one = queries.Query(g.code, line, form)
  if one.own and not one.sampler: raise Untranslatable("of a sampler")
  given: list[Value] = [one.handle(g), *([one.level(g)] if one.level is not None else [])]
  found, = each(g, line, _answered(one.name, one.own, one.level is not None), given, [U32])
  one.write(g, found)
