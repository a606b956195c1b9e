"""Cases of the copy engine's packets (SDMA v6 of gfx11 and gfx12, v4 of gfx9).

Counts are stored less one (copy_max_bytes and the kernel driver's use of COPY_LINEAR and CONSTANT_FILL,
sdma_v6_0.c); POLL_REGMEM's functions count as WAIT_REG_MEM's.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tinyhw.arch import Arch
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.amd import maker
from tinyhw.tools.conform.client.question import Area, Question

UNIT: Final = "sdma"
PAGE: Final = 4096
_GUARD: Final = 256
_LARGE: Final = 4 << 20
SIZES: Final = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025,
                PAGE - 1, PAGE, PAGE + 1, 2 * PAGE - 1, 2 * PAGE + 1)
PLACES: Final = ((0, 0), (1, 0), (0, 1), (3, 2), (4, 8), (7, 60), (63, 65))  # from, to: bytes into their areas
KINDS: Final = ("system", "video")


def questions(arch: Arch) -> Iterator[Question]:
  """All cases of a generation."""
  yield from _copies(arch)


def _put(c: Any, name: str, **fields: Any) -> Any: return c._put(getattr(c.packets, name)(**fields))


def _copies(arch: Arch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "SDMA_PKT_COPY_LINEAR"

  def copy(form: str, size: int, at: int, to: int, kinds: tuple[str, str] = ("system", "system")) -> Question:
    room = -(-(max(at, to) + size + _GUARD) // _GUARD) * _GUARD
    source, target = models.noise(size, room), models.noise(size + 1, room)

    def put(c: Any, a: int, b: int) -> None: _put(c, name, count=size - 1, src_addr=a + at, dst_addr=b + to)
    return make(name, form, [Area(source, kinds[0]), Area(target, kinds[1])],
                [source, models.copied(target, source, at, to, size)], put)
  for i, size in enumerate(SIZES):
    for j, (at, to) in enumerate(PLACES):
      if j in {0, 1 + i % 6, 1 + (i + 3) % 6}: yield copy(f"{size}-from-{at}-to-{to}", size, at, to)
  for size in (4, 5, PAGE + 1):
    for a in KINDS:
      for b in KINDS: yield copy(f"{size}-{a}-to-{b}", size, 0, 0, (a, b))
  for size in (2, PAGE): yield copy(f"{size}-over-a-page's-end", size, PAGE - 1, 2 * PAGE - 1)
  for size in (_LARGE - 1, _LARGE, _LARGE + 4): yield copy(f"{size}", size, 0, 0)
