"""What a launch is held to: everything that a QMD says, each time, and what the driver wrote beside it."""
from __future__ import annotations

import struct
import threading
from typing import Any

import pytest

from tests.mock.nv.bench import BASE, COMPUTE, FAR, cubin, launch_qmd, semaphore
from tests.mock.nv.test_compute import ADD, CLUSTERED, GR, HEAD, MMU, Compute, body
from tests.mock.nv.test_host import dead
from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import Unsupported
from tinyhw.core.memory import Access
from tinyhw.core.timeout import Terms
from tinyhw.emulator.observe import Observer
from tinyhw.mock.nv.card import CARDS
from tinyhw.mock.nv.chip.channel import Channel, Group, State
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import methods, qmd

VERSIONS = [(c, v) for c in CARDS for v in CARDS[c].qmd_versions]
SIZES = body("""  mov.u32 %r1, %ntid.x; mov.u32 %r1, %nctaid.y; mov.u32 %r1, %cluster_nctaid.z;
  mov.u32 %r1, %nclusterid.x; ret;
""").replace("80", "90")


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize(("card", "version"), CLUSTERED)
def test_what_the_driver_tells_a_program_of_its_launch(card: str, version: tuple[int, int], reads: bool) -> None:
  """In constant bank 0, in every copy: nothing is said where all is right or nobody reads it, and each wrong place by
  its name."""
  layout = CARDS[card].arch.bank0
  told = layout.clusters
  assert told is not None
  grid, block, cluster = (6, 4, 2), (8, 2, 1), (3, 2, 1)
  rows = [("blockDim", layout.ntid, block), ("gridDim", layout.nctaid, grid)]
  for copy in range(told.copies):
    at = told.at - copy * told.apart
    rows += [("clusterDim", at + told.nctaid, cluster), ("gridDim in clusters", at + told.nclusterid, (2, 2, 2))]
  b = Compute(card)
  c, bank = b.channel(), b.take(layout.params + 16)
  program = b.load(SIZES if reads else kernel(""), "k", layout.params)
  for _, at, value in rows: b.space.write(bank + at, struct.pack("<3I", *value))

  def findings() -> list[str]:
    """What a launch adds to the report about bank 0."""
    before = len(b.machine.findings)
    b.pcas(c, launch_qmd(b, program, version=version, grid=(2, 2, 2), block=block, bank=(bank, layout.params + 16),
                         QMD_TYPE=3, GPC_CGA_WIDTH=3, GPC_CGA_HEIGHT=2, GPC_CGA_DEPTH=1))
    b.run()
    assert c.state is State.READY, c.describe()
    return [f for f in b.machine.findings[before:] if " says " in f]
  assert not findings()
  for wrong, (what, at, value) in enumerate(rows, 77):
    b.space.store(bank + at + 4, 4, wrong)
    found = findings()
    assert len(found) == reads and all(f"says {what} ({value[0]}, {wrong}, {value[2]})" in f for f in found)
    b.space.store(bank + at + 4, 4, value[1])


def kernel(directive: str) -> str:
  return HEAD + f".visible .entry k(.param .u64 p, .param .u32 n) {directive} {{ ret; }}\n"


@pytest.mark.parametrize("what", ["bank", "local"])
def test_memory_that_has_gone_since(what: str) -> None:
  """Of a launch that was fine before: a constant bank behind the first, or the local memory."""
  b, m = Compute(), methods.declared(0xCBC0)
  c, data, program = b.channel(), b.take(128), b.load(ADD, "add")
  own = BASE + (1 << 30)
  b.space.map(own, 1 << 16, b.gpu.vram, 1 << 21, Access.ALL)
  local = own if what == "local" else BASE
  b.send(c, COMPUTE, m.SET_SHADER_LOCAL_MEMORY_A(ADDRESS_UPPER=local >> 32),
         m.SET_SHADER_LOCAL_MEMORY_B(ADDRESS_LOWER=local & 0xFFFFFFFF),
         m.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A(SIZE_UPPER=0),
         m.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B(SIZE_LOWER=1 << 16))
  bank = {f"CONSTANT_BUFFER_{k}__3": v for k, v in (("VALID", 1), ("ADDR", own if what == "bank" else data),
                                                    ("SIZE", 64))}
  for _ in range(2):
    b.pcas(c, launch_qmd(b, program, bank=b.bank(data, 1), SHADER_LOCAL_MEMORY_HIGH_SIZE=32, **bank))
    b.run()
  assert c.state is State.READY and b.space.load(data, 4) == 2
  b.space.unmap(own, 1 << 16)
  b.pcas(c, launch_qmd(b, program, bank=b.bank(data, 1), SHADER_LOCAL_MEMORY_HIGH_SIZE=32, **bank))
  b.run()
  dead(b, c, MMU, f"{own:#x}")


