"""Runtimes that can be debugged, and a process that debugs itself: RUNTIME_ENABLE and DBG_TRAP, as the kernel has them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
from collections.abc import Iterator

import pytest

from tests.mock.client import Client
from tinyhw.autogen import kfd
from tinyhw.mock.amd.driver.debug import RUNTIME

ENABLE = kfd.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK
BOTH = ENABLE | kfd.KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK
O = kfd.ENUMS["kfd_dbg_trap_operations"]


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.port.end()


class Debugger:
  """A debugger's calls, in the process that it debugs."""

  def __init__(self, client: Client) -> None:
    self.client = client
    self.read, self.write = os.pipe()
    os.set_blocking(self.read, False)
    self.info = kfd.kfd_runtime_info()

  def call(self, name: str, pid: int | None = None, **values: int) -> kfd.kfd_ioctl_dbg_trap_args:
    args = kfd.kfd_ioctl_dbg_trap_args(pid=os.getpid() if pid is None else pid, op=O[f"KFD_IOC_DBG_TRAP_{name}"])
    members = {"ENABLE": "enable", "SEND_RUNTIME_EVENT": "send_runtime_event", "QUERY_DEBUG_EVENT": "query_debug_event",
               "SET_EXCEPTIONS_ENABLED": "set_exceptions_enabled", "QUERY_EXCEPTION_INFO": "query_exception_info"}
    for key, value in values.items():
      setattr(getattr(args, members[name]), key, value)
    self.client.port.ioctl(self.client.fd, kfd.AMDKFD_IOC_DBG_TRAP, args)
    return args

  def errno(self, name: str, pid: int | None = None, **values: int) -> int:
    try:
      self.call(name, pid, **values)
    except OSError as error:
      return error.errno or 0
    return 0

  def attach(self, mask: int = RUNTIME) -> kfd.kfd_ioctl_dbg_trap_args:
    return self.call("ENABLE", exception_mask=mask, rinfo_ptr=ctypes.addressof(self.info),
                     rinfo_size=ctypes.sizeof(self.info), dbg_fd=self.write)

  def told(self) -> bool:
    try:
      return os.read(self.read, 1) == b"."
    except BlockingIOError:
      return False


@pytest.fixture
def debugger(client: Client) -> Iterator[Debugger]:
  debugger = Debugger(client)
  yield debugger
  os.close(debugger.read)
  os.close(debugger.write)


def test_a_runtime_is_enabled_once_and_before_its_queues(client: Client) -> None:
  client.call("RUNTIME_ENABLE", mode_mask=BOTH, r_debug=0x1234)
  assert client.errno("RUNTIME_ENABLE", mode_mask=ENABLE) == errno.EBUSY
  client.call("RUNTIME_ENABLE", mode_mask=0)
  client.call("RUNTIME_ENABLE", mode_mask=0)  # as often as one likes
  client.queue()
  assert client.errno("RUNTIME_ENABLE", mode_mask=ENABLE) == errno.EEXIST


def test_a_debugger_that_comes_late_finds_the_runtime(client: Client, debugger: Debugger) -> None:
  assert debugger.errno("QUERY_DEBUG_EVENT") == errno.EINVAL and debugger.errno("DISABLE") == errno.EINVAL
  client.call("RUNTIME_ENABLE", mode_mask=BOTH, r_debug=0x1234)
  args = debugger.attach()
  assert args.enable.rinfo_size == ctypes.sizeof(debugger.info)
  found = debugger.info.r_debug, debugger.info.runtime_state, debugger.info.ttmp_setup
  assert found == (0x1234, kfd.DEBUG_RUNTIME_STATE_ENABLED, 1) and not debugger.told()
  assert debugger.errno("ENABLE", dbg_fd=debugger.write) == errno.EALREADY
  assert debugger.errno("QUERY_DEBUG_EVENT") == errno.EAGAIN
  debugger.call("DISABLE")
  assert debugger.errno("DISABLE") == errno.EINVAL
  debugger.attach()


def test_refusals(client: Client, debugger: Debugger) -> None:
  assert debugger.errno("ENABLE", dbg_fd=1 << 20) == errno.EBADF
  assert debugger.errno("ENABLE", pid=1, dbg_fd=debugger.write) == errno.ESRCH
  assert debugger.errno("ENABLE", dbg_fd=debugger.write, rinfo_size=16, rinfo_ptr=8) == errno.EFAULT
  debugger.attach()
  assert debugger.errno("SUSPEND_QUEUES") == errno.EPERM  # the runtime is not enabled
  assert debugger.errno("GET_QUEUE_SNAPSHOT") == errno.EOPNOTSUPP
  assert "GET_QUEUE_SNAPSHOT is not modelled" in str(client.machine.report())
  assert debugger.errno("QUERY_EXCEPTION_INFO", exception_code=kfd.EC_PROCESS_RUNTIME) == errno.EINVAL
  info = {"info_ptr": ctypes.addressof(debugger.info), "info_size": 16}
  assert debugger.errno("QUERY_EXCEPTION_INFO", exception_code=kfd.EC_PROCESS_RUNTIME, **info) == errno.ENODATA
  for code in (kfd.EC_NONE, kfd.EC_QUEUE_WAVE_TRAP, kfd.EC_DEVICE_RAS_ERROR):  # of nobody, of a queue, of a card
    assert debugger.errno("QUERY_EXCEPTION_INFO", exception_code=code, **info) == errno.EINVAL


