"""Boxes of tensors (cp.async.bulk.tensor) against slices of padded arrays; tensor maps made by programs."""
from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.ptx.test_async import kernel, run
from tests.strength import examples, seed
from tinyhw.core.errors import InvalidArgument, MachineFault, Unsupported
from tinyhw.emulator.jit.ptx import fallback
from tinyhw.emulator.ptx.memory.tensormap import TYPES, TensorMap

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


REDUCED: dict[str, Callable[[int, int], int]] = {
  "add": lambda old, new: old + new, "min": min, "max": max, "and": lambda old, new: old & new,
  "or": lambda old, new: old | new, "xor": lambda old, new: old ^ new,
  "inc": lambda old, new: 0 if old >= new else old + 1, "dec": lambda old, new: new if not 0 < old <= new else old - 1}


@pytest.mark.parametrize("t, operation", [
  *(("u32", operation) for operation in REDUCED), *((t, operation) for t in ("s32", "u64", "s64")
                                                    for operation in ("add", "min", "max", "and", "or", "xor"))])
def test_every_reduction_of_integers(t: str, operation: str) -> None:
  """What was there comes first: `inc` and `dec` tell the two apart."""
  dtype, rng = np.dtype(f"{t[0].replace('s', 'i')}{int(t[1:]) // 8}"), random.Random(f"{t} {operation}")
  bits = 8 * dtype.itemsize
  edges = [0, 1, 2, 1 << bits - 1, (1 << bits - 1) - 1, (1 << bits) - 1]

  def drawn() -> Any:
    return np.array([rng.choice([*edges, rng.getrandbits(bits)]) for _ in range(64)], f"u{dtype.itemsize}").view(dtype)
  old, new = drawn(), drawn()
  m = TensorMap(0, (64, 0, 0, 0, 0), (0,) * 4, (64, 0, 0, 0, 0), (1, 0, 0, 0, 0), 1, KINDS[t])
  found = launch(storing(1, [0], new.nbytes, operation), m, old, new.view(np.uint8))[1]
  wanted = [REDUCED[operation](int(a), int(b)) & (1 << bits) - 1 for a, b in zip(old, new)]
  assert found.view(f"u{dtype.itemsize}").reshape(-1).tolist() == wanted


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
  ({"kind": KINDS["b4x16"]}, MachineFault, "a box of 8 bytes"),
  ({"im2col": 1}, MachineFault, "2 dimensions, for im2col"),
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
  for mode in ("im2col::w", "tile::gather4"):
    body = (f"cp.async.bulk.tensor.3d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes [buf], "
            "[%l1, {0, 0, 0}], [bar], {%h1, %h1};")
    with pytest.raises(Unsupported, match=f"{mode}.*PTX line|PTX line.*{mode}"):
      launch(program(body, 64), GOOD, np.zeros((8, 64), np.float32), np.zeros(64, np.uint8))


# ---- columns of pixels

