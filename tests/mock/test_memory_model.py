"""Random sequences of memory calls against a model of what the kernel driver answers."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock.client import FLAGS, GTT, VRAM, Client
from tests.strength import examples
from tinyhw.core.errors import PageFault
from tinyhw.mock.amd.machine import Machine

PAGES, BASE = 24, 1 << 32
OPERATION = st.tuples(
  st.sampled_from(["alloc", "alloc", "map", "map", "unmap", "free", "touch"]),
  st.integers(0, 9),
  st.integers(1, 5),
  st.integers(0, 1),
)


@dataclass
class Known:
  """A buffer as the model knows it: where it goes, how long it is, on which GPUs it is mapped."""

  handle: int
  page: int
  pages: int
  mapped: set[int] = field(default_factory=set)


@settings(max_examples=examples(60))
@given(operations=st.lists(OPERATION, max_size=40), seed=st.integers(0, 3))
def test_memory_calls_agree_with_a_model(operations: list[tuple[str, int, int, int]], seed: int) -> None:
  client = Client(Machine("gfx1100,gfx1100", vram=1 << 30))
  gpus = client.machine.gpus
  before = [g.vram_allocator.free_bytes for g in gpus], client.machine.system_allocator.free_bytes
  spaces = [client.machine.kfd.processes[client.port.pid()].devices[g].bind() for g in client.gpu_ids]
  known: dict[int, Known] = {}
  taken: list[dict[int, int]] = [{}, {}]  # GPU -> page -> the buffer that is mapped there

  for name, which, size, gpu in operations:
    buffer = known.get(which)
    if name == "alloc" and buffer is None:
      page = (which * 7 + seed * 3) % PAGES
      kind = VRAM if which & 1 else GTT
      a = client.call(
        "ALLOC_MEMORY_OF_GPU",
        va_addr=BASE + page * 4096,
        size=size * 4096,
        gpu_id=client.gpu_ids[gpu],
        flags=kind | FLAGS,
      )
      known[which] = Known(a.handle, page, size)
    elif buffer is None:
      continue
    elif name == "map":
      pages = range(buffer.page, buffer.page + buffer.pages)
      clash = gpu not in buffer.mapped and any(p in taken[gpu] for p in pages)
      try:
        client.map(buffer.handle, [gpu])
        assert not clash
        buffer.mapped.add(gpu)
        taken[gpu].update(dict.fromkeys(pages, which))
      except OSError as refused:
        assert clash and refused.errno == errno.EINVAL
    elif name == "unmap":
      try:
        client.unmap(buffer.handle, [gpu])
        assert gpu in buffer.mapped
        buffer.mapped.discard(gpu)
        for p in [p for p, b in taken[gpu].items() if b == which]:
          del taken[gpu][p]
      except OSError as refused:
        assert gpu not in buffer.mapped and refused.errno == errno.EINVAL
    elif name == "free":
      code = client.errno("FREE_MEMORY_OF_GPU", handle=buffer.handle)
      assert code == (errno.EBUSY if buffer.mapped else 0)
      if not code:
        del known[which]
    else:
      at = BASE + (buffer.page + size - 1) * 4096 + 8
      owner = taken[gpu].get(buffer.page + size - 1)
      try:
        spaces[gpu].store(at, 4, which)
        assert owner is not None and spaces[gpu].load(at, 4) == which
        both = [g for g in known[owner].mapped if g != gpu]
        assert all(spaces[g].load(at, 4) == which for g in both)  # one memory, seen by both GPUs
      except PageFault:
        assert owner is None

  for buffer in known.values():
    for gpu in sorted(buffer.mapped):
      client.unmap(buffer.handle, [gpu])
    client.call("FREE_MEMORY_OF_GPU", handle=buffer.handle)
  assert ([g.vram_allocator.free_bytes for g in gpus], client.machine.system_allocator.free_bytes) == before
  assert not any(s.mappings() for s in spaces)
  client.port.end()
