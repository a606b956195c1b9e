"""Dumps as other programs write them, of words that the tests choose."""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.autogen import pm4_gfx11 as pm4_packets
from tinyhw.autogen import sdma_v6 as sdma_packets
from tinyhw.wire import pm4, sdma

SIZE = 64  # dwords of each ring
NOP = 0xFFFF1000  # the filler of amdgpu's rings
DRAW = [0xC0012D00, 0x3, 0x2]  # DRAW_INDEX_AUTO: of the graphics engine
WAIT = pm4.encode(pm4_packets.WAIT_REG_MEM(function=3, mem_space=1, mem_poll_addr=0x7F0000001000, reference=5,
                                           mask=0xFFFFFFFF, poll_interval=4))
DONE = pm4.encode(pm4_packets.RELEASE_MEM(data_sel=2, address=0x7F0000001008, data=7, int_ctxid=0))
FENCE = sdma.encode(sdma_packets.SDMA_PKT_FENCE(addr=0x7F0000002000, data=9))


def ring(words: Sequence[int], start: int = 0, filler: int = NOP) -> list[int]:
  """A ring with words from an index on, which may wrap."""
  made = [filler] * SIZE
  for i, word in enumerate(words): made[(start + i) % SIZE] = word
  return made


def coredump(rings: Sequence[tuple[str, int, int, Sequence[int]]], *, gc: str = "11.0.0.0.0", timed_out: str = "",
             address: int = 0, status: int = 0) -> str:
  """A device coredump: rings are (name, read, write, words)."""
  out = ["**** AMDGPU Device Coredump ****", "version: 1", "kernel: 6.12.0", "module: amdgpu", "time: 45.084775181",
         "process_name: python3 PID: 1780", "", "SOC Information", "SOC Device id: 29772", "SOC Family: 145", "",
         "HW IP Version Information", f"HWIP: GC[1][0]: v{gc}", "HWIP: SDMA0[3][0]: v6.0.0.0.0", "", "IP Firmwares",
         "MEC feature version: 29, fw version: 0x00000208"]
  if timed_out: out += ["", "Ring timed out details", f"IP Type: 1 Ring Name: {timed_out}"]
  out += ["", "[gfxhub] Page fault observed", f"Faulty page starting at address: 0x{address:016x}",
          f"Protection fault status register: 0x{status:x}", "", "IP Dump", "IP: gfx_v11_0",
          f"{'regGRBM_STATUS':50} \t 0xa0003028", f"{'regCP_STALLED_STAT1':50} \t 0x00000000",
          f"{'regCP_MEC_ME1_HEADER_DUMP':50} \t 0xc0053c00", "", "num_mec: 1 num_pipe: 4 num_queue: 4", "",
          "mec 0, pipe 0, queue 1", f"{'regCP_HQD_ACTIVE':50} \t 0x00000001", "", "Ring buffer information"]
  for name, read, write, words in rings:
    out += [f"ring name: {name}", f"Rptr: 0x{read:x} Wptr: 0x{write:x} RB mask: {len(words) - 1:x}",
            f"Ring size in dwords: {len(words)}", "Ring contents", "Offset \t Value"]
    out += [f"0x{4 * i:x} \t 0x{w:x}" for i, w in enumerate(words)]
  return "\n".join([*out, "VRAM is lost due to GPU reset!", ""])


def debugfs(read: int, write: int, words: Sequence[int]) -> bytes:
  """A ring of debugfs."""
  return b"".join(w.to_bytes(4, "little") for w in (read, write, write, *words))


def umr_ring(name: str, read: int, write: int, words: Sequence[int], colour: bool = False) -> str:
  """`umr -R`."""
  blue, off = ("\x1b[34m", "\x1b[0m") if colour else ("", "")
  out = ["", f"gfx1100.{name}.rptr == {read}", f"gfx1100.{name}.wptr == {write}", f"gfx1100.{name}.drv_wptr == {write}"]
  for i, w in enumerate(words):
    marks = "".join(c if i == at else "." for c, at in zip("rwD", (read, write, write)))
    out.append(f"gfx1100.{name}.ring[{blue}{i:4}{off}] == {blue}0x{w:08x}{off}    {marks} ")
  return "\n".join([*out, ""])


