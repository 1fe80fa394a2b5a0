// Matrix products by tiles of 16 x 16 in shared memory. Rows may lie apart, elements of a row may not.

// Right: a tile has been used by all threads before the next one overwrites it.
extern "C" __global__ void matmul_tiles(float *out, const float *a, const float *b, int m, int n, int k,
                                        long long a_stride, long long b_stride) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0.0f;
    for (int start = 0; start < k; start += 16) {
        left[y][x] = row < m && start + x < k ? a[row * a_stride + start + x] : 0.0f;
        right[y][x] = column < n && start + y < k ? b[(start + y) * b_stride + column] : 0.0f;
        __syncthreads();
        for (int at = 0; at < 16 && start + at < k; at++) sum += left[y][at] * right[at][x];
        __syncthreads();
    }
    if (row < m && column < n) out[(long long)row * n + column] = sum;
}

// WRONG: a fast warp overwrites the tile that a slower one still multiplies.
extern "C" __global__ void matmul_tiles_no_barrier(float *out, const float *a, const float *b, int m, int n, int k,
                                                   long long a_stride, long long b_stride) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0.0f;
    for (int start = 0; start < k; start += 16) {
        left[y][x] = row < m && start + x < k ? a[row * a_stride + start + x] : 0.0f;
        right[y][x] = column < n && start + y < k ? b[(start + y) * b_stride + column] : 0.0f;
        __syncthreads();
        for (int at = 0; at < 16 && start + at < k; at++) sum += left[y][at] * right[at][x];
    }
    if (row < m && column < n) out[(long long)row * n + column] = sum;
}

// WRONG: takes the strides and does not use them: rows are as far apart as they are long.
extern "C" __global__ void matmul_tiles_dense(float *out, const float *a, const float *b, int m, int n, int k,
                                              long long a_stride, long long b_stride) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0.0f;
    for (int start = 0; start < k; start += 16) {
        left[y][x] = row < m && start + x < k ? a[(long long)row * k + start + x] : 0.0f;
        right[y][x] = column < n && start + y < k ? b[(long long)(start + y) * n + column] : 0.0f;
        __syncthreads();
        for (int at = 0; at < 16 && start + at < k; at++) sum += left[y][at] * right[at][x];
        __syncthreads();
    }
    if (row < m && column < n) out[(long long)row * n + column] = sum;
}

// Copies one element into shared memory, or a zero where it lies outside of its matrix.
static __device__ void copy(float *target, const float *from, bool inside) {
    unsigned address = (unsigned)__cvta_generic_to_shared(target);
    int bytes = inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

// Right: the next tile is on its way while this one is multiplied. Each turn commits a group, the last one an empty
// one, so that all but the newest group are what this turn needs.
extern "C" __global__ void matmul_copies(float *out, const float *a, const float *b, int m, int n, int k) {
    __shared__ float left[2][16][16], right[2][16][16];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0.0f;
    for (int turn = 0, start = -16; start < k; turn ^= 1, start += 16) {
        int next = start + 16;
        if (next < k) {
            bool in_left = row < m && next + x < k, in_right = column < n && next + y < k;
            copy(&left[turn][y][x], in_left ? a + (long long)row * k + next + x : a, in_left);
            copy(&right[turn][y][x], in_right ? b + (long long)(next + y) * n + column : b, in_right);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (start < 0) continue;
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        for (int at = 0; at < 16 && start + at < k; at++) sum += left[turn ^ 1][y][at] * right[turn ^ 1][at][x];
        __syncthreads();
    }
    if (row < m && column < n) out[(long long)row * n + column] = sum;
}

// WRONG: the last turn commits nothing, and the one group that the wait leaves in flight is the tile it multiplies.
extern "C" __global__ void matmul_copies_last_in_flight(float *out, const float *a, const float *b, int m, int n,
                                                        int k) {
    __shared__ float left[2][16][16], right[2][16][16];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0.0f;
    for (int turn = 0, start = -16; start < k; turn ^= 1, start += 16) {
        int next = start + 16;
        if (next < k) {
            bool in_left = row < m && next + x < k, in_right = column < n && next + y < k;
            copy(&left[turn][y][x], in_left ? a + (long long)row * k + next + x : a, in_left);
            copy(&right[turn][y][x], in_right ? b + (long long)(next + y) * n + column : b, in_right);
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
        if (start < 0) continue;
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        for (int at = 0; at < 16 && start + at < k; at++) sum += left[turn ^ 1][y][at] * right[turn ^ 1][at][x];
        __syncthreads();
    }
    if (row < m && column < n) out[(long long)row * n + column] = sum;
}
