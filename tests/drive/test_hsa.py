"""The HSA device where there is no GPU for ROCm's runtime; on mock cards: tests/mock/clients/test_hsa_device.py."""
from __future__ import annotations

import ctypes
import os
import subprocess

import pytest

from tests.devices.test_closed import run_apart
from tinyhw.autogen import hsa
from tinyhw.drive.hsa.library import NAMES, HsaLibrary, named, reasons

REFUSED = "try: Device['HSA']\nexcept DeviceError as error: print(error)"


def library() -> ctypes.CDLL:
  for name in NAMES:
    try: return ctypes.CDLL(name)
    except OSError: continue
  pytest.skip(f"there is no {NAMES[0]}")


def test_without_the_library() -> None:
  said = run_apart("from tinyhw.drive.hsa import library\nlibrary.NAMES = ('libno-such.so',)\n" + REFUSED, "HSA",
                   MOCKGPU="", DEV="LLVM")
  assert said.startswith("HSA: ROCm's runtime cannot be loaded: libno-such.so") and said.count("\n") == 1, said


def test_without_a_card() -> None:
  library()
  if os.path.exists("/dev/kfd"): pytest.skip("this machine has AMD's kernel driver")
  said = run_apart(REFUSED, "HSA", MOCKGPU="", DEV="LLVM")
  assert said.startswith("HSA: ROCm's runtime finds no GPU: hsa_init: HSA_STATUS_ERROR_"), said
  assert said.count("\n") == 1, said


def test_mock_cards_are_met_in_another_process() -> None:
  assert "tinyhw run --mockgpu gfx1100,gfx1100 -- python PROGRAM" in run_apart(REFUSED, "HSA")


def test_all_functions_are_the_library_s() -> None:
  """Those that the headers declare are there, with one result and parameters that ctypes knows."""
  found = HsaLibrary(library())
  for name in hsa.FUNCTIONS: assert found.function(name).argtypes == hsa.FUNCTIONS[name][1]
  version = found.number(ctypes.c_uint16, "hsa_system_get_info", hsa.HSA_SYSTEM_INFO_VERSION_MAJOR) \
    if found.function("hsa_init")() == 0 else 1
  assert version == 1


def test_words_are_the_header_s() -> None:
  assert named(hsa.HSA_STATUS_ERROR_INVALID_ISA) == "HSA_STATUS_ERROR_INVALID_ISA" and named(7) == "status 0x7"
  assert reasons(3 | 1 << 31) == "page not present, read only, hang" and reasons(0) == "no reason told"


def test_parameters_are_as_many_and_as_large_as_the_header_s() -> None:
  """A C++ compiler compares the declared types' sizes with the listed ones."""
  if not os.path.exists("/usr/include/hsa/hsa_ext_amd.h"): pytest.skip("there are no headers of HSA")
  lines = ["#include <hsa/hsa_ext_amd.h>", "#include <hsa/hsa_ext_image.h>",
           "template<int... N> struct S {}; template<class R, class... A> S<(int)sizeof(A)...> f(R (*)(A...));",
           "template<class X, class Y> constexpr bool same = false;",
           "template<class X> constexpr bool same<X, X> = true;"]
  for name, (_, parameters) in hsa.FUNCTIONS.items():
    sizes = ",".join(str(ctypes.sizeof(t)) for t in parameters)
    lines.append(f'static_assert(same<decltype(f(&{name})), S<{sizes}>>, "{name}");')
  done = subprocess.run(["g++", "-std=c++17", "-x", "c++", "-fsyntax-only", "-w", "-"], input="\n".join(lines),
                        text=True, capture_output=True)
  assert not done.returncode, done.stderr[:2000]
