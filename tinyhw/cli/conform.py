"""`tinyhw conform`: the conformance suite on a chip, a driver's mock, an emulator, or another program."""
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import click

from tinyhw.cli import complete
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.written import save

DEFAULT_ARCH = "gfx1100"
DEFAULT_CHIP = "sm_90"


@click.command()
@click.argument("device", metavar="DEVICE", default="EMU")
@click.option("--arch", "arch", default=None, shell_complete=complete.arch,
              help=f"The suite: a generation of AMD's, or ptx [the device's own; of EMU and --dut {DEFAULT_ARCH}].")
@click.option("--only", multiple=True, metavar="PATTERN", help="Only cases whose identifier has this in it, or fits it "
              "where it has a star. May be repeated.")
@click.option("--list", "listed", is_flag=True, help="Print the cases' identifiers, and run none.")
@click.option("--show", metavar="CASE", help="Print one case: its instruction, state and wanted results; run nothing.")
@click.option("--seed", default="", metavar="WORD", help="Draw other operands and forms than the suite's own.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--scheduler", default="", metavar="tcp://HOST:PORT", help="Have the workers of this Dask scheduler run "
              "it (docs/campaigns.md).")
@click.option("--results", type=click.Path(path_type=Path), help="Keep results in this file (SQLite) as they come; the "
              "same command goes on where it was stopped.")
@click.option("--timeout", default=120.0, show_default=True, metavar="SECONDS", help="For one kernel of many cases.")
@click.option("--engine", type=click.Choice(["ref", "jit", "both", "auto"]), default=None,
              help="Of an emulated device [EMU, else ref: compiling code that runs once does not pay].")
@click.option("--time", "timed", is_flag=True, help="Tell on stderr how far it is.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--json-file", type=click.Path(path_type=Path), help="Write the report as JSON.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit's XML.")
@click.option("--html", "page_file", type=click.Path(path_type=Path), help="Write a page to read and sign.")
@click.option("--may-fail", type=click.Path(exists=True, path_type=Path), help="What may fail, as --write-may-fail "
              "wrote it: it has to, and nothing else may.")
@click.option("--write-may-fail", type=click.Path(path_type=Path), help="Write what fails, with the evidence.")
@click.option("--dut", default="", metavar="COMMAND", help="Ask this program instead of a device: a line of JSON "
              "a case (docs/conform.md).")
@click.option("--record", type=click.Path(path_type=Path), help="Write a digest of what each case left (.xz: packed).")
@click.option("--against", type=click.Path(exists=True, path_type=Path), help="Compare with a record.")
def command(device: str, arch: str | None, only: tuple[str, ...], listed: bool, show: str | None, seed: str, jobs: int,
            scheduler: str, results: Path | None, timeout: float, engine: str | None, timed: bool, as_json: bool,
            json_file: Path | None, junit: Path | None, page_file: Path | None, may_fail: Path | None,
            write_may_fail: Path | None, dut: str, record: Path | None, against: Path | None) -> None:
  """Run the conformance suite on DEVICE (AMD, AMD:1, EMU ...): kernels that judge themselves.

  Each case is one instruction in one of its forms, from a state of all registers. A device behind a kernel driver (AMD,
  NV) is also asked packets, methods and calls. A difference is told with the instruction or packets, its operands, and
  the section of the manual. The exit status is 1 where something differs.

  \b
  Examples:
    MOCKGPU=1 tinyhw conform AMD --only v_add_f32
    tinyhw conform EMU --arch gfx942 --jobs 2 --html gfx942.html
    MOCKGPU=sm_90 tinyhw conform NV --only ptx/add
    MOCKGPU=1 tinyhw conform AMD --only gfx1100/packet --only gfx1100/ioctl
    tinyhw conform AMD --record card.json.xz
    tinyhw conform EMU --against card.json.xz
    tinyhw conform --dut 'python -m tinyhw.tools.conform.dut' --only v_add_f32
    tinyhw conform EMU --list --only 'gfx1100/v_fma_f32/*'
  """
  from tinyhw.tools.conform import evidence, ptx, report, run
  from tinyhw.tools.conform.client import suite
  if engine is not None or "EMU" not in os.environ: os.environ["EMU"] = engine or "ref"
  own = run.target(device) if not listed and show is None and not dut else None
  if own is not None and arch is not None and own != arch:
    raise InvalidArgument(f"{device} is a {own}", where=f"--arch {arch}", hint="EMU runs every generation's suite")
  arch = arch or own
  generation = arch  # whose packets, methods and calls are asked
  if arch is not None and arch.startswith("sm_") or device.startswith(("NV", "CUDA")):
    generation, arch = arch or DEFAULT_CHIP, "ptx"
  arch = arch or DEFAULT_ARCH
  options = run.Options(arch, device, only, seed, timeout, dut)
  if not listed and show is None: generation = "" if dut else suite.generation(device)
  clients = [] if seed else suite.chosen(generation or arch if listed else generation or "", only)
  if listed: return _list(options, [q.id for q in clients], as_json)
  if show is not None: return _show(options, show)
  began = time.monotonic()

  def told(done: int, of: int) -> None:
    if timed: click.echo(f"{done:,} of {of:,} instructions, {time.monotonic() - began:.0f} s", err=True)
  def heard(done: int, of: int) -> None:
    if timed and done % 100 == 0: click.echo(f"{done:,} of {of:,} packets, methods and calls", err=True)
  found = suite.run(clients, device, heard)
  spread = run.Spread(jobs, scheduler, results)
  if suite.alone(only): pass
  elif arch == "ptx":
    found += ptx.run_all(device, only, seed, timeout, spread, told)
  else: found += run.run_all(options, spread, told)
  if not found: raise InvalidArgument("no case fits", where=f"--only {' '.join(only)}", hint="--list has them")
  compute = ptx.compute() if arch == "ptx" else run.compute(arch)
  if only:
    ran = {n for r in found for part in r.mnemonic.split("+") for n in (part, part.replace("v_dual_", "v_"))}
    compute = [row for row in compute if row[0] in ran]
  compute = [*compute, *suite.rows(clients, not only)]
  from tinyhw.arch import decoded
  from tinyhw.autogen import isa_manuals
  name, facts = (device, run.facts(device)) if not dut else run.greeted(dut)
  if arch == "ptx": facts |= ptx.sources()
  manual = ptx.MANUAL if arch == "ptx" else isa_manuals.MANUALS[decoded(arch).isa]
  made = report.ConformanceReport(arch, manual, name, facts, found,
                                  report.by_instruction(found, compute), time.monotonic() - began, seed,
                                  complete=not only)
  if may_fail is not None: made.expected = evidence.read_may_fail(may_fail, arch)
  said: dict[str, Any] = {}
  if against is not None:
    said, answers = evidence.read_record(against, arch)
    made.against = evidence.beside(made, answers)
  _written(made, json_file, junit, page_file, write_may_fail, record)
  if as_json: click.echo(report.to_json(made), nl=False)
  else:
    click.echo(report.summary(made))
    if said: click.echo(f"the record is of {said['device']}: {said['facts'].get('card', '')}")
  if not made.good: raise SystemExit(1)


