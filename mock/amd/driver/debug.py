"""The debugger's side of the kernel driver: RUNTIME_ENABLE, with which a runtime says that it can be debugged, and
DBG_TRAP, with which a debugger attaches.

Checks, their order and their errnos are those of Linux 6.12 `amdkfd/kfd_chardev.c` (runtime_enable, runtime_disable,
kfd_ioctl_set_debug_trap) and `kfd_debug.c`. A process may debug itself; another one needs ptrace, which no client of a
machine has. Of the exceptions, the runtime's own are raised (EC_PROCESS_RUNTIME).
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import kfd
from tinyhw.mock.memory import Refused

if TYPE_CHECKING:
  from collections.abc import Iterable

  from tinyhw.mock.amd.chip.queue import Queue
  from tinyhw.mock.amd.driver.process import KfdProcess
  from tinyhw.mock.amd.machine import Machine

DISABLED: Final = kfd.DEBUG_RUNTIME_STATE_DISABLED
ENABLED: Final = kfd.DEBUG_RUNTIME_STATE_ENABLED
RUNTIME: Final = 1 << kfd.EC_PROCESS_RUNTIME - 1  # KFD_EC_MASK(EC_PROCESS_RUNTIME)
NEED_RUNTIME: Final = frozenset(
  {
    kfd.KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE,
    kfd.KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE,
    kfd.KFD_IOC_DBG_TRAP_SUSPEND_QUEUES,
    kfd.KFD_IOC_DBG_TRAP_RESUME_QUEUES,
    kfd.KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH,
    kfd.KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH,
    kfd.KFD_IOC_DBG_TRAP_SET_FLAGS,
  }
)
_NAMES: Final = {value: name for name, value in kfd.ENUMS["kfd_dbg_trap_operations"].items()}


class Debug:
  """What the driver keeps of a process for debuggers: the runtime's state, and the session that is attached."""

  def __init__(self) -> None:
    self.info = kfd.kfd_runtime_info()
    self.attached = False
    self.enabled = 0  # exceptions that the debugger wants to hear of
    self.raised = 0  # exceptions of the process that it has not cleared
    self.event_file = -1
    self.answers = 0  # the semaphore that a runtime waits for
    self.interrupted = False

  @property
  def active(self) -> bool:
    """Whether waves run under a debugger: attached, with the runtime enabled (kfd_dbg_trap_activate)."""
    return self.attached and bool(self.info.runtime_state == ENABLED)

  def activate(self, queues: Iterable[Queue]) -> None:
    """kfd_dbg_trap_activate: the driver masks compute units on chips that need it, and cannot where the client has."""
    queues = [q for q in queues if q.gpu.card.traps_off]
    if any(q.masked for q in queues):
      self.info.runtime_state = kfd.DEBUG_RUNTIME_STATE_ENABLED_BUSY
      return
    for queue in queues:
      queue.debugged = True

  def detach(self, queues: Iterable[Queue]) -> None:
    """The session ends; a runtime that is enabled stays so."""
    for queue in queues:
      queue.debugged = False
    if self.attached and self.info.runtime_state != DISABLED:
      self.info.runtime_state = ENABLED
    if self.event_file >= 0:
      os.close(self.event_file)
    self.event_file, self.attached, self.raised = -1, False, 0

  def raise_runtime(self) -> None:
    """kfd_dbg_ev_raise of EC_PROCESS_RUNTIME: a byte in the debugger's file, if it asked for it."""
    self.raised |= RUNTIME
    if self.enabled & RUNTIME:
      os.write(self.event_file, b".")


def runtime_enable(machine: Machine, process: KfdProcess, args: Any) -> None:
  """kfd_ioctl_runtime_enable. With a debugger attached the call ends when that has answered."""
  debug = process.debug
  if not args.mode_mask & kfd.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK:
    debug.info.runtime_state, debug.info.r_debug = DISABLED, 0
    for queue in process.queues.values():
      queue.debugged = False
    _tell(machine, debug)
    debug.info.ttmp_setup = 0
    return
  if not debug.interrupted:
    if debug.info.runtime_state != DISABLED:
      raise Refused(errno.EBUSY, "the runtime is enabled already")
    if process.queues:
      raise Refused(errno.EEXIST, "the process has queues already: RUNTIME_ENABLE comes before the first CREATE_QUEUE")
    debug.info.runtime_state, debug.info.r_debug = ENABLED, args.r_debug
    debug.info.ttmp_setup = int(bool(args.mode_mask & kfd.KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK))
    if debug.attached:
      debug.activate(process.queues.values())
    if debug.info.ttmp_setup:
      machine.ignored.note("KFD setting", "RUNTIME_ENABLE with TTMP setup", "trap handlers are not run")
  _tell(machine, debug)


