"""`tinyhw disasm` and `tinyhw asm` as a person and a program use them."""
from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from tinyhw.cli import tinyhw


def run(*words: str, text: str = "") -> Result: return CliRunner().invoke(tinyhw, list(words), input=text)


def test_lines_of_hex() -> None:
  done = run("disasm", "--arch", "gfx1100", "-", text="8002027e\n0x00,0x00,0x80,0xbf\n\nff ff ff ff\n8002027e00\n80\n")
  assert done.exit_code == 0
  assert done.output.splitlines() == ["v_mov_b32_e32 v1, 0", "s_nop 0", "<unknown>", "<unknown>", "<unknown>"]
  done = run("disasm", "--json", "-", text="8002027e\n")
  assert json.loads(done.output) == [{"bytes": "8002027e", "text": "v_mov_b32_e32 v1, 0", "ignored": ""}]


def test_ignored_bits_are_marked(tmp_path: Path) -> None:
  """LLVM 22 fills the unused source of a shift; the comment says so, and the assembler takes the line."""
  code, text = "00003cd782040202", "v_lshlrev_b64 v[0:1], 2, v[2:3]"
  line = run("disasm", "--arch", "gfx1100", "-", text=code).output
  assert line == f"{text}  // ignored bits 0x200000000000000\n"
  assert run("asm", "-", text=line).output.strip() == "00003cd782040200"
  assert json.loads(run("disasm", "--json", "-", text=code).output)[0]["ignored"] == "0x200000000000000"
  (tmp_path / "p.bin").write_bytes(bytes.fromhex(code))
  assert run("disasm", str(tmp_path / "p.bin")).output.strip().endswith("// ignored bits 0x200000000000000")
  assert json.loads(run("disasm", "--json", str(tmp_path / "p.bin")).output)[0]["ignored"] == "0x200000000000000"


def test_asm_is_the_inverse(tmp_path: Path) -> None:
  text = "v_mov_b32_e32 v1, 0\ns_load_b64 s[0:1], s[4:5], 0x10\nv_add_f32_e32 v2, 0x40490fdb, v1\ns_endpgm\n"
  code = run("asm", "--arch", "gfx1100", "-", text="// a comment\n" + text)
  assert code.exit_code == 0 and len(code.output.splitlines()) == 4
  assert run("disasm", "--arch", "gfx1100", "-", text=code.output).output == text
  rows = json.loads(run("asm", "--json", "-", text=text).output)
  assert "\n".join(r["bytes"] for r in rows) == code.output.strip()
  (tmp_path / "p.s").write_text(text)
  assert run("asm", str(tmp_path / "p.s"), "-o", str(tmp_path / "p.bin")).exit_code == 0
  assert (tmp_path / "p.bin").read_bytes().hex() == code.output.replace("\n", "")
  shown = run("disasm", str(tmp_path / "p.bin")).output.splitlines()
  assert shown[2].split() == ["c:", "ff020406db0f4940", "v_add_f32_e32", "v2,", "0x40490fdb,", "v1"]


def test_a_code_object(tmp_path: Path, add_kernel: bytes) -> None:
  (tmp_path / "add.o").write_bytes(add_kernel)
  done = run("disasm", str(tmp_path / "add.o"))
  lines = done.output.splitlines()
  assert done.exit_code == 0 and lines[0].endswith("<add>:") and "s_endpgm" in done.output
  assert any("global_store_b32" in line for line in lines) and "<unknown>" not in done.output
  rows = json.loads(run("disasm", str(tmp_path / "add.o"), "--kernel", "add", "--json").output)
  assert {r["symbol"] for r in rows} == {"add"} and [r["address"] for r in rows] == sorted(r["address"] for r in rows)


def test_errors_are_one_line(tmp_path: Path, add_kernel: bytes) -> None:
  (tmp_path / "add.o").write_bytes(add_kernel)
  (tmp_path / "bad.o").write_bytes(add_kernel[:70])
  cases = [(("disasm", "-"), "zz\n", "standard input, line 1: 'zz' is not bytes in hex"),
           (("disasm", "--arch", "gfx1", "-"), "", "unknown GPU 'gfx1'"),
           (("disasm", str(tmp_path / "none")), "", "cannot be read"),
           (("disasm", str(tmp_path / "add.o"), "-k", "sub"), "", "has no code symbol 'sub'; it has add"),
           (("disasm", str(tmp_path / "bad.o")), "", "ELF"),
           (("asm", "-"), "s_nop 0\nv_add_f32_e32 v0, q, v1\n", "line 2: 'v_add_f32_e32 v0, q, v1': operand src0: 'q'")]
  for words, text, message in cases:
    done = run(*words, text=text)
    assert done.exit_code == 1 and message in str(done.exception), (words, str(done.exception))
    assert "\n" not in str(done.exception)


def test_other_generations(tmp_path: Path) -> None:
  text = "s_wait_loadcnt 0x0\nglobal_load_b32 v1, v[2:3], off offset:-4 th:TH_LOAD_NT scope:SCOPE_DEV\n"
  code = run("asm", "--arch", "gfx1201", "-", text=text)
  assert code.exit_code == 0 and run("disasm", "--arch", "gfx1201", "-", text=code.output).output == text
  done = run("asm", "--arch", "gfx1201", "-", text="global_load_b32 v1, v[2:3], off th:TH_STORE_WB\n")
  assert done.exit_code == 1 and "TH_STORE_WB is no temporal hint" in str(done.exception)
