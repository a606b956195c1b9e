"""Queue programs: each verb gives the words of its declaration; what is not declared is refused by name."""
from __future__ import annotations

import random
from typing import Any

import pytest

from tinyhw.autogen import pm4_gfx11, sdma_v6
from tinyhw.core.errors import DecodeError, EncodeError, InvalidArgument
from tinyhw.queues.build import Address, QueueProgram
from tinyhw.wire import aql, methods, pm4, sdma

FIXED = {"op", "sub_op", "count", "broadcast"}  # of SDMA's packets: what says which one it is, and its length


def given(packet: Any) -> dict[str, Any]:
  fields = {f.name: v for f, v in packet.items()}
  return fields | ({packet.REST: packet.tail} if packet.REST else {})


def test_each_verb_is_its_declaration() -> None:
  rng = random.Random(3)
  for cls in pm4_gfx11.PACKETS:
    made = cls.fuzz(rng)
    assert getattr(QueueProgram("pm4"), cls.__name__)(**given(made)).encode({}) == pm4.encode(made)
  for one in sdma_v6.PACKETS:
    values = {k: v for k, v in given(one.fuzz(rng)).items() if k not in FIXED and k != one.REST}
    values |= {f.name: 0 for f in one.FIELDS if f.name == "count" and not one.REST}
    if one.REST: values |= {"count": 2 - one.PAYLOAD_BIAS, one.REST: (5, 6)}
    copy = one(**values)
    assert getattr(QueueProgram("sdma"), one.__name__)(**values).encode({}) == sdma.encode(copy)
  for class_id in (0xCBC0, 0xC8B5):
    for method in methods.declared(class_id).METHODS:
      if method.OFFSET < methods.HOST_END: continue  # the host engine's class has it
      sent = method.fuzz(rng)
      q = getattr(QueueProgram("pushbuffer", class_id), method.__name__)(**given(sent))
      assert q.encode({}) == methods.Send(methods.INCR, 4 if class_id == 0xC8B5 else 1, method.OFFSET,
                                          (sent.value(),)).encode()
  for struct in aql.KINDS.values(): assert len(getattr(QueueProgram("aql"), struct.__name__)(header=2).encode({})) == 16


def test_addresses_are_known_when_it_runs() -> None:
  q = QueueProgram("pushbuffer", 0xCBC0)
  done = q.buffer("done", b"12345678")
  q.SEM_ADDR_LO(done.low + 4).SEM_ADDR_HI(OFFSET_=done.high).SEM_PAYLOAD_LO((done + 0x100) >> 8).words(1, done >> 8)
  words = q.encode({"done": 0x12_8000_0000})
  assert words[1::2][:3] == [0x8000_0004, 0x12, 0x12_8000_01] and words[-2:] == [1, 0x1280_0000]
  assert "SEM_ADDR_HI" in dir(q) and "SDMA_PKT_FENCE" not in dir(q)


@pytest.mark.parametrize(("wrong", "told"), [
  (lambda: QueueProgram("pm5"), "no queue is of kind"), (lambda: QueueProgram("pushbuffer"), "class 0x0"),
  (lambda: QueueProgram("pm4", 0xCBC0), "class 0xcbc0"), (lambda: QueueProgram("pm4").buffer("a b", 1), "'a b'"),
  (lambda: QueueProgram("pm4").DISPATCH_DIRECTLY(), "there are DISPATCH_DIRECT"),
  (lambda: QueueProgram("pm4").DISPATCH_DIRECT(dim_w=1), "there is dim_"),
  (lambda: QueueProgram("pm4").WRITE_DATA(dst_sel="VRAM"), "it has mem_mapped_register, "),
  (lambda: QueueProgram("pm4").DISPATCH_DIRECT(7), "by its fields"),
  (lambda: QueueProgram("pm4").DISPATCH_DIRECT(dim_x=1).encode({}), "must be given"),
  (lambda: QueueProgram("pm4").words(Address("nowhere")).encode({}), "where nowhere lies"),
  (lambda: QueueProgram("aql").run(None), "has an AQL queue")])  # type: ignore[arg-type]
def test_what_is_not_declared(wrong: Any, told: str) -> None:
  with pytest.raises((AttributeError, DecodeError, EncodeError, InvalidArgument)) as error: wrong()
  assert told in str(error.value)
