"""Cubins: what is read of ptxas' own for every architecture, what is written without it, and damage."""
from __future__ import annotations

import io
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.arch.nv import NV_ARCHES, nv_arch
from tinyhw.autogen.nv_rm_chips import CHIPS
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.wire import cubin, qmd
from tinyhw.wire.cubin import Cubin, CubinEntry, Data, Parameter
from tinyhw.wire.elf import Elf

PTX = """
.version 9.0
.target {arch}
.address_size 64
.global .align 4 .b8 table[64] = {{1, 2, 3}};
.global .align 4 .b8 zeros[128];
.const .align 4 .f32 constants[4] = {{0f3F800000, 0f40000000, 0f3F800000, 0f40000000}};
.visible .entry add(.param .u64 out, .param .u64 a, .param .u32 n, .param .f32 f) .maxntid 256, 1, 1
{{
  .reg .b64 %rd<8>; .reg .b32 %r<12>; .reg .f32 %f<8>;
  .shared .align 4 .b8 sm[512];
  .local .align 8 .b8 loc[64];
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [a]; ld.param.u32 %r1, [n]; ld.param.f32 %f1, [f];
  mov.u32 %r4, %tid.x; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3; ld.global.f32 %f2, [%rd4];
  and.b32 %r6, %r4, 7; shl.b32 %r7, %r6, 2; cvt.u64.u32 %rd6, %r7;
  mov.u64 %rd5, table; add.s64 %rd5, %rd5, %rd6; ld.global.f32 %f3, [%rd5];
  mov.u64 %rd7, constants; add.s64 %rd7, %rd7, %rd6; ld.const.f32 %f5, [%rd7];
  mov.u32 %r9, sm; add.s32 %r9, %r9, %r7; st.shared.f32 [%r9], %f5; bar.sync 0; ld.shared.f32 %f6, [%r9];
  add.f32 %f3, %f3, %f6;
  mov.u32 %r10, loc; add.s32 %r10, %r10, %r7; st.local.f32 [%r10], %f3; ld.local.f32 %f4, [%r10+4];
  fma.rn.f32 %f2, %f2, %f1, %f4;
  mov.u64 %rd5, zeros; st.global.f32 [%rd5], %f2;
  add.s64 %rd4, %rd1, %rd3; st.global.f32 [%rd4], %f2;
  ret;
}}
.visible .entry empty() .reqntid 32, 2, 1 {{ ret; }}
"""


def assembled(folder: Path, arch: str) -> bytes:
  """What ptxas makes of it."""
  if (tool := shutil.which("ptxas")) is None: pytest.skip("ptxas is not installed")
  source, out = folder / "k.ptx", folder / "k.cubin"
  source.write_text(PTX.format(arch=arch))
  done = subprocess.run([tool, f"-arch={arch}", source, "-o", out], capture_output=True, text=True)
  if done.returncode: pytest.skip(f"this ptxas does not know {arch}: {done.stderr[:100]}")
  return out.read_bytes()


@pytest.mark.parametrize("arch", NV_ARCHES)
def test_ptxas_and_we_agree(arch: str, tmp_path: Path) -> None:
  raw = assembled(tmp_path, arch)
  found, chip = Cubin(raw), nv_arch(arch)
  kernel = found.kernel("add")
  assert found.arch == arch and set(found.kernels) == {"add", "empty"} and found.ptx is None
  assert kernel.parameters == (Parameter(0, 8), Parameter(8, 8), Parameter(16, 4), Parameter(20, 4))
  assert (kernel.params, kernel.params_size, kernel.bank0) == (chip.bank0.params, 24, chip.bank0.params + 24)
  assert kernel.shared == 512 + chip.shared_reserved * chip.shared_symbols_reserved
  assert (kernel.local, kernel.limit, kernel.barriers, kernel.required) == (64, 256, 1, None)
  assert 0 < kernel.registers <= 255 and kernel.text % cubin.CODE_ALIGN == 0
  empty = found.kernel("empty")
  assert (empty.parameters, empty.required, empty.shared, empty.local) == ((), (32, 2, 1), 0, 0)
  image = found.link(0x7000_0000_0000)
  at, size = kernel.banks[4]
  assert size == 16 and all(place % cubin.BANK_ALIGN == 0 for place, _ in kernel.banks.values())
  table, zeros = sorted(struct.unpack_from("<QQ", image, at), key=lambda a: image[a - 0x7000_0000_0000], reverse=True)
  assert image[table - 0x7000_0000_0000:][:4] == b"\1\2\3\0" and not any(image[zeros - 0x7000_0000_0000:][:128])
  assert image[kernel.banks[3][0]:][:8] == struct.pack("<ff", 1, 2)
  assert raw[Elf(raw).sections[-1].offset:] in image or image[:64] == raw[:64]


