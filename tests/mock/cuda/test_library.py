"""The shared library: what the system's linker makes of it, and that every function of cuda.h is there."""

from __future__ import annotations

import ctypes
import gc
import io
import itertools
import shutil
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.hash import ELFHashTable
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock.cuda.client import Client, u64
from tests.strength import examples
from tinyhw.autogen import cuda
from tinyhw.core.called import Plain
from tinyhw.core.errors import Unsupported
from tinyhw.mock.cuda.calls import SERVED, ended, handler_of
from tinyhw.mock.cuda.handlers import served
from tinyhw.mock.cuda.library.shared import Loaded, library
from tinyhw.wire.elf import Elf

NUMBERS = itertools.count()
NAMES = st.lists(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,30}", fullmatch=True), min_size=1, max_size=60, unique=True)


@settings(max_examples=examples(25))
@given(NAMES)
def test_functions_are_found_by_name_and_go_where_they_are_sent(names: list[str]) -> None:
  number = next(NUMBERS)
  names = [n for n in names if n != "tinyhw_table"] or ["one"]
  loaded = Loaded(f"libtest{number}.so.1", names)
  for i, name in enumerate(names):
    loaded.fill(name, Plain(lambda x, i=i: x + i, ctypes.c_int, failed=-1))  # type: ignore[misc]
  again = ctypes.CDLL(f"libtest{number}.so.1")  # by the name that it goes under
  for i, name in enumerate(names):
    assert getattr(again, name)(1000) == 1000 + i
  with pytest.raises(AttributeError):
    _ = again.no_such_function_here


def test_binutils_read_the_library(tmp_path: Path) -> None:
  path = tmp_path / "lib.so"
  path.write_bytes(library("libx.so.1", ["alpha", "beta"]))
  Elf(path.read_bytes())
  try:
    said = subprocess.run(["readelf", "-Wd", "-l", "--dyn-syms", str(path)], capture_output=True, text=True)
  except FileNotFoundError:
    pytest.skip("needs readelf of binutils")
  assert said.returncode == 0 and "libx.so.1" in said.stdout, said.stderr
  assert "warning" not in said.stderr.lower(), said.stderr


