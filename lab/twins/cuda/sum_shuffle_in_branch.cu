// The sum of every row, by shuffles within the one warp of a block.

extern "C" __global__ void right(float *out, const float *input, int rows, int columns) {
    if (blockIdx.x >= rows) return;
    const float *row = input + (long long)blockIdx.x * columns;
    float sum = 0.0f;
    for (int column = threadIdx.x; column < columns; column += 32) sum += row[column];
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// WRONG: lanes without a column are named in the mask, and never arrive.
extern "C" __global__ void wrong(float *out, const float *input, int rows, int columns) {
    if (blockIdx.x >= rows) return;
    const float *row = input + (long long)blockIdx.x * columns;
    float sum = 0.0f;
    if (threadIdx.x < columns) {
        for (int column = threadIdx.x; column < columns; column += 32) sum += row[column];
        for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
