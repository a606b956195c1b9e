// A program of HIP's runtime: hip CODE_OBJECT NUMBERS
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void need(hipError_t error, const char *what) {
  if (error == hipSuccess) return;
  fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
  exit(1);
}
#define NEED(call) need(call, #call)

int main(int count, char **words) {
  int devices, n = atoi(words[2]), wrong = 0;
  hipDeviceProp_t is;
  hipModule_t module;
  hipFunction_t add;
  NEED(hipInit(0));
  NEED(hipGetDeviceCount(&devices));
  NEED(hipGetDeviceProperties(&is, 0));
  printf("%d devices, %s, %zu MiB\n", devices, is.gcnArchName, is.totalGlobalMem >> 20);
  NEED(hipModuleLoad(&module, words[1]));
  NEED(hipModuleGetFunction(&add, module, "add"));
  size_t bytes = sizeof(float) * n;
  float *host = malloc(3 * bytes), *a, *b, *c;
  for (int i = 0; i < n; i++) host[i] = i, host[n + i] = 2 * i;
  NEED(hipMalloc((void **)&a, bytes));
  NEED(hipMalloc((void **)&b, bytes));
  NEED(hipMalloc((void **)&c, bytes));
  NEED(hipMemcpy(a, host, bytes, hipMemcpyHostToDevice));
  NEED(hipMemcpy(b, host + n, bytes, hipMemcpyHostToDevice));
  NEED(hipMemset(c, 0xff, bytes));
  struct { float *a, *b, *c; int n; } with = {a, b, c, n};
  size_t size = sizeof with;
  void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &with, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
  NEED(hipModuleLaunchKernel(add, (n + 63) / 64, 1, 1, 64, 1, 1, 0, 0, 0, extra));
  NEED(hipDeviceSynchronize());
  NEED(hipMemcpy(host + 2 * n, c, bytes, hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) wrong += host[2 * n + i] != 3.f * i;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
