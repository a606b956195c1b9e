"""Cases on the emulator, on the host and in NumPy, and the comparison of their results.

The emulator is used directly: an address space, a code object's image in it, and a dispatch. No driver, no mock.
"""
from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch, decoded
from tinyhw.autogen import amdhsa
from tinyhw.autogen.hsa import hsa_kernel_dispatch_packet_t
from tinyhw.core.errors import Error
from tinyhw.core.memory import Access, AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.emulator.observe import Observer
from tinyhw.tools.fuzz.build import Host, gpu_object
from tinyhw.tools.fuzz.case import Array, Case, split, stored, width
from tinyhw.tools.fuzz.values import FORMATS, draw
from tinyhw.tools.witness.state import CODE
from tinyhw.wire.codeobject import CodeObject, Kernel, load

ARGUMENTS: Final = CODE + (1 << 36)
SCRATCH: Final = CODE + (2 << 36)
DATA: Final = CODE + (3 << 36)
GAP: Final = 1 << 20  # unmapped bytes between buffers
PAGE: Final = 4096
SCRATCH_WAVES: Final = 64
FILL: Final = 0xA5  # outputs before the run
WATCHDOG: Final = 50_000
PROPERTY: Final = {name: getattr(amdhsa, f"KERNEL_CODE_PROPERTY_ENABLE_{name}") for name in (
  "SGPR_PRIVATE_SEGMENT_BUFFER", "SGPR_DISPATCH_PTR", "SGPR_QUEUE_PTR", "SGPR_KERNARG_SEGMENT_PTR", "SGPR_DISPATCH_ID",
  "SGPR_FLAT_SCRATCH_INIT", "SGPR_PRIVATE_SEGMENT_SIZE", "WAVEFRONT_SIZE32")}


@dataclass(frozen=True)
class Mismatch:
  """A case whose witnesses disagree, or that did not run. `level` is LLVM's optimization level, `error` what stopped "
  "it."""
  case: str
  level: int
  text: str
  error: Error | None = None

  def __str__(self) -> str: return f"{self.case} at O{self.level}: {self.text}"


