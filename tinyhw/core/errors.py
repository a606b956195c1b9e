"""The error tree, exported as `tinyhw.Error` and so on. Each error keeps what it knows as fields.

The first line of its text says what happened, where, and how to get on; facts follow, each on a line of its own.
`Unsupported` (tinyhw has not written it) is never confused with `DecodeError` (nobody has declared it) or with
`InvalidArgument` (the caller is wrong).

An error's fields are `row()`. What happens on a device is a `DeviceError`, faults too.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self, TypeVar


class LDSWarning(UserWarning):
  """A kernel reached LDS that its workgroup does not have: the chip returns zeros and says nothing."""


class Error(Exception):
  """Base of all errors that tinyhw raises on purpose.

  `message` says what was found, `where` names the file, queue, instruction or argument, `hint` says what to do.
  `facts` are what else is known, each a line of the text behind the first one.
  """

  def __init__(self, message: str, *, where: str | None = None, hint: str | None = None,
               facts: Sequence[str] = ()) -> None:
    self.message, self.where, self.hint, self.facts = message, where, hint, tuple(facts)
    super().__init__(message)

  def headline(self) -> str:
    """The first line: what happened, where, how to get on."""
    text = f"{self.where}: {self.message}" if self.where else self.message
    return f"{text}; {self.hint}" if self.hint else text

  def __str__(self) -> str: return "\n  ".join([self.headline(), *self.facts])

  def __reduce__(self) -> Any: return _again, (type(self), self.args, self.__dict__)  # constructors take others

  def again(self) -> Self:
    """Another error of the same fields, without traceback."""
    return _again(type(self), self.args, dict(vars(self)))

  def row(self) -> dict[str, Any]:
    """The error as plain values, for JSON: its type, its text and its fields."""
    fields = {name: _plain(value) for name, value in vars(self).items() if not name.startswith("_")}
    return {"type": type(self).__name__, "text": str(self), **fields}


E = TypeVar("E", bound=Error)


def _again(kind: type[E], args: tuple[Any, ...], fields: dict[str, Any]) -> E:
  """An error out of a pickle."""
  made = kind.__new__(kind, *args)
  made.args = args
  vars(made).update(fields)
  return made


def _plain(value: Any) -> Any:
  """A field's value as JSON has it."""
  if value is None or isinstance(value, (bool, int, float, str)): return value
  if isinstance(value, (list, tuple)): return [_plain(v) for v in value]
  if isinstance(value, dict): return {str(k): _plain(v) for k, v in value.items()}
  return str(value)


class LayoutError(Error, TypeError):
  """A declaration contradicts itself. Raised at import, so that a wrong table cannot ship."""


class EncodeError(Error, ValueError):
  """A value does not fit the field that it was given to."""


class DecodeError(Error, ValueError):
  """Words or bytes do not form what they claim to be. `words` holds the ones at fault."""

  def __init__(self, message: str, *, where: str | None = None, words: Sequence[int] = (),
               hint: str | None = None) -> None:
    self.words = tuple(words)
    super().__init__(message, where=where, hint=hint)

  def headline(self) -> str:
    text = super().headline()
    if not self.words: return text
    shown = " ".join(f"{w:08x}" for w in self.words[:8])
    return f"{text} [{shown}{' ...' if len(self.words) > 8 else ''}]"


class Unsupported(Error):
  """A legal thing that tinyhw does not do. `kind` is its class ("instruction", "packet"), `name` the vendor's name."""

  def __init__(self, kind: str, name: str, *, arch: str | None = None, where: str | None = None,
               hint: str | None = None) -> None:
    self.kind, self.name, self.arch = kind, name, arch
    super().__init__(f"unsupported {kind} {name}{f' on {arch}' if arch else ''}", where=where, hint=hint)


class InvalidArgument(Error, ValueError, RuntimeError):
  """A caller's argument is wrong: its kind, number, shape or range. PyTorch raises RuntimeError, NumPy ValueError."""


class MissingFile(InvalidArgument, FileNotFoundError):
  """A file that is named is not there, or cannot be read."""


class InvalidShape(InvalidArgument):
  """Shapes that do not go together."""


class InvalidIndex(InvalidArgument, IndexError):
  """An axis or a position that is not there."""


class InvalidType(InvalidArgument, TypeError):
  """An argument of a kind, or a tensor of a dtype, that the function is not for."""


class UnknownType(InvalidType, AttributeError):
  """The name of a dtype that there is not. tinygrad looks it up as an attribute."""


class InvalidIndexType(InvalidIndex, InvalidType):
  """An index of a kind that is none."""


class InvalidMode(InvalidArgument, NotImplementedError):
  """A name that is none of those that a function knows. PyTorch raises NotImplementedError for some of them."""


class InvalidNumber(InvalidArgument, OverflowError):
  """A number that does not fit the type that it is to have."""


class MissingTool(Error):
  """A program or library that the requested operation needs is not installed."""


class DeviceError(Error):
  """A device cannot be opened, is lost, or a program on it did what it refuses. The message says how to go on."""


