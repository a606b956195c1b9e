"""Limits and refusals by rule: all of a card's memory, every class and control that has no meaning, names and paths
that there are not, what a QMD says beside its grid."""
from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.mock.nv.bench import BASE, COMPUTE, COPY, FAR, SIZE, Bench, cubin, launch_qmd, release
from tests.mock.nv.client import MIB, Client
from tests.mock.nv.test_compute import ADD, CLUSTER, HEAD, Compute
from tests.mock.nv.test_copy import PITCH, TRANSFER, addresses, ce, filled
from tests.mock.nv.test_events import QUIET, event, registered
from tests.mock.nv.test_host import PBDMA, dead
from tests.mock.nv.test_rm import refused
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_control as control
from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen import nv_uvm as uvm
from tinyhw.autogen.nv_rm_chips import RESOURCES
from tinyhw.core.errors import InvalidArgument, MachineFault, PageFault, Unsupported, WatchdogExpired
from tinyhw.core.memory import Access
from tinyhw.core.port import Protection
from tinyhw.core.timeout import Terms
from tinyhw.emulator.observe import Observer
from tinyhw.mock.memory import Refused
from tinyhw.mock.nv.card import CARDS, cards_named
from tinyhw.mock.nv.chip import compute, faults
from tinyhw.mock.nv.chip.channel import State, error_name
from tinyhw.mock.nv.driver.controls import Controls
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NOTIFY, NvPort
from tinyhw.wire import methods
from tinyhw.wire.rm import flags

UNSUPPORTED = status.NV_ERR_NOT_SUPPORTED
M = methods.declared(0xCBC0)  # of Hopper


@pytest.mark.parametrize("system", [False, True])
def test_memory_is_given_from_its_first_byte_to_its_last(system: bool) -> None:
  c = Client()
  kind = alloc.NV01_MEMORY_SYSTEM if system else alloc.NV01_MEMORY_LOCAL_USER
  where = (alloc.NVOS32_ATTR_LOCATION_PCI if system else alloc.NVOS32_ATTR_LOCATION_VIDMEM) << 25
  def made(size: int) -> tuple[int, Any]:
    p = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, size=size, attr=where)
    return c.alloc(c.device, 0, kind, p), p
  first, p = made(32 * MIB)
  assert (p.offset, p.size, p.limit) == (0, 32 * MIB, 32 * MIB - 1)
  second, p = made(32 * MIB)
  assert p.offset == 32 * MIB
  refused(status.NV_ERR_NO_MEMORY, made, 1)
  for handle in (first, second): c.free(handle)
  assert made(64 * MIB)[1].offset == 0


# ---- what RM knows and the mock does not

def test_classes_without_a_meaning() -> None:
  """Each class of each chip below each parent: what is the kernel's, what the chip has not, and what is not modelled,
  which the report names."""
  c = Client()
  w = c.channel()
  parents = {"RmClientResource": c.root, "Device": c.device, "Subdevice": c.subdevice, "KernelChannel": w.handle,
             "KernelChannelGroupApi": w.group}
  makers = c.machine.rm.classes
  found = set()
  for number, row in RESOURCES.items():
    if row.internal in makers: continue
    for internal, parent in parents.items():
      declared = alloc.PARAMETERS.get(number)
      given = declared() if isinstance(declared, type) and issubclass(declared, ctypes.Structure) else ctypes.c_uint32()
      fits = row.parents == ("any",) or internal in row.parents
      if row.privileged: wanted = status.NV_ERR_INSUFFICIENT_PERMISSIONS
      elif not fits: wanted = status.NV_ERR_INVALID_OBJECT_PARENT
      else: wanted = UNSUPPORTED
      absent = internal != "RmClientResource" and number not in c.card.classes
      if number in (alloc.NV01_ROOT, alloc.NV01_ROOT_CLIENT, alloc.NV01_ROOT_NON_PRIV): continue
      count = len(c.machine.findings)
      refused(wanted, c.alloc, parent, 0, number, given)
      if wanted != UNSUPPORTED or absent: assert len(c.machine.findings) == count
      else:
        found.add(row.internal)
        assert c.machine.findings[-1] == f"RM class {row.name} is not modelled: NV_ERR_NOT_SUPPORTED"
  assert {"GpuUserSharedData", "ProfilerDev", "TimerApi"} <= found
  refused(status.NV_ERR_INVALID_CLASS, c.alloc, c.device, 0, 0xFFFE)


def test_controls_without_a_meaning() -> None:
  """Each command on an object of its class: refused by name, or taken without an effect, which the report says too. Of
  a wrong size, and on an object of another class, it is no command."""
  c = Client()
  w = c.channel()
  objects = {0x0000: c.root, 0x0080: c.device, 0x2080: c.subdevice, 0x90F1: c.va, 0x0041: c.memory(4096),
             0x906F: w.handle, 0xA06F: w.handle, 0xC36F: w.handle, 0xA06C: w.group}
  table = Controls.table
  seen = {"refused": 0, "ignored": 0}
  for command, row in control.CONTROLS.items():
    handle = objects.get(command >> 16)
    if handle is None or table.get(row.name) is not None: continue
    given = None if row.struct is None else row.struct()
    if table.why_ignored(row.name) is None:
      refused(UNSUPPORTED, c.control, handle, given, command)
      assert c.machine.findings[-1] == f"RM control {row.name} is not modelled: NV_ERR_NOT_SUPPORTED"
      seen["refused"] += 1
    else:
      c.control(handle, given, command)
      assert any(row.name in line for line in c.machine.report())
      seen["ignored"] += 1
    count = len(c.machine.findings)
    refused(UNSUPPORTED, c.control, c.va if handle != c.va else c.device, given, command)
    refused(status.NV_ERR_INVALID_ARGUMENT, c.control, handle, (ctypes.c_uint8 * 5)(), command)
    assert len(c.machine.findings) == count
  assert seen["refused"] > 40 and seen["ignored"] >= 4


# ---- names and paths

