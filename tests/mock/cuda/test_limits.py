"""Limits and refusals by rule: how large arrays may be, which elements they have, what of a range is mapped, what a
condition is for."""
from __future__ import annotations

import ctypes
import gc
import io
import os
import re
import struct
import threading
from itertools import product
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.hash import ELFHashTable

from tests.mock.cuda.client import HEAD, SAXPY, WAIT, Client, u32, u64
from tests.mock.cuda.test_arrays import CUBE, LAYERED, SURFACE, described
from tests.mock.cuda.test_links import NVVM, Linker
from tests.mock.cuda.test_nodes_and_libraries import error, node
from tests.mock.cuda.test_runtime import FACTOR, SCALE
from tests.mock.cuda.test_runtime_objects import DOWN, UP, channel, program
from tests.mock.cuda.test_tensors import aligned, encode
from tests.mock.cuda.test_virtual import UNIT, granted, physical
from tests.mock.nv.bench import cubin
from tinyhw.autogen import cuda, cudart
from tinyhw.core.timeout import Terms
from tinyhw.mock.cuda.calls import UNCOLLECTED, Failed
from tinyhw.mock.cuda.library import library, shared
from tinyhw.mock.cuda.memory.arrays import limits

GATHER = cuda.CUDA_ARRAY3D_TEXTURE_GATHER
COUNT = ctypes.c_size_t


# ---- arrays

def test_limits_of_arrays_are_those_of_the_guide() -> None:
  """The table "Technical Specifications per Compute Capability" of the CUDA Programming Guide, from 8.0 on."""
  texture = {"1D": (131072,), "2D": (131072, 65536), "3D": (16384, 16384, 16384), "CUBEMAP": (32768,),
             "1D_LAYERED": (32768, 2048), "2D_LAYERED": (32768, 32768, 2048), "CUBEMAP_LAYERED": (32768, 2046),
             "1D_LINEAR": (1 << 28,), "1D_MIPMAPPED": (32768,), "2D_MIPMAPPED": (32768, 32768),
             "2D_GATHER": (32768, 32768), "2D_LINEAR": (131072, 65000, 2097120)}
  surface = {"1D": (32768,), "2D": (131072, 65536), "3D": (16384, 16384, 16384), "CUBEMAP": (32768,),
             "1D_LAYERED": (32768, 2048), "2D_LAYERED": (32768, 32768, 2048), "CUBEMAP_LAYERED": (32768, 2046)}
  sides = {"1D_LAYERED": ("WIDTH", "LAYERS"), "2D_LAYERED": ("WIDTH", "HEIGHT", "LAYERS"),
           "CUBEMAP_LAYERED": ("WIDTH", "LAYERS"), "2D_LINEAR": ("WIDTH", "HEIGHT", "PITCH")}
  wanted = {f"MAXIMUM_{kind}{name}_{side}": size for kind, table in (("TEXTURE", texture), ("SURFACE", surface))
            for name, sizes in table.items()
            for side, size in zip(sides.get(name, ("WIDTH", "HEIGHT", "DEPTH")), sizes)}
  wanted |= {f"MAXIMUM_TEXTURE3D_{side}_ALTERNATE": size
             for side, size in (("WIDTH", 8192), ("HEIGHT", 8192), ("DEPTH", 32768))}
  assert limits() == wanted


ELEMENT = re.compile(r"CU_AD_FORMAT_(UNSIGNED_INT|SIGNED_INT|UNORM_INT|SNORM_INT|HALF|FLOAT)(\d*)(?:X(\d))?")


def test_elements_of_every_format(client: Client) -> None:
  """As large as their names say, of as many components as they may have; the others have a name, or are none."""
  c, out = client, u64(0)
  formats = {n: v for n, v in vars(cuda).items() if n.startswith("CU_AD_FORMAT_") and n != "CU_AD_FORMAT_MAX"}
  for name, code in formats.items():
    found = ELEMENT.fullmatch(name)
    for channels in range(6):
      d = cuda.CUDA_ARRAY3D_DESCRIPTOR_v2(Width=512, Height=8, Format=code, NumChannels=channels)
      if found is None or found[1].endswith("INT") and not found[2]:
        said = error(c, "cuArray3DCreate_v2", ctypes.byref(out), ctypes.byref(d))
        assert said == "NOT_SUPPORTED" and name in c.machine.logs[-1]
        continue
      right = (str(channels) == found[3]) if found[3] else channels in (1, 2, 4)
      if not right:
        assert error(c, "cuArray3DCreate_v2", ctypes.byref(out), ctypes.byref(d)) == "INVALID_VALUE", (name, channels)
        continue
      free = c.machine.gpus[0].allocator.free_bytes
      array = c.handle("cuArray3DCreate_v2", ctypes.byref(d))
      size = {"HALF": 2, "FLOAT": 4}.get(found[1]) or int(found[2]) // 8
      assert free - c.machine.gpus[0].allocator.free_bytes == 512 * 8 * size * channels, (name, channels)
      told = cuda.CUDA_ARRAY3D_DESCRIPTOR_v2()
      c.call("cuArray3DGetDescriptor_v2", ctypes.byref(told), u64(array))
      assert bytes(told) == bytes(d)
      c.call("cuArrayDestroy", u64(array))
  d = cuda.CUDA_ARRAY3D_DESCRIPTOR_v2(Width=512, Height=8, Format=0x7F, NumChannels=1)
  assert error(c, "cuArray3DCreate_v2", ctypes.byref(out), ctypes.byref(d)) == "INVALID_VALUE"


def test_flags_of_every_geometry(client: Client) -> None:
  """Which flags go together with which size, and the names of those that are not modelled."""
  c = client
  def said(size: tuple[int, int, int], flags: int) -> str:
    d, out = described(size, flags), u64(0)
    found = error(c, "cuArray3DCreate_v2", ctypes.byref(out), ctypes.byref(d))
    if found == "CUDA_SUCCESS": c.call("cuArrayDestroy", out)
    return found
  known = (LAYERED, CUBE, SURFACE, GATHER)
  for size, chosen in product(product((0, 6), (0, 6), (0, 6)), product((False, True), repeat=4)):
    w, h, d = map(bool, size)
    layered, cube, _, gather = chosen
    flags = sum(f for f, on in zip(known, chosen) if on)
    if cube: good = w and h and d
    elif layered: good = w and d
    else: good = w and (h or not d)
    if gather: good = good and h and not d and not layered and not cube
    assert said(size, flags) == ("CUDA_SUCCESS" if good else "INVALID_VALUE"), (size, chosen)
  names = {v: n for n, v in vars(cuda).items() if n.startswith("CUDA_ARRAY3D_") and isinstance(v, int)}
  others = {v: n for v, n in names.items() if v not in known}
  assert len(others) >= 3
  for flag, name in others.items():
    assert said((4, 4, 0), flag) == "NOT_SUPPORTED" and name in c.machine.logs[-1]
  assert said((4, 4, 0), 1 << 30) == "INVALID_VALUE"


@pytest.mark.parametrize(("size", "flags"), [
  ((32768, 1, 0), 0), ((1, 32768, 0), 0), ((32768, 0, 0), 0), ((1, 1, 2048), LAYERED), ((32768, 1, 0), GATHER)])
def test_limits_of_mipmapped_and_gathered_arrays(client: Client, size: tuple[int, int, int], flags: int) -> None:
  c, out = client, u64(0)
  for more, wanted in ((0, "CUDA_SUCCESS"), (1, "INVALID_VALUE")):
    if flags & GATHER: w, h, d = size[0] + more, size[1], size[2]
    else: w, h, d = (n + more * (n > 1000) for n in size)
    given = described((w, h, d), flags)
    if flags & GATHER: said = error(c, "cuArray3DCreate_v2", ctypes.byref(out), ctypes.byref(given))
    else: said = error(c, "cuMipmappedArrayCreate", ctypes.byref(out), ctypes.byref(given), 1)
    assert said == wanted
    if not more: c.call("cuArrayDestroy" if flags & GATHER else "cuMipmappedArrayDestroy", out)


# ---- addresses

def mapped(c: Client, at: int, start: int, size: int, handle: int) -> str:
  return error(c, "cuMemMap", u64(at + start * UNIT), COUNT(size * UNIT), COUNT(0), u64(handle), u64(0))


