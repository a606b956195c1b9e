"""Details of the commands: errors of the system as JSON, functions in listings, colours of what there is."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tinyhw import cli
from tinyhw.cli import report, tinyhw
from tinyhw.compile.render import objects
from tinyhw.emulator.debug.amdgcn.record import UNITS


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_an_error_of_the_system_is_told_by_its_fields(words: list[str], monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
  def full(**_: object) -> None: raise OSError(28, "No space left on device", "/tmp/out.npy")
  monkeypatch.setattr(cli.tinyhw, "main", full)
  monkeypatch.setattr(sys, "argv", ["tinyhw", "launch", *words])
  with pytest.raises(SystemExit) as end: cli.main()
  out, error = capsys.readouterr()
  assert end.value.code == 1 and error == "tinyhw: /tmp/out.npy: No space left on device\n"
  row = {"type": "OSError", "text": "/tmp/out.npy: No space left on device", "message": "No space left on device",
         "where": "/tmp/out.npy"}
  assert out == (json.dumps({"error": row}) + "\n" if words else "")


def test_a_listing_names_functions_too(tmp_path: Path) -> None:
  processor = objects.Processor("amdgcn-amd-amdhsa", "gfx1100")
  source = objects.header(processor) + """
define i32 @helper(i32 %x) noinline { ret i32 %x }
define amdgpu_kernel void @kernel(ptr addrspace(1) %p) { store i32 7, ptr addrspace(1) %p
ret void }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
"""
  (tmp_path / "both.o").write_bytes(objects.emit(source, "kernel", processor, 2))
  found = CliRunner().invoke(tinyhw, ["disasm", str(tmp_path / "both.o"), "--json"])
  assert found.exit_code == 0, found.output
  rows = json.loads(found.output)
  assert list(dict.fromkeys(r["symbol"] for r in rows)) == ["helper", "kernel"]
  one = CliRunner().invoke(tinyhw, ["disasm", str(tmp_path / "both.o"), "--json", "-k", "helper"])
  assert json.loads(one.output) == [r for r in rows if r["symbol"] == "helper"]


def test_what_has_a_colour_is_a_unit() -> None: assert set(report.COLORS) <= set(UNITS)
