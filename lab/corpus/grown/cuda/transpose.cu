// Transposed matrices of 16-bit elements, by tiles of 32 x 32 in shared memory, 8 rows of a tile at a time.

// Right: the tile is complete before it is read along the other dim.
extern "C" __global__ void transpose_tiles(unsigned short *out, const unsigned short *input, int m, int n) {
    __shared__ unsigned short tile[32][33];
    const unsigned short *from = input + (long long)blockIdx.z * m * n;
    unsigned short *to = out + (long long)blockIdx.z * m * n;
    int x = threadIdx.x, first_row = blockIdx.y * 32, first_column = blockIdx.x * 32;
    for (int y = threadIdx.y; y < 32; y += 8) {
        if (first_row + y < m && first_column + x < n) {
            tile[y][x] = from[(long long)(first_row + y) * n + first_column + x];
        }
    }
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8) {
        if (first_column + y < n && first_row + x < m) {
            to[(long long)(first_column + y) * m + first_row + x] = tile[x][y];
        }
    }
}

// WRONG: a warp reads columns of the tile that other warps may not have filled yet.
extern "C" __global__ void transpose_tiles_no_barrier(unsigned short *out, const unsigned short *input, int m, int n) {
    __shared__ unsigned short tile[32][33];
    const unsigned short *from = input + (long long)blockIdx.z * m * n;
    unsigned short *to = out + (long long)blockIdx.z * m * n;
    int x = threadIdx.x, first_row = blockIdx.y * 32, first_column = blockIdx.x * 32;
    for (int y = threadIdx.y; y < 32; y += 8) {
        if (first_row + y < m && first_column + x < n) {
            tile[y][x] = from[(long long)(first_row + y) * n + first_column + x];
        }
    }
    for (int y = threadIdx.y; y < 32; y += 8) {
        if (first_column + y < n && first_row + x < m) {
            to[(long long)(first_column + y) * m + first_row + x] = tile[x][y];
        }
    }
}

// WRONG: every matrix of the batch is the transposed first one.
extern "C" __global__ void transpose_tiles_first_batch(unsigned short *out, const unsigned short *input, int m, int n) {
    __shared__ unsigned short tile[32][33];
    const unsigned short *from = input;
    unsigned short *to = out + (long long)blockIdx.z * m * n;
    int x = threadIdx.x, first_row = blockIdx.y * 32, first_column = blockIdx.x * 32;
    for (int y = threadIdx.y; y < 32; y += 8) {
        if (first_row + y < m && first_column + x < n) {
            tile[y][x] = from[(long long)(first_row + y) * n + first_column + x];
        }
    }
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8) {
        if (first_column + y < n && first_row + x < m) {
            to[(long long)(first_column + y) * m + first_row + x] = tile[x][y];
        }
    }
}
