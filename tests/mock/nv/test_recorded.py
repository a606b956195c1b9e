"""What CUDA's driver wrote into its channels on an NVIDIA H200 (tests/recordings/cuda_sm90.json)."""
from __future__ import annotations

import ctypes
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from tinyhw.autogen import nv_rm_control
from tinyhw.devices.assemble import Assembler
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.drive.nv.rm import Rm
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort
from tinyhw.tools import nvcapture
from tinyhw.wire import gpfifo, methods, qmd, rm

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[2] / "recordings/cuda_sm90.json").read_text())
CLASS: int = RECORDED["class"]
PIECES = [[int(w, 16) for w in piece.split()] for piece in RECORDED["pieces"]]
LAUNCHES = {l["kernel"]: l for l in RECORDED["launches"]}
# Fields in which our QMD of the same launch is another, and why.
OTHERS = {
  "(PROGRAM|CONSTANT_BUFFER)_(PREFETCH_)?ADDR.*|PROGRAM_PREFETCH_SIZE": "where things are, and a hint",
  "CONSTANT_BUFFER_(VALID|SIZE|PREFETCH).*": "CUDA has banks 1, 5 and 7 too, and more behind bank 0's parameters",
  "CONSTANT_BUFFER_INVALIDATE_0|INVALIDATE_INSTRUCTION_CACHE": "we write bank 0 and code anew, by a ring's places",
  "(ARRIVE_AT|DEPENDENT|RELEASE)_.*|ENABLE_PROGRAM_PRE_EXIT": "how CUDA is told of an end: by latches and a QMD behind",
  "REGISTER_COUNT|BARRIER_COUNT": "ptxas's are another's here (the mock's stand-in), and CUDA has a barrier at least",
  "SHADER_LOCAL_MEMORY_HIGH_SIZE": "CUDA adds the stack of calls, 576 bytes and its limit's 1,024",
  "(MIN|TARGET)_SM_CONFIG_SHARED_MEM_SIZE": "CUDA asks for room for more blocks at a time",
  "CGA_CTA_DISTRIBUTION_MODE|TPC_DISABLE_MASK_.*": "CUDA's way to place clusters: masks name TPCs that there are not"}
CHANNEL = {0: 0xC8B5, 1: CLASS, 4: 0xC8B5}


def test_the_recording_says_what_it_is() -> None:
  assert {"card", "driver", "date", "command"} <= set(RECORDED) and set(LAUNCHES) == {"shared", "local", "cluster"}
  assert len(PIECES) > 100


def test_pieces_are_read_and_written_again() -> None:
  for words in PIECES:
    again: list[int] = []
    for _, sent in methods.walk(words):
      again += sent.encode() if isinstance(sent, methods.Send) else [sent if isinstance(sent, int) else sent.encode()]
    assert again == words


def test_each_method_has_a_name() -> None:
  text = "\n".join(methods.text(words, CHANNEL) for words in PIECES)
  for name in ("SET_OBJECT(NVCLASS=0xcbc0", "SET_QMD_VERSION(CURRENT=0x40, OLDEST_SUPPORTED=1)", "SEND_PCAS_A",
               "SET_CWD_REF_COUNTER", "LOAD_INLINE_DATA", "SET_SPA_VERSION(MINOR=0, MAJOR=9)", "SEM_EXECUTE"):
    assert name in text, name


@pytest.mark.parametrize("kernel", LAUNCHES)
def test_meta_data_is_read_and_written_again(kernel: str) -> None:
  words = LAUNCHES[kernel]["qmd"]
  made = qmd.decode(CLASS, words)
  assert list(qmd.encode(made)) == words and qmd.version_of(type(made)) == (4, 0)


def test_grids_count_clusters() -> None:
  """6 x 4 blocks in clusters of 2 x 2 are a grid of 3 x 2."""
  made = qmd.decode(CLASS, LAUNCHES["cluster"]["qmd"])
  read = {n: qmd.read(made, n) for n in ("GRID_WIDTH", "GRID_HEIGHT", "GRID_DEPTH", "GPC_CGA_WIDTH", "GPC_CGA_HEIGHT",
                                         "GPC_CGA_DEPTH", "QMD_TYPE")}
  assert [*read.values()] == [3, 2, 1, 2, 2, 1, 3] and LAUNCHES["cluster"]["grid"] == [6, 4, 1]


