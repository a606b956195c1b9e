"""Functions that C calls: their arguments, what is raised within them, threads of C, the end of Python."""
from __future__ import annotations

import ast
import ctypes
import io
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.core import called, called_code
from tinyhw.core.called import Called, Plain
from tinyhw.emulator.jit import compiler
from tinyhw.emulator.jit.native import linked

ROOT = Path(__file__).parents[2]
native = pytest.mark.skipif(not called.NATIVE, reason="machine code of x86-64")
KINDS = (ctypes.c_int8, ctypes.c_uint16, ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64)


def struct(size: int) -> type[ctypes.Structure]:
  """A struct of so many bytes."""
  return type(f"Bytes{size}", (ctypes.Structure,), {"_fields_": [("data", ctypes.c_uint8 * size)]})


STRUCTS = tuple(map(struct, (3, 8, 12, 16, 17, 24, 64)))


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_a_function_gets_the_arguments_that_c_gave(data: st.DataObject) -> None:
  """In registers and on the stack, structs too; the caller is libffi."""
  kinds = data.draw(st.lists(st.sampled_from([*KINDS, *(STRUCTS if called.NATIVE else ())]), max_size=20))
  given_ = [kind(data.draw(st.integers(-1 << 63, (1 << 64) - 1))) if kind in KINDS
            else kind.from_buffer_copy(data.draw(st.binary(min_size=n, max_size=n)))
            for kind in kinds for n in [ctypes.sizeof(kind)]]
  word, seen = data.draw(st.integers(-1 << 63, (1 << 63) - 1)), list[Any]()

  def function(*arguments: Any) -> int:
    seen.extend(arguments)
    return word
  made = Plain(function, *kinds, failed=-1)
  assert ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(made.address)(*given_) == word
  assert [x if isinstance(x, int) else bytes(x) for x in seen] == [
    x.value if isinstance(x, KINDS) else bytes(x) for x in given_]


def test_a_mistake_in_a_function_is_told_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
  made = Plain(lambda: 1 // 0, failed=-7)
  assert ctypes.CFUNCTYPE(ctypes.c_int32)(made.address)() == -7
  assert "ZeroDivisionError" in capsys.readouterr().err


@native
def test_the_code_is_what_its_text_says() -> None:
  compiler.initialize()
  llvm.initialize_native_asmparser()
  text = ".intel_syntax noprefix\n" + called_code.TEXT + ".org 4096\n" + "".join(
    f"{name}: .quad 0\n" for name in called_code.WORDS) + ".att_syntax\n"
  triple = "x86_64-unknown-linux-gnu"
  module = llvm.parse_assembly(f'target triple = "{triple}"\nmodule asm "' + text.replace("\n", "\\0A") + '"\n')
  elf = ELFFile(io.BytesIO(llvm.Target.from_triple(triple).create_target_machine().emit_object(module)))
  made = elf.get_section_by_name(".text").data()
  assert made[:4096].rstrip(b"\0") == called_code.CODE and len(made) == 4096 + 8 * len(called_code.WORDS)
  places = {s.name: s.entry.st_value for s in elf.get_section_by_name(".symtab").iter_symbols()}
  assert not places["entry"] and all(places[name] == at for name, at in called_code.PLACES.items())


def compiled(text: str) -> int:
  """The address of @f in LLVM IR."""
  compiler.initialize()
  module = llvm.parse_assembly(text)
  kept.append(linked([compiler.machine("", 0, "jitdefault").emit_object(module)], "f"))
  return int(kept[-1]["f"])


kept: list[Any] = []
C_CALLS = """
declare void @PyErr_SetInterruptEx(i32)
define void @f(ptr %function, i64 %argument, i64 %interrupts, ptr %out) {
  %some = icmp ne i64 %interrupts, 0
  br i1 %some, label %yes, label %no
yes:
  call void @PyErr_SetInterruptEx(i32 2)
  br label %no
no:
  %word = call i64 %function(i64 %argument)
  store i64 %word, ptr %out
  ret void
}
"""


def calls() -> Callable[[int, int, int, Any], None]:
  """C that calls a function of one argument, maybe with a signal that has come just before, and stores its answer."""
  return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(compiled(C_CALLS))


class Bell(Exception):
  """Raised by a handler."""


def ring(number: int, frame: Any) -> None: raise Bell


@native
@pytest.mark.parametrize("handler, error", [(signal.default_int_handler, KeyboardInterrupt), (ring, Bell)])
@pytest.mark.parametrize("when", ["before", "within", "both", "nested"])
def test_what_a_signal_raises_comes_after_the_call(handler: Any, error: type[BaseException], when: str) -> None:
  """The function runs once, C gets its word, and Python the exception, once; the handler is the one that was there."""
  function, runs, out = calls(), list[int](), ctypes.c_int64()

  def body(x: int) -> int:
    runs.append(x)
    if when in ("within", "both"): signal.raise_signal(signal.SIGINT)
    if when == "nested":
      function(inner.address, x + 1, 1, ctypes.byref(out))
      assert out.value == x + 1
    runs.append(-x)
    return 10 * x

  def store(x: int) -> int:
    runs.append(x)
    return x
  made, inner = (Plain(f, ctypes.c_int64, failed=-1) for f in (body, store))
  before = signal.signal(signal.SIGINT, handler)
  try:
    for turn in range(1, 30):
      runs.clear()
      with pytest.raises(error):
        function(made.address, turn, int(when in ("before", "both")), ctypes.byref(out))
        for _ in range(1000): pass
      assert runs == [turn, *([turn + 1] if when == "nested" else []), -turn] and out.value == 10 * turn
      assert signal.getsignal(signal.SIGINT) is handler
      function(inner.address, turn, 0, ctypes.byref(out))  # all goes on
      assert out.value == turn
  finally: signal.signal(signal.SIGINT, before)


RAISES = """
declare void @PyErr_SetNone(ptr)
define i64 @f(ptr %error, ptr %function) {
  call void @PyErr_SetNone(ptr %error)
  %word = call i64 %function(i64 3)
  ret i64 %word
}
"""


@native
def test_an_exception_that_is_on_its_way_goes_on() -> None:
  """C calls from a destructor while Python unwinds."""
  function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_void_p)(compiled(RAISES))
  seen = list[int]()
  made = Plain(lambda x: seen.append(x), ctypes.c_int64, failed=-1)
  with pytest.raises(Bell): function(Bell, made.address)
  assert seen == [3]


