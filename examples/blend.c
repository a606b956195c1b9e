// out[i] = how.scale * a[i] + b[i] of one workgroup, through LDS whose size the launch gives; backwards where
// how.backwards says so, without b where that is null. Build (-g: the parameters' types):
//   clang -O2 -g -x c -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -fuse-ld=lld examples/blend.c -o blend.co
#define GLOBAL __attribute__((address_space(1)))
struct options { float scale; int backwards; };
extern __attribute__((address_space(3))) float tile[];

__attribute__((amdgpu_kernel)) void blend(GLOBAL float *out, GLOBAL const float *a, GLOBAL const float *b,
                                          struct options how, int count) {
  int i = __builtin_amdgcn_workitem_id_x();
  tile[i] = how.scale * a[i] + (b ? b[i] : 0);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  if (i < count) out[i] = tile[how.backwards ? count - 1 - i : i];
}
