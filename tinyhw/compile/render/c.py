"""C for the host processor: a kernel is `void NAME(buffers, int values)` in an object file, as in `render.host`; or
one in stretches, which are shared among threads, as it is there.

clang or gcc compiles it, for the same level of processor that LLVM makes code for, so values are the same. The text
includes nothing, and has the lanes of a program as vectors (`clanes`). `CC` names the compiler; else it is the newest
clang that PATH has, or else the newest gcc.
"""
from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyhw.compile.render import objects
from tinyhw.compile.render.cfamily import FROM_HALF, TO_HALF, CFamilyRenderer, CWriter, Language
from tinyhw.compile.render.clanes import MASKED, SHUFFLE, WHOLE, LanesWriter
from tinyhw.compile.render.host import ALIGNMENT, TILES, check_stretches
from tinyhw.core import scratch
from tinyhw.core.errors import DeviceError, InvalidArgument, MissingTool
from tinyhw.core.host import GENERIC, Host
from tinyhw.core.kept import Kept
from tinyhw.ir.dtype import PtrDType
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

# No contraction, no errno from sqrt; nobody looks at the floating-point exceptions, so both sides of a choice may run.
FLAGS = ("-x", "c", "-std=gnu11", "-O2", "-fPIC", "-w", "-pipe", "-ffp-contract=off", "-fno-math-errno",
         "-fno-trapping-math", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-c")
AVX = ("x86-64-v3", "x86-64-v4")
KEPT = 1024         # compiled objects in memory; the oldest go first
# Conversions of half by the processor's instructions, where there are any. gcc would make one call of two conversions.
FROM_HALF_HERE = """#if defined(__F16C__) && defined(__clang__)
{f}float from_half(unsigned short x) {{
  _Float16 half;
  __builtin_memcpy(&half, &x, 2);
  return (float)half;
}}
#elif defined(__F16C__)
{f}float from_half(unsigned short x) {{
  typedef short halves __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps((halves){{(short)x}})[0];
}}
#else
""" + FROM_HALF + "#endif\n"
TO_HALF_HERE = """#if defined(__F16C__) && defined(__clang__)
{f}unsigned short to_half(float x) {{
  const _Float16 half = (_Float16)x;
  unsigned short bits;
  __builtin_memcpy(&bits, &half, 2);
  return bits;
}}
#elif defined(__F16C__)
{f}unsigned short to_half(float x) {{
  typedef float floats __attribute__((vector_size(16)));
  return (unsigned short)__builtin_ia32_vcvtps2ph((floats){{x}}, 0)[0];
}}
#else
""" + TO_HALF + "#endif\n"


class HostC(Language):
  """C as clang and gcc know it."""
  counts = frozenset({2, 4, 8, 16, 32})
  vector = ("typedef {scalar} {name} __attribute__((vector_size({bytes}), aligned({alignment}), may_alias));")
  helpers = {**Language.helpers, "from_half": FROM_HALF_HERE, "to_half": TO_HALF_HERE}


class Stretches(HostC):
  """A kernel that computes stretches of its grid, with local memory of its own. One object writes one program."""
  indices = {"g": "stretch"}

  def __init__(self) -> None:
    self.size = 0             # bytes of local memory so far

  def array(self, name: str, dtype: PtrDType) -> str:
    place, self.size = self.size, self.size + -(-dtype.size * dtype.base.itemsize // ALIGNMENT) * ALIGNMENT
    word = self.stored(dtype.base)
    return f"{word}* restrict {name} = ({word}*)(scratch + {place});"

  def whole(self, name: str, block: tuple[int, int, int], parameters: Sequence[str], body: Sequence[str]) -> str:
    inner = [*parameters, "const int stretch", "unsigned char* restrict scratch"]
    passed = [f"{'(int)' if '*' not in p else '(void*)'}arguments[{i}]" for i, p in enumerate(parameters)]
    return "\n".join([
      f"static __attribute__((noinline)) void {name}_stretch({', '.join(inner)}) {{", *body, "}",
      f'const long long {name}_scratch __asm__("{name}.scratch") = {self.size};',
      f"void {name}(const long long* restrict arguments, int first, int last, unsigned char* restrict scratch) {{",
      "  for (int i = first; i < last; i++)",
      f"    {name}_stretch({', '.join([*passed, 'i', 'scratch'])});", "}", ""])


@dataclass(frozen=True)
class Compiler:
  """A C compiler: what to run, what it says it is, and which of the functions of vectors it has."""
  command: tuple[str, ...]
  version: str
  functions: frozenset[str] = frozenset()

  def object(self, source: str, name: str, flags: tuple[str, ...]) -> bytes:
    """The object file of a text. Raises DeviceError that quotes the compiler."""
    with scratch.folder("tinyhw-") as folder:
      out = Path(folder) / "kernel.o"
      made = subprocess.run([*self.command, *flags, "-o", str(out), "-"], input=source.encode(), capture_output=True)
      if made.returncode == 0 and out.exists(): return out.read_bytes()
    said = " ".join(made.stderr.decode(errors="replace").split())[:2000] or f"exit status {made.returncode}"
    raise DeviceError(f"{self.version} refuses the source: {said}", where=f"kernel {name}",
                      hint="CC names another compiler")


def found(pattern: str) -> list[str]:
  """The programs on PATH whose name is the pattern, with or without a version; the newest first."""
  names: dict[str, int] = {}
  for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
    try: entries = os.listdir(folder or ".")
    except OSError: continue
    for entry in entries:
      if match := re.fullmatch(pattern + r"(?:-([0-9]+))?", entry): names.setdefault(entry, int(match[1] or 0))
  return sorted(names, key=lambda n: -names[n])


@functools.cache
def described(command: tuple[str, ...]) -> Compiler:
  """The compiler of a command line. Raises MissingTool where it does not run."""
  try: said = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
  except (OSError, subprocess.TimeoutExpired) as error:
    raise MissingTool(f"{command[0]} does not run: {error}", where="C",
                      hint="CC names the compiler: clang or gcc") from None
  lines = said.stdout.strip().splitlines()
  if said.returncode != 0 or not lines:
    raise MissingTool(f"{command[0]} --version fails: {said.stderr.strip()[:200]}", where="C",
                      hint="CC names the compiler: clang or gcc")
  return Compiler(command, lines[0], _functions(command))


def _functions(command: tuple[str, ...]) -> frozenset[str]:
  """Which functions of vectors a compiler has."""
  names = (*WHOLE.values(), SHUFFLE, *sorted(MASKED))
  asked = "".join(f"#if __has_builtin({name})\nhas {name[2:]}\n#endif\n" for name in names)
  # A compiler has a processor's functions only where it is told that the processor has them.
  told = ["-mavx"] if objects.host().triple.startswith("x86_64") else []
  said = subprocess.run([*command, *told, "-x", "c", "-E", "-P", "-"], input=f"#ifdef __has_builtin\n{asked}#endif\n",
                        capture_output=True, text=True)
  return frozenset(f"__{line[4:]}" for line in said.stdout.splitlines() if line.startswith("has "))


def compiler() -> Compiler:
  """The C compiler of this process: `CC`, or else the newest clang, or else the newest gcc."""
  try: wanted = shlex.split(os.environ.get("CC", ""))
  except ValueError as error: raise InvalidArgument(f"is no command: {error}", where="CC") from None
  if wanted: return described(tuple(wanted))
  for pattern in ("clang", "gcc", "cc"):
    for name in found(pattern):
      if shutil.which(name): return described((name,))
  raise MissingTool("there is no C compiler", where="C",
                    hint="install clang or gcc, or name one in CC; DEV=LLVM needs none")


class CRenderer(CFamilyRenderer):
  """Compiles C for the processor of this process (`host`: one of its levels)."""
  target = "c"
  language = HostC()
  vector_bytes = 32
  tile = 8
  lanes = 64
  powers = True
  pool = True
  leaves_python = True
  max_local = 1 << 20

  def __init__(self, compiler: Compiler, host: Host | None = None) -> None:
    self.compiler, self.host = compiler, host or objects.host()
    self.flags: tuple[str, ...] = FLAGS if self.host.cpu == GENERIC else (*FLAGS, f"-march={self.host.cpu}")
    if self.host.cpu == "x86-64-v4": self.flags += ("-mprefer-vector-width=512",)
    self.tile_vectors = TILES.get(self.host.cpu, 3)
    self._kept: Kept[str, bytes] = Kept(KEPT)

  @property
  def key(self) -> str: return f"{self.target} {self.compiler.version} {self.host}"

  def check(self, name: str, uops: Sequence[UOp]) -> None:
    check_stretches(self.target, name, uops)
    super().check(name, uops)

  def source(self, name: str, uops: Sequence[UOp]) -> str:
    self.check(name, uops)
    shared = any(u.op in (Ops.SPECIAL, Ops.DEFINE_LOCAL) for u in uops)
    words = Stretches() if shared else self.language
    # gcc has vectors of 2, 4, 8 ... lanes: others only move, lane by lane.
    if any(u.dtype.count & (u.dtype.count - 1) for u in uops): return CWriter(self, name, uops, words).module()
    functions = self.compiler.functions if self.host.cpu in AVX else self.compiler.functions - MASKED
    return LanesWriter(self, name, uops, words, functions).module()

  def compile(self, source: str, name: str) -> bytes:
    """The object, kept by what it is made from: compiler, flags and text."""
    content = "\0".join([self.compiler.version, *self.compiler.command, *self.flags, source])
    digest = hashlib.sha256(content.encode()).hexdigest()
    return self._kept.made(digest, lambda: self.compiler.object(source, name, self.flags))
