"""Launches in clusters of blocks: from the kernel or from the launch, on every generation that has them."""
from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator

import numpy as np
import pytest

import tinyhw
from tinyhw import Device
from tinyhw.arch.nv import NV_ARCHES, NvArch
from tinyhw.core.errors import DeviceError, InvalidArgument, Unsupported
from tinyhw.devices.assemble import Assembler, bare
from tinyhw.drive.base import Launch
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.drive.nv.program import factor
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort
from tinyhw.wire.cubin import Cubin

PTX = """
.version 8.7
.target {arch}
.address_size 64
.visible .entry around(.param .u64 out) {directives} {{
  .reg .b64 %l<4>; .reg .b32 %r<12>; .shared .align 4 .b8 own[4];
  ld.param.u64 %l1, [out];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
  mov.u32 %r2, own; st.shared.u32 [%r2], %r1;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank; add.u32 %r3, %r3, 1; rem.u32 %r3, %r3, %r4;
  mapa.shared::cluster.u32 %r5, %r2, %r3; ld.shared::cluster.u32 %r5, [%r5];
  mov.u32 %r6, %cluster_nctaid.x; mov.u32 %r7, %cluster_nctaid.y; mov.u32 %r8, %nclusterid.x;
  shl.b32 %r6, %r6, 8; shl.b32 %r7, %r7, 12; shl.b32 %r8, %r8, 16;
  or.b32 %r5, %r5, %r6; or.b32 %r5, %r5, %r7; or.b32 %r5, %r5, %r8;
  mul.wide.u32 %l2, %r1, 4; add.u64 %l1, %l1, %l2; st.global.u32 [%l1], %r5;
  barrier.cluster.arrive; barrier.cluster.wait;
  ret;
}}
"""
WITH = [name for name, a in NV_ARCHES.items() if a.bank0.clusters is not None]


def ptx(arch: str, directives: str = "") -> bytes: return PTX.format(arch=arch, directives=directives).encode()


