"""Commands and their small parts without a process of their own: options, mistakes, forms of output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.cli.test_transcripts import FOLDER
from tinyhw.cli import checks, launch, report, tinyhw
from tinyhw.cli.demo import Network, train
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.terminal import text as said

KERNELS = str(FOLDER / "kernels.o")


def run(*words: str, stdin: str | None = None, **environment: str | None) -> Result:
  return CliRunner(env={"DEV": None, "MOCKGPU": None, "EMU_CHECK": None} | environment).invoke(
    tinyhw, words, input=stdin
  )


def refused(*words: str, **environment: str | None) -> str:
  """The error of a command that must not go."""
  done = run(*words, **environment)
  assert isinstance(done.exception, Error), done.output
  return str(done.exception)


# ---- asm and disasm


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
  (tmp_path / "bytes").write_bytes(b"\xff\xfe\x80")
  (tmp_path / "good.s").write_text("s_endpgm\n")
  assert "nothing: cannot be read: No such file or directory" in refused("asm", "nothing")
  assert "cannot be read: 'utf-8'" in refused("asm", str(tmp_path / "bytes"))
  assert "cannot be written: No such file" in refused("asm", str(tmp_path / "good.s"), "-o", str(tmp_path / "no/file"))
  assert "nothing: cannot be read: No such file or directory" in refused("disasm", "nothing")
  assert f"{KERNELS}: has no code symbol 'fly'; it has add, turn, spill, roots" in refused(
    "disasm", KERNELS, "-k", "fly"
  )
  words = ("launch", KERNELS, "--kernel", "turn", "--block", "64", "--arg", "out:i32:64", "--debug", "--command")
  assert "cannot be read: No such file" in refused(*words, str(tmp_path / "no"))


def test_assembled_and_shown_again(tmp_path: Path) -> None:
  (tmp_path / "a.s").write_text("v_mov_b32_e32 v1, 0\ns_endpgm\n")
  assert run("asm", str(tmp_path / "a.s")).output == "8002027e\n0000b0bf\n"
  rows = json.loads(run("asm", str(tmp_path / "a.s"), "--json").output)
  assert rows == [{"text": "v_mov_b32_e32 v1, 0", "bytes": "8002027e"}, {"text": "s_endpgm", "bytes": "0000b0bf"}]
  out = tmp_path / "a.bin"
  assert run("asm", str(tmp_path / "a.s"), "--output", str(out)).output == ""
  assert out.read_bytes() == bytes.fromhex("8002027e0000b0bf")
  shown = run("disasm", str(out)).output.splitlines()
  assert [line.split() for line in shown] == [
    ["0:", "8002027e", "v_mov_b32_e32", "v1,", "0"],
    ["4:", "0000b0bf", "s_endpgm"],
  ]
  rows = json.loads(run("disasm", str(out), "--json").output)
  assert [(r["address"], r["bytes"], r["text"], r["symbol"]) for r in rows] == [
    (0, "8002027e", "v_mov_b32_e32 v1, 0", ""),
    (4, "0000b0bf", "s_endpgm", ""),
  ]
  lines = run("disasm", "-", stdin="8002027e\n\n0000b0bf\nffffffff\n").output.splitlines()
  assert lines == ["v_mov_b32_e32 v1, 0", "s_endpgm", "<unknown>"]
  assert "standard input, line 2" in str(run("disasm", "-", stdin="8002027e\nxyz\n").exception)
  (tmp_path / "odd").write_bytes(bytes.fromhex("8002027effffffff0000b0bf80"))
  assert [line.split()[1:3] for line in run("disasm", str(tmp_path / "odd")).output.splitlines()] == [
    ["8002027e", "v_mov_b32_e32"],
    ["ffffffff", "<unknown>"],
    ["0000b0bf", "s_endpgm"],
    ["80", "<unknown>"],
  ]


def test_one_kernel_of_an_object() -> None:
  rows = json.loads(run("disasm", KERNELS, "--kernel", "turn", "--json").output)
  assert (
    {r["symbol"] for r in rows} == {"turn"}
    and any(r["text"] == "s_endpgm" for r in rows)
    and rows[0]["address"] % 256 == 0
  )
  shown = run("disasm", KERNELS, "--kernel", "spill").output.splitlines()
  assert (
    shown[0].endswith(" <spill>:")
    and any(r.endswith("s_endpgm") for r in shown)
    and len(shown) == len(json.loads(run("disasm", KERNELS, "-k", "spill", "--json").output)) + 1
  )


# ---- launch


def test_a_plain_check_is_for_what_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
  def asked(value: str | None) -> str | None: return checks.names(None, None, value)  # type: ignore[arg-type]
  monkeypatch.delenv("EMU_CHECK", raising=False)
  assert asked(None) is None and asked("") == "" and asked("race, wait") == "race,wait"
  for given, wanted in (("", ""), ("1", ""), ("0", ""), ("report", ""), ("wait,race", "wait,race"),
                        ("report,wait", "wait")):
    monkeypatch.setenv("EMU_CHECK", given)
    assert asked("") == wanted and asked("bounds") == "bounds"
  monkeypatch.setenv("EMU_CHECK", "waits")
  with pytest.raises(InvalidArgument, match="EMU_CHECK: no check is called waits; there are"): asked("")


def test_small_parts_of_a_launch(tmp_path: Path) -> None:
  assert launch.parse_save("2=sum.npy") == (2, "sum.npy")
  for wrong in ("2", "x=a", "=a", "2="):
    with pytest.raises(InvalidArgument, match=f"--save {wrong}: is not N=FILE.npy"):
      launch.parse_save(wrong)
  assert [launch.form_of(Path(f"a{s}")) for s in (".html", ".HTM", ".json", ".txt", "")] == [
    "html",
    "html",
    "json",
    "text",
    "text",
  ]
  launch.on_emulator(None, "--debug")
  launch.on_emulator("emu", "--debug")
  with pytest.raises(InvalidArgument, match="--debug: runs on the emulator itself, not on AMD; leave --device out"):
    launch.on_emulator("AMD", "--debug")
  data = Path(KERNELS).read_bytes()
  with pytest.raises(InvalidArgument, match="has 4 kernels; choose with --kernel: add, turn, spill, roots"):
    launch.only_kernel(data, Path("k.o"))
  arrays: list[Any] = [np.arange(3, dtype=np.float32)]
  launch.save_buffers(arrays, [(0, str(tmp_path / "a.npy"))])
  assert (np.load(tmp_path / "a.npy") == arrays[0]).all()
  with pytest.raises(InvalidArgument, match="--save 1=b: there are 1 buffers"):
    launch.save_buffers(arrays, [(1, "b")])
  assert launch.plain(arrays) == [{"dtype": "float32", "shape": (3,), "data": [0.0, 1.0, 2.0]}]


def test_a_launch_without_a_card_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
  exists = Path.exists
  monkeypatch.setattr(Path, "exists", lambda self: False if str(self) == "/dev/kfd" else exists(self))
  text = refused("launch", KERNELS, "--kernel", "turn", "--block", "64", "--arg", "out:i32:64", "--device", "AMD")
  assert "MOCKGPU=1" in text and "EMU" in text


# ---- the debugger's words


@pytest.mark.parametrize(
  ("words", "wanted"),
  [
    ("add+4 wave 3 if s4 > 1", ("add+4", {"wave": 3}, "s4 > 1")),
    ("add", ("add", {}, None)),
    ("", ("", {}, None)),
    ("x workgroup 0x10 lane 5 ignore 2", ("x", {"workgroup": 16, "lane": 5, "ignore": 2}, None)),
    (" if v0 ", ("", {}, "v0")),
  ],
)
def test_limits(words: str, wanted: Any) -> None:
  assert said.parse_limits(words) == wanted


@pytest.mark.parametrize(
  ("words", "wanted"),
  [
    ("v0 v4-v7", ["v0", "v4", "v5", "v6", "v7"]),
    ("s2-3,VCC", ["s2", "s3", "vcc"]),
    ("a1-a1", ["a1"]),
    ("", []),
    ("v508-v700", ["v508", "v509", "v510", "v511"]),
    ("s3-v5", ["s3-v5"]),
  ],
)
def test_names_of_registers(words: str, wanted: list[str]) -> None:
  assert said.parse_names(words) == wanted


def test_numbers_in_formats() -> None:
  one = said.convert
  assert one(0x3F800000, "f") == 1.0 and one(0x3C00, "h") == 1.0 and one(0xFFFFFFFF, "d") == -1 and one(-1, "d") == -1
  assert one(1.5, "d") == 1.5 and one(7, "x") == 7 and one(1 << 40, "g") == 1 << 40 and one(3, "") == 3
  assert [
    said.number_text(v, f) for v, f in ((10, "x"), (10, "b"), (10, "g"), (1.5, "f"), (1.5, "x"), (7, "d"), (7, "u"))
  ] == ["0000000a", "0a", "000000000000000a", "1.5", "1.5", "7", "7"]
  assert [said.span(v) for v in ([3, 1, 2], [5], [1000, 1000], [1, 2000])] == ["1 to 3", "5", "1,000", "1 to 2,000"]
  assert said.count("") == 1 and said.count("0x10") == 16 and said.whole("-3") == -3
  for wrong, text in (("0", "0 times is not at least once"), ("-1", "-1 times"), ("x", "'x' is no whole number")):
    with pytest.raises(InvalidArgument, match=text):
      said.count(wrong)
  assert said.format_of("/f v3", "x") == ("f", "v3") and said.format_of("v3", "x") == ("x", "v3")
  assert said.format_of("", "") == ("", "")
  with pytest.raises(InvalidArgument, match="no format /q"):
    said.format_of("/q v3", "x")
  with pytest.raises(InvalidArgument, match="no type is called 'i9'"):
    said.kinds("i9")
  with pytest.raises(InvalidArgument, match="ADDRESS is missing; see help"):
    said.need("", "ADDRESS")
  words = np.array([0x3F800000, 0xFFFFFFFF, 0x3C00], np.uint32)
  assert said.typed(words, "f")[0] == 1 and said.typed(words, "d")[1] == -1 and said.typed(words, "h")[2] == 1
  assert said.typed(words, "b").tolist() == [0, 255, 0]


# ---- the report's parts, the demo


def test_bars_and_columns() -> None:
  assert [report.bar(x, 4) for x in (0, 1, 0.5, 2, -1, 1 / 32, 3 / 32)] == ["", "████", "██", "████", "", "▏", "▍"]
  made = report.table("a", ">b")
  assert [c.justify for c in made.columns] == ["left", "right"] and all(c.no_wrap for c in made.columns)
  assert made.show_header and not report.table("", "").show_header


def test_the_demo_learns_and_starts_alike() -> None:
  run = train("PYTHON", 6, 256)
  assert run.losses[-1] < run.losses[0] * 0.97 and 0.2 < run.accuracy <= 1 and len(run.seconds) == 6
  weights = [Network("PYTHON").w1.numpy() for _ in range(2)]
  assert (weights[0] == weights[1]).all() and abs(weights[0]).max() <= 64**-0.5


def test_the_generators_have_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
  import tinyhw.tools.gen as gen

  given: list[list[str]] = []
  monkeypatch.setattr(gen, "main", lambda words: given.append(words) or 3)
  assert run("gen", "check", "--source", "x").exit_code == 3 and given == [["check", "--source", "x"]]


def test_the_ledger_as_a_table() -> None:
  rows = run("ledger", "--arch", "gfx1100", "--match", "v_rcp_f32", COLUMNS="150").output.splitlines()
  (row,) = [r.split() for r in rows if "v_rcp_f32" in r]
  assert row[:4] == ["gfx1100", "v_rcp_f32", "within", "1"] and "-" not in row[1:3]
  rows = run("ledger", COLUMNS="150").output.splitlines()
  heads = (
    "compute instructions",
    "in AMD's manual",
    "with a meaning",
    "exact",
    "within its ULP",
    "approximate",
    "no effect",
    "run beside a witness",
    "encodings",
    "text is not LLVM 19's",
  )
  for head in heads:
    (row,) = [r for r in rows if r.strip().startswith(head)]
    assert sum(c.isdigit() for c in row.replace(",", "").removeprefix(head)) >= 3, row


def test_the_ledger_shows_what_it_knows_and_a_dash_for_what_it_does_not() -> None:
  from tinyhw.tools.ledger import ledger

  for entry in ledger.entries("gfx1100"):
    if entry.section and entry.witnesses and entry.mnemonic == "v_add_f32":
      break
  rows = run("ledger", "--arch", "gfx1100", "--match", "v_add_f32", COLUMNS="200").output.splitlines()
  row = next(r for r in rows if " v_add_f32 " in r)
  assert f" {entry.section} " in row and entry.witnesses[0] in row
  bare = next(e for e in ledger.entries("gfx1100") if not e.witnesses)
  rows = run("ledger", "--arch", "gfx1100", "--match", bare.mnemonic, COLUMNS="200").output.splitlines()
  assert next(r for r in rows if f" {bare.mnemonic} " in r).rstrip().endswith(" -")
