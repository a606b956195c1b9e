/* The corpus's kernels in the C family: C, C++, OpenCL C and HIP, each by its own words for memory and atomics. A
   kernel takes the arguments of the case that has its name (cases.py). */
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;

#if defined(__OPENCL_C_VERSION__)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define KERNEL __kernel
#define GLOBAL __global
#define SHARED(type, name, size) __local type name[size]
#define DEVICE static
typedef half f16;
#define ATOMIC(op, p, v) __opencl_atomic_##op((volatile __global atomic_int *)(p), v, memory_order_seq_cst, \
                                              memory_scope_device)
#define ADD_FLOAT(p, v) __opencl_atomic_fetch_add((volatile __global atomic_float *)(p), v, memory_order_seq_cst, \
                                                  memory_scope_device)
#define LOCAL_ADD(p, v) __opencl_atomic_fetch_add((volatile __local atomic_int *)(p), v, memory_order_relaxed, \
                                                  memory_scope_work_group)
#define ZERO_TO_ONE(p, old) __opencl_atomic_compare_exchange_strong((volatile __global atomic_int *)(p), old, 1, \
                              memory_order_seq_cst, memory_order_seq_cst, memory_scope_device)
#define LOAD(p) __opencl_atomic_load((volatile __global atomic_int *)(p), memory_order_acquire, memory_scope_device)
#elif defined(__HIP__)
#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 256)))
#define GLOBAL
#define SHARED(type, name, size) __attribute__((shared)) type name[size]
#define DEVICE static __attribute__((device))
typedef _Float16 f16;
#define ATOMIC(op, p, v) HIP_##op(p, v)
#define HIP_fetch_add(p, v) __hip_atomic_fetch_add(p, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT)
#define HIP_fetch_max(p, v) __hip_atomic_fetch_max(p, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT)
#define HIP_fetch_min(p, v) __hip_atomic_fetch_min(p, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT)
#define HIP_fetch_and(p, v) __hip_atomic_fetch_and(p, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT)
#define HIP_fetch_or(p, v) __hip_atomic_fetch_or(p, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT)
#define HIP_fetch_xor(p, v) __hip_atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT)
#define HIP_exchange(p, v) __hip_atomic_exchange(p, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT)
#define LOCAL_ADD(p, v) __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)
#define ZERO_TO_ONE(p, old) __hip_atomic_compare_exchange_strong(p, old, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST, \
                                                                 __HIP_MEMORY_SCOPE_AGENT)
#define LOAD(p) __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)
#else
#ifdef __cplusplus
#define KERNEL extern "C" __attribute__((amdgpu_kernel, visibility("protected")))
#else
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#endif
#define GLOBAL __attribute__((address_space(1)))
#define SHARED(type, name, size) static __attribute__((address_space(3), loader_uninitialized)) type name[size]
#define DEVICE static
typedef _Float16 f16;
#define ATOMIC(op, p, v) PLAIN_##op(p, v)
#define PLAIN_fetch_add(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define PLAIN_fetch_max(p, v) __atomic_fetch_max(p, v, __ATOMIC_SEQ_CST)
#define PLAIN_fetch_min(p, v) __atomic_fetch_min(p, v, __ATOMIC_SEQ_CST)
#define PLAIN_fetch_and(p, v) __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST)
#define PLAIN_fetch_or(p, v) __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST)
#define PLAIN_fetch_xor(p, v) __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST)
#define PLAIN_exchange(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define LOCAL_ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define ZERO_TO_ONE(p, old) __atomic_compare_exchange_n(p, old, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#endif

#ifndef ADD_FLOAT
#define ADD_FLOAT(p, v) ATOMIC(fetch_add, p, v)
#endif
#define NOINLINE DEVICE __attribute__((noinline))
#define ITEM ((int)__builtin_amdgcn_workitem_id_x())
#define GROUP ((int)__builtin_amdgcn_workgroup_id_x())
#define ITEMS 64
#define AT (GROUP * ITEMS + ITEM)
#define BARRIER() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
                   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
