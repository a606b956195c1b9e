"""Every rule of PTX's grammar: what is read and where it is kept, and what is expected where something else stands."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.isa.ptx import PtxSyntaxError, parse, text
from tinyhw.isa.ptx.lexer import Tokens
from tinyhw.isa.ptx.model import (
  Address,
  Arguments,
  Block,
  Directive,
  Float,
  Function,
  Initializer,
  Instruction,
  Int,
  Label,
  Member,
  Minus,
  Module,
  Name,
  Not,
  Operand,
  OperandPart,
  Pair,
  Predicate,
  Prototype,
  Section,
  Sum,
  Targets,
  Variable,
  Vector,
)

HEAD = ".version 8.5 .target sm_90 .address_size 64\n"


def item(source: str) -> Any:
  """The one item of a module."""
  (found,) = parse(HEAD + source).items
  return found


def body(source: str) -> tuple[Any, ...]:
  """The statements of a function's body."""
  found = item(f".func f () {{ {source} }}").body
  assert found is not None
  return tuple(found)


# ---- what is read: a text and what it says


def test_the_head_of_a_module() -> None:
  assert parse(".version 7.10 .target sm_90a, debug, texmode_independent").version == (7, 10)
  module = parse(".version 7.10 .target sm_90a, debug, texmode_independent")
  assert (module.target, module.address_size, module.items) == (("sm_90a", "debug", "texmode_independent"), 0, ())
  assert module.sm == 90 and parse(".version 1.0 .target what").sm == 0
  for size in (32, 64):
    assert parse(f".version 1.4 .target sm_13 .address_size {size}").address_size == size
  assert parse(b".version 8.0 .target sm_80\n\0\0") == Module((8, 0), ("sm_80",), 0, ())
  with pytest.raises(PtxSyntaxError, match=r"line 1, column 4: text in UTF-8 expected, found byte 0xff"):
    parse(b"// \xff")


