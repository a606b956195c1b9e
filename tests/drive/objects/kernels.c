/* The code objects beside this file, and how they were made: README.md. */
typedef unsigned int u32; typedef unsigned long u64;
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
static u32 fib(u32 n) { return n < 2 ? n : fib(n-1) + fib(n-2); }
KERNEL void fibs(GLOBAL u32 *out) { u32 i = __builtin_amdgcn_workitem_id_x(); out[i] = fib(i & 15); }
KERNEL void ids(GLOBAL u32 *out, u32 n) {
  u32 lx = __builtin_amdgcn_workitem_id_x(), ly = __builtin_amdgcn_workitem_id_y(), lz = __builtin_amdgcn_workitem_id_z();
  u32 gx = __builtin_amdgcn_workgroup_id_x(), gy = __builtin_amdgcn_workgroup_id_y(), gz = __builtin_amdgcn_workgroup_id_z();
  u32 sx = __builtin_amdgcn_workgroup_size_x(), sy = __builtin_amdgcn_workgroup_size_y(), sz = __builtin_amdgcn_workgroup_size_z();
  u32 wx = __builtin_amdgcn_grid_size_x(), wy = __builtin_amdgcn_grid_size_y();
  u32 x = gx*sx+lx, y = gy*sy+ly, z = gz*sz+lz;
  u32 i = (z*wy + y)*wx + x;
  if (i < n) out[i] = x | y << 8 | z << 16;
}
KERNEL void sort(GLOBAL float *d, u32 n) {
  float local[32];
  u32 base = __builtin_amdgcn_workitem_id_x()*n;
  for (u32 i=0;i<n;i++) local[i]=d[base+i];
  for (u32 i=0;i<n;i++) for (u32 j=i+1;j<n;j++) if (local[j]<local[i]) { float t=local[i]; local[i]=local[j]; local[j]=t; }
  for (u32 i=0;i<n;i++) d[base+i]=local[i];
}
KERNEL void saxpy(GLOBAL double *y, GLOBAL const double *x, double a, u64 n) {
  u64 i = __builtin_amdgcn_workgroup_id_x()*(u64)__builtin_amdgcn_workgroup_size_x()+__builtin_amdgcn_workitem_id_x();
  if (i<n) y[i] += a*x[i];
}
KERNEL void hist(GLOBAL u32 *bins, GLOBAL const u32 *d, u32 n) {
  u32 i = __builtin_amdgcn_workgroup_id_x()*64+__builtin_amdgcn_workitem_id_x();
  if (i<n) __atomic_fetch_add((u32 GLOBAL*)&bins[d[i]&15], 1, __ATOMIC_RELAXED);
}
