/* OpenCL C, whose objects name the types of their parameters. */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef struct { int n; float x; } pair;

/* y[i] = (a * y[i] + n) * scale[i], through local memory */
kernel void axpn(global float *y, float a, int n, constant float *scale, local float *tile) {
  int i = __builtin_amdgcn_workitem_id_x(), last = __builtin_amdgcn_workgroup_size_x() - 1;
  tile[i] = a * y[i] + n;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  y[last - i] = tile[last - i] * scale[last - i];
}

kernel void groups(global float *out, pair p, float4 v, uchar3 w, global pair *q, global float4 *r, ulong u, half h) {
  out[0] = p.n; out[1] = p.x; out[2] = v.x; out[3] = v.w; out[4] = w.x; out[5] = w.z; out[6] = q->x; out[7] = r->y;
  out[8] = u; out[9] = h;
}
