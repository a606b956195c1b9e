"""RM's objects as a state machine: whatever is made, freed and mapped in whatever order, handles and memory add up."""
from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.mock.nv.bench import release
from tests.mock.nv.client import MIB, Client, Status, Work
from tests.strength import examples
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen import nv_uvm as uvm
from tinyhw.mock.nv.driver.objects import MemoryObject


class Objects(RuleBasedStateMachine):
  """The model: which handles live below which, which memory is mapped where."""

  def __init__(self) -> None:
    super().__init__()
    self.client = Client()
    self.parents: dict[int, int] = {}  # of what this test makes
    self.kinds: dict[int, str] = {}
    self.mapped: dict[int, int] = {}  # address -> memory's handle
    self.works: dict[int, Work] = {}
    self.used = sum(n.data.size for n in self._nodes() if isinstance(n.data, MemoryObject))

  def _nodes(self) -> list[Any]:
    return list(self.client.machine.rm.clients[self.client.root].objects.values())

  def _below(self, handle: int) -> list[int]:
    out, work = [], [handle]
    while work:
      out.append(at := work.pop())
      work += [h for h, parent in self.parents.items() if parent == at]
    return out

  @rule(system=st.booleans(), size=st.integers(1, 200_000))
  def memory(self, system: bool, size: int) -> None:
    handle = self.client.memory(size, system=system)
    assert handle not in self.kinds
    self.parents[handle], self.kinds[handle] = self.client.device, "memory"

  @rule(engine=st.sampled_from([alloc.NV2080_ENGINE_TYPE_GR0, alloc.NV2080_ENGINE_TYPE_COPY0]))
  def group(self, engine: int) -> None:
    handle = self.client.group(engine)
    self.parents[handle], self.kinds[handle] = self.client.device, "group"

  @precondition(lambda self: len(self.works) < 3)
  @rule(kind=st.sampled_from(["compute", "copy"]))
  def channel(self, kind: str) -> None:
    work = self.client.channel(kind)
    for handle, parent, name in ((work.group, self.client.device, "group"), (work.handle, work.group, "channel"),
                                 (work.object, work.handle, "engine")):
      self.parents[handle], self.kinds[handle] = parent, name
    self.works[work.handle] = work

  @precondition(lambda self: "memory" in self.kinds.values())
  @rule(data=st.data())
  def map(self, data: st.DataObject) -> None:
    handle = data.draw(st.sampled_from([h for h, k in self.kinds.items() if k == "memory"]))
    self.mapped[self.client.map(handle, 4096)] = handle

  @precondition(lambda self: bool(self.mapped))
  @rule(data=st.data())
  def unmap(self, data: st.DataObject) -> None:
    address = data.draw(st.sampled_from(list(self.mapped)))
    self.client.uvm(uvm.UVM_FREE_PARAMS(base=address, length=4096))
    del self.mapped[address]

  @precondition(lambda self: bool(self.kinds))
  @rule(data=st.data())
  def free(self, data: st.DataObject) -> None:
    handle = data.draw(st.sampled_from(list(self.kinds)))
    gone = self._below(handle)
    self.client.free(handle)
    for each in gone:
      del self.kinds[each], self.parents[each]
      self.works.pop(each, None)
      try: self.client.free(each)
      except Status as refused: assert refused.code == status.NV_ERR_OBJECT_NOT_FOUND
      else: raise AssertionError("freed twice")

  @precondition(lambda self: bool(self.works))
  @rule(data=st.data(), dies=st.booleans())
  def run(self, data: st.DataObject, dies: bool) -> None:
    work = data.draw(st.sampled_from(list(self.works.values())))
    before = work.notifier.status
    if before: return
    work.send(0, *release(0x7F_0000_0000 if dies else work.commands + 8, 1))
    self.client.port.wait(lambda: False, 0.0)
    assert bool(work.notifier.status) == dies
    if dies: assert work.notifier.info32 == status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT

  @invariant()
  def handles_are_those_of_the_model(self) -> None:
    live = {n.handle for n in self._nodes()}
    assert set(self.kinds) <= live
    assert {c.number for c in self.client.machine.channels} == {
      n.data.channel.number for n in self._nodes() if n.internal == "KernelChannel"}

  @invariant()
  def addresses_are_those_of_the_model(self) -> None:
    va = next(n.data for n in self._nodes() if n.handle == self.client.va)
    for address in self.mapped: assert va.space.find(address) is not None

  def teardown(self) -> None:
    machine = self.client.machine
    self.client.port.end()
    assert not machine.rm.clients and not machine.channels
    assert machine.gpus[0].vram_allocator.free_bytes == 64 * MIB == machine.system_allocator.free_bytes
    machine.close()


TestObjects = Objects.TestCase
TestObjects.settings = settings(max_examples=examples(8), stateful_step_count=20, deadline=None)
