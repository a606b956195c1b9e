"""Cases of packets, methods and calls: right devices pass them, wrong ones are told apart, and one that hangs or ends
its process leaves the others standing."""
from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.conform.overheard import overheard
from tinyhw.cli import tinyhw
from tinyhw.cli.benches import another, bench
from tinyhw.core.errors import Unsupported
from tinyhw.devices.mocked import mock_machine
from tinyhw.mock.amd.chip.sdma import SdmaQueue
from tinyhw.tools.conform.client import asking, suite, unasked
from tinyhw.tools.conform.client.amd import AmdRoom
from tinyhw.tools.conform.client.nv import NvRoom
from tinyhw.wire import methods, rm


def command(*words: str) -> Result:
  return CliRunner().invoke(tinyhw, ["conform", *words])


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "gfx1100")


def test_a_wrong_copy_is_found_and_what_is_written_can_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  """Copies of five bytes leave one out; the others are right."""
  files = {n: tmp_path / n for n in ("a.json", "a.xml", "a.html", "may.json", "right.json")}
  only = ("--only", "SDMA_PKT_COPY_LINEAR/4-", "--only", "SDMA_PKT_COPY_LINEAR/5-")
  assert command("AMD", *only, "--record", str(files["right.json"])).exit_code == 0
  whole = SdmaQueue._piece

  def short(self: Any, source: int, target: int, size: int) -> None: whole(self, source, target, size - (size == 5))
  monkeypatch.setattr(SdmaQueue, "_piece", short)
  done = command("AMD", *only, "--json-file", str(files["a.json"]), "--junit", str(files["a.xml"]),
                 "--html", str(files["a.html"]), "--write-may-fail", str(files["may.json"]))
  assert done.exit_code == 1 and not isinstance(done.exception, Exception), (done.output, done.exc_info)
  said = json.loads(files["a.json"].read_text())
  bad = [r for r in said["results"] if r["verdict"] != "pass"]
  assert bad and {r["id"].split("/")[-1].split("-")[0] for r in bad} == {"5"}
  assert said["cases"]["pass"] == len(said["results"]) - len(bad) > 3
  assert said["kinds"] == {"packets": {"count": 1, "covered": 1}}
  assert "memory 1[" in bad[0]["detail"] and "SDMA_PKT_COPY_LINEAR(" in bad[0]["text"]
  assert "SDMA_PKT_COPY_LINEAR" in files["a.html"].read_text() and "<failure" in files["a.xml"].read_text()
  assert command("AMD", *only, "--may-fail", str(files["may.json"])).exit_code == 0
  against = command("AMD", *only, "--may-fail", str(files["may.json"]), "--against", str(files["right.json"]))
  assert against.exit_code == 1 and f"{len(bad)} cases differ from the record" in against.output
  monkeypatch.setattr(SdmaQueue, "_piece", whole)
  stale = command("AMD", *only, "--may-fail", str(files["may.json"]))
  assert stale.exit_code == 1 and "may fail by the list, and does not" in stale.output


