"""Graphs that a program makes node by node, libraries and their kernels, and what calls say of devices and limits."""

from __future__ import annotations

import ctypes
  for swizzle in (cuda.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, 7):
    assert encode(client, aligned(128), 0x10000, swizzle=swizzle) == cuda.CUDA_ERROR_NOT_SUPPORTED


def test_what_a_section_without_contents_says_of_the_file(client: Client) -> None:
  """Nothing: a cubin's shared memory is such a section, as long as it likes."""
  text = SAXPY.encode() + b"\0"
  names = b"\0.tinyhw.ptx\0.nv.shared.k\0.shstrtab\0"

  def row(name: bytes, kind: int, at: int, size: int) -> bytes:
    return struct.pack("<2I4Q2I2Q", names.index(name), kind, 0, 0, at, size, 0, 0, 1, 0)
  table = 64 + len(text) + len(names)
  rows = [bytes(64), row(b".tinyhw.ptx", 1, 64, len(text)), row(b".nv.shared.k", 8, table, 1 << 40),
          row(b".shstrtab", 3, 64 + len(text), len(names))]
  head = struct.pack("<16s2HI3QI6H", b"\x7fELF\x02\x01\x01", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, len(rows), 3)
  module = client.handle("cuModuleLoadData", head + text + names + b"".join(rows))
  client.handle("cuModuleGetFunction", u64(module), b"saxpy")
