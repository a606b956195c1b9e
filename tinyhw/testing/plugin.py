"""pytest's plugin: `--mockgpu` runs tests on mock GPUs, `@pytest.mark.mockgpu(...)` gives a test a machine of its own.

A test that faults, hangs or leaks fails alone: with the report of its own fault, and the next one finds a good machine.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tinyhw.testing import device_chosen

if TYPE_CHECKING:
  from tinyhw.testing.machines import Trial, Wanted
  from tinyhw.testing.queues import Captures

MARKER = ("mockgpu(*cards, check=False, memory=None, seed=None, engine=None, timeout=None): a mock machine of its own "
          "for the test, with these cards (gfx1100 when none is named)")
_TRIAL = pytest.StashKey["Trial"]()
_WRONG = pytest.StashKey[str]()  # what is wrong with a test's marker
_CHOSEN = "tinyhw_device_chosen"  # of what xdist gives a worker: the user has set DEV
_HARMLESS = {"mockgpu", "request", "queue_capture"}  # fixtures that hold no GPU memory


def pytest_addoption(parser: pytest.Parser) -> None:
  group = parser.getgroup("tinyhw", "GPU programs without a GPU (tinyhw)")
  group.addoption("--mockgpu", metavar="CARDS", help="run the tests on a mock machine with these cards, as "
                  "--mockgpu=gfx1100, --mockgpu=gfx1100,gfx1100 or --mockgpu=sm_90; 0: marked tests run on this "
                  "machine's own GPUs")
  group.addoption("--mockgpu-check", action="store_true", help="a test fails where its kernels do what works on the "
                  "mock and need not work on a chip (missing waits and barriers, races, ...)")
  group.addoption("--mockgpu-memory", choices=("strong", "weak"), help="weak: caches keep stale lines, as on a chip")
  group.addoption("--mockgpu-seed", type=int, metavar="N", help="varies the order of the mock's queues")
  group.addoption("--mockgpu-timeout", type=float, metavar="SECONDS", help="what a wait for a GPU may take")
  group.addoption("--mockgpu-leaks", choices=("fail", "ignore"), default="fail", help="what becomes of a test that "
                  "still holds GPU memory after its end (default: fail)")
  group.addoption("--record-failures", metavar="FOLDER", nargs="?", const="captures", help="keep what a failing test "
                  "has submitted to its mock's queues, in FOLDER/TEST.thq (default: captures)")
  group.addoption("--tinyhw-debug", action="store_true", help="record each test's submissions, and open the debugger "
                  "of queues at the last dispatch of one that fails; each test gets a machine of its own")
  parser.addini("mockgpu", "as --mockgpu", default="")


def pytest_configure(config: pytest.Config) -> None:
  config.addinivalue_line("markers", MARKER)
  cards = config.getoption("--mockgpu") or config.getini("mockgpu")
  plugin = MockGPUs(config)
  config.pluginmanager.register(plugin, "tinyhw-mockgpu")
  if cards and cards != "0": plugin.begin(cards)


class MockGPUs:
  """The plugin of one session."""

  def __init__(self, config: pytest.Config) -> None:
    self.config = config
    self.device_chosen = getattr(config, "workerinput", {}).get(_CHOSEN, False) or device_chosen()
    self.real = config.getoption("--mockgpu") == "0"
    self.shared: Wanted | None = None  # what the tests share: --mockgpu
    self._session = ExitStack()
    self._trial: Trial | None = None
    self._record: Captures | None = None
    if folder := config.getoption("--record-failures"):
      from tinyhw.testing.queues import Captures  # the tools of queues load where they are asked for
      self._record = Captures(folder, self._session)

  def options(self) -> dict[str, Any]:
    """What the command line asks of each machine."""
    get = self.config.getoption
    return {"check": get("--mockgpu-check"), "memory": get("--mockgpu-memory"), "seed": get("--mockgpu-seed"),
            "timeout": get("--mockgpu-timeout")}

  def wanted(self, marker: pytest.Mark | None) -> Wanted:
    """What a test asks for that has this marker. Raises InvalidArgument."""
    if marker is None and self.shared is not None: return self.shared
    return self.named(marker.args if marker else (), marker.kwargs if marker else {})

  def named(self, cards: Iterable[Any], options: Mapping[str, Any]) -> Wanted:
    from tinyhw.testing.machines import Wanted
    return Wanted.named(cards, **{k: v for k, v in self.options().items() if v not in (None, False)} | dict(options))

  def begin(self, cards: str) -> None:
    """One machine for all tests that do not ask for their own; modules and fixtures may use it too."""
    from tinyhw.core.errors import Error
    from tinyhw.testing.machines import asked
    try: self.shared = self.named([cards], {})
    except Error as error: raise pytest.UsageError(str(error)) from None
    self._session.enter_context(asked(self.shared, self.device_chosen))

  @pytest.hookimpl(optionalhook=True)
  def pytest_configure_node(self, node: Any) -> None:
    """pytest-xdist's, before a worker starts: it inherits the environment, with what this plugin has set."""
    node.workerinput[_CHOSEN] = self.device_chosen

  def pytest_unconfigure(self) -> None:
    self._session.close()

  def pytest_report_header(self) -> str | None:
    if self.shared is None: return None
    tensors = "" if self.shared.device or self.device_chosen else " (ready code objects; tensors are on LLVM)"
    return f"mock GPUs: {', '.join(self.shared.cards)}{tensors}"

  # ---- one test

  @pytest.hookimpl(wrapper=True)
  def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
    marker = item.get_closest_marker("mockgpu")
    uses = marker is not None or "mockgpu" in getattr(item, "fixturenames", ())
    if not uses and self.shared is None: return (yield)
    from tinyhw.core.errors import Error
    try: wanted = self.wanted(marker)
    except Error as error:
      item.stash[_WRONG] = str(error)
      return (yield)
    if self.real: return (yield)
    try:
      with self._machine(item, wanted): return (yield)
    finally: self._debug(item)

  def _debug(self, item: pytest.Item) -> None:
    """The debugger at a failed test's last dispatch, where somebody is at the terminal."""
    path = item.stash.get(_CAPTURE, None)
    capturing: Any = self.config.pluginmanager.get_plugin("capturemanager")
    if path is None: return
    if not item.stash.get(_FAILED, False):
      from tinyhw.testing.queues import forget
      return forget(path)
    if capturing is not None: capturing.suspend(in_=True)  # as for pdb
    try:
      if not sys.stdin.isatty(): return
      from tinyhw.testing.queues import debug
      debug(path)
    finally:
      if capturing is not None: capturing.resume()

  @contextmanager
  def _machine(self, item: pytest.Item, wanted: Wanted) -> Iterator[None]:
    """The machine of a test, good again afterwards."""
    from tinyhw.devices.registry import Device
    from tinyhw.testing.machines import Trial, asked, limited, users_line, warned
    with ExitStack() as stack:
      if wanted is not self.shared:
        stack.enter_context(Device.aside())
        stack.enter_context(asked(wanted, self.device_chosen))
      if self.config.getoption("--tinyhw-debug"):
        from tinyhw.testing.queues import recorded
        item.stash[_CAPTURE] = stack.enter_context(recorded(item.name))
      stack.enter_context(warned(wanted))
      stack.enter_context(limited(wanted.timeout))
      if self._record is not None: stack.enter_context(self._record.test(item, wanted is self.shared))
      Device.notes_places = users_line
      self._trial, item.stash[_FAILED] = Trial(), False  # a plugin may run the test again
      item.stash[_TRIAL] = self._trial
      try: yield
      finally:
        self._trial = None
        Device.notes_places = None
        item.stash[_TRIAL].mend()

  @pytest.hookimpl(tryfirst=True)
  def pytest_runtest_setup(self, item: pytest.Item) -> None:
    """A wrong marker fails its test alone."""
    if (wrong := item.stash.get(_WRONG, None)) is not None: pytest.fail(wrong, pytrace=False)
    marker = item.get_closest_marker("mockgpu") if self.real else None
    if marker is not None: need(self.wanted(marker).cards)

  @pytest.hookimpl(wrapper=True)
  def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    trial = self._trial
    if trial is None or fixturedef.scope == "function": return (yield)
    from tinyhw.testing.machines import in_use
    before = in_use()
    try: return (yield)
    finally: trial.lent |= in_use() - before

  @pytest.hookimpl(wrapper=True, trylast=True)
  def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    if (trial := item.stash.get(_TRIAL, None)) is None: return result
    if text := trial.failures(): pytest.fail(text, pytrace=False)
    held = set(getattr(item, "fixturenames", ())) - _HARMLESS or getattr(item, "cls", None) is not None
    if self._leaks_fail and not held and (text := trial.leaks()): pytest.fail(text, pytrace=False)
    return result

  @property
  def _leaks_fail(self) -> bool: return bool(self.config.getoption("--mockgpu-leaks") == "fail")

  @pytest.hookimpl(wrapper=True, tryfirst=True)
  def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
    holders = [getattr(item, "funcargs", None) or {}]
    if getattr(item, "cls", None) is not None: holders.append(vars(item.instance))  # type: ignore[attr-defined]
    result = yield
    trial = item.stash.get(_TRIAL, None)
    if trial is None or item.stash.get(_FAILED, False): return result
    if text := trial.failures(): pytest.fail(text, pytrace=False)
    if self._leaks_fail and (text := trial.leaks(*holders)): pytest.fail(text, pytrace=False)
    return result

  @pytest.hookimpl(wrapper=True)
  def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    error = call.excinfo
    if error is not None and item.stash.get(_TRIAL, None) is not None and not self.config.getoption("fulltrace"):
      shorten(error)
    report = yield
    trial = item.stash.get(_TRIAL, None)
    if trial is not None and report.failed:
      item.stash[_FAILED] = True
      if text := trial.record(): report.sections.append(("mock GPU", text))
      if self._record is not None and (text := self._record.keep(item)): report.sections.append(("queues", text))
      if (path := item.stash.get(_CAPTURE, None)) is not None:
        from tinyhw.testing.queues import told
        report.sections.append(("queues", told(path)))
    return report