def test_ptx_goes_into_a_section(tmp_path: Path) -> None:
  raw = assembled(tmp_path, "sm_90")
  both = cubin.with_ptx(raw, b".version 9.0\n")
  assert Cubin(both).ptx == b".version 9.0\n" and cubin.with_ptx(both, b"other") == both
  assert Cubin(both).kernels.keys() == Cubin(raw).kernels.keys()
  assert [s.name for s in Elf(both).sections[:-1]] == [s.name for s in Elf(raw).sections]


PARAMETERS = st.lists(st.sampled_from([1, 2, 4, 8, 16]), max_size=6)


@given(st.dictionaries(st.from_regex("[a-z_][a-z0-9_]{0,8}", fullmatch=True),
                       st.tuples(PARAMETERS, st.integers(0, 4096), st.integers(0, 1024)), min_size=1, max_size=3),
       st.sampled_from(sorted(NV_ARCHES)), st.binary(max_size=50))
@settings(max_examples=examples(40), deadline=None)
def test_what_is_written_is_read(rows: dict[str, tuple[list[int], int, int]], arch: str, image: bytes) -> None:
  chip, entries = nv_arch(arch), []
  for name, (sizes, shared, limit) in rows.items():
    at, parameters = 0, []
    for size in sizes:
      at = -(-at // size) * size
      parameters.append(Parameter(at, size))
      at += size
    entries.append(CubinEntry(name, tuple(parameters), shared, limit))
  data = Data(image + bytes(16), (("Value", 3, 4),), ((0, 8),))  # no kernel is named so
  raw = cubin.write(b".version 9.0\n", chip.sm, chip.bank0.params, entries, data, chip.shared_reserved)
  found = Cubin(raw)
  assert found.arch == arch and found.ptx == b".version 9.0\n" and set(found.kernels) == set(rows)
  for e in entries:
    kernel = found.kernel(e.name)
    assert kernel.parameters == e.parameters and kernel.limit == e.limit
    assert kernel.shared == (e.shared + chip.shared_reserved if e.shared else 0)
    assert kernel.params == chip.bank0.params
    assert kernel.params_size == max((p.offset + p.size for p in e.parameters), default=0)
  symbol = next(s for s in found.symbols if s.name == "Value")
  place = found.elf.sections[symbol.section].offset
  assert (symbol.value, symbol.size) == (3, 4)
  linked = found.link(0x10000)
  assert struct.unpack_from("<Q", linked, place) == (0x10000 + place + 8,)
  assert linked[place + 8:place + len(image) + 16] == (image + bytes(16))[8:]


def test_damage_is_said() -> None:
  raw = bytearray(cubin.write(b"", 90, 0x210, [CubinEntry("k", (Parameter(0, 8),))]))
  with pytest.raises(InvalidArgument, match="no kernel 'x'") as error: Cubin(bytes(raw)).kernel("x")
  assert "it has k" in str(error.value)
  with pytest.raises(DecodeError): Cubin(bytes(raw[:100]))
  other = bytearray(raw)
  other[18] = 62
  with pytest.raises(DecodeError, match="machine 62"): Cubin(bytes(other))
  with pytest.raises(DecodeError, match="12 bytes"): cubin.attributes(struct.pack("<BBH", 4, 0x17, 12) + b"short")
  linked = bytearray(cubin.write(b"", 90, 0x210, [CubinEntry("k")], Data(bytes(16), (), ((0, 8),))))
  rows = next(section for section in Elf(bytes(linked)).sections if section.name == ".rela.nv.global.init")
  linked[rows.offset + 8] = 0x55
  with pytest.raises(Unsupported, match="R_CUDA type 0x55"): Cubin(bytes(linked))


def written(addresses: tuple[tuple[int, int], ...] = ((0, 8),)) -> bytes:
  """A kernel, and a variable of 16 bytes in the module."""
  return cubin.write(b".version 9.0\n", 90, 0x210, [CubinEntry("k", (Parameter(0, 8),), 64)],
                     Data(bytes(16), (("v", 0, 16),), addresses))


def with_row(raw: bytes, name: str, place: int, form: str, value: int) -> bytes:
  """Another value of a field in the first rows of a section."""
  data = bytearray(raw)
  struct.pack_into(form, data, next(s.offset for s in Elf(raw).sections if s.name == name) + place, value)
  return bytes(data)


def test_what_is_written_is_an_elf_as_others_read_it() -> None:
  """The identity is what ptxas of CUDA 13 writes; kernels and variables are global, as the table of symbols says."""
  raw = written()
  file = ELFFile(io.BytesIO(raw))
  assert raw[:9] == b"\x7fELF\2\1\1\x41\x08" and file["e_machine"] == "EM_CUDA" and file["e_flags"] >> 8 & 255 == 90
  table: Any = file.get_section_by_name(".symtab")
  symbols = {s.name: s for s in table.iter_symbols()}
  bindings = [s["st_info"]["bind"] for s in table.iter_symbols()]
  assert bindings.index("STB_GLOBAL") == table["sh_info"], "local ones come first, and the section says how many"
  assert set(bindings[table["sh_info"]:]) == {"STB_GLOBAL"}
  assert file.get_section(table["sh_link"]).name == ".strtab"
  for name, kind, section, size in (("k", "STT_FUNC", ".text.k", 128), ("v", "STT_OBJECT", ".nv.global.init", 16)):
    s = symbols[name]
    assert (s["st_info"]["type"], s["st_size"]) == (kind, size) and file.get_section(s["st_shndx"]).name == section


RELA = ".rela.nv.global.init"
BASES = [0, 1, 0x7F00_1234_5678, 0xFFFF_FFFF, (1 << 64) - 0x4000]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("kind", "size"), [(1, 4), (2, 8), (3, 4), (4, 8)])
@pytest.mark.parametrize("to", [0, 9, -0x100000])
def test_an_address_in_data_keeps_as_many_bits_as_there_is_room_for(base: int, kind: int, size: int, to: int) -> None:
  raw = with_row(written(((0, to),)), RELA, 8, "<I", kind)
  found = Cubin(raw)
  place = next(s.offset for s in found.elf.sections if s.name == ".nv.global.init")
  wanted = (base + place + to) % (1 << 8 * size)
  assert found.link(base)[place:place + 16] == wanted.to_bytes(size, "little") + bytes(16 - size)


