"""A compute queue: made, rung, read; packets that write memory, count time, wait, and change memory atomically."""
from __future__ import annotations

from typing import Any, Final

from tinyhw.autogen.pm4_gfx11 import TC_OP
from tinyhw.bringup.amd.bench import COMPUTE, PAGE, AmdBench, BenchQueue
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.bench import check, first_wrong, same
from tinyhw.bringup.rung import Broken
from tinyhw.drive.amd.commands import ComputeCommands

_CP = "the command processor (MEC firmware), and the queue's descriptor (kfd_mqd_manager)"
_ALL: Final = 0xFFFF_FFFF
_FIXED: Final = 0x1234_5678_9ABC_DEF0
_SHORT: Final = 0.05  # seconds in which something must not happen


def put(c: ComputeCommands, name: str, **fields: Any) -> ComputeCommands:
  """Append a packet of the generation by its vendor's name."""
  return c._put(getattr(c._p, name)(**fields))


def write_data(c: ComputeCommands, address: int, *words: int) -> ComputeCommands:
  """WRITE_DATA to memory, past GL2, confirmed."""
  p = c._p
  return put(c, "WRITE_DATA", dst_sel=p.WRITE_DATA_dst_sel.memory, wr_confirm=1, dst_mem_addr=address, payload=words)


def nops(c: ComputeCommands, count: int) -> ComputeCommands:
  """So many NOP packets of two dwords."""
  for i in range(count): put(c, "NOP", payload=(i,))
  return c


@AMD.rung("queue.create", needs=("memory.page", "device.target"), seconds=5,
          why="The kernel driver takes a ring, pointers and buffers, and puts the queue on an engine.")
def create(b: AmdBench) -> str:
  queue = b.compute
  return (f"queue {queue.queue_id}, ring of {queue.ring_memory.size >> 10} KiB, doorbell offset {queue.offset:#x}")


@AMD.rung("queue.doorbell", needs=("queue.create",), seconds=5,
          why="Each queue has a doorbell of its own, in a page that belongs to this process and GPU.")
def doorbell(b: AmdBench) -> str:
  first, second = b.compute, BenchQueue(b, COMPUTE)
  try: check(first.offset != second.offset, f"two queues have the doorbell offset {first.offset:#x}", "one each",
             "allocate_doorbell (kfd_device_queue_manager.c)")
  finally: second.close()
  return f"{b.doorbell(first.offset) & (2 * PAGE - 1):#x} in the page, apart from another queue's"


@AMD.rung("queue.nop", needs=("queue.doorbell",), seconds=5,
          why="The engine hears the doorbell, fetches from the ring, and says how far it has come.")
def nop(b: AmdBench) -> str:
  queue = b.compute
  queue.run(nops(b.pm4(), 8), lambda: queue.idle, "NOPs are not retired", f"{_CP}; the doorbell's range and offset",
            "the read pointer comes to the write pointer")
  return f"8 NOPs; {queue.ring.pointers()}"


@AMD.rung("queue.write", needs=("queue.nop",), seconds=5,
          why="The first effect: a packet's data in memory, at its address, and nowhere else.")
def write(b: AmdBench) -> str:
  page, queue = b.take(PAGE), b.compute
  try:
    page.fill(0xEE)
    words, at = page.words, 40
    queue.run(write_data(b.pm4(), page.address + 4 * at, 1, 2, 3), lambda: bool(words[at + 2] == 3),
              f"WRITE_DATA of 3 words; there is {words[at:at + 3].tolist()}", _CP + "; page tables of the queue",
              "1, 2, 3")
    first_wrong(words.tolist(), [0xEEEE_EEEE] * at + [1, 2, 3] + [0xEEEE_EEEE] * (len(words) - at - 3),
                "the page behind WRITE_DATA", _CP)
    words.release()
  finally: b.free(page)
  return "3 words, and none around them"


@AMD.rung("queue.wrap", needs=("queue.write",), seconds=10,
          why="A ring is used again and again: what lies across its end must be read as one.")
def wrap(b: AmdBench) -> str:
  page, queue = b.take(PAGE), b.compute
  page.fill(0)
  words, rounds = page.words, 0
  per = 64  # packets of a submission
  start = queue.ring.at
  while queue.ring.at - start < queue.ring.size * 2 + per:
    rounds += 1
    c = b.pm4()
    for _ in range(per): nops(c, 1)
    nops(c, 1 + rounds % 5)
    write_data(c, page.address + 4 * (rounds % 16), rounds)
    queue.write(c)
    if not b.wait(lambda: bool(words[rounds % 16] == rounds)):  # noqa: B023
      raise Broken(f"submission {rounds} wrote {words[rounds % 16]:#x}; {queue.ring.pointers()}{b.why_stopped()}",
                   f"{rounds:#x}", _CP + "; CP_HQD_PQ_CONTROL.QUEUE_SIZE")
  words.release()
  b.free(page)
  return f"{rounds} submissions over {(queue.ring.at - start) / queue.ring.size:.1f} rings"


