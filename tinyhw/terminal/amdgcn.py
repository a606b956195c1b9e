"""What the terminal debugger has for AMD's machine code: its registers and scratch memory."""
from __future__ import annotations

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.debug.amdgcn.wave import AmdWave, register, vector_name
from tinyhw.terminal.shell import D, Shell
from tinyhw.terminal.text import format_of, number_text, parse_names, typed


class AmdShell(Shell[D]):
  """Commands for a dispatch of AMD's machine code."""

  @property
  def wave(self) -> AmdWave:
    """The wave looked at."""
    found = self.session.wave
    assert isinstance(found, AmdWave)
    return found

  def info_dispatch(self, args: str) -> None:
    d, engine = self.session.dispatch, self.session.engine
    self.say(f"{self.session.arch.name}: grid {d.grid}, block {d.block}, {engine.wave_count} waves of {engine.lanes} "
             f"lanes, {d.lds_size} bytes of LDS a workgroup, {d.scratch_size} bytes of scratch a lane, entry "
             f"{self.session.code.where(d.entry_pc)}")

  def info_regs(self, args: str) -> None:
    wave = self.wave
    if args:
      for name in parse_names(args): self.print_value(name, self.session.evaluate(name), "x")
      return
    self.say(f"pc   {wave.pc:#x} <{self.session.code.where(wave.pc)}>   scc {wave.scc}   m0 {wave.s(125):#x}")
    digits = wave.engine.lanes // 4
    self.say(f"exec {wave.exec:0{digits}x} ({wave.exec.bit_count()} lanes)   vcc {wave.vcc:0{digits}x}   "
             f"mode {wave.mode_text()}")
    table = self.table(*([">", ""] * 4))
    table.show_header = False
    cells = [(f"s{n}", f"{value:08x}") for n in range(106) if (value := wave.s(n))]
    for k in range(0, len(cells), 4): table.add_row(*[c for pair in cells[k:k + 4] for c in pair])
    self.console.print(table)
    if not cells: self.say("every SGPR is 0")

  def info_vregs(self, args: str) -> None:
    wave = self.wave
    form, rest = format_of(args, "x")
    names = parse_names(rest) or [vector_name(n) for n in wave.vgprs() if wave.v(n).any()][:6]
    for n in names:
      if register(n)[0] != "v": raise InvalidArgument(f"{n} is no vector register")
    table, on = self.table(">lane", *(f">{n}" for n in names)), wave.active()
    columns = [typed(wave.values(n), form) for n in names]
    for lane in range(wave.engine.lanes):
      table.add_row(str(lane), *[number_text(c[lane], form) for c in columns], style="" if on[lane] else "dim")
    self.console.print(table)

  def do_scratch(self, args: str) -> bool:
    """scratch LANE [OFFSET [COUNT]]: dwords of a lane's scratch memory."""
    words = [self.number(w) for w in args.split()]
    if not words or len(words) > 3: raise InvalidArgument("scratch LANE [OFFSET [COUNT]]")
    lane, at, many = (*words, *(0, 8)[len(words) - 1:])
    size = self.session.dispatch.scratch_size
    values = [int(self.session.read(self.wave.scratch_address(at + 4 * k, lane))[0])
              for k in range(min(many, max(1, (size - at) // 4)))]
    for k in range(0, len(values), 8):
      self.say(f"scratch+{at + 4 * k:#x} {' '.join(f'{v:08x}' for v in values[k:k + 8])}")
    return False
