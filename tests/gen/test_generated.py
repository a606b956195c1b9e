"""Invariants of the generated modules that need no compiler and no headers, and the command that makes them."""
from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tinyhw.autogen import amdgpu_drm, amdhsa, gc_11_0_0, hsa, kfd, kfd_sysfs, pm4_gfx11, sdma_v6, sq
from tinyhw.core.errors import LayoutError
from tinyhw.core.ioctl import Ioctl, split
from tinyhw.tools.gen import command, family, gcc, main
from tinyhw.tools.gen.sources import Sources
from tinyhw.wire import aql
from tinyhw.wire import kfd as kfd_wire

CALLS = [*((n, c, "K") for n, c in kfd.IOCTLS.items()), *((n, c, "d") for n, c in amdgpu_drm.IOCTLS.items())]


@pytest.mark.parametrize(("number", "call", "group"), CALLS, ids=lambda v: v.name if isinstance(v, Ioctl) else "")
def test_request_numbers_hold_the_size_of_their_struct(number: int, call: Ioctl, group: str) -> None:
  parts = split(number)
  assert chr(parts.group) == group and parts.direction in (1, 2, 3)
  assert call.struct is not None and parts.size == ctypes.sizeof(call.struct)
  assert kfd_wire.name(number) == call.name
  assert kfd_wire.text(number, call.struct()).startswith(f"{call.name}({call.struct.__name__}(")


def test_calls_are_many_and_unique() -> None:
  assert len(kfd.IOCTLS) == 38 and (kfd.KFD_IOCTL_MAJOR_VERSION, kfd.KFD_IOCTL_MINOR_VERSION) == (1, 17)
  assert len({split(n).number for n in kfd.IOCTLS}) == len(kfd.IOCTLS)
  assert kfd_wire.name(0xC0084BFE) == "_IOWR('K', 0xfe, 8 bytes)"


def test_every_module_says_where_it_comes_from() -> None:
  for name in command.NAMES:
    module = importlib.import_module(f"tinyhw.autogen.{command.family(name).module}")
    assert module.__doc__ and re.search(r"[Ss]ha256:? [0-9a-f]{64}", module.__doc__), name
    assert re.search(r"[Ll]icence", module.__doc__) and "enerat" in module.__doc__, name


def test_registers_stand_where_their_packets_reach() -> None:
  names = {r.__name__: r.OFFSET for r in gc_11_0_0.REGISTERS}
  for name, offset in names.items():
    if name.startswith("COMPUTE_"): assert pm4_gfx11.SET_SH_REG_START <= offset < pm4_gfx11.SET_SH_REG_END, name
  assert pm4_gfx11.SET_UCONFIG_REG_START <= names["GRBM_GFX_INDEX"]
  # An address known from public documentation: COMPUTE_PGM_LO is byte 0xB830 of the register space.
  assert names["COMPUTE_PGM_LO"] * 4 == 0xB830 and names["COMPUTE_USER_DATA_15"] - names["COMPUTE_USER_DATA_0"] == 15


def unique(values: Iterable[object]) -> bool:
  values = list(values)
  return len(values) == len(set(values))


def test_packets_can_be_told_apart() -> None:
  assert unique((p.OP, p.DWORDS) for p in pm4_gfx11.PACKETS)
  broadcast = [[f.default for f in p.FIELDS if f.name == "broadcast"] for p in sdma_v6.PACKETS]
  assert unique((p.OP, p.SUB_OP, *bit) for p, bit in zip(sdma_v6.PACKETS, broadcast, strict=True))
  for cls in pm4_gfx11.PACKETS:
    names = (cls.__name__.removesuffix("_ADDRESS"), cls.__name__.removeprefix("COND_"))  # 0x3F has two forms
    assert pm4_gfx11.OPCODES[cls.OP] in (cls.__name__, *names)


def test_packets_and_descriptors_have_their_sizes() -> None:
  assert all(ctypes.sizeof(kind) == aql.PACKET_BYTES for kind in aql.KINDS.values())
  assert ctypes.sizeof(hsa.amd_signal_t) == 64 and ctypes.sizeof(amdhsa.kernel_descriptor_t) == 64
  for name in ("COMPUTE_PGM_RSRC1", "COMPUTE_PGM_RSRC2", "COMPUTE_PGM_RSRC3", "KERNEL_CODE_PROPERTIES", "KERNARG_SIZE"):
    assert getattr(amdhsa.kernel_descriptor_t, name.lower()).offset == getattr(amdhsa, f"{name}_OFFSET")


