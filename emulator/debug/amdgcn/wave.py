"""A wave of AMD's machine code: its registers by name, each lane's or all lanes', read and written."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.amdgcn import modes
from tinyhw.emulator.amdgcn.allocation import allocated
from tinyhw.emulator.amdgcn.registers import exec_changed
from tinyhw.emulator.debug.amdgcn.variables import value
from tinyhw.emulator.debug.expression import Register
from tinyhw.emulator.debug.wave import Wave
from tinyhw.emulator.values.ops import U32
from tinyhw.isa.amdgcn.codes import AGPR0, EXEC_LO, M0, TTMP0, VCC_LO

if TYPE_CHECKING:
  from tinyhw.core.source import Variable
  from tinyhw.emulator.simt import Group

U32Array = npt.NDArray[np.uint32]
NAMED: Final = {"vcc_lo": VCC_LO, "vcc_hi": VCC_LO + 1, "m0": M0, "exec_lo": EXEC_LO, "exec_hi": EXEC_LO + 1}
MASKS: Final = {"vcc": VCC_LO, "exec": EXEC_LO}
MODE_FIELDS: Final = ("FP_ROUND", "FP_DENORM", "DX10_CLAMP", "IEEE", "FP16_OVFL")


def cell(x: Any, row: int) -> int:
  """A scalar register's value for one wave of a group."""
  return int(x) if x.ndim == 0 else int(x[row if x.shape[0] > 1 else 0, 0])


