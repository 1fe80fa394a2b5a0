// Offsets in 32 and in 64 bits.

extern "C" __global__ void row_int(float *x, int rows, int stride) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, column = blockIdx.y * blockDim.x + threadIdx.x;
    if (row < rows && column < stride) x[row * stride + column] *= 2.0f;
}
extern "C" __global__ void row_size(float *x, int rows, int stride) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, column = blockIdx.y * blockDim.x + threadIdx.x;
    if (row < rows && column < stride) x[(size_t)row * stride + column] *= 2.0f;
}
extern "C" __global__ void batch_int(const double *x, double *y, int channels, int height, int width) {
    int n = blockIdx.z, c = blockIdx.y, h = blockIdx.x, w = threadIdx.x;
    if (w < width) y[((n * channels + c) * height + h) * width + w] = x[((n * channels + c) * height + h) * width + w];
}
extern "C" __global__ void batch_long(const double *x, double *y, int channels, int height, int width) {
    int n = blockIdx.z, c = blockIdx.y, h = blockIdx.x, w = threadIdx.x;
    long long at = (((long long)n * channels + c) * height + h) * width + w;
    if (w < width) y[at] = x[at];
}
// The pointer moves on in 64 bits, by a stride of 32.
extern "C" __global__ void walking_pointer(const float *x, float *y, int rows, int stride) {
    const float *at = x + threadIdx.x;
    float sum = 0;
    for (int row = 0; row < rows; row++, at += stride) sum += *at;
    y[threadIdx.x] = sum;
}
// The offset moves on in 32 bits.
extern "C" __global__ void walking_offset(const float *x, float *y, int rows, int stride) {
    float sum = 0;
    for (int row = 0; row < rows; row++) sum += x[row * stride + threadIdx.x];
    y[threadIdx.x] = sum;
}
extern "C" __global__ void unsigned_bytes(unsigned char *x, unsigned rows, unsigned stride) {
    unsigned row = blockIdx.x;
    for (unsigned column = threadIdx.x; column < stride; column += blockDim.x) x[row * stride + column] = 0;
}
// A gather: the index was loaded.
extern "C" __global__ void gather_int(const float *table, const int *index, float *out, int width) {
    int from = index[blockIdx.x];
    out[blockIdx.x * 64 + threadIdx.x] = table[from * width + threadIdx.x];
}
extern "C" __global__ void gather_long(const float *table, const long long *index, float *out, int width) {
    long long from = index[blockIdx.x];
    out[(size_t)blockIdx.x * 64 + threadIdx.x] = table[from * width + threadIdx.x];
}
