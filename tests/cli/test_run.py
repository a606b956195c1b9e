"""`tinyhw run`: programs of CUDA's driver in a process of their own."""
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_cli import run
from tests.wire.test_fatbin import packed
from tinyhw.cli import children
from tinyhw.compile.nvidia.installed import files
from tinyhw.mock.cuda.runtime.functions import SONAME

if sys.platform != "linux": pytest.skip("the stand-in is made for Linux", allow_module_level=True)

PROGRAM = '''
"""Adds 1 to 64 numbers on a GPU."""
import ctypes, os, sys

cuda = ctypes.CDLL("libcuda.so.1")
assert "CUDA_PATH" not in os.environ  # the toolkit's home: there is none
place = os.path.join(os.environ["LD_LIBRARY_PATH"].split(":")[0], "libcuda.so.1")  # where some look for it
assert os.path.isfile(place) and ctypes.CDLL(place).cuInit(0) == 0 and ctypes.CDLL(place)._handle == cuda._handle
def checked(code):
  if code: raise SystemExit(f"CUDA error {code}")
def made(function, *arguments):
  handle = ctypes.c_uint64()
  checked(function(ctypes.byref(handle), *arguments))
  return handle
device, context = ctypes.c_int(), ctypes.c_uint64()
checked(cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])))
checked(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
text = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .u64 %rd<3>; .reg .u32 %r<3>;
  ld.param.u64 %rd0, [p];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 4;
  add.u64 %rd0, %rd0, %rd1;
  ld.global.u32 %r1, [%rd0];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd0], %r1;
  ret;
}"""
module = made(cuda.cuModuleLoadData, text)
kernel = made(cuda.cuModuleGetFunction, module, b"k")
memory = made(cuda.cuMemAlloc_v2, ctypes.c_size_t(256))
numbers = (ctypes.c_uint32 * 64)(*range(64))
checked(cuda.cuMemcpyHtoD_v2(memory, numbers, ctypes.c_size_t(256)))
if sys.argv[3:] == ["freed"]: checked(cuda.cuMemFree_v2(memory))
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
checked(cuda.cuLaunchKernel(kernel, 1, 1, 1, int(sys.argv[2]), 1, 1, 0, None, parameters, None))
checked(cuda.cuCtxSynchronize())
checked(cuda.cuMemcpyDtoH_v2(numbers, memory, ctypes.c_size_t(256)))
print(list(numbers) == [k + 1 for k in range(64)], __name__, sys.argv[1:])
cuda.cuGraphicsMapResources(0, None, None)
'''


@pytest.fixture
def program(tmp_path: Path) -> str:
  (tmp_path / "add_one.py").write_text(PROGRAM)
  return str(tmp_path / "add_one.py")


def test_a_program_runs_as_it_is(program: str) -> None:
  done = run("run", "--mockgpu", "sm_90,sm_80", program, "1", "64")
  assert (done.returncode, done.stdout) == (0, "True __main__ ['1', '64']\n"), done.stderr
  assert done.stderr == "tinyhw: cuGraphicsMapResources: cuGraphicsMapResources is not modelled\n"


def test_a_program_that_goes_on_without_a_gpu_is_told(tmp_path: Path) -> None:
  """As JAX does. One that only asks what there is hears nothing."""
  (tmp_path / "asks.py").write_text("""import ctypes, sys
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
if sys.argv[1:]: cuda.cuGraphicsMapResources(0, None, None)""")
  assert run("run", str(tmp_path / "asks.py")).stderr == ""
  assert run("run", str(tmp_path / "asks.py"), "more").stderr == (
    "tinyhw: no kernel ran on a mock card; what was refused:\n"
    "tinyhw: cuGraphicsMapResources: cuGraphicsMapResources is not modelled\n")


def test_what_a_kernel_does_wrong_is_told(program: str) -> None:
  done = run("run", program, "0", "64", "freed", MOCKGPU="sm_80")
  assert done.returncode == 1 and "CUDA error 700" in done.stderr and not done.stdout
  assert "GPU page fault" in done.stderr and "in kernel k at PTX:1" in done.stderr


def test_a_module_runs_by_its_name(tmp_path: Path) -> None:
  (tmp_path / "one.py").write_text("import sys, ctypes\nprint(ctypes.CDLL('libcuda.so.1').cuInit(0), sys.argv[1:])\n")
  done = run("run", "-m", "one", "--mockgpu", PYTHONPATH=str(tmp_path))
  assert (done.returncode, done.stdout) == (0, "0 ['--mockgpu']\n"), done.stderr


