"""Whose code a file holds: one code object of a bundle, its processor, features and version."""
from __future__ import annotations

from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.wire.elf import Elf

WHERE = "code object"  # what errors name
VERSIONS = {
  elf.ELFABIVERSION_AMDGPU_HSA_V4: 4,
  elf.ELFABIVERSION_AMDGPU_HSA_V5: 5,
  elf.ELFABIVERSION_AMDGPU_HSA_V6: 6,
  elf.ELFABIVERSION_AMDGPU_HSA_V2: 2,
  elf.ELFABIVERSION_AMDGPU_HSA_V3: 3,
}
# A generic processor's code runs on these (LLVM's AMDGPUUsage, "AMDGPU Generic Processors"), each of which was there
# from the first version of its generic processor on.
GENERIC = {
  "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
  "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
  "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
  "gfx10-3-generic": ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
  "gfx11-generic": ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
  "gfx12-generic": ("gfx1200", "gfx1201"),
}
# What code may be compiled for: a feature's mask in the ELF's flags, and what its values say. Code for "any" setting
# runs with both, other code only where the card is set so (AMDGPUUsage, "Target ID").
FEATURES: dict[str, tuple[int, dict[int, str]]] = {
  "sramecc": (elf.EF_AMDGPU_FEATURE_SRAMECC_V4, {
    elf.EF_AMDGPU_FEATURE_SRAMECC_ANY_V4: "", elf.EF_AMDGPU_FEATURE_SRAMECC_OFF_V4: "-",
    elf.EF_AMDGPU_FEATURE_SRAMECC_ON_V4: "+"}),
  "xnack": (elf.EF_AMDGPU_FEATURE_XNACK_V4, {
    elf.EF_AMDGPU_FEATURE_XNACK_ANY_V4: "", elf.EF_AMDGPU_FEATURE_XNACK_OFF_V4: "-",
    elf.EF_AMDGPU_FEATURE_XNACK_ON_V4: "+"}),
}
BUNDLE, COMPRESSED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"  # how files of several code objects begin
BUNDLED_LIMIT = 256  # code objects in one; a header that claims more is taken for damage
OTHER_MACHINES = {
  elf.EM_X86_64: "x86-64",
  elf.EM_386: "x86",
  elf.EM_AARCH64: "AArch64",
  elf.EM_ARM: "ARM",
  elf.EM_CUDA: "an NVIDIA GPU",
  elf.EM_RISCV: "RISC-V",
  elf.EM_PPC64: "PowerPC",
  elf.EM_BPF: "BPF",
}


def bundled(data: bytes) -> dict[str, bytes]:
  """The code objects of a bundle (of `clang -x hip`, `hipcc --genco`) by target id. Format: LLVM's ClangOffloadBundler,
  "Bundled Binary File Layout". Raises DecodeError for a broken bundle, Unsupported for a compressed one.
  """
  if data.startswith(COMPRESSED):
    raise Unsupported("file", "a compressed offload bundle", where=WHERE, hint="compile with --no-offload-compress")

  def number(at: int) -> int:
    if at + 8 > len(data): raise DecodeError("truncated offload bundle", where=WHERE)
    return int.from_bytes(data[at:at + 8], "little")
  found: dict[str, bytes] = {}
  at = len(BUNDLE) + 8
  for _ in range(min(number(len(BUNDLE)), BUNDLED_LIMIT)):
    start, size, length = (number(at + 8 * k) for k in range(3))
    at += 24 + length
    if start + size > len(data) or at > len(data): raise DecodeError("truncated offload bundle", where=WHERE)
    kind, _, target = data[at - length:at].decode("ascii", "replace").partition("-amdgcn-amd-amdhsa-")
    if target and size: found[target.lstrip("-")] = data[start:start + size]
  return found


def unbundled(data: bytes, arch: str | None = None) -> bytes:
  """The code object in a bundle that is for `arch`, or the only one; other bytes stay.

  Raises what `bundled` does, and InvalidArgument where none or several fit.
  """
  if not data.startswith((BUNDLE, COMPRESSED)): return data
  found = bundled(data)
  names = {t: t.split(":")[0] for t in found}
  fitting = [t for t in found if arch is None or names[t] == arch]
  fitting = fitting or [t for t in found if arch in GENERIC.get(names[t], ())]
  if len(fitting) == 1: return found[fitting[0]]
  has = f"an offload bundle for {', '.join(found) or 'no AMD GPU'}"
  raise InvalidArgument(has if arch is None else f"{has}; the device is {arch}", where=WHERE,
                        hint="compile for one GPU with --offload-arch, or take one out with clang-offload-bundler")


def identify(file: Elf) -> tuple[str, int, dict[str, bool], int]:
  """Processor, code object version, the features that the code wants on or off, version of a generic processor."""
  header = file.header
  if header.e_machine != elf.EM_AMDGPU:
    machine = OTHER_MACHINES.get(header.e_machine, f"machine {header.e_machine}")
    raise DecodeError(f"an ELF for {machine}, not for an AMD GPU", where=WHERE)
  if header.e_ident[elf.EI_OSABI] != elf.ELFOSABI_AMDGPU_HSA:
    raise DecodeError(
      f"OS ABI {header.e_ident[elf.EI_OSABI]} is not amdhsa", where=WHERE, hint="compile for amdgcn-amd-amdhsa"
    )
  version = VERSIONS.get(header.e_ident[elf.EI_ABIVERSION])
  if version is None:
    raise DecodeError(f"unknown ABI version {header.e_ident[elf.EI_ABIVERSION]}", where=WHERE)
  if version < 4:
    raise Unsupported("code object version", str(version), where=WHERE, hint="compile with -mcode-object-version=5")
  mach = header.e_flags & elf.EF_AMDGPU_MACH
  if mach not in elf.MACHINES:
    raise DecodeError(f"unknown processor {mach:#x}", where=WHERE)
  chosen = {name: values.get(header.e_flags & mask, "") for name, (mask, values) in FEATURES.items()}
  generic = (header.e_flags & elf.EF_AMDGPU_GENERIC_VERSION) >> elf.EF_AMDGPU_GENERIC_VERSION_OFFSET
  wanted = {name: sign == "+" for name, sign in chosen.items() if sign}
  return elf.MACHINES[mach], version, wanted, generic if version >= 6 else 0
