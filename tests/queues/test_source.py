"""A queue's words as text come back as they were: of every kind, valid or not, and of what drivers submit."""
from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.autogen import pm4_gfx11
from tinyhw.core.errors import Error
from tinyhw.queues import raw
from tinyhw.queues.capture import Capture
from tinyhw.queues.events import Doorbell
from tinyhw.queues.source import assemble, source
from tinyhw.tools.fuzz.queues import UNITS, valid
from tinyhw.wire import pm4

CLASSES = {"pushbuffer": 0xCBC0, "qmd": 0xCBC0}


def again(kind: str, words: list[int], class_id: int = 0) -> None:
  text = source(kind, words, class_id=class_id)
  made = assemble(text)
  assert made.words == words, text


@pytest.mark.parametrize("kind", raw.KINDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(40), deadline=None)
def test_valid_streams_come_back_in_the_packets_words(kind: str, seed: int) -> None:
  class_id = CLASSES.get(kind, 0)
  words = valid(kind, random.Random(seed), class_id)
  again(kind, words, class_id)
  assert ".words" not in source(kind, words, class_id=class_id)


@pytest.mark.parametrize("kind", raw.KINDS)
@given(words=st.lists(st.integers(0, 2**32 - 1), max_size=24))
@settings(max_examples=examples(40), deadline=None)
def test_any_words_come_back(kind: str, words: list[int]) -> None:
  again(kind, words[:len(words) // UNITS.get(kind, 1) * UNITS.get(kind, 1)], CLASSES.get(kind, 0))


def test_what_drivers_submit_comes_back(captured: Path) -> None:
  kinds = {"gpfifo": "gpfifo", "pm4": "pm4", "sdma": "sdma", "aql": "aql"}
  seen = 0
  for step in Capture(captured):
    if step.queue is None or not isinstance(step.event, Doorbell): continue
    for _, data in step.event.ring:
      again(kinds[step.queue.kind], list(memoryview(data).cast("I")))
      seen += 1
    if step.queue.kind == "gpfifo":
      for _, data in step.event.pieces:
        words = list(memoryview(data).cast("I"))
        again("pushbuffer", words, step.queue.class_id)
  assert seen >= 5


def test_labels_stand_for_numbers() -> None:
  made = assemble(""".kind pm4
.label done = 0x7f0000001000
RELEASE_MEM(data_sel=send_64_bit_data, address=done + 8, data=7, int_ctxid=0)   # the end
""")
  packet, _ = pm4.decode(made.words)
  assert packet == pm4_gfx11.RELEASE_MEM(data_sel=2, address=0x7F0000001008, data=7, int_ctxid=0)
  text = source("pm4", made.words, labels={"done": 0x7F0000001008})
  assert "address=done" in text and assemble(text).words == made.words


@pytest.mark.parametrize(("text", "message"), [
  ("ACQUIRE_MEM()", "source, line 1: no .kind is said before the first packet"),
  (".kind pm5", "source, line 1: no kind is called 'pm5'"),
  (".kind pm4\nFOO(a=1)", "source, line 2: packet text: no packet is named FOO"),
  (".kind pm4\nACQUIRE_MEM(coher_size=1", "source, line 2: a packet that is not closed"),
  (".kind pm4\n.words 0x100000000", "source, line 2: 0x100000000 does not fit 32 bits"),
  (".kind pushbuffer\nINCR 1\n  0x100 = 1\n  0x108 = 2", "INCR sends to 0x104 there, and 0x108 is written"),
  ("", "source: no .kind is said"),
])
def test_wrong_text_is_told_by_its_line(text: str, message: str) -> None:
  with pytest.raises(Error) as told: assemble(text)
  assert message in str(told.value)
