"""What NVIDIA's methods do; see `queues.effects`. Host semaphores as `dev_pbdma.ref` has them, copies by the copy
class's methods, launches by their QMD."""
from __future__ import annotations

import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.layout import Packet
from tinyhw.queues.effects import ALL_CACHES, Caches, Clock, Does, Effect
from tinyhw.wire import qmd

RELEASES: Final = 3  # semaphores that a QMD can release, at most
_ACQUIRES: Final = {host.SEM_EXECUTE_OPERATION.ACQUIRE: "==", host.SEM_EXECUTE_OPERATION.ACQ_STRICT_GEQ: "strict >=",
                    host.SEM_EXECUTE_OPERATION.ACQ_CIRC_GEQ: "circular >=", host.SEM_EXECUTE_OPERATION.ACQ_AND: "&",
                    host.SEM_EXECUTE_OPERATION.ACQ_NOR: "nor"}
_LINES: Final = 1024
_TIME_AT: Final = 8  # bytes from a semaphore to its timestamp
KEPT: Final = 1 << 12  # words whose fields are kept
IDLE: Final = Effect(Does.IDLE)
_RELEASE: Final = Effect(Does.RELEASE, value=ALL_CACHES)
_ADDRESS_LOW, _ADDRESS_HIGH, _PAYLOAD_LOW, _PAYLOAD_HIGH = (
  (-1, m.OFFSET) for m in (host.SEM_ADDR_LO, host.SEM_ADDR_HI, host.SEM_PAYLOAD_LO, host.SEM_PAYLOAD_HI))

Values = dict[tuple[int, int], int]
"""Method values by subchannel and byte address."""
Effects = Iterator[Effect]


@functools.lru_cache(KEPT)
def _execute(word: int) -> tuple[str, int, str, bool, bool]:
  """SEM_EXECUTE: how it compares where it acquires, bytes of its payload, how it changes what is there, whether it
  waits until idle, and whether it stores the time."""
  p: Any = host.SEM_EXECUTE.decode(word)
  names = host.SEM_EXECUTE_REDUCTION._value2member_map_
  reduction = host.SEM_EXECUTE_REDUCTION(p.REDUCTION).name if p.REDUCTION in names else ""
  return (_ACQUIRES.get(p.OPERATION, ""), 8 if p.PAYLOAD_SIZE == host.SEM_EXECUTE_PAYLOAD_SIZE._64BIT else 4,
          reduction if p.OPERATION == host.SEM_EXECUTE_OPERATION.REDUCTION else "", bool(p.RELEASE_WFI),
          bool(p.RELEASE_TIMESTAMP))


def semaphore(values: Values, word: int) -> list[Effect]:
  """SEM_EXECUTE with the state of the other SEM methods."""
  acquires, size, how, waits, stamps = _execute(word)
  sent = values.get
  address = sent(_ADDRESS_LOW, 0) & ~3 | (sent(_ADDRESS_HIGH, 0) & 0xFF) << 32
  value = sent(_PAYLOAD_LOW, 0)
  if size == 8: value |= sent(_PAYLOAD_HIGH, 0) << 32
  if acquires: return [Effect(Does.WAIT, address, size, value, acquires)]
  found = [IDLE, _RELEASE, Effect(Does.SIGNAL, address, size, value, how)] if waits else \
    [_RELEASE, Effect(Does.SIGNAL, address, size, value, how)]
  if stamps: found.append(Effect(Does.STAMP, address + _TIME_AT, 8))
  return found


@functools.cache
def _offsets(module: ModuleType) -> dict[str, int]:
  """Where a copy class's methods are."""
  return {name: getattr(module, name).OFFSET for name in (
    "LINE_LENGTH_IN", "LINE_COUNT", "SET_REMAP_COMPONENTS", "OFFSET_IN_UPPER", "OFFSET_IN_LOWER", "PITCH_IN",
    "OFFSET_OUT_UPPER", "OFFSET_OUT_LOWER", "PITCH_OUT", "SET_SEMAPHORE_PAYLOAD", "SET_SEMAPHORE_PAYLOAD_UPPER",
    "SET_SEMAPHORE_A", "SET_SEMAPHORE_B") if hasattr(module, name)}


