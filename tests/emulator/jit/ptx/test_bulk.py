"""Copies in bulk and of tensors' boxes in compiled code against the reference: the same memory, the same faults, and
the reference is called for what is seldom alone."""
from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.jit.ptx.test_jit import IN, OUT, both, kernel, run
from tests.strength import THOROUGH, examples
from tinyhw.core.errors import Error
from tinyhw.emulator.ptx.memory.tensormap import TYPES, TensorMap
from tinyhw.emulator.simt import Stats

KINDS = {name: k for k, (name, _) in enumerate(TYPES)}
PLAIN = ["u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16"]
MAP, TENSOR, SHARED = 256, 4096, 16384  # where they are in the data, and how much of shared memory is written back
BARRIER = SHARED  # behind it: the mbarrier


def outcomes(text: str, data: bytes, **more: Any) -> tuple[list[Any], Stats | None]:
  """What each engine leaves, or how it fails; what compiled code did."""
  out: list[Any] = []
  stats = None
  for how in ("ref", "jit"):
    try: found, stats = run(text, "k", data, how, **more)
    except Error as error: out.append((type(error), str(error)))
    else: out.append(found)
  return out, stats


def alike(text: str, data: bytes, **more: Any) -> Stats | None:
  """Both engines do the same; what compiled code did, None for a fault."""
  (reference, compiled), stats = outcomes(text, data, **more)
  if isinstance(reference, tuple) or isinstance(compiled, tuple):
    assert str(reference) == str(compiled)
    return None
  at = np.flatnonzero(reference != compiled)
  assert not at.size, f"{at.size} bytes differ, the first at {at[0]}"
  assert stats is not None and stats.engine == "jit"
  return stats


# numbers of a case, from %in on
NAMES = ("c0", "c1", "c2", "c3", "c4", "to", "threads", "expected", "barrier", "size", "of", "far")


def around(copy: str, clustered: bool = False) -> str:
  """A kernel whose first threads do something with numbers of its data, which are in registers of their names; shared
  memory is what lies behind the numbers, and comes back."""
  loads = " ".join(f"ld.global.u32 %{name}, [%in+{4 * k}];" for k, name in enumerate(NAMES))
  registers = " ".join(f".reg .b32 %{name};" for name in NAMES)
  sync = "barrier.cluster.arrive; barrier.cluster.wait;" if clustered else "bar.sync 0;"
  text = kernel(f"""{registers} .reg .b64 %map, %from; {loads}
    add.u64 %map, %in, {MAP}; mov.u32 %r1, %ctaid.x; mul.wide.u32 %l3, %r1, {SHARED + 16}; add.u64 %out, %out, %l3;
    mov.u32 %r9, s; cvt.u64.u32 %from, %of; add.u64 %from, %from, %in;
    mul.wide.u32 %l1, %t, 16; mov.u32 %r2, %t; shl.b32 %r3, %t, 4;
F:  add.u64 %l2, %in, %l1; ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%l2+{TENSOR}];
    st.shared.v4.u32 [%r3], {{%r4, %r5, %r6, %r7}}; add.u32 %r3, %r3, 512; add.u64 %l1, %l1, 512;
    setp.lt.u32 %p3, %r3, {SHARED}; @%p3 bra F;
    setp.eq.u32 %p1, %t, 0; setp.lt.u32 %p2, %t, %threads;
    @%p1 mbarrier.init.shared.b64 [{BARRIER}], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [{BARRIER}], %expected;
    {sync}
    {copy}
    {sync}
    mul.wide.u32 %l1, %t, 16; shl.b32 %r3, %t, 4;
G:  add.u64 %l2, %out, %l1; ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r3];
    st.global.v4.u32 [%l2], {{%r4, %r5, %r6, %r7}}; add.u32 %r3, %r3, 512; add.u64 %l1, %l1, 512;
    setp.lt.u32 %p3, %r3, {SHARED}; @%p3 bra G;
    ld.shared.u64 %l3, [{BARRIER}]; @%p1 st.global.u64 [%out+{SHARED}], %l3;""",
    f".shared .align 1024 .b8 s[{SHARED + 16}];\n")
  return text.replace(") {", ") .reqnctapercluster 2 {", 1) if clustered else text