ITEMS: list[tuple[str, Any]] = [
  ('.file 1 "a.cu", 12, 34', Directive("file", ("1", '"a.cu"', ",", "12", ",", "34"))),
  (".loc 1 5 3", Directive("loc", ("1", "5", "3"))),
  ('.pragma "nounroll", "x;";', Directive("pragma", ('"nounroll"', ",", '"x;"'))),
  (".alias a, b;", Directive("alias", ("a", ",", "b"))),
  (".section .debug_str { .b8 1, 2\n .b32 x+4 }", Section(".debug_str", (".b8", "1", ",", "2", ".b32", "x", "+", "4"))),
  (".section name { }", Section("name", ())),
  (".global .u32 x;", Variable("global", "u32", "x")),
  (".visible .global .align 16 .v4 .f32 x[2][3];", Variable("global", "f32", "x", 4, 16, (2, 3), linkage="visible")),
  (".extern .shared .v2 .b8 s[];", Variable("shared", "b8", "s", 2, 0, (0,), linkage="extern")),
  (".weak .const .v8 .b16 c;", Variable("const", "b16", "c", 8, linkage="weak")),
  (".common .global .s64 x[5*(2+1)];", Variable("global", "s64", "x", dims=(15,), linkage="common")),
  (".const[3] .u32 c;", Variable("const", "u32", "c")),
  (".tex .u32 t;", Variable("tex", "u32", "t")),
  (".tex t;", Variable("tex", "u32", "t")),
  (".tex .texref t;", Variable("tex", "texref", "t")),
  (".attribute(.managed) .global .b32 x;", Variable("global", "b32", "x", attributes=(".managed",))),
  (".global .attribute(.unified(1, 2)) .b32 x;", Variable("global", "b32", "x", attributes=(".unified ( 1 , 2 )",))),
  (
    ".attribute(.a) .visible .attribute(.b) .global .attribute(.c) .b32 x;",
    Variable("global", "b32", "x", linkage="visible", attributes=(".a", ".b", ".c")),
  ),
  (
    ".global .samplerref s = { addr_mode_0 = wrap, normalized_coords = 1 };",
    Variable(
      "global", "samplerref", "s", initializer=(Member("addr_mode_0", "wrap"), Member("normalized_coords", "1"))
    ),
  ),
  (".visible .entry k;", Function("entry", "k", linkage="visible")),
  (".entry k { }", Function("entry", "k", body=())),
  (
    ".extern .func (.param .b32 r) f (.param .b64 a, .reg .b32 b) .noreturn;",
    Function(
      "func",
      "f",
      (Variable("param", "b32", "r"),),
      (Variable("param", "b64", "a"), Variable("reg", "b32", "b")),
      (Directive("noreturn"),),
      None,
      "extern",
    ),
  ),
  (
    ".func f (.param .b8 a[8], .param .b8 b[]);",
    Function("func", "f", (), (Variable("param", "b8", "a", dims=(8,)), Variable("param", "b8", "b", dims=(0,)))),
  ),
  (
    ".entry k (.param .u64 .ptr .global .align 16 a, .param .u64 .ptr b, .param .u32 .ptr .shared c,"
    " .param .u64 .ptr .align 4 d, .param .u64 .ptr .local e, .param .u64 .ptr .const g);",
    Function(
      "entry",
      "k",
      (),
      tuple(
        Variable("param", f"u{32 if n == 'c' else 64}", n, pointer=p)
        for n, p in (
          ("a", ("global", 16)),
          ("b", ("", 0)),
          ("c", ("shared", 0)),
          ("d", ("", 4)),
          ("e", ("local", 0)),
          ("g", ("const", 0)),
        )
      ),
    ),
  ),
  (
    ".entry .attribute(.x) k () .maxntid 16, 8, 4 .reqntid 1 .minnctapersm 2 .maxnctapersm 3 .maxnreg 40 "
    ".explicitcluster .reqnctapercluster 2, 1, 1 .maxclusterrank 8 .blocksareclusters .abi_preserve 3 "
    ".abi_preserve_control 4 "
    '.pragma "a", "b"; .unified {}',
    Function(
      "entry",
      "k",
      (),
      (),
      (
        Directive("maxntid", ("16", ",", "8", ",", "4")),
        Directive("reqntid", ("1",)),
        Directive("minnctapersm", ("2",)),
        Directive("maxnctapersm", ("3",)),
        Directive("maxnreg", ("40",)),
        Directive("explicitcluster"),
        Directive("reqnctapercluster", ("2", ",", "1", ",", "1")),
        Directive("maxclusterrank", ("8",)),
        Directive("blocksareclusters"),
        Directive("abi_preserve", ("3",)),
        Directive("abi_preserve_control", ("4",)),
        Directive("pragma", ('"a"', ",", '"b"')),
        Directive("unified"),
      ),
      (),
      "",
      (".x",),
    ),
  ),
]


@pytest.mark.parametrize(("source", "wanted"), ITEMS, ids=[s[:40] for s, _ in ITEMS])
def test_an_item(source: str, wanted: Any) -> None:
  assert item(source) == wanted
  assert item(text(Module((8, 5), ("sm_90",), 64, (wanted,))).partition("64")[2]) == wanted


SPACES = ["reg", "sreg", "const", "global", "local", "param", "shared", "tex"]
TYPES = (
  "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 f32 f64 bf16 bf16x2 e4m3 e5m2 e4m3x2 e5m2x2 tf32 "
  "pred texref samplerref surfref u16x2 s16x2 f32x2"
).split()


@pytest.mark.parametrize("space", SPACES)
def test_every_type_in_every_space(space: str) -> None:
  for type_ in TYPES:
    assert body(f".{space} .{type_} x;") == (Variable(space, type_, "x"),)
    if space != "param":
      assert body(f".{space} .{type_} x, y<7>, z[2];") == (
        Variable(space, type_, "x"),
        Variable(space, type_, "y", count=7),
        Variable(space, type_, "z", dims=(2,)),
      )
  assert body(f".extern .{space} .b32 x;") == (Variable(space, "b32", "x", linkage="extern"),)


