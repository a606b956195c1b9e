/* Parameters of many types, as C has them. build.sh makes the objects. */
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
typedef float real;
typedef real real4 __attribute__((ext_vector_type(4)));
typedef real real3 __attribute__((ext_vector_type(3)));
struct pair { int n; float x; };
enum how { ADD, SCALE };

/* y[i] = a * y[i] + n */
KERNEL void axpn(GLOBAL real *y, real a, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  y[i] = a * y[i] + n;
}

/* Everything that is passed by value, as doubles */
KERNEL void values(GLOBAL double *out, _Bool b, char c, unsigned char uc, short s, unsigned short us, int i, unsigned u,
                   long l, unsigned long ul, _Float16 h, float f, double d, enum how e) {
  out[0] = b; out[1] = c; out[2] = uc; out[3] = s; out[4] = us; out[5] = i; out[6] = u; out[7] = l; out[8] = ul;
  out[9] = h; out[10] = f; out[11] = d; out[12] = e;
}

/* Structures and vectors by value; a pointer to structures, to void and to pointers */
KERNEL void groups(GLOBAL float *out, struct pair p, real4 v, real3 w, GLOBAL struct pair *q, GLOBAL const void *r,
                   GLOBAL float *GLOBAL *s, __bf16 g) {
  out[0] = p.n; out[1] = p.x;
  out[2] = v.x; out[3] = v.y; out[4] = v.z; out[5] = v.w; out[6] = w.x; out[7] = w.y; out[8] = w.z;
  out[9] = q->n + q->x; out[10] = *(GLOBAL const float *)r; out[11] = s[0] == 0; out[12] = (float)g;
}

/* A bit of a float, an integer's bits, sizes alone: what the code says nothing sure of */
KERNEL void unsure(GLOBAL unsigned *out, float f, unsigned u, struct pair p, short s, int unused) {
  out[0] = __builtin_signbit(f) != 0;
  out[1] = u & 255;
  out[2] = p.n;
  out[3] = s;
}

/* 64-bit addresses: a loop over rows of doubles */
KERNEL void rows(GLOBAL double *out, GLOBAL const float *in, long pitch, long n) {
  long i = __builtin_amdgcn_workitem_id_x();
  double sum = 0;
  for (long k = 0; k < n; k++) sum += in[i * pitch + k];
  out[i] = sum;
}
