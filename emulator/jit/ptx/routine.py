"""Functions of a module that are written with values: loops, conditions, and what has to hold for them to go on.

Their parameters and addresses are u64; memory of the host is read and written at any alignment.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tinyhw.emulator.jit.values import BOOL, Emitter, LLVMOps, Value, convert, type_of
from tinyhw.emulator.jit.vectors import ALIGNED
from tinyhw.emulator.values.ops import U64

_RESULTS: Final = {"i1": "false", "i64": "0"}  # of a function that did not go on


class Variable:
  """A value that loops and conditions change."""

  def __init__(self, r: Routine, value: Value) -> None:
    self._r, self._dtype = r, value.dtype
    self._name = f"%{r.new_label('v')}"
    r.stack[self._name[1:]] = f"alloca {type_of(value.dtype)}"
    self.set(value)

  def set(self, value: Value) -> None:
    """Give it another value."""
    self._r.do(f"store {value.type} {value.text}, ptr {self._name}")

  def get(self) -> Value:
    """What it is now."""
    return Value(self._r, self._r.op(f"load {type_of(self._dtype)}, ptr {self._name}"), self._dtype, False)


class Routine(Emitter):
  """`result @name(ptr context, ptr state, i64 parameters ...)`; `needs` are functions that it calls, in order."""

  def __init__(self, name: str, parameters: Sequence[str], result: str = "i1") -> None:
    super().__init__(1)
    self.name, self.parameters, self.result = name, parameters, result
    self.o = LLVMOps(self)
    self.start("body")

  def __getitem__(self, parameter: str) -> Value:
    assert parameter in self.parameters
    return Value(self, f"%{parameter}", U64, False)

  def number(self, n: int) -> Value:
    """A constant."""
    return self.const(U64, n)

  def of(self, text: str, dtype: Any = U64) -> Value:
    """What an instruction gives."""
    return Value(self, self.op(text), dtype, False)

  # ---- memory

  def room(self, name: str, size: int) -> Value:
    """The address of so many bytes of the function's own."""
    self.stack[name] = f"alloca [{size} x i8], align 16"
    return self.of(f"ptrtoint ptr %{name} to i64")

  def word(self, base: str, at: int, dtype: Any = U64) -> Value:
    """A word of the context or the state."""
    pointer = self.op(f"getelementptr i8, ptr %{base}, i64 {at}")
    return convert(self.of(f"load {type_of(dtype)}, ptr {pointer}", dtype), U64)

  def pointer(self, address: Value) -> str: return self.op(f"inttoptr i64 {address.text} to ptr")

  def load(self, address: Value, dtype: Any = U64) -> Value:
    """What lies at an address."""
    return self.of(f"load {type_of(dtype)}, ptr {self.pointer(address)}, align 1", dtype)

  def store(self, address: Value, value: Value) -> None:
    """Put a value at an address."""
    self.do(f"store {value.type} {value.text}, ptr {self.pointer(address)}, align 1")

  def move(self, to: Value, source: Value, size: Value | None) -> None:
    """Copy bytes, also onto themselves; without a size, 16."""
    if size is None:
      raw = self.op(f"load <2 x i64>, ptr {self.pointer(source)}, align 1")
      return self.do(f"store <2 x i64> {raw}, ptr {self.pointer(to)}, align 1")
    name = "llvm.memmove.p0.p0.i64"
    self.declared[name] = f"declare void @{name}(ptr, ptr, i64, i1)"
    self.do(f"call void @{name}(ptr {self.pointer(to)}, ptr {self.pointer(source)}, i64 {size.text}, i1 false)")

  # ---- control

  def need(self, good: Value) -> None:
    """Leave the function, as one that has not done it, where this does not hold."""
    on = self.new_label("on")
    self.do(f"br i1 {good.text}, label %{on}, label %fail, !prof !1")
    self.start(on)

  def ask(self, name: str, *arguments: Value | str) -> Value:
    """Call one of the module's functions; leave where it has not done it."""
    result = "i1" if name in {"find", "lives"} else _result(name)
    given = "".join(f", {a}" if isinstance(a, str) else f", i64 {a.text}" for a in arguments)
    state = "" if name == "find" else ", ptr %state"
    found = self.of(f"call {result} @{name}(ptr %context{state}{given})", BOOL if result == "i1" else U64)
    self.need(found if result == "i1" else found != 0)
    return found

  @contextmanager
  def when(self, condition: Value) -> Iterator[None]:
    """The block runs where a condition holds."""
    yes, over = self.new_label("when"), self.new_label("over")
    self.do(f"br i1 {condition.text}, label %{yes}, label %{over}")
    self.start(yes)
    yield
    self.do(f"br label %{over}")
    self.start(over)

  @contextmanager
  def each(self, count: Value) -> Iterator[Value]:
    """The block runs for each number below a count."""
    at = Variable(self, self.number(0))
    test, turn, over = self.new_label("test"), self.new_label("turn"), self.new_label("over")
    self.do(f"br label %{test}")
    self.start(test)
    k = at.get()
    self.do(f"br i1 {(k < count).text}, label %{turn}, label %{over}")
    self.start(turn)
    yield k
    at.set(k + 1)
    self.do(f"br label %{test}")
    self.start(over)

  def text(self, result: Value | None = None) -> str:
    """The whole function, which gives a value, or that it is done."""
    given = ", ".join(["ptr %context", "ptr %state", *(f"i64 %{p}" for p in self.parameters)])
    body = [f"define private {self.result} @{self.name}({given}) {ALIGNED} {{", "entry:",
            *(f"  %{name} = {what}" for name, what in self.stack.items()), "  br label %body", *self.lines,
            f"  ret {self.result} {'true' if result is None else result.text}", "fail:",
            f"  ret {self.result} {_RESULTS[self.result]}", "}"]
    return "\n".join(body)


def _result(name: str) -> str: return "i64" if name.partition(".")[0] in {"place", "completed"} else "i1"


def defined(e: Emitter, *texts: str) -> None:
  """Have functions in the module, once."""
  for text in texts:
    if text not in e.constants: e.constants.append(text)


__all__ = ["Routine", "Variable", "defined"]
