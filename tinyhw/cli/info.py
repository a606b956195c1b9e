"""`tinyhw info`: what a file with GPU code holds."""
from __future__ import annotations

import json
from pathlib import Path

import click

from tinyhw.cli.files import contents as read
from tinyhw.kernels.contents import CodeFacts, KernelFacts, contents

BYTES = frozenset({"LDS", "scratch", "shared", "local"})


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, an object a piece of code.")
def command(file: Path, as_json: bool) -> None:
  """Show what FILE holds: for each piece of GPU code its target, where it runs, and its kernels.

  \b
  FILE is an AMDGPU code object, an offload bundle, a cubin, a fat binary, PTX,
  CUDA C++, or a program or library of the host that carries such code.

  \b
  Examples:
    tinyhw info add.co
    tinyhw info --json ./a_hip_program
  """
  found = contents(read(file), str(file))
  if as_json:
    click.echo(json.dumps([piece.row() for piece in found]))
    return
  for piece in found: show(piece)


def show(piece: CodeFacts) -> None:
  """A piece of code as lines."""
  click.echo(f"{piece.what} for {piece.target}")
  click.echo(f"  runs on: {', '.join(piece.runs)}" if piece.runs else f"  does not run here: {piece.why}")
  for name, value in piece.facts.items(): click.echo(f"  {name}: {value:,}" if isinstance(value, int) else
                                                     f"  {name}: {value}")
  for kernel in piece.kernels: show_kernel(kernel)


def show_kernel(k: KernelFacts) -> None:
  """A kernel: its declaration, then what it needs."""
  click.echo(f"  {k.name}({', '.join(k.parameters)}){f'  at {k.source}' if k.source else ''}")
  parts = [f"{n:,} bytes of {name}" if name in BYTES else f"wave{n}" if name == "wave" else f"{n} {name}"
           for name, n in k.counts.items() if n or name not in BYTES]
  if k.block: parts.append(f"blocks of {','.join(map(str, k.block))}")
  elif k.threads: parts.append(f"at most {k.threads:,} threads a block")
  if parts: click.echo(f"    {', '.join(parts)}")