def test_mappings_lie_side_by_side_and_never_one_over_another(client: Client) -> None:
  """Of a range of five units the middle one or two are taken: what may be mapped, given access, and unmapped beside
  it, of every place and size."""
  c, units = client, 5
  at = c.handle("cuMemAddressReserve", COUNT(units * UNIT), COUNT(0), u64(0), u64(0))
  big = physical(c, 3 * UNIT)
  for first, length in ((2, 1), (1, 2)):
    assert mapped(c, at, first, length, big) == "CUDA_SUCCESS"
    for start, size in product(range(units), range(1, 5)):
      fits = start + size <= units and size <= 3
      free = fits and (start + size <= first or first + length <= start)
      assert mapped(c, at, start, size, big) == ("CUDA_SUCCESS" if free else "INVALID_VALUE"), (start, size)
      there = {first: length} | ({start: size} if free else {})
      def whole(a: int, n: int, there: dict[int, int] = there) -> bool:
        while n > 0 and a in there: a, n = a + there[a], n - there[a]
        return n == 0
      for a, n in ((start, size), (first, 1), (first, length + size), (min(first, start), length + size)):
        said = error(c, "cuMemSetAccess", u64(at + a * UNIT), COUNT(n * UNIT), None, COUNT(0))
        assert (said == "CUDA_SUCCESS") == whole(a, n), (there, a, n)
      if free: c.call("cuMemUnmap", u64(at + start * UNIT), COUNT(size * UNIT))
    assert error(c, "cuMemUnmap", u64(at), COUNT(UNIT)) == "INVALID_VALUE"
    c.call("cuMemUnmap", u64(at + first * UNIT), COUNT(length * UNIT))
  for offset, flags, size in ((UNIT, 0, UNIT), (0, 1, UNIT), (0, 0, 0), (0, 0, UNIT // 2)):
    assert error(c, "cuMemMap", u64(at), COUNT(size), COUNT(offset), u64(big), u64(flags)) == "INVALID_VALUE"
  assert error(c, "cuMemMap", u64(at + UNIT // 2), COUNT(UNIT), COUNT(0), u64(big), u64(0)) == "INVALID_VALUE"


def test_each_end_of_a_mapping(client: Client) -> None:
  """Its first and its last byte are its; one before and one behind are another's, or nobody's."""
  c = client
  at = c.handle("cuMemAddressReserve", COUNT(4 * UNIT), COUNT(0), u64(0), u64(0))
  one, two = physical(c, UNIT), physical(c, UNIT, 1)
  for start, handle in ((1, one), (2, two)): assert mapped(c, at, start, 1, handle) == "CUDA_SUCCESS"
  granted(c, at + UNIT, UNIT)
  where, flags, out = cuda.CUmemLocation(type=cuda.CU_MEM_LOCATION_TYPE_DEVICE), u64(7), u64(0)
  for place, owner, access in ((UNIT - 1, 0, None), (UNIT, one, 3), (2 * UNIT - 1, one, 3), (2 * UNIT, two, 0),
                               (3 * UNIT - 1, two, 0), (3 * UNIT, 0, None), (4 * UNIT, 0, None), (-1, 0, None)):
    said = error(c, "cuMemRetainAllocationHandle", ctypes.byref(out), u64(at + place))
    assert said == ("CUDA_SUCCESS" if owner else "INVALID_VALUE") and (not owner or out.value == owner), place
    if owner: c.call("cuMemRelease", out)
    said = error(c, "cuMemGetAccess", ctypes.byref(flags), ctypes.byref(where), u64(at + place))
    assert said == ("CUDA_SUCCESS" if owner else "INVALID_VALUE") and (not owner or flags.value == access), place
  assert error(c, "cuMemAddressFree", u64(at), COUNT(3 * UNIT)) == "INVALID_VALUE"
  assert error(c, "cuMemAddressFree", u64(at + UNIT), COUNT(3 * UNIT)) == "INVALID_VALUE"


@pytest.mark.parametrize(("size", "alignment", "flags", "right"), [
  (UNIT, 0, 0, True), (UNIT, UNIT, 0, True), (UNIT, 4 * UNIT, 0, True), (UNIT, 1, 0, True), (UNIT, 3 * UNIT, 0, False),
  (UNIT + 4096, 0, 0, False), (0, 0, 0, False), (UNIT, 0, 1, False)])
def test_reservations(client: Client, size: int, alignment: int, flags: int, right: bool) -> None:
  out = u64(0)
  said = error(client, "cuMemAddressReserve", ctypes.byref(out), COUNT(size), COUNT(alignment), u64(0), u64(flags))
  assert said == ("CUDA_SUCCESS" if right else "INVALID_VALUE")
  assert not right or out.value % max(alignment, UNIT) == 0


@pytest.mark.parametrize(("changes", "said"), [
  ({"type": 0}, "INVALID_VALUE"), ({"location.type": cuda.CU_MEM_LOCATION_TYPE_HOST}, "NOT_SUPPORTED"),
  ({"location.id": 2}, "INVALID_DEVICE"), ({"location.id": -1}, "INVALID_DEVICE"), ({"location.id": 1}, "CUDA_SUCCESS"),
  ({"allocFlags.usage": 1}, "NOT_SUPPORTED"), ({"allocFlags.compressionType": 1}, "CUDA_SUCCESS")])
def test_what_physical_memory_is_made_of(client: Client, changes: dict[str, int], said: str) -> None:
  """Both calls that are given it look at it alike, and it is told again."""
  p = cuda.CUmemAllocationProp_v1(type=cuda.CU_MEM_ALLOCATION_TYPE_PINNED)
  p.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  for path, value in changes.items():
    *way, name = path.split(".")
    setattr(getattr(p, way[0]) if way else p, name, value)
  out, handle = u64(0), u64(0)
  for option, right in ((0, True), (1, True), (2, False)):
    found = error(client, "cuMemGetAllocationGranularity", ctypes.byref(out), ctypes.byref(p), option)
    assert found == (said if right or said != "CUDA_SUCCESS" else "INVALID_VALUE")
  for size, flags in ((UNIT, 1), (UNIT + 4096, 0), (0, 0), (UNIT, 0)):
    found = error(client, "cuMemCreate", ctypes.byref(handle), COUNT(size), ctypes.byref(p), u64(flags))
    assert found == (said if (size, flags) == (UNIT, 0) or said != "CUDA_SUCCESS" else "INVALID_VALUE")
  if said != "CUDA_SUCCESS": return
  told = cuda.CUmemAllocationProp_v1()
  client.call("cuMemGetAllocationPropertiesFromHandle", ctypes.byref(told), handle)
  assert out.value == UNIT and told.location.id == p.location.id and told.allocFlags.compressionType == 0


# ---- conditions

def conditional(c: Client, graph: int, handle: int, kind: int, size: int) -> str:
  p = cuda.CUgraphNodeParams(type=cuda.CU_GRAPH_NODE_TYPE_CONDITIONAL)
  p.conditional.handle, p.conditional.type, p.conditional.size, p.conditional.ctx = handle, kind, size, c.context
  return error(c, "cuGraphAddNode_v2", ctypes.byref(u64(0)), u64(graph), None, None, COUNT(0), ctypes.byref(p))


def test_a_condition_is_for_one_node_of_so_many_bodies(client: Client) -> None:
  c, graph = client, client.handle("cuGraphCreate", 0)
  def condition() -> int:
    return c.handle("cuGraphConditionalHandleCreate", u64(graph), u64(c.context), 0, 0)
  most = {cuda.CU_GRAPH_COND_TYPE_IF: 2, cuda.CU_GRAPH_COND_TYPE_WHILE: 1, cuda.CU_GRAPH_COND_TYPE_SWITCH: 9}
  for kind, size in product((*most, 3, 7), range(4)):
    handle, good = condition(), kind in most and 1 <= size <= most[kind]
    assert conditional(c, graph, handle, kind, size) == ("CUDA_SUCCESS" if good else "INVALID_VALUE"), (kind, size)
    again = conditional(c, graph, handle, cuda.CU_GRAPH_COND_TYPE_IF, 1)  # what was refused has not used it
    assert again == ("INVALID_VALUE" if good else "CUDA_SUCCESS")
  assert conditional(c, graph, graph, cuda.CU_GRAPH_COND_TYPE_IF, 1) == "INVALID_VALUE"


# ---- graphs

def test_memory_of_a_graph_comes_once(client: Client) -> None:
  """A second launch before it was freed fails, unless the graph frees it itself."""
  c, stream = client, client.handle("cuStreamCreate", 1)
  c.call("cuStreamBeginCapture_v2", u64(stream), 0)
  at = c.handle("cuMemAllocAsync", COUNT(64), u64(stream))
  c.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph := u64(0)))
  ready = c.handle("cuGraphInstantiateWithFlags", graph, u64(0))
  c.call("cuGraphLaunch", u64(ready), u64(stream))
  c.call("cuStreamSynchronize", u64(stream))
  said = error(c, "cuGraphLaunch", u64(ready), u64(stream))
  if said == "CUDA_SUCCESS": said = error(c, "cuStreamSynchronize", u64(stream))
  assert said == "INVALID_VALUE" and at in c.machine.pieces


def test_a_cooperative_launch_that_is_captured(client: Client) -> None:
  """Its node says so; another one does not."""
  c, stream, function, at = client, client.handle("cuStreamCreate", 1), client.function(WAIT, "put"), client.alloc(4)
  given = u64(at), u32(1)
  places = (ctypes.c_void_p * 2)(*(ctypes.addressof(g) for g in given))
  for name, more in (("cuLaunchCooperativeKernel", ()), ("cuLaunchKernel", (None,))):
    c.call("cuStreamBeginCapture_v2", u64(stream), 0)
    c.call(name, u64(function), 1, 1, 1, 1, 1, 1, 0, u64(stream), places, *more)
    c.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph := u64(0)))
    nodes, count = (ctypes.c_uint64 * 1)(), COUNT(1)
    c.call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
    value = cuda.CUstreamAttrValue()
    c.call("cuGraphKernelNodeGetAttribute", u64(nodes[0]), cuda.CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE,
           ctypes.byref(value))
    assert count.value == 1 and value.cooperative == int(not more)