INITIALIZERS: list[tuple[str, Initializer]] = [
  ("1", Int(1)),
  ("-5", Int(-5)),
  ("7U", Int(7, True)),
  ("0x1F", Int(31)),
  ("0X1fU", Int(31, True)),
  ("017", Int(15)),
  ("0b101", Int(5)),
  ("0B11U", Int(3, True)),
  ("0", Int(0)),
  ("0U", Int(0, True)),
  ("WARP_SZ", Int(32)),
  ("1.5", Float(0x3FF8000000000000, 64)),
  ("-1.5", Float(0xBFF8000000000000, 64)),
  ("1e3", Float(0x408F400000000000, 64)),
  ("2.5E-1", Float(0x3FD0000000000000, 64)),
  ("3.", Float(0x4008000000000000, 64)),
  ("0f3F800000", Float(0x3F800000, 32)),
  ("0F3f800000", Float(0x3F800000, 32)),
  ("-0f3F800000", Float(0xBF800000, 32)),
  ("-0fBF800000", Float(0x3F800000, 32)),
  ("0d3FF0000000000000", Float(0x3FF0000000000000, 64)),
  ("0D3FF0000000000000", Float(0x3FF0000000000000, 64)),
  ("x", Sum("x")),
  ("x+4", Sum("x", 4)),
  ("x-4", Sum("x", -4)),
  ("x+-4", Sum("x", -4)),
  ("x-4+6", Sum("x", 2)),
  ("x+4-6", Sum("x", -2)),
  ("x+2*3<<1", Sum("x", 12)),
  ("x+~0", Sum("x", -1)),
  ("x-5U", Sum("x", -5)),
  ("generic(x)", Sum("x", 0, "generic")),
  ("generic(x)+8", Sum("x", 8, "generic")),
  ("0xFF(x)", Sum("x", 0, "0xFF")),
  ("0xFF00(x+4)", Sum("x", 4, "0xFF00")),
  ("0xFF(generic(x))", Sum("x", 0, "0xFF generic")),
  ("0xFF(generic(x)+4)", Sum("x", 4, "0xFF generic")),
  ("{}", ()),
  ("{1, 0f3F800000, y, {2, 3}}", (Int(1), Float(0x3F800000, 32), Sum("y"), (Int(2), Int(3)))),
  ("{1,}", (Int(1),)),
]


@pytest.mark.parametrize(("source", "wanted"), INITIALIZERS, ids=[s for s, _ in INITIALIZERS])
def test_an_initializer(source: str, wanted: Initializer) -> None:
  variable = Variable("global", "b64", "v", initializer=wanted)
  assert item(f".global .b64 v = {source};") == variable
  assert item(text(Module((8, 5), ("sm_90",), 64, (variable,))).partition("64")[2]) == variable


