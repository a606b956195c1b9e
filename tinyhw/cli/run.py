"""`tinyhw run`: a program of somebody else's that uses CUDA or ROCm, on mock GPUs."""
from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import click

from tinyhw.cli import checks, progress
from tinyhw.cli.record import recorded_to
from tinyhw.core.ending import Step, at_end
from tinyhw.core.errors import InvalidArgument


@click.command(cls=checks.Checked, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--mockgpu", default=lambda: os.environ.get("MOCKGPU", "sm_90"), metavar="CARDS", show_default="sm_90",
              help="The mock cards, sm_90 or gfx1100, or with commas several.")
@click.option("-m", "module", is_flag=True, help="PROGRAM is a module's name, as for python -m.")
@click.option("--record", metavar="FILE", help="Keep the calls of CUDA and the work in streams, or the calls of "
              "AMD's kernel driver and what queues get, in a capture, as `tinyhw record` does.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Draws the turns of queues and engines, as "
              "MOCKGPU_SEED.")
@click.option("--memory", type=click.Choice(["strong", "weak"]), help="Caches of AMD's cards, as MOCKGPU_MEMORY.")
@click.option("--fault", metavar="FILE", help="Faults that are declared, as MOCKGPU_FAULTS.")
@checks.option("what was found is told at the end")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(mockgpu: str, module: bool, record: str | None, seed: int | None, memory: str | None, fault: str | None,
            check: str | None, program: str, arguments: tuple[str, ...]) -> None:
  """Run a PROGRAM on mock GPUs. It calls CUDA's driver (libcuda.so.1) or runtime (libcudart.so.13): one in Python
  (cuda.bindings, Numba, tinygrad, ctypes ...), or a native one of nvcc's that carries its PTX. Or it uses ROCm, on
  cards of AMD (gfx...): any program in any language.

  With cards of AMD the program is a process of its own with the ROCm that is installed. Its calls on /dev/kfd, on
  render nodes and sysfs are answered by the mock's kernel driver, and so are those of all processes that it starts,
  which share the cards. It needs no privileges; Linux lets it (seccomp). At the end you are told what was found.

  With cards of NVIDIA the process gets a libcuda of mock cards, which runs PTX on the emulator. Calls that failed, and
  why, kernels that did wrong, and what was called that no mock serves are told at the end. Processes that it starts
  have mock cards of their own, with which nothing is shared. While a kernel runs for more than two seconds, a terminal
  on stderr shows its name, blocks that have ended of all, and the time.

  \b
  Examples:
    tinyhw run --mockgpu sm_90 my_numba_program.py --size 64
    DEV=CUDA:PTX tinyhw run -m pytest my_tinygrad_tests.py
    nvcc -arch=compute_90a -code=compute_90a --compress-mode=none -cudart shared -o p p.cu
    tinyhw run ./p
    tinyhw run --record run.thq ./p; tinyhw lint run.thq
    tinyhw run --mockgpu gfx1100 --record run.thq -- ./my_hip_program
    tinyhw run --mockgpu gfx1100 -- rocminfo
    tinyhw run --mockgpu gfx1100,gfx1100 --check -- ./my_hip_program
    tinyhw run --mockgpu gfx1100 --seed 3 --fault faults.toml -- ./my_hip_program
  """
  given = {"MOCKGPU_SEED": None if seed is None else str(seed), "MOCKGPU_MEMORY": memory, "MOCKGPU_FAULTS": fault}
  os.environ.update({name: value for name, value in given.items() if value is not None})
  from tinyhw.cli import hosted
  if hosted.is_amd(mockgpu):
    sys.exit(hosted.run(mockgpu, hosted.words_of(program, arguments, module), check, record))
  if not module and not Path(program).is_file():
    raise InvalidArgument(f"{program}: there is no such file", hint="-m runs a module by its name")
  if check is not None: os.environ["EMU_CHECK"] = ",".join(["report", *filter(None, [check])])
  if record is not None: os.environ.update(recorded_to(Path(record)))
  from tinyhw.cli import children, native
  progress.launches()
  tell = children.machine(mockgpu, children.offer(mockgpu))
  if not module and native.is_native(program):
    native.run(program, arguments, tell)
  sys.argv = [program, *arguments]
  at_end(Step.REPORTS, tell)  # behind what the program has registered, which may call CUDA too
  sys.path.insert(0, os.getcwd() if module else str(Path(program).resolve().parent))
  try:
    if module: runpy.run_module(program, run_name="__main__", alter_sys=True)
    else: runpy.run_path(program, run_name="__main__")
  finally: tell()
