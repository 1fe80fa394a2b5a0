// RMSNorm of rows: in float16 by eight warps, each with 64 neighbouring columns at a time; and in float32 through
// asynchronous copies into shared memory.
#include <cuda_fp16.h>

// Right: a warp that no column fell to adds 0.
extern "C" __global__ void rmsnorm_warps(__half *out, const __half *input, int width, float eps) {
    __shared__ float squares[8];
    const __half *row = input + (long long)blockIdx.x * width;
    __half *result = out + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0.0f;
    for (int start = warp * 64; start < width; start += 512) {
        for (int column = start + lane; column < min(start + 64, width); column += 32) {
            float value = __half2float(row[column]);
            sum += value * value;
        }
    }
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) squares[warp] = sum;
    __syncthreads();
    float total = 0.0f;
    for (int other = 0; other < 8; other++) total += squares[other];
    float factor = rsqrtf(total / width + eps);
    for (int column = threadIdx.x; column < width; column += 256) {
        result[column] = __float2half(__half2float(row[column]) * factor);
    }
}

// WRONG: a warp that no column fell to writes no sum, and all eight sums are added.
extern "C" __global__ void rmsnorm_warps_idle_unwritten(__half *out, const __half *input, int width, float eps) {
    __shared__ float squares[8];
    const __half *row = input + (long long)blockIdx.x * width;
    __half *result = out + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (warp * 64 < width) {
        float sum = 0.0f;
        for (int start = warp * 64; start < width; start += 512) {
            for (int column = start + lane; column < min(start + 64, width); column += 32) {
                float value = __half2float(row[column]);
                sum += value * value;
            }
        }
        for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) squares[warp] = sum;
    }
    __syncthreads();
    float total = 0.0f;
    for (int other = 0; other < 8; other++) total += squares[other];
    float factor = rsqrtf(total / width + eps);
    for (int column = threadIdx.x; column < width; column += 256) {
        result[column] = __float2half(__half2float(row[column]) * factor);
    }
}

// Right: each thread waits for its copies, and then for the other threads.
extern "C" __global__ void rmsnorm_copied(float *out, const float *input, int width, float eps) {
    extern __shared__ float copied[];
    __shared__ float squares[4];
    const float *row = input + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int column = threadIdx.x; column < width; column += 128) {
        unsigned target = (unsigned)__cvta_generic_to_shared(copied + column);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(target), "l"(row + column) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    float sum = 0.0f;
    // Neighbours are shared out in fours: what a thread reads is mostly what another one copied.
    for (int first = threadIdx.x * 4; first < width; first += 512) {
        for (int column = first; column < min(first + 4, width); column++) sum += copied[column] * copied[column];
    }
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) squares[warp] = sum;
    __syncthreads();
    float factor = rsqrtf((squares[0] + squares[1] + squares[2] + squares[3]) / width + eps);
    for (int column = threadIdx.x; column < width; column += 128) {
        out[(long long)blockIdx.x * width + column] = copied[column] * factor;
    }
}

// WRONG: the group is committed and never waited for; the barrier does not wait for copies.
extern "C" __global__ void rmsnorm_copied_not_waited(float *out, const float *input, int width, float eps) {
    extern __shared__ float copied[];
    __shared__ float squares[4];
    const float *row = input + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int column = threadIdx.x; column < width; column += 128) {
        unsigned target = (unsigned)__cvta_generic_to_shared(copied + column);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(target), "l"(row + column) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    __syncthreads();
    float sum = 0.0f;
    for (int first = threadIdx.x * 4; first < width; first += 512) {
        for (int column = first; column < min(first + 4, width); column++) sum += copied[column] * copied[column];
    }
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) squares[warp] = sum;
    __syncthreads();
    float factor = rsqrtf((squares[0] + squares[1] + squares[2] + squares[3]) / width + eps);
    for (int column = threadIdx.x; column < width; column += 128) {
        out[(long long)blockIdx.x * width + column] = copied[column] * factor;
    }
}