THREADS = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
define ptr @run(ptr %function) {
  %a = call i64 %function(i64 1)
  %b = call i64 %function(i64 2)
  ret ptr null
}
define i64 @f(ptr %function, i64 %count) {
entry:
  %thread = alloca i64
  br label %top
top:
  %i = phi i64 [ 0, %entry ], [ %next, %top ]
  %made = call i32 @pthread_create(ptr %thread, ptr null, ptr @run, ptr %function)
  %t = load i64, ptr %thread
  %over = call i32 @pthread_join(i64 %t, ptr null)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %top, label %out
out:
  ret i64 %i
}
"""


def states() -> int:
  """How many threads Python has a state of."""
  api = ctypes.pythonapi
  for name in ("PyInterpreterState_Get", "PyInterpreterState_ThreadHead", "PyThreadState_Next"):
    getattr(api, name).restype = ctypes.c_void_p
  at, count = api.PyInterpreterState_ThreadHead(ctypes.c_void_p(api.PyInterpreterState_Get())), 0
  while at: count, at = count + 1, api.PyThreadState_Next(ctypes.c_void_p(at))
  return count


@native
def test_threads_of_c_keep_what_is_their_own_and_leave_nothing() -> None:
  """What a thread stores is there at its next call, and gone with the thread."""
  function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(compiled(THREADS))
  own, rows, living = threading.local(), list[bool](), list[int]()

  class Thing:
    def __init__(self) -> None: living.append(1)
    def __del__(self) -> None: living.pop()

  def body(x: int) -> None:
    rows.append(hasattr(own, "thing"))
    if x == 1: own.thing = Thing()
  made, before = Plain(body, ctypes.c_int64, failed=-1), states()
  function(made.address, 10_000)
  assert rows == [False, True] * 10_000
  assert states() == before and not living


LATE = """
declare void @_exit(i32)
define i64 @f(i32 %status, ptr %given) {
  %one = load ptr, ptr %given
  %other.at = getelementptr ptr, ptr %given, i64 1
  %other = load ptr, ptr %other.at
  %text.at = getelementptr ptr, ptr %given, i64 2
  %text = load ptr, ptr %text.at
  %room = alloca ptr
  %a = call i64 %one(i64 0, ptr null)
  %b = call i64 %other(i64 0, ptr %room)
  %c = call i64 %other(i64 0, ptr null)
  %found = load ptr, ptr %room
  %right = icmp eq ptr %found, %text
  %d = zext i1 %right to i64
  %e = mul i64 %a, 2
  %f = add i64 %e, %b
  %g = add i64 %f, %c
  %h = add i64 %g, %d
  %code = trunc i64 %h to i32
  call void @_exit(i32 %code)
  ret i64 0
}
"""


@native
def test_functions_answer_when_python_has_ended() -> None:
  """What a process does at its exit calls them: a code, and a text where they give texts."""
  code = """
