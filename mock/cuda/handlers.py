"""What serves the functions of libcuda, libcudart and libnvidia-ml: modules register their own, and all are imported
here.
"""
from __future__ import annotations

from typing import Final

from tinyhw.mock.cuda import devices
from tinyhw.mock.cuda.calls import SERVED, Handler
from tinyhw.mock.cuda.graphs import attributes, captures, edges, graphs, nodes
from tinyhw.mock.cuda.library import genuine
from tinyhw.mock.cuda.memory import allocations as memory
from tinyhw.mock.cuda.memory import arrays, boxes, exported, interprocess, managed, pools, tensors, textures, virtual
from tinyhw.mock.cuda.modules import functions, libraries, links, modules
from tinyhw.mock.cuda.nvml import devices as nvml
from tinyhw.mock.cuda.nvml.calls import TELLS
from tinyhw.mock.cuda.runtime import arrays as runtime_arrays
from tinyhw.mock.cuda.runtime import functions as runtime
from tinyhw.mock.cuda.runtime import graphs as runtime_graphs
from tinyhw.mock.cuda.runtime import memory as runtime_memory
from tinyhw.mock.cuda.runtime.functions import RUNS, Row
from tinyhw.mock.cuda.streams import launches, memops, occupancy, stepwise, streams

DRIVER: Final = (
  arrays, attributes, boxes, captures, devices, edges, exported, functions, genuine, graphs, interprocess, launches,
  libraries, links, managed, memops, memory, modules, nodes, occupancy, pools, stepwise, streams, tensors, textures,
  virtual)
RUNTIME: Final = (runtime, runtime_arrays, runtime_graphs, runtime_memory)
MANAGEMENT: Final = (nvml,)


def served() -> dict[str, Handler]:
  """The driver's functions that are served, by their names."""
  return SERVED


def runs() -> dict[str, Row]:
  """The runtime's own: what does them, and whether in the thread's context."""
  return RUNS


def tells() -> dict[str, Handler]:
  """NVML's that are served."""
  return TELLS
