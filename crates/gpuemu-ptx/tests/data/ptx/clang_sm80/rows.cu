#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
struct Shape { int rows; long stride; float scale; };
__constant__ float weights[4] = {0.25f, 0.5f, 1.0f, 2.0f};
__device__ int table[6] = {3, 5, 9, 17, 33, 65};
extern "C" __device__ int vprintf(const char *, const char *);
__attribute__((noinline)) __device__ float helper(float x, int n) { volatile float buffer[8]; for (int i = 0; i < 8; ++i) buffer[i] = x * i; return buffer[n & 7]; }
__global__ void rows(float *out, const float *in, Shape shape) {
  __shared__ float tile[256];
  int t = __nvvm_read_ptx_sreg_tid_x(), row = __nvvm_read_ptx_sreg_ctaid_x();
  float sum = 0;
  for (int i = t; i < shape.rows; i += 256) sum += in[row * shape.stride + i] * weights[i & 3];
  tile[t] = helper(sum, t); __syncthreads();
  if (t == 0) { float all = 0; for (int i = 0; i < 256; ++i) all += tile[i]; out[row] = all * shape.scale; }
}
typedef float (*Function)(float, int);
__device__ Function chosen = helper;
__global__ void pick(int *out, int n) {
  switch (n) { case 0: out[0] = 3; break; case 1: out[1] = n * 5; break; case 2: out[2] = out[9]; break; case 3: out[0] ^= 17; break;
    case 4: out[7] = table[n & 3]; break; case 5: out[5] = (int)chosen(1.5f, n); break; case 6: vprintf("six %d\n", 0); break; default: __builtin_trap(); }
}