import ctypes
from tests.core.test_called import LATE, compiled, kept
from tinyhw.core.called import Called
late, text = compiled(LATE), ctypes.create_string_buffer(b"words")
rows = [Called(lambda block: 1, 2, 33), Called(lambda block: 1, 2, 0, ctypes.addressof(text))]
given = (ctypes.c_void_p * 3)(*(row.address for row in rows), ctypes.addressof(text))
for one in (kept, text, rows, given): ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
assert [kind(row.address)(0, None) for row in rows] == [1, 1]
ctypes.CDLL(None).on_exit(ctypes.c_void_p(late), given)
"""
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
  assert (done.returncode, done.stderr) == (2 * 33 + 1, "")


@native
def test_a_place_is_used_again() -> None:
  places = {Called(lambda block: 1, 0).address for _ in range(3 * called._COUNT)}
  held = [Called(lambda block, k=k: k, 0) for k in range(3 * called._COUNT)]
  assert len({made.address for made in held}) == len(held) and len(places) <= called._COUNT + len(called._free)
  words = [ctypes.CFUNCTYPE(ctypes.c_int64)(made.address)() for made in held]
  assert words == [*range(3 * called._COUNT)]


PROTOTYPES = {"CFUNCTYPE", "PYFUNCTYPE", "WINFUNCTYPE"}


def _name(node: ast.AST) -> str:
  return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _made(tree: ast.Module) -> list[tuple[int, str]]:
  """Python functions that a module gives C by ctypes or cffi: line and form."""
  types = {t for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign)
           and isinstance(node.value, ast.Call) and _name(node.value.func) in PROTOTYPES
           for target in (node.targets if isinstance(node, ast.Assign) else [node.target]) for t in [_name(target)]}
  functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}

  def kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in PROTOTYPES or _name(node) in types
  found = []
  for node in ast.walk(tree):
    if isinstance(node, ast.FunctionDef) and any(map(kind, node.decorator_list)): found.append((node.lineno, node.name))
    if not isinstance(node, ast.Call): continue
    if _name(node.func) in {"callback", "def_extern"}: found.append((node.lineno, _name(node.func)))
    if not kind(node.func): continue
    for part in node.args:
      inner = {_name(n) for n in ast.walk(part) if isinstance(n, ast.Name | ast.Attribute)}
      if any(isinstance(n, ast.Lambda) for n in ast.walk(part)) or inner & functions:
        found.append((node.lineno, ast.unparse(part)))
  return found


def test_c_gets_python_functions_by_one_way_alone() -> None:
  """So that what holds above holds for all of them."""
  texts = {str(path.relative_to(ROOT)): path.read_text() for room in ("tinyhw", "mock", "emulator", "tools")
           for path in sorted((ROOT / room).rglob("*.py")) if not path.is_symlink() and "/autogen/" not in str(path)}
  words = {*PROTOTYPES, "callback", "def_extern"}
  found = [(path, *row) for path, text in texts.items() if any(word in text for word in words)
           for row in _made(ast.parse(text))]
  assert [(path, text) for path, _, text in found] == [("tinyhw/core/called.py", "run")]
  for text in ("f = CFUNCTYPE(None)(lambda: 0)", "K = ctypes.CFUNCTYPE(None)\nclass A:\n def m(s): return K(s.m)",
               "@ctypes.CFUNCTYPE(None)\ndef f(): pass", "ffi.callback('void()', f)"):
    assert _made(ast.parse(text)), text
