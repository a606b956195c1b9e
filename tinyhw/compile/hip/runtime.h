// What kernels in HIP C++ find without ROCm: qualifiers, places in the grid, barriers, atomics, what lanes exchange,
// and mathematics, as far as clang's own builtins go. It is included before the first line of a source.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef _Float16 half;
typedef _Float16 __half;

#define TINYHW_DEVICE static inline __attribute__((device, always_inline))

// Vectors of two and four, whose lanes are .x to .w.
#define TINYHW_VECTORS(kind, name) \
  typedef kind name##2 __attribute__((ext_vector_type(2))); \
  typedef kind name##4 __attribute__((ext_vector_type(4))); \
  TINYHW_DEVICE name##2 make_##name##2(kind x, kind y) { return name##2{x, y}; } \
  TINYHW_DEVICE name##4 make_##name##4(kind x, kind y, kind z, kind w) { return name##4{x, y, z, w}; }
TINYHW_VECTORS(signed char, char)
TINYHW_VECTORS(unsigned char, uchar)
TINYHW_VECTORS(short, short)
TINYHW_VECTORS(unsigned short, ushort)
TINYHW_VECTORS(int, int)
TINYHW_VECTORS(unsigned int, uint)
TINYHW_VECTORS(long, long)
TINYHW_VECTORS(unsigned long, ulong)
TINYHW_VECTORS(float, float)
TINYHW_VECTORS(double, double)

// ---- the grid

struct dim3 {
  unsigned x, y, z;
  constexpr __attribute__((host, device)) dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
typedef struct uint3 { unsigned x, y, z; } uint3;

namespace tinyhw {
// The hidden arguments: workgroups each way, and behind these the work-items of one.
TINYHW_DEVICE unsigned groups(int axis) {
  return ((const __attribute__((address_space(4))) unsigned *)__builtin_amdgcn_implicitarg_ptr())[axis];
}
#define TINYHW_PLACE(name, X, Y, Z) \
  struct name { \
    __declspec(property(get = of_x)) unsigned x; \
    __declspec(property(get = of_y)) unsigned y; \
    __declspec(property(get = of_z)) unsigned z; \
    __attribute__((device, always_inline)) unsigned of_x() const { return X; } \
    __attribute__((device, always_inline)) unsigned of_y() const { return Y; } \
    __attribute__((device, always_inline)) unsigned of_z() const { return Z; } \
    __attribute__((device, always_inline)) operator dim3() const { return dim3(X, Y, Z); } \
    __attribute__((device, always_inline)) operator uint3() const { return uint3{X, Y, Z}; } \
  };
TINYHW_PLACE(Thread, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
             __builtin_amdgcn_workitem_id_z())
TINYHW_PLACE(Block, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
             __builtin_amdgcn_workgroup_id_z())
TINYHW_PLACE(BlockSize, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
             __builtin_amdgcn_workgroup_size_z())
TINYHW_PLACE(GridSize, groups(0), groups(1), groups(2))
}
static constexpr __device__ tinyhw::Thread threadIdx{};
static constexpr __device__ tinyhw::Block blockIdx{};
static constexpr __device__ tinyhw::BlockSize blockDim{};
static constexpr __device__ tinyhw::GridSize gridDim{};
#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z

// ---- waiting for each other

TINYHW_DEVICE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
TINYHW_DEVICE void __syncwarp(unsigned long = ~0ul) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
TINYHW_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
TINYHW_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
TINYHW_DEVICE void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

#define TINYHW_SCOPES(name, how, kind) \
  TINYHW_DEVICE kind name(kind *p, kind v) { return how(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); } \
  TINYHW_DEVICE kind name##_block(kind *p, kind v) { \
    return how(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); } \
  TINYHW_DEVICE kind name##_system(kind *p, kind v) { \
    return how(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); }
#define TINYHW_WHOLE(name, how) \
  TINYHW_SCOPES(name, how, int) TINYHW_SCOPES(name, how, unsigned) \
  TINYHW_SCOPES(name, how, long long) TINYHW_SCOPES(name, how, unsigned long long)
