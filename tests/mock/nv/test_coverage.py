"""What the engines do with each method of their classes: what has no meaning here is a list that somebody reviews."""
from __future__ import annotations

import re

from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_rm_control as control
from tinyhw.mock.nv.chip.compute import ComputeEngine
from tinyhw.mock.nv.chip.copy import CopyEngine
from tinyhw.mock.nv.chip.engine import Engine
from tinyhw.mock.nv.chip.host import Host
from tinyhw.mock.nv.driver.classes import Classes
from tinyhw.mock.nv.driver.controls import Controls
from tinyhw.wire import methods

FAMILIES = re.compile(r"SET_FALCON|SET_SPARE|SET_RESERVED_SW|.*MME_|.*PERFORMANCE_|.*_SPARE|SET_MME")
COMPUTE_GAPS = {
  "EVENT_START_TRIGGER", "EVENT_STOP_TRIGGER", "EVENT_STOP_TRIGGER_WFI", "FE_ATOMIC_SEQUENCE_BEGIN",
  "FE_ATOMIC_SEQUENCE_END", "NOTIFY", "SEND_GO_IDLE", "SEND_PCAS_B", "SET_CWD_REF_COUNTER",
  "SET_GLOBAL_RENDER_ENABLE_A", "SET_GLOBAL_RENDER_ENABLE_B", "SET_GLOBAL_RENDER_ENABLE_C",
  "SET_MONITORED_FENCE_SIGNAL_ADDRESS_BASE_A", "SET_MONITORED_FENCE_SIGNAL_ADDRESS_BASE_B", "SET_NOTIFY_A",
  "SET_NOTIFY_B", "SET_QMD_VIRTUALIZATION_BASE_A", "SET_QMD_VIRTUALIZATION_BASE_B", "SET_QMD_VIRTUALIZATION_CONTROL",
  "SET_TEXTURE_HEADER_VERSION", "SET_VALID_SPAN_OVERFLOW_AREA_A", "SET_VALID_SPAN_OVERFLOW_AREA_B",
  "SET_VALID_SPAN_OVERFLOW_AREA_C", "SET_WFI_FILTER_STATE", "UPDATE_ALL_COMPUTE_CONTROL"}
COPY_GAPS = {
  "SET_SECURE_COPY_MODE", "SET_DECRYPT_AUTH_TAG_COMPARE_ADDR_UPPER", "SET_DECRYPT_AUTH_TAG_COMPARE_ADDR_LOWER",
  "SET_ENCRYPT_AUTH_TAG_ADDR_UPPER", "SET_ENCRYPT_AUTH_TAG_ADDR_LOWER", "SET_ENCRYPT_IV_ADDR_UPPER",
  "SET_ENCRYPT_IV_ADDR_LOWER", "SET_MEMORY_SCRUB_PARAMETERS"}


def gaps(engine: type[Engine], ending: int) -> set[str]:
  modules = [methods.declared(c) for c in methods.CLASS_IDS if c & 0xFF == ending]
  return {m.__name__ for module in modules for m in module.METHODS if m.__name__ not in engine.table
          and m.__name__ not in engine.state_names and m.__name__ != "SET_OBJECT"}


def test_methods_without_a_meaning() -> None:
  assert {g for g in gaps(ComputeEngine, 0xC0) if not FAMILIES.match(g)} == COMPUTE_GAPS
  assert gaps(CopyEngine, 0xB5) == COPY_GAPS
  assert [m.__name__ for m in host.METHODS if m.__name__ not in Host.table] == ["SET_OBJECT"]  # the channel's own


def test_tables_name_what_there_is() -> None:
  """A handler of a name that nothing declares would never run."""
  declared = {m.__name__ for c in methods.CLASS_IDS for m in methods.declared(c).METHODS}
  for engine in (ComputeEngine, CopyEngine):
    assert not {*engine.table, *engine.state_names} - declared
  assert set(Controls.table) <= {row.name for row in control.CONTROLS.values()}
  from tinyhw.autogen.nv_rm_chips import RESOURCES
  assert set(Classes.classes) <= {row.internal for row in RESOURCES.values()}