def test_cards_by_name() -> None:
  assert [c.name for c in cards_named(" sm_90 ,sm_80")] == ["sm_90", "sm_80"] == [
    c.name for c in cards_named(["sm_90", "sm_80 "])]
  with pytest.raises(InvalidArgument, match="no card is called 'sm_91'") as caught: cards_named("sm_90,sm_91")
  assert caught.value.hint is not None and caught.value.hint.endswith(", ".join(CARDS))
  with pytest.raises(InvalidArgument, match="without cards"): cards_named([])
  with pytest.raises(InvalidArgument, match="weak memory"): NvMachine("sm_90", memory="weak")


def test_files_of_a_card_in_its_slot() -> None:
  """As Linux has them in /sys: numbers of the PCI device, of four digits, and its class, of six."""
  port = NvPort(NvMachine("sm_80,sm_120", vram=MIB, system_memory=MIB))
  slots = port.listdir("/sys/bus/pci/devices/")
  assert slots == port.listdir("/proc/driver/nvidia/gpus") == ["0000:01:00.0", "0000:02:00.0"]
  for slot, device, title, minor in zip(slots, (0x20B2, 0x2B85), ("A100-SXM4-80GB", "GeForce RTX 5090"), (0, 1)):
    read = {n: port.read(f"/sys/bus/pci/devices/{slot}/{n}").decode() for n in ("vendor", "device", "class")}
    assert read == {"vendor": "0x10de\n", "device": f"0x{device:04x}\n", "class": "0x030200\n"}
    told = port.read(f"/proc/driver/nvidia/gpus/{slot}/information").decode()
    assert f"Model: \t\t NVIDIA {title}\n" in told and f"Device Minor: \t {minor}\n" in told
  assert port.listdir("/dev") == ["nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1", "nvidiactl"]
  nothing: list[Any] = [lambda: port.read(f"/sys/bus/pci/devices/{slots[0]}/irq"), lambda: port.listdir("/dev/pts"),
                        lambda: port.read("/sys/bus/pci/devices/0000:03:00.0/vendor"),
                        *(lambda p=p: port.open(p) for p in ("/dev/nvidia2", "/dev/nvidia", "/dev/zero"))]
  for call in nothing:
    with pytest.raises(FileNotFoundError) as caught: call()
    assert caught.value.errno == errno.ENOENT


def test_descriptors_and_addresses_that_there_are_not() -> None:
  c = Client()
  for call, number in ((lambda: c.port.close(9999), errno.EBADF), (lambda: c.port.mmap(c.uvm_fd, 4096), errno.EINVAL),
                       (lambda: c.port.mmap(c.ctl, 4096), errno.EINVAL)):
    with pytest.raises(OSError) as caught: call()
    assert caught.value.errno == number
  w = c.channel()
  with pytest.raises(InvalidArgument, match="no doorbells are mapped at 0x10"): c.port.doorbell(0x10, w.token, 4)
  fd = c.port.open("/dev/nvidiactl")
  c.port.close(fd)
  with pytest.raises(OSError): c.port.close(fd)


def test_a_child_has_none_of_its_parents_files() -> None:
  """What it asks of them is refused with EBADF, and says why."""
  c = Client()
  child = NvPort(c.machine)
  child.pid = lambda: os.getpid() + 1  # type: ignore[method-assign]
  with pytest.raises(Refused, match="of the parent process") as caught:
    child.ioctl(c.ctl, next(iter(rm.IOCTLS)), ctypes.c_uint32())
  assert caught.value.errno == errno.EBADF
  with pytest.raises(Refused, match="12345 is not an open file"):
    child.ioctl(12345, next(iter(rm.IOCTLS)), ctypes.c_uint32())


# ---- memory of the client

def test_pages_of_a_client_are_no_place_for_rings() -> None:
  c = Client()
  w = c.channel()
  at, _ = c.private(65536)
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.hUserdMemory[0] = 0x0D15C
  refused(UNSUPPORTED, c.alloc, w.group, 0, c.card.channel_class, p)
  for name in ("ALLOC_USER_READ_ONLY", "ALLOC_DEVICE_READ_ONLY"):
    given = c.pages(at, 4096, 0x0D15D)
    given.params.flags |= 1 << getattr(rm, f"NVOS02_FLAGS_{name}")[1]
    refused(UNSUPPORTED, c.call, given, c.gpu_fd)


# ---- events

def test_a_file_that_hears_no_more() -> None:
  """Registered once; freed once; of what it was to hear of nothing comes, and others hear on."""
  c = Client()
  one, two = (c.port.open("/dev/nvidiactl") for _ in range(2))
  assert [registered(c, fd) for fd in (one, two)] == [status.NV_OK] * 2
  assert registered(c, one) == status.NV_ERR_INSUFFICIENT_RESOURCES
  event(c, one)
  event(c, two)
  gone = rm.nv_ioctl_free_os_event_t(hClient=c.root, hDevice=c.device, fd=one)
  number = next(n for n, row in rm.IOCTLS.items() if row.struct is type(gone))
  c.port.ioctl(one, number, gone)
  assert gone.Status == status.NV_OK
  c.port.ioctl(one, number, gone)
  assert gone.Status == status.NV_ERR_INVALID_EVENT
  c.channel().send(0, host.NON_STALL_INTERRUPT())
  assert c.port.poll(two, 1.0) and not c.port.poll(one, 0.0)
  assert registered(c, one) == status.NV_OK
  refused(UNSUPPORTED, event, c, one, alloc.NV01_EVENT_NONSTALL_INTR | QUIET | 0xFFF)


# ---- engines

def test_one_block_is_a_cluster_where_the_qmd_says_so() -> None:
  """A kernel that was compiled for clusters is refused then."""
  b = Compute()
  c, data = b.channel(), b.take(128)
  ptx = CLUSTER.replace("n) {", "n) .reqnctapercluster 3, 1, 1 {", 1)
  b.pcas(c, launch_qmd(b, b.load(ptx, "k"), version=(4, 0), grid=(6, 1, 1), block=(1, 1, 1), bank=b.bank(data)))
  b.run()
  dead(b, c, status.ROBUST_CHANNEL_GR_EXCEPTION, "a cluster of (1, 1, 1) blocks")


