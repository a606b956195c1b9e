"""Writes a PTX module as text: `parse(text(module)) == module`."""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from tinyhw.isa.ptx.model import (
  Address,
  Arguments,
  Block,
  Directive,
  Float,
  Function,
  Initializer,
  Instruction,
  Int,
  Label,
  Member,
  Minus,
  Module,
  Name,
  Not,
  Operand,
  OperandPart,
  Pair,
  Prototype,
  Section,
  Statement,
  Sum,
  Targets,
  Variable,
  Vector,
)


def text(module: Module) -> str:
  """The module's text."""
  lines = [f".version {module.version[0]}.{module.version[1]}", f".target {', '.join(module.target)}",
           *([f".address_size {module.address_size}"] if module.address_size else []), ""]
  for item in module.items:
    if isinstance(item, Function): lines += [*function(item), ""]
    elif isinstance(item, Variable): lines.append(variable(item) + ";")
    elif isinstance(item, Section): lines.append(f".section {item.name} {{ {' '.join(item.words)} }}")
    else: lines.append(_directive(item))
  return "\n".join(lines) + "\n"


def function(f: Function) -> Iterator[str]:
  """The lines of a function."""
  attributes = "".join(f".attribute({a}) " for a in f.attributes)
  linkage = f".{f.linkage} " if f.linkage else ""
  results = f"({', '.join(map(variable, f.results))}) " if f.results else ""
  yield f"{linkage}.{f.kind} {attributes}{results}{f.name} ({', '.join(map(variable, f.params))})"
  for d in f.directives: yield f".{d.name} {' '.join(d.words)}{';' if d.name == 'pragma' else ''}"
  if f.body is None:
    yield ";"
    return
  yield "{"
  yield from _statements(f.body, "  ")
  yield "}"


def _statements(body: Iterable[Statement], indent: str) -> Iterator[str]:
  for s in body:
    if isinstance(s, Instruction): yield indent + instruction(s)
    elif isinstance(s, Label): yield f"{s.name}:"
    elif isinstance(s, Variable): yield f"{indent}{variable(s)};"
    elif isinstance(s, Directive): yield indent + _directive(s)
    elif isinstance(s, Targets): yield f"{s.label}: .{s.kind} {', '.join(s.names)};"
    elif isinstance(s, Prototype):
      results = f"({', '.join(map(variable, s.results))}) " if s.results else ""
      flags = "".join(f" {f}" for f in s.flags)
      yield f"{s.label}: .callprototype {results}_ ({', '.join(map(variable, s.params))}){flags};"
    else:
      assert isinstance(s, Block)
      yield indent + "{"
      yield from _statements(s.statements, indent + "  ")
      yield indent + "}"


def _directive(d: Directive) -> str:
  end = "" if d.name in {"file", "loc"} else ";"
  return f".{d.name} {' '.join(d.words)}{end}"


def variable(v: Variable) -> str:
  """A declaration without its semicolon."""
  words = [f".{v.linkage}"] if v.linkage else []
  words.append(f".{v.space}")
  words += [f".attribute({a})" for a in v.attributes]
  if v.align: words.append(f".align {v.align}")
  if v.vector > 1: words.append(f".v{v.vector}")
  words.append(f".{v.type}")
  if v.pointer is not None:
    words.append(".ptr")
    if v.pointer[0]: words.append(f".{v.pointer[0]}")
    if v.pointer[1]: words.append(f".align {v.pointer[1]}")
  name = v.name + (f"<{v.count}>" if v.count else "") + "".join(f"[{n or ''}]" for n in v.dims)
  words.append(name)
  if v.initializer is not None: words.append(f"= {_initializer(v.initializer)}")
  return " ".join(words)


def _initializer(value: Initializer) -> str:
  if isinstance(value, Member): return f"{value.name} = {value.value}"
  if isinstance(value, tuple): return f"{{{', '.join(map(_initializer, value))}}}"
  return operand(value)


def instruction(i: Instruction) -> str:
  """An instruction with its semicolon."""
  guard = "" if i.predicate is None else f"@{'!' if i.predicate.negated else ''}{i.predicate.register} "
  operands = ", ".join(map(operand, i.operands))
  return f"{guard}{i.name}{' ' if operands else ''}{operands};"


def operand(o: Operand) -> str:
  """An operand as it is written."""
  if isinstance(o, Name): return o.text
  if isinstance(o, Int):  # the least number is no literal with a minus: 2**63 has no room for a sign
    return "-9223372036854775807-1" if o.value == -1 << 63 else f"{o.value}{'U' if o.unsigned else ''}"
  if isinstance(o, Float): return f"0f{o.bits:08X}" if o.width == 32 else f"0d{o.bits:016X}"
  if isinstance(o, Sum):
    if o.function == "element": return f"{o.name}[{o.offset}]"
    offset = f"{o.offset:+d}" if o.offset else ""
    mask, _, generic = o.function.partition(" ")
    if mask == "generic": return f"generic({o.name}){offset}"
    name = f"generic({o.name})" if generic else o.name
    return f"{mask}({name}{offset})" if mask else f"{name}{offset}"
  if isinstance(o, Not): return f"!{operand(o.operand)}"
  if isinstance(o, Minus): return f"-{operand(o.operand)}"
  if isinstance(o, OperandPart): return f"{operand(o.operand)}.{o.part}"
  if isinstance(o, Vector): return f"{{{', '.join(map(operand, o.elements))}}}"
  if isinstance(o, Pair): return f"{operand(o.first)}|{operand(o.second)}"
  if isinstance(o, Arguments): return f"({', '.join(map(operand, o.elements))})"
  assert isinstance(o, Address)
  return f"[{', '.join([operand(o.base) + (f'{o.offset:+d}' if o.offset else ''), *map(operand, o.more)])}]"