def test_an_event_of_outside_in_a_capture(client: Client) -> None:
  """With CU_EVENT_WAIT_EXTERNAL the wait is a node; without, the event must be of the capture."""
  c, stream, event = client, client.handle("cuStreamCreate", 1), client.handle("cuEventCreate", 0)
  c.call("cuEventRecord", u64(event), u64(0))
  c.call("cuStreamBeginCapture_v2", u64(stream), 0)
  c.call("cuStreamWaitEvent", u64(stream), u64(event), cuda.CU_EVENT_WAIT_EXTERNAL)
  c.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph := u64(0)))
  nodes, count, kind = (ctypes.c_uint64 * 2)(), COUNT(2), ctypes.c_int()
  c.call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
  c.call("cuGraphNodeGetType", u64(nodes[0]), ctypes.byref(kind))
  assert (count.value, kind.value) == (1, cuda.CU_GRAPH_NODE_TYPE_WAIT_EVENT)
  c.call("cuStreamBeginCapture_v2", u64(stream), 0)
  assert error(c, "cuStreamWaitEvent", u64(stream), u64(event), 0) == "STREAM_CAPTURE_ISOLATION"


# ---- kernels and what they are loaded from

def test_parameters_of_a_kernel_have_places(client: Client) -> None:
  c = client
  text = HEAD + """.visible .entry k(.param .u8 a, .param .u64 b, .param .u32 c, .param .align 16 .b8 d[20]) { ret; }
.visible .entry none() { ret; }"""
  wanted = [(0, 1), (8, 8), (16, 4), (32, 20)]
  module = c.handle("cuModuleLoadData", text.encode() + b"\0")
  handle = c.handle("cuModuleGetFunction", u64(module), b"k")
  lib = c.handle("cuLibraryLoadData", text.encode() + b"\0", None, None, 0, None, None, 0)
  kernel = c.handle("cuLibraryGetKernel", u64(lib), b"k")
  for name, of in (("cuFuncGetParamInfo", handle), ("cuKernelGetParamInfo", kernel)):
    for i, (at, length) in enumerate(wanted):
      offset, size = u64(99), u64(99)
      c.call(name, u64(of), COUNT(i), ctypes.byref(offset), None)
      c.call(name, u64(of), COUNT(i), ctypes.byref(offset), ctypes.byref(size))
      assert (offset.value, size.value) == (at, length)
    assert error(c, name, u64(of), COUNT(4), ctypes.byref(offset), None) == "INVALID_VALUE"
  none = c.handle("cuModuleGetFunction", u64(module), b"none")
  assert error(c, "cuFuncGetParamInfo", u64(none), COUNT(0), ctypes.byref(offset), None) == "INVALID_VALUE"


def with_segments(image: bytes, count: int) -> bytes:
  """An ELF with segments of no kind, whose table ends the file."""
  out = bytearray(image + bytes(-len(image) % 8))
  struct.pack_into("<Q", out, 32, len(out))
  struct.pack_into("<2H", out, 54, 56, count)
  return bytes(out) + bytes(56 * count)


def test_an_elf_ends_with_whatever_lies_last(client: Client) -> None:
  """Its table of sections, its segments', or the contents of a section: so much of the program's memory is read."""
  c, image = client, cubin(SAXPY, "saxpy", size=24)
  table, = struct.unpack_from("<Q", image, 40)
  moved = bytearray(image[:64] + image[table:] + image[64:table])  # the sections' table before their contents
  shift = len(image) - table
  struct.pack_into("<Q", moved, 40, 64)
  for i in range(shift // 64):
    at, = struct.unpack_from("<Q", moved, 64 + 64 * i + 24)
    struct.pack_into("<Q", moved, 64 + 64 * i + 24, at + shift)
  for data in (image, with_segments(image, 1), with_segments(image, 5), bytes(moved), with_segments(bytes(moved), 2)):
    module = c.handle("cuModuleLoadData", data)
    c.handle("cuModuleGetFunction", u64(module), b"saxpy")
    c.call("cuModuleUnload", u64(module))


def test_strings_end(client: Client) -> None:
  m, text = client.machine, ctypes.create_string_buffer(b"x" * 5000)
  at = ctypes.addressof(text)
  assert m.text(at) == b"x" * 5000 == m.text(at, 5001)
  for most in (5000, 4, 0):
    with pytest.raises(Failed) as caught: m.text(at, most)
    assert caught.value.code == cuda.CUDA_ERROR_INVALID_VALUE


def test_a_linker_says_which_input_is_none(client: Client) -> None:
  link = Linker(client)
  assert link.add(b"\x7fELF" + bytes(60), name=b"first") == cuda.CUDA_ERROR_INVALID_IMAGE
  assert b"first" in link.log.value
  link = Linker(client)
  assert link.add(SAXPY, NVVM, b"second") == cuda.CUDA_ERROR_NOT_SUPPORTED and b"second" in link.log.value


# ---- the process

@pytest.mark.parametrize("initialized", [False, True])
@pytest.mark.parametrize("another", [False, True])
def test_what_a_child_of_fork_finds(initialized: bool, another: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  """Nothing that works where its parent had initialized CUDA; else what it is given, or its parent's machine."""
  c = Client(context=False)
  if initialized: c.call("cuInit", 0)
  stand = library._stand
  assert stand is not None
  made: list[Any] = []
  def machine() -> Any:
    made.append(type(c.machine)("sm_80", vram=1 << 24))
    return made[-1]
  monkeypatch.setattr(stand, "another", machine if another else None)
  own, count = os.getpid(), ctypes.c_int()
  monkeypatch.setattr(os, "getpid", lambda: own + 1)
  said = error(c, "cuInit", 0)
  if initialized or not another: assert said == "NOT_INITIALIZED" and not made
  else:
    assert said == "CUDA_SUCCESS" and len(made) == 1
    name = ctypes.create_string_buffer(99)
    c.call("cuDeviceGetName", name, 99, 0)
    assert b"A100" in name.value
    c.call("cuDeviceGetCount", ctypes.byref(count))
    assert len(made) == 1 == count.value
  monkeypatch.undo()
  stand.put(c.machine)
  for m in (*made, c.machine): m.close()

def test_python_collects_again_after_a_childs_calls(monkeypatch: pytest.MonkeyPatch) -> None:
  """A child that fork made inside a call, or beside one, counts its own calls anew."""
  c = Client(context=False)
  stand = library._stand
  assert stand is not None and gc.isenabled()
  made: list[Any] = []
  def machine() -> Any:
    made.append(type(c.machine)("sm_80", vram=1 << 24))
    return made[-1]
  monkeypatch.setattr(stand, "another", machine)
  own = os.getpid()
  monkeypatch.setattr(os, "getpid", lambda: own + 2)
  UNCOLLECTED.inside += 1  # of another thread, which the child has not
  said = list[tuple[int, bool]]()
  def calls() -> None:
    for _ in range(3): said.append((c.code("cuInit", 0), gc.isenabled()))
  thread = threading.Thread(target=calls)
  thread.start()
  thread.join()
  assert said == [(0, True)] * 3
  monkeypatch.undo()
  stand.put(c.machine)
  for m in (*made, c.machine): m.close()


def test_a_level_alone_is_mipmapped_too(client: Client) -> None:
  """So its texture is looked at by normalized coordinates, and another array's need not be."""
  c, out = client, u64(0)
  for name, kind, more in (("cuMipmappedArrayCreate", cuda.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, (1,)),
                           ("cuArray3DCreate_v2", cuda.CU_RESOURCE_TYPE_ARRAY, ())):
    array = c.handle(name, ctypes.byref(described((8, 8, 0))), *more)
    resource = cuda.CUDA_RESOURCE_DESC_v1(resType=kind)
    resource.res.array.hArray = array
    for flags in (0, cuda.CU_TRSF_NORMALIZED_COORDINATES):
      sampling = cuda.CUDA_TEXTURE_DESC_v1(flags=flags | cuda.CU_TRSF_READ_AS_INTEGER)
      said = error(c, "cuTexObjectCreate", ctypes.byref(out), ctypes.byref(resource), ctypes.byref(sampling), None)
      assert said == ("INVALID_VALUE" if more and not flags else "CUDA_SUCCESS")


@pytest.mark.parametrize(("size", "flags", "line"), [
  ((16, 0, 0), 0, True), ((16, 1, 0), 0, True), ((16, 2, 0), 0, False), ((16, 1, 2), 0, False),
  ((16, 0, 2), LAYERED, False)])
def test_lines_of_arrays(client: Client, size: tuple[int, int, int], flags: int, line: bool) -> None:
  """Only of those that are one line, and to its last byte."""
  c, data = client, (ctypes.c_uint8 * 17)(*range(17))
  array = c.handle("cuArray3DCreate_v2", ctypes.byref(described(size, flags)))
  for offset, count in ((0, 16), (15, 1), (0, 17), (15, 2), (16, 1)):
    good = line and offset + count <= 16
    said = error(c, "cuMemcpyHtoA_v2", u64(array), COUNT(offset), data, COUNT(count))
    assert said == ("CUDA_SUCCESS" if good else "INVALID_VALUE"), (offset, count)
    back = (ctypes.c_uint8 * 17)()
    if good:
      c.call("cuMemcpyAtoH_v2", back, u64(array), COUNT(offset), COUNT(count))
      assert [*back][:count] == [*data][:count]


def test_kinds_of_memory_of_a_copy(client: Client) -> None:
  c, at = client, client.alloc(64)
  kinds = {cuda.CU_MEMORYTYPE_HOST, cuda.CU_MEMORYTYPE_DEVICE, cuda.CU_MEMORYTYPE_ARRAY, cuda.CU_MEMORYTYPE_UNIFIED}
  own = (ctypes.c_uint8 * 64)()
  array = c.handle("cuArray3DCreate_v2", ctypes.byref(described((16, 0, 0))))
  for kind, which in product(range(7), ("src", "dst")):
    p = cuda.CUDA_MEMCPY2D_v2(WidthInBytes=16, Height=1)
    for side in ("src", "dst"):
      setattr(p, f"{side}MemoryType", kind if side == which else cuda.CU_MEMORYTYPE_DEVICE)
      setattr(p, f"{side}Device", at)
      setattr(p, f"{side}Host", ctypes.addressof(own))
      setattr(p, f"{side}Array", array)
    assert (error(c, "cuMemcpy2D_v2", ctypes.byref(p)) == "CUDA_SUCCESS") == (kind in kinds), (kind, which)


def test_every_order_of_a_graphs_nodes_happens() -> None:
  """Of two that nothing orders each is the first one once, as the seed says."""
  found = set()
  for seed in range(12):
    c = Client(seed=seed)
    at, graph = c.alloc(4), c.handle("cuGraphCreate", 0)
    for value in (1, 2):
      fill = cuda.CUDA_MEMSET_NODE_PARAMS_v1(dst=at, pitch=4, value=value, elementSize=4, width=1, height=1)
      node(c, graph, "Memset", (), ctypes.byref(fill), u64(c.context))
    c.call("cuGraphLaunch", u64(c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))), u64(0))
    found.add(int(c.get(at, np.zeros(1, np.uint32))[0]))
    c.machine.close()
    if len(found) == 2: return
  raise AssertionError(found)