def test_ours_is_the_same_but_for_what_has_a_reason() -> None:
  runtime = NVRuntime(NvPort(NvMachine("sm_90", vram=1 << 32, system_memory=1 << 28)))
  runtime.assemble = Assembler(runtime.arch, False)
  differing = set()
  for launch in RECORDED["launches"]:
    grid, block = tuple(launch["grid"]), tuple(launch["block"])
    program = runtime.load_kernel(nvcapture.KERNELS.encode(), launch["kernel"])
    out = runtime.alloc(4096)
    program.launch(struct.pack("<Q", out.address), grid, block, dynamic_lds=launch["dynamic"])
    ours, theirs = ({f.name: v for f, v in qmd.decode(CLASS, words).items()} for words in
                    (list(program.prepared(block, launch["dynamic"]).qmd), launch["qmd"]))
    differing |= {name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}
  runtime.close()
  without = {name for name in differing if not any(re.fullmatch(pattern, name) for pattern in OTHERS)}
  assert not without
  assert all(any(re.fullmatch(pattern, name) for name in differing) for pattern in OTHERS)


def test_the_mock_card_is_as_rm_told() -> None:
  """tests/recordings/rm_sm90.json: what RM told on the card."""
  told = json.loads((Path(__file__).parents[2] / "recordings/rm_sm90.json").read_text())
  port = NvPort(NvMachine("sm_90"))
  gpu = Rm.of(port).open_gpu(0)
  assert (gpu.name, gpu.arch.name, gpu.sms, gpu.tpcs, gpu.warps_per_sm, gpu.vram_bytes) == tuple(
    told[k] for k in ("name", "arch", "sms", "tpcs", "warps_per_sm", "vram"))
  assert {f"{c:#06x}": rm.class_name(c) for c in gpu.classes} == told["classes"]
  assert set(gpu.engines) <= set(told["engines"])  # the mock has those for graphics and copies


def test_parameters_are_as_long_as_cuda_has_them() -> None:
  """tests/recordings/rm_calls_sm90.json: each control of a process of CUDA whose parameters are declared here."""
  told = json.loads((Path(__file__).parents[2] / "recordings/rm_calls_sm90.json").read_text())
  known = [(nv_rm_control.CONTROLS[command], size) for command, size, _, _ in told["controls"]
           if command in nv_rm_control.CONTROLS]
  assert len(known) >= 43
  assert not [call.name for call, size in known if ctypes.sizeof(call.struct) != size]
  assert all(not rm.status_name(status).startswith("0x") for *_, status, _ in (*told["controls"], *told["allocations"]))
  card = set(NvMachine("sm_90").gpus[0].card.classes)
  assert not {number for number, status, _ in told["allocations"] if not status} - card


def test_what_is_in_memory_is_found() -> None:
  """A ring, the pieces that it points to, a QMD among what one of them uploads."""
  launch = LAUNCHES["local"]
  upload = methods.Send(methods.NONINCR, 1, 0x1B4, tuple([0] * 5 + launch["qmd"])).encode()
  at, pages = 0x200000000, dict[int, bytes]()
  ring = b"".join(gpfifo.Segment(at + 4096, len(upload)).encode().to_bytes(8, "little") for _ in range(16))
  pages[at] = ring.ljust(4096, b"\0")
  pages[at + 4096] = b"".join(w.to_bytes(4, "little") for w in upload).ljust(4096, b"\0")
  wanted = nvcapture.Launch("local", (11, 2, 1), (33, 1, 1))
  other = nvcapture.Launch("none", (1, 1, 1), (1, 1, 1))
  found, pieces = nvcapture.found(nvcapture.Pages(pages), CLASS, (wanted, other))
  assert [(f.kernel, list(f.qmd)) for f in found] == [("local", launch["qmd"])]
  assert pieces == [[upload[0], *[0] * (len(upload) - 1)]]
