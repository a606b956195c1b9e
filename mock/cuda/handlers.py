"""What serves the functions of libcuda and libcudart: each module registers its own, and all are imported here."""
from __future__ import annotations

from typing import Final

from tinyhw.mock.cuda import (
  arrays,
  attributes,
  boxes,
  captures,
  devices,
  edges,
  exported,
  functions,
  genuine,
  graphs,
  interprocess,
  launches,
  libraries,
  links,
  managed,
  memops,
  memory,
  modules,
  nodes,
  occupancy,
  pools,
  runtime,
  runtime_arrays,
  runtime_graphs,
  runtime_memory,
  streams,
  tensors,
  textures,
  virtual,
)
from tinyhw.mock.cuda.calls import SERVED, Handler
from tinyhw.mock.cuda.runtime import RUNS, Row

DRIVER: Final = (
  arrays, attributes, boxes, captures, devices, edges, exported, functions, genuine, graphs, interprocess, launches,
  libraries, links, managed, memops, memory, modules, nodes, occupancy, pools, streams, tensors, textures, virtual)
RUNTIME: Final = (runtime, runtime_arrays, runtime_graphs, runtime_memory)


def served() -> dict[str, Handler]:
  """The driver's functions that are served, by their names."""
  return SERVED


def runs() -> dict[str, Row]:
  """The runtime's own: what does them, and whether in the thread's context."""
  return RUNS
