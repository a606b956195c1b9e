"""Messages of the Debug Adapter Protocol: JSON behind a header that says how many bytes it has (the specification's
"Base Protocol", https://microsoft.github.io/debug-adapter-protocol/overview)."""
from __future__ import annotations

import json
import threading
from typing import Any, BinaryIO, Final

from tinyhw.core.environment import digits
from tinyhw.core.errors import DecodeError, InvalidArgument

LONGEST: Final = 1 << 24  # bytes of a message
HEADER: Final = 1024      # bytes of its header


class Wire:
  """Two streams. Threads may write."""

  def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
    self._in, self._out = reading, writing
    self._lock, self._seq = threading.Lock(), 0

  def read(self) -> dict[str, Any] | None:
    """The next request; None at the end. Raises InvalidArgument for a message that is framed well and is no request,
    behind which the next one can be read, and DecodeError where nothing can."""
    size = self._header()
    if size is None: return None
    raw = self._in.read(size)
    if len(raw) < size: raise DecodeError(f"the stream ends {size - len(raw)} bytes before its message", where="DAP")
    try: found = json.loads(raw)
    except (ValueError, RecursionError): raise InvalidArgument("a message that is no JSON", where="DAP") from None
    if not (isinstance(found, dict) and found.get("type") == "request" and isinstance(found.get("command"), str)
            and type(found.get("seq")) is int and isinstance(found.get("arguments", {}), dict)):
      raise InvalidArgument("a message that is no request", where="DAP", hint="it has seq, type, command, arguments")
    return found

  def _header(self) -> int | None:
    size: int | None = None
    first = True
    while True:
      line = self._in.readline(HEADER)
      if not line and first: return None
      if not line.endswith(b"\r\n"): raise DecodeError(f"a header line {line[:40]!r} that does not end", where="DAP",
                                                       hint="a message begins with Content-Length: N")
      first = False
      if line == b"\r\n": break
      name, _, value = line.decode("latin-1").partition(":")
      if name.strip().lower() != "content-length": continue
      if not digits(value.strip()) or int(value) > LONGEST:
        raise DecodeError(f"Content-Length: {value.strip()[:40]}", where="DAP", hint=f"a number up to {LONGEST:,}")
      size = int(value)
    if size is None: raise DecodeError("a header without Content-Length", where="DAP")
    return size

  def write(self, message: dict[str, Any]) -> None:
    """A response or an event."""
    with self._lock:
      self._seq += 1
      raw = json.dumps({"seq": self._seq} | message).encode()
      self._out.write(b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
      self._out.flush()

  def event(self, name: str, **body: Any) -> None:
    """Something has happened."""
    self.write({"type": "event", "event": name, "body": body})

  def answer(self, request: dict[str, Any], body: dict[str, Any] | None = None, error: str = "") -> None:
    """What became of a request."""
    row = {"type": "response", "request_seq": request.get("seq", 0), "command": request.get("command", ""),
           "success": not error}
    self.write(row | ({"message": error, "body": {"error": {"id": 1, "format": error}}} if error
                      else {"body": body or {}}))
