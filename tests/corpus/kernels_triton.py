"""The corpus's Triton kernels, written for it. They need Triton to be compiled, and nothing of it to be run."""
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  inside = at < n
  tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
  row, at = tl.program_id(0), tl.arange(0, BLOCK)
  inside = at < columns
  v = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
  e = tl.exp(v - tl.max(v, 0))
  tl.store(out + row * columns + at, e / tl.sum(e, 0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, mean, rstd, columns, eps, BLOCK: tl.constexpr):
  row, at = tl.program_id(0), tl.arange(0, BLOCK)
  inside = at < columns
  v = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
  m = tl.sum(v, 0) / columns
  d = tl.where(inside, v - m, 0.0)
  r = 1 / tl.sqrt(tl.sum(d * d, 0) / columns + eps)
  tl.store(mean + row, m)
  tl.store(rstd + row, r)
  w, b = tl.load(weight + at, mask=inside), tl.load(bias + at, mask=inside)
  tl.store(out + row * columns + at, (d * r * w + b).to(out.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm_backward(grad, x, weight, mean, rstd, dx, dweight, dbias, lock, columns, BLOCK: tl.constexpr):
  row, at = tl.program_id(0), tl.arange(0, BLOCK)
  inside = at < columns
  g = tl.load(grad + row * columns + at, mask=inside, other=0.0)
  v = tl.load(x + row * columns + at, mask=inside, other=0.0)
  w = tl.load(weight + at, mask=inside, other=0.0)
  m, r = tl.load(mean + row), tl.load(rstd + row)
  hat = tl.where(inside, (v - m) * r, 0.0)
  wg = g * w
  c1, c2 = tl.sum(hat * wg, 0) / columns, tl.sum(wg, 0) / columns
  tl.store(dx + row * columns + at, (wg - (hat * c1 + c2)) * r, mask=inside)
  while tl.atomic_cas(lock, 0, 1) == 1:
    pass
  tl.store(dweight + at, tl.load(dweight + at, mask=inside) + g * hat, mask=inside)
  tl.store(dbias + at, tl.load(dbias + at, mask=inside) + g, mask=inside)
  tl.debug_barrier()
  tl.atomic_xchg(lock, 0)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  inside = at < n
  keep = tl.rand(seed, at) > p
  tl.store(out + at, tl.where(keep, tl.load(x + at, mask=inside) / (1 - p), 0.0), mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           PRECISION: tl.constexpr = None):
  row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
  depth = tl.arange(0, BK)
  total = tl.zeros((BM, BN), tl.float32 if c.dtype.element_ty == tl.float16 else c.dtype.element_ty)
  for k in range(0, tl.cdiv(K, BK)):
    at = k * BK + depth
    x = tl.load(a + row[:, None] * K + at[None, :], mask=(row[:, None] < M) & (at[None, :] < K), other=0.0)
    y = tl.load(b + at[:, None] * N + column[None, :], mask=(at[:, None] < K) & (column[None, :] < N), other=0.0)
    total = tl.dot(x, y, total, input_precision=PRECISION, out_dtype=total.dtype)
  tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty),
           mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def persistent_matmul(a, b, c, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                      BK: tl.constexpr):
  wide = tl.cdiv(N, BN)
  for tile in range(tl.program_id(0), tl.cdiv(M, BM) * wide, PROGRAMS):
    row, column = tile // wide * BM + tl.arange(0, BM), tile % wide * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
      x = tl.load(a + row[:, None] * K + (k + depth)[None, :])
      y = tl.load(b + (k + depth)[:, None] * N + column[None, :])
      total += tl.dot(x, y)
    tl.store(c + row[:, None] * N + column[None, :], total)


@triton.jit
def grouped_matmul(a, b, c, rows, starts, experts, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr):
  """Rows [starts[e], starts[e] + rows[e]) of `a` times matrix e of `b`; programs share out the tiles of all."""
  tile, before = tl.program_id(0), 0
  for e in range(experts):
    m, start = tl.load(rows + e), tl.load(starts + e)
    wide = tl.cdiv(N, BN)
    tiles = tl.cdiv(m, BM) * wide
    while tile < before + tiles:
      here = tile - before
      row, column = here // wide * BM + tl.arange(0, BM), here % wide * BN + tl.arange(0, BN)
      depth = tl.arange(0, BK)
      total = tl.zeros((BM, BN), tl.float32)
      for k in range(0, K, BK):
        x = tl.load(a + (start + row)[:, None] * K + (k + depth)[None, :], mask=row[:, None] < m, other=0.0)
        y = tl.load(b + e * K * N + (k + depth)[:, None] * N + column[None, :], mask=column[None, :] < N, other=0.0)
        total += tl.dot(x, y)
      tl.store(c + (start + row)[:, None] * N + column[None, :], total,
               mask=(row[:, None] < m) & (column[None, :] < N))
      tile += PROGRAMS
    before += tiles


@triton.jit
def split_matmul(a, b, c, M, N, K, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
  row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
  total = tl.zeros((BM, BN), tl.float32)
  for k in range(tl.program_id(2) * BK, K, SPLIT * BK):
    depth = k + tl.arange(0, BK)
    total += tl.dot(tl.load(a + row[:, None] * K + depth[None, :]), tl.load(b + depth[:, None] * N + column[None, :]))
  tl.atomic_add(c + row[:, None] * N + column[None, :], total, sem="relaxed")


@triton.jit
def attention(q, k, v, out, lse, length, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
              BN: tl.constexpr):
  head, block = tl.program_id(1), tl.program_id(0)
  row, d = block * BM + tl.arange(0, BM), tl.arange(0, D)
  q += head * length * D
  k += head * length * D
  v += head * length * D
  x = tl.load(q + row[:, None] * D + d[None, :], mask=row[:, None] < length, other=0.0)
  top = tl.full((BM,), -float("inf"), tl.float32)
  norm = tl.zeros((BM,), tl.float32)
  total = tl.zeros((BM, D), tl.float32)
  end = tl.minimum((block + 1) * BM, length) if CAUSAL else length
  for start in range(0, end, BN):
    at = start + tl.arange(0, BN)
    keys = tl.load(k + at[None, :] * D + d[:, None], mask=at[None, :] < length, other=0.0)
    s = tl.dot(x, keys) * scale
    seen = at[None, :] < length
    if CAUSAL:
      seen = seen & (at[None, :] <= row[:, None])
    s = tl.where(seen, s, -float("inf"))
    new = tl.maximum(top, tl.max(s, 1))
    p = tl.exp(s - new[:, None])
    shrink = tl.exp(top - new)
    norm = norm * shrink + tl.sum(p, 1)
    values = tl.load(v + at[:, None] * D + d[None, :], mask=at[:, None] < length, other=0.0)
    total = total * shrink[:, None] + tl.dot(p.to(values.dtype), values)
    top = new
  tl.store(out + head * length * D + row[:, None] * D + d[None, :], total / norm[:, None], mask=row[:, None] < length)
  tl.store(lse + head * length + row, top + tl.log(norm), mask=row < length)


@triton.jit
def attention_backward(q, k, v, dout, lse, delta, dq, dk, dv, length, scale, D: tl.constexpr, BM: tl.constexpr,
                       BN: tl.constexpr):
  """Causal. A program has BN keys and goes over the queries that see them; dq is summed with atomics."""
  head = tl.program_id(1)
  d, key = tl.arange(0, D), tl.program_id(0) * BN + tl.arange(0, BN)
  base = head * length * D
  keys = tl.load(k + base + key[:, None] * D + d[None, :])
  values = tl.load(v + base + key[:, None] * D + d[None, :])
  dkeys, dvalues = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
  for start in range(tl.program_id(0) * BN // BM * BM, length, BM):
    row = start + tl.arange(0, BM)
    x = tl.load(q + base + row[:, None] * D + d[None, :])
    g = tl.load(dout + base + row[:, None] * D + d[None, :])
    s = tl.dot(x, tl.trans(keys)) * scale
    p = tl.where(row[:, None] >= key[None, :], tl.exp(s - tl.load(lse + head * length + row)[:, None]), 0.0)
    dvalues += tl.dot(tl.trans(p).to(g.dtype), g)
    dp = tl.dot(g, tl.trans(values))
    ds = (p * (dp - tl.load(delta + head * length + row)[:, None]) * scale).to(x.dtype)
    dkeys += tl.dot(tl.trans(ds), x)
    tl.atomic_add(dq + base + row[:, None] * D + d[None, :], tl.dot(ds, keys))
  tl.store(dk + base + key[:, None] * D + d[None, :], dkeys)
  tl.store(dv + base + key[:, None] * D + d[None, :], dvalues)


@triton.jit
def _recur(a1, b1, a2, b2):
  return a1 * a2, b1 * a2 + b2


@triton.jit
def scan(x, gate, sums, products, states, columns, BLOCK: tl.constexpr):
  row, at = tl.program_id(0), tl.arange(0, BLOCK)
  inside = at < columns
  v = tl.load(x + row * columns + at, mask=inside, other=0.0)
  g = tl.load(gate + row * columns + at, mask=inside, other=1.0)
  _, state = tl.associative_scan((g, v), 0, _recur)
  tl.store(sums + row * columns + at, tl.cumsum(v, 0), mask=inside)
  tl.store(products + row * columns + at, tl.cumprod(g, 0, reverse=True), mask=inside)
  tl.store(states + row * columns + at, state, mask=inside)


@triton.jit
def sort(x, up, down, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  v = tl.load(x + at)
  tl.store(up + at, tl.sort(v))
  tl.store(down + at, tl.sort(v, descending=True))


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  v = tl.load(x + at, mask=at < n, other=0)
  counts = tl.histogram(v, BINS, mask=at < n)
  tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def atomics(x, floats, largest, smallest, ands, ors, xors, old, n, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  inside = at < n
  v = tl.load(x + at, mask=inside, other=0)
  slot = at % 7
  tl.atomic_add(floats + slot, v.to(tl.float32), mask=inside)
  tl.atomic_max(largest + slot, v, mask=inside)
  tl.atomic_min(smallest + slot, v, mask=inside)
  tl.atomic_and(ands + slot, v, mask=inside)
  tl.atomic_or(ors + slot, v, mask=inside)
  tl.atomic_xor(xors + slot, v, mask=inside)
  before = tl.atomic_add(old, 1)
  tl.store(old + 1 + before, tl.program_id(0))


@triton.jit
def lookback(x, out, flags, sums, n, BLOCK: tl.constexpr):
  """A prefix sum in one pass: each program waits for the sum of those before it. Programs take their number in order of
  arrival, so that a program only ever waits for one that runs."""
  me = tl.atomic_add(flags, 1)
  at = me * BLOCK + tl.arange(0, BLOCK)
  v = tl.load(x + at, mask=at < n, other=0)
  before = 0
  if me > 0:
    while tl.atomic_add(flags + me, 0, sem="acquire") == 0:
      pass
    before = tl.load(sums + me - 1, volatile=True)
  tl.store(sums + me, before + tl.sum(v, 0))
  tl.debug_barrier()
  tl.atomic_xchg(flags + me + 1, 1, sem="release")
  tl.store(out + at, before + tl.cumsum(v, 0), mask=at < n)


@triton.jit
def reductions(x, total, largest, where, least, odd, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
  row, at = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
  v = tl.load(x + row[:, None] * columns + at[None, :], mask=at[None, :] < columns, other=0)
  big, index = tl.max(tl.where(at[None, :] < columns, v, -(2**31)), 1, return_indices=True)
  tl.store(total + row, tl.sum(v, 1))
  tl.store(largest + row, big)
  tl.store(where + row, index)
  tl.store(least + row, tl.argmin(tl.where(at[None, :] < columns, v, 2**31 - 1), 1))
  tl.store(odd + row, tl.xor_sum(v, 1))


@triton.jit
def shapes(x, turned, pairs, evens, gathered, R: tl.constexpr, C: tl.constexpr):
  row, column = tl.arange(0, R), tl.arange(0, C)
  v = tl.load(x + row[:, None] * C + column[None, :])
  tl.store(turned + column[:, None] * R + row[None, :], tl.trans(v))
  flat = tl.reshape(v, (R * C // 2, 2))
  low, high = tl.split(flat)
  half = tl.arange(0, R * C // 2)
  tl.store(evens + half, low)
  tl.store(pairs + tl.arange(0, R * C), tl.interleave(high, low))
  index = (row[:, None] * 5 + column[None, :] * 3) % R
  tl.store(gathered + row[:, None] * C + column[None, :], tl.gather(v, index, 0))


@triton.jit
def mathematics(x, out, n, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  inside = at < n
  v = tl.load(x + at, mask=inside, other=1.0)
  p = tl.abs(v) + 0.5
  tl.store(out + at, tl.exp(v), mask=inside)
  tl.store(out + n + at, tl.log(p), mask=inside)
  tl.store(out + 2 * n + at, tl.sin(v), mask=inside)
  tl.store(out + 3 * n + at, tl.cos(v), mask=inside)
  tl.store(out + 4 * n + at, tl.sqrt_rn(p), mask=inside)
  tl.store(out + 5 * n + at, tl.rsqrt(p), mask=inside)
  tl.store(out + 6 * n + at, tl.erf(v), mask=inside)
  tl.store(out + 7 * n + at, tl.exp2(v), mask=inside)
  tl.store(out + 8 * n + at, tl.log2(p), mask=inside)
  tl.store(out + 9 * n + at, tl.floor(v) + tl.ceil(v * 0.5), mask=inside)
  tl.store(out + 10 * n + at, tl.div_rn(v, p), mask=inside)
  tl.store(out + 11 * n + at, tl.fma(v, p, v), mask=inside)


@triton.jit
def integers(x, y, quotient, remainder, high, wide, n, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  inside = at < n
  a, b = tl.load(x + at, mask=inside, other=1), tl.load(y + at, mask=inside, other=1)
  tl.store(quotient + at, a // b, mask=inside)
  tl.store(remainder + at, a % b, mask=inside)
  tl.store(high + at, tl.umulhi(a.to(tl.uint32, bitcast=True), b.to(tl.uint32, bitcast=True)), mask=inside)
  long = a.to(tl.int64) * 1000003 * b.to(tl.int64)
  tl.store(wide + at, long // (b.to(tl.int64) * 7 + 1) + (long >> 3 ^ long % 11), mask=inside)


@triton.jit
def conversions(x, half, brain, e4, e5, back, n, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  inside = at < n
  v = tl.load(x + at, mask=inside, other=0.0)
  tl.store(half + at, v.to(tl.float16), mask=inside)
  tl.store(brain + at, v.to(tl.bfloat16), mask=inside)
  small, tiny = v.to(e4.dtype.element_ty), v.to(e5.dtype.element_ty)
  tl.store(e4 + at, small, mask=inside)
  tl.store(e5 + at, tiny, mask=inside)
  tl.store(back + at, small.to(tl.float32) + tiny.to(tl.float32), mask=inside)


@triton.jit
def collatz(x, steps, n, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  v = tl.load(x + at, mask=at < n, other=1)
  count = tl.zeros((BLOCK,), tl.int32)
  while tl.max(v, 0) > 1:
    count += tl.where(v > 1, 1, 0)
    v = tl.where(v > 1, tl.where(v % 2 == 0, v // 2, 3 * v + 1), v)
  tl.store(steps + at, count, mask=at < n)


@triton.jit
def cross_entropy(logits, target, loss, grad, columns, BLOCK: tl.constexpr):
  row, at = tl.program_id(0), tl.arange(0, BLOCK)
  inside = at < columns
  v = tl.load(logits + row * columns + at, mask=inside, other=-float("inf")).to(tl.float32)
  t = tl.load(target + row)
  top = tl.max(v, 0)
  log_sum = top + tl.log(tl.sum(tl.exp(v - top), 0))
  tl.store(loss + row, log_sum - tl.load(logits + row * columns + t).to(tl.float32))
  g = tl.exp(v - log_sum) - tl.where(at == t, 1.0, 0.0)
  tl.store(grad + row * columns + at, g.to(grad.dtype.element_ty), mask=inside)


@triton.jit(noinline=True)
def _twice(t):
  return t + (1 - t) * t


@triton.jit(noinline=True)
def _weight(t, times):
  for _ in range(times):
    t = _twice(t)
  return t


@triton.jit
def calls(x, y, out, n, t, BLOCK: tl.constexpr):
  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
  inside = at < n
  a, b = tl.load(x + at, mask=inside, other=0.0), tl.load(y + at, mask=inside, other=0.0)
  w = _weight(t, tl.program_id(0) + 1)
  tl.store(out + at, a + (b - a) * w, mask=inside)


@triton.jit
def descriptors(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
  """Tiles through tensor descriptors made on the device; the parts of a tile outside read as zero."""
  source = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[BM, BN])
  target = tl.make_tensor_descriptor(out, shape=[rows, columns], strides=[columns, 1], block_shape=[BM, BN])
  i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
  tile = source.load([i, j])
  target.store([i, j], tile * 2 + tl.sum(tl.sum(tile, 1), 0))


@triton.jit
def block_pointers(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
  source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
  total = tl.zeros((BM,), tl.float32)
  for _ in range(0, columns, BN):
    total += tl.sum(tl.load(source, boundary_check=(0, 1), padding_option="zero").to(tl.float32), 1)
    source = tl.advance(source, (0, BN))
  at = tl.program_id(0) * BM + tl.arange(0, BM)
  tl.store(out + at, total, mask=at < rows)


@triton.jit
def batched_matmul(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
  i, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
  x = tl.load(a + i[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
  y = tl.load(b + i[:, None, None] * K * N + k[None, :, None] * N + n[None, None, :])
  tl.store(c + i[:, None, None] * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(x, y))