#define TINYHW_ALL(name, how) \
  TINYHW_WHOLE(name, how) TINYHW_SCOPES(name, how, float) TINYHW_SCOPES(name, how, double)
TINYHW_ALL(atomicAdd, __hip_atomic_fetch_add)
TINYHW_ALL(atomicMax, __hip_atomic_fetch_max)
TINYHW_ALL(atomicMin, __hip_atomic_fetch_min)
TINYHW_ALL(atomicExch, __hip_atomic_exchange)
TINYHW_WHOLE(atomicAnd, __hip_atomic_fetch_and)
TINYHW_WHOLE(atomicOr, __hip_atomic_fetch_or)
TINYHW_WHOLE(atomicXor, __hip_atomic_fetch_xor)
template <typename T> TINYHW_DEVICE T atomicSub(T *p, T v) { return atomicAdd(p, (T)-v); }
template <typename T> TINYHW_DEVICE T atomicCAS(T *p, T expected, T wanted) {
  __hip_atomic_compare_exchange_strong(p, &expected, wanted, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}

// ---- lanes of a wave

#define warpSize ((int)__builtin_amdgcn_wavefrontsize())
TINYHW_DEVICE unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
TINYHW_DEVICE unsigned long __ballot(int p) {
#if __AMDGCN_WAVEFRONT_SIZE == 32
  return __builtin_amdgcn_ballot_w32(p != 0);
#else
  return __builtin_amdgcn_ballot_w64(p != 0);
#endif
}
TINYHW_DEVICE unsigned long __activemask() { return __ballot(1); }
TINYHW_DEVICE int __any(int p) { return __ballot(p) != 0; }
TINYHW_DEVICE int __all(int p) { return __ballot(!p) == 0; }

namespace tinyhw {
template <typename T> TINYHW_DEVICE T of_lane(T v, int lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "lanes exchange values of 4 or 8 bytes");
  union { T value; int words[sizeof(T) / 4]; } u;
  u.value = v;
  for (unsigned i = 0; i < sizeof(T) / 4; i++) u.words[i] = __builtin_amdgcn_ds_bpermute(lane << 2, u.words[i]);
  return u.value;
}
}
template <typename T> TINYHW_DEVICE T __shfl(T v, int from, int width = warpSize) {
  return tinyhw::of_lane(v, ((int)__lane_id() & -width) | (from & (width - 1)));
}
template <typename T> TINYHW_DEVICE T __shfl_xor(T v, int mask, int width = warpSize) {
  int self = __lane_id(), from = self ^ mask;
  return tinyhw::of_lane(v, from >= ((self + width) & -width) ? self : from);
}
template <typename T> TINYHW_DEVICE T __shfl_up(T v, unsigned by, int width = warpSize) {
  int self = __lane_id(), from = self - (int)by;
  return tinyhw::of_lane(v, from < (self & -width) ? self : from);
}
template <typename T> TINYHW_DEVICE T __shfl_down(T v, unsigned by, int width = warpSize) {
  int self = __lane_id();
  return tinyhw::of_lane(v, (self & (width - 1)) + (int)by >= width ? self : self + (int)by);
}
// With a mask of the lanes that take part, which come together here.
template <typename T> TINYHW_DEVICE T __shfl_sync(unsigned long, T v, int from, int width = warpSize) {
  return __shfl(v, from, width);
}
template <typename T> TINYHW_DEVICE T __shfl_xor_sync(unsigned long, T v, int mask, int width = warpSize) {
  return __shfl_xor(v, mask, width);
}
template <typename T> TINYHW_DEVICE T __shfl_up_sync(unsigned long, T v, unsigned by, int width = warpSize) {
  return __shfl_up(v, by, width);
}
template <typename T> TINYHW_DEVICE T __shfl_down_sync(unsigned long, T v, unsigned by, int width = warpSize) {
  return __shfl_down(v, by, width);
}
TINYHW_DEVICE unsigned long __ballot_sync(unsigned long mask, int p) { return __ballot(p) & mask; }
TINYHW_DEVICE int __any_sync(unsigned long mask, int p) { return (__ballot(p) & mask) != 0; }
TINYHW_DEVICE int __all_sync(unsigned long mask, int p) { return (__ballot(!p) & mask) == 0; }