_FAILED = pytest.StashKey[bool]()
_CAPTURE = pytest.StashKey[Path]()  # of what the test submits, with --tinyhw-debug


def shorten(error: pytest.ExceptionInfo[BaseException]) -> None:
  """Leave tinyhw's own frames out of the traceback of its errors: the user's line and the message say all."""
  from tinyhw.core.errors import Error
  from tinyhw.testing.machines import PACKAGE
  def ours(error: pytest.ExceptionInfo[BaseException]) -> bool: return isinstance(error.value, Error)
  if not ours(error): return
  for entry in error.traceback:  # pytest asks each frame's module whether to show it
    if str(entry.path).startswith(PACKAGE): entry.frame.f_globals["__tracebackhide__"] = ours
  e: BaseException = error.value
  while isinstance(after := e.__context__, Error): e.__context__ = after.__context__  # the same, told twice


def need(cards: tuple[str, ...]) -> None:
  """Skip the test where this machine has not these GPUs."""
  from tinyhw.core.errors import Error
  from tinyhw.devices.registry import Device
  from tinyhw.testing.machines import Wanted
  for card, name in zip(cards, Wanted(cards).devices, strict=True):
    path = "/dev/nvidiactl" if name.startswith("NV") else "/dev/kfd"
    if not os.path.exists(path): pytest.skip(f"needs {', '.join(cards)}, and this machine has no {path}")
    try: runtime: Any = Device[name].runtime
    except Error as error: pytest.skip(f"needs {', '.join(cards)}: {error}")
    target = runtime.arch.name if name.startswith("NV") else getattr(runtime, "target", "")
    if target != card: pytest.skip(f"needs {', '.join(cards)}, and {name} is {target}")