@pytest.mark.parametrize("told", [False, True])
def test_a_release_of_a_qmd_may_interrupt(told: bool) -> None:
  b = Compute()
  c, at = b.channel(), b.take(64)
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), version=(4, 0), bank=b.bank(b.take(256)), RELEASE_ENABLE__1=1,
                       RELEASE_SEMAPHORE_ADDR__1=at, RELEASE_SEMAPHORE_PAYLOAD__1=5, RELEASE_TRAP_TYPE__1=int(told)))
  b.run()
  assert c.state is State.READY and b.space.load(at, 4) == 5 and c.interrupts == int(told)


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_semaphore_behind_a_copy_that_is_not_flushed(flush: bool, again: bool) -> None:
  """The last copy before it counts."""
  b = Bench()
  c = b.channel("copy")
  def copied(flushed: bool) -> None:
    b.send(c, COPY, *addresses(filled(b, 64), b.take(64)), ce.LINE_LENGTH_IN(VALUE=64), ce.LAUNCH_DMA(
      DATA_TRANSFER_TYPE=TRANSFER.NON_PIPELINED, FLUSH_ENABLE=int(flushed), **PITCH))
  if again: copied(not flush)
  copied(flush)
  b.send(c, 0, *release(b.take(16), 1))
  assert c.state is State.READY
  assert any("FLUSH_ENABLE 0" in line for line in b.machine.findings) == (not flush)


@pytest.mark.parametrize("invalidated", [False, True])
def test_a_qmd_that_is_scheduled_again_as_older_chips_do(invalidated: bool) -> None:
  """SEND_SIGNALING_PCAS_B may invalidate alone."""
  b = Compute("sm_80")
  m = methods.declared(b.gpu.card.compute_class)
  c, program, bank = b.channel(), b.load(ADD, "add"), b.bank(b.take(1024))
  q = launch_qmd(b, program, bank=bank)
  def sent(**how: int) -> None:
    b.send(c, COMPUTE, m.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=q >> 8), m.SEND_SIGNALING_PCAS_B(**how))
  sent(SCHEDULE=1)
  again = launch_qmd(b, program, grid=(2, 1, 1), bank=bank)
  b.space.write(q, b.space.read(again, 256))
  if invalidated: sent(INVALIDATE=1)
  sent(SCHEDULE=1)
  assert c.state is State.READY
  assert any("the scheduler may hold the QMD" in line for line in b.machine.findings) == (not invalidated)


def test_programs_without_an_elf() -> None:
  b = Compute()
  c = b.channel()
  b.pcas(c, launch_qmd(b, BASE + 0x1000, bank=b.bank(b.take(256))))
  with pytest.raises(Unsupported, match="no ELF begins before it"): b.run()
  assert c.state is State.DEAD and "no ELF begins" in c.describe()


@pytest.mark.parametrize(("kind", "objects", "subchannel", "code", "text"), [
  ("compute", "", COMPUTE, PBDMA, "on a channel without an engine object"),
  ("compute", "", COPY, PBDMA, "on subchannel 4, where copy classes none are"),
  ("compute", "copy", COMPUTE, status.ROBUST_CHANNEL_GR_CLASS_ERROR, "of a channel with classes 0xc8b5"),
  ("compute", "copy", 3, status.ROBUST_CHANNEL_GR_CLASS_ERROR, "on subchannel 3 of a channel with classes 0xc8b5"),
  ("copy", "", 2, PBDMA, "on subchannel 2, where copy classes none are"),
  ("compute", "copy", COPY, 0, ""), ("copy", "copy", 2, 0, "")])
@pytest.mark.parametrize("named", [False, True])
def test_methods_need_their_engines_object(kind: str, objects: str, subchannel: int, code: int, text: str,
                                           named: bool) -> None:
  """SET_OBJECT and any other method; on a copy engine's runlist all subchannels are the same."""
  b = Bench()
  c = b.channel(kind)
  c.classes = (0xC8B5,) if objects else ()
  sent = host.SET_OBJECT(NVCLASS=0xC8B5) if named else ce.NOP(PARAMETER=0)
  b.send(c, subchannel, sent)
  if not code: assert c.state is State.READY
  else:
    dead(b, c, code, text)
    assert ("class 0xc8b5" if named else "a method") in str(c.error) and text in c.describe()


@pytest.mark.parametrize("name", [e.name for e in M.SEND_SIGNALING_PCAS2_B_PCAS_ACTION])
def test_each_action_of_a_signal(name: str) -> None:
  """What its name says, and nothing else: whether the QMD is run, and whether the scheduler reads it anew."""
  b = Compute()
  c, program, bank, data = b.channel(), b.load(ADD, "add"), b.bank(b.take(64)), b.take(64)
  q = launch_qmd(b, program, version=(4, 0), bank=b.bank(data, 1))
  actions = M.SEND_SIGNALING_PCAS2_B_PCAS_ACTION
  def sent(action: int) -> None:
    b.send(c, COMPUTE, M.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=q >> 8), M.SEND_SIGNALING_PCAS2_B(PCAS_ACTION=action))
  sent(actions.SCHEDULE)
  assert b.space.load(data, 4) == 1 and bank
  b.space.write(q, b.space.read(launch_qmd(b, program, version=(4, 0), bank=b.bank(data, 10)), 384))
  try: sent(actions[name])
  except Unsupported as refused:
    assert f"PCAS_ACTION = {name}" in str(refused) and "SCHEDULE" not in name and c.state is State.DEAD
    return
  assert c.state is State.READY
  runs, fresh = "SCHEDULE" in name, "INVALIDATE" in name
  assert b.space.load(data, 4) == 1 + 10 * runs
  def doubted() -> bool: return any("scheduler may hold the QMD" in line for line in b.machine.findings)
  assert doubted() == (runs and not fresh)
  if not runs:
    sent(actions.SCHEDULE)
    assert doubted() != fresh