@pytest.mark.parametrize("version", [None, "libx.so.1"])
@pytest.mark.parametrize("count", [1, 2, 700])
def test_the_parts_of_the_library_lie_side_by_side(count: int, version: str | None) -> None:
  """As pyelftools reads them."""
  raw = library("libx.so", [f"function{i}" for i in range(count)], version)
  elf = ELFFile(io.BytesIO(raw))
  loads = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
  dynamic, = (s for s in elf.iter_segments() if s["p_type"] == "PT_DYNAMIC")
  tags = {t.entry.d_tag: t.entry.d_val for t in dynamic.iter_tags()}
  assert dynamic["p_filesz"] == 16 * len(tags) and [tags["DT_NULL"]] == [0]
  ends = [s["p_vaddr"] + s["p_memsz"] for s in loads]
  assert all(a <= b["p_vaddr"] // 4096 * 4096 for a, b in zip(ends, loads[1:]))
  # Sections are what the dynamic table tells, and the table of sections ends the file.
  assert elf["e_shoff"] + elf["e_shnum"] * elf["e_shentsize"] == len(raw)
  sections = {s.name: s for s in elf.iter_sections()}
  for name, tag in ((".dynsym", "SYMTAB"), (".dynstr", "STRTAB"), (".hash", "HASH")):
    assert [sections[name]["sh_addr"]] == [tags[f"DT_{tag}"]], name
  assert sections[".dynsym"].num_symbols() == count + 2 and sections[".dynstr"]["sh_size"] == tags["DT_STRSZ"]
  others = [(s["p_type"], s["p_offset"], s["p_vaddr"], s["p_filesz"]) for s in elf.iter_segments()][3:]
  place = dynamic["p_offset"], dynamic["p_vaddr"], dynamic["p_filesz"]
  assert len(loads) == 3 and others == [("PT_DYNAMIC", *place), ("PT_GNU_STACK", 0, 0, 0)]
  table = next(s for s in dynamic.iter_symbols() if s.name == "tinyhw_table")
  behind = sections[".shstrtab"]["sh_offset"]  # what is not loaded
  assert table["st_value"] + table["st_size"] == ends[-1] == behind  # it is the last
  symbols = dynamic.num_symbols()
  parts = [(tags["DT_SYMTAB"], 24 * symbols), (tags["DT_STRTAB"], tags["DT_STRSZ"]),
           (tags["DT_HASH"], 4 * (2 + int.from_bytes(raw[tags["DT_HASH"]:][:4], "little") + symbols))]
  if version is not None: parts += [(tags["DT_VERSYM"], 2 * symbols), (tags["DT_VERDEF"], 28 * tags["DT_VERDEFNUM"])]
  assert all(a + size <= b for (a, size), (b, _) in itertools.pairwise(sorted(parts)))
  assert all(at % 4 == 0 and at + size <= ends[0] for at, size in parts)
  if version is None: return
  assert max(at + size for at, size in parts) == ends[0]
  at, texts = tags["DT_VERDEF"], raw[tags["DT_STRTAB"]:][:tags["DT_STRSZ"]]
  for number, name in enumerate(("libx.so", version), 1):  # Elf64_Verdef and Elf64_Verdaux (gABI, GNU extensions)
    *head, hashed, auxiliary, more = struct.unpack_from("<4H3I", raw, at)
    named, last = struct.unpack_from("<2I", raw, at + auxiliary)
    assert head == [1, number == 1, number, 1] and hashed == ELFHashTable.elf_hash(name) and not last
    assert texts[named:].partition(b"\0")[0] == name.encode() and bool(more) == (number == 1)
    at += more


def test_what_is_not_served_says_so_by_name() -> None:
  client = Client()
  served()
  left = sorted(name for name in (*cuda.FUNCTIONS, *cuda.BY_VALUE) if handler_of(name)[0] is None)
  assert len(left) > 200 and set(SERVED) <= {*cuda.FUNCTIONS, *cuda.BY_VALUE}
  for name in left:
    assert getattr(client.library, name)() == cuda.CUDA_ERROR_NOT_SUPPORTED
  told = client.machine.report()
  assert all(any(line.startswith(f"{name}: ") for line in told) for name in left)


def test_functions_by_version() -> None:
  client = Client()
  for version, symbol in ((2000, "cuMemAlloc"), (3020, "cuMemAlloc_v2"), (12000, "cuMemAlloc_v2")):
    out, status = ctypes.c_void_p(), ctypes.c_int()
    client.call("cuGetProcAddress_v2", b"cuMemAlloc", ctypes.byref(out), version, ctypes.c_uint64(0),
                ctypes.byref(status))
    assert status.value == cuda.CU_GET_PROC_ADDRESS_SUCCESS
    assert out.value == ctypes.cast(getattr(client.library, symbol), ctypes.c_void_p).value
  client.call("cuGetProcAddress_v2", b"cuLogsCurrent", ctypes.byref(out), 12000, ctypes.c_uint64(0),
              ctypes.byref(status))
  assert status.value == cuda.CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT and not out.value
  client.call("cuGetProcAddress_v2", b"cuNothing", ctypes.byref(out), 13000, ctypes.c_uint64(0), ctypes.byref(status))
  assert status.value == cuda.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND


def test_without_a_machine_it_is_deinitialized() -> None:
  client = Client()
  client.machine.close()
  count = ctypes.c_int()
  assert client.library.cuDeviceGetCount(ctypes.byref(count)) == cuda.CUDA_ERROR_DEINITIALIZED


def test_the_driver_goes_by_the_name_of_its_development_files_too() -> None:
  client = Client()
  count = ctypes.c_int()
  assert ctypes.CDLL("libcuda.so").cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 1
  assert client.library._name != ctypes.CDLL("libcuda.so")._name


def test_nothing_is_collected_in_the_middle_of_a_call() -> None:
  """Finalizers of a program's own objects would wait for locks that it holds around the call."""
  client, seen = Client(), list[bool]()

  @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
  def note(data: int) -> None:
    seen.append(gc.isenabled())
    client.library.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))  # a call inside a call
    seen.append(gc.isenabled())

  for enabled in (True, False):
    if not enabled: gc.disable()
    try:
      client.call("cuLaunchHostFunc", u64(0), note, None)
      client.call("cuCtxSynchronize")
      assert gc.isenabled() is enabled
    finally: gc.enable()
  assert seen == [False] * 4


def test_functions_answer_when_python_has_ended(tmp_path: Path) -> None:
  """Destructors of other libraries run behind it."""
  program = tmp_path / "late.py"
  program.write_text("""
import ctypes
import gc
from tinyhw.mock.cuda.library.library import stand_in
from tinyhw.mock.cuda.machine import CudaMachine
library = stand_in(CudaMachine("sm_90"))
assert library.cuInit(0) == 0
libc = ctypes.CDLL(None)
late = ctypes.cast(library.cuCtxSynchronize, ctypes.c_void_p)  # called by exit, with Python gone
libc.on_exit(late, None)
""")
  done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (0, "")