class AmdWave(Wave):
  """A wave of AMD's machine code that stands."""

  examples = "s4, v3, exec"

  def named(self, name: str) -> Any:
    name = name.lower()
    if name == "wave": return self.number
    if name == "workgroup": return self.number // self.engine.waves_a_group
    if name == "lane": return np.arange(self.engine.lanes)
    if name in {"pc", "mode", *MASKS}: return getattr(self, name)
    try: kind, number = register(name)
    except InvalidArgument: return None
    high = None
    if kind == "v":
      if number + 1 in self.vgprs(): high = self.v(number + 1)
    elif kind == "s": high = np.array([self.s(number + 1)], np.uint32)
    return Register(name, self.values(name), high)

  def value(self, variable: Variable) -> Any: return value(variable, self)

  # ---- state

  @property
  def mode(self) -> int:
    """The bits of MODE that change what instructions compute."""
    return self._place()[1].mode

  @property
  def scc(self) -> int:
    _, group, row = self._place()
    return cell(np.asarray(group.scc), row)

  @property
  def exec(self) -> int: return self.mask(EXEC_LO)

  @property
  def vcc(self) -> int: return self.mask(VCC_LO)

  def mode_text(self) -> str:
    """MODE's fields by name, those that this generation has."""
    isa = self.engine.arch.isa
    return " ".join(f"{name}={modes.named(self.mode, name):#x}" for name in MODE_FIELDS if modes.has(isa, name))

  def mask(self, register: int) -> int:
    """A lane mask: one SGPR, two of a wave of 64 lanes."""
    low = self.s(register)
    return low if self.engine.lanes == 32 else low | self.s(register + 1) << 32

  def active(self) -> npt.NDArray[np.bool_]:
    """EXEC as bools [lanes]."""
    bits, lanes = self.exec, self.engine.lanes
    return np.array([bits >> k & 1 for k in range(lanes)], bool)

  def s(self, number: int) -> int:
    """An SGPR, or a special scalar register by its number, as u32."""
    _, group, row = self._place()
    return cell(group.s[number], row)

  def v(self, number: int) -> U32Array:
    """A vector register as u32 [lanes], a copy; accumulation registers start at 256."""
    _, group, row = self._place()
    plain, accumulation = self.allocated()
    if not (0 <= number < plain or AGPR0 <= number < AGPR0 + accumulation):
      has = f"v0 to v{plain - 1}" + (f" and a0 to a{accumulation - 1}" if accumulation else "")
      raise InvalidArgument(f"no register {vector_name(number)}", hint=f"the wave has {has}")
    x = np.broadcast_to(group.v[number].view(np.uint32), (group.size, self.engine.lanes))
    return np.array(x[row])

  def allocated(self) -> tuple[int, int]:
    """How many vector registers the wave has, and how many accumulation registers."""
    return allocated(self.engine.dispatch, len(self._place()[1].v))

  def vgprs(self) -> list[int]:
    """The numbers of the wave's vector registers; accumulation registers start at 256."""
    plain, accumulation = self.allocated()
    return [*range(plain), *range(AGPR0, AGPR0 + accumulation)]

  def values(self, name: str) -> U32Array:
    """A register by name as u32: [1] of a scalar one, [lanes] of a vector one."""
    kind, number = register(name)
    if kind == "v": return self.v(number)
    if kind == "scc": return np.array([self.scc], np.uint32)
    return np.array([self.s(number)], np.uint32)

  # ---- changes

  def write(self, name: str, value: int, lane: int | None = None) -> None:
    """Set a register: "s4", "v3" (one lane, or all of them), "exec", "vcc", "m0", "scc", "pc". Bits as u32.

    Raises InvalidArgument for a bad name, lane or value.
    """
    _, group, row = self._place()
    lanes, name = self.engine.lanes, name.lower()
    wide = 1 << (64 if name in {"pc", *MASKS} and (lanes == 64 or name == "pc") else 32)
    if not -wide // 2 <= value < wide: raise InvalidArgument(f"{value:#x} does not fit", where=name)
    value &= wide - 1
    if name == "pc": self._move(group, row, value)
    elif name in MASKS:
      self._put(group, row, MASKS[name], value & 0xFFFFFFFF)
      if lanes == 64: self._put(group, row, MASKS[name] + 1, value >> 32)
    else:
      kind, number = register(name)
      if kind == "scc":
        scc = np.array(np.broadcast_to(np.asarray(group.scc), (group.size, 1)))
        scc[row] = bool(value)
        group.scc = scc[0, 0] if group.size == 1 else scc
      elif kind == "s": self._put(group, row, number, value)
      else:
        if lane is not None and not 0 <= lane < lanes: raise InvalidArgument(f"no lane {lane}", where=name)
        self.v(number)  # a register that the wave does not have
        x = np.array(np.broadcast_to(group.v[number].view(np.uint32), (group.size, lanes)))
        x[row, slice(None) if lane is None else lane] = value
        group.v[number] = x
    self.engine.touched()

  def _put(self, group: Group, row: int, number: int, value: int) -> None:
    x = np.array(np.broadcast_to(group.s[number], (group.size, 1)))
    x[row] = value
    group.s[number] = U32.type(value) if group.size == 1 else x
    if number in {EXEC_LO, EXEC_LO + 1}: exec_changed(group)

  def _move(self, group: Group, row: int, pc: int) -> None:
    """Another PC for this wave alone."""
    cohort, group, row = self._place()
    if not any(g is group for g in cohort.runnable):
      raise InvalidArgument(f"wave {self.number} waits at a barrier: its PC cannot be set")
    self.engine.isolate(cohort, group, row).pc = pc

  # ---- LDS and scratch

  def lds(self) -> npt.NDArray[np.uint8]:
    """The LDS of the wave's workgroup, itself: writing to it writes LDS."""
    cohort, group, row = self._place()
    start = int(group.workgroups[row]) * cohort.lds_size
    return cohort.lds[start:start + cohort.lds_size]

  def scratch_address(self, offset: int, lane: int) -> int:
    """Where a dword of a lane's scratch lies in memory: dwords of all lanes lie side by side."""
    _, group, row = self._place()
    if group.scratch is None: raise InvalidArgument("the kernel has no scratch memory")
    size = self.engine.dispatch.scratch_size
    if not 0 <= offset < size: raise InvalidArgument(f"scratch has {size} bytes a lane, not {offset:#x}")
    if not 0 <= lane < self.engine.lanes: raise InvalidArgument(f"no lane {lane}")
    base = cell(np.asarray(group.scratch), row)
    return base + offset // 4 * 4 * self.engine.lanes + lane * 4 + offset % 4


def vector_name(number: int) -> str: return f"v{number}" if number < AGPR0 else f"a{number - AGPR0}"


def register(name: str) -> tuple[str, int]:
  """("s", 4) of "s4", ("v", 3) of "v3", ("v", 259) of "a3", ("s", 106) of "vcc_lo". Raises InvalidArgument."""
  m = re.fullmatch(r"(?a)(s|v|a|ttmp)\[?(\d{1,3})\]?", name)
  if m:
    kind, number = m[1], int(m[2])
    if kind == "v" and number < 256: return "v", number
    if kind == "a" and number < 256: return "v", AGPR0 + number
    if kind == "s" and number < VCC_LO: return "s", number
    if kind == "ttmp" and number < 16: return "s", TTMP0 + number
  if name == "scc": return "scc", 0
  if name in NAMED: return "s", NAMED[name]
  raise InvalidArgument(f"no register is called {name!r}",
                        hint="there are s0 to s105, v0 to v255, a0 to a255, vcc, exec, m0, scc, mode and pc")


def scalar_register_name(number: int) -> str:
  """"s4", "vcc_lo", "ttmp3" of a scalar register's number."""
  if number < VCC_LO: return f"s{number}"
  if TTMP0 <= number < TTMP0 + 16: return f"ttmp{number - TTMP0}"
  return next((n for n, k in NAMED.items() if k == number), f"s{number}")
