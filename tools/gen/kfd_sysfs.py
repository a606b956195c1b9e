"""KFD's topology in sysfs: capability bits from the uapi header, property names and their order from kfd_topology.c."""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import gcc
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.kfd import SYSFS, usable_headers, value_lines
from tinyhw.tools.gen.linux import AMD, LINUX
from tinyhw.tools.gen.sources import Sources, head

TOPOLOGY = f"{AMD}/amdkfd/kfd_topology.c"
CRAT = f"{AMD}/amdkfd/kfd_crat.h"
FUNCTIONS = {  # function that shows a file -> the name of the tuple
  "sysprops_show": ("SYSTEM_PROPERTIES", "topology/system_properties"),
  "iolink_show": ("IO_LINK_PROPERTIES", "topology/nodes/N/io_links/M/properties, and p2p_links"),
  "mem_show": ("MEM_PROPERTIES", "topology/nodes/N/mem_banks/M/properties"),
  "kfd_cache_show": ("CACHE_PROPERTIES", "topology/nodes/N/caches/M/properties"),
  "node_show": ("NODE_PROPERTIES", "topology/nodes/N/properties"),
}


def properties(text: str, function: str) -> list[tuple[str, int]]:
  """(name, bits) of each property that a function of kfd_topology.c shows, in its order."""
  start = re.search(rf"static ssize_t {function}\(.*?\n}}", text, re.S)
  if start is None:
    raise LayoutError(f"no {function}", where=TOPOLOGY)
  rows = re.findall(r'sysfs_show_(32|64)bit_prop\(buffer, offs,\s*"(\w+)"', start[0])
  rows += [("0", "sibling_map")] if "sibling_map" in start[0] else []
  return [(name, int(width)) for width, name in rows]


def generate(sources: Sources) -> str:
  header, topology, crat = (sources.find(n, wanted=FAMILY.needs) for n in FAMILY.needs)
  with usable_headers(header) as (_, flags):
    values = gcc.macro_values(gcc.macro_names(header.text), "#include <linux/kfd_sysfs.h>\n", flags)
  simple = re.findall(
    r"^#define\s+(CRAT_(?:CACHE_FLAGS|CACHE_TYPE|IOLINK|MEM|CU_FLAGS)\w*)\s+(0x[0-9a-fA-F]+|\d+|\(1 << \d+\))\s*$",
    crat.text,
    re.M,
  )
  out = [
    head(
      "KFD's topology in sysfs (/sys/class/kfd/kfd/topology): property names in their order, capability bits.",
      [(LINUX, header), (LINUX, topology), (LINUX, crat)],
      "tinyhw gen kfd_sysfs",
      [
        "A file `properties` has one line `name value` for each name; the number is the width of the value in bits",
        "(0: a list).",
      ],
    )
  ]
  out += value_lines(values)
  out += ["", "# CRAT flags that the topology reports as they are.", *(f"{n} = {v.strip('()')}" for n, v in simple)]
  for function, (name, path) in FUNCTIONS.items():
    out += ["", f"{name}: tuple[tuple[str, int], ...] = (  # {path}"]
    out += [f'  ("{prop}", {width}),' for prop, width in properties(topology.text, function)]
    out.append(")")
  return "\n".join(out) + "\n"


FAMILY = Family(
  "kfd_sysfs", "kfd_sysfs", "topology properties and capability bits of KFD", (SYSFS, TOPOLOGY, CRAT), generate
)
