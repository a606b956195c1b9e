"""The processes that compile: LLVM aborts, hangs, is killed, and the launch goes on with the reference."""
from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator.engines.test_amdgcn import auto, forget, sample
from tests.emulator.gpu import ARCH, Gpu
from tests.emulator.jit.amdgcn.test_jit import CODE, END, OUT, descriptor, encode, inputs, outcome, prologue, store
from tinyhw.core.host import Host
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.engines import amdgcn as engines
from tinyhw.emulator.engines.amdgcn import dispatch as choose
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.amdgcn import forms, run
from tinyhw.emulator.jit.amdgcn.translate import Translator
from tinyhw.emulator.jit.native import host
from tinyhw.emulator.jit.refusal import OWN, CompilerFailed, NotCompiled

GOOD = "define i32 @run() {\n  ret i32 7\n}"
ABORTS = """declare i32 @llvm.amdgcn.workitem.id.x()
define i32 @run() {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  ret i32 %x
}"""


@pytest.fixture
def server() -> Iterator[servers.Server]:
  made = servers.Server(False)
  yield made
  made.stop()


def jit(*arguments: Any, **more: Any) -> Any: return choose(*arguments, engine="jit", **more)


def one(server: servers.Server, *texts: str, seconds: float = 60) -> list[bytes]:
  """Objects of texts, by a server that has nothing at hand."""
  server.known.clear()
  return another(server, *texts, seconds=seconds)


def another(server: servers.Server, *texts: str, seconds: float = 60) -> list[bytes]:
  with servers.Job(server, host(), seconds) as job:
    for text in texts: job.send(text)
    return job.objects()


def test_what_was_compiled_before_is_at_hand(server: servers.Server, monkeypatch: pytest.MonkeyPatch) -> None:
  """By its whole text and how it is compiled; what failed is tried again, and the oldest goes."""
  sent, send = list[str](), servers.Server.send
  def seen(self: servers.Server, text: str, *how: Any) -> int:
    sent.append(text)
    return send(self, text, *how)
  monkeypatch.setattr(servers.Server, "send", seen)
  server.known.limit = 2
  texts = [GOOD.replace("@run", f"@f{n}") for n in range(3)]
  first = [*another(server, texts[0], texts[0]), *another(server, texts[1], texts[0])]
  assert first[0] == first[1] == first[3] != first[2] and sent == texts[:2]
  assert another(server, texts[1], texts[2]) == [first[2], *another(server, texts[2])] and sent == texts
  assert another(server, texts[0]) == first[:1] and sent == [*texts, texts[0]]
  with servers.Job(server, host(), 60, servers.HOT) as job:
    job.send(texts[0])
    job.objects()
  assert len(sent) == 5
  for _ in range(2):
    with pytest.raises(NotCompiled): another(server, "no text")
  assert len(sent) == 7


def test_objects_come_in_the_order_of_texts(server: servers.Server) -> None:
  others = [GOOD.replace("@run", f"@f{n}") for n in range(20)]
  for n, code in enumerate(one(server, *others)): assert code[:4] == b"\x7fELF" and f"f{n}".encode() in code


def test_what_is_no_text_of_llvm_is_refused_and_the_process_lives(server: servers.Server) -> None:
  one(server, GOOD)
  assert server.process is not None
  pid = server.process.pid
  with pytest.raises(NotCompiled, match="expected top-level entity") as refused: one(server, "nonsense")
  assert not isinstance(refused.value, CompilerFailed)
  assert one(server, GOOD) and server.process.pid == pid


def test_an_abort_is_told_in_its_words_and_the_next_job_has_a_new_process(server: servers.Server) -> None:
  with pytest.raises(CompilerFailed, match="LLVM gave up: LLVM ERROR: Cannot select: intrinsic"): one(server, ABORTS)
  assert one(server, GOOD)