def test_a_node_goes_with_its_edges(client: Client) -> None:
  """Those behind it have one dependency fewer, and run."""
  c, graph, at = client, client.handle("cuGraphCreate", 0), client.alloc(4)
  def fill(value: int, *after: int) -> int:
    p = cuda.CUDA_MEMSET_NODE_PARAMS_v1(dst=at, pitch=4, value=value, elementSize=4, width=1, height=1)
    return node(c, graph, "Memset", after, ctypes.byref(p), u64(c.context))
  first, other = fill(1), fill(2)
  last = fill(3, first, other)
  c.call("cuGraphDestroyNode", u64(first))
  out, count = (ctypes.c_uint64 * 3)(), COUNT(3)
  c.call("cuGraphNodeGetDependencies", u64(last), out, ctypes.byref(count))
  assert [*out][:count.value] == [other]
  c.call("cuGraphLaunch", u64(c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))), u64(0))
  assert c.get(at, np.zeros(1, np.uint32))[0] == 3


def test_the_log_keeps_a_hundred_lines(client: Client) -> None:
  for n in range(150): assert client.code("cuDeviceGet", ctypes.byref(ctypes.c_int()), 100 + n) != 0
  assert len(client.machine.logs) == 100 and "no device 150" in client.machine.logs[0]


def test_an_event_is_what_it_was_last(client: Client) -> None:
  """Recorded in a capture and then in a stream, it is waited for as the stream's."""
  c, event = client, client.handle("cuEventCreate", 0)
  one, two = (client.handle("cuStreamCreate", 1) for _ in range(2))
  c.call("cuStreamBeginCapture_v2", u64(one), 0)
  c.call("cuEventRecord", u64(event), u64(one))
  c.call("cuStreamEndCapture", u64(one), ctypes.byref(u64(0)))
  c.call("cuEventRecord", u64(event), u64(one))
  c.call("cuStreamWaitEvent", u64(two), u64(event), 0)
  captured = ctypes.c_int(9)
  c.call("cuStreamIsCapturing", u64(two), ctypes.byref(captured))
  assert captured.value == cuda.CU_STREAM_CAPTURE_STATUS_NONE
  c.call("cuEventQuery", u64(event))


@pytest.mark.parametrize(("size", "right"), [(0, False), (1, True), (4097, True)])
def test_memory_of_a_graph_has_a_size(client: Client, size: int, right: bool) -> None:
  c, graph = client, client.handle("cuGraphCreate", 0)
  p = cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1(bytesize=size)
  p.poolProps.allocType = cuda.CU_MEM_ALLOCATION_TYPE_PINNED
  p.poolProps.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  said = error(c, "cuGraphAddMemAllocNode", ctypes.byref(u64(0)), u64(graph), None, COUNT(0), ctypes.byref(p))
  assert said == ("CUDA_SUCCESS" if right else "INVALID_VALUE") and bool(p.dptr) == right


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_corners_of_boxes_of_pixels(client: Client, rank: int) -> None:
  """Numbers of 16, 8 and 5 bits, with a sign (CUDA Driver API, cuTensorMapEncodeIm2col)."""
  c, out, low = client, aligned(128), -(1 << {3: 15, 4: 7, 5: 4}[rank])
  dims = (ctypes.c_uint64 * 5)(16, *[200] * 4)
  strides = (ctypes.c_uint64 * 4)(*(64 * 200**k for k in range(4)))
  steps = (ctypes.c_uint32 * 5)(*[1] * 5)
  def said(lower: int, upper: int, axis: int) -> str:
    corners = [(ctypes.c_int * 3)(*(v if k == axis else 0 for k in range(3))) for v in (lower, upper)]
    return error(c, "cuTensorMapEncodeIm2col", u64(out.ctypes.data), cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank,
                 u64(1 << 40), dims, strides, *corners, 8, 16, steps, 0, 0, 0, 0)
  for axis in range(rank - 2):
    for lower, upper, right in ((low, 0, True), (low - 1, 0, False), (0, -low - 1, True), (0, -low, False)):
      assert said(lower, upper, axis) == ("CUDA_SUCCESS" if right else "INVALID_VALUE"), (axis, lower, upper)


HEAPS = HEAD + """
.extern .func (.param .b64 out) malloc(.param .b64 size);
.visible .global .align 8 .b64 before[9];
.visible .entry kept(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b64 %size;
  ld.param.u64 %rd0, [out]; mov.u64 %size, 40; mov.u64 %rd2, before; st.global.u64 [%rd2], %size;
  { .param .b64 a; st.param.b64 [a], %size; .param .b64 b; call.uni (b), malloc, (a); ld.param.b64 %rd1, [b]; }
  st.global.u64 [%rd0], %rd1; ret; }
"""


