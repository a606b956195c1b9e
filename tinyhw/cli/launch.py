"""`tinyhw launch`: run a kernel of a code object from the shell."""
from __future__ import annotations

import importlib
import json
import math
import os
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from tinyhw.cli import checks, complete, files, progress
from tinyhw.cli.files import contents, load
from tinyhw.cli.numbers import Real, Whole
from tinyhw.core.environment import count, real, whole
from tinyhw.core.errors import DeviceError, InvalidArgument, LDSWarning
from tinyhw.core.written import writing
from tinyhw.devices.registry import Device, mock_cards
from tinyhw.kernels.contents import require_code
from tinyhw.kernels.launch import Binary, default_device
from tinyhw.kernels.sources import Source, device_for, refuse_options, source_of

if TYPE_CHECKING:
  from tinyhw.emulator.check.report import Report

TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
         "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64}
SMALL = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}  # of PyPI's ml_dtypes
NAMES = ", ".join([*TYPES, *SMALL])
LONGEST = 400  # letters of a number: the least double has 325 digits behind its point
NO_CARD = "set MOCKGPU=1 for a mock gfx1100, or run it on the emulator itself with --device EMU"
Argument = npt.NDArray[np.generic] | np.generic | int | float | None


def parse_dims(text: str) -> tuple[int, int, int]:
  """"4" or "4,2" or "4,2,1" to three counts."""
  if len(text) > LONGEST: raise InvalidArgument(f"{len(text):,} letters", where="--grid, --block or --cluster")
  parts = text.split(",")
  counts = [count(p.strip()) for p in (*parts, "1", "1")[:3]]
  if len(parts) > 3 or None in counts:
    raise InvalidArgument(f"{text!r} is not X, X,Y or X,Y,Z", where="--grid, --block or --cluster")
  x, y, z = (n or 0 for n in counts)
  return x, y, z


def type_named(name: str) -> np.dtype[Any] | None:
  """NumPy's type of a name; None for a name that is none. Raises InvalidArgument where PyPI's ml_dtypes is missing."""
  if name in TYPES: return np.dtype(TYPES[name])
  if name not in SMALL: return None
  try: package = importlib.import_module("ml_dtypes")  # which only these need
  except ImportError:
    raise InvalidArgument(f"{name} is a type of the package ml_dtypes", hint="pip install ml_dtypes") from None
  found: np.dtype[Any] = np.dtype(getattr(package, SMALL[name]))
  return found


def parse_argument(text: str) -> Argument:
  """A kernel argument: `a.npy` (a buffer), `out:f32:1024` (a zeroed buffer), `7:i32` (a value), `7`, `0.5`, `null`."""
  where = f"--arg {text}" if len(text) <= LONGEST else "--arg"
  if text == "null": return None
  if text.endswith(".npy"): return load(text, where)
  head, *rest = text.split(":")
  value: np.generic
  if head == "out":
    kind, size = (type_named(rest[0]), count(rest[1])) if len(rest) == 2 else (None, None)
    if kind is None or size is None:
      raise InvalidArgument("is not out:TYPE:COUNT", where=where, hint=f"TYPE is one of {NAMES}")
    try:
      if size * kind.itemsize > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"): raise MemoryError
      return np.zeros(size, kind)
    except MemoryError: raise InvalidArgument("is more than this machine has memory", where=where) from None
  if len(text) > LONGEST: raise InvalidArgument(f"a number of {len(head):,} letters", where=where)
  floats = bool(rest) and rest[0][:1] in {"f", "b"}
  number: float | None = None if floats else whole(head)
  if number is None: number = real(head)
  if number is None:
    raise InvalidArgument("is no .npy file, out:TYPE:COUNT, VALUE:TYPE or number that a double holds", where=where)
  if not rest: return number
  kind = type_named(rest[0]) if len(rest) == 1 else None
  if kind is None:
    raise InvalidArgument(f"has no type {':'.join(rest)!r}", where=where, hint=f"TYPE is one of {NAMES}")
  if isinstance(number, float) and not floats: raise InvalidArgument(f"{head} is no integer", where=where)
  try:
    with np.errstate(over="ignore"): value = np.array([number], kind)[0]
    if floats and math.isfinite(number) and not math.isfinite(value): raise OverflowError
  except OverflowError: raise InvalidArgument(f"{head} does not fit {rest[0]}", where=where) from None
  return value


class LaunchVerb(checks.Checked):
  """The verb, with the list of checks under its help."""

  def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    from tinyhw.emulator.check.report import KINDS
    with formatter.section("Checks (--check; --check=NAME,... chooses)"):
      formatter.write_dl(list(KINDS.items()))


@click.command(cls=LaunchVerb)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kernel", "-k", default=None, shell_complete=complete.kernel,
              help="Name of the kernel in FILE; may be left out where there is one.")
@click.option("--grid", "-g", default="1", show_default=True, help="Workgroups, as X,Y,Z.")
@click.option("--block", "-b", default="1", show_default=True, help="Work-items of a workgroup, as X,Y,Z.")
@click.option("--cluster", default=None, metavar="X,Y,Z",
              help="Blocks of a cluster, where a kernel of PTX does not say it.")
