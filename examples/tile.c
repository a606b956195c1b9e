// out = the transpose of sqrt(a), of 64 x 64 floats: tiles of 32 x 32 through LDS, 32 x 8 work-items a workgroup. Build:
//   clang -O2 -x c -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -fuse-ld=lld examples/tile.c -o tile.co
// A tile's columns lie in one bank of LDS: `tinyhw launch --report` shows the conflicts; [32][33] is without.
#define GLOBAL __attribute__((address_space(1)))
static __attribute__((address_space(3), loader_uninitialized)) float tile[32][32];

__attribute__((noinline)) static float root(float x) { return x < 0 ? 0 : __builtin_amdgcn_sqrtf(x); }

__attribute__((amdgpu_kernel))
void transpose(GLOBAL const float *a, GLOBAL float *out) {
  unsigned x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y();
  unsigned left = __builtin_amdgcn_workgroup_id_x() * 32, top = __builtin_amdgcn_workgroup_id_y() * 32;
  for (unsigned k = y; k < 32; k += 8) tile[k][x] = root(a[(top + k) * 64 + left + x]);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  for (unsigned k = y; k < 32; k += 8) out[(left + k) * 64 + top + x] = tile[x][k];
}
