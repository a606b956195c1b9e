"""Each wait of LLVM's code, deleted: the checks must find what is left unprotected, and nothing where nothing is.

What is left unprotected is said by a small model of straight code that reads LLVM's text alone.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from tinyhw.arch import decoded
from tinyhw.emulator.check.checker import Checker
from tinyhw.isa.amdgcn import Instruction, table
from tinyhw.tools.fuzz.build import gpu_object
from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.corpus import all_cases
from tinyhw.tools.fuzz.groups import all_groups
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import Emulated, emulated

NOP = (0xBF800000).to_bytes(4, "little")
LOADS = (r"(global|flat|scratch|buffer)_(load|atomic)|(ds|s)_(load|read|buffer_load)"
         r"|ds_\w*(permute|swizzle|_rtn|_append|_consume)")
COUNTERS = {  # pattern of the mnemonic -> counter, and whether results come in order
  "gfx11": ((r"(ds)_", "lgkmcnt", True), (r"s_", "lgkmcnt", False), (r"", "vmcnt", True)),
  "gfx12": ((r"(ds)_", "dscnt", True), (r"s_", "kmcnt", False), (r"", "loadcnt", True)),
  "gfx9": ((r"(ds)_", "lgkmcnt", True), (r"s_", "lgkmcnt", False), (r"", "vmcnt", True)),
}


def registers(text: str) -> set[str]:
  """The registers that a piece of LLVM's text names."""
  out = set(re.findall(r"\b(?:[vsa]\d+|vcc_lo|vcc_hi|m0)\b", text))
  for kind, first, last in re.findall(r"\b([vsa])\[(\d+):(\d+)\]", text):
    out |= {f"{kind}{n}" for n in range(int(first), int(last) + 1)}
  return out | ({"vcc_lo", "vcc_hi"} if re.search(r"\bvcc\b", text) else set())


@dataclass
class Model:
  """Outstanding loads of straight code: (counter, in order, registers, class); oldest first."""
  isa: str
  loads: list[tuple[str, bool, set[str], str]] = field(default_factory=list)

  def wait(self, text: str) -> bool:
    """Count a wait; False for other instructions."""
    limits = {c: int(n) for c, n in re.findall(r"(\w+cnt)\((\d+)\)", text)}
    if m := re.match(r"s_wait_((?:\w+cnt_?)+) (0x[0-9a-f]+)", text):
      names, value = m[1].split("_"), int(m[2], 16)
      limits = {names[0]: value} if len(names) == 1 else {names[0]: value >> 8 & 63, names[1]: value & 63}
    for counter, limit in limits.items():
      mine = [x for x in self.loads if x[0] == counter]
      done = [x for k, x in enumerate(mine) if limit == 0 or x[1] and sum(
        y[3] == x[3] for y in mine[k + 1:]) >= limit]
      self.loads = [x for x in self.loads if x not in done]
    return bool(limits)

  def execute(self, text: str) -> bool:
    """Whether the instruction meets a register that is still to be written."""
    if self.wait(text): return False
    name, _, operands = text.partition(" ")
    counter, ordered = next((c, o) for pattern, c, o in COUNTERS[self.isa] if re.match(pattern, name))
    is_load = re.match(LOADS, name) is not None and not (
      "atomic" in name and not re.search(r"glc|sc0|TH_ATOMIC_RETURN", text))
    kind = "" if not ordered else name.split("_")[0] == "ds" and "ds" or "vmem"
    target = registers(operands.split(",")[0]) if is_load else set()
    used = registers(operands.partition(",")[2] if is_load else operands)
    unsafe = any(dest & used or dest & target and not (ordered and queue == kind) for _, _, dest, queue in self.loads)
    stores = re.match(r"(global|flat|scratch|buffer)_(store|atomic)", name) is not None
    if is_load: self.loads.append((counter, ordered, target, kind))
    elif name.startswith("ds_") or self.isa == "gfx9" and stores:
      self.loads.append((counter, ordered, set(), kind))  # counts, and writes no register
    return unsafe


