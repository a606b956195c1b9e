"""What a device made of a wave of a case, beside what is wanted: exact, allowed by the manual, or wrong.

A kernel compares bits. Where the manual leaves a result open (ULPs, any NaN for another) the witness says how far, and
the registers that the kernel wrote are judged by it here.
"""
from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from tinyhw.isa.amdgcn import Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, VCC_LO
from tinyhw.tools.conform.cases import Baked, manual_section
from tinyhw.tools.conform.harness import MODE_BITS, SPECIALS
from tinyhw.tools.witness.run import close

Array = Any
VERDICTS: Final = ("pass", "allowed", "fail", "error", "unsupported", "not asked")
BAD: Final = frozenset(("fail", "error", "unsupported"))


@dataclass
class Found:
  """What a wave left: vector registers [register, lanes], scalar ones, and the special ones by name."""
  v: Array
  s: Array
  special: dict[str, int]
  memory: bytes | None = None
  lds: bytes | None = None


@dataclass
class Result:
  """What became of a case. `verdict` is one of VERDICTS: "allowed" is a result other than ours, inside of what the
  manual allows; "unsupported" is what the device says itself, "not asked" has its reason in `detail`. `digest` is of
  all registers that were found, `asked` of the question. `kind` is what it is about where that is no instruction:
  packets, methods, ioctls."""
  id: str
  mnemonic: str
  family: str
  variant: str
  section: str
  text: str
  code: str
  verdict: str
  detail: str = ""
  difference: dict[str, Any] = field(default_factory=dict)
  digest: str = ""
  note: str = ""
  asked: str = ""
  kind: str = ""

  def document(self) -> dict[str, Any]:
    """As JSON values."""
    return {k: v for k, v in asdict(self).items() if (v or k == "verdict") and k != "asked"}


def wanted(b: Baked, wave: int) -> Found:
  """What the wave of a case should leave."""
  part = slice(wave * b.case.lanes, (wave + 1) * b.case.lanes)
  s, bits = b.s, MODE_BITS[b.case.row.isa]
  special = dict(zip(SPECIALS, (int(b.scc[wave]), b.mode & bits, int(s[EXEC_LO][wave]), int(s[EXEC_LO + 1][wave]),
                                int(s[VCC_LO][wave]), int(s[VCC_LO + 1][wave]), int(s[M0][wave]),
                                b.flow[wave] if b.flow else 0)))
  return Found(b.v[:, part], s[:106, wave], special)


def digest(b: Baked, waves: list[Found], sgprs: int) -> str:
  """A digest of what a case left: the same registers give the same one, on any device."""
  h = hashlib.blake2b(digest_size=8)
  for f in waves:
    h.update(np.ascontiguousarray(f.v[:b.vgprs], np.uint32).tobytes())
    h.update(np.ascontiguousarray(f.s[:sgprs], np.uint32).tobytes())
    skip = {"EXEC_HI"} if b.case.lanes == 32 else set()
    h.update(repr([(k, v & MODE_BITS[b.case.row.isa] if k == "MODE" else v) for k, v in f.special.items()
                   if k not in skip]).encode())
    if f.memory is not None: h.update(f.memory)
    if f.lds is not None: h.update(f.lds)
  return h.hexdigest()


def asked(b: Baked) -> str:
  """A digest of what a case asks: its code and the state that it starts from."""
  h = hashlib.blake2b(b.case.code, digest_size=8)
  h.update(b.start_v.tobytes() + b.start_s.tobytes() + bytes(b.prepared.start.scc))
  h.update(f"{b.case.mode} {b.case.lanes} {b.case.waves}".encode())
  h.update(bytes(b.prepared.start.memory) + bytes(b.prepared.start.lds))
  return h.hexdigest()


