"""What other programs wrote about queues is read: rings by packets around the read pointer, faults by their fields."""
from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.queues.dumps import (
  DONE,
  DRAW,
  FENCE,
  NOP,
  ROCGDB,
  ROCGDB_MI,
  SIZE,
  UMR_OLD,
  UMR_STREAM,
  WAIT,
  coredump,
  debugfs,
  ring,
  umr_ring,
)
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.cli.decode import command as decode
from tinyhw.cli.doctor import command as doctor
from tinyhw.core.errors import DecodeError, Error
from tinyhw.queues.foreign import forms, hrr, show
from tinyhw.queues.foreign.dump import Dump, Ring
from tinyhw.queues.foreign.packets import Placed, packets
from tinyhw.tools.fuzz.queues import mutated


def read(text: str | bytes, path: str = "dump.txt") -> Dump:
  found = forms.read(text.encode() if isinstance(text, str) else text, path)
  assert found is not None
  return found


def at(found: list[Placed], index: int) -> Any: return next(p.item.packet for p in found if p.index == index)


WRITERS: dict[str, Callable[[int, int, list[int]], Dump]] = {
  "devcoredump": lambda r, w, words: read(coredump([("comp_1.0.0", r, w, words)])),
  "debugfs": lambda r, w, words: read(debugfs(r, w, words), "x/amdgpu_ring_comp_1.0.0"),
  "umr": lambda r, w, words: read(umr_ring("comp_1.0.0", r, w, words)),
  "umr in colours": lambda r, w, words: read(umr_ring("comp_1.0.0", r, w, words, True))}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("start", range(0, SIZE, 7))
def test_packets_are_found_around_the_read_pointer(form: str, start: int) -> None:
  """Wherever in the ring they lie, also around its end."""
  stream = [*DONE, *WAIT, *DRAW, *DONE]
  pointer, end = (start + len(DONE)) % SIZE, (start + len(stream)) % SIZE
  made = WRITERS[form](pointer, end, ring(stream, start)).rings[0]
  assert (made.name, made.kind, made.read, made.write, made.pending) == (
    "comp_1.0.0", "pm4", pointer, end, len(stream) - len(DONE))
  found = packets(made)
  assert isinstance(at(found, start), pm4.RELEASE_MEM) and isinstance(at(found, pointer), pm4.WAIT_REG_MEM)
  assert at(found, pointer).reference == 5
  draw = next(p.item for p in found if p.item.packet is None)
  assert draw.words == tuple(DRAW) and "DRAW_INDEX_AUTO" in draw.error
  assert sum(len(p.item.words) for p in found) == SIZE


@pytest.mark.parametrize("start", [10, SIZE - len(DONE) - 2, SIZE - len(DONE)])
def test_a_part_of_a_ring_is_read_around_its_pointer(start: int) -> None:
  """`umr -R NAME[.]` begins before the read pointer, amid a packet, and may wrap."""
  stream = [*DONE, *WAIT, *DONE]
  read_at, end = (start + len(DONE)) % SIZE, (start + len(stream)) % SIZE
  text = umr_ring("comp_1.0.0", read_at, end, ring(stream, start)).splitlines()
  head, words = text[:4], text[4:]
  turned = (words[start - 3:] + words[:start - 3])[:len(stream) + 4]
  made = read("\n".join([*head, *turned])).rings[0]
  found = packets(made)
  assert not made.whole and made.pending in (len(stream) - len(DONE), -1)
  assert isinstance(at(found, start), pm4.RELEASE_MEM) and isinstance(at(found, read_at), pm4.WAIT_REG_MEM)
  assert sum(len(p.item.words) for p in found) == len(turned)
  if made.pending > 0:
    assert "it waits for 0x7f0000001000 == 0x5" in "\n".join(show.examine(read("\n".join([*head, *turned]))).lines())


def test_pointers_count_on_beyond_the_ring() -> None:
  found = read(coredump([("comp_1.0.0", 5 * SIZE + 8, 7 * SIZE + 16, ring(DONE, 8))])).rings[0]
  assert (found.read, found.write) == (8, 16)


@pytest.mark.parametrize("rng", [random.Random(n) for n in range(30)])
def test_no_word_is_lost_and_none_is_invented(rng: random.Random) -> None:
  """Any words, pointers and kinds: the packets' words are the ring's, in the order of writing."""
  words: list[int | None] = [rng.choice([NOP, 0, rng.getrandbits(32), rng.choice(WAIT), None]) for _ in range(SIZE)]
  made = Ring("x", rng.choice(["pm4", "sdma", "aql", ""]), words, size=SIZE, read=rng.randrange(SIZE),
              write=rng.randrange(SIZE))
  out = [None if i in p.unknown else w for p in packets(made, rng.random() < 0.3) for i, w in enumerate(p.item.words)]
  assert out == words[made.write:] + words[:made.write]


