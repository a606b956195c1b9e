"""What a fault says beside its cause: where in which file, the calls that led there, the wave.

The caller is told by the return address in SGPR30 and SGPR31.
"""
from __future__ import annotations

from collections.abc import Iterable

from tinyhw.core.errors import HazardFound, MachineFault
from tinyhw.wire import codeobject
from tinyhw.wire.codeobject import CodeObject


def explain(fault: MachineFault, loaded: Iterable[tuple[int, CodeObject]], work: str) -> None:
  """Fill in what the code objects, at the addresses before them, say of a fault of some work ("kernel add")."""
  images = list(loaded)
  fault.work, kind, name = work, *work.partition(" ")[::2]
  if kind == "kernel": fault.kernel = name
  if isinstance(fault, HazardFound) or fault.pc is None: return
  source = codeobject.sources(images)
  fault.place = codeobject.place(images, fault.pc)
  function = (fault.place or "").partition("+")[0]
  stacks = [(fault.pc, source.chain(fault.pc))]
  if fault.caller is not None:
    called = codeobject.place(images, fault.caller) or ""
    if called.partition("+")[0] == function: fault.caller = None  # what the function itself called has returned
    else: stacks.append((fault.caller, source.chain(fault.caller)))
  chain = stacks[0][1]
  if fault.place is None and len(stacks) > 1:  # a call to where no code is: it is the call that is wrong
    spot = next((s for s in stacks[1][1][:1] if s.line), None)
    if spot is not None: fault.file, fault.line = spot.file, spot.line
  if chain and chain[0].line: fault.file, fault.line, fault.source = chain[0].file, chain[0].line, chain[0].text
  calls = [f"inlined into {spot.function or 'its caller'} at {spot.told()}" for spot in chain[1:]]
  for pc, outer in stacks[1:]:
    place = codeobject.place(images, pc) or f"PC {pc:#x}"
    calls.append(f"called by {place}{f' at {outer[0].told()}' if outer and outer[0].line else ''}")
    calls += [f"inlined into {spot.function or 'its caller'} at {spot.told()}" for spot in outer[1:]]
  fault.calls = tuple(calls)
