// Operations of ggml on its HIP backend against its CPU backend: ggml HIP_LIBRARY CPU_LIBRARY
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct ggml_tensor Tensor;
typedef struct ggml_context Context;
typedef Tensor *(*Make)(Context *, Tensor *, Tensor *);

static double worst; // squares of differences over squares of values

static bool compared(int index, Tensor *found, Tensor *wanted, void *data) {
  size_t count = ggml_nelements(found);
  float *x = malloc(4 * count), *y = malloc(4 * count);
  double wrong = 0, size = 0;
  if (found->op == GGML_OP_NONE || found->type != GGML_TYPE_F32) return true;
  ggml_backend_tensor_get(found, x, 0, 4 * count);
  ggml_backend_tensor_get(wanted, y, 0, 4 * count);
  for (size_t i = 0; i < count; i++) {
    wrong += isfinite(x[i]) ? (x[i] - y[i]) * (double)(x[i] - y[i]) : 1e30;
    size += y[i] * (double)y[i];
  }
  worst = fmax(worst, wrong / size);
  return true;
}

static void fill(Tensor *t) {
  size_t count = ggml_nelements(t), bytes = ggml_nbytes(t);
  float *x = malloc(4 * count);
  void *raw = malloc(bytes);
  for (size_t i = 0; i < count; i++) x[i] = 2.0f * rand() / RAND_MAX - 1;
  if (t->type == GGML_TYPE_F32) ggml_backend_tensor_set(t, x, 0, bytes);
  else {
    ggml_quantize_chunk(t->type, x, raw, 0, count / t->ne[0], t->ne[0], NULL);
    ggml_backend_tensor_set(t, raw, 0, bytes);
  }
}

static Tensor *add(Context *c, Tensor *a, Tensor *b) { return ggml_add(c, a, b); }
static Tensor *soft_max(Context *c, Tensor *a, Tensor *b) { return ggml_soft_max(c, a); }
static Tensor *rms_norm(Context *c, Tensor *a, Tensor *b) { return ggml_rms_norm(c, a, 1e-5f); }
static Tensor *silu(Context *c, Tensor *a, Tensor *b) { return ggml_silu(c, a); }
static Tensor *turned(Context *c, Tensor *a, Tensor *b) { return ggml_cont(c, ggml_permute(c, a, 1, 0, 2, 3)); }
static Tensor *concat(Context *c, Tensor *a, Tensor *b) { return ggml_concat(c, a, b, 1); }
static Tensor *mul_mat(Context *c, Tensor *a, Tensor *b) { return ggml_mul_mat(c, a, b); }

static void run(ggml_backend_t gpu, ggml_backend_t cpu, const char *name, Make make, enum ggml_type type, int rows) {
  struct ggml_init_params sizes = {1 << 20, NULL, true};
  Context *c = ggml_init(sizes);
  Tensor *a = ggml_new_tensor_2d(c, type, 256, 96), *b = ggml_new_tensor_2d(c, GGML_TYPE_F32, 256, rows);
  Tensor *result = make(c, a, b);
  struct ggml_cgraph *graph = ggml_new_graph(c);
  ggml_build_forward_expand(graph, result);
  ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(c, gpu);
  fill(a);
  fill(b);
  worst = 0;
  bool done = ggml_backend_compare_graph_backend(gpu, cpu, graph, compared, NULL, NULL, 0);
  printf("%s %s %d: %s\n", name, ggml_type_name(type), rows, done && worst < 5e-4 ? "right" : "wrong");
  ggml_backend_buffer_free(memory);
  ggml_free(c);
}

int main(int count, char **words) {
  if (!ggml_backend_load(words[1]) || !ggml_backend_load(words[2])) return 1;
  ggml_backend_t gpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_GPU, NULL);
  ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
  enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K};
  if (!gpu || !cpu) return 2;
  for (int i = 0; i < 6; i++)
    for (int rows = 1; rows < 80; rows += 39) run(gpu, cpu, "mul_mat", mul_mat, types[i], rows);
  run(gpu, cpu, "add", add, GGML_TYPE_F32, 96);
  run(gpu, cpu, "soft_max", soft_max, GGML_TYPE_F32, 1);
  run(gpu, cpu, "rms_norm", rms_norm, GGML_TYPE_F32, 1);
  run(gpu, cpu, "silu", silu, GGML_TYPE_F32, 1);
  run(gpu, cpu, "turned", turned, GGML_TYPE_F32, 1);
  run(gpu, cpu, "concat", concat, GGML_TYPE_F32, 32);
  return 0;
}
