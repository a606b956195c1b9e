// Kernels for the PTX emulator's tests. kernels_sm80.ptx and kernels_sm90.ptx are what nvcc made of this file (see make.sh).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <stdio.h>

#define ID (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void add(const float *a, const float *b, float *out, int n) {
  int i = ID;
  if (i < n) out[i] = a[i] + b[i];
}

extern "C" __global__ void collatz(const uint32_t *a, uint32_t *out, int n) {  // loops of different lengths
  int i = ID;
  if (i >= n) return;
  uint32_t x = a[i], steps = 0;
  while (x > 1) {
    if (x & 1) x = 3 * x + 1;
    else x >>= 1;
    steps++;
    if (steps > 500) break;
  }
  out[i] = steps;
}

extern "C" __global__ void choose(const int *a, int *out) {  // a jump table and early returns
  int i = ID, x = a[i];
  switch (x & 7) {
    case 0: out[i] = x * 3; break;
    case 1: out[i] = x / 7; return;
    case 2: out[i] = x % 5 + 2; break;
    case 3: out[i] = -x; break;
    case 4: out[i] = x << 3; return;
    case 5: out[i] = x ^ 0x55; break;
    case 6: out[i] = __popc(x); break;
    default: out[i] = __clz(x);
  }
  out[i] += 1;
}

