"""Files of programs with damage: a call fails with a code of CUDA's, and nothing else is raised."""
from __future__ import annotations

import ctypes

import pytest

from tests.wire.test_fatbin import packed
from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.modules.images import ptx_of


@pytest.mark.parametrize("text", [b".version 8.0\n", b".version 8.0\n.target", b".version 8.0\n.target wm_80\n",
                                  b".version 8.0\n.target\n.address_size 64\n"])
def test_a_fat_binary_whose_text_names_no_target_has_no_code(text: bytes) -> None:
  machine = CudaMachine("sm_90")
  kept = ctypes.create_string_buffer(packed((1, 80, text, 0x11, 0)))
  with pytest.raises(Failed, match="none that is known") as caught: ptx_of(machine, ctypes.addressof(kept))
  assert caught.value.code == cuda.CUDA_ERROR_NO_BINARY_FOR_GPU
