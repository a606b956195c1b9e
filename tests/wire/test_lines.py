"""Lines, inlined calls and variables out of debug information, of every clang that is installed and of kept objects."""
from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.strength import examples
from tinyhw.core.source import Part, Source, Sources, Spot, contents, place_of
from tinyhw.wire import codeobject, dwarf
from tinyhw.wire.locations import register

ROOT = Path(__file__).parents[2]
OBJECTS = ROOT / "tests/kernels/objects"
CLANGS = [c for c in ("clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20", "clang-21", "clang-22")
          if shutil.which(c)]
CODE = """\
#define GLOBAL __attribute__((address_space(1)))
static inline __attribute__((always_inline)) float scaled(float v, float by) {
  float half = v * 0.5f;
  return half * by;
}
__attribute__((noinline)) static float far(GLOBAL const float *p, int i) {
  float got = p[i];
  return got + 1.0f;
}
__attribute__((amdgpu_kernel)) void bugs(GLOBAL float *out, GLOBAL const float *in, int n, float by) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i >= n) return;
  out[i] = scaled(in[i], by) + far(in, i);
}
"""


def built(folder: Path, clang: str, *options: str, text: str = CODE) -> codeobject.CodeObject:
  """The code object of a text (unlinked: not every clang has its linker)."""
  (folder / "bugs.c").write_text(text)
  target = ["-x", "c", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-nogpulib", "-c", "-g"]
  subprocess.run([clang, *target, *options, "bugs.c", "-o", "bugs.o"], cwd=folder, check=True, capture_output=True)
  return codeobject.load((folder / "bugs.o").read_bytes())


def code_of(code: codeobject.CodeObject) -> range:
  segment = next(s for s in code.segments if s.executable)
  return range(segment.offset, segment.offset + segment.size, 4)


@pytest.mark.parametrize("clang", CLANGS)
@pytest.mark.parametrize("options", [("-O2", "-gdwarf-5"), ("-O2", "-gdwarf-4"), ("-O0", "-gdwarf-5", "-gz"),
                                     ("-O1", "-gdwarf-4", "-ffunction-sections")], ids=" ".join)
def test_every_line_with_code_is_found_with_its_inlined_calls(tmp_path: Path, clang: str,
                                                             options: tuple[str, ...]) -> None:
  code = built(tmp_path, clang, *options)
  source, lines = code.source, CODE.splitlines()
  assert source.files() == (str(tmp_path / "bugs.c"),)
  found: dict[int, set[tuple[str, ...]]] = {}
  for pc in code_of(code):
    chain = source.chain(pc)
    if chain and chain[0].line: found.setdefault(chain[0].line, set()).add(tuple(s.function for s in chain))
  assert {7, 8, 12, 13} <= found.keys() <= set(range(1, len(lines) + 1))
  assert found[12] == {("bugs",)} and {("far",)} == found[7]
  for line in found.keys() - {3, 4}: assert source.addresses(source.files()[0], line)[0] == line
  at, starts = source.addresses(source.files()[0], 3)  # clang 15 merges it with the next one
  assert at in {3, 4} and len(starts) == 1 and found[at] == {("scaled", "bugs")}
  inner, outer = source.chain(starts[0])
  assert (inner.text, inner.inlined) == (lines[at - 1].strip(), True)
  assert (outer.text, outer.line, outer.inlined) == ("out[i] = scaled(in[i], by) + far(in, i);", 13, False)
  assert inner.told() == f"bugs.c:{at}: {lines[at - 1].strip()}"
  assert source.addresses(source.files()[0], 5) == source.addresses(source.files()[0], 6)  # the next one with code
  assert source.addresses(source.files()[0], 99) == (0, ())
  far = code.symbols["far"]
  assert source.addresses(source.files()[0], 6)[1][0] > far, "behind the prologue"


@pytest.mark.parametrize("clang", CLANGS)
def test_variables_are_where_the_code_has_them(tmp_path: Path, clang: str) -> None:
  code = built(tmp_path, clang, "-O0")
  source = code.source
  _, (pc,) = source.addresses(source.files()[0], 13)
  known = {v.name: v for v in source.variables(pc)}
  assert {"out", "in", "n", "by", "i"} <= known.keys() and known["n"].parameter and not known["i"].parameter
  assert (known["i"].type, known["i"].kind, known["i"].nbytes) == ("int", "i", 4)
  assert (known["by"].type, known["by"].kind) == ("float", "f") and known["in"].kind == "*"
  for v in known.values(): assert [p.kind for p in v.parts] == ["private"] and v.parts[0].number == 33, v
  assert len({v.parts[0].offset for v in known.values()}) == len(known)
  optimized = built(tmp_path, clang, "-O2").source
  _, (pc,) = optimized.addresses(source.files()[0], 7)
  known = {v.name: v for v in optimized.variables(pc)}
  assert known["p"].parts == (Part("v", 4, 0), Part("v", 4, 1)) and known["i"].parts == (Part("v", 4, 2),)
  assert known["got"].trouble == "optimized out here" and not known["got"].parts


APART = """\
#define GLOBAL __attribute__((address_space(1)))
static inline __attribute__((always_inline)) void rare(GLOBAL float *p, int n) {
  if (__builtin_expect(n > 7, 0))
    *(volatile GLOBAL float *)p = 5.0f;
}
__attribute__((amdgpu_kernel)) void first(GLOBAL float *out) {
  *out = 1.0f;
}
__attribute__((amdgpu_kernel)) void bugs(GLOBAL float *out, int n, float by) {
  rare(out, n);
  *(volatile GLOBAL float *)(out + 1) = by;
  rare(out + 2, n + 1);
  *(volatile GLOBAL float *)(out + 3) = by;
}
"""


@pytest.mark.parametrize("clang", CLANGS)
@pytest.mark.parametrize("options", ["-gdwarf-4", "-gdwarf-5"])
def test_an_inlined_call_whose_code_lies_apart(tmp_path: Path, clang: str, options: str) -> None:
  """Wherever code is of a line of the inlined function, that function is told, and which call it is of."""
  code = built(tmp_path, clang, "-O2", options, text=APART)
  callers: dict[int, set[int]] = {}
  for pc in code_of(code):
    chain = code.source.chain(pc)
    if not chain or not chain[0].function or not chain[0].line: continue
    inner, outer = chain[0], chain[-1]
    if inner.line not in {3, 4}: assert len(chain) == 1 and inner.function == ("first" if inner.line < 9 else "bugs")
    else:
      assert (len(chain), inner.function, outer.function) == (2, "rare", "bugs"), (hex(pc), chain)
      callers.setdefault(outer.line, set()).add(pc)
  assert callers.keys() == {10, 12}
  if clang == "clang-19": assert any(len({pc - 4 for pc in pcs} - pcs) > 1 for pcs in callers.values()), "code apart"


@pytest.mark.parametrize("clang", CLANGS)
def test_parameters_of_a_method_are_those_of_its_definition(tmp_path: Path, clang: str) -> None:
  """Its declaration, which comes first, has none with a name; targets of pointers are told however deep."""
  (tmp_path / "s.cpp").write_text("""
    struct S { static void method(float *, int **, float ***, const long ****); };
    void S::method(float *a, int **b, float ***c, const long ****d) { *a = **b + ***c + ****d; }""")
  target = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-nogpulib", "-c", "-g"]
  subprocess.run([clang, *target, "s.cpp", "-o", "s.o"], cwd=tmp_path, check=True, capture_output=True)
  found = dwarf.parameters((tmp_path / "s.o").read_bytes(), "_ZN1S6methodEPfPPiPPS0_PPPPKl")
  assert found is not None
  assert [(n, t.name) for n, t in found] == [("a", "float*"), ("b", "int**"), ("c", "float***"), ("d", "long****")]


def test_a_pointer_to_itself_has_an_end() -> None:
  """Damaged information may say so."""
  die = SimpleNamespace(tag="DW_TAG_pointer_type", attributes={"DW_AT_type": None})
  die.get_DIE_from_attribute = lambda name: die
  found = dwarf.ctype(die)
  assert found.kind == "*" and set(found.name.removeprefix("void")) == {"*"}


def test_the_text_of_a_line_is_of_the_file_that_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  file = tmp_path / "a.c"
  file.write_text("one\n  two\n")
  import hashlib
  digest = hashlib.md5(b"one\n  two\n").digest()
  assert Spot(str(file), 2, digest=digest).text == "two" and Spot(str(file), 3).text == "" == Spot(str(file), 3).text
  assert Spot(str(file), 9).text is None and Spot(str(tmp_path / "none.c"), 1).text is None and Spot("", 0).text is None
  monkeypatch.chdir(tmp_path)
  assert Spot("/somewhere/else/a.c", 1).text == "one"
  file.write_text("other\n")
  assert contents(str(file), digest) is None and contents(str(file)) == ("other", "")
  assert contents("/dev/zero") is None
  assert place_of("a.c", ["/x/a.c", "/x/ba.c", "/y/a.c"]) == ["/x/a.c", "/y/a.c"] and place_of("x/a.c", ["/x/a.c"])


def test_kept_objects_have_lines_and_code_without_debug_information_has_none() -> None:
  for name in ("typed_O2_g.co", "typed_O0_g.o"):
    code = codeobject.load((OBJECTS / name).read_bytes())
    start = code.kernels["axpn"].start_offset
    assert code.source.chain(start)[0].function == "axpn" and "typed.c" in code.source.files()[0]
  plain = codeobject.load((OBJECTS / "typed_O2.co").read_bytes())
  assert not plain.source.files() and not plain.source.chain(plain.kernels["axpn"].start_offset)
  both = Sources([(0x1000, 0x1000 + len(code.image), code.source), (1 << 20, 2 << 20, plain.source)])
  assert both.chain(0x1000 + start) == code.source.chain(start) and both.chain(0) == () == both.variables(0)
  file = both.files()[0]
  line = both.chain(0x1000 + start)[0].line
  at, found = code.source.addresses(file, line)
  assert both.addresses(file, line) == (at, tuple(0x1000 + a for a in found)) and both.starts(0x1000 + found[0])


def test_damaged_debug_information_reads_as_unknown() -> None:
  data = bytearray((OBJECTS / "typed_O0_g.o").read_bytes())
  good = codeobject.load(bytes(data))
  pcs = list(code_of(good))[::40]
  for at in range(64, len(data) - 64, 1511 // examples(1)):
    broken = bytearray(data)
    broken[at:at + 8] = b"\xff" * 8
    try: code = codeobject.load(bytes(broken))
    except Exception: continue  # the code object itself is damaged, which other tests look at
    ask(code.source, pcs)


def ask(source: Source, pcs: list[int]) -> None:
  """All that can be asked, of damaged data: no answer may raise."""
  for pc in pcs: source.chain(pc), source.starts(pc), source.variables(pc)
  for file in source.files(): source.addresses(file, 1)


@pytest.mark.skipif("clang-19" not in CLANGS, reason="clang-19 is not installed")
def test_register_numbers_are_llvms(tmp_path: Path) -> None:
  """The assembler writes them into call frame information."""
  from elftools.elf.elffile import ELFFile
  names = ["s0", "s31", "s63", "s64", "s104", "v0", "v1", "v255"]
  for wave, features in ((32, []), (64, ["-mwavefrontsize64"])):
    rows = "\n".join(f".cfi_undefined {n}" for n in names)
    (tmp_path / "r.s").write_text(f".cfi_sections .debug_frame\nf:\n.cfi_startproc\n{rows}\ns_nop 0\n.cfi_endproc\n")
    subprocess.run(["clang-19", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", *features, "-c", "r.s"], cwd=tmp_path,
                   check=True)
    info = ELFFile(io.BytesIO((tmp_path / "r.o").read_bytes())).get_dwarf_info(relocate_dwarf_sections=False)
    entry = info.CFI_entries()[-1]
    numbers = [i.args[0] for i in entry.instructions if len(i.args) == 1 and i.opcode == 7]  # DW_CFA_undefined
    assert [f"{k}{n}" for k, n in map(register, numbers)] == names, wave
