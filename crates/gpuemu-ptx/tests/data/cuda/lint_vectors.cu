// Neighbouring values that could be moved at once, and such that cannot.

extern "C" __global__ void four_by_four(const float *in, float *out) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    float a = in[i], b = in[i + 1], c = in[i + 2], d = in[i + 3];
    out[i] = a * 2; out[i + 1] = b * 3; out[i + 2] = c * 4; out[i + 3] = d * 5;
}
extern "C" __global__ void as_vector(const float4 *in, float4 *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = in[i];
    v.x *= 2; v.y *= 3; v.z *= 4; v.w *= 5;
    out[i] = v;
}
// Neighbouring threads need overlapping values.
extern "C" __global__ void stencil(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + in[i + 1] + in[i + 2] + in[i + 3];
}
struct Three { float x, y, z; };
extern "C" __global__ void structures(const Three *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i].x + in[i].y + in[i].z;
}
struct Complex { float re, im; };
extern "C" __global__ void complex_numbers(const Complex *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i].re * in[i].im;
}
extern "C" __global__ void local_array(const float *in, float *out, const int *at, int n) {
    float kept[32];
    for (int i = 0; i < 32; i++) kept[i] = in[i];
    for (int i = 0; i < n; i++) kept[at[i] & 31] += 1.0f;
    out[threadIdx.x] = kept[at[threadIdx.x] & 31];
}
