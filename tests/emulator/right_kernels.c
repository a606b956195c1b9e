// Right kernels, for the checks to find nothing in: every kernel takes two arrays of 1024 dwords (numbers from 0 on, of
// which the first 256 are 1 to 256) and one of 1024 results, and runs as 4 workgroups of 64 work-items unless its name
// ends in _N: then as workgroups of N.
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((amdgpu_kernel)) void
#define ARGS (GLOBAL unsigned *a, GLOBAL unsigned *b, GLOBAL unsigned *o)
#define SHARED static __attribute__((address_space(3), loader_uninitialized))
#define ID __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define SIZE ((unsigned)__builtin_amdgcn_workgroup_size_x())
#define GID (GROUP * SIZE + ID)
#define F(p) ((GLOBAL float *)(p))
#define L(p) ((GLOBAL long *)(p))
#define BARRIER() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
                   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
typedef _Float16 half;
typedef half half2 __attribute__((ext_vector_type(2)));
typedef half half4 __attribute__((ext_vector_type(4)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef short short2 __attribute__((ext_vector_type(2)));
typedef unsigned char uchar4 __attribute__((ext_vector_type(4)));
typedef unsigned uint4 __attribute__((ext_vector_type(4)));

SHARED unsigned lds[256];
SHARED unsigned tile[16][17];

// ---- indices and integers
KERNEL identity ARGS { o[GID] = GID; }
KERNEL copy ARGS { o[GID] = a[GID]; }
KERNEL add ARGS { o[GID] = a[GID] + b[GID]; }
KERNEL tail ARGS { if (GID < 200) o[GID] = a[GID] * 3; }
KERNEL strided ARGS { for (unsigned k = GID; k < 1024; k += 4 * SIZE) o[k] = a[k] - b[k]; }
KERNEL divide ARGS { o[GID] = a[GID] / (b[GID] % 7 + 1) + (int)a[GID] % -13; }
KERNEL divide64 ARGS { L(o)[GID] = L(a)[GID] / (long)(b[GID] + 1) + (unsigned long)L(a)[GID] % (b[GID] + 3); }
KERNEL long_sum ARGS { long t = GID; for (int k = 0; k < 7; k++) t = t * 0x1234567 + L(a)[k]; L(o)[GID] = t; }
KERNEL multiply_high ARGS { o[GID] = (unsigned long)a[GID] * b[GID] * GID >> 32; }
KERNEL shifts64 ARGS { L(o)[GID] = (L(a)[GID] << (GID & 63)) | ((unsigned long)L(b)[GID] >> (63 - (GID & 63))); }
KERNEL bits ARGS { unsigned x = a[GID] ^ GID << 16; o[GID] = __builtin_popcount(x) + __builtin_clz(x | 1) * 64
                   + __builtin_ctz(x | 0x80000000) * 4096 + (__builtin_bitreverse32(x) >> 13 & 0x3FF); }
KERNEL bytes ARGS { uchar4 v = ((GLOBAL uchar4 *)a)[GID]; v = v + (uchar4)(1, 2, 3, 4); ((GLOBAL uchar4 *)o)[GID] = v.wzyx; }
KERNEL shorts ARGS { short2 v = ((GLOBAL short2 *)a)[GID]; v = v * (short)3 + (short2)(GID, 1); ((GLOBAL short2 *)o)[GID] = v; }
KERNEL chars ARGS { GLOBAL signed char *p = (GLOBAL signed char *)a; GLOBAL signed char *q = (GLOBAL signed char *)o;
                    q[GID] = p[GID] * 3 - p[GID + 1]; }
KERNEL hash ARGS { unsigned x = GID; for (int k = 0; k < 5; k++) { x ^= x >> 16; x *= 0x7feb352d; x = x << 7 | x >> 25; } o[GID] = x; }
KERNEL collatz ARGS { unsigned n = GID + 1, steps = 0; while (n != 1 && steps < 40) { n = n & 1 ? 3 * n + 1 : n / 2; steps++; }
                      o[GID] = steps; }
KERNEL search ARGS { unsigned low = 0, high = 256; while (low < high) { unsigned at = (low + high) / 2;
                     if (a[at] < GID) low = at + 1; else high = at; } o[GID] = low; }
KERNEL choose ARGS { unsigned v = a[GID]; switch (v & 7) { case 0: v += 5; break; case 1: v *= 9; break; case 3: v = ~v; break;
                     case 6: return; default: v -= 1; } o[GID] = v; }
KERNEL matrix_index ARGS { unsigned r = GID / 12, c = GID % 12; o[r * 12 + c] = a[c * 21 + r]; }

// ---- floats
KERNEL axpy ARGS { F(o)[GID] = 2.5f * (float)a[GID] + (float)b[GID]; }
KERNEL quotient ARGS { F(o)[GID] = (float)a[GID] / (float)(b[GID] + 1); }
KERNEL root ARGS { F(o)[GID] = __builtin_sqrtf((float)a[GID]) + __builtin_fminf((float)b[GID], 3.0f); }
KERNEL doubles ARGS { ((GLOBAL double *)o)[GID] = (double)a[GID] * 0.1 / ((double)b[GID] + 1.0); }
KERNEL convert ARGS { float f = (float)(int)a[GID] * 0.75f; o[GID] = (unsigned)(int)f + (unsigned)__builtin_rintf(f); }
KERNEL polynomial ARGS { float x = (float)a[GID] * 0.01f, t = 0; for (int k = 0; k < 9; k++) t = t * x + (float)k; F(o)[GID] = t; }
KERNEL vectors ARGS { float4 v = ((GLOBAL float4 *)a)[GID]; ((GLOBAL float4 *)o)[GID] = v * v + v.wzyx * 0.5f; }
KERNEL packed ARGS { float2 v = {(float)a[GID], 1.0f}, w = {(float)b[GID], 2.0f}; v = v * w + w.yx; v = v * v - w;
                     ((GLOBAL float2 *)o)[GID] = v; }
KERNEL halves ARGS { half2 v = {(half)(float)a[GID], (half)1}, w = {(half)2, (half)(float)(b[GID] & 15)};
                     v = v * w + w.yx; v = v * v.xx + w; ((GLOBAL half2 *)o)[GID] = v; }
KERNEL half_scalar ARGS { GLOBAL half *p = (GLOBAL half *)o; half x = (half)(float)(a[GID] & 127); p[GID] = x * x + (half)0.5f; }
KERNEL half_mix ARGS { GLOBAL half *p = (GLOBAL half *)a; float t = 0; for (int k = 0; k < 5; k++)
                       t = __builtin_fmaf((float)(half)(float)(GID & 7), (float)(half)(float)k, t); F(o)[GID] = t; }
KERNEL half_rows ARGS { half4 v = {(half)1, (half)(float)(GID & 31), (half)3, (half)4}; v = v * v.yxwz; half s = v.x + v.y + v.z;
                        ((GLOBAL half *)o)[2 * GID] = s; ((GLOBAL half *)o)[2 * GID + 1] = v.w; }

// ---- LDS and barriers
KERNEL reverse ARGS { lds[ID] = a[GID]; BARRIER(); o[GID] = lds[SIZE - 1 - ID]; }
KERNEL reduce_256 ARGS { lds[ID] = a[GID]; BARRIER(); for (unsigned n = SIZE / 2; n; n /= 2) { if (ID < n) lds[ID] += lds[ID + n];
                         BARRIER(); } if (!ID) o[GROUP] = lds[0]; }
KERNEL scan_256 ARGS { lds[ID] = a[GID]; BARRIER(); for (unsigned n = 1; n < SIZE; n *= 2) { unsigned v = ID >= n ? lds[ID - n] : 0;
                       BARRIER(); lds[ID] += v; BARRIER(); } o[GID] = lds[ID]; }
KERNEL transpose_256 ARGS { tile[ID / 16][ID % 16] = a[GID]; BARRIER(); o[GID] = tile[ID % 16][ID / 16]; }
KERNEL histogram_256 ARGS { if (ID < 16) lds[ID] = 0; BARRIER();
  __atomic_fetch_add(&lds[a[GID] & 15], 1, __ATOMIC_RELAXED); BARRIER(); if (ID < 16) o[GROUP * 16 + ID] = lds[ID]; }
KERNEL same_value_256 ARGS { lds[0] = 7; BARRIER(); o[GID] = lds[0] + a[GID]; }
KERNEL partly_filled_256 ARGS { if (ID < 100) lds[ID] = a[GID]; BARRIER(); unsigned v = lds[ID]; o[GID] = ID < 100 ? v : 5; }
KERNEL private_array ARGS { unsigned p[16]; for (unsigned k = 0; k < 16; k++) p[k] = a[GID] + k; o[GID] = p[GID & 15] + p[a[GID] & 7]; }
KERNEL some_private ARGS { unsigned p[16]; for (unsigned k = 0; k < (GID & 15); k++) p[k] = k * k; unsigned t = 0;
                           for (unsigned k = 0; k < (GID & 15); k++) t += p[k]; o[GID] = t; }

// ---- flags, atomics, lanes
KERNEL flag_256 ARGS { if (a[GID] & 1) o[0] = 1; }
KERNEL search_step_256 ARGS { unsigned n = a[GID] & 255; if (n % 3 == 0) { o[256 + n] = 1; o[512] = 1; } }
KERNEL counter_256 ARGS { if (a[GID] % 3 == 0) { unsigned at = __atomic_fetch_add(&o[1023], 1, __ATOMIC_RELAXED); o[at & 511] = GID; } }
KERNEL maximum_256 ARGS { __atomic_fetch_max(&o[0], a[GID], __ATOMIC_RELAXED); }
KERNEL first_lane ARGS { o[GID] = __builtin_amdgcn_readfirstlane(a[GROUP]) + a[GID]; }
KERNEL butterfly ARGS { unsigned v = a[GID]; for (int n = 1; n < 32; n *= 2) v += __builtin_amdgcn_ds_bpermute((ID ^ n) * 4, v); o[GID] = v; }
KERNEL part_of_lanes ARGS { unsigned v = 0; if (GID & 1) v = a[GID] + __builtin_amdgcn_ds_bpermute((ID ^ 2) * 4, a[GID]); o[GID] = v; }
KERNEL row_shift ARGS { o[GID] = __builtin_amdgcn_update_dpp(5, a[GID], 0x111, 0xF, 0xF, 0) + a[GID]; }
KERNEL vote ARGS { o[GID] = a[GID] & 4 ? 10 : 20; if (__builtin_amdgcn_readfirstlane(a[0]) > 1000) o[GID] = 3; }
