// Products of rocBLAS against the host's: blas N...
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <rocblas/rocblas.h>
#include <stdio.h>
#include <stdlib.h>

static int product(rocblas_handle handle, int n) {
  size_t bytes = sizeof(float) * n * n;
  float *x = malloc(bytes), *y = malloc(bytes), *found = malloc(bytes), *a, *b, *c, one = 1, zero = 0;
  int wrong = 0;
  for (int i = 0; i < n * n; i++) {
    x[i] = i % 7 - 3;
    y[i] = i % 5 - 2;
  }
  hipMalloc((void **)&a, bytes);
  hipMalloc((void **)&b, bytes);
  hipMalloc((void **)&c, bytes);
  hipMemcpy(a, x, bytes, hipMemcpyHostToDevice);
  hipMemcpy(b, y, bytes, hipMemcpyHostToDevice);
  if (rocblas_sgemm(handle, rocblas_operation_none, rocblas_operation_none, n, n, n, &one, a, n, b, n, &zero, c, n))
    return -1;
  hipMemcpy(found, c, bytes, hipMemcpyDeviceToHost);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) {
      float sum = 0; // of small integers: exact
      for (int k = 0; k < n; k++) sum += x[i + k * n] * y[k + j * n];
      wrong += sum != found[i + j * n];
    }
  return wrong;
}

int main(int count, char **words) {
  rocblas_handle handle;
  if (rocblas_create_handle(&handle)) return 1;
  for (int i = 1; i < count; i++) printf("%s: %d wrong\n", words[i], product(handle, atoi(words[i])));
  return 0;
}
