"""The end of a process: one place, one order, whatever fails, in a forked child too."""
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_layout import ROOT
from tinyhw.core.ending import Step

HEAD = """
import os, sys, threading
from tinyhw.core.ending import Step, at_end
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""


def ended(code: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-c", HEAD + code], capture_output=True, text=True, timeout=60)


def test_steps_follow_each_other_whoever_asked_first() -> None:
  done = ended("""
for step in reversed(Step):
  for n in range(2): at_end(step, lambda step=step, n=n: say(step.name, n))
""")
  assert done.stdout.split("\n")[:-1] == [f"{step.name} {n}" for step in Step for n in (1, 0)]
  assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("error", ["ValueError('wrong')", "KeyboardInterrupt()", "SystemExit(3)"])
def test_what_one_raises_is_told_and_the_others_are_called(error: str) -> None:
  done = ended(f"""
def fails(): raise {error}
at_end(Step.REPORTS, fails)
at_end(Step.DEVICES, lambda: say("closed"))
""")
  assert done.stdout == "closed\n" and error.partition("(")[0] in done.stderr and done.returncode == 0


def test_what_is_asked_for_meanwhile_has_its_turn() -> None:
  done = ended("""
def one():
  say("one")
  at_end(Step.FILES, lambda: say("last"))
  at_end(Step.REPORTS, lambda: say("next"))
at_end(Step.DEVICES, one)
at_end(Step.THREADS, lambda: say("then"))
""")
  assert done.stdout.split() == ["one", "next", "then", "last"]


def test_a_child_does_its_own_and_what_it_inherits() -> None:
  done = ended("""
at_end(Step.DEVICES, lambda: say("both", os.getpid() == parent), inherited=True)
at_end(Step.FILES, lambda: say("parent", os.getpid() == parent))
parent = os.getpid()
if not os.fork():
  at_end(Step.REPORTS, lambda: say("child", os.getpid() != parent))
  sys.exit()
os.wait()
""")
  assert done.stdout.split("\n")[:-1] == ["child True", "both False", "both True", "parent True"]
  assert (done.returncode, done.stderr) == (0, "")


def test_nobody_is_in_llvm_when_its_library_ends() -> None:
  """A daemon that LLVM keeps busy all the time has left it, and gets in no more."""
  done = ended("""
import llvmlite.binding as llvm
from llvmlite.binding.ffi import lib
llvm.initialize_native_target()
started, inside = threading.Event(), []
def work():
  while True:
    llvm.parse_assembly("define i32 @f() { ret i32 7 }")
    started.set()
threading.Thread(target=work, daemon=True).start()
started.wait()
from tinyhw.core import ending
ending.end()
taken = []
thread = threading.Thread(target=lambda: taken.append(lib._lock._lock.acquire(timeout=0.2)))
thread.start()
thread.join()
say(taken, llvm.parse_assembly("define i32 @f() { ret i32 7 }").get_function("f").name)
""")
  assert (done.returncode, done.stdout, done.stderr) == (0, "[False] f\n", "")


def asks(text: str) -> list[str]:
  """The calls of a module by which Python calls something at its end. A `weakref.finalize` does, unless it is told not
  to, by its name or where it is made."""
  nodes = list(ast.walk(ast.parse(text)))
  assigned = {ast.unparse(t): n.value for n in nodes if isinstance(n, ast.Assign) for t in n.targets}
  quiet = {name.removesuffix(".atexit") for name, value in assigned.items()
           if name.endswith(".atexit") and ast.unparse(value) == "False"}
  quiet |= {ast.unparse(assigned[name]) for name in quiet & assigned.keys()}
  calls = [n for n in nodes if isinstance(n, ast.Call) and ast.unparse(n) not in quiet]
  return [name for n in calls if (name := ast.unparse(n.func)) in {
    "atexit.register", "threading._register_atexit", "weakref.finalize", "finalize", "Finalize", "util.Finalize"}]


def test_who_asks_python_for_its_end_is_seen() -> None:
  assert asks("atexit.register(f)\nthreading._register_atexit(f)\nweakref.finalize(a, f)") == [
    "atexit.register", "threading._register_atexit", "weakref.finalize"]
  assert not asks("weakref.finalize(a, f).atexit = False") and asks("weakref.finalize(a, f).atexit = True")
  assert not asks("s.x = finalize(a, f)\ns.x.atexit = False") and asks("s.x = finalize(a, f)\ns.y.atexit = False")


def test_nobody_else_asks_python_for_its_end() -> None:
  found = []
  for folder in ("tinyhw", "emulator", "mock", "tools"):
    for path in sorted((ROOT / folder).rglob("*.py")):
      if path.is_symlink() or any(p.is_symlink() for p in path.parents if p != ROOT): continue
      if not any(word in (text := path.read_text()) for word in ("atexit", "finalize(", "Finalize(")): continue
      found += [path.relative_to(ROOT)] * len(asks(text))
  assert found == [Path("tinyhw/core/ending.py"), Path("tools/mutate/hook/sitecustomize.py")]
