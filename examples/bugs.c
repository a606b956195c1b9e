// out[i] = the mean of in[i] and of in[i + step], which nothing holds against the arrays' ends. Build (-g: lines and
// variables in the debugger, in reports, checks and faults):
//   clang -O2 -g -x c -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -fuse-ld=lld examples/bugs.c -o bugs.co
#define GLOBAL __attribute__((address_space(1)))

static inline float mean(float a, float b) {
  float sum = a + b;
  return 0.5f * sum;
}

__attribute__((noinline)) static float pick(GLOBAL const float *from, int at) {
  float found = from[at];
  return found;
}

__attribute__((amdgpu_kernel)) void smooth(GLOBAL float *out, GLOBAL const float *in, int step) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  float next = pick(in, i + step);
  out[i] = mean(in[i], next);
}
