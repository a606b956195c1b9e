"""What the terminal debugger has for PTX: threads, registers by their names, shared and local memory."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.ptx.group import LANES
from tinyhw.terminal.shell import D, Shell
from tinyhw.terminal.text import format_of, kinds, need, number_text

LIMITS: Final = {"warp": "wave", "block": "workgroup"}


class PtxShell(Shell[D]):
  """Commands for a launch of PTX."""

  def add(self, args: str, temporary: bool) -> bool: return super().add(self._limits(args), temporary)

  def do_watch(self, args: str) -> bool:
    """watch EXPRESSION [warp N] [if EXPRESSION]: stand when an instruction changed its value for a warp; %r1[5] is lane
    5's."""
    return super().do_watch(self._limits(args))

  def _limits(self, args: str) -> str:
    """`block N thread M`, as warps and lanes have it."""
    head, found, condition = args.partition(" if ")
    m = re.search(r"(?a)\sthread\s+(\d+)", head)
    if m is not None:
      thread = int(m[1])
      block = re.search(r"(?a)\sblock\s+(\d+)", head)
      a_block = self.session.engine.waves_a_group
      warp = (int(block[1]) if block else 0) * a_block + thread // LANES
      head = re.sub(r"(?a)\s(thread|block)\s+\d+", "", head) + f" wave {warp} lane {thread % LANES}"
    for mine, other in LIMITS.items(): head = re.sub(rf"(?a)\s{mine}(\s+\d+)", rf" {other}\1", head)
    return head + found + condition

  def worded(self, text: str) -> str:
    text = text.replace("[wave N] [workgroup N]", "[block N] [thread N] [warp N]")
    for ours, theirs in (("workgroup", "block"), ("wave", "warp"), ("LDS", "shared memory"), ("[lds]", "[shared]"),
                         ("v3.f32, v3[5], s[4:5], exec", "%r1, %f1[5], %tid.x"), ("lds.f32", "shared.f32")):
      text = text.replace(ours, theirs)
    return text

  def topics(self) -> dict[str, Callable[[str], None]]: return {"warps": self.info_waves}

  def do_thread(self, args: str) -> bool:
    """thread [N] [block B] | thread B N: look at a thread by its number in its block (B: the block looked at)."""
    session: Any = self.session
    if args.strip():
      m = re.fullmatch(r"(?a)\s*(?:(\d+)\s+)?(\d+)(?:\s+block\s+(\d+))?\s*", args)
      if m is None: raise InvalidArgument("thread N, or thread BLOCK N")
      here = session.focus // session.engine.waves_a_group
      session.look_at_thread(int(m[1] or m[3] or here), int(m[2]))
    wave = session.wave
    number = wave.number % session.engine.waves_a_group * LANES + session.lane
    self.say(f"thread {number} of block {','.join(map(str, wave.workgroup))} (lane {session.lane} of warp "
             f"{wave.number}), {wave.state}, at {session.code.where(wave.pc)}")
    self.source_line(wave.pc)
    found = session.code.at(wave.pc)
    if found is not None: self.listing([found])
    return False

  def do_warp(self, args: str) -> bool:
    """warp [N]: look at another warp, or say which one is looked at."""
    return self.do_wave(args)

  def info_regs(self, args: str) -> None:
    """Registers of the thread in focus."""
    session: Any = self.session
    wave, lane = session.wave, session.lane
    known = wave.registers()
    wanted = [n if n.startswith("%") else f"%{n}" for n in args.replace(",", " ").split()] or [*known]
    table = self.table("", "", ">", ">")
    table.show_header = False
    for name in wanted:
      value = wave.values(name)[lane]
      if not args and not value: continue
      shown = str(bool(value)) if value.dtype == bool else number_text(value.item(), "f" if value.dtype.kind == "f"
                                                                       else "u")
      raw = value.view(f"u{value.itemsize}") if value.dtype != bool else np.uint8(value)
      table.add_row(name, f".{known[name].type}" if name in known else "", shown, f"{int(raw):#x}")
    self.console.print(table)
    if not args: self.say("registers that hold 0 are left out", style="dim")

  def info_vregs(self, args: str) -> None:
    """Registers of all lanes of the warp."""
    session: Any = self.session
    form, rest = format_of(args, "x")
    wave = session.wave
    wanted = [n if n.startswith("%") else f"%{n}" for n in need(rest, "NAMES").replace(",", " ").split()]
    table, on = self.table(">lane", *(f">{n}" for n in wanted)), wave.active()
    columns = [wave.values(n) for n in wanted]
    for lane in range(LANES):
      cells = [str(bool(c[lane])) if c.dtype == bool else number_text(
        c[lane].item() if c.dtype.kind == "f" else int(c[lane]), "f" if c.dtype.kind == "f" else form) for c in columns]
      table.add_row(str(lane), *cells, style="" if on[lane] else "dim")
    self.console.print(table)

  def info_dispatch(self, args: str) -> None:
    d: Any = self.session.dispatch
    engine = self.session.engine
    self.say(f"{self.session.arch.name}: grid {d.grid}, block {d.block}, {engine.wave_count} warps of {LANES} threads, "
             f"{d.program.shared_size + d.dynamic_shared} bytes of shared memory a block, kernel "
             f"{d.program.entry_name}")

  def do_shared(self, args: str) -> bool:
    """shared[/COUNT][x f d h b g or TYPE] [OFFSET]: shared memory of the block."""
    return self.do_lds(args)

  def do_tensor(self, args: str) -> bool:
    """tensor[/COUNT][x f d] [LANE [COLUMN]]: tensor memory of the block; without a lane the columns that it has."""
    m = re.fullmatch(r"(?a)(?:/(\d+)?(\w+)?)?\s*(\S*)\s*(\S*)", args)
    if m is None: raise InvalidArgument(f"{args!r} is no place in tensor memory", hint="LANE COLUMN")
    session: Any = self.session
    pieces, cells = session.wave.tensor()
    if not m[3]:
      for first, count in pieces: self.say(f"columns {first} to {first + count - 1}")
      return False
    lane, column = self.number(m[3]), self.number(m[4]) if m[4] else 0
    if not 0 <= lane < len(cells): raise InvalidArgument(f"no lane {lane} of tensor memory: there are {len(cells)}")

    def read(at: int, kind: str, many: int) -> Any:
      dtype, row = np.dtype(kinds(kind)), cells[lane]
      if not 0 <= at < row.nbytes: raise InvalidArgument(f"no column {at // 4} of tensor memory: there are {len(row)}")
      return np.frombuffer(row.tobytes(), dtype, min(many, (row.nbytes - at) // dtype.itemsize), at)
    self.dump(lambda a: f"lane {lane} column {a // 4}", 4 * column, int(m[1] or 8), m[2] or "x", read)
    return False

  def do_local(self, args: str) -> bool:
    """local[/COUNT][x f d h b g or TYPE] [OFFSET]: local memory of the thread looked at."""
    m = re.fullmatch(r"(?a)(?:/(\d+)?(\w+)?)?\s*(.*)", args)
    assert m is not None
    session: Any = self.session
    memory = session.wave.local(session.lane)

    def read(at: int, kind: str, many: int) -> Any:
      dtype = np.dtype(kinds(kind))
      there = (len(memory) - at) // dtype.itemsize
      if at < 0 or there < 1: raise InvalidArgument(f"a thread has {len(memory)} bytes of local memory, not {at:#x}")
      return np.frombuffer(memory.tobytes(), dtype, min(many, there), at)
    self.dump(lambda a: f"local+{a:#x}", self.number(m[3]) if m[3] else 0, int(m[1] or 8), m[2] or "x", read)
    return False

  def do_scratch(self, args: str) -> bool:
    """scratch ...: as local."""
    return self.do_local(args)

  def do_diff(self, args: str) -> bool:
    """diff N [M] [warp W] | diff engines: what differs between a snapshot and now, or another one, of a warp alone;
    between the reference and compiled code, from the launch's start."""
    if args.strip() == "engines":
      compare: Callable[[], int] | None = getattr(self.session, "compare_engines", None)
      if compare is None: raise InvalidArgument("this launch cannot be made again", where="diff engines")
      self.say(f"the reference and compiled code agree: {compare():,} warp instructions")
      return False
    return super().do_diff(self._limits(args))

  def memory_break(self, args: str, access: str) -> bool:
    return super().memory_break(re.sub(r"^shared ", "lds ", self._limits(args)), access)

  def do_set(self, args: str) -> bool:
    """set %REGISTER[LANE] = EXPRESSION | set TYPE(ADDRESS) = EXPRESSION: write a register (of a lane, or of the threads
    that stand together) or memory."""
    left, equals, right = args.partition("=")
    m = re.fullmatch(r"(?a)\s*(%[\w$]+)(?:\[(\d+)\])?\s*", left)
    if not equals or m is None: return super().do_set(args)
    session: Any = self.session
    value = session.evaluate(right)
    if isinstance(value, np.ndarray): raise InvalidArgument(f"{right.strip()} has a value for each lane")
    found = session.wave.registers().get(m[1])
    if found is None: raise session.wave.unknown(m[1])
    if found.type in {"f32", "f64", "f16"}:
      size = int(found.type[1:]) // 8
      value = int(np.array([value], f"f{size}").view(f"u{size}")[0])
    session.wave.write(m[1], int(value), None if m[2] is None else int(m[2]))
    return False
