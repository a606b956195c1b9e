"""Triton kernels with tensor descriptors made on the device: TMA, wgmma, tcgen05, groups of warps, clusters."""
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIAL: tl.constexpr):
  """A tile of a product; SPECIAL has warps that load and warps that multiply."""
  left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
  right = tl.make_tensor_descriptor(b, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
  result = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
  i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
  total = tl.zeros((BM, BN), tl.float32)
  for k in tl.range(0, K, BK, warp_specialize=SPECIAL):
    total = tl.dot(left.load([i, k]), right.load([k, j]), total)
  result.store([i, j], total.to(c.dtype.element_ty))


@triton.jit
def attention(q, k, v, o, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
  """Softmax in powers of two of q k^T, times v, in one pass."""
  queries = tl.make_tensor_descriptor(q, shape=[N, D], strides=[D, 1], block_shape=[BM, D])
  keys = tl.make_tensor_descriptor(k, shape=[N, D], strides=[D, 1], block_shape=[BN, D])
  values = tl.make_tensor_descriptor(v, shape=[N, D], strides=[D, 1], block_shape=[BN, D])
  results = tl.make_tensor_descriptor(o, shape=[N, D], strides=[D, 1], block_shape=[BM, D])
  i = tl.program_id(0) * BM
  x = queries.load([i, 0])
  most = tl.full((BM,), -float("inf"), tl.float32)
  weight = tl.zeros((BM,), tl.float32)
  total = tl.zeros((BM, D), tl.float32)
  for n in tl.range(0, N, BN):
    scores = tl.dot(x, keys.load([n, 0]).T) * scale
    above = tl.maximum(most, tl.max(scores, 1))
    p = tl.exp2(scores - above[:, None])
    shrink = tl.exp2(most - above)
    weight = weight * shrink + tl.sum(p, 1)
    total = tl.dot(p.to(tl.float16), values.load([n, 0]), total * shrink[:, None])
    most = above
  results.store([i, 0], (total / weight[:, None]).to(tl.float16))


@triton.jit
def sums(x, out, n, BLOCK: tl.constexpr):
  """A sum of a block, over a cluster of two."""
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < n, other=0.0), 0))


@triton.jit
def scaled(a, b, p, q, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
           A: tl.constexpr, B: tl.constexpr):
  """A product of narrow floats, A and B of them in a byte, whose blocks of 32 have scale factors."""
  i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
  left = tl.load(a + i[:, None] * (K // A) + tl.arange(0, K // A)[None, :])
  right = tl.load(b + j[None, :] * (K // B) + tl.arange(0, K // B)[:, None])
  x, y = tl.load(p + i[:, None] * (K // 32) + k[None, :]), tl.load(q + j[:, None] * (K // 32) + k[None, :])
  tl.store(c + i[:, None] * N + j[None, :], tl.dot_scaled(left, x, LEFT, right, y, RIGHT))
