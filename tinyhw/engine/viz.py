"""`VIZ=1`: a page on the kernels of a run, in one file that needs no other.

Of each kernel that was compiled it has the graph after each stage beside the one before, with what is new marked and
the rules that were applied, the linear program, the options, the source, the machine code, and its time. The file is
written when the process ends, or by `write`.
"""
from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.ending import Step, at_end
from tinyhw.core.environment import variable
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.core.locks import lock
from tinyhw.core.trace import Whose
from tinyhw.core.written import save
from tinyhw.ir.size import highest
from tinyhw.ir.stages import Watcher, watched
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from collections.abc import Iterator

  from tinyhw.compile import ProgramSpec

KERNELS: Final = 500  # of which pages are kept
ROWS: Final = 5000    # of a graph or program
RULES: Final = 200    # of a stage
Row = tuple[str, str, str, list[int], str]
"""Operation, type, argument, sources by number, and what the node is known by in all stages."""


@dataclass
class Stage:
  """What a stage of the compiler made, and the rules that were applied on the way to it."""
  name: str
  linear: bool
  rows: list[Row]
  rules: list[tuple[str, str, str]]
  count: int


def _rows(nodes: Sequence[UOp]) -> list[Row]:
  number = {u: i for i, u in enumerate(nodes[:ROWS])}
  return [(u.op.name, repr(u.dtype), "" if u.arg is None else str(u.arg), [number[s] for s in u.src if s in number],
           u.key.hex()[:12]) for u in number]


def _short(u: UOp) -> str:
  arg = "" if u.arg is None else f" {u.arg}"
  return f"{u.op.name}{arg}({', '.join(s.op.name + ('' if s.arg is None else f' {s.arg}') for s in u.src)})"[:160]


class _Watches(Watcher):
  """Writes the stages of one compilation down."""

  def __init__(self) -> None:
    self.stages: list[Stage] = []
    self._rules: list[tuple[str, str, str]] = []
    self._count = 0

  def stage(self, name: str, graph: Any) -> None:
    linear = isinstance(graph, tuple)
    nodes = list(graph) if linear else list(graph.toposort())
    self.stages.append(Stage(name, linear, _rows(nodes), self._rules, self._count))
    self._rules, self._count = [], 0

  def rewrote(self, rule: str, before: Any, after: Any) -> None:
    self._count += 1
    if len(self._rules) < RULES: self._rules.append((rule, _short(before), _short(after)))


def _mean(times: list[float]) -> float | None: return sum(times) / len(times) if times else None


@dataclass(eq=False)
class Page:
  """One kernel."""
  device: str
  compiled: float
  stages: list[Stage]
  spec: ProgramSpec | None = None
  code: str = ""
  times: list[float] = field(default_factory=list)  # by the device's clock
  host: list[float] = field(default_factory=list)  # the same launches, waited for by the host
  clock: Whose = Whose.HOST

  def data(self) -> dict[str, Any]:
    """As the page's script reads it."""
    spec = self.spec
    assert spec is not None
    return {
      "name": spec.name, "device": self.device, "grid": "*".join(map(str, spec.grid)), "source": spec.source,
      "block": "*".join(map(str, spec.block)), "operations": highest(spec.estimates.ops), "bytes": spec.estimates.bytes,
      "compiled": self.compiled, "runs": len(self.times), "code": self.code, "options": list(map(str, spec.opts)),
      "seconds": _mean(self.host if self.clock is Whose.MOCK else self.times), "clock": self.clock.value,
      "mocked": _mean(self.times) if self.clock is Whose.MOCK else None,
      "stages": [vars(stage) for stage in self.stages],
    }


class Viz:
  """The pages of this process. Threads may add to them."""

  def __init__(self) -> None:
    self._lock = lock()
    self._pages: list[Page] = []
    self._by_spec: dict[int, Page] = {}
    self._process = 0

  @contextmanager
  def compiling(self, device: str, renderer: Any) -> Iterator[Page]:
    """A kernel is compiled in the block, which gives the page its program."""
    watches, start = _Watches(), time.perf_counter()
    page = Page(device, 0.0, watches.stages)
    with watched(watches): yield page
    page.compiled = time.perf_counter() - start
    if page.spec is None: return
    page.code = machine_code(page.spec, renderer)
    with self._lock:
      if self._process != os.getpid():
        self._process = os.getpid()
        self._pages.clear()
        self._by_spec.clear()
        at_end(Step.REPORTS, self._at_exit)
      if len(self._pages) < KERNELS:
        self._pages.append(page)
        self._by_spec[id(page.spec)] = page

  def ran(self, spec: ProgramSpec, seconds: float, host: float) -> None:
    """A launch took so long, by the device's clock and by the host's."""
    if (page := self._by_spec.get(id(spec))) is not None:
      page.times.append(seconds)
      page.host.append(host)

  def page(self) -> str:
    """The page."""
    with self._lock: data = [p.data() for p in self._pages]
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")  # nothing in it ends the script
    return Path(__file__).with_suffix(".html").read_text(encoding="utf-8").replace("@DATA@", text)

  def write(self, path: Path) -> None:
    """Write the page."""
    save(path, self.page())

  def _at_exit(self) -> None:
    wanted = wants()
    if not self._pages or not wanted: return
    path = Path(f"tinyhw-viz-{os.getpid()}.html" if wanted == "1" else wanted)
    try: self.write(path)
    except InvalidArgument as error: print(f"tinyhw: VIZ: {error}", file=sys.stderr)
    else: print(f"tinyhw: VIZ: {path}: open it in a browser", file=sys.stderr)


VIZ: Final = Viz()


def wants() -> str:
  """The variable `VIZ`: "" or a file's name, or "1"."""
  text = variable("VIZ", b"VIZ")
  return "" if text == "0" else text


def machine_code(spec: ProgramSpec, renderer: Any) -> str:
  """The program's machine code as text, or in hex where nothing reads it."""
  if spec.binary[:4] == b"\x7fELF" and spec.target.startswith("amdgcn"):
    from tinyhw.devices.disassembly import code_object  # it loads where a page shows machine code
    try: return "\n".join(f"{s.address:#08x}  {s.bytes:24s} {s.text}" for s in code_object(spec.binary))
    except Error as error: return str(error)
  if hasattr(renderer, "assembly"): return str(renderer.assembly(spec.source, spec.name))
  return "\n".join(spec.binary[k:k + 32].hex(" ", 4) for k in range(0, len(spec.binary), 32))
