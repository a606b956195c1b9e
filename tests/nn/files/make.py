"""Writes the checkpoints of this folder: `python tests/nn/files/make.py`. PyTorch 2.13.0 wrote those that are kept."""
import json
from collections import OrderedDict
from pathlib import Path

import calls
import numpy as np
import torch
import values

HERE = Path(__file__).parent


def main() -> None:
  base = torch.from_numpy(values.BASE.copy())
  views = {"transposed": base.T, "every_second": base[:, 1::2], "row": base[2], "expanded": base[0].expand(3, 6)}
  plain = {name: torch.from_numpy(a.copy()) if a.shape else torch.tensor(a.item()) for name, a in values.PLAIN.items()}
  model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
  with torch.no_grad():
    for i, p in enumerate(model.parameters()): p.copy_(torch.arange(p.numel()).reshape(p.shape) + i)
  optimizer = torch.optim.Adam(model.parameters(), lr=0.125)
  model(torch.ones(4, 3)).sum().backward()
  optimizer.step()
  whole = {"plain": plain, "views": views, "bfloat16": torch.from_numpy(values.BFLOAT16).bfloat16(),
           "parameter": torch.nn.Parameter(torch.ones(2)), "shared": [base, base], "text": "né", "none": None,
           "numbers": (1, -2**40, 2.5, True, 10**30), "shape": base.shape, "ordered": OrderedDict(a=1),
           "model": model.state_dict(), "optimizer": optimizer.state_dict()}
  torch.save(whole, HERE / "zipped.pt")
  torch.save(whole, HERE / "streamed.pt", _use_new_zipfile_serialization=False)
  torch.save(model, HERE / "module.pt")
  torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), HERE / "script.pt")
  learn()
  torch.save({name: layer(name) for name in values.LAYERS}, HERE / "layers.pt")
  functions()


def functions() -> None:
  """What the functions give."""
  kept = {}
  for number, (name, args, kwargs) in enumerate(calls.CALLS):
    given = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    kwargs = {k: torch.from_numpy(a) if isinstance(a, np.ndarray) else a for k, a in kwargs.items()}
    found = getattr(torch.nn.functional, name)(*given, **kwargs)
    for i, t in enumerate(found if isinstance(found, tuple) else (found,)): kept[f"{number} {i}"] = t.numpy()
  np.savez_compressed(HERE / "functional.npz", **kept)


def learn() -> None:
  """What optimizers make of parameters, the rates of schedules, and what AdamW makes of a parameter by them."""
  learned = {}
  for name, (kind, options) in values.OPTIMIZERS.items():
    parameters = [torch.nn.Parameter(torch.from_numpy(a.copy())) for a in values.START]
    if kind == "Muon": del parameters[1]
    made = getattr(torch.optim, kind)(parameters, **options)
    for step in range(values.STEPS):
      for i, p in enumerate(parameters): p.grad = torch.from_numpy(values.gradient(i, step))
      made.step()
    learned[name] = [p.tolist() for p in parameters]
  rates = {}
  for name in values.RATES:
    p = torch.nn.Parameter(torch.from_numpy(values.START[1].copy()))
    p.grad = torch.from_numpy(values.gradient(1, 0))
    rates[name] = [values.rates(torch.optim.lr_scheduler, torch.optim.AdamW([p], lr=0.1), name), p.tolist()]
  (HERE / "learned.json").write_text(json.dumps({"torch": torch.__version__, "learned": learned, "rates": rates},
                                                indent=1) + "\n")


def layer(name: str) -> dict[str, object]:
  """A layer's state, what it gives for two batches while training and for one more after, gradients of the second."""
  kind, _, arguments, options, _ = values.LAYERS[name]
  torch.manual_seed(len(name))
  made = getattr(torch.nn, kind)(*arguments, **options)
  with torch.no_grad():  # scales of 1 and offsets of 0 would hide mistakes
    for p in made.parameters(): p.copy_(torch.randn_like(p) / 2)
  before = {k: v.clone() for k, v in made.state_dict().items()}
  recurrent = kind.endswith("Cell")
  outputs, given, state = [], [], None
  for step in range(2):
    given = [torch.from_numpy(a).requires_grad_() for a in values.inputs(name, step)]
    out = made(*given, state) if recurrent else made(*given)
    state = out
    outputs.append(out)
  first = outputs[-1][0] if isinstance(outputs[-1], tuple) else outputs[-1]
  (first * torch.cos(torch.arange(first.numel())).reshape(first.shape)).sum().backward()
  gradients = {k: p.grad for k, p in made.named_parameters()}
  made.eval()
  last = [torch.from_numpy(a) for a in values.inputs(name, 2)]
  return {"state": before, "outputs": outputs, "gradients": gradients, "inputs": [t.grad for t in given],
          "after": made.state_dict() if not recurrent else {}, "at rest": made(*last)}


if __name__ == "__main__": main()
