"""Forms of a program in the host's code: made quickly at first, made well once it is hot, kept in memory and on disk.

A form is found by a digest of the first code bytes and all else that it was made from, and then held against every
byte that it covers. What compiled code needs beside itself (places, memory sites) is kept with it, so that a form
that is found costs neither decoding nor LLVM.
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from itertools import accumulate
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import PageFault
from tinyhw.core.kept import Kept
from tinyhw.core.memory import Access
from tinyhw.emulator.amdgcn.program import AmdgcnProgram
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.amdgcn.site import Site
from tinyhw.emulator.jit.amdgcn.translate import Place, Translation, Translator
from tinyhw.emulator.jit.native import Native, compiled_by, host
from tinyhw.emulator.jit.refusal import OWN, CompilerFailed, NotCompiled, TranslatorFailed, translating
from tinyhw.emulator.jit.store import sources_digest, store
from tinyhw.isa.amdgcn import Instruction, table

NAMED: Final = 1 << 14  # bytes of code, at most, that the digest is made from
_SITE: Final = [f.name for f in fields(Site) if f.name != "instruction"]


class Form:
  """Compiled code of a program with what its numbers mean. `hot` says which way it was compiled, `alone` whether its
  workgroups may run in any order (see `threads.alone`)."""

  def __init__(self, header: dict[str, Any], native: Native, code: Sequence[tuple[int, bytes]]) -> None:
    self.native, self.header, self.code = native, header, list(code)
    self.hot: bool = header["hot"]
    self.places: list[Place] = [(a, b) for a, b in header["places"]]
    self.compiled: int = header["compiled"]
    self.instructions: int = header["instructions"]
    self.alone: bool = header["alone"]
    self.weight: float = header["weight"]
    self.index = {place: k for k, place in enumerate(self.places[:self.compiled])}
    self.sites: list[dict[str, Any]] = header["sites"]
    self.lds_sites = np.array([k for k, site in enumerate(self.sites) if site["segment"] == "lds"], np.intp)

  def site(self, number: int, instruction: Callable[[int], Instruction]) -> Site:
    """A memory site with its instruction, which `instruction` fetches by its offset."""
    row = self.sites[number]
    return Site(**row, instruction=instruction(row["offset"]))


class Wish:
  """What a form is made for: a program, a number of lanes and vector registers, places to start from."""

  def __init__(self, program: AmdgcnProgram, lanes: int, vgprs: int, partial: bool, detail: int,
               starts: Sequence[Place]) -> None:
    self.program, self.lanes, self.vgprs, self.partial, self.detail = program, lanes, vgprs, partial, detail
    self.starts = list(starts)
    self.host = host()
    self._name = self._digest()

  def find(self, hot: bool) -> Form | None:
    """The form in memory or on disk, if there is one for the very bytes of the program."""
    key = self._key(hot)
    form = _MEMORY.get(key)
    if form is not None: return form if self._held(form.header) is not None else None
    entry = store().load(key)
    if entry is None: return None
    header, code = entry
    try:
      held = self._held(header)
      return None if held is None else _MEMORY.keep(key, Form(header, Native(_parts(code, header["objects"])), held))
    except (NotCompiled, KeyError, TypeError, ValueError): return None  # a file of another kind

  def make(self, hot: bool, snapshot: Snapshot | None = None) -> Form:
    """Translate and compile. Raises NotCompiled. A snapshot stands for the program in another thread."""
    with servers.job(hot, self.host) as job:
      translator = Translator(snapshot or self.program, self.lanes, self.vgprs, self.partial, not hot, self.detail)
      with translating(): translation = translator.translate(self.starts, job.send)
      try: objects = job.objects()
      except CompilerFailed: raise
      except NotCompiled as refused: raise TranslatorFailed(f"{OWN}: LLVM refused it: {refused.why}") from None
    code = _merged(translation.code)
    header = _header(translation, code, hot) | {"objects": [len(o) for o in objects]}
    key = self._key(hot)
    store().save(key, header, b"".join(objects))
    return _MEMORY.keep(key, Form(header, Native(objects), code))

  def _digest(self) -> bytes:
    """Names the program by its first bytes, up to where the first wave may end."""
    program = self.program
    m = program.space.find(program.entry)
    raw = bytes(m.raw[program.entry - m.start:program.entry - m.start + NAMED]) if m is not None else b""
    end = raw.find(_end(program.arch.isa))
    what = [program.arch.name, self.lanes, self.vgprs, self.partial, self.detail, self.starts, str(self.host),
            compiled_by()]
    digest = hashlib.sha256(sources_digest() + json.dumps(what).encode())
    digest.update(raw if end < 0 else raw[:end])
    return digest.digest()

  def _key(self, hot: bool) -> str: return self._name.hex() + ("h" if hot else "q")

  def _held(self, header: dict[str, Any]) -> list[tuple[int, bytes]] | None:
    """The program's code, by offset, where it is what a form was made from; then the program remembers these bytes."""
    program = self.program
    try: held = [(at, program.space.read(program.entry + at, n, Access.EXECUTE)) for at, n in header["spans"]]
    except PageFault: return None
    if hashlib.sha256(b"".join(data for _, data in held)).hexdigest() != header["digest"]: return None
    for at, data in held: program.hold(program.entry + at, data)
    return held