@pytest.mark.parametrize(("version", "before", "access", "right"), [
  ((3, 0), 256, Access.ALL, True), ((4, 0), 512, Access.ALL, True), ((4, 0), 256, Access.ALL, False),
  ((3, 0), 0, Access.ALL, False), ((3, 0), 256, Access.WRITE, False), ((3, 0), 512, Access.READ, True)])
def test_a_qmd_lies_in_memory(version: tuple[int, int], before: int, access: Access, right: bool) -> None:
  """The last bytes of a mapping may be one, 256 or 384; what cannot be read or is cut off is none."""
  b = Compute("sm_80" if version == (3, 0) else "sm_90")
  c, data, at = b.channel(), b.take(64), 0x55_0000_0000
  b.space.map(at, 4096, b.gpu.vram, SIZE, Access.ALL)
  place = at + 4096 - before
  q = launch_qmd(b, b.load(ADD, "add"), version=version, bank=b.bank(data, 1))
  b.space.write(place, b.space.read(q, min(before, 384)))
  b.space.unmap(at, 4096)
  b.space.map(at, 4096, b.gpu.vram, SIZE, access)
  b.pcas(c, place)
  b.run()
  assert (c.state is State.READY) == right and b.space.load(data, 4) == right, c.describe()
  if not before or not access & Access.READ: assert isinstance(c.error, PageFault)


@pytest.mark.parametrize(("given", "right"), [(1024, True), (1023, False), (1 << 32, True), (0, False)])
def test_local_memory_is_enough_for_a_warp(given: int, right: bool) -> None:
  """Of 32 threads, of 32 bytes each."""
  b = Compute()
  c, data, local = b.channel(), b.take(64), b.take(4096)
  b.send(c, COMPUTE, M.SET_SHADER_LOCAL_MEMORY_A(ADDRESS_UPPER=local >> 32),
         M.SET_SHADER_LOCAL_MEMORY_B(ADDRESS_LOWER=local & 0xFFFF_FFFF),
         M.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A(SIZE_UPPER=given >> 32),
         M.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B(SIZE_LOWER=given & 0xFFFF_FFFF))
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data, 1), SHADER_LOCAL_MEMORY_HIGH_SIZE=16,
                       SHADER_LOCAL_MEMORY_LOW_SIZE=16))
  b.run()
  assert (c.state is State.READY) == right, c.describe()
  assert right or "05_LOCAL_MEMORY_TOTAL_SIZE" in str(c.error)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("operation", ["ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"])
@pytest.mark.parametrize("wide", [False, True])
def test_a_release_of_a_qmd_may_reduce(operation: str, signed: bool, wide: bool) -> None:
  """By each operation, of numbers with a sign or without, of 4 or 8 bytes; NumPy is the witness."""
  b = Compute()
  kind = np.dtype(f"{'i' if signed else 'u'}{8 if wide else 4}")
  program, bank = b.load(ADD, "add"), b.bank(b.take(256))
  order = ["ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"]  # QMDV04_00_RELEASE0_REDUCTION_OP
  for old, payload in ((5, 3), (3, 5), (-7 % (1 << 8 * kind.itemsize), 4), (4, -7 % (1 << 8 * kind.itemsize)), (0, 0)):
    if not wide: old, payload = old & 0xFFFF_FFFF, payload & 0xFFFF_FFFF
    c, at = b.channel(), b.take(16)
    b.space.store(at, 8, old)
    b.pcas(c, launch_qmd(b, program, version=(4, 0), bank=bank, RELEASE_ENABLE__0=1, RELEASE_SEMAPHORE_ADDR__0=at,
                         RELEASE_SEMAPHORE_PAYLOAD__0=payload, RELEASE_REDUCTION_ENABLE__0=1,
                         RELEASE_STRUCTURE_SIZE__0=2 if wide else 1, RELEASE_REDUCTION_OP__0=order.index(operation),
                         RELEASE_REDUCTION_FORMAT__0=int(signed)))
    b.run()
    assert c.state is State.READY, c.describe()
    x, y = (np.array([v], f"u{kind.itemsize}").view(kind) for v in (old, payload))
    plain = {"ADD": x + y, "MIN": np.minimum(x, y), "MAX": np.maximum(x, y), "AND": x & y, "OR": x | y, "XOR": x ^ y}
    if operation in plain: wanted = int(plain[operation].view(f"u{kind.itemsize}")[0])
    elif operation == "INC": wanted = 0 if old >= payload else old + 1
    else: wanted = payload if old == 0 or old > payload else old - 1
    assert b.space.load(at, kind.itemsize) == wanted, (old, payload)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_mapping_may_be_read_only(read_only: bool) -> None:
  c = Client()
  memory = c.memory(4096, system=True)
  fd = c.port.open("/dev/nvidiactl")
  p = rm.nv_ioctl_nvos33_parameters_with_fd(fd=fd)
  p.params.hClient, p.params.hDevice, p.params.hMemory, p.params.length = c.root, c.device, memory, 4096
  p.params.flags = flags(NVOS33_FLAGS_ACCESS=rm.NVOS33_FLAGS_ACCESS_READ_ONLY) if read_only else 0
  c.call(p)
  assert c.port.mmap(fd, 4096, protection=Protection.READ)
  for protection in (Protection.READ | Protection.WRITE, Protection.WRITE):
    if not read_only:
      assert c.port.mmap(fd, 4096, protection=protection)
      continue
    with pytest.raises(OSError) as caught: c.port.mmap(fd, 4096, protection=protection)
    assert caught.value.errno == errno.EACCES
  for length, offset in ((8192, 0), (4096, 4096)):
    with pytest.raises(OSError) as caught: c.port.mmap(fd, length, offset=offset, protection=Protection.READ)
    assert caught.value.errno == errno.EINVAL


