// A program of HSA's runtime: hsa CODE_OBJECT add|deep|bad|launches
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1000, ROOM = 4096, TIMES = 2000 };
static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t video, shared, arguments;
static hsa_queue_t *queue;
static hsa_executable_t executable;
static hsa_signal_t done;

static void need(hsa_status_t status, const char *what) {
  const char *text = "?";
  if (status == HSA_STATUS_SUCCESS) return;
  hsa_status_string(status, &text);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(1);
}
#define NEED(call) need(call, #call)

static hsa_status_t agent(hsa_agent_t found, void *data) {
  hsa_device_type_t type;
  hsa_agent_get_info(found, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_GPU && !gpu.handle) gpu = found;
  if (type == HSA_DEVICE_TYPE_CPU) cpu = found;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t pool(hsa_amd_memory_pool_t found, void *of_gpu) {
  hsa_amd_segment_t segment;
  uint32_t flags;
  hsa_amd_memory_pool_get_info(found, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
  if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
  hsa_amd_memory_pool_get_info(found, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
  if (of_gpu && !video.handle) video = found;
  if (!of_gpu && flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) arguments = found;
  else if (!of_gpu && !shared.handle) shared = found;
  return HSA_STATUS_SUCCESS;
}

static void error(hsa_status_t status, hsa_queue_t *of, void *data) {
  const char *text = "?";
  hsa_status_string(status, &text);
  fprintf(stderr, "queue: %s\n", text);
}

static void *allocate(hsa_amd_memory_pool_t from, size_t size) {
  void *at;
  NEED(hsa_amd_memory_pool_allocate(from, size, 0, &at));
  NEED(hsa_amd_agents_allow_access(1, from.handle == video.handle ? &cpu : &gpu, 0, at));
  return at;
}

static void submit(void *packet, int type, int setup) {
  int fences = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_ACQUIRE_FENCE_SCOPE
               | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_RELEASE_FENCE_SCOPE;
  uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
  char *slot = (char *)queue->base_address + index % queue->size * 64;
  memcpy(slot + 4, (char *)packet + 4, 60);
  uint32_t first = type << HSA_PACKET_HEADER_TYPE | fences | 1 << HSA_PACKET_HEADER_BARRIER | setup << 16;
  __atomic_store_n((uint32_t *)slot, first, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, index);
}

static void launch(const char *name, void *with, uint32_t grid) {
  hsa_kernel_dispatch_packet_t packet = {0};
  hsa_executable_symbol_t symbol;
  NEED(hsa_executable_get_symbol_by_name(executable, name, &gpu, &symbol));
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &packet.kernel_object);
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                 &packet.private_segment_size);
  packet.workgroup_size_x = 64, packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = grid, packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernarg_address = with, packet.completion_signal = done;
  submit(&packet, HSA_PACKET_TYPE_KERNEL_DISPATCH, 1);
}

static void await(hsa_signal_t signal, hsa_wait_state_t how) {
  while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, how)) {}
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(int count, char **words) {
  const char *what = words[2];
  hsa_code_object_reader_t reader;
  NEED(hsa_init());
  NEED(hsa_iterate_agents(agent, 0));
  NEED(hsa_amd_agent_iterate_memory_pools(cpu, pool, 0));
  NEED(hsa_amd_agent_iterate_memory_pools(gpu, pool, &gpu));
  NEED(hsa_queue_create(gpu, 256, HSA_QUEUE_TYPE_MULTI, error, 0, -1, -1, &queue));
  NEED(hsa_code_object_reader_create_from_file(open(words[1], O_RDONLY), &reader));
  NEED(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, 0, &executable));
  NEED(hsa_executable_load_agent_code_object(executable, gpu, reader, 0, 0));
  NEED(hsa_executable_freeze(executable, 0));
  hsa_signal_t copied;
  NEED(hsa_signal_create(1, 0, 0, &done));
  NEED(hsa_signal_create(1, 0, 0, &copied));
  float *near = allocate(shared, 3 * ROOM), *far = allocate(video, 3 * ROOM);
  struct { void *a, *b, *c; int n; } *with = allocate(arguments, 4096);
  int wrong = 0;
  if (!strcmp(what, "add") || !strcmp(what, "launches")) {
    for (int i = 0; i < N; i++) near[i] = i, near[1024 + i] = 2 * i;
    with->a = far, with->b = far + 1024, with->c = far + 2048, with->n = N;
    NEED(hsa_amd_memory_async_copy(far, gpu, near, cpu, 2 * ROOM, 0, 0, copied));
    hsa_barrier_and_packet_t barrier = {0};
    barrier.dep_signal[0] = copied;
    submit(&barrier, HSA_PACKET_TYPE_BARRIER_AND, 0);
    launch("add.kd", with, 1024);
    await(done, HSA_WAIT_STATE_BLOCKED);
    hsa_signal_store_relaxed(copied, 1);
    NEED(hsa_amd_memory_async_copy(near + 2048, cpu, far + 2048, gpu, ROOM, 0, 0, copied));
    await(copied, HSA_WAIT_STATE_BLOCKED);
    for (int i = 0; i < N; i++) wrong += near[2048 + i] != 3 * i;
  } else if (!strcmp(what, "deep")) {
    with->a = near, *(int *)&with->b = 3;
    launch("deep.kd", with, 64);
    await(done, HSA_WAIT_STATE_BLOCKED);
    for (int i = 0; i < 64; i++) wrong += ((int *)near)[i] != 3 * i;
  } else {
    launch("bad.kd", with, 64);
    await(done, HSA_WAIT_STATE_BLOCKED);
  }
  printf("%d wrong\n", wrong);
  if (!strcmp(what, "launches")) {
    double best = 1e9, all = now();
    for (int i = 0; i < TIMES; i++) {
      double one = now();
      hsa_signal_store_relaxed(done, 1);
      launch("add.kd", with, 64);
      await(done, HSA_WAIT_STATE_ACTIVE);
      if ((one = now() - one) < best) best = one;
    }
    printf("launch and wait: best %.1f us, mean %.1f us\n", best, (now() - all) / TIMES);
  }
  hsa_signal_destroy(done);
  hsa_signal_destroy(copied);
  hsa_queue_destroy(queue);
  hsa_shut_down();
  return wrong != 0;
}
