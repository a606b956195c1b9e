"""SDMA v4 packets (gfx9's copy engines): one class a packet, its header dword included, fields by vendor's name.

Generated; do not edit. Source:
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/amdgpu/vega10_sdma_pkt_open.h sha256 67b76881b8dac15c02e073f6a9a7d8970ce9a5a03c52949d46198dbb06a24168
Generator: tinyhw gen sdma_v4

A field X stands for the vendor's parts X_31_0 and X_63_32. Fields under 20 bits default to 0, `op` and `sub_op` to
the packet's own. What an earlier class says letter for letter is imported.
"""
from __future__ import annotations

from typing import ClassVar

from tinyhw.autogen.sdma_v6 import (
  SDMA_PKT_NOP, SDMA_PKT_PRE_EXE, SDMA_PKT_PTEPDE_COPY_BACKWARDS, SDMA_PKT_SEMAPHORE, SDMA_PKT_TIMESTAMP_SET,
  SDMA_PKT_TRAP, Sdma,
)
from tinyhw.core.layout import Packet, bits, rest, u32, u64

SDMA_OP_NOP = 0
SDMA_OP_COPY = 1
SDMA_OP_WRITE = 2
SDMA_OP_INDIRECT = 4
SDMA_OP_FENCE = 5
SDMA_OP_TRAP = 6
SDMA_OP_SEM = 7
SDMA_OP_POLL_REGMEM = 8
SDMA_OP_COND_EXE = 9
SDMA_OP_ATOMIC = 10
SDMA_OP_CONST_FILL = 11
SDMA_OP_PTEPDE = 12
SDMA_OP_TIMESTAMP = 13
SDMA_OP_SRBM_WRITE = 14
SDMA_OP_PRE_EXE = 15
SDMA_OP_DUMMY_TRAP = 16
SDMA_SUBOP_TIMESTAMP_SET = 0
SDMA_SUBOP_TIMESTAMP_GET = 1
SDMA_SUBOP_TIMESTAMP_GET_GLOBAL = 2
SDMA_SUBOP_COPY_LINEAR = 0
SDMA_SUBOP_COPY_LINEAR_SUB_WIND = 4
SDMA_SUBOP_COPY_TILED = 1
SDMA_SUBOP_COPY_TILED_SUB_WIND = 5
SDMA_SUBOP_COPY_T2T_SUB_WIND = 6
SDMA_SUBOP_COPY_SOA = 3
SDMA_SUBOP_COPY_DIRTY_PAGE = 7
SDMA_SUBOP_COPY_LINEAR_PHY = 8
SDMA_SUBOP_WRITE_LINEAR = 0
SDMA_SUBOP_WRITE_TILED = 1
SDMA_SUBOP_PTEPDE_GEN = 0
SDMA_SUBOP_PTEPDE_COPY = 1
SDMA_SUBOP_PTEPDE_RMW = 2
SDMA_SUBOP_PTEPDE_COPY_BACKWARDS = 3
SDMA_SUBOP_DATA_FILL_MULTI = 1
SDMA_SUBOP_POLL_REG_WRITE_MEM = 1
SDMA_SUBOP_POLL_DBIT_WRITE_MEM = 2
SDMA_SUBOP_POLL_MEM_VERIFY = 3
HEADER_AGENT_DISPATCH = 4
HEADER_BARRIER = 5
SDMA_OP_AQL_COPY = 0
SDMA_OP_AQL_BARRIER_OR = 0