def wanted(grid: tuple[int, int], cluster: tuple[int, int]) -> np.ndarray:  # type: ignore[type-arg]
  """What `around` leaves: the index of the cluster's next block, with sizes."""
  (gx, gy), (cx, cy) = grid, cluster
  out = np.zeros(gx * gy, np.uint32)
  for y in range(gy):
    for x in range(gx):
      rank = (x % cx + y % cy * cx + 1) % (cx * cy)
      ahead = (y // cy * cy + rank // cx) * gx + x // cx * cx + rank % cx
      out[y * gx + x] = ahead | cx << 8 | cy << 12 | gx // cx << 16
  return out


@pytest.fixture
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  Device.close()
  monkeypatch.setenv("MOCKGPU", request.param)
  yield
  Device.close()


def runtime(arch: str) -> NVRuntime:
  made = NVRuntime(NvPort(NvMachine(arch, vram=1 << 28, system_memory=1 << 28)), timeout_s=5)
  made.assemble = Assembler(made.arch, False)
  return made


@pytest.mark.parametrize("machine", WITH, indirect=True)
def test_the_launch_or_the_kernel_says_it(machine: None, request: pytest.FixtureRequest) -> None:
  arch = request.node.callspec.params["machine"]
  out = np.zeros(16, np.uint32)
  for directives, cluster in (("", (2, 2)), (".reqnctapercluster 4, 2", (4, 2)), (".reqnctapercluster 2", None),
                              ("", (1, 1))):
    found, = tinyhw.launch(ptx(arch, directives), "around", (8, 2), 1, [out], "NV", cluster=cluster)
    assert (found == wanted((8, 2), cluster or (2, 1))).all(), cluster
  found, = tinyhw.launch(ptx(arch), "around", (8, 2), 1, [out], "NV")  # of one block each
  assert (found == wanted((8, 2), (1, 1))).all()
  assert Device["NV"].runtime.port.machine.findings == []


def test_what_cannot_be() -> None:
  gpu = runtime("sm_90")
  out = gpu.alloc(64)
  plain, four = (gpu.load(ptx("sm_90", d), "around") for d in ("", ".reqnctapercluster 4"))
  params = struct.pack("<Q", out.address)
  for program, grid, cluster, words in (
      (plain, (3, 1, 1), (2, 1, 1), "whole clusters"), (plain, (16, 1, 1), (16, 1, 1), "1 to 8"),
      (plain, (4, 1, 1), (0, 1, 1), "1 to 8"), (four, (4, 1, 1), (2, 1, 1), "exactly"),
      (four, (6, 1, 1), None, "whole clusters")):
    with pytest.raises(InvalidArgument, match=words): program.launch(params, grid, (1, 1, 1), cluster=cluster)
  with pytest.raises(InvalidArgument, match="whole clusters"): gpu.runner([Launch(four, (0,), (6, 1, 1), (1, 1, 1))])
  run = gpu.runner([Launch(four, (0,), (8, 1, 1), (1, 1, 1))] * 2)
  run([out], None)
  back = np.zeros(8, np.uint32)
  gpu.copyout(memoryview(back).cast("B"), out)
  assert (back == wanted((8, 1), (4, 1))).all()
  gpu.close()
  old = runtime("sm_80")
  program = old.load(ptx("sm_80").split(b"ld.param")[0] + b" ret; }", "around")
  assert not program.clusters
  with pytest.raises(Unsupported, match="clusters of blocks on sm_80"):
    program.launch(params, (2, 1, 1), (1, 1, 1), cluster=(2, 1, 1))
  old.close()


def test_qmd_3_0_has_none() -> None:
  gpu = NVRuntime(NvPort(NvMachine("sm_90", vram=1 << 28, system_memory=1 << 28)), timeout_s=5, qmd_version=(3, 0))
  gpu.assemble = Assembler(gpu.arch, False)
  with pytest.raises(Unsupported, match="QMDV03_00"):
    gpu.load(ptx("sm_90"), "around").launch(bytes(8), (2, 1, 1), (1, 1, 1), cluster=(2, 1, 1))
  gpu.close()


def test_a_kernel_of_clusters_in_a_grid_of_blocks_dies(monkeypatch: pytest.MonkeyPatch) -> None:
  """The QMD alone decides, as on the chip: what the kernel was compiled for does not reach it."""
  gpu = runtime("sm_90")
  program = gpu.load(ptx("sm_90", ".reqnctapercluster 2"), "around")
  monkeypatch.setattr(type(program), "_clustered", lambda self, asked: None)
  program.launch(struct.pack("<Q", gpu.alloc(64).address), (2, 1, 1), (1, 1, 1))
  with pytest.raises(DeviceError, match="compiled for"): gpu.synchronize()
  gpu.close()


@pytest.mark.parametrize("arch", WITH)
def test_the_cubin_says_it(arch: str) -> None:
  chip = NV_ARCHES[arch]
  for directives, cluster in ((".reqnctapercluster 2, 4", (2, 4, 1)), ("", None)):
    assert Cubin(bare(ptx(arch, directives), chip)).kernel("around").cluster == cluster


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize("arch", WITH)
def test_ptxas_says_it_alike(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
  tool = shutil.which("ptxas")
  assert tool is not None
  monkeypatch.setenv("TINYHW_PTXAS", tool)
  chip: NvArch = NV_ARCHES[arch]
  for directives, wanted in ((".reqnctapercluster 2, 4", ((2, 4, 1), 0, False)),
                             (".explicitcluster .maxclusterrank 4", (None, 4, True)), ("", (None, 0, False))):
    kernel = Cubin(Assembler(chip, False)(ptx(arch, directives))).kernel("around")
    assert (kernel.cluster, kernel.cluster_limit, kernel.cluster_asked) == wanted
  gpu = runtime(arch)
  program = gpu.load(ptx(arch, ".explicitcluster .maxclusterrank 4"), "around")
  with pytest.raises(InvalidArgument, match="does not say of how many"): program.launch(bytes(8), (8, 1, 1), (1, 1, 1))
  with pytest.raises(InvalidArgument, match="1 to 4"):
    program.launch(bytes(8), (8, 1, 1), (1, 1, 1), cluster=(8, 1, 1))
  gpu.close()


@pytest.mark.parametrize("blocks", range(1, 17))
def test_a_block_s_cluster_by_multiplication(blocks: int) -> None:
  """What ptxas has code do: the index as a float times the factor, cut."""
  by = np.array(factor(blocks), np.uint32).view(np.float32)
  index = np.arange(1 << 16, dtype=np.uint32)
  assert ((index.astype(np.float32) * by).astype(np.uint32) == index // blocks).all()
