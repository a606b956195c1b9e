"""A dump as text, as rows, and what it says of queues that stand."""
from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.core.layout import Register
from tinyhw.queues import kernellog, listing
from tinyhw.queues.effects import Does
from tinyhw.queues.foreign import rocgdb
from tinyhw.queues.foreign.dump import UNKNOWN, Dump, DumpedRegisters, Fault, Ring
from tinyhw.queues.foreign.packets import TABLES, Placed, foreign_generation, packets, pending
from tinyhw.queues.world import Item, Launch
from tinyhw.wire import pm4

SHOWN: Final = 8  # dwords of what is no packet, in a line
_AHEAD: Final = 3  # packets that the doctor shows behind the read pointer


@dataclass
class _Follow:
  """Items alone, for `listing`."""
  items: list[Item]
  launches: list[Launch] = field(default_factory=list)
  roots: list[tuple[int, int]] = field(default_factory=list)


def _of(dump: Dump, ring: Ring) -> list[Placed]:
  return packets(ring, bool(foreign_generation(dump, ring.kind)))


# ---- as text


def lines(dump: Dump, queue: str | None = None, *, deep: bool = True) -> Iterator[str]:
  """All that a dump holds; with `queue` rings and tables with this text in their names."""
  if queue is None:
    yield f"{dump.form}: {_counts(dump)}"
    for name, value in dump.facts: yield f"  {name}: {value}"
    for name, version in dump.versions.items(): yield f"  {name} version {'.'.join(map(str, version))}"
    if dump.timed_out: yield f"  ring {dump.timed_out} has timed out"
    for fault in dump.faults: yield from (f"  {line}" for line in fault_lines(dump, fault))
    for block in dump.registers: yield from _register_lines(dump, block)
    for text in dump.rest: yield f"  {text}"
  for table in dump.tables:
    for row in table.rows:
      line = f"{_ONE[table.name]} " + ", ".join(f"{k} {_shown(k, v)}" for k, v in row.items())
      if queue is None or queue.lower() in line.lower(): yield line
  for ring in dump.rings:
    if queue is None or queue.lower() in ring.name.lower(): yield from _ring_lines(dump, ring, deep)


_ONE: Final = {"queues": "queue", "dispatches": "dispatch"}


def _shown(name: str, value: str | int) -> str: return f"{value:#x}" if name == "address" else str(value)


def _counts(dump: Dump) -> str:
  parts = [(len(dump.rings), "ring"), (sum(len(r.values) for r in dump.registers), "register"),
           (sum(len(t.rows) for t in dump.tables), "row")]
  return ", ".join(f"{n} {name}{'s' if n != 1 else ''}" for n, name in parts if n) or "nothing"


def head(dump: Dump, ring: Ring) -> str:
  """A ring's line: its size, its pointers, and by which tables it is read."""
  text = f"ring {ring.name}: {ring.size or len(ring.words)} dwords"
  for name, value in (("read", ring.read), ("write", ring.write), ("driver's write", ring.driver_write)):
    if value != UNKNOWN: text += f", {name} {value:#x}"
  if ring.pending != UNKNOWN: text += f", {ring.pending} dwords wait" if ring.pending else ", all read"
  other = foreign_generation(dump, ring.kind)
  if other: text += f"; packets of {other} are named and not decoded: the tables here are {TABLES[ring.kind]}'s"
  elif not ring.kind: text += "; its packets are not known here: words"
  elif ring.kind in TABLES and not dump.versions: text += f"; read as {TABLES[ring.kind]}: the file does not say whose"
  return text


def _ring_lines(dump: Dump, ring: Ring, deep: bool) -> Iterator[str]:
  yield head(dump, ring)
  same, last = 0, ""
  for placed in _of(dump, ring):
    line = packet_line(placed)
    if line == last and placed.index != ring.read:  # fillers
      same += 1
      continue
    if same: yield f"             and {same} more like it"
    same, last = 0, line
    yield f"  {'->' if placed.index == ring.read else '  '} {_place(ring, placed)}  {line}"
    if deep: yield from (f"               {text}" for text in listing.below(placed.item))
  if same: yield f"             and {same} more like it"


def _place(ring: Ring, placed: Placed) -> str:
  """Where a packet is: its index, in which pointers count, or its address where the file says one."""
  return f"{placed.index:#06x}" if ring.address == UNKNOWN else f"{placed.item.address:#014x}"


def packet_line(placed: Placed) -> str:
  """A packet, or words and why they are none."""
  item = placed.item
  if item.packet is not None: return listing.packet_text(item)
  words = " ".join("--------" if i in placed.unknown else f"{w:08x}" for i, w in enumerate(item.words[:SHOWN]))
  more = f" and {len(item.words) - SHOWN} more" if len(item.words) > SHOWN else ""
  return f"[{words}{more}] {item.error}"