class SDMA_PKT_COPY_LINEAR(Sdma, dwords=7):
  """SDMA_PKT_COPY_LINEAR: op COPY, sub-op COPY_LINEAR, 7 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=0)
  encrypt: int = bits(0, 16, 16, default=0)
  tmz: int = bits(0, 18, 18, default=0)
  broadcast: int = bits(0, 27, 27, default=0)
  count: int = bits(1, 21, 0)
  dst_sw: int = bits(2, 17, 16, default=0)
  src_sw: int = bits(2, 25, 24, default=0)
  src_addr: int = u64(3)
  dst_addr: int = u64(5)


class SDMA_PKT_COPY_DIRTY_PAGE(Sdma, dwords=7):
  """SDMA_PKT_COPY_DIRTY_PAGE: op COPY, sub-op COPY_DIRTY_PAGE, 7 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x7
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=7)
  tmz: int = bits(0, 18, 18, default=0)
  all: int = bits(0, 31, 31, default=0)
  count: int = bits(1, 21, 0)
  dst_sw: int = bits(2, 17, 16, default=0)
  dst_gcc: int = bits(2, 19, 19, default=0)
  dst_sys: int = bits(2, 20, 20, default=0)
  dst_snoop: int = bits(2, 22, 22, default=0)
  dst_gpa: int = bits(2, 23, 23, default=0)
  src_sw: int = bits(2, 25, 24, default=0)
  src_sys: int = bits(2, 28, 28, default=0)
  src_snoop: int = bits(2, 30, 30, default=0)
  src_gpa: int = bits(2, 31, 31, default=0)
  src_addr: int = u64(3)
  dst_addr: int = u64(5)


class SDMA_PKT_COPY_PHYSICAL_LINEAR(Sdma, dwords=7):
  """SDMA_PKT_COPY_PHYSICAL_LINEAR: op COPY, sub-op COPY_LINEAR_PHY, 7 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x8
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=8)
  tmz: int = bits(0, 18, 18, default=0)
  count: int = bits(1, 21, 0)
  dst_sw: int = bits(2, 17, 16, default=0)
  dst_gcc: int = bits(2, 19, 19, default=0)
  dst_sys: int = bits(2, 20, 20, default=0)
  dst_log: int = bits(2, 21, 21, default=0)
  dst_snoop: int = bits(2, 22, 22, default=0)
  dst_gpa: int = bits(2, 23, 23, default=0)
  src_sw: int = bits(2, 25, 24, default=0)
  src_gcc: int = bits(2, 27, 27, default=0)
  src_sys: int = bits(2, 28, 28, default=0)
  src_snoop: int = bits(2, 30, 30, default=0)
  src_gpa: int = bits(2, 31, 31, default=0)
  src_addr: int = u64(3)
  dst_addr: int = u64(5)


class SDMA_PKT_COPY_BROADCAST_LINEAR(Sdma, dwords=9):
  """SDMA_PKT_COPY_BROADCAST_LINEAR: op COPY, sub-op COPY_LINEAR, 9 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=0)
  encrypt: int = bits(0, 16, 16, default=0)
  tmz: int = bits(0, 18, 18, default=0)
  broadcast: int = bits(0, 27, 27, default=1)
  count: int = bits(1, 21, 0)
  dst2_sw: int = bits(2, 9, 8, default=0)
  dst1_sw: int = bits(2, 17, 16, default=0)
  src_sw: int = bits(2, 25, 24, default=0)
  src_addr: int = u64(3)
  dst1_addr: int = u64(5)
  dst2_addr: int = u64(7)