def test_what_cards_are_told_of() -> None:
  """Each in its place of the array; those behind the last one are not valid."""
  machine = NvMachine("sm_90,sm_80", vram=64 * MIB, system_memory=64 * MIB)
  port = NvPort(machine)
  rows = (rm.nv_ioctl_card_info_t * 4)()
  for row in rows: row.valid = 1
  number = next(n for n, row in rm.IOCTLS.items() if row.name == "NV_ESC_CARD_INFO")
  port.ioctl(port.open("/dev/nvidiactl"), number, rows)
  assert [row.valid for row in rows] == [1, 1, 0, 0]
  for k, (row, device) in enumerate(zip(rows, (0x2335, 0x20B2))):
    assert (row.pci_info.bus, row.pci_info.vendor_id, row.pci_info.device_id) == (1 + k, 0x10DE, device)
    assert (row.gpu_id, row.minor_number, row.reg_size, row.fb_size) == (1 + k << 8, k, 16 * MIB, 64 * MIB)


def test_addresses_end_at_47_bits() -> None:
  """RM gives out those between 4 GiB and there, and no more."""
  c = Client(managed=False)
  def ranged(size: int) -> int:
    p = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, hVASpace=c.va, size=size,
                                          flags=alloc.NVOS32_ALLOC_FLAGS_VIRTUAL)
    c.alloc(c.device, 0, alloc.NV50_MEMORY_VIRTUAL, p)
    return int(p.offset)
  refused(status.NV_ERR_NO_MEMORY, ranged, (1 << 47) - (4 << 30) + 65536)
  assert ranged((1 << 47) - (4 << 30)) == 4 << 30
  refused(status.NV_ERR_NO_MEMORY, ranged, 65536)


def test_each_entry_takes_its_time() -> None:
  """The clock goes on with each entry of a ring, and with each method."""
  b = Bench()
  c, clock, before = b.channel(), b.machine.clock, b.machine.clock.now_ns()
  for _ in range(100): b.send(c, 0, host.NOP())
  assert clock.now_ns() - before >= 200 * b.machine.packet_ns > 0


def test_numbers_of_channels_come_back() -> None:
  """What a channel was called by rings nothing any more, and the next one may have its number."""
  c = Client()
  w, other = c.channel(), c.channel()
  numbers = [ch.number for ch in c.machine.channels]
  assert len({*numbers}) == 2
  c.free(w.handle)
  gpu = c.machine.gpus[0]
  count = len(c.machine.findings)
  c.port.doorbell(w.door + NOTIFY, w.token, 4)
  assert len(c.machine.findings) == count + 1 and "belongs to no channel" in c.machine.findings[-1]
  assert w.token not in gpu.by_token and other.token in gpu.by_token
  assert c.channel().token == w.token


def test_shared_memory_of_a_block() -> None:
  """The QMD's, less what the system keeps and what the kernel has itself, is dynamic."""
  text = HEAD + """.visible .entry k(.param .u64 p, .param .u32 n) {
  .shared .align 4 .b8 own[256]; .reg .b32 %r<4>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p];
  mov.u32 %r1, %dynamic_smem_size; st.global.u32 [%rd1], %r1; mov.u32 %r1, %total_smem_size;
  st.global.u32 [%rd1+4], %r1; mov.u32 %r2, own; st.shared.u32 [%r2], %r1; ret; }
"""
  b = Compute()
  for size in (1024 + 256, 1024 + 256 + 128, 1024 + 4096):
    c, data = b.channel(), b.take(64)
    b.pcas(c, launch_qmd(b, b.load(text, "k"), bank=b.bank(data), block=(1, 1, 1), shared=size))
    b.run()
    assert c.state is State.READY, c.describe()
    assert b.space.load(data, 4) == size - 1024 - 256


def test_pages_of_a_client_go_with_their_device() -> None:
  c = Client()
  two = c.alloc(c.root, 0, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS())
  at = c.port.mmap(-1, 8192, protection=Protection.READ | Protection.WRITE)
  given = c.pages(at, 8192, 0x0D15E)
  given.params.hObjectParent = two
  c.call(given, c.gpu_fd)
  objects = c.machine.rm.clients[c.root].objects
  assert 0x0D15E in objects and objects[0x0D15E].parent is objects[two]
  c.free(two)
  assert 0x0D15E not in objects


@pytest.mark.parametrize("tracing", [False, True])
def test_calls_are_traced_where_that_is_asked_for(tracing: bool) -> None:
  c = Client(NvMachine("sm_90", vram=64 * MIB, system_memory=64 * MIB, tracing=tracing))
  c.both(4096)
  said = {source: [e for e in c.machine.trace if e.source == source and e.kind == "ioctl"] for source in ("rm", "uvm")}
  assert all(bool(found) == tracing for found in said.values())
  assert not tracing or any("UVM_MAP_EXTERNAL_ALLOCATION" in e.name for e in said["uvm"])
  assert not tracing or any("NV_ESC_RM_ALLOC" in e.name for e in said["rm"])


def test_calls_of_uvm_that_cannot_say_what_is_wrong() -> None:
  """Those without a status in their parameters fail by errno; all others tell it, and the trace has each."""
  c = Client()
  fd, seen = c.port.open("/dev/nvidia-uvm"), set()
  for number, row in uvm.IOCTLS.items():
    if row.name in ("UVM_INITIALIZE", "UVM_MM_INITIALIZE", "UVM_DEINITIALIZE"): continue
    given = None if row.struct is None else row.struct()
    told = hasattr(given, "rmStatus")
    seen.add(told)
    if told:
      assert c.port.ioctl(fd, number, given) == 0 and given.rmStatus == status.NV_ERR_ILLEGAL_ACTION
    else:
      with pytest.raises(OSError) as caught: c.port.ioctl(fd, number, given)
      assert caught.value.errno == errno.EINVAL
    assert any(e.kind == "refused" and row.name in e.name for e in c.machine.trace)
  assert True in seen
  with pytest.raises(OSError) as caught: c.port.ioctl(fd, 0xFFFF, None)
  assert caught.value.errno == errno.EINVAL