def test_a_relocation_tells_the_place_of_any_section_and_of_none_is_refused() -> None:
  raw = written()
  sections = Elf(raw).sections
  symbol = struct.unpack_from("<I", raw, next(s.offset for s in sections if s.name == RELA) + 12)[0]
  place = next(s.offset for s in sections if s.name == ".nv.global.init")
  for number in range(len(sections) + 2):
    changed = with_row(raw, ".symtab", 24 * symbol + 6, "<H", number)
    if 0 < number < len(sections):
      assert struct.unpack_from("<Q", Cubin(changed).link(0), place) == (sections[number].offset + 8,)
    else:
      with pytest.raises(Unsupported, match=r"undefined symbol .*\.nv\.global\.init"): Cubin(changed)


@pytest.mark.parametrize("target", ["none", "past the last"])
def test_relocations_of_no_section_change_nothing(target: str) -> None:
  raw = written()
  sections, start = Elf(raw).sections, Elf(raw).header.e_shoff
  data = bytearray(raw)
  at = next(i for i, s in enumerate(sections) if s.name == RELA)
  struct.pack_into("<I", data, start + 64 * at + 44, 0 if target == "none" else len(sections))
  assert Cubin(bytes(data)).link(0x1000) == bytes(data)


def test_constant_banks_are_moved_where_one_may_begin_and_no_further() -> None:
  seen = set()
  for length in range(1, 200, 33):
    name = "k" * length
    raw = cubin.write(b"", 90, 0x210, [CubinEntry(name)]).replace(b".nv.constant0." + name.encode() + b"\0.nv.info",
                                                                  b".nv.constant3." + name.encode() + b"\0.nv.info")
    before = next(s for s in Elf(raw).sections if s.name == f".nv.constant3.{name}")
    found = Cubin(raw)
    place, size = found.kernel(name).banks[3]
    assert place % cubin.BANK_ALIGN == 0 and size == before.size == 0x210
    assert found.file[place:place + size] == raw[before.offset:before.offset + size]
    assert (found.file == raw) == (before.offset % cubin.BANK_ALIGN == 0) and Cubin(found.file).file == found.file
    seen.add(found.file == raw)
  assert seen == {False, True}


@pytest.mark.parametrize("name", NV_ARCHES)
def test_generations_are_of_the_chips(name: str) -> None:
  arch = nv_arch(name)
  classes = {c for c, _ in CHIPS[arch.chip]}
  assert {arch.compute_class, arch.copy_class, arch.channel_class, arch.usermode_class} <= classes
  assert arch.qmd == max(qmd.versions(arch.compute_class))
  assert arch.shared_per_block == (max(arch.shared_kib) << 10) - arch.shared_reserved
  with pytest.raises(InvalidArgument, match="sm_80, sm_86"): nv_arch("sm_70")