def test_modules_of_a_context_share_a_heap(client: Client) -> None:
  """Wherever in a module its address is; the memory that they get is each its own."""
  c, out = client, client.alloc(8)
  found = []
  for text in (HEAPS, HEAPS.replace("before[9]", "before[200]")):
    assert c.launch(c.function(text, "kept"), 1, 1, [u64(out)]) == 0
    c.call("cuCtxSynchronize")
    found.append(int(c.get(out, np.zeros(1, np.uint64))[0]))
  assert found[0] and found[1] and 48 <= abs(found[1] - found[0]) < 4096


def test_bytes_of_an_array_in_parts() -> None:
  """From the middle of a row on, over whole rows, to the middle of another one: either way."""
  p, data = program(), np.arange(1, 33, dtype=np.int32)
  array = p.made("cudaMallocArray", ctypes.byref(channel(32, cudart.cudaChannelFormatKindSigned)), 8, 4, 0)
  p("cudaMemcpyToArray", array, 0, 0, data.ctypes.data, 128, UP)
  for first, count in ((3, 5), (3, 20), (8, 16), (8, 20), (1, 31), (31, 1)):
    seen = np.zeros(40, np.int32)
    p("cudaMemcpyFromArray", seen.ctypes.data, array, 4 * (first % 8), first // 8, 4 * count, DOWN)
    assert seen[:count].tolist() == data[first:first + count].tolist() and not seen[count:].any()
    p("cudaMemcpyToArray", array, 4 * (first % 8), first // 8, (data + 100).ctypes.data, 4 * count, UP)
    p("cudaMemcpyFromArray", seen.ctypes.data, array, 0, 0, 128, DOWN)
    wanted = data.copy()
    wanted[first:first + count] = data[:count] + 100
    assert seen[:32].tolist() == wanted.tolist()
    p("cudaMemcpyToArray", array, 0, 0, data.ctypes.data, 128, UP)


@pytest.mark.parametrize(("default", "flags", "value"), [(3, 1, 3), (1, 0, None), (5, 0, None), (0, 1, 0)])
def test_the_default_of_a_runtimes_condition(default: int, flags: int, value: int | None) -> None:
  """Where the flag says so; each launch begins with it."""
  p = program()
  graph, memory = p.made("cudaGraphCreate", 0), p.made("cudaMalloc", 4)
  handle = p.made("cudaGraphConditionalHandleCreate", graph, default, flags)
  given = cudart.cudaGraphNodeParams(type=cudart.cudaGraphNodeTypeConditional)
  c = given.conditional
  c.handle, c.type, c.size = handle, cuda.CU_GRAPH_COND_TYPE_SWITCH, 4
  p.made("cudaGraphAddNode", graph, 0, 0, 0, ctypes.byref(given))
  bodies = (ctypes.c_uint64 * 4).from_address(c.phGraph_out)
  for k, body in enumerate(bodies):
    fill = cudart.cudaMemsetParams(dst=memory, value=10 + k, elementSize=4, width=1, height=1)
    p.made("cudaGraphAddMemsetNode", body, 0, 0, ctypes.byref(fill))
  p("cudaMemset", memory, 0, 4)
  p("cudaGraphLaunch", p.made("cudaGraphInstantiate", graph, 0), 0)
  seen = np.zeros(1, np.uint32)
  p("cudaMemcpy", seen.ctypes.data, memory, 4, DOWN)
  assert seen[0] == (10 if value is None else 10 + value)


@pytest.mark.parametrize("version", [None, "libx.so.1"])
def test_sections_of_the_library(version: str | None) -> None:
  """After the System V ABI and the GNU extensions, as pyelftools reads them."""
  elf = ELFFile(io.BytesIO(shared.library("libx.so", ["one", "two"], version)))
  write, allocated, executed = 1, 2, 4
  wanted = {"": ("SHT_NULL", 0, "", 0, 0), ".text": ("SHT_PROGBITS", allocated | executed, "", 0, 0),
            ".data": ("SHT_PROGBITS", allocated | write, "", 0, 0),
            ".dynsym": ("SHT_DYNSYM", allocated, ".dynstr", 1, 24),
            ".dynstr": ("SHT_STRTAB", allocated, "", 0, 0), ".hash": ("SHT_HASH", allocated, ".dynsym", 0, 4),
            ".dynamic": ("SHT_DYNAMIC", allocated | write, ".dynstr", 0, 16), ".shstrtab": ("SHT_STRTAB", 0, "", 0, 0)}
  if version is not None:
    wanted |= {".gnu.version": ("SHT_GNU_versym", allocated, ".dynsym", 0, 2),
               ".gnu.version_d": ("SHT_GNU_verdef", allocated, ".dynstr", 2, 0)}
  found = {}
  for s in elf.iter_sections():
    link = elf.get_section(s["sh_link"]).name if s["sh_link"] else ""
    found[s.name] = s["sh_type"], s["sh_flags"], link, s["sh_info"], s["sh_entsize"]
    assert s["sh_addr"] == (s["sh_offset"] if s["sh_flags"] else 0) and (not s.name or s["sh_addralign"] == 1)
  assert found == wanted
  head = elf.header
  assert (head["e_type"], head["e_machine"], head["e_version"], head["e_entry"], head["e_flags"]) == (
    "ET_DYN", "EM_X86_64", "EV_CURRENT", 0, 0)
  assert (head["e_phoff"], head["e_ehsize"], head["e_phentsize"], head["e_shentsize"]) == (64, 64, 56, 64)
  assert elf.get_section(head["e_shstrndx"]).name == ".shstrtab"
  for s in elf.iter_segments():
    assert s["p_align"] == (4096 if s["p_type"] == "PT_LOAD" else 16) and s["p_filesz"] == s["p_memsz"]
    assert s["p_offset"] == s["p_vaddr"] == s["p_paddr"] and s["p_offset"] % s["p_align"] == 0


def test_a_capture_into_a_graph_goes_on_behind_its_nodes(client: Client) -> None:
  """The first node that it adds has the edges that it was given, and no others."""
  c, graph, stream = client, client.handle("cuGraphCreate", 0), client.handle("cuStreamCreate", 1)
  one, two = (node(c, graph, "Empty") for _ in range(2))
  for given in ((), (one,), (one, two)):
    before, nodes, count = (ctypes.c_uint64 * 2)(*given), (ctypes.c_uint64 * 9)(), COUNT(9)
    c.call("cuGraphGetNodes", u64(graph), nodes, ctypes.byref(count))
    known = {*nodes[:count.value]}
    c.call("cuStreamBeginCaptureToGraph", u64(stream), u64(graph), before, None, COUNT(len(given)), 0)
    assert c.launch(c.function(WAIT, "put"), 1, 1, [u64(c.alloc(4)), u32(1)], stream) == 0
    c.call("cuStreamEndCapture", u64(stream), ctypes.byref(u64(0)))
    count.value = 9
    c.call("cuGraphGetNodes", u64(graph), nodes, ctypes.byref(count))
    new, = {*nodes[:count.value]} - known
    out, count = (ctypes.c_uint64 * 4)(), COUNT(4)
    c.call("cuGraphNodeGetDependencies", u64(new), out, ctypes.byref(count))
    assert {*out[:count.value]} == {*given}


def test_memory_of_the_host_has_a_name(client: Client) -> None:
  """In what is known of addresses, for faults beside it; it goes with the memory."""
  c = client
  at = c.handle("cuMemHostAlloc", COUNT(5000), 0)
  assert c.machine.space.used[at] == (5000, "memory of the host")
  c.call("cuMemFreeHost", u64(at))
  assert at not in c.machine.space.used


def test_all_arguments_of_a_runtimes_launch_are_the_drivers() -> None:
  """Each in its place: the driver is called with what the runtime was given."""
  p = program()
  p.machine.trace.enabled = True
  stream, at = p.made("cudaStreamCreateWithFlags", 1), p.made("cudaMalloc", 4 * 1024)
  values = ctypes.c_uint64(at), ctypes.c_uint32(1)
  places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
  grid, block = cudart.dim3(x=2, y=3, z=1), cudart.dim3(x=4, y=5, z=6)
  kernel = p.made("__cudaGetKernel", SCALE)
  p("cudaLaunchKernel", kernel, grid, block, places, 48, stream)
  p("cudaLaunchCooperativeKernel", kernel, grid, block, places, 48, stream)
  calls = [e.name for e in p.machine.trace if e.name.startswith(("cuLaunchKernel(", "cuLaunchCooperativeKernel("))]
  own = "2, 3, 1, 4, 5, 6, 48"
  for call, last in zip(calls, (f"{ctypes.addressof(places)}, 0)", f"{ctypes.addressof(places)})"), strict=True):
    assert re.fullmatch(rf"\w+\(\d+, {own}, {stream}, {re.escape(last)}", call), call


def test_kinds_of_a_runtimes_copies_of_arrays() -> None:
  p = program()
  arrays = [p.made("cudaMallocArray", ctypes.byref(channel(32, cudart.cudaChannelFormatKindSigned)), 8, 4, 0)
            for _ in range(2)]
  for kind in range(-1, 7):
    code = p.code("cudaMemcpy2DArrayToArray", arrays[0], 0, 0, arrays[1], 0, 0, 16, 2, ctypes.c_int(kind))
    assert code == (0 if 0 <= kind <= 4 else cudart.cudaErrorInvalidMemcpyDirection)


def test_flags_of_a_runtimes_texture() -> None:
  """Each field is one flag of the driver's, and no other."""
  p = program()
  array = p.made("cudaMallocArray", ctypes.byref(channel(8, cudart.cudaChannelFormatKindUnsigned)), 8, 8, 0)
  resource = cudart.cudaResourceDesc(resType=cudart.cudaResourceTypeArray)
  resource.res.array.array = array
  names = {"sRGB": cuda.CU_TRSF_SRGB, "normalizedCoords": cuda.CU_TRSF_NORMALIZED_COORDINATES,
           "disableTrilinearOptimization": cuda.CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION}
  for chosen in product((0, 1), repeat=len(names)):
    for mode, more in ((cudart.cudaReadModeElementType, cuda.CU_TRSF_READ_AS_INTEGER),
                       (cudart.cudaReadModeNormalizedFloat, 0)):
      sampling = cudart.cudaTextureDesc(readMode=mode, **dict(zip(names, chosen)))
      texture = p.made("cudaCreateTextureObject", ctypes.byref(resource), ctypes.byref(sampling), 0)
      told = cuda.CUDA_TEXTURE_DESC_v1()
      p.runtime.call("cuTexObjectGetTextureDesc", ctypes.addressof(told), texture)
      assert told.flags == more | sum(f for f, on in zip(names.values(), chosen) if on)
      p("cudaDestroyTextureObject", texture)
  sampling = cudart.cudaTextureDesc(seamlessCubemap=1)
  assert p.code("cudaCreateTextureObject", ctypes.byref(u64(0)), ctypes.byref(resource), ctypes.byref(sampling),
                0) == cudart.cudaErrorInvalidValue  # what is no cube has no edges


@pytest.mark.parametrize("count", [1, 2, 40])
def test_the_hash_table_of_the_library(count: int) -> None:
  """Each symbol is in the chain of its bucket, once; each chain ends (System V ABI, "Hash Table")."""
  raw = shared.library("libx.so", [f"f{i * i}" for i in range(count)])
  dynamic, = (s for s in ELFFile(io.BytesIO(raw)).iter_segments() if s["p_type"] == "PT_DYNAMIC")
  tags = {t.entry.d_tag: t.entry.d_val for t in dynamic.iter_tags()}
  assert tags["DT_SYMENT"] == 24
  buckets, symbols = struct.unpack_from("<2I", raw, tags["DT_HASH"])
  heads = struct.unpack_from(f"<{buckets}I", raw, tags["DT_HASH"] + 8)
  chains = struct.unpack_from(f"<{symbols}I", raw, tags["DT_HASH"] + 8 + 4 * buckets)
  found = []
  for bucket, at in enumerate(heads):
    while at:
      found.append(at)
      name, = struct.unpack_from("<I", raw, tags["DT_SYMTAB"] + 24 * at)
      text = raw[tags["DT_STRTAB"] + name:].partition(b"\0")[0]
      assert ELFHashTable.elf_hash(text.decode()) % buckets == bucket
      at = chains[at]
  assert sorted(found) == [*range(1, symbols)] and not chains[0]


def test_a_launch_that_is_taken_off_is_told() -> None:
  """Who has no patience loses the launch alone: its terms and the report say why, and what is behind it is done."""
  c = Client()
  c.machine.engine = "ref"
  terms = Terms(seconds=0.0)
  c.machine.agreed[threading.get_ident()] = terms
  at = c.alloc(8)
  text = HEAD + ".visible .entry forever() { here: bra here; }"
  assert c.launch(c.function(text, "forever"), 1, 1, []) == 0
  c.call("cuMemsetD32Async", u64(at), 7, COUNT(1), u64(0))
  c.call("cuCtxSynchronize")
  assert terms.interrupted is not None and "ran for more than 0 s" in c.machine.findings[-1] and c.machine.stops == 1
  assert c.get(at, np.zeros(1, np.uint32))[0] == 7


def test_parameters_that_lie_close_together(client: Client) -> None:
  """Given in one piece, they are where the kernel has them, whether there are gaps between them or not."""
  c, out = client, client.alloc(32)
  for kinds, numbers in ((("u64", "u32", "u32"), (5, 6)), (("u64", "u8", "u32"), (7, 8)),
                         (("u64", "u32", "u8"), (9, 1)), (("u64",), ())):
    names = "abc"[:len(kinds)]
    params = ", ".join(f".param .{k} {n}" for k, n in zip(kinds, names))
    body = "".join(f"ld.param.{k} %r, [{n}]; st.global.u32 [%rd+{4 * i}], %r;"
                   for i, (k, n) in enumerate([*zip(kinds, names)][1:]))
    text = HEAD + f".visible .entry k({params}) {{ .reg .u64 %rd; .reg .u32 %r; ld.param.u64 %rd, [a]; {body} ret; }}"
    function = c.function(text, "k")
    sizes, raw = {"u64": 8, "u32": 4, "u8": 1}, b""
    for kind, value in zip(kinds, (out, *numbers)):
      size = sizes[kind]
      raw = raw.ljust(-(-len(raw) // size) * size, b"\0") + value.to_bytes(size, "little")
    buffer, size_ = ctypes.create_string_buffer(raw), COUNT(len(raw))
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size_), 0)
    c.call("cuMemsetD32_v2", u64(out), 0, COUNT(8))
    c.call("cuLaunchKernel", u64(function), 1, 1, 1, 1, 1, 1, 0, u64(0), None, extra)
    assert c.get(out, np.zeros(2, np.uint32)).tolist() == [*numbers, 0, 0][:2]


def test_strings_may_be_empty(client: Client) -> None:
  for text, wanted in ((b"", b""), (b"\0after", b""), (b"a\0b", b"a")):
    room = ctypes.create_string_buffer(text + b"\0" * 8)
    assert client.machine.text(ctypes.addressof(room)) == wanted


@pytest.mark.parametrize("size", [100, 4096, 5000])
def test_copies_end_where_an_allocation_does(client: Client, size: int) -> None:
  """Not where its last page does: from it, to it, and within the card's memory."""
  c, at, other, own = client, client.alloc(size), client.alloc(2 * size), (ctypes.c_uint8 * (size + 1))()
  for offset, count in ((0, size), (1, size - 1), (size - 1, 1), (0, size + 1), (1, size), (size, 1)):
    said = "CUDA_SUCCESS" if offset + count <= size else "INVALID_VALUE"
    here = u64(at + offset)
    assert error(c, "cuMemcpyDtoH_v2", own, here, COUNT(count)) == said
    assert error(c, "cuMemcpyHtoD_v2", here, own, COUNT(count)) == said
    assert error(c, "cuMemcpyDtoD_v2", u64(other), here, COUNT(count)) == said
    assert error(c, "cuMemcpyDtoD_v2", here, u64(other), COUNT(count)) == said
    assert error(c, "cuMemsetD8_v2", here, 1, COUNT(count)) == said
    for name in ("cuMemcpy", "cuMemcpyAsync"):
      more = (u64(0),) if name.endswith("Async") else ()
      assert error(c, name, u64(other), here, COUNT(count), *more) == said, name
      assert error(c, name, here, u64(other), COUNT(count), *more) == said, name


def test_lists_of_edges_have_two_sides(client: Client) -> None:
  c, graph = client, client.handle("cuGraphCreate", 0)
  node(c, graph, "Empty", (node(c, graph, "Empty"),))
  rows, count = (ctypes.c_uint64 * 2)(), COUNT(2)
  for come, to in ((rows, None), (None, rows), (rows, (ctypes.c_uint64 * 2)()), (None, None)):
    right = (come is None) == (to is None)
    for name, more in (("cuGraphGetEdges", ()), ("cuGraphGetEdges_v2", (None,))):
      said = error(c, name, u64(graph), come, to, *more, ctypes.byref(count))
      assert said == ("CUDA_SUCCESS" if right else "INVALID_VALUE"), name


def test_nodes_that_a_capture_made_tell_no_parameters(client: Client) -> None:
  """Of a copy they would be of the stream's call; those of a launch are its own."""
  c, at, stream = client, client.alloc(8), client.handle("cuStreamCreate", 1)
  c.call("cuStreamBeginCapture_v2", u64(stream), 0)
  c.call("cuMemcpyDtoDAsync_v2", u64(at), u64(at + 4), COUNT(4), u64(stream))
  assert c.launch(c.function(WAIT, "put"), 1, 1, [u64(at), u32(1)], stream) == 0
  c.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph := u64(0)))
  nodes, count, kind = (ctypes.c_uint64 * 2)(), COUNT(2), ctypes.c_int()
  c.call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
  for n in nodes:
    c.call("cuGraphNodeGetType", u64(n), ctypes.byref(kind))
    if kind.value == cuda.CU_GRAPH_NODE_TYPE_KERNEL:
      told = cuda.CUDA_KERNEL_NODE_PARAMS_v2()
      c.call("cuGraphKernelNodeGetParams_v2", u64(n), ctypes.byref(told))
      assert told.gridDimX == 1
      assert error(c, "cuGraphKernelNodeGetParams_v2", u64(n), None) == "INVALID_VALUE"
      assert "a pointer for a result is null" in c.machine.logs[-1]
    else:
      box = cuda.CUDA_MEMCPY3D_v2()
      assert error(c, "cuGraphMemcpyNodeGetParams", u64(n), ctypes.byref(box)) == "NOT_SUPPORTED"