@pytest.mark.parametrize("isa", ["gfx11", "gfx12"])
def test_two_vendors_agree_on_program_resources(isa: str) -> None:
  """LLVM's fields of COMPUTE_PGM_RSRC1-3 are the bits that the kernel's register headers give, under other names."""
  pairs = {
    "GRANULATED_WORKITEM_VGPR_COUNT": "VGPRS", "FP16_OVFL": "FP16_OVFL", "WGP_MODE": "WGP_MODE",
    "MEM_ORDERED": "MEM_ORDERED", "FWD_PROGRESS": "FWD_PROGRESS", "ENABLE_PRIVATE_SEGMENT": "SCRATCH_EN",
    "USER_SGPR_COUNT": "USER_SGPR", "ENABLE_SGPR_WORKGROUP_ID_X": "TGID_X_EN",
    "ENABLE_SGPR_WORKGROUP_ID_Z": "TGID_Z_EN",
    "GRANULATED_LDS_SIZE": "LDS_SIZE", "ENABLE_VGPR_WORKITEM_ID": "TIDIG_COMP_CNT",
    "INST_PREF_SIZE": "INST_PREF_SIZE", "GRANULATED_WAVEFRONT_SGPR_COUNT": "SGPRS",
    "ENABLE_SGPR_WORKGROUP_INFO": "TG_SIZE_EN", **(
      {"SHARED_VGPR_COUNT": "SHARED_VGPR_CNT", "ENABLE_DX10_CLAMP": "DX10_CLAMP", "ENABLE_IEEE_MODE": "IEEE_MODE"}
      if isa == "gfx11" else {"ENABLE_WG_RR_EN": "WG_RR_EN", "DISABLE_PERF": "DISABLE_PERF", "GLG_EN": "GLG_EN"})
  }
  seen = 0
  for i in (1, 2, 3):
    llvm = {f.name: f.mask for f in getattr(amdhsa, f"COMPUTE_PGM_RSRC{i}_{isa.upper()}").FIELDS}
    kernel = {name: (1 << bits) - 1 << low for name, (low, bits) in sq.PROGRAM[isa][f"RSRC{i}"].items()}
    if isa == "gfx11": assert kernel == {f.name: f.mask for f in getattr(gc_11_0_0, f"COMPUTE_PGM_RSRC{i}").FIELDS}
    for ours, theirs in pairs.items():
      if ours in llvm:
        assert llvm[ours] == kernel[theirs], ours
        seen += 1
  assert seen == len(pairs)


def test_topology_properties() -> None:
  names = [name for name, _ in kfd_sysfs.NODE_PROPERTIES]
  assert unique(names) and {"simd_count", "gfx_target_version", "capability", "drm_render_minor"} <= set(names)
  assert kfd_sysfs.HSA_CAP_DOORBELL_TYPE_2_0 == 2


def test_aql_dispatch() -> None:
  packet = aql.dispatch((4, 2, 1), (64, 1, 1), kernel_object=0x1000, kernarg_address=0x2000, private_bytes=0,
                        group_bytes=16)
  assert (packet.setup, packet.grid_size_x, packet.grid_size_y, packet.workgroup_size_x) == (2, 256, 2, 64)
  assert aql.decode(bytes(packet)).to_dict() == packet.to_dict()


def test_the_command_lists_and_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("tinyhw.tools.gen.sources.INSTALLED", ())
  monkeypatch.delenv("TINYHW_GEN_SOURCE", raising=False)
  assert main(["--list"]) == 0
  listed = capsys.readouterr().out
  assert all(name in listed for name in command.NAMES) and "missing include/uapi/linux/kfd_ioctl.h" in listed
  assert main(["kfd", "--source", str(tmp_path)]) == 2
  error = capsys.readouterr().err
  assert error.count("\n") == 1 and "kfd_ioctl.h not found" in error and "--source DIR" in error
  assert main(["pm4", "--source", str(tmp_path / "nowhere")]) == 2
  assert "does not exist" in capsys.readouterr().err
  monkeypatch.setattr("tinyhw.tools.gen.aliases.aliases", lambda isa: {})  # llvm-mc would be asked for all of them
  assert main(["check", "--source", str(tmp_path)]) == 1
  files = [name for name in command.NAMES if command.family(name).needs]  # aliases are asked of llvm-mc
  assert capsys.readouterr().out.count("NOT CHECKED") == len(files) == len(command.NAMES) - 1


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("shutil.which", lambda name: None)
  with pytest.raises(Exception, match="install gcc"): gcc.compiler()


def test_errata_apply_once_or_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  (tmp_path / "errata").mkdir()
  (tmp_path / "errata" / "some.toml").write_text(
    '[[erratum]]\nwhat = "a.h: X"\nwas = "X 1"\nnow = "X 2"\nevidence = "tests/gen/test_generated.py"\n')
  monkeypatch.setattr(family, "AUTOGEN", tmp_path)
  assert family.corrected("#define X 1", "some", "a.h") == "#define X 2"
  for module, source in (("some", "b.h"), ("other", "a.h")):
    assert family.corrected("#define X 1", module, source) == "#define X 1"
  with pytest.raises(LayoutError, match="stands 0 times"): family.corrected("#define Y 1", "some", "a.h")


def test_sources_from_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  import tarfile

  inside = tmp_path / "linux-6.12" / "include" / "uapi" / "linux"
  inside.mkdir(parents=True)
  (inside / "kfd_ioctl.h").write_text("#define A 1\n")
  with tarfile.open(tmp_path / "linux.tar.xz", "w:xz") as tar: tar.add(tmp_path / "linux-6.12", "linux-6.12")
  monkeypatch.setattr("tinyhw.tools.gen.sources.INSTALLED", ())
  monkeypatch.delenv("TINYHW_GEN_SOURCE", raising=False)
  sources = Sources([tmp_path / "linux.tar.xz"])
  assert sources.find("include/uapi/linux/kfd_ioctl.h").text == "#define A 1\n"
  assert not sources.has("include/uapi/linux/other.h") and not sources.has("hsa/hsa.h")
