// Softmax of rows, one block of 128 threads a row. The maximum and the sum use the same scratch.

// Right: everyone has read the maximum before the scratch is used again.
extern "C" __global__ void softmax_rows(float *out, const float *input, int width) {
    __shared__ float scratch[4];
    const float *row = input + (long long)blockIdx.x * width;
    float *result = out + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float most = __int_as_float(0xff800000);
    for (int column = threadIdx.x; column < width; column += 128) most = fmaxf(most, row[column]);
    for (int step = 16; step > 0; step >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (lane == 0) scratch[warp] = most;
    __syncthreads();
    most = fmaxf(fmaxf(scratch[0], scratch[1]), fmaxf(scratch[2], scratch[3]));
    __syncthreads();
    float sum = 0.0f;
    for (int column = threadIdx.x; column < width; column += 128) sum += expf(row[column] - most);
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) scratch[warp] = sum;
    __syncthreads();
    sum = scratch[0] + scratch[1] + scratch[2] + scratch[3];
    for (int column = threadIdx.x; column < width; column += 128) result[column] = expf(row[column] - most) / sum;
}

// WRONG: a warp that is ahead writes its sum into the scratch from which a slower one still reads the maximum.
extern "C" __global__ void softmax_rows_scratch_reused(float *out, const float *input, int width) {
    __shared__ float scratch[4];
    const float *row = input + (long long)blockIdx.x * width;
    float *result = out + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float most = __int_as_float(0xff800000);
    for (int column = threadIdx.x; column < width; column += 128) most = fmaxf(most, row[column]);
    for (int step = 16; step > 0; step >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (lane == 0) scratch[warp] = most;
    __syncthreads();
    most = fmaxf(fmaxf(scratch[0], scratch[1]), fmaxf(scratch[2], scratch[3]));
    float sum = 0.0f;
    for (int column = threadIdx.x; column < width; column += 128) sum += expf(row[column] - most);
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) scratch[warp] = sum;
    __syncthreads();
    sum = scratch[0] + scratch[1] + scratch[2] + scratch[3];
    for (int column = threadIdx.x; column < width; column += 128) result[column] = expf(row[column] - most) / sum;
}

// WRONG: keeps the exponentials in the row that was given, to save computing them twice.
extern "C" __global__ void softmax_rows_input_as_scratch(float *out, float *input, int width) {
    __shared__ float scratch[4];
    float *row = input + (long long)blockIdx.x * width;
    float *result = out + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float most = __int_as_float(0xff800000);
    for (int column = threadIdx.x; column < width; column += 128) most = fmaxf(most, row[column]);
    for (int step = 16; step > 0; step >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (lane == 0) scratch[warp] = most;
    __syncthreads();
    most = fmaxf(fmaxf(scratch[0], scratch[1]), fmaxf(scratch[2], scratch[3]));
    __syncthreads();
    float sum = 0.0f;
    for (int column = threadIdx.x; column < width; column += 128) {
        row[column] = expf(row[column] - most);
        sum += row[column];
    }
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) scratch[warp] = sum;
    __syncthreads();
    sum = scratch[0] + scratch[1] + scratch[2] + scratch[3];
    for (int column = threadIdx.x; column < width; column += 128) result[column] = row[column] / sum;
}