def test_another_generations_packets_are_named_and_not_decoded() -> None:
  for version in ("12.0.1.0.0", "9.4.3.0.0"):
    dump = read(coredump([("comp_1.0.0", 0, 7, ring(WAIT))], gc=version, address=0x1000, status=0x1031))
    found = packets(dump.rings[0], True)
    assert all(p.item.packet is None for p in found)
    text = "\n".join(show.lines(dump))
    assert "WAIT_REG_MEM by its opcode" in text and "not decoded" in text and "mem_poll_addr" not in text
    assert "PERMISSION_FAULTS" not in text and "(ME0PIPE0" not in text


def test_a_coredump_tells_ring_fault_and_registers() -> None:
  text = coredump([("comp_1.0.0", 0, 7, ring(WAIT)), ("sdma0", 2, 8, ring(FENCE, 2, 0)), ("gfx_0.0.0", 3, 3, ring([])),
                   ("mes_3.0.0", 0, 3, ring([1, 2, 3]))], timed_out="comp_1.0.0", address=0x7F00DEAD000,
                  status=0x301031)
  found = show.examine(read(text))
  told = "\n".join(found.lines())
  assert found.ill and found.line == ("a page fault of gfxhub at 0x7f00dead000; ring comp_1.0.0 timed out: "
                                      "7 dwords wait from 0x0")
  for part in ("PERMISSION_FAULTS=3", "a read by client 0x8 of VMID 3", "it waits for 0x7f0000001000 == 0x5",
               "SDMA_PKT_FENCE(", "idle:\n  gfx_0.0.0", "CP_BUSY=1", "holds the headers of WAIT_REG_MEM",
               "queue 1: the hardware queue is active", "[00000001 00000002 00000003] dwords", "VRAM"):
    assert part in told, part
  facts = dict(read(text).facts)
  assert (facts["kernel"], facts["process_name"]) == ("6.12.0", "python3 PID: 1780")


def test_a_coredump_without_a_fault_has_none() -> None:
  """The lines are printed with zeros."""
  found = show.examine(read(coredump([("comp_1.0.0", 7, 7, ring(WAIT))])))
  assert not found.ill and found.line == "nothing stands" and "page fault" not in "\n".join(found.lines())


def test_umrs_streams() -> None:
  dump = read(UMR_STREAM)
  stream, aql = (packets(r) for r in dump.rings)
  assert at(stream, 1).mem_poll_addr == 0x7F0000001000
  assert stream[-1].item.packet is None and "1 of its 3 dwords are not in the listing" in stream[-1].item.error
  assert "[c0016900 -------- 42800000]" in show.packet_line(stream[-1])
  assert at(aql, 0).kernel_object == 0x7A0944AA4540 and aql[0].item.address == 0x7A0823E00000
  old = packets(read(UMR_OLD).rings[0])
  assert old[0].item.words == tuple(WAIT) and isinstance(old[0].item.packet, pm4.WAIT_REG_MEM)
  assert show.examine(dump).line == "the file does not say where its rings are read"


def test_a_listing_with_a_wide_gap_is_short_work() -> None:
  """One wrong digit in an offset: a gap of 100 KB is one item, and packets of one size stay in their places."""
  for text, items in ((UMR_STREAM.replace("+ 0x0028]\t", "+ 0x18028]\t"), 4), (UMR_STREAM, 3)):
    assert len(packets(read(text).rings[0])) == items
  aql = packets(read(UMR_STREAM.replace("+ 0x0038]", "+ 0x18038]")).rings[1])
  assert [p.index % 16 for p in aql] == [0] * len(aql) and len(aql) == 0x18040 // 64
  assert "2 of its 16 dwords are not in the listing" in aql[0].item.error


def test_rocgdbs_listings() -> None:
  dump = read(ROCGDB)
  queues, dispatches = (t.rows for t in dump.tables)
  assert [(q["read"], q["write"], q["type"], q["address"]) for q in queues] == [
    (2, 2, "HSA", 0x7FFFF626E000), (0, 2, "HSA (Multi)", 0x7FFFE5800000)]
  first = dispatches[0]
  assert (first["packet"], first["grid"], first["function"]) == (0, "256,1,1", "kern(int*, int)")
  found = show.examine(dump)
  assert found.ill and "Queue 1:2 (QID 1)" in found.line and "packet 0 of 2; on the GPU: kern(int*, int)" in found.line
  assert "acquires at agent scope, releases at system scope" in "\n".join(found.lines())
  mi = read(ROCGDB_MI).tables[0].rows[0]
  assert (mi["read"], mi["write"], mi["size"], mi["address"]) == (0, 2, 1048576, 0x7FFFE5800000)


def test_a_ring_of_debugfs_must_be_whole() -> None:
  for data in (b"", b"\0" * 12, b"\0" * 15):
    with pytest.raises(DecodeError, match="no ring of debugfs"): forms.read(data, "amdgpu_ring_gfx_0.0.0.bin")


# ---- the commands


