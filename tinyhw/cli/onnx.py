"""`tinyhw onnx`: what an ONNX model takes, gives and does; and its run."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tinyhw.cli.files import load
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.written import writing


def pairs(words: tuple[str, ...], option: str) -> dict[str, Path]:
  """`name=file` words as files by name."""
  found: dict[str, Path] = {}
  for word in words:
    name, equals, path = word.partition("=")
    if not equals or not name or not path: raise InvalidArgument(f"{option} {word!r} is no NAME=FILE")
    if name in found: raise InvalidArgument(f"{option} {name!r} is given twice")
    found[name] = Path(path)
  return found


def described(summary: Any) -> dict[str, Any]:
  """A summary as plain values."""
  def rows(infos: Any) -> list[dict[str, Any]]:
    return [{"name": i.name, "dtype": i.dtype, "shape": None if i.shape is None else list(i.shape), "kind": i.kind}
            for i in infos]
  return {"inputs": rows(summary.inputs), "outputs": rows(summary.outputs), "opsets": summary.opsets,
          "operators": summary.operators, "weights": summary.weights, "unsupported": list(summary.unsupported)}


def show(summary: Any) -> None:
  """A summary as lines."""
  for what, infos in (("input", summary.inputs), ("output", summary.outputs)):
    for i in infos: click.echo(f"{what:9}{i}")
  opsets = [f"{domain or 'ai.onnx'} {version}" for domain, version in summary.opsets.items()]
  click.echo(f"opsets   {', '.join(opsets)}")
  click.echo(f"weights  {summary.weights:,}")
  click.echo(f"nodes    {', '.join(f'{n} {count}' for n, count in summary.operators.items()) or 'none'}")
  for problem in summary.unsupported: click.echo(f"not run  {problem}")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--input", "-i", "inputs", multiple=True, metavar="NAME=FILE.npy", help="An input. May be repeated.")
@click.option("--output", "-o", "outputs", multiple=True, metavar="NAME=FILE.npy",
              help="Keep an output in a file. May be repeated.")
@click.option("--device", default=None, help="Where it runs [default: DEV, or LLVM].")
@click.option("--show", "only_show", is_flag=True, help="Say what is in the model, and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def command(model: Path, inputs: tuple[str, ...], outputs: tuple[str, ...], device: str | None, only_show: bool,
            as_json: bool) -> None:
  """Show or run an ONNX model.

  \b
  With --show: its inputs, outputs, opsets and operators, and which nodes are
  not supported. Else it is run on the inputs, and its outputs are printed, or
  kept in files.

  \b
  Examples:
    tinyhw onnx model.onnx --show
    tinyhw onnx model.onnx --input x=a.npy --output y=b.npy --device PYTHON
  """
  import numpy as np

  from tinyhw.nn import onnx
  if only_show:
    summary = onnx.inspect(model)
    if as_json: click.echo(json.dumps(described(summary)))
    else: show(summary)
    return
  files, kept = pairs(inputs, "--input"), pairs(outputs, "--output")
  loaded = onnx.load(model, device)
  names = {o.name for o in loaded.outputs}
  for name in kept:
    if name not in names: raise InvalidArgument(f"the model has no output {name!r}",
                                                hint=f"it has {', '.join(sorted(names))}")
  given = {name: load(path, str(path)) for name, path in files.items()}
  results = {name: np.asarray(value) for name, value in loaded(**given).items()}
  for name, path in kept.items():
    with writing(path), open(path, "wb") as file: np.save(file, results[name])
  if as_json:
    click.echo(json.dumps({n: {"dtype": str(v.dtype), "shape": list(v.shape), "file": str(kept[n]) if n in kept
                               else None,
                               **({} if n in kept else {"values": v.tolist()})} for n, v in results.items()}))
    return
  for name, value in results.items():
    click.echo(f"{name}: {value.dtype}{list(value.shape)}" + (f" in {kept[name]}" if name in kept else ""))
    if name not in kept: click.echo(np.array2string(value, 100, separator=", ", threshold=100))
