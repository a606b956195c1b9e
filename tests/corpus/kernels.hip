// HIP: generic pointers, shared memory whose size the launch says.
#define OWN_SOFTMAX
#include "kernels.h"

extern __attribute__((shared)) float dynamic[];

KERNEL void softmax(const float *x, float *out, int columns) {
  SHARED(float, scratch, ITEMS);
  const float *row = x + GROUP * columns;
  float top = MINUS_INFINITY, sum = 0;
  for (int k = ITEM; k < columns; k += ITEMS) top = MAX(top, dynamic[k] = row[k]);
  COMBINE(scratch, top, MAX);
  top = scratch[0];
  BARRIER();
  for (int k = ITEM; k < columns; k += ITEMS) sum += dynamic[k] = __builtin_exp2f((dynamic[k] - top) * LOG2E);
  COMBINE(scratch, sum, SUM);
  for (int k = ITEM; k < columns; k += ITEMS) out[GROUP * columns + k] = dynamic[k] / scratch[0];
}