@AMD.rung("queue.indirect", needs=("queue.write",), seconds=5,
          why="Command buffers in memory are called from the ring, which goes on behind them.")
def indirect(b: AmdBench) -> str:
  page, code, queue = b.take(PAGE), b.take(PAGE, executable=True), b.compute
  page.fill(0)
  called = write_data(nops(b.pm4(), 3), page.address, 7).bind().words
  code.words[:len(called)] = memoryview(called)
  c = write_data(b.pm4().indirect_buffer(code.address, len(called)), page.address + 4, 8)
  words = page.words
  queue.run(c, lambda: bool(words[1] == 8), f"the ring does not go on behind INDIRECT_BUFFER: {words[0]}, {words[1]}",
            _CP, "7, 8")
  same(words[0], 7, "what the indirect buffer writes", _CP)
  words.release()
  for buffer in (page, code): b.free(buffer)
  return f"{len(called)} dwords called, and the ring went on"


@AMD.rung("queue.release", needs=("queue.write",), seconds=5,
          why="Drivers wait for what RELEASE_MEM writes at the end of the pipe: 64 bits, not 32.")
def release(b: AmdBench) -> str:
  page, queue = b.take(PAGE), b.compute
  page.fill(0)
  longs = page.longs
  queue.write(b.pm4().signal(page.address + 8, "value"))
  c = b.pm4().signal(page.address + 16, "value")
  queue.submit(c.bind(value=_FIXED), 0, timeout_s=b.left)
  if not b.wait(lambda: bool(longs[2])):
    raise Broken(f"RELEASE_MEM writes nothing; {queue.ring.pointers()}{b.why_stopped()}", f"{_FIXED:#x}",
                 _CP + "; the EOP buffer")
  b.wait(lambda: longs[2] == _FIXED, _SHORT)
  same(longs[2], _FIXED, "what RELEASE_MEM of 64 bits writes", _CP + "; RELEASE_MEM.data_sel")
  check(longs[0] == 0 and longs[3] == 0, f"words beside it are {longs[0]:#x} and {longs[3]:#x}", "untouched", _CP)
  longs.release()
  b.free(page)
  return f"{_FIXED:#x} at the end of the pipe"


@AMD.rung("queue.timestamp", needs=("queue.release", "device.clock"), seconds=5,
          why="The GPU's clock in memory: it moves forward, at the rate that was told.")
def timestamp(b: AmdBench) -> str:
  page, queue = b.take(PAGE), b.compute
  page.fill(0)
  longs = page.longs
  look = "RELEASE_MEM.data_sel send_gpu_clock_counter; golden timestamp registers"
  queue.finish(b.pm4().timestamp(page.address), look)
  before = int(b.clocks().gpu_clock_counter)
  b.wait_a_little(0.01)
  queue.finish(b.pm4().timestamp(page.address + 8), look)
  after = int(b.clocks().gpu_clock_counter)
  first, second = longs[0], longs[1]
  check(first > 0, "the first timestamp is 0", "the GPU's clock", look)
  check(second > first, f"the clock was {first:#x} and is {second:#x} 10 ms later", "forward", look)
  check(first <= before <= second <= after, f"timestamps {first:#x}, {second:#x}; GET_CLOCK_COUNTERS {before:#x}, "
        f"{after:#x} meanwhile", "one clock for both", look)
  longs.release()
  b.free(page)
  return f"{second - first:,} ticks for 10 ms or more"


@AMD.rung("queue.wait", needs=("queue.release",), seconds=10,
          why="WAIT_REG_MEM is how queues wait for each other: it must hold, and let go.")
def wait(b: AmdBench) -> str:
  page, queue = b.take(PAGE), b.compute
  p, functions = b.arch.packets, b.arch.packets.WAIT_REG_MEM_function
  # function, value that does not hold, one that does, with the reference 5
  rows = ((functions.less_than_ref_value, 5, 4), (functions.less_than_equal_to_the_ref_value, 6, 5),
          (functions.equal_to_the_reference_value, 4, 5), (functions.not_equal_reference_value, 5, 6),
          (functions.greater_than_or_equal_reference_value, 4, 5), (functions.greater_than_reference_value, 5, 6))
  look = _CP + "; WAIT_REG_MEM.function and mask"
  words = page.words
  for function, no, yes in rows:
    page.fill(0)
    words[0] = no | 0xAB00
    c = put(b.pm4(), "WAIT_REG_MEM", function=function, mem_space=p.WAIT_REG_MEM_mem_space.memory_space,
            mem_poll_addr=page.address, reference=5, mask=0xFF, poll_interval=4)
    queue.write(write_data(c, page.address + 4, 1))
    b.wait(lambda: bool(words[1]), _SHORT)
    check(words[1] == 0, f"{function.name} of 5 lets {no} pass", "it waits", look)
    words[0] = yes | 0xAB00
    if not b.wait(lambda: bool(words[1])):
      raise Broken(f"{function.name} of 5 waits with {yes} in memory{b.why_stopped()}", "it goes on", look)
  words.release()
  b.free(page)
  return f"{len(rows)} comparisons hold and let go, under a mask"


