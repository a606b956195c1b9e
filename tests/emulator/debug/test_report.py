"""The report of a run: counts against what is known of the kernels, costs of accesses against a lane-by-lane model."""
from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.strength import examples
from tinyhw.core.errors import InvalidArgument, PageFault, Unsupported
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.debug import traffic
from tinyhw.emulator.debug.follow import Tracker
from tinyhw.emulator.debug.record import Recorder
from tinyhw.emulator.debug.report import Report

Build = Callable[..., bytes]
HEAD = """
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %group, 64
  %i = add i32 %base, %id
"""


def report(build: Build, body: str, parameters: str, args: list[Any], grid: int = 1, block: int = 64,
           extra: str = "") -> Report:
  """The report of a kernel `k` with this body."""
  source = f"{extra}\ndefine amdgpu_kernel void @k({parameters}) #0 {{{HEAD}{body}\n  ret void\n}}"
  return tinyhw.report(build(source), "k", (grid,), (block,), args)


def access(r: Report, segment: str, kind: str) -> Any:
  return next(a for a in r.accesses if (a.segment, a.kind) == (segment, kind))


def test_counts_of_a_plain_kernel(code_object: Build, add_source: str) -> None:
  a = np.arange(256, dtype=np.float32)
  r = tinyhw.report(code_object(add_source), "add", (4,), (64,), [np.zeros_like(a), a, 0.5])
  assert (r.buffers[0] == a + 0.5).all() and (r.kernel, r.arch, r.waves, r.wave_lanes) == ("add", "gfx1100", 8, 32)
  assert r.occupancy.startswith("16 waves a SIMD, limited by ") and "1,536 workgroups of 2 waves" in r.occupancy
  assert r.lanes == 32 and r.idle == r.splits == r.barriers == r.atomics == 0
  assert all(i.waves == 8 for i in r.instructions) and r.executed == 8 * len(r.instructions) == sum(r.units.values())
  assert r.executed == sum(m.waves for m in r.mnemonics)
  for kind in ("load", "store"):
    g = access(r, "global", kind)
    assert (g.waves, g.lanes, g.bytes, g.sectors, g.lines, g.efficiency) == (8, 256, 1024, 16, 8, 1.0)
  assert r.approximate == [] and r.exactness() == ["every executed instruction is exact"]
  assert r.instructions[0].label == "add" and r.hot(3)[0].place == "add"


@pytest.mark.parametrize(("stride", "sectors", "lines", "used"), [
  (1, 4, 2, 1.0), (2, 8, 4, 0.5), (16, 64, 32, 1 / 16), (64, 64, 64, 1 / 16), (0, 2, 2, 1.0)])
def test_coalescing_by_stride(code_object: Build, stride: int, sectors: int, lines: int, used: float) -> None:
  """64 lanes in two waves load 4 bytes each, `stride` dwords apart."""
  body = f"""
  %at = mul i32 %i, {stride}
  %p = getelementptr float, ptr addrspace(1) %a, i32 %at
  %v = load volatile float, ptr addrspace(1) %p
  """
  r = report(code_object, body, "ptr addrspace(1) %a", [np.zeros(64 * 64 + 32, np.float32)])
  g = access(r, "global", "load")
  assert (g.sectors, g.lines) == (sectors, lines) and g.efficiency == pytest.approx(used)


@pytest.mark.parametrize(("stride", "slow"), [(1, 1), (2, 2), (4, 4), (32, 32), (33, 1), (0, 1)])
def test_bank_conflicts_by_stride(code_object: Build, stride: int, slow: int) -> None:
  body = f"""
  %at = mul i32 %id, {stride}
  %p = getelementptr [2144 x i32], ptr addrspace(3) @t, i32 0, i32 %at
  store volatile i32 %id, ptr addrspace(3) %p
  """
  r = report(code_object, body, "ptr addrspace(1) %a", [np.zeros(4)],
             extra="@t = internal addrspace(3) global [2144 x i32] undef")
  store = access(r, "lds", "store")
  assert store.ideal == 2 and store.slowdown == slow and len(r.conflicts()) == (slow > 1)


def test_divergence_and_branches(code_object: Build) -> None:
  body = """
  %c = icmp ult i32 %i, 40
  br i1 %c, label %then, label %done
then:
  %p = getelementptr i32, ptr addrspace(1) %a, i32 %i
  store volatile i32 %i, ptr addrspace(1) %p
  br label %done
done:
  """
  r = report(code_object, body, "ptr addrspace(1) %a", [np.zeros(128, np.int32)], grid=2)
  store = next(i for i in r.instructions if i.mnemonic == "global_store_b32")
  branch = next(i for i in r.instructions if i.taken is not None)
  assert branch.mnemonic == "s_cbranch_execz" and (branch.waves, branch.taken) == (4, 2)
  assert store.waves == 2 and store.lanes == 20 and r.splits == 1  # wave 0 all lanes, wave 1 eight of them
  assert access(r, "global", "store").lanes == 40 and 20 < r.lanes < 32


