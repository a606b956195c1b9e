"""Every generated layout and value against the C compiler (and cffi), where it and the vendors' headers are found."""
from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest

from tests.strength import THOROUGH
from tinyhw.core.store import sources_digest
from tinyhw.tools.gen import command, nvclass, nvrm, witness
from tinyhw.tools.gen.linux import PAL_2024_FOLDER
from tinyhw.tools.gen.sources import Sources

# One test for what comes from the Linux tree, which may have to be unpacked from Debian's archive first.
GROUPS = {"linux": ("kfd", "kfd_sysfs", "amdgpu_drm", "sdma", "sdma_v4", "gc", "gc_12_0_0",
                    "gc_9_4_3", "gc_9_4_2"), "hsa": ("hsa",),
          "llvm": ("amdhsa", "elf"),
          "pal": ("pm4", "pm4_gfx12"), "pal before gfx10": ("pm4_gfx9",),
          "nvidia": tuple(nvclass.FAMILIES), "rm": tuple(nvrm.FAMILIES)}

# What decides how "linux" ends, beside headers whose hashes the modules name: with the same digest it has ended well.
# To unpack Debian's archive takes half a minute. THOROUGH=1 asks the compilers all the same, and notes the digest.
DECIDES = (*(f"autogen/{command.family(name).module}.py" for name in GROUPS["linux"]), "autogen/errata/*.toml",
           "core/ioctl.py", "core/layout.py", *(f"tools/gen/{name}.py" for name in (
             "command", "family", "gc", "gcc", "kfd", "linux", "sdma", "sources", "witness")))
PROVED = Path(__file__).with_name("proved.txt")


@pytest.mark.parametrize("group", GROUPS)
def test_against_the_compilers(group: str) -> None:
  if not (shutil.which("gcc") and shutil.which("g++")): pytest.skip("gcc and g++ are not installed")
  digest = sources_digest(DECIDES).hex()
  if group == "linux" and not THOROUGH and PROVED.read_text().strip() == digest:
    pytest.skip("the compilers have agreed with these very modules")
  sources = Sources()
  # `gc` is compared without PAL's file, `pm4` without the kernel's.
  start = {"pal": "src/", "pal before gfx10": f"{PAL_2024_FOLDER}/"}.get(group, "")
  needs = {name: [n for n in command.family(name).needs if group == "rm" or (
             n.startswith(start) if start else not n.startswith(("src/", PAL_2024_FOLDER)))] for name in GROUPS[group]}
  every = [need for rows in needs.values() for need in rows]
  sources.prepare(every)
  missing = [need for need in every if not sources.has(need)]
  if missing: pytest.skip(f"headers are not installed (set TINYHW_GEN_SOURCE): {', '.join(missing)}")
  for name in GROUPS[group]:
    module = importlib.import_module(f"tinyhw.autogen.{command.family(name).module}")
    others = [need for need in needs[name] if sources.find(need).sha256 not in str(module.__doc__)]
    if others: pytest.skip(f"another version than autogen/ was made from: {', '.join(others)}")
    reports = witness.reports(name, sources)
    assert reports
    for report in reports: assert not report.problems, f"{name}: {report.text}"
  if group == "linux" and THOROUGH: PROVED.write_text(digest + "\n")
