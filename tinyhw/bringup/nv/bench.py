"""The bench of NVIDIA's rungs: a client of RM and UVM that is opened call by call, and channels of its own.

The calls are those of `drive.nv.rm.Rm`, of which it takes one at a time: so each says which one lies. Kernels run on
the driver's runtime, which is a second client of the process, as a library beside it would be.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final
from weakref import ref

from tinyhw.arch.nv import NvArch
from tinyhw.autogen import nv_rm, nv_rm_alloc, nv_rm_control, nv_rm_status, nv_uvm
from tinyhw.bringup.bench import LARGEST, SHOWN, Beside, TimedBench
from tinyhw.bringup.rung import Absent, Broken
from tinyhw.core.errors import DeviceError
from tinyhw.core.locks import lock
from tinyhw.core.memory import Allocator
from tinyhw.core.port import Port
from tinyhw.drive.kernellog import KernelLog
from tinyhw.drive.nv.channel import Channel, PushQueue
from tinyhw.drive.nv.commands import COMPUTE, COPY, ComputeCommands, CopyCommands, HostCommands, text
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.drive.nv.rm import CTL, UVM, Aperture, Buffer, Card, Gpu, Rm
from tinyhw.wire import rm, uvm

PAGE: Final = 4096
Assemblers = Callable[[NvArch], Callable[[bytes], bytes]]
"""Of a generation: what makes PTX loadable on it."""


class StepRm(Rm):
  """RM's client, opened step by step: what `Rm` does when it is made, as properties."""

  def __init__(self, port: Port) -> None:
    self._port, self.pid = ref(port), port.pid()
    self.lock = lock()
    self.root = 0
    self.gpus: dict[int, Gpu] = {}
    self.buffers: set[Buffer] = set()
    # Below the addresses that the driver's own client gives out, in a space of its own.
    self._low = Allocator(4 << 30, 32 << 30, name="GPU addresses below 1 TiB")
    self._high = Allocator(1 << 41, 1 << 45, name="GPU addresses")
    self._peers: set[frozenset[bytes]] = set()
    self._pages = 0
    self._log = KernelLog(("NVRM",))
    self.kernel_log()

  @cached_property
  def fd(self) -> int:  # type: ignore[override]
    return self._open(CTL)

  @cached_property
  def version(self) -> str:  # type: ignore[override]
    return self._check_version()

  @cached_property
  def cards(self) -> list[Card]:  # type: ignore[override]
    return self._read_cards()

  def begin_client(self) -> int:
    """A client of RM."""
    if not self.root: self.root = self.alloc(0, nv_rm_alloc.NV01_ROOT_CLIENT)
    return self.root

  @cached_property
  def uvm_fd(self) -> int:  # type: ignore[override]
    """UVM, initialized, and the second file that holds the process's memory."""
    fd = self._open(UVM)
    self.uvm(nv_uvm.UVM_INITIALIZE, nv_uvm.UVM_INITIALIZE_PARAMS(), fd=fd)
    self._mm_fd = self._open(UVM)
    self.uvm(nv_uvm.UVM_MM_INITIALIZE, nv_uvm.UVM_MM_INITIALIZE_PARAMS(uvmFd=fd), fd=self._mm_fd,
             accepts=(nv_rm_status.NV_WARN_NOTHING_TO_DO,))
    return fd


