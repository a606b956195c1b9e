"""Objects of compilers as shared objects: the same kernels and code, for loaders that take no others."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tinyhw
from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.core.errors import Unsupported
from tinyhw.wire import codeobject
from tinyhw.wire.elf import Elf

OBJECTS = Path(__file__).parent / "objects"
LINKED = OBJECTS / "gfx1100_v5.co"  # by lld, of the same source


def made() -> bytes: return codeobject.shared(codeobject.load((OBJECTS / "gfx1100_v5.o").read_bytes()))


def test_its_kernels_are_those_of_the_object_that_lld_makes() -> None:
  ours, theirs = (codeobject.load(data) for data in (made(), LINKED.read_bytes()))
  assert ours.kernels.keys() == theirs.kernels.keys() and len(ours.kernels) > 1
  assert (ours.target_id, ours.version) == (theirs.target_id, theirs.version)
  for name, kernel in ours.kernels.items():
    other = theirs.kernels[name]
    assert (kernel.arguments, kernel.hidden, kernel.kernarg_size) == (other.arguments, other.hidden, other.kernarg_size)
    code = ours.image[kernel.entry_offset:kernel.entry_offset + 16]
    assert any(code) and code == theirs.image[other.entry_offset:other.entry_offset + 16]


def test_it_runs() -> None:
  text = ("@g = global i32 7\ndefine amdgpu_kernel void @k(ptr addrspace(1) %p) {\n%v = load i32, ptr @g\n"
          "store i32 %v, ptr addrspace(1) %p\nret void\n}")
  llvm = pytest.importorskip("llvmlite.binding")
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  target = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx1100", opt=2)
  module = llvm.parse_assembly(f'target triple = "amdgcn-amd-amdhsa"\n{text}')
  loaded = codeobject.load(target.emit_object(module))
  assert loaded.fixups  # the address of g, which the loader stores
  file = codeobject.shared(loaded)
  assert codeobject.shared(codeobject.load(file)) == file
  assert tinyhw.launch(file, "k", 1, 1, [np.zeros(1, np.int32)], "EMU")[0].tolist() == [7]


def test_symbols_are_where_loaders_look() -> None:
  """ROCr finds kernels in .symtab; the hash table is for those who look in memory."""
  file = Elf(made())
  names = {s.name for section in file.sections if section.type == elf.SHT_SYMTAB for s in file.symbols(section)}
  assert {f"{k}.kd" for k in codeobject.load(LINKED.read_bytes()).kernels} <= names
  assert {p.p_type for p in file.segments} == {elf.PT_LOAD, elf.PT_DYNAMIC, elf.PT_NOTE}
  for p in file.segments: assert p.p_type != elf.PT_LOAD or p.p_offset % 4096 == p.p_vaddr % 4096


def test_readers_of_llvm_take_it(tmp_path: Path) -> None:
  if (reader := shutil.which("llvm-readelf-19")) is None: pytest.skip("there is no llvm-readelf-19")
  (tmp_path / "made.so").write_bytes(made())
  done = subprocess.run([reader, "--dyn-syms", "--hash-table", "--notes", str(tmp_path / "made.so")],
                        capture_output=True, text=True)
  assert not done.returncode and "warning" not in done.stderr, done.stderr
  for kernel in codeobject.load(LINKED.read_bytes()).kernels: assert f"{kernel}.kd" in done.stdout


def test_what_only_a_linker_can_settle() -> None:
  with pytest.raises(Unsupported, match="ld.lld -shared"):
    codeobject.shared(codeobject.load((OBJECTS / "relocations.o").read_bytes()))