OPERANDS: list[tuple[str, Operand]] = [
  ("%r1", Name("%r1")),
  ("_", Name("_")),
  ("$x", Name("$x")),
  ("%tid.x", Name("%tid.x")),
  ("v.w.x", Name("v.w.x")),
  ("%r1.b0", OperandPart(Name("%r1"), "b0")),
  ("%r1.h1", OperandPart(Name("%r1"), "h1")),
  ("%r1.b7654", OperandPart(Name("%r1"), "b7654")),
  ("-%r1.h0", Minus(OperandPart(Name("%r1"), "h0"))),
  ("-%r1", Minus(Name("%r1"))),
  ("!%p1", Not(Name("%p1"))),
  ("a+4", Sum("a", 4)),
  ("a-4", Sum("a", -4)),
  ("a+-4", Sum("a", -4)),
  ("a[3]", Sum("a", 3, "element")),
  ("a[1+1]", Sum("a", 2, "element")),
  ("5", Int(5)),
  ("-5", Int(-5)),
  ("5U", Int(5, True)),
  ("~5", Int(2**64 - 6, True)),
  ("(1+2)*3", Int(9)),
  ("1+2*3", Int(7)),
  ("-1+2", Int(1)),
  ("WARP_SZ", Int(32)),
  ("WARP_SZ-1", Int(31)),
  ("1.0", Float(0x3FF0000000000000, 64)),
  ("-0f3F800000", Float(0xBF800000, 32)),
  ("%p1|%p2", Pair(Name("%p1"), Name("%p2"))),
  ("_|%p2", Pair(Name("_"), Name("%p2"))),
  ("{}", Vector(())),
  ("{%r1, _}", Vector((Name("%r1"), Name("_")))),
  ("{a, {b}}", Vector((Name("a"), Vector((Name("b"),))))),
  ("()", Arguments(())),
  ("(a, 5)", Arguments((Name("a"), Int(5)))),
  ("(5)", Arguments((Int(5),))),
  ("(5, a)", Arguments((Int(5), Name("a")))),
  ("[a]", Address(Name("a"))),
  ("[a+4]", Address(Name("a"), 4)),
  ("[a-4]", Address(Name("a"), -4)),
  ("[a+-4]", Address(Name("a"), -4)),
  ("[64]", Address(Int(64))),
  ("[a+2*4]", Address(Name("a"), 8)),
  ("[a, {x, y}]", Address(Name("a"), 0, (Vector((Name("x"), Name("y"))),))),
  ("[a+4, b, c]", Address(Name("a"), 4, (Name("b"), Name("c")))),
]


@pytest.mark.parametrize(("source", "wanted"), OPERANDS, ids=[s for s, _ in OPERANDS])
def test_an_operand(source: str, wanted: Operand) -> None:
  i = Instruction("op", ("a", "b::c"), (wanted, Name("z")))
  assert body(f"op.a.b::c {source}, z;") == (i,) and body(f"op.a.b::c z,{source} ;")[0].operands == (Name("z"), wanted)
  assert item(text(Module((8, 5), ("sm_90",), 64, (Function("func", "f", body=(i,)),))).partition("64")[2]).body == (i,)


STATEMENTS: list[tuple[str, tuple[Any, ...]]] = [
  ("", ()),
  (";;", ()),
  ("ret;", (Instruction("ret", (), ()),)),
  ("a: b: ret;", (Label("a"), Label("b"), Instruction("ret", (), ()))),
  ("@p ret;", (Instruction("ret", (), (), Predicate("p")),)),
  ("@!p ret.uni;", (Instruction("ret", ("uni",), (), Predicate("p", True)),)),
  ("{ { } ret; }", (Block((Block(()), Instruction("ret", (), ()))),)),
  (
    ".loc 1 2 3\n.loc 1 3 3, function_name f, inlined_at 1 2 3\nret;",
    (
      Directive("loc", ("1", "2", "3")),
      Directive("loc", ("1", "3", "3", ",", "function_name", "f", ",", "inlined_at", "1", "2", "3")),
      Instruction("ret", (), ()),
    ),
  ),
  ('.pragma "nounroll";', (Directive("pragma", ('"nounroll"',)),)),
  (
    "t: .branchtargets a, b; u: .calltargets f;",
    (Targets("branchtargets", "t", ("a", "b")), Targets("calltargets", "u", ("f",))),
  ),
  ("p: .callprototype _;", (Prototype("p", (), ()),)),
  (
    "p: .callprototype (.param .b32 _) _ (.param .b64 a, .reg .b32 b) .noreturn .abi_preserve 1;",
    (
      Prototype(
        "p",
        (Variable("param", "b32", "_"),),
        (Variable("param", "b64", "a"), Variable("reg", "b32", "b")),
        (".noreturn", ".abi_preserve", "1"),
      ),
    ),
  ),
  (
    "ld.global.v2.u32 {a, b}, [c+8];",
    (Instruction("ld", ("global", "v2", "u32"), (Vector((Name("a"), Name("b"))), Address(Name("c"), 8))),),
  ),
]


@pytest.mark.parametrize(("source", "wanted"), STATEMENTS, ids=[s[:30] for s, _ in STATEMENTS])
def test_statements(source: str, wanted: tuple[Any, ...]) -> None:
  assert body(source) == wanted
  assert (
    item(text(Module((8, 5), ("sm_90",), 64, (Function("func", "f", body=wanted),))).partition("64")[2]).body == wanted
  )