@functools.lru_cache(KEPT)
def _launched(module: ModuleType, word: int) -> Any:
  """LAUNCH_DMA's fields."""
  m: Any = module
  return m.LAUNCH_DMA.decode(word)


def copied(module: ModuleType, values: Values, channel: int, word: int) -> tuple[Effect, ...]:
  """LAUNCH_DMA of a copy class."""
  sent = values.get
  return _copied(module, word, tuple([sent((channel, at), 0) for at in _offsets(module).values()]))


@functools.lru_cache(KEPT)
def _copied(module: ModuleType, word: int, sent: tuple[int, ...]) -> tuple[Effect, ...]:
  return tuple(copy(module, {(0, at): value for at, value in zip(_offsets(module).values(), sent)}, 0, word))


def copy(module: ModuleType, values: Values, channel: int, word: int) -> Effects:
  """The same, one by one."""
  m: Any = module
  p, offsets = _launched(module, word), _offsets(module)
  def sent(name: str) -> int: return values.get((channel, offsets[name]), 0)
  if p.DATA_TRANSFER_TYPE == m.LAUNCH_DMA_DATA_TRANSFER_TYPE.NON_PIPELINED: yield IDLE
  if p.DATA_TRANSFER_TYPE != m.LAUNCH_DMA_DATA_TRANSFER_TYPE.NONE:
    length, lines = sent("LINE_LENGTH_IN"), sent("LINE_COUNT") if p.MULTI_LINE_ENABLE else 1
    source, target = length, length
    if p.REMAP_ENABLE:
      r = m.SET_REMAP_COMPONENTS.decode(sent("SET_REMAP_COMPONENTS"))
      unit = int(r.COMPONENT_SIZE) + 1
      source *= unit * (int(r.NUM_SRC_COMPONENTS) + 1)
      target *= unit * (int(r.NUM_DST_COMPONENTS) + 1)
    read = not p.REMAP_ENABLE or any(pick.name.startswith("SRC") for pick in _picks(m, sent("SET_REMAP_COMPONENTS")))
    if read: yield from _lines(Does.READ, sent("OFFSET_IN_UPPER") << 32 | sent("OFFSET_IN_LOWER"), source, lines,
                               sent("PITCH_IN"))
    yield from _lines(Does.WRITE, sent("OFFSET_OUT_UPPER") << 32 | sent("OFFSET_OUT_LOWER"), target, lines,
                      sent("PITCH_OUT"))
  if p.FLUSH_ENABLE: yield Effect(Does.RELEASE, value=ALL_CACHES, clock=Clock.BEHIND)
  if p.SEMAPHORE_TYPE != m.LAUNCH_DMA_SEMAPHORE_TYPE.NONE:
    wide = bool(getattr(p, "SEMAPHORE_PAYLOAD_SIZE", 0))
    value = sent("SET_SEMAPHORE_PAYLOAD") | (sent("SET_SEMAPHORE_PAYLOAD_UPPER") << 32 if wide else 0)
    at = sent("SET_SEMAPHORE_A") << 32 | sent("SET_SEMAPHORE_B")
    yield Effect(Does.SIGNAL, at, 8 if wide else 4, value, clock=Clock.BEHIND)
    if p.SEMAPHORE_TYPE == m.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_FOUR_WORD_SEMAPHORE:
      yield Effect(Does.STAMP, at + _TIME_AT, 8, clock=Clock.BEHIND)
  if p.INTERRUPT_TYPE != m.LAUNCH_DMA_INTERRUPT_TYPE.NONE: yield Effect(Does.INTERRUPT, clock=Clock.BEHIND)


