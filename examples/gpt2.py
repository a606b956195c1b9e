"""GPT-2: its architecture, training on a text, and generation. `python examples/gpt2.py --help`.

`--weights FILE` takes OpenAI's weights as Hugging Face distributes them (model.safetensors or pytorch_model.bin);
without it a small model learns a text by heart and says it again, on any device: `DEV=C python examples/gpt2.py`.
"""
from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyhw import Tensor, TinyJit, nn


@dataclass(frozen=True)
class Config:
  """Sizes; the defaults are a model that a laptop trains in seconds."""
  layers: int = 2
  heads: int = 4
  width: int = 64
  vocabulary: int = 128
  context: int = 24


class Attention:
  """Each position looks at those before it, and itself."""

  def __init__(self, config: Config):
    self.heads = config.heads
    self.c_attn, self.c_proj = nn.Linear(config.width, 3 * config.width), nn.Linear(config.width, config.width)

  def __call__(self, x: Tensor) -> Tensor:
    batch, length, width = x.shape
    q, k, v = self.c_attn(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
    scores = (q @ k.transpose(-1, -2)) / math.sqrt(width // self.heads)
    seen = Tensor.ones(length, length, device=x.device).tril() > 0
    mixed = seen.where(scores, -math.inf).softmax() @ v
    return self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Block:
  """Attention, then two layers for each position, each added to what came in."""

  def __init__(self, config: Config):
    self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(config.width), Attention(config), nn.LayerNorm(config.width)
    self.c_fc, self.c_proj = nn.Linear(config.width, 4 * config.width), nn.Linear(4 * config.width, config.width)

  def __call__(self, x: Tensor) -> Tensor:
    x = x + self.attn(self.ln_1(x))
    return x + self.c_proj(self.c_fc(self.ln_2(x)).gelu())


class GPT2:
  """(batch, length) tokens to (batch, length, vocabulary) scores of the next ones."""

  def __init__(self, config: Config):
    self.config = config
    self.wte = nn.Embedding(config.vocabulary, config.width)
    self.wpe = nn.Embedding(config.context, config.width)
    self.h = [Block(config) for _ in range(config.layers)]
    self.ln_f = nn.LayerNorm(config.width)

  def __call__(self, tokens: Tensor) -> Tensor:
    length = tokens.shape[1]
    x = self.wte(tokens) + self.wpe(Tensor.arange(length, device=tokens.device))
    for block in self.h: x = block(x)
    return self.ln_f(x) @ self.wte.weight.transpose()

  def generate(self, tokens: Sequence[int], count: int) -> list[int]:
    """The likeliest next tokens, one after the other. The window has one length, so kernels are compiled once."""
    window, found = self.config.context, list(tokens)
    @TinyJit
    def step(given: Tensor) -> Tensor: return self(given).argmax(-1).realize()
    for _ in range(count):
      recent = found[-window:]
      given = Tensor(np.array([recent + [0] * (window - len(recent))], np.int32))
      found.append(int(step(given)[0, len(recent) - 1].item()))
    return found

  def learn(self, tokens: Sequence[int], steps: int, lr: float = 3e-3) -> list[float]:
    """Losses of steps over all windows of the tokens."""
    length = self.config.context
    windows = np.lib.stride_tricks.sliding_window_view(np.array(tokens, np.int32), length + 1)
    x, y = Tensor(windows[:, :-1]), Tensor(windows[:, 1:])
    optimizer = nn.optim.AdamW(nn.get_parameters(self), lr=lr)
    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
      optimizer.zero_grad()
      loss = self(x).reshape(-1, self.config.vocabulary).sparse_categorical_crossentropy(y.reshape(-1)).backward()
      optimizer.step(loss)
      return loss
    with Tensor.train(): return [step(x, y).item() for _ in range(steps)]


def loaded(path: str) -> GPT2:
  """GPT-2 with the weights of a file."""
  state = {name.removeprefix("transformer."): t for name, t in nn.load(path).items()}
  width = state["wte.weight"].shape[1]
  layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("h."))
  model = GPT2(Config(layers, width // 64, width, state["wte.weight"].shape[0], state["wpe.weight"].shape[0]))
  # The file has (in, out) matrices, and the two layers of a position in a part of their own.
  renamed = {name.replace(".mlp.", "."): t for name, t in state.items() if not name.endswith((".bias", ".masked_bias"))
             or ".attn." not in name or name.endswith(("c_attn.bias", "c_proj.bias"))}
  nn.load_state_dict(model, {name: t.transpose() if ".c_" in name and name.endswith("weight") else t
                             for name, t in renamed.items()}, strict=False)
  return model


def main() -> None:
  parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
  parser.add_argument("--weights", help="OpenAI's weights in a file; tokens are then numbers")
  parser.add_argument("--text", default=__file__, help="what to learn by heart")
  parser.add_argument("--steps", type=int, default=80)
  parser.add_argument("--count", type=int, default=40, help="tokens to generate")
  given = parser.parse_args()
  if given.weights:
    print(loaded(given.weights).generate([464], given.count))
    return
  Tensor.manual_seed(1)
  text = open(given.text, "rb").read()[:120]
  model, start = GPT2(Config()), time.perf_counter()
  losses = model.learn(list(text), given.steps)
  print(f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {time.perf_counter() - start:.1f} s")
  print(bytes(model.generate(list(text[:16]), given.count)).decode(errors="replace"))


if __name__ == "__main__": main()