def invoke(what: Any, *arguments: str) -> Result: return CliRunner().invoke(what, arguments)


def test_decode_and_doctor_read_them(tmp_path: Path) -> None:
  core, words = tmp_path / "data", tmp_path / "amdgpu_ring_comp_1.0.0"
  core.write_text(coredump([("comp_1.0.0", 0, 7, ring(WAIT)), ("sdma0", 2, 8, ring(FENCE, 2, 0))]))
  words.write_bytes(debugfs(0, 7, ring(WAIT)))
  for file in core, words:
    shown = invoke(decode, str(file), "--queue", "comp")
    assert shown.exit_code == 0 and "-> 0x0000  WAIT_REG_MEM(" in shown.output and "SDMA" not in shown.output
    rows = [json.loads(line) for line in invoke(decode, str(file), "--json").output.splitlines()]
    order = [w for p in rows[1]["packets"] for w in p["words"]]
    assert order == ring(WAIT)[7:] + ring(WAIT)[:7] and rows[1]["packets"][-1]["fields"]["reference"] == 5
    told = invoke(doctor, str(file), "--json")
    assert told.exit_code == 1 and "comp_1.0.0 stands" in json.loads(told.output)["verdict"]
  plain = invoke(decode, str(words), "--kind", "sdma", "--short")
  assert plain.exit_code == 0 and "WAIT_REG_MEM" not in plain.output
  unknown = tmp_path / "x"
  unknown.write_bytes(b"\xff\xfe")
  for what, wanted in ((decode, "no dump that is known"), (doctor, "nor a dump that is known")):
    done = invoke(what, str(unknown))
    assert isinstance(done.exception, Error) and wanted in str(done.exception)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_dumps_are_read_or_refused(seed: int, tmp_path: Path) -> None:
  """Mutated in bytes, lines and sizes: text, rows and a verdict come out, or one of our errors."""
  rng = random.Random(seed)
  base = [("x", t.encode()) for t in (coredump([("comp_1.0.0", 3, 7, ring(WAIT)), ("sdma0", 2, 8, ring(FENCE, 2, 0))],
                                               timed_out="comp_1.0.0", address=0x1000, status=0x301031),
                                      umr_ring("gfx_0.0.0", 3, 7, ring(WAIT)), UMR_STREAM, UMR_OLD, ROCGDB, ROCGDB_MI)]
  base.append(("amdgpu_ring_sdma0", debugfs(1, 9, ring(FENCE, 1, 0))))
  for _ in range(60):
    path, data = rng.choice(base)
    try:
      dump = forms.read(mutated(data, rng), path)
      if dump is None: continue
      assert list(show.lines(dump)) is not None and json.dumps(list(show.rows(dump)))
      assert json.dumps(show.examine(dump).row()) and show.examine(dump).lines()
    except Error as error: assert len(str(error).splitlines()[0]) < 400


def test_an_archive_of_hip_record_and_replay(tmp_path: Path) -> None:
  """Calls, whole or cut, contents and code; of another format what does not depend on it; of several processes each."""
  def record(call: int, when: int, thread: int, more: bytes = b"") -> bytes:
    return struct.pack("<HQQQH4x", call, when, when, thread, 32 + len(more)) + more
  def archive(path: Path, events: bytes, version: int = hrr.FORMAT) -> Path:
    (path / "blobs/ab").mkdir(parents=True)
    (path / "blobs/ab/ab01.blob").write_bytes(bytes(100))
    (path / "code_objects").mkdir()
    (path / "code_objects/00ff.hsaco").write_bytes(b"no code object")
    (path / "events.bin").write_bytes(struct.pack("<IHH", hrr.MAGIC, version, 0) + events)
    return path
  calls = record(7, 1_000_000, 1, bytes(12)) + record(7, 2_000_000, 2) + record(9, 3_500_000, 1)
  whole = archive(tmp_path / "a.hrr", calls + record(hrr.END, 0, 0, bytes(12)))
  lines = CliRunner().invoke(decode, [str(whole)]).output.splitlines()
  assert lines[1] == "3 calls of 2 threads in 2.500 ms; its program ended well"
  assert lines[2].split() == ["2", "call", "7"]
  assert "1 contents, 100 bytes" in lines and lines[-1].startswith("00ff.hsaco: ")
  one, = hrr.read(archive(tmp_path / "b.hrr", calls + record(9, 4, 1)[:20]))
  assert not one.ended and one.cut == 8 + len(calls) and one.row()["calls"] == {7: 2, 9: 1}
  other = archive(tmp_path / "c.hrr/pid-3", calls, 5).parent
  assert "records of format 5 are not read, those of 3 are" in CliRunner().invoke(decode, [str(other)]).output
  (whole / "events.bin").write_bytes(b"what")
  for wrong in (whole, tmp_path / "c.hrr/pid-3/blobs"):
    with pytest.raises(DecodeError): hrr.read(wrong)