@functools.cache
def _declared() -> dict[str, type[Register]]: return {cls.__name__: cls for cls in gc.REGISTERS}


def register(dump: Dump, name: str, value: int) -> str:
  """`regGRBM_STATUS = 0x3028 (...)`: the fields that are not 0, where the core is one whose registers are declared."""
  plain = name.removeprefix("reg").removeprefix("mm")
  text = f"{name} = {value:#010x}"
  if plain.endswith("HEADER_DUMP") and value >> 30 == 3: return f"{text} ({pm4.name(value)})"
  cls = _declared().get(plain)
  if cls is None or value >> 32 or not _own_core(dump): return text
  fields = cls.decode(value & sum(f.mask for f in cls.FIELDS))
  shown = ", ".join(f"{f.name}={f.show(v)}" for f, v in fields.items() if v)
  return f"{text} ({shown})" if shown else text


def _own_core(dump: Dump) -> bool: return dump.versions.get("GC", (0,))[0] == 11


def _register_lines(dump: Dump, block: DumpedRegisters) -> Iterator[str]:
  yield f"registers of {block.where}:"
  for name, value in block.values:
    if value: yield f"  {register(dump, name, value)}"
  if zeros := sum(not v for _, v in block.values): yield f"  {zeros} are 0"


def fault_lines(dump: Dump, fault: Fault) -> list[str]:
  """A page fault, with its status register's fields where they are declared."""
  out = [f"a page fault of {fault.hub} at {fault.address:#x}, status {fault.status:#x}"]
  if fault.hub != "gfxhub" or not _own_core(dump):
    return [*out, "  the fields of this status register are not declared here"]
  return [*out, *(f"  {m}" for m in kernellog.fault_status(fault.status)[1])]


# ---- as rows


def rows(dump: Dump, queue: str | None = None) -> Iterator[dict[str, Any]]:
  """A row for the dump, then one for each ring; no word is left out."""
  if queue is None:
    yield {"form": dump.form, "facts": [list(f) for f in dump.facts], "timed_out": dump.timed_out,
           "versions": {k: list(v) for k, v in dump.versions.items()}, "rest": dump.rest,
           "faults": [{"hub": f.hub, "address": f.address, "status": f.status,
                       "means": fault_lines(dump, f)[1:]} for f in dump.faults],
           "registers": [{"where": r.where, "values": [{"name": n, "value": v, "text": register(dump, n, v)}
                                                       for n, v in r.values]} for r in dump.registers],
           "tables": {t.name: t.rows for t in dump.tables}}
  for ring in dump.rings:
    if queue is not None and queue.lower() not in ring.name.lower(): continue
    found = _of(dump, ring)
    made = list(listing.rows(listing.Names(), _Follow([p.item for p in found])))
    yield {"ring": ring.name, "kind": ring.kind, "size": ring.size, "first": ring.first, "read": ring.read,
           "write": ring.write, "driver_write": ring.driver_write, "address": ring.address,
           "text": head(dump, ring), "packets": [_row(p, row) for p, row in zip(found, made)]}


def _row(placed: Placed, row: dict[str, Any]) -> dict[str, Any]:
  """A packet's row with its index; words that the file leaves out are None."""
  words = [None if i in placed.unknown else w for i, w in enumerate(row["words"])] if placed.unknown else row["words"]
  return {"index": placed.index, **row, "words": words}


# ---- what stands


@dataclass
class Verdict:
  """What a dump says of queues: one line, and sections of lines. `ill`: something stands or failed."""
  line: str
  ill: bool
  sections: list[tuple[str, list[str]]] = field(default_factory=list)

  def lines(self) -> list[str]:
    """As text."""
    return [self.line, *(text for name, body in self.sections for text in (f"{name}:", *(f"  {b}" for b in body)))]

  def row(self) -> dict[str, Any]:
    """As plain values."""
    return {"verdict": self.line, "ill": self.ill, "sections": dict(self.sections)}