@AMD.rung("queue.copy", needs=("queue.release",), seconds=5,
          why="COPY_DATA moves words between memory, registers and the clock.")
def copy(b: AmdBench) -> str:
  page, queue, p = b.take(PAGE), b.compute, b.arch.packets
  page.fill(0)
  longs, source, target = page.longs, p.COPY_DATA_src_sel, p.COPY_DATA_dst_sel
  longs[0] = _FIXED
  c = put(b.pm4(), "COPY_DATA", src_sel=source.tc_l2, dst_sel=target.tc_l2, count_sel=1, wr_confirm=1,
          src_addr=page.address, dst_addr=page.address + 64)
  put(c, "COPY_DATA", src_sel=source.tc_l2, dst_sel=target.tc_l2, count_sel=0, wr_confirm=1, src_addr=page.address,
      dst_addr=page.address + 80)
  queue.finish(c, _CP + "; COPY_DATA")
  first_wrong([longs[8], longs[9], longs[10]], [_FIXED, 0, _FIXED & _ALL], "what COPY_DATA of 8 and 4 bytes writes",
              _CP + "; COPY_DATA.count_sel")
  longs.release()
  b.free(page)
  return "8 bytes and 4 bytes"


_ATOMICS: Final = (  # operation, before, source, compare, after: of 32 bits
  ("SWAP", 5, 9, 0, 9), ("CMPSWAP", 5, 9, 5, 9), ("CMPSWAP", 5, 9, 6, 5), ("ADD", _ALL, 3, 0, 2),
  ("SUB", 2, 3, 0, _ALL),
  ("SMIN", 1, _ALL, 0, _ALL), ("UMIN", 1, _ALL, 0, 1), ("SMAX", 1, _ALL, 0, 1), ("UMAX", 1, _ALL, 0, _ALL),
  ("AND", 12, 10, 0, 8), ("OR", 12, 10, 0, 14), ("XOR", 12, 10, 0, 6), ("INC", 7, 7, 0, 0), ("INC", 6, 7, 0, 7),
  ("DEC", 0, 7, 0, 7), ("DEC", 3, 7, 0, 2))


def atomic_rows(width: int) -> list[tuple[str, int, int, int, int, int]]:
  """(name, operation, before, source, compare, after) for a width; ones of 64 bits have the sign there too."""
  wide = (1 << width) - 1
  def grown(value: int) -> int: return wide if value == _ALL else value
  rows = []
  for name, *values in _ATOMICS:
    before, source, compare, after = map(grown, values)
    rows.append((name, int(TC_OP[f"TC_OP_ATOMIC_{name}_RTN_{width}"]), before, source, compare, after))
  return rows


@AMD.rung("queue.second", needs=("queue.release",), seconds=10,
          why="Two queues of a process are apart: rings, doorbells and pointers of their own.")
def second(b: AmdBench) -> str:
  page, first, other = b.take(PAGE), b.compute, BenchQueue(b, COMPUTE)
  page.fill(0)
  words = page.words
  look = "queue and pipe of the descriptors (CP_HQD_*), and MES"
  for i in range(4):
    for n, queue in enumerate((first, other)):
      queue.write(write_data(nops(b.pm4(), 3 * n), page.address + 4 * (2 * i + n), 100 * (n + 1) + i))
  wanted = [100 * (n + 1) + i for i in range(4) for n in range(2)]
  if not b.wait(lambda: words[:8].tolist() == wanted):
    first_wrong(words[:8].tolist(), wanted, f"what two queues write{b.why_stopped()}", look)
  if not b.wait(lambda: first.idle and other.idle):
    raise Broken(f"{first.name}: {first.ring.pointers()}; {other.name}: {other.ring.pointers()}", "both idle", look)
  other.close()
  words.release()
  b.free(page)
  return "8 submissions, in turns"


@AMD.rung("queue.destroy", needs=("queue.second",), seconds=10,
          why="A queue that is destroyed leaves its engine; the next one gets its place and works.")
def destroy(b: AmdBench) -> str:
  page, ids = b.take(PAGE), []
  page.fill(0)
  words = page.words
  for i in range(4):
    queue = BenchQueue(b, COMPUTE)
    ids.append(queue.queue_id)
    queue.run(write_data(b.pm4(), page.address, i + 1), lambda: bool(words[0] == i + 1),  # noqa: B023
              f"queue {i + 1} of 4, one after the other, writes nothing", "unmap_queues and the doorbell's next owner")
    queue.close()
  check(len(set(ids)) == 1, f"queue ids are {ids}", "the same again", "DESTROY_QUEUE: is the queue's id free again?")
  words.release()
  b.free(page)
  return "4 queues, one after the other"


