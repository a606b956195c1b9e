"""What the text of old modules means today: PTX for sm_1x, and from before a rounding had to be said.

Facts: the PTX ISA manual. "`.target sm_1x`" of each instruction of f32: subnormal inputs and results are flushed; notes
and errata of `mad`: made for sm_20 and later, it is a fused multiply-add that rounds to nearest, up to PTX 3.1 without
saying so.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.isa.ptx.forms import find
from tinyhw.isa.ptx.model import Block, Function, Instruction, Module, Statement

_ROUNDED: Final = (3, 2)  # the first PTX in which mad.f32 must say its rounding
_SUBNORMALS: Final = 20  # the first target that has subnormal numbers of f32


def today(module: Module) -> Module:
  """The module with all said that its version and target imply."""
  flushes = 10 <= module.sm < _SUBNORMALS
  if module.version >= _ROUNDED and not flushes: return module

  def said(i: Instruction) -> Instruction:
    if i.opcode == "mad" and find(i.name) is None: i = _with(i, "rn")
    return _with(i, "ftz") if flushes and "f32" in i.modifiers else i

  def body(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    return tuple(said(s) if isinstance(s, Instruction) else replace(s, statements=body(s.statements))
                 if isinstance(s, Block) else s for s in statements)
  return replace(module, items=tuple(replace(x, body=body(x.body)) if isinstance(x, Function) and x.body is not None
                                     else x for x in module.items))


def _with(i: Instruction, modifier: str) -> Instruction:
  """The instruction with one modifier more, where it takes that."""
  if modifier in i.modifiers: return i
  more = replace(i, modifiers=(modifier, *i.modifiers))
  return more if find(more.name) is not None else i