#define LOG2E 1.44269504f
#define MINUS_INFINITY (-__builtin_inff())

/* All 64 items give `value` and get the combination of all in scratch[0]. */
#define COMBINE(scratch, value, combine) do { \
    scratch[ITEM] = (value); \
    BARRIER(); \
    for (int step = ITEMS / 2; step > 0; step /= 2) { \
      if (ITEM < step) scratch[ITEM] = combine(scratch[ITEM], scratch[ITEM + step]); \
      BARRIER(); \
    } \
  } while (0)
#define SUM(a, b) ((a) + (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define XOR(a, b) ((a) ^ (b))

KERNEL void add(GLOBAL const float *x, GLOBAL const float *y, GLOBAL float *out, int n) {
  if (AT < n) out[AT] = x[AT] + y[AT];
}

#ifndef OWN_SOFTMAX
KERNEL void softmax(GLOBAL const float *x, GLOBAL float *out, int columns) {
  SHARED(float, scratch, ITEMS);
  GLOBAL const float *row = x + GROUP * columns;
  float top = MINUS_INFINITY, sum = 0;
  for (int k = ITEM; k < columns; k += ITEMS) top = MAX(top, row[k]);
  COMBINE(scratch, top, MAX);
  top = scratch[0];
  BARRIER();
  for (int k = ITEM; k < columns; k += ITEMS) sum += __builtin_exp2f((row[k] - top) * LOG2E);
  COMBINE(scratch, sum, SUM);
  for (int k = ITEM; k < columns; k += ITEMS)
    out[GROUP * columns + k] = __builtin_exp2f((row[k] - top) * LOG2E) / scratch[0];
}
#endif

KERNEL void layer_norm(GLOBAL const f16 *x, GLOBAL const float *weight, GLOBAL const float *bias, GLOBAL f16 *out,
                       GLOBAL float *mean, GLOBAL float *rstd, int columns, float eps) {
  SHARED(float, scratch, ITEMS);
  GLOBAL const f16 *row = x + GROUP * columns;
  float sum = 0, squares = 0;
  for (int k = ITEM; k < columns; k += ITEMS) sum += (float)row[k];
  COMBINE(scratch, sum, SUM);
  float m = scratch[0] / columns;
  BARRIER();
  for (int k = ITEM; k < columns; k += ITEMS) squares += ((float)row[k] - m) * ((float)row[k] - m);
  COMBINE(scratch, squares, SUM);
  float r = 1 / __builtin_sqrtf(scratch[0] / columns + eps);
  if (ITEM == 0) mean[GROUP] = m, rstd[GROUP] = r;
  for (int k = ITEM; k < columns; k += ITEMS)
    out[GROUP * columns + k] = (f16)(((float)row[k] - m) * r * weight[k] + bias[k]);
}

KERNEL void layer_norm_backward(GLOBAL const float *grad, GLOBAL const float *x, GLOBAL const float *weight,
                                GLOBAL const float *mean, GLOBAL const float *rstd, GLOBAL float *dx,
                                GLOBAL float *dweight, GLOBAL float *dbias, GLOBAL int *lock, int columns) {
  SHARED(float, scratch, ITEMS);
  int at = GROUP * columns + ITEM, inside = ITEM < columns;
  float g = inside ? grad[at] : 0, hat = inside ? (x[at] - mean[GROUP]) * rstd[GROUP] : 0;
  float wg = inside ? g * weight[ITEM] : 0;
  COMBINE(scratch, hat * wg, SUM);
  float c1 = scratch[0] / columns;
  BARRIER();
  COMBINE(scratch, wg, SUM);
  float c2 = scratch[0] / columns;
  if (inside) dx[at] = (wg - (hat * c1 + c2)) * rstd[GROUP];
  if (ITEM == 0) {
    int zero = 0;
    while (!ZERO_TO_ONE(lock, &zero)) zero = 0;
  }
  BARRIER();
  if (inside) {
    ADD_FLOAT(dbias + ITEM, g);
    ADD_FLOAT(dweight + ITEM, g * hat);
  }
  BARRIER();
  if (ITEM == 0) ATOMIC(exchange, lock, 0);
}