@click.option("--arg", "-a", "arguments", multiple=True, help="One for each kernel argument, in order.")
@click.option("--shared", "-s", type=Whole(min=0), default=0, metavar="BYTES",
              help="Dynamic LDS of a workgroup, in bytes.")
@click.option("--timeout", type=Real(), default=None, metavar="SECONDS",
              help="Take the launch off the device after so many seconds.")
@click.option("--device", default=None,
              help="Device to run on [default: $DEV, else AMD; EMU for MOCKGPU=gfx1152].")
@click.option("--save", "-o", multiple=True, metavar="N=FILE.npy", help="Write the N-th buffer (from 0) after the run.")
@click.option("--json", "as_json", is_flag=True, help="Print the buffers as one JSON object.")
@click.option("--option", "options", multiple=True, metavar="TEXT",
              help="For CUDA C++ an option of nvrtc, for HIP C++ one of clang, such as --option=-DN=4.")
@click.option("--debug", is_flag=True, help="Stand before the first instruction and take the debugger's commands.")
@click.option("--report", "report_form", type=click.Choice(["auto", "text", "json", "html"]), is_flag=False,
              flag_value="auto", default=None, help="Report what the kernel executed, as text, JSON or a page  [auto: "
              "what --report-file is named for, else text].")
@click.option("--report-file", type=click.Path(dir_okay=False, path_type=Path), default=None, metavar="FILE",
              help="Write the report to FILE; .html and .json say its form.")
@click.option("--exactness", is_flag=True, help="Report which executed instructions were not exact, what they reached.")
@click.option("--command", "-x", "script", type=click.Path(path_type=Path), default=None, metavar="FILE",
              help="With --debug: take the commands from FILE.")
@checks.option("status 1 if there are any")
def command(file: Path, kernel: str | None, grid: str, block: str, cluster: str | None, arguments: tuple[str, ...],
            shared: int, timeout: float | None, device: str | None, save: tuple[str, ...], as_json: bool, debug: bool,
            report_form: str | None, report_file: Path | None, exactness: bool, script: Path | None,
            check: str | None, options: tuple[str, ...]) -> None:
  """Run KERNEL of FILE (an AMDGPU code object, PTX, CUDA or HIP C++) and show its buffers.

  \b
  Arguments (--arg), one for each parameter, in order:
    a.npy          a buffer with this array
    out:f32:1024   a buffer of 1024 zeros
    7:i32          a value of that type; plain 7 or 0.5 takes the kernel's
    null           a null pointer; for a pointer to LDS, 256 is its bytes

  \b
  --device EMU, --debug, --report and --exactness run the kernel on the
  emulator itself, for whatever generation FILE is; no card, no mock.

  \b
  Example:
    MOCKGPU=1 tinyhw launch add.co --kernel add --grid 4 --block 256 \\
        --arg a.npy --arg b.npy --arg out:f32:1024 --save 2=sum.npy
  """
  if device is not None: device = Device.canonicalize(device, "--device")
  chosen = Device.chosen  # a DEV that names no device is refused, whatever else was asked for
  targets = [parse_save(s) for s in save]
  values = [parse_argument(a) for a in arguments]
  binary = contents(file)
  source = source_of(file) or source_of(binary, device or chosen)
  if source is None: require_code(binary, str(file))
  given: Binary = file if source is not None and file.suffix in {".cu", ".hip"} else binary
  what = (given, kernel or only_kernel(binary, file, source), parse_dims(grid), parse_dims(block), values)
  if source is None: refuse_options(options, "--option")
  clusters = None if cluster is None else parse_dims(cluster)
  form = report_form
  if form in {None, "auto"} and (report_file is not None or form): form = form_of(report_file)
  looks = [name for name, on in (("--debug", debug), ("--report", form), ("--exactness", exactness)) if on]
  if looks: on_emulator(device, looks[0])
  if script is not None and not debug: raise InvalidArgument("needs --debug", where="--command")
  if check is not None and looks and not debug: raise InvalidArgument(f"does not go with {looks[0]}", where="--check")
  if debug and len(looks) > 1: raise InvalidArgument("does not go with --debug", where=looks[1])
  if debug:
    import tinyhw
    from tinyhw.terminal.debugger import debug as debugger
    wanted = "" if check is None else check or "1"
    session, status = debugger(lambda: tinyhw.debug(*what, check=wanted, shared=shared, cluster=clusters,
                                                    options=options),
                               None if script is None else partial(files.text, script))
    with session:
      if session.ended: show_buffers(session.buffers(), targets, as_json)
    if status: sys.exit(status)
  elif looks:
    from tinyhw import report as start_report
    from tinyhw.cli.report import write
    with progress.shown(what[1], as_json):
      report = start_report(*what, shared=shared, cluster=clusters, options=options)
    if as_json:
      save_buffers(report.buffers, targets)
      click.echo(json.dumps({"buffers": plain(report.buffers), "report": report.to_dict()}))
    elif report_file is not None or form in {None, "text"}: show_buffers(report.buffers, targets, False)
    else: save_buffers(report.buffers, targets)
    if report_file is not None or not as_json: write(report, form, report_file, exactness)
  else:
    from tinyhw import launch
    from tinyhw.drive.nv.bare import is_ptx
    if device is None and chosen is None and (source is not None or is_ptx(binary)): device = device_for(source)
    asked = "" if check is None else ",".join(["report", *filter(None, [check])])
    if check is not None and device is None: device = chosen or ("EMU" if mock_cards() is None else None)
    device = device or default_device()
    try:
      with warnings.catch_warnings():  # they are told below, in the command's own way
        warnings.simplefilter("ignore", LDSWarning)
        with progress.shown(what[1], as_json):
          buffers = launch(*what, device=device, shared=shared, check=asked, timeout=timeout,
                           cluster=clusters, options=options)
    except DeviceError as error:
      if device == "AMD" and mock_cards() is None and not Path("/dev/kfd").exists(): error.hint = NO_CARD
      raise
    for text in buffers.warnings: click.echo(f"tinyhw: warning: {text}", err=True)
    show_buffers(buffers, targets, as_json, buffers.findings)
    if buffers.findings: sys.exit(1)


