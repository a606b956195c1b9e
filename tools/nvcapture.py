"""What CUDA's driver writes into its channels: its launches of known kernels, found in the mappings of this process.

    python -m tinyhw.tools.nvcapture FILE --card "NVIDIA H200" --driver 580.159.04 --date 2026-11-27

FILE takes the QMDs and the pieces of pushbuffers as words, which `wire/` decodes; what they upload besides (code) is
left out. tests/recordings/cuda_sm90.json is one. It needs a card and CUDA's driver, which no mock is: the mock has no
channels behind libcuda.
"""
from __future__ import annotations

import argparse
import ctypes
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError
from tinyhw.drive.cuda import Library, system_library
from tinyhw.wire import gpfifo, methods, qmd

PAGE: Final = 4096
LONGEST: Final = 64 << 20  # bytes of a mapping that is looked at
LEAST: Final = 16  # entries of a ring that has been used
LAUNCHED: Final = 512  # words of a piece that launches; longer ones upload
KERNELS: Final = """.version 8.0
.target sm_90
.address_size 64
.visible .entry plain(.param .u64 out) {
  .reg .b64 %a; .reg .b32 %r; ld.param.u64 %a, [out]; mov.u32 %r, %tid.x; st.global.u32 [%a], %r; ret;
}
.visible .entry shared(.param .u64 out) {
  .reg .b64 %a; .reg .b32 %r; .shared .align 16 .b8 s[1280];
  ld.param.u64 %a, [out]; mov.u32 %r, %tid.x; st.shared.u32 [s], %r; ld.volatile.shared.u32 %r, [s];
  st.global.u32 [%a], %r; ret;
}
.visible .entry local(.param .u64 out) {
  .reg .b64 %a; .reg .b32 %r, %i, %j, %s; .local .align 16 .b8 s[4096];
  ld.param.u64 %a, [out]; mov.u32 %r, %tid.x; mov.u32 %s, s; and.b32 %i, %r, 1023; mad.lo.u32 %i, %i, 4, %s;
  st.local.u32 [%i], %r; xor.b32 %j, %r, 1; and.b32 %j, %j, 1023; mad.lo.u32 %j, %j, 4, %s; st.local.u32 [%j], %s;
  ld.local.u32 %r, [%i]; st.global.u32 [%a], %r; ret;
}
.visible .entry cluster(.param .u64 out) .reqnctapercluster 2, 2, 1 {
  .reg .b64 %a; .reg .b32 %r; ld.param.u64 %a, [out]; mov.u32 %r, %cluster_ctarank; st.global.u32 [%a], %r; ret;
}
"""


@dataclass(frozen=True)
class Launch:
  """A launch, and its QMD."""
  kernel: str
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  cluster: tuple[int, int, int] | None = None
  dynamic: int = 0
  qmd: tuple[int, ...] = field(default=())


LAUNCHES: Final = (
  Launch("plain", (13, 1, 1), (32, 1, 1)), Launch("shared", (7, 5, 3), (96, 3, 2)),
  Launch("shared", (9, 5, 3), (96, 3, 2), dynamic=2048), Launch("local", (11, 2, 1), (33, 1, 1)),
  Launch("cluster", (6, 4, 1), (64, 1, 1), (2, 2, 1)))


