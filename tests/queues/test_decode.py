"""`tinyhw decode`: what a launch finds set, its code, counts, colours; damaged captures end in one error."""
from __future__ import annotations

import json
import random
import re
import struct
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from tests.queues.dumps import DONE, DRAW, FENCE, WAIT
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import nv_cbc0, nv_cbc0_qmd, nv_cdc0_qmd, sdma_v6
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.cli.decode import command, painted
from tinyhw.cli.doctor import command as doctor
from tinyhw.core.errors import DecodeError, Error
from tinyhw.core.layout import words_text
from tinyhw.queues import heads, listing, summary
from tinyhw.queues.amd.stream import AmdFollow
from tinyhw.queues.capture import Capture
from tinyhw.queues.events import Doorbell
from tinyhw.queues.nv import qmds, stream
from tinyhw.queues.plans import Plans
from tinyhw.queues.world import Queue
from tinyhw.tools.fuzz.queues import mutated
from tinyhw.wire import aql, methods, sdma
from tinyhw.wire import pm4 as pm4_wire


def decode(*arguments: str, given: str | None = None) -> Result: return CliRunner().invoke(command, arguments, given)


def test_each_launch_has_what_was_set_and_its_code(captured: Path) -> None:
  """The registers of AMD's dispatch and the methods of NVIDIA's, by their names, as the packets before it set them."""
  amd = "AMD" in captured.name
  rows = [json.loads(line) for line in decode(str(captured), "--state", "--disassemble", "--json").output.splitlines()]
  launched = [(lines, code) for row in rows for lines, code in zip(row["states"], row["code"])]
  launches = [l for s in Capture(captured) if s.follow is not None for l in s.follow.launches]
  assert len(launched) == len(launches) >= 3
  for (lines, code), launch in zip(launched, launches):
    text = "\n".join(lines)
    if amd: assert f"COMPUTE_PGM_LO = {launch.entry >> 8 & 0xFFFFFFFF:#010x}" in text
    else: assert "SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=" in text and "SET_OBJECT(NVCLASS=0xcbc0" in text
    assert code[0].startswith("code of ")
  bodies = ["\n".join(code) for _, code in launched if not code[0].endswith("as above")]
  assert bodies and all(("s_endpgm" if amd else "ret;") in body for body in bodies)
  assert len(bodies) == len({l.entry for l in launches})


def test_the_text_shows_the_same(captured: Path) -> None:
  plain = decode(str(captured), "--dispatch", "0", "--short")
  deep = decode(str(captured), "--dispatch", "0", "--short", "--state", "--disassemble")
  assert plain.exit_code == deep.exit_code == 0
  more = deep.output.splitlines()
  assert set(plain.output.splitlines()) < set(more) and any("code of " in line for line in more)
  assert all(line == line.rstrip() for line in more)


def test_a_summary_counts_what_decode_shows(captured: Path) -> None:
  row = json.loads(decode(str(captured), "--summary", "--json").output)
  kinds, launches, queues = Counter[str](), 0, Counter[str]()
  for step in Capture(captured):
    if step.follow is None: continue
    launches += len(step.follow.launches)
    queues[str(step.queue)] += len(step.follow.items)
    for item in step.follow.items:
      kinds[item.packet.header.__name__ if isinstance(item.packet, methods.Send) else type(item.packet).__name__] += 1
  assert row["packets"] == dict(kinds) and row["odd"] == 0 and sum(row["kernels"].values()) == launches
  assert {name: q["packets"] for name, q in row["queues"].items()} == queues
  assert all(name.startswith("kernel ") for name in row["kernels"])


def test_headers_alone_count_words(tmp_path: Path) -> None:
  rng = random.Random(5)
  made = [rng.choice(pm4.PACKETS).fuzz(rng) for _ in range(200)]
  found = summary.of_words("pm4", [*pm4_wire.stream(made), *DRAW, 0x80000000, 7])
  names = Counter(pm4_wire.name(pm4_wire.encode(p)[0]) for p in made) + Counter(["DRAW_INDEX_AUTO", "PACKET2"])
  assert found.packets == names and found.odd == 1
  assert summary.of_words("sdma", [*FENCE, *FENCE, 0xFF]).row() == {
    "packets": {"SDMA_PKT_FENCE": 2}, "kernels": {}, "odd": 1, "queues": {}}
  words = methods.Send(methods.INCR, 1, 0x100, (1, 2, 3)).encode() + methods.Send(methods.IMMD, 1, 0x100, (1,)).encode()
  assert summary.of_words("pushbuffer", words).packets == {"DMA_INCR": 1, "DMA_IMMD": 1}
  assert summary.of_words("aql", [2, *[0] * 15, 0x55]).row()["odd"] == 1
  shown = decode("-", "--kind", "pm4", "--summary", given=" ".join(f"{w:x}" for w in [*WAIT, *DONE, *WAIT]))
  assert shown.output.splitlines() == ["3 packets", "          2  WAIT_REG_MEM", "          1  RELEASE_MEM"]


