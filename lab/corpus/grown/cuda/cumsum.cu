// Running sums of rows: by a block of 128 threads, and by a single warp, with a carry from tile to tile.

// Right: two barriers a step, one before the new sums are written and one after.
extern "C" __global__ void cumsum_block(float *out, const float *input, int width) {
    __shared__ float sums[128];
    const float *row = input + (long long)blockIdx.x * width;
    int thread = threadIdx.x;
    float carry = 0.0f;
    for (int start = 0; start < width; start += 128) {
        sums[thread] = start + thread < width ? row[start + thread] : 0.0f;
        __syncthreads();
        for (int step = 1; step < 128; step <<= 1) {
            float before = thread >= step ? sums[thread - step] : 0.0f;
            __syncthreads();
            if (thread >= step) sums[thread] += before;
            __syncthreads();
        }
        if (start + thread < width) out[(long long)blockIdx.x * width + start + thread] = carry + sums[thread];
        carry += sums[127];
        __syncthreads();
    }
}

// WRONG: one barrier a step: a sum may be read after its thread has already added to it.
extern "C" __global__ void cumsum_block_one_barrier(float *out, const float *input, int width) {
    __shared__ float sums[128];
    const float *row = input + (long long)blockIdx.x * width;
    int thread = threadIdx.x;
    float carry = 0.0f;
    for (int start = 0; start < width; start += 128) {
        sums[thread] = start + thread < width ? row[start + thread] : 0.0f;
        __syncthreads();
        for (int step = 1; step < 128; step <<= 1) {
            float before = thread >= step ? sums[thread - step] : 0.0f;
            if (thread >= step) sums[thread] += before;
            __syncthreads();
        }
        if (start + thread < width) out[(long long)blockIdx.x * width + start + thread] = carry + sums[thread];
        carry += sums[127];
        __syncthreads();
    }
}

// Right: the lanes meet between reading and writing.
extern "C" __global__ void cumsum_warp(float *out, const float *input, int width) {
    __shared__ float sums[32];
    const float *row = input + (long long)blockIdx.x * width;
    int lane = threadIdx.x;
    float carry = 0.0f;
    for (int start = 0; start < width; start += 32) {
        float sum = start + lane < width ? row[start + lane] : 0.0f;
        sums[lane] = sum;
        __syncwarp();
        for (int step = 1; step < 32; step <<= 1) {
            if (lane >= step) sum += sums[lane - step];
            __syncwarp();
            sums[lane] = sum;
            __syncwarp();
        }
        if (start + lane < width) out[(long long)blockIdx.x * width + start + lane] = carry + sum;
        carry += sums[31];
        __syncwarp();
    }
}

// WRONG: the lanes of the only warp are taken to read and write in step.
extern "C" __global__ void cumsum_warp_in_step(float *out, const float *input, int width) {
    __shared__ float sums[32];
    const float *row = input + (long long)blockIdx.x * width;
    int lane = threadIdx.x;
    float carry = 0.0f;
    for (int start = 0; start < width; start += 32) {
        float sum = start + lane < width ? row[start + lane] : 0.0f;
        sums[lane] = sum;
        for (int step = 1; step < 32; step <<= 1) {
            if (lane >= step) sum += sums[lane - step];
            sums[lane] = sum;
        }
        if (start + lane < width) out[(long long)blockIdx.x * width + start + lane] = carry + sum;
        carry += sums[31];
    }
}
