"""TinyJit: runs a function once as it is, records the second call's work, and from the third call on only replays it.

The function takes Tensors (and other arguments, which must stay the same) and returns Tensors, or lists,
tuples and dictionaries of them. What it does beside computing tensors happens in the first two calls only.
Tensors that it assigns to (parameters, optimizer state) keep changing in each replay; random numbers are
new in each. The tensors that it returns are the same ones in every replay: their contents are overwritten
by the next call.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from tinyhw.core.errors import InvalidArgument
from tinyhw.engine import random
from tinyhw.engine.buffer import Buffer, buffer_of, new_node
from tinyhw.engine.realize import memory_of, placed, realize
from tinyhw.engine.run import Step, listening, run
from tinyhw.function.core import TensorBase, live_tensors
from tinyhw.ir.dtype import DType

Function = TypeVar("Function", bound=Callable[..., Any])
Signature = tuple[tuple[str, tuple[int, ...], DType, str], ...]


def _tensors(thing: Any, name: str = "") -> list[tuple[str, TensorBase]]:
  """The tensors in arguments or results, each with its place."""
  if isinstance(thing, TensorBase): return [(name, thing)]
  if isinstance(thing, (list, tuple)): return [f for i, x in enumerate(thing) for f in _tensors(x, f"{name}[{i}]")]
  if isinstance(thing, dict): return [f for k, x in thing.items() for f in _tensors(x, f"{name}.{k}")]
  return []


def _in_memory() -> dict[TensorBase, Buffer]:
  """Every tensor whose value is in memory, with that memory."""
  return {t: buffer_of(node.base) for t in list(live_tensors) if (node := placed(t.uop)) is not None}


def _changed(before: dict[TensorBase, Buffer]) -> list[tuple[TensorBase, Buffer]]:
  """Those that were given another value since, with the memory of the old one."""
  return [(t, b) for t, b in before.items() if (node := placed(t.uop)) is None or buffer_of(node.base) is not b]


class Capture:
  """The steps of one call, its inputs' memory, and the random keys (kept alive) with what makes new ones."""

  def __init__(self, signature: Signature, inputs: list[Buffer], steps: list[Step], keys: list[Buffer],
               refills: list[Callable[[], None]], result: Any):
    self.signature, self.inputs, self.steps = signature, inputs, steps
    self.keys, self.refills, self.result = keys, refills, result

  def replay(self, inputs: list[Buffer]) -> Any:
    """Run the steps with other inputs."""
    for refill in self.refills: refill()
    swap = {id(old): new for old, new in zip(self.inputs, inputs)}
    run([Step.of(s.kernel, tuple(swap.get(id(b), b) for b in s.buffers)) for s in self.steps])
    return self.result


class TinyJit(Generic[Function]):
  """`f = TinyJit(f)`, or as a decorator. `JIT=0` in the environment turns it off."""

  def __init__(self, function: Function):
    self.function = function
    self.calls = 0
    self.capture: Capture | None = None

  def reset(self) -> None:
    """Forget what was recorded: the next call runs as it is again."""
    self.calls, self.capture = 0, None

  @property
  def captured(self) -> bool:
    """Whether calls replay."""
    return self.capture is not None

  def __get__(self, instance: Any, owner: Any = None) -> Any:
    return self if instance is None else _Bound(self, instance)

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    if os.environ.get("JIT", "1") == "0": return self.function(*args, **kwargs)
    given = _tensors(args, "args") + _tensors(kwargs, "kwargs")
    realize(*(t for _, t in given))
    inputs = [memory_of(t) for _, t in given]
    signature: Signature = tuple((name, t.shape, t.dtype, t.device) for name, t in given)
    if len({id(b) for b in inputs}) != len(inputs):
      raise InvalidArgument("two arguments of a TinyJit share their memory")
    self.calls += 1
    if self.capture is not None:
      if signature != self.capture.signature:
        raise InvalidArgument(f"a TinyJit made for {_show(self.capture.signature)} was called with {_show(signature)}")
      return self.capture.replay(inputs)
    if self.calls == 1:
      before = _in_memory()
      result = self.function(*args, **kwargs)
      realize(*(t for _, t in _tensors(result)), *(t for t, _ in _changed(before)))
      return result
    return self._record(signature, inputs, args, kwargs)

  def _record(self, signature: Signature, inputs: list[Buffer], args: Any, kwargs: Any) -> Any:
    before = _in_memory()
    steps: list[Step] = []
    refills: list[Callable[[], None]] = []
    keys: list[Buffer] = []
    def key_made(buffer: Buffer, refill: Callable[[], None]) -> None:
      keys.append(buffer)
      refills.append(refill)
    random.generator.listeners.append(key_made)
    try:
      with listening(steps.append):
        result = self.function(*args, **kwargs)
        changed = _changed(before)
        realize(*(t for _, t in _tensors(result)), *(t for t, _ in changed))
        # Tensors that hold another value now: it goes back to the memory where the next call reads it.
        for tensor, home in changed:
          fresh = memory_of(tensor)
          if fresh is home or (fresh.size, fresh.dtype, fresh.device) != (home.size, home.dtype, home.device): continue
          run([Step(None, (home, fresh))])
          tensor.uop = new_node(home).reshape(tensor.shape)
    finally:
      random.generator.listeners.remove(key_made)
    if not steps: raise InvalidArgument("a TinyJit's function did no work on a device")
    self.capture = Capture(signature, inputs, steps, keys, refills, result)
    return result


class _Bound:
  """A TinyJit looked up on an instance: calls pass the instance first."""

  def __init__(self, jit: TinyJit[Any], instance: Any): self.jit, self.instance = jit, instance
  def __call__(self, *args: Any, **kwargs: Any) -> Any: return self.jit(self.instance, *args, **kwargs)


def _show(signature: Signature) -> str:
  return ", ".join(f"{name}: {shape} {dtype} on {device}" for name, shape, dtype, device in signature) or "no tensors"


def jit(function: Function) -> Function:
  """TinyJit as a decorator that keeps the function's type."""
  return cast(Function, TinyJit(function))
