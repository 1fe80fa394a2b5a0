// Sums of columns: one warp for 32 neighbouring columns.

// Right.
extern "C" __global__ void sum_columns_tile(float *out, const float *input, int m, int n) {
    int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int row = 0; row < m && column < n; row++) sum += input[(long long)row * n + column];
    if (column < n) out[column] = sum;
}

// WRONG: only the loads are guarded: the last warp writes zeros up to the next multiple of 32.
extern "C" __global__ void sum_columns_padded_store(float *out, const float *input, int m, int n) {
    int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int row = 0; row < m && column < n; row++) sum += input[(long long)row * n + column];
    out[column] = sum;
}

// Right: rows may lie apart.
extern "C" __global__ void sum_columns_strided(float *out, const float *input, int m, int n, long long stride) {
    int column = blockIdx.x * 32 + threadIdx.x;
    if (column >= n) return;
    float sum = 0.0f;
    for (int row = 0; row < m; row++) sum += input[row * stride + column];
    out[column] = sum;
}

// WRONG: takes the stride and does not use it: rows are as far apart as they are long.
extern "C" __global__ void sum_columns_strided_dense(float *out, const float *input, int m, int n, long long stride) {
    int column = blockIdx.x * 32 + threadIdx.x;
    if (column >= n) return;
    float sum = 0.0f;
    for (int row = 0; row < m; row++) sum += input[(long long)row * n + column];
    out[column] = sum;
}
