"""The error tree. Each error keeps what it knows as fields and prints one line: what, where, what to do.

`Unsupported` (tinyhw has not written it) is never confused with `DecodeError` (nobody has declared it) or with
`InvalidArgument` (the caller is wrong).
"""
from __future__ import annotations

import os
from collections.abc import Sequence


class LDSWarning(UserWarning):
  """A kernel reached LDS that its workgroup does not have: the chip returns zeros and says nothing."""


class TinyhwError(Exception):
  """Base of all errors that tinyhw raises on purpose.

  `message` says what was found, `where` names the file, queue, instruction or argument, `hint` says what to do.
  """

  def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
    self.message, self.where, self.hint = message, where, hint
    super().__init__(message)

  def __str__(self) -> str:
    text = f"{self.where}: {self.message}" if self.where else self.message
    return f"{text}; {self.hint}" if self.hint else text


class LayoutError(TinyhwError, TypeError):
  """A declaration contradicts itself. Raised at import, so that a wrong table cannot ship."""


class EncodeError(TinyhwError, ValueError):
  """A value does not fit the field that it was given to."""


class DecodeError(TinyhwError, ValueError):
  """Words or bytes do not form what they claim to be. `words` holds the ones at fault."""

  def __init__(self, message: str, *, where: str | None = None, words: Sequence[int] = (),
               hint: str | None = None) -> None:
    self.words = tuple(words)
    super().__init__(message, where=where, hint=hint)

  def __str__(self) -> str:
    text = super().__str__()
    if not self.words: return text
    shown = " ".join(f"{w:08x}" for w in self.words[:8])
    return f"{text} [{shown}{' ...' if len(self.words) > 8 else ''}]"


class Unsupported(TinyhwError):
  """A legal thing that tinyhw does not do. `kind` is its class ("instruction", "packet"), `name` the vendor's name."""

  def __init__(self, kind: str, name: str, *, arch: str | None = None, where: str | None = None,
               hint: str | None = None) -> None:
    self.kind, self.name, self.arch = kind, name, arch
    super().__init__(f"unsupported {kind} {name}{f' on {arch}' if arch else ''}", where=where, hint=hint)


class InvalidArgument(TinyhwError, ValueError):
  """A caller's argument is wrong: its kind, number, shape or range."""


class MissingTool(TinyhwError):
  """A program or library that the requested operation needs is not installed."""


class MachineFault(TinyhwError):
  """A GPU program did what the chip refuses.

  `pc` is the address of the instruction, `instruction` its text, `lane` the lane in its wave, `wave` which wave.
  """

  def __init__(self, message: str, *, pc: int | None = None, instruction: str | None = None, address: int | None = None,
               lane: int | None = None, wave: int | None = None, hint: str | None = None) -> None:
    self.pc, self.instruction, self.address, self.lane, self.wave = pc, instruction, address, lane, wave
    super().__init__(message, hint=hint)

  def __str__(self) -> str:
    parts = [self.message]
    if self.pc is not None: parts.append(f"at PC {self.pc:#x}")
    if self.instruction: parts.append(f"in '{self.instruction}'")
    if self.wave is not None: parts.append(f"wave {self.wave}")
    if self.lane is not None: parts.append(f"lane {self.lane}")
    text = " ".join(parts)
    return f"{text}; {self.hint}" if self.hint else text


class PageFault(MachineFault):
  """An access that the GPU's page tables do not allow. `access` is "read", "write", "execute" or "atomic"."""

  def __init__(self, address: int, access: str, size: int, *, reason: str = "not mapped", pc: int | None = None,
               instruction: str | None = None, lane: int | None = None, wave: int | None = None) -> None:
    self.access, self.size, self.reason = access, size, reason
    super().__init__(f"GPU page fault: {access} of {size} bytes at {address:#x} ({reason})", pc=pc,
                     instruction=instruction, address=address, lane=lane, wave=wave)


class WatchdogExpired(MachineFault):
  """A wave ran longer than the watchdog allows: most likely an endless loop."""


class Deadlock(WatchdogExpired):
  """Waves wait for what nobody who can run will do. `polls` say which wait where, for what memory to change.

  `address` is that of the memory that `wave` waits for.
  """

  def __init__(self, message: str, *, polls: Sequence[object] = (), pc: int | None = None,
               instruction: str | None = None, wave: int | None = None, address: int | None = None) -> None:
    self.polls = tuple(polls)
    super().__init__(message, pc=pc, instruction=instruction, wave=wave, address=address)


class Interrupted(MachineFault):
  """The host took a dispatch off an emulated GPU; the fields say where one of its waves stood."""


class HazardFound(MachineFault):
  """A dispatch ran to its end, and the checks found what need not work on a chip. `findings` are JSON-like rows."""

  def __init__(self, message: str, findings: Sequence[dict[str, object]], *, hint: str | None = None) -> None:
    self.findings = tuple(findings)
    super().__init__(message, hint=hint)


class DriverError(TinyhwError):
  """A kernel driver's call failed. `ioctl` is its name, `errno` the number, `arguments` what was asked."""

  def __init__(self, ioctl: str, errno: int, arguments: object = None, *, hint: str | None = None) -> None:
    self.ioctl, self.errno, self.arguments = ioctl, errno, arguments
    shown = f" ({arguments})" if arguments is not None else ""
    super().__init__(f"{ioctl} failed: {os.strerror(errno)} [errno {errno}]{shown}", hint=hint)


class DeviceError(TinyhwError):
  """A device cannot be opened, or is lost. The first line says what and how to go on, then comes one of `facts` a line.
  """

  def __init__(self, message: str, *, where: str | None = None, hint: str | None = None,
               facts: Sequence[str] = ()) -> None:
    self.facts = tuple(facts)
    super().__init__(message, where=where, hint=hint)

  def __str__(self) -> str: return "\n  ".join([super().__str__(), *self.facts])


class ValueLost(DeviceError):
  """A tensor's value went with its device, which was closed or reset. `where` names the device."""


class OutOfMemory(DeviceError):
  """An allocation does not fit. `asked` and `free` are bytes."""

  def __init__(self, what: str, asked: int, free: int, *, hint: str | None = None) -> None:
    self.asked, self.free = asked, free
    super().__init__(f"{what}: {asked:,} bytes asked, {free:,} bytes free", hint=hint)


class WaitTimeout(DeviceError):
  """A wait that nobody ended. Names the signal's address, the value `wanted` and the one `seen`, where there is one."""

  def __init__(self, queue: str, *, packet: str, address: int | None = None, wanted: int = 0, seen: int = 0,
               seconds: float, hint: str | None = None) -> None:
    self.queue, self.packet, self.address = queue, packet, address
    self.wanted, self.seen, self.seconds = wanted, seen, seconds
    what = packet if address is None else f"{packet} waits on {address:#x} for {wanted:#x}, found {seen:#x}"
    super().__init__(f"no progress after {seconds:.3g} s: {what}", where=queue, hint=hint)