def test_its_exit_status_is_the_programs(tmp_path: Path) -> None:
  (tmp_path / "bad.py").write_text("raise SystemExit(7)\n")
  assert run("run", str(tmp_path / "bad.py")).returncode == 7
  (tmp_path / "raises.py").write_text("raise KeyError('x')\n")
  done = run("run", str(tmp_path / "raises.py"))
  assert done.returncode == 1 and "KeyError" in done.stderr


def test_what_cannot_run_is_said() -> None:
  done = run("run", "nothing.py")
  assert done.returncode == 1
  assert done.stderr == "tinyhw: nothing.py: there is no such file; -m runs a module by its name\n"
  done = run("run", "--mockgpu", "sm_1", __file__)
  assert done.returncode == 1 and "no card is called 'sm_1'" in done.stderr


NATIVE = '''
typedef unsigned long long u64; typedef unsigned int u32;
typedef struct { u32 x, y, z; } dim3;
extern void **__cudaRegisterFatBinary(void *); extern void __cudaRegisterFatBinaryEnd(void **);
extern void __cudaUnregisterFatBinary(void **);
extern void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *,
                                   int *);
extern int cudaMalloc(void **, u64), cudaMemcpy(void *, const void *, u64, int), cudaDeviceSynchronize(void);
extern int cudaLaunchKernel(const void *, dim3, dim3, void **, u64, void *);
extern int printf(const char *, ...), atoi(const char *), atexit(void (*)(void)); extern void exit(int), abort(void);
static const unsigned char fat[] __attribute__((aligned(8))) = { BYTES };
static struct { int magic, version; const void *data; void *name; } wrapper = { 0x466243b1, 1, fat, 0 };
static void **handle;
static void k(void) {}
static void last(void) { __cudaUnregisterFatBinary(handle); }
__attribute__((constructor)) static void first(void) {
  handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, (const char *)k, "k", "k", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  atexit(last);
}
int main(int count, char **words) {
  u32 numbers[64]; void *memory, *arguments[1] = { &memory };
  for (u32 i = 0; i < 64; i++) numbers[i] = i;
  if (cudaMalloc(&memory, 256) || cudaMemcpy(memory, numbers, 256, 1)) return 2;
  dim3 grid = { 1, 1, 1 }, block = { atoi(words[1]), 1, 1 };
  if (block.x == 96) memory = (char *)memory + (1 << 20);
  int code = cudaLaunchKernel((void *)k, grid, block, arguments, 0, 0);
  if (!code) code = cudaDeviceSynchronize();
  cudaMemcpy(numbers, memory, 256, 2);
  printf("%d %d: %d %u %u\\\\n", count, atoi(words[1]), code, numbers[0], numbers[63]);
  if (count > 2 && words[2][0] == 'e') exit(7);
  if (count > 2 && words[2][0] == 'a') abort();
  return code ? 3 : 0;
}
'''


@pytest.fixture(params=[("-shared", "-fPIC"), ("-pie", "-fPIE")],
                ids=["library", "executable"])
def native(tmp_path: Path, request: pytest.FixtureRequest) -> str:
  """A program in C, with what nvcc would add to it."""
  compiler = shutil.which("gcc") or shutil.which("cc")
  if compiler is None: pytest.skip("needs a C compiler")
  text = PROGRAM.partition('text = b"""')[2].partition('"""')[0]
  data = packed((1, 80, text.encode(), 0x11, 0))
  (tmp_path / "p.c").write_text(NATIVE.replace("\\\\", "\\").replace("BYTES", ",".join(map(str, data))))
  names = re.findall(r"\b(?:__)?cuda[A-Z]\w+(?=\()", NATIVE)
  (tmp_path / "stub.c").write_text("".join(f"void {name}(void) {{}}\n" for name in dict.fromkeys(names)))
  (tmp_path / "version").write_text(f"{SONAME} {{ global: *; }};")  # as in the vendor's library
  subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{SONAME},--version-script=version", "stub.c", "-o",
                  "libcudart.so"], cwd=tmp_path, check=True)
  subprocess.run([compiler, "-O1", "-w", *request.param, "p.c", "-o", "p", "-L.", "-lcudart"], cwd=tmp_path, check=True)
  return str(tmp_path / "p")