UMR_STREAM = """Decoding IB at 0@0x0 from 0@0x0 of 14 words (type 4)
[0@0x00000000 + 0x0000]\t[0xffff1000]\tOpcode 0x10 [PKT3_NOP] (0 words, type: 3, hdr: 0xffff1000)
[0@0x00000000 + 0x0004]\t[0xc0053c00]\tOpcode 0x3c [PKT3_WAIT_REG_MEM] (6 words, type: 3, hdr: 0xc0053c00)
[0@0x00000000 + 0x0008]\t[0x00000013]\t|---> ENGINE=[ME]/0, MEMSPACE=[MEM]/1, OPERATION=0, FUNCTION=[==]/3
[0@0x00000000 + 0x000c]\t[0x00001000]\t|---> POLL_ADDRESS_LO=0x1000, SWAP=0x0
[0@0x00000000 + 0x0010]\t[0x00007f00]\t|---> POLL_ADDRESS_HI=0x7f00
[0@0x00000000 + 0x0014]\t[0x00000005]\t|---> REFERENCE=0x5
[0@0x00000000 + 0x0018]\t[0xffffffff]\t|---> MASK=0xffffffff
[0@0x00000000 + 0x001c]\t[0x00000004]\t|---> POLL INTERVAL=0x4
[0@0x00000000 + 0x0020]\t[0xc0016900]\tOpcode 0x69 [PKT3_SET_CONTEXT_REG] (2 words, type: 3, hdr: 0xc0016900)
[0@0x00000000 + 0x0028]\t[0x42800000]\t|---> gfx800.mmVGT_HOS_MAX_TESS_LEVEL=0x42800000
Done decoding IB

Decoding IB at 0x0@0x7a0823e00000 from 0x0@0x0 of 0 words (type 0)
[0x0@0x7a0823e00000 + 0x0000]   [        0x00000b02]    Opcode 0x2 [HSA_KERNEL_DISPATCH] (32 words, type: 0, hdr: 0xb02)
[0x0@0x7a0823e00000 + 0x0002]   [            0x0003]    |---> setup_dimensions=3
[0x0@0x7a0823e00000 + 0x0004]   [            0x0040]    |---> workgroup_size_x=64
[0x0@0x7a0823e00000 + 0x0006]   [            0x0001]    |---> workgroup_size_y=1
[0x0@0x7a0823e00000 + 0x0008]   [            0x0001]    |---> workgroup_size_z=1
[0x0@0x7a0823e00000 + 0x000a]   [            0x0000]    |---> reserved0=0
[0x0@0x7a0823e00000 + 0x000c]   [        0x00000100]    |---> grid_size_x=256
[0x0@0x7a0823e00000 + 0x0010]   [        0x00000001]    |---> grid_size_y=1
[0x0@0x7a0823e00000 + 0x0014]   [        0x00000001]    |---> grid_size_z=1
[0x0@0x7a0823e00000 + 0x0018]   [        0x00000000]    |---> private_segment_size=0
[0x0@0x7a0823e00000 + 0x001c]   [        0x00000000]    |---> group_segment_size=0
[0x0@0x7a0823e00000 + 0x0020]   [0x00007a0944aa4540]    |---> kernel_object=0x7a0944aa4540
[0x0@0x7a0823e00000 + 0x0028]   [0x00007a0821e00000]    |---> kernarg_address=0x7a0821e00000
[0x0@0x7a0823e00000 + 0x0030]   [0x0000000000000000]    |---> reserved2=0x0
[0x0@0x7a0823e00000 + 0x0038]   [0x0000000000000000]    |---> completion_signal=0x0
Done decoding IB
"""
UMR_OLD = "\n".join(["Dumping IB at (gfxhub) VMID:0 0xf500447000 of 7 words from ring[0]",
                     *(f"IB[0@0xf500447000 + {4 * i:#x}   ] = 0x{w:08x} ... PKT3" for i, w in enumerate(WAIT)),
                     "End of IB", ""])
ROCGDB = """  Id   Target Id                Type         Read   Write  Size     Address
  1    AMDGPU Queue 1:1 (QID 0) HSA          2      2      4096     0x00007ffff626e000
* 2    AMDGPU Queue 1:2 (QID 1) HSA (Multi)  0      2      1048576  0x00007fffe5800000

 Id   Target Id                      Grid    Workgroup Fence   Kernel Function
* 1    AMDGPU Dispatch 1:2:1 (PKID 0) [256,1,1] [64,1,1] B|Aa|Rs kern(int*, int)
"""
ROCGDB_MI = ('^done,queues=[{id="1.2",target-id="AMDGPU Queue 1:2 (QID 1)",type="HSA",read="0",write="2",'
             'size="1048576",addr="0x00007fffe5800000"}],current-queue-id="1.2"\n')