class NvBench(TimedBench):
  """See the module: GPU number `index` of the machine behind `port`."""

  def __init__(self, port: Port, index: int = 0, largest: int = LARGEST, beside: Beside | None = None, *,
               assemblers: Assemblers | None = None, qmd: tuple[int, int] | None = None) -> None:
    super().__init__(port, index, largest, beside)
    self.rm = StepRm(port)
    self._assemblers, self._qmd = assemblers, qmd
    self.channels: list[Channel] = []
    self._began: dict[Channel, int] = {}
    self._value = 0
    self.kept: dict[str, bytes] = {}  # binaries that rungs have made

  def begin(self, seconds: float) -> None:
    super().begin(seconds)
    for channel in self.channels: self._began[channel] = channel.queue.ring.at

  def submitted(self) -> list[str]:
    found = []
    for channel in self.channels:
      began = self._began.get(channel, 0)
      lines = [line for s in channel.queue.history if s.start >= began for line in channel.queue.text_of(s)]
      found += [f"{channel.queue.name}: {line.strip()}" for line in lines[-SHOWN:]]
    return found

  def facts(self) -> dict[str, Any]:
    """What RM says, without the UUID and the place on the bus."""
    gpu = self.gpu
    return {"driver": self.rm.version, "name": gpu.name, "arch": gpu.arch.name, "sms": gpu.sms, "tpcs": gpu.tpcs,
            "warps_per_sm": gpu.warps_per_sm, "vram_bytes": gpu.vram_bytes, "engines": list(gpu.engines),
            "classes": {f"{c:#06x}": rm.class_name(c) for c in sorted(gpu.classes)}}

  def secrets(self) -> list[bytes]:
    """The UUID, as tools write it and as structures have it."""
    return [self.gpu.uuid, uvm.uuid_text(self.gpu.uuid).encode()]

  def close(self) -> None:
    """End other processes, the runtime and RM's client; files end with the process."""
    self.end_others()
    with warnings.catch_warnings():
      warnings.simplefilter("ignore", RuntimeWarning)  # that work was left: the rung that is broken has told why
      if "runtime" in self.__dict__: self.runtime.close()
    if self.rm.root:
      try: self.rm.free_object(self.rm.root)
      except (DeviceError, OSError): pass  # a client that RM has ended already

  # ---- the GPU

  @property
  def card(self) -> Card:
    if not 0 <= self.index < len(self.rm.cards):
      raise Broken(f"NV_ESC_CARD_INFO has {len(self.rm.cards)} cards", f"one of number {self.index}",
                   "the kernel's log for NVRM, and lspci")
    return self.rm.cards[self.index]

  def opens(self) -> Any:
    """The card's node joins the client's file, and RM knows the card: what it says of its place among devices."""
    card, c = self.card, nv_rm_control
    self.rm.begin_client()
    fd = self.rm._open(f"/dev/nvidia{card.minor}")
    try:
      self.rm.call(nv_rm.nv_ioctl_register_fd_t(ctl_fd=self.rm.fd), fd)
      return self.ask(self.rm.root, c.NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2,
                      c.NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS(gpuId=card.gpu_id))
    finally: self.port.close(fd)

  @cached_property
  def bare_gpu(self) -> Gpu:
    """The device and its sub-device, and all that RM says of them."""
    self.rm.begin_client()
    return self.rm._open_gpu(self.index, self.card)

  @cached_property
  def gpu(self) -> Gpu:
    """With an address space, which UVM owns, and the doorbell's page."""
    gpu = self.bare_gpu
    self.rm._make_space(gpu)
    self.rm.gpus[self.index] = gpu
    return gpu

  @property
  def arch(self) -> NvArch: return self.bare_gpu.arch

  def ask(self, handle: int, command: int, params: Any) -> Any:
    """A control command."""
    return self.rm.control(handle, command, params)

  def time_ns(self) -> int:
    """PTIMER, as RM reads it."""
    p = self.ask(self.bare_gpu.subdevice, nv_rm_control.NV2080_CTRL_CMD_TIMER_GET_TIME,
                 nv_rm_control.NV2080_CTRL_TIMER_GET_TIME_PARAMS())
    return int(p.time_nsec)

  def free_vram(self) -> int:
    """Bytes of video memory that are free, in whole KiB."""
    return self.rm.fb_info(self.bare_gpu.subdevice, nv_rm_control.NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE) << 10

  # ---- memory

  def take(self, size: int, kind: Aperture = Aperture.SYSTEM, *, host: bool | None = None) -> Buffer:
    """Memory at an address of 40 bits, seen by the host unless it is video memory (or as `host` says)."""
    return self.rm.take(self.gpu, size, kind, host=host, low=True)

  def free(self, *buffers: Buffer) -> None:
    """Given back."""
    for buffer in buffers: self.rm.give(buffer)

  @cached_property
  def signal_page(self) -> Buffer:
    """A page whose first words are the signal of `finish`."""
    page = self.take(PAGE)
    page.bytes()[:] = bytes(page.size)
    return page

  @cached_property
  def signal(self) -> memoryview[int]: return self.signal_page.bytes()[:8].cast("Q")

  # ---- channels

  def channel(self, name: str, engine: int, class_id: int, subchannel: int) -> Channel:
    signal = self.signal
    made = Channel(self.rm, self.gpu, name, engine, class_id, lambda: int(signal[0]),
                   partial(text, class_id=class_id, subchannel=subchannel))
    self.channels.append(made)
    return made

  def compute_channel(self, name: str = "compute channel") -> Channel:
    return self.channel(name, nv_rm_alloc.NV2080_ENGINE_TYPE_GRAPHICS, self.arch.compute_class, COMPUTE)

  @cached_property
  def compute(self) -> Channel: return self.compute_channel()

  @cached_property
  def copier(self) -> Channel:
    first, last = nv_rm_alloc.NV2080_ENGINE_TYPE_COPY0, nv_rm_alloc.NV2080_ENGINE_TYPE_COPY19
    engines = [e for e in self.gpu.engines if first <= e <= last]
    own = [e for e in engines if not self.rm.is_graphics_copy(self.gpu, e)]
    return self.channel("copy channel", (own or engines)[0], self.arch.copy_class, COPY)

  def drop(self, channel: Channel) -> None:
    """Free a channel."""
    self.channels.remove(channel)
    channel.close()

  def commands(self) -> ComputeCommands: return ComputeCommands(self.arch.compute_class, "bring-up")
  def copies(self) -> CopyCommands: return CopyCommands(self.arch.copy_class, "bring-up")

  def next_value(self) -> int:
    self._value += 1
    return self._value

  def write(self, channel: Channel, stream: HostCommands) -> int:
    """Submit, with a signal behind it, and do not wait; the signal's value."""
    value = self.next_value()
    stream.signal(self.signal_page.address, "timeline")
    queue: PushQueue = channel.queue
    queue.submit(stream.bind(timeline=value), value, timeout_s=self.left)
    return value

  def reached(self, channel: Channel, value: int, look_at: str, wanted: str = "it ends") -> None:
    """Wait for a signal's value. Raises Broken, with what the channel's notifier and the kernel's log say."""
    signal, notifier = self.signal, channel.notifier
    self.wait(lambda: signal[0] >= value or notifier.status != 0)
    if signal[0] >= value: return
    raise Broken(f"the signal is {signal[0]:#x}, not {value:#x}; {channel.queue.ring.pointers()}"
                 f"{self.why_stopped(channel)}", wanted, look_at)

  def finish(self, channel: Channel, stream: HostCommands, look_at: str) -> None:
    """Submit and wait. Raises Broken."""
    self.reached(channel, self.write(channel, stream), look_at)

  def why_stopped(self, channel: Channel) -> str:
    """What the error notifier and the kernel's log say, behind a semicolon."""
    said = [f"the notifier tells of {rm.error_name(int(channel.notifier.info32))}, Xid {channel.notifier.info32}"
            ] if channel.notifier.status else []
    if log := self.rm.kernel_log(): said.append(f"the kernel's log: {log[-1]}")
    return "".join(f"; {line}" for line in said)

  # ---- kernels

  @cached_property
  def runtime(self) -> NVRuntime:
    """The driver over the same port. Its waits take no longer than rungs of kernels do."""
    made = NVRuntime(self.port, self.index, timeout_s=10.0, qmd_version=self._qmd)
    made.assemble = self.assembler
    return made

  @cached_property
  def assembler(self) -> Callable[[bytes], bytes]:
    """What makes PTX loadable on the card. Raises Absent without one."""
    if self._assemblers is None: raise Absent("nobody has given an assembler for PTX")
    return self._assemblers(self.arch)


__all__ = ["PAGE", "Aperture", "Buffer", "Channel", "NvBench"]