def test_places_of_everything() -> None:
  found = parse(
    HEAD + "// one\n.global .u32\n  x;\n  .func (.param .b32 r)\n f (.param .b32 a,\n  .param .b32 b)\n{\n /* \n */ "
    "@p ret; l:\n  t: .branchtargets l; c: .callprototype _;\n .loc 1 2 3\n .reg .b32 y,\n  z;\n}\n"
  )
  x, f = found.items
  assert (
    isinstance(x, Variable) and x.at == (4, 3) and isinstance(f, Function) and f.at == (6, 2) and f.body is not None
  )
  assert [p.at for p in f.params] == [(6, 17), (7, 15)] and f.results[0].at == (5, 22)
  assert [s.at for s in f.body if not isinstance(s, Block)] == [
    (10, 8),
    (10, 13),
    (11, 3),
    (11, 24),
    (12, 2),
    (13, 12),
    (14, 3),
  ]
  assert item('\n  .pragma "a";').at == (3, 3)
  assert item(".entry k ()\n .maxntid 3, 4 ;").directives[0].at == (3, 2)


def test_what_a_module_finds() -> None:
  """Functions by name: the one with a body; kernels are entries with one."""
  module = parse(HEAD + ".func f; .func f { ret; } .func f; .entry e; .entry k {} .func g; .global .u32 x;")
  assert set(module.functions) == {"f", "e", "k", "g"} and set(module.entries) == {"k"}
  assert module.functions["f"].body is not None and module.functions["g"].body is None
  k = parse(HEAD + ".entry k () .maxntid 3, 4 .maxnreg 5 {}").entries["k"]
  assert (k.directive("maxntid"), k.directive("maxnreg"), k.directive("reqntid")) == ((3, 4), (5,), None)
  assert Instruction("mul", ("lo", "s32"), ()).name == "mul.lo.s32"


# ---- what is expected: `^` stands before the token that is not

