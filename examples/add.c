// out[i] = a[i] + b[i], 256 work-items a workgroup. Build:
//   clang -O2 -x c -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -fuse-ld=lld examples/add.c -o add.co
#define GLOBAL __attribute__((address_space(1)))
__attribute__((amdgpu_kernel)) void add(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *out) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  out[i] = a[i] + b[i];
}
