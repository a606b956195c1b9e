"""What the C compiler says, the ground truth of every layout: values of macros, sizes and offsets of types."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tinyhw.core.errors import Error, MissingTool

DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(?![\w(])[ \t]*(\S?)", re.M)


SHOW = """static void show(const char *name, __int128 v) {
  printf("%s %s%llu\\n", name, v < 0 ? "-" : "", (unsigned long long)(v < 0 ? -v : v));
}"""
Layout = tuple[int, dict[str, tuple[int, int]]]  # size of a type, and (offset, size) of each field, in bytes


def compiler() -> str:
  for name in ("gcc", "cc", "clang"):
    if path := shutil.which(name):
      return path
  raise MissingTool("no C compiler found", where="tinyhw gen", hint="install gcc (Debian: apt install gcc)")


def compile_and_run(source: str, flags: Sequence[str]) -> str:
  """Standard output of a C program. Raises Error with the compiler's first lines."""
  with tempfile.TemporaryDirectory(prefix="tinyhw-gen-") as folder:
    path = Path(folder) / "probe.c"
    path.write_text(source)
    built = subprocess.run(
      [compiler(), *flags, "-w", "-o", str(path.with_suffix("")), str(path)], capture_output=True, text=True
    )
    if built.returncode:
      raise Error(f"C program does not compile: {built.stderr[:2000]}", where="tinyhw gen")
    return subprocess.run([str(path.with_suffix(""))], capture_output=True, text=True, check=True).stdout


def macro_names(text: str) -> list[str]:
  """Macros without parameters and with a body, in the order in which a header defines them."""
  return list(dict.fromkeys(name for name, body in DEFINE.findall(text) if body))


def macro_values(names: Sequence[str], includes: str, flags: Sequence[str]) -> dict[str, int]:
  """Integer value of each macro; those that are no integer constant (a type, a string, a statement) are left out.

  Values are as C has them: a macro of unsigned type is not negative.
  """
  kept = list(names)
  for _ in range(4):
    lines = [includes, "#include <stdio.h>", "enum { START_OF_PROBES = __LINE__ };"]
    first = "\n".join(lines).count("\n") + 2
    lines += [f"static const __int128 probe_{i} = (__int128)({name});" for i, name in enumerate(kept)]
    lines += [SHOW, "int main(void) {"]
    lines += [f'  show("{name}", probe_{i});' for i, name in enumerate(kept)]
    program = "\n".join([*lines, "}"])
    with tempfile.TemporaryDirectory(prefix="tinyhw-gen-") as folder:
      path = Path(folder) / "macros.c"
      path.write_text(program)
      done = subprocess.run(
        [compiler(), *flags, "-w", "-fmax-errors=0", "-o", str(path.with_suffix("")), str(path)],
        capture_output=True,
        text=True,
      )
      if done.returncode == 0:
        out = subprocess.run([str(path.with_suffix(""))], capture_output=True, text=True, check=True).stdout
        return {name: int(value) for name, value in (line.split() for line in out.splitlines())}
    bad = {int(n) - first for n in re.findall(r"macros\.c:(\d+):\d+: (?:error|note: in expansion)", done.stderr)}
    # A macro that is the name of another one, which nobody defines, is told where it is defined.
    broken = set(re.findall(r"note: in definition of macro \W(\w+)", done.stderr))
    remaining = [name for i, name in enumerate(kept) if i not in bad and name not in broken]
    if len(remaining) == len(kept):
      raise Error(f"macros do not compile: {done.stderr[:2000]}", where="tinyhw gen")
    kept = remaining
  raise Error("macros do not compile after four rounds", where="tinyhw gen")


def layouts(types: Mapping[str, Iterable[str]], includes: str, flags: Sequence[str]) -> dict[str, Layout]:
  """Layout of each type. `types` maps a type's C spelling to its fields; a flexible array (`name[]`) has size 0."""
  lines = [includes, "#include <stdio.h>", "#include <stddef.h>", "int main(void) {"]
  for spelling, fields in types.items():
    lines.append(f'  printf("T|{spelling}|%zu\\n", sizeof({spelling}));')
    for f in fields:
      size = "(size_t)0" if f.endswith("[]") else f"sizeof((({spelling} *)0)->{f})"
      lines.append(f'  printf("F|{f}|%zu|%zu\\n", offsetof({spelling}, {f.removesuffix("[]")}), {size});')
  out = compile_and_run("\n".join([*lines, "}"]), flags)
  result: dict[str, Layout] = {}
  current: dict[str, tuple[int, int]] = {}
  for line in out.splitlines():
    kind, name, *numbers = line.split("|")
    if kind == "T":
      current = {}
      result[name] = (int(numbers[0]), current)
    else:
      current[name] = (int(numbers[0]), int(numbers[1]))
  return result
