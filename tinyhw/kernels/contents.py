"""What a file with GPU code holds: for each piece of code its target, where it runs, and its kernels.

Files are AMDGPU code objects, offload bundles, cubins, fat binaries, PTX, CUDA and HIP C++, and programs of the host
that carry bundles (`.hip_fatbin`) or fat binaries (`.nv_fatbin`).
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tinyhw.arch import DECODED, arch, lacking
from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.core.errors import DecodeError, Error, InvalidArgument
from tinyhw.core.memory import PAGE
from tinyhw.devices.mocked import card_names
from tinyhw.devices.ptx import signature
from tinyhw.drive.nv.bare import PtxKernel, is_ptx
from tinyhw.emulator.ptx.module import targets
from tinyhw.isa.ptx import parse
from tinyhw.kernels import hip_source
from tinyhw.kernels.hip_source import HipSource
from tinyhw.kernels.parameters import declared, seen
from tinyhw.kernels.sources import Source, source_of
from tinyhw.wire import codeobject, fatbin
from tinyhw.wire.codeobject import GENERIC, CodeObject, Kernel
from tinyhw.wire.cubin import MACHINE, Cubin
from tinyhw.wire.elf import MAGIC, Elf

_HIP, _CUDA = ".hip_fatbin", ".nv_fatbin"  # sections of a host's program
_LONGEST: Final = 64  # pieces of code that are looked at in one file
_BEGINNINGS: Final = (codeobject.BUNDLE, codeobject.COMPRESSED, fatbin.MAGIC.to_bytes(4, "little"))


@dataclass(frozen=True)
class KernelFacts:
  """A kernel. `parameters` are "name: type", with "?" for what nothing says. `counts` are numbers of the vendor's words
  (registers; LDS, shared, scratch and local memory in bytes), without those that are not known. `block` is the block
  that it needs, `threads` the most threads of one (0: not said); `source` is file and line of its first instruction."""
  name: str
  parameters: tuple[str, ...]
  counts: dict[str, int]
  threads: int = 0
  block: tuple[int, int, int] | None = None
  source: str = ""


@dataclass(frozen=True)
class CodeFacts:
  """A piece of code. `runs` says where it runs here, `why` why it does not or cannot be read; one of them is empty."""
  what: str
  target: str
  runs: tuple[str, ...] = ()
  why: str = ""
  kernels: tuple[KernelFacts, ...] = ()
  facts: dict[str, Any] = field(default_factory=dict)

  def row(self) -> dict[str, Any]: return asdict(self)


def contents(data: bytes, name: str) -> list[CodeFacts]:
  """The pieces of code in a file's bytes, in order. Raises InvalidArgument for what holds none, DecodeError for what is
  damaged."""
  if name.endswith(hip_source.SUFFIX) and b"\0" not in data: return [_source(HipSource(data, name))]
  source = source_of(data)
  if source is not None: return [_source(source)]
  found = [piece for _, piece in zip(range(_LONGEST), _pieces(data))]
  if not found: raise _no_code(name)
  return found


def require_code(data: bytes, name: str) -> None:
  """Raise InvalidArgument where these bytes are no form of GPU code, nor a program with some. None of it is read."""
  if is_ptx(data) or data.startswith(_BEGINNINGS): return
  if not data.startswith(MAGIC): raise _no_code(name)
  file = Elf(data)
  if file.header.e_machine not in {elf.EM_AMDGPU, MACHINE} and all(s.name not in (_HIP, _CUDA) for s in file.sections):
    raise _no_code(name)


def _no_code(name: str) -> InvalidArgument:
  return InvalidArgument("holds no GPU code", where=name, hint="files are AMDGPU code objects, offload bundles, "
                         "cubins, fat binaries, PTX, CUDA and HIP C++, and programs with such code in them")


def _pieces(data: bytes) -> Iterator[CodeFacts]:
  if is_ptx(data): yield _ptx(data)
  elif data.startswith((codeobject.BUNDLE, codeobject.COMPRESSED)): yield from _bundle(data)
  elif data[:4] == fatbin.MAGIC.to_bytes(4, "little"): yield from _fatbin(data)
  elif data.startswith(MAGIC):
    file = Elf(data)
    if file.header.e_machine == elf.EM_AMDGPU: yield _code_object(data)
    elif file.header.e_machine == MACHINE: yield _cubin(data)
    else: yield from _program(file)


def _program(file: Elf) -> Iterator[CodeFacts]:
  """What a program or library of the host carries: bundles beside each other on pages, or fat binaries one behind the
  other."""
  for section in file.sections:
    if section.name == _HIP:
      raw = file.contents(section)
      starts = [k for k in range(0, len(raw), PAGE)
                if raw.startswith((codeobject.BUNDLE, codeobject.COMPRESSED), k)]
      for at, end in zip(starts, [*starts[1:], len(raw)]): yield from _bundle(raw[at:end])
    elif section.name == _CUDA:
      raw, at = file.contents(section), 0
      while at + fatbin.HEADER.size <= len(raw):
        size = fatbin.size_of(raw[at:])
        yield from _fatbin(raw[at:at + size])
        at += -(-size // 8) * 8


def _bundle(data: bytes) -> Iterator[CodeFacts]:
  try: found = codeobject.bundled(data)
  except Error as error:
    yield CodeFacts("offload bundle", "?", why=str(error))
    return
  for target, code in found.items():
    try: yield _code_object(code)
    except Error as error: yield CodeFacts("AMDGPU code object", target, why=str(error))


def _fatbin(data: bytes) -> Iterator[CodeFacts]:
  for entry in fatbin.entries(data):
    try:
      if entry.kind == fatbin.PTX: yield _ptx(entry.text().encode())
      else: yield _cubin(entry.code())
    except Error as error:
      yield CodeFacts("PTX" if entry.kind == fatbin.PTX else "cubin", f"sm_{entry.sm}", why=str(error))


# ---- AMD

def _code_object(data: bytes) -> CodeFacts:
  code = codeobject.load(data)
  runs, why = _amd_runs(code)
  kernels = tuple(_amd_kernel(data, code, k) for k in code.kernels.values())
  return CodeFacts(f"AMDGPU code object, version {code.version}", code.target_id, runs, why, kernels,
                   {"image bytes": len(code.image)})


def _amd_runs(code: CodeObject) -> tuple[tuple[str, ...], str]:
  """The mock cards and the emulator on which code runs; why it runs on none."""
  cards = [c for c in card_names("AMD") if _takes(code, c)]
  runs = [f"MOCKGPU={c}" for c in cards]
  if any(n in DECODED for n in (code.arch, *GENERIC.get(code.arch, ()))): runs.append("EMU")
  return tuple(runs), "" if runs else str(lacking(code.arch, DECODED))


def _takes(code: CodeObject, card: str) -> bool:
  try: code.check(card, arch(card).features)
  except InvalidArgument: return False
  return True


def _amd_kernel(data: bytes, code: CodeObject, k: Kernel) -> KernelFacts:
  names = {"vgpr_count": "VGPRs", "agpr_count": "AGPRs", "sgpr_count": "SGPRs", "vgpr_spill_count": "spilled VGPRs",
           "sgpr_spill_count": "spilled SGPRs"}
  counts = {text: k.counts[n] for n, text in names.items() if k.counts.get(n)}
  counts |= {"LDS": k.group_segment_size, "scratch": k.private_segment_size, "wave": k.wavefront_size}
  return KernelFacts(k.name, _parameters(data, k), counts, k.max_workgroup_size, k.required_workgroup_size,
                     str(code.source.spot(k.start_offset) or ""))


def _parameters(data: bytes, kernel: Kernel | PtxKernel) -> tuple[str, ...]:
  """Name and type of each parameter, as far as metadata, debug information and code tell."""
  rows = zip(kernel.arguments, declared(data, kernel), seen(data, kernel))
  return tuple(f"{name or '?'}: {t.name if (t := known or used) is not None else _plain(a.kind, a.size)}"
               for a, (name, known), used in rows)


def _plain(kind: str, size: int) -> str:
  if kind == "global_buffer": return "pointer"
  if kind == "dynamic_shared_pointer": return "pointer to LDS"
  return f"{size} bytes"


# ---- NVIDIA

def _ptx(data: bytes) -> CodeFacts:
  module = parse(data)
  target = ", ".join(module.target)
  kernels = []
  for name, function in module.entries.items():
    kernel = signature(data, name)
    bound, block = function.directive("maxntid"), function.directive("reqntid")
    x, y, z = (*(block or ()), 1, 1, 1)[:3]
    threads = 1
    for n in bound or (): threads *= n
    kernels.append(KernelFacts(name, _parameters(data, kernel), {"shared": kernel.group_segment_size},
                               threads if bound else 0, (x, y, z) if block else None))
  return CodeFacts("PTX, version {}.{}".format(*module.version), target, _ptx_runs(module.target[0]), "",
                   tuple(kernels))


def _ptx_runs(target: str) -> tuple[str, ...]:
  fit = [c for c in card_names("NV") if targets.runs(target, int(c.removeprefix("sm_")))]
  return (*(f"MOCKGPU={c}" for c in fit), "EMU")


def _cubin(data: bytes) -> CodeFacts:
  cubin = Cubin(data)
  if cubin.ptx is not None: return _ptx(cubin.ptx)
  kernels = tuple(KernelFacts(
    k.name, tuple(f"?: {p.size} bytes" for p in k.parameters),
    {"registers": k.registers, "shared": k.shared, "local": k.local, "barriers": k.barriers}, k.limit, k.required)
    for k in cubin.kernels.values())
  why = f"machine code of NVIDIA runs on a card of {cubin.arch} alone"
  return CodeFacts("cubin (machine code)", cubin.arch, (), why, kernels)


def _source(source: Source) -> CodeFacts:
  if not source.kernels: raise DecodeError("has no kernel", where=source.name)
  hip = isinstance(source, HipSource)
  cards = *(f"MOCKGPU={c}" for c in card_names("AMD" if hip else "NV")), "EMU"
  return CodeFacts("HIP C++" if hip else "CUDA C++", "any", cards, "",
                   tuple(KernelFacts(n, (), {}) for n in source.kernels),
                   {"compiled by": f"{'clang' if hip else 'nvrtc'}, when it is launched"})
