"""The command `tinyhw gen`: one verb a family of facts, `all`, and `check`."""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tinyhw.core.errors import Error, InvalidArgument, MissingTool
from tinyhw.tools.gen import nvclass, nvcompilers, nvrm
from tinyhw.tools.gen.family import AUTOGEN, Family
from tinyhw.tools.gen.sources import Sources

NAMES = ("kfd", "kfd_sysfs", "amdgpu_drm", "hsa", "opencl", "cuda", "cudart", "cuda_calls", "nvml", "amdhsa", "elf",
         "pm4", "pm4_gfx12", "pm4_gfx9", "sdma", "sdma_v4", "gc", "gc_11_5_0", "gc_12_0_0", "gc_9_4_3", "gc_9_4_2",
         "mqd", "sq", "buffer_formats", "images", "isa_manuals", "ignored", "silicon", "amdgcn", "amdgcn_gfx12",
         "amdgcn_gfx9",
         "aliases", "aco", "linux_trace",
         *nvcompilers.FAMILIES, *nvclass.FAMILIES, *nvrm.FAMILIES)
ABOUT = """Write the modules of autogen/ from the vendors' own headers, or check the committed ones.

examples:
  tinyhw gen --list
  tinyhw gen kfd --source /usr/src/linux-6.12
  tinyhw gen pm4 --source ~/linux-6.12 --source ~/pal --output /tmp/pm4.py
  tinyhw gen check --source ~/linux-6.12 --source ~/pal
  tinyhw gen diff gfx942 gfx950
  tinyhw gen new gfx950 --from gfx942 --sources ~/facts

A source is an unpacked Linux 6.12 tree (or Debian's linux-source-6.12.tar.xz), a checkout of GPUOpen-Drivers/pal or of
NVIDIA/open-gpu-doc, the folder of the LLVM instruction dump, or a folder of headers. /usr/include, libdrm's and LLVM
19's headers are searched by themselves, and so are the folders in TINYHW_GEN_SOURCE. The head of each generated module
lists its sources and their hashes."""
DIFF = """Show what changed between two generations, from the generated tables: instructions, registers, packets or
methods, and limits.

examples:
  tinyhw gen diff gfx942 gfx950
  tinyhw gen diff gfx942 gfx950 --only instructions --full
  tinyhw gen diff sm_80 sm_90 --json"""
NEW = """Say what a new generation has and what it lacks: which facts generators fill in, what differs from the one
before, which instructions have no meaning yet, and which conformance tests wait for them. Nothing is written.

examples:
  tinyhw gen new gfx950 --from gfx942 --sources ~/facts
  tinyhw gen new gfx950 --from gfx942 --json"""
INSTRUCTIONS = "amdgpu19_compact.json.xz"


# family of another generation -> the generator that makes it too
LATER = {"pm4_gfx12": "pm4", "pm4_gfx9": "pm4",
         "gc_11_5_0": "gc", "gc_12_0_0": "gc", "gc_9_4_3": "gc", "gc_9_4_2": "gc", "sdma_v4": "sdma"}
# family -> generation, and the module's name without its folder
DUMPS_OF = {"gfx9": ("amdgpu21_gfx950.json.xz",)}  # what later members' rows are made of, beside it
TABLES = {"amdgcn": "gfx11", "amdgcn_gfx12": "gfx12", "amdgcn_gfx9": "gfx9"}


def _instructions(generation: str) -> Callable[[Sources], str]:
  """The maker of a generation's instruction table, from the dump of LLVM's target description."""

  def generate(sources: Sources) -> str:
    from tinyhw.tools.gen import amdgcn

    source = sources.find(INSTRUCTIONS)
    later = {member: sources.find(name).path for member, name in amdgcn.DUMPS.items()
             if member in amdgcn.LATER.get(generation, ())}
    return amdgcn.module(amdgcn.dump(source.path), generation, source.path, later)

  return generate


