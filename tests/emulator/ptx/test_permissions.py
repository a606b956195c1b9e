"""What memory may be read and what may be written: each instruction asks for what it does, and for no more."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.emulator.jit.ptx.test_bulk import BARRIER, COLUMN_STORES, COLUMNS, KINDS, data, loading, storing
from tests.emulator.jit.ptx.test_jit import IN, run
from tests.emulator.ptx.test_seen import ACCESSES, COPIES, HEAD, THREADS, G, P, V
from tinyhw.core.errors import Error
from tinyhw.core.memory import Access, AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.memory.tensormap import TensorMap
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

NEEDS = {"load": Access.READ, "store": Access.WRITE, "atomic": Access.READ | Access.WRITE}
INIT = ".reg .b32 %m; mov.u32 %m, bar; @%p4 mbarrier.init.shared.b64 [bar], 1;"
TOLD = "@%p4 mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 64;"
A, B, C = ("{" + ", ".join(f"%{r}{k}" for k in range(1, 9)) + "}" for r in "rrf")
SEVERAL = 0x5_0000_0000


def needs(wanted: list[tuple[Any, ...]], copies: bool) -> int:
  """What a table's row says is done to global memory that is written, too."""
  out = 0
  for segment, kind, _, where, *_ in wanted:
    if segment == "global" and G <= (where[0] if copies else where(0)) < P: out |= NEEDS[kind]
  return out


MATRIX = [
  (f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {A}, [%b];", Access.READ),
  (f"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%b], {C};", Access.WRITE),
]
CASES = [*((line, needs(wanted, False)) for line, wanted in ACCESSES),
         *((f"{INIT} {TOLD} @%p4 {line}" if "mbarrier" in line else f"@%p4 {line}", needs(wanted, True))
           for line, wanted in COPIES), *MATRIX]
CASES = [(line, need) for line, need in CASES if need]


def outcome(line: str, access: int, engine: str, several: bool = False) -> str | bytes:
  """What a launch leaves in memory with such access, or what it says."""
  text = f"{HEAD}{line}\nret; }}"
  linked, space = link(parse(text)), AddressSpace("permissions")
  for at, content in ((G, bytes(range(256)) * 16), (P, bytes(64) + (SEVERAL if several else G).to_bytes(8, "little")),
                   (V, bytes(4096))):
    region = Region("data", 4096)
    space.map(at, 4096, region, access=access if at == G else Access.ALL)
    region.u8[:] = list(content.ljust(4096, b"\0"))
  if several: space.multicast = ((SEVERAL, 4096, (V, G)),)
  d = Dispatch(Program(linked, "k", V), (1, 1, 1), (THREADS if ".aligned" not in line else 64, 1, 1), P, 72)
  try: dispatch(space, d, engine=engine)
  except Error as error: return str(error)
  return space.read(G, 4096, 0)


@pytest.mark.left("cp.", "tensormap", "st.async", "red.async", "multimem", "atom", "red", "ld", "st", "wmma")
@pytest.mark.parametrize("access", [Access.READ, Access.WRITE, Access.READ | Access.WRITE])
@pytest.mark.parametrize(("line", "need"), CASES, ids=[line.partition("[bar], 64; ")[2] or line for line, _ in CASES])
def test_an_access_that_is_not_allowed(line: str, need: int, access: int) -> None:
  """It is a fault of the same words on both engines, and nothing is stored."""
  reference, compiled = (outcome(line, access, engine) for engine in ("ref", "jit"))
  assert reference == compiled
  assert isinstance(reference, str) == (need & access != need), reference


@pytest.mark.parametrize("access", [Access.READ, Access.WRITE, Access.READ | Access.WRITE])
@pytest.mark.parametrize(("line", "need"), [
  ("multimem.st.global.b32 [%g+4], %r1;", Access.WRITE), ("multimem.red.global.add.u32 [%g+4], %r1;", 3),
  ("multimem.ld_reduce.global.add.u32 %r5, [%g+4];", Access.READ)])
def test_one_of_several_places(line: str, need: int, access: int) -> None:
  """Each of them must allow it, the last one too."""
  reference, compiled = (outcome(line, access, engine, several=True) for engine in ("ref", "jit"))
  assert reference == compiled
  assert isinstance(reference, str) == (need & access != need), reference


# ---- tensors and images

APART = 0x6_0000_0000
BOXES = [*((f"load {rank}", loading(rank), Access.READ) for rank in (1, 2, 3)), ("column", COLUMNS[3], Access.READ),
         *((f"store {rank}", storing(rank), Access.WRITE) for rank in (1, 2, 3)),
         ("store column", COLUMN_STORES[3, ""], Access.WRITE), ("add column", COLUMN_STORES[3, "add"], 3),
         *((f"{name} {rank}", storing(rank, name), 3) for name in ("add", "min", "xor") for rank in (1, 2))]


@pytest.mark.parametrize("access", [Access.READ, Access.WRITE, Access.READ | Access.WRITE])
@pytest.mark.parametrize(("name", "text", "need"), BOXES, ids=[name for name, *_ in BOXES])
def test_a_tensor_that_may_not_be_touched(name: str, text: str, need: int, access: int,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
  """Both engines say the same of it, and what may be done is done alike."""
  rank = 3 if "column" in name else int(name[-1])
  m = TensorMap(APART, (*[4] * rank, *[0] * (5 - rank)), (*[16 * 4 ** k for k in range(rank - 1)], *[0] * (5 - rank)),
                (*[4] * rank, *[0] * (5 - rank)), (*[1] * rank, *[0] * (5 - rank)), rank, KINDS["u32"])
  if "column" in name: m = replace(m, im2col=1, box=(4, 4, 0, 0, 0))
  size = 4 ** rank * 4
  raw = data(m, b"", to=0, threads=1, expected=64 if "column" in name else size, barrier=BARRIER)
  tensor = Region("tensor", 4096)
  mapped = AddressSpace.map

  def also(space: AddressSpace, address: int, *more: Any, **named: Any) -> None:
    mapped(space, address, *more, **named)
    if address == IN: mapped(space, APART, 4096, tensor, access=access)
  monkeypatch.setattr(AddressSpace, "map", also)
  found = []
  for engine in ("ref", "jit"):
    tensor.u8[:] = list(bytes(range(256)) * 16)
    try: found.append((run(text, "k", raw, engine, block=32)[0].tobytes(), bytes(tensor.u8)))
    except Error as error: found.append((str(error), bytes(tensor.u8)))
  assert found[0] == found[1]
  assert isinstance(found[0][0], str) == (need & access != need), found[0][0][:100]
