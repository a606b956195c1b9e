"""Launches of host kernels that are done again and again, as one call of native code.

A table in memory says what to launch with what: functions, and for each argument its place among some 64-bit words.
`batch` makes a builtin function of Python's, whose few lines LLVM has compiled: it takes new values for the words that
change from call to call, lets go of the interpreter's lock, fills in the arguments and launches one after another,
those in stretches by the threads of the pool. So a launch costs its kernel and nothing of Python.

Who calls it sees to it that no two threads do so at one time. Of Python it uses what the stable ABI has.
"""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

MOST: Final = 16  # arguments of a launch that is one call
_FASTCALL: Final = 0x80  # METH_FASTCALL of CPython's methodobject.h: of the stable ABI since 3.10
_HEAD, _ROW = 5, 7  # words of a table, and of a launch's row before the places of its arguments

def _plain() -> str:
  """Calls of kernels that take their arguments as such, by how many they are."""
  lines = [f"  switch i64 %n, label %next [{' '.join(f'i64 {n}, label %plain{n}' for n in range(1, MOST + 1))}]"]
  for n in range(1, MOST + 1):
    lines.append(f"plain{n}:")
    for k in range(n):
      lines += [f"  %p{n}.{k} = getelementptr i64, ptr %block, i64 {k}", f"  %a{n}.{k} = load i64, ptr %p{n}.{k}"]
    lines += [f"  call void %f({', '.join(f'i64 %a{n}.{k}' for k in range(n))})", "  br label %next"]
  return "\n".join(lines)


def source() -> str:
  """The functions' text. A table: where the words are, which of them change, how many do, how many launches, the pool;
  then a row for each launch: the kernel, how many arguments, where they are filled in, how many stretches (0: it has
  none), how many in a piece (0: all, in this thread), scratch memory, its bytes for a thread, the arguments' places."""
  word = "  %{0} = getelementptr i64, ptr %{1}, i64 {2}\n  %{3} = load {4}, ptr %{0}".format
  head = "\n".join([word("h0", "table", 0, "words", "ptr"), word("h3", "table", 3, "count", "i64"),
                    word("h4", "table", 4, "pool", "ptr")])
  row = "\n".join([
    word("r0", "row", 0, "f", "ptr"), word("r1", "row", 1, "n", "i64"), word("r2", "row", 2, "block", "ptr"),
    word("r3", "row", 3, "total", "i64"), word("r4", "row", 4, "piece", "i64"), word("r5", "row", 5, "scratch", "ptr"),
    word("r6", "row", 6, "stride", "i64"), f"  %places = getelementptr i64, ptr %row, i64 {_ROW}"])
  return f"""
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLong(i64)
declare ptr @PyErr_Occurred()
declare void @PyErr_BadArgument()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define internal void @launch(ptr %table) {{
entry:
{head}
  %first = getelementptr i64, ptr %table, i64 {_HEAD}
  %run = load ptr, ptr %pool
  %threads = getelementptr i64, ptr %pool, i64 1
  %memory = load ptr, ptr %threads
  br label %launches
launches:
  %row = phi ptr [ %first, %entry ], [ %after, %next ]
  %done = phi i64 [ 0, %entry ], [ %done1, %next ]
  %some = icmp slt i64 %done, %count
  br i1 %some, label %one, label %over
one:
{row}
  br label %fill
fill:
  %i = phi i64 [ 0, %one ], [ %i1, %filled ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %filled, label %full
filled:
  %pp = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %pp
  %pw = getelementptr i64, ptr %words, i64 %place
  %w = load i64, ptr %pw
  %pb = getelementptr i64, ptr %block, i64 %i
  store i64 %w, ptr %pb
  %i1 = add i64 %i, 1
  br label %fill
full:
  %stretches = icmp sgt i64 %total, 0
  br i1 %stretches, label %shared, label %plain
shared:
  %all = trunc i64 %total to i32
  %size = trunc i64 %piece to i32
  %asks = icmp sgt i64 %piece, 0
  br i1 %asks, label %ask, label %alone
ask:
  %ran = call i32 %run(ptr %memory, ptr %f, ptr %block, i32 %all, i32 %size, ptr %scratch, i64 %stride)
  %did = icmp ne i32 %ran, 0
  br i1 %did, label %next, label %alone
alone:
  call void %f(ptr %block, i32 0, i32 %all, ptr %scratch)
  br label %next
plain:
{_plain()}
next:
  %after = getelementptr i64, ptr %places, i64 %n
  %done1 = add i64 %done, 1
  br label %launches
over:
  ret void
}}

define ptr @call(ptr %self, ptr %given, i64 %n) {{
entry:
  %table = call ptr @PyLong_AsVoidPtr(ptr %self)
{word("h0", "table", 0, "words", "ptr")}
{word("h1", "table", 1, "changing", "ptr")}
{word("h2", "table", 2, "wanted", "i64")}
  %right = icmp eq i64 %n, %wanted
  br i1 %right, label %take, label %wrong
wrong:
  call void @PyErr_BadArgument()
  ret ptr null
take:
  %i = phi i64 [ 0, %entry ], [ %i1, %put ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %number, label %go
number:
  %pg = getelementptr ptr, ptr %given, i64 %i
  %g = load ptr, ptr %pg
  %v = call i64 @PyLong_AsLongLong(ptr %g)
  %doubtful = icmp eq i64 %v, -1
  br i1 %doubtful, label %ask, label %put
ask:
  %error = call ptr @PyErr_Occurred()
  %bad = icmp ne ptr %error, null
  br i1 %bad, label %failed, label %put
failed:
  ret ptr null
put:
  %pc = getelementptr i64, ptr %changing, i64 %i
  %place = load i64, ptr %pc
  %pw = getelementptr i64, ptr %words, i64 %place
  store i64 %v, ptr %pw
  %i1 = add i64 %i, 1
  br label %take
go:
  %state = call ptr @PyEval_SaveThread()
  call void @launch(ptr %table)
  call void @PyEval_RestoreThread(ptr %state)
  %result = call ptr @PyLong_FromLong(i64 0)
  ret ptr %result
}}
"""


