// The largest element of rows of float16, one block of eight warps a row. A NaN wins.
#include <cuda_fp16.h>

static __device__ float larger(float left, float right) { return left > right || left != left ? left : right; }

// Right: the first warp merges as many maxima as there are warps.
extern "C" __global__ void max_rows(__half *out, const __half *input, int width) {
    __shared__ float maxima[32];
    const __half *row = input + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float most = __int_as_float(0xff800000);
    for (int column = threadIdx.x; column < width; column += blockDim.x) most = larger(most, __half2float(row[column]));
    for (int step = 16; step > 0; step >>= 1) most = larger(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (lane == 0) maxima[warp] = most;
    __syncthreads();
    if (warp > 0) return;
    most = lane < warps ? maxima[lane] : __int_as_float(0xff800000);
    for (int step = 16; step > 0; step >>= 1) most = larger(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (lane == 0) out[blockIdx.x] = __float2half(most);
}

// WRONG: merges 32 maxima, as if every block had 32 warps; most of them were written by none.
extern "C" __global__ void max_rows_all_partials(__half *out, const __half *input, int width) {
    __shared__ float maxima[32];
    const __half *row = input + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float most = __int_as_float(0xff800000);
    for (int column = threadIdx.x; column < width; column += blockDim.x) most = larger(most, __half2float(row[column]));
    for (int step = 16; step > 0; step >>= 1) most = larger(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (lane == 0) maxima[warp] = most;
    __syncthreads();
    if (warp > 0) return;
    most = maxima[lane];
    for (int step = 16; step > 0; step >>= 1) most = larger(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (lane == 0) out[blockIdx.x] = __float2half(most);
}
