"""Clusters of blocks from the outside: launch, report, debugger and command."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tinyhw
from tests.cli.test_cli import run
from tinyhw.core.errors import Unsupported
from tinyhw.wire.codeobject import load

RANKS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 .ptr .global out) {
  .reg .u64 %a; .reg .b64 %o; .reg .u32 %r<4>;
  ld.param.u64 %a, [out];
  mov.u32 %r0, %cluster_ctarank;
  mov.u32 %r1, %cluster_nctarank;
  mad.lo.u32 %r0, %r1, 100, %r0;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %o, %r2, 4;
  add.u64 %a, %a, %o;
  st.global.u32 [%a], %r0;
  ret;
}
"""


@pytest.mark.parametrize(("cluster", "wanted"), [(None, [100] * 4), (2, [200, 201] * 2),
                                                 ((4, 1), [400, 401, 402, 403])])
def test_a_launch_says_how_many_blocks_a_cluster_has(cluster: int | tuple[int, int] | None, wanted: list[int]) -> None:
  out = np.zeros(4, np.uint32)
  assert tinyhw.launch(RANKS.encode(), "ranks", 4, 1, [out], cluster=cluster)[0].tolist() == wanted
  made = tinyhw.report(RANKS.encode(), "ranks", 4, 1, [out], cluster=cluster)
  assert made.buffers[0].tolist() == wanted
  with tinyhw.debug(RANKS.encode(), "ranks", 4, 1, [out], cluster=cluster) as session:
    session.run()
    assert session.buffers()[0].tolist() == wanted


def test_the_command(tmp_path: Path) -> None:
  (tmp_path / "k.ptx").write_text(RANKS)
  done = run("launch", str(tmp_path / "k.ptx"), "--grid", "4", "--cluster", "2", "--arg", "out:u32:4", "--json")
  assert done.returncode == 0 and "[200, 201, 200, 201]" in done.stdout, done.stderr
  done = run("launch", str(tmp_path / "k.ptx"), "--grid", "4", "--cluster", "two", "--arg", "out:u32:4")
  assert done.returncode == 1 and "'two' is not X, X,Y or X,Y,Z" in done.stderr


def test_amd_has_none() -> None:
  code = (Path(__file__).parent / "objects/typed_O2.co").read_bytes()
  kernel = next(iter(load(code).kernels))
  for start in (tinyhw.report, tinyhw.debug):
    with pytest.raises(Unsupported, match="clusters of blocks on"): start(code, kernel, 1, 4, [], cluster=2)
  with pytest.raises(Unsupported, match="clusters of blocks on"):
    tinyhw.launch(code, kernel, 1, 4, [], "EMU", cluster=2)
