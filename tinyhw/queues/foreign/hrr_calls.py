"""The calls of an archive of HIP Record & Replay, as far as memory and kernels go by them.

Numbers and structs: ROCm/rocm-systems, projects/clr/hipamd/src/hrr/hrr_api_args.h of commit 053e6065; launches and
which calls bring contents: DESIGN.md of commit 175ad72f and hip_capture.cpp. HIP generates the table of numbers when it
is built, from its API in alphabetical order, and an archive does not name it. So each record's length is held against
what its call has in this table: an archive of a HIP with another one is refused, and not misread.
"""
from __future__ import annotations

import struct
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tinyhw.core.errors import DecodeError
from tinyhw.queues.foreign import hrr

TABLE: Final = "ROCm/rocm-systems, hrr_api_args.h of commit 053e6065"
_HASH: Final = 16  # bytes of a content's hash behind a call's parameters
# A call's parameters behind its result, by these letters: t to, f from, p pointer, s bytes or count, v a value of 64
# bits, h a handle, i a number of 32 bits.
_CALLS: Final = {
  95: ("hipExtMallocWithFlags", "psi"), 99: ("hipFree", "p"), 101: ("hipFreeAsync", "ph"), 102: ("hipFreeHost", "p"),
  202: ("hipHostAlloc", "psi"), 203: ("hipHostFree", "p"), 206: ("hipHostMalloc", "psi"), 224: ("hipMalloc", "ps"),
  228: ("hipMallocAsync", "psh"), 230: ("hipMallocHost", "ps"), 231: ("hipMallocManaged", "psi"),
  271: ("hipMemcpy", "tfsi"), 280: ("hipMemcpyAsync", "tfsih"), 282: ("hipMemcpyDtoD", "tfs"),
  283: ("hipMemcpyDtoDAsync", "tfsh"), 284: ("hipMemcpyDtoH", "tfs"), 285: ("hipMemcpyDtoHAsync", "tfsh"),
  290: ("hipMemcpyHtoD", "tfs"), 291: ("hipMemcpyHtoDAsync", "tfsh"), 299: ("hipMemcpyWithStream", "tfsih"),
  300: ("hipMemset", "tis"), 305: ("hipMemsetAsync", "tish"), 308: ("hipMemsetD32", "tis"),
  309: ("hipMemsetD32Async", "tish"), 310: ("hipMemsetD8", "tvs"), 311: ("hipMemsetD8Async", "tvsh"),
}
LAUNCH: Final = 321  # hipModuleLaunchKernel, as which launches of other names are written too
_MALLOCS: Final = frozenset({95, 202, 206, 224, 228, 230, 231})
_HOST: Final = frozenset({202, 206, 230, 231})  # memory that the host stores to without a call
_FREES: Final = frozenset({99, 101, 102, 203})
_FILLS: Final = {300: 1, 305: 1, 308: 4, 309: 4, 310: 1, 311: 1}  # and the bytes of a value
# Calls that ask, wait, or have to do with order: one after the other keeps theirs.
_STILL: Final = {
  0: "__hipPopCallConfiguration", 1: "__hipPushCallConfiguration", 2: "__hipRegisterFatBinary",
  3: "__hipRegisterFunction", 8: "__hipUnregisterFatBinary", 75: "hipDeviceSynchronize", 85: "hipEventCreate",
  86: "hipEventCreateWithFlags", 87: "hipEventDestroy", 88: "hipEventElapsedTime", 89: "hipEventQuery",
  90: "hipEventRecord", 91: "hipEventSynchronize", 49: "hipDeviceGet", 50: "hipDeviceGetAttribute", 111: "hipGetDevice",
  112: "hipGetDeviceCount", 114: "hipGetDevicePropertiesR0600", 118: "hipGetLastError", 211: "hipInit",
  246: "hipMemGetInfo", 315: "hipModuleGetFunction", 322: "hipModuleLoad", 323: "hipModuleLoadData",
  324: "hipModuleLoadDataEx", 334: "hipModuleUnload", 341: "hipPeekAtLastError", 343: "hipPointerGetAttributes",
  347: "hipRuntimeGetVersion", 348: "hipSetDevice", 356: "hipStreamCreate", 357: "hipStreamCreateWithFlags",
  358: "hipStreamCreateWithPriority", 359: "hipStreamDestroy", 368: "hipStreamQuery", 369: "hipStreamSynchronize",
  371: "hipStreamWaitEvent"}
# Others that change memory and are not made again here; calls without a name in this file may too.
_LEFT_OUT: Final = {
  7: "__hipRegisterVar", 175: "hipGraphLaunch", 207: "hipHostRegister", 248: "hipMemMap", 272: "hipMemcpy2D",
  273: "hipMemcpy2DAsync", 278: "hipMemcpy3D", 279: "hipMemcpy3DAsync", 287: "hipMemcpyFromSymbol",
  294: "hipMemcpyPeer", 297: "hipMemcpyToSymbol", 301: "hipMemset2D", 306: "hipMemsetD16", 354: "hipStreamBeginCapture",
  492: "hipLaunchKernelExC", 493: "hipDrvLaunchKernelEx"}


