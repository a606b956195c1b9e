"""Cache operations, each by a value that is wrong without it: the same is tried without, and what came is evidence."""
from __future__ import annotations

from typing import Final

from tinyhw.bringup.amd.bench import PAGE, VRAM, AmdBench
from tinyhw.bringup.amd.copies import copying
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.amd.programs import STORE, RungCode, assembled, launched, output
from tinyhw.bringup.bench import first_wrong, same

_WORDS: Final = 32
_RDNA: Final = {"code": "ACQUIRE_MEM.GCR_CNTL: GLI_INV", "vector": "ACQUIRE_MEM.GCR_CNTL: GLV_INV, GL1_INV, GL2_INV",
                "scalar": "ACQUIRE_MEM.GCR_CNTL: GLK_INV", "written": "RELEASE_MEM.GCR_CNTL: GL2_WB"}
_LOOKS: Final = {"gfx11": _RDNA, "gfx12": _RDNA, "gfx9": {
  "code": "ACQUIRE_MEM.coher_cntl: SH_ICACHE_ACTION_ENA", "scalar": "ACQUIRE_MEM.coher_cntl: SH_KCACHE_ACTION_ENA",
  "vector": "ACQUIRE_MEM.coher_cntl: TCL1_ACTION_ENA, TC_ACTION_ENA", "written": "RELEASE_MEM.tc_wb_action_ena"}}
_RESULTS: Final = 4096  # bytes behind which each workgroup stores what it found
_STORE: Final = """{groups}
  s_lshl_b32 s7, s4, 2
  s_add_u32 s7, s7, 4096
  v_mov_b32_e32 v2, s7
  global_store_b32 v2, v3, s[0:1]
  s_endpgm"""
_VECTOR: Final = "v_mov_b32_e32 v1, 0\nglobal_load_b32 v3, v1, s[0:1]\n{wait}\n" + _STORE
_SCALAR: Final = "s_load_b32 s8, s[0:1], 0x0\n{wait}\nv_mov_b32_e32 v3, s8\n" + _STORE


def _told(without: list[int], old: int) -> str:
  stale = without.count(old)
  return (f"without it {stale} of {len(without)} workgroups find the old value" if stale else
          "here the new value comes without it, too")


def _reads_again(b: AmdBench, text: str, look: str) -> str:
  """A program reads a word, the copy engine changes it, and the program reads it again: without the barrier, and with
  it."""
  count = 2 * b.node.compute_units // b.node.xccs  # so that each cache of the queue's core has the word
  size = 4 * count
  near, new, back = b.take(_RESULTS + size, VRAM, host=False), b.take(PAGE), b.take(size)
  code = RungCode(b, text)

  def put(value: int) -> None:
    for i in range(_WORDS): new.words[i] = value
    b.copier.finish(copying(b.sdma(), near.address, new.address, 4 * _WORDS), look)

  def run(barrier: bool) -> None:
    p, c = b.arch.packets, b.pm4()
    if not barrier: c._put(p.EVENT_WRITE(event_type=p.VGT_EVENT_TYPE.CS_PARTIAL_FLUSH,
                                         event_index=p.EVENT_WRITE_event_index.cs_partial_flush))
    b.compute.finish(launched(b, c, code, near.address, (count, 1, 1), barrier=barrier), look)

  def found() -> list[int]:
    b.copier.finish(copying(b.sdma().memory_barrier(), back.address, near.address + _RESULTS, size), look)
    return back.words[:count].tolist()

  def changed(old: int, value: int, barrier: bool) -> list[int]:
    """What the program finds of a value that came since it has read the old one."""
    put(old)
    run(True)
    put(value)
    run(barrier)
    return found()

  without = changed(1, 2, False)
  first_wrong(changed(3, 4, True), [4] * count, "what workgroups find that the copy engine put there since", look)
  for buffer in (near, new, back, code.memory): b.free(buffer)
  return _told(without, 1)


@AMD.rung("caches.code", needs=("waves.store",), seconds=10,
          why="New code at an old address runs once the instruction caches forget the old (GLI_INV).")
def code_(b: AmdBench) -> str:
  code, out = RungCode(b, STORE), output(b, 2)
  look = _LOOKS[b.arch.pm4]["code"]
  other = STORE.replace("v_mov_b32_e32 v3, s2", "v_mov_b32_e32 v3, s3")
  b.compute.finish(launched(b, b.pm4(), code, out.address, block=(1, 1, 1), users=(11, 22)), look)
  same(out.words[0], 11, "what the first program stores", look)
  code.put(assembled(b, other))
  b.compute.finish(launched(b, b.pm4(), code, out.address, block=(1, 1, 1), users=(11, 22)), look)
  same(out.words[0], 22, "what the second program at the same address stores", look)
  for buffer in (code.memory, out): b.free(buffer)
  return "two programs at one address"


@AMD.rung("caches.vector", needs=("waves.lanes", "copies.vram"), seconds=10,
          why="What another engine wrote is seen once the vector caches and GL2 forget (GLV_INV, GL2_INV).")
def vector(b: AmdBench) -> str:
  return _reads_again(b, _VECTOR, _LOOKS[b.arch.pm4]["vector"])


@AMD.rung("caches.scalar", needs=("waves.scalar", "copies.vram"), seconds=10,
          why="The scalar cache is one of its own (GLK_INV).")
def scalar(b: AmdBench) -> str:
  return _reads_again(b, _SCALAR, _LOOKS[b.arch.pm4]["scalar"])


@AMD.rung("caches.written", needs=("waves.store", "copies.vram"), seconds=10,
          why="What waves stored reaches memory at the end of the pipe (RELEASE_MEM with GL2_WB).")
def written(b: AmdBench) -> str:
  near, back, code = b.take(PAGE, VRAM, host=False), b.take(PAGE), RungCode(b, STORE)
  look, found = _LOOKS[b.arch.pm4]["written"], []
  for value in (5, 6):
    b.compute.finish(launched(b, b.pm4(), code, near.address, block=(1, 1, 1), users=(value, 0)), look)
    b.copier.finish(copying(b.sdma(), back.address, near.address, 4), look)
    found.append(int(back.words[0]))
    same(back.words[0], value, "what the copy engine finds of a wave's store", look)
  for buffer in (near, back, code.memory): b.free(buffer)
  return f"{found[0]} and {found[1]} through memory"


@AMD.rung("caches.host", needs=("waves.scalar",), seconds=10,
          why="What the host stores into memory that waves have read comes with the next launch.")
def host(b: AmdBench) -> str:
  page, code = b.take(2 * PAGE), RungCode(b, _SCALAR)
  look = "the kind of the page (MTYPE), ACQUIRE_MEM, and snooping"
  for value in (31, 32, 33):
    page.words[0] = value
    b.compute.finish(launched(b, b.pm4(), code, page.address), look)
    same(page.words[_RESULTS // 4], value, "what a wave reads of the host's store", look)
  for buffer in (page, code.memory): b.free(buffer)
  return "3 values of the host, one after the other"

