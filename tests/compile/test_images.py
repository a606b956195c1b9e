"""The option IMAGE: kernels whose buffers are OpenCL images give what they give without, bit for bit."""
from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile.witness import realized
from tests.opencl import need_driver
from tests.strength import examples, seed
from tinyhw import Tensor
from tinyhw.compile import Opt, OptKind, ProgramSpec, compile_kernel, images, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.render.metal import MetalRenderer
from tinyhw.compile.render.opencl import OpenCLRenderer
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.drive.cl import CLRuntime, Image, images_of

TEXT = OpenCLRenderer(images=(16384, 16384))


@functools.cache
def device() -> CLRuntime:
  need_driver()
  made = CLRuntime()
  if made.images is None: pytest.skip("the OpenCL device has no images")
  return made


def launch(program: ProgramSpec, arrays: list[np.ndarray]) -> None:
  memory = [device().alloc(a.nbytes) for a in arrays]
  for m, a in zip(memory, arrays): device().copyin(m, memoryview(a.view(np.uint8)))
  device().load(program.binary, program.name)(memory, (), program.grid, program.block)
  for m, a in zip(memory, arrays): device().copyout(memoryview(a.view(np.uint8)), m)


def both(made: Tensor) -> tuple[tuple[Opt, ...], str]:
  """Holds the only kernel of a tensor with images to those without, and to the one without any option; the options and
  the text of the first."""
  (item,) = [i for i in schedule([made.uop]) if i.ast.op.name == "SINK"]
  found = device()
  renderer = OpenCLRenderer(found.double, found.exact, found.max_block, found.max_local, found.images)
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("IMAGE", "1")
    chosen = compile_kernel(item.ast, renderer)
    values = realized(made, renderer, launch)
  plain_opts = tuple(o for o in chosen.opts if o.kind is not OptKind.IMAGE)
  texts = {}
  def without(opts: tuple[Opt, ...]) -> np.ndarray:
    def run(program: ProgramSpec, arrays: list[np.ndarray]) -> None:
      launch(compile_kernel(item.ast, renderer, opts), arrays)
    texts[opts] = compile_kernel(item.ast, renderer, opts).source
    return realized(made, renderer, run)
  assert "image2d_t" not in texts.setdefault(plain_opts, "") and values.tobytes() == without(plain_opts).tobytes()
  np.testing.assert_allclose(values.astype(np.float32), without(()).astype(np.float32), rtol=1e-2 if
                             values.dtype == np.float16 else 1e-4, atol=1e-2 if values.dtype == np.float16 else 1e-4)
  return chosen.opts, chosen.source


def numbers(*size: int, kind: type = np.float32) -> np.ndarray:
  return np.random.default_rng(seed(sum(size))).normal(size=size).astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_a_product_of_matrices(kind: type) -> None:
  opts, text = both(Tensor(numbers(8, 12, kind=kind)) @ Tensor(numbers(12, 8, kind=kind)))
  assert [o.axis for o in opts if o.kind is OptKind.IMAGE] == [0, 1, 2]
  assert "write_only image2d_t data0" in text and "read_only image2d_t data1" in text and "write_imagef" in text


def test_a_convolution_reads_zeros_beside_its_image() -> None:
  x, w = Tensor(numbers(1, 2, 5, 8)), Tensor(numbers(4, 2, 3, 3))
  opts, text = both(x.conv2d(w, padding=1))
  assert {1, 2} <= {o.axis for o in opts if o.kind is OptKind.IMAGE} and "read_imagef" in text


@given(st.sampled_from([np.float32, np.float16]), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=examples(1), deadline=None)
def test_products_of_any_size(kind: type, rows: int, steps: int, columns: int) -> None:
  both(Tensor(numbers(rows * 2, steps * 2, kind=kind)) @ Tensor(numbers(steps * 2, columns * 2, kind=kind)))


def test_devices_do_it_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
  need_driver()
  a, b = numbers(8, 12), numbers(12, 16)
  plain = (Tensor(a, device="CL") @ Tensor(b, device="CL")).numpy()
  monkeypatch.setenv("IMAGE", "1")
  for _ in range(2): assert ((Tensor(a, device="CL") @ Tensor(b, device="CL")).numpy() == plain).all()


def test_what_an_image_cannot_be_is_refused() -> None:
  (item,) = schedule([(Tensor.empty(8, 6) @ Tensor.empty(6, 8)).uop])
  kernel = optimize(item.ast, TEXT, ())
  for axis, why in ((0, "does not store whole pixels"), (7, "has no buffer 7")):
    with pytest.raises(InvalidArgument, match=why): kernel.apply(Opt(OptKind.IMAGE, axis))
  kernel.apply(Opt(OptKind.IMAGE, 1))
  with pytest.raises(InvalidArgument, match="an image already"): kernel.apply(Opt(OptKind.IMAGE, 1))
  with pytest.raises(InvalidArgument, match="target metal has no images"):
    optimize(item.ast, MetalRenderer(), [Opt(OptKind.IMAGE, 1)])
  (other,) = schedule([(Tensor.empty(3, 5) @ Tensor.empty(5, 3)).uop])
  with pytest.raises(InvalidArgument, match="no image of 4 numbers a pixel has 15"):
    optimize(other.ast, TEXT, [Opt(OptKind.IMAGE, 1)])
  (third,) = schedule([Tensor.empty(8, 8, dtype="int32").sum(0).uop])
  with pytest.raises(InvalidArgument, match="not of int32"): optimize(third.ast, TEXT, [Opt(OptKind.IMAGE, 1)])
  program = compile_kernel(item.ast, TEXT, [Opt(OptKind.IMAGE, 1)])
  with pytest.raises(Unsupported, match="images"): MetalRenderer().source("k", program.uops)


def test_the_size_of_images() -> None:
  assert images.shape(4096, (64, 64)) == (64, 16)
  assert images.shape(4 * 1000, (16384, 16384)) == (125, 8)
  assert images.shape(4 * 997, (512, 512)) is None and images.shape(6, (64, 64)) is None
  assert images.shape(4 * 997, (1024, 8)) == (997, 1)


def test_who_loads_a_kernel_knows_its_images() -> None:
  (item,) = schedule([(Tensor.empty(8, 8) @ Tensor.empty(8, 8)).uop])
  program = compile_kernel(item.ast, TEXT, [Opt(OptKind.UPCAST, 1, 4), Opt(OptKind.IMAGE, 0), Opt(OptKind.IMAGE, 2)])
  assert images_of(program.binary) == (Image(0, "float32", 16, 1, True), Image(2, "float32", 16, 1, False))