class SDMA_PKT_COPY_LINEAR_SUBWIN(Sdma, dwords=13):
  """SDMA_PKT_COPY_LINEAR_SUBWIN: op COPY, sub-op COPY_LINEAR_SUB_WIND, 13 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x4
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=4)
  tmz: int = bits(0, 18, 18, default=0)
  elementsize: int = bits(0, 31, 29, default=0)
  src_addr: int = u64(1)
  src_x: int = bits(3, 13, 0, default=0)
  src_y: int = bits(3, 29, 16, default=0)
  src_z: int = bits(4, 10, 0, default=0)
  src_pitch: int = bits(4, 31, 13, default=0)
  src_slice_pitch: int = bits(5, 27, 0)
  dst_addr: int = u64(6)
  dst_x: int = bits(8, 13, 0, default=0)
  dst_y: int = bits(8, 29, 16, default=0)
  dst_z: int = bits(9, 10, 0, default=0)
  dst_pitch: int = bits(9, 31, 13, default=0)
  dst_slice_pitch: int = bits(10, 27, 0)
  rect_x: int = bits(11, 13, 0, default=0)
  rect_y: int = bits(11, 29, 16, default=0)
  rect_z: int = bits(12, 10, 0, default=0)
  dst_sw: int = bits(12, 17, 16, default=0)
  src_sw: int = bits(12, 25, 24, default=0)


class SDMA_PKT_COPY_TILED(Sdma, dwords=13):
  """SDMA_PKT_COPY_TILED: op COPY, sub-op COPY_TILED, 13 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x1
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=1)
  encrypt: int = bits(0, 16, 16, default=0)
  tmz: int = bits(0, 18, 18, default=0)
  mip_max: int = bits(0, 23, 20, default=0)
  detile: int = bits(0, 31, 31, default=0)
  tiled_addr: int = u64(1)
  width: int = bits(3, 13, 0, default=0)
  height: int = bits(4, 13, 0, default=0)
  depth: int = bits(4, 26, 16, default=0)
  element_size: int = bits(5, 2, 0, default=0)
  swizzle_mode: int = bits(5, 7, 3, default=0)
  dimension: int = bits(5, 10, 9, default=0)
  epitch: int = bits(5, 31, 16, default=0)
  x: int = bits(6, 13, 0, default=0)
  y: int = bits(6, 29, 16, default=0)
  z: int = bits(7, 10, 0, default=0)
  linear_sw: int = bits(7, 17, 16, default=0)
  tile_sw: int = bits(7, 25, 24, default=0)
  linear_addr: int = u64(8)
  linear_pitch: int = bits(10, 18, 0, default=0)
  linear_slice_pitch: int = u32(11)
  count: int = bits(12, 19, 0)


class SDMA_PKT_COPY_L2T_BROADCAST(Sdma, dwords=16):
  """SDMA_PKT_COPY_L2T_BROADCAST: op COPY, sub-op COPY_TILED, 16 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x1
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=1)
  encrypt: int = bits(0, 16, 16, default=0)
  tmz: int = bits(0, 18, 18, default=0)
  mip_max: int = bits(0, 23, 20, default=0)
  videocopy: int = bits(0, 26, 26, default=0)
  broadcast: int = bits(0, 27, 27, default=1)
  tiled_addr0: int = u64(1)
  tiled_addr1: int = u64(3)
  width: int = bits(5, 13, 0, default=0)
  height: int = bits(6, 13, 0, default=0)
  depth: int = bits(6, 26, 16, default=0)
  element_size: int = bits(7, 2, 0, default=0)
  swizzle_mode: int = bits(7, 7, 3, default=0)
  dimension: int = bits(7, 10, 9, default=0)
  epitch: int = bits(7, 31, 16, default=0)
  x: int = bits(8, 13, 0, default=0)
  y: int = bits(8, 29, 16, default=0)
  z: int = bits(9, 10, 0, default=0)
  dst2_sw: int = bits(10, 9, 8, default=0)
  linear_sw: int = bits(10, 17, 16, default=0)
  tile_sw: int = bits(10, 25, 24, default=0)
  linear_addr: int = u64(11)
  linear_pitch: int = bits(13, 18, 0, default=0)
  linear_slice_pitch: int = u32(14)
  count: int = bits(15, 19, 0)


class SDMA_PKT_COPY_T2T(Sdma, dwords=15):
  """SDMA_PKT_COPY_T2T: op COPY, sub-op COPY_T2T_SUB_WIND, 15 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x6
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=6)
  tmz: int = bits(0, 18, 18, default=0)
  mip_max: int = bits(0, 23, 20, default=0)
  src_addr: int = u64(1)
  src_x: int = bits(3, 13, 0, default=0)
  src_y: int = bits(3, 29, 16, default=0)
  src_z: int = bits(4, 10, 0, default=0)
  src_width: int = bits(4, 29, 16, default=0)
  src_height: int = bits(5, 13, 0, default=0)
  src_depth: int = bits(5, 26, 16, default=0)
  src_element_size: int = bits(6, 2, 0, default=0)
  src_swizzle_mode: int = bits(6, 7, 3, default=0)
  src_dimension: int = bits(6, 10, 9, default=0)
  src_epitch: int = bits(6, 31, 16, default=0)
  dst_addr: int = u64(7)
  dst_x: int = bits(9, 13, 0, default=0)
  dst_y: int = bits(9, 29, 16, default=0)
  dst_z: int = bits(10, 10, 0, default=0)
  dst_width: int = bits(10, 29, 16, default=0)
  dst_height: int = bits(11, 13, 0, default=0)
  dst_depth: int = bits(11, 26, 16, default=0)
  dst_element_size: int = bits(12, 2, 0, default=0)
  dst_swizzle_mode: int = bits(12, 7, 3, default=0)
  dst_dimension: int = bits(12, 10, 9, default=0)
  dst_epitch: int = bits(12, 31, 16, default=0)
  rect_x: int = bits(13, 13, 0, default=0)
  rect_y: int = bits(13, 29, 16, default=0)
  rect_z: int = bits(14, 10, 0, default=0)
  dst_sw: int = bits(14, 17, 16, default=0)
  src_sw: int = bits(14, 25, 24, default=0)


