"""What kernels print: where strings and arguments may lie, what the call gives back, the buffer, how long it takes."""
from __future__ import annotations

import io
import itertools
import sys
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.ptx.test_seldom import HEAD, run
from tinyhw.core import printf
from tinyhw.core import timeout as patience
from tinyhw.core.errors import MachineFault, PageFault, WaitTimeout
from tinyhw.core.printf import PrintfWarning

pytestmark = pytest.mark.left("call", r"st\.", "ld", "mov", "vprintf")
PRINTF = ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"


@pytest.fixture(params=["ref", "jit", "both"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", request.param)


def text_of(name: str, text: str) -> str:
  """A string as a variable."""
  data = text.encode() + b"\0"
  return f".global .align 8 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};\n"


@pytest.mark.parametrize("space", ["global", "shared", "local", "const", "dynamic"])
def test_strings_and_arguments_of_each_space(space: str, capsys: pytest.CaptureFixture[str]) -> None:
  """At generic addresses of it; also the format itself."""
  outer = PRINTF + text_of("format", "%s:%d;")
  place = {"global": "mov.u64 %l1, mine;", "const": "mov.u64 %l1, format; cvta.const.u64 %l1, %l1;",
           "dynamic": "mov.u64 %l1, mine; cvta.shared.u64 %l1, %l1;"}.get(
             space, f".{space} .align 8 .b8 mine[48]; mov.u64 %l1, mine; cvta.{space}.u64 %l1, %l1;")
  if space == "const": outer = outer.replace(".global .align 8 .b8 format", ".const .align 8 .b8 format")
  if space == "global": outer += ".global .align 8 .b8 mine[48];\n"
  if space == "dynamic": outer += ".extern .shared .align 8 .b8 mine[];\n"
  body = f"""{place} .reg .b64 %f; .local .align 8 .b8 given[16]; .reg .b64 %g; mov.u64 %g, given;
    cvta.local.u64 %g, %g; """
  if space == "const": body += "mov.u64 %f, %l1; st.u64 [%g], %l1; st.u32 [%g+8], %t;"
  else:  # "hi" and the format "%s,%d|" at 16, arguments at 32
    body += "st.u8 [%l1+1], 104; st.u8 [%l1+2], 105; st.u8 [%l1+3], 0; "
    body += "".join(f"st.u8 [%l1+{16 + k}], {byte}; " for k, byte in enumerate(b"%s,%d|\0"))
    body += "add.u64 %l2, %l1, 1; st.u64 [%l1+32], %l2; st.u32 [%l1+40], 7; add.u64 %f, %l1, 16; add.u64 %g, %l1, 32;"
  body += "setp.ne.u32 %p1, %t, 1; @%p1 bra E; { .param .b32 r; call.uni (r), vprintf, (%f, %g); } E:"
  run(body, outer=outer, threads=2, shared=64)
  assert capsys.readouterr().out == ("%s:%d;:1;" if space == "const" else "hi,7|")


@pytest.mark.parametrize(("at", "error", "match"), [
  ("mov.u64 %l1, 0x123456789000;", PageFault, "read of 1 bytes at 0x123456789000"),
  (".param .b32 q; .local .align 8 .b8 mine[24]; mov.u64 %l1, mine; cvta.local.u64 %l1, %l1; " + " ".join(
    f"st.u64 [%l1+{k}], -1;" for k in (0, 8, 16)) + " call (q), vprintf, (%l1, %o);",
   MachineFault, "read of 1 bytes at 0x20 of local memory, which has 32 bytes"),
  (".shared .align 8 .b8 mine[16]; mov.u64 %l1, mine; cvta.shared.u64 %l1, %l1; st.u64 [%l1], -1; st.u64 [%l1+8], -1;",
   MachineFault, "read of 1 bytes at 0x10 of shared memory, which has 16 bytes")])
def test_strings_without_an_end(at: str, error: type[Exception], match: str) -> None:
  """They are read as far as there is memory."""
  body = f"{at} {{ .param .b32 r; call.uni (r), vprintf, (%l1, %o); }}" if "call" not in at else at
  with pytest.raises(error, match=match): run(body, outer=PRINTF, threads=1)


@pytest.mark.parametrize(("form", "wanted"), [("plain", 0), ("%%", 0), ("%d", 1), ("%d %f%s", 3), ("%*.*d", 3),
                                              ("%d" * 40, 32), ("%n", 0)])
def test_what_the_call_gives_back(form: str, wanted: int, capsys: pytest.CaptureFixture[str]) -> None:
  """How many arguments the format has; into memory, and into a register."""
  params = "mov.u64 %l1, format; .local .align 8 .b8 given[400]; mov.u64 %l2, given; cvta.local.u64 %l2, %l2;"
  for outer, call in ((PRINTF, "{ .param .b32 r; call.uni (r), vprintf, (%l1, %l2); ld.param.b32 %r1, [r]; }"),
                      (".extern .func (.reg .b32 r) vprintf (.reg .b64 f, .reg .b64 a);\n",
                       "mov.u32 %r1, 99; call.uni (%r1), vprintf, (%l1, %l2);")):
    out = run(f"{params} {call} st.global.u32 [%o], %r1;", outer=outer + text_of("format", form), threads=33)
    assert out[:, 0].tolist() == [wanted] * 33
  capsys.readouterr()


def test_no_format_and_what_fits_no_buffer(monkeypatch: pytest.MonkeyPatch,
                                           capsys: pytest.CaptureFixture[str]) -> None:
  """-1 and -2."""
  monkeypatch.setattr(printf.Printed.__init__, "__defaults__", (64,))
  body = """mov.u64 %l1, 0; setp.eq.u32 %p1, %t, 0; mov.u64 %l2, format; selp.b64 %l1, %l1, %l2, %p1; mov.u64 %l3, long;
    st.global.u64 [%b+1024], %l3; add.u64 %l4, %b, 1024; membar.gl; bar.sync 0;
    { .param .b32 r; call.uni (r), vprintf, (%l1, %l4); ld.param.b32 %r1, [r]; } st.global.u32 [%o], %r1;"""
  outer = PRINTF + text_of("format", "%s") + text_of("long", "x" * 60)
  with pytest.warns(PrintfWarning, match="buffer of 64 bytes holds: 1 outputs are lost"):
    out = run(body, outer=outer, threads=2, size=256)
  assert out[:, 0].view(np.int32).tolist() == [-1, -2] and not capsys.readouterr().out


@pytest.mark.parametrize("engine", ["both"], indirect=True)  # each in turn, and compared
def test_the_buffer_holds_so_many(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
  """What is oldest is lost, and it is said. There is 1 MiB, of which the test has a sixteenth."""
  assert printf.Printed.__init__.__defaults__ == (1 << 20,)
  monkeypatch.setattr(printf.Printed.__init__, "__defaults__", (1 << 16,))
  body = """mov.u64 %l1, format; mov.u32 %r2, 0; .local .align 8 .b8 given[8]; mov.u64 %l2, given;
    cvta.local.u64 %l2, %l2; L: mad.lo.u32 %r3, %r2, 1, 0; st.u32 [%l2], %r3;
    { .param .b32 r; call.uni (r), vprintf, (%l1, %l2); }
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 88; @%p1 bra L;"""
  with pytest.warns(PrintfWarning, match="65,536 bytes holds: 86 outputs are lost, the oldest") as told:
    run(body, outer=PRINTF + text_of("format", "%d,"), threads=32)
  each = (1 << 16) // (printf.HEADER + 8)
  printed = capsys.readouterr().out.split(",")[:-1]
  assert len(printed) == each == 88 * 32 - 86 and printed[-1] == "87" and len(told) == 1


class Slow(io.StringIO):
  """A stream for which an hour is over after some pieces."""

  def __init__(self, over: Any) -> None:
    super().__init__()
    self.over, self.pieces = over, itertools.count(1)

  def write(self, text: str) -> int:
    if next(self.pieces) == 50: self.over()
    return len(text)


def test_endless_output_heeds_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
  """What a warp prints with a width of 999,999 is written in pieces, between which the launch may end."""
  now = [0.0]
  monkeypatch.setattr(patience.time, "monotonic", lambda: now[0])
  monkeypatch.setattr(sys, "stdout", slow := Slow(lambda: now.__setitem__(0, 3600.0)))
  text = f"""{HEAD}{PRINTF}{text_of("format", "%999999d")}.visible .entry k (.param .u64 out) {{ .reg .b64 %l<3>;
    ld.param.u64 %l1, [out]; mov.u64 %l2, format; {{ .param .b32 r; call.uni (r), vprintf, (%l2, %l1); }} ret; }}"""
  with pytest.raises(WaitTimeout, match="kernel k"):
    tinyhw.launch(text, "k", 1, 32, [np.zeros(4, np.int32)], "EMU", timeout=60)
  assert next(slow.pieces) < 60