_MEMORY: Final[Kept[str, Form]] = Kept(256)


def _merged(code: dict[int, bytes]) -> list[tuple[int, bytes]]:
  """Pieces of code by offset, where they touch or overlap made one."""
  out: list[tuple[int, bytes]] = []
  for at, data in sorted(code.items()):
    if out and at <= (end := out[-1][0] + len(out[-1][1])): out[-1] = out[-1][0], out[-1][1] + data[end - at:]
    else: out.append((at, data))
  return out


def _parts(data: bytes, sizes: Sequence[int]) -> list[bytes]:
  """Data cut into pieces of these sizes."""
  ends = list(accumulate(sizes))
  return [data[end - n:end] for n, end in zip(sizes, ends)]


def _header(translation: Translation, code: list[tuple[int, bytes]], hot: bool) -> dict[str, Any]:
  """All of a form but its code, as JSON has it."""
  sites = [{name: getattr(site, name) for name in _SITE} for site in translation.sites]
  return {"hot": hot, "places": translation.places, "compiled": translation.compiled, "alone": translation.alone,
          "weight": translation.weight,
          "instructions": translation.instructions, "spans": [(at, len(data)) for at, data in code],
          "digest": hashlib.sha256(b"".join(data for _, data in code)).hexdigest(), "sites": sites}


@cache
def _end(isa: str) -> bytes:
  """The code of s_endpgm."""
  instructions = table(isa)
  return instructions.encode(instructions.rows_of("s_endpgm")[0], {})


class Snapshot:
  """The code of a program as it was at one moment, with as much of `AmdgcnProgram` as a translator asks for."""

  def __init__(self, arch: Arch, entry: int, spans: Sequence[tuple[int, bytes]]) -> None:
    self.arch, self.entry = arch, entry
    self._table, self._spans = table(arch.table), list(spans)
    self._decoded: dict[int, Instruction] = {}

  def fetch(self, pc: int) -> Instruction:
    """The instruction at pc. Raises PageFault for a place that is not part of this."""
    known = self._decoded.get(pc)
    if known is None: known = self._decoded[pc] = self._table.decode(self._bytes(pc, 16), where=pc)
    return known

  def remember(self, start: int, stop: int) -> bytes:
    """The bytes of [start, stop)."""
    return self._bytes(start, stop - start)

  def _bytes(self, pc: int, size: int) -> bytes:
    at = pc - self.entry
    for start, data in self._spans:
      if start <= at < start + len(data): return data[at - start:at - start + size]
    raise PageFault(pc, "execute", size, reason="not part of the compiled code", pc=pc)