@pytest.mark.parametrize("end", ["refusal", "exit"])
def test_a_case_that_takes_the_device_away_leaves_the_others(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
  whole = SdmaQueue._copy

  def broken(self: Any, source: int, target: int, size: int) -> None:
    if size != 5: return whole(self, source, target, size)
    if end == "exit": os._exit(3)
    raise Unsupported("copies of", "5 bytes")
  monkeypatch.setattr(SdmaQueue, "_copy", broken)
  done = command("AMD", "--only", "SDMA_PKT_COPY_LINEAR/4-", "--only", "SDMA_PKT_COPY_LINEAR/5-", "--json")
  said = json.loads(done.stdout)
  verdicts = {r["id"].split("/")[-1]: r["verdict"] for r in said["results"]}
  assert {v for k, v in verdicts.items() if k.startswith("4-")} == {"pass"}
  assert {v for k, v in verdicts.items() if k.startswith("5-")} == {"error" if end == "exit" else "unsupported"}


def children() -> set[str]:
  """The processes that this one has started."""
  return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def test_a_case_that_hangs_is_ended_and_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
  """One that never comes back from the device: its process is ended, the next one goes on."""
  whole = SdmaQueue._copy

  def stands(self: Any, source: int, target: int, size: int) -> None:
    if size == 5: signal.pause()
    whole(self, source, target, size)
  monkeypatch.setattr(SdmaQueue, "_copy", stands)
  monkeypatch.setattr(asking, "SECONDS", 1.0)
  monkeypatch.setattr(asking, "GRACE_S", 7.0)
  names, before = [f"SDMA_PKT_COPY_LINEAR/{n}-from-0-to-0" for n in (4, 5, 7)], children()
  done = command("AMD", *(w for n in names for w in ("--only", n)), "--json")
  said = {r["id"].split("/")[-1]: (r["verdict"], r.get("detail", "")) for r in json.loads(done.stdout)["results"]}
  assert [said[n.split("/")[-1]][0] for n in names] == ["pass", "error", "pass"]
  assert said["5-from-0-to-0"][1] == "no answer within 8 s: its process was ended"
  assert children() <= before  # nothing is left of it


def test_identifiers_are_one_each_and_a_case_is_shown() -> None:
  found = command("--list", "--only", "gfx1100/packet").output.split()
  assert len(set(found)) == len(found) > 100
  shown = command("--show", "gfx1100/packet/sdma/SDMA_PKT_COPY_LINEAR/4194308").output
  assert "count=0x400003" in shown


# ---- what known clients use

RECORDINGS = Path(__file__).parents[1] / "recordings"
# What ROCr 5.2 to 7.2 and HIP were seen to use of packets and calls, as tests/mock/clients runs them.
ROCR = {"SDMA_PKT_NOP", "SDMA_PKT_COPY_LINEAR", "SDMA_PKT_FENCE", "SDMA_PKT_TRAP", "SDMA_PKT_POLL_REGMEM",
        "SDMA_PKT_ATOMIC", "SDMA_PKT_CONSTANT_FILL", "SDMA_PKT_TIMESTAMP_GET_GLOBAL", "SDMA_PKT_GCR_USER",
        "hsa_kernel_dispatch_packet_t", "hsa_barrier_and_packet_t", "hsa_barrier_or_packet_t",
        "hsa_amd_barrier_value_packet_t", "PM4Call",
        *("GET_VERSION GET_PROCESS_APERTURES_NEW ACQUIRE_VM SET_MEMORY_POLICY MAP_MEMORY_TO_GPU SET_XNACK_MODE "
          "GET_CLOCK_COUNTERS CREATE_EVENT WAIT_EVENTS SET_SCRATCH_BACKING_VA SET_TRAP_HANDLER GET_TILE_CONFIG "
          "CREATE_QUEUE DESTROY_QUEUE UPDATE_QUEUE SET_CU_MASK ALLOC_MEMORY_OF_GPU FREE_MEMORY_OF_GPU "
          "UNMAP_MEMORY_FROM_GPU SET_EVENT RESET_EVENT DESTROY_EVENT AVAILABLE_MEMORY RUNTIME_ENABLE EXPORT_DMABUF "
          "IMPORT_DMABUF GET_DMABUF_INFO").split()}
# What tinygrad's drivers put on queues (runtime/ops_amd.py), as tests/mock/clients/test_tinygrad.py runs them.
TINYGRAD = {"WAIT_REG_MEM", "ACQUIRE_MEM", "RELEASE_MEM", "SET_SH_REG", "DISPATCH_DIRECT", "EVENT_WRITE",
            "INDIRECT_BUFFER", "COPY_DATA", "WRITE_DATA", "SDMA_PKT_COPY_LINEAR", "SDMA_PKT_FENCE",
            "SDMA_PKT_POLL_REGMEM", "SDMA_PKT_TIMESTAMP_GET_GLOBAL", "SDMA_PKT_TRAP"}


def decoded(name: str, *options: str) -> str:
  return CliRunner().invoke(tinyhw, ["decode", *options, str(RECORDINGS / name)]).output


def asked_of(vendor: str, card: str) -> set[str]:
  """What a mock card hears while it is asked all cases, which it passes."""
  def make() -> Any:
    machine, port = mock_machine(vendor, (card,), engine="ref")
    made: Any = bench(vendor, port, 0, 8 << 20, lambda: another(vendor, machine, 0), {}, mocked=True)
    return AmdRoom(made) if vendor == "AMD" else NvRoom(made)
  with overheard() as names:
    found = list(asking.asked(suite.questions(card), make))
  assert len({r.id for r in found}) == len(found) > 500
  assert not [f"{r.id}: {r.detail}" for r in found if r.verdict != "pass"]
  return names


@pytest.mark.parametrize("card", ["gfx1100", "gfx1201", "gfx942"])
def test_all_packets_and_calls_of_known_amd_clients_are_asked(card: str) -> None:
  used = set(re.findall(r"^  0x[0-9a-f]+  (\w+)\(", decoded("queues_format1_amd.thq"), re.MULTILINE))
  used |= set(re.findall(r"^AMDKFD_IOC_(\w+)", decoded("queues_format1_amd.thq", "--calls"), re.MULTILINE))
  assert len(used) > 18
  used |= ROCR | TINYGRAD
  if card == "gfx942": used -= {"SDMA_PKT_GCR_REQ", "SDMA_PKT_GCR_USER"}  # v4 has no such packet
  assert not used - asked_of("AMD", card)


def test_all_methods_and_calls_of_known_nv_clients_are_asked_or_told() -> None:
  """Of the driver's recording all; of CUDA's on an H200, what is not asked has its reason, which the report tells."""
  name = "queues_format1_nv.thq"
  driver = set(re.findall(r"^\s+([A-Z]\w+\.[A-Z]\w+)[\[(]", decoded(name), re.MULTILINE))
  calls = decoded(name, "--calls")
  for pattern in (r"^((?:NV_ESC|UVM)_\w+)", r"^NV_ESC_RM_CONTROL (\w+)", r"^NV_ESC_RM_ALLOC (\w+)"):
    driver |= set(re.findall(pattern, calls, re.MULTILINE))
  told = json.loads((RECORDINGS / "rm_calls_sm90.json").read_text())
  cuda = {rm.command_name(row[0]) for row in told["controls"]} | {rm.class_name(row[0]) for row in told["allocations"]}
  recorded = json.loads((RECORDINGS / "cuda_sm90.json").read_text())
  classes = {0: 0xC8B5, 1: recorded["class"], 4: 0xC8B5}
  for piece in recorded["pieces"]:
    for _, sent in methods.walk([int(w, 16) for w in piece.split()]):
      if not isinstance(sent, methods.Send): continue
      for address, _ in sent.writes():
        module = methods.host if address < methods.HOST_END else methods.declared(classes[sent.subchannel])
        cuda.add(f"{module.NAME}.{methods.by_address(module)[address][0].__name__}")
  assert len(driver) > 50 and len(cuda) > 140
  names = asked_of("NV", "sm_90")
  assert not driver - names
  left = {n.rpartition(".")[2] for n in cuda - names if not n.startswith("0x")}  # numbers: no header declares them
  assert left == set(unasked.NV)