ALIGNMENT = "a power of two of at most 32 bits, an alignment in bytes,"
EXPECTED = [
  ("^.target sm_80", ".version as the first directive"),
  (".version ^x", "a version such as 9.0"),
  (".version ^8", "a version such as 9.0"),
  (".version ^1e5", "a version such as 9.0"),
  (".version ^8.", "a version such as 9.0"),
  (".version ^0f3F800000", "a version such as 9.0"),
  (".version ^1.5e1", "a version such as 9.0"),
  (".version 8.0 ^.entry", ".target behind .version"),
  (".version 8.0 .target ^80", "a target such as sm_80"),
  (".version 8.0 .target sm_80, ^;", "a target's option"),
  (".version 8.0 .target sm_80 .address_size ^x", "32 or 64"),
  *((f".version 8.0 .target sm_80 .address_size ^{n}", "an address size of 32 or 64") for n in (31, 33, 48, 63, 65, 0)),
  *(
    (HEAD + source, expected)
    for source, expected in (
      ("^add.s32 a;", "a directive of a module (.entry, .func, .global, ...)"),
      (".visible ^;", "a directive of a module (.entry, .func, .global, ...)"),
      ('.entry k () .maxntid ^"a";', "a number from 1 to 4294967295 for .maxntid"),
      (".entry k () .pragma ^5", "';'"),
      ("^.maxntid 5", "a directive of a module (.entry, .func, .global, ...)"),
      (".global .u32 x ^.entry", "';' behind a variable"),
      (".global .u32 x, ^.u32 y;", "a variable's name"),
      (".entry k (.param .u32 a, ^b)", ".param or .reg"),
      (".func f (.reg .u32 a, ^b)", ".param or .reg"),
      (".attribute ^x", "'('"),
      (".attribute(.managed (2)^", "')'"),
      ('.pragma "x"^', "';' behind .pragma"),
      (".alias a, b^", "';' behind .alias"),
      (".section ^;", "a section's name"),
      (".section .debug ^x", "'{'"),
      (".section .debug { .b8 1^", "'}' behind a section"),
      (".entry ^5", "the function's name"),
      (".func (^x", ".param or .reg"),
      (".func (^.global .u32 x", ".param or .reg"),
      (".func (.param .u32 a ^.param", "',' or ')'"),
      (".entry k () ^x", "'{', ';' or a directive of a function"),
      (".entry k () .maxntid 5 ^.loc", "'{', ';' or a directive of a function"),
      ('.entry k () .pragma "x" ^{', "';'"),
      (".const [^x", "a bank's number"),
      (".const [1 ^.u32", "']'"),
      (".global ^[1]", "a type"),
      (".global .align ^x", ALIGNMENT),
      *((f".{space} .align ^{n} .b8 x[4];", ALIGNMENT) for space in ("global", "const", "shared")
        for n in (0, 3, 48, 0x30, 1 << 32, 1 << 40)),
      (".entry k (.param .align ^24 .b8 x[4]", ALIGNMENT),
      *((f".entry k () {name} ^{n};", f"a number from 1 to 4294967295 for {name}")
        for name in (".maxntid", ".reqntid", ".reqnctapercluster", ".minnctapersm", ".maxnreg", ".maxclusterrank")
        for n in (0, 1 << 32, 10**19)),
      (".entry k () .maxntid 8, 8, ^0;", "a number from 1 to 4294967295 for .maxntid"),
      (".entry k () .maxntid ^;", "a number from 1 to 4294967295 for .maxntid"),
      (".entry k () .maxntid 10, ^99999999999999999999;", "an integer of at most 64 bits"),
      (".entry k () .maxntid 1, 2, 3^, 4;", "'{', ';' or a directive of a function"),
      (".entry k () .maxnreg 32^, 4;", "'{', ';' or a directive of a function"),
      (".global ^.q8 x", "a type, .align or .v2, .v4"),
      (".global ^.v3 .f32 x", "a type, .align or .v2, .v4"),
      (".global ^x;", "a type"),
      (".const ^x;", "a type"),
      (".global .u32 ^5;", "a variable's name"),
      (".global .u32 x<^y", "how many registers"),
      (".global .u32 x<5^;", "'>'"),
      (".global .u32 x[5^;", "']'"),
      (".global .u32 x[^y", "an integer"),
      (".entry k (.param .u64 .ptr .align ^x", ALIGNMENT),
      (".entry k (.param .u64 .ptr .align ^3 x", ALIGNMENT),
      (".entry k (.param .u64 .ptr ^.reg x", "a type, .align or .v2, .v4"),
      (".global .u32 x = {1 ^;", "',' or '}'"),
      (".global .u32 x = { a = ^; ", "a value's name or a number"),
      (".global .u32 x = { a = ^1.5 ", "a value's name or a number"),
      (".global .u32 x = generic ^y", "'('"),
      (".global .u32 x = generic(^5", "a variable"),
      (".global .u32 x = generic(y ^;", "')'"),
      (".global .u32 x = 0xFF(^5", "a variable"),
      (".global .u32 x = 0xFF(generic ^y", "'('"),
      (".global .u32 x = 0xFF(generic(^5", "a variable"),
      (".global .u32 x = 0xFF(generic(y ^;", "')'"),
      (".global .u32 x = 0xFF(y ^;", "')'"),
      (".global .u32 x = (1 ^;", "')'"),
      (".global .u32 x = 1 ? 2 ^;", "':'"),
      (".global .u32 x = 1 ? 2 : ^;", "an integer"),
      (".global .u32 x = ^;", "an integer"),
      (".global .u32 x = + ^;", "an integer"),
      (".global .u32 x = 1 + ^y;", "an integer"),
      (".global .u32 x = (.u64 ^1", "')'"),
      (".global .u32 x = (^.u32) 1", "an integer"),
      (".global .u32 x = 1 / ^0;", "a divisor other than 0"),
      (".global .u32 x = 1 % ^(1 - 1);", "a divisor other than 0"),
      (".global .u64 x = ^18446744073709551616;", "an integer of at most 64 bits"),
      (".global .u64 x = ^0x10000000000000000;", "an integer of at most 64 bits"),
      (f".global .u64 x = ^{'9' * 5000};", "an integer of at most 64 bits"),
      (".global .u64 x = ^08;", "a token of PTX"),
      (".global .u64 x = ^0x;", "a token of PTX"),
      (".global .u64 x = ^0b2;", "a token of PTX"),
      (".global .u64 x = ^5a;", "a token of PTX"),
      (".global .u64 x = ^5u;", "a token of PTX"),
      (".global .f32 x = ^0f3F80000;", "a token of PTX"),
      (".global .f32 x = ^0d3F800000;", "a token of PTX"),
      ('.pragma ^"x', "a token of PTX"),
      (".global .u64 ^` x;", "a token of PTX"),
      (".func f { ^, }", "an instruction, a declaration, a label or '}'"),
      (".func f { ^5", "an instruction, a declaration, a label or '}'"),
      (".func f { { ret; } ^", "an instruction, a declaration, a label or '}'"),
      (".func f { .reg .b32 x ^}", "';' behind a variable"),
      (".func f { .pragma x ^", "';' behind .pragma"),
      (".func f { @^5 ret;", "a predicate register"),
      (".func f { @!^! ret;", "a predicate register"),
      (".func f { @p ^: ", "an instruction"),
      (".func f { @p ^@q ret;", "an instruction"),
      (".func f { x: .branchtargets ^5", "a label"),
      (".func f { x: .branchtargets a, ^;", "a label"),
      (".func f { x: .branchtargets a ^b", "';'"),
      (".func f { x: .callprototype ^x", "'_' for the function's name"),
      (".func f { x: .callprototype (.param .b32 _) ^(", "'_' for the function's name"),
      (".func f { x: .callprototype _ (.param .b32 _) .noreturn^", "';'"),
      (".func f { add.s32 ^];", "an operand"),
      (".func f { add.s32 a, ^;", "an operand"),
      (".func f { add.s32 a ^b;", "',' or ';' behind an operand of add.s32"),
      (".func f { ret ^}", "an operand"),
      (".func f { add {a ^b", "',' or '}'"),
      (".func f { call (a ^b", "',' or ')'"),
      (".func f { ld a[^b", "an integer"),
      (".func f { ld a[3^;", "']'"),
      (".func f { ld [a ^b", "']' or ','"),
      (".func f { ld [a, b ^;", "']' or ','"),
      (".func f { ld x, [^]", "an operand"),
      (".func f { ld x, a ^[3]", "',' or ';' behind an operand of ld"),
      (".func f { ld [w[5]^], x", "']': an element's address is written without brackets, or as array+bytes"),
      (".func f { op a|^;", "an operand"),
      (".func f { op -^;", "an integer"),
      (".func f { op !^;", "an operand"),
      (".func f { op ^% 5;", "an operand"),
    )
  ),
]


