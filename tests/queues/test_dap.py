"""An editor's conversation with the debugger of queues, by the Debug Adapter Protocol."""
from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tinyhw.cli.dap import Server
from tinyhw.cli.dap_wire import Wire
from tinyhw.core.errors import DecodeError


class Client:
  """The editor's side: requests, and what comes until an answer or an event."""

  def __init__(self) -> None:
    (asked, asks), (reads, told) = os.pipe(), os.pipe()
    self._asks, self._reads = os.fdopen(asks, "wb"), os.fdopen(reads, "rb")
    self._server_streams = os.fdopen(asked, "rb"), os.fdopen(told, "wb")
    self.server = Server(Wire(*self._server_streams))
    self.thread = threading.Thread(target=self.server.serve)
    self.thread.start()
    self.seq, self.events = 0, list[dict[str, Any]]()

  def _read(self) -> dict[str, Any]:
    size = int(self._reads.readline().partition(b":")[2])
    assert self._reads.readline() == b"\r\n"
    found: dict[str, Any] = json.loads(self._reads.read(size))
    return found

  def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
    """The response, as a whole."""
    self.seq += 1
    raw = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode()
    self._asks.write(b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
    self._asks.flush()
    while (message := self._read())["type"] == "event": self.events.append(message)
    assert message["request_seq"] == self.seq and message["command"] == command
    return message

  def get(self, command: str, **arguments: Any) -> dict[str, Any]:
    """The body of an answer that is one."""
    answer = self.ask(command, **arguments)
    assert answer["success"], answer
    found: dict[str, Any] = answer["body"]
    return found

  def wait(self, event: str) -> dict[str, Any]:
    """The body of the next event of a name."""
    while True:
      message = self.events.pop(0) if self.events else self._read()
      if message["type"] == "event" and message["event"] == event:
        found: dict[str, Any] = message["body"]
        return found

  def close(self) -> None:
    self.ask("disconnect")
    self.thread.join(30)
    assert not self.thread.is_alive()
    for stream in (self._asks, self._reads, *self._server_streams): stream.close()


@pytest.fixture
def client() -> Iterator[Client]:
  made = Client()
  try: yield made
  finally: made.close()


def test_a_whole_conversation(captured: Path, client: Client) -> None:
  assert client.get("initialize", adapterID="tinyhw")["supportsStepBack"]
  client.get("launch", capture=str(captured))
  client.wait("initialized")
  (function,) = client.get("setFunctionBreakpoints", breakpoints=[{"name": "r_64*"}])["breakpoints"]
  client.get("configurationDone")
  assert client.wait("stopped")["reason"] == "entry"
  assert client.get("continue", threadId=1)["allThreadsContinued"]
  stop = client.wait("stopped")
  assert stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [function["id"]]
  assert stop["threadId"] in [t["id"] for t in client.get("threads")["threads"]]
  (frame,) = client.get("stackTrace", threadId=stop["threadId"])["stackFrames"]
  source = frame["source"]["sourceReference"]
  lines = client.get("source", sourceReference=source)["content"].splitlines()
  assert "kernel r_64" in lines[frame["line"] - 1] and frame["name"] in lines[frame["line"] - 1]
  scopes = {s["name"]: s["variablesReference"] for s in client.get("scopes", frameId=frame["id"])["scopes"]}
  found = {name: client.get("variables", variablesReference=at)["variables"] for name, at in scopes.items()}
  assert all(found[name] for name in ("Packet", "Registers", "Arguments"))
  buffer = next(v for v in found["Arguments"] if "memoryReference" in v)
  data = client.get("readMemory", memoryReference=buffer["memoryReference"], offset=4, count=12)
  assert len(base64.b64decode(data["data"])) == 12 and int(data["address"], 0) == int(buffer["memoryReference"], 0) + 4

  def goes(command: str) -> tuple[str, int]:
    client.get(command, threadId=stop["threadId"])
    told = client.wait("stopped")
    (there,) = client.get("stackTrace", threadId=told["threadId"])["stackFrames"]
    return told["reason"], there["line"]
  assert goes("stepBack") == ("step", frame["line"] - 1)
  assert goes("stepIn") == ("breakpoint", frame["line"])
  client.get("setFunctionBreakpoints", breakpoints=[])
  (line,) = client.get("setBreakpoints", source={"sourceReference": source}, breakpoints=[{"line": 1}])["breakpoints"]
  assert line["verified"] and goes("reverseContinue") == ("breakpoint", 1)
  assert goes("stepIn") == ("step", 2)
  assert goes("stepOut")[1] == 1
  client.get("setBreakpoints", source={"sourceReference": source}, breakpoints=[])
  client.get("continue", threadId=1)
  client.wait("terminated")


def test_what_cannot_be_is_answered(captured: Path, client: Client) -> None:
  def error(command: str, **arguments: Any) -> str:
    answer = client.ask(command, **arguments)
    assert not answer["success"]
    return str(answer["message"])
  assert "launch comes first" in error("threads")
  assert 'neither "capture" nor "program"' in error("launch")
  assert "no request that this debugger knows" in error("fly")
  client.get("launch", capture=str(captured))
  assert "threadId: is missing" in error("stackTrace")
  assert "'1' is no int" in error("stackTrace", threadId="1")
  assert "line: is missing" in error("setBreakpoints", source={"sourceReference": 1}, breakpoints=[{}])
  assert "'here' is no address" in error("readMemory", memoryReference="here", count=4)
  assert "no thread 99" in error("stackTrace", threadId=99)
  assert "there is no submission 9999" in error("source", sourceReference=10_000)
  assert "no memory of 4 bytes at 0x10" in error("readMemory", memoryReference="0x10", count=4)
  far, wrong = client.get("setBreakpoints", source={"sourceReference": 1},
                          breakpoints=[{"line": 100_000}, {"line": 0}])["breakpoints"]
  assert not far["verified"] and not wrong["verified"]


@pytest.mark.parametrize(("raw", "text"), [
  (b"hello\r\n\r\n", "a header without Content-Length"), (b"Content-Length: many\r\n\r\n", "Content-Length: many"),
  (b"Content-Length: 99999999999\r\n\r\n", "a number up to"), (b"Content-Length: 10\r\n\r\n{}", "8 bytes before"),
  (b"GET / HTTP/1.1", "that does not end")])
def test_a_stream_that_is_no_conversation_gets_one_answer(raw: bytes, text: str) -> None:
  told = io.BytesIO()
  with pytest.raises(DecodeError, match="DAP"): Server(Wire(io.BytesIO(raw), told)).serve()
  header, _, body = told.getvalue().partition(b"\r\n\r\n")
  answer = json.loads(body)
  assert int(header.partition(b":")[2]) == len(body) and not answer["success"] and text in answer["message"]


@pytest.mark.parametrize("raw", [b"no json", b"[1]", b'{"type": "event"}', b'{"type":"request","seq":1,"command":7}'])
def test_behind_a_message_that_is_no_request_the_next_one_is_heard(raw: bytes) -> None:
  told = io.BytesIO()
  more = b'{"type":"request","seq":2,"command":"initialize"}'
  asked = b"".join(b"Content-Length: %d\r\n\r\n" % len(part) + part for part in (raw, more))
  Server(Wire(io.BytesIO(asked), told)).serve()
  first, second = (json.loads(part.partition(b"\r\n\r\n")[2]) for part in told.getvalue().split(b"Content-Length")[1:])
  assert not first["success"] and "a message that is no" in first["message"] and second["success"]


def test_the_command_speaks_on_standard_input() -> None:
  parts = [{"seq": 1, "type": "request", "command": "initialize"}, {"seq": 2, "type": "request", "command": "launch"},
           {"seq": 3, "type": "request", "command": "disconnect"}]
  raw = b"".join(b"Content-Length: %d\r\n\r\n" % len(p) + p for p in (json.dumps(part).encode() for part in parts))
  done = subprocess.run([sys.executable, "-c", "from tinyhw.cli import main; main()", "debug", "--dap"],
                        input=raw, capture_output=True, check=True)
  told = [json.loads(part.partition(b"\r\n\r\n")[2]) for part in done.stdout.split(b"Content-Length")[1:]]
  assert [m.get("command", m.get("event")) for m in told] == ["initialize", "launch", "disconnect"]
  assert [m["success"] for m in told] == [True, False, True]
