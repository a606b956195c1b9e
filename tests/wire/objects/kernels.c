/* The code objects beside this file, and how they were made: README.md. */
typedef unsigned int u32;
typedef unsigned long u64;
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))

GLOBAL u32 counters[4] = {1, 2, 3, 4};
GLOBAL u32 zeroed[1024];
GLOBAL u32 *GLOBAL pointer = &counters[2];

KERNEL void add(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *out, u32 n) {
  u32 i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) out[i] = a[i] + b[i];
}

KERNEL void count(u32 which, u32 by) { counters[which & 3] += by; zeroed[which & 1023] = *pointer; }

__attribute__((loader_uninitialized)) static SHARED u32 tile[256];

KERNEL void reverse(GLOBAL u32 *data) {
  u32 i = __builtin_amdgcn_workitem_id_x();
  tile[i] = data[i];
  __builtin_amdgcn_s_barrier();
  data[i] = tile[255 - i];
}

KERNEL void spill(GLOBAL u32 *data, u32 n) {
  volatile u32 local[64];
  for (u32 i = 0; i < 64; i++) local[i] = data[i];
  for (u32 i = 0; i < n; i++) data[i] = local[(i * 7) & 63];
}

KERNEL void sizes(GLOBAL u32 *out) {
  out[0] = __builtin_amdgcn_workgroup_size_x();
  out[1] = __builtin_amdgcn_grid_size_x();
}
