"""Another program as the device under test: a line of JSON for each wave of a case, a line back (docs/conform.md).

The program gets the state before one instruction and says the state after it. It may end, hang or refuse: the next case
finds a new process.
"""
from __future__ import annotations

import json
import os
import selectors
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import InvalidArgument
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, VCC_LO
from tinyhw.tools.conform.cases import Baked
from tinyhw.tools.conform.judge import Found, Result, judged, result
from tinyhw.tools.witness.run import END
from tinyhw.tools.witness.state import CODE, MEMORY

Json = dict[str, Any]
PROTOCOL: Final = 1
SGPRS: Final = 106
ANSWER: Final = 60.0  # seconds for one case


class Gone(Exception):
  """The program has ended, or gave no answer in time."""


class Tested:
  """The program, started when it is first asked, and again after it has gone."""

  def __init__(self, command: str, timeout: float = ANSWER) -> None:
    self.command, self.timeout = command, timeout
    self.process: subprocess.Popen[bytes] | None = None
    self.hello: Json = {}
    self._rest = b""

  def start(self) -> None:
    """Begin it and hear who it is. Raises InvalidArgument for one that cannot be begun or speaks another language."""
    try: self.process = subprocess.Popen(shlex.split(self.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except (OSError, ValueError) as error: raise InvalidArgument(f"cannot be run: {error}", where="--dut") from None
    self._rest = b""
    try: self.hello = self._exchange({"op": "hello", "protocol": PROTOCOL})
    except Gone as gone: raise InvalidArgument(f"{gone} when it was greeted", where=f"--dut {self.command}") from None
    if self.hello.get("protocol") != PROTOCOL:
      raise InvalidArgument(f"speaks protocol {self.hello.get('protocol')}, wanted is {PROTOCOL}", where="--dut")

  def ask(self, request: Json) -> Json:
    """The answer to a request. Raises Gone."""
    if self.process is None: self.start()
    return self._exchange(request)

  def _exchange(self, request: Json) -> Json:
    process = self.process
    assert process is not None and process.stdin is not None and process.stdout is not None
    try:
      process.stdin.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
      process.stdin.flush()
    except OSError: raise self._gone("has ended") from None
    until = time.monotonic() + self.timeout
    with selectors.DefaultSelector() as select:
      select.register(process.stdout, selectors.EVENT_READ)
      while b"\n" not in self._rest:
        left = max(0.0, until - time.monotonic())
        if not select.select(left): raise self._gone(f"said nothing in {self.timeout:g} s")
        some = os.read(process.stdout.fileno(), 1 << 20)
        if not some: raise self._gone("has ended")
        self._rest += some
    line, _, self._rest = self._rest.partition(b"\n")
    try: answer = json.loads(line)
    except ValueError: raise self._gone(f"said no JSON: {line[:80]!r}") from None
    if not isinstance(answer, dict): raise self._gone(f"said no object: {line[:80]!r}")
    return answer

  def _gone(self, why: str) -> Gone:
    process = self.process
    self.close()
    status = process.returncode if process is not None else None
    return Gone(f"the program {why}" + (f" (status {status})" if status else ""))

  def close(self) -> None:
    """End it."""
    process, self.process = self.process, None
    if process is None: return
    if process.stdin is not None:
      try: process.stdin.close()
      except OSError: pass  # it has gone with something left to be read
    try: process.wait(1)
    except subprocess.TimeoutExpired:
      process.kill()
      process.wait()
    if process.stdout is not None: process.stdout.close()


def request(b: Baked, wave: int, memory: bytes, lds: bytes, sgprs: int) -> Json:
  """What is asked about a wave of a case."""
  start, lanes = b.prepared.start, b.case.lanes
  part = slice(wave * lanes, (wave + 1) * lanes)
  out: Json = {
    "op": "run", "id": b.id, "arch": b.id.split("/")[0], "lanes": lanes, "pc": CODE, "code": b.case.code.hex(),
    "end": END[b.case.row.isa].to_bytes(4, "little").hex(), "text": str(b.case.instruction),
    "v": [b.start_v[k, part].tobytes().hex() for k in range(b.vgprs)],
    "s": [int(x) for x in b.start_s[:sgprs, wave]], "scc": int(start.scc[wave]), "mode": b.case.mode,
    "vcc": start.pair(VCC_LO, wave), "exec": start.pair(EXEC_LO, wave), "m0": start.m0(wave)}
  if memory: out["memory"] = {"address": MEMORY, "bytes": memory.hex()}
  if lds: out["lds"] = lds.hex()
  if b.scratch:
    share = len(memory) // b.case.waves
    out["scratch"] = {"address": MEMORY + wave * share, "size": share // lanes}
  return out


def found_in(answer: Json, b: Baked, sgprs: int) -> Found:
  """An answer as what a wave left. Raises Gone for one that lacks something."""
  lanes = b.case.lanes
  try:
    v = np.stack([np.frombuffer(bytes.fromhex(x), np.uint32) for x in answer["v"]])
    if v.shape != (b.vgprs, lanes): raise Gone(f"its answer has vector registers {v.shape}, not {(b.vgprs, lanes)}")
    exec_, vcc = int(answer["exec"]), int(answer["vcc"])
    m32 = 0xFFFFFFFF
    special = {"SCC": int(answer["scc"]), "MODE": int(answer["mode"]), "EXEC_LO": exec_ & m32, "EXEC_HI": exec_ >> 32,
               "VCC_LO": vcc & m32, "VCC_HI": vcc >> 32, "M0": int(answer["m0"]), "FLOW": 0}
    memory, lds = (bytes.fromhex(answer[n]) if n in answer else None for n in ("memory", "lds"))
    return Found(v, np.array(answer["s"][:sgprs], np.uint32), special, memory, lds)
  except (KeyError, ValueError, TypeError, OverflowError) as error:
    raise Gone(f"its answer is not as the protocol says: {type(error).__name__}: {error}") from None


def ask(program: Tested, b: Baked, arch: str) -> Result:
  """The result of a case."""
  start = b.prepared.start
  if start.gds: return result(b, arch, "not asked", "GDS is not in the protocol")
  if b.flow or any(j is not None for j in b.prepared.wanted.jump): return result(b, arch, "not asked", "control flow")
  if b.barred and "registers" not in b.barred: return result(b, arch, "not asked", b.barred)
  sgprs, waves = min(SGPRS, max(16, b.sgprs)), list[Found | None]()
  memory, lds = bytes(start.memory), bytes(start.lds)
  for wave in range(b.case.waves):
    try:
      answer = program.ask(request(b, wave, memory, lds, sgprs))
      if "unsupported" in answer: return result(b, arch, "unsupported", str(answer["unsupported"]))
      if "error" in answer: return result(b, arch, "error", str(answer["error"]))
      found = found_in(answer, b, sgprs)
    except Gone as gone: return result(b, arch, "error", str(gone))
    memory, lds = found.memory or memory, found.lds or lds
    waves.append(found)
  return judged(b, arch, waves, sgprs)


def run(command: str, cases: Iterator[Baked] | Sequence[Baked], arch: str) -> tuple[list[Result], Json]:
  """The results of cases, and what the program says of itself."""
  program = Tested(command)
  program.start()
  try: return [ask(program, b, arch) for b in cases], program.hello
  finally: program.close()


# ---- the other side, for the reference emulator: an example of a program that can be asked

def serve() -> None:
  """Answer on standard output what is asked on standard input, by the reference emulator."""
  from tinyhw.core.errors import Error
  for text in sys.stdin:
    asked = json.loads(text)
    if asked["op"] == "hello": answer: Json = {"protocol": PROTOCOL, "name": "tinyhw's reference emulator"}
    else:
      try: answer = _executed(asked)
      except Error as error: answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)


def _executed(asked: Json) -> Json:
  """One wave on the emulator."""
  from tinyhw.isa.amdgcn import table
  from tinyhw.tools.witness.cases import Case
  from tinyhw.tools.witness.run import Prepared, bench
  from tinyhw.tools.witness.state import State
  from tinyhw.tools.witness.table import Mode
  machine, lanes, code = bench(asked["arch"]), asked["lanes"], bytes.fromhex(asked["code"])
  i = table(machine.arch.isa).decode(code)
  s = [[x] for x in [*asked["s"], *[0] * (128 - len(asked["s"]))]]
  for register, value in ((VCC_LO, asked["vcc"]), (EXEC_LO, asked["exec"])):
    s[register], s[register + 1] = [value & 0xFFFFFFFF], [value >> 32]
  s[M0] = [asked["m0"]]
  v = [np.frombuffer(bytes.fromhex(x), np.uint32).tolist() for x in asked["v"]]
  memory, lds = bytearray.fromhex(asked.get("memory", {}).get("bytes", "")), bytearray.fromhex(asked.get("lds", ""))
  at, waves = 0, 1
  if "scratch" in asked:  # where it lies says which of several waves this is; the others have no lanes active
    part = asked["scratch"]["size"] * lanes
    at, waves = (asked["scratch"]["address"] - MEMORY) // part, len(memory) // part
  v, s = [r * waves for r in v], [r * waves for r in s]
  for k in range(waves):
    if k != at: s[EXEC_LO][k] = s[EXEC_LO + 1][k] = 0
  scc = [bool(asked["scc"])] * waves
  state = State(lanes, waves, v, s, scc, Mode(asked["mode"]), memory, lds, isa=machine.arch.isa, pc=CODE)
  group, _ = machine.execute(Prepared(Case(i.row, code, i, asked["mode"], "all", lanes, waves, 0, ""), state, state))
  now = [int(np.broadcast_to(group.s[k], (waves, 1))[at, 0]) for k in range(128)]
  out: Json = {"v": [np.broadcast_to(r.view(np.uint32), (waves, lanes))[at].tobytes().hex() for r in group.v[:len(v)]],
               "s": now[:len(asked["s"])], "scc": int(np.broadcast_to(group.scc, (waves, 1))[at, 0]),
               "mode": int(group.mode),
               "vcc": now[VCC_LO] | now[VCC_LO + 1] << 32, "m0": now[M0],
               "exec": now[EXEC_LO] | now[EXEC_LO + 1] << 32}
  if memory: out["memory"] = machine.memory.u8[:len(memory)].tobytes().hex()
  if lds: out["lds"] = group.cohort.lds.tobytes().hex()
  return out


if __name__ == "__main__": serve()
