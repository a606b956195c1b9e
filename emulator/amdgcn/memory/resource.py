"""Buffer resources (V#): where their fields stand, by the vendor's names (autogen/sq.py), and what they say.

Sources: RDNA3 ISA manual, section 9.1; RDNA4, section 9.1; CDNA3, section 9.1.5.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple

from tinyhw.autogen import buffer_formats, sq
from tinyhw.core.errors import LayoutError, MachineFault
from tinyhw.emulator.amdgcn.fields import Field
from tinyhw.emulator.values.ops import V
from tinyhw.isa.amdgcn import Instruction

_ELEMENTS: Final = {0: 0, 1: 4, 3: 16}  # swizzle_enable -> bytes of a swizzled element; 2 is reserved
_SCALES: Final = (1, 4, 8, 32)  # stride_scale
PLAIN_CHECKS: Final = -1  # gfx9's rules of what is in range, which no field chooses


@dataclass(frozen=True)
class Resource:
  """A buffer resource. `element` is the swizzle's element size in bytes, 0 for a linear buffer; `out_of_range` has the
  number of one of the checks of RDNA's table "Buffer Out Of Bounds Selection", or `PLAIN_CHECKS`."""
  base: int
  stride: int
  records: int
  format: str
  selects: tuple[int, ...]
  element: int
  indices: int
  add_thread: bool
  out_of_range: int


class FieldPart(NamedTuple):
  """A field as scalar registers hold it: in which dword, and where there."""
  dword: int
  field: Field

  def of(self, dwords: Sequence[V]) -> V:
    """Its value in the four dwords of a resource: numbers, arrays or values of compiled code."""
    return self.field.of(dwords[self.dword])


def has(isa: str, name: str) -> bool:
  """Whether the generation's resources have a field."""
  return name in sq.BUFFER_RESOURCE[isa]


def field(isa: str, name: str) -> Field:
  """A field among a resource's 128 bits."""
  return Field(*sq.BUFFER_RESOURCE[isa][name])


def part(isa: str, name: str) -> FieldPart:
  """A field that lies in one dword. Raises LayoutError for another."""
  low, bits = field(isa, name)
  if low % 32 + bits > 32: raise LayoutError("it does not lie in one dword", where=f"{isa}'s buffer resource, {name}")
  return FieldPart(low // 32, Field(low % 32, bits))


@cache
def parser(isa: str, formatted: bool) -> Callable[[int, int, int, int], Resource]:
  """What reads the four dwords of a resource, for an instruction that uses its format or for one that does not.

  Where a resource has a data format, one that adds the lane's number has more bits of its stride there for
  instructions that have no use for a format (CDNA3 ISA manual, table 44).
  """
  base, stride_of, records = (field(isa, n) for n in ("base_address", "stride", "num_records"))
  selects = [field(isa, f"dst_sel_{c}") for c in "xyzw"]
  swizzle, indices, thread = (field(isa, n) for n in ("swizzle_enable", "index_stride", "add_tid_enable"))
  scale, check, unified, data, number = (field(isa, n) if has(isa, n) else None for n in (
    "stride_scale", "oob_select", "format", "data_format", "num_format"))

  def format_of(v: int) -> str:
    if unified is not None: return buffer_formats.UNIFIED.get(unified.of(v), "INVALID")
    assert data is not None and number is not None
    return _two_part(data.of(v), number.of(v))

  @lru_cache(maxsize=1024)
  def parse(*dwords: int) -> Resource:
    v = sum(d << 32 * k for k, d in enumerate(dwords))
    element = _ELEMENTS.get(swizzle.of(v))
    if element is None: raise MachineFault(f"a buffer resource with the reserved swizzle {swizzle.of(v)}")
    stride = stride_of.of(v) * (1 if scale is None else _SCALES[scale.of(v)])
    if data is not None and not formatted and thread.of(v): stride |= data.of(v) << stride_of.bits
    return Resource(base.of(v), stride, records.of(v), format_of(v), tuple(s.of(v) for s in selects), element,
                    8 << indices.of(v), bool(thread.of(v)), PLAIN_CHECKS if check is None else check.of(v))
  return parse


def _two_part(data: int, number: int) -> str:
  """The name of a format that a data format and a number format make."""
  first = buffer_formats.DATA.get(data, "INVALID")
  return first if first == "INVALID" else f"{first}_{buffer_formats.NUMBER.get(number, '')}"


def instruction_format(i: Instruction) -> str:
  """The name of the format that a typed buffer instruction carries."""
  code = i.fields["format"]
  if has(i.isa, "format"): return buffer_formats.UNIFIED.get(code, "INVALID")
  return _two_part(code & 15, code >> 4)