@pytest.mark.parametrize(("text", "more", "code", "said"), [
  (kernel(""), {"CONSTANT_BUFFER_VALID__2": 1, "CONSTANT_BUFFER_ADDR__2": BASE + 32, "CONSTANT_BUFFER_SIZE__2": 64}, GR,
   "multiple of 64"),
  (kernel(""), {"CONSTANT_BUFFER_VALID__2": 1, "CONSTANT_BUFFER_ADDR__2": FAR, "CONSTANT_BUFFER_SIZE__2": 64}, MMU,
   "read of 64 bytes"),
  (kernel(""), {"CONSTANT_BUFFER_VALID__7": 1, "CONSTANT_BUFFER_ADDR__7": BASE, "CONSTANT_BUFFER_SIZE__7": 65552}, GR,
   "SKEDCHECK23_CONSTANT_BUFFER_SIZE: constant bank 7 of 65,552"),
  (kernel(""), {"CONSTANT_BUFFER_VALID__7": 1, "CONSTANT_BUFFER_ADDR__7": BASE, "CONSTANT_BUFFER_SIZE__7": 65536}, 0,
   ""),
  (kernel(".reqntid 32, 2, 1"), {}, GR, "exactly (32, 2, 1)"),
  (kernel(".reqntid 32"), {}, 0, ""), (kernel(".maxntid 32"), {}, 0, ""),
  (kernel(".maxntid 31"), {}, GR, "at most 31"),
  (kernel(""), {"RELEASE_ENABLE__0": 1, "RELEASE_SEMAPHORE_ADDR__0": BASE + 8}, GR, "a semaphore of 16 bytes at"),
  (kernel(""), {"RELEASE_ENABLE__1": 1, "RELEASE_SEMAPHORE_ADDR__1": BASE + 4, "RELEASE_STRUCTURE_SIZE__1": 1}, 0, ""),
  (kernel(""), {"RELEASE_ENABLE__2": 1, "RELEASE_SEMAPHORE_ADDR__2": BASE + 4, "RELEASE_STRUCTURE_SIZE__2": 2}, GR,
   "a semaphore of 8 bytes at"),
], ids=range(11))
def test_what_a_launch_must_have(text: str, more: dict[str, int], code: int, said: str) -> None:
  b = Compute("sm_86" if said == "multiple of 64" else "sm_90")  # version 4.0 has no room for the low bits
  c = b.channel()
  b.pcas(c, launch_qmd(b, b.load(text, "k"), bank=b.bank(b.take(128)), **more))
  b.run()
  if code: dead(b, c, code, said)
  else: assert c.state is State.READY, c.describe()


@pytest.mark.parametrize(("card", "version"), VERSIONS)
def test_what_no_launch_here_does(card: str, version: tuple[int, int]) -> None:
  """Each field is refused by its name, where the version has it; an action of dependents that is not modelled too."""
  declaration = qmd.declared(CARDS[card].compute_class, version)
  asked: list[tuple[str, dict[str, Any]]] = [
    (f, {f: 1}) for f in ("ARRIVE_AT_LATCH_VALID", "WAIT_ON_LATCH_VALID", "DEPENDENCE_COUNTER", "CIRCULAR_QUEUE_SIZE")
    if qmd.has(declaration, f)]
  asked += [("GRID of", {"grid": (1, 0, 1)})]
  if qmd.has(declaration, "DEPENDENT_QMD_ACTION", 0):
    asked += [(f"DEPENDENT_QMD0_ACTION = {name}", {"DEPENDENT_QMD_ENABLE__0": 1, "DEPENDENT_QMD_ACTION__0": action})
              for action, name in ((0, "QMD_INCREMENT_PUT"), (4, "QMD_DECREMENT_DEPENDENCE"))]
  for text, more in asked:
    b = Compute(card)
    c = b.channel()
    b.pcas(c, launch_qmd(b, b.load(ADD, "add"), version=version, bank=b.bank(b.take(128)), **more))
    with pytest.raises(Unsupported, match=text): b.run()
    assert c.state is State.DEAD