def test_all_of_a_program_is_read_again() -> None:
  """Its PTX may be what lies last: a change of its last line is one of the program."""
  ptx = ADD.replace("ret;\n}", "add.u32 %r4, %r4, 0;\n  st.global.u32 [%rd3], %r4;\n  ret;\n}")
  raw = cubin(ptx, "add", size=12)
  table, = struct.unpack_from("<Q", raw, 40)
  count = (len(raw) - table) // 64
  headers = [bytearray(raw[table + 64 * k:table + 64 * k + 64]) for k in range(count)]
  def where(h: bytearray) -> tuple[int, int]: return struct.unpack_from("<2Q", h, 24)
  image = bytearray(raw[:table]) + bytearray(64 * count)  # the table, and then the PTX
  last = next(h for h in headers if raw[where(h)[0]:where(h)[0] + 8] == b".version")
  at, size = where(last)
  struct.pack_into("<Q", last, 24, len(image))
  image[table:table + 64 * count] = b"".join(headers)
  image += raw[at:at + size]
  b = Compute()
  c, data, place = b.channel(), b.take(128), b.take(16384, 4096)
  q = launch_qmd(b, place + 128, block=(1, 1, 1), bank=b.bank(data, 2))
  for value, total in ((b"%r4, 0;", 2), (b"%r4, 7;", 2 + 2 + 7)):
    b.space.write(place, bytes(image).replace(b"%r4, 0;", value))
    b.pcas(c, q)
    b.run()
    assert c.state is State.READY, c.describe()
    assert b.space.load(data, 4) == total


VARIABLES = HEAD + """.visible .global .align 4 .u32 counter = 40;
.visible .const .align 4 .u32 step = 2;
.visible .entry k(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [counter]; ld.const.u32 %r2, [step]; add.u32 %r1, %r1, %r2; st.global.u32 [counter], %r1;
  st.global.u32 [%rd1], %r1; mov.u64 %rd2, counter; st.global.u64 [%rd1+8], %rd2; ret; }
"""


def with_variables(ptx: str, symbols: Sequence[tuple[str, int, int]]) -> tuple[bytes, int]:
  """(an ELF whose symbols are (name, section, value), where its section 4 lies, which has the variables' bytes)."""
  raw = cubin(ptx, "k", size=12)
  table, = struct.unpack_from("<Q", raw, 40)
  headers = [raw[table + 64 * k:table + 64 * k + 64] for k in range((len(raw) - table) // 64)]
  shstr = headers.pop()
  at, size = struct.unpack_from("<2Q", shstr, 24)
  names = bytearray(raw[at:at + size])
  image = bytearray(raw[:table])
  strings = b"\0" + b"".join(n.encode() + b"\0" for n, *_ in symbols)
  rows, place = bytes(24), 1
  for name, section, value in symbols:
    rows += struct.pack("<IBBHQQ", place, 0x11, 0, section, value, 4)
    place += len(name) + 1
  where = 0
  for title, kind, data, link in ((".nv.global", 1, struct.pack("<4I", 0, 40, 2, 0), 0), (".strtab", 3, strings, 0),
                                  (".symtab", 2, rows, 5), (".shstrtab", 3, b"", 0)):
    if title != ".shstrtab": named, names = len(names), names + title.encode() + b"\0"
    else: named, data = names.index(b".shstrtab"), bytes(names)
    image += bytes(-len(image) % 16)
    if title == ".nv.global": where = len(image)
    headers.append(struct.pack("<2I4Q2I2Q", named, kind, 0, 0, len(image), len(data), link, 0, 16, 24))
    image += data
  image += bytes(-len(image) % 8)
  struct.pack_into("<Q", image, 40, len(image))
  struct.pack_into("<2H", image, 60, len(headers), len(headers) - 1)
  return bytes(image + b"".join(headers)), where


def test_variables_lie_where_the_elf_has_them() -> None:
  """By their symbols: the section's place and the symbol's value; one launch sees what another has left."""
  image, where = with_variables(VARIABLES, (("counter", 4, 4), ("step", 4, 8)))
  b = Compute()
  c, data, place = b.channel(), b.take(64), b.take(16384, 4096)
  b.space.write(place, image)
  q = launch_qmd(b, place + 128, block=(1, 1, 1), bank=b.bank(data))
  for total in (42, 44):
    b.pcas(c, q)
    b.run()
    assert c.state is State.READY, c.describe()
    assert b.space.load(data, 4) == total == b.space.load(place + where + 4, 4)
    assert b.space.load(data + 8, 8) == place + where + 4


@pytest.mark.parametrize("symbols", [(("counter", 4, 4),), (("counter", 4, 4), ("step", 99, 8)), ()])
def test_variables_that_the_elf_has_not(symbols: tuple[tuple[str, int, int], ...]) -> None:
  b = Compute()
  c, place = b.channel(), b.take(16384, 4096)
  b.space.write(place, with_variables(VARIABLES, symbols)[0])
  b.pcas(c, launch_qmd(b, place + 128, block=(1, 1, 1), bank=b.bank(b.take(64))))
  with pytest.raises(Unsupported, match="k: its variable .* has no symbol in the ELF"): b.run()


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_a_launch_that_somebody_looks_at(engine: str) -> None:
  """Says as much as one that nobody does: an observer, terms, or neither."""
  counts = set()
  for terms, observer in ((None, None), (Terms(), None), (None, Observer()), (Terms(observer=Observer()), None)):
    machine = NvMachine("sm_90", vram=1 << 22, system_memory=1 << 22, engine=engine, observer=observer,
                        agreed={} if terms is None else {threading.get_ident(): terms})
    b = Compute(machine=machine)
    c, data = b.channel(), b.take(256)
    b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data, 3)))
    b.run()
    assert [b.space.load(data + 4 * i, 4) for i in range(32)] == [3] * 32
    counts.add(machine.executed)
    machine.close()
  assert len(counts) == 1


def test_errors_of_channels_have_names() -> None:
  """Those of nverror.h; a number that is none is its Xid. Copy engines have one each."""
  assert error_name(status.ROBUST_CHANNEL_PBDMA_ERROR) == "ROBUST_CHANNEL_PBDMA_ERROR"
  assert error_name(9999) == "Xid 9999"
  for n in range(20): assert error_name(faults.copy(n, "UNIT", "why").code) == f"ROBUST_CHANNEL_CE{n}_ERROR"
  for error, name in ((PageFault(0, "read", 4), "FIFO_ERROR_MMU_ERR_FLT"), (MachineFault("x"), "GR_EXCEPTION"),
                      (WatchdogExpired("x"), "RESETCHANNEL_VERIF_ERROR"), (faults.host("A", "b"), "PBDMA_ERROR"),
                      (faults.compute("A", "b"), "GR_EXCEPTION"), (faults.compute_class("b"), "GR_CLASS_ERROR")):
    assert error_name(faults.code_of(error)) == f"ROBUST_CHANNEL_{name}"