KERNEL void dropout(GLOBAL const float *x, GLOBAL float *out, int n, float p, int seed) {
  if (AT >= n) return;
  u32 c[4] = {(u32)AT, 0, 0, 0}, k0 = seed, k1 = seed < 0 ? ~0u : 0;
  for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    u64 a = 0xD2511F53ul * c[0], b = 0xCD9E8D57ul * c[2];
    c[0] = (u32)(b >> 32) ^ c[1] ^ k0;
    c[2] = (u32)(a >> 32) ^ c[3] ^ k1;
    c[1] = (u32)b, c[3] = (u32)a;
  }
  int bits = (int)c[0];
  float r = (float)(bits < 0 ? -bits - 1 : bits) * 4.6566127342e-10f;
  out[AT] = r > p ? x[AT] / (1 - p) : 0;
}

#define MATMUL(name, in, out_type, sum_type) \
  KERNEL void name(GLOBAL const in *a, GLOBAL const in *b, GLOBAL out_type *c, int M, int N, int K) { \
    SHARED(in, left, 8 * 9); \
    SHARED(in, right, 8 * 8); \
    int i = ITEM / 8, j = ITEM % 8, wide = (N + 7) / 8, row = GROUP / wide * 8 + i, column = GROUP % wide * 8 + j; \
    sum_type sum = 0; \
    for (int k = 0; k < K; k += 8) { \
      left[i * 9 + j] = row < M && k + j < K ? a[row * K + k + j] : (in)0; \
      right[i * 8 + j] = k + i < K && column < N ? b[(k + i) * N + column] : (in)0; \
      BARRIER(); \
      for (int d = 0; d < 8; d++) sum += (sum_type)left[i * 9 + d] * (sum_type)right[d * 8 + j]; \
      BARRIER(); \
    } \
    if (row < M && column < N) c[row * N + column] = (out_type)sum; \
  }
MATMUL(matmul_half, f16, float, float)
MATMUL(matmul_float, float, float, float)
MATMUL(matmul_double, double, double, double)
MATMUL(matmul_int8, signed char, int, int)

KERNEL void attention(GLOBAL const f16 *q, GLOBAL const f16 *k, GLOBAL const f16 *v, GLOBAL float *out,
                      GLOBAL float *lse, int length, float scale) {
  int head = GROUP, row = ITEM;
  if (row >= length) return;
  float total[32], top = MINUS_INFINITY, norm = 0;
  for (int d = 0; d < 32; d++) total[d] = 0;
  GLOBAL const f16 *x = q + (head * length + row) * 32;
  for (int j = 0; j < length; j++) {
    GLOBAL const f16 *key = k + (head * length + j) * 32, *value = v + (head * length + j) * 32;
    float s = 0;
    for (int d = 0; d < 32; d++) s += (float)x[d] * (float)key[d];
    s *= scale;
    float now = MAX(top, s), shrink = __builtin_exp2f((top - now) * LOG2E), p = __builtin_exp2f((s - now) * LOG2E);
    norm = norm * shrink + p;
    for (int d = 0; d < 32; d++) total[d] = total[d] * shrink + p * (float)value[d];
    top = now;
  }
  for (int d = 0; d < 32; d++) out[(head * length + row) * 32 + d] = total[d] / norm;
  lse[head * length + row] = top + __builtin_log2f(norm) / LOG2E;
}

