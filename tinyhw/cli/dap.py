"""`tinyhw debug --dap`: the debugger of queues for an editor, by the Debug Adapter Protocol.

A queue is a thread, the packet at which it stands its frame, a submission's listing the source: line N is packet N - 1.
Names and fields are those of the specification (https://microsoft.github.io/debug-adapter-protocol/specification).
"""
from __future__ import annotations

import base64
import queue
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from tinyhw.cli.dap_wire import Wire
from tinyhw.cli.queue_shell import arguments, row_text
from tinyhw.cli.record import run_recorded
from tinyhw.core.errors import DecodeError, DeviceError, Error, InvalidArgument
from tinyhw.queues import listing
from tinyhw.queues.breaks import rows
from tinyhw.queues.capture import Capture
from tinyhw.queues.debug import QueuePlace, Session, Stop
from tinyhw.toolbox.debug import new_session

T = TypeVar("T")
CAPABILITIES: Final = {"supportsConfigurationDoneRequest": True, "supportsFunctionBreakpoints": True,
                       "supportsStepBack": True, "supportsReadMemoryRequest": True, "supportsRestartRequest": True,
                       "supportsTerminateRequest": True}
_SCOPES: Final = ("Packet", "Registers", "Arguments")
_REASONS: Final = {"start": "entry", "breakpoint": "breakpoint", "fault": "exception", "differs": "exception",
                   "interrupted": "pause"}
_LAST: Final = ("disconnect", "terminate")
_WHILE_RUNNING: Final = ("pause", *_LAST)  # they end a run


