"""What `tinyhw run` leaves for the processes that a program starts, so that each has mock cards of its own.

It is in the environment, as everything is that children inherit:

- Python's children find a `sitecustomize` on PYTHONPATH that makes a machine before their program begins, and then runs
  the one that would have been found without it. So do those of `multiprocessing` that are spawned.
- Triton, here and in children, finds a ptxas (`ptxas`) that leaves PTX as it is.
- Native children find libraries on LD_LIBRARY_PATH under the names that the driver and the runtime go by. They do one
  thing: when they are loaded, they begin the process anew as `tinyhw run PROGRAM ARGUMENTS`.

Nothing is shared: a child's machine has its own memory, clock and report. Children that `fork` makes have one too,
unless their parent had initialized the driver, which no child may use then (`mock.cuda.library.library`).
"""
from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tinyhw.core.ending import Step, at_end
from tinyhw.core.store import make_own_folder, own_folder, read_own, write_own

if TYPE_CHECKING:
  from tinyhw.emulator.check.checker import Checker
  from tinyhw.mock.cuda.machine import CudaMachine

SILENCE_S: Final = 0.5  # without a call, after which what is queued is done; longer than programs compute in between
CARDS: Final = "TINYHW_RUN_CARDS"
START: Final = "from tinyhw.cli import main; main()"
_HIGH: Final = 500  # of a descriptor
_ROOM: Final = 4096  # bytes for the program's path
_READLINK, _EXECVE = 89, 59  # system calls of x86-64
_SHIM: Final = f"""import sys
if sys.orig_argv[2:3] != [{START!r}]:  # that makes its own
  from tinyhw.cli import children
  children.begin(__file__)
"""


def offer(cards: str) -> Path:
  """Have children find mock cards of this kind, also those that outlive this process. The folder where they do."""
  from tinyhw.autogen import cuda
  from tinyhw.cli import ptxas
  from tinyhw.mock.cuda.library.library import DEVELOPMENT, SONAME
  from tinyhw.mock.cuda.library.shared import library
  from tinyhw.mock.cuda.nvml import library as nvml
  from tinyhw.mock.cuda.runtime.functions import NAMES
  from tinyhw.mock.cuda.runtime.functions import SONAME as RUNTIME
  start = again([sys.executable, "-c", START, "run", "--mockgpu", cards])
  driver = sorted({*cuda.FUNCTIONS, *cuda.BY_VALUE})
  files = {"sitecustomize.py": _SHIM.encode(), "ptxas": ptxas.script().encode()}
  for name, symbols, version in ((SONAME, driver, None), (DEVELOPMENT, driver, None), (RUNTIME, NAMES, RUNTIME),
                                 (nvml.SONAME, nvml.NAMES, None)):
    files[name] = library(name, symbols, version, start)
  folder = folder_of(files)
  for variable in ptxas.VARIABLES: os.environ.setdefault(variable, str(folder / "ptxas"))
  os.environ[CARDS] = cards
  package = str(Path(__file__).parents[2])
  _first("PYTHONPATH", str(folder), package)
  _first("LD_LIBRARY_PATH", str(folder))
  return folder


def _first(variable: str, *places: str) -> None:
  """Have places come first in a list of folders."""
  old = [p for p in os.environ.get(variable, "").split(os.pathsep) if p and p not in places]
  os.environ[variable] = os.pathsep.join((*places, *old))


def _here(folder: Path, names: Sequence[str], file: str) -> Path:
  """A folder, in this one, where programs that look through folders for a library find the one that this process has
  loaded from `file`: the linker knows it to be the same. In other processes its links lead nowhere, and they look
  further."""
  opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
  try: number = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, _HIGH)  # a number that no child is handed
  except OSError: number = os.dup(opened)
  os.close(opened)
  place = folder / f"in-{number}"
  with contextlib.suppress(FileExistsError): place.mkdir(0o700)
  for name in names:
    with contextlib.suppress(FileExistsError): (place / name).symlink_to(f"/proc/self/fd/{number}")
  return place