KERNEL void scan(GLOBAL const float *x, GLOBAL const float *gate, GLOBAL float *sums, GLOBAL float *products,
                 GLOBAL float *states, int columns) {
  SHARED(float, partial, 128);
  int row = GROUP * columns;
  for (int k = ITEM; k < 128; k += ITEMS) partial[k] = k < columns ? x[row + k] : 0;
  BARRIER();
  for (int step = 1; step < 128; step *= 2) {
    float low = ITEM >= step ? partial[ITEM - step] : 0, high = ITEM + 64 >= step ? partial[ITEM + 64 - step] : 0;
    BARRIER();
    partial[ITEM] += low;
    partial[ITEM + 64] += high;
    BARRIER();
  }
  for (int k = ITEM; k < columns; k += ITEMS) sums[row + k] = partial[k];
  if (ITEM == 0) {
    float state = 0;
    for (int k = 0; k < columns; k++) states[row + k] = state = state * gate[row + k] + x[row + k];
  } else if (ITEM == 1) {
    float product = 1;
    for (int k = columns - 1; k >= 0; k--) products[row + k] = product *= gate[row + k];
  }
}

KERNEL void sort(GLOBAL const int *x, GLOBAL int *up, GLOBAL int *down) {
  SHARED(int, v, ITEMS);
  v[ITEM] = x[AT];
  BARRIER();
  for (int run = 2; run <= ITEMS; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      int other = ITEM ^ step;
      if (other > ITEM && (v[ITEM] > v[other]) == !(ITEM & run)) {
        int t = v[ITEM];
        v[ITEM] = v[other];
        v[other] = t;
      }
      BARRIER();
    }
  up[AT] = v[ITEM];
  down[AT] = v[ITEMS - 1 - ITEM];
}

KERNEL void histogram(GLOBAL const int *x, GLOBAL int *out, int n) {
  SHARED(int, bins, 32);
  if (ITEM < 32) bins[ITEM] = 0;
  BARRIER();
  for (int k = AT; k < n; k += 3 * ITEMS) LOCAL_ADD(bins + x[k], 1);
  BARRIER();
  if (ITEM < 32) ATOMIC(fetch_add, out + ITEM, bins[ITEM]);
}

KERNEL void atomics(GLOBAL const int *x, GLOBAL float *floats, GLOBAL int *largest, GLOBAL int *smallest,
                    GLOBAL int *ands, GLOBAL int *ors, GLOBAL int *xors, GLOBAL int *old, int n) {
  if (ITEM == 0 && GROUP < 3) old[1 + ATOMIC(fetch_add, old, 1)] = GROUP;
  if (AT >= n) return;
  int v = x[AT], slot = AT % 7;
  ADD_FLOAT(floats + slot, (float)v);
  ATOMIC(fetch_max, largest + slot, v);
  ATOMIC(fetch_min, smallest + slot, v);
  ATOMIC(fetch_and, ands + slot, v);
  ATOMIC(fetch_or, ors + slot, v);
  ATOMIC(fetch_xor, xors + slot, v);
}

KERNEL void lookback(GLOBAL const int *x, GLOBAL int *out, GLOBAL int *flags, GLOBAL int *sums, int n) {
  SHARED(int, part, ITEMS);
  SHARED(int, order, 2);
  if (ITEM == 0) order[0] = ATOMIC(fetch_add, flags, 1);
  BARRIER();
  int me = order[0], at = me * ITEMS + ITEM;
  part[ITEM] = at < n ? x[at] : 0;
  BARRIER();
  for (int step = 1; step < ITEMS; step *= 2) {
    int before = ITEM >= step ? part[ITEM - step] : 0;
    BARRIER();
    part[ITEM] += before;
    BARRIER();
  }
  if (ITEM == 0) {
    int before = 0;
    if (me > 0) {
      while (!LOAD(flags + me)) {}
      before = LOAD(sums + me - 1);
    }
    ATOMIC(exchange, sums + me, before + part[ITEMS - 1]);
    ATOMIC(exchange, flags + me + 1, 1);
    order[1] = before;
  }
  BARRIER();
  if (at < n) out[at] = order[1] + part[ITEM];
}

