"""What a compute queue keeps when it is taken off the chip: the dwords of its memory queue descriptor (MQD).

The kernel's struct gives each register of a queue its dword, and the manager of these descriptors says how many of the
first dwords the command processor loads again when it maps a queue (CP_HQD_PERSISTENT_STATE.PRELOAD_SIZE).
"""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.linux import AMD, LINUX
from tinyhw.tools.gen.sources import Sources, head

STRUCTS, MANAGER = f"{AMD}/include/v11_structs.h", f"{AMD}/amdkfd/kfd_mqd_manager_v11.c"
FIELD = re.compile(r"uint32_t (\w+); // offset: (\d+)\s")
PRELOAD = re.compile(r"(0x[0-9a-fA-F]+) << CP_HQD_PERSISTENT_STATE__PRELOAD_SIZE__SHIFT")
RESERVED = re.compile(r"reserved_\d+")
NOTES = ["PRELOAD_GFX11: the registers that the command processor loads when it maps a queue, and their dwords of the",
         "descriptor; they are the queue's own, whatever ran in between. PRELOAD_SIZE_GFX11: how many dwords it loads."]


def fields(text: str, struct: str) -> dict[str, int]:
  """Name -> dword of the struct's fields, reserved ones left out."""
  body = re.search(rf"^struct {struct} \{{(.*?)^\}};", text, re.S | re.M)
  if body is None: raise LayoutError(f"no struct {struct}")
  found = [(name, int(at)) for name, at in FIELD.findall(body[1])]
  if [at for _, at in found] != list(range(len(found))): raise LayoutError("its dwords do not follow", where=struct)
  return {name: at for name, at in found if not RESERVED.fullmatch(name)}


def generate(sources: Sources) -> str:
  structs, manager = sources.find(STRUCTS), sources.find(MANAGER)
  preload = PRELOAD.findall(manager.text)
  if len(preload) != 1: raise LayoutError(f"PRELOAD_SIZE is set {len(preload)} times", where=MANAGER)
  size = int(preload[0], 0)
  out = [head("What a compute queue keeps when it is taken off the chip: its memory queue descriptor.",
              [(LINUX, structs), (LINUX, manager)], "tinyhw gen mqd", NOTES),
         f"PRELOAD_SIZE_GFX11 = {size}", "PRELOAD_GFX11 = {"]
  out += [f'  "{name.upper()}": {at},' for name, at in fields(structs.text, "v11_compute_mqd").items() if 0 < at < size]
  return "\n".join([*out, "}"]) + "\n"


FAMILY = Family("mqd", "mqd", "the registers that a compute queue keeps", (STRUCTS, MANAGER), generate)
