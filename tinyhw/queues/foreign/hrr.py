"""Archives of HIP Record & Replay (`.hrr`): folders that HIP writes where HIP_HRR_CAPTURE_OUTPUT names one.

Form: ROCm/rocm-systems, projects/clr/hipamd/src/hrr/DESIGN.md of commit 175ad72f, "Archive Format (v3)": `events.bin`
is a head and a record for each API call of the program, `blobs` what the host copied, `code_objects` the code. Several
processes have a folder `pid-N` each. Which call a number is, the HIP that recorded it decides: its table is generated
when HIP is built. So calls are counted by number and thread; a replay needs that HIP's `hrr-playback`.
"""
from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import DecodeError, Error
from tinyhw.wire import codeobject

MAGIC: Final = 0x52524845
FORMAT: Final = 3
END: Final = 0xFFFF  # the type of the record behind the last call, which is there where the program ended well
_HEAD: Final = struct.Struct("<IHH")
_RECORD: Final = struct.Struct("<HQQQH4x")  # call, sequence, time (ns), thread, bytes with this head
_EVENTS: Final = "events.bin"
_SHOWN: Final = 20  # numbers of calls


@dataclass
class Archive:
  """What a process' folder holds. `ended`: its program has ended well; `cut`: where a record is that is not whole."""
  path: Path
  version: int
  calls: Counter[int] = field(default_factory=Counter)
  threads: Counter[int] = field(default_factory=Counter)
  first_ns: int = 0
  last_ns: int = 0
  ended: bool = False
  cut: int = -1
  blobs: list[int] = field(default_factory=list)
  code: dict[str, tuple[str, list[str]]] = field(default_factory=dict)  # file -> (target, kernels)
  names: dict[int, str] = field(default_factory=dict)  # of calls, where they are known (`hrr_calls.names`)

  def lines(self) -> Iterator[str]:
    """As text."""
    yield f"HIP Record & Replay archive {self.path}, format {self.version}"
    if self.version == FORMAT:
      how = "its program ended well" if self.ended else "its program was ended from outside"
      cut = f", record at byte {self.cut} is not whole" if self.cut >= 0 else ""
      yield f"{self.calls.total():,} calls of {len(self.threads)} threads in {self._ms():.3f} ms; {how}{cut}"
      for number, count in self.calls.most_common(_SHOWN):
        yield f"  {count:9,}  {self.names.get(number, f'call {number}')}"
      if len(self.calls) > _SHOWN: yield f"  and {len(self.calls) - _SHOWN} others"
      if any(number not in self.names for number in self.calls):
        yield "numbers are of the table of the HIP that recorded them; its hrr-playback --info --events has their names"
    else: yield f"records of format {self.version} are not read, those of {FORMAT} are"
    yield f"{len(self.blobs):,} contents, {sum(self.blobs):,} bytes"
    for name, (target, kernels) in self.code.items(): yield f"{name}: {target}: {', '.join(kernels) or 'no kernels'}"

  def _ms(self) -> float: return (self.last_ns - self.first_ns) / 1e6

  def row(self) -> dict[str, Any]:
    """As plain values."""
    return {"archive": str(self.path), "format": self.version, "calls": dict(self.calls),
            "names": {n: name for n, name in self.names.items() if n in self.calls}, "threads": dict(self.threads),
            "ms": self._ms(), "ended": self.ended, "cut": self.cut, "contents": len(self.blobs),
            "bytes": sum(self.blobs), "code": {n: {"target": t, "kernels": k} for n, (t, k) in self.code.items()}}


def read(folder: Path) -> list[Archive]:
  """The archives of a folder, one a process. Raises DecodeError for a folder that is none."""
  found = [folder] if (folder / _EVENTS).is_file() else sorted(p for p in folder.glob("pid-*")
                                                               if (p / _EVENTS).is_file())
  if not found:
    raise DecodeError(f"is a folder without {_EVENTS}", where=str(folder),
                      hint="a folder that is read is an archive of HIP Record & Replay")
  return [_archive(path) for path in found]


def _archive(path: Path) -> Archive:
  data = (path / _EVENTS).read_bytes()
  magic, version, _ = _HEAD.unpack_from(data) if len(data) >= _HEAD.size else (0, 0, 0)
  if magic != MAGIC: raise DecodeError("does not begin as events of HIP Record & Replay do", where=str(path / _EVENTS))
  made = Archive(path, version)
  if version == FORMAT: _records(data, made)
  made.blobs = [p.stat().st_size for p in (path / "blobs").rglob("*") if p.is_file()]
  for file in sorted((path / "code_objects").glob("*")):
    try:
      code = codeobject.load(file.read_bytes())
      made.code[file.name] = code.arch, sorted(code.kernels)
    except (Error, OSError) as error: made.code[file.name] = str(error).partition("\n")[0], []
  return made


@dataclass(frozen=True, slots=True)
class Record:
  """A call's record: its number in HIP's table, its place in order, and what is behind its head."""
  call: int
  sequence: int
  when: int
  thread: int
  payload: bytes


def records(data: bytes) -> Iterator[Record]:
  """The records of `events.bin`, whole ones, as they lie there; the last may be the mark behind them all."""
  at = _HEAD.size
  while at + _RECORD.size <= len(data):
    call, sequence, when, thread, size = _RECORD.unpack_from(data, at)
    if size < _RECORD.size or at + size > len(data): return
    yield Record(call, sequence, when, thread, data[at + _RECORD.size:at + size])
    at += size
    if call == END: return


def _records(data: bytes, made: Archive) -> None:
  at = _HEAD.size
  for record in records(data):
    at += _RECORD.size + len(record.payload)
    if record.call == END:
      made.ended = True
      return
    made.calls[record.call] += 1
    made.threads[record.thread] += 1
    made.first_ns = min(made.first_ns or record.when, record.when)
    made.last_ns = max(made.last_ns, record.when)
  if at < len(data): made.cut = at