def test_headers_alone_follow_what_a_ring_leads_to() -> None:
  """Indirect buffers and kernels: what `AmdFollow` finds with all packets built."""
  program = pm4_wire.set_sh_reg(gc.COMPUTE_PGM_LO, 0x1234, 0x5)
  inner = pm4_wire.stream([program, pm4.DISPATCH_DIRECT(dim_x=1, dim_y=1, dim_z=1, dispatch_initiator=1)])
  call = pm4.INDIRECT_BUFFER(ib_base=0x10000, ib_size=len(inner))
  copy = sdma.encode(sdma_v6.SDMA_PKT_INDIRECT(ib_base=0x20000, ib_size=4, csa_addr=0))
  one = (1, 1, 1)
  launch = aql.dispatch(one, one, kernel_object=0x7000, kernarg_address=0, private_bytes=0, group_bytes=0)
  for kind, ring, pieces, launched in (
      ("pm4", pm4_wire.stream([call, call]), [[0x10000, inner]], [5 << 40 | 0x1234 << 8] * 2),
      ("sdma", [*copy, *FENCE], [[0x20000, FENCE]], []), ("aql", memoryview(bytes(launch)).cast("I"), [], [0x7000])):
    event = Doorbell(address=0, value=0, nbytes=8, ring=[[0x1000, struct.pack(f"<{len(ring)}I", *ring)]],
                     pieces=[[at, struct.pack(f"<{len(w)}I", *w)] for at, w in pieces])
    known = dict(event.pieces)
    follow = AmdFollow(Queue(0, "q", kind, 0, 0x1000, 4096, 0), [(0x1000, event.ring[0][1])],
                       lambda at, size, known=known: known.get(at))  # type: ignore[misc]
    counts = heads.Counts()
    assert heads.Ring(Queue(0, "q", kind, 0, 0x1000, 4096, 0)).submission(event, counts) == launched
    assert launched == [l.entry for l in follow.launches]
    assert counts.packets == Counter(type(i.packet).__name__ for i in follow.items if i.packet is not None)


@pytest.mark.parametrize("line", [
  "submission 5  GPU0.PM4.0  727.590 ms", "  0x7f8789cef000  NOP(payload=())   ; note",
  "  -> 0x0040  WAIT_REG_MEM(x=1)", "     0x0041  [c0012d00 00000003] DRAW_INDEX_AUTO", "0x0000  ? what [00000001]",
  "                COMPUTE_PGM_LO = 1"])
def test_colours_change_no_letter(line: str) -> None:
  assert click.unstyle(painted(line)) == line
  assert (painted(line) != line) == (re.match(r"\s+COMPUTE", line) is None)


def test_a_file_has_no_colours(captured: Path) -> None:
  assert "\x1b" not in decode(str(captured), "--short").output


def test_what_fits_not_is_told(tmp_path: Path) -> None:
  for arguments, wanted in ((("-", "--kind", "pm4", "--state"), "are for captures"),
                            (("-", "--summary"), "words with their --kind")):
    done = decode(*arguments, given="c0001000 0")
    assert isinstance(done.exception, Error) and wanted in str(done.exception)


def test_damaged_captures_and_words_end_in_one_error(captured: Path, tmp_path: Path) -> None:
  """Decode with all that it can show, and the doctor: a result, or one of our errors."""
  rng, whole, path = random.Random(9), captured.read_bytes(), tmp_path / "bad"
  for _ in range(12):
    path.write_bytes(whole[:30] + mutated(whole[30:], rng))
    for what, arguments in ((command, ["--state", "--disassemble"]), (command, ["--summary"]), (doctor, [])):
      settled(what, str(path), *arguments)
  for _ in range(60):
    path.write_bytes(rng.randbytes(4 * rng.randrange(1, 40)))
    kind = rng.choice(("pm4", "sdma", "aql", "gpfifo", "pushbuffer"))
    for more in ([], ["--summary"], ["--json"]): settled(command, str(path), "--kind", kind, "--arch", "sm_90", *more)


def settled(what: Any, *arguments: str) -> None:
  done = CliRunner().invoke(what, arguments)
  assert done.exception is None or isinstance(done.exception, Error | SystemExit), done.exception


