"""A Triton program, as one writes it for a card: softmax of rows, beside torch. Run it without one:

  pip install "tinyhw[triton]"
  TINYHW_TRITON=gfx942 python examples/triton_softmax.py
  TINYHW_TRITON=gfx1100 EMU_CHECK=1 python examples/triton_softmax.py     # with missing waits, races, ... looked for
"""
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def softmax_rows(x, out, columns, BLOCK: tl.constexpr):
  row, at = tl.program_id(0), tl.arange(0, BLOCK)
  inside = at < columns
  v = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
  e = tl.exp(v - tl.max(v, 0))
  tl.store(out + row * columns + at, e / tl.sum(e, 0), mask=inside)


def softmax(x: torch.Tensor) -> torch.Tensor:
  out = torch.empty_like(x)
  rows, columns = x.shape
  softmax_rows[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
  return out


x = torch.randn(64, 781, device=DEVICE)
torch.testing.assert_close(softmax(x), torch.softmax(x, 1))
print("right on", triton.runtime.driver.active.get_current_target().arch)
