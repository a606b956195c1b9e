"""What programs give to load: texts, ELFs that carry PTX, fat binaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.autogen import cuda
from tinyhw.core.errors import DecodeError, Error
from tinyhw.emulator.ptx.module.targets import TARGETS, runs
from tinyhw.mock.cuda.calls import Failed
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.modules import devicelib
from tinyhw.wire import fatbin
from tinyhw.wire.cubin import PTX_SECTION
from tinyhw.wire.elf import MAGIC, Elf

if TYPE_CHECKING:
  from tinyhw.mock.nv.card import Card


def ptx_of(m: CudaMachine, image: int, card: Card | None = None) -> str:
  """The PTX of what a program gives to load: a text, an ELF that carries it, or a fat binary, of which the best for
  this card counts (the first one, where a library is loaded for all)."""
  head = m.user.read(image, 8)
  if head.startswith(MAGIC):
    header = m.user.read(image, 64)
    at, size, count = (int.from_bytes(header[i:j], "little") for i, j in ((40, 48), (58, 60), (60, 62)))
    segments, length, number = (int.from_bytes(header[i:j], "little") for i, j in ((32, 40), (54, 56), (56, 58)))
    end = max(at + size * count, segments + length * number)
    raw = m.user.read(image, end)
    for i in range(count):  # sections may lie behind the table
      row = raw[at + size * i:at + size * (i + 1)]
      if int.from_bytes(row[4:8], "little") != 8:  # SHT_NOBITS
        end = max(end, int.from_bytes(row[24:32], "little") + int.from_bytes(row[32:40], "little"))
    try:
      elf = Elf(m.user.read(image, end))
    except DecodeError as error:
      raise Failed(cuda.CUDA_ERROR_INVALID_IMAGE, str(error)) from None
    section = next((s for s in elf.sections if s.name == PTX_SECTION), None)
    if section is None:
      raise Failed(cuda.CUDA_ERROR_NO_BINARY_FOR_GPU, "a cubin without PTX: machine code (SASS) is not executed")
    return elf.contents(section).rstrip(b"\0").decode(errors="replace")
  magic = int.from_bytes(head[:4], "little")
  if magic == fatbin.WRAPPER_MAGIC:
    data, objects = m.get(image + 8, "2Q")
    if m.get(image + 4, "I")[0] == fatbin.LINKED and objects: return _linked(m, objects, card or m.gpus[0].card)
    return ptx_of(m, data, card)
  if magic == fatbin.MAGIC: return _best(m, image, card or m.gpus[0].card)
  return m.text(image).decode(errors="replace")


def fits(target: str, card: Card) -> bool:
  """Whether a card runs PTX for a target."""
  return runs(target, 10 * card.capability[0] + card.capability[1])


def _linked(m: CudaMachine, objects: int, card: Card) -> str:
  """The PTX of a program that nvcc has linked (-rdc=true): of its object files' fat binaries, whose addresses end with
  0. What nvcc has made of them is machine code."""
  from tinyhw.emulator.ptx.module.merge import linked
  texts: list[tuple[str, str]] = []
  while address := m.get(objects + 8 * len(texts), "Q")[0]:
    try: texts.append((f"object {len(texts)}", _best(m, address, card)))
    except Failed: texts.append(("", ""))  # nothing of its own, or the device's runtime
  own = [(name, text) for name, text in texts if text and not devicelib.runtime(text)]
  if not own: raise Failed(cuda.CUDA_ERROR_NO_BINARY_FOR_GPU, "a linked program (-rdc=true) without PTX")
  try: return linked(own, devicelib.NAMES)
  except Error as error: raise Failed(cuda.CUDA_ERROR_INVALID_PTX, str(error)) from None


def _best(m: CudaMachine, image: int, card: Card) -> str:
  """The newest PTX of a fat binary that the card runs."""
  found: list[tuple[int, bool, str]] = []
  others: list[str] = []
  try:
    for entry in fatbin.entries(m.user.read(image, fatbin.size_of(m.user.read(image, fatbin.HEADER.size)))):
      if entry.kind != fatbin.PTX: others.append(f"machine code for sm_{entry.sm}")
      elif 10 * card.capability[0] + card.capability[1] < entry.sm: others.append(f"PTX for sm_{entry.sm}")
      else:
        text = entry.text()
        target = (text.partition(".target")[2].split() or [""])[0].rstrip(",")
        if target not in TARGETS: others.append(f"PTX for {target or 'no target'}, which is none that is known")
        elif fits(target, card): found.append((entry.sm, target[-1] in "af", text))
        else: others.append(f"PTX for {target}")
  except DecodeError as error: raise Failed(cuda.CUDA_ERROR_INVALID_IMAGE, str(error)) from None
  if not found:
    none = "nothing"
    raise Failed(cuda.CUDA_ERROR_NO_BINARY_FOR_GPU, f"a fat binary with {', '.join(others) or none}: no PTX that "
                 f"the device, sm_{card.capability[0]}{card.capability[1]}, runs")
  return max(found)[2]