def folder_of(files: Mapping[str, bytes]) -> Path:
  """A folder with these files, which all of this user's processes that want the same ones share.

  It is called after what is in it and stays, so however processes end, and whatever outlives them, there is one of it.
  Where the name is somebody else's, or others may write there, it is a new folder, which is removed at exit.
  """
  digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
  folder = Path(tempfile.gettempdir()) / f"tinyhw-run-{os.geteuid()}-{digest}"
  try: make_own_folder(folder)
  except OSError:
    folder = Path(tempfile.mkdtemp(prefix="tinyhw-run-"))
    at_end(Step.FILES, functools.partial(shutil.rmtree, folder, ignore_errors=True))
  with own_folder(folder) as at:
    for name, data in files.items():
      with contextlib.suppress(OSError):
        if read_own(at, name) == data: continue
      write_own(at, name, data, 0o700)  # one of them is a program; others may be loading what is there
  return folder


def again(words: Sequence[str]) -> bytes:
  """Machine code of x86-64 that a library begins with: execve of these words, the process's own program, and its
  arguments. It comes back where there is no argv, or execve fails. All that it says lies behind it."""
  count = len(words)
  strings = [b"/proc/self/exe", *(w.encode() for w in words)]
  code = bytearray()
  places: list[tuple[int, int]] = []  # of an offset that is wanted, and of which string

  def lea(register: bytes, which: int) -> None:  # lea register, [rip + string]
    code.extend(b"\x48\x8d" + register + bytes(4))
    places.append((len(code) - 4, which))
  code += b"\x55\x53\x41\x54\x41\x55\x48\x89\xe5"  # push rbp; push rbx; push r12; push r13; mov rbp, rsp
  code += b"\x89\xfb\x49\x89\xf4\x49\x89\xd5"  # mov ebx, edi; mov r12, rsi; mov r13, rdx
  code += b"\x85\xdb\x0f\x8e" + bytes(4)  # test ebx, ebx; jle out
  jumps = [len(code)]
  code += b"\x48\x81\xec" + struct.pack("<i", _ROOM)  # sub rsp, room
  lea(b"\x3d", 0)  # rdi
  code += b"\x48\x89\xe6\xba" + struct.pack("<i", _ROOM - 1)  # mov rsi, rsp; mov edx, room - 1
  code += b"\xb8" + struct.pack("<i", _READLINK) + b"\x0f\x05"  # mov eax, readlink; syscall
  code += b"\x48\x85\xc0\x0f\x8e" + bytes(4)  # test rax, rax; jle out
  jumps.append(len(code))
  code += b"\xc6\x04\x04\x00\x49\x89\xe0"  # mov byte [rsp + rax], 0; mov r8, rsp
  code += b"\x8d\x83" + struct.pack("<i", count + 3)  # lea eax, [rbx + count + 3]
  code += b"\x48\xc1\xe0\x03\x48\x29\xc4\x48\x83\xe4\xf0"  # shl rax, 3; sub rsp, rax; and rsp, -16
  for i in range(count):
    lea(b"\x05", i + 1)  # rax
    code += b"\x48\x89\x84\x24" + struct.pack("<i", 8 * i)  # mov [rsp + 8 i], rax
  code += b"\x4c\x89\x84\x24" + struct.pack("<i", 8 * count)  # mov [rsp + 8 count], r8
  code += b"\xb9\x01\0\0\0"  # mov ecx, 1
  top = len(code)
  code += b"\x49\x8b\x04\xcc"  # mov rax, [r12 + 8 rcx]
  code += b"\x48\x89\x84\xcc" + struct.pack("<i", 8 * count)  # mov [rsp + 8 rcx + 8 count], rax
  code += b"\xff\xc1\x48\x85\xc0\x75"  # inc ecx; test rax, rax; jnz top
  code += struct.pack("<b", top - len(code) - 1)
  lea(b"\x3d", 1)  # rdi
  code += b"\x48\x89\xe6\x4c\x89\xea\xb8" + struct.pack("<i", _EXECVE) + b"\x0f\x05"  # mov rsi, rsp; mov rdx, r13; ...
  for at in jumps: struct.pack_into("<i", code, at - 4, len(code) - at)
  code += b"\x48\x89\xec\x41\x5d\x41\x5c\x5b\x5d\xc3"  # out: mov rsp, rbp; pop r13; pop r12; pop rbx; pop rbp; ret
  starts = []
  for text in strings:
    starts.append(len(code))
    code += text + b"\0"
  for at, which in places: struct.pack_into("<i", code, at, starts[which] - at - 4)
  return bytes(code)