def test_a_runtime_without_a_debugger_to_answer_is_interrupted(client: Client, debugger: Debugger) -> None:
  """The event is raised once; a call again goes on waiting."""
  debugger.attach()
  assert client.errno("RUNTIME_ENABLE", mode_mask=ENABLE) == errno.EINTR and debugger.told()
  assert client.errno("RUNTIME_ENABLE", mode_mask=ENABLE) == errno.EINTR and not debugger.told()
  assert debugger.call("QUERY_DEBUG_EVENT").query_debug_event.exception_mask == RUNTIME
  debugger.call("SEND_RUNTIME_EVENT", exception_mask=RUNTIME)
  assert client.errno("RUNTIME_ENABLE", mode_mask=ENABLE) == 0
  assert client.errno("RUNTIME_ENABLE", mode_mask=ENABLE) == errno.EBUSY


def test_a_debugger_in_another_thread_lets_the_runtime_go_on(client: Client, debugger: Debugger) -> None:
  debugger.attach()
  seen: list[int] = []

  def answer() -> None:
    while not debugger.told():
      debugger.errno("QUERY_DEBUG_EVENT")
      time.sleep(0.001)
    info = debugger.call("QUERY_EXCEPTION_INFO", exception_code=kfd.EC_PROCESS_RUNTIME, clear_exception=1,
                         info_ptr=ctypes.addressof(debugger.info), info_size=ctypes.sizeof(debugger.info))
    seen.extend((info.query_exception_info.info_size, debugger.info.r_debug))
    debugger.call("SEND_RUNTIME_EVENT", exception_mask=RUNTIME)

  thread = threading.Thread(target=answer)
  thread.start()
  while len(client.machine._threads) < 2:  # the machine knows of the debugger's thread by its calls
    time.sleep(0.001)
  client.call("RUNTIME_ENABLE", mode_mask=BOTH, r_debug=0x77)
  thread.join()
  assert seen == [ctypes.sizeof(debugger.info), 0x77] and debugger.errno("QUERY_DEBUG_EVENT") == errno.EAGAIN


def test_exceptions_that_wait_are_told_when_asked_for(client: Client, debugger: Debugger) -> None:
  debugger.attach(mask=0)
  assert client.errno("RUNTIME_ENABLE", mode_mask=ENABLE) == errno.EINTR and not debugger.told()
  assert debugger.errno("QUERY_DEBUG_EVENT") == errno.EAGAIN
  debugger.call("SET_EXCEPTIONS_ENABLED", exception_mask=RUNTIME)
  assert debugger.told() and debugger.errno("QUERY_DEBUG_EVENT", exception_mask=RUNTIME) == 0
  assert debugger.errno("QUERY_DEBUG_EVENT") == errno.EAGAIN


def test_masked_compute_units_and_a_debugger_exclude_each_other(client: Client, debugger: Debugger) -> None:
  """GC 11.0 needs a mask of the driver's own under a debugger (kfd_dbg_has_cwsr_workaround)."""
  client.call("RUNTIME_ENABLE", mode_mask=ENABLE)
  queue, mask = client.queue(), client.alloc(4096)
  mask.u32[0] = 0xFFFF_FFFF
  arguments = {"queue_id": queue.queue_id, "num_cu_mask": 32, "cu_mask_ptr": mask.address}
  debugger.attach()
  assert debugger.info.runtime_state == kfd.DEBUG_RUNTIME_STATE_ENABLED
  assert client.errno("SET_CU_MASK", **arguments) == errno.EBUSY
  assert client.errno("SET_CU_MASK", **arguments | {"queue_id": client.queue().queue_id}) == errno.EBUSY
  assert client.errno("ALLOC_QUEUE_GWS", queue_id=queue.queue_id, num_gws=64) == errno.EBUSY
  debugger.call("DISABLE")
  assert client.errno("SET_CU_MASK", **arguments) == 0
  debugger.attach()
  assert debugger.info.runtime_state == kfd.DEBUG_RUNTIME_STATE_ENABLED_BUSY
  assert debugger.errno("SUSPEND_QUEUES") == errno.EPERM
  debugger.call("DISABLE")
  assert client.errno("ALLOC_QUEUE_GWS", queue_id=queue.queue_id, num_gws=64) == 0
  assert debugger.errno("ENABLE", dbg_fd=debugger.write) == errno.EBUSY