class SDMA_PKT_COPY_TILED_SUBWIN(Sdma, dwords=14):
  """SDMA_PKT_COPY_TILED_SUBWIN: op COPY, sub-op COPY_TILED_SUB_WIND, 14 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x5
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=5)
  tmz: int = bits(0, 18, 18, default=0)
  mip_max: int = bits(0, 23, 20, default=0)
  mip_id: int = bits(0, 27, 24, default=0)
  detile: int = bits(0, 31, 31, default=0)
  tiled_addr: int = u64(1)
  tiled_x: int = bits(3, 13, 0, default=0)
  tiled_y: int = bits(3, 29, 16, default=0)
  tiled_z: int = bits(4, 10, 0, default=0)
  width: int = bits(4, 29, 16, default=0)
  height: int = bits(5, 13, 0, default=0)
  depth: int = bits(5, 26, 16, default=0)
  element_size: int = bits(6, 2, 0, default=0)
  swizzle_mode: int = bits(6, 7, 3, default=0)
  dimension: int = bits(6, 10, 9, default=0)
  epitch: int = bits(6, 31, 16, default=0)
  linear_addr: int = u64(7)
  linear_x: int = bits(9, 13, 0, default=0)
  linear_y: int = bits(9, 29, 16, default=0)
  linear_z: int = bits(10, 10, 0, default=0)
  linear_pitch: int = bits(10, 29, 16, default=0)
  linear_slice_pitch: int = bits(11, 27, 0)
  rect_x: int = bits(12, 13, 0, default=0)
  rect_y: int = bits(12, 29, 16, default=0)
  rect_z: int = bits(13, 10, 0, default=0)
  linear_sw: int = bits(13, 17, 16, default=0)
  tile_sw: int = bits(13, 25, 24, default=0)


class SDMA_PKT_COPY_STRUCT(Sdma, dwords=8):
  """SDMA_PKT_COPY_STRUCT: op COPY, sub-op COPY_SOA, 8 dwords."""
  OP: ClassVar[int] = 0x1
  SUB_OP: ClassVar[int] = 0x3
  op: int = bits(0, 7, 0, default=1)
  sub_op: int = bits(0, 15, 8, default=3)
  tmz: int = bits(0, 18, 18, default=0)
  detile: int = bits(0, 31, 31, default=0)
  sb_addr: int = u64(1)
  start_index: int = u32(3)
  count: int = u32(4)
  stride: int = bits(5, 10, 0, default=0)
  linear_sw: int = bits(5, 17, 16, default=0)
  struct_sw: int = bits(5, 25, 24, default=0)
  linear_addr: int = u64(6)


class SDMA_PKT_WRITE_UNTILED(Sdma, dwords=4):
  """SDMA_PKT_WRITE_UNTILED: op WRITE, sub-op WRITE_LINEAR, 4 dwords, then the payload."""
  OP: ClassVar[int] = 0x2
  SUB_OP: ClassVar[int] = 0x0
  PAYLOAD_BIAS: ClassVar[int] = 0x1
  op: int = bits(0, 7, 0, default=2)
  sub_op: int = bits(0, 15, 8, default=0)
  encrypt: int = bits(0, 16, 16, default=0)
  tmz: int = bits(0, 18, 18, default=0)
  dst_addr: int = u64(1)
  count: int = bits(3, 19, 0)
  sw: int = bits(3, 25, 24, default=0)
  payload: tuple[int, ...] = rest(default=())


class SDMA_PKT_WRITE_TILED(Sdma, dwords=9):
  """SDMA_PKT_WRITE_TILED: op WRITE, sub-op WRITE_TILED, 9 dwords, then the payload."""
  OP: ClassVar[int] = 0x2
  SUB_OP: ClassVar[int] = 0x1
  PAYLOAD_BIAS: ClassVar[int] = 0x1
  op: int = bits(0, 7, 0, default=2)
  sub_op: int = bits(0, 15, 8, default=1)
  encrypt: int = bits(0, 16, 16, default=0)
  tmz: int = bits(0, 18, 18, default=0)
  mip_max: int = bits(0, 23, 20, default=0)
  dst_addr: int = u64(1)
  width: int = bits(3, 13, 0, default=0)
  height: int = bits(4, 13, 0, default=0)
  depth: int = bits(4, 26, 16, default=0)
  element_size: int = bits(5, 2, 0, default=0)
  swizzle_mode: int = bits(5, 7, 3, default=0)
  dimension: int = bits(5, 10, 9, default=0)
  epitch: int = bits(5, 31, 16, default=0)
  x: int = bits(6, 13, 0, default=0)
  y: int = bits(6, 29, 16, default=0)
  z: int = bits(7, 10, 0, default=0)
  sw: int = bits(7, 25, 24, default=0)
  count: int = bits(8, 19, 0)
  payload: tuple[int, ...] = rest(default=())


class SDMA_PKT_PTEPDE_COPY(Sdma, dwords=8):
  """SDMA_PKT_PTEPDE_COPY: op PTEPDE, sub-op PTEPDE_COPY, 8 dwords."""
  OP: ClassVar[int] = 0xc
  SUB_OP: ClassVar[int] = 0x1
  op: int = bits(0, 7, 0, default=0xc)
  sub_op: int = bits(0, 15, 8, default=1)
  ptepde_op: int = bits(0, 31, 31, default=0)
  src_addr: int = u64(1)
  dst_addr: int = u64(3)
  mask_dw0: int = u32(5)
  mask_dw1: int = u32(6)
  count: int = bits(7, 18, 0, default=0)


class SDMA_PKT_PTEPDE_RMW(Sdma, dwords=7):
  """SDMA_PKT_PTEPDE_RMW: op PTEPDE, sub-op PTEPDE_RMW, 7 dwords."""
  OP: ClassVar[int] = 0xc
  SUB_OP: ClassVar[int] = 0x2
  op: int = bits(0, 7, 0, default=0xc)
  sub_op: int = bits(0, 15, 8, default=2)
  gcc: int = bits(0, 19, 19, default=0)
  sys: int = bits(0, 20, 20, default=0)
  snp: int = bits(0, 22, 22, default=0)
  gpa: int = bits(0, 23, 23, default=0)
  addr: int = u64(1)
  mask: int = u64(3)
  value: int = u64(5)


class SDMA_PKT_WRITE_INCR(Sdma, dwords=10):
  """SDMA_PKT_WRITE_INCR: op PTEPDE, sub-op PTEPDE_GEN, 10 dwords."""
  OP: ClassVar[int] = 0xc
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=0xc)
  sub_op: int = bits(0, 15, 8, default=0)
  dst_addr: int = u64(1)
  mask_dw0: int = u32(3)
  mask_dw1: int = u32(4)
  init_dw0: int = u32(5)
  init_dw1: int = u32(6)
  incr_dw0: int = u32(7)
  incr_dw1: int = u32(8)
  count: int = bits(9, 18, 0, default=0)


class SDMA_PKT_INDIRECT(Sdma, dwords=6):
  """SDMA_PKT_INDIRECT: op INDIRECT, 6 dwords."""
  OP: ClassVar[int] = 0x4
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=4)
  sub_op: int = bits(0, 15, 8, default=0)
  vmid: int = bits(0, 19, 16, default=0)
  ib_base: int = u64(1)
  ib_size: int = bits(3, 19, 0)
  csa_addr: int = u64(4)


class SDMA_PKT_FENCE(Sdma, dwords=4):
  """SDMA_PKT_FENCE: op FENCE, 4 dwords."""
  OP: ClassVar[int] = 0x5
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=5)
  sub_op: int = bits(0, 15, 8, default=0)
  addr: int = u64(1)
  data: int = u32(3)


class SDMA_PKT_SRBM_WRITE(Sdma, dwords=3):
  """SDMA_PKT_SRBM_WRITE: op SRBM_WRITE, 3 dwords."""
  OP: ClassVar[int] = 0xe
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=0xe)
  sub_op: int = bits(0, 15, 8, default=0)
  byte_en: int = bits(0, 31, 28, default=0)
  addr: int = bits(1, 17, 0, default=0)
  data: int = u32(2)


class SDMA_PKT_COND_EXE(Sdma, dwords=5):
  """SDMA_PKT_COND_EXE: op COND_EXE, 5 dwords."""
  OP: ClassVar[int] = 0x9
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=9)
  sub_op: int = bits(0, 15, 8, default=0)
  addr: int = u64(1)
  reference: int = u32(3)
  exec_count: int = bits(4, 13, 0, default=0)


class SDMA_PKT_CONSTANT_FILL(Sdma, dwords=5):
  """SDMA_PKT_CONSTANT_FILL: op CONST_FILL, 5 dwords."""
  OP: ClassVar[int] = 0xb
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=0xb)
  sub_op: int = bits(0, 15, 8, default=0)
  sw: int = bits(0, 17, 16, default=0)
  fillsize: int = bits(0, 31, 30, default=0)
  dst_addr: int = u64(1)
  src_data: int = u32(3)
  count: int = bits(4, 21, 0)


class SDMA_PKT_DATA_FILL_MULTI(Sdma, dwords=6):
  """SDMA_PKT_DATA_FILL_MULTI: op CONST_FILL, sub-op DATA_FILL_MULTI, 6 dwords."""
  OP: ClassVar[int] = 0xb
  SUB_OP: ClassVar[int] = 0x1
  op: int = bits(0, 7, 0, default=0xb)
  sub_op: int = bits(0, 15, 8, default=1)
  memlog_clr: int = bits(0, 31, 31, default=0)
  byte_stride: int = u32(1)
  dma_count: int = u32(2)
  dst_addr: int = u64(3)
  count: int = bits(5, 25, 0)


class SDMA_PKT_POLL_REGMEM(Sdma, dwords=6):
  """SDMA_PKT_POLL_REGMEM: op POLL_REGMEM, 6 dwords."""
  OP: ClassVar[int] = 0x8
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=8)
  sub_op: int = bits(0, 15, 8, default=0)
  hdp_flush: int = bits(0, 26, 26, default=0)
  func: int = bits(0, 30, 28, default=0)
  mem_poll: int = bits(0, 31, 31, default=0)
  addr: int = u64(1)
  value: int = u32(3)
  mask: int = u32(4)
  interval: int = bits(5, 15, 0, default=0)
  retry_count: int = bits(5, 27, 16, default=0)


class SDMA_PKT_POLL_REG_WRITE_MEM(Sdma, dwords=4):
  """SDMA_PKT_POLL_REG_WRITE_MEM: op POLL_REGMEM, sub-op POLL_REG_WRITE_MEM, 4 dwords."""
  OP: ClassVar[int] = 0x8
  SUB_OP: ClassVar[int] = 0x1
  op: int = bits(0, 7, 0, default=8)
  sub_op: int = bits(0, 15, 8, default=1)
  addr_31_2: int = bits(1, 31, 2)
  addr_63_0: int = u64(2)


class SDMA_PKT_POLL_DBIT_WRITE_MEM(Sdma, dwords=5):
  """SDMA_PKT_POLL_DBIT_WRITE_MEM: op POLL_REGMEM, sub-op POLL_DBIT_WRITE_MEM, 5 dwords."""
  OP: ClassVar[int] = 0x8
  SUB_OP: ClassVar[int] = 0x2
  op: int = bits(0, 7, 0, default=8)
  sub_op: int = bits(0, 15, 8, default=2)
  ea: int = bits(0, 17, 16, default=0)
  addr_63_0: int = u64(1)
  addr_31_4: int = bits(3, 31, 4)
  page_num: int = u32(4)


class SDMA_PKT_POLL_MEM_VERIFY(Sdma, dwords=12):
  """SDMA_PKT_POLL_MEM_VERIFY: op POLL_REGMEM, sub-op POLL_MEM_VERIFY, 12 dwords."""
  OP: ClassVar[int] = 0x8
  SUB_OP: ClassVar[int] = 0x3
  op: int = bits(0, 7, 0, default=8)
  sub_op: int = bits(0, 15, 8, default=3)
  mode: int = bits(0, 31, 31, default=0)
  pattern: int = u32(1)
  cmp0_start: int = u64(2)
  cmp1_end_31_0_dw4: int = u32(4)
  cmp1_end_63_32_dw5: int = u32(5)
  cmp1_start: int = u64(6)
  cmp1_end_31_0_dw8: int = u32(8)
  cmp1_end_63_32_dw9: int = u32(9)
  rec: int = u64(10)


class SDMA_PKT_ATOMIC(Sdma, dwords=8):
  """SDMA_PKT_ATOMIC: op ATOMIC, 8 dwords."""
  OP: ClassVar[int] = 0xa
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=0xa)
  loop: int = bits(0, 16, 16, default=0)
  tmz: int = bits(0, 18, 18, default=0)
  atomic_op: int = bits(0, 31, 25, default=0)
  addr: int = u64(1)
  src_data: int = u64(3)
  cmp_data: int = u64(5)
  loop_interval: int = bits(7, 12, 0, default=0)


class SDMA_PKT_TIMESTAMP_GET(Sdma, dwords=3):
  """SDMA_PKT_TIMESTAMP_GET: op TIMESTAMP, sub-op TIMESTAMP_GET, 3 dwords."""
  OP: ClassVar[int] = 0xd
  SUB_OP: ClassVar[int] = 0x1
  op: int = bits(0, 7, 0, default=0xd)
  sub_op: int = bits(0, 15, 8, default=1)
  write_addr: int = bits(1, 63, 3, shift=3)


class SDMA_PKT_TIMESTAMP_GET_GLOBAL(Sdma, dwords=3):
  """SDMA_PKT_TIMESTAMP_GET_GLOBAL: op TIMESTAMP, sub-op TIMESTAMP_GET_GLOBAL, 3 dwords."""
  OP: ClassVar[int] = 0xd
  SUB_OP: ClassVar[int] = 0x2
  op: int = bits(0, 7, 0, default=0xd)
  sub_op: int = bits(0, 15, 8, default=2)
  write_addr: int = bits(1, 63, 3, shift=3)


class SDMA_PKT_DUMMY_TRAP(Sdma, dwords=2):
  """SDMA_PKT_DUMMY_TRAP: op DUMMY_TRAP, 2 dwords."""
  OP: ClassVar[int] = 0x10
  SUB_OP: ClassVar[int] = 0x0
  op: int = bits(0, 7, 0, default=0x10)
  sub_op: int = bits(0, 15, 8, default=0)
  int_context: int = bits(1, 27, 0)


class SDMA_AQL_PKT_HEADER(Packet, dwords=1):
  """SDMA_AQL_PKT_HEADER, 1 dwords."""
  format: int = bits(0, 7, 0, default=0)
  barrier: int = bits(0, 8, 8, default=0)
  acquire_fence_scope: int = bits(0, 10, 9, default=0)
  release_fence_scope: int = bits(0, 12, 11, default=0)
  op: int = bits(0, 19, 16, default=0)
  subop: int = bits(0, 22, 20, default=0)


class SDMA_AQL_PKT_COPY_LINEAR(Packet, dwords=16):
  """SDMA_AQL_PKT_COPY_LINEAR, 16 dwords."""
  format: int = bits(0, 7, 0, default=0)
  barrier: int = bits(0, 8, 8, default=0)
  acquire_fence_scope: int = bits(0, 10, 9, default=0)
  release_fence_scope: int = bits(0, 12, 11, default=0)
  op: int = bits(0, 19, 16, default=0)
  subop: int = bits(0, 22, 20, default=0)
  return_addr: int = u64(2)
  count: int = bits(4, 21, 0)
  dst_sw: int = bits(5, 17, 16, default=0)
  src_sw: int = bits(5, 25, 24, default=0)
  src_addr: int = u64(6)
  dst_addr: int = u64(8)
  completion_signal: int = u64(14)


class SDMA_AQL_PKT_BARRIER_OR(Packet, dwords=16):
  """SDMA_AQL_PKT_BARRIER_OR, 16 dwords."""
  format: int = bits(0, 7, 0, default=0)
  barrier: int = bits(0, 8, 8, default=0)
  acquire_fence_scope: int = bits(0, 10, 9, default=0)
  release_fence_scope: int = bits(0, 12, 11, default=0)
  op: int = bits(0, 19, 16, default=0)
  subop: int = bits(0, 22, 20, default=0)
  dependent_addr_0: int = u64(2)
  dependent_addr_1: int = u64(4)
  dependent_addr_2: int = u64(6)
  dependent_addr_3: int = u64(8)
  dependent_addr_4: int = u64(10)
  completion_signal: int = u64(14)


PACKETS: tuple[type[Sdma], ...] = (
  SDMA_PKT_COPY_LINEAR, SDMA_PKT_COPY_DIRTY_PAGE, SDMA_PKT_COPY_PHYSICAL_LINEAR, SDMA_PKT_COPY_BROADCAST_LINEAR,
  SDMA_PKT_COPY_LINEAR_SUBWIN, SDMA_PKT_COPY_TILED, SDMA_PKT_COPY_L2T_BROADCAST, SDMA_PKT_COPY_T2T,
  SDMA_PKT_COPY_TILED_SUBWIN, SDMA_PKT_COPY_STRUCT, SDMA_PKT_WRITE_UNTILED, SDMA_PKT_WRITE_TILED,
  SDMA_PKT_PTEPDE_COPY, SDMA_PKT_PTEPDE_COPY_BACKWARDS, SDMA_PKT_PTEPDE_RMW, SDMA_PKT_WRITE_INCR,
  SDMA_PKT_INDIRECT, SDMA_PKT_SEMAPHORE, SDMA_PKT_FENCE, SDMA_PKT_SRBM_WRITE, SDMA_PKT_PRE_EXE,
  SDMA_PKT_COND_EXE, SDMA_PKT_CONSTANT_FILL, SDMA_PKT_DATA_FILL_MULTI, SDMA_PKT_POLL_REGMEM,
  SDMA_PKT_POLL_REG_WRITE_MEM, SDMA_PKT_POLL_DBIT_WRITE_MEM, SDMA_PKT_POLL_MEM_VERIFY, SDMA_PKT_ATOMIC,
  SDMA_PKT_TIMESTAMP_SET, SDMA_PKT_TIMESTAMP_GET, SDMA_PKT_TIMESTAMP_GET_GLOBAL, SDMA_PKT_TRAP,
  SDMA_PKT_DUMMY_TRAP, SDMA_PKT_NOP,
)
