"""What a compute queue keeps when it is taken off the chip: the dwords of its memory queue descriptor (MQD).

The kernel's struct gives each register of a queue its dword, and the manager of these descriptors says how many of the
first dwords the command processor loads again when it maps a queue (CP_HQD_PERSISTENT_STATE.PRELOAD_SIZE).
"""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.family import Family, corrected
from tinyhw.tools.gen.linux import AMD, LINUX
from tinyhw.tools.gen.sources import Sources, head

# and how the kernel's files and their struct of a compute queue are called
GENERATIONS = {"GFX11": ("v11", "v11_compute_mqd"), "GFX12": ("v12", "v12_compute_mqd"), "GFX9": ("v9", "v9_mqd")}
NEEDS = tuple(path for v, _ in GENERATIONS.values() for path in (
  f"{AMD}/include/{v}_structs.h", f"{AMD}/amdkfd/kfd_mqd_manager_{v}.c"))
FIELD = re.compile(r"uint32_t (\w+);(?: // offset: (\d+)\s)?")
PRELOAD = re.compile(r"(0x[0-9a-fA-F]+) << CP_HQD_PERSISTENT_STATE__PRELOAD_SIZE__SHIFT")
RESERVED = re.compile(r"reserved_\d+")
NOTES = ["PRELOAD_*: the registers that a generation's command processor loads when it maps a queue, and their dwords",
         "of the descriptor; they are the queue's own, whatever ran in between. PRELOAD_SIZE_*: how many it loads."]


def fields(text: str, struct: str) -> dict[str, int]:
  """Name -> dword of the struct's fields, reserved ones left out. Of a union's structs the last counts: GC 9.4.3's."""
  body = re.search(rf"^struct {struct} \{{(.*?)^\}};", text, re.S | re.M)
  if body is None: raise LayoutError(f"no struct {struct}")
  text = re.sub(r"^\tunion \{.*?(struct \{[^}]*\};)\s*^\t\};", lambda m: m[1], body[1], flags=re.S | re.M)
  found = [(name, at) for at, (name, _) in enumerate(FIELD.findall(text))]
  if any(said and int(said) != at for at, (_, said) in enumerate(FIELD.findall(text))):
    raise LayoutError("its dwords do not follow", where=struct)
  return {name: at for name, at in found if not RESERVED.fullmatch(name)}


def preload(sources: Sources, version: str, struct: str) -> tuple[int, dict[str, int]]:
  """How many dwords a generation loads, and the registers among them."""
  structs, manager = (sources.find(n) for n in NEEDS if re.search(rf"(?:^|[/_]){version}[_.]", n))
  sizes = set(PRELOAD.findall(manager.text))
  if len(sizes) != 1: raise LayoutError(f"PRELOAD_SIZE is set to {sorted(sizes)}", where=manager.name)
  size, text = int(sizes.pop(), 0), corrected(structs.text, "mqd", structs.name.rpartition("/")[2])
  return size, {n.upper(): at for n, at in fields(text, struct).items() if 0 < at < size}


def generate(sources: Sources) -> str:
  out = [head("What a compute queue keeps when it is taken off the chip: its memory queue descriptor.",
              [(LINUX, sources.find(n)) for n in NEEDS], "tinyhw gen mqd", NOTES)]
  known: dict[str, tuple[int, dict[str, int]]] = {}
  for name, (version, struct) in GENERATIONS.items():
    size, registers = found = preload(sources, version, struct)
    same = next((other for other, theirs in known.items() if theirs == found), None)
    known[name] = found
    if same: out.append(f"PRELOAD_SIZE_{name}, PRELOAD_{name} = PRELOAD_SIZE_{same}, PRELOAD_{same}")
    else: out += [f"PRELOAD_SIZE_{name} = {size}", f"PRELOAD_{name} = {{",
                  *(f'  "{n}": {at},' for n, at in registers.items()), "}"]
  return "\n".join(out) + "\n"


FAMILY = Family("mqd", "mqd", "the registers that a compute queue keeps", NEEDS, generate)
