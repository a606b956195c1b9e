"""Kernels as LLVM IR, compiled here through llvmlite, so that no compiler needs to be installed."""
from __future__ import annotations

import gc
import importlib
import itertools
import os
import signal
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.strength import SEED, THOROUGH, VARIABLE, examples

# A loaded machine makes no test fail: time is what `tinyhw bench` measures. The quick run draws the same examples each
# time; the thorough one draws new ones and tries again what it has found in `.hypothesis`.
ALWAYS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=100, derandomize=True, **ALWAYS)
settings.register_profile("thorough", max_examples=examples(100), print_blob=True, **ALWAYS)
settings.load_profile("thorough" if THOROUGH else "quick")
# Hypothesis draws constants, too, that it has read out of all modules: any change of code would change what the quick
# run draws, and to read them takes each worker 13 seconds in a fresh clone. Where its name has changed, it reads them.
LOCAL = "is_local_module_file"
if not THOROUGH and LOCAL in vars(providers): vars(providers)[LOCAL] = lambda path: False
os.environ["TINYHW_CACHE"] = "0"  # tests compile what they test, and leave nothing in a home
os.environ.pop("CACHEDB", None)

# Looking every 700 objects for cycles among all that thousands of tests were collected into took a tenth of the run; so
# would each `gc.collect()` of a test, were not out of its sight what is there to stay.
gc.set_threshold(100_000)
SETTLED = 16    # modules, after which what is left counts as there to stay
TOGETHER = 8    # tests of a file that stay together where not all may run
_began = time.monotonic()

# Processes that tests start find bytecode, also where the environment has Python write none: it is in a folder of the
# run's own, which workers of pytest inherit.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
  BYTECODE = tempfile.TemporaryDirectory(prefix="tinyhw-bytecode-")
  os.environ["PYTHONPYCACHEPREFIX"] = BYTECODE.name

HEADER = 'target triple = "amdgcn-amd-amdhsa"\ntarget datalayout = "{layout}"\n'
FOOTER = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
attributes #0 = {{ {attributes} }}
!llvm.module.flags = !{{!0}}
!0 = !{{i32 1, !"amdhsa_code_object_version", i32 {version}}}
"""
SIZE = '"amdgpu-flat-work-group-size"="1,{}"'


def pytest_sessionstart(session: pytest.Session) -> None:
  """Says the seed of a thorough run, also where pytest is quiet."""
  # a shell has what it runs in the background ignore Ctrl-C, which some tests press
  if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
  terminal = session.config.pluginmanager.get_plugin("terminalreporter")
  if THOROUGH and terminal: terminal.write_line(f"{VARIABLE}={SEED}")


def pytest_addoption(parser: pytest.Parser) -> None:
  parser.addoption("--within", type=float, metavar="SECONDS",
                   help="begin no test later; those that are left out lie in all files (make room)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
  """Where time is short, tests run a few of each file at a time."""
  if config.getoption("within") is None: return
  place = {item: n // TOGETHER for n, item in enumerate(items)}
  items.sort(key=lambda item: zlib.crc32(f"{item.path} {place[item]}".encode()))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
  within = item.config.getoption("within")
  if within is not None and time.monotonic() - _began > within: pytest.skip(f"it would begin after {within:g} s")


def settle() -> None:
  """What is alive now is not looked through for garbage any more."""
  gc.collect()
  gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
  """Of pytest's workers each reads a share of the test files before the others: these it finds as bytecode then.
  Rewriting the assertions of all files takes most of the time of collecting."""
  if session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS: return
  worker, count = (os.environ.get(f"PYTEST_XDIST_{name}", "") for name in ("WORKER", "WORKER_COUNT"))
  if not worker: return
  files = sorted((session.config.rootpath / "tests").rglob("test_*.py"))
  for path in files[int(worker.removeprefix("gw"))::int(count)]:
    # what goes wrong is told when pytest collects the file
    with suppress(Exception, pytest.skip.Exception):
      importlib.import_module(".".join(path.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_finish(session: pytest.Session) -> None:
  """The tests themselves, and all that they imported, stay."""
  settle()


_modules = itertools.count(1)


@pytest.fixture(autouse=True, scope="module")
def what_caches_keep_stays() -> Iterator[None]:
  """Now and then what earlier tests left in caches is taken out of the collector's sight."""
  if next(_modules) % SETTLED == 0: settle()
  yield


@cache
def build(body: str, cpu: str = "gfx1100", version: int = 500, attributes: str = SIZE.format(256),
          opt: int = 2) -> bytes:
  """A relocatable code object with the kernels of an LLVM IR text."""
  import llvmlite.binding as llvm
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=cpu, opt=opt, reloc="pic")
  text = HEADER.format(layout=machine.target_data) + body + FOOTER.format(attributes=attributes, version=version)
  module = llvm.parse_assembly(text)
  module.verify()
  return bytes(machine.emit_object(module))


@pytest.fixture(autouse=True)
def emulator_of_its_own() -> Iterator[None]:
  """What the environment says of EMU counts from when it is first used until it is closed: no test has another's."""
  yield
  if (module := sys.modules.get("tinyhw.devices.registry")) is not None:
    for device in module.Device.opened:
      if device.name.startswith("EMU"): device.close()


@pytest.fixture(scope="session")
def code_object() -> Callable[..., bytes]: return build


ADD = """
define amdgpu_kernel void @add(ptr addrspace(1) %out, ptr addrspace(1) %a, float %k) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %group, 64
  %i = add i32 %base, %id
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %va = load float, ptr addrspace(1) %pa
  %sum = fadd float %va, %k
  %po = getelementptr float, ptr addrspace(1) %out, i32 %i
  store float %sum, ptr addrspace(1) %po
  ret void
}
"""


@pytest.fixture(scope="session")
def add_source() -> str:
  """out[i] = a[i] + k, 64 work-items a workgroup."""
  return ADD


@pytest.fixture(scope="session")
def add_kernel() -> bytes: return build(ADD)
