"""The assembler is the decoder's inverse: on random words of each row, and on LLVM's own listings."""
from __future__ import annotations

import io
import random
import re
import subprocess

import llvmlite.binding as llvm
import pytest
from elftools.elf.elffile import ELFFile

from tests.isa.test_decode import PROGRAM
from tests.strength import examples, seed
from tinyhw.arch import decoded
from tinyhw.core.errors import InvalidArgument
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.isa.amdgcn.program import program
from tinyhw.isa.amdgcn.text import text
from tinyhw.tools.ledger.llvm import CPUS, LLVM_MC, even, random_fields

TABLE = table("gfx11")
HIDDEN = {"EXP", "SOPP", "VINTERP", "VOP3", "FLAT", "MUBUF", "DS", "MIMG", "VIMAGE", "VSAMPLE"}
# A number that is a 16-bit integer's inline constant: a literal to LLVM's assembler, though LLVM prints it.
SMALL_INTEGER = re.compile(r" 0x(3118|[34][048c]00|[bc][048c]00)\b")
GFX9_HIDDEN = {"DS", "SMEM", "SOPP", "VOP1", "VOP3", "VOPC"}


@pytest.mark.parametrize("generation", ["gfx9", "gfx11", "gfx12"])
def test_every_row_assembles_back(generation: str) -> None:
  """bytes -> text -> bytes for random legal fields; where two words have one text, text -> bytes -> text.

  Bytes may differ only where the text does not show a bit: exports, counters' spare bits, long forms of v_nop,
  the second code of a temporal hint, the other form of a swizzle, an image's
  unused addresses; on gfx9 a GDS bit that means nothing, the two places
  of a scalar offset, unused bits of a compare's destination, the odd half of a pair.
  """
  rng = random.Random(seed(5))
  same, other = 0, set()
  isa = table(generation)
  for row in isa.rows():
    if row.variant == "w64": continue  # its registers may lie where waves of 32, which have more, cannot have them
    for _ in range(2):
      i = isa.decode(isa.encode(row, random_fields(rng, row)))
      code = assemble(str(i), isa)
      if code == i.data:
        same += 1
        continue
      other.add(row.family)
      if re.search(r'"[01]{5}"', str(i)): continue  # a swizzle from one lane is called BROADCAST without its AND bits
      assert str(isa.decode(code)) == str(i)
  assert same > 0.87 * sum(2 for _ in isa.rows()), same
  assert other <= {"gfx9": GFX9_HIDDEN, "gfx11": HIDDEN, "gfx12": HIDDEN}[generation], other


def llvm_assembles(generation: str, lines: list[str]) -> list[bytes | None]:
  """llvm-mc's bytes of each line, None for one that it refuses."""
  assert LLVM_MC is not None
  mode = [] if generation == "gfx9" else ["-mattr=+wavefrontsize32"]
  command = [LLVM_MC, "-triple=amdgcn-amd-amdhsa", f"-mcpu={CPUS[generation]}", *mode, "--show-encoding"]
  done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
  refused = {int(n) - 1 for n in re.findall(r"<stdin>:(\d+):\d+: error:", done.stderr)}
  codes = iter(re.findall(r"encoding: \[([0-9a-fx,]*)\]", done.stdout))
  return [None if n in refused else bytes(int(b, 16) for b in next(codes).split(",")) for n in range(len(lines))]


