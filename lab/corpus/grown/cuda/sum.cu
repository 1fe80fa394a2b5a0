// Sums of rows: by a tree in shared memory, one block a row, and by warps, four rows a block.

// Right: every level of the tree has ended before the next one begins.
extern "C" __global__ void sum_tree(float *out, const float *input, int width) {
    __shared__ float part[256];
    const float *row = input + (long long)blockIdx.x * width;
    int thread = threadIdx.x;
    float sum = 0.0f;
    for (int column = thread; column < width; column += 256) sum += row[column];
    part[thread] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (thread < half) part[thread] += part[thread + half];
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = part[0];
}

// WRONG: no barrier between the levels of the tree: a warp adds what another one may not have written yet.
extern "C" __global__ void sum_tree_no_barrier(float *out, const float *input, int width) {
    __shared__ float part[256];
    const float *row = input + (long long)blockIdx.x * width;
    int thread = threadIdx.x;
    float sum = 0.0f;
    for (int column = thread; column < width; column += 256) sum += row[column];
    part[thread] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (thread < half) part[thread] += part[thread + half];
    }
    if (thread == 0) out[blockIdx.x] = part[0];
}

// WRONG: the barrier stands in the branch, where only the threads come that add.
extern "C" __global__ void sum_tree_barrier_in_branch(float *out, const float *input, int width) {
    __shared__ float part[256];
    const float *row = input + (long long)blockIdx.x * width;
    int thread = threadIdx.x;
    float sum = 0.0f;
    for (int column = thread; column < width; column += 256) sum += row[column];
    part[thread] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (thread < half) {
            part[thread] += part[thread + half];
            __syncthreads();
        }
    }
    if (thread == 0) out[blockIdx.x] = part[0];
}

// Right: lanes of a warp meet before they read what other lanes wrote.
extern "C" __global__ void sum_warps(float *out, const float *input, int rows, int width) {
    __shared__ float parts[4][64];
    int lane = threadIdx.x, row = blockIdx.x * 4 + threadIdx.y;
    float *part = parts[threadIdx.y];
    float sum = 0.0f;
    if (row < rows) {
        for (int column = lane; column < width; column += 32) sum += input[(long long)row * width + column];
    }
    part[lane] = sum;
    part[lane + 32] = 0.0f;
    __syncwarp();
    for (int half = 16; half > 0; half >>= 1) {
        sum += part[lane + half];
        __syncwarp();
        part[lane] = sum;
        __syncwarp();
    }
    if (row < rows && lane == 0) out[row] = sum;
}

// WRONG: keeps the compiler from moving loads and stores, but relies on lanes that run in step, as they did before they
// had program counters of their own.
extern "C" __global__ void sum_warps_in_step(float *out, const float *input, int rows, int width) {
    __shared__ float parts[4][64];
    int lane = threadIdx.x, row = blockIdx.x * 4 + threadIdx.y;
    float *part = parts[threadIdx.y];
    float sum = 0.0f;
    if (row < rows) {
        for (int column = lane; column < width; column += 32) sum += input[(long long)row * width + column];
    }
    part[lane] = sum;
    part[lane + 32] = 0.0f;
    asm volatile("" ::: "memory");
    for (int half = 16; half > 0; half >>= 1) {
        sum += part[lane + half];
        asm volatile("" ::: "memory");
        part[lane] = sum;
        asm volatile("" ::: "memory");
    }
    if (row < rows && lane == 0) out[row] = sum;
}

// WRONG: a block that lacks one of its four rows leaves, and writes none of the others.
extern "C" __global__ void sum_warps_whole_blocks(float *out, const float *input, int rows, int width) {
    __shared__ float parts[4][64];
    int lane = threadIdx.x, row = blockIdx.x * 4 + threadIdx.y;
    float *part = parts[threadIdx.y];
    if (blockIdx.x * 4 + 4 > rows) return;
    float sum = 0.0f;
    for (int column = lane; column < width; column += 32) sum += input[(long long)row * width + column];
    part[lane] = sum;
    part[lane + 32] = 0.0f;
    __syncwarp();
    for (int half = 16; half > 0; half >>= 1) {
        sum += part[lane + half];
        __syncwarp();
        part[lane] = sum;
        __syncwarp();
    }
    if (lane == 0) out[row] = sum;
}