def _pages(size: int) -> int: return -(-size // PAGE) * PAGE


class Emulated:
  """A code object on the emulator."""

  def __init__(self, binary: bytes, cpu: Arch, engine: str = "ref", observer: Observer | None = None) -> None:
    self.arch, self.engine, self.observer = cpu, engine, observer
    self.executed: Counter[str] = Counter()  # how many waves executed each mnemonic
    self.code: CodeObject = load(binary, arch=cpu.name)
    image = self.code.link(CODE)
    self._image = Region("code", _pages(len(image)))
    self._image.u8[:len(image)] = np.frombuffer(image, np.uint8)
    self._arguments = Region("arguments", PAGE)
    self._scratch: Region | None = None

  def run(self, case: Case, arrays: Sequence[Array]) -> None:
    """Run a case's kernel on arrays (inputs, then outputs), which it changes. Raises what the emulator raises."""
    kernel = self.code.kernel(case.name)
    space = AddressSpace(case.name)
    space.map(CODE, self._image.size, self._image, access=Access.READ | Access.EXECUTE)
    space.map(ARGUMENTS, PAGE, self._arguments, access=Access.READ)
    addresses, at = [], DATA
    for array in arrays:
      region = Region("data", _pages(array.nbytes))
      region.u8[:array.nbytes] = array.reshape(-1).view(np.uint8)
      space.map(at, region.size, region, access=Access.READ | Access.WRITE | Access.ATOMIC)
      addresses.append(at)
      at += region.size + GAP
    self._fill_arguments(kernel, case, addresses)
    wave32 = kernel.property(PROPERTY["WAVEFRONT_SIZE32"])
    scratch = _pages(kernel.private_segment_size * 64) // 64 if kernel.private_segment_size else 0
    if scratch:
      needed = scratch * (32 if wave32 else 64) * SCRATCH_WAVES
      if self._scratch is None or self._scratch.size < needed: self._scratch = Region("scratch", _pages(needed))
      space.map(SCRATCH, self._scratch.size, self._scratch, access=Access.READ | Access.WRITE | Access.ATOMIC)
    grid, block = case.launch
    d = kernel.descriptor
    stats = dispatch(space, self.arch, Dispatch(
      entry_pc=CODE + kernel.entry_offset, grid=grid, block=block, rsrc1=d.compute_pgm_rsrc1, rsrc2=d.compute_pgm_rsrc2,
      rsrc3=d.compute_pgm_rsrc3, user_data=self._user_data(kernel), scratch_base=SCRATCH, scratch_size=scratch,
      scratch_waves=SCRATCH_WAVES, lds_size=kernel.group_segment_size, wave32=wave32), watchdog=WATCHDOG,
             engine=self.engine, observer=self.observer)
    self.executed += stats.mnemonics
    for array, address in zip(arrays, addresses):
      array.reshape(-1).view(np.uint8)[:] = space.view(address, array.nbytes)

  def _fill_arguments(self, kernel: Kernel, case: Case, addresses: Sequence[int]) -> None:
    """Explicit and hidden kernel arguments, then the dispatch packet at half the page."""
    grid, block = case.launch
    memory = self._arguments.u8
    memory[:] = 0
    values = [*addresses, case.lanes]
    for argument, value in zip(kernel.arguments, values):
      memory[argument.offset:argument.offset + argument.size] = np.frombuffer(value.to_bytes(argument.size,
        "little"), np.uint8)
    hidden = {f"hidden_block_count_{axis}": grid[k] for k, axis in enumerate("xyz")}
    hidden |= {f"hidden_group_size_{axis}": block[k] for k, axis in enumerate("xyz")}
    hidden["hidden_grid_dims"] = 3 if case.dims else 1
    for argument in kernel.hidden:
      value = hidden.get(argument.kind, 0)
      memory[argument.offset:argument.offset + argument.size] = np.frombuffer(value.to_bytes(argument.size,
        "little"), np.uint8)
    packet = hsa_kernel_dispatch_packet_t()
    packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z = block
    packet.grid_size_x, packet.grid_size_y, packet.grid_size_z = (g * b for g, b in zip(grid, block))
    packet.kernarg_address = ARGUMENTS
    memory[PAGE // 2:PAGE // 2 + 64] = np.frombuffer(bytes(packet), np.uint8)

  def _user_data(self, kernel: Kernel) -> tuple[int, ...]:
    """User SGPRs in the order of AMDGPUUsage, "Initial Kernel Execution State"."""
    out: list[int] = []
    for name, words in (("SGPR_PRIVATE_SEGMENT_BUFFER", (0, 0, 0, 0)), ("SGPR_DISPATCH_PTR",
      _two(ARGUMENTS + PAGE // 2)),
                        ("SGPR_QUEUE_PTR", (0, 0)), ("SGPR_KERNARG_SEGMENT_PTR", _two(ARGUMENTS)),
                        ("SGPR_DISPATCH_ID", (0, 0)), ("SGPR_FLAT_SCRATCH_INIT", _two(SCRATCH)),
                        ("SGPR_PRIVATE_SEGMENT_SIZE", (kernel.private_segment_size,))):
      if kernel.property(PROPERTY[name]): out += words
    # Compilers count unused user SGPRs too; those hold what was there before.
    return tuple(out + [0xDEADBEEF] * (16 - len(out)))


def _two(address: int) -> tuple[int, int]: return address & 0xFFFFFFFF, address >> 32


def inputs(case: Case, seed: int) -> list[Array]:
  """The case's inputs for a seed."""
  rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
  arrays = draw(case.inputs, case.lanes, rng)
  if case.fill is not None: case.fill(arrays, rng)
  return arrays


def outputs(case: Case) -> list[Array]:
  """Fresh output arrays."""
  shapes = [(case.lanes, width(k)) if split(k)[0] > 1 else (case.lanes,) for k in case.outputs]
  return [_filled(s, stored(k)) for s, k in zip(shapes, case.outputs)]


def _filled(shape: tuple[int, ...], dtype: Any) -> Array:
  out = np.empty(shape, dtype)
  out.reshape(-1).view(np.uint8)[:] = FILL
  return out


def expected(case: Case, host: Host | None, seed: int) -> list[Array]:
  """What the witness says: changed inputs (those of `inplace`), then outputs."""
  arrays = inputs(case, seed)
  if case.witness is not None:
    results = list(case.witness([a.copy() for a in arrays]))
    return [*(arrays[k] for k in case.inplace), *results]
  if host is None: raise ValueError(f"{case.name} needs the host")
  results = outputs(case)
  host.run(case, [a.ctypes.data for a in [*arrays, *results]], case.lanes)
  return [*(arrays[k] for k in case.inplace), *results]


def emulated(case: Case, machine: Emulated, seed: int) -> list[Array]:
  """What the emulator computes, in the order of `expected`."""
  arrays, results = inputs(case, seed), outputs(case)
  machine.run(case, [*arrays, *results])
  return [*(arrays[k] for k in case.inplace), *results]


def _ordered(bits: Array) -> Array:
  """Float patterns as integers in the order of the values."""
  n = bits.dtype.itemsize * 8
  wide = bits.astype(np.int64) if n < 64 else bits.view(np.int64)
  sign = np.int64(-1 << 63) if n == 64 else np.int64(1 << n - 1)
  magnitude = wide & ~sign
  return np.where(wide & sign != 0, -magnitude, magnitude)


def differing(case: Case, kind: str, got: Array, want: Array) -> Array:
  """Indices (into the flattened arrays) of elements that differ by more than the case allows."""
  if case.unordered: got, want = np.sort(got, axis=None), np.sort(want, axis=None)
  got, want = got.reshape(-1), want.reshape(-1)
  same = got == want
  scalar = split(kind)[1]
  if scalar in FORMATS and not case.bits:
    mantissa, exponent = FORMATS[scalar]
    sign = 1 << mantissa + exponent
    magnitude_got, magnitude_want = got & got.dtype.type(sign - 1), want & want.dtype.type(sign - 1)
    infinity = ((1 << exponent) - 1) << mantissa
    nan_got, nan_want = magnitude_got > infinity, magnitude_want > infinity
    same |= nan_got & nan_want
    if case.signless: same |= (magnitude_got == 0) & (magnitude_want == 0)
    numbers = ~nan_got & ~nan_want
    if case.ulp: same |= numbers & (np.abs(_ordered(got) - _ordered(want)) <= case.ulp)
    if case.absolute:
      with np.errstate(invalid="ignore"):
        same |= numbers & (np.abs(as_float(got, scalar) - as_float(want, scalar)) <= case.absolute)
  return np.flatnonzero(~same)


def as_float(bits: Array, scalar: str) -> Array:
  """Stored patterns of a float type as doubles."""
  with np.errstate(all="ignore"):
    if scalar == "bfloat": return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view({"half": np.float16, "float": np.float32, "double": np.float64}[scalar]).astype(np.float64)


def describe(case: Case, seed: int, kinds: Sequence[str], got: Sequence[Array], want: Sequence[Array]) -> str | None:
  """The first differences with the inputs that lead to them; None where all agree."""
  for at, (kind, g, w) in enumerate(zip(kinds, got, want)):
    wrong = differing(case, kind, g, w)
    if not len(wrong): continue
    arrays = inputs(case, seed)
    lines = [f"{len(wrong)} of {g.size} elements of result {at} ({kind}) differ"]
    for k in wrong[:4]:
      lane = int(k) // (width(kind) if split(kind)[0] > 1 else 1)
      text = ", ".join(_show(x, a[lane]) for x, a in zip(case.inputs, arrays))
      lines.append(f"lane {lane} ({text}): emulator {_show(kind, g.reshape(-1)[k])}, "
                   f"witness {_show(kind, w.reshape(-1)[k])}")
    return "\n    ".join(lines)
  return None


def _show(kind: str, value: Any) -> str:
  scalar = split(kind)[1]
  values = np.atleast_1d(value)
  digits = values.dtype.itemsize * 2
  shown = " ".join(f"{int(v):0{digits}x}" for v in values)
  if scalar in FORMATS: shown += " = " + " ".join(f"{float(v):.9g}" for v in as_float(values, scalar))
  return shown


def check(cases: Sequence[Case], levels: Sequence[int], *, seed: int = 0, cpu: str = "gfx1100", features: str = "",
          engine: str = "ref", executed: Counter[str] | None = None) -> list[Mismatch]:
  """Compile the cases at each level, run them everywhere, and say where an engine of the emulator disagrees.

  `executed` counts what was executed.
  """
  plain = [c for c in cases if c.witness is None]
  host = Host(plain) if plain else None
  wanted = {c.name: expected(c, host, seed) for c in cases}
  found = []
  for level in levels:
    right = [c for c in cases if level in c.levels]
    if not right: continue
    machine = Emulated(gpu_object(right, level, cpu=cpu, features=features), decoded(cpu), engine)
    for case in right:
      kinds = [*(case.inputs[k] for k in case.inplace), *case.outputs]
      try: text = describe(case, seed, kinds, emulated(case, machine, seed), wanted[case.name])
      except Error as error: found.append(Mismatch(case.name, level, f"{type(error).__name__}: {error}", error))
      else:
        if text is not None: found.append(Mismatch(case.name, level, text))
    if executed is not None: executed.update(machine.executed)
  return found