class _Method(ctypes.Structure):
  """PyMethodDef."""
  _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
              ("doc", ctypes.c_char_p)]


@functools.cache
def _new_builtin() -> Any:
  """PyCFunction_NewEx."""
  made = ctypes.pythonapi.PyCFunction_NewEx
  made.restype, made.argtypes = ctypes.py_object, [ctypes.POINTER(_Method), ctypes.py_object, ctypes.py_object]
  return made


@dataclass(frozen=True)
class LaunchRow:
  """A launch: its kernel's address, and the words that are its arguments. One in stretches has a `total` of them;
  `piece` of them are taken at a time, by the threads of the pool, or all by this one (0). Scratch memory is at an
  address, `stride` bytes for a thread."""
  function: int
  words: tuple[int, ...]
  total: int = 0
  piece: int = 0
  scratch: int = 0
  stride: int = 0


def batch(code: int, rows: Sequence[LaunchRow], words: Sequence[int], changing: Sequence[int],
          pool: tuple[int, int] | None = None, keep: object = None) -> Callable[..., int]:
  """What launches the rows: a function that is given the words at the places `changing`, in that order, as integers.

  `code`: where `call` is; `pool`: where the pool's `run` is, and its memory. What the launches need lives as long as
  the function: its tables, and `keep`."""
  if any(len(r.words) > MOST and not r.total for r in rows): raise ValueError(f"a launch of more than {MOST} words")
  if not all(0 <= k < len(words) for k in (*changing, *(k for r in rows for k in r.words))):
    raise ValueError("an argument that is no word")
  def numbers(values: Sequence[int]) -> Any: return (ctypes.c_int64 * max(len(values), 1))(*values)
  inside, places, runs = numbers(words), numbers(changing), numbers(pool or (0, 0))
  blocks = [numbers(r.words) for r in rows]
  table = [*map(ctypes.addressof, (inside, places)), len(changing), len(rows), ctypes.addressof(runs)]
  for r, block in zip(rows, blocks):
    table += [r.function, len(r.words), ctypes.addressof(block), r.total, r.piece, r.scratch, r.stride, *r.words]
  memory = numbers(table)
  method = _Method(b"launch", code, _FASTCALL, None)
  # A builtin keeps its module, which is all this.
  kept = (method, memory, inside, places, runs, blocks, keep)
  made: Callable[..., int] = _new_builtin()(ctypes.byref(method), ctypes.addressof(memory), kept)
  return made
