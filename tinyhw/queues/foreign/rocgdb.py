"""ROCgdb's listings of queues and dispatches, as text or as its machine interface has them (-queue-info ...).

    Id   Target Id                Type         Read   Write  Size     Address
    1    AMDGPU Queue 1:1 (QID 0) HSA          2      2      4096     0x00007ffff626e000

    Id   Target Id                      Grid    Workgroup Fence   Kernel Function
    1    AMDGPU Dispatch 1:2:1 (PKID 0) [1,1,1] [1,1,1]   B|Aa|Ra kern()

Forms and meanings: ROCgdb's manual, "GDB/MI Heterogeneous Queue Information" (`read` is the next packet that the device
reads, `write` the next that is written, `size` the ring's bytes) and "... Dispatch Information"; ROCm's examples of
`info queues`. ROCgdb has no listing of other packets.
"""
from __future__ import annotations

import re
from typing import Final

from tinyhw.queues.foreign.dump import LONGEST, Dump, Table

_QUEUE: Final = re.compile(
  r"(?a)(?P<current>\*?)\s*(?P<id>[\d.]{1,12})\s+(?P<target>AMDGPU Queue (?P<agent>\d+):(?P<queue>\d+) \(QID \d+\))\s+"
  r"(?P<type>\S.*?)\s+(?P<read>\d{1,20})\s+(?P<write>\d{1,20})\s+(?P<size>\d{1,20})\s+(?P<address>0x[0-9a-fA-F]{1,16})")
_DISPATCH: Final = re.compile(
  r"(?a)(?P<current>\*?)\s*(?P<id>[\d.]{1,12})\s+(?P<target>AMDGPU Dispatch (?P<agent>\d+):(?P<queue>\d+):\d+ "
  r"\(PKID (?P<packet>\d{1,20})\))\s+\[(?P<grid>[\d,]+)\]\s+\[(?P<workgroup>[\d,]+)\]\s+(?P<rest>\S.*)")
_TUPLE: Final = re.compile(r'(?a)\{((?:[\w-]+="[^"]*",?\s*){2,})')
_PAIR: Final = re.compile(r'(?a)([\w-]+)="([^"]*)"')
_FENCE: Final = re.compile(r"[BARas|]+(?=\s|$)")
_NUMBERS: Final = ("read", "write", "size", "packet")


def is_one(text: str) -> bool:
  """Whether a text is one."""
  return re.search(r"(?a)AMDGPU (?:Queue \d+:\d+ \(QID|Dispatch \d+:\d+:\d+ \(PKID)", text) is not None


def read(text: str) -> Dump:
  """What listings say."""
  queues, dispatches, rest = Table("queues"), Table("dispatches"), list[str]()
  for line in map(str.strip, text.splitlines()):
    if re.match(r"Id\s+(?:State\s+)?Target Id\b", line): continue
    if len(line) <= LONGEST and (m := _QUEUE.match(line)): queues.rows.append(_row(m))
    elif len(line) <= LONGEST and (m := _DISPATCH.match(line)): dispatches.rows.append(_row(m))
    elif found := [dict(_PAIR.findall(t[1])) for t in _TUPLE.finditer(line)]:
      for row in found:
        target = row.get("target-id", "")
        if q := re.match(r"(?a)AMDGPU Queue (\d+):(\d+)", target): queues.rows.append(_tuple(row, q))
        elif d := re.match(r"(?a)AMDGPU Dispatch (\d+):(\d+):\d+ \(PKID (\d{1,20})\)", target):
          dispatches.rows.append({**_tuple(row, d), "packet": int(d[3])})
        else: rest.append(line)
    elif line: rest.append(line)
  return Dump("rocgdb", tables=[t for t in (queues, dispatches) if t.rows], rest=rest)


def _row(m: re.Match[str]) -> dict[str, str | int]:
  row: dict[str, str | int] = {k: int(v) if k in _NUMBERS else v for k, v in m.groupdict().items() if v}
  if "address" in row: row["address"] = int(m["address"], 16)
  if rest := str(row.pop("rest", "")):
    fence = _FENCE.match(rest)
    if fence is not None:
      row["fence"] = fence[0]
      rest = rest[fence.end():].strip()
    row["function"] = rest
  return row


def _tuple(row: dict[str, str], m: re.Match[str]) -> dict[str, str | int]:
  """A tuple of the machine interface, by the names of the text's columns beside its own."""
  made: dict[str, str | int] = {**row, "target": row["target-id"], "agent": m[1], "queue": m[2]}
  for name in ("read", "write", "size"):
    if re.fullmatch(r"(?a)\d{1,20}", row.get(name, "")): made[name] = int(row[name])
  if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", row.get("addr", "")): made["address"] = int(row["addr"], 16)
  return made


_SCOPES: Final = {"a": "agent", "s": "system"}


def fences(text: str) -> str:
  """`B|As|Ra` in words."""
  told = []
  for part in filter(None, text.split("|")):
    if part == "B": told.append("waits for the packets before it")
    elif part[0] in "AR" and (scope := _SCOPES.get(part[1:])):
      told.append(f"{'acquires' if part[0] == 'A' else 'releases'} at {scope} scope")
  return ", ".join(told)