def test_blocks_of_a_runtimes_launch() -> None:
  """Of 1 to 1,024 threads, in a grid of one block at least."""
  p = program()
  values = ctypes.c_uint64(p.made("cudaMalloc", 4096)), ctypes.c_uint32(1)
  places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
  kernel = p.made("__cudaGetKernel", SCALE)
  for g, b, right in (((1, 1, 1), (1024, 1, 1), True), ((1, 1, 1), (16, 8, 8), True), ((1, 1, 1), (1025, 1, 1), False),
                      ((1, 1, 1), (32, 33, 1), False), *(((*(int(k != i) for k in range(3)),), (1, 1, 1), False)
                                                         for i in range(3)),
                      *(((1, 1, 1), (*(int(k != i) for k in range(3)),), False) for i in range(3))):
    grid, block = (cudart.dim3(**dict(zip("xyz", s))) for s in (g, b))
    for name in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel"):
      code = p.code(name, kernel, grid, block, places, 0, 0)
      assert (code == 0) == right and (right or code == cudart.cudaErrorInvalidConfiguration), (name, g, b)


def test_symbols_are_copied_in_parts() -> None:
  """At an offset, of a size, in either direction, at once or on a stream; past the end it is refused."""
  p = program()
  stream = p.made("cudaStreamCreateWithFlags", 1)
  given, back = (ctypes.c_uint8 * 4)(1, 2, 3, 4), (ctypes.c_uint8 * 8)()
  for offset, size in ((0, 4), (1, 2), (3, 1), (2, 2), (4, 0), (1, 4), (4, 1)):
    right = offset + size <= 4
    for name, more in (("", ()), ("Async", (stream,))):
      p("cudaMemcpyToSymbol", FACTOR, bytes(4), 4, 0, UP)
      code = p.code(f"cudaMemcpyToSymbol{name}", FACTOR, given, size, offset, UP, *more)
      assert code == (0 if right else cudart.cudaErrorInvalidValue), (name, offset, size)
      if not right: continue
      p("cudaStreamSynchronize", stream)
      back[:] = [9] * 8
      p("cudaMemcpyFromSymbol", back, FACTOR, 4, 0, DOWN)
      wanted = [0] * offset + [*given][:size] + [0] * (4 - offset - size)
      assert [*back] == [*wanted, 9, 9, 9, 9]
      back[:] = [9] * 8
      p(f"cudaMemcpyFromSymbol{name}", back, FACTOR, size, offset, DOWN, *more)
      p("cudaStreamSynchronize", stream)
      assert [*back] == [*wanted[offset:offset + size], *[9] * (8 - size)]


