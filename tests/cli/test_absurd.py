"""Commands and readers of files given what nobody means: a result, or one clear line, and never a traceback."""
from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import command
from tests.strength import THOROUGH, examples, seeds
from tinyhw import Device
from tinyhw.cli import LONGEST, main
from tinyhw.cli.files import load
from tinyhw.core.environment import count, real, whole
from tinyhw.core.errors import InvalidArgument

BIG = "9" * 5000
COMMAND = [sys.executable, "-c", "from tinyhw.cli import main; main()"]
NUMBERS = ["0", "1", "-1", "64", "2147483648", "4294967296", "99999999999999", "18446744073709551616", BIG, "1e400",
           "nan", "inf", "0x10", "1_0", "\u0663", "\u00bd", "", "x", "1,2", "1,2,3,4", ",", "1.5", " 1", "0" * 5000]
TEXTS = ["", "x", "add", "a" * 5000, "\udcff", "ä", "-", "--", "\n", "%s", "[red]", "/dev/null", "folder", "none", "."]
FILES = ["add.o", "add.o", "k.ptx", "a.npy", "empty", "folder", "none", "noise", "bad.npy", "n\udcff.o", ""]
TYPES = ["f32", "i32", "u8", "f64", "f16", "zz", ""]
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p) { .reg .b64 %a<2>; ld.param.u64 %a1, [p]; st.global.u32 [%a1], 7; ret; }
"""


@pytest.fixture
def folder(tmp_path: Path, add_kernel: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
  monkeypatch.chdir(tmp_path)
  for name in ("add.o", "n\udcff.o"): (tmp_path / name).write_bytes(add_kernel)
  np.save(tmp_path / "a.npy", np.arange(64, dtype=np.float32))
  np.save(tmp_path / "odd.npy", np.zeros((0, 3), [("a", "f4")]))
  (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\0\xff\xff{")
  (tmp_path / "noise").write_bytes(random.Random(1).randbytes(64))
  (tmp_path / "empty").write_bytes(b"")
  (tmp_path / "k.ptx").write_text(PTX)
  (tmp_path / "folder").mkdir()
  return tmp_path


def words(r: random.Random) -> list[str]:
  """A command line."""
  def number() -> str: return r.choice(NUMBERS)
  def text() -> str: return r.choice(TEXTS)
  def argument() -> str:
    kinds = (f"out:{r.choice(TYPES)}:{number()}", f"{number()}:{r.choice(TYPES)}", number(), "null", text(),
             r.choice(["a.npy", "odd.npy", "bad.npy", "none.npy", ".npy", "\udcff.npy"]), "out:f32:64")
    return r.choice(kinds)
  def device() -> str: return r.choice(["EMU", "LLVM", "emu:0", f"EMU:{number()}", "DISK:x", "(LLVM,PYTHON)", text()])
  def out() -> str: return r.choice(["out.npy", "/nonexistent/x.npy", "folder", "/dev/full", "r\udcff.html", ""])
  options = {
    "launch": {"--kernel": text, "--grid": number, "--block": number, "--cluster": number, "--shared": number,
               "--timeout": number, "--save": lambda: f"{number()}={out()}", "--option": text, "--report-file": out,
               "--command": text, "--device": device},
    "asm": {"--arch": text, "--output": out}, "disasm": {"--arch": text, "--kernel": text}}
  verb = r.choice(["launch"] * 4 + ["asm", "disasm"])
  found = [verb, r.choice(FILES)]
  for name, value in options[verb].items():
    if r.random() < 0.25: found += [f"{name}={value()}"]
  found += [flag for flag in ("--json", "--report", "--check", "--debug") if r.random() < 0.1]
  if verb != "launch": return found
  if r.random() < 0.5: return [*found, "--block=64", "--arg=out:f32:64", "--arg=a.npy", "--arg=0.5"]
  return [*found, *(f"--arg={argument()}" for _ in range(r.randrange(4)))]


@pytest.mark.parametrize("seed", seeds(range(4)))
def test_any_command_line_is_done_or_refused_in_a_line(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                                      seed: int) -> None:
  r = random.Random(seed)
  monkeypatch.setenv("DEV", "EMU")
  for _ in range(examples(40)):
    line = words(r)
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    error = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    given = io.TextIOWrapper(io.BytesIO(r.choice([b"", b"\xff\xfe\n", b"quit\n", BIG.encode()])), "utf-8")
    with monkeypatch.context() as m:
      for name, value in (("argv", ["tinyhw", *line]), ("stdout", out), ("stderr", error), ("stdin", given)):
        m.setattr(sys, name, value)
      try: main()
      except SystemExit as end: status = end.code
      else: status = 0
    Device.close()
    told = error.buffer.getvalue().decode()  # type: ignore[attr-defined]
    first = told.partition("\n")[0]
    assert status in (0, 1, 2) and "Traceback" not in told, (line, told)
    assert len(first) <= LONGEST + 100, line
    if status == 1: assert "tinyhw: " in told or "--check" in line or "--debug" in line, (line, told)
    if status == 2: assert "Error: " in told, (line, told)


@pytest.mark.parametrize(("line", "what"), [
  (["--arg=out:f32:99999999999999"], "more than this machine has memory"),
  ([f"--arg=out:f32:{BIG}"], "is not out:TYPE"),
  ([f"--arg={BIG}"], "a number of 5,000 letters"), ([f"--grid={BIG}"], "5,000 letters"),
  (["--grid=\u0663"], "is not X, X,Y or X,Y,Z"), ([f"--save={BIG}=x.npy"], "a number of 5,000 letters"),
  (["--device=EMU:" + "9" * 30], "has no number after the colon")])
def test_sizes_that_there_are_not(folder: Path, line: list[str], what: str) -> None:
  done = command.tinyhw("launch", "add.o", "--device=EMU", *line, timeout=60)
  told = done.stderr.splitlines()
  assert done.returncode == 1 and len(told) == 1 and told[0].startswith("tinyhw: ") and what in told[0]


STREAMS = (">&-", "2>&-", "<&-", ">/dev/full", "| head -c 1", "2>/dev/full >/dev/full")
VERBS = ("disasm add.o", "asm -", "asm - --json")


@pytest.mark.parametrize(("verb", "streams"), [(VERBS[n], streams) for k, streams in enumerate(STREAMS)
                                               for n in (range(3) if THOROUGH else [k % 3])])
def test_streams_that_are_closed_or_full(folder: Path, verb: str, streams: str) -> None:
  line = f"{sys.executable} -c {COMMAND[2]!r} {verb} {streams}"
  for unbuffered in ("", "1") if "full" in streams else ("",):  # each write by itself, or all when Python ends
    done = subprocess.run(["bash", "-c", line], input="s_endpgm\n", capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr in ("", "tinyhw: standard output: No space left on device\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_names_and_letters_that_the_terminal_has_not(folder: Path, encoding: str) -> None:
  env = os.environ | {"PYTHONIOENCODING": encoding}
  lines = (["disasm", "n\udcff.o", "--kernel", "ä"], ["launch", "none\udcff"], ["launch", "add.o", "--device=EMU",
           "--block=64", "--arg=out:f32:64", "--arg=a.npy", "--arg=0.5", "--report"])
  for line in lines if THOROUGH or encoding == "ascii" else lines[:1]:  # the others have what ASCII has
    done = subprocess.run([*COMMAND, *line], env=env, capture_output=True, timeout=60)
    assert b"Traceback" not in done.stderr, done.stderr
    assert done.returncode == {"disasm": 1}.get(line[0], 2 if len(line) == 2 else 0)


HEADS = ["(" * 3000, "{", "", "\0", "x" * 20000, "[]", "-" * 3000 + "1", f"{{'descr': {BIG}}}",
         *(f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}" for kind, order, shape in (
           ("'<f4'", "False", "(-1,)"), ("'<f4'", "False", f"({BIG},)"), ("'<f4'", "False", "(9223372036854775807,)"),
           ("'<f4'", "False", "(4294967296, 4294967296)"), ("'<f4'", "False", "(3,)"), ("'<f4'", "None", "(2,)"),
           ("'|O'", "False", "(2,)"), ("'<U999999999'", "False", "(2,)"), ("[1]", "False", "(2,)"),
           ("'<f4'", "False", "2"), ("'<f4'", "False", "(1.5,)"), ("'<f4'", "False", "(True,)"),
           ("'<f4'", "False", "(1,) * 70"), ("'<f4'", "False", "(" + "1, " * 70 + ")"),
           ("'<f4'", "False", "(0, 4611686018427387903, 4611686018427387903)")))]


@pytest.mark.parametrize("head", range(len(HEADS)))
@pytest.mark.parametrize("version", [1, 2, 3, 9])
def test_an_array_is_in_its_file_or_refused(tmp_path: Path, head: int, version: int) -> None:
  text = HEADS[head].encode() + b"\n"
  size = min(len(text), 65535).to_bytes(2 if version == 1 else 4, "little")
  (tmp_path / "a.npy").write_bytes(b"\x93NUMPY" + bytes([version, 0]) + size + text + bytes(8))
  with pytest.raises(InvalidArgument, match="^here: (is no .npy file|is damaged|holds objects|cannot be read)"):
    load(tmp_path / "a.npy", "here")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x93NUMP", b"\x80\x04N.", b"text"])
def test_another_file_is_no_array(tmp_path: Path, data: bytes) -> None:
  (tmp_path / "a.npy").write_bytes(data)
  with pytest.raises(InvalidArgument, match="is no .npy file"): load(tmp_path / "a.npy", "here")
  for path, what in (("none", "No such file"), (".", "Is a directory"), ("a\0b", "null byte")):
    with pytest.raises(InvalidArgument, match=f"here: cannot be read: .*{what}"):
      load(os.path.join(tmp_path, path), "here")


@pytest.mark.parametrize("array", [np.arange(6, dtype=np.float32).reshape(2, 3), np.asfortranarray(np.eye(3)[:, :2]),
                                   np.float64(1.5), np.zeros((0, 3), np.int8), np.zeros(2, [("ä\u0663", "<i4")]),
                                   np.arange(4, dtype=">i2"), np.zeros(3, np.dtype("S0"))])
def test_arrays_come_back(tmp_path: Path, array: np.ndarray) -> None:
  np.save(tmp_path / "a.npy", array)
  found = load(tmp_path / "a.npy", "here")
  assert found.shape == array.shape and found.dtype.itemsize == array.dtype.itemsize and found.flags.writeable
  assert found.tobytes() == np.asarray(array).tobytes()


def test_a_count_is_a_few_digits() -> None:
  assert [count(t) for t in ("0", "007", "9" * 18)] == [0, 7, 10**18 - 1]
  others = ("", "-1", "+1", " 1", "1 ", "1_0", "0x1", "1.0", "\u0663", "\u00b2", "9" * 19, BIG)
  assert {count(t) for t in others} == {None}


OTHER_SCRIPTS = ["\u0663", "\uff13", "\u0967", "1\u0663", "0x\u0663", "-\uff13", "\uff13.5"]


@pytest.mark.parametrize("text", OTHER_SCRIPTS)
def test_no_number_has_digits_of_other_scripts(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
  assert count(text) is None and whole(text) is None and real(text) is None
  launch = ["launch", "add.o", "--device=EMU"]
  lines = [[*launch, f"--{option}={value}"] for option, value in (
    ("arg", text), ("arg", f"{text}:i32"), ("arg", f"{text}:f32"), ("arg", f"out:f32:{text}"), ("grid", f"{text},1,1"),
    ("block", f"1,{text}"), ("shared", text), ("timeout", text), ("save", f"{text}=x.npy"))]
  lines += [["replay", "none", f"--{option}={text}"] for option in ("until", "loop", "settle")]
  lines += [["demo", f"--steps={text}"], ["demo", f"--batch={text}"]]
  for line in lines:
    with pytest.MonkeyPatch.context() as m, pytest.raises(SystemExit) as end:
      m.setattr(sys, "argv", ["tinyhw", *line])
      main()
    told = capsys.readouterr().err
    assert end.value.code in (1, 2) and "Traceback" not in told and text in told, (line, told)


def test_numbers_are_those_of_people() -> None:
  assert [whole(t) for t in ("7", "-7", "0x1f", "0b11", " 5 ", "007", BIG, "1.5", "")] == [
    7, -7, 31, 3, 5, None, None, None, None]
  assert [real(t) for t in ("0.5", "1e3", "-2", "x", BIG)] == [0.5, 1000.0, -2.0, None, None]