def test_a_process_that_is_killed_at_work(server: servers.Server) -> None:
  with (pytest.raises(CompilerFailed, match="LLVM gave up: its process ended with -9"),
        servers.Job(server, host(), 60) as job):
    job.send(GOOD)
    assert server.process is not None
    server.process.kill()
    server.process.wait()
    job.objects()
  assert one(server, GOOD)


def test_a_process_that_was_killed_while_idle_is_replaced(server: servers.Server) -> None:
  one(server, GOOD)
  assert server.process is not None
  server.process.kill()
  server.process.wait()
  assert one(server, GOOD)


def test_one_that_does_not_end_is_killed(server: servers.Server) -> None:
  one(server, GOOD)
  assert server.process is not None
  pid = server.process.pid
  os.kill(pid, signal.SIGSTOP)
  with pytest.raises(CompilerFailed, match="LLVM did not end within"): one(server, GOOD, seconds=0.3)
  with pytest.raises(ProcessLookupError): os.kill(pid, 0)
  assert one(server, GOOD)


def test_answers_to_a_job_that_came_to_no_end_are_nobodys(server: servers.Server) -> None:
  with pytest.raises(NotCompiled, match="why"), servers.Job(server, host(), 60) as job:
    job.send(GOOD)
    raise NotCompiled("why")
  assert b"other" in one(server, GOOD.replace("@run", "@other"))[0]


def test_no_process_at_all(server: servers.Server, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "executable", "/nowhere/python")
  with pytest.raises(CompilerFailed, match="no process that compiles: .*No such file"): one(server, GOOD)
  monkeypatch.undo()
  assert one(server, GOOD)


def test_threads_take_turns(server: servers.Server) -> None:
  def work(n: int) -> bool:
    texts = [GOOD.replace("@run", f"@f{n}_{k}") for k in range(4)]
    return all(f"f{n}_{k}".encode() in code for k, code in enumerate(one(server, *texts)))
  with ThreadPoolExecutor(6) as pool: assert all(pool.map(work, range(30)))


def test_nothing_is_left_open(server: servers.Server) -> None:
  def handles() -> int: return len(os.listdir("/proc/self/fd"))
  before = handles()
  for _ in range(3):
    one(server, GOOD)
    server.stop()
    with pytest.raises(CompilerFailed): one(server, ABORTS)
  assert handles() == before