def only_kernel(binary: bytes, file: Path, source: Source | None = None) -> str:
  """The name of the one kernel of a file. Raises InvalidArgument, with their names, where there are more."""
  from tinyhw.drive.nv.bare import is_ptx
  from tinyhw.wire.codeobject import load
  if source is not None: names = source.kernels
  elif is_ptx(binary):
    from tinyhw.isa.ptx import parse
    names = list(parse(binary).entries)
  else: names = list(load(binary).kernels)
  if len(names) != 1: raise InvalidArgument(f"has {len(names)} kernels", where=str(file),
                                            hint=f"choose with --kernel: {', '.join(names)}" if names else None)
  return names[0]


def form_of(file: Path | None) -> str:
  """The form of a report that a file's name asks for; text on the terminal."""
  suffix = "" if file is None else file.suffix.lower()
  return {".html": "html", ".htm": "html", ".json": "json"}.get(suffix, "text")


def on_emulator(device: str | None, option: str) -> None:
  """Refuse a device that has no part in what looks into a kernel."""
  if device is not None and device.upper() != "EMU":
    raise InvalidArgument(f"runs on the emulator itself, not on {device}", where=option, hint="leave --device out")


def plain(buffers: list[npt.NDArray[np.generic]]) -> list[dict[str, object]]:
  """Buffers as JSON has them."""
  return [{"dtype": str(b.dtype), "shape": b.shape, "data": b.tolist()} for b in buffers]


def save_buffers(buffers: list[npt.NDArray[np.generic]], targets: list[tuple[int, str]]) -> None:
  """Write the buffers that --save names."""
  for index, path in targets:
    if index >= len(buffers): raise InvalidArgument(f"there are {len(buffers)} buffers", where=f"--save {index}={path}")
    with writing(path): np.save(path, buffers[index])


def show_buffers(buffers: list[npt.NDArray[np.generic]], targets: list[tuple[int, str]], as_json: bool,
                 report: Report | None = None) -> None:
  """Save and print what the kernel left in its buffers, and what the checks found."""
  save_buffers(buffers, targets)
  if as_json:
    findings = {} if report is None else {"findings": report.rows(), "unseen": sorted(report.unseen)}
    click.echo(json.dumps({"buffers": plain(buffers), **findings}))
    return
  for i, b in enumerate(buffers):
    shown = np.array2string(b, threshold=16, max_line_width=100)
    click.echo(f"buffer {i}: {b.dtype}[{', '.join(map(str, b.shape))}] {shown}")
  if report is not None: show_findings(report)


def show_findings(report: Report) -> None:
  """A table: kind, where, both instructions, what."""
  unseen = "".join(f"; not seen: {text}" for text in sorted(report.unseen))
  if not len(report): return click.echo(f"checks: nothing found{unseen}")
  for f in report:
    where = [f"{name} {value}" for name in ("workgroup", "wave", "lane") if (value := getattr(f, name)) is not None]
    times = f"; {f.count:,} times" if f.count > 1 else ""
    click.echo(f"{f.kind:<12} {f.message} ({', '.join(where)}{times})")
    rows = [(f.at, f.instruction, f.line)]
    if f.other_pc is not None: rows.append((f.other_at, f.other_instruction or "", f.other_line))
    for at, instruction, line in rows:
      click.echo(f"{'':12}   {at}  {instruction}{f'  ; {line}' if line else ''}")
  if report.more: click.echo(f"{report.more:,} more are not shown")
  for hint in report.hints(): click.echo(f"hint: {hint}")
  if unseen: click.echo(unseen.removeprefix("; "))


def parse_save(text: str) -> tuple[int, str]:
  """"2=sum.npy" to (2, "sum.npy")."""
  index, _, path = text.partition("=")
  if len(index) > LONGEST: raise InvalidArgument(f"a number of {len(index):,} letters", where="--save")
  if (number := count(index)) is None or not path: raise InvalidArgument("is not N=FILE.npy", where=f"--save {text}")
  return number, path