def test_atomics_barriers_and_repeats(code_object: Build) -> None:
  body = """
  %half = lshr i32 %id, 1
  %p = getelementptr i32, ptr addrspace(1) %a, i32 %half
  %old = atomicrmw add ptr addrspace(1) %p, i32 1 monotonic
  call void @llvm.amdgcn.s.barrier()
  %q = getelementptr i32, ptr addrspace(1) %a, i32 %id
  store volatile i32 %old, ptr addrspace(1) %q
  """
  r = report(code_object, body, "ptr addrspace(1) %a", [np.zeros(128, np.int32)], grid=3)
  assert r.atomics == 6 and access(r, "global", "atomic").repeats == 3 * 32
  assert r.barriers == 6 and r.meetings == 3


def sinks(r: Report) -> dict[str, list[str]]:
  assert r.arrivals is not None
  out: dict[str, list[str]] = {}
  for a in r.arrivals: out.setdefault(a.sink, []).append(a.text.split()[0])
  return out


SQRT = """
  %p = getelementptr float, ptr addrspace(1) %a, i32 %i
  %v = load float, ptr addrspace(1) %p
  %s = call float @llvm.amdgcn.sqrt.f32(float %v)
"""
DECLARE = "declare float @llvm.amdgcn.sqrt.f32(float)\ndeclare i32 @llvm.amdgcn.readfirstlane.i32(i32)"


def exact_report(build: Build, body: str, extra: str = "") -> Report:
  args = [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)]
  return report(build, SQRT + body, "ptr addrspace(1) %a, ptr addrspace(1) %out", args, extra=DECLARE + extra)


def test_an_approximate_value_reaches_memory_alone(code_object: Build) -> None:
  r = exact_report(code_object, """
  %t = fadd float %s, 1.0
  %q = getelementptr float, ptr addrspace(1) %out, i32 %i
  store float %t, ptr addrspace(1) %q""")
  assert [i.mnemonic for i in r.approximate] == ["v_sqrt_f32"] and sinks(r) == {"memory": ["global_store_b32"]}
  lines = r.exactness()
  assert "v_sqrt_f32_e32" in lines[0] and "approximate, executed by 2 waves" in lines[0]
  assert "no such value reached an address" in lines and "no such value reached a branch" in lines
  assert r.arrivals is not None and r.arrivals[0].origins == [r.approximate[0].place] and r.arrivals[0].waves == 2


def test_an_approximate_value_reaches_an_address(code_object: Build) -> None:
  r = exact_report(code_object, """
  %n = fptoui float %s to i32
  %q = getelementptr float, ptr addrspace(1) %out, i32 %n
  store float 1.0, ptr addrspace(1) %q""")
  assert sinks(r) == {"address": ["global_store_b32"]}


def test_an_approximate_value_reaches_a_branch_and_a_mask(code_object: Build) -> None:
  r = exact_report(code_object, """
  %c = fcmp ogt float %s, 3.0
  br i1 %c, label %then, label %done
then:
  %q = getelementptr float, ptr addrspace(1) %out, i32 %i
  store volatile float 1.0, ptr addrspace(1) %q
  br label %done
done:""")
  found = sinks(r)
  assert found.keys() == {"branch", "mask"} and found["branch"] == ["s_cbranch_execz"]
  assert all(t.startswith("v_cmp") for t in found["mask"])


def test_an_approximate_value_reaches_a_scalar_branch(code_object: Build) -> None:
  r = exact_report(code_object, """
  %bits = bitcast float %s to i32
  %u = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %bits)
  %c = icmp eq i32 %u, 7
  br i1 %c, label %then, label %done
then:
  %q = getelementptr float, ptr addrspace(1) %out, i32 %i
  store volatile float 1.0, ptr addrspace(1) %q
  br label %done
done:""")
  assert "s_cbranch_scc0" in sinks(r)["branch"] or "s_cbranch_scc1" in sinks(r)["branch"]


