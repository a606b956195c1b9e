"""What a card's kernel driver has said, as the driver reads it."""
from __future__ import annotations

from tinyhw.core.errors import PageFault
from tinyhw.drive.nv import report


def test_a_fault_as_a_card_tells_it() -> None:
  """What RM and the kernel's log said of an H200's (driver 580.159.04)."""
  line = ("NVRM: Xid (PCI:0000:00:06): 31, pid=468, name=python3, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE "
          "GRAPHICS GPC1 GPCCLIENT_T1_6 faulted @ 0x6fff_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE")
  found = report._XID.search(line)
  assert found is not None and found[2] == "31" and found[3].startswith("channel 0x0000000a")
  fault = report._told(found[3], PageFault(0x6FFF_0000_0000, "access", 0, reason="FAULT_PDE"))
  assert str(fault) == "GPU page fault: write at 0x6fff00000000 (FAULT_PDE)"