def _written(made: Any, json_file: Path | None, junit: Path | None, page_file: Path | None, may_fail: Path | None,
             record: Path | None) -> None:
  """Write the files that are asked for."""
  from tinyhw.tools.conform import evidence, report
  if json_file is not None: save(json_file, report.to_json(made))
  if junit is not None: save(junit, report.to_junit(made))
  if page_file is not None:
    from tinyhw.tools.conform.page import page
    save(page_file, page(made))
  if may_fail is not None: click.echo(f"{may_fail}: {evidence.write_may_fail(may_fail, made):,} cases", err=True)
  if record is not None: click.echo(f"{record}: {evidence.write_record(record, made):,} answers", err=True)


def _list(options: Any, clients: list[str], as_json: bool) -> None:
  from tinyhw.tools.conform import cases, run
  if options.arch == "ptx":
    from tinyhw.tools.conform import ptx
    found = [c.id for c in ptx.every(options.seed, options.only)]
  else:
    from tinyhw.tools.conform import patterns, silicon
    from tinyhw.tools.conform.client import suite
    chosen = [] if suite.alone(options.only) else run.wanted_names(options)
    found = [d.id for name in chosen if name != silicon.GROUP
             for d in cases.drawn(options.arch, name, options.seed) if patterns.fits(d.id, options.only)]
    if silicon.GROUP in chosen:
      found += [i for i in map(silicon.ident, silicon.programs(options.arch)) if patterns.fits(i, options.only)]
  found = clients + found
  if as_json: click.echo(json.dumps(found))
  elif found: click.echo("\n".join(found))


def _show(options: Any, ident: str) -> None:
  """One case in full."""
  from tinyhw.tools.conform.client import suite
  if (asked := next((q for q in suite.questions(ident.split("/")[0]) if q.id == ident), None)) is not None:
    return click.echo("\n".join([asked.id, f"  {asked.source}", *(f"  {line}" for line in asked.text)]))
  if options.arch == "ptx":
    from tinyhw.tools.conform import ptx
    case = next((c for c in ptx.every(options.seed, (ident,)) if c.id == ident), None)
    if case is None: raise InvalidArgument(f"no case is called {ident!r}", where="--show", hint="--list has them")
    return click.echo(ptx.kernel([case]))
  from tinyhw.tools.conform import run
  from tinyhw.tools.conform.show import show
  made = run.Options(options.arch, options.device, (ident,), options.seed)
  if "/silicon/" in ident: raise InvalidArgument("a program of a chip's has no state to show", where=f"--show {ident}")
  found = next((b for b in run.baked(made, run.wanted_names(made)) if b.id == ident), None)
  if found is None: raise InvalidArgument(f"no case is called {ident!r}", where="--show", hint="--list has them")
  click.echo(show(found, options.arch))
