"""Boxes of tensors (cp.async.bulk.tensor) against slices of padded arrays; tensor maps made by programs."""
from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.test_ptx_async import kernel, run
from tests.strength import examples
from tinyhw.core.errors import InvalidArgument, MachineFault, Unsupported
from tinyhw.emulator.ptx.tensormap import TYPES, TensorMap

KINDS = {name: k for k, (name, _) in enumerate(TYPES)}
DTYPES = {"u8": "u1", "u16": "u2", "s32": "i4", "f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8", "u64": "u8"}
PARAMS = ".param .u64 out, .param .u64 tensor, .param .u64 made, .param .align 64 .b8 map[128]"
TO_SHARED = ("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
             "[buf], [%l1, {{{at}}}], [bar]")


def program(body: str, size: int) -> str:
  """A kernel whose first thread does something with `buf` of some bytes, and with the map, whose address is in %l1: a
  copy of the parameter, with the tensor's own address."""
  return kernel(f"""ld.param.u64 %l2, [tensor]; ld.param.u64 %l1, [made]; mov.b64 %l3, map; cvta.param.u64 %l3, %l3;
    mul.wide.u32 %l4, %t, 4; add.u64 %l5, %l3, %l4; ld.u32 %r1, [%l5]; add.u64 %l5, %l1, %l4; st.global.u32 [%l5], %r1;
    bar.warp.sync -1; @!%p1 bra E; tensormap.replace.tile.global_address.global.b1024.b64 [%l1], %l2;
    mov.u32 %r10, buf; mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};
    {body}
E:""", f".shared .align 1024 .b8 buf[{-(-size // 1024) * 1024}]; .shared .b64 bar;", PARAMS)


def loading(rank: int, at: list[int], size: int) -> str:
  """Loads a box and writes what then is in shared memory."""
  copy = TO_SHARED.format(rank=rank, at=", ".join(map(str, at)))
  return program(f"""{copy};
W:  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
    cp.async.bulk.global.shared::cta.bulk_group [%o], [buf], {size};""", size)


def storing(rank: int, at: list[int], size: int, operation: str = "") -> str:
  """Fills shared memory from `out` and stores a box of it."""
  name = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}.tile" if operation else (
    f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile")
  return program(f"""cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%o], {size}, [bar];
W:  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W; fence.proxy.async.shared::cta;
    {name}.bulk_group [%l1, {{{', '.join(map(str, at))}}}], [buf];""", size)


