"""What the lint must refuse: wrong meanings and steps, each with the complaint that mypy must have of it.

Nothing here runs. `make lint` reads this file (pyproject.toml names it): a line of which mypy has no such complaint any
more is itself an error, of an unused `type: ignore`.
"""
from __future__ import annotations

from tinyhw.emulator.jit.values import Value
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.operands import Holder, Reader, Writer
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import U32, Array, B, Binary, Operations, Unary, V

# ---- meanings

def misspelt(o: Operations[V], a: V, b: V) -> None: o.minimum(a, b)  # type: ignore[attr-defined]


def of_two_where_there_is_one(o: Operations[V], a: V, b: V) -> V: return o.sqrt(a, b)  # type: ignore[call-arg]


def numpy_alone(o: Operations[V], a: V) -> None: a.reshape(-1)  # type: ignore[attr-defined]


def a_type_for_a_value(o: Operations[V], a: V) -> V: return o.to("f32", a)  # type: ignore[arg-type]


def text_in_a_sum(o: Operations[V], a: V) -> V: return a + "1"  # type: ignore[operator]


def of_two(o: Operations[V], a: V, b: V) -> V: return a + b


ONE: Unary = of_two  # type: ignore[assignment]
TWO: Binary = of_two


def two_kinds(o: Operations[Value], a: Value, b: Array) -> Value: return o.max(a, b)  # type: ignore[arg-type]


# ---- steps of any group

def a_reader_for_a_value(group: Holder[B], read: Reader) -> B:
  return group.o.neg(read)  # type: ignore[arg-type]


def an_operation_that_there_is_not(group: Holder[B], read: Reader) -> None:
  group.o.negated(read(group))  # type: ignore[attr-defined]


def a_number_for_a_group(group: Holder[B], read: Reader, write: Writer) -> None:
  write(0, read(group))  # type: ignore[arg-type]


# ---- steps of NumPy's groups

def a_method_that_there_is_not(group: Group) -> None: group.v[0].as_type(U32)  # type: ignore[attr-defined]


def a_list_for_a_register(group: Group) -> None: group.scc = [True]  # type: ignore[assignment]


def an_operation_misspelt(group: Warps) -> None: group.o.flushed(group.v[0])  # type: ignore[attr-defined]


def no_mask_asked(group: Group) -> bool: return bool(group.mask.all())  # type: ignore[union-attr]