@pytest.mark.parametrize("kept", [1, 2, 256])
def test_plans_make_room_for_others(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """However few are kept, each launch is its own QMD's."""
  monkeypatch.setattr(compute, "PLANS", kept)
  b = Compute()
  c, data, program = b.channel(), b.take(4096), b.load(ADD, "add")
  for turn in range(2):
    for blocks in (1, 2, 3):
      b.pcas(c, launch_qmd(b, program, grid=(blocks, 1, 1), bank=b.bank(data, 10**turn)))
      b.run()
  assert [b.space.load(data + 128 * k, 4) for k in range(4)] == [33, 22, 11, 0]
  assert len(c.engines[COMPUTE]._plans) <= kept  # type: ignore[attr-defined]


@pytest.mark.parametrize(("before", "timed", "wide", "right"), [
  (16, True, False, True), (16, True, True, True), (8, False, True, True), (4, False, False, True),
  (8, True, False, False), (12, True, True, False), (4, False, True, False), (0, False, False, False)])
def test_semaphores_at_the_end_of_memory(before: int, timed: bool, wide: bool, right: bool) -> None:
  """Of 16 bytes with a time, of 8 or of 4: nothing is written of one that is not all there."""
  b = Bench()
  c, at = b.channel(), 0x55_0000_0000
  b.space.map(at, 4096, b.gpu.vram, SIZE, Access.ALL)
  for k in range(16): b.space.store(at + 4080 + k, 1, 0xEE)
  b.send(c, 0, *release(at + 4096 - before, 0x1_0000_0002, wide=wide, timed=timed))
  assert (c.state is State.READY) == right, c.describe()
  value = b.space.load(at + 4096 - before, 8 if wide else 4) if right else None
  assert value == ((0x1_0000_0002 if wide else 2) if right else None)
  assert right or b.space.read(at + 4080, 16) == b"\xee" * 16


@pytest.mark.parametrize(("pitch", "right"), [(16, True), (2048, True), (4064, True), (4080, False)])
def test_lines_of_inline_data_are_written_as_a_whole(pitch: int, right: bool) -> None:
  """All of them, or none where one of them is not there."""
  b = Bench()
  c, at, m = b.channel(), 0x55_0000_0000, methods.declared(b.gpu.card.compute_class)
  b.space.map(at, 8192, b.gpu.vram, SIZE, Access.ALL)
  b.send(c, COMPUTE, m.OFFSET_OUT_UPPER(VALUE=at >> 32), m.OFFSET_OUT(VALUE=at + 32 & 0xFFFF_FFFF),
         m.PITCH_OUT(VALUE=pitch), m.LINE_LENGTH_IN(VALUE=8), m.LINE_COUNT(VALUE=3),
         m.LAUNCH_DMA(DST_MEMORY_LAYOUT=m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH))
  b.submit(c, methods.repeated(COMPUTE, m.LOAD_INLINE_DATA, [1, 2, 3, 4, 5, 6]))
  b.run()
  assert (c.state is State.READY) == right, c.describe()
  for line in range(3):
    if at + 32 + line * pitch + 8 <= at + 8192:
      found = [b.space.load(at + 32 + line * pitch + 4 * k, 4) for k in range(2)]
      assert found == ([2 * line + 1, 2 * line + 2] if right else [0, 0])


def test_uvm_may_end_before_it_begins() -> None:
  c = Client()
  fd = c.port.open("/dev/nvidia-uvm")
  number, row = next((n, r) for n, r in uvm.IOCTLS.items() if r.name == "UVM_DEINITIALIZE")
  count = len(c.machine.trace)
  assert c.port.ioctl(fd, number, None if row.struct is None else row.struct()) == 0
  assert not any(e.kind == "refused" for e in [*c.machine.trace][count:])


@pytest.mark.parametrize("static", [0, 256])
@pytest.mark.parametrize("less", [0, 128])
def test_shared_memory_is_enough(static: int, less: int) -> None:
  """For what the system keeps and what the kernel has itself."""
  own = f".shared .align 4 .b8 own[{static}]; mov.u32 %r1, own;" if static else ""
  b = Compute()
  c = b.channel()
  text = HEAD + f".visible .entry k(.param .u64 p, .param .u32 n) {{ .reg .b32 %r<4>; {own} ret; }}\n"
  b.pcas(c, launch_qmd(b, b.load(text, "k"), bank=b.bank(b.take(64)), block=(1, 1, 1), shared=1024 + static - less))
  b.run()
  assert (c.state is State.READY) == (not less), c.describe()


def test_objects_go_with_their_address_space() -> None:
  """What names one is gone with it: ranges, groups and channels."""
  c = Client(managed=False)
  p = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, hVASpace=c.va, size=65536,
                                        flags=alloc.NVOS32_ALLOC_FLAGS_VIRTUAL)
  made = [c.alloc(c.device, 0, alloc.NV50_MEMORY_VIRTUAL, p), c.group(alloc.NV2080_ENGINE_TYPE_GR0)]
  objects = c.machine.rm.clients[c.root].objects
  assert {*made} <= {*objects}
  c.free(c.va)
  assert not {*made} & {*objects}


def test_a_list_of_classes_ends() -> None:
  """Behind the last one nothing is written."""
  c = Client()
  room = (ctypes.c_uint8 * 16)(*[0xEE] * 16)
  params = control.NV2080_CTRL_GPU_GET_ENGINE_CLASSLIST_PARAMS(engineType=alloc.NV2080_ENGINE_TYPE_GR0,
                                                              classList=ctypes.addressof(room))
  c.control(c.subdevice, params)
  assert params.numClasses == 1 and bytes(room[:4]) == c.card.compute_class.to_bytes(4, "little")
  assert bytes(room[4:]) == b"\xee" * 12


