"""The command line as a person and as a program use it."""
from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests import command
from tinyhw.cli import VERBS, tinyhw
from tinyhw.cli.bench import show_time
from tinyhw.cli.demo import load_digits
from tinyhw.cli.launch import parse_argument, parse_dims, parse_save
from tinyhw.core.errors import Error, InvalidArgument


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
  clean = {k: v for k, v in os.environ.items() if k not in ("DEV", "MOCKGPU")}
  return command.tinyhw(*words, env=clean | env)


@pytest.mark.parametrize("verb", [v for v in VERBS if v != "gen"])
def test_each_verb_teaches(verb: str) -> None:
  done = CliRunner().invoke(tinyhw, [verb, "--help"])
  assert done.exit_code == 0 and "Usage:" in done.output
  assert len(max(done.output.splitlines(), key=len)) <= 100


def test_help_lists_all_verbs_and_examples() -> None:
  done = CliRunner().invoke(tinyhw, ["--help"])
  assert all(v in done.output for v in VERBS) and "MOCKGPU=1" in done.output


def test_unknown_verb_and_errors_are_one_line() -> None:
  done = run("lunch")
  assert done.returncode == 2 and "lunch" in done.stderr
  done = run("bench", "nothing")
  assert done.returncode == 1 and done.stderr.startswith("tinyhw: no case is called nothing; there are matmul-python")
  assert len(done.stderr.splitlines()) == 1


def test_devices_as_json() -> None:
  done = run("devices", "--json", MOCKGPU="gfx1100,gfx1100")
  assert done.returncode == 0, done.stderr
  rows = {row["device"]: row for row in json.loads(done.stdout)}
  assert rows["LLVM"]["ready"] and rows["LLVM"]["default"] and rows["PYTHON"]["ready"]
  assert rows["AMD"]["ready"] and rows["AMD:1"]["ready"] and "gfx1100" in rows["AMD"]["detail"]
  assert not rows["NV"]["ready"]


@pytest.mark.skipif(os.path.exists("/dev/kfd"), reason="this machine has a card")
def test_devices_without_a_card_say_what_is_needed() -> None:
  done = run("devices", "--json")
  row = next(r for r in json.loads(done.stdout) if r["device"] == "AMD")
  assert not row["ready"] and "/dev/kfd" in row["detail"] and "MOCKGPU=1" in row["detail"]


def test_demo_trains_alike_on_all_devices() -> None:
  done = run("demo", "--steps", "3", "--batch", "32", "--json")
  assert done.returncode == 0, done.stderr
  report = json.loads(done.stdout)
  assert [r["device"] for r in report["runs"]] == ["LLVM", "PYTHON", "AMD"] and report["largest_difference"] < 1e-4
  assert all(len(r["losses"]) == 3 for r in report["runs"])
  assert any("DISPATCH_DIRECT" in line for line in report["runs"][2]["queue"])
  assert any("ACQUIRE_MEM" in line and "no caches are modelled" in line for line in report["runs"][2]["report"])


def test_launch_from_the_shell(tmp_path: Path, add_kernel: bytes) -> None:
  (tmp_path / "add.o").write_bytes(add_kernel)
  a = np.arange(64, dtype=np.float32)
  np.save(tmp_path / "a.npy", a)
  words = ("launch", str(tmp_path / "add.o"), "--kernel", "add", "--grid", "1", "--block", "64", "--arg", "out:f32:64",
           "--arg", str(tmp_path / "a.npy"), "--arg", "0.5:f32")
  done = run(*words, "--save", f"0={tmp_path / 'out.npy'}", MOCKGPU="1")
  assert done.returncode == 0, done.stderr
  assert "buffer 0: float32[64]" in done.stdout and (np.load(tmp_path / "out.npy") == a + 0.5).all()
  done = run(*words, "--json", MOCKGPU="1")
  assert json.loads(done.stdout)["buffers"][0]["data"] == (a + 0.5).tolist()
  done = run(*words, "--save", f"7={tmp_path / 'out.npy'}", MOCKGPU="1")
  assert done.returncode == 1 and "there are 2 buffers" in done.stderr