@dataclass(frozen=True, slots=True)
class ArchiveCall:
  """A call: its place among all, its name, and what it is: "malloc", "free", "copy", "fill", "launch", "still" or
  "other"."""
  number: int
  name: str
  kind: str
  to: int = 0
  come: int = 0
  size: int = 0
  value: int = 0
  unit: int = 1
  host: bool = False
  hash: tuple[int, int] = (0, 0)  # low, high
  launch: ArchivedLaunch | None = None


@dataclass(frozen=True, slots=True)
class Argument:
  """A kernel's argument: its bytes, and the places of pointers in it."""
  data: bytes
  pointers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchivedLaunch:
  """A launch: the kernel's name, its object's hash (low, high; 0 for nobody knows), sizes in groups and items."""
  kernel: str
  object: tuple[int, int]
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  shared: int
  arguments: tuple[Argument, ...]


def calls(folder: Path) -> Iterator[ArchiveCall]:
  """The calls of a process's archive, in the order in which they were made. Raises DecodeError."""
  rows = [r for r in hrr.records((folder / "events.bin").read_bytes()) if r.call != hrr.END]
  for n, row in enumerate(sorted(rows, key=lambda r: r.sequence)): yield _call(n, row, str(folder))


def names(folder: Path) -> dict[int, str]:
  """What the calls of an archive are called, as far as it is known; none where its records are not this table's, or
  where none has a length to tell by."""
  try: told = any([call.kind not in ("still", "other") for call in calls(folder)])  # all are held against the table
  except DecodeError: return {}
  if not told: return {}
  return {LAUNCH: "hipModuleLaunchKernel"} | {n: name for n, (name, _) in _CALLS.items()} | _STILL | _LEFT_OUT


def _call(number: int, row: hrr.Record, where: str) -> ArchiveCall:
  if row.call == LAUNCH:
    return ArchiveCall(number, "hipModuleLaunchKernel", "launch", launch=_launch(row.payload, where))
  if row.call in _STILL: return ArchiveCall(number, _STILL[row.call], "still")
  if row.call not in _CALLS: return ArchiveCall(number, _LEFT_OUT.get(row.call, f"call {row.call}"), "other")
  name, letters = _CALLS[row.call]
  form = "<" + "".join("i" if letter == "i" else "Q" for letter in ("i", *letters))
  more = len(row.payload) - struct.calcsize(form)
  if more not in (0, _HASH):
    raise DecodeError(f"a record of call {row.call} has {len(row.payload)} bytes, {name} has {struct.calcsize(form)}: "
                      "the archive is of a HIP with another table of calls", where=where,
                      hint=f"known is that of {TABLE}; replay it with the hrr-playback of the HIP that recorded it")
  values = dict(zip(letters, struct.unpack_from(form, row.payload)[1:]))
  low, high = struct.unpack_from("<QQ", row.payload, len(row.payload) - _HASH) if more else (0, 0)
  unit = _FILLS.get(row.call, 1)
  kinds: tuple[tuple[str, Container[int]], ...] = ("malloc", _MALLOCS), ("free", _FREES), ("fill", _FILLS)
  kind = next((kind for kind, numbers in kinds if row.call in numbers), "copy")
  filled = values.get("v", values.get("i", 0)) if kind == "fill" else 0
  return ArchiveCall(number, name, kind, values.get("t", values.get("p", 0)), values.get("f", 0),
                     values.get("s", 0) * unit, filled, unit, row.call in _HOST, (low, high))


class _Records:
  """Numbers and bytes, one after the other."""

  def __init__(self, data: bytes, where: str) -> None: self._data, self._at, self._where = data, 0, where

  def take(self, form: str) -> tuple[int, ...]:
    """Numbers. Raises DecodeError where the bytes end."""
    raw = self.bytes(struct.calcsize("<" + form))
    return struct.unpack("<" + form, raw)

  def bytes(self, size: int) -> bytes:
    """So many bytes. Raises DecodeError where they end."""
    if self._at + size > len(self._data):
      raise DecodeError("a launch's record ends amid its arguments", where=self._where)
    self._at += size
    return self._data[self._at - size:self._at]


def _launch(payload: bytes, where: str) -> ArchivedLaunch:
  r = _Records(payload, where)
  _, length = r.take("QH")
  name = r.bytes(length).decode("utf-8", "replace")
  low, high, gx, gy, gz, bx, by, bz, shared, count, _ = r.take("QQIIIIIIIHH")
  found = []
  for _ in range(count):
    kind, size = r.take("BH")
    data = r.bytes(size)
    if kind == 3:
      many, = r.take("H")
      found.append(Argument(data, r.take(f"{many}H") if many else ()))
    elif kind in (0, 1): found.append(Argument(data, (0,) if kind else ()))
    else: raise DecodeError(f"an argument of kind {kind}: 0, 1 and 3 are known", where=where)
  return ArchivedLaunch(name, (low, high), (gx, gy, gz), (bx, by, bz), shared, tuple(found))
