"""Which GPU Triton's kernels run on."""
from __future__ import annotations

import os

from tinyhw.core.errors import Unsupported
from tinyhw.devices.registry import KINDS, Device, mock_cards


def triton_target() -> tuple[str, str] | None:
  """(device, GPU) that `TINYHW_TRITON` wants Triton's kernels to run on, or None where nobody asks for it.

  `TINYHW_TRITON` is a GPU, a device ("AMD", "AMD:1"), or "1"; "0" is none. Unset, or "1", it is the mock machine's
  first card of AMD. A card of the mock machine runs on that, with driver and queues, any other GPU on the emulator
  alone.
  """
  wanted, cards = os.environ.get("TINYHW_TRITON", ""), mock_cards("AMD") or ()  # of NVIDIA's Triton has a driver
  if wanted == "0" or not (wanted or cards): return None
  if wanted in ("", "1"): wanted = cards[0] if cards else "gfx1100"
  from tinyhw.arch import ARCHES, decoded
  kind = wanted.partition(":")[0].upper()
  if kind in KINDS:
    if kind != "AMD": raise Unsupported("Triton on device", wanted, hint="TINYHW_TRITON takes AMD or a GPU's name")
    return Device.canonicalize(wanted), ""
  found = decoded(wanted).name
  if found in cards and found in ARCHES: return Device.canonicalize(f"AMD:{cards.index(found)}"), found
  return "EMU", found