#ifndef OWN_REDUCTIONS
KERNEL void reductions(GLOBAL const int *x, GLOBAL int *total, GLOBAL int *largest, GLOBAL int *where,
                       GLOBAL int *least, GLOBAL int *odd, int columns) {
  SHARED(int, scratch, ITEMS);
  SHARED(i64, keys, ITEMS);
  int inside = ITEM < columns, v = inside ? x[GROUP * columns + ITEM] : 0;
  COMBINE(scratch, v, SUM);
  if (ITEM == 0) total[GROUP] = scratch[0];
  BARRIER();
  COMBINE(scratch, v, XOR);
  if (ITEM == 0) odd[GROUP] = scratch[0];
  COMBINE(keys, inside ? ((i64)v << 32) - ITEM : -(1l << 62), MAX);
  if (ITEM == 0) {
    int index = (int)(-(unsigned)keys[0]);
    where[GROUP] = index;
    largest[GROUP] = x[GROUP * columns + index];
  }
  BARRIER();
  COMBINE(keys, inside ? ((i64)v << 32) + ITEM : 1l << 62, MIN);
  if (ITEM == 0) least[GROUP] = (int)keys[0];
}
#endif

KERNEL void shapes(GLOBAL const float *x, GLOBAL float *turned, GLOBAL float *pairs, GLOBAL float *evens,
                   GLOBAL float *gathered) {
  int row = AT / 32, column = AT % 32;
  float v = x[AT];
  turned[column * 16 + row] = v;
  pairs[AT ^ 1] = v;
  if (AT % 2 == 0) evens[AT / 2] = v;
  gathered[AT] = x[(row * 5 + column * 3) % 16 * 32 + column];
}

KERNEL void integers(GLOBAL const int *x, GLOBAL const int *y, GLOBAL int *quotient, GLOBAL int *remainder,
                     GLOBAL u32 *high, GLOBAL i64 *wide, int n) {
  if (AT >= n) return;
  int a = x[AT], b = y[AT];
  quotient[AT] = a / b;
  remainder[AT] = a % b;
  high[AT] = (u32)((u64)(u32)a * (u32)b >> 32);
  i64 l = (i64)a * 1000003 * b;
  wide[AT] = l / ((i64)b * 7 + 1) + (l >> 3 ^ l % 11);
}

KERNEL void collatz(GLOBAL const int *x, GLOBAL int *steps, int n) {
  if (AT >= n) return;
  int v = x[AT], count = 0;
  for (; v > 1; count++) v = v & 1 ? 3 * v + 1 : v / 2;
  steps[AT] = count;
}

KERNEL void cross_entropy(GLOBAL const f16 *logits, GLOBAL const i64 *target, GLOBAL float *loss, GLOBAL f16 *grad,
                          int columns) {
  SHARED(float, scratch, ITEMS);
  GLOBAL const f16 *row = logits + GROUP * columns;
  float top = MINUS_INFINITY, sum = 0;
  for (int k = ITEM; k < columns; k += ITEMS) top = MAX(top, (float)row[k]);
  COMBINE(scratch, top, MAX);
  top = scratch[0];
  BARRIER();
  for (int k = ITEM; k < columns; k += ITEMS) sum += __builtin_exp2f(((float)row[k] - top) * LOG2E);
  COMBINE(scratch, sum, SUM);
  float log_sum = top + __builtin_log2f(scratch[0]) / LOG2E;
  int t = (int)target[GROUP];
  if (ITEM == 0) loss[GROUP] = log_sum - (float)row[t];
  for (int k = ITEM; k < columns; k += ITEMS)
    grad[GROUP * columns + k] = (f16)(__builtin_exp2f(((float)row[k] - log_sum) * LOG2E) - (k == t ? 1 : 0));
}

#ifndef OWN_CALLS
NOINLINE float twice(float t) { return t + (1 - t) * t; }
NOINLINE float weight(float t, int times) { return times ? weight(twice(t), times - 1) : t; }

KERNEL void calls(GLOBAL const float *x, GLOBAL const float *y, GLOBAL float *out, int n, float t) {
  if (AT < n) out[AT] = x[AT] + (y[AT] - x[AT]) * weight(t, AT / 128 + 1);
}
#endif