@pytest.mark.parametrize("width", [15, 16, 17])
@pytest.mark.parametrize("pitches", [(16, 16), (16, 32), (32, 16)])
def test_rows_of_a_runtimes_copy_fit_into_their_pitch(width: int, pitches: tuple[int, int]) -> None:
  p, data = program(), np.arange(256, dtype=np.uint8)
  memory = p.made("cudaMalloc", 256)
  code = p.code("cudaMemcpy2D", memory, pitches[0], data.ctypes.data, pitches[1], width, 3, UP)
  assert code == (0 if width <= min(pitches) else cudart.cudaErrorInvalidPitchValue)
  if code: return
  seen = np.zeros(256, np.uint8)
  p("cudaMemcpy", seen.ctypes.data, memory, 256, DOWN)
  for row in range(3):
    assert (seen[row * pitches[0]:][:width] == data[row * pitches[1]:][:width]).all()


def test_bytes_of_an_array_begin_in_a_row() -> None:
  p, data = program(), np.arange(32, dtype=np.int32)
  array = p.made("cudaMallocArray", ctypes.byref(channel(32, cudart.cudaChannelFormatKindSigned)), 8, 4, 0)
  for x, count, right in ((28, 4, True), (32, 4, False), (36, 4, False), (0, 128, True), (0, 132, False)):
    code = p.code("cudaMemcpyToArray", array, x, 0, data.ctypes.data, count, UP)
    assert code == (0 if right else cudart.cudaErrorInvalidValue), (x, count)


@pytest.mark.parametrize(("first", "last", "right"), [(0, 5, True), (6, 11, True), (0, 11, True), (12, 17, True),
                                                      (6, 17, True), (1, 6, False), (0, 4, False), (3, 8, False),
                                                      (6, 10, False), (12, 18, False), (6, 5, False)])
def test_views_of_cubes_are_whole_cubes(client: Client, first: int, last: int, right: bool) -> None:
  c = client
  array = c.handle("cuArray3DCreate_v2", ctypes.byref(described((4, 4, 18), CUBE | LAYERED)))
  resource = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_ARRAY)
  resource.res.array.hArray = array
  view = cuda.CUDA_RESOURCE_VIEW_DESC_v1(format=0, width=4, height=4, depth=18, firstLayer=first, lastLayer=last)
  sampling = cuda.CUDA_TEXTURE_DESC_v1(flags=cuda.CU_TRSF_READ_AS_INTEGER)
  said = error(c, "cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(resource), ctypes.byref(sampling),
               ctypes.byref(view))
  assert said == ("CUDA_SUCCESS" if right else "INVALID_VALUE")


def test_a_mipmapped_array_gives_its_memory_back(client: Client) -> None:
  free = client.machine.gpus[0].allocator.free_bytes
  array = client.handle("cuMipmappedArrayCreate", ctypes.byref(described((64, 64, 0))), 5)
  assert client.machine.gpus[0].allocator.free_bytes < free
  client.call("cuMipmappedArrayDestroy", u64(array))
  assert client.machine.gpus[0].allocator.free_bytes == free


@pytest.mark.parametrize(("height", "depth", "right"), [(1, 1, True), (2, 1, False), (1, 2, False)])
def test_a_pitch_is_of_several_rows(client: Client, height: int, depth: int, right: bool) -> None:
  """Of one row nobody asks how far the next one is."""
  c, at = client, client.alloc(4096)
  p = cuda.CUDA_MEMCPY3D_v2(srcMemoryType=cuda.CU_MEMORYTYPE_DEVICE, dstMemoryType=cuda.CU_MEMORYTYPE_DEVICE,
                            srcDevice=at, dstDevice=at + 2048, srcPitch=8, dstPitch=64, srcHeight=4, dstHeight=4,
                            WidthInBytes=16, Height=height, Depth=depth)
  assert (error(c, "cuMemcpy3D_v2", ctypes.byref(p)) == "CUDA_SUCCESS") == right