def test_a_native_program_runs_on_a_mock_card(native: str) -> None:
  done = run("run", "--mockgpu", "sm_80", native, "64")
  assert (done.returncode, done.stdout, done.stderr) == (0, "2 64: 0 1 64\n", "")
  done = run("run", "--mockgpu", "sm_80", native, "96")  # which asks for a wrong address
  assert done.returncode == 3 and done.stdout.startswith("2 96: 700 ")
  assert "tinyhw: [CUDA][E] CUDA0.stream0: CUDA_ERROR_ILLEGAL_ADDRESS" in done.stderr


def test_a_native_program_that_ends_itself_is_told_of(native: str) -> None:
  done = run("run", "--mockgpu", "sm_80", native, "96", "exit")
  assert done.returncode == 7 and "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stderr
  done = run("run", "--mockgpu", "sm_80", native, "96", "abort")
  assert done.returncode == -6 and "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stderr


def test_an_interrupt_ends_a_native_program_where_it_does_not_catch_it(tmp_path: Path) -> None:
  compiler = shutil.which("gcc") or shutil.which("cc")
  if compiler is None: pytest.skip("needs a C compiler")
  (tmp_path / "p.c").write_text("#include <unistd.h>\nint main(void) { write(1, \"go\", 2); for (;;) pause(); }\n")
  subprocess.run([compiler, "-shared", "-fPIC", "p.c", "-o", "p"], cwd=tmp_path, check=True)
  command = [sys.executable, "-c", "from tinyhw.cli import main; main()", "run", str(tmp_path / "p")]
  with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
    assert process.stdout is not None
    try:
      assert process.stdout.read(2) == b"go"
      process.send_signal(signal.SIGINT)
      assert process.wait(30) == -signal.SIGINT
    finally: process.kill()


def test_files_that_are_no_programs_are_refused(native: str, tmp_path: Path) -> None:
  data = bytearray(Path(native).read_bytes())
  data[16] = 2
  (tmp_path / "fixed").write_bytes(data)
  done = run("run", str(tmp_path / "fixed"))
  assert done.returncode == 1 and "a program for one address" in done.stderr
  (tmp_path / "e.c").write_text("int nothing;\n")
  subprocess.run(["gcc", "-shared", "-fPIC", "e.c", "-o", "e"], cwd=tmp_path, check=True)
  done = run("run", str(tmp_path / "e"))
  assert done.returncode == 1 and "there is no main" in done.stderr
  done = run("run", sys.executable, "program.py")
  assert done.returncode == 1 and "is Python, which runs here already" in done.stderr
  (tmp_path / "s.c").write_text("void __cudaRegisterFatBinary(void) {}\nint main(void) { return 0; }\n")
  subprocess.run(["gcc", "-shared", "-fPIC", "s.c", "-o", "s"], cwd=tmp_path, check=True)
  done = run("run", "--mockgpu", "sm_80", str(tmp_path / "s"))
  assert done.returncode == 1 and "NVIDIA's runtime is linked into it" in done.stderr
  assert "-cudart shared" in done.stderr


def test_variables_of_libraries_in_an_executable_are_the_libraries(tmp_path: Path) -> None:
  """Executables have copies of stderr; getopt's would stay what they were."""
  compiler = shutil.which("gcc") or shutil.which("cc")
  if compiler is None: pytest.skip("needs a C compiler")
  for name, text, code in (
      ("o", "extern void *stderr; extern int fputs(); int main() { fputs(\"here\", stderr); return 0; }", 0),
      ("g", "extern int optind; int main() { return optind; }", 1)):
    (tmp_path / f"{name}.c").write_text(text)
    subprocess.run([compiler, "-w", "-O1", "-pie", "-fPIE", f"{name}.c", "-o", name], cwd=tmp_path, check=True)
    done = run("run", "--mockgpu", "sm_80", str(tmp_path / name))
    assert done.returncode == code, done.stderr
    assert ("here" if not code else "optind lies in the executable") in done.stderr


CHILDREN = '''
import builtins, ctypes, multiprocessing, os, subprocess, sys

def count():
  cuda, found = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(-1)
  codes = cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(found))
  return (*codes, found.value)

def put(queue): queue.put(count())

if __name__ == "__main__":
  if len(sys.argv) > 1: raise SystemExit(print(sys.argv[1], *count(), builtins.seen, flush=True))
  def forked():
    if not (pid := os.fork()):
      print("fork", *count(), flush=True)
      os._exit(0)
    os.waitpid(pid, 0)
  forked()
  print("self", *count(), flush=True)
  forked()
  subprocess.run([sys.executable, __file__, "child"], check=True)
  context = multiprocessing.get_context("spawn")
  queue = context.Queue()
  child = context.Process(target=put, args=(queue,))
  child.start()
  print("spawn", *queue.get(timeout=60), flush=True)
  child.join()
'''