@pytest.mark.parametrize(("source", "expected"), EXPECTED, ids=[s.removeprefix(HEAD)[:50] for s, _ in EXPECTED])
def test_what_is_expected_where_something_else_stands(source: str, expected: str) -> None:
  """The message has the token, its line and its column."""
  before, _, after = source.partition("^")
  column = len(before) - (before.rfind("\n") + 1) + 1
  found = re.match(r"(\"[^\"]*\"|\d+\.\d*(?:e\d+)?|\.?[\w$]+|\S)?", after)
  assert found is not None
  if not before.endswith(" ") and not after:
    column = len(before.rstrip()) - (before.rfind("\n") + 1) + 1
  with pytest.raises(PtxSyntaxError) as caught:
    parse(before + after)
  error = caught.value
  assert (error.line, error.column, error.expected) == (1 + before.count("\n"), column, expected)
  token = found[1] or ""
  if expected == "a token of PTX":
    token = token[0]
  assert error.found == (repr(token) if token else "the end of the text")
  assert str(error).startswith(f"PTX line {error.line}, column {column}: {expected} expected, found {error.found[:60]}")


WHOLE = (
  HEAD
  + """.global .align 4 .b8 t[2][3] = {{1, 0x2}, {-5}};
.visible .func (.param .b32 r) f (.param .b64 .ptr .global .align 8 a, .reg .b32 b) .maxntid 5, 6
{
  .reg .pred %p<3>;
  @!%p1 ld.global.v2.b32 {%r1, _}, [%r2+-4];
  x: .branchtargets x, y;
  call (%r3), f, (%r4, 5), p;
  p: .callprototype (.param .b32 _) _ (.param .b32 _);
  { setp.lt.and.s32 %p1|%p2, %r1, -7, !%p2; }
}
"""
)


