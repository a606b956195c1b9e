"""The declarations of CUDA's functions, driver's and runtime's: each parameter's name and type, from the headers."""
from __future__ import annotations

import re
from collections.abc import Iterator

from tinyhw.tools.gen import cuda, cudart
from tinyhw.tools.gen.cuda import preprocessed
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.opencl import split
from tinyhw.tools.gen.sources import Sources, head

_POINTED = re.compile(r"(?:^|, )(?:const )?(?:struct |enum )?([\w ]+) \*\w")
_NAMED = re.compile(r"(.*?)\b(\w+)\s*((?:\[\w*\])*)$", re.S)


def declared(parameter: str) -> str:
  """`const CUlaunchConfig *config`, however the header spaces it; a function's address is a `void *`."""
  text = " ".join(parameter.partition("=")[0].split())
  if "(" in text: text = f"void *{text[text.index('*') + 1:text.index(')')].strip()}"
  found = _NAMED.fullmatch(text)
  if found is None: return text
  kind, name, count = found[1].strip(), found[2], found[3]
  if not kind: kind, name = name, ""  # a type alone
  stars = kind.count("*") + bool(count)
  return f"{re.sub(r'[ *]+$', '', kind)} {'*' * stars}{name}".rstrip()


def rows(prototypes: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
  """A function and its parameters, with commas between them."""
  for name, parameters in prototypes.findall(text):
    yield name, ", ".join(declared(p) for p in split(parameters))


def pointed(signatures: Iterator[str]) -> list[str]:
  """The types that parameters point to: not those of addresses of addresses."""
  found = {m[1] for text in signatures for m in _POINTED.finditer(text)}
  return sorted(found - {"void", "char"})


def generate(sources: Sources) -> str:
  files = [sources.find(n) for n in (cuda.HEADER, cuda.PROFILER, cudart.HEADER)]
  flags = [f"-I{files[0].path.parent}"]
  ours = "".join(preprocessed(str(f.path), *flags, *more)
                 for f, more in ((files[0], [cuda.OLD]), (files[0], []), (files[1], [])))
  theirs = preprocessed(str(files[2].path))
  driver, runtime = dict(rows(cuda.PROTOTYPE, ours)), dict(rows(cudart.PROTOTYPE, theirs))
  to = pointed(iter((*driver.values(), *runtime.values())))
  known = cuda.BASE | cudart.typedefs(theirs) | cuda.typedefs(ours)
  return "\n".join([
    head("The declarations of CUDA's functions, as its headers have them.",
         [(cuda.CUDA, f) for f in files], "tinyhw gen cuda_calls",
         ["A function's parameters with their types, commas between them. SCALARS has what a parameter may point to,",
          "as ctypes has it; structs are in `cuda` and `cudart`."]),
    "DRIVER: dict[str, str] = {",
    *(f'  "{n}": "{p}",' for n, p in sorted(driver.items())),
    "}",
    "",
    "RUNTIME: dict[str, str] = {",
    *(f'  "{n}": "{p}",' for n, p in sorted(runtime.items())),
    "}",
    "",
    "SCALARS: dict[str, str] = {",
    *(f'  "{n}": "{known[n]}",' for n in to if known.get(n, "").startswith("c_")),
    "}",
    "",
  ])


FAMILY = Family("cuda_calls", "cuda_calls", "names and types of the parameters of CUDA's functions",
                (cuda.HEADER, cuda.PROFILER, cudart.HEADER), generate)