class MockGPU:
  """What the fixture `mockgpu` gives a test: the machine that its devices are on."""

  def __init__(self, cards: tuple[str, ...]) -> None:
    self.cards = cards

  @property
  def devices(self) -> tuple[str, ...]:
    """The names of its devices: ("AMD", "AMD:1"), or ("NV",) for sm_90."""
    from tinyhw.testing.machines import Wanted
    return Wanted(self.cards).devices

  @property
  def machine(self) -> Any:
    """The mock machine of the first card (`mock.amd.machine.Machine`, `mock.nv.machine.NvMachine`), opened if it was
    not; None on a machine with real GPUs."""
    from tinyhw.devices.registry import Device
    kind = self.devices[0].partition(":")[0]
    if kind == "NV": Device.nv_port()
    else: Device.amd_port()
    return Device.machines.get(kind)

  def report(self) -> list[str]:
    """What the machine accepted without modelling it, found doubtful or stopped at, so far."""
    from tinyhw.devices.registry import Device
    return Device.report()

  def findings(self) -> Any:
    """What the checks found so far (`check=True`): an `emulator.check.report.Report`."""
    from tinyhw.devices.registry import Device
    return Device.findings()

  def reset(self, device: str | None = None) -> None:
    """Go on after a fault that the test expects; what tensors had on that card (the first) is lost."""
    from tinyhw.devices.registry import Device
    Device.reset(device or self.devices[0])


@pytest.fixture
def mockgpu(request: pytest.FixtureRequest) -> MockGPU:
  """The mock machine of this test; its cards are the marker's, those of --mockgpu, or one gfx1100."""
  plugin: Any = request.config.pluginmanager.get_plugin("tinyhw-mockgpu")
  return MockGPU(plugin.wanted(request.node.get_closest_marker("mockgpu")).cards)


class QueueCapture:
  """What the fixture `queue_capture` gives a test: the capture of its own queues."""

  def __init__(self, path: Path) -> None:
    self.path = path

  def read(self) -> Any:
    """All that was submitted so far, when it is done: a `tinyhw.queues.capture.Capture`."""
    from tinyhw.devices.captured import RECORDING
    from tinyhw.devices.registry import Device
    from tinyhw.queues.capture import Capture
    Device.synchronize()
    if RECORDING.recorder is not None: RECORDING.recorder.flush()
    return Capture(self.path)

  def assert_stream(self, golden: str | os.PathLike[str]) -> None:
    """The test has submitted what a capture holds, as `tinyhw.queues.diff.assert_stream` compares them."""
    from tinyhw.queues.diff import assert_stream
    self.read().close()
    assert_stream(golden, self.path)


@pytest.fixture
def queue_capture(mockgpu: MockGPU, tmp_path: Path) -> Iterator[QueueCapture]:
  """The test has devices of its own, and what it submits to their queues is recorded."""
  from tinyhw.toolbox.record import recording
  with recording(tmp_path / "queues.thq"): yield QueueCapture(tmp_path / "queues.thq")