@pytest.mark.skipif(LLVM_MC is None, reason="llvm-mc-19 is not installed")
@pytest.mark.parametrize("generation, least", [("gfx9", 5200), ("gfx11", 5500), ("gfx12", 5800)])
def test_lines_that_llvm_takes_give_llvms_bytes(generation: str, least: int) -> None:
  """Text of random words of every row, assembled here and by llvm-mc 19.

  LLVM refuses operands that the hardware forbids together (constant bus, VGPR banks) and, on RDNA, halves of
  instructions whose halves it does not know. A number that is a 16-bit integer's inline constant is a literal to it.
  """
  rng, isa = random.Random(seed(15)), table(generation)
  lines, codes = [], []
  for row in isa.rows():
    if row.variant == "w64": continue  # llvm-mc assembles for waves of 32 here
    for _ in range(2):
      fields = random_fields(rng, row)
      i = isa.decode(isa.encode(row, even(fields, row) if generation == "gfx9" else fields))
      lines.append(str(i))
      codes.append(assemble(str(i), isa))
  same, wrong = 0, []
  for line, mine, theirs in zip(lines, codes, llvm_assembles(generation, lines), strict=True):
    if theirs == mine: same += 1
    elif theirs is not None and not SMALL_INTEGER.search(line):
      wrong.append(f"{line}: {mine.hex()}, LLVM {theirs.hex()}")
  assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])
  assert same > least, same


MODIFIER = re.compile(r" (?:[a-z_0-9]+:(?:\[[^\]]*\]|[^ ,]+)|clamp|[gsd]lc|tfe|lwe|unorm|r128|[ad]16|sc[01]|nt)(?= |$)")


@pytest.mark.skipif(LLVM_MC is None, reason="llvm-mc-19 is not installed")
@pytest.mark.parametrize("generation, least", [("gfx9", 1200), ("gfx11", 900), ("gfx12", 1000)])
def test_modifiers_that_are_not_there_have_llvms_defaults(generation: str, least: int) -> None:
  """Lines of every row without some of their modifiers: what llvm-mc takes we take, and the bytes are the same."""
  rng, isa, lines = random.Random(seed(17)), table(generation), []
  for row in isa.rows():
    if row.variant == "w64": continue
    fields = random_fields(rng, row)
    text = str(isa.decode(isa.encode(row, even(fields, row) if generation == "gfx9" else fields)))
    modifiers = MODIFIER.findall(text)
    if not modifiers: continue
    for one in rng.sample(modifiers, rng.randint(1, len(modifiers))): text = text.replace(one, "", 1)
    lines.append(text)
  same, wrong = 0, []
  for line, theirs in zip(lines, llvm_assembles(generation, lines), strict=True):
    if theirs is None: continue
    try: mine = assemble(line, isa)
    except InvalidArgument as error: mine = str(error).encode()
    if mine == theirs: same += 1
    elif not SMALL_INTEGER.search(line): wrong.append(f"{line}: {mine.hex()}, LLVM {theirs.hex()}")
  assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])
  assert same > least, same


@pytest.mark.parametrize("cpu", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("optimization", [0, 2])
def test_llvms_own_listing_assembles_to_llvms_bytes(optimization: int, cpu: str) -> None:
  """Text of LLVM 22's assembly printer, line by line, against the object that it writes (branches need labels).

  On gfx1100 its mode is true16; on gfx1201 it shows s_barrier_wait's number as -1, where llvm-mc 19 has 0xffff.
  """
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=cpu, opt=optimization)
  listing = machine.emit_assembly(llvm.parse_assembly(PROGRAM))
  elf = ELFFile(io.BytesIO(machine.emit_object(llvm.parse_assembly(PROGRAM))))
  code = elf.get_section_by_name(".text").data()
  lines = [re.sub(r"\s+", " ", line.split(";")[0]).strip() for line in listing.split("\n") if line.startswith("\t")]
  at, count, isa = 0, 0, table(decoded(cpu).isa)
  for line in (one for one in lines if one and not one.startswith(".")):
    if "branch" in line:
      at += 4
      continue
    found = assemble(line, isa)
    assert found.hex() == code[at:at + len(found)].hex(), line
    if cpu == "gfx1201": line = line.replace("_wait -1", "_wait 0xffff")
    assert text(isa.decode(code, at), true16=cpu == "gfx1100") == line
    at += len(found)
    count += 1
  assert count > 90