def test_dependents_by_what_was_invalidated() -> None:
  """A QMD that changes between two times that it is another's dependent: it is invalidated, or the report says so."""
  for action in (1, 3):
    b = Compute()
    c, data, program = b.channel(), b.take(1024), b.load(ADD, "add")
    second, other = (launch_qmd(b, program, bank=b.bank(data, n)) for n in (10, 100))
    first = launch_qmd(b, program, bank=b.bank(data, 1), DEPENDENT_QMD_ENABLE__0=1, DEPENDENT_QMD_ACTION__0=action,
                       DEPENDENT_QMD_POINTER__0=second >> 8)
    for wanted in (11, 112):
      b.pcas(c, first)
      b.run()
      assert b.space.load(data, 4) == wanted, c.describe()
      b.space.write(second, b.space.read(other, 256))
    assert any("scheduler may hold the QMD" in line for line in b.machine.findings) == (action == 1)


class Seen(Observer):
  """The kernels that it is told of."""

  def __init__(self) -> None: self.kernels: list[str] = []

  def dispatch(self, space: Any, arch: Any, d: Any) -> None: self.kernels.append(d.program.entry_name)


def test_a_launch_is_of_the_thread_that_rang_for_it() -> None:
  """What each wants of its own launches counts for these alone, whenever they run."""
  seen = Seen(), Seen()
  agreed = dict[int, Terms]()
  b = Compute(machine=NvMachine("sm_90", vram=1 << 22, system_memory=1 << 22, engine="ref", agreed=agreed))
  c, data = b.channel(), b.take(128)
  texts = {name: b.load(ADD.replace(" add(", f" {name}("), name) for name in ("mine", "yours", "ours")}

  def ring(channel: Channel, observer: Seen, name: str) -> None:
    agreed[threading.get_ident()] = Terms(observer=observer)
    b.pcas(channel, launch_qmd(b, texts[name], bank=b.bank(data, 1)))
  ring(c, seen[0], "mine")
  other = threading.Thread(target=ring, args=(c, seen[1], "yours"))
  other.start()
  other.join()
  ring(c, seen[0], "ours")
  b.run()
  assert [s.kernels for s in seen] == [["mine", "ours"], ["yours"]] and b.space.load(data, 4) == 3


def test_programs_begin_at_multiples_of_128() -> None:
  b = Compute()
  c, at = b.channel(), b.take(8192, 4096) + 64
  b.space.write(at, cubin(ADD, "add", size=12))
  b.pcas(c, launch_qmd(b, at + 128, bank=b.bank(b.take(128))))
  b.run()
  dead(b, c, GR, "SKEDCHECK13_PROGRAM_OFFSET")


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_channel_of_a_group_that_runs_is_scheduled(scheduled: bool) -> None:
  b = Compute()
  group = Group("compute")
  group.scheduled = scheduled
  place = b.gpu.vram, b.take(512) - BASE
  c = Channel(b.gpu, group, b.gpu.new_number(), b.space, b.take(256), 32, place, place, [b.gpu.card.copy_class], 0)
  assert (c.state is State.READY) == scheduled


@pytest.mark.parametrize("operation", ["ACQUIRE", "ACQ_STRICT_GEQ", "ACQ_CIRC_GEQ", "RELEASE"])
def test_wide_semaphores_lie_at_multiples_of_their_size(operation: str) -> None:
  b = Compute()
  c, at = b.channel(), b.take(64)
  execute = host.SEM_EXECUTE(OPERATION=host.SEM_EXECUTE_OPERATION[operation], PAYLOAD_SIZE=1)
  b.submit(c, methods.send(0, *semaphore(at, 0), execute))
  b.run()
  assert c.state is State.READY, c.describe()
  b.submit(c, methods.send(0, *semaphore(at + 4, 0), execute))
  b.run()
  assert c.state is State.DEAD