def difference(b: Baked, wave: int, found: Found, sgprs: int) -> tuple[bool, dict[str, Any]]:
  """(whether all bits are as baked in, the first difference that the manual does not allow)."""
  lanes, loose, w = b.case.lanes, b.prepared.wanted.loose, wanted(b, wave)
  witness = b.prepared.wanted
  exact = True
  for k in range(b.vgprs):
    got = found.v[k]
    for lane in np.flatnonzero(got != w.v[k]).tolist():
      exact, at = False, wave * lanes + lane
      whole = [int(found.v[j][lane]) if 0 <= j < b.vgprs else 0 for j in (k - 1, k, k + 1)]
      meant = [witness.v[j][at] if 0 <= j < b.vgprs else 0 for j in (k - 1, k, k + 1)]
      if close(whole, meant, loose.get((k, at), []), (k - 1, at) in loose): continue
      return False, _told(b, wave, lane, f"v{k}", int(w.v[k][lane]), int(got[lane]))
  for k in np.flatnonzero(found.s[:sgprs] != w.s[:sgprs]).tolist():
    exact, got = False, int(found.s[k])
    if close([0, got, 0], [0, witness.s[k][wave], 0], loose.get((-1 - k, wave), []), False): continue
    return False, _told(b, wave, None, f"s{k}", int(w.s[k]), got)
  for name, meant_here in w.special.items():
    got = found.special[name]
    if name == "EXEC_HI" and lanes == 32: continue
    if name == "MODE": got &= MODE_BITS[b.case.row.isa]
    if got != meant_here: return False, _told(b, wave, None, name, meant_here, got)
  for name, meant_bytes, got_bytes in (("memory", b.memory, found.memory), ("LDS", b.lds, found.lds)):
    if got_bytes is None or got_bytes == meant_bytes or wave != b.case.waves - 1: continue
    at = next(k for k, (x, y) in enumerate(zip(got_bytes, meant_bytes)) if x != y) & ~3
    return False, _told(b, wave, None, f"{name}[{at:#x}]", int.from_bytes(meant_bytes[at:at + 4], "little"),
                        int.from_bytes(got_bytes[at:at + 4], "little"))
  return exact, {}


def _told(b: Baked, wave: int, lane: int | None, where: str, meant: int, got: int) -> dict[str, Any]:
  """A difference in words: the instruction with the operands of the lane, and what it left."""
  if lane is None and b.case.row.family.startswith("VOP") and where not in {"MODE", "M0", "SCC"} and meant != got:
    lane = ((meant ^ got) & -(meant ^ got)).bit_length() - 1  # a lane mask: the first lane that differs
    if where.endswith("HI") or b.case.lanes == 64 and _upper(b, where): lane += 32
    if lane >= b.case.lanes: lane = None
  out: dict[str, Any] = {"instruction": str(b.case.instruction), "wave": wave}
  if lane is not None: out["lane"] = lane
  out |= {"where": where, "wanted": f"{meant:#010x}", "found": f"{got:#010x}", "operands": operands(b, wave, lane)}
  start = b.prepared.start
  out["mode"] = f"{b.case.mode:#x}"
  out["exec"] = f"{start.exec(wave):#x}"
  if "vcc" in b.case.row.uses: out["vcc"] = f"{start.vcc(wave):#x}"
  if "scc" in b.case.row.uses: out["scc"] = int(start.scc[wave])
  return out


def _upper(b: Baked, where: str) -> bool:
  """Whether a scalar register is the upper one of an operand."""
  return any(o.kind == "s" and where == f"s{o.value + 1}" for o in b.case.instruction.operands.values())


def operands(b: Baked, wave: int, lane: int | None) -> dict[str, str]:
  """The values of the source operands before the case, for one lane."""
  out = {}
  for name, o in b.case.instruction.operands.items():
    words = _words(b, o, wave, lane or 0)
    if words is not None: out[name] = words
  return out


def _words(b: Baked, o: Operand, wave: int, lane: int) -> str | None:
  start, count = b.prepared.start, min(16, max(1, o.dwords))
  if o.kind == "v":
    words = [start.v[o.value + k][wave * b.case.lanes + lane] for k in range(count) if o.value + k < len(start.v)]
  elif o.kind == "s" and o.value < 128: words = [start.s[o.value + k][wave] for k in range(count) if o.value + k < 128]
  elif o.kind == "lit": words = [o.value]
  else: return None
  return "0x" + "_".join(f"{w:08x}" for w in reversed(words))


def result(b: Baked, arch: str, verdict: str, detail: str = "", **more: Any) -> Result:
  """A result with the words that describe the case."""
  row = b.case.row
  return Result(b.id, b.mnemonic, row.family, row.variant or row.family.lower(), manual_section(b.mnemonic, arch),
                str(b.case.instruction), b.case.code.hex(), verdict, detail, note=b.differs,
                asked=asked(b) if verdict != "not asked" else "", **more)


def judged(b: Baked, arch: str, waves: list[Found | None], sgprs: int) -> Result:
  """The result of a case; None stands for a wave whose registers are all as wanted."""
  full = [wanted(b, k) if f is None else f for k, f in enumerate(waves)]
  mark = digest(b, full, sgprs)
  allowed = False
  for k, f in enumerate(waves):
    if f is None: continue
    exact, told = difference(b, k, f, sgprs)
    if told: return result(b, arch, "fail", say(told), difference=told, digest=mark)
    allowed = allowed or not exact
  return result(b, arch, "allowed" if allowed else "pass", digest=mark)


def say(told: dict[str, Any]) -> str:
  """A difference on one line."""
  lane = f" of lane {told['lane']}" if "lane" in told else ""
  given = ", ".join(f"{k}={v}" for k, v in told["operands"].items())
  return f"{told['where']}{lane}: wanted {told['wanted']}, found {told['found']}; {given}"
