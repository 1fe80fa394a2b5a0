// Rows of a table, picked by indices: one block an index.

// Right: an offset into the table has 64 bits.
extern "C" __global__ void embedding_rows(float *out, const long long *indices, const float *weight, int width) {
    long long index = indices[blockIdx.x];
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        out[(long long)blockIdx.x * width + column] = weight[index * width + column];
    }
}

// WRONG: the index is cut off to 32 bits, and so is its product with the width: a table of 2^31 elements is too large.
extern "C" __global__ void embedding_rows_int_offset(float *out, const long long *indices, const float *weight,
                                                     int width) {
    int index = indices[blockIdx.x];
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        out[(long long)blockIdx.x * width + column] = weight[index * width + column];
    }
}

// Right: rows are copied four elements at a time only where each row begins at a multiple of four.
extern "C" __global__ void embedding_vectors(float *out, const long long *indices, const float *weight, int width) {
    const float *from = weight + indices[blockIdx.x] * width;
    float *to = out + (long long)blockIdx.x * width;
    int whole = width % 4 == 0 ? width : 0;
    for (int column = 4 * threadIdx.x; column < whole; column += 4 * blockDim.x) {
        *(float4 *)(to + column) = *(const float4 *)(from + column);
    }
    for (int column = whole + threadIdx.x; column < width; column += blockDim.x) to[column] = from[column];
}

// WRONG: the last elements of a row are copied one by one, but all rows after the first may begin anywhere.
extern "C" __global__ void embedding_vectors_unaligned(float *out, const long long *indices, const float *weight,
                                                       int width) {
    const float *from = weight + indices[blockIdx.x] * width;
    float *to = out + (long long)blockIdx.x * width;
    int whole = width / 4 * 4;
    for (int column = 4 * threadIdx.x; column < whole; column += 4 * blockDim.x) {
        *(float4 *)(to + column) = *(const float4 *)(from + column);
    }
    for (int column = whole + threadIdx.x; column < width; column += blockDim.x) to[column] = from[column];
}
