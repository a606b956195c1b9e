"""Translates a program to LLVM IR: one function that runs a wave from any of its places until it leaves or waits.

Every block of the program appears for waves with all lanes active; blocks that waves can reach with some lanes masked
off appear again in general form. What has no compiled form ends a block: the wave returns and the reference executes
that instruction.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final, Protocol

from tinyhw.arch import Arch
from tinyhw.core.errors import Error, PageFault, Unsupported
from tinyhw.emulator.amdgcn import control, hwreg
from tinyhw.emulator.amdgcn.binders import altered
from tinyhw.emulator.amdgcn.gfx11.matrix import SHAPES as MATRIX
from tinyhw.emulator.amdgcn.memory.lds import ds_atomic
from tinyhw.emulator.amdgcn.memory.tables import DS_ATOMICS
from tinyhw.emulator.amdgcn.modes import GPR_IDX_EN, VSKIP
from tinyhw.emulator.check.amdgcn.effects import kind_of
from tinyhw.emulator.check.amdgcn.paths import prove
from tinyhw.emulator.jit.amdgcn import alu, matrix_plans, special, threads  # noqa: F401  (they register what they translate)
from tinyhw.emulator.jit.amdgcn.access import Accesses
from tinyhw.emulator.jit.amdgcn.context import ENTRY, WAVE
from tinyhw.emulator.jit.amdgcn.liveness import End, unwanted
from tinyhw.emulator.jit.amdgcn.outline import Outlined
from tinyhw.emulator.jit.amdgcn.shadows import Shadows
from tinyhw.emulator.jit.amdgcn.shadows import words as shadow_words
from tinyhw.emulator.jit.amdgcn.shapes import DONE, FAULTED, MEMORY, Shapes
from tinyhw.emulator.jit.amdgcn.site import FIND, Site
from tinyhw.emulator.jit.amdgcn.state import (
  AWAY,
  HEADER,
  LEFT,
  MODE,
  PASSED,
  RESUME,
  SIGNALS,
  STATUS,
  TARGET,
  Registers,
)
from tinyhw.emulator.jit.amdgcn.watched import FIND as FIND_WATCHED
from tinyhw.emulator.jit.amdgcn.watched import Watched
from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, VCC_LO

RUN, END, BARRIER, YIELD, STEP, FAULT, JUMP = range(7)  # a wave's status
BLOCK_LIMIT: Final = 256
LARGEST: Final = 65_536  # instructions of a program that is compiled
LONGEST_RUN: Final = 8192  # instructions of a function before its first end
INLINED: Final = 200  # memory instructions that hot code has in place: each costs LLVM milliseconds
MATRIX_COST: Final = 100  # of a matrix instruction, in others
LINES_A_FUNCTION: Final = 400  # of text, at least, where blocks are more functions than one
MODULE: Final = 12_000  # bytes of text that are sent before there is all
_LABEL: Final = re.compile(r"(?a)label %[dfg](\d+)\b(?!\.)")
LAST, EACH, EACH_HOT = 1, 2, 3  # details of a translation
WATCHED, RACES, WGP = 8, 1, 2  # the same: code with shadows, for workgroups of several waves, in WGP mode
Place = tuple[int, int]  # offset from the entry, MODE
_RUN: Final = """
define void @run(ptr %context, ptr %states, i64 %stride, i64 %count) {{
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %after ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %bytes = mul i64 %i, %stride
  %state = getelementptr i8, ptr %states, i64 %bytes
  %status.at = getelementptr i32, ptr %state, i64 {status}
  %status = load i32, ptr %status.at
  %ready = icmp eq i32 %status, 0
  br i1 %ready, label %go, label %after
go:
  %wave.at = getelementptr i8, ptr %context, i64 {wave}
  store i64 %i, ptr %wave.at
{call}
went:
  %then = load i32, ptr %status.at
  switch i32 %then, label %after [ i32 {run}, label %go  i32 {fault}, label %done ]
after:
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}}
"""


@dataclass
class Translation:
  """What the numbers of a program's text mean: resume points by index, memory sites by index.

  """
  places: list[Place]
  sites: list[Site]
  compiled: int  # how many of the first places have code
  code: dict[int, bytes]  # the bytes that were translated, by offset
  instructions: int  # how many those are
  alone: bool  # see `threads.alone`
  weight: float  # what an instruction costs where they cost most, as many of the usual ones
  interpreted: dict[str, int] = field(default_factory=dict)


class Source(Protocol):
  """What a translator needs of a program."""
  arch: Arch
  entry: int

  def fetch(self, pc: int) -> Instruction: ...

  def remember(self, start: int, stop: int) -> bytes: ...


class Translator:
  """Translates the code that is reachable from some places of a program.

  `quick` makes text that LLVM compiles several times faster: accesses are calls, and a program in which lanes are
  switched off has its general form only. `detail` is for comparisons: with LAST the registers of waves that end are in
  their states, with EACH and EACH_HOT blocks have one instruction. With WATCHED the code finds out whether the hazard
  checks could find something: then it ends in FAULT, or STEP. A program of which that is known before is NotCompiled.
  """

  def __init__(self, program: Source, lanes: int, vgprs: int, partial: bool, quick: bool = False,
               detail: int = 0) -> None:
    self.program, self.lanes, self.vgprs, self.partial, self.quick = program, lanes, vgprs, partial, quick
    self.detail = detail
    self.e = Emitter(lanes)
    self.r = Registers(self.e, vgprs, program.arch)
    self.called: dict[str, str] = {}  # functions by name
    self.sent = 0  # how many of them have been sent
    self.accesses: Accesses = Outlined(self.e, "fault", self.called)
    self.shapes = Shapes(self.e, vgprs, program.arch, self.called) if quick else None
    self.watch: Shadows | None = None
    self.away: dict[str, int] = {}  # labels of a block
    if detail & WATCHED:
      self.watch = Shadows(self.e, self.r, "fault")
      self.accesses = Watched(self.e, "fault", self.called, self.watch, bool(detail & RACES))
    self.index: dict[Place, int] = {}
    self.order: list[Place] = []
    self.stops: dict[Place, int] = {}
    self.leaders: set[int] = set()
    self.fetched: dict[int, Instruction | None] = {}
    self.found: list[Instruction] = []
    self.interpreted: dict[str, int] = {}
    self.code: dict[int, bytes] = {}
    self.count = 0
    self.weight = 1.0
    self.named: list[int] = []  # offsets whose addresses the program makes
    self.functions: list[int] = []  # those of them where there is code
    self.exec_written = False
    self.full = True
    self.block = 0  # offset of the block that is translated
    self.left = ""  # instructions that the wave may execute after that block
    self.end: tuple[Sequence[str], dict[int, int]] | None = None  # where it goes on, see `liveness`

  def translate(self, starts: list[Place], send: Callable[[str], None]) -> Translation:
    """The translation of everything that can be reached from the places; modules of it are sent as they are ready."""
    self.send = send
    for offset, _ in starts: self._discover(offset)
    if any(i.mnemonic in {"s_setpc_b64", "s_swappc_b64"} for i in self.found): self._discover_named()
    for place in starts: self._place(place)
    for offset in self.functions: self._place((offset, starts[0][1]))
    if isinstance(self.accesses, Watched): self._prove(self.accesses, starts)
    e = self.e
    full = general = 0
    if self.watch is None and not self.quick and sum(i.family in MEMORY for i in self.found) <= INLINED:
      self.accesses = Accesses(self.e, "fault")
      self.accesses.ahead = True
      # fragments of matrices are in both halves of a wave
      self.accesses.halves = self.lanes == 32 and any(i.mnemonic in MATRIX for i in self.found)
    kinds = {(id(i.row), *map(i.fields.get, ("sdst", "simm16", "gds"))): i for i in self.found}.values()
    both = self.partial or any(map(_switches_lanes, kinds))
    only_general = both and self.quick
    blocks: dict[int, list[str]] = {}
    ends: dict[int, End] = {}
    while not only_general and full < len(self.order) or both and general < len(self.order):
      self.full = not only_general and full < len(self.order)
      k = full if self.full else general
      self._block(k)
      if self.full:
        ends[k] = End.of(self.r, self.end)
        full += 1
      else: general += 1
      blocks.setdefault(k, []).extend(e.lines)
      e.lines = []
      both |= self.exec_written
    if not self.quick and not self.detail:
      for k, lines in unwanted(ends, self.vgprs).items():
        for n in lines: blocks[k][n] = ""
    for k in range(len(self.order)):
      self._entrance(k, both, only_general)
      blocks[k] = e.lines + blocks[k]
      e.lines = []
    groups = self._groups([len(blocks[k]) for k in range(len(self.order))])
    for n, group in enumerate(groups):
      self.called[f"@wave.{n}"] = self._wave(groups, n, self._numbered("\n".join("\n".join(blocks[k]) for k in group)))
      if n < len(groups) - 1: self._send()
    self.called["@run"] = _RUN.format(status=STATUS, wave=WAVE, fault=FAULT, run=RUN, call=_call(groups))
    self._send()
    places = self.order + list(self.stops)
    together = threads.alone(kinds)
    return Translation(places, self.accesses.sites, len(self.order), self.code, self.count, together, self.weight,
                       self.interpreted)

  # ---- text

  def _groups(self, lines: list[int]) -> list[range]:
    """Blocks, by their numbers of lines, for functions of their own: one, or as many as compile at the same time."""
    count = max(1, min(threads.count(), sum(lines) // LINES_A_FUNCTION)) if self.quick else 1
    out: list[range] = []
    first, total, have = 0, sum(lines), 0
    for k, n in enumerate(lines):
      have += n
      if have * count >= total * (len(out) + 1) or k == len(lines) - 1:
        out.append(range(first, k + 1))
        first = k + 1
    return out

  def _numbered(self, text: str) -> str:
    """Numbers that were not known when the text was made."""
    for n in range(len(self.stops)): text = text.replace(f"@STOP{n}@", str(len(self.order) + n))
    for mode in {mode for _, mode in self.order}:
      known = " ".join(f"i64 {at}, label %d{k}" for k, (at, m) in enumerate(self.order) if m == mode)
      text = text.replace(f"@PLACES{mode}@", known)
    return text

  def _wave(self, groups: list[range], n: int, body: str) -> str:
    """The function of a group of blocks."""
    e, group = self.e, groups[n]
    out = []
    for k in sorted({int(k) for k in _LABEL.findall(body)} - set(group)):  # go on in another function
      labels = "".join(f"{kind}{k}:\n  br label %x{k}\n" for kind in "dfg")
      out.append(f"{labels}x{k}:\n  store i32 {k}, ptr %resume.at\n  ret void")
    cases = " ".join(f"i32 {k}, label %d{k}" for k in group)
    stack = "".join(f"  %{name} = {allocation}\n" for name, allocation in e.stack.items())
    head = (f"define hidden void @wave.{n}(ptr noalias %state, ptr noalias %context) #0 {{\n"
            f"  %lanes = alloca [{self.lanes} x i32], align 64\n{stack}"
            f"  %resume.at = getelementptr i32, ptr %state, i64 {RESUME}\n  %resume = load i32, ptr %resume.at\n"
            f"  switch i32 %resume, label %lost [ {cases} ]\nlost:\n  unreachable\n"
            f"fault:\n{_status(FAULT, 'fault')}  ret void\n")
    return "\n".join([head, body, *out, "}"])

  def _send(self, least: int = 0) -> None:
    """Send the functions that have not been sent as a module, when they are so many bytes of text."""
    new = list(islice(self.called, self.sent, None))
    if sum(len(self.called[name]) for name in new) < least: return
    self.sent = len(self.called)
    e, text = self.e, "\n".join(self.called[name] for name in new)
    more = dict(e.declared)
    while added := [name for name in more if f"@{name}(" in text]:
      text = "\n".join([text, *(more.pop(name) for name in added)])
    if "@find(" in text: text += FIND if self.watch is None else FIND_WATCHED
    elsewhere = [_declaration(f) for name, f in self.called.items() if name not in new and f"{name}(" in text]
    constants = [c for c in e.constants if c.partition(" ")[0] in text]
    self.send("\n".join([
      *constants, text, *elsewhere, f"attributes #0 = {{ nounwind {_WIDTH} }}",
      f"attributes #1 = {{ nounwind noinline {_WIDTH} }}", "!0 = !{}", '!1 = !{!"branch_weights", i32 2000, i32 1}',
      '!2 = !{!"branch_weights", i32 1, i32 2000}']))

  # ---- finding blocks

  def _fetch(self, offset: int) -> Instruction | None:
    """The instruction, or None where there is none: the reference then says why, if a wave comes there."""
    if offset not in self.fetched:
      try: self.fetched[offset] = self.program.fetch(self.program.entry + offset)
      except Error: self.fetched[offset] = None
    return self.fetched[offset]

  def _discover(self, offset: int) -> None:
    """Every offset where a block must begin. Raises NotCompiled for code that changes itself, or that has no end."""
    todo, seen = [offset], set()
    while todo:
      at = todo.pop()
      if at in seen: continue
      seen.add(at)
      self.leaders.add(at)
      while (i := self._fetch(at)) is not None:
        self.found.append(i)
        if len(self.found) > LARGEST: raise NotCompiled(f"more than {LARGEST:,} instructions")
        name, before, at = i.mnemonic, at, at + i.size
        if name in _LEADS:
          if name == "s_icache_inv": raise NotCompiled("code that may change itself (s_icache_inv)")
          if name in control.DIRECT: todo.append(self._target(i, before))
          if name == "s_getpc_b64": self.named += self._named(i, before)
          if name in {"s_endpgm", "s_branch", "s_setpc_b64"}: break
          if name in control.CONDITIONAL or name in _ENDS:
            todo.append(at)
            break
        if at in seen: break

  def _discover_named(self) -> None:
    """Code at addresses that the program makes. They may as well be those of data: what has no end is none."""
    for offset in self.named:  # which grows as code is found
      if offset not in self.leaders:
        if not self._ends(offset): continue
        self._discover(offset)
      self.functions.append(offset)

  def _ends(self, offset: int) -> bool:
    """Whether instructions from here on come to an end, a return or a jump before long."""
    for _ in range(LONGEST_RUN):
      i = self._fetch(offset)
      if i is None: return False
      if i.mnemonic in {"s_endpgm", "s_branch", "s_setpc_b64"}: return True
      offset += i.size
    return False

  def _named(self, i: Instruction, offset: int) -> list[int]:
    """The place whose address is made from the PC: s_getpc, then an addition of a constant to its low half."""
    low, after = i.operands["sdst"].value, offset + i.size
    at = after
    for _ in range(4):
      following = self._fetch(at)
      if following is None: break
      at += following.size
      if following.mnemonic in _ADD_LOW and following.operands["sdst"].value == low:
        literals = [o.value for o in following.operands.values() if o.kind == "lit"]
        return [after + (literals[0] & 0x7FFFFFFF) - (literals[0] & 0x80000000)] if literals else []
    return []

  def _target(self, i: Instruction, offset: int) -> int:
    return control.target(i, self.program.entry + offset) - self.program.entry

  def _place(self, place: Place) -> int:
    known = self.index.get(place)
    if known is None:
      known = self.index[place] = len(self.order)
      self.order.append(place)
      self.leaders.add(place[0])
    return known

  def _prove(self, accesses: Watched, starts: Sequence[Place]) -> None:
    """Look at all paths. Raises NotCompiled for a program that is guilty on some."""
    code = {at: i for at, i in self.fetched.items() if i is not None}
    proof = prove(code, [offset for offset, _ in starts], self.program.arch.isa, self.lanes, bool(self.detail & WGP),
                  self.functions)
    if proof.why: raise NotCompiled(f"not proven: {proof.why}")
    accesses.proof = proof
    assert self.watch is not None
    self.watch.exact = {o.value for i in self.found if i.mnemonic in {"v_writelane_b32", "v_readlane_b32"}
                        for n, o in i.operands.items() if o.kind == "v" and n in {"vdst", "src0"}}

  # ---- blocks

  def _entrance(self, k: int, both: bool, only_general: bool) -> None:
    """Where waves come in with any EXEC."""
    e, n = self.e, self.lanes
    e.start(f"d{k}")
    if only_general or not both: return e.do(f"br label %{'g' if only_general else 'f'}{k}")
    at = e.op(f"getelementptr i32, ptr %state, i64 {EXEC_LO}")
    bits = e.op(f"load i{n}, ptr {at}, align 4")
    e.do(f"br i1 {e.op(f'icmp eq i{n} {bits}, -1')}, label %f{k}, label %g{k}")

  def _block(self, k: int) -> None:
    e, r = self.e, self.r
    offset, mode = self.order[k]
    self.block = offset
    e.start(f"{'f' if self.full else 'g'}{k}")
    r.begin()
    r.full = self.full
    if self.watch is not None: self.watch.begin()
    self.end = None
    found: list[tuple[int, Instruction]] = []
    at = offset
    limit = 1 if self.detail in {EACH, EACH_HOT} else BLOCK_LIMIT
    while len(found) < limit and (i := self._fetch(at)) is not None:
      found.append((at, i))
      at += i.size
      if i.mnemonic in _ENDS or i.mnemonic in control.DIRECT or i.mnemonic == "s_endpgm" or at in self.leaders: break
    if offset not in self.code:
      if found:
        self.code[offset] = self.program.remember(self.program.entry + offset, self.program.entry + at)
        matrices = sum("_wmma_" in i.mnemonic or "_mfma_" in i.mnemonic for _, i in found)
        self.weight = max(self.weight, 1 + matrices * MATRIX_COST / len(found))
      else: self._guard(offset)
      self.count += len(found)
    body = e.new_label("body")
    left_at = e.op(f"getelementptr i32, ptr %state, i64 {LEFT}")
    left = Value(e, e.op(f"load i64, ptr {left_at}"), U64, False)
    spent = e.op(f"icmp slt i64 {left.text}, 0")
    away = e.new_label("away")
    e.do(f"br i1 {spent}, label %{away}, label %{body}, !prof !2")
    e.start(away)
    self._leave(YIELD, str(k), mode)
    e.start(body)
    counted = e.op(f"sub i64 {left.text}, @COUNT@")
    where = len(e.lines) - 1
    e.do(f"store i64 {counted}, ptr {left_at}")
    self.left = counted
    count = str(self._instructions(found, at, mode))
    self._aways()
    for n in range(where, len(e.lines)):
      if "@COUNT@" in e.lines[n]: e.lines[n] = e.lines[n].replace("@COUNT@", count)
    self.exec_written |= r.exec_written

  def _aways(self) -> None:
    """Where instructions of watched code go that the reference has to look at."""
    e = self.e
    for label, at in self.away.items():
      e.start(label)
      e.do(f"store i32 {at}, ptr {e.op(f'getelementptr i32, ptr %state, i64 {AWAY}')}")
      e.do("br label %fault")
    self.away.clear()

  def _guard(self, offset: int) -> None:
    """Remember what could not be decoded: once it changes, this translation counts no more."""
    start = self.program.entry + offset
    try: self.code[offset] = self.program.remember(start, start + 4)
    except PageFault: pass  # nothing is mapped there: what comes there later is another program's

  def _instructions(self, found: list[tuple[int, Instruction]], after: int, mode: int) -> int:
    """Emit the instructions and the end of a block; returns how many of them it executes."""
    for n, (at, i) in enumerate(found):
      self.r.leave = partial(self._leave_to_reference, at, mode, n)
      try:
        lanes = self._before(i, at, mode)
        if self._end(i, at, mode): return n + 1
        self._plain(i, at, mode)
        if self.watch is not None: self.watch.after(i, lanes)
      except Untranslatable:
        self.interpreted[i.mnemonic] = self.interpreted.get(i.mnemonic, 0) + 1
        self._stop(at, mode)
        if i.mnemonic not in {"s_setpc_b64", "s_endpgm"}: self._place((at + i.size, mode))
        return n
    if self.watch is not None: self.watch.flush()
    if not found: self._stop(after, mode)
    elif self._fetch(after) is None: self._stop(after, mode)
    else: self._go(after, mode)
    return len(found)

  def _before(self, i: Instruction, at: int, mode: int) -> str | None:
    """What watched code does in front of an instruction; the lanes that are active, None for all."""
    watch, name = self.watch, i.mnemonic
    if watch is None: return None
    if altered(i, mode) is not None: raise Untranslatable(name)
    if name.startswith("s_barrier_signal"): self._alone(i, at)
    watch.fault = self.accesses.fault = f"away.{self.e.label}.{at}"
    self.away[watch.fault] = at
    watch.before(i)
    if name in _ENDS or name in control.DIRECT or name in {"s_endpgm", "s_branch"}: watch.flush()
    return watch.exec()

  def _alone(self, i: Instruction, at: int) -> None:
    """Nothing may be done between the two halves of a barrier, which orders it with neither side."""
    if control.barrier_id(i, at) != -1: raise Untranslatable(i.mnemonic)
    while (following := self._fetch(at := at + i.size)) is not None and following.mnemonic != "s_barrier_wait":
      i = following
      if kind_of(i) or i.mnemonic in _LEADS: raise Untranslatable(i.mnemonic)

  def _plain(self, i: Instruction, at: int, mode: int) -> None:
    r = self.r
    if altered(i, mode) is not None:
      if VSKIP.of(mode) or not special.relative_move(r, i): raise Untranslatable(i.mnemonic)
      return
    if i.mnemonic in control.IGNORED: return
    if i.mnemonic in DS_ATOMICS and ds_atomic(i, mode) != DS_ATOMICS[i.mnemonic]:
      raise Untranslatable(f"{i.mnemonic} that flushes denormals")
    if i.family in MEMORY: return None if self._called(i, at, mode) else self.accesses.translate(r, i, at)
    if i.mnemonic == "s_barrier_signal":
      try: number = control.barrier_id(i, at)
      except Unsupported as error: raise Untranslatable(str(error)) from None
      if number == -1: self._signal()
      return
    if i.mnemonic == "s_getreg_b32":
      register, field_ = hwreg.operand(i)
      if register == hwreg.MODE: return r.set_scalar(i.operands["sdst"].value, self.e.const(U32, field_.of(mode)))
    if i.mnemonic == "s_getpc_b64": return r.set_scalar64(i.operands["sdst"].value, self._pc(at + i.size))
    if i.mnemonic == "s_sendmsg" and hwreg.message(i.isa, i.fields["simm16"]) == "MSG_DEALLOC_VGPRS": return
    halves = self.shapes.halves(i) if self.shapes is not None and i.family == "VOPD" and self.lanes == 32 else None
    for one in halves or [i]:
      if not self._called(one, at, mode): alu.translate(r, one, mode)

  def _called(self, i: Instruction, at: int, mode: int) -> bool:
    """Call the function of the instruction's shape; False where there is none."""
    e, r = self.e, self.r
    if self.watch is not None and i.family in MEMORY: return False
    found = self.shapes.find(i, mode, r.full) if self.shapes is not None else None
    if found is None: return False
    if found[0].name == next(reversed(self.called)): self._send(MODULE)  # it is new
    shape, given = found[0], "".join(f", i64 {x}" for x in found[1])
    r.flush()
    r.forget()
    if not shape.accesses: e.do(f"call void {shape.name}(ptr %state{given})")
    else:
      first = len(self.accesses.sites)
      self.accesses.sites += [replace(site, offset=at, instruction=i) for site in shape.sites]
      became = e.op(f"call i32 {shape.name}(ptr %state, ptr %context, i32 {first}{given})")
      after, left = e.new_label("after"), e.new_label("left")
      other = left if shape.leaves else self.accesses.fault
      e.do(f"br i1 {e.op(f'icmp eq i32 {became}, {DONE}')}, label %{after}, label %{other}")
      if shape.leaves:
        out = e.new_label("out")
        e.start(left)
        e.do(f"br i1 {e.op(f'icmp eq i32 {became}, {FAULTED}')}, label %{self.accesses.fault}, label %{out}")
        e.start(out)
        r.leave()
      e.start(after)
    if shape.writes_exec: r.exec_changed()
    return True

  def _pc(self, offset: int) -> Value:
    e = self.e
    at = e.op(f"getelementptr i8, ptr %context, i64 {ENTRY}")
    return Value(e, e.op(f"load i64, ptr {at}"), U64, False) + Value(e, str(offset), U64, False, offset)

  # ---- ends

  def _leave(self, status: int, place: str, mode: int | str) -> None:
    e = self.e
    e.do(f"store i32 {status}, ptr {e.op(f'getelementptr i32, ptr %state, i64 {STATUS}')}")
    e.do(f"store i32 {place}, ptr {e.op(f'getelementptr i32, ptr %state, i64 {RESUME}')}")
    e.do(f"store i32 {mode}, ptr {e.op(f'getelementptr i32, ptr %state, i64 {MODE}')}")
    e.do("ret void")

  def _stop(self, offset: int, mode: int) -> None:
    """The reference goes on here."""
    self.r.flush()
    number = self.stops.setdefault((offset, mode), len(self.stops))
    self._leave(STEP, f"@STOP{number}@", mode)

  def _leave_to_reference(self, offset: int, mode: int, done: int) -> None:
    """On a way out of a block, after `done` of its instructions."""
    e = self.e
    left = e.op(f"add i64 {self.left}, {e.op(f'sub i64 @COUNT@, {done}')}")
    e.do(f"store i64 {left}, ptr {e.op(f'getelementptr i32, ptr %state, i64 {LEFT}')}")
    number = self.stops.setdefault((offset, mode), len(self.stops))
    self._leave(STEP, f"@STOP{number}@", mode)

  def _jump(self, target: Value, place: Place) -> None:
    """To an address: any place of the code, or out to where the caller finds or makes one."""
    e = self.e
    self.r.flush()
    away = e.new_label("jump")
    offset = target - self._pc(0)
    e.do(f"switch i64 {offset.text}, label %{away} [ @PLACES{place[1]}@ ]")
    e.start(away)
    e.do(f"store i64 {target.text}, ptr {e.op(f'getelementptr i32, ptr %state, i64 {TARGET}')}")
    self._leave(JUMP, str(self._place(place)), place[1])

  def _label(self, offset: int, mode: int) -> str:
    """Where to go from here for a place: lanes that were all active still are unless EXEC was written."""
    k = self._place((offset, mode))
    return f"f{k}" if self.full and not self.r.exec_written else f"d{k}"

  def _go(self, offset: int, mode: int) -> None:
    stored, label = self.r.flush(), self._label(offset, mode)
    self.end = [label], stored
    self.e.do(f"br label %{label}")

  def _end(self, i: Instruction, at: int, mode: int) -> bool:
    """Emit an instruction that ends a block; False for one that does not."""
    name, after, r, e = i.mnemonic, at + i.size, self.r, self.e
    if name == "s_endpgm":
      if 0 < self.detail <= EACH_HOT: r.flush()
      self.end = [], {}
      e.do(f"store i32 {END}, ptr {e.op(f'getelementptr i32, ptr %state, i64 {STATUS}')}")
      e.do("ret void")
    elif name == "s_branch": self._go(self._target(i, at), mode)
    elif name in control.CONDITIONAL:
      condition = self._condition(name)
      stored = r.flush()
      yes, no = self._label(self._target(i, at), mode), self._label(after, mode)
      self.end = [yes, no], stored
      e.do(f"br i1 {condition.text}, label %{yes}, label %{no}")
    elif name in {"s_barrier", "s_sleep", "s_sleep_var"}:
      r.flush()
      if name == "s_barrier": self._signal()
      self._leave(BARRIER if name == "s_barrier" else YIELD, str(self._place((after, mode))), mode)
    elif name == "s_barrier_wait": self._wait(i, at, mode)
    elif name in {"s_setpc_b64", "s_swappc_b64"}:
      target = alu.read(r, i.operands["src0"], "u64")
      if name == "s_swappc_b64": r.set_scalar64(i.operands["sdst"].value, self._pc(after))
      self._jump(target, (after, mode) if name == "s_swappc_b64" else (self.block, mode))
    elif name == "s_call_b64":
      r.set_scalar64(i.operands["sdst"].value, self._pc(after))
      self._place((after, mode))
      self._go(self._target(i, at), mode)
    elif name in {"s_round_mode", "s_denorm_mode", "s_setreg_imm32_b32"}: self._go(after, self._new_mode(i, mode))
    elif name == "s_set_gpr_idx_on":
      special.index_on(r, i)
      self._go(after, mode | GPR_IDX_EN.mask)
    elif name == "s_set_gpr_idx_off": self._go(after, mode & ~GPR_IDX_EN.mask)
    elif name == "s_setreg_b32": self._mode_from_register(i, after, mode)
    elif name in _ENDS: raise Untranslatable(name)
    else: return False
    return True

  def _signal(self) -> None:
    e = self.e
    at = e.op(f"getelementptr i32, ptr %state, i64 {SIGNALS}")
    before = e.op(f"load i32, ptr {at}")
    e.do(f"store i32 {e.op(f'add i32 {before}, 1')}, ptr {at}")

  def _wait(self, i: Instruction, at: int, mode: int) -> None:
    """s_barrier_wait: on at once where the barrier has completed since the wave last waited."""
    e, after = self.e, at + i.size
    try: number = control.barrier_id(i, at)
    except Unsupported as error: raise Untranslatable(str(error)) from None
    if number != -1: return self._go(after, mode)
    self.r.flush()
    pointer = e.op(f"getelementptr i32, ptr %state, i64 {PASSED}")
    passed = e.op(f"icmp ne i32 {e.op(f'load i32, ptr {pointer}')}, 0")
    on, park = e.new_label("on"), e.new_label("park")
    e.do(f"br i1 {passed}, label %{on}, label %{park}")
    e.start(park)
    self._leave(BARRIER, str(self._place((after, mode))), mode)
    e.start(on)
    e.do(f"store i32 0, ptr {pointer}")
    e.do(f"br label %{self._label(after, mode)}")

  def _condition(self, name: str) -> Value:
    what, wanted = control.CONDITIONS[name]
    if what == "scc":
      scc = self.r.scc()
      return scc if wanted else ~scc
    bits = self.r.mask_bits(VCC_LO if what == "vcc" else EXEC_LO)
    return bits != 0 if wanted else bits == 0

  def _mode_from_register(self, i: Instruction, after: int, mode: int) -> None:
    """s_setreg_b32: on at once where MODE stays as it is, else by way of the caller, who finds code for the new one."""
    e, r = self.e, self.r
    register, field_ = hwreg.operand(i)
    if register != hwreg.MODE: raise Untranslatable(i.mnemonic)
    new: Value = field_.put(mode, r.scalar(i.operands["sdst"].value))
    target = self._pc(after)
    r.flush()
    away = e.new_label("mode")
    e.do(f"br i1 {(new == mode).text}, label %{self._label(after, mode)}, label %{away}")
    e.start(away)
    e.do(f"store i64 {target.text}, ptr {e.op(f'getelementptr i32, ptr %state, i64 {TARGET}')}")
    self._leave(JUMP, str(self._place((after, mode))), new.text)

  def _new_mode(self, i: Instruction, mode: int) -> int:
    change = control.mode_change(i)
    if change is None: raise Untranslatable(i.mnemonic)
    field_, value = change
    return field_.put(mode, value)


