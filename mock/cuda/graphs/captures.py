"""Captures: what streams are told becomes a graph."""
from __future__ import annotations

import ctypes
from typing import Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.graphs.edges import nodes_of
from tinyhw.mock.cuda.graphs.graphs import Capture, Graph, joined
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.streams.streams import Stream, stream_of

_MODES: Final = (cuda.CU_STREAM_CAPTURE_MODE_GLOBAL, cuda.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                 cuda.CU_STREAM_CAPTURE_MODE_RELAXED)


def _begin(m: CudaMachine, handle: int, mode: int) -> Stream:
  stream = stream_of(m, handle)
  if mode not in _MODES: raise invalid(f"capture mode {mode}")
  if stream.legacy:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the legacy default stream cannot be captured")
  if stream.capture is not None:
    raise Failed(cuda.CUDA_ERROR_ILLEGAL_STATE, "the stream is captured already")
  return stream


@serves("cuStreamBeginCapture_v2")
def stream_begin_capture(m: CudaMachine, handle: int, mode: int) -> None:
  stream = _begin(m, handle, mode)
  stream.capture = Capture(m, stream)


@serves("cuStreamBeginCaptureToGraph")
def stream_begin_capture_to_graph(m: CudaMachine, handle: int, to: int, after: int, edges: int, count: int,
                                  mode: int) -> None:
  stream, graph = _begin(m, handle, mode), m.find(to, Graph)
  stream.capture = Capture(m, stream, graph, nodes_of(m, graph, after, count, edges))


@serves("cuStreamEndCapture")
def stream_end_capture(m: CudaMachine, handle: int, out: int) -> None:
  stream = stream_of(m, handle)
  capture: Capture | None = stream.capture
  if capture is None or capture.origin is not stream:
    raise Failed(cuda.CUDA_ERROR_ILLEGAL_STATE, "no capture began on this stream")
  found = set(capture.last.get(stream, ()))
  work = list(found)
  while work:
    for node in work.pop().after:
      if node not in found:
        found.add(node)
        work.append(node)
  for other in m.streams:
    if other.capture is capture:
      other.capture = None
  if any(node not in found for node in capture.graph.nodes[capture.started:]):
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "work of another stream was not joined by an event")
  if capture.graph.handle not in m.handles: capture.graph.handle = m.new(capture.graph)
  if out: m.out(out, "Q", capture.graph.handle)


@serves("cuStreamIsCapturing")
def stream_is_capturing(m: CudaMachine, handle: int, out: int) -> None:
  active = stream_of(m, handle).capture is not None
  m.out(out, "i", cuda.CU_STREAM_CAPTURE_STATUS_ACTIVE if active else cuda.CU_STREAM_CAPTURE_STATUS_NONE)


@serves("cuStreamGetCaptureInfo_v3")
def stream_get_capture_info(m: CudaMachine, handle: int, status: int, number: int, graph: int, after: int, edges: int,
                            count: int) -> None:
  stream = stream_of(m, handle)
  capture: Capture | None = stream.capture
  m.out(status, "i", cuda.CU_STREAM_CAPTURE_STATUS_NONE if capture is None else cuda.CU_STREAM_CAPTURE_STATUS_ACTIVE)
  if capture is None: return
  if capture.graph.handle not in m.handles: capture.graph.handle = m.new(capture.graph)
  last = capture.last.get(stream, {})
  if after and not edges and any(map(any, last.values())):
    raise Failed(cuda.CUDA_ERROR_LOSSY_QUERY, "edges have data, and there is no place for it")
  stream.told = (ctypes.c_uint64 * (2 * len(last) + 1))(  # nodes, then the edges from them
    *(n.handle for n in last), *(int.from_bytes(edge, "little") for edge in last.values()))
  for at, form, value in ((number, "Q", capture.number), (graph, "Q", capture.graph.handle), (count, "Q", len(last)),
                          (after, "Q", ctypes.addressof(stream.told)),
                          (edges, "Q", ctypes.addressof(stream.told) + 8 * len(last))):
    if at: m.out(at, form, value)


@serves("cuStreamGetCaptureInfo_v2")
def stream_get_capture_info_2(m: CudaMachine, handle: int, status: int, number: int, graph: int, after: int,
                              count: int) -> None:
  stream_get_capture_info(m, handle, status, number, graph, after, 0, count)


@serves("cuStreamGetCaptureInfo")
def stream_get_capture_info_1(m: CudaMachine, handle: int, status: int, number: int) -> None:
  stream_get_capture_info(m, handle, status, number, 0, 0, 0, 0)


@serves("cuStreamUpdateCaptureDependencies_v2")
def stream_update_capture_dependencies(m: CudaMachine, handle: int, after: int, edges: int, count: int,
                                       flags: int) -> None:
  stream = stream_of(m, handle)
  capture: Capture | None = stream.capture
  if capture is None: raise Failed(cuda.CUDA_ERROR_ILLEGAL_STATE, "the stream is not captured")
  nodes = nodes_of(m, capture.graph, after, count, edges)
  if flags == cuda.CU_STREAM_SET_CAPTURE_DEPENDENCIES: capture.last[stream] = nodes
  elif flags == cuda.CU_STREAM_ADD_CAPTURE_DEPENDENCIES:
    capture.last[stream] = joined(capture.last.get(stream, {}), nodes)
  else: raise invalid(f"flags {flags:#x}")


@serves("cuStreamUpdateCaptureDependencies")
def stream_update_capture_dependencies_1(m: CudaMachine, handle: int, after: int, count: int, flags: int) -> None:
  stream_update_capture_dependencies(m, handle, after, 0, count, flags)


@serves("cuThreadExchangeStreamCaptureMode")
def thread_exchange_stream_capture_mode(m: CudaMachine, mode: int) -> None:
  """What calls a capture forbids to its thread: kept, and nothing is forbidden here."""
  given, = m.get(mode, "i")
  if given not in _MODES: raise invalid(f"capture mode {given}")
  m.out(mode, "i", m.exchange_capture_mode(given))