def begin(shim: str) -> None:
  """Make a machine for this Python process, as its `sitecustomize`; then do what another one would."""
  place = Path(shim).parent
  if cards := os.environ.get(CARDS): at_end(Step.REPORTS, machine(cards, place), inherited=True)
  spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if p != str(place)])
  if spec is not None and spec.loader is not None:
    module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def carried(ptx: bytes, arch: str) -> bytes | None:
  """What mock cards take for machine code of a PTX module: an ELF with it; None where only the PTX itself will do."""
  from tinyhw.arch.nv import NV_ARCHES
  from tinyhw.core.errors import Error
  from tinyhw.devices.assemble import bare
  if (chip := NV_ARCHES.get(arch.rstrip("af"))) is None: return None
  try: return bare(ptx, chip)
  except Error: return None


def machine(cards: str, folder: Path) -> Callable[[], None]:
  """A machine of mock cards behind the process's libraries of CUDA, which programs find by way of `folder` (see
  `offer`); what tells of it at the end, each line once, for programs have more than one end."""
  from tinyhw.compile.nvidia.installed import files
  from tinyhw.devices.mocked import mock_machine, mock_options
  from tinyhw.mock.cuda.calls import EXPORT_TABLE
  from tinyhw.mock.cuda.library.library import DEVELOPMENT, SONAME, forks, links, management, runtime, stand_in
  from tinyhw.mock.cuda.modules.rtc import compiles
  names = tuple(c.strip() for c in cards.split(",") if c.strip())
  watching: Checker | None = None
  if asked := os.environ.get("EMU_CHECK", ""):
    from tinyhw.emulator.check.checker import checker
    watching = checker(asked)

  def new() -> CudaMachine:
    made: CudaMachine = mock_machine("CUDA", names, **mock_options(watching))[0]
    made.go_on_after(SILENCE_S)
    return made
  library = stand_in(new())
  os.environ["MOCKGPU"] = cards
  _first("LD_LIBRARY_PATH", str(_here(folder, (SONAME, DEVELOPMENT), library._name)))
  told: set[str] = set()
  with contextlib.suppress(OSError): error = os.dup(2)

  def say(line: str) -> None:
    if line in told: return
    told.add(line)
    try:
      if sys.stderr is None: raise ValueError
      click.echo(f"tinyhw: {line}", err=True)
    except (ValueError, OSError):  # the program has closed it
      with contextlib.suppress(NameError, OSError): os.write(error, f"tinyhw: {line}\n".encode())

  def tell() -> None:
    with contextlib.suppress(AttributeError, ValueError, OSError): sys.stdout.flush()  # a program may have closed it
    behind = standing()
    for finding in watching.untold if watching is not None else (): say(f"check: {finding}")
    if behind is None: return
    asked = [line for line in behind.report() if line.startswith(EXPORT_TABLE)]  # why all else failed, maybe
    lines = *asked, *behind.refused, *behind.report()
    # Some go on without a GPU, and say nothing.
    if lines and behind.ready and not behind.executed: say("no kernel ran on a mock card; what was refused:")
    for line in lines: say(line)
    if behind.picture is not None:
      from tinyhw.devices.examined import streams_of  # the tools of queues load where something stands
      for line in streams_of(behind.picture): say(line)

  runtime()
  management()
  links(files("nvJitLink", "nvjitlink"))
  if (file := next(files("nvrtc", "cuda_nvrtc"), None)) is not None: compiles(file, carried)
  standing = forks(new)
  return tell
