"""Faults that are declared: calls that fail, doorbells and interrupts that are lost, contents of rings that come late,
chips, memory and mappings that break.

A file of TOML has a table `[[fault]]` each (docs/explore.md): its `kind`, and which one of its kind it is (`nth`, from
1 on). Each happens once; a machine that is made later counts anew. What the client hears of it is what the kernel
driver tells: `mock.amd.broken`, `mock.nv.broken` and `mock.cuda.broken` say with their sources.
"""

from __future__ import annotations

import errno
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.mock.memory import Refused

# kind -> (what `nth` counts, further keys that it may have)
KINDS: Final[dict[str, tuple[str, frozenset[str]]]] = {
  "ioctl": ("calls of this name", frozenset({"name", "errno"})),
  "status": ("calls of this name", frozenset({"name", "status"})),
  "call": ("calls of this name", frozenset({"name", "result"})),
  "page fault": ("turns of the queue", frozenset({"queue", "address"})),
  "ecc": ("turns of the queue", frozenset({"queue"})),
  "xid": ("turns of the queue", frozenset({"queue", "number"})),
  "gone": ("turns of the queue", frozenset({"queue", "result"})),
  "lost doorbell": ("doorbells", frozenset()),
  "lost interrupt": ("interrupts", frozenset()),
  "late ring": ("doorbells of the queue", frozenset({"queue"})),
  "sigbus": ("mappings of device files", frozenset()),
}
# What each kind of machine has none of.
LACKS: Final = {
  "an AMD card": frozenset({"xid", "status", "call"}),
  "NVIDIA's kernel driver": frozenset({"call"}),
  "a mock of CUDA": frozenset({"ioctl", "status", "xid", "lost doorbell", "lost interrupt", "late ring", "sigbus"}),
  "an AMD card of a program in another process": frozenset({"xid", "status", "call", "sigbus"}),
}
# Of a key whose value is a name: such a name.
_NAMED: Final = {"errno": "ENOMEM", "status": "NV_ERR_NO_MEMORY", "result": "CUDA_ERROR_OUT_OF_MEMORY"}
ON_QUEUES: Final = frozenset(kind for kind, (what, _) in KINDS.items() if what == "turns of the queue")
_OF_QUEUES: Final = frozenset(kind for kind, (_, keys) in KINDS.items() if "queue" in keys)


@dataclass(frozen=True)
class Fault:
  """One fault; see KINDS. Of an ioctl `name` is the kernel's (`mmap` and `open` are calls too), of a status that of the
  control, the class or else the ioctl, of a call the function's in libcuda; "" any. `result` is also what a lost device
  of CUDA's answers."""

  kind: str
  nth: int = 1
  name: str = ""
  errno: int = errno.EIO
  status: int = 0  # NV_ERR_GENERIC
  result: int = 0  # CUDA_ERROR_UNKNOWN
  queue: str = ""
  address: int = 0
  number: int = 0


def read(path: str | Path, where: str = "") -> tuple[Fault, ...]:
  """The faults that a file declares. Raises InvalidArgument."""
  where = where or str(path)
  try: row = tomllib.loads(Path(path).read_text())
  except OSError as error: raise InvalidArgument(f"{path}: {error.strerror}", where=where) from None
  except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
    raise InvalidArgument(f"{path} is no TOML: {error}", where=where) from None
  tables = row.pop("fault", [])
  if row or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
    raise InvalidArgument(f"{path} has {', '.join(row) or 'a fault that is no table'}", where=where,
                          hint="each fault is a table [[fault]]")
  return tuple(_fault(table, f"fault {n + 1} of {path}", where) for n, table in enumerate(tables))


