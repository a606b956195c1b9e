// OpenCL C: vector types, local memory as an argument.
#define OWN_SOFTMAX
#include "kernels.h"

__kernel void softmax(__global const float *x, __global float *out, int columns, __local float *scratch) {
  __global const float *row = x + GROUP * columns;
  float top = MINUS_INFINITY, sum = 0;
  for (int k = ITEM * 4; k < columns; k += ITEMS * 4) {
    float4 v = *(__global const float4 *)(row + k);
    float2 m = (float2)(MAX(v.x, v.y), MAX(v.z, v.w));
    top = MAX(top, MAX(m.x, m.y));
  }
  COMBINE(scratch, top, MAX);
  top = scratch[0];
  BARRIER();
  for (int k = ITEM * 4; k < columns; k += ITEMS * 4) {
    float4 v = (*(__global const float4 *)(row + k) - top) * LOG2E;
    v.x = __builtin_exp2f(v.x), v.y = __builtin_exp2f(v.y), v.z = __builtin_exp2f(v.z), v.w = __builtin_exp2f(v.w);
    *(__global float4 *)(out + GROUP * columns + k) = v;
    sum += v.x + v.y + v.z + v.w;
  }
  COMBINE(scratch, sum, SUM);
  for (int k = ITEM * 4; k < columns; k += ITEMS * 4) *(__global float4 *)(out + GROUP * columns + k) /= scratch[0];
}