def test_approximate_values_are_followed_through_lds_memory_and_scratch(code_object: Build) -> None:
  """Through LDS to another lane, and back from memory; what overwrites them is clean."""
  r = exact_report(code_object, """
  %pt = getelementptr [64 x float], ptr addrspace(3) @t, i32 0, i32 %id
  store float %s, ptr addrspace(3) %pt
  call void @llvm.amdgcn.s.barrier()
  %other = xor i32 %id, 63
  %po = getelementptr [64 x float], ptr addrspace(3) @t, i32 0, i32 %other
  %x = load volatile float, ptr addrspace(3) %po
  %q = getelementptr float, ptr addrspace(1) %out, i32 %i
  store volatile float %x, ptr addrspace(1) %q
  %back = load volatile float, ptr addrspace(1) %q
  %n = fptoui float %back to i32
  %z = getelementptr float, ptr addrspace(1) %out, i32 %n
  store volatile float 0.0, ptr addrspace(1) %z
  store volatile float 0.0, ptr addrspace(1) %q
  %clean = load volatile float, ptr addrspace(1) %q
  %m = fptoui float %clean to i32
  %y = getelementptr float, ptr addrspace(1) %out, i32 %m
  %w = load volatile float, ptr addrspace(1) %y""", "\n@t = internal addrspace(3) global [64 x float] undef")
  found = sinks(r)
  assert found["memory"] == ["ds_store_b32", "global_store_b32"] and found["address"] == ["global_store_b32"]


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])
def test_approximate_values_are_followed_through_scratch(code_object: Build, cpu: str) -> None:
  source = f"""{DECLARE}
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %out) #0 {{{HEAD}{SQRT}
  %t = alloca float, addrspace(5)
  store volatile float %s, ptr addrspace(5) %t
  %x = load volatile float, ptr addrspace(5) %t
  %n = fptoui float %x to i32
  %q = getelementptr float, ptr addrspace(1) %out, i32 %n
  store float 1.0, ptr addrspace(1) %q
  ret void
}}"""
  args = [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)]
  r = tinyhw.report(code_object(source, cpu=cpu, opt=0), "k", (1,), (64,), args)
  assert access(r, "scratch", "store").bytes >= 256 and set(sinks(r)) == {"address"}


def test_inactive_lanes_do_not_carry(code_object: Build) -> None:
  """Only lanes below 8 take the root; the address is theirs alone, of an untouched register in the others."""
  r = exact_report(code_object, """
  %c = icmp ult i32 %id, 8
  br i1 %c, label %then, label %done
then:
  %n = fptoui float %s to i32
  br label %done
done:
  %k = phi i32 [ 0, %0 ], [ %n, %then ]
  %big = icmp uge i32 %id, 32
  br i1 %big, label %late, label %end
late:
  %q = getelementptr float, ptr addrspace(1) %out, i32 %k
  store volatile float 1.0, ptr addrspace(1) %q
  br label %end
end:""")
  assert "address" not in sinks(r)  # the waves of lanes 32 and on never had it


PERTURBED = """
  %p = getelementptr float, ptr addrspace(1) %a, i32 %i
  %v = load float, ptr addrspace(1) %p
  %sq = call float @llvm.amdgcn.sqrt.f32(float %v)
  %e = call float @llvm.amdgcn.exp2.f32(float %v)
  %d = fdiv float %sq, %v
  %even = and i32 %i, 1
  %c = icmp eq i32 %even, 0
  %pick = select i1 %c, float %e, float %v
  %pl = getelementptr [64 x float], ptr addrspace(3) @t, i32 0, i32 %id
  store float %pick, ptr addrspace(3) %pl
  call void @llvm.amdgcn.s.barrier()
  %o = xor i32 %id, 5
  %po = getelementptr [64 x float], ptr addrspace(3) @t, i32 0, i32 %o
  %x = load float, ptr addrspace(3) %po
  %bits = bitcast float %sq to i32
  %m = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %bits, i32 273, i32 15, i32 15, i1 false)
  %k = and i32 %m, 255
  %q0 = getelementptr [4 x float], ptr addrspace(1) %out, i32 %i
  store float %x, ptr addrspace(1) %q0
  %q1 = getelementptr float, ptr addrspace(1) %q0, i32 1
  store float %d, ptr addrspace(1) %q1
  %q2 = getelementptr float, ptr addrspace(1) %q0, i32 2
  store i32 %k, ptr addrspace(1) %q2
  %q3 = getelementptr float, ptr addrspace(1) %q0, i32 3
  store float %v, ptr addrspace(1) %q3
"""


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])
def test_what_depends_on_an_approximate_value_is_marked(code_object: Build, monkeypatch: pytest.MonkeyPatch,
                                                        cpu: str) -> None:
  """Approximate instructions that give another last bit change only memory that the report follows them to, and much
  of it; what they cannot reach is not marked."""
  source = f"""declare float @llvm.amdgcn.sqrt.f32(float)
declare float @llvm.amdgcn.exp2.f32(float)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
@t = internal addrspace(3) global [64 x float] undef
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %out) #0 {{{HEAD}{PERTURBED}
  ret void
}}"""
  binary, a = code_object(source, cpu=cpu), np.arange(1, 65, dtype=np.float32) / 3
  recorders: list[Recorder] = []
  monkeypatch.setattr("tinyhw.kernels.debug.Recorder", lambda exactness: recorders.append(Recorder()) or recorders[-1])

  def run() -> Any: return tinyhw.report(binary, "k", (1,), (64,), [a, np.zeros((64, 4), np.float32)])
  plain = run().buffers[1].view(np.uint32)
  exactness = recorders[0].exactness
  assert isinstance(exactness, Tracker)
  pages = exactness.memory.pages
  marked = np.concatenate([pages[page] for page in sorted(pages)])[:256].reshape(64, 4) != 0
  for name in ("v_sqrt_f32", "v_exp_f32", "v_rcp_f32"):
    known = MEANINGS.get(name)
    assert known is not None and not known.exact

    def other(o: Any, *sources: Any, of: Any = known.function) -> Any:
      value = of(o, *sources)
      return (value.view(np.uint32) + np.uint32(1)).view(np.float32)
    monkeypatch.setitem(MEANINGS._meanings, ("", name), replace(known, function=other))
  changed = run().buffers[1].view(np.uint32) != plain
  assert not (changed & ~marked).any() and changed[:, 0].sum() == 32 and changed[:, 2].sum() > 40
  assert not marked[:, 3].any() and marked[:, :3].all()  # a select carries what either of its sources carries