class MachineFault(DeviceError):
  """A GPU program did what the chip refuses.

  `pc` is the address of the instruction, `instruction` its text, `lane` the lane in its wave, `wave` which wave,
  `caller` the PC of the call that led into the function. Once a device has explained it, `work` says what it ran
  ("kernel add", "copy"), `kernel` names the kernel, `place` is "symbol+0x10", `workgroup` the place in the grid,
  `memory` what is at `address` or before it, and where the code has debug information `file` and `line` say the line
  and `source` what is written there.
  """

  def __init__(self, message: str, *, pc: int | None = None, instruction: str | None = None, address: int | None = None,
               lane: int | None = None, wave: int | None = None, where: str | None = None,
               hint: str | None = None) -> None:
    self.pc, self.instruction, self.address, self.lane, self.wave = pc, instruction, address, lane, wave
    self.caller: int | None = None
    self.work: str | None = None
    self.kernel: str | None = None
    self.place: str | None = None
    self.workgroup: tuple[int, int, int] | None = None
    self.memory: str | None = None
    self.file: str | None = None
    self.line: int | None = None
    self.source: str | None = None
    self.calls: tuple[str, ...] = ()  # how the code came there, the latest first: a line each
    self.hidden: tuple[str, ...] = ()  # hidden arguments that are null here
    super().__init__(message, where=where, hint=hint)

  @property
  def at(self) -> str | None:
    """"bugs.c:5" where the line is known, else "symbol+0x10"."""
    return f"{os.path.basename(self.file)}:{self.line}" if self.file and self.line else self.place

  def headline(self) -> str:
    parts = [f"{self.where}: {self.message}" if self.where else self.message]
    if self.work is None:
      if self.pc is not None: parts.append(f"at PC {self.pc:#x}")
      if self.instruction: parts.append(f"in '{self.instruction}'")
      if self.wave is not None: parts.append(f"wave {self.wave}")
      if self.lane is not None: parts.append(f"lane {self.lane}")
      if self.caller is not None: parts.append(f"called at PC {self.caller:#x}")
      text = " ".join(parts)
    else:
      if self.memory: parts.append(self.memory)
      parts.append(f"in {self.work}{f' at {self.at}' if self.at else ''}")
      text = ", ".join(parts)
    return f"{text}; {self.hint}" if self.hint else text

  def __str__(self) -> str:
    if self.work is None: return super().__str__()
    facts = []
    if self.source: facts.append(f"{self.at}: {self.source}")
    if self.pc is not None:
      instruction = f": {self.instruction}" if self.instruction else ""
      facts.append(f"{f'{self.place}, ' if self.place else ''}PC {self.pc:#x}{instruction}")
    facts += self.calls
    wave = [f"{name} {value}" for name, value in (("wave", self.wave), ("lane", self.lane)) if value is not None]
    if self.workgroup is not None: wave.append(f"workgroup {','.join(map(str, self.workgroup))}")
    if wave: facts.append(", ".join(wave))
    if self.hidden: facts.append(f"the kernel asks for {', '.join(self.hidden)}, null here")
    return "\n  ".join([self.headline(), *facts, *self.facts])


class PageFault(MachineFault):
  """An access that the GPU's page tables do not allow. `access` is "read", "write", "execute" or "atomic".

  `size` is 0 where the kernel driver does not tell it.
  """

  def __init__(self, address: int, access: str, size: int, *, reason: str = "not mapped", pc: int | None = None,
               instruction: str | None = None, lane: int | None = None, wave: int | None = None) -> None:
    self.access, self.size, self.reason = access, size, reason
    of = f" of {size} bytes" if size else ""
    super().__init__(f"GPU page fault: {access}{of} at {address:#x} ({reason})", pc=pc,
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

  def __init__(self, message: str, findings: Sequence[dict[str, object]], *, hint: str | None = None,
               facts: Sequence[str] = ()) -> None:
    self.findings = tuple(findings)
    super().__init__(message, hint=hint)
    self.facts = tuple(facts)


class DriverError(Error):
  """A kernel driver's call failed. `ioctl` is its name, `errno` the number, `arguments` what was asked."""

  def __init__(self, ioctl: str, errno: int, arguments: object = None, *, hint: str | None = None) -> None:
    self.ioctl, self.errno, self.arguments = ioctl, errno, arguments
    shown = f" ({arguments})" if arguments is not None else ""
    super().__init__(f"{ioctl} failed: {os.strerror(errno)} [errno {errno}]{shown}", hint=hint)


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
               seconds: float, hint: str | None = None, facts: Sequence[str] = ()) -> None:
    self.queue, self.packet, self.address = queue, packet, address
    self.wanted, self.seen, self.seconds = wanted, seen, seconds
    what = packet if address is None else f"{packet} waits on {address:#x} for {wanted:#x}, found {seen:#x}"
    super().__init__(f"no progress after {seconds:.3g} s: {what}", where=queue, hint=hint, facts=facts)