_ADD_LOW: Final = frozenset({"s_add_u32", "s_add_co_u32", "s_add_nc_u64"})
_WIDTH: Final = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
_ENDS: Final = frozenset({"s_barrier", "s_barrier_wait", "s_sleep", "s_sleep_var", "s_call_b64", "s_setpc_b64",
                          "s_swappc_b64", "s_setreg_b32", "s_setreg_imm32_b32", "s_round_mode", "s_denorm_mode",
                          "s_set_gpr_idx_on", "s_set_gpr_idx_off"})

_LEADS: Final = _ENDS | {*control.DIRECT, *control.CONDITIONAL, "s_icache_inv", "s_getpc_b64", "s_endpgm", "s_branch"}


def _switches_lanes(i: Instruction) -> bool:
  """Whether an instruction may write EXEC, for all that its text tells."""
  if "exec" in i.mnemonic or "v_cmpx" in i.mnemonic: return True
  destination = i.operands.get("sdst")
  return destination is not None and destination.kind == "s" and destination.value in {EXEC_LO, EXEC_LO + 1}


def _call(groups: list[range]) -> str:
  """The call of the function in which a wave goes on, by the number of its place."""
  if len(groups) == 1: return "  call void @wave.0(ptr %state, ptr %context)\n  br label %went"
  lines = [f"  %resume.at = getelementptr i32, ptr %state, i64 {RESUME}", "  %resume = load i32, ptr %resume.at"]
  for n, group in enumerate(groups):
    lines += [f"  %in.{n} = icmp ult i32 %resume, {group.stop}", f"  br i1 %in.{n}, label %call.{n}, label %not.{n}",
              f"call.{n}:", f"  call void @wave.{n}(ptr %state, ptr %context)", "  br label %went", f"not.{n}:"]
  return "\n".join([*lines, "  unreachable"])


def _declaration(function: str) -> str:
  """The declaration of a function from its definition."""
  head = function.lstrip().partition("\n")[0]
  return head.replace("define", "declare").partition(") ")[0] + ")"


def _status(status: int, name: str) -> str:
  return (f"  %{name}.at = getelementptr i32, ptr %state, i64 {STATUS}\n"
          f"  store i32 {status}, ptr %{name}.at\n")


def state_words(vgprs: int, lanes: int, detail: int = 0) -> int:
  """Dwords of a wave's state, a multiple of a cache line."""
  shadows = shadow_words(vgprs, lanes) if detail & WATCHED else 0
  return HEADER + vgprs * lanes + -(-shadows // 16) * 16