def _picks(m: Any, word: int) -> list[Any]:
  p = m.SET_REMAP_COMPONENTS.decode(word)
  names = m.SET_REMAP_COMPONENTS_DST_X
  values = [getattr(p, f"DST_{axis}") for axis in "XYZW"[:int(p.NUM_DST_COMPONENTS) + 1]]
  return [names(v) for v in values if v in names._value2member_map_]


def _lines(does: Does, address: int, length: int, lines: int, pitch: int) -> Effects:
  """A copy's bytes: one range where its lines touch each other or are very many, else one a line."""
  if lines <= 1 or pitch == length: yield Effect(does, address, length * max(lines, 1), clock=Clock.BEHIND)
  elif lines > _LINES: yield Effect(does, address, pitch * (lines - 1) + length, clock=Clock.BEHIND)
  else:
    for line in range(lines): yield Effect(does, address + line * pitch, length, clock=Clock.BEHIND)


def inline(module: ModuleType, values: Values, channel: int) -> Effects:
  """LAUNCH_DMA of a compute class: data that follows in the pushbuffer goes to memory."""
  m: Any = module
  def sent(name: str) -> int: return values.get((channel, getattr(m, name).OFFSET), 0)
  address = sent("OFFSET_OUT_UPPER") << 32 | sent("OFFSET_OUT")
  yield from _lines(Does.WRITE, address, sent("LINE_LENGTH_IN"), sent("LINE_COUNT"), sent("PITCH_OUT"))


def forget(sent: Any, waits: bool) -> Effects:
  """INVALIDATE_SHADER_CACHES, which waits until idle, and its like that does not."""
  if waits: yield Effect(Does.IDLE)
  data = getattr(sent, "DATA", 0) or getattr(sent, "GLOBAL_DATA", 0)
  caches = ((Caches.DATA if data else 0) | (Caches.SCALAR if sent.CONSTANT else 0)
            | (Caches.CODE if sent.INSTRUCTION else 0))
  if caches: yield Effect(Does.ACQUIRE, value=int(caches))


def launch(made: Packet) -> Effects:
  """What a QMD says that happens beside its kernel."""
  kind = type(made)
  def flag(name: str) -> bool: return qmd.has(kind, name) and bool(qmd.read(made, name))
  forgets = ((Caches.DATA if flag("INVALIDATE_SHADER_DATA_CACHE") else 0)
             | (Caches.SCALAR if flag("INVALIDATE_SHADER_CONSTANT_CACHE") else 0)
             | (Caches.CODE if flag("INVALIDATE_INSTRUCTION_CACHE") else 0))
  if forgets: yield Effect(Does.ACQUIRE, value=int(forgets))
  yield Effect(Does.LAUNCH)
  if flag("CWD_MEMBAR_TYPE"): yield Effect(Does.RELEASE, value=ALL_CACHES, clock=Clock.BEHIND)
  for n in range(RELEASES):
    if not (qmd.has(kind, "RELEASE_ENABLE", n) and qmd.read(made, "RELEASE_ENABLE", n)): continue
    wide = qmd.has(kind, "RELEASE_PAYLOAD64B", n) and bool(qmd.read(made, "RELEASE_PAYLOAD64B", n))
    at = qmd.read(made, "RELEASE_SEMAPHORE_ADDR", n)
    yield Effect(Does.SIGNAL, at, 8 if wide else 4, qmd.read(made, "RELEASE_SEMAPHORE_PAYLOAD", n), clock=Clock.BEHIND)
    if qmd.has(kind, "RELEASE_STRUCTURE_SIZE", n) and _is_long(made, n):
      yield Effect(Does.STAMP, at + _TIME_AT, 8, clock=Clock.BEHIND)


def _is_long(made: Packet, n: int) -> bool:
  """Whether a release has four words, the last two of which are the time."""
  (field, _, _), = qmd.pieces(type(made), "RELEASE_STRUCTURE_SIZE", n)
  size = getattr(made, field.name)
  names = field.enum._value2member_map_ if field.enum is not None else {}
  return size in names and "FOUR_WORDS" in names[size].name
