"""`tinyhw bringup`: its tables and files; and that a report tells nothing of persons, hosts and pieces."""
from __future__ import annotations

import getpass
import json
import os
import socket
import uuid
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from tinyhw.bringup.private import Private
from tinyhw.cli.benches import ladder_of
from tinyhw.cli.bringup import command
from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.queues.capture import Capture
from tinyhw.queues.container import Reader


def ran(*words: str) -> str:
  """What the command prints; an error of the tree is raised."""
  done = CliRunner().invoke(command, list(words), catch_exceptions=False)
  return done.output


def everything(path: Path) -> bytes:
  """All bytes that a report has, captures unpacked."""
  found = b""
  with zipfile.ZipFile(path) as packed:
    for name in packed.namelist():
      found += name.encode() + packed.read(name)
      if not name.endswith(".thq"): continue
      out = path.parent / name
      out.write_bytes(packed.read(name))
      reader = Reader(out)
      found += repr(reader.head).encode()
      found += b"".join(reader.blob(n) or b"" for n in reader.names())
      for row in reader.events(): found += b"".join(v if isinstance(v, bytes) else repr(v).encode() for v in row)
      reader.close()
  return found


@pytest.mark.parametrize(("card", "vendor"), [("gfx1100", "AMD"), ("sm_90", "NV")])
def test_a_report_has_the_run_and_nothing_private(card: str, vendor: str, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", card)
  monkeypatch.setattr(socket, "gethostname", lambda: "my-secret-host")
  monkeypatch.setattr(getpass, "getuser", lambda: "somebody_known")
  path = tmp_path / "out.zip"
  out = ran(vendor, "--until", "queue.create", "--report", str(path), "--largest", "4K")
  assert "passed of" in out
  with zipfile.ZipFile(path) as packed:
    assert {"README.txt", "ladder.json", "ladder.html", "run0.thq"} <= set(packed.namelist())
    told = json.loads(packed.read("ladder.json"))
    assert told["first_broken"] is None and told["facts"] and "queue.create" in {r["rung"] for r in told["rungs"]}
  found = everything(path)
  if vendor == "AMD":
    from tinyhw.mock.amd.machine import Machine
    machine = Machine(card)
    number = 0x7100_0000_0000_0000 + machine.gpus[0].gpu_id
    machine.close()
    secrets = [str(number).encode(), number.to_bytes(8, "little"), f"{number:x}".encode()]
  else:
    raw = uuid.uuid5(uuid.NAMESPACE_DNS, f"tinyhw mock {card} 0").bytes
    secrets = [raw, str(uuid.UUID(bytes=raw)).encode()]
  for secret in (*secrets, b"my-secret-host", b"somebody_known", str(tmp_path).encode(), os.getcwd().encode()):
    assert secret not in found, secret
  assert b"unique_id 7" not in found
  steps = list(Capture(tmp_path / "run0.thq"))
  assert len(steps) > 10  # it is read as any capture is


def test_secrets_are_known_by_rule() -> None:
  private = Private([b"\xde\xad\xbe\xef\x00\x01", b"7205759403792793600"])
  text = b"simd_count 192\nunique_id 4567\nlocation_id 768\ndomain 0\nGPU UUID: \t "
  text += b"GPU-0a0b0c0d-1111-2222-3333-444444444444\n"
  assert private.bytes(text).startswith(b"simd_count 192\nunique_id 0000\nlocation_id 000\ndomain 0\nGPU UUID: \t ")
  assert b"0a0b0c0d" not in private.bytes(text) and len(private.bytes(text)) == len(text)
  raw = b"ab\xde\xad\xbe\xef\x00\x01cd"
  assert private.bytes(raw, content=True) == b"ab\0\0\0\0\0\0cd"
  assert private.value({"path": "/home/ann/x.py", "n": [7205759403792793600, "7205759403792793600"]}) == {
    "path": "/" + "x" * 13, "n": [7205759403792793600, "0" * 19]}
  assert private.value("MIG-0a0b0c0d-1111-2222-3333-444444444444").count("0") > 20


def test_tables_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "gfx1100")
  rows = json.loads(ran("AMD", "--list", "--json"))
  assert [r["rung"] for r in rows] == [r.name for r in ladder_of("AMD")]
  assert "queue.nop" in ran("AMD", "--list")
  page, state = tmp_path / "page.html", tmp_path / "state.json"
  out = ran("amd", "--until", "memory.page", "--html", str(page), "--state", str(state))
  assert "AMD, mock gfx1100: 13 passed of 13 rungs" in out and "/dev/kfd opens" in out
  assert "<h2>memory</h2>" in page.read_text() and "every rung holds" in page.read_text()
  told = json.loads(ran("AMD", "--until", "memory.host", "--state", str(state), "--json").splitlines()[-1])
  assert [r["rung"] for r in told["rungs"] if not r["kept"]] == ["memory.host"]
  assert json.loads(ran("AMD", "--only", "counters", "--json").splitlines()[-1])["counts"]["broken"] == 0


def test_errors_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.delenv("MOCKGPU", raising=False)
  if not os.path.exists("/dev/kfd"):
    with pytest.raises(DeviceError, match="this machine has no /dev/kfd"): ran("AMD")
  monkeypatch.setenv("MOCKGPU", "gfx1100")
  with pytest.raises(InvalidArgument, match="no card 0"): ran("NV")
  with pytest.raises(InvalidArgument, match="no card 3"): ran("AMD", "--card", "3")
  monkeypatch.setenv("MOCKGPU", "gfx942:dpx")
  with pytest.raises(InvalidArgument, match="no card 2: MOCKGPU=gfx942:dpx has 2"): ran("AMD", "--card", "2")
  assert "AMD, mock gfx942:dpx: 1 passed" in ran("AMD", "--card", "1", "--only", "device.node")
  monkeypatch.setenv("MOCKGPU", "gfx1100")
  with pytest.raises(InvalidArgument, match="no ladder for 'CUDA'"): ran("CUDA")
  with pytest.raises(InvalidArgument, match=r"no rung is called 'queue.nope'.*queue.nop"):
    ran("AMD", "--until", "queue.nope")
  with pytest.raises(InvalidArgument, match="is no size"): ran("AMD", "--largest", "4T")
  with pytest.raises(InvalidArgument, match="cannot be written"):
    ran("AMD", "--until", "device.node", "--report", str(tmp_path / "no" / "out.zip"))
  monkeypatch.setenv("MOCKGPU", "sm_90")
  with pytest.raises(InvalidArgument, match="is no version"): ran("NV", "--qmd", "x")