def test_looser_spellings() -> None:
  assert assemble("v_add_f32  v0, 1.0,v1", TABLE) == assemble("v_add_f32_e32 v0, 1.0, v1", TABLE)
  assert assemble("s_mov_b32 s0, 1000", TABLE) == assemble("s_mov_b32 s0, 0x3e8", TABLE)
  assert assemble("v_add_f32 v0, 1.0, -v1", TABLE) == assemble("v_add_f32_e64 v0, 1.0, -v1", TABLE)
  assert assemble("s_waitcnt vmcnt(0) & lgkmcnt(0)", TABLE) == assemble("s_waitcnt vmcnt(0) lgkmcnt(0)", TABLE)


@pytest.mark.parametrize("line, message", [
  ("v_add_q32 v0, v1, v2", "'v_add_q32' is no instruction of gfx11"),
  ("v_add_f32_e32 v0, q1, v2", "operand src0: 'q1' is no operand"),
  ("v_add_f32_e32 v256, v1, v2", "operand vdst: there is no v256"),
  ("v_add_f32_e32 v0, v1", "expected ','"),
  ("v_add_f32_e32 v0, v1, v2 wrong", "'wrong' is left over"),
  ("v_add_f64 v[0:1], v2, v[4:5]", "operand src0: v2 is not 2 registers"),
  ("s_mov_b32 s0, 0x100000000", "operand src0: 0x100000000 does not fit 32 bits"),
  ("s_add_u32 s0, 0x1000, 0x2000", "operand src1: a second literal"),
  ("s_mov_b32 s200, 0", "operand sdst: 's200' is no operand"),
  ("global_load_b32 v0, v[2:3], off offset:9000", "operand offset: 9000 does not fit 13 bits"),
  ("ds_swizzle_b32 v1, v2 offset:swizzle(SPIN,1)", "operand offset: swizzle(SPIN,1) is no pattern"),
  ("v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v3, v4", "operand vdstY: v3 has vdstX's parity"),
  ("s_waitcnt vmcnt(99)", "operand simm16: 'vmcnt(99)' is no SWaitCnt"),
  ("", "'' is no instruction of gfx11"),
])
def test_bad_lines_name_the_text_and_the_operand(line: str, message: str) -> None:
  with pytest.raises(InvalidArgument) as caught: assemble(line, TABLE)
  assert message in str(caught.value) and repr(line) in str(caught.value)
  assert "\n" not in str(caught.value)


def test_random_lines_are_refused_or_assemble() -> None:
  rng = random.Random(seed(6))
  known = sorted(TABLE.mnemonics)
  pieces = ["v0", "s1", "v[0:1]", ",", "-", "|", "0x1", "1.0", "offset:3", "glc", "[", "(", ":", "::", "vcc", " "]
  for _ in range(examples(3000)):
    line = rng.choice(known) + " " + "".join(rng.choice(pieces) for _ in range(rng.randrange(8)))
    try: code = assemble(line, TABLE)
    except InvalidArgument: continue
    assert TABLE.decode(code).data == code


@pytest.mark.parametrize("line", [
  "v_mov_b32 v٣, v1", "v_mov_b32 v1, 1٣", "s_waitcnt vmcnt(٣)", "v_add_f32 v1, 1.٣, v2", "s_nop ²",
  "v_mov_b32_dpp v1, v2 row_shl:٣", "s_getreg_b32 s1, hwreg(HW_REG_MODE, ٣, 4)", "ſ_nop 0",
  "ds_swizzle_b32 v1, v2 offset:swizzle(BROADCAST,٣,1)", "s_sendmsg sendmsg(²)"])
def test_digits_and_letters_of_other_scripts_are_none(line: str) -> None:
  """Python takes them for numbers, and some for letters of its own; LLVM does not."""
  with pytest.raises(InvalidArgument, match="is no letter of an instruction"): assemble(line)


def test_data_has_no_digits_of_other_scripts() -> None:
  assert program("s_nop 0 ; ٣\n.long 13\n", table("gfx11"), "a file")[1].code == b"\x0d\0\0\0"
  for lines in (".long ٣", ".long 1٣", ".set a, ٣\n.long a"):
    with pytest.raises(InvalidArgument, match="line 1: "): program(lines, table("gfx11"), "a file")
