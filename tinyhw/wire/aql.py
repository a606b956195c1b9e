"""AQL packets: 64 bytes in a user-mode queue, as HSA declares them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

from tinyhw.autogen import hsa
from tinyhw.core.errors import DecodeError, LayoutError
from tinyhw.core.layout import Struct

PACKET_BYTES = 64
KINDS: dict[int, type[Struct]] = {
  hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH: hsa.hsa_kernel_dispatch_packet_t,
  hsa.HSA_PACKET_TYPE_BARRIER_AND: hsa.hsa_barrier_and_packet_t,
  hsa.HSA_PACKET_TYPE_BARRIER_OR: hsa.hsa_barrier_or_packet_t,
  hsa.HSA_PACKET_TYPE_AGENT_DISPATCH: hsa.hsa_agent_dispatch_packet_t,
}


def header(
  kind: int,
  *,
  barrier: bool = False,
  acquire: int = hsa.HSA_FENCE_SCOPE_NONE,
  release: int = hsa.HSA_FENCE_SCOPE_NONE,
) -> int:
  """The 16-bit header of a packet of type HSA_PACKET_TYPE_*, with fence scopes HSA_FENCE_SCOPE_*."""
  return (
    kind << hsa.HSA_PACKET_HEADER_TYPE
    | int(barrier) << hsa.HSA_PACKET_HEADER_BARRIER
    | acquire << hsa.HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE
    | release << hsa.HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE
  )


def body(packet: type[Struct]) -> struct.Struct:
  """What packs the fields of a packet behind its first dword, in order: reserved ones and each signal, too."""
  letters = "".join("BHIQ"[size.bit_length() - 1] for size in _sizes(packet))
  if not letters.startswith("HH"): raise LayoutError(f"{packet.__name__} begins with no header", where="AQL")
  return struct.Struct(f"<{letters[2:]}")


def _sizes(kind: Any) -> Iterator[int]:
  """Bytes of each plain field of a C type, in order."""
  if issubclass(kind, ctypes.Array):
    for _ in range(kind._length_):
      yield from _sizes(kind._type_)
  elif issubclass(kind, ctypes.Structure):
    for _, part in kind._fields_:
      yield from _sizes(part)
  else:
    yield ctypes.sizeof(kind)


def dispatch(
  grid: tuple[int, int, int],
  block: tuple[int, int, int],
  *,
  kernel_object: int,
  kernarg_address: int,
  private_bytes: int,
  group_bytes: int,
  completion_signal: int = 0,
) -> hsa.hsa_kernel_dispatch_packet_t:
  """A kernel dispatch. `grid` counts workgroups (AQL itself counts work-items), `block` work-items of a workgroup."""
  dimensions = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
  scope = hsa.HSA_FENCE_SCOPE_SYSTEM
  packet = hsa.hsa_kernel_dispatch_packet_t(
    header=header(hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier=True, acquire=scope, release=scope),
    setup=dimensions << hsa.HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS,
    workgroup_size_x=block[0],
    workgroup_size_y=block[1],
    workgroup_size_z=block[2],
    grid_size_x=grid[0] * block[0],
    grid_size_y=grid[1] * block[1],
    grid_size_z=grid[2] * block[2],
    private_segment_size=private_bytes,
    group_segment_size=group_bytes,
    kernel_object=kernel_object,
    kernarg_address=kernarg_address,
  )
  packet.completion_signal.handle = completion_signal
  return packet


def decode(raw: bytes) -> Struct:
  """The packet of 64 bytes. Raises DecodeError for an invalid, vendor-specific or unknown type."""
  if len(raw) != PACKET_BYTES:
    raise DecodeError(f"{len(raw)} bytes, an AQL packet has {PACKET_BYTES}", where="AQL")
  word = int.from_bytes(raw[:2], "little")
  kind = word >> hsa.HSA_PACKET_HEADER_TYPE & (1 << hsa.HSA_PACKET_HEADER_WIDTH_TYPE) - 1
  if kind not in KINDS:
    names = {value: name for name, value in hsa.ENUMS["hsa_packet_type_t"].items()}
    raise DecodeError(f"packet type {names.get(kind, kind)} is not declared", where="AQL", words=(word,))
  return KINDS[kind].from_buffer_copy(raw)