@pytest.mark.parametrize("name", ["cuCtxCreate_v2", "cuCtxCreate_v4"])
def test_flags_and_card_of_a_context(client: Client, name: str) -> None:
  c, flags, device = client, ctypes.c_uint(), ctypes.c_int()
  for given, card in ((0, 1), (cuda.CU_CTX_SCHED_SPIN, 0), (cuda.CU_CTX_SCHED_YIELD, 1)):
    handle = c.handle(name, *(None,) * name.endswith("4"), given, card)
    c.call("cuCtxGetFlags", ctypes.byref(flags))
    c.call("cuCtxGetDevice", ctypes.byref(device))
    assert (flags.value & cuda.CU_CTX_SCHED_MASK, device.value) == (given, card)
    c.call("cuCtxDestroy_v2", u64(handle))


def last(c: Client, name: str, *given: Any) -> int:
  """What a function stores through its last argument."""
  out = u64(0)
  c.call(name, *given, ctypes.byref(out))
  return out.value


def test_what_is_known_of_graphs_memory(client: Client) -> None:
  """How much is in use and reserved, and the most that was; that alone is set, to 0."""
  c, stream, ats = client, client.handle("cuStreamCreate", 1), []
  names = ("USED_MEM_CURRENT", "USED_MEM_HIGH", "RESERVED_MEM_CURRENT", "RESERVED_MEM_HIGH")
  numbers = [getattr(cuda, f"CU_GRAPH_MEM_ATTR_{n}") for n in names]
  def told() -> list[int]: return [last(c, "cuDeviceGetGraphMemAttribute", 0, n) for n in numbers]
  for size in (4096, 8192):
    c.call("cuStreamBeginCapture_v2", u64(stream), 0)
    ats.append(c.handle("cuMemAllocAsync", COUNT(size), u64(stream)))
    c.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph := u64(0)))
    c.call("cuGraphLaunch", u64(c.handle("cuGraphInstantiateWithFlags", graph, u64(0))), u64(stream))
    c.call("cuStreamSynchronize", u64(stream))
  assert told() == [12288] * 4
  c.call("cuMemFree_v2", u64(ats[1]))
  assert told() == [4096, 12288, 4096, 12288]
  for n, name in zip(numbers, names):
    said = error(c, "cuDeviceSetGraphMemAttribute", 0, n, ctypes.byref(u64(0)))
    assert said == ("CUDA_SUCCESS" if name.endswith("HIGH") else "INVALID_VALUE")
  assert told() == [4096] * 4
  assert error(c, "cuDeviceSetGraphMemAttribute", 0, numbers[1], ctypes.byref(u64(1))) == "INVALID_VALUE"
  assert error(c, "cuDeviceGetGraphMemAttribute", 0, 9, ctypes.byref(u64(0))) == "INVALID_VALUE"


def test_a_pool_keeps_nothing_at_first(client: Client) -> None:
  """Its threshold is 0, and what was set is told again."""
  c = client
  pool = c.handle("cuDeviceGetDefaultMemPool", 0)
  out = u64(9)
  c.call("cuMemPoolGetAttribute", u64(pool), cuda.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ctypes.byref(out))
  assert out.value == 0
  c.call("cuMemPoolSetAttribute", u64(pool), cuda.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ctypes.byref(u64(1 << 40)))
  c.call("cuMemPoolGetAttribute", u64(pool), cuda.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ctypes.byref(out))
  assert out.value == 1 << 40


def test_what_is_pinned_is_whole_pages(client: Client) -> None:
  """And no more: beside them the card reaches nothing."""
  c = client
  at = c.handle("cuMemHostAlloc", COUNT(5000), 0)
  piece = c.machine.pieces[at]
  assert (piece.size, piece.backing.size) == (5000, 8192)
  assert c.machine.space.find(at + 8191) is not None and c.machine.space.find(at + 8192) is None


def test_a_machine_gives_all_back() -> None:
  c = Client("sm_90,sm_80")
  files = [gpu.vram for gpu in c.machine.gpus]
  assert all(f.fd >= 0 for f in files)
  c.machine.close()
  assert all(f.fd < 0 for f in files) and not c.machine.handles and not c.machine.streams


def test_views_of_one_level_have_some_of_its_layers(client: Client) -> None:
  """Of several levels they have all."""
  c, size = client, (8, 8, 4)
  for levels, first, last, said in ((1, 1, 2, "CUDA_SUCCESS"), (2, 1, 2, "NOT_SUPPORTED"), (2, 0, 3, "CUDA_SUCCESS"),
                                    (3, 0, 1, "NOT_SUPPORTED")):
    array = c.handle("cuMipmappedArrayCreate", ctypes.byref(described(size, LAYERED)), levels)
    resource = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
    resource.res.mipmap.hMipmappedArray = array
    view = cuda.CUDA_RESOURCE_VIEW_DESC_v1(format=0, width=8, height=8, depth=4, firstLayer=first, lastLayer=last,
                                           lastMipmapLevel=levels - 1)
    sampling = cuda.CUDA_TEXTURE_DESC_v1(flags=cuda.CU_TRSF_NORMALIZED_COORDINATES)
    assert error(c, "cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(resource), ctypes.byref(sampling),
                 ctypes.byref(view)) == said, (levels, first, last)


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("engine", ["", "both"])
def test_which_launches_say_that_others_may_begin(text: bool, engine: str) -> None:
  c = Client()
  c.machine.engine = engine or c.machine.engine
  body = "griddepcontrol.launch_dependents;" if text else ""
  source = HEAD.replace("sm_80", "sm_90") + f".visible .entry k() {{ {body} ret; }}"
  function = c.machine.handles[c.function(source, "k")]
  assert c.launch(function.handle, 1, 1, []) == 0
  c.call("cuCtxSynchronize")
  found, = function.shapes.values()
  assert (found.overlaps, found.says) == (engine != "both", text and engine != "both")
  c.machine.close()


@pytest.mark.parametrize(("extent", "right"), [(0, False), (1, True), (1 << 32, True), ((1 << 32) + 1, False)])
def test_extents_of_a_tensor(client: Client, extent: int, right: bool) -> None:
  """Of 1 to 2**32 elements each way (CUDA Driver API, cuTensorMapEncodeTiled)."""
  out = aligned(128)
  for dims in ([extent, 6], [20, extent]):
    code = encode(client, out, 1 << 40, dims=dims, strides=[1 << 35])
    assert (code == 0) == right, dims


def test_what_a_machine_of_cuda_has_goes_with_it() -> None:
  c = Client(context=False)
  user = c.machine.user
  assert user._fd >= 0
  c.machine.close()
  assert user._fd < 0


@pytest.mark.parametrize(("anisotropy", "linear", "said"), [
  (0, 1, "CUDA_SUCCESS"), (1, 1, "CUDA_SUCCESS"), (2, 1, "NOT_SUPPORTED"), (16, 0, "CUDA_SUCCESS")])
def test_filters_that_are_not_modelled(client: Client, anisotropy: int, linear: int, said: str) -> None:
  c = client
  resource = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_ARRAY)
  resource.res.array.hArray = c.handle("cuArray3DCreate_v2", ctypes.byref(described((8, 8, 0))))
  sampling = cuda.CUDA_TEXTURE_DESC_v1(filterMode=linear, maxAnisotropy=anisotropy)
  assert error(c, "cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(resource), ctypes.byref(sampling),
               None) == said


def test_a_child_has_no_conditions(client: Client) -> None:
  c, graph, child = client, client.handle("cuGraphCreate", 0), client.handle("cuGraphCreate", 0)
  def added() -> str:
    return error(c, "cuGraphAddChildGraphNode", ctypes.byref(u64(0)), u64(graph), None, COUNT(0), u64(child))
  assert added() == "CUDA_SUCCESS"
  handle = c.handle("cuGraphConditionalHandleCreate", u64(child), u64(c.context), 0, 0)
  assert conditional(c, child, handle, cuda.CU_GRAPH_COND_TYPE_IF, 1) == "CUDA_SUCCESS"
  assert added() == "INVALID_VALUE"


def test_flags_of_memory_of_the_host(client: Client) -> None:
  """cuMemAllocHost asks for none."""
  flags = ctypes.c_uint(99)
  at = client.handle("cuMemAllocHost_v2", COUNT(64))
  client.call("cuMemHostGetFlags", ctypes.byref(flags), ctypes.c_void_p(at))
  plain = flags.value
  other = client.handle("cuMemHostAlloc", COUNT(64), cuda.CU_MEMHOSTALLOC_PORTABLE)
  client.call("cuMemHostGetFlags", ctypes.byref(flags), ctypes.c_void_p(other))
  assert not plain & cuda.CU_MEMHOSTALLOC_PORTABLE and flags.value & cuda.CU_MEMHOSTALLOC_PORTABLE