def family(name: str) -> Family:
  """The family of that name. Its generator is imported now."""
  if name in TABLES:
    made = TABLES[name]
    return Family(name, f"amdgcn_{made}", f"{made}'s instruction table", (INSTRUCTIONS, *DUMPS_OF.get(made, ())),
                  _instructions(made))
  if name in nvclass.FAMILIES:
    return nvclass.FAMILIES[name]
  if name in nvrm.FAMILIES:
    return nvrm.FAMILIES[name]
  if name in nvcompilers.FAMILIES:
    return nvcompilers.FAMILIES[name]
  module = importlib.import_module(f"tinyhw.tools.gen.{LATER.get(name, name)}")
  found: Family = module.FAMILIES[name] if hasattr(module, "FAMILIES") else module.FAMILY
  return found


def parser() -> argparse.ArgumentParser:
  made = argparse.ArgumentParser(
    "tinyhw gen", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  made.add_argument(
    "verb",
    nargs="?",
    choices=(*NAMES, "all", "check"),
    metavar="FAMILY",
    help=f"{', '.join(NAMES)}; `all` of them; or `check`",
  )
  made.add_argument(
    "--source", action="append", default=[], metavar="DIR", help="where the vendors' files are; may be a list A:B"
  )
  made.add_argument("--output", metavar="FILE", help="write here, not to autogen/ (`-`: to the screen)")
  made.add_argument("--check", action="store_true", help="write nothing; fail when the committed module differs")
  made.add_argument("--list", action="store_true", help="list the families and the files that each reads")
  return made


def show_families(sources: Sources) -> None:
  sources.prepare(need for name in NAMES for need in family(name).needs)
  for name in NAMES:
    f = family(name)
    print(f"{name:12} autogen/{f.module}.py: {f.about}")
    for need in f.needs:
      print(f"{'':14}{'found  ' if sources.has(need) else 'missing'} {need}")


def differs(f: Family, sources: Sources) -> list[str]:
  """The lines on which the committed module and a fresh one differ, at most twenty."""
  path = AUTOGEN / f"{f.module}.py"
  committed = path.read_text() if path.exists() else ""
  fresh = f.generate(sources)
  if committed == fresh:
    return []
  lines = difflib.unified_diff(
    committed.splitlines(), fresh.splitlines(), f"autogen/{f.module}.py", "generated now", lineterm="", n=0
  )
  return list(lines)[:20]


def write(f: Family, sources: Sources, output: str | None) -> None:
  text = f.generate(sources)
  if output == "-":
    print(text, end="")
    return
  path = Path(output) if output else AUTOGEN / f"{f.module}.py"
  same = path.exists() and path.read_text() == text
  if not same:
    path.write_text(text)
  print(f"{path}: {len(text.splitlines())} lines{', as before' if same else ''}")


def check(sources: Sources, names: Sequence[str]) -> int:
  """Regenerate and compare, then hold layouts and values against the C compiler and cffi. Returns how many failed."""
  from tinyhw.tools.gen import witness

  failures = 0
  sources.prepare(need for name in NAMES for need in family(name).needs)
  for name in names:
    f = family(name)
    missing = [need for need in f.needs if not sources.has(need)]
    if missing:
      failures += 1
      print(f"{name:12} NOT CHECKED: no {', '.join(missing)}")
      continue
    try:
      problems = differs(f, sources)
    except MissingTool as error:
      problems = [str(error)]
    print(f"{name:12} {'differs from a fresh one:' if problems else 'the same when generated again'}")
    for report in witness.reports(name, sources):
      print(f"{'':12} {report.text}")
      problems += report.problems
    for problem in problems:
      print(f"{'':14}{problem}")
    failures += bool(problems)
  print(f"{len(names) - failures} of {len(names)} families hold" if failures else f"all {len(names)} families hold")
  return failures


def differences(argv: Sequence[str]) -> int:
  """`tinyhw gen diff BEFORE AFTER`: what changed between two generations."""
  from tinyhw.tools.gen import generations  # the instruction tables, which no generator needs

  made = argparse.ArgumentParser("tinyhw gen diff", description=DIFF,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
  made.add_argument("before")
  made.add_argument("after")
  made.add_argument("--only", metavar="SECTION", help="one section: instructions, registers, packets, limits, PTX ...")
  made.add_argument("--full", action="store_true", help="with encodings, places and fields, before and now")
  made.add_argument("--json", action="store_true", help="for programs: section -> new, gone, changed -> name")
  options = made.parse_args(list(argv))
  found = generations.changes(options.before, options.after)
  if options.only:
    known = tuple(dict.fromkeys(c.section for c in found))
    if options.only not in known:
      raise InvalidArgument(f"nothing differs in a section {options.only!r}", where="tinyhw gen diff --only",
                            hint=f"there are {', '.join(known) or 'no differences'}")
    found = [c for c in found if c.section == options.only]
  if options.json: print(json.dumps(generations.document(options.before, options.after, found), indent=1))
  else:
    for line in generations.lines(found, full=options.full) or ["nothing that the tables know differs"]: print(line)
  return 0


def newcomer(argv: Sequence[str]) -> int:
  """`tinyhw gen new NAME --from BEFORE`: what a new generation has, and what it lacks."""
  from tinyhw.arch import DECODED
  from tinyhw.tools.gen import new  # the emulator, which no generator needs

  made = argparse.ArgumentParser("tinyhw gen new", description=NEW,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
  made.add_argument("name")
  made.add_argument("--from", dest="before", required=True, metavar="GENERATION", help="the nearest that is there")
  made.add_argument("--sources", action="append", default=[], metavar="DIR", help="where the vendors' files are")
  made.add_argument("--json", action="store_true", help="for programs")
  options = made.parse_args(list(argv))
  sources, filled = Sources(options.sources), []
  if options.name in DECODED:
    known = {family(name).module: name for name in NAMES}
    modules = new.modules(DECODED[options.name])
    if options.sources: sources.prepare(need for module in modules for need in family(known[module]).needs)
    for module in modules:
      found = family(known[module])
      if not options.sources:
        filled.append(new.Filled(known[module], module, "not compared without --sources"))
        continue
      lines = differs(found, sources) if all(sources.has(need) for need in found.needs) else []
      filled.append(new.Filled(known[module], module, new.stands(found, sources, lines)))
  told = new.guide(options.name, options.before, filled, sources)
  if options.json: print(json.dumps(new.document(told), indent=1))
  else:
    for line in new.lines(told): print(line)
  return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"diff": differences, "new": newcomer}


def main(argv: Sequence[str]) -> int:
  """Returns the exit status: 0 done, 1 a check failed, 2 a source or tool is missing."""
  if argv and argv[0] in COMMANDS:
    try: return COMMANDS[argv[0]](argv[1:])
    except Error as error:
      print(f"tinyhw gen {argv[0]}: {error}" if not (error.where or "").startswith("tinyhw gen") else error,
            file=sys.stderr)
      return 1
  options = parser().parse_args(list(argv))
  sources = Sources(options.source)
  given = [name for names in options.source for name in names.split(os.pathsep)]
  unknown = [name for name in given if not Path(name).exists()]
  try:
    if unknown:
      raise MissingTool(f"{', '.join(unknown)} does not exist", where="tinyhw gen --source")
    if options.list:
      show_families(sources)
    elif options.verb is None:
      parser().print_help()
    elif options.verb == "check" or options.verb == "all" and options.check:
      return int(check(sources, NAMES) > 0)
    elif options.check:
      return int(check(sources, [options.verb]) > 0)
    elif options.verb == "all":
      for name in NAMES:
        write(family(name), sources, None)
    else:
      write(family(options.verb), sources, options.output)
  except Error as error:
    print(f"tinyhw gen: {error}" if error.where != "tinyhw gen" else error, file=sys.stderr)
    return 2 if isinstance(error, MissingTool) else 1
  return 0