def test_arguments_of_launch(tmp_path: Path) -> None:
  np.save(tmp_path / "x.npy", np.arange(3))
  assert (parse_argument(str(tmp_path / "x.npy")) == np.arange(3)).all()
  out = parse_argument("out:f16:7")
  assert isinstance(out, np.ndarray) and out.dtype == np.float16 and out.shape == (7,)
  assert parse_argument("7:i32") == np.int32(7) and type(parse_argument("7:i32")) is np.int32
  assert parse_argument("0x10") == 16 and parse_argument("0.5") == 0.5 and type(parse_argument("1:f64")) is np.float64
  for wrong in ("out:f32", "out:q:1", "x", "7:q", "300:u8", "-1:u32", "1.5:i32", "no.npy"):
    with pytest.raises(InvalidArgument, match="--arg"): parse_argument(wrong)
  for large in ("1e999", "-1e999:f64", f"1e{'9' * 60}", "1e39:f32", "3.4028236e38:f32", "65520:f16", f"{10**39}:f32"):
    with pytest.raises(InvalidArgument, match=r"does not fit|that a double holds"): parse_argument(large)
  assert parse_argument("-inf") == parse_argument("-inf:f32") == -np.inf and parse_argument("65519:f16") == 65504
  assert parse_dims("4") == (4, 1, 1) and parse_dims("4,2,3") == (4, 2, 3)
  for wrong in ("", "a", "1,2,3,4", "-1"):
    with pytest.raises(InvalidArgument): parse_dims(wrong)
  assert parse_save("2=a.npy") == (2, "a.npy")
  with pytest.raises(InvalidArgument): parse_save("a.npy")


def test_times_are_readable() -> None:
  assert [show_time(t) for t in (None, 2.0, 0.0123, 34e-6, 5e-9)] == ["-", "2 s", "12.3 ms", "34 us", "5 ns"]


def test_the_digits_are_the_published_ones() -> None:
  images, digits = load_digits()
  assert images.shape == (1797, 64) and images.min() == 0 and images.max() == 1
  assert np.bincount(digits).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # UCI's class counts


def test_the_shell_completes_generations_grades_and_kernels(tmp_path: Path, add_kernel: bytes) -> None:
  (tmp_path / "add.o").write_bytes(add_kernel)

  def offered(*words: str) -> list[str]:
    env = os.environ | {"_TINYHW_COMPLETE": "bash_complete", "COMP_WORDS": shlex.join(["tinyhw", *words]),
                        "COMP_CWORD": str(len(words)), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", "from tinyhw.cli import main; main()"], env=env, capture_output=True,
                          text=True, check=False)
    return [line.split(",")[-1] for line in done.stdout.splitlines() if line]

  assert sorted(offered("asm", "--arch", "gfx12")) == ["gfx1200", "gfx1201"]
  assert "approximate" in offered("ledger", "--grade", "a")
  assert offered("launch", str(tmp_path / "add.o"), "--kernel", "a") == ["add"]
  assert offered("launch", str(tmp_path / "none"), "--kernel", "a") == []


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
  done = run("ledger", "--html", str(tmp_path / "none" / "page.html"))
  assert done.returncode == 1 and done.stdout == ""
  assert done.stderr == f"tinyhw: {tmp_path / 'none' / 'page.html'}: cannot be written: No such file or directory\n"


def test_the_kernel_may_be_left_out_where_there_is_one(tmp_path: Path, add_kernel: bytes) -> None:
  (tmp_path / "add.o").write_bytes(add_kernel)
  done = run("launch", str(tmp_path / "add.o"), "--device", "EMU")
  assert done.returncode == 1 and done.stderr.startswith("tinyhw: add: 0 arguments given")


def test_a_mock_card_that_is_not_there_makes_no_device_planned() -> None:
  done = run("devices", MOCKGPU="gfx1030", COLUMNS="200")
  assert done.returncode == 0 and "unsupported card gfx1030" in done.stdout
  assert "Planned, not built yet: METAL" in done.stdout


def test_a_misspelt_command_is_told_with_the_nearest() -> None:
  done = run("launhc")
  assert done.returncode == 2 and "No such command 'launhc'; did you mean launch?" in done.stderr
  assert "tinyhw --help lists them" in run("zzz").stderr


@pytest.mark.parametrize("name, said", [("gfx1101x", "unknown card 'gfx1101x'; did you mean gfx1101"),
                                        ("gfx90c", "unsupported card gfx90c"), ("gfx1031", "gfx1100 is its nearest"),
                                        ("gfx1152", "EMU runs its code objects, without driver and queues")])
def test_a_card_that_is_not_there_is_told_with_what_is(name: str, said: str) -> None:
  from tinyhw.mock.amd.card import cards_named
  with pytest.raises(Error) as told: cards_named(name)
  assert said in str(told.value)


def test_small_floats_are_arguments_by_the_package_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
  import ml_dtypes
  for name, kind in (("bf16", ml_dtypes.bfloat16), ("f8e4m3", ml_dtypes.float8_e4m3fn),
                     ("f8e5m2", ml_dtypes.float8_e5m2)):
    value, zeros = parse_argument(f"1.5:{name}"), parse_argument(f"out:{name}:3")
    assert isinstance(value, np.generic) and value.dtype == kind and float(value) == 1.5
    assert isinstance(zeros, np.ndarray) and zeros.dtype == kind and zeros.shape == (3,)
  monkeypatch.setitem(sys.modules, "ml_dtypes", None)
  with pytest.raises(InvalidArgument, match="bf16 is a type of the package ml_dtypes; pip install ml_dtypes"):
    parse_argument("1:bf16")