def swizzled(data: Any, width: int) -> Any:
  """Bytes in pieces of 16, of which the rows of 128 bytes exchange theirs (PTX ISA, section 5.5.7)."""
  if not width: return data
  pieces = np.concatenate([data, np.zeros(-data.size % 1024, np.uint8)]).reshape(-1, 8, 16)
  out = np.zeros_like(pieces)
  for row, column in itertools.product(range(len(pieces)), range(8)):
    out[row, column ^ row % (width // 16)] = pieces[row, column]
  return out.reshape(-1)[:data.size]


def launch(text: str, m: TensorMap, tensor: Any, out: Any) -> list[Any]:
  """(out, tensor, the map as it was used) behind a kernel of `program`."""
  return run(text, out, tensor, np.zeros(128, np.uint8), m.encode())


@st.composite
def boxes(draw: Any) -> tuple[str, Any, TensorMap, list[int]]:
  """(type, tensor, its map without an address, coordinates), with parts of the box outside."""
  t = draw(st.sampled_from(sorted(DTYPES)))
  dtype, rank = np.dtype(DTYPES[t]), draw(st.integers(1, 4))
  unit = 16 // dtype.itemsize
  width = draw(st.sampled_from([0, 0, 32, 64, 128])) if rank > 1 else 0
  row = width // dtype.itemsize if width else unit * draw(st.integers(1, 4))
  box = [row, *(draw(st.integers(1, 5)) for _ in range(rank - 1))]
  dims = [draw(st.integers(1, 2 * row)), *(draw(st.integers(1, 6)) for _ in range(rank - 1))]
  at = [draw(st.integers(-n, d)) for n, d in zip(box, dims)]
  pitch = -(-dims[0] // unit) * unit
  shape = [*reversed(dims[1:]), pitch]
  tensor = (np.arange(int(np.prod(shape))) * 7 + 1).astype(dtype).reshape(shape)
  strides = [pitch * dtype.itemsize * int(np.prod(dims[1:k + 1])) for k in range(rank - 1)]
  m = TensorMap(0, (*dims, *[0] * (5 - rank)), (*strides, *[0] * (5 - rank)), (*box, *[0] * (5 - rank)),
                (1,) * rank + (0,) * (5 - rank), rank, KINDS[t], swizzle={0: 0, 32: 1, 64: 2, 128: 3}[width])
  return t, tensor, m, at


def cut(tensor: Any, m: TensorMap, at: list[int], fill: Any = 0) -> Any:
  """The box, from an array with so much around it that nothing is outside."""
  around = [(n + 8, n + 8) for n in reversed(m.box[:m.rank])]
  whole = np.pad(tensor[..., :m.dims[0]], around, constant_values=fill)
  start = [c + n + 8 for c, n in zip(at, m.box)]
  inside = [slice(max(s, 0), s + n) for s, n in zip(start, m.box)]
  return whole[tuple(reversed(inside))]


@given(drawn=boxes())
@settings(max_examples=examples(25), deadline=None)
def test_boxes_are_loaded(drawn: tuple[str, Any, TensorMap, list[int]]) -> None:
  _, tensor, m, at = drawn
  wanted = cut(tensor, m, at)
  size = wanted.nbytes
  found = launch(loading(m.rank, at, size), m, tensor, np.zeros(size, np.uint8))[0]
  width = (0, 32, 64, 128)[m.swizzle]
  assert (found == swizzled(np.ascontiguousarray(wanted).view(np.uint8).reshape(-1), width)).all()


@given(drawn=boxes())
@settings(max_examples=examples(25), deadline=None)
def test_boxes_are_stored(drawn: tuple[str, Any, TensorMap, list[int]]) -> None:
  """What is outside is dropped; reductions read what was there."""
  t, tensor, m, at = drawn
  new = (np.arange(int(np.prod(m.box[:m.rank]))) * 5 + 2).astype(tensor.dtype).reshape([*reversed(m.box[:m.rank])])
  width = (0, 32, 64, 128)[m.swizzle]
  data = swizzled(new.view(np.uint8).reshape(-1), width)
  operation = {"s32": "max", "u64": "xor", "f64": "add"}.get(t, "")
  result = launch(storing(m.rank, at, new.nbytes, operation), m, tensor, data)[1]
  wanted = tensor.copy()
  for index in np.ndindex(*new.shape):
    place = [c + i for c, i in zip(reversed(at), index)]
    if any(not 0 <= p < d for p, d in zip(place, reversed(m.dims[:m.rank]))): continue
    old, value = wanted[tuple(place)], new[index]
    wanted[tuple(place)] = {"max": max(old, value), "xor": int(old) ^ int(value) if t == "u64" else 0,
                            "add": old + value}.get(operation, value)
  assert (result.view(wanted.dtype).reshape(wanted.shape) == wanted).all()


def test_steps_and_nan_outside() -> None:
  """Of the first dimension's step the driver says that it is ignored."""
  tensor = np.arange(64 * 10, dtype=np.float32).reshape(10, 64)
  m = TensorMap(0, (64, 10, 0, 0, 0), (256, 0, 0, 0), (32, 6, 0, 0, 0), (2, 3, 0, 0, 0), 2, KINDS["f32"], fill=1)
  found = launch(loading(2, [-4, 5], 256), m, tensor, np.zeros(64, np.float32))[0].reshape(2, 32)
  assert np.isnan(found[:, :4]).all() and (found[:, 4:] == tensor[5:10:3, 0:28]).all()
  assert set(found[:, :4].copy().view(np.uint32).ravel().tolist()) == {0x7FFFFFFF}


def test_a_program_makes_its_own_map() -> None:
  """tensormap.replace on zeros in shared memory, copied to global memory and fenced, as Triton does it."""
  set_ = "tensormap.replace.tile.{}.shared::cta.b1024.{} [map], {};".format
  lines = [set_("global_address", "b64", "%l2"), set_("rank", "b32", 1), set_("box_dim", "b32", "0, 16"),
           set_("box_dim", "b32", "1, 4"), set_("global_dim", "b32", "0, 20"), set_("global_dim", "b32", "1, %r20"),
           set_("global_stride", "b64", "0, %l5"), set_("element_stride", "b32", "0, 1"),
           set_("element_stride", "b32", "1, 1"), set_("elemtype", "b32", KINDS["f32"]),
           set_("interleave_layout", "b32", 0), set_("swizzle_mode", "b32", 2), set_("fill_mode", "b32", 0)]
  text = kernel(f"""ld.param.u64 %l2, [tensor]; ld.param.u64 %l3, [made]; mov.u32 %r20, 6; mov.u64 %l5, 80;
    mov.u32 %r1, map; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1], 0; bar.warp.sync -1;
    @!%p1 bra F; {' '.join(lines)}
F:  bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l3], [map], 128;
    @!%p1 bra E; fence.proxy.tensormap::generic.acquire.gpu [%l3], 128; mbarrier.init.shared.b64 [bar], 1;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%l3, {{10, 3}}], [bar];
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
W:  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
    cp.async.bulk.global.shared::cta.bulk_group [%o], [buf], 256;
E:""", ".shared .align 128 .b8 map[128]; .shared .align 1024 .b8 buf[1024]; .shared .b64 bar;",
                ".param .u64 out, .param .u64 tensor, .param .u64 made")
  tensor = np.arange(120, dtype=np.float32).reshape(6, 20)
  found = run(text, np.zeros(64, np.float32), tensor, np.zeros(128, np.uint8))[0]
  wanted = np.pad(tensor, ((0, 8), (0, 20)))[3:7, 10:26]
  assert (found == swizzled(np.ascontiguousarray(wanted).view(np.uint8).reshape(-1), 64).view(np.float32)).all()


GOOD = TensorMap(0, (64, 8, 0, 0, 0), (256, 0, 0, 0), (16, 2, 0, 0, 0), (1, 1, 0, 0, 0), 2, KINDS["f32"])


@pytest.mark.parametrize(("change", "kind", "message"), [
  ({"rank": 3, "strides": (256, 512, 0, 0), "box": (16, 2, 1, 0, 0), "steps": (1, 1, 1, 0, 0)}, MachineFault,
   "3 dimensions"),
  ({"box": (300, 2, 0, 0, 0)}, MachineFault, "a box of 300 elements"), ({"kind": 77}, MachineFault, "type 77"),
  ({"box": (15, 2, 0, 0, 0)}, MachineFault, "60 bytes in the first dimension"),
  ({"strides": (100, 0, 0, 0)}, MachineFault, "stride of 100 bytes"), ({"swizzle": 1}, MachineFault, "swizzles of 32"),
  ({"swizzle": 3}, Unsupported, "64 bytes in swizzles of 128"), ({"interleave": 1}, Unsupported, "interleaved"),
  ({"kind": KINDS["tf32"]}, Unsupported, "tf32"), ({"im2col": 1}, Unsupported, "im2col"),
], ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_maps_that_are_refused(change: dict[str, Any], kind: type[Exception], message: str) -> None:
  with pytest.raises(kind, match=message):
    launch(loading(2, [0, 0], 128), replace(GOOD, **change), np.zeros((8, 64), np.float32), np.zeros(128, np.uint8))


def test_strides_have_40_bits() -> None:
  """As cuTensorMapEncodeTiled says: multiples of 16, less than 2**40; 0 too, as CUTLASS has it for one batch."""
  def check(stride: int) -> None: replace(GOOD, strides=(stride, 0, 0, 0)).check()
  for good in (0, 16, (1 << 40) - 16): check(good)
  for bad in (8, (1 << 40) - 8, 1 << 40, 1 << 41):
    with pytest.raises(InvalidArgument, match=f"stride of {bad:,} bytes"): check(bad)


def test_other_copies_are_refused_by_name() -> None:
  body = ("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [buf], "
          "[%l1, {0, 0, 0}], [bar], {%h1};")
  with pytest.raises(Unsupported, match="im2col.*PTX line|PTX line.*im2col"):
    launch(program(body, 64), GOOD, np.zeros((8, 64), np.float32), np.zeros(64, np.uint8))
