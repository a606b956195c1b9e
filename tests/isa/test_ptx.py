"""PTX text: what it means, that it prints and reads back the same, and what errors say."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.isa.ptx import PtxSyntaxError, forms, parse, text
from tinyhw.isa.ptx.model import Address, Directive, Float, Instruction, Int, Label, Name, Sum, Variable, Vector

CORPUS = sorted((Path(__file__).resolve().parent.parent / "emulator/ptx").glob("*.ptx"))
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.name)
def test_what_nvcc_writes_reads_back(path: Path) -> None:
  module = parse(path.read_bytes())
  assert parse(text(module)) == module
  assert len(module.entries) > 20 and module.version == (9, 0)


def test_places_in_the_text() -> None:
  """Lines and columns begin at 1; what is made by hand is nowhere, and equal to what stands somewhere."""
  module = parse(HEAD + ".visible .entry k () {\nA: ret;\n}")
  body = module.entries["k"].body
  assert body is not None and [s.at for s in body] == [(5, 1), (5, 4)]
  made = Instruction("ret", (), ())
  assert made.at == Label("A").at == (0, 0) and [Label("A"), made] == [*body]


def test_what_a_module_has() -> None:
  module = parse(HEAD + """
// a comment
.file 1 "a.cu"
.extern .func (.param .b32 r0) vprintf (.param .b64 a, .param .b64 b);
.global .align 4 .b8 table[2][3] = {{1, 0x2, 03}, {0b100, -5, 2 + 3 * 4}};
.global .u64 address = generic(table)+2;
.const .v4 .f32 c = {1.0, 0f40000000, -2.5, 0d3FF0000000000000};
.visible .entry add (.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24]) .maxntid 256, 1, 1 .minnctapersm 2
{
  .reg .pred %p<3>; .reg .b32 %r<9>, %x, %y; .reg .v2 .f32 v;
  .loc 1 5 3
  .pragma "nounroll";
  ld.global.v2.b32 {%r1, _}, [%r2+-4];
  @!%p1 bra $L;
  { .reg .b32 t; mov.b32 t, %tid.x; }
  call.uni (%r3), vprintf, (%r4, 5), proto;
  setp.lt.and.s32 %p1|%p2, %r1, -7, !%p2;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _) .noreturn;
  targets: .branchtargets $L, $M;
$L: mov.u64 %r5, table+8;
$M: /* another
     comment */ ret;
}
""")
  assert parse(text(module)) == module
  table, address, c = (i for i in module.items if isinstance(i, Variable))
  assert table.dims == (2, 3) and table.initializer == ((Int(1), Int(2), Int(3)), (Int(4), Int(-5), Int(14)))
  assert address.initializer == Sum("table", 2, "generic")
  assert c.vector == 4 and isinstance(c.initializer, tuple) and c.initializer[1] == Float(0x40000000, 32)
  add = module.entries["add"]
  assert add.params[0].pointer == ("global", 16) and add.params[1].dims == (24,)
  assert add.directive("maxntid") == (256, 1, 1) and add.directive("reqntid") is None
  assert add.body is not None
  load = next(s for s in add.body if isinstance(s, Instruction))
  assert load.name == "ld.global.v2.b32" and load.at == (16, 3)
  assert load.operands == (Vector((Name("%r1"), Name("_"))), Address(Name("%r2"), -4))
  assert [s.words for s in add.body if isinstance(s, Directive)] == [("1", "5", "3"), ('"nounroll"',)]


BAD = [
  ("", 1, 1, ".version as the first directive expected, found the end of the text"),
  (".version 8\n", 1, 10, "a version such as 9.0 expected, found '8'"),
  (".version 8.0\n.address_size 64", 2, 1, ".target behind .version expected, found '.address_size'"),
  (HEAD + ".entry f {", 4, 11, "an instruction, a declaration, a label or '}' expected, found the end of the text"),
  (HEAD + ".entry f { add.s32 %r1 %r2; }", 4, 24, "',' or ';' behind an operand of add.s32 expected, found '%r2'"),
  (HEAD + ".entry f {\n  ld.global.f32 %f1, [%rd1;\n}", 5, 27, "']' or ',' expected, found ';'"),
  (HEAD + ".entry f { .reg .q32 a; }", 4, 17, "a type, .align or .v2, .v4 expected, found '.q32'"),
  (HEAD + ".entry f { # }", 4, 12, "a token of PTX expected, found '#'"),
  (HEAD + ".global .b32 x = {1, 2;", 4, 23, "',' or '}' expected, found ';'"),
  (HEAD + "add.s32 a, b, c;", 4, 1, "a directive of a module (.entry, .func, .global, ...) expected, found 'add'"),
]


@pytest.mark.parametrize(("source", "line", "column", "message"), BAD, ids=[m for *_, m in BAD])
def test_a_syntax_error_says_where_and_what_was_expected(source: str, line: int, column: int, message: str) -> None:
  with pytest.raises(PtxSyntaxError) as caught: parse(source)
  error = caught.value
  assert (error.line, error.column) == (line, column)
  assert str(error) == f"PTX line {line}, column {column}: {message}"


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_damaged_text_is_an_error_or_a_module(data: st.DataObject) -> None:
  source = CORPUS[0].read_text()
  start = data.draw(st.integers(0, len(source) - 2000))
  part = ".version 9.0\n.target sm_80\n" + source[start:start + 2000]
  at = data.draw(st.integers(0, len(part)))
  damaged = part[:at] + data.draw(st.text("{}()[];,.@!%x0 \n\"", max_size=4)) + part[at + data.draw(st.integers(0, 5)):]
  try: module = parse(damaged)
  except PtxSyntaxError as error: assert error.line > 0 and error.column > 0
  else: assert parse(text(module)) == module


def test_deep_nesting_is_an_error() -> None:
  with pytest.raises(PtxSyntaxError, match="fewer nested"): parse(HEAD + ".entry f " + "{" * 5000)
  with pytest.raises(PtxSyntaxError, match="fewer nested"): parse(HEAD + ".global .b32 x = " + "(" * 5000)


def test_every_row_of_the_table_finds_itself() -> None:
  for rows in forms.rows().values():
    for row in rows:
      name = next(iter(row.combinations()))
      found = forms.find(name)
      assert found is not None, name
      assert found.row.opcode == row.opcode


def test_types_of_operands() -> None:
  found = forms.find("mad.wide.s32")
  assert found is not None and (found.results, found.sources) == (("s64",), ("s32", "s32", "s64"))
  found = forms.find("cvt.rn.f16.f32")
  assert found is not None and (found.results, found.sources) == (("f16",), ("f32",))
  assert forms.find("add.wide.s32") is None and not forms.known("addd")

