// LayerNorm of rows, one block of 128 threads a row, in two passes.

// Right: the row is read again for each pass.
extern "C" __global__ void layernorm_rows(float *out, const float *input, int width, float eps) {
    __shared__ float scratch[8];
    const float *row = input + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0.0f;
    for (int column = threadIdx.x; column < width; column += 128) sum += row[column];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) scratch[warp] = sum;
    __syncthreads();
    float mean = (scratch[0] + scratch[1] + scratch[2] + scratch[3]) / width;
    float squares = 0.0f;
    for (int column = threadIdx.x; column < width; column += 128) {
        float centred = row[column] - mean;
        squares += centred * centred;
    }
    for (int step = 16; step > 0; step >>= 1) squares += __shfl_xor_sync(0xffffffffu, squares, step);
    if (lane == 0) scratch[4 + warp] = squares;
    __syncthreads();
    float factor = rsqrtf((scratch[4] + scratch[5] + scratch[6] + scratch[7]) / width + eps);
    for (int column = threadIdx.x; column < width; column += 128) {
        out[(long long)blockIdx.x * width + column] = (row[column] - mean) * factor;
    }
}

// WRONG: the centred row is kept where the input was.
extern "C" __global__ void layernorm_rows_centred_in_place(float *out, float *input, int width, float eps) {
    __shared__ float scratch[8];
    float *row = input + (long long)blockIdx.x * width;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0.0f;
    for (int column = threadIdx.x; column < width; column += 128) sum += row[column];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) scratch[warp] = sum;
    __syncthreads();
    float mean = (scratch[0] + scratch[1] + scratch[2] + scratch[3]) / width;
    float squares = 0.0f;
    for (int column = threadIdx.x; column < width; column += 128) {
        row[column] -= mean;
        squares += row[column] * row[column];
    }
    for (int step = 16; step > 0; step >>= 1) squares += __shfl_xor_sync(0xffffffffu, squares, step);
    if (lane == 0) scratch[4 + warp] = squares;
    __syncthreads();
    float factor = rsqrtf((scratch[4] + scratch[5] + scratch[6] + scratch[7]) / width + eps);
    for (int column = threadIdx.x; column < width; column += 128) {
        out[(long long)blockIdx.x * width + column] = row[column] * factor;
    }
}

// Right: a row goes through shared memory a tile at a time, and all threads take as many turns.
extern "C" __global__ void layernorm_tiles(float *out, const float *input, int width, float eps) {
    __shared__ float tile[128];
    const float *row = input + (long long)blockIdx.x * width;
    float sum = 0.0f, squares = 0.0f;
    for (int start = 0; start < width; start += 128) {
        int column = start + threadIdx.x, columns = min(128, width - start);
        if (column < width) tile[threadIdx.x] = row[column];
        __syncthreads();
        for (int at = 0; at < columns; at++) sum += tile[at];
        __syncthreads();
    }
    float mean = sum / width;
    for (int start = 0; start < width; start += 128) {
        int column = start + threadIdx.x, columns = min(128, width - start);
        if (column < width) tile[threadIdx.x] = row[column] - mean;
        __syncthreads();
        for (int at = 0; at < columns; at++) squares += tile[at] * tile[at];
        __syncthreads();
    }
    float factor = rsqrtf(squares / width + eps);
    for (int column = threadIdx.x; column < width; column += 128) {
        out[(long long)blockIdx.x * width + column] = (row[column] - mean) * factor;
    }
}

// WRONG: a thread whose column lies beyond the row leaves the loop, and the others wait for it at the barrier.
extern "C" __global__ void layernorm_tiles_own_turns(float *out, const float *input, int width, float eps) {
    __shared__ float tile[128];
    const float *row = input + (long long)blockIdx.x * width;
    float sum = 0.0f, squares = 0.0f;
    for (int column = threadIdx.x; column < width; column += 128) {
        int columns = min(128, width - (column - (int)threadIdx.x));
        tile[threadIdx.x] = row[column];
        __syncthreads();
        for (int at = 0; at < columns; at++) sum += tile[at];
        __syncthreads();
    }
    float mean = sum / width;
    for (int column = threadIdx.x; column < width; column += 128) {
        int columns = min(128, width - (column - (int)threadIdx.x));
        tile[threadIdx.x] = row[column] - mean;
        __syncthreads();
        for (int at = 0; at < columns; at++) squares += tile[at] * tile[at];
        __syncthreads();
    }
    float factor = rsqrtf(squares / width + eps);
    for (int column = threadIdx.x; column < width; column += 128) {
        out[(long long)blockIdx.x * width + column] = (row[column] - mean) * factor;
    }
}