class Server:
  """One conversation. `capture` is what `launch` debugs where it names nothing."""

  def __init__(self, wire: Wire, capture: str | None = None, mockgpu: str | None = None) -> None:
    self.wire, self._capture, self._mockgpu = wire, capture, mockgpu
    self.session: Session | None = None
    self.path: Path | None = None
    self._folder = tempfile.TemporaryDirectory(prefix="tinyhw-")
    self._requests: queue.Queue[dict[str, Any] | Error | None] = queue.Queue()
    self._threads: dict[str, int] = {}
    self._lines: dict[int, list[int]] = {}  # breakpoints by submission; those of function names are under -1
    self._enters, self._over = True, False

  def serve(self) -> None:
    """Until the client disconnects. Raises DecodeError for a stream that is no conversation."""
    threading.Thread(target=self._read, daemon=True).start()
    try:
      while not self._over:
        request = self._requests.get()
        if request is None: return
        if isinstance(request, Error):
          self.wire.answer({}, error=str(request))
          if not isinstance(request, InvalidArgument): raise request
          continue
        self._handle(request)
    finally:
      if self.session is not None: self.session.close()
      self._folder.cleanup()

  def _read(self) -> None:
    """Requests as they come: a run that goes on is told of those that end it."""
    while True:
      try: request = self.wire.read()
      except InvalidArgument as error:
        self._requests.put(error)
        continue
      except DecodeError as error: return self._requests.put(error)
      except (OSError, ValueError): request = None  # the stream was closed
      if (request is None or request["command"] in _WHILE_RUNNING) and self.session is not None:
        self.session.interrupt()
      self._requests.put(request)
      if request is None or request["command"] in _LAST: return

  def _handle(self, request: dict[str, Any]) -> None:
    name = request["command"]
    found: Callable[[dict[str, Any]], dict[str, Any] | None] | None = getattr(self, f"_on_{name}", None)
    if found is None: return self.wire.answer(request, error=f"{name}: no request that this debugger knows")
    try: body = found(request.get("arguments") or {})
    except Error as error: return self.wire.answer(request, error=str(error))
    self.wire.answer(request, body)
    if (after := getattr(self, f"_after_{name}", None)) is not None: after()

  # ---- beginning and end

  def _on_initialize(self, a: dict[str, Any]) -> dict[str, Any]: return dict(CAPABILITIES)

  def _on_launch(self, a: dict[str, Any]) -> None:
    if self.session is not None: raise InvalidArgument("is debugged already", where="launch")
    capture, program = _field(a, "capture", str, "") or self._capture, _field(a, "program", str, "")
    mockgpu = _field(a, "mockgpu", str, "") or self._mockgpu
    if program:
      path = Path(_field(a, "output", str, "") or Path(self._folder.name) / "run.thq")
      code = run_recorded(path, mockgpu, program, tuple(map(str, _field(a, "args", list, []))), output=sys.stderr)
      if not path.exists(): raise DeviceError(f"opened no device that has queues (exit status {code})",
                                              where=program, hint='"mockgpu": "gfx1100" names mock cards')
    elif capture is not None: path = Path(capture)
    else: raise InvalidArgument('names neither "capture" nor "program"', where="launch")
    self.session, self.path, self._enters = new_session(path, mockgpu), path, bool(a.get("stopOnEntry", True))

  def _after_launch(self) -> None: self.wire.event("initialized")

  def _on_configurationDone(self, a: dict[str, Any]) -> None: self._at()

  def _after_configurationDone(self) -> None:
    if self._enters: self._stopped(self._at().last)
    else: self._stopped(self._at().run())

  def _on_disconnect(self, a: dict[str, Any]) -> None: self._over = True

  _on_terminate = _on_disconnect

  def _after_terminate(self) -> None: self.wire.event("terminated")

  # ---- breakpoints

  def _on_setBreakpoints(self, a: dict[str, Any]) -> dict[str, Any]:
    submission = _field(_field(a, "source", dict), "sourceReference", int) - 1
    count = len(self._source(submission))
    lines = [_field(b, "line", int) for b in _field(a, "breakpoints", list, [])]
    return self._set(submission, [f"at {submission}:{n - 1}" if 1 <= n <= count else "" for n in lines])

  def _on_setFunctionBreakpoints(self, a: dict[str, Any]) -> dict[str, Any]:
    names = [_field(b, "name", str).strip() for b in _field(a, "breakpoints", list, [])]
    return self._set(-1, [n if " " in n or not n else f"packet {n}" if n == n.upper() else f"kernel {n}"
                          for n in names])

  def _set(self, key: int, wanted: list[str]) -> dict[str, Any]:
    session = self._at()
    for number in self._lines.pop(key, ()): session.delete(number)
    numbers, told = self._lines.setdefault(key, []), []
    for text in wanted:
      try: made = session.add(text)
      except Error as error: told.append({"verified": False, "message": str(error)})
      else:
        numbers.append(made.number)
        told.append({"id": made.number, "verified": True})
    return {"breakpoints": told}

  # ---- running

  def _go(self, run: Callable[[], Stop]) -> None: self._later: Callable[[], Stop] = run

  def _went(self) -> None: self._stopped(self._later())

  def _on_continue(self, a: dict[str, Any]) -> dict[str, Any]:
    self._go(self._at().run)
    return {"allThreadsContinued": True}

  def _on_next(self, a: dict[str, Any]) -> None: self._go(self._at().next)
  def _on_stepIn(self, a: dict[str, Any]) -> None: self._go(self._at().step)
  def _on_stepOut(self, a: dict[str, Any]) -> None: self._go(self._at().next_submission)
  def _on_stepBack(self, a: dict[str, Any]) -> None: self._go(self._at().reverse_step)
  def _on_reverseContinue(self, a: dict[str, Any]) -> None: self._go(self._at().reverse_run)
  def _on_restart(self, a: dict[str, Any]) -> None: self._go(self._at().restart)

  def _on_pause(self, a: dict[str, Any]) -> None: self._at().interrupted()  # a run has ended by it, or none was there

  _after_continue = _after_next = _after_stepIn = _after_stepOut = _after_stepBack = _went
  _after_reverseContinue = _after_restart = _went

  def _stopped(self, stop: Stop) -> None:
    session = self._at()
    if stop.text: self.wire.event("output", category="console", output=f"{stop.text}\n")
    if session.ended and not session.waiting(): return self.wire.event("terminated")
    place = session.focus()
    self.wire.event("stopped", reason=_REASONS.get(stop.reason, "step"), allThreadsStopped=True, text=stop.text,
                    threadId=1 if place is None else self._number(place.standing.name),
                    hitBreakpointIds=[stop.breakpoint] if stop.breakpoint else [])

  # ---- looking

  def _on_threads(self, a: dict[str, Any]) -> dict[str, Any]:
    return {"threads": [{"id": self._number(p.standing.name), "name": f"{p.standing.name} ({p.standing.state})"}
                        for p in self._at().places()]}

  def _on_stackTrace(self, a: dict[str, Any]) -> dict[str, Any]:
    place = self._place(_field(a, "threadId", int))
    if place.row is None: return {"stackFrames": [], "totalFrames": 0}
    frame = {"id": self._number(place.standing.name), "name": listing.packet_text(place.row.item),
             "line": place.row.index + 1, "column": 1, "instructionPointerReference": hex(place.row.item.address),
             "source": {"name": f"submission {place.row.submission} on {place.queue}",
                        "sourceReference": place.row.submission + 1}}
    return {"stackFrames": [frame], "totalFrames": 1}

  def _on_source(self, a: dict[str, Any]) -> dict[str, Any]:
    return {"content": "\n".join(self._source(_field(a, "sourceReference", int) - 1)) + "\n", "mimeType": "text/plain"}

  def _on_scopes(self, a: dict[str, Any]) -> dict[str, Any]:
    base = (_field(a, "frameId", int) - 1) * len(_SCOPES) + 1
    return {"scopes": [{"name": name, "variablesReference": base + i, "expensive": False}
                       for i, name in enumerate(_SCOPES)]}

  def _on_variables(self, a: dict[str, Any]) -> dict[str, Any]:
    thread, scope = divmod(_field(a, "variablesReference", int) - 1, len(_SCOPES))
    place, session = self._place(thread + 1), self._at()
    pairs: list[tuple[str, str, int]] = []
    if scope == 0 and place.row is not None:
      for item in place.row.items():
        fields = item.packet.to_dict() if hasattr(item.packet, "to_dict") else {}
        pairs += [(k, hex(v) if isinstance(v, int) and not isinstance(v, bool) else str(v), 0)
                  for k, v in fields.items()]
        pairs += [(line.partition("(")[0].partition(" ")[0], line, 0) for line in listing.below(item)]
      pairs += [(f"[{field}]", session_name, value) for field, value in listing.addresses(place.row.item)
                if (session_name := place.names.at(value))]
    elif scope == 1:
      values = session.on.machines[place.vendor].values_of(place.standing.name)
      pairs = [(k, v if isinstance(v, str) else hex(v), 0) for k, v in values.items()]
    elif scope == 2:
      pairs = [(f"+{r['offset']:#x}", f"{r['value']:#x} {r['name']}".rstrip(), r["value"] if r["name"] else 0)
               for r in arguments(session, place)]
    return {"variables": [{"name": n, "value": v, "variablesReference": 0}
                          | ({"memoryReference": hex(at)} if at else {}) for n, v, at in pairs]}

  def _on_readMemory(self, a: dict[str, Any]) -> dict[str, Any]:
    text, size = _field(a, "memoryReference", str), _field(a, "count", int)
    try: address = int(text, 0) + _field(a, "offset", int, 0)
    except ValueError: raise InvalidArgument(f"{text!r} is no address", where="readMemory") from None
    if not size: return {"address": hex(address)}
    return {"address": hex(address), "data": base64.b64encode(self._at().memory(address, size)).decode()}

  # ---- numbers of the protocol

  def _at(self) -> Session:
    if self.session is None: raise InvalidArgument("nothing is debugged", where="DAP", hint="launch comes first")
    return self.session

  def _number(self, name: str) -> int: return self._threads.setdefault(name, len(self._threads) + 1)

  def _place(self, thread: int) -> QueuePlace:
    found = next((p for p in self._at().places() if self._number(p.standing.name) == thread), None)
    if found is None: raise InvalidArgument(f"no thread {thread}", where="DAP")
    return found

  def _source(self, submission: int) -> list[str]:
    """The listing of a submission."""
    self._at()
    assert self.path is not None
    capture = Capture(self.path)
    try:
      for step in capture:
        if step.submission != submission or step.follow is None or step.queue is None: continue
        names = listing.Names(capture, step.event.vendor, step.world)
        made = rows(submission, step.follow.items, step.follow.launches, 0)
        return [row_text(names, row) for row in made]
    finally: capture.close()
    raise InvalidArgument(f"there is no submission {submission}", where="source")


def _field(a: Any, name: str, kind: type[T], default: T | None = None) -> T:
  """A field of a request's arguments. Raises InvalidArgument where it is not there, or of another type."""
  found = a.get(name, default) if isinstance(a, dict) else None
  if type(found) is not kind:
    raise InvalidArgument("is missing" if found is None else f"{found!r:.40} is no {kind.__name__}", where=name,
                          hint="the Debug Adapter Protocol's specification has each request's arguments")
  return found
