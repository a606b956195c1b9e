"""Value operations in LLVM IR against those in NumPy, where rounding is hard."""
from __future__ import annotations

import ctypes
import random

import llvmlite.binding as llvm
import numpy as np

from tests.strength import examples, seed
from tinyhw.core.host import choose
from tinyhw.emulator.jit.values import Emitter, LLVMOps, Value
from tinyhw.emulator.values.ops import DTYPES, Ops


def small(rng: random.Random) -> float:
  """A number that a factor of 2**-128 makes denormal, or nearly."""
  exponent = rng.choice((-900, -895, -893, -892, -950, -1000, -940, -920, -946)) + rng.randrange(-3, 4)
  fraction = rng.choice((rng.getrandbits(52), 0, 1, (1 << 52) - 1, 1 << 51))
  return float(np.uint64(rng.getrandbits(1) << 63 | exponent + 1023 << 52 | fraction).view(np.float64))


def test_a_scaled_fma_is_rounded_once() -> None:
  """Eight at a time: sums that cancel, ties, and factors that move the last bit."""
  e = Emitter(8)
  e.label = "entry"
  a, b, c = (Value(e, f"%v{k}", DTYPES["f64"], True) for k in range(3))
  result = LLVMOps(e).fma_scaled(a, b, c, Value(e, "%e", DTYPES["i32"], True))
  loads = "\n".join(f"  %at{k} = getelementptr <8 x double>, ptr %p, i64 {k}\n  %v{k} = load <8 x double>, ptr %at{k}"
                    ", align 8" for k in range(3))
  text = "\n".join((*e.constants, *e.declared.values(), "define void @f(ptr %p, ptr %q) {\nentry:", loads,
                    "  %e = load <8 x i32>, ptr %q, align 4", *e.lines,
                    f"  store <8 x double> {result.text}, ptr %p, align 8\n  ret void\n}}", "!0 = !{}"))
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  cpu = choose(llvm.get_process_triple(), llvm.get_host_cpu_features()).cpu
  machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu)
  engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
  engine.finalize_object()
  run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("f"))
  rng = random.Random(seed(0))
  scale = np.full(8, -128, np.int32)
  for _ in range(examples(300)):
    x = [small(rng) for _ in range(8)]
    y = [rng.choice((1.0, 1.5, -1.0, 1 + 2.0**-52, 0.75, rng.random(), 2.0**-53)) for _ in range(8)]
    z = [rng.choice((small(rng), 0.0, -p * q * rng.choice((1, 0.5, 1 + 2.0**-30)))) for p, q in zip(x, y)]
    data = np.array([x, y, z])
    wanted = Ops.fma_scaled(*data.copy(), scale)
    run(data.ctypes.data, scale.ctypes.data)
    assert np.array_equal(data[0].view(np.uint64), np.asarray(wanted).view(np.uint64))
