// Rows moved to higher indices by `shifts`; what leaves at one end comes in at the other.

extern "C" __global__ void right(float *out, const float *input, int rows, int columns, int shifts) {
    const long long first = (long long)blockIdx.x * columns;
    if (blockIdx.x >= rows) return;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        int from = (column - shifts) % columns;
        // In C++ the remainder has the sign of the dividend.
        if (from < 0) from += columns;
        out[first + column] = input[first + from];
    }
}

// WRONG: the first columns are read before their row begins, the first row's before the tensor does.
extern "C" __global__ void wrong(float *out, const float *input, int rows, int columns, int shifts) {
    const long long first = (long long)blockIdx.x * columns;
    if (blockIdx.x >= rows) return;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        out[first + column] = input[first + (column - shifts) % columns];
    }
}
