"""Attributes of graphs' kernels: set, told back, copied. A cluster and a cooperative launch are what they say; the rest
are hints."""
from __future__ import annotations

import ctypes
from typing import Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.graphs.graphs import Node
from tinyhw.mock.cuda.graphs.works import KernelWork
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.streams.launches import HINTS

WIDTH: Final = ctypes.sizeof(cuda.CUstreamAttrValue)
OTHERS: Final = frozenset({  # of cuda.h, "Valid for graph nodes"; not modelled
  cuda.CU_KERNEL_NODE_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, cuda.CU_KERNEL_NODE_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
  cuda.CU_KERNEL_NODE_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE})


def _kernel(m: CudaMachine, handle: int) -> tuple[Node, KernelWork]:
  node: Node = m.find(handle, Node)
  if not isinstance(node.work, KernelWork): raise invalid(f"a node of kind {node.kind}, not a kernel")
  return node, node.work


def _known(attribute: int) -> None:
  """Raises Failed for an attribute that nodes do not have, or not here."""
  if attribute in OTHERS: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"attribute {attribute} of a kernel's node")
  if attribute not in HINTS | {cuda.CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE,
                               cuda.CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION}:
    raise invalid(f"kernels' nodes have no attribute {attribute}")


@serves("cuGraphKernelNodeSetAttribute")
def graph_kernel_node_set_attribute(m: CudaMachine, handle: int, attribute: int, value: int) -> None:
  node, work = _kernel(m, handle)
  _known(attribute)
  if not value: raise invalid("a pointer is null")
  node.work = work.having({**work.attributes, attribute: m.user.read(value, WIDTH)})


@serves("cuGraphKernelNodeGetAttribute")
def graph_kernel_node_get_attribute(m: CudaMachine, handle: int, attribute: int, out: int) -> None:
  _, work = _kernel(m, handle)
  _known(attribute)
  m.give(out, work.attributes.get(attribute, bytes(WIDTH)))


@serves("cuGraphKernelNodeCopyAttributes")
def graph_kernel_node_copy_attributes(m: CudaMachine, to: int, come: int) -> None:
  (node, work), (_, other) = _kernel(m, to), _kernel(m, come)
  if work.launch.function.context is not other.launch.function.context: raise invalid("kernels of two contexts")
  node.work = work.having(other.attributes)
