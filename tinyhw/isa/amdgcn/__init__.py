"""AMD GPU machine code: bytes to instructions and back, as text and as operands with names.

`table("gfx11")` gives the shared `Table` of a generation; `Table.decode(bytes, at)` gives an `Instruction` with named
operands, so that users never look at bits.
"""
from tinyhw.isa.amdgcn.model import Instruction, Operand, Row
from tinyhw.isa.amdgcn.tables import MEMBERS, Table, table

__all__ = ["MEMBERS", "Instruction", "Operand", "Row", "Table", "table"]