def test_a_token_that_fits_nowhere_is_what_the_error_points_at() -> None:
  """A string behind any token of a text is refused there; so is the end of the text, but behind the last one."""
  places = [m.end() for m in re.finditer(r"[.%$]?[A-Za-z_]\w*(?:::\w+)*(?:\.\w+)*|\d+\.\d+|0x\d|\d+|\S", WHOLE)]
  first = WHOLE.index(".global")
  free = WHOLE.index("_ (.param") + 1, WHOLE.index("_);") + 2  # what a prototype may have behind it is not looked at
  for at in places[:-1]:
    if at in free:
      continue
    line, column = WHOLE.count("\n", 0, at) + 1, at - (WHOLE.rfind("\n", 0, at) + 1) + 2
    with pytest.raises(PtxSyntaxError) as caught:
      parse(f'{WHOLE[:at]} "no" {WHOLE[at:]}')
    assert (caught.value.line, caught.value.column, caught.value.found) == (line, column, "'\"no\"'"), WHOLE[:at]
    if at <= first or WHOLE[:at].endswith("}};"):
      continue
    with pytest.raises(PtxSyntaxError) as caught:
      parse(WHOLE[:at])
    assert (caught.value.line, caught.value.column, caught.value.found) == (line, column - 1, "the end of the text")


def test_comments_and_blanks_are_nothing() -> None:
  plain = parse(WHOLE)
  spread = re.sub(r"(?<=[,;{}()\[\]<>])", " /* { */ // }\n\t", WHOLE)
  assert parse(spread) == plain and parse(WHOLE.replace("\n", "\r\n")) == plain
  assert parse('# 1 "a.cu"\n' + WHOLE.replace("{\n  .reg", '{\n  # 5 "x"\n  .reg')) == plain


PIECES = {"name": ["add", "%r1", "$L__BB0_1", "_", "%tid"], "dot": [".b32", ".global", ".to::x"],
          "int": ["0", "017", "42U", "0x1eF", "0b11"],
          "float": ["1.5", "2e5", "3.", "1.e-3", "0f3F800000", "0D3ff0000000000000"],
          "string": ['"a b"', '"\\""', '"//"'],
          "op": ["||", "|", "%", "<<", "<", "{", ";", "@"]}
GAPS = [" ", "\n", "\t", " // x\n", "/* 1\n2 */", "\n# 1 \"f\"\n"]


@given(st.lists(st.tuples(st.sampled_from([(kind, text) for kind, texts in PIECES.items() for text in texts]),
                          st.sampled_from(GAPS)), max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_tokens_are_what_stands_between_the_gaps(pieces: list[tuple[tuple[str, str], str]]) -> None:
  """Whatever follows what: kinds, texts and places; the end can be looked at from two tokens before it."""
  source, rows = "", list[tuple[str, str, int, int]]()
  for (kind, piece), gap in pieces:
    rows.append((kind, piece, len(source), len(source) + len(piece)))
    source += piece + gap
  tokens = Tokens(source)
  found = list(zip(tokens.kinds, tokens.texts, tokens.starts, tokens.ends, strict=True))
  assert found[:len(rows)] == rows and len(found) >= len(rows) + 3
  assert {row[:2] for row in found[len(rows):]} == {("end", "")}