class Pages:
  """Memory by pages."""

  def __init__(self, pages: Mapping[int, bytes]) -> None: self._pages = pages

  def __iter__(self) -> Iterator[int]: return iter(sorted(self._pages))

  def words(self, address: int, count: int) -> list[int]:
    """Words from an address on; 0 where nothing is known."""
    found: list[int] = []
    while len(found) < count:
      at = address + 4 * len(found)
      page = np.frombuffer(self._pages.get(at & -PAGE, bytes(PAGE)), "<u4")
      found += page[at % PAGE // 4:at % PAGE // 4 + count - len(found)].tolist()
    return found

  def ring(self, address: int) -> list[gpfifo.Segment]:
    """The entries of the ring that begins with a page; none where it is none."""
    found = []
    for low, high in zip(*[iter(self.words(address, PAGE // 4))] * 2):
      if not low and not high: break
      try: entry = gpfifo.decode(low | high << 32)
      except DecodeError: return []
      if not isinstance(entry, gpfifo.Segment) or entry.address & -PAGE not in self._pages: return []
      found.append(entry)
    return found if len(found) >= LEAST else []


def grid_of(class_id: int, words: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
  """(GRID_WIDTH and so on, threads of a block) of words that are a QMD."""
  try: made = qmd.decode(class_id, words)
  except DecodeError: return None
  return (tuple(qmd.read(made, f"GRID_{n}") for n in ("WIDTH", "HEIGHT", "DEPTH")),
          tuple(qmd.read(made, f"CTA_THREAD_DIMENSION{n}") for n in range(3)))


def found(pages: Pages, class_id: int, launches: tuple[Launch, ...] = LAUNCHES) -> tuple[list[Launch], list[list[int]]]:
  """(the launches with their QMDs, pieces of the pushbuffers that launch or set up) of a process that made them."""
  dwords = max(d.DWORDS for d in qmd.versions(class_id).values())
  pieces, made = list[list[int]](), dict[Any, tuple[int, ...]]()
  for page in pages:
    for entry in pages.ring(page):
      words = pages.words(entry.address, entry.dwords)
      sent = list(methods.walk(words))
      uploads = [s.data for _, s in sent if isinstance(s, methods.Send) and s.header is methods.NONINCR and s.data]
      for data in uploads:
        for at in range(len(data) - dwords + 1):
          told = grid_of(class_id, tuple(data[at:at + dwords]))
          if told is not None: made[told] = tuple(data[at:at + dwords])
      if len(words) < LAUNCHED: pieces.append(without_uploads(words))
  def key(l: Launch) -> Any: return tuple(g // c for g, c in zip(l.grid, l.cluster or (1, 1, 1))), l.block
  kept = [Launch(l.kernel, l.grid, l.block, l.cluster, l.dynamic, made[key(l)]) for l in launches if key(l) in made]
  return kept, [list(p) for p in dict.fromkeys(map(tuple, pieces))]


def without_uploads(words: list[int]) -> list[int]:
  """A piece without the data that it uploads, of which zeros are left."""
  out = list(words)
  for at, sent in methods.walk(words):
    if isinstance(sent, methods.Send) and sent.header is methods.NONINCR:
      out[at + 1:at + 1 + len(sent.data)] = [0] * len(sent.data)
  return out


def mapped() -> Pages:
  """The pages that NVIDIA's driver has mapped into this process, but for empty ones."""
  kept = {}
  for line in Path("/proc/self/maps").read_text().splitlines():
    span, access, _, _, _, *path = line.split()
    low, high = (int(x, 16) for x in span.split("-"))
    name = path[0] if path else ""
    if "r" not in access or high - low > LONGEST or "uvm" in name: continue
    if not name.startswith(("/dev/nvidia", "/dev/zero")): continue
    data = ctypes.string_at(low, high - low)
    kept.update({low + at: data[at:at + PAGE] for at in range(0, len(data), PAGE) if any(data[at:at + PAGE])})
  return Pages(kept)


def run() -> Pages:
  """Launch the kernels, and give what lies in memory then."""
  library = Library(system_library())
  library.call("cuInit", 0)
  device = library.number(ctypes.c_int32, "cuDeviceGet", 0)
  library.call("cuCtxSetCurrent", library.handle("cuDevicePrimaryCtxRetain", device))
  module = library.handle("cuModuleLoadData", KERNELS.encode())
  out = ctypes.c_uint64(library.handle("cuMemAlloc_v2", PAGE))
  given = (ctypes.c_void_p * 1)(ctypes.addressof(out))
  for l in LAUNCHES:
    function = library.handle("cuModuleGetFunction", module, l.kernel.encode())
    library.call("cuLaunchKernel", function, *l.grid, *l.block, l.dynamic, 0, given, None)
    library.call("cuCtxSynchronize")
  return mapped()


def text(header: Mapping[str, Any], class_id: int, launches: list[Launch], pieces: list[list[int]]) -> str:
  """The recording: a launch and a piece a line."""
  rows = ",\n".join(f"  {json.dumps(asdict(l))}" for l in launches)
  lines = ",\n".join(f"  {json.dumps(' '.join(f'{w:x}' for w in p))}" for p in pieces)
  head = json.dumps({**header, "class": class_id})[:-1]
  return f'{head},\n"launches": [\n{rows}],\n"pieces": [\n{lines}]}}\n'


def main() -> None:
  """The command."""
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.nvcapture")
  parser.add_argument("file", type=Path)
  for name in ("card", "driver", "date"): parser.add_argument(f"--{name}", required=True)
  parser.add_argument("--class", dest="class_id", type=lambda x: int(x, 0), default=0xCBC0, help="the compute class")
  o = parser.parse_args()
  header = {"card": o.card, "driver": o.driver, "date": o.date, "command": "python -m tinyhw.tools.nvcapture"}
  o.file.write_text(text(header, o.class_id, *found(run(), o.class_id)))


if __name__ == "__main__": main()
