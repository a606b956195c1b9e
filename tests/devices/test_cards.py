"""Every card of the AMD mock: it is what its processor is said to be, in KFD's files too, and tensors run on it."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhw import Device, Tensor
from tinyhw.arch import arch
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.mock.amd.card import CARDS


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_its_processor(name: str) -> None:
  card, known = CARDS[name], arch(name)
  assert card.gfx_target_version == known.gfx_target_version and card.compute_units == known.cu_count
  assert card.simds_per_compute_unit == known.simd_per_cu and card.max_waves_per_simd == known.waves_per_simd
  assert known.card.split(maxsplit=1)[1] in card.marketing_name and card.lds_kib << 10 == known.lds_per_workgroup
  lanes = min(known.wave_sizes)
  # kfd_queue.c's registers of a compute unit are those of its SIMDs: u32 of each lane of a wave
  assert card.vgpr_bytes_per_compute_unit == 4 * lanes * known.simd_vgprs[lanes] * known.simd_per_cu
  assert card.traps_off == known.saved_privileged


@pytest.mark.parametrize("name", CARDS)
def test_tensors_run_on_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", name)
  Device.close()
  try:
    a = np.random.default_rng(5).random((24, 24), np.float32)
    np.testing.assert_allclose((Tensor(a, device="AMD") @ Tensor(a, device="AMD")).numpy(), a @ a, rtol=1e-5)
    runtime = Device["AMD"].runtime
    assert isinstance(runtime, AMDRuntime) and runtime.target == name
    assert runtime.describe().startswith(f"{name}, {CARDS[name].compute_units} CUs")
  finally: Device.close()
