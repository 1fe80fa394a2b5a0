// Rows plus a bias: in float32 one block a row, and in float16 two elements at a time.
#include <cuda_fp16.h>

// Right: an offset has 64 bits.
extern "C" __global__ void bias_add_rows(float *out, const float *input, const float *bias, int width) {
    long long first = (long long)blockIdx.x * width;
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        out[first + column] = input[first + column] + bias[column];
    }
}

// WRONG: row times width is a product of 32 bits: from 2^31 elements on the offset is negative.
extern "C" __global__ void bias_add_rows_int_offset(float *out, const float *input, const float *bias, int width) {
    int row = blockIdx.x;
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        out[row * width + column] = input[row * width + column] + bias[column];
    }
}

// Right: pairs only where each row begins at an even element.
extern "C" __global__ void bias_add_pairs(__half *out, const __half *input, const __half *bias, int width) {
    const __half *from = input + (long long)blockIdx.x * width;
    __half *to = out + (long long)blockIdx.x * width;
    int whole = width % 2 == 0 ? width : 0;
    for (int column = 2 * threadIdx.x; column < whole; column += 2 * blockDim.x) {
        float2 value = __half22float2(*(const __half2 *)(from + column));
        float2 more = __half22float2(*(const __half2 *)(bias + column));
        *(__half2 *)(to + column) = __floats2half2_rn(value.x + more.x, value.y + more.y);
    }
    for (int column = whole + threadIdx.x; column < width; column += blockDim.x) {
        to[column] = __float2half(__half2float(from[column]) + __half2float(bias[column]));
    }
}

// WRONG: pairs in every row, and in every other one of an odd width they begin in the middle of a word.
extern "C" __global__ void bias_add_pairs_unaligned(__half *out, const __half *input, const __half *bias, int width) {
    const __half *from = input + (long long)blockIdx.x * width;
    __half *to = out + (long long)blockIdx.x * width;
    int whole = width / 2 * 2;
    for (int column = 2 * threadIdx.x; column < whole; column += 2 * blockDim.x) {
        float2 value = __half22float2(*(const __half2 *)(from + column));
        float2 more = __half22float2(*(const __half2 *)(bias + column));
        *(__half2 *)(to + column) = __floats2half2_rn(value.x + more.x, value.y + more.y);
    }
    for (int column = whole + threadIdx.x; column < width; column += blockDim.x) {
        to[column] = __float2half(__half2float(from[column]) + __half2float(bias[column]));
    }
}