// ---- mathematics

#define TINYHW_MATH1(name) \
  TINYHW_DEVICE float name##f(float x) { return __builtin_##name##f(x); } \
  TINYHW_DEVICE float name(float x) { return __builtin_##name##f(x); } \
  TINYHW_DEVICE double name(double x) { return __builtin_##name(x); }
#define TINYHW_MATH2(name) \
  TINYHW_DEVICE float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  TINYHW_DEVICE float name(float x, float y) { return __builtin_##name##f(x, y); } \
  TINYHW_DEVICE double name(double x, double y) { return __builtin_##name(x, y); }
TINYHW_MATH1(sqrt)
TINYHW_MATH1(fabs)
TINYHW_MATH1(floor)
TINYHW_MATH1(ceil)
TINYHW_MATH1(trunc)
TINYHW_MATH1(rint)
TINYHW_MATH1(nearbyint)
TINYHW_MATH1(round)
TINYHW_MATH2(fmin)
TINYHW_MATH2(fmax)
TINYHW_MATH2(fmod)
TINYHW_MATH2(copysign)
TINYHW_DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TINYHW_DEVICE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TINYHW_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
TINYHW_DEVICE float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
TINYHW_DEVICE double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
TINYHW_DEVICE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
TINYHW_DEVICE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
// Of single precision alone: the chip computes these, and double precision is a library's.
#define TINYHW_SINGLE(name) \
  TINYHW_DEVICE float name##f(float x) { return __builtin_##name##f(x); } \
  TINYHW_DEVICE float name(float x) { return __builtin_##name##f(x); }
TINYHW_SINGLE(exp)
TINYHW_SINGLE(exp2)
TINYHW_SINGLE(exp10)
TINYHW_SINGLE(log)
TINYHW_SINGLE(log2)
TINYHW_SINGLE(log10)
TINYHW_DEVICE float __expf(float x) { return __builtin_expf(x); }
TINYHW_DEVICE float __logf(float x) { return __builtin_logf(x); }
TINYHW_DEVICE float __sinf(float x) { return __builtin_sinf(x); }
TINYHW_DEVICE float __cosf(float x) { return __builtin_cosf(x); }
TINYHW_DEVICE bool isnan(double x) { return __builtin_isnan(x); }
TINYHW_DEVICE bool isinf(double x) { return __builtin_isinf(x); }
TINYHW_DEVICE bool isfinite(double x) { return __builtin_isfinite(x); }
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

#define TINYHW_EXTREMES(kind) \
  TINYHW_DEVICE kind min(kind a, kind b) { return b < a ? b : a; } \
  TINYHW_DEVICE kind max(kind a, kind b) { return a < b ? b : a; }
TINYHW_EXTREMES(int)
TINYHW_EXTREMES(unsigned)
TINYHW_EXTREMES(long)
TINYHW_EXTREMES(unsigned long)
TINYHW_EXTREMES(long long)
TINYHW_EXTREMES(unsigned long long)
TINYHW_DEVICE float min(float a, float b) { return __builtin_fminf(a, b); }
TINYHW_DEVICE float max(float a, float b) { return __builtin_fmaxf(a, b); }
TINYHW_DEVICE double min(double a, double b) { return __builtin_fmin(a, b); }
TINYHW_DEVICE double max(double a, double b) { return __builtin_fmax(a, b); }
TINYHW_DEVICE int abs(int x) { return x < 0 ? -x : x; }
TINYHW_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
TINYHW_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
TINYHW_DEVICE int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
TINYHW_DEVICE int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
TINYHW_DEVICE int __ffs(unsigned x) { return __builtin_ffs(x); }
TINYHW_DEVICE int __ffsll(unsigned long long x) { return __builtin_ffsll(x); }
TINYHW_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
TINYHW_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
TINYHW_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
TINYHW_DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
TINYHW_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
TINYHW_DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
