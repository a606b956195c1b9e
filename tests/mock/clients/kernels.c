// Kernels of the programs beside, for clang's target amdgcn-amd-amdhsa.
#define KERNEL __attribute__((amdgpu_kernel)) void

KERNEL add(float *a, float *b, float *c, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) c[i] = a[i] + b[i];
}

KERNEL deep(int *out, int n) {  // of a size that needs scratch memory
  volatile int a[256];
  for (int i = 0; i < 256; i++) a[i] = i * n;
  out[__builtin_amdgcn_workitem_id_x()] = a[__builtin_amdgcn_workitem_id_x()];
}

KERNEL bad(int *out) { *(volatile int *)0x123456789000 = 1; }
