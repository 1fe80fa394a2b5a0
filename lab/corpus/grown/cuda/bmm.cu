// Batched matrix products, one thread an element; the batch is the third dim of the grid.

// Right: each of the three matrices is that of the batch.
extern "C" __global__ void bmm_elements(float *out, const float *a, const float *b, int m, int n, int k) {
    long long batch = blockIdx.z;
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= m || column >= n) return;
    const float *left = a + (batch * m + row) * k, *right = b + batch * k * n + column;
    float sum = 0.0f;
    for (int at = 0; at < k; at++) sum += left[at] * right[(long long)at * n];
    out[(batch * m + row) * n + column] = sum;
}

// WRONG: every batch is multiplied by the right matrix of the first.
extern "C" __global__ void bmm_elements_first_right(float *out, const float *a, const float *b, int m, int n, int k) {
    long long batch = blockIdx.z;
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= m || column >= n) return;
    const float *left = a + (batch * m + row) * k, *right = b + column;
    float sum = 0.0f;
    for (int at = 0; at < k; at++) sum += left[at] * right[(long long)at * n];
    out[(batch * m + row) * n + column] = sum;
}