def test_notifiers_of_events_have_sixteen_bits() -> None:
  """The rest of the number are flags: what is asked for is in the bits below them."""
  c = Client()
  fd = c.port.open("/dev/nvidiactl")
  assert registered(c, fd) == status.NV_OK
  known = [alloc.NV2080_NOTIFIERS_FIFO_EVENT_MTHD, *(getattr(alloc, f"NV2080_NOTIFIERS_CE{n}") for n in range(10))]
  for n in known: event(c, fd, n | alloc.NV01_EVENT_NONSTALL_INTR | QUIET)
  other = next(n for n in range(1, 1 << 16) if n not in known and not any(
    v == n for k, v in vars(alloc).items() if k.startswith("NV2080_NOTIFIERS_CE")))
  refused(UNSUPPORTED, event, c, fd, other | alloc.NV01_EVENT_NONSTALL_INTR | QUIET)


def test_a_fault_is_traced_with_what_is_known() -> None:
  """Its instruction and address, and nothing that it has not."""
  b = Compute()
  c = b.channel()
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(FAR, 1)))
  b.run()
  fault = next(e for e in b.machine.trace if e.kind == "fault")
  assert fault.fields["address"] == FAR and "ld.global" in str(fault.fields["instruction"])
  assert None not in fault.fields.values() and fault.fields["line"] == 9
  entries = [e for e in b.machine.trace if e.kind == "entry"]
  assert len(entries) == 1 and c.snapshot()["state"] == "dead" and {"get", "put", "rc"} <= {*c.snapshot()}


def test_a_machine_gives_all_back() -> None:
  c = Client()
  machine = c.machine
  regions = [machine.system, *(g.vram for g in machine.gpus), *machine.rm.usermode]
  assert all(r.fd >= 0 for r in regions)
  machine.close()
  assert all(r.fd < 0 for r in regions) and not machine.channels and machine.rm.user._fd < 0


def test_nobody_rings_before_somebody_does() -> None:
  """A new client finds the doorbell's page as it is when nothing was rung."""
  machine = NvMachine("sm_90", vram=MIB, system_memory=MIB)
  port = NvPort(machine)
  port.wait(lambda: False, 0.0)
  assert not machine.findings


@pytest.mark.parametrize(("start", "size", "gone"), [(-1, 1, False), (-1, 2, True), (0, 1, True), (1, 1, True),
                                                     (2, 1, False), (1, 2, True), (-1, 5, True)])
def test_pages_of_a_client_that_it_unmaps(start: int, size: int, gone: bool) -> None:
  """Those beside them are nobody's loss; what goes is told once, and others stay."""
  c = Client(managed=False)
  at, _ = c.private(8192)
  other = c.port.mmap(-1, 4096, protection=Protection.READ | Protection.WRITE)
  c.call(c.pages(other, 4096, 0x0D15D), c.gpu_fd)
  first, end = at + 4096 * start, at + 4096 * (start + size)
  c.machine.rm.user_memory_gone(c.port.pid(), first, end)
  c.machine.rm.user_memory_gone(c.port.pid() + 1, at, at + 8192)
  wanted = {a for a, n in ((at, 8192), (other, 4096)) if a >= end or a + n <= first}
  assert {row[2] for row in c.machine.rm.user_memory} == wanted and (at not in wanted) == gone
  assert any("memory of the client was unmapped" in line for line in c.machine.findings) == (len(wanted) < 2)


@pytest.mark.parametrize(("offset", "right"), [(0, True), (65536, True), (61440, True), (-4096, False), (69632, False)])
def test_mappings_lie_within_their_range(offset: int, right: bool) -> None:
  """From its first byte to its last."""
  c = Client(managed=False)
  p = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, hVASpace=c.va, size=131072,
                                        flags=alloc.NVOS32_ALLOC_FLAGS_VIRTUAL)
  target, memory = c.alloc(c.device, 0, alloc.NV50_MEMORY_VIRTUAL, p), c.memory(65536)
  fixed = rm.NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE << rm.NVOS46_FLAGS_DMA_OFFSET_FIXED[1]
  given = rm.NVOS46_PARAMETERS(hClient=c.root, hDevice=c.device, hDma=target, hMemory=memory, length=65536, flags=fixed,
                               dmaOffset=p.offset + offset)
  if right: assert c.call(given).dmaOffset == p.offset + offset
  else: refused(status.NV_ERR_INVALID_OFFSET, c.call, given)


def test_refusals_are_traced_with_their_number() -> None:
  c = Client()
  with pytest.raises(OSError): c.port.ioctl(c.uvm_fd, 0xFFFF, None)
  told = [e for e in c.machine.trace if e.source == "kernel" and e.kind == "refused"]
  assert told[-1].fields["errno"] == "EINVAL" and "0xffff" in told[-1].name


@pytest.mark.parametrize(("registers", "threads", "right"), [(64, 1024, True), (65, 1024, False), (128, 512, True),
                                                             (129, 512, False), (255, 256, True), (255, 257, False)])
def test_registers_of_a_block(registers: int, threads: int, right: bool) -> None:
  """65,536 of an SM: a warp takes them in eights for each of its 32 threads."""
  b = Compute()
  c = b.channel()
  text = HEAD + ".visible .entry k(.param .u64 p, .param .u32 n) { ret; }\n"
  b.pcas(c, launch_qmd(b, b.load(text, "k"), bank=b.bank(b.take(64)), block=(threads, 1, 1), REGISTER_COUNT=registers))
  b.run()
  assert (c.state is State.READY) == right, c.describe()
  assert right or "19_CTA_REGISTER_CONSUMPTION" in str(c.error)


def test_what_mem_op_d_would_read_has_no_effect() -> None:
  b = Bench()
  c = b.channel()
  b.send(c, 0, host.MEM_OP_A(), host.MEM_OP_B(), host.MEM_OP_C())
  assert c.state is State.READY
  assert all(any(f"MEM_OP_{x}" in line for line in b.machine.report()) for x in "ABC")
