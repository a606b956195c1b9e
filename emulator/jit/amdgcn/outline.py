"""Memory accesses as calls: the check and the access are functions of their own, one for each shape of access.

Code that is compiled for the first time uses these: the text of an access is a call instead of a hundred lines, so
that LLVM is done several times sooner. Code that has become hot is compiled again with everything in place.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tinyhw.emulator.jit.amdgcn.access import Accesses
from tinyhw.emulator.jit.amdgcn.site import Site
from tinyhw.emulator.jit.amdgcn.state import Registers
from tinyhw.emulator.jit.values import Emitter, Value
from tinyhw.emulator.values.ops import U32, U64

WORDS: Final = 16  # dwords of a lane that an access can load
Given = Sequence["Value | None"]
Body = Callable[[Accesses, Registers, list[Any]], list[Value]]


class _Inside(Accesses):
  """The accesses of one function: which site it serves is an argument."""

  def _number(self, site: Site) -> str: return "%index"


class Outlined(Accesses):
  """As `Accesses`, with calls where that has the access in place. `functions` holds the text of what they call."""

  def __init__(self, e: Emitter, fault: str, functions: dict[str, str]) -> None:
    super().__init__(e, fault)
    self.functions = functions

  def _near(self, r: Registers, base: Value, offsets: Value, site: Site, words: Sequence[Value] | None,
            stride: int = 4, ok: Value | None = None, told: Value | None = None) -> list[Value]:
    def body(inside: Accesses, r: Registers, given: list[Any]) -> list[Value]:
      base, offsets, ok, told, *data = given
      return Accesses._near(inside, r, base, offsets, site, data if words is not None else None, stride, ok, told)
    return self._call(f"near.{stride}", r, site, words, [base, offsets, ok, told], body)

  def _far(self, r: Registers, addresses: Value, site: Site, words: Sequence[Value] | None) -> list[Value]:
    def body(inside: Accesses, r: Registers, given: list[Any]) -> list[Value]:
      return Accesses._far(inside, r, given[0], site, given[1:] if words is not None else None)
    return self._call("far", r, site, words, [addresses], body)

  def lds(self, r: Registers, at: Value, site: Site, words: Sequence[Value] | None) -> list[Value]:
    def body(inside: Accesses, r: Registers, given: list[Any]) -> list[Value]:
      return Accesses.lds(inside, r, given[0], site, given[1:] if words is not None else None)
    return self._call("lds", r, site, words, [at], body)

  def _call(self, shape: str, r: Registers, site: Site, words: Sequence[Value] | None, given: Given,
            body: Body) -> list[Value]:
    """Call the function of this shape, made when it is first wanted; returns the dwords that it loads.

    It takes the state, the context, the site's index, where to leave dwords, EXEC and the values that are given.
    """
    e, width = self.e, site.width
    given = [*given, *(words or ())]
    kinds = "".join("-" if v is None else f"{'v' if v.wide else 's'}{v.dtype.itemsize}" for v in given)
    name = f"@{shape}.{'load' if words is None else 'store'}.{width}.{'full' if r.full else 'some'}.{kinds}"
    if name not in self.functions: self.functions[name] = self._define(name, r, given, body)
    index = self._number(site)
    active = r.e.const(U64 if e.lanes == 64 else U32, 0) if r.full else r.to_bits(r.active())
    e.stack["out"] = f"alloca [{WORDS * e.lanes} x i32], align 64"
    arguments = ", ".join(f"{v.type} {v.text}" for v in (active, *given) if v is not None)
    bad = e.op(f"call i1 {name}(ptr %state, ptr %context, i32 {index}, ptr %out, {arguments})")
    after = e.new_label("after")
    e.do(f"br i1 {bad}, label %{self.fault}, label %{after}, !prof !2")
    e.start(after)
    if words is not None: return []
    t = e.type(U32, True)
    return [Value(e, e.op(f"load {t}, ptr {e.op(f'getelementptr {t}, ptr %out, i64 {k}')}, align 64"), U32, True)
            for k in range(max(1, width // 4))]

  def inside(self, e: Emitter) -> Accesses:
    """What makes the text of a function."""
    return _Inside(e, "fault")

  def _define(self, name: str, r: Registers, given: Given, body: Body) -> str:
    e = Emitter(self.e.lanes)
    e.declared, e.constants = self.e.declared, self.e.constants
    inside, registers = self.inside(e), Registers(e, r.vgprs, r.arch)
    registers.full = r.full
    e.label = "entry"
    parameters, values = ["ptr %state, ptr %context, i32 %index, ptr %out", f"i{e.lanes} %exec"], []
    for k, v in enumerate(given):
      values.append(None if v is None else Value(e, f"%a{k}", v.dtype, v.wide))
      if v is not None: parameters.append(f"{v.type} %a{k}")
    if not r.full: registers.assume_exec(Value(e, "%exec", U64 if e.lanes == 64 else U32, False))
    for k, w in enumerate(body(inside, registers, values)):
      t = e.type(U32, True)
      e.do(f"store {t} {w.in_lanes()}, ptr {e.op(f'getelementptr {t}, ptr %out, i64 {k}')}, align 64")
    e.do("ret i1 false")
    e.start("fault")
    e.do("ret i1 true")
    allocations = [f"  %{name} = {allocation}" for name, allocation in e.stack.items()]
    head = f"define hidden i1 {name}({', '.join(parameters)}) #1 {{"
    return "\n".join([head, "entry:", *allocations, *e.lines, "}"])