def test_what_is_known_by_content_is_what_the_long_way_reads(captured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """Submissions, and those with a word of theirs changed: read again from what is kept of words, blocks and QMDs, they
  are what each method read by itself gives, with all fields of its QMDs; and so are their lines."""
  rng, capture, seen = random.Random(3), Capture(captured), 0
  for step in capture:
    event, world, queue = step.event, step.world, step.queue
    if step.follow is None or not isinstance(event, Doorbell) or world is None or queue is None: continue
    behind = queue.state
    for n in range(8):
      words = {at: bytearray(data) for at, data in (*event.ring, *event.pieces)}
      changed = words[rng.choice(list(words))]
      at = 4 * rng.randrange(len(changed) // 4)
      if n > 1: changed[at:at + 4] = rng.choice((rng.randbytes(4), changed[at:at + 2] + rng.randbytes(2)))
      def read(address: int, size: int, words: Any = words) -> bytes | None:
        found = words.get(address)
        return None if found is None or len(found) < size else bytes(found[:size])
      ring, found = [(at, bytes(words[at])) for at, _ in event.ring], []
      for way in ("kept", "kept", "kept", "long"):  # words are known as a whole when they come a third time
        with monkeypatch.context() as patched:
          if way == "long":
            patched.setattr(stream, "meaning", lambda class_id, words: None)
            patched.setattr(stream, "described", lambda class_id, raw: qmds.whole(class_id, _dwords(raw)))
            patched.setattr(stream, "_BLOCKS", {})
            patched.setattr(listing, "_SHOWN", {})
            patched.setattr(listing, "_LATEST", {})
            patched.setattr(listing, "words_text", lambda cls, words: repr(cls.decode(words)))
          queue.state = deepcopy(behind)
          follow = world.follow(queue, ring, read)
          lines = list(listing.lines(listing.Names(capture, event.vendor, world), follow))
          found.append((follow.items, follow.launches, follow.roots, follow.pieces, queue.state, lines))
      assert found[0] == found[1] == found[2] == found[3]
      changed_event = Doorbell(address=0, value=0, nbytes=8, ring=[list(row) for row in ring],
                               pieces=[[at, bytes(words[at])] for at, _ in event.pieces])
      counts = []
      for fresh in (False, False, True):
        queue.state = deepcopy(behind)
        with monkeypatch.context() as patched:
          if fresh:
            patched.setattr(heads, "_SHAPES", {kind: Plans[heads.HeaderShape]() for kind in heads._SHAPES})
            patched.setattr(heads, "_PUSHED", {})
            patched.setattr(heads.Ring, "_plainly", lambda self, shape, words: None)
          taken, counted = heads.Ring(queue), heads.Counts()
          counts.append((taken.submission(changed_event, counted), counted, taken.packets))
      assert counts[0] == counts[1] == counts[2] and counts[0][1].packets.total() == counts[0][2]
      seen += 1
    queue.state = behind
  assert seen > 20


def _dwords(raw: bytes) -> tuple[int, ...]: return tuple(memoryview(raw[:len(raw) & ~3]).cast("I").tolist())


def test_texts_by_words_are_those_of_what_they_decode_to() -> None:
  """Of QMDs by their chunks and of methods, legal words and others."""
  rng, told = random.Random(4), Counter[bool]()
  def of(read: Callable[[], str]) -> tuple[bool, str]:
    try: return True, read()
    except DecodeError as error: return False, str(error)
  for cls in [*nv_cbc0_qmd.VERSIONS, *nv_cdc0_qmd.VERSIONS, *rng.sample(nv_cbc0.METHODS, 60)] * 4:
    words = cls.fuzz(rng).encode()
    for n in range(3):
      if n: words[rng.randrange(len(words))] ^= 1 << rng.randrange(32)
      given = words if cls.DWORDS > 1 else words[0]
      one = of(partial(words_text, cls, tuple(words)))
      assert one == of(lambda cls=cls, given=given: repr(cls.decode(given)))  # type: ignore[misc]
      told[one[0]] += 1
  assert all(told.values()) and len(told) == 2


def test_signals_have_numbers(captured: Path) -> None:
  """What packets wait for or signal is numbered as it comes first, and named in other packets too."""
  text = decode(str(captured), "--short").output
  known = re.findall(r"(?:addr|address|signals|waits for): (signal \d+), [A-Z]+ buffer \d+", text)
  assert known and known[0] == "signal 0" and "signal 0, signal" not in text
  capture = Capture(captured)
  for _ in capture: pass
  world, = (w for w in capture.worlds.values() if w.queues)
  assert {n for n, _ in world.signals.values()} == set(range(len(world.signals)))
