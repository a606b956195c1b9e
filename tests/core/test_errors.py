"""The error tree: one base, every class exported, the cause first and a fact a line."""
from __future__ import annotations

import importlib
import json
import pickle
import pkgutil
from collections.abc import Iterator

import pytest

import tinyhw
from tinyhw.core.errors import DecodeError, DriverError, Error, MachineFault, OutOfMemory, Unsupported, WaitTimeout

SAMPLES = [
  Error("broken", where="here", hint="mend it", facts=["one", "two"]), DecodeError("no packet", words=[1, 2]),
  Unsupported("packet", "NOP", arch="gfx1100"), DriverError("AMDKFD_IOC_X", 22, {"a": 1}), OutOfMemory("GPU", 10, 5),
  WaitTimeout("queue", packet="WAIT_REG_MEM", address=16, seconds=2.5), tinyhw.ValueLost("gone", where="AMD"),
  tinyhw.PageFault(0x1000, "write", 4, pc=0x20, instruction="s_nop 0", lane=3, wave=1),
  tinyhw.Deadlock("stands", polls=[object()], wave=2), tinyhw.HazardFound("found", [{"kind": "race"}])]


def tree(kind: type[Error]) -> Iterator[type[Error]]:
  """A class and all that derive from it."""
  yield kind
  for derived in kind.__subclasses__(): yield from tree(derived)


def test_every_error_class_of_the_product_is_exported() -> None:
  for room in ("core", "wire", "isa", "ir", "compile", "emulator", "drive", "engine", "mock", "queues"):
    package = importlib.import_module(f"tinyhw.{room}")
    for found in pkgutil.walk_packages(package.__path__, f"tinyhw.{room}."): importlib.import_module(found.name)
  product = {k for k in tree(Error) if k.__module__.startswith("tinyhw.") and ".tools" not in k.__module__}
  assert len(product) > 18
  for kind in product: assert getattr(tinyhw, kind.__name__) is kind


def test_faults_are_errors_of_the_device() -> None:
  for kind in (tinyhw.PageFault, tinyhw.WatchdogExpired, tinyhw.HazardFound, tinyhw.WaitTimeout, tinyhw.OutOfMemory):
    assert issubclass(kind, tinyhw.DeviceError) and issubclass(kind, tinyhw.Error)


def test_the_first_line_is_the_cause_and_each_fact_has_one() -> None:
  assert str(SAMPLES[0]).splitlines() == ["here: broken; mend it", "  one", "  two"]
  fault = MachineFault("stopped", pc=0x10, instruction="s_nop 0", wave=1, lane=2, hint="go on")
  assert str(fault) == "stopped at PC 0x10 in 's_nop 0' wave 1 lane 2; go on"
  fault.work, fault.place, fault.file, fault.line, fault.source = "kernel k", "k+0x8", "/x/bugs.c", 5, "out[i] = x;"
  fault.calls, fault.workgroup, fault.facts = ("called by m+0x4",), (1, 2, 0), ("and more",)
  assert str(fault).splitlines() == [
    "stopped, in kernel k at bugs.c:5; go on", "  bugs.c:5: out[i] = x;", "  k+0x8, PC 0x10: s_nop 0",
    "  called by m+0x4", "  wave 1, lane 2, workgroup 1,2,0", "  and more"]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda e: type(e).__name__)
def test_errors_go_through_pickle_and_json_with_their_fields(error: Error) -> None:
  if not isinstance(error, tinyhw.Deadlock):  # its polls are objects of a test
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and again.row() == error.row()
  row = json.loads(json.dumps(error.row()))
  assert row["type"] == type(error).__name__ and row["text"] == str(error) and row["message"] == error.message