def straight(code: bytes, isa: str, at: int) -> list[tuple[int, Instruction]] | None:
  """The instructions from `at` to the end of the program, or None where something branches or is flat."""
  out = []
  while True:
    i = table(isa).decode(code, at)
    out.append((at, i))
    if i.mnemonic == "s_endpgm": return out
    if re.match(r"s_(cbranch|branch|setpc|swappc|call|barrier|\w+saveexec)|flat_|v_cmpx", i.mnemonic): return None
    if re.search(r"\bexec", str(i)) and i.mnemonic.startswith("s_"): return None
    at += i.size


def deletions(machine: Emulated, checker: Checker, case: Case, isa: str) -> tuple[int, int, list[str]]:
  """(waits deleted, those that leave something unprotected, the cases in which model and checks do not agree)."""
  image = machine._image.u8
  entry = machine.code.kernel(case.name).entry_offset
  code = straight(bytes(image), isa, entry)
  if code is None: return 0, 0, []
  waits = [(at, i) for at, i in code if re.match(r"s_wait(cnt)?(_(?!alu)|$)", i.mnemonic) and i.size == 4]
  count, unsafe, wrong = 0, 0, []
  for at, i in waits:
    model = Model(isa)
    expected = any([model.execute(str(j)) for where, j in code if where != at])
    image[at:at + 4] = list(NOP)
    emulated(case, machine, 0)
    image[at:at + 4] = list(i.data)
    found = any("s_wait_alu" not in f.message for f in checker.last)  # a wait for memory stands in for some of those
    count, unsafe = count + 1, unsafe + expected
    if found != expected: wrong.append(f"{case.name} without '{i}' at {at - entry:#x}: {checker.last}")
  emulated(case, machine, 0)
  assert not len(checker.last), f"{case.name}: {checker.last}"
  return count, unsafe, wrong


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])
def test_every_deleted_wait_is_found_where_it_matters(cpu: str) -> None:
  arch = decoded(cpu)
  cases = [c for c in all_cases() if not c.name.startswith("amdgcn_")][::41] + programs(range(3))
  counts, unsafe, wrong = 0, 0, list[str]()
  for level in (0, 2):
    chosen = [c for c in cases if level in c.levels]
    checker = Checker({"wait"})
    machine = Emulated(gpu_object(chosen, level, cpu=cpu), arch, observer=checker)
    for case in chosen:
      n, bad, differ = deletions(machine, checker, case, arch.isa)
      counts, unsafe, wrong = counts + n, unsafe + bad, wrong + differ
  assert not wrong, "\n".join(wrong[:8])
  assert counts > 60 and unsafe > counts * 2 // 5, (counts, unsafe)


@pytest.mark.parametrize(("cpu", "lanes"), [("gfx1100", 32), ("gfx942", 64)])
@pytest.mark.parametrize("name", ["reduce_i32_256", "reduce_double_256"])
def test_every_deleted_barrier_of_a_reduction_is_found_but_within_a_wave(name: str, cpu: str, lanes: int) -> None:
  """A sum over a tree: the last log2(lanes) steps, but not the sum's way to all, are among the lanes of one wave."""
  case = next(c for c in all_groups() if c.name == name)
  arch, checker = decoded(cpu), Checker()
  machine = Emulated(gpu_object([case], 2, cpu=cpu), arch, observer=checker)
  image, at = machine._image.u8, machine.code.kernel(name).entry_offset
  found = []
  while (i := table(arch.isa).decode(bytes(image[at:at + 16]))).mnemonic != "s_endpgm":
    if i.mnemonic == "s_barrier":
      image[at:at + 4] = list(NOP)
      emulated(case, machine, 0)
      image[at:at + 4] = list(i.data)
      assert {f.kind for f in checker.last} <= {"race"}
      found.append(len(checker.last) > 0)
    at += i.size
  alone = lanes.bit_length() - 1
  assert found == [True] * (8 - alone) + [False] * alone + [True], found
