"""Children of fork: they end quietly, get CUDA's own answer, and cost their parent nothing, with threads amid calls."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mock.cuda import forks
from tests.strength import examples

ROOT = Path(__file__).parents[3]


def test_children_of_a_program_amid_a_launch() -> None:
  done = subprocess.run([sys.executable, "-m", forks.__name__, str(examples(16))], cwd=ROOT, capture_output=True,
                        text=True)
  assert (done.returncode, done.stdout, done.stderr) == (0, f"0 of {examples(16)} wrong\n", "")


NATIVE = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <signal.h>
#include <sys/wait.h>
typedef unsigned long long u64;
extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuMemAlloc_v2(u64 *, size_t);
extern int cuMemcpyHtoD_v2(u64, const void *, size_t), cuMemcpyDtoH_v2(void *, u64, size_t), cuMemFree_v2(u64);
extern int cuMemsetD32_v2(u64, unsigned, size_t), cuCtxSynchronize(void);
static void *context; static volatile int stop; static int wrong;
static void *work(void *x) {
  unsigned out[256]; u64 at;
  if (cuCtxSetCurrent(context)) wrong++;
  for (unsigned t = 0; !stop; t++) {
    if (cuMemAlloc_v2(&at, 4096) || cuMemsetD32_v2(at, t, 256)) wrong++;
    if (cuMemcpyDtoH_v2(out, at, sizeof out) || cuMemFree_v2(at)) wrong++;
    for (int i = 0; i < 256; i++) wrong += out[i] != t;
  }
  return 0;
}
int main(int count, char **words) {
  unsigned in[256], out[256]; u64 kept; pthread_t t[2]; int children = atoi(words[1]);
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 9;
  for (unsigned i = 0; i < 256; i++) in[i] = i * 3;
  if (cuMemAlloc_v2(&kept, sizeof in) || cuMemcpyHtoD_v2(kept, in, sizeof in)) return 8;
  for (int i = 0; i < 2; i++) pthread_create(t + i, 0, work, 0);
  for (int k = 0; k < children; k++) {
    usleep(1000 * (k * 7 % 40));
    pid_t pid = fork();
    if (!pid) {
      if (k % 3 == 0) _exit(0);
      if (k % 3 == 1) exit(0);
      alarm(20);
      u64 at; int code = cuMemAlloc_v2(&at, 64);
      _exit(code == 3 ? 0 : 100 + code % 100);
    }
    int status; waitpid(pid, &status, 0);
    if (status) { printf("child %d: %x\\n", k, status); wrong++; }
    if (cuMemcpyDtoH_v2(out, kept, sizeof out)) wrong++;
    for (int i = 0; i < 256; i++) wrong += out[i] != in[i];
  }
  stop = 1;
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  printf("%d wrong\\n", wrong);
  return wrong != 0;
}
"""


def test_children_of_a_native_program(tmp_path: Path) -> None:
  """C's own fork, while threads of C are in Python."""
  compiler = shutil.which("gcc") or shutil.which("cc")
  if compiler is None: pytest.skip("needs a C compiler")
  (tmp_path / "p.c").write_text(NATIVE)
  subprocess.run([compiler, "-O1", "-w", "-shared", "-fPIC", "-pthread", "p.c", "-o", "p"], cwd=tmp_path, check=True)
  command = [sys.executable, "-c", "from tinyhw.cli import main; main()", "run", str(tmp_path / "p"), str(examples(18))]
  done = subprocess.run(command, capture_output=True, text=True)
  assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")
