"""OS events of RM: who may have one, what interrupts it, what a file tells of it."""
from __future__ import annotations

import pytest

from tests.mock.nv.client import Client
from tests.mock.nv.test_rm import refused
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_status as status
from tinyhw.mock.memory import Refused

ANY = alloc.NV2080_NOTIFIERS_FIFO_EVENT_MTHD | alloc.NV01_EVENT_NONSTALL_INTR
QUIET = alloc.NV01_EVENT_WITHOUT_EVENT_DATA


def registered(c: Client, fd: int) -> int:
  """NV_ESC_ALLOC_OS_EVENT of a file: its status."""
  p = rm.nv_ioctl_alloc_os_event_t(hClient=c.root, hDevice=c.device, fd=fd, Status=0xBAD)
  c.port.ioctl(fd, next(n for n, row in rm.IOCTLS.items() if row.struct is type(p)), p)
  return int(p.Status)


def event(c: Client, fd: int, index: int = ANY | QUIET, source: int | None = None,
          kind: int = alloc.NV01_EVENT_OS_EVENT) -> int:
  return c.alloc(c.subdevice, 0, kind, alloc.NV0005_ALLOC_PARAMETERS(
    hParentClient=c.root, hSrcResource=c.subdevice if source is None else source, hClass=kind, notifyIndex=index,
    data=fd))


@pytest.mark.parametrize("kind", ["compute", "copy"])
def test_an_interrupt_is_told_once(kind: str) -> None:
  c = Client()
  fd = c.port.open("/dev/nvidiactl")
  assert registered(c, fd) == status.NV_OK
  told = event(c, fd)
  w = c.channel(kind)
  assert not c.port.poll(fd, 0.0)
  w.send(0, host.NON_STALL_INTERRUPT(), host.NON_STALL_INTERRUPT())
  assert c.port.poll(fd, 1.0) and not c.port.poll(fd, 0.0)
  c.free(told)
  w.send(0, host.NON_STALL_INTERRUPT())
  assert not c.port.poll(fd, 0.0)
  assert not any("event" in line for line in c.machine.report())
  told_of = [(e.source, e.name) for e in c.machine.trace if e.kind == "interrupt NON_STALL_INTERRUPT"]
  assert told_of == [(c.machine.channels[-1].name, hex(n)) for n in (1, 2, 3)]


def test_an_engine_s_own_notifier() -> None:
  """Of copy engine 0: its channel's interrupts, and no other's."""
  c = Client()
  fd = c.port.open("/dev/nvidiactl")
  assert registered(c, fd) == status.NV_OK
  event(c, fd, alloc.NV2080_NOTIFIERS_CE0 | alloc.NV01_EVENT_NONSTALL_INTR | QUIET)
  compute, copy = c.channel("compute"), c.channel("copy")
  compute.send(0, host.NON_STALL_INTERRUPT())
  assert not c.port.poll(fd, 0.0)
  copy.send(0, host.NON_STALL_INTERRUPT())
  assert c.port.poll(fd, 1.0)


def test_what_is_refused() -> None:
  c = Client()
  fd, other = c.port.open("/dev/nvidiactl"), c.port.open("/dev/nvidia0")
  refused(status.NV_ERR_OBJECT_NOT_FOUND, event, c, fd)
  assert registered(c, fd) == status.NV_OK
  assert registered(c, fd) == status.NV_ERR_INSUFFICIENT_RESOURCES
  assert registered(c, other) == status.NV_OK
  refused(status.NV_ERR_INVALID_ARGUMENT, event, c, fd, source=c.device)
  refused(status.NV_ERR_OBJECT_NOT_FOUND, event, c, fd, source=0x777)
  refused(status.NV_ERR_NOT_SUPPORTED, event, c, fd, index=0x7FFF | alloc.NV01_EVENT_NONSTALL_INTR)
  for kind in (alloc.NV01_EVENT_KERNEL_CALLBACK, alloc.NV01_EVENT_KERNEL_CALLBACK_EX):
    refused(status.NV_ERR_ILLEGAL_ACTION, event, c, fd, kind=kind)
  with pytest.raises(Refused): c.port.poll(c.uvm_fd, 0.0)
  with pytest.raises(Refused): c.port.poll(99999, 0.0)
  p = rm.nv_ioctl_free_os_event_t(hClient=c.root, hDevice=c.device, fd=fd)
  free = next(n for n, row in rm.IOCTLS.items() if row.struct is type(p))
  for expected in (status.NV_OK, status.NV_ERR_INVALID_EVENT):
    c.port.ioctl(fd, free, p)
    assert p.Status == expected
  c.port.close(other)
  assert not c.machine.rm.events._files


def test_events_with_data_are_in_the_report() -> None:
  c = Client()
  fd = c.port.open("/dev/nvidiactl")
  registered(c, fd)
  event(c, fd, ANY)
  c.channel("copy").send(0, host.NON_STALL_INTERRUPT())
  assert c.port.poll(fd, 1.0)
  assert any("its data is not modelled" in line for line in c.machine.report())