def data(m: TensorMap, tensor: bytes, **numbers: int) -> bytes:
  """The data of a case: numbers, map, what shared memory is at first, tensor behind it."""
  words = struct.pack(f"<{len(NAMES)}I", *(numbers.get(name, 0) & 0xFFFFFFFF for name in NAMES))
  fill = np.random.default_rng(1).integers(0, 256, SHARED, np.uint8)
  return (words.ljust(MAP, b"\0") + m.encode()).ljust(TENSOR, b"\0") + fill.tobytes() + tensor


def loading(rank: int) -> str:
  at = ", ".join(f"%c{k}" for k in range(rank))
  return around(f"@%p2 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                f"[%to], [%map, {{{at}}}], [%barrier];")


def storing(rank: int, operation: str = "") -> str:
  at = ", ".join(f"%c{k}" for k in range(rank))
  name = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}.tile" if operation else (
    f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile")
  return around(f"@%p2 {name}.bulk_group [%map, {{{at}}}], [%to];")


@dataclass
class Box:
  """A case: the map of a tensor at an address of its own, numbers for `data`; whether compiled code does it alone."""
  map: TensorMap
  at: list[int]
  numbers: dict[str, int]
  native: bool = True


TWISTS = ["rank", "kind", "interleave", "fill", "address", "stride", "box", "steps", "wide", "unmapped", "to", "end",
          "barrier", "none", "many", "threads", "far"]