@dataclass(frozen=True)
class Convolution:
  """Images [n, ..., c] and a filter of `size` each way that goes over them by steps, with so many zeros around."""
  shape: tuple[int, ...]
  size: tuple[int, ...]
  steps: tuple[int, ...]
  pad: tuple[int, ...]

  @property
  def outputs(self) -> tuple[int, ...]:
    """Places of the filter each way, of images' axes outermost first."""
    return tuple((d + 2 * p - f) // s + 1 for d, f, s, p in zip(self.shape[1:-1], self.size, self.steps, self.pad))

  def map(self, channels: int, pixels: int, **more: Any) -> TensorMap:
    """Its tensor map: places of a filter begin `pad` before the image and end with its last element."""
    rank = len(self.shape)
    strides = [4 * int(np.prod(self.shape[k:])) for k in range(rank - 1, 0, -1)]
    lower = [-p for p in reversed(self.pad)]
    upper = [p - f + 1 for p, f in zip(reversed(self.pad), reversed(self.size))]
    def filled(values: Any, count: int) -> tuple[int, ...]: return (*values, *[0] * (count - len(values)))
    return TensorMap(0, filled(self.shape[::-1], 5), filled(strides, 4), (channels, pixels, 0, 0, 0),
                     filled((1, *reversed(self.steps), 1), 5), rank, KINDS["f32"], im2col=1, lower=filled(lower, 3),
                     upper=filled(upper, 3), **more)

  def column(self, images: Any, first: int, at: tuple[int, ...], channel: int, channels: int, pixels: int) -> Any:
    """What a filter's element `at` sees from its place number `first` on: by NumPy's padding."""
    around = [(0, pixels), *((p, p + f * s) for p, f, s in zip(self.pad, self.size, self.steps)), (0, channels)]
    padded = np.pad(images, around)
    out = np.zeros((pixels, channels), np.float32)
    for k in range(pixels):
      n, *place = np.unravel_index(first + k, (self.shape[0] + pixels, *self.outputs))
      where = tuple(int(q) * s + o for q, s, o in zip(place, self.steps, at))
      out[k] = padded[(int(n), *where)][channel:channel + channels]
    return out


CONVOLUTIONS = [
  Convolution((2, 9, 16), (3,), (1,), (1,)), Convolution((3, 11, 8), (4,), (2,), (0,)),
  Convolution((2, 5, 7, 8), (3, 3), (1, 1), (1, 1)), Convolution((2, 8, 9, 16), (3, 2), (2, 3), (1, 0)),
  Convolution((2, 4, 5, 6, 8), (3, 3, 3), (1, 1, 1), (1, 1, 1)),
  Convolution((1, 5, 6, 7, 12), (2, 3, 3), (2, 1, 2), (1, 2, 0)),
]


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("swizzle", [0, 1])
@pytest.mark.parametrize("conv", CONVOLUTIONS, ids=str)
def test_columns_are_what_a_convolution_takes(conv: Convolution, swizzle: int, engine: str,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  monkeypatch.setattr(fallback.Helper, "_run", None)  # compiled code does it by itself
  rng = np.random.default_rng(seed(sum(conv.shape) + swizzle))
  images = rng.integers(1, 1000, conv.shape).astype(np.float32)
  channels, pixels = 8, int(rng.integers(1, 40)) * 4
  each = int(np.prod(conv.outputs))
  for _ in range(examples(1)):
    first, channel = int(rng.integers(conv.shape[0] * each)), int(rng.integers(conv.shape[-1] // 4)) * 4
    at = tuple(int(rng.integers(f)) for f in conv.size)
    n, *place = map(int, np.unravel_index(first, (conv.shape[0], *conv.outputs)))
    corner = [q * s - p for q, s, p in zip(place, conv.steps, conv.pad)]
    copy = TO_SHARED.format(rank=len(conv.shape), at=", ".join(map(str, (channel, *reversed(corner), n))))
    copy = copy.replace(".tile.", ".im2col.") + ", {" + ", ".join(map(str, reversed(at))) + "}"
    text = program(f"""{copy};
W:  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
    cp.async.bulk.global.shared::cta.bulk_group [%o], [buf], {channels * pixels * 4};""", channels * pixels * 4)
    found = launch(text, conv.map(channels, pixels, swizzle=swizzle), images, np.zeros(channels * pixels, np.float32))
    wanted = np.zeros((pixels, channels), np.float32)
    seen = conv.column(images, first, at, channel, min(channels, conv.shape[-1] - channel), pixels)
    wanted[:, :seen.shape[1]] = seen
    raw = swizzled(np.ascontiguousarray(wanted).view(np.uint8).reshape(-1), 32 if swizzle else 0)
    assert (found[0].view(np.uint8) == raw).all()


def test_columns_are_stored_and_added() -> None:
  conv = CONVOLUTIONS[2]
  rng = np.random.default_rng(seed(9))
  images = rng.integers(0, 9, conv.shape).astype(np.float32)
  data = rng.integers(0, 9, (60, 8)).astype(np.float32)
  inner = replace(conv.map(8, 60), lower=(0, 0, 0), upper=(0, 0, 0))  # each pixel of the images, of 35
  for operation in ("", "add"):
    text = storing(4, [0, 3, 2, 0], data.nbytes, operation).replace(".tile.bulk", ".im2col_no_offs.bulk")
    found = launch(text, inner, images, data)[1]
    wanted = images.copy().reshape(-1, 8)
    first = 2 * 7 + 3
    wanted[first:first + 53] = data[:53] + (wanted[first:first + 53] if operation else 0)  # to the last image's end
    assert (found.reshape(-1, 8) == wanted).all()


_FIRST = (0, 0, 0, 0)


@pytest.mark.parametrize(("change", "at", "offsets", "message"), [
  ({"rank": 2}, _FIRST, "0, 0", "2 dimensions, for im2col"),
  ({"lower": (-129, 0, 0)}, _FIRST, "0, 0", "lower corners"),
  ({"upper": (-7, 0, 0), "lower": (1, 0, 0)}, _FIRST, "0, 0", "no place between"),
  ({"box": (8, 1025, 0, 0, 0)}, _FIRST, "0, 0", "1025 pixels"),
  ({"steps": (1, 9, 1, 1, 0)}, _FIRST, "0, 0", "9 pixels"),
  ({"im2col": 0}, _FIRST, "0, 0", "tensor map of tiles"), ({"im2col": 2}, _FIRST, "0, 0", "mode 2"),
  ({}, (0, -2, 0, 0), "0, 0", "a filter at -2 in dimension 1, where it may be at -1 to 5"),
  ({}, (0, 6, 0, 0), "0, 0", "a filter at 6 in dimension 1"), ({}, _FIRST, "0, 256", "offsets .0, 256. of im2col"),
], ids=str)
def test_columns_that_are_refused(change: dict[str, Any], at: tuple[int, ...], offsets: str, message: str) -> None:
  conv = CONVOLUTIONS[2]
  made = conv.map(8, 4)
  if change.get("im2col") == 0: change = change | {"box": (8, 4, 1, 1, 0)}
  copy = TO_SHARED.format(rank=4, at=", ".join(map(str, at))).replace(".tile.", ".im2col.") + f", {{{offsets}}};"
  with pytest.raises(MachineFault, match=message):
    launch(program(copy, 128), replace(made, **change), np.zeros(conv.shape, np.float32), np.zeros(128, np.uint8))


def test_tf32_is_rounded_on_the_way() -> None:
  rng = np.random.default_rng(seed(4))
  data = rng.integers(0, 1 << 32, (8, 64), dtype=np.uint32)
  data[0, :8] = (0x3F800FFF, 0x3F801000, 0x3F803000, 0x7F800001, 0x7F7FFFFF, 0x00000FFF, 0x80001001, 0x3F802000)
  def loaded(words: Any) -> Any:
    found = launch(loading(2, [0, 0], 128), replace(GOOD, kind=KINDS["tf32"]), words.view(np.float32),
                   np.zeros(128, np.uint8))[0]
    return found.view(np.uint32).reshape(2, 16)
  assert loaded(data)[0, :8].tolist() == [0x3F800000, 0x3F800000, 0x3F804000, 0x7F800001, 0x7F800000, 0, 0x80002000,
                                          0x3F802000]
  exact = data & np.uint32(0xFFFFE000)
  assert (loaded(exact) == exact[:2, :16]).all()