extern "C" __global__ void reduce(const float *a, float *out, int n) {  // shared memory, barriers, one atomic a block
  __shared__ float s[256];
  int t = threadIdx.x;
  float v = 0;
  for (int i = ID; i < n; i += gridDim.x * blockDim.x) v += a[i];
  s[t] = v;
  __syncthreads();
  for (int k = 128; k; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (!t) atomicAdd(out, s[0]);
}

extern "C" __global__ void warp_sum(const int *a, int *out) {  // shuffles
  int x = a[ID];
  for (int k = 16; k; k >>= 1) x += __shfl_xor_sync(0xffffffff, x, k);
  int y = __shfl_down_sync(0xffffffff, a[ID], 3, 8), z = __shfl_up_sync(0xffffffff, a[ID], 2, 16);
  int w = __shfl_sync(0xffffffff, a[ID], threadIdx.x * 7, 16);
  out[4 * ID] = x;
  out[4 * ID + 1] = y;
  out[4 * ID + 2] = z;
  out[4 * ID + 3] = w;
}

extern "C" __global__ void scan(const int *a, int *out) {  // an inclusive scan of 256 numbers with shuffles
  __shared__ int sums[8];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5, x = a[ID];
  for (int k = 1; k < 32; k <<= 1) {
    int y = __shfl_up_sync(0xffffffff, x, k);
    if (lane >= k) x += y;
  }
  if (lane == 31) sums[warp] = x;
  __syncthreads();
  if (warp == 0 && lane < 8) {
    int s = sums[lane];
    for (int k = 1; k < 8; k <<= 1) {
      int y = __shfl_up_sync(0xff, s, k);
      if (lane >= k) s += y;
    }
    sums[lane] = s;
  }
  __syncthreads();
  out[ID] = x + (warp ? sums[warp - 1] : 0);
}

extern "C" __global__ void histogram(const uint8_t *a, uint32_t *out, int n) {
  __shared__ uint32_t bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = ID; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[a[i] >> 2], 1u);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

extern "C" __global__ void votes(const int *a, uint32_t *out) {
  int x = a[ID];
  uint32_t b = __ballot_sync(0xffffffff, x > 0), m = __match_any_sync(0xffffffff, x & 3);
  int every = __all_sync(0xffffffff, x > -100), some = __any_sync(0xffffffff, x > 90), same;
  __match_all_sync(0xffffffff, x & 64, &same);
  uint32_t active = 0;
  if (x & 1) active = __activemask();
  out[4 * ID] = b;
  out[4 * ID + 1] = m;
  out[4 * ID + 2] = every | some << 1 | same << 2;
  out[4 * ID + 3] = active;
}

extern "C" __global__ void reductions(const int *a, int *out) {
  int x = a[ID];
  out[4 * ID] = __reduce_add_sync(0xffffffff, x);
  out[4 * ID + 1] = __reduce_min_sync(0xffffffff, x);
  out[4 * ID + 2] = (int)__reduce_xor_sync(0xffffffff, (unsigned)x);
  out[4 * ID + 3] = __syncthreads_count(x > 0) | __syncthreads_and(x > -1000) << 16 | __syncthreads_or(x > 1000) << 17;
}

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {  // tiles of 16 x 16
  __shared__ float x[16][16], y[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    x[ty][tx] = a[row * n + k + tx];
    y[ty][tx] = b[(k + ty) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; j++) sum += x[ty][j] * y[j][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void math(const float *a, float *out) {
  int i = ID;
  float x = a[i];
  out[8 * i] = sqrtf(x);
  out[8 * i + 1] = expf(-x);
  out[8 * i + 2] = logf(x);
  out[8 * i + 3] = sinf(x);
  out[8 * i + 4] = __fdividef(1.0f, x);
  out[8 * i + 5] = powf(x, 1.5f);
  out[8 * i + 6] = rsqrtf(x);
  out[8 * i + 7] = tanhf(x);
}

extern "C" __global__ void math64(const double *a, double *out) {
  int i = ID;
  double x = a[i];
  out[6 * i] = sqrt(x);
  out[6 * i + 1] = exp(-x);
  out[6 * i + 2] = log(x);
  out[6 * i + 3] = sin(x * 1e6);
  out[6 * i + 4] = 1.0 / x;
  out[6 * i + 5] = cbrt(x);
}

extern "C" __global__ void directed(const float *a, const float *b, float *out) {
  int i = ID;
  float x = a[i], y = b[i];
  out[8 * i] = __fadd_rz(x, y);
  out[8 * i + 1] = __fadd_ru(x, y);
  out[8 * i + 2] = __fmul_rd(x, y);
  out[8 * i + 3] = __fmaf_rz(x, y, x);
  out[8 * i + 4] = __fdiv_ru(x, y);
  out[8 * i + 5] = __fsqrt_rd(fabsf(x));
  out[8 * i + 6] = __frcp_rz(y);
  out[8 * i + 7] = __saturatef(x);
}

extern "C" __global__ void halves(const __half2 *a, const __half2 *b, __half2 *out) {
  int i = ID;
  out[4 * i] = __hadd2(a[i], b[i]);
  out[4 * i + 1] = __hmul2(a[i], b[i]);
  out[4 * i + 2] = __hfma2(a[i], b[i], a[i]);
  out[4 * i + 3] = __hmax2(a[i], b[i]);
}

extern "C" __global__ void brains(const __nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat162 *out, float *wide) {
  int i = ID;
  out[2 * i] = __hfma2(a[i], b[i], a[i]);
  out[2 * i + 1] = __floats2bfloat162_rn(__low2float(a[i]) * 1.1f, __high2float(b[i]) / 3.0f);
  wide[i] = __bfloat162float(__low2bfloat16(a[i])) + 1.0f;
}

extern "C" __global__ void integers(const int64_t *a, const int64_t *b, int64_t *out) {
  int i = ID;
  int64_t x = a[i], y = b[i];
  int u = (int)x, v = (int)y;
  out[8 * i] = __mul64hi(x, y);
  out[8 * i + 1] = (int64_t)__umul64hi(x, y);
  out[8 * i + 2] = (y ? x / y : 0) + (y ? x % y : 0);
  out[8 * i + 3] = __brev(u) ^ __ffs(v);
  out[8 * i + 4] = __byte_perm(u, v, 0x4725) + (int64_t)__funnelshift_l(u, v, 13);
  out[8 * i + 5] = __sad(u, v, 7) + __usad(u, v, 9) + __mulhi(u, v) + __mul24(u, v);
  out[8 * i + 6] = __dp4a(u, v, 5) + __popcll(x) + __clzll(y) + __brevll(x);
  out[8 * i + 7] = (int64_t)(((__int128)x * y) >> 32);
}

__device__ __noinline__ int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }  // a recursion

extern "C" __global__ void recursive(const int *a, const int *b, int *out) { out[ID] = gcd(a[ID], b[ID]); }

__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int negated(int x) { return -x; }
typedef int (*Function)(int);
__device__ Function functions[3] = {twice, square, negated};

extern "C" __global__ void indirect(const int *a, int *out) { out[ID] = functions[a[ID] % 3](a[ID]); }

extern "C" __global__ void stack(const int *a, int *out, int k) {  // an array that is indexed by a value
  int x[16];
  for (int j = 0; j < 16; j++) x[j] = a[ID] * j;
  for (int j = 0; j < 16; j++) x[(j * k) & 15] += j;
  out[ID] = x[k & 15] + x[(k + 3) & 15];
}

extern "C" __global__ void locks(int *lock, int *count) {  // one lock for all threads of all warps
  for (int done = 0; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *(volatile int *)count += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = 1;
    }
  }
}

extern "C" __global__ void atomics(int *out, unsigned long long *wide, double *sum) {
  int i = ID;
  atomicMin(&out[0], i * 7 % 101 - 50);
  atomicMax(&out[1], i * 7 % 101 - 50);
  atomicAnd(&out[2], ~(1 << (i & 31)));
  atomicOr(&out[3], 1 << (i & 31));
  atomicXor(&out[4], i);
  atomicInc((unsigned *)&out[5], 10);
  atomicDec((unsigned *)&out[6], 10);
  atomicAdd(wide, (unsigned long long)i << 30);
  atomicAdd(sum, (double)i);
}

extern __shared__ float dynamic[];
extern "C" __global__ void reverse(const float *a, float *out) {
  dynamic[threadIdx.x] = a[ID];
  __syncthreads();
  out[ID] = dynamic[blockDim.x - 1 - threadIdx.x];
}

struct Options { float scale; int shift; double offset; };
extern "C" __global__ void structure(const float *a, float *out, Options o) {
  out[ID] = (float)(a[(ID + o.shift) % (gridDim.x * blockDim.x)] * o.scale + o.offset);
}

extern "C" __global__ void vectors(const float4 *a, const double2 *b, float4 *out, double2 *wide) {
  float4 x = a[ID];
  out[ID] = make_float4(x.w, x.z, x.y, x.x);
  double2 y = b[ID];
  wide[ID] = make_double2(y.y, y.x);
}

extern "C" __global__ void hello(int n) { if (threadIdx.x < n) printf("thread %d of %s: %.2f\n", threadIdx.x, "all", threadIdx.x / 4.0); }

extern "C" __global__ void producer(const int *a, int *out) {  // warps that wait for each other at named barriers
  __shared__ int box[32];
  int lane = threadIdx.x & 31;
  for (int k = 0; k < 4; k++) {
    if (threadIdx.x < 32) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      box[lane] = a[k * 32 + lane] * 2;
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
      out[k * 32 + lane] = box[lane] + 1;
    }
  }
}