def test_children_of_a_program_have_machines_of_their_own(tmp_path: Path) -> None:
  """But those that fork makes of a process that has initialized the driver, as with a real one. Another sitecustomize
  is run too."""
  (tmp_path / "children.py").write_text(CHILDREN)
  (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.seen = 5\n")
  done = run("run", "--mockgpu", "sm_90,sm_80", str(tmp_path / "children.py"), PYTHONPATH=str(tmp_path))
  assert done.returncode == 0, done.stderr
  assert done.stdout.splitlines() == ["fork 0 0 2", "self 0 0 2", "fork 3 3 -1", "child 0 0 2 5", "spawn 0 0 2"]


@pytest.mark.parametrize("native", [("-pie", "-fPIE")], indirect=True)
def test_a_native_child_has_a_machine(native: str, tmp_path: Path) -> None:
  (tmp_path / "start.py").write_text(
    f"import subprocess, sys\nsys.exit(subprocess.run([{native!r}, '64', 'e f']).returncode)\n")
  done = run("run", "--mockgpu", "sm_80", str(tmp_path / "start.py"))
  assert (done.returncode, done.stdout, done.stderr) == (7, "3 64: 0 1 64\n", "")


LINKED = """
import ctypes
linker = ctypes.CDLL("libnvJitLink.so.12")
print(getattr(linker, "__nvJitLinkCreate_12_0")(None, 0, None), hasattr(linker, "nvJitLinkVersion"))
"""


@pytest.mark.skipif(any(f.endswith(".12") for f in files("nvJitLink", "nvjitlink")), reason="there is this nvJitLink")
def test_libraries_that_were_linked_with_nvidias_linker_load(tmp_path: Path) -> None:
  """They fail where they would link; who looks for the linker by the names of its header finds none."""
  (tmp_path / "linked.py").write_text(LINKED)
  done = run("run", "--mockgpu", "sm_90", str(tmp_path / "linked.py"))
  assert (done.returncode, done.stdout) == (0, "6 False\n")
  name = "__nvJitLinkCreate_12_0"
  assert done.stderr == f"tinyhw: {name}: {name} makes machine code, which is not executed\n"


COMPILER = """
import ctypes, os, subprocess
tool = os.environ["TRITON_PTXAS_PATH"]
def ptxas(*words): return subprocess.run([tool, *words], capture_output=True, text=True)
print(tool == os.environ["TRITON_PTXAS_BLACKWELL_PATH"], ptxas("--version").stdout.split("release ")[1].split(",")[0])
text = ".version 8.0\\n.target sm_90a\\n.address_size 64\\n.visible .entry k() { ret; }"
for name, body in ("good.ptx", text), ("bad.ptx", text.replace("ret;", "ret")):
  with open(name, "w") as file: file.write(body)
  done = ptxas("-lineinfo", "-v", "--opt-level", "3", "--gpu-name=sm_90a", name, "-o", name + ".o")
  print(done.returncode, "ptxas fatal" in done.stderr, os.path.exists(name + ".o"))
print(ptxas("--gpu-name=sm_80", "good.ptx", "-o", "none.o").returncode, ptxas("-o", "none.o").returncode)
cuda, device, made = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), [ctypes.c_uint64() for _ in range(3)]
image = open("good.ptx.o", "rb").read()
print(cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuCtxCreate_v2(ctypes.byref(made[0]), 0, device),
      cuda.cuModuleLoadData(ctypes.byref(made[1]), image),
      cuda.cuModuleGetFunction(ctypes.byref(made[2]), made[1], b"k"),
      cuda.cuLaunchKernel(made[2], 1, 1, 1, 1, 1, 1, 0, None, None, None), cuda.cuCtxSynchronize())
"""


def test_compilers_find_a_ptxas_that_leaves_ptx_as_it_is(tmp_path: Path) -> None:
  start = f"os, subprocess\nos.chdir({str(tmp_path)!r})"
  (tmp_path / "compiler.py").write_text(COMPILER.replace("os, subprocess", start))
  done = run("run", "--mockgpu", "sm_90", str(tmp_path / "compiler.py"))
  assert (done.returncode, done.stderr) == (0, "")
  assert done.stdout.splitlines() == ["True 13.0", "0 False True", "255 True False", "255 255", "0 0 0 0 0 0 0"]
ENDS = """
import os, signal, sys
print(os.environ["LD_LIBRARY_PATH"].split(":")[1], flush=True)
if sys.argv[1] == "exec": os.execv("/bin/true", ["true"])
if sys.argv[1] == "_exit": os._exit(0)
if sys.argv[1] != "return": os.kill(os.getpid(), int(sys.argv[1]))
"""


def test_however_a_program_ends_it_leaves_one_folder_for_all(tmp_path: Path) -> None:
  (tmp_path / "ends.py").write_text(ENDS)
  (tmp_path / "left").mkdir()
  places = set()
  for how in ("return", str(int(signal.SIGTERM)), str(int(signal.SIGKILL)), "exec", "_exit"):
    done = run("run", str(tmp_path / "ends.py"), how, TMPDIR=str(tmp_path / "left"))
    places.add(done.stdout.strip())
    assert done.returncode == (-int(how) if how.isdigit() else 0), done.stderr
  left = [str(p) for p in (tmp_path / "left").glob("tinyhw-run-*")]
  assert left == [*places]
  assert sorted(os.listdir(left[0])) == ["in-500", "libcuda.so", "libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1",
                                         "ptxas", "sitecustomize.py"]


def test_folders_of_children_are_told_apart_by_what_is_in_them_and_mended(tmp_path: Path,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
  one, other = children.folder_of({"a": b"1"}), children.folder_of({"a": b"2"})
  assert one != other and (one / "a").read_bytes() == b"1" and (other / "a").read_bytes() == b"2"
  assert one.stat().st_mode & 0o777 == 0o700
  (one / "a").write_bytes(b"broken")
  assert children.folder_of({"a": b"1"}) == one and (one / "a").read_bytes() == b"1"
  assert os.listdir(one) == ["a"]


@pytest.mark.parametrize("how", ["writable", "link", "file"])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       how: str) -> None:
  monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
  at_exit: list[Callable[[], None]] = []
  monkeypatch.setattr(children, "at_end", lambda step, what: at_exit.append(what))
  known = children.folder_of({"a": b"1"})
  assert not at_exit
  if how == "writable": known.chmod(0o720)
  else:
    known.rename(tmp_path / "elsewhere")
    if how == "link": known.symlink_to(tmp_path / "elsewhere")
    else: known.write_text("")
  new = children.folder_of({"a": b"1"})
  assert new != known and (new / "a").read_bytes() == b"1"
  [gone] = at_exit
  gone()
  assert not new.exists() and known.exists()


@pytest.mark.parametrize("checks, status", [("1", 1), ("race", 1), ("report", 0), ("0", 0), ("workgroup-race", 0)])
def test_what_a_kernel_does_is_checked(tmp_path: Path, checks: str, status: int) -> None:
  """Threads of two warps read a place in shared memory while others write it."""
  racing = PROGRAM.replace(".reg .u64 %rd<3>;", ".shared .b32 place; .reg .u64 %rd<3>;").replace(
    "add.u32 %r1, %r1, 1;", "add.u32 %r1, %r1, 1; st.shared.u32 [place], %r0; ld.shared.u32 %r2, [place];")
  (tmp_path / "racing.py").write_text(racing)
  done = run("run", "--mockgpu", "sm_90", str(tmp_path / "racing.py"), "0", "64", EMU_CHECK=checks)
  assert done.returncode == status, done.stderr
  assert ("race: " in done.stderr and "shared memory" in done.stderr) is (checks in {"1", "race", "report"})
  if status: assert "CUDA error 719" in done.stderr or "CUDA_ERROR_LAUNCH_FAILED" in done.stderr


OUTPUTS = """
import atexit, ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
cuda.cuGraphicsMapResources(0, None, None)
atexit.register(lambda: cuda.cuGraphicsUnmapResources(0, None, None))
{ends}
"""


@pytest.mark.parametrize("ends", ["pass", "sys.stdout.close()", "sys.stdout = None", "os.close(1)",
                                  "sys.stdout = type('Mine', (), {'write': len})()",
                                  "sys.stderr.close()", "sys.stderr = None", "sys.stdout.close(); sys.stderr.close()"])
def test_the_report_is_told_however_a_program_leaves_its_outputs(tmp_path: Path, ends: str) -> None:
  """And with it what its last functions call."""
  (tmp_path / "ends.py").write_text(OUTPUTS.format(ends=ends))
  done = run("run", str(tmp_path / "ends.py"))
  assert [line for line in done.stderr.splitlines() if "not modelled" in line] == [
    f"tinyhw: {name}: {name} is not modelled" for name in ("cuGraphicsMapResources", "cuGraphicsUnmapResources")]
  assert "Traceback" not in done.stderr
