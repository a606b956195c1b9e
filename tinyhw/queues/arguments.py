"""Which of a kernel's arguments it reads or writes memory by: what follows from its code, and nothing where that is
unsure.

    accesses(program's image, "amdgcn", kernel) -> [(offsets of arguments, reads, writes)], or None

Registers are followed from the loads of arguments to the addresses of loads and stores, in the order of the code. An
address that comes from elsewhere (memory, a call, a texture) ends it: then nobody can say.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tinyhw.arch import generation
from tinyhw.autogen import amdhsa
from tinyhw.core.errors import Error
from tinyhw.isa.amdgcn import Instruction, table
from tinyhw.isa.amdgcn.tables import Table
from tinyhw.isa.ptx import model, parser
from tinyhw.wire import codeobject
from tinyhw.wire.cubin import Cubin

LONGEST: Final = 20_000  # instructions that are gone through
_KERNARG: Final = -1     # of a register that holds the address of the arguments themselves
_NONE: Final[frozenset[int]] = frozenset()
# SGPRs that come before the arguments' address, where the kernel asks for them (LLVM's AMDGPUUsage, initial state)
_BEFORE: Final = ((amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, 4),
                  (amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR, 2),
                  (amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_QUEUE_PTR, 2))


@dataclass(frozen=True, slots=True)
class Access:
  """A load, store or atomic, by an address that came from these arguments: their first bytes in the arguments."""
  offsets: frozenset[int]
  reads: bool
  writes: bool


@dataclass(frozen=True, slots=True)
class Facts:
  """A kernel's needs: bytes of LDS or shared memory, of scratch a lane, its arguments' bytes, the threads of a
  block that it was made for; `pointers` are offsets of arguments that are addresses, where its object tells them,
  `small` those of arguments with too few bytes to be one; `accesses` is None where the code does not say. `first` is
  where arguments begin in a constant bank, `sgpr` the register that has their address, `words` AMD's kernel
  descriptor."""
  name: str
  shared: int
  scratch: int
  arguments: int
  registers: int
  block: tuple[int, int, int] | None
  limit: int
  pointers: tuple[int, ...] | None
  accesses: tuple[Access, ...] | None
  first: int = 0
  words: tuple[int, ...] = ()
  sgpr: int = 0
  small: tuple[int, ...] = ()


@lru_cache(maxsize=256)
def facts(image: bytes, kind: str) -> dict[str, Facts]:
  """Of each kernel of a code object or cubin, by name. Raises Error for what is none."""
  if kind == "amdgcn": return _amdgcn(image)
  if kind == "ptx": return {}  # a text, of which nothing is laid out
  return _cubin(image)


# ---- AMD

def _amdgcn(image: bytes) -> dict[str, Facts]:
  code = codeobject.load(image)
  found = {}
  for name, k in code.kernels.items():
    pointers = tuple(a.offset for a in k.arguments if a.pointer) if k.arguments else None
    sgpr = sum(count for bit, count in _BEFORE if k.property(bit))
    try: accesses = _followed(code, k.start_offset, sgpr)
    except Error: accesses = None
    descriptor = code.image[k.descriptor_offset:k.descriptor_offset + 64]
    words = tuple(memoryview(descriptor).cast("I").tolist()) if len(descriptor) == 64 else ()
    found[name] = Facts(name, k.group_segment_size, k.private_segment_size, k.kernarg_size, 0,
                        k.required_workgroup_size, k.max_workgroup_size or 0, pointers, accesses,
                        words=words, sgpr=sgpr, small=tuple(a.offset for a in k.arguments or () if a.size < 8))
  return found


def _followed(code: codeobject.CodeObject, entry: int, sgpr: int) -> tuple[Access, ...] | None:
  instructions = table(generation(code.arch).table)
  tainted: dict[tuple[str, int], frozenset[int]] = {("s", sgpr + n): frozenset([_KERNARG]) for n in (0, 1)}
  found: set[Access] = set()
  for instruction in _code(instructions, code.image, entry):
    if not _step(instruction, tainted, found): return None
  return tuple(found)


def _code(instructions: Table, image: bytes, at: int) -> Iterable[Instruction]:
  for _ in range(LONGEST):
    i = instructions.decode(image, at)
    yield i
    at += i.size
    if i.mnemonic == "s_endpgm": return


def _registers(i: Instruction, role: str) -> Iterable[tuple[str, int]]:
  for o in i.operands.values():
    if o.role == role and o.kind in ("s", "v"):
      for n in range(max(o.dwords, 1)): yield o.kind, o.value + n


def _of(i: Instruction, tainted: dict[tuple[str, int], frozenset[int]], name: str) -> frozenset[int]:
  o = i.operands.get(name)
  if o is None or o.kind not in ("s", "v"): return _NONE
  return _NONE.union(*(tainted.get((o.kind, o.value + n), _NONE) for n in range(max(o.dwords, 1))))


def _step(i: Instruction, tainted: dict[tuple[str, int], frozenset[int]], found: set[Access]) -> bool:
  """Go past an instruction; False where an address is nobody's."""
  outs = list(_registers(i, "d"))
  loads, stores = i.row.loads, i.row.stores
  base = "sbase" if "sbase" in i.operands else "saddr" if "saddr" in i.operands else "vaddr"
  if (loads or stores) and base in i.operands and "addr" not in i.operands:
    taint = _of(i, tainted, "sbase") | _of(i, tainted, "saddr") | _of(i, tainted, "vaddr")
    if taint == {_KERNARG} and "sbase" in i.operands:
      offset = i.operands["offset"]
      soffset = i.operands.get("soffset")
      if offset.kind != "imm" or (soffset is not None and soffset.kind == "s" and soffset.value < 106): return False
      for n, out in enumerate(outs): tainted[out] = frozenset([offset.value + 4 * n & ~7])
      return True
    if not taint or _KERNARG in taint: return False
    found.add(Access(taint, loads, stores))
    for out in outs: tainted.pop(out, None)
    return True
  if loads or stores:  # LDS
    for out in outs: tainted.pop(out, None)
    return True
  taint = _NONE.union(*(tainted.get(r, _NONE) for r in _registers(i, "s")))
  if i.mnemonic.startswith("s_load") or (i.row.family == "SOPP" and i.mnemonic.startswith("s_setpc")): return False
  for n, out in enumerate(outs): tainted[out] = _moved(i, n, taint, tainted)
  return True