THREADS = """
#include <pthread.h>
#include <stddef.h>
typedef int (*call)(void *);
static call put, get;
static void *seen[2], *wanted[2];
static void *run(void *which) {
  size_t i = (size_t)which;
  put(wanted[i]);
  get(&seen[i]);
  return NULL;
}
int both(call a, call b, void *first, void *second, void **out) {
  pthread_t threads[2];
  put = a; get = b; wanted[0] = first; wanted[1] = second;
  for (size_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, (void *)i);
  for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  out[0] = seen[0]; out[1] = seen[1];
  return 0;
}
"""


def test_threads_of_c_keep_what_is_their_own(tmp_path: Path) -> None:
  """A context that a thread makes current is so at its next call, which Python does not know to be of the same one."""
  compiler = shutil.which("gcc") or shutil.which("cc")
  if compiler is None: pytest.skip("needs a C compiler")
  (tmp_path / "t.c").write_text(THREADS)
  subprocess.run([compiler, "-shared", "-fPIC", "-pthread", "t.c", "-o", "t.so"], cwd=tmp_path, check=True)
  client = Client("sm_90,sm_80")
  contexts = [client.handle("cuDevicePrimaryCtxRetain", device) for device in (0, 1)]
  out = (ctypes.c_uint64 * 2)()
  ctypes.CDLL(str(tmp_path / "t.so")).both(client.library.cuCtxSetCurrent, client.library.cuCtxGetCurrent,
                                           *map(u64, contexts), out)
  assert [*out] == contexts


def test_what_gives_back_or_waits_has_nothing_left_to_do_at_the_end() -> None:
  """A destructor of a library's that is told an error there ends the process (Taichi); all else is told one."""
  codes = {name: ended(name) for name in (*cuda.FUNCTIONS, *cuda.BY_VALUE)}
  assert set(codes.values()) == {cuda.CUDA_SUCCESS, cuda.CUDA_ERROR_DEINITIALIZED}
  for name in ("cuMemFree_v2", "cuMemFreeHost", "cuMemFreeAsync", "cuStreamDestroy_v2", "cuEventDestroy_v2",
               "cuModuleUnload", "cuDevicePrimaryCtxRelease_v2", "cuStreamSynchronize", "cuCtxSynchronize",
               "cuMemHostUnregister", "cuCtxSetCurrent", "cuGraphExecDestroy"): assert not codes[name], name
  for name in ("cuInit", "cuMemAlloc_v2", "cuMemcpyDtoH_v2", "cuLaunchKernel", "cuCtxGetCurrent", "cuStreamQuery",
               "cuMemGetInfo_v2", "cuDeviceGetCount", "cuEventRecord"): assert codes[name], name
  client = Client()
  client.machine.close()
  for name, code in codes.items():
    if name not in ("cuGetErrorName", "cuGetErrorString"): assert getattr(client.library, name)() == code, name


def test_a_program_may_wait_in_its_own_way() -> None:
  """What is queued is done although nobody asks for it."""
  client, called = Client(), threading.Event()
  function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: called.set())
  client.machine.go_on_after(0.01)
  client.call("cuLaunchHostFunc", u64(0), function, u64(0))
  assert called.wait(60)
  client.machine.close()


def test_who_waits_runs_the_queues_alone(monkeypatch: pytest.MonkeyPatch) -> None:
  """Two threads that take turns would hand the machine over after each of them."""
  client, called = Client(), threading.Event()
  function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: called.set())
  client.call("cuLaunchHostFunc", u64(0), function, u64(0))
  machine, turns = client.machine, list[int]()

  def turn() -> bool:
    turns.append(threading.get_ident())
    time.sleep(0.001)
    return True
  try:
    with monkeypatch.context() as changed:
      changed.setattr(machine, "_turn", turn)
      machine.go_on_after(0.005)
      assert machine.run(lambda: len(turns) > 100, None)
    assert set(turns[10:]) == {threading.get_ident()}
    assert called.wait(60)
  finally: machine.close()


def test_other_processors_have_no_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("platform.machine", lambda: "aarch64")
  with pytest.raises(Unsupported, match="aarch64"): Loaded("libother.so.1", ["one"])


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("version", [None, "libmade.so.1"])
def test_a_linker_finds_its_functions(tmp_path: Path, version: str | None) -> None:
  """So that what a program links anew (Triton its launcher) needs the library; a linker reads sections."""
  (tmp_path / "libmade.so.1").write_bytes(library("libmade.so.1", ["first", "second"], version))
  (tmp_path / "user.c").write_text("int first(int); int user(void) { return first(3); }")
  command = ["cc", "-shared", "-fPIC", "-Wl,--as-needed,-z,defs", "user.c", "-L.", "-l:libmade.so.1", "-o", "user.so"]
  done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (0, "")
  made = (tmp_path / "user.so").read_bytes()
  assert b"\0libmade.so.1\0" in made and b"\0first\0" in made
  (tmp_path / "user.c").write_text("int third(int); int user(void) { return third(3); }")
  assert "third" in subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stderr