@st.composite
def boxes(draw: Any, base: int) -> Box:
  """Boxes of tensors, parts of them outside; some that are faults, or that compiled code leaves to the reference."""
  t = draw(st.sampled_from(PLAIN))
  size, rank = dict(TYPES)[t], draw(st.integers(1, 5))
  unit = 16 // size
  width = draw(st.sampled_from([0, 32, 64, 128]))
  row = width // size if width else unit * draw(st.integers(1, 6))
  if width and rank == 1: row = draw(st.integers(1, row // unit)) * unit
  most = 4 if rank < 4 else 2
  box = [row, *(draw(st.integers(1, most)) for _ in range(rank - 1))]
  dims = [draw(st.integers(1, 2 * row)), *(draw(st.integers(1, 6)) for _ in range(rank - 1))]
  at = [draw(st.integers(-n, d)) for n, d in zip(box, dims)]
  pitch = -(-dims[0] // unit) * 16
  strides = [pitch * int(np.prod(dims[1:k + 1])) for k in range(rank - 1)]
  fill = draw(st.booleans()) and t in {"f16", "f32", "f64", "bf16"}
  m = TensorMap(base, (*dims, *[0] * (5 - rank)), (*strides, *[0] * (5 - rank)), (*box, *[0] * (5 - rank)),
                (1,) * rank + (0,) * (5 - rank), rank, KINDS[t], 0, {0: 0, 32: 1, 64: 2, 128: 3}[width], fill)
  bytes_ = int(np.prod(box)) * size
  numbers = {"to": draw(st.integers(0, 8)) * 128, "threads": 1, "expected": bytes_, "barrier": BARRIER}
  numbers |= {f"c{k}": c for k, c in enumerate(at)}
  found = Box(m, at, numbers)
  twist = draw(st.sampled_from([""] * 2 * len(TWISTS) + TWISTS))
  found.native = not twist or twist in {"none", "stride", "many"}
  last = rank - 1
  if twist == "rank": found.map = replace(m, rank=rank % 5 + 1)
  if twist == "kind": found.map = replace(m, kind=draw(st.sampled_from([8, 11, 13, 77])))
  if twist == "interleave": found.map = replace(m, interleave=1)
  if twist == "fill": found.map = replace(m, fill=1, kind=KINDS["u32"])
  if twist == "address": found.map = replace(m, address=base + draw(st.sampled_from([4, 8])))
  if twist == "stride": found.map = replace(m, strides=(1 << 28, *m.strides[1:]) if rank > 1 else m.strides)
  if twist == "box": found.map = replace(m, box=(*m.box[:last], draw(st.sampled_from([0, 257])), *m.box[rank:]))
  if twist == "steps":
    found.map = replace(m, steps=(*m.steps[:last], draw(st.sampled_from([0, 2, 9])), *m.steps[rank:]))
  if twist == "wide": found.map = replace(m, swizzle=1, box=(256, *m.box[1:]))
  if twist == "unmapped": found.map = replace(m, address=0x7_0000_0000)
  if twist == "to": numbers["to"] += 16
  if twist == "end": numbers["to"] = SHARED
  if twist == "barrier": numbers["barrier"] = draw(st.sampled_from([0, BARRIER + 4, BARRIER + 8, BARRIER + 16]))
  if twist == "none": numbers["expected"] = 1 << 19
  if twist == "many": numbers["expected"] = 0
  if twist == "threads": numbers["threads"] = draw(st.sampled_from([0, 2]))
  if twist == "far": numbers["to"] |= 1 << 24
  if twist in {"stride", "unmapped", "threads", "rank", "steps", "wide", "box"}: found.native = False
  return found


LOADS = {rank: loading(rank) for rank in range(1, 6)}
OPERATIONS = ["", "", "add", "min", "max", "and", "xor"] if THOROUGH else ["", "add"]


@given(case=boxes(IN + TENSOR + SHARED))
@settings(max_examples=examples(20), deadline=None)
def test_boxes_are_loaded(case: Box) -> None:
  rank = len(case.at)
  tensor = np.random.default_rng(2).integers(0, 256, 1 << 16, np.uint8).tobytes()
  stats = alike(LOADS[rank], data(case.map, tensor, **case.numbers), block=32)
  if case.native: assert stats is not None and not stats.helped


@pytest.mark.left("cp.async.bulk.tensor.3d.global")
@given(case=boxes(OUT + (1 << 15)), operation=st.sampled_from(OPERATIONS))
@settings(max_examples=examples(12), deadline=None)
def test_boxes_are_stored(case: Box, operation: str) -> None:
  """Numbers of floats are made finite: only which NaN comes out is open."""
  m, rank = case.map, min(len(case.at), 3)
  if len(case.at) > rank:
    less = {name: (*getattr(m, name)[:rank], *[0] * (5 - rank)) for name in ("dims", "box", "steps")}
    m = replace(m, rank=rank, **less)
    case = Box(m, case.at[:rank], case.numbers, False)
  if operation in {"and", "xor"} and TYPES[m.kind % len(TYPES)][0][0] in "fb": operation = "add"
  raw = bytearray(data(m, b"", **case.numbers))
  shared = np.frombuffer(raw, np.uint8, SHARED, TENSOR)
  shared &= 0x3B
  stats = alike(storing(rank, operation), bytes(raw), block=32)
  if case.native: assert stats is not None and not stats.helped


def column(rank: int) -> str:
  at, moved = ", ".join(f"%c{k}" for k in range(rank)), ", ".join(f"%h{k}" for k in range(rank - 2))
  return around(f"""cvt.u16.u32 %h0, %size; cvt.u16.u32 %h1, %of; cvt.u16.u32 %h2, %far;
    @%p2 cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
      [%to], [%map, {{{at}}}], [%barrier], {{{moved}}};""")


COLUMNS = {rank: column(rank) for rank in (3, 4, 5)}
COLUMN_STORES = {(rank, operation): storing(rank, operation).replace(".tile", ".im2col_no_offs")
                 for rank in (3, 4, 5) for operation in ("", "add")}


@st.composite
def columns(draw: Any, base: int) -> tuple[TensorMap, int, dict[str, int], bool]:
  """Columns of pixels, parts of them outside: the map, its dimensions, numbers, whether it is no fault."""
  rank, width = draw(st.integers(3, 5)), draw(st.sampled_from([0, 32]))
  channels = width // 4 if width else 4 * draw(st.integers(1, 3))
  dims = [draw(st.integers(1, 12)), *(draw(st.integers(1, 5)) for _ in range(rank - 1))]
  strides = [(4 * dims[0] + 15 & -16) * int(np.prod(dims[1:k + 1])) for k in range(rank - 1)]
  lower = [draw(st.integers(-2, 2)) for _ in range(rank - 2)]
  last = [low + draw(st.integers(0, 5)) for low in lower]
  upper = [n - d + 1 for n, d in zip(last, dims[1:])]
  at = [draw(st.integers(-5, 9)), *(draw(st.integers(*ends)) for ends in zip(lower, last)), draw(st.integers(-1, 2))]
  moved = [draw(st.integers(0, 4)) for _ in range(rank - 2)]
  pixels = draw(st.integers(1, 24))
  steps = [1, *(draw(st.integers(1, 3)) for _ in range(rank - 1))]

  def five(numbers: list[int], count: int = 5) -> Any: return (*numbers, *[0] * (count - len(numbers)))
  m = TensorMap(base, five(dims), five(strides, 4), (channels, pixels, 0, 0, 0), five(steps), rank, KINDS["f32"], 0,
                bool(width), draw(st.booleans()), 0, 1, five(lower, 3), five(upper, 3))
  numbers = {"to": 128, "threads": 1, "expected": channels * pixels * 4, "barrier": BARRIER}
  twist = draw(st.sampled_from([""] * 12 + ["place", "offset", "corner", "tiles", "step", "unmapped"]))
  if twist == "place": at[1] = last[0] + 1
  if twist == "offset": moved[0] = 1 << {3: 16, 4: 8, 5: 5}[rank]
  if twist == "corner": m = replace(m, lower=(-(1 << {3: 15, 4: 7, 5: 4}[rank]) - (rank > 3), 0, 0))
  if twist == "tiles": m = replace(m, im2col=0, box=five([channels, *[1] * (rank - 1)]))
  if twist == "step": m = replace(m, steps=(*m.steps[:2], draw(st.sampled_from([0, 9])), *m.steps[3:]))
  if twist == "unmapped": m = replace(m, address=0x7_0000_0000)
  numbers |= {f"c{k}": c for k, c in enumerate(at)} | dict(zip(("size", "of", "far"), moved))
  return m, rank, numbers, not twist


@given(case=columns(IN + TENSOR + SHARED))
@settings(max_examples=examples(20), deadline=None)
def test_columns_of_pixels_are_loaded(case: tuple[TensorMap, int, dict[str, int], bool]) -> None:
  m, rank, numbers, good = case
  tensor = np.random.default_rng(2).integers(0, 256, 1 << 16, np.uint8).tobytes()
  stats = alike(COLUMNS[rank], data(m, tensor, **numbers), block=32)
  if good: assert stats is not None and not stats.helped


@given(case=columns(OUT + (1 << 15)), operation=st.sampled_from(["", "add"]))
@settings(max_examples=examples(10), deadline=None)
def test_columns_of_pixels_are_stored(case: tuple[TensorMap, int, dict[str, int], bool], operation: str) -> None:
  m, rank, numbers, good = case
  raw = bytearray(data(m, b"", **numbers))
  shared = np.frombuffer(raw, np.uint8, SHARED, TENSOR)
  shared &= 0x3B
  stats = alike(COLUMN_STORES[rank, operation], bytes(raw), block=32)
  if good: assert stats is not None and not stats.helped


@pytest.mark.left("cp.async.bulk.tensor.2d.global")
@pytest.mark.parametrize("apart", [False, True])
def test_a_warp_that_stores_one_box(apart: bool) -> None:
  """It is done once where all threads give the same."""
  m = TensorMap(OUT + (1 << 15), (64, 8, 0, 0, 0), (256, 0, 0, 0), (16, 4, 0, 0, 0), (1, 1, 0, 0, 0), 2, KINDS["u32"])
  text = storing(2).replace("@%p2 cp.", f"shr.u32 %r8, %t, {'4' if apart else '5'}; add.u32 %c0, %c0, %r8; @%p2 cp.")
  stats = alike(text, data(m, b"", c0=4, to=128, threads=32), block=32)
  assert stats is not None and bool(stats.helped) == apart


STARTS = (0, -3, 5, -16, -15, 40, 24, 25, 39, -20)  # of a box of 16 elements in a row of 40


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("stores", [False, True])
def test_boxes_at_each_end_of_a_tensor(stores: bool, rank: int) -> None:
  """Inside, past the beginning, past the end, and outside, in each dimension; against NumPy too."""
  def five(numbers: Any, fill: int = 0) -> Any: return (*numbers, *[fill] * (5 - len(numbers)))
  dims, box, strides = (40, 5, 3)[:rank], (16, 2, 2)[:rank], (48, 240)[:rank - 1]
  base = OUT + (1 << 15) if stores else IN + TENSOR + SHARED
  m = TensorMap(base, five(dims), five(strides)[:4], five(box), five((1,) * rank), rank, KINDS["u8"])
  tensor, size = np.random.default_rng(2).integers(1, 256, 720, np.uint8), int(np.prod(box))

  def as_tensor(raw: Any) -> Any: return np.lib.stride_tricks.as_strided(raw, dims[::-1], (*strides[::-1], 1))
  others = [(k, x) for k in range(1, rank) for x in (-2, -1, 1, dims[k] - 1, dims[k])]
  for axis, start in [(0, x) for x in STARTS] + others:
    at = [start if k == axis else 0 for k in range(rank)]
    numbers = {"to": 1024, "threads": 1, "expected": size, "barrier": BARRIER, **{f"c{k}": x for k, x in enumerate(at)}}
    raw = data(m, tensor.tobytes(), **numbers)
    (reference, compiled), stats = outcomes(storing(rank) if stores else LOADS[rank], raw, block=32)
    assert (reference == compiled).all() and stats is not None and not stats.helped and not stats.interpreted
    cells = np.zeros([d + 128 for d in dims[::-1]], np.uint8)
    inside = tuple(slice(64, 64 + d) for d in dims[::-1])
    taken = tuple(slice(64 + x, 64 + x + b) for x, b in zip(at[::-1], box[::-1]))
    if stores:
      cells[taken] = np.frombuffer(raw, np.uint8)[TENSOR + 1024:TENSOR + 1024 + size].reshape(box[::-1])
      assert (as_tensor(compiled[1 << 15:(1 << 15) + 720]) == cells[inside]).all(), at
    else:
      cells[inside] = as_tensor(tensor)
      assert (compiled[1024:1024 + size] == cells[taken].reshape(-1)).all(), at


@pytest.mark.left("cp.async.bulk.tensor.1d")
def test_boxes_that_meet_their_mbarrier() -> None:
  """A box over the mbarrier that is told of it: what is there then is no mbarrier, or one by chance."""
  m = TensorMap(IN + TENSOR + SHARED, (64, 0, 0, 0, 0), (0,) * 4, (64, 0, 0, 0, 0), (1, 0, 0, 0, 0), 1, KINDS["u8"])
  text = LOADS[1].replace(f"[{BARRIER}]", "[0]")
  for word in (0, 1 << 63 | 1 << 20 | 1):
    tensor = word.to_bytes(8, "little") * 32
    assert outcomes(text, data(m, tensor, threads=1, expected=64), block=32)[0] is not None
    alike(text, data(m, tensor, threads=1, expected=64), block=32)


# ---- bytes that lie together

COPIES = {
  "load": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%to], [%from], %size, [%barrier]",
  "store": "cp.async.bulk.global.shared::cta.bulk_group [%l4], [%to], %size",
  "shared": "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%to], [%of], %size, [%barrier]",
}
REDUCTIONS = [("add", "f32"), ("add", "noftz.bf16"), ("max", "s32"), ("dec", "u32")]
if THOROUGH:
  REDUCTIONS += [("add", "u32"), ("add", "noftz.f16"), ("min", "f16"), ("or", "b64"), ("add", "s32"),
                 ("add", "u64"), ("add", "f64"), ("min", "u32"), ("min", "s64"), ("max", "u64"), ("max", "bf16"),
                 ("inc", "u32"), ("and", "b32"), ("xor", "b32")]
for o, t in REDUCTIONS:
  COPIES[f"{o}.{t}"] = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{o}.{t} [%l4], [%to], %size"
for o, t in [("add", "s32"), ("max", "u32"), ("and", "b32")] if THOROUGH else [("max", "u32")]:
  COPIES[f"shared.{o}.{t}"] = ("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes."
                               f"{o}.{t} [%to], [%of], %size, [%barrier]")


@pytest.mark.left("cp.(reduce.)?async.bulk")
@pytest.mark.parametrize("name", COPIES)
def test_copies_in_bulk(name: str) -> None:
  """Sizes, places and faults of all kinds of copies; reductions read what was there, shared memory may overlap."""
  text = around(f"cvt.u64.u32 %l4, %far; add.u64 %l4, %l4, %out; @%p2 {COPIES[name]};")
  far, near = 24576, {"load": 8192, "shared": 2048}.get(name.partition(".")[0], 4096)
  base = {"to": 1024, "far": far, "of": near, "size": 512, "barrier": BARRIER, "threads": 1}
  overlaps = {"shared": 1024 + 256}.get(name.partition(".")[0], near)
  changes: list[dict[str, int]] = [{}, {"size": 16}, {"of": overlaps}]
  if "." not in name or THOROUGH:
    changes += [{"size": 0}, {"size": 8}, {"to": 1032}, {"to": SHARED - 256}, {"barrier": 64}, {"barrier": BARRIER + 1},
                {"size": 1 << 20}, {"threads": 2}, {"threads": 0}, {"far": 1 << 24, "of": 1 << 24}]
  for change in changes:
    numbers = base | {"expected": base["size"] if "size" not in change else change["size"] & 0xFFFF} | change
    raw = bytearray(data(TensorMap(), bytes(4096), **numbers))
    shared = np.frombuffer(raw, np.uint8, SHARED, TENSOR)
    shared &= 0x3B
    stats = alike(text, bytes(raw), block=32)
    if not change or change == {"size": 16}: assert stats is not None and not stats.helped


@pytest.mark.parametrize("mask", [1, 2, 3, 0, 4, 7] if THOROUGH else [2, 3, 0, 7])
@pytest.mark.parametrize("tensor", [False, True])
def test_multicasts(mask: int, tensor: bool) -> None:
  """To blocks of the cluster by a mask; each block's mbarrier is told. A block that there is not is a fault."""
  m = TensorMap(IN + TENSOR + SHARED, (64, 4, 0, 0, 0), (64, 0, 0, 0), (64, 4, 0, 0, 0), (1, 1, 0, 0, 0), 2,
                KINDS["u8"], swizzle=2)
  where = "[%map, {%c0, %c1}]" if tensor else "[%from], 256"
  name = "cp.async.bulk.tensor.2d" if tensor else "cp.async.bulk"
  copy = f"""mov.b16 %h1, {mask}; mov.u32 %r8, %cluster_ctarank; setp.eq.and.u32 %p4, %r8, 1, %p2;
    @%p4 {name}.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
         [%to], {where}, [%barrier], %h1;"""
  raw = data(m, bytes(range(256)) * 16, threads=1, expected=256, barrier=BARRIER, to=1024, of=TENSOR + SHARED)
  stats = alike(around(copy, clustered=True), raw, block=32, grid=2)
  assert (stats is not None) == (0 < mask < 4)
  if stats is not None: assert not stats.helped


# ---- tensor maps

FIELDS = [("global_address", "b64", ""), ("rank", "b32", ""), ("elemtype", "b32", ""), ("swizzle_mode", "b32", ""),
          ("interleave_layout", "b32", ""), ("fill_mode", "b32", ""), *(
            (name, "b64" if name == "global_stride" else "b32", f"{k}, ")
            for name, n in (("box_dim", 5), ("global_dim", 5), ("global_stride", 4), ("element_stride", 5))
            for k in range(n))]


@pytest.mark.left("tensormap.replace.tile.rank")
@pytest.mark.parametrize("space", ["global", "shared::cta"])
def test_maps_are_changed(space: str) -> None:
  """Each field, in memory that holds anything; then the map goes to global memory. A byte that does not fit, or a place
  that is not aligned, is a fault."""
  where = "%l4" if space == "global" else "%to"
  constant = {"elemtype", "swizzle_mode", "interleave_layout", "fill_mode"}
  def change(field: str, t: str, ordinal: str) -> str:
    value = "3" if field in constant else "%l5" if t == "b64" else "%size"
    if field in {"interleave_layout", "fill_mode"}: value = "1"
    return f"@%p2 tensormap.replace.tile.{field}.{space}.b1024.{t} [{where}], {ordinal}{value};"
  changes = [*(change(*f) for f in FIELDS), ""]
  start = "cvt.u64.u32 %l4, %far; add.u64 %l4, %l4, %out; cvt.u64.u32 %l5, %size; mul.lo.u64 %l5, %l5, 123456789;"
  fence = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l4], [%to], 128;"
  good = {"to": 1024, "far": 32768, "size": 77, "threads": 1}
  stats = alike(around(" ".join([start, *changes, fence])), data(TensorMap(), b"", **good), block=32)
  assert stats is not None and not stats.helped
  rank = next(change(*f) for f in FIELDS if f[0] == "rank")
  for other in ({"size": 256}, {"to": 1056, "far": 32800}, {"to": SHARED, "far": 1 << 20}, {"threads": 2}):
    alike(around(" ".join([start, rank])), data(TensorMap(), b"", **good | other), block=32)
  both(around(" ".join([start, fence])), data(TensorMap(), b"", **good | {"to": 1028}), block=32)