def _tell(machine: Machine, debug: Debug) -> None:
  """Raise the event and wait for the debugger's answer; a call that was interrupted goes on waiting where it was."""
  if not debug.attached:
    return
  if not debug.interrupted:
    debug.raise_runtime()
  while not debug.answers:
    if not machine.other_threads():
      debug.interrupted = True
      raise Refused(errno.EINTR, "the debugger that is attached has no other thread to answer with")
    machine.waiting += 1
    machine.changed.wait(0.005)
    machine.waiting -= 1
  debug.answers -= 1
  debug.interrupted = False


def trap(machine: Machine, process: KfdProcess, args: Any) -> None:
  """kfd_ioctl_set_debug_trap."""
  target = machine.kfd.processes.get(args.pid)
  if target is None:
    raise Refused(errno.ESRCH, f"no process {args.pid} uses these GPUs")
  if target is not process:
    raise Refused(errno.EPERM, f"process {args.pid} is not traced by this one")
  debug, op = target.debug, args.op
  if op != kfd.KFD_IOC_DBG_TRAP_ENABLE and not debug.attached:
    raise Refused(errno.EINVAL, f"process {args.pid} is not debugged: KFD_IOC_DBG_TRAP_ENABLE comes first")
  if op in NEED_RUNTIME and debug.info.runtime_state != ENABLED:
    raise Refused(errno.EPERM, f"{_NAMES[op]} needs the runtime enabled (RUNTIME_ENABLE)")
  if op == kfd.KFD_IOC_DBG_TRAP_ENABLE:
    _attach(target, args.enable)
  elif op == kfd.KFD_IOC_DBG_TRAP_DISABLE:
    debug.detach(target.queues.values())
  elif op == kfd.KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT:
    _send(machine, debug, args.send_runtime_event)
  elif op == kfd.KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED:
    debug.enabled = args.set_exceptions_enabled.exception_mask
    if debug.enabled & debug.raised:  # kfd_dbg_set_enabled_debug_exception_mask: what is pending is told now
      os.write(debug.event_file, b".")
  elif op == kfd.KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT:
    query = args.query_debug_event
    clear, query.queue_id, query.gpu_id, query.exception_mask = query.exception_mask, 0, 0, 0
    if not debug.enabled & debug.raised:
      raise Refused(errno.EAGAIN, "no exception is pending")
    query.exception_mask = debug.raised
    debug.raised &= ~clear
  elif op == kfd.KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO:
    _information(target, args.query_exception_info)
  elif op in _NAMES:
    machine.doubt(f"DBG_TRAP operation {_NAMES[op]} is not modelled: EOPNOTSUPP")
    raise Refused(errno.EOPNOTSUPP, f"{_NAMES[op]} is not modelled")
  else:
    raise Refused(errno.EINVAL, f"DBG_TRAP operation {op}")


def _attach(target: KfdProcess, args: Any) -> None:
  debug = target.debug
  if debug.attached:
    raise Refused(errno.EALREADY, "a debugger is attached already")
  if any(q.gws and q.gpu.card.traps_off for q in target.queues.values()):
    raise Refused(errno.EBUSY, "a queue has global wave synchronization, which this chip has under no debugger")
  try:
    debug.event_file = os.dup(args.dbg_fd)
  except OSError:
    raise Refused(errno.EBADF, f"{args.dbg_fd} is not an open file") from None
  if debug.info.runtime_state == ENABLED:
    debug.activate(target.queues.values())
  debug.attached, debug.enabled = True, args.exception_mask
  size = ctypes.sizeof(debug.info)
  try:
    target.user.write(args.rinfo_ptr, bytes(debug.info)[: args.rinfo_size])
  except OSError:
    debug.detach(target.queues.values())
    raise
  args.rinfo_size = size


def _send(machine: Machine, debug: Debug, args: Any) -> None:
  """kfd_dbg_send_exception_to_runtime: here the answer to RUNTIME_ENABLE."""
  if args.exception_mask & ~RUNTIME:
    machine.doubt(f"DBG_TRAP: exceptions {args.exception_mask:#x} for the runtime are not modelled: EOPNOTSUPP")
    raise Refused(errno.EOPNOTSUPP, "only EC_PROCESS_RUNTIME is modelled")
  if args.exception_mask & RUNTIME:
    debug.answers += 1
    machine.changed.notify_all()


def _information(target: KfdProcess, args: Any) -> None:
  """kfd_dbg_trap_query_exception_info of the process' own exceptions."""
  debug, bit = target.debug, 1 << args.exception_code - 1 if args.exception_code else 0
  if not args.info_ptr or not bit & kfd.KFD_EC_MASK_PROCESS:
    raise Refused(errno.EINVAL, f"exception {args.exception_code} is not one of the process, or nothing to write it to")
  if not debug.raised & bit:
    raise Refused(errno.ENODATA, f"exception {args.exception_code} is not pending")
  target.user.write(args.info_ptr, bytes(debug.info)[: args.info_size])
  args.info_size = ctypes.sizeof(debug.info)
  if args.clear_exception:
    debug.raised &= ~bit