def _moved(i: Instruction, n: int, taint: frozenset[int], tainted: dict[tuple[str, int], frozenset[int]]
           ) -> frozenset[int]:
  """What an output's dword holds: of a plain move of several dwords each its own, else all of the inputs."""
  sources = [o for o in i.operands.values() if o.role == "s" and o.kind in ("s", "v")]
  if len(sources) == 1 and n and sources[0].dwords > n:
    return tainted.get((sources[0].kind, sources[0].value + n), _NONE)
  if "X" in "".join(i.operands):  # two operations in one: each output has its own inputs
    side = "X" if n == 0 else "Y"
    mine = [name for name, o in i.operands.items() if o.role == "s" and name.endswith(side)]
    return _NONE.union(*(_of(i, tainted, name) for name in mine))
  return taint


# ---- NVIDIA

def _cubin(image: bytes) -> dict[str, Facts]:
  cubin = Cubin(image)
  source = cubin.ptx
  entries = parser.parse(source).entries if source is not None else {}
  found = {}
  for name, k in cubin.kernels.items():
    entry = entries.get(name)
    pointers = tuple(p.offset for p in k.parameters if p.size == 8)
    accesses = None if entry is None else _ptx(entry, {v.name: p.offset for v, p in zip(entry.params, k.parameters)})
    found[name] = Facts(name, k.shared, k.local, k.params_size, k.registers, k.required, k.limit, pointers, accesses,
                        k.params, small=tuple(p.offset for p in k.parameters if p.size < 8))
  return found


_MEMORY: Final = {"ld": (True, False), "ldu": (True, False), "st": (False, True), "atom": (True, True),
                  "red": (True, True), "prefetch": (True, False)}
_SPACES: Final = {"shared", "local", "const", "shared::cta", "shared::cluster"}
_GIVE_UP: Final = {"call", "tex", "tld4", "suld", "sust", "sured"}


def _ptx(entry: model.Function, params: dict[str, int]) -> tuple[Access, ...] | None:
  tainted: dict[str, frozenset[int]] = {}
  found: set[Access] = set()
  def of(operand: model.Operand) -> frozenset[int]:
    return _NONE.union(*(tainted.get(leaf.text, _NONE) for leaf in model.leaves(operand)
                         if isinstance(leaf, model.Name)))
  for i in _instructions(entry.body or ()):
    if i.opcode in _GIVE_UP or "bulk" in i.modifiers: return None
    if i.opcode == "ld" and any(m.startswith("param") for m in i.modifiers):
      base = i.operands[1]
      if not isinstance(base, model.Address) or not isinstance(base.base, model.Name) or base.base.text not in params:
        return None
      for leaf in model.leaves(i.operands[0]):
        if isinstance(leaf, model.Name): tainted[leaf.text] = frozenset([params[base.base.text] + base.offset])
      continue
    places = [o for o in i.operands if isinstance(o, model.Address)]
    if places:
      if _SPACES & set(i.modifiers) and i.opcode != "cp": continue
      if i.opcode == "cp": places, how = places[1:], (True, False)
      elif i.opcode in _MEMORY: how = _MEMORY[i.opcode]
      else: continue
      for place in places:
        taint = of(place)
        if not taint: return None
        found.add(Access(taint, *how))
      if how[0] and i.opcode != "cp":
        for leaf in model.leaves(i.operands[0]):
          if isinstance(leaf, model.Name) and i.operands[0] is not places[0]: tainted.pop(leaf.text, None)
      continue
    if len(i.operands) > 1:
      taint = _NONE.union(*(of(o) for o in i.operands[1:]))
      for leaf in model.leaves(i.operands[0]):
        if isinstance(leaf, model.Name): tainted[leaf.text] = taint
  return tuple(found)


def _instructions(body: Iterable[object]) -> Iterable[model.Instruction]:
  for statement in body:
    if isinstance(statement, model.Instruction): yield statement
    elif isinstance(statement, model.Block): yield from _instructions(statement.statements)