class Balanced(HTMLParser):
  """Every tag is closed by its own; nothing is loaded from elsewhere."""
  VOID = frozenset({"meta", "br", "hr", "img"})

  def __init__(self) -> None:
    super().__init__()
    self.open: list[str] = []
    self.seen: Counter[str] = Counter()
    self.text = ""

  def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
    assert not {"src", "href"} & {n for n, _ in attrs} and tag not in {"script", "link", "img"}
    self.seen[tag] += 1
    if tag not in self.VOID: self.open.append(tag)

  def handle_endtag(self, tag: str) -> None: assert self.open.pop() == tag, tag

  def handle_data(self, data: str) -> None: self.text += data


def test_json_and_page(code_object: Build, add_source: str) -> None:
  a = np.arange(128, dtype=np.float32)
  plain = tinyhw.report(code_object(add_source), "add", (2,), (64,), [np.zeros_like(a), a, 0.5])
  rooted = exact_report(code_object, """
  %q = getelementptr float, ptr addrspace(1) %out, i32 %i
  store float %s, ptr addrspace(1) %q""")
  for r in (plain, rooted):
    again = json.loads(r.json())
    assert again["executed"] == r.executed and len(again["instructions"]) == len(r.instructions)
    assert again["accesses"][0]["bytes"] == r.accesses[0].bytes and "buffers" not in again
    page = Balanced()
    page.feed(r.html())
    assert not page.open and page.text.count("global_store_b32") >= 2 and f"{r.executed:,}" in page.text
    assert "http" not in r.html() and "url(" not in r.html()
  assert "Did not reach an address" in rooted.html() and "Reached memory" in rooted.html()


def test_a_recorder_without_a_dispatch_and_a_kernel_that_faults(code_object: Build, add_source: str) -> None:
  with pytest.raises(InvalidArgument, match="has seen no dispatch"): Report.of(Recorder())
  a = np.zeros(64, np.float32)
  with pytest.raises(PageFault, match="write of 4 bytes"):
    tinyhw.report(code_object(add_source), "add", (1,), (64,), [0x1000, a, 0.5])


def test_reports_of_tensors_on_a_mock(monkeypatch: pytest.MonkeyPatch) -> None:
  """Every kernel of the block, by its name, and none before or after it; results as without."""
  monkeypatch.setenv("MOCKGPU", "1")
  a = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 4096
  try:
    x = (tinyhw.Tensor(a, device="AMD") * 0.25).realize()
    with tinyhw.reports() as seen: total = (x @ x).exp().sum().item()
    (x + 2).realize()
    assert total == pytest.approx(np.exp(a @ a / 16).sum(), rel=1e-4)
    assert len(seen) == 2 and all(r.kernel and r.executed > 0 and r.arch == "gfx1100" for r in seen)
    assert seen[0].units["transcendental"] > 0 and "memory" in sinks(seen[0]) and seen[0].instructions[0].label
    assert "v_exp_f32" in {i.mnemonic for i in seen[0].approximate}
  finally: tinyhw.Device.close()