def _fault(table: Mapping[str, Any], which: str, where: str) -> Fault:
  kind = table.get("kind")
  if kind not in KINDS:
    raise InvalidArgument(f"{which}: no fault is of kind {kind!r}", where=where, hint=f"there are {', '.join(KINDS)}")
  keys = {"kind", "nth"} | KINDS[kind][1]
  if wrong := table.keys() - keys:
    raise InvalidArgument(f"{which}: {', '.join(sorted(wrong))}", where=where,
                          hint=f"of {kind!r} there are {', '.join(sorted(keys))}")
  values = dict(table)
  for key in _NAMED.keys() & values.keys():
    if isinstance(text := values[key], str): values[key] = code(key, text, which, where)
  for key, value in values.items():
    wanted = str if key in ("kind", "name", "queue") else int
    if type(value) is not wanted or isinstance(value, int) and value < (key == "nth"):
      raise InvalidArgument(f"{which}: {key} = {value!r}", where=where)
  if kind == "xid" and not values.get("number"):
    raise InvalidArgument(f"{which}: an Xid has its number", where=where, hint="as in number = 13")
  return Fault(**values)


def code(key: str, name: str, which: str, where: str) -> int:
  """The number of an errno, of a status of RM, or of a CUresult. Raises InvalidArgument."""
  # The generated tables load where a file names one: each mock machine has this module.
  if key == "errno": numbers = {text: number for number, text in errno.errorcode.items()}
  elif key == "status":
    from tinyhw.autogen import nv_rm_status
    numbers = {text: number for text, number in vars(nv_rm_status).items() if text.startswith("NV_ERR_")}
  else:
    from tinyhw.autogen import cuda
    numbers = {text: number for number, text in cuda.RESULTS.items() if number}
  if name in numbers: return numbers[name]
  raise InvalidArgument(f"{which}: no {key} is called {name!r}", where=where, hint=f'as in {key} = "{_NAMED[key]}"')


@dataclass
class Injected:
  """The faults of one machine that have not happened, and what was counted so far."""

  faults: Sequence[Fault] = ()
  counts: Counter[tuple[str, str]] = field(default_factory=Counter)
  calls: list[tuple[str, str]] = field(default_factory=list)  # that were made: the kind of fault, and the name
  happened: list[Fault] = field(default_factory=list)
  gone: set[int] = field(default_factory=set)  # GPUs, by index

  def refuse(self, whose: str) -> None:
    """Raises InvalidArgument where a fault is declared that a machine cannot have."""
    for fault in self.faults:
      if fault.kind in LACKS[whose]:
        raise InvalidArgument(f"{whose} has no fault of kind {fault.kind!r}", where="MOCKGPU_FAULTS")
      if "sigbus" in LACKS[whose] and fault.name == "mmap":  # who maps files there is the kernel
        raise InvalidArgument(f"{whose} has no call of the name mmap", where="MOCKGPU_FAULTS")

  def of(self, kind: str, name: str = "") -> Fault | None:
    """Something that faults of a kind count has come: the fault that it is, if it is one."""
    self.counts[kind, name] += 1
    for fault in self.faults:
      wanted = fault.queue if kind in _OF_QUEUES else fault.name
      if fault.kind != kind or wanted not in ("", name): continue
      count = self.counts[kind, name] if wanted else sum(n for (k, _), n in self.counts.items() if k == kind)
      if count == fault.nth:
        self.happened.append(fault)
        return fault
    return None

  def call(self, name: str) -> None:
    """A call of the kernel's has come. Raises Refused where it fails."""
    self.calls.append(("ioctl", name))
    fault = self.of("ioctl", name)
    if fault is not None: raise Refused(fault.errno, f"{name}: a fault that is declared")

  def answer(self, name: str) -> Fault | None:
    """RM or UVM is asked for something: the declared fault whose status it answers."""
    self.calls.append(("status", name))
    return self.of("status", name)

  def function(self, name: str) -> Fault | None:
    """A function of libcuda is called: the declared fault whose result it returns."""
    self.calls.append(("call", name))
    return self.of("call", name)

  def turn(self, queue: str) -> Fault | None:
    """A queue has its turn."""
    found = [self.of(kind, queue) for kind in sorted(ON_QUEUES)]
    return next((f for f in found if f is not None), None)
