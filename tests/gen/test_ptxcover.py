"""The count of the manual's instructions, on a page made for it."""
from __future__ import annotations

from pathlib import Path

import pytest

from tinyhw.core.errors import InvalidArgument
from tinyhw.tools import ptxcover

PAGE = """
Syntax

    add.type       d, a, b;
    add{.sat}.s32  d, a, b;   // .sat for this one alone
    frob.mode.shared{::cta}{.L2::cache_hint}.kind  d, [a]{, policy};

    .type = .other = { .u16, .u32,
              .s32 };
    .mode = { .hi, .lo{::a, ::b} };
    .kind = { .f32 };

Description
"""


def test_names_are_expanded() -> None:
  forms = ptxcover.names(PAGE)
  assert set(forms) == {"add.u16", "add.u32", "add.s32", "frob.shared.f32"}
  assert set(forms["frob.shared.f32"]) == {f"frob.{m}.shared.f32" for m in ("hi", "lo", "lo::a", "lo::b")}
  assert forms["add.u16"] == {"add.u16": "d, a, b"}
  assert ptxcover.sample("add.u16", "d, a, b") == "add.u16 %h1, %h1, %h1;"


def test_a_share(tmp_path: Path) -> None:
  (tmp_path / "9.7.1-page.md").write_text(PAGE)
  assert ptxcover.counted(tmp_path, None) == {"add": (3, []), "frob": (1, ["frob.shared.f32"])}
  with pytest.raises(InvalidArgument, match=r"no pages of section 9\.7"): ptxcover.counted(tmp_path / "none", None)