def examine(dump: Dump) -> Verdict:
  """Which ring stands where, and what the fault and the registers tell."""
  first, sections = "", list[tuple[str, list[str]]]()
  if dump.faults:
    sections.append(("faults", [line for f in dump.faults for line in fault_lines(dump, f)]))
    fault = dump.faults[0]
    first = f"a page fault of {fault.hub} at {fault.address:#x}"
  standing = [_standing(dump, r) for r in dump.rings if r.pending > 0]
  idle = [r.name for r in dump.rings if r.pending == 0]
  if dump.timed_out:
    at = next((line for name, line, _ in standing if name == dump.timed_out), "")
    text = f"ring {dump.timed_out} timed out" + (f": {at}" if at else ", and has read all its words")
    first = f"{first}; {text}" if first else text
  for name, line, body in standing:
    sections.append((f"ring {name}, {line}", body))
  queues = [line for t in dump.tables for line in _table_lines(t.name, t.rows, dump)]
  if queues: sections.append(("queues", queues))
  waiting = [line for line in queues if " waits" in line or "stands" in line]
  if idle: sections.append(("idle", [", ".join(idle)]))
  busy = [line for block in dump.registers for line in _busy(dump, block)]
  if busy: sections.append(("registers", busy))
  lost = [text for text in dump.rest if "VRAM is lost" in text]
  if lost: sections.append(("memory", ["the reset lost what was in VRAM: each program's buffers are gone"]))
  if not first and standing: first = f"ring {standing[0][0]} stands: {standing[0][1]}"
  if not first and waiting: first = waiting[0]
  return Verdict(first or _well(dump), bool(first), sections)


def _well(dump: Dump) -> str:
  if any(r.pending == UNKNOWN for r in dump.rings) and not any(r.pending == 0 for r in dump.rings):
    return "the file does not say where its rings are read"
  return "nothing stands" if dump.rings or dump.tables else "nothing in it tells of a queue"


def _standing(dump: Dump, ring: Ring) -> tuple[str, str, list[str]]:
  """(name, where it stands, packets from there on)."""
  ahead = list(pending(ring, _of(dump, ring)))
  where = f"{ring.pending} dwords wait from {ring.read:#x}"
  if not ahead: return ring.name, where, []
  texts = [packet_line(p) for p in ahead]
  kept = [i for i, text in enumerate(texts) if not i or text != texts[i - 1]]  # fillers once
  body = [f"{'   ' if i else '-> '}{_place(ring, ahead[i])}  {texts[i]}" for i in kept[:_AHEAD]]
  if len(kept) > _AHEAD: body.append(f"   and {len(ahead) - kept[_AHEAD]} more")
  for effect in ahead[0].item.effects:
    if effect.does is Does.WAIT: body.append(f"it waits for {effect.address:#x} {effect.compare} {effect.value:#x}")
  return ring.name, where, body


def _table_lines(name: str, rows: list[dict[str, str | int]], dump: Dump) -> Iterator[str]:
  if name == "queues":
    for row in rows:
      read, write = row.get("read"), row.get("write")
      if not isinstance(read, int) or not isinstance(write, int): continue
      where = f"{row['target']}: {row.get('type', 'a queue')} of {row.get('size', '?')} bytes"
      if read == write: yield f"{where}: all {write} packets are read"
      else: yield f"{where} waits at packet {read} of {write}{_running(row, dump)}"
    return
  for row in rows:
    text = f"{row['target']} is not done: grid {row.get('grid', '?')}, work-group {row.get('workgroup', '?')}"
    if fence := rocgdb.fences(str(row.get("fence", ""))): text += f", it {fence}"
    yield text + (f": {row['function']}" if row.get("function") else "")


def _running(row: dict[str, str | int], dump: Dump) -> str:
  """The dispatches of a queue that are listed beside it."""
  for table in dump.tables:
    if table.name != "dispatches": continue
    found = [str(d.get("function") or d["target"]) for d in table.rows
             if (d["agent"], d["queue"]) == (row["agent"], row["queue"])]
    if found: return f"; on the GPU: {', '.join(found)}"
  return ""


def _busy(dump: Dump, block: DumpedRegisters) -> Iterator[str]:
  """Registers that tell who is at work: the status of the core, and the last headers that an engine read."""
  headers: dict[str, list[str]] = {}
  values = dict(block.values)
  for name, value in block.values:
    plain = name.removeprefix("reg").removeprefix("mm")
    if plain in ("GRBM_STATUS", "GRBM_STATUS2") and value: yield f"{block.where}: {register(dump, name, value)}"
    elif plain.endswith("_HEADER_DUMP") and value >> 30 == 3: headers.setdefault(name, []).append(pm4.name(value))
    elif plain == "CP_HQD_ACTIVE" and value & 1: yield f"{block.where}: the hardware queue is active" + _hqd(values)
  for name, names in headers.items(): yield f"{block.where}: {name} holds the headers of {', '.join(names)}"


def _hqd(values: dict[str, int]) -> str:
  """The pointers of a hardware queue, where they are beside it."""
  shown = [f"{name.removeprefix('reg').removeprefix('mm')} {value:#x}" for name, value in values.items()
           if name.endswith(("CP_HQD_PQ_RPTR", "CP_HQD_PQ_WPTR_LO"))]
  return f", {', '.join(shown)}" if shown else ""