def test_kernels_of_a_tensor_program_are_captured_and_debugged(monkeypatch: pytest.MonkeyPatch,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
  """A launch is kept as it was; its debugger computes what the program got, as often as one likes."""
  monkeypatch.setenv("MOCKGPU", "1")
  a = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 4096
  try:
    x = tinyhw.Tensor(a, device="AMD").realize()
    with tinyhw.captures("r_64*") as kept: product = (x @ x).numpy()
    assert np.allclose(product, a @ a, rtol=1e-4) and len(kept) == 1 and kept[0].kernel.startswith("r_64")
    name, address, size = kept[0].buffers[0]
    assert size >= product.nbytes
    for _ in range(2):
      with kept[0].debug() as d:
        d.break_on("global_store*", ignore=1)
        assert d.run().reason == "breakpoint" and d.code.where(d.wave.pc).startswith(kept[0].kernel)
        d.delete(1)
        assert d.run().reason == "end"
        assert d.read(address, "f32", 4096).tobytes() == product.tobytes()
    monkeypatch.setattr("sys.stdin", io.StringIO("stepi\ninfo places\nbuffers\n"))
    kept[0].shell()
    out = capsys.readouterr()
    assert f"=>   {kept[0].dispatch.entry_pc:#x}" in out.out and name in out.out and "has no arrays" in out.err
    with tinyhw.captures(limit=1) as kept:
      for _ in range(3): (x + 1).realize()
    assert len(kept) == 1
  finally: tinyhw.Device.close()


def test_reports_of_code_objects_on_the_emulator(monkeypatch: pytest.MonkeyPatch, code_object: Build,
                                                 add_source: str) -> None:
  a = np.arange(64, dtype=np.float32)
  launch = lambda: tinyhw.launch(code_object(add_source, cpu="gfx1201"), "add", (1,), (64,), [a, a, 1.0], "EMU")
  monkeypatch.delenv("MOCKGPU", raising=False)
  with pytest.raises(Unsupported, match="not emulated; set MOCKGPU=1"), tinyhw.reports(): launch()
  monkeypatch.setenv("MOCKGPU", "1")
  try:
    with tinyhw.reports(exactness=False) as seen:
      launch()
      launch()
    launch()
    assert [r.kernel for r in seen] == ["add", "add"] and seen[0].arrivals is None and seen[0].arch == "gfx1201"
    assert seen[0].executed == seen[1].executed and seen[0].instructions[0].place == "add"
  finally: tinyhw.Device.close()


# ---- the models of memory, against lanes counted one by one

def lane_by_lane(addresses: Any, active: Any, width: int, atomic: bool) -> tuple[list[int], list[int]]:
  """LDS cycles and those without conflicts of each wave."""
  cycles, ideal = [], []
  a_pass = {4: 32, 8: 16}.get(max(width, 4), 8)
  for row, on in zip(addresses, active):
    total = passes = 0
    for first in range(0, len(row), a_pass):
      banks: dict[int, list[int]] = {}
      for lane in range(first, first + a_pass):
        if not on[lane]: continue
        for k in range(max(1, width // 4)):
          dword = int(row[lane]) // 4 + k
          banks.setdefault(dword % 32, []).append(dword)
      total += max((len(d) if atomic else len(set(d)) for d in banks.values()), default=0)
      passes += bool(banks)
    cycles.append(total)
    ideal.append(passes)
  return cycles, ideal


@settings(max_examples=examples(60))
@given(st.integers(0, 2 ** 32), st.sampled_from([1, 2, 4, 8, 12, 16]), st.sampled_from([32, 64]), st.booleans())
def test_costs_against_a_model_lane_by_lane(seed: int, width: int, lanes: int, atomic: bool) -> None:
  rng = np.random.default_rng(seed)
  unit = min(width, 4)
  addresses = (rng.integers(0, rng.choice([4, 64, 1024]), (5, lanes)) * unit).astype(np.uint64)
  active = rng.random((5, lanes)) < rng.choice([0.0, 0.3, 1.0])
  got = traffic.lds_cycles(addresses, active, width, atomic)
  assert tuple(x.tolist() for x in got) == lane_by_lane(addresses, active, width, atomic)
  for size in (64, 128):
    expected = [len({(int(a) + k) // size for a in row[on] for k in (0, width - 1)})
                for row, on in zip(addresses, active)]
    assert traffic.distinct(addresses, active, width, size).tolist() == expected
