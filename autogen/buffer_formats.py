"""The formats of typed buffers.

Generated; do not edit. Source:
  GPUOpen-Drivers/pal commit c5e800072a32f68b6ccc4422936d96167c6e0728 (2025-04-29), licence MIT
    src/core/hw/gfxip/gfx12/chip/gfx12_merged_enum.h sha256 f27896ca99a6abf5727b46cd1d4d9d7af7739859bbfee168244a59de64920cb3
    src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_enum.h sha256 f0bc4888b3cc78809b5098a6c24729436cfb3ca58ed4ea95f6f13b7f4153d5a5
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/include/vega10_enum.h sha256 cb4d03b3ee3fa28a240434f8742434facafb9b670f3dec9b49c1295a4d70a83d
Generator: tinyhw gen buffer_formats

A name lists the bits of the components from the most significant one, then how they are read.
"""
from __future__ import annotations

# gfx11 and gfx12: BUF_FMT
UNIFIED = {
  0x0: 'INVALID',
  0x1: '8_UNORM',
  0x2: '8_SNORM',
  0x3: '8_USCALED',
  0x4: '8_SSCALED',
  0x5: '8_UINT',
  0x6: '8_SINT',
  0x7: '16_UNORM',
  0x8: '16_SNORM',
  0x9: '16_USCALED',
  0xa: '16_SSCALED',
  0xb: '16_UINT',
  0xc: '16_SINT',
  0xd: '16_FLOAT',
  0xe: '8_8_UNORM',
  0xf: '8_8_SNORM',
  0x10: '8_8_USCALED',
  0x11: '8_8_SSCALED',
  0x12: '8_8_UINT',
  0x13: '8_8_SINT',
  0x14: '32_UINT',
  0x15: '32_SINT',
  0x16: '32_FLOAT',
  0x17: '16_16_UNORM',
  0x18: '16_16_SNORM',
  0x19: '16_16_USCALED',
  0x1a: '16_16_SSCALED',
  0x1b: '16_16_UINT',
  0x1c: '16_16_SINT',
  0x1d: '16_16_FLOAT',
  0x1e: '10_11_11_FLOAT',
  0x1f: '11_11_10_FLOAT',
  0x20: '10_10_10_2_UNORM',
  0x21: '10_10_10_2_SNORM',
  0x22: '10_10_10_2_UINT',
  0x23: '10_10_10_2_SINT',
  0x24: '2_10_10_10_UNORM',
  0x25: '2_10_10_10_SNORM',
  0x26: '2_10_10_10_USCALED',
  0x27: '2_10_10_10_SSCALED',
  0x28: '2_10_10_10_UINT',
  0x29: '2_10_10_10_SINT',
  0x2a: '8_8_8_8_UNORM',
  0x2b: '8_8_8_8_SNORM',
  0x2c: '8_8_8_8_USCALED',
  0x2d: '8_8_8_8_SSCALED',
  0x2e: '8_8_8_8_UINT',
  0x2f: '8_8_8_8_SINT',
  0x30: '32_32_UINT',
  0x31: '32_32_SINT',
  0x32: '32_32_FLOAT',
  0x33: '16_16_16_16_UNORM',
  0x34: '16_16_16_16_SNORM',
  0x35: '16_16_16_16_USCALED',
  0x36: '16_16_16_16_SSCALED',
  0x37: '16_16_16_16_UINT',
  0x38: '16_16_16_16_SINT',
  0x39: '16_16_16_16_FLOAT',
  0x3a: '32_32_32_UINT',
  0x3b: '32_32_32_SINT',
  0x3c: '32_32_32_FLOAT',
  0x3d: '32_32_32_32_UINT',
  0x3e: '32_32_32_32_SINT',
  0x3f: '32_32_32_32_FLOAT',
}

# gfx9: BUF_DATA_FORMAT
DATA = {
  0x0: 'INVALID',
  0x1: '8',
  0x2: '16',
  0x3: '8_8',
  0x4: '32',
  0x5: '16_16',
  0x6: '10_11_11',
  0x7: '11_11_10',
  0x8: '10_10_10_2',
  0x9: '2_10_10_10',
  0xa: '8_8_8_8',
  0xb: '32_32',
  0xc: '16_16_16_16',
  0xd: '32_32_32',
  0xe: '32_32_32_32',
}

# gfx9: BUF_NUM_FORMAT
NUMBER = {
  0x0: 'UNORM',
  0x1: 'SNORM',
  0x2: 'USCALED',
  0x3: 'SSCALED',
  0x4: 'UINT',
  0x5: 'SINT',
  0x6: 'UNORM_UINT',
  0x7: 'FLOAT',
}