def test_one_is_started_before_it_is_wanted(server: servers.Server, monkeypatch: pytest.MonkeyPatch) -> None:
  """When interpreting has cost half of what compiling would: after 200 turns of a loop, and not after 50."""
  monkeypatch.setattr(servers, "_SERVERS", (server, server))
  monkeypatch.setattr(engines, "_LLVM", 10_000.0)
  monkeypatch.setattr(engines, "_COMPILING", 0.0)
  monkeypatch.setattr(engines, "_BLOCKS_A_LOOK", 1)
  loop = encode("s_sub_u32", src0=20, src1=129, sdst=20) + encode("s_cmp_lg_u32", src0=20, src1=128)
  loop += encode("s_cbranch_scc1", simm16=-(len(loop) // 4 + 1) & 0xFFFF)
  for turns, started in ((50, False), (200, True)):
    code = encode("s_mov_b32", src0=255, sdst=20, literal=turns) + loop
    assert outcome(auto, code, b"", descriptor())[1].engine == "ref" and (server.process is not None) == started


def test_a_forked_child_has_a_process_of_its_own() -> None:
  code = """
import os
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.native import host
def one():
  with servers.job(False, host()) as job:
    job.send("define i32 @run() { ret i32 7 }")
    job.objects()
  return servers._SERVERS[0].process.pid
first = one()
child = os.fork()
if not child:
  second = one()
  servers._stop()
  os._exit(0 if second != first else 1)
assert os.waitpid(child, 0)[1] == 0
assert one() == first
print(first)
"""
  pid = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
  assert gone(pid)


def test_a_process_ends_though_llvm_does_not() -> None:
  """The thread that has hot programs compiled waits for a stopped process when the main thread ends."""
  code = """
import os, signal, threading
from tinyhw.emulator.jit.background import BACKGROUND
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.native import host
began = threading.Event()
def work():
  with servers.job(True, host()) as job:
    job.send("define i32 @run() { ret i32 7 }")
    os.kill(servers._SERVERS[1].process.pid, signal.SIGSTOP)
    print(servers._SERVERS[1].process.pid, flush=True)
    began.set()
    try: job.objects()
    except servers.CompilerFailed: pass
BACKGROUND.add(work)
began.wait()
"""
  start = time.monotonic()
  pid = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
  assert time.monotonic() - start < servers.SECONDS[1] / 2 and gone(pid)


@pytest.mark.parametrize("share, comes", [(0.1, True), (0.01, False)])
def test_a_busy_machine_is_waited_for(share: float, comes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  """The limit is of a processor's time: LLVM that gets little of one goes on, one that gets nothing stands still."""
  monkeypatch.setattr(servers, "SECONDS", (0.2, 0.2))
  monkeypatch.setattr(servers.Server, "_taken", lambda self: share * time.monotonic())
  server = servers.Server(False)
  try:
    with servers.Job(server, host(), 0.2) as job:
      job.send("define i32 @run() { ret i32 7 }")
      assert server.process is not None
      os.kill(server.process.pid, signal.SIGSTOP)
      if comes:
        threading.Timer(0.6, os.kill, (server.process.pid, signal.SIGCONT)).start()
        assert len(job.objects()) == 1
      else:
        with pytest.raises(CompilerFailed, match="LLVM did not end within 0.2 s"): job.objects()
  finally: server.stop()


def test_it_ends_when_its_parent_is_killed() -> None:
  code = """
import time
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.native import host
with servers.job(False, host()) as job:
  job.send("define i32 @run() { ret i32 7 }")
  job.objects()
print(servers._SERVERS[0].process.pid, flush=True)
time.sleep(60)
"""
  with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
  assert gone(pid)


def gone(pid: int) -> bool:
  """Whether a process ends within a few seconds."""
  for _ in range(200):
    if not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text(): return True
    time.sleep(0.05)
  return False


# ---- launches

@pytest.mark.parametrize("how", ["aborts", "hangs"])
@pytest.mark.parametrize("engine", [jit, auto])
def test_a_program_that_llvm_fails_over_is_interpreted(engine: Any, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(engines, "_LLVM", 0.0)
  monkeypatch.setattr(engines, "_COMPILING", 0.0)
  monkeypatch.setattr(engines, "_BLOCKS_A_LOOK", 1)
  forget(monkeypatch)
  tried = []
  send = servers.Server.send

  def broken(self: servers.Server, text: str, for_host: Host, until: float, kind: int) -> int:
    tried.append(text)
    number = send(self, ABORTS if how == "aborts" else text, for_host, until, kind)
    if how == "hangs" and self.process is not None: os.kill(self.process.pid, signal.SIGSTOP)
    return number
  monkeypatch.setattr(servers.Server, "send", broken)
  monkeypatch.setattr(servers, "SECONDS", (0.3, 0.3))
  gpu = Gpu(1 << 21)
  code, data, d = sample(3), inputs(random.Random(3)), descriptor()
  expected = outcome(dispatch, code, data, d)
  gpu.space.write(CODE, code + END * 8)
  gpu.space.write(OUT, data)
  with pytest.warns(RuntimeWarning, match="is interpreted, which is slow: LLVM") as told:
    for _ in range(3):
      stats = engine(gpu.space, ARCH, d, watchdog=100_000)
      assert stats.engine == "ref" and stats.instructions == expected[1].instructions
  assert len(told) == 1 and len({t for t in tried}) == len(tried)  # once


@pytest.mark.parametrize("engine", [jit, auto])
def test_a_mistake_of_the_translator_is_told_as_ours(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
  """The reference runs the program; a warning says whose mistake it is, and the run's counts do."""
  monkeypatch.setattr(engines, "_LLVM", 0.0)
  monkeypatch.setattr(engines, "_COMPILING", 0.0)
  monkeypatch.setattr(engines, "_BLOCKS_A_LOOK", 1)
  forget(monkeypatch)
  def broken(*_: Any) -> Any: raise AttributeError("'NoneType' object has no attribute 'wide'")
  monkeypatch.setattr(Translator, "_plain", broken)
  code, data, d = sample(3), inputs(random.Random(3)), descriptor()
  expected = outcome(dispatch, code, data, d)
  with pytest.warns(RuntimeWarning, match=f"is interpreted, which is slow: {OWN}: AttributeError: 'NoneType'"):
    found = outcome(engine, code, data, d)
  assert np.array_equal(expected[0], found[0]) and found[1].engine == "ref"
  (why, count), = found[1].mistakes.items()
  assert "AttributeError" in why and "test_servers.py, line" in why and count


# ---- code that grows

def jumps(after: bytes) -> bytes:
  """Goes to `after`, at an address that the translator does not see being made, and leaves registers in memory."""
  code = prologue(32) + encode("s_getpc_b64", sdst=40)
  code += encode("s_mov_b32", src0=128 + 24, sdst=42)  # to what follows s_setpc and two literals of no instruction
  code += encode("s_add_u32", src0=40, src1=42, sdst=40) + encode("s_addc_u32", src0=41, src1=128, sdst=41)
  code += encode("s_setpc_b64", src0=40) + bytes([0, 0, 0, 0]) * 2
  return code + after + b"".join(store(n) for n in range(8))


@pytest.mark.parametrize("how", [NotCompiled("as it is"), CompilerFailed("LLVM gave up: no more")])
@pytest.mark.parametrize("engine", [jit, auto])
@pytest.mark.parametrize("steps", [1, 1000])
def test_places_without_code_are_interpreted(steps: int, engine: Any, how: NotCompiled,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
  """Code that waves come to is refused in the midst of a launch: the reference goes on where they stand."""
  monkeypatch.setattr(engines, "_LLVM", 0.0)
  monkeypatch.setattr(engines, "_COMPILING", 0.0)
  monkeypatch.setattr(engines, "_BLOCKS_A_LOOK", 1)
  monkeypatch.setattr(run, "STEPS", steps)
  forget(monkeypatch)
  monkeypatch.setenv("TINYHW_CACHE", "0")
  loop = encode("v_add_nc_u32", "e32", src0=129, src1=1, vdst=1) + encode("s_sub_u32", src0=20, src1=129, sdst=20)
  loop += encode("s_cmp_lg_u32", src0=20, src1=128)
  loop += encode("s_cbranch_scc1", simm16=-(len(loop) // 4 + 1) & 0xFFFF)
  late = encode("s_mov_b32", src0=128 + 30, sdst=20) + loop + encode("s_barrier")
  code, data = jumps(late), inputs(random.Random(5))
  grow, refused = run.Code.grow, []

  def watched(self: run.Code, pc: int, mode: int) -> None:
    with monkeypatch.context() as inside:
      if pc != CODE: inside.setattr(forms.Wish, "make", refuse)
      grow(self, pc, mode)

  def refuse(self: forms.Wish, *_: Any) -> Any:
    refused.append(self.starts[-1])
    raise type(how)(how.why)
  monkeypatch.setattr(run.Code, "grow", watched)
  for d in (descriptor(), descriptor(32, 27), descriptor(32, 96)):
    expected = outcome(dispatch, code, data, d)
    if isinstance(how, CompilerFailed):
      with pytest.warns(RuntimeWarning, match="no more"): found = outcome(engine, code, data, d)
    else: found = outcome(engine, code, data, d)
    assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions
  assert refused
